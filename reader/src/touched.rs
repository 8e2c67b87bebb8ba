//! Verification of each block that a query reads, at its first read. The block of a remote file is brought first.
//!
//! The chain of trust: the CRC in the superblock covers the CRC of the section table, which holds the CRC of
//! SUM2 (checked when the file is opened), whose sums cover SUMS, whose sums cover the lines and the spine. A
//! bitmap of atomics records the blocks that matched; there are no locks.
//!
//! A block of a remote file is verified before it is written to the memory of the file, and its bit is set after that.
//! Threads that need the same block at the same time may each bring it; all write the same bytes.

use crate::bytes::Storage;
use crate::error::ReadError;
use crate::fetch::{self, Block, Remote};
use crate::structure::Structure;
use pleach_format::checksum::{SUM_BLOCK_BYTES, SUM_BYTES, crc32};
use pleach_format::grid::{GridGeometry, Place, SEGMENT_BYTES, Segment, UNIT_BYTES, marks_before};
use pleach_format::line::Line;
use pleach_format::section::Tag;
use pleach_format::view::{self, FastShape, Lines, Section};
use pleach_format::{FormatError, Header, Word, classic};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use zerocopy::FromZeros;

/// Which blocks of each section are known to be good.
pub(crate) struct Touched {
    good: Vec<Vec<AtomicU64>>,
}

/// A file whose blocks are verified before a line of them is returned.
pub(crate) struct Verified<'a> {
    pub(crate) header: &'a Header,
    pub(crate) bytes: &'a [u8],
    pub(crate) touched: &'a Touched,
    /// Storage of the bytes, if they may be lost.
    pub(crate) storage: Option<&'a Storage>,
}

impl Touched {
    /// Checks SUM2 and allocates the bitmaps. O(file / 16 MiB), and one bit of memory per 8 KiB, which the
    /// system provides when it is used.
    pub(crate) fn new(header: &Header, bytes: &[u8]) -> Result<Self, FormatError> {
        if let Some(sum2) = header.section(Tag::SUM2) {
            let (expected, found) =
                (sum2.entry.sums_crc.get(), crc32(slice(bytes, sum2.offset(), sum2.extent())?));
            if expected != found {
                return Err(FormatError::Checksum { what: "SUM2", offset: sum2.offset(), expected, found });
            }
        }
        let good = |section: &Section| {
            let words = section.entry.sums.get().div_ceil(64);
            let made = usize::try_from(words).ok().and_then(|words| AtomicU64::new_vec_zeroed(words).ok());
            made.ok_or(FormatError::Corrupt {
                what: section.entry.tag.name(),
                offset: section.offset(),
                rule: "a bit for each sum must fit in memory".into(),
                found: section.entry.sums.get(),
            })
        };
        Ok(Self { good: header.sections.iter().map(good).collect::<Result<_, _>>()? })
    }
}

fn slice(bytes: &[u8], offset: u64, length: u64) -> Result<&[u8], FormatError> {
    let range = usize::try_from(offset).ok().zip(usize::try_from(length).ok());
    range
        .and_then(|(offset, length)| bytes.get(offset..)?.get(..length))
        .ok_or(FormatError::Truncated { expected: offset.saturating_add(length), found: bytes.len() as u64 })
}

