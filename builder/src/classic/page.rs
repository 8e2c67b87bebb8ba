//! One page of a compressed tree: the choice of its record, and its words, moved to their places.

use super::narrow::{Distance, Kept, Narrow, are_parted, differ};
use super::permute::{Lane, SMALL, Shape, permute};
use crate::parallel;
use pleach_format::classic::paged::{Form, PageRecord, Paged, Prefix};
use pleach_format::classic::{PageLevel, TreeWord, nodes};
use std::ops::{BitOr, BitXor};

/// The words of a tree of partial keys that is one page are doubled while more than one in as many is a false positive.
pub(super) const FALSE_POSITIVE: usize = 10_000;

/// Key type of a tree: `u32`, `u64` or `u128`.
pub trait TreeKey: TreeWord + Lane + BitXor<Output = Self> + BitOr<Output = Self> {
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn write_page(job: Job<'_, Self>);
}

macro_rules! keys {
    ($($key:ident $write:path),*) => {$(
        impl TreeKey for $key {
            #[allow(private_interfaces)]
            fn write_page(job: Job<'_, Self>) { $write(job) }
        }
    )*};
}
keys!(u32 write32, u64 write64, u128 write128);

/// What all pages of a tree have in common.
#[derive(Debug)]
pub(crate) struct Pages {
    pub paged: Paged,
    prefix: Prefix,
    avx2: bool,
    /// For each level, the lines of its pages by the logarithm of the width (2, 4, 8, 16 bytes).
    shapes: Vec<[Option<Shape>; 4]>,
}

/// A page to be written.
pub(crate) struct Page<'a, W> {
    pub level: usize,
    /// 1 for the last page of its level.
    pub part: usize,
    pub record: PageRecord,
    /// Keys from the first of the page on.
    pub keys: &'a [W],
    /// The page is written by all threads.
    pub parallel: bool,
}

impl Pages {
    pub(crate) fn new(paged: Paged, prefix: Prefix, avx2: bool) -> Self {
        let shape = |number: usize, width: u32| {
            let tree = paged.tree(width)?;
            Some(Shape::new(tree, tree.pages().get(number)?))
        };
        let levels = 0..paged.levels().len();
        let shapes = levels.map(|number| [2, 4, 8, 16].map(|width| shape(number, width))).collect();
        Self { paged, prefix, avx2, shapes }
    }

    /// Chooses the record of a page of a level, without its place. Only the lowest pages lose anything: they have all
    /// keys between their ends, so a key of the table is misled by equal words alone. Above, a query may lie
    /// anywhere between two keys of the page, and a wrong child is far from the right one.
    pub(crate) fn of_level<W: TreeKey>(&self, number: usize, own: &[W]) -> PageRecord {
        if number + 1 < self.paged.levels().len() {
            distances(own)
        } else if number == 0 {
            self.first(own).0
        } else {
            self.record(own, None)
        }
    }

    /// Chooses the record of a page with these keys, without its place: the narrowest words that the form of
    /// the tree allows. A tree of partial keys that is one page has words of `first` bytes.
    ///
    /// With [`Form::Auto`] words must part the page's keys; distances, which lose nothing, come first among
    /// words of equal width.
    pub(crate) fn record<W: TreeKey>(&self, own: &[W], first: Option<u32>) -> PageRecord {
        let distances = distances(own);
        let partial = |differ: u128, width: u32| PageRecord {
            kept: PageRecord::keep(differ, width, self.prefix),
            width,
            ..distances
        };
        match self.paged.form() {
            Form::Partial => partial(differ(own), first.unwrap_or(4)),
            Form::Auto if W::BYTES > 4 && distances.width > 2 => {
                let differ = differ(own);
                let shorter = [2, 4, 8].into_iter().filter(|&width| width < distances.width);
                let mut records = shorter.map(|width| partial(differ, width));
                records.find(|&record| are_parted(record, own, self.avx2)).unwrap_or(distances)
            }
            _ => distances,
        }
    }

    /// Returns the record of a tree that is one page, and the number of neighbours that differ but have the same
    /// word: words are doubled while these are more than one in [`FALSE_POSITIVE`].
    pub(crate) fn first<W: TreeKey>(&self, own: &[W]) -> (PageRecord, usize) {
        let mut width = 4;
        loop {
            let record = self.record(own, Some(width));
            let mut words = vec![0u128; own.len()];
            Kept(record).narrow(own, self.avx2, &mut words);
            let same = |at: &usize| words[*at] == words[at + 1] && own[*at] != own[at + 1];
            let is_partial = record.kept != 0;
            let count = (0..own.len().saturating_sub(1)).filter(|at| is_partial && same(at)).count();
            if self.paged.form() != Form::Partial
                || width >= W::BYTES as u32
                || count * FALSE_POSITIVE < own.len().max(1)
            {
                return (record, count);
            }
            width *= 2;
        }
    }

