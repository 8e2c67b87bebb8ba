//! Ranks of random numbers, Pleach beside the static search tree: the yardstick of batches.
//!
//! The tree holds bare keys of four bytes in anonymous memory, is rebuilt by each process, and answers with ranks
//! alone; Pleach answers the same question (`lower_bound_batch`) from a mapped file of the same keys, without
//! values. Numbers are drawn from the whole range, so that most are not keys. Both take turns, in calls of
//! 16,384 queries on one thread, and all answers are compared with each other; some ranks are checked by
//! binary search as well.

use crate::options::{BenchOptions, Measure, expect_equal, label};
use crate::report::{Report, Row};
use crate::{BenchError, data, machine};
use pleach::{Index, Key, KeyType, Value};
use pleach_builder::BuildOptions;
use pleach_peers::{Number, SearchTree};
use std::time::Instant;

/// Queries of one repetition, and of a call.
const QUERIES: usize = 1 << 22;
const BATCH: usize = 1 << 14;

/// Measures keys of four bytes at the sizes that `options` ask for.
///
/// # Errors
/// [`BenchError`]: whatever keeps a table from being built or searched, and a wrong answer.
pub fn run(options: &BenchOptions<'_>) -> Result<Report, BenchError> {
    if options.key_types.iter().any(|&key_type| key_type != KeyType::U32) {
        return Err(BenchError::Options("ranks are measured for keys of type u32 only".to_owned()));
    }
    options.each(&RankTimes)
}

struct RankTimes;

impl Measure for RankTimes {
    fn data_set<T: Number + Key + Value>(
        &self,
        options: &BenchOptions<'_>,
        count: u64,
        report: &mut Report,
    ) -> Result<(), BenchError> {
        let label = label::<T>(count);
        options.told.step(&format!("{label}: building"))?;
        let tuples: Vec<(T, ())> =
            data::tuples(count).into_iter().map(|(key, _): (T, T)| (key, ())).collect();
        let folder = crate::folder(options.dir.as_deref())?;
        let path = folder.path().join("ranks.pleach");
        let start = Instant::now();
        let summary = pleach_builder::build_slice(&tuples, &path, &BuildOptions::default())?;
        let build_s = start.elapsed().as_secs_f64();
        let keys: Vec<u32> = tuples.iter().map(|tuple| tuple.0.widen() as u32).collect();
        drop(tuples);
        let (tree, tree_time) = SearchTree::new(&keys)?;

        let queries: Vec<T> =
            (1..=QUERIES as u64).map(|i| T::narrow(data::mix64(i ^ 0xABCD) >> 32)).collect();
        let narrow: Vec<u32> = queries.iter().map(|query| query.widen() as u32).collect();
        let (mut ranks, mut tree_ranks) = (vec![0u64; QUERIES], vec![0u32; QUERIES]);
        let index = Index::open(&path)?;
        let view = index.typed::<T, ()>()?;
        let (mut pleach, mut search_tree) = (Vec::new(), Vec::new());
        for repetition in 0..=options.repetitions {
            options.told.step(&format!("{label}: repetition {repetition} of {}", options.repetitions))?;
            ranks.fill(u64::MAX);
            let start = Instant::now();
            for (queries, ranks) in queries.chunks(BATCH).zip(ranks.chunks_mut(BATCH)) {
                view.lower_bound_batch(queries, ranks)?;
            }
            let pleach_ns = start.elapsed().as_nanos() as f64 / QUERIES as f64;
            tree_ranks.fill(u32::MAX);
            let start = Instant::now();
            for (queries, ranks) in narrow.chunks(BATCH).zip(tree_ranks.chunks_mut(BATCH)) {
                tree.ranks(queries, ranks);
            }
            let tree_ns = start.elapsed().as_nanos() as f64 / QUERIES as f64;
            for (at, (&rank, &other)) in ranks.iter().zip(&tree_ranks).enumerate() {
                let key = || format!("rank of {}", narrow[at]);
                if rank != u64::from(other) || at % 1024 == 0 {
                    let expected = keys.partition_point(|&key| key < narrow[at]) as u64;
                    expect_equal("pleach", &key(), QUERIES, rank, expected)?;
                    expect_equal("search-tree", &key(), QUERIES, u64::from(other), expected)?;
                }
            }
            // The first turn fills the caches.
            if repetition > 0 {
                pleach.push(pleach_ns);
                search_tree.push(tree_ns);
            }
        }
        let types = (<T as Key>::TYPE, pleach::ValueType::None);
        let huge_share =
            machine::huge_mapped_bytes(&path).map(|huge| huge as f64 / summary.file_bytes as f64);
        let per_tuple = |bytes: u64| bytes as f64 / summary.tuples as f64;
        let row = |engine| Row { batch: BATCH, ..Row::new(engine, "lower-bound", types, summary.tuples) };
        let bytes_per_tuple = per_tuple(summary.file_bytes);
        report.rows.push(Row {
            build_s,
            bytes_per_tuple,
            huge_share,
            ..row("pleach").timed(QUERIES, &pleach)
        });
        let shape = tree.shape();
        report.rows.push(Row {
            build_s: tree_time.as_secs_f64(),
            bytes_per_tuple: per_tuple(tree.bytes()),
            detail: Some(format!("{} bits, {} levels", shape.bits, shape.levels)),
            ..row("search-tree").timed(QUERIES, &search_tree)
        });
        Ok(())
    }
}
