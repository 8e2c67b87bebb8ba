//! Tests of trees against their definition, of forged trees, and of groups.

use super::*;
use crate::memory::DeviceBuffer;
use crate::resident::Residence;
use crate::{Answers, Gpu, GpuTable};
use pleach::{Index, Key, Value};
use pleach_builder::{BuildOptions, build_slice};
use pleach_format::key::Word;

fn mix(i: u64) -> u64 {
    let i = (i ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (i ^ i >> 29).wrapping_mul(0x94D0_49BB_1331_11EB) ^ i >> 31
}

const SHAPES: [(u16, u8); 6] = [(8, 50), (8, 100), (9, 69), (64, 50), (64, 100), (128, 69)];

fn form((fanout, fill): (u16, u8)) -> HarmoniaForm {
    HarmoniaForm { fanout, fill, sort: QuerySort::None, ..HarmoniaForm::default() }
}

/// Calls `with` with a table of these tuples on a device.
fn with_resident<K: Key, V: Value>(gpu: &Gpu, tuples: &[(K, V)], with: impl FnOnce(&Stream, &Resident)) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    build_slice(tuples, &path, &BuildOptions::default()).expect("built");
    let index = Index::open(&path).expect("opens");
    let stream = Stream::new(gpu).expect("a stream");
    let resident =
        Resident::new(&index, &stream, Residence::Device).expect("fits").expect("there are tuples");
    with(&stream, &resident);
}

fn read(stream: &Stream, buffer: &DeviceBuffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.bytes() as usize];
    buffer.copy_to_host(stream, &mut bytes).expect("copied");
    bytes
}

/// Returns the section, node by node from its definition.
fn section<W: Word>(geometry: &HarmoniaGeometry, words: &[W], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; geometry.bytes as usize];
    let (full, each) = (u64::from(geometry.node_keys), geometry.value_bytes as usize);
    for (depth, level) in geometry.levels.iter().enumerate() {
        for at in 0..level.nodes {
            let (node, keys) = (level.first + at, geometry.keys_of(depth, at));
            let start = (node * geometry.stride_bytes) as usize;
            bytes[start..][..geometry.stride_bytes as usize].fill(0xFF);
            bytes[(geometry.counts_at + node) as usize] = keys as u8;
            for slot in 0..keys {
                let is_leaf = depth + 1 == geometry.levels.len();
                let rank = match is_leaf {
                    true => at * full + slot,
                    false => geometry.last_rank(depth + 1, at * (full + 1) + slot),
                } as usize;
                words[rank].write(&mut bytes[start + slot as usize * W::BYTES..]);
                if is_leaf {
                    let to = geometry.values_at as usize
                        + (at * u64::from(geometry.fanout) + slot) as usize * each;
                    bytes[to..to + each].copy_from_slice(&values[rank * each..][..each]);
                }
            }
        }
    }
    for node in 0..=geometry.inner {
        let at = (geometry.children_at + node * CHILD_BYTES) as usize;
        bytes[at..at + 4].copy_from_slice(&(geometry.first_child(node) as u32).to_le_bytes());
    }
    bytes
}

/// Compares the section that the device makes with the definition.
fn check<K: Key, V: Value>(gpu: &Gpu, tuples: &[(K, V)], value_bytes: impl Fn(V) -> Vec<u8>) {
    let words: Vec<K::Word> = tuples.iter().map(|tuple| tuple.0.encode()).collect();
    let values: Vec<u8> = tuples.iter().flat_map(|tuple| value_bytes(tuple.1)).collect();
    with_resident(gpu, tuples, |stream, resident| {
        for shape in SHAPES {
            let what = format!("{} tuples of {}, {shape:?}", tuples.len(), K::TYPE);
            let algorithm = Algorithm::Harmonia(form(shape));
            let built = Built::new(stream, resident, shape, algorithm).expect("builds");
            let wanted = section(&built.geometry, &words, &values);
            assert!(read(stream, &built.stored.buffer) == wanted, "{what}");
        }
        for (fanout, fill) in [(7, 100), (129, 100), (8, 49), (8, 101)] {
            let refused = Harmonia::new(stream, resident, form((fanout, fill)));
            assert!(matches!(refused, Err(GpuError::Algorithm { .. })), "{fanout} {fill}");
        }
        let refused = Harmonia::new(stream, resident, HarmoniaForm { group: Group::Of(3), ..form((8, 100)) });
        assert!(matches!(refused, Err(GpuError::Algorithm { .. })));
    });
}

