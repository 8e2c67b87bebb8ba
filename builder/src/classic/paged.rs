//! Compressed trees: all pages are planned first, and then written in parallel.
//!
//! ```text
//! Packed::delta     separators around each page -> widths -> places
//! Packed::partial   the first page's words, 32 bits or twice, or four times, until they tell keys apart
//! build_*           page by page: (xor and or ->) record, narrow words into a small buffer, permute
//! ```
//! A page of keys stays in the cache from its record to its lines, so the source is read once, except for
//! one line of each page, which is read before. Kim et al., TODS 36(4), 2011, sections 7.1.2 and 7.2.1.

use super::keys::{ClassicError, TreeKey, Vectors, check, sample};
use super::narrow::{Distance, Kept, Narrow, differ};
use super::permute::{Lane, SMALL, Shape, permute};
use crate::parallel::{self, Scratches};
use pleach_format::classic::packed::{
    DELTA_BYTES, Delta, Form, PARTIAL_BYTES, Paged, Partial, Prefix, align,
};
use pleach_format::classic::{Geometry, PageLevel, TreeWord, nodes};

/// Number of bytes written by one task.
const TASK_BYTES: usize = 1 << 17;
/// A level with fewer pages is built page after page, each by all threads.
const FEW_PAGES: u64 = 64;
/// The first page's words are doubled while more than one in `FALSE_POSITIVE` is a false positive.
const FALSE_POSITIVE: usize = 10_000;

/// The plan of a compressed tree, ready to be written.
#[derive(Clone, Debug)]
pub struct Packed<W> {
    paged: Paged,
    prefix: Prefix,
    /// Bytes per word of each page of a delta tree.
    widths: Vec<u8>,
    /// Keys of the upper pages.
    upper: Vec<Vec<W>>,
    end: u64,
    false_positives: usize,
}

/// Key type of [`Packed::delta`]: `u32` or `u64`.
pub trait DeltaKey: TreeKey {
    #[doc(hidden)]
    fn wide(self) -> u64;
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn page(base: u64, width: u32, job: Job<'_, Self>);
}

macro_rules! delta_keys {
    ($($t:ident)*) => {$(
        impl DeltaKey for $t {
            fn wide(self) -> u64 { u64::from(self) }
            #[allow(private_interfaces)]
            fn page(base: u64, width: u32, job: Job<'_, Self>) {
                match width {
                    2 => job.run::<u16>(Distance(base)),
                    4 => job.run::<u32>(Distance(base)),
                    _ => job.run::<u64>(Distance(base)),
                }
            }
        }
    )*};
}
delta_keys!(u32 u64);

/// A page to be written.
pub(crate) struct Job<'a, W> {
    shape: &'a Shape,
    part: usize,
    levels: u32,
    /// Keys from the first of the page on.
    keys: &'a [W],
    avx2: bool,
    parallel: bool,
    scratch: &'a mut Scratch,
    out: &'a mut [u8],
}

/// Buffers for the words of a page, reused for the next page.
#[derive(Default)]
struct Scratch {
    narrow: Vec<u16>,
    four: Vec<u32>,
    eight: Vec<u64>,
    sixteen: Vec<u128>,
}

trait Buffer: Lane {
    fn buffer(scratch: &mut Scratch) -> &mut Vec<Self>;
}
macro_rules! buffers {
    ($($t:ident $field:ident),*) => {$(
        impl Buffer for $t {
            fn buffer(scratch: &mut Scratch) -> &mut Vec<Self> { &mut scratch.$field }
        }
    )*};
}
buffers!(u16 narrow, u32 four, u64 eight, u128 sixteen);

impl<W: TreeWord> Job<'_, W> {
    #[allow(private_bounds)]
    fn run<V: Buffer>(self, narrow: impl Narrow<W, V>) {
        let whole = self.part == 0 && self.shape.is_small() && !self.parallel;
        if let Some(keys) = self.keys.first_chunk().filter(|_| whole && self.shape.is_direct()) {
            narrow.place(keys, &self.shape.small, self.avx2, V::slots_mut(self.out));
            return;
        }
        let words = V::buffer(self.scratch);
        if whole {
            // After a page's own words the buffer always holds all ones, which free slots take.
            words.resize(SMALL, V::MAX);
            if let Some(words) = words.first_chunk_mut::<SMALL>() {
                narrow.narrow(own(self.keys, self.levels), self.avx2, words);
                self.shape.fill_small(words, V::slots_mut(self.out));
            }
            return;
        }
        let keys = &self.keys[..self.keys.len().min(1 << self.levels)];
        words.resize(keys.len(), V::MAX);
        if self.parallel {
            let chunks = words.chunks_mut(1 << 14).zip(keys.chunks(1 << 14));
            parallel::jobs(chunks, |(words, keys)| narrow.narrow(keys, self.avx2, words));
        } else {
            narrow.narrow(keys, self.avx2, words);
        }
        permute(self.shape, self.part, words, self.avx2, self.parallel, V::slots_mut(self.out));
    }
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

