//! The device image: the structure that a GPU descends instead of the file's spine.
//!
//! The device image is made from the tuple lines alone. Each line but the last has a *border*: its last word.
//! A *node* of 32 bytes, one sector of device memory, holds the borders between its children as *codes*, which
//! are the borders shortened to 16 or 8 bits. Above two or three levels of nodes there is a *top*, a sorted
//! array of codes that fits into the shared memory of a thread block.
//!
//! A node has no header: the base and the shift of its codes follow from the two codes of its parent on
//! either side of it, which the search has in registers. So a level costs one sector, and nothing is read
//! twice.
//!
//! A code names the cell that contains its border. A query in the same cell as a border goes to the left of
//! it. So a search ends in the right line or left of it, and looks at later lines if all keys of its line are
//! below the query. With 16 bits for 17 children a cell is rarely shared, except in runs of equal keys.
//!
//! Lowest nodes may instead have 33 children with codes of 8 bits. That saves a level, or half of the memory
//! for most nodes, while one query in about fifteen looks at the next line.
//!
//! # Layout
//! - Node `i` of level 0 is above lines `F i ..`, where `F` is 17 or 33 ([`Lowest`]), and node `i` of level
//!   `k + 1` above nodes `17 i ..` of level `k`. The top is above the nodes of the last level (above lines,
//!   if there are no levels). The last node of a level may have fewer children.
//! - The border right of child `c` of a level is the last word of line `(c + 1) * span - 1`, where `c` counts
//!   all children of the level, and `span` is 1 for level 0 and `F * 17^(k - 1)` for level `k`.
//! - All codes are of *offsets*: words minus the table's smallest word; words beyond its ends have the offset
//!   of the end ([`Levels::offset`]).
//! - The top has a code of up to 28 bits for each border between its children: the offset without its lowest
//!   [`Shape::top_shift`] bits. A child of the top, like a child of a node, has an [`Interval`] of offsets.
//! - A block copies the *compact top*. The highest [`Shape::bucket_bits`] bits of a code are its *bucket*.
//!   There are four numbers of 16 bits for each bucket, [`Bucket`], and then the other bits of all codes, 16
//!   for each. So a search starts with the few codes of its bucket, and a top takes half of the memory.
//! - A node has 16 codes of 16 bits, the least significant byte first, or 32 of 8 bits, in ascending order;
//!   missing borders are all ones. A code is the offset, clamped to the node's interval, minus the interval's
//!   left end, without its lowest [`Interval::shift`] bits. [`Interval::between`] is the interval of the
//!   child between two codes.
//! - The child of a query is the number of codes that are below its own.
//! - If keys are composed of fields, the bits between the fields are the same in all borders: a [`Gap`].
//!   Words are searched without the gap, because otherwise a cell would hold all of a field's values.
//!
//! This builder is the reference for the one that runs on the device (`kernels/image.cu`): both make the same
//! bytes.

/// Children per node, except for lowest nodes with short codes.
pub const FANOUT: usize = 17;
/// Bytes per node.
pub const NODE_BYTES: usize = 32;
/// Maximum number of levels of nodes.
pub const LEVELS_MAX: usize = 6;
/// Maximum number of codes of the top: 96 KiB with its buckets. The more of a multiprocessor's memory a block
/// uses for it, the fewer loads are under way at a time: on an H200, twice as many codes halve the rate.
pub const TOP_MAX: usize = 33_000;
/// Maximum number of codes that a compact top can have.
const TOP_LIMIT: usize = u16::MAX as usize;
/// Maximum number of bits of a top's code that are its bucket.
const BUCKET_BITS_MAX: u32 = 12;
/// Minimum number of codes per bucket in a top of maximum length, as a power of two.
const BUCKET_CODES_LOG: u32 = 2;
/// Bits per code of the compact top.
const TOP_CODE_BITS: u32 = 16;

