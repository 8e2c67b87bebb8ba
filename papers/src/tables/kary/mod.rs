//! K-ary search as in the P-ary slides: throughput of many queries, response time of one and of batches
//! of all sizes, and scaling with threads, over sorted keys up to 512 MB.
//!
//! Rows are binary searches, k-ary search in the list and in the linearised tree for every vector of this
//! CPU, and a FAST tree for orientation. They take turns inside each repetition and never ask the same
//! queries one after the other, so that no row finds the lines that the one before it brought. Half of
//! the queries are present. Cells are medians; every answer is compared.

mod engines;

pub use engines::BenchWord;

use crate::report::{Cell, Table, median};
use engines::{Data, Named, Search};
use pleach_bench::data::{below, mix64};
use pleach_bench::peers;
use rayon::prelude::*;
use std::hint::black_box;
use std::time::Instant;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// 64K queries in one call, one thread, by the number of keys.
    Throughput,
    /// One query after the other, each known only when the one before is answered, by the number of keys;
    /// then batches of 1 to 64K queries: from the call to the last answer.
    Response,
    /// 64K queries by the number of threads.
    Scaling,
}

/// Queries of a call, as in the slides.
const QUERIES: usize = 1 << 16;

/// Queries of a chain, each of which waits for the one before.
const CHAIN: usize = 1 << 12;

/// Queries that a thread answers before it asks for more.
const PIECE: usize = 1 << 11;

/// Queries and their ranks.
struct Asked<W> {
    queries: Vec<W>,
    ranks: Vec<u64>,
}

impl<W: BenchWord> Asked<W> {
    fn new(keys: &[W], set: u64) -> Self {
        let draw = |i: u64| {
            let mixed = mix64(set << 32 | i);
            let present = keys.get(below(mixed, keys.len() as u64) as usize).copied();
            let absent = <W as peers::Number>::narrow(mix64(mixed));
            if i.is_multiple_of(2) { present.unwrap_or(absent) } else { absent }
        };
        let queries: Vec<W> = (1..=QUERIES as u64).map(draw).collect();
        let ranks = queries.par_iter().map(|query| keys.partition_point(|key| key < query) as u64).collect();
        Self { queries, ranks }
    }

    /// Asks them all in one call; seconds.
    fn time(&self, name: &str, search: &dyn Search<W>, ranks: &mut [u64]) -> f64 {
        ranks.fill(u64::MAX);
        let start = Instant::now();
        search.many(&self.queries, ranks);
        let time = start.elapsed().as_secs_f64();
        assert_eq!(ranks, self.ranks, "{name}");
        time
    }

    /// Asks some, each after the answer to the one before; seconds a query.
    fn chain(&self, name: &str, search: &dyn Search<W>, ranks: &mut [u64]) -> f64 {
        let ranks = &mut ranks[..CHAIN];
        // Ranks are below 2^32, so this adds 0, but it is known only with the rank.
        let mut wait = 0;
        let start = Instant::now();
        for (at, rank) in ranks.iter_mut().enumerate() {
            *rank = search.one(self.queries[at + wait]);
            wait = (black_box(*rank) >> 32) as usize;
        }
        let time = start.elapsed().as_secs_f64();
        assert_eq!(ranks, &self.ranks[..CHAIN], "{name}");
        time / CHAIN as f64
    }

    /// Asks them in batches; median seconds of a batch.
    fn batches(&self, name: &str, search: &dyn Search<W>, batch: usize, ranks: &mut [u64]) -> f64 {
        // Small batches are many: a part of them is enough.
        let asked = QUERIES.min(batch * CHAIN);
        let mut times = Vec::with_capacity(asked / batch);
        for (queries, ranks) in self.queries[..asked].chunks(batch).zip(ranks.chunks_mut(batch)) {
            let start = Instant::now();
            search.many(queries, ranks);
            times.push(start.elapsed().as_secs_f64());
        }
        assert_eq!(ranks[..asked], self.ranks[..asked], "{name}");
        median(&mut times)
    }

    /// Asks them all on the threads of the current pool; seconds.
    fn threads(&self, name: &str, search: &dyn Search<W>, ranks: &mut [u64]) -> f64 {
        ranks.fill(u64::MAX);
        let start = Instant::now();
        let pieces = self.queries.par_chunks(PIECE).zip(ranks.par_chunks_mut(PIECE));
        pieces.for_each(|(queries, ranks)| search.many(queries, ranks));
        let time = start.elapsed().as_secs_f64();
        assert_eq!(ranks, self.ranks, "{name}");
        time
    }
}

