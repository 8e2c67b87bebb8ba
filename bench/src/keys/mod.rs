//! Look-ups of keys as tables have them: by named rules, or of a user's own file.
//!
//! Random numbers flatter every engine whose speed depends on where keys lie, and no others. So this benchmark asks
//! the same of keys in runs, blocks, bursts and heavy tails, and compares with the best rivals at each: hash tables
//! that prefetch, whose speed does not depend on the keys. Absent keys are drawn near
//! present ones, where real misses are.

mod distributions;
mod file;

pub use distributions::Distribution;
pub use file::words;

use crate::data::{self, Queries, below, mix64};
use crate::lookup::{self, Case, LookupOptions};
use crate::report::Report;
use crate::{BenchError, Machine};
use pleach_peers::{Engine, Number};

/// Engines that are measured with all keys.
const RIVALS: [Engine; 3] = [Engine::Hashbrown, Engine::Probing, Engine::PerfectHash];
/// Most tuples that LMDB is measured with, unless all engines are asked for at all sizes.
const STORE_TUPLES_MAX: u64 = 1 << 24;

/// Options of the measurement.
pub struct KeysOptions<'a> {
    /// Sizes, threads, batches, kinds of queries; its key types are not used.
    pub lookup: LookupOptions<'a>,
    /// Rules of the keys.
    pub distributions: Vec<Distribution>,
    /// Keys of a user's own and their name, in place of those by rules.
    pub own: Option<(String, Vec<u64>)>,
}

impl<'a> KeysOptions<'a> {
    /// All rules at 2^20, 2^24 and 2^26 tuples (with `quick` at 2^20), hits, half misses and sorted hits.
    #[must_use]
    pub fn new(quick: bool) -> Self {
        let lookup = LookupOptions {
            tuples: if quick { vec![1 << 20] } else { vec![1 << 20, 1 << 24, 1 << 26] },
            queries: if quick { 1 << 20 } else { 1 << 22 },
            kinds: vec![Queries::Hits, Queries::HalfMisses, Queries::Sorted],
            whole: false,
            quick,
            ..LookupOptions::default()
        };
        Self { lookup, distributions: Distribution::ALL.to_vec(), own: None }
    }
}

/// Measures everything that `options` ask for.
///
/// # Errors
/// [`BenchError`]: whatever keeps an engine from being built or searched, and a wrong answer of any.
pub fn run(options: &KeysOptions<'_>) -> Result<Report, BenchError> {
    options.lookup.check()?;
    let mut report = Report { machine: Machine::this(), rows: Vec::new(), notes: Vec::new() };
    report.warn_of_debug_builds();
    if let Some((name, keys)) = &options.own {
        one(options, name, keys.clone(), &mut report)?;
        return Ok(report);
    }
    for &count in &options.lookup.tuples {
        for distribution in &options.distributions {
            options.lookup.told.step(&format!("{count} x {}: generating", distribution.name()))?;
            one(options, distribution.name(), distribution.keys(count), &mut report)?;
        }
        if options.distributions.contains(&Distribution::Uniform) && !options.lookup.structures {
            // The static search tree has keys of four bytes.
            let engines = |engine| engine == Engine::SearchTree || RIVALS.contains(&engine);
            let tuples = data::tuples::<u32, u32>(count);
            let case = Case { keys: Some("uniform"), tuples, engines: &engines, draw: &draw };
            lookup::measure(&options.lookup, case, &mut report)?;
        }
    }
    Ok(report)
}

fn one(options: &KeysOptions<'_>, name: &str, keys: Vec<u64>, report: &mut Report) -> Result<(), BenchError> {
    let all = options.lookup.all_peers;
    let count = keys.len() as u64;
    let is_sample = matches!(name, "uniform" | "cells") && count <= STORE_TUPLES_MAX;
    let engines = |engine: Engine| {
        if options.lookup.structures {
            return engine == Engine::Hashbrown;
        }
        RIVALS.contains(&engine) || engine == Engine::Lmdb && is_sample || all && engine != Engine::SearchTree
    };
    let tuples = keys.into_iter().map(|key| (key, data::value(key))).collect();
    let case = Case { keys: Some(name), tuples, engines: &engines, draw: &draw };
    lookup::measure(&options.lookup, case, report)
}

/// `count` queries to tuples with any keys, in no order, and a bit for each: whether its key is present.
fn draw<K: Number, V>(kind: Queries, tuples: &[(K, V)], count: usize) -> (Vec<K>, Vec<u64>) {
    let mut queries = data::hits(tuples, count);
    let mut there = vec![u64::MAX; queries.len().div_ceil(64)];
    match kind {
        Queries::Hits => {}
        Queries::Sorted => queries.sort_unstable(),
        Queries::HalfMisses => {
            for (at, query) in queries.iter_mut().enumerate() {
                let drawn = mix64(at as u64 ^ 0x00C0_FFEE_0000_0000);
                if drawn & 1 == 1
                    && let Some(absent) = absent(tuples, mix64(drawn))
                {
                    *query = absent;
                    there[at / 64] &= !(1 << (at % 64));
                }
            }
        }
        Queries::Zipf => {
            let log = (tuples.len() as f64 + 1.0).ln();
            for (at, query) in queries.iter_mut().enumerate() {
                // The inverse of the distribution, taken as continuous; the order of the ranks is mixed.
                let even = (mix64(at as u64 ^ 0x0BAD_CAFE_0000_0000) >> 11) as f64 / (1u64 << 53) as f64;
                let frequency = (even * log).exp() as u64;
                *query = tuples[below(mix64(frequency), tuples.len() as u64) as usize].0;
            }
        }
    }
    (queries, there)
}

/// Draws an absent key: from the gap behind a present one or, where keys stand in runs, a present one with one bit
/// changed. `None` if 64 draws find none.
fn absent<K: Number, V>(tuples: &[(K, V)], mut drawn: u64) -> Option<K> {
    let bits = u64::from(64 - tuples.last()?.0.widen().leading_zeros()).max(1);
    for _ in 0..64 {
        drawn = mix64(drawn.wrapping_add(0x9E37_79B9_7F4A_7C15));
        let at = below(drawn, tuples.len() as u64) as usize;
        let key = tuples[at].0.widen();
        let gap = tuples.get(at + 1).map_or(0, |next| next.0.widen() - key);
        if gap > 1 {
            return Some(K::narrow(key + 1 + below(mix64(drawn), gap - 1)));
        }
        let other = K::narrow(key ^ 1 << below(mix64(drawn), bits));
        if tuples.binary_search_by_key(&other, |tuple| tuple.0).is_err() {
            return Some(other);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_what_they_say() {
        for distribution in Distribution::ALL {
            let tuples: Vec<(u64, ())> = distribution.keys(20_000).into_iter().map(|key| (key, ())).collect();
            for kind in [Queries::Hits, Queries::HalfMisses, Queries::Zipf, Queries::Sorted] {
                let (queries, there) = draw(kind, &tuples, 5000);
                let mut hits = 0;
                for (at, query) in queries.iter().enumerate() {
                    let is_there = tuples.binary_search_by_key(query, |tuple| tuple.0).is_ok();
                    assert_eq!(there[at / 64] >> (at % 64) & 1 == 1, is_there, "{distribution:?} {kind:?}");
                    hits += usize::from(is_there);
                }
                assert_eq!(kind == Queries::HalfMisses, hits < 3000, "{distribution:?} {kind:?}: {hits}");
                assert_eq!(kind == Queries::Sorted, queries.is_sorted(), "{distribution:?} {kind:?}");
            }
        }
    }
}
