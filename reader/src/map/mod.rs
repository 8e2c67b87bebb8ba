//! Owned maps: an open file with its types, for programs that look keys up.
//!
//! * [`Map`]: keys are numbers.
//! * [`BytesMap`]: keys are texts or byte strings.
//! * [`AnyMap`](any::AnyMap): types are known at run time.
//!
//! A map makes its view of the index once, and calls its searches. What a look-up does is in `typed` and
//! `strings`.

pub(crate) mod any;
mod owned;
#[cfg(test)]
mod tests;

use crate::bitmap::Bitmap;
use crate::column::Column;
use crate::error::{Error, ReadError, Result};
use crate::index::{Index, OpenOptions};
use crate::iter::Range;
use crate::live::Followed;
use crate::near::{Near, Tuples};
use crate::queries::Queries;
use crate::string_range::StringRange;
use crate::strings::Strings;
use crate::typed::Typed;
use owned::Owned;
use pleach_format::record::{FieldType, Record};
use pleach_format::stored::{MapValue, Row};
use pleach_format::{FormatError, Key, Value};
use std::borrow::Cow;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::Arc;

/// Keys that the iterator form of a batch looks up at a time.
const PIECE: usize = 1 << 12;
/// Values whose cache misses overlap.
const AHEAD: usize = 64;

/// A file whose keys are numbers: `u32 u64 u128 i32 i64 f64`.
///
/// Values are numbers, `()` (whatever the file holds), `String`, `Vec<u8>`, `[u8; N]`, or records: as tuples such as
/// `(u32, f64, String)`, or as [`Row`]. A map owns its file: it is `Send` and `Sync`, lives in a struct, and a clone
/// costs no more than an `Arc`. All look-ups are O(levels) lines; they take no lock. Ranks count from 0.
///
/// Answers come from bytes that were verified as [`crate::Verify`] specifies.
///
/// ```
/// use pleach::{Builder, Map};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("squares.pleach");
/// Builder::new().build(&path, (0..1000u64).map(|number| (number, number * number)))?;
/// let squares: Map<u64, u64> = Map::open(&path)?;
/// assert_eq!(squares.get(12)?, Some(144));
/// assert_eq!(squares.get_many(&[3, 5000, 4])?, [Some(9), None, Some(16)]);
/// let sum: u64 = squares.range(10..13)?.map(|tuple| tuple.map(|(_, square)| square)).sum::<Result<_, _>>()?;
/// assert_eq!(sum, 100 + 121 + 144);
/// assert_eq!(squares.floor(5000)?, Some((999, 998_001)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Map<K: Key, V: MapValue> {
    view: Owned<Typed<'static, K, V::Lines>>,
    record: Option<Arc<Record>>,
}

/// A file whose keys are texts or byte strings: `bytesN bytes utf8`.
///
/// It is for such keys what [`Map`] is for numbers, and has the same values. Keys compare byte by byte, and a prefix
/// of a key comes before the key.
///
/// ```
/// use pleach::{Builder, BytesMap};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("ports.pleach");
/// Builder::new().build(&path, [("ssh", 22u32), ("http", 80), ("https", 443)])?;
/// let ports: BytesMap<u32> = BytesMap::open(&path)?;
/// assert_eq!(ports.get("https")?, Some(443));
/// assert_eq!(ports.get_many(&["ssh", "gopher"])?, [Some(22), None]);
/// assert_eq!(ports.prefix("http")?.count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BytesMap<V: MapValue> {
    view: Owned<Strings<'static, V::Lines>>,
    record: Option<Arc<Record>>,
}

/// Checks that keys and values of a file are of the types of a map. Returns its record if values may be one.
fn check<V: MapValue>(index: &Index, asked: &str, is_key: bool) -> Result<Option<Arc<Record>>> {
    let record = if V::IN_LINES { None } else { index.record().map_err(|error| failed(index, error))? };
    if !is_key || !V::fits(index.value_type(), record.as_ref()) {
        let values = record.map_or_else(|| index.value_type().to_string(), |record| record.to_string());
        let holds = format!("{} keys with {values} values", index.key_type());
        return Err(Error::types(
            index.path(),
            format!("{asked} keys with {} values", V::type_name()),
            holds,
        ));
    }
    Ok(record.map(Arc::new))
}

