//! The FAST section: the tree of a file's words, made in pieces from the tuple lines.
//!
//! ```text
//! plan     lowest level first: a record of each page, and its separator for the level above
//! length   the pages follow each other, top level first: the widths of their words place them
//! content  records; then the pages of each level, a few mebibytes at a time, in parallel
//! ```
//! So the lines are read again once for the plan, which a full tree of one level of pages does not need, and once
//! for the content. What is kept between them, records and separators, spills if it is long. The bytes depend on
//! nothing but the words and the options.

use super::keys::Vectors;
use super::page::{Page, Pages, Scratch, TreeKey, own};
use super::permute::{Shape, fill_lines, permute};
use super::stream::{Levels, page_of};
use crate::error::BuildError;
use crate::job::Job;
use crate::layout::Fast;
use crate::lines::Lines;
use crate::overflow::Overflow;
use crate::pack::{KeyLane, Tuple, ValueLane};
use crate::parallel::{self, Scratches};
use crate::plan::Plan;
use crate::section::{Content, Extra, TakeBytes};
use pleach_format::classic::paged::{Form, PLACE_MAX, PageRecord, Paged, Prefix};
use pleach_format::classic::section::store;
use pleach_format::classic::{PageLevel, Tree};
use pleach_format::section::Tag;
use std::ops::Range;

/// Bytes of pages that one task writes, if a page is not longer.
const TASK_BYTES: usize = 1 << 16;
/// Pages of at least as many bytes are written one after the other, each by all threads.
const LONG_BYTES: u64 = 1 << 20;

fn too_large(tuples: u64) -> BuildError {
    BuildError::TooLarge { what: "a FAST tree", found: tuples, limit: 1 << 40 }
}

/// Makes the tree of all words.
pub(crate) fn of_lines<'a, W: KeyLane + TreeKey, B: ValueLane>(
    job: &'a Job<'_>,
    lines: &'a Lines<W>,
    wanted: Fast,
) -> Result<Extra<'a>, BuildError> {
    let too_large = || too_large(lines.tuples);
    // Byte keys may turn out to have words of 4 bytes, of which there are no partial keys.
    let form = if wanted.form.holds(size_of::<W>() as u32) { wanted.form } else { Form::Delta };
    let wanted = Fast { form, ..wanted };
    let geometry = wanted.geometry(lines.tuples, size_of::<W>() as u32).ok_or_else(too_large)?;
    let bytes = Plan::new(job.options.memory_bytes, size_of::<Tuple<W, B>>()).lasts_bytes;
    let (length, content): (u64, Content<'a>) = match Paged::new(geometry, wanted.form) {
        Some(paged) => {
            let levels = Levels::<W, B>::new(job, lines, paged.levels().len(), bytes / 2);
            let pages = Pages::new(paged, Prefix::default(), Vectors::Best.avx2());
            let made = Compressed::plan(job, levels, pages, bytes / 2)?;
            if made.end > PLACE_MAX {
                return Err(too_large());
            }
            (Paged::bytes(made.end), Box::new(move |take| made.content(take)))
        }
        None => {
            let tree = geometry.tree().ok_or_else(too_large)?;
            let mut levels = Levels::<W, B>::new(job, lines, tree.pages().len(), bytes);
            for (number, level) in tree.pages().iter().enumerate().skip(1).rev() {
                levels.raise(number, level, pages_of(level), &mut |_, _, _| Ok(()))?;
            }
            (tree.bytes(), Box::new(move |take| full(&tree, &levels, take)))
        }
    };
    Ok(Extra {
        tag: Tag::FAST,
        required: false,
        length,
        elements: lines.tuples,
        parameters: store(&geometry, wanted.form),
        content,
    })
}

/// Returns the number of pages of a level, and the number that must be written together.
fn pages_of(level: &PageLevel) -> (u64, u64) {
    match level.lines.first() {
        Some(lines) if level.joined => (lines.last[1] + 1, 1 << lines.group),
        _ => (level.last + 1, 1),
    }
}

/// Passes the bytes of a full tree to `take`.
fn full<W: KeyLane + TreeKey, B: ValueLane>(
    tree: &Tree,
    levels: &Levels<'_, W, B>,
    take: &mut TakeBytes<'_>,
) -> Result<(), BuildError> {
    let avx2 = Vectors::Best.avx2();
    let mut buffer = Vec::new();
    let mut at = 0;
    for (number, level) in tree.pages().iter().enumerate() {
        let shape = Shape::new(tree, level);
        levels.each_piece(number, level, pages_of(level), &mut |first, count, keys| {
            let piece = Piece { level, shape: &shape, first, count, keys, avx2 };
            let end = piece.end();
            buffer.clear();
            // Free slots are all ones.
            buffer.resize((end - at) as usize * size_of::<W>(), 0xFF);
            piece.write(at, W::slots_mut(&mut buffer));
            at = end;
            take(&buffer)
        })?;
    }
    buffer.clear();
    buffer.resize((tree.bytes() - at * size_of::<W>() as u64) as usize, 0);
    take(&buffer)
}

