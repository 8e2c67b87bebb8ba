//! Compressed trees in memory: the records of all pages first, and then their words, in parallel.
//!
//! A page of keys stays in the cache from its record to its lines, so with distances and partial keys the source
//! is read once, except for one or two lines of each page, which are read before. Kim et al., TODS 36(4), 2011,
//! sections 7.1.2 and 7.2.1.

use super::keys::{ClassicError, Vectors, check, sample};
use super::page::{Page, Pages, Scratch, TreeKey, own};
use super::stream::page_of;
use crate::parallel::{self, Scratches};
use pleach_format::classic::paged::{Form, PLACE_MAX, PageRecord, Paged, Prefix};
use pleach_format::classic::{Geometry, PageLevel, TreeWord};

/// Number of bytes written by one task.
const TASK_BYTES: usize = 1 << 17;
/// A level with fewer pages is built page after page, each by all threads.
const FEW_PAGES: u64 = 64;

/// The plan of a compressed tree, ready to be written.
#[derive(Debug)]
pub struct Compressed<W> {
    pages: Pages,
    /// Records of all pages; those of partial keys, except the first, are completed when the page is written.
    records: Vec<PageRecord>,
    /// Keys of the upper pages.
    upper: Vec<Vec<W>>,
    end: u64,
    false_positives: usize,
}

/// Returns the keys of the pages of each level but the lowest, which has all keys: the keys that are left
/// without the lower levels, and between two pages the separator above them.
fn upper_words<W: TreeWord>(keys: &[W], levels: &[PageLevel]) -> Vec<Vec<W>> {
    let mut lists: Vec<Vec<W>> = Vec::new();
    for level in levels.iter().skip(1).rev() {
        lists.push(sample(lists.last().map_or(keys, Vec::as_slice), level.levels));
    }
    lists.reverse();
    lists
}

impl<W: TreeKey> Compressed<W> {
    /// Plans a tree of ascending keys. O(pages) for distances and for partial keys,
    /// O(keys) for either.
    ///
    /// # Errors
    /// [`ClassicError`] if the geometry or the form is not for these keys.
    pub fn plan(
        keys: &[W],
        geometry: &Geometry,
        (form, prefix): (Form, Prefix),
        vectors: Vectors,
    ) -> Result<Self, ClassicError> {
        let paged = Paged::new(*geometry, form).filter(|_| geometry.key_bytes as usize == W::BYTES);
        let paged = paged.ok_or(ClassicError::Geometry)?;
        check(keys, geometry)?;
        let upper = upper_words(keys, paged.levels());
        let mut records: Vec<PageRecord> = Vec::with_capacity(paged.pages() as usize);
        let (mut end, mut false_positives) = (paged.pages_at(), 0);
        let pages = Pages::new(paged, prefix, vectors.avx2());
        for (number, level) in pages.paged.levels().iter().enumerate() {
            let words = upper.get(number).map_or(keys, Vec::as_slice);
            let first = records.len();
            let is_lowest = number + 1 == pages.paged.levels().len();
            if number == 0 && is_lowest {
                let (record, count) = pages.first(own(words, level.levels));
                false_positives = count;
                records.push(record);
            } else if form == Form::Partial && is_lowest {
                // Chosen when the page is written.
                let record = PageRecord { width: 4, ..PageRecord::default() };
                records.resize(first + level.last as usize + 1, record);
            } else {
                let grain = if form == Form::Auto { 1 } else { 4096 };
                records.extend(parallel::collect(level.last as usize + 1, grain, |page| {
                    pages.of_level(number, own(page_of(words, level, page as u64), level.levels))
                }));
            }
            for (page, record) in records[first..].iter_mut().enumerate() {
                let bytes = pages.bytes(number, usize::from(page as u64 == level.last), record.width);
                record.place = pages.paged.place(bytes, end);
                end = record.place + bytes;
            }
        }
        if end > PLACE_MAX {
            return Err(ClassicError::Geometry);
        }
        Ok(Self { pages, records, upper, end, false_positives })
    }

    /// Returns the layout: the form and, with the keys' geometry, all that a reader needs.
    #[must_use]
    pub const fn paged(&self) -> &Paged {
        &self.pages.paged
    }

