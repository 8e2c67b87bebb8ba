//! Tables of the real size, made up from their first rows.
//!
//! Keys that came in order go on as they began: with the same distances, again and again. Keys that came in any order
//! are drawn from all; others are drawn between them, as dense as they are there. Tuples are made in key order, as
//! fast as a build takes them. Values are those of the sample, again and again.

use super::input::{Sample, push};
use crate::random::Random;
use pleach_builder::source::{Chunk, Column, Schema, Source, SourceError};
use pleach_format::KeyType;
use rayon::slice::ParallelSliceMut;
use std::sync::Arc;

/// Keys of the sample over which the density is taken: it then varies by 6% where keys are evenly spread.
const WINDOW: usize = 256;
/// Distances that are drawn from: those of keys that are evenly spread, in units of their mean.
const DRAWS: usize = 1 << 12;

/// A source of made-up tuples.
pub struct Grown {
    schema: Schema,
    chunks: Arc<[Chunk]>,
    keys: Keys,
    /// Chunk and row of the next value.
    value: (usize, usize),
    read: u64,
    rows: u64,
}

enum Keys {
    /// In order: the distances, the next of them and the last key.
    Onward { gaps: Vec<u128>, at: usize, last: u128, max: u128 },
    /// Between the keys of the sample, in order.
    Between(Between),
}

struct Between {
    sorted: Vec<u128>,
    draws: Vec<f64>,
    random: Random,
    /// Low bits in which no two keys differ.
    fixed: u128,
    /// Rows for each row of the sample.
    factor: f64,
    window: usize,
    /// Distance from the first key of the window.
    offset: f64,
    last: u128,
}

impl Grown {
    /// Makes a table of about so many rows; `None` if keys are not numbers, or if nobody knows how they go on.
    pub fn new(sample: &Sample, rows: u64) -> Option<Self> {
        let schema = Schema { rows: None, ..sample.schema.clone() };
        let is_plain = schema.interval.is_none() && schema.derived.is_none();
        if !is_plain || schema.key_type.is_bytes() || sample.rows < 2 {
            return None;
        }
        let mut words: Vec<u128> = Vec::with_capacity(sample.rows as usize);
        for chunk in &*sample.chunks {
            match &chunk.keys {
                Column::U32(keys) => words.extend(keys.iter().map(|&key| u128::from(key))),
                Column::U64(keys) => words.extend(keys.iter().map(|&key| u128::from(key))),
                Column::U128(keys) => words.extend_from_slice(keys),
                Column::None | Column::Bytes(_) => return None,
            }
        }
        let keys = if sample.is_sorted {
            // Floats go on to infinity.
            if schema.key_type == KeyType::F64 {
                return None;
            }
            let gaps = words.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let max = u128::MAX >> (128 - 8 * schema.key_type.bytes());
            Keys::Onward { gaps, at: 0, last: words[0], max }
        } else {
            let first = words[0];
            let varying = words.iter().fold(0, |varying, word| varying | word ^ first);
            let fixed = (1u128 << varying.trailing_zeros().min(127)) - 1;
            words.par_sort_unstable();
            let factor = rows as f64 / words.len() as f64;
            let draws = (0..DRAWS).map(|at| -((at as f64 + 0.5) / DRAWS as f64).ln()).collect();
            let last = words[0];
            Keys::Between(Between {
                sorted: words,
                draws,
                random: Random::new(1),
                fixed,
                factor,
                window: 0,
                offset: 0.0,
                last,
            })
        };
        let chunks = Arc::clone(&sample.chunks);
        Some(Self { schema, chunks, keys, value: (0, 0), read: 0, rows })
    }
}

impl Between {
    fn next(&mut self) -> Option<u128> {
        let drawn = (self.random.next() >> 52) as usize;
        let mut steps = self.draws[drawn % DRAWS];
        loop {
            let from = self.window * WINDOW;
            let to = (from + WINDOW).min(self.sorted.len() - 1);
            if from >= to {
                return None;
            }
            let (low, span) = (self.sorted[from], self.sorted[to] - self.sorted[from]);
            let count = (to - from) as f64 * self.factor;
            // Equal keys have no distance; their number counts all the same.
            let mean = (span as f64 / count).max(1e-9);
            let offset = self.offset + steps * mean;
            let width = span as f64 + if span == 0 { count * mean } else { 0.0 };
            if offset < width {
                self.offset = offset;
                let mut key = low + (offset as u128).min(span);
                if let Some(bits) = span.checked_ilog2().and_then(|log| log.checked_sub(52)) {
                    // Bits that are too low for the distance.
                    key = (key >> bits << bits) | u128::from(self.random.next()) & ((1 << bits.min(64)) - 1);
                }
                let key = key & !self.fixed | low & self.fixed;
                self.last = key.max(self.last);
                return Some(self.last);
            }
            steps = (offset - width) / mean;
            (self.window, self.offset) = (self.window + 1, 0.0);
        }
    }
}

