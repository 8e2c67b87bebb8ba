//! The tuples near keys that need not be there: floor, ceiling and nearest, for batches.
//!
//! One search finds the lower bounds of a piece of keys and reads the tuples there, or before them, while their lines
//! are in the first cache (`search/neighbors`). The nearest tuple is the floor or the one after it.

use crate::cast::value_bits;
use crate::error::ReadError;
use crate::queries::Queries;
use crate::search::neighbors::Tuples as Found;
use crate::search::plan::Plan;
use crate::strings::Strings;
use crate::typed::Typed;
use crate::words::PIECE;
use pleach_format::key::Word;
use pleach_format::{Key, KeyType, Value};
use pleach_fsck::pool;

/// Maximum number of queries per task of a parallel batch.
const TASK: usize = 1 << 14;
/// So many queries are looked up one by one: a batch overlaps the cache misses of more.
const FEW: usize = 4;

/// Which tuple near a key is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Near {
    /// The last tuple whose key is at most the query: of equal keys the last.
    Floor,
    /// The first tuple whose key is at least the query: of equal keys the first.
    Ceiling,
    /// The floor or the ceiling, whichever has the smaller distance from the query, and the floor if they have the
    /// same. Keys are numbers.
    Nearest,
}

/// Buffers for the tuples that a batch finds. Each is as long as the queries or longer, or empty, which means that it
/// is not wanted.
#[derive(Debug, Default)]
pub struct Tuples<'b, K, V> {
    /// Rank of each tuple; [`u64::MAX`] if there is none.
    pub ranks: &'b mut [u64],
    /// Its key; the default of the type if there is no tuple.
    pub keys: &'b mut [K],
    /// Its value; the default of the type if there is no tuple.
    pub values: &'b mut [V],
    /// Bit `i % 64` of word `i / 64` is 1 if there is a tuple for query `i`.
    pub present: &'b mut [u64],
}

/// Returns the first part of a buffer, or nothing of an empty one.
fn part<'b, T>(name: &'static str, needed: usize, buffer: &'b mut [T]) -> Result<&'b mut [T], ReadError> {
    match buffer.len() {
        0 => Ok(buffer),
        found => buffer.get_mut(..needed).ok_or(ReadError::Buffer { name, needed, found }),
    }
}

/// Cuts off the first part of a buffer.
fn cut<'b, T>(buffer: &mut &'b mut [T], count: usize) -> &'b mut [T] {
    let whole = std::mem::take(buffer);
    let (first, rest) = whole.split_at_mut(count.min(whole.len()));
    *buffer = rest;
    first
}

impl<'b, K, V> Tuples<'b, K, V> {
    fn checked(&mut self, queries: usize) -> Result<Tuples<'_, K, V>, ReadError> {
        Ok(Tuples {
            ranks: part("ranks", queries, self.ranks)?,
            keys: part("keys", queries, self.keys)?,
            values: part("values", queries, self.values)?,
            present: part("present", queries.div_ceil(64), self.present)?,
        })
    }

    /// Cuts off the buffers of the next queries, a multiple of 64 or all.
    fn take(&mut self, queries: usize) -> Self {
        Self {
            ranks: cut(&mut self.ranks, queries),
            keys: cut(&mut self.keys, queries),
            values: cut(&mut self.values, queries),
            present: cut(&mut self.present, queries.div_ceil(64)),
        }
    }
}

/// Reports whether `above` is nearer to a query than `below`, which is at most the query.
fn is_nearer<K: Key>(query: K, below: K, above: K) -> bool {
    let (query, below, above) = (query.encode(), below.encode(), above.encode());
    if below == query {
        return false;
    }
    match K::TYPE {
        KeyType::F64 => {
            let float = |word: K::Word| f64::decode(word.to_u128() as u64);
            float(above) - float(query) < float(query) - float(below)
        }
        // The words of integers have the distances of the integers.
        KeyType::U32
        | KeyType::U64
        | KeyType::I32
        | KeyType::I64
        | KeyType::U128
        | KeyType::Fixed(_)
        | KeyType::Bytes
        | KeyType::Utf8 => {
            // The keys of an unverified file may be in no order.
            let distance = |high: K::Word, low: K::Word| high.to_u128().wrapping_sub(low.to_u128());
            distance(above, query) < distance(query, below)
        }
    }
}

