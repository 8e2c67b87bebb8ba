//! Checks of the grid: first its counts, then every mark against its tuple line.
//!
//! The mark of a border is in the cell of the border's key or, if that is taken, in the next free cell. So
//! all marks are correct if the first one is, and if each follows from the one before. Lines are checked
//! while they are in memory for the other checks.

use super::{Check, Code, ReadAt};
use pleach_format::grid::{
    BLOCK_UNITS, CELLS, GUARD_BYTES, GridGeometry, SEGMENT_BYTES, SUPER_BYTES, Segment, UNIT_BYTES, place,
    segment_of,
};
use pleach_format::line::Line;
use pleach_format::{Header, Word, line};
use rayon::prelude::*;
use std::io;

/// A grid whose counts are correct: its arrays except the units.
pub(super) struct Grid {
    offset: u64,
    shape: GridGeometry,
    segments: Vec<Segment>,
    /// Number of marks before each block, and before the end of the last one.
    supers: Vec<u64>,
}

/// Iterator over the marks of a grid, beginning with a given mark.
struct Marks<'a, 'c, R> {
    check: &'a Check<'c, R>,
    grid: &'a Grid,
    /// The units in memory, and the number of the first one.
    units: Vec<u8>,
    first: u64,
    /// Number of the next unit, and the marks that are left of the unit before it.
    next: u64,
    marks: u64,
}

/// The bits of a unit that are marks.
const MARKS: u64 = (1 << CELLS) - 1;

impl<R: ReadAt> Check<'_, R> {
    /// Checks everything except the places of marks. Returns `None` if there is no grid, or if its marks
    /// cannot be counted.
    pub(super) fn check_grid(&self, header: &Header) -> io::Result<Option<Grid>> {
        let Some((offset, shape)) = header.grid else { return Ok(None) };
        let borders = header.lines.saturating_sub(1);
        let mut head = self.read(offset, shape.units_at)?;
        let zeros = head.split_off((shape.segments * SEGMENT_BYTES) as usize);
        let units_end = shape.units_at + shape.units * UNIT_BYTES;
        let mut tail = self.read(offset + units_end, shape.bytes() - units_end)?;
        let mut supers = tail.split_off((shape.supers_at - units_end) as usize);
        let guard = supers.split_off(supers.len() - GUARD_BYTES as usize);
        if zeros.iter().chain(&tail).chain(&guard).any(|&byte| byte != 0) {
            self.rule(Code::Padding, "GRID", offset, shape.bytes(), 0, "other bytes", "padding must be zero");
        }
        let (segments, _) = head.as_chunks::<{ SEGMENT_BYTES as usize }>();
        let (supers, _) = supers.as_chunks::<{ SUPER_BYTES as usize }>();
        let segments: Vec<Segment> = segments.iter().map(Segment::from_bytes).collect();
        let mut supers: Vec<u64> = supers.iter().map(|&marks| u32::from_le_bytes(marks).into()).collect();
        // The last segment may extend past the last key.
        let ordered = segments.is_sorted_by(|one, next| one.first.checked_add(one.units) == Some(next.first));
        let last = segments.last().map_or(0, |segment| u64::from(segment.first));
        if !ordered || segments.first().is_some_and(|segment| segment.first != 0) || last >= shape.units {
            let found = format!("{:?}", segments.last());
            let text = "segments must follow each other";
            self.rule(Code::Grid, "GRID", offset, shape.units_at, "segments in order", found, text);
            return Ok(None);
        }
        // No key may be after the last unit: a search would take its cell for empty.
        let (_, inside) = segment_of(shape.last_position(), shape.segment_bits);
        let reach = segments
            .last()
            .map_or(0, |it| u64::from(it.first) + ((u64::from(inside) * u64::from(it.units)) >> 32));
        if reach >= shape.units {
            let wanted = format!("a unit below {}", shape.units);
            let text = "the highest key must be in a unit";
            self.rule(Code::Grid, "GRID", offset, shape.units_at, wanted, reach, text);
            return Ok(None);
        }
        supers.push(borders);
        if supers[0] != 0 || !supers.is_sorted() {
            let (at, length) = (offset + shape.supers_at, shape.supers * SUPER_BYTES);
            self.rule(
                Code::Grid,
                "GRID",
                at,
                length,
                "ascending numbers",
                "others",
                "supers must count marks",
            );
            return Ok(None);
        }
        let grid = Grid { offset, shape, segments, supers };
        let counted = (0..shape.supers).into_par_iter().map(|block| self.is_counted(&grid, block));
        let counted =
            counted.try_fold(|| true, |all, one| Ok(all & one?)).try_reduce(|| true, |a, b| Ok(a & b));
        counted.map(|counted: bool| counted.then_some(grid))
    }

    /// Reports whether the units of a block count its marks correctly.
    fn is_counted(&self, grid: &Grid, block: u64) -> io::Result<bool> {
        let first = block * BLOCK_UNITS;
        let units = self.units(grid, first)?;
        let mut marks = 0;
        let mut good = true;
        for unit in units.as_chunks().0 {
            let unit = u64::from_le_bytes(*unit);
            good &= unit >> CELLS == marks;
            marks += u64::from((unit & MARKS).count_ones());
        }
        let expected = grid.supers[block as usize + 1] - grid.supers[block as usize];
        // Marks after the last unit are left out.
        let is_last = block + 1 == grid.shape.supers;
        good &= marks == expected || is_last && marks < expected;
        if !good {
            self.marks_rule(grid, first, "units must count the marks before them");
        }
        Ok(good)
    }

    fn marks_rule(&self, grid: &Grid, unit: u64, text: &str) {
        let block = unit / BLOCK_UNITS;
        let at = grid.offset + grid.shape.units_at + block * BLOCK_UNITS * UNIT_BYTES;
        let expected = format!("marks from line {} on", grid.supers[block as usize]);
        self.rule(Code::Grid, "GRID", at, BLOCK_UNITS * UNIT_BYTES, expected, "others", text);
    }

    /// Returns the units from this one to the end of its block.
    fn units(&self, grid: &Grid, first: u64) -> io::Result<Vec<u8>> {
        let end = grid.shape.units.min((first / BLOCK_UNITS + 1) * BLOCK_UNITS);
        self.read(grid.offset + grid.shape.units_at + first * UNIT_BYTES, (end - first) * UNIT_BYTES)
    }

    /// Checks that the borders after these tuple lines, the first of which is line `number`, have the correct
    /// marks. There are no more marks than borders, since they were counted before.
    pub(super) fn check_marks<W: Word>(
        &self,
        header: &Header,
        grid: &Grid,
        number: u64,
        lines: &[Line],
    ) -> io::Result<()> {
        let borders = header.lines.saturating_sub(1);
        let lines = &lines[..lines.len().min(borders.saturating_sub(number) as usize)];
        if lines.is_empty() {
            return Ok(());
        }
        let (n, scale) = (header.geometry.tuples_per_line(), grid.shape.scale::<W>());
        let cells = grid.shape.units * u64::from(CELLS);
        let mut marks = Marks::from(self, grid, number.saturating_sub(1))?;
        let mut free = match number {
            0 => 0,
            _ => marks.next()?.map_or(cells, |cell| cell + 1),
        };
        for line in lines {
            let (segment, inside) =
                segment_of(scale.position(line::key(line, n - 1)), grid.shape.segment_bits);
            let (unit, cell) = place(grid.segments[segment.min(grid.segments.len() - 1)], inside);
            let cell = (u64::from(unit) * u64::from(CELLS) + u64::from(cell)).max(free);
            free = cell + 1;
            let expected = (cell < cells).then_some(cell);
            if marks.next()? != expected {
                self.marks_rule(grid, cell / u64::from(CELLS), "each border of lines must have its mark");
                return Ok(());
            }
        }
        Ok(())
    }
}