/// Form of the lowest nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lowest {
    /// 16 codes of 16 bits, 17 children.
    Codes16,
    /// 32 codes of 8 bits, 33 children.
    Codes8,
    /// Those of the fine image ([`crate::fine`]): 8 codes of 32 bits, 9 children.
    Codes32,
}

impl Lowest {
    /// Returns the bits per code of a level.
    #[must_use]
    pub const fn code_bits(self, level: usize) -> u32 {
        match (self, level) {
            (Self::Codes8, 0) => 8,
            (Self::Codes32, 0) => 32,
            _ => 16,
        }
    }

    /// Returns the children per node of a level.
    #[must_use]
    pub const fn fanout(self, level: usize) -> usize {
        NODE_BYTES * 8 / self.code_bits(level) as usize + 1
    }
}

/// Minimum number of bits of a gap that is left out.
pub const GAP_MIN: u32 = 8;

/// Bits that are left out of words because they are the same in all borders.
///
/// The order of words is preserved for any gap: words with less in the gap come before all that share the
/// bits above it, words with more after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Lowest bit of the gap.
    pub at: u32,
    /// Length in bits; there are bits above it.
    pub bits: u32,
    /// Value of these bits in all borders.
    pub value: u128,
}

impl Gap {
    /// Returns the longest run of equal bits between bits that differ, the lowest of several; `None` if it is
    /// shorter than [`GAP_MIN`]. `any` has the bits that are set in some border, `all` those that are set in
    /// all of them.
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
                // The next gap must be longer.
                bits += 1;
            }
        }
        widest
    }

    /// Returns a word without these bits.
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

/// An interval of offsets from the smallest word, both ends included, which contains the borders of a
/// subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Smallest offset.
    pub left: u128,
    /// Largest offset.
    pub right: u128,
}

impl Interval {
    /// Returns the number of bits that codes of `code_bits` bits drop in this interval.
    #[inline]
    #[must_use]
    pub fn shift(self, code_bits: u32) -> u32 {
        (u128::BITS - (self.right - self.left).leading_zeros()).saturating_sub(code_bits)
    }

    /// Returns the code of an offset; offsets beyond the ends have the code of the end.
    #[inline]
    #[must_use]
    pub fn code(self, offset: u128, code_bits: u32) -> u32 {
        ((offset.clamp(self.left, self.right) - self.left) >> self.shift(code_bits)) as u32
    }

    /// Returns the interval between two neighboring borders with these codes of `code_bits` bits; `None`
    /// stands for the interval's own ends.
    #[inline]
    #[must_use]
    pub fn between(self, before: Option<u32>, after: Option<u32>, code_bits: u32) -> Self {
        let shift = self.shift(code_bits);
        let last = (1u128 << shift) - 1;
        let span = self.right - self.left;
        // A code without a border may be beyond the end.
        let at = |offset: u128| self.left + offset.min(span);
        let left = before.map_or(self.left, |code| at(u128::from(code) << shift));
        let right = after.map_or(self.right, |code| at((u128::from(code) << shift) | last));
        // The words of damaged lines may descend.
        Self { left, right: right.max(left) }
    }
}

/// Returns the codes on either side of each child of a node, or of a group.
pub(crate) fn neighbors(codes: &[u32]) -> impl Iterator<Item = (Option<u32>, Option<u32>)> + '_ {
    (0..=codes.len()).map(|child| (child.checked_sub(1).map(|at| codes[at]), codes.get(child).copied()))
}

/// Returns the bits of a code that are its bucket, in a top with up to `top_max` codes.
const fn bucket_bits(top_max: usize) -> u32 {
    let bits = (usize::BITS - top_max.leading_zeros()).saturating_sub(1 + BUCKET_CODES_LOG);
    if bits < BUCKET_BITS_MAX { bits } else { BUCKET_BITS_MAX }
}

