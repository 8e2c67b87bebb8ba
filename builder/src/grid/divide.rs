//! Division of a run of borders into segments, in memory.
//!
//! A segment begins with its first border and ends with its last one: what its keys have in common is skipped.
//! Few lines put their marks into the segment itself. Others get cells, if at most one line in [`LATE_SHARE`] would
//! be *late*: a look-up of its last key would have to pass two borders to the right. Else the segment is cut into
//! parts, about one for every [`LINES_PER_PART`] lines, each of which is divided in the same way.
//!
//! Nothing but the borders of a segment decides what becomes of it. So segments can be divided by different
//! threads, and from different windows of a file that is larger than the memory.

use crate::pack::KeyLane;
use crate::parallel;
use pleach_format::grid::{CELLS, MARKS, PARTS_MAX, Parts, STEPS_MAX, Segment};

/// One line in `LATE_SHARE` may be late.
const LATE_SHARE: u64 = 128;
/// Lines for which a segment gets one more part.
const LINES_PER_PART: u64 = 4;
/// Most lines that have their marks in the segment.
const MARKED_LINES_MAX: usize = 8;
/// Cells for each line, at least, by the maximum number of lines in the file; at most twice as many. Fewer cells
/// send more queries one line further; more of them make the grid larger, and a small one should fit the first or
/// the second cache.
const CELLS_PER_LINE: [(u64, u64); 3] = [(1 << 13, 16), (1 << 20, 8), (u64::MAX, 4)];
/// Lines that are looked at by one task.
pub(super) const TASK_LINES: usize = 1 << 16;
/// Lines whose late ones are counted before it is asked whether there are too many.
pub(super) const LATE_LINES: usize = 16 * TASK_LINES;

/// What became of a run: numbers are those in its own arrays.
#[derive(Debug, Default)]
pub(super) struct Divided {
    pub segments: Vec<Segment>,
    pub units: Vec<u64>,
    /// Number of borders by the segments on the way to them.
    pub steps: [u64; STEPS_MAX as usize + 1],
}

/// What is the same for all segments of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    cells_per_line: u64,
}

/// What becomes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Cells of this width, in units.
    Cells(u32),
    /// Parts of this width.
    Parts(u32),
}

/// Returns the smallest width with at most this many parts of it in a span; a binary logarithm.
fn width(span: u64, parts_max: u64) -> u32 {
    let mut shift = (span / parts_max.max(1)).checked_ilog2().unwrap_or(0);
    while span >> shift >= parts_max {
        shift += 1;
    }
    shift
}

/// Returns a word in 64 bits.
#[inline(always)]
pub(super) fn wide<W: KeyLane>(word: W) -> u64 {
    word.to_u128() as u64
}

impl Rule {
    pub(super) fn new(lines: u64) -> Self {
        let row = CELLS_PER_LINE.into_iter().find(|&(limit, _)| lines <= limit);
        Self { cells_per_line: row.map_or(CELLS_PER_LINE[2].1, |(_, cells)| cells) }
    }

    /// Chooses for a segment of `count` borders with this span, after so many steps. `late` counts the late lines
    /// for cells of a width, or returns a larger number as soon as there are more than so many.
    pub(super) fn choose<E>(
        self,
        count: u64,
        span: u64,
        steps: u32,
        late: impl FnOnce(u32, u64) -> Result<u64, E>,
    ) -> Result<Choice, E> {
        let cells = (count * self.cells_per_line * 2).clamp(u64::from(CELLS), PARTS_MAX * u64::from(CELLS));
        let shift = width(span, cells);
        if span == 0 || steps == STEPS_MAX {
            return Ok(Choice::Cells(shift));
        }
        let allowed = count / LATE_SHARE;
        if late(shift, allowed)? <= allowed {
            return Ok(Choice::Cells(shift));
        }
        let parts = (count / LINES_PER_PART).max(2).next_power_of_two().min(PARTS_MAX);
        Ok(Choice::Parts(width(span, parts)))
    }
}

/// Counts late lines among consecutive borders, as if no mark before them had been in the way.
fn late<W: KeyLane>(lasts: &[W], base: u64, shift: u32) -> u64 {
    let (mut marks, mut previous, mut late) = ([None::<u64>; 2], None, 0);
    for &last in lasts {
        let cell = (wide(last) - base) >> shift;
        late += u64::from(previous != Some(last) && marks[0].is_some_and(|mark| mark >= cell));
        let mark = marks[1].map_or(cell, |mark| cell.max(mark + 1));
        marks = [marks[1], Some(mark)];
        previous = Some(last);
    }
    late
}

/// Counts late lines in tasks: the number does not depend on the threads.
pub(super) fn late_in_tasks<W: KeyLane>(lasts: &[W], base: u64, shift: u32) -> u64 {
    let of =
        |task: usize| late(&lasts[task * TASK_LINES..lasts.len().min((task + 1) * TASK_LINES)], base, shift);
    parallel::map(lasts.len().div_ceil(TASK_LINES), of).iter().sum()
}

