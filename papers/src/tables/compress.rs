//! Compressed against full trees: by entropy of the keys' bytes (the paper's Figure 11: the work that
//! false positives cause), and by width and size of the keys (Figure 12: throughput).

use crate::InFlight;
use crate::fast::{Compare, Switched};
use crate::report::{Cell, Table, huge, median};
use pleach::classic::Work;
use pleach_bench::data::{below, mix64};
use pleach_builder::classic::{Compressed, TreeKey, Vectors, build};
use pleach_format::classic::Geometry;
use pleach_format::classic::paged::{Form, Prefix};
use std::time::Instant;

/// One tree to be measured.
struct Built {
    name: String,
    form: Form,
    bytes: Vec<u8>,
}

/// A key of `W` bytes, each drawn from `values` values, as the paper's data.
fn draw<W: TreeKey>(i: u64, values: u64) -> W {
    let byte = |at: u64| u128::from(below(mix64(i.wrapping_mul(16).wrapping_add(at)), values));
    W::narrow((0..W::BYTES as u64).fold(0, |key, at| key << 8 | byte(at)))
}

/// Number of queries for a tree of `keys` keys: 2^19, and fewer only for trees of less than a page.
fn queries(keys: usize) -> usize {
    (keys << 10).min(1 << 19)
}

/// Measures full and compressed trees of the same keys, alternately; gives ns a query of each and the
/// work of false positives.
fn measure<W: TreeKey>(
    keys: &[W],
    geometry: &Geometry,
    trees: &[Built],
    repetitions: usize,
) -> Vec<(f64, Work)> {
    let count = queries(keys.len());
    let queries: Vec<W> =
        (0..count as u64).map(|i| keys[below(mix64(i), keys.len() as u64) as usize]).collect();
    let expected: Vec<u64> =
        queries.iter().map(|query| keys.partition_point(|key| key < query) as u64).collect();
    let mut ranks = vec![0u64; count];
    let mut times = vec![Vec::new(); trees.len()];
    let mut works = vec![Work::default(); trees.len()];
    for repetition in 0..=repetitions {
        for (number, built) in trees.iter().enumerate() {
            let tree = Switched::new(geometry, built.form, &built.bytes, keys).expect("a tree");
            let tree = tree.with(Compare::best(), InFlight::Sixteen);
            let start = Instant::now();
            works[number] = tree.lower_bounds(&queries, &mut ranks);
            let time = start.elapsed().as_secs_f64();
            assert_eq!(ranks, expected, "{}", built.name);
            if repetition > 0 {
                times[number].push(time * 1e9 / count as f64);
            }
        }
    }
    times.iter_mut().map(|times| median(times)).zip(works).collect()
}

fn report(
    table: &mut Table,
    what: &str,
    keys: usize,
    geometry: &Geometry,
    trees: &[Built],
    measured: &[(f64, Work)],
) {
    let queries = queries(keys) as f64;
    let levels = f64::from(geometry.levels());
    for (built, (time, work)) in trees.iter().zip(measured) {
        table.cells.push(Cell {
            name: format!("{what}: {}", built.name),
            numbers: vec![
                ("ns_per_query", *time),
                ("throughput_of_full", measured[0].0 / time),
                ("bytes_per_key", built.bytes.len() as f64 / keys as f64),
                ("missed_share", work.missed as f64 / queries),
                // The paper counts computation; a comparison of full keys stands for a level here.
                ("work", 1.0 + work.extra as f64 / queries / levels),
                ("tuples", keys as f64),
            ],
        });
    }
}

fn full<W: TreeKey>(keys: &[W], geometry: &Geometry) -> Built {
    let mut bytes = huge(geometry.tree().expect("sound").bytes() as usize);
    build(keys, geometry, Vectors::Best, &mut bytes).expect("a build");
    Built { name: "full".to_owned(), form: Form::Full, bytes }
}

/// Builds a compressed tree.
fn compressed<W: TreeKey>(keys: &[W], geometry: &Geometry, form: Form, prefix: Prefix) -> (u32, Vec<u8>) {
    let plan = Compressed::plan(keys, geometry, (form, prefix), Vectors::Best).expect("a plan");
    let mut bytes = huge(plan.bytes() as usize);
    plan.build(keys, &mut bytes).expect("a build");
    (plan.first_width(), bytes)
}

fn partial(keys: &[u128], geometry: &Geometry, prefix: Prefix) -> Built {
    let (first, bytes) = compressed(keys, geometry, Form::Partial, prefix);
    let name = if prefix == Prefix::Noncontiguous { "noncontiguous" } else { "contiguous" };
    Built { name: format!("{name} prefix, first page {} bits", 8 * first), form: Form::Partial, bytes }
}

/// For lines of the widest kernel, and two levels of pages, the lower ones of 127 keys: so few that
/// distances of evenly spread keys are short.
fn geometry<W: TreeKey>(keys: &[W]) -> Geometry {
    let d_l = (64 / W::BYTES).ilog2();
    let d_p = (keys.len().max(2) - 1).ilog2().saturating_sub(6).max(7);
    Geometry {
        keys: keys.len() as u64,
        key_bytes: W::BYTES as u32,
        d_k: d_l,
        d_l,
        d_p,
        padded: false,
        aligned: false,
    }
}

fn sorted<W: TreeKey>(count: usize, draw: impl Fn(u64) -> W) -> Vec<W> {
    let mut keys: Vec<W> = (0..count as u64).map(draw).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

macro_rules! integers {
    ($table:ident, $t:ident, $exponents:expr, $repetitions:expr) => {
        for &exponent in $exponents {
            // Evenly spread: 4-byte keys over all of their range, wider ones with 2^12 between them.
            let bits = if $t::BITS == 32 { 32 } else { 12 + exponent };
            let keys: Vec<$t> = sorted(1 << exponent, |i| (mix64(i + 1) >> (64 - bits)) as $t);
            let geometry = geometry(&keys);
            let (_, bytes) = compressed(&keys, &geometry, Form::Delta, Prefix::default());
            let distances = Built { name: "distances".to_owned(), form: Form::Delta, bytes };
            let trees = [full(&keys, &geometry), distances];
            let measured = measure(&keys, &geometry, &trees, $repetitions);
            let what = format!("2^{exponent} {}", stringify!($t));
            report(&mut $table, &what, keys.len(), &geometry, &trees, &measured);
        }
    };
}

/// Measures up to `2^largest` keys of 4 and 8 bytes, a quarter of that of 16 bytes; one thread.
///
/// # Panics
/// If an answer is wrong.
#[must_use]
pub fn run(largest: u32, repetitions: usize) -> Table {
    let mut table = Table { what: "classic-compress", cells: Vec::new() };
    let small = 16.min(largest);
    integers!(table, u32, &[small, largest], repetitions);
    integers!(table, u64, &[small, largest], repetitions);
    // Figure 11: entropy from 1 to 7 bits a byte; Figure 12: 10 values, by size.
    for exponent in [small, largest - 2] {
        for values in [2, 4, 10, 16, 52, 128, 256] {
            let keys: Vec<u128> = sorted(1 << exponent, |i| draw(i, values));
            let geometry = geometry(&keys);
            let trees = [
                full(&keys, &geometry),
                partial(&keys, &geometry, Prefix::Noncontiguous),
                partial(&keys, &geometry, Prefix::Contiguous),
            ];
            let measured = measure(&keys, &geometry, &trees, repetitions);
            let what = format!("2^{exponent} 16-byte, {values} values a byte");
            report(&mut table, &what, keys.len(), &geometry, &trees, &measured);
        }
    }
    table
}
