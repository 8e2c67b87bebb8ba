//! The descent of the contiguous B+tree (Daga and Nutter, section III), for a group of queries at once.
//!
//! All queries of a group are on the same level: while the keys of one node are counted, metadata and keys of
//! the nodes of the other queries, prefetched one step before, are being loaded. The keys of a bulk-loaded node
//! are where its number says, so they are prefetched together with the metadata that confirms it. Every number
//! read from a node is clamped.

use crate::arch::{Simd, prefetch};
use crate::nodes::Nodes;
use pleach_format::Word;
use pleach_format::btree::{BtreeGeometry, Node};
use pleach_format::layout::LINE_BYTES;

/// The parts of the tree that a descent uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree<'a> {
    nodes: &'a [[u8; Node::BYTES]],
    /// Key slots, and at least a line of bytes behind them.
    keys: &'a [u8],
    geometry: &'a BtreeGeometry,
}

impl<'a> Tree<'a> {
    /// Creates the tree; `None` if the section is shorter than its geometry specifies.
    pub(crate) fn new(geometry: &'a BtreeGeometry, section: &'a [u8]) -> Option<Self> {
        let section = section.get(..usize::try_from(geometry.bytes).ok()?)?;
        let (nodes, _) = section.get(..geometry.keys_at as usize)?.as_chunks();
        Some(Self { nodes, keys: section.get(geometry.keys_at as usize..)?, geometry })
    }

    fn ask(&self, node: u64) {
        prefetch(self.nodes.as_ptr().wrapping_add(node as usize));
        let bytes = self.geometry.shape.slots_of_node() as usize * self.geometry.word_bytes as usize;
        let start = self.keys.as_ptr().wrapping_add(node as usize * bytes);
        for line in (0..bytes).step_by(LINE_BYTES) {
            prefetch(start.wrapping_add(line));
        }
    }

    /// Returns the item of a node to which a query leads: a child, or in a leaf a rank.
    ///
    /// # Safety
    /// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
    #[inline(always)]
    unsafe fn item<S: Simd, W: Word>(&self, node: u64, query: W) -> u64 {
        debug_assert!(S::detect().is_some());
        let shape = &self.geometry.shape;
        let node = self.nodes.get(node as usize).map_or(Node::default(), |&bytes| Node::from_bytes(bytes));
        let first = node.first_key().min(shape.slots() - shape.slots_of_node());
        let count = node.count().min(shape.order() - 1) as usize;
        let per_line = const { LINE_BYTES / W::BYTES };
        let mut below = 0;
        let mut at = first as usize * W::BYTES;
        let mut left = count;
        while left > 0 {
            let Some(line) = self.keys.get(at..).and_then(<[u8]>::first_chunk) else { break };
            let n = left.min(per_line);
            // SAFETY: the caller guarantees the CPU features of `S`.
            below += unsafe {
                match W::BYTES {
                    4 => S::below32(line, n, query.to_u128() as u32),
                    8 => S::below64(line, n, query.to_u128() as u64),
                    _ => {
                        let words = line.as_chunks::<16>().0.iter().take(n);
                        words.filter(|word| W::read(&word[..]) < query).count()
                    }
                }
            };
            (at, left) = (at + LINE_BYTES, left - n);
        }
        node.first() + below as u64
    }
}

impl Nodes for Tree<'_> {
    #[inline(always)]
    unsafe fn group<S: Simd, W: Word, const N: usize>(&self, queries: &[W; N]) -> [u64; N] {
        let shape = &self.geometry.shape;
        let mut at = [0u64; N];
        for next in shape.levels().iter().skip(1) {
            for (node, &query) in at.iter_mut().zip(queries) {
                // SAFETY: the caller guarantees the CPU features of `S`.
                let child = unsafe { self.item::<S, W>(*node, query) };
                *node = child.clamp(next.first_node, next.first_node + next.nodes - 1);
                if N > 1 {
                    self.ask(*node);
                }
            }
        }
        if shape.levels().is_empty() {
            return at;
        }
        for (node, &query) in at.iter_mut().zip(queries) {
            // SAFETY: the caller guarantees the CPU features of `S`.
            *node = unsafe { self.item::<S, W>(*node, query) }.min(shape.tuples());
        }
        at
    }
}
