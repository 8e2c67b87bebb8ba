//! Assembly of the tree's arrays from its leaves: the leaves in parallel, then the levels above from their
//! last keys.
//!
//! Loads and movements both end here. The levels are those of [`HarmoniaGeometry`] for the same number of
//! full leaves. Each inner node but the last of its level has `node_keys + 1` children, so prefix sums are
//! arithmetic, and a separator is the last key of the last leaf to its left. All levels above the leaves are
//! one part in `node_keys + 1` of the tree: making them anew costs less than finding out which could stay.

use super::region::Region;
use super::{HarmoniaError, Tree};
use crate::parallel;
use pleach_format::harmonia::{FANOUT_MAX, FANOUT_MIN, HarmoniaGeometry};
use pleach_format::layout::LINE_BYTES;
use pleach_format::{Bits, Word};

/// Number of nodes written by one task.
const TASK: usize = 128;

/// Sizes that do not change over the life of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub fanout: u32,
    pub node_keys: u32,
    /// Maximum number of keys of a node.
    pub capacity: usize,
    /// Minimum number of keys of a leaf other than the last.
    pub least: usize,
    /// Words per node.
    pub stride: usize,
    /// Words of an inner node, in whole lines, that cover its keys and a free slot.
    pub inner_words: usize,
}

impl Shape {
    /// Creates the shape of nodes.
    ///
    /// # Errors
    /// [`HarmoniaError::Shape`] if fanout or keys are outside their limits.
    pub fn new<W: Word>(fanout: u32, node_keys: u32) -> Result<Self, HarmoniaError> {
        let shape = HarmoniaGeometry::new(0, (fanout, node_keys), W::BYTES, 0);
        let stride = shape.ok_or(HarmoniaError::Shape { fanout, node_keys })?.stride_words();
        debug_assert!((FANOUT_MIN..=FANOUT_MAX).contains(&fanout));
        let least = ((fanout - 1) / 4).min(node_keys) as usize;
        let inner_words = stride.min((node_keys as usize + 1).next_multiple_of(LINE_BYTES / W::BYTES));
        Ok(Self { fanout, node_keys, capacity: fanout as usize - 1, least, stride, inner_words })
    }

    /// Returns the layout of a tree of `leaves` leaves.
    ///
    /// # Errors
    /// [`HarmoniaError::TooLarge`] if the leaves cannot be numbered or the sizes overflow.
    pub fn geometry<W: Word, B: Bits>(&self, leaves: u64) -> Result<HarmoniaGeometry, HarmoniaError> {
        // Leaf numbers leave one bit unused.
        let tuples = leaves.checked_mul(self.node_keys.into()).filter(|_| leaves < 1 << 31);
        tuples
            .and_then(|tuples| {
                HarmoniaGeometry::new(tuples, (self.fanout, self.node_keys), W::BYTES, B::BYTES)
            })
            .ok_or(HarmoniaError::TooLarge)
    }
}

impl<W: Word, B: Bits> Tree<W, B> {
    /// Makes a tree of `leaves` leaves, none of them empty. `write` puts the tuples of a leaf at the start of
    /// the two slices and returns their number. O(tuples), on the current pool.
    ///
    /// # Errors
    /// Those of [`Shape::geometry`].
    pub fn assemble(
        shape: Shape,
        leaves: usize,
        write: impl Fn(usize, &mut [W], &mut [B]) -> usize + Sync,
    ) -> Result<Self, HarmoniaError> {
        let geometry = shape.geometry::<W, B>(leaves as u64)?;
        let (inner, nodes) = (geometry.inner as usize, geometry.nodes as usize);
        let (stride, fanout) = (shape.stride, shape.fanout as usize);
        let mut keys = Region::new(nodes * stride);
        let mut values = Region::new(leaves * fanout);
        let mut counts = vec![0u8; nodes];
        let mut last = vec![W::default(); leaves];
        let (above, leaf_keys) = keys.split_at_mut(inner * stride);
        let (above_counts, leaf_counts) = counts.split_at_mut(inner);
        let nodes_of = leaf_keys.chunks_mut(TASK * stride).zip(values.chunks_mut(TASK * fanout));
        let ends_of = leaf_counts.chunks_mut(TASK).zip(last.chunks_mut(TASK));
        parallel::jobs(nodes_of.zip(ends_of).enumerate(), |(task, ((keys, values), (counts, last)))| {
            let nodes = keys.chunks_mut(stride).zip(values.chunks_mut(fanout));
            let ends = counts.iter_mut().zip(last);
            for (leaf, ((keys, values), (count, last))) in (task * TASK..).zip(nodes.zip(ends)) {
                let tuples = write(leaf, keys, values);
                keys[tuples..].fill(W::MAX);
                *last = keys[tuples.saturating_sub(1)];
                *count = tuples as u8;
            }
        });
        let tuples = leaf_counts.iter().map(|&count| u64::from(count)).sum();
        for (depth, level) in geometry.levels.iter().enumerate().take(geometry.levels.len().saturating_sub(1))
        {
            let nodes = level.first as usize..(level.first + level.nodes) as usize;
            let keys = above[nodes.start * stride..nodes.end * stride].chunks_mut(TASK * stride);
            let counts = above_counts[nodes].chunks_mut(TASK);
            let below = geometry.levels[depth + 1].leaves;
            parallel::jobs(keys.zip(counts).enumerate(), |(task, (keys, counts))| {
                for (at, (keys, count)) in (task * TASK..).zip(keys.chunks_mut(stride).zip(counts)) {
                    let separators = geometry.keys_of(depth, at as u64);
                    keys.fill(W::MAX);
                    *count = separators as u8;
                    let first = at as u64 * u64::from(shape.node_keys + 1);
                    for (key, child) in keys.iter_mut().zip(first..first + separators) {
                        *key = last[((child + 1) * below) as usize - 1];
                    }
                }
            });
        }
        let children = match nodes {
            0 => vec![0],
            _ => parallel::collect(inner + 1, 1 << 12, |node| geometry.first_child(node as u64) as u32),
        };
        Ok(Self { shape, tuples, geometry, keys, counts, children, values })
    }
}
