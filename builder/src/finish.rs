//! Everything around the tuple lines: places, spine, sums, identity, table and superblock.
//!
//! What is left when the last tuple line has been packed is written in file order, in pieces of
//! 2 MiB; the first 2 MiB of the file stay in memory until the superblock is known.

use crate::error::BuildError;
use crate::lines::{LARGE_OFFSET, Lines};
use crate::observe::{Phase, Watch};
use crate::pack::KeyLane;
use crate::plan::PIECE_BYTES;
use crate::publish::Output;
use pleach_format::checksum::{FileId, SUM_BLOCK_BYTES, SUM_BYTES, binding, crc32, sum_blocks};
use pleach_format::layout::{LineGeometry, SpineGeometry, align_up, section_start};
use pleach_format::meta::Meta;
use pleach_format::section::{
    ARRAY_ALIGN, Entry, Geometry, SECTION_ALIGN, TABLE_BYTES, TABLE_OFFSET, Tag, encode_table,
};
use pleach_format::superblock::{SUPERBLOCK_BYTES, Superblock, key_prefix};
use pleach_format::view::{HEAD_BYTES, line_geometry, spine_geometry};
use pleach_format::{KeyType, ValueType};
use rayon::prelude::*;

/// What the file is, apart from its tuples.
pub(crate) struct Head<'a> {
    pub key_type: KeyType,
    pub value_type: ValueType,
    pub unique: bool,
    pub generation: u64,
    pub meta: &'a Meta,
}

/// What was written.
pub(crate) struct Finished {
    pub file_bytes: u64,
    pub file_id: [u8; 16],
    pub spine: SpineGeometry,
}

fn overflow(tuples: u64) -> BuildError {
    BuildError::TooLarge { what: "the file", found: tuples, limit: u64::MAX >> 8 }
}

