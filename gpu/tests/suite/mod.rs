//! Tests for every device: all algorithms compared with the CPU's search, at edges, on keys of many kinds.
//!
//! Used with a GPU (`device.rs`) and with a CPU that runs the kernels' own text (`emulated.rs`).

#![allow(dead_code, reason = "each test program uses its part")]

pub mod damaged;
pub mod exact;
pub mod near;
pub mod sections;

use pleach::{Index, Key, KeyType, Value};
use pleach_builder::{BuildOptions, build_slice, build_strings};
use pleach_gpu::{
    Algorithm, BtreeForm, ChildRegion, FastForm, Gpu, GpuError, GpuTable, Group, HarmoniaForm, LiveTable,
    PinnedBatch, PinnedBuffer, QuerySort, Residence, Scan,
};

/// Numbers in no order.
pub fn mix(i: u64) -> u64 {
    let x = i.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) ^ x >> 31
}

/// Algorithms that search numbers, in every form; fewer for a quick look.
pub fn algorithms(is_quick: bool) -> Vec<Algorithm> {
    let mut all = vec![Algorithm::Auto, Algorithm::Spine, Algorithm::Sweep, Algorithm::Binary];
    for form in [FastForm::Paper, FastForm::Grid, FastForm::Ballot] {
        for &simultaneous in if is_quick { &[2][..] } else { &[1, 2, 4] } {
            all.push(Algorithm::Fast { form, simultaneous });
        }
    }
    for &order in if is_quick { &[16][..] } else { &[4, 5, 16, 64, 128] } {
        for form in [BtreeForm::Paper, BtreeForm::Grid] {
            all.push(Algorithm::Btree { order, form });
        }
    }
    all.extend(harmonia(is_quick));
    all
}

/// Harmonia's trees in every form, some parameters with each.
fn harmonia(is_quick: bool) -> Vec<Algorithm> {
    let form = |(fanout, fill), sort, group, scan, children| {
        Algorithm::Harmonia(HarmoniaForm { fanout, fill, sort, group, scan, children })
    };
    let mut all = vec![
        form((8, 50), QuerySort::Partial, Group::Auto, Scan::Keys, ChildRegion::Constant),
        form((64, 100), QuerySort::None, Group::Of(4), Scan::Vectors, ChildRegion::Shared),
        form((9, 69), QuerySort::Bits(9), Group::Auto, Scan::Halves, ChildRegion::Ldg),
    ];
    if !is_quick {
        all.extend([
            form((128, 69), QuerySort::Full, Group::Paper, Scan::Keys, ChildRegion::Constant),
            form((16, 100), QuerySort::Partial, Group::Whole, Scan::Vectors, ChildRegion::Constant),
            form((32, 50), QuerySort::None, Group::Of(2), Scan::Keys, ChildRegion::Shared),
            form((8, 100), QuerySort::Full, Group::Of(8), Scan::Halves, ChildRegion::Shared),
            form((64, 69), QuerySort::Bits(1), Group::Of(16), Scan::Keys, ChildRegion::Ldg),
        ]);
    }
    all
}

