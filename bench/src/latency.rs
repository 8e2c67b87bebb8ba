//! Single look-ups that wait for each other: the next key follows from the last answer.
//!
//! A batch hides the time that memory takes; here nothing hides it. The next key is the one
//! at the next place, xor-ed with the answer and with what the answer should have been: so it is known only when
//! the answer is, is the right key as long as answers are right, and every answer is checked on the way. Beside
//! that each engine answers single look-ups timed one by one, for the median and the 99th of 100; what the clock
//! itself takes is subtracted. The limit reads lines of the same mapped file, each of which is chosen by the one
//! before.

use crate::limit::MappedLines;
use crate::lookup::NamedPeer;
use crate::options::{BenchOptions, Measure, expect_equal, label};
use crate::report::{Facts, Report, Row};
use crate::{BenchError, data, machine};
use pleach::{Index, Key, Typed, Value};
use pleach_builder::BuildOptions;
use pleach_peers::{Engine, Number, Reader};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Look-ups of one repetition that wait for each other.
const CHAIN: usize = 1 << 18;
/// Look-ups that are timed one by one.
const SINGLES: usize = 1 << 16;
/// Most tuples for which stores are built.
const STORE_TUPLES_MAX: u64 = 1 << 24;

/// Measures everything that `options` ask for, on one thread.
///
/// # Errors
/// [`BenchError`]: whatever keeps a table from being built or searched, and a wrong answer.
pub fn run(options: &BenchOptions<'_>) -> Result<Report, BenchError> {
    options.each(&Latency)
}

/// One look-up at a time.
enum Single<'a, T: Number + Key + Value> {
    Pleach(&'a Typed<'a, T, T>),
    Peer(Box<dyn Reader<T, T> + 'a>),
}

impl<T: Number + Key + Value> Single<'_, T> {
    #[inline(always)]
    fn get(&mut self, key: T) -> Result<T, BenchError> {
        match self {
            Self::Pleach(view) => Ok(view.get(key)?.unwrap_or_default()),
            Self::Peer(reader) => {
                let (mut value, mut present) = ([T::default()], [0]);
                reader.get_batch(&[key], &mut value, &mut present)?;
                Ok(value[0])
            }
        }
    }

    /// The chain; what differs from the right answers, of all of them: 0.
    fn chain(&mut self, queries: &[T]) -> Result<u64, BenchError> {
        let (mut wrong, mut carried) = (0, 0);
        for query in queries {
            let key = T::narrow(query.widen() ^ carried);
            let expected: T = data::value(*query);
            carried = self.get(key)?.widen() ^ expected.widen();
            wrong |= carried;
        }
        Ok(wrong)
    }

    /// Times of single look-ups, with the clock's own.
    fn singles(&mut self, queries: &[T], times: &mut Vec<Duration>) -> Result<u64, BenchError> {
        let mut wrong = 0;
        for &query in queries {
            let start = Instant::now();
            let value = self.get(query)?;
            times.push(start.elapsed());
            wrong |= value.widen() ^ data::value::<T, T>(query).widen();
        }
        Ok(wrong)
    }
}

/// Returns the median time between two readings of the clock.
fn clock_ns() -> f64 {
    let mut times: Vec<Duration> = (0..10_001)
        .map(|_| {
            let start = Instant::now();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2].as_nanos() as f64
}

/// Reads random lines, each of which depends on the one before; returns the sum of their first words.
fn chase(lines: &[[u8; 64]], count: usize) -> u64 {
    // Nothing of the last word is left in the next place, which the compiler must not know.
    let mask = black_box(0u64);
    let (mut sum, mut last) = (0u64, 0u64);
    for i in 1..=count as u64 {
        let at = data::below(data::mix64(i ^ (last & mask)), lines.len() as u64);
        last = lines[at as usize].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        sum = sum.wrapping_add(last);
    }
    sum
}

struct Entry<'a, T: Number + Key + Value> {
    single: Single<'a, T>,
    row: Row,
    chains: Vec<f64>,
    singles: Vec<Duration>,
}

