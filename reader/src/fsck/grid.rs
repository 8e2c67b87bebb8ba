//! Checks of the grid: block by block, every mark against the tuple line it stands for.

use super::{Check, ReadAt};
use pleach_format::grid::{
    BLOCK_UNITS, CELLS, GUARD_BYTES, GridGeometry, SEGMENT_BYTES, SUPER_BYTES, Segment, UNIT_BYTES, place,
    segment_of,
};
use pleach_format::layout::LINE_BYTES;
use pleach_format::{Header, Word, line};
use rayon::prelude::*;
use std::io;

/// Lines that are read at once.
const READ_LINES: u64 = 1 << 12;

/// What the section holds besides its units.
struct Stored {
    offset: u64,
    shape: GridGeometry,
    segments: Vec<Segment>,
    /// Marks before each block, and before its end.
    supers: Vec<u64>,
}

impl<R: ReadAt> Check<'_, R> {
    pub(super) fn check_grid(&self, header: &Header) -> io::Result<()> {
        let Some((offset, shape)) = header.grid else { return Ok(()) };
        let wrong = |at: u64, length: u64, expected: String, found: String, rule: &str| {
            self.rule("grid", "GRID", at, length, expected, found, rule);
        };
        let borders = header.lines.saturating_sub(1);
        let mut head = self.read(offset, shape.units_at)?;
        let zeros = head.split_off((shape.segments * SEGMENT_BYTES) as usize);
        let units_end = shape.units_at + shape.units * UNIT_BYTES;
        let mut tail = self.read(offset + units_end, shape.bytes() - units_end)?;
        let mut supers = tail.split_off((shape.supers_at - units_end) as usize);
        let guard = supers.split_off(supers.len() - GUARD_BYTES as usize);
        if zeros.iter().chain(&tail).chain(&guard).any(|&byte| byte != 0) {
            self.rule("padding", "GRID", offset, shape.bytes(), 0, "other bytes", "padding must be zero");
        }
        let (segments, _) = head.as_chunks::<{ SEGMENT_BYTES as usize }>();
        let (supers, _) = supers.as_chunks::<{ SUPER_BYTES as usize }>();
        let mut stored = Stored {
            offset,
            shape,
            segments: segments.iter().map(Segment::from_bytes).collect(),
            supers: supers.iter().map(|&marks| u32::from_le_bytes(marks).into()).collect(),
        };
        // The last segment may reach beyond the last key.
        let ordered =
            stored.segments.is_sorted_by(|one, next| one.first.checked_add(one.units) == Some(next.first));
        let last = stored.segments.last().map_or(0, |segment| u64::from(segment.first));
        if !ordered
            || stored.segments.first().is_some_and(|segment| segment.first != 0)
            || last >= shape.units
        {
            let found = format!("{:?}", stored.segments.last());
            wrong(
                offset,
                shape.units_at,
                "segments in order".to_owned(),
                found,
                "segments must follow each other",
            );
            return Ok(());
        }
        stored.supers.push(borders);
        if stored.supers[0] != 0 || !stored.supers.is_sorted() {
            let (at, length) = (offset + shape.supers_at, shape.supers * SUPER_BYTES);
            wrong(at, length, "ascending numbers".to_owned(), "others".to_owned(), "supers must count marks");
            return Ok(());
        }
        (0..shape.supers).into_par_iter().try_for_each(|block| {
            if self.is_cancelled() {
                return Ok(());
            }
            let good = match shape.word_bytes {
                4 => self.is_block::<u32>(header, &stored, block)?,
                _ => self.is_block::<u64>(header, &stored, block)?,
            };
            if !good {
                let at = offset + shape.units_at + block * BLOCK_UNITS * UNIT_BYTES;
                let expected = format!("marks from line {} on", stored.supers[block as usize]);
                let (length, found) = (BLOCK_UNITS * UNIT_BYTES, "others".to_owned());
                wrong(at, length, expected, found, "each border of lines must have its mark");
            }
            Ok(())
        })
    }

    /// Whether the units of a block hold the marks that its super and the next one announce.
    fn is_block<W: Word>(&self, header: &Header, stored: &Stored, block: u64) -> io::Result<bool> {
        let shape = &stored.shape;
        let scale = shape.scale::<W>();
        let units = block * BLOCK_UNITS..shape.units.min((block + 1) * BLOCK_UNITS);
        // With the unit before it: a mark in its last cell pushes others on.
        let from = units.start.saturating_sub(1);
        let bytes =
            self.read(stored.offset + shape.units_at + from * UNIT_BYTES, (units.end - from) * UNIT_BYTES)?;
        let (found, _) = bytes.as_chunks::<8>();
        let (before, found) = found.split_at((units.start - from) as usize);
        let is_full = |unit: &[u8; 8]| u64::from_le_bytes(*unit) >> (CELLS - 1) & 1 == 1;
        let cells = units.start * u64::from(CELLS)..units.end * u64::from(CELLS);
        let mut free = if before.iter().any(is_full) { cells.start } else { 0 };
        let mut expected = vec![0u64; found.len()];
        let lines = stored.supers[block as usize]..stored.supers[block as usize + 1];
        let n = header.geometry.tuples_per_line();
        let mut at = lines.start;
        while at < lines.end {
            let count = READ_LINES.min(lines.end - at);
            let bytes = self.read(header.line_offset(at), count * LINE_BYTES as u64)?;
            for line in bytes.as_chunks::<LINE_BYTES>().0 {
                let (segment, inside) =
                    segment_of(scale.position(line::key(line, n - 1)), shape.segment_bits);
                let (unit, cell) = place(stored.segments[segment.min(stored.segments.len() - 1)], inside);
                let cell = (u64::from(unit) * u64::from(CELLS) + u64::from(cell)).max(free);
                free = cell + 1;
                if cells.contains(&cell) {
                    let (unit, cell) = ((cell - cells.start) / u64::from(CELLS), cell % u64::from(CELLS));
                    expected[unit as usize] |= 1 << cell;
                } else if cell < cells.start || units.end < shape.units {
                    return Ok(false);
                }
            }
            at += count;
        }
        let mut marks = 0;
        for unit in &mut expected {
            let own = u64::from(unit.count_ones());
            *unit |= marks << CELLS;
            marks += own;
        }
        Ok(expected.iter().zip(found).all(|(unit, found)| unit.to_le_bytes() == *found))
    }
}