/// Returns the bytes of the compact top of an image whose top has `top_max` codes, without the padding to a
/// multiple of 16.
#[must_use]
pub const fn compact_bytes(top_max: usize) -> usize {
    (size_of::<Bucket>() << bucket_bits(top_max)) + top_max * 2
}

/// What the sizes and words of an image have in common, whatever its codes are.
pub trait Levels {
    /// Returns the number of tuple lines.
    fn lines(&self) -> u64;

    /// Returns the children per node of a level.
    fn fanout(&self, level: usize) -> usize;

    /// Returns the smallest and the largest word.
    fn ends(&self) -> (u128, u128);

    /// Returns the bits that offsets leave out.
    fn gap(&self) -> Option<Gap>;

    /// Returns the number of nodes, or lines, below level `levels`.
    fn children(&self, levels: usize) -> u64 {
        (0..levels).fold(self.lines(), |count, level| count.div_ceil(self.fanout(level) as u64))
    }

    /// Returns the number of lines below a child of a level.
    fn span(&self, level: usize) -> u64 {
        (0..level).map(|level| self.fanout(level) as u64).product()
    }

    /// Returns the number of nodes of a level; level 0 is the lowest.
    fn nodes(&self, level: usize) -> u64 {
        self.children(level + 1)
    }

    /// Returns a word as it is searched: without the gap.
    #[inline]
    fn close(&self, word: u128) -> u128 {
        self.gap().map_or(word, |gap| gap.close(word))
    }

    /// Returns the interval of all offsets.
    fn all(&self) -> Interval {
        let (low, high) = self.ends();
        Interval { left: 0, right: self.close(high) - self.close(low) }
    }

    /// Returns the offset of a word; words beyond the ends have the offset of the end.
    #[inline]
    fn offset(&self, word: impl Into<u128>) -> u128 {
        let (low, high) = self.ends();
        self.close(word.into().clamp(low, high)) - self.close(low)
    }

    /// Returns the border right of a child of a level, as an offset, from the last words of all lines; there
    /// is none right of the last line.
    fn border<W: Copy + Into<u128>>(&self, lasts: &[W], level: usize, child: usize) -> Option<u128> {
        let line = (child as u64 + 1) * self.span(level) - 1;
        (line + 1 < self.lines()).then(|| self.offset(lasts[line as usize]))
    }
}

/// Sizes of an image; they do not depend on the content of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Form of the lowest nodes.
    pub lowest: Lowest,
    /// Number of tuple lines; at least one.
    pub lines: u64,
    /// Smallest word.
    pub low: u128,
    /// Largest word.
    pub high: u128,
    /// Number of levels of nodes.
    pub levels: usize,
    /// Number of bits of a top's code that are its bucket.
    pub bucket_bits: u32,
    /// Bits that offsets leave out.
    pub gap: Option<Gap>,
}

impl Shape {
    /// Creates the shape with the fewest levels that leave at most `top_max` codes in the top, without a gap.
    /// Returns `None` without lines, if it needs too many levels, and if `high` is below `low`.
    #[must_use]
    pub fn new(
        lowest: Lowest,
        lines: u64,
        low: impl Into<u128>,
        high: impl Into<u128>,
        top_max: usize,
    ) -> Option<Self> {
        let mut shape =
            Self { lowest, lines, low: low.into(), high: high.into(), levels: 0, bucket_bits: 0, gap: None };
        while shape.children(shape.levels).saturating_sub(1) > top_max.min(TOP_LIMIT) as u64 {
            shape.levels += 1;
        }
        shape.bucket_bits =
            bucket_bits(top_max).min(u64::BITS - shape.children(shape.levels).leading_zeros());
        (lines > 0 && shape.low <= shape.high && shape.levels <= LEVELS_MAX).then_some(shape)
    }

    /// Returns the shape with a gap; sizes do not change.
    #[must_use]
    pub fn with_gap(self, gap: Option<Gap>) -> Self {
        Self { gap, ..self }
    }

