//! The B+tree of the paper on an APU (Daga and Nutter, 2012): Figures 5 to 8, and the smallest batch that matches the
//! CPU.
//!
//! 4M keys of 4 bytes, orders 4 to 128, batches of 16K to 128K queries, sorted or not, the tree on the device or in
//! pinned memory, in the paper's launch and in one that fills the device. The rival is the same tree on all cores of
//! this machine (AVX2 where it is there), and Pleach's own search. Sorting is timed by itself. A row's name ends in
//! order and place: `apu/btree-16-paper/u32/2^22/2^14/sorted/device`. Figure 8 is the tree of 110M keys that stays with
//! the host, and is searched from there.

use super::{PaperSizes, place, table, whole};
use pleach_bench::BenchError;
use pleach_bench::gpu::case::{Case, Trouble, failed};
use pleach_bench::gpu::measure::Drawn;
use pleach_bench::gpu::tables::{Made, size_name, value};
use pleach_bench::gpu::{Bench, GpuReport, GpuRow, cpu, engines};
use pleach_bench::report::spread;
use pleach_gpu::btree::Tree;
use pleach_gpu::{Algorithm, BtreeForm, Residence};
use rayon::prelude::*;
use rdst::RadixSort;
use std::time::Instant;
use zerocopy::IntoBytes;

const ORDERS: [u16; 6] = [4, 8, 16, 32, 64, 128];
/// Orders whose smallest batch is looked for: the best of accelerators and of CPUs, in the paper.
const MATCHED: [u16; 2] = [16, 64];
const KINDS: [(Drawn, &str); 2] = [(Drawn::Present, "random"), (Drawn::Ascending, "sorted")];

/// All rows.
pub(super) fn measure(
    bench: &Bench<'_>,
    sizes: &PaperSizes,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let most = sizes.apu_batches.iter().chain(&sizes.apu_more).copied().max().unwrap_or(1);
    let made = table(bench, sizes.apu)?;
    let size = size_name(sizes.apu);
    let Some(case) = place(bench, &made, most, Residence::Device, ("apu", &size), report)? else {
        return Ok(());
    };
    rivals(&case, &made, (sizes, &size), report)?;
    let all: Vec<u64> = sizes.apu_batches.iter().chain(&sizes.apu_more).copied().collect();
    on_device(&case, &ORDERS, &all, (&size, "device"), report)?;
    for order in MATCHED {
        bench.push(report, smallest(&case, &made, order, (sizes, &size))?)?;
    }
    drop(case);
    let most = sizes.apu_batches.last().copied().unwrap_or(1);
    if let Some(case) = place(bench, &made, most, Residence::Pinned, ("apu", &size), report)? {
        on_device(&case, &ORDERS, &sizes.apu_batches, (&size, "pinned"), report)?;
    }
    let size = size_name(sizes.apu_pinned);
    let made = table(bench, sizes.apu_pinned)?;
    if let Some(case) = place(bench, &made, most, Residence::Pinned, ("apu", &size), report)? {
        on_device(&case, &[16], &[most], (&size, "pinned"), report)?;
    }
    Ok(())
}

/// Both launches of the tree, and ours.
fn on_device(
    case: &Case<'_, '_>,
    orders: &[u16],
    batches: &[u64],
    (size, place): (&str, &str),
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let bench = case.bench;
    let trees = orders
        .iter()
        .flat_map(|&order| [BtreeForm::Paper, BtreeForm::Grid].map(|form| Algorithm::Btree { order, form }));
    for algorithm in trees.chain([Algorithm::Spine]) {
        for &batch in batches {
            for (kind, order) in KINDS {
                let parts = ["u32", size, &size_name(batch), order, place];
                bench.push(report, case.row("apu", &parts, whole(bench, algorithm, kind, batch))?)?;
            }
        }
        case.table.release(algorithm);
    }
    Ok(())
}

