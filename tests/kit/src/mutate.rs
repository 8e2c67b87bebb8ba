//! Damage to a file's bytes: what a disk or a copy does, and what a forger does.
//!
//! The sums find a change by themselves. So that checks after the sums are reached, too, [`reseal`]
//! makes every sum of a changed file right again, and the file id with them; [`reseal_head`] does
//! the superblock and the section table only, and never looks at the contents of the table, which may be anything.

use crate::generate::{Random, mix};
use crate::naive;
use pleach_format::Header;
use pleach_format::checksum::{FileId, SUM_BLOCK_BYTES, binding, crc32};
use pleach_format::meta::Meta;
use pleach_format::section::{ENTRY_BYTES, Entry, REQUIRED, TABLE_BYTES, TABLE_OFFSET, Tag};
use pleach_format::spine::Encoding;
use pleach_format::superblock::{CRC_OFFSET, SUPERBLOCK_BYTES, Superblock};
use pleach_format::view::{CLOSING_BYTES, HEAD_BYTES, Section};
use std::ops::Range;
use zerocopy::{FromBytes, IntoBytes};

/// Offset of the file id in the superblock.
const FILE_ID_AT: usize = 48;
/// Offset of the number of sections in the superblock.
const SECTIONS_AT: usize = 120;
/// Offset of the table's sum in the superblock.
const TABLE_CRC_AT: usize = 124;

/// Inverts bit `bit % 8` of byte `bit / 8`.
pub fn flip(bytes: &mut [u8], bit: usize) {
    bytes[bit / 8] ^= 1 << (bit % 8);
}

/// The header of a whole file. Panics if it is none.
#[must_use]
pub fn header(bytes: &[u8]) -> Header {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    Header::parse(head, bytes.len() as u64).expect("a whole file")
}

/// Returns the range of bytes of a section, without the padding after it.
#[must_use]
pub fn content(bytes: &[u8], tag: Tag) -> Range<usize> {
    let header = header(bytes);
    let section = header.section(tag).expect("a section of this tag");
    let start = section.offset() as usize;
    start..start + section.entry.length.get() as usize
}

/// The sections of a whole file but its sums: what [`naive::assemble`] makes a file of.
#[must_use]
pub fn contents(bytes: &[u8]) -> Vec<naive::Content> {
    let there = header(bytes);
    let sections = there.sections.iter().filter(|it| !matches!(it.entry.tag, Tag::SUMS | Tag::SUM2));
    let content = |section: &Section| {
        let Entry { tag, flags, elements, parameters, .. } = section.entry;
        (tag, flags.get() == REQUIRED, bytes[content(bytes, tag)].to_vec(), elements.get(), parameters)
    };
    sections.map(content).collect()
}

/// Returns the range of bytes of a section and of the padding after it.
#[must_use]
pub fn extent(bytes: &[u8], tag: Tag) -> Range<usize> {
    let header = header(bytes);
    let section = header.section(tag).expect("a section of this tag");
    section.offset() as usize..section.end as usize
}

/// Returns the offset of the entry of a section in the file.
#[must_use]
pub fn entry_at(bytes: &[u8], tag: Tag) -> usize {
    let header = header(bytes);
    let index = header.sections.iter().position(|section| section.entry.tag == tag);
    TABLE_OFFSET as usize + index.expect("a section of this tag") * ENTRY_BYTES
}

/// Exchanges two ranges of `length` bytes, which must not overlap.
pub fn swap(bytes: &mut [u8], a: usize, b: usize, length: usize) {
    let (low, high) = (a.min(b), a.max(b));
    let (left, right) = bytes.split_at_mut(high);
    left[low..low + length].swap_with_slice(&mut right[..length]);
}

/// Writes a little-endian number of `width` bytes.
pub fn put(bytes: &mut [u8], at: usize, width: usize, number: u64) {
    bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
}

/// Reads a little-endian number of `width` bytes.
#[must_use]
pub fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    let mut word = [0; 8];
    word[..width].copy_from_slice(&bytes[at..at + width]);
    u64::from_le_bytes(word)
}

