//! PACK: the sorted keys as a compressed column (FAST, Kim et al., section 7.2: integers by page).
//!
//! A page has [`PAGE_KEYS`] keys. Its *base* is the word of its first key. Keys ascend, so all keys of the
//! page are stored as distances from the base, which need few bits. All distances of a page have as many bits
//! as the largest one needs.
//!
//! One record per page is stored before all pages: where the page begins, the width of its distances, and its
//! base. So any key is found in two reads, without the keys before it.

use crate::bits::{self, Writer};
pub use crate::column::GUARD_BYTES;
use crate::key::Word;
use crate::layout::align_up;
use crate::section::{ARRAY_ALIGN, PackedParameters, Parameters};

/// Keys per page; a power of two, so that a page of any width ends on a whole byte.
pub const PAGE_KEYS: usize = 1024;
/// Bytes per record.
pub const RECORD_BYTES: usize = 16;
/// Bytes of a page for each bit of its width.
pub const WIDTH_BYTES: u64 = PAGE_KEYS as u64 / 8;

/// Record of a page, stored before all pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Word of the page's first key.
    pub base: u64,
    /// First byte of the page, relative to that of the first page.
    pub place: u64,
    /// Bits per distance: 0 to 64.
    pub width: u8,
}

impl Record {
    /// Returns the bytes stored in the file.
    #[must_use]
    pub fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(&self.base.to_le_bytes());
        bytes[8..15].copy_from_slice(&self.place.to_le_bytes()[..7]);
        bytes[15] = self.width;
        bytes
    }

    /// Reads the stored bytes.
    #[inline]
    #[must_use]
    pub fn from_bytes(bytes: &[u8; RECORD_BYTES]) -> Self {
        let [base, place] =
            [0, 8].map(|at| bytes[at..].first_chunk().map_or(0, |&eight| u64::from_le_bytes(eight)));
        Self { base, place: place << 8 >> 8, width: bytes[15] }
    }

    /// Returns the bytes of the page.
    #[must_use]
    pub fn page_bytes(self) -> u64 {
        u64::from(self.width) * WIDTH_BYTES
    }
}

/// Sizes and places of the arrays in the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedGeometry {
    /// Number of keys.
    pub keys: u64,
    /// Number of pages; the last page may have fewer keys.
    pub pages: u64,
    /// First byte of the first page.
    pub data_at: u64,
    /// Bytes of all pages.
    pub data_bytes: u64,
    /// Bytes per word: 4 or 8.
    pub word_bytes: u64,
}

impl PackedGeometry {
    /// Creates the layout of `keys` keys whose pages take `data_bytes` bytes. Returns `None` on overflow.
    #[must_use]
    pub fn new(keys: u64, word_bytes: usize, data_bytes: u64) -> Option<Self> {
        let pages = keys.div_ceil(PAGE_KEYS as u64);
        let data_at = align_up(pages.checked_mul(RECORD_BYTES as u64)?, ARRAY_ALIGN)?;
        Some(Self { keys, pages, data_at, data_bytes, word_bytes: word_bytes as u64 })
    }

    /// Returns the bytes of the section, or `None` on overflow.
    #[must_use]
    pub fn bytes(self) -> Option<u64> {
        self.data_at.checked_add(self.data_bytes)?.checked_add(GUARD_BYTES)
    }

    /// Returns the parameters of the section.
    #[must_use]
    pub fn parameters(self) -> PackedParameters {
        PackedParameters {
            word_bytes: (self.word_bytes as u32).into(),
            page_keys: (PAGE_KEYS as u32).into(),
            reserved: [0; 56],
        }
    }

    /// Reads the shape of a section of `length` bytes from its parameters. Returns `None` if no shape
    /// matches.
    #[must_use]
    pub fn from_parameters(stored: Parameters, keys: u64, length: u64) -> Option<Self> {
        let stored = PackedParameters::from(stored);
        let word_bytes = stored.word_bytes.get() as usize;
        let empty = Self::new(keys, word_bytes, 0)?;
        let this = Self { data_bytes: length.checked_sub(empty.bytes()?)?, ..empty };
        (matches!(word_bytes, 4 | 8) && this.parameters() == stored).then_some(this)
    }
}

/// Returns the base and the width of a page of ascending words.
#[must_use]
pub fn shape_of<W: Word>(words: &[W]) -> (u64, u8) {
    let (Some(first), Some(last)) = (words.first(), words.last()) else { return (0, 0) };
    let (base, last) = (first.to_u128() as u64, last.to_u128() as u64);
    (base, (u64::BITS - last.saturating_sub(base).leading_zeros()) as u8)
}

/// Appends the page of up to [`PAGE_KEYS`] ascending words: `width * WIDTH_BYTES` bytes.
pub fn pack<W: Word>(words: &[W], out: &mut Vec<u8>) {
    let (base, width) = shape_of(words);
    let end = out.len() + usize::from(width) * WIDTH_BYTES as usize;
    let mut writer = Writer::new(out);
    for word in words {
        writer.push(word.to_u128() as u64 - base, width.into());
    }
    writer.finish(end);
}

/// Returns word number `slot` of a page. `page` must contain the bytes of the page up to that word and eight
/// more; otherwise the result is an arbitrary word.
#[inline]
#[must_use]
pub fn word(record: Record, page: &[u8], slot: usize) -> u64 {
    let width = u32::from(record.width.min(64));
    if width == 0 {
        return record.base;
    }
    let bit = (slot % PAGE_KEYS) * width as usize;
    let from = page.get(bit / 8..).unwrap_or_default();
    let shift = bit as u32 % 8;
    let Some(distance) = bits::read(from, shift, shift + width > 64) else { return record.base };
    record.base.wrapping_add(distance & (u64::MAX >> (64 - width)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_and_back() {
        for width in 0..=64u32 {
            for count in [1, 2, 7, PAGE_KEYS - 1, PAGE_KEYS] {
                let top = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
                let base = u64::MAX - top;
                let mut words: Vec<u64> =
                    (0..count as u64).map(|i| base + (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) & top)).collect();
                words[0] = base;
                words[count - 1] = base + top;
                words.sort_unstable();
                let mut page = vec![7];
                pack(&words, &mut page);
                let (base, width) = shape_of(&words);
                assert_eq!(page.len() as u64, 1 + u64::from(width) * WIDTH_BYTES);
                page.extend([0xA5; 8]);
                let record = Record { base, place: 3, width };
                assert_eq!(Record::from_bytes(&record.to_bytes()), record);
                for (slot, &wanted) in words.iter().enumerate() {
                    assert_eq!(word(record, &page[1..], slot), wanted, "{width} {count} {slot}");
                }
            }
        }
        assert_eq!(shape_of::<u32>(&[]), (0, 0));
        let wrong = Record { base: 1, place: u64::MAX >> 8, width: 200 };
        assert_eq!(word(wrong, &[], 5000), 1);
    }
}
