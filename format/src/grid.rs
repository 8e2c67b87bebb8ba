//! The grid leads from a key directly to its tuple line, if keys are spread evenly enough.
//!
//! The range of the keys is divided into *segments* of equal width, each segment into *units* of equal width
//! (its own), and each unit into [`CELLS`] cells. Every border between two tuple lines puts a *mark* into the
//! cell of the last key to its left or, if that cell is taken, into the next free cell to the right.
//!
//! A unit is one 64-bit number. It has one bit per cell and, above these, the number of marks before it since
//! the last multiple of [`BLOCK_UNITS`] units. The marks before each such multiple are counted in an array of
//! *supers*.
//!
//! Cells keep the order of keys, so the marks in cells before that of a query are borders before the query.
//! If the query's own cell has no mark, these are all of them, and their number is the tuple line. Otherwise
//! the line is that one or is to its right. So a look-up reads one unit and one line: rank and select over a
//! bitmap (Jacobson 1989) below an interpolation search (Perl, Itai, Avni 1978).
//!
//! Files whose keys crowd into too few cells have no grid; the spine answers for them.

use crate::key::Word;
use crate::layout::align_up;
use crate::section::{ARRAY_ALIGN, GridParameters, Parameters};

/// Cells per unit: the bits of the number that are not its count.
pub const CELLS: u32 = 48;
/// Units that share a super. At this number, no count in a unit exceeds 16 bits.
pub const BLOCK_UNITS: u64 = 1024;
/// Bytes per unit.
pub const UNIT_BYTES: u64 = 8;
/// Bytes per segment: the number of its first unit and its number of units.
pub const SEGMENT_BYTES: u64 = 8;
/// Bytes per super.
pub const SUPER_BYTES: u64 = 4;
/// Binary logarithm of the maximum number of segments.
pub const SEGMENT_BITS_MAX: u32 = 16;
/// Zero bytes at the end of the section.
pub const GUARD_BYTES: u64 = 64;

/// Mapping of keys to positions. The position is the distance of a key from `low` as a 32-bit number whose
/// highest bit is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale<W> {
    /// Smallest word.
    pub low: W,
    /// Largest word.
    pub high: W,
    /// Bits by which a distance is shifted to the left first.
    pub left: u32,
    /// Bits by which it is then shifted to the right.
    pub right: u32,
}

impl<W: Word> Scale<W> {
    /// Creates the scale for words from `low` to `high`. Returns `None` if `high < low`.
    #[must_use]
    pub fn new(low: W, high: W) -> Option<Self> {
        if high < low {
            return None;
        }
        let bits = (high - low).bit_length();
        Some(Self { low, high, left: 32u32.saturating_sub(bits), right: bits.saturating_sub(32) })
    }

    /// Returns the position of the largest word.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.position(self.high)
    }

    /// Returns the position of a word. A word outside the range has the position of the nearer end.
    #[inline(always)]
    #[must_use]
    pub fn position(&self, word: W) -> u32 {
        let word = word.min(self.high);
        let distance = if word < self.low { W::default() } else { word - self.low };
        if W::BYTES == 4 {
            // The same result; a compiler can use twice as many lanes.
            return (distance.to_u128() as u32).wrapping_shl(self.left);
        }
        (distance.to_u128() as u64).wrapping_shl(self.left).wrapping_shr(self.right) as u32
    }
}

/// A segment: the number of its first unit, and its number of units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    /// Number of its first unit.
    pub first: u32,
    /// Number of its units. If it has none, its positions map to the first cell of the next segment.
    pub units: u32,
}

impl Segment {
    /// Returns the bytes stored in the file.
    #[must_use]
    pub fn to_bytes(self) -> [u8; SEGMENT_BYTES as usize] {
        let mut bytes = [0; SEGMENT_BYTES as usize];
        bytes[..4].copy_from_slice(&self.first.to_le_bytes());
        bytes[4..].copy_from_slice(&self.units.to_le_bytes());
        bytes
    }