/// Consecutive pages of a full tree.
struct Piece<'a, W> {
    level: &'a PageLevel,
    shape: &'a Shape,
    first: u64,
    count: u64,
    keys: &'a [W],
    avx2: bool,
}

impl<W: TreeKey> Piece<'_, W> {
    /// Returns the slot after the last page.
    fn end(&self) -> u64 {
        let last = self.first + self.count - 1;
        if self.level.joined {
            let lines = &self.level.lines[0];
            return self.level.start + (last + 1).div_ceil(1 << lines.group) * lines.pitch;
        }
        let (start, part) = self.level.page(last);
        start + self.level.slots[part]
    }

    /// Writes the pages; `at` is the slot at which `out` begins.
    fn write(&self, at: u64, out: &mut [W::Bytes]) {
        let Self { level, shape, first, keys, avx2, .. } = *self;
        if level.joined {
            // Lines of a single page: groups of them are alike.
            let lines = &shape.lines[0];
            let skipped = level.start + (first >> lines.group) * lines.pitch as u64 - at;
            let out = &mut out[skipped as usize..];
            let groups = (TASK_BYTES / size_of::<W>() / lines.pitch).max(1);
            parallel::jobs(out.chunks_mut(groups * lines.pitch).enumerate(), |(task, out)| {
                let line = (task * groups) << lines.group;
                let total = (self.count as usize - line).min(groups << lines.group);
                let keys = keys.get(line << level.levels..).unwrap_or_default();
                fill_lines(lines, keys, 0, total, avx2, out);
            });
            return;
        }
        let is_long = level.slots[0].max(level.slots[1]) * size_of::<W>() as u64 >= LONG_BYTES;
        let page = |page: u64, out: &mut [W::Bytes]| {
            let keys = page_of(keys, level, page - first);
            let part = usize::from(page == level.last);
            match keys.first_chunk() {
                Some(keys) if shape.is_direct() && part == 0 => shape.fill_small(keys, out),
                _ => permute(shape, part, keys, avx2, is_long, out),
            }
        };
        let pages = first..first + self.count;
        let places = |page| {
            let (start, part) = level.page(page);
            ((start - at) as usize, level.slots[part] as usize)
        };
        if is_long {
            for number in pages {
                let (start, slots) = places(number);
                page(number, &mut out[start..start + slots]);
            }
            return;
        }
        let grain = (TASK_BYTES / size_of::<W>() / level.slots[1].max(level.slots[0]) as usize).max(1);
        parallel::jobs(tasks(pages, grain, places, out), |Task { pages, at, out }| {
            for number in pages {
                let (start, slots) = places(number);
                page(number, &mut out[start - at..start - at + slots]);
            }
        });
    }
}

/// Consecutive pages, and the part of the output from the first to the end of the last.
struct Task<'a, T> {
    pages: Range<u64>,
    /// Where that part begins.
    at: usize,
    out: &'a mut [T],
}

/// Divides pages among tasks; `places` returns the start and the length of a page in `out`.
fn tasks<'a, T>(
    pages: Range<u64>,
    grain: usize,
    places: impl Fn(u64) -> (usize, usize),
    out: &'a mut [T],
) -> Vec<Task<'a, T>> {
    let (mut rest, mut at) = (out, 0);
    let firsts = pages.clone().step_by(grain);
    let divided = firsts.map(|first| {
        let pages = first..(first + grain as u64).min(pages.end);
        let (start, (last, length)) = (places(first).0, places(pages.end - 1));
        let (_, from) = std::mem::take(&mut rest).split_at_mut(start - at);
        let (out, after) = from.split_at_mut(last + length - start);
        (rest, at) = (after, last + length);
        Task { pages, at: start, out }
    });
    divided.collect()
}

/// A record in a list: base, then width and kept nibbles.
type Planned = [u64; 3];

fn planned(record: PageRecord) -> Planned {
    [record.base as u64, (record.base >> 64) as u64, u64::from(record.width) << 32 | u64::from(record.kept)]
}

fn record_of([low, high, after]: Planned, place: u64) -> PageRecord {
    let base = u128::from(high) << 64 | u128::from(low);
    PageRecord { base, kept: after as u32, width: (after >> 32) as u32, place }
}

/// A compressed tree whose records are known.
struct Compressed<'a, W, B> {
    levels: Levels<'a, W, B>,
    pages: Pages,
    /// Records of the pages of each level, without their places.
    records: Vec<Overflow<Planned>>,
    /// End of the last page.
    end: u64,
}

