//! Files with every optional section of numbers.

use super::cells::{pairs, unsigned};
use crate::plan::Plan;
use crate::word::Cell;
use pleach_format::classic::section::{load, store};
use pleach_format::meta::Meta;
use pleach_format::section::Tag;
use pleach_format::{KeyType, ValueType};
use pleach_kit::generate::mix;
use pleach_kit::mutate::{content, contents, header, number, put, reseal};
use pleach_kit::naive;

const WIDE: (KeyType, ValueType) = (KeyType::U64, ValueType::U32);

pub(super) fn plans() -> Vec<Plan> {
    let mut all = grids();
    all.extend(columns());
    all.extend(trees());
    all
}

/// Keys in a few crowds, far from each other.
fn crowded(at: u64) -> u64 {
    match at % 3 {
        0 => mix(at),
        1 => (3 << 60) + at,
        _ => (9 << 58) + ((at * at) << 8),
    }
}

/// Plans a file whose grid has marks in its first segment, and an empty unit.
pub(super) fn root_marks() -> Plan {
    let tuples = pairs(40, mix, |at| at);
    let about = "A grid of ten lines: the first segment has all marks.";
    Plan::new("grid-root-marks", (KeyType::U64, ValueType::U64), tuples.clone(), about)
        .layout("lines,spine,wide")
        .change(second(&tuples, naive::Grid::Always))
}

/// Plans a spine with a separator that is above the key to its left, and still below that to its right.
pub(super) fn spine_between() -> Plan {
    let tuples = pairs(420, crowded, |at| at);
    let other = second(&tuples, naive::Grid::Always);
    Plan::new(
        "spine-between",
        (KeyType::U64, ValueType::U64),
        tuples,
        "A separator as it is that is none of the keys beside it.",
    )
    .layout("lines,spine,wide")
    .change(move |bytes| {
        let mut bytes = other(bytes);
        let there = header(&bytes);
        let level = there.spine.levels[0];
        assert_eq!((level.fanout, there.spine.child_lines), (9, 1), "separators as they are");
        let start = (there.spine_offset + level.offset) as usize;
        let lines = content(&bytes, Tag::LINE).start;
        let is_far = |slot: &usize| {
            number(&bytes, start + 8 * slot, 8) + 1 < number(&bytes, lines + 64 * (slot + 1), 8)
        };
        let at = start + 8 * (0..8).find(is_far).expect("a gap");
        let now = number(&bytes, at, 8);
        put(&mut bytes, at, 8, now + 1);
        reseal(&mut bytes);
        bytes
    })
}

/// Replaces a file of `u64` to `u64` by that of the second builder.
fn second(tuples: &[(Cell, Cell)], with: naive::Grid) -> impl Fn(Vec<u8>) -> Vec<u8> + 'static {
    let mut tuples: Vec<(u64, u64)> = tuples
        .iter()
        .map(|tuple| match tuple {
            (Cell::Unsigned(key), Cell::Unsigned(value)) => (*key as u64, *value as u64),
            other => unreachable!("{other:?}"),
        })
        .collect();
    tuples.sort_by_key(|tuple| tuple.0);
    let meta = Meta { layout: "lines,spine,wide".to_owned(), ..Meta::default() };
    move |_| naive::build_with(&tuples, &meta, false, with)
}

fn grids() -> Vec<Plan> {
    let both = (KeyType::U64, ValueType::U64);
    let crowds = pairs(420, crowded, |at| at);
    vec![
        Plan::new(
            "grid",
            both,
            pairs(300, mix, |at| at),
            "A grid, and a sparse spine above groups of 16 lines.",
        )
        .layout("lines,spine,grid,wide"),
        Plan::new(
            "grid-32",
            (KeyType::U32, ValueType::U32),
            pairs(600, |at| mix(at) >> 32, |at| at),
            "A grid of words of 4 bytes.",
        )
        .layout("lines,spine,grid"),
        Plan::new(
            "grid-nested",
            both,
            crowds.clone(),
            "A grid whose segments hold segments, beside a dense spine.",
        )
        .layout("lines,spine,wide")
        .change(second(&crowds, naive::Grid::Always)),
        Plan::new("grid-only", both, pairs(300, mix, |at| at), "A grid without a spine.")
            .layout("lines,grid,wide"),
        Plan::new("spine-groups", both, crowds.clone(), "A spine above groups of 4 lines, without a grid.")
            .layout("lines,spine,wide")
            .change(second(&crowds, naive::Grid::Groups)),
    ]
}

