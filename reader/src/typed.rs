//! A view of an open file with compile-time types. It provides all look-ups of numeric keys.

use crate::cast::{key_words, value_bits};
use crate::error::{ReadError, TypeError};
use crate::index::Index;
use crate::iter::Range;
use crate::search::descent::{GROUP, Hit};
use crate::search::output::PutHits;
use crate::search::plan::Plan;
use crate::touched::Verified;
use crate::words::Searches;
use pleach_format::key::{Bits, Word};
use pleach_format::{Key, Value, ValueType, view};
use pleach_fsck::pool;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

/// Maximum number of queries per task of a parallel batch; a multiple of 64, so that tasks own whole bitmap words.
const TASK: usize = 1 << 14;

/// Keys encoded at a time where encoding is more than a xor; a multiple of 64.
const PIECE: usize = 1024;

/// A typed view that borrows an [`Index`]; [`crate::Map`] is one that owns it. Cheap to make; keep it for many
/// look-ups.
///
/// Ranks count from 0. All look-ups are O(levels) lines. Batch forms write into the caller's
/// buffers: a bitmap has bit `i % 64` of word `i / 64` for query `i`.
///
/// Answers come from bytes that were verified as the [`crate::Verify`] mode of the index specifies.
#[derive(Clone, Copy)]
pub struct Typed<'a, K: Key, V: Value> {
    index: &'a Index,
    plan: Option<Plan<'a>>,
    searches: Searches<'a, K::Word, V::Bits>,
    types: PhantomData<(K, V)>,
}

impl Index {
    /// Returns a view with compile-time types. `V = ()` is allowed for all types of values and gives the keys
    /// alone.
    ///
    /// # Errors
    /// [`TypeError`] if the types are not those of the file.
    pub fn typed<K: Key, V: Value>(&self) -> Result<Typed<'_, K, V>, TypeError> {
        let holds = (self.key_type(), self.value_type());
        if K::TYPE != holds.0 || (V::TYPE != holds.1 && V::TYPE != ValueType::None) {
            return Err(TypeError { asked: (K::TYPE, V::TYPE), holds });
        }
        Ok(Typed::new(self))
    }
}

impl<'a, K: Key, V: Value> Typed<'a, K, V> {
    pub(crate) fn new(index: &'a Index) -> Self {
        let width = index.value_type().line_bytes();
        Self {
            index,
            plan: index.plan(),
            searches: Searches::new(index.header().short.as_ref(), width, index.isa()),
            types: PhantomData,
        }
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

    /// Returns the arrays, whose bounds were checked; `None` in an empty file.
    pub(crate) fn plan(&self) -> Option<&Plan<'a>> {
        self.plan.as_ref()
    }

