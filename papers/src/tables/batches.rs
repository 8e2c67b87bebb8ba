//! Harmonia's batch update by phase, and a rebuild by merging to compare with.
//!
//! Keys are uniform, `(u64, u64)`; operations that are not inserts are updates of keys that exist. The ways
//! take turns in each of five repetitions (three beyond 2^25), on a tree that was loaded anew each time;
//! numbers are medians. Every tuple of each outcome is compared with that of the rebuild.

use crate::harmonia::{BatchOptions, Change, Counting, HarmoniaError, HarmoniaTree, Order};
use crate::report::{Cell, Table, median};
use pleach_bench::BenchError;
use pleach_bench::data::mix64;
use rayon::prelude::*;
use std::time::{Duration, Instant};

type Tree = HarmoniaTree<u64, u64>;
type Operation = Change<u64, u64>;

const WAYS: [(&str, Order, Counting); 4] = [
    ("by leaf, a seat a chunk", Order::Leaf, Counting::Chunk),
    ("by leaf, a seat an operation", Order::Leaf, Counting::Operation),
    ("as given, a seat a chunk", Order::Batch, Counting::Chunk),
    ("as given, a seat an operation", Order::Batch, Counting::Operation),
];

/// A tree and a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchSizes {
    /// Tuples of the tree.
    pub tuples: usize,
    /// Operations of the batch.
    pub operations: usize,
    /// Percent of the operations that are inserts.
    pub inserts: u64,
    /// Percent of the places of a node that are filled when the tree is loaded.
    pub fill: u32,
    /// Maximum number of children of a node.
    pub fanout: u32,
    /// Number of threads.
    pub threads: usize,
}

fn refused(error: HarmoniaError) -> BenchError {
    BenchError::Options(error.to_string())
}

/// What anyone would do without Harmonia: sort the batch, merge it with all tuples, load a new tree.
fn rebuild(tree: &Tree, batch: &[Operation], threads: usize) -> Result<Tree, BenchError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    pool.install(|| {
        let mut order: Vec<(u64, u32)> =
            batch.par_iter().enumerate().map(|(at, change)| (change.key(), at as u32)).collect();
        order.par_sort_unstable();
        let leaves: Vec<(&[u64], &[u64])> = tree.leaves().collect();
        let part = leaves.len().div_ceil(threads * 4).max(1);
        let parts: Vec<&[(&[u64], &[u64])]> = leaves.chunks(part).collect();
        let first = |part: usize| match parts.get(part) {
            Some(leaves) if part > 0 => order.partition_point(|&(key, _)| key < leaves[0].0[0]),
            Some(_) => 0,
            None => order.len(),
        };
        let merged: Vec<Vec<(u64, u64)>> = (0..parts.len().max(1))
            .into_par_iter()
            .map(|at| {
                merge(parts.get(at).copied().unwrap_or_default(), &order[first(at)..first(at + 1)], batch)
            })
            .collect();
        let mut starts = vec![0];
        starts.extend(merged.iter().scan(0, |sum, part| {
            *sum += part.len();
            Some(*sum)
        }));
        let len = starts[merged.len()];
        let tuple = |at: usize| {
            let part = starts.partition_point(|&start| start <= at) - 1;
            merged[part][at - starts[part]]
        };
        Tree::load_by(len, tree.fanout(), tree.node_keys(), tuple).map_err(refused)
    })
}

fn merge(leaves: &[(&[u64], &[u64])], order: &[(u64, u32)], batch: &[Operation]) -> Vec<(u64, u64)> {
    let mut merged = Vec::with_capacity(leaves.iter().map(|leaf| leaf.0.len()).sum::<usize>() + order.len());
    let mut order = order.chunk_by(|left, right| left.0 == right.0).peekable();
    let after = |equal: &[(u64, u32)], value: Option<u64>| {
        equal.iter().fold(value, |value, &(_, at)| match batch[at as usize] {
            Change::Put(_, value) => Some(value),
            Change::Update(_, new) => value.map(|_| new),
            Change::Delete(_) => None,
        })
    };
    for (keys, values) in leaves {
        for (&key, &value) in keys.iter().zip(*values) {
            while let Some(equal) = order.next_if(|equal| equal[0].0 < key) {
                merged.extend(after(equal, None).map(|value| (equal[0].0, value)));
            }
            let value = match order.next_if(|equal| equal[0].0 == key) {
                Some(equal) => after(equal, Some(value)),
                None => Some(value),
            };
            merged.extend(value.map(|value| (key, value)));
        }
    }
    for equal in order {
        merged.extend(after(equal, None).map(|value| (equal[0].0, value)));
    }
    merged
}

