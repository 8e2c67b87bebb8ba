//! Everything around the tuple lines: places, spine, sums, identity, table and superblock.
//!
//! After the last tuple line has been packed, the rest is written in file order, in pieces of 2 MiB. The
//! first 2 MiB of the file stay in memory until the superblock is known.

use crate::error::BuildError;
use crate::lines::Lines;
use crate::observe::{Phase, Watch};
use crate::pack::KeyLane;
use crate::parallel;
use crate::plan::PIECE_BYTES;
use crate::publish::{Descent, Output};
use crate::section::Extra;
use pleach_format::checksum::{FileId, SUM_BLOCK_BYTES, SUM_BYTES, binding, crc32, sum_blocks};
use pleach_format::layout::{LineGeometry, SpineGeometry, align_up, section_start};
use pleach_format::meta::Meta;
use pleach_format::section::{
    ARRAY_ALIGN, Entry, Parameters, SECTION_ALIGN, TABLE_BYTES, TABLE_OFFSET, Tag, encode_table,
};
use pleach_format::superblock::{SUPERBLOCK_BYTES, Superblock, bytes_prefix, key_prefix};
use pleach_format::version::APPROXIMATE;
use pleach_format::view::{CLOSING_BYTES, HEAD_BYTES, line_parameters, spine_parameters};
use pleach_format::{KeyType, ValueType};

/// Program and version, as stored in the superblock: at most 32 bytes.
pub(crate) const BUILDER: &[u8] = concat!("pleach ", env!("CARGO_PKG_VERSION")).as_bytes();
const _: () = assert!(BUILDER.len() <= 32);

/// Properties of the file, apart from its tuples.
pub(crate) struct Head<'a> {
    pub key_type: KeyType,
    pub value_type: ValueType,
    pub unique: bool,
    /// The file has a spine.
    pub spine: bool,
    pub descent: Descent,
    pub meta: &'a Meta,
    /// Smallest and largest key of a file with byte keys.
    pub byte_ends: Option<(Vec<u8>, Vec<u8>)>,
}

/// Report of [`finish`].
pub(crate) struct Finished {
    pub file_bytes: u64,
    pub file_id: [u8; 16],
    pub spine: SpineGeometry,
}

fn overflow(tuples: u64) -> BuildError {
    BuildError::TooLarge { what: "the file", found: tuples, limit: u64::MAX >> 8 }
}

/// Places of everything after the tuple lines.
struct Places {
    /// Start of each section from META on, then of SUMS.
    starts: Vec<u64>,
    sum2_at: u64,
    closing_at: u64,
}

/// Places sections of these lengths, META first. Returns `None` on overflow.
fn places(lengths: &[(Tag, u64)]) -> Option<Places> {
    let mut starts = vec![HEAD_BYTES as u64];
    let mut end = starts[0] + lengths[0].1;
    for &(tag, length) in &lengths[1..] {
        starts.push(section_start(tag, end, length)?);
        end = starts[starts.len() - 1].checked_add(length)?;
    }
    let sums_bytes = |sums_at: u64| {
        let ends = starts[1..].iter().chain([&sums_at]);
        starts.iter().zip(ends).fold(0u64, |bytes, (start, end)| {
            bytes.next_multiple_of(ARRAY_ALIGN) + sum_blocks(end - start) * SUM_BYTES as u64
        })
    };
    // Their place does not depend on the length.
    let sums_at = section_start(Tag::SUMS, end, 0)?;
    let sum2_at = section_start(Tag::SUM2, sums_at.checked_add(sums_bytes(sums_at))?, 0)?;
    let sum2_bytes = sum_blocks(sum2_at - sums_at) * SUM_BYTES as u64;
    let closing_at = align_up(sum2_at.checked_add(sum2_bytes)?, SECTION_ALIGN)?;
    starts.push(sums_at);
    let file_bytes = closing_at.checked_add(CLOSING_BYTES as u64)?;
    i64::try_from(file_bytes).ok().map(|_| Places { starts, sum2_at, closing_at })
}

