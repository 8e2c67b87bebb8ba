//! More valid files, which are made when they are wanted: what changes of a reader have shown to be missing.

use super::cells::{pairs, unsigned};
use crate::plan::Plan;
use crate::word::Cell;
use pleach_format::{KeyType, ValueType};
use pleach_kit::generate::mix;

pub(super) fn plans() -> Vec<Plan> {
    let mut all = numbers();
    all.extend(short_columns());
    all.extend(byte_keys());
    all.extend(intervals());
    all.into_iter().map(Plan::more).collect()
}

fn numbers() -> Vec<Plan> {
    let wide = |at: u64| {
        // Neighbours differ in one quarter, which is that of their line, of three words.
        let part = (at / 3 % 4) as u32;
        (u128::from(at / 3) << 120) | (u128::from(at % 3 + 1) << (32 * part))
    };
    let crowded = |at: u64| match at % 3 {
        0 => mix(at) >> 32,
        1 => (3 << 28) + at,
        _ => (9 << 26) + ((at * at) << 2),
    };
    let far = |at: u64| if at < 290 { at * 3 } else { (1 << 62) + at };
    let blob = |at: u64| Cell::Bytes((0..at * 457 % 9001).map(|byte| mix(at * 7919 + byte) as u8).collect());
    vec![
        Plan::new(
            "float-zero",
            (KeyType::F64, ValueType::U32),
            (0..41i32)
                .map(|at| (Cell::float(f64::from(at) * 1.5 - 30.0), unsigned(at.cast_unsigned())))
                .collect(),
            "Numbers with a point on both sides of zero, in whole words.",
        )
        .layout("lines,wide"),
        Plan::new(
            "wide-unique",
            (KeyType::U128, ValueType::U32),
            (0..60).map(|at| (unsigned(wide(at)), unsigned(at))).collect(),
            "Unique keys of 16 bytes, three in a line, whose neighbours differ in one quarter.",
        )
        .layout("lines,wide")
        .unique(),
        Plan::new(
            "wide-many",
            (KeyType::U128, ValueType::U32),
            (0..60).map(|at| (unsigned(wide(at)), unsigned(at))).collect(),
            "Keys of 16 bytes that may be equal, and are not.",
        )
        .layout("lines,wide"),
        Plan::new(
            "wide-equal",
            (KeyType::U128, ValueType::U32),
            (0..60u32).map(|at| (unsigned(5u128 << 99), unsigned(at))).collect(),
            "Equal keys of 16 bytes on both sides of every border.",
        )
        .layout("lines,spine,wide"),
        super::sections::spine_between(),
        Plan::new(
            "spine-top-inexact",
            (KeyType::U64, ValueType::U32),
            pairs(300, far, |at| at),
            "Keys near to each other and a few far away: the root is inexact, and lines below it are not.",
        )
        .layout("lines,spine,wide"),
        Plan::new(
            "grid-nested-32",
            (KeyType::U32, ValueType::U32),
            pairs(600, crowded, |at| at),
            "A grid of words of 4 bytes whose segments hold segments.",
        )
        .layout("lines,grid"),
        super::sections::root_marks(),
        Plan::new(
            "grid-usual-fewer",
            (KeyType::U64, ValueType::U64),
            pairs(1624, |at| if at < 1600 { mix(at) } else { (7 << 60) + at }, |at| at),
            "A grid most of whose borders are found in fewer steps than all.",
        )
        .layout("lines,grid,wide"),
        Plan::new(
            "spine-single",
            (KeyType::U64, ValueType::U64),
            pairs(228, |at| mix(at) >> 8, |at| at),
            "A spine whose last line has a single child, and so no separator.",
        )
        .layout("lines,spine,wide"),
        Plan::new(
            "value-blocks",
            (KeyType::U32, ValueType::Bytes),
            (0..12).map(|at| (unsigned(at), blob(at))).collect(),
            "Values that begin in one block and end in another, or in the one behind it.",
        )
        .layout("lines,plain"),
        Plan::new(
            "value-blocks-codes",
            (KeyType::U32, ValueType::Bytes),
            (0..12).map(|at| (unsigned(at), blob(at % 5))).collect(),
            "Values over several blocks, stored once.",
        )
        .layout("lines,dictionary"),
    ]
}

fn short_columns() -> Vec<Plan> {
    let of = |name, key_type, about, key: &dyn Fn(u32) -> Cell| {
        let tuples = (0..20).map(|at| (key(at), unsigned(at))).collect();
        Plan::new(name, (key_type, ValueType::U32), tuples, about).layout("lines,columns")
    };
    let number = |at: u32| i64::from(at) * 77 - 700;
    vec![
        of("columns-short", KeyType::U64, "Short words beside a column of keys.", &|at| {
            unsigned((1u64 << 40) + u64::from(at) * 5)
        }),
        of("columns-short-i64", KeyType::I64, "Short words of signed keys beside their column.", &|at| {
            Cell::Signed(number(at))
        }),
        of(
            "columns-short-float",
            KeyType::F64,
            "Short words of numbers with a point beside their column.",
            &|at| Cell::float(number(at) as f64),
        ),
        of(
            "columns-short-16",
            KeyType::U128,
            "Short words of keys of 16 bytes beside their column.",
            &|at| Cell::Unsigned((5u128 << 100) | (u128::from(at) * 9)),
        ),
        Plan::new(
            "columns-keys",
            (KeyType::U64, ValueType::None),
            (0..20).map(|at| (unsigned(mix(at)), Cell::None)).collect(),
            "A column of keys, and no values.",
        )
        .layout("lines,columns"),
        of("columns-i64", KeyType::I64, "Signed keys beside their column.", &|at| {
            Cell::Signed(mix(at.into()).cast_signed())
        })
        .layout("lines,columns,wide"),
    ]
}

