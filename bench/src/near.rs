//! Floors, ceilings and intervals beside exact look-ups of the same table and the same batches.
//!
//! A table has keys of one type and values of four bytes; another one has the same keys as starts of intervals, every
//! second of which ends before the next one begins. Half of the queries are keys, the others lie between keys. Each
//! kind of look-up takes its turn, in calls of 16,384 queries on one thread, and every answer is checked by a search in
//! the sorted keys.

use crate::options::{BenchOptions, Measure, expect_equal, label};
use crate::report::{Report, Row};
use crate::{BenchError, data};
use pleach::{Column, Index, Intervals, Key, Near, Tuples, Typed, Value, ValueType, Word};
use pleach_builder::source::Intervals::Disjoint;
use pleach_builder::{BuildOptions, Builder, Chunk, ChunkSource, Column as Words, Schema, Silent, Summary};
use pleach_peers::Number;
use std::path::Path;
use std::time::Instant;

/// Queries of one repetition, and of a call.
const QUERIES: usize = 1 << 21;
const BATCH: usize = 1 << 14;

/// Measures the tables that `options` ask for.
///
/// # Errors
/// [`BenchError`]: whatever keeps a table from being built or searched, and a wrong answer.
pub fn run(options: &BenchOptions<'_>) -> Result<Report, BenchError> {
    options.each(&NearTimes)
}

struct NearTimes;

/// Kinds of look-ups, in the order in which they take turns.
const KINDS: [&str; 6] = ["get", "floor", "ceiling", "nearest", "get-interval-table", "interval"];

impl Measure for NearTimes {
    fn data_set<T: Number + Key + Value>(
        &self,
        options: &BenchOptions<'_>,
        count: u64,
        report: &mut Report,
    ) -> Result<(), BenchError> {
        let label = label::<T>(count);
        options.told.step(&format!("{label}: building"))?;
        let mut keys: Vec<T> = data::tuples(count).into_iter().map(|(key, _): (T, T)| key).collect();
        keys.sort_unstable_by_key(|key| key.encode());
        keys.dedup_by_key(|key| key.encode());
        let word = |at: usize| keys[at].encode().to_u128();
        let folder = crate::folder(options.dir.as_deref())?;
        let (path, interval_path) =
            (folder.path().join("keys.pleach"), folder.path().join("intervals.pleach"));
        let start = Instant::now();
        let summary =
            Builder::new().build(&path, keys.iter().enumerate().map(|(at, &key)| (key, at as u32)))?;
        let build_s = start.elapsed().as_secs_f64();
        let mut ends: Vec<u128> = Vec::with_capacity(keys.len());
        for at in 0..keys.len() {
            let end = if at + 1 < keys.len() { word(at + 1) - 1 } else { word(at) };
            ends.push(if at % 2 == 0 { end } else { word(at) + (end - word(at)) / 2 });
        }
        let start = Instant::now();
        let interval_summary = build_intervals(&interval_path, &keys, &ends)?;
        let interval_s = start.elapsed().as_secs_f64();

        // Half of the queries are keys, the others anything.
        let queries: Vec<T> = (1..=QUERIES as u64)
            .map(|i| {
                let drawn = data::mix64(i ^ 0xABCD);
                if i % 2 == 0 { keys[(drawn % keys.len() as u64) as usize] } else { T::narrow(drawn) }
            })
            .collect();
        let floors: Vec<usize> =
            queries.iter().map(|query| keys.partition_point(|key| key.encode() <= query.encode())).collect();
        let index = Index::open(&path)?;
        let view = index.typed::<T, u32>()?;
        let of_intervals = Index::open(&interval_path)?;
        let with_intervals = Held::<T>::new(&of_intervals)?;
        let mut times: [Vec<f64>; KINDS.len()] = Default::default();
        for repetition in 0..=options.repetitions {
            options.told.step(&format!("{label}: repetition {repetition} of {}", options.repetitions))?;
            for (kind, times) in times.iter_mut().enumerate() {
                let (mut values, mut present) = (vec![NONE; QUERIES], vec![0u64; BATCH / 64]);
                let start = Instant::now();
                for (queries, values) in queries.chunks(BATCH).zip(values.chunks_mut(BATCH)) {
                    let near = match KINDS[kind] {
                        "floor" => Some(Near::Floor),
                        "ceiling" => Some(Near::Ceiling),
                        "nearest" => Some(Near::Nearest),
                        _ => None,
                    };
                    if let Some(near) = near {
                        let to = Tuples { values, present: &mut present, ..Tuples::default() };
                        view.near_batch(near, queries, to)?;
                        continue;
                    }
                    match KINDS[kind] {
                        "get" => view.get_batch(queries, values, &mut present)?,
                        "get-interval-table" => with_intervals.get(queries, values)?,
                        _ => with_intervals.hold(queries, values)?,
                    };
                }
                let ns = start.elapsed().as_nanos() as f64 / QUERIES as f64;
                for (at, (&value, &above)) in values.iter().zip(&floors).enumerate().step_by(7) {
                    let floor = above.checked_sub(1);
                    let is_key = floor.is_some_and(|floor| keys[floor].encode() == queries[at].encode());
                    let ceiling = if is_key { floor } else { Some(above).filter(|&at| at < keys.len()) };
                    let query = queries[at].encode().to_u128();
                    let held = floor.filter(|&floor| ends[floor] >= query);
                    let expected = match KINDS[kind] {
                        "floor" => floor,
                        "ceiling" => ceiling,
                        "nearest" => match (floor, ceiling) {
                            (Some(low), Some(high)) if query - word(low) > word(high) - query => Some(high),
                            (low, high) => low.or(high),
                        },
                        "interval" => held,
                        _ => floor.filter(|_| is_key),
                    };
                    // The buffers of an absent key get 0, or are left alone.
                    let expected = expected.map_or(0, |at| at as u64);
                    let found = if value == NONE { 0 } else { u64::from(value) };
                    expect_equal(KINDS[kind], &format!("{}", queries[at].widen()), QUERIES, found, expected)?;
                }
                // The first turn fills the caches.
                if repetition > 0 {
                    times.push(ns);
                }
            }
        }
        let types = (<T as Key>::TYPE, ValueType::U32);
        for (kind, times) in KINDS.iter().zip(&times) {
            let is_interval = kind.contains("interval");
            let (summary, build_s) =
                if is_interval { (&interval_summary, interval_s) } else { (&summary, build_s) };
            report.rows.push(Row {
                batch: BATCH,
                build_s,
                bytes_per_tuple: summary.file_bytes as f64 / summary.tuples as f64,
                ..Row::new("pleach", kind, types, summary.tuples).timed(QUERIES, times)
            });
        }
        Ok(())
    }
}

