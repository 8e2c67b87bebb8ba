//! Faults that opening does not see: what a check of the whole file finds, one for each place where it looks.

use super::bases::Base;
use super::fault::{Fault, Make, byte, byte_back, damaged, head, sealed};
use super::frame::{ELEMENTS, FLAGS, PARAMETERS, SUMS_OFFSET};
use pleach_format::checksum::{binding, crc32};
use pleach_format::section::{Tag, entry_offset};
use pleach_fsck::Code;
use pleach_kit::mutate::{
    content, contents, entry_at, extent, flip, header, number, put, reseal, reseal_as, reseal_head, swap,
};
use pleach_kit::naive::assemble;

pub(super) fn faults() -> Vec<Fault> {
    let mut all = copies_and_sums();
    all.extend(blocks());
    all.extend(frame());
    all.extend(lines());
    all.extend(line_ends());
    all.extend(spine());
    all.extend(meta());
    all.extend(masks_and_columns());
    all.extend(offsets());
    all
}

fn flip_in(tag: Tag) -> impl Fn(&mut Vec<u8>) + 'static {
    move |b| {
        let at = content(b, tag).start;
        flip(b, at * 8 + 3);
    }
}

/// Exchanges the two blocks of the tuple lines together with their sums; all that says so is the number in each sum.
fn move_blocks(b: &mut [u8]) {
    let (line, there) = (extent(b, Tag::LINE), header(b));
    assert_eq!(line.len(), 2 * 8192, "two whole blocks");
    let (sums, sum2, sum2_all) = (extent(b, Tag::SUMS), content(b, Tag::SUM2).start, extent(b, Tag::SUM2));
    let [line_at, sums_at, sum2_at] = [Tag::LINE, Tag::SUMS, Tag::SUM2].map(|tag| entry_at(b, tag) + 48);
    let list = there.section(Tag::LINE).map_or(0, |section| section.entry.sums_offset.get()) as usize;
    swap(b, line.start, line.start + 8192, 8192);
    swap(b, list, list + 4, 4);
    let crc = crc32(&b[list..list + 8]);
    put(b, line_at, 4, crc.into());
    let sum = crc32(&b[sums]) ^ binding(&there.superblock.file_id, Tag::SUMS, 0);
    put(b, sum2, 4, sum.into());
    let crc = crc32(&b[sum2..sum2 + 4]);
    put(b, sums_at, 4, crc.into());
    let crc = crc32(&b[sum2_all]);
    put(b, sum2_at, 4, crc.into());
    reseal_head(b);
}

fn copies_and_sums() -> Vec<Fault> {
    let list = |tag| {
        head(move |b: &mut Vec<u8>| {
            let at = entry_at(b, tag) + 48;
            b[at] ^= 1;
        })
    };
    let last = |tag| {
        move |b: &mut Vec<u8>| {
            let at = extent(b, tag).end - 1;
            flip(b, at * 8);
        }
    };
    vec![
        damaged(
            Code::SuperblockCopy,
            "copy-superblock",
            Base::Small,
            "A bit of the closing superblock flipped.",
            |b| {
                let at = b.len() - 3000;
                flip(b, at * 8);
            },
        ),
        damaged(
            Code::TableCopy,
            "copy-table",
            Base::Small,
            "A bit of the closing section table flipped.",
            |b| {
                let at = b.len() - 8192 + 300;
                flip(b, at * 8);
            },
        ),
        damaged(
            Code::Sums,
            "sums-of-line",
            Base::Small,
            "The list of sums of LINE does not match its sum.",
            list(Tag::LINE),
        ),
        damaged(
            Code::Sums,
            "sums-of-sums",
            Base::Small,
            "The list of sums of SUMS does not match its sum.",
            list(Tag::SUMS),
        ),
        damaged(Code::Sums, "sums-of-sum2", Base::Small, "SUM2 does not match its sum.", list(Tag::SUM2)),
        damaged(
            Code::Sums,
            "sums-sum2-end",
            Base::Small,
            "A bit flipped behind SUM2, which is under its sum, too.",
            last(Tag::SUM2),
        ),
    ]
}

