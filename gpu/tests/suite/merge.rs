//! Joins and set operations in one pass against loops over both inputs: all operations and forms, tile
//! edges, keys that occur more than once on either side and on both, ends of keys, empty sides.

#![allow(dead_code, reason = "each test program uses its part")]

use crate::suite::mix;
use pleach_gpu::relation::{Column, Form, Joined, Operation, Rule, Sorted, merge};
use pleach_gpu::{DeviceBuffer, Gpu, GpuError, Stream};

/// A result: key, ranks of the left and of the right tuple.
type Row = (u128, Option<u64>, Option<u64>);

const OPERATIONS: [Operation; 13] = [
    Operation::Union(Rule::Set),
    Operation::Union(Rule::Multiset),
    Operation::Intersection(Rule::Set),
    Operation::Intersection(Rule::Multiset),
    Operation::Difference(Rule::Set),
    Operation::Difference(Rule::Multiset),
    Operation::Concatenation,
    Operation::Semi,
    Operation::Anti,
    Operation::Inner,
    Operation::Left,
    Operation::Right,
    Operation::Full,
];

/// Expected answer of an operation, key by key.
fn wanted(operation: Operation, left: &[u128], right: &[u128]) -> Vec<Row> {
    let run = |keys: &[u128], key: u128| {
        let from = keys.partition_point(|&other| other < key) as u64;
        from..keys.partition_point(|&other| other <= key) as u64
    };
    let mut keys: Vec<u128> = left.iter().chain(right).copied().collect();
    keys.sort_unstable();
    keys.dedup();
    let mut rows = Vec::new();
    for key in keys {
        let (l, r) = (run(left, key), run(right, key));
        let (m, n) = (l.end - l.start, r.end - r.start);
        let lefts = |count: u64| l.clone().take(count as usize).map(move |rank| (key, Some(rank), None));
        let mut push = |row: Row| rows.push(row);
        match operation {
            Operation::Union(Rule::Set) if m > 0 => lefts(1).for_each(push),
            Operation::Union(Rule::Set) => push((key, None, Some(r.start))),
            Operation::Union(Rule::Multiset) => {
                lefts(m).for_each(&mut push);
                r.clone().skip(m as usize).for_each(|rank| push((key, None, Some(rank))));
            }
            Operation::Intersection(Rule::Set) => lefts(m.min(n).min(1)).for_each(push),
            Operation::Intersection(Rule::Multiset) => lefts(m.min(n)).for_each(push),
            Operation::Difference(Rule::Set) => lefts(if n == 0 { m.min(1) } else { 0 }).for_each(push),
            Operation::Difference(Rule::Multiset) => {
                l.clone().skip(n as usize).for_each(|rank| push((key, Some(rank), None)));
            }
            Operation::Concatenation => {
                lefts(m).for_each(&mut push);
                r.clone().for_each(|rank| push((key, None, Some(rank))));
            }
            Operation::Semi => lefts(if n > 0 { m } else { 0 }).for_each(push),
            Operation::Anti => lefts(if n > 0 { 0 } else { m }).for_each(push),
            Operation::Inner | Operation::Left | Operation::Right | Operation::Full => {
                for left in l.clone() {
                    r.clone().for_each(|right| push((key, Some(left), Some(right))));
                }
                if n == 0 && matches!(operation, Operation::Left | Operation::Full) {
                    lefts(m).for_each(&mut push);
                }
                if m == 0 && matches!(operation, Operation::Right | Operation::Full) {
                    r.clone().for_each(|right| push((key, None, Some(right))));
                }
            }
        }
    }
    rows
}

fn bytes_of(words: impl Iterator<Item = u128>, width: u8) -> Vec<u8> {
    words.flat_map(|word| word.to_le_bytes().into_iter().take(width.into())).collect()
}

fn words_of(stream: &Stream, buffer: &DeviceBuffer, width: u8, count: u64) -> Vec<u128> {
    let mut bytes = vec![0; count as usize * usize::from(width)];
    buffer.part(0, bytes.len() as u64).copy_to_host(stream, &mut bytes).expect("copied");
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, &byte| all << 8 | u128::from(byte));
    bytes.chunks_exact(width.into()).map(word).collect()
}

/// Value of a tuple.
fn value_of(side: u64, rank: u64) -> u128 {
    u128::from(side << 30 | (rank + 1))
}

fn sorted(stream: &Stream, keys: &[u128], key_bytes: u8, side: u64, value_bytes: u8) -> Sorted {
    let values = bytes_of((0..keys.len() as u64).map(|rank| value_of(side, rank)), value_bytes);
    let values = (value_bytes > 0).then_some((&values[..], value_bytes));
    Sorted::from_host(stream, (&bytes_of(keys.iter().copied(), key_bytes), key_bytes), values).expect("fits")
}