/// Returns the keys from the first key of a page on.
fn page_of<'a, W>(words: &'a [W], level: &PageLevel, page: u64) -> &'a [W] {
    &words[((page as usize) << level.levels).min(words.len())..]
}

/// Returns the keys of a page without the separator.
fn own<W>(keys: &[W], levels: u32) -> &[W] {
    &keys[..keys.len().min(nodes(levels) as usize)]
}

impl<W: DeltaKey> Packed<W> {
    /// Plans a tree of distances. O(keys / 2^levels of the lowest pages).
    ///
    /// # Errors
    /// [`ClassicError`] if the geometry is not for these keys.
    pub fn delta(keys: &[W], geometry: &Geometry) -> Result<Self, ClassicError> {
        let paged = Paged::new(*geometry, Form::Delta).filter(|_| geometry.key_bytes as usize == W::BYTES);
        let paged = paged.ok_or(ClassicError::Geometry)?;
        check(keys, geometry)?;
        let mut widths: Vec<u8> = Vec::with_capacity(paged.pages() as usize);
        let upper = upper_words(keys, paged.levels());
        for (number, level) in paged.levels().iter().enumerate() {
            let words = upper.get(number).map_or(keys, Vec::as_slice);
            let above = number.checked_sub(1).map_or(&[][..], |above| upper[above].as_slice());
            let last = words.last().map_or(0, |key| key.wide());
            widths.extend(parallel::collect(level.last as usize + 1, 4096, |page| {
                // The separators around a page do not belong to it, but are close, and were read already.
                let low = page.checked_sub(1).map_or(0, |before| above[before].wide());
                let high = above.get(page).map_or(last, |key| key.wide());
                Delta::width(high.saturating_sub(low)) as u8
            }));
        }
        let mut packed = Self { paged, prefix: Prefix::default(), widths, upper, end: 0, false_positives: 0 };
        let mut at = packed.paged.pages_at();
        for number in 0..packed.paged.levels().len() {
            let places = Places::new(&packed, number);
            at = places.follow(0..places.widths.len(), at, |_, _| {});
        }
        packed.end = at;
        Ok(packed)
    }
}

impl Packed<u128> {
    /// Plans a tree of partial keys. O(keys of the first page).
    ///
    /// # Errors
    /// [`ClassicError`] if the geometry is not for these keys.
    pub fn partial(keys: &[u128], geometry: &Geometry, prefix: Prefix) -> Result<Self, ClassicError> {
        check(keys, geometry)?;
        let mut first = 4;
        loop {
            let paged = Paged::new(*geometry, Form::Partial { first }).ok_or(ClassicError::Geometry)?;
            let mut false_positives = 0;
            if let Some(level) = paged.levels().first() {
                let upper = upper_words(keys, paged.levels());
                let keys = own(upper.first().map_or(keys, Vec::as_slice), level.levels);
                let record =
                    Partial::new(keys.first().copied().unwrap_or(0), differ(keys), 8 * first, prefix);
                let mut words = vec![0u128; keys.len()];
                Kept(record).narrow(keys, Vectors::Best.avx2(), &mut words);
                let same = |at: &usize| words[*at] == words[at + 1] && keys[*at] != keys[at + 1];
                false_positives = (0..keys.len().saturating_sub(1)).filter(same).count();
                if first < 16 && false_positives * FALSE_POSITIVE >= keys.len().max(1) {
                    first *= 2;
                    continue;
                }
            }
            let end = paged.partial_places().1.max(paged.pages_at());
            let upper = upper_words(keys, paged.levels());
            return Ok(Self { paged, prefix, widths: Vec::new(), upper, end, false_positives });
        }
    }
}

impl<W: TreeWord> Packed<W> {
    /// Returns the layout: the form and, with the keys' geometry, all that a reader needs.
    #[must_use]
    pub const fn paged(&self) -> &Paged {
        &self.paged
    }

