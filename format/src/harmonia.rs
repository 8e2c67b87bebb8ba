//! HARM: a B+tree as a key region and a child region (Harmonia, Yan et al., PPoPP 2019, section 3.1).
//!
//! ```text
//! keys       a node each, all of one stride, breadth-first: root, its children, ..., leaves
//! counts     a byte each node: its keys, so that the largest word is a key like any other
//! children   a u32 each inner node, and one more: the number of its first child (prefix sums)
//! values     beside the leaf part of the keys: slot j of leaf i at (i * fanout + j) * value_bytes
//! ```
//! Child `i` (from 1) of a node is `PrefixSum[node] + i - 1` (Equation 1 of the paper). So nodes contain keys
//! only, and the whole child region is small enough for a cache.
//!
//! The keys of a node separate its children. The child of a query is the number of keys below the query,
//! counted over the whole stride, since free slots are all ones. A key of an inner node is the last key under
//! the child to its left.
//!
//! Every node of a bulk-loaded tree, except the last of its level, has exactly `node_keys` keys. So slot `j`
//! of leaf `i` is rank `i * node_keys + j`.

use crate::error::FormatError;
use crate::key::Word;
use crate::layout::{LINE_BYTES, align_up};
use crate::section::{ARRAY_ALIGN, HarmoniaParameters, LEVELS_MAX, Parameters};

/// Minimum number of children of a full node.
pub const FANOUT_MIN: u32 = 8;
/// Maximum number of children of a full node.
pub const FANOUT_MAX: u32 = 128;
/// Bytes per entry of the child region.
pub const CHILD_BYTES: u64 = 4;
/// Zero bytes at the end of the section.
pub const GUARD_BYTES: u64 = 64;

/// One level of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HarmoniaLevel {
    /// Number of its first node.
    pub first: u64,
    /// Number of its nodes.
    pub nodes: u64,
    /// Number of leaves under each of its nodes except the last.
    pub leaves: u64,
}

/// Sizes and places of the arrays in the section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarmoniaGeometry {
    /// Number of tuples.
    pub tuples: u64,
    /// Maximum number of children of a node; it has room for one key less.
    pub fanout: u32,
    /// Number of keys in every node except the last of its level.
    pub node_keys: u32,
    /// Bytes per word: 4, 8 or 16.
    pub word_bytes: u32,
    /// Bytes per value: 0, 4 or 8.
    pub value_bytes: u32,
    /// Levels, from the root to the leaves; none in an empty tree.
    pub levels: Vec<HarmoniaLevel>,
    /// Number of nodes on all levels.
    pub nodes: u64,
    /// Number of inner nodes.
    pub inner: u64,
    /// Bytes per node: `fanout` words, and 0 to 63 more bytes up to a whole line.
    pub stride_bytes: u64,
    /// First byte of the counts.
    pub counts_at: u64,
    /// First byte of the child region.
    pub children_at: u64,
    /// First byte of the values.
    pub values_at: u64,
    /// Bytes of the section.
    pub bytes: u64,
}

/// Returns the keys of a node that is filled to `percent` (50 to 100): `floor(percent / 100 * (fanout - 1))`.
#[must_use]
pub const fn node_keys(fanout: u32, percent: u32) -> u32 {
    percent * (fanout - 1) / 100
}

impl HarmoniaGeometry {
    /// Lays out a tree. Returns `None` if a size is outside its limits, if there are too many nodes for the
    /// child region, or on overflow. O(levels).
    #[must_use]
    pub fn new(
        tuples: u64,
        (fanout, node_keys): (u32, u32),
        word_bytes: usize,
        value_bytes: usize,
    ) -> Option<Self> {
        let sound = (FANOUT_MIN..=FANOUT_MAX).contains(&fanout)
            && (1..fanout).contains(&node_keys)
            && matches!(word_bytes, 4 | 8 | 16)
            && matches!(value_bytes, 0 | 4 | 8);
        if !sound {
            return None;
        }
        let mut levels = Vec::new();
        let (mut nodes, mut leaves) = (tuples.div_ceil(u64::from(node_keys)), 1u64);
        while nodes > 0 {
            levels.push(HarmoniaLevel { first: 0, nodes, leaves });
            if nodes == 1 {
                break;
            }
            leaves = leaves.saturating_mul(u64::from(node_keys) + 1);
            nodes = nodes.div_ceil(u64::from(node_keys) + 1);
        }
        levels.reverse();
        let mut nodes = 0u64;
        for level in &mut levels {
            level.first = nodes;
            nodes = nodes.checked_add(level.nodes)?;
        }
        if levels.len() > LEVELS_MAX || nodes >= u64::from(u32::MAX) {
            return None;
        }
        let leaf_nodes = levels.last().map_or(0, |level| level.nodes);
        let inner = nodes - leaf_nodes;
        let stride_bytes = align_up(u64::from(fanout) * word_bytes as u64, LINE_BYTES as u64)?;
        let counts_at = align_up(nodes.checked_mul(stride_bytes)?, ARRAY_ALIGN)?;
        let children_at = align_up(counts_at.checked_add(nodes)?, ARRAY_ALIGN)?;
        let values_at = align_up(children_at.checked_add((inner + 1) * CHILD_BYTES)?, ARRAY_ALIGN)?;
        let values = leaf_nodes.checked_mul(u64::from(fanout) * value_bytes as u64)?;
        let bytes = align_up(values_at.checked_add(values)?, ARRAY_ALIGN)?.checked_add(GUARD_BYTES)?;
        Some(Self {
            tuples,
            fanout,
            node_keys,
            word_bytes: word_bytes as u32,
            value_bytes: value_bytes as u32,
            levels,
            nodes,
            inner,
            stride_bytes,
            counts_at,
            children_at,
            values_at,
            bytes,
        })
    }