/// Kinds of damage that [`scramble`] knows.
pub const SCRAMBLES: u64 = 7;

/// Overwrites META, tuple lines, spine and grid, and leaves the sums as they were: bytes of chance, of one
/// kind, a few changes, or lines in descending order; `kind` says which, modulo [`SCRAMBLES`].
pub fn scramble(bytes: &mut [u8], random: &mut Random, kind: u64) {
    for tag in [Tag::META, Tag::LINE, Tag::SPINE, Tag::GRID] {
        if header(bytes).section(tag).is_none() {
            continue;
        }
        let place = content(bytes, tag);
        if place.is_empty() {
            continue;
        }
        let length = place.len() as u64;
        match kind % SCRAMBLES {
            0 => bytes[place].fill_with(|| random.next() as u8),
            1 => bytes[place].fill(0xFF),
            2 => bytes[place].fill(0),
            3 => {
                for _ in 0..=length / 512 {
                    flip(bytes, (place.start as u64 * 8 + random.below(length * 8)) as usize);
                }
            }
            4 if matches!(tag, Tag::SPINE | Tag::GRID) => bytes[place].fill_with(|| random.next() as u8),
            5 if tag == Tag::LINE => bytes[place].fill_with(|| random.next() as u8),
            6 if tag == Tag::LINE => {
                let lines = bytes[place.clone()].chunks_exact(64).rev().flatten().copied();
                let descending: Vec<u8> = lines.collect();
                bytes[place.start..place.start + descending.len()].copy_from_slice(&descending);
            }
            _ => {}
        }
        // Every spine line claims to be inexact, so that searches step right over what they find.
        if tag == Tag::SPINE && random.below(2) == 0 {
            let place = content(bytes, tag);
            for line in bytes[place].chunks_exact_mut(64) {
                line[63] |= 1;
            }
        }
    }
}

/// Makes the sums of the section table and of the superblock right, and the closing copies equal.
/// Accepts any file of four pages or more, whatever its table says.
pub fn reseal_head(bytes: &mut [u8]) {
    let table = crc32(&bytes[TABLE_OFFSET as usize..HEAD_BYTES]);
    put(bytes, TABLE_CRC_AT, 4, table.into());
    let crc = crc32(&bytes[..CRC_OFFSET]);
    put(bytes, CRC_OFFSET, 4, crc.into());
    let closing = bytes.len() - CLOSING_BYTES;
    bytes.copy_within(TABLE_OFFSET as usize..HEAD_BYTES, closing);
    bytes.copy_within(..SUPERBLOCK_BYTES, closing + TABLE_BYTES);
}

/// Makes every sum of a file right, and its file id: what is wrong now is wrong in itself.
///
/// The places in the section table must still be those of the file.
pub fn reseal(bytes: &mut [u8]) {
    let superblock = Superblock::read_from_prefix(bytes).expect("a superblock").0;
    let mut id = FileId::new(
        superblock.key_type.get(),
        superblock.value_type.get(),
        superblock.unique.get() == 1,
        superblock.tuples.get(),
    );
    for (entry, extent) in placed(bytes) {
        if entry.tag != Tag::SUMS && entry.tag != Tag::SUM2 {
            entry.identify(&mut id, bytes[extent].chunks(SUM_BLOCK_BYTES).map(crc32));
        }
    }
    reseal_as(bytes, id.finish());
}

/// A changed copy of a file, its sums made right by [`reseal`].
#[must_use]
pub fn resealed(whole: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    change(&mut bytes);
    reseal(&mut bytes);
    bytes
}

