//! Look-ups in files of intervals: which interval holds a key.
//!
//! An interval begins at a key of the file, and the first field of its value is the last key in it. Intervals do not
//! overlap, so the only one that can hold a key is the last one that begins at or before it: a floor ([`crate::Near`]),
//! of which the end is then compared. Values of 4 and 8 bytes are in the line that the floor was read from; others are
//! in a column, where the loads of many queries overlap.

use crate::column::{Column, SHORT_BYTES};
use crate::error::{Error, ReadError};
use crate::index::Index;
use crate::near::{Near, Tuples};
use crate::typed::Typed;
use crate::words::each_bit;
use pleach_format::interval::Ends;
use pleach_format::key::{Bits, Word};
use pleach_format::{FormatError, Key, Value, ValueType};
use std::fmt;

/// Keys whose floors are looked up at a time; a multiple of 64.
const CHUNK: usize = 4096;
/// Values whose cache misses overlap: a bit for each in a word.
const AHEAD: usize = 64;

/// The intervals of an open file.
#[derive(Clone, Copy)]
pub struct Intervals<'a, K: Key> {
    ends: Ends,
    values: Values<'a, K>,
}

/// Where values are.
#[derive(Clone, Copy)]
enum Values<'a, K: Key> {
    Four(Typed<'a, K, u32>),
    Eight(Typed<'a, K, u64>),
    Column(Typed<'a, K, ()>, Column<'a>),
}

impl Index {
    /// Returns where the intervals of the file end; `None` if its keys are keys.
    ///
    /// # Errors
    /// [`ReadError`] if META cannot be read.
    pub fn ends(&self) -> Result<Option<Ends>, ReadError> {
        if let Some(&ends) = self.known_ends().get() {
            return Ok(ends);
        }
        let meta = self.meta()?;
        let ends = Ends::of(self.key_type(), self.value_type(), &meta.value_logical, &meta.interval);
        Ok(*self.known_ends().get_or_init(|| ends))
    }

    /// Returns the intervals of the file; `None` if its keys are keys.
    ///
    /// ```
    /// use pleach::{Builder, Map};
    /// use pleach::build::Overlap;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("days.pleach");
    /// // From 10 to 12 and from 1 to 5; each with a value.
    /// Builder::new().intervals(Overlap::Error).build(&path, [(10u32, (12u32, 7u32)), (1, (5, 8))])?;
    /// let map: Map<u32, (u32, u32)> = Map::open(&path)?;
    /// assert_eq!(map.interval(4)?, Some((1, (5, 8))));
    /// assert_eq!(map.interval(6)?, None);
    /// assert_eq!(map.index().intervals::<u32>()?.expect("intervals").find(12)?, Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error`] if keys are of another type, or if META cannot be read.
    pub fn intervals<K: Key>(&self) -> Result<Option<Intervals<'_, K>>, Error> {
        let typed = self.typed::<K, ()>().map_err(|error| Error::from(error).at(self.path()))?;
        typed.intervals().map_err(|error| Error::from(error).at(self.path()))
    }
}

