//! Where tuples come from: a typed stream of columns, read a chunk at a time.
//!
//! A source hands out *encoded* keys and value bits (see [`pleach_format::key`]), so that everything
//! behind it works on machine words whatever the types are; or byte strings.

use crate::show::KeyText;
use pleach_format::{KeyType, Meaning, Record, ValueType};
use std::fmt;

/// Byte strings, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    data: Vec<u8>,
    ends: Vec<usize>,
}

impl Strings {
    /// Adds a string.
    #[inline]
    pub fn push(&mut self, string: &[u8]) {
        self.data.extend_from_slice(string);
        self.ends.push(self.data.len());
    }
    /// Adds strings of `bytes` bytes each, which stand one after the other in `data`.
    pub fn extend_fixed(&mut self, data: &[u8], bytes: usize) {
        let start = self.data.len();
        self.data.extend_from_slice(data);
        self.ends.extend((1..=data.len() / bytes.max(1)).map(|count| start + count * bytes));
    }
    /// Number of strings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// The string at `index`. Panics if there is none.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.data[start..self.ends[index]]
    }
    /// All strings.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }
    /// Bytes of consecutive strings together. Panics if one of them is not there.
    #[must_use]
    pub fn range_bytes(&self, range: std::ops::Range<usize>) -> usize {
        let end = |count: usize| if count == 0 { 0 } else { self.ends[count - 1] };
        end(range.end) - end(range.start)
    }
    /// Bytes of all strings together.
    #[must_use]
    pub fn data_bytes(&self) -> usize {
        self.data.len()
    }
    /// Removes all strings and keeps the memory.
    pub fn clear(&mut self) {
        self.data.clear();
        self.ends.clear();
    }
}

/// A column of a chunk. The variant follows from the type: see [`Column::for_key`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Column {
    /// No column (values of type `none`).
    #[default]
    None,
    /// Words of four bytes.
    U32(Vec<u32>),
    /// Words of eight bytes.
    U64(Vec<u64>),
    /// Words of sixteen bytes.
    U128(Vec<u128>),
    /// Byte strings: in a `bytesN` column all of N bytes, in a `utf8` column all valid UTF-8.
    Bytes(Strings),
}

impl Column {
    /// An empty column for keys of this type: encoded words, or byte strings as they are.
    #[must_use]
    pub fn for_key(key: KeyType) -> Self {
        if key.is_bytes() { Self::Bytes(Strings::default()) } else { Self::with_width(key.bytes()) }
    }

    /// An empty column for values of this type: bits, or byte strings.
    #[must_use]
    pub fn for_value(value: ValueType) -> Self {
        if value.is_bytes() { Self::Bytes(Strings::default()) } else { Self::with_width(value.bytes()) }
    }

    /// An empty column for words of `bytes` bytes (0, 4, 8 or 16).
    #[must_use]
    pub fn with_width(bytes: usize) -> Self {
        match bytes {
            0 => Self::None,
            4 => Self::U32(Vec::new()),
            8 => Self::U64(Vec::new()),
            _ => Self::U128(Vec::new()),
        }
    }

    /// Number of elements; 0 for no column.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::U32(words) => words.len(),
            Self::U64(words) => words.len(),
            Self::U128(words) => words.len(),
            Self::Bytes(strings) => strings.len(),
        }
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds zero, or an empty string.
    pub fn push_default(&mut self) {
        match self {
            Self::None => {}
            Self::U32(words) => words.push(0),
            Self::U64(words) => words.push(0),
            Self::U128(words) => words.push(0),
            Self::Bytes(strings) => strings.push(&[]),
        }
    }

    /// Removes all elements and keeps the memory.
    pub fn clear(&mut self) {
        match self {
            Self::None => {}
            Self::U32(words) => words.clear(),
            Self::U64(words) => words.clear(),
            Self::U128(words) => words.clear(),
            Self::Bytes(strings) => strings.clear(),
        }
    }
}

