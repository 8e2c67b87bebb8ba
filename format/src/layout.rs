//! Layout arithmetic: pure functions from counts to places, shared by the builder, the reader and the tools.

pub use crate::cache_line::LINE_BYTES;
use crate::section::{
    ARRAY_ALIGN, HUGE_PAGE_BYTES, LARGE_ALIGN, LARGE_SECTION_BYTES, LEVELS_MAX, SECTION_ALIGN, Tag,
};
use crate::spine::Encoding;

/// Returns the smallest multiple of `align` (a power of two) that is at least `value`, or `None` on overflow.
#[must_use]
pub const fn align_up(value: u64, align: u64) -> Option<u64> {
    match value.checked_add(align - 1) {
        Some(sum) => Some(sum & !(align - 1)),
        None => None,
    }
}

/// Returns the offset of a section of `length` bytes if everything before it ends at `end`, or `None` on
/// overflow. A large FAST tree begins on a huge page, because its pages are not to straddle two. The length of sums
/// depends on where they begin, so that their place does not depend on their length.
#[must_use]
pub fn section_start(tag: Tag, end: u64, length: u64) -> Option<u64> {
    let align = match length {
        ..LARGE_SECTION_BYTES => SECTION_ALIGN,
        _ if tag == Tag::SUMS || tag == Tag::SUM2 => SECTION_ALIGN,
        _ if tag == Tag::FAST => HUGE_PAGE_BYTES,
        _ => LARGE_ALIGN,
    };
    align_up(end, align)
}

/// Layout of tuples in a line: `n` keys from the start of the line, and `n` values up to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineGeometry {
    /// Bytes per word: 4, 8 or 16.
    pub key_bytes: usize,
    /// Bytes per value: 0, 4 or 8.
    pub value_bytes: usize,
}

impl LineGeometry {
    /// Creates the layout for keys and values of these sizes.
    #[must_use]
    pub const fn new(key_bytes: usize, value_bytes: usize) -> Self {
        Self { key_bytes, value_bytes }
    }

    /// Returns the number of tuples in a full line.
    #[must_use]
    pub const fn tuples_per_line(self) -> usize {
        LINE_BYTES / (self.key_bytes + self.value_bytes)
    }

    /// Returns the offset of the first value in a line.
    #[must_use]
    pub const fn values_at(self) -> usize {
        LINE_BYTES - self.tuples_per_line() * self.value_bytes
    }

    /// Returns the number of lines for `tuples` tuples.
    #[must_use]
    pub const fn lines(self, tuples: u64) -> u64 {
        tuples.div_ceil(self.tuples_per_line() as u64)
    }

    /// Returns the bytes of the tuple lines, rounded up to whole pairs of lines, or `None` on overflow.
    #[must_use]
    pub const fn bytes(self, tuples: u64) -> Option<u64> {
        match self.lines(tuples).checked_mul(LINE_BYTES as u64) {
            Some(bytes) => align_up(bytes, ARRAY_ALIGN),
            None => None,
        }
    }

    /// Returns the line and the slot of a rank.
    #[must_use]
    pub const fn place(self, rank: u64) -> (u64, usize) {
        let n = self.tuples_per_line() as u64;
        (rank / n, (rank % n) as usize)
    }

    /// Returns the number of tuples in line `line` of a file that has `tuples` tuples.
    #[must_use]
    pub const fn tuples_in_line(self, line: u64, tuples: u64) -> usize {
        let n = self.tuples_per_line() as u64;
        let before = line.saturating_mul(n);
        let left = tuples.saturating_sub(before);
        (if left < n { left } else { n }) as usize
    }
}

/// One level of a spine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Encoding of the separators in its lines.
    pub encoding: Encoding,
    /// Number of children of a full line: one more than its separators.
    pub fanout: usize,
    /// Number of its lines.
    pub lines: u64,
    /// Number of its children: groups of tuple lines for level 0, else lines of the level below.
    pub children: u64,
    /// First byte, relative to the start of the section.
    pub offset: u64,
}

/// Maximum number of tuple lines in a child of a spine's bottom level.
pub const CHILD_LINES_MAX: u64 = 128;

/// Levels of a spine, bottom level first. In the section the root comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpineGeometry {
    /// Levels, bottom first; the last has exactly one line. Empty if there is at most one group of tuple lines.
    pub levels: Vec<Level>,
    /// Tuple lines in a group, which is a child of level 0: a power of two, at most [`CHILD_LINES_MAX`] unless
    /// there is no spine. The last group may have fewer.
    pub child_lines: u64,
    /// Bytes of all levels, each padded to whole pairs of lines.
    pub bytes: u64,
}

impl SpineGeometry {
    /// Lays out a spine over `tuple_lines` lines in groups of `child_lines`. `encodings` gives the encoding of each
    /// level from the bottom. Returns `None` if there are too few or too many of them, if there are no such
    /// groups, or on overflow.
    #[must_use]
    pub fn new(tuple_lines: u64, child_lines: u64, key_bytes: usize, encodings: &[Encoding]) -> Option<Self> {
        if !child_lines.is_power_of_two() || child_lines > CHILD_LINES_MAX {
            return None;
        }
        let mut levels = Vec::new();
        let mut children = tuple_lines.div_ceil(child_lines);
        for &encoding in encodings.iter().take(LEVELS_MAX) {
            if children <= 1 {
                break;
            }
            let fanout = encoding.separators(key_bytes) + 1;
            let lines = children.div_ceil(fanout as u64);
            levels.push(Level { encoding, fanout, lines, children, offset: 0 });
            children = lines;
        }
        if children > 1 || levels.len() != encodings.len() {
            return None;
        }
        let mut bytes = 0u64;
        for level in levels.iter_mut().rev() {
            level.offset = bytes;
            bytes = bytes.checked_add(align_up(level.lines.checked_mul(LINE_BYTES as u64)?, ARRAY_ALIGN)?)?;
        }
        Some(Self { levels, child_lines, bytes })
    }

    /// Returns what takes the place of a spine in a file without one: no levels, and all tuple lines in one group.
    #[must_use]
    pub fn none(tuple_lines: u64) -> Self {
        let child_lines = tuple_lines.max(1).checked_next_power_of_two().unwrap_or(1 << 63);
        Self { levels: Vec::new(), child_lines, bytes: 0 }
    }
}