impl<'a, K: Key, V: Value> Typed<'a, K, V> {
    /// Looks up the values of the intervals that hold many keys, on this thread, as [`Typed::get_batch`] does those of
    /// keys. Returns the number of keys that an interval holds, which is 0 in a file without intervals.
    ///
    /// The values are whole ones, whose first field is the last key of the interval. Those in a column are left out: of
    /// `Typed<K, ()>` there is only `present`. O(levels) lines for each key; cache misses overlap.
    ///
    /// ```
    /// use pleach::Builder;
    /// use pleach::build::Overlap;
    /// use pleach::Index;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("days.pleach");
    /// Builder::new().intervals(Overlap::Error).build(&path, [(10u32, (12u32, 7u32)), (1, (5, 8))])?;
    /// let index = Index::open(&path)?;
    /// let (mut values, mut present) = ([0; 3], [0; 1]);
    /// // Of eight bytes: the last key and the number.
    /// assert_eq!(index.typed::<u32, u64>()?.interval_batch(&[4, 6, 12], &mut values, &mut present)?, 2);
    /// assert_eq!((values, present), ([5 | 8 << 32, 0, 12 | 7 << 32], [0b101]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Typed::get_batch`], and [`ReadError`] if META cannot be read.
    pub fn interval_batch(
        &self,
        keys: &[K],
        values: &mut [V],
        present: &mut [u64],
    ) -> Result<usize, ReadError> {
        let values = Self::check_length("values", keys.len(), values)?;
        let present = Self::check_bitmap(keys.len(), present)?;
        let Some(intervals) = self.intervals()? else {
            values.fill(V::default());
            present.fill(0);
            return Ok(0);
        };
        if V::Bits::BYTES == 0 || !self.has_values() {
            values.fill(V::default());
            present.fill(0);
            return intervals.each_batch(keys, |at, _, _| present[at / 64] |= 1 << (at % 64));
        }
        let mut count = 0;
        // Values are compared while they are in a near cache.
        let chunks = keys.chunks(CHUNK).zip(values.chunks_mut(CHUNK)).zip(present.chunks_mut(CHUNK / 64));
        for ((keys, values), present) in chunks {
            let to = Tuples { values: &mut *values, present: &mut *present, ..Tuples::default() };
            self.near_batch(Near::Floor, keys, to)?;
            for ((keys, values), present) in keys.chunks(64).zip(values.chunks_mut(64)).zip(present) {
                *present &= intervals.reaching(keys, values);
                count += present.count_ones() as usize;
                each_bit(&[!*present & u64::MAX >> (64 - keys.len())], |at| values[at] = V::default());
            }
        }
        Ok(count)
    }

    /// Returns the intervals of the file; `None` if its keys are keys.
    ///
    /// # Errors
    /// [`ReadError`] if META cannot be read.
    pub fn intervals(&self) -> Result<Option<Intervals<'a, K>>, ReadError> {
        let index = self.index();
        let Some(ends) = index.ends()? else { return Ok(None) };
        let values = match index.value_type() {
            ValueType::U32 => Values::Four(Typed::new(index)),
            ValueType::U64 => Values::Eight(Typed::new(index)),
            ValueType::None
            | ValueType::I32
            | ValueType::I64
            | ValueType::F32
            | ValueType::F64
            | ValueType::Fixed(_)
            | ValueType::Bytes
            | ValueType::Utf8 => {
                let rule = "values that are byte strings must be in a column".into();
                let missing = FormatError::Corrupt { what: "VALS", offset: 0, rule, found: 0 };
                Values::Column(Typed::new(index), index.value_column().ok_or(missing)?)
            }
        };
        Ok(Some(Intervals { ends, values }))
    }
}