    /// Returns the number of codes of the top: one less than it has children.
    #[must_use]
    pub fn top(&self) -> u64 {
        self.children(self.levels) - 1
    }

    /// Returns the bytes of all nodes and of the top, in both forms.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let nodes: u64 = (0..self.levels).map(|level| self.nodes(level) * NODE_BYTES as u64).sum();
        nodes + self.top() * 4 + self.compact_bytes()
    }

    /// Returns the number of bits of the top's largest code.
    fn top_code_bits(&self) -> u32 {
        (u128::BITS - self.all().right.leading_zeros()).min(self.bucket_bits + TOP_CODE_BITS)
    }

    /// Returns the number of bits of a top's code that are not its bucket: at most 16.
    #[must_use]
    pub fn bucket_shift(&self) -> u32 {
        self.top_code_bits().saturating_sub(self.bucket_bits)
    }

    /// Returns the bytes of the compact top: a multiple of 16.
    #[must_use]
    pub fn compact_bytes(&self) -> u64 {
        ((size_of::<Bucket>() << self.bucket_bits) as u64 + self.top() * 2).next_multiple_of(16)
    }

    /// Returns the number of bits that codes of the top drop.
    #[must_use]
    pub fn top_shift(&self) -> u32 {
        u128::BITS - self.all().right.leading_zeros() - self.top_code_bits()
    }

    /// Returns the code of an offset in the top.
    #[inline]
    #[must_use]
    pub fn top_code(&self, offset: u128) -> u32 {
        (offset >> self.top_shift()) as u32
    }

    /// Returns the interval of a child of the top, between the codes next to it.
    #[must_use]
    pub fn below_top(&self, before: Option<u32>, after: Option<u32>) -> Interval {
        let (all, shift) = (self.all(), self.top_shift());
        let last = (1u128 << shift) - 1;
        let left = before.map_or(all.left, |code| u128::from(code) << shift);
        let right = after.map_or(all.right, |code| (u128::from(code) << shift | last).min(all.right));
        Interval { left, right: right.max(left) }
    }
}

impl Levels for Shape {
    fn lines(&self) -> u64 {
        self.lines
    }

    fn fanout(&self, level: usize) -> usize {
        self.lowest.fanout(level)
    }

    fn ends(&self) -> (u128, u128) {
        (self.low, self.high)
    }

    fn gap(&self) -> Option<Gap> {
        self.gap
    }
}

/// Range of the top's codes with the same highest bits, and the buckets of the codes next to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Index of its first code or, if it is empty, of the first code of a later bucket.
    pub begin: u16,
    /// Index after its last code.
    pub end: u16,
    /// Bucket of code `begin - 1`; 0 if there is none.
    pub before: u16,
    /// Bucket of code `end`; 0 if there is none.
    pub after: u16,
}

/// The image of a table's lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Sizes.
    pub shape: Shape,
    /// Codes of the top, in ascending order.
    pub top: Vec<u32>,
    /// Buckets of the top, in order.
    pub buckets: Vec<Bucket>,
    /// Nodes, the lowest level first.
    pub nodes: Vec<Vec<[u8; NODE_BYTES]>>,
}

/// Returns the codes of a node, in ascending order.
fn codes(node: &[u8; NODE_BYTES], code_bits: u32) -> Vec<u32> {
    match code_bits {
        8 => node.iter().map(|&code| code.into()).collect(),
        _ => node.chunks_exact(2).map(|code| u16::from_le_bytes([code[0], code[1]]).into()).collect(),
    }
}

/// Returns a node with these codes.
fn node(codes: &[u32], code_bits: u32) -> [u8; NODE_BYTES] {
    let bytes = codes.iter().flat_map(|code| code.to_le_bytes().into_iter().take(code_bits as usize / 8));
    let mut node = [0; NODE_BYTES];
    node.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    node
}

