//! Tuples of a piece of two inputs that are in the answer, and their columns.

use super::columns::NONE;
use super::cut::Operator;
use crate::memory::{
    Buffer, Emit, Part, Run, Walk, expand, is_distinct, runs, sweep_here, with_join_walk, with_set_walk,
};
use crate::rules::How;
use pleach_builder::{Column, Strings};
use pleach_format::Word;

/// Positions of the tuples of an answer, or the runs from which they are expanded in parts.
pub(super) enum Matched {
    Rows(Vec<u32>, Vec<u32>),
    Runs(How, Vec<Run>, u64),
}

#[derive(Default)]
struct Rows {
    left: Vec<u32>,
    right: Vec<u32>,
}

impl<K> Emit<K> for Rows {
    #[inline(always)]
    unsafe fn write_at(&mut self, at: usize, i: usize, j: usize, _: K, left: bool, right: bool) {
        // SAFETY: `reserve` made both this long, and `at` is below the number of reserved places.
        unsafe {
            *self.left.get_unchecked_mut(at) = if left { i as u32 } else { NONE };
            *self.right.get_unchecked_mut(at) = if right { j as u32 } else { NONE };
        }
    }
}

impl<K> Buffer<K> for Rows {
    fn reserve(&mut self, room: usize) {
        self.left.resize(room, NONE);
        self.right.resize(room, NONE);
    }
    unsafe fn place(&self, _: usize, _: usize, _: u64) {}
}

fn rows<W: Walk, K: Word>(a: &[K], b: &[K]) -> Matched {
    let mut rows = Rows::default();
    let pieces = sweep_here::<W, K, Rows>(a, b, &mut rows);
    // Closes the gaps between the pieces.
    let mut to = 0;
    for (from, count) in pieces {
        rows.left.copy_within(from..from + count, to);
        rows.right.copy_within(from..from + count, to);
        to += count;
    }
    rows.left.truncate(to);
    rows.right.truncate(to);
    Matched::Rows(rows.left, rows.right)
}

fn words<K: Word>(a: &[K], b: &[K], operator: Operator) -> Matched {
    match operator {
        Operator::Set(operation, rule) => with_set_walk!(operation, rule, W => rows::<W, K>(a, b)),
        Operator::Join(how) if matches!(how, How::Semi | How::Anti) || is_distinct(b, (0, b.len())) => {
            with_join_walk!(how, W => rows::<W, K>(a, b))
        }
        Operator::Join(how) => {
            let part = Part { left: (0, a.len()), right: (0, b.len()) };
            // A piece has fewer tuples than 2^32 on a side, so that its pairs are below 2^64.
            match runs(a, b, part, how, u64::MAX) {
                Ok((runs, total)) => Matched::Runs(how, runs, total),
                Err(_) => Matched::Rows(Vec::new(), Vec::new()),
            }
        }
        Operator::Product => Matched::Rows(Vec::new(), Vec::new()),
    }
}

/// Returns the answer of an operator for two columns of keys of one type.
pub(super) fn matched(left: &Column, right: &Column, operator: Operator) -> Matched {
    match (left, right) {
        (Column::U32(a), Column::U32(b)) => words(a, b, operator),
        (Column::U64(a), Column::U64(b)) => words(a, b, operator),
        (Column::U128(a), Column::U128(b)) => words(a, b, operator),
        (Column::Bytes(a), Column::Bytes(b)) => {
            let (a, b) = ranked(a, b);
            words(&a, &b, operator)
        }
        _ => Matched::Rows(Vec::new(), Vec::new()),
    }
}

/// Maps byte strings to numbers of the same order: one merge compares the strings, all other steps compare
/// numbers.
pub(super) fn ranked(a: &Strings, b: &Strings) -> (Vec<u32>, Vec<u32>) {
    let (mut of_a, mut of_b) = (Vec::with_capacity(a.len()), Vec::with_capacity(b.len()));
    let (mut last, mut number): (Option<&[u8]>, u32) = (None, 0);
    while of_a.len() < a.len() || of_b.len() < b.len() {
        let (i, j) = (of_a.len(), of_b.len());
        let from_a = j == b.len() || (i < a.len() && a.get(i) <= b.get(j));
        let next = if from_a { a.get(i) } else { b.get(j) };
        number += u32::from(last.is_some_and(|last| last != next));
        last = Some(next);
        if from_a { of_a.push(number) } else { of_b.push(number) }
    }
    (of_a, of_b)
}

/// Returns the positions of answers `from..to` of some runs.
pub(super) fn expanded(how: How, runs: &[Run], from: u64, to: u64) -> (Vec<u32>, Vec<u32>) {
    let room = (to - from) as usize;
    let (mut left, mut right) = (Vec::with_capacity(room), Vec::with_capacity(room));
    expand(runs, how, (from, to), |i, j| {
        left.push(i.map_or(NONE, |i| i as u32));
        right.push(j.map_or(NONE, |j| j as u32));
    });
    (left, right)
}
