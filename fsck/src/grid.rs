//! Checks of the grid: every segment on the way to a border, and every mark, against the tuple lines.
//!
//! Borders are looked at in order, while their lines are in memory for the other checks. The way of each from the
//! first segment down is compared with that of the border before it: the parts that lie between the two must be
//! without borders and name the line of the second one. In its last segment the mark must be where the rule puts
//! it, and nothing may be marked or counted between it and the mark before. What no border's way touches is not
//! read by a search that finds anything, and is under its sums.

use super::{Check, Code, ReadAt};
use pleach_format::grid::{
    CELLS, GUARD_BYTES, GridGeometry, MARKS, Parts, SEGMENT_BYTES, STEPS_MAX, Segment, UNIT_BYTES,
    marks_before,
};
use pleach_format::line::Line;
use pleach_format::{Header, Word, line};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// A grid whose padding is correct.
pub(super) struct Grid {
    offset: u64,
    shape: GridGeometry,
    /// Number of borders by the segments on the way to them.
    steps: [AtomicU64; STEPS_MAX as usize + 1],
    /// Number of segments and of units that belong to a segment.
    segments: AtomicU64,
    units: AtomicU64,
}

/// Nearly all borders have been reached when at most one in so many has not.
const UNUSUAL_SHARE: u64 = 50;
/// Bytes of an array that are read at once.
const WINDOW_BYTES: u64 = 8192;

/// A piece of an array that is in memory.
#[derive(Default)]
struct Window {
    first: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// Returns element `number` of an array of `count` elements of `N` bytes from `start` on.
    fn get<const N: usize, R: ReadAt>(
        &mut self,
        check: &Check<'_, R>,
        (start, count): (u64, u64),
        number: u64,
    ) -> io::Result<[u8; N]> {
        let each = WINDOW_BYTES / N as u64;
        let first = number / each * each;
        if self.bytes.is_empty() || self.first != first {
            self.bytes = check.read(start + first * N as u64, each.min(count - first) * N as u64)?;
            self.first = first;
        }
        let at = (number - first) as usize * N;
        Ok(self.bytes[at..].first_chunk().copied().unwrap_or([0; N]))
    }
}

/// A segment on the way of a border, its number (none of the first one), and the border's part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    number: Option<u32>,
    segment: Segment,
    part: u64,
}

/// The way of a border: the last step is to a segment with marks or units.
type Way = Vec<Step>;

/// A fault: bytes of the section, and what is wrong with them.
struct Fault {
    at: u64,
    length: u64,
    text: &'static str,
}

type Checked<T> = io::Result<Result<T, Fault>>;

/// Returns what was found; a fault is what the function finds.
macro_rules! found {
    ($outcome:expr) => {
        match $outcome {
            Ok(found) => found,
            Err(fault) => return Ok(Err(fault)),
        }
    };
}

/// Reads the arrays of a grid, and follows borders in them.
struct Walk<'a, 'c, R> {
    check: &'a Check<'c, R>,
    grid: &'a Grid,
    /// A window for each step, since steps are far apart.
    segments: [Window; STEPS_MAX as usize + 1],
    units: Window,
}

