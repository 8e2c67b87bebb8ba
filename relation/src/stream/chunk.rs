//! Chunks of tuples, and the types and names of their columns.

use pleach::{KeyType, ValueType};
use pleach_builder::Column;

/// Tuples of an answer, with consecutive ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Encoded keys, or byte strings.
    pub keys: Column,
    /// Value bits, or byte strings; the left values of a join.
    pub values: Column,
    /// Right values of a join.
    pub right: Column,
    /// Right keys of an as-of or a band join, encoded as the keys are; otherwise none.
    pub right_keys: Column,
    /// For an outer join, one number per tuple: 1 if it has a left part, 2 if it has a right one, 3 for both;
    /// otherwise empty. The value of a missing part is zero, or an empty string, or a string of zero bytes if
    /// all have one length.
    pub sides: Vec<u8>,
    /// Rank of the first tuple of a chunk of an input, for predicates and projections; 0 in an answer.
    pub first_rank: u64,
}

impl Chunk {
    /// Number of tuples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if the chunk has no tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name; empty if it has none.
    pub name: String,
    /// Its type.
    pub value_type: ValueType,
    /// Its logical type in Arrow's notation, empty if plain.
    pub logical: String,
}

/// Types and names of the columns of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Key type.
    pub key_type: KeyType,
    /// Name of the key column; empty if it has none.
    pub key_name: String,
    /// Logical type of the keys in Arrow's notation, empty if plain.
    pub key_logical: String,
    /// Values; the left values of a join.
    pub values: Field,
    /// Right values of a join.
    pub right: Option<Field>,
    /// True if chunks have right keys too, of the type of the keys: in an as-of or a band join.
    pub has_right_keys: bool,
    /// True if chunks specify which sides each tuple has.
    pub has_sides: bool,
    /// True if the keys are in order.
    pub is_sorted: bool,
    /// True if keys begin intervals, and the first field of each value is the last key of its interval.
    pub is_interval: bool,
    /// Number of different keys, at most, if they are shorter than those they stand for.
    pub approximate: Option<u64>,
}
