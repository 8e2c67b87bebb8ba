//! Opening: from a closed file, whose pages are in memory, to the first answer.
//!
//! Pleach opens its file, checks the header, maps the rest and answers one look-up; each time another key, and the
//! answer is checked. Stores do the same once, after they were built. Tables that exist in memory only have to be
//! read: the row `sorted-arrays` reads the bytes of all keys and values from files of their own, which is the least
//! that a program without an index on the disk does before it can search.

use crate::options::{BenchOptions, Measure, expect_equal, label};
use crate::report::{Report, Row};
use crate::{BenchError, data, machine};
use pleach::{Index, Key, Value};
use pleach_builder::BuildOptions;
use pleach_peers::{Engine, Number};
use std::path::Path;
use std::time::Instant;

/// Openings of one repetition.
const OPENINGS: usize = 20;
/// Most tuples for which stores are built.
const STORE_TUPLES_MAX: u64 = 1 << 24;

/// Measures everything that `options` ask for.
///
/// # Errors
/// [`BenchError`]: whatever keeps a table from being built or opened, and a wrong answer.
pub fn run(options: &BenchOptions<'_>) -> Result<Report, BenchError> {
    options.each(&Opening)
}

fn io(operation: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> BenchError {
    move |source| BenchError::Io { operation, path: path.to_owned(), source }
}

/// Numbers of a file as they were written: little-endian.
fn read<T: Number>(path: &Path) -> Result<Vec<T>, BenchError> {
    let bytes = std::fs::read(path).map_err(io("read", path))?;
    let number = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..T::BYTES].copy_from_slice(bytes);
        u64::from_le_bytes(wide)
    };
    Ok(bytes.chunks_exact(T::BYTES).map(|bytes| T::narrow(number(bytes))).collect())
}

fn write<T: Number>(path: &Path, numbers: impl Iterator<Item = T>) -> Result<(), BenchError> {
    let mut bytes = Vec::new();
    numbers.for_each(|number| bytes.extend_from_slice(&number.widen().to_le_bytes()[..T::BYTES]));
    std::fs::write(path, bytes).map_err(io("write", path))
}

struct Opening;

impl Measure for Opening {
    fn data_set<T: Number + Key + Value>(
        &self,
        options: &BenchOptions<'_>,
        count: u64,
        report: &mut Report,
    ) -> Result<(), BenchError> {
        let label = label::<T>(count);
        options.told.step(&format!("{label}: building"))?;
        let tuples: Vec<(T, T)> = data::tuples(count);
        let folder = crate::folder(options.dir.as_deref())?;
        let path = folder.path().join("open.pleach");
        let start = Instant::now();
        let summary = pleach_builder::build_slice(&tuples, &path, &BuildOptions::default())?;
        let build_s = start.elapsed().as_secs_f64();
        let (keys_path, values_path) = (folder.path().join("keys"), folder.path().join("values"));
        write(&keys_path, tuples.iter().map(|tuple| tuple.0))?;
        write(&values_path, tuples.iter().map(|tuple| tuple.1))?;
        let queries = data::hits(&tuples, OPENINGS * (options.repetitions + 1));
        let mut stores = Vec::new();
        for &engine in Engine::AVAILABLE.iter().filter(|engine| engine.is_store()) {
            if count > STORE_TUPLES_MAX {
                let name = engine.name();
                report.notes.push(format!("{name} is left out at {label}: it is measured up to 2^24 tuples"));
                continue;
            }
            options.told.step(&format!("{label}: building {}", engine.name()))?;
            stores.push((engine, engine.build(&tuples, folder.path())?));
        }
        drop(tuples);

        let (mut pleach, mut arrays) = (Vec::new(), Vec::new());
        for (repetition, queries) in queries.chunks(OPENINGS).enumerate() {
            options.told.step(&format!("{label}: repetition {repetition} of {}", options.repetitions))?;
            let mut elapsed = 0.0;
            for &query in queries {
                let start = Instant::now();
                let index = Index::open(&path)?;
                let found = index.typed::<T, T>()?.get(query)?;
                elapsed += start.elapsed().as_nanos() as f64;
                let expected: T = data::value(query);
                expect_equal(
                    "pleach",
                    "first answer",
                    1,
                    found.unwrap_or_default().widen(),
                    expected.widen(),
                )?;
            }
            let start = Instant::now();
            let (keys, values) = (read::<T>(&keys_path)?, read::<T>(&values_path)?);
            let rank = keys.partition_point(|&key| key < queries[0]);
            let found = values[rank];
            let read_ns = start.elapsed().as_nanos() as f64;
            let expected: T = data::value(queries[0]);
            expect_equal("sorted-arrays", "first answer", 1, found.widen(), expected.widen())?;
            // The first turn fills the page cache.
            if repetition > 0 {
                pleach.push(elapsed / queries.len() as f64);
                arrays.push(read_ns);
            }
        }
        let types = (<T as Key>::TYPE, <T as Value>::TYPE);
        let tuple_bytes = |bytes: u64| bytes as f64 / summary.tuples as f64;
        let mut push = |engine: &str, build_s: f64, bytes: u64, openings: usize, ns: &[f64]| {
            let row = Row::new(engine, "open", types, summary.tuples).timed(openings, ns);
            let open_ms = Some(row.ns_per_query / 1e6);
            report.rows.push(Row { build_s, open_ms, bytes_per_tuple: tuple_bytes(bytes), ..row });
        };
        push("pleach", build_s, summary.file_bytes, OPENINGS, &pleach);
        push("sorted-arrays", 0.0, 2 * T::BYTES as u64 * summary.tuples, 1, &arrays);
        for (engine, built) in stores {
            if let Some(open) = built.open {
                let ns = [open.as_nanos() as f64];
                push(engine.name(), built.build.as_secs_f64(), built.peer.bytes(), 1, &ns);
            }
        }
        if let Some(row) = report.rows.iter_mut().rev().find(|row| row.engine == "pleach") {
            row.huge_share =
                machine::huge_mapped_bytes(&path).map(|huge| huge as f64 / summary.file_bytes as f64);
        }
        Ok(())
    }
}
