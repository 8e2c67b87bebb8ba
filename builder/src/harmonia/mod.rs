//! Harmonia's tree: its section of a file; and in memory, with its batch update (Yan et al., PPoPP 2019,
//! sections 3.1 and 3.2.2).
//!
//! ```text
//! mod.rs        the tree: loads, look-ups, iteration     region.rs     its arrays
//! assemble.rs   breadth-first arrays from leaves         arch.rs       counting keys
//! batch.rs      operations, options, reports             query.rs      which leaf, for all operations
//! group.rs      operations in the order of leaves        fold.rs       several operations on one key
//! protocol.rs   Algorithm 1: who may change what         shared.rs     the tree under these locks
//! auxiliary.rs  leaves that were split or merged         update.rs     operations, in parallel
//! movement.rs   auxiliary nodes into the key region    section.rs    the section of a file
//! ```
//! The arrays are those of a file's section ([`pleach_format::harmonia`]): nodes of one stride, breadth-first,
//! free slots all ones; a byte for each node's keys; prefix sums that lead to first children; values beside the
//! leaves. A batch runs in phases: all operations find their leaves in a tree that does not change; then
//! leaves change in place, under locks, and those that split or merge move to auxiliary nodes; then the
//! key region is laid out anew around these, if there are any, and the tree is as strict as before.

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
pub(crate) mod section;
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

/// Why a tree was not loaded, or a batch not applied. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HarmoniaError {
    /// The fanout is outside 8 to 128, or the keys of a node are outside 1 to `fanout - 1`.
    #[error("a tree of fanout {fanout} with {node_keys} keys in a node is outside the limits")]
    Shape {
        /// Most children of a node.
        fanout: u32,
        /// Keys of a loaded node.
        node_keys: u32,
    },
    /// A key is not above the one before it.
    #[error("key {at} is not above the key before it")]
    Order {
        /// Its place, from 0.
        at: usize,
    },
    /// NaN.
    #[error("key {at} is not a number")]
    NotAKey {
        /// Its place, from 0.
        at: usize,
    },
    /// More nodes than the child region can name, or more operations than a batch can have (2^32 - 1).
    #[error("the tree or the batch is too large")]
    TooLarge,
    /// No thread pool of the wanted size.
    #[error("cannot start {threads} threads")]
    Threads {
        /// Threads that were asked for.
        threads: usize,
    },
}

/// A B+tree of unique keys in Harmonia's arrays.
///
/// Loaded nodes hold `node_keys` keys, all but the last of their level. Batches keep at least
/// [`HarmoniaTree::least_keys`] keys in every leaf but the last; inner nodes are laid out anew whenever
/// the number of leaves changes, so they hold `node_keys` keys, all but the last of their level, always. A
/// separator is at least the last key of the leaves to its left and below the first key to its right.
#[derive(Clone, Debug)]
pub struct HarmoniaTree<K: Key, V: Value> {
    tree: Tree<K::Word, V::Bits>,
    types: PhantomData<(K, V)>,
}

/// The same, of words and bits.
#[derive(Clone, Debug)]
struct Tree<W: Word, B: Bits> {
    shape: Shape,
    /// Tuples.
    tuples: u64,
    /// Where everything lies. Its tuples are those of full leaves: only leaves and levels are taken from it.
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

    /// The tuples of a leaf, counted from 0 among the leaves.
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
    /// Loads a tree from tuples whose keys ascend, none twice; nodes are filled to `percent` (50 to 100), that
    /// is with `floor(percent / 100 * (fanout - 1))` keys. O(tuples), on the pool it is called in.
    ///
    /// # Errors
    /// [`HarmoniaError`] if the shape is outside the limits or the keys do not ascend.
    pub fn load(tuples: &[(K, V)], fanout: u32, percent: u32) -> Result<Self, HarmoniaError> {
        Self::load_by(tuples.len(), fanout, node_keys(fanout, percent), |at| tuples[at])
    }

    /// The same from any source that can be asked for tuple `at` of `len`, with `node_keys` keys in a node.
    ///
    /// # Errors
    /// As [`HarmoniaTree::load`].
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

