//! Every operator over files against the oracles of the slices, over all key types, with pieces so small that they
//! have borders everywhere; and files with a damaged byte.

use super::columns::append;
use super::cut::{Operator, Pieces};
use super::two::{Inputs, check_size};
use super::*;
use crate::error::RelationError;
use crate::expr::Point;
use crate::memory;
use crate::memory::tests::{Answers, RIGHT, join_oracle, pairs, set_oracle};
use crate::rules::{How, Reduction, SetOperation, SetRule};
use pleach::{Index, Key, KeyType, ValueType, Word};
use pleach_builder::{
    BuildOptions, Column, Observer, Silent, Strings, Values, build_bytes, build_strings_bytes,
};
use pleach_format::record::FieldValue;
use std::collections::BTreeMap;

/// A way from small numbers to keys of a type, in the same order, and to files of them.
struct Make {
    name: &'static str,
    key: fn(u64) -> Point,
    file: fn(&[u64], u64) -> Index,
}

fn index<K: Key>(keys: &[u64], from: u64, key: impl Fn(u64) -> K, options: &BuildOptions) -> Index {
    let tuples: Vec<(K, u64)> =
        keys.iter().enumerate().map(|(rank, &code)| (key(code), from + rank as u64)).collect();
    Index::from_bytes(build_bytes(&tuples, options).unwrap()).unwrap()
}

fn strings(kind: KeyType, keys: &[u64], from: u64, key: impl Fn(u64) -> Vec<u8>, columns: bool) -> Index {
    let tuples: Vec<(Vec<u8>, u64)> =
        keys.iter().enumerate().map(|(rank, &code)| (key(code), from + rank as u64)).collect();
    let options = BuildOptions { columns, ..BuildOptions::default() };
    Index::from_bytes(build_strings_bytes(kind, &tuples, &options).unwrap()).unwrap()
}

fn plain() -> BuildOptions {
    BuildOptions::default()
}

/// Strings of different lengths, with common beginnings.
fn text(code: u64) -> Vec<u8> {
    format!("{:020}{}", code, "x".repeat((code % 7) as usize * 9)).into_bytes()
}

fn signed(code: u64) -> i64 {
    code.wrapping_sub(1 << 63).cast_signed()
}

fn float(code: u64) -> f64 {
    (code % (1 << 40)) as f64 - 20.5
}

const MAKES: [Make; 8] = [
    Make {
        name: "u32",
        key: |code| Point::Word((code % (1 << 32)).into()),
        file: |keys, from| index(keys, from, |code| code as u32, &plain()),
    },
    Make {
        name: "u64",
        key: |code| Point::Word(code.into()),
        file: |keys, from| index(keys, from, |code| code, &plain()),
    },
    Make {
        name: "u128",
        key: |code| Point::Word(u128::from(code) << 50),
        file: |keys, from| {
            index(keys, from, |code| u128::from(code) << 50, &BuildOptions { columns: true, ..plain() })
        },
    },
    Make {
        name: "i64",
        key: |code| Point::Word(signed(code).encode().to_u128()),
        file: |keys, from| index(keys, from, signed, &plain()),
    },
    Make {
        name: "f64",
        key: |code| Point::Word(float(code).encode().to_u128()),
        file: |keys, from| index(keys, from, float, &plain()),
    },
    Make {
        name: "bytes9",
        key: |code| Point::Bytes([&[7], code.to_be_bytes().as_slice()].concat()),
        file: |keys, from| {
            let key = |code: u64| [&[7], code.to_be_bytes().as_slice()].concat();
            strings(KeyType::Fixed(9), keys, from, key, false)
        },
    },
    Make {
        name: "bytes",
        key: |code| Point::Bytes(text(code)),
        file: |keys, from| strings(KeyType::Bytes, keys, from, text, false),
    },
    Make {
        name: "utf8",
        key: |code| Point::Bytes(text(code)),
        file: |keys, from| strings(KeyType::Utf8, keys, from, text, true),
    },
];

/// Columns that all types can hold: their order is that of the numbers modulo 2^32.
fn narrowed(keys: &[u64]) -> Vec<u64> {
    let mut keys: Vec<u64> = keys.iter().map(|key| key % (1 << 32)).collect();
    keys.sort_unstable();
    keys
}

fn any_key(keys: &Column, at: usize) -> Point {
    match keys {
        Column::U32(words) => Point::Word(words[at].into()),
        Column::U64(words) => Point::Word(words[at].into()),
        Column::U128(words) => Point::Word(words[at]),
        Column::Bytes(strings) => Point::Bytes(strings.get(at).to_vec()),
        Column::None => unreachable!("keys are there"),
    }
}

fn words(column: &Column) -> Vec<u64> {
    match column {
        Column::U64(words) => words.clone(),
        _ => Vec::new(),
    }
}

fn check_keys(chunk: &Chunk, wanted: &Answers, make: &Make, at: &str) {
    assert_eq!(chunk.len(), wanted.len(), "tuples of {at}");
    for (row, answer) in wanted.iter().enumerate() {
        assert_eq!(any_key(&chunk.keys, row), (make.key)(answer.0), "key {row} of {at}");
    }
}

fn stream_options() -> [StreamOptions<'static>; 3] {
    [3, 64, 4096].map(|piece_tuples| StreamOptions { piece_tuples, ..StreamOptions::default() })
}

