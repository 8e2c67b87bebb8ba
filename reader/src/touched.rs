//! Verifying each sum block that a query reads, once.
//!
//! The chain of trust: the superblock's CRC covers the CRC of the section table, which holds the
//! CRC of SUM2 (checked when the file is opened), whose sums cover SUMS, whose sums cover the lines
//! and the spine. A block that matched is remembered in a bitmap of atomics; there are no locks.

use pleach_format::checksum::{SUM_BLOCK_BYTES, SUM_BYTES, crc32};
use pleach_format::line::Line;
use pleach_format::section::Tag;
use pleach_format::view::{Lines, Section};
use pleach_format::{FormatError, Header};
use std::sync::atomic::{AtomicU64, Ordering};

/// Which blocks of each section are known to be good.
pub(crate) struct Touched {
    good: Vec<Vec<AtomicU64>>,
}

/// A file whose blocks are verified before a line of them is handed out.
pub(crate) struct Verified<'a> {
    pub(crate) header: &'a Header,
    pub(crate) bytes: &'a [u8],
    pub(crate) touched: &'a Touched,
}

impl Touched {
    /// Checks SUM2 and prepares the rest. O(file / 16 MiB).
    pub(crate) fn new(header: &Header, bytes: &[u8]) -> Result<Self, FormatError> {
        if let Some(sum2) = header.section(Tag::SUM2) {
            let (expected, found) =
                (sum2.entry.sums_crc.get(), crc32(slice(bytes, sum2.offset(), sum2.extent())?));
            if expected != found {
                return Err(FormatError::Checksum { what: "SUM2", offset: sum2.offset(), expected, found });
            }
        }
        let words = |section: &Section| section.entry.sums.get().div_ceil(64);
        let good =
            header.sections.iter().map(|section| (0..words(section)).map(|_| AtomicU64::new(0)).collect());
        Ok(Self { good: good.collect() })
    }
}

fn slice(bytes: &[u8], offset: u64, length: u64) -> Result<&[u8], FormatError> {
    let range = usize::try_from(offset).ok().zip(usize::try_from(length).ok());
    range
        .and_then(|(offset, length)| bytes.get(offset..)?.get(..length))
        .ok_or(FormatError::Truncated { expected: offset.saturating_add(length), found: bytes.len() as u64 })
}

impl Verified<'_> {
    /// Verifies the block in which byte `offset` of the file lies.
    pub(crate) fn check(&self, offset: u64) -> Result<(), FormatError> {
        let after = self.header.sections.partition_point(|section| section.offset() <= offset);
        let Some(index) = after.checked_sub(1) else { return Ok(()) };
        let section = &self.header.sections[index];
        if section.entry.tag == Tag::SUM2 || offset >= section.end {
            return Ok(());
        }
        let block = (offset - section.offset()) / SUM_BLOCK_BYTES as u64;
        let Some(word) = usize::try_from(block / 64).ok().and_then(|word| self.touched.good[index].get(word))
        else {
            return Ok(());
        };
        let bit = 1 << (block % 64);
        if word.load(Ordering::Relaxed) & bit != 0 {
            return Ok(());
        }
        let stored_at = section.entry.sums_offset.get() + block * SUM_BYTES as u64;
        self.check(stored_at)?;
        let stored = slice(self.bytes, stored_at, SUM_BYTES as u64)?;
        let expected = u32::from_le_bytes([stored[0], stored[1], stored[2], stored[3]]);
        let start = section.offset() + block * SUM_BLOCK_BYTES as u64;
        let bytes = slice(self.bytes, start, (SUM_BLOCK_BYTES as u64).min(section.end - start))?;
        let found = self.header.bound_sum(section.entry.tag, block, bytes);
        if expected != found {
            return Err(FormatError::Checksum {
                what: section.entry.tag.name(),
                offset: start,
                expected,
                found,
            });
        }
        word.fetch_or(bit, Ordering::Relaxed);
        Ok(())
    }

    /// Verifies every block of `length` bytes from `offset`.
    pub(crate) fn check_range(&self, offset: u64, length: u64) -> Result<(), FormatError> {
        let mut at = offset;
        while at < offset + length {
            self.check(at)?;
            at += 4096;
        }
        if length > 0 { self.check(offset + length - 1) } else { Ok(()) }
    }
}

impl Lines for Verified<'_> {
    type Error = FormatError;
    fn line(&self, offset: u64) -> Result<&Line, FormatError> {
        self.check(offset)?;
        slice(self.bytes, offset, 64)?.first_chunk().ok_or(FormatError::Truncated {
            expected: offset.saturating_add(64),
            found: self.bytes.len() as u64,
        })
    }
}
