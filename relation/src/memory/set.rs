//! Union, intersection, difference. `rules.rs` specifies their results.

use super::sweep::{Buffer, Held, Nothing, Pairs, into_two, sweep};
use super::walk::{
    DifferenceMultiset, DifferenceSet, Emit, IntersectionMultiset, IntersectionSet, UnionMultiset, UnionSet,
};
use super::{Columns, Options, RankPairs};
use crate::rules::{SetOperation, SetRule};
use pleach_format::Word;

/// Evaluates an expression with `W` as the walk of an operation.
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
    unsafe fn write_at(&mut self, at: usize, i: usize, _: usize, key: K, _: bool, _: bool) {
        // SAFETY: only walks that emit no right tuple alone use this type, so `i` is a left rank; there are
        // as many values as keys; the caller guarantees room at `at`.
        unsafe {
            self.keys.write_at(at, key);
            if size_of::<V>() > 0 {
                self.values.write_at(at, *self.left.as_ptr().add(i));
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
        // SAFETY: the caller guarantees that the tuples were emitted, and that no other thread writes to
        // these places.
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
    unsafe fn write_at(&mut self, at: usize, i: usize, j: usize, key: K, left: bool, _: bool) {
        // SAFETY: a tuple without a left part has a right one, and there are as many values as keys; the
        // caller guarantees the ranks, and room at `at`.
        unsafe {
            self.keys.write_at(at, key);
            if size_of::<V>() > 0 {
                let from = if left { self.left.as_ptr().add(i) } else { self.right.as_ptr().add(j) };
                self.values.write_at(at, *from);
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
        // SAFETY: the caller guarantees that the tuples were emitted, and that no other thread writes to
        // these places.
        unsafe {
            self.keys.place(from, count, to);
            self.values.place(from, count, to);
        }
    }
}

/// Returns the maximum number of tuples of an answer.
fn bound<K: Word, V: Copy>(
    operation: SetOperation,
    left: &Columns<'_, K, V>,
    right: &Columns<'_, K, V>,
) -> usize {
    match operation {
        // Two slices in memory have fewer elements together than there are addresses; for `()`, saturate.
        SetOperation::Union => left.len().saturating_add(right.len()),
        SetOperation::Intersection => left.len().min(right.len()),
        SetOperation::Difference => left.len(),
    }
}

/// Counts the tuples of an operation's result. O(|A| + |B|), writes nothing.
pub fn set_count<K: Word, V: Copy + Send + Sync>(
    operation: SetOperation,
    rule: SetRule,
    left: Columns<'_, K, V>,
    right: Columns<'_, K, V>,
    options: &Options,
) -> u64 {
    with_walk!(operation, rule, W => sweep::<W, K, _>(left.keys, right.keys, options, || Nothing))
}

/// Runs an operation in one pass, into vectors whose memory is reused: it reserves room for the largest
/// answer, but touches only what it writes. O(|A| + |B|).
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

/// Runs an operation in one pass. O(|A| + |B|).
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

/// Returns the ranks of the tuples of a result, in two passes: the first counts, so that exactly as much
/// memory is taken. A tuple that stands for one of each side has both ranks. O(|A| + |B|).
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

/// Runs an intersection or a difference, with only keys on the right, in one pass. O(|A| + |B|).
///
/// # Panics
/// If the operation is a union, which has values of both sides.
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
