//! BTRE: the contiguous B+tree of the paper on search on an APU (Daga and Nutter), section III.
//!
//! ```text
//! nodes    metadata of 16 bytes, level by level from the root: number of keys, first key, first child, leaf flag
//! keys     the key slots of each node, in the order of the nodes
//! values   by rank, behind the leaves' keys
//! ```
//! A node of order m has at most m children and m - 1 keys. Its keys have slots of their own, a multiple of
//! four, so that with order 16 and 4-byte keys they are one aligned line of 64 bytes, as the paper intends;
//! unused slots are all ones.
//!
//! The tree is bulk-loaded: every node of a level is full but the last. If that one would be less than half
//! full, it and the one before share their items evenly, so each node but the root is at least half full. A
//! separator is the last key of the child left of it: the child after all separators below a query has the
//! query's lower bound, however many keys are equal.

use crate::error::FormatError;
use crate::key::Word;
use crate::layout::align_up;
use crate::section::{ARRAY_ALIGN, BtreeParameters, Parameters};

/// Minimum number of children of a full node.
pub const ORDER_MIN: u32 = 4;
/// Maximum number of children of a full node in a file.
pub const ORDER_MAX: u32 = 128;
/// Maximum number of children of a full node in a [`Shape`]: P-ary search needs a key for each of up to 1024
/// threads.
pub const SHAPE_ORDER_MAX: u32 = 1025;
/// Maximum number of tuples: indices have 48 bits.
pub const TUPLES_MAX: u64 = 1 << 46;
/// Maximum number of levels, leaves included: those of [`TUPLES_MAX`] with [`ORDER_MIN`].
pub const LEVELS_MAX: usize = 24;
/// Zero bytes at the end of the section.
pub const GUARD_BYTES: u64 = 64;

/// A level of nodes, which share its items: children, or keys of leaves. The same as in btree.cu.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct BtreeLevel {
    /// Index of its first node, counted from the root.
    pub first_node: u64,
    /// Number of nodes.
    pub nodes: u64,
    /// Number of items of all nodes.
    pub items: u64,
    /// Number of items of the last node.
    pub last: u64,
}

/// Layout of a tree of some order and number of tuples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    order: u32,
    tuples: u64,
    levels: Vec<BtreeLevel>,
}

/// Returns the number of items of the last node, if nodes hold `items` in all and `full` each.
fn last_items(items: u64, full: u64, half: u64) -> u64 {
    let rest = items - (items.div_ceil(full) - 1) * full;
    if rest < half && items > full { (full + rest) / 2 } else { rest }
}

impl Shape {
    /// Computes the layout; `None` if the order or the number of tuples is out of range. Without tuples there
    /// is no node.
    #[must_use]
    pub fn new(order: u32, tuples: u64) -> Option<Self> {
        if !(ORDER_MIN..=SHAPE_ORDER_MAX).contains(&order) || tuples > TUPLES_MAX {
            return None;
        }
        let mut levels = Vec::new();
        // A leaf has at least half of its keys, a node above it at least half of its children.
        let (mut items, mut full, mut half) = (tuples, u64::from(order - 1), u64::from(order / 2));
        while items > 0 {
            let nodes = items.div_ceil(full);
            levels.push(BtreeLevel { first_node: 0, nodes, items, last: last_items(items, full, half) });
            if nodes == 1 {
                break;
            }
            (items, full, half) = (nodes, u64::from(order), u64::from(order.div_ceil(2)));
        }
        levels.reverse();
        let mut first_node = 0;
        for level in &mut levels {
            level.first_node = first_node;
            first_node += level.nodes;
        }
        Some(Self { order, tuples, levels })
    }

    /// Returns the maximum number of children of a node.
    #[must_use]
    pub fn order(&self) -> u32 {
        self.order
    }

    /// Returns the number of tuples.
    #[must_use]
    pub fn tuples(&self) -> u64 {
        self.tuples
    }

    /// Returns the levels from the root to the leaves.
    #[must_use]
    pub fn levels(&self) -> &[BtreeLevel] {
        &self.levels
    }

