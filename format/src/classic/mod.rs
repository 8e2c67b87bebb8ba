//! The classic FAST tree: where each key of a sorted list lies in the paper's blocked layout.
//!
//! ```text
//! binary tree of d_N levels, node of in-order index r = key r of the sorted list
//! cut into pages of d_P levels, pages into lines of d_L, lines into blocks of d_K
//! nodes breadth-first in a block, blocks in a line, lines in a page, pages in the tree
//! levels that are left over (d_N mod d_P, d_P mod d_L, d_L mod d_K) make the lowest piece shallow
//! ```
//! A descent counts keys below the query; it ends in a *gap*, 0 before the first key. No query can
//! end right of gap `min(N, 2^d_N - 1)`, so every level of pages, and of lines in the last page, stops
//! at the piece that holds this gap: sizes follow N and not the next power of two. Places behind the
//! last key hold all ones, which are below no query.
//!
//! Pure arithmetic, from Kim et al., "Designing Fast Architecture-Sensitive Tree Search", TODS 36(4),
//! 2011, sections 4.2 and 5.1; the truncation is ours. Every function is O(levels) at most.
//! [`packed`] holds the two compressed forms (section 7).

pub mod packed;
pub mod section;
#[cfg(test)]
mod tests;
mod word;

pub use word::TreeWord;

/// Most keys of a tree; with it no place overflows 64 bits.
pub const KEYS_MAX: u64 = 1 << 48;
/// Most levels of a line: its order stays a small table.
pub const LINE_LEVELS_MAX: u32 = 16;
/// Most levels of a page; with a page as deep as the tree there is no page blocking.
pub const PAGE_LEVELS_MAX: u32 = 64;
/// Zero bytes behind the last line of a tree, so that a load of a line stays inside.
pub const SLACK_BYTES: u64 = 64;
const LINE_BYTES: u64 = 64;

/// The sizes a tree was laid out with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// N: number of keys.
    pub keys: u64,
    /// Bytes of a key: 2, 4, 8 or 16.
    pub key_bytes: u32,
    /// Levels of a SIMD block.
    pub d_k: u32,
    /// Levels of a cache line.
    pub d_l: u32,
    /// Levels of a page.
    pub d_p: u32,
    /// Whether line blocks are kept from straddling 64-byte lines; else packed, as in the paper.
    pub padded: bool,
}

/// Nodes of a complete tree of `levels < 64` levels.
#[inline]
#[must_use]
pub const fn nodes(levels: u32) -> u64 {
    (1 << levels) - 1
}

impl Geometry {
    /// The paper's sizes for keys of `key_bytes`: blocks of 16 bytes (one level at least), lines of
    /// 64 bytes, pages of 2 MiB; packed. For 4 bytes: d_K = 2, d_L = 4, d_P = 19.
    #[must_use]
    pub const fn paper(keys: u64, key_bytes: u32) -> Self {
        const fn depth(bytes: u32, key_bytes: u32) -> u32 {
            let slots = bytes / key_bytes;
            if slots < 2 { 1 } else { slots.ilog2() }
        }
        let key = if key_bytes == 0 { 1 } else { key_bytes };
        Self {
            keys,
            key_bytes,
            d_k: depth(16, key),
            d_l: depth(64, key),
            d_p: depth(2 << 20, key),
            padded: false,
        }
    }

    /// d_N = ceil(log2 N): with N a power of two the tree has no node for the last key.
    #[must_use]
    pub const fn levels(&self) -> u32 {
        if self.keys < 2 { 0 } else { (self.keys - 1).ilog2() + 1 }
    }

    /// The place of everything, or `None` if a field is outside its limits: depths out of order or
    /// zero, an odd width, too many keys.
    #[must_use]
    pub fn tree(self) -> Option<Tree> {
        Tree::new(self, true)
    }
}

/// Lines of one depth inside the pages of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineLevel {
    /// Levels of the page above these lines.
    pub above: u32,
    /// Levels of a line.
    pub levels: u32,
    /// Levels of the tree under these lines.
    pub below: u32,
    /// Slots from one group of lines to the next.
    pub pitch: u64,
    /// Logarithm of the lines of a group; 0 when packed.
    pub group: u32,
    /// Slot of the first line, from the start of the page: in a whole page, in the last one.
    pub start: [u64; 2],
    /// Number of the last line: in a whole page, in the last one.
    pub last: [u64; 2],
}

