//! Compressed classic trees: each page has a record, and narrow words that represent its keys.
//!
//! ```text
//! records   one a page, levels top first, pages in order; zero bytes to a multiple of 64
//! pages     in the same order, each where the record says
//! 64 zero bytes
//! ```
//! A page stores its keys in one of two ways. A **distance** is `key - base`; the base is the smallest key of the
//! page. Nothing is lost: a search ends where it would end in the full tree.
//!
//! A **partial key** is those nibbles of the key, most significant first, that the record keeps: the nibbles in
//! which the keys of the page differ, as many as a word has room for. The order is kept, but different keys may
//! have equal words. So a search ends near its goal, and then compares full keys.
//!
//! The lines inside a page are those of [`Geometry`]. d_K and d_L are deeper by the logarithm of the ratio of
//! a key's width to a word's, so that blocks and lines keep their bytes.
//!
//! The source is Kim et al., TODS 36(4), sections 7.1 and 7.2. Three things differ: base and width are found by
//! one load each, since keys are sorted; widths are powers of two, so that words are compared in place; and each
//! page has a width of its own.

use super::{Geometry, PageLevel, SLACK_BYTES, Tree, UNIT_BYTES};

const LINE_BYTES: u64 = 64;
/// Places of pages are multiples of it.
const PLACE_BYTES: u64 = 16;

/// How the pages of a tree store their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// In full, without records.
    Full,
    /// As distances, in the narrowest words that hold them.
    Delta,
    /// As partial keys in words of 4 bytes, in the lowest pages; as distances above them.
    Partial,
    /// In either way, whichever makes the page smallest.
    Auto,
}

impl Form {
    /// All forms, in the order of their codes.
    pub const ALL: [Self; 4] = [Self::Full, Self::Delta, Self::Partial, Self::Auto];

    /// Returns the lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Delta => "delta",
            Self::Partial => "partial",
            Self::Auto => "auto",
        }
    }

    /// Reports whether keys of `key_bytes` can be stored in this form.
    #[must_use]
    pub const fn holds(self, key_bytes: u32) -> bool {
        match self {
            Self::Full => matches!(key_bytes, 2 | 4 | 8 | 16),
            Self::Delta | Self::Auto => matches!(key_bytes, 4 | 8 | 16),
            Self::Partial => matches!(key_bytes, 8 | 16),
        }
    }
}

/// Layout of the records, pages and lines of a compressed tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paged {
    geometry: Geometry,
    form: Form,
    trees: [Option<Tree>; 4],
    records: Vec<u64>,
    pages: u64,
}

impl Paged {
    /// Lays out a tree of compressed keys. Returns `None` for [`Form::Full`], for a form that does not hold
    /// keys of this width, for pages with fewer levels than a line of the narrowest words, and if
    /// [`Geometry::tree`] does.
    #[must_use]
    pub fn new(geometry: Geometry, form: Form) -> Option<Self> {
        if form == Form::Full || !form.holds(geometry.key_bytes) {
            return None;
        }
        let mut trees = [const { None }; 4];
        for width in [2, 4, 8, 16].into_iter().filter(|&width| width <= geometry.key_bytes) {
            let deeper = (geometry.key_bytes / width).ilog2();
            let d_k = geometry.d_k.checked_add(deeper)?;
            let d_l = geometry.d_l.checked_add(deeper)?;
            let narrow = Geometry { key_bytes: width, d_k, d_l, aligned: false, ..geometry };
            trees[width_log(width) - 1] = Some(Tree::new(narrow, false)?);
        }
        let mut paged = Self { geometry, form, trees, records: Vec::new(), pages: 0 };
        let lasts: Vec<u64> = paged.levels().iter().map(|level| level.last).collect();
        for last in lasts {
            paged.records.push(paged.pages);
            paged.pages += last + 1;
        }
        Some(paged)
    }

    /// Returns the geometry of the full keys.
    #[must_use]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns the form of the keys.
    #[must_use]
    pub const fn form(&self) -> Form {
        self.form
    }

    /// Returns the layout inside pages whose words have `width` bytes. Only places inside a page are valid in
    /// it.
    #[must_use]
    pub fn tree(&self, width: u32) -> Option<&Tree> {
        self.trees.get(width_log(width).checked_sub(1)?)?.as_ref()
    }

    /// Returns the levels of pages, top first, with their page numbers; their lines are those of words as wide
    /// as the keys.
    #[must_use]
    pub fn levels(&self) -> &[PageLevel] {
        self.tree(self.geometry.key_bytes).map_or(&[], |tree| &tree.pages)
    }

    /// Returns the number of the first record of each level of pages.
    #[must_use]
    pub fn records(&self) -> &[u64] {
        &self.records
    }

    /// Returns the number of pages, which is also the number of records.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the bytes per record.
    #[must_use]
    pub const fn record_bytes(&self) -> usize {
        PageRecord::bytes(self.geometry.key_bytes)
    }

    /// Returns the offset of the first byte after the records, where the first page begins.
    #[must_use]
    pub const fn pages_at(&self) -> u64 {
        (self.pages * self.record_bytes() as u64).next_multiple_of(LINE_BYTES)
    }