/// Returns the buckets of the codes of a top.
fn buckets(shape: &Shape, top: &[u32]) -> Vec<Bucket> {
    let shift = shape.bucket_shift();
    let number = |at: usize| top.get(at).map_or(0, |code| (code >> shift) as u16);
    (0..1u64 << shape.bucket_bits)
        .map(|bucket| {
            let first = |bucket: u64| top.partition_point(|&code| u64::from(code >> shift) < bucket);
            let (begin, end) = (first(bucket), first(bucket + 1));
            let before = begin.checked_sub(1).map_or(0, number);
            Bucket { begin: begin as u16, end: end as u16, before, after: number(end) }
        })
        .collect()
}

impl Image {
    /// Builds the image of this shape from the last words of its lines (that of the last line may be
    /// padding). O(lines).
    ///
    /// # Panics
    /// If the shape is for another number of lines.
    #[must_use]
    pub fn of<W: Copy + Into<u128>>(shape: Shape, lasts: &[W]) -> Self {
        assert_eq!(shape.lines, lasts.len() as u64, "as many last words as lines");
        let border = |level, child| shape.border(lasts, level, child);
        let top: Vec<u32> = (0..shape.top() as usize)
            .filter_map(|at| border(shape.levels, at))
            .map(|o| shape.top_code(o))
            .collect();
        let mut intervals: Vec<Interval> = (0..=top.len())
            .map(|at| shape.below_top(at.checked_sub(1).map(|at| top[at]), top.get(at).copied()))
            .collect();
        let mut nodes = Vec::new();
        for level in (0..shape.levels).rev() {
            let (code_bits, fanout) = (shape.lowest.code_bits(level), shape.lowest.fanout(level));
            let pad = u32::MAX >> (32 - code_bits);
            let mut below = Vec::with_capacity(intervals.len() * fanout);
            let mut level_nodes = Vec::with_capacity(intervals.len());
            for (at, interval) in intervals.iter().enumerate() {
                let codes: Vec<u32> = (0..fanout - 1)
                    .map(|slot| border(level, at * fanout + slot))
                    .map(|offset| offset.map_or(pad, |offset| interval.code(offset, code_bits)))
                    .collect();
                level_nodes.push(node(&codes, code_bits));
                if level > 0 {
                    below.extend(
                        neighbors(&codes).map(|(before, after)| interval.between(before, after, code_bits)),
                    );
                }
            }
            below.truncate(shape.children(level) as usize);
            intervals = below;
            nodes.push(level_nodes);
        }
        nodes.reverse();
        let buckets = buckets(&shape, &top);
        Self { shape, top, buckets, nodes }
    }

    /// Returns the top in the form that blocks copy.
    #[must_use]
    pub fn compact(&self) -> Vec<u8> {
        let numbers = self.buckets.iter().flat_map(|b| [b.begin, b.end, b.before, b.after]);
        let mask = (1u32 << self.shape.bucket_shift()) - 1;
        let codes = self.top.iter().map(|code| (code & mask) as u16);
        let mut bytes: Vec<u8> = numbers.chain(codes).flat_map(u16::to_le_bytes).collect();
        bytes.resize(self.shape.compact_bytes() as usize, 0);
        bytes
    }

    /// Returns the child of the top that a code belongs to and its interval, from the compact top alone.
    fn child_of_top(&self, code: u32) -> (usize, Interval) {
        let shift = self.shape.bucket_shift();
        let (number, mask) = (code >> shift, (1u32 << shift) - 1);
        let bucket = self.buckets[number as usize];
        let (begin, end) = (usize::from(bucket.begin), usize::from(bucket.end));
        let low = |at: usize| self.top[at] & mask;
        let at = (begin..end).find(|&at| low(at) >= code & mask).unwrap_or(end);
        let before = (at > 0).then(
            || if at > begin { number } else { bucket.before.into() } << shift | low(at.saturating_sub(1)),
        );
        let after = (at < self.top.len()).then(
            || if at < end { number } else { bucket.after.into() } << shift | low(at.min(self.top.len() - 1)),
        );
        (at, self.shape.below_top(before, after))
    }

