//! A set answers as a sorted list of its tuples does, whatever the types and wherever its files are cut.

mod common;

use common::{Random, Tuple, key, numbers, set};
use pleach_builder::source::Schema;
use pleach_format::{KeyType, ValueType};
use pleach_set::{Datum, Partition, Set, SetError, key_bytes};
use std::ops::Bound;

const KEYS: [KeyType; 9] = [
    KeyType::U32,
    KeyType::U64,
    KeyType::U128,
    KeyType::I32,
    KeyType::I64,
    KeyType::F64,
    KeyType::Fixed(12),
    KeyType::Bytes,
    KeyType::Utf8,
];

/// The plain answers.
struct Model {
    tuples: Vec<Tuple>,
    keys: Vec<Vec<u8>>,
}

impl Model {
    fn new(key_type: KeyType, tuples: &[Tuple]) -> Self {
        let bytes = |key: &Datum<'_>| key_bytes(key_type, key).expect("its type").into_owned();
        let mut tuples = tuples.to_vec();
        tuples.sort_by_key(|(key, _)| bytes(key));
        let keys = tuples.iter().map(|(key, _)| bytes(key)).collect();
        Self { tuples, keys }
    }
    fn lower(&self, key: &[u8]) -> usize {
        self.keys.iter().filter(|own| own.as_slice() < key).count()
    }
    fn upper(&self, key: &[u8]) -> usize {
        self.keys.iter().filter(|own| own.as_slice() <= key).count()
    }
}

fn ask(set: &Set, model: &Model, query: &Datum<'_>) {
    let bytes = key_bytes(set.key_type(), query).expect("its type");
    let (low, high) = (model.lower(&bytes), model.upper(&bytes));
    let tuple = |rank: usize| model.tuples.get(rank).cloned();
    let first = (low < high).then(|| model.tuples[low].1.clone());
    assert_eq!(set.get(query).expect("get"), first, "{query:?}");
    assert_eq!(set.contains(query).expect("contains"), low < high, "{query:?}");
    assert_eq!(set.rank(query).expect("rank"), (low < high).then_some(low as u64), "{query:?}");
    assert_eq!(set.lower_bound(query).expect("lower bound"), low as u64, "{query:?}");
    assert_eq!(set.upper_bound(query).expect("upper bound"), high as u64, "{query:?}");
    assert_eq!(set.floor(query).expect("floor"), high.checked_sub(1).and_then(tuple), "{query:?}");
    assert_eq!(set.ceiling(query).expect("ceiling"), tuple(low), "{query:?}");
    let all: Vec<Tuple> = set.get_all(query).expect("all").collect::<Result<_, _>>().expect("tuples");
    assert_eq!(all, model.tuples[low..high], "{query:?}");
}

