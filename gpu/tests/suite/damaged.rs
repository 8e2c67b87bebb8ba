//! Tables whose lines hold anything, under a correct header whose sums were not verified: answers stay within
//! the table, and nothing outside of it is read, which `compute-sanitizer` sees on a device and the address
//! sanitizer on a CPU that stands for one.

use super::mix;
use pleach::{Index, Key, KeyType, Tuples, Value, ValueType};
use pleach_builder::{BuildOptions, build_slice, build_strings};
use pleach_format::Word;
use pleach_format::superblock::Superblock;
use pleach_gpu::{Algorithm, Gpu, GpuError, GpuTable, Residence};
use pleach_kit::generate::Random;
use pleach_kit::mutate::{SCRAMBLES, reseal_head, scramble};
use std::mem::offset_of;

/// Bytes of the superblock where the smallest and the largest key begin.
const KEYS_AT: [usize; 2] = [offset_of!(Superblock, min_key), offset_of!(Superblock, max_key)];

/// An answer, or a refusal of such a table: no defect of a kernel, and no lost device.
fn answered<T>(found: Result<T, GpuError>, what: &str) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(GpuError::Types { .. } | GpuError::Memory { .. } | GpuError::Algorithm { .. }) => None,
        Err(error) => panic!("{what}: {error}"),
    }
}

/// A damaged copy of a file: by the kinds of [`scramble`], then the first of them again under forged ends
/// of the keys.
fn damaged(whole: &[u8], kind: u64, key_bytes: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    scramble(&mut bytes, random, kind);
    if kind >= SCRAMBLES {
        let mut ends = [random.next(), random.next()];
        ends.sort_unstable();
        for (at, end) in KEYS_AT.into_iter().zip(ends) {
            let end = &end.to_be_bytes()[..key_bytes.min(8)];
            bytes[at..at + end.len()].copy_from_slice(end);
        }
        reseal_head(&mut bytes);
    }
    bytes
}

/// So many kinds of damage.
const KINDS: u64 = SCRAMBLES + 2;

fn has_as_many(found: usize, present: &[u64], what: &str) {
    let ones: u32 = present.iter().map(|word| word.count_ones()).sum();
    assert_eq!(found, ones as usize, "{what}");
}

/// Asks for everything that a table of numbers answers; how many look-ups that were.
fn ask<K: Key, V: Value>(
    index: &Index,
    gpu: &Gpu,
    residence: Residence,
    algorithms: &[Algorithm],
    queries: &[K],
    name: &str,
) -> u64 {
    let Some(table) = answered(GpuTable::with_residence(index, gpu, residence), name) else { return 0 };
    let (take, words) = (queries.len(), queries.len().div_ceil(64));
    let mut asked = 0;
    for &algorithm in algorithms {
        let what = format!("{algorithm:?}, {residence:?}: {name}");
        let (mut values, mut present) = (vec![V::default(); take], vec![0; words]);
        let found = table.get_batch_by(algorithm, queries, &mut values, &mut present);
        if let Some(found) = answered(found, &what) {
            has_as_many(found, &present, &what);
            asked += take as u64;
        }
        let mut ranks = vec![0; take];
        if answered(table.lower_bound_batch_by::<K, V>(algorithm, queries, &mut ranks), &what).is_some() {
            assert!(ranks.iter().all(|&rank| rank <= index.len()), "{what}");
            asked += take as u64;
        }
    }
    for near in super::near::KINDS {
        for algorithm in ours() {
            let what = format!("{near:?} {algorithm:?}, {residence:?}: {name}");
            let (mut ranks, mut keys, mut values) =
                (vec![0; take], vec![K::default(); take], vec![V::default(); take]);
            let mut present = vec![0; words];
            let to =
                Tuples { ranks: &mut ranks, keys: &mut keys, values: &mut values, present: &mut present };
            if let Some(found) = answered(table.near_batch_by(algorithm, near, queries, to), &what) {
                has_as_many(found, &present, &what);
                assert!(ranks.iter().all(|&rank| rank < index.len() || rank == u64::MAX), "{what}");
                asked += take as u64;
            }
        }
    }
    let few = &queries[..take.min(40)];
    if let Some(all) = answered(table.get_all_by::<K, V>(Algorithm::Auto, few), name) {
        assert!(all.ranks.iter().all(|&rank| rank <= index.len()), "{name}");
        assert!(all.offsets.windows(2).all(|pair| pair[0] <= pair[1]), "{name}");
        let values = if V::TYPE == ValueType::None { 0 } else { all.offsets[few.len()] };
        assert_eq!(all.values.len() as u64, values, "{name}");
        asked += few.len() as u64;
    }
    asked
}

