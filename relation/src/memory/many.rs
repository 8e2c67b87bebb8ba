//! Unions and intersections of more than two inputs.
//!
//! A union is a balanced tree of unions of neighbours: each tuple is copied log(inputs) times, and tuples of
//! earlier inputs stay before those of later ones. An intersection begins with the smallest input, so that it
//! is never larger than that, and ends with the first, whose tuples are the result.

use super::columns::{Columns, no_values};
use super::options::Options;
use super::set::{set_of_left, set_operation};
use crate::rules::{SetOperation, SetRule};
use pleach_format::Word;

/// Returns the union of all inputs: tuples of earlier inputs come first among equal keys. O(tuples
/// log(inputs)).
#[must_use]
pub fn union_all<K: Word, V: Copy + Send + Sync>(
    rule: SetRule,
    inputs: &[Columns<'_, K, V>],
    options: &Options,
) -> (Vec<K>, Vec<V>) {
    let none = Columns { keys: &[], values: &[] };
    match inputs {
        // The rule applies to a single input too.
        [] => (Vec::new(), Vec::new()),
        [one] => set_operation(SetOperation::Union, rule, *one, none, options),
        [one, other] => set_operation(SetOperation::Union, rule, *one, *other, options),
        _ => {
            let (left, right) = inputs.split_at(inputs.len() / 2);
            let (left, right) = (union_all(rule, left, options), union_all(rule, right, options));
            let columns = |both| {
                let (keys, values): &(Vec<K>, Vec<V>) = both;
                Columns { keys: keys.as_slice(), values: values.as_slice() }
            };
            set_operation(SetOperation::Union, rule, columns(&left), columns(&right), options)
        }
    }
}

/// Returns the intersection of all inputs: tuples of the first one. O(tuples), and less if one input is
/// small.
#[must_use]
pub fn intersect_all<K: Word, V: Copy + Send + Sync>(
    rule: SetRule,
    first: Columns<'_, K, V>,
    others: &[&[K]],
    options: &Options,
) -> (Vec<K>, Vec<V>) {
    let mut sorted: Vec<&[K]> = others.to_vec();
    sorted.sort_by_key(|keys| keys.len());
    let keep = |left: &[K], right: &[K]| {
        let left = Columns { keys: left, values: no_values(left.len()) };
        set_of_left(SetOperation::Intersection, rule, left, right, options).0
    };
    let Some((&smallest, rest)) = sorted.split_first() else {
        let copy = Columns { keys: first.keys, values: first.values };
        return set_of_left(SetOperation::Intersection, rule, copy, first.keys, options);
    };
    let mut keys = smallest.to_vec();
    for other in rest {
        keys = keep(&keys, other);
    }
    set_of_left(SetOperation::Intersection, rule, first, &keys, options)
}