/// Compares all answers of a table with those of the CPU: queries at and beside the keys, and `ends`.
pub fn check<K: Key, V: Value>(
    gpu: &Gpu,
    algorithms: &[Algorithm],
    mut tuples: Vec<(K, V)>,
    near: impl Fn(K) -> [K; 3],
    ends: &[K],
    queries_max: usize,
) {
    tuples.sort_by_key(|tuple| tuple.0.encode());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    build_slice(&tuples, &path, &BuildOptions::default()).expect("built");
    let index = Index::open(&path).expect("opens");
    let view = index.typed::<K, V>().expect("the types");
    let table = GpuTable::new(&index, gpu).expect("fits");
    let every = (tuples.len() * 3).div_ceil(queries_max).max(1);
    let mut queries: Vec<K> =
        tuples.iter().step_by(every).flat_map(|tuple| near(tuple.0)).chain(ends.iter().copied()).collect();
    // Unordered, and not a multiple of a block.
    let count = queries.len();
    (0..count).for_each(|i| queries.swap(i, (mix(i as u64) % count as u64) as usize));
    let mut ascending = queries.clone();
    ascending.sort_by_key(|key| key.encode());
    let mut nearly = ascending.clone();
    if count > 1 {
        nearly.swap(count / 2, count / 2 - 1);
    }
    // Few of them, where that is fewer.
    let some = [1, 33, 1025].into_iter().filter(|&few| few < count).map(|few| &queries[..few]);
    for queries in [&queries[..], &ascending[..], &nearly[..]].into_iter().chain(some) {
        let (take, words) = (queries.len(), queries.len().div_ceil(64));
        let (mut wanted, mut there) = (vec![V::default(); take], vec![0; words]);
        let wanted_count = view.get_batch(queries, &mut wanted, &mut there).expect("answers");
        let mut right = vec![0; take];
        view.lower_bound_batch(queries, &mut right).expect("answers");
        for &algorithm in algorithms {
            let what = format!("{algorithm:?}: {} tuples of {}, {take} queries", tuples.len(), K::TYPE);
            let (mut values, mut present) = (vec![V::default(); take], vec![0; words]);
            let found = table
                .get_batch_by(algorithm, queries, &mut values, &mut present)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(found, wanted_count, "{what}");
            assert!(values == wanted && present == there, "{what}");
            let mut ranks = vec![0; take];
            table
                .lower_bound_batch_by::<K, V>(algorithm, queries, &mut ranks)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(ranks == right, "{what}");
        }
        // All queries in disorder, and those in order, for floors and ceilings.
        let is_some = take < count;
        let kinds = if is_some { &near::KINDS[2..] } else { &near::KINDS[..] };
        near::check_near(&table, &tuples, algorithms, queries, kinds);
    }
}

/// Keys of 64 bits of many kinds: spread, dense, in shards, crowded at one end, in runs, all equal, at the ends.
pub fn kinds(count: u64) -> [Vec<u64>; 7] {
    let all = |key: &dyn Fn(u64) -> u64| (0..count).map(key).collect();
    [
        all(&mix),
        all(&|i| (1 << 40) + i),
        all(&|i| ((i / 64) << 40) + i % 64),
        all(&|i| mix(i) >> (i % 64)),
        all(&|i| mix(i / 100)),
        all(&|_| 7),
        all(&|i| u64::MAX - mix(i) % 1000 * u64::from(i > 5)),
    ]
}

