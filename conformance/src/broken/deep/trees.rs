//! Nodes of TRIE, pages of FAST and cells of GRID that break one rule and keep all others.

use super::super::bases::Base;
use super::super::fault::{Fault, damaged};
use super::{changed, edit};
use pleach_format::section::Tag;
use pleach_fsck::Code;
use pleach_kit::mutate::{content, number, put};

/// Bytes of a node of TRIE.
const NODE_BYTES: usize = 128;
pub(super) fn faults() -> Vec<Fault> {
    let mut all = tries();
    all.extend(runs());
    all.extend(pages());
    all
}

fn trie(base: Base, name: &'static str, about: &'static str, change: fn(&mut Vec<u8>)) -> Fault {
    damaged(Code::Trie, name, base, about, changed(Tag::TRIE, move |bytes, _, _| change(bytes)))
}

/// Nodes with slots.
fn tries() -> Vec<Fault> {
    vec![
        trie(Base::Letters, "trie-root-first", "The root does not lead to the first page.", |b| {
            assert_eq!((b[2], number(b, 4, 4), number(b, 12, 4)), (2, 0, 2), "a page for each child");
            put(b, 4, 4, 1);
        }),
        trie(Base::Letters, "trie-root-last", "The root does not lead to the last page.", |b| {
            put(b, 12, 4, 1)
        }),
        trie(Base::Letters, "trie-unshared", "Keys at which pages part do not share the prefix.", |b| {
            // The letter after it decides as well.
            assert_eq!((b[0], b[2]), (0, 2), "a node of three pages that begin with other letters");
            b[0] = 1;
        }),
        trie(Base::Letters, "trie-unshared-nine", "The prefix is longer than what pages share.", |b| {
            b[0] = 9
        }),
    ]
}

/// Nodes that are runs of pages.
fn runs() -> Vec<Fault> {
    /// Returns where the first run is.
    fn run(b: &[u8]) -> usize {
        (0..b.len()).step_by(NODE_BYTES).find(|at| b[at + 3] == 1).expect("a node of pages")
    }
    vec![
        trie(Base::Runs, "trie-run-kind", "A node of another kind, with pages.", |b| {
            let at = run(b);
            b[at + 3] = 2;
        }),
        trie(Base::Runs, "trie-run-slot", "A node of pages with a slot.", |b| {
            let at = run(b);
            b[at + 2] = 1;
            put(b, at + 48, 8, 5);
        }),
        trie(Base::Runs, "trie-run-slots", "A node of pages with a slot of ones.", |b| {
            let at = run(b);
            b[at + 2] = 1;
        }),
        trie(Base::Runs, "trie-run-slice", "A node of pages with a slice that it does not use.", |b| {
            let at = run(b);
            put(b, at + 48, 8, 5);
        }),
        trie(Base::Runs, "trie-run-unused", "An unused field of a node of pages.", |b| {
            let at = run(b);
            put(b, at + 12, 4, 1);
        }),
        trie(Base::Runs, "trie-run-page", "A node of pages that are each one page too far.", |b| {
            let at = run(b);
            let before = number(b, at + 4, 4);
            put(b, at + 4, 4, before + 1);
        }),
        trie(Base::Runs, "trie-run-short", "A node of pages that ends a page too early.", |b| {
            let at = run(b);
            let before = number(b, at + 8, 4);
            put(b, at + 8, 4, before - 1);
        }),
        trie(Base::Runs, "trie-run-end", "A node of pages with more pages than there are.", |b| {
            let at = run(b);
            put(b, at + 8, 4, 1000);
        }),
    ]
}

/// Pages of a compressed tree.
fn pages() -> Vec<Fault> {
    let mut all = Vec::new();
    // What a nibble that the keys of a page differ in is worth: one of the lower and one of the upper half.
    for (name, nibble) in [("fast-nibble-low", 1u64), ("fast-nibble-high", 9)] {
        all.push(damaged(
            Code::Classic,
            name,
            Base::Nibbles,
            "A page without a nibble in which its keys differ, in its record and in its words.",
            changed(Tag::FAST, move |bytes, _, _| {
                let kept = number(bytes, 8, 2);
                let width = usize::from(bytes[10]);
                assert_eq!(kept >> nibble & 1, 1, "a page with this nibble");
                let free = u64::MAX >> (64 - 8 * width);
                put(bytes, 8, 2, kept & !(1 << nibble));
                let before = 4 * (kept & ((1 << nibble) - 1)).count_ones();
                let from = (number(bytes, 12, 4) << 8 | u64::from(bytes[11])) as usize * 16;
                // Free slots are ones, and zeros follow the page.
                for at in (from..bytes.len() - 64).step_by(width) {
                    let word = number(bytes, at, width);
                    if word < free {
                        let low = word & ((1 << before) - 1);
                        put(bytes, at, width, word >> (before + 4) << before | low);
                    }
                }
            }),
        ));
    }
    for (name, base) in [("fast-far-four", Base::FastDelta), ("fast-far-two", Base::FastNear)] {
        all.push(damaged(
            Code::Classic,
            name,
            base,
            "The last key is farther from the first one of its page than its word can say.",
            edit(|b| {
                // The last key of the last line, and the one that the superblock names.
                let lines = content(b, Tag::LINE);
                let tuples = number(b, 80, 8) as usize;
                let (line, slot) = ((tuples - 1) / 5, (tuples - 1) % 5);
                let at = lines.start + 64 * line + 8 * slot;
                b[at + 4] += 1;
                let word = number(b, at, 8);
                b[200..208].copy_from_slice(&word.to_be_bytes());
            }),
        ));
    }
    all.push(damaged(
        Code::Classic,
        "fast-longer",
        Base::FastDelta,
        "The section is longer than its pages.",
        changed(Tag::FAST, |bytes, _, _| bytes.extend([0; 64])),
    ));
    all.push(damaged(
        Code::Classic,
        "fast-shorter",
        Base::FastDelta,
        "The section ends inside its last page.",
        changed(Tag::FAST, |bytes, _, _| bytes.truncate(bytes.len() - 64)),
    ));
    all.push(damaged(
        Code::Packed,
        "packed-longer",
        Base::Packed,
        "The section is longer than its pages.",
        changed(Tag::PACK, |bytes, _, _| bytes.extend([0; 8])),
    ));
    all
}
