//! Every type and size against a naive reading of the file; the same bytes whatever the way.

mod common;

use common::{Chunks, check_file, mix, numbered, sorted};
use pleach_builder::storage::MemoryStorage;
use pleach_builder::{
    BuildError, BuildOptions, Silent, Source, Summary, Unique, build_bytes, build_with_storage,
};
use pleach_format::key::{Bits, Key, Value, Word};
use pleach_format::meta::Meta;
use pleach_format::section::Tag;
use std::collections::BTreeMap;
use std::path::Path;

fn build(source: &mut dyn Source, options: &BuildOptions) -> Result<(Vec<u8>, Summary), BuildError> {
    let storage = MemoryStorage::default();
    let target = Path::new("/t.pleach");
    let summary = build_with_storage(source, target, options, &Silent, &storage)?;
    let file = storage.take(target).unwrap();
    assert_eq!(file.len() as u64, summary.file_bytes);
    Ok((file, summary))
}

fn options(memory_bytes: u64, threads: usize) -> BuildOptions {
    BuildOptions { memory_bytes, threads, ..BuildOptions::default() }
}

fn check_size<K: Key, V: Value>(count: u64) {
    for key in [|row| mix(row), |row| row, |row| mix(row) % 40, |_| 7, |row: u64| u64::MAX - row / 3] {
        let tuples = numbered::<K, V>(count, key);
        let file = build_bytes(&tuples, &BuildOptions::default()).unwrap();
        check_file(&file, &sorted(tuples));
    }
}

fn check_sizes<K: Key, V: Value>() {
    for count in 0..=200 {
        check_size::<K, V>(count);
    }
    let n = pleach_format::LineGeometry::new(K::TYPE.bytes(), V::TYPE.bytes()).tuples_per_line() as u64;
    let fanout = if K::TYPE.bytes() == 8 { 28 } else { 30 };
    for edge in [n * fanout, n * fanout * fanout, 128 * n, 2 * 128 * n] {
        for count in [edge - 1, edge, edge + 1, edge + n - 1, edge + n, edge + n + 1] {
            check_size::<K, V>(count);
        }
    }
}

#[test]
fn sizes_u32_none() {
    check_sizes::<u32, ()>();
}
#[test]
fn sizes_u32_u32() {
    check_sizes::<u32, u32>();
}
#[test]
fn sizes_i32_f64() {
    check_sizes::<i32, f64>();
}
#[test]
fn sizes_u64_none() {
    check_sizes::<u64, ()>();
}
#[test]
fn sizes_i64_f32() {
    check_sizes::<i64, f32>();
}
#[test]
fn sizes_u64_u64() {
    check_sizes::<u64, u64>();
}

#[test]
fn sections_around_32_mib() {
    // 32 MiB of (u64, u64) lines are 2^21 tuples; the pair padding makes one line less as long.
    for count in [
        (1u64 << 21) - 9,
        (1 << 21) - 8,
        (1 << 21) - 7,
        (1 << 21) - 4,
        1 << 21,
        (1 << 21) + 1,
        (1 << 21) + 5000,
        // 17 pieces of 2 MiB less what comes before the lines: the first are written.
        (135 << 14) - 5,
        135 << 14,
        (135 << 14) + 5,
        (143 << 14) + 5,
    ] {
        let tuples = numbered::<u64, u64>(count, |row| row * 1000 + mix(row) % 1000);
        let wide = BuildOptions { wide: true, ..BuildOptions::default() };
        let file = build_bytes(&tuples, &wide).unwrap();
        let header = check_file(&file, &tuples);
        assert_eq!(header.lines_offset, if count > (1 << 21) - 8 { 256 << 10 } else { 12288 }, "{count}");
    }
}