/// Adds the path to an error.
#[cold]
fn failed(index: &Index, error: impl Into<Error>) -> Error {
    error.into().at(index.path())
}

/// Source of the values of a map.
struct Values<'a, V> {
    index: &'a Index,
    record: Option<&'a Arc<Record>>,
    column: Option<Column<'a>>,
    types: PhantomData<V>,
}

impl<V> Copy for Values<'_, V> {}
impl<V> Clone for Values<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'a, V: MapValue> Values<'a, V> {
    #[inline]
    fn new(index: &'a Index, record: Option<&'a Arc<Record>>) -> Self {
        let column = if V::IN_LINES { None } else { index.value_column() };
        Self { index, record, column, types: PhantomData }
    }

    /// Returns the value at `rank`, whose part in the lines was read.
    #[inline]
    fn at(&self, rank: u64, lines: V::Lines) -> Result<V, ReadError> {
        let packed = match &self.column {
            _ if V::IN_LINES => Cow::Borrowed(&[][..]),
            Some(column) if self.index.value_type().is_bytes() => column.get(rank)?.unwrap_or_default(),
            _ => self.index.packed_value(rank)?,
        };
        V::decode(lines, packed, self.record).ok_or_else(|| {
            let rule = "values must be valid for their type".into();
            FormatError::Corrupt { what: "VALS", offset: 0, rule, found: rank }.into()
        })
    }

    /// Returns the values at many ranks.
    fn at_all(&self, ranks: &[Option<u64>]) -> Result<Vec<Option<V>>, ReadError> {
        let mut values = Vec::with_capacity(ranks.len());
        self.index.foresee(ranks.len(), |at| {
            ranks[at].map_or(Ok(()), |rank| self.at(rank, V::Lines::default()).map(|_| ()))
        })?;
        for ranks in ranks.chunks(AHEAD) {
            if let Some(column) = &self.column {
                ranks.iter().flatten().for_each(|&rank| column.prefetch_offset(rank));
                ranks.iter().flatten().for_each(|&rank| column.prefetch(rank));
            }
            for rank in ranks {
                values.push(rank.map(|rank| self.at(rank, V::Lines::default())).transpose()?);
            }
        }
        Ok(values)
    }
}

/// Returns the ranks of a range, from those of its ends.
fn between(start: u64, end: u64) -> std::ops::Range<u64> {
    start..end.max(start)
}

/// Looks keys up in pieces as they are taken from an iterator.
fn in_pieces<K, V>(
    keys: impl Iterator<Item = K>,
    mut look_up: impl FnMut(&[K]) -> Result<Vec<Option<V>>>,
) -> impl Iterator<Item = Result<(K, Option<V>)>> {
    let mut keys = Some(keys);
    let mut found = Vec::new().into_iter().zip(Vec::new());
    std::iter::from_fn(move || {
        if let Some(next) = found.next() {
            return Some(Ok(next));
        }
        let piece: Vec<K> = keys.as_mut()?.by_ref().take(PIECE).collect();
        match look_up(&piece) {
            Ok(values) => {
                found = piece.into_iter().zip(values);
                found.next().map(Ok)
            }
            Err(error) => {
                keys = None;
                Some(Err(error))
            }
        }
    })
}

