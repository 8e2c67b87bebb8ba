//! Faults of superblock, section table and tuple lines that a check finds under right sums.

use super::super::bases::Base;
use super::super::fault::{Fault, Make, damaged};
use super::super::frame::{ELEMENTS, LENGTH, PARAMETERS};
use super::{changed, edit};
use pleach_format::section::Tag;
use pleach_fsck::Code;
use pleach_kit::mutate::{content, entry_at, extent, header, number, put, swap};

pub(super) fn faults() -> Vec<Fault> {
    let mut all = wrong_elements();
    all.extend(ends());
    all.extend(short_words());
    all.extend(floats());
    all.extend(wide_words());
    all.extend(spines());
    all.extend(grids());
    all.extend(grid_counts());
    all
}

/// Segments of a grid, each of 16 bytes: a base, a number, and a form: 24 bits of marks, a kind, a shift.
fn grids() -> Vec<Fault> {
    let segments = |b: &[u8]| {
        let there = number(b, entry_at(b, Tag::GRID) + PARAMETERS + 16, 8) as usize;
        let start = content(b, Tag::GRID).start;
        (0..there).map(move |at| start + 16 * at).collect::<Vec<usize>>()
    };
    let form = |b: &[u8], at: usize| number(b, at + 12, 4);
    let of = move |name, base, about, change: fn(&mut Vec<u8>, usize), is_it: fn(u64) -> bool| {
        damaged(
            Code::Grid,
            name,
            base,
            about,
            edit(move |b| {
                let at = segments(b).into_iter().find(|&at| is_it(form(b, at))).expect("a segment");
                change(b, at);
            }),
        )
    };
    let marked = |form: u64| form >> 24 & 3 == 2 && (1..1 << 22).contains(&(form & 0xFF_FFFF));
    let none = |form: u64| form == 2 << 24;
    let nested = Base::Valid("grid-nested");
    vec![
        of(
            "grid-moved",
            nested,
            "The last mark of a segment is at the next cell.",
            |b, at| {
                let form = number(b, at + 12, 4);
                let last = 1 << (63 - (form & 0xFF_FFFF).leading_zeros());
                put(b, at + 12, 4, form ^ last ^ (last << 1));
            },
            marked,
        ),
        of(
            "grid-kind-three",
            nested,
            "A segment has parts of a kind that nobody knows yet.",
            |b, at| b[at + 15] |= 3,
            marked,
        ),
        of(
            "grid-none-first",
            nested,
            "A part without borders leads to another line.",
            |b, at| b[at + 8] ^= 1,
            none,
        ),
        of("grid-none-kind", nested, "A part without borders has units.", |b, at| b[at + 15] ^= 3, none),
        of("grid-none-mark", nested, "A part without borders has a mark.", |b, at| b[at + 12] = 1, none),
        of("grid-none-shift", nested, "A part without borders has a shift.", |b, at| b[at + 15] |= 4, none),
    ]
}

/// What the table says of a grid.
fn grid_counts() -> Vec<Fault> {
    let nested = Base::Valid("grid-nested");
    let broken = |name, base, about, make: Make| damaged(Code::Grid, name, base, about, make);
    let told = |at: usize, change: fn(u64, u64) -> u64| -> Make {
        Box::new(edit(move |b| {
            let steps = entry_at(b, Tag::GRID) + PARAMETERS + 4;
            let place = entry_at(b, Tag::GRID) + PARAMETERS + at;
            let to = change(number(b, place, 4), number(b, steps, 4));
            put(b, place, 4, to);
        }))
    };
    vec![
        broken("grid-steps-more", nested, "One step more than any border needs.", told(4, |now, _| now + 1)),
        broken(
            "grid-usual-other",
            nested,
            "Another number of usual steps.",
            told(8, |now, steps| if now < steps { now + 1 } else { now - 1 }),
        ),
        broken("grid-segment-spare", nested, "A segment that no part leads to.", told(16, |now, _| now + 1)),
        broken(
            "grid-unit-spare",
            Base::Grid,
            "A unit that no segment has.",
            Box::new(changed(Tag::GRID, |bytes, units, _| {
                bytes.extend([0; 8]);
                *units += 1;
            })),
        ),
    ]
}

