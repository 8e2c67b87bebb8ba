//! Every look-up on an index whose bytes may hold anything: it ends, and stays within the tuples.
//!
//! Nothing is said about answers: these files were not verified. What is looked at is that there are answers, as
//! many as there may be, and no panic, loop or read outside the file (which sanitizers and Miri see).

use crate::generate::Random;
use pleach::{
    FsckOptions, Index, Key, KeyType, Near, OpenOptions, Strings, Structure, Tuples, Value, ValueType,
    Verdict, fsck,
};
use pleach_builder::Silent;
use pleach_builder::rebuild::{CompactOptions, compact};
use pleach_format::Word;
use std::fmt::Debug;
use std::fs;
use std::ops::Bound;
use std::path::Path;

/// Look-ups of [`roam`] for a query alone: every `view.` and `keys_only.` in its loop.
const SINGLE: u64 = 12;

/// Every look-up on a file of numbers; how many there were. Panics where one fails or leaves the tuples.
pub fn roam<K: Key, V: Value + Debug>(index: &Index, queries: &[K], random: &mut Random) -> u64 {
    let view = index.typed::<K, V>().expect("types of the file");
    let keys_only = index.typed::<K, ()>().expect("keys of the file");
    let len = index.len();
    for &query in queries {
        let lower = view.lower_bound(query).expect("unverified");
        let upper = view.upper_bound(query).expect("unverified");
        assert!(lower <= len && upper <= len);
        assert!(view.rank(query).expect("unverified").is_none_or(|rank| rank < len));
        assert_eq!(view.get(query).expect("unverified").is_some(), view.contains(query).expect("unverified"));
        assert!(view.count(query..).expect("unverified") <= len);
        let other = K::decode(K::Word::from_u64(random.next()));
        assert!(view.range(query..other).expect("unverified").take(40).count() <= 40);
        assert!(view.range(query..=other).expect("unverified").rev().take(40).all(|tuple| tuple.is_ok()));
        assert!(keys_only.get_all(query).expect("unverified").take(40).count() <= 40);
        let rank = random.below(len + 2);
        assert_eq!(view.select(rank).expect("unverified").is_some(), rank < len);
        let (mut keys, mut values) = ([K::default(); 37], [V::default(); 37]);
        let copied = view.copy_range(rank, &mut keys, &mut values).expect("unverified");
        assert_eq!(copied as u64, len.saturating_sub(rank).min(37));
        let mut scanned = 0;
        let count = view.scan(rank..rank + 600, |keys, _| scanned += keys.len() as u64).expect("unverified");
        assert_eq!((count, scanned), (scanned, len.saturating_sub(rank).min(600)));
    }
    assert_eq!(view.min().expect("unverified").is_some(), len > 0);
    assert_eq!(view.max().expect("unverified").is_some(), len > 0);
    let mut ranks = vec![u64::MAX; queries.len()];
    view.lower_bound_batch(queries, &mut ranks).expect("unverified");
    assert!(ranks.iter().all(|&rank| rank <= len));
    let mut values = vec![V::default(); queries.len()];
    let mut present = vec![u64::MAX; queries.len().div_ceil(64)];
    let found = view.get_batch(queries, &mut values, &mut present).expect("unverified");
    let ones: u32 = present.iter().map(|word| word.count_ones()).sum();
    assert_eq!(found, ones as usize);
    assert!(view.contains_batch(queries, &mut present).expect("unverified") <= queries.len());
    if !cfg!(miri) {
        view.par_lower_bound_batch(queries, &mut ranks).expect("unverified");
        assert!(ranks.iter().all(|&rank| rank <= len));
        assert!(view.par_get_batch(queries, &mut values, &mut present).expect("unverified") <= queries.len());
    }
    for near in [Near::Floor, Near::Ceiling, Near::Nearest] {
        let mut keys = vec![K::default(); queries.len()];
        let to =
            Tuples { ranks: &mut ranks, values: &mut values, present: &mut present, ..Tuples::default() };
        let found = view.near_batch(near, queries, to).expect("unverified");
        let ones: u32 = present.iter().map(|word| word.count_ones()).sum();
        assert_eq!(found, ones as usize);
        assert!(ranks.iter().all(|&rank| rank < len || rank == u64::MAX));
        let to = Tuples { keys: &mut keys, values: &mut values, ..Tuples::default() };
        assert!(view.near_batch(near, queries, to).expect("unverified") <= queries.len());
        for few in queries.chunks(3).take(20) {
            let to = Tuples { ranks: &mut ranks, values: &mut values, ..Tuples::default() };
            assert!(view.near_batch(near, few, to).expect("unverified") <= few.len());
        }
    }
    let held = view.interval_batch(queries, &mut values, &mut present).expect("unverified");
    assert!(held <= queries.len());
    assert!(index.meta().is_ok());
    queries.len() as u64 * (SINGLE + if cfg!(miri) { 12 } else { 14 })
}