    /// Returns the number of leaves.
    #[must_use]
    pub fn leaves(&self) -> u64 {
        self.nodes - self.inner
    }

    /// Returns the number of words in a node's stride.
    #[must_use]
    pub fn stride_words(&self) -> usize {
        (self.stride_bytes / u64::from(self.word_bytes)) as usize
    }

    /// Returns the number of keys in node `at` (from 0) of a level.
    #[must_use]
    pub fn keys_of(&self, level: usize, at: u64) -> u64 {
        let full = u64::from(self.node_keys);
        let Some(this) = self.levels.get(level) else { return 0 };
        if at + 1 < this.nodes {
            return full;
        }
        match self.levels.get(level + 1) {
            None => self.tuples - at * full,
            Some(below) => below.nodes - at * (full + 1) - 1,
        }
    }

    /// Returns the rank of the last key under node `at` of a level.
    #[must_use]
    pub fn last_rank(&self, level: usize, at: u64) -> u64 {
        let leaves = self.levels.get(level).map_or(1, |level| level.leaves);
        let end = (at + 1).saturating_mul(leaves).saturating_mul(u64::from(self.node_keys));
        end.min(self.tuples).saturating_sub(1)
    }

    /// Returns the entry of the child region: the first child of inner node `node`. For `inner` itself, that
    /// is the number of nodes.
    #[must_use]
    pub fn first_child(&self, node: u64) -> u64 {
        let level = self.levels.iter().rposition(|level| level.first <= node).unwrap_or(0);
        match (self.levels.get(level), self.levels.get(level + 1)) {
            (Some(this), Some(below)) => below.first + (node - this.first) * (u64::from(self.node_keys) + 1),
            // Leaves have no children.
            _ => self.nodes,
        }
    }

    /// Returns the parameters of the section.
    #[must_use]
    pub fn parameters(&self) -> HarmoniaParameters {
        HarmoniaParameters {
            node_bytes: (self.stride_bytes as u32).into(),
            word_bytes: self.word_bytes.into(),
            value_bytes: self.value_bytes.into(),
            node_keys: self.node_keys.into(),
            fanout: self.fanout.into(),
            levels: (self.levels.len() as u32).into(),
            reserved: [0; 40],
        }
    }

    /// Reads the shape of a section of `length` bytes from its parameters. Returns `None` if no shape
    /// matches.
    #[must_use]
    pub fn from_parameters(stored: Parameters, tuples: u64, length: u64) -> Option<Self> {
        let stored = HarmoniaParameters::from(stored);
        let shape = (stored.fanout.get(), stored.node_keys.get());
        let (word_bytes, value_bytes) = (stored.word_bytes.get() as usize, stored.value_bytes.get() as usize);
        let this = Self::new(tuples, shape, word_bytes, value_bytes)?;
        (this.parameters() == stored && this.bytes == length).then_some(this)
    }

    /// Returns the rank of the first key that is at least `query`, or the number of tuples if there is none.
    /// This is the scalar reference. `section` contains the bytes of the section. O(levels * fanout).
    ///
    /// If the bytes were not verified, the result may be wrong, but it is at most `tuples`: every stored
    /// index is clamped to the level to which it leads.
    ///
    /// # Errors
    /// [`FormatError::Truncated`] if `section` is shorter than the tree.
    pub fn lower_bound<W: Word>(&self, section: &[u8], query: W) -> Result<u64, FormatError> {
        self.lower_bound_by(query, |at, bytes| {
            let short = FormatError::Truncated { expected: self.bytes, found: section.len() as u64 };
            usize::try_from(at).ok().and_then(|at| section.get(at..)?.get(..bytes as usize)).ok_or(short)
        })
    }