/// All key types and value widths, sizes at the edges of lines and nodes.
///
/// Ours are tried with each table, the papers' in turn, a fourth of them with each; `of_strings` search words of 16
/// bytes alone.
pub fn every_table(
    gpu: &Gpu,
    counts: &[u64],
    algorithms: &[Algorithm],
    of_strings: &[Algorithm],
    queries_max: usize,
) {
    let is_ours =
        |algorithm: &Algorithm| matches!(algorithm, Algorithm::Auto | Algorithm::Spine | Algorithm::Sweep);
    let mut turn = 0;
    for &count in counts {
        for keys in kinds(count) {
            turn += 1;
            let some = algorithms
                .iter()
                .enumerate()
                .filter(|(at, algorithm)| is_ours(algorithm) || (at + turn) % 4 == 0);
            let algorithms = &some.map(|(_, &algorithm)| algorithm).collect::<Vec<_>>()[..];
            let check_all = |width: usize| {
                let near = |key: u64| [key.saturating_sub(1), key, key.saturating_add(1)];
                let ends = [0, 1, u64::MAX - 1, u64::MAX];
                let near32 = |key: u32| [key.saturating_sub(1), key, key.saturating_add(1)];
                let ends32 = [0, 1, u32::MAX - 1, u32::MAX];
                let narrow = |key: u64| (key >> 32) as u32 ^ key as u32;
                let wide = |key: u64| u128::from(key) << 40 | u128::from(mix(key) >> 50);
                let near128 = |key: u128| [key.saturating_sub(1), key, key.saturating_add(1)];
                let ends128 = [0, 1, u128::MAX - 1, u128::MAX];
                let float = |key: u64| f64::from_bits(key & !(1 << 62));
                let near_float = |key: f64| [key.next_down(), key, key.next_up()];
                let ends_float = [f64::NEG_INFINITY, -0.0, 0.0, f64::MAX, f64::INFINITY];
                let near_signed = |key: i64| [key.saturating_sub(1), key, key.saturating_add(1)];
                let ends_signed = [i64::MIN, -1, 0, i64::MAX];
                let near_i32 = |key: i32| [key.saturating_sub(1), key, key.saturating_add(1)];
                let ends_i32 = [i32::MIN, -1, 0, i32::MAX];
                let with_strings = [algorithms, of_strings].concat();
                macro_rules! of {
                    ($make:expr, $near:expr, $ends:expr) => {
                        of!(algorithms, $make, $near, $ends)
                    };
                    ($algorithms:expr, $make:expr, $near:expr, $ends:expr) => {
                        match width {
                            0 => check(
                                gpu,
                                $algorithms,
                                keys.iter().map(|&key| ($make(key), ())).collect(),
                                $near,
                                &$ends,
                                queries_max,
                            ),
                            4 => check(
                                gpu,
                                $algorithms,
                                keys.iter().map(|&key| ($make(key), key as u32)).collect(),
                                $near,
                                &$ends,
                                queries_max,
                            ),
                            _ => check(
                                gpu,
                                $algorithms,
                                keys.iter().map(|&key| ($make(key), key ^ 5)).collect(),
                                $near,
                                &$ends,
                                queries_max,
                            ),
                        }
                    };
                }
                of!(|key| key, near, ends);
                of!(narrow, near32, ends32);
                of!(&with_strings, wide, near128, ends128);
                if width == 8 {
                    of!(float, near_float, ends_float);
                    of!(|key: u64| key as i64, near_signed, ends_signed);
                    of!(|key: u64| narrow(key) as i32, near_i32, ends_i32);
                }
            };
            [0, 4, 8].into_iter().for_each(check_all);
        }
    }
}

/// Wrong questions get errors.
pub fn refusals(gpu: &Gpu) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    build_slice(&[(1u64, 2u64)], &path, &BuildOptions::default()).expect("built");
    let index = Index::open(&path).expect("opens");
    let table = GpuTable::new(&index, gpu).expect("fits");
    assert!(matches!(table.get_batch(&[1u32], &mut [0u64], &mut [0]), Err(GpuError::Asked(_))));
    assert!(matches!(table.get_batch(&[1u64, 2], &mut [0u64], &mut [0]), Err(GpuError::Read(_))));
    assert!(matches!(table.get_batch(&[1u64], &mut [0u64], &mut []), Err(GpuError::Read(_))));
    // Longer buffers are filled at their start, as on the CPU.
    let (mut values, mut present) = ([9u64; 3], [9; 2]);
    assert!(table.get_batch(&[1u64], &mut values, &mut present).is_ok_and(|found| found == 1));
    assert_eq!((values, present), ([2, 9, 9], [1, 9]));
    let mut ranks = [9; 2];
    table.lower_bound_batch::<u64, u64>(&[5], &mut ranks).expect("answers");
    assert_eq!(ranks, [1, 9]);
    assert!(table.get_batch::<u64, u64>(&[], &mut [], &mut []).is_ok_and(|found| found == 0));
    let none: [(u64, u64); 0] = [];
    let path = folder.path().join("empty.pleach");
    build_slice(&none, &path, &BuildOptions::default()).expect("built");
    let index = Index::open(&path).expect("opens");
    let table = GpuTable::new(&index, gpu).expect("fits");
    let (mut values, mut present, mut ranks) = ([9u64; 3], [9], [9; 3]);
    assert_eq!(table.get_batch(&[0, 1, u64::MAX], &mut values, &mut present).expect("answers"), 0);
    table.lower_bound_batch::<u64, u64>(&[0, 1, u64::MAX], &mut ranks).expect("answers");
    assert_eq!((values, present, ranks), ([0; 3], [0], [0; 3]));
}

