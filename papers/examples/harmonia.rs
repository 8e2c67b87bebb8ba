//! The steps of the paper on Harmonia, one search each, for a profiler: `harmonia [LOG2_OF_TUPLES] [LOG2_OF_QUERIES]`.
//!
//! In order: the regular tree, Harmonia's tree, the same with sorted queries, with narrowed groups, halving a node;
//! fanout 64, full nodes, keys and values of 8 bytes. `papers/harmonia_ncu.sh` reads the hardware's counters of each.

use pleach::Index;
use pleach_builder::{BuildOptions, build_iter};
use pleach_gpu::{
    Algorithm, Answers, DeviceBuffer, Gpu, GpuTable, Group, HarmoniaForm, QuerySort, Scan, Stream,
};
use pleach_papers::gpu::search::regular_tree;

fn mix(i: u64) -> u64 {
    let x = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) ^ x >> 31
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut sizes = std::env::args().skip(1).map(|size| size.parse::<u32>());
    let (tuples, count) = (1u64 << sizes.next().unwrap_or(Ok(26))?, 1u64 << sizes.next().unwrap_or(Ok(26))?);
    let gap = u64::MAX / tuples;
    let key = |i: u64| i * gap + mix(i) % gap;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("table.pleach");
    let options = BuildOptions { sorted: true, ..BuildOptions::default() };
    build_iter((0..tuples).map(|i| (key(i), i)), &path, &options)?;
    let index = Index::open(&path)?;
    let gpu = Gpu::open(0)?;
    let table = GpuTable::new(&index, &gpu)?;
    let stream = Stream::new(&gpu)?;
    let bytes: Vec<u8> = (0..count).flat_map(|i| key(mix(!i) % tuples).to_le_bytes()).collect();
    let queries = DeviceBuffer::from_host(&stream, &bytes)?;
    let room = |each: u64| DeviceBuffer::new(&gpu, count * each);
    let (values, present, numbers) = (room(8)?, room(1)?, room(4)?);
    let answers = Answers { values: Some(&values), present: Some(&present), ..Answers::default() };
    let tree = HarmoniaForm { sort: QuerySort::None, group: Group::Whole, ..HarmoniaForm::default() };
    let sorted = HarmoniaForm { sort: QuerySort::Partial, ..tree };
    let narrowed = HarmoniaForm { group: Group::Auto, ..sorted };
    let regular = regular_tree(64, 100, 1024);
    let steps = [tree, sorted, narrowed, HarmoniaForm { scan: Scan::Halves, ..narrowed }];
    for algorithm in std::iter::once(regular).chain(steps.map(Algorithm::Harmonia)) {
        table.prepare(algorithm)?;
        let start = stream.mark()?;
        let pending = match algorithm {
            Algorithm::Harmonia(form) if form.sort != QuerySort::None => {
                table.search_sorted_on(&stream, algorithm, &queries, count, answers, &numbers)?
            }
            _ => table.search_on(&stream, algorithm, &queries, count, answers)?,
        };
        let end = stream.mark()?;
        pending.wait()?;
        end.wait()?;
        println!("{:.2} ms: {algorithm:?}", start.milliseconds_to(&end)?);
        table.release(algorithm);
    }
    Ok(())
}