    /// The value of a key. O(levels * fanout).
    #[must_use]
    pub fn get(&self, key: K) -> Option<V> {
        let found = is_key(key).then(|| self.tree.get(key.encode()));
        found.flatten().map(V::from_bits)
    }

    /// Number of tuples.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.tree.tuples
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tree.tuples == 0
    }

    /// The tuples in the order of their keys, a leaf at a time: encoded keys and bits of values, as the columns
    /// of a [`crate::Chunk`] want them.
    pub fn leaves(&self) -> impl Iterator<Item = (&[K::Word], &[V::Bits])> + Clone + use<'_, K, V> {
        (0..self.tree.leaves()).map(|leaf| self.tree.leaf(leaf))
    }

    /// The tuples in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (K, V)> + Clone + use<'_, K, V> {
        let tuples = |(keys, values): (&'_ [K::Word], &'_ [V::Bits])| {
            let pairs: Vec<(K, V)> =
                keys.iter().zip(values).map(|(&key, &value)| (K::decode(key), V::from_bits(value))).collect();
            pairs
        };
        self.leaves().flat_map(tuples)
    }

    /// Most children of a node; it has place for one key less.
    #[must_use]
    pub fn fanout(&self) -> u32 {
        self.tree.shape.fanout
    }

    /// Keys of a loaded node.
    #[must_use]
    pub fn node_keys(&self) -> u32 {
        self.tree.shape.node_keys
    }

    /// Fewest keys of a leaf that batches leave, but in the last one: `(fanout - 1) / 4`, or `node_keys` if that
    /// is less. A quarter, not a half: a tree that was loaded half full would merge at every delete.
    #[must_use]
    pub fn least_keys(&self) -> u32 {
        self.tree.shape.least as u32
    }

    /// The levels, the root's first, the leaves' last; none in an empty tree.
    #[must_use]
    pub fn levels(&self) -> &[HarmoniaLevel] {
        &self.tree.geometry.levels
    }

    /// Words of a node's stride: the `fanout` words up to a whole line of memory.
    #[must_use]
    pub fn stride_words(&self) -> usize {
        self.tree.shape.stride
    }

    /// The key region: a stride for each node, breadth-first; free slots are all ones.
    #[must_use]
    pub fn keys(&self) -> &[K::Word] {
        &self.tree.keys
    }

    /// Keys of each node.
    #[must_use]
    pub fn counts(&self) -> &[u8] {
        &self.tree.counts
    }

    /// The child region: the first child of each inner node, and the number of nodes.
    #[must_use]
    pub fn children(&self) -> &[u32] {
        &self.tree.children
    }

    /// Values: `fanout` slots for each leaf, beside its keys.
    #[must_use]
    pub fn values(&self) -> &[V::Bits] {
        &self.tree.values
    }

    /// Bytes of the four arrays.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let tree = &self.tree;
        (size_of_val(&*tree.keys)
            + tree.counts.len()
            + size_of_val(&*tree.children)
            + size_of_val(&*tree.values)) as u64
    }

    /// Applies a batch on `threads` threads (0: the pool it is called in), as its operations one after another
    /// in their order would. See [`HarmoniaTree::apply_with`].
    ///
    /// # Errors
    /// As [`HarmoniaTree::apply_with`].
    pub fn apply(&mut self, batch: &[Change<K, V>], threads: usize) -> Result<Report, HarmoniaError> {
        self.apply_with(batch, &BatchOptions { threads, ..BatchOptions::default() })
    }

    /// Applies a batch (section 3.2.2). The outcome is that of all operations one after another in their
    /// order, whatever the options. O(batch * (levels * fanout)); where leaves split or merge the
    /// arrays are laid out anew, O(tuples) and twice the memory meanwhile.
    ///
    /// # Errors
    /// [`HarmoniaError`] if a key is NaN, if the tree could outgrow its child region, if the batch has more than
    /// 2^32 - 1 operations, or if there are no such threads. Nothing was changed then.
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

/// Whether it is a number.
fn is_key<K: Key>(key: K) -> bool {
    key.partial_cmp(&key).is_some()
}
