//! Faults of the superblock, the section table and the lists of sums: rules 1 to 28.

use super::bases::Base;
use super::fault::{Fault, head, refused, sealed};
use pleach_format::Rule;
use pleach_format::section::{Parameters, Tag};
use pleach_format::version::VERSION_MAJOR;
use pleach_kit::mutate::{content, contents, entry_at, extent, flip, header, number, put, reseal_head};
use pleach_kit::naive::assemble;

/// Offsets of fields of an entry.
pub(super) const FLAGS: usize = 4;
pub(super) const OFFSET: usize = 8;
pub(super) const LENGTH: usize = 16;
pub(super) const ELEMENTS: usize = 24;
pub(super) const SUMS_OFFSET: usize = 32;
pub(super) const SUMS: usize = 40;
pub(super) const PARAMETERS: usize = 56;

pub(super) fn faults() -> Vec<Fault> {
    let mut all = lengths();
    all.extend(superblock());
    all.extend(places());
    all.extend(entries());
    all.extend(sums());
    all
}

fn lengths() -> Vec<Fault> {
    vec![
        refused(
            Rule::Magic,
            "magic",
            Base::Small,
            "A byte of the magic is another one.",
            head(|b| flip(b, 8 * 9)),
        ),
        refused(
            Rule::Magic,
            "magic-short",
            Base::Small,
            "Seven bytes, of which the last is not that of the magic.",
            |b| {
                b.truncate(7);
                b[6] = b'?';
            },
        ),
        refused(Rule::Truncated, "truncated-empty", Base::Small, "A file without bytes.", Vec::clear),
        refused(Rule::Truncated, "truncated-magic", Base::Small, "The first sixteen bytes alone.", |b| {
            b.truncate(16)
        }),
        refused(
            Rule::Truncated,
            "truncated-superblock",
            Base::Small,
            "One byte less than a superblock.",
            |b| b.truncate(4095),
        ),
        refused(
            Rule::Truncated,
            "truncated-table",
            Base::Small,
            "The file ends in the section table.",
            |b| b.truncate(5000),
        ),
        refused(Rule::Truncated, "truncated-page", Base::Small, "The last page is missing.", |b| {
            b.truncate(b.len() - 4096)
        }),
        refused(Rule::Truncated, "truncated-byte", Base::Small, "The last byte is missing.", |b| {
            b.truncate(b.len() - 1)
        }),
        refused(
            Rule::SuperblockSum,
            "superblock-sum",
            Base::Small,
            "A bit of the version flipped: damage, not another version.",
            |b| flip(b, 16 * 8),
        ),
        refused(
            Rule::SuperblockSum,
            "superblock-sum-reserved",
            Base::Small,
            "A bit among the reserved bytes flipped.",
            |b| flip(b, 3000 * 8),
        ),
        refused(
            Rule::SuperblockSum,
            "superblock-sum-stored",
            Base::Small,
            "A bit of the stored sum flipped.",
            |b| flip(b, 4095 * 8 + 7),
        ),
        refused(Rule::Extended, "extended-byte", Base::Small, "One byte too many.", |b| b.push(0)),
        refused(Rule::Extended, "extended-page", Base::Small, "A page too many.", |b| b.extend([0; 4096])),
    ]
}

fn superblock() -> Vec<Fault> {
    let field = |at: usize, width: usize, number: u64| head(move |b| put(b, at, width, number));
    vec![
        refused(
            Rule::Version,
            "version",
            Base::Small,
            "The next major version.",
            head(|b| put(b, 16, 2, u64::from(VERSION_MAJOR) + 1)),
        ),
        refused(
            Rule::Feature,
            "feature",
            Base::Small,
            "A feature that nobody knows yet.",
            field(24, 8, 1 << 63),
        ),
        refused(
            Rule::Feature,
            "feature-next",
            Base::Small,
            "The feature of bit 1, which is kept for later.",
            field(24, 8, 2),
        ),
        refused(Rule::Pages, "pages", Base::Small, "The length is not whole pages, and says so.", |b| {
            b.extend([0; 128]);
            let length = b.len() as u64;
            put(b, 72, 8, length);
            reseal_head(b);
        }),
        refused(Rule::Pages, "pages-three", Base::Small, "Three pages, as the superblock says.", |b| {
            b.truncate(12_288);
            put(b, 72, 8, 12_288);
            let crc = pleach_format::checksum::crc32(&b[..4092]);
            put(b, 4092, 4, crc.into());
        }),
        refused(Rule::KeyType, "key-type", Base::Small, "Keys of type 11.", field(88, 2, 11)),
        refused(Rule::KeyType, "key-type-none", Base::Small, "Keys of type 0.", field(88, 2, 0)),
        refused(Rule::KeyType, "key-type-bytes", Base::Small, "Keys of u64 of 4 bytes.", field(92, 4, 4)),
        refused(Rule::KeyType, "key-type-fixed", Base::Mask, "Keys of bytesN of no bytes.", field(88, 2, 7)),
        refused(Rule::ValueType, "value-type", Base::Small, "Values of type 10.", field(90, 2, 10)),
        refused(
            Rule::ValueType,
            "value-type-bytes",
            Base::Small,
            "Values of u64 of 0 bytes.",
            field(96, 4, 0),
        ),
        refused(Rule::Unique, "unique", Base::Small, "A mark that is neither 0 nor 1.", field(100, 4, 2)),
        refused(
            Rule::TablePlace,
            "table-place",
            Base::Small,
            "A section table at another place.",
            field(104, 8, 8192),
        ),
        refused(
            Rule::TablePlace,
            "table-bytes",
            Base::Small,
            "A section table of two pages.",
            field(112, 8, 8192),
        ),
        refused(Rule::TableEntries, "table-entries", Base::Small, "Thirty-two sections.", field(120, 4, 32)),
        refused(Rule::TableSum, "table-sum", Base::Small, "A bit of the section table flipped.", |b| {
            flip(b, 4104 * 8)
        }),
        refused(
            Rule::TableSum,
            "table-sum-rest",
            Base::Small,
            "The last bit of the section table flipped, behind its entries.",
            |b| flip(b, 8191 * 8 + 7),
        ),
    ]
}