/// Writes everything after the tuple lines, and the beginning of the file last.
pub(crate) fn finish<W: KeyLane>(
    output: Output<'_>,
    watch: &Watch<'_>,
    lines: &Lines<W>,
    head: &Head<'_>,
    extras: &[Extra<'_>],
) -> Result<Finished, BuildError> {
    let geometry = LineGeometry::new(W::BYTES, head.value_type.line_bytes());
    let too_large = || overflow(lines.tuples);
    let meta = head.meta.encode();
    let spine = if head.spine {
        let (groups, encodings) = (lines.spine.child_lines as u64, &lines.spine.encodings);
        SpineGeometry::new(lines.lines, groups, geometry.key_bytes, encodings).ok_or_else(too_large)?
    } else {
        SpineGeometry::none(lines.lines)
    };
    let of_spine = head.spine.then(|| spine_section(lines, &spine));
    let extras: Vec<&Extra<'_>> = of_spine.iter().chain(extras).collect();
    let line_bytes = geometry.bytes(lines.tuples).ok_or_else(too_large)?;
    let mut lengths = vec![(Tag::META, meta.len() as u64), (Tag::LINE, line_bytes)];
    lengths.extend(extras.iter().map(|extra| (extra.tag, extra.length)));
    let places = places(&lengths).ok_or_else(too_large)?;
    let file_bytes = places.closing_at + CLOSING_BYTES as u64;

    let mut entries = entries(lines, head, &extras);
    for (entry, (&start, &(_, length))) in entries.iter_mut().zip(places.starts.iter().zip(&lengths)) {
        (entry.offset, entry.length) = (start.into(), length.into());
    }
    let is_written = lines.written > 0;
    assert!(
        !is_written || places.starts[1] == lines.places.offset(0),
        "the lines are where they were written"
    );
    let mut tail = Tail::new(output, watch, lines, file_bytes);
    let unbound = write_content(&mut tail, &meta, lines, &extras, &places.starts)?;
    let mut id = FileId::new(head.key_type.code(), head.value_type.code(), head.unique, lines.tuples);
    for (entry, sums) in entries.iter().zip(&unbound) {
        entry.identify(&mut id, sums.iter().copied());
    }
    let file_id = id.finish();
    write_sums(&mut tail, &file_id, &mut entries, &unbound, &places)?;

    let table = encode_table(&entries);
    let mut block = Superblock::new(head.key_type, head.value_type);
    if !head.meta.approximate.is_empty() {
        block.reader_features = APPROXIMATE.into();
    }
    block.file_id = file_id;
    block.generation = head.descent.generation.into();
    block.lineage = head.descent.lineage;
    block.file_bytes = file_bytes.into();
    block.tuples = lines.tuples.into();
    block.unique = u32::from(head.unique).into();
    block.table_offset = TABLE_OFFSET.into();
    block.table_bytes = (TABLE_BYTES as u64).into();
    block.sections = (entries.len() as u32).into();
    block.table_crc = crc32(&table).into();
    if let Some((min, max)) = &head.byte_ends {
        block.min_key_len = (min.len() as u32).into();
        block.max_key_len = (max.len() as u32).into();
        block.min_key = bytes_prefix(min);
        block.max_key = bytes_prefix(max);
    } else if let (Some(min), Some(max)) = (lines.min, lines.max) {
        let bytes = lines.short.map_or(W::BYTES, |short| short.key_bytes());
        block.min_key_len = (bytes as u32).into();
        block.max_key_len = (bytes as u32).into();
        block.min_key = key_prefix(lines.key(min), bytes);
        block.max_key = key_prefix(lines.key(max), bytes);
    }
    block.builder[..BUILDER.len()].copy_from_slice(BUILDER);
    let superblock = block.seal();
    tail.write(&table)?;
    tail.write(&superblock)?;
    tail.finish(&superblock, &table)?;
    Ok(Finished { file_bytes, file_id, spine: spine.clone() })
}

/// Returns the section of the spine.
fn spine_section<'a, W: KeyLane>(lines: &'a Lines<W>, spine: &'a SpineGeometry) -> Extra<'a> {
    Extra {
        tag: Tag::SPINE,
        required: false,
        length: spine.bytes,
        elements: spine.levels.iter().map(|level| level.lines).sum(),
        parameters: spine_parameters(W::BYTES, spine, lines.spine.inexact).into(),
        content: Box::new(|take| lines.spine.read(spine, &mut |lines| take(lines.as_flattened()))),
    }
}

/// Returns the entries of all sections but those of sums, without their places.
fn entries<W: KeyLane>(lines: &Lines<W>, head: &Head<'_>, extras: &[&Extra<'_>]) -> Vec<Entry> {
    let geometry = LineGeometry::new(W::BYTES, head.value_type.line_bytes());
    let mut entries = vec![
        Entry::new(Tag::META, false, 0, 0, head.meta.elements(), Parameters::NONE),
        Entry::new(Tag::LINE, true, 0, 0, lines.tuples, line_parameters(geometry, lines.short.as_ref())),
    ];
    let entry =
        |extra: &&Extra<'_>| Entry::new(extra.tag, extra.required, 0, 0, extra.elements, extra.parameters);
    entries.extend(extras.iter().map(entry));
    entries
}

