//! Compressed classic trees: each page stores narrow words that represent its keys.
//!
//! ```text
//! records   one a page, levels top first, pages in order; zero bytes to a multiple of 64
//! pages     in the same order; each at a multiple of min(64, its bytes rounded up to a power of two)
//! 64 zero bytes
//! ```
//! **delta** (4- and 8-byte keys): a word is `key - base`, in 2, 4 or 8 bytes; the base is the smallest key
//! of the page. Nothing is lost: a search ends where it would end in the full tree.
//!
//! **partial** (16-byte keys): a word is those nibbles of the key, most significant first, in which the keys
//! of the page differ, until 32 bits are full (in the first page 32, 64 or 128). The order is kept, but
//! different keys may have equal words. So a search ends near its goal, and then compares full keys.
//!
//! The lines inside a page are those of [`Geometry`]. d_K and d_L are deeper by the logarithm of the ratio of
//! a key's width to a word's, so that blocks and lines keep their bytes.
//!
//! The source is Kim et al., TODS 36(4), sections 7.1 and 7.2. Two things differ: base and width are found by
//! one load each, since keys are sorted; and widths are powers of two, so that words are compared in place.

use super::{Geometry, PageLevel, SLACK_BYTES, Tree};

/// Bytes of a [`Delta`] record.
pub const DELTA_BYTES: usize = 16;
/// Bytes of a [`Partial`] record.
pub const PARTIAL_BYTES: usize = 32;
const LINE_BYTES: u64 = 64;