    /// Returns the bytes of the tree.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        Paged::bytes(self.end)
    }

    /// Returns the number of neighbouring keys of the first page that differ but have the same word.
    #[must_use]
    pub const fn false_positives(&self) -> usize {
        self.false_positives
    }

    fn outputs<'a>(
        &self,
        keys: &[W],
        out: &'a mut [u8],
    ) -> Result<(&'a mut [u8], &'a mut [u8]), ClassicError> {
        check(keys, self.paged.geometry())?;
        if out.len() as u64 != self.bytes() {
            return Err(ClassicError::Output { expected: self.bytes(), found: out.len() as u64 });
        }
        let (out, rest) = out.split_at_mut(self.end as usize);
        rest.fill(0);
        let (records, pages) = out.split_at_mut(self.paged.pages_at() as usize);
        let used = self.paged.pages() as usize * self.paged.record_bytes();
        records[used..].fill(0);
        Ok((&mut records[..used], pages))
    }
}

/// Places of the pages of one level of a delta tree.
struct Places<'a> {
    widths: &'a [u8],
    /// Bytes of a page, and its alignment minus one: by width, for a whole page and for the last one.
    sizes: [[(u64, u64); 2]; 3],
}

impl<'a> Places<'a> {
    fn new<W: TreeWord>(packed: &'a Packed<W>, number: usize) -> Self {
        let paged = &packed.paged;
        let first = paged.records()[number] as usize;
        let pages = paged.levels()[number].last as usize + 1;
        let bytes = |width, part| paged.page_bytes(width, number, part).unwrap_or(0);
        let sizes =
            [2, 4, 8].map(|width| [0, 1].map(|part| (bytes(width, part), align(bytes(width, part)) - 1)));
        Self { widths: &packed.widths[first..first + pages], sizes }
    }

    /// Returns the bytes of a page, and its alignment minus one.
    #[inline(always)]
    fn size(&self, page: usize) -> (u64, u64) {
        self.sizes[self.widths[page].ilog2() as usize - 1][usize::from(page + 1 == self.widths.len())]
    }

    /// Calls `with` for each page and its place, after a page that ended at `at`; returns the end.
    #[inline(always)]
    fn follow(&self, pages: std::ops::Range<usize>, mut at: u64, mut with: impl FnMut(usize, u64)) -> u64 {
        for page in pages {
            let (bytes, mask) = self.size(page);
            at = (at + mask) & !mask;
            with(page, at);
            at += bytes;
        }
        at
    }
}

/// Writes a tree of distances, planned for the same keys, to `out` of [`Packed::bytes`] bytes. O(keys).
///
/// # Errors
/// [`ClassicError`] if the plan is for other keys, or the length of the output does not match it.
pub fn build_delta<W: DeltaKey>(
    packed: &Packed<W>,
    keys: &[W],
    vectors: Vectors,
    out: &mut [u8],
) -> Result<(), ClassicError> {
    let paged = &packed.paged;
    let fits = paged.form() == Form::Delta && paged.geometry().key_bytes as usize == W::BYTES;
    fits.then_some(()).ok_or(ClassicError::Geometry)?;
    let avx2 = vectors.avx2();
    let (records, mut out) = packed.outputs(keys, out)?;
    let (mut records, _) = records.as_chunks_mut::<DELTA_BYTES>();
    let mut at = paged.pages_at();
    for (number, level) in paged.levels().iter().enumerate() {
        let words = packed.upper.get(number).map_or(keys, Vec::as_slice);
        let shapes = [2, 4, 8].map(|width| {
            let tree = paged.tree(width)?;
            Some(Shape::new(tree, tree.pages().get(number)?))
        });
        let places = Places::new(packed, number);
        let pages = level.last as usize + 1;
        let few = level.last < FEW_PAGES;
        let per_task = if few { 1 } else { (TASK_BYTES / (W::BYTES << level.levels)).max(1) };
        // The output of each task extends to the end of its last page; a gap belongs to the page after it.
        let (own_records, rest) = records.split_at_mut(pages);
        records = rest;
        let mut tasks = Vec::with_capacity(pages / per_task + 1);
        for (task, records) in own_records.chunks_mut(per_task).enumerate() {
            let first = task * per_task;
            let end = places.follow(first..first + records.len(), at, |_, _| {});
            let (own, rest) = out.split_at_mut((end - at) as usize);
            tasks.push((first, at, records, own));
            (out, at) = (rest, end);
        }
        type Task<'a> = (usize, u64, &'a mut [[u8; DELTA_BYTES]], &'a mut [u8]);
        let run = |scratch: &mut Scratch, (first, from, records, mut out): Task<'_>| {
            let mut from = from;
            places.follow(first..first + records.len(), from, |page, place| {
                let width = u32::from(places.widths[page]);
                let Some(shape) = &shapes[width.ilog2() as usize - 1] else { return };
                let part = usize::from(page as u64 == level.last);
                let keys = page_of(words, level, page as u64);
                let base = keys.first().map_or(0, |key| key.wide());
                records[page - first] = Delta { base, place, width }.encode();
                let rest = std::mem::take(&mut out);
                let (gap, rest) = rest.split_at_mut((place - from) as usize);
                gap.iter_mut().for_each(|byte| *byte = 0);
                let (mine, rest) = rest.split_at_mut(places.size(page).0 as usize);
                (out, from) = (rest, place + mine.len() as u64);
                let levels = level.levels;
                W::page(
                    base,
                    width,
                    Job { shape, part, levels, keys, avx2, parallel: few, scratch, out: mine },
                );
            });
        };
        if few {
            let mut scratch = Scratch::default();
            tasks.into_iter().for_each(|task| run(&mut scratch, task));
        } else {
            let scratches = Scratches::default();
            parallel::jobs(tasks, |task| scratches.with(|scratch| run(scratch, task)));
        }
    }
    Ok(())
}

