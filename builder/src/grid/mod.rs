//! Building of the grid.
//!
//! While lines are packed the last key of each is kept. When all are known, these borders are divided into segments:
//! see [`divide`]. Runs that fit a window of memory are divided there, by all threads. A longer one is read twice:
//! once to count its late lines, then a window at a time, of which the whole parts are divided; a part that is
//! longer than a window is divided like the run. What was made is appended to lists that spill to files as the
//! borders do, in the order in which it is stored.

mod divide;

use crate::error::BuildError;
use crate::external::Spills;
use crate::lines::Lasts;
use crate::overflow::Overflow;
use crate::pack::KeyLane;
use crate::plan::GRID_LINES_MIN;
use crate::section::Extra;
use divide::{Choice, Divided, LATE_LINES, Marker, Rule, TASK_LINES, late_in_tasks, of_parts, wide};
use pleach_format::grid::{GUARD_BYTES, GridGeometry, Parts, SEGMENT_BYTES, STEPS_MAX, Segment};
use pleach_format::section::Tag;
use zerocopy::IntoBytes;

/// Nearly all borders have been reached when at most one in so many has not.
const UNUSUAL_SHARE: u64 = 50;
/// Bytes that are passed on at once.
const BUFFER_BYTES: usize = 1 << 20;

/// The list form of a stored segment.
type Stored = [u8; SEGMENT_BYTES as usize];

/// Lists of what a grid has, and where it comes from.
struct Maker<'a, W> {
    lasts: &'a Lasts<W>,
    spills: Spills<'a>,
    rule: Rule,
    /// Borders that are divided in memory, at least 8: so few may have their marks in the segment.
    window: u64,
    segments: Overflow<Stored>,
    units: Overflow<u64>,
    steps: [u64; STEPS_MAX as usize + 1],
}