#[test]
fn operators_of_two_files_answer_what_the_rules_say() {
    for (m, n) in [(0, 3), (3, 0), (70, 64), (1, 90)] {
        for (kind, (a, b)) in pairs(m, n).into_iter().enumerate() {
            let (a, b) = (narrowed(&a), narrowed(&b));
            // Each kind of keys by two of the types.
            for make in MAKES.iter().skip(kind % 4).step_by(4) {
                let (left_file, right_file) = ((make.file)(&a, 1), (make.file)(&b, RIGHT));
                let (left, right) = (Relation::from_index(&left_file), Relation::from_index(&right_file));
                for options in stream_options() {
                    let at = format!("kind {kind} of {}, {m} and {n}, {options:?}", make.name);
                    for &operation in SetOperation::ALL {
                        for &rule in SetRule::ALL {
                            let wanted = set_oracle(operation, rule, &a, &b);
                            let at = format!("{operation} {rule}, {at}");
                            let run = || set(operation, rule, left, right, options).unwrap();
                            let found = run().collect().unwrap();
                            check_keys(&found, &wanted, make, &at);
                            let value = |answer: &(u64, Option<u64>, Option<u64>)| {
                                answer.1.map_or_else(|| RIGHT + answer.2.unwrap_or(0), |i| 1 + i)
                            };
                            let values: Vec<u64> = wanted.iter().map(value).collect();
                            assert_eq!(words(&found.values), values, "values of {at}");
                            assert_eq!(run().count().unwrap(), wanted.len() as u64, "count of {at}");
                        }
                    }
                    for &how in How::ALL {
                        let wanted = join_oracle(how, &a, &b);
                        check_join(join(how, left, right, options).unwrap(), &wanted, make, how, &at);
                        let count = join(how, left, right, options).unwrap().count().unwrap();
                        assert_eq!(count, wanted.len() as u64, "count of {how} join, {at}");
                    }
                }
            }
        }
    }
}

fn check_join(answer: Answer<'_>, wanted: &Answers, make: &Make, how: How, at: &str) {
    let at = format!("{how} join, {at}");
    let found = answer.collect().unwrap();
    check_keys(&found, wanted, make, &at);
    let lefts: Vec<u64> = wanted.iter().map(|answer| answer.1.map_or(0, |i| 1 + i)).collect();
    assert_eq!(words(&found.values), lefts, "left values of {at}");
    if !matches!(how, How::Semi | How::Anti) {
        let rights: Vec<u64> = wanted.iter().map(|answer| answer.2.map_or(0, |j| RIGHT + j)).collect();
        assert_eq!(words(&found.right), rights, "right values of {at}");
    }
    if matches!(how, How::Left | How::Right | How::Full) {
        let side = |answer: &(u64, Option<u64>, Option<u64>)| {
            u8::from(answer.1.is_some()) | u8::from(answer.2.is_some()) << 1
        };
        assert_eq!(found.sides, wanted.iter().map(side).collect::<Vec<u8>>(), "sides of {at}");
    }
}

#[test]
fn products_and_many_answers_of_a_piece() {
    let (a, b): (Vec<u64>, Vec<u64>) = ((0..37).collect(), (0..29).map(|at| at / 9).collect());
    let (left, right) = (index(&a, 0, |key| key, &plain()), index(&b, RIGHT, |key| key, &plain()));
    let (left, right) = (Relation::from_index(&left), Relation::from_index(&right));
    for piece_tuples in [1, 10, 29, 30, 100, 5000] {
        let options = StreamOptions { piece_tuples, ..StreamOptions::default() };
        let found = product(left, right, options).unwrap().collect().unwrap();
        let (lefts, rights): (Vec<u64>, Vec<u64>) = (0..37 * 29).map(|at| (at / 29, RIGHT + at % 29)).unzip();
        assert_eq!((words(&found.values), words(&found.right)), (lefts, rights));
        assert_eq!(product(left, right, options).unwrap().count().unwrap(), 37 * 29);
    }
    // Pieces that hold whole keys with many more pairs than tuples.
    let (a, b): (Vec<u64>, Vec<u64>) =
        ((0..600).map(|at| at / 60).collect(), (0..500).map(|at| at / 50).collect());
    let (left, right) = (index(&a, 1, |key| key, &plain()), index(&b, RIGHT, |key| key, &plain()));
    let (left, right) = (Relation::from_index(&left), Relation::from_index(&right));
    let options = StreamOptions { piece_tuples: 1000, ..StreamOptions::default() };
    let wanted = join_oracle(How::Full, &a, &b);
    check_join(join(How::Full, left, right, options).unwrap(), &wanted, &MAKES[1], How::Full, "many pairs");
}

struct Odd;

impl Predicate for Odd {
    fn evaluate(&self, chunk: &Chunk, keep: &mut Bitmap) -> Result<(), RelationError> {
        words(&chunk.values).iter().enumerate().for_each(|(at, value)| keep.set(at, value & 1 == 1));
        Ok(())
    }
}

/// Keys turned round.
struct Turn;

