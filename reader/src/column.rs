//! A sorted column in place: elements by rank, without a copy if nobody else can change the bytes.

use crate::error::ReadError;
use crate::index::Index;
use crate::touched::Verified;
use pleach_format::FormatError;
use pleach_format::column::GUARD_BYTES;
use pleach_format::view::ColumnPlace;
use std::borrow::Cow;

/// Elements whose cache misses overlap.
const AHEAD: usize = 64;

/// The codes of values that are stored once, and the guard bytes after them.
#[derive(Clone, Copy)]
struct Codes<'a> {
    place: ColumnPlace,
    data: &'a [u8],
}

/// Bytes that are copied of an element that is no longer, at once: a constant, which takes no call.
pub(crate) const SHORT_BYTES: usize = 32;

impl Codes<'_> {
    /// Returns the code of a tuple, unverified; the index of no value past the end.
    #[inline(always)]
    fn at(&self, rank: u64) -> u64 {
        if rank >= self.place.shape.elements {
            return u64::MAX;
        }
        let bytes = self.place.shape.element_bytes;
        // No overflow: the section has this many bytes, and guard bytes after them.
        let word = self.data.get((rank * bytes) as usize..).and_then(<[u8]>::first_chunk);
        let word = word.map_or(u32::MAX, |&word| u32::from_le_bytes(word));
        (word & (u32::MAX >> (32 - 8 * bytes))).into()
    }
}

/// The key column or the value column of an open file, with elements in Arrow's layout.
#[derive(Clone, Copy)]
pub struct Column<'a> {
    index: &'a Index,
    place: ColumnPlace,
    /// Which element each tuple has, if equal values are stored once.
    codes: Option<Codes<'a>>,
    offsets: &'a [u8],
    data: &'a [u8],
    /// The data and the guard bytes after it, so that whole words can be read at its end.
    guarded: &'a [u8],
}

impl Index {
    /// Returns the sorted column of keys, if the file has one. Numbers are not encoded.
    #[must_use]
    pub fn key_column(&self) -> Option<Column<'_>> {
        Column::new(self, self.header().keys)
    }
    /// Returns the column of tails, the bytes of keys that their words leave out, if the file has one.
    pub(crate) fn tails(&self) -> Option<Column<'_>> {
        Column::new(self, self.header().tails)
    }
    /// Returns the sorted column of values, if the file has one; it always does if values are byte strings.
    #[must_use]
    pub fn value_column(&self) -> Option<Column<'_>> {
        let codes = self.header().codes.map(|place| {
            let length = place.shape.data_bytes.checked_add(GUARD_BYTES)?;
            Some(Codes { place, data: slice(self, place.data_offset(), length)? })
        });
        match codes {
            None => Column::new(self, self.header().values),
            Some(codes) => Some(Column { codes: Some(codes?), ..Column::new(self, self.header().values)? }),
        }
    }
}

/// Returns these bytes of a file; `None` if it is shorter.
fn slice(index: &Index, offset: u64, length: u64) -> Option<&[u8]> {
    let bytes = index.bytes().get(usize::try_from(offset).ok()?..)?;
    bytes.get(..usize::try_from(length).ok()?)
}

impl<'a> Column<'a> {
    /// Creates the view; `None` if the file does not have the column.
    pub(crate) fn new(index: &'a Index, place: Option<ColumnPlace>) -> Option<Self> {
        let place = place?;
        let shape = place.shape;
        let offsets = match shape.offset_bytes {
            0 => &[],
            width => slice(index, place.offset, (shape.elements + 1) * width)?,
        };
        let guarded = slice(index, place.data_offset(), shape.data_bytes.checked_add(GUARD_BYTES)?)?;
        let data = guarded.get(..usize::try_from(shape.data_bytes).ok()?)?;
        Some(Self { index, place, codes: None, offsets, data, guarded })
    }