/// Lets every search take its turn in each repetition, over sets of queries that differ from turn to turn;
/// gives the medians and minima of `measure` by search. The first repetition is not counted.
fn turns<W: BenchWord>(
    searches: &[Named<'_, W>],
    sets: &[Asked<W>],
    repetitions: usize,
    measure: impl Fn(&Asked<W>, &str, &dyn Search<W>, &mut [u64]) -> f64,
) -> Vec<(f64, f64)> {
    let mut ranks = vec![0; QUERIES];
    let mut times = vec![Vec::new(); searches.len()];
    for repetition in 0..=repetitions {
        for (number, (name, search)) in searches.iter().enumerate() {
            let Some(set) = sets.get((number + repetition) % sets.len().max(1)) else { continue };
            let time = measure(set, name, search.as_ref(), &mut ranks);
            if repetition > 0 {
                times[number].push(time);
            }
        }
    }
    let cell = |times: &mut Vec<f64>| (median(times), times.first().copied().unwrap_or(0.0));
    times.iter_mut().map(cell).collect()
}

/// All numbers of threads, each with the medians by search: seconds, and how many times faster than one
/// thread. Numbers of threads take turns inside each turn of a search, so that what else happens on the
/// machine hits all of them alike.
fn scaling<W: BenchWord>(
    searches: &[Named<'_, W>],
    sets: &[Asked<W>],
    repetitions: usize,
    threads: usize,
) -> Vec<(usize, Vec<(f64, f64)>)> {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let pools: Vec<rayon::ThreadPool> = (1..=threads).map(pool).collect();
    let mut ranks = vec![0; QUERIES];
    let mut times = vec![vec![Vec::new(); searches.len()]; pools.len()];
    for repetition in 0..=repetitions {
        for (number, (name, search)) in searches.iter().enumerate() {
            for (pool, times) in pools.iter().zip(&mut times) {
                let set = &sets[(number + repetition + pool.current_num_threads()) % sets.len()];
                let time = pool.install(|| set.threads(name, search.as_ref(), &mut ranks));
                if repetition > 0 {
                    times[number].push(time);
                }
            }
        }
    }
    let medians: Vec<Vec<f64>> =
        times.iter_mut().map(|times| times.iter_mut().map(|times| median(times)).collect()).collect();
    let alone = medians.first().cloned().unwrap_or_default();
    let against =
        |medians: Vec<f64>| medians.into_iter().zip(&alone).map(|(time, one)| (time, one / time)).collect();
    (1..).zip(medians.into_iter().map(against)).collect()
}

/// The sizes that are measured, up to `2^exponent` keys.
fn exponents(exponent: u32) -> Vec<u32> {
    let mut sizes: Vec<u32> = [16, 20, 24].into_iter().filter(|&size| size < exponent).collect();
    sizes.push(exponent);
    sizes
}

/// Measures over `2^exponent` keys, `exponent <= 31`, and smaller tables.
///
/// # Panics
/// If an answer is wrong, or memory or threads cannot be had.
#[must_use]
pub fn run<W: BenchWord>(what: What, exponent: u32, repetitions: usize) -> Table {
    let mut cells = Vec::new();
    let sizes = if what == What::Scaling { vec![exponent] } else { exponents(exponent) };
    for &size in &sizes {
        let data = Data::<W>::new(1 << size);
        let searches = data.searches(true);
        let sets: Vec<Asked<W>> =
            (0..searches.len().max(2) as u64).map(|set| Asked::new(data.keys.all(), set)).collect();
        let tuples = ("tuples", f64::from(size).exp2());
        match what {
            What::Throughput => {
                let found = turns(&searches, &sets, repetitions, Asked::time);
                let base = found.first().map_or(0.0, |first| first.0);
                for ((name, _), (time, least)) in searches.iter().zip(found) {
                    let ns = |seconds: f64| seconds * 1e9 / QUERIES as f64;
                    let numbers = vec![
                        ("ns_per_query", ns(time)),
                        ("ns_min", ns(least)),
                        ("million_per_s", 1e3 / ns(time)),
                        ("speedup", base / time),
                        tuples,
                    ];
                    cells.push(Cell { name: format!("2^{size}: {name}"), numbers });
                }
            }
            What::Response => {
                // One query knows no turns. Chains are short: more of them make the median firm.
                let alone = data.searches(false);
                let found = turns(&alone, &sets, 5 * repetitions, Asked::chain);
                let base = found.first().map_or(0.0, |first| first.0);
                for ((name, _), (time, least)) in alone.iter().zip(found) {
                    let numbers = vec![
                        ("response_ns", time * 1e9),
                        ("ns_min", least * 1e9),
                        ("speedup", base / time),
                        tuples,
                    ];
                    cells.push(Cell { name: format!("2^{size}: {name}"), numbers });
                }
                if size != exponent {
                    continue;
                }
                for batch in [1, 16, 256, 4096, QUERIES] {
                    let found = turns(&searches, &sets, repetitions, |set, name, search, ranks| {
                        set.batches(name, search, batch, ranks)
                    });
                    for ((name, _), (time, least)) in searches.iter().zip(found) {
                        let numbers = vec![
                            ("response_us", time * 1e6),
                            ("us_min", least * 1e6),
                            ("us_per_query", time * 1e6 / batch as f64),
                            ("batch", batch as f64),
                            tuples,
                        ];
                        cells.push(Cell { name: format!("2^{size}, batch {batch}: {name}"), numbers });
                    }
                }
            }
            What::Scaling => {
                let all = std::thread::available_parallelism().map_or(1, usize::from);
                for (threads, found) in scaling(&searches, &sets, repetitions, all) {
                    for ((name, _), (time, speedup)) in searches.iter().zip(found) {
                        let numbers = vec![
                            ("million_per_s", QUERIES as f64 / time / 1e6),
                            ("speedup", speedup),
                            ("threads", threads as f64),
                            tuples,
                        ];
                        let plural = if threads == 1 { "" } else { "s" };
                        cells.push(Cell { name: format!("{threads} thread{plural}: {name}"), numbers });
                    }
                }
            }
        }
    }
    let what = match what {
        What::Throughput => "kary-throughput",
        What::Response => "kary-response",
        What::Scaling => "kary-scaling",
    };
    Table { what, cells }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every search answers in every mode: a wrong rank panics.
    #[test]
    fn every_search_answers() {
        for what in [What::Throughput, What::Response, What::Scaling] {
            for table in [run::<u32>(what, 9, 1), run::<u64>(what, 10, 1)] {
                assert!(table.cells.len() >= 9, "{what:?}");
                let numbers = table.cells.iter().flat_map(|cell| &cell.numbers);
                assert!(numbers.map(|number| number.1).all(|number| number > 0.0), "{what:?}");
                assert_eq!(table.to_json()["rows"][0]["engine"], "kary");
            }
        }
    }
}
