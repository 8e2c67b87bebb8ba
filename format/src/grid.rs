//! The grid leads from a key directly to its tuple line, whatever the keys look like.
//!
//! A *segment* is a range of keys, cut into parts of equal width, a power of two. Where keys are spread evenly
//! enough in it, the parts are *cells*: every border between two tuple lines puts a *mark* into the cell of the
//! last key to its left or, if that cell is taken, into the next free cell to the right. Elsewhere the parts are
//! segments again, each with a range and cells of its own: as long as the keys in it need, and no longer. So
//! crowded ranges get fine cells, and empty ones cost nothing but their parts.
//!
//! Cells are stored in *units*. A unit is one 64-bit number: a bit for each of [`CELLS`] cells, and the number of
//! marks before it. A segment of few lines has its [`MARKS`] cells in itself, and needs no unit.
//!
//! Cells keep the order of keys, so the marks in cells before that of a query are borders before the query. If
//! the query's own cell has no mark, these are all of them, and their number is the tuple line. Otherwise the
//! line is that one or is to its right. A look-up reads the segments on its way (none in files whose keys are
//! spread evenly, for the first segment is among the parameters), a unit, and a line: rank over a bitmap
//! (Jacobson 1989) below an interpolation search (Perl, Itai, Avni 1978), in a trie whose nodes skip what their
//! keys have in common (Morrison 1968).

use crate::key::Word;
use crate::layout::align_up;
use crate::section::{ARRAY_ALIGN, GridParameters, Parameters};

/// Cells per unit: the lower half of its bits.
pub const CELLS: u32 = 32;
/// Bytes per unit.
pub const UNIT_BYTES: u64 = 8;
/// Bytes per segment.
pub const SEGMENT_BYTES: u64 = 16;
/// Cells of a segment that has its marks in itself.
pub const MARKS: u32 = 24;
/// Maximum number of parts of a segment, or of units with its cells.
pub const PARTS_MAX: u64 = 1 << 24;
/// Maximum number of segments that a search reads, the first one left out.
pub const STEPS_MAX: u32 = 8;
/// Zero bytes at the end of the section.
pub const GUARD_BYTES: u64 = 64;

/// What the parts of a segment are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// So many segments.
    Segments(u32),
    /// Cells in so many units.
    Units(u32),
    /// [`MARKS`] cells, with these marks.
    Marks(u32),
}

/// A segment, as it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The smallest word of its first part. Words below it are in that part.
    pub base: u64,
    /// Number of the first of its segments or units; the line before its first mark.
    first: u32,
    /// Bits 0 to 23 the number of segments or units less one, or marks; 24 and 25 which of them; from 26 on the
    /// binary logarithm of the width of a part.
    form: u32,
}

const NUMBER_BITS: u32 = 24;
const NUMBER: u32 = (1 << NUMBER_BITS) - 1;
const KIND_BITS: u32 = 2;
const SEGMENTS: u32 = 0;
const UNITS: u32 = 1;
const MARKED: u32 = 2;

/// Where a word is in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of a segment, of a unit or of a line.
    pub at: u32,
    /// [`Place::SEGMENT`], or [`Place::UNIT`] and the number of the cell. Of a line, 1 if the word may be right of
    /// it, else 0.
    pub what: u32,
}

impl Place {
    /// `at` is a segment.
    pub const SEGMENT: u32 = 1 << 31;
    /// `at` is a unit.
    pub const UNIT: u32 = 1 << 30;

    /// Returns both numbers in one: `at` in the lower half.
    #[inline(always)]
    #[must_use]
    pub fn to_u64(self) -> u64 {
        u64::from(self.at) | u64::from(self.what) << 32
    }

    /// Reads both numbers from one.
    #[inline(always)]
    #[must_use]
    pub fn from_u64(both: u64) -> Self {
        Self { at: both as u32, what: (both >> 32) as u32 }
    }
}

