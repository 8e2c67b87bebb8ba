//! Look-ups on a GPU against those of the CPU. Without a GPU these tests skip, and say so.

#[path = "suite/foreign.rs"]
mod foreign;
#[path = "suite/merge.rs"]
mod merge;
#[path = "suite/relation.rs"]
mod relation;
mod suite;

use pleach::Index;
use pleach_builder::{BuildOptions, build_iter};
use pleach_gpu::image::Lowest;
use pleach_gpu::{Algorithm, Gpu, GpuError, GpuOptions, GpuTable, Residence};
use std::path::Path;

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

#[test]
fn answers_are_those_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    // Images with long and with short codes, of several levels.
    for (lowest, top_max, fine_bits) in [
        (Lowest::Codes16, 3, None),
        (Lowest::Codes8, 3, None),
        (Lowest::Codes8, 1 << 13, None),
        (Lowest::Codes32, 3, Some(16)),
        (Lowest::Codes32, 3, Some(24)),
        (Lowest::Codes32, 3, Some(32)),
        (Lowest::Codes32, 1 << 13, None),
    ] {
        let options = GpuOptions {
            lowest: Some(lowest),
            top_max: Some(top_max),
            fine_bits,
            sampled_min: Some(40),
            ..GpuOptions::default()
        };
        let gpu = Gpu::with_options(0, options).expect("opened above");
        let algorithms = [Algorithm::Auto, Algorithm::Spine, Algorithm::Sweep];
        suite::every_table(&gpu, &[1, 2, 9, 69, 1157], &algorithms, &[], 3000);
        suite::every_table(&gpu, &[200_000], &algorithms, &[], 60_000);
    }
    suite::every_table(&gpu, &[1, 2, 5, 9, 68, 69], &suite::algorithms(true), &[], 3000);
    suite::every_table(&gpu, &[1157], &suite::algorithms(false), &[], 600);
    suite::every_table(&gpu, &[200_000], &suite::algorithms(true), &[], 60_000);
}

#[test]
fn sections_answer_as_they_lie() {
    let Some(gpu) = gpu() else { return };
    suite::sections::all(&gpu, &[1, 2, 8, 129, 1023, 1024, 1025, 200_000, 262_144], 30_000);
    suite::sections::long_batch(&gpu, (1 << 21) + 77);
    suite::sections::strings(&gpu, 20_000);
    suite::sections::refusals(&gpu);
    for count in [1, 700, 100_000] {
        suite::sections::damaged(&gpu, count);
    }
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let Some(gpu) = gpu() else { return };
    suite::refusals(&gpu);
    suite::generations(&gpu);
    assert!(matches!(Gpu::open(999), Err(GpuError::Unavailable(_))));
}

#[test]
fn every_residence_answers_the_same() {
    let Some(gpu) = gpu() else { return };
    for count in [1, 1000, 100_000, 3_000_000] {
        suite::residences(&gpu, count);
    }
    let options = GpuOptions { sampled_min: Some(1000), ..GpuOptions::default() };
    let gpu = Gpu::with_options(0, options).expect("opened above");
    suite::residences(&gpu, 100_000);
}

#[test]
fn arrays_of_other_libraries_are_answered() {
    let Some(gpu) = gpu() else { return };
    foreign::all(&gpu);
}

#[test]
fn byte_keys_are_searched() {
    let Some(gpu) = gpu() else { return };
    suite::strings(&gpu, &[1, 2, 33, 20_000], &suite::algorithms(true));
}

#[test]
fn tuples_near_keys_and_intervals_are_found() {
    if gpu().is_none() {
        return;
    }
    for (lowest, top_max) in [
        (None, None),
        (Some(Lowest::Codes16), Some(3)),
        (Some(Lowest::Codes8), Some(3)),
        (Some(Lowest::Codes32), Some(3)),
    ] {
        let options = GpuOptions { lowest, top_max, sampled_min: Some(200), ..GpuOptions::default() };
        let gpu = Gpu::with_options(0, options).expect("opened above");
        suite::near::edges(&gpu, 300);
        suite::near::exact(&gpu, &[[1, 1], [8, 31], [9, 33], [129, 32], [700, 1025], [100_000, 300_001]]);
        suite::near::intervals(&gpu, &[1, 9, 1000, 100_000]);
    }
}

