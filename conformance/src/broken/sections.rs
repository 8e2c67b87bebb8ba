//! Faults of the sections, as far as opening sees them: rules 29 to 49.

use super::bases::Base;
use super::fault::{Fault, Make, head, refused, sealed};
use super::frame::{ELEMENTS, LENGTH, PARAMETERS, hide};
use crate::valid::with_record;
use pleach_format::Rule;
use pleach_format::section::{ColumnParameters, Tag};
use pleach_kit::mutate::{content, contents, entry_at, header, number, put, reseal_head};
use pleach_kit::naive::{Content, assemble};

pub(super) fn faults() -> Vec<Fault> {
    let mut all = lines();
    all.extend(line_shapes());
    all.extend(spine());
    all.extend(columns());
    all.extend(texts());
    all.extend(trees());
    all.extend(masks());
    all.extend(tails());
    all.extend(approximate());
    all
}

/// Writes into the parameters of a section.
fn parameter(tag: Tag, at: usize, width: usize, number: u64) -> impl Fn(&mut Vec<u8>) + 'static {
    field(tag, PARAMETERS + at, width, move |_| number)
}

/// Changes a number in the entry of a section.
fn field(
    tag: Tag,
    at: usize,
    width: usize,
    change: impl Fn(u64) -> u64 + 'static,
) -> impl Fn(&mut Vec<u8>) + 'static {
    sealed(move |b| {
        let at = entry_at(b, tag) + at;
        let now = number(b, at, width);
        put(b, at, width, change(now));
    })
}

/// Makes the file again of other sections.
fn again(change: impl Fn(&mut Vec<Content>) + 'static) -> impl Fn(&mut Vec<u8>) + 'static {
    move |b| {
        let mut all = contents(b);
        change(&mut all);
        *b = assemble(header(b).superblock, all);
    }
}

fn without(tag: Tag) -> impl Fn(&mut Vec<u8>) + 'static {
    again(move |all| all.retain(|content| content.0 != tag))
}

fn lines() -> Vec<Fault> {
    let line = |at, width, number| parameter(Tag::LINE, at, width, number);
    vec![
        refused(Rule::LineMissing, "line-missing", Base::Small, "No LINE.", head(|b| hide(b, Tag::LINE))),
        refused(Rule::WordBytes, "word-bytes", Base::Small, "Words of 5 bytes.", line(4, 4, 5)),
        refused(
            Rule::WordBytes,
            "word-bytes-long",
            Base::Small,
            "Words of 16 bytes for keys of u64.",
            line(4, 4, 16),
        ),
        refused(Rule::ShortWords, "short-none", Base::Short, "Short words without runs.", line(32, 8, 0)),
        refused(
            Rule::ShortWords,
            "short-touch",
            Base::Short,
            "Short words whose runs touch.",
            line(32, 8, 0x0808_0800),
        ),
        refused(
            Rule::ShortWords,
            "short-descend",
            Base::Short,
            "Short words whose runs descend.",
            line(32, 8, 0x0400_0820),
        ),
        refused(
            Rule::ShortWords,
            "short-beyond",
            Base::Short,
            "Short words with a run beyond the key.",
            line(32, 8, 0x0940),
        ),
        refused(
            Rule::ShortWords,
            "short-long",
            Base::Short,
            "Short words of 33 bits in 4 bytes.",
            line(32, 8, 0x2100),
        ),
        refused(
            Rule::ShortWords,
            "short-gap",
            Base::Short,
            "Short words with an unused run before another.",
            line(32, 8, 0x0820_0000_0800),
        ),
        refused(
            Rule::ShortWords,
            "short-base",
            Base::Short,
            "Short words with a base of more bits than keys.",
            line(24, 8, 1),
        ),
    ]
}