/// What a row of a table of changes does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// One tuple takes the place of all tuples of the key.
    Put,
    /// One more tuple, behind those of the key.
    Add,
    /// All tuples of the key go.
    Del,
}

impl Op {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Put, Self::Add, Self::Del];

    /// As it stands in a table of changes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Add => "add",
            Self::Del => "del",
        }
    }

    /// The operation of this name.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name().as_bytes() == name)
    }
}

/// Consecutive tuples of a source: keys and values of equal number (values may be `None`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Encoded keys, or byte strings.
    pub keys: Column,
    /// Value bits, or byte strings.
    pub values: Column,
    /// What each tuple does, in a table of changes; else empty. The value of a [`Op::Del`] means nothing.
    pub ops: Vec<Op>,
}

impl Chunk {
    /// An empty chunk for these types.
    #[must_use]
    pub fn new(key: KeyType, value: ValueType) -> Self {
        Self { keys: Column::for_key(key), values: Column::for_value(value), ops: Vec::new() }
    }

    /// Number of tuples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
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
        self.ops.clear();
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

impl Schema {
    /// Of columns without names.
    #[must_use]
    pub fn plain(key_type: KeyType, value_type: ValueType, rows: Option<u64>) -> Self {
        let (key_name, value_name) = (String::new(), String::new());
        let (key_logical, value_logical) = (String::new(), String::new());
        Self { key_type, value_type, key_name, value_name, key_logical, value_logical, rows }
    }

    /// What keys mean.
    #[must_use]
    pub fn key_meaning(&self) -> Meaning {
        Meaning::new(self.key_type, &self.key_logical)
    }

    /// How keys are shown in messages.
    pub(crate) fn key_text(&self) -> KeyText {
        KeyText::new(self.key_type, &self.key_meaning())
    }

    /// What values mean.
    #[must_use]
    pub fn value_meaning(&self) -> Meaning {
        Meaning::new(self.value_type, &self.value_logical)
    }

    /// The record that values are, if they are one. O(fields).
    #[must_use]
    pub fn record(&self) -> Option<Record> {
        Record::of(self.value_type, &self.value_logical)
    }
}

/// A stream of tuples in input order.
///
/// It is asked on a thread of the pool that builds. A source that waits for others keeps that thread: if they need the
/// same pool, and it has no thread left, neither goes on. Such a build takes a pool of its own:
/// [`BuildOptions::threads`](crate::BuildOptions::threads).
pub trait Source: Send {
    /// Types, names and (if known) the number of tuples; constant over the life of the source.
    fn schema(&self) -> &Schema;

    /// Clears `chunk` and fills it with up to about `tuples_max` tuples. An empty chunk is the end. Of keys that are
    /// floats, words of NaN and of -0.0 (0.0 stands for both) are refused by whoever asks.
    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError>;

    /// How far reading has come, in whatever unit `total` has (bytes or rows), for a progress bar.
    fn progress(&self) -> (u64, Option<u64>);
}

/// Asks a source for the tuples that follow its first `rows`, and refuses words that no key has: iterators and forged
/// files may come with them.
pub(crate) fn next_chunk(
    source: &mut dyn Source,
    chunk: &mut Chunk,
    tuples_max: usize,
    rows: &mut u64,
) -> Result<(), SourceError> {
    source.next_chunk(chunk, tuples_max)?;
    let key_type = source.schema().key_type;
    // All other types have every word.
    if let (KeyType::F64, Column::U64(words)) = (key_type, &chunk.keys)
        && let Some(at) = words.iter().position(|&word| !key_type.has_word(word.into()))
    {
        let problem = "NaN, or -0.0 that is not encoded as 0.0, cannot be a key: leave such rows out".into();
        let (input, place) = ("input".into(), format!("row {}", *rows + at as u64));
        return Err(SourceError { input, place, problem, cause: None });
    }
    *rows += chunk.len() as u64;
    Ok(())
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
