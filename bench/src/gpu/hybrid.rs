//! Tables whose tuple lines stay in pinned memory of the host, beside the CPU's search of the same file.
//!
//! Two sizes: lines within the footprint where random reads over the link are fast, and lines far beyond it. Batches
//! are never cut, since what such a search does depends on their length.

use super::case::{Asked, Case, failed};
use super::measure::Drawn;
use super::tables::{Cell, Made};
use super::{Bench, GpuReport, GpuRow, cpu, limits};
use crate::BenchError;
use pleach_gpu::{Algorithm, Residence};

/// All rows of a table of 8-byte keys, which is not on the device.
pub(crate) fn measure<T: Cell>(
    bench: &Bench<'_>,
    made: &Made<T>,
    (is_auto, is_hybrid): (bool, bool),
    tuples: u64,
    [key_type, size]: [&str; 2],
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let options = bench.options;
    let case = match Case::new(bench, made, options.batch, Residence::Hybrid) {
        Ok(case) => case,
        Err(error) => {
            let row = GpuRow::new("hybrid", "table", &[key_type, size]);
            return bench.push(report, failed(row, error.into())?);
        }
    };
    if is_hybrid {
        let cpu = match cpu::pleach(&case, made, Drawn::Present, options.batch) {
            Ok(ms) => {
                let row = GpuRow::new("cpu", "pleach", &[key_type, size]).times(options.batch, &ms);
                Some(row.with("threads", rayon::current_num_threads()))
            }
            Err(trouble) => {
                let row = GpuRow::new("cpu", "pleach", &[key_type, size]);
                bench.push(report, failed(row, trouble)?)?;
                None
            }
        };
        let cpu_rate = cpu.as_ref().and_then(|row| row.get("g_per_s"));
        if let Some(row) = cpu {
            bench.push(report, row)?;
        }
        let bytes = limits::footprint(<T as pleach::Key>::TYPE, tuples);
        let limit = report.find(&format!("limit/host-lines/{}MiB", bytes >> 20));
        let limit = limit.and_then(|row| row.get("g_per_s"));
        for algorithm in [Algorithm::Auto, Algorithm::Spine] {
            let asked =
                Asked { is_whole: true, ..Asked::new(bench, algorithm, Drawn::Present, options.batch) };
            let mut row = case.row("hybrid", &[key_type, size], asked)?;
            let rate = row.get("g_per_s");
            for (field, below) in [("of_host_lines", limit), ("of_cpu", cpu_rate)] {
                if let (Some(rate), Some(below)) = (rate, below) {
                    row = row.number(field, rate / below);
                }
            }
            bench.push(report, row.with("lines_bytes", bytes))?;
        }
    }
    if is_auto {
        super::auto::measure(&case, [key_type, size], "hybrid", report)?;
    }
    Ok(())
}