/// [`reseal`] with a file id of the caller's choice.
pub fn reseal_as(bytes: &mut [u8], file_id: [u8; 16]) {
    bytes[FILE_ID_AT..FILE_ID_AT + 16].copy_from_slice(&file_id);
    // In file order: data comes before its sums, and SUMS before SUM2.
    for (index, (mut entry, extent)) in placed(bytes).into_iter().enumerate() {
        if entry.tag == Tag::SUM2 {
            entry.sums_crc = crc32(&bytes[extent]).into();
        } else {
            let sums: Vec<u8> = (0u64..)
                .zip(bytes[extent].chunks(SUM_BLOCK_BYTES))
                .flat_map(|(block, bytes)| (crc32(bytes) ^ binding(&file_id, entry.tag, block)).to_le_bytes())
                .collect();
            entry.sums_crc = crc32(&sums).into();
            let at = entry.sums_offset.get() as usize;
            bytes[at..at + sums.len()].copy_from_slice(&sums);
        }
        let at = TABLE_OFFSET as usize + index * ENTRY_BYTES;
        bytes[at..at + ENTRY_BYTES].copy_from_slice(entry.as_bytes());
    }
    reseal_head(bytes);
}

/// Returns the entries of the section table as stored, with their extents.
fn placed(bytes: &[u8]) -> Vec<(Entry, Range<usize>)> {
    let count = number(bytes, SECTIONS_AT, 4) as usize;
    let table = &bytes[TABLE_OFFSET as usize..HEAD_BYTES];
    let entries: Vec<Entry> = table
        .chunks_exact(ENTRY_BYTES)
        .take(count)
        .map(|entry| Entry::read_from_bytes(entry).expect("128 bytes"))
        .collect();
    let closing = bytes.len() - CLOSING_BYTES;
    let ends: Vec<usize> =
        entries.iter().skip(1).map(|entry| entry.offset.get() as usize).chain([closing]).collect();
    entries.into_iter().zip(ends).map(|(entry, end)| (entry, entry.offset.get() as usize..end)).collect()
}

/// Damage that has a name: how it is done, and what `fsck` calls it.
pub struct Damage {
    /// Its name: also that of the file in `tests/data/bad`.
    pub name: &'static str,
    /// Code of a finding that must be among those of `fsck`.
    pub code: &'static str,
    /// Section that this finding names.
    pub section: &'static str,
    /// Does it.
    pub make: fn(&mut Vec<u8>),
}