/// Writes the content of all sections in file order; returns the unbound sums of each.
fn write_content<W: KeyLane>(
    tail: &mut Tail<'_>,
    meta: &[u8],
    lines: &Lines<W>,
    extras: &[&Extra<'_>],
    starts: &[u64],
) -> Result<Vec<Vec<u32>>, BuildError> {
    let mut unbound: Vec<Vec<u32>> = Vec::with_capacity(starts.len());
    let mut sums = Sums::default();
    if lines.written == 0 {
        tail.zeros_to(starts[0])?;
        tail.section(&mut sums, meta)?;
        tail.end_section(&mut sums, starts[1])?;
    } else {
        sums.add(meta);
        sums.add_zeros(starts[1] - starts[0] - meta.len() as u64);
        tail.first[starts[0] as usize..][..meta.len()].copy_from_slice(meta);
        sums.finish();
    }
    unbound.push(sums.done);
    // Full blocks of lines were summed when they were packed.
    let mut sums = Sums { done: lines.sums.clone(), partial: Vec::new() };
    let written = lines.places.offset(lines.written) - lines.places.offset(0);
    let mut to_skip = sums.done.len() as u64 * SUM_BLOCK_BYTES as u64 - written;
    for lines in &lines.rest {
        let bytes = lines.as_flattened();
        tail.write(bytes)?;
        let skipped = to_skip.min(bytes.len() as u64);
        sums.add(&bytes[skipped as usize..]);
        to_skip -= skipped;
    }
    tail.end_section(&mut sums, starts[2])?;
    unbound.push(sums.done);
    for (extra, &end) in extras.iter().zip(&starts[3..]) {
        let mut sums = Sums::default();
        let until = tail.at + extra.length;
        (extra.content)(&mut |bytes| tail.section(&mut sums, bytes))?;
        assert_eq!(tail.at, until, "{} has the length that was announced", extra.tag);
        tail.end_section(&mut sums, end)?;
        unbound.push(sums.done);
    }
    Ok(unbound)
}

/// Writes SUMS and SUM2, notes the place of each list in the entries, and appends the entries of both.
fn write_sums(
    tail: &mut Tail<'_>,
    file_id: &[u8; 16],
    entries: &mut Vec<Entry>,
    unbound: &[Vec<u32>],
    places: &Places,
) -> Result<(), BuildError> {
    let sums_at = places.starts[entries.len()];
    let mut list_at = sums_at;
    let mut sums = Sums::default();
    for (entry, unbound) in entries.iter_mut().zip(unbound) {
        let next = list_at.next_multiple_of(ARRAY_ALIGN);
        tail.section(&mut sums, &[0; ARRAY_ALIGN as usize][..(next - list_at) as usize])?;
        let list = bound(file_id, entry.tag, unbound);
        entry.sums_offset = next.into();
        entry.sums = (unbound.len() as u64).into();
        entry.sums_crc = crc32(&list).into();
        tail.section(&mut sums, &list)?;
        list_at = next + list.len() as u64;
    }
    tail.end_section(&mut sums, places.sum2_at)?;
    let list = bound(file_id, Tag::SUMS, &sums.done);
    let (all, own) = (unbound.iter().map(|sums| sums.len() as u64).sum(), sums.done.len() as u64);
    let mut sums_entry = Entry::new(Tag::SUMS, true, sums_at, list_at - sums_at, all, Parameters::NONE);
    sums_entry.sums_offset = places.sum2_at.into();
    sums_entry.sums = own.into();
    sums_entry.sums_crc = crc32(&list).into();
    let mut sum2_entry =
        Entry::new(Tag::SUM2, true, places.sum2_at, list.len() as u64, own, Parameters::NONE);
    tail.write(&list)?;
    let mut extent = list;
    extent.resize((places.closing_at - places.sum2_at) as usize, 0);
    sum2_entry.sums_crc = crc32(&extent).into();
    tail.zeros_to(places.closing_at)?;
    entries.extend([sums_entry, sum2_entry]);
    Ok(())
}

/// Encodes a list of sums, bound to the file.
fn bound(file_id: &[u8; 16], tag: Tag, sums: &[u32]) -> Vec<u8> {
    let bind = |block: usize| (sums[block] ^ binding(file_id, tag, block as u64)).to_le_bytes();
    parallel::collect::<[u8; SUM_BYTES]>(sums.len(), 1 << 12, bind).into_flattened()
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
        let sum = |block: usize| crc32(&bytes[block * SUM_BLOCK_BYTES..][..SUM_BLOCK_BYTES]);
        self.done.extend(parallel::collect(full / SUM_BLOCK_BYTES, 16, sum));
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

/// Writer of consecutive bytes in pieces; it keeps the first piece of the file.
struct Tail<'a> {
    output: Output<'a>,
    watch: &'a Watch<'a>,
    file_bytes: u64,
    /// Bytes `..at` of the file are written, or in `first` or `piece`.
    at: u64,
    /// The beginning of the file.
    first: Vec<u8>,
    /// Bytes since the last 2 MiB boundary.
    piece: Vec<u8>,
}

impl<'a> Tail<'a> {
    /// Creates a writer from the end of the lines on that were written, else from the start of the file on.
    fn new<W: KeyLane>(output: Output<'a>, watch: &'a Watch<'a>, lines: &Lines<W>, file_bytes: u64) -> Self {
        let (at, first_bytes) = match lines.written {
            0 => (0, (PIECE_BYTES as u64).min(file_bytes)),
            written => (lines.places.offset(written), lines.places.offset(0)),
        };
        let first = vec![0; first_bytes as usize];
        Self { output, watch, file_bytes, at, first, piece: Vec::with_capacity(PIECE_BYTES) }
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

    /// Writes bytes of a section and adds them to its sums.
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

    /// Writes the rest, and the beginning of the file last.
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
