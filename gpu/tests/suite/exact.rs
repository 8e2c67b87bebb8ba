//! Searches from buffers of the device to such, which have no byte too many.

use super::mix;
use pleach::{Index, Key, Value};
use pleach_builder::{BuildOptions, build_slice};
use pleach_gpu::{Algorithm, Answers, DeviceBuffer, Gpu, GpuTable, Stream};

/// Searches a table for every combination of answers.
fn check_exact<K: Key, V: Value, const WORD_BYTES: usize, const VALUE_BYTES: usize>(
    gpu: &Gpu,
    algorithm: Algorithm,
    (key, word): (impl Fn(u64) -> K, impl Fn(K) -> [u8; WORD_BYTES]),
    (value, value_bytes): (impl Fn(u64) -> V, impl Fn(V) -> [u8; VALUE_BYTES]),
    [tuples, count]: [u64; 2],
) {
    let what = format!("{algorithm:?}: {tuples} tuples of {}, {count} queries", K::TYPE);
    let mut keys: Vec<K> = (0..tuples).map(|i| key(mix(i / 2) >> 1)).collect();
    keys.sort_by_key(|key| key.encode());
    let tuples: Vec<(K, V)> = keys.iter().zip(0..).map(|(&key, i)| (key, value(mix(i)))).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    build_slice(&tuples, &path, &BuildOptions::default()).expect("built");
    let index = Index::open(&path).expect("opens");
    let table = GpuTable::new(&index, gpu).expect("fits");
    let stream = Stream::new(gpu).expect("a stream");
    let queries: Vec<K> = (0..count).map(|i| key(mix(mix(i) % (tuples.len() as u64 + 9)) >> 1)).collect();
    let bytes: Vec<u8> = queries.iter().flat_map(|&query| word(query)).collect();
    let on_device = DeviceBuffer::from_host(&stream, &bytes).expect("fits");
    for (asks_values, rank_bytes) in [(true, 0), (false, 4), (false, 8), (true, 8)] {
        let some =
            |is_asked: bool, bytes: u64| is_asked.then(|| DeviceBuffer::new(gpu, bytes).expect("fits"));
        let values = some(asks_values && VALUE_BYTES > 0, count * VALUE_BYTES as u64);
        let present = some(asks_values, count.div_ceil(32) * 4);
        let ranks = some(rank_bytes > 0, count * u64::from(rank_bytes));
        let answers =
            Answers { values: values.as_ref(), present: present.as_ref(), ranks: ranks.as_ref(), rank_bytes };
        let pending = table.search_on(&stream, algorithm, &on_device, count, answers);
        pending.and_then(|pending| pending.wait()).unwrap_or_else(|error| panic!("{what}: {error}"));
        let read = |buffer: &Option<DeviceBuffer>| {
            buffer.as_ref().map(|buffer| {
                let mut bytes = vec![0; buffer.bytes() as usize];
                buffer.copy_to_host(&stream, &mut bytes).expect("copied");
                bytes
            })
        };
        let (values, present, ranks) = (read(&values), read(&present), read(&ranks));
        for (i, query) in queries.iter().enumerate() {
            let rank = keys.partition_point(|key| key.encode() < query.encode());
            let is_there = keys.get(rank).is_some_and(|key| key.encode() == query.encode());
            if let Some(ranks) = &ranks {
                let each = rank_bytes as usize;
                assert_eq!(ranks[i * each..(i + 1) * each], rank.to_le_bytes()[..each], "{what}");
            }
            if let Some(present) = &present {
                assert_eq!(present[i / 8] >> (i % 8) & 1 == 1, is_there, "{what}");
            }
            if let Some(values) = &values {
                let wanted = if is_there { value_bytes(tuples[rank].1) } else { [0; VALUE_BYTES] };
                assert_eq!(values[i * VALUE_BYTES..(i + 1) * VALUE_BYTES], wanted, "{what}");
            }
        }
    }
}

/// Tuples and queries at the edges of lines, warps and blocks.
const EDGES: [[u64; 2]; 5] = [[1, 1], [8, 31], [9, 32], [129, 33], [700, 1025]];

/// All algorithms at these sizes.
pub fn all(gpu: &Gpu, algorithms: &[Algorithm]) {
    for &algorithm in algorithms {
        let narrow = |i: u64| (i >> 20) as u32;
        for sizes in EDGES {
            let words = (|i| i, u64::to_le_bytes);
            check_exact(gpu, algorithm, words, (|i| i, u64::to_le_bytes), sizes);
        }
        let words = (narrow, u32::to_le_bytes);
        check_exact(gpu, algorithm, words, (narrow, u32::to_le_bytes), [129, 99]);
        let words = (u128::from, u128::to_le_bytes);
        check_exact(gpu, algorithm, words, (|_| (), |()| []), [129, 99]);
    }
}
