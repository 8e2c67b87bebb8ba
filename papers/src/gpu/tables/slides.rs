//! The slides on P-ary search (Kaldewey): throughput, response time and scalability with the number of threads, for a
//! list of 4-byte keys and for B+trees whose nodes have a key for each thread.
//!
//! Theirs are 2^27 keys (512 MB) and 64K queries. A row has the time of a batch: of 64K queries that is throughput, of
//! one response. Threads P double from 4 to 1024. Caches are as the batch before has left them.

use super::{PaperSizes, place, table, whole};
use crate::gpu::search::{BinaryForm, PAryForm, binary, pary, pary_tree};
use pleach_bench::BenchError;
use pleach_bench::gpu::measure::Drawn;
use pleach_bench::gpu::tables::size_name;
use pleach_bench::gpu::{Bench, GpuReport};
use pleach_gpu::{Algorithm, Residence};

const THREADS: [u16; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];

fn algorithms() -> Vec<Algorithm> {
    let mut all = vec![Algorithm::Binary, binary(BinaryForm::Top), Algorithm::Spine];
    for threads in THREADS {
        all.push(pary(threads, PAryForm::List));
        if threads <= 32 {
            all.push(pary(threads, PAryForm::Ballot));
        }
        all.push(pary_tree(threads, threads + 1));
    }
    all
}

/// All rows.
pub(super) fn measure(
    bench: &Bench<'_>,
    sizes: &PaperSizes,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let (tuples, batches) = (sizes.slides, &sizes.slides_batches);
    let size = size_name(tuples);
    let made = table(bench, tuples)?;
    let most = batches.last().copied().unwrap_or(1);
    let Some(case) = place(bench, &made, most, Residence::Device, ("slides", &size), report)? else {
        return Ok(());
    };
    for algorithm in algorithms() {
        for &batch in batches {
            let parts = ["u32", size.as_str(), &size_name(batch)];
            let row = case.row("slides", &parts, whole(bench, algorithm, Drawn::Present, batch))?;
            let us = row.get("ms").map(|ms| ms * 1e3);
            bench.push(report, if let Some(us) = us { row.number("us", us) } else { row })?;
        }
        case.table.release(algorithm);
    }
    Ok(())
}