fn blocks() -> Vec<Fault> {
    let last = |tag| {
        move |b: &mut Vec<u8>| {
            let at = extent(b, tag).end - 1;
            flip(b, at * 8);
        }
    };
    vec![
        damaged(Code::Block, "block-line", Base::Small, "A bit of a key flipped.", flip_in(Tag::LINE)),
        damaged(
            Code::Block,
            "block-second",
            Base::Blocks,
            "A bit in the second block of the tuple lines flipped.",
            |b| {
                let at = content(b, Tag::LINE).start + 8192;
                flip(b, at * 8);
            },
        ),
        damaged(
            Code::Block,
            "block-end",
            Base::Small,
            "A bit behind the tuple lines flipped, in their last block.",
            last(Tag::LINE),
        ),
        damaged(Code::Block, "block-spine", Base::Spine, "A bit of the spine flipped.", flip_in(Tag::SPINE)),
        damaged(Code::Block, "block-meta", Base::Spine, "A bit of META flipped.", flip_in(Tag::META)),
        damaged(Code::Block, "block-sums", Base::Small, "A bit behind SUMS flipped.", last(Tag::SUMS)),
        damaged(Code::Block, "block-mask", Base::Mask, "A bit of a reference flipped.", |b| {
            let at = content(b, Tag::MASK).start + 32;
            flip(b, at * 8);
        }),
        damaged(
            Code::Block,
            "block-values",
            Base::Values,
            "A bit behind the values flipped.",
            last(Tag::VALUES),
        ),
        damaged(
            Code::Block,
            "block-moved",
            Base::Blocks,
            "Two blocks exchanged together with their sums.",
            |b| move_blocks(b),
        ),
    ]
}

fn frame() -> Vec<Fault> {
    let damaged =
        |name, base, about, make: Make| super::fault::damaged(Code::Header, name, base, about, make);
    let flag = |tag, flags| {
        Box::new(sealed(move |b: &mut Vec<u8>| {
            let at = entry_at(b, tag) + FLAGS;
            put(b, at, 4, flags);
        }))
    };
    vec![
        damaged(
            "header-reserved",
            Base::Small,
            "A reserved byte of the superblock is not zero.",
            Box::new(sealed(|b| b[4091] = 1)),
        ),
        damaged(
            "header-lineage",
            Base::Small,
            "The first generation has a lineage.",
            Box::new(sealed(|b| b[296] = 1)),
        ),
        damaged(
            "header-table-rest",
            Base::Small,
            "A byte behind the entries of the section table is not zero.",
            Box::new(sealed(|b| b[8191] = 1)),
        ),
        damaged("header-line-flag", Base::Small, "LINE is not marked as required.", flag(Tag::LINE, 0)),
        damaged("header-meta-flag", Base::Small, "META is marked as required.", flag(Tag::META, 1)),
        damaged(
            "header-keys-flag",
            Base::Keys,
            "KEYS is not marked as required, and answers depend on it.",
            flag(Tag::KEYS, 0),
        ),
        damaged(
            "header-meta-parameters",
            Base::Small,
            "META has parameters.",
            Box::new(sealed(|b| {
                let at = entry_at(b, Tag::META) + PARAMETERS;
                b[at] = 1;
            })),
        ),
        damaged(
            "header-sums-count",
            Base::Small,
            "SUMS counts another number of sums.",
            Box::new(sealed(|b| {
                let at = entry_at(b, Tag::SUMS) + ELEMENTS;
                b[at] += 1;
            })),
        ),
        damaged(
            "header-first",
            Base::Small,
            "The first section is not META.",
            Box::new(sealed(|b| {
                let at = entry_offset(0) as usize;
                b[at..at + 4].copy_from_slice(b"NEWS");
            })),
        ),
        damaged(
            "header-gap",
            Base::Small,
            "A page of zeros between two sections.",
            Box::new(sealed(|b| {
                let (entry, sums, place) =
                    (entry_at(b, Tag::SUM2), entry_at(b, Tag::SUMS), extent(b, Tag::SUM2).start);
                b.splice(place..place, [0; 4096]);
                put(b, entry + 8, 8, place as u64 + 4096);
                put(b, sums + 32, 8, place as u64 + 4096);
                let length = b.len() as u64;
                put(b, 72, 8, length);
            })),
        ),
        damaged(
            "header-list",
            Base::Small,
            "A list of sums begins on 64 bytes, not on 128.",
            Box::new(sealed(|b| {
                let (entry, sums) = (entry_at(b, Tag::LINE), entry_at(b, Tag::SUMS) + 16);
                let at = number(b, entry + SUMS_OFFSET, 8);
                put(b, at as usize, 4, 0);
                put(b, entry + SUMS_OFFSET, 8, at + 64);
                let length = number(b, sums, 8);
                put(b, sums, 8, length + 64);
            })),
        ),
    ]
}

