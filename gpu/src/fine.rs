//! The fine image: a device image for keys that are not spread evenly.
//!
//! A code of [`crate::image`] is a few bits of a distance. Where keys crowd, many borders share a code, and a
//! search ends far left of its line. The fine image is a tree of codes too, and each code counts from the
//! interval between two codes above. What differs is how many of them keep borders apart:
//!
//! - The top is cut into [`GROUPS`] groups with as many children each, whatever the keys are. The *words*
//!   between the groups are kept whole. So a crowd of keys has as many groups as its share of the lines, and
//!   the group's own interval.
//! - Codes of the top and of all nodes but the lowest have 32 bits. Those of lowest nodes have as few as keep
//!   the keys apart: 16, 24 or 32.
//!
//! A node has fewer children for it, so the top is longer, and often there is a level more. Both images are
//! made of the same lines, and both end in the right line or left of it.
//!
//! # Layout
//! - A node of level 0 has 32 bytes, two halves of 16: with 8, 5 or 4 codes each, the least significant byte
//!   first, so 17, 11 or 9 children. Five codes of 24 bits are followed by a byte of 0.
//! - A node of a higher level has 32 bytes: 8 codes and [`FANOUT`] children. Nodes of the last level may be
//!   *wide*: 64 bytes, [`WIDE_FANOUT`] children.
//! - The top has [`GROUPS`] groups of [`Shape::group_children`] children of the last level. First come the
//!   words: that of a group is the border right of its last child; then the codes of the other borders of
//!   each group.
//! - Words and codes are those of *offsets*, as in [`Levels::offset`]. A word without a border is
//!   the largest offset, a code without one all ones.
//!
//! This builder is the reference for the one that runs on the device (`kernels/fine_image.cu`).

use crate::image::{Gap, Interval, LEVELS_MAX, Levels, NODE_BYTES, neighbors};

/// Groups of the top.
pub const GROUPS: usize = 1024;
/// Maximum number of children of a group.
pub const GROUP_CHILDREN_MAX: usize = 27;
/// Children per node.
pub const FANOUT: usize = 9;
/// Children per wide node.
pub const WIDE_FANOUT: usize = 17;
/// Bits per code, but for lowest nodes.
const CODE_BITS: u32 = 32;
/// Bits per code of lowest nodes: the fewest come first.
pub const LOW_BITS: [u32; 3] = [16, 24, 32];

/// Sizes of a fine image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of tuple lines; at least one.
    pub lines: u64,
    /// Smallest word.
    pub low: u128,
    /// Largest word.
    pub high: u128,
    /// Bits per code of level 0, of [`LOW_BITS`].
    pub low_bits: u32,
    /// Number of levels of nodes.
    pub levels: usize,
    /// True if nodes of the last level have 64 bytes.
    pub is_wide: bool,
    /// Children of each group of the top.
    pub group_children: usize,
    /// Bits that offsets leave out.
    pub gap: Option<Gap>,
}

/// Returns the bytes of a top whose groups have so many children.
#[must_use]
pub const fn top_bytes(group_children: usize, word_bytes: usize) -> usize {
    GROUPS * (word_bytes + 4 * (group_children - 1))
}

impl Shape {
    /// Creates the shape with the fewest levels whose groups have at most so many children, without a gap; of
    /// two with as many, the one without wide nodes. Returns `None` without lines, and if it needs too many
    /// levels.
    #[must_use]
    pub fn new(
        low_bits: u32,
        lines: u64,
        low: impl Into<u128>,
        high: impl Into<u128>,
        group_children_max: usize,
    ) -> Option<Self> {
        let (low, high) = (low.into(), high.into());
        if lines == 0 || low > high {
            return None;
        }
        let most = (GROUPS * group_children_max.clamp(1, GROUP_CHILDREN_MAX)) as u64;
        (0..=LEVELS_MAX)
            .flat_map(|levels| [false, true].map(|is_wide| (levels, is_wide && levels > 1)))
            .map(|(levels, is_wide)| Self {
                low_bits,
                lines,
                low,
                high,
                levels,
                is_wide,
                group_children: 1,
                gap: None,
            })
            .find(|shape| shape.children(shape.levels) <= most)
            .map(|shape| {
                let children = shape.children(shape.levels);
                Self { group_children: children.div_ceil(GROUPS as u64) as usize, ..shape }
            })
    }

    /// Returns the shape with a gap; sizes do not change.
    #[must_use]
    pub fn with_gap(self, gap: Option<Gap>) -> Self {
        Self { gap, ..self }
    }

    /// Returns the bytes per node of a level.
    #[must_use]
    pub fn node_bytes(&self, level: usize) -> usize {
        if level > 0 && self.fanout(level) == WIDE_FANOUT { 2 * NODE_BYTES } else { NODE_BYTES }
    }

    /// Returns the bits per code of a level.
    fn code_bits(&self, level: usize) -> u32 {
        if level == 0 { self.low_bits } else { CODE_BITS }
    }