/// Every residence gives the same answers, and a limit of the device's memory is kept.
pub fn residences(gpu: &Gpu, count: u64) {
    let mut tuples: Vec<(u64, u64)> = (0..count).map(|i| (mix(i) >> 8, i)).collect();
    tuples.sort_unstable();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    build_slice(&tuples, &path, &BuildOptions::default()).expect("built");
    let index = Index::open(&path).expect("opens");
    let view = index.typed::<u64, u64>().expect("the types");
    let queries: Vec<u64> =
        (0..count).map(|i| tuples[(mix(!i) % count) as usize].0 ^ u64::from(i % 3 == 0)).collect();
    let words = queries.len().div_ceil(64);
    let mut sorted = queries.clone();
    sorted.sort_unstable();
    let asked = [&queries, &queries[..1000.min(queries.len())], &sorted].map(|queries| {
        let (mut wanted, mut there) = (vec![0; queries.len()], vec![0; queries.len().div_ceil(64)]);
        let found = view.get_batch(queries, &mut wanted, &mut there).expect("answers");
        (queries, wanted, there, found)
    });
    let (_, wanted, there, _) = &asked[0];
    for residence in Residence::ALL {
        let table = GpuTable::with_residence(&index, gpu, residence).expect("fits");
        for algorithm in [Algorithm::Auto, Algorithm::Spine, Algorithm::Binary] {
            for (queries, wanted, there, found) in &asked {
                let take = queries.len();
                let (mut values, mut present) = (vec![1; take], vec![1; take.div_ceil(64)]);
                let count =
                    table.get_batch_by(algorithm, queries, &mut values, &mut present).expect("answers");
                assert!(values == *wanted && present == *there, "{residence:?} {algorithm:?} {take}");
                assert_eq!(count, *found, "{residence:?} {algorithm:?} {take}");
            }
        }
        let mut keys = PinnedBuffer::new(gpu, queries.len() * 8).expect("pinned");
        for (bytes, key) in keys.as_mut_bytes().chunks_exact_mut(8).zip(&queries) {
            bytes.copy_from_slice(&key.to_le_bytes());
        }
        let values = PinnedBuffer::new(gpu, queries.len() * 8).expect("pinned");
        let present = PinnedBuffer::new(gpu, words * 8).expect("pinned");
        let batch = PinnedBatch { keys, count: queries.len(), values, present };
        let batch = table.get_pinned(Algorithm::Auto, batch).expect("queued").wait().expect("answers");
        let bytes: Vec<u8> = wanted.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert!(batch.values.as_bytes() == bytes, "{residence:?}");
        let bytes: Vec<u8> = there.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        assert!(batch.present.as_bytes() == bytes, "{residence:?}");
    }
}

