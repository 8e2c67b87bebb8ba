//! Batches over a set, against a sorted list, and against one file of the same tuples.

use crate::{BatchError, Bound, Column, Copied, Found, Keys, Numbers, Pool, Table, Values};
use pleach::{KeyType, Near, ValueType};
use pleach_builder::source::{Chunk, Column as Keyed, Schema, Strings};
use pleach_builder::{BuildOptions, Builder, ChunkSource, Silent};
use pleach_set::{Committer, Folder, Partition, SetOptions, Writer};
use std::path::Path;
use std::sync::Arc;

/// Publishes a set of a chunk.
fn publish(folder: &Path, chunk: Chunk, types: (KeyType, ValueType), tuples: u64) {
    let mut source = ChunkSource::new(Schema::plain(types.0, types.1, None), [chunk]);
    let store = Arc::new(Folder::create(folder).unwrap());
    let writer = Writer::new(store.clone());
    let options = BuildOptions { threads: 1, ..BuildOptions::default() };
    let (written, _) = writer.write(&mut source, Partition::Tuples(tuples), &options, &Silent).unwrap();
    let mut committer = Committer::begin(store).unwrap();
    committer.add(&written).unwrap();
    committer.publish().unwrap();
}

fn numbers(folder: &Path, tuples: &[(u64, u64)], each: u64) -> Table {
    let mut chunk = Chunk::new(KeyType::U64, ValueType::U64);
    chunk.keys = Keyed::U64(tuples.iter().map(|(key, _)| *key).collect());
    chunk.values = Keyed::U64(tuples.iter().map(|(_, value)| *value).collect());
    publish(folder, chunk, (KeyType::U64, ValueType::U64), each);
    Table::open_set(folder, SetOptions::default()).unwrap()
}

/// Tuples with runs of equal keys and gaps.
fn sample(count: u64) -> Vec<(u64, u64)> {
    (0..count).map(|at| (at / 3 * 5 + at % 2 * 2, at)).collect()
}

#[test]
fn numbers_agree_with_a_sorted_list() {
    let folder = tempfile::tempdir().unwrap();
    let mut tuples = sample(3000);
    tuples.sort();
    for each in [1, 7, 64, 100_000] {
        let table = numbers(&folder.path().join(each.to_string()), &tuples, each);
        assert!(table.is_set() && table.len() == 3000);
        let asked: Vec<i64> = (-3..5010).rev().collect();
        let keys = Keys::Numbers(Numbers::of(&asked));
        let at_least =
            |key: i64| tuples.partition_point(|(own, _)| i128::from(*own) < i128::from(key)) as u64;
        for pool in [Pool::current(), Pool::of(2)] {
            let (mut values, mut found) = (vec![0; asked.len()], vec![false; asked.len()]);
            let count = table
                .get(&keys, &mut Values::U64(&mut values), &mut Found::Bools(&mut found), &pool)
                .unwrap();
            let mut bits = vec![0; asked.len().div_ceil(8)];
            assert_eq!(table.contains(&keys, &mut Found::Bits(&mut bits), &pool).unwrap(), count);
            let (mut ranks, mut upper) = (vec![0; asked.len()], vec![0; asked.len()]);
            assert_eq!(table.rank(&keys, &mut ranks, &mut Found::None, &pool).unwrap(), count);
            table.bounds(&keys, Bound::Upper, &mut upper, &pool).unwrap();
            for (at, &key) in asked.iter().enumerate() {
                let rank = at_least(key);
                let own = tuples.get(rank as usize).filter(|(own, _)| i128::from(*own) == i128::from(key));
                assert_eq!((ranks[at], upper[at]), (rank, at_least(key + 1)), "{key}");
                assert_eq!(
                    (found[at], values[at]),
                    (own.is_some(), own.map_or(0, |(_, value)| *value)),
                    "{key}"
                );
                assert_eq!(bits[at / 8] >> (at % 8) & 1 != 0, found[at], "{key}");
            }
        }
    }
}

#[test]
fn near_tuples_and_ranks_are_those_of_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut tuples = sample(500);
    tuples.sort();
    let set = numbers(&folder.path().join("set"), &tuples, 9);
    Builder::new().build(folder.path().join("file"), tuples.iter().copied()).unwrap();
    let file = Table::open(folder.path().join("file")).unwrap();
    let asked: Vec<i64> = (-5..900).chain([i64::MIN, i64::MAX]).collect();
    let keys = Keys::Numbers(Numbers::of(&asked));
    for near in [Near::Floor, Near::Ceiling, Near::Nearest] {
        let (mut own, mut one) = (vec![0; asked.len()], vec![0; asked.len()]);
        set.near(&keys, near, &mut own, &Pool::of(2)).unwrap();
        file.near(&keys, near, &mut one, &Pool::current()).unwrap();
        assert_eq!(own, one, "{near:?}");
    }
    let ranks: Vec<u64> = (0..510).map(|at| at * 7 % 505).chain([u64::MAX]).collect();
    assert_eq!(
        set.tuples_at(&ranks, &Pool::of(2)).unwrap(),
        file.tuples_at(&ranks, &Pool::current()).unwrap()
    );
    // No rank is that of a tuple.
    assert_eq!(
        set.tuples_at(&[500, u64::MAX], &Pool::current()).unwrap(),
        (Column::Words(vec![0; 16]), Column::Words(vec![0; 16]))
    );
}

