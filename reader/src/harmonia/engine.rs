//! The descent of Harmonia's tree, for a group of queries at once.
//!
//! All queries of a group are on the same level: while the keys of one node are counted, the nodes of the
//! other queries, prefetched one step before, are being loaded. Keys are counted line by line, in the lines
//! of a bulk-loaded node that hold keys. A child number is clamped to the level below, for any contents of
//! the child region.

use crate::arch::{Simd, prefetch};
use crate::nodes::Nodes;
use pleach_format::Word;
use pleach_format::harmonia::{CHILD_BYTES, HarmoniaGeometry, HarmoniaLevel};
use pleach_format::layout::LINE_BYTES;
use pleach_format::line::Line;

/// The parts of the tree that a descent uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree<'a> {
    keys: &'a [Line],
    children: &'a [[u8; CHILD_BYTES as usize]],
    levels: &'a [HarmoniaLevel],
    /// Lines per node, and the number of them that hold keys.
    stride: usize,
    used: usize,
    inner: u64,
    node_keys: u64,
    tuples: u64,
}

impl<'a> Tree<'a> {
    /// Creates the tree; `None` if the section is shorter than its geometry specifies.
    pub(crate) fn new(shape: &'a HarmoniaGeometry, section: &'a [u8]) -> Option<Self> {
        let at = |at: u64, bytes: u64| section.get(usize::try_from(at).ok()?..)?.get(..bytes as usize);
        let (keys, _) = at(0, shape.nodes * shape.stride_bytes)?.as_chunks();
        let (children, _) = at(shape.children_at, (shape.inner + 1) * CHILD_BYTES)?.as_chunks();
        let used = (shape.node_keys as usize * shape.word_bytes as usize).div_ceil(LINE_BYTES);
        Some(Self {
            keys,
            children,
            levels: &shape.levels,
            stride: shape.stride_bytes as usize / LINE_BYTES,
            used,
            inner: shape.inner,
            node_keys: shape.node_keys.into(),
            tuples: shape.tuples,
        })
    }

    #[inline(always)]
    fn ask(&self, node: u64) {
        let start = self.keys.as_ptr().wrapping_add(node as usize * self.stride);
        for line in 0..self.used {
            prefetch(start.wrapping_add(line));
        }
    }

    /// Counts the keys of a node that are below the query.
    ///
    /// # Safety
    /// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
    #[inline(always)]
    unsafe fn below<S: Simd, W: Word>(&self, node: u64, query: W) -> u64 {
        debug_assert!(S::detect().is_some());
        let start = node as usize * self.stride;
        let Some(lines) = self.keys.get(start..start + self.used) else { return 0 };
        let mut below = 0;
        for line in lines {
            // SAFETY: the caller guarantees the CPU features of `S`.
            below += unsafe {
                match W::BYTES {
                    4 => S::below32(line, 16, query.to_u128() as u32),
                    8 => S::below64(line, 8, query.to_u128() as u64),
                    _ => line.as_chunks::<16>().0.iter().filter(|word| W::read(&word[..]) < query).count(),
                }
            };
        }
        below as u64
    }
}

impl Nodes for Tree<'_> {
    #[inline(always)]
    unsafe fn group<S: Simd, W: Word, const N: usize>(&self, queries: &[W; N]) -> [u64; N] {
        let mut nodes = [0u64; N];
        for next in self.levels.iter().skip(1) {
            for (node, &query) in nodes.iter_mut().zip(queries) {
                let entry = self.children.get(*node as usize).map_or(0, |&entry| u32::from_le_bytes(entry));
                // SAFETY: the caller guarantees the CPU features of `S`.
                let below = unsafe { self.below::<S, W>(*node, query) };
                *node = (u64::from(entry) + below).clamp(next.first, next.first + next.nodes - 1);
                if N > 1 {
                    self.ask(*node);
                }
            }
        }
        let mut ranks = [0; N];
        if self.levels.is_empty() {
            return ranks;
        }
        for ((rank, &node), &query) in ranks.iter_mut().zip(&nodes).zip(queries) {
            // SAFETY: the caller guarantees the CPU features of `S`.
            let below = unsafe { self.below::<S, W>(node, query) };
            *rank = ((node - self.inner) * self.node_keys + below).min(self.tuples);
        }
        ranks
    }
}