    /// Returns the bytes of all nodes.
    #[must_use]
    pub fn nodes_bytes(&self) -> u64 {
        (0..self.levels).map(|level| self.nodes(level) * self.node_bytes(level) as u64).sum()
    }

    /// Returns the bytes of the top for words of this width, without padding.
    #[must_use]
    pub fn top_bytes(&self, word_bytes: usize) -> usize {
        top_bytes(self.group_children, word_bytes)
    }
}

impl Levels for Shape {
    fn lines(&self) -> u64 {
        self.lines
    }

    fn fanout(&self, level: usize) -> usize {
        match level {
            0 => 2 * (128 / self.low_bits as usize) + 1,
            _ if self.is_wide && level + 1 == self.levels => WIDE_FANOUT,
            _ => FANOUT,
        }
    }

    fn ends(&self) -> (u128, u128) {
        (self.low, self.high)
    }

    fn gap(&self) -> Option<Gap> {
        self.gap
    }
}

/// The fine image of a table's lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fine {
    /// Sizes.
    pub shape: Shape,
    /// Words between groups, as offsets; the last one is the largest offset.
    pub words: Vec<u128>,
    /// Codes of the top, those of the first group first.
    pub codes: Vec<u32>,
    /// Codes of the nodes of each level, the lowest level first.
    pub nodes: Vec<Vec<u32>>,
}

impl Fine {
    /// Builds the image of this shape from the last words of its lines. O(lines).
    ///
    /// # Panics
    /// If the shape is for another number of lines.
    #[must_use]
    pub fn of<W: Copy + Into<u128>>(shape: Shape, lasts: &[W]) -> Self {
        assert_eq!(shape.lines, lasts.len() as u64, "as many last words as lines");
        let border = |level, child| shape.border(lasts, level, child);
        let (top, per) = (shape.levels, shape.group_children);
        let words: Vec<u128> =
            (1..=GROUPS).map(|group| border(top, group * per - 1).unwrap_or(shape.all().right)).collect();
        let mut image = Self { shape, words, codes: Vec::new(), nodes: Vec::new() };
        let mut intervals = Vec::new();
        for group in 0..GROUPS {
            let interval = image.group(group);
            let codes = (0..per - 1).map(|at| border(top, group * per + at));
            let codes: Vec<u32> =
                codes.map(|border| border.map_or(u32::MAX, |word| interval.code(word, CODE_BITS))).collect();
            intervals
                .extend(neighbors(&codes).map(|(before, after)| interval.between(before, after, CODE_BITS)));
            image.codes.extend(codes);
        }
        for level in (0..top).rev() {
            let (fanout, bits) = (shape.fanout(level), shape.code_bits(level));
            let pad = u32::MAX >> (32 - bits);
            let mut below = Vec::new();
            let mut nodes = Vec::new();
            for (at, &interval) in intervals.iter().enumerate().take(shape.nodes(level) as usize) {
                let codes = (0..fanout - 1).map(|slot| border(level, at * fanout + slot));
                let codes: Vec<u32> =
                    codes.map(|border| border.map_or(pad, |word| interval.code(word, bits))).collect();
                if level > 0 {
                    below.extend(
                        neighbors(&codes).map(|(before, after)| interval.between(before, after, CODE_BITS)),
                    );
                }
                nodes.extend(codes);
            }
            intervals = below;
            image.nodes.push(nodes);
        }
        image.nodes.reverse();
        image
    }

    /// Returns the interval of a group.
    fn group(&self, group: usize) -> Interval {
        let left = group.checked_sub(1).map_or(0, |before| self.words[before]);
        Interval { left, right: self.words[group].max(left) }
    }

    /// Returns the top as the device has it, for words of this width.
    #[must_use]
    pub fn top(&self, word_bytes: usize) -> Vec<u8> {
        let words = self.words.iter().flat_map(|word| word.to_le_bytes().into_iter().take(word_bytes));
        words.chain(self.codes.iter().flat_map(|code| code.to_le_bytes())).collect()
    }

    /// Returns the nodes of a level as the device has them.
    #[must_use]
    pub fn level(&self, level: usize) -> Vec<u8> {
        let bytes = self.shape.code_bits(level) as usize / 8;
        let halves = self.nodes[level].chunks(16 / bytes).flat_map(|codes| {
            let mut half: Vec<u8> =
                codes.iter().flat_map(|code| code.to_le_bytes().into_iter().take(bytes)).collect();
            half.resize(16, 0);
            half
        });
        halves.collect()
    }