fn ask_range(set: &Set, model: &Model, ends: [(&Datum<'static>, u8); 2]) {
    let place = |(key, kind): (&Datum<'static>, u8), is_start: bool| {
        let bytes = key_bytes(set.key_type(), key).expect("its type");
        match (kind, is_start) {
            (0, true) | (1, false) => model.lower(&bytes),
            (0, false) | (1, true) => model.upper(&bytes),
            (_, true) => 0,
            (_, false) => model.tuples.len(),
        }
    };
    let bound = |(key, kind): (&Datum<'static>, u8)| match kind {
        0 => Bound::Included(key.clone()),
        1 => Bound::Excluded(key.clone()),
        _ => Bound::Unbounded,
    };
    let (start, end) = (place(ends[0], true), place(ends[1], false));
    let expected = &model.tuples[start..end.max(start)];
    let range = (bound(ends[0]), bound(ends[1]));
    assert_eq!(set.count(range.clone()).expect("count"), expected.len() as u64, "{range:?}");
    let forward: Vec<Tuple> = set.range(range.clone()).expect("range").map(|it| it.expect("tuple")).collect();
    assert_eq!(forward, expected, "{range:?}");
    let mut backward: Vec<Tuple> =
        set.range(range.clone()).expect("range").rev().map(|it| it.expect("tuple")).collect();
    backward.reverse();
    assert_eq!(backward, expected, "{range:?}");
    // From both ends in turn.
    let mut entries = set.range(range).expect("range");
    let (mut front, mut back) = (Vec::new(), Vec::new());
    while let Some(tuple) = entries.next() {
        front.push(tuple.expect("tuple"));
        back.extend(entries.next_back().map(|tuple| tuple.expect("tuple")));
    }
    front.extend(back.into_iter().rev());
    assert_eq!(front, expected);
}

#[test]
fn sets_answer_as_lists_do() {
    let folder = tempfile::tempdir().expect("a folder");
    for (at, key_type) in KEYS.into_iter().enumerate() {
        for (number, partition) in
            [Partition::Tuples(1), Partition::Tuples(7), Partition::Files(3), Partition::Tuples(1 << 20)]
                .into_iter()
                .enumerate()
        {
            let mut random = Random(at as u64 * 10 + number as u64);
            // Duplicates are frequent, and some keys have more of them than a file has tuples.
            let tuples: Vec<Tuple> = (0..400)
                .map(|value| {
                    let number = if random.below(8) == 0 { 100 } else { random.below(200) };
                    (key(key_type, number * 2), Datum::U64(value))
                })
                .collect();
            let model = Model::new(key_type, &tuples);
            let path = folder.path().join(format!("{at}-{number}"));
            let set = set(&path, Schema::plain(key_type, ValueType::U64, None), &tuples, partition);
            assert_eq!(set.len(), 400);
            check_files(&set, partition);
            let queries: Vec<Datum<'static>> = (0..410).map(|number| key(key_type, number)).collect();
            queries.iter().for_each(|query| ask(&set, &model, query));
            let many = set.get_many(&queries).expect("many");
            for (query, value) in queries.iter().zip(many) {
                assert_eq!(value, set.get(query).expect("get"));
            }
            for _ in 0..60 {
                let [from, to] = [random.below(410), random.below(410)].map(|at| &queries[at as usize]);
                ask_range(&set, &model, [(from, random.below(3) as u8), (to, random.below(3) as u8)]);
            }
            let all: Vec<Tuple> = set.iter().map(|tuple| tuple.expect("tuple")).collect();
            assert_eq!(all, model.tuples);
            for rank in [0, 1, 199, 398, 399, 400, u64::MAX] {
                let tuple = model.tuples.get(rank as usize).cloned();
                assert_eq!(set.select(rank).expect("select"), tuple);
            }
            let middle: Vec<Tuple> = set.ranks(150..260).map(|tuple| tuple.expect("tuple")).collect();
            assert_eq!(middle, model.tuples[150..260]);
        }
    }
}

/// Files are as large as they were to be, and equal keys are in one of them.
fn check_files(set: &Set, partition: Partition) {
    let manifest = set.manifest();
    for file in 0..manifest.files() {
        let map = set.file(file).expect("the file");
        let tuples = map.len();
        let (last, _) = map.last().expect("it is read").expect("it has tuples");
        let equal = tuples - map.lower_bound(&last).expect("it is read");
        match partition {
            // A file ends after its tuples, or after the run of equal keys that it began.
            Partition::Tuples(most) => assert!(tuples <= most.max(1) || tuples - equal < most, "file {file}"),
            Partition::Files(files) => assert!(manifest.files() as u64 <= files),
        }
    }
}

#[test]
fn values_of_all_kinds() {
    let folder = tempfile::tempdir().expect("a folder");
    let text =
        |number: u64| Datum::Utf8(format!("value {}", "x".repeat(number as usize % 50)).into_bytes().into());
    for (name, value_type, keys) in [
        ("none", ValueType::None, KeyType::I64),
        ("text", ValueType::Utf8, KeyType::Utf8),
        ("t", ValueType::Utf8, KeyType::U32),
    ] {
        let value = |number| if value_type == ValueType::None { Datum::None } else { text(number) };
        let tuples: Vec<Tuple> = (0..300).map(|number| (key(keys, number), value(number))).collect();
        let set = set(
            &folder.path().join(name),
            Schema::plain(keys, value_type, None),
            &tuples,
            Partition::Tuples(50),
        );
        assert_eq!(set.manifest().files(), 6);
        for (key, value) in &tuples {
            assert_eq!(set.get(key).expect("get").as_ref(), Some(value));
        }
    }
}

#[test]
fn an_empty_set_has_no_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let schema = Schema::plain(KeyType::U64, ValueType::U64, None);
    let set = set(folder.path(), schema, &[], Partition::Tuples(5));
    assert!(set.is_empty() && set.manifest().files() == 0);
    let query = Datum::U64(1);
    assert_eq!(set.get(&query).expect("get"), None);
    assert_eq!(set.get_many(std::slice::from_ref(&query)).expect("get"), [None]);
    assert_eq!(set.floor(&query).expect("floor"), None);
    assert_eq!(set.ceiling(&query).expect("ceiling"), None);
    assert_eq!(set.count(..).expect("count"), 0);
    assert_eq!(set.iter().count(), 0);
    assert_eq!(set.iter().rev().count(), 0);
    assert_eq!(set.shape().expect("shape").key_type(), KeyType::U64);
}

#[test]
fn a_key_of_another_type_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let set = numbers(folder.path(), 0..10, 5);
    assert!(matches!(set.get(&Datum::U32(1)), Err(SetError::Key { .. })));
    assert!(matches!(set.get_many(&[Datum::Utf8(b"1"[..].into())]), Err(SetError::Key { .. })));
}

