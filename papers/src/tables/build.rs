//! Builds against one copy pass: the same bytes, the same threads, from and into touched memory.

use crate::report::{Cell, Table, median};
use pleach_bench::data::mix64;
use pleach_builder::classic::{Compressed, Vectors, build};
use pleach_format::classic::Geometry;
use pleach_format::classic::paged::{Form, Prefix};
use rayon::prelude::*;
use std::time::Instant;

/// Sorted keys without structure, distinct as far as the type allows.
fn keys(count: usize) -> Vec<u64> {
    let mut keys: Vec<u64> = (1..=count as u64).into_par_iter().map(mix64).collect();
    keys.par_sort_unstable();
    keys
}

/// One copy pass, in pieces of `piece` elements.
fn copy<T: Copy + Send + Sync>(from: &[T], to: &mut [T], piece: usize) {
    to.par_chunks_mut(piece).zip(from.par_chunks(piece)).for_each(|(to, from)| to.copy_from_slice(from));
}

/// Measures builds of `2^exponent` keys of 4 bytes and `2^wide` keys of 16, `repetitions` times.
///
/// # Panics
/// If there is not enough memory.
#[must_use]
pub fn run(exponent: u32, wide: u32, repetitions: usize) -> Table {
    let mut table = Table { what: "classic-build", cells: Vec::new() };
    let threads = rayon::current_num_threads().max(1);
    {
        let keys: Vec<u32> = keys(1 << exponent).into_iter().map(|key| (key >> 32) as u32).collect();
        let geometry = Geometry::paper(keys.len() as u64, 4);
        let padded = Geometry { padded: true, ..geometry };
        let lanes = Geometry { d_k: 4, ..geometry };
        let mut target = vec![1u32; keys.len()];
        let mut out = vec![1u8; geometry.tree().map_or(0, |tree| tree.bytes()) as usize];
        let mut wide_out = vec![1u8; padded.tree().map_or(0, |tree| tree.bytes()) as usize];
        let deltas = (Form::Delta, Prefix::Noncontiguous);
        let plan = Compressed::plan(&keys, &geometry, deltas, Vectors::Best).expect("a sound geometry");
        let mut packed = vec![1u8; plan.bytes() as usize];
        let piece = keys.len().div_ceil(threads);
        let mut scalar = vec![1u8; out.len()];
        let names = [
            "copy pass",
            "copy pass, pieces of 1 MiB",
            "u32, vectors",
            "u32, scalar",
            "u32, d_K = 4",
            "u32, padded lines",
            "u32, distances",
            "u32, distances, planned before",
        ];
        let times = measure(repetitions, names.len(), |variant| match variant {
            0 => copy(&keys, &mut target, piece),
            1 => copy(&keys, &mut target, 1 << 18),
            2 => build(&keys, &geometry, Vectors::Best, &mut out).expect("a build"),
            3 => build(&keys, &geometry, Vectors::Scalar, &mut scalar).expect("a build"),
            4 => build(&keys, &lanes, Vectors::Best, &mut scalar).expect("a build"),
            5 => build(&keys, &padded, Vectors::Best, &mut wide_out).expect("a build"),
            7 => plan.build(&keys, &mut packed).expect("a build"),
            _ => {
                let plan = Compressed::plan(&keys, &geometry, deltas, Vectors::Best).expect("a plan");
                plan.build(&keys, &mut packed).expect("a build");
            }
        });
        let sizes = [
            keys.len() * 4,
            keys.len() * 4,
            out.len(),
            out.len(),
            out.len(),
            wide_out.len(),
            packed.len(),
            packed.len(),
        ];
        report(&mut table, keys.len(), &names, &sizes, times, 2);
    }
    {
        let keys: Vec<u128> = keys(1 << wide)
            .into_par_iter()
            .map(|key| u128::from(key) << 64 | u128::from(mix64(key)))
            .collect();
        let geometry = Geometry::paper(keys.len() as u64, 16);
        let compressed = geometry;
        let mut target = vec![1u128; keys.len()];
        let mut out = vec![1u8; geometry.tree().map_or(0, |tree| tree.bytes()) as usize];
        let partial = (Form::Partial, Prefix::Noncontiguous);
        let plan = Compressed::plan(&keys, &compressed, partial, Vectors::Best).expect("a sound geometry");
        let mut packed = vec![1u8; plan.bytes() as usize];
        let piece = keys.len().div_ceil(threads);
        let names = ["copy pass, 16-byte keys", "16-byte keys", "16-byte keys, partial"];
        let times = measure(repetitions, names.len(), |variant| match variant {
            0 => copy(&keys, &mut target, piece),
            1 => build(&keys, &geometry, Vectors::Best, &mut out).expect("a build"),
            _ => {
                let plan = Compressed::plan(&keys, &compressed, partial, Vectors::Best).expect("a plan");
                plan.build(&keys, &mut packed).expect("a build");
            }
        });
        let sizes = [keys.len() * 16, out.len(), packed.len()];
        report(&mut table, keys.len(), &names, &sizes, times, 1);
    }
    table
}

/// Seconds of each variant in each repetition, after one that is not counted.
fn measure(repetitions: usize, variants: usize, mut run: impl FnMut(usize)) -> Vec<Vec<f64>> {
    let mut times = vec![Vec::new(); variants];
    for repetition in 0..=repetitions {
        for (variant, times) in times.iter_mut().enumerate() {
            let start = Instant::now();
            run(variant);
            if repetition > 0 {
                times.push(start.elapsed().as_secs_f64());
            }
        }
    }
    times
}

/// `full` is the row that compressed builds are compared with; the first row is the copy pass.
fn report(
    table: &mut Table,
    keys: usize,
    names: &[&str],
    bytes: &[usize],
    mut times: Vec<Vec<f64>>,
    full: usize,
) {
    let medians: Vec<f64> = times.iter_mut().map(|times| median(times)).collect();
    for (row, name) in names.iter().enumerate() {
        table.cells.push(Cell {
            name: (*name).to_owned(),
            numbers: vec![
                ("seconds", medians[row]),
                ("min", times[row][0]),
                ("ns_per_key", medians[row] * 1e9 / keys as f64),
                ("times_copy", medians[row] / medians[0]),
                ("times_full", medians[row] / medians[full]),
                ("bytes_per_key", bytes[row] as f64 / keys as f64),
            ],
        });
    }
}
