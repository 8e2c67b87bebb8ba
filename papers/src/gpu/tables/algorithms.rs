//! All searches of papers, as `pleach bench gpu` measures algorithms: large random batches, and few queries with empty
//! caches.

use super::place;
use crate::gpu::search::{BinaryForm, PAryForm, binary, pary, pary_tree, regular_tree};
use pleach::KeyType;
use pleach_bench::BenchError;
use pleach_bench::gpu::case::Asked;
use pleach_bench::gpu::measure::Drawn;
use pleach_bench::gpu::tables::{Cell, Keys, make, size_name};
use pleach_bench::gpu::{Bench, GpuReport, short};
use pleach_gpu::{Algorithm, Residence};

/// Every form with the parameters of the papers, and what they are compared with.
fn all() -> Vec<Algorithm> {
    let mut all = vec![Algorithm::Spine, Algorithm::Binary, binary(BinaryForm::Top)];
    for threads in [4, 8, 16, 32, 64, 128, 256, 512, 1024] {
        all.push(pary(threads, PAryForm::List));
        if threads <= 32 {
            all.push(pary(threads, PAryForm::Ballot));
        }
    }
    all.extend([4, 16, 32, 64, 128].map(|threads| pary_tree(threads, threads)));
    all.push(regular_tree(64, 100, 1024));
    all
}

/// Engines that compete for short batches.
fn of_short_batches() -> [Algorithm; 6] {
    [
        Algorithm::Spine,
        Algorithm::Binary,
        binary(BinaryForm::Top),
        pary(32, PAryForm::List),
        pary(32, PAryForm::Ballot),
        pary_tree(32, 32),
    ]
}

/// All rows.
pub(super) fn measure(bench: &Bench<'_>, report: &mut GpuReport) -> Result<(), BenchError> {
    for &tuples in &bench.options.tuples {
        for &key_type in &bench.options.key_types {
            match key_type {
                KeyType::U32 => on_table::<u32>(bench, (key_type, tuples), report)?,
                _ => on_table::<u64>(bench, (key_type, tuples), report)?,
            }
        }
    }
    Ok(())
}

fn on_table<T: Cell>(
    bench: &Bench<'_>,
    (key_type, tuples): (KeyType, u64),
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let options = bench.options;
    let (key_type, size) = (key_type.to_string(), size_name(tuples));
    options.told.step(&format!("{size} x {key_type}: building"))?;
    let made = make::<T>(Keys::Uniform, tuples, options.dir.as_deref())?;
    let device = Residence::Device;
    let placed = place(bench, &made, options.batch, device, ("algorithms", &size), report)?;
    let Some(case) = placed else { return Ok(()) };
    for count in [1, 32, 1024] {
        for algorithm in of_short_batches() {
            bench.push(report, short(&case, algorithm, [&key_type, &size], count)?)?;
        }
    }
    for algorithm in all() {
        let asked = Asked::new(bench, algorithm, Drawn::Present, options.batch);
        bench.push(report, case.row("algorithms", &[&key_type, &size], asked)?)?;
        case.table.release(algorithm);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_bench::gpu::engines::label;
    use std::collections::HashSet;

    #[test]
    fn labels_differ_and_lists_are_parts_of_the_whole() {
        let all = all();
        let labels: HashSet<String> = all.iter().map(|&algorithm| label(algorithm)).collect();
        assert_eq!(labels.len(), all.len());
        for name in ["binary", "binary-top", "p-ary-32", "p-ary-32-ballot", "p-ary-tree-16-16"] {
            assert!(labels.contains(name), "{name}: {labels:?}");
        }
        assert!(labels.contains("regular-tree-64-100-1024"), "{labels:?}");
        assert!(of_short_batches().iter().all(|algorithm| all.contains(algorithm)));
    }
}
