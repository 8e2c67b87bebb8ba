//! Changes: the next generation of a file, beside a plain copy of it, and batches beside stores that update
//! in place.
//!
//! Three questions, each with (u64,u64) tuples. What does a rebuild with one change in a hundred tuples cost, beside a
//! copy of the file by calls of 2 MiB that is synced? The two take turns. Which way is fastest for how many
//! changes: a merge or, where values alone change, a patch? And how many operations a second are there in the
//! batch of the Harmonia paper (Yan et al., PPoPP 2019, section 5.4: 4096K operations, one in twenty an insert): by
//! a merge, and by LMDB and redb in one transaction? Each once durable, on the disk when the time ends, and once
//! without waiting for the disk. Sorting a batch is a part of all times. A tree in memory ([`InMemory`]) can take
//! turns with the rebuilds.
//!
//! Afterwards keys of the batch are looked up in each result.

use crate::build::copy;
use crate::data::{key, mix64, value};
use crate::options::{BenchOptions, expect_equal};
use crate::report::{Facts, Report, Row};
use crate::{BenchError, Machine, data};
use pleach::{Index, KeyType, ValueType};
use pleach_builder::rebuild::{Method, RebuildOptions, rebuild};
use pleach_builder::source::{Schema, Source};
use pleach_builder::{BuildOptions, Chunk, ChunkSource, Column, Op, Silent};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Operations of the paper's batch.
const BATCH: u64 = 4096 << 10;
/// One of this many operations is an insert.
const INSERTS: u64 = 20;
/// Keys that are looked up in each result.
const CHECKED: usize = 1 << 12;
const TYPES: (KeyType, ValueType) = (KeyType::U64, ValueType::U64);

type Tuple = (u64, u64);
/// An operation, a key, a value.
type Row3 = (Op, u64, u64);

/// A tree in memory that takes batches of changes.
pub trait InMemory {
    /// Its name in reports.
    fn engine(&self) -> &'static str;

    /// Loads `tuples`, which ascend, applies a batch of puts, and writes the tree to `file` if there is one.
    /// Returns the seconds of all but the load, and the values of some keys afterwards.
    ///
    /// # Errors
    /// [`BenchError`] if the tree refuses the tuples or the batch, or the file cannot be written.
    fn apply(
        &self,
        tuples: &[(u64, u64)],
        puts: &[(u64, u64)],
        file: Option<&Path>,
        keys: &[u64],
    ) -> Result<(f64, Vec<Option<u64>>), BenchError>;
}

/// Measures everything that `options` ask for, on all threads.
///
/// # Errors
/// [`BenchError`]: whatever keeps a file from being built, copied, rebuilt or read, and a wrong answer.
pub fn run(options: &BenchOptions<'_>) -> Result<Report, BenchError> {
    run_beside(options, None)
}

/// Measures the same as [`run`], with a tree that takes turns with the rebuilds.
///
/// # Errors
/// Those of [`run`], and those of the tree.
pub fn run_beside(options: &BenchOptions<'_>, tree: Option<&dyn InMemory>) -> Result<Report, BenchError> {
    let mut report = Report { machine: Machine::this(), rows: Vec::new(), notes: Vec::new() };
    if cfg!(debug_assertions) {
        report
            .notes
            .push("this is a debug build: build with --release for times that mean something".to_owned());
    }
    if options.tuples.iter().any(|tuples| !(100..=1 << 31).contains(tuples)) || options.repetitions == 0 {
        return Err(BenchError::Options("use 100 to 2^31 tuples, and at least one repetition".to_owned()));
    }
    for &count in &options.tuples {
        let bench = Bench::new(options, tree, count)?;
        bench.beside_copy(&mut report)?;
        bench.methods(&mut report)?;
        bench.batches(&mut report)?;
    }
    Ok(report)
}

/// A table, and its file.
struct Bench<'a> {
    options: &'a BenchOptions<'a>,
    tree: Option<&'a dyn InMemory>,
    count: u64,
    tuples: Vec<Tuple>,
    folder: crate::Folder,
    file_bytes: u64,
}