fn byte_keys() -> Vec<Plan> {
    let long =
        |at: u64| [mix(at), mix(at + 1000), mix(at + 2000)].map(|number| format!("{number:020}")).concat();
    let of = |name, about, key: &dyn Fn(u64) -> String| {
        let tuples = (0..20u32).map(|at| (Cell::from(&*key(at.into())), unsigned(at))).collect();
        Plan::new(name, (KeyType::Bytes, ValueType::U32), tuples, about).layout("lines,columns")
    };
    let near = |at: u64| match at {
        0 => "!".repeat(60),
        1..9 => format!("{}{at}", "0".repeat(59)),
        _ => long(at),
    };
    vec![
        of("keys-wide", "Long keys in a column, of which some have one word.", &near),
        Plan::new(
            "keys-full",
            (KeyType::Bytes, ValueType::U32),
            (0..21u32).map(|at| (Cell::from(&*long(at.into())), unsigned(at))).collect(),
            "Long keys in a column, in lines that are all full.",
        )
        .layout("lines,columns"),
        Plan::new(
            "text-many",
            (KeyType::Utf8, ValueType::U32),
            (0..4000u32).map(|at| (Cell::Bytes(super::url(at.into())), unsigned(at))).collect(),
            "Keys by page that fill more than 64 KiB.",
        )
        .layout("lines"),
        Plan::new(
            "text-equal",
            (KeyType::Utf8, ValueType::U32),
            (0..240u32).map(|at| (Cell::Bytes(super::url((at / 40).into())), unsigned(at))).collect(),
            "Keys by page, each of which fills some pages.",
        )
        .layout("lines"),
        of("keys-unique", "Long keys in a column, each once, as the superblock says.", &long).unique(),
        of("keys-pair", "Long keys in a column, of which two in the middle are equal.", &|at| {
            let number = if at == 5 { 4 } else { at };
            format!("{number:02}{}", long(number))
        }),
        of("keys-equal", "Long keys in a column, each three times.", &|at| long(at / 3)),
        Plan::new(
            "record-mask",
            (KeyType::Bytes, ValueType::U32),
            (0..9u32).map(|at| (Cell::from(&*format!("k{at}")), unsigned(at))).collect(),
            "Byte keys with records as values.",
        )
        .layout("lines")
        .logical("", "record<a: u32>"),
    ]
}

fn intervals() -> Vec<Plan> {
    let start = |at: i64| at * 10 - 200;
    let of = |name, types, kind: &str, about, tuple: &dyn Fn(i64) -> (Cell, Cell)| {
        Plan::new(name, types, (0..30).map(tuple).collect(), about)
            .layout("lines")
            .logical("", &format!("record<last: {kind}>"))
            .intervals()
    };
    let named = |at: u64| {
        let name = ["", "a", "bc"][at as usize % 3];
        let value =
            [&(at * 1000 + 400).to_le_bytes()[..], &(name.len() as u32).to_le_bytes(), name.as_bytes()];
        (unsigned(at * 1000), Cell::Bytes(value.concat()))
    };
    vec![
        of(
            "intervals-i32",
            (KeyType::I32, ValueType::U32),
            "i32",
            "Intervals of signed keys of 4 bytes.",
            &|at| (Cell::Signed(start(at)), unsigned((start(at) as i32 + 6).cast_unsigned())),
        ),
        of("intervals-i64", (KeyType::I64, ValueType::U64), "i64", "Intervals of signed keys.", &|at| {
            (Cell::Signed(start(at)), unsigned((start(at) + 6).cast_unsigned()))
        }),
        of("intervals-u64", (KeyType::U64, ValueType::U64), "u64", "Intervals of keys of 8 bytes.", &|at| {
            let at = at.cast_unsigned();
            (unsigned(at << 40), unsigned((at << 40) + (1 << 39)))
        }),
        of(
            "intervals-f64",
            (KeyType::F64, ValueType::U64),
            "f64",
            "Intervals of numbers with a point.",
            &|at| {
                let at = start(at) as f64 / 10.0;
                (Cell::float(at), unsigned((at + 0.5).to_bits()))
            },
        ),
        of(
            "intervals-u128",
            (KeyType::U128, ValueType::Fixed(16)),
            "bytes16",
            "Intervals of keys of 16 bytes.",
            &|at| {
                let at = u128::from(at.cast_unsigned()) << 90;
                (unsigned(at), Cell::Bytes((at + (1 << 89)).to_be_bytes().to_vec()))
            },
        ),
        Plan::new(
            "intervals-codes",
            (KeyType::U64, ValueType::Bytes),
            (0..30).map(named).collect(),
            "Intervals whose values are stored once.",
        )
        .layout("lines,dictionary")
        .logical("", "record<last: u64, name: utf8>")
        .intervals(),
    ]
}
