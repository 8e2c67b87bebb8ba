//! The reuse factor of the paper on an APU: how many batches pay for copying a table to the device.
//!
//! A row for each size of table and batch: milliseconds until the table and its image are there, microseconds of a
//! batch on all cores of the CPU, on the device alone (as in the paper) and from the host's slices and back, and the
//! factor of each, `copy / (cpu - gpu)`; where that is missing, and `never` is set, no number of batches is enough.
//! `planned` is what `GpuCosts` expects. After a table's rows come its factors for 90% and for all sizes of batches.

use super::case::{Asked, Case, Trouble, failed};
use super::host::slices;
use super::measure::Drawn;
use super::tables::{Keys, Made, make, size_name};
use super::{Bench, GpuReport, GpuRow, cpu};
use crate::BenchError;
use crate::report::spread;
use pleach_gpu::plan::{GpuCosts, reuse_factor, reuse_of_share};
use pleach_gpu::{Algorithm, GpuTable, Residence};
use std::time::Instant;

/// Queries of batches: the paper's, and ours.
const BATCHES: [u64; 8] = [1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 20, 1 << 22, 1 << 24];
const COPIES: usize = 3;

/// All rows.
pub(super) fn measure(bench: &Bench<'_>, report: &mut GpuReport) -> Result<(), BenchError> {
    for &tuples in &bench.options.reuse_tuples {
        let size = size_name(tuples);
        bench.options.told.step(&format!("{size} x u64: building"))?;
        let made = make::<u64>(Keys::Uniform, tuples, bench.options.dir.as_deref())?;
        if let Err(trouble) = of_table(bench, &made, &size, report)? {
            let row = GpuRow::new("reuse", "table", &["u64", &size]);
            bench.push(report, failed(row, trouble)?)?;
        }
    }
    Ok(())
}

fn of_table(
    bench: &Bench<'_>,
    made: &Made<u64>,
    size: &str,
    report: &mut GpuReport,
) -> Result<Result<(), Trouble>, BenchError> {
    let mut batches: Vec<u64> = BATCHES.into_iter().filter(|&batch| batch <= bench.options.batch).collect();
    if batches.is_empty() {
        batches.push(bench.options.batch);
    }
    let most = batches[batches.len() - 1];
    let (copy_ms, case) =
        match copies(bench, made).and_then(|ms| Ok((ms, Case::new(bench, made, most, Residence::Device)?))) {
            Ok(pair) => pair,
            Err(trouble) => return Ok(Err(trouble)),
        };
    let (mut kernels, mut hosts) = (Vec::new(), Vec::new());
    for &batch in &batches {
        let found = match of_batch(&case, made, batch) {
            Ok(found) => found,
            Err(trouble) => return Ok(Err(trouble)),
        };
        let [cpu_us, kernel_us, gpu_us] = found;
        let factor = |gpu_us: f64| reuse_factor(copy_ms * 1e3, cpu_us, gpu_us);
        let plan = GpuCosts { start: 0.0, ..GpuCosts::default() }.plan(
            &made.index,
            batch as usize,
            &pleach::Costs::default(),
            rayon::current_num_threads(),
        );
        let row = GpuRow::new("reuse", "device", &["u64", size, &size_name(batch)])
            .with("batch", batch)
            .number("copy_ms", copy_ms)
            .number("cpu_us", cpu_us)
            .number("kernel_us", kernel_us)
            .number("us", gpu_us);
        let row = with_factor(row, "kernel_reuse", factor(kernel_us));
        let row = with_factor(row, "reuse", factor(gpu_us));
        bench.push(report, with_factor(row, "planned_reuse", plan.reuse_factor()))?;
        kernels.push(factor(kernel_us));
        hosts.push(factor(gpu_us));
    }
    for (share, name) in [(0.9, "90%"), (1.0, "100%")] {
        let row = GpuRow::new("reuse", "share", &["u64", size, name]).number("copy_ms", copy_ms);
        let row = with_factor(row, "kernel_reuse", reuse_of_share(&kernels, share));
        bench.push(report, with_factor(row, "reuse", reuse_of_share(&hosts, share)))?;
    }
    Ok(Ok(()))
}

/// A factor, or that there is none.
fn with_factor(row: GpuRow, name: &str, factor: Option<f64>) -> GpuRow {
    match factor {
        Some(factor) => row.number(name, factor),
        None => row.with(name, "never"),
    }
}

/// Milliseconds until a table and its image are on the device.
fn copies(bench: &Bench<'_>, made: &Made<u64>) -> Result<f64, Trouble> {
    let mut all = Vec::new();
    for _ in 0..=COPIES {
        let start = Instant::now();
        let table = GpuTable::with_residence(&made.index, bench.gpu, Residence::Device)?;
        table.prepare(Algorithm::Auto)?;
        all.push(start.elapsed().as_secs_f64() * 1e3);
    }
    // The first one loads the kernels.
    Ok(spread(&all[1..]).0)
}

/// Microseconds of a batch: on the CPU, on the device, from the host and back.
fn of_batch(case: &Case<'_, '_>, made: &Made<u64>, batch: u64) -> Result<[f64; 3], Trouble> {
    let cpu = cpu::pleach(case, made, Drawn::Present, batch)?;
    let asked = Asked::new(case.bench, Algorithm::Auto, Drawn::Present, batch);
    let kernel = case.time(Asked { is_whole: true, ..asked })?.ms;
    let host = slices::<u64>(case, batch)?;
    Ok([cpu, kernel, host].map(|ms| spread(&ms).0 * 1e3))
}
