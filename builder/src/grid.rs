//! Building of the grid, if the keys are spread evenly enough for one.
//!
//! While lines are packed the last key of each is kept. When all are known, one segment over all keys is
//! tried, then more and more segments, with units in proportion to the borders in each. A trial counts the
//! *late* lines: a look-up of their last key would have to pass two borders to the right. If few lines are
//! late, the marks are placed again, in order, and the units are written to the file.

use crate::error::BuildError;
use crate::lines::Lasts;
use crate::pack::KeyLane;
use crate::parallel;
use crate::section::Extra;
use pleach_format::grid::{
    CELLS, GUARD_BYTES, GridGeometry, Marker, SEGMENT_BYTES, Scale, Segment, UNIT_BYTES, place, segment_of,
};
use pleach_format::section::Tag;

/// Minimum number of tuple lines: fewer are found as fast by their spine.
const LINES_MIN: u64 = 64;
/// Borders per unit, by the maximum number of borders: a mark in 24, 12 or 6.9 cells. Fewer borders per unit
/// make the grid larger, more of them send more queries one line further; a small grid should fit the first
/// or the second cache.
const BORDERS_PER_UNIT: [(u64, u64); 3] = [(1 << 13, 2), (1 << 20, 4), (u64::MAX, 7)];
/// Numbers of segments that are tried, as powers of two.
const SEGMENT_BITS: [u32; 4] = [0, 8, 12, 16];
/// Minimum number of lines per segment: with fewer, segments would be larger than the grid.
const LINES_PER_SEGMENT: u64 = 4;
/// One line in `LATE_SHARE` may be late.
const LATE_SHARE: u64 = 128;
/// Lines counted by one task; fixed, so that the count does not depend on the threads.
const TASK_LINES: usize = 1 << 16;
/// Bytes that are passed on at once.
const BUFFER_BYTES: usize = 1 << 20;

/// A division of the key span into units.
struct Cut<W> {
    scale: Scale<W>,
    segment_bits: u32,
    segments: Vec<Segment>,
    units: u64,
}

impl<W: KeyLane> Cut<W> {
    /// Divides the span by `counts`, the borders in each segment. `None` if there would be too many units.
    fn new(scale: Scale<W>, segment_bits: u32, counts: &[u64]) -> Option<Self> {
        let borders: u64 = counts.iter().sum();
        let (_, borders_per_unit) = BORDERS_PER_UNIT.into_iter().find(|&(limit, _)| borders <= limit)?;
        let mut first = 0u64;
        let mut segments = Vec::with_capacity(counts.len());
        for (number, &count) in counts.iter().enumerate() {
            let mut units = count.div_ceil(borders_per_unit);
            let mut used = units;
            if number + 1 == counts.len() {
                // The last segment extends beyond the last key: it is as dense as it would be up to its end.
                let inside = u64::from(segment_of(scale.last(), segment_bits).1) + 1;
                units = u64::try_from((u128::from(units) << 32) / u128::from(inside)).ok()?;
                used = ((u128::from(units) * u128::from(inside - 1)) >> 32) as u64 + 1;
            }
            segments.push(Segment { first: u32::try_from(first).ok()?, units: u32::try_from(units).ok()? });
            first += used;
        }
        // One more unit, for marks that find no free cell before it.
        Some(Self { scale, segment_bits, segments, units: first + 1 })
    }

    /// Returns the number of the cell of a word, among all cells.
    #[inline]
    fn cell(&self, word: W) -> u64 {
        let (segment, inside) = segment_of(self.scale.position(word), self.segment_bits);
        let (unit, cell) = place(self.segments[segment], inside);
        u64::from(unit) * u64::from(CELLS) + u64::from(cell)
    }

    /// Counts the late lines among consecutive ones, as if no mark before them had been in the way.
    fn late(&self, lasts: &[W]) -> u64 {
        let (mut marks, mut previous, mut late) = ([None::<u64>; 2], None, 0);
        for &last in lasts {
            let cell = self.cell(last);
            late += u64::from(previous != Some(last) && marks[0].is_some_and(|mark| mark >= cell));
            let mark = marks[1].map_or(cell, |mark| cell.max(mark + 1));
            marks = [marks[1], Some(mark)];
            previous = Some(last);
        }
        late
    }
}