/// Inserts pages in front of a section, and moves all that follows.
fn shift(b: &mut Vec<u8>, tag: Tag, pages: usize) {
    let place = extent(b, tag).start;
    let sections = header(b).sections;
    b.splice(place..place, vec![0; pages * 4096]);
    let more = (pages * 4096) as u64;
    for (index, section) in sections.iter().enumerate() {
        let entry = 4096 + index * 128;
        if section.offset() >= place as u64 {
            put(b, entry + OFFSET, 8, section.offset() + more);
        }
        let list = section.entry.sums_offset.get();
        if list >= place as u64 {
            put(b, entry + SUMS_OFFSET, 8, list + more);
        }
    }
    let length = b.len() as u64;
    put(b, 72, 8, length);
}

fn places() -> Vec<Fault> {
    vec![
        refused(
            Rule::FirstSection,
            "first-section",
            Base::Spine,
            "A page of zeros lies before the first section.",
            sealed(|b| shift(b, Tag::META, 1)),
        ),
        refused(
            Rule::Alignment,
            "alignment",
            Base::Small,
            "The tuple lines begin 128 bytes after a page.",
            head(|b| {
                let at = entry_at(b, Tag::SPINE) + OFFSET;
                let place = number(b, at, 8);
                put(b, at, 8, place - 128);
            }),
        ),
        refused(
            Rule::SectionOrder,
            "section-order",
            Base::Spine,
            "The spine begins before the tuple lines.",
            head(|b| {
                let at = entry_at(b, Tag::SPINE) + OFFSET;
                put(b, at, 8, 8192);
            }),
        ),
        refused(
            Rule::SectionOrder,
            "section-behind",
            Base::Small,
            "A section begins behind the closing section table.",
            head(|b| {
                let (at, end) = (entry_at(b, Tag::SUM2) + OFFSET, b.len() as u64);
                put(b, at, 8, end - 4096);
            }),
        ),
        refused(
            Rule::SectionEnd,
            "section-end",
            Base::Spine,
            "A length one byte longer than the extent.",
            head(|b| {
                let (at, extent) = (entry_at(b, Tag::META) + LENGTH, extent(b, Tag::META).len() as u64);
                put(b, at, 8, extent + 1);
            }),
        ),
        refused(
            Rule::SectionEnd,
            "section-end-most",
            Base::Spine,
            "The largest length that there is.",
            head(|b| {
                let at = entry_at(b, Tag::META) + LENGTH;
                put(b, at, 8, u64::MAX);
            }),
        ),
        refused(
            Rule::SectionLarge,
            "section-large",
            Base::Mask,
            "A MASK one byte longer than any file can need.",
            |b| {
                let mut all = contents(b);
                all.iter_mut().filter(|it| it.0 == Tag::MASK).for_each(|it| it.2.resize(131_103, 0));
                *b = assemble(header(b).superblock, all);
            },
        ),
    ]
}

/// Faults that need more than a megabyte.
pub(super) fn large() -> Vec<Fault> {
    vec![
        refused(
            Rule::SectionGap,
            "section-gap",
            Base::Small,
            "Two MiB lie behind the end of a section.",
            |b| {
                let mut all = contents(b);
                // The extent is that of a long section, the length is not.
                all.push((Tag(*b"NEWS"), false, vec![0; 2 << 20], 0, Parameters::NONE));
                *b = assemble(header(b).superblock, all);
                let at = entry_at(b, Tag(*b"NEWS")) + LENGTH;
                put(b, at, 8, 0);
                pleach_kit::mutate::reseal(b);
            },
        ),
        refused(
            Rule::SectionLarge,
            "section-large-meta",
            Base::Small,
            "A META one byte longer than any file can need.",
            |b| {
                let mut all = contents(b);
                all.iter_mut().filter(|it| it.0 == Tag::META).for_each(|it| it.2.resize((1 << 20) + 1, 0));
                *b = assemble(header(b).superblock, all);
            },
        ),
    ]
}