/// Form of the keys in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Keys in full.
    Full,
    /// Distances from the page's smallest key.
    Delta,
    /// The nibbles in which the page's keys differ.
    Partial {
        /// Bytes per word of the first page: 4, 8 or 16.
        first: u32,
    },
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
    /// Lays out a tree of compressed keys. Returns `None` for [`Form::Full`], for a form that is invalid for
    /// keys of this width, for pages with fewer levels than a line of the narrowest words, and if
    /// [`Geometry::tree`] does.
    #[must_use]
    pub fn new(geometry: Geometry, form: Form) -> Option<Self> {
        let widths: &[u32] = match (form, geometry.key_bytes) {
            (Form::Delta, 4) => &[2, 4],
            (Form::Delta, 8) => &[2, 4, 8],
            (Form::Partial { first: first @ (4 | 8 | 16) }, 16) => &[4, first],
            _ => return None,
        };
        let mut trees = [const { None }; 4];
        for &width in widths {
            let deeper = (geometry.key_bytes / width).ilog2();
            let d_k = geometry.d_k.checked_add(deeper)?;
            let d_l = geometry.d_l.checked_add(deeper)?;
            let narrow = Geometry { key_bytes: width, d_k, d_l, ..geometry };
            trees[width_log(width) - 1] = Some(Tree::new(narrow, false)?);
        }
        let mut paged = Self { geometry, form, trees, records: Vec::new(), pages: 0 };
        let all = paged.tree(4)?;
        let lasts: Vec<u64> = all.pages.iter().map(|level| level.last).collect();
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

    /// Returns the levels of pages, top first, with their page numbers; their lines are those of 4-byte
    /// words.
    #[must_use]
    pub fn levels(&self) -> &[PageLevel] {
        self.tree(4).map_or(&[], |tree| &tree.pages)
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
        if matches!(self.form, Form::Delta) { DELTA_BYTES } else { PARTIAL_BYTES }
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

    /// Returns the place of the first page of each level, and the end of the last page, of a
    /// [`Form::Partial`] tree, whose pages have fixed widths. For other forms there are no places, and the
    /// end is 0.
    #[must_use]
    pub fn partial_places(&self) -> (Vec<u64>, u64) {
        let Form::Partial { first } = self.form else { return (Vec::new(), 0) };
        let mut at = self.pages_at();
        let mut places = Vec::new();
        for (level, pages) in self.levels().iter().enumerate() {
            let width = if level == 0 { first } else { 4 };
            let whole = self.page_bytes(width, level, 0).unwrap_or(0);
            let last = self.page_bytes(width, level, 1).unwrap_or(0);
            let stride = whole.next_multiple_of(align(whole));
            // An alignment for a whole page also suits the shorter last one.
            at = at.next_multiple_of(align(whole));
            places.push(at);
            at += pages.last * stride + last;
        }
        (places, at)
    }

    /// Returns the bytes from one whole page of a level to the next, in a [`Form::Partial`] tree.
    #[must_use]
    pub fn partial_stride(&self, width: u32, level: usize) -> u64 {
        let whole = self.page_bytes(width, level, 0).unwrap_or(0);
        whole.next_multiple_of(align(whole))
    }

    /// Returns the bytes of the whole tree if its last page ends at `end`.
    #[must_use]
    pub const fn bytes(end: u64) -> u64 {
        end.next_multiple_of(LINE_BYTES) + SLACK_BYTES
    }
}

/// Returns the alignment of a page of `bytes` bytes.
#[must_use]
pub const fn align(bytes: u64) -> u64 {
    if bytes > LINE_BYTES / 2 {
        LINE_BYTES
    } else if bytes == 0 {
        1
    } else {
        bytes.next_power_of_two()
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

/// Record of a page of distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Smallest key of the page.
    pub base: u64,
    /// First byte of the page, relative to the start of the tree; below 2^56.
    pub place: u64,
    /// Bytes per word: 2, 4 or 8.
    pub width: u32,
}

impl Delta {
    /// Returns the narrowest width that has room for every distance up to `span`.
    #[inline]
    #[must_use]
    pub const fn width(span: u64) -> u32 {
        if span <= u16::MAX as u64 {
            2
        } else if span <= u32::MAX as u64 {
            4
        } else {
            8
        }
    }

    /// Returns its bytes: base (8), then width (1) and place (7).
    #[inline]
    #[must_use]
    pub fn encode(self) -> [u8; DELTA_BYTES] {
        (u128::from(self.place << 8 | u64::from(self.width)) << 64 | u128::from(self.base)).to_le_bytes()
    }

    /// Reads what [`Delta::encode`] wrote, without checks.
    #[inline(always)]
    #[must_use]
    pub fn decode(bytes: [u8; DELTA_BYTES]) -> Self {
        let word = u128::from_le_bytes(bytes);
        let high = (word >> 64) as u64;
        Self { base: word as u64, place: high >> 8, width: (high & 0xFF) as u32 }
    }
}

/// Record of a page of partial keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    /// The page's smallest key.
    pub reference: u128,
    /// The kept bits; whole nibbles.
    pub mask: u128,
}

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

impl Partial {
    /// Creates the record of a page whose keys differ from `reference` in the bits `differ`; words have
    /// `bits` bits. O(bits).
    #[inline]
    #[must_use]
    pub fn new(reference: u128, differ: u128, bits: u32, prefix: Prefix) -> Self {
        const ONES: u128 = u128::MAX / 15;
        let some = differ | differ >> 1;
        let mut left = ((some | some >> 2) & ONES) * 15;
        if left.count_ones() <= bits && prefix == Prefix::Noncontiguous {
            return Self { reference, mask: left };
        }
        let mut mask = 0;
        for _ in 0..bits / 4 {
            if left == 0 {
                break;
            }
            let high = 15 << ((127 - left.leading_zeros()) & !3);
            mask |= high;
            left = match prefix {
                Prefix::Noncontiguous => left & !high,
                Prefix::Contiguous => high >> 4,
            };
        }
        Self { reference, mask }
    }

    /// Returns the bits in which all keys of the page agree with the reference key. If the word is full,
    /// nothing is known about the bits below the last kept nibble.
    #[inline(always)]
    #[must_use]
    pub const fn agreed(self, bits: u32) -> u128 {
        let full = self.mask.count_ones() >= bits && self.mask != 0;
        let known = if full { !((self.mask & self.mask.wrapping_neg()) - 1) } else { u128::MAX };
        known & !self.mask
    }

    /// Returns the word of a key of the page: its kept bits, packed. This is the slow version, O(128).
    #[must_use]
    pub const fn word(self, key: u128) -> u128 {
        let (mut word, mut bit) = (0, 128);
        while bit > 0 {
            bit -= 1;
            if self.mask >> bit & 1 == 1 {
                word = word << 1 | key >> bit & 1;
            }
        }
        word
    }

    /// Replaces a query by a key that has a word. If the query differs from the page's keys in a dropped
    /// nibble, the kept bits after it become all zero, or they become all ones and the flag returned is true.
    #[inline(always)]
    #[must_use]
    pub const fn settle(self, query: u128, bits: u32) -> (u128, bool) {
        let off = (query ^ self.reference) & self.agreed(bits);
        if off == 0 {
            return (query, false);
        }
        // The topmost bit decides. Kept nibbles above it may also differ from the reference key.
        let top = 1 << (127 - off.leading_zeros());
        let after = top | (top - 1);
        if query & top != 0 { (query | after, true) } else { (query & !after, false) }
    }

    /// Returns a query as a word. This is the slow version.
    #[must_use]
    pub const fn probe(self, query: u128, bits: u32) -> Probe {
        let (key, above) = self.settle(query, bits);
        Probe { word: self.word(key), above }
    }

    /// Returns its bytes: reference, mask.
    #[inline]
    #[must_use]
    pub fn encode(self) -> [u8; PARTIAL_BYTES] {
        let mut bytes = [0; PARTIAL_BYTES];
        bytes[..16].copy_from_slice(&self.reference.to_le_bytes());
        bytes[16..].copy_from_slice(&self.mask.to_le_bytes());
        bytes
    }

    /// Reads what [`Partial::encode`] wrote, without checks.
    #[inline(always)]
    #[must_use]
    pub fn decode(bytes: &[u8; PARTIAL_BYTES]) -> Self {
        let (halves, _) = bytes.as_chunks::<16>();
        Self { reference: u128::from_le_bytes(halves[0]), mask: u128::from_le_bytes(halves[1]) }
    }
}
