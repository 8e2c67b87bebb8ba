//! Builds Pleach files: a stream of tuples becomes one sorted, searchable, checksummed file.
//!
//! ```text
//! source.rs    where tuples come from          pack.rs     tuples to tuple lines
//! flow.rs      a build from start to end       lines.rs    2 MiB pieces, sums, on all threads
//! words.rs     sorted? stream it : sort it     bytes.rs    the same for byte strings
//! sort.rs      in memory                       spine.rs    levels above the tuple lines
//! external.rs  beyond memory                   finish.rs   table, superblock
//! publish.rs   lock, rename, sync (storage.rs: system)
//! remains.rs   what goes if the process ends early
//! parallel.rs  work on all threads, in numbered tasks
//! classic/     FAST trees, from sorted words into a slice
//! harmonia.rs  Harmonia's B+tree, as a section
//! rescale.rs   words in a finer unit
//! rebuild/     the next generation of a file, from a batch of changes
//! ```
//!
//! A build first treats its source as sorted, and writes at once. At the first key out of order it reads back
//! what it wrote, and sorts. The same tuples and options give the same bytes, whatever the number of threads,
//! the memory limit and the path of the build.

mod bytes;
pub mod classic;
mod columns;
pub mod error;
mod external;
mod finish;
mod flow;
mod grid;
mod harmonia;
mod held;
mod hint;
mod job;
mod limits;
mod lines;
mod lock;
pub mod observe;
pub mod options;
mod overflow;
mod pack;
mod packed;
mod parallel;
mod plan;
pub mod publish;
mod reader;
pub mod rebuild;
mod records;
pub mod remains;
pub mod rescale;
mod section;
mod sections;
mod show;
mod sort;
pub mod source;
mod spine;
mod standing;
pub mod storage;
mod words;

pub use error::BuildError;
pub use observe::{Observer, Phase, Silent};
pub use options::{BuildOptions, Harmonia, Layout, Summary, Unique};
pub use pleach_pool as pool;
pub use source::{Chunk, Column, Op, Schema, Source, SourceError, Strings};

use pleach_format::{Key, KeyType, Value, Word};
use std::path::Path;
use storage::{MemoryStorage, RealStorage, Storage};

/// Builds the file `target` from a source.
///
/// Sorted input costs O(tuples) time and little memory; other input is sorted, in memory or by spilling to
/// `options.temp_dir`. The target appears complete and synced, or not at all. A build that fails or is
/// cancelled leaves the previous file untouched.
///
/// # Errors
/// [`BuildError`]: the source refuses the input, the options and the data disagree, the target may not be
/// replaced or is locked, the system fails, or the observer cancels.
pub fn build(
    source: &mut dyn Source,
    target: &Path,
    options: &BuildOptions,
    observer: &dyn Observer,
) -> Result<Summary, BuildError> {
    build_with_storage(source, target, options, observer, &RealStorage)
}

/// Builds as [`build`] does, over any storage: the seam for tests in which the system fails.
///
/// # Errors
/// The errors of [`build`].
pub fn build_with_storage(
    source: &mut dyn Source,
    target: &Path,
    options: &BuildOptions,
    observer: &dyn Observer,
    storage: &dyn Storage,
) -> Result<Summary, BuildError> {
    in_pool(options.threads, || flow::build(source, target, options, observer, storage))
}

/// Runs `work` in a pool of `threads` threads; 0 selects the current pool.
fn in_pool<T: Send>(
    threads: usize,
    work: impl FnOnce() -> Result<T, BuildError> + Send,
) -> Result<T, BuildError> {
    match threads {
        // Enter the pool once, instead of at each step.
        0 => {
            pool::ready();
            rayon::join(work, || ()).0
        }
        threads => rayon::ThreadPoolBuilder::new()
            .num_threads(threads.min(options::THREADS_MAX))
            .thread_name(|index| format!("pleach-build-{index}"))
            .build()
            .map_err(|error| {
                let mut problem = error.to_string();
                problem.truncate(problem.find(" (os error ").unwrap_or(problem.len()));
                BuildError::Threads { threads, problem }
            })?
            .install(work),
    }
}

/// Builds the file `target` from a slice of tuples in any order.
///
/// # Errors
/// The errors of [`build`].
pub fn build_slice<K: Key, V: Value>(
    tuples: &[(K, V)],
    target: &Path,
    options: &BuildOptions,
) -> Result<Summary, BuildError> {
    build(&mut IterSource::new(tuples.iter().copied(), Some(tuples.len() as u64)), target, options, &Silent)
}

/// Builds the file `target` from an iterator over tuples in any order.
///
/// # Errors
/// The errors of [`build`].
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

/// Returns the bytes that [`build_slice`] would write, without any file.
///
/// # Errors
/// The errors of [`build_slice`] that do not come from the file system.
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

/// Builds the file `target` from tuples with byte keys of type `key_type`, in any order.
///
/// # Errors
/// The errors of [`build`]; [`BuildError::Source`] if `key_type` is numeric (use [`build_slice`] for such tuples),
/// or if a key is not valid for the type.
pub fn build_strings<K: AsRef<[u8]> + Sync, V: Value>(
    key_type: KeyType,
    tuples: &[(K, V)],
    target: &Path,
    options: &BuildOptions,
) -> Result<Summary, BuildError> {
    build(&mut string_source(key_type, tuples)?, target, options, &Silent)
}