/// Damage as disks, copies and transfers do it: no sum was made right afterwards.
///
/// The file must have two full blocks of tuple lines, a spine and column names.
pub const PLAIN: &[Damage] = &[
    Damage { name: "flip-magic", code: "header", section: "superblock", make: |b| flip(b, 8) },
    Damage { name: "flip-version", code: "superblock", section: "superblock", make: |b| flip(b, 16 * 8) },
    Damage { name: "flip-tuples", code: "superblock", section: "superblock", make: |b| flip(b, 80 * 8) },
    Damage { name: "flip-reserved", code: "superblock", section: "superblock", make: |b| flip(b, 3000 * 8) },
    Damage {
        name: "flip-superblock-sum",
        code: "superblock",
        section: "superblock",
        make: |b| flip(b, 4092 * 8),
    },
    Damage { name: "flip-table", code: "table", section: "section table", make: |b| flip(b, 4104 * 8) },
    Damage { name: "flip-table-rest", code: "table", section: "section table", make: |b| flip(b, 8191 * 8) },
    Damage { name: "flip-meta", code: "block", section: "META", make: |b| flip_first(b, Tag::META) },
    Damage { name: "flip-meta-padding", code: "block", section: "META", make: |b| flip_last(b, Tag::META) },
    Damage { name: "flip-key", code: "block", section: "LINE", make: |b| flip_first(b, Tag::LINE) },
    Damage { name: "flip-line-padding", code: "block", section: "LINE", make: |b| flip_last(b, Tag::LINE) },
    Damage { name: "flip-separator", code: "block", section: "SPIN", make: |b| flip_first(b, Tag::SPINE) },
    Damage { name: "flip-spine-padding", code: "block", section: "SPIN", make: |b| flip_last(b, Tag::SPINE) },
    Damage {
        name: "flip-sum-of-line",
        code: "sums",
        section: "LINE",
        make: |b| {
            let at = sums_at(b, Tag::LINE);
            flip_at(b, at);
        },
    },
    Damage { name: "flip-sums-padding", code: "block", section: "SUMS", make: |b| flip_last(b, Tag::SUMS) },
    Damage { name: "flip-sum2", code: "sums", section: "SUM2", make: |b| flip_first(b, Tag::SUM2) },
    Damage { name: "flip-sum2-padding", code: "sums", section: "SUM2", make: |b| flip_last(b, Tag::SUM2) },
    Damage {
        name: "flip-closing",
        code: "superblock-copy",
        section: "closing superblock",
        make: |b| {
            let at = b.len() - 4096 + 300;
            flip_at(b, at);
        },
    },
    Damage {
        name: "flip-closing-table",
        code: "table-copy",
        section: "closing section table",
        make: |b| {
            let at = b.len() - 8192 + 300;
            flip_at(b, at);
        },
    },
    Damage { name: "zero-superblock", code: "header", section: "superblock", make: |b| b[..4096].fill(0) },
    Damage { name: "zero-table", code: "table", section: "section table", make: |b| b[4096..8192].fill(0) },
    Damage {
        name: "zero-block",
        code: "block",
        section: "LINE",
        make: |b| {
            let at = content(b, Tag::LINE).start;
            b[at..at + 8192].fill(0);
        },
    },
    Damage {
        name: "ones-sector",
        code: "block",
        section: "LINE",
        make: |b| {
            let at = content(b, Tag::LINE).start + 8192;
            b[at..at + 512].fill(0xFF);
        },
    },
    Damage {
        name: "swap-blocks",
        code: "block",
        section: "LINE",
        make: |b| {
            let at = content(b, Tag::LINE).start;
            swap(b, at, at + 8192, 8192);
        },
    },
    Damage {
        name: "copy-block",
        code: "block",
        section: "LINE",
        make: |b| {
            let at = content(b, Tag::LINE).start;
            b.copy_within(at..at + 8192, at + 8192);
        },
    },
    Damage {
        // All that is wrong is the place of the block: its own sum came with it.
        name: "swap-blocks-and-sums",
        code: "block",
        section: "LINE",
        make: |b| {
            let at = content(b, Tag::LINE).start;
            let sums = sums_at(b, Tag::LINE);
            swap(b, at, at + 8192, 8192);
            swap(b, sums, sums + 4, 4);
        },
    },
    Damage { name: "truncate-byte", code: "length", section: "file", make: |b| b.truncate(b.len() - 1) },
    Damage { name: "truncate-page", code: "length", section: "file", make: |b| b.truncate(b.len() - 4096) },
    Damage { name: "truncate-half", code: "length", section: "file", make: |b| b.truncate(b.len() / 2) },
    Damage { name: "truncate-table", code: "length", section: "file", make: |b| b.truncate(5000) },
    Damage { name: "truncate-superblock", code: "length", section: "file", make: |b| b.truncate(100) },
    Damage { name: "extend-byte", code: "length", section: "file", make: |b| b.push(0) },
    Damage { name: "extend-page", code: "length", section: "file", make: |b| b.resize(b.len() + 4096, 0) },
    Damage { name: "extend-twice", code: "length", section: "file", make: |b| b.extend_from_within(..) },
    Damage {
        name: "junk-for-last-page",
        code: "superblock-copy",
        section: "closing superblock",
        make: |b| {
            let at = b.len() - 4096;
            b[at..].fill(b'j');
        },
    },
];

fn flip_at(bytes: &mut [u8], byte: usize) {
    flip(bytes, byte * 8 + byte % 8);
}

fn flip_first(bytes: &mut [u8], tag: Tag) {
    let at = content(bytes, tag).start;
    flip_at(bytes, at);
}

fn flip_last(bytes: &mut [u8], tag: Tag) {
    let at = extent(bytes, tag).end - 1;
    flip_at(bytes, at);
}