/// Writes all that follows the tuple lines, and the beginning of the file last.
pub(crate) fn finish<W: KeyLane>(
    output: Output<'_>,
    watch: &Watch<'_>,
    lines: Lines<W>,
    head: &Head<'_>,
) -> Result<Finished, BuildError> {
    let geometry = LineGeometry::new(head.key_type.bytes(), head.value_type.bytes());
    let too_large = || overflow(lines.tuples);
    let meta = head.meta.encode();
    let spine =
        SpineGeometry::new(lines.lines, geometry.key_bytes, &lines.spine.encodings).ok_or_else(too_large)?;

    // Places, in file order.
    let meta_at = HEAD_BYTES as u64;
    let line_bytes = geometry.bytes(lines.tuples).ok_or_else(too_large)?;
    let line_at = section_start(meta_at + meta.len() as u64, line_bytes).ok_or_else(too_large)?;
    let line_end = line_at.checked_add(line_bytes).ok_or_else(too_large)?;
    let spine_at = section_start(line_end, spine.bytes).ok_or_else(too_large)?;
    let spine_end = spine_at.checked_add(spine.bytes).ok_or_else(too_large)?;
    let counts = |sums_at: u64| [line_at - meta_at, spine_at - line_at, sums_at - spine_at].map(sum_blocks);
    let sums_bytes = |counts: [u64; 3]| {
        counts.iter().fold(0u64, |end, count| end.next_multiple_of(ARRAY_ALIGN) + count * SUM_BYTES as u64)
    };
    // The spine's sums cover its padding, which depends on the length of the sums: the length with
    // the smaller alignment decides.
    let near = align_up(spine_end, SECTION_ALIGN).ok_or_else(too_large)?;
    let sums_at = section_start(spine_end, sums_bytes(counts(near))).ok_or_else(too_large)?;
    let counts = counts(sums_at);
    let sums_end = sums_at + sums_bytes(counts);
    let near = align_up(sums_end, SECTION_ALIGN).ok_or_else(too_large)?;
    let sum2_bytes = |sum2_at: u64| sum_blocks(sum2_at - sums_at) * SUM_BYTES as u64;
    let sum2_at = section_start(sums_end, sum2_bytes(near)).ok_or_else(too_large)?;
    let sum2_end = sum2_at + sum2_bytes(sum2_at);
    let closing_at = align_up(sum2_end, SECTION_ALIGN).ok_or_else(too_large)?;
    let file_bytes = closing_at + SUPERBLOCK_BYTES as u64;
    if i64::try_from(file_bytes).is_err() {
        return Err(too_large());
    }

    let spine_elements = spine.levels.iter().map(|level| level.lines).sum();
    let mut meta_entry =
        Entry::new(Tag::META, false, meta_at, meta.len() as u64, head.meta.elements(), Geometry::default());
    let mut line_entry =
        Entry::new(Tag::LINE, true, line_at, line_bytes, lines.tuples, line_geometry(geometry));
    let spine_stored = spine_geometry(geometry.key_bytes, &spine, lines.spine.inexact);
    let mut spine_entry = Entry::new(Tag::SPINE, true, spine_at, spine.bytes, spine_elements, spine_stored);

    // Content, in file order.
    let start = if lines.written > 0 { LARGE_OFFSET + lines.written * PIECE_BYTES as u64 } else { 0 };
    let mut tail = Tail::new(output, watch, start, file_bytes);
    let meta_sums = if start == 0 {
        tail.zeros_to(meta_at)?;
        let mut sums = Sums::default();
        tail.section(&mut sums, &meta)?;
        tail.end_section(&mut sums, line_at)?;
        sums.done
    } else {
        let mut sums = Sums::default();
        sums.add(&meta);
        sums.add_zeros(line_at - meta_at - meta.len() as u64);
        tail.first[meta_at as usize..][..meta.len()].copy_from_slice(&meta);
        sums.finish();
        sums.done
    };
    // Full blocks of lines were summed when they were packed.
    let mut sums = Sums { done: lines.sums, partial: Vec::new() };
    let mut to_skip = sums.done.len() as u64 * SUM_BLOCK_BYTES as u64 - lines.written * PIECE_BYTES as u64;
    for lines in lines.rest {
        let bytes = lines.as_flattened();
        tail.write(bytes)?;
        let skipped = to_skip.min(bytes.len() as u64);
        sums.add(&bytes[skipped as usize..]);
        to_skip -= skipped;
    }
    tail.end_section(&mut sums, spine_at)?;
    let line_sums = sums.done;
    let mut sums = Sums::default();
    lines.spine.read(&spine, &mut |lines| tail.section(&mut sums, lines.as_flattened()))?;
    tail.end_section(&mut sums, sums_at)?;
    let spine_sums = sums.done;

    let unique = head.unique;
    let mut id = FileId::new(head.key_type.code(), head.value_type.code(), unique, lines.tuples);
    meta_entry.identify(&mut id, meta_sums.iter().copied());
    line_entry.identify(&mut id, line_sums.iter().copied());
    spine_entry.identify(&mut id, spine_sums.iter().copied());
    let file_id = id.finish();

    let bound = |tag: Tag, sums: &[u32]| -> Vec<u8> {
        let mut bytes = vec![0; sums.len() * SUM_BYTES];
        bytes.par_chunks_mut(SUM_BYTES).zip(sums).enumerate().with_min_len(1 << 12).for_each(
            |(block, (slot, sum))| {
                slot.copy_from_slice(&(sum ^ binding(&file_id, tag, block as u64)).to_le_bytes());
            },
        );
        bytes
    };
    let mut list_at = sums_at;
    let mut sums = Sums::default();
    for (entry, unbound) in
        [(&mut meta_entry, meta_sums), (&mut line_entry, line_sums), (&mut spine_entry, spine_sums)]
    {
        let next = list_at.next_multiple_of(ARRAY_ALIGN);
        tail.section(&mut sums, &[0; ARRAY_ALIGN as usize][..(next - list_at) as usize])?;
        let list = bound(entry.tag, &unbound);
        entry.sums_offset = next.into();
        entry.sums = (unbound.len() as u64).into();
        entry.sums_crc = crc32(&list).into();
        tail.section(&mut sums, &list)?;
        list_at = next + list.len() as u64;
    }
    tail.end_section(&mut sums, sum2_at)?;
    let list = bound(Tag::SUMS, &sums.done);
    let mut sums_entry =
        Entry::new(Tag::SUMS, true, sums_at, list_at - sums_at, counts.iter().sum(), Geometry::default());
    sums_entry.sums_offset = sum2_at.into();
    sums_entry.sums = (sums.done.len() as u64).into();
    sums_entry.sums_crc = crc32(&list).into();
    let mut sum2_entry =
        Entry::new(Tag::SUM2, true, sum2_at, list.len() as u64, sums.done.len() as u64, Geometry::default());
    tail.write(&list)?;
    let mut extent = list;
    extent.resize((closing_at - sum2_at) as usize, 0);
    sum2_entry.sums_crc = crc32(&extent).into();
    tail.zeros_to(closing_at)?;

    let entries = [meta_entry, line_entry, spine_entry, sums_entry, sum2_entry];
    let table = encode_table(&entries);
    let superblock =
        superblock(head, &lines.min, &lines.max, lines.tuples, file_id, file_bytes, &table, entries.len());
    tail.write(&superblock)?;
    tail.finish(&superblock, &table)?;
    Ok(Finished { file_bytes, file_id, spine })
}

#[expect(clippy::too_many_arguments, reason = "each is one field of the superblock")]
fn superblock<W: KeyLane>(
    head: &Head<'_>,
    min: &Option<W>,
    max: &Option<W>,
    tuples: u64,
    file_id: [u8; 16],
    file_bytes: u64,
    table: &[u8; TABLE_BYTES],
    sections: usize,
) -> [u8; SUPERBLOCK_BYTES] {
    let mut block = Superblock::new(head.key_type, head.value_type);
    block.file_id = file_id;
    block.generation = head.generation.into();
    block.file_bytes = file_bytes.into();
    block.tuples = tuples.into();
    block.unique = u32::from(head.unique).into();
    block.table_offset = TABLE_OFFSET.into();
    block.table_bytes = (TABLE_BYTES as u64).into();
    block.sections = (sections as u32).into();
    block.table_crc = crc32(table).into();
    if let (Some(min), Some(max)) = (min, max) {
        block.min_key_len = (W::BYTES as u32).into();
        block.max_key_len = (W::BYTES as u32).into();
        block.min_key = key_prefix(min.to_u64(), W::BYTES);
        block.max_key = key_prefix(max.to_u64(), W::BYTES);
    }
    let builder = concat!("pleach ", env!("CARGO_PKG_VERSION")).as_bytes();
    let length = builder.len().min(block.builder.len());
    block.builder[..length].copy_from_slice(&builder[..length]);
    block.seal()
}

