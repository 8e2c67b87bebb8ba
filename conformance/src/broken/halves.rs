//! Files that break one half of a check: where a rule has two conditions, each of them is broken alone.

use super::bases::Base;
use super::fault::{Fault, Make, damaged, head, refused, sealed};
use super::frame::{LENGTH, PARAMETERS, SUMS, SUMS_OFFSET};
use pleach_format::Rule;
use pleach_format::section::{Parameters, Tag};
use pleach_fsck::Code;
use pleach_kit::mutate::{content, contents, entry_at, flip, header, number, put};
use pleach_kit::naive::assemble;

/// Place of the list's sum in an entry.
const SUMS_CRC: usize = 48;

pub(super) fn faults() -> Vec<Fault> {
    let mut all = types();
    all.extend(sums());
    all.extend(shapes());
    all.extend(two_faults());
    all
}

/// Type code and bytes of keys (at 88 and 92) or values (at 90 and 96).
fn types() -> Vec<Fault> {
    let typed = |code_at: usize, code: u64, bytes_at: usize, bytes: u64| {
        head(move |b| {
            put(b, code_at, 2, code);
            put(b, bytes_at, 4, bytes);
        })
    };
    let key = |name, about, code, bytes| {
        refused(Rule::KeyType, name, Base::Small, about, typed(88, code, 92, bytes))
    };
    let value = |name, about, code, bytes| {
        refused(Rule::ValueType, name, Base::Small, about, typed(90, code, 96, bytes))
    };
    vec![
        key("key-type-zero", "Keys of type 0 and of no bytes.", 0, 0),
        key("key-type-fixed-none", "Keys of bytesN of no bytes, beside lines of numbers.", 7, 0),
        key("key-type-fixed-long", "Keys of bytesN of 65,536 bytes.", 7, 65_536),
        value("value-type-fixed-none", "Values of bytesN of no bytes.", 7, 0),
        value("value-type-fixed-long", "Values of bytesN of 65,536 bytes.", 7, 65_536),
        refused(
            Rule::WordBytes,
            "word-bytes-keys",
            Base::Small,
            "Words of 8 bytes for keys of u32.",
            typed(88, 1, 92, 4),
        ),
    ]
}

fn sums() -> Vec<Fault> {
    let sum2 = |at: usize, change: fn(&[u8]) -> u64| {
        head(move |b| {
            let (entry, to) = (entry_at(b, Tag::SUM2) + at, change(b));
            put(b, entry, 8, to);
        })
    };
    vec![
        refused(
            Rule::Sum2List,
            "sum2-list-place",
            Base::Small,
            "SUM2 has a place of a list, and no sums in it.",
            sum2(SUMS_OFFSET, |b| content(b, Tag::SUM2).start as u64),
        ),
        refused(
            Rule::Sum2List,
            "sum2-list-count",
            Base::Small,
            "SUM2 has a number of sums, and no place of them.",
            sum2(SUMS, |_| 1),
        ),
        refused(
            Rule::Sum2Length,
            "sum2-length-byte",
            Base::Small,
            "SUM2 is one byte longer than the sums of SUMS.",
            sum2(LENGTH, |b| content(b, Tag::SUM2).len() as u64 + 1),
        ),
        refused(
            Rule::SumsPlace,
            "sums-far-behind",
            Base::Small,
            "A list of sums that begins behind the end of SUMS.",
            head(|b| {
                let (at, end) = (entry_at(b, Tag::LINE) + SUMS_OFFSET, content(b, Tag::SUMS).end as u64);
                put(b, at, 8, end.next_multiple_of(128) + 128);
            }),
        ),
        refused(
            Rule::SectionLarge,
            "section-large-mask",
            Base::Small,
            "A MASK beside numbers, longer than any file can need.",
            |b| {
                let mut all = contents(b);
                all.push((Tag::MASK, true, vec![0; 131_103], 0, Parameters::NONE));
                *b = assemble(header(b).superblock, all);
            },
        ),
    ]
}

/// Changes a SPIN: its content, its elements and its parameters.
fn spine(change: fn(&mut Vec<u8>, &mut u64, &mut [u8; 64])) -> Make {
    Box::new(move |b| {
        let mut all = contents(b);
        for (_, _, bytes, elements, parameters) in all.iter_mut().filter(|it| it.0 == Tag::SPINE) {
            change(bytes, elements, &mut parameters.0);
        }
        *b = assemble(header(b).superblock, all);
    })
}

fn shapes() -> Vec<Fault> {
    vec![
        refused(
            Rule::LineLength,
            "line-length-byte",
            Base::Small,
            "LINE is one byte longer than its tuples.",
            sealed(|b| {
                let at = entry_at(b, Tag::LINE) + LENGTH;
                let now = number(b, at, 8);
                put(b, at, 8, now + 1);
            }),
        ),
        refused(
            Rule::LineParameters,
            "line-reserved-runs",
            Base::Short,
            "A reserved byte behind four runs.",
            sealed(|b| {
                let at = entry_at(b, Tag::LINE) + PARAMETERS;
                // Runs of eight bits and of four, each sixteen bits after the one before.
                b[at + 32..at + 40].copy_from_slice(&[0, 8, 16, 4, 32, 4, 48, 4]);
                b[at + 41] = 1;
            }),
        ),
        refused(
            Rule::Spine,
            "spine-child-alone",
            Base::Small,
            "A group of 256 lines, of which there are fewer.",
            spine(|bytes, elements, parameters| {
                bytes.clear();
                *elements = 0;
                parameters[8..16].copy_from_slice(&[0, 0, 0, 0, 0, 1, 0, 0]);
                parameters[24..].fill(0);
            }),
        ),
        refused(
            Rule::Spine,
            "spine-levels-more",
            Base::Small,
            "A level above the root.",
            spine(|bytes, elements, parameters| {
                bytes.splice(..0, [0; 128]);
                *elements += 1;
                parameters[8] += 1;
            }),
        ),
        refused(
            Rule::Spine,
            "spine-levels-fewer",
            Base::Spine,
            "A spine without its root.",
            spine(|bytes, elements, parameters| {
                let levels = usize::from(parameters[8]) - 1;
                bytes.drain(..128);
                *elements -= 1;
                parameters[8] = levels as u8;
                parameters[24 + levels] = 0;
            }),
        ),
    ]
}

/// Two faults: a check names that with the lower offset.
fn two_faults() -> Vec<Fault> {
    let both = |list: Tag, block: Tag| {
        head(move |b| {
            let at = content(b, block).start;
            flip(b, at * 8 + 5);
            let at = entry_at(b, list) + SUMS_CRC;
            b[at] ^= 1;
        })
    };
    vec![
        damaged(
            Code::Block,
            "two-list-and-block",
            Base::Spine,
            "The list of META is damaged, and so is a block of the tuple lines.",
            both(Tag::META, Tag::LINE),
        ),
        damaged(
            Code::Block,
            "two-block-and-list",
            Base::Spine,
            "A block of META is damaged, and so is the list of the tuple lines.",
            both(Tag::LINE, Tag::META),
        ),
    ]
}
