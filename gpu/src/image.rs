//! The device image: what a GPU descends through instead of the file's spine.
//!
//! It is derived from the tuple lines alone, above *units*: whole lines, or their halves, *cells* of 32 bytes, which
//! are one sector of device memory. *Borders* are the last words of all units but the last; a *node* of 32 bytes, one
//! sector too, holds the borders between its children as codes; two or three levels of nodes stand below a *top* of
//! 32-bit codes, which fits the shared memory of a block. A node has no header: base and shift of its codes follow from
//! the two codes of its parent that it lies between, which the search has in registers. So a level costs one sector,
//! and nothing is read twice.
//!
//! A code is that of the cell in which its border lies. A query whose cell is that of a border goes to the left
//! of it, so a search ends in the right unit or left of it, and looks at later units if all keys of its own are
//! below the query. With 16 bits for 17 children a cell is rarely shared; runs of equal keys share theirs. Above cells
//! of tuples the lowest nodes have 33 children by codes of 8 bits: a level less is worth that one query in some fifteen
//! looks at the next cell, which is beside its own.
//!
//! # Layout
//! - Node `i` of level 0 is above units `F i ..`, where `F` is 17 for lines and 33 for cells, node `i` of level `k + 1`
//!   above nodes `17 i ..` of level `k`, the top above the nodes of the last level (of units, if there are no levels),
//!   as far as there are any. The border right of child `c` of a level is the last word of unit `(c + 1) * span - 1`,
//!   where `c` counts all children of the level, and `span` is 1 for level 0 and `F * 17^(k - 1)` for level `k`.
//! - All codes are of *offsets*: words less the table's smallest, those beyond its ends as the ends
//!   ([`Shape::offset`]).
//! - The top has a code of 32 bits for each border between its children: the offset without its lowest
//!   [`Shape::top_shift`] bits. A child of it, and likewise of a node, has an [`Interval`] of offsets.
//! - A node has 16 codes of 16 bits, the least significant byte first, or 32 of 8 bits in level 0 above cells,
//!   ascending; all ones where no border is. A code is the offset, brought into the node's interval, less the
//!   interval's left end, without its lowest [`Interval::shift`] bits. [`Interval::between`] is the interval of the
//!   child between two codes.
//! - The child of a query is the number of codes that are below its own.
//! - Where keys are composed of fields, bits between them are the same in all borders: a [`Gap`]. Words are searched as
//!   if it were not there, for else a cell would hold all of a field's values.
//!
//! This builder is the reference for the one that runs on the device (`kernels/image.cu`): both make the same bytes.

/// Children of a node, but of the lowest ones above cells.
pub const FANOUT: usize = 17;
/// Bytes of a node.
pub const NODE_BYTES: usize = 32;
/// Most levels of nodes.
pub const LEVELS_MAX: usize = 6;
/// Most codes of the top above lines: 64 KiB of shared memory. On an H200, 2^24 tuples of 16 bytes with a level less
/// for it are found at 28.9 G/s instead of 25.7; twice as many codes cost 2^26 tuples of 8 bytes 27.5 to 26.4.
pub const TOP_MAX: usize = 1 << 14;

/// What an image leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// Tuple lines of 64 bytes.
    Line,
    /// Halves of lines.
    Cell,
}

impl Unit {
    /// Bits of a code of a level.
    #[must_use]
    pub const fn code_bits(self, level: usize) -> u32 {
        match (self, level) {
            (Self::Cell, 0) => 8,
            _ => 16,
        }
    }

    /// Children of a node of a level.
    #[must_use]
    pub const fn fanout(self, level: usize) -> usize {
        NODE_BYTES * 8 / self.code_bits(level) as usize + 1
    }
}

/// Fewest bits of a gap that is left out.
pub const GAP_MIN: u32 = 8;

