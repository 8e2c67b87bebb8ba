//! Ways to ask the same queries: every [`Strategy`] over batches of several sizes, and batches that ascend
//! (FAST, Kim et al., section 8; figure 13).
//!
//! The queries are the same keys each time, and every answer is checked. Buffering, sorting, and putting
//! the answers back in place is part of the times. The same tuples are in a file with a grid and in one
//! without: the paper's scheme (b) without a grid is the descent of the spine. With
//! [`StrategyOptions::structures`] they are in files with the trees of the papers, too. A note tells where `auto`
//! is more than a tenth slower than the best strategy.

use crate::keys::Distribution;
use crate::lookup::check_answers;
use crate::report::{Report, Row};
use crate::{BenchError, Machine, Told, data, machine};
use pleach::{Costs, Index, Key, KeyType, Scratch, Strategy, Structure, Typed, Value};
use pleach_builder::BuildOptions;
use pleach_peers::Number;
use std::path::PathBuf;
use std::time::Instant;

/// Options of the measurement.
pub struct StrategyOptions<'a> {
    /// Tuples of the tables.
    pub tuples: Vec<u64>,
    /// Key types: `u32`, `u64`; values are of the same type.
    pub key_types: Vec<KeyType>,
    /// Queries of one call: powers of two.
    pub batches: Vec<usize>,
    /// Queries of one repetition.
    pub queries: usize,
    /// Number of repetitions; the median is reported.
    pub repetitions: usize,
    /// Costs that `auto` uses.
    pub costs: Costs,
    /// True if files with trees are measured too.
    pub structures: bool,
    /// Rules of keys of 8 bytes; even ones if there is none.
    pub distributions: Vec<Distribution>,
    /// Folder for the files.
    pub dir: Option<PathBuf>,
    /// Receives the steps of the run.
    pub told: Told<'a>,
}

impl StrategyOptions<'_> {
    /// Tables from 2^16 to 2^26, batches from 1 to all queries; `quick` measures two small tables.
    #[must_use]
    pub fn new(quick: bool) -> Self {
        Self {
            tuples: if quick { vec![1 << 16, 1 << 20] } else { vec![1 << 16, 1 << 20, 1 << 24, 1 << 26] },
            key_types: vec![KeyType::U32, KeyType::U64],
            batches: vec![1, 1 << 6, 1 << 10, 1 << 14, 1 << 18, 1 << 22],
            queries: if quick { 1 << 20 } else { 1 << 22 },
            repetitions: 5,
            costs: Costs::default(),
            structures: false,
            distributions: Vec::new(),
            dir: None,
            told: Told::default(),
        }
    }
}

/// Measures everything that `options` ask for.
///
/// # Errors
/// [`BenchError`]: whatever keeps a table from being built or searched, and a wrong answer.
pub fn run(options: &StrategyOptions<'_>) -> Result<Report, BenchError> {
    if !options.batches.iter().all(|batch| batch.is_power_of_two()) || options.repetitions == 0 {
        return Err(BenchError::Options("batches must be powers of two, repetitions at least 1".to_owned()));
    }
    let mut report = Report { machine: Machine::this(), rows: Vec::new(), notes: Vec::new() };
    for &tuples in &options.tuples {
        for &key_type in &options.key_types {
            match key_type {
                KeyType::U32 => data_set::<u32>(options, "", data::tuples(tuples), &mut report)?,
                KeyType::U64 if options.distributions.is_empty() => {
                    data_set::<u64>(options, "", data::tuples(tuples), &mut report)?;
                }
                KeyType::U64 => {
                    for rule in &options.distributions {
                        let keys = rule.keys(tuples).into_iter();
                        let tuples = keys.map(|key| (key, data::value(key))).collect();
                        data_set::<u64>(options, rule.name(), tuples, &mut report)?;
                    }
                }
                other => {
                    let text = format!("keys of type {other} are not measured here: u32 or u64");
                    return Err(BenchError::Options(text));
                }
            }
        }
    }
    Ok(report)
}

/// From this size on, `auto` is reported as slow.
const SLOW: f64 = 1.1;
/// Queries of a repetition in calls of up to [`SMALL_BATCH`], which take longer by query.
const SMALL_QUERIES: usize = 1 << 18;
const SMALL_BATCH: usize = 64;

/// Names of the files, and what leads to their tuple lines.
const FILES: [(&str, &str, Structure); 6] = [
    ("", "spine,grid", Structure::Grid),
    ("no grid", "spine", Structure::Spine),
    ("fast:full", "fast:full", Structure::Fast),
    ("fast:auto", "fast:auto", Structure::Fast),
    ("harmonia:16:100", "harmonia:16:100", Structure::Harmonia),
    ("btree:16", "btree:16", Structure::Btree),
];
/// Those of them that are always measured.
const PLAIN_FILES: usize = 2;

/// A file, a way to ask, and its times.
struct Asked {
    file: usize,
    strategy: Strategy,
    /// True if the queries ascend.
    ascends: bool,
    batch: usize,
    ns: Vec<f64>,
}

impl Asked {
    fn detail(&self) -> String {
        let order = if self.ascends { ", ascending" } else { "" };
        let file = FILES[self.file].0;
        let comma = if file.is_empty() { "" } else { ", " };
        format!("{}{order}{comma}{file}", self.strategy)
    }

    fn answer<T: Number + Key + Value>(
        &self,
        view: &Typed<'_, T, T>,
        queries: &[T],
        (values, present): (&mut [T], &mut [u64]),
        scratch: &mut Scratch<T, T>,
    ) -> Result<(), BenchError> {
        let calls = queries.chunks(self.batch).zip(values.chunks_mut(self.batch)).enumerate();
        for (call, (queries, values)) in calls {
            let first = call * self.batch;
            if self.batch >= 64 {
                let present = &mut present[first / 64..];
                view.get_batch_by(self.strategy, queries, values, present, scratch)?;
            } else {
                let mut bits = [0];
                view.get_batch_by(self.strategy, queries, values, &mut bits, scratch)?;
                present[first / 64] |= bits[0] << (first % 64);
            }
        }
        Ok(())
    }
}