impl Projection for Turn {
    fn schema(&self, input: &Schema) -> Result<Schema, RelationError> {
        Ok(Schema { is_sorted: false, ..input.clone() })
    }
    fn map(&self, chunk: &Chunk) -> Result<Chunk, RelationError> {
        let keys = Column::U64(words(&chunk.keys).iter().map(|key| !key).collect());
        Ok(Chunk { keys, ..chunk.clone() })
    }
}

#[test]
fn operators_of_one_file() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, (a, _)) in pairs(300, 1).into_iter().chain(pairs(9000, 1).into_iter().step_by(5)).enumerate() {
        let file = index(&a, 5, |key| key, &plain());
        let input = Relation::from_index(&file);
        let values: Vec<u64> = (5..5 + a.len() as u64).collect();
        for options in stream_options() {
            let odd = select(input, &Odd, options).unwrap().collect().unwrap();
            let kept: Vec<u64> = values.iter().copied().filter(|value| value & 1 == 1).collect();
            assert_eq!(words(&odd.values), kept, "kind {kind}");
            let mut groups: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
            a.iter().zip(&values).for_each(|(&key, &value)| groups.entry(key).or_default().push(value));
            for &operation in Reduction::ALL {
                let found = reduce(input, operation, options).unwrap().collect().unwrap();
                let one = |values: &Vec<u64>| match operation {
                    Reduction::Sum => values.iter().sum(),
                    Reduction::Min | Reduction::First => values[0],
                    Reduction::Max => values[values.len() - 1],
                    Reduction::Count => values.len() as u64,
                    // Both are exact in floats.
                    Reduction::Avg => (values.iter().sum::<u64>() as f64 / values.len() as f64).to_bits(),
                };
                let at = format!("{operation} of kind {kind}, {options:?}");
                assert_eq!(words(&found.keys), groups.keys().copied().collect::<Vec<u64>>(), "{at}");
                assert_eq!(words(&found.values), groups.values().map(one).collect::<Vec<u64>>(), "{at}");
            }
        }
        if kind == 1 {
            let path = folder.path().join("turned.pleach");
            let answer =
                project(input, &Turn, StreamOptions { piece_tuples: 50, ..StreamOptions::default() })
                    .unwrap();
            answer.to_index(&path, &BuildOptions::default(), &Silent).unwrap();
            let turned = Index::open(&path).unwrap();
            let view = turned.typed::<u64, u64>().unwrap();
            let mut wanted: Vec<(u64, u64)> =
                a.iter().zip(&values).map(|(&key, &value)| (!key, value)).collect();
            wanted.sort_by_key(|tuple| tuple.0);
            assert_eq!(view.ranks(0..300).map(Result::unwrap).collect::<Vec<_>>(), wanted);
        }
    }
}

#[test]
fn reductions_of_signed_numbers_and_floats() {
    let tuples = [(1u32, -5i64), (1, 3), (2, i64::MIN), (2, -1)];
    let file = Index::from_bytes(build_bytes(&tuples, &plain()).unwrap()).unwrap();
    let options = StreamOptions::default();
    let of = |operation| reduce(Relation::from_index(&file), operation, options).unwrap().collect();
    assert_eq!(words(&of(Reduction::Min).unwrap().values), [-5, i64::MIN].map(i64::cast_unsigned));
    assert_eq!(words(&of(Reduction::Max).unwrap().values), [3, -1].map(i64::cast_unsigned));
    let refused = of(Reduction::Sum).unwrap_err().to_string();
    assert!(refused.starts_with("sum overflows: key U32(2)"), "{refused}");
    let tuples = [(1u32, 0.5f32), (1, f32::NAN), (2, -0.0), (2, 0.0), (2, -3.0)];
    let file = Index::from_bytes(build_bytes(&tuples, &plain()).unwrap()).unwrap();
    let of = |operation| reduce(Relation::from_index(&file), operation, options).unwrap().collect().unwrap();
    assert_eq!(of(Reduction::Max).values, Column::U32(vec![f32::NAN.to_bits(), 0.0f32.to_bits()]));
    assert_eq!(of(Reduction::Min).values, Column::U32(vec![0.5f32.to_bits(), (-3.0f32).to_bits()]));
    assert_eq!(of(Reduction::Sum).values, Column::U64(vec![f64::NAN.to_bits(), (-3.0f64).to_bits()]));
}