fn line_shapes() -> Vec<Fault> {
    let line = |at, width, number| parameter(Tag::LINE, at, width, number);
    vec![
        refused(
            Rule::LineLength,
            "line-length",
            Base::Small,
            "LINE is two lines longer than its tuples.",
            field(Tag::LINE, LENGTH, 8, |now| now + 128),
        ),
        refused(
            Rule::LineLength,
            "line-elements",
            Base::Small,
            "LINE has another number of tuples than the superblock.",
            field(Tag::LINE, ELEMENTS, 8, |now| now - 1),
        ),
        refused(
            Rule::LineLength,
            "line-tuples",
            Base::Small,
            "The superblock has a number of tuples that fills a line more.",
            sealed(|b| put(b, 80, 8, 9)),
        ),
        refused(
            Rule::LineLength,
            "line-tuples-most",
            Base::Small,
            "The superblock has the largest number of tuples.",
            sealed(|b| put(b, 80, 8, u64::MAX)),
        ),
        refused(Rule::LineParameters, "line-bytes", Base::Small, "Lines of 128 bytes.", line(0, 4, 128)),
        refused(
            Rule::LineParameters,
            "line-values",
            Base::Small,
            "Values of 4 bytes for values of u64.",
            line(8, 4, 4),
        ),
        refused(
            Rule::LineParameters,
            "line-line-tuples",
            Base::Small,
            "Lines of five tuples for which they have no room.",
            line(12, 4, 5),
        ),
        refused(
            Rule::LineParameters,
            "line-base",
            Base::Small,
            "A base for words that are not short.",
            line(16, 8, 7),
        ),
        refused(
            Rule::LineParameters,
            "line-reserved",
            Base::Small,
            "A reserved byte of LINE is not zero.",
            line(63, 1, 1),
        ),
    ]
}

fn spine() -> Vec<Fault> {
    let refused =
        |name, about, make: Make| super::fault::refused(Rule::Spine, name, Base::Spine, about, make);
    let spine = |at, width, number| Box::new(parameter(Tag::SPINE, at, width, number));
    vec![
        refused("spine-bytes", "Lines of 32 bytes.", spine(0, 4, 32)),
        refused("spine-word", "Words of 4 bytes above lines of words of 8.", spine(4, 4, 4)),
        refused("spine-levels", "Twenty-five levels.", spine(8, 4, 25)),
        refused("spine-levels-few", "No levels above several lines.", spine(8, 4, 0)),
        refused("spine-child-three", "Groups of three lines.", spine(12, 4, 3)),
        refused("spine-child-none", "Groups of no lines.", spine(12, 4, 0)),
        refused("spine-child-many", "Groups of 256 lines.", spine(12, 4, 256)),
        refused("spine-encoding", "An encoding that nobody knows yet.", spine(24, 1, 4)),
        refused("spine-reserved", "A reserved byte of SPIN is not zero.", spine(63, 1, 1)),
        refused(
            "spine-length",
            "SPIN is two lines longer than its levels.",
            Box::new(field(Tag::SPINE, LENGTH, 8, |now| now + 128)),
        ),
        refused(
            "spine-elements",
            "SPIN has another number of lines than its levels.",
            Box::new(field(Tag::SPINE, ELEMENTS, 8, |now| now + 1)),
        ),
    ]
}