/// Counts late lines, some tasks at a time, until they are more than `allowed`.
fn late_up_to<W: KeyLane>(lasts: &[W], base: u64, shift: u32, allowed: u64) -> u64 {
    let mut count = 0;
    // Crowded keys show in the first tasks: others are not looked at.
    for tasks in lasts.chunks(LATE_LINES) {
        count += late_in_tasks(tasks, base, shift);
        if count > allowed {
            break;
        }
    }
    count
}

/// Yields the units of one segment.
pub(super) struct Marker {
    base: u64,
    shift: u32,
    /// First free cell.
    free: u64,
    /// The current unit, and its number.
    unit: u64,
    number: u64,
    /// Marks so far, those of all lines before included.
    marks: u32,
}

impl Marker {
    pub(super) fn new(base: u64, shift: u32, line: u32) -> Self {
        Self { base, shift, free: 0, unit: u64::from(line) << CELLS, number: 0, marks: line }
    }

    #[inline]
    fn close(&mut self, units: &mut Vec<u64>) {
        units.push(self.unit);
        self.unit = u64::from(self.marks) << CELLS;
        self.number += 1;
    }

    pub(super) fn mark<W: KeyLane>(&mut self, lasts: &[W], units: &mut Vec<u64>) {
        for &last in lasts {
            let cell = ((wide(last) - self.base) >> self.shift).max(self.free);
            self.free = cell + 1;
            while self.number < cell / u64::from(CELLS) {
                self.close(units);
            }
            self.unit |= 1 << (cell % u64::from(CELLS));
            self.marks += 1;
        }
    }

    /// Ends the segment, whose last border is `top`, and returns the number of its units. Marks for which it had no
    /// cells are in units behind these.
    pub(super) fn finish(mut self, top: u64, units: &mut Vec<u64>) -> u32 {
        let own = ((top - self.base) >> self.shift) / u64::from(CELLS) + 1;
        while self.number < own || self.unit as u32 != 0 {
            self.close(units);
        }
        own as u32
    }
}

impl Divided {
    /// Divides borders, the first of which ends line `line`, after so many steps. Returns their segment.
    pub(super) fn divide<W: KeyLane>(&mut self, lasts: &[W], line: u64, steps: u32, rule: Rule) -> Segment {
        let (base, top) = (wide(lasts[0]), wide(lasts[lasts.len() - 1]));
        let count = lasts.len() as u64;
        let made = if steps > 0 { marked(lasts, line) } else { None };
        if let Some(segment) = made {
            self.steps[steps as usize] += count;
            return segment;
        }
        let late =
            |shift, allowed| Ok::<_, std::convert::Infallible>(late_up_to(lasts, base, shift, allowed));
        let Ok(choice) = rule.choose(count, top - base, steps, late);
        let segment = match choice {
            Choice::Cells(shift) => {
                let first = self.units.len() as u32;
                let mut marker = Marker::new(base, shift, line as u32);
                marker.mark(lasts, &mut self.units);
                let units = marker.finish(top, &mut self.units);
                self.steps[steps as usize] += count;
                Segment::new(base, first, Parts::Units(units), shift)
            }
            Choice::Parts(shift) => {
                let first = self.segments.len();
                let parts = ((top - base) >> shift) + 1;
                self.segments.resize(first + parts as usize, Segment::default());
                if lasts.len() <= GROUP_LINES {
                    self.divide_parts(lasts, (base, shift), line, (first, steps + 1), rule);
                } else {
                    self.divide_groups(lasts, (base, shift), line, (first, steps + 1), rule);
                }
                Segment::new(base, first as u32, Parts::Segments(parts as u32), shift)
            }
        };
        segment.unwrap_or_else(|| unreachable!("`choose` keeps all numbers within their bounds"))
    }

    /// Divides the few borders of a segment by their parts, whose segments stand from `first` on: what [`of_parts`]
    /// does, without lists of its own.
    fn divide_parts<W: KeyLane>(
        &mut self,
        lasts: &[W],
        (base, shift): (u64, u32),
        line: u64,
        (first, steps): (usize, u32),
        rule: Rule,
    ) {
        let mut next = 0;
        for (own, run) in Runs::new(lasts, |last| (wide(last) - base) >> shift) {
            let at = line + run.start as u64;
            self.segments[first + next..first + own as usize].fill(Segment::of_line(at as u32));
            self.segments[first + own as usize] = self.divide(&lasts[run], at, steps, rule);
            next = own as usize + 1;
        }
    }

