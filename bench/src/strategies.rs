//! Ways to ask the same queries: one by one, in batches of random and of ascending order, and random
//! batches that are sorted first (FAST, Kim et al., section 8; figure 13).
//!
//! The queries are the same keys each time, and every answer is checked. Sorting, and putting the answers
//! back in place, is part of the time of `sort-and-sweep`.

use crate::lookup::check_answers;
use crate::report::{Facts, Report, Row};
use crate::{BenchError, Machine, Told, data, machine};
use pleach::{Index, Key, KeyType, Typed, Value};
use pleach_builder::BuildOptions;
use pleach_peers::Number;
use std::path::PathBuf;
use std::time::Instant;

/// What to measure.
pub struct StrategyOptions<'a> {
    /// Tuples of the tables.
    pub tuples: Vec<u64>,
    /// Key types: `u32`, `u64`; values are of the same type.
    pub key_types: Vec<KeyType>,
    /// Queries of one call.
    pub batches: Vec<usize>,
    /// Queries of one repetition.
    pub queries: usize,
    /// Repetitions, of which the median is reported.
    pub repetitions: usize,
    /// Folder for the files.
    pub dir: Option<PathBuf>,
    /// Who is told of the steps.
    pub told: Told<'a>,
}

impl StrategyOptions<'_> {
    /// Tables from 2^16 to 2^26, batches from 64 to all queries; `quick` measures two small tables.
    #[must_use]
    pub fn new(quick: bool) -> Self {
        Self {
            tuples: if quick { vec![1 << 16, 1 << 20] } else { vec![1 << 16, 1 << 20, 1 << 24, 1 << 26] },
            key_types: vec![KeyType::U32, KeyType::U64],
            batches: vec![64, 1 << 10, 1 << 14, 1 << 22],
            queries: if quick { 1 << 20 } else { 1 << 22 },
            repetitions: 5,
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
    let mut report = Report { machine: Machine::this(), rows: Vec::new(), notes: Vec::new() };
    for &tuples in &options.tuples {
        for &key_type in &options.key_types {
            match key_type {
                KeyType::U32 => data_set::<u32>(options, tuples, &mut report)?,
                KeyType::U64 => data_set::<u64>(options, tuples, &mut report)?,
                other => {
                    let text = format!("keys of type {other} are not measured here: u32 or u64");
                    return Err(BenchError::Options(text));
                }
            }
        }
    }
    Ok(report)
}

/// How a batch is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    OneByOne,
    Batch,
    Ascending,
    SortAndSweep,
}

impl Strategy {
    const ALL: [Self; 4] = [Self::OneByOne, Self::Batch, Self::Ascending, Self::SortAndSweep];

    fn name(self) -> &'static str {
        match self {
            Self::OneByOne => "one by one",
            Self::Batch => "batches in random order",
            Self::Ascending => "batches in ascending order",
            Self::SortAndSweep => "random batches, sorted and swept",
        }
    }
}

/// Room for a batch that is sorted.
struct Scratch<T> {
    order: Vec<(T, u32)>,
    queries: Vec<T>,
    values: Vec<T>,
    present: Vec<u64>,
}

fn answer<T: Number + Key + Value>(
    strategy: Strategy,
    view: &Typed<'_, T, T>,
    queries: &[T],
    values: &mut [T],
    present: &mut [u64],
    scratch: &mut Scratch<T>,
) -> Result<(), BenchError> {
    match strategy {
        Strategy::OneByOne => {
            for (at, &query) in queries.iter().enumerate() {
                if let Some(value) = view.get(query)? {
                    values[at] = value;
                    present[at / 64] |= 1 << (at % 64);
                }
            }
        }
        Strategy::Batch | Strategy::Ascending => {
            view.get_batch(queries, values, present)?;
        }
        Strategy::SortAndSweep => {
            let Scratch { order, queries: sorted, values: found, present: there } = scratch;
            order.clear();
            order.extend(queries.iter().copied().zip(0u32..));
            order.sort_unstable();
            sorted.clear();
            sorted.extend(order.iter().map(|pair| pair.0));
            found.resize(queries.len(), T::narrow(0));
            there.resize(queries.len().div_ceil(64), 0);
            view.get_batch(sorted, found, there)?;
            for (at, &(_, query)) in order.iter().enumerate() {
                let query = query as usize;
                values[query] = found[at];
                present[query / 64] |= (there[at / 64] >> (at % 64) & 1) << (query % 64);
            }
        }
    }
    Ok(())
}

