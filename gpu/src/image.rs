//! The device image: what a GPU descends through instead of the file's spine.
//!
//! It is derived from the tuple lines alone. *Borders* are the last words of all lines but the last; a *node* of
//! 32 bytes, one sector of device memory, holds the 16 borders between its 17 children as codes of 16 bits; two or
//! three levels of nodes stand below a *top* of 32-bit codes, which fits the shared memory of a block. A node has no
//! header: base and shift of its codes follow from the two codes of its parent that it lies between, which the
//! search has in registers. So a level costs one sector, and nothing is read twice.
//!
//! A code is that of the cell in which its border lies. A query whose cell is that of a border goes to the left
//! of it, so a search ends in the right line or left of it, and looks at the next line if all keys of its own are
//! below the query. With 16 bits for 17 children a cell is rarely shared; runs of equal keys share theirs.
//!
//! This builder is the reference for the one that runs on the device: both make the same bytes.

/// Codes of a node.
pub const NODE: usize = 16;
/// Children of a node.
pub const FANOUT: usize = NODE + 1;
/// A code that stands for no border; it is below no query's.
pub const PAD: u16 = u16::MAX;
/// Most levels of nodes.
pub const LEVELS_MAX: usize = 6;
/// Most codes of the top: 64 KiB of shared memory. On an H200, 2^24 tuples of 16 bytes with a level less for it are
/// found at 28.9 G/s instead of 25.7; twice as many codes cost 2^26 tuples of 8 bytes 27.5 to 26.4.
pub const TOP_MAX: usize = 1 << 14;

/// An interval of offsets from the smallest word, both ends included, in which the borders of a subtree lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Smallest offset.
    pub left: u64,
    /// Largest offset.
    pub right: u64,
}

impl Interval {
    /// Bits that codes of this interval drop.
    #[inline]
    #[must_use]
    pub fn shift(self) -> u32 {
        (64 - (self.right - self.left).leading_zeros()).saturating_sub(16)
    }

    /// Code of an offset; those beyond the ends have the code of the end.
    #[inline]
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "at most 16 bits remain")]
    pub fn code(self, offset: u64) -> u16 {
        ((offset.clamp(self.left, self.right) - self.left) >> self.shift()) as u16
    }

    /// What lies between two neighbouring borders with these codes; `None` for the interval's own ends.
    #[inline]
    #[must_use]
    pub fn between(self, before: Option<u16>, after: Option<u16>) -> Self {
        let shift = self.shift();
        let last = (1u64 << shift) - 1;
        let span = self.right - self.left;
        // A code that stands for no border may lie beyond the end.
        let at = |offset: u64| self.left + offset.min(span);
        let left = before.map_or(self.left, |code| at(u64::from(code) << shift));
        let right = after.map_or(self.right, |code| at((u64::from(code) << shift) | last));
        // Damaged lines may descend.
        Self { left, right: right.max(left) }
    }
}

/// Sizes of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Tuple lines; at least one.
    pub lines: u64,
    /// Smallest word of the lines.
    pub low: u64,
    /// Largest word of the lines.
    pub high: u64,
    /// Levels of nodes.
    pub levels: usize,
}

impl Shape {
    /// With as few levels as leave at most `top_max` codes in the top. `None` without lines, for more levels than
    /// there may be, and if `high` is below `low`.
    #[must_use]
    pub fn new(lines: u64, low: u64, high: u64, top_max: usize) -> Option<Self> {
        let mut levels = 0;
        while children(lines, levels).saturating_sub(1) > top_max as u64 {
            levels += 1;
        }
        (lines > 0 && low <= high && levels <= LEVELS_MAX).then_some(Self { lines, low, high, levels })
    }

    /// Nodes of a level; level 0 is the lowest.
    #[must_use]
    pub fn nodes(&self, level: usize) -> u64 {
        children(self.lines, level + 1)
    }

    /// Codes of the top: one less than it has children.
    #[must_use]
    pub fn top(&self) -> u64 {
        children(self.lines, self.levels) - 1
    }

    /// Bits that codes of the top drop.
    #[must_use]
    pub fn top_shift(&self) -> u32 {
        (64 - (self.high - self.low).leading_zeros()).saturating_sub(32)
    }

    /// All offsets.
    #[must_use]
    pub fn all(&self) -> Interval {
        Interval { left: 0, right: self.high - self.low }
    }

    /// Offset of a word; words beyond the ends have that of the end.
    #[inline]
    #[must_use]
    pub fn offset(&self, word: u64) -> u64 {
        word.clamp(self.low, self.high) - self.low
    }

    /// Code of an offset in the top.
    #[inline]
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "at most 32 bits remain")]
    pub fn top_code(&self, offset: u64) -> u32 {
        (offset >> self.top_shift()) as u32
    }

    /// What lies below a child of the top, between the codes next to it.
    #[must_use]
    pub fn below_top(&self, before: Option<u32>, after: Option<u32>) -> Interval {
        let (all, shift) = (self.all(), self.top_shift());
        let last = (1u64 << shift) - 1;
        let left = before.map_or(all.left, |code| u64::from(code) << shift);
        let right = after.map_or(all.right, |code| (u64::from(code) << shift | last).min(all.right));
        Interval { left, right: right.max(left) }
    }
}

/// Units that so many lines make after `levels` steps of [`FANOUT`] to one.
fn children(lines: u64, levels: usize) -> u64 {
    (0..levels).fold(lines, |count, _| count.div_ceil(FANOUT as u64))
}