/// Tables of one pair of types, damaged in every way.
fn numbers<K: Key, V: Value>(
    gpu: &Gpu,
    algorithms: &[Algorithm],
    mut tuples: Vec<(K, V)>,
    ends: &[K],
    queries_max: usize,
    turn: &mut usize,
) -> u64 {
    tuples.sort_by_key(|tuple| tuple.0.encode());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    build_slice(&tuples, &path, &BuildOptions::default()).expect("built");
    let whole = std::fs::read(&path).expect("readable");
    let mut random = Random(mix(tuples.len() as u64));
    let every = tuples.len().div_ceil(queries_max);
    let some = tuples.iter().step_by(every).map(|tuple| tuple.0);
    let mut queries: Vec<K> = some.chain(ends.iter().copied()).collect();
    let count = queries.len();
    (0..count).for_each(|i| queries.swap(i, (mix(i as u64) % count as u64) as usize));
    let mut asked = 0;
    for kind in 0..KINDS {
        *turn += 1;
        let bytes = damaged(&whole, kind, K::Word::BYTES, &mut random);
        let index = Index::options().from_bytes(bytes).expect("the header is right");
        let residence = Residence::ALL[*turn % Residence::ALL.len()];
        let name = format!("damage {kind} of {} tuples of {}, {}", tuples.len(), K::TYPE, V::TYPE);
        asked += ask::<K, V>(&index, gpu, residence, algorithms, &queries, &name);
        queries.sort_by_key(|key| key.encode());
        asked += ask::<K, V>(&index, gpu, Residence::Device, &ours(), &queries, &name);
        queries.reverse();
    }
    asked
}

/// Algorithms that answer without a request.
fn ours() -> [Algorithm; 3] {
    [Algorithm::Auto, Algorithm::Spine, Algorithm::Sweep]
}

/// Strings whose words are whole keys.
fn strings(gpu: &Gpu, algorithms: &[Algorithm], count: u64) -> u64 {
    let digits = |i: u64| format!("{:016}", mix(i) % 10_000_000_000_000_000).into_bytes();
    let mut tuples: Vec<(Vec<u8>, u64)> = (0..count).map(|i| (digits(i), i)).collect();
    tuples.sort();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    build_strings(KeyType::Fixed(16), &tuples, &path, &BuildOptions::default()).expect("built");
    let whole = std::fs::read(&path).expect("readable");
    let queries: Vec<Vec<u8>> = tuples.into_iter().map(|tuple| tuple.0).chain([vec![0xFF; 16]]).collect();
    let (take, words) = (queries.len(), queries.len().div_ceil(64));
    let mut random = Random(count);
    let mut asked = 0;
    for kind in 0..SCRAMBLES {
        let bytes = damaged(&whole, kind, 16, &mut random);
        let index = Index::options().from_bytes(bytes).expect("the header is right");
        let name = format!("damage {kind} of {count} strings");
        let Some(table) = answered(GpuTable::new(&index, gpu), &name) else { continue };
        for &algorithm in algorithms {
            let what = format!("{algorithm:?}: {name}");
            let (mut values, mut present, mut ranks) = (vec![0u64; take], vec![0; words], vec![0; take]);
            let found = table.get_strings_by(algorithm, &queries[..], &mut values, &mut present);
            if let Some(found) = answered(found, &what) {
                has_as_many(found, &present, &what);
                asked += take as u64;
            }
            if answered(table.lower_bound_strings_by(algorithm, &queries[..], &mut ranks), &what).is_some() {
                assert!(ranks.iter().all(|&rank| rank <= count), "{what}");
                asked += take as u64;
            }
        }
    }
    asked
}

/// All types and residences, every algorithm with every damage, batches of `count` queries; returns the
/// number of look-ups.
///
/// `of_strings` search words of 16 bytes alone.
pub fn all(
    gpu: &Gpu,
    counts: &[u64],
    plain: &[Algorithm],
    of_strings: &[Algorithm],
    queries_max: usize,
) -> u64 {
    let with_strings = [plain, of_strings].concat();
    let mut turn = 0;
    let mut asked = 0;
    for &count in counts {
        let words: Vec<u64> = (0..count).map(|i| mix(i / 2)).collect();
        let of = |i: usize| mix(i as u64);
        let ends = [0, u64::MAX];
        let narrow = words.iter().enumerate().map(|(i, &word)| ((word >> 32) as u32, of(i) as u32)).collect();
        asked += numbers::<u32, u32>(gpu, plain, narrow, &[0, u32::MAX], queries_max, &mut turn);
        let wide = words.iter().enumerate().map(|(i, &word)| (word, of(i))).collect();
        asked += numbers::<u64, u64>(gpu, plain, wide, &ends, queries_max, &mut turn);
        let keys = words.iter().map(|&word| (word, ())).collect();
        asked += numbers::<u64, ()>(gpu, plain, keys, &ends, queries_max, &mut turn);
        let widest = |(i, &word): (usize, &u64)| (u128::from(word) << 40, of(i) as u32);
        let widest = words.iter().enumerate().map(widest).collect();
        asked += numbers::<u128, u32>(gpu, &with_strings, widest, &[0, u128::MAX], queries_max, &mut turn);
        asked += strings(gpu, plain, count);
    }
    asked
}
