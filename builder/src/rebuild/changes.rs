//! Batches of changes: read, sorted by key, and reduced to one effect for each key.
//!
//! The changes of one key apply in the order of the batch: `put` leaves one tuple, `add` adds one, `del`
//! leaves none. So the batch is sorted stably by key, and the changes of a key become an *effect*: whether
//! the tuples of the base are removed, and which values are added. The counts of a report also depend on
//! whether the base has the key; a merge reports that to the effect.

use crate::bytes::element;
use crate::error::BuildError;
use crate::observe::{Phase, Watch};
use crate::pack::{KeyLane, Tuple, ValueLane};
use crate::parallel;
use crate::sort::{Consume, Groups, sort};
use crate::source::{Chunk, Column, Op, Source, next_chunk};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of rows requested at once.
const CHUNK_ROWS: usize = 1 << 16;

/// The combined effect of all changes of a key.
#[derive(Debug)]
pub(crate) struct Effect<K> {
    pub key: K,
    /// The tuples of the base are removed.
    pub clears: bool,
    /// Number of deletes that find nothing if the base lacks the key: 1 if the first change deletes.
    absent_if_missing: u32,
    /// Its values: the first of them in [`Effects::values`], and their number.
    pub first: usize,
    pub count: usize,
    /// Number of tuples of the base with this key, counted by a merge.
    found: AtomicU32,
}

impl<K> Effect<K> {
    /// Counts tuples of the base with this key.
    pub(crate) fn find(&self, tuples: usize) {
        if tuples > 0 {
            // The count saturates at 2^32 - 1, which is enough for all its uses.
            let more = u32::try_from(tuples).unwrap_or(u32::MAX);
            let _ = self
                .found
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |found| Some(found.saturating_add(more)));
        }
    }

    pub(crate) fn found(&self) -> u32 {
        self.found.load(Ordering::Relaxed)
    }
}

/// Numbers of changes by kind, and their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Rows with `put`.
    pub puts: u64,
    /// Rows with `add`.
    pub adds: u64,
    /// Rows with `del`.
    pub dels: u64,
    /// Rows whose tuple a later row of the batch replaced or deleted.
    pub superseded: u64,
    /// Deletes of keys that did not exist.
    pub absent: u64,
    /// Tuples of the base that were removed or replaced.
    pub removed: u64,
    /// Tuples of the batch that are in the new file.
    pub written: u64,
}

impl Applied {
    /// Returns the number of rows in the batch.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.puts + self.adds + self.dels
    }
}

/// All effects, in order of their keys.
#[derive(Debug)]
pub(crate) struct Effects<K, V> {
    pub list: Vec<Effect<K>>,
    pub values: Vec<V>,
    applied: Applied,
}

impl<K, V> Default for Effects<K, V> {
    fn default() -> Self {
        Self { list: Vec::new(), values: Vec::new(), applied: Applied::default() }
    }
}

impl<K: Ord, V> Effects<K, V> {
    /// Adds the next change. Changes must come sorted by key, and those of a key in the order of the batch.
    pub(crate) fn push(&mut self, key: K, op: Op, value: V) {
        let applied = &mut self.applied;
        match op {
            Op::Put => applied.puts += 1,
            Op::Add => applied.adds += 1,
            Op::Del => applied.dels += 1,
        }
        if self.list.last().is_none_or(|last| last.key != key) {
            let absent_if_missing = u32::from(op == Op::Del);
            let (first, found) = (self.values.len(), AtomicU32::new(0));
            self.list.push(Effect { key, clears: false, absent_if_missing, first, count: 0, found });
        } else if op == Op::Del && self.list.last().is_some_and(|last| last.clears && last.count == 0) {
            // The key is deleted again.
            applied.absent += 1;
        }
        let Some(effect) = self.list.last_mut() else { return };
        if op != Op::Add {
            applied.superseded += effect.count as u64;
            self.values.truncate(effect.first);
            effect.count = 0;
            effect.clears = true;
        }
        if op != Op::Del {
            self.values.push(value);
            effect.count += 1;
        }
        applied.written = self.values.len() as u64;
    }

    /// Returns the outcome of the changes, once all of them have met the base.
    pub(crate) fn applied(&self) -> Applied {
        let mut applied = self.applied;
        for effect in &self.list {
            if effect.found() == 0 {
                applied.absent += u64::from(effect.absent_if_missing);
            } else if effect.clears {
                applied.removed += u64::from(effect.found());
            }
        }
        applied
    }