/// Measures the phases of every way to apply the batch, in milliseconds.
///
/// # Errors
/// [`BenchError`] if the tree cannot be loaded, the threads cannot be started, or for a wrong answer.
pub fn run(sizes: &BatchSizes) -> Result<Table, BenchError> {
    let BatchSizes { tuples, operations, inserts, fill, fanout, threads } = *sizes;
    let mut keys: Vec<u64> = (0..tuples as u64).into_par_iter().map(mix64).collect();
    keys.par_sort_unstable();
    let node_keys = pleach_format::harmonia::node_keys(fanout, fill);
    let start = Instant::now();
    let tree = Tree::load_by(tuples, fanout, node_keys, |at| (keys[at], keys[at] ^ 7)).map_err(refused)?;
    let load_s = start.elapsed().as_secs_f64();
    drop(keys);
    let batch: Vec<Operation> = (0..operations as u64)
        .into_par_iter()
        .map(|at| match mix64(at ^ 0x5555_5555_5555) {
            chance if chance % 100 < inserts => Change::Put(mix64(tuples as u64 + at), at),
            chance => Change::Update(mix64((chance >> 8) % tuples as u64), at),
        })
        .collect();
    let loaded = vec![
        ("tuples", tuples as f64),
        ("fanout", f64::from(fanout)),
        ("node_keys", f64::from(node_keys)),
        ("bytes", tree.bytes() as f64),
        ("load_s", load_s),
        ("operations", operations as f64),
        ("inserts_percent", inserts as f64),
        ("threads", threads as f64),
    ];
    let mut table = Table {
        what: "harmonia-batch",
        cells: vec![Cell { name: "tree and batch".to_owned(), numbers: loaded }],
    };

    let mut reports = vec![Vec::new(); WAYS.len()];
    let mut rebuilds = Vec::new();
    let repetitions = if tuples > 1 << 25 { 3 } else { 5 };
    for repetition in 0..repetitions {
        let start = Instant::now();
        let wanted = rebuild(&tree, &batch, threads)?;
        rebuilds.push(start.elapsed());
        for (way, &(name, order, counting)) in WAYS.iter().enumerate() {
            let mut tree = tree.clone();
            let start = Instant::now();
            let options = BatchOptions { threads, order, counting };
            let report = tree.apply_with(&batch, &options).map_err(refused)?;
            reports[way].push((report, start.elapsed()));
            if repetition == 0 && !tree.iter().eq(wanted.iter()) {
                return Err(BenchError::Wrong {
                    engine: name.to_owned(),
                    query: 0,
                    queries: operations,
                    key: "any".to_owned(),
                    found: "other tuples".to_owned(),
                    expected: "those of a rebuild".to_owned(),
                });
            }
        }
    }

    let ms = |times: &mut dyn Iterator<Item = Duration>| {
        median(&mut times.map(|time| time.as_secs_f64() * 1e3).collect::<Vec<_>>())
    };
    for ((name, ..), reports) in WAYS.iter().zip(&reports) {
        let all = ms(&mut reports.iter().map(|report| report.1));
        let (first, _) = reports[0];
        let numbers = vec![
            ("query_ms", ms(&mut reports.iter().map(|(report, _)| report.query))),
            ("group_ms", ms(&mut reports.iter().map(|(report, _)| report.group))),
            ("update_ms", ms(&mut reports.iter().map(|(report, _)| report.update))),
            ("movement_ms", ms(&mut reports.iter().map(|(report, _)| report.movement))),
            ("all_ms", all),
            ("million_per_s", operations as f64 / all / 1e3),
            ("inserted", first.inserted as f64),
            ("updated", first.updated as f64),
            ("splits", first.splits as f64),
            ("merges", first.merges as f64),
            ("nodes_moved", first.nodes_moved as f64),
        ];
        table.cells.push(Cell { name: (*name).to_owned(), numbers });
    }
    let all = ms(&mut rebuilds.into_iter());
    let numbers = vec![("all_ms", all), ("million_per_s", operations as f64 / all / 1e3)];
    table.cells.push(Cell { name: "rebuild by merging".to_owned(), numbers });
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way has the outcome of a rebuild: another one is an error.
    #[test]
    fn every_way_is_measured() {
        let sizes =
            BatchSizes { tuples: 3000, operations: 1000, inserts: 30, fill: 100, fanout: 8, threads: 2 };
        let table = run(&sizes).expect("a table");
        assert_eq!(table.cells.len(), WAYS.len() + 2);
        let inserted = |cell: &Cell| cell.numbers.iter().find(|number| number.0 == "inserted").map(|it| it.1);
        let inserted: Vec<f64> = table.cells.iter().filter_map(inserted).collect();
        assert!(inserted.len() == WAYS.len() && inserted.iter().all(|&count| count > 200.0), "{inserted:?}");
    }
}