impl<K: Key, V: Value> Typed<'_, K, V> {
    /// Finds the tuple near each of many keys, on this thread, and returns the number of queries that have one.
    ///
    /// O(levels) lines for each, as [`Typed::get_batch`]; cache misses overlap.
    ///
    /// ```
    /// use pleach::{Builder, Map, Near, Tuples};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("tens.pleach");
    /// Builder::new().build(&path, (1..100u64).map(|number| (10 * number, number)))?;
    /// let tens: Map<u64, u64> = Map::open(&path)?;
    /// let (mut keys, mut values) = ([0; 3], [0; 3]);
    /// let tuples = Tuples { keys: &mut keys, values: &mut values, ..Tuples::default() };
    /// assert_eq!(tens.typed().near_batch(Near::Floor, &[25, 5, 30], tuples)?, 2);
    /// assert_eq!((keys, values), ([20, 0, 30], [2, 0, 3]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ReadError::Buffer`] if a buffer is too short and not empty; otherwise as for a single look-up:
    /// [`ReadError::Format`] with [`crate::Verify::Touched`], and [`ReadError::MappingLost`].
    pub fn near_batch(
        &self,
        near: Near,
        keys: &[K],
        mut tuples: Tuples<'_, K, V>,
    ) -> Result<usize, ReadError> {
        self.near_task(near, keys, tuples.checked(keys.len())?)
    }

    /// Runs [`Typed::near_batch`] on all threads of the current rayon pool.
    ///
    /// # Errors
    /// Those of [`Typed::near_batch`].
    pub fn par_near_batch(
        &self,
        near: Near,
        keys: &[K],
        mut tuples: Tuples<'_, K, V>,
    ) -> Result<usize, ReadError> {
        let mut tuples = tuples.checked(keys.len())?;
        let task = pool::task_queries(None, keys.len(), TASK);
        let tasks: Vec<_> = keys.chunks(task).map(|keys| (keys, tuples.take(keys.len()))).collect();
        pool::sum(None, tasks, |(keys, tuples)| self.near_task(near, keys, tuples))
    }

    fn near_task(&self, near: Near, keys: &[K], mut tuples: Tuples<'_, K, V>) -> Result<usize, ReadError> {
        self.index().foresee(keys.len(), |at| self.near_one(near, keys[at]).map(|_| ()))?;
        if keys.len() <= FEW {
            return self.near_few(near, keys, tuples);
        }
        if near != Near::Nearest
            && tuples.keys.is_empty()
            && self.index().verified().is_none()
            && let Some(plan) = self.plan()
        {
            return self.near_words(plan, near, keys, tuples);
        }
        let mut found = 0;
        let mut piece = Piece::new();
        for keys in keys.chunks(PIECE) {
            let to = tuples.take(keys.len());
            let (wants_keys, wants_values) = (!to.keys.is_empty(), !to.values.is_empty());
            piece.find(self, near, keys, wants_keys || near == Near::Nearest, wants_values)?;
            found += piece.put(self.len(), keys.len(), to);
        }
        Ok(found)
    }

    /// Finds the tuple near a key, with its rank.
    #[inline]
    pub(crate) fn near_one(&self, near: Near, key: K) -> Result<Option<(u64, K, V)>, ReadError> {
        let rank = match near {
            Near::Floor | Near::Nearest => self.upper_bound(key)?.wrapping_sub(1),
            Near::Ceiling => self.lower_bound(key)?,
        };
        let found = self.select(rank)?.map(|(found, value)| (rank, found, value));
        if near != Near::Nearest || found.is_some_and(|(_, found, _)| found.encode() == key.encode()) {
            return Ok(found);
        }
        let above = self.select(rank.wrapping_add(1))?;
        let above = above.map(|(above, value)| (rank.wrapping_add(1), above, value));
        Ok(match (found, above) {
            (Some((_, below, _)), Some((_, next, _))) if !is_nearer(key, below, next) => found,
            (found, None) => found,
            (_, above) => above,
        })
    }

    fn near_few(&self, near: Near, keys: &[K], tuples: Tuples<'_, K, V>) -> Result<usize, ReadError> {
        let mut bits = 0;
        for (at, &key) in keys.iter().enumerate() {
            let found = self.near_one(near, key)?;
            bits |= u64::from(found.is_some()) << at;
            let (rank, found, value) = found.unwrap_or((u64::MAX, K::default(), V::default()));
            tuples.ranks.get_mut(at).into_iter().for_each(|to| *to = rank);
            tuples.keys.get_mut(at).into_iter().for_each(|to| *to = found);
            tuples.values.get_mut(at).into_iter().for_each(|to| *to = value);
        }
        tuples.present.first_mut().into_iter().for_each(|to| *to = bits);
        Ok(bits.count_ones() as usize)
    }

    /// Writes floors or ceilings straight into the caller's buffers.
    fn near_words(
        &self,
        plan: &Plan<'_>,
        near: Near,
        keys: &[K],
        tuples: Tuples<'_, K, V>,
    ) -> Result<usize, ReadError> {
        let mut found = 0;
        let Tuples { ranks, keys: no_keys, values, present } = tuples;
        // The last key of the type may have to correct the count, and needs the bits for that.
        let mut bitmap = vec![0; if present.is_empty() { keys.len().div_ceil(64) } else { 0 }];
        let present = if present.is_empty() { &mut bitmap } else { present };
        let mut tuples = Tuples { ranks, keys: no_keys, values, present };
        tuples.present.last_mut().into_iter().for_each(|last| *last = 0);
        if !self.has_values() {
            tuples.values.fill(V::default());
        }
        Self::each_words(keys, |_, words, flip| {
            let Tuples { ranks, values, present, .. } = tuples.take(words.len());
            let values = if self.has_values() { value_bits(values) } else { &mut [] };
            let to = Found { ranks, words: &mut [], values, present };
            found += self.searches().neighbors(plan, words, flip, near == Near::Floor, to);
        });
        self.index().check_mapping()?;
        Ok(found)
    }

    /// Writes the floors or ceilings of up to [`PIECE`] words.
    fn neighbors(
        &self,
        is_floor: bool,
        words: &[K::Word],
        tuples: Found<'_, K::Word, V::Bits>,
    ) -> Result<(), ReadError> {
        if self.index().verified().is_some() || self.plan().is_none() {
            return self.neighbors_one_by_one(is_floor, words, tuples);
        }
        if let Some(plan) = self.plan() {
            self.searches().neighbors(plan, words, K::Word::default(), is_floor, tuples);
        }
        self.index().check_mapping()
    }

    /// Does the same with verified blocks, or in an empty file.
    fn neighbors_one_by_one(
        &self,
        is_floor: bool,
        words: &[K::Word],
        tuples: Found<'_, K::Word, V::Bits>,
    ) -> Result<(), ReadError> {
        for (at, &word) in words.iter().enumerate() {
            let key = K::decode(word);
            let rank = match is_floor {
                true => self.upper_bound(key)?.wrapping_sub(1),
                false => self.lower_bound(key)?,
            };
            tuples.ranks[at] = rank;
            if let Some((key, value)) = self.select(rank)? {
                tuples.words.get_mut(at).into_iter().for_each(|to| *to = key.encode());
                tuples.values.get_mut(at).into_iter().for_each(|to| *to = value.to_bits());
            }
        }
        Ok(())
    }
}

