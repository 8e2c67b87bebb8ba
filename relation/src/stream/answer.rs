//! The answer of an operator: chunks on request, in order.

use super::chunk::{Chunk, Schema};
use super::columns::{append, slice};
use super::pairs::{Positions, Runs};
use crate::error::RelationError;
use pleach_builder::{Column, Observer, Phase, Silent};
use rayon::prelude::*;
use std::collections::VecDeque;

/// Maximum tuples of an answer.
pub(super) const TUPLES_MAX: u128 = 1 << 63;

/// Which parts of the answer the caller requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The number of tuples: no column is made.
    Count,
    Tuples(Kept),
}

/// An operator that yields chunks in order.
pub(super) trait Producer: Send {
    /// Returns the next chunks; `None` at the end.
    fn next(&mut self, wanted: Wanted) -> Result<Option<Vec<Produced>>, RelationError>;
    /// Returns the number of input tuples that were read.
    fn done(&self) -> u64;
}

/// Result of a piece.
pub(super) enum Produced {
    Chunk(Chunk),
    Count(u128),
    /// More bytes than fit into a chunk.
    Positions(Positions),
    /// More tuples than fit into a chunk.
    Runs(Box<Runs>),
}

/// Takes the next pieces of work, two for each thread.
pub(super) fn next_pieces<P>(
    mut next: impl FnMut() -> Result<Option<P>, RelationError>,
) -> Result<Vec<P>, RelationError> {
    pleach_builder::pool::ready();
    let mut pieces = Vec::new();
    while pieces.len() < rayon::current_num_threads() * 2
        && let Some(piece) = next()?
    {
        pieces.push(piece);
    }
    Ok(pieces)
}

/// Does pieces of work on all threads; `None` if there are none.
pub(super) fn produced<P: Sync>(
    pieces: &[P],
    produce: impl Fn(&P) -> Result<Produced, RelationError> + Sync,
) -> Result<Option<Vec<Produced>>, RelationError> {
    let all: Vec<Result<Produced, RelationError>> = pieces.par_iter().map(&produce).collect();
    let all: Vec<Produced> = all.into_iter().collect::<Result<_, _>>()?;
    Ok((!all.is_empty()).then_some(all))
}

/// The answer of an operator, evaluated when its chunks are requested.
pub struct Answer<'a> {
    pub(super) schema: Schema,
    producer: Box<dyn Producer + 'a>,
    plan: String,
    /// Tuples of the inputs that will be read.
    total: u64,
    piece_tuples: u64,
    /// Ready chunks, in order.
    ready: VecDeque<Produced>,
    /// Values of a join or a product that are kept.
    kept: Kept,
    /// Tuples that are yet to be returned, at most.
    left: u64,
    observer: &'a dyn Observer,
}

/// Values of a join or a product that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// Those of both sides.
    #[default]
    Both,
    /// Left ones, as the only values.
    Left,
    /// Right ones, as the only values.
    Right,
}

impl<'a> Answer<'a> {
    /// Makes an answer of chunks of about `piece_tuples` tuples, for which `total` input tuples are read.
    pub(super) fn new(
        schema: Schema,
        producer: Box<dyn Producer + 'a>,
        plan: String,
        (total, piece_tuples): (u64, u64),
    ) -> Self {
        let (ready, kept) = (VecDeque::new(), Kept::Both);
        let left = u64::MAX;
        Self { schema, producer, plan, total, piece_tuples, ready, kept, left, observer: &Silent }
    }