/// The look-ups that both kinds of keys have. `$key` is a query and `$query` its form in the view; `$keys` are
/// queries of a batch, and `$owned` is a key that was read.
macro_rules! look_ups {
    (
        [$($generics:tt)*] $map:ty, $view:ty, $entries:ty, $key:ident: $arg:ty => $query:expr, $keys:ty, $owned:ty
    ) => {
        impl<$($generics)*> $map {
            /// Opens a file with the default options: mapped, header verified. O(1).
            ///
            /// # Errors
            /// [`Error`] if the file cannot be opened, is not a valid Pleach file, or holds other types.
            pub fn open(path: impl AsRef<Path>) -> Result<Self> {
                Self::with_options(path, OpenOptions::default())
            }

            /// Opens a file with `options`, which set verification and residence. O(1), except with
            /// [`crate::Verify::Full`] or [`crate::Residence::Resident`].
            ///
            /// # Errors
            /// Those of [`Self::open`]; [`Error`] if the verification finds damage.
            pub fn with_options(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
                Self::from_index(Arc::new(options.open(path)?))
            }

            /// Returns the default options, for [`Self::with_options`].
            #[must_use]
            pub fn options() -> OpenOptions {
                OpenOptions::default()
            }

            /// Opens a file held in memory.
            ///
            /// # Errors
            /// Those of [`Self::open`] that do not come from the system.
            pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
                Self::from_index(Arc::new(Index::from_bytes(bytes)?))
            }

            /// Switches to the next generation if the file's name now leads to one, and reports whether it did. One
            /// system call if there is none. Clones stay as they are; threads that share a map use [`crate::Live`].
            ///
            /// # Errors
            /// Those of [`Self::open`]; the map is then unchanged.
            pub fn refresh(&mut self) -> Result<bool> {
                let Some(next) = self.next_generation()? else { return Ok(false) };
                let is_new = !next.index().is_same_generation(self.index());
                *self = next;
                Ok(is_new)
            }

            /// Returns the open file.
            #[must_use]
            #[inline]
            pub fn index(&self) -> &Arc<Index> {
                self.view.index()
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
            /// Returns the fields of the values, if they are looked up as records.
            #[must_use]
            pub fn record(&self) -> Option<&Record> {
                self.record.as_deref()
            }

            #[inline(always)]
            fn view(&self) -> &$view {
                self.view.view()
            }
            #[inline]
            fn values(&self) -> Values<'_, V> {
                Values::new(self.index(), self.record.as_ref())
            }
            #[cold]
            fn failed(&self, error: impl Into<Error>) -> Error {
                failed(self.index(), error)
            }

            /// Returns the value of the first tuple with this key.
            ///
            /// # Errors
            /// [`Error`] if a block that was read is damaged, which only [`crate::Verify::Touched`] checks, or if the
            /// file was truncated while it was mapped.
            #[inline]
            pub fn get(&self, $key: $arg) -> Result<Option<V>> {
                let hit = self.view().hit($query).map_err(|error| self.failed(error))?;
                if !hit.found {
                    return Ok(None);
                }
                let value = self.values().at(hit.rank, V::Lines::from_bits(hit.value));
                value.map(Some).map_err(|error| self.failed(error))
            }
            /// Returns true if a tuple has this key.
            ///
            /// # Errors
            /// Those of [`Self::get`].
            #[inline]
            pub fn contains(&self, $key: $arg) -> Result<bool> {
                self.view().contains($query).map_err(|error| self.failed(error))
            }
            /// Returns the rank of the first tuple with this key.
            ///
            /// # Errors
            /// Those of [`Self::get`].
            #[inline]
            pub fn rank(&self, $key: $arg) -> Result<Option<u64>> {
                self.view().rank($query).map_err(|error| self.failed(error))
            }
            /// Returns the rank of the first tuple whose key is at least `key`; [`Self::len`] if there is none.
            ///
            /// # Errors
            /// Those of [`Self::get`].
            #[inline]
            pub fn lower_bound(&self, $key: $arg) -> Result<u64> {
                self.view().lower_bound($query).map_err(|error| self.failed(error))
            }
            /// Returns the rank of the first tuple whose key is above `key`; [`Self::len`] if there is none.
            ///
            /// # Errors
            /// Those of [`Self::get`].
            #[inline]
            pub fn upper_bound(&self, $key: $arg) -> Result<u64> {
                self.view().upper_bound($query).map_err(|error| self.failed(error))
            }

            /// Returns the tuple at `rank`; `None` if `rank` is past the last tuple. O(1).
            ///
            /// # Errors
            /// Those of [`Self::get`].
            pub fn select(&self, rank: u64) -> Result<Option<($owned, V)>> {
                self.ranks(rank..rank.saturating_add(1)).next().transpose()
            }
            /// Returns the first tuple; `None` if there are none. O(1).
            ///
            /// # Errors
            /// Those of [`Self::get`].
            pub fn first(&self) -> Result<Option<($owned, V)>> {
                self.select(0)
            }
            /// Returns the last tuple; `None` if there are none. O(1).
            ///
            /// # Errors
            /// Those of [`Self::get`].
            pub fn last(&self) -> Result<Option<($owned, V)>> {
                self.len().checked_sub(1).map_or(Ok(None), |rank| self.select(rank))
            }
            /// Returns the last tuple whose key is at most `key`; `None` if there is none.
            ///
            /// # Errors
            /// Those of [`Self::get`].
            pub fn floor(&self, $key: $arg) -> Result<Option<($owned, V)>> {
                self.upper_bound($key)?.checked_sub(1).map_or(Ok(None), |rank| self.select(rank))
            }
            /// Returns the first tuple whose key is at least `key`; `None` if there is none.
            ///
            /// # Errors
            /// Those of [`Self::get`].
            pub fn ceiling(&self, $key: $arg) -> Result<Option<($owned, V)>> {
                self.select(self.lower_bound($key)?)
            }

            /// Returns the last tuple whose key is at most each of many keys; of equal keys the last. Their
            /// cache misses overlap.
            ///
            /// # Errors
            /// Those of [`Self::get`].
            pub fn floor_many(&self, keys: $keys) -> Result<Vec<Option<($owned, V)>>> {
                self.near_many(Near::Floor, keys)
            }
            /// Returns the first tuple whose key is at least each of many keys; of equal keys the first. Their cache
            /// misses overlap.
            ///
            /// # Errors
            /// Those of [`Self::get`].
            pub fn ceiling_many(&self, keys: $keys) -> Result<Vec<Option<($owned, V)>>> {
                self.near_many(Near::Ceiling, keys)
            }

            /// Iterates over all tuples in order, from both ends.
            pub fn iter(&self) -> $entries {
                self.ranks(0..self.len())
            }
            /// Iterates over the tuples of a range of ranks; the range is cut at [`Self::len`].
            pub fn ranks(&self, ranks: std::ops::Range<u64>) -> $entries {
                let end = ranks.end.min(self.len());
                let start = ranks.start.min(end);
                let (tuples, values) = (self.view().ranks(start..end), self.values());
                Entries { values, tuples, front: start, back: end }
            }
            /// Iterates over all tuples with this key, in the order in which they were built.
            ///
            /// # Errors
            /// Those of [`Self::get`].
            pub fn get_all(&self, $key: $arg) -> Result<$entries> {
                let start = self.view().lower_bound($query).map_err(|error| self.failed(error))?;
                Ok(self.ranks(between(start, self.upper_bound($key)?)))
            }

            /// Looks up many keys, whose cache misses overlap: the fast way if there are more than a few.
            ///
            /// # Errors
            /// Those of [`Self::get`].
            pub fn get_many(&self, keys: $keys) -> Result<Vec<Option<V>>> {
                self.many_values(keys, false).map_err(|error| self.failed(error))
            }
            /// Runs [`Self::get_many`] on all threads of the current rayon pool. Values that are not numbers are made
            /// on this thread.
            ///
            /// # Errors
            /// Those of [`Self::get`].
            pub fn par_get_many(&self, keys: $keys) -> Result<Vec<Option<V>>> {
                self.many_values(keys, true).map_err(|error| self.failed(error))
            }
            fn many_values(&self, keys: $keys, parallel: bool) -> Result<Vec<Option<V>>, ReadError> {
                if !V::IN_LINES {
                    return self.values().at_all(&self.many_ranks(keys)?);
                }
                let mut values = vec![V::Lines::default(); keys.len()];
                let mut present = Bitmap::new(keys.len());
                if parallel {
                    self.view().par_get_batch(keys, &mut values, present.reset(keys.len()))?;
                } else {
                    self.view().get_batch(keys, &mut values, present.reset(keys.len()))?;
                }
                let found = |(lines, is_present): (V::Lines, bool)| {
                    if is_present { V::decode(lines, Cow::Borrowed(&[]), None) } else { None }
                };
                Ok(values.into_iter().zip(present.iter()).map(found).collect())
            }
            fn many_ranks(&self, keys: $keys) -> Result<Vec<Option<u64>>, ReadError> {
                let mut ranks = vec![None; keys.len()];
                self.view().hits_of(keys, |at, hit| ranks[at] = hit.found.then_some(hit.rank))?;
                Ok(ranks)
            }
            /// Returns the rank of the first tuple with each of many keys.
            ///
            /// # Errors
            /// Those of [`Self::get`].
            pub fn rank_many(&self, keys: $keys) -> Result<Vec<Option<u64>>> {
                self.many_ranks(keys).map_err(|error| self.failed(error))
            }
            /// Checks which of many keys are present.
            ///
            /// # Errors
            /// Those of [`Self::get`].
            pub fn contains_many(&self, keys: $keys) -> Result<Bitmap> {
                let mut present = Bitmap::new(keys.len());
                let outcome = self.view().contains_batch(keys, present.reset(keys.len()));
                outcome.map(|_| present).map_err(|error| self.failed(error))
            }
        }

        impl<$($generics)*> Clone for $map {
            fn clone(&self) -> Self {
                Self { view: self.view.clone(), record: self.record.clone() }
            }
        }

        impl<$($generics)*> fmt::Debug for $map {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.index().fmt(f)
            }
        }

        impl<$($generics)*> Followed for $map {
            type Error = Error;
            fn from_opened(index: Index) -> Result<Self> {
                Self::from_index(Arc::new(index))
            }
            fn opened(&self) -> &Index {
                self.index()
            }
        }
    };
}

