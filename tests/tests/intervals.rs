//! Files of intervals against a painted line: builds, look-ups, changes.

use pleach::build::Overlap;
use pleach::{Isa, Key, Map, Near, OpenOptions, Tuples, Verify, Word};
use pleach_builder::rebuild::{self, CompactOptions, Method, RebuildOptions, compact};
use pleach_builder::source::{Op, Schema};
use pleach_builder::{BuildError, BuildOptions, Builder, Chunk, ChunkSource, Column, Silent};
use pleach_tests::generate::Random;
use std::fmt::Debug;

/// First and last place of an interval on a short line of keys, and its value.
type Row = (usize, usize, u32);

/// Rows of intervals, in an order that nothing follows from.
fn rows(random: &mut Random, places: usize, count: usize, length: usize) -> Vec<Row> {
    (0..count)
        .map(|value| {
            let start = random.next() as usize % places;
            let last = (start + random.next() as usize % length).min(places - 1);
            (start, last, value as u32)
        })
        .collect()
}

/// Paints a line with the rows, later ones over earlier ones. Returns the pieces, and the row at each place.
fn painted(rows: &[Row], places: usize) -> (Vec<Row>, Vec<Option<usize>>) {
    let mut line = vec![None; places];
    for (number, &(start, last, _)) in rows.iter().enumerate() {
        line[start..=last].fill(Some(number));
    }
    let mut pieces: Vec<Row> = Vec::new();
    let mut before = None;
    for (place, row) in line.iter().enumerate() {
        match row {
            Some(_) if *row == before => pieces.last_mut().expect("a piece").1 = place,
            Some(row) => pieces.push((place, place, rows[*row].2)),
            None => {}
        }
        before = *row;
    }
    (pieces, line)
}

fn overlaps(rows: &[Row]) -> bool {
    let mut sorted = rows.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[1].0 <= pair[0].1)
}

/// Keys of this type, ascending, with gaps or without, up to the ends of the type.
fn keys<K: Key>(places: usize, step: u128, is_high: bool) -> Vec<K> {
    let top = K::Word::MAX.to_u128();
    let first = if is_high { top - (places as u128 - 1) * step } else { 0 };
    (0..places as u128).map(|place| K::decode(K::Word::from_u128(first + place * step))).collect()
}

macro_rules! check {
    ($name:ident, $key:ty, $end:ty, $put:expr, $ends:expr) => {
        #[test]
        fn $name() {
            check::<$key, $end, u32>($put, |value| value, $ends);
            // Values of any length are in a column of their own.
            check::<$key, $end, String>($put, |value| "ab".repeat(value as usize % 5), &$ends[..1]);
        }
    };
}
check!(u32_keys, u32, u32, |key| key, &[true, false]);
check!(u64_keys, u64, u64, |key| key, &[true, false]);
check!(i32_keys, i32, i32, |key| key, &[true, false]);
check!(i64_keys, i64, i64, |key| key, &[true, false]);
check!(u128_keys, u128, [u8; 16], |key: u128| key.to_be_bytes(), &[true, false]);

