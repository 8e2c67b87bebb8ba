//! The classic FAST tree: the place of each key of a sorted list in the paper's blocked layout.
//!
//! ```text
//! binary tree of d_N levels, node of in-order index r = key r of the sorted list
//! cut into pages of d_P levels, pages into lines of d_L, lines into blocks of d_K
//! nodes breadth-first in a block, blocks in a line, lines in a page, pages in the tree
//! levels that are left over (d_N mod d_P, d_P mod d_L, d_L mod d_K) make the lowest piece shallow
//! ```
//! A descent counts keys below the query. It ends in a *gap*; gap 0 is before the first key. No query can end
//! right of gap `min(N, 2^d_N - 1)`. So every level of pages, and of lines in the last page, ends with the
//! piece that contains this gap: sizes follow N and not the next power of two. Places after the last key are
//! all ones, which are not below any query.
//!
//! This is pure arithmetic, from Kim et al., "Designing Fast Architecture-Sensitive Tree Search", TODS 36(4),
//! 2011, sections 4.2 and 5.1; the truncation is ours. Every function is at most O(levels). [`paged`] has
//! the compressed forms (section 7).

pub mod paged;
pub mod search;
pub mod section;
#[cfg(test)]
mod tests;
mod word;

pub use word::TreeWord;

/// Maximum number of keys in a tree; up to it, no place overflows 64 bits.
pub const KEYS_MAX: u64 = 1 << 48;
/// Maximum number of levels in a line, so that its order is a small table.
pub const LINE_LEVELS_MAX: u32 = 16;
/// Maximum number of levels in a page. With pages as deep as the tree there is no page blocking.
pub const PAGE_LEVELS_MAX: u32 = 64;
/// Zero bytes after the last line of a tree, so that the load of a line stays inside.
pub const SLACK_BYTES: u64 = 64;
const LINE_BYTES: u64 = 64;
/// Bytes of the pages of memory that [`Geometry::aligned`] fits a tree's pages into.
pub const UNIT_BYTES: u64 = crate::section::HUGE_PAGE_BYTES;

/// The sizes with which a tree is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// N: number of keys.
    pub keys: u64,
    /// Bytes per key: 2, 4, 8 or 16.
    pub key_bytes: u32,
    /// Number of levels in a SIMD block.
    pub d_k: u32,
    /// Number of levels in a cache line.
    pub d_l: u32,
    /// Number of levels in a page.
    pub d_p: u32,
    /// True if line blocks never straddle 64-byte lines; else they are packed, as in the paper.
    pub padded: bool,
    /// True if no page straddles a multiple of [`UNIT_BYTES`], counted from the first byte of the tree, and
    /// pages that are longer start on one.
    pub aligned: bool,
}

/// Returns the number of nodes in a complete tree of `levels < 64` levels.
#[inline]
#[must_use]
pub const fn nodes(levels: u32) -> u64 {
    (1 << levels) - 1
}

impl Geometry {
    /// Returns the paper's sizes for keys of `key_bytes`: blocks of 16 bytes (at least one level), lines of
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
            aligned: false,
        }
    }

    /// Returns d_N = ceil(log2 N). If N is a power of two, the tree has no node for the last key.
    #[must_use]
    pub const fn levels(&self) -> u32 {
        if self.keys < 2 { 0 } else { (self.keys - 1).ilog2() + 1 }
    }

    /// Lays out the tree. Returns `None` if a field is outside its limits: depths out of order or zero, an
    /// invalid key width, or too many keys.
    #[must_use]
    pub fn tree(self) -> Option<Tree> {
        Tree::new(self, true)
    }
}

/// The lines of one depth inside the pages of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineLevel {
    /// Number of levels of the page above these lines.
    pub above: u32,
    /// Number of levels in a line.
    pub levels: u32,
    /// Number of levels of the tree below these lines.
    pub below: u32,
    /// Number of slots from one group of lines to the next.
    pub pitch: u64,
    /// Binary logarithm of the number of lines in a group; 0 when packed.
    pub group: u32,
    /// Slot of the first line, relative to the start of the page: in a whole page, in the last one.
    pub start: [u64; 2],
    /// Number of the last line: in a whole page, in the last one.
    pub last: [u64; 2],
}

impl LineLevel {
    /// Returns the slot of a line, relative to the start of its page; `part` is 1 in the last page.
    #[inline(always)]
    #[must_use]
    pub const fn slot(&self, part: usize, line: u64) -> u64 {
        let inside = line & ((1 << self.group) - 1);
        self.start[part] + (line >> self.group) * self.pitch + inside * nodes(self.levels)
    }

    /// Returns the number of slots that this many lines occupy.
    const fn span(&self, lines: u64) -> u64 {
        lines.div_ceil(1 << self.group) * self.pitch
    }
}

/// Free slots after every so many pages of a depth, so that none of them straddles a huge page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Number of pages between two gaps; 0 if there are none.
    pub unit_pages: u64,
    /// Number of slots of a gap.
    pub slots: u64,
    /// Multiplier that replaces a division by `unit_pages`: 2^64 divided by it, rounded up; 0 for a division by 1.
    pub magic: u64,
}

impl Gaps {
    /// Returns the gaps after whole pages of this many slots, in units of `unit` slots. Of longer pages each
    /// begins a unit.
    fn new(page_slots: u64, unit: u64) -> Self {
        let unit_pages = (unit / page_slots).max(1);
        let used = unit_pages * page_slots;
        let slots = used.next_multiple_of(unit) - used;
        if slots == 0 {
            return Self::default();
        }
        Self { unit_pages, slots, magic: if unit_pages == 1 { 0 } else { u64::MAX / unit_pages + 1 } }
    }