type MapEntries<'a, K, V> = Entries<'a, Range<'a, K, <V as MapValue>::Lines>, V>;
/// A tuple of byte strings.
type BytesTuple<V> = (Vec<u8>, V);
type BytesEntries<'a, V> = Entries<'a, StringRange<'a, <V as MapValue>::Lines>, V>;

look_ups! {
    [K: Key, V: MapValue] Map<K, V>, Typed<'_, K, V::Lines>, MapEntries<'_, K, V>,
    key: K => key, &[K], K
}
look_ups! {
    [V: MapValue] BytesMap<V>, Strings<'_, V::Lines>, BytesEntries<'_, V>,
    key: impl AsRef<[u8]> => key.as_ref(), &[impl AsRef<[u8]> + Sync], Vec<u8>
}

impl<K: Key, V: MapValue> Map<K, V> {
    /// Makes a map of an open file, which others may use as well.
    ///
    /// # Errors
    /// [`Error`] if the file holds other types, or if its description of records cannot be read.
    pub fn from_index(index: Arc<Index>) -> Result<Self> {
        let record = check::<V>(&index, &K::TYPE.to_string(), K::TYPE == index.key_type())?;
        Ok(Self { view: Owned::<Typed<'static, K, V::Lines>>::of(index)?, record })
    }

    /// Returns the tuple whose key has the smallest distance from `key`; of two the one below. `None` if there are no
    /// tuples.
    ///
    /// # Errors
    /// Those of [`Self::get`].
    pub fn nearest(&self, key: K) -> Result<Option<(K, V)>> {
        Ok(self.near_many(Near::Nearest, &[key])?.pop().flatten())
    }
    /// Runs [`Self::nearest`] for many keys, whose cache misses overlap.
    ///
    /// # Errors
    /// Those of [`Self::get`].
    pub fn nearest_many(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>> {
        self.near_many(Near::Nearest, keys)
    }
    /// Returns the first key and the value of the interval that holds `key`, in a file of intervals: the value begins
    /// with the last key. `None` if no interval holds it.
    ///
    /// # Errors
    /// Those of [`Self::get`]; [`Error`] if the file has no intervals.
    pub fn interval(&self, key: K) -> Result<Option<(K, V)>> {
        let [rank] = self.interval_ranks(&[key])?[..] else { return Ok(None) };
        rank.map_or(Ok(None), |rank| self.select(rank))
    }
    /// Returns the values of the intervals that hold many keys. Their cache misses overlap.
    ///
    /// # Errors
    /// Those of [`Self::interval`].
    pub fn interval_many(&self, keys: &[K]) -> Result<Vec<Option<V>>> {
        self.values().at_all(&self.interval_ranks(keys)?).map_err(|error| self.failed(error))
    }
    fn interval_ranks(&self, keys: &[K]) -> Result<Vec<Option<u64>>> {
        let intervals = self.view().intervals().map_err(|error| self.failed(error))?.ok_or_else(|| {
            let holds = format!("{} keys that are no intervals", self.index().key_type());
            Error::types(self.index().path(), "intervals".to_owned(), holds)
        })?;
        let mut ranks = vec![0; keys.len()];
        intervals.find_batch(keys, &mut ranks).map_err(|error| self.failed(error))?;
        Ok(ranks.into_iter().map(|rank| (rank != u64::MAX).then_some(rank)).collect())
    }
    fn near_many(&self, near: Near, keys: &[K]) -> Result<Vec<Option<(K, V)>>> {
        let mut ranks = vec![0; keys.len()];
        let mut found = vec![K::default(); keys.len()];
        let mut lines = vec![V::Lines::default(); keys.len()];
        let tuples = Tuples { ranks: &mut ranks, keys: &mut found, values: &mut lines, present: &mut [] };
        self.view().near_batch(near, keys, tuples).map_err(|error| self.failed(error))?;
        let ranks = ranks.into_iter().map(|rank| (rank != u64::MAX).then_some(rank));
        if !V::IN_LINES {
            let ranks: Vec<Option<u64>> = ranks.collect();
            let values = self.values().at_all(&ranks).map_err(|error| self.failed(error))?;
            return Ok(found.into_iter().zip(values).map(|(key, value)| Some((key, value?))).collect());
        }
        let values = self.values();
        let tuple = |((rank, key), lines): ((Option<u64>, K), V::Lines)| {
            rank.map(|rank| Ok((key, values.at(rank, lines)?))).transpose()
        };
        let tuples = ranks.zip(found).zip(lines).map(tuple);
        tuples.collect::<Result<_, ReadError>>().map_err(|error| self.failed(error))
    }

    /// Returns the number of tuples whose keys are in a range. Two descents, no scan.
    ///
    /// # Errors
    /// Those of [`Self::get`].
    pub fn count(&self, keys: impl RangeBounds<K>) -> Result<u64> {
        self.view().count(keys).map_err(|error| self.failed(error))
    }
    /// Iterates over the tuples whose keys are in a range, in order, from both ends.
    ///
    /// # Errors
    /// Those of [`Self::get`].
    pub fn range(&self, keys: impl RangeBounds<K>) -> Result<MapEntries<'_, K, V>> {
        Ok(self.ranks(self.view().rank_range(&keys).map_err(|error| self.failed(error))?))
    }
    /// Looks keys up as they are taken from an iterator, a few thousand at a time. Yields each key with its value,
    /// and ends after an error.
    pub fn many<I: IntoIterator<Item = K>>(
        &self,
        keys: I,
    ) -> impl Iterator<Item = Result<(K, Option<V>)>> + use<'_, K, V, I> {
        in_pieces(keys.into_iter(), |keys| self.get_many(keys))
    }
}

impl<V: MapValue> BytesMap<V> {
    /// Makes a map of an open file, which others may use as well.
    ///
    /// # Errors
    /// [`Error`] if the file holds other types, or if its description of records cannot be read.
    pub fn from_index(index: Arc<Index>) -> Result<Self> {
        let record = check::<V>(&index, "bytes", index.key_type().is_bytes())?;
        Ok(Self { view: Owned::<Strings<'static, V::Lines>>::of(index)?, record })
    }

    fn near_many(&self, near: Near, keys: &[impl AsRef<[u8]> + Sync]) -> Result<Vec<Option<BytesTuple<V>>>> {
        let mut ranks = vec![0; keys.len()];
        self.view().near_batch(near, keys, &mut ranks).map_err(|error| self.failed(error))?;
        ranks.into_iter().map(|rank| self.select(rank)).collect()
    }

    /// Returns the number of tuples whose keys are in a range. Two descents, no scan.
    ///
    /// # Errors
    /// Those of [`Self::get`].
    pub fn count<Q: AsRef<[u8]>>(&self, keys: impl RangeBounds<Q>) -> Result<u64> {
        self.view().count(bounds(&keys)).map_err(|error| self.failed(error))
    }
    /// Iterates over the tuples whose keys are in a range, such as `"a".."b"`, in order, from both ends. For all
    /// tuples see [`Self::iter`].
    ///
    /// # Errors
    /// Those of [`Self::get`].
    pub fn range<Q: AsRef<[u8]>>(&self, keys: impl RangeBounds<Q>) -> Result<BytesEntries<'_, V>> {
        Ok(self.ranks(self.view().rank_range(&bounds(&keys)).map_err(|error| self.failed(error))?))
    }
    /// Iterates over the tuples whose keys begin with `prefix`, in order, from both ends.
    ///
    /// # Errors
    /// Those of [`Self::get`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<BytesEntries<'_, V>> {
        Ok(self.ranks(self.view().prefix_ranks(prefix.as_ref()).map_err(|error| self.failed(error))?))
    }
    /// Looks keys up as they are taken from an iterator, a few thousand at a time. Yields each key with its value,
    /// and ends after an error.
    pub fn many<I: IntoIterator<Item: AsRef<[u8]> + Sync>>(
        &self,
        keys: I,
    ) -> impl Iterator<Item = Result<(I::Item, Option<V>)>> + use<'_, V, I> {
        in_pieces(keys.into_iter(), |keys| self.get_many(keys))
    }
}