impl<R: ReadAt> Check<'_, R> {
    /// Checks the padding. Returns `None` if there is no grid.
    pub(super) fn check_grid(&self, header: &Header) -> io::Result<Option<Grid>> {
        let Some((offset, shape)) = header.grid else { return Ok(None) };
        let (segments_end, units_end) =
            (shape.segments * SEGMENT_BYTES, shape.units_at + shape.units * UNIT_BYTES);
        let zeros = self.read(offset + segments_end, shape.units_at - segments_end)?;
        let guard = self.read(offset + units_end, GUARD_BYTES)?;
        if zeros.iter().chain(&guard).any(|&byte| byte != 0) {
            self.rule(Code::Padding, "GRID", offset, shape.bytes(), 0, "other bytes", "padding must be zero");
        }
        let (segments, units) = Default::default();
        Ok(Some(Grid { offset, shape, steps: Default::default(), segments, units }))
    }

    /// Checks how many there are of everything, when all borders have been looked at.
    pub(super) fn check_counts(&self, header: &Header, grid: &Grid) -> io::Result<()> {
        let steps = grid.steps.each_ref().map(|borders| borders.load(Ordering::Relaxed));
        if steps.iter().sum::<u64>() + 1 != header.lines {
            // Something else is wrong, and named.
            return Ok(());
        }
        let most = steps.iter().rposition(|&borders| borders > 0).unwrap_or(0);
        let left = |after: usize| steps[after + 1..].iter().sum::<u64>();
        let usual = (usize::from(most > 0)..=most).find(|&after| left(after) <= header.lines / UNUSUAL_SHARE);
        let (expected, found) = ((most, usual), (grid.shape.steps, grid.shape.usual_steps));
        if (found.0 as usize, Some(found.1 as usize)) != expected {
            let (at, bytes) = (grid.offset, grid.shape.bytes());
            let expected = format!("{} and {}", most, usual.unwrap_or(most));
            let found = format!("{} and {}", found.0, found.1);
            self.rule(Code::Grid, "GRID", at, bytes, expected, found, "steps must be those of the borders");
        }
        let shape = grid.shape;
        let (segments, mut units) =
            (grid.segments.load(Ordering::Relaxed), grid.units.load(Ordering::Relaxed));
        if units == 0 && self.read(grid.offset + shape.units_at, UNIT_BYTES)?.iter().all(|&byte| byte == 0) {
            // There is always one.
            units = 1;
        }
        if (segments, units) != (shape.segments, shape.units) {
            let expected = format!("{segments} and {units}");
            let found = format!("{} and {}", shape.segments, shape.units);
            let text = "segments and units must belong to segments";
            self.rule(Code::Grid, "GRID", grid.offset, shape.bytes(), expected, found, text);
        }
        Ok(())
    }

    /// Checks the borders behind these tuple lines, the first of which is line `number`; `left` is the line before.
    pub(super) fn check_marks<W: Word>(
        &self,
        header: &Header,
        grid: &Grid,
        number: u64,
        (left, lines): (Option<&Line>, &[Line]),
    ) -> io::Result<()> {
        let borders = header.lines.saturating_sub(1);
        let lines = &lines[..lines.len().min(borders.saturating_sub(number) as usize)];
        if lines.is_empty() {
            return Ok(());
        }
        let n = header.geometry.tuples_per_line();
        let word = |line| line::key::<W>(line, n - 1);
        let mut walk = Walk { check: self, grid, segments: Default::default(), units: Window::default() };
        let outcome = walk.borders(number, left.map(word), lines.iter().map(word), borders)?;
        if let Err(Fault { at, length, text }) = outcome {
            self.rule(Code::Grid, "GRID", grid.offset + at, length, "those of the lines", "others", text);
        }
        Ok(())
    }
}

impl<R: ReadAt> Walk<'_, '_, R> {
    /// Checks consecutive borders with these last words, the first of which has this number.
    fn borders<W: Word>(
        &mut self,
        number: u64,
        left: Option<W>,
        words: impl ExactSizeIterator<Item = W>,
        borders: u64,
    ) -> Checked<()> {
        let end = number + words.len() as u64;
        let mut before: Way = Vec::new();
        // The first cell that may be free in the last segment of the way before, and the word that led there.
        let (mut free, mut previous) = (0, W::default());
        if let Some(left) = left.filter(|_| number > 0) {
            (before, previous) = (found!(self.way(left)?), left);
            free = found!(self.mark_of(&before, left, number - 1)?) + 1;
        }
        for (border, word) in (number..).zip(words) {
            let way = found!(self.way(word)?);
            if before.last().map(|step| step.number) != way.last().map(|step| step.number) {
                found!(self.end(&before, free, border)?);
                found!(self.between(&before, &way, border)?);
                found!(self.ends(&before, previous, &way));
                found!(self.begins(&before, &way, word));
                free = 0;
            }
            free = found!(self.mark(&way, word, free, border)?) + 1;
            self.grid.steps[way.len() - 1].fetch_add(1, Ordering::Relaxed);
            (before, previous) = (way, word);
        }
        if end == borders {
            found!(self.end(&before, free, borders)?);
            found!(self.between(&before, &Vec::new(), borders)?);
            found!(self.ends(&before, previous, &Vec::new()));
        }
        Ok(Ok(()))
    }

    /// Follows a word from the first segment down.
    fn way<W: Word>(&mut self, word: W) -> Checked<Way> {
        let shape = self.grid.shape;
        let (mut number, mut segment, mut way) = (None, shape.root, Vec::new());
        loop {
            let fits = segment.shift() < 8 * W::BYTES as u32
                && (W::BYTES == 8 || u32::try_from(segment.base).is_ok() || segment.base == u64::MAX);
            let part = segment.part(word);
            let known = segment.parts().filter(|_| fits);
            let step = Step { number, segment, part };
            let first = u64::from(segment.first());
            let text = match known {
                Some(Parts::Marks(_)) => {
                    way.push(step);
                    return Ok(Ok(way));
                }
                Some(Parts::Units(count)) if first + u64::from(count) <= shape.units => {
                    way.push(step);
                    return Ok(Ok(way));
                }
                Some(Parts::Segments(count))
                    if first + u64::from(count) <= shape.segments
                        && number.is_none_or(|number| number < segment.first())
                        && way.len() < shape.steps as usize =>
                {
                    way.push(step);
                    let next = segment.first() + part as u32;
                    (number, segment) = (Some(next), self.segment(way.len(), next.into())?);
                    continue;
                }
                Some(Parts::Units(_)) => "a segment must have its units inside the section",
                Some(Parts::Segments(_)) => {
                    "a segment must have its segments behind it, and not too many steps down"
                }
                None => "a segment must have parts of a known kind and width",
            };
            return Ok(Err(self.of_segment(number, text)));
        }
    }

