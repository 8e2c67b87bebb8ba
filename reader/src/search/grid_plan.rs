//! The arrays of a file's grid, checked to be inside its bytes.

use crate::arch;
use pleach_format::Header;
use pleach_format::grid::{self, BLOCK_UNITS, GridGeometry, Segment};
use std::marker::PhantomData;

/// The arrays of a grid: segments, units and supers.
#[derive(Clone, Copy)]
pub(crate) struct GridPlan<'a> {
    segments: *const [u8; 8],
    units: *const [u8; 8],
    supers: *const [u8; 4],
    last_segment: usize,
    pub(super) last_unit: u32,
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
        let (segments, _) = section.as_chunks::<8>();
        let (units, _) = section.get(count(shape.units_at)?..)?.as_chunks::<8>();
        let (supers, _) = section.get(count(shape.supers_at)?..)?.as_chunks::<4>();
        Some(Self {
            segments: segments.get(..count(shape.segments)?)?.as_ptr(),
            units: units.get(..count(shape.units)?)?.as_ptr(),
            supers: supers.get(..count(shape.supers)?)?.as_ptr(),
            last_segment: count(shape.segments)?.checked_sub(1)?,
            last_unit: u32::try_from(shape.units).ok()?.checked_sub(1)?,
            shape,
            bytes: PhantomData,
        })
    }

    #[inline(always)]
    pub(super) fn segment(&self, number: usize) -> Segment {
        // SAFETY: `new` guarantees `last_segment + 1` segments that live for 'a; the index is clamped to the
        // last.
        Segment::from_bytes(unsafe { &*self.segments.add(number.min(self.last_segment)) })
    }

    /// Returns unit and cell of a position.
    #[inline(always)]
    pub(super) fn place(&self, position: u32) -> (u32, u32) {
        let (segment, inside) = grid::segment_of(position, self.shape.segment_bits);
        grid::place(self.segment(segment), inside)
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, unit: u32) {
        arch::prefetch(self.units.wrapping_add(unit as usize));
    }

    /// Returns the number of marks before a cell, and whether the cell itself has one.
    ///
    /// # Safety
    /// `unit` is at most `last_unit`.
    #[inline(always)]
    pub(super) unsafe fn marks_before(&self, unit: u32, cell: u32) -> (u32, bool) {
        debug_assert!(unit <= self.last_unit);
        let unit = unit as usize;
        // SAFETY: `new` guarantees `last_unit + 1` units that live for 'a; the caller guarantees that `unit`
        // is at most `last_unit`.
        let bits = u64::from_le_bytes(unsafe { *self.units.add(unit) });
        // SAFETY: `new` guarantees one super for each started block of units, and that they live for 'a.
        let counted = u32::from_le_bytes(unsafe { *self.supers.add(unit / BLOCK_UNITS as usize) });
        let (marks, own) = grid::marks_before(bits, cell);
        (counted.wrapping_add(marks), own)
    }
}