/// A value that no tuple has.
const NONE: u32 = u32::MAX;

/// Look-ups in a file of intervals, by exact keys and by the intervals that hold them.
struct Held<'a, T: Key> {
    intervals: Intervals<'a, T>,
    /// Records of eight bytes are in the lines, others in a column.
    exact: Exact<'a, T>,
    value_at: usize,
}

enum Exact<'a, T: Key> {
    Lines(Typed<'a, T, u64>),
    Column(Typed<'a, T, ()>, Column<'a>),
}

impl<'a, T: Number + Key> Held<'a, T> {
    fn new(index: &'a Index) -> Result<Self, BenchError> {
        let none = || BenchError::Options("the file has no intervals".to_owned());
        let intervals = index.typed::<T, ()>()?.intervals()?.ok_or_else(none)?;
        let exact = match index.value_type() {
            ValueType::U64 => Exact::Lines(index.typed()?),
            _ => Exact::Column(index.typed()?, index.value_column().ok_or_else(none)?),
        };
        Ok(Self { intervals, exact, value_at: T::BYTES })
    }

    fn value(&self, record: &[u8]) -> u32 {
        record.get(self.value_at..).and_then(<[u8]>::first_chunk).map_or(0, |&raw| u32::from_le_bytes(raw))
    }

    fn get(&self, queries: &[T], values: &mut [u32]) -> Result<usize, BenchError> {
        let mut present = vec![0u64; queries.len().div_ceil(64)];
        match &self.exact {
            Exact::Lines(view) => {
                let mut records = vec![0u64; queries.len()];
                let count = view.get_batch(queries, &mut records, &mut present)?;
                let read = |(to, record): (&mut u32, u64)| *to = self.value(&record.to_le_bytes());
                values.iter_mut().zip(records).for_each(read);
                Ok(count)
            }
            Exact::Column(view, column) => {
                let mut ranks = vec![0u64; queries.len()];
                let count = view.rank_batch(queries, &mut ranks, &mut present)?;
                let is_there = |at: usize| present[at / 64] >> (at % 64) & 1 == 1;
                ranks
                    .iter_mut()
                    .enumerate()
                    .filter(|(at, _)| !is_there(*at))
                    .for_each(|(_, rank)| *rank = u64::MAX);
                let (mut ends, mut data) = (Vec::new(), Vec::new());
                column.append(&ranks, &mut ends, &mut data)?;
                let mut start = 0;
                for (to, end) in values.iter_mut().zip(ends) {
                    *to = self.value(&data[start..end as usize]);
                    start = end as usize;
                }
                Ok(count)
            }
        }
    }

    fn hold(&self, queries: &[T], values: &mut [u32]) -> Result<usize, BenchError> {
        if let Exact::Lines(view) = &self.exact {
            let (mut records, mut present) =
                (vec![0u64; queries.len()], vec![0u64; queries.len().div_ceil(64)]);
            let count = view.interval_batch(queries, &mut records, &mut present)?;
            let read = |(to, record): (&mut u32, u64)| *to = self.value(&record.to_le_bytes());
            values.iter_mut().zip(records).for_each(read);
            return Ok(count);
        }
        Ok(self.intervals.each_batch(queries, |at, _, record| values[at] = self.value(record))?)
    }
}

/// Builds a file of intervals, whose values are their numbers.
fn build_intervals<T: Number + Key>(path: &Path, keys: &[T], ends: &[u128]) -> Result<Summary, BenchError> {
    let record = format!("record<last: {}, value: u32>", T::TYPE);
    let value_type = if T::BYTES == 4 { ValueType::U64 } else { ValueType::Fixed(12) };
    let schema = Schema {
        value_logical: record,
        interval: Some(Disjoint),
        ..Schema::plain(T::TYPE, value_type, None)
    };
    let chunks = (0..keys.len()).step_by(BATCH).map(|first| {
        let mut chunk = Chunk::new(T::TYPE, value_type);
        for at in first..keys.len().min(first + BATCH) {
            let (last, value) = (T::narrow(ends[at] as u64), at as u32);
            match &mut chunk.keys {
                Words::U32(words) => words.push(keys[at].widen() as u32),
                Words::U64(words) => words.push(keys[at].widen()),
                _ => {}
            }
            match &mut chunk.values {
                Words::U64(words) => words.push(last.widen() | u64::from(value) << 32),
                Words::Bytes(strings) => {
                    strings.push(&[&last.widen().to_le_bytes()[..], &value.to_le_bytes()].concat());
                }
                _ => {}
            }
        }
        chunk
    });
    let mut source = ChunkSource::new(schema, chunks);
    Ok(pleach_builder::build(&mut source, path, &BuildOptions::default(), &Silent)?)
}
