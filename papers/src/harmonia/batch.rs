//! Batches: their operations, options and reports.

use super::group::Routed;
use super::{HarmoniaError, Tree, fold, is_key, query, update};
use crate::parallel;
use pleach_format::{Bits, Key, Value, Word};
use std::ops::AddAssign;
use std::time::{Duration, Instant};

/// One operation on one key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<K, V> {
    /// Sets the value of the key, whether or not it exists.
    Put(K, V),
    /// Sets the value of the key if it exists.
    Update(K, V),
    /// Removes the key if it exists.
    Delete(K),
}

impl<K: Copy, V> Change<K, V> {
    /// Returns the key of the operation.
    #[inline(always)]
    pub fn key(&self) -> K {
        match self {
            Self::Put(key, _) | Self::Update(key, _) | Self::Delete(key) => *key,
        }
    }
}

/// Order in which operations reach the leaves. The result is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// By leaf; one thread applies the operations of a leaf, in the order of the batch. Each leaf is read
    /// once.
    #[default]
    Leaf,
    /// In the order of the batch, in pieces, as in the paper. Several operations on one key would race, so
    /// they are folded into one beforehand: the last Put or Delete wins, and Updates after a Put change its
    /// value.
    Batch,
}

/// Granularity of changes to the paper's global count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Counting {
    /// Once for many operations.
    #[default]
    Chunk,
    /// Twice for each operation, as in Algorithm 1 (with [`Order::Leaf`], too).
    Operation,
}

/// Options for applying a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BatchOptions {
    /// Number of threads; 0 selects the current pool.
    pub threads: usize,
    /// Order of operations.
    pub order: Order,
    /// Granularity of the global count.
    pub counting: Counting,
}

/// Report of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Number of keys added.
    pub inserted: u64,
    /// Number of values set for existing keys.
    pub updated: u64,
    /// Number of keys removed.
    pub deleted: u64,
    /// Number of deletes of keys that did not exist.
    pub absent_deletes: u64,
    /// Number of updates of keys that did not exist.
    pub absent_updates: u64,
    /// Number of operations skipped because a later one on the same key made them void ([`Order::Batch`]
    /// alone).
    pub superseded: u64,
    /// Number of leaves that were split, each into two.
    pub splits: u64,
    /// Number of leaves joined with a neighbour, including those joined by the movement.
    pub merges: u64,
    /// Number of nodes laid out anew: all or none.
    pub nodes_moved: u64,
    /// Time to find the leaves.
    pub query: Duration,
    /// Time to sort or fold operations.
    pub group: Duration,
    /// Time to change leaves.
    pub update: Duration,
    /// Time to lay out nodes.
    pub movement: Duration,
}

impl AddAssign for Report {
    fn add_assign(&mut self, other: Self) {
        self.inserted += other.inserted;
        self.updated += other.updated;
        self.deleted += other.deleted;
        self.absent_deletes += other.absent_deletes;
        self.absent_updates += other.absent_updates;
        self.superseded += other.superseded;
        self.splits += other.splits;
        self.merges += other.merges;
        self.nodes_moved += other.nodes_moved;
        self.query += other.query;
        self.group += other.group;
        self.update += other.update;
        self.movement += other.movement;
    }
}

/// Kind of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    #[default]
    Put,
    Update,
    Delete,
    /// Does nothing: a later operation replaces it.
    Void,
}

/// An operation with the leaf that it is for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step<W, B> {
    pub key: W,
    pub value: B,
    pub leaf: u32,
    pub kind: Kind,
}

impl<W: Word, B: Bits> Routed for Step<W, B> {
    #[inline(always)]
    fn leaf(&self) -> u32 {
        self.leaf
    }
}

impl<W: Word, B: Bits> Step<W, B> {
    #[inline(always)]
    pub fn new<K: Key<Word = W>, V: Value<Bits = B>>(change: &Change<K, V>, leaf: u32) -> Self {
        let (key, value, kind) = match *change {
            Change::Put(key, value) => (key, value.to_bits(), Kind::Put),
            Change::Update(key, value) => (key, value.to_bits(), Kind::Update),
            Change::Delete(key) => (key, B::default(), Kind::Delete),
        };
        Self { key: key.encode(), value, leaf, kind }
    }
}

/// Runs the phases one after another.
pub(super) fn apply<K: Key, V: Value>(
    tree: &mut Tree<K::Word, V::Bits>,
    batch: &[Change<K, V>],
    options: &BatchOptions,
) -> Result<Report, HarmoniaError> {
    if let Some(at) = parallel::find_first(batch.len(), 1 << 13, |at| !is_key(batch[at].key())) {
        return Err(HarmoniaError::NotAKey { at });
    }
    // Each operation adds at most one leaf.
    let leaves = tree.leaves() as u64 + batch.len() as u64;
    if batch.len() > u32::MAX as usize {
        return Err(HarmoniaError::TooLarge);
    }
    tree.shape.geometry::<K::Word, V::Bits>(leaves)?;
    if batch.is_empty() {
        return Ok(Report::default());
    }
    if tree.tuples == 0 {
        return fold::load(tree, batch);
    }
    let start = Instant::now();
    let leaves_of = query::leaves_of(tree, batch);
    let query = start.elapsed();
    let mut report = update::update(tree, batch, &leaves_of, options)?;
    report.query = query;
    Ok(report)
}
