//! Union, intersection, difference. `rules.rs` specifies their results.

use super::buffer::{Nothing, Pairs, Tuples, into_two};
use super::columns::Columns;
use super::options::Options;
use super::ranks::RankPairs;
use super::sweep::sweep;
use super::walk::with_set_walk;
use crate::rules::{SetOperation, SetRule};
use pleach_format::Word;

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
    with_set_walk!(operation, rule, W => sweep::<W, K, _>(left.keys, right.keys, options, || Nothing))
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
    into_two(keys, values, capacity, |targets| {
        let of_either = || Tuples::of_either(left.values, right.values, targets);
        let of_left = || Tuples::of_left(left.values, targets);
        let (a, b) = (left.keys, right.keys);
        match operation {
            SetOperation::Union => {
                with_set_walk!(operation, rule, W => sweep::<W, K, _>(a, b, options, of_either))
            }
            _ => with_set_walk!(operation, rule, W => sweep::<W, K, _>(a, b, options, of_left)),
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
    into_two(&mut pairs.left, &mut pairs.right, count, |targets| {
        let pairs = || Pairs::new(targets);
        with_set_walk!(operation, rule, W => sweep::<W, K, _>(left.keys, right.keys, options, pairs))
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
    into_two(&mut keys, &mut values, left.len(), |targets| {
        let of_left = || Tuples::of_left(left.values, targets);
        with_set_walk!(operation, rule, W => sweep::<W, K, _>(left.keys, right, options, of_left))
    });
    (keys, values)
}
