//! A batch of changes: read, put in order of keys, and settled to one effect for each key.
//!
//! Changes of one key apply in the order of the batch: `put` leaves one tuple, `add` one more, `del` none. So
//! the batch is sorted by key, stably, and the changes of a key become an *effect*: whether the tuples of the
//! base go, and which values come. What a merge has to know besides is counted by the effect itself, once it
//! is known whether the base has the key.

use crate::bytes::element;
use crate::error::BuildError;
use crate::observe::{Phase, Watch};
use crate::pack::{KeyLane, Tuple, ValueLane};
use crate::parallel;
use crate::sort::{Consume, Groups, sort};
use crate::source::{Chunk, Column, Op, Source, next_chunk};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// Rows that are asked for at once.
const CHUNK_ROWS: usize = 1 << 16;

/// What a key's changes come to.
#[derive(Debug)]
pub(crate) struct Effect<K> {
    pub key: K,
    /// Tuples of the base go.
    pub clears: bool,
    /// Deletes find nothing if the base has no such key: 1 if the first change deletes.
    absent_if_missing: u32,
    /// Its values in [`Effects::values`].
    pub first: usize,
    pub count: usize,
    /// Tuples of the base with this key, as a merge counts them.
    found: AtomicU32,
}

impl<K> Effect<K> {
    /// Counts tuples of the base.
    pub(crate) fn find(&self, tuples: usize) {
        if tuples > 0 {
            // More than 2^32 equal keys are as many as 2^32 - 1 for all that is asked.
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

/// How many changes of each kind there were, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Rows that put.
    pub puts: u64,
    /// Rows that add.
    pub adds: u64,
    /// Rows that delete.
    pub dels: u64,
    /// Rows whose tuple a later row of the batch replaced or deleted.
    pub superseded: u64,
    /// Deletes of keys that were not there.
    pub absent: u64,
    /// Tuples of the base that are gone or replaced.
    pub removed: u64,
    /// Tuples of the batch that are in the new file.
    pub written: u64,
}

impl Applied {
    /// Rows of the batch.
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
    /// Settles the next change: they come sorted by key, and those of a key in the order of the batch.
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
            // Deleted once more.
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

    /// What became of the changes, once all of them have met the base.
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

    /// Whether each change replaces one tuple by another, if the base has each key once.
    pub(crate) fn only_puts(&self) -> bool {
        self.list.iter().all(|effect| effect.clears && effect.count == 1)
    }

    /// The key that would stand twice, if any does.
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
        problem: "their columns are not of the announced types, or not of equal length".into(),
        cause: None,
    })
}

/// Settles words as they come out of a sort, with the numbers of their changes.
struct Settling<'a, W, B> {
    ops: &'a [Op],
    values: &'a [B],
    effects: Effects<W, B>,
}

impl<W: KeyLane, B: ValueLane> Consume<W, u32> for Settling<'_, W, B> {
    fn take(&mut self, tuples: &[Tuple<W, u32>]) -> Result<(), BuildError> {
        // Values lie anywhere: all threads fetch them.
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

/// Reads and settles changes of words and value bits.
pub(crate) fn of_words<W: KeyLane, B: ValueLane>(
    source: &mut dyn Source,
    watch: &Watch<'_>,
    memory_bytes: u64,
) -> Result<Effects<W, B>, BuildError> {
    let (mut keys, mut ops, mut values) = (Vec::<Tuple<W, u32>>::new(), Vec::<Op>::new(), Vec::<B>::new());
    // The keys are sorted with a scratch of the same size; then come the effects.
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

/// Reads and settles changes whose keys or values are byte strings. Keys are their bytes, those of numbers
/// their encoding, most significant byte first; values are their bytes.
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
    // Sorting works beside the changes with half as much again; then come the effects.
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

/// Adds to a column what [`element`] made of one: numbers most significant byte first (keys) or last (values).
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