    /// Returns the bytes of a page whose words have `width` bytes; `part` is 1 for the last page of its
    /// level. Returns `None` if there is no such width or level.
    #[must_use]
    pub fn page_bytes(&self, width: u32, level: usize, part: usize) -> Option<u64> {
        Some(self.tree(width)?.pages.get(level)?.slots.get(part)? * u64::from(width))
    }

    /// Returns the place of a page of `bytes` bytes, if the page before it ends at `end`.
    #[inline(always)]
    #[must_use]
    pub const fn place(&self, bytes: u64, end: u64) -> u64 {
        let at = end.next_multiple_of(align(bytes));
        let straddles = self.geometry.aligned && at % UNIT_BYTES + bytes > UNIT_BYTES;
        if straddles { at.next_multiple_of(UNIT_BYTES) } else { at }
    }

    /// Returns the bytes of the whole tree if its last page ends at `end`.
    #[must_use]
    pub const fn bytes(end: u64) -> u64 {
        end.next_multiple_of(LINE_BYTES) + SLACK_BYTES
    }
}

/// Returns the alignment of a page of `bytes` bytes: a power of two from 16 to 64.
#[inline(always)]
#[must_use]
pub const fn align(bytes: u64) -> u64 {
    if bytes > 32 {
        LINE_BYTES
    } else if bytes > PLACE_BYTES {
        32
    } else {
        PLACE_BYTES
    }
}

const fn width_log(width: u32) -> usize {
    match width {
        2 => 1,
        4 => 2,
        8 => 3,
        16 => 4,
        _ => 0,
    }
}

/// The record of a page: how its words represent its keys, and where they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageRecord {
    /// The page's smallest key.
    pub base: u128,
    /// Nibbles that the words keep, a bit each, the least significant nibble first; 0 if words are distances.
    pub kept: u32,
    /// Bytes per word: 2, 4, 8 or 16.
    pub width: u32,
    /// First byte of the page, relative to the start of the tree; a multiple of 16, below 2^44.
    pub place: u64,
}

/// Largest record, in bytes.
pub const RECORD_BYTES_MAX: usize = 32;
/// End of the last page that a record can name.
pub const PLACE_MAX: u64 = PLACE_BYTES << 40;

/// The choice of the nibbles of a partial key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Prefix {
    /// All nibbles that differ, wherever they are: the paper's choice.
    #[default]
    Noncontiguous,
    /// The first nibble that differs and those after it, whether they differ or not: the alternative for
    /// comparison.
    Contiguous,
}

/// A query as a word of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The word that is compared with the page's words.
    pub word: u128,
    /// True if words equal to it count as below the query.
    pub above: bool,
}

impl PageRecord {
    /// Returns the bytes of a record of a tree with keys of `key_bytes`.
    #[must_use]
    pub const fn bytes(key_bytes: u32) -> usize {
        if key_bytes == 16 { 32 } else { 16 }
    }

    /// Returns the narrowest width in which distances up to `span` fit.
    #[inline]
    #[must_use]
    pub const fn width(span: u128) -> u32 {
        if span <= u16::MAX as u128 {
            2
        } else if span <= u32::MAX as u128 {
            4
        } else if span <= u64::MAX as u128 {
            8
        } else {
            16
        }
    }

    /// Chooses the nibbles of partial keys of `width` bytes, of keys that differ in the bits `differ`: from the
    /// most significant nibble that differs on. O(width).
    #[inline]
    #[must_use]
    pub const fn keep(differ: u128, width: u32, prefix: Prefix) -> u32 {
        let mut left = nibbles_of(differ);
        let room = 2 * width;
        if matches!(prefix, Prefix::Noncontiguous) {
            while left.count_ones() > room {
                left &= left - 1;
            }
            return left;
        }
        if left == 0 {
            return 0;
        }
        let top = 32 - left.leading_zeros();
        left = u32::MAX >> (32 - top);
        if top > room { left & !(u32::MAX >> (32 - (top - room))) } else { left }
    }

    /// Returns the bits of the nibbles that words keep.
    #[inline(always)]
    #[must_use]
    pub const fn mask(self) -> u128 {
        spread(self.kept)
    }

    /// Returns the bits in which all keys of a page of partial keys agree with its base. If the word is full,
    /// nothing is known about the bits below the last kept nibble.
    #[inline(always)]
    #[must_use]
    pub const fn agreed(self, mask: u128) -> u128 {
        let is_full = self.kept.count_ones() >= 2 * self.width && mask != 0;
        let known = if is_full { !((mask & mask.wrapping_neg()) - 1) } else { u128::MAX };
        known & !mask
    }

    /// Returns the word of a key: its distance, or its kept nibbles, packed. O(kept nibbles).
    #[inline]
    #[must_use]
    pub const fn word(self, key: u128) -> u128 {
        if self.kept == 0 { key.wrapping_sub(self.base) } else { self.packed(key) }
    }