/// Byte of the first key of a tuple line.
fn line(b: &[u8], number: usize) -> usize {
    content(b, Tag::LINE).start + number * 64
}

fn lines() -> Vec<Fault> {
    vec![
        damaged(
            Code::Order,
            "order",
            Base::Spine,
            "Two keys of a line are exchanged.",
            sealed(|b| {
                let at = line(b, 5);
                swap(b, at + 8, at + 16, 8);
            }),
        ),
        damaged(
            Code::Duplicate,
            "duplicate",
            Base::Spine,
            "A key occurs twice in a file of unique keys.",
            sealed(|b| {
                let at = line(b, 5);
                b.copy_within(at + 8..at + 16, at + 16);
            }),
        ),
        damaged(
            Code::Key,
            "key-minus-zero",
            Base::Float,
            "The word of -0.0.",
            sealed(|b| {
                let at = line(b, 0) + 8;
                assert_eq!(number(b, at, 8), 1 << 63);
                put(b, at, 8, (1 << 63) - 1);
            }),
        ),
        damaged(
            Code::Key,
            "key-nan",
            Base::Float,
            "The word of NaN, as the largest key.",
            sealed(|b| {
                let (at, nan) = (line(b, 0) + 32, 0xFFF8_0000_0000_0000u64);
                put(b, at, 8, nan);
                b[200..208].copy_from_slice(&nan.to_be_bytes());
            }),
        ),
        damaged(
            Code::LinePadding,
            "free-key",
            Base::Small,
            "A free key of the last line is not all ones.",
            sealed(|b| {
                let at = line(b, 1) + 8;
                b[at] = 0xFE;
            }),
        ),
        damaged(
            Code::LinePadding,
            "free-value",
            Base::Small,
            "A free value of the last line is not zero.",
            sealed(|b| {
                let at = line(b, 1) + 63;
                b[at] = 1;
            }),
        ),
        damaged(
            Code::LinePadding,
            "line-gap",
            Base::Fast,
            "A byte between keys and values is not zero.",
            sealed(|b| {
                let at = line(b, 2) + 40;
                b[at] = 1;
            }),
        ),
    ]
}

fn line_ends() -> Vec<Fault> {
    vec![
        damaged(
            Code::Padding,
            "line-odd",
            Base::Blocks,
            "A byte of the line that follows an odd number of lines is not zero.",
            |b| {
                assert_eq!(header(b).lines % 2, 1);
                let at = content(b, Tag::LINE).end - 1;
                b[at] = 1;
                reseal(b);
            },
        ),
        damaged(
            Code::Padding,
            "padding-sums",
            Base::Small,
            "A byte behind SUMS is not zero.",
            sealed(|b| {
                let at = extent(b, Tag::SUMS).end - 1;
                b[at] = 1;
            }),
        ),
        damaged(
            Code::Padding,
            "padding-list",
            Base::Small,
            "A byte between two lists of sums is not zero.",
            sealed(|b| {
                let at = content(b, Tag::SUMS).start + 64;
                b[at] = 1;
            }),
        ),
        damaged(
            Code::MinMax,
            "min",
            Base::Small,
            "The smallest key of the superblock is another one.",
            sealed(|b| b[143] ^= 1),
        ),
        damaged(
            Code::MinMax,
            "max",
            Base::Small,
            "The largest key of the superblock is another one.",
            sealed(|b| b[207] ^= 1),
        ),
        damaged(
            Code::MinMax,
            "max-rest",
            Base::Small,
            "A byte behind the largest key is not zero.",
            sealed(|b| b[263] = 1),
        ),
        damaged(
            Code::MinMax,
            "min-length",
            Base::Small,
            "The smallest key has another length.",
            sealed(|b| put(b, 128, 4, 7)),
        ),
        damaged(
            Code::MinMax,
            "min-empty",
            Base::Empty,
            "A file without tuples names a smallest key.",
            sealed(|b| b[136] = 1),
        ),
        damaged(
            Code::MinMax,
            "min-bytes",
            Base::Mask,
            "The smallest byte key of the superblock is another one.",
            sealed(|b| b[136] ^= 1),
        ),
        damaged(Code::FileId, "file-id", Base::Small, "The file id is not that of the contents.", |b| {
            reseal_as(b, [7; 16])
        }),
        damaged(
            Code::Interval,
            "interval-overlap",
            Base::Intervals,
            "An interval ends behind the start of the next one.",
            sealed(|b| {
                // Words of 4 bytes, values of 8: five tuples in a line.
                let at = line(b, 0) + 64 - 40 + 8;
                put(b, at, 4, 200);
            }),
        ),
        damaged(
            Code::Interval,
            "interval-reversed",
            Base::Intervals,
            "An interval ends before its start.",
            sealed(|b| {
                let at = line(b, 0) + 64 - 40 + 8;
                put(b, at, 4, 99);
            }),
        ),
    ]
}