impl Verified<'_> {
    /// Returns the block that contains byte `offset` of the file; `None` if there is no sum for it.
    fn block(&self, offset: u64) -> Option<Block> {
        let after = self.header.sections.partition_point(|section| section.offset() <= offset);
        let index = after.checked_sub(1)?;
        let section = &self.header.sections[index];
        let is_summed = section.entry.tag != Tag::SUM2 && offset < section.end;
        is_summed.then(|| (index, (offset - section.offset()) / SUM_BLOCK_BYTES as u64))
    }

    /// Returns the bytes of a block in the file.
    fn place(&self, (index, block): Block) -> Range<u64> {
        let section = &self.header.sections[index];
        let start = section.offset() + block * SUM_BLOCK_BYTES as u64;
        start..section.end.min(start + SUM_BLOCK_BYTES as u64)
    }

    /// Returns the word of the bitmap that has the bit of a block.
    fn word(&self, (index, block): Block) -> Option<&AtomicU64> {
        usize::try_from(block / 64).ok().and_then(|word| self.touched.good[index].get(word))
    }

    /// Reports whether a block is good. A block without a bit is not verified.
    fn is_good(&self, block: Block) -> bool {
        // What was written before the bit was set is read after this.
        self.word(block).is_none_or(|word| word.load(Ordering::Acquire) >> (block.1 % 64) & 1 != 0)
    }

    /// Verifies the block that contains byte `offset` of the file.
    #[inline]
    pub(crate) fn check(&self, offset: u64) -> Result<(), ReadError> {
        match self.block(offset) {
            Some(block) if !self.is_good(block) => self.admit(block),
            _ => Ok(()),
        }
    }

    /// Verifies a block, which is brought first if the file is remote.
    fn admit(&self, block: Block) -> Result<(), ReadError> {
        if let Some(remote) = self.storage.and_then(Storage::source) {
            return self.bring(remote, vec![block]);
        }
        let Range { start, end } = self.place(block);
        self.compare(block, slice(self.bytes, start, end - start)?)
    }

    /// Compares the bytes of a block with its sum, and marks it as good.
    fn compare(&self, block: Block, bytes: &[u8]) -> Result<(), ReadError> {
        self.compare_and(block, bytes, || Ok(()))
    }

    /// Compares the bytes of a block with its sum, and marks it as good after `keep` has succeeded.
    fn compare_and(
        &self,
        block: Block,
        bytes: &[u8],
        keep: impl FnOnce() -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let section = &self.header.sections[block.0];
        let stored_at = section.entry.sums_offset.get() + block.1 * SUM_BYTES as u64;
        self.check(stored_at)?;
        let stored = slice(self.bytes, stored_at, SUM_BYTES as u64)?;
        let expected = u32::from_le_bytes([stored[0], stored[1], stored[2], stored[3]]);
        let found = self.header.bound_sum(section.entry.tag, block.1, bytes);
        if expected != found {
            // Zeros in place of bytes that were truncated are not reported as damage.
            if self.storage.is_some_and(Storage::is_lost) {
                return Err(ReadError::MappingLost);
            }
            let (what, offset) = (section.entry.tag.name(), self.place(block).start);
            return Err(FormatError::Checksum { what, offset, expected, found }.into());
        }
        keep()?;
        if let Some(word) = self.word(block) {
            word.fetch_or(1 << (block.1 % 64), Ordering::Release);
        }
        Ok(())
    }

    /// Verifies every block of `length` bytes from `offset`. Those of a remote file are brought together.
    pub(crate) fn check_range(&self, offset: u64, length: u64) -> Result<(), ReadError> {
        if length == 0 {
            return Ok(());
        }
        if let Some(remote) = self.storage.and_then(Storage::source) {
            return self.bring(remote, self.lacking(offset, offset.saturating_add(length)));
        }
        let mut at = offset;
        while at < offset + length {
            self.check(at)?;
            at += 4096;
        }
        self.check(offset + length - 1)
    }

    /// Brings the blocks of `bytes`, which contain byte `offset`, if the file is remote and the block of this byte is
    /// missing. Reports whether it was.
    pub(crate) fn check_ahead(&self, offset: u64, bytes: Range<u64>) -> Result<bool, ReadError> {
        let Some(remote) = self.storage.and_then(Storage::source) else { return Ok(false) };
        if self.block(offset).is_none_or(|block| self.is_good(block)) {
            return Ok(false);
        }
        self.bring(remote, self.lacking(bytes.start, bytes.end))?;
        Ok(true)
    }

    /// Returns the blocks of a range of bytes that are not good.
    fn lacking(&self, offset: u64, end: u64) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut at = offset;
        while at < end.min(self.header.file_bytes) {
            let Some(block) = self.block(at) else {
                at += 4096;
                continue;
            };
            if !self.is_good(block) {
                blocks.push(block);
            }
            at = self.place(block).end;
        }
        blocks
    }

    /// Brings blocks of a remote file. Blocks that were verified before an error are kept. While look-ups are
    /// foreseen, only notes the blocks.
    #[cold]
    pub(crate) fn bring(&self, remote: &Remote, mut blocks: Vec<Block>) -> Result<(), ReadError> {
        if blocks.is_empty() {
            return Ok(());
        }
        fetch::note_lacking(&blocks)?;
        blocks.sort_unstable();
        blocks.dedup();
        blocks.retain(|&block| !self.is_good(block));
        for call in fetch::calls(blocks.iter().map(|&block| self.place(block))) {
            let mut outcome = Ok(());
            let fetched = remote.fetch(&call, |offset, bytes| {
                let (mut at, end) = (offset, offset + bytes.len() as u64);
                while let Some(block) = self.block(at).filter(|_| at < end) {
                    let place = self.place(block);
                    let bytes = &bytes[(at - offset) as usize..(place.end - offset) as usize];
                    let kept = self.compare_and(block, bytes, || remote.write(at, bytes));
                    // The first damage is reported, and the other blocks are kept.
                    outcome = std::mem::replace(&mut outcome, Ok(())).and(kept);
                    at = place.end;
                }
            });
            outcome.and(fetched)?;
        }
        Ok(())
    }
}