/// Counts the borders in each of `2^segment_bits` segments, as far as keys reach.
fn count<W: KeyLane>(lasts: &Lasts<W>, scale: &Scale<W>, segment_bits: u32) -> Result<Vec<u64>, BuildError> {
    let segments = segment_of(scale.last(), segment_bits).0 + 1;
    let mut counts = vec![0; segments];
    if segments == 1 {
        counts[0] = lasts.len();
        return Ok(counts);
    }
    lasts.read(&mut |lasts| {
        let len = lasts.len().div_ceil(16).max(TASK_LINES);
        let parts = parallel::map(lasts.len().div_ceil(len), |part| {
            let mut counts = vec![0u64; segments];
            for &last in &lasts[part * len..lasts.len().min((part + 1) * len)] {
                counts[segment_of(scale.position(last), segment_bits).0] += 1;
            }
            counts
        });
        for part in parts {
            counts.iter_mut().zip(part).for_each(|(count, part)| *count += part);
        }
        Ok(())
    })?;
    Ok(counts)
}

/// Makes the section for lines with these last keys, of words from `low` to `high`. `None` if a grid would
/// not help: too few lines, or keys too crowded.
pub(crate) fn of_lasts<W: KeyLane>(
    lasts: &Lasts<W>,
    low: W,
    high: W,
) -> Result<Option<Extra<'_>>, BuildError> {
    let lines = lasts.len();
    let Some(scale) = Scale::new(low, high).filter(|_| W::BYTES <= 8) else { return Ok(None) };
    if !(LINES_MIN..u64::from(u32::MAX)).contains(&lines) {
        return Ok(None);
    }
    for segment_bits in SEGMENT_BITS {
        if segment_bits > 0 && lines >> segment_bits < LINES_PER_SEGMENT {
            break;
        }
        let Some(cut) = Cut::new(scale, segment_bits, &count(lasts, &scale, segment_bits)?) else { continue };
        let mut late = 0;
        lasts.read(&mut |lasts| {
            let late_of = |part: usize| {
                let from = part * TASK_LINES;
                cut.late(&lasts[from..lasts.len().min(from + TASK_LINES)])
            };
            late += parallel::map(lasts.len().div_ceil(TASK_LINES), late_of).iter().sum::<u64>();
            Ok(())
        })?;
        if late <= lines / LATE_SHARE {
            return Ok(section(lasts, cut));
        }
    }
    Ok(None)
}

fn section<W: KeyLane>(lasts: &Lasts<W>, cut: Cut<W>) -> Option<Extra<'_>> {
    let word = |word: W| word.to_u128() as u64;
    let (low, high) = (word(cut.scale.low), word(cut.scale.high));
    let shape = GridGeometry::new(cut.units, cut.segment_bits, W::BYTES, low, high)?;
    Some(Extra {
        tag: Tag::GRID,
        required: false,
        length: shape.bytes(),
        elements: shape.units,
        parameters: shape.parameters().into(),
        content: Box::new(move |take| {
            let mut buffer: Vec<u8> = Vec::with_capacity(BUFFER_BYTES + 64);
            buffer.extend(cut.segments.iter().flat_map(|segment| segment.to_bytes()));
            buffer.resize(shape.units_at as usize, 0);
            debug_assert_eq!(shape.segments * SEGMENT_BYTES, cut.segments.len() as u64 * SEGMENT_BYTES);
            let mut marker = Marker::new(shape.units);
            let mut left = lasts.len() - 1;
            lasts.read(&mut |lasts| {
                // The last line has no border to its right.
                let now = left.min(lasts.len() as u64);
                left -= now;
                for chunk in lasts[..now as usize].chunks(BUFFER_BYTES / 64) {
                    for &last in chunk {
                        marker
                            .mark(cut.cell(last), &mut |unit| buffer.extend_from_slice(&unit.to_le_bytes()));
                    }
                    if buffer.len() >= BUFFER_BYTES {
                        take(&buffer)?;
                        buffer.clear();
                    }
                }
                Ok(())
            })?;
            let supers = marker.finish(&mut |unit| buffer.extend_from_slice(&unit.to_le_bytes()));
            let padding = shape.supers_at - shape.units_at - shape.units * UNIT_BYTES;
            buffer.extend(std::iter::repeat_n(0, padding as usize));
            buffer.extend(supers.iter().flat_map(|marks| marks.to_le_bytes()));
            buffer.extend([0; GUARD_BYTES as usize]);
            take(&buffer)
        }),
    })
}