/// Value of a key after operation `at`.
fn changed(key: u64, at: u64) -> u64 {
    value::<u64, u64>(key) ^ at << 1 | 1
}

/// The last value that a batch gives each of some of its keys; `None` if it deletes them.
fn expected(batch: &[Row3]) -> Vec<(u64, Option<u64>)> {
    let step = (batch.len() / CHECKED).max(1);
    let mut last: std::collections::HashMap<u64, Option<u64>> =
        batch.iter().step_by(step).map(|&(_, key, _)| (key, None)).collect();
    for &(op, key, value) in batch {
        if let Some(last) = last.get_mut(&key) {
            *last = (op != Op::Del).then_some(value);
        }
    }
    last.into_iter().collect()
}

fn check(engine: &str, path: &Path, batch: &[Row3]) -> Result<(), BenchError> {
    let index = Index::open(path)?;
    let view = index.typed::<u64, u64>()?;
    for (key, wanted) in expected(batch) {
        let found = view.get(key)?;
        compare(engine, key, found, wanted)?;
    }
    Ok(())
}

fn compare(engine: &str, key: u64, found: Option<u64>, wanted: Option<u64>) -> Result<(), BenchError> {
    if found == wanted {
        return Ok(());
    }
    Err(BenchError::Wrong {
        engine: engine.to_owned(),
        query: 0,
        queries: CHECKED,
        key: key.to_string(),
        found: format!("{found:?}"),
        expected: format!("{wanted:?}"),
    })
}

fn source(batch: &[Row3]) -> Box<dyn Source> {
    let chunks: Vec<Chunk> = batch
        .chunks(1 << 16)
        .map(|batch| Chunk {
            keys: Column::U64(batch.iter().map(|row| row.1).collect()),
            values: Column::U64(batch.iter().map(|row| row.2).collect()),
            ops: batch.iter().map(|row| row.0).collect(),
        })
        .collect();
    Box::new(ChunkSource::new(Schema::plain(TYPES.0, TYPES.1, Some(batch.len() as u64)), chunks))
}

