//! The tuples of a published file as sources of builds: all of them, or those of a range of ranks.
//!
//! The file is read by verified blocks, as a rebuild reads its base: never mapped, and in bounded memory.

use super::base::Base;
use super::changes::Effects;
use super::compact::append;
use super::passing::unwrapped;
use super::strings::ByteMerge;
use super::words::WordMerge;
use crate::error::BuildError;
use crate::flow;
use crate::in_pool;
use crate::job::with_lanes;
use crate::observe::Observer;
use crate::options::{BuildOptions, Summary};
use crate::pack::{KeyLane, ValueLane};
use crate::source::{Chunk, Schema, Source, SourceError};
use crate::storage::{RealStorage, Storage};
use std::fs::File;
use std::ops::Range;
use std::path::Path;

/// A file whose tuples are read in order.
///
/// ```
/// use pleach_builder::rebuild::Ordered;
/// use pleach_builder::{BuildOptions, Builder, Silent};
///
/// # let folder = tempfile::tempdir()?;
/// # let (path, half) = (folder.path().join("a.pleach"), folder.path().join("b.pleach"));
/// Builder::new().build(&path, (0..100u64).map(|key| (key, key)))?;
/// let tuples = Ordered::open(&path)?;
/// let options = BuildOptions { sorted: true, ..BuildOptions::default() };
/// assert_eq!(tuples.build(50..100, &half, &options, &Silent)?.tuples, 50);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Ordered {
    base: Base,
    schema: Schema,
}

impl Ordered {
    /// Opens a file. O(1).
    ///
    /// # Errors
    /// [`BuildError::Io`], [`BuildError::Base`] or [`BuildError::Damaged`] if it cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, BuildError> {
        Self::new(Base::open(&RealStorage, path.as_ref(), false)?)
    }

    /// Reads an open file, which errors call `path`.
    ///
    /// # Errors
    /// Those of [`Ordered::open`].
    pub fn over(file: File, path: impl AsRef<Path>) -> Result<Self, BuildError> {
        let path = path.as_ref();
        let failed = |error| BuildError::io("reading", path, error);
        let bytes = file.metadata().map_err(failed)?.len();
        Self::new(Base::over(RealStorage.own(file), bytes, path, false)?)
    }

    fn new(base: Base) -> Result<Self, BuildError> {
        let schema = base.schema()?;
        Ok(Self { base, schema })
    }

    /// Returns the number of tuples.
    #[must_use]
    pub fn tuples(&self) -> u64 {
        self.base.header.tuples
    }

    /// Returns the types and names of the columns.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns the tuples of a range of ranks, which is cut at [`Ordered::tuples`]. Errors of reading them
    /// pass through the source; [`Ordered::build`] returns them as they are.
    ///
    /// # Errors
    /// Those of [`Ordered::open`].
    pub fn source(&self, ranks: Range<u64>) -> Result<Box<dyn Source + '_>, BuildError> {
        let ranks = ranks.start..ranks.end.min(self.tuples()).max(ranks.start);
        let (start, all) = if self.schema.key_type.is_bytes() || self.schema.value_type.is_bytes() {
            let mut all = ByteMerge::new(&self.base, self.schema.clone(), Effects::default())?;
            (all.start_at(ranks.start), Box::new(all) as Box<dyn Source + '_>)
        } else {
            let (word_bytes, value_bytes) =
                (self.schema.key_type.bytes(), self.schema.value_type.line_bytes());
            let words = Words(self);
            with_lanes!(word_bytes, value_bytes => words.from(ranks.start))?
        };
        let rows = Some(ranks.end - ranks.start);
        let schema = Schema { rows, ..self.schema.clone() };
        let chunk = Chunk::new(schema.key_type, schema.value_type);
        Ok(Box::new(Part { all, schema, skip: ranks.start - start, left: ranks.end - ranks.start, chunk }))
    }

    /// Builds a file of the tuples of a range of ranks.
    ///
    /// # Errors
    /// Those of [`Ordered::open`] and of [`build`](crate::build).
    pub fn build(
        &self,
        ranks: Range<u64>,
        target: impl AsRef<Path>,
        options: &BuildOptions,
        observer: &dyn Observer,
    ) -> Result<Summary, BuildError> {
        let mut source = self.source(ranks)?;
        self::build(&mut *source, target.as_ref(), options, observer)
    }
}

/// Builds a file of a source that reads files; its errors come back as they were.
///
/// # Errors
/// Those of [`build`](crate::build).
pub fn build(
    source: &mut dyn Source,
    target: &Path,
    options: &BuildOptions,
    observer: &dyn Observer,
) -> Result<Summary, BuildError> {
    let work = || flow::build(source, target, options, observer, &RealStorage as &dyn Storage);
    in_pool(options.threads, work).map_err(unwrapped)
}

/// Returns the error of a source that reads files, as it was.
#[must_use]
pub fn unwrapped_source(error: SourceError) -> BuildError {
    unwrapped(BuildError::Source(error))
}

/// Opens files whose keys are words.
struct Words<'a>(&'a Ordered);

impl<'a> Words<'a> {
    /// Returns the first rank that is read, and the source.
    fn from<W: KeyLane, B: ValueLane>(&self, rank: u64) -> Result<(u64, Box<dyn Source + 'a>), BuildError> {
        let Ordered { base, schema } = self.0;
        let mut all = WordMerge::<W, B>::new(base, schema.clone(), Effects::default())?;
        let start = all.start_at(rank);
        Ok((start, Box::new(all)))
    }
}

/// Some consecutive tuples of a source.
struct Part<'a> {
    all: Box<dyn Source + 'a>,
    schema: Schema,
    /// Tuples to leave out, and then to yield.
    skip: u64,
    left: u64,
    chunk: Chunk,
}

impl Source for Part<'_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        *chunk = Chunk::new(self.schema.key_type, self.schema.value_type);
        while self.left > 0 && chunk.is_empty() {
            let most = (self.skip + self.left).min(tuples_max as u64) as usize;
            self.all.next_chunk(&mut self.chunk, most)?;
            if self.chunk.is_empty() {
                break;
            }
            let count = self.chunk.len() as u64;
            let skipped = self.skip.min(count);
            let taken = self.left.min(count - skipped);
            self.skip -= skipped;
            self.left -= taken;
            if skipped == 0 && taken == count {
                std::mem::swap(chunk, &mut self.chunk);
            } else {
                append(&self.chunk, skipped as usize..(skipped + taken) as usize, chunk);
            }
        }
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        let rows = self.schema.rows.unwrap_or(0);
        (rows - self.left, Some(rows))
    }
}