impl LineLevel {
    /// Slot of a line from the start of its page; `part` is 1 in the last page.
    #[inline(always)]
    #[must_use]
    pub const fn slot(&self, part: usize, line: u64) -> u64 {
        let inside = line & ((1 << self.group) - 1);
        self.start[part] + (line >> self.group) * self.pitch + inside * nodes(self.levels)
    }

    /// Slots that this many lines occupy.
    const fn span(&self, lines: u64) -> u64 {
        lines.div_ceil(1 << self.group) * self.pitch
    }
}

/// Pages of one depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageLevel {
    /// Levels of the tree above these pages.
    pub above: u32,
    /// Levels of a page.
    pub levels: u32,
    /// Levels of the tree under these pages.
    pub below: u32,
    /// Number of the last page.
    pub last: u64,
    /// Slot of the first page.
    pub start: u64,
    /// Slots of a whole page, and of the last one.
    pub slots: [u64; 2],
    /// Pages of one line each are laid out as the lines of a single page.
    pub joined: bool,
    /// Their lines, top first.
    pub lines: Vec<LineLevel>,
}

impl PageLevel {
    fn new(geometry: &Geometry, above: u32, start: u64, join: bool) -> Self {
        let all = geometry.levels();
        let levels = geometry.d_p.min(all - above);
        let gap = last_gap(geometry);
        let joined = join && levels <= geometry.d_l;
        let last_page = gap >> (all - above);
        let mut page = Self {
            above,
            levels,
            below: all - above - levels,
            last: if joined { 0 } else { last_page },
            start,
            slots: [0; 2],
            joined,
            lines: Vec::new(),
        };
        let mut inside = 0;
        while inside < levels {
            let depth = geometry.d_l.min(levels - inside);
            let last = gap >> (all - above - inside);
            let last = if joined { [last; 2] } else { [nodes(inside), last - (last_page << inside)] };
            let (group, pitch) = geometry.pitch(depth);
            let below = all - above - inside - depth;
            let line =
                LineLevel { above: inside, levels: depth, below, pitch, group, start: page.slots, last };
            for (slots, last) in page.slots.iter_mut().zip(last) {
                *slots += line.span(last + 1);
            }
            page.lines.push(line);
            inside += depth;
        }
        page
    }

    /// Slots of all pages of the level.
    const fn span(&self) -> u64 {
        self.last * self.slots[0] + self.slots[1]
    }

    /// Slot of the first line of a page, and 1 if it is the last page.
    #[inline(always)]
    #[must_use]
    pub const fn page(&self, page: u64) -> (u64, usize) {
        (self.start + page * self.slots[0], (page == self.last) as usize)
    }
}

impl Geometry {
    /// Logarithm of the lines of a group, and its slots, for lines of this depth.
    const fn pitch(&self, levels: u32) -> (u32, u64) {
        let keys = nodes(levels);
        if !self.padded {
            return (0, keys);
        }
        let slots = LINE_BYTES / self.key_bytes as u64;
        if keys <= slots { ((slots / keys).ilog2(), slots) } else { (0, keys.next_multiple_of(slots)) }
    }
}

/// Last gap that a query can end in.
fn last_gap(geometry: &Geometry) -> u64 {
    geometry.keys.min(nodes(geometry.levels()))
}

/// A geometry worked out: where pages and lines begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    geometry: Geometry,
    pages: Vec<PageLevel>,
    slots: u64,
}

impl Tree {
    fn new(geometry: Geometry, join: bool) -> Option<Self> {
        let Geometry { keys, key_bytes, d_k, d_l, d_p, .. } = geometry;
        let ordered = 1 <= d_k && d_k <= d_l && d_l <= d_p;
        if !ordered || d_l > LINE_LEVELS_MAX || d_p > PAGE_LEVELS_MAX || keys > KEYS_MAX {
            return None;
        }
        if !matches!(key_bytes, 2 | 4 | 8 | 16) {
            return None;
        }
        let mut tree = Self { geometry, pages: Vec::new(), slots: 0 };
        let mut above = 0;
        while above < geometry.levels() {
            let page = PageLevel::new(&geometry, above, tree.slots, join);
            tree.slots += page.span();
            above += page.levels;
            tree.pages.push(page);
        }
        Some(tree)
    }

