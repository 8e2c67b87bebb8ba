//! Steps of eight look-ups by the grid: from the place of a word to a segment, a unit, a tuple line.
//!
//! A place is kept in 64 bits, as [`Place::to_u64`] gives it. Lanes differ in what they have reached, so nothing
//! here branches on it.

use pleach_format::grid::{self, Place, Segment};
use pleach_format::line::Line;

/// Look-ups that take a step together.
pub(crate) const LANES: usize = 8;

/// One number for each look-up.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub struct Lanes(pub [u64; LANES]);

/// Arrays that places lead into, each with the number of its last element.
#[derive(Clone, Copy)]
pub struct Arrays {
    pub segments: *const [u8; 16],
    pub last_segment: u32,
    pub units: *const [u8; 8],
    pub last_unit: u32,
    pub lines: *const Line,
    pub last_line: u32,
}

impl Arrays {
    /// Returns a segment. The number is clamped to the last one.
    ///
    /// # Safety
    /// `segments` has `last_segment + 1` segments.
    #[inline(always)]
    pub(crate) unsafe fn segment(&self, number: u32) -> Segment {
        // SAFETY: the number is clamped, and the caller guarantees the array.
        Segment::from_bytes(unsafe { &*self.segments.add(number.min(self.last_segment) as usize) })
    }

    /// Returns a unit. The number is clamped to the last one.
    ///
    /// # Safety
    /// `units` has `last_unit + 1` units.
    #[inline(always)]
    pub(crate) unsafe fn unit(&self, number: u32) -> u64 {
        // SAFETY: the number is clamped, and the caller guarantees the array.
        u64::from_le_bytes(unsafe { *self.units.add(number.min(self.last_unit) as usize) })
    }

    /// Returns the address of what a place leads to.
    #[inline(always)]
    pub(crate) fn address(&self, place: Place) -> *const u8 {
        let all = |holds: bool| usize::from(holds).wrapping_neg();
        let (segment, unit) = (all(place.what & Place::SEGMENT != 0), all(place.what & Place::UNIT != 0));
        // Distances between addresses of one file.
        let to_segments = self.segments.addr().wrapping_sub(self.lines.addr());
        let to_units = self.units.addr().wrapping_sub(self.lines.addr());
        let start = segment & to_segments | unit & to_units;
        let bits = segment & 4 | unit & 3 | !(segment | unit) & 6;
        self.lines.cast::<u8>().wrapping_add(start.wrapping_add((place.at as usize) << bits))
    }

    /// Returns the tuple line that a place with a unit, or a line, leads to, and 1 if the word may be right of it,
    /// else 0. A place with a segment leads anywhere: no valid file has so many of them on the way.
    ///
    /// # Safety
    /// `units` has `last_unit + 1` units.
    #[inline(always)]
    pub(crate) unsafe fn line(&self, place: Place) -> (u32, u32) {
        let all = |holds: bool| u32::from(holds).wrapping_neg();
        let (segment, unit) = (all(place.what & Place::SEGMENT != 0), all(place.what & Place::UNIT != 0));
        // Who has arrived reads the first unit, which is in the cache.
        // SAFETY: the caller guarantees the array.
        let (at, own) = grid::marks_before(unsafe { self.unit(unit & place.at) }, place.what);
        let at = unit & at | !(unit | segment) & place.at;
        (at.min(self.last_line), unit & u32::from(own) | !unit & (place.what & 1) | segment & 1)
    }
}