/// The number of elements of sections that have no rule of opening for it.
fn wrong_elements() -> Vec<Fault> {
    let wrong = |code, name, tag, about| {
        damaged(
            code,
            name,
            Base::Mask,
            about,
            edit(move |b| {
                let at = entry_at(b, tag) + ELEMENTS;
                let now = number(b, at, 8);
                put(b, at, 8, now + 1);
            }),
        )
    };
    let parameters = |name, tag, about| {
        damaged(
            Code::Header,
            name,
            Base::Mask,
            about,
            edit(move |b| {
                let at = entry_at(b, tag) + PARAMETERS + 63;
                b[at] = 1;
            }),
        )
    };
    vec![
        wrong(Code::Mask, "elements-mask", Tag::MASK, "MASK tells one covered byte more than it has."),
        wrong(Code::Header, "elements-sums", Tag::SUMS, "SUMS tells one sum more than it has."),
        wrong(Code::Header, "elements-sum2", Tag::SUM2, "SUM2 tells one sum more than it has."),
        parameters("parameters-mask", Tag::MASK, "MASK has parameters."),
        parameters("parameters-meta", Tag::META, "META has parameters."),
        parameters("parameters-sums", Tag::SUMS, "SUMS has parameters."),
        parameters("parameters-sum2", Tag::SUM2, "SUM2 has parameters."),
        damaged(
            Code::Header,
            "header-reserved-minor",
            Base::Small,
            "The bytes behind the minor version are not zero.",
            edit(|b| b[20] = 1),
        ),
        damaged(
            Code::Padding,
            "padding-sum2",
            Base::Small,
            "A byte behind SUM2 is not zero.",
            edit(|b| {
                let at = extent(b, Tag::SUM2).end - 1;
                b[at] = 1;
            }),
        ),
        damaged(
            Code::Header,
            "sums-longer",
            Base::Small,
            "SUMS goes on behind its last sum.",
            edit(|b| {
                let at = entry_at(b, Tag::SUMS) + LENGTH;
                let now = number(b, at, 8);
                put(b, at, 8, now + 4);
            }),
        ),
    ]
}

/// The outermost keys in the superblock.
fn ends() -> Vec<Fault> {
    let wrong = |name, base, about, make: Make| damaged(Code::MinMax, name, base, about, make);
    let byte = |at: usize| -> Make { Box::new(edit(move |b| b[at] ^= 1)) };
    vec![
        wrong("min-bytes-rest", Base::Mask, "A byte behind the smallest byte key.", byte(199)),
        wrong("min-bytes-length", Base::Mask, "The smallest byte key has another length.", byte(128)),
        wrong("max-bytes", Base::Mask, "The largest byte key is another one.", byte(200)),
        wrong("max-bytes-rest", Base::Mask, "A byte behind the largest byte key.", byte(263)),
        wrong("max-bytes-length", Base::Mask, "The largest byte key has another length.", byte(132)),
        wrong(
            "min-wide",
            Base::Valid("wide-unique"),
            "The smallest key of 16 bytes is another one.",
            byte(151),
        ),
        wrong(
            "max-wide",
            Base::Valid("wide-unique"),
            "The largest key of 16 bytes is another one.",
            byte(215),
        ),
        wrong("max-length", Base::Small, "The largest key has another length.", byte(132)),
        wrong("min-rest", Base::Small, "A byte behind the smallest key.", byte(144)),
        wrong("min-tail", Base::Tail, "The smallest key with a tail is another one.", byte(140)),
        wrong("max-empty", Base::Empty, "A file without tuples names a largest key.", byte(263)),
        wrong("min-empty-length", Base::Empty, "A file without tuples tells a length.", byte(128)),
    ]
}