impl<'a, 'c, R: ReadAt> Marks<'a, 'c, R> {
    /// Starts with the mark of this number, which is that of a border.
    fn from(check: &'a Check<'c, R>, grid: &'a Grid, number: u64) -> io::Result<Self> {
        let block = grid.supers.partition_point(|&before| before <= number).saturating_sub(1);
        let first = block as u64 * BLOCK_UNITS;
        let units = check.units(grid, first)?;
        let mut this = Self { check, grid, units, first, next: first, marks: 0 };
        let wanted = number - grid.supers[block];
        let (all, _) = this.units.as_chunks::<{ UNIT_BYTES as usize }>();
        // The last unit that has at most this many marks before it.
        let unit = all.partition_point(|unit| u64::from_le_bytes(*unit) >> CELLS <= wanted).max(1) - 1;
        let Some(found) = all.get(unit).map(|unit| u64::from_le_bytes(*unit)) else { return Ok(this) };
        this.next = first + unit as u64 + 1;
        this.marks = found & MARKS;
        for _ in 0..wanted.saturating_sub(found >> CELLS).min(u64::from(CELLS)) {
            this.marks &= this.marks.wrapping_sub(1);
        }
        Ok(this)
    }

    /// Returns the cell of the next mark, or `None` if there is none.
    fn next(&mut self) -> io::Result<Option<u64>> {
        while self.marks == 0 {
            if self.next >= self.grid.shape.units {
                return Ok(None);
            }
            let mut at = (self.next - self.first) as usize * UNIT_BYTES as usize;
            if at >= self.units.len() {
                (self.units, self.first, at) = (self.check.units(self.grid, self.next)?, self.next, 0);
            }
            let unit = self.units[at..].first_chunk().map_or(0, |unit| u64::from_le_bytes(*unit));
            self.marks = unit & MARKS;
            self.next += 1;
        }
        let cell = (self.next - 1) * u64::from(CELLS) + u64::from(self.marks.trailing_zeros());
        self.marks &= self.marks - 1;
        Ok(Some(cell))
    }
}