    /// Returns the number of elements: one for each tuple, also if equal values are stored once.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.codes.map_or(self.place.shape.elements, |codes| codes.place.shape.elements)
    }
    /// Returns true if the column has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the bytes per element; `None` if elements vary in length.
    #[must_use]
    pub fn element_bytes(&self) -> Option<u64> {
        Some(self.place.shape.element_bytes).filter(|&bytes| bytes > 0)
    }
    /// Returns the bytes per offset, 4 or 8; `None` if elements have one length.
    #[must_use]
    pub fn offset_bytes(&self) -> Option<u64> {
        Some(self.place.shape.offset_bytes).filter(|&bytes| bytes > 0)
    }
    /// Returns the number of values that are stored: that of the tuples, or, if each value is stored once, that
    /// of the different ones.
    #[must_use]
    pub fn stored(&self) -> u64 {
        self.place.shape.elements
    }
    /// Returns the code of each tuple, which is the index of its value among the stored ones, if each value is
    /// stored once: numbers of one width, little-endian. Unverified; a copy if the file is mapped or remote. Bytes of
    /// a remote file that [`Index::bring`] has not brought are 0, here and in the next two.
    #[must_use]
    pub fn codes(&self) -> Option<Cow<'a, [u8]>> {
        let codes = self.codes?;
        let bytes = usize::try_from(codes.place.shape.data_bytes).ok()?;
        Some(self.index.shown(codes.data.get(..bytes)?))
    }
    /// Returns the offsets, one more than stored elements; empty if elements have one length. Unverified; a
    /// copy if the file is mapped or remote.
    #[must_use]
    pub fn offsets(&self) -> Cow<'a, [u8]> {
        self.index.shown(self.offsets)
    }
    /// Returns all stored elements, one after the other. Unverified; a copy if the file is mapped or remote.
    #[must_use]
    pub fn data(&self) -> Cow<'a, [u8]> {
        self.index.shown(self.data)
    }

    /// Returns the place of the column in the file, its offsets and its data.
    #[cfg(feature = "arrow")]
    pub(crate) fn parts(&self) -> (ColumnPlace, &'a [u8], &'a [u8]) {
        (self.place, self.offsets, self.data)
    }
    #[inline]
    pub(crate) fn check_mapping(&self) -> Result<(), ReadError> {
        self.index.check_mapping()
    }

    /// Returns true if equal values are stored once.
    #[inline(always)]
    pub(crate) fn is_coded(&self) -> bool {
        self.codes.is_some()
    }

    /// Returns the index of a tuple's element among the stored ones: its rank, or its code. Unverified.
    #[inline(always)]
    fn element(&self, rank: u64) -> u64 {
        match &self.codes {
            None => rank,
            Some(codes) => codes.at(rank),
        }
    }

    #[inline(always)]
    fn offset(&self, element: u64) -> usize {
        // The code of a damaged file can be any number.
        let Ok(element) = usize::try_from(element.min(self.place.shape.elements)) else { return usize::MAX };
        let offset = match self.place.shape.offset_bytes {
            4 => {
                let at = self.offsets.get(element * 4..).and_then(<[u8]>::first_chunk);
                at.map_or(0, |&bytes| u64::from(u32::from_le_bytes(bytes)))
            }
            _ => {
                let at = self.offsets.get(element * 8..).and_then(<[u8]>::first_chunk);
                at.map_or(0, |&bytes| u64::from_le_bytes(bytes))
            }
        };
        usize::try_from(offset).unwrap_or(usize::MAX)
    }

    /// Returns the start and the end of a stored element in the data. In a damaged file they can be any numbers.
    #[inline(always)]
    fn bounds(&self, element: u64) -> (usize, usize) {
        match self.place.shape.element_bytes {
            0 => (self.offset(element), self.offset(element.saturating_add(1))),
            bytes => {
                let at = element.saturating_mul(bytes);
                (at as usize, at.saturating_add(bytes) as usize)
            }
        }
    }

    /// Returns the element at `rank`, unverified; empty past the end, or if its offsets are not valid.
    #[inline(always)]
    pub(crate) fn at(&self, rank: u64) -> &'a [u8] {
        let (start, end) = self.bounds(self.element(rank));
        self.data.get(start..end).unwrap_or_default()
    }

    /// Returns the element at `rank` and the bytes after it, at least [`GUARD_BYTES`]; for a column of
    /// elements of one length. Unverified; empty past the end.
    #[inline(always)]
    pub(crate) fn guarded(&self, rank: u64) -> &'a [u8] {
        let start = self.element(rank).saturating_mul(self.place.shape.element_bytes) as usize;
        self.guarded.get(start..).unwrap_or_default()
    }

    /// Returns the bytes of an element, if all have as many, at most [`SHORT_BYTES`], and nothing is to be verified.
    pub(crate) fn short_bytes(&self) -> Option<usize> {
        let bytes = self.element_bytes().filter(|&bytes| bytes <= SHORT_BYTES as u64);
        bytes.filter(|_| self.index.verified().is_none()).map(|bytes| bytes as usize)
    }

    /// Returns a copy of the element at `rank` and of bytes after it, or before the end of the file zeros; zeros past
    /// the end. For a column with [`Column::short_bytes`].
    #[inline(always)]
    pub(crate) fn short(&self, rank: u64) -> [u8; SHORT_BYTES] {
        let bytes = self.guarded(rank);
        bytes.first_chunk().copied().unwrap_or_else(|| {
            let mut copy = [0; SHORT_BYTES];
            copy.iter_mut().zip(bytes).for_each(|(to, &byte)| *to = byte);
            copy
        })
    }

    /// Prefetches the code or the offsets of the element at `rank`.
    #[inline(always)]
    pub(crate) fn prefetch_offset(&self, rank: u64) {
        if let Some(codes) = &self.codes {
            let at = (rank as usize).wrapping_mul(codes.place.shape.element_bytes as usize);
            return crate::arch::prefetch(codes.data.as_ptr().wrapping_add(at));
        }
        let at = (rank as usize).wrapping_mul(self.place.shape.offset_bytes as usize);
        crate::arch::prefetch(self.offsets.as_ptr().wrapping_add(at));
    }

    /// Prefetches the first bytes of the element at `rank`.
    #[inline(always)]
    pub(crate) fn prefetch(&self, rank: u64) {
        const LINES_MAX: usize = 4;
        let (start, end) = self.bounds(self.element(rank));
        if (1..=64).contains(&self.place.shape.element_bytes) {
            // One line or two: asking for one of them twice is cheaper than a branch.
            crate::arch::prefetch(self.data.as_ptr().wrapping_add(start));
            return crate::arch::prefetch(self.data.as_ptr().wrapping_add(end.wrapping_sub(1)));
        }
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

    /// Returns the element at `rank`; `None` past the end. Verified as the index is. A copy if the file is
    /// mapped, because other processes may overwrite mapped bytes while they are read.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum or offsets do not ascend, which only
    /// [`crate::Verify::Touched`] checks; [`ReadError::MappingLost`] if the file was truncated while it was
    /// mapped.
    pub fn get(&self, rank: u64) -> Result<Option<Cow<'a, [u8]>>, ReadError> {
        let element = self.get_in_place(rank)?.map(|element| self.index.shown(element));
        self.index.check_mapping()?;
        Ok(element)
    }

    /// Brings the elements at many ranks of a remote file.
    #[inline]
    pub(crate) fn foresee(&self, ranks: &[u64]) -> Result<(), ReadError> {
        self.index.foresee(ranks.len(), |at| self.get_in_place(ranks[at]).map(|_| ()))
    }

    /// Appends the elements at many ranks to `data`, and where each of them ends in `data` to `ends`. Their
    /// cache misses overlap. An element past the end is empty. Verified as the index is.
    ///
    /// # Errors
    /// Those of [`Column::get`]; [`ReadError::Memory`] if `data` cannot grow.
    pub fn append(&self, ranks: &[u64], ends: &mut Vec<u64>, data: &mut Vec<u8>) -> Result<(), ReadError> {
        self.foresee(ranks)?;
        for ranks in ranks.chunks(AHEAD) {
            let here = || ranks.iter().filter(|&&rank| rank < self.len());
            here().for_each(|&rank| self.prefetch_offset(rank));
            here().for_each(|&rank| self.prefetch(rank));
            for &rank in ranks {
                let element = self.get_in_place(rank)?.unwrap_or_default();
                let bytes = element.len() as u64;
                data.try_reserve(element.len()).map_err(|_| ReadError::Memory { bytes })?;
                data.extend_from_slice(element);
                ends.push(data.len() as u64);
            }
        }
        self.index.check_mapping()
    }

    /// Returns the element of [`Column::get`] in place. The caller calls [`Column::check_mapping`] after
    /// reading it, and must not rely on two reads giving the same bytes.
    #[inline]
    pub(crate) fn get_in_place(&self, rank: u64) -> Result<Option<&'a [u8]>, ReadError> {
        if rank >= self.len() {
            return Ok(None);
        }
        if let Some(verified) = self.index.verified() {
            self.check(&verified, rank)?;
        }
        Ok(Some(self.at(rank)))
    }

    /// Verifies the blocks of an element, whose rank is below the number of elements.
    fn check(&self, verified: &Verified<'_>, rank: u64) -> Result<(), ReadError> {
        let element = self.checked_element(rank)?;
        let width = self.place.shape.offset_bytes;
        if width > 0 {
            verified.check_range(self.place.offset + element * width, 2 * width)?;
        }
        let (start, end) = self.bounds(element);
        if start > end || end > self.data.len() {
            self.index.check_mapping()?;
            return Err(self.broken(rank));
        }
        verified.check_range(self.place.data_offset() + start as u64, (end - start) as u64)
    }

    /// Returns the index of a tuple's element, which is below the number of stored ones. A code is verified as the
    /// index is. The rank is below the number of elements, and the caller calls [`Column::check_mapping`].
    pub(crate) fn checked_element(&self, rank: u64) -> Result<u64, ReadError> {
        if let (Some(verified), Some(Codes { place, .. })) = (self.index.verified(), self.codes) {
            let width = place.shape.element_bytes;
            verified.check_range(place.data_offset() + rank * width, width)?;
        }
        let element = self.element(rank);
        if element >= self.stored() {
            self.index.check_mapping()?;
            return Err(self.broken(rank));
        }
        Ok(element)
    }

    pub(crate) fn broken(&self, rank: u64) -> ReadError {
        if let Some(Codes { place, .. }) = self.codes
            && self.element(rank) >= self.stored()
        {
            return ReadError::Format(FormatError::Corrupt {
                what: "codes",
                offset: place.data_offset() + rank * place.shape.element_bytes,
                rule: "a code must be that of a value".into(),
                found: self.element(rank),
            });
        }
        let rank = self.element(rank);
        ReadError::Format(FormatError::Corrupt {
            what: "column",
            offset: self.place.offset + rank * self.place.shape.offset_bytes,
            rule: "offsets must ascend inside the column".into(),
            found: self.offset(rank) as u64,
        })
    }
}