    fn segment(&mut self, depth: usize, number: u64) -> io::Result<Segment> {
        let count = self.grid.shape.segments;
        Ok(Segment::from_bytes(&self.segments[depth].get(self.check, (self.grid.offset, count), number)?))
    }

    fn unit(&mut self, number: u64) -> io::Result<u64> {
        let Grid { offset, shape, .. } = self.grid;
        Ok(u64::from_le_bytes(self.units.get(self.check, (offset + shape.units_at, shape.units), number)?))
    }

    fn of_segment(&self, number: Option<u32>, text: &'static str) -> Fault {
        let Some(number) = number else { return Fault { at: 0, length: self.grid.shape.bytes(), text } };
        Fault { at: u64::from(number) * SEGMENT_BYTES, length: SEGMENT_BYTES, text }
    }

    fn of_unit(&self, number: u64, text: &'static str) -> Fault {
        let each = WINDOW_BYTES / UNIT_BYTES;
        Fault { at: self.grid.shape.units_at + number / each * WINDOW_BYTES, length: WINDOW_BYTES, text }
    }

    /// Finds the cell of a border's mark, where it is stored.
    fn mark_of<W: Word>(&mut self, way: &Way, word: W, border: u64) -> Checked<u64> {
        let Some(&Step { number, segment, .. }) = way.last() else { return Ok(Ok(0)) };
        let first = u64::from(segment.first());
        let text = "each border of lines must have its mark";
        let nth = |marks: u32, nth: u64| {
            let mut marks = marks;
            (0..nth.min(32)).for_each(|_| marks &= marks.wrapping_sub(1));
            (marks != 0).then(|| u64::from(marks.trailing_zeros()))
        };
        if let Some(Parts::Marks(marks)) = segment.parts() {
            let cell = border.checked_sub(first).and_then(|before| nth(marks, before));
            return Ok(cell.ok_or_else(|| self.of_segment(number, text)));
        }
        // The last unit from its own on with at most so many marks before it.
        let (mut low, mut high) = (first + segment.part(word) / u64::from(CELLS), self.grid.shape.units);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if self.unit(middle)? >> CELLS <= border { low = middle } else { high = middle }
        }
        let unit = self.unit(low)?;
        let cell = border.checked_sub(unit >> CELLS).and_then(|before| nth(unit as u32, before));
        Ok(cell.map(|cell| (low - first) * u64::from(CELLS) + cell).ok_or_else(|| self.of_unit(low, text)))
    }

    /// Checks the mark of a border, and that nothing is marked from cell `free` on up to it. Returns its cell.
    fn mark<W: Word>(&mut self, way: &Way, word: W, free: u64, border: u64) -> Checked<u64> {
        let Some(&Step { number, segment, .. }) = way.last() else { return Ok(Ok(0)) };
        let cell = segment.part(word).max(free);
        let text = "each border of lines must have its mark";
        if let Some(Parts::Marks(marks)) = segment.parts() {
            let below = marks & ((1u64 << cell.min(31)) - 1) as u32;
            let is_right = cell < u64::from(MARKS)
                && marks >> cell & 1 == 1
                && u64::from(segment.first()) + u64::from(below.count_ones()) == border;
            return Ok(if is_right { Ok(cell) } else { Err(self.of_segment(number, text)) });
        }
        found!(self.empty(segment, free..cell, border)?);
        let unit = u64::from(segment.first()) + cell / u64::from(CELLS);
        if unit >= self.grid.shape.units {
            return Ok(Err(self.of_unit(self.grid.shape.units - 1, text)));
        }
        let (before, own) = marks_before(self.unit(unit)?, (cell % u64::from(CELLS)) as u32);
        Ok(if own && u64::from(before) == border { Ok(cell) } else { Err(self.of_unit(unit, text)) })
    }

    /// Checks that cells of a segment with units have no marks, and so many before them.
    fn empty(&mut self, segment: Segment, cells: std::ops::Range<u64>, border: u64) -> Checked<()> {
        let each = u64::from(CELLS);
        for number in cells.start / each..cells.end.div_ceil(each) {
            let unit = u64::from(segment.first()) + number;
            if unit >= self.grid.shape.units {
                break;
            }
            let stored = self.unit(unit)?;
            let low = cells.start.max(number * each) - number * each;
            let high = cells.end.min((number + 1) * each) - number * each;
            let below = |cell: u64| (((1u64 << cell) - 1) as u32 & stored as u32).count_ones();
            if below(low) != below(high) || (stored >> CELLS) + u64::from(below(low)) != border {
                return Ok(Err(
                    self.of_unit(unit, "units must count the marks before them, and have no others")
                ));
            }
        }
        Ok(Ok(()))
    }

    /// Checks that the last segment of a way has no more marks, before border `border`.
    fn end(&mut self, way: &Way, free: u64, border: u64) -> Checked<()> {
        let Some(&Step { number, segment, .. }) = way.last() else { return Ok(Ok(())) };
        match segment.parts() {
            Some(Parts::Marks(marks)) => {
                let all = u64::from(segment.first()) + u64::from(marks.count_ones());
                let text = "a segment must have the marks of its borders only";
                Ok(if all == border { Ok(()) } else { Err(self.of_segment(number, text)) })
            }
            Some(Parts::Units(count)) => {
                let each = u64::from(CELLS);
                let end = (u64::from(count) * each).max(free.next_multiple_of(each));
                self.grid.units.fetch_add(end / each, Ordering::Relaxed);
                self.empty(segment, free..end, border)
            }
            Some(Parts::Segments(_)) | None => Ok(Ok(())),
        }
    }

    /// Checks that segments which a way enters begin with the word that led it there.
    fn begins<W: Word>(&self, before: &Way, way: &Way, word: W) -> Result<(), Fault> {
        let is_old = |step: &&Step| before.iter().any(|old| old.number == step.number);
        let wrong = |step: &&Step| u128::from(step.segment.base) != word.to_u128();
        for step in way.iter().skip_while(is_old) {
            if let Some(Parts::Segments(count)) = step.segment.parts() {
                self.grid.segments.fetch_add(count.into(), Ordering::Relaxed);
            }
        }
        match way.iter().skip_while(is_old).find(wrong) {
            Some(step) => Err(self.of_segment(step.number, "a segment must begin with its first border")),
            None => Ok(()),
        }
    }

    /// Checks that segments which a way leaves end with the word that led it there.
    fn ends<W: Word>(&self, before: &Way, last: W, way: &Way) -> Result<(), Fault> {
        let is_old = |step: &&Step| way.iter().any(|new| new.number == step.number);
        for step in before.iter().skip_while(is_old) {
            let Step { number, segment, .. } = *step;
            let span = (last.to_u128() as u64).saturating_sub(segment.base);
            let shift = segment.shift();
            let is_right = match segment.parts() {
                Some(Parts::Segments(count)) => span >> shift == u64::from(count) - 1,
                Some(Parts::Units(count)) => (span >> shift) / u64::from(CELLS) == u64::from(count) - 1,
                // The least width with which they suffice.
                Some(Parts::Marks(_)) => {
                    let suffices = |shift: u32| span >> shift < u64::from(MARKS);
                    suffices(shift) && shift.checked_sub(1).is_none_or(|less| !suffices(less))
                }
                None => false,
            };
            if !is_right || span == 0 && shift != 0 {
                return Err(self.of_segment(number, "a segment must end with its last border"));
            }
        }
        Ok(())
    }

    /// Checks the parts between two ways, which have no borders: they lead to the line of the second one.
    fn between(&mut self, before: &Way, way: &Way, border: u64) -> Checked<()> {
        let same = before.iter().zip(way).take_while(|(one, other)| one == other).count();
        let count = |step: &Step| match step.segment.parts() {
            Some(Parts::Segments(count)) => u64::from(count),
            Some(Parts::Units(_) | Parts::Marks(_)) | None => 0,
        };
        for depth in same..before.len().max(way.len()) {
            let of_segments = |way: &Way| way.get(depth).filter(|step| count(step) > 0).copied();
            // Of the segment in which the ways part, what lies between; below it, what is left on either side.
            let ranges = match (of_segments(before), of_segments(way)) {
                (Some(one), Some(other)) if one.number == other.number => {
                    [Some((one.segment, one.part + 1..other.part)), None]
                }
                (one, other) => [
                    one.map(|one| (one.segment, one.part + 1..count(&one))),
                    other.map(|other| (other.segment, 0..other.part)),
                ],
            };
            for (segment, parts) in ranges.into_iter().flatten() {
                for part in parts {
                    let number = segment.first() + part as u32;
                    let found = self.segment(depth + 1, number.into())?;
                    if u32::try_from(border).map(Segment::of_line) != Ok(found) {
                        let text = "a part without borders must lead to the next line";
                        return Ok(Err(self.of_segment(Some(number), text)));
                    }
                }
            }
        }
        Ok(Ok(()))
    }
}
