//! Random tuples of every pair of types: built on every way there is, searched by every operation.

use pleach::{Index, Isa, Key, Value};
use pleach_builder::{BuildOptions, Unique, build_bytes};
use pleach_format::{Bits, Word};
use pleach_tests::generate::{Random, Shape, mix};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;

/// A key as chance likes it: anywhere, in a few clusters, of few different ones, at the ends.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0u64..6, 0u64..40).prop_map(|(cluster, offset)| mix(cluster).wrapping_add(offset)),
        0u64..50,
        (0u64..4).prop_map(|distance| u64::MAX - distance),
        (0u32..64, 0u64..3).prop_map(|(bit, offset)| (1 << bit) - 1 + offset),
    ]
}

fn tuples<K: Key + Ord, V: Value>(words: &[(u64, u64)]) -> Vec<(K, V)> {
    // Never NaN: tuples are compared here.
    let value = |bits: u64| V::from_bits(V::Bits::from_u64(bits & 0x3FFF_FFFF_3FFF_FFFF));
    words.iter().map(|&(key, bits)| (K::decode(K::Word::from_u64(key)), value(bits))).collect()
}

/// The bytes do not depend on the way they were made.
fn built_alike<K: Key + Ord, V: Value>(input: &[(K, V)]) -> Result<Vec<u8>, TestCaseError> {
    let plain = BuildOptions { threads: 1, ..BuildOptions::default() };
    let bytes = build_bytes(input, &plain).expect("built");
    let mut sorted = input.to_vec();
    sorted.sort_by_key(|tuple| tuple.0.encode());
    for threads in [1, 2] {
        for memory_bytes in [1, 1 << 20, 1 << 30] {
            let options = BuildOptions { threads, memory_bytes, ..BuildOptions::default() };
            let way = format!("{threads} threads, {memory_bytes} bytes");
            prop_assert!(build_bytes(input, &options).expect("built") == bytes, "{} unsorted", way);
            prop_assert!(build_bytes(&sorted, &options).expect("built") == bytes, "{} sorted", way);
        }
    }
    let promised = BuildOptions { sorted: true, ..plain };
    prop_assert!(build_bytes(&sorted, &promised).expect("built") == bytes);
    if input.windows(2).any(|pair| pair[0].0 > pair[1].0) {
        prop_assert!(build_bytes(input, &promised).is_err());
    }
    Ok(bytes)
}

/// Every operation against an oracle that knows nothing of files.
fn answers_alike<K: Key + Ord, V: Value + Debug>(
    bytes: Vec<u8>,
    sorted: &[(K, V)],
    probes: &[K],
    isa: Isa,
) -> Result<(), TestCaseError> {
    let mut oracle: BTreeMap<K, Vec<V>> = BTreeMap::new();
    for &(key, value) in sorted {
        oracle.entry(key).or_default().push(value);
    }
    let index = Index::options().isa(Some(isa)).from_bytes(bytes).expect("opens");
    let view = index.typed::<K, V>().expect("types of the file");
    let keys_only = index.typed::<K, ()>().expect("keys of the file");
    let all: Result<Vec<_>, _> = view.range(..).expect("readable").collect();
    prop_assert_eq!(all.expect("readable"), sorted);
    let back: Result<Vec<_>, _> = view.range(..).expect("readable").rev().collect();
    prop_assert!(back.expect("readable").iter().rev().eq(sorted));
    prop_assert_eq!(view.len(), sorted.len() as u64);
    prop_assert_eq!(view.min(), Ok(sorted.first().copied()));
    prop_assert_eq!(view.max(), Ok(sorted.last().copied()));
    prop_assert_eq!(view.select(sorted.len() as u64), Ok(None));

    let before = |key: K| oracle.range(..key).map(|(_, values)| values.len() as u64).sum::<u64>();
    let through = |key: K| oracle.range(..=key).map(|(_, values)| values.len() as u64).sum::<u64>();
    let mut ranks = vec![u64::MAX; probes.len()];
    view.lower_bound_batch(probes, &mut ranks).expect("readable");
    let mut values = vec![V::default(); probes.len()];
    let mut present = vec![u64::MAX; probes.len().div_ceil(64)];
    let found = view.get_batch(probes, &mut values, &mut present).expect("readable");
    prop_assert_eq!(found, probes.iter().filter(|&key| oracle.contains_key(key)).count());
    for (i, &key) in probes.iter().enumerate() {
        let wanted = oracle.get(&key);
        let first = wanted.and_then(|values| values.first().copied());
        prop_assert_eq!(view.get(key), Ok(first));
        prop_assert_eq!(view.contains(key), Ok(first.is_some()));
        prop_assert_eq!(keys_only.contains(key), Ok(first.is_some()));
        prop_assert_eq!(view.rank(key), Ok(first.map(|_| before(key))));
        prop_assert_eq!(view.lower_bound(key), Ok(before(key)));
        prop_assert_eq!(view.upper_bound(key), Ok(through(key)));
        prop_assert_eq!(ranks[i], before(key));
        prop_assert_eq!(present[i / 64] >> (i % 64) & 1, u64::from(first.is_some()));
        prop_assert_eq!(values[i], first.unwrap_or_default());
        let all: Result<Vec<_>, _> =
            view.get_all(key).expect("readable").map(|tuple| tuple.map(|tuple| tuple.1)).collect();
        prop_assert_eq!(all.expect("readable"), wanted.cloned().unwrap_or_default());
        prop_assert_eq!(view.select(before(key)), Ok(sorted.get(before(key) as usize).copied()));
    }
    for pair in probes.windows(2) {
        for bounds in [
            (Bound::Included(pair[0]), Bound::Excluded(pair[1])),
            (Bound::Excluded(pair[0]), Bound::Included(pair[1])),
            (Bound::Included(pair[0]), Bound::Unbounded),
            (Bound::Unbounded, Bound::Excluded(pair[1])),
        ] {
            // A range whose start is after its end is empty here, where BTreeMap panics.
            let wanted: Vec<(K, V)> =
                if pair[0] >= pair[1] && bounds.0 != Bound::Unbounded && bounds.1 != Bound::Unbounded {
                    Vec::new()
                } else {
                    oracle
                        .range(bounds)
                        .flat_map(|(&key, values)| values.iter().map(move |&value| (key, value)))
                        .collect()
                };
            prop_assert_eq!(view.count(bounds), Ok(wanted.len() as u64));
            let range = view.range(bounds).expect("readable");
            prop_assert_eq!(range.len(), wanted.len());
            let found: Result<Vec<_>, _> = range.collect();
            prop_assert_eq!(found.expect("readable"), wanted);
        }
    }
    Ok(())
}