    /// Divides the many borders of a segment in the same way, groups of parts in tasks.
    fn divide_groups<W: KeyLane>(
        &mut self,
        lasts: &[W],
        (base, shift): (u64, u32),
        line: u64,
        (first, steps): (usize, u32),
        rule: Rule,
    ) {
        let groups = groups(lasts, |last| (wide(last) - base) >> shift);
        let made = parallel::map(groups.len() - 1, |group| {
            let (from, to) = (groups[group], groups[group + 1]);
            let after = from.checked_sub(1).map(|before| (wide(lasts[before]) - base) >> shift);
            of_parts(&lasts[from..to], (base, shift), line + from as u64, steps, (after, rule))
        });
        let mut at = first;
        for (parts, below) in made {
            let moved = self.append(below);
            for part in parts {
                self.segments[at] = moved.apply(part);
                at += 1;
            }
        }
        debug_assert_eq!(at as u64, first as u64 + ((wide(lasts[lasts.len() - 1]) - base) >> shift) + 1);
    }

    /// Appends the arrays of another division, and returns how its numbers change.
    pub(super) fn append(&mut self, other: Self) -> Moved {
        let moved = Moved { segments: self.segments.len() as u32, units: self.units.len() as u32 };
        self.segments.extend(other.segments.into_iter().map(|segment| moved.apply(segment)));
        self.units.extend(other.units);
        self.steps.iter_mut().zip(other.steps).for_each(|(steps, other)| *steps += other);
        moved
    }
}

/// How many segments and units stand before others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    pub segments: u32,
    pub units: u32,
}

impl Moved {
    pub(super) fn apply(self, segment: Segment) -> Segment {
        match segment.parts() {
            Some(Parts::Segments(_)) => segment.moved(segment.first() + self.segments),
            Some(Parts::Units(_)) => segment.moved(segment.first() + self.units),
            Some(Parts::Marks(_)) | None => segment,
        }
    }
}

/// Lines that are worth a task of their own.
const GROUP_LINES: usize = 1 << 13;

/// Yields the parts that have borders, in order, and the borders of each.
struct Runs<'a, W, P> {
    lasts: &'a [W],
    part: P,
    from: usize,
}

impl<'a, W, P> Runs<'a, W, P> {
    fn new(lasts: &'a [W], part: P) -> Self {
        Self { lasts, part, from: 0 }
    }
}

impl<W: KeyLane, P: Fn(W) -> u64> Iterator for Runs<'_, W, P> {
    type Item = (u64, std::ops::Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.lasts[self.from..];
        let own = (self.part)(*rest.first()?);
        // Most parts have few borders.
        let len = rest.iter().take(16).take_while(|&&last| (self.part)(last) == own).count();
        let len =
            if len < 16 { len } else { len + rest[len..].partition_point(|&last| (self.part)(last) == own) };
        let from = self.from;
        self.from += len;
        Some((own, from..self.from))
    }
}

/// Cuts borders where their parts change, into groups that are large enough for a task. Returns where they begin
/// and end.
fn groups<W: KeyLane>(lasts: &[W], part: impl Fn(W) -> u64) -> Vec<usize> {
    let mut cuts = vec![0];
    let mut at = GROUP_LINES;
    while at < lasts.len() {
        let before = part(lasts[at - 1]);
        at += lasts[at..].partition_point(|&last| part(last) == before);
        if at < lasts.len() {
            cuts.push(at);
        }
        at += GROUP_LINES;
    }
    cuts.push(lasts.len());
    cuts
}

/// Divides borders by their parts. Returns the segments of these parts, also of those without borders behind part
/// `after`, and what is below them.
pub(super) fn of_parts<W: KeyLane>(
    lasts: &[W],
    (base, shift): (u64, u32),
    line: u64,
    steps: u32,
    (after, rule): (Option<u64>, Rule),
) -> (Vec<Segment>, Divided) {
    let (mut parts, mut below) = (Vec::new(), Divided::default());
    let mut next = after.map_or(0, |after| after + 1);
    for (own, run) in Runs::new(lasts, |last| (wide(last) - base) >> shift) {
        let at = line + run.start as u64;
        parts.extend((next..own).map(|_| Segment::of_line(at as u32)));
        parts.push(below.divide(&lasts[run], at, steps, rule));
        next = own + 1;
    }
    (parts, below)
}

/// Returns a segment with the marks of a few borders in itself, if none of them is late.
fn marked<W: KeyLane>(lasts: &[W], line: u64) -> Option<Segment> {
    if lasts.len() > MARKED_LINES_MAX {
        return None;
    }
    let base = wide(lasts[0]);
    let shift = width(wide(lasts[lasts.len() - 1]) - base, MARKS.into());
    if late(lasts, base, shift) > 0 {
        return None;
    }
    let (mut marks, mut free) = (0, 0);
    for &last in lasts {
        let cell = ((wide(last) - base) >> shift).max(free);
        free = cell + 1;
        if free > u64::from(MARKS) {
            return None;
        }
        marks |= 1 << cell;
    }
    Segment::new(base, u32::try_from(line).ok()?, Parts::Marks(marks), shift)
}
