//! Answers of two inputs as positions in them, and the chunks made from these.
//!
//! Positions are small, but the elements at them need not be: a long string that matches a hundred thousand
//! tuples is copied as often. So a chunk takes only as many positions as its limit of bytes allows; the
//! others wait.

use super::chunk::Chunk;
use super::columns::{NONE, take_either, take_keys, take_or_zeros};
use super::matched::expanded;
use crate::memory::Run;
use crate::rules::How;
use pleach::{KeyType, ValueType};
use pleach_builder::Column;
use rayon::prelude::*;
use std::sync::Arc;

/// Rules for making tuples of an answer from tuples of both inputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// True if a tuple comes from one side, and is not a pair.
    pub is_either: bool,
    pub has_sides: bool,
    /// Type of the keys if a pair has its right key too.
    pub right_key: Option<KeyType>,
    /// Types of the values of both inputs.
    pub value_types: (ValueType, ValueType),
    /// Bytes of strings per chunk.
    pub chunk_bytes: usize,
}

/// Keys and values of a piece of both inputs.
pub(super) struct Both {
    pub left: (Column, Column),
    pub right: (Column, Column),
    pub shape: Shape,
}

/// Tuples of an answer: a position in each side, or [`NONE`].
pub(super) struct Positions {
    both: Arc<Both>,
    left: Vec<u32>,
    right: Vec<u32>,
    /// Number of positions that are already in chunks.
    at: usize,
}

/// Runs of equal keys with more answers than are expanded at once.
pub(super) struct Runs {
    pub both: Arc<Both>,
    pub how: How,
    pub runs: Vec<Run>,
    /// Number of answers that are already positions.
    pub at: u64,
    pub total: u64,
}

impl Both {
    /// Returns the bytes of the strings of a tuple, and of the zeros for missing ones.
    fn tuple_bytes(&self, i: u32, j: u32) -> usize {
        let of = |column: &Column, row: u32, absent_bytes: usize| match column {
            Column::Bytes(_) if row == NONE => absent_bytes,
            Column::Bytes(strings) => strings.get(row as usize).len(),
            _ => 0,
        };
        let keys = if i == NONE { of(&self.right.0, j, 0) } else { of(&self.left.0, i, 0) };
        let (left, right) = match self.shape.is_either {
            true => (0, 0),
            false => (self.shape.value_types.0.bytes(), self.shape.value_types.1.bytes()),
        };
        let right_key = self.shape.right_key.map_or(0, |key| of(&self.right.0, j, key.bytes()));
        keys + right_key + of(&self.left.1, i, left).saturating_add(of(&self.right.1, j, right))
    }

    /// Returns how many of the first tuples make a chunk: at least one, if there are any.
    fn fitting(&self, i: &[u32], j: &[u32]) -> usize {
        let columns = [&self.left.0, &self.left.1, &self.right.0, &self.right.1];
        if !columns.into_iter().any(|column| matches!(column, Column::Bytes(_))) {
            return i.len();
        }
        let mut bytes = 0usize;
        let fits = |(&i, &j): (&u32, &u32)| {
            bytes = bytes.saturating_add(self.tuple_bytes(i, j));
            bytes <= self.shape.chunk_bytes
        };
        i.iter().zip(j).map(fits).take_while(|&fits| fits).count().max(1).min(i.len())
    }

    fn chunk(&self, i: &[u32], j: &[u32]) -> Chunk {
        let keys = take_either(&self.left.0, &self.right.0, (i, j));
        if self.shape.is_either {
            let values = take_either(&self.left.1, &self.right.1, (i, j));
            return Chunk { keys, values, ..Chunk::default() };
        }
        let sides = |(&i, &j): (&u32, &u32)| u8::from(i != NONE) | u8::from(j != NONE) << 1;
        let (left, right) = self.shape.value_types;
        Chunk {
            keys,
            values: take_or_zeros(&self.left.1, i, left.bytes()),
            right: take_or_zeros(&self.right.1, j, right.bytes()),
            right_keys: match self.shape.right_key {
                Some(key) => take_keys(&self.right.0, j, key),
                None => Column::None,
            },
            sides: if self.shape.has_sides { i.iter().zip(j).map(sides).collect() } else { Vec::new() },
            first_rank: 0,
        }
    }
}

impl Positions {
    pub(super) fn new(both: Arc<Both>, left: Vec<u32>, right: Vec<u32>) -> Self {
        Self { both, left, right, at: 0 }
    }

    /// Returns the number of tuples that remain.
    pub(super) fn len(&self) -> usize {
        self.left.len() - self.at
    }

    /// Returns true if the remaining tuples fit into one chunk.
    pub(super) fn is_chunk(&self) -> bool {
        self.both.fitting(&self.left[self.at..], &self.right[self.at..]) == self.len()
    }

    /// Returns the next chunk, empty at the end.
    pub(super) fn next_chunk(&mut self) -> Chunk {
        let (i, j) = (&self.left[self.at..], &self.right[self.at..]);
        let count = self.both.fitting(i, j);
        let chunk = self.both.chunk(&i[..count], &j[..count]);
        self.at += count;
        chunk
    }
}

impl Runs {
    /// Returns the next positions, `tuples` in each part and a part for each thread.
    pub(super) fn expand(&mut self, tuples: u64) -> Vec<Positions> {
        pleach_builder::pool::ready();
        let threads = rayon::current_num_threads() as u64;
        let end = self.total.min(self.at.saturating_add(threads.saturating_mul(tuples)));
        let this = &*self;
        let parts = (0..(end - this.at).div_ceil(tuples)).into_par_iter().map(|number| {
            let from = this.at + number * tuples;
            let (left, right) = expanded(this.how, &this.runs, from, (from + tuples).min(end));
            Positions::new(Arc::clone(&this.both), left, right)
        });
        let parts = parts.collect();
        self.at = end;
        parts
    }
}