fn check<K: Key + pleach::build::BuildKey + Debug, E, V>(end: fn(K) -> E, made: fn(u32) -> V, high: &[bool])
where
    (E, V): pleach::build::BuildValue + pleach::MapValue + PartialEq + Debug + Clone,
    E: Copy,
    V: Clone + PartialEq + Debug,
{
    let mut random = Random(7);
    for &is_high in high {
        for (places, count, length, step) in [
            (1, 1, 1, 1),
            (40, 1, 40, 1),
            (40, 12, 9, 3),
            (300, 200, 7, 1),
            (2000, 3000, 60, 5),
            (2000, 400, 2, 2),
        ] {
            let keys = keys::<K>(places, step, is_high);
            let rows = rows(&mut random, places, count, length);
            let what = format!("{} {places} {count} {length} {is_high}", K::TYPE);
            // The last key in an interval is the one before the next place, or the last of the type.
            let word = |key: K| key.encode().to_u128();
            let last_of = |place: usize| match keys.get(place + 1) {
                Some(&next) => K::decode(K::Word::from_u128(word(next) - 1)),
                None if is_high => keys[place],
                None => K::decode(K::Word::from_u128(word(keys[place]) + step - 1)),
            };
            let tuple = |&(start, last, value): &Row| (keys[start], (end(last_of(last)), made(value)));
            let tuples: Vec<(K, (E, V))> = rows.iter().map(tuple).collect();
            let builder = |overlap| {
                Builder::from(BuildOptions { memory_bytes: 1, ..BuildOptions::default() }).intervals(overlap)
            };
            let refused = builder(Overlap::Error).to_bytes(tuples.clone());
            assert_eq!(matches!(refused, Err(BuildError::Overlap { .. })), overlaps(&rows), "{what}");
            assert_eq!(refused.is_ok(), !overlaps(&rows), "{what}");
            let bytes = builder(Overlap::Last).to_bytes(tuples.clone()).expect("builds");
            let again = Builder::new().intervals(Overlap::Last).to_bytes(tuples).expect("builds");
            assert!(bytes == again, "{what}: memory changes nothing");
            let (pieces, line) = painted(&rows, places);
            for isa in Isa::available() {
                for verify in [Verify::Header, Verify::Touched] {
                    let options = OpenOptions::default().isa(Some(isa)).verify(verify);
                    let index = options.from_bytes(bytes.clone()).expect("opens");
                    let map = Map::<K, (E, V)>::from_index(std::sync::Arc::new(index)).expect("types");
                    let found: Vec<_> = map.iter().map(|tuple| tuple.expect("readable")).collect();
                    let expected: Vec<_> = pieces.iter().map(tuple).collect();
                    assert_eq!(found, expected, "{what}");
                    // Every border and its neighbours, and the ends of the type.
                    let mut queries: Vec<(u128, Option<usize>)> = Vec::new();
                    for (place, row) in line.iter().enumerate() {
                        queries.push((word(keys[place]), *row));
                        queries.push((word(last_of(place)), *row));
                    }
                    let below = word(keys[0]).checked_sub(1);
                    let above = word(last_of(places - 1))
                        .checked_add(1)
                        .filter(|&word| word <= K::Word::MAX.to_u128());
                    queries.extend(below.into_iter().chain(above).map(|word| (word, None)));
                    let asked: Vec<K> =
                        queries.iter().map(|&(word, _)| K::decode(K::Word::from_u128(word))).collect();
                    let answers = map.interval_many(&asked).expect("readable");
                    for ((&key, (_, row)), answer) in asked.iter().zip(&queries).zip(&answers) {
                        let value = answer.as_ref().map(|(_, value)| value.clone());
                        assert_eq!(value, row.map(|row| made(rows[row].2)), "{what}: {key:?}");
                    }
                    let intervals = map.index().intervals::<K>().expect("readable").expect("intervals");
                    let mut ranks = vec![0; asked.len()];
                    let count = intervals.find_batch(&asked, &mut ranks).expect("readable");
                    assert_eq!(count, queries.iter().filter(|(_, row)| row.is_some()).count(), "{what}");
                    // The same by floors that somebody else has found.
                    let mut floors = vec![0; asked.len()];
                    let to = Tuples { ranks: &mut floors, ..Tuples::default() };
                    let typed = map.index().typed::<K, ()>().expect("types");
                    typed.near_batch(Near::Floor, &asked, to).expect("readable");
                    assert_eq!(intervals.hold_batch(&asked, &mut floors).expect("readable"), count, "{what}");
                    assert_eq!(floors, ranks, "{what}");
                    for ((&key, &rank), (_, row)) in asked.iter().zip(&ranks).zip(&queries) {
                        let one = intervals.find(key).expect("readable");
                        assert_eq!(one, row.map(|_| rank), "{what}: {key:?}");
                    }
                    let mut present = vec![u64::MAX; asked.len().div_ceil(64)];
                    let lone = typed.interval_batch(&asked, &mut vec![(); asked.len()], &mut present);
                    assert_eq!(lone.expect("readable"), count, "{what}");
                    for (at, (_, row)) in queries.iter().enumerate() {
                        assert_eq!(present[at / 64] >> (at % 64) & 1 == 1, row.is_some(), "{what}: {at}");
                    }
                    if let Ok(records) = map.index().typed::<K, u64>() {
                        let mut values = vec![7; asked.len()];
                        present.fill(u64::MAX);
                        let found = records.interval_batch(&asked, &mut values, &mut present);
                        assert_eq!(found.expect("readable"), count, "{what}");
                        for ((at, &value), &rank) in values.iter().enumerate().zip(&ranks) {
                            let expected =
                                records.select(rank).expect("readable").map_or(0, |(_, value)| value);
                            assert_eq!(
                                (value, present[at / 64] >> (at % 64) & 1 == 1),
                                (expected, rank != u64::MAX)
                            );
                        }
                    }
                }
            }
        }
    }
}

