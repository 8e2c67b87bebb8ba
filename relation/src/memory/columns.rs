//! Sorted relations in memory.

use crate::error::RelationError;
use pleach_format::Word;
use rayon::prelude::*;

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
        if keys.len() != values.len() {
            let (keys, values) = (keys.len() as u64, values.len() as u64);
            return Err(RelationError::Lengths { input: name.to_owned(), keys, values });
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