    /// Returns the number of key slots per node.
    #[must_use]
    pub fn slots_of_node(&self) -> u64 {
        u64::from(self.order - 1).next_multiple_of(4)
    }

    /// Returns the number of nodes of all levels.
    #[must_use]
    pub fn nodes(&self) -> u64 {
        self.levels.last().map_or(0, |leaves| leaves.first_node + leaves.nodes)
    }

    /// Returns the number of key slots of all nodes.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.nodes() * self.slots_of_node()
    }

    /// Returns the items of a node of a level.
    #[must_use]
    pub fn items(&self, level: usize, node: u64) -> std::ops::Range<u64> {
        let full = u64::from(if level + 1 == self.levels.len() { self.order - 1 } else { self.order });
        let those = self.levels[level];
        let start = |node| {
            if node + 1 < those.nodes {
                node * full
            } else if node < those.nodes {
                those.items - those.last
            } else {
                those.items
            }
        };
        start(node)..start(node + 1)
    }
}

/// Metadata of a node. Indices have 48 bits: low halves, then the high parts of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Node {
    first_key: u32,
    first: u32,
    high: u32,
    count: u32,
}

/// Bit of the leaf flag.
const LEAF: u32 = 1 << 31;

impl Node {
    /// Bytes of the metadata.
    pub const BYTES: usize = 16;

    /// Creates the metadata of a node with `count` keys from slot `first_key` on; `first` is its first child,
    /// or its first value's rank.
    #[must_use]
    pub fn new(count: u32, first_key: u64, first: u64, is_leaf: bool) -> Self {
        Self {
            first_key: first_key as u32,
            first: first as u32,
            high: (first_key >> 32) as u32 | ((first >> 32) as u32) << 16,
            count: count | if is_leaf { LEAF } else { 0 },
        }
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn count(self) -> u32 {
        self.count & 0xFFFF
    }

    /// Returns the slot of the first key.
    #[must_use]
    pub fn first_key(self) -> u64 {
        u64::from(self.high & 0xFFFF) << 32 | u64::from(self.first_key)
    }

    /// Returns the index of the first child; for a leaf, the rank of its first key.
    #[must_use]
    pub fn first(self) -> u64 {
        u64::from(self.high >> 16) << 32 | u64::from(self.first)
    }

    /// Returns true if the node is a leaf.
    #[must_use]
    pub fn is_leaf(self) -> bool {
        self.count & LEAF != 0
    }

    /// Returns the bytes in memory.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let words = [self.first_key, self.first, self.high, self.count];
        let mut bytes = [0; Self::BYTES];
        for (part, word) in bytes.chunks_exact_mut(4).zip(words) {
            part.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads the metadata from its bytes in memory.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self { first_key: word(0), first: word(4), high: word(8), count: word(12) }
    }
}

/// Places of the arrays in a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BtreeGeometry {
    /// Layout of the nodes.
    pub shape: Shape,
    /// Bytes per word: 4, 8 or 16.
    pub word_bytes: u32,
    /// Bytes per value: 0, 4 or 8.
    pub value_bytes: u32,
    /// First byte of the key slots.
    pub keys_at: u64,
    /// First byte of the values.
    pub values_at: u64,
    /// Bytes of the section.
    pub bytes: u64,
}

impl BtreeGeometry {
    /// Lays out a tree. Returns `None` if a size is outside its limits, or on overflow. O(levels).
    #[must_use]
    pub fn new(tuples: u64, order: u32, word_bytes: usize, value_bytes: usize) -> Option<Self> {
        let is_sound =
            order <= ORDER_MAX && matches!(word_bytes, 4 | 8 | 16) && matches!(value_bytes, 0 | 4 | 8);
        let shape = Shape::new(order, tuples).filter(|_| is_sound)?;
        let keys_at = align_up(shape.nodes().checked_mul(Node::BYTES as u64)?, ARRAY_ALIGN)?;
        let keys = shape.slots().checked_mul(word_bytes as u64)?;
        let values_at = align_up(keys_at.checked_add(keys)?, ARRAY_ALIGN)?;
        let values = tuples.checked_mul(value_bytes as u64)?;
        let bytes = align_up(values_at.checked_add(values)?, ARRAY_ALIGN)?.checked_add(GUARD_BYTES)?;
        let (word_bytes, value_bytes) = (word_bytes as u32, value_bytes as u32);
        Some(Self { shape, word_bytes, value_bytes, keys_at, values_at, bytes })
    }

