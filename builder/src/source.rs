//! Where tuples come from: a typed stream of columns, read a chunk at a time.
//!
//! A source hands out *encoded* keys and value bits (see [`pleach_format::key`]), so that everything
//! behind it works on machine words whatever the types are.

use pleach_format::{KeyType, ValueType};
use std::fmt;

/// A column of machine words. The variant follows from the type: `U32` for types of four bytes,
/// `U64` for types of eight, `None` for files without values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Column {
    /// No column (values of type `none`).
    #[default]
    None,
    /// Words of four bytes.
    U32(Vec<u32>),
    /// Words of eight bytes.
    U64(Vec<u64>),
}

impl Column {
    /// An empty column for words of `bytes` bytes (0, 4 or 8).
    #[must_use]
    pub fn with_width(bytes: usize) -> Self {
        match bytes {
            0 => Self::None,
            4 => Self::U32(Vec::new()),
            _ => Self::U64(Vec::new()),
        }
    }

    /// Removes all words and keeps the memory.
    pub fn clear(&mut self) {
        match self {
            Self::None => {}
            Self::U32(words) => words.clear(),
            Self::U64(words) => words.clear(),
        }
    }
}

/// Consecutive tuples of a source: keys and values of equal number (values may be `None`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Encoded keys.
    pub keys: Column,
    /// Value bits.
    pub values: Column,
}

impl Chunk {
    /// An empty chunk for these types.
    #[must_use]
    pub fn new(key: KeyType, value: ValueType) -> Self {
        Self { keys: Column::with_width(key.bytes()), values: Column::with_width(value.bytes()) }
    }

    /// Number of tuples.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.keys {
            Column::None => 0,
            Column::U32(words) => words.len(),
            Column::U64(words) => words.len(),
        }
    }

    /// Whether there are no tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all tuples and keeps the memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
    }
}

/// What a source delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Key type.
    pub key_type: KeyType,
    /// Value type.
    pub value_type: ValueType,
    /// Name of the key column; empty if it has none.
    pub key_name: String,
    /// Name of the value column; empty if there are no values.
    pub value_name: String,
    /// Logical type of the key column in Arrow's notation, empty if plain.
    pub key_logical: String,
    /// Logical type of the value column, empty if plain.
    pub value_logical: String,
    /// Number of tuples, if it is known for certain before reading.
    pub rows: Option<u64>,
}

/// A stream of tuples in input order.
pub trait Source: Send {
    /// Types, names and (if known) the number of tuples; constant over the life of the source.
    fn schema(&self) -> &Schema;

    /// Clears `chunk` and fills it with up to about `tuples_max` tuples. An empty chunk is the end.
    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError>;

    /// How far reading has come, in whatever unit `total` has (bytes or rows), for a progress bar.
    fn progress(&self) -> (u64, Option<u64>);
}

/// Why input was refused.
#[derive(Debug)]
pub struct SourceError {
    /// The input: a path, or `standard input`.
    pub input: String,
    /// Place in it: `row 17, column "id"`; empty if it concerns the whole input.
    pub place: String,
    /// What is wrong and what to do.
    pub problem: String,
    /// The error of the system or the library, if there was one.
    pub cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.input)?;
        if !self.place.is_empty() {
            write!(f, ": {}", self.place)?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for SourceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}