/// Bits that are left out of words, since all borders have the same there.
///
/// Whatever is left out, the order of words stays: those with less in the gap come before all that share the bits
/// above it, those with more after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its lowest bit.
    pub at: u32,
    /// Its length in bits; there are bits above it.
    pub bits: u32,
    /// What borders have there.
    pub value: u128,
}

impl Gap {
    /// The longest run of equal bits between bits that differ, the lowest of several; `None` if it is shorter than
    /// [`GAP_MIN`]. `any` has the bits that some border has, `all` those that all have.
    #[must_use]
    pub fn widest(any: u128, all: u128) -> Option<Self> {
        let differs = any & !all;
        let mut widest = None;
        let mut bits = GAP_MIN;
        let mut rest = differs;
        while rest != 0 {
            let below = rest.trailing_zeros();
            rest &= rest - 1;
            let next = rest.trailing_zeros();
            if rest != 0 && next - below > bits {
                bits = next - below - 1;
                widest = Some(Self { at: below + 1, bits, value: (all >> (below + 1)) & ((1 << bits) - 1) });
                // The next one has to be longer.
                bits += 1;
            }
        }
        widest
    }

    /// A word without these bits.
    #[inline]
    #[must_use]
    pub fn close(self, word: u128) -> u128 {
        let below = (1u128 << self.at) - 1;
        let inside = (word >> self.at) & ((1 << self.bits) - 1);
        let low = match inside.cmp(&self.value) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => word & below,
            std::cmp::Ordering::Greater => below,
        };
        (word >> (self.at + self.bits)) << self.at | low
    }
}

/// An interval of offsets from the smallest word, both ends included, in which the borders of a subtree lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Smallest offset.
    pub left: u128,
    /// Largest offset.
    pub right: u128,
}

impl Interval {
    /// Bits that codes of so many bits drop here.
    #[inline]
    #[must_use]
    pub fn shift(self, code_bits: u32) -> u32 {
        (u128::BITS - (self.right - self.left).leading_zeros()).saturating_sub(code_bits)
    }

    /// Code of an offset; those beyond the ends have the code of the end.
    #[inline]
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "at most 16 bits remain")]
    pub fn code(self, offset: u128, code_bits: u32) -> u16 {
        ((offset.clamp(self.left, self.right) - self.left) >> self.shift(code_bits)) as u16
    }

    /// What lies between two neighbouring borders with these codes of 16 bits; `None` for the interval's own ends.
    #[inline]
    #[must_use]
    pub fn between(self, before: Option<u16>, after: Option<u16>) -> Self {
        let shift = self.shift(16);
        let last = (1u128 << shift) - 1;
        let span = self.right - self.left;
        // A code that stands for no border may lie beyond the end.
        let at = |offset: u128| self.left + offset.min(span);
        let left = before.map_or(self.left, |code| at(u128::from(code) << shift));
        let right = after.map_or(self.right, |code| at((u128::from(code) << shift) | last));
        // Damaged lines may descend.
        Self { left, right: right.max(left) }
    }
}

/// Sizes of an image; they need no look at the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// What it leads to.
    pub unit: Unit,
    /// How many; at least one.
    pub units: u64,
    /// Smallest word.
    pub low: u128,
    /// Largest word.
    pub high: u128,
    /// Levels of nodes.
    pub levels: usize,
    /// Bits that offsets leave out.
    pub gap: Option<Gap>,
}

impl Shape {
    /// With as few levels as leave at most `top_max` codes in the top, and without a gap. `None` without units, for
    /// more levels than there may be, and if `high` is below `low`.
    #[must_use]
    pub fn new(
        unit: Unit,
        units: u64,
        low: impl Into<u128>,
        high: impl Into<u128>,
        top_max: usize,
    ) -> Option<Self> {
        let mut shape = Self { unit, units, low: low.into(), high: high.into(), levels: 0, gap: None };
        while shape.children(shape.levels).saturating_sub(1) > top_max as u64 {
            shape.levels += 1;
        }
        (units > 0 && shape.low <= shape.high && shape.levels <= LEVELS_MAX).then_some(shape)
    }