/// Byte of a line of a level of the spine.
fn spine_line(b: &[u8], level: usize, number: usize) -> usize {
    let header = header(b);
    header.spine_offset as usize + header.spine.levels[level].offset as usize + number * 64
}

fn spine() -> Vec<Fault> {
    let count = |b: &[u8]| entry_at(b, Tag::SPINE) + PARAMETERS + 16;
    vec![
        damaged(
            Code::Separator,
            "separator",
            Base::Spine,
            "A separator is above the first key of its right child.",
            sealed(|b| {
                let at = spine_line(b, 0, 0);
                b.copy_within(at + 2..at + 4, at);
            }),
        ),
        damaged(
            Code::Separator,
            "separator-flag",
            Base::Inexact,
            "A line that is inexact is not flagged.",
            sealed(move |b| {
                let flagged = |&at: &usize| b[at] & 1 == 1;
                let lines = header(b).spine.levels[0].lines as usize;
                let at =
                    (0..lines).map(|it| spine_line(b, 0, it) + 63).find(flagged).expect("an inexact line");
                b[at] = 0;
                let at = count(b);
                put(b, at, 8, 0);
            }),
        ),
        damaged(
            Code::SpineLine,
            "spine-count",
            Base::Spine,
            "The number of flagged lines is another one.",
            sealed(move |b| {
                let at = count(b);
                put(b, at, 8, 2);
            }),
        ),
        damaged(
            Code::SpineLine,
            "spine-flag",
            Base::Spine,
            "A flag of a spine line that nobody knows yet.",
            sealed(|b| {
                let at = spine_line(b, 0, 0) + 63;
                b[at] |= 2;
            }),
        ),
        damaged(
            Code::SpineLine,
            "spine-free",
            Base::Spine,
            "A free slot of the spine is not all ones.",
            sealed(|b| {
                let at = spine_line(b, 0, 0) + 53;
                assert_eq!(b[at], 0xFF);
                b[at] = 0x7F;
            }),
        ),
        damaged(
            Code::Padding,
            "spine-odd",
            Base::Spine,
            "A byte of the line that follows an odd number of spine lines is not zero.",
            sealed(|b| {
                let at = spine_line(b, 0, 1) + 63;
                b[at] = 1;
            }),
        ),
    ]
}