#[test]
fn joins_become_files_of_records() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b): (Vec<u64>, Vec<u64>) = ((0..200).collect(), (100..300).map(|at| at / 2 * 2).collect());
    let (left, right) = (index(&a, 1, |key| key, &plain()), index(&b, RIGHT, |key| key, &plain()));
    let (left, right) = (Relation::from_index(&left), Relation::from_index(&right));
    for how in [How::Inner, How::Full] {
        // Over an index it would become its next generation.
        let path = folder.path().join(format!("{how}.pleach"));
        let answer =
            join(how, left, right, StreamOptions { piece_tuples: 64, ..StreamOptions::default() }).unwrap();
        answer.to_index(&path, &BuildOptions::default(), &Silent).unwrap();
        let file = Index::open(&path).unwrap();
        let wanted = join_oracle(how, &a, &b);
        assert_eq!(file.len(), wanted.len() as u64);
        // The same without a name.
        let answer = join(how, left, right, StreamOptions::default()).unwrap();
        let unnamed = answer.to_unnamed_index(folder.path(), &BuildOptions::default(), &Silent).unwrap();
        let unnamed = Index::options().open_file(&unnamed, folder.path()).unwrap();
        assert!(unnamed.as_bytes() == file.as_bytes() && unnamed.path() == folder.path());
        let column = file.value_column().unwrap();
        for (rank, (key, i, j)) in wanted.into_iter().enumerate() {
            let mut record = i.map_or(0, |i| 1 + i).to_le_bytes().to_vec();
            record.extend(j.map_or(0, |j| RIGHT + j).to_le_bytes());
            if how == How::Full {
                record.push(u8::from(i.is_some()) | u8::from(j.is_some()) << 1);
            }
            assert_eq!(column.get(rank as u64).unwrap().as_deref(), Some(record.as_slice()), "{how} {rank}");
            assert_eq!(file.tuple(rank as u64).unwrap().unwrap().0, pleach::Datum::U64(key));
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let words = index(&[1, 2], 0, |key| key, &plain());
    let narrow = index(&[1, 2], 0, |key| key as u32, &plain());
    let (left, right) = (Relation::from_index(&words), Relation::from_index(&narrow));
    let options = StreamOptions::default();
    let refused = join(How::Inner, left, right, options).map(|_| ()).unwrap_err().to_string();
    assert!(refused.starts_with("key types differ: bytes in memory holds u64 keys"), "{refused}");
    let other = Index::from_bytes(build_bytes(&[(1u64, 2u32)], &plain()).unwrap()).unwrap();
    let other = Relation::from_index(&other);
    let union = set(SetOperation::Union, SetRule::Set, left, other, options);
    let refused = union.map(|_| ()).unwrap_err().to_string();
    assert!(refused.starts_with("value types differ"), "{refused}");
    let keys = Column::U64(vec![1, 0]);
    let types = (KeyType::U64, ValueType::None);
    let refused = Relation::from_columns("mine", types, &keys, &Column::None).map(|_| ()).unwrap_err();
    assert!(refused.to_string().starts_with("not sorted: mine: the key of rank 1"), "{refused}");
    let keys = Column::U64(vec![1, 2]);
    let mine = Relation::from_columns("mine", types, &keys, &Column::None).unwrap();
    let refused = reduce(mine, Reduction::Sum, options).map(|_| ()).unwrap_err().to_string();
    assert_eq!(refused, "cannot compute the sum of none values: mine: use count or first");
    assert_eq!(join(How::Inner, left, mine, options).unwrap().count().unwrap(), 2);
}

struct Stop;

impl Observer for Stop {
    fn cancelled(&self) -> bool {
        true
    }
}

#[test]
fn whoever_watches_can_stop_it() {
    let file = index(&[1, 2], 0, |key| key, &plain());
    let input = Relation::from_index(&file);
    let answer = join(How::Inner, input, input, StreamOptions::default()).unwrap().watched(&Stop);
    assert!(matches!(answer.count(), Err(RelationError::Interrupted)));
}

#[test]
fn damage_is_an_error_and_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, target) = (folder.path().join("left.pleach"), folder.path().join("joined.pleach"));
    let keys: Vec<u64> = (0..3000).map(|at| if at < 2000 { at } else { 2000 }).collect();
    let whole = (MAKES[1].file)(&keys, 0);
    let texts = (MAKES[7].file)(&keys, 0);
    let options = StreamOptions { piece_tuples: 300, ..StreamOptions::default() };
    for (file, at) in [&whole, &texts].into_iter().flat_map(|file| (0..6).map(move |at| (file, at))) {
        let header = file.header();
        // A byte of a tuple in the first, a middle and the last block, and of the columns of texts.
        let (offset, length) = match header.keys.filter(|_| at >= 3) {
            Some(keys) => (keys.data_offset(), keys.shape.data_bytes),
            None => (header.lines_offset, header.lines * 64),
        };
        let mut bytes = file.as_bytes().to_vec();
        bytes[(offset + [0, length / 2, length - 1][at % 3]) as usize] ^= 0x10;
        std::fs::write(&path, bytes).unwrap();
        let damaged = Index::open(&path).unwrap();
        let (bad, good) = (Relation::from_index(&damaged), Relation::from_index(file));
        let message = |result: Result<u64, RelationError>| match result {
            Err(error @ RelationError::Damaged { .. }) => error.to_string(),
            other => panic!("damage {at} gives {other:?}"),
        };
        for (left, right) in [(bad, good), (good, bad)] {
            for &how in How::ALL {
                let text = message(join(how, left, right, options).unwrap().count());
                assert!(text.contains("left.pleach") && text.contains("section"), "{text}");
            }
            for &rule in SetRule::ALL {
                for &operation in SetOperation::ALL {
                    message(set(operation, rule, left, right, options).unwrap().count());
                }
            }
            let answer = join(How::Semi, left, right, options).unwrap();
            message(
                answer.to_index(&target, &BuildOptions::default(), &Silent).map(|summary| summary.tuples),
            );
            assert!(!target.exists());
        }
        message(reduce(bad, Reduction::Count, options).unwrap().count());
    }
}

fn strings_of<'a>(strings: impl IntoIterator<Item = &'a [u8]>) -> Column {
    let mut column = Strings::default();
    strings.into_iter().for_each(|string| column.push(string));
    Column::Bytes(column)
}