    /// Nodes, or units, below level `levels`.
    fn children(&self, levels: usize) -> u64 {
        (0..levels).fold(self.units, |count, level| count.div_ceil(self.unit.fanout(level) as u64))
    }

    /// Units below a child of a level.
    #[must_use]
    pub fn span(&self, level: usize) -> u64 {
        (0..level).map(|level| self.unit.fanout(level) as u64).product()
    }

    /// The same with a gap; sizes do not change.
    #[must_use]
    pub fn with_gap(self, gap: Option<Gap>) -> Self {
        Self { gap, ..self }
    }

    /// Nodes of a level; level 0 is the lowest.
    #[must_use]
    pub fn nodes(&self, level: usize) -> u64 {
        self.children(level + 1)
    }

    /// Codes of the top: one less than it has children.
    #[must_use]
    pub fn top(&self) -> u64 {
        self.children(self.levels) - 1
    }

    /// Bytes of all nodes and of the top.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (0..self.levels).map(|level| self.nodes(level) * NODE_BYTES as u64).sum::<u64>() + self.top() * 4
    }

    /// A word as it is searched: without the gap.
    #[inline]
    #[must_use]
    pub fn close(&self, word: u128) -> u128 {
        self.gap.map_or(word, |gap| gap.close(word))
    }

    /// All offsets.
    #[must_use]
    pub fn all(&self) -> Interval {
        Interval { left: 0, right: self.close(self.high) - self.close(self.low) }
    }

    /// Bits that codes of the top drop.
    #[must_use]
    pub fn top_shift(&self) -> u32 {
        (u128::BITS - self.all().right.leading_zeros()).saturating_sub(32)
    }

    /// Offset of a word; words beyond the ends have that of the end.
    #[inline]
    #[must_use]
    pub fn offset(&self, word: impl Into<u128>) -> u128 {
        self.close(word.into().clamp(self.low, self.high)) - self.close(self.low)
    }

    /// Code of an offset in the top.
    #[inline]
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "at most 32 bits remain")]
    pub fn top_code(&self, offset: u128) -> u32 {
        (offset >> self.top_shift()) as u32
    }

    /// What lies below a child of the top, between the codes next to it.
    #[must_use]
    pub fn below_top(&self, before: Option<u32>, after: Option<u32>) -> Interval {
        let (all, shift) = (self.all(), self.top_shift());
        let last = (1u128 << shift) - 1;
        let left = before.map_or(all.left, |code| u128::from(code) << shift);
        let right = after.map_or(all.right, |code| (u128::from(code) << shift | last).min(all.right));
        Interval { left, right: right.max(left) }
    }
}

/// The image of a table's units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Sizes.
    pub shape: Shape,
    /// Codes of the top, ascending.
    pub top: Vec<u32>,
    /// Nodes, the lowest level first.
    pub nodes: Vec<Vec<[u8; NODE_BYTES]>>,
}

/// Codes of a node, ascending.
fn codes(node: &[u8; NODE_BYTES], code_bits: u32) -> Vec<u16> {
    match code_bits {
        8 => node.iter().map(|&code| code.into()).collect(),
        _ => node.chunks_exact(2).map(|code| u16::from_le_bytes([code[0], code[1]])).collect(),
    }
}

/// A node of these codes.
fn node(codes: &[u16], code_bits: u32) -> [u8; NODE_BYTES] {
    let bytes = codes.iter().flat_map(|code| code.to_le_bytes().into_iter().take(code_bits as usize / 8));
    let mut node = [0; NODE_BYTES];
    node.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    node
}