    /// Returns true if each change replaces one tuple by another, provided that the base has each key once.
    pub(crate) fn only_puts(&self) -> bool {
        self.list.iter().all(|effect| effect.clears && effect.count == 1)
    }

    /// Returns the first key that would be duplicated, if any.
    pub(crate) fn duplicate(&self) -> Option<&K> {
        let kept = |effect: &Effect<K>| if effect.clears { 0 } else { effect.found() as usize };
        self.list
            .iter()
            .find(|effect| effect.count > 0 && kept(effect) + effect.count > 1)
            .map(|effect| &effect.key)
    }
}

fn read(
    source: &mut dyn Source,
    watch: &Watch<'_>,
    memory_bytes: u64,
    row_bytes: impl Fn(&Chunk) -> usize,
    mut take: impl FnMut(&Chunk) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let mut chunk = Chunk::new(source.schema().key_type, source.schema().value_type);
    let (mut bytes, mut rows) = (0u64, 0);
    loop {
        watch.check()?;
        next_chunk(source, &mut chunk, CHUNK_ROWS, &mut rows)?;
        if chunk.is_empty() {
            return Ok(());
        }
        bytes += row_bytes(&chunk) as u64;
        if bytes > memory_bytes {
            return Err(BuildError::ManyChanges { limit: memory_bytes });
        }
        take(&chunk)?;
        let (done, total) = source.progress();
        watch.progress(Phase::Read, done, total);
    }
}

fn mismatch() -> BuildError {
    BuildError::Source(crate::SourceError {
        input: "changes".into(),
        place: String::new(),
        what: "their columns have other types than declared, or unequal lengths".into(),
        advice: String::new(),
        cause: None,
    })
}

/// Receives sorted words with the numbers of their changes, and builds the effects.
struct Settling<'a, W, B> {
    ops: &'a [Op],
    values: &'a [B],
    effects: Effects<W, B>,
}

impl<W: KeyLane, B: ValueLane> Consume<W, u32> for Settling<'_, W, B> {
    fn take(&mut self, tuples: &[Tuple<W, u32>]) -> Result<(), BuildError> {
        // Values are in random places: all threads fetch them.
        let fetch = |tuple: &Tuple<W, u32>| {
            let at = tuple.value as usize;
            (tuple.key, self.ops[at], self.values[at])
        };
        const TASK: usize = 1 << 13;
        let part = |task: usize| &tuples[task * TASK..tuples.len().min((task + 1) * TASK)];
        let fetch = |task| part(task).iter().map(fetch).collect::<Vec<(W, Op, B)>>();
        let changes = parallel::map(tuples.len().div_ceil(TASK), fetch);
        changes.into_iter().flatten().for_each(|(key, op, value)| self.effects.push(key, op, value));
        Ok(())
    }
}

/// Reads changes of words and value bits, and builds their effects.
pub(crate) fn of_words<W: KeyLane, B: ValueLane>(
    source: &mut dyn Source,
    watch: &Watch<'_>,
    memory_bytes: u64,
) -> Result<Effects<W, B>, BuildError> {
    let (mut keys, mut ops, mut values) = (Vec::<Tuple<W, u32>>::new(), Vec::<Op>::new(), Vec::<B>::new());
    // The keys are sorted with a scratch buffer of the same size; then the effects follow.
    let row = 2 * size_of::<Tuple<W, u32>>() + 1 + 2 * size_of::<B>() + size_of::<Effect<W>>();
    read(
        source,
        watch,
        memory_bytes,
        |chunk| chunk.len() * row,
        |chunk| {
            let words = W::of(&chunk.keys).ok_or_else(mismatch)?;
            let bits = B::of(&chunk.values, words.len()).ok_or_else(mismatch)?;
            if chunk.ops.len() != words.len() {
                return Err(mismatch());
            }
            u32::try_from(keys.len() + words.len())
                .map_err(|_| BuildError::ManyChanges { limit: memory_bytes })?;
            let numbers = keys.len() as u32..;
            keys.extend(words.iter().zip(numbers).map(|(&key, value)| Tuple { key, value }));
            ops.extend_from_slice(&chunk.ops);
            values.extend_from_slice(bits);
            Ok(())
        },
    )?;
    watch.progress(Phase::Sort, 0, Some(keys.len() as u64));
    let mut scratch = vec![Tuple::default(); keys.len()];
    let mut groups = Groups::new(keys.len(), false);
    let mut settling = Settling { ops: &ops, values: &values, effects: Effects::default() };
    sort(&mut keys, &mut scratch, &mut groups, watch, &mut settling)?;
    Ok(settling.effects)
}