impl<'a> Verified<'a> {
    /// Returns bytes of the file, of which each block is verified.
    fn bytes_of(&self, offset: u64, length: u64) -> Result<&'a [u8], ReadError> {
        self.check_range(offset, length)?;
        Ok(slice(self.bytes, offset, length)?)
    }

    /// Returns the rank of the lower bound of a word, by a structure of the file.
    pub(crate) fn lower_bound<W: Word>(&self, structure: Structure, query: W) -> Result<u64, ReadError> {
        let header = self.header;
        match (structure, header.fast, &header.harmonia, &header.btree) {
            (Structure::Fast, Some((offset, shape)), ..) => {
                let FastShape { geometry, form, bytes } = shape;
                let section = classic::search::Section { geometry, form, offset, bytes };
                view::lower_bound_by(header, self, query, |word| section.gap(self, word))
            }
            (Structure::Harmonia, _, Some((offset, shape)), _) => {
                let slice = |at, bytes| self.bytes_of(offset + at, bytes);
                view::lower_bound_by(header, self, query, |word| match shape.word_bytes {
                    4 => shape.lower_bound_by(word as u32, slice),
                    8 => shape.lower_bound_by(word as u64, slice),
                    _ => shape.lower_bound_by(word, slice),
                })
            }
            (Structure::Btree, _, _, Some((offset, shape))) => {
                let slice = |at, bytes| self.bytes_of(offset + at, bytes);
                view::lower_bound_by(header, self, query, |word| match shape.word_bytes {
                    4 => shape.lower_bound_by(word as u32, slice),
                    8 => shape.lower_bound_by(word as u64, slice),
                    _ => shape.lower_bound_by(word, slice),
                })
            }
            (Structure::Grid, ..) if header.section(Tag::SPINE).is_none() => {
                let Some((offset, shape)) = &header.grid else {
                    return view::lower_bound(header, self, query);
                };
                let n = header.geometry.tuples_per_line() as u64;
                view::lower_bound_by(header, self, query, |word| match shape.word_bytes {
                    4 => Ok(n * self.grid_line(*offset, shape, word as u32)?),
                    _ => Ok(n * self.grid_line(*offset, shape, word as u64)?),
                })
            }
            _ => view::lower_bound(header, self, query),
        }
    }

    /// Returns the number of a word's line by the grid, which begins at `offset`, or of one left of it.
    fn grid_line<W: Word>(&self, offset: u64, shape: &GridGeometry, word: W) -> Result<u64, ReadError> {
        let mut place = shape.root.place(word);
        for _ in 0..shape.steps {
            if place.what & Place::SEGMENT == 0 {
                break;
            }
            let number = u64::from(place.at).min(shape.segments.saturating_sub(1));
            let bytes = self.bytes_of(offset + number * SEGMENT_BYTES, SEGMENT_BYTES)?;
            place = bytes.first_chunk().map_or(Segment::of_line(0), Segment::from_bytes).place(word);
        }
        if place.what & Place::UNIT != 0 {
            let number = u64::from(place.at).min(shape.units - 1);
            let bytes = self.bytes_of(offset + shape.units_at + number * UNIT_BYTES, UNIT_BYTES)?;
            let unit = bytes.first_chunk().map_or(0, |&bytes| u64::from_le_bytes(bytes));
            return Ok(marks_before(unit, place.what).0.into());
        }
        Ok(if place.what & Place::SEGMENT != 0 { 0 } else { place.at.into() })
    }
}

