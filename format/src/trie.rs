//! TRIE: from a byte key to its page of TEXT, past long runs of keys that begin alike.
//!
//! Between two pages stands a *separator*: the first key of the right page, cut after the first byte in which it
//! differs from the last key of the left one. The page of a query is the number of separators at or below it.
//!
//! All separators under a node share its *prefix*. A node looks at the eight bytes after the prefix alone: its
//! slots part them like the separators of a B+tree. Separators that agree in these bytes too are a run; it is a
//! child of its own, between a slot and the one that is larger by one, and looks at later bytes. So a search never
//! compares what keys have in common. It also never looks at the prefixes: a query that does not share the last
//! one is found out at the page, and then belongs before or after all that share it.
//!
//! This is a B-tree over a trie of eight bytes a step, as in Masstree (Mao, Kohler and Morris, EuroSys 2012, section
//! 4.1), with prefixes that are passed over as in a Patricia trie (Ferragina and Grossi's String B-tree, J. ACM 1999).

use crate::section::{Parameters, TrieParameters};

/// Bytes per node.
pub const NODE_BYTES: usize = 128;
/// Maximum number of slots of a node.
pub const SLOTS_MAX: usize = 10;
/// Maximum number of nodes on a path.
pub const LEVELS_MAX: u32 = 64;
/// Maximum number of pages after the first one that a child of pages has.
pub const MORE_MAX: u32 = 3;
/// Maximum number of pages, so that their numbers fit in a child.
pub const PAGES_MAX: u64 = 1 << 29;
/// Maximum number of nodes.
pub const NODES_MAX: u64 = 1 << 31;
/// Bytes of a query that a node looks at.
pub const SLICE_BYTES: usize = 8;

const CHILDREN_AT: usize = 4;
const SLICES_AT: usize = CHILDREN_AT + 4 * (SLOTS_MAX + 1);

/// What a node leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// A node with a larger number.
    Node(u32),
    /// A page, and the number of pages after it that are searched with it.
    Pages {
        /// The first page.
        first: u32,
        /// The number of further ones.
        more: u32,
    },
}

impl Child {
    /// Returns the stored form.
    #[must_use]
    pub fn to_word(self) -> u32 {
        match self {
            Self::Node(number) => 1 << 31 | number,
            Self::Pages { first, more } => more << 29 | first,
        }
    }

    /// Reads the stored form.
    #[inline]
    #[must_use]
    pub fn from_word(word: u32) -> Self {
        let number = word & (u32::MAX >> 1);
        if word >> 31 == 1 {
            return Self::Node(number);
        }
        Self::Pages { first: number & (u32::MAX >> 3), more: number >> 29 }
    }
}

/// A node, in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Bytes that all separators under the node share; a search skips them.
    pub prefix: u16,
    /// Slices that part the children, ascending.
    pub slices: Vec<u64>,
    /// Children: one more than slices.
    pub children: Vec<Child>,
    /// Pages instead of children: the first one, and the number of further ones, to be bisected by their heads.
    pub run: Option<(u32, u32)>,
}

impl Node {
    /// Returns the stored form.
    ///
    /// # Panics
    /// If there are more than 10 slices.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; NODE_BYTES] {
        assert!(self.slices.len() <= SLOTS_MAX, "{} slots", self.slices.len());
        let mut bytes = [0; NODE_BYTES];
        bytes[..2].copy_from_slice(&self.prefix.to_le_bytes());
        bytes[2] = self.slices.len() as u8;
        bytes[3] = u8::from(self.run.is_some());
        let pages = self.run.map_or([0; 2], |(first, more)| [first, more]);
        let children = self.children.iter().map(|child| child.to_word());
        let children = children.chain(if self.run.is_some() { &pages[..] } else { &[] }.iter().copied());
        for (out, child) in bytes[CHILDREN_AT..SLICES_AT].chunks_exact_mut(4).zip(children) {
            out.copy_from_slice(&child.to_le_bytes());
        }
        bytes[SLICES_AT..].fill(0xFF);
        for (out, slice) in bytes[SLICES_AT..].chunks_exact_mut(8).zip(&self.slices) {
            out.copy_from_slice(&slice.to_le_bytes());
        }
        bytes
    }

    /// Reads the stored form. Returns `None` if no node is stored so.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; NODE_BYTES]) -> Option<Self> {
        let view = View(bytes);
        let slots = view.slots();
        let this = Self {
            prefix: view.prefix() as u16,
            slices: (0..slots).map(|slot| view.slice(slot)).collect(),
            children: if view.run().is_some() {
                Vec::new()
            } else {
                (0..=slots).map(|at| view.child(at)).collect()
            },
            run: view.run(),
        };
        (this.to_bytes() == *bytes).then_some(this)
    }
}

