//! A batch: its operations, how it is applied, and what came of it.

use super::group::Routed;
use super::{HarmoniaError, Tree, fold, is_key, query, update};
use crate::parallel;
use pleach_format::{Bits, Key, Value, Word};
use std::ops::AddAssign;
use std::time::{Duration, Instant};

/// One operation on one key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<K, V> {
    /// Gives the key this value, whether it is there or not.
    Put(K, V),
    /// Gives the key this value if it is there.
    Update(K, V),
    /// Takes the key away if it is there.
    Delete(K),
}

impl<K: Copy, V> Change<K, V> {
    /// Whose key it is.
    #[inline(always)]
    pub fn key(&self) -> K {
        match self {
            Self::Put(key, _) | Self::Update(key, _) | Self::Delete(key) => *key,
        }
    }
}

/// In which order operations reach the leaves. The outcome is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// By leaf, those of one leaf in the order of the batch and by one thread: each leaf is read once.
    #[default]
    Leaf,
    /// As they come, in pieces, as the paper has it. Several operations on one key would race, so they are
    /// folded into one beforehand: the last Put or Delete wins, and Updates after a Put change its value.
    Batch,
}

/// How often the paper's global count is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Counting {
    /// Once for many operations.
    #[default]
    Chunk,
    /// Twice for each operation, as in Algorithm 1 ([`Order::Leaf`]: for each operation too).
    Operation,
}

/// How a batch is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BatchOptions {
    /// Threads; 0: those of the pool it is called in.
    pub threads: usize,
    /// Order of operations.
    pub order: Order,
    /// What the global count counts.
    pub counting: Counting,
}

/// What a batch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Keys that were added.
    pub inserted: u64,
    /// Values that were given to keys that were there.
    pub updated: u64,
    /// Keys that were taken away.
    pub deleted: u64,
    /// Deletes of keys that were not there.
    pub absent_deletes: u64,
    /// Updates of keys that were not there.
    pub absent_updates: u64,
    /// Operations that a later one on the same key made void, which were not done ([`Order::Batch`] alone).
    pub superseded: u64,
    /// Leaves that were split, each into two.
    pub splits: u64,
    /// Leaves that were joined with a neighbour, those that the movement joined included.
    pub merges: u64,
    /// Nodes that were laid out anew: all or none.
    pub nodes_moved: u64,
    /// Finding the leaves.
    pub query: Duration,
    /// Putting operations in order, or folding them.
    pub group: Duration,
    /// Changing leaves.
    pub update: Duration,
    /// Laying out nodes.
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

/// What an operation does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    #[default]
    Put,
    Update,
    Delete,
    /// Nothing: a later one takes its place.
    Void,
}

/// An operation on its way to a leaf.
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

/// The phases one after another.
pub(super) fn apply<K: Key, V: Value>(
    tree: &mut Tree<K::Word, V::Bits>,
    batch: &[Change<K, V>],
    options: &BatchOptions,
) -> Result<Report, HarmoniaError> {
    if let Some(at) = parallel::find_first(batch.len(), 1 << 13, |at| !is_key(batch[at].key())) {
        return Err(HarmoniaError::NotAKey { at });
    }
    // Each operation makes one leaf more at most.
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