fn columns() -> Vec<Fault> {
    let wide_codes = again(|all| {
        for (_, _, bytes, elements, parameters) in all.iter_mut().filter(|content| content.0 == Tag::CODES) {
            let codes: Vec<u8> = bytes[..*elements as usize].iter().flat_map(|&code| [code, 0]).collect();
            *bytes = [codes, vec![0; 64]].concat();
            *parameters =
                ColumnParameters { element_bytes: 2.into(), offset_bytes: 0.into(), reserved: [0; 56] }
                    .into();
        }
    });
    vec![
        refused(
            Rule::Column,
            "column-length",
            Base::Values,
            "A column of values that is 128 bytes longer than its elements.",
            field(Tag::VALUES, LENGTH, 8, |_| 40),
        ),
        refused(
            Rule::Column,
            "column-elements",
            Base::Values,
            "A column of values with one element too few.",
            field(Tag::VALUES, ELEMENTS, 8, |now| now - 1),
        ),
        refused(
            Rule::Column,
            "column-offsets",
            Base::Values,
            "Offsets of two bytes.",
            parameter(Tag::VALUES, 4, 4, 2),
        ),
        refused(
            Rule::Column,
            "column-fixed",
            Base::Columns,
            "A column of keys of 4 bytes for keys of u64.",
            parameter(Tag::KEYS, 0, 4, 4),
        ),
        refused(
            Rule::Column,
            "column-reserved",
            Base::Columns,
            "A reserved byte of KEYS is not zero.",
            parameter(Tag::KEYS, 63, 1, 1),
        ),
        refused(
            Rule::Column,
            "column-codes",
            Base::Codes,
            "A column of codes with one code too few.",
            field(Tag::CODES, ELEMENTS, 8, |now| now - 1),
        ),
        refused(Rule::Codes, "codes-width", Base::Codes, "Codes of two bytes for three values.", wide_codes),
        refused(
            Rule::Column,
            "column-no-type",
            Base::Codes,
            "CODE and VALS in a file without values.",
            head(|b| put(b, 90, 2, 0)),
        ),
        refused(Rule::Codes, "codes-alone", Base::Codes, "Codes without values.", without(Tag::VALUES)),
        refused(
            Rule::ValuesMissing,
            "values-missing",
            Base::Values,
            "Values of bytes without VALS.",
            without(Tag::VALUES),
        ),
    ]
}

fn texts() -> Vec<Fault> {
    vec![
        refused(
            Rule::Text,
            "text-elements",
            Base::Text,
            "TEXT has one key less than there are tuples.",
            field(Tag::TEXT, ELEMENTS, 8, |now| now - 1),
        ),
        refused(
            Rule::Text,
            "text-page",
            Base::TextPage,
            "Pages of fifteen keys.",
            parameter(Tag::TEXT, 0, 4, 15),
        ),
        refused(
            Rule::Text,
            "text-places",
            Base::TextPage,
            "Places of two bytes.",
            parameter(Tag::TEXT, 4, 4, 2),
        ),
        refused(
            Rule::Text,
            "text-length",
            Base::TextPage,
            "TEXT is too short for its symbols and places.",
            field(Tag::TEXT, LENGTH, 8, |_| 2304),
        ),
        refused(
            Rule::Text,
            "text-numbers",
            Base::Small,
            "TEXT beside numeric keys.",
            again(|all| {
                let keys: Vec<Vec<u8>> = (0..5u8).map(|at| vec![at]).collect();
                all.push(pleach_kit::pages::text(&keys));
            }),
        ),
        refused(
            Rule::Text,
            "text-keys",
            Base::Keys,
            "TEXT beside KEYS.",
            again(|all| {
                let keys: Vec<Vec<u8>> = (0..20u8).map(|at| vec![at]).collect();
                all.push(pleach_kit::pages::text(&keys));
            }),
        ),
        refused(Rule::Trie, "trie-node", Base::Text, "Nodes of 64 bytes.", parameter(Tag::TRIE, 0, 4, 64)),
        refused(Rule::Trie, "trie-levels", Base::Text, "Paths of 65 nodes.", parameter(Tag::TRIE, 4, 4, 65)),
        refused(
            Rule::Trie,
            "trie-elements",
            Base::Text,
            "TRIE has one node more than bytes.",
            field(Tag::TRIE, ELEMENTS, 8, |now| now + 1),
        ),
        refused(
            Rule::Trie,
            "trie-alone",
            Base::Mask,
            "TRIE without TEXT.",
            again(|all| {
                let keys: Vec<Vec<u8>> = (0..40u8).map(|at| vec![at]).collect();
                all.extend(pleach_kit::pages::trie(&keys));
            }),
        ),
    ]
}

