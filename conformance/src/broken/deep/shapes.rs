//! Parameters, lengths and elements of sections that break one half of a rule of opening.

use super::super::bases::Base;
use super::super::fault::{Fault, Make, head, refused};
use super::super::frame::{ELEMENTS, LENGTH, PARAMETERS};
use super::{again, changed, edit};
use pleach_format::Rule;
use pleach_format::section::{ColumnParameters, Parameters, Tag};
use pleach_kit::mutate::{entry_at, number, put};
use pleach_kit::pages;

pub(super) fn faults() -> Vec<Fault> {
    let mut all = grids();
    all.extend(wide_words());
    all.extend(packed_and_tries());
    all.extend(harmonia());
    all.extend(btree());
    all.extend(fast());
    all.extend(columns());
    all.extend(codes());
    all.extend(texts());
    all.extend(others());
    all
}

/// Writes into the parameters of a section.
fn parameter(tag: Tag, at: usize, width: usize, to: u64) -> Make {
    field(tag, PARAMETERS + at, width, move |_| to)
}

/// Changes a number in the entry of a section.
fn field(tag: Tag, at: usize, width: usize, to: impl Fn(u64) -> u64 + 'static) -> Make {
    Box::new(edit(move |b| {
        let at = entry_at(b, tag) + at;
        let now = number(b, at, width);
        put(b, at, width, to(now));
    }))
}

fn store(parameters: &mut [u8; 64], at: usize, to: u32) {
    parameters[at..at + 4].copy_from_slice(&to.to_le_bytes());
}

fn grids() -> Vec<Fault> {
    let nested = Base::Valid("grid-nested");
    let broken = |name, base, about, make: Make| refused(Rule::Grid, name, base, about, make);
    let grid = |at, width, to| parameter(Tag::GRID, at, width, to);
    vec![
        broken("grid-reserved", Base::Grid, "A reserved byte of GRID is not zero.", grid(63, 1, 1)),
        broken(
            "grid-base-32",
            Base::Valid("grid-32"),
            "A base of more bits than words of 4 bytes.",
            grid(28, 4, 1),
        ),
        broken(
            "grid-kind",
            Base::Grid,
            "The first segment has parts of a kind that nobody knows yet.",
            field(Tag::GRID, PARAMETERS + 39, 1, |now| now | 3),
        ),
        broken("grid-steps-nine", nested, "Nine steps above segments.", grid(4, 4, 9)),
        broken(
            "grid-usual-more",
            nested,
            "More usual steps than steps.",
            Box::new(changed(Tag::GRID, |_, _, parameters| {
                let steps = parameters[4];
                parameters[8] = steps + 1;
            })),
        ),
        broken("grid-steps-one", Base::Grid, "A step below a single segment.", grid(4, 4, 1)),
        broken("grid-usual-none", nested, "No usual steps above segments.", grid(8, 4, 0)),
        broken(
            "grid-segments-one",
            Base::Grid,
            "A segment that no step leads to.",
            Box::new(changed(Tag::GRID, |bytes, _, parameters| {
                bytes.splice(..0, [0; 128]);
                parameters[16] = 1;
            })),
        ),
        broken(
            "grid-segments-none",
            nested,
            "Steps without segments.",
            Box::new(changed(Tag::GRID, |bytes, _, parameters| {
                let segments = usize::from(parameters[16]);
                bytes.drain(..(16 * segments).next_multiple_of(128));
                parameters[16..24].fill(0);
            })),
        ),
        broken(
            "grid-empty",
            Base::Grid,
            "A grid without units.",
            Box::new(changed(Tag::GRID, |bytes, units, _| {
                *bytes = vec![0; 64];
                *units = 0;
            })),
        ),
        broken(
            "grid-length",
            Base::Grid,
            "GRID is 64 bytes longer than its units.",
            field(Tag::GRID, LENGTH, 8, |now| now + 64),
        ),
    ]
}

/// Structures of words of 16 bytes, which these have not.
fn wide_words() -> Vec<Fault> {
    let mut grid = [0; 64];
    store(&mut grid, 0, 16);
    store(&mut grid, 36, 1 << 24);
    let mut pack = [0; 64];
    store(&mut pack, 0, 16);
    store(&mut pack, 4, 1024);
    let base = Base::Valid("columns-16");
    let with = |tag, bytes: usize, elements, parameters| -> Make {
        Box::new(again(move |all| {
            all.push((tag, false, vec![0; bytes], elements, Parameters(parameters)));
        }))
    };
    let mut bytes = pack;
    store(&mut bytes, 0, 8);
    vec![
        refused(Rule::Grid, "grid-wide", base, "A grid of words of 16 bytes.", with(Tag::GRID, 72, 1, grid)),
        refused(
            Rule::Packed,
            "packed-wide",
            base,
            "A compressed column of words of 16 bytes.",
            with(Tag::PACK, 192, 40, pack),
        ),
        refused(
            Rule::Packed,
            "packed-bytes",
            Base::Mask,
            "A compressed column of byte keys.",
            with(Tag::PACK, 192, 5, bytes),
        ),
    ]
}