/// Searches trees whose child region was forged: answers are wrong, but nothing outside is read or returned.
fn check_forged(gpu: &Gpu, count: u64) {
    let tuples: Vec<(u64, u32)> = (0..count).map(|i| (i * 5, i as u32)).collect();
    let queries: Vec<u8> = (0..200).flat_map(|i| (mix(i) % (5 * count + 3)).to_le_bytes()).collect();
    with_resident(gpu, &tuples, |stream, resident| {
        let on_device = DeviceBuffer::from_host(stream, &queries).expect("fits");
        let rooms = [800, 28, 1600].map(|bytes| DeviceBuffer::new(gpu, bytes).expect("fits"));
        for children in [ChildRegion::Constant, ChildRegion::Shared, ChildRegion::Ldg] {
            for sort in [QuerySort::None, QuerySort::Bits(3)] {
                let search =
                    Harmonia::new(stream, resident, HarmoniaForm { children, sort, ..form((8, 50)) });
                let search = search.expect("builds");
                let geometry = &search.built.geometry;
                let region =
                    search.built.stored.buffer.part(geometry.children_at, (geometry.inner + 1) * CHILD_BYTES);
                for forged in [0, 1, geometry.nodes as u32, u32::MAX - 200, u32::MAX] {
                    let entries = forged.to_le_bytes().repeat(geometry.inner as usize + 1);
                    region.copy_from_host(stream, &entries).expect("copied");
                    let batch = Batch {
                        queries: on_device.address(),
                        count: 200,
                        values: rooms[0].address(),
                        present: rooms[1].address(),
                        ranks: rooms[2].address(),
                        kind: 0,
                        present_bytes: 0,
                        rank_bytes: 8,
                        value_bytes: 4,
                    };
                    rooms[1].fill(stream, 0).expect("filled");
                    // SAFETY: the buffers have room for 200 queries, and live until the stream was waited
                    // for.
                    unsafe { search.search(stream, &batch) }.expect("queued");
                    stream.synchronize().expect("nothing outside is read");
                    let ranks = read(stream, &rooms[2]);
                    assert!(ranks.chunks_exact(8).all(|rank| <u64 as Word>::read(rank) <= count), "{forged}");
                }
            }
        }
    });
}