fn trees() -> Vec<Fault> {
    let one = |rule, name, base, tag, at, width, number, about| {
        refused(rule, name, base, about, parameter(tag, at, width, number))
    };
    vec![
        one(Rule::Packed, "packed-page", Base::Packed, Tag::PACK, 4, 4, 512, "Pages of 512 keys."),
        one(
            Rule::Packed,
            "packed-word",
            Base::Packed,
            Tag::PACK,
            0,
            4,
            4,
            "Words of 4 bytes where LINE has 8.",
        ),
        refused(
            Rule::Packed,
            "packed-elements",
            Base::Packed,
            "PACK has one key less than there are tuples.",
            field(Tag::PACK, ELEMENTS, 8, |now| now - 1),
        ),
        one(Rule::Grid, "grid-steps", Base::Grid, Tag::GRID, 4, 4, 9, "A grid of nine steps."),
        one(Rule::Grid, "grid-gap", Base::Grid, Tag::GRID, 12, 4, 1, "The gap of GRID is not zero."),
        one(
            Rule::Grid,
            "grid-word",
            Base::Grid,
            Tag::GRID,
            0,
            4,
            4,
            "A grid of words of 4 bytes where LINE has 8.",
        ),
        refused(
            Rule::Grid,
            "grid-elements",
            Base::Grid,
            "GRID has one unit more than bytes.",
            field(Tag::GRID, ELEMENTS, 8, |now| now + 1),
        ),
        one(Rule::Harmonia, "harmonia-fanout", Base::Harmonia, Tag::HARMONIA, 16, 4, 7, "A fanout of seven."),
        one(
            Rule::Harmonia,
            "harmonia-keys",
            Base::Harmonia,
            Tag::HARMONIA,
            12,
            4,
            8,
            "As many keys in a node as children.",
        ),
        refused(
            Rule::Harmonia,
            "harmonia-elements",
            Base::Harmonia,
            "HARM has one tuple less than LINE.",
            field(Tag::HARMONIA, ELEMENTS, 8, |now| now - 1),
        ),
        one(Rule::Btree, "btree-order", Base::Btree, Tag::BTREE, 0, 4, 3, "An order of three."),
        one(
            Rule::Btree,
            "btree-levels",
            Base::Btree,
            Tag::BTREE,
            12,
            4,
            2,
            "Fewer levels than the tuples need.",
        ),
        one(Rule::Fast, "fast-form", Base::Fast, Tag::FAST, 12, 1, 4, "A form that nobody knows yet."),
        one(Rule::Fast, "fast-depth", Base::Fast, Tag::FAST, 13, 1, 0, "Blocks of no levels."),
        one(Rule::Fast, "fast-levels", Base::Fast, Tag::FAST, 8, 4, 5, "Fewer levels than the tuples need."),
        refused(
            Rule::Fast,
            "fast-length",
            Base::Fast,
            "FAST is 64 bytes longer than its slots.",
            field(Tag::FAST, LENGTH, 8, |now| now + 64),
        ),
    ]
}

/// Changes bytes of the MASK.
fn mask(at: usize, width: usize, number: u64) -> impl Fn(&mut Vec<u8>) + 'static {
    sealed(move |b| {
        let at = content(b, Tag::MASK).start + at;
        put(b, at, width, number);
    })
}

fn masks() -> Vec<Fault> {
    let broken = |name, base, about, make: Make| refused(Rule::Mask, name, base, about, make);
    let with_mask = again(|all| {
        all.push((Tag::MASK, true, vec![0; 32], 0, pleach_format::section::Parameters::NONE));
    });
    vec![
        refused(Rule::MaskMissing, "mask-missing", Base::Mask, "Byte keys without MASK.", without(Tag::MASK)),
        refused(Rule::MaskMissing, "mask-numbers", Base::Small, "Numeric keys with a MASK.", with_mask),
        broken(
            "mask-short",
            Base::Mask,
            "A MASK of 31 bytes.",
            Box::new(again(|all| {
                all.iter_mut().filter(|it| it.0 == Tag::MASK).for_each(|it| it.2.truncate(31));
            })),
        ),
        broken(
            "mask-arrays",
            Base::Mask,
            "Arrays one byte longer than what they describe.",
            Box::new(again(|all| {
                all.iter_mut().filter(|it| it.0 == Tag::MASK).for_each(|it| it.2.push(0));
            })),
        ),
        broken("mask-key-bytes", Base::Keys, "A longest key of 65,536 bytes.", Box::new(mask(0, 4, 65_536))),
        broken(
            "mask-covered",
            Base::Keys,
            "More bytes covered than the longest key has.",
            Box::new(mask(0, 4, 3)),
        ),
        broken("mask-lossless", Base::Mask, "A mark that is neither 0 nor 1.", Box::new(mask(10, 1, 2))),
        broken(
            "mask-partly",
            Base::Keys,
            "Whole keys, of which not all bytes are covered.",
            Box::new(mask(10, 1, 1)),
        ),
        broken(
            "mask-fixed",
            Base::Mask,
            "Keys of one length that are not of bytesN.",
            Box::new(sealed(|b| {
                let at = content(b, Tag::MASK).start;
                put(b, at + 8, 2, 0);
                b[at + 11] = 1;
            })),
        ),
        broken("mask-reserved", Base::Mask, "A reserved byte of MASK is not zero.", Box::new(mask(31, 1, 1))),
        broken("mask-length", Base::Mask, "Kept bits of the length with a gap.", Box::new(mask(8, 2, 5))),
        broken(
            "mask-length-lossy",
            Base::Keys,
            "Kept bits of the length where words are not whole keys.",
            Box::new(mask(8, 2, 1)),
        ),
    ]
}