/// A node in place. Any bytes make one.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(pub &'a [u8; NODE_BYTES]);

impl View<'_> {
    /// Returns the bytes that all separators under the node share.
    #[inline]
    #[must_use]
    pub fn prefix(self) -> usize {
        usize::from(u16::from_le_bytes([self.0[0], self.0[1]]))
    }

    /// Returns the number of slots, 10 at most.
    #[inline]
    #[must_use]
    pub fn slots(self) -> usize {
        usize::from(self.0[2]).min(SLOTS_MAX)
    }

    /// Returns the pages of a node without children: the first one, and the number of further ones.
    #[inline]
    #[must_use]
    pub fn run(self) -> Option<(u32, u32)> {
        (self.0[3] != 0).then(|| (self.word(0), self.word(1)))
    }

    #[inline(always)]
    fn word(self, number: usize) -> u32 {
        let at = CHILDREN_AT + 4 * number;
        u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    /// Returns child `number`, which is 10 at most.
    #[inline]
    #[must_use]
    pub fn child(self, number: usize) -> Child {
        Child::from_word(self.word(number))
    }

    /// Returns slice `slot`, which is below 10.
    #[inline(always)]
    #[must_use]
    pub fn slice(self, slot: usize) -> u64 {
        self.0[SLICES_AT + 8 * slot..].first_chunk().map_or(0, |&bytes| u64::from_le_bytes(bytes))
    }

    /// Returns the number of the child of a query with this slice.
    #[inline]
    #[must_use]
    pub fn route(self, slice: u64) -> usize {
        let mut below = 0;
        for slot in 0..SLOTS_MAX {
            below += u64::from(self.slice(slot) <= slice);
        }
        (below as usize).min(self.slots())
    }
}

/// Returns eight bytes of a text from `at` on, the first one most significant, zero beyond the end.
#[inline]
#[must_use]
pub fn slice(text: &[u8], at: usize) -> u64 {
    crate::chunk::load(text, at)
}

/// Size of the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrieGeometry {
    /// Number of nodes.
    pub nodes: u64,
    /// Most nodes on a path.
    pub levels: u32,
}

impl TrieGeometry {
    /// Returns the bytes of the section, or `None` on overflow.
    #[must_use]
    pub fn bytes(self) -> Option<u64> {
        self.nodes.checked_mul(NODE_BYTES as u64)
    }

    /// Returns the parameters of the section.
    #[must_use]
    pub fn parameters(self) -> TrieParameters {
        TrieParameters {
            node_bytes: (NODE_BYTES as u32).into(),
            levels: self.levels.into(),
            reserved: [0; 56],
        }
    }

    /// Reads the size of a section of `length` bytes from its parameters. Returns `None` if none matches.
    #[must_use]
    pub fn from_parameters(stored: Parameters, nodes: u64, length: u64) -> Option<Self> {
        let stored = TrieParameters::from(stored);
        let this = Self { nodes, levels: stored.levels.get() };
        let fits = (1..NODES_MAX).contains(&nodes) && (1..=LEVELS_MAX).contains(&this.levels);
        (fits && this.bytes() == Some(length) && this.parameters() == stored).then_some(this)
    }
}
