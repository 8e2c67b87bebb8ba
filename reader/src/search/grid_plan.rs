//! The arrays of a file's grid, checked to be inside its bytes.

use crate::arch::lanes::Arrays;
use pleach_format::Header;
use pleach_format::grid::{GridGeometry, Place};
use pleach_format::key::Word;
use std::marker::PhantomData;

/// The arrays of a grid: segments and units.
#[derive(Clone, Copy)]
pub(crate) struct GridPlan<'a> {
    segments: *const [u8; 16],
    units: *const [u8; 8],
    /// Number of the last segment; 0 if there is none, and then no step leads to it.
    last_segment: u32,
    last_unit: u32,
    pub(super) shape: GridGeometry,
    bytes: PhantomData<&'a [u8]>,
}

// SAFETY: a `GridPlan` is a shared borrow of immutable bytes, like the `&[u8]` it was made from.
unsafe impl Send for GridPlan<'_> {}
// SAFETY: a `GridPlan` is a shared borrow of immutable bytes, like the `&[u8]` it was made from.
unsafe impl Sync for GridPlan<'_> {}

impl<'a> GridPlan<'a> {
    /// Creates the plan; `None` without a grid, and for bytes that the header does not describe.
    pub(super) fn new(header: &Header, bytes: &'a [u8]) -> Option<Self> {
        let (offset, shape) = header.grid?;
        let section = bytes.get(usize::try_from(offset).ok()?..)?;
        let section = section.get(..usize::try_from(shape.bytes()).ok()?)?;
        let count = |number: u64| usize::try_from(number).ok();
        let (segments, _) = section.as_chunks::<16>();
        let (units, _) = section.get(count(shape.units_at)?..)?.as_chunks::<8>();
        Some(Self {
            segments: segments.get(..count(shape.segments)?)?.as_ptr(),
            units: units.get(..count(shape.units)?)?.as_ptr(),
            last_segment: u32::try_from(shape.segments).ok()?.saturating_sub(1),
            last_unit: u32::try_from(shape.units).ok()?.checked_sub(1)?,
            shape,
            bytes: PhantomData,
        })
    }

    /// Returns the arrays that places lead into, the tuple lines among them: their start, and the number of the
    /// last.
    #[inline(always)]
    pub(super) fn arrays(&self, (lines, last_line): (*const u8, usize)) -> Arrays {
        Arrays {
            segments: self.segments,
            last_segment: self.last_segment,
            units: self.units,
            last_unit: self.last_unit,
            lines: lines.cast(),
            last_line: last_line as u32,
        }
    }

    /// Returns the line of a word, or one left of it.
    #[inline]
    pub(super) fn line<W: Word>(&self, lines: (*const u8, usize), word: W) -> u32 {
        let arrays = self.arrays(lines);
        let mut place = self.shape.root.place(word);
        for _ in 0..self.shape.steps {
            if place.what & Place::SEGMENT == 0 {
                break;
            }
            // SAFETY: `new` guarantees these segments, of which there is one if there is a step.
            place = unsafe { arrays.segment(place.at) }.place(word);
        }
        // SAFETY: `new` guarantees the units.
        unsafe { arrays.line(place) }.0
    }
}
