//! Builds Pleach files: a stream of tuples becomes one sorted, searchable, checksummed file.
//!
//! A program builds with a [`Builder`]: options by setters, and tuples from an iterator. A [`Source`] yields columns
//! in chunks, for tables that are not tuples in memory; [`build`] takes one.
//!
//! ```text
//! source.rs    where tuples come from          pack.rs     tuples to tuple lines
//! flow.rs      a build from start to end       lines.rs    2 MiB pieces, sums, on all threads
//! words.rs     sorted? stream it : sort it     bytes.rs    the same for byte strings
//! shorten.rs   words as short as keys allow    spine.rs    levels above the tuple lines
//! sort.rs      in memory                       grid/       the segments of the grid
//! external.rs  beyond memory                   finish.rs   table, superblock
//! publish.rs   lock, rename, sync (storage.rs: system)
//! remains.rs   what goes if the process ends early
//! parallel.rs  work on all threads, in numbered tasks
//! classic/     FAST trees, from sorted words into a slice
//! harmonia.rs  Harmonia's B+tree, as a section
//! rescale.rs   words in a finer unit
//! rebuild/     the next generation of a file, from a batch of changes
//! builder.rs   building from Rust
//! ```
//!
//! A build first treats its source as sorted, and writes at once. At the first key out of order it reads back
//! what it wrote, and sorts. The same tuples and options give the same bytes, whatever the number of threads,
//! the memory limit and the path of the build.

mod btree;
mod builder;
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
pub mod intervals;
mod job;
mod layout;
mod limits;
mod lines;
mod lock;
mod lossy;
mod nodes;
pub mod observe;
mod once;
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
mod short;
mod shorten;
mod show;
mod sort;
pub mod source;
mod spine;
mod staged;
mod standing;
mod starts;
pub mod storage;
mod stream;
mod text;
mod words;

pub use builder::{Builder, in_memory};
pub use error::BuildError;
pub use layout::{Btree, Fast, Harmonia, Layout, LayoutError, Values};
pub use observe::{Observer, Phase, Silent};
pub use options::{BuildOptions, Overlap, Summary, Unique};
pub use pleach_format::classic::paged::Form;
pub use pleach_format::record::BuildField;
pub use pleach_format::stored::{BuildKey, BuildValue};
pub use pleach_pool as pool;
#[doc(hidden)]
pub use short::{build_bytes, build_iter, build_slice, build_strings, build_strings_bytes};
pub use source::{Chunk, Column, Op, Schema, Source, SourceError, Strings};
pub use starts::Starts;

use std::path::Path;
use storage::{RealStorage, Storage};

/// Builds the file `target` from a source. For tuples of a program see [`Builder`].
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
    target: impl AsRef<Path>,
    options: &BuildOptions,
    observer: &dyn Observer,
) -> Result<Summary, BuildError> {
    build_with_storage(source, target.as_ref(), options, observer, &RealStorage)
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
    in_pool(options.threads, || staged::build(source, target, options, observer, storage))
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
        // An empty chunk between others does not end the stream. One of values without keys is passed on: the
        // build refuses it.
        let is_any = |next: &Chunk| !next.is_empty() || !next.values.is_empty() || !next.ops.is_empty();
        let next = self.chunks.find(is_any);
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