fn packed_and_tries() -> Vec<Fault> {
    vec![
        refused(
            Rule::Packed,
            "packed-reserved",
            Base::Packed,
            "A reserved byte of PACK is not zero.",
            parameter(Tag::PACK, 63, 1, 1),
        ),
        refused(
            Rule::Packed,
            "packed-short",
            Base::Packed,
            "PACK is too short for the records of its pages.",
            field(Tag::PACK, LENGTH, 8, |_| 16),
        ),
        refused(
            Rule::Trie,
            "trie-reserved",
            Base::Text,
            "A reserved byte of TRIE is not zero.",
            parameter(Tag::TRIE, 63, 1, 1),
        ),
        refused(
            Rule::Trie,
            "trie-no-levels",
            Base::Text,
            "Paths of no nodes.",
            parameter(Tag::TRIE, 4, 4, 0),
        ),
        refused(
            Rule::Trie,
            "trie-no-nodes",
            Base::Text,
            "A TRIE without nodes.",
            changed(Tag::TRIE, |bytes, nodes, _| {
                bytes.clear();
                *nodes = 0;
            }),
        ),
        refused(
            Rule::Trie,
            "trie-one-page",
            Base::TextPage,
            "TRIE above a single page.",
            again(|all| {
                let keys: Vec<Vec<u8>> = (0..40u8).map(|at| vec![at]).collect();
                all.extend(pages::trie(&keys));
            }),
        ),
    ]
}

/// A HARM of zeros with right lengths, above 40 tuples of 8 and 4 bytes.
fn harmonia_of(fanout: usize, keys: usize, stride: usize) -> Make {
    let mut levels = vec![40usize.div_ceil(keys)];
    while levels[levels.len() - 1] > 1 {
        levels.push(levels[levels.len() - 1].div_ceil(keys + 1));
    }
    let nodes: usize = levels.iter().sum();
    let counts = (nodes * stride).next_multiple_of(128);
    let children = (counts + nodes).next_multiple_of(128);
    let values = (children + 4 * (nodes - levels[0] + 1)).next_multiple_of(128);
    let bytes = (values + levels[0] * fanout * 4).next_multiple_of(128) + 64;
    let depth = levels.len() as u32;
    Box::new(changed(Tag::HARMONIA, move |content, _, parameters| {
        *content = vec![0; bytes];
        store(parameters, 0, stride as u32);
        store(parameters, 12, keys as u32);
        store(parameters, 16, fanout as u32);
        store(parameters, 20, depth);
    }))
}

fn harmonia() -> Vec<Fault> {
    let broken = |name, about, make: Make| refused(Rule::Harmonia, name, Base::Harmonia, about, make);
    let harmonia = |at, width, to| parameter(Tag::HARMONIA, at, width, to);
    vec![
        broken("harmonia-word", "Words of 4 bytes where LINE has 8.", harmonia(4, 4, 4)),
        broken("harmonia-value-bytes", "Values of 8 bytes where LINE has 4.", harmonia(8, 4, 8)),
        broken("harmonia-reserved", "A reserved byte of HARM is not zero.", harmonia(63, 1, 1)),
        broken("harmonia-seven", "A fanout of seven, in a section that fits it.", harmonia_of(7, 5, 64)),
        broken("harmonia-wide", "A fanout of 129, in a section that fits it.", harmonia_of(129, 40, 1088)),
        broken("harmonia-full", "As many keys as children, in a section that fits.", harmonia_of(8, 8, 64)),
        broken("harmonia-no-keys", "Nodes of no keys.", harmonia(12, 4, 0)),
        broken("harmonia-stride", "Nodes of 128 bytes for keys of 64.", harmonia_of(8, 5, 128)),
        broken(
            "harmonia-levels",
            "One level more than there are.",
            field(Tag::HARMONIA, PARAMETERS + 20, 4, |now| now + 1),
        ),
        broken(
            "harmonia-length",
            "HARM is 64 bytes longer than its parts.",
            field(Tag::HARMONIA, LENGTH, 8, |now| now + 64),
        ),
    ]
}

