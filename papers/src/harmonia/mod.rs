//! Harmonia's tree in memory, with batch updates (Yan et al., PPoPP 2019, sections 3.1 and 3.2.2).
//!
//! ```text
//! mod.rs        the tree: loads, look-ups, iteration     region.rs     its arrays
//! assemble.rs   breadth-first arrays from leaves         arch.rs       counting keys
//! batch.rs      operations, options, reports             query.rs      which leaf, for all operations
//! group.rs      operations in the order of leaves        fold.rs       several operations on one key
//! protocol.rs   Algorithm 1: who may change what         shared.rs     the tree under these locks
//! auxiliary.rs  leaves that were split or merged         update.rs     operations, in parallel
//! movement.rs   auxiliary nodes into the key region
//! ```
//! The arrays are those of a file's section ([`pleach_format::harmonia`]): nodes of one stride, breadth-first,
//! whose free slots are all ones; a byte with the number of keys of each node; prefix sums that lead to first
//! children; values beside the leaves.
//!
//! A batch runs in phases. First all operations find their leaves in a tree that does not change. Then leaves
//! change in place, under locks, and those that split or merge move to auxiliary nodes. If there are any, the
//! key region is then laid out anew around these, and the tree is as strict as before.

mod arch;
mod assemble;
mod auxiliary;
mod batch;
mod fold;
mod group;
#[cfg(test)]
mod model;
mod movement;
mod protocol;
mod query;
mod region;
mod shared;
#[cfg(test)]
mod tests;
mod update;

pub use batch::{BatchOptions, Change, Counting, Order, Report};

use crate::parallel;
use assemble::Shape;
use pleach_format::harmonia::{HarmoniaGeometry, HarmoniaLevel, node_keys};
use pleach_format::{Bits, Key, Value, Word};
use region::Region;
use std::marker::PhantomData;

/// The reason why a tree was not loaded, or a batch not applied. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HarmoniaError {
    /// The fanout is outside 8 to 128, or the keys of a node are outside 1 to `fanout - 1`.
    #[error("a tree of fanout {fanout} with {node_keys} keys in a node is outside the limits")]
    Shape {
        /// Maximum number of children of a node.
        fanout: u32,
        /// Number of keys of a loaded node.
        node_keys: u32,
    },
    /// A key is not above the one before it.
    #[error("key {at} is not above the key before it")]
    Order {
        /// Its position, from 0.
        at: usize,
    },
    /// The key is NaN.
    #[error("key {at} is not a number")]
    NotAKey {
        /// Its position, from 0.
        at: usize,
    },
    /// More nodes than the child region can number, or more operations than a batch can have (2^32 - 1).
    #[error("the tree or the batch is too large")]
    TooLarge,
    /// The system cannot start a thread pool of the requested size.
    #[error("cannot start {threads} threads")]
    Threads {
        /// Number of threads requested.
        threads: usize,
    },
}

/// A B+tree of unique keys in Harmonia's arrays.
///
/// Loaded nodes hold `node_keys` keys, except the last of each level. Batches keep at least
/// [`HarmoniaTree::least_keys`] keys in every leaf but the last. Inner nodes are laid out anew whenever the
/// number of leaves changes, so they always hold `node_keys` keys, except the last of each level. A separator
/// is at least the last key of the leaves to its left and below the first key to its right.
#[derive(Clone, Debug)]
pub struct HarmoniaTree<K: Key, V: Value> {
    tree: Tree<K::Word, V::Bits>,
    types: PhantomData<(K, V)>,
}

/// The same tree, of encoded words and value bits.
#[derive(Clone, Debug)]
struct Tree<W: Word, B: Bits> {
    shape: Shape,
    /// Number of tuples.
    tuples: u64,
    /// Layout of the arrays. Its number of tuples is that of full leaves: only leaves and levels are taken
    /// from it.
    geometry: HarmoniaGeometry,
    keys: Region<W>,
    counts: Vec<u8>,
    children: Vec<u32>,
    values: Region<B>,
}