impl Image {
    /// Of this shape and the last words of its units (the last one's may be padding). O(units).
    ///
    /// # Panics
    /// If the shape is of another number of units.
    #[must_use]
    pub fn of<W: Copy + Into<u128>>(shape: Shape, lasts: &[W]) -> Self {
        assert_eq!(shape.units, lasts.len() as u64, "as many last words as units");
        // The border right of a child of some level; none right of the last unit.
        let border = |level: usize, child: usize| {
            let unit = (child as u64 + 1) * shape.span(level) - 1;
            (unit + 1 < shape.units).then(|| shape.offset(lasts[unit as usize]))
        };
        let top: Vec<u32> = (0..shape.top() as usize)
            .filter_map(|at| border(shape.levels, at))
            .map(|o| shape.top_code(o))
            .collect();
        let mut intervals: Vec<Interval> = (0..=top.len())
            .map(|at| shape.below_top(at.checked_sub(1).map(|at| top[at]), top.get(at).copied()))
            .collect();
        let mut nodes = Vec::new();
        for level in (0..shape.levels).rev() {
            let (code_bits, fanout) = (shape.unit.code_bits(level), shape.unit.fanout(level));
            let pad = u16::MAX >> (16 - code_bits);
            let mut below = Vec::with_capacity(intervals.len() * fanout);
            let mut level_nodes = Vec::with_capacity(intervals.len());
            for (at, interval) in intervals.iter().enumerate() {
                let codes: Vec<u16> = (0..fanout - 1)
                    .map(|slot| border(level, at * fanout + slot))
                    .map(|offset| offset.map_or(pad, |offset| interval.code(offset, code_bits)))
                    .collect();
                level_nodes.push(node(&codes, code_bits));
                if level > 0 {
                    below.extend((0..fanout).map(|slot| {
                        interval
                            .between(slot.checked_sub(1).map(|slot| codes[slot]), codes.get(slot).copied())
                    }));
                }
            }
            below.truncate(shape.children(level) as usize);
            intervals = below;
            nodes.push(level_nodes);
        }
        nodes.reverse();
        Self { shape, top, nodes }
    }

    /// The gap of these borders, all last words but that of the last line: what the device finds out by itself
    /// before it makes an image.
    #[must_use]
    pub fn gap<W: Copy + Into<u128>>(lasts: &[W]) -> Option<Gap> {
        let borders = &lasts[..lasts.len().saturating_sub(1)];
        let (any, all) =
            borders.iter().fold((0, u128::MAX), |(any, all), &word| (any | word.into(), all & word.into()));
        Gap::widest(any, all)
    }