/// Every look-up on a file of byte strings. Reading keys may fail: their lengths are stored in the file.
pub fn roam_strings<V: Value + Debug>(view: &Strings<'_, V>, queries: &[Vec<u8>], random: &mut Random) {
    let len = view.len();
    for query in queries {
        if let (Ok(lower), Ok(upper)) = (view.lower_bound(query), view.upper_bound(query)) {
            assert!(lower <= len && upper <= len);
        }
        let _ = (view.get(query), view.contains(query), view.comparisons(query));
        assert!(view.rank(query).ok().flatten().is_none_or(|rank| rank < len));
        let prefix = &query[..random.below(query.len() as u64 + 1) as usize];
        let _ = view.prefix(prefix).map(|range| range.take(40).count());
        let _ = view.get_all(query).map(|range| range.take(40).count());
        let _ = view.select(random.below(len + 2));
        let _ = view.count((Bound::Included(query.as_slice()), Bound::Unbounded));
    }
    let _ = (view.min(), view.max());
    let mut ranks = vec![u64::MAX; queries.len()];
    if view.lower_bound_batch(queries, &mut ranks).is_ok() {
        assert!(ranks.iter().all(|&rank| rank <= len));
    }
    let (mut values, mut present) = (vec![V::default(); queries.len()], vec![0; queries.len().div_ceil(64)]);
    if let Ok(found) = view.get_batch(queries, &mut values, &mut present) {
        assert!(found <= queries.len());
    }
    let _ = view.contains_batch(queries, &mut present);
    assert!(view.ranks(0..u64::MAX).take(2000).count() as u64 <= len);
}

/// Every look-up on an index of any types, in every section and by every structure it has. Panics as [`roam`] does.
pub fn roam_all(index: &Index, random: &mut Random) {
    roam_one(index, random);
    for structure in Structure::ALL.into_iter().skip(1).filter(|structure| structure.is_in(index.header())) {
        let options = OpenOptions::default().structure(structure);
        if let Ok(index) = options.from_bytes(index.as_bytes().into_owned()) {
            roam_one(&index, random);
        }
    }
}

fn roam_one(index: &Index, random: &mut Random) {
    if index.key_type().is_bytes() {
        let strings = queries(index, random);
        match index.value_type() {
            ValueType::U64 => index.strings::<u64>().iter().for_each(|v| roam_strings(v, &strings, random)),
            ValueType::U32 => index.strings::<u32>().iter().for_each(|v| roam_strings(v, &strings, random)),
            _ => index.strings::<()>().iter().for_each(|v| roam_strings(v, &strings, random)),
        }
    } else {
        // The pairs that whole files have; of others, which a forger makes, the keys. All types together
        // take a minute to compile.
        match (index.key_type(), index.value_type()) {
            (KeyType::U64, ValueType::U64) => roam_numbers::<u64, u64>(index, random),
            (KeyType::U32, ValueType::U32) => roam_numbers::<u32, u32>(index, random),
            (KeyType::U128, ValueType::U32) => roam_numbers::<u128, u32>(index, random),
            (KeyType::I64, _) => roam_numbers::<i64, ()>(index, random),
            #[cfg(feature = "all-types")]
            (KeyType::U64, _) => roam_numbers::<u64, ()>(index, random),
            #[cfg(feature = "all-types")]
            (KeyType::U32, _) => roam_numbers::<u32, ()>(index, random),
            #[cfg(feature = "all-types")]
            (KeyType::I32, _) => roam_numbers::<i32, ()>(index, random),
            #[cfg(feature = "all-types")]
            (KeyType::F64, _) => roam_numbers::<f64, ()>(index, random),
            #[cfg(feature = "all-types")]
            (KeyType::U128, _) => roam_numbers::<u128, ()>(index, random),
            #[cfg(feature = "all-types")]
            (key, _) => panic!("keys of {key} are not looked at"),
            #[cfg(not(feature = "all-types"))]
            _ => {}
        }
        roam_sections(index, random);
    }
    for column in [index.key_column(), index.value_column()].into_iter().flatten() {
        for rank in [0, 1, index.len() / 2, index.len().saturating_sub(1), index.len(), u64::MAX] {
            assert!(column.get(rank).map_or(true, |found| found.is_none() || rank < index.len()));
        }
    }
    let _ = (index.meta(), index.record(), index.describe());
}