/// Returns a range of byte strings.
fn bounds<'k, Q: AsRef<[u8]> + 'k>(keys: &'k impl RangeBounds<Q>) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    (keys.start_bound().map(AsRef::as_ref), keys.end_bound().map(AsRef::as_ref))
}

/// The batches that write into the caller's buffers: they allocate nothing.
impl<K: Key, V: Value> Map<K, V> {
    /// Returns the borrowed view that this map calls. It has more look-ups: scans, bulk copies, strategies.
    #[must_use]
    #[inline]
    pub fn typed(&self) -> &Typed<'_, K, V> {
        self.view.view()
    }

    /// Looks up many keys, and returns the number of keys found. Sets `present` to one bit for each key. The value of
    /// an absent key is the default of its type.
    ///
    /// # Errors
    /// Those of [`Self::get`]; [`Error`] if `values` is shorter than `keys`.
    pub fn get_batch(&self, keys: &[K], values: &mut [V], present: &mut Bitmap) -> Result<usize> {
        let outcome = self.typed().get_batch(keys, values, present.reset(keys.len()));
        self.finish(outcome, present)
    }
    /// Runs [`Self::get_batch`] on all threads of the current rayon pool.
    ///
    /// # Errors
    /// Those of [`Self::get_batch`].
    pub fn par_get_batch(&self, keys: &[K], values: &mut [V], present: &mut Bitmap) -> Result<usize> {
        let outcome = self.typed().par_get_batch(keys, values, present.reset(keys.len()));
        self.finish(outcome, present)
    }
    fn finish(&self, outcome: Result<usize, ReadError>, present: &mut Bitmap) -> Result<usize> {
        outcome.map_err(|error| {
            present.clear();
            self.failed(error)
        })
    }
}