impl<K: Key> Intervals<'_, K> {
    /// Finds the intervals that hold many keys, on this thread, and returns the number of keys that are in one.
    /// The rank of an interval is that of its tuple; it is [`u64::MAX`] for a key that no interval holds.
    /// O(levels) lines for each key; cache misses overlap.
    ///
    /// # Errors
    /// [`ReadError::Buffer`] if `ranks` is too short; otherwise as for a single look-up:
    /// [`ReadError::Format`] with [`crate::Verify::Touched`], and [`ReadError::MappingLost`].
    pub fn find_batch(&self, keys: &[K], ranks: &mut [u64]) -> Result<usize, ReadError> {
        let (needed, found) = (keys.len(), ranks.len());
        let ranks = ranks.get_mut(..needed).ok_or(ReadError::Buffer { name: "ranks", needed, found })?;
        if let [key] = keys {
            ranks[0] = self.find(*key)?.unwrap_or(u64::MAX);
            return Ok(usize::from(ranks[0] != u64::MAX));
        }
        match &self.values {
            Values::Four(typed) => self.find_in_lines(typed, keys, ranks),
            Values::Eight(typed) => self.find_in_lines(typed, keys, ranks),
            Values::Column(..) => {
                ranks.fill(u64::MAX);
                self.each_batch(keys, |at, rank, _| ranks[at] = rank)
            }
        }
    }

    fn find_in_lines<V: Value>(
        &self,
        typed: &Typed<'_, K, V>,
        keys: &[K],
        ranks: &mut [u64],
    ) -> Result<usize, ReadError> {
        self.each_in_lines(typed, keys, |first, held, found, _| {
            let ranks = &mut ranks[first..first + found.len()];
            ranks.copy_from_slice(found);
            each_bit(&[!held & u64::MAX >> (64 - found.len())], |at| ranks[at] = u64::MAX);
        })
    }

    /// Passes the number of each key that an interval holds to `take`, with the rank and the value of the interval: the
    /// bytes of the record, which begins with the last key. Keys are passed in order. Returns their number.
    ///
    /// # Errors
    /// Those of [`Intervals::find_batch`].
    pub fn each_batch(
        &self,
        keys: &[K],
        mut take: impl FnMut(usize, u64, &[u8]),
    ) -> Result<usize, ReadError> {
        if let [key] = keys {
            return Ok(self.one(*key, |rank, value| take(0, rank, value))?.map_or(0, |()| 1));
        }
        match &self.values {
            Values::Four(typed) => self.each_in_lines(typed, keys, |first, held, ranks, values| {
                each_bit(&[held], |at| take(first + at, ranks[at], &values[at].to_le_bytes()));
            }),
            Values::Eight(typed) => self.each_in_lines(typed, keys, |first, held, ranks, values| {
                each_bit(&[held], |at| take(first + at, ranks[at], &values[at].to_le_bytes()));
            }),
            Values::Column(typed, column) => {
                let mut ranks = Buffer::new(keys.len().min(CHUNK));
                let mut count = 0;
                for (chunk, keys) in keys.chunks(CHUNK).enumerate() {
                    let ranks = ranks.first(keys.len());
                    typed.near_batch(
                        Near::Floor,
                        keys,
                        Tuples { ranks: &mut *ranks, ..Tuples::default() },
                    )?;
                    let take = |at: usize, rank: u64, value: &[u8]| take(chunk * CHUNK + at, rank, value);
                    count += self.each_in_column(column, keys, ranks, take)?;
                }
                Ok(count)
            }
        }
    }

    /// Passes the intervals that hold keys, of the ranks of the floors of these, whose values are in a column.
    fn each_in_column(
        &self,
        column: &Column<'_>,
        keys: &[K],
        ranks: &[u64],
        mut take: impl FnMut(usize, u64, &[u8]),
    ) -> Result<usize, ReadError> {
        let mut count = 0;
        let Some(bytes) = column.short_bytes() else {
            values(column, ranks, |at: usize, rank: u64, value: &[u8]| {
                // The end of an interval is read from the copy that is passed on.
                if rank != u64::MAX && self.ends.word_of::<K>(value) >= keys[at].encode().to_u128() {
                    take(at, rank, value);
                    count += 1;
                }
            })?;
            return Ok(count);
        };
        let mut copies = [[0; SHORT_BYTES]; AHEAD];
        for (group, (keys, ranks)) in keys.chunks(AHEAD).zip(ranks.chunks(AHEAD)).enumerate() {
            if column.is_coded() {
                ranks.iter().for_each(|&rank| column.prefetch_offset(rank));
            }
            ranks.iter().for_each(|&rank| column.prefetch(rank));
            let mut held = 0;
            for (at, ((key, &rank), copy)) in keys.iter().zip(ranks).zip(&mut copies).enumerate() {
                *copy = column.short(rank);
                let ends = self.ends.word_of::<K>(&copy[..]) >= key.encode().to_u128();
                held |= u64::from(ends & (rank != u64::MAX)) << at;
            }
            count += held.count_ones() as usize;
            each_bit(&[held], |at| take(group * AHEAD + at, ranks[at], &copies[at][..bytes]));
        }
        column.check_mapping()?;
        Ok(count)
    }

    /// Passes the number of the first key of each group of up to 64 keys, a bitmap of those that an interval holds, and
    /// the ranks and the values of their floors. Returns the number of keys that are in an interval. Values are in the
    /// tuple lines.
    #[inline]
    fn each_in_lines<V: Value>(
        &self,
        typed: &Typed<'_, K, V>,
        keys: &[K],
        mut take: impl FnMut(usize, u64, &[u64], &[V]),
    ) -> Result<usize, ReadError> {
        let room = keys.len().min(CHUNK);
        let (mut ranks, mut values) = (Buffer::new(room), Buffer::new(room));
        let mut present = [0; CHUNK / 64];
        let mut count = 0;
        for (chunk, keys) in keys.chunks(CHUNK).enumerate() {
            let values = values.first(keys.len());
            let ranks = ranks.first(keys.len());
            let to = Tuples {
                ranks: &mut *ranks,
                values: &mut *values,
                present: &mut present,
                ..Tuples::default()
            };
            typed.near_batch(Near::Floor, keys, to)?;
            let groups = keys.chunks(64).zip(ranks.chunks(64)).zip(values.chunks(64));
            for (group, ((keys, ranks), values)) in groups.enumerate() {
                let held = self.reaching(keys, values) & present[group];
                count += held.count_ones() as usize;
                take(chunk * CHUNK + group * 64, held, ranks, values);
            }
        }
        Ok(count)
    }

    /// Returns a bit for each of up to 64 keys: whether an interval with this value does not end before the key. Which
    /// of them do is hard to predict, and so no branch.
    #[inline]
    fn reaching<V: Value>(&self, keys: &[K], values: &[V]) -> u64 {
        let mut reach = [0; 64];
        for ((to, key), value) in reach.iter_mut().zip(keys).zip(values) {
            let mut bytes = [0; 8];
            value.to_bits().write(&mut bytes);
            *to = u8::from(self.ends.word_of::<K>(&bytes) >= key.encode().to_u128());
        }
        bits_of(&reach)
    }

    /// Keeps the ranks of intervals that hold their keys, of the ranks of the floors of many keys; all others become
    /// [`u64::MAX`]. Returns the number of those that are kept. Who looks floors up elsewhere, on a GPU say, needs no
    /// other search. O(1) loads of a value for each key; cache misses overlap.
    ///
    /// # Errors
    /// Those of [`Intervals::find_batch`]; `floors` must be as long as `keys`.
    pub fn hold_batch(&self, keys: &[K], floors: &mut [u64]) -> Result<usize, ReadError> {
        let (needed, found) = (keys.len(), floors.len());
        let floors = floors.get_mut(..needed).ok_or(ReadError::Buffer { name: "floors", needed, found })?;
        let mut count = 0;
        let mut held = [false; AHEAD];
        match &self.values {
            Values::Four(typed) => typed.foresee_ranks(floors)?,
            Values::Eight(typed) => typed.foresee_ranks(floors)?,
            Values::Column(_, column) => column.foresee(floors)?,
        }
        for (keys, floors) in keys.chunks(AHEAD).zip(floors.chunks_mut(AHEAD)) {
            held.fill(false);
            let pass = |at: usize, rank: u64, value: &[u8]| {
                held[at] = rank != u64::MAX && self.ends.word_of::<K>(value) >= keys[at].encode().to_u128();
            };
            match &self.values {
                Values::Four(typed) => selected(typed, floors, |value| value.to_le_bytes(), pass)?,
                Values::Eight(typed) => selected(typed, floors, |value| value.to_le_bytes(), pass)?,
                Values::Column(_, column) => {
                    self.each_in_column(column, keys, floors, |at, _, _| held[at] = true)?;
                }
            }
            for (floor, &is_held) in floors.iter_mut().zip(&held) {
                *floor = if is_held { *floor } else { u64::MAX };
                count += usize::from(is_held);
            }
        }
        Ok(count)
    }

    /// Returns the rank of the interval that holds a key; `None` if none does.
    ///
    /// # Errors
    /// Those of [`Intervals::find_batch`].
    pub fn find(&self, key: K) -> Result<Option<u64>, ReadError> {
        self.one(key, |rank, _| rank)
    }

    /// Passes the interval that holds a key, its rank and its value, and returns what comes back.
    #[inline]
    fn one<R>(&self, key: K, take: impl FnOnce(u64, &[u8]) -> R) -> Result<Option<R>, ReadError> {
        let reaches = |value: &[u8]| self.ends.word_of::<K>(value) >= key.encode().to_u128();
        match &self.values {
            Values::Four(typed) => {
                let found = typed.near_one(Near::Floor, key)?;
                let found = found.map(|(rank, _, value)| (rank, value.to_le_bytes()));
                Ok(found.filter(|(_, value)| reaches(value)).map(|(rank, value)| take(rank, &value)))
            }
            Values::Eight(typed) => {
                let found = typed.near_one(Near::Floor, key)?;
                let found = found.map(|(rank, _, value)| (rank, value.to_le_bytes()));
                Ok(found.filter(|(_, value)| reaches(value)).map(|(rank, value)| take(rank, &value)))
            }
            Values::Column(typed, column) => {
                let rank = typed.upper_bound(key)?.wrapping_sub(1);
                if let Some(bytes) = column.short_bytes() {
                    let copy = column.short(rank);
                    column.check_mapping()?;
                    let is_held = rank < column.len() && reaches(&copy);
                    return Ok(is_held.then(|| take(rank, &copy[..bytes])));
                }
                let value = column.get(rank)?.filter(|value| reaches(value));
                Ok(value.map(|value| take(rank, &value)))
            }
        }
    }
}