/// Tuples of a piece of queries.
struct Piece<K: Key, V: Value> {
    queries: [K::Word; PIECE],
    ranks: [u64; PIECE],
    words: [K::Word; PIECE],
    values: [V::Bits; PIECE],
    /// The tuples after those, as keys and values.
    nexts: Vec<(u64, K, V)>,
}

impl<K: Key, V: Value> Piece<K, V> {
    fn new() -> Self {
        let word = K::Word::default();
        Self {
            queries: [word; PIECE],
            ranks: [0; PIECE],
            words: [word; PIECE],
            values: [V::Bits::default(); PIECE],
            nexts: Vec::new(),
        }
    }

    fn find(
        &mut self,
        typed: &Typed<'_, K, V>,
        near: Near,
        keys: &[K],
        wants_keys: bool,
        wants_values: bool,
    ) -> Result<(), ReadError> {
        let count = keys.len();
        self.queries.iter_mut().zip(keys).for_each(|(query, key)| *query = key.encode());
        let tuples = Found {
            ranks: &mut self.ranks[..count],
            words: if wants_keys { &mut self.words[..count] } else { &mut [] },
            values: if wants_values && typed.has_values() { &mut self.values[..count] } else { &mut [] },
            present: &mut [],
        };
        typed.neighbors(near != Near::Ceiling, &self.queries[..count], tuples)?;
        if near != Near::Nearest {
            return Ok(());
        }
        self.nexts.clear();
        let ranks: Vec<u64> = self.ranks[..count].iter().map(|rank| rank.wrapping_add(1)).collect();
        let (mut nexts, mut values) = (vec![K::default(); count], vec![V::default(); count]);
        typed.select_batch(&ranks, &mut nexts, &mut values)?;
        for (at, (&query, (&next, &value))) in keys.iter().zip(nexts.iter().zip(&values)).enumerate() {
            let (has_below, has_above) = (self.ranks[at] < typed.len(), ranks[at] < typed.len());
            let is_next = has_above && (!has_below || is_nearer(query, K::decode(self.words[at]), next));
            if is_next {
                (self.ranks[at], self.words[at], self.values[at]) =
                    (ranks[at], next.encode(), value.to_bits());
            }
        }
        Ok(())
    }