/// The batches that write into the caller's buffers: they allocate nothing.
impl<V: Value> BytesMap<V> {
    /// Returns the borrowed view that this map calls.
    #[must_use]
    #[inline]
    pub fn strings(&self) -> &Strings<'_, V> {
        self.view.view()
    }

    /// Looks up many keys, and returns the number of keys found. Sets `present` to one bit for each key. The value of
    /// an absent key is the default of its type.
    ///
    /// # Errors
    /// Those of [`Self::get`]; [`Error`] if `values` is shorter than `keys`.
    pub fn get_batch<Q: Queries + ?Sized>(
        &self,
        keys: &Q,
        values: &mut [V],
        present: &mut Bitmap,
    ) -> Result<usize> {
        let outcome = self.strings().get_batch(keys, values, present.reset(keys.len()));
        self.finish(outcome, present)
    }
    /// Runs [`Self::get_batch`] on all threads of the current rayon pool.
    ///
    /// # Errors
    /// Those of [`Self::get_batch`].
    pub fn par_get_batch<Q: Queries + ?Sized>(
        &self,
        keys: &Q,
        values: &mut [V],
        present: &mut Bitmap,
    ) -> Result<usize> {
        let outcome = self.strings().par_get_batch(keys, values, present.reset(keys.len()));
        self.finish(outcome, present)
    }
    fn finish(&self, outcome: Result<usize, ReadError>, present: &mut Bitmap) -> Result<usize> {
        outcome.map_err(|error| {
            present.clear();
            self.failed(error)
        })
    }
}

