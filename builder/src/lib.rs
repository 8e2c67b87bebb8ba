//! Builds Pleach files: a stream of tuples becomes one sorted, searchable, checksummed file.
//!
//! ```text
//! source.rs    where tuples come from          pack.rs     tuples to tuple lines
//! input/       CSV, Parquet, Arrow, raw, ...   lines.rs    2 MiB pieces, sums, on all threads
//! flow.rs      sorted? stream it : sort it     spine.rs    levels above the tuple lines
//! sort.rs      in memory                       finish.rs   table, superblock
//! external.rs  beyond memory                   publish.rs  lock, rename, sync (storage.rs: system)
//! classic/     FAST trees, from sorted words into a slice
//! ```
//!
//! A build reads its source as if it were in order, and writes at once. At the first key out of
//! order it reads back what it wrote and sorts. The same tuples and the same options give the same
//! bytes, whatever the number of threads, the memory limit and the way they took.

pub mod classic;
pub mod error;
mod external;
mod finish;
mod flow;
mod hint;
#[cfg(feature = "input")]
pub mod input;
mod lines;
pub mod observe;
pub mod options;
mod pack;
mod plan;
pub mod publish;
mod sort;
pub mod source;
mod spine;
pub mod storage;

pub use error::BuildError;
pub use observe::{Observer, Phase, Silent};
pub use options::{BuildOptions, Summary, Unique};
pub use source::{Chunk, Column, Schema, Source, SourceError};

use pleach_format::{Key, Value, Word};
use std::path::Path;
use storage::{MemoryStorage, RealStorage, Storage};

/// Builds the file `target` from a source.
///
/// Sorted input costs O(tuples) and little memory; other input is sorted, in memory or by spilling
/// to `options.temp_dir`. The target appears complete and synced, or not at all; whatever was there
/// before is untouched by a build that fails or is cancelled.
pub fn build(
    source: &mut dyn Source,
    target: &Path,
    options: &BuildOptions,
    observer: &dyn Observer,
) -> Result<Summary, BuildError> {
    build_with_storage(source, target, options, observer, &RealStorage)
}

/// [`build`] over any storage: the seam for tests that make the system fail.
pub fn build_with_storage(
    source: &mut dyn Source,
    target: &Path,
    options: &BuildOptions,
    observer: &dyn Observer,
    storage: &dyn Storage,
) -> Result<Summary, BuildError> {
    let work = || flow::build(source, target, options, observer, storage);
    match options.threads {
        // Into the pool once, instead of at each step.
        0 => rayon::join(work, || ()).0,
        threads => rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("pleach-build-{index}"))
            .build()
            .map_err(|error| BuildError::Threads { threads, problem: error.to_string() })?
            .install(work),
    }
}

/// Builds the file `target` from a slice, in any order.
pub fn build_slice<K: Key, V: Value>(
    tuples: &[(K, V)],
    target: &Path,
    options: &BuildOptions,
) -> Result<Summary, BuildError> {
    build(&mut IterSource::new(tuples.iter().copied(), Some(tuples.len() as u64)), target, options, &Silent)
}

/// Builds the file `target` from an iterator, in any order.
pub fn build_iter<K: Key, V: Value, I>(
    tuples: I,
    target: &Path,
    options: &BuildOptions,
) -> Result<Summary, BuildError>
where
    I: IntoIterator<Item = (K, V)>,
    I::IntoIter: Send,
{
    build(&mut IterSource::new(tuples.into_iter(), None), target, options, &Silent)
}

/// The bytes that [`build_slice`] would write, without any file.
pub fn build_bytes<K: Key, V: Value>(
    tuples: &[(K, V)],
    options: &BuildOptions,
) -> Result<Vec<u8>, BuildError> {
    let storage = MemoryStorage::default();
    let target = Path::new("/memory.pleach");
    let mut source = IterSource::new(tuples.iter().copied(), Some(tuples.len() as u64));
    build_with_storage(&mut source, target, options, &Silent, &storage)?;
    Ok(storage.take(target).unwrap_or_default())
}

/// A source over an iterator.
struct IterSource<I> {
    tuples: I,
    schema: Schema,
    read: u64,
}

impl<K: Key, V: Value, I: Iterator<Item = (K, V)>> IterSource<I> {
    fn new(tuples: I, rows: Option<u64>) -> Self {
        let schema = Schema {
            key_type: K::TYPE,
            value_type: V::TYPE,
            key_name: String::new(),
            value_name: String::new(),
            key_logical: String::new(),
            value_logical: String::new(),
            rows,
        };
        Self { tuples, schema, read: 0 }
    }
}

impl<K: Key, V: Value, I: Iterator<Item = (K, V)> + Send> Source for IterSource<I> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        use pleach_format::Bits;
        chunk.clear();
        for (key, value) in self.tuples.by_ref().take(tuples_max) {
            match &mut chunk.keys {
                Column::None => {}
                Column::U32(words) => words.push(key.encode().to_u64() as u32),
                Column::U64(words) => words.push(key.encode().to_u64()),
            }
            match &mut chunk.values {
                Column::None => {}
                Column::U32(words) => words.push(value.to_bits().to_u64() as u32),
                Column::U64(words) => words.push(value.to_bits().to_u64()),
            }
        }
        self.read += chunk.len() as u64;
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.read, self.schema.rows)
    }
}
