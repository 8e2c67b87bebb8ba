//! Tuples in order: all of them, and ranges from random keys on, beside what the memory delivers in order.
//!
//! A scan sums all keys and values. Pleach does it in three ways: pieces handed to a closure (`scan`), columns
//! copied into buffers of the caller (`copy`), and the iterator. The peers are a B-tree map and sorted arrays. The
//! limit is the fastest loop that adds up the words of the same mapped tuple lines, of several that are tried:
//! plain, vectors, with lines prefetched, and several places of the file at once. Speeds are those of the bytes
//! that hold the tuples: 64 a line, or those of keys and values in arrays and maps.

use crate::limit::MappedLines;
use crate::options::{BenchOptions, Measure, expect_equal, label};
use crate::report::{Facts, Report, Row};
use crate::{BenchError, data};
use pleach::{Index, Key, Typed, Value};
use pleach_builder::BuildOptions;
use pleach_peers::Number;
use pleach_peers::prefetch;
use rayon::ThreadPool;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

/// Tuples of a range.
const RANGE_TUPLES: usize = 1 << 20;
/// Ranges of one repetition.
const RANGES: usize = 16;
/// Tuples that a caller copies at once.
const COPY_TUPLES: usize = 1 << 12;
/// Most tuples for which a B-tree map is built in a quick run.
const QUICK_BTREE_TUPLES_MAX: u64 = 1 << 24;

/// Measures everything that `options` ask for.
///
/// # Errors
/// [`BenchError`]: whatever keeps a table from being built or read, and a wrong sum.
pub fn run(options: &BenchOptions<'_>) -> Result<Report, BenchError> {
    options.each(&Scans)
}

type Line = [u8; 64];

/// Loops that add up the words of lines.
mod sums {
    use super::{Line, prefetch};

    /// Method of adding up the words of lines.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Form {
        /// Lines are prefetched this far ahead; 0 leaves it to the hardware.
        pub ahead: usize,
        /// Places of the file that are read in turns.
        pub streams: usize,
    }

    /// All that are tried.
    pub const FORMS: [Form; 6] = [
        Form { ahead: 0, streams: 1 },
        Form { ahead: 16, streams: 1 },
        Form { ahead: 32, streams: 1 },
        Form { ahead: 64, streams: 1 },
        Form { ahead: 0, streams: 2 },
        Form { ahead: 0, streams: 4 },
    ];

    impl Form {
        /// Returns the name in reports.
        pub fn name(self) -> String {
            match (self.streams, self.ahead) {
                (1, 0) => "one stream".to_owned(),
                (1, ahead) => format!("one stream, {ahead} lines ahead"),
                (streams, _) => format!("{streams} streams"),
            }
        }

        /// The sum of all words of 8 bytes, which is the same for every form.
        pub fn sum(self, lines: &[Line]) -> u64 {
            #[cfg(target_arch = "x86_64")]
            if pleach_format::cpu::avx2() {
                // SAFETY: the CPU has AVX2.
                return unsafe { sum_avx2(lines, self) };
            }
            sum(lines, self)
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn sum_avx2(lines: &[Line], form: Form) -> u64 {
        sum(lines, form)
    }

    #[inline(always)]
    fn sum(lines: &[Line], form: Form) -> u64 {
        match (form.streams, form.ahead) {
            (2, _) => streams::<2>(lines),
            (4, _) => streams::<4>(lines),
            (_, 0) => streams::<1>(lines),
            (_, ahead) => {
                let mut words = [0u64; 8];
                let (near, end) = lines.split_at(lines.len().saturating_sub(ahead));
                for (number, line) in near.iter().enumerate() {
                    prefetch(&lines[number + ahead]);
                    add(&mut words, line);
                }
                end.iter().for_each(|line| add(&mut words, line));
                total(words)
            }
        }
    }

    #[inline(always)]
    fn add(words: &mut [u64; 8], line: &Line) {
        let (bytes, _) = line.as_chunks::<8>();
        for (word, bytes) in words.iter_mut().zip(bytes) {
            *word = word.wrapping_add(u64::from_le_bytes(*bytes));
        }
    }

    #[inline(always)]
    fn total(words: [u64; 8]) -> u64 {
        words.into_iter().fold(0, u64::wrapping_add)
    }

    #[inline(always)]
    fn streams<const N: usize>(lines: &[Line]) -> u64 {
        let part = lines.len() / N;
        let mut words = [[0u64; 8]; N];
        let parts: [&[Line]; N] = std::array::from_fn(|stream| &lines[stream * part..][..part]);
        for at in 0..part {
            for (words, lines) in words.iter_mut().zip(parts) {
                add(words, &lines[at]);
            }
        }
        let mut sum = words.into_iter().map(total).fold(0, u64::wrapping_add);
        for line in &lines[part * N..] {
            let mut words = [0; 8];
            add(&mut words, line);
            sum = sum.wrapping_add(total(words));
        }
        sum
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn all_forms_agree() {
            for count in [0, 1, 3, 63, 64, 65, 1000] {
                let lines: Vec<Line> = (0..count).map(|i| [i as u8; 64]).collect();
                let expected = FORMS[0].sum(&lines);
                assert_eq!(expected != 0, count > 1);
                assert!(FORMS.iter().all(|form| form.sum(&lines) == expected), "{count}");
            }
        }
    }
}

/// Sum of keys and values, in their own width: what a scan has to find out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    tuples: u64,
    sum: u64,
}

