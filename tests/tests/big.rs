//! Tests that take gigabytes and minutes: not run by default.
//!
//! `cargo test --release -p pleach-tests --test big -- --ignored --nocapture` runs all of it: 8 GiB of
//! disk under the target folder and 2 GiB of memory are needed.

use pleach::{FsckOptions, Index, Verdict, fsck};
use pleach_builder::{BuildOptions, build_iter};
use pleach_tests::generate::{Random, mix};
use std::path::Path;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).expect("a temporary folder")
}

/// Every key found, absent ones not, ranges those of a sorted vector.
#[test]
#[ignore = "2^24 tuples: half a minute and 1 GiB of memory"]
fn every_key_of_2_to_the_24_is_found() {
    const TUPLES: u64 = 1 << 24;
    const ABSENT: u64 = 1 << 20;
    let folder = folder();
    let path = folder.path().join("t.pleach");
    // The mixer is one to one: what it makes of larger numbers is not in the file.
    let options = BuildOptions::default();
    let summary = build_iter((0..TUPLES).map(|i| (mix(i), i)), &path, &options).expect("built");
    assert_eq!((summary.tuples, summary.sorted_input), (TUPLES, false));
    assert!(summary.file_bytes as f64 <= 1.06 * 16.0 * TUPLES as f64, "{} bytes", summary.file_bytes);
    assert_eq!(fsck(&path, &FsckOptions::default()).expect("readable").verdict, Verdict::Clean);

    let index = Index::open(&path).expect("opens");
    let view = index.typed::<u64, u64>().expect("types of the file");
    let mut values = vec![0; 1 << 16];
    let mut present = vec![0; 1 << 10];
    for start in (0..TUPLES).step_by(1 << 16) {
        let keys: Vec<u64> = (start..start + (1 << 16)).map(mix).collect();
        assert_eq!(view.get_batch(&keys, &mut values, &mut present).expect("readable"), 1 << 16);
        assert!(values.iter().copied().eq(start..start + (1 << 16)), "from {start}");
    }
    for start in (TUPLES..TUPLES + ABSENT).step_by(1 << 16) {
        let keys: Vec<u64> = (start..start + (1 << 16)).map(mix).collect();
        assert_eq!(view.get_batch(&keys, &mut values, &mut present).expect("readable"), 0);
    }
    let mut sorted: Vec<(u64, u64)> = (0..TUPLES).map(|i| (mix(i), i)).collect();
    sorted.sort_unstable();
    let mut random = Random(1);
    for _ in 0..200 {
        let low = random.next();
        let high = low.saturating_add(random.next() >> (random.below(40) + 10));
        let wanted =
            sorted.partition_point(|tuple| tuple.0 < low)..sorted.partition_point(|tuple| tuple.0 <= high);
        assert_eq!(view.lower_bound(low), Ok(wanted.start as u64));
        assert_eq!(view.count(low..=high), Ok(wanted.len() as u64));
        let found: Result<Vec<_>, _> = view.range(low..=high).expect("readable").collect();
        assert!(found.expect("readable") == sorted[wanted], "{low}..={high}");
    }
    let all = view.range(..).expect("readable").map(|tuple| tuple.expect("readable"));
    assert!(all.eq(sorted));
}

/// Key of a rank of the file over 4 GiB: ascending, with gaps of different widths.
fn key(rank: u64) -> u64 {
    rank * 1000 + mix(rank) % 1000
}

/// Ranks beyond 2^28, offsets beyond 2^32 and line numbers beyond 2^26.
#[test]
#[ignore = "4.8 GB of disk and a minute"]
fn a_file_over_4_gib() {
    const TUPLES: u64 = (1 << 28) + (1 << 24) + 3;
    let folder = folder();
    let path = folder.path().join("t.pleach");
    let options = BuildOptions { sorted: true, memory_bytes: 1 << 30, ..BuildOptions::default() };
    let summary = build_iter((0..TUPLES).map(|rank| (key(rank), !rank)), &path, &options).expect("built");
    assert!(summary.sorted_input && summary.file_bytes > 1 << 32, "{summary:?}");
    assert!(summary.file_bytes as f64 <= 1.06 * 16.0 * TUPLES as f64, "{} bytes", summary.file_bytes);

    let index = Index::open(&path).expect("opens");
    assert!(index.header().line_offset(index.header().lines - 1) > 1 << 32);
    let view = index.typed::<u64, u64>().expect("types of the file");
    assert_eq!(view.len(), TUPLES);
    assert_eq!(view.min(), Ok(Some((key(0), !0))));
    assert_eq!(view.max(), Ok(Some((key(TUPLES - 1), !(TUPLES - 1)))));
    let mut random = Random(9);
    let edges = [0, 1 << 26, (1 << 28) - 1, 1 << 28, (1 << 28) + 1, TUPLES - 1];
    let ranks: Vec<u64> = edges.into_iter().chain((0..1 << 20).map(|_| random.below(TUPLES))).collect();
    let keys: Vec<u64> = ranks.iter().map(|&rank| key(rank)).collect();
    let mut found = vec![0; keys.len()];
    view.lower_bound_batch(&keys, &mut found).expect("readable");
    assert!(found == ranks);
    let (mut values, mut present) = (vec![0; keys.len()], vec![0; keys.len().div_ceil(64)]);
    assert_eq!(view.get_batch(&keys, &mut values, &mut present).expect("readable"), keys.len());
    assert!(values.iter().zip(&ranks).all(|(&value, &rank)| value == !rank));
    for &rank in ranks.iter().take(5000) {
        assert_eq!(view.select(rank), Ok(Some((key(rank), !rank))));
        assert_eq!(view.get(key(rank)), Ok(Some(!rank)));
        assert_eq!(view.rank(key(rank)), Ok(Some(rank)));
        assert_eq!(view.get(rank * 1000 + (mix(rank) % 1000 + 1) % 1000), Ok(None));
    }
    let from = (1 << 28) + 12_345;
    let (mut keys, mut values) = (vec![0; 5000], vec![0; 5000]);
    assert_eq!(view.copy_range(from, &mut keys, &mut values), Ok(5000));
    assert!((from..).zip(&keys).all(|(rank, &found)| found == key(rank)));
    let range: Result<Vec<_>, _> = view.range(key(from)..key(from + 5000)).expect("readable").collect();
    assert!(range.expect("readable").into_iter().eq(keys.into_iter().zip(values)));
    assert_eq!(view.count(key(5)..key(TUPLES - 5)), Ok(TUPLES - 10));
    let report = fsck(&path, &FsckOptions::default()).expect("readable");
    assert_eq!(report.findings, []);
}
