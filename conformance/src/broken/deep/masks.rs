//! Rules of MASK and of what goes with it.

use super::super::bases::Base;
use super::super::fault::{Fault, Make, damaged, refused};
use super::super::frame::FLAGS;
use super::{again, changed, edit};
use pleach_format::section::{ColumnParameters, Tag};
use pleach_format::{Rule, ValueType};
use pleach_fsck::Code;
use pleach_kit::mutate::{content, entry_at, header, number, put};
use pleach_kit::naive::Content;
use pleach_kit::pages;

pub(super) fn faults() -> Vec<Fault> {
    let mut all = rules();
    all.extend(tails());
    all.extend(under_right_rules());
    all
}

/// A column of zeros of one size.
fn column(tag: Tag, elements: u64, size: u32) -> Content {
    let shape = ColumnParameters { element_bytes: size.into(), offset_bytes: 0.into(), reserved: [0; 56] };
    (tag, true, vec![0; elements as usize * size as usize + 64], elements, shape.into())
}

/// A column of empty elements of any size.
fn empty(tag: Tag, elements: u64) -> Content {
    let offsets = ((elements as usize + 1) * 4).next_multiple_of(128);
    let shape = ColumnParameters { element_bytes: 0.into(), offset_bytes: 4.into(), reserved: [0; 56] };
    (tag, true, vec![0; offsets + 64], elements, shape.into())
}

/// Tuples of a file, which LINE tells.
fn all_tuples(all: &[Content]) -> u64 {
    all.iter().find(|content| content.0 == Tag::LINE).expect("lines").3
}

/// Writes into MASK.
fn mask(at: usize, width: usize, to: u64) -> Make {
    Box::new(edit(move |b| {
        let at = content(b, Tag::MASK).start + at;
        put(b, at, width, to);
    }))
}

fn rules() -> Vec<Fault> {
    let broken = |name, base, about, make: Make| refused(Rule::Mask, name, base, about, make);
    let fixed = Base::Valid("bytes10-word");
    vec![
        broken("mask-fixed-two", fixed, "A mark of one length that is neither 0 nor 1.", mask(11, 1, 2)),
        broken("mask-fixed-none", fixed, "Keys of bytesN that may have other lengths.", mask(11, 1, 0)),
        broken("mask-fixed-length", fixed, "Kept bits of the length of keys of one length.", mask(8, 2, 1)),
        broken(
            "mask-fixed-shorter",
            fixed,
            "Keys of 9 bytes where the type has 10.",
            Box::new(changed(Tag::MASK, |bytes, elements, _| {
                *bytes = [&bytes[..41], &bytes[42..51]].concat();
                bytes[0] = 9;
                bytes[4] = 9;
                *elements = 9;
            })),
        ),
        broken(
            "mask-lossless-tail",
            Base::Mask,
            "Words that are whole keys, beside tails.",
            Box::new(again(|all| {
                all.iter_mut().filter(|it| it.0 == Tag::MASK).for_each(|it| it.2[12] = 1);
                all.push(column(Tag::TAIL, 5, 1));
            })),
        ),
        broken(
            "mask-tail-long",
            Base::Tail,
            "Tails of 1025 bytes.",
            Box::new(again(|all| {
                all.iter_mut()
                    .filter(|it| it.0 == Tag::MASK)
                    .for_each(|it| it.2[12..14].copy_from_slice(&1025u16.to_le_bytes()));
                all.retain(|it| it.0 != Tag::TAIL);
                all.push(column(Tag::TAIL, 12, 1025));
            })),
        ),
        broken("mask-lossless-most", Base::Mask, "A mark of whole keys of 255.", mask(10, 1, 255)),
        broken("mask-reserved-first", Base::Mask, "The first reserved byte is not zero.", mask(14, 1, 1)),
        broken("mask-length-high", Base::Tail, "The highest bit of the length alone.", mask(8, 2, 0x8000)),
        broken(
            "mask-empty",
            Base::Mask,
            "A MASK without bytes.",
            Box::new(changed(Tag::MASK, |bytes, _, _| {
                bytes.clear();
            })),
        ),
    ]
}

fn tails() -> Vec<Fault> {
    vec![
        refused(
            Rule::Tail,
            "tail-unknown",
            Base::Mask,
            "Tails that MASK does not know of.",
            again(|all| all.push(column(Tag::TAIL, 5, 1))),
        ),
        refused(
            Rule::Tail,
            "tail-longer",
            Base::Tail,
            "Tails of more bytes than MASK says.",
            again(|all| {
                all.retain(|it| it.0 != Tag::TAIL);
                all.push(column(Tag::TAIL, 12, 40));
            }),
        ),
        refused(
            Rule::Column,
            "tail-numbers",
            Base::Small,
            "Tails of keys that are numbers.",
            again(|all| all.push(column(Tag::TAIL, 5, 1))),
        ),
        refused(
            Rule::Column,
            "values-none",
            Base::Valid("u64-none"),
            "A column of values in a file without values.",
            again(|all| all.push(empty(Tag::VALUES, all_tuples(all)))),
        ),
    ]
}

/// What opening does not ask.
fn under_right_rules() -> Vec<Fault> {
    let flags = |tag: Tag, to: u64| {
        edit(move |b: &mut Vec<u8>| {
            let at = entry_at(b, tag) + FLAGS;
            assert_ne!(number(b, at, 4), to);
            put(b, at, 4, to);
        })
    };
    let flag = |name, base: Base, about, tag, to| damaged(Code::Header, name, base, about, flags(tag, to));
    vec![
        flag(
            "flag-keys-whole",
            Base::Valid("bytes-columns"),
            "KEYS beside whole keys, required.",
            Tag::KEYS,
            1,
        ),
        flag("flag-keys-numbers", Base::Columns, "KEYS of numbers, required.", Tag::KEYS, 1),
        flag("flag-values-numbers", Base::Columns, "VALS of numbers, required.", Tag::VALUES, 1),
        flag("flag-values-bytes", Base::Values, "VALS of byte strings, not required.", Tag::VALUES, 0),
        flag("flag-keys", Base::Keys, "KEYS on which answers depend, not required.", Tag::KEYS, 0),
        damaged(
            Code::Mask,
            "mask-text",
            Base::Mask,
            "TEXT beside words that are whole keys.",
            |b: &mut Vec<u8>| {
                assert_eq!(header(b).value_type, ValueType::U32);
                again(|all| {
                    let keys: Vec<Vec<u8>> =
                        (0..5).map(|at| format!("key{}", &"12345"[..at]).into_bytes()).collect();
                    all.push(pages::text(&keys));
                })(b);
            },
        ),
        damaged(
            Code::Mask,
            "mask-elements-more",
            Base::Valid("bytes10-word"),
            "MASK tells one covered byte less than it has.",
            edit(|b| {
                let at = entry_at(b, Tag::MASK) + super::super::frame::ELEMENTS;
                let now = number(b, at, 8);
                put(b, at, 8, now - 1);
            }),
        ),
    ]
}
