//! FAST from files: the trees of the section FAST, searched where the file is mapped.
//!
//! Figure 8 by layouts: pages, lines and blocks are depths of one level at first; the last step is a batch, whose
//! queries are in flight together. Figure 11 by the scalar search of the section, which shows where partial keys lead;
//! with it the bytes of pages and of their records. Figure 12 by keys of 4 to 128 bytes, in files of about the same
//! bytes. Table III by batches on one thread and on all.

use crate::report::{Cell, Table, median};
use pleach::{Index, Key, KeyType, ReadError, Structure};
use pleach_bench::BenchError;
use pleach_bench::data::{below, mix64};
use pleach_builder::{BuildOptions, build_slice, build_strings};
use pleach_format::Word;
use pleach_format::classic::paged::Paged;
use pleach_format::classic::search::Section;
use pleach_format::section::Tag;
use pleach_format::view::Bytes;
use std::path::Path;
use std::time::Instant;

/// Queries of a measurement.
const QUERIES: u64 = 1 << 18;
/// Queries whose way is followed node by node.
const FOLLOWED: u64 = 1 << 16;

/// The steps of Figure 8, words of 4 bytes: depths of blocks, lines and pages, and whether queries come as a batch.
const STEPS: [(&str, &str, bool); 5] = [
    ("plain binary tree", "dk=1:dl=1:dp=24", false),
    ("+ pages of 2 MiB", "dk=1:dl=1:dp=19", false),
    ("+ lines", "dk=1:dl=4:dp=19", false),
    ("+ blocks of a line", "dk=4:dl=4:dp=19", false),
    ("+ queries in flight", "dk=4:dl=4:dp=19", true),
];

fn options(layout: &str) -> BuildOptions {
    let layout = format!("lines,{layout}").parse().unwrap_or_default();
    BuildOptions { sorted: true, ..BuildOptions::default().with_layout(layout) }
}

fn opened(path: &Path) -> Result<Index, BenchError> {
    Ok(Index::options().structure(Structure::Fast).open(path)?)
}

/// Builds a file of ascending keys without values.
fn built<K: Key>(keys: &[K], layout: &str, path: &Path) -> Result<Index, BenchError> {
    let tuples: Vec<(K, ())> = keys.iter().map(|&key| (key, ())).collect();
    build_slice(&tuples, path, &options(layout))?;
    opened(path)
}

fn section_bytes(index: &Index) -> f64 {
    index.header().section(Tag::FAST).map_or(0.0, |section| section.entry.length.get() as f64)
}

fn sorted<T: Ord>(count: u64, draw: impl Fn(u64) -> T) -> Vec<T> {
    let mut keys: Vec<T> = (0..count).map(draw).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Returns ns a query of each of some searches, which take turns: medians.
fn timed(
    repetitions: usize,
    queries: usize,
    searches: &mut [Box<dyn FnMut() -> Result<(), ReadError> + '_>],
) -> Result<Vec<f64>, BenchError> {
    let mut times = vec![Vec::new(); searches.len()];
    for repetition in 0..=repetitions {
        for (search, times) in searches.iter_mut().zip(&mut times) {
            let start = Instant::now();
            search()?;
            if repetition > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e9 / queries as f64);
            }
        }
    }
    Ok(times.iter_mut().map(|times| median(times)).collect())
}

fn drawn<K: Copy>(keys: &[K], count: u64) -> (Vec<K>, Vec<u64>) {
    let ranks: Vec<u64> = (0..count).map(|i| below(mix64(i), keys.len() as u64)).collect();
    (ranks.iter().map(|&rank| keys[rank as usize]).collect(), ranks)
}