fn tails() -> Vec<Fault> {
    let broken = |name, base, about, make: Make| refused(Rule::Mask, name, base, about, make);
    vec![
        broken(
            "mask-bits",
            Base::Mask,
            "More kept bits than a word has.",
            Box::new(sealed(|b| {
                let place = content(b, Tag::MASK);
                let middle = place.start + 32 + (place.len() - 32) / 2;
                b[place.start + 32..middle].fill(0);
                b[middle..place.end].fill(0xFF);
            })),
        ),
        broken(
            "mask-tail-bits",
            Base::Tail,
            "More kept bits behind the word than a tail has.",
            Box::new(sealed(|b| {
                let place = content(b, Tag::MASK);
                let covered = number(b, place.start + 4, 4) as usize;
                let half = (place.len() - 32) / 2;
                b[place.start + 32 + covered..place.start + 32 + half].fill(0);
                b[place.start + 32 + half + covered..place.end].fill(0xFF);
            })),
        ),
        refused(
            Rule::Tail,
            "tail-missing",
            Base::Tail,
            "MASK has tails, and the file has none.",
            without(Tag::TAIL),
        ),
        refused(
            Rule::Tail,
            "tail-bytes",
            Base::Tail,
            "Tails of more bytes than TAIL has.",
            sealed(|b| {
                let at = content(b, Tag::MASK).start + 12;
                let now = number(b, at, 2);
                put(b, at, 2, now + 1);
            }),
        ),
        refused(
            Rule::KeysMissing,
            "keys-missing",
            Base::Keys,
            "Words that are not whole keys, and nothing else.",
            without(Tag::KEYS),
        ),
    ]
}

fn approximate() -> Vec<Fault> {
    let feature = |bits: u64| {
        head(move |b| {
            put(b, 24, 8, bits);
        })
    };
    vec![
        refused(
            Rule::Approximate,
            "approximate-exact",
            Base::Small,
            "The feature of approximate keys without a number of keys.",
            feature(1),
        ),
        refused(
            Rule::Approximate,
            "approximate-hidden",
            Base::Approximate,
            "A number of approximate keys without the feature.",
            feature(0),
        ),
        refused(
            Rule::Approximate,
            "approximate-type",
            Base::Small,
            "The feature and a number of keys, for plain keys.",
            |b| {
                *b = with_record(b, 7, "5");
                put(b, 24, 8, 1);
                reseal_head(b);
            },
        ),
        refused(
            Rule::Approximate,
            "approximate-wide",
            Base::Approximate,
            "A number of keys of 65 bits.",
            |b| *b = with_record(b, 7, "18446744073709551616"),
        ),
        refused(
            Rule::Approximate,
            "approximate-number",
            Base::Approximate,
            "A number of keys that is none.",
            sealed(|b| {
                let place = content(b, Tag::META);
                let at = (place.start..place.end).rfind(|&at| b[at] == b'6').expect("the number");
                b[at] = b'x';
            }),
        ),
    ]
}