    /// Does the same with bytes that `slice` returns: `bytes` of them from byte `at` of the section on, all of
    /// which are inside it.
    ///
    /// # Errors
    /// Those of `slice`.
    pub fn lower_bound_by<'s, W: Word, E>(
        &self,
        query: W,
        slice: impl Fn(u64, u64) -> Result<&'s [u8], E>,
    ) -> Result<u64, E> {
        let below = |node: u64| -> Result<u64, E> {
            let words = slice(node * self.stride_bytes, self.stride_bytes)?;
            Ok(words.chunks_exact(W::BYTES).filter(|word| W::read(word) < query).count() as u64)
        };
        let mut node = 0;
        for next in self.levels.iter().skip(1) {
            let entry = slice(self.children_at + node * CHILD_BYTES, CHILD_BYTES)?;
            let first = entry.first_chunk().map_or(0, |&entry| u64::from(u32::from_le_bytes(entry)));
            node = (first + below(node)?).clamp(next.first, next.first + next.nodes - 1);
        }
        if self.nodes == 0 {
            return Ok(0);
        }
        let rank = (node - self.inner) * u64::from(self.node_keys) + below(node)?;
        Ok(rank.min(self.tuples))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds the section of ascending words, without values, node by node from the definition.
    fn section(geometry: &HarmoniaGeometry, words: &[u64]) -> Vec<u8> {
        let mut bytes = vec![0u8; geometry.bytes as usize];
        for (depth, level) in geometry.levels.iter().enumerate() {
            for at in 0..level.nodes {
                let node = level.first + at;
                let start = (node * geometry.stride_bytes) as usize;
                bytes[start..][..geometry.stride_bytes as usize].fill(0xFF);
                let keys = geometry.keys_of(depth, at);
                bytes[(geometry.counts_at + node) as usize] = keys as u8;
                for slot in 0..keys {
                    let rank = if depth + 1 == geometry.levels.len() {
                        at * u64::from(geometry.node_keys) + slot
                    } else {
                        geometry.last_rank(depth + 1, at * u64::from(geometry.node_keys + 1) + slot)
                    };
                    words[rank as usize].write(&mut bytes[start + slot as usize * 8..]);
                }
            }
        }
        for node in 0..=geometry.inner {
            let entry = geometry.first_child(node) as u32;
            let at = (geometry.children_at + node * CHILD_BYTES) as usize;
            bytes[at..at + 4].copy_from_slice(&entry.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn every_rank_is_found() {
        for (fanout, percent) in [(8, 50), (8, 100), (9, 69), (64, 69), (128, 100), (128, 50)] {
            let keys = node_keys(fanout, percent);
            for tuples in [0u64, 1, 2, keys.into(), u64::from(keys) + 1, 77, 1000, 20_000] {
                let words: Vec<u64> = (0..tuples).map(|i| i / 3 * 10 + 5).collect();
                let geometry = HarmoniaGeometry::new(tuples, (fanout, keys), 8, 0).unwrap();
                let bytes = section(&geometry, &words);
                let top = words.last().map_or(0, |last| last + 3);
                for query in (0..=top).step_by(if tuples > 1000 { 37 } else { 1 }).chain([u64::MAX]) {
                    let wanted = words.partition_point(|&word| word < query) as u64;
                    assert_eq!(geometry.lower_bound(&bytes, query), Ok(wanted), "{fanout} {tuples} {query}");
                }
                assert_eq!(
                    HarmoniaGeometry::from_parameters(geometry.parameters().into(), tuples, geometry.bytes),
                    Some(geometry)
                );
            }
        }
    }

    #[test]
    fn forged_children_stay_inside() {
        let words: Vec<u64> = (0..5000).collect();
        let geometry = HarmoniaGeometry::new(5000, (8, 7), 8, 0).unwrap();
        for forged in [0, 1, 700, u32::MAX] {
            let mut bytes = section(&geometry, &words);
            for node in 0..=geometry.inner {
                let at = (geometry.children_at + node * CHILD_BYTES) as usize;
                bytes[at..at + 4].copy_from_slice(&forged.to_le_bytes());
            }
            for query in [0, 1, 2500, 4999, u64::MAX] {
                assert!(geometry.lower_bound(&bytes, query).unwrap() <= 5000);
            }
            // Each step ends in the first node of a level, or in the last one.
            let last = (geometry.levels.last().unwrap().nodes - 1) * 7;
            let found = geometry.lower_bound(&bytes, 0u64).unwrap();
            let expected = match forged {
                0 | 1 => 0,
                u32::MAX => last,
                leaf => (u64::from(leaf) - geometry.inner) * 7,
            };
            assert_eq!(found, expected, "{forged}");
        }
        assert!(geometry.lower_bound::<u64>(&[], 1).is_err());
    }

    #[test]
    fn shapes_outside_the_limits_are_refused() {
        for (shape, word, value) in
            [((7, 3), 8, 8), ((129, 3), 8, 8), ((8, 0), 8, 8), ((8, 8), 8, 8), ((8, 7), 2, 0), ((8, 7), 8, 3)]
        {
            assert_eq!(HarmoniaGeometry::new(100, shape, word, value), None);
        }
        assert_eq!(
            HarmoniaGeometry::new(u64::MAX, (8, 7), 4, 4),
            None,
            "more nodes than the child region names"
        );
        assert!(HarmoniaGeometry::new(1 << 32, (64, 43), 8, 8).is_some());
    }
}
