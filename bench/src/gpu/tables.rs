//! The tables that are searched on a GPU, and batches of queries with the answers that they must get.
//!
//! Keys are distinct; values are a mix of their keys ([`value_of`]), so a batch knows its answers without a
//! search. A table is a file in memory (`/dev/shm`, where there is room, else the folder for temporary
//! files), built by all cores in seconds. Batches are drawn on the device and compared there; that what
//! they expect is what the file holds is checked against the CPU's search on a sample of each table.

use super::measure::{Drawn, KnownBatch, Maker, value_of};
use crate::data::{mix32, mix64};
use crate::keys::Distribution;
use crate::{BenchError, Told};
use pleach::{Index, Key, Value};
use pleach_builder::{BuildOptions, build_iter};
use pleach_gpu::{DeviceBuffer, Stream};
use pleach_peers::Number;
use rayon::prelude::*;
use std::path::Path;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A key, and a value, of the measured tables.
pub trait Cell: Number + Key + Value + FromBytes + IntoBytes + Immutable {}
impl Cell for u32 {}
impl Cell for u64 {}

/// Distribution of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Without structure, over the whole range.
    Uniform,
    /// One after the other.
    Dense,
    /// A shard in the upper bits, 64 tuples of each: `shard << 40 | sequence`, of 4-byte keys `shard << 8 |
    /// sequence`.
    Composite,
    /// A rule of `bench keys`, for keys of 8 bytes.
    Ruled(Distribution),
}

impl Keys {
    /// Those of random batches.
    pub const ALL: [Self; 3] = [Self::Uniform, Self::Dense, Self::Composite];

    /// Returns the name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Dense => "dense",
            Self::Composite => "composite",
            Self::Ruled(rule) => rule.name(),
        }
    }

    /// `count` keys, ascending and distinct; fewer where a rule has no more.
    pub fn make<T: Cell>(self, count: u64) -> Vec<T> {
        let is_narrow = T::BYTES == 4;
        let numbers = (0..count).into_par_iter();
        match self {
            Self::Uniform => {
                let key = |i: u64| if is_narrow { mix32((i + 1) as u32).into() } else { mix64(i + 1) };
                let mut keys: Vec<T> = numbers.map(|i| T::narrow(key(i))).collect();
                keys.par_sort_unstable();
                keys
            }
            Self::Dense => {
                let first = if is_narrow { (1 << 20).min(u64::from(u32::MAX) - count) } else { 1 << 40 };
                numbers.map(|i| T::narrow(first + i)).collect()
            }
            Self::Composite => {
                let bits = if is_narrow { 8 } else { 40 };
                numbers.map(|i| T::narrow(((i / 64) << bits) | (i % 64))).collect()
            }
            Self::Ruled(rule) => rule.keys(count).into_par_iter().map(T::narrow).collect(),
        }
    }
}

/// Returns the name in reports.
pub const fn kind_name(kind: Drawn) -> &'static str {
    match kind {
        Drawn::Present => "present",
        Drawn::HalfAbsent => "half-absent",
        Drawn::Zipf => "zipf",
        Drawn::Ascending => "sorted",
    }
}

/// `2^26`, or the plain number.
pub fn size_name(count: u64) -> String {
    if count.is_power_of_two() && count > 1 {
        format!("2^{}", count.trailing_zeros())
    } else {
        count.to_string()
    }
}

/// The value of a key.
pub fn value<T: Cell>(key: T) -> T {
    T::narrow(value_of(key.widen()))
}

/// A file, open, and the keys it was made of.
pub struct Made<T> {
    /// Keys, ascending and distinct.
    pub keys: Vec<T>,
    /// The file.
    pub index: Index,
    // Removed with this.
    _folder: crate::Folder,
}

/// Builds a table: in `dir`, else in shared memory, else among the temporary files.
pub fn make<T: Cell>(kind: Keys, count: u64, dir: Option<&Path>) -> Result<Made<T>, BenchError> {
    make_of(kind.make::<T>(count), &BuildOptions::default(), dir)
}

/// Builds a table of keys with a spine and other structures.
pub fn make_as<T: Cell>(keys: Vec<T>, layout: &str, dir: Option<&Path>) -> Result<Made<T>, BenchError> {
    let layout = format!("lines,spine,{layout}").parse().unwrap_or_default();
    make_of(keys, &BuildOptions::default().with_layout(layout), dir)
}