/// Figure 8 and Table III: u32.
fn figure_8(table: &mut Table, exponent: u32, repetitions: usize, folder: &Path) -> Result<(), BenchError> {
    let bits = 64 - 32;
    let keys: Vec<u32> = sorted(1 << exponent, |i| (mix64(i + 1) >> bits) as u32);
    let (queries, wanted) = drawn(&keys, QUERIES);
    let mut files = Vec::new();
    for (number, (_, depths, _)) in STEPS.iter().enumerate() {
        let path = folder.join(format!("step-{number}"));
        files.push(built(&keys, &format!("fast:full:packed:{depths}"), &path)?);
    }
    let threads = rayon::current_num_threads();
    let mut searches: Vec<Box<dyn FnMut() -> Result<(), ReadError>>> = Vec::new();
    for ((_, _, is_batch), index) in STEPS.iter().zip(&files) {
        let view = index.typed::<u32, ()>()?;
        let (queries, wanted) = (&queries, &wanted);
        let mut ranks = vec![0; queries.len()];
        searches.push(Box::new(move || {
            if *is_batch {
                view.lower_bound_batch(queries, &mut ranks)?;
            } else {
                for (query, rank) in queries.iter().zip(&mut ranks) {
                    *rank = view.lower_bound(*query)?;
                }
            }
            assert_eq!(ranks, *wanted, "ranks by a FAST tree");
            Ok(())
        }));
    }
    let view = files[STEPS.len() - 1].typed::<u32, ()>()?;
    let mut present = vec![0u64; queries.len().div_ceil(64)];
    let asked = &queries;
    searches.push(Box::new(move || {
        let found = view.par_get_batch(asked, &mut vec![(); asked.len()], &mut present)?;
        assert_eq!(found, asked.len(), "keys that are there");
        Ok(())
    }));
    let times = timed(repetitions, queries.len(), &mut searches)?;
    for ((name, _, _), ns) in STEPS.iter().zip(&times) {
        let numbers = vec![("ns_per_query", *ns), ("of_plain", ns / times[0]), ("m_per_s", 1e3 / ns)];
        table.cells.push(Cell { name: format!("Figure 8, 2^{exponent} u32: {name}"), numbers });
    }
    for (threads, ns) in [(1, times[STEPS.len() - 1]), (threads, times[STEPS.len()])] {
        let numbers = vec![("threads", threads as f64), ("m_per_s", 1e3 / ns)];
        table.cells.push(Cell { name: format!("Table III, 2^{exponent} u32, {threads} threads"), numbers });
    }
    Ok(())
}

/// What is known of a compressed section.
struct Compressed {
    /// Share of the comparisons in the first page after which a partial key leads to another child.
    first_page: f64,
    /// Share of look-ups that end beside their rank.
    missed: f64,
    /// Bytes of the section and of its records.
    bytes: f64,
    record_bytes: f64,
}

/// Follows queries node by node.
fn follow<K: Key>(index: &Index, keys: &[K]) -> Result<Compressed, BenchError> {
    let Some((offset, shape)) = index.header().fast else { return Err(no_tree()) };
    let Some(paged) = Paged::new(shape.geometry, shape.form) else { return Err(no_tree()) };
    let section = Section { geometry: shape.geometry, form: shape.form, offset, bytes: shape.bytes };
    let all = index.as_bytes();
    let bytes = Bytes(&all);
    let (levels, first) = (shape.geometry.levels(), paged.levels()[0].levels);
    let (queries, ranks) = drawn(keys, FOLLOWED);
    let (mut missed, mut wrong) = (0u64, 0u64);
    for (query, &rank) in queries.iter().zip(&ranks) {
        let word = query.encode().to_u128();
        let gap = section.gap(&bytes, word).unwrap_or_default();
        missed += u64::from(gap != rank.min((1 << levels) - 1));
        wrong += u64::from(gap >> (levels - first) != rank >> (levels - first));
    }
    Ok(Compressed {
        first_page: wrong as f64 / (FOLLOWED * u64::from(first)) as f64,
        missed: missed as f64 / FOLLOWED as f64,
        bytes: section_bytes(index),
        record_bytes: (paged.pages() * paged.record_bytes() as u64) as f64,
    })
}

fn no_tree() -> BenchError {
    BenchError::Options("this tree has no pages with records".to_owned())
}

/// A key of 16 bytes, each of `values` values, as the paper's data.
fn of_values(i: u64, values: u64, bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| below(mix64(i.wrapping_mul(bytes).wrapping_add(at)), values) as u8).collect()
}