/// A BTRE of zeros with right lengths, above 40 tuples of 8 and 4 bytes.
fn btree_of(order: usize) -> Make {
    let mut levels = vec![40usize.div_ceil(order - 1)];
    while levels[levels.len() - 1] > 1 {
        levels.push(levels[levels.len() - 1].div_ceil(order));
    }
    let nodes: usize = levels.iter().sum();
    let keys = (16 * nodes).next_multiple_of(128);
    let values = (keys + nodes * (order - 1).next_multiple_of(4) * 8).next_multiple_of(128);
    let bytes = (values + 160).next_multiple_of(128) + 64;
    let depth = levels.len() as u32;
    Box::new(changed(Tag::BTREE, move |content, _, parameters| {
        *content = vec![0; bytes];
        store(parameters, 0, order as u32);
        store(parameters, 12, depth);
    }))
}

fn btree() -> Vec<Fault> {
    let broken = |name, about, make: Make| refused(Rule::Btree, name, Base::Btree, about, make);
    let btree = |at, width, to| parameter(Tag::BTREE, at, width, to);
    vec![
        broken("btree-word", "Words of 4 bytes where LINE has 8.", btree(4, 4, 4)),
        broken("btree-value-bytes", "Values of 8 bytes where LINE has 4.", btree(8, 4, 8)),
        broken("btree-reserved", "A reserved byte of BTRE is not zero.", btree(63, 1, 1)),
        broken("btree-three", "An order of three, in a section that fits it.", btree_of(3)),
        broken("btree-wide", "An order of 129, in a section that fits it.", btree_of(129)),
        broken(
            "btree-elements",
            "BTRE has one tuple less than LINE.",
            field(Tag::BTREE, ELEMENTS, 8, |now| now - 1),
        ),
        broken(
            "btree-length",
            "BTRE is 64 bytes longer than its parts.",
            field(Tag::BTREE, LENGTH, 8, |now| now + 64),
        ),
    ]
}

fn fast() -> Vec<Fault> {
    let fast = |name, base, about, at, width, to| {
        refused(Rule::Fast, name, base, about, parameter(Tag::FAST, at, width, to))
    };
    vec![
        fast("fast-bytes", Base::Fast, "Lines of 128 bytes.", 0, 4, 128),
        fast("fast-word-bytes", Base::Fast, "Words of 4 bytes where LINE has 8.", 4, 4, 4),
        fast("fast-reserved", Base::Fast, "A reserved byte of FAST is not zero.", 63, 1, 1),
        fast("fast-flags", Base::Fast, "A flag that nobody knows yet.", 16, 1, 4),
        fast("fast-no-line", Base::Fast, "Lines of no levels.", 14, 1, 0),
        fast("fast-no-page", Base::Fast, "Pages of no levels.", 15, 1, 0),
        fast("fast-block-line", Base::Fast, "Blocks of more levels than lines.", 13, 1, 60),
        fast("fast-line-page", Base::Fast, "Lines of more levels than pages.", 14, 1, 60),
        fast("fast-page-many", Base::Fast, "Pages of 255 levels.", 15, 1, 255),
        fast("fast-delta-page", Base::FastDelta, "Pages of 255 levels of distances.", 15, 1, 255),
        fast("fast-delta-levels", Base::FastDelta, "Another number of levels of distances.", 8, 4, 5),
        fast("fast-partial-4", Base::Valid("fast-4"), "Partial keys of words of 4 bytes.", 12, 1, 2),
        refused(
            Rule::Fast,
            "fast-elements",
            Base::Fast,
            "FAST has one tuple less than LINE.",
            field(Tag::FAST, ELEMENTS, 8, |now| now - 1),
        ),
        refused(
            Rule::Fast,
            "fast-delta-short",
            Base::FastDelta,
            "FAST is too short for the records of its pages.",
            field(Tag::FAST, LENGTH, 8, |_| 64),
        ),
    ]
}

/// A column of empty elements of any size.
fn empty_elements(elements: u64) -> (Vec<u8>, Parameters) {
    let offsets = ((elements as usize + 1) * 4).next_multiple_of(128);
    let shape = ColumnParameters { element_bytes: 0.into(), offset_bytes: 4.into(), reserved: [0; 56] };
    (vec![0; offsets + 64], shape.into())
}

/// A column of zeros of one size.
fn zeros(elements: u64, size: u32) -> (Vec<u8>, Parameters) {
    let shape = ColumnParameters { element_bytes: size.into(), offset_bytes: 0.into(), reserved: [0; 56] };
    (vec![0; elements as usize * size as usize + 64], shape.into())
}

