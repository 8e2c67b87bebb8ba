//! Compressed trees: first what each page will be, then all pages in parallel.
//!
//! ```text
//! Packed::delta     smallest and largest key of each page -> widths -> places
//! Packed::partial   the first page's words, 32 bits or twice, or four times, until they tell keys apart
//! Packed::write     page by page: (xor and or ->) record, narrow words into a small buffer, permute
//! ```
//! A page of keys stays in the cache from its record to its lines, so the source is read once (twice a
//! line or two of each page for delta). Kim et al., TODS 36(4), 2011, sections 7.1.2 and 7.2.1.

use super::narrow::{Distance, Kept, Narrow, differ};
use super::permute::{Lane, SMALL, Shape, permute};
use super::{ClassicError, TreeKey, Vectors, check, sample};
use pleach_format::classic::packed::{
    DELTA_BYTES, Delta, Form, PARTIAL_BYTES, Paged, Partial, Prefix, align,
};
use pleach_format::classic::{Geometry, PageLevel, TreeWord, nodes};
use rayon::prelude::*;
use std::borrow::Cow;

/// Bytes that one task writes.
const TASK_BYTES: usize = 1 << 17;
/// A level of fewer pages is built page after page, each by all threads.
const FEW_PAGES: u64 = 64;
/// The first page's words are doubled while more than one in so many is a false positive.
const FALSE_POSITIVE: usize = 10_000;

/// A compressed tree that is ready to be written.
#[derive(Clone, Debug)]
pub struct Packed {
    paged: Paged,
    prefix: Prefix,
    /// Of a delta tree.
    records: Vec<Delta>,
    end: u64,
    false_positives: usize,
}

/// Keys that [`Packed::delta`] takes: `u32` and `u64`.
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

/// One page to be written.
pub(crate) struct Job<'a, W> {
    shape: &'a Shape,
    part: usize,
    /// Keys of the page, and the separator behind it if there is one.
    keys: &'a [W],
    avx2: bool,
    parallel: bool,
    scratch: &'a mut Scratch,
    out: &'a mut [u8],
}

/// Words of a page, kept from page to page.
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
        let words = V::buffer(self.scratch);
        words.clear();
        if self.parallel {
            let chunks: Vec<Vec<V>> = self
                .keys
                .par_chunks(1 << 14)
                .map(|keys| {
                    let mut words = Vec::with_capacity(keys.len());
                    narrow.extend(keys, self.avx2, &mut words);
                    words
                })
                .collect();
            chunks.iter().for_each(|chunk| words.extend_from_slice(chunk));
        } else {
            narrow.extend(self.keys, self.avx2, words);
            if self.part == 0 && self.shape.is_small() {
                words.resize(SMALL, V::MAX);
                if let Some(words) = words.first_chunk() {
                    self.shape.fill_small(words, V::slots_mut(self.out));
                }
                return;
            }
        }
        permute(self.shape, self.part, words, self.avx2, self.parallel, V::slots_mut(self.out));
    }
}

/// Keys of a level's pages: those of the tree without what is below them.
fn words_of<'a, W: TreeWord>(keys: &'a [W], level: &PageLevel) -> Cow<'a, [W]> {
    if level.below == 0 { Cow::Borrowed(keys) } else { Cow::Owned(sample(keys, level.below)) }
}

/// Keys of a page, and the separator behind it if there is one.
fn page_of<'a, W>(words: &'a [W], level: &PageLevel, page: u64) -> &'a [W] {
    let first = ((page as usize) << level.levels).min(words.len());
    &words[first..(first + (1 << level.levels)).min(words.len())]
}

/// Without the separator.
fn own<'a, W>(keys: &'a [W], level: &PageLevel) -> &'a [W] {
    &keys[..keys.len().min(nodes(level.levels) as usize)]
}