/// Keys whose words are found out early or late, and their bytes.
#[test]
fn words_are_the_shortest_on_every_path() {
    fn check<K: Key, V: Value>(count: u64, key: impl Fn(u64) -> K, word_bytes: usize) {
        let tuples: Vec<(K, V)> =
            (0..count).map(|row| (key(row), V::from_bits(V::Bits::from_u64(mix(row))))).collect();
        let file = build(&mut Chunks::new(&tuples, 1 << 16), &options(1 << 30, 2)).unwrap().0;
        let header = check_file(&file, &tuples);
        assert_eq!(header.geometry.key_bytes, word_bytes, "{count} tuples");
        // In memory and spilled, from two sorted halves.
        let mut halves = tuples.clone();
        halves.rotate_left(tuples.len() / 3);
        for memory_bytes in [1 << 30, 1] {
            let (again, summary) =
                build(&mut Chunks::new(&halves, 1 << 16), &options(memory_bytes, 2)).unwrap();
            assert!(!summary.sorted_input && again == file, "{count} tuples, {memory_bytes} bytes of memory");
        }
        let wide = BuildOptions { wide: true, ..options(1 << 30, 2) };
        let header = check_file(&build(&mut Chunks::new(&tuples, 1 << 16), &wide).unwrap().0, &tuples);
        assert_eq!(header.geometry.key_bytes, K::Word::BYTES);
    }
    // Less than 32 MiB of lines are held back; more are in the file when the words change.
    for count in [1000, 2_800_000] {
        let last = count - 1;
        check::<u64, u64>(count, |row| row, 4);
        check::<u64, u64>(count, |row| row + (u64::from(row == last) << 40), 4);
        check::<u64, u64>(count, |row| if row == last { u64::MAX } else { row }, 8);
        check::<u64, u64>(count, |row| u64::MAX - 3 * (last - row), 4);
        check::<u64, u64>(count, |row| row >> 8 << 40 | 5 << 33 | row & 0xFF, 4);
        check::<i64, u32>(count, |row| row.cast_signed() - 500, 4);
        check::<f64, u64>(count, |row| row as f64, 4);
    }
    for count in [1000, 1_500_000] {
        let last = count - 1;
        check::<u128, u64>(count, |row| u128::from(row) << 10 | 7 << 100, 4);
        check::<u128, ()>(count, |row| if row == last { u128::from(u64::MAX) } else { row.into() }, 8);
        check::<u128, u32>(count, |row| u128::from(row) + (u128::from(row == last) << 90), 4);
        check::<u128, u32>(count, |row| u128::from(mix(row) >> 40) + (u128::from(row) << 70), 8);
        check::<u128, u64>(count, |row| u128::from(row) << 90 | u128::from(mix(row)), 16);
    }
}

#[test]
fn extreme_keys() {
    for count in [1u64, 3, 4, 5, 100, 5000] {
        let tuples: Vec<(u64, u32)> = (0..count as u32)
            .flat_map(|row| [(0, row), (u64::MAX, row), (u64::MAX - 1, row), (1, row), (1 << 63, row)])
            .collect();
        let file = build_bytes(&tuples, &BuildOptions::default()).unwrap();
        check_file(&file, &sorted(tuples));
        let tuples: Vec<(i32, ())> =
            (0..count).flat_map(|_| [(i32::MIN, ()), (i32::MAX, ()), (-1, ()), (0, ())]).collect();
        let file = build_bytes(&tuples, &BuildOptions::default()).unwrap();
        check_file(&file, &sorted(tuples));
    }
}

/// All ways to the same tuples.
fn check_ways<K: Key, V: Value>(count: u64, key: impl Fn(u64) -> u64) {
    let tuples = numbered::<K, V>(count, key);
    let wanted = sorted(tuples.clone());
    let (file, summary) = build(&mut Chunks::new(&wanted, 10_000), &options(1 << 30, 1)).unwrap();
    assert!(summary.sorted_input && summary.rows == count && summary.tuples == count);
    check_file(&file, &wanted);
    for threads in [1, 2] {
        for chunk in [777, 65_536] {
            let ordered = build(&mut Chunks::new(&wanted, chunk), &options(1 << 16, threads)).unwrap();
            assert!(ordered.1.sorted_input && ordered.1.runs == 0);
            assert!(ordered.0 == file);
            let inside = build(&mut Chunks::new(&tuples, chunk), &options(1 << 30, threads)).unwrap();
            assert!(!inside.1.sorted_input && inside.1.runs == 0);
            assert!(inside.0 == file);
            for memory_bytes in [1, 1 << 20, 1 << 23] {
                let spilled =
                    build(&mut Chunks::new(&tuples, chunk), &options(memory_bytes, threads)).unwrap();
                assert!(!spilled.1.sorted_input);
                assert!(spilled.0 == file);
                assert!(spilled.1.runs > 1 || memory_bytes > 1);
            }
        }
    }
}

#[test]
fn same_bytes_whatever_the_way() {
    check_ways::<u64, u64>(100_000, mix);
    check_ways::<u32, u32>(100_000, |row| mix(row) % 5000);
    check_ways::<u64, u32>(30_000, mix);
    check_ways::<u32, ()>(30_000, mix);
}