fn peers<T: Number>(
    options: &BenchOptions<'_>,
    tuples: &[(T, T)],
    folder: &std::path::Path,
    label: &str,
    notes: &mut Vec<String>,
) -> Result<Vec<NamedPeer<T>>, BenchError> {
    let mut built = Vec::new();
    for &engine in Engine::AVAILABLE {
        if matches!(engine, Engine::Redb | Engine::Fst) || !engine.takes_numbers_of(T::BYTES) {
            continue;
        }
        if engine.is_store() && tuples.len() as u64 > STORE_TUPLES_MAX {
            notes.push(format!("{} is left out at {label}: it is measured up to 2^24 tuples", engine.name()));
            continue;
        }
        let needed = (tuples.len() * 2 * T::BYTES * 3) as u64;
        if machine::meminfo("MemAvailable").is_some_and(|available| needed > available / 10 * 9) {
            notes.push(format!("{} is left out at {label}: too little memory", engine.name()));
            continue;
        }
        options.told.step(&format!("{label}: building {}", engine.name()))?;
        built.push((engine, engine.build(tuples, folder)?));
    }
    Ok(built)
}

struct Latency;

impl Measure for Latency {
    fn data_set<T: Number + Key + Value>(
        &self,
        options: &BenchOptions<'_>,
        count: u64,
        report: &mut Report,
    ) -> Result<(), BenchError> {
        let label = label::<T>(count);
        options.told.step(&format!("{label}: building pleach"))?;
        let tuples: Vec<(T, T)> = data::tuples(count);
        let folder = crate::folder(options.dir.as_deref())?;
        let path = folder.path().join("latency.pleach");
        let start = Instant::now();
        let summary = pleach_builder::build_slice(&tuples, &path, &BuildOptions::default())?;
        let build = start.elapsed();
        let peers = peers(options, &tuples, folder.path(), &label, &mut report.notes)?;
        let queries = data::hits(&tuples, CHAIN + SINGLES);
        let (queries, singles) = queries.split_at(CHAIN);
        drop(tuples);

        let index = Index::open(&path)?;
        let lines = MappedLines::open(&path, index.header())?;
        let types = (<T as Key>::TYPE, <T as Value>::TYPE);
        let row = |engine: &str, build: Duration, bytes: u64| Row {
            build_s: build.as_secs_f64(),
            bytes_per_tuple: bytes as f64 / summary.tuples as f64,
            ..Row::new(engine, "get-dependent", types, summary.tuples)
        };
        let entry = |single, row| Entry { single, row, chains: Vec::new(), singles: Vec::new() };
        let view = index.typed::<T, T>()?;
        let pleach = Single::Pleach(&view);
        let mut entries = vec![entry(pleach, row("pleach", build, summary.file_bytes))];
        for (engine, built) in &peers {
            let row = row(engine.name(), built.build, built.peer.bytes());
            entries.push(entry(Single::Peer(built.peer.reader()?), row));
        }
        let mut chases = Vec::new();
        let mut sum = None;
        for repetition in 0..=options.repetitions {
            options.told.step(&format!("{label}: repetition {repetition} of {}", options.repetitions))?;
            for entry in &mut entries {
                let start = Instant::now();
                let wrong = entry.single.chain(queries)?;
                let elapsed = start.elapsed().as_nanos() as f64 / CHAIN as f64;
                expect_equal(&entry.row.engine, "bits that differ", CHAIN, wrong, 0)?;
                let mut times = Vec::with_capacity(SINGLES);
                let wrong = entry.single.singles(singles, &mut times)?;
                expect_equal(&entry.row.engine, "bits that differ", SINGLES, wrong, 0)?;
                // The first turn fills the caches.
                if repetition > 0 {
                    entry.chains.push(elapsed);
                    entry.singles.extend(times);
                }
            }
            let start = Instant::now();
            let found = chase(lines.lines(), CHAIN);
            let elapsed = start.elapsed().as_nanos() as f64 / CHAIN as f64;
            expect_equal("limit-dependent-miss", "sum", CHAIN, found, *sum.get_or_insert(found))?;
            if repetition > 0 {
                chases.push(elapsed);
            }
        }
        let clock = clock_ns();
        let huge = machine::huge_mapped_bytes(&path).map(|huge| huge as f64 / summary.file_bytes as f64);
        for mut entry in entries {
            entry.singles.sort_unstable();
            let at = |share: f64| {
                let at = ((entry.singles.len() as f64 * share) as usize).min(entry.singles.len() - 1);
                Some((entry.singles[at].as_nanos() as f64 - clock).max(0.0))
            };
            let facts = Facts { p50_ns: at(0.5), p99_ns: at(0.99), ..Facts::default() };
            let huge_share = huge.filter(|_| entry.row.engine == "pleach");
            report.rows.push(Row { facts, huge_share, ..entry.row.timed(CHAIN, &entry.chains) });
        }
        report.rows.push(row("limit-dependent-miss", build, summary.file_bytes).timed(CHAIN, &chases));
        Ok(())
    }
}
