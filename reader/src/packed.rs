//! The compressed key column of an open file, with access by rank.

use crate::error::ReadError;
use crate::index::Index;
use pleach_format::key::{Key, Word};
use pleach_format::packed::{self, PAGE_KEYS, PackedGeometry, RECORD_BYTES, Record};
use std::marker::PhantomData;
use std::ops::Range;

/// Sorted keys in pages of 1024. Each page has a base and distances from it, of as few bits as the page needs
/// (FAST, Kim et al., section 7.2). A file has this column if it was built with
/// `--layout lines,spine,packed`.
#[derive(Clone, Copy)]
pub struct Packed<'a, K> {
    index: &'a Index,
    offset: u64,
    shape: PackedGeometry,
    records: &'a [u8],
    /// All pages, and the guard bytes after them.
    pages: &'a [u8],
    keys: PhantomData<K>,
}

impl Index {
    /// Returns the compressed column of keys, if the file has one of this type.
    #[must_use]
    pub fn packed_keys<K: Key>(&self) -> Option<Packed<'_, K>> {
        Packed::new(self)
    }
}

impl<'a, K: Key> Packed<'a, K> {
    pub(crate) fn new(index: &'a Index) -> Option<Self> {
        let (offset, shape) = index.header().packed?;
        if K::TYPE != index.key_type() {
            return None;
        }
        let section = index.bytes().get(usize::try_from(offset).ok()?..)?;
        let section = section.get(..usize::try_from(shape.bytes()?).ok()?)?;
        let (records, pages) = section.split_at_checked(usize::try_from(shape.data_at).ok()?)?;
        Some(Self { index, offset, shape, records, pages, keys: PhantomData })
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shape.keys
    }
    /// Returns true if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the size of records and pages in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shape.data_at + self.shape.data_bytes
    }

    /// Returns the key of a word of the lines.
    fn key(&self, word: u64) -> K {
        K::decode(match &self.index.header().short {
            None => K::Word::from_u64(word),
            Some(short) => short.key(word),
        })
    }

    /// Returns the record and the bytes of a page, verified as the index is.
    fn page(&self, number: u64) -> Result<(Record, &'a [u8]), ReadError> {
        let at = number * RECORD_BYTES as u64;
        if let Some(verified) = self.index.verified() {
            verified.check_range(self.offset + at, RECORD_BYTES as u64)?;
        }
        let record = self.records.get(at as usize..).and_then(<[u8]>::first_chunk);
        let record = record.map_or(Record::default(), Record::from_bytes);
        // In a damaged file the place can be any number.
        let pages = self.pages.get(usize::try_from(record.place).unwrap_or(usize::MAX)..).unwrap_or_default();
        if let Some(verified) = self.index.verified() {
            let length = record.page_bytes().min(pages.len() as u64);
            let start = self.offset + self.shape.data_at + record.place;
            verified.check_range(start.min(self.index.bytes().len() as u64 - length), length)?;
        }
        Ok((record, pages))
    }

    /// Returns the key at `rank`; `None` if `rank` is past the last key. O(1).
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn get(&self, rank: u64) -> Result<Option<K>, ReadError> {
        if rank >= self.len() {
            return Ok(None);
        }
        let (record, page) = self.page(rank / PAGE_KEYS as u64)?;
        let word = packed::word(record, page, (rank % PAGE_KEYS as u64) as usize);
        self.index.check_mapping()?;
        Ok(Some(self.key(word)))
    }

    /// Appends the keys of a range of ranks, which is cut at [`Packed::len`], to `keys`. Nothing is appended
    /// on an error.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn read(&self, ranks: Range<u64>, keys: &mut Vec<K>) -> Result<(), ReadError> {
        let before = keys.len();
        let read = self.read_all(ranks, keys).and_then(|()| self.index.check_mapping());
        // On an error no key is kept: a lost mapping yields zeros, not keys.
        read.inspect_err(|_| keys.truncate(before))
    }

    fn read_all(&self, ranks: Range<u64>, keys: &mut Vec<K>) -> Result<(), ReadError> {
        let (mut rank, end) = (ranks.start, ranks.end.min(self.len()));
        while rank < end {
            let (record, page) = self.page(rank / PAGE_KEYS as u64)?;
            let first = (rank % PAGE_KEYS as u64) as usize;
            let count = (end - rank).min((PAGE_KEYS - first) as u64);
            let slots = first..first + count as usize;
            keys.extend(slots.map(|slot| self.key(packed::word(record, page, slot))));
            rank += count;
        }
        Ok(())
    }
}