    /// Returns the bytes of a page.
    pub(crate) fn bytes(&self, level: usize, part: usize, width: u32) -> u64 {
        self.paged.page_bytes(width, level, part).unwrap_or(0)
    }

    /// Writes a page.
    pub(crate) fn write<W: TreeKey>(&self, page: &Page<'_, W>, scratch: &mut Scratch, out: &mut [u8]) {
        let log = page.record.width.trailing_zeros() as usize;
        let (Some(Some(shape)), Some(level)) = (
            self.shapes.get(page.level).and_then(|shapes| shapes.get(log.wrapping_sub(1))),
            self.paged.levels().get(page.level),
        ) else {
            return;
        };
        W::write_page(Job { page, shape, level, avx2: self.avx2, scratch, out });
    }
}

/// The record of a page whose words are distances.
fn distances<W: TreeKey>(own: &[W]) -> PageRecord {
    let base = own.first().map_or(0, |key| key.widen());
    let span = own.last().map_or(0, |key| key.widen().wrapping_sub(base));
    PageRecord { base, kept: 0, width: PageRecord::width(span), place: 0 }
}

/// A page, its lines, and its output.
pub(crate) struct Job<'a, W> {
    page: &'a Page<'a, W>,
    shape: &'a Shape,
    level: &'a PageLevel,
    avx2: bool,
    scratch: &'a mut Scratch,
    out: &'a mut [u8],
}

/// Buffers for the words of a page, reused for the next page.
#[derive(Default)]
pub(crate) struct Scratch {
    two: Vec<u16>,
    four: Vec<u32>,
    eight: Vec<u64>,
    sixteen: Vec<u128>,
}

pub(crate) trait Buffer: Lane {
    fn buffer(scratch: &mut Scratch) -> &mut Vec<Self>;
}
macro_rules! buffers {
    ($($t:ident $field:ident),*) => {$(
        impl Buffer for $t {
            fn buffer(scratch: &mut Scratch) -> &mut Vec<Self> { &mut scratch.$field }
        }
    )*};
}
buffers!(u16 two, u32 four, u64 eight, u128 sixteen);

impl<W: TreeWord> Job<'_, W> {
    /// Writes the page with words of type `V`.
    fn run<V: Buffer>(self, narrow: impl Narrow<W, V>) {
        let (levels, keys) = (self.level.levels, self.page.keys);
        let whole = self.page.part == 0 && self.shape.is_small() && !self.page.parallel;
        if let Some(keys) = keys.first_chunk().filter(|_| whole && self.shape.is_direct()) {
            narrow.place(keys, &self.shape.small, self.avx2, V::slots_mut(self.out));
            return;
        }
        let words = V::buffer(self.scratch);
        if whole {
            // After a page's own words the buffer always holds all ones, which free slots take.
            words.resize(SMALL, V::MAX);
            if let Some(words) = words.first_chunk_mut::<SMALL>() {
                narrow.narrow(own(keys, levels), self.avx2, words);
                self.shape.fill_small(words, V::slots_mut(self.out));
            }
            return;
        }
        let keys = &keys[..keys.len().min(1 << levels)];
        words.resize(keys.len(), V::MAX);
        if self.page.parallel {
            let chunks = words.chunks_mut(1 << 14).zip(keys.chunks(1 << 14));
            parallel::jobs(chunks, |(words, keys)| narrow.narrow(keys, self.avx2, words));
        } else {
            narrow.narrow(keys, self.avx2, words);
        }
        permute(self.shape, self.page.part, words, self.avx2, self.page.parallel, V::slots_mut(self.out));
    }
}

macro_rules! pages {
    ($(fn $name:ident($key:ident) { $($width:literal $word:ident,)* _ $last:ident })*) => {$(
        /// Writes a page of keys of this type.
        pub(super) fn $name(job: Job<'_, $key>) {
            let record = job.page.record;
            if record.kept == 0 {
                match record.width {
                    $($width => job.run::<$word>(Distance(record.base as $key)),)*
                    _ => job.run::<$last>(Distance(record.base as $key)),
                }
            } else {
                match record.width {
                    $($width => job.run::<$word>(Kept(record)),)*
                    _ => job.run::<$last>(Kept(record)),
                }
            }
        }
    )*};
}
pages! {
    fn write32(u32) { 2 u16, _ u32 }
    fn write64(u64) { 2 u16, 4 u32, _ u64 }
    fn write128(u128) { 2 u16, 4 u32, 8 u64, _ u128 }
}

/// Returns the keys of a page without the separator.
pub(super) fn own<W>(keys: &[W], levels: u32) -> &[W] {
    &keys[..keys.len().min(nodes(levels) as usize)]
}