#[test]
fn same_bytes_when_disorder_comes_late() {
    // 40 MiB of lines are in the file already when the last key turns out to be out of order.
    let mut tuples = numbered::<u64, u64>(2_700_000, |row| row * 3);
    let last = tuples.len() - 1;
    tuples[last].0 = 5;
    let wanted = sorted(tuples.clone());
    let (file, summary) = build(&mut Chunks::new(&wanted, 100_000), &options(1 << 30, 2)).unwrap();
    assert!(summary.sorted_input);
    check_file(&file, &wanted);
    for memory_bytes in [1 << 30, 16 << 20] {
        let (other, summary) = build(&mut Chunks::new(&tuples, 100_000), &options(memory_bytes, 2)).unwrap();
        assert!(!summary.sorted_input && (summary.runs > 0) == (memory_bytes < 1 << 30));
        assert!(other == file);
    }
}

#[test]
fn unique_first_and_last() {
    for count in [0u64, 1, 2, 10, 1000, 50_000] {
        let tuples = numbered::<u32, u32>(count, |row| mix(row) % (count / 3).max(1));
        let all = sorted(tuples.clone());
        let mut first = all.clone();
        first.dedup_by_key(|tuple| tuple.0);
        let mut last: Vec<_> = all.iter().rev().copied().collect();
        last.dedup_by_key(|tuple| tuple.0);
        last.reverse();
        for (unique, wanted) in [(Unique::First, &first), (Unique::Last, &last)] {
            let mut files = Vec::new();
            for input in [&tuples, &all] {
                for (memory_bytes, chunk) in [(1 << 30, 100), (1 << 30, 1), (1, 1000)] {
                    if chunk == 1 && count > 1000 {
                        continue;
                    }
                    let choice = BuildOptions { unique: Some(unique), ..options(memory_bytes, 2) };
                    let (file, summary) = build(&mut Chunks::new(input, chunk), &choice).unwrap();
                    assert_eq!((summary.rows, summary.tuples), (count, wanted.len() as u64));
                    assert!(check_file(&file, wanted).is_unique());
                    files.push(file);
                }
            }
            assert!(files.iter().all(|file| *file == files[0]));
        }
    }
}

#[test]
fn unique_sum_adds_the_values_of_a_key() {
    for count in [0u64, 1, 2, 10, 1000, 50_000] {
        let tuples = numbered::<u64, u64>(count, |row| mix(row) % (count / 3).max(1));
        let all = sorted(tuples.clone());
        let mut sums = BTreeMap::new();
        tuples.iter().for_each(|(key, value)| *sums.entry(*key).or_insert(0) += value);
        let wanted: Vec<(u64, u64)> = sums.into_iter().collect();
        for input in [&tuples, &all] {
            for (memory_bytes, chunk) in [(1 << 30, 100), (1 << 30, 7), (1, 1000)] {
                let choice = BuildOptions { unique: Some(Unique::Sum), ..options(memory_bytes, 2) };
                let (file, summary) = build(&mut Chunks::new(input, chunk), &choice).unwrap();
                assert_eq!((summary.rows, summary.tuples), (count, wanted.len() as u64));
                assert!(check_file(&file, &wanted).is_unique());
            }
        }
    }
    let choice = BuildOptions { unique: Some(Unique::Sum), ..options(1 << 30, 2) };
    for (tuples, fits) in [
        ([(7u32, u32::MAX - 1), (7, 1)], true),
        ([(7, u32::MAX), (7, 1)], false),
        ([(7, u32::MAX), (6, 1)], true),
    ] {
        let made = build(&mut Chunks::new(&tuples, 1), &choice);
        let is_told = matches!(&made, Err(BuildError::Sum { key, .. }) if key == "7");
        assert!(made.is_ok() == fits && is_told != fits);
    }
    let (floats, texts) = (numbered::<u64, f64>(2, |row| row), numbered::<u64, ()>(2, |row| row));
    for mut source in [Chunks::new(&floats, 9), Chunks::new(&texts, 9)] {
        let error = build(&mut source, &choice).unwrap_err();
        assert!(matches!(&error, BuildError::NoSum { .. }), "{error}");
    }
}