    /// Copies the tuples of `count` queries, and returns how many there are.
    fn put(&mut self, tuples: u64, count: usize, to: Tuples<'_, K, V>) -> usize {
        let ranks = &self.ranks[..count];
        let found = ranks.iter().filter(|&&rank| rank < tuples).count();
        for (word, ranks) in to.present.iter_mut().zip(ranks.chunks(64)) {
            *word =
                ranks.iter().enumerate().fold(0, |bits, (at, &rank)| bits | u64::from(rank < tuples) << at);
        }
        to.keys.iter_mut().zip(&self.words).for_each(|(to, &word)| *to = K::decode(word));
        to.values.iter_mut().zip(&self.values).for_each(|(to, &bits)| *to = V::from_bits(bits));
        to.ranks.copy_from_slice(&ranks[..to.ranks.len()]);
        if found < count {
            for at in (0..count).filter(|&at| ranks[at] >= tuples) {
                to.ranks.get_mut(at).into_iter().for_each(|rank| *rank = u64::MAX);
                to.keys.get_mut(at).into_iter().for_each(|key| *key = K::default());
                to.values.get_mut(at).into_iter().for_each(|value| *value = V::default());
            }
        }
        found
    }
}

/// The smallest string above each query of a batch: the query and a zero byte.
struct Nexts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Nexts {
    fn of<Q: Queries + ?Sized>(queries: &Q, first: usize, count: usize) -> Self {
        let mut nexts = Self { bytes: Vec::new(), ends: vec![0] };
        for at in first..first + count {
            nexts.bytes.extend_from_slice(queries.get(at));
            nexts.bytes.push(0);
            nexts.ends.push(nexts.bytes.len());
        }
        nexts
    }
}

impl Queries for Nexts {
    fn len(&self) -> usize {
        self.ends.len() - 1
    }
    fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.ends[index]..self.ends[index + 1]]
    }
}

impl<V: Value> Strings<'_, V> {
    /// Finds the ranks of the tuples near many keys, on this thread, and returns the number of queries that have one.
    /// The rank of others is [`u64::MAX`]. Byte strings have no distance: [`Near::Nearest`] is their floor.
    ///
    /// # Errors
    /// [`ReadError::Buffer`] if `ranks` is too short; otherwise as for a single look-up:
    /// [`ReadError::Format`] with [`crate::Verify::Touched`], and [`ReadError::MappingLost`].
    pub fn near_batch<Q: Queries + ?Sized>(
        &self,
        near: Near,
        keys: &Q,
        ranks: &mut [u64],
    ) -> Result<usize, ReadError> {
        let (needed, length) = (keys.len(), ranks.len());
        let ranks =
            ranks.get_mut(..needed).ok_or(ReadError::Buffer { name: "ranks", needed, found: length })?;
        if near == Near::Ceiling {
            self.lower_bound_batch(keys, ranks)?;
        } else {
            for (piece, ranks) in ranks.chunks_mut(PIECE).enumerate() {
                self.lower_bound_batch(&Nexts::of(keys, piece * PIECE, ranks.len()), ranks)?;
                ranks.iter_mut().for_each(|rank| *rank = rank.wrapping_sub(1));
            }
        }
        let mut found = 0;
        for rank in ranks {
            let is_there = *rank < self.len();
            *rank = if is_there { *rank } else { u64::MAX };
            found += usize::from(is_there);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearer_of_two() {
        assert!(is_nearer(7_u64, 5, 8) && !is_nearer(6_u64, 5, 8) && !is_nearer(5_u64, 5, 5));
        assert!(!is_nearer(6_u32, 4, 8), "the floor, if both are as far");
        assert!(is_nearer(0_i64, i64::MIN, i64::MAX) && !is_nearer(-2_i32, i32::MIN, i32::MAX));
        assert!(is_nearer(u128::MAX - 1, 0, u128::MAX));
        assert!(is_nearer(0.5, -1.0, 1.0) && !is_nearer(0.0, -1.0, 1.0));
        // Infinities are as far from each other as from any number.
        assert!(!is_nearer(f64::INFINITY, f64::INFINITY, f64::INFINITY));
        assert!(!is_nearer(1.0, f64::NEG_INFINITY, f64::INFINITY));
        assert!(is_nearer(1.0, f64::NEG_INFINITY, 1e300));
    }
}