/// Byte of the file at which the sums of a section begin.
fn sums_at(bytes: &[u8], tag: Tag) -> usize {
    header(bytes).section(tag).expect("a section of this tag").entry.sums_offset.get() as usize
}

/// Tuples and bytes of the file that [`SEALED`] damages: unique `u64` keys with `u64` values.
///
/// It has an odd number of tuple lines, the last of them not full; two levels of 16-bit codes of an
/// odd number of lines each; one line flagged inexact; and column names.
#[must_use]
pub fn victim() -> (Vec<(u64, u64)>, Vec<u8>) {
    let mut words: Vec<u64> = (0..1002).map(mix).collect();
    words.sort_unstable();
    // Neighbours on both sides of a line's end: no cell of the grid ends between them.
    words[TIGHT + 1] = words[TIGHT] + 1;
    let tuples: Vec<(u64, u64)> = words.iter().map(|&word| (word, mix(word))).collect();
    let meta = Meta { key_name: "id".into(), value_name: "number".into(), ..Meta::default() };
    let bytes = naive::build_with(&tuples, &meta, true, naive::Grid::Always);
    let header = header(&bytes);
    let levels: Vec<_> = header.spine.levels.iter().map(|level| (level.encoding, level.lines)).collect();
    assert_eq!(levels, [(Encoding::Delta16, 9), (Encoding::Delta16, 1)]);
    assert_eq!((header.lines, header.geometry.tuples_in_line(250, 1002)), (251, 2));
    assert_eq!(header.inexact_lines, 1);
    (tuples, bytes)
}

/// Last tuple of a line; its key and the next one are neighbours.
const TIGHT: usize = 403;

/// Byte of the first key of a tuple line.
fn line(bytes: &[u8], number: usize) -> usize {
    content(bytes, Tag::LINE).start + number * 64
}

/// Byte of a line of a level of the spine.
fn spine_line(bytes: &[u8], level: usize, number: usize) -> usize {
    let header = header(bytes);
    header.spine_offset as usize + header.spine.levels[level].offset as usize + number * 64
}

/// Bytes of the field `inexact` from the start of an entry.
const INEXACT_AT: usize = 56 + 16;