#[test]
fn unique_error_names_the_key() {
    let refuse = Unique::Error;
    let choice = BuildOptions { unique: Some(refuse), ..options(1 << 30, 2) };
    let tuples = numbered::<i64, ()>(10_000, |row| (1 << 63) - 5 + row);
    let (file, summary) = build(&mut Chunks::new(&tuples, 100), &choice).unwrap();
    assert!(summary.unique && check_file(&file, &tuples).is_unique());
    let mut twice = tuples.clone();
    twice[4000] = twice[3999];
    let error = build(&mut Chunks::new(&twice, 100), &choice).unwrap_err();
    assert!(matches!(&error, BuildError::Duplicate { key, row: Some(4000) } if key == "3994"), "{error}");
    // Across a border of chunks, and in no order at all.
    let mut twice = tuples.clone();
    twice[100] = twice[99];
    let error = build(&mut Chunks::new(&twice, 100), &choice).unwrap_err();
    assert!(matches!(&error, BuildError::Duplicate { row: Some(100), .. }), "{error}");
    let mut twice = tuples;
    twice.reverse();
    twice[7] = twice[77];
    for memory_bytes in [1, 1 << 30] {
        let choice = BuildOptions { unique: Some(refuse), ..options(memory_bytes, 2) };
        let error = build(&mut Chunks::new(&twice, 100), &choice).unwrap_err();
        assert!(matches!(&error, BuildError::Duplicate { key, row: None } if key == "9917"), "{error}");
    }
}

#[test]
fn promised_order_is_held() {
    let choice = BuildOptions { sorted: true, ..options(1 << 30, 2) };
    let mut tuples = numbered::<i32, u32>(5000, |row| (1 << 31) - 100 + row);
    build(&mut Chunks::new(&tuples, 64), &choice).unwrap();
    for (row, chunk) in [(1, 64), (64, 64), (128, 64), (4999, 10_000), (63, 64)] {
        let good = tuples[row];
        tuples[row].0 = -101;
        let error = build(&mut Chunks::new(&tuples, chunk), &choice).unwrap_err();
        let BuildError::Unsorted { row: found, previous, key } = &error else { panic!("{error}") };
        assert_eq!((*found, key.as_str()), (row as u64, "-101"));
        assert_eq!(*previous, tuples[row - 1].0.to_string());
        assert!(!error.to_string().contains('\n'));
        tuples[row] = good;
    }
    // Equal keys are in order, whatever is kept of them.
    let tuples = numbered::<u32, u32>(5000, |row| row / 4);
    for unique in [None, Some(Unique::First), Some(Unique::Last)] {
        let choice = BuildOptions { unique, ..choice.clone() };
        assert!(build(&mut Chunks::new(&tuples, 64), &choice).unwrap().1.sorted_input);
    }
}

/// Keys whose bottom borders are all in one cell of any coarse grid.
fn tight_runs(gap_bits: u32, run: u64) -> impl Fn(u64) -> u64 {
    move |row| ((row / run) << gap_bits) + row % run
}

#[test]
fn spines_widen_where_narrow_ones_cannot_part() {
    let names = |summary: &Summary| summary.spine.iter().map(|level| level.0.clone()).collect::<Vec<_>>();
    let mut seen = Vec::new();
    let wide = BuildOptions { wide: true, ..options(1 << 20, 2) };
    for (gap_bits, run) in [(0, 1), (40, 300), (20, 64), (52, 500), (30, 2000), (56, 1000), (63, 9000)] {
        let count = if gap_bits == 0 { 20_000 } else { (run << (64 - gap_bits)).min(20_000) };
        let tuples = numbered::<u64, u64>(count, tight_runs(gap_bits, run));
        let (file, summary) = build(&mut Chunks::new(&tuples, 5000), &wide).unwrap();
        check_file(&file, &tuples);
        seen.extend(names(&summary));
    }
    for name in ["delta16", "delta32", "raw"] {
        assert!(seen.iter().any(|seen| seen == name), "{name} among {seen:?}");
    }
    // The same when the bottom level must be built again from the file: 40 MiB of lines.
    let mut tuples = numbered::<u64, u64>(2_700_000, |row| row * 3);
    let last = tuples.len() as u64;
    tuples.extend(numbered::<u64, u64>(10_000, |row| (1 << 63) + last + tight_runs(56, 1000)(row)));
    let (file, summary) = build(&mut Chunks::new(&tuples, 100_000), &options(1 << 20, 2)).unwrap();
    check_file(&file, &tuples);
    assert_ne!(names(&summary)[0], "delta16");
    assert!(build(&mut Chunks::new(&tuples, 9999), &options(1 << 30, 1)).unwrap().0 == file);
}

#[test]
fn names_are_kept() {
    let tuples = numbered::<u32, u32>(10, |row| row);
    let (file, _) = build(&mut Chunks::new(&tuples, 100), &BuildOptions::default()).unwrap();
    let header = check_file(&file, &tuples);
    let section = header.section(Tag::META).unwrap();
    let bytes = &file[section.offset() as usize..][..section.entry.length.get() as usize];
    let meta = Meta { key_name: "id".into(), value_name: "number".into(), ..Meta::default() };
    assert_eq!(Meta::decode(bytes), meta);
    assert!(file.len() < 64 << 10);
}