/// Byte keys whose words are whole keys, and strings of 16 characters.
pub fn strings(gpu: &Gpu, counts: &[u64], algorithms: &[Algorithm]) {
    for &count in counts {
        let digits = |i: u64| format!("{:016}", mix(i) % 10_000_000_000_000_000).into_bytes();
        let short = |i: u64| format!("{}", mix(i) % 100_000).into_bytes();
        let raw = |i: u64| [mix(i).to_be_bytes(), mix(!i).to_be_bytes()].concat();
        for make in [&digits as &dyn Fn(u64) -> Vec<u8>, &short, &raw] {
            let mut tuples: Vec<(Vec<u8>, u64)> = (0..count).map(|i| (make(i), i)).collect();
            tuples.sort();
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("table.pleach");
            let lengths: Vec<usize> = tuples.iter().map(|tuple| tuple.0.len()).collect();
            let is_fixed = lengths.iter().all(|&length| length == 16);
            let key_type = if is_fixed { KeyType::Fixed(16) } else { KeyType::Bytes };
            build_strings(key_type, &tuples, &path, &BuildOptions::default()).expect("built");
            let index = Index::open(&path).expect("opens");
            if index.mask().is_some_and(|mask| !mask.is_lossless()) {
                let table = GpuTable::new(&index, gpu);
                assert!(matches!(table, Err(GpuError::Types { .. })));
                continue;
            }
            let table = GpuTable::new(&index, gpu).expect("fits");
            let mut queries: Vec<Vec<u8>> = tuples.iter().map(|tuple| tuple.0.clone()).collect();
            for (key, _) in &tuples {
                let mut longer = key.clone();
                longer.push(0);
                let mut other = key.clone();
                other[key.len() / 2] ^= 0x41;
                queries.extend([longer, other, key[..key.len() - 1].to_vec()]);
            }
            queries.extend([Vec::new(), vec![0xFF; 40]]);
            check_strings(&index, &table, algorithms, &queries, &format!("{count} tuples"));
        }
    }
}

/// Compares the answers of a table of byte keys with those of the CPU.
pub fn check_strings(
    index: &Index,
    table: &GpuTable<'_>,
    algorithms: &[Algorithm],
    queries: &[Vec<u8>],
    name: &str,
) {
    let view = index.strings::<u64>().expect("the types");
    let (take, words) = (queries.len(), queries.len().div_ceil(64));
    let (mut wanted, mut there, mut right) = (vec![0; take], vec![0; words], vec![0; take]);
    view.get_batch(queries, &mut wanted, &mut there).expect("answers");
    view.lower_bound_batch(queries, &mut right).expect("answers");
    for &algorithm in algorithms {
        let (mut values, mut present, mut ranks) = (vec![0; take], vec![0; words], vec![0; take]);
        table
            .get_strings_by(algorithm, queries, &mut values, &mut present)
            .unwrap_or_else(|error| panic!("{algorithm:?}: {error}"));
        assert!(values == wanted && present == there, "{algorithm:?}, {name}");
        table.lower_bound_strings_by(algorithm, queries, &mut ranks).expect("answers");
        assert!(ranks == right, "{algorithm:?}, {name}");
        for near in near::KINDS {
            let mut wanted = vec![0; take];
            let found = view.near_batch(near, queries, &mut wanted).expect("answers");
            let count = table.near_strings_by(algorithm, near, queries, &mut ranks).expect("answers");
            assert!(ranks == wanted && count == found, "{near:?} {algorithm:?}, {name}");
        }
    }
}

/// All tuples of keys that occur any number of times.
pub fn all_tuples(gpu: &Gpu, count: u64) {
    for spread in [1, 10, 3000] {
        let mut tuples: Vec<(u32, u32)> =
            (0..count).map(|i| ((mix(i) % (count / spread + 1)) as u32 * 2, i as u32)).collect();
        tuples.sort();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("table.pleach");
        build_slice(&tuples, &path, &BuildOptions::default()).expect("built");
        let index = Index::open(&path).expect("opens");
        let table = GpuTable::new(&index, gpu).expect("fits");
        let queries: Vec<u32> =
            (0..1000).map(|i| (mix(!i) % (count / spread + 3) * 2) as u32 + u32::from(i % 7 == 0)).collect();
        let all = table.get_all_by::<u32, u32>(Algorithm::Auto, &queries).expect("answers");
        assert_eq!(all.offsets.len(), queries.len() + 1);
        for (at, query) in queries.iter().enumerate() {
            let first = tuples.partition_point(|tuple| tuple.0 < *query);
            let end = tuples.partition_point(|tuple| tuple.0 <= *query);
            assert_eq!(all.ranks[at], first as u64);
            let values = &all.values[all.offsets[at] as usize..all.offsets[at + 1] as usize];
            assert!(values.iter().eq(tuples[first..end].iter().map(|tuple| &tuple.1)), "{query}");
        }
    }
}