/// The CPU's rows, and what sorting takes.
fn rivals(
    case: &Case<'_, '_>,
    made: &Made<u32>,
    (sizes, size): (&PaperSizes, &str),
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let bench = case.bench;
    let trees: Vec<(u16, CpuTree)> =
        ORDERS.iter().filter_map(|&order| Some((order, CpuTree::new(&made.keys, order)?))).collect();
    for &batch in sizes.apu_batches.iter().chain(&sizes.apu_more) {
        let row = GpuRow::new("apu", "cpu-sort", &["u32", size, &size_name(batch)]);
        let row = match sorting(case, batch) {
            Ok(ms) => row.times(batch, &ms),
            Err(trouble) => failed(row, trouble)?,
        };
        bench.push(report, row)?;
        for (kind, order) in KINDS {
            let parts = ["u32", size, &size_name(batch), order];
            let mut push = |name: &str, found: Result<Vec<f64>, Trouble>| {
                let row = GpuRow::new("apu", name, &parts);
                let row = match found {
                    Ok(ms) => row.times(batch, &ms).with("threads", rayon::current_num_threads()),
                    Err(trouble) => failed(row, trouble)?,
                };
                bench.push(report, row)
            };
            push("cpu", cpu::pleach(case, made, kind, batch))?;
            for (order, tree) in &trees {
                push(&format!("cpu-btree-{order}"), tree.times(case, kind, batch))?;
            }
        }
    }
    Ok(())
}

/// Milliseconds in which the CPU sorts batches by radix on all cores.
fn sorting(case: &Case<'_, '_>, batch: u64) -> Result<Vec<f64>, Trouble> {
    let mut keys = vec![0u32; batch as usize];
    let mut all = Vec::new();
    for seed in 0..=case.bench.options.repetitions as u64 {
        let drawn = case.draw(Drawn::Present, batch, seed)?;
        drawn.queries.copy_to_host(&case.bench.stream, keys.as_mut_bytes())?;
        let start = Instant::now();
        keys.radix_sort_unstable();
        if seed > 0 {
            all.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(all)
}

/// The smallest batch, a power of two, that the paper's launch answers as fast as the CPU does with the same tree.
fn smallest(
    case: &Case<'_, '_>,
    made: &Made<u32>,
    order: u16,
    (sizes, size): (&PaperSizes, &str),
) -> Result<GpuRow, BenchError> {
    let bench = case.bench;
    let row = GpuRow::new("apu", &format!("matched-{order}"), &["u32", size]);
    let algorithm = Algorithm::Btree { order, form: BtreeForm::Paper };
    let most = sizes.apu_batches.last().copied().unwrap_or(1);
    let Some(tree) = CpuTree::new(&made.keys, order) else { return Ok(row) };
    let find = || {
        for batch in (0..).map(|k| 1u64 << k).take_while(|&batch| batch <= most) {
            let asked = whole(bench, algorithm, Drawn::Ascending, batch);
            let gpu = spread(&case.time(asked)?.ms).0;
            let cpu = spread(&tree.times(case, Drawn::Ascending, batch)?).0;
            if gpu <= cpu {
                return Ok(Some((batch, gpu * 1e3, cpu * 1e3)));
            }
        }
        Ok::<_, Trouble>(None)
    };
    match find() {
        Ok(Some((batch, gpu, cpu))) => {
            let row = row.with("batch", batch).number("us", gpu).number("cpu_us", cpu);
            Ok(row.with("form", engines::label(algorithm)))
        }
        Ok(None) => Ok(row.with("error", format!("not up to {most} queries"))),
        Err(trouble) => failed(row, trouble),
    }
}

/// The tree on the CPU, with its values.
struct CpuTree {
    tree: Tree<u32>,
    values: Vec<u32>,
}

/// Queries of a task.
const PIECE: usize = 1 << 10;

impl CpuTree {
    fn new(keys: &[u32], order: u16) -> Option<Self> {
        let values = keys.par_iter().map(|&key| value(key)).collect();
        Some(Self { tree: Tree::new(keys, order.into())?, values })
    }

    fn times(&self, case: &Case<'_, '_>, kind: Drawn, batch: u64) -> Result<Vec<f64>, Trouble> {
        cpu::times(case, kind, batch, |keys: &[u32], values, present| {
            let pieces = keys.par_chunks(PIECE).zip(values.par_chunks_mut(PIECE));
            pieces.zip(present.par_chunks_mut(PIECE / 64)).for_each(|((keys, values), present)| {
                present.fill(0);
                for (at, (&key, value)) in keys.iter().zip(values).enumerate() {
                    let place = self.tree.search(key);
                    *value = if place.found { self.values[place.rank as usize] } else { 0 };
                    present[at / 64] |= u64::from(place.found) << (at % 64);
                }
            });
            Ok(())
        })
    }
}