impl Sum {
    fn of<T: Number>(tuples: &[(T, T)]) -> Self {
        let mut sum = Self::default();
        tuples.iter().for_each(|&(key, value)| sum.one(key, value));
        sum.narrowed::<T>()
    }

    #[inline(always)]
    fn one<T: Number>(&mut self, key: T, value: T) {
        self.tuples += 1;
        self.sum = self.sum.wrapping_add(key.widen()).wrapping_add(value.widen());
    }

    #[inline(always)]
    fn add<T: Number>(&mut self, keys: &[T], values: &[T]) {
        // In the width of the type, so that it compiles to additions of vectors.
        let add = |sum: T, next: &T| T::narrow(sum.widen().wrapping_add(next.widen()));
        let sum = values.iter().fold(keys.iter().fold(T::narrow(0), add), add);
        self.tuples += keys.len() as u64;
        self.sum = self.sum.wrapping_add(sum.widen());
    }

    fn and(self, other: Self) -> Self {
        Self { tuples: self.tuples + other.tuples, sum: self.sum.wrapping_add(other.sum) }
    }

    fn narrowed<T: Number>(self) -> Self {
        Self { sum: T::narrow(self.sum).widen(), ..self }
    }
}

/// Ways to read tuples in order.
enum Way<'a, T: Number + Key + Value> {
    Scan(Typed<'a, T, T>),
    Copy(Typed<'a, T, T>),
    Iterator(Typed<'a, T, T>),
    BTree(&'a BTreeMap<T, T>),
    Arrays(&'a [T], &'a [T]),
    Limit(&'a [Line], sums::Form),
}

impl<T: Number + Key + Value> Way<'_, T> {
    fn name(&self) -> (&'static str, Option<String>) {
        match self {
            Self::Scan(_) => ("pleach", Some("scan".to_owned())),
            Self::Copy(_) => ("pleach", Some("copy_range".to_owned())),
            Self::Iterator(_) => ("pleach", Some("iterator".to_owned())),
            Self::BTree(_) => ("btreemap", None),
            Self::Arrays(..) => ("sorted-arrays", None),
            Self::Limit(_, form) => ("limit-sequential", Some(form.name())),
        }
    }

    /// Bytes that hold a tuple.
    fn bytes_per_tuple(&self) -> f64 {
        match self {
            Self::BTree(_) | Self::Arrays(..) => 2.0 * T::BYTES as f64,
            _ => 64.0 / tuples_per_line::<T>() as f64,
        }
    }

    /// Returns true if parts of a table can be read by threads of their own.
    fn has_parts(&self) -> bool {
        !matches!(self, Self::BTree(_) | Self::Copy(_) | Self::Iterator(_))
    }

    /// Reads the tuples of some ranks. The limit reads their lines, and tells nothing of tuples.
    fn ranks(&self, ranks: Range<usize>) -> Result<Sum, BenchError> {
        let mut sum = Sum::default();
        let wide = ranks.start as u64..ranks.end as u64;
        match self {
            Self::Scan(view) => {
                view.scan(wide, |keys, values| sum.add(keys, values))?;
            }
            Self::Copy(view) => {
                let (mut keys, mut values) =
                    (vec![T::default(); COPY_TUPLES], vec![T::default(); COPY_TUPLES]);
                for rank in ranks.clone().step_by(COPY_TUPLES) {
                    let count = COPY_TUPLES.min(ranks.end - rank);
                    let copied = view.copy_range(rank as u64, &mut keys[..count], &mut values[..count])?;
                    sum.add(&keys[..copied], &values[..copied]);
                }
            }
            Self::Iterator(view) => {
                for tuple in view.ranks(wide) {
                    let (key, value) = tuple?;
                    sum.one(key, value);
                }
            }
            Self::BTree(map) => map.iter().for_each(|(&key, &value)| sum.one(key, value)),
            Self::Arrays(keys, values) => sum.add(&keys[ranks.clone()], &values[ranks]),
            Self::Limit(lines, form) => {
                let n = tuples_per_line::<T>();
                let lines = &lines[ranks.start / n..ranks.end.div_ceil(n).min(lines.len())];
                return Ok(Sum { tuples: ranks.len() as u64, sum: form.sum(lines) });
            }
        }
        Ok(sum.narrowed::<T>())
    }

    /// Reads the tuples from a key on.
    fn after_key(&self, key: T, rank: usize) -> Result<Sum, BenchError> {
        let mut sum = Sum::default();
        match self {
            Self::Scan(_) | Self::Copy(_) | Self::Iterator(_) => {
                let (Self::Scan(view) | Self::Copy(view) | Self::Iterator(view)) = self else {
                    return Ok(sum);
                };
                let rank = view.lower_bound(key)? as usize;
                return self.ranks(rank..rank + RANGE_TUPLES);
            }
            Self::BTree(map) => {
                map.range(key..).take(RANGE_TUPLES).for_each(|(&key, &value)| sum.one(key, value));
            }
            Self::Arrays(keys, _) => {
                let rank = keys.partition_point(|&other| other < key);
                return self.ranks(rank..rank + RANGE_TUPLES);
            }
            Self::Limit(..) => return self.ranks(rank..rank + RANGE_TUPLES),
        }
        Ok(sum.narrowed::<T>())
    }
}

fn tuples_per_line<T: Number>() -> usize {
    32 / T::BYTES
}

/// One way on a number of threads, and its times for all tuples and for ranges.
struct Entry<'a, T: Number + Key + Value> {
    way: Way<'a, T>,
    pool: Option<&'a ThreadPool>,
    threads: usize,
    scans: Vec<f64>,
    ranges: Vec<f64>,
}

impl<T: Number + Key + Value> Entry<'_, T> {
    fn scan(&self, tuples: usize) -> Result<Sum, BenchError> {
        let Some(pool) = self.pool else { return self.way.ranks(0..tuples) };
        // Each thread its own part, whole lines.
        let part = tuples.div_ceil(self.threads).next_multiple_of(tuples_per_line::<T>());
        let sums = pool.broadcast(|context| {
            let start = (part * context.index()).min(tuples);
            self.way.ranks(start..(start + part).min(tuples))
        });
        let sum =
            sums.into_iter().try_fold(Sum::default(), |sum, part| Ok::<_, BenchError>(sum.and(part?)))?;
        Ok(if matches!(self.way, Way::Limit(..)) { sum } else { sum.narrowed::<T>() })
    }

    fn is_limit(&self) -> bool {
        matches!(self.way, Way::Limit(..))
    }

    fn row(&self, operation: &'static str, base: &Row, tuples: usize, ns: &[f64]) -> Row {
        let (engine, detail) = self.way.name();
        let row = Row { engine: engine.to_owned(), operation, threads: self.threads, detail, ..base.clone() };
        let row = row.timed(tuples, ns);
        let bytes = self.way.bytes_per_tuple();
        let facts = Facts { gb_per_s: Some(bytes / row.ns_per_query), ..Facts::default() };
        Row { facts, bytes_per_tuple: bytes, ..row }
    }
}

struct Scans;

impl Measure for Scans {
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
        let path = folder.path().join("range.pleach");
        let start = Instant::now();
        let summary = pleach_builder::build_slice(&tuples, &path, &BuildOptions::default())?;
        let build_s = start.elapsed().as_secs_f64();
        let keys: Vec<T> = tuples.iter().map(|tuple| tuple.0).collect();
        let values: Vec<T> = tuples.iter().map(|tuple| tuple.1).collect();
        options.told.step(&format!("{label}: building btreemap"))?;
        let has_btree = !options.quick || count <= QUICK_BTREE_TUPLES_MAX;
        let btree: Option<BTreeMap<T, T>> = has_btree.then(|| tuples.iter().copied().collect());
        // Starts of the ranges, and their sums.
        let room = tuples.len().saturating_sub(RANGE_TUPLES) as u64;
        let starts: Vec<(usize, Sum)> = (1..=RANGES as u64)
            .filter(|_| tuples.len() >= RANGE_TUPLES)
            .map(|i| data::below(data::mix64(i), room + 1) as usize)
            .map(|rank| (rank, Sum::of(&tuples[rank..rank + RANGE_TUPLES])))
            .collect();
        if starts.is_empty() {
            report.notes.push(format!("{label}: no ranges of {RANGE_TUPLES}, there are fewer tuples"));
        }
        let expected = Sum::of(&tuples);
        let tuples = tuples.len();

        let index = Index::open(&path)?;
        let lines = MappedLines::open(&path, index.header())?;
        let limit = sums::FORMS[0].sum(lines.lines());
        let mut pools = Vec::new();
        for &threads in options.threads.iter().filter(|&&threads| threads > 1) {
            pools.push(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?);
        }
        let mut entries = Vec::new();
        for pool in std::iter::once(None).chain(pools.iter().map(Some)) {
            let threads = pool.map_or(1, ThreadPool::current_num_threads);
            let view = index.typed::<T, T>()?;
            let mut ways = vec![Way::Scan(view), Way::Copy(view), Way::Iterator(view)];
            ways.push(Way::Arrays(&keys, &values));
            ways.extend(btree.as_ref().map(Way::BTree));
            ways.extend(sums::FORMS.map(|form| Way::Limit(lines.lines(), form)));
            ways.retain(|way| threads == 1 || way.has_parts());
            let entry = |way| Entry { way, pool, threads, scans: Vec::new(), ranges: Vec::new() };
            entries.extend(ways.into_iter().map(entry));
        }

        // The first turn fills the caches and is not counted.
        for repetition in 0..=options.repetitions {
            options.told.step(&format!("{label}: repetition {repetition} of {}", options.repetitions))?;
            for entry in &mut entries {
                let (name, _) = entry.way.name();
                let start = Instant::now();
                let sum = entry.scan(tuples)?;
                let elapsed = start.elapsed().as_nanos() as f64 / tuples as f64;
                let right = if entry.is_limit() { limit } else { expected.sum };
                expect_equal(name, "tuples in order", tuples, sum.tuples, tuples as u64)?;
                expect_equal(name, "sum of all", tuples, sum.sum, right)?;
                if repetition > 0 {
                    entry.scans.push(elapsed);
                }
                if entry.threads > 1 || starts.is_empty() {
                    continue;
                }
                let mut elapsed = 0.0;
                for (rank, right) in &starts {
                    let start = Instant::now();
                    let sum = entry.way.after_key(keys[*rank], *rank)?;
                    elapsed += start.elapsed().as_nanos() as f64;
                    if !entry.is_limit() {
                        expect_equal(name, "sum of a range", RANGES, sum.sum, right.sum)?;
                    }
                }
                if repetition > 0 {
                    entry.ranges.push(elapsed / (RANGES * RANGE_TUPLES) as f64);
                }
            }
        }

        let types = (<T as Key>::TYPE, <T as Value>::TYPE);
        let base = Row { build_s, ..Row::new("", "scan", types, summary.tuples) };
        for (operation, queries) in [("scan", tuples), ("range", RANGE_TUPLES)] {
            let mut limits: Vec<Row> = Vec::new();
            for entry in &entries {
                let ns = if operation == "scan" { &entry.scans } else { &entry.ranges };
                if ns.is_empty() {
                    continue;
                }
                let row = entry.row(operation, &base, queries, ns);
                if !entry.is_limit() {
                    report.rows.push(row);
                    continue;
                }
                // The best of all forms is the limit.
                match limits.iter_mut().find(|best| best.threads == row.threads) {
                    Some(best) if best.ns_per_query <= row.ns_per_query => {}
                    Some(best) => *best = row,
                    None => limits.push(row),
                }
            }
            report.rows.extend(limits);
        }
        Ok(())
    }
}