    /// Reads the stored bytes.
    #[inline(always)]
    #[must_use]
    pub fn from_bytes(bytes: &[u8; SEGMENT_BYTES as usize]) -> Self {
        Self { first: <u32 as Word>::read(bytes), units: <u32 as Word>::read(&bytes[4..]) }
    }
}

/// Returns the segment of a position, and the position inside the segment as 32 bits.
#[inline(always)]
#[must_use]
pub fn segment_of(position: u32, segment_bits: u32) -> (usize, u32) {
    let wide = u64::from(position) << segment_bits;
    ((wide >> 32) as usize, wide as u32)
}

/// Returns the unit and the cell of a position inside a segment. A forged segment gives an arbitrary unit.
#[inline(always)]
#[must_use]
pub fn place(segment: Segment, inside: u32) -> (u32, u32) {
    let scaled = u64::from(inside) * u64::from(segment.units);
    let cell = (u64::from(scaled as u32) * u64::from(CELLS)) >> 32;
    (segment.first.wrapping_add((scaled >> 32) as u32), cell as u32)
}

/// Returns the number of marks before a cell, counted from the super of its unit, and whether the cell has a
/// mark.
#[inline(always)]
#[must_use]
pub fn marks_before(unit: u64, cell: u32) -> (u32, bool) {
    let below = unit & !(u64::MAX << (cell & 63));
    ((unit >> CELLS) as u32 + below.count_ones(), unit >> (cell & 63) & 1 == 1)
}

/// Sizes and places of the arrays of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridGeometry {
    /// Number of units.
    pub units: u64,
    /// Binary logarithm of the number of segments in the range of all positions.
    pub segment_bits: u32,
    /// Number of segments: as many as the positions of the keys reach.
    pub segments: u64,
    /// First byte of the units; the segments begin at 0.
    pub units_at: u64,
    /// First byte of the supers.
    pub supers_at: u64,
    /// Number of supers.
    pub supers: u64,
    /// Bytes per word: 4 or 8.
    pub word_bytes: u64,
    /// Mapping of words to positions, widened.
    scale: Scale<u64>,
}

impl GridGeometry {
    /// Creates a grid of `units` units over words from `low` to `high`. Returns `None` if these sizes are
    /// invalid.
    #[must_use]
    pub fn new(units: u64, segment_bits: u32, word_bytes: usize, low: u64, high: u64) -> Option<Self> {
        let fits = word_bytes == 8 || word_bytes == 4 && u32::try_from(high).is_ok();
        if !fits || segment_bits > SEGMENT_BITS_MAX || units == 0 || u32::try_from(units).is_err() {
            return None;
        }
        let scale = Scale::new(low, high)?;
        let segments = segment_of(scale.last(), segment_bits).0 as u64 + 1;
        let units_at = align_up(segments * SEGMENT_BYTES, ARRAY_ALIGN)?;
        let supers_at = align_up(units_at + units * UNIT_BYTES, ARRAY_ALIGN)?;
        let supers = units.div_ceil(BLOCK_UNITS);
        let word_bytes = word_bytes as u64;
        Some(Self { units, segment_bits, segments, units_at, supers_at, supers, word_bytes, scale })
    }

    /// Returns the mapping of words to positions; `W` has [`GridGeometry::word_bytes`] bytes.
    #[inline(always)]
    #[must_use]
    pub fn scale<W: Word>(&self) -> Scale<W> {
        let Scale { low, high, left, right } = self.scale;
        Scale { low: W::from_u64(low), high: W::from_u64(high), left, right }
    }

    /// Returns the position of the highest word.
    #[must_use]
    pub fn last_position(&self) -> u32 {
        self.scale.last()
    }