/// Look-ups of one field of a record, by its name.
macro_rules! fields {
    ([$($generics:tt)*] $map:ty, $key:ident: $arg:ty, $keys:ty) => {
        impl<$($generics)*> $map {
            /// Returns a field of the first tuple with this key.
            ///
            /// # Errors
            /// Those of [`Self::get`]; [`Error`] if records have no field of this name and type.
            pub fn get_field<T: FieldType>(&self, $key: $arg, field: &str) -> Result<Option<T>> {
                let value = self.get($key)?.map(|row| row.get(field)).transpose();
                value.map_err(|error| self.failed(error))
            }

            /// Returns a field of each of many keys. The name is looked up once.
            ///
            /// # Errors
            /// Those of [`Self::get_field`].
            pub fn get_field_many<T: FieldType>(&self, keys: $keys, field: &str) -> Result<Vec<Option<T>>> {
                let Some(record) = self.record() else { return Ok(Vec::new()) };
                let at = record.find_typed::<T>(field).map_err(|error| self.failed(error))?;
                let rows = self.get_many(keys)?;
                let value = |row: Row| record.get_typed(at, row.as_bytes());
                Ok(rows.into_iter().map(|row| row.and_then(value)).collect())
            }
        }
    };
}
fields! { [K: Key] Map<K, Row>, key: K, &[K] }
fields! { [] BytesMap<Row>, key: impl AsRef<[u8]>, &[impl AsRef<[u8]> + Sync] }