    /// Returns the gap of these borders: all last words but that of the last line. The device finds it by
    /// itself before it makes an image.
    #[must_use]
    pub fn gap<W: Copy + Into<u128>>(lasts: &[W]) -> Option<Gap> {
        let borders = &lasts[..lasts.len().saturating_sub(1)];
        let (any, all) =
            borders.iter().fold((0, u128::MAX), |(any, all), &word| (any | word.into(), all & word.into()));
        Gap::widest(any, all)
    }

    /// Returns the line of a query, or one left of it, as each thread of the device computes it.
    #[must_use]
    pub fn line(&self, query: impl Into<u128>) -> u64 {
        let shape = &self.shape;
        let offset = shape.offset(query);
        let (mut at, mut interval) = self.child_of_top(shape.top_code(offset));
        for (level, nodes) in self.nodes.iter().enumerate().rev() {
            let code_bits = shape.lowest.code_bits(level);
            let codes = codes(&nodes[at], code_bits);
            let code = interval.code(offset, code_bits);
            let child = codes.iter().filter(|&&border| border < code).count();
            if level > 0 {
                let before = child.checked_sub(1).map(|slot| codes[slot]);
                interval = interval.between(before, codes.get(child).copied(), code_bits);
            }
            at = at * shape.lowest.fanout(level) + child;
        }
        at as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the image of lines with these last words, built with this gap between fields of a key, with
    /// plain searches. Returns the number of queries that ended in a line before theirs, which is allowed.
    fn check(lowest: Lowest, lasts: &[u128], low: u128, top_max: usize, gap: Option<Gap>) -> usize {
        let high = *lasts.last().unwrap();
        let shape = Shape::new(lowest, lasts.len() as u64, low, high, top_max).unwrap().with_gap(gap);
        let image = Image::of(shape, lasts);
        assert!(image.top.len() <= top_max && image.top.is_sorted());
        assert_eq!(image.top.len() as u64, shape.top());
        assert!(image.top.iter().all(|code| code >> shape.bucket_shift() >> shape.bucket_bits == 0));
        assert!(shape.bucket_shift() <= 16);
        for (level, nodes) in image.nodes.iter().enumerate() {
            assert_eq!(nodes.len() as u64, image.shape.nodes(level));
            let code_bits = lowest.code_bits(level);
            assert!(nodes.iter().all(|node| codes(node, code_bits).is_sorted()));
        }
        let bytes =
            image.nodes.iter().flatten().count() * NODE_BYTES + image.top.len() * 4 + image.compact().len();
        assert_eq!(shape.bytes(), bytes as u64);
        // Some of many lines, others for each size of the top.
        let every = (lasts.len() / 900).max(1);
        let some = lasts.iter().skip(image.top.len() % every).step_by(every);
        let near = some.flat_map(|&last| [last.saturating_sub(1), last, last.saturating_add(1)]);
        let mut left_of_it = 0;
        for query in near.chain([0, low, u64::MAX.into(), u128::MAX]) {
            let right = lasts[..lasts.len() - 1].partition_point(|&last| last < query) as u64;
            let found = image.line(query);
            let code = shape.top_code(shape.offset(query));
            let at = image.top.partition_point(|&border| border < code);
            let ends = (at.checked_sub(1).map(|at| image.top[at]), image.top.get(at).copied());
            assert_eq!(image.child_of_top(code), (at, shape.below_top(ends.0, ends.1)), "{query}");
            assert!(found <= right, "{query}: line {found} is right of {right}");
            // A border that was not passed is in the query's cell: it is equal or very close.
            let kept = shape.offset(lasts[found as usize]);
            let least = if lowest == Lowest::Codes8 { 7 } else { 15 };
            let is_close =
                query > high || shape.offset(query).saturating_sub(kept) <= shape.all().right >> least;
            assert!(found == right || is_close, "{query}: line {found}, not {right}");
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
    fn a_search_ends_in_the_right_line_or_left_of_it() {
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
                    // Any gap gives right answers, but not close ones.
                    for (lowest, gap) in
                        [(Lowest::Codes16, None), (Lowest::Codes16, found), (Lowest::Codes8, found)]
                    {
                        check(lowest, &lasts, lasts[0], top_max, gap);
                        check(lowest, &lasts, 0, top_max, gap);
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
        fn make<W: Copy + Into<u128>>(lowest: Lowest, lasts: &[W]) -> Image {
            let shape = Shape::new(lowest, lasts.len() as u64, lasts[0], lasts[4999], 20).unwrap();
            Image::of(shape, lasts)
        }
        // The same distances in any part of a wider range.
        let moved: Vec<u128> = wide.iter().map(|&word| word + (7 << 100)).collect();
        for lowest in [Lowest::Codes16, Lowest::Codes8] {
            let image = make(lowest, &lasts);
            assert_eq!(image, make(lowest, &wide));
            let other = make(lowest, &moved);
            assert_eq!((image.top, image.nodes), (other.top, other.nodes));
        }
    }

    #[test]
    fn sizes_follow_from_the_lines() {
        let of_lines = |lines, top_max| Shape::new(Lowest::Codes16, lines, 0u64, u64::MAX, top_max);
        let shape = of_lines(1 << 23, TOP_MAX).unwrap();
        assert_eq!((shape.levels, shape.nodes(0), shape.top(), shape.span(2)), (2, 493_448, 29_026, 289));
        assert_eq!((shape.top_shift(), shape.bucket_bits, shape.bucket_shift()), (36, 12, 16));
        assert_eq!(shape.compact_bytes(), 8 * 4096 + 2 * 29_026 + 12);
        let short = Shape::new(Lowest::Codes8, 1 << 24, 0u64, u64::MAX, 30_000).unwrap();
        assert_eq!((short.levels, short.nodes(0), short.top(), short.span(2)), (2, 508_401, 29_905, 561));
        assert_eq!(Shape::new(Lowest::Codes16, 1, 5u32, 5u32, 1).unwrap().top(), 0);
        assert!(of_lines(0, 1).is_none() && Shape::new(Lowest::Codes16, 1, 2u64, 1u64, 1).is_none());
        assert!(of_lines(u64::MAX, 1).is_none());
        let wide = Shape::new(Lowest::Codes16, 9, 0u64, u128::MAX, 1).unwrap();
        assert_eq!((wide.top_shift(), wide.all().shift(16), wide.levels), (112, 112, 1));
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
        // Two gaps of 9 bits: the lower one is used; the bits that are set in all borders belong to it.
        assert_eq!(found(1 << 20 | 1 << 10 | 0x3F, 0x3E), Some((1, 9, 0x1F)));
        assert_eq!(found(1 << 21 | 1 << 10 | 1, 0), Some((11, 10, 0)));
        assert_eq!(found(1 << 127 | 1, 0), Some((1, 126, 0)));
    }

    #[test]
    fn fields_with_a_gap_between_them_are_told_apart() {
        // Lines of 4 tuples; 64 tuples per shard.
        let lasts: Vec<u128> = (0..20_000u128).map(|i| (i / 16) << 40 | (i % 16 * 4 + 3)).collect();
        let gap = Image::gap(&lasts);
        assert_eq!(gap, Some(Gap { at: 6, bits: 34, value: 0 }));
        for top_max in [7, 100, TOP_MAX] {
            // Of 900 to 950 lines that are tested.
            assert!(check(Lowest::Codes16, &lasts, 0, top_max, None) > 800);
            // The rest: queries one above a shard's last key, for every eighth line that is tested, or fewer.
            assert!(check(Lowest::Codes16, &lasts, 0, top_max, gap) <= 130);
        }
    }
}
