//! Sources of tuples: typed streams of columns, read a chunk at a time.
//!
//! A source yields *encoded* keys and value bits (see [`pleach_format::key`]), so that all later steps work
//! on machine words whatever the types are. Keys and values that are byte strings stay byte strings.

use crate::options::Unique;
use crate::show::KeyText;
use pleach_format::interval::{Ends, INCLUSIVE};
use pleach_format::{KeyType, Meaning, Record, ValueType};
use std::fmt;

/// A list of byte strings, stored one after the other.
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
    /// Adds strings of `bytes` bytes each, which are consecutive in `data`.
    pub fn extend_fixed(&mut self, data: &[u8], bytes: usize) {
        let start = self.data.len();
        self.data.extend_from_slice(data);
        self.ends.extend((1..=data.len() / bytes.max(1)).map(|count| start + count * bytes));
    }
    /// Returns the number of strings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    /// Returns true if there are no strings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// Returns the string at `index`.
    ///
    /// # Panics
    /// If `index` is not below [`Strings::len`].
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.data[start..self.ends[index]]
    }
    /// Iterates over all strings.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }
    /// Returns the total bytes of consecutive strings.
    ///
    /// # Panics
    /// If the range ends after the last string or is reversed.
    #[must_use]
    pub fn range_bytes(&self, range: std::ops::Range<usize>) -> usize {
        let end = |count: usize| if count == 0 { 0 } else { self.ends[count - 1] };
        end(range.end) - end(range.start)
    }
    /// Returns the total bytes of all strings.
    #[must_use]
    pub fn data_bytes(&self) -> usize {
        self.data.len()
    }
    /// Removes all strings; keeps the memory.
    pub fn clear(&mut self) {
        self.data.clear();
        self.ends.clear();
    }
}

/// A column of a chunk. The type determines the variant: see [`Column::for_key`] and [`Column::for_value`].
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
    /// Byte strings: all of N bytes in a `bytesN` column, all valid UTF-8 in a `utf8` column.
    Bytes(Strings),
}

impl Column {
    /// Creates an empty column for keys of this type: encoded words, or unchanged byte strings.
    #[must_use]
    pub fn for_key(key: KeyType) -> Self {
        if key.is_bytes() { Self::Bytes(Strings::default()) } else { Self::with_width(key.bytes()) }
    }

    /// Creates an empty column for values of this type: bits, or byte strings.
    #[must_use]
    pub fn for_value(value: ValueType) -> Self {
        if value.is_bytes() { Self::Bytes(Strings::default()) } else { Self::with_width(value.bytes()) }
    }

    /// Returns a word, widened; 0 of a column without words.
    pub(crate) fn word(&self, at: usize) -> u128 {
        match self {
            Self::U32(words) => words[at].into(),
            Self::U64(words) => words[at].into(),
            Self::U128(words) => words[at],
            Self::None | Self::Bytes(_) => 0,
        }
    }

    /// Creates an empty column for words of `bytes` bytes (0, 4, 8 or 16).
    #[must_use]
    pub fn with_width(bytes: usize) -> Self {
        match bytes {
            0 => Self::None,
            4 => Self::U32(Vec::new()),
            8 => Self::U64(Vec::new()),
            _ => Self::U128(Vec::new()),
        }
    }

    /// Returns the number of elements; 0 for no column.
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

    /// Returns true if the column has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the first position whose word no key of this type has, if there is one. O(1) for types of which
    /// every word is a key.
    fn position_of_no_key(&self, key_type: KeyType) -> Option<usize> {
        if key_type.has_all_words() {
            return None;
        }
        match self {
            Self::U32(words) => words.iter().position(|&word| !key_type.has_word(word.into())),
            Self::U64(words) => words.iter().position(|&word| !key_type.has_word(word.into())),
            Self::U128(words) => words.iter().position(|&word| !key_type.has_word(word)),
            Self::None | Self::Bytes(_) => None,
        }
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

    /// Removes all elements; keeps the memory.
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

/// The effect of a row in a table of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Replaces all tuples of the key with one tuple.
    Put,
    /// Adds one tuple after those of the key.
    Add,
    /// Removes all tuples of the key.
    Del,
}

impl Op {
    /// All operations.
    pub const ALL: [Self; 3] = [Self::Put, Self::Add, Self::Del];

