//! Byte after byte of what follows from the tuples: whatever is changed there, a check finds it.

use super::super::bases::Base;
use super::super::fault::{Fault, damaged, sealed};
use pleach_format::section::Tag;
use pleach_fsck::Code;
use pleach_kit::mutate::content;

/// What is done to a byte, in turn.
const CHANGES: [u8; 4] = [1, 0x80, 0xFF, 0x10];

/// Bytes of a section, each of which is changed in a file of its own.
struct Part {
    name: &'static str,
    base: Base,
    tag: Tag,
    code: Code,
    /// From one byte up to another, so many steps apart.
    from: usize,
    to: usize,
    step: usize,
}

impl Part {
    fn faults(&self) -> impl Iterator<Item = Fault> {
        let (name, base, tag, code) = (self.name, self.base, self.tag, self.code);
        (self.from..self.to).step_by(self.step).zip(CHANGES.iter().cycle()).map(move |(at, &change)| {
            let about = format!("Byte {at} of {tag} is another one.");
            let make = sealed(move |b| {
                let at = content(b, tag).start + at;
                b[at] ^= change;
            });
            damaged(code, format!("byte-{name}-{at:04}"), base, about, make).ask(4)
        })
    }
}

pub(super) fn faults() -> Vec<Fault> {
    let parts = [grids(), spines(), packed(), trees(), fast(), texts(), columns(), padding()].concat_all();
    parts.iter().flat_map(Part::faults).collect()
}

/// Joins lists of parts.
trait ConcatAll {
    fn concat_all(self) -> Vec<Part>;
}

impl<const N: usize> ConcatAll for [Vec<Part>; N] {
    fn concat_all(self) -> Vec<Part> {
        self.into_iter().flatten().collect()
    }
}