/// [`roam`] with keys of the file, and others.
fn roam_numbers<K: Key, V: Value + Debug>(index: &Index, random: &mut Random) {
    let view = index.typed::<K, V>().expect("types of the file");
    let mut queries: Vec<K> = (0..4)
        .filter_map(|_| view.select(random.below(index.len() + 1)).ok().flatten().map(|tuple| tuple.0))
        .collect();
    queries.extend([0, 1, u64::MAX, random.next()].map(|word| K::decode(K::Word::from_u64(word))));
    roam::<K, V>(index, &queries, random);
}

/// The trees and the packed keys of a file of numbers.
fn roam_sections(index: &Index, random: &mut Random) {
    let words: Vec<u64> = [0, 1, u64::MAX, random.next(), random.next() >> 32].to_vec();
    match index.key_type() {
        KeyType::U64 => roam_trees::<u64>(index, &words),
        KeyType::I64 => roam_trees::<i64>(index, &words),
        KeyType::U32 => roam_trees::<u32>(index, &words),
        KeyType::I32 => roam_trees::<i32>(index, &words),
        _ => {}
    }
}

fn roam_trees<K: Key>(index: &Index, words: &[u64]) {
    let queries: Vec<K> = words.iter().map(|&word| K::decode(K::Word::from_u64(word))).collect();
    let mut ranks = vec![0; queries.len()];
    if let Ok(Some(tree)) = index.harmonia::<K, ()>() {
        if tree.lower_bounds(&queries, &mut ranks).is_ok() {
            assert!(ranks.iter().all(|&rank| rank <= index.len()));
        }
        for (&low, &high) in queries.iter().zip(&queries[1..]) {
            let _ = tree.range(low, high).map(|range| range.take(40).count());
            let _ = tree.get(low);
        }
    }
    if let Some(packed) = index.packed_keys::<K>() {
        let mut keys = Vec::new();
        for rank in [0, 1, index.len() / 2, index.len().saturating_sub(1), index.len(), u64::MAX] {
            assert!(packed.get(rank).map_or(true, |found| found.is_none() || rank < index.len()));
            let ranks = rank.min(index.len())..rank.saturating_add(70).min(index.len());
            let _ = packed.read(ranks, &mut keys);
        }
    }
}

/// Strings to ask for: some of the file, and some of chance.
fn queries(index: &Index, random: &mut Random) -> Vec<Vec<u8>> {
    let mut queries = vec![Vec::new(), vec![0], vec![0xFF; 40], random.next().to_le_bytes().to_vec()];
    if let Ok(view) = index.strings::<()>() {
        let found = (0..4).filter_map(|_| view.key(random.below(index.len() + 1)).ok().flatten());
        queries.extend(found);
    }
    if let KeyType::Fixed(bytes) = index.key_type() {
        // Keys of a fixed size are looked up by keys of that size.
        queries.iter_mut().for_each(|query| query.resize(bytes.into(), b'0'));
    }
    queries
}

/// Salvages any file. Panics if the result is not a whole file, or much larger.
pub fn save(path: &Path) {
    let saved = path.with_extension("saved");
    let options = CompactOptions { salvage: true, ..CompactOptions::default() };
    if compact(&[path.to_owned()], &saved, &options, &Silent).is_ok() {
        let report = fsck(&saved, &FsckOptions::default()).expect("readable");
        assert_eq!(report.verdict, Verdict::Clean, "{:?}", report.findings);
        let bytes = |path: &Path| fs::metadata(path).expect("a file").len();
        assert!(bytes(&saved) <= 4 * bytes(path) + (1 << 20), "{} of {} bytes", bytes(&saved), bytes(path));
        fs::remove_file(&saved).expect("removed");
    }
}