/// Batches that are recorded answer as those that are queued, whatever was asked before.
pub fn recorded(gpu: &Gpu, count: u64, algorithms: &[Algorithm]) {
    let tuples: Vec<(u64, u64)> = (0..count).map(|i| (i * 3, mix(i))).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    build_slice(&tuples, &path, &BuildOptions::default()).expect("built");
    let index = Index::open(&path).expect("opens");
    let view = index.typed::<u64, u64>().expect("the types");
    for residence in [Residence::Device, Residence::Hybrid] {
        let table = GpuTable::with_residence(&index, gpu, residence).expect("fits");
        for &algorithm in algorithms {
            for length in [1usize, 33, 100] {
                let mut batch = match table.record_batch::<u64, u64>(algorithm, length) {
                    Ok(batch) => batch,
                    // Lines that are streamed: how many queries that takes is measured.
                    Err(GpuError::Algorithm { .. }) if residence == Residence::Hybrid => continue,
                    Err(error) => panic!("{algorithm:?}, {length} queries, {residence:?}: {error}"),
                };
                for turn in 0..3 {
                    let keys: Vec<u64> =
                        (0..length as u64).map(|i| mix(i + turn) % (3 * count + 2)).collect();
                    let words = length.div_ceil(64);
                    let (mut values, mut present) = (vec![9; length], vec![9; words]);
                    let (mut right, mut there) = (vec![0; length], vec![0; words]);
                    let found = batch.get(&keys, &mut values, &mut present).expect("answers");
                    assert_eq!(found, view.get_batch(&keys, &mut right, &mut there).expect("answers"));
                    assert!(
                        (values, present) == (right, there),
                        "{algorithm:?}, {length} queries, {residence:?}"
                    );
                }
                let refused = batch.get(&[1], &mut [], &mut []);
                assert!(matches!(refused, Err(GpuError::Read(_))), "{algorithm:?}");
            }
        }
        if residence == Residence::Device {
            // `auto` samples the order of this many.
            let refused = table.record_batch::<u64, u64>(Algorithm::Auto, 1 << 23);
            assert!(matches!(refused, Err(GpuError::Algorithm { .. })));
        }
        assert!(matches!(
            table.record_batch::<u32, u64>(Algorithm::Auto, 1),
            Err(GpuError::Read(_) | GpuError::Asked { .. })
        ));
    }
}

/// Algorithms that ought to be recorded.
pub const RECORDED: [Algorithm; 3] = [Algorithm::Auto, Algorithm::Spine, Algorithm::Binary];

/// A table follows the generations of its file: the new one beside the old one, which goes on answering.
pub fn generations(gpu: &Gpu) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    let build = |value: u64| {
        let tuples: Vec<(u64, u64)> = (0..3000 + value).map(|i| (i * 3, value)).collect();
        build_slice(&tuples, &path, &BuildOptions { generation: value, ..BuildOptions::default() })
            .expect("built");
    };
    build(1);
    let live = std::sync::Arc::new(pleach::Live::<pleach::Index>::open(&path).expect("opens"));
    let table = LiveTable::new(std::sync::Arc::clone(&live), gpu, Residence::Auto).expect("a table");
    let ask = |table: &GpuTable<'_>| {
        let (mut values, mut present) = ([0u64; 2], [0u64]);
        table.get_batch(&[0u64, 3 * 3001], &mut values, &mut present).expect("answers");
        (values[0], present[0])
    };
    let old = table.get();
    assert!(!table.refresh().expect("no other"));
    for value in 2..4 {
        build(value);
        assert!(table.refresh().expect("the next generation"));
        assert!(!table.refresh().expect("no other"));
        assert_eq!((ask(&old), ask(&table.get())), ((1, 1), (value, 3)));
    }
    build_slice(&[(1u32, 1u32)], &path, &BuildOptions::default()).expect("built");
    assert!(matches!(table.refresh(), Err(GpuError::Open(_))));
    assert_eq!((ask(&table.get()), live.current().generation()), ((3, 3), 3));
}