/// Makes parts of (name, base, first byte, end, step).
fn parts<const N: usize>(
    tag: Tag,
    code: Code,
    all: [(&'static str, Base, std::ops::Range<usize>, usize); N],
) -> Vec<Part> {
    all.map(|(name, base, range, step)| Part {
        name,
        base,
        tag,
        code,
        from: range.start,
        to: range.end,
        step,
    })
    .into()
}

const fn valid(name: &'static str) -> Base {
    Base::Valid(name)
}

fn grids() -> Vec<Part> {
    parts(
        Tag::GRID,
        Code::Grid,
        [
            ("grid", Base::Grid, 0..496, 11),
            ("grid-segment", valid("grid-nested"), 0..880, 5),
            ("grid-unit", valid("grid-nested"), 896..1176, 9),
            ("grid-segment-32", valid("grid-nested-32"), 0..576, 3),
            ("grid-32", valid("grid-32"), 0..504, 17),
        ],
    )
}

fn spines() -> Vec<Part> {
    let mut all = parts(
        Tag::SPINE,
        Code::Separator,
        [
            ("spine-code", Base::Spine, 0..30, 3),
            ("spine-base", Base::Spine, 54..55, 1),
            ("spine-codes", Base::Inexact, 128..182, 5),
            ("spine-code-last", Base::Inexact, 256..282, 5),
            // The upper bytes of separators as they are.
            ("spine-raw", valid("grid-nested"), 135..192, 8),
            ("spine-16-code", valid("spine-16"), 128..182, 7),
            ("spine-16-last", valid("spine-16"), 256..262, 1),
        ],
    );
    all.extend(parts(
        Tag::SPINE,
        Code::SpineLine,
        [
            ("spine-spare", Base::Spine, 30..54, 5),
            ("spine-flags", Base::Spine, 63..64, 1),
            ("spine-spare-raw", valid("grid-nested"), 208..256, 9),
            ("spine-16-spare", valid("spine-16"), 2..54, 13),
        ],
    ));
    all
}

fn packed() -> Vec<Part> {
    parts(
        Tag::PACK,
        Code::Packed,
        [
            ("packed", Base::Packed, 0..16, 1),
            ("packed-keys", Base::Packed, 128..1280, 97),
            ("packed-records", valid("packed-pages"), 0..32, 1),
            ("packed-pages", valid("packed-pages"), 128..4860, 401),
        ],
    )
}

fn trees() -> Vec<Part> {
    let mut all = parts(
        Tag::HARMONIA,
        Code::Harmonia,
        [("harmonia", Base::Harmonia, 0..1600, 23), ("harmonia-deep", valid("harmonia"), 0..4800, 61)],
    );
    all.extend(parts(
        Tag::BTREE,
        Code::Btree,
        [
            ("btree-node", Base::Btree, 0..304, 7),
            ("btree-keys", Base::Btree, 384..992, 29),
            ("btree-values", Base::Btree, 1024..1184, 17),
            ("btree-deep", valid("btree"), 0..1080, 61),
            ("btree-deep-keys", valid("btree"), 1152..3900, 211),
        ],
    ));
    all
}

fn fast() -> Vec<Part> {
    parts(
        Tag::FAST,
        Code::Classic,
        [
            ("fast", Base::Fast, 0..448, 17),
            ("fast-padded", valid("fast-pages"), 0..2048, 97),
            ("fast-packed", valid("fast-packed"), 0..1240, 61),
            ("fast-record", Base::FastDelta, 0..16, 1),
            ("fast-word", Base::FastDelta, 64..320, 19),
            ("fast-records", valid("fast-delta"), 0..624, 13),
            ("fast-words", valid("fast-delta"), 640..3456, 101),
            ("fast-partial", valid("fast-partial"), 640..3456, 131),
            ("fast-auto", valid("fast-auto"), 225..624, 13),
            ("fast-16", valid("fast-16"), 897..3136, 131),
            ("fast-16-record", valid("fast-16"), 0..32, 1),
            ("fast-16-records", valid("fast-16"), 32..840, 29),
            ("fast-4", valid("fast-4"), 0..16, 3),
        ],
    )
}

fn texts() -> Vec<Part> {
    let mut all = parts(
        Tag::TRIE,
        Code::Trie,
        [
            ("trie", Base::Text, 0..50, 1),
            ("trie-spare", Base::Text, 80..128, 9),
            ("trie-root", valid("text-plain"), 0..50, 3),
            ("trie-slots", valid("text-plain"), 64..177, 5),
            ("trie-second", valid("text-plain"), 191..304, 5),
            ("trie-third", valid("text-plain"), 312..432, 7),
            ("trie-last", valid("text-plain"), 945..1072, 11),
        ],
    );
    all.extend(parts(Tag::TEXT, Code::Text, [("text-symbol", Base::TextPage, 38..255, 31)]));
    all
}

fn columns() -> Vec<Part> {
    let mut all = parts(
        Tag::KEYS,
        Code::Column,
        [
            ("keys", Base::Columns, 0..160, 23),
            ("keys-alone", valid("columns-keys"), 0..160, 37),
            ("keys-16", valid("columns-16"), 0..640, 61),
            ("keys-float", valid("columns"), 0..320, 23),
            ("keys-i64", valid("columns-i64"), 0..160, 17),
            ("keys-short", valid("columns-short"), 0..160, 17),
            ("keys-short-i64", valid("columns-short-i64"), 0..160, 17),
            ("keys-short-float", valid("columns-short-float"), 0..160, 17),
            ("keys-short-16", valid("columns-short-16"), 0..320, 31),
            ("keys-bytes", valid("bytes-columns"), 138..318, 23),
            ("keys-offsets", Base::Keys, 9..76, 7),
        ],
    );
    all.extend(parts(Tag::VALUES, Code::Column, [("values", Base::Columns, 0..80, 13)]));
    all
}

fn padding() -> Vec<Part> {
    let of = |tag, all: &[(&'static str, Base, std::ops::Range<usize>)]| -> Vec<Part> {
        let part = |(name, base, range): &(&'static str, Base, std::ops::Range<usize>)| Part {
            name,
            base: *base,
            tag,
            code: Code::Padding,
            from: range.start,
            to: range.end,
            // The first and the last byte.
            step: (range.len() - 1).max(1),
        };
        all.iter().map(part).collect()
    };
    [
        of(
            Tag::GRID,
            &[("gap-grid", Base::Grid, 496..560), ("gap-segments", valid("grid-nested"), 880..896)],
        ),
        of(Tag::PACK, &[("gap-packed", Base::Packed, 16..128), ("gap-packed-end", Base::Packed, 1280..1344)]),
        of(
            Tag::BTREE,
            &[
                ("gap-btree", Base::Btree, 304..384),
                ("gap-btree-keys", Base::Btree, 992..1024),
                ("gap-btree-end", Base::Btree, 1184..1344),
            ],
        ),
        of(
            Tag::FAST,
            &[
                ("gap-fast", Base::Fast, 448..512),
                ("gap-fast-packed", valid("fast-packed"), 1240..1344),
                ("gap-fast-records", Base::FastDelta, 16..64),
                ("gap-fast-pages", Base::FastDelta, 320..384),
                ("gap-fast-delta", valid("fast-delta"), 624..640),
                ("gap-fast-end", valid("fast-delta"), 3456..3520),
            ],
        ),
        of(Tag::KEYS, &[("gap-keys", Base::Columns, 160..224), ("gap-offsets", Base::Keys, 84..128)]),
        of(Tag::VALUES, &[("gap-values", Base::Columns, 80..144)]),
        of(Tag::CODES, &[("gap-codes", Base::Codes, 9..73)]),
        of(Tag::TAIL, &[("gap-tails", Base::Tail, 144..208)]),
        of(Tag::SPINE, &[("gap-spine", Base::Spine, 64..128)]),
    ]
    .concat_all()
}
