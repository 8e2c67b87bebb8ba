//! A view of an open file whose keys are byte strings. It provides all look-ups of such keys.
//!
//! A query becomes a word ([`pleach_format::mask`]), and the word is looked up like a number. If words are
//! whole keys, that is the answer. Otherwise the bytes that words leave out decide. Usually the first key
//! with that word either is the query or is not. In a run of equal words the place is found by bisection on
//! full keys, so no run is scanned.

use crate::error::{ReadError, TypeError};
use crate::index::Index;
use crate::queries::Queries;
use crate::rest::Rest;
use crate::search::descent::{GROUP, Hit};
use crate::string_range::{StringRange, Tuples};
use crate::texts::Texts;
use crate::typed::Typed;
use pleach_format::key::{Key, Word};
use pleach_format::mask::{Mask, Place};
use pleach_format::{Value, ValueType};
use pleach_fsck::pool;
use std::cmp::Ordering;
use std::fmt;
use std::ops::{Bound, RangeBounds};

/// Queries that become words at a time; a multiple of 64.
const PIECE: usize = 512;
/// Queries that take turns in one bisection of full keys.
const TURNS: usize = 32;
/// Queries per task of a parallel batch; a multiple of [`PIECE`].
const TASK: usize = 1 << 13;

/// The words of a file, by their width in bytes.
#[derive(Clone, Copy)]
enum Words<'a, V: Value> {
    Four(Typed<'a, u32, V>),
    Eight(Typed<'a, u64, V>),
    Sixteen(Typed<'a, u128, V>),
}

macro_rules! any_words {
    ($self:expr, $words:ident => $call:expr) => {
        match $self {
            Words::Four($words) => $call,
            Words::Eight($words) => $call,
            Words::Sixteen($words) => $call,
        }
    };
}

/// A view that borrows an [`Index`] with byte keys; [`crate::BytesMap`] is one that owns it. Cheap to make; keep
/// it for many look-ups.
///
/// As in [`Typed`], ranks count from 0 and batch forms write into the caller's buffers; a bitmap has bit
/// `i % 64` of word `i / 64` for query `i`. Keys compare byte by byte, and a prefix of a key comes before the
/// key.
#[derive(Clone, Copy)]
pub struct Strings<'a, V: Value> {
    index: &'a Index,
    mask: &'a Mask,
    words: Words<'a, V>,
    rest: Rest<'a>,
}

impl Index {
    /// Returns a view of a file whose keys are byte strings: `bytesN`, `bytes` or `utf8`. `V = ()` is allowed
    /// for all types of values and gives the keys alone.
    ///
    /// # Errors
    /// [`TypeError`] if keys are numbers, or if `V` is neither the type of the values nor `()`.
    pub fn strings<V: Value>(&self) -> Result<Strings<'_, V>, TypeError> {
        Strings::new(self)
    }
}

/// Result of looking up the word of a query.
enum Looked<V: Value> {
    /// The query is not a key; this is the rank of its lower bound.
    Absent(u64),
    /// The first tuple with this word. Its key is the query if words are whole keys; otherwise the keys must
    /// be compared.
    Hit(Hit<V::Bits>, u128),
}

impl<'a, V: Value> Strings<'a, V> {
    pub(crate) fn new(index: &'a Index) -> Result<Self, TypeError> {
        let holds = (index.key_type(), index.value_type());
        let fits = V::TYPE == holds.1 || V::TYPE == ValueType::None;
        let (Some(mask), true) = (index.mask(), fits) else {
            return Err(TypeError { asked: (pleach_format::KeyType::Bytes, V::TYPE), holds });
        };
        let words = match index.header().geometry.key_bytes {
            4 => Words::Four(Typed::new(index)),
            8 => Words::Eight(Typed::new(index)),
            _ => Words::Sixteen(Typed::new(index)),
        };
        Ok(Self { index, mask, words, rest: Rest::new(index, mask) })
    }