fn entries() -> Vec<Fault> {
    vec![
        refused(
            Rule::Flags,
            "flags",
            Base::Small,
            "A flag of an entry that nobody knows yet.",
            sealed(|b| {
                let at = entry_at(b, Tag::LINE) + FLAGS;
                put(b, at, 4, 3);
            }),
        ),
        refused(
            Rule::RequiredSection,
            "required-section",
            Base::Small,
            "A section that is required and that nobody knows yet.",
            |b| {
                let mut all = contents(b);
                all.push((Tag(*b"NEWS"), true, Vec::new(), 0, Parameters::NONE));
                *b = assemble(header(b).superblock, all);
            },
        ),
        refused(
            Rule::RequiredSection,
            "required-linz",
            Base::Small,
            "Compressed tuple lines, a tag kept for later.",
            |b| {
                let mut all = contents(b);
                all.push((Tag(*b"LINZ"), true, Vec::new(), 0, Parameters::NONE));
                *b = assemble(header(b).superblock, all);
            },
        ),
        refused(Rule::SectionTwice, "section-twice", Base::Small, "A second META.", |b| {
            let mut all = contents(b);
            all.push((Tag::META, false, Vec::new(), 0, Parameters::NONE));
            *b = assemble(header(b).superblock, all);
        }),
        refused(
            Rule::Reserved,
            "reserved",
            Base::Small,
            "A reserved byte of an entry that is not zero.",
            sealed(|b| {
                let at = entry_at(b, Tag::LINE) + 52;
                b[at + 3] = 1;
            }),
        ),
        refused(
            Rule::Reserved,
            "reserved-end",
            Base::Small,
            "The last byte of an entry is not zero.",
            sealed(|b| {
                let at = entry_at(b, Tag::META) + 127;
                b[at] = 1;
            }),
        ),
    ]
}

/// Renames a section, so that nobody knows it, nor needs to.
pub(super) fn hide(b: &mut [u8], tag: Tag) {
    let at = entry_at(b, tag);
    b[at..at + 4].copy_from_slice(b"NOPE");
    put(b, at + FLAGS, 4, 0);
}

fn sums() -> Vec<Fault> {
    let list = |tag: Tag, place: fn(&[u8], u64) -> u64| {
        head(move |b| {
            let at = entry_at(b, tag) + SUMS_OFFSET;
            let to = place(b, number(b, at, 8));
            put(b, at, 8, to);
        })
    };
    vec![
        refused(Rule::SumsMissing, "sums-missing", Base::Small, "No SUMS.", head(|b| hide(b, Tag::SUMS))),
        refused(Rule::SumsMissing, "sum2-missing", Base::Small, "No SUM2.", head(|b| hide(b, Tag::SUM2))),
        refused(
            Rule::Sum2List,
            "sum2-list",
            Base::Small,
            "SUM2 has a list of sums, in itself.",
            head(|b| {
                let (at, place) = (entry_at(b, Tag::SUM2), content(b, Tag::SUM2).start);
                put(b, at + SUMS_OFFSET, 8, place as u64);
                put(b, at + SUMS, 8, 1);
            }),
        ),
        refused(
            Rule::Sum2Length,
            "sum2-length",
            Base::Small,
            "SUM2 is one sum longer than the sums of SUMS.",
            head(|b| {
                let at = entry_at(b, Tag::SUM2) + LENGTH;
                put(b, at, 8, 8);
            }),
        ),
        refused(
            Rule::SumsCount,
            "sums-count",
            Base::Small,
            "Two sums for a section of one block.",
            head(|b| {
                let at = entry_at(b, Tag::LINE) + SUMS;
                put(b, at, 8, 2);
            }),
        ),
        refused(
            Rule::SumsPlace,
            "sums-unaligned",
            Base::Small,
            "A list of sums that begins on two bytes.",
            list(Tag::LINE, |_, at| at + 2),
        ),
        refused(
            Rule::SumsPlace,
            "sums-before",
            Base::Small,
            "A list of sums among the tuple lines.",
            list(Tag::LINE, |_, _| 8192),
        ),
        refused(
            Rule::SumsPlace,
            "sums-behind",
            Base::Small,
            "A list of sums that ends behind SUMS.",
            list(Tag::LINE, |b, _| content(b, Tag::SUMS).end as u64),
        ),
        refused(
            Rule::SumsPlace,
            "sums-own",
            Base::Small,
            "The list of sums of SUMS lies in SUMS, not in SUM2.",
            list(Tag::SUMS, |b, _| content(b, Tag::SUMS).start as u64),
        ),
    ]
}
