//! The arrays of an open file, checked to be inside its bytes.

use super::grid_plan::GridPlan;
use super::tree_plan::TreePlan;
use pleach_format::Header;
use pleach_format::key::{Bits, Word};
use pleach_format::layout::LINE_BYTES;
use pleach_format::line::{self, Line};
use pleach_format::section::LEVELS_MAX;
use pleach_format::spine::Encoding;
use std::marker::PhantomData;
use std::slice;

/// A non-empty array of lines. Indices are clamped, never trusted.
#[derive(Clone, Copy)]
pub(crate) struct Lines<'a> {
    first: *const Line,
    last: usize,
    bytes: PhantomData<&'a [Line]>,
}

// SAFETY: a `Lines` is a shared borrow of immutable bytes, like the `&[Line]` it was made from.
unsafe impl Send for Lines<'_> {}
// SAFETY: a `Lines` is a shared borrow of immutable bytes, like the `&[Line]` it was made from.
unsafe impl Sync for Lines<'_> {}

impl<'a> Lines<'a> {
    /// Creates the array of `count` lines from `offset`; `None` if there are none, or they and as many bytes as a line
    /// before them are not inside `bytes`. A file begins with its superblock.
    pub(crate) fn new(bytes: &'a [u8], offset: u64, count: u64) -> Option<Self> {
        let (offset, count) = (usize::try_from(offset).ok()?, usize::try_from(count).ok()?);
        let before = offset.checked_sub(LINE_BYTES)?;
        let bytes = bytes.get(before..)?.get(..count.checked_add(1)?.checked_mul(LINE_BYTES)?)?;
        let (lines, _) = bytes.as_chunks::<LINE_BYTES>();
        Some(Self { first: lines.as_ptr().wrapping_add(1), last: count.checked_sub(1)?, bytes: PhantomData })
    }

    /// Returns the line at `index`, or the last line if there are fewer.
    #[inline(always)]
    pub(crate) fn at(&self, index: usize) -> &'a Line {
        // SAFETY: `new` guarantees `last + 1` lines at `first` that live for 'a; the index is clamped to
        // `last`.
        unsafe { &*self.first.add(index.min(self.last)) }
    }

    /// Returns the line at `index`.
    ///
    /// # Safety
    /// `index` is at most [`Lines::last`].
    #[inline(always)]
    pub(crate) unsafe fn at_known(&self, index: usize) -> &'a Line {
        debug_assert!(index <= self.last);
        // SAFETY: `new` guarantees `last + 1` lines at `first` that live for 'a; the caller guarantees that
        // `index` is at most `last`.
        unsafe { &*self.first.add(index) }
    }

    /// Returns the line at a byte, counted from the first line.
    ///
    /// # Safety
    /// `byte` is that of the line with an index of at most [`Lines::last`].
    #[inline(always)]
    pub(crate) unsafe fn at_byte(&self, byte: u64) -> &'a Line {
        debug_assert!(byte.is_multiple_of(LINE_BYTES as u64) && byte / LINE_BYTES as u64 <= self.last as u64);
        // SAFETY: `new` guarantees `last + 1` lines at `first` that live for 'a; the caller guarantees that
        // the byte is that of one of them.
        unsafe { &*self.first.byte_add(byte as usize) }
    }

    /// Reads a value at a byte, counted from the first line.
    ///
    /// # Safety
    /// The value is inside the lines, or inside as many bytes as a line before them.
    #[inline(always)]
    pub(crate) unsafe fn read<B: Bits>(&self, byte: i64) -> B {
        debug_assert!(
            byte >= -(LINE_BYTES as i64)
                && byte + B::BYTES as i64 <= (self.last as i64 + 1) * LINE_BYTES as i64
        );
        // SAFETY: `new` guarantees those bytes, for 'a; the caller guarantees that the value is inside them.
        B::read(unsafe { slice::from_raw_parts(self.first.cast::<u8>().offset(byte as isize), B::BYTES) })
    }

    /// Returns the index of the last line.
    #[inline(always)]
    pub(crate) fn last(&self) -> usize {
        self.last
    }

    /// Returns the address of the first line.
    #[inline(always)]
    pub(super) fn start(&self) -> *const u8 {
        self.first.cast()
    }

    /// Prefetches the line at a byte, counted from the first line.
    #[inline(always)]
    pub(crate) fn prefetch_byte(&self, byte: u64) {
        crate::arch::prefetch(self.first.wrapping_byte_add(byte as usize));
    }

    /// Prefetches the line at `index`.
    #[inline(always)]
    pub(crate) fn prefetch(&self, index: usize) {
        crate::arch::prefetch(self.first.wrapping_add(index));
    }
}

/// One level of the spine.
#[derive(Clone, Copy)]
pub(crate) struct LevelPlan<'a> {
    pub(crate) lines: Lines<'a>,
    pub(crate) encoding: Encoding,
    pub(crate) fanout: usize,
}

/// The parts of a non-empty file that a descent uses.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    /// Levels from the root down; the first `depth` are `Some`.
    levels: [Option<LevelPlan<'a>>; LEVELS_MAX],
    depth: usize,
    /// Tuple lines in a child of the lowest level.
    pub(crate) child_lines: usize,
    pub(crate) tuple_lines: Lines<'a>,
    pub(crate) grid: Option<GridPlan<'a>>,
    /// The tree that takes the place of grid and spine.
    pub(crate) tree: Option<TreePlan<'a>>,
    pub(crate) tuples: u64,
    pub(crate) header: &'a Header,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Plan<'a> {
    /// Creates the plan; `None` for an empty file, and for bytes that the header does not describe.
    pub(crate) fn new(
        header: &'a Header,
        bytes: &'a [u8],
        has_grid: bool,
        tree: Option<TreePlan<'a>>,
    ) -> Option<Self> {
        let tuple_lines = Lines::new(bytes, header.lines_offset, header.lines)?;
        let mut levels = [None; LEVELS_MAX];
        for (slot, level) in levels.iter_mut().zip(header.spine.levels.iter().rev()) {
            let lines = Lines::new(bytes, header.spine_offset.checked_add(level.offset)?, level.lines)?;
            *slot = Some(LevelPlan { lines, encoding: level.encoding, fanout: level.fanout });
        }
        let depth = header.spine.levels.len();
        let child_lines = usize::try_from(header.spine.child_lines).ok()?;
        // In a grid the numbers of lines have 32 bits.
        let grid = GridPlan::new(header, bytes).filter(|_| has_grid && u32::try_from(header.lines).is_ok());
        Some(Self {
            levels,
            depth,
            child_lines,
            tuple_lines,
            grid,
            tree,
            tuples: header.tuples,
            header,
            bytes,
        })
    }

    /// Iterates over the levels from the root down.
    #[inline(always)]
    pub(crate) fn levels(&self) -> impl Iterator<Item = &LevelPlan<'a>> {
        self.levels[..self.depth].iter().flatten()
    }

    /// Returns the line and the slot of a rank, of lines of words `W` and values `B`; those of no tuple are clamped.
    #[inline(always)]
    pub(crate) fn place<W: Word, B: Bits>(&self, rank: u64) -> (&'a Line, usize) {
        let n = const { line::geometry::<W, B>().tuples_per_line() } as u64;
        (self.tuple_lines.at((rank / n) as usize), (rank % n) as usize)
    }

    /// Returns the level that is `stage` steps below the root.
    #[inline(always)]
    pub(crate) fn level(&self, stage: usize) -> Option<&LevelPlan<'a>> {
        self.levels[..self.depth].get(stage)?.as_ref()
    }

    /// Returns the number of levels.
    #[inline(always)]
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }
}
