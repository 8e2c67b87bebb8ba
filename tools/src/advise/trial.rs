//! Builds of tables in files without names, and the time of look-ups in them.

use super::grow::Grown;
use super::input::{Replay, Sample};
use crate::errors::{build_failure, opening, reading, typing};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::random::Random;
use pleach::{Index, Key, OpenError, ReadError, Typed, Value, ValueType};
use pleach_builder::source::Source;
use pleach_builder::storage::UnnamedStorage;
use pleach_builder::{BuildError, BuildOptions, Observer, Phase, Summary};
use std::path::Path;
use std::time::{Duration, Instant};

/// Keys of a batch.
const BATCH: usize = 1 << 14;
/// Keys that are looked up, at most: of small and of large tables, so that what they read of a large one does not stay
/// in the caches of most processors; and of byte strings.
const QUERIES: [(u64, usize); 2] =
    if IS_MEASURED { [(1 << 22, 1 << 18), (u64::MAX, 1 << 20)] } else { [(u64::MAX, BATCH); 2] };
const STRING_QUERIES: usize = if IS_MEASURED { 1 << 18 } else { BATCH };
/// Number of times that they are looked up, at least.
const TURNS: usize = if IS_MEASURED { 7 } else { 1 };
/// Time for that, at least and at most: long enough for a moment in which nothing else runs.
const PATIENCE: [Duration; 2] =
    if IS_MEASURED { [Duration::from_millis(150), Duration::from_millis(400)] } else { [Duration::ZERO; 2] };
/// False in an unoptimised program, whose times are of no use: it looks up fewer keys, once.
const IS_MEASURED: bool = !cfg!(debug_assertions);

/// Moments at which the most important index is measured, and the pauses between them.
const MOMENTS: usize = 3;
const PAUSE: Duration = Duration::from_millis(200);
/// Tuples below which one moment is enough: such files are in the caches.
pub const SMALL: u64 = 1 << 16;

/// Rows to build from.
#[derive(Clone, Copy)]
pub enum Rows<'s> {
    /// All of a sample.
    All(&'s Sample),
    /// About so many of them.
    Some(&'s Sample, u64),
    /// About so many that are made up.
    Grown(&'s Sample, u64),
}

impl Rows<'_> {
    fn source(self) -> Option<Box<dyn Source>> {
        Some(match self {
            Self::All(sample) => Box::new(Replay::all(sample)),
            Self::Some(sample, rows) => Box::new(Replay::some(sample, rows)),
            Self::Grown(sample, rows) => Box::new(Grown::new(sample, rows)?),
        })
    }
}

/// An index that was built.
pub struct Trial {
    pub index: Index,
    pub summary: Summary,
    pub took: Duration,
}

impl Trial {
    /// Returns the bytes of the file for each tuple.
    pub fn bytes_per_tuple(&self) -> f64 {
        self.summary.file_bytes as f64 / self.summary.tuples.max(1) as f64
    }
}

/// A build that must end in time.
struct Watch<'p> {
    progress: &'p Progress,
    until: Option<Instant>,
}

