//! The query phase: finds the leaf of each operation, in a tree that does not change meanwhile.
//!
//! The child to follow is the node's entry in the child region plus the number of its keys below the query
//! (Equation 1). Operations descend in groups, level by level. Every node of a group is prefetched before the
//! first of them is read, so a core has as many memory accesses in flight as it can. Leaves are not touched:
//! the update phase has to lock and read them anyway.

use super::arch::{self, Work};
use super::{Change, Tree};
use crate::parallel;
use pleach::internal::prefetch;
use pleach_format::{Bits, Key, Value, Word};

/// Number of operations that descend together.
const GROUP: usize = 16;
/// Levels with fewer nodes stay in a near cache.
const FAR_NODES: u64 = 512;
/// Operations per task.
const TASK: usize = 1 << 13;

impl<W: Word, B: Bits> Tree<W, B> {
    /// Returns the leaf of a key in a tree that is not empty, counted from 0 among the leaves.
    pub fn leaf_of(&self, word: W) -> u32 {
        let levels = self.geometry.levels.len();
        let node = (1..levels).fold(0, |node, _| self.child(node, word));
        (node - self.inner()) as u32
    }

    #[inline(always)]
    fn child(&self, node: usize, word: W) -> usize {
        let keys = &self.keys[node * self.shape.stride..][..self.shape.inner_words];
        self.children[node] as usize + arch::below(keys, word)
    }

    /// Prefetches the lines of an inner node.
    #[inline(always)]
    fn prefetch(&self, node: usize) {
        let start = self.keys.as_ptr().wrapping_add(node * self.shape.stride);
        for at in (0..self.shape.inner_words).step_by(64 / W::BYTES) {
            prefetch(start.wrapping_add(at));
        }
    }
}

/// A task of the query phase.
struct Descent<'a, K: Key, V: Value> {
    tree: &'a Tree<K::Word, V::Bits>,
    batch: &'a [Change<K, V>],
    leaves: &'a mut [u32],
}

impl<K: Key, V: Value> Work for Descent<'_, K, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let tree = self.tree;
        let levels = &tree.geometry.levels;
        for (batch, leaves) in self.batch.chunks(GROUP).zip(self.leaves.chunks_mut(GROUP)) {
            let mut words = [K::Word::default(); GROUP];
            let mut nodes = [0usize; GROUP];
            for (word, change) in words.iter_mut().zip(batch) {
                *word = change.key().encode();
            }
            for level in levels.iter().skip(1) {
                let far = level.nodes >= FAR_NODES && (level.first as usize) < tree.inner();
                for (node, &word) in nodes.iter_mut().zip(&words[..batch.len()]) {
                    *node = tree.child(*node, word);
                    if far {
                        tree.prefetch(*node);
                    }
                }
            }
            for (leaf, &node) in leaves.iter_mut().zip(&nodes) {
                *leaf = (node - tree.inner()) as u32;
            }
        }
    }
}

/// Returns the leaf of each operation in a tree that has leaves. O(batch * levels * fanout), on the current
/// pool.
pub(super) fn leaves_of<K: Key, V: Value>(tree: &Tree<K::Word, V::Bits>, batch: &[Change<K, V>]) -> Vec<u32> {
    let mut leaves = vec![0; batch.len()];
    parallel::jobs(leaves.chunks_mut(TASK).zip(batch.chunks(TASK)), |(leaves, batch)| {
        arch::best(Descent { tree, batch, leaves });
    });
    leaves
}
