//! Look-ups in files of intervals: which interval holds a key.
//!
//! An interval begins at a key of the file, and the first field of its value is the last key in it. Intervals do not
//! overlap, so the only one that can hold a key is the last one that begins at or before it: a floor ([`crate::Near`]),
//! of which the end is then compared. Values of 4 and 8 bytes are in the line that the floor was read from; others are
//! in a column, where the loads of many queries overlap.

use crate::column::Column;
use crate::error::{Error, ReadError};
use crate::index::Index;
use crate::near::{Near, Tuples};
use crate::typed::Typed;
use pleach_format::interval::Ends;
use pleach_format::key::Word;
use pleach_format::{FormatError, Key, Value, ValueType};
use std::fmt;

/// Keys whose floors are looked up at a time.
const CHUNK: usize = 4096;
/// Values whose cache misses overlap.
const AHEAD: usize = 64;
/// Bytes that are copied of a value that is no longer, at once: a constant, which takes no call.
const SHORT: usize = 32;

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
                let rule = "values that are byte strings must be in a column";
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
        ranks.fill(u64::MAX);
        self.each_batch(keys, |at, rank, _| ranks[at] = rank)
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
        // A few keys need no memory.
        let (mut few, mut many) = ([0; AHEAD], Vec::new());
        let ranks = if keys.len() <= AHEAD {
            &mut few[..]
        } else {
            many.resize(keys.len().min(CHUNK), 0);
            &mut many[..]
        };
        let mut count = 0;
        for (chunk, keys) in keys.chunks(CHUNK).enumerate() {
            let (first, ranks) = (chunk * CHUNK, &mut ranks[..keys.len()]);
            let mut pass = |at: usize, rank: u64, value: &[u8]| {
                // The end of an interval is read from the copy that is passed on.
                if rank != u64::MAX && self.ends.word_of::<K>(value) >= keys[at].encode().to_u128() {
                    take(first + at, rank, value);
                    count += 1;
                }
            };
            match &self.values {
                Values::Four(typed) => floors(typed, keys, ranks, |at, rank, value| {
                    pass(at, rank, &value.to_le_bytes());
                })?,
                Values::Eight(typed) => floors(typed, keys, ranks, |at, rank, value| {
                    pass(at, rank, &value.to_le_bytes());
                })?,
                Values::Column(typed, column) => {
                    let to = Tuples { ranks: &mut *ranks, ..Tuples::default() };
                    typed.near_batch(Near::Floor, keys, to)?;
                    values(column, ranks, pass)?;
                }
            }
        }
        Ok(count)
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
        for (keys, floors) in keys.chunks(AHEAD).zip(floors.chunks_mut(AHEAD)) {
            held.fill(false);
            let pass = |at: usize, rank: u64, value: &[u8]| {
                held[at] = rank != u64::MAX && self.ends.word_of::<K>(value) >= keys[at].encode().to_u128();
            };
            match &self.values {
                Values::Four(typed) => selected(typed, floors, |value| value.to_le_bytes(), pass)?,
                Values::Eight(typed) => selected(typed, floors, |value| value.to_le_bytes(), pass)?,
                Values::Column(_, column) => values(column, floors, pass)?,
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
        let mut ranks = [0];
        self.find_batch(&[key], &mut ranks)?;
        Ok((ranks[0] != u64::MAX).then_some(ranks[0]))
    }
}

/// Passes copies of the values at ranks, empty past the end. Their cache misses overlap.
fn values(
    column: &Column<'_>,
    ranks: &[u64],
    mut pass: impl FnMut(usize, u64, &[u8]),
) -> Result<(), ReadError> {
    let is_short = column.element_bytes().is_some_and(|bytes| bytes <= SHORT as u64);
    let mut long = Vec::new();
    for (part, ranks) in ranks.chunks(AHEAD).enumerate() {
        let there = || ranks.iter().filter(|&&rank| rank < column.len());
        if column.is_coded() {
            there().for_each(|&rank| column.prefetch_offset(rank));
        }
        there().for_each(|&rank| column.prefetch(rank));
        for (at, &rank) in (part * AHEAD..).zip(ranks) {
            let value = column.get_in_place(rank)?.unwrap_or_default();
            match column.guarded(rank).first_chunk::<SHORT>() {
                Some(bytes) if is_short && !value.is_empty() => {
                    let short = *bytes;
                    pass(at, rank, &short[..value.len().min(SHORT)]);
                }
                _ => {
                    long.clear();
                    long.extend_from_slice(value);
                    pass(at, rank, &long);
                }
            }
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

/// Passes the rank and the value of the floor of each key.
fn floors<K: Key, V: Value>(
    typed: &Typed<'_, K, V>,
    keys: &[K],
    ranks: &mut [u64],
    mut pass: impl FnMut(usize, u64, V),
) -> Result<(), ReadError> {
    let mut values = vec![V::default(); keys.len()];
    let to = Tuples { ranks: &mut *ranks, values: &mut values, ..Tuples::default() };
    typed.near_batch(Near::Floor, keys, to)?;
    for (at, (&rank, &value)) in ranks.iter().zip(&values).enumerate() {
        pass(at, rank, value);
    }
    Ok(())
}

impl<K: Key> fmt::Debug for Intervals<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Intervals<{}>({:?})", K::TYPE, self.ends)
    }
}
