//! A sorted column where it lies: elements by rank, without a copy where nobody can change the bytes.

use crate::error::ReadError;
use crate::index::Index;
use pleach_format::FormatError;
use pleach_format::column::GUARD_BYTES;
use pleach_format::view::ColumnPlace;
use std::borrow::Cow;

/// The key column or the value column of an open file. Elements are as Arrow holds them.
#[derive(Clone, Copy)]
pub struct Column<'a> {
    index: &'a Index,
    place: ColumnPlace,
    offsets: &'a [u8],
    data: &'a [u8],
    /// The data with what follows it, so that whole words can be read at its end.
    guarded: &'a [u8],
}

impl<'a> Column<'a> {
    /// `None` if the file has no such column.
    pub(crate) fn new(index: &'a Index, place: Option<ColumnPlace>) -> Option<Self> {
        let place = place?;
        let slice = |offset: u64, length: u64| {
            let bytes = index.bytes().get(usize::try_from(offset).ok()?..)?;
            bytes.get(..usize::try_from(length).ok()?)
        };
        let shape = place.shape;
        let offsets = match shape.offset_bytes {
            0 => &[],
            width => slice(place.offset, (shape.elements + 1) * width)?,
        };
        let guarded = slice(place.data_offset(), shape.data_bytes.checked_add(GUARD_BYTES)?)?;
        let data = guarded.get(..usize::try_from(shape.data_bytes).ok()?)?;
        Some(Self { index, place, offsets, data, guarded })
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.place.shape.elements
    }
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes of an element; `None` if they vary.
    #[must_use]
    pub fn element_bytes(&self) -> Option<u64> {
        Some(self.place.shape.element_bytes).filter(|&bytes| bytes > 0)
    }
    /// Bytes of an offset, 4 or 8; `None` if elements do not vary.
    #[must_use]
    pub fn offset_bytes(&self) -> Option<u64> {
        Some(self.place.shape.offset_bytes).filter(|&bytes| bytes > 0)
    }
    /// The offsets, one more than elements; empty if elements do not vary. Unverified; a copy of what is mapped.
    #[must_use]
    pub fn offsets(&self) -> Cow<'a, [u8]> {
        self.index.shown(self.offsets)
    }
    /// All elements, one after the other. Unverified; a copy of what is mapped.
    #[must_use]
    pub fn data(&self) -> Cow<'a, [u8]> {
        self.index.shown(self.data)
    }

    /// Where the column lies in the file, and offsets and data.
    #[cfg(feature = "arrow")]
    pub(crate) fn parts(&self) -> (ColumnPlace, &'a [u8], &'a [u8]) {
        (self.place, self.offsets, self.data)
    }
    #[inline]
    pub(crate) fn check_mapping(&self) -> Result<(), ReadError> {
        self.index.check_mapping()
    }

    #[inline(always)]
    fn offset(&self, rank: u64) -> usize {
        let offset = match self.place.shape.offset_bytes {
            4 => {
                let at = self.offsets.get(rank as usize * 4..).and_then(<[u8]>::first_chunk);
                at.map_or(0, |&bytes| u64::from(u32::from_le_bytes(bytes)))
            }
            _ => {
                let at = self.offsets.get(rank as usize * 8..).and_then(<[u8]>::first_chunk);
                at.map_or(0, |&bytes| u64::from_le_bytes(bytes))
            }
        };
        usize::try_from(offset).unwrap_or(usize::MAX)
    }

    /// First and last byte of an element. What a damaged file says may lie anywhere.
    #[inline(always)]
    fn bounds(&self, rank: u64) -> (usize, usize) {
        match self.place.shape.element_bytes {
            0 => (self.offset(rank), self.offset(rank.saturating_add(1))),
            bytes => {
                let at = rank.saturating_mul(bytes);
                (at as usize, at.saturating_add(bytes) as usize)
            }
        }
    }

    /// The element of a rank, unverified; empty if there is none, or if its offsets make no sense.
    #[inline(always)]
    pub(crate) fn at(&self, rank: u64) -> &'a [u8] {
        let (start, end) = self.bounds(rank);
        self.data.get(start..end).unwrap_or_default()
    }

    /// The element of a rank and the bytes behind it, at least [`GUARD_BYTES`]; of a column of one size.
    /// Unverified; empty past the end.
    #[inline(always)]
    pub(crate) fn guarded(&self, rank: u64) -> &'a [u8] {
        let start = rank.saturating_mul(self.place.shape.element_bytes) as usize;
        self.guarded.get(start..).unwrap_or_default()
    }

    /// Hints that the offsets of a rank will be read soon.
    #[inline(always)]
    pub(crate) fn prefetch_offset(&self, rank: u64) {
        let at = (rank as usize).wrapping_mul(self.place.shape.offset_bytes as usize);
        crate::arch::prefetch(self.offsets.as_ptr().wrapping_add(at));
    }

    /// Hints that the first bytes of an element will be read soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self, rank: u64) {
        const LINES_MAX: usize = 4;
        let (start, end) = self.bounds(rank);
        let first = self.data.as_ptr().wrapping_add(start) as usize & !63;
        let last = self.data.as_ptr().wrapping_add(end.wrapping_sub(1)) as usize;
        for line in 0..LINES_MAX {
            let address = first.wrapping_add(line * 64);
            if address > last {
                break;
            }
            crate::arch::prefetch(address as *const u8);
        }
    }

    /// The element of a rank; `None` past the end. Verified as the index is. A copy of what is mapped: anybody may
    /// overwrite that while it is looked at.
    pub fn get(&self, rank: u64) -> Result<Option<Cow<'a, [u8]>>, ReadError> {
        let element = self.get_in_place(rank)?.map(|element| self.index.shown(element));
        self.index.check_mapping()?;
        Ok(element)
    }

    /// [`Column::get`] where it lies: whoever reads it asks [`Column::check_mapping`] afterwards, and rests nothing on
    /// what it reads twice.
    pub(crate) fn get_in_place(&self, rank: u64) -> Result<Option<&'a [u8]>, ReadError> {
        if rank >= self.len() {
            return Ok(None);
        }
        if let Some(verified) = self.index.verified() {
            let width = self.place.shape.offset_bytes;
            if width > 0 {
                verified.check_range(self.place.offset + rank * width, 2 * width)?;
            }
            let (start, end) = self.bounds(rank);
            if start > end || end > self.data.len() {
                self.index.check_mapping()?;
                return Err(self.broken(rank));
            }
            verified.check_range(self.place.data_offset() + start as u64, (end - start) as u64)?;
        }
        Ok(Some(self.at(rank)))
    }

    fn broken(&self, rank: u64) -> ReadError {
        ReadError::Format(FormatError::Corrupt {
            what: "column",
            offset: self.place.offset + rank * self.place.shape.offset_bytes,
            rule: "offsets must ascend inside the column",
            found: self.offset(rank) as u64,
        })
    }
}