    /// Returns the metadata of node `node` of a level, as a bulk-loaded tree has it.
    #[must_use]
    pub fn node(&self, level: usize, node: u64) -> Node {
        let Some(this) = self.shape.levels().get(level) else { return Node::default() };
        let items = self.shape.items(level, node);
        let is_leaf = level + 1 == self.shape.levels().len();
        let keys = items.end - items.start - u64::from(!is_leaf);
        let first_key = (this.first_node + node) * self.shape.slots_of_node();
        let first = if is_leaf { items.start } else { this.first_node + this.nodes + items.start };
        Node::new(keys as u32, first_key, first, is_leaf)
    }

    /// Returns the rank of the last key under child or key `item` of a level: of the leaves if `level` is the
    /// last one.
    #[must_use]
    pub fn last_rank(&self, level: usize, item: u64) -> u64 {
        let mut item = item;
        for below in level + 1..self.shape.levels().len() {
            item = self.shape.items(below, item).end.saturating_sub(1);
        }
        item
    }

    /// Returns the parameters of the section.
    #[must_use]
    pub fn parameters(&self) -> BtreeParameters {
        BtreeParameters {
            order: self.shape.order().into(),
            word_bytes: self.word_bytes.into(),
            value_bytes: self.value_bytes.into(),
            levels: (self.shape.levels().len() as u32).into(),
            reserved: [0; 48],
        }
    }

    /// Reads the shape of a section of `length` bytes from its parameters. Returns `None` if no shape matches.
    #[must_use]
    pub fn from_parameters(stored: Parameters, tuples: u64, length: u64) -> Option<Self> {
        let stored = BtreeParameters::from(stored);
        let (word_bytes, value_bytes) = (stored.word_bytes.get() as usize, stored.value_bytes.get() as usize);
        let this = Self::new(tuples, stored.order.get(), word_bytes, value_bytes)?;
        (this.parameters() == stored && this.bytes == length).then_some(this)
    }

