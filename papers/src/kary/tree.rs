//! The linearised k-ary tree: nodes of k - 1 contiguous keys, levels one after the other, top first.
//!
//! It is a perfect tree of k-ary nodes, packed to the left and cut off where the keys end. With `below`
//! levels under it, key number i of node g has rank (g k + i + 1) k^below - 1. Every k^below-th key is in
//! this level or above, so child c of node g is node g k + c of the next level.
//!
//! At the leaves that number is the rank of the lower bound. Only keys are stored, no pointers or counts.
//!
//! Slots without a key hold the greatest word, which is below no query. Each level has the node in which a
//! query beyond all its keys arrives, even if it is empty, so a search never leaves a level. In slots that no
//! tree wrote it may, but then it reads a node of another level or stops at the end of the slots.
//!
//! Schlegel, Gemulla, Lehner: k-ary search on modern processors, DaMoN 2009; Kaldewey's P-ary search slides
//! group separators into nodes in the same way.

use super::vector::{Forms, Vector};
use pleach::internal::prefetch;
use rayon::prelude::*;

/// One level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    /// First slot.
    start: usize,
    /// Number of the last node.
    last: usize,
    /// Ranks from one key of this level or above to the next: k^below.
    stride: usize,
}

/// The levels of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    keys: usize,
    lanes: usize,
    levels: Vec<Level>,
    slots: usize,
}

impl Shape {
    /// Creates the shape for `keys` keys in nodes of `lanes >= 1`; `None` beyond 2^48 keys. O(log keys).
    pub(crate) fn new(keys: usize, lanes: usize) -> Option<Self> {
        if keys as u64 > 1 << 48 {
            return None;
        }
        let k = lanes + 1;
        let mut levels = Vec::new();
        let mut slots = 0;
        // The stride of the root is the greatest power of k that is not above the number of keys.
        let mut stride = if keys == 0 { 0 } else { k.pow(keys.ilog(k)) };
        while stride > 0 {
            let last = keys / stride / k;
            levels.push(Level { start: slots, last, stride });
            slots += (last + 1) * lanes;
            stride /= k;
        }
        Some(Self { keys, lanes, levels, slots })
    }

    /// Returns the number of slots of all nodes.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// Writes the tree of `keys` into `slots`; both must have the lengths of this shape. O(keys), on all
    /// threads.
    pub(crate) fn fill<W: Forms>(&self, keys: &[W], slots: &mut [W]) {
        // Nearly all nodes are leaves, so threads share the nodes of a level in pieces.
        const NODES: usize = 1 << 12;
        let (lanes, k) = (self.lanes, self.lanes + 1);
        let mut rest = slots;
        for level in &self.levels {
            let nodes;
            (nodes, rest) = rest.split_at_mut((level.last + 1) * lanes);
            pleach_builder::pool::ready();
            nodes.par_chunks_mut(NODES * lanes).enumerate().for_each(|(piece, nodes)| {
                for (node, slots) in (piece * NODES..).zip(nodes.chunks_exact_mut(lanes)) {
                    for (i, slot) in slots.iter_mut().enumerate() {
                        let rank = (node * k + i + 1) * level.stride - 1;
                        *slot = keys.get(rank).copied().unwrap_or(W::GREATEST);
                    }
                }
            });
        }
    }
}

/// Returns the ranks of a group's queries, which take turns: while one is compared, the nodes of the others
/// are being loaded.
///
/// # Safety
/// The caller guarantees the CPU features of `V`, as [`Vector`] requires.
#[inline(always)]
pub(crate) unsafe fn group<V: Vector<W>, W: Forms, const S: usize>(
    shape: &Shape,
    slots: &[W],
    queries: &[W; S],
) -> [u64; S] {
    let mut gaps = [0usize; S];
    for (number, level) in shape.levels.iter().enumerate() {
        let next = shape.levels.get(number + 1);
        for s in 0..S {
            let node = gaps[s];
            let at = level.start + node * V::LANES;
            // At most k^levels nodes, for up to 2^48 keys: no overflow.
            let Some(words) = slots.get(at..at + V::LANES) else { continue };
            // SAFETY: the caller guarantees the CPU features of `V`; the slice has `LANES` words.
            let below = unsafe { V::below(words, queries[s]) };
            gaps[s] = node * (V::LANES + 1) + below;
            if S > 1
                && let Some(next) = next
            {
                prefetch(slots.as_ptr().wrapping_add(next.start + gaps[s] * V::LANES));
            }
        }
    }
    std::array::from_fn(|s| gaps[s].min(shape.keys) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a recursive construction: the in-order walk of the cut-off perfect tree gives the keys.
    #[test]
    fn slots_hold_every_key_once_in_order() {
        fn walk(shape: &Shape, slots: &[u32], depth: usize, node: usize, found: &mut Vec<u32>) {
            let Some(level) = shape.levels.get(depth) else { return };
            // A node beyond the level has only empty ones under it.
            if node > level.last {
                return;
            }
            let k = shape.lanes + 1;
            for child in 0..k {
                walk(shape, slots, depth + 1, node * k + child, found);
                if child < shape.lanes {
                    found.push(slots[level.start + node * shape.lanes + child]);
                }
            }
        }
        for lanes in [1usize, 2, 4, 8, 16] {
            for count in (0..400usize).chain([728, 729, 4912, 4913, 5000]) {
                let keys: Vec<u32> = (0..count as u32).collect();
                let shape = Shape::new(count, lanes).expect("small");
                let mut slots = vec![7; shape.slots()];
                shape.fill(&keys, &mut slots);
                let mut found = Vec::new();
                walk(&shape, &slots, 0, 0, &mut found);
                assert_eq!(found.len(), slots.len(), "{count} keys, {lanes} lanes");
                let (inside, empty) = found.split_at(count);
                assert_eq!(inside, keys, "{lanes} lanes");
                assert!(empty.iter().all(|&word| word == u32::MAX));
                assert!(slots.len() <= count + shape.levels.len() * 2 * lanes);
            }
        }
        assert_eq!(Shape::new(1 << 57, 4), None);
    }
}