fn check(stream: &Stream, (left, right): (&[u128], &[u128]), key_bytes: u8, widths: [u8; 2], name: &str) {
    let sides =
        [sorted(stream, left, key_bytes, 1, widths[0]), sorted(stream, right, key_bytes, 2, widths[1])];
    for operation in OPERATIONS {
        let is_pairs =
            matches!(operation, Operation::Inner | Operation::Left | Operation::Right | Operation::Full);
        let of_both = matches!(operation, Operation::Union(_) | Operation::Concatenation);
        if of_both && widths[0] != widths[1] {
            let refused = merge(stream, operation, (&sides[0], &sides[1]), Form::Values);
            assert!(matches!(refused, Err(GpuError::Operator { .. })), "{refused:?}");
            continue;
        }
        let wanted = wanted(operation, left, right);
        let what = format!("{operation:?} of {name}, keys of {key_bytes}, values of {widths:?}");
        let joined = merge(stream, operation, (&sides[0], &sides[1]), Form::Values).expect("answers");
        assert_eq!(joined.tuples, wanted.len() as u64, "{what}");
        let keys = words_of(stream, joined.keys.as_ref().expect("keys"), key_bytes, joined.tuples);
        assert!(keys.iter().eq(wanted.iter().map(|row| &row.0)), "{what}");
        let value = |side: u64, rank: Option<u64>| rank.map_or(0, |rank| value_of(side, rank));
        let columns = wanted.iter().map(|row| (value(1, row.1), value(2, row.2)));
        if is_pairs {
            check_column(stream, &joined, 0, columns.clone().map(|column| column.0), &what);
            check_column(stream, &joined, 1, columns.map(|column| column.1), &what);
        } else {
            let either = columns.map(|(left, right)| if left != 0 { left } else { right });
            check_column(stream, &joined, 0, either, &what);
        }
        if let Some(of) = &joined.sides {
            let found = words_of(stream, of, 1, joined.tuples);
            let sides =
                wanted.iter().map(|row| u128::from(row.1.is_some()) | u128::from(row.2.is_some()) << 1);
            assert!(found.into_iter().eq(sides), "{what}");
        }
        assert_eq!(joined.sides.is_some(), is_pairs && operation != Operation::Inner, "{what}");
        if is_pairs {
            let ranks = merge(stream, operation, (&sides[0], &sides[1]), Form::Ranks).expect("answers");
            let rank = |rank: Option<u64>| u128::from(rank.unwrap_or(u64::MAX));
            check_column(stream, &ranks, 0, wanted.iter().map(|row| rank(row.1)), &what);
            check_column(stream, &ranks, 1, wanted.iter().map(|row| rank(row.2)), &what);
        }
    }
}

fn check_column(
    stream: &Stream,
    joined: &Joined,
    column: usize,
    wanted: impl Iterator<Item = u128>,
    what: &str,
) {
    let Some(Column { buffer, bytes }) = &joined.columns[column] else { return };
    let found = words_of(stream, buffer, *bytes, joined.tuples);
    let wanted: Vec<u128> = wanted.collect();
    let first = found.iter().zip(&wanted).position(|(found, wanted)| found != wanted);
    assert_eq!((found.len(), first), (wanted.len(), None), "column {column}: {what}");
}

/// Keys that rise by up to twice `gap`, so that a step of 0 makes equal ones.
fn rising(count: u64, seed: u64, gap: u64) -> Vec<u128> {
    let mut key = 0;
    (0..count)
        .map(|i| {
            key += u128::from(mix(seed + i) % (2 * gap + 1));
            key
        })
        .collect()
}

/// Small inputs of all kinds, and some of several tiles.
pub fn all(gpu: &Gpu, tile: u64) {
    let stream = Stream::new(gpu).expect("a stream");
    let even = |count: u64, step: u128, from: u128| -> Vec<u128> {
        (0..u128::from(count)).map(|i| from + i * step).collect()
    };
    let most = |key_bytes: u8| u128::MAX >> (128 - 8 * u32::from(key_bytes));
    for (key_bytes, widths) in [(4, [4, 4]), (8, [4, 8]), (16, [0, 4]), (8, [0, 0])] {
        let end = most(key_bytes);
        let small: [(&str, Vec<u128>, Vec<u128>); 7] = [
            ("nothing", vec![], vec![]),
            ("a key", vec![5], vec![5]),
            ("nothing on the left", vec![], even(70, 2, 0)),
            ("nothing on the right", even(70, 2, 0), vec![]),
            ("ends", vec![0, 0, 1, end - 1, end, end], vec![0, 2, end, end, end]),
            ("all equal", vec![7; 60], vec![7; 35]),
            ("equals", rising(300, 1, 1), rising(280, 9, 1)),
        ];
        for (name, left, right) in &small {
            check(&stream, (left, right), key_bytes, widths, name);
        }
    }
    // Several tiles: unique keys inside go the fast way.
    check(&stream, (&rising_unique(tile + 9, 1), &rising_unique(tile + 700, 7)), 4, [4, 4], "unique");
    check(&stream, (&even(tile, 1, 0), &even(tile, 1, 0)), 4, [4, 0], "aligned");
    check(&stream, (&rising_unique(tile, 3), &rising(tile, 5, 1)), 8, [8, 4], "equals on the right");
    check(&stream, (&rising(tile, 3, 2), &rising_unique(tile, 5)), 8, [4, 4], "equals on the left");
    check(&stream, (&rising(2 * tile, 3, 1), &rising(150, 5, tile)), 4, [4, 4], "equals, few on the right");
    let mut run = even(tile / 2, 1, 0);
    run.extend(vec![1 << 20; tile as usize + 300]);
    check(
        &stream,
        (&run, &[vec![3, 1 << 20, 1 << 20], even(9, 1, 1 << 21)].concat()),
        4,
        [4, 4],
        "a long run",
    );
}

/// Keys that rise by one to three.
fn rising_unique(count: u64, seed: u64) -> Vec<u128> {
    rising(count, seed, 1).into_iter().zip(0..).map(|(key, i)| key + i).collect()
}

/// Larger ones, on a device.
pub fn many(gpu: &Gpu, count: u64) {
    let stream = Stream::new(gpu).expect("a stream");
    for key_bytes in [4, 8, 16] {
        check(&stream, (&rising_unique(count, 1), &rising_unique(count, 7)), key_bytes, [4, 4], "many");
        check(&stream, (&rising(count, 1, 2), &rising(count, 7, 2)), key_bytes, [8, 4], "many equals");
    }
}