fn short_words() -> Vec<Fault> {
    vec![
        damaged(
            Code::Key,
            "key-short-bits",
            Base::Valid("short-runs"),
            "The last word has a bit that no run keeps.",
            edit(|b| {
                let there = header(b);
                let at = content(b, Tag::LINE).start
                    + 64 * ((there.tuples - 1) / there.geometry.tuples_per_line() as u64) as usize
                    + 4 * ((there.tuples - 1) % there.geometry.tuples_per_line() as u64) as usize;
                b[at + 3] |= 0x80;
            }),
        ),
        damaged(
            Code::Key,
            "key-short-type",
            Base::Short,
            "The last key is beyond the type: base and word together wrap around.",
            edit(|b| {
                let base = entry_at(b, Tag::LINE) + PARAMETERS + 16;
                let (old, new) = (number(b, base, 8), u64::MAX - 1);
                put(b, base, 8, new);
                for at in [136, 200] {
                    let key = u64::from_be_bytes(b[at..at + 8].try_into().expect("eight bytes"));
                    let key = new.wrapping_add(key.wrapping_sub(old));
                    b[at..at + 8].copy_from_slice(&key.to_be_bytes());
                }
            }),
        ),
    ]
}

fn floats() -> Vec<Fault> {
    let zero = |b: &[u8]| {
        let lines = content(b, Tag::LINE);
        (lines.start..lines.end).step_by(4).find(|&at| number(b, at, 8) == 1 << 63).expect("the key 0.0")
    };
    vec![damaged(
        Code::Key,
        "key-minus-zero-inside",
        Base::Valid("float-zero"),
        "The word of -0.0, in a line between others.",
        edit(move |b| {
            let at = zero(b);
            put(b, at, 8, (1 << 63) - 1);
        }),
    )]
}

/// Words of 16 bytes: three in a line, with values of 4 bytes and a gap of 4.
fn wide_words() -> Vec<Fault> {
    const WIDE: Base = Base::Valid("wide-unique");
    const MANY: Base = Base::Valid("wide-many");
    let word = |b: &[u8], line: usize, slot: usize| content(b, Tag::LINE).start + 64 * line + 16 * slot;
    let order = |name, base, part: usize, slot: usize| {
        damaged(
            Code::Order,
            name,
            base,
            format!("Two neighbours that differ in part {part} are exchanged."),
            edit(move |b| {
                // Neighbours differ in one part alone, which is that of the line's number.
                let at = word(b, 4 + part, slot);
                swap(b, at, at + 16, 16);
            }),
        )
    };
    vec![
        order("wide-order-0", WIDE, 0, 0),
        order("wide-order-many-0", MANY, 0, 0),
        order("wide-order-1", WIDE, 1, 1),
        order("wide-order-many-1", MANY, 1, 1),
        order("wide-order-2", WIDE, 2, 0),
        order("wide-order-many-2", MANY, 2, 0),
        order("wide-order-3", WIDE, 3, 1),
        order("wide-order-many-3", MANY, 3, 1),
        damaged(
            Code::Duplicate,
            "wide-duplicate",
            WIDE,
            "A key of 16 bytes occurs twice.",
            edit(move |b| {
                let at = word(b, 9, 0);
                b.copy_within(at..at + 16, at + 16);
            }),
        ),
        damaged(
            Code::LinePadding,
            "wide-gap",
            WIDE,
            "A byte between words of 16 bytes and values is not zero.",
            edit(move |b| {
                let at = word(b, 9, 3) + 1;
                b[at] = 1;
            }),
        ),
    ]
}

/// Byte of a line of a level of the spine.
fn spine_line(b: &[u8], level: usize, number: usize) -> usize {
    let header = header(b);
    header.spine_offset as usize + header.spine.levels[level].offset as usize + number * 64
}