/// Reads changes whose keys or values are byte strings, and builds their effects. A byte key is its own
/// bytes, a numeric key its encoding with the most significant byte first; values are their bytes.
pub(crate) fn of_bytes(
    source: &mut dyn Source,
    watch: &Watch<'_>,
    memory_bytes: u64,
) -> Result<Effects<Vec<u8>, Vec<u8>>, BuildError> {
    let mut changes: Vec<(Vec<u8>, Op, Vec<u8>)> = Vec::new();
    let held = |column: &Column| match column {
        Column::Bytes(strings) => strings.data_bytes(),
        _ => 16 * column.len(),
    };
    // Sorting needs half as much memory again as the changes; then the effects follow.
    let row = 2 * size_of::<(Vec<u8>, Op, Vec<u8>)>() + size_of::<Effect<Vec<u8>>>() + 32;
    let row_bytes = |chunk: &Chunk| held(&chunk.keys) + held(&chunk.values) + chunk.len() * row;
    read(source, watch, memory_bytes, row_bytes, |chunk| {
        let has_values = !matches!(chunk.values, Column::None);
        if chunk.ops.len() != chunk.len() || (has_values && chunk.values.len() != chunk.len()) {
            return Err(mismatch());
        }
        for (at, &op) in chunk.ops.iter().enumerate() {
            let key = element(&chunk.keys, at, true, &mut [0; 16]).to_vec();
            let value = element(&chunk.values, at, false, &mut [0; 16]).to_vec();
            changes.push((key, op, value));
        }
        Ok(())
    })?;
    watch.progress(Phase::Sort, 0, Some(changes.len() as u64));
    crate::pool::ready();
    changes.par_sort_by(|one, other| one.0.cmp(&other.0));
    watch.check()?;
    let mut effects = Effects::default();
    changes.into_iter().for_each(|(key, op, value)| effects.push(key, op, value));
    Ok(effects)
}

/// Appends to a column an element in the form of [`element`]: numbers with the most significant byte first
/// (keys) or last (values).
pub(crate) fn push_element(bytes: &[u8], big_endian: bool, out: &mut Column) {
    let shift = |word: u128, byte: &u8| word << 8 | u128::from(*byte);
    let word = || if big_endian { bytes.iter().fold(0, shift) } else { bytes.iter().rev().fold(0, shift) };
    match out {
        Column::None => {}
        Column::U32(words) => words.push(word() as u32),
        Column::U64(words) => words.push(word() as u64),
        Column::U128(words) => words.push(word()),
        Column::Bytes(strings) => strings.push(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_a_key_apply_in_order() {
        use Op::{Add, Del, Put};
        let changes = [
            (1, Put, 10),
            (1, Add, 11),
            (1, Put, 12),
            (2, Add, 20),
            (2, Del, 0),
            (2, Del, 0),
            (2, Add, 21),
            (3, Del, 0),
            (3, Del, 0),
            (4, Add, 40),
            (4, Add, 41),
        ];
        let mut effects = Effects::default();
        changes.into_iter().for_each(|(key, op, value)| effects.push(key, op, value));
        let shape: Vec<_> = effects
            .list
            .iter()
            .map(|effect| (effect.key, effect.clears, &effects.values[effect.first..][..effect.count]))
            .collect();
        assert_eq!(shape, [(1, true, &[12][..]), (2, true, &[21]), (3, true, &[]), (4, false, &[40, 41])]);
        let missing = effects.applied();
        assert_eq!((missing.puts, missing.adds, missing.dels), (2, 5, 4));
        assert_eq!((missing.superseded, missing.absent, missing.written), (3, 3, 4));
        effects.list.iter().for_each(|effect| effect.find(2));
        let there = effects.applied();
        assert_eq!((there.absent, there.removed), (2, 6));
        assert_eq!(effects.duplicate(), Some(&4));
        assert!(!effects.only_puts());
    }
}