/// A look-up opens one file, counting two, and opening the set none.
#[test]
fn files_open_when_they_are_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let set = numbers(folder.path(), 0..1000, 10);
    assert_eq!((set.manifest().files(), set.open_files()), (100, 0));
    assert_eq!(set.shape().expect("shape").len(), 0);
    assert_eq!(set.get(&Datum::U64(455)).expect("get"), Some(Datum::U64(455)));
    assert_eq!(set.open_files(), 1);
    assert_eq!(set.count(Datum::U64(15)..Datum::U64(985)).expect("count"), 970);
    assert_eq!(set.open_files(), 3);
    // Borders of files need none.
    assert_eq!(set.count(Datum::U64(20)..Datum::U64(990)).expect("count"), 970);
    assert_eq!(set.lower_bound(&Datum::U64(5000)).expect("lower bound"), 1000);
    assert_eq!(set.get(&Datum::U64(5000)).expect("get"), None);
    assert_eq!(set.open_files(), 3);
    let few = Set::options().open_files(2).open(folder.path()).expect("the set");
    assert_eq!(few.iter().inspect(|tuple| assert!(tuple.is_ok())).count(), 1000);
    assert!(few.open_files() <= 2);
}

#[test]
fn the_same_bytes_whatever_the_memory() {
    use common::source;
    use pleach_builder::{BuildOptions, Silent};
    use pleach_set::{Folder, Writer};
    use std::sync::Arc;
    let folder = tempfile::tempdir().expect("a folder");
    let mut random = Random(9);
    let tuples: Vec<Tuple> =
        (0..5000).map(|value| (Datum::U64(random.below(1000)), Datum::U64(value))).collect();
    let mut first = None;
    for (at, (memory_bytes, threads)) in
        [(1 << 20, 1), (1 << 30, 1), (1 << 30, 2), (1 << 30, 5)].into_iter().enumerate()
    {
        let store = Arc::new(Folder::create(folder.path().join(at.to_string())).expect("the folder"));
        let options = BuildOptions { memory_bytes, threads, ..BuildOptions::default() };
        let schema = Schema::plain(KeyType::U64, ValueType::U64, None);
        let written =
            Writer::new(store).write(&mut source(schema, &tuples), Partition::Tuples(300), &options, &Silent);
        let digests: Vec<_> =
            written.expect("the files").0.entries.iter().map(|entry| entry.digest).collect();
        assert!(digests.len() > 10);
        assert_eq!(
            *first.get_or_insert_with(|| digests.clone()),
            digests,
            "{memory_bytes} bytes, {threads} threads"
        );
    }
}