fn bytes_of(column: &Column) -> Vec<Vec<u8>> {
    match column {
        Column::Bytes(strings) => strings.iter().map(<[u8]>::to_vec).collect(),
        _ => unreachable!("byte strings"),
    }
}

#[test]
fn a_missing_part_is_as_wide_as_its_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("joined.pleach");
    let (a, b) = ([1u64, 2, 2, 9], [2u64, 3, 9, 9, 10]);
    let (left_keys, right_keys) = (Column::U64(a.to_vec()), Column::U64(b.to_vec()));
    for (value_type, bytes) in [
        (ValueType::Fixed(16), 16),
        (ValueType::Fixed(9), 9),
        (ValueType::Fixed(1), 1),
        (ValueType::Bytes, 0),
        (ValueType::Utf8, 0),
    ] {
        let value = |of: u8, rank: usize| vec![of + rank as u8; if bytes > 0 { bytes } else { rank }];
        let column = |of: u8, count: usize| {
            let values: Vec<Vec<u8>> = (0..count).map(|rank| value(of, rank)).collect();
            strings_of(values.iter().map(Vec::as_slice))
        };
        let (lefts, rights) = (column(b'a', a.len()), column(b'n', b.len()));
        let types = (KeyType::U64, value_type);
        let left = Relation::from_columns("left", types, &left_keys, &lefts).unwrap();
        let right = Relation::from_columns("right", types, &right_keys, &rights).unwrap();
        for &how in &[How::Inner, How::Left, How::Right, How::Full] {
            let wanted = join_oracle(how, &a, &b);
            for options in stream_options() {
                let at = format!("{how} join of {value_type}, {options:?}");
                let found = join(how, left, right, options).unwrap().collect().unwrap();
                let of = |rank: Option<u64>, from: u8| {
                    rank.map_or(vec![0; bytes], |rank| value(from, rank as usize))
                };
                let wanted_lefts: Vec<Vec<u8>> = wanted.iter().map(|answer| of(answer.1, b'a')).collect();
                let wanted_rights: Vec<Vec<u8>> = wanted.iter().map(|answer| of(answer.2, b'n')).collect();
                assert_eq!(bytes_of(&found.values), wanted_lefts, "{at}");
                assert_eq!(bytes_of(&found.right), wanted_rights, "{at}");
                // One side alone.
                let kept = |kept| join(how, left, right, options).unwrap().keep(kept).collect().unwrap();
                let (one, other) = (kept(Kept::Left), kept(Kept::Right));
                assert_eq!((&one.keys, bytes_of(&one.values)), (&found.keys, wanted_lefts), "left of {at}");
                assert_eq!(
                    (&other.keys, bytes_of(&other.values)),
                    (&found.keys, wanted_rights),
                    "right of {at}"
                );
                assert_eq!((one.right, other.right), (Column::None, Column::None), "{at}");
                assert!(one.sides.is_empty() && other.sides.is_empty(), "{at}");
            }
            let made = join(how, left, right, StreamOptions::default()).unwrap().to_index(
                &path,
                &BuildOptions::default(),
                &Silent,
            );
            assert_eq!(made.map(|made| made.tuples).ok(), Some(wanted.len() as u64), "{how}");
            // The record has what both sides have, and zeros or nothing where one is missing.
            let file = Index::open(&path).unwrap();
            let record = file.record().unwrap().expect("a record");
            for (rank, answer) in wanted.iter().enumerate() {
                let (_, packed) = file.tuple(rank as u64).unwrap().unwrap();
                let packed = packed.packed().into_owned();
                assert_eq!(record.check(&packed), Ok(()));
                let side = |rank: Option<u64>, from: u8| {
                    rank.map_or(vec![0; bytes], |rank| value(from, rank as usize))
                };
                assert_eq!(record.field_bytes(0, &packed), Some(&side(answer.1, b'a')[..]), "{how}");
                assert_eq!(record.field_bytes(1, &packed), Some(&side(answer.2, b'n')[..]), "{how}");
            }
        }
    }
}

#[test]
fn keys_alone_meet_values_of_any_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("joined.pleach");
    let keys = Column::U64(vec![1, 2, 4]);
    let alone =
        Relation::from_columns("alone", (KeyType::U64, ValueType::None), &keys, &Column::None).unwrap();
    let texts = strings_of([b"one".as_slice(), b"", b"four"]);
    let all = Relation::from_columns("all", (KeyType::U64, ValueType::Utf8), &keys, &texts).unwrap();
    for (left, right) in [(alone, all), (all, alone)] {
        let answer = join(How::Inner, left, right, StreamOptions::default()).unwrap();
        answer.to_index(&path, &BuildOptions::default(), &Silent).unwrap();
        let file = Index::open(&path).unwrap();
        let found: Vec<_> = (0..3).map(|rank| file.tuple(rank).unwrap().unwrap().1).collect();
        let wanted = [b"one".as_slice(), b"", b"four"].map(|text| pleach::Datum::Utf8(text.into()));
        assert_eq!(found, wanted);
    }
    // With `sides` they are fields of a record.
    let answer = join(How::Full, alone, all, StreamOptions::default()).unwrap();
    answer.to_index(&path, &BuildOptions::default(), &Silent).unwrap();
    let file = Index::open(&path).unwrap();
    let record = file.record().unwrap().expect("a record");
    assert_eq!(record.to_string(), "record<right: utf8, sides: u8>");
    for (rank, text) in [(0, "one"), (1, ""), (2, "four")] {
        let (_, packed) = file.tuple(rank).unwrap().unwrap();
        let packed = packed.packed();
        let fields: Vec<FieldValue<'_>> = record.values(&packed).collect();
        assert_eq!(fields, [FieldValue::Utf8(text), FieldValue::U8(3)]);
    }
}