    /// The unit of a query, or one left of it: what each thread of the device computes.
    #[must_use]
    pub fn unit(&self, query: impl Into<u128>) -> u64 {
        let shape = &self.shape;
        let offset = shape.offset(query);
        let code = shape.top_code(offset);
        let mut at = self.top.partition_point(|&border| border < code);
        let mut interval =
            shape.below_top(at.checked_sub(1).map(|at| self.top[at]), self.top.get(at).copied());
        for (level, nodes) in self.nodes.iter().enumerate().rev() {
            let code_bits = shape.unit.code_bits(level);
            let codes = codes(&nodes[at], code_bits);
            let code = interval.code(offset, code_bits);
            let child = codes.iter().filter(|&&border| border < code).count();
            if level > 0 {
                interval =
                    interval.between(child.checked_sub(1).map(|slot| codes[slot]), codes.get(child).copied());
            }
            at = at * shape.unit.fanout(level) + child;
        }
        at as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches with this gap; returns how many queries ended left of their line.
    fn check(unit: Unit, lasts: &[u128], low: u128, top_max: usize, gap: Option<Gap>) -> usize {
        let high = *lasts.last().unwrap();
        let shape = Shape::new(unit, lasts.len() as u64, low, high, top_max).unwrap().with_gap(gap);
        let image = Image::of(shape, lasts);
        assert!(image.top.len() <= top_max && image.top.is_sorted());
        assert_eq!(image.top.len() as u64, shape.top());
        for (level, nodes) in image.nodes.iter().enumerate() {
            assert_eq!(nodes.len() as u64, image.shape.nodes(level));
            let code_bits = unit.code_bits(level);
            assert!(nodes.iter().all(|node| codes(node, code_bits).is_sorted()));
        }
        let bytes = image.nodes.iter().flatten().count() * NODE_BYTES + image.top.len() * 4;
        assert_eq!(shape.bytes(), bytes as u64);
        let near = lasts.iter().flat_map(|&last| [last.saturating_sub(1), last, last.saturating_add(1)]);
        let mut left_of_it = 0;
        for query in near.chain([0, low, u64::MAX.into(), u128::MAX]) {
            let right = lasts[..lasts.len() - 1].partition_point(|&last| last < query) as u64;
            let found = image.unit(query);
            assert!(found <= right, "{query}: unit {found} is right of {right}");
            // A border that was not passed shares the query's cell: it is equal or very close.
            let kept = shape.offset(lasts[found as usize]);
            let least = if unit == Unit::Cell { 7 } else { 15 };
            let is_close =
                query > high || shape.offset(query).saturating_sub(kept) <= shape.all().right >> least;
            assert!(found == right || is_close, "{query}: unit {found}, not {right}");
            left_of_it += usize::from(found < right);
        }
        left_of_it
    }

    fn mix(i: u64) -> u64 {
        i.wrapping_add(1)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29)
            .wrapping_mul(0xBF58_476D_1CE4_E5B9)
    }

    #[test]
    fn a_search_ends_in_the_right_unit_or_left_of_it() {
        for count in [1usize, 2, 16, 17, 18, 288, 289, 290, 4913, 4914, 10_000] {
            for top_max in [1, 7, 100, TOP_MAX] {
                let all = |key: &dyn Fn(u64) -> u128| -> Vec<u128> { (0..count as u64).map(key).collect() };
                let wide = |i: u64| u128::from(mix(i)) << 64 | u128::from(mix(!i));
                let lists = [
                    all(&|i| mix(i).into()),
                    all(&|i| (mix(i) >> 32).into()),
                    all(&|i| (mix(i) % 3).into()),
                    all(&|i| (mix(i) >> (i & 63)).into()),
                    all(&|i| (u64::MAX - i).into()),
                    all(&|i| ((1 << 40) + i * 16).into()),
                    all(&wide),
                    all(&|i| wide(i) >> (i & 127)),
                    all(&|i| u128::MAX - u128::from(i)),
                    all(&|i| u128::from(i / 64) << 90 | u128::from(i % 64)),
                ];
                for mut lasts in lists {
                    lasts.sort_unstable();
                    let found = Image::gap(&lasts);
                    // Any gap is right, but not close.
                    for (unit, gap) in [(Unit::Line, None), (Unit::Line, found), (Unit::Cell, found)] {
                        check(unit, &lasts, lasts[0], top_max, gap);
                        check(unit, &lasts, 0, top_max, gap);
                    }
                }
            }
        }
    }

    #[test]
    fn words_of_8_bytes_make_the_image_that_wide_ones_make() {
        let mut lasts: Vec<u64> = (0..5000).map(mix).collect();
        lasts.sort_unstable();
        let wide: Vec<u128> = lasts.iter().map(|&word| word.into()).collect();
        fn make<W: Copy + Into<u128>>(unit: Unit, lasts: &[W]) -> Image {
            let shape = Shape::new(unit, lasts.len() as u64, lasts[0], lasts[4999], 20).unwrap();
            Image::of(shape, lasts)
        }
        // The same distances anywhere in a wider range.
        let moved: Vec<u128> = wide.iter().map(|&word| word + (7 << 100)).collect();
        for unit in [Unit::Line, Unit::Cell] {
            let image = make(unit, &lasts);
            assert_eq!(image, make(unit, &wide));
            let other = make(unit, &moved);
            assert_eq!((image.top, image.nodes), (other.top, other.nodes));
        }
    }

