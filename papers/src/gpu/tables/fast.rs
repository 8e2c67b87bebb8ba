//! FAST on a GPU (Kim et al., TODS 2011): what each step of Figure 8 gains, Figure 9 over sizes of the tree, the GPU's
//! rows of Table III, and how many queries are needed for full speed (section 6.3.1).
//!
//! Figure 8's first step on a GPU is a binary search a lane; SIMD blocking makes it the tree with 16 lanes a query;
//! ours beside it takes its votes. Keys and values are of 4 bytes, queries random. The CPU is this machine's, on all
//! cores, by Pleach's own search of the same file.

use super::{PaperSizes, place, table, whole};
use pleach_bench::BenchError;
use pleach_bench::gpu::measure::Drawn;
use pleach_bench::gpu::tables::size_name;
use pleach_bench::gpu::{Bench, GpuReport, GpuRow, case, cpu};
use pleach_gpu::{Algorithm, FastForm, Residence};

/// The paper's way, whose need for queries is looked at, and ours.
const CONCURRENT: [Algorithm; 3] = [
    Algorithm::Fast { form: FastForm::Paper, simultaneous: 2 },
    Algorithm::Fast { form: FastForm::Ballot, simultaneous: 2 },
    Algorithm::Spine,
];

fn algorithms() -> Vec<Algorithm> {
    let mut all = vec![Algorithm::Binary];
    for form in [FastForm::Paper, FastForm::Grid, FastForm::Ballot] {
        all.extend([1, 2, 4].map(|simultaneous| Algorithm::Fast { form, simultaneous }));
    }
    all.push(Algorithm::Spine);
    all
}

/// All rows.
pub(super) fn measure(
    bench: &Bench<'_>,
    sizes: &PaperSizes,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let batch = sizes.fast_batch;
    // Where concurrency is looked at: the paper's larger tree, or the one before the largest.
    let at = sizes.fast.len().saturating_sub(2);
    for (i, &tuples) in sizes.fast.iter().enumerate() {
        let size = size_name(tuples);
        let made = table(bench, tuples)?;
        let Some(case) = place(bench, &made, batch, Residence::Device, ("fast", &size), report)? else {
            continue;
        };
        let parts = ["u32", size.as_str(), &size_name(batch)];
        for algorithm in algorithms() {
            bench.push(report, case.row("fast", &parts, whole(bench, algorithm, Drawn::Present, batch))?)?;
            if i == at && CONCURRENT.contains(&algorithm) {
                for count in (5..).map(|k| 1u64 << k).take_while(|&count| count < batch) {
                    let parts = ["u32", size.as_str(), &size_name(count)];
                    let asked = whole(bench, algorithm, Drawn::Present, count);
                    bench.push(report, case.row("fast", &parts, asked)?)?;
                }
            }
            case.table.release(algorithm);
        }
        let row = GpuRow::new("fast", "cpu", &parts);
        let row = match cpu::pleach(&case, &made, Drawn::Present, batch) {
            Ok(ms) => row.times(batch, &ms).with("threads", rayon::current_num_threads()),
            Err(trouble) => case::failed(row, trouble)?,
        };
        bench.push(report, row)?;
    }
    Ok(())
}