    /// Returns the index of this view.
    #[must_use]
    pub fn index(&self) -> &'a Index {
        self.index
    }
    /// Returns the number of tuples.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.index.len()
    }
    /// Returns true if there are no tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    fn look(&self, query: &[u8]) -> Result<Looked<V>, ReadError> {
        Ok(match crate::arch::place(self.mask, query) {
            Place::Gap { word, after: false } => {
                Looked::Absent(any_words!(&self.words, words => words.lower_bound(from(word)))?)
            }
            Place::Gap { word, after: true } => {
                Looked::Absent(any_words!(&self.words, words => words.upper_bound(from(word)))?)
            }
            Place::Word(word) => {
                let hit = any_words!(&self.words, words => words.locate(from(word)))?;
                if hit.found { Looked::Hit(hit, word) } else { Looked::Absent(hit.rank) }
            }
        })
    }

    /// Searches for one key.
    #[inline]
    pub(crate) fn hit(&self, key: &[u8]) -> Result<Hit<V::Bits>, ReadError> {
        self.locate(key)
    }

    /// Passes the hit of each of many keys to `put`, with the number of the key. Verified as the index is.
    pub(crate) fn hits_of<Q: Queries + ?Sized>(
        &self,
        keys: &Q,
        put: impl FnMut(usize, &Hit<V::Bits>),
    ) -> Result<(), ReadError> {
        self.each_hit(keys, 0, keys.len(), put)
    }

    #[inline]
    fn locate(&self, query: &[u8]) -> Result<Hit<V::Bits>, ReadError> {
        if let Some(texts) = self.rest.texts() {
            let (rank, found) = texts.find(query)?;
            let value = if found { self.value_bits(rank)? } else { Default::default() };
            return Ok(Hit { rank, found, value });
        }
        let absent = |rank| Hit { rank, ..Hit::default() };
        match self.look(query)? {
            Looked::Absent(rank) => Ok(absent(rank)),
            Looked::Hit(hit, word) => {
                if self.rest.is_nothing() {
                    return Ok(hit);
                }
                match self.rest.compare(hit.rank, query)? {
                    Some(Ordering::Equal) => Ok(hit),
                    Some(Ordering::Greater) => Ok(absent(hit.rank)),
                    _ => self.settle(query, word, hit.rank),
                }
            }
        }
    }

    /// Finds the first key of at least `query` among those with its word. The key at `start` is below
    /// `query`.
    #[cold]
    fn settle(&self, query: &[u8], word: u128, start: u64) -> Result<Hit<V::Bits>, ReadError> {
        let (rank, found, _) = self.among(query, word, start)?;
        let value = if found { self.value_bits(rank)? } else { Default::default() };
        Ok(Hit { rank, found, value })
    }

    /// Returns the rank of the first key of at least `query` after `start` among those with its word, whether
    /// it equals the query, and the number of keys compared.
    fn among(&self, query: &[u8], word: u128, start: u64) -> Result<(u64, bool, u32), ReadError> {
        let end = any_words!(&self.words, words => words.upper_bound(from(word)))?;
        let mut compared = 0;
        let rank = bisect(start.saturating_add(1), end, |rank| {
            compared += 1;
            Ok(self.rest.compare(rank, query)? == Some(Ordering::Less))
        })?;
        let there = rank < end;
        let found = there && self.rest.compare(rank, query)? == Some(Ordering::Equal);
        Ok((rank, found, compared + u32::from(there)))
    }

    /// Returns the number of full keys that a look-up of `key` compares; at least 1 for a key that is
    /// present. For measurements; if words are whole keys, or keys are in pages, a key that
    /// is there counts as one.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn comparisons(&self, key: &[u8]) -> Result<u32, ReadError> {
        if let Some(texts) = self.rest.texts() {
            return Ok(u32::from(texts.find(key)?.1));
        }
        let Looked::Hit(hit, word) = self.look(key)? else { return Ok(0) };
        if self.rest.compare(hit.rank, key)? != Some(Ordering::Less) {
            return Ok(1);
        }
        Ok(1 + self.among(key, word, hit.rank)?.2)
    }

    fn value_bits(&self, rank: u64) -> Result<V::Bits, ReadError> {
        let tuple = any_words!(&self.words, words => words.select(rank)?.map(|(_, value)| value));
        Ok(tuple.unwrap_or_default().to_bits())
    }

    /// Returns the value of the first tuple with this key.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn get(&self, key: &[u8]) -> Result<Option<V>, ReadError> {
        if let Some(texts) = self.rest.texts() {
            let Some(rank) = texts.get(key)? else { return Ok(None) };
            let is_verified = self.index.verified().is_some();
            let bits = if is_verified { self.value_bits(rank)? } else { texts.value(rank) };
            self.index.check_mapping()?;
            return Ok(Some(V::from_bits(bits)));
        }
        let hit = self.locate(key)?;
        Ok(hit.found.then(|| V::from_bits(hit.value)))
    }
    /// Returns true if a tuple has this key.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn contains(&self, key: &[u8]) -> Result<bool, ReadError> {
        match self.rest.texts() {
            Some(texts) => Ok(texts.get(key)?.is_some()),
            None => Ok(self.locate(key)?.found),
        }
    }
    /// Returns the rank of the first tuple with this key.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn rank(&self, key: &[u8]) -> Result<Option<u64>, ReadError> {
        let hit = self.locate(key)?;
        Ok(hit.found.then_some(hit.rank))
    }
    /// Returns the rank of the first tuple whose key is at least `key`; [`Strings::len`] if there is none.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn lower_bound(&self, key: &[u8]) -> Result<u64, ReadError> {
        Ok(self.locate(key)?.rank)
    }
    /// Returns the rank of the first tuple whose key is above `key`; [`Strings::len`] if there is none.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn upper_bound(&self, key: &[u8]) -> Result<u64, ReadError> {
        if let Some(texts) = self.rest.texts() {
            return match texts.find(key)? {
                (rank, false) => Ok(rank),
                (rank, true) if self.index.is_unique() => Ok(rank + 1),
                // The smallest string above another is the one with a zero byte more.
                (_, true) => Ok(texts.find(&[key, &[0]].concat())?.0),
            };
        }
        match self.look(key)? {
            Looked::Absent(rank) => Ok(rank),
            Looked::Hit(hit, word) => {
                let end = any_words!(&self.words, words => words.upper_bound(from(word)))?;
                if self.rest.is_nothing() {
                    return Ok(end);
                }
                bisect(hit.rank, end, |rank| {
                    Ok(self.rest.compare(rank, key)?.is_some_and(|order| order != Ordering::Greater))
                })
            }
        }
    }
    /// Returns the rank of the first tuple after all keys that begin with `prefix`.
    fn prefix_end(&self, prefix: &[u8]) -> Result<u64, ReadError> {
        // The smallest string above all of them: `prefix` without trailing FF bytes, its last byte one more.
        let Some(last) = prefix.iter().rposition(|&byte| byte < u8::MAX) else { return Ok(self.len()) };
        let mut above = prefix[..=last].to_vec();
        above[last] += 1;
        self.lower_bound(&above)
    }

    /// Returns the key at `rank`; `None` if `rank` is past the last tuple.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn key(&self, rank: u64) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(self.select(rank)?.map(|(key, _)| key))
    }
    /// Returns the key and the value at `rank`; `None` if `rank` is past the last tuple.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn select(&self, rank: u64) -> Result<Option<(Vec<u8>, V)>, ReadError> {
        self.ranks(rank..rank.saturating_add(1)).next().transpose()
    }
    /// Returns the first tuple; `None` if there are none.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn min(&self) -> Result<Option<(Vec<u8>, V)>, ReadError> {
        self.select(0)
    }
    /// Returns the last tuple; `None` if there are none.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn max(&self) -> Result<Option<(Vec<u8>, V)>, ReadError> {
        self.len().checked_sub(1).map_or(Ok(None), |last| self.select(last))
    }

    pub(crate) fn rank_range(
        &self,
        keys: &impl RangeBounds<[u8]>,
    ) -> Result<std::ops::Range<u64>, ReadError> {
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
        Ok(start..end.max(start))
    }

    /// Returns the number of tuples whose keys are in a range. Two descents, no scan.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn count(&self, keys: impl RangeBounds<[u8]>) -> Result<u64, ReadError> {
        let ranks = self.rank_range(&keys)?;
        Ok(ranks.end - ranks.start)
    }
    /// Returns an iterator over the tuples whose keys are in a range, in order. It iterates from both ends.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn range(&self, keys: impl RangeBounds<[u8]>) -> Result<StringRange<'a, V>, ReadError> {
        Ok(self.ranks(self.rank_range(&keys)?))
    }
    /// Returns the ranks of the tuples whose keys begin with `prefix`.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn prefix_ranks(&self, prefix: &[u8]) -> Result<std::ops::Range<u64>, ReadError> {
        let start = self.lower_bound(prefix)?;
        Ok(start..self.prefix_end(prefix)?.max(start))
    }
    /// Returns an iterator over the tuples whose keys begin with `prefix`, in order. It iterates from both
    /// ends.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn prefix(&self, prefix: &[u8]) -> Result<StringRange<'a, V>, ReadError> {
        Ok(self.ranks(self.prefix_ranks(prefix)?))
    }
    /// Returns an iterator over all tuples with this key, in input order.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn get_all(&self, key: &[u8]) -> Result<StringRange<'a, V>, ReadError> {
        self.range((Bound::Included(key), Bound::Included(key)))
    }
    /// Returns an iterator over the tuples of a range of ranks; the range is cut at [`Strings::len`].
    #[must_use]
    pub fn ranks(&self, ranks: std::ops::Range<u64>) -> StringRange<'a, V> {
        let end = ranks.end.min(self.len());
        let start = ranks.start.min(end);
        let words = match &self.words {
            Words::Four(words) => Tuples::Four(words.ranks(start..end)),
            Words::Eight(words) => Tuples::Eight(words.ranks(start..end)),
            Words::Sixteen(words) => Tuples::Sixteen(words.ranks(start..end)),
        };
        StringRange::new(self.mask, self.rest, words, start..end)
    }

    /// Looks up the values of many keys on this thread, and returns the number of keys found.
    ///
    /// `values` must have at least `keys.len()` elements, `present` at least one bit per key. The value of an
    /// absent key is the default of its type.
    ///
    /// # Errors
    /// [`ReadError::Buffer`] if `values` or `present` is too short; otherwise as for a single look-up:
    /// [`ReadError::Format`] with [`crate::Verify::Touched`], and [`ReadError::MappingLost`].
    pub fn get_batch<Q: Queries + ?Sized>(
        &self,
        keys: &Q,
        values: &mut [V],
        present: &mut [u64],
    ) -> Result<usize, ReadError> {
        let (values, present) = buffers(keys.len(), values, present)?;
        self.get_part(keys, 0, values, present)
    }

    /// Runs [`Strings::get_batch`] on all threads of the current rayon pool.
    ///
    /// # Errors
    /// Those of [`Strings::get_batch`].
    pub fn par_get_batch<Q: Queries + ?Sized>(
        &self,
        keys: &Q,
        values: &mut [V],
        present: &mut [u64],
    ) -> Result<usize, ReadError> {
        let (values, present) = buffers(keys.len(), values, present)?;
        let task = pool::task_queries(None, keys.len(), TASK);
        let tasks = (0..).step_by(task).zip(values.chunks_mut(task).zip(present.chunks_mut(task / 64)));
        pool::sum(None, tasks, |(first, (values, present))| self.get_part(keys, first, values, present))
    }

    fn get_part<Q: Queries + ?Sized>(
        &self,
        keys: &Q,
        first: usize,
        values: &mut [V],
        present: &mut [u64],
    ) -> Result<usize, ReadError> {
        if self.rest.is_nothing() && self.index.verified().is_none() && !self.index.is_empty() {
            return any_words!(&self.words, words => self.get_words(words, keys, first, values, present));
        }
        let mut found = 0;
        present.fill(0);
        if let Some(texts) = self.pipelined() {
            let count = values.len();
            texts.each::<true>(
                count,
                |at| keys.get(first + at),
                |at, rank, there| {
                    values[at] = if there { V::from_bits(texts.value(rank)) } else { V::default() };
                    present[at / 64] |= u64::from(there) << (at % 64);
                    found += usize::from(there);
                },
            )?;
            self.index.check_mapping()?;
            return Ok(found);
        }
        self.each_hit(keys, first, values.len(), |at, hit| {
            values[at] = V::from_bits(hit.value);
            present[at / 64] |= u64::from(hit.found) << (at % 64);
            found += usize::from(hit.found);
        })?;
        Ok(found)
    }

    /// Runs [`Strings::get_part`] for a file whose words are whole keys.
    fn get_words<W: Word + Key<Word = W>, Q: Queries + ?Sized>(
        &self,
        words: &Typed<'a, W, V>,
        keys: &Q,
        first: usize,
        values: &mut [V],
        present: &mut [u64],
    ) -> Result<usize, ReadError> {
        let mut queries = [W::default(); PIECE];
        let mut gaps = [0u64; PIECE / 64];
        let mut found = 0;
        for (piece, (values, present)) in
            values.chunks_mut(PIECE).zip(present.chunks_mut(PIECE / 64)).enumerate()
        {
            let queries = &mut queries[..values.len()];
            gaps.fill(0);
            let mut any = false;
            let start = first + piece * PIECE;
            let key = |at: usize| keys.get(start + at);
            crate::arch::places(self.mask, queries.len(), key, |at, place| match place {
                Place::Word(word) => queries[at] = from(word),
                Place::Gap { word, .. } => {
                    queries[at] = from(word);
                    gaps[at / 64] |= 1 << (at % 64);
                    any = true;
                }
            });
            found += words.get_batch(queries, values, present)?;
            if any {
                for (at, value) in values.iter_mut().enumerate() {
                    let bit = 1 << (at % 64);
                    if gaps[at / 64] & present[at / 64] & bit != 0 {
                        present[at / 64] &= !bit;
                        *value = V::default();
                        found -= 1;
                    }
                }
            }
        }
        Ok(found)
    }

    /// Checks which of many keys are present, on this thread, and returns the number of keys found.
    ///
    /// # Errors
    /// [`ReadError::Buffer`] if `present` is too short; otherwise as for a single look-up:
    /// [`ReadError::Format`] with [`crate::Verify::Touched`], and [`ReadError::MappingLost`].
    pub fn contains_batch<Q: Queries + ?Sized>(
        &self,
        keys: &Q,
        present: &mut [u64],
    ) -> Result<usize, ReadError> {
        let present = bitmap(keys.len(), present)?;
        let mut found = 0;
        present.fill(0);
        if let Some(texts) = self.pipelined() {
            texts.each::<true>(
                keys.len(),
                |at| keys.get(at),
                |at, _, there| {
                    present[at / 64] |= u64::from(there) << (at % 64);
                    found += usize::from(there);
                },
            )?;
            self.index.check_mapping()?;
            return Ok(found);
        }
        self.each_hit(keys, 0, keys.len(), |at, hit| {
            present[at / 64] |= u64::from(hit.found) << (at % 64);
            found += usize::from(hit.found);
        })?;
        Ok(found)
    }

    /// Looks up the ranks of many keys on this thread, and returns the number of keys found. The rank of an absent key
    /// is that of [`Strings::lower_bound`].
    ///
    /// # Errors
    /// [`ReadError::Buffer`] if `ranks` or `present` is too short; otherwise as for a single look-up:
    /// [`ReadError::Format`] with [`crate::Verify::Touched`], and [`ReadError::MappingLost`].
    pub fn rank_batch<Q: Queries + ?Sized>(
        &self,
        keys: &Q,
        ranks: &mut [u64],
        present: &mut [u64],
    ) -> Result<usize, ReadError> {
        let (needed, length) = (keys.len(), ranks.len());
        let ranks =
            ranks.get_mut(..needed).ok_or(ReadError::Buffer { name: "ranks", needed, found: length })?;
        let present = bitmap(needed, present)?;
        present.fill(0);
        let mut found = 0;
        self.each_hit(keys, 0, needed, |at, hit| {
            ranks[at] = hit.rank;
            present[at / 64] |= u64::from(hit.found) << (at % 64);
            found += usize::from(hit.found);
        })?;
        Ok(found)
    }

    /// Runs [`Strings::lower_bound`] for many keys, on this thread.
    ///
    /// # Errors
    /// [`ReadError::Buffer`] if `ranks` is too short; otherwise as for a single look-up:
    /// [`ReadError::Format`] with [`crate::Verify::Touched`], and [`ReadError::MappingLost`].
    pub fn lower_bound_batch<Q: Queries + ?Sized>(
        &self,
        keys: &Q,
        ranks: &mut [u64],
    ) -> Result<(), ReadError> {
        let (needed, found) = (keys.len(), ranks.len());
        let ranks = ranks.get_mut(..needed).ok_or(ReadError::Buffer { name: "ranks", needed, found })?;
        self.each_hit(keys, 0, needed, |at, hit| ranks[at] = hit.rank)
    }

    /// Returns the keys by page, if there are any and they are not verified as they are read.
    fn pipelined(&self) -> Option<&Texts<'a>> {
        self.rest.texts().filter(|_| self.index.verified().is_none() && !self.index.is_empty())
    }

    /// Yields the hits of `count` queries from number `first` on, in order.
    fn each_hit<Q: Queries + ?Sized>(
        &self,
        keys: &Q,
        first: usize,
        count: usize,
        mut put: impl FnMut(usize, &Hit<V::Bits>),
    ) -> Result<(), ReadError> {
        if self.index.verified().is_some() || self.index.is_empty() {
            self.index.foresee(count, |at| self.locate(keys.get(first + at)).map(|_| ()))?;
            for at in 0..count {
                put(at, &self.locate(keys.get(first + at))?);
            }
            return Ok(());
        }
        if let Some(texts) = self.rest.texts() {
            let mut hits = [Hit::default(); PIECE];
            for piece in (0..count).step_by(PIECE) {
                let hits = &mut hits[..PIECE.min(count - piece)];
                texts.each::<false>(
                    hits.len(),
                    |at| keys.get(first + piece + at),
                    |at, rank, found| {
                        hits[at] = Hit { rank, found, ..Hit::default() };
                        texts.prefetch_tuple(rank);
                    },
                )?;
                for (at, hit) in hits.iter_mut().enumerate() {
                    hit.value = if hit.found { texts.value(hit.rank) } else { Default::default() };
                    put(piece + at, hit);
                }
            }
            return self.index.check_mapping();
        }
        let mut hits = [Hit::default(); PIECE];
        for piece in (0..count).step_by(PIECE) {
            let hits = &mut hits[..PIECE.min(count - piece)];
            let queries = first + piece;
            match &self.words {
                Words::Four(words) => self.hits(words, keys, queries, hits)?,
                Words::Eight(words) => self.hits(words, keys, queries, hits)?,
                Words::Sixteen(words) => self.hits(words, keys, queries, hits)?,
            }
            for (at, hit) in hits.iter().enumerate() {
                put(piece + at, hit);
            }
        }
        self.index.check_mapping()
    }

    fn hits<W: Word + Key<Word = W>, Q: Queries + ?Sized>(
        &self,
        words: &Typed<'a, W, V>,
        keys: &Q,
        first: usize,
        hits: &mut [Hit<V::Bits>],
    ) -> Result<(), ReadError> {
        let mut queries = [W::default(); PIECE];
        let mut gaps = [0u64; PIECE / 64];
        // Queries above all keys: the largest word has no successor to search for.
        let mut above = [0u64; PIECE / 64];
        let key = |at: usize| keys.get(first + at);
        crate::arch::places(self.mask, hits.len(), key, |at, place| match place {
            Place::Word(place) => queries[at] = from(place),
            Place::Gap { word, after } => {
                let (bit, number) = (1 << (at % 64), at / 64);
                gaps[number] |= bit;
                let word: W = from(word);
                queries[at] = word;
                if after {
                    match word.successor() {
                        Some(next) => queries[at] = next,
                        None => above[number] |= bit,
                    }
                }
            }
        });
        let count = hits.len();
        let queries = &queries[..count];
        let mut unsettled = Unsettled { at: [0; PIECE], count: 0 };
        words.hits(queries, &mut |first_arrived, arrived| {
            for (at, hit) in (first_arrived..).zip(arrived) {
                hits[at] = *hit;
                if gaps[at / 64] >> (at % 64) & 1 != 0 {
                    let rank = if above[at / 64] >> (at % 64) & 1 != 0 { self.len() } else { hit.rank };
                    hits[at] = Hit { rank, ..Hit::default() };
                }
            }
            // A group may arrive in several pieces.
            let end = first_arrived + arrived.len();
            if end.is_multiple_of(GROUP) || end == count {
                self.confirm(first_arrived / GROUP, keys, first, hits, &mut unsettled);
            }
        });
        let groups = count.div_ceil(GROUP);
        self.confirm(groups, keys, first, hits, &mut unsettled);
        let unsettled = &unsettled.at[..unsettled.count];
        for part in unsettled.chunks(TURNS) {
            self.settle_all(words, keys, first, queries, part, hits)?;
        }
        Ok(())
    }

    /// Compares full keys if words are not whole keys. Prefetches the offsets of the group that just arrived,
    /// then the keys of the group before it, and compares those. A group is prefetched in one burst so that
    /// its page walks overlap (a hint cannot retire before its address is known). It is compared right after,
    /// while the prefetched lines are still in the cache.
    fn confirm<Q: Queries + ?Sized>(
        &self,
        group: usize,
        keys: &Q,
        first: usize,
        hits: &mut [Hit<V::Bits>],
        unsettled: &mut Unsettled,
    ) {
        if self.rest.is_nothing() {
            return;
        }
        let of = |back: usize| {
            let from = group.checked_sub(back).map_or(hits.len(), |group| hits.len().min(group * GROUP));
            from..hits.len().min(from + GROUP)
        };
        if self.rest.has_offsets() {
            let found = hits[of(0)].iter().filter(|hit| hit.found);
            found.for_each(|hit| self.rest.prefetch_offset(hit.rank));
        }
        let found = hits[of(1)].iter().filter(|hit| hit.found);
        found.for_each(|hit| self.rest.prefetch(hit.rank));
        for at in of(1) {
            let hit = &mut hits[at];
            if hit.found {
                let query = keys.get(first + at);
                match self.rest.compare_unverified(hit.rank, query) {
                    Ordering::Equal => {}
                    Ordering::Greater => *hit = Hit { rank: hit.rank, ..Hit::default() },
                    Ordering::Less => {
                        unsettled.at[unsettled.count] = at;
                        unsettled.count += 1;
                    }
                }
            }
        }
    }

    /// Runs [`Strings::settle`] for up to [`TURNS`] queries, which take turns at each step of the bisection
    /// so that their cache misses overlap.
    fn settle_all<W: Word + Key<Word = W>, Q: Queries + ?Sized>(
        &self,
        words: &Typed<'a, W, V>,
        keys: &Q,
        first: usize,
        queries: &[W],
        unsettled: &[usize],
        hits: &mut [Hit<V::Bits>],
    ) -> Result<(), ReadError> {
        // A run ends where the next word begins. The largest word has no next word.
        let mut next = [W::default(); TURNS];
        let mut ends = [self.len(); TURNS];
        for (next, &at) in next.iter_mut().zip(unsettled) {
            *next = queries[at].successor().unwrap_or(queries[at]);
        }
        words.hits(&next[..unsettled.len()], &mut |from, arrived| {
            for (slot, hit) in (from..).zip(arrived) {
                if queries[unsettled[slot]].successor().is_some() {
                    ends[slot] = hit.rank;
                }
            }
        });
        let mut spans = [(0, 0); TURNS];
        let spans = &mut spans[..unsettled.len()];
        for ((span, &at), &end) in spans.iter_mut().zip(unsettled).zip(&ends) {
            *span = (hits[at].rank.saturating_add(1).min(end), end);
        }
        let middle = |&(low, high): &(u64, u64)| low + (high - low) / 2;
        while spans.iter().any(|(low, high)| low < high) {
            let open = |span: &&(u64, u64)| span.0 < span.1;
            if self.rest.has_offsets() {
                spans.iter().filter(open).for_each(|span| self.rest.prefetch_offset(middle(span)));
            }
            spans.iter().filter(open).for_each(|span| self.rest.prefetch(middle(span)));
            for (span, &at) in spans.iter_mut().zip(unsettled).filter(|(span, _)| span.0 < span.1) {
                let rank = middle(span);
                match self.rest.compare_unverified(rank, keys.get(first + at)) {
                    Ordering::Less => span.0 = rank + 1,
                    _ => span.1 = rank,
                }
            }
        }
        // Both ends are now the first key that is not below; its value is in another line.
        for (rank, _) in &*spans {
            self.rest.prefetch_offset(*rank);
            words.prefetch(*rank);
        }
        spans.iter().for_each(|(rank, _)| self.rest.prefetch(*rank));
        for ((&mut (rank, _), &at), &end) in spans.iter_mut().zip(unsettled).zip(&ends) {
            let query = keys.get(first + at);
            let found = rank < end && self.rest.compare_unverified(rank, query) == Ordering::Equal;
            let value = if found { self.value_bits(rank)? } else { Default::default() };
            hits[at] = Hit { rank, found, value };
        }
        Ok(())
    }
}