/// One kind of tuples: few enough for proptest to shrink.
fn check<K: Key + Ord, V: Value + Debug>(words: &[(u64, u64)], probes: &[u64]) -> Result<(), TestCaseError> {
    let input = tuples::<K, V>(words);
    let bytes = built_alike(&input)?;
    let mut sorted = input.clone();
    sorted.sort_by_key(|tuple| tuple.0.encode());
    let near = input.iter().step_by(7).map(|tuple| tuple.0.encode().to_u128() as u64);
    let near = near.flat_map(|word| [word, word.wrapping_add(1), word.wrapping_sub(1)]);
    let probes: Vec<K> =
        probes.iter().copied().chain(near).map(|word| K::decode(K::Word::from_u64(word))).collect();
    for isa in Isa::available() {
        answers_alike(bytes.clone(), &sorted, &probes, isa)?;
    }

    // One of the tuples with equal keys is kept.
    let mut firsts = sorted.clone();
    firsts.dedup_by_key(|tuple| tuple.0);
    let mut lasts: Vec<(K, V)> = sorted.iter().rev().copied().collect();
    lasts.dedup_by_key(|tuple| tuple.0);
    lasts.reverse();
    for (unique, wanted) in [(Unique::First, firsts), (Unique::Last, lasts)] {
        let expected =
            build_bytes(&wanted, &BuildOptions { unique: Some(Unique::Error), ..BuildOptions::default() });
        for memory_bytes in [1, 1 << 30] {
            let options =
                BuildOptions { unique: Some(unique), memory_bytes, threads: 2, ..BuildOptions::default() };
            let found = build_bytes(&input, &options).expect("built");
            prop_assert!(Some(&found) == expected.as_ref().ok(), "{:?}, {} bytes", unique, memory_bytes);
        }
    }
    let strict = BuildOptions { unique: Some(Unique::Error), ..BuildOptions::default() };
    let twice = sorted.windows(2).any(|pair| pair[0].0 == pair[1].0);
    prop_assert_eq!(build_bytes(&input, &strict).is_err(), twice);
    Ok(())
}

/// More tuples than fit into a spilled run, of a shape, shuffled.
fn check_shape<K: Key + Ord, V: Value + Debug>(
    shape: Shape,
    count: usize,
    seed: u64,
) -> Result<(), TestCaseError> {
    let mut words = shape.words(count, 8 * K::Word::BYTES as u32, seed);
    let mut random = Random(seed);
    if !seed.is_multiple_of(4) {
        for i in (1..words.len()).rev() {
            words.swap(i, random.below(i as u64 + 1) as usize);
        }
    }
    let words: Vec<(u64, u64)> = (0..).zip(words).map(|(i, word)| (word, mix(i))).collect();
    let input = tuples::<K, V>(&words);
    let bytes = built_alike(&input)?;
    let mut sorted = input;
    sorted.sort_by_key(|tuple| tuple.0.encode());
    let probes: Vec<K> = sorted.iter().step_by(count / 40 + 1).map(|tuple| tuple.0).collect();
    answers_alike(bytes, &sorted, &probes, Isa::best())
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

macro_rules! properties {
    ($($name:ident, $shaped:ident: $key:ty, $value:ty;)*) => {$(
        proptest! {
            #![proptest_config(config(24))]
            #[test]
            fn $name(words in vec((word(), any::<u64>()), 0..400), probes in vec(word(), 1..40)) {
                check::<$key, $value>(&words, &probes)?;
            }
        }
        proptest! {
            #![proptest_config(config(6))]
            #[test]
            fn $shaped(shape in 0..Shape::ALL.len(), count in 1000usize..6000, seed in any::<u64>()) {
                check_shape::<$key, $value>(Shape::ALL[shape], count, seed)?;
            }
        }
    )*};
}
properties! {
    u64_u64, u64_u64_shapes: u64, u64;
    u64_u32, u64_u32_shapes: u64, u32;
    u64_none, u64_none_shapes: u64, ();
    u32_u32, u32_u32_shapes: u32, u32;
    u32_f64, u32_f64_shapes: u32, f64;
    i32_f32, i32_f32_shapes: i32, f32;
    i32_none, i32_none_shapes: i32, ();
    i64_i64, i64_i64_shapes: i64, i64;
}