    /// Returns the number of slots in all gaps before a page. Exact up to page 2^48, since units have fewer than
    /// 2^16 pages.
    #[inline(always)]
    #[must_use]
    pub const fn before(&self, page: u64) -> u64 {
        if self.slots == 0 {
            return 0;
        }
        let unit = if self.magic == 0 { page } else { ((page as u128 * self.magic as u128) >> 64) as u64 };
        unit * self.slots
    }
}

/// The pages of one depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageLevel {
    /// Number of levels of the tree above these pages.
    pub above: u32,
    /// Number of levels in a page.
    pub levels: u32,
    /// Number of levels of the tree below these pages.
    pub below: u32,
    /// Number of the last page.
    pub last: u64,
    /// Slot of the first page.
    pub start: u64,
    /// Number of slots in a whole page, and in the last one.
    pub slots: [u64; 2],
    /// Free slots between pages.
    pub gaps: Gaps,
    /// True if pages of one line each are laid out as the lines of a single page.
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
            gaps: Gaps::default(),
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
        if geometry.aligned && !page.joined {
            page.align(UNIT_BYTES / u64::from(geometry.key_bytes));
        }
        page
    }

    /// Moves the pages so that none straddles a multiple of `unit` slots, or, if they are longer, each starts
    /// on one.
    fn align(&mut self, unit: u64) {
        let whole = self.slots[usize::from(self.last == 0)];
        let next = self.start.next_multiple_of(unit);
        if self.start + self.span() <= next {
            return;
        }
        self.start = next;
        if self.last > 0 && self.span() > unit {
            self.gaps = Gaps::new(whole, unit);
        }
    }

    /// Returns the number of slots in all pages of the level.
    #[must_use]
    pub const fn span(&self) -> u64 {
        self.page(self.last).0 - self.start + self.slots[1]
    }

    /// Returns the slot of the first line of a page, and 1 if it is the last page.
    #[inline(always)]
    #[must_use]
    pub const fn page(&self, page: u64) -> (u64, usize) {
        let start = self.start + page * self.slots[0] + self.gaps.before(page);
        (start, (page == self.last) as usize)
    }
}

impl Geometry {
    /// Returns the binary logarithm of the number of lines in a group, and the slots of a group, for lines of
    /// this depth.
    const fn pitch(&self, levels: u32) -> (u32, u64) {
        let keys = nodes(levels);
        if !self.padded {
            return (0, keys);
        }
        let slots = LINE_BYTES / self.key_bytes as u64;
        if keys <= slots { ((slots / keys).ilog2(), slots) } else { (0, keys.next_multiple_of(slots)) }
    }
}

/// Returns the last gap in which a query can end.
fn last_gap(geometry: &Geometry) -> u64 {
    geometry.keys.min(nodes(geometry.levels()))
}

/// The layout of a geometry: the places of pages and lines.
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
            tree.slots = page.start + page.span();
            above += page.levels;
            tree.pages.push(page);
        }
        Some(tree)
    }

    /// Returns the geometry from which the tree was laid out.
    #[must_use]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns the levels of pages, top first.
    #[must_use]
    pub fn pages(&self) -> &[PageLevel] {
        &self.pages
    }

    /// Returns the last gap in which a query can end: `min(N, 2^d_N - 1)`.
    #[must_use]
    pub fn last_gap(&self) -> u64 {
        last_gap(&self.geometry)
    }

    /// Returns the number of slots for keys, free ones included.
    #[must_use]
    pub const fn slots(&self) -> u64 {
        self.slots
    }

    /// Returns the bytes of the tree: its slots, zero bytes to a multiple of 64, and 64 zero bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        (self.slots * self.geometry.key_bytes as u64).next_multiple_of(LINE_BYTES) + SLACK_BYTES
    }

    /// Returns the slot of the node with in-order index `index`; `None` if the tree has no such node. If N is
    /// a power of two, that is so for the last of the N keys.
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

    /// Returns the in-order index of the node in a slot; `None` if the slot is free or outside. An index of N
    /// or more is padding.
    #[must_use]
    pub fn index_of(&self, slot: u64) -> Option<u64> {
        let page_level = self.pages.iter().rev().find(|level| level.start <= slot)?;
        let inside = slot - page_level.start;
        let gaps = page_level.gaps;
        let unit = gaps.unit_pages * page_level.slots[0] + gaps.slots;
        let page = if gaps.slots == 0 {
            inside.checked_div(page_level.slots[0])?
        } else {
            let inside = inside % unit / page_level.slots[0];
            (inside < gaps.unit_pages)
                .then_some(slot.checked_sub(page_level.start)? / unit * gaps.unit_pages + inside)?
        };
        let page = page.min(page_level.last);
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

/// Returns the slot of node `node` at depth `depth` of a line of `levels` levels, relative to the start of
/// the line.
#[must_use]
pub const fn slot_in_line(levels: u32, d_k: u32, depth: u32, node: u64) -> u64 {
    let above = depth / d_k * d_k;
    let left = levels - above;
    let block_levels = if left < d_k { left } else { d_k };
    let within = depth - above;
    nodes(above) + (node >> within) * nodes(block_levels) + nodes(within) + (node & nodes(within))
}

/// Returns the rank of slot `slot < 2^levels - 1` among the keys of a line of `levels` levels.
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