fn data_set<T: Number + Key + Value>(
    options: &StrategyOptions<'_>,
    count: u64,
    report: &mut Report,
) -> Result<(), BenchError> {
    let label = format!("{count} x ({0},{0})", <T as Key>::TYPE);
    options.told.step(&format!("{label}: building"))?;
    let tuples: Vec<(T, T)> = data::tuples(count);
    let folder = crate::folder(options.dir.as_deref())?;
    let path = folder.path().join("strategies.pleach");
    let start = Instant::now();
    let summary = pleach_builder::build_slice(&tuples, &path, &BuildOptions::default())?;
    let build_s = start.elapsed().as_secs_f64();
    let queries = data::hits(&tuples, options.queries);
    drop(tuples);
    let mut ascending = queries.clone();
    ascending.sort_unstable();
    let index = Index::open(&path)?;
    let view = index.typed::<T, T>()?;
    let mut scratch =
        Scratch { order: Vec::new(), queries: Vec::new(), values: Vec::new(), present: Vec::new() };
    let (mut values, mut present) = (queries.clone(), vec![0u64; queries.len().div_ceil(64)]);

    let mut batches: Vec<usize> = options.batches.iter().map(|&batch| batch.min(queries.len())).collect();
    batches.dedup();
    let mut times: Vec<(Strategy, usize, Vec<f64>)> = Strategy::ALL
        .iter()
        .flat_map(|&strategy| batches.iter().map(move |&batch| (strategy, batch, Vec::new())))
        .filter(|(strategy, batch, _)| *strategy != Strategy::OneByOne || *batch == batches[0])
        .collect();
    for repetition in 0..=options.repetitions {
        options.told.step(&format!("{label}: repetition {repetition} of {}", options.repetitions))?;
        for (strategy, batch, ns) in &mut times {
            let queries = if *strategy == Strategy::Ascending { &ascending } else { &queries };
            values.fill(T::narrow(0x5A5A_5A5A_5A5A_5A5A));
            present.fill(0);
            let start = Instant::now();
            let parts = values.chunks_mut(*batch).zip(present.chunks_mut(batch.div_ceil(64)));
            for (queries, (values, present)) in queries.chunks(*batch).zip(parts) {
                answer(*strategy, &view, queries, values, present, &mut scratch)?;
            }
            let elapsed = start.elapsed().as_nanos() as f64 / queries.len() as f64;
            check_answers(strategy.name(), queries, &values, &present)?;
            // The first turn fills the caches.
            if repetition > 0 {
                ns.push(elapsed);
            }
        }
    }
    let huge_share = machine::huge_mapped_bytes(&path).map(|huge| huge as f64 / summary.file_bytes as f64);
    for (strategy, batch, mut ns) in times {
        ns.sort_by(f64::total_cmp);
        report.rows.push(Row {
            engine: "pleach".to_owned(),
            operation: "get",
            key_type: <T as Key>::TYPE,
            value_type: <T as Value>::TYPE,
            tuples: summary.tuples,
            threads: 1,
            batch: if strategy == Strategy::OneByOne { 1 } else { batch },
            ns_per_query: ns[ns.len() / 2],
            ns_min: ns[0],
            ns_max: ns[ns.len() - 1],
            queries: queries.len(),
            repetitions: options.repetitions,
            build_s,
            bytes_per_tuple: summary.file_bytes as f64 / summary.tuples.max(1) as f64,
            open_ms: None,
            huge_share,
            detail: Some(strategy.name().to_owned()),
            texts: None,
            facts: Facts::default(),
        });
    }
    Ok(())
}