fn make_of<T: Cell>(keys: Vec<T>, options: &BuildOptions, dir: Option<&Path>) -> Result<Made<T>, BenchError> {
    let shared = Path::new("/dev/shm");
    if dir.is_none() && shared.is_dir() {
        // It may be small: then the next best place serves.
        let built = crate::folder(Some(shared)).and_then(|folder| build(&keys, options, folder));
        if let Ok((folder, index)) = built {
            return Ok(Made { keys, index, _folder: folder });
        }
    }
    let (folder, index) = build(&keys, options, crate::folder(dir)?)?;
    Ok(Made { keys, index, _folder: folder })
}

fn build<T: Cell>(
    keys: &[T],
    options: &BuildOptions,
    folder: crate::Folder,
) -> Result<(crate::Folder, Index), BenchError> {
    let path = folder.path().join("gpu.pleach");
    let options = BuildOptions { sorted: true, ..options.clone() };
    build_iter(keys.iter().map(|&key| (key, value(key))), &path, &options)?;
    let index = Index::open(&path)?;
    Ok((folder, index))
}

/// Compares what batches expect with what the CPU finds in the file, on a sample.
pub fn check_sample<T: Cell>(
    maker: &Maker,
    stream: &Stream,
    index: &Index,
    count: u64,
    told: &Told<'_>,
) -> Result<(), BenchError> {
    let view = index.typed::<T, T>()?;
    let room = maker.room(count)?;
    for kind in [Drawn::Present, Drawn::HalfAbsent, Drawn::Zipf, Drawn::Ascending] {
        told.step(&format!("checking a sample, {}", kind_name(kind)))?;
        maker.draw(&room, kind, 0)?;
        let (queries, wanted) = (fetch::<T>(&room.queries, stream)?, fetch::<T>(&room.values, stream)?);
        let there = fetch::<u32>(&room.present, stream)?;
        let (mut values, mut present) =
            (vec![T::default(); queries.len()], vec![0; queries.len().div_ceil(64)]);
        view.get_batch(&queries, &mut values, &mut present)?;
        for (at, &key) in queries.iter().enumerate() {
            let is_wanted = there[at / 32] >> (at % 32) & 1 == 1;
            let is_present = present[at / 64] >> (at % 64) & 1 == 1;
            let is_sorted = kind != Drawn::Ascending || at == 0 || queries[at - 1] <= key;
            if (is_wanted, wanted[at]) != (is_present, values[at]) || !is_sorted {
                return Err(BenchError::Wrong {
                    engine: format!("the maker of {} queries", kind_name(kind)),
                    query: at,
                    queries: queries.len(),
                    key: key.widen().to_string(),
                    found: format!("{} ({is_wanted})", wanted[at].widen()),
                    expected: format!("{} ({is_present})", values[at].widen()),
                });
            }
        }
    }
    Ok(())
}

/// Numbers of a buffer.
fn fetch<T: FromBytes + IntoBytes + Immutable + Default + Clone>(
    buffer: &DeviceBuffer,
    stream: &Stream,
) -> Result<Vec<T>, BenchError> {
    let mut numbers = vec![T::default(); buffer.bytes() as usize / size_of::<T>()];
    buffer.copy_to_host(stream, numbers.as_mut_slice().as_mut_bytes())?;
    Ok(numbers)
}

/// The first queries of a batch.
pub fn first(batch: &KnownBatch, count: u64) -> KnownBatch {
    KnownBatch { count: count.min(batch.count), ..batch.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_ascend_and_have_values() {
        fn check<T: Cell>() {
            for kind in Keys::ALL {
                for count in [1, 63, 64, 65, 5000] {
                    let made = make::<T>(kind, count, None).expect("built");
                    let view = made.index.typed::<T, T>().expect("the types");
                    assert_eq!(made.keys.len() as u64, count);
                    assert!(made.keys.windows(2).all(|pair| pair[0] < pair[1]), "{kind:?}");
                    for &key in &made.keys {
                        assert_eq!(view.get(key).expect("answers"), Some(value(key)));
                    }
                }
            }
        }
        check::<u32>();
        check::<u64>();
        // The same numbers as those of the other benchmarks.
        assert_eq!(value(7u64), crate::data::value::<u64, u64>(7));
    }
}