#[test]
fn recorded_batches_answer_again_and_again() {
    let Some(gpu) = gpu() else { return };
    for count in [1, 1000, 300_000] {
        suite::recorded(&gpu, count, &suite::RECORDED);
    }
}

#[test]
fn all_tuples_of_a_key_come() {
    let Some(gpu) = gpu() else { return };
    for count in [1, 3000, 100_000, 2_000_000] {
        suite::all_tuples(&gpu, count);
    }
}

/// Random lines: for all contents, nothing outside of the table is read, nothing loops, and the device lives.
#[test]
fn damaged_tables_are_not_left() {
    let Some(gpu) = gpu() else { return };
    for (lowest, top_max) in [
        (None, None),
        (Some(Lowest::Codes16), Some(3)),
        (Some(Lowest::Codes8), Some(3)),
        (Some(Lowest::Codes32), Some(3)),
    ] {
        let options = GpuOptions { lowest, top_max, sampled_min: Some(200), ..GpuOptions::default() };
        let gpu = Gpu::with_options(0, options).expect("opened above");
        suite::damaged::all(&gpu, &[1, 69, 1157], &suite::algorithms(true), &[], 2000);
        suite::damaged::all(&gpu, &[200_000], &suite::algorithms(true), &[], 20_000);
    }
    suite::damaged::all(&gpu, &[3000], &suite::algorithms(false), &[], 2000);
}

#[test]
fn joins_and_set_operations_answer() {
    let Some(gpu) = gpu() else { return };
    merge::all(&gpu, 6000);
    merge::many(&gpu, 1 << 18);
}

#[test]
fn operators_of_one_pass_answer() {
    let Some(gpu) = gpu() else { return };
    for turn in 0..3 {
        relation::all(&gpu, turn);
    }
    relation::many(&gpu, 10_000_000);
    relation::memory(|options| Gpu::with_options(0, options).expect("opened above"));
}

/// A little of everything, as compute-sanitizer makes it slow: see docs/TESTING.md.
#[test]
#[ignore = "for compute-sanitizer: the tests above ask the same and more"]
fn small_tables_of_all_kinds() {
    let Some(gpu) = gpu() else { return };
    for (lowest, top_max) in [(Lowest::Codes16, 3), (Lowest::Codes8, 3), (Lowest::Codes32, 3)] {
        let options = GpuOptions { lowest: Some(lowest), top_max: Some(top_max), ..GpuOptions::default() };
        let gpu = Gpu::with_options(0, options).expect("opened above");
        suite::every_table(&gpu, &[1157], &[Algorithm::Auto, Algorithm::Spine, Algorithm::Sweep], &[], 300);
    }
    suite::every_table(&gpu, &[1, 69], &suite::algorithms(true), &[], 300);
    suite::strings(&gpu, &[33], &suite::algorithms(true));
    suite::residences(&gpu, 1000);
    suite::all_tuples(&gpu, 3000);
    suite::recorded(&gpu, 1000, &suite::RECORDED);
    merge::all(&gpu, 6000);
    relation::all(&gpu, 0);
}

/// The same of damaged tables, for all tools but racecheck: where keys descend, several lanes find the child of a
/// node, and which of their writes stays is chance; each is a child that is there.
#[test]
#[ignore = "for compute-sanitizer: `damaged_tables_are_not_left` asks the same and more"]
fn small_damaged_tables() {
    let Some(gpu) = gpu() else { return };
    suite::damaged::all(&gpu, &[69, 700], &suite::algorithms(true), &[], 200);
}