fn columns() -> Vec<Fault> {
    let broken = |name, base, about, make: Make| refused(Rule::Column, name, base, about, make);
    let of = |tag, column: fn(u64) -> (Vec<u8>, Parameters)| -> Make {
        Box::new(changed(tag, move |bytes, elements, parameters| {
            let (content, shape) = column(*elements);
            *bytes = content;
            *parameters = shape.0;
        }))
    };
    vec![
        broken("column-tails-any", Base::Tail, "Tails of any size.", of(Tag::TAIL, empty_elements)),
        broken("column-codes-any", Base::Codes, "Codes of any size.", of(Tag::CODES, empty_elements)),
        broken(
            "column-keys-any",
            Base::Columns,
            "Keys of any size for keys of u64.",
            of(Tag::KEYS, empty_elements),
        ),
        broken(
            "column-size",
            Base::Columns,
            "Keys of 4 bytes for keys of u64, in a section that fits them.",
            of(Tag::KEYS, |elements| zeros(elements, 4)),
        ),
        broken(
            "column-bytes-fixed",
            Base::Keys,
            "Keys of 8 bytes for keys of any size.",
            of(Tag::KEYS, |elements| zeros(elements, 8)),
        ),
        broken("column-both", Base::Columns, "Numbers that have offsets.", parameter(Tag::VALUES, 4, 4, 4)),
        broken(
            "column-neither",
            Base::Values,
            "Neither a size nor offsets.",
            parameter(Tag::VALUES, 4, 4, 0),
        ),
        broken(
            "column-long",
            Base::Columns,
            "A column of values that is 64 bytes longer than its numbers.",
            field(Tag::VALUES, LENGTH, 8, |now| now + 64),
        ),
        broken(
            "column-keys-elements",
            Base::Columns,
            "A column of keys with one key too few.",
            changed_elements(Tag::KEYS, 8),
        ),
        broken(
            "column-tails-elements",
            Base::Tail,
            "A column of tails with one tail too few.",
            changed_elements(Tag::TAIL, 12),
        ),
    ]
}

/// Takes an element from a column of one size.
fn changed_elements(tag: Tag, size: usize) -> Make {
    Box::new(changed(tag, move |bytes, elements, _| {
        *elements -= 1;
        bytes.drain(..size);
    }))
}

fn codes() -> Vec<Fault> {
    let broken = |name, base, about, make: Make| refused(Rule::Codes, name, base, about, make);
    vec![
        broken(
            "codes-numbers",
            Base::Columns,
            "Codes beside numbers as values.",
            Box::new(again(|all| {
                let (bytes, shape) = zeros(20, 1);
                all.push((Tag::CODES, true, bytes, 20, shape));
            })),
        ),
        broken(
            "codes-no-values",
            Base::Codes,
            "Codes of tuples, and no values.",
            Box::new(changed(Tag::VALUES, |bytes, elements, _| {
                *elements = 0;
                *bytes = empty_elements(0).0;
            })),
        ),
        broken(
            "codes-no-tuples",
            Base::Valid("value-codes-empty"),
            "A value, and no tuples.",
            Box::new(changed(Tag::VALUES, |bytes, elements, _| {
                *elements = 1;
                *bytes = empty_elements(1).0;
            })),
        ),
        broken(
            "codes-many",
            Base::Codes,
            "More values than tuples.",
            Box::new(changed(Tag::VALUES, |bytes, elements, _| {
                *elements = 10;
                *bytes = empty_elements(10).0;
            })),
        ),
    ]
}

fn texts() -> Vec<Fault> {
    let broken = |name, base, about, make: Make| refused(Rule::Text, name, base, about, make);
    vec![
        broken(
            "text-reserved",
            Base::TextPage,
            "A reserved byte of TEXT is not zero.",
            parameter(Tag::TEXT, 63, 1, 1),
        ),
        broken(
            "text-places-long",
            Base::TextPage,
            "Places of 8 bytes where 4 are enough.",
            parameter(Tag::TEXT, 4, 4, 8),
        ),
        broken("text-places-five", Base::TextPage, "Places of 5 bytes.", parameter(Tag::TEXT, 4, 4, 5)),
        broken(
            "text-tails",
            Base::Tail,
            "TEXT beside TAIL.",
            Box::new(again(|all| {
                let keys: Vec<Vec<u8>> = (0..12u8).map(|at| vec![at]).collect();
                all.push(pages::text(&keys));
            })),
        ),
    ]
}

fn others() -> Vec<Fault> {
    vec![
        refused(
            Rule::SumsMissing,
            "table-empty",
            Base::Small,
            "A section table without entries.",
            head(|b| {
                put(b, 120, 4, 0);
                b[4096..8192].fill(0);
            }),
        ),
        refused(
            Rule::Spine,
            "spine-encodings-more",
            Base::Spine,
            "An encoding behind that of the last level.",
            parameter(Tag::SPINE, 24 + 9, 1, 1),
        ),
        refused(
            Rule::Spine,
            "spine-children-none",
            Base::Empty,
            "Lines of no children above no lines.",
            parameter(Tag::SPINE, 12, 4, 0),
        ),
        refused(
            Rule::ShortWords,
            "short-from",
            Base::Short,
            "A run of no bits that begins at a bit.",
            parameter(Tag::LINE, 32 + 6, 1, 60),
        ),
    ]
}