    /// Returns the bytes of the section.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.supers_at + self.supers * SUPER_BYTES + GUARD_BYTES
    }

    /// Returns the parameters of the section.
    #[must_use]
    pub fn parameters(&self) -> GridParameters {
        GridParameters {
            word_bytes: (self.word_bytes as u32).into(),
            segment_bits: self.segment_bits.into(),
            low: self.scale.low.into(),
            high: self.scale.high.into(),
            reserved: [0; 40],
        }
    }

    /// Reads the shape of a section of `length` bytes from its parameters. Returns `None` if no shape
    /// matches.
    #[must_use]
    pub fn from_parameters(stored: Parameters, units: u64, length: u64) -> Option<Self> {
        let stored = GridParameters::from(stored);
        let (low, high) = (stored.low.get(), stored.high.get());
        let this = Self::new(units, stored.segment_bits.get(), stored.word_bytes.get() as usize, low, high)?;
        (this.parameters() == stored && this.bytes() == length).then_some(this)
    }
}

/// Sets marks, and yields units in order.
#[derive(Clone, Debug)]
pub struct Marker {
    /// First free cell.
    free: u64,
    /// Number of units in all.
    units: u64,
    /// The current unit, and its number.
    unit: u64,
    number: u64,
    marks: u32,
    supers: Vec<u32>,
}

impl Marker {
    /// Creates the marker for `units` units.
    #[must_use]
    pub fn new(units: u64) -> Self {
        Self { free: 0, units, unit: 0, number: 0, marks: 0, supers: vec![0] }
    }

    /// Marks a cell or, if it is taken, the next free one; cells are counted from the first cell of the first
    /// unit and must not descend. A mark after the last unit is dropped. `take` receives the units before the
    /// cell.
    #[inline]
    pub fn mark(&mut self, cell: u64, take: &mut impl FnMut(u64)) {
        let cell = cell.max(self.free);
        self.free = cell + 1;
        let number = cell / u64::from(CELLS);
        if number < self.units {
            self.close(number, take);
            self.unit |= 1 << (cell % u64::from(CELLS));
            self.marks += 1;
        }
    }

    /// Passes all remaining units to `take`, and returns the supers.
    pub fn finish(mut self, take: &mut impl FnMut(u64)) -> Vec<u32> {
        self.close(self.units, take);
        self.supers.truncate(self.units.div_ceil(BLOCK_UNITS) as usize);
        self.supers
    }