/// Ranks and presence of queries near `i`-th keys, of a table whose key `i / 2 * step` is there for each `i`.
fn check_pairs(table: &GpuTable<'_>, tuples: u64, step: u32) {
    let last = ((tuples - 1) / 2) as u32 * step;
    let middle = u32::try_from((1u64 << 32 >> 1) * u64::from(step)).unwrap_or(last);
    let beside = |key: u32| (0..2000).map(move |i| key.saturating_add(i).saturating_sub(1000));
    let spread = (0..100_000u32).map(|i| i.wrapping_mul(0x9E37_79B1));
    let queries: Vec<u32> =
        beside(0).chain(beside(middle)).chain(beside(last)).chain(spread).chain([u32::MAX]).collect();
    for algorithm in [Algorithm::Auto, Algorithm::Spine, Algorithm::Sweep, Algorithm::Binary] {
        let mut ranks = vec![0; queries.len()];
        table.lower_bound_batch_by::<u32, ()>(algorithm, &queries, &mut ranks).expect("answers");
        let (mut values, mut present) = (vec![(); queries.len()], vec![0; queries.len().div_ceil(64)]);
        table.get_batch_by(algorithm, &queries, &mut values, &mut present).expect("answers");
        for (at, (&query, &rank)) in queries.iter().zip(&ranks).enumerate() {
            let wanted = (u64::from(query.div_ceil(step)) * 2).min(tuples);
            let is_there = query.is_multiple_of(step) && query <= last;
            assert_eq!(rank, wanted, "{algorithm:?}: {query}");
            assert_eq!(present[at / 64] >> (at % 64) & 1 == 1, is_there, "{algorithm:?}: {query}");
        }
    }
}

/// A file of `keys` keys of 4 bytes, two of each.
fn pairs(folder: &Path, tuples: u64, step: u32) -> Index {
    let path = folder.join("pairs.pleach");
    let options = BuildOptions { sorted: true, ..BuildOptions::default() };
    build_iter((0..tuples).map(|i| ((i / 2) as u32 * step, ())), &path, &options).expect("built");
    Index::open(&path).expect("opens")
}

#[test]
fn pairs_of_keys_have_ranks() {
    let Some(gpu) = gpu() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let index = pairs(folder.path(), 100_001, 3);
    check_pairs(&GpuTable::new(&index, &gpu).expect("fits"), 100_001, 3);
}

/// Ranks of more than 32 bits.
#[test]
#[ignore = "writes 18 GB and takes two minutes"]
fn more_tuples_than_32_bits_count() {
    let Some(gpu) = gpu() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let tuples = (1 << 32) + (1 << 20);
    let index = pairs(folder.path(), tuples, 1);
    check_pairs(&GpuTable::new(&index, &gpu).expect("fits"), tuples, 1);
}

/// A table that the device may not hold.
#[test]
#[ignore = "writes 5 GB and takes a minute"]
fn a_capped_device_answers_from_the_host() {
    if gpu().is_none() {
        return;
    }
    let cap = 1 << 30;
    let gpu = Gpu::with_options(0, GpuOptions { memory_bytes: Some(cap), ..GpuOptions::default() })
        .expect("opened above");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("capped.pleach");
    let tuples = 1u64 << 28;
    let options = BuildOptions { sorted: true, ..BuildOptions::default() };
    build_iter((0..tuples).map(|i| (i * 3, i ^ 0x5555)), &path, &options).expect("built");
    let index = Index::open(&path).expect("opens");
    let table = GpuTable::new(&index, &gpu).expect("the lines stay with the host");
    assert_eq!(table.residence(), Residence::Hybrid);
    for count in [1, 1000, 1 << 20, 1 << 24] {
        let queries: Vec<u64> = (0..count).map(|i| suite::mix(i) % (3 * tuples + 5)).collect();
        let (mut values, mut present) = (vec![0u64; queries.len()], vec![0; queries.len().div_ceil(64)]);
        table.get_batch_by(Algorithm::Auto, &queries, &mut values, &mut present).expect("answers");
        for (at, &query) in queries.iter().enumerate() {
            let is_there = query.is_multiple_of(3) && query < 3 * tuples;
            assert_eq!(present[at / 64] >> (at % 64) & 1 == 1, is_there, "{query}");
            assert_eq!(values[at], if is_there { (query / 3) ^ 0x5555 } else { 0 }, "{query}");
        }
    }
}