impl Segment {
    /// Creates a segment. Returns `None` if a number is out of bounds.
    #[must_use]
    pub fn new(base: u64, first: u32, parts: Parts, shift: u32) -> Option<Self> {
        let (kind, number) = match parts {
            Parts::Segments(count) => (SEGMENTS, count.checked_sub(1)?),
            Parts::Units(count) => (UNITS, count.checked_sub(1)?),
            Parts::Marks(marks) => (MARKED, marks),
        };
        let is_valid = number <= NUMBER && shift < 64;
        let form = number | kind << NUMBER_BITS | shift << (NUMBER_BITS + KIND_BITS);
        is_valid.then_some(Self { base, first, form })
    }

    /// The same segment, with its segments or units from a number on.
    #[must_use]
    pub fn moved(self, first: u32) -> Self {
        Self { first, ..self }
    }

    /// A segment without borders, all of whose words are in this line.
    #[must_use]
    pub fn of_line(line: u32) -> Self {
        Self { base: u64::MAX, first: line, form: MARKED << NUMBER_BITS }
    }

    /// Returns what its parts are; `None` if no writer makes such a segment.
    #[must_use]
    pub fn parts(self) -> Option<Parts> {
        let number = self.form & NUMBER;
        match self.form >> NUMBER_BITS & 3 {
            SEGMENTS => Some(Parts::Segments(number + 1)),
            UNITS => Some(Parts::Units(number + 1)),
            MARKED => Some(Parts::Marks(number)),
            _ => None,
        }
    }

    /// Returns the number of the first of its segments or units, or the line before its first mark.
    #[must_use]
    pub fn first(self) -> u32 {
        self.first
    }

    /// Returns the binary logarithm of the width of a part.
    #[inline(always)]
    #[must_use]
    pub fn shift(self) -> u32 {
        self.form >> (NUMBER_BITS + KIND_BITS)
    }

    /// Returns the number of a word's part, or of its cell, from 0.
    #[must_use]
    pub fn part<W: Word>(self, word: W) -> u64 {
        let base = W::from_u64(self.base);
        let parts = match self.parts() {
            Some(Parts::Segments(count)) => u64::from(count),
            Some(Parts::Units(count)) => u64::from(count) * u64::from(CELLS),
            Some(Parts::Marks(_)) | None => u64::from(MARKS),
        };
        word.max(base).cell(base, self.shift()).min(parts - 1)
    }

    /// Returns where a word is. A forged segment gives an arbitrary place.
    #[inline(always)]
    #[must_use]
    pub fn place<W: Word>(self, word: W) -> Place {
        let base = W::from_u64(self.base);
        let part = word.max(base).cell(base, self.shift());
        let (number, kind) = (self.form & NUMBER, self.form >> NUMBER_BITS & 3);
        // Masks, since queries differ in what they meet: no compiler makes a branch of them.
        let all = |holds: bool| u32::from(holds).wrapping_neg();
        let (units, marked) = (all(kind == UNITS), all(kind >= MARKED));
        let unit_bits = units & CELLS.trailing_zeros();
        let last = marked & (MARKS - 1) | !marked & (((number + 1) << unit_bits) - 1);
        let part = part.min(u64::from(last)) as u32;
        let cell = part & (CELLS - 1);
        let before = (number & ((1u32 << cell) - 1)).count_ones();
        let at = self.first.wrapping_add(marked & before | !marked & part >> unit_bits);
        let inside = units & (Place::UNIT | cell) | !units & Place::SEGMENT;
        // The first mark ends the line of words up to the base.
        let own = marked & u32::from(word > base) & (number >> cell);
        Place { at, what: own | !marked & inside }
    }

    /// Returns both halves of the stored bytes as numbers. They are made in registers: a vector that is loaded from
    /// bytes which were just stored piece by piece waits for these stores.
    #[inline(always)]
    #[must_use]
    pub fn halves(self) -> [u64; 2] {
        [self.base, u64::from(self.first) | u64::from(self.form) << 32]
    }