fn spines() -> Vec<Fault> {
    let raw = Base::Valid("grid-nested");
    let wide = |name, base, about, level: usize, at: usize, change: u8| {
        damaged(
            Code::Separator,
            name,
            base,
            about,
            edit(move |b| {
                let at = spine_line(b, level, 0) + at;
                b[at] ^= change;
            }),
        )
    };
    let deep = Base::Valid("spine-deep");
    vec![
        wide("separator-wide-raw", deep, "A separator of 16 bytes is another one.", 0, 15, 0x80),
        wide(
            "separator-wide-raw-low",
            deep,
            "The upper byte of a separator of 16 bytes is another one.",
            0,
            31,
            0x40,
        ),
        wide("separator-wide-16", deep, "A code of two bytes above words of 16 is another one.", 1, 0, 1),
        wide("separator-wide-8", deep, "A code of one byte above words of 16 is another one.", 2, 0, 1),
        wide(
            "separator-wide",
            Base::Valid("u128-u64"),
            "A code above words of 16 bytes is another one.",
            0,
            1,
            1,
        ),
        damaged(
            Code::Separator,
            "separator-zero",
            Base::Spine,
            "A code of the spine is zero.",
            edit(|b| {
                let at = spine_line(b, 0, 0) + 6;
                assert_ne!(number(b, at, 2), 0);
                put(b, at, 2, 0);
            }),
        ),
        damaged(
            Code::Separator,
            "separator-raw-part",
            raw,
            "The upper half of a separator is below that of the key to its left, the lower half is above.",
            edit(|b| {
                let at = spine_line(b, 0, 1);
                let now = number(b, at, 8);
                put(b, at, 8, (now - (1 << 32)) | 0xFFFF_FFFF);
            }),
        ),
        damaged(
            Code::Separator,
            "separator-raw-low",
            raw,
            "A separator is one below the last key to its left.",
            edit(|b| {
                let at = spine_line(b, 0, 1);
                let now = number(b, at, 8);
                // The border behind line 9: its last word is the tenth one, of five tuples a line.
                let lines = content(b, Tag::LINE).start;
                let there = header(b);
                let last = lines + 64 * 9 + 8 * (there.geometry.tuples_per_line() - 1);
                let last = number(b, last, 8);
                assert!(now >= last, "a separator");
                put(b, at, 8, last - 1);
            }),
        ),
        damaged(
            Code::Separator,
            "separator-raw-high",
            raw,
            "A separator is the first key to its right.",
            edit(|b| {
                let at = spine_line(b, 0, 1);
                let first = content(b, Tag::LINE).start + 64 * 10;
                let first = number(b, first, 8);
                put(b, at, 8, first);
            }),
        ),
        damaged(
            Code::Separator,
            "separator-most",
            raw,
            "A separator has the code of free slots, which is the cell of its key.",
            edit(|b| {
                // The root parts line 80, the last one of nine groups of nine, from the next one.
                let there = header(b);
                let tuples = there.geometry.tuples_per_line();
                let last = number(b, content(b, Tag::LINE).start + 64 * 80 + 8 * (tuples - 1), 8);
                let at = spine_line(b, 2, 0);
                b[at] = 255;
                put(b, at + 54, 8, last - 255);
                b[at + 62] = 0;
            }),
        ),
        damaged(
            Code::SpineLine,
            "spine-shift",
            Base::Valid("spine-single"),
            "A spine line with one child shifts by more bits than a word has.",
            edit(|b| {
                let last = header(b).spine.levels[0].lines as usize - 1;
                let at = spine_line(b, 0, last) + 62;
                b[at] = 64;
            }),
        ),
        damaged(
            Code::SpineLine,
            "spine-free-root",
            raw,
            "Free slots of the root are zero, and lead far behind all lines of the three levels.",
            edit(|b| {
                // Two children have one separator, of one byte.
                let at = spine_line(b, 2, 0);
                b[at + 1..at + 54].fill(0);
            }),
        ),
        damaged(
            Code::SpineLine,
            "spine-gap",
            Base::Valid("spine-32"),
            "A byte between the codes and the base of a spine line is not zero.",
            edit(|b| {
                let at = spine_line(b, 0, 0) + 53;
                assert_eq!(b[at], 0);
                b[at] = 1;
            }),
        ),
    ]
}