fn meta() -> Vec<Fault> {
    let damaged = |name, base, about, make: Make| super::fault::damaged(Code::Meta, name, base, about, make);
    vec![
        damaged(
            "meta-length",
            Base::Spine,
            "A record of META is longer than the section.",
            Box::new(sealed(|b| {
                let at = content(b, Tag::META).start + 4;
                put(b, at, 4, 1000);
            })),
        ),
        damaged(
            "meta-text",
            Base::Spine,
            "A name is not UTF-8.",
            Box::new(sealed(|b| {
                let at = content(b, Tag::META).start + 8;
                b[at] = 0xFF;
            })),
        ),
        damaged(
            "meta-count",
            Base::Spine,
            "META has another number of records than its entry says.",
            Box::new(sealed(|b| {
                let at = entry_at(b, Tag::META) + ELEMENTS;
                b[at] += 1;
            })),
        ),
        damaged(
            "meta-zero",
            Base::Spine,
            "The zeros of a record of META are not zero.",
            Box::new(byte(Tag::META, 2, 1)),
        ),
        damaged(
            "meta-padding",
            Base::Spine,
            "A byte behind a text of META is not zero.",
            Box::new(byte(Tag::META, 10, 1)),
        ),
        damaged(
            "meta-record",
            Base::Intervals,
            "A record has a field of another kind than its values.",
            Box::new(|b| {
                let mut all = contents(b);
                for content in all.iter_mut().filter(|it| it.0 == Tag::META) {
                    let at = content.2.windows(3).rposition(|it| it == b"u32").expect("a kind");
                    content.2[at..at + 3].copy_from_slice(b"u16");
                    // Without intervals, whose values must be records.
                    content.3 -= 1;
                    let end = content.2.len() - 24;
                    content.2.truncate(end);
                }
                *b = assemble(header(b).superblock, all);
            }),
        ),
        damaged(
            "meta-interval",
            Base::Small,
            "Intervals whose values are no records.",
            Box::new(|b| *b = crate::valid::with_record(b, 6, "inclusive")),
        ),
        damaged(
            "meta-hash",
            Base::Small,
            "Hashes that are not told as approximate.",
            Box::new(|b| *b = crate::valid::with_record(b, 3, "Hash64")),
        ),
    ]
}

fn masks_and_columns() -> Vec<Fault> {
    vec![
        damaged(
            Code::Mask,
            "mask-reference",
            Base::Tail,
            "A kept bit of the reference is not zero.",
            sealed(|b| {
                let place = content(b, Tag::MASK);
                let half = (place.len() - 32) / 2;
                let at = (0..half).find(|at| b[place.start + 32 + half + at] & 1 == 1).expect("a kept bit");
                b[place.start + 32 + at] |= 1;
            }),
        ),
        damaged(
            Code::Mask,
            "mask-elements",
            Base::Mask,
            "MASK has another number of covered bytes than its entry says.",
            sealed(|b| {
                let at = entry_at(b, Tag::MASK) + ELEMENTS;
                b[at] += 1;
            }),
        ),
        damaged(
            Code::Column,
            "column-key",
            Base::Keys,
            "A key of the column is not that of its word.",
            |b| {
                let place = content(b, Tag::KEYS);
                // A key in the middle, of which the superblock knows nothing.
                let at = place.start + 128 + number(b, place.start + 4 * 10, 4) as usize;
                b[at] ^= 1;
                reseal(b);
            },
        ),
        damaged(
            Code::Column,
            "column-number",
            Base::Columns,
            "A number of the column of values is not that of the lines.",
            byte(Tag::VALUES, 4, 1),
        ),
    ]
}

fn offsets() -> Vec<Fault> {
    vec![
        damaged(
            Code::Column,
            "column-first",
            Base::Values,
            "The first offset is not 0.",
            byte(Tag::VALUES, 0, 1),
        ),
        damaged(Code::Column, "column-descend", Base::Values, "Offsets descend.", byte(Tag::VALUES, 7, 0x7F)),
        damaged(
            Code::Column,
            "column-last",
            Base::Values,
            "The last offset is not the number of bytes.",
            byte(Tag::VALUES, 36, 1),
        ),
        damaged(
            Code::Padding,
            "column-guard",
            Base::Values,
            "A byte behind the values is not zero.",
            byte_back(Tag::VALUES, 1, 1),
        ),
        damaged(
            Code::Padding,
            "column-padding",
            Base::Values,
            "A byte between offsets and values is not zero.",
            byte(Tag::VALUES, 127, 1),
        ),
        damaged(
            Code::Column,
            "column-utf8",
            Base::ValuesUtf8,
            "A value is not UTF-8.",
            byte_back(Tag::VALUES, 65, 0x41),
        ),
        damaged(
            Code::Column,
            "column-code",
            Base::Codes,
            "A code is that of no value.",
            byte(Tag::CODES, 4, 9),
        ),
        damaged(
            Code::Column,
            "column-tail",
            Base::Tail,
            "A bit of a tail that stands for nothing is set.",
            |b| {
                let header = header(b);
                let place = header.tails.expect("tails");
                let at = place.data_offset() as usize + place.shape.element_bytes as usize - 1;
                b[at] |= 0x80;
                reseal(b);
            },
        ),
        damaged(
            Code::Column,
            "column-record",
            Base::Records,
            "A text of a record ends behind its value.",
            byte(Tag::VALUES, 128, 1),
        ),
    ]
}