/// Damage that is under right sums: what only a look at the content finds. Of [`victim`].
pub const SEALED: &[Damage] = &[
    Damage {
        name: "order",
        code: "order",
        section: "LINE",
        make: |b| {
            let at = line(b, 5);
            swap(b, at + 8, at + 16, 8);
            reseal(b);
        },
    },
    Damage {
        name: "order-of-lines",
        code: "order",
        section: "LINE",
        make: |b| {
            let at = line(b, 5);
            swap(b, at, at + 64, 64);
            reseal(b);
        },
    },
    Damage {
        name: "duplicate",
        code: "duplicate",
        section: "LINE",
        make: |b| {
            let at = line(b, 5);
            b.copy_within(at + 8..at + 16, at + 16);
            reseal(b);
        },
    },
    Damage {
        name: "free-key",
        code: "line-padding",
        section: "LINE",
        make: |b| {
            let at = line(b, 250) + 24;
            b[at] = 0xFE;
            reseal(b);
        },
    },
    Damage {
        name: "free-value",
        code: "line-padding",
        section: "LINE",
        make: |b| {
            let at = line(b, 250) + 63;
            b[at] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "odd-line",
        code: "padding",
        section: "LINE",
        make: |b| {
            let at = line(b, 251) + 17;
            b[at] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "meta-section-padding",
        code: "padding",
        section: "META",
        make: |b| {
            let at = extent(b, Tag::META).end - 1;
            b[at] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "line-section-padding",
        code: "padding",
        section: "LINE",
        make: |b| {
            let at = extent(b, Tag::LINE).end - 1;
            b[at] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "spine-section-padding",
        code: "padding",
        section: "SPIN",
        make: |b| {
            let at = extent(b, Tag::SPINE).end - 1;
            b[at] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "sums-section-padding",
        code: "padding",
        section: "SUMS",
        make: |b| {
            let at = extent(b, Tag::SUMS).end - 1;
            b[at] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "sum2-section-padding",
        code: "padding",
        section: "SUM2",
        make: |b| {
            let at = extent(b, Tag::SUM2).end - 1;
            b[at] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "gap-between-sums",
        code: "padding",
        section: "SUMS",
        make: |b| {
            let at = sums_at(b, Tag::LINE) - 1;
            b[at] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "separator",
        code: "separator",
        section: "SPIN",
        make: |b| {
            let at = spine_line(b, 0, 2) + 6;
            let code = number(b, at, 2);
            put(b, at, 2, code + 1);
            reseal(b);
        },
    },
    Damage {
        name: "separator-of-root",
        code: "separator",
        section: "SPIN",
        make: |b| {
            let at = spine_line(b, 1, 0) + 6;
            let code = number(b, at, 2);
            put(b, at, 2, code - 1);
            reseal(b);
        },
    },
    Damage {
        name: "base",
        code: "separator",
        section: "SPIN",
        make: |b| {
            let at = spine_line(b, 0, 2) + 54 + 6;
            b[at] ^= 1;
            reseal(b);
        },
    },
    Damage {
        name: "flag-missing",
        code: "separator",
        section: "SPIN",
        make: |b| {
            let at = spine_line(b, 0, TIGHT / 4 / 28) + 63;
            assert_eq!(b[at], 1);
            b[at] = 0;
            let count = entry_at(b, Tag::SPINE) + INEXACT_AT;
            put(b, count, 8, 0);
            reseal(b);
        },
    },
    Damage {
        name: "flag-uncounted",
        code: "spine-line",
        section: "SPIN",
        make: |b| {
            let at = spine_line(b, 0, 0) + 63;
            assert_eq!(b[at], 0);
            b[at] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "flag-overcounted",
        code: "spine-line",
        section: "SPIN",
        make: |b| {
            let count = entry_at(b, Tag::SPINE) + INEXACT_AT;
            put(b, count, 8, 2);
            reseal(b);
        },
    },
    Damage {
        name: "flag-unknown",
        code: "spine-line",
        section: "SPIN",
        make: |b| {
            let at = spine_line(b, 0, 0) + 63;
            b[at] = 2;
            reseal(b);
        },
    },
    Damage {
        name: "shift",
        code: "spine-line",
        section: "SPIN",
        make: |b| {
            let at = spine_line(b, 0, 0) + 62;
            b[at] = 64;
            reseal(b);
        },
    },
    Damage {
        name: "free-slot",
        code: "spine-line",
        section: "SPIN",
        make: |b| {
            let at = spine_line(b, 0, 8) + 53;
            assert_eq!(b[at], 0xFF);
            b[at] = 0x7F;
            reseal(b);
        },
    },
    Damage {
        name: "odd-spine-line",
        code: "padding",
        section: "SPIN",
        make: |b| {
            let at = spine_line(b, 0, 9) + 63;
            b[at] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "min",
        code: "min-max",
        section: "superblock",
        make: |b| {
            b[136] ^= 1;
            reseal(b);
        },
    },
    Damage {
        name: "max",
        code: "min-max",
        section: "superblock",
        make: |b| {
            b[200 + 7] ^= 1;
            reseal(b);
        },
    },
    Damage {
        name: "min-length",
        code: "min-max",
        section: "superblock",
        make: |b| {
            put(b, 128, 4, 7);
            reseal(b);
        },
    },
    Damage {
        name: "max-rest",
        code: "min-max",
        section: "superblock",
        make: |b| {
            b[200 + 8] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "file-id",
        code: "file-id",
        section: "superblock",
        make: |b| {
            reseal_as(b, [7; 16]);
        },
    },
    Damage {
        name: "meta-length",
        code: "meta",
        section: "META",
        make: |b| {
            let at = content(b, Tag::META).start + 4;
            put(b, at, 4, 1000);
            reseal(b);
        },
    },
    Damage {
        name: "meta-text",
        code: "meta",
        section: "META",
        make: |b| {
            let at = content(b, Tag::META).start + 8;
            b[at] = 0xFF;
            reseal(b);
        },
    },
    Damage {
        name: "meta-count",
        code: "meta",
        section: "META",
        make: |b| {
            let at = entry_at(b, Tag::META) + 24;
            put(b, at, 8, 3);
            reseal(b);
        },
    },
    Damage {
        name: "meta-zero",
        code: "meta",
        section: "META",
        make: |b| {
            let at = content(b, Tag::META).start + 2;
            b[at] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "meta-record-padding",
        code: "meta",
        section: "META",
        make: |b| {
            let at = content(b, Tag::META).start + 8 + 2;
            b[at] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "superblock-reserved",
        code: "header",
        section: "superblock",
        make: |b| {
            b[300] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "development-mark",
        code: "header",
        section: "superblock",
        make: |b| {
            b[20] ^= 1;
            reseal(b);
        },
    },
    Damage {
        name: "table-rest",
        code: "header",
        section: "section table",
        make: |b| {
            b[8191] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "entry-of-list",
        code: "sums",
        section: "LINE",
        make: |b| {
            let at = entry_at(b, Tag::LINE) + 48;
            b[at] ^= 1;
            reseal_head(b);
        },
    },
    Damage {
        name: "sums-count",
        code: "header",
        section: "SUMS",
        make: |b| {
            let at = entry_at(b, Tag::SUMS) + 24;
            b[at] += 1;
            reseal(b);
        },
    },
    Damage {
        name: "sum2-skippable",
        code: "header",
        section: "SUM2",
        make: |b| {
            let at = entry_at(b, Tag::SUM2) + 4;
            put(b, at, 4, 0);
            reseal(b);
        },
    },
    Damage {
        name: "line-skippable",
        code: "header",
        section: "LINE",
        make: |b| {
            let at = entry_at(b, Tag::LINE) + 4;
            put(b, at, 4, 0);
            reseal(b);
        },
    },
    Damage {
        name: "meta-required",
        code: "header",
        section: "META",
        make: |b| {
            let at = entry_at(b, Tag::META) + 4;
            put(b, at, 4, 1);
            reseal(b);
        },
    },
    Damage {
        name: "meta-parameters",
        code: "header",
        section: "META",
        make: |b| {
            let at = entry_at(b, Tag::META) + 56;
            b[at] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "sums-parameters",
        code: "header",
        section: "SUMS",
        make: |b| {
            let at = entry_at(b, Tag::SUMS) + 56;
            b[at] = 1;
            reseal(b);
        },
    },
    Damage {
        name: "meta-missing",
        code: "header",
        section: "section table",
        make: |b| {
            let at = entry_at(b, Tag::META);
            b[at..at + 4].copy_from_slice(b"NOPE");
            reseal(b);
        },
    },
    Damage {
        // A page of nothing before SUM2, and every number right but the place.
        name: "gap-between-sections",
        code: "header",
        section: "SUM2",
        make: |b| {
            let (entry, sums, place) =
                (entry_at(b, Tag::SUM2), entry_at(b, Tag::SUMS), extent(b, Tag::SUM2).start);
            b.splice(place..place, [0; 4096]);
            put(b, entry + 8, 8, place as u64 + 4096);
            put(b, sums + 32, 8, place as u64 + 4096);
            let file_bytes = b.len() as u64;
            put(b, 72, 8, file_bytes);
            reseal(b);
        },
    },
    Damage {
        name: "sums-unaligned",
        code: "header",
        section: "META",
        make: |b| {
            let (entry, at) = (entry_at(b, Tag::META), sums_at(b, Tag::META));
            b[at..at + 4].fill(0);
            put(b, entry + 32, 8, at as u64 + 64);
            reseal(b);
        },
    },
    Damage {
        name: "tuples",
        code: "header",
        section: "LINE",
        make: |b| {
            put(b, 80, 8, 1001);
            reseal(b);
        },
    },
];