/// A file of intervals of u32 with u32 values.
fn file(path: &std::path::Path, rows: &[(u32, u32, u32)]) {
    let tuples = rows.iter().map(|&(start, last, value)| (start, (last, value)));
    Builder::new().fields(["last", "v"]).intervals(Overlap::Error).build(path, tuples).expect("builds");
}

fn change(path: &std::path::Path, op: Op, row: (u32, u32, u32), method: Method) -> Result<(), BuildError> {
    let open = |schema: &Schema| {
        let value = u64::from(row.1) | u64::from(row.2) << 32;
        let chunk = Chunk { keys: Column::U32(vec![row.0]), values: Column::U64(vec![value]), ops: vec![op] };
        let source = ChunkSource::new(schema.clone(), std::iter::once(chunk));
        Ok(Box::new(source) as Box<dyn pleach_builder::Source>)
    };
    let options = RebuildOptions { method, ..RebuildOptions::default() };
    rebuild::rebuild(path, Box::new(open), &options, &Silent).map(|_| ())
}

#[test]
fn changes_and_merges_keep_intervals_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("i.pleach");
    file(&path, &[(0, 9, 1), (10, 19, 2), (100, u32::MAX, 3)]);
    let before = std::fs::read(&path).expect("reads");
    for (row, method) in
        [((20, 100, 7), Method::Auto), ((10, 9, 7), Method::Auto), ((5, 5, 7), Method::Merge)]
    {
        let refused = change(&path, Op::Put, row, method);
        assert!(matches!(refused, Err(BuildError::Overlap { .. })), "{row:?}: {refused:?}");
        assert!(std::fs::read(&path).expect("reads") == before, "what was there is still there");
    }
    assert!(change(&path, Op::Put, (10, 15, 7), Method::Patch).is_err());
    change(&path, Op::Put, (20, 99, 4), Method::Auto).expect("fits");
    change(&path, Op::Del, (10, 0, 0), Method::Auto).expect("removes");
    let map: Map<u32, (u32, u32)> = Map::open(&path).expect("opens");
    let value = |key| map.interval(key).expect("readable").map(|(_, (_, value))| value);
    assert_eq!([9, 10, 20, 99, u32::MAX].map(value), [Some(1), None, Some(4), Some(4), Some(3)]);
    // A file of other intervals fits between; one that overlaps does not.
    let (other, merged) = (folder.path().join("o.pleach"), folder.path().join("m.pleach"));
    file(&other, &[(10, 19, 8)]);
    let merge = || compact(&[path.clone(), other.clone()], &merged, &CompactOptions::default(), &Silent);
    merge().expect("fits");
    let map: Map<u32, (u32, u32)> = Map::open(&merged).expect("opens");
    assert_eq!(map.interval(15).expect("readable"), Some((10, (19, 8))));
    file(&other, &[(15, 25, 9)]);
    assert!(matches!(merge(), Err(BuildError::Overlap { .. })));
    // Other files have no intervals.
    let plain = Builder::new().to_bytes([(1u32, (2u32, 3u32))]).expect("builds");
    let map = Map::<u32, (u32, u32)>::from_bytes(plain).expect("opens");
    assert!(map.interval(1).is_err() && map.index().ends().expect("readable").is_none());
    let strings = Builder::new().intervals(Overlap::Error).to_bytes([("a", (1u32, 2u32))]);
    assert!(matches!(strings, Err(BuildError::Source(_))));
}