/// Sums of consecutive blocks.
#[derive(Default)]
struct Sums {
    done: Vec<u32>,
    /// Bytes of the block that is not full yet.
    partial: Vec<u8>,
}

impl Sums {
    fn add(&mut self, mut bytes: &[u8]) {
        if !self.partial.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(SUM_BLOCK_BYTES - self.partial.len()));
            self.partial.extend_from_slice(now);
            bytes = later;
            if self.partial.len() < SUM_BLOCK_BYTES {
                return;
            }
            self.done.push(crc32(&self.partial));
            self.partial.clear();
        }
        let full = bytes.len() / SUM_BLOCK_BYTES * SUM_BLOCK_BYTES;
        self.done.par_extend(bytes[..full].par_chunks(SUM_BLOCK_BYTES).with_min_len(16).map(crc32));
        self.partial.extend_from_slice(&bytes[full..]);
    }

    fn add_zeros(&mut self, mut count: u64) {
        const ZEROS: [u8; SUM_BLOCK_BYTES] = [0; SUM_BLOCK_BYTES];
        while count > 0 {
            let now = count.min(ZEROS.len() as u64);
            self.add(&ZEROS[..now as usize]);
            count -= now;
        }
    }

    fn finish(&mut self) {
        if !self.partial.is_empty() {
            self.done.push(crc32(&self.partial));
            self.partial.clear();
        }
    }
}

/// Writes consecutive bytes in pieces, apart from the first piece of the file.
struct Tail<'a> {
    output: Output<'a>,
    watch: &'a Watch<'a>,
    file_bytes: u64,
    /// Bytes `..at` of the file are done, or in `first` or `piece`.
    at: u64,
    /// The beginning of the file.
    first: Vec<u8>,
    /// Bytes since the last 2 MiB border.
    piece: Vec<u8>,
}

impl<'a> Tail<'a> {
    /// From `start`, a 2 MiB border, on.
    fn new(output: Output<'a>, watch: &'a Watch<'a>, start: u64, file_bytes: u64) -> Self {
        let first = vec![0; (PIECE_BYTES as u64).min(file_bytes) as usize];
        Self { output, watch, file_bytes, at: start, first, piece: Vec::with_capacity(PIECE_BYTES) }
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), BuildError> {
        if let Some(free) = usize::try_from(self.at).ok().and_then(|at| self.first.get_mut(at..)) {
            let now = free.len().min(bytes.len());
            free[..now].copy_from_slice(&bytes[..now]);
            self.at += now as u64;
            bytes = &bytes[now..];
        }
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PIECE_BYTES - self.piece.len()));
            if now.len() == PIECE_BYTES {
                self.watch.check()?;
                self.output.write(now, self.at)?;
            } else {
                self.piece.extend_from_slice(now);
            }
            self.at += now.len() as u64;
            if self.piece.len() == PIECE_BYTES {
                self.flush()?;
            }
            bytes = later;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), BuildError> {
        self.watch.check()?;
        self.output.write(&self.piece, self.at - self.piece.len() as u64)?;
        self.watch.progress(Phase::Write, self.at, Some(self.file_bytes));
        self.piece.clear();
        Ok(())
    }

    fn zeros_to(&mut self, end: u64) -> Result<(), BuildError> {
        const ZEROS: [u8; 4096] = [0; 4096];
        while self.at < end {
            self.write(&ZEROS[..(end - self.at).min(ZEROS.len() as u64) as usize])?;
        }
        Ok(())
    }

    /// Writes and sums.
    fn section(&mut self, sums: &mut Sums, bytes: &[u8]) -> Result<(), BuildError> {
        sums.add(bytes);
        self.write(bytes)
    }

    /// Pads a section with zeros up to `end`.
    fn end_section(&mut self, sums: &mut Sums, end: u64) -> Result<(), BuildError> {
        sums.add_zeros(end - self.at);
        sums.finish();
        self.zeros_to(end)
    }

    /// Writes what is left, and the beginning of the file last.
    fn finish(mut self, superblock: &[u8], table: &[u8]) -> Result<(), BuildError> {
        debug_assert_eq!(self.at, self.file_bytes);
        if !self.piece.is_empty() {
            self.flush()?;
        }
        self.first[..SUPERBLOCK_BYTES].copy_from_slice(superblock);
        self.first[TABLE_OFFSET as usize..][..TABLE_BYTES].copy_from_slice(table);
        self.watch.check()?;
        self.output.write(&self.first, 0)
    }
}