impl Keys {
    fn next(&mut self) -> Option<u128> {
        match self {
            Self::Between(between) => between.next(),
            Self::Onward { gaps, at, last, max } => {
                let key = *last;
                if key > *max {
                    return None;
                }
                *last = key.saturating_add(gaps[*at]);
                *at = if *at + 1 == gaps.len() { 0 } else { *at + 1 };
                Some(key)
            }
        }
    }
}

impl Source for Grown {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        chunk.clear();
        let wanted = (self.rows - self.read).min(tuples_max as u64) as usize;
        let keys = std::iter::from_fn(|| self.keys.next()).take(wanted);
        match &mut chunk.keys {
            Column::U32(words) => words.extend(keys.map(|key| key as u32)),
            Column::U64(words) => words.extend(keys.map(|key| key as u64)),
            Column::U128(words) => words.extend(keys),
            Column::None | Column::Bytes(_) => {}
        }
        let mut left = chunk.len();
        self.read += left as u64;
        while left > 0 {
            let (at, row) = self.value;
            let from = &self.chunks[at];
            let some = left.min(from.len() - row);
            extend(&mut chunk.values, &from.values, row, some);
            left -= some;
            let is_end = row + some == from.len();
            self.value = if is_end { ((at + 1) % self.chunks.len(), 0) } else { (at, row + some) };
        }
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.read, Some(self.rows))
    }
}

fn extend(to: &mut Column, from: &Column, at: usize, count: usize) {
    match (to, from) {
        (Column::U32(to), Column::U32(from)) => to.extend_from_slice(&from[at..at + count]),
        (Column::U64(to), Column::U64(from)) => to.extend_from_slice(&from[at..at + count]),
        (Column::U128(to), Column::U128(from)) => to.extend_from_slice(&from[at..at + count]),
        (to, from) => (at..at + count).for_each(|at| push(to, from, at)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::input::Total;
    use super::*;
    use pleach_format::ValueType;
    use std::time::Duration;

    fn grown(keys: Vec<u64>, is_sorted: bool, rows: u64) -> Vec<u64> {
        let count = keys.len() as u64;
        let values = Column::U64((0..count).collect());
        let chunks = vec![Chunk { keys: Column::U64(keys), values, ops: Vec::new() }];
        let sample = Sample {
            schema: Schema::plain(KeyType::U64, ValueType::U64, None),
            chunks: chunks.into(),
            rows: count,
            total: Total::About(rows),
            is_whole: false,
            is_sorted,
            read: (0, None),
            took: Duration::ZERO,
        };
        let mut source = Grown::new(&sample, rows).expect("numbers");
        let (mut all, mut chunk) = (Vec::new(), Chunk::new(KeyType::U64, ValueType::U64));
        loop {
            source.next_chunk(&mut chunk, 1000).expect("rows");
            assert_eq!(chunk.keys.len(), chunk.values.len());
            match &chunk.keys {
                Column::U64(keys) if !keys.is_empty() => all.extend_from_slice(keys),
                _ => return all,
            }
        }
    }

    #[test]
    fn ordered_keys_go_on_as_they_began() {
        assert_eq!(grown(vec![10, 11, 14], true, 7), [10, 11, 14, 15, 18, 19, 22]);
        // Up to the last key that there is.
        assert_eq!(grown(vec![u64::MAX - 3, u64::MAX - 1], true, 9), [u64::MAX - 3, u64::MAX - 1]);
    }

    #[test]
    fn other_keys_are_between_those_that_are_known() {
        // Half of the keys are in a hundredth of the range; all are multiples of 16.
        let key = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24 << 4;
        let keys: Vec<u64> =
            (0..8192).map(|at| if at % 2 == 0 { key(at) } else { key(at) / 1600 * 16 }).collect();
        let (low, high) =
            (keys.iter().min().copied().expect("keys"), keys.iter().max().copied().expect("keys"));
        let all = grown(keys, false, 1 << 17);
        assert!(all.is_sorted() && all[0] >= low && all[all.len() - 1] <= high);
        assert!(all.iter().all(|key| key % 16 == 0));
        assert!((125_000..138_000).contains(&all.len()), "{}", all.len());
        let dense = all.iter().filter(|&&key| key < (1 << 44) / 100).count() as f64 / all.len() as f64;
        assert!((0.45..0.56).contains(&dense), "{dense}");
    }

    #[test]
    fn few_different_keys_stay_few() {
        let all = grown((0..4096).map(|at| (at * 7 % 13) * 1000).collect(), false, 1 << 15);
        assert!((30_000..36_000).contains(&all.len()) && all.is_sorted(), "{}", all.len());
    }
}