    /// Returns the name as written in a table of changes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Add => "add",
            Self::Del => "del",
        }
    }

    /// Returns the operation with this name.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name().as_bytes() == name)
    }
}

/// Consecutive tuples of a source: as many keys as values (the value column may be `None`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Encoded keys, or byte strings.
    pub keys: Column,
    /// Value bits, or byte strings.
    pub values: Column,
    /// Operation of each tuple in a table of changes; empty otherwise. The value of an [`Op::Del`] has no
    /// meaning.
    pub ops: Vec<Op>,
}

impl Chunk {
    /// Creates an empty chunk for these types.
    #[must_use]
    pub fn new(key: KeyType, value: ValueType) -> Self {
        Self { keys: Column::for_key(key), values: Column::for_value(value), ops: Vec::new() }
    }

    /// Returns the number of tuples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if the chunk has no tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all tuples; keeps the memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
        self.ops.clear();
    }
}

/// Types, names and meanings of the columns of a source.
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
    /// Logical type of the key column in Arrow's notation; empty if plain.
    pub key_logical: String,
    /// Logical type of the value column in Arrow's notation; empty if plain.
    pub value_logical: String,
    /// Number of tuples, if it is certain before reading.
    pub rows: Option<u64>,
    /// Keys begin intervals, and the first field of each value, a record, is the last key of its interval.
    pub interval: Option<Intervals>,
    /// Keys are texts, of which the file gets shorter keys.
    pub derived: Option<Derived>,
    /// Treatment of equal keys, unless the options of the build choose another one.
    pub unique: Option<Unique>,
    /// Number of different keys, if they are shorter than those they stand for.
    pub approximate: Option<u64>,
}

/// What becomes of keys that are texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Derived {
    /// A hash of 64 bits, which is another one for every other key of the source.
    Hash,
    /// The shortest prefix, the same number of letters or hexadecimal digits for all keys, that is another one for
    /// every other key of the source.
    Prefix,
}

/// The intervals of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intervals {
    /// In any order; they may overlap. The last field of each value is the number of the row: see
    /// [`with_row`](crate::intervals::with_row).
    Rows {
        /// These numbers are those of the rows that the user knows, so that messages may show them.
        is_counted: bool,
    },
    /// In order, and none overlaps another.
    Disjoint,
}

impl Derived {
    /// Returns what a key type of this name makes of texts: `hash64` or `prefix:auto`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "hash64" => Some(Self::Hash),
            "prefix:auto" => Some(Self::Prefix),
            _ => None,
        }
    }
}

impl Schema {
    /// Creates a schema of columns without names and logical types.
    #[must_use]
    pub fn plain(key_type: KeyType, value_type: ValueType, rows: Option<u64>) -> Self {
        let (key_name, value_name) = (String::new(), String::new());
        let (key_logical, value_logical) = (String::new(), String::new());
        Self {
            key_type,
            value_type,
            key_name,
            value_name,
            key_logical,
            value_logical,
            rows,
            interval: None,
            derived: None,
            unique: None,
            approximate: None,
        }
    }

    /// Returns the meaning of the keys.
    #[must_use]
    pub fn key_meaning(&self) -> Meaning {
        Meaning::new(self.key_type, &self.key_logical)
    }

    /// Returns the form in which messages show keys.
    pub(crate) fn key_text(&self) -> KeyText {
        KeyText::new(self.key_type, &self.key_meaning())
    }

    /// Returns the meaning of the values.
    #[must_use]
    pub fn value_meaning(&self) -> Meaning {
        Meaning::new(self.value_type, &self.value_logical)
    }

    /// Returns the record definition if the values are records. O(fields).
    #[must_use]
    pub fn record(&self) -> Option<Record> {
        Record::of(self.value_type, &self.value_logical)
    }

    /// Returns the schema of the file that a build makes of this source: intervals lose the numbers of their rows.
    #[must_use]
    pub fn published(&self) -> Self {
        let Some(record) = self.record().filter(|_| matches!(self.interval, Some(Intervals::Rows { .. })))
        else {
            return self.clone();
        };
        let mut fields = record.fields().to_vec();
        fields.pop();
        let Ok(record) = Record::new(fields) else { return self.clone() };
        let (value_type, value_logical) = (record.storage(), record.to_string());
        Self { value_type, value_logical, interval: Some(Intervals::Disjoint), ..self.clone() }
    }

