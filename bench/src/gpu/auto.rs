//! The choices of `auto`, and all algorithms that it could choose: a row for each length and order of a batch.
//!
//! Caches are emptied before each batch, since a table that is asked now and then finds them so. A row has
//! the times of every algorithm and the ratio of `auto`'s rate to the best of them. Tables lie on the
//! device, or their lines with the host.

use super::case::{Asked, Case, Trouble, failed};
use super::engines::{self, of_auto, of_hybrid};
use super::measure::Drawn;
use super::tables::size_name;
use super::{GpuReport, GpuRow};
use crate::BenchError;
use crate::report::spread;
use pleach_gpu::{Algorithm, GpuError};
use serde_json::{Map, Value};

/// Lengths of batches.
const BATCHES: [u64; 6] = [1, 32, 1 << 10, 1 << 15, 1 << 20, 1 << 26];

/// All rows of a table, which lies in `place`.
pub(crate) fn measure(
    case: &Case<'_, '_>,
    [key_type, size]: [&str; 2],
    place: &str,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    // There a search of fewer queries would be another one.
    let is_hybrid = place == "hybrid";
    let algorithms = if is_hybrid { of_hybrid() } else { of_auto() };
    let bench = case.bench;
    for batch in BATCHES.into_iter().filter(|&batch| batch <= bench.options.batch) {
        for (kind, order) in [(Drawn::Present, "random"), (Drawn::Ascending, "sorted")] {
            let row = GpuRow::new("auto", place, &[key_type, size, &size_name(batch), order]);
            let row = match one(case, &algorithms, is_hybrid, (kind, batch)) {
                Ok(found) => found.row(row.with("batch", batch)),
                Err(trouble) => failed(row, trouble)?,
            };
            bench.push(report, row)?;
        }
    }
    Ok(())
}

/// Microseconds for a batch.
struct Found {
    auto: f64,
    others: Vec<(String, f64)>,
}

impl Found {
    fn row(self, row: GpuRow) -> GpuRow {
        let row = row.number("us", self.auto);
        let all: Map<String, Value> =
            self.others.iter().map(|(name, us)| (name.clone(), ((us * 1e3).round() / 1e3).into())).collect();
        let best = self.others.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let Some((name, us)) = best else { return row };
        let row = row.with("best", name.as_str()).number("best_us", *us);
        row.number("of_best", us / self.auto.max(1e-9)).with("all_us", all)
    }
}

fn one(
    case: &Case<'_, '_>,
    algorithms: &[Algorithm],
    is_whole: bool,
    (kind, batch): (Drawn, u64),
) -> Result<Found, Trouble> {
    let options = case.bench.options;
    // Short runs are repeated more often.
    let repetitions =
        if batch > 1 << 15 { options.repetitions } else { options.short_repetitions.div_ceil(2) };
    let us = |algorithm: Algorithm| -> Result<f64, Trouble> {
        let plain = Asked::new(case.bench, algorithm, kind, batch);
        let times = case.time(Asked { repetitions, is_flushed: true, is_whole, ..plain })?;
        // If a batch is cut because it is slow, the time of the whole batch is extrapolated.
        Ok(spread(&times.ms).0 * 1e3 * batch as f64 / times.count as f64)
    };
    let auto = us(Algorithm::Auto)?;
    let mut others = Vec::new();
    for &algorithm in algorithms {
        // An algorithm that cannot search this table is not a choice.
        match us(algorithm) {
            Ok(us) => others.push((engines::label(algorithm), us)),
            Err(Trouble::Gpu(GpuError::Algorithm { .. } | GpuError::Compile { .. })) => {}
            Err(trouble) => return Err(trouble),
        }
    }
    Ok(Found { auto, others })
}
