//! Harmonia's batch update on the CPU: operations a second, by phase, and a rebuild by merging to compare with.
//!
//! `cargo run --release -p pleach-bench --example harmonia --
//! [TUPLES [OPERATIONS [INSERTS% [FILL% [FANOUT [THREADS]]]]]]`, by default 2^24, 4096 * 1024, 5, 69, 64 and 2.
//! Keys are uniform, `(u64, u64)`; other operations are updates of present keys. The ways
//! take turns in each of five repetitions (three beyond 2^25), on a tree that is loaded again each time;
//! medians are printed. Every tuple of each outcome is compared with that of the rebuild.

use pleach_builder::harmonia::{BatchOptions, Change, Counting, HarmoniaTree, Order, Report};
use rayon::prelude::*;
use std::error::Error;
use std::time::{Duration, Instant};

const REPETITIONS: usize = 5;

type Tree = HarmoniaTree<u64, u64>;
type Operation = Change<u64, u64>;

const WAYS: [(&str, Order, Counting); 4] = [
    ("by leaf, a seat a chunk", Order::Leaf, Counting::Chunk),
    ("by leaf, a seat an operation", Order::Leaf, Counting::Operation),
    ("as given, a seat a chunk", Order::Batch, Counting::Chunk),
    ("as given, a seat an operation", Order::Batch, Counting::Operation),
];

/// A bijection of 64-bit words: different numbers give different keys.
fn mix(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

fn number(text: &str) -> Result<usize, Box<dyn Error>> {
    match text.split_once('^') {
        Some((base, power)) => Ok(base.parse::<usize>()?.pow(power.parse()?)),
        None => Ok(text.parse()?),
    }
}

/// The way without Harmonia: sort the batch, merge it with all tuples, load a new tree.
fn rebuild(tree: &Tree, batch: &[Operation], threads: usize) -> Result<Tree, Box<dyn Error>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    Ok(pool.install(|| {
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
        Tree::load_by(len, tree.fanout(), tree.node_keys(), tuple)
    })?)
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

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize, default: &str| number(arguments.get(at).map_or(default, String::as_str));
    let (tuples, operations) = (argument(0, "2^24")?, argument(1, "4194304")?);
    let (inserts, fill) = (argument(2, "5")?, argument(3, "69")?);
    let (fanout, threads) = (argument(4, "64")?, argument(5, "2")?);

    let mut keys: Vec<u64> = (0..tuples as u64).into_par_iter().map(mix).collect();
    keys.par_sort_unstable();
    let node_keys = pleach_format::harmonia::node_keys(fanout as u32, fill as u32);
    let start = Instant::now();
    let tree = Tree::load_by(tuples, fanout as u32, node_keys, |at| (keys[at], keys[at] ^ 7))?;
    let load = start.elapsed().as_secs_f64();
    drop(keys);
    let batch: Vec<Operation> = (0..operations as u64)
        .into_par_iter()
        .map(|at| match mix(at ^ 0x5555_5555_5555) {
            chance if chance % 100 < inserts as u64 => Change::Put(mix(tuples as u64 + at), at),
            chance => Change::Update(mix((chance >> 8) % tuples as u64), at),
        })
        .collect();
    println!(
        "2^{:.1} tuples, fanout {fanout}, {node_keys} keys a node, {:.2} GiB, loaded in {load:.2} s; \
         {operations} operations, {inserts}% inserts, {threads} threads",
        (tuples as f64).log2(),
        tree.bytes() as f64 / f64::from(1 << 30),
    );

    let mut reports: Vec<Vec<(Report, Duration)>> = vec![Vec::new(); WAYS.len()];
    let mut rebuilds = Vec::new();
    let repetitions = if tuples > 1 << 25 { 3 } else { REPETITIONS };
    for repetition in 0..repetitions {
        let start = Instant::now();
        let wanted = rebuild(&tree, &batch, threads)?;
        rebuilds.push(start.elapsed());
        for (way, &(name, order, counting)) in WAYS.iter().enumerate() {
            let mut tree = tree.clone();
            let start = Instant::now();
            let report = tree.apply_with(&batch, &BatchOptions { threads, order, counting })?;
            reports[way].push((report, start.elapsed()));
            if repetition == 0 && !tree.iter().eq(wanted.iter()) {
                return Err(format!("{name}: other tuples than a rebuild").into());
            }
        }
    }

    println!(
        "{:<32} {:>9} {:>9} {:>9} {:>9} {:>9} {:>12}",
        "ms", "query", "group", "update", "movement", "all", "operations/s"
    );
    for ((name, ..), reports) in WAYS.iter().zip(&reports) {
        let of = |time: fn(&(Report, Duration)) -> Duration| median(reports.iter().map(time).collect());
        let all = of(|(_, all)| *all);
        println!(
            "{name:<32} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {all:>9.1} {:>10.1} M",
            of(|(report, _)| report.query),
            of(|(report, _)| report.group),
            of(|(report, _)| report.update),
            of(|(report, _)| report.movement),
            operations as f64 / all / 1e3,
        );
    }
    let all = median(rebuilds);
    println!("{:<32} {:>49.1} {:>10.1} M", "rebuild by merging", all, operations as f64 / all / 1e3);
    let Report { inserted, updated, splits, merges, nodes_moved, .. } = reports[0][0].0;
    println!(
        "{inserted} inserted, {updated} updated, {splits} splits, {merges} merges, {nodes_moved} nodes moved"
    );
    Ok(())
}
