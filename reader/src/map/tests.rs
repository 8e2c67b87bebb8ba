//! What maps are besides look-ups: shared, cloned, moved between threads, and refused for other types.

use super::any::AnyMap;
use super::*;
use crate::{Builder, ErrorKind, Live};

fn squares() -> Vec<u8> {
    Builder::new().to_bytes((0..5000u64).map(|number| (number, number * number))).expect("builds")
}

#[test]
fn maps_outlive_those_they_were_made_from() {
    fn is_shared<T: Send + Sync + Clone + 'static>() {}
    is_shared::<Map<u64, u64>>();
    is_shared::<Map<i32, Row>>();
    is_shared::<BytesMap<String>>();
    is_shared::<AnyMap>();
    let index = Arc::new(Index::from_bytes(squares()).expect("opens"));
    let map: Map<u64, u64> = Map::from_index(Arc::clone(&index)).expect("its types");
    let keys_alone: Map<u64, ()> = Map::from_index(index).expect("its keys");
    let other = map.clone();
    drop(map);
    let threads: Vec<_> = (0..4u64)
        .map(|thread| {
            let (map, keys) = (other.clone(), keys_alone.clone());
            std::thread::spawn(move || {
                let wanted: Vec<u64> = (thread..6000).step_by(7).collect();
                let found = map.get_many(&wanted).expect("reads");
                for (&key, value) in wanted.iter().zip(found) {
                    assert_eq!(value, (key < 5000).then_some(key * key));
                    assert_eq!(keys.contains(key).expect("reads"), key < 5000);
                }
            })
        })
        .collect();
    drop((other, keys_alone));
    threads.into_iter().for_each(|thread| thread.join().expect("answers are right"));
}

#[test]
fn other_types_are_refused() {
    let index = Arc::new(Index::from_bytes(squares()).expect("opens"));
    let error = Map::<i64, u64>::from_index(Arc::clone(&index)).expect_err("other keys");
    assert_eq!((error.kind(), error.code(), error.path()), (ErrorKind::TypesDiffer, "types-differ", None));
    assert_eq!(
        error.to_string(),
        "types differ: bytes in memory: it holds u64 keys with u64 values, not i64 keys with u64 values: ask for its \
         types"
    );
    assert!(Map::<u64, String>::from_index(Arc::clone(&index)).is_err());
    assert!(Map::<u64, (u64,)>::from_index(Arc::clone(&index)).is_err());
    assert!(Map::<u64, Row>::from_index(Arc::clone(&index)).is_err());
    assert!(BytesMap::<u64>::from_index(Arc::clone(&index)).is_err());
    let any = AnyMap::from_index(index).expect("any types");
    let key = crate::Datum::from(7u32);
    assert_eq!(any.get(&key).expect_err("another type").kind(), ErrorKind::TypesDiffer);
    assert_eq!(any.get_many(&[key]).expect_err("another type").kind(), ErrorKind::TypesDiffer);
}

#[test]
fn buffers_that_are_too_short_are_refused() {
    let map: Map<u64, u64> = Map::from_bytes(squares()).expect("opens");
    let mut present = Bitmap::new(3);
    let error = map.get_batch(&[1, 2, 3], &mut [0; 2], &mut present).expect_err("too short");
    assert_eq!((error.kind(), present.count_ones()), (ErrorKind::Usage, 0));
    assert_eq!(map.get_batch(&[1, 5000, 3], &mut [0; 4], &mut present).expect("reads"), 2);
    assert_eq!(present, [true, false, true].into_iter().collect());
    assert!(std::error::Error::source(&error).is_none() && error.get_ref().is_some());
}

#[test]
fn generations_are_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.pleach");
    let build = |value: u64| Builder::new().build(&path, [(1u32, value)]).expect("builds");
    build(1);
    let live: Live<Map<u32, u64>> = Live::open(&path).expect("opens");
    let mut map = Map::<u32, u64>::open(&path).expect("opens");
    let mut any = AnyMap::open(&path).expect("opens");
    let (old, clone) = (live.current(), map.clone());
    assert!(!live.refresh().expect("looks") && !map.refresh().expect("looks"));
    build(2);
    assert!(live.refresh().expect("looks") && map.refresh().expect("looks"));
    assert!(any.refresh().expect("looks"));
    for (map, value) in [(&*live.current(), 2), (&map, 2), (&*old, 1), (&clone, 1)] {
        assert_eq!(map.get(1).expect("reads"), Some(value));
    }
    // Other types: the old generation stays.
    Builder::new().build(&path, [("a", 1u64)]).expect("builds");
    assert_eq!(live.refresh().expect_err("other types").kind(), ErrorKind::TypesDiffer);
    assert_eq!(map.refresh().expect_err("other types").kind(), ErrorKind::TypesDiffer);
    assert_eq!(live.current().get(1).expect("reads"), Some(2));
}

#[test]
fn errors_end_pieces() {
    let mut calls = 0;
    let found = in_pieces(0..10_000u32, |keys| {
        calls += 1;
        if calls == 2 { Err(ReadError::MappingLost.into()) } else { Ok(vec![Some(()); keys.len()]) }
    });
    let found: Vec<_> = found.collect();
    assert_eq!(found.len(), PIECE + 1);
    assert!(found[..PIECE].iter().all(Result::is_ok) && found[PIECE].is_err());
}