impl<'a> Bench<'a> {
    fn new(
        options: &'a BenchOptions<'a>,
        tree: Option<&'a dyn InMemory>,
        count: u64,
    ) -> Result<Self, BenchError> {
        options.told.step(&format!("{count} x (u64,u64): building"))?;
        let tuples: Vec<Tuple> = data::tuples(count);
        let folder = crate::folder(options.dir.as_deref())?;
        let base = folder.path().join("base.pleach");
        let summary = pleach_builder::build_slice(&tuples, &base, &BuildOptions::default())?;
        Ok(Self { options, tree, count, tuples, folder, file_bytes: summary.file_bytes })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn told(&self, what: &str) -> Result<(), BenchError> {
        self.options.told.step(&format!("{} x (u64,u64): {what}", self.count))
    }

    /// Seconds of a rebuild of the base, whose result is checked.
    fn rebuild(&self, batch: &[Row3], method: Method, sync: bool) -> Result<f64, BenchError> {
        let target = self.path("next.pleach");
        let failed = |source| BenchError::Io { operation: "link to", path: target.clone(), source };
        let _ = std::fs::remove_file(&target);
        // The rename replaces this name and leaves the base.
        std::fs::hard_link(self.path("base.pleach"), &target).map_err(failed)?;
        let changes = source(batch);
        let options = RebuildOptions { method, sync, ..RebuildOptions::default() };
        let start = Instant::now();
        rebuild(&target, Box::new(move |_: &Schema| Ok(changes)), &options, &Silent)?;
        let took = start.elapsed().as_secs_f64();
        check("pleach", &target, batch)?;
        Ok(took)
    }

    fn row(
        &self,
        engine: &str,
        operation: &'static str,
        detail: &str,
        operations: usize,
        seconds: &[f64],
    ) -> Row {
        let ns: Vec<f64> = seconds.iter().map(|seconds| seconds * 1e9 / operations as f64).collect();
        let row = Row::new(engine, operation, TYPES, self.count).timed(operations, &ns);
        let build_s = row.ns_per_query * operations as f64 / 1e9;
        let bytes_per_tuple = self.file_bytes as f64 / self.count as f64;
        let facts = Facts { gb_per_s: Some(self.file_bytes as f64 / build_s / 1e9), ..Facts::default() };
        let on_all_threads = engine == "pleach" || self.tree.is_some_and(|tree| tree.engine() == engine);
        let threads =
            if on_all_threads { std::thread::available_parallelism().map_or(1, usize::from) } else { 1 };
        Row {
            threads,
            batch: operations,
            detail: Some(detail.to_owned()),
            facts,
            build_s,
            bytes_per_tuple,
            ..row
        }
    }

    /// `operations` changes: half put a key that is there, a quarter put a new one, a quarter delete.
    fn mixed(&self, operations: u64) -> Vec<Row3> {
        (0..operations)
            .map(|at| {
                let drawn = mix64(at ^ 0x00C0_FFEE);
                let present: u64 = key(drawn % self.count + 1);
                match mix64(drawn) % 4 {
                    0 => (Op::Del, present, 0),
                    1 => (Op::Put, key(self.count + 1 + at), changed(drawn, at)),
                    _ => (Op::Put, present, changed(present, at)),
                }
            })
            .collect()
    }

    fn beside_copy(&self, report: &mut Report) -> Result<(), BenchError> {
        let batch = self.mixed(self.count / 100);
        let target = self.path("copy");
        let failed = |source| BenchError::Io { operation: "copy to", path: target.clone(), source };
        let (mut rebuilds, mut copies) = (Vec::new(), Vec::new());
        for repetition in 0..=self.options.repetitions {
            self.told(&format!("rebuild beside copy, {repetition} of {}", self.options.repetitions))?;
            let rebuilt = self.rebuild(&batch, Method::Merge, true)?;
            let start = Instant::now();
            let copied = copy(&self.path("base.pleach"), &target).map_err(failed)?;
            let took = start.elapsed().as_secs_f64();
            expect_equal("copy", "bytes", 1, copied, self.file_bytes)?;
            std::fs::remove_file(&target).map_err(failed)?;
            // The first turn makes the folder's blocks and fills caches.
            if repetition > 0 {
                rebuilds.push(rebuilt);
                copies.push(took);
            }
        }
        report.rows.push(self.row("pleach", "rebuild", "1% changes", batch.len(), &rebuilds));
        report.rows.push(self.row("copy", "rebuild", "bytes of the base", batch.len(), &copies));
        Ok(())
    }

    fn methods(&self, report: &mut Report) -> Result<(), BenchError> {
        let repetitions = if self.options.quick { 1 } else { 3 };
        let sizes = [0, 6, 10, 14, 18, 20, 22, 24, 26].map(|bits| 1u64 << bits);
        for operations in sizes.into_iter().filter(|&operations| operations <= self.count) {
            self.told(&format!("a batch of {operations}"))?;
            let puts: Vec<Row3> = (0..operations)
                .map(|at| {
                    let key = key(at * (self.count / operations) + 1);
                    (Op::Put, key, changed(key, at))
                })
                .collect();
            let mut times = [const { Vec::new() }; 3];
            for _ in 0..repetitions {
                for (method, times) in [Method::Merge, Method::Patch].into_iter().zip(&mut times) {
                    times.push(self.rebuild(&puts, method, true)?);
                }
                times[2].extend(self.tree(&puts, true)?.map(|(_, seconds)| seconds));
            }
            let rows =
                [("merge", &times[0]), ("patch", &times[1]), ("a tree in memory, then a file", &times[2])];
            report.rows.extend(
                rows.into_iter()
                    .filter(|(_, times)| !times.is_empty())
                    .map(|(detail, times)| self.row("pleach", "rebuild-puts", detail, puts.len(), times)),
            );
        }
        Ok(())
    }

    fn batches(&self, report: &mut Report) -> Result<(), BenchError> {
        let operations = if self.options.quick { BATCH.min(self.count / 4) } else { BATCH };
        let batch: Vec<Row3> = (0..operations)
            .map(|at| {
                let drawn = mix64(at ^ 0xBA7C);
                let is_insert = drawn.is_multiple_of(INSERTS);
                let key = key(if is_insert { self.count + 1 + at } else { mix64(drawn) % self.count + 1 });
                (Op::Put, key, changed(key, at))
            })
            .collect();
        let repetitions = if self.options.quick { 1 } else { 3 };
        for (operation, sync) in [("batch-durable", true), ("batch-no-sync", false)] {
            let (mut merges, mut trees) = (Vec::new(), Vec::new());
            for repetition in 0..repetitions {
                self.told(&format!("{operation}, {repetition} of {repetitions}"))?;
                merges.push(self.rebuild(&batch, Method::Merge, sync)?);
                trees.extend(self.tree(&batch, sync)?);
            }
            report.rows.push(self.row("pleach", operation, "merge", batch.len(), &merges));
            if let Some(&(engine, _)) = trees.first() {
                let detail = if sync { "the paper's, then a file" } else { "the paper's, in memory" };
                let seconds: Vec<f64> = trees.iter().map(|tree| tree.1).collect();
                report.rows.push(self.row(engine, operation, detail, batch.len(), &seconds));
            }
        }
        self.stores(&batch, report)
    }

    /// Name and seconds of the tree in memory, which is also written if that is asked for; `None` without a tree.
    fn tree(&self, batch: &[Row3], file: bool) -> Result<Option<(&'static str, f64)>, BenchError> {
        let Some(tree) = self.tree else { return Ok(None) };
        let puts: Vec<Tuple> = batch.iter().map(|&(_, key, value)| (key, value)).collect();
        let wanted = expected(batch);
        let keys: Vec<u64> = wanted.iter().map(|probe| probe.0).collect();
        let path = self.path("tree.pleach");
        let (took, found) = tree.apply(&self.tuples, &puts, file.then_some(path.as_path()), &keys)?;
        for ((key, wanted), found) in wanted.into_iter().zip(found) {
            compare(tree.engine(), key, found, wanted)?;
        }
        Ok(Some((tree.engine(), took)))
    }

    #[cfg(feature = "stores")]
    fn stores(&self, batch: &[Row3], report: &mut Report) -> Result<(), BenchError> {
        use pleach_peers::{Engine, Updates};
        let probes = expected(batch);
        let mut sorted: Vec<Tuple> = batch.iter().map(|&(_, key, value)| (key, value)).collect();
        for engine in [Engine::Lmdb, Engine::Redb] {
            for (operation, durable) in [("batch-durable", true), ("batch-no-sync", false)] {
                self.told(&format!("{} {operation}", engine.name()))?;
                let folder = crate::folder(self.options.dir.as_deref())?;
                let updates = Updates::build(engine, &self.tuples, folder.path())?;
                // In the order of the keys, which is what both like best.
                sorted.clear();
                sorted.extend(batch.iter().map(|&(_, key, value)| (key, value)));
                let start = Instant::now();
                sorted.sort_by_key(|tuple| tuple.0);
                let found = updates.apply(
                    &sorted,
                    durable,
                    &start,
                    &probes.iter().map(|probe| probe.0).collect::<Vec<_>>(),
                )?;
                for (&(key, wanted), &found) in probes.iter().zip(&found.1) {
                    compare(engine.name(), key, found, wanted)?;
                }
                let detail = if durable { "one transaction" } else { "one transaction, no sync" };
                report.rows.push(self.row(engine.name(), operation, detail, batch.len(), &[found.0]));
            }
        }
        Ok(())
    }

    #[cfg(not(feature = "stores"))]
    fn stores(&self, _batch: &[Row3], report: &mut Report) -> Result<(), BenchError> {
        let note = "LMDB and redb are not part of this build: cargo run --release --features stores";
        report.notes.push(note.to_owned());
        Ok(())
    }
}