/// Returns the bytes that [`build_strings`] would write, without any file.
///
/// # Errors
/// The errors of [`build_strings`] that do not come from the file system.
pub fn build_strings_bytes<K: AsRef<[u8]> + Sync, V: Value>(
    key_type: KeyType,
    tuples: &[(K, V)],
    options: &BuildOptions,
) -> Result<Vec<u8>, BuildError> {
    let storage = MemoryStorage::default();
    let target = Path::new("/memory.pleach");
    build_with_storage(&mut string_source(key_type, tuples)?, target, options, &Silent, &storage)?;
    Ok(storage.take(target).unwrap_or_default())
}

fn string_source<K: AsRef<[u8]> + Sync, V: Value>(
    key_type: KeyType,
    tuples: &[(K, V)],
) -> Result<impl Source, BuildError> {
    let refused = |place: String, problem: String| {
        BuildError::Source(SourceError { input: "input".into(), place, problem, cause: None })
    };
    if !key_type.is_bytes() {
        let problem = format!("{key_type} keys are numbers, not byte strings: build them by `build_slice`");
        return Err(refused(String::new(), problem));
    }
    let is_key = |key: &[u8]| match key_type {
        KeyType::Fixed(bytes) => key.len() == usize::from(bytes),
        KeyType::Utf8 => std::str::from_utf8(key).is_ok(),
        KeyType::Bytes => true,
        KeyType::U32 | KeyType::U64 | KeyType::I32 | KeyType::I64 | KeyType::U128 | KeyType::F64 => false,
    };
    if let Some(row) = tuples.iter().position(|(key, _)| !is_key(key.as_ref())) {
        return Err(refused(format!("row {row}"), format!("invalid {key_type} key: leave it out")));
    }
    const TUPLES: usize = 1 << 14;
    let schema = Schema::plain(key_type, V::TYPE, Some(tuples.len() as u64));
    let chunks = tuples.chunks(TUPLES).map(move |tuples| {
        let mut chunk = Chunk::new(key_type, V::TYPE);
        for (key, value) in tuples {
            if let Column::Bytes(keys) = &mut chunk.keys {
                keys.push(key.as_ref());
            }
            push_value(&mut chunk.values, *value);
        }
        chunk
    });
    Ok(ChunkSource::new(schema, chunks))
}

fn push_value<V: Value>(column: &mut Column, value: V) {
    use pleach_format::Bits;
    match column {
        Column::None | Column::U128(_) | Column::Bytes(_) => {}
        Column::U32(words) => words.push(value.to_bits().to_u64() as u32),
        Column::U64(words) => words.push(value.to_bits().to_u64()),
    }
}

/// A source over chunks that an iterator yields.
pub struct ChunkSource<I> {
    schema: Schema,
    chunks: I,
    read: u64,
}

impl<I: Iterator<Item = Chunk> + Send> ChunkSource<I> {
    /// Creates a source of chunks. Their columns must be those of the schema's types ([`Chunk::new`]).
    pub fn new(schema: Schema, chunks: impl IntoIterator<IntoIter = I>) -> Self {
        Self { schema, chunks: chunks.into_iter(), read: 0 }
    }
}

impl<I: Iterator<Item = Chunk> + Send> Source for ChunkSource<I> {
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn next_chunk(&mut self, chunk: &mut Chunk, _tuples_max: usize) -> Result<(), SourceError> {
        // An empty chunk between others does not end the stream.
        let next = self.chunks.find(|next| !next.is_empty());
        match next {
            Some(next) => *chunk = next,
            None => chunk.clear(),
        }
        self.read += chunk.len() as u64;
        Ok(())
    }
    fn progress(&self) -> (u64, Option<u64>) {
        (self.read, self.schema.rows)
    }
}

/// A source over an iterator.
struct IterSource<I> {
    tuples: I,
    schema: Schema,
    read: u64,
}

impl<K: Key, V: Value, I: Iterator<Item = (K, V)>> IterSource<I> {
    fn new(tuples: I, rows: Option<u64>) -> Self {
        let schema = Schema::plain(K::TYPE, V::TYPE, rows);
        Self { tuples, schema, read: 0 }
    }
}

impl<K: Key, V: Value, I: Iterator<Item = (K, V)> + Send> Source for IterSource<I> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        chunk.clear();
        for (key, value) in self.tuples.by_ref().take(tuples_max) {
            match &mut chunk.keys {
                Column::U32(words) => words.push(key.encode().to_u128() as u32),
                Column::U64(words) => words.push(key.encode().to_u128() as u64),
                Column::U128(words) => words.push(key.encode().to_u128()),
                Column::None | Column::Bytes(_) => {}
            }
            push_value(&mut chunk.values, value);
        }
        self.read += chunk.len() as u64;
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.read, self.schema.rows)
    }
}

/// The program of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