/// Writes a tree of partial keys, planned for the same keys, to `out` of [`Packed::bytes`] bytes. O(keys).
///
/// # Errors
/// [`ClassicError`] if the plan is for other keys, or the length of the output does not match it.
pub fn build_partial(
    packed: &Packed<u128>,
    keys: &[u128],
    vectors: Vectors,
    out: &mut [u8],
) -> Result<(), ClassicError> {
    let paged = &packed.paged;
    let Form::Partial { first } = paged.form() else { return Err(ClassicError::Geometry) };
    let avx2 = vectors.avx2();
    let (records, mut out) = packed.outputs(keys, out)?;
    let (mut records, _) = records.as_chunks_mut::<PARTIAL_BYTES>();
    let (places, end) = paged.partial_places();
    let mut at = paged.pages_at();
    for (number, level) in paged.levels().iter().enumerate() {
        let words = packed.upper.get(number).map_or(keys, Vec::as_slice);
        let width = if number == 0 { first } else { 4 };
        let shape = paged.tree(width).and_then(|tree| Some(Shape::new(tree, tree.pages().get(number)?)));
        let shape = shape.ok_or(ClassicError::Geometry)?;
        let stride = paged.partial_stride(width, number) as usize;
        let bytes = [0, 1].map(|part| paged.page_bytes(width, number, part).unwrap_or(0) as usize);
        let (own_records, rest) = records.split_at_mut(level.last as usize + 1);
        records = rest;
        let behind = places.get(number + 1).copied().unwrap_or(end);
        let (gap, rest) = out.split_at_mut((places[number] - at) as usize);
        gap.fill(0);
        let (pages, rest) = rest.split_at_mut((behind - places[number]) as usize);
        (out, at) = (rest, behind);
        let few = level.last < FEW_PAGES;
        let write = |scratch: &mut Scratch, page: u64, record: &mut [u8; PARTIAL_BYTES], out: &mut [u8]| {
            let part = usize::from(page == level.last);
            let (out, rest) = out.split_at_mut(bytes[part]);
            rest.fill(0);
            let keys = page_of(words, level, page);
            let all = own(keys, level.levels);
            let reference = all.first().copied().unwrap_or(u128::MAX);
            let partial = Partial::new(reference, differ(all), 8 * width, packed.prefix);
            *record = partial.encode();
            let job =
                Job { shape: &shape, part, levels: level.levels, keys, avx2, parallel: few, scratch, out };
            match width {
                4 => job.run::<u32>(Kept(partial)),
                8 => job.run::<u64>(Kept(partial)),
                _ => job.run::<u128>(Kept(partial)),
            }
        };
        let last = level.last as usize * stride;
        if few {
            let mut scratch = Scratch::default();
            for (page, record) in own_records.iter_mut().enumerate() {
                let end = if page as u64 == level.last { pages.len() } else { (page + 1) * stride };
                write(&mut scratch, page as u64, record, &mut pages[page * stride..end]);
            }
            continue;
        }
        let per_task = (TASK_BYTES / (16 << level.levels)).max(1);
        // The bytes between the last page and the next level belong to that page.
        let (whole, tail) = pages.split_at_mut(last);
        let (last_record, all_records) = own_records.split_last_mut().ok_or(ClassicError::Geometry)?;
        let scratches = Scratches::default();
        let tasks = whole.chunks_mut(stride * per_task).zip(all_records.chunks_mut(per_task));
        parallel::jobs(tasks.enumerate(), |(task, (out, records))| {
            scratches.with(|scratch| {
                for (inside, (out, record)) in out.chunks_mut(stride).zip(records).enumerate() {
                    write(scratch, (task * per_task + inside) as u64, record, out);
                }
            });
        });
        write(&mut Scratch::default(), level.last, last_record, tail);
    }
    Ok(())
}