    /// What it was made from.
    #[must_use]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Levels of pages, top first.
    #[must_use]
    pub fn pages(&self) -> &[PageLevel] {
        &self.pages
    }

    /// Last gap that a query can end in: `min(N, 2^d_N - 1)`.
    #[must_use]
    pub fn last_gap(&self) -> u64 {
        last_gap(&self.geometry)
    }

    /// Places for keys, free ones included.
    #[must_use]
    pub const fn slots(&self) -> u64 {
        self.slots
    }

    /// Bytes of the tree: its slots, zero bytes to a multiple of 64, and 64 zero bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        (self.slots * self.geometry.key_bytes as u64).next_multiple_of(LINE_BYTES) + SLACK_BYTES
    }

    /// Slot of the node of in-order index `index`; `None` if the tree has no such node, which of the
    /// N keys is so for the last one of a power of two.
    #[must_use]
    pub fn slot_of(&self, index: u64) -> Option<u64> {
        if index >= nodes(self.geometry.levels()) {
            return None;
        }
        let height = index.trailing_ones();
        let depth = self.geometry.levels() - 1 - height;
        let node = index >> (height + 1);
        let page_level = self.pages.iter().find(|level| depth < level.above + level.levels)?;
        let inside = depth - page_level.above;
        let level = page_level.lines.iter().find(|line| inside < line.above + line.levels)?;
        let within = inside - level.above;
        let line = node >> within;
        let (page, line) =
            if page_level.joined { (0, line) } else { (line >> level.above, line & nodes(level.above)) };
        if page > page_level.last {
            return None;
        }
        let (start, part) = page_level.page(page);
        let place = slot_in_line(level.levels, self.geometry.d_k, within, node & nodes(within));
        (line <= level.last[part]).then(|| start + level.slot(part, line) + place)
    }

    /// In-order index of the node in a slot; `None` if the slot is free or outside. An index of N or
    /// more is padding.
    #[must_use]
    pub fn index_of(&self, slot: u64) -> Option<u64> {
        let page_level = self.pages.iter().rev().find(|level| level.start <= slot)?;
        let inside = slot - page_level.start;
        let page = inside.checked_div(page_level.slots[0])?.min(page_level.last);
        let (start, part) = page_level.page(page);
        let inside = slot - start;
        let level = page_level.lines.iter().rev().find(|line| line.start[part] <= inside)?;
        let inside = inside - level.start[part];
        let (group, rest) = (inside / level.pitch, inside % level.pitch);
        let line = (group << level.group) + rest / nodes(level.levels);
        let place = rest % nodes(level.levels);
        if rest / nodes(level.levels) >= 1 << level.group || line > level.last[part] {
            return None;
        }
        let line = if page_level.joined { line } else { (page << level.above) + line };
        let rank = rank_in_line(level.levels, self.geometry.d_k, place);
        Some((line << (level.levels + level.below)) + ((rank + 1) << level.below) - 1)
    }
}

/// Slot, from the start of a line of `levels` levels, of node `node` at depth `depth` of it.
#[must_use]
pub const fn slot_in_line(levels: u32, d_k: u32, depth: u32, node: u64) -> u64 {
    let above = depth / d_k * d_k;
    let left = levels - above;
    let block_levels = if left < d_k { left } else { d_k };
    let within = depth - above;
    nodes(above) + (node >> within) * nodes(block_levels) + nodes(within) + (node & nodes(within))
}

/// Rank among the keys of a line of `levels` levels, of what lies in slot `slot < 2^levels - 1` of it.
#[must_use]
pub const fn rank_in_line(levels: u32, d_k: u32, slot: u64) -> u64 {
    let mut above = 0;
    while above + d_k < levels && slot >= nodes(above + d_k) {
        above += d_k;
    }
    let left = levels - above;
    let block_levels = if left < d_k { left } else { d_k };
    let inside = slot - nodes(above);
    let (block, place) = (inside / nodes(block_levels), inside % nodes(block_levels));
    let depth = (place + 1).ilog2();
    let node = (block << depth) + place - nodes(depth);
    let height = levels - 1 - above - depth;
    ((2 * node + 1) << height) - 1
}