    /// Returns the line of a query, or one left of it, as each thread of the device computes it.
    #[must_use]
    pub fn line(&self, query: impl Into<u128>) -> u64 {
        let shape = &self.shape;
        let offset = shape.offset(query);
        let group = self.words[..GROUPS - 1].partition_point(|&word| word < offset);
        let mut interval = self.group(group);
        let inner = shape.group_children - 1;
        let mut at = group;
        let mut codes = &self.codes[group * inner..][..inner];
        let mut fanout = inner + 1;
        for level in (0..=shape.levels).rev() {
            let bits = if level == shape.levels { CODE_BITS } else { shape.code_bits(level) };
            let wanted = interval.code(offset, bits);
            let child = codes.iter().filter(|&&border| border < wanted).count();
            if let Some((before, after)) = neighbors(codes).nth(child) {
                interval = interval.between(before, after, CODE_BITS);
            }
            at = at * fanout + child;
            if level > 0 {
                fanout = shape.fanout(level - 1);
                codes = &self.nodes[level - 1][at * (fanout - 1)..][..fanout - 1];
            }
        }
        at as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;

    /// Compares the fine image of lines with these last words with plain searches. Returns the number of
    /// queries that ended in a line before theirs, which is allowed.
    fn check(low_bits: u32, lasts: &[u128], low: u128, children_max: usize, gap: Option<Gap>) -> usize {
        let high = *lasts.last().unwrap();
        let shape = Shape::new(low_bits, lasts.len() as u64, low, high, children_max).unwrap().with_gap(gap);
        let image = Fine::of(shape, lasts);
        assert_eq!(image.top(8).len(), shape.top_bytes(8));
        for level in 0..shape.levels {
            assert_eq!(image.level(level).len() as u64, shape.nodes(level) * shape.node_bytes(level) as u64);
        }
        let every = (lasts.len() / 900).max(1);
        let near = lasts
            .iter()
            .step_by(every)
            .flat_map(|&last| [last.saturating_sub(1), last, last.saturating_add(1)]);
        let mut left_of_it = 0;
        for query in near.chain([0, low, u64::MAX.into(), u128::MAX]) {
            let right = lasts[..lasts.len() - 1].partition_point(|&last| last < query) as u64;
            let found = image.line(query);
            assert!(found <= right, "{query}: line {found} is right of {right}");
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

    /// Distances between keys of bursts: a far one, then near ones.
    fn bursts(count: u64) -> Vec<u128> {
        let steps = (0..count).scan(1 << 20, |at, i| {
            *at += if mix(i).is_multiple_of(200) { mix(!i) >> 30 } else { 20 + mix(!i) % 400 };
            Some(u128::from(*at))
        });
        steps.collect()
    }

    #[test]
    fn a_search_ends_in_the_right_line_or_left_of_it() {
        for count in [1usize, 2, 9, 10, 1024, 1025, 9217, 11_265, 17_409, 60_000] {
            for children_max in [1, 3] {
                let all = |key: &dyn Fn(u64) -> u128| -> Vec<u128> { (0..count as u64).map(key).collect() };
                let wide = |i: u64| u128::from(mix(i)) << 64 | u128::from(mix(!i));
                let lists = [
                    all(&|i| mix(i).into()),
                    all(&|i| (mix(i) % 3).into()),
                    all(&|i| (mix(i) >> (i & 63)).into()),
                    all(&wide),
                    all(&|i| wide(i) >> (i & 127)),
                    all(&|i| u128::MAX - u128::from(i)),
                    all(&|i| u128::from(i / 64) << 90 | u128::from(i % 64)),
                    bursts(count as u64),
                ];
                for mut lasts in lists {
                    lasts.sort_unstable();
                    for low_bits in LOW_BITS {
                        check(low_bits, &lasts, lasts[0], children_max, None);
                        check(low_bits, &lasts, 0, children_max, Image::gap(&lasts));
                    }
                }
            }
        }
    }

    #[test]
    fn crowds_are_told_apart() {
        let lasts = bursts(100_000);
        // Of some 2,700 queries.
        let astray = check(32, &lasts, lasts[0], GROUP_CHILDREN_MAX, None);
        assert!(astray < 40, "{astray}");
        // Codes of 8 to 28 bits lead many of these astray.
        let even = crate::image::Shape::new(
            crate::image::Lowest::Codes16,
            100_000,
            lasts[0],
            lasts[99_999],
            crate::image::TOP_MAX,
        );
        let even = Image::of(even.unwrap(), &lasts);
        let astray = (0..100_000).step_by(100).filter(|&at| even.line(lasts[at]) < at as u64).count();
        assert!(astray > 200, "{astray}");
    }

    #[test]
    fn sizes_follow_from_the_lines() {
        let shape = Shape::new(32, 1 << 22, 0u64, u64::MAX, GROUP_CHILDREN_MAX).unwrap();
        assert_eq!((shape.levels, shape.is_wide, shape.group_children), (2, true, 27));
        assert_eq!((shape.nodes(0), shape.nodes(1), shape.top_bytes(8)), (466_034, 27_414, 114_688));
        let large = Shape::new(32, 1 << 24, 0u64, u64::MAX, GROUP_CHILDREN_MAX).unwrap();
        assert_eq!((large.levels, large.is_wide, large.group_children), (3, false, 23));
        assert_eq!(Shape::new(16, 1, 5u32, 5u32, 1).unwrap().levels, 0);
        assert!(Shape::new(16, 0, 0u64, 1u64, 27).is_none() && Shape::new(16, 1, 2u64, 1u64, 27).is_none());
        assert!(Shape::new(16, u64::MAX, 0u64, 1u64, 27).is_none());
    }
}