    /// Returns the bytes of the tree.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        Paged::bytes(self.end)
    }

    /// Returns the bytes per word of the first page; 0 in a tree without pages.
    #[must_use]
    pub fn first_width(&self) -> u32 {
        self.records.first().map_or(0, |record| record.width)
    }

    /// Returns the number of neighbouring keys of a tree of one page that differ but have the same word.
    #[must_use]
    pub const fn false_positives(&self) -> usize {
        self.false_positives
    }

    /// Writes the tree, planned for the same keys, to `out` of [`Compressed::bytes`] bytes. O(keys).
    ///
    /// # Errors
    /// [`ClassicError`] if the plan is for other keys, or the length of the output does not match it.
    pub fn build(&self, keys: &[W], out: &mut [u8]) -> Result<(), ClassicError> {
        let paged = &self.pages.paged;
        check(keys, paged.geometry())?;
        if out.len() as u64 != self.bytes() {
            return Err(ClassicError::Output { expected: self.bytes(), found: out.len() as u64 });
        }
        let (stored, mut out) = out.split_at_mut(paged.pages_at() as usize);
        let record_bytes = paged.record_bytes();
        let (mut stored, rest) = stored.split_at_mut(paged.pages() as usize * record_bytes);
        rest.fill(0);
        let mut at = paged.pages_at();
        for (number, level) in paged.levels().iter().enumerate() {
            let words = self.upper.get(number).map_or(keys, Vec::as_slice);
            let first = paged.records()[number] as usize;
            let records = &self.records[first..=first + level.last as usize];
            let few = level.last < FEW_PAGES;
            let per_task = if few { 1 } else { (TASK_BYTES / (W::BYTES << level.levels)).max(1) };
            let (of_level, rest) = stored.split_at_mut(records.len() * record_bytes);
            stored = rest;
            // The output of each task extends to the end of its last page; a gap belongs to the page after it.
            let mut tasks = Vec::with_capacity(records.len() / per_task + 1);
            let chunks = records.chunks(per_task).zip(of_level.chunks_mut(per_task * record_bytes));
            for (task, (records, stored)) in chunks.enumerate() {
                let last = task * per_task + records.len() - 1;
                let part = usize::from(last as u64 == level.last);
                let end = records
                    .last()
                    .map_or(at, |record| record.place + self.pages.bytes(number, part, record.width));
                let (own, rest) = out.split_at_mut((end - at) as usize);
                tasks.push(Task { first: task * per_task, at, records, stored, out: own });
                (out, at) = (rest, end);
            }
            let run = |scratch: &mut Scratch, task| self.write(number, words, few, task, scratch);
            if few {
                let mut scratch = Scratch::default();
                tasks.into_iter().for_each(|task| run(&mut scratch, task));
            } else {
                let scratches = Scratches::default();
                parallel::jobs(tasks, |task| scratches.with(|scratch| run(scratch, task)));
            }
        }
        out.fill(0);
        Ok(())
    }

    /// Writes consecutive pages of a level.
    fn write(&self, number: usize, words: &[W], parallel: bool, task: Task<'_>, scratch: &mut Scratch) {
        let paged = &self.pages.paged;
        let level = &paged.levels()[number];
        let Task { first, mut at, records, stored, mut out } = task;
        let stored = stored.chunks_exact_mut(paged.record_bytes());
        for (page, (&planned, stored)) in (first..).zip(records.iter().zip(stored)) {
            let (part, keys) = (usize::from(page as u64 == level.last), page_of(words, level, page as u64));
            let mut record = planned;
            if paged.form() == Form::Partial && number > 0 && number + 1 == paged.levels().len() {
                record = self.pages.record(own(keys, level.levels), None);
                record.place = planned.place;
            }
            stored.copy_from_slice(&record.encode(W::BYTES as u32)[..stored.len()]);
            let rest = std::mem::take(&mut out);
            let (gap, rest) = rest.split_at_mut((record.place - at) as usize);
            gap.fill(0);
            let (mine, rest) = rest.split_at_mut(self.pages.bytes(number, part, record.width) as usize);
            (out, at) = (rest, record.place + mine.len() as u64);
            self.pages.write(&Page { level: number, part, record, keys, parallel }, scratch, mine);
        }
    }
}

/// Consecutive pages of a level, to be written.
struct Task<'a> {
    /// Number of the first page.
    first: usize,
    /// Place of the first byte of `out`.
    at: u64,
    records: &'a [PageRecord],
    stored: &'a mut [u8],
    out: &'a mut [u8],
}