    /// Returns the kept nibbles of a key, packed in order to the low end.
    #[inline]
    #[must_use]
    pub const fn packed(self, key: u128) -> u128 {
        let (mut word, mut left) = (0, self.kept);
        while left != 0 {
            let nibble = 31 - left.leading_zeros();
            word = word << 4 | (key >> (4 * nibble)) & 15;
            left &= !(1 << nibble);
        }
        word
    }

    /// Replaces a query by a key that has a word. If the query differs from the page's keys in a dropped
    /// nibble, the kept bits after it become all zero, or they become all ones and the flag returned is true.
    #[inline(always)]
    #[must_use]
    pub const fn settle(self, query: u128, mask: u128) -> (u128, bool) {
        let off = (query ^ self.base) & self.agreed(mask);
        if off == 0 {
            return (query, false);
        }
        // The topmost bit decides. Kept nibbles above it may also differ from the base.
        let top = 1 << (127 - off.leading_zeros());
        let after = top | (top - 1);
        if query & top != 0 { (query | after, true) } else { (query & !after, false) }
    }

    /// Returns a query as a word of a page; `None` if all words are below the query, since no distance is as
    /// long. This is the slow version.
    #[must_use]
    pub const fn probe(self, query: u128) -> Option<Probe> {
        if self.kept == 0 {
            let word = query.saturating_sub(self.base);
            let fits = word <= u128::MAX >> (128 - 8 * self.width);
            return if fits { Some(Probe { word, above: false }) } else { None };
        }
        let (key, above) = self.settle(query, self.mask());
        Some(Probe { word: self.packed(key), above })
    }

    /// Reports whether a reader can use the record: its width is one of those of the keys, and a word has room
    /// for the nibbles.
    #[inline(always)]
    #[must_use]
    pub const fn is_sound(self, key_bytes: u32) -> bool {
        let has_width = matches!(self.width, 2 | 4 | 8 | 16) && self.width <= key_bytes;
        has_width && self.kept.count_ones() <= 2 * self.width
    }

    /// Returns its bytes in a tree of keys of `key_bytes`; the first [`PageRecord::bytes`] of them are stored.
    #[inline]
    #[must_use]
    pub fn encode(self, key_bytes: u32) -> [u8; RECORD_BYTES_MAX] {
        let mut bytes = [0; RECORD_BYTES_MAX];
        if key_bytes == 16 {
            let after = u64::from(self.width) << 32 | u64::from(self.kept);
            bytes[..16].copy_from_slice(&self.base.to_le_bytes());
            bytes[16..24].copy_from_slice(&after.to_le_bytes());
            bytes[24..].copy_from_slice(&self.place.to_le_bytes());
        } else {
            let place = (self.place / PLACE_BYTES) << 24;
            let after = place | u64::from(self.width) << 16 | u64::from(self.kept & 0xFFFF);
            bytes[..8].copy_from_slice(&(self.base as u64).to_le_bytes());
            bytes[8..16].copy_from_slice(&after.to_le_bytes());
        }
        bytes
    }

    /// Reads a record of a tree of keys of `key_bytes`, without checks; `None` if there are too few bytes.
    #[inline(always)]
    #[must_use]
    pub fn decode(key_bytes: u32, bytes: &[u8]) -> Option<Self> {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |at: usize| words.get(at).map(|&word| u64::from_le_bytes(word));
        if key_bytes == 16 {
            let (low, high, after, place) = (word(0)?, word(1)?, word(2)?, word(3)?);
            let base = u128::from(high) << 64 | u128::from(low);
            let width = (after >> 32) as u8;
            return Some(Self { base, kept: after as u32, width: width.into(), place });
        }
        let (base, after) = (word(0)?, word(1)?);
        let (kept, width) = (after as u16, (after >> 16) as u8);
        let place = (after >> 24) * PLACE_BYTES;
        Some(Self { base: base.into(), kept: kept.into(), width: width.into(), place })
    }
}

/// Returns a bit for each nibble that is not zero.
const fn nibbles_of(bits: u128) -> u32 {
    let some = bits | bits >> 1;
    let mut left = (some | some >> 2) & (u128::MAX / 15);
    // Gathers bit 4 i in bit i.
    left = (left | left >> 3) & (u128::MAX / 0xFF * 3);
    left = (left | left >> 6) & (u128::MAX / 0xFFFF * 0xF);
    left = (left | left >> 12) & (u128::MAX / 0xFFFF_FFFF * 0xFF);
    left = (left | left >> 24) & (u128::MAX / 0xFFFF_FFFF_FFFF_FFFF * 0xFFFF);
    (left | left >> 48) as u32
}

/// Returns all bits of the nibbles for which there is a bit.
#[inline(always)]
const fn spread(kept: u32) -> u128 {
    let mut left = kept as u128;
    left = (left | left << 48) & (u128::MAX / 0xFFFF_FFFF_FFFF_FFFF * 0xFFFF);
    left = (left | left << 24) & (u128::MAX / 0xFFFF_FFFF * 0xFF);
    left = (left | left << 12) & (u128::MAX / 0xFFFF * 0xF);
    left = (left | left << 6) & (u128::MAX / 0xFF * 3);
    left = (left | left << 3) & (u128::MAX / 15);
    left * 15
}
