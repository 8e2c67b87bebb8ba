//! Faults of META, of intervals and of records.

use super::super::bases::Base;
use super::super::fault::{Fault, Make, damaged};
use super::{changed, edit};
use crate::valid::with_record;
use pleach_format::section::Tag;
use pleach_fsck::Code;
use pleach_kit::mutate::{content, header, number, put};

pub(super) fn faults() -> Vec<Fault> {
    let mut all = records();
    all.extend(walk());
    all.extend(intervals());
    all.extend(claims());
    all
}

/// Adds a record to META.
fn said(tag: u16, text: &'static str) -> Make {
    Box::new(move |b| *b = with_record(b, tag, text))
}

/// Logical types of values that begin as records do, and are none of four bytes.
const NO_RECORDS: [(&str, &str); 24] = [
    ("empty", "record<>"),
    ("open", "record<a: u32"),
    ("name", "record<1a: u32>"),
    ("no-name", "record<: u32>"),
    ("no-kind", "record<a>"),
    ("no-space", "record<a:u32>"),
    ("kind", "record<a: u33>"),
    ("kind-none", "record<a: >"),
    ("bytes-zero", "record<a: bytes0, b: u32>"),
    ("bytes-lead", "record<a: bytes04>"),
    ("bytes-many", "record<a: bytes65536>"),
    ("twice", "record<a: u16, a: u16>"),
    ("comma", "record<a: u16,b: u16>"),
    ("end", "record<a: u16, >"),
    ("behind", "record<a: u32> "),
    ("quote", "record<\"a: u32>"),
    ("quoted", "record<\"a\": u32>"),
    ("escape", "record<\"a\\b\": u32>"),
    ("logical", "record<a: u32 Ipv4>"),
    ("logical-open", "record<a: u32 \"Ipv4>"),
    ("logical-none", "record<a: u32 \"\">"),
    ("large", "record<a: u32, b: u8>"),
    ("small", "record<a: u16>"),
    ("text", "record<a: utf8>"),
];

/// Records that do not fit values of `u32`.
fn records() -> Vec<Fault> {
    let broken = |(name, text): (&'static str, &'static str)| {
        let about = format!("Values of u32 are said to be {text}");
        damaged(Code::Meta, format!("record-none-{name}"), Base::Mask, about, said(4, text))
    };
    let mut all: Vec<Fault> = NO_RECORDS.map(broken).into();
    all.push(damaged(
        Code::Meta,
        "record-none-many",
        Base::Mask,
        "A record of 1025 fields.",
        |b: &mut Vec<u8>| {
            let fields: Vec<String> = (0..1025).map(|at| format!("f{at}: u8")).collect();
            *b = with_record(b, 4, &format!("record<{}>", fields.join(", ")));
        },
    ));
    all
}

/// Records of META as bytes.
fn walk() -> Vec<Fault> {
    let broken = |name, base, about, make| damaged(Code::Meta, name, base, about, make);
    let meta =
        |change: fn(&mut Vec<u8>)| -> Make { Box::new(changed(Tag::META, move |bytes, _, _| change(bytes))) };
    vec![
        broken("meta-rest", Base::Spine, "Four bytes follow the last record.", meta(|b| b.extend([0; 4]))),
        broken(
            "meta-unpadded",
            Base::Spine,
            "The last record is not padded.",
            meta(|b| {
                // The text `number` has six bytes.
                let end = b.windows(6).rposition(|it| it == b"number").expect("a name") + 6;
                b.truncate(end);
            }),
        ),
        broken(
            "meta-zero-second",
            Base::Spine,
            "The second zero of a record is not zero.",
            meta(|b| b[3] = 1),
        ),
        broken("meta-pad-last", Base::Spine, "The last byte behind a text is not zero.", meta(|b| b[15] = 1)),
        broken(
            "meta-long",
            Base::Spine,
            "A text of 65,537 bytes.",
            Box::new(|b| *b = with_record(b, 99, &"x".repeat(65_537))),
        ),
    ]
}

