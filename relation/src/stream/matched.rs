//! Tuples of a piece of two inputs that are in the answer, and their columns.

use super::cut::Operator;
use crate::memory::join::{Run, expand, runs};
use crate::memory::sweep::{Buffer, is_distinct, sweep_here};
use crate::memory::walk::{
    Anti, DifferenceMultiset, DifferenceSet, Emit, FullOuter, IntersectionMultiset, IntersectionSet,
    LeftOuter, Part, RightOuter, Semi, UnionMultiset, UnionSet, Walk,
};
use crate::rules::{How, SetOperation, SetRule};
use pleach_builder::{Column, Strings};
use pleach_format::Word;

/// Position of a missing tuple.
pub(super) const NONE: u32 = u32::MAX;

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
        Operator::Set(SetOperation::Union, SetRule::Set) => rows::<UnionSet, K>(a, b),
        Operator::Set(SetOperation::Union, SetRule::Multiset) => rows::<UnionMultiset, K>(a, b),
        Operator::Set(SetOperation::Intersection, SetRule::Set) => rows::<IntersectionSet, K>(a, b),
        Operator::Set(SetOperation::Intersection, SetRule::Multiset) => rows::<IntersectionMultiset, K>(a, b),
        Operator::Set(SetOperation::Difference, SetRule::Set) => rows::<DifferenceSet, K>(a, b),
        Operator::Set(SetOperation::Difference, SetRule::Multiset) => rows::<DifferenceMultiset, K>(a, b),
        Operator::Join(How::Semi) => rows::<Semi, K>(a, b),
        Operator::Join(How::Anti) => rows::<Anti, K>(a, b),
        Operator::Join(how) if is_distinct(b, (0, b.len())) => match how {
            How::Left => rows::<LeftOuter, K>(a, b),
            How::Right => rows::<RightOuter, K>(a, b),
            How::Full => rows::<FullOuter, K>(a, b),
            _ => rows::<Semi, K>(a, b),
        },
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
fn ranked(a: &Strings, b: &Strings) -> (Vec<u32>, Vec<u32>) {
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

/// Returns the elements at positions, all of which exist.
pub(crate) fn take(column: &Column, rows: &[u32]) -> Column {
    take_or_zeros(column, rows, 0)
}

/// Returns the elements at positions; zero, or a string of `absent_bytes` zero bytes, where a position is
/// [`NONE`].
pub(super) fn take_or_zeros(column: &Column, rows: &[u32], absent_bytes: usize) -> Column {
    fn words<W: Copy + Default>(words: &[W], rows: &[u32]) -> Vec<W> {
        rows.iter().map(|&row| words.get(row as usize).copied().unwrap_or_default()).collect()
    }
    match column {
        Column::None => Column::None,
        Column::U32(column) => Column::U32(words(column, rows)),
        Column::U64(column) => Column::U64(words(column, rows)),
        Column::U128(column) => Column::U128(words(column, rows)),
        Column::Bytes(strings) => {
            let absent = vec![0; absent_bytes];
            let mut taken = Strings::default();
            rows.iter()
                .for_each(|&row| taken.push(if row == NONE { &absent } else { strings.get(row as usize) }));
            Column::Bytes(taken)
        }
    }
}

/// Returns elements of the left column where there is a left position, otherwise of the right one.
pub(super) fn take_either(left: &Column, right: &Column, rows: (&[u32], &[u32])) -> Column {
    fn words<W: Copy + Default>(left: &[W], right: &[W], (i, j): (&[u32], &[u32])) -> Vec<W> {
        let one = |(&i, &j): (&u32, &u32)| left.get(i as usize).or_else(|| right.get(j as usize)).copied();
        i.iter().zip(j).map(|rows| one(rows).unwrap_or_default()).collect()
    }
    match (left, right) {
        (Column::U32(left), Column::U32(right)) => Column::U32(words(left, right, rows)),
        (Column::U64(left), Column::U64(right)) => Column::U64(words(left, right, rows)),
        (Column::U128(left), Column::U128(right)) => Column::U128(words(left, right, rows)),
        (Column::Bytes(left), Column::Bytes(right)) => {
            let mut taken = Strings::default();
            for (&i, &j) in rows.0.iter().zip(rows.1) {
                taken.push(if i == NONE { right.get(j as usize) } else { left.get(i as usize) });
            }
            Column::Bytes(taken)
        }
        _ => take(left, rows.0),
    }
}
