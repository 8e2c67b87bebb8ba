//! Look-ups on a device against those of the CPU. Without a device these tests skip, and say so.

use pleach::{Index, Key, Value};
use pleach_builder::{BuildOptions, build_slice};
use pleach_gpu::{Gpu, GpuError, GpuTable};

fn mix(i: u64) -> u64 {
    let x = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) ^ x >> 31
}

fn gpu() -> Option<Gpu> {
    match Gpu::open(0) {
        Ok(gpu) => Some(gpu),
        Err(GpuError::Unavailable(missing)) => {
            eprintln!("SKIPPED: {missing}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn check<K: Key, V: Value>(gpu: &Gpu, mut tuples: Vec<(K, V)>, near: impl Fn(K) -> [K; 3], ends: &[K]) {
    tuples.sort_by_key(|tuple| tuple.0.encode());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    build_slice(&tuples, &path, &BuildOptions::default()).expect("built");
    let index = Index::open(&path).expect("opens");
    let view = index.typed::<K, V>().expect("the types");
    let table = GpuTable::new(&index, gpu).expect("fits");
    let every = tuples.len().div_ceil(30_000);
    let mut queries: Vec<K> =
        tuples.iter().step_by(every).flat_map(|tuple| near(tuple.0)).chain(ends.iter().copied()).collect();
    // In no order, and of a number that is no multiple of a block.
    let count = queries.len();
    (0..count).for_each(|i| queries.swap(i, (mix(i as u64) % count as u64) as usize));
    for take in [count, 1, 33.min(count), 1025.min(count)] {
        let queries = &queries[..take];
        let words = take.div_ceil(64);
        let (mut values, mut present) = (vec![V::default(); take], vec![0; words]);
        let (mut wanted, mut there) = (vec![V::default(); take], vec![0; words]);
        let found = table.get_batch(queries, &mut values, &mut present).expect("answers");
        assert_eq!(found, view.get_batch(queries, &mut wanted, &mut there).expect("answers"));
        assert!(values == wanted && present == there, "{} tuples, {take} queries", tuples.len());
        let (mut ranks, mut right) = (vec![0; take], vec![0; take]);
        table.lower_bound_batch::<K, V>(queries, &mut ranks).expect("answers");
        view.lower_bound_batch(queries, &mut right).expect("answers");
        assert!(ranks == right, "{} tuples, {take} queries", tuples.len());
    }
}

/// Keys of 64 bits of many kinds: spread, dense, in shards, crowded at one end, in runs, all equal, at the ends.
fn kinds(count: u64) -> [Vec<u64>; 7] {
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

#[test]
fn answers_are_those_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    for count in [1, 2, 4, 5, 8, 9, 17, 68, 69, 1157, 20_000, 700_000] {
        for keys in kinds(count) {
            let near = |key: u64| [key.saturating_sub(1), key, key.saturating_add(1)];
            let ends = [0, 1, u64::MAX - 1, u64::MAX];
            check(&gpu, keys.iter().map(|&key| (key, key ^ 5)).collect(), near, &ends);
            check(&gpu, keys.iter().map(|&key| (key, key as u32)).collect(), near, &ends);
            check(&gpu, keys.iter().map(|&key| (key, ())).collect(), near, &ends);
            let narrow = |key: u64| (key >> 32) as u32 ^ key as u32;
            let near = |key: u32| [key.saturating_sub(1), key, key.saturating_add(1)];
            let ends = [0, 1, u32::MAX - 1, u32::MAX];
            check(&gpu, keys.iter().map(|&key| (narrow(key), key as u32)).collect(), near, &ends);
            check(&gpu, keys.iter().map(|&key| (narrow(key), key)).collect(), near, &ends);
            check(&gpu, keys.iter().map(|&key| (narrow(key), ())).collect(), near, &ends);
            let near = |key: i64| [key.saturating_sub(1), key, key.saturating_add(1)];
            check(
                &gpu,
                keys.iter().map(|&key| (key as i64, key as f64)).collect(),
                near,
                &[i64::MIN, -1, 0, i64::MAX],
            );
        }
    }
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let Some(gpu) = gpu() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    build_slice(&[(1u64, 2u64)], &path, &BuildOptions::default()).expect("built");
    let index = Index::open(&path).expect("opens");
    let table = GpuTable::new(&index, &gpu).expect("fits");
    assert!(matches!(table.get_batch(&[1u32], &mut [0u64], &mut [0]), Err(GpuError::Asked(_))));
    assert!(matches!(table.get_batch(&[1u64], &mut [0u64; 2], &mut [0]), Err(GpuError::Read(_))));
    assert!(table.get_batch::<u64, u64>(&[], &mut [], &mut []).is_ok_and(|found| found == 0));
    assert!(matches!(Gpu::open(999), Err(GpuError::Unavailable(_))));
}