#[test]
fn long_strings_make_short_chunks() {
    const PIECE_BYTES: usize = 4000;
    let long: Vec<Vec<u8>> =
        (0..300usize).map(|at| vec![b'x'; [0, 3, 700, 5000][at * 7 % 4] + at % 5]).collect();
    let tuples: Vec<(u64, &[u8])> = (0..).map(|at| at / 7 * 2).zip(long.iter().map(Vec::as_slice)).collect();
    let mut keys: Vec<u64> = tuples.iter().map(|tuple| tuple.0).collect();
    keys.extend([1000; 900]);
    let values: Vec<&[u8]> =
        tuples.iter().map(|tuple| tuple.1).chain((0..900).map(|_| b"short".as_slice())).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.pleach");
    let (keys_column, values_column) = (Column::U64(keys.clone()), strings_of(values.iter().copied()));
    let types = (KeyType::U64, ValueType::Bytes);
    let here = Relation::from_columns("here", types, &keys_column, &values_column).unwrap();
    let whole = SetOperation::Union;
    let all = set(whole, SetRule::Multiset, here, here, StreamOptions::default()).unwrap();
    all.to_index(&path, &BuildOptions::default(), &Silent).unwrap();
    let file = Index::open(&path).unwrap();
    // Byte keys, long ones, without a column of them.
    let texts: Vec<(Vec<u8>, u64)> = (0..200u64)
        .map(|at| ([vec![b'k'; 900], format!("{:04}", at / 3).into_bytes()].concat(), at))
        .collect();
    let texts = build_strings_bytes(KeyType::Bytes, &texts, &plain()).unwrap();
    let texts = Index::from_bytes(texts).unwrap();
    let few = index(&[0, 2, 1000, 1000, 1000], RIGHT, |key| key, &plain());
    let (few, texts) = (Relation::from_index(&few), Relation::from_index(&texts));
    let condition = |input: Relation<'_>| {
        crate::expr::Predicate::parse("rank >= 0 and rank != 17", &input.expr_schema().unwrap()).unwrap()
    };
    for input in [here, Relation::from_index(&file), texts] {
        let condition = condition(input);
        let other = if input.key_type() == KeyType::U64 { few } else { input };
        type Run<'a> = Box<dyn Fn(StreamOptions<'a>) -> Answer<'a> + 'a>;
        let runs: Vec<(&str, Run<'_>)> = vec![
            ("select", Box::new(|options| select_where(input, &condition, options).unwrap())),
            ("first", Box::new(|options| reduce(input, Reduction::First, options).unwrap())),
            ("count", Box::new(|options| reduce(input, Reduction::Count, options).unwrap())),
            ("product", Box::new(|options| product(other, input, options).unwrap())),
            ("left of product", Box::new(|options| product(input, other, options).unwrap().keep(Kept::Left))),
            ("inner", Box::new(|options| join(How::Inner, input, other, options).unwrap())),
            ("full", Box::new(|options| join(How::Full, other, input, options).unwrap())),
            ("semi", Box::new(|options| join(How::Semi, input, other, options).unwrap())),
            ("union", Box::new(|options| set(whole, SetRule::Multiset, input, input, options).unwrap())),
        ];
        for (name, run) in &runs {
            let wanted = run(StreamOptions::default()).collect().unwrap();
            assert!(wanted.len() > 20, "{name}");
            for piece_tuples in [5, 4096] {
                let options =
                    StreamOptions { piece_tuples, piece_bytes: PIECE_BYTES, ..StreamOptions::default() };
                let mut found = Chunk {
                    keys: slice_of(&wanted.keys),
                    values: slice_of(&wanted.values),
                    right: slice_of(&wanted.right),
                    ..Chunk::default()
                };
                run(options)
                    .for_each_chunk(|chunk| {
                        let bytes = |column: &Column| match column {
                            Column::Bytes(strings) => strings.data_bytes(),
                            _ => 0,
                        };
                        let bytes = bytes(&chunk.keys) + bytes(&chunk.values) + bytes(&chunk.right);
                        // One more key of a reduction, which was buffered.
                        let limit = PIECE_BYTES + if *name == "first" || *name == "count" { 6000 } else { 0 };
                        assert!(bytes <= limit || chunk.len() == 1, "{name}: {bytes} bytes, {}", chunk.len());
                        append(&mut found.keys, &chunk.keys);
                        append(&mut found.values, &chunk.values);
                        append(&mut found.right, &chunk.right);
                        found.sides.extend_from_slice(&chunk.sides);
                        Ok(())
                    })
                    .unwrap();
                assert!(found == wanted, "{name} in pieces of {piece_tuples}");
                assert_eq!(run(options).count().unwrap(), wanted.len() as u64, "count of {name}");
            }
        }
    }
}

/// None of it.
fn slice_of(column: &Column) -> Column {
    super::columns::slice(column, 0..0)
}