impl Lines for Verified<'_> {
    type Error = ReadError;
    fn line(&self, offset: u64) -> Result<&Line, ReadError> {
        self.check(offset)?;
        let line = slice(self.bytes, offset, 64)?.first_chunk();
        line.ok_or_else(|| {
            let (expected, found) = (offset.saturating_add(64), self.bytes.len() as u64);
            FormatError::Truncated { expected, found }.into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_kit::generate::mix;
    use pleach_kit::naive;

    /// A file of several sections, one of which has more blocks than a word of the bitmap has bits.
    fn whole() -> (Header, Vec<u8>) {
        let tuples: Vec<(u64, u64)> = (0..35_000).map(|i| (i * 1000 + mix(i) % 1000, i)).collect();
        let meta = pleach_format::meta::Meta { key_name: "k".into(), ..naive::wide() };
        let bytes = naive::build_with(&tuples, &meta, true, naive::Grid::No);
        let header = Header::parse(&bytes[..pleach_format::view::HEAD_BYTES], bytes.len() as u64);
        (header.expect("a header"), bytes)
    }

    /// Each block is compared with its own sum only, and once.
    #[test]
    fn blocks_are_verified_one_by_one() {
        let (header, bytes) = whole();
        let line = header.section(Tag::LINE).expect("lines");
        assert!(line.entry.sums.get() > 64);
        let touched = || Touched::new(&header, &bytes).expect("SUM2 is whole");
        let block_bytes = SUM_BLOCK_BYTES as u64;
        for section in header.sections.iter().filter(|it| it.entry.tag != Tag::SUM2) {
            for start in (section.offset()..section.end).step_by(SUM_BLOCK_BYTES) {
                let end = (start + block_bytes).min(section.end);
                for at in [start, end - 1] {
                    let mut damaged = bytes.clone();
                    damaged[at as usize] ^= 1;
                    let touched = touched();
                    let good = Verified { header: &header, bytes: &bytes, touched: &touched, storage: None };
                    let bad = Verified { header: &header, bytes: &damaged, touched: &touched, storage: None };
                    let is_it = |outcome: Result<(), ReadError>| {
                        let (tag, offset) = (section.entry.tag.name(), start);
                        matches!(outcome, Err(ReadError::Format(FormatError::Checksum { what, offset: of, .. }))
                            if what == tag && of == offset)
                    };
                    assert!(is_it(bad.check(start)) && is_it(bad.check(end - 1)), "byte {at}");
                    // A range is bad if it has a byte of the block.
                    let reach = (3 * block_bytes).min(start - section.offset());
                    assert!(is_it(bad.check_range(start, end - start)));
                    assert!(is_it(bad.check_range(start - reach, reach + 1)));
                    if section.entry.tag == Tag::LINE && reach > 0 && end < section.end {
                        assert!(is_it(bad.check_range(start - 10, 20)));
                        assert!(is_it(bad.check_range(start - reach, reach + block_bytes + 10)));
                    }
                    assert_eq!(bad.check_range(end, 0), Ok(()));
                    if section.entry.tag == Tag::LINE {
                        assert_eq!(bad.check_range(start - reach, reach), Ok(()), "up to byte {start}");
                        let behind = 10.min(section.end - end);
                        assert_eq!(bad.check_range(end, behind), Ok(()), "from byte {end} on");
                    }
                    // A block that has matched once is not read again.
                    assert_eq!(good.check(start), Ok(()));
                    assert_eq!(bad.check(end - 1), Ok(()));
                }
            }
        }
        for beyond in [0, 4096, bytes.len() as u64 - 1] {
            assert_eq!(
                Verified { header: &header, bytes: &bytes, touched: &touched(), storage: None }.check(beyond),
                Ok(())
            );
        }
    }

    /// A damaged sum is detected before it is used.
    #[test]
    fn sums_are_verified_first() {
        let (header, bytes) = whole();
        let touched = Touched::new(&header, &bytes).expect("SUM2 is whole");
        let line = header.section(Tag::LINE).expect("lines");
        let mut damaged = bytes.clone();
        damaged[line.entry.sums_offset.get() as usize] ^= 1;
        let bad = Verified { header: &header, bytes: &damaged, touched: &touched, storage: None };
        assert!(matches!(
            bad.check(line.offset()),
            Err(ReadError::Format(FormatError::Checksum { what: "SUMS", .. }))
        ));
        let sum2 = header.section(Tag::SUM2).expect("SUM2").offset() as usize;
        damaged[sum2] ^= 1;
        assert!(Touched::new(&header, &damaged).is_err());
    }
}