impl<'a, W: KeyLane + TreeKey, B: ValueLane> Compressed<'a, W, B> {
    /// Chooses the record of each page; `bytes` of records may be in memory.
    fn plan(
        job: &Job<'_>,
        mut levels: Levels<'a, W, B>,
        pages: Pages,
        bytes: usize,
    ) -> Result<Self, BuildError> {
        let count = pages.paged.levels().len();
        let limit = bytes / count.max(1) / size_of::<Planned>();
        let mut records: Vec<Overflow<Planned>> = (0..count).map(|_| Overflow::new(limit)).collect();
        for (number, level) in pages.paged.levels().iter().enumerate().rev() {
            let list = &mut records[number];
            let grain = ((TASK_BYTES / size_of::<W>()) >> level.levels).max(1);
            levels.raise(number, level, (level.last + 1, 1), &mut |_, count, keys| {
                let made = parallel::collect(count as usize, grain, |page| {
                    let keys = own(page_of(keys, level, page as u64), level.levels);
                    planned(pages.of_level(number, keys))
                });
                list.extend(&made, job.spills)
            })?;
        }
        let mut this = Self { levels, pages, records, end: 0 };
        this.end = this.each_record(&mut |_| Ok(()))?;
        Ok(this)
    }

    /// Passes on all records, with their places; returns the end of the last page.
    fn each_record(
        &self,
        take: &mut dyn FnMut(PageRecord) -> Result<(), BuildError>,
    ) -> Result<u64, BuildError> {
        let mut end = self.pages.paged.pages_at();
        for (number, (level, list)) in self.pages.paged.levels().iter().zip(&self.records).enumerate() {
            let mut page = 0;
            list.read(&mut |records| {
                for &planned in records {
                    let record = self.placed(number, usize::from(page == level.last), planned, &mut end);
                    page += 1;
                    take(record)?;
                }
                Ok(())
            })?;
        }
        Ok(end)
    }

    /// Returns the record of the page after the one that ends at `end`, and moves `end` on.
    fn placed(&self, number: usize, part: usize, planned: Planned, end: &mut u64) -> PageRecord {
        let record = record_of(planned, 0);
        let bytes = self.pages.bytes(number, part, record.width);
        let place = self.pages.paged.place(bytes, *end);
        *end = place + bytes;
        PageRecord { place, ..record }
    }

    /// Passes the bytes of the tree to `take`.
    fn content(&self, take: &mut TakeBytes<'_>) -> Result<(), BuildError> {
        let paged = &self.pages.paged;
        let record_bytes = paged.record_bytes();
        let mut buffer = Vec::new();
        self.each_record(&mut |record| {
            buffer.extend_from_slice(&record.encode(paged.geometry().key_bytes)[..record_bytes]);
            if buffer.len() >= 1 << 20 {
                take(&buffer)?;
                buffer.clear();
            }
            Ok(())
        })?;
        let mut at = paged.pages_at();
        buffer.resize(buffer.len() + (at - paged.pages() * record_bytes as u64) as usize, 0);
        take(&buffer)?;
        let scratches = Scratches::default();
        for (number, (level, list)) in paged.levels().iter().zip(&self.records).enumerate() {
            self.levels.each_piece(number, level, (level.last + 1, 1), &mut |first, count, keys| {
                let part = |page: u64| usize::from(page == level.last);
                let mut end = at;
                let planned = list.range(first, first + count)?;
                let records = (first..).zip(&planned[..]);
                let records =
                    records.map(|(page, &planned)| self.placed(number, part(page), planned, &mut end));
                let records: Vec<PageRecord> = records.collect();
                buffer.clear();
                buffer.resize((end - at) as usize, 0);
                let places = |page: u64| {
                    let record = &records[(page - first) as usize];
                    let bytes = self.pages.bytes(number, part(page), record.width);
                    ((record.place - at) as usize, bytes as usize)
                };
                let write = |page: u64, parallel: bool, scratch: &mut Scratch, out: &mut [u8]| {
                    let keys = page_of(keys, level, page - first);
                    let record = records[(page - first) as usize];
                    let page = Page { level: number, part: part(page), record, keys, parallel };
                    self.pages.write(&page, scratch, out);
                };
                if (size_of::<W>() as u64) << level.levels >= LONG_BYTES {
                    for page in first..first + count {
                        let (start, bytes) = places(page);
                        scratches
                            .with(|scratch| write(page, true, scratch, &mut buffer[start..start + bytes]));
                    }
                } else {
                    let grain = ((TASK_BYTES / size_of::<W>()) >> level.levels).max(1);
                    let tasks = tasks(first..first + count, grain, places, &mut buffer);
                    parallel::jobs(tasks, |Task { pages, at, out }| {
                        scratches.with(|scratch| {
                            for page in pages {
                                let (start, bytes) = places(page);
                                write(page, false, scratch, &mut out[start - at..start - at + bytes]);
                            }
                        });
                    });
                }
                at = end;
                take(&buffer)
            })?;
        }
        buffer.clear();
        buffer.resize((Paged::bytes(at) - at) as usize, 0);
        take(&buffer)
    }
}