impl<W: KeyLane> Maker<'_, W> {
    /// Divides borders `from..to`, after so many steps.
    fn run(&mut self, from: u64, to: u64, steps: u32) -> Result<Segment, BuildError> {
        if to - from <= self.window {
            let mut made = Divided::default();
            let segment = made.divide(&self.lasts.range(from, to)?, from, steps, self.rule);
            return Ok(self.append(made, vec![segment])?[0]);
        }
        let (base, top) = (self.word(from)?, self.word(to - 1)?);
        let choice = self.rule.choose(to - from, top - base, steps, |shift, allowed| {
            self.late(from, to, (base, shift), allowed)
        })?;
        match choice {
            Choice::Cells(shift) => self.cells(from, to, (base, shift), steps),
            Choice::Parts(shift) => self.parts(from, to, (base, shift), steps),
        }
    }

    fn word(&self, border: u64) -> Result<u64, BuildError> {
        Ok(wide(self.lasts.range(border, border + 1)?[0]))
    }

    fn late(&self, from: u64, to: u64, (base, shift): (u64, u32), allowed: u64) -> Result<u64, BuildError> {
        let (mut at, mut count) = (from, 0);
        while at < to && count <= allowed {
            let end = to.min(at + LATE_LINES as u64);
            count += late_in_tasks(&self.lasts.range(at, end)?, base, shift);
            at = end;
        }
        Ok(count)
    }

    fn cells(
        &mut self,
        from: u64,
        to: u64,
        (base, shift): (u64, u32),
        steps: u32,
    ) -> Result<Segment, BuildError> {
        let first = self.units.len();
        let mut marker = Marker::new(base, shift, from as u32);
        let (mut at, mut units) = (from, Vec::new());
        while at < to {
            let end = to.min(at + TASK_LINES as u64);
            marker.mark(&self.lasts.range(at, end)?, &mut units);
            self.units.extend(&units, self.spills)?;
            units.clear();
            at = end;
        }
        let top = self.word(to - 1)?;
        let own = marker.finish(top, &mut units);
        self.units.extend(&units, self.spills)?;
        self.steps[steps as usize] += to - from;
        Ok(within(Segment::new(base, first as u32, Parts::Units(own), shift)))
    }

    fn parts(
        &mut self,
        from: u64,
        to: u64,
        (base, shift): (u64, u32),
        steps: u32,
    ) -> Result<Segment, BuildError> {
        let part = |word: u64| (word - base) >> shift;
        let first = self.segments.len();
        let count = part(self.word(to - 1)?) + 1;
        // Their places: what is below them comes behind.
        let empty = vec![Stored::default(); (count as usize).min(TASK_LINES)];
        let mut left = count;
        while left > 0 {
            let some = left.min(empty.len() as u64);
            self.segments.extend(&empty[..some as usize], self.spills)?;
            left -= some;
        }
        let (mut at, mut after) = (from, None::<u64>);
        while at < to {
            let end = to.min(at + self.window);
            let lasts = self.lasts.range(at, end)?;
            let last = part(wide(lasts[lasts.len() - 1]));
            // The last part may go on behind the window.
            let whole =
                if end == to { lasts.len() } else { lasts.partition_point(|&word| part(wide(word)) < last) };
            let next = after.map_or(0, |after| after + 1);
            let stored: Vec<Stored>;
            if whole > 0 {
                let (parts, below) =
                    of_parts(&lasts[..whole], (base, shift), at, steps + 1, (after, self.rule));
                drop(lasts);
                after = Some(next + parts.len() as u64 - 1);
                stored = self.append(below, parts)?.iter().map(|segment| segment.to_bytes()).collect();
                at += whole as u64;
            } else {
                drop(lasts);
                let end = self.end_of(at, to, |word| part(word) == last)?;
                let mut parts: Vec<Segment> = (next..last).map(|_| Segment::of_line(at as u32)).collect();
                parts.push(self.run(at, end, steps + 1)?);
                after = Some(last);
                stored = parts.iter().map(|segment| segment.to_bytes()).collect();
                at = end;
            }
            self.segments.set(first + next, &stored)?;
        }
        debug_assert_eq!(after, Some(count - 1));
        Ok(within(Segment::new(base, first as u32, Parts::Segments(count as u32), shift)))
    }

    /// Returns the first border from `at` on of which `holds` is false, or `to`.
    fn end_of(&self, at: u64, to: u64, holds: impl Fn(u64) -> bool) -> Result<u64, BuildError> {
        let (mut low, mut high) = (at, to);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(self.word(middle)?) { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// Appends what was made, and returns segments of it with their numbers in the file.
    fn append(&mut self, made: Divided, mut segments: Vec<Segment>) -> Result<Vec<Segment>, BuildError> {
        let moved = divide::Moved { segments: self.segments.len() as u32, units: self.units.len() as u32 };
        segments.iter_mut().for_each(|segment| *segment = moved.apply(*segment));
        let stored: Vec<Stored> =
            made.segments.into_iter().map(|segment| moved.apply(segment).to_bytes()).collect();
        self.segments.extend(&stored, self.spills)?;
        self.units.extend(&made.units, self.spills)?;
        self.steps.iter_mut().zip(made.steps).for_each(|(steps, made)| *steps += made);
        Ok(segments)
    }
}

fn within(segment: Option<Segment>) -> Segment {
    segment.unwrap_or_else(|| unreachable!("`choose` keeps all numbers within their bounds"))
}

/// Makes the section for lines with these last keys. `None` if a grid would not help: there are too few lines, or
/// words of 16 bytes. The lists of the grid stay in memory as far as that of the keys may.
pub(crate) fn of_lasts<'a, W: KeyLane>(
    lasts: &'a Lasts<W>,
    spills: Spills<'a>,
) -> Result<Option<Extra<'a>>, BuildError> {
    let (lines, memory) = (lasts.len(), lasts.limit());
    if W::BYTES > 8 || !(GRID_LINES_MIN..u64::from(u32::MAX)).contains(&lines) {
        return Ok(None);
    }
    let mut maker = Maker {
        lasts,
        spills,
        rule: Rule::new(lines),
        window: (memory as u64 / 4).clamp(1 << 12, 1 << 20),
        segments: Overflow::new(memory / 2),
        units: Overflow::new(memory),
        steps: [0; STEPS_MAX as usize + 1],
    };
    // The last line has no border to its right.
    let root = maker.run(0, lines - 1, 0)?;
    if maker.units.len() == 0 {
        maker.units.extend(&[0], spills)?;
    }
    let Maker { segments, units, steps, .. } = maker;
    let most = steps.iter().rposition(|&borders| borders > 0).unwrap_or(0);
    let left = |after: usize| steps[after + 1..].iter().sum::<u64>();
    let usual = (0..=most).find(|&after| left(after) <= lines / UNUSUAL_SHARE).unwrap_or(most);
    let counts = (segments.len(), units.len());
    let usual = usual.max(usize::from(most > 0));
    let Some(shape) = GridGeometry::new(counts, W::BYTES, root, (most as u32, usual as u32)) else {
        return Ok(None);
    };
    Ok(Some(Extra {
        tag: Tag::GRID,
        required: false,
        length: shape.bytes(),
        elements: shape.units,
        parameters: shape.parameters().into(),
        content: Box::new(move |take| {
            segments.read(&mut |segments| {
                segments
                    .chunks(BUFFER_BYTES / SEGMENT_BYTES as usize)
                    .try_for_each(|some| take(some.as_bytes()))
            })?;
            take(&vec![0; (shape.units_at - shape.segments * SEGMENT_BYTES) as usize])?;
            units.read(&mut |units| {
                units.chunks(BUFFER_BYTES / 8).try_for_each(|units| {
                    let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
                    take(&bytes)
                })
            })?;
            take(&[0; GUARD_BYTES as usize])
        }),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::MemoryStorage;
    use std::path::Path;

    /// The first segment, all others, and the units, made with so much memory and in such windows.
    fn made(words: &[u64], memory: usize, window: u64) -> (Segment, Vec<Stored>, Vec<u64>, Vec<u64>) {
        let storage = MemoryStorage::default();
        let spills = Spills { storage: &storage, folder: Path::new("/") };
        let mut lasts = Lasts::new(memory);
        words.chunks(100).for_each(|words| lasts.extend(words, spills).expect("kept"));
        let (segments, units) = (Overflow::new(memory), Overflow::new(memory));
        let (rule, steps) = (Rule::new(words.len() as u64), [0; STEPS_MAX as usize + 1]);
        let mut maker = Maker { lasts: &lasts, spills, rule, window, segments, units, steps };
        let root = maker.run(0, lasts.len(), 0).expect("made");
        let (mut segments, mut units) = (Vec::new(), Vec::new());
        let mut take = |some: &[Stored]| {
            segments.extend_from_slice(some);
            Ok(())
        };
        maker.segments.read(&mut take).expect("read");
        let mut take = |some: &[u64]| {
            units.extend_from_slice(some);
            Ok(())
        };
        maker.units.read(&mut take).expect("read");
        (root, segments, units, maker.steps.to_vec())
    }

    #[test]
    fn windows_and_spills_change_nothing() {
        let mix = |i: u64| {
            (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
        };
        let count = 20_000u64;
        let even: Vec<u64> = (0..count).map(mix).collect();
        let crowded: Vec<u64> = even.iter().map(|word| word >> (word & 63)).collect();
        let equal: Vec<u64> = even.iter().map(|word| word % 7 * 1000).collect();
        let far: Vec<u64> =
            even.iter().map(|word| if word % 5000 == 0 { *word } else { word >> 40 }).collect();
        for mut words in [even, crowded, equal, far] {
            words.sort_unstable();
            let whole = made(&words, usize::MAX, u64::MAX);
            for (memory, window) in
                [(usize::MAX, 8), (usize::MAX, 100), (1000, 3000), (70, 17), (19_950, 19_000)]
            {
                assert!(made(&words, memory, window) == whole, "{memory} {window}");
            }
        }
    }

    #[test]
    fn lists_beyond_the_memory_are_read_and_changed() {
        let storage = MemoryStorage::default();
        let spills = Spills { storage: &storage, folder: Path::new("/") };
        let (mut list, mut model) = (Overflow::<u64>::new(10), Vec::new());
        for at in 0..100u64 {
            list.extend(&[at, at + 1000], spills).expect("kept");
            model.extend([at, at + 1000]);
        }
        for (at, count) in [(0, 1), (5, 200 - 5), (187, 13), (150, 3), (199, 1), (200, 0)] {
            let new: Vec<u64> = (0..count).map(|i| i * 7 + at).collect();
            list.set(at, &new).expect("set");
            model[at as usize..(at + count) as usize].copy_from_slice(&new);
            for (from, to) in [(0, 200), (3, 5), (180, 200), (195, 196), (200, 200)] {
                assert_eq!(*list.range(from, to).expect("read"), model[from as usize..to as usize]);
            }
        }
    }
}
