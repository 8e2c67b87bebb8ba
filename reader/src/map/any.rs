//! A map whose types are known at run time.

use super::{BytesMap, Map, between};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::index::{Index, OpenOptions};
use crate::live::Followed;
use pleach_format::{KeyType, Record, ValueType};
use std::fmt;
use std::iter::FusedIterator;
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::Arc;

/// A file of any types. Keys and values are [`Datum`]s.
///
/// It is for tools that do not know a file's types when they are compiled. [`Map`] and [`BytesMap`] are faster.
///
/// ```
/// use pleach::{AnyMap, Builder, Datum, KeyType};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("ports.pleach");
/// Builder::new().build(&path, [(22i64, "ssh"), (80, "http")])?;
/// let ports = AnyMap::open(&path)?;
/// assert_eq!(ports.key_type(), KeyType::I64);
/// assert_eq!(ports.get(&Datum::from(80i64))?, Some(Datum::from("http")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AnyMap {
    keys: Keys,
    record: Option<Arc<Record>>,
}

/// Maps of the keys alone, by their type.
#[derive(Clone)]
enum Keys {
    U32(Map<u32, ()>),
    U64(Map<u64, ()>),
    U128(Map<u128, ()>),
    I32(Map<i32, ()>),
    I64(Map<i64, ()>),
    F64(Map<f64, ()>),
    /// In a box, since it is larger by its mask.
    Bytes(Box<BytesMap<()>>),
}

/// Evaluates an expression with the map of the file's keys.
macro_rules! any_keys {
    ($self:expr, $map:ident => $body:expr) => {
        match &$self.keys {
            Keys::U32($map) => $body,
            Keys::U64($map) => $body,
            Keys::U128($map) => $body,
            Keys::I32($map) => $body,
            Keys::I64($map) => $body,
            Keys::F64($map) => $body,
            Keys::Bytes($map) => $body,
        }
    };
}

/// Evaluates an expression with the map of the file's keys and a key, or keys, of its type.
macro_rules! with_keys {
    ($self:expr, $key:expr, $as:ident, $map:ident, $word:ident => $body:expr) => {
        match &$self.keys {
            Keys::U32($map) => $as!($self, $key, Datum::U32(key) => *key, $word => $body),
            Keys::U64($map) => $as!($self, $key, Datum::U64(key) => *key, $word => $body),
            Keys::U128($map) => $as!($self, $key, Datum::U128(key) => *key, $word => $body),
            Keys::I32($map) => $as!($self, $key, Datum::I32(key) => *key, $word => $body),
            Keys::I64($map) => $as!($self, $key, Datum::I64(key) => *key, $word => $body),
            Keys::F64($map) => $as!($self, $key, Datum::F64(key) => *key, $word => $body),
            Keys::Bytes($map) => {
                $as!($self, $key, Datum::Bytes(key) | Datum::Utf8(key) => &**key, $word => $body)
            }
        }
    };
}
macro_rules! one {
    ($self:expr, $datum:expr, $pattern:pat => $key:expr, $word:ident => $body:expr) => {
        match $datum {
            $pattern => {
                let $word = $key;
                $body
            }
            other => Err($self.other_type(other)),
        }
    };
}
macro_rules! all {
    ($self:expr, $data:expr, $pattern:pat => $key:expr, $word:ident => $body:expr) => {{
        let keys = $data.iter().map(|datum| match datum {
            $pattern => Ok($key),
            other => Err($self.other_type(other)),
        });
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let $word = keys.as_slice();
        $body
    }};
}