/// Every way that is measured, for the first `files` of [`FILES`].
fn ways(files: usize, batches: &[usize]) -> Vec<Asked> {
    let mut ways = Vec::new();
    for file in 0..files {
        for &batch in batches {
            for strategy in Strategy::ALL {
                // By itself a query takes as long in a long batch as in a short one.
                if strategy != Strategy::OneByOne || batch <= SMALL_BATCH {
                    ways.push(Asked { file, strategy, ascends: false, batch, ns: Vec::new() });
                }
            }
            if batch >= SMALL_BATCH {
                let strategy = Strategy::Unbuffered;
                ways.push(Asked { file, strategy, ascends: true, batch, ns: Vec::new() });
            }
        }
    }
    ways
}

fn data_set<T: Number + Key + Value>(
    options: &StrategyOptions<'_>,
    rule: &str,
    tuples: Vec<(T, T)>,
    report: &mut Report,
) -> Result<(), BenchError> {
    let blank = if rule.is_empty() { "" } else { " " };
    let label = format!("{} x ({1},{1}){blank}{rule}", tuples.len(), <T as Key>::TYPE);
    options.told.step(&format!("{label}: building"))?;
    let folder = crate::folder(options.dir.as_deref())?;
    let mut files = Vec::new();
    let wanted = if options.structures { FILES.len() } else { PLAIN_FILES };
    for (number, (_, layout, structure)) in FILES[..wanted].iter().enumerate() {
        let path = folder.path().join(format!("{number}.pleach"));
        let start = Instant::now();
        let layout = format!("lines,{layout}").parse().unwrap_or_default();
        let build = BuildOptions::default().with_layout(layout);
        let summary = pleach_builder::build_slice(&tuples, &path, &build)?;
        let build_s = start.elapsed().as_secs_f64();
        // Keys may be such that there is no grid.
        let index = Index::open(&path)?;
        let is_there = structure.is_in(index.header());
        let index = if is_there { Index::options().structure(*structure).open(&path)? } else { index };
        files.push((index, path, summary, build_s));
    }
    let queries = data::hits(&tuples, options.queries);
    drop(tuples);
    let mut ascending = queries.clone();
    ascending.sort_unstable();
    let mut scratch = Scratch::new(options.costs);
    let (mut values, mut present) = (queries.clone(), vec![0u64; queries.len().div_ceil(64)]);
    let mut batches: Vec<usize> = options.batches.clone();
    batches.retain(|&batch| batch <= queries.len());
    batches.sort_unstable();
    batches.dedup();
    let mut ways = ways(files.len(), &batches);
    for repetition in 0..=options.repetitions {
        options.told.step(&format!("{label}: repetition {repetition} of {}", options.repetitions))?;
        for way in &mut ways {
            let view = files[way.file].0.typed::<T, T>()?;
            let queries = if way.ascends { &ascending } else { &queries };
            let part =
                if way.batch <= SMALL_BATCH { SMALL_QUERIES.min(queries.len()) } else { queries.len() };
            let (queries, values) = (&queries[..part], &mut values[..part]);
            let present = &mut present[..part.div_ceil(64)];
            values.fill(T::narrow(0x5A5A_5A5A_5A5A_5A5A));
            present.fill(0);
            let start = Instant::now();
            way.answer(&view, queries, (values, present), &mut scratch)?;
            let elapsed = start.elapsed().as_nanos() as f64 / queries.len() as f64;
            check_answers(way.strategy.name(), queries, values, present)?;
            // The first turn fills the caches.
            if repetition > 0 {
                way.ns.push(elapsed);
            }
        }
    }
    let mut rows = Vec::new();
    for way in &ways {
        let (_, path, summary, build_s) = &files[way.file];
        let part = if way.batch <= SMALL_BATCH { SMALL_QUERIES.min(queries.len()) } else { queries.len() };
        let types = (<T as Key>::TYPE, <T as Value>::TYPE);
        let mut row = Row::new("pleach", "get", types, summary.tuples).timed(part, &way.ns);
        row.batch = way.batch;
        row.build_s = *build_s;
        row.bytes_per_tuple = summary.file_bytes as f64 / summary.tuples.max(1) as f64;
        row.huge_share = machine::huge_mapped_bytes(path).map(|huge| huge as f64 / summary.file_bytes as f64);
        row.detail = Some(way.detail());
        row.facts.keys = Some(rule.to_owned()).filter(|rule| !rule.is_empty());
        row.facts.response_ns = Some(row.ns_per_query * way.batch as f64);
        rows.push(row);
    }
    for (auto, row) in ways.iter().zip(&rows).filter(|(way, _)| way.strategy == Strategy::Auto) {
        let rivals = ways.iter().zip(&rows).filter(|(way, _)| {
            (way.file, way.batch, way.ascends) == (auto.file, auto.batch, false)
                && way.strategy != Strategy::Auto
        });
        let best = rivals.min_by(|a, b| a.1.ns_per_query.total_cmp(&b.1.ns_per_query));
        if let Some((way, best)) = best.filter(|(_, best)| row.ns_per_query > SLOW * best.ns_per_query) {
            report.notes.push(format!(
                "{label}, batches of {}: {} takes {:.1} ns, {} {:.1} ns",
                auto.batch,
                auto.detail(),
                row.ns_per_query,
                way.detail(),
                best.ns_per_query
            ));
        }
    }
    report.rows.extend(rows);
    Ok(())
}