    #[inline]
    fn close(&mut self, number: u64, take: &mut impl FnMut(u64)) {
        while self.number < number {
            take(self.unit);
            self.number += 1;
            if self.number.is_multiple_of(BLOCK_UNITS) {
                self.supers.push(self.marks);
            }
            let counted = self.supers.last().copied().unwrap_or_default();
            self.unit = u64::from(self.marks - counted) << CELLS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A grid over the last words of lines, as slices.
    struct Grid<W> {
        scale: Scale<W>,
        bits: u32,
        segments: Vec<Segment>,
        units: Vec<u64>,
        supers: Vec<u32>,
    }

    impl<W: Word> Grid<W> {
        fn new(lasts: &[W], low: W, bits: u32, units_each: u32) -> Self {
            let scale = Scale::new(low, *lasts.last().unwrap()).unwrap();
            let count = segment_of(scale.last(), bits).0 as u32 + 1;
            // Every third segment has no units; its positions are in the next one.
            let mut first = 0;
            let segments: Vec<Segment> = (0..count)
                .map(|number| {
                    let units = if number % 3 == 1 { 0 } else { units_each + number % 2 };
                    let segment = Segment { first, units };
                    first += units;
                    segment
                })
                .collect();
            // One more for segments at the end that have no units.
            let total = u64::from(first + 1);
            let (mut units, mut marker) = (Vec::new(), Marker::new(total));
            for &last in &lasts[..lasts.len() - 1] {
                let (unit, cell) = Self::at(&scale, bits, &segments, last);
                marker
                    .mark(u64::from(unit) * u64::from(CELLS) + u64::from(cell), &mut |unit| units.push(unit));
            }
            let supers = marker.finish(&mut |unit| units.push(unit));
            assert_eq!((units.len() as u64, supers.len() as u64), (total, total.div_ceil(BLOCK_UNITS)));
            Self { scale, bits, segments, units, supers }
        }

        fn at(scale: &Scale<W>, bits: u32, segments: &[Segment], word: W) -> (u32, u32) {
            let (segment, inside) = segment_of(scale.position(word), bits);
            place(segments[segment], inside)
        }

        fn line(&self, query: W) -> (usize, bool) {
            let (unit, cell) = Self::at(&self.scale, self.bits, &self.segments, query);
            let (marks, own) = marks_before(self.units[unit as usize], cell);
            ((self.supers[unit as usize / BLOCK_UNITS as usize] + marks) as usize, own)
        }
    }

    fn check<W: Word>(lasts: &[W], low: W, queries: impl Iterator<Item = W> + Clone) {
        for bits in [0, 1, 4, 16] {
            for units_each in [1, 2, 50, 3000] {
                if u64::from(units_each) << bits > 1 << 20 {
                    continue;
                }
                let grid = Grid::new(lasts, low, bits, units_each);
                for query in queries.clone() {
                    let right = lasts[..lasts.len() - 1].partition_point(|&last| last < query);
                    let (line, own) = grid.line(query);
                    assert!(line <= right, "{query:?}: {line} is right of {right}");
                    assert!(
                        own || line == right,
                        "{query:?}: {line} is not {right}, and its cell has no mark"
                    );
                }
            }
        }
    }

    #[test]
    fn a_cell_without_mark_is_exact_and_no_line_is_passed() {
        let mix =
            |i: u64| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xBF58_476D);
        for count in [1usize, 2, 3, 47, 48, 49, 3000] {
            let spread: Vec<u64> = (0..count as u64).map(mix).collect();
            let crowded: Vec<u64> = spread.iter().map(|word| word >> (word & 63)).collect();
            let equal: Vec<u64> = spread.iter().map(|word| word % 5 * 1000).collect();
            let top: Vec<u64> = spread.iter().map(|word| u64::MAX - word % 9000).collect();
            for mut lasts in [spread, crowded, equal, top] {
                lasts.sort_unstable();
                let near =
                    lasts.clone().into_iter().flat_map(|w| [w.saturating_sub(1), w, w.saturating_add(1)]);
                let queries = near.chain([0, 1, u64::MAX]);
                check(&lasts, lasts[0], queries.clone());
                check(&lasts, 0, queries.clone());
                let mut short: Vec<u32> = lasts.iter().map(|word| (word >> 32) as u32).collect();
                short.dedup();
                check(&short, short[0], queries.map(|word| (word >> 32) as u32));
            }
        }
    }

    #[test]
    fn geometry_and_back() {
        let ranges =
            [(4usize, 0u64, 0u64), (4, 7, u32::MAX.into()), (8, 0, u64::MAX), (8, 5, 5), (8, 1, 1 << 40)];
        for (word_bytes, low, high) in ranges {
            for units in [1, 1023, 1024, 1025, 1 << 20] {
                for bits in [0, 5, 16] {
                    let shape = GridGeometry::new(units, bits, word_bytes, low, high).unwrap();
                    assert_eq!(
                        GridGeometry::from_parameters(shape.parameters().into(), units, shape.bytes()),
                        Some(shape)
                    );
                    assert_eq!(
                        GridGeometry::from_parameters(shape.parameters().into(), units, shape.bytes() + 1),
                        None
                    );
                    assert!(shape.segments <= 1 << bits);
                }
            }
        }
        assert_eq!(GridGeometry::new(1, 0, 4, 5, 4), None);
        assert_eq!(GridGeometry::new(1, 0, 4, 0, 1 << 32), None);
        assert_eq!(GridGeometry::new(1, 17, 8, 0, 1), None);
        assert_eq!(GridGeometry::new(0, 0, 8, 0, 1), None);
        assert_eq!(GridGeometry::new(1 << 32, 0, 8, 0, 1), None);
        assert_eq!(GridGeometry::new(1, 0, 16, 0, 1), None);
    }
}