#[test]
fn answers_of_any_size_are_counted() {
    let keys = Column::U32(vec![7; 1 << 20]);
    let types = (KeyType::U32, ValueType::None);
    let many = Relation::from_columns("many", types, &keys, &Column::None).unwrap();
    let options = StreamOptions::default();
    assert_eq!(product(many, many, options).unwrap().count().unwrap(), 1 << 40);
    assert_eq!(join(How::Full, many, many, options).unwrap().count().unwrap(), 1 << 40);
    // A result that exceeds a limit is refused with its size; one that only might is not.
    fn sized(both: Relation<'_>, operator: Operator, limit: u128) -> Result<(), RelationError> {
        check_size(&Inputs::new(both, both, operator, &StreamOptions::default())?, operator, limit)
    }
    let refused = |operator, limit| sized(many, operator, limit).map_err(|error| error.to_string());
    assert_eq!(refused(Operator::Join(How::Inner), 1 << 40), Ok(()));
    // Two keys with few pairs: known from their numbers, or counted where one piece holds both.
    let (halves, few) = ([7u32, 9].map(|key| vec![key; 1 << 19]).concat(), [[7u32; 30], [9; 30]].concat());
    for (keys, limit) in [(halves, 1u128 << 39), (few, 1800)] {
        let keys = Column::U32(keys);
        let two = Relation::from_columns("two", types, &keys, &Column::None).unwrap();
        let refused = |limit| sized(two, Operator::Join(How::Inner), limit).is_err();
        assert!(!refused(limit) && refused(limit - 1));
    }
    let text = refused(Operator::Join(How::Inner), (1 << 40) - 1).unwrap_err();
    assert!(
        text.starts_with("too large: the join has 1099511627776 tuples, at most 1099511627775 fit"),
        "{text}"
    );
    let text = refused(Operator::Product, (1 << 40) - 1).unwrap_err();
    assert!(text.starts_with("too large: the product has 1099511627776 tuples"), "{text}");
    assert_eq!(refused(Operator::Join(How::Semi), 1), Ok(()));
    for (m, n) in [(70, 64), (1, 90), (300, 5)] {
        for (a, b) in pairs(m, n) {
            let (left, right) = (index(&a, 1, |key| key, &plain()), index(&b, 1, |key| key, &plain()));
            let (left, right) = (Relation::from_index(&left), Relation::from_index(&right));
            for piece_tuples in [3, 64] {
                let pieces = Pieces::new((left, right), Operator::Join(How::Full), &options, piece_tuples);
                let most = pieces.answers_max().unwrap();
                assert!(most >= join_oracle(How::Full, &a, &b).len() as u128);
            }
        }
    }
}

#[test]
fn sums_are_those_of_whole_keys() {
    // Parts of these sums do not fit, wherever they are cut.
    let block = memory::BLOCK_TUPLES as u64;
    let (many, half) = (3 * block, 3 * block / 2);
    let value = |at: u64| if at % many < half { i64::MAX - 5 } else { -(i64::MAX - 4) };
    let tuples: Vec<(u32, i64)> = (0..2 * many).map(|at| ((at / many) as u32, value(at))).collect();
    let wide = Index::from_bytes(build_bytes(&tuples, &plain()).unwrap()).unwrap();
    let wanted = vec![-(half as i64), -(half as i64)].into_iter().map(i64::cast_unsigned).collect();
    // Floats, whose sums depend on the order: that of blocks.
    let floats: Vec<(u32, f64)> = (0..40_000u32)
        .map(|at| (if at < 100 { at } else { 100 + at / 15_000 }, 1e16 / f64::from(at % 997 + 1) - 3.7e12))
        .collect();
    let file = Index::from_bytes(build_bytes(&floats, &plain()).unwrap()).unwrap();
    let (keys, values): (Vec<u32>, Vec<f64>) = floats.into_iter().unzip();
    struct Sum;
    impl memory::Reduce<f64> for Sum {
        type Output = f64;
        fn single(&self, value: f64) -> f64 {
            value
        }
        fn both(&self, first: f64, second: f64) -> Option<f64> {
            Some(first + second)
        }
    }
    let columns = memory::Columns::new("floats", &keys, &values).unwrap();
    let of_floats = memory::reduce(columns, &Sum).unwrap();
    let of_floats = Column::U64(of_floats.1.into_iter().map(f64::to_bits).collect());
    for piece_tuples in [1, 5000, 9000, 1 << 20] {
        let options = StreamOptions { piece_tuples, ..StreamOptions::default() };
        let found = reduce(Relation::from_index(&wide), Reduction::Sum, options).unwrap().collect().unwrap();
        assert_eq!(found.values, Column::U64(Vec::clone(&wanted)), "{piece_tuples}");
        let found = reduce(Relation::from_index(&file), Reduction::Sum, options).unwrap().collect().unwrap();
        assert_eq!(found.values, of_floats, "{piece_tuples}");
    }
    for (values, fits) in [([u64::MAX - 1, 1], true), ([u64::MAX, 1], false)] {
        let tuples = values.map(|value| (1u32, value));
        let file = Index::from_bytes(build_bytes(&tuples, &plain()).unwrap()).unwrap();
        let sum =
            reduce(Relation::from_index(&file), Reduction::Sum, StreamOptions::default()).unwrap().collect();
        assert_eq!(sum.is_ok(), fits);
    }
}