impl Packed {
    /// Plans a tree of distances. O(pages).
    ///
    /// # Errors
    /// [`ClassicError`] if the geometry is not for these keys.
    pub fn delta<W: DeltaKey>(keys: &[W], geometry: &Geometry) -> Result<Self, ClassicError> {
        let paged = Paged::new(*geometry, Form::Delta).filter(|_| geometry.key_bytes as usize == W::BYTES);
        let paged = paged.ok_or(ClassicError::Geometry)?;
        check(keys, geometry)?;
        let mut records: Vec<Delta> = Vec::with_capacity(paged.pages() as usize);
        for level in paged.levels() {
            let words = words_of(keys, level);
            records.par_extend((0..level.last as usize + 1).into_par_iter().with_min_len(1024).map(|page| {
                let keys = own(page_of(&words, level, page as u64), level);
                let base = keys.first().map_or(0, |key| key.wide());
                let span = keys.last().map_or(0, |key| key.wide().saturating_sub(base));
                Delta { base, width: Delta::width(span), place: 0 }
            }));
        }
        let mut at = paged.pages_at();
        let mut rest = records.iter_mut();
        for (number, level) in paged.levels().iter().enumerate() {
            // Bytes of a page by width and part, and what a page of this width starts on.
            let bytes = |width, part| paged.page_bytes(width, number, part).unwrap_or(0);
            let sizes =
                [2, 4, 8].map(|width| [0, 1].map(|part| (bytes(width, part), align(bytes(width, part)) - 1)));
            for (page, record) in rest.by_ref().take(level.last as usize + 1).enumerate() {
                let part = usize::from(page as u64 == level.last);
                let (bytes, mask) = sizes[record.width.ilog2() as usize - 1][part];
                at = (at + mask) & !mask;
                record.place = at;
                at += bytes;
            }
        }
        Ok(Self { paged, prefix: Prefix::default(), records, end: at, false_positives: 0 })
    }

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
                let words = words_of(keys, level);
                let keys = own(&words, level);
                let record =
                    Partial::new(keys.first().copied().unwrap_or(0), differ(keys), 8 * first, prefix);
                let mut words: Vec<u128> = Vec::with_capacity(keys.len());
                Kept(record).extend(keys, Vectors::Best.avx2(), &mut words);
                let same = |at: &usize| words[*at] == words[at + 1] && keys[*at] != keys[at + 1];
                false_positives = (0..keys.len().saturating_sub(1)).filter(same).count();
                if first < 16 && false_positives * FALSE_POSITIVE >= keys.len().max(1) {
                    first *= 2;
                    continue;
                }
            }
            let end = paged.partial_places().1.max(paged.pages_at());
            return Ok(Self { paged, prefix, records: Vec::new(), end, false_positives });
        }
    }

    /// Its layout; the form and, with the keys' geometry, all that a reader needs.
    #[must_use]
    pub const fn paged(&self) -> &Paged {
        &self.paged
    }

    /// Bytes of the tree.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        Paged::bytes(self.end)
    }

    /// Neighbouring keys of the first page that differ and have the same word.
    #[must_use]
    pub const fn false_positives(&self) -> usize {
        self.false_positives
    }

    fn outputs<'a, W>(
        &self,
        keys: &[W],
        out: &'a mut [u8],
    ) -> Result<(&'a mut [u8], &'a mut [u8]), ClassicError>
    where
        W: TreeWord,
    {
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

/// Writes a tree of distances, planned for the same keys, to `out` of [`Packed::bytes`] bytes. O(keys).
///
/// # Errors
/// [`ClassicError`] if the plan is for other keys or the output has another length.
pub fn build_delta<W: DeltaKey>(
    packed: &Packed,
    keys: &[W],
    vectors: Vectors,
    out: &mut [u8],
) -> Result<(), ClassicError> {
    let paged = &packed.paged;
    let fits = paged.form() == Form::Delta && paged.geometry().key_bytes as usize == W::BYTES;
    fits.then_some(()).ok_or(ClassicError::Geometry)?;
    let avx2 = vectors.avx2();
    let (records, mut out) = packed.outputs(keys, out)?;
    let (slots, _) = records.as_chunks_mut::<DELTA_BYTES>();
    let from = packed.records.par_iter().with_min_len(4096);
    slots.par_iter_mut().zip(from).for_each(|(slot, record)| *slot = record.encode());
    let mut at = paged.pages_at();
    for (number, level) in paged.levels().iter().enumerate() {
        let words = words_of(keys, level);
        let shapes = [2, 4, 8].map(|width| {
            let tree = paged.tree(width)?;
            let bytes = [0, 1].map(|part| paged.page_bytes(width, number, part).unwrap_or(0) as usize);
            Some((Shape::new(tree, tree.pages().get(number)?), bytes))
        });
        let first = paged.records()[number] as usize;
        let pages = level.last as usize + 1;
        let records = &packed.records[first..first + pages];
        let behind = packed.records.get(first + pages).map_or(packed.end, |next| next.place);
        let few = level.last < FEW_PAGES;
        // One page, from the first byte behind the page before it.
        let write = |page: usize, from: u64, scratch: &mut Scratch, out: &mut [u8]| {
            let record = records[page];
            let part = usize::from(page as u64 == level.last);
            let Some((shape, bytes)) = &shapes[record.width.ilog2() as usize - 1] else { return };
            let (gap, out) = out.split_at_mut((record.place - from) as usize);
            let (out, rest) = out.split_at_mut(bytes[part]);
            gap.iter_mut().chain(rest).for_each(|byte| *byte = 0);
            let keys = page_of(&words, level, page as u64);
            W::page(record.base, record.width, Job { shape, part, keys, avx2, parallel: few, scratch, out });
        };
        let per_task = if few { 1 } else { (TASK_BYTES / (W::BYTES << level.levels)).max(1) };
        // The output of each task: up to the place of the next task's first page.
        let mut tasks = Vec::with_capacity(pages / per_task + 1);
        for first in (0..pages).step_by(per_task) {
            let end = records.get(first + per_task).map_or(behind, |next| next.place);
            let (own, rest) = out.split_at_mut((end - at) as usize);
            tasks.push((first, at, own));
            (out, at) = (rest, end);
        }
        let run = |scratch: &mut Scratch, (first, from, mut out): (usize, u64, &mut [u8])| {
            let mut from = from;
            let end = from + out.len() as u64;
            for page in first..(first + per_task).min(pages) {
                let last = page + 1 == (first + per_task).min(pages);
                let to = if last { end } else { records[page + 1].place };
                let (own, rest) = out.split_at_mut((to - from) as usize);
                write(page, from, scratch, own);
                (out, from) = (rest, to);
            }
        };
        if few {
            let mut scratch = Scratch::default();
            tasks.into_iter().for_each(|task| run(&mut scratch, task));
        } else {
            tasks.into_par_iter().for_each_init(Scratch::default, run);
        }
    }
    Ok(())
}

/// Writes a tree of partial keys, planned for the same keys, to `out` of [`Packed::bytes`] bytes.
/// O(keys).
///
/// # Errors
/// [`ClassicError`] if the plan is for other keys or the output has another length.
pub fn build_partial(
    packed: &Packed,
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
        let words = words_of(keys, level);
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
            let keys = page_of(&words, level, page);
            let all = own(keys, level);
            let reference = all.first().copied().unwrap_or(u128::MAX);
            let partial = Partial::new(reference, differ(all), 8 * width, packed.prefix);
            *record = partial.encode();
            let job = Job { shape: &shape, part, keys, avx2, parallel: few, scratch, out };
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
        // What is behind the last page, before the next level, belongs to it.
        let (whole, tail) = pages.split_at_mut(last);
        let (last_record, all_records) = own_records.split_last_mut().ok_or(ClassicError::Geometry)?;
        whole
            .par_chunks_mut(stride * per_task)
            .zip(all_records.par_chunks_mut(per_task))
            .enumerate()
            .for_each_init(Scratch::default, |scratch, (task, (out, records))| {
                for (inside, (out, record)) in out.chunks_mut(stride).zip(records).enumerate() {
                    write(scratch, (task * per_task + inside) as u64, record, out);
                }
            });
        write(&mut Scratch::default(), level.last, last_record, tail);
    }
    Ok(())
}