    /// Returns the number of input tuples that were read, and of those that will be read in all.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.producer.done(), self.total)
    }

    /// Returns the same tuples with the values of one side only. Does not change an answer that has one
    /// value.
    #[must_use]
    pub fn keep(mut self, kept: Kept) -> Self {
        if kept != Kept::Both
            && let Some(right) = self.schema.right.take()
        {
            self.kept = kept;
            (self.schema.has_sides, self.schema.has_right_keys) = (false, false);
            if kept == Kept::Right {
                self.schema.values = right;
            }
        }
        self
    }

    /// Returns the first tuples only. What comes after them is not read, and so not verified.
    #[must_use]
    pub fn limited(mut self, tuples: u64) -> Self {
        self.left = self.left.min(tuples);
        self
    }

    /// Returns the types and names of its columns.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Describes in one line how it will be evaluated.
    #[must_use]
    pub fn plan(&self) -> &str {
        &self.plan
    }

    /// Reports the progress of reading the inputs to `observer`, which may cancel.
    #[must_use]
    pub fn watched(mut self, observer: &'a dyn Observer) -> Self {
        self.observer = observer;
        self
    }

    fn fill(&mut self, wanted: Wanted) -> Result<bool, RelationError> {
        while self.ready.is_empty() {
            if self.observer.cancelled() {
                return Err(RelationError::Interrupted);
            }
            let Some(produced) = self.producer.next(wanted)? else { return Ok(false) };
            self.ready.extend(produced);
            self.observer.progress(Phase::Read, self.producer.done(), Some(self.total));
        }
        Ok(true)
    }

    /// Returns the next chunk, which is not empty. Returns `None` at the end, after everything on which the
    /// answer depends has been verified.
    ///
    /// # Errors
    /// [`RelationError::Damaged`], [`RelationError::Overflow`], [`RelationError::Interrupted`]: chunks that
    /// were returned before are then invalid.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, RelationError> {
        while self.left > 0 && self.fill(Wanted::Tuples(self.kept))? {
            let mut chunk = match self.ready.pop_front() {
                Some(Produced::Chunk(chunk)) => chunk,
                Some(Produced::Positions(mut positions)) => {
                    let chunk = positions.next_chunk();
                    if positions.len() > 0 {
                        self.ready.push_front(Produced::Positions(positions));
                    }
                    chunk
                }
                Some(Produced::Runs(runs)) => {
                    self.expand(*runs);
                    continue;
                }
                Some(Produced::Count(_)) | None => continue,
            };
            if self.kept != Kept::Both {
                let right = std::mem::take(&mut chunk.right);
                chunk.right_keys = Column::None;
                chunk.sides.clear();
                if self.kept == Kept::Right {
                    chunk.values = right;
                }
            }
            if chunk.len() as u64 > self.left {
                chunk = first(&chunk, self.left as usize);
            }
            self.left -= chunk.len() as u64;
            if !chunk.is_empty() {
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    /// Makes chunks of the next results of some runs; the rest goes back to the queue.
    fn expand(&mut self, mut runs: Runs) {
        let parts = runs.expand(self.piece_tuples);
        if runs.at < runs.total {
            self.ready.push_front(Produced::Runs(Box::new(runs)));
        }
        pleach_builder::pool::ready();
        let produced: Vec<Produced> = parts.into_par_iter().map(chunk_or_positions).collect();
        produced.into_iter().rev().for_each(|produced| self.ready.push_front(produced));
    }

    /// Counts the tuples of the answer, without those that were already returned. Reads and verifies the
    /// keys; makes no column of the answer.
    ///
    /// # Errors
    /// The errors of [`Answer::next_chunk`], and [`RelationError::TooLarge`] above 2^63.
    pub fn count(mut self) -> Result<u64, RelationError> {
        let tuples = self.counted()?.min(self.left.into());
        match u64::try_from(tuples) {
            Ok(count) if tuples <= TUPLES_MAX => Ok(count),
            _ => Err(RelationError::TooLarge { what: "the answer", tuples, limit: TUPLES_MAX }),
        }
    }

    pub(super) fn counted(&mut self) -> Result<u128, RelationError> {
        let mut total = 0u128;
        while self.fill(Wanted::Count)? {
            total += match self.ready.pop_front() {
                Some(Produced::Count(count)) => count,
                Some(Produced::Chunk(chunk)) => chunk.len() as u128,
                Some(Produced::Positions(positions)) => positions.len() as u128,
                Some(Produced::Runs(runs)) => u128::from(runs.total - runs.at),
                None => 0,
            };
        }
        Ok(total)
    }

    /// Passes the chunks to `sink`, in order.
    ///
    /// # Errors
    /// The errors of [`Answer::next_chunk`] and of the sink.
    pub fn for_each_chunk(
        mut self,
        mut sink: impl FnMut(Chunk) -> Result<(), RelationError>,
    ) -> Result<(), RelationError> {
        while let Some(chunk) = self.next_chunk()? {
            sink(chunk)?;
        }
        Ok(())
    }

    /// Returns the whole answer in memory, as one chunk.
    ///
    /// # Errors
    /// The errors of [`Answer::next_chunk`].
    pub fn collect(mut self) -> Result<Chunk, RelationError> {
        let right =
            self.schema.right.as_ref().map_or(Column::None, |field| Column::for_value(field.value_type));
        let mut all = Chunk {
            keys: Column::for_key(self.schema.key_type),
            values: Column::for_value(self.schema.values.value_type),
            right,
            right_keys: match self.schema.has_right_keys {
                true => Column::for_key(self.schema.key_type),
                false => Column::None,
            },
            sides: Vec::new(),
            first_rank: 0,
        };
        while let Some(chunk) = self.next_chunk()? {
            append(&mut all.keys, &chunk.keys);
            append(&mut all.values, &chunk.values);
            append(&mut all.right, &chunk.right);
            append(&mut all.right_keys, &chunk.right_keys);
            all.sides.extend_from_slice(&chunk.sides);
        }
        Ok(all)
    }
}

/// Returns the first tuples of a chunk, which has more.
fn first(chunk: &Chunk, tuples: usize) -> Chunk {
    let of = |column: &Column| slice(column, 0..tuples);
    Chunk {
        keys: of(&chunk.keys),
        values: of(&chunk.values),
        right: of(&chunk.right),
        right_keys: of(&chunk.right_keys),
        sides: chunk.sides.iter().copied().take(tuples).collect(),
        first_rank: chunk.first_rank,
    }
}

/// Makes a chunk if there are few bytes.
pub(super) fn chunk_or_positions(mut positions: Positions) -> Produced {
    match positions.is_chunk() {
        true => Produced::Chunk(positions.next_chunk()),
        false => Produced::Positions(positions),
    }
}