    #[test]
    fn sizes_follow_from_the_lines() {
        let of_lines = |lines, top_max| Shape::new(Unit::Line, lines, 0u64, u64::MAX, top_max);
        let shape = of_lines(1 << 23, TOP_MAX).unwrap();
        assert_eq!((shape.levels, shape.nodes(0), shape.top(), shape.span(2)), (3, 493_448, 1707, 289));
        assert_eq!(shape.top_shift(), 32);
        let cells = Shape::new(Unit::Cell, 1 << 24, 0u64, u64::MAX, 30_000).unwrap();
        assert_eq!((cells.levels, cells.nodes(0), cells.top(), cells.span(2)), (2, 508_401, 29_905, 561));
        assert_eq!(Shape::new(Unit::Line, 1, 5u32, 5u32, 1).unwrap().top(), 0);
        assert!(of_lines(0, 1).is_none() && Shape::new(Unit::Line, 1, 2u64, 1u64, 1).is_none());
        assert!(of_lines(u64::MAX, 1).is_none());
        let wide = Shape::new(Unit::Line, 9, 0u64, u128::MAX, 1).unwrap();
        assert_eq!((wide.top_shift(), wide.all().shift(16), wide.levels), (96, 112, 1));
        // 2^32 + 2^20 tuples of 16 bytes.
        assert_eq!(of_lines((1 << 30) + (1 << 18), TOP_MAX).unwrap().levels, 4);
    }

    #[test]
    fn a_gap_keeps_the_order_of_all_words() {
        let gap = Gap { at: 3, bits: 4, value: 5 };
        let closed: Vec<u128> = (0..1 << 11).map(|word| gap.close(word)).collect();
        assert!(closed.is_sorted());
        let inside: Vec<u128> = (0..1 << 11).filter(|word| word >> 3 & 15 == 5).collect();
        assert_eq!(
            inside.iter().map(|&word| gap.close(word)).collect::<Vec<_>>(),
            (0..128).collect::<Vec<_>>()
        );
        assert_eq!(Gap { at: 1, bits: 126, value: 0 }.close(u128::MAX), 3);
    }

    #[test]
    fn the_widest_gap_lies_between_bits_that_differ() {
        let found = |any, all| Gap::widest(any, all).map(|gap| (gap.at, gap.bits, gap.value));
        assert_eq!(found(0, u128::MAX), None);
        assert_eq!(found(u128::MAX, 0), None);
        assert_eq!(found(1 << 100, 0), None);
        assert_eq!(found(1 << 9 | 1, 0), Some((1, 8, 0)));
        assert_eq!(found(1 << 8 | 1, 0), None);
        // Two of 9 bits: the lower; the bits that all have belong to it.
        assert_eq!(found(1 << 20 | 1 << 10 | 0x3F, 0x3E), Some((1, 9, 0x1F)));
        assert_eq!(found(1 << 21 | 1 << 10 | 1, 0), Some((11, 10, 0)));
        assert_eq!(found(1 << 127 | 1, 0), Some((1, 126, 0)));
    }

    #[test]
    fn fields_with_a_gap_between_them_are_told_apart() {
        // Lines of 4 tuples; 64 tuples a shard.
        let lasts: Vec<u128> = (0..20_000u128).map(|i| (i / 16) << 40 | (i % 16 * 4 + 3)).collect();
        let gap = Image::gap(&lasts);
        assert_eq!(gap, Some(Gap { at: 6, bits: 34, value: 0 }));
        for top_max in [7, 100, TOP_MAX] {
            assert!(check(Unit::Line, &lasts, 0, top_max, None) > 20_000);
            // What is left: queries one above a shard's last key.
            assert!(check(Unit::Line, &lasts, 0, top_max, gap) <= 1250);
        }
    }
}