/// What META says of the tuples, and they are not.
fn claims() -> Vec<Fault> {
    let broken = |name, base, about, make| damaged(Code::Meta, name, base, about, make);
    let renamed = |text: &'static str, to: &'static str| -> Make {
        assert_eq!(text.len(), to.len());
        Box::new(changed(Tag::META, move |bytes, _, _| {
            let at = bytes.windows(text.len()).rposition(|it| it == text.as_bytes()).expect("a text");
            bytes[at..at + text.len()].copy_from_slice(to.as_bytes());
        }))
    };
    vec![
        broken(
            "interval-kind",
            Base::Intervals,
            "Intervals whose ends are signed, and whose keys are not.",
            renamed("last: u32", "last: i32"),
        ),
        broken(
            "interval-word",
            Base::Intervals,
            "Intervals of a kind that nobody knows yet.",
            renamed("inclusive", "exclusive"),
        ),
        broken("interval-bytes", Base::Valid("record-mask"), "Intervals of byte keys.", said(6, "inclusive")),
        broken(
            "meta-prefix",
            Base::Valid("utf8-word"),
            "First letters that are not told as approximate.",
            said(3, "Prefix(3)"),
        ),
        broken(
            "meta-hash-turned",
            Base::Small,
            "Turned hashes that are not told as approximate.",
            said(3, "Hash64(4)"),
        ),
    ]
}

/// Writes the end of an interval, the first field of a value in the tuple lines.
fn end(rank: usize, to: impl Fn(&[u8], usize) -> u64 + 'static) -> Make {
    Box::new(edit(move |b| {
        let there = header(b);
        let (tuples, width) = (there.geometry.tuples_per_line(), 8);
        let value = there.value_type.bytes();
        let line = content(b, Tag::LINE).start + 64 * (rank / tuples);
        let at = line + 64 - tuples * value + rank % tuples * value;
        let to = to(b, at);
        put(b, at, width.min(value), to);
    }))
}

fn intervals() -> Vec<Fault> {
    let broken = |name, base, about, make| damaged(Code::Interval, name, base, about, make);
    let key = |b: &[u8], at: usize| number(b, at, 8);
    // Signed ends at 10 times the rank less 200; intervals of seven, ten apart.
    vec![
        broken(
            "interval-last",
            Base::Intervals,
            "The last interval ends before its start.",
            end(7, move |b, at| key(b, at) & !0xFFFF_FFFF | 699),
        ),
        broken(
            "interval-touch",
            Base::Intervals,
            "An interval ends at the start of the next one.",
            end(2, move |b, at| key(b, at) & !0xFFFF_FFFF | 300),
        ),
        broken(
            "interval-i64",
            Base::Valid("intervals-i64"),
            "A signed interval ends before its start.",
            end(3, |_, _| (-171i64).cast_unsigned()),
        ),
        broken(
            "interval-i64-over",
            Base::Valid("intervals-i64"),
            "A signed interval ends behind the start of the next one.",
            end(3, |_, _| 5),
        ),
        broken(
            "interval-i32",
            Base::Valid("intervals-i32"),
            "A signed interval of 4 bytes ends at the start of the next one.",
            end(3, |_, _| (-160i32).cast_unsigned().into()),
        ),
        broken(
            "interval-f64",
            Base::Valid("intervals-f64"),
            "An interval of numbers with a point ends before its start.",
            end(3, |_, _| (-17.5f64).to_bits()),
        ),
        broken(
            "interval-f64-over",
            Base::Valid("intervals-f64"),
            "An interval of numbers with a point ends at the start of the next one.",
            end(3, |_, _| (-16.0f64).to_bits()),
        ),
        broken(
            "interval-u128",
            Base::Valid("intervals-u128"),
            "An interval of keys of 16 bytes ends behind the start of the next one.",
            Box::new(edit(|b| {
                let there = header(b).values.expect("values");
                let at = there.data_offset() as usize + 16 * 3;
                b[at] = 0xFF;
            })),
        ),
        broken(
            "interval-u128-early",
            Base::Valid("intervals-u128"),
            "An interval of keys of 16 bytes ends before its start.",
            Box::new(edit(|b| {
                let there = header(b).values.expect("values");
                let at = there.data_offset() as usize + 16 * 3;
                b[at..at + 16].fill(0);
            })),
        ),
        broken(
            "interval-code",
            Base::Valid("intervals-codes"),
            "An interval has the value of another one.",
            Box::new(edit(|b| {
                let there = header(b).codes.expect("codes");
                let at = there.data_offset() as usize;
                b.swap(at + 3, at + 5);
            })),
        ),
    ]
}