/// Queries of a piece for which the first key with their word is below them.
struct Unsettled {
    at: [usize; PIECE],
    count: usize,
}

#[inline(always)]
fn from<W: Word>(word: u128) -> W {
    W::from_u128(word)
}

/// Returns the first rank of `from..to` that is not `below`, or `to`. O(log).
fn bisect(
    from: u64,
    to: u64,
    mut below: impl FnMut(u64) -> Result<bool, ReadError>,
) -> Result<u64, ReadError> {
    let (mut low, mut high) = (from.min(to), to);
    while low < high {
        let middle = low + (high - low) / 2;
        if below(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

fn bitmap(queries: usize, present: &mut [u64]) -> Result<&mut [u64], ReadError> {
    let (needed, found) = (queries.div_ceil(64), present.len());
    present.get_mut(..needed).ok_or(ReadError::Buffer { name: "present", needed, found })
}

type Buffers<'b, V> = (&'b mut [V], &'b mut [u64]);

fn buffers<'b, V>(
    needed: usize,
    values: &'b mut [V],
    present: &'b mut [u64],
) -> Result<Buffers<'b, V>, ReadError> {
    let present = bitmap(needed, present)?;
    let found = values.len();
    let values = values.get_mut(..needed).ok_or(ReadError::Buffer { name: "values", needed, found })?;
    Ok((values, present))
}

impl<V: Value> fmt::Debug for Strings<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strings").field("index", self.index).finish_non_exhaustive()
    }
}