/// Passes copies of the values at ranks, empty past the end. Their cache misses overlap.
fn values(
    column: &Column<'_>,
    ranks: &[u64],
    mut pass: impl FnMut(usize, u64, &[u8]),
) -> Result<(), ReadError> {
    let mut copy = Vec::new();
    column.foresee(ranks)?;
    for (part, ranks) in ranks.chunks(AHEAD).enumerate() {
        let there = || ranks.iter().filter(|&&rank| rank < column.len());
        if column.is_coded() {
            there().for_each(|&rank| column.prefetch_offset(rank));
        }
        there().for_each(|&rank| column.prefetch(rank));
        for (at, &rank) in (part * AHEAD..).zip(ranks) {
            copy.clear();
            copy.extend_from_slice(column.get_in_place(rank)?.unwrap_or_default());
            pass(at, rank, &copy);
        }
    }
    column.check_mapping()
}

/// Passes the values at ranks, as bytes; those past the end are 0.
fn selected<K: Key, V: Value, const BYTES: usize>(
    typed: &Typed<'_, K, V>,
    ranks: &[u64],
    bytes: impl Fn(V) -> [u8; BYTES],
    mut pass: impl FnMut(usize, u64, &[u8]),
) -> Result<(), ReadError> {
    let (mut keys, mut values) = ([K::default(); AHEAD], [V::default(); AHEAD]);
    typed.select_batch(ranks, &mut keys[..ranks.len()], &mut values[..ranks.len()])?;
    for (at, (&rank, &value)) in ranks.iter().zip(&values).enumerate() {
        pass(at, rank, &bytes(value));
    }
    Ok(())
}

/// Returns a bit for each byte, which is 0 or 1.
#[inline]
fn bits_of(bytes: &[u8; 64]) -> u64 {
    // The product has a bit of each byte, in order, in its highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (words, _) = bytes.as_chunks::<8>();
    let word = |&word: &[u8; 8]| u64::from_le_bytes(word).wrapping_mul(GATHER) >> 56;
    words.iter().rev().fold(0, |bits, bytes| bits << 8 | word(bytes))
}

/// Room for a number of elements; a few need no memory.
enum Buffer<T> {
    Few([T; AHEAD]),
    Many(Vec<T>),
}

impl<T: Copy + Default> Buffer<T> {
    fn new(count: usize) -> Self {
        if count <= AHEAD { Self::Few([T::default(); AHEAD]) } else { Self::Many(vec![T::default(); count]) }
    }

    fn first(&mut self, count: usize) -> &mut [T] {
        match self {
            Self::Few(few) => &mut few[..count],
            Self::Many(many) => &mut many[..count],
        }
    }
}

impl<K: Key> fmt::Debug for Intervals<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Intervals<{}>({:?})", K::TYPE, self.ends)
    }
}
