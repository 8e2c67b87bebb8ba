//! Faults of search structures and of byte keys by page, which only a check of the whole file sees.

use super::bases::Base;
use super::fault::{Fault, byte, byte_back, damaged, sealed};
use super::frame::PARAMETERS;
use pleach_format::section::Tag;
use pleach_fsck::Code;
use pleach_kit::mutate::{content, entry_at, header};

pub(super) fn faults() -> Vec<Fault> {
    let mut all = structures();
    all.extend(trees());
    all.extend(texts_and_tries());
    all
}

fn structures() -> Vec<Fault> {
    let tree = |code, name, base, tag, at, about| damaged(code, name, base, about, byte(tag, at, 1));
    vec![
        tree(Code::Grid, "grid-mark", Base::Grid, Tag::GRID, 0, "A mark of the grid is at another cell."),
        tree(Code::Grid, "grid-count", Base::Grid, Tag::GRID, 12, "A count of the grid is another one."),
        damaged(
            Code::Grid,
            "grid-usual",
            Base::Grid,
            "The usual steps are more than there are.",
            sealed(|b| {
                let at = entry_at(b, Tag::GRID) + PARAMETERS + 24;
                b[at] ^= 1;
            }),
        ),
        tree(
            Code::Packed,
            "packed-base",
            Base::Packed,
            Tag::PACK,
            0,
            "The base of a page is not its first key.",
        ),
        tree(Code::Packed, "packed-distance", Base::Packed, Tag::PACK, 130, "A distance is another one."),
        tree(Code::Packed, "packed-place", Base::Packed, Tag::PACK, 8, "A page lies at another place."),
        damaged(
            Code::Packed,
            "packed-free",
            Base::Packed,
            "A bit of a key that does not exist is set.",
            byte_back(Tag::PACK, 65, 1),
        ),
    ]
}

fn trees() -> Vec<Fault> {
    let tree = |code, name, base, tag, at, about| damaged(code, name, base, about, byte(tag, at, 1));
    vec![
        tree(
            Code::Harmonia,
            "harmonia-key",
            Base::Harmonia,
            Tag::HARMONIA,
            0,
            "A key of the root is not the last one below.",
        ),
        damaged(
            Code::Harmonia,
            "harmonia-value",
            Base::Harmonia,
            "A value of a leaf is another one.",
            byte_back(Tag::HARMONIA, 128, 1),
        ),
        tree(Code::Btree, "btree-node", Base::Btree, Tag::BTREE, 4, "A first child is another node."),
        damaged(
            Code::Btree,
            "btree-value",
            Base::Btree,
            "A value of a leaf is another one.",
            byte_back(Tag::BTREE, 200, 1),
        ),
        tree(Code::Classic, "fast-slot", Base::Fast, Tag::FAST, 0, "A slot holds another key."),
        damaged(
            Code::Classic,
            "fast-free",
            Base::Fast,
            "A slot of no key is not all ones.",
            byte_back(Tag::FAST, 65, 1),
        ),
        tree(
            Code::Classic,
            "fast-base",
            Base::FastDelta,
            Tag::FAST,
            0,
            "The base of a page is not its smallest key.",
        ),
        tree(Code::Classic, "fast-width", Base::FastDelta, Tag::FAST, 10, "Words of three bytes."),
        tree(Code::Classic, "fast-place", Base::FastDelta, Tag::FAST, 11, "A page lies at another place."),
    ]
}

fn texts_and_tries() -> Vec<Fault> {
    vec![
        damaged(
            Code::Text,
            "text-print",
            Base::TextPage,
            "The fingerprint of a key is another one.",
            first_page(5),
        ),
        damaged(
            Code::Text,
            "text-shared",
            Base::TextPage,
            "A key that does not exist shares a byte with the head.",
            first_page(21 + 14),
        ),
        damaged(
            Code::Text,
            "text-first",
            Base::TextPage,
            "A key that does not exist has a first byte.",
            first_page(36 + 14),
        ),
        damaged(
            Code::Text,
            "text-flags",
            Base::TextPage,
            "A flag of a page that nobody knows yet.",
            sealed(|b| {
                let at = page(b) + 4;
                b[at] |= 4;
            }),
        ),
        damaged(
            Code::Text,
            "text-symbol",
            Base::TextPage,
            "A symbol of nine bytes.",
            byte(Tag::TEXT, 254, 9),
        ),
        damaged(
            Code::Text,
            "text-place",
            Base::Text,
            "The pages end at another place.",
            byte(Tag::TEXT, 2304 + 12, 1),
        ),
        damaged(
            Code::Trie,
            "trie-slice",
            Base::Text,
            "A slice is above the heads behind it.",
            sealed(|b| {
                let at = content(b, Tag::TRIE).start + 48;
                b[at..at + 8].fill(0xFE);
            }),
        ),
        damaged(Code::Trie, "trie-child", Base::Text, "A child is another page.", byte(Tag::TRIE, 4, 1)),
        damaged(
            Code::Trie,
            "trie-prefix",
            Base::Text,
            "A node looks at later bytes than its keys share.",
            byte(Tag::TRIE, 0, 9),
        ),
        damaged(
            Code::Trie,
            "trie-kind",
            Base::Text,
            "A kind of node that nobody knows yet.",
            byte(Tag::TRIE, 3, 2),
        ),
    ]
}

/// Byte of the first page of TEXT.
fn page(b: &[u8]) -> usize {
    let there = header(b).tuples as usize;
    content(b, Tag::TEXT).start + (2304 + (there.div_ceil(16) + 1) * 4).next_multiple_of(128)
}

/// Adds to a byte of the first page of TEXT.
fn first_page(at: usize) -> impl Fn(&mut Vec<u8>) + 'static {
    sealed(move |b| {
        let at = page(b) + at;
        b[at] = b[at].wrapping_add(1);
    })
}