impl AnyMap {
    /// Opens a file with the default options: mapped, header verified. O(1).
    ///
    /// # Errors
    /// [`Error`] if the file cannot be opened or is not a valid Pleach file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::with_options(path, OpenOptions::default())
    }
    /// Opens a file with `options`, which set verification and residence.
    ///
    /// # Errors
    /// Those of [`AnyMap::open`]; [`Error`] if the verification finds damage.
    pub fn with_options(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        Self::from_index(Arc::new(options.open(path)?))
    }
    /// Opens a file held in memory.
    ///
    /// # Errors
    /// Those of [`AnyMap::open`] that do not come from the system.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        Self::from_index(Arc::new(Index::from_bytes(bytes)?))
    }
    /// Makes a map of an open file, which others may use as well.
    ///
    /// # Errors
    /// [`Error`] if the file's description of records cannot be read.
    pub fn from_index(index: Arc<Index>) -> Result<Self> {
        let record = index.record().map_err(|error| super::failed(&index, error))?.map(Arc::new);
        let keys = match index.key_type() {
            KeyType::U32 => Keys::U32(Map::from_index(index)?),
            KeyType::U64 => Keys::U64(Map::from_index(index)?),
            KeyType::U128 => Keys::U128(Map::from_index(index)?),
            KeyType::I32 => Keys::I32(Map::from_index(index)?),
            KeyType::I64 => Keys::I64(Map::from_index(index)?),
            KeyType::F64 => Keys::F64(Map::from_index(index)?),
            KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => {
                Keys::Bytes(Box::new(BytesMap::from_index(index)?))
            }
        };
        Ok(Self { keys, record })
    }
    /// Switches to the next generation, as [`Map::refresh`] does.
    ///
    /// # Errors
    /// Those of [`AnyMap::open`]; the map is then unchanged.
    pub fn refresh(&mut self) -> Result<bool> {
        let Some(next) = self.next_generation()? else { return Ok(false) };
        let is_new = !next.index().is_same_generation(self.index());
        *self = next;
        Ok(is_new)
    }

    /// Returns the open file.
    #[must_use]
    pub fn index(&self) -> &Arc<Index> {
        any_keys!(self, map => map.index())
    }
    /// Returns the type of the keys.
    #[must_use]
    pub fn key_type(&self) -> KeyType {
        self.index().key_type()
    }
    /// Returns the type of the values.
    #[must_use]
    pub fn value_type(&self) -> ValueType {
        self.index().value_type()
    }
    /// Returns the fields of the values, if they are records. [`Datum::packed`] is the record of a value.
    #[must_use]
    pub fn record(&self) -> Option<&Record> {
        self.record.as_deref()
    }
    /// Returns the number of tuples.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.index().len()
    }
    /// Returns true if there are no tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index().is_empty()
    }

    #[cold]
    fn other_type(&self, key: &Datum<'_>) -> Error {
        let holds = format!("{} keys", self.key_type());
        Error::types(self.index().path(), format!("the key {key:?}"), holds)
    }

    /// Returns the value of the first tuple with this key.
    ///
    /// # Errors
    /// [`Error`] if the key is not of the file's type, if a block that was read is damaged, which only
    /// [`crate::Verify::Touched`] checks, or if the file was truncated while it was mapped.
    pub fn get(&self, key: &Datum<'_>) -> Result<Option<Datum<'_>>> {
        let Some(rank) = self.rank(key)? else { return Ok(None) };
        Ok(self.select(rank)?.map(|(_, value)| value))
    }
    /// Looks up many keys, whose cache misses overlap.
    ///
    /// # Errors
    /// Those of [`AnyMap::get`].
    pub fn get_many(&self, keys: &[Datum<'_>]) -> Result<Vec<Option<Datum<'_>>>> {
        let ranks = with_keys!(self, keys, all, map, keys => map.rank_many(keys))?;
        let value = |rank| Ok(self.select(rank)?.map(|(_, value)| value));
        ranks.into_iter().map(|rank| rank.map_or(Ok(None), value)).collect()
    }
    /// Returns true if a tuple has this key.
    ///
    /// # Errors
    /// Those of [`AnyMap::get`].
    pub fn contains(&self, key: &Datum<'_>) -> Result<bool> {
        Ok(self.rank(key)?.is_some())
    }
    /// Returns the rank of the first tuple with this key.
    ///
    /// # Errors
    /// Those of [`AnyMap::get`].
    pub fn rank(&self, key: &Datum<'_>) -> Result<Option<u64>> {
        with_keys!(self, key, one, map, key => map.rank(key))
    }
    /// Returns the rank of the first tuple whose key is at least `key`; [`AnyMap::len`] if there is none.
    ///
    /// # Errors
    /// Those of [`AnyMap::get`].
    pub fn lower_bound(&self, key: &Datum<'_>) -> Result<u64> {
        with_keys!(self, key, one, map, key => map.lower_bound(key))
    }
    /// Returns the rank of the first tuple whose key is above `key`; [`AnyMap::len`] if there is none.
    ///
    /// # Errors
    /// Those of [`AnyMap::get`].
    pub fn upper_bound(&self, key: &Datum<'_>) -> Result<u64> {
        with_keys!(self, key, one, map, key => map.upper_bound(key))
    }

    /// Returns the tuple at `rank`; `None` if `rank` is past the last tuple. O(1).
    ///
    /// # Errors
    /// Those of [`AnyMap::get`].
    pub fn select(&self, rank: u64) -> Result<Option<(Datum<'_>, Datum<'_>)>> {
        self.index().tuple(rank).map_err(|error| super::failed(self.index(), error))
    }
    /// Returns the first tuple; `None` if there are none. O(1).
    ///
    /// # Errors
    /// Those of [`AnyMap::get`].
    pub fn first(&self) -> Result<Option<(Datum<'_>, Datum<'_>)>> {
        self.select(0)
    }
    /// Returns the last tuple; `None` if there are none. O(1).
    ///
    /// # Errors
    /// Those of [`AnyMap::get`].
    pub fn last(&self) -> Result<Option<(Datum<'_>, Datum<'_>)>> {
        self.len().checked_sub(1).map_or(Ok(None), |rank| self.select(rank))
    }
    /// Returns the last tuple whose key is at most `key`; `None` if there is none.
    ///
    /// # Errors
    /// Those of [`AnyMap::get`].
    pub fn floor(&self, key: &Datum<'_>) -> Result<Option<(Datum<'_>, Datum<'_>)>> {
        self.upper_bound(key)?.checked_sub(1).map_or(Ok(None), |rank| self.select(rank))
    }
    /// Returns the first tuple whose key is at least `key`; `None` if there is none.
    ///
    /// # Errors
    /// Those of [`AnyMap::get`].
    pub fn ceiling(&self, key: &Datum<'_>) -> Result<Option<(Datum<'_>, Datum<'_>)>> {
        self.select(self.lower_bound(key)?)
    }

    /// Iterates over all tuples in order, from both ends.
    #[must_use]
    pub fn iter(&self) -> AnyEntries<'_> {
        AnyEntries { map: self, ranks: 0..self.len() }
    }
    /// Iterates over the tuples whose keys are in a range, in order, from both ends.
    ///
    /// # Errors
    /// Those of [`AnyMap::get`].
    pub fn range<'k>(&self, keys: impl RangeBounds<Datum<'k>>) -> Result<AnyEntries<'_>> {
        let start = match keys.start_bound() {
            Bound::Included(key) => self.lower_bound(key)?,
            Bound::Excluded(key) => self.upper_bound(key)?,
            Bound::Unbounded => 0,
        };
        let end = match keys.end_bound() {
            Bound::Included(key) => self.upper_bound(key)?,
            Bound::Excluded(key) => self.lower_bound(key)?,
            Bound::Unbounded => self.len(),
        };
        Ok(AnyEntries { map: self, ranks: between(start, end) })
    }
}

impl fmt::Debug for AnyMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.index().fmt(f)
    }
}

impl Followed for AnyMap {
    type Error = Error;
    fn from_opened(index: Index) -> Result<Self> {
        Self::from_index(Arc::new(index))
    }
    fn opened(&self) -> &Index {
        self.index()
    }
}

/// Iterator over the tuples of an [`AnyMap`], in order and from both ends.
#[derive(Clone, Debug)]
pub struct AnyEntries<'a> {
    map: &'a AnyMap,
    ranks: std::ops::Range<u64>,
}

impl<'a> Iterator for AnyEntries<'a> {
    type Item = Result<(Datum<'a>, Datum<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.map.select(self.ranks.next()?).transpose()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ranks.size_hint()
    }
}

impl DoubleEndedIterator for AnyEntries<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.map.select(self.ranks.next_back()?).transpose()
    }
}

impl FusedIterator for AnyEntries<'_> {}
