//! Options that the smaller benchmarks share: sizes, types, threads, repetitions, a folder, an observer.

use crate::report::Report;
use crate::{BenchError, Machine, Told};
use pleach::{Key, KeyType, Value};
use pleach_peers::Number;
use std::path::PathBuf;

/// Options of [`crate::range`], [`crate::latency`], [`crate::open`] and [`crate::build`].
pub struct BenchOptions<'a> {
    /// Tuples of the tables.
    pub tuples: Vec<u64>,
    /// Key types: `u32`, `u64`; values are of the same type.
    pub key_types: Vec<KeyType>,
    /// Numbers of threads, where more than one can be used.
    pub threads: Vec<usize>,
    /// Number of repetitions; the median is reported.
    pub repetitions: usize,
    /// Folder for the files, on a real file system; the system's temporary folder if `None`.
    pub dir: Option<PathBuf>,
    /// Leave out what takes long.
    pub quick: bool,
    /// Receives the steps of the run.
    pub told: Told<'a>,
}

impl BenchOptions<'_> {
    /// Tables of 2^26 tuples, or of 2^22 with `quick`; one thread and all.
    #[must_use]
    pub fn new(quick: bool) -> Self {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            tuples: vec![if quick { 1 << 22 } else { 1 << 26 }],
            key_types: vec![KeyType::U32, KeyType::U64],
            threads: if all > 1 { vec![1, all] } else { vec![1] },
            repetitions: 5,
            dir: None,
            quick,
            told: Told::default(),
        }
    }

    /// Measures each data set by `measure`.
    ///
    /// # Errors
    /// [`BenchError::Options`] for what cannot be measured, and those of `measure`.
    pub(crate) fn each<M: Measure>(&self, measure: &M) -> Result<Report, BenchError> {
        let refuse = |text: String| Err(BenchError::Options(text));
        if let Some(other) = self.key_types.iter().find(|kind| !matches!(kind, KeyType::U32 | KeyType::U64)) {
            return refuse(format!("key type {other} is not measured here: use u32 or u64"));
        }
        if self.tuples.iter().any(|&tuples| tuples == 0 || tuples > 1 << 31) {
            return refuse("use 1 to 2^31 tuples".to_owned());
        }
        if self.repetitions == 0 || self.threads.contains(&0) {
            return refuse("repetitions and threads must be at least 1".to_owned());
        }
        let mut report = Report { machine: Machine::this(), rows: Vec::new(), notes: Vec::new() };
        report.warn_of_debug_builds();
        for &tuples in &self.tuples {
            for &key_type in &self.key_types {
                match key_type {
                    KeyType::U32 => measure.data_set::<u32>(self, tuples, &mut report)?,
                    _ => measure.data_set::<u64>(self, tuples, &mut report)?,
                }
            }
        }
        Ok(report)
    }
}

/// A benchmark of one data set.
pub(crate) trait Measure {
    /// Adds rows for `count` tuples of two `T`.
    fn data_set<T: Number + Key + Value>(
        &self,
        options: &BenchOptions<'_>,
        count: u64,
        report: &mut Report,
    ) -> Result<(), BenchError>;
}

/// Returns the name of a table of `tuples` tuples while it is measured.
pub(crate) fn label<T: Key>(count: u64) -> String {
    format!("{count} x ({0},{0})", T::TYPE)
}

/// An error unless the answer is right.
pub(crate) fn expect_equal(
    engine: &str,
    what: &str,
    queries: usize,
    found: u64,
    expected: u64,
) -> Result<(), BenchError> {
    if found == expected {
        return Ok(());
    }
    Err(BenchError::Wrong {
        engine: engine.to_owned(),
        query: 0,
        queries,
        key: what.to_owned(),
        found: found.to_string(),
        expected: expected.to_string(),
    })
}