/// Iterator over the tuples of a map, in order and from both ends. `T` is [`Range`] for numeric keys and
/// [`StringRange`] for byte keys.
///
/// An item is an error if a block is damaged, which only [`crate::Verify::Touched`] checks, or if the file was
/// truncated while it was mapped.
pub struct Entries<'a, T, V: MapValue> {
    values: Values<'a, V>,
    tuples: T,
    front: u64,
    back: u64,
}

impl<T: Clone, V: MapValue> Clone for Entries<'_, T, V> {
    fn clone(&self) -> Self {
        Self { tuples: self.tuples.clone(), ..*self }
    }
}

impl<T, V: MapValue> fmt::Debug for Entries<'_, T, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entries({} remain)", self.remaining())
    }
}

impl<'a, K: Key, V: MapValue> IntoIterator for &'a Map<K, V> {
    type Item = Result<(K, V)>;
    type IntoIter = MapEntries<'a, K, V>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, V: MapValue> IntoIterator for &'a BytesMap<V> {
    type Item = Result<(Vec<u8>, V)>;
    type IntoIter = BytesEntries<'a, V>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T, V: MapValue> Entries<'_, T, V> {
    /// Returns the number of tuples that remain.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.back - self.front
    }

    #[inline]
    fn tuple<K>(&self, rank: u64, tuple: Result<(K, V::Lines), ReadError>) -> Result<(K, V)> {
        let tuple = tuple.and_then(|(key, lines)| Ok((key, self.values.at(rank, lines)?)));
        tuple.map_err(|error| failed(self.values.index, error))
    }
}

impl<K, V: MapValue, T: Iterator<Item = Result<(K, V::Lines), ReadError>>> Iterator for Entries<'_, T, V> {
    type Item = Result<(K, V)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let tuple = self.tuples.next()?;
        let rank = self.front;
        self.front = (rank + 1).min(self.back);
        Some(self.tuple(rank, tuple))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.tuples.size_hint()
    }
}

impl<K, V: MapValue, T: DoubleEndedIterator<Item = Result<(K, V::Lines), ReadError>>> DoubleEndedIterator
    for Entries<'_, T, V>
{
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let tuple = self.tuples.next_back()?;
        self.back = self.back.saturating_sub(1).max(self.front);
        Some(self.tuple(self.back, tuple))
    }
}

impl<K, V: MapValue, T: FusedIterator<Item = Result<(K, V::Lines), ReadError>>> FusedIterator
    for Entries<'_, T, V>
{
}