    /// Returns the searches for words.
    pub(crate) fn searches(&self) -> &Searches<'a, K::Word, V::Bits> {
        &self.searches
    }

    /// Reports whether the file has values of this type in its lines.
    pub(crate) fn has_values(&self) -> bool {
        self.searches.has_values()
    }

    fn locate_verified(&self, verified: &Verified<'_>, query: K::Word) -> Result<Hit<V::Bits>, ReadError> {
        let rank = verified.lower_bound(self.index.structure(), query)?;
        let hit = match view::tuple::<K::Word, _>(verified.header, verified, rank)? {
            Some((key, value)) if key == query => Hit { rank, found: true, value: V::Bits::from_u64(value) },
            _ => Hit { rank, ..Hit::default() },
        };
        self.index.check_mapping()?;
        Ok(hit)
    }

    #[inline]
    pub(crate) fn locate(&self, query: K::Word) -> Result<Hit<V::Bits>, ReadError> {
        if let Some(verified) = self.index.verified() {
            return self.locate_verified(&verified, query);
        }
        let Some(plan) = &self.plan else { return Ok(Hit::default()) };
        let hit = self.searches.locate(plan, query);
        self.index.check_mapping()?;
        Ok(hit)
    }

    /// Yields the hits of many words, unverified, in order and in groups of up to [`GROUP`]. Yields nothing
    /// in an empty file.
    pub(crate) fn hits(&self, words: &[K::Word], put: &mut PutHits<'_, V::Bits>) {
        if let Some(plan) = &self.plan {
            self.searches.hits(plan, words, put);
        }
    }

    /// Searches for one key.
    #[inline]
    pub(crate) fn hit(&self, key: K) -> Result<Hit<V::Bits>, ReadError> {
        self.locate(key.encode())
    }

    /// Passes the hit of each of many keys to `put`, with the number of the key. Verified as the index is.
    pub(crate) fn hits_of(
        &self,
        keys: &[K],
        mut put: impl FnMut(usize, &Hit<V::Bits>),
    ) -> Result<(), ReadError> {
        if let Some(verified) = self.index.verified() {
            return self.each_verified(&verified, keys, &mut [], |at, hit| put(at, &hit)).map(|_| ());
        }
        if self.plan.is_none() {
            (0..keys.len()).for_each(|at| put(at, &Hit::default()));
            return Ok(());
        }
        let mut words = [K::Word::default(); PIECE];
        for (piece, keys) in keys.chunks(PIECE).enumerate() {
            words.iter_mut().zip(keys).for_each(|(word, key)| *word = key.encode());
            self.hits(&words[..keys.len()], &mut |first, hits| {
                (piece * PIECE + first..).zip(hits).for_each(|(at, hit)| put(at, hit));
            });
        }
        self.index.check_mapping()
    }

    /// Prefetches the tuple at `rank`.
    #[inline]
    pub(crate) fn prefetch(&self, rank: u64) {
        if let Some(plan) = &self.plan {
            let (line, _) = plan.header.geometry.place(rank);
            plan.tuple_lines.prefetch(line as usize);
        }
    }

    /// Returns the value of the first tuple with this key.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    #[inline]
    pub fn get(&self, key: K) -> Result<Option<V>, ReadError> {
        let hit = self.locate(key.encode())?;
        Ok(hit.found.then(|| V::from_bits(hit.value)))
    }

    /// Returns true if a tuple has this key.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    #[inline]
    pub fn contains(&self, key: K) -> Result<bool, ReadError> {
        Ok(self.locate(key.encode())?.found)
    }

    /// Returns the rank of the first tuple with this key.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    #[inline]
    pub fn rank(&self, key: K) -> Result<Option<u64>, ReadError> {
        let hit = self.locate(key.encode())?;
        Ok(hit.found.then_some(hit.rank))
    }

    /// Returns the rank of the first tuple whose key is at least `key`; [`Typed::len`] if there is none.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    #[inline]
    pub fn lower_bound(&self, key: K) -> Result<u64, ReadError> {
        Ok(self.locate(key.encode())?.rank)
    }

    /// Returns the rank of the first tuple whose key is above `key`; [`Typed::len`] if there is none.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    #[inline]
    pub fn upper_bound(&self, key: K) -> Result<u64, ReadError> {
        match key.encode().successor() {
            Some(next) => Ok(self.locate(next)?.rank),
            None => Ok(self.len()),
        }
    }

    /// Returns the key and the value at `rank`; `None` if `rank` is past the last tuple. O(1).
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn select(&self, rank: u64) -> Result<Option<(K, V)>, ReadError> {
        self.ranks(rank..rank.saturating_add(1)).next().transpose()
    }

    /// Returns the first tuple; `None` if there are none. O(1).
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn min(&self) -> Result<Option<(K, V)>, ReadError> {
        self.select(0)
    }

    /// Returns the last tuple; `None` if there are none. O(1).
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn max(&self) -> Result<Option<(K, V)>, ReadError> {
        match self.len().checked_sub(1) {
            Some(last) => self.select(last),
            None => Ok(None),
        }
    }

    pub(crate) fn rank_range(&self, keys: &impl RangeBounds<K>) -> Result<std::ops::Range<u64>, ReadError> {
        let start = match keys.start_bound() {
            Bound::Included(&key) => self.lower_bound(key)?,
            Bound::Excluded(&key) => self.upper_bound(key)?,
            Bound::Unbounded => 0,
        };
        let end = match keys.end_bound() {
            Bound::Included(&key) => self.upper_bound(key)?,
            Bound::Excluded(&key) => self.lower_bound(key)?,
            Bound::Unbounded => self.len(),
        };
        Ok(start..end.max(start))
    }

    /// Returns the number of tuples whose keys are in a range. Two descents, no scan.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn count(&self, keys: impl RangeBounds<K>) -> Result<u64, ReadError> {
        let ranks = self.rank_range(&keys)?;
        Ok(ranks.end - ranks.start)
    }

    /// Returns an iterator over the tuples whose keys are in a range, in order. It iterates from both ends.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn range(&self, keys: impl RangeBounds<K>) -> Result<Range<'a, K, V>, ReadError> {
        Ok(self.ranks(self.rank_range(&keys)?))
    }

    /// Returns an iterator over all tuples with this key, in input order.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn get_all(&self, key: K) -> Result<Range<'a, K, V>, ReadError> {
        self.range(key..=key)
    }

    /// Returns an iterator over the tuples of a range of ranks; the range is cut at [`Typed::len`].
    #[must_use]
    pub fn ranks(&self, ranks: std::ops::Range<u64>) -> Range<'a, K, V> {
        Range::new(self.index, self.plan.as_ref().map(|plan| plan.tuple_lines), ranks)
    }

    pub(crate) fn check_bitmap(queries: usize, present: &mut [u64]) -> Result<&mut [u64], ReadError> {
        let (needed, found) = (queries.div_ceil(64), present.len());
        let present =
            present.get_mut(..needed).ok_or(ReadError::Buffer { name: "present", needed, found })?;
        if let Some(last) = present.last_mut() {
            *last = 0;
        }
        Ok(present)
    }

    pub(crate) fn check_length<'b, T>(
        name: &'static str,
        needed: usize,
        buffer: &'b mut [T],
    ) -> Result<&'b mut [T], ReadError> {
        let found = buffer.len();
        buffer.get_mut(..needed).ok_or(ReadError::Buffer { name, needed, found })
    }

    /// Calls `take` with the index of the first key, the keys as words, and the word to xor them with: once
    /// for all keys if encoding is a xor, otherwise once for each piece of encoded keys.
    #[inline]
    pub(crate) fn each_words(keys: &[K], mut take: impl FnMut(usize, &[K::Word], K::Word)) {
        if let Some(flip) = K::FLIP {
            return take(0, key_words(keys), flip);
        }
        let mut words = [K::Word::default(); PIECE];
        for (piece, keys) in keys.chunks(PIECE).enumerate() {
            for (word, key) in words.iter_mut().zip(keys) {
                *word = key.encode();
            }
            take(piece * PIECE, &words[..keys.len()], K::Word::default());
        }
    }

    /// Looks up the values of many keys on this thread, and returns the number of keys found.
    ///
    /// `values` must have at least `keys.len()` elements, `present` at least one bit per key. The value of an
    /// absent key is the default of its type.
    ///
    /// # Errors
    /// [`ReadError::Buffer`] if `values` or `present` is too short; otherwise as for a single look-up:
    /// [`ReadError::Format`] with [`crate::Verify::Touched`], and [`ReadError::MappingLost`].
    pub fn get_batch(&self, keys: &[K], values: &mut [V], present: &mut [u64]) -> Result<usize, ReadError> {
        let values = Self::check_length("values", keys.len(), values)?;
        let present = Self::check_bitmap(keys.len(), present)?;
        self.get_piece(keys, values, present)
    }

    fn get_piece(&self, keys: &[K], values: &mut [V], present: &mut [u64]) -> Result<usize, ReadError> {
        if let Some(verified) = self.index.verified() {
            return self
                .each_verified(&verified, keys, present, |i, hit| values[i] = V::from_bits(hit.value));
        }
        let Some(plan) = &self.plan else {
            values.fill(V::default());
            present.fill(0);
            return Ok(0);
        };
        if !self.searches.has_values() {
            return self.contains_piece(keys, present);
        }
        let values = value_bits(values);
        let mut found = 0;
        Self::each_words(keys, |first, words, flip| {
            let (values, present) = (&mut values[first..first + words.len()], &mut present[first / 64..]);
            found += self.searches.values(plan, words, flip, values, present);
        });
        self.index.check_mapping()?;
        Ok(found)
    }

    fn each_verified(
        &self,
        verified: &Verified<'_>,
        keys: &[K],
        present: &mut [u64],
        mut put: impl FnMut(usize, Hit<V::Bits>),
    ) -> Result<usize, ReadError> {
        let look_up = |at: usize| self.locate_verified(verified, keys[at].encode()).map(|_| ());
        self.index.foresee(keys.len(), look_up)?;
        present.fill(0);
        let mut found = 0;
        for (i, &key) in keys.iter().enumerate() {
            let hit = self.locate_verified(verified, key.encode())?;
            if let Some(word) = present.get_mut(i / 64) {
                *word |= u64::from(hit.found) << (i % 64);
            }
            found += usize::from(hit.found);
            put(i, hit);
        }
        Ok(found)
    }

    /// Checks which of many keys are present, on this thread, and returns the number of keys found.
    ///
    /// # Errors
    /// [`ReadError::Buffer`] if `present` is too short; otherwise as for a single look-up:
    /// [`ReadError::Format`] with [`crate::Verify::Touched`], and [`ReadError::MappingLost`].
    pub fn contains_batch(&self, keys: &[K], present: &mut [u64]) -> Result<usize, ReadError> {
        let present = Self::check_bitmap(keys.len(), present)?;
        self.contains_piece(keys, present)
    }

    fn contains_piece(&self, keys: &[K], present: &mut [u64]) -> Result<usize, ReadError> {
        if let Some(verified) = self.index.verified() {
            return self.each_verified(&verified, keys, present, |_, _| {});
        }
        let Some(plan) = &self.plan else {
            present.fill(0);
            return Ok(0);
        };
        let mut found = 0;
        Self::each_words(keys, |first, words, flip| {
            found += self.searches.presence(plan, words, flip, &mut present[first / 64..]);
        });
        self.index.check_mapping()?;
        Ok(found)
    }

    /// Looks up the ranks of many keys on this thread, and returns the number of keys found. The rank of an absent key
    /// is that of [`Typed::lower_bound`].
    ///
    /// # Errors
    /// [`ReadError::Buffer`] if `ranks` or `present` is too short; otherwise as for a single look-up:
    /// [`ReadError::Format`] with [`crate::Verify::Touched`], and [`ReadError::MappingLost`].
    pub fn rank_batch(&self, keys: &[K], ranks: &mut [u64], present: &mut [u64]) -> Result<usize, ReadError> {
        let ranks = Self::check_length("ranks", keys.len(), ranks)?;
        let present = Self::check_bitmap(keys.len(), present)?;
        present.fill(0);
        let mut found = 0;
        self.hits_of(keys, |at, hit| {
            ranks[at] = hit.rank;
            present[at / 64] |= u64::from(hit.found) << (at % 64);
            found += usize::from(hit.found);
        })?;
        Ok(found)
    }

    /// Brings the tuples at many ranks of a remote file.
    #[inline]
    pub(crate) fn foresee_ranks(&self, ranks: &[u64]) -> Result<(), ReadError> {
        self.index.foresee(ranks.len(), |at| self.select(ranks[at]).map(|_| ()))
    }

    /// Reads the tuples at many ranks. Their cache misses overlap. Nothing is written for a rank past the end.
    ///
    /// # Errors
    /// [`ReadError::Buffer`] if `keys` or `values` is shorter than `ranks`; otherwise those of [`Typed::select`].
    pub fn select_batch(&self, ranks: &[u64], keys: &mut [K], values: &mut [V]) -> Result<(), ReadError> {
        let keys = Self::check_length("keys", ranks.len(), keys)?;
        let values = Self::check_length("values", ranks.len(), values)?;
        self.foresee_ranks(ranks)?;
        for (piece, ranks) in ranks.chunks(GROUP).enumerate() {
            ranks.iter().filter(|&&rank| rank < self.len()).for_each(|&rank| self.prefetch(rank));
            for (at, &rank) in (piece * GROUP..).zip(ranks) {
                if let Some(tuple) = self.select(rank)? {
                    (keys[at], values[at]) = tuple;
                }
            }
        }
        Ok(())
    }

    /// Runs [`Typed::lower_bound`] for many keys, on this thread.
    ///
    /// # Errors
    /// [`ReadError::Buffer`] if `ranks` is too short; otherwise as for a single look-up:
    /// [`ReadError::Format`] with [`crate::Verify::Touched`], and [`ReadError::MappingLost`].
    pub fn lower_bound_batch(&self, keys: &[K], ranks: &mut [u64]) -> Result<(), ReadError> {
        let ranks = Self::check_length("ranks", keys.len(), ranks)?;
        self.lower_bound_piece(keys, ranks)
    }

    fn lower_bound_piece(&self, keys: &[K], ranks: &mut [u64]) -> Result<(), ReadError> {
        if let Some(verified) = self.index.verified() {
            return self.each_verified(&verified, keys, &mut [], |i, hit| ranks[i] = hit.rank).map(|_| ());
        }
        let Some(plan) = &self.plan else {
            ranks.fill(0);
            return Ok(());
        };
        Self::each_words(keys, |first, words, flip| {
            self.searches.ranks(plan, words, flip, &mut ranks[first..first + words.len()]);
        });
        self.index.check_mapping()
    }

    /// Runs [`Typed::get_batch`] on all threads of the current rayon pool.
    ///
    /// # Errors
    /// Those of [`Typed::get_batch`].
    pub fn par_get_batch(
        &self,
        keys: &[K],
        values: &mut [V],
        present: &mut [u64],
    ) -> Result<usize, ReadError> {
        let values = Self::check_length("values", keys.len(), values)?;
        let present = Self::check_bitmap(keys.len(), present)?;
        let task = pool::task_queries(None, keys.len(), TASK);
        let tasks = keys.chunks(task).zip(values.chunks_mut(task)).zip(present.chunks_mut(task / 64));
        pool::sum(None, tasks, |((keys, values), present)| self.get_piece(keys, values, present))
    }

    /// Runs [`Typed::contains_batch`] on all threads of the current rayon pool.
    ///
    /// # Errors
    /// Those of [`Typed::contains_batch`].
    pub fn par_contains_batch(&self, keys: &[K], present: &mut [u64]) -> Result<usize, ReadError> {
        let present = Self::check_bitmap(keys.len(), present)?;
        let task = pool::task_queries(None, keys.len(), TASK);
        let tasks = keys.chunks(task).zip(present.chunks_mut(task / 64));
        pool::sum(None, tasks, |(keys, present)| self.contains_piece(keys, present))
    }

    /// Runs [`Typed::lower_bound_batch`] on all threads of the current rayon pool.
    ///
    /// # Errors
    /// Those of [`Typed::lower_bound_batch`].
    pub fn par_lower_bound_batch(&self, keys: &[K], ranks: &mut [u64]) -> Result<(), ReadError> {
        let ranks = Self::check_length("ranks", keys.len(), ranks)?;
        let task = pool::task_queries(None, keys.len(), TASK);
        let tasks = keys.chunks(task).zip(ranks.chunks_mut(task));
        pool::sum(None, tasks, |(keys, ranks)| self.lower_bound_piece(keys, ranks).map(|()| 0)).map(|_| ())
    }
}

impl<K: Key, V: Value> fmt::Debug for Typed<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Typed<{}, {}>({:?})", K::TYPE, V::TYPE, self.index)
    }
}