    /// Returns where the intervals end, if there are any.
    #[must_use]
    pub fn ends(&self) -> Option<Ends> {
        let text = self.interval.map_or("", |_| INCLUSIVE);
        Ends::of(self.key_type, self.value_type, &self.value_logical, text)
    }

    /// Describes the types for messages.
    pub(crate) fn types_text(&self) -> String {
        let key = self.key_meaning();
        if self.value_type == ValueType::None {
            return key.to_string();
        }
        match self.record() {
            Some(record) => format!("{key} to {record} ({})", self.value_type),
            None => format!("{key} to {}", self.value_meaning()),
        }
    }
}

/// A stream of tuples in input order.
///
/// The build calls it on a thread of its pool. A source that waits for other work blocks that thread: if that
/// work needs the same pool and no thread is left, both wait for ever. Give such a build a pool of its own:
/// [`BuildOptions::threads`](crate::BuildOptions::threads).
pub trait Source: Send {
    /// Returns types, names and (if known) the number of tuples; constant over the life of the source.
    fn schema(&self) -> &Schema;

    /// Clears `chunk` and fills it with up to about `tuples_max` tuples. A chunk without keys means the end.
    /// The caller rejects values without keys, and float keys encoded as NaN or -0.0; encode -0.0 as 0.0.
    ///
    /// # Errors
    /// [`SourceError`] if the input cannot be read or a row cannot become a tuple.
    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError>;

    /// Returns how much has been read and the total if known, in bytes or rows, for a progress bar.
    fn progress(&self) -> (u64, Option<u64>);
}

/// The fault of a chunk whose columns do not make tuples of the schema.
pub(crate) const COLUMNS_DISAGREE: &str = "its columns have other types than declared, or unequal lengths";

/// Reads the tuples after the first `rows` of a source. Refuses words that are not valid keys: iterators and
/// forged files may contain them. Refuses values without keys, which are not the end of the input.
pub(crate) fn next_chunk(
    source: &mut dyn Source,
    chunk: &mut Chunk,
    tuples_max: usize,
    rows: &mut u64,
) -> Result<(), SourceError> {
    source.next_chunk(chunk, tuples_max)?;
    if chunk.is_empty() && !(chunk.values.is_empty() && chunk.ops.is_empty()) {
        let (input, place) = ("input".into(), format!("row {}", *rows));
        let (what, advice) = (COLUMNS_DISAGREE.into(), String::new());
        return Err(SourceError { input, place, what, advice, cause: None });
    }
    let key_type = source.schema().key_type;
    if let Some(at) = chunk.keys.position_of_no_key(key_type) {
        let what = "NaN, or -0.0 that is not encoded as 0.0, cannot be a key".into();
        let (input, place) = ("input".into(), format!("row {}", *rows + at as u64));
        return Err(SourceError { input, place, what, advice: "leave such rows out".into(), cause: None });
    }
    *rows += chunk.len() as u64;
    Ok(())
}

/// The reason why input was refused.
#[derive(Debug)]
pub struct SourceError {
    /// The input: a path or `standard input`.
    pub input: String,
    /// Place in the input, such as `row 17, column "id"`; empty if the error concerns all of it.
    pub place: String,
    /// The fault.
    pub what: String,
    /// What to do; empty if the fault or its cause says everything.
    pub advice: String,
    /// The underlying error of the system or a library, if any.
    pub cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.input)?;
        if !self.place.is_empty() {
            write!(f, ": {}", self.place)?;
        }
        write!(f, ": {}", self.what)?;
        match &self.cause {
            _ if !self.advice.is_empty() => write!(f, ": {}", self.advice),
            Some(cause) => write!(f, ": {}", without_number(&cause.to_string())),
            None => Ok(()),
        }
    }
}

/// Returns the text of an error without the number that Rust adds to errors of the system.
fn without_number(text: &str) -> &str {
    text.find(" (os error ").map_or(text, |end| &text[..end])
}

impl std::error::Error for SourceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}
