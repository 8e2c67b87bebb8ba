//! Building: from tuples in memory to a synced file, beside a plain copy of the bytes of the result.
//!
//! Sorted and random input take turns with the copy, whose calls are of 2 MiB and which syncs its file and its
//! folder: whatever else happens on the disk hits all three. The last file of each kind is opened, and keys drawn
//! from the input are looked up in it. Times are by tuple; the bytes a nanosecond are those of the result.

use crate::lookup::check_answers;
use crate::options::{BenchOptions, Measure, expect_equal, label};
use crate::report::{Facts, Report, Row};
use crate::{BenchError, data};
use pleach::{Index, Key, Value};
use pleach_builder::BuildOptions;
use pleach_peers::Number;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

/// Bytes of a call of the copy.
const COPY_BYTES: usize = 2 << 20;
/// Keys that are looked up in each file.
const CHECKED: usize = 1 << 16;

/// Measures everything that `options` ask for, on all threads.
///
/// # Errors
/// [`BenchError`]: whatever keeps a file from being built, copied or read, and a wrong answer.
pub fn run(options: &BenchOptions<'_>) -> Result<Report, BenchError> {
    options.each(&Building)
}

/// Copies a file and syncs the copy and its folder.
pub(crate) fn copy(from: &Path, to: &Path) -> std::io::Result<u64> {
    let (mut from, mut target) = (File::open(from)?, File::create(to)?);
    let mut buffer = vec![0; COPY_BYTES];
    let mut copied = 0;
    loop {
        let bytes = from.read(&mut buffer)?;
        if bytes == 0 {
            break;
        }
        target.write_all(&buffer[..bytes])?;
        copied += bytes as u64;
    }
    target.sync_all()?;
    if let Some(folder) = to.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(copied)
}

/// Looks keys up in a file.
fn check<T: Number + Key + Value>(path: &Path, tuples: u64, queries: &[T]) -> Result<(), BenchError> {
    let index = Index::open(path)?;
    expect_equal("pleach", "tuples", 1, index.len(), tuples)?;
    let mut values = vec![T::default(); queries.len()];
    let mut present = vec![0; queries.len().div_ceil(64)];
    index.typed::<T, T>()?.get_batch(queries, &mut values, &mut present)?;
    check_answers("pleach", queries, &values, &present)
}

struct Building;

impl Measure for Building {
    fn data_set<T: Number + Key + Value>(
        &self,
        options: &BenchOptions<'_>,
        count: u64,
        report: &mut Report,
    ) -> Result<(), BenchError> {
        let label = label::<T>(count);
        options.told.step(&format!("{label}: generating"))?;
        let sorted: Vec<(T, T)> = data::tuples(count);
        let random: Vec<(T, T)> = (1..=count).map(data::key).map(|key: T| (key, data::value(key))).collect();
        let queries = data::hits(&sorted, CHECKED);
        let folder = crate::folder(options.dir.as_deref())?;
        let path = folder.path().join("build.pleach");
        let target = folder.path().join("copy");
        let failed = |source| BenchError::Io { operation: "copy to", path: target.clone(), source };

        let mut times = [const { Vec::new() }; 3];
        let mut bytes = 0;
        for repetition in 0..=options.repetitions {
            options.told.step(&format!("{label}: repetition {repetition} of {}", options.repetitions))?;
            let mut elapsed = [0.0; 3];
            for (tuples, elapsed) in [&sorted, &random].into_iter().zip(&mut elapsed) {
                let start = Instant::now();
                let summary = pleach_builder::build_slice(tuples, &path, &BuildOptions::default())?;
                *elapsed = start.elapsed().as_nanos() as f64;
                bytes = summary.file_bytes;
                check(&path, tuples.len() as u64, &queries)?;
            }
            let start = Instant::now();
            let copied = copy(&path, &target).map_err(failed)?;
            elapsed[2] = start.elapsed().as_nanos() as f64;
            expect_equal("copy", "bytes", 1, copied, bytes)?;
            std::fs::remove_file(&target).map_err(failed)?;
            // The first turn makes the folder's blocks and fills caches.
            if repetition > 0 {
                times.iter_mut().zip(elapsed).for_each(|(times, ns)| times.push(ns / sorted.len() as f64));
            }
        }
        let types = (<T as Key>::TYPE, <T as Value>::TYPE);
        let tuples = sorted.len() as u64;
        let rows =
            [("pleach", Some("sorted")), ("pleach", Some("random")), ("copy", Some("bytes of the result"))];
        for ((engine, detail), ns) in rows.into_iter().zip(&times) {
            let row = Row::new(engine, "build", types, tuples).timed(sorted.len(), ns);
            let bytes_per_tuple = bytes as f64 / tuples as f64;
            let facts = Facts { gb_per_s: Some(bytes_per_tuple / row.ns_per_query), ..Facts::default() };
            let threads = if engine == "pleach" { report.machine.cores } else { 1 };
            let build_s = row.ns_per_query * tuples as f64 / 1e9;
            let detail = detail.map(str::to_owned);
            report.rows.push(Row { threads, detail, facts, bytes_per_tuple, build_s, ..row });
        }
        Ok(())
    }
}