impl<W: Word, B: Bits> Tree<W, B> {
    fn leaves(&self) -> usize {
        self.geometry.leaves() as usize
    }

    fn inner(&self) -> usize {
        self.geometry.inner as usize
    }

    fn node(&self, node: usize) -> &[W] {
        &self.keys[node * self.shape.stride..][..self.shape.stride]
    }

    /// Returns the tuples of a leaf, counted from 0 among the leaves.
    fn leaf(&self, leaf: usize) -> (&[W], &[B]) {
        let (node, fanout) = (self.inner() + leaf, self.shape.fanout as usize);
        let keys = usize::from(self.counts[node]);
        (&self.node(node)[..keys], &self.values[leaf * fanout..][..keys])
    }

    fn get(&self, word: W) -> Option<B> {
        if self.tuples == 0 {
            return None;
        }
        let leaf = self.leaf_of(word) as usize;
        let (keys, values) = self.leaf(leaf);
        let at = arch::below(self.node(self.inner() + leaf), word);
        (keys.get(at) == Some(&word)).then(|| values[at])
    }
}

impl<K: Key, V: Value> HarmoniaTree<K, V> {
    /// Loads a tree from tuples with strictly ascending keys. Nodes are filled to `percent` (50 to 100): with
    /// `floor(percent / 100 * (fanout - 1))` keys. O(tuples), on the current pool.
    ///
    /// # Errors
    /// [`HarmoniaError`] if the shape is outside the limits or the keys do not ascend.
    pub fn load(tuples: &[(K, V)], fanout: u32, percent: u32) -> Result<Self, HarmoniaError> {
        Self::load_by(tuples.len(), fanout, node_keys(fanout, percent), |at| tuples[at])
    }

    /// Loads a tree from a function that returns tuple `at` of `len`, with `node_keys` keys in a node.
    ///
    /// # Errors
    /// Those of [`HarmoniaTree::load`].
    pub fn load_by(
        len: usize,
        fanout: u32,
        node_keys: u32,
        tuple: impl Fn(usize) -> (K, V) + Sync,
    ) -> Result<Self, HarmoniaError> {
        let shape = Shape::new::<K::Word>(fanout, node_keys)?;
        if let Some(at) = parallel::find_first(len, 1 << 13, |at| !is_key(tuple(at).0)) {
            return Err(HarmoniaError::NotAKey { at });
        }
        let falls = |at: usize| at > 0 && tuple(at - 1).0.encode() >= tuple(at).0.encode();
        if let Some(at) = parallel::find_first(len, 1 << 13, falls) {
            return Err(HarmoniaError::Order { at });
        }
        let full = node_keys as usize;
        let tree = Tree::assemble(shape, len.div_ceil(full), |leaf, keys, values| {
            let tuples = leaf * full..len.min((leaf + 1) * full);
            for (slot, at) in tuples.clone().enumerate() {
                let (key, value) = tuple(at);
                (keys[slot], values[slot]) = (key.encode(), value.to_bits());
            }
            tuples.len()
        })?;
        Ok(Self { tree, types: PhantomData })
    }

    /// Returns the value of a key. O(levels * fanout).
    #[must_use]
    pub fn get(&self, key: K) -> Option<V> {
        let found = is_key(key).then(|| self.tree.get(key.encode()));
        found.flatten().map(V::from_bits)
    }