#[test]
fn columns_of_other_types_are_refused() {
    let refused = |types, keys: &Column, values: &Column| {
        Relation::from_columns("mine", types, keys, values).map(|_| ()).unwrap_err().to_string()
    };
    let narrow = Column::U32(vec![1, 2]);
    let text = refused((KeyType::U64, ValueType::None), &narrow, &Column::None);
    assert!(text.starts_with("columns differ: mine has keys of type u64, found words of 4 bytes"), "{text}");
    let text = refused((KeyType::U32, ValueType::F64), &narrow, &narrow);
    assert!(text.contains("values of type f64, found words of 4 bytes"), "{text}");
    let strings = strings_of([b"ab".as_slice(), b"a\xff"]);
    let text = refused((KeyType::U32, ValueType::Fixed(3)), &narrow, &strings);
    assert!(text.contains("values of type bytes3, found 2 bytes at rank 0"), "{text}");
    let text = refused((KeyType::U32, ValueType::Utf8), &narrow, &strings);
    assert!(text.contains("values of type utf8, found invalid UTF-8 at rank 1"), "{text}");
    assert!(Relation::from_columns("mine", (KeyType::U32, ValueType::Fixed(2)), &narrow, &strings).is_ok());
    assert!(Relation::from_columns("mine", (KeyType::I32, ValueType::F32), &narrow, &narrow).is_ok());
}

/// Zeros for what is not there are bytes, too.
#[test]
fn missing_parts_make_short_chunks() {
    let (one, many) = (Column::U64(vec![500]), Column::U64((0..1000).collect()));
    let wide = strings_of([[7u8; 1000].as_slice()]);
    let left = Relation::from_columns("one", (KeyType::U64, ValueType::Fixed(1000)), &one, &wide).unwrap();
    let right =
        Relation::from_columns("many", (KeyType::U64, ValueType::None), &many, &Column::None).unwrap();
    let options = StreamOptions { piece_bytes: 10_000, ..StreamOptions::default() };
    let mut tuples = 0;
    let answer = join(How::Full, left, right, options).unwrap();
    answer
        .for_each_chunk(|chunk| {
            tuples += chunk.len();
            assert!(chunk.len() <= 10);
            Ok(())
        })
        .unwrap();
    assert_eq!(tuples, 1000);
    // Returned tuples are not counted again.
    let (a, b) = (index(&[7; 50], 0, |key| key, &plain()), index(&[7; 49], 0, |key| key, &plain()));
    let (left, right) = (Relation::from_index(&a), Relation::from_index(&b));
    let mut answer = join(How::Inner, left, right, StreamOptions { piece_tuples: 100, ..options }).unwrap();
    let first = answer.next_chunk().unwrap().unwrap().len() as u64;
    assert_eq!(answer.count().unwrap() + first, 50 * 49);
}

/// Offsets that lie, under sums that are right.
#[test]
fn forged_columns_are_errors() {
    let texts: Vec<(u64, Vec<u8>)> = (0..400).map(|at| (at, vec![b'x'; at as usize % 90])).collect();
    let (keys, values) =
        (Column::U64((0..400).collect()), strings_of(texts.iter().map(|tuple| tuple.1.as_slice())));
    let types = (KeyType::U64, ValueType::Bytes);
    let input = Relation::from_columns("texts", types, &keys, &values).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("texts.pleach");
    for form in [Values::Plain, Values::Dictionary] {
        let all = set(SetOperation::Union, SetRule::Set, input, input, StreamOptions::default()).unwrap();
        let options = BuildOptions { values: form, force: true, ..BuildOptions::default() };
        all.to_index(&path, &options, &Silent).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let header = Index::from_bytes(whole.clone()).unwrap().header().clone();
        let place = header.values.unwrap();
        let (last, width) = (place.shape.elements, place.shape.offset_bytes as usize);
        assert_eq!(last, if form == Values::Plain { 400 } else { 90 });
        // What is written where, and what is said of it.
        let mut forged: Vec<(u64, usize, u64, &str)> = Vec::new();
        for (rank, offset) in
            [(1, u64::MAX), (last / 2, 0), (last / 2, 1 << 20), (last - 1, 3), (last, u64::MAX)]
        {
            forged.push((place.offset + rank * width as u64, width, offset, "offsets must ascend"));
        }
        for code in header.codes.iter().flat_map(|codes| [(0, 90), (200, 255)].map(|code| (codes, code))) {
            let (codes, (rank, code)) = code;
            forged.push((codes.data_offset() + rank, 1, code, "a code must be that of a value"));
        }
        for (at, width, number, told) in forged {
            let mut bytes = whole.clone();
            pleach_kit::mutate::put(&mut bytes, at as usize, width, number);
            pleach_kit::mutate::reseal(&mut bytes);
            let forged = Index::from_bytes(bytes).unwrap();
            let input = Relation::from_index(&forged);
            for piece_bytes in [0, 1000, 1 << 20] {
                let options = StreamOptions { piece_bytes, ..StreamOptions::default() };
                let refused = reduce(input, Reduction::First, options).and_then(Answer::collect);
                let refused = refused.unwrap_err().to_string();
                assert!(refused.contains(told), "{at} {number}: {refused}");
            }
        }
    }
}