    /// Returns the bytes stored in the file.
    #[inline]
    #[must_use]
    pub fn to_bytes(self) -> [u8; SEGMENT_BYTES as usize] {
        let mut bytes = [0; SEGMENT_BYTES as usize];
        bytes[..8].copy_from_slice(&self.base.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.first.to_le_bytes());
        bytes[12..].copy_from_slice(&self.form.to_le_bytes());
        bytes
    }

    /// Reads the stored bytes.
    #[inline(always)]
    #[must_use]
    pub fn from_bytes(bytes: &[u8; SEGMENT_BYTES as usize]) -> Self {
        Self {
            base: <u64 as Word>::read(bytes),
            first: <u32 as Word>::read(&bytes[8..]),
            form: <u32 as Word>::read(&bytes[12..]),
        }
    }
}

/// Returns the number of marks before a cell of a unit, and whether the cell has a mark.
#[inline(always)]
#[must_use]
pub fn marks_before(unit: u64, cell: u32) -> (u32, bool) {
    let bit = 1u32 << (cell & (CELLS - 1));
    let marks = unit as u32;
    (((unit >> CELLS) as u32).wrapping_add((marks & (bit - 1)).count_ones()), marks & bit != 0)
}

/// Sizes and places of the arrays of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridGeometry {
    /// Number of units.
    pub units: u64,
    /// Number of segments, the first one left out.
    pub segments: u64,
    /// First byte of the units; the segments begin at 0.
    pub units_at: u64,
    /// Bytes per word: 4 or 8.
    pub word_bytes: u64,
    /// The segment of all words.
    pub root: Segment,
    /// Maximum number of segments that a search reads.
    pub steps: u32,
    /// Number of segments after which nearly all words have arrived.
    pub usual_steps: u32,
}

impl GridGeometry {
    /// Creates a grid of these arrays below a first segment. Returns `None` if these sizes are invalid.
    #[must_use]
    pub fn new(
        (segments, units): (u64, u64),
        word_bytes: usize,
        root: Segment,
        (steps, usual_steps): (u32, u32),
    ) -> Option<Self> {
        let is_one = !matches!(root.parts()?, Parts::Segments(_));
        let fits = word_bytes == 8 || word_bytes == 4 && u32::try_from(root.base).is_ok();
        let counts = u32::try_from(segments).is_ok() && u32::try_from(units).is_ok() && units > 0;
        let walks =
            steps <= STEPS_MAX && usual_steps <= steps && is_one == (steps == 0) && is_one == (segments == 0);
        if !fits || !counts || !walks || is_one != (usual_steps == 0) {
            return None;
        }
        let units_at = align_up(segments * SEGMENT_BYTES, ARRAY_ALIGN)?;
        Some(Self { units, segments, units_at, word_bytes: word_bytes as u64, root, steps, usual_steps })
    }

    /// Returns the bytes of the section.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.units_at + self.units * UNIT_BYTES + GUARD_BYTES
    }

    /// Returns the parameters of the section.
    #[must_use]
    pub fn parameters(&self) -> GridParameters {
        GridParameters {
            word_bytes: (self.word_bytes as u32).into(),
            steps: self.steps.into(),
            usual_steps: self.usual_steps.into(),
            gap: 0.into(),
            segments: self.segments.into(),
            base: self.root.base.into(),
            first: self.root.first.into(),
            form: self.root.form.into(),
            reserved: [0; 24],
        }
    }

    /// Reads the shape of a section of `length` bytes from its parameters. Returns `None` if no shape matches.
    #[must_use]
    pub fn from_parameters(stored: Parameters, units: u64, length: u64) -> Option<Self> {
        let stored = GridParameters::from(stored);
        let root = Segment { base: stored.base.get(), first: stored.first.get(), form: stored.form.get() };
        let steps = (stored.steps.get(), stored.usual_steps.get());
        let this = Self::new((stored.segments.get(), units), stored.word_bytes.get() as usize, root, steps)?;
        (this.parameters() == stored && this.bytes() == length).then_some(this)
    }
}