#[test]
fn byte_strings_agree_with_a_sorted_list() {
    let folder = tempfile::tempdir().unwrap();
    let mut strings: Vec<String> = (0..700).map(|at| format!("{:o}", at * 37 % 701)).collect();
    strings.extend(["".to_owned(), "7".to_owned()]);
    strings.sort();
    let (mut keys, mut values) = (Strings::default(), Strings::default());
    strings.iter().for_each(|key| keys.push(key.as_bytes()));
    strings.iter().enumerate().for_each(|(at, _)| values.push(format!("v{at}").as_bytes()));
    let mut chunk = Chunk::new(KeyType::Bytes, ValueType::Bytes);
    (chunk.keys, chunk.values) = (Keyed::Bytes(keys), Keyed::Bytes(values));
    publish(folder.path(), chunk, (KeyType::Bytes, ValueType::Bytes), 11);
    let table = Table::open_set(folder.path(), SetOptions::default()).unwrap();
    let asked: Vec<String> =
        strings.iter().flat_map(|key| [key.clone(), format!("{key}\0"), format!("{key}!")]).collect();
    let texts: Copied = asked.iter().collect();
    let keys = Keys::Texts(&texts);
    let (mut ranks, mut upper) = (vec![0; asked.len()], vec![0; asked.len()]);
    let mut found = vec![0; asked.len()];
    table.rank(&keys, &mut ranks, &mut Found::Bytes(&mut found), &Pool::of(2)).unwrap();
    table.bounds(&keys, Bound::Upper, &mut upper, &Pool::of(2)).unwrap();
    for (at, key) in asked.iter().enumerate() {
        let rank = strings.partition_point(|own| own < key);
        let end = strings.partition_point(|own| own <= key);
        assert_eq!(
            (ranks[at], upper[at], found[at]),
            (rank as u64, end as u64, u8::from(end > rank)),
            "{key:?}"
        );
    }
    let all = table.values_at(&[5, 700, 0, u64::MAX, 5], &Pool::of(2)).unwrap();
    assert_eq!(all.data, b"v5v700v0v5");
    assert_eq!(all.offsets, [0, 2, 6, 8, 8, 10]);
    let nearest = table.near(&keys, Near::Nearest, &mut ranks, &Pool::current());
    assert!(matches!(nearest, Err(BatchError::Refused(_))));
}

#[test]
fn borders_need_no_file_and_missing_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let tuples: Vec<(u64, u64)> = (0..100).map(|key| (key * 2, key)).collect();
    let table = numbers(folder.path(), &tuples, 10);
    let asked = [0u64, 19, 20, 199, 1000];
    let keys = Keys::Numbers(Numbers::of(&asked));
    let mut ranks = [0; 5];
    table.bounds(&keys, Bound::Lower, &mut ranks, &Pool::current()).unwrap();
    assert_eq!(ranks, [0, 10, 10, 100, 100]);
    let set = table.set().unwrap();
    assert_eq!(set.open_files(), 0);
    let name = set.manifest().name(1).to_owned();
    std::fs::remove_file(folder.path().join(&name)).unwrap();
    let asked = [1u64, 22, 40];
    let keys = Keys::Numbers(Numbers::of(&asked));
    let mut found = [0; 3];
    let error = table.contains(&keys, &mut Found::Bytes(&mut found), &Pool::current()).unwrap_err();
    assert!(matches!(error, BatchError::Set(_)) && error.to_string().contains(&name), "{error}");
    let partial = Table::open_set(folder.path(), SetOptions::default().partial(true)).unwrap();
    assert_eq!(partial.contains(&keys, &mut Found::Bytes(&mut found), &Pool::current()).unwrap(), 1);
    assert_eq!(found, [0, 0, 1]);
    let mut ranks = [0; 3];
    assert!(partial.rank(&keys, &mut ranks, &mut Found::None, &Pool::current()).is_err());
    partial.found_ranks(&keys, &mut ranks, &mut Found::None, &Pool::current()).unwrap();
    assert_eq!(ranks, [u64::MAX, u64::MAX, 20]);
    assert_eq!(partial.set().unwrap().left_out().len(), 1);
}