fn columns() -> Vec<Plan> {
    let float = |at: u64| Cell::float((mix(at) >> 40) as f64 / 1024.0 - 5000.0);
    let long = |at: u64| u128::from(mix(at)) << 64 | u128::from(at);
    vec![
        Plan::new(
            "columns",
            (KeyType::F64, ValueType::U32),
            (0..40).map(|at| (float(at), unsigned(at))).collect(),
            "Columns of keys and values, which may be skipped.",
        )
        .layout("lines,columns"),
        Plan::new(
            "columns-16",
            (KeyType::U128, ValueType::U64),
            (0..40).map(|at| (unsigned(long(at)), unsigned(at))).collect(),
            "A column of keys of 16 bytes, the most significant one first.",
        )
        .layout("lines,columns"),
        Plan::new(
            "packed",
            (KeyType::U64, ValueType::U32),
            pairs(60, |at| (7 << 50) + at * at, |at| at),
            "A compressed column of keys.",
        )
        .layout("lines,packed,wide"),
        Plan::new(
            "packed-pages",
            (KeyType::I64, ValueType::None),
            (0..1100).map(|at| (Cell::Signed((mix(at) >> 44).cast_signed() - 500_000), Cell::None)).collect(),
            "A compressed column of two pages of short words.",
        )
        .layout("lines,packed"),
    ]
}

/// Sets the flag that pages are aligned, which changes nothing else in a small tree.
fn aligned(bytes: Vec<u8>) -> Vec<u8> {
    let there = header(&bytes);
    let mut all = contents(&bytes);
    for (_, _, _, _, parameters) in all.iter_mut().filter(|content| content.0 == Tag::FAST) {
        let (mut geometry, form) = load(parameters, there.tuples).expect("a tree");
        geometry.aligned = true;
        *parameters = store(&geometry, form);
    }
    naive::assemble(there.superblock, all)
}

fn trees() -> Vec<Plan> {
    let near = |at: u64| match at {
        0..60 => at * 3,
        60..110 => (1 << 40) | (mix(at) >> 44),
        _ => (1 << 63) | (mix(at) >> 9),
    };
    let tuples = move |count| pairs(count, near, |at| at);
    let wide = |at: u64| match at {
        0..40 => u128::from(mix(at)) << 63,
        _ => u128::MAX << 96 | u128::from(mix(at)),
    };
    let sixteen: Vec<(Cell, Cell)> = (0..100).map(|at| (unsigned(wide(at)), Cell::None)).collect();
    let small = pairs(120, |at| mix(at) >> 33, |at| at);
    let fast =
        |name: &str, layout: &str, about: &str| Plan::new(name, WIDE, tuples(150), about).layout(layout);
    vec![
        fast("fast", "lines,wide,fast", "A FAST tree of full keys, padded."),
        fast(
            "fast-packed",
            "lines,wide,fast:full:packed:dk=2:dl=3:dp=5",
            "A FAST tree of full keys in pages of five levels, without gaps.",
        ),
        fast(
            "fast-pages",
            "lines,wide,fast:full:padded:dk=1:dl=2:dp=4",
            "A FAST tree of full keys in small padded pages.",
        ),
        fast(
            "fast-delta",
            "lines,wide,fast:delta:padded:dp=6",
            "A FAST tree of distances in pages of six levels, with words of several widths.",
        ),
        fast(
            "fast-partial",
            "lines,wide,fast:partial:padded:dp=6",
            "A FAST tree of partial keys: the tuple lines decide.",
        ),
        fast(
            "fast-auto",
            "lines,wide,fast:auto:padded:dp=6",
            "A FAST tree whose pages have distances or partial keys.",
        ),
        fast("fast-aligned", "lines,wide,fast", "A FAST tree whose pages are said to be aligned.")
            .change(aligned),
        Plan::new(
            "fast-16",
            (KeyType::U128, ValueType::None),
            sixteen,
            "A FAST tree of partial keys of 16 bytes.",
        )
        .layout("lines,wide,fast:partial:padded:dk=1:dl=1:dp=5"),
        Plan::new(
            "fast-4",
            (KeyType::U32, ValueType::U64),
            small.clone(),
            "A FAST tree of distances of words of 4 bytes.",
        )
        .layout("lines,fast:delta"),
        Plan::new(
            "fast-power",
            WIDE,
            pairs(64, mix, |at| at),
            "A FAST tree of a power of two of keys: the last one has no node.",
        )
        .layout("lines,wide,fast"),
        Plan::new("harmonia", WIDE, tuples(150), "Harmonia's B+tree of four levels, 69 percent full.")
            .layout("lines,wide,harmonia:8:69"),
        Plan::new("btree", WIDE, tuples(150), "The contiguous B+tree of order 4.")
            .layout("lines,wide,btree:4"),
        Plan::new(
            "structures",
            (KeyType::U32, ValueType::U32),
            pairs(560, |at| (mix(at) >> 36) * 2, |at| at),
            "Every search structure of numbers at once.",
        )
        .layout("lines,spine,grid,packed,fast:auto,harmonia:32:80,btree:16"),
        Plan::new("structures-empty", WIDE, Vec::new(), "Every search structure of a file without tuples.")
            .layout("lines,spine,grid,columns,packed,fast,harmonia,btree"),
    ]
}