/// Checks answers in sorted order: each belongs to the query with its number, and keys ascend as far as
/// sorted.
fn check_sorted(gpu: &Gpu, count: u64, batch: u64) {
    let tuples: Vec<(u64, u64)> = (0..count).map(|i| ((1 << 50) + i * 3, mix(i))).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.pleach");
    build_slice(&tuples, &path, &BuildOptions::default()).expect("built");
    let index = Index::open(&path).expect("opens");
    let table = GpuTable::new(&index, gpu).expect("fits");
    let stream = Stream::new(gpu).expect("a stream");
    let queries: Vec<u64> = (0..batch)
        .map(|i| match i % 11 {
            0 => mix(i),
            1 => 0,
            2 => u64::MAX,
            _ => (1 << 50) + mix(i) % (3 * count + 2),
        })
        .collect();
    let bytes: Vec<u8> = queries.iter().flat_map(|query| query.to_le_bytes()).collect();
    let on_device = DeviceBuffer::from_host(&stream, &bytes).expect("fits");
    let room = |bytes: u64| DeviceBuffer::new(gpu, bytes).expect("fits");
    let (values, present) = (room(batch * 8), room(batch.div_ceil(32) * 4));
    let (ranks, numbers) = (room(batch * 4), room(batch * 4));
    let answers =
        Answers { values: Some(&values), present: Some(&present), ranks: Some(&ranks), rank_bytes: 4 };
    let sorts = [QuerySort::Partial, QuerySort::Full, QuerySort::Bits(1), QuerySort::Bits(11)];
    for sort in sorts {
        let algorithm = Algorithm::Harmonia(HarmoniaForm { sort, ..form((16, 69)) });
        table
            .search_sorted_on(&stream, algorithm, &on_device, batch, answers, &numbers)
            .and_then(crate::Pending::wait)
            .expect("answers");
        let (values, present) = (read(&stream, &values), read(&stream, &present));
        let four = |bytes: &[u8], at: usize| <u32 as Word>::read(&bytes[at * 4..]);
        let (ranks, numbers) = (read(&stream, &ranks), read(&stream, &numbers));
        let mut seen = vec![false; queries.len()];
        let mut last = 0;
        for at in 0..queries.len() {
            let number = four(&numbers, at) as usize;
            assert!(!std::mem::replace(&mut seen[number], true), "{sort:?}: each number once");
            let query = queries[number];
            let rank = tuples.partition_point(|tuple| tuple.0 < query);
            let is_there = tuples.get(rank).is_some_and(|tuple| tuple.0 == query);
            let value = if is_there { tuples[rank].1 } else { 0 };
            assert_eq!(four(&ranks, at) as usize, rank, "{sort:?}");
            assert_eq!(<u64 as Word>::read(&values[at * 8..]), value, "{sort:?}");
            assert_eq!(four(&present, at / 32) >> (at % 32) & 1 == 1, is_there, "{sort:?}");
            if sort == QuerySort::Full {
                assert!(query >= last);
                last = query;
            }
        }
    }
    for algorithm in [Algorithm::Harmonia(form((16, 69))), Algorithm::Spine] {
        let refused = table.search_sorted_on(&stream, algorithm, &on_device, batch, answers, &numbers);
        assert!(matches!(refused, Err(GpuError::Algorithm { .. })));
    }
    let short = numbers.part(0, batch * 4 - 1);
    let algorithm = Algorithm::Harmonia(HarmoniaForm::default());
    let refused = table.search_sorted_on(&stream, algorithm, &on_device, batch, answers, &short);
    assert!(matches!(refused, Err(GpuError::Buffer { .. })));
}

fn check_all(gpu: &Gpu, counts: &[u64], (tuples, batch): (u64, u64)) {
    for &count in counts {
        let spread: Vec<(u64, u64)> = (0..count).map(|i| (i / 2 * 7, mix(i))).collect();
        check(gpu, &spread, |value| value.to_le_bytes().to_vec());
        let narrow: Vec<(u32, ())> = (0..count).map(|i| (i as u32 * 3, ())).collect();
        check(gpu, &narrow, |()| Vec::new());
        let wide: Vec<(u128, u32)> = (0..count).map(|i| (u128::from(i) << 70, i as u32)).collect();
        check(gpu, &wide, |value| value.to_le_bytes().to_vec());
    }
    check_forged(gpu, 3000);
    check_sorted(gpu, tuples, batch);
}

#[test]
fn trees_are_as_defined() {
    match Gpu::open(0) {
        Ok(gpu) => {
            check_all(&gpu, &[1, 3, 7, 8, 9, 63, 64, 65, 3969, 100_000], (100_000, 1_000_001));
            // A long batch, whose length is not a multiple of 32.
            check_sorted(&gpu, 1_000_000, 20_000_033);
        }
        Err(GpuError::Unavailable(missing)) => eprintln!("SKIPPED: {missing}"),
        Err(error) => panic!("{error}"),
    }
}

#[cfg(feature = "emulate")]
#[test]
fn trees_are_as_defined_where_a_cpu_is_the_device() {
    for order in [crate::LaneOrder::Ascending, crate::LaneOrder::Random(5)] {
        match Gpu::emulated(order, crate::GpuOptions::default()) {
            Ok(gpu) => check_all(&gpu, &[1, 7, 8, 64, 449], (900, 17_000)),
            Err(GpuError::Unavailable(missing)) => eprintln!("SKIPPED: {missing}"),
            Err(error) => panic!("{error}"),
        }
    }
}
