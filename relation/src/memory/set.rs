//! Union, intersection, difference. See `rules.rs` for what they answer.

use super::sweep::{Buffer, Held, Nothing, Pairs, into_two, sweep};
use super::walk::{
    DifferenceMultiset, DifferenceSet, Emit, IntersectionMultiset, IntersectionSet, UnionMultiset, UnionSet,
};
use super::{Columns, Options, RankPairs};
use crate::rules::{SetOperation, SetRule};
use pleach_format::Word;

/// Evaluates an expression with `W` the walk of an operation.
macro_rules! with_walk {
    ($operation:expr, $rule:expr, $walk:ident => $body:expr) => {
        match ($operation, $rule) {
            (SetOperation::Union, SetRule::Set) => with_walk!(@one UnionSet, $walk => $body),
            (SetOperation::Union, SetRule::Multiset) => with_walk!(@one UnionMultiset, $walk => $body),
            (SetOperation::Intersection, SetRule::Set) => with_walk!(@one IntersectionSet, $walk => $body),
            (SetOperation::Intersection, SetRule::Multiset) => {
                with_walk!(@one IntersectionMultiset, $walk => $body)
            }
            (SetOperation::Difference, SetRule::Set) => with_walk!(@one DifferenceSet, $walk => $body),
            (SetOperation::Difference, SetRule::Multiset) => with_walk!(@one DifferenceMultiset, $walk => $body),
        }
    };
    (@one $one:ident, $walk:ident => $body:expr) => {{
        type $walk = $one;
        $body
    }};
}

/// Tuples of the left side.
pub(super) struct LeftTuples<'a, 't, K, V> {
    pub(super) left: &'a [V],
    pub(super) keys: Held<'t, K>,
    pub(super) values: Held<'t, V>,
}

impl<K: Copy, V: Copy> Emit<K> for LeftTuples<'_, '_, K, V> {
    #[inline(always)]
    unsafe fn put(&mut self, at: usize, i: usize, _: usize, key: K, _: bool, _: bool) {
        // SAFETY: only walks that have no right tuples alone use this: they always give a left rank; there are as
        // many values as keys; the rest is the caller's contract.
        unsafe {
            self.keys.put(at, key);
            if size_of::<V>() > 0 {
                self.values.put(at, *self.left.as_ptr().add(i));
            }
        }
    }
}

impl<K: Copy, V: Copy> Buffer<K> for LeftTuples<'_, '_, K, V> {
    fn reserve(&mut self, room: usize) {
        self.keys.reserve(room);
        self.values.reserve(room);
    }
    fn keys_alone(&mut self) -> Option<*mut K> {
        (size_of::<V>() == 0).then(|| self.keys.start())
    }
    unsafe fn place(&self, from: usize, count: usize, to: u64) {
        // SAFETY: the caller's contract is theirs.
        unsafe {
            self.keys.place(from, count, to);
            self.values.place(from, count, to);
        }
    }
}

/// Tuples of both sides, which have values of one type.
struct Tuples<'a, 't, K, V> {
    left: &'a [V],
    right: &'a [V],
    keys: Held<'t, K>,
    values: Held<'t, V>,
}

impl<K: Copy, V: Copy> Emit<K> for Tuples<'_, '_, K, V> {
    #[inline(always)]
    unsafe fn put(&mut self, at: usize, i: usize, j: usize, key: K, left: bool, _: bool) {
        // SAFETY: a tuple without a left part has a right one, and there are as many values as keys; the
        // rest is the caller's contract.
        unsafe {
            self.keys.put(at, key);
            if size_of::<V>() > 0 {
                let from = if left { self.left.as_ptr().add(i) } else { self.right.as_ptr().add(j) };
                self.values.put(at, *from);
            }
        }
    }
}

impl<K: Copy, V: Copy> Buffer<K> for Tuples<'_, '_, K, V> {
    fn reserve(&mut self, room: usize) {
        self.keys.reserve(room);
        self.values.reserve(room);
    }
    fn keys_alone(&mut self) -> Option<*mut K> {
        (size_of::<V>() == 0).then(|| self.keys.start())
    }
    unsafe fn place(&self, from: usize, count: usize, to: u64) {
        // SAFETY: the caller's contract is theirs.
        unsafe {
            self.keys.place(from, count, to);
            self.values.place(from, count, to);
        }
    }
}

