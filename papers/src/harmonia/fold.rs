//! Folding of several operations on one key into one.
//!
//! A Put or a Delete makes all before it void. An Update after a Put is a Put of the new value; after a
//! Delete it does nothing; after an Update it replaces it. So the operations on one key equal a single one,
//! done in the place of the last of them. Operations on different keys commute, so folded operations may
//! reach the leaves in any order.
//!
//! Equal keys are found leaf by leaf: operations are sorted by leaf, and those of one leaf by key. A batch
//! for an empty tree, which has no leaf to lock, is sorted as a whole and loaded.

use super::assemble::Shape;
use super::batch::{Kind, Step};
use super::group::{Routed, Scratch, group};
use super::{Change, HarmoniaError, Report, Tree};
use crate::parallel::{self, Scratches};
use pleach_format::{Bits, Key, Value, Word};
use rayon::prelude::*;
use std::time::Instant;

/// Returns the effect of the second of two operations on one key if the first is not done.
fn folded(first: Kind, second: Kind) -> Kind {
    match (first, second) {
        (Kind::Put | Kind::Delete, Kind::Update) => first,
        _ => second,
    }
}

/// A key of a batch.
#[derive(Clone, Copy, Default)]
struct Keyed<W> {
    key: W,
    leaf: u32,
    at: u32,
}

impl<W: Word> Routed for Keyed<W> {
    fn leaf(&self) -> u32 {
        self.leaf
    }
}

/// Returns the effect of each operation after folding, and the number of operations that became void.
pub(super) fn kinds<K: Key, V: Value>(
    batch: &[Change<K, V>],
    leaves_of: &[u32],
    leaves: u32,
) -> (Vec<Kind>, u64) {
    let kind = |at: usize| Step::new(&batch[at], 0).kind;
    let keyed = |at: usize| Keyed { key: batch[at].key().encode(), leaf: leaves_of[at], at: at as u32 };
    let groups = group(leaves_of, leaves, keyed);
    let fold = |(scratch, run): &mut (Scratch<_>, Vec<Keyed<K::Word>>), bucket: usize| {
        let mut changed = Vec::new();
        for operations in groups.bucket(bucket, scratch).chunk_by(|left, right| left.leaf == right.leaf) {
            if operations.len() < 2 {
                continue;
            }
            run.clear();
            run.extend_from_slice(operations);
            run.sort_unstable_by_key(|operation| (operation.key, operation.at));
            for equal in run.chunk_by(|left, right| left.key == right.key).filter(|equal| equal.len() > 1) {
                let (last, before) = (equal[equal.len() - 1].at, &equal[..equal.len() - 1]);
                let all = equal.iter().map(|operation| kind(operation.at as usize));
                changed.extend(all.reduce(folded).map(|kind| (last, kind)));
                changed.extend(before.iter().map(|operation| (operation.at, Kind::Void)));
            }
        }
        changed
    };
    let scratches = Scratches::default();
    let changed = parallel::map(groups.buckets(), |bucket| scratches.with(|scratch| fold(scratch, bucket)));
    let mut kinds = parallel::collect(batch.len(), 1 << 14, kind);
    let mut superseded = 0;
    for &(at, kind) in changed.iter().flatten() {
        kinds[at as usize] = kind;
        superseded += u64::from(kind == Kind::Void);
    }
    (kinds, superseded)
}

/// Applies a batch to an empty tree.
pub(super) fn load<K: Key, V: Value>(
    tree: &mut Tree<K::Word, V::Bits>,
    batch: &[Change<K, V>],
) -> Result<Report, HarmoniaError> {
    let start = Instant::now();
    let order = order((0u32..).zip(batch).map(|(at, change)| (change.key().encode(), at)).collect());
    let mut report = Report::default();
    let mut tuples = Vec::new();
    for equal in order.chunk_by(|left, right| left.0 == right.0) {
        let mut value = None;
        for &(_, at) in equal {
            let step = Step::new(&batch[at as usize], 0);
            let (counter, after) = match (step.kind, value) {
                (Kind::Delete, None) => (&mut report.absent_deletes, None),
                (Kind::Delete | Kind::Void, _) => (&mut report.deleted, None),
                (Kind::Update, None) => (&mut report.absent_updates, None),
                (Kind::Put, None) => (&mut report.inserted, Some(step.value)),
                (Kind::Put | Kind::Update, Some(_)) => (&mut report.updated, Some(step.value)),
            };
            *counter += 1;
            value = after;
        }
        tuples.extend(value.map(|value| (equal[0].0, value)));
    }
    report.group = start.elapsed();
    let start = Instant::now();
    *tree = of_tuples(tree.shape, &tuples)?;
    report.nodes_moved = tree.geometry.nodes;
    report.movement = start.elapsed();
    Ok(report)
}

/// Sorts keys and places, stored as pairs, so that sorting is compiled for words alone.
fn order<W: Word>(mut keys: Vec<(W, u32)>) -> Vec<(W, u32)> {
    pleach_builder::pool::ready();
    keys.par_sort_unstable();
    keys
}

fn of_tuples<W: Word, B: Bits>(shape: Shape, tuples: &[(W, B)]) -> Result<Tree<W, B>, HarmoniaError> {
    let full = shape.node_keys as usize;
    Tree::assemble(shape, tuples.len().div_ceil(full), |leaf, keys, values| {
        let tuples = &tuples[leaf * full..tuples.len().min((leaf + 1) * full)];
        for (slot, &(key, value)) in tuples.iter().enumerate() {
            (keys[slot], values[slot]) = (key, value);
        }
        tuples.len()
    })
}