    /// Returns the number of tuples.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.tree.tuples
    }

    /// Returns true if the tree has no tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tree.tuples == 0
    }

    /// Iterates over the leaves in key order. Each item is the encoded keys and value bits of a leaf, in the
    /// form of the columns of a [`pleach_builder::Chunk`].
    pub fn leaves(&self) -> impl Iterator<Item = (&[K::Word], &[V::Bits])> + Clone + use<'_, K, V> {
        (0..self.tree.leaves()).map(|leaf| self.tree.leaf(leaf))
    }

    /// Iterates over the tuples in key order.
    pub fn iter(&self) -> impl Iterator<Item = (K, V)> + Clone + use<'_, K, V> {
        let tuples = |(keys, values): (&'_ [K::Word], &'_ [V::Bits])| {
            let pairs: Vec<(K, V)> =
                keys.iter().zip(values).map(|(&key, &value)| (K::decode(key), V::from_bits(value))).collect();
            pairs
        };
        self.leaves().flat_map(tuples)
    }

    /// Returns the maximum number of children of a node; it has room for one key less.
    #[must_use]
    pub fn fanout(&self) -> u32 {
        self.tree.shape.fanout
    }

    /// Returns the number of keys of a loaded node.
    #[must_use]
    pub fn node_keys(&self) -> u32 {
        self.tree.shape.node_keys
    }

    /// Returns the minimum number of keys that batches leave in a leaf other than the last.
    ///
    /// It is `(fanout - 1) / 4`, or `node_keys` if that is less. It is a quarter, not a half, since a tree
    /// that was loaded half full would merge at every delete.
    #[must_use]
    pub fn least_keys(&self) -> u32 {
        self.tree.shape.least as u32
    }

    /// Returns the levels, from the root to the leaves; none in an empty tree.
    #[must_use]
    pub fn levels(&self) -> &[HarmoniaLevel] {
        &self.tree.geometry.levels
    }

    /// Returns the words per node stride: `fanout` words, rounded up to whole lines of memory.
    #[must_use]
    pub fn stride_words(&self) -> usize {
        self.tree.shape.stride
    }

    /// Returns the key region: a stride for each node, breadth-first; free slots are all ones.
    #[must_use]
    pub fn keys(&self) -> &[K::Word] {
        &self.tree.keys
    }

    /// Returns the number of keys of each node.
    #[must_use]
    pub fn counts(&self) -> &[u8] {
        &self.tree.counts
    }

    /// Returns the child region: the first child of each inner node, and the number of nodes.
    #[must_use]
    pub fn children(&self) -> &[u32] {
        &self.tree.children
    }

    /// Returns the values: `fanout` slots for each leaf, in the order of its keys.
    #[must_use]
    pub fn values(&self) -> &[V::Bits] {
        &self.tree.values
    }

    /// Returns the bytes of the four arrays.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let tree = &self.tree;
        (size_of_val(&*tree.keys)
            + tree.counts.len()
            + size_of_val(&*tree.children)
            + size_of_val(&*tree.values)) as u64
    }

    /// Applies a batch on `threads` threads (0: the current pool). The result is that of its operations one
    /// after another, in their order. See [`HarmoniaTree::apply_with`].
    ///
    /// # Errors
    /// Those of [`HarmoniaTree::apply_with`].
    pub fn apply(&mut self, batch: &[Change<K, V>], threads: usize) -> Result<Report, HarmoniaError> {
        self.apply_with(batch, &BatchOptions { threads, ..BatchOptions::default() })
    }

    /// Applies a batch (section 3.2.2). The result is that of all operations one after another in their
    /// order, whatever the options. O(batch * (levels * fanout)). If leaves split or merge, the arrays are
    /// laid out anew: O(tuples) time, and twice the memory meanwhile.
    ///
    /// # Errors
    /// [`HarmoniaError`] if a key is NaN, if the tree could outgrow its child region, if the batch has more
    /// than 2^32 - 1 operations, or if the threads cannot be started. Nothing was changed then.
    pub fn apply_with(
        &mut self,
        batch: &[Change<K, V>],
        options: &BatchOptions,
    ) -> Result<Report, HarmoniaError> {
        match options.threads {
            0 => batch::apply(&mut self.tree, batch, options),
            threads => {
                let mut applied = Ok(Report::default());
                let mut apply = || applied = batch::apply(&mut self.tree, batch, options);
                let installed = parallel::install(threads, "pleach-batch", &mut apply);
                installed.map_err(|_| HarmoniaError::Threads { threads })?;
                applied
            }
        }
    }
}

/// Returns true if the key is not NaN.
fn is_key<K: Key>(key: K) -> bool {
    key.partial_cmp(&key).is_some()
}