/// Most tuples of an answer.
fn bound<K: Word, V: Copy>(
    operation: SetOperation,
    left: &Columns<'_, K, V>,
    right: &Columns<'_, K, V>,
) -> usize {
    match operation {
        // Two slices in memory have fewer elements together than there are addresses; of `()`, saturate.
        SetOperation::Union => left.len().saturating_add(right.len()),
        SetOperation::Intersection => left.len().min(right.len()),
        SetOperation::Difference => left.len(),
    }
}

/// How many tuples an operation answers. O(|A| + |B|), writes nothing.
pub fn set_count<K: Word, V: Copy + Send + Sync>(
    operation: SetOperation,
    rule: SetRule,
    left: Columns<'_, K, V>,
    right: Columns<'_, K, V>,
    options: &Options,
) -> u64 {
    with_walk!(operation, rule, W => sweep::<W, K, _>(left.keys, right.keys, options, || Nothing))
}

/// An operation in one pass, into vectors whose memory is used again: room for every answer is made, but what is not
/// written is not touched. O(|A| + |B|).
pub fn set_into<K: Word, V: Copy + Send + Sync>(
    operation: SetOperation,
    rule: SetRule,
    left: Columns<'_, K, V>,
    right: Columns<'_, K, V>,
    options: &Options,
    (keys, values): (&mut Vec<K>, &mut Vec<V>),
) {
    let capacity = bound(operation, &left, &right);
    into_two(keys, values, capacity, |keys, values| {
        let buffer = || Tuples {
            left: left.values,
            right: right.values,
            keys: Held::new(keys),
            values: Held::new(values),
        };
        let of_left = || LeftTuples { left: left.values, keys: Held::new(keys), values: Held::new(values) };
        let (a, b) = (left.keys, right.keys);
        match operation {
            SetOperation::Union => {
                with_walk!(operation, rule, W => sweep::<W, K, _>(a, b, options, buffer))
            }
            _ => with_walk!(operation, rule, W => sweep::<W, K, _>(a, b, options, of_left)),
        }
    });
}

/// An operation in one pass. O(|A| + |B|).
#[must_use]
pub fn set_operation<K: Word, V: Copy + Send + Sync>(
    operation: SetOperation,
    rule: SetRule,
    left: Columns<'_, K, V>,
    right: Columns<'_, K, V>,
    options: &Options,
) -> (Vec<K>, Vec<V>) {
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    set_into(operation, rule, left, right, options, (&mut keys, &mut values));
    (keys, values)
}

/// Ranks of the tuples of an answer, in two passes: the first counts, so that exactly as much memory is taken. Of a
/// tuple that stands for one of each side both ranks are given. O(|A| + |B|).
#[must_use]
pub fn set_ranks<K: Word, V: Copy + Send + Sync>(
    operation: SetOperation,
    rule: SetRule,
    left: Columns<'_, K, V>,
    right: Columns<'_, K, V>,
    options: &Options,
) -> RankPairs {
    let count = set_count(operation, rule, left, right, options) as usize;
    let mut pairs = RankPairs::default();
    into_two(&mut pairs.left, &mut pairs.right, count, |one, two| {
        let buffer = || Pairs { left: Held::new(one), right: Held::new(two) };
        with_walk!(operation, rule, W => sweep::<W, K, _>(left.keys, right.keys, options, buffer))
    });
    pairs
}

/// An intersection or a difference with keys alone on the right, in one pass. O(|A| + |B|).
///
/// # Panics
/// If it is a union: that has values of both sides.
#[must_use]
pub fn set_of_left<K: Word, V: Copy + Send + Sync>(
    operation: SetOperation,
    rule: SetRule,
    left: Columns<'_, K, V>,
    right: &[K],
    options: &Options,
) -> (Vec<K>, Vec<V>) {
    assert!(operation != SetOperation::Union, "a union has values of both sides");
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    into_two(&mut keys, &mut values, left.len(), |keys, values| {
        let of_left = || LeftTuples { left: left.values, keys: Held::new(keys), values: Held::new(values) };
        with_walk!(operation, rule, W => sweep::<W, K, _>(left.keys, right, options, of_left))
    });
    (keys, values)
}
