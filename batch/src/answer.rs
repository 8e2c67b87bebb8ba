//! The batches themselves: pieces of keys, tasks of pieces, answers into the caller's buffers.

use crate::convert::{FromNumbers, PIECE, Piece};
use crate::error::{BatchError, Result};
use crate::keys::{Keys, Part, Texts};
use crate::numbers::Numbers;
use crate::pool::Pool;
use crate::room::{Room, Shared};
use crate::table::{Table, any_key, any_value};
use pleach::{Strings, Typed, Value, ValueType};

#[cfg(feature = "set")]
use crate::set::files::Lost;

/// Words of a piece's bitmap.
pub(crate) const WORDS: usize = PIECE / 64;

/// Which end of the tuples with a key is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The rank of the first tuple whose key is at least the key.
    Lower,
    /// The rank of the first tuple whose key is above the key.
    Upper,
}

/// The caller's buffer for values; as long as the keys, or longer. An absent key gets 0.
#[derive(Debug)]
pub enum Values<'a> {
    /// Values are not wanted.
    None,
    /// For `u32` values.
    U32(&'a mut [u32]),
    /// For `u64` values.
    U64(&'a mut [u64]),
    /// For `i32` values.
    I32(&'a mut [i32]),
    /// For `i64` values.
    I64(&'a mut [i64]),
    /// For `f32` values.
    F32(&'a mut [f32]),
    /// For `f64` values.
    F64(&'a mut [f64]),
    /// For values of any type of number, in memory that other threads may use meanwhile.
    Shared(Shared<'a>),
}

impl Values<'_> {
    /// Returns the type of the values; `None` if they are not wanted.
    fn value_type(&self) -> Option<ValueType> {
        Some(match self {
            Self::None => return None,
            Self::U32(_) => ValueType::U32,
            Self::U64(_) => ValueType::U64,
            Self::I32(_) => ValueType::I32,
            Self::I64(_) => ValueType::I64,
            Self::F32(_) => ValueType::F32,
            Self::F64(_) => ValueType::F64,
            Self::Shared(shared) => shared.value_type(),
        })
    }
}

/// The caller's buffer for which keys were found; as long as the keys, or longer.
#[derive(Debug)]
pub enum Found<'a> {
    /// It is not wanted.
    None,
    /// A bit for each key, least significant first, as in Arrow. Bits of the last byte past the keys become 0.
    Bits(&'a mut [u8]),
    /// A bool for each key.
    Bools(&'a mut [bool]),
    /// A byte for each key: 1 if it was found, else 0.
    Bytes(&'a mut [u8]),
}

impl<'a> Found<'a> {
    fn checked(&mut self, keys: usize) -> Result<Found<'_>> {
        let short = |needed, found| BatchError::Short { name: "found", needed, found };
        Ok(match self {
            Self::None => Found::None,
            Self::Bits(bits) => {
                let (needed, found) = (keys.div_ceil(8), bits.len());
                Found::Bits(bits.get_mut(..needed).ok_or(short(needed, found))?)
            }
            Self::Bools(bools) => {
                let found = bools.len();
                Found::Bools(bools.get_mut(..keys).ok_or(short(keys, found))?)
            }
            Self::Bytes(bytes) => {
                let found = bytes.len();
                Found::Bytes(bytes.get_mut(..keys).ok_or(short(keys, found))?)
            }
        })
    }

    /// Cuts off the part of the next `keys` keys, a multiple of 8 or all.
    fn take(&mut self, keys: usize) -> Found<'a> {
        match self {
            Self::None => Found::None,
            Self::Bits(bits) => {
                let (part, rest) = std::mem::take(bits).split_at_mut(keys.div_ceil(8));
                *bits = rest;
                Found::Bits(part)
            }
            Self::Bools(bools) => {
                let (part, rest) = std::mem::take(bools).split_at_mut(keys);
                *bools = rest;
                Found::Bools(part)
            }
            Self::Bytes(bytes) => {
                let (part, rest) = std::mem::take(bytes).split_at_mut(keys);
                *bytes = rest;
                Found::Bytes(part)
            }
        }
    }

    /// Writes the bits of a piece of `keys` keys, the first of them number `first`, a multiple of 8.
    pub(crate) fn put(&mut self, first: usize, keys: usize, present: &[u64; WORDS]) {
        match self {
            Self::None => {}
            Self::Bits(bits) => {
                let bytes = present.iter().flat_map(|word| word.to_le_bytes());
                bits[first / 8..]
                    .iter_mut()
                    .zip(bytes)
                    .take(keys.div_ceil(8))
                    .for_each(|(to, byte)| *to = byte);
            }
            Self::Bools(bools) => {
                for (bools, word) in bools[first..first + keys].chunks_mut(64).zip(present) {
                    bools.iter_mut().enumerate().for_each(|(bit, bool)| *bool = word >> bit & 1 != 0);
                }
            }
            Self::Bytes(bytes) => {
                for (bytes, word) in bytes[first..first + keys].chunks_mut(64).zip(present) {
                    bytes.iter_mut().enumerate().for_each(|(bit, byte)| *byte = (word >> bit & 1) as u8);
                }
            }
        }
    }
}

/// Part of a batch: the number of its first key, and its buffers.
pub(crate) struct Task<'a, T> {
    pub(crate) first: usize,
    pub(crate) values: Room<'a, T>,
    pub(crate) found: Found<'a>,
}

/// Cuts buffers for as many keys as there are values into tasks.
pub(crate) fn tasks<'a, T: Value>(
    values: Room<'a, T>,
    mut found: Found<'a>,
    pool: &Pool<'_>,
) -> impl Iterator<Item = Task<'a, T>> + use<'a, T> {
    let each = pool.task_keys(values.len());
    values.parts(each).enumerate().map(move |(number, values)| {
        let found = found.take(values.len());
        Task { first: number * each, values, found }
    })
}

/// Cuts a batch without values into tasks: number of the first key, number of keys.
fn spans<'a>(
    keys: usize,
    mut found: Found<'a>,
    pool: &Pool<'_>,
) -> impl Iterator<Item = (usize, usize, Found<'a>)> + use<'a> {
    let each = pool.task_keys(keys);
    (0..keys).step_by(each).map(move |first| {
        let count = each.min(keys - first);
        (first, count, found.take(count))
    })
}

/// Clears the bits of misses.
fn without(present: &mut [u64; WORDS], misses: &[u64; WORDS]) -> usize {
    present.iter_mut().zip(misses).for_each(|(present, misses)| *present &= !misses);
    ones(present)
}

fn ones(present: &[u64; WORDS]) -> usize {
    present.iter().map(|word| word.count_ones() as usize).sum()
}

/// Calls `each` with the first number and the count of each piece of a task.
pub(crate) fn pieces(count: usize, mut each: impl FnMut(usize, usize) -> Result<usize>) -> Result<usize> {
    (0..count).step_by(PIECE).try_fold(0, |sum, at| Ok(sum + each(at, PIECE.min(count - at))?))
}

/// Which keys of a piece of texts are null.
fn nulls(part: &Part<'_>) -> [u64; WORDS] {
    let mut nulls = [0; WORDS];
    for at in 0..part.count {
        nulls[at / 64] |= u64::from(part.texts.is_null(part.first + at)) << (at % 64);
    }
    nulls
}

impl Table {
    /// Looks up the values of many keys, and returns the number of keys found.
    ///
    /// # Errors
    /// [`BatchError::Keys`] if these are no keys of the file; [`BatchError::Values`] and [`BatchError::Short`] if a
    /// buffer does not fit; [`BatchError::Pleach`] if the file is damaged or was truncated.
    pub fn get(
        &self,
        keys: &Keys<'_>,
        values: &mut Values<'_>,
        found: &mut Found<'_>,
        pool: &Pool<'_>,
    ) -> Result<usize> {
        self.check(keys)?;
        let found = found.checked(keys.len())?;
        let held = self.value_type();
        if let Some(given) = values.value_type().filter(|&given| given != held) {
            return Err(BatchError::Values { given: given.to_string(), held: held.to_string() });
        }
        if self.is_interval() && !self.is_set() {
            return self.get_held(keys, values, found, pool);
        }
        match values {
            Values::None => self.presence(keys, found, pool),
            Values::U32(values) => self.values_of(keys, Room::Slice(values), found, pool),
            Values::U64(values) => self.values_of(keys, Room::Slice(values), found, pool),
            Values::I32(values) => self.values_of(keys, Room::Slice(values), found, pool),
            Values::I64(values) => self.values_of(keys, Room::Slice(values), found, pool),
            Values::F32(values) => self.values_of(keys, Room::Slice(values), found, pool),
            Values::F64(values) => self.values_of(keys, Room::Slice(values), found, pool),
            Values::Shared(shared) => any_value!(
                held,
                V => self.values_of::<V>(keys, shared.room(), found, pool),
                else self.presence(keys, found, pool)
            ),
        }
    }

    /// Looks up values into a slice of the type of the file's values, which the caller chose.
    #[cfg(any(feature = "arrow", feature = "set"))]
    pub(crate) fn get_slice<V: Value>(
        &self,
        keys: &Keys<'_>,
        values: &mut [V],
        found: &mut Found<'_>,
        pool: &Pool<'_>,
    ) -> Result<usize> {
        self.check(keys)?;
        let found = found.checked(keys.len())?;
        if self.is_interval() && !self.is_set() {
            let mut ranks = vec![0; keys.len()];
            let count = self.holding(keys, &mut ranks, found, pool)?;
            return self.fill_at(&ranks, Room::Slice(values)).map(|()| count);
        }
        self.values_of(keys, Room::Slice(values), found, pool)
    }

    /// Checks which of many keys are in the file, and returns their number.
    ///
    /// # Errors
    /// Those of [`Table::get`].
    pub fn contains(&self, keys: &Keys<'_>, found: &mut Found<'_>, pool: &Pool<'_>) -> Result<usize> {
        self.get(keys, &mut Values::None, found, pool)
    }

    /// Looks up the ranks of many keys, and returns the number of keys found. The rank of an absent key is that of
    /// its [`Bound::Lower`], and that of a null is 0. In a file of intervals these are the ranks of the intervals that
    /// hold the keys, and [`u64::MAX`] for others.
    ///
    /// # Errors
    /// Those of [`Table::get`].
    pub fn rank(
        &self,
        keys: &Keys<'_>,
        ranks: &mut [u64],
        found: &mut Found<'_>,
        pool: &Pool<'_>,
    ) -> Result<usize> {
        self.check(keys)?;
        let found = found.checked(keys.len())?;
        let ranks = short("ranks", ranks, keys.len())?;
        #[cfg(feature = "set")]
        if let Some(files) = self.files() {
            return self.ranks_in_files(files, keys, (ranks, found), Lost::Refused, pool);
        }
        if self.is_interval() {
            return self.holding(keys, ranks, found, pool);
        }
        let work = |mut task: Task<'_, u64>| match keys {
            Keys::Numbers(numbers) => any_key!(
                self.key_type(),
                K => self.rank_numbers(&self.typed::<K, ()>()?, numbers, &mut task),
                else Ok(0)
            ),
            Keys::Texts(texts) => self.rank_texts(&self.strings::<()>()?, *texts, &mut task),
        };
        pool.sum(tasks(Room::Slice(ranks), found, pool), work)
    }

    /// Looks up the ranks of the keys that are found, and returns their number. The rank of any other key is
    /// [`u64::MAX`]. A set that answers without files that cannot be opened finds no key in them, as [`Table::get`].
    ///
    /// # Errors
    /// Those of [`Table::get`].
    pub fn found_ranks(
        &self,
        keys: &Keys<'_>,
        ranks: &mut [u64],
        found: &mut Found<'_>,
        pool: &Pool<'_>,
    ) -> Result<usize> {
        let mut bits = vec![0u8; keys.len().div_ceil(8)];
        let count = self.ranks_leniently(keys, ranks, &mut Found::Bits(&mut bits), pool)?;
        let mut found = found.checked(keys.len())?;
        let mut present = [0; WORDS];
        for (piece, ranks) in ranks[..keys.len()].chunks_mut(PIECE).enumerate() {
            let own = &bits[piece * PIECE / 8..];
            for (word, bytes) in present.iter_mut().zip(own.chunks(8)) {
                let mut raw = [0; 8];
                raw[..bytes.len()].copy_from_slice(bytes);
                *word = u64::from_le_bytes(raw);
            }
            found.put(piece * PIECE, ranks.len(), &present);
            for (at, rank) in ranks.iter_mut().enumerate() {
                if present[at / 64] >> (at % 64) & 1 == 0 {
                    *rank = u64::MAX;
                }
            }
        }
        Ok(count)
    }

    fn ranks_leniently(
        &self,
        keys: &Keys<'_>,
        ranks: &mut [u64],
        found: &mut Found<'_>,
        pool: &Pool<'_>,
    ) -> Result<usize> {
        #[cfg(feature = "set")]
        if let Some(files) = self.files() {
            self.check(keys)?;
            let ranks = short("ranks", ranks, keys.len())?;
            let found = found.checked(keys.len())?;
            return self.ranks_in_files(files, keys, (ranks, found), Lost::NotFound, pool);
        }
        self.rank(keys, ranks, found, pool)
    }

    /// Searches for the place of many keys in the order of the file. The place of a null is 0.
    ///
    /// # Errors
    /// Those of [`Table::get`].
    pub fn bounds(&self, keys: &Keys<'_>, bound: Bound, ranks: &mut [u64], pool: &Pool<'_>) -> Result<()> {
        self.check(keys)?;
        let ranks = short("ranks", ranks, keys.len())?;
        #[cfg(feature = "set")]
        if let Some(files) = self.files() {
            return self.bounds_in_files(files, keys, bound, ranks, pool);
        }
        let work = |mut task: Task<'_, u64>| match keys {
            Keys::Numbers(numbers) => any_key!(
                self.key_type(),
                K => self.bound_numbers(&self.typed::<K, ()>()?, numbers, bound, &mut task),
                else Ok(0)
            ),
            Keys::Texts(texts) => self.bound_texts(*texts, bound, &mut task),
        };
        pool.sum(tasks(Room::Slice(ranks), Found::None, pool), work).map(|_| ())
    }

    pub(crate) fn typed<K: FromNumbers, V: Value>(&self) -> Result<Typed<'_, K, V>> {
        self.index().typed().map_err(|error| self.failed(error))
    }

    pub(crate) fn strings<V: Value>(&self) -> Result<Strings<'_, V>> {
        self.index().strings().map_err(|error| self.failed(error))
    }

    fn values_of<V: Value>(
        &self,
        keys: &Keys<'_>,
        values: Room<'_, V>,
        found: Found<'_>,
        pool: &Pool<'_>,
    ) -> Result<usize> {
        let (needed, has) = (keys.len(), values.len());
        let values = values.first(needed).ok_or(BatchError::Short { name: "values", needed, found: has })?;
        #[cfg(feature = "set")]
        if let Some(files) = self.files() {
            return self.values_in_files(files, keys, values, found, pool);
        }
        match keys {
            Keys::Numbers(numbers) => any_key!(
                self.key_type(),
                K => {
                    let typed = self.typed::<K, V>()?;
                    pool.sum(tasks(values, found, pool), |task| self.get_numbers(&typed, numbers, task))
                },
                else Ok(0)
            ),
            Keys::Texts(texts) => {
                let strings = self.strings::<V>()?;
                pool.sum(tasks(values, found, pool), |task| self.get_texts(&strings, *texts, task))
            }
        }
    }

    fn presence(&self, keys: &Keys<'_>, found: Found<'_>, pool: &Pool<'_>) -> Result<usize> {
        #[cfg(feature = "set")]
        if let Some(files) = self.files() {
            return self.presence_in_files(files, keys, found, pool);
        }
        match keys {
            Keys::Numbers(numbers) => any_key!(
                self.key_type(),
                K => {
                    let typed = self.typed::<K, ()>()?;
                    pool.sum(spans(keys.len(), found, pool), |span| self.contains_numbers(&typed, numbers, span))
                },
                else Ok(0)
            ),
            Keys::Texts(texts) => {
                let strings = self.strings::<()>()?;
                pool.sum(spans(keys.len(), found, pool), |span| self.contains_texts(&strings, *texts, span))
            }
        }
    }

    fn get_numbers<K: FromNumbers, V: Value>(
        &self,
        typed: &Typed<'_, K, V>,
        numbers: &Numbers<'_>,
        task: Task<'_, V>,
    ) -> Result<usize> {
        let Task { first, mut values, mut found } = task;
        let mut piece = Piece::<K>::new();
        let mut present = [0; WORDS];
        pieces(values.len(), |at, count| {
            K::convert(&mut piece, numbers, first + at, count);
            let hits = values.fill(at, count, |values| {
                let mut hits = typed.get_batch(&piece.keys[..count], values, &mut present)?;
                if piece.any {
                    hits = without_past(&mut present, &piece.misses, count);
                    (0..count).filter(|&at| piece.is_miss(at)).for_each(|at| values[at] = V::default());
                }
                Ok(hits)
            });
            let hits = hits.map_err(|error: pleach::ReadError| self.failed(error))?;
            found.put(at, count, &present);
            Ok(hits)
        })
    }

    fn contains_numbers<K: FromNumbers>(
        &self,
        typed: &Typed<'_, K, ()>,
        numbers: &Numbers<'_>,
        (first, count, mut found): (usize, usize, Found<'_>),
    ) -> Result<usize> {
        let mut piece = Piece::<K>::new();
        let mut present = [0; WORDS];
        pieces(count, |at, count| {
            K::convert(&mut piece, numbers, first + at, count);
            let mut hits = typed
                .contains_batch(&piece.keys[..count], &mut present)
                .map_err(|error| self.failed(error))?;
            if piece.any {
                hits = without_past(&mut present, &piece.misses, count);
            }
            found.put(at, count, &present);
            Ok(hits)
        })
    }

    fn rank_numbers<K: FromNumbers>(
        &self,
        typed: &Typed<'_, K, ()>,
        numbers: &Numbers<'_>,
        task: &mut Task<'_, u64>,
    ) -> Result<usize> {
        let (first, end) = (task.first, typed.len());
        let mut piece = Piece::<K>::new();
        let mut present = [0; WORDS];
        pieces(task.values.len(), |at, count| {
            K::convert(&mut piece, numbers, first + at, count);
            let hits = task.values.fill(at, count, |ranks| {
                let mut hits = typed.rank_batch(&piece.keys[..count], ranks, &mut present)?;
                if piece.any {
                    hits = without_past(&mut present, &piece.misses, count);
                    place(ranks, &piece, end, |within| numbers.is_null(first + at + within));
                }
                Ok(hits)
            });
            let hits = hits.map_err(|error: pleach::ReadError| self.failed(error))?;
            task.found.put(at, count, &present);
            Ok(hits)
        })
    }

    fn bound_numbers<K: FromNumbers>(
        &self,
        typed: &Typed<'_, K, ()>,
        numbers: &Numbers<'_>,
        bound: Bound,
        task: &mut Task<'_, u64>,
    ) -> Result<usize> {
        let (first, end) = (task.first, typed.len());
        let mut piece = Piece::<K>::new();
        pieces(task.values.len(), |at, count| {
            K::convert(&mut piece, numbers, first + at, count);
            if bound == Bound::Upper {
                piece.step();
            }
            let searched = task.values.fill(at, count, |ranks| {
                typed.lower_bound_batch(&piece.keys[..count], ranks)?;
                if piece.any {
                    place(ranks, &piece, end, |within| numbers.is_null(first + at + within));
                }
                Ok(0)
            });
            searched.map_err(|error: pleach::ReadError| self.failed(error))
        })
    }

    fn get_texts<V: Value>(
        &self,
        strings: &Strings<'_, V>,
        texts: &dyn Texts,
        task: Task<'_, V>,
    ) -> Result<usize> {
        let Task { first, mut values, mut found } = task;
        let mut present = [0; WORDS];
        pieces(values.len(), |at, count| {
            let part = Part { texts, first: first + at, count };
            let hits = values.fill(at, count, |values| {
                strings.get_batch(&part, values, &mut present)?;
                let nulls = nulls(&part);
                let is_null = |at: &usize| nulls[at / 64] >> (at % 64) & 1 != 0;
                (0..count).filter(is_null).for_each(|at| values[at] = V::default());
                Ok(without_past(&mut present, &nulls, count))
            });
            let hits = hits.map_err(|error: pleach::ReadError| self.failed(error))?;
            found.put(at, count, &present);
            Ok(hits)
        })
    }

    fn contains_texts(
        &self,
        strings: &Strings<'_, ()>,
        texts: &dyn Texts,
        (first, count, mut found): (usize, usize, Found<'_>),
    ) -> Result<usize> {
        let mut present = [0; WORDS];
        pieces(count, |at, count| {
            let part = Part { texts, first: first + at, count };
            strings.contains_batch(&part, &mut present).map_err(|error| self.failed(error))?;
            let hits = without_past(&mut present, &nulls(&part), count);
            found.put(at, count, &present);
            Ok(hits)
        })
    }

    fn rank_texts(
        &self,
        strings: &Strings<'_, ()>,
        texts: &dyn Texts,
        task: &mut Task<'_, u64>,
    ) -> Result<usize> {
        let mut present = [0; WORDS];
        pieces(task.values.len(), |at, count| {
            let part = Part { texts, first: task.first + at, count };
            let hits = task.values.fill(at, count, |ranks| {
                strings.rank_batch(&part, ranks, &mut present)?;
                (0..count).filter(|&at| texts.is_null(part.first + at)).for_each(|at| ranks[at] = 0);
                Ok(without_past(&mut present, &nulls(&part), count))
            });
            let hits = hits.map_err(|error: pleach::ReadError| self.failed(error))?;
            task.found.put(at, count, &present);
            Ok(hits)
        })
    }

    fn bound_texts(&self, texts: &dyn Texts, bound: Bound, task: &mut Task<'_, u64>) -> Result<usize> {
        let strings = self.strings::<()>()?;
        pieces(task.values.len(), |at, count| {
            let part = Part { texts, first: task.first + at, count };
            let searched = task.values.fill(at, count, |ranks| {
                match bound {
                    Bound::Lower => strings.lower_bound_batch(&part, ranks),
                    Bound::Upper => strings.lower_bound_batch(&part.next(), ranks),
                }?;
                (0..count).filter(|&at| texts.is_null(part.first + at)).for_each(|at| ranks[at] = 0);
                Ok(0)
            });
            searched.map_err(|error: pleach::ReadError| self.failed(error))
        })
    }
}

/// Clears the bits of misses and those past the keys of a piece; returns the number of ones.
fn without_past(present: &mut [u64; WORDS], misses: &[u64; WORDS], count: usize) -> usize {
    // A batch writes whole words of its keys only; the words after them are of an earlier piece.
    present[count.div_ceil(64)..].fill(0);
    without(present, misses)
}

/// Corrects the ranks of numbers that are not keys.
fn place<K>(ranks: &mut [u64], piece: &Piece<K>, end: u64, is_null: impl Fn(usize) -> bool) {
    for (at, rank) in ranks.iter_mut().enumerate() {
        if is_null(at) {
            *rank = 0;
        } else if piece.above[at / 64] >> (at % 64) & 1 != 0 {
            *rank = end;
        }
    }
}

/// Returns the first elements of a buffer, as many as there are keys.
pub(crate) fn short<'a, T>(name: &'static str, buffer: &'a mut [T], needed: usize) -> Result<&'a mut [T]> {
    let found = buffer.len();
    buffer.get_mut(..needed).ok_or(BatchError::Short { name, needed, found })
}
