//! Operators over sorted slices.
//!
//! ```text
//! walk.rs     steps through both sides without a branch, four parts in turn
//! vector.rs   the same by blocks, for keys alone         blocks.rs   what blocks leave
//! cut.rs      cuts of both sides into parts
//! ordered.rs  tasks in parallel, results one after the other, in one pass
//! sweep.rs    the three together
//! set.rs      union, intersection, difference      join.rs     joins
//! many.rs     of more than two inputs              rows.rs     select, project, product, reduce
//! ```
//! Keys are *encoded* words (see [`pleach_format::key`]); values are of any `Copy` type.
//!
//! There are two forms. Functions whose names end in `ranks` count first, and then write exactly as many
//! pairs of ranks as there are; [`gather`] fetches the elements. The others write tuples in one pass, into a
//! buffer that is large enough for every answer: |A| + |B| tuples for set operations, |A| for a join whose
//! right keys are unique. A join whose answer turns out to be larger counts and begins again. Memory that is
//! not written is not touched.

mod blocks;
mod cut;
pub(crate) mod join;
mod many;
mod ordered;
pub(crate) mod rows;
mod set;
pub(crate) mod sweep;
mod vector;
pub(crate) mod walk;

#[cfg(test)]
pub(crate) mod tests;

pub use join::{Joined, join, join_count, join_into, join_ranks};
pub use many::{intersect_all, union_all};
pub use rows::{Reduce, product, project, reduce, select, select_ranks};
pub use set::{set_count, set_into, set_of_left, set_operation, set_ranks};
pub use sweep::{Method, Plan};

use crate::error::RelationError;
use pleach_format::Word;
use rayon::prelude::*;

/// Rank of a missing tuple.
pub const ABSENT: u64 = u64::MAX;

/// Tuples per part, of both sides together: its keys and its output stay in the second-level cache, four
/// parts at a time.
const PART_TUPLES: usize = 8 << 10;

/// Size of the units of work, which affects only speed, and the limit of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Tuples per part, of both sides together, at least 1.
    pub part_tuples: usize,
    /// Output tuples per piece, at least 1, for a join whose output is larger than its input.
    pub piece_tuples: usize,
    /// Maximum bytes of an answer.
    pub memory_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        let memory_bytes = pleach_builder::options::physical_memory_bytes();
        Self { part_tuples: PART_TUPLES, piece_tuples: 64 << 10, memory_bytes }
    }
}

/// A sorted relation in memory: keys, and a value for each.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a, K, V> {
    pub(crate) keys: &'a [K],
    pub(crate) values: &'a [V],
}

impl<'a, K: Word, V: Copy> Columns<'a, K, V> {
    /// Makes a relation of encoded keys, which must be in order, and a value for each. O(keys).
    ///
    /// # Errors
    /// [`RelationError::Unsorted`] if the keys are not in order and [`RelationError::Lengths`] if the lengths
    /// differ, with the relation's `name`.
    pub fn new(name: &str, keys: &'a [K], values: &'a [V]) -> Result<Self, RelationError> {
        let this = Self::sorted(name, keys, values)?;
        const CHUNK: usize = 1 << 16;
        let chunks = keys.len().div_ceil(CHUNK);
        pleach_builder::pool::ready();
        let bad = (0..chunks).into_par_iter().find_map_first(|chunk| {
            let from = (chunk * CHUNK).saturating_sub(1);
            let keys = &keys[from..((chunk + 1) * CHUNK).min(keys.len())];
            let sorted = keys.windows(2).fold(true, |sorted, pair| sorted & (pair[0] <= pair[1]));
            let at = || keys.windows(2).position(|pair| pair[0] > pair[1]);
            (!sorted).then(at).flatten().map(|at| from + at + 1)
        });
        match bad {
            Some(rank) => Err(RelationError::Unsorted { input: name.to_owned(), rank: rank as u64 }),
            None => Ok(this),
        }
    }

    /// Makes a relation of keys that are known to be in order. If they are not, answers are wrong, but safe.
    /// O(1).
    ///
    /// # Errors
    /// [`RelationError::Lengths`] if the lengths differ.
    pub fn sorted(name: &str, keys: &'a [K], values: &'a [V]) -> Result<Self, RelationError> {
        let lengths = (keys.len() as u64, values.len() as u64);
        if lengths.0 != lengths.1 {
            return Err(RelationError::Lengths {
                input: name.to_owned(),
                keys: lengths.0,
                values: lengths.1,
            });
        }
        Ok(Self { keys, values })
    }

    /// Number of tuples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if the relation has no tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

/// Returns an empty value for each of `tuples` keys; takes no memory.
#[must_use]
pub fn no_values(tuples: usize) -> &'static [()] {
    // A slice of zero-sized elements may have any length.
    const NONE: [(); usize::MAX] = [(); usize::MAX];
    &NONE[..tuples]
}

/// Positions of an answer in its inputs: one pair per tuple, with [`ABSENT`] for a side that has no part in
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankPairs {
    /// Left ranks.
    pub left: Vec<u64>,
    /// Right ranks.
    pub right: Vec<u64>,
}

/// Returns the elements at `ranks`, and `absent` for [`ABSENT`] ranks. O(ranks), in parallel.
#[must_use]
pub fn gather<T: Copy + Send + Sync>(elements: &[T], ranks: &[u64], absent: T) -> Vec<T> {
    let at = |&rank: &u64| usize::try_from(rank).ok().and_then(|rank| elements.get(rank)).copied();
    pleach_builder::pool::ready();
    ranks.par_iter().with_min_len(1 << 12).map(|rank| at(rank).unwrap_or(absent)).collect()
}