impl Observer for Watch<'_> {
    fn progress(&self, _phase: Phase, _done: u64, _total: Option<u64>) {}

    fn cancelled(&self) -> bool {
        self.progress.is_interrupted() || self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Why there is no trial.
pub enum Missing {
    /// There was no time, or rows cannot be made up.
    Time,
    /// The build would fail.
    Refused(Failure),
}

/// Builds an index in a file without a name in `folder`, or in memory if that is not possible. `until` ends it.
pub fn build(
    rows: Rows<'_>,
    options: &BuildOptions,
    folder: &Path,
    (progress, until): (&Progress, Option<Instant>),
) -> Result<Trial, Missing> {
    let watch = Watch { progress, until };
    let started = Instant::now();
    let refused = |error: &BuildError| match error {
        BuildError::Interrupted if progress.is_interrupted() => Missing::Refused(Failure::Interrupted),
        BuildError::Interrupted => Missing::Time,
        error => Missing::Refused(build_failure(error)),
    };
    let opened = |error: &OpenError| Missing::Refused(opening(error));
    let storage = UnnamedStorage::new(folder);
    let target = storage.target().to_owned();
    let mut source = rows.source().ok_or(Missing::Time)?;
    let built = pleach_builder::build_with_storage(&mut *source, &target, options, &watch, &storage);
    match built {
        Ok(summary) => {
            let took = started.elapsed();
            if let Some(file) = storage.into_file() {
                let index = Index::options().open_file(&file, &target).map_err(|error| opened(&error))?;
                return Ok(Trial { index, summary, took });
            }
        }
        // The folder may be read-only or full: what is asked is what a build would do if it were not.
        Err(BuildError::Io { .. }) => {}
        Err(error) => return Err(refused(&error)),
    }
    let mut source = rows.source().ok_or(Missing::Time)?;
    let storage = pleach_builder::storage::MemoryStorage::default();
    let started = Instant::now();
    let built = pleach_builder::build_with_storage(&mut *source, &target, options, &watch, &storage);
    let summary = built.map_err(|error| refused(&error))?;
    let took = started.elapsed();
    let bytes = storage.take(&target).unwrap_or_default();
    let index = Index::options().from_bytes(bytes).map_err(|error| opened(&error))?;
    Ok(Trial { index, summary, took })
}

/// Returns the nanoseconds of a look-up of a random key that is there, one of many, on one thread; `None` if there is
/// none. Ends soon after `until`.
pub fn look_up_ns(index: &Index, until: Instant) -> Result<Option<f64>, Failure> {
    if index.is_empty() {
        return Ok(None);
    }
    pleach::contain_sigbus();
    let failed = reading(index.path());
    let until = until.min(Instant::now() + PATIENCE[1]);
    let ns = if index.key_type().is_bytes() {
        of_strings(index, until)
    } else {
        let found = pleach::with_typed!(index, |view| of_numbers(&view, until));
        found.map_err(typing(index.path()))?
    };
    ns.map(Some).map_err(failed)
}

/// Measures at several moments, as long as there is time: what else runs on a processor changes within seconds.
pub fn look_up_ns_at_rest(index: &Index, until: Instant) -> Result<Option<f64>, Failure> {
    let mut best = look_up_ns(index, until)?;
    for _ in 1..MOMENTS {
        if index.len() < SMALL || Instant::now() + PAUSE + PATIENCE[1] >= until {
            break;
        }
        std::thread::sleep(PAUSE);
        let next = look_up_ns(index, until)?;
        best = best.zip(next).map(|(best, next)| best.min(next));
    }
    Ok(best)
}

/// Returns random ranks.
fn ranks(len: u64, count: usize) -> Vec<u64> {
    let mut random = Random::new(0);
    (0..count).map(|_| random.below(len)).collect()
}

/// Returns the nanoseconds of a key, of `count` in batches: of each batch, the fastest of its turns counts, as others
/// were disturbed.
fn fastest(
    count: usize,
    until: Instant,
    mut search: impl FnMut(std::ops::Range<usize>) -> Result<(), ReadError>,
) -> Result<f64, ReadError> {
    let batches = count.div_ceil(BATCH);
    let range = |batch: usize| batch * BATCH..count.min((batch + 1) * BATCH);
    // The first turn brings the pages of the file.
    (0..batches).try_for_each(|batch| search(range(batch)))?;
    let mut best = vec![Duration::MAX; batches];
    let enough = Instant::now() + PATIENCE[0];
    for turn in 1.. {
        for (batch, best) in best.iter_mut().enumerate() {
            let started = Instant::now();
            search(range(batch))?;
            *best = started.elapsed().min(*best);
        }
        let now = Instant::now();
        if now >= until || turn >= TURNS && now >= enough {
            break;
        }
    }
    Ok(best.iter().sum::<Duration>().as_nanos() as f64 / count as f64)
}

fn of_numbers<K: Key, V: Value>(view: &Typed<'_, K, V>, until: Instant) -> Result<f64, ReadError> {
    let len = view.len();
    let count = QUERIES.into_iter().find(|&(limit, _)| len <= limit).map_or(BATCH, |(_, count)| count);
    let ranks = ranks(len, count);
    let (mut keys, mut values) = (vec![K::default(); count], vec![V::default(); count]);
    for at in (0..count).step_by(BATCH) {
        let end = (at + BATCH).min(count);
        view.select_batch(&ranks[at..end], &mut keys[at..end], &mut values[at..end])?;
    }
    let mut present = vec![0u64; BATCH / 64];
    let mut found = vec![0u64; BATCH];
    let intervals = view.intervals()?;
    let has_values = !matches!(view.index().value_type(), ValueType::None);
    fastest(count, until, |batch| {
        let keys = &keys[batch];
        let asked = match &intervals {
            Some(intervals) => intervals.find_batch(keys, &mut found),
            // Values in a column are read by rank.
            None if has_values && size_of::<V>() == 0 => view.rank_batch(keys, &mut found, &mut present),
            None => view.get_batch(keys, &mut values[..BATCH], &mut present),
        };
        asked.map(|_| ())
    })
}

fn of_strings(index: &Index, until: Instant) -> Result<f64, ReadError> {
    let Ok(view) = index.strings::<()>() else { return Ok(f64::INFINITY) };
    let mut keys: Vec<Vec<u8>> = Vec::with_capacity(STRING_QUERIES);
    for rank in ranks(index.len(), STRING_QUERIES) {
        keys.push(view.key(rank)?.unwrap_or_default());
    }
    let mut present = vec![0u64; BATCH / 64];
    let mut found = vec![0u64; BATCH];
    fastest(keys.len(), until, |batch| view.rank_batch(&keys[batch], &mut found, &mut present).map(|_| ()))
}