/// The image of a table's lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Sizes.
    pub shape: Shape,
    /// Codes of the top, ascending.
    pub top: Vec<u32>,
    /// Nodes, the lowest level first.
    pub nodes: Vec<Vec<[u16; NODE]>>,
}

impl Image {
    /// Of lines with these last words (the last one's may be padding) and the table's smallest and largest word.
    /// O(lines). `None` as for [`Shape::new`].
    #[must_use]
    pub fn new(lasts: &[u64], low: u64, high: u64, top_max: usize) -> Option<Self> {
        let shape = Shape::new(lasts.len() as u64, low, high, top_max)?;
        // The border right of a child of some level; none right of the last line.
        let border = |level: usize, child: usize| {
            let span = (FANOUT as u64).pow(u32::try_from(level).unwrap_or(u32::MAX));
            let line = (child as u64 + 1) * span - 1;
            (line + 1 < shape.lines).then(|| shape.offset(lasts[line as usize]))
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
            let mut below = Vec::with_capacity(intervals.len() * FANOUT);
            let mut level_nodes = Vec::with_capacity(intervals.len());
            for (at, interval) in intervals.iter().enumerate() {
                let mut codes = [PAD; NODE];
                for (slot, code) in codes.iter_mut().enumerate() {
                    if let Some(offset) = border(level, at * FANOUT + slot) {
                        *code = interval.code(offset);
                    }
                }
                for slot in 0..FANOUT {
                    let before = slot.checked_sub(1).map(|slot| codes[slot]);
                    below.push(interval.between(before, codes.get(slot).copied()));
                }
                level_nodes.push(codes);
            }
            below.truncate(children(shape.lines, level) as usize);
            intervals = below;
            nodes.push(level_nodes);
        }
        nodes.reverse();
        Some(Self { shape, top, nodes })
    }

    /// The line of a query, or one left of it: what each thread of the device computes.
    #[must_use]
    pub fn line(&self, query: u64) -> u64 {
        let shape = &self.shape;
        let offset = shape.offset(query);
        let code = shape.top_code(offset);
        let mut at = self.top.partition_point(|&border| border < code);
        let mut interval =
            shape.below_top(at.checked_sub(1).map(|at| self.top[at]), self.top.get(at).copied());
        for level in self.nodes.iter().rev() {
            let codes = &level[at];
            let code = interval.code(offset);
            let child = codes.iter().filter(|&&border| border < code).count();
            interval =
                interval.between(child.checked_sub(1).map(|slot| codes[slot]), codes.get(child).copied());
            at = at * FANOUT + child;
        }
        at as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lasts: &[u64], low: u64, top_max: usize) {
        let high = *lasts.last().unwrap();
        let image = Image::new(lasts, low, high, top_max).unwrap();
        assert!(image.top.len() <= top_max && image.top.is_sorted());
        for (level, nodes) in image.nodes.iter().enumerate() {
            assert_eq!(nodes.len() as u64, image.shape.nodes(level));
            assert!(nodes.iter().all(|codes| codes.is_sorted()));
        }
        let near = lasts.iter().flat_map(|&last| [last.saturating_sub(1), last, last.saturating_add(1)]);
        for query in near.chain([0, low, u64::MAX]) {
            let right = lasts[..lasts.len() - 1].partition_point(|&last| last < query) as u64;
            let line = image.line(query);
            assert!(line <= right, "{query}: line {line} is right of {right}");
            // A border that was not passed shares the query's cell: it is equal or very close.
            let kept = lasts[line as usize];
            let is_close = query > high || query.saturating_sub(kept) <= (high - low) >> 15;
            assert!(line == right || is_close, "{query}: line {line}, not {right}");
        }
    }

    #[test]
    fn a_search_ends_in_the_right_line_or_left_of_it() {
        let mix = |i: u64| {
            (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
        };
        for count in [1usize, 2, 16, 17, 18, 288, 289, 290, 4913, 4914, 10_000] {
            for top_max in [1, 7, 100, TOP_MAX] {
                let spread: Vec<u64> = (0..count as u64).map(mix).collect();
                let narrow: Vec<u64> = spread.iter().map(|word| word >> 32).collect();
                let equal: Vec<u64> = spread.iter().map(|word| word % 3).collect();
                let crowded: Vec<u64> = spread.iter().map(|word| word >> (word & 63)).collect();
                let top: Vec<u64> = (0..count as u64).map(|i| u64::MAX - i).collect();
                let dense: Vec<u64> = (0..count as u64).map(|i| (1 << 40) + i * 16).collect();
                for mut lasts in [spread, narrow, equal, crowded, top, dense] {
                    lasts.sort_unstable();
                    check(&lasts, lasts[0], top_max);
                    check(&lasts, 0, top_max);
                }
            }
        }
    }

    #[test]
    fn sizes_follow_from_the_lines() {
        let shape = Shape::new(1 << 23, 0, u64::MAX, TOP_MAX).unwrap();
        assert_eq!((shape.levels, shape.nodes(0), shape.top()), (3, 493_448, 1707));
        assert_eq!(shape.top_shift(), 32);
        assert_eq!(Shape::new(1, 5, 5, 1).unwrap().top(), 0);
        assert!(Shape::new(0, 0, 1, 1).is_none() && Shape::new(1, 2, 1, 1).is_none());
        assert!(Shape::new(u64::MAX, 0, 1, 1).is_none());
    }
}