/// Figure 11: 16-byte keys by the entropy of their bytes, and distances of keys of 8 bytes.
fn figure_11(table: &mut Table, exponent: u32, folder: &Path) -> Result<(), BenchError> {
    let mut put = |name: String, full: f64, found: Compressed| {
        let numbers = vec![
            ("first_page_false", found.first_page),
            ("missed_share", found.missed),
            ("bytes_of_full", found.bytes / full),
            ("records_share", found.record_bytes / found.bytes),
        ];
        table.cells.push(Cell { name, numbers });
    };
    let [full, other] = ["full", "other"].map(|name| folder.join(name));
    for values in [2, 4, 10, 16, 52, 128] {
        let key = |i| u128::from_be_bytes(of_values(i, values, 16).try_into().unwrap_or_default());
        let keys: Vec<u128> = sorted(1 << exponent, key);
        if keys.len() < 1 << 14 {
            continue;
        }
        let bytes = section_bytes(&built(&keys, "wide,fast:full", &full)?);
        let partial = built(&keys, "wide,fast:partial", &other)?;
        let name = format!("Figure 11, 2^{exponent} of 16 bytes, {values} values a byte: partial");
        put(name, bytes, follow(&partial, &keys)?);
    }
    let keys: Vec<u64> = sorted(1 << exponent, |i| mix64(i + 1) >> (64 - 12 - exponent));
    let bytes = section_bytes(&built(&keys, "wide,fast:full", &full)?);
    for form in ["delta", "auto"] {
        let found = built(&keys, &format!("wide,fast:{form}"), &other)?;
        put(format!("2^{exponent} u64, 2^12 between keys: {form}"), bytes, follow(&found, &keys)?);
    }
    Ok(())
}

/// Figure 12: keys of 4 to 128 bytes, 10 values a byte, by full and by partial keys.
fn figure_12(table: &mut Table, exponent: u32, repetitions: usize, folder: &Path) -> Result<(), BenchError> {
    let mut of_four = None;
    for key_bytes in [4u64, 8, 16, 32, 64, 128] {
        let count = (4 << exponent) / key_bytes;
        // Of 4 bytes there are only 10^4 such keys: the whole range of numbers stands for them.
        let key = |i| {
            if key_bytes == 4 {
                (mix64(i + 1) as u32).to_be_bytes().to_vec()
            } else {
                of_values(i, 10, key_bytes)
            }
        };
        let keys: Vec<Vec<u8>> = sorted(count, key);
        let (tuples, mut files) = (keys.iter().map(|key| (key, ())), Vec::new());
        let tuples: Vec<(&Vec<u8>, ())> = tuples.collect();
        for form in ["full", "partial", "auto"] {
            let path = folder.join(form);
            let key_type = KeyType::Fixed(key_bytes as u16);
            match build_strings(key_type, &tuples, &path, &options(&format!("fast:{form}"))) {
                Ok(_) => files.push((form, opened(&path)?)),
                // Words of 4 bytes have no partial keys.
                Err(_) if form == "partial" => {}
                Err(error) => return Err(error.into()),
            }
        }
        let queries: Vec<&[u8]> =
            (0..QUERIES).map(|i| &keys[below(mix64(i), keys.len() as u64) as usize][..]).collect();
        let mut searches: Vec<Box<dyn FnMut() -> Result<(), ReadError>>> = Vec::new();
        for (_, index) in &files {
            let view = index.strings::<()>()?;
            let (queries, mut present) = (&queries, vec![0u64; QUERIES as usize / 64]);
            searches.push(Box::new(move || {
                let found = view.get_batch(&queries[..], &mut vec![(); queries.len()], &mut present)?;
                assert_eq!(found, queries.len(), "keys that are there");
                Ok(())
            }));
        }
        let times = timed(repetitions, queries.len(), &mut searches)?;
        let full_bytes = section_bytes(&files[0].1);
        let base = *of_four.get_or_insert(times[0]);
        for ((form, index), ns) in files.iter().zip(&times) {
            let numbers = vec![
                ("ns_per_query", *ns),
                ("throughput_of_4_bytes", base / ns),
                ("throughput_of_full", times[0] / ns),
                ("bytes_of_full", section_bytes(index) / full_bytes),
                ("word_bytes", index.header().geometry.key_bytes as f64),
                ("tuples", keys.len() as f64),
            ];
            table.cells.push(Cell { name: format!("Figure 12, {key_bytes} bytes: {form}"), numbers });
        }
    }
    Ok(())
}

/// Measures files of up to `2^largest` keys, in `dir` or the folder of temporary files.
///
/// # Errors
/// [`BenchError`] for what keeps files from being built.
///
/// # Panics
/// If an answer is wrong.
pub fn run(largest: u32, repetitions: usize, dir: Option<&Path>) -> Result<Table, BenchError> {
    let mut table = Table { what: "fast-files", cells: Vec::new() };
    let folder = pleach_bench::folder(dir)?;
    let small = 16.min(largest);
    for exponent in [small, largest] {
        figure_8(&mut table, exponent, repetitions, folder.path())?;
    }
    figure_11(&mut table, largest, folder.path())?;
    figure_12(&mut table, largest.saturating_sub(2).max(8), repetitions, folder.path())?;
    Ok(table)
}