    /// Returns the rank of the first key that is at least `query`, or the number of tuples if there is none.
    /// This is the scalar reference. `section` contains the bytes of the section. O(levels * order).
    ///
    /// If the bytes were not verified, the result may be wrong, but it is at most the number of tuples: every
    /// stored number is clamped.
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
        let (shape, slots) = (&self.shape, self.shape.slots_of_node());
        let mut at = 0;
        for left in (1..=shape.levels().len()).rev() {
            let node = slice(at * Node::BYTES as u64, Node::BYTES as u64)?.first_chunk();
            let node = node.map_or(Node::default(), |&bytes| Node::from_bytes(bytes));
            let first_key = node.first_key().min(shape.slots() - slots);
            let count = node.count().min(shape.order() - 1);
            let keys = slice(self.keys_at + first_key * W::BYTES as u64, u64::from(count) * W::BYTES as u64)?;
            let below = keys.chunks_exact(W::BYTES).filter(|word| W::read(word) < query).count() as u64;
            let next = node.first() + below;
            if left == 1 {
                return Ok(next.min(shape.tuples()));
            }
            at = next.min(shape.nodes() - 1);
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDERS: [u32; 12] = [4, 5, 7, 8, 16, 17, 32, 33, 64, 127, 128, 1025];
    const COUNTS: [u64; 20] = [0, 1, 2, 3, 4, 5, 7, 8, 14, 15, 16, 17, 31, 33, 225, 240, 241, 255, 257, 4097];

    /// Builds the section of ascending words, without values, node by node from the definition.
    fn section(geometry: &BtreeGeometry, words: &[u64]) -> Vec<u8> {
        let mut bytes = vec![0u8; geometry.bytes as usize];
        bytes[geometry.keys_at as usize..geometry.values_at as usize].fill(0xFF);
        for (depth, level) in geometry.shape.levels().iter().enumerate() {
            for at in 0..level.nodes {
                let node = geometry.node(depth, at);
                let place = (level.first_node + at) as usize * Node::BYTES;
                bytes[place..place + Node::BYTES].copy_from_slice(&node.to_bytes());
                let items = geometry.shape.items(depth, at);
                for slot in 0..u64::from(node.count()) {
                    let rank = geometry.last_rank(depth, items.start + slot);
                    let place = geometry.keys_at + (node.first_key() + slot) * 8;
                    words[rank as usize].write(&mut bytes[place as usize..]);
                }
            }
        }
        bytes
    }

    #[test]
    fn every_rank_is_found() {
        for order in ORDERS.into_iter().filter(|&order| order <= ORDER_MAX) {
            for tuples in COUNTS {
                let words: Vec<u64> = (0..tuples).map(|i| i / 3 * 10 + 5).collect();
                let geometry = BtreeGeometry::new(tuples, order, 8, 0).unwrap();
                let bytes = section(&geometry, &words);
                let top = words.last().map_or(0, |last| last + 3);
                for query in (0..=top).step_by(if tuples > 1000 { 37 } else { 1 }).chain([u64::MAX]) {
                    let wanted = words.partition_point(|&word| word < query) as u64;
                    assert_eq!(geometry.lower_bound(&bytes, query), Ok(wanted), "{order} {tuples} {query}");
                }
                let stored = geometry.parameters().into();
                assert_eq!(BtreeGeometry::from_parameters(stored, tuples, geometry.bytes), Some(geometry));
            }
        }
    }

    #[test]
    fn nodes_are_half_full() {
        for order in ORDERS {
            for count in COUNTS.into_iter().chain([100_000]) {
                let shape = Shape::new(order, count).unwrap();
                assert!(shape.levels().len() <= LEVELS_MAX);
                for (depth, level) in shape.levels().iter().enumerate() {
                    let is_leaf = depth + 1 == shape.levels().len();
                    let mut end = 0;
                    for node in 0..level.nodes {
                        let items = shape.items(depth, node);
                        let count = (items.end - items.start) as u32;
                        assert_eq!(items.start, end);
                        end = items.end;
                        let (least, most) =
                            if is_leaf { (order / 2, order - 1) } else { (order.div_ceil(2), order) };
                        assert!(count <= most && (count >= least || level.nodes == 1));
                    }
                    assert_eq!(end, level.items);
                }
            }
        }
    }

    #[test]
    fn metadata_keeps_48_bits() {
        let node = Node::new(1024, 0xFEDC_BA98_7654, 0x1234_5678_9ABC, true);
        assert_eq!((node.count(), node.is_leaf()), (1024, true));
        assert_eq!((node.first_key(), node.first()), (0xFEDC_BA98_7654, 0x1234_5678_9ABC));
        assert_eq!(Node::from_bytes(node.to_bytes()), node);
    }

    #[test]
    fn forged_nodes_stay_inside() {
        let words: Vec<u64> = (0..5000).collect();
        let geometry = BtreeGeometry::new(5000, 8, 8, 0).unwrap();
        let bytes = section(&geometry, &words);
        for seed in 0..200u64 {
            let mut forged = bytes.clone();
            for (at, byte) in forged[..geometry.keys_at as usize].iter_mut().enumerate() {
                let noise = (at as u64 + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
                *byte ^= if noise % 7 < seed % 7 { noise as u8 } else { 0 };
            }
            for query in [0, 1, 2500, 4999, u64::MAX] {
                assert!(geometry.lower_bound(&forged, query).unwrap() <= 5000);
            }
        }
        assert!(geometry.lower_bound::<u64>(&[], 1).is_err());
    }

    #[test]
    fn shapes_outside_the_limits_are_refused() {
        for (order, word, value) in [(3, 8, 8), (129, 8, 8), (64, 2, 0), (64, 8, 3)] {
            assert_eq!(BtreeGeometry::new(100, order, word, value), None);
        }
        assert_eq!(BtreeGeometry::new(TUPLES_MAX + 1, 64, 8, 8), None);
        assert_eq!((Shape::new(1026, 5), Shape::new(3, 5)), (None, None));
        assert!(BtreeGeometry::new(TUPLES_MAX, 4, 16, 8).is_some());
    }
}
