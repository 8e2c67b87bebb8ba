//! Damaged files: `fsck` finds and names it, verified look-ups never answer wrongly, unverified ones
//! never panic, loop or leave the file, and forged headers are refused.
//!
//! `cargo miri test -p pleach-tests --test corrupt unverified` runs what needs no files under Miri.

use pleach::{
    FormatError, FsckOptions, Header, Index, Isa, Key, OpenError, ReadError, Report, Residence, Value,
    Verdict, Verify, fsck,
};
use pleach_builder::{BuildOptions, build_bytes};
use pleach_format::meta::Meta;
use pleach_format::section::{ENTRY_BYTES, TABLE_OFFSET, Tag};
use pleach_format::spine::Encoding;
use pleach_format::version::VERSION_MINOR;
use pleach_format::view::HEAD_BYTES;
use pleach_format::{Bits, Word};
use pleach_tests::generate::{Random, Shape, mix};
use pleach_tests::is_long;
use pleach_tests::mutate::{
    Damage, PLAIN, SEALED, content, entry_at, extent, flip, header, number, put, reseal, reseal_head, swap,
    victim,
};
use pleach_tests::naive::{self, Grid};
use rayon::prelude::*;
use std::fmt::Debug;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Files here are in memory, where there is such a folder.
const MEMORY: &str = "/dev/shm";

/// A folder in memory if there is one: these tests write a lot.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(MEMORY).or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

fn check(path: &Path) -> Report {
    fsck(path, &FsckOptions::default()).expect("readable")
}

/// What `fsck` says about these bytes.
fn check_bytes(bytes: &[u8]) -> Report {
    let file = tempfile::NamedTempFile::new_in(MEMORY).or_else(|_| tempfile::NamedTempFile::new());
    let file = file.expect("a file");
    fs::write(file.path(), bytes).expect("written");
    check(file.path())
}

/// `fsck` finds this damage under its name, and no mode that verifies everything opens the file.
fn assert_found(bytes: &[u8], damage: (&str, &str, &str)) {
    let (name, code, section) = damage;
    let report = check_bytes(bytes);
    assert_eq!(report.verdict, Verdict::Damaged, "{name}: {:?}", report.findings);
    let named = report.findings.iter().any(|finding| finding.code == code && finding.section == section);
    assert!(named, "{name}: no {code} in {section} among {:?}", report.findings);
    for finding in &report.findings {
        assert!(!finding.to_string().contains('\n'), "{name}: {finding}");
    }
    let full = Index::options().verify(Verify::Full).from_bytes(bytes.to_vec());
    assert!(full.is_err(), "{name}: opened under --verify full");
}

/// Runs all of a table; tells every failure, not only the first.
fn assert_all_found(table: &[Damage], whole: &[u8]) {
    assert_eq!(check_bytes(whole).verdict, Verdict::Clean);
    let mut missed = Vec::new();
    for damage in table {
        let mut bytes = whole.to_vec();
        (damage.make)(&mut bytes);
        assert_ne!(bytes, whole, "{} changes nothing", damage.name);
        let attempt = || assert_found(&bytes, (damage.name, damage.code, damage.section));
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt)).is_err() {
            missed.push(damage.name);
        }
    }
    assert!(missed.is_empty(), "not found under their names: {missed:?}");
}

#[test]
fn plain_damage_is_named() {
    assert_all_found(PLAIN, &victim().1);
}

#[test]
fn damage_under_right_sums_is_named() {
    assert_all_found(SEALED, &victim().1);
}

#[test]
fn a_wrong_grid_under_right_sums_is_named() {
    let tuples: Vec<(u64, u64)> = (0..6000).map(|i| (mix(i), i)).collect();
    let whole = build_bytes(&tuples, &BuildOptions::default()).expect("built");
    assert_eq!(check_bytes(&whole).findings, []);
    let (_, shape) = header(&whole).grid.expect("evenly spread keys have a grid");
    let section = content(&whole, Tag::GRID);
    let unit = |number: u64| (shape.units_at + number * 8) as usize;
    let supers = shape.supers_at as usize;
    for (what, at, bit, code) in [
        ("a mark", unit(3), 5, "grid"),
        ("a count", unit(200) + 6, 0, "grid"),
        ("the last unit", unit(shape.units - 1) + 5, 0, "grid"),
        ("the first super", supers, 0, "grid"),
        ("the first unit of the segment", 0, 0, "grid"),
        ("the units of the segment", 4, 0, "grid"),
        ("padding behind segments", 100, 0, "padding"),
        ("the guard", section.len() - 1, 7, "padding"),
    ] {
        let mut bytes = whole.clone();
        bytes[section.start + at] ^= 1 << bit;
        reseal(&mut bytes);
        let report = check_bytes(&bytes);
        assert!(report.findings.iter().any(|finding| finding.code == code), "{what}: {:?}", report.findings);
    }
}

#[test]
fn resealing_a_whole_file_changes_nothing() {
    let (_, whole) = victim();
    let mut bytes = whole.clone();
    reseal(&mut bytes);
    assert!(bytes == whole);
}

#[test]
fn a_block_of_another_file_is_found() {
    let (tuples, whole) = victim();
    let changed: Vec<(u64, u64)> =
        tuples.iter().map(|&(key, value)| (key, value ^ u64::from(key % 997 == 1))).collect();
    let other = naive::build(&changed, &Meta::default(), true);
    let block = content(&whole, Tag::LINE).start..content(&whole, Tag::LINE).start + 8192;
    let from = content(&other, Tag::LINE).start;
    // The bytes of a block may be the same in both; the sums of both files are bound to their ids.
    let mut bytes = whole.clone();
    bytes[block.clone()].copy_from_slice(&other[from..from + 8192]);
    let sums = |file: &[u8]| header(file).section(Tag::LINE).expect("lines").entry.sums_offset.get() as usize;
    let (to, from) = (sums(&whole), sums(&other));
    bytes[to..to + 4].copy_from_slice(&other[from..from + 4]);
    assert_found(&bytes, ("block of another file with its sum", "block", "LINE"));
    // A spine block where tuple lines belong.
    let mut bytes = whole.clone();
    let spine = extent(&whole, Tag::SPINE);
    bytes.copy_within(spine.start..spine.start + 512, block.start);
    assert_found(&bytes, ("spine for lines", "block", "LINE"));
}

#[test]
fn what_other_encodings_and_types_can_break_is_named() {
    // 32-bit codes leave two bytes between codes and base.
    let words = Shape::Clustered.words(1200, 32, 1);
    let tuples: Vec<(u64, ())> = words.iter().map(|&word| (word, ())).collect();
    let wide = naive::build(&tuples, &Meta::default(), false);
    // Full separators: groups of neighbours with huge gaps.
    let tuples: Vec<(u64, ())> = (0..1200).map(|i| (((i / 24) << 56) | (i % 24), ())).collect();
    let raw = naive::build(&tuples, &Meta::default(), false);
    for (file, wanted) in [(&wide, Encoding::Delta32), (&raw, Encoding::Raw)] {
        let level = header(file).spine.levels[0];
        if level.encoding != wanted {
            let found = level.encoding.name();
            panic!("this test needs {}: the builder chose {found}", wanted.name());
        }
    }
    let level0 = |file: &[u8]| {
        let header = header(file);
        (header.spine_offset + header.spine.levels[0].offset) as usize
    };
    let mut bytes = wide.clone();
    let at = level0(&bytes) + 53;
    bytes[at] = 1;
    reseal(&mut bytes);
    assert_found(&bytes, ("between codes and base", "spine-line", "SPIN"));
    let mut bytes = raw.clone();
    let at = level0(&bytes) + 3 * 8;
    put(&mut bytes, at, 8, 0);
    reseal(&mut bytes);
    assert_found(&bytes, ("raw separator", "separator", "SPIN"));
    // A separator above the last key that still parts is allowed.
    let mut bytes = raw.clone();
    let border = (0..8).find(|&slot| {
        let lines = content(&bytes, Tag::LINE).start;
        let (last, first) = (lines + slot * 64 + 56, lines + (slot + 1) * 64);
        number(&bytes, first, 8) > number(&bytes, last, 8) + 1
    });
    let at = level0(&bytes) + border.expect("a gap") * 8;
    let separator = number(&bytes, at, 8);
    put(&mut bytes, at, 8, separator + 1);
    reseal(&mut bytes);
    assert_eq!(check_bytes(&bytes).findings, []);

    // Five tuples of 8 and 4 bytes leave a gap of four.
    let tuples: Vec<(u64, u32)> = (0..7).map(|key| (key, 1)).collect();
    let mut bytes = naive::build(&tuples, &Meta::default(), false);
    let at = content(&bytes, Tag::LINE).start + 41;
    bytes[at] = 1;
    reseal(&mut bytes);
    assert_found(&bytes, ("gap in a line", "line-padding", "LINE"));

    // An empty file names no keys.
    let mut bytes = naive::build::<u64, u64>(&[], &Meta::default(), false);
    put(&mut bytes, 136, 8, 1);
    reseal(&mut bytes);
    assert_found(&bytes, ("smallest key of an empty file", "min-max", "superblock"));
    // A duplicate across two lines, of a file that says it has none.
    let tuples: Vec<(u32, u32)> = (0..100).map(|key| (key - u32::from(key == 64), key)).collect();
    let mut bytes = naive::build(&tuples, &Meta::default(), false);
    put(&mut bytes, 100, 4, 1);
    reseal(&mut bytes);
    assert_found(&bytes, ("duplicate across lines", "duplicate", "LINE"));
}

/// Flips bits of some bytes of a file in place and expects `fsck` to find each: all of them in the long form, else one
/// of each byte.
fn assert_flips_found(whole: &[u8], bytes: Range<usize>, folder: &Path) {
    let path = folder.join(format!("{}.pleach", bytes.start));
    fs::write(&path, whole).expect("written");
    let file = File::options().write(true).open(&path).expect("opened");
    for bit in bytes.start * 8..bytes.end * 8 {
        let at = bit / 8;
        if !is_long() && bit % 8 != mix(at as u64) as usize % 8 {
            continue;
        }
        file.write_all_at(&[whole[at] ^ 1 << (bit % 8)], at as u64).expect("written");
        let report = check(&path);
        assert_eq!(report.verdict, Verdict::Damaged, "bit {} of byte {at}", bit % 8);
        assert!(!report.findings.is_empty());
        file.write_all_at(&whole[at..=at], at as u64).expect("written");
    }
    assert_eq!(check(&path).verdict, Verdict::Clean);
}

#[test]
fn every_flipped_bit_of_a_small_file_is_found() {
    let tuples: Vec<(u64, u64)> = (0..130).map(|i| (mix(i / 2) >> 1, i)).collect();
    let options = BuildOptions::default();
    let whole = build_bytes(&tuples, &options).expect("built");
    assert!((20 << 10..=40 << 10).contains(&whole.len()), "{}", whole.len());
    let folder = scratch();
    // Each task flips in a file of its own.
    let step = whole.len().div_ceil(64);
    (0..64usize).into_par_iter().for_each(|task| {
        assert_flips_found(&whole, task * step..((task + 1) * step).min(whole.len()), folder.path());
    });
}

/// Tuples with duplicates, and the file of them: 4 MiB, or 1 MiB where code is not optimised.
fn large() -> (Vec<(u64, u64)>, Vec<u8>) {
    let count: u64 = if cfg!(debug_assertions) { 62_500 } else { 250_000 };
    let mut tuples: Vec<(u64, u64)> = (0..count).map(|i| (mix(i + u64::from(i % 7 == 0)), i)).collect();
    tuples.sort_by_key(|&(key, _)| key.encode());
    let whole = build_bytes(&tuples, &BuildOptions::default()).expect("built");
    assert!((count as usize * 16..count as usize * 18).contains(&whole.len()), "{}", whole.len());
    (tuples, whole)
}

#[test]
fn random_flips_and_truncations_of_a_larger_file_are_found() {
    let (_, whole) = large();
    let folder = scratch();
    (0..16u64).into_par_iter().for_each(|task| {
        let path = folder.path().join(format!("{task}.pleach"));
        fs::write(&path, &whole).expect("written");
        let file = File::options().write(true).open(&path).expect("opened");
        let mut random = Random(mix(task + 100));
        for _ in 0..if is_long() { 625 } else { 100 } {
            let bit = random.below(whole.len() as u64 * 8) as usize;
            let at = bit / 8;
            file.write_all_at(&[whole[at] ^ 1 << (bit % 8)], at as u64).expect("written");
            let report = check(&path);
            assert_eq!(report.verdict, Verdict::Damaged, "bit {} of byte {at}", bit % 8);
            let near =
                |offset: u64, length: u64| offset <= at as u64 && (at as u64) < offset + length.max(8192);
            // The place that is named is that of the bit, or that of the sum that was hit.
            let sums = extent(&whole, Tag::SUMS).start..whole.len();
            let placed = report.findings.iter().any(|finding| near(finding.offset, finding.length));
            assert!(placed || sums.contains(&at) || at < HEAD_BYTES, "byte {at}: {:?}", report.findings);
            file.write_all_at(&whole[at..=at], at as u64).expect("written");
        }
        assert_eq!(check(&path).verdict, Verdict::Clean);
        // Shorter and shorter, so that one copy serves all.
        let mut lengths: Vec<u64> = (0..64).map(|_| random.below(whole.len() as u64)).collect();
        lengths.sort_unstable();
        for length in lengths.into_iter().rev() {
            file.set_len(length).expect("cut");
            assert_eq!(check(&path).verdict, Verdict::Damaged, "{length} bytes");
            let opened = Index::open(&path);
            assert!(matches!(opened, Err(OpenError::Format { .. })), "{length} bytes: {opened:?}");
        }
    });
}

/// Answers of an open file are those of the oracle, or errors. Gives the number of answers.
fn right_or_error(index: &Index, tuples: &[(u64, u64)], queries: &[u64], what: &str) -> usize {
    let lower = |query: u64| tuples.partition_point(|&(key, _)| key < query);
    let view = index.typed::<u64, u64>().expect("types of the file");
    let mut answers = 0;
    let mut took = |right: bool, operation: &str, query: u64| {
        assert!(right, "{what}: wrong answer of {operation} for {query}");
        answers += 1;
    };
    let mut whole_batch = vec![u64::MAX; queries.len()];
    if view.lower_bound_batch(queries, &mut whole_batch).is_ok() {
        for (&query, &rank) in queries.iter().zip(&whole_batch) {
            took(rank == lower(query) as u64, "lower_bound_batch", query);
        }
    }
    let (mut values, mut present) = (vec![0; queries.len()], vec![0; queries.len().div_ceil(64)]);
    if view.get_batch(queries, &mut values, &mut present).is_ok() {
        for (i, &query) in queries.iter().enumerate() {
            let tuple = tuples.get(lower(query)).filter(|tuple| tuple.0 == query);
            let found = (present[i / 64] >> (i % 64) & 1 == 1).then_some(values[i]);
            took(found == tuple.map(|tuple| tuple.1), "get_batch", query);
        }
    }
    for &query in queries {
        let rank = lower(query);
        let tuple = tuples.get(rank).copied();
        if let Ok(value) = view.get(query) {
            took(value == tuple.filter(|tuple| tuple.0 == query).map(|tuple| tuple.1), "get", query);
        }
        if let Ok(found) = view.lower_bound(query) {
            took(found == rank as u64, "lower_bound", query);
        }
        if let Ok(found) = view.select(rank as u64) {
            took(found == tuple, "select", query);
        }
        let wanted = &tuples[rank..(rank + 9).min(tuples.len())];
        if let Ok(range) = view.range(query..)
            && let Ok(found) = range.take(9).collect::<Result<Vec<_>, _>>()
        {
            took(found == wanted, "range", query);
        }
        let (mut keys, mut values) = ([0; 9], [0; 9]);
        if let Ok(count) = view.copy_range(rank as u64, &mut keys, &mut values) {
            let found: Vec<(u64, u64)> = keys.into_iter().zip(values).take(count).collect();
            took(found == wanted, "copy_range", query);
        }
        let mut scanned = Vec::new();
        let ranks = rank as u64..rank as u64 + 9;
        let count =
            view.scan(ranks, |keys, values| scanned.extend(keys.iter().copied().zip(values.to_vec())));
        if count.is_ok() {
            took(scanned == wanted, "scan", query);
        }
    }
    answers
}

/// Sampled flips under the modes that verify: an error, or the right answer.
fn check_verified(tuples: &[(u64, u64)], whole: &[u8], flips: usize, seed: u64) {
    let folder = scratch();
    let tasks = 8;
    let answers: usize = (0..tasks as u64)
        .into_par_iter()
        .map(|task| {
            let path = folder.path().join(format!("{task}.pleach"));
            fs::write(&path, whole).expect("written");
            let file = File::options().write(true).open(&path).expect("opened");
            let mut random = Random(mix(seed + task));
            let mut answers = 0;
            for number in 0..flips / tasks {
                let bit = random.below(whole.len() as u64 * 8) as usize;
                let at = bit / 8;
                // Also the tuples in the damaged block and a key that is not there.
                let near = at.saturating_sub(content(whole, Tag::LINE).start) / 16;
                let mut queries: Vec<u64> = (0..8)
                    .map(|_| tuples[random.below(tuples.len() as u64) as usize].0)
                    .chain([near, near + 1].map(|rank| tuples[rank.min(tuples.len() - 1)].0))
                    .collect();
                queries.extend([0, u64::MAX, random.next()]);
                file.write_all_at(&[whole[at] ^ 1 << (bit % 8)], at as u64).expect("written");
                let what = format!("bit {} of byte {at}", bit % 8);
                let residence = if number % 2 == 0 { Residence::Mapped } else { Residence::Resident };
                let options = Index::options().residence(residence);
                if let Ok(index) = options.verify(Verify::Touched).open(&path) {
                    answers += right_or_error(&index, tuples, &queries, &what);
                }
                let full = options.verify(Verify::Full).open(&path);
                assert!(full.is_err(), "{what}: opened under --verify full");
                file.write_all_at(&whole[at..=at], at as u64).expect("written");
            }
            let index = Index::options().verify(Verify::Full).open(&path).expect("whole again");
            answers + right_or_error(&index, tuples, &[0, 1, tuples[0].0], "whole")
        })
        .sum();
    assert!(answers > flips, "hardly anything was answered: {answers}");
}

#[test]
fn verified_lookups_on_flipped_bits_are_right_or_errors() {
    let (tuples, whole) = victim();
    check_verified(&tuples, &whole, 4000, 1);
    let (tuples, whole) = large();
    check_verified(&tuples, &whole, 400, 2);
}

/// Runs a check that must end soon.
fn within(limit: Duration, check: impl FnOnce() + Send + 'static) {
    if cfg!(miri) {
        return check();
    }
    let (done, wait) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        check();
        drop(done);
    });
    match wait.recv_timeout(limit) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("still running after {limit:?}: an endless loop?"),
        // The sender is gone: the check has ended, well or not.
        _ => {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Every look-up on bytes that may hold anything: it ends, and stays below the number of tuples.
fn roam<K: Key, V: Value + Debug>(index: &Index, queries: &[K], random: &mut Random) {
    let view = index.typed::<K, V>().expect("types of the file");
    let keys_only = index.typed::<K, ()>().expect("keys of the file");
    let len = index.len();
    for &query in queries {
        let lower = view.lower_bound(query).expect("unverified");
        let upper = view.upper_bound(query).expect("unverified");
        assert!(lower <= len && upper <= len);
        assert!(view.rank(query).expect("unverified").is_none_or(|rank| rank < len));
        assert_eq!(view.get(query).expect("unverified").is_some(), view.contains(query).expect("unverified"));
        assert!(view.count(query..).expect("unverified") <= len);
        let other = K::decode(K::Word::from_u64(random.next()));
        assert!(view.range(query..other).expect("unverified").take(40).count() <= 40);
        assert!(view.range(query..=other).expect("unverified").rev().take(40).all(|tuple| tuple.is_ok()));
        assert!(keys_only.get_all(query).expect("unverified").take(40).count() <= 40);
        let rank = random.below(len + 2);
        assert_eq!(view.select(rank).expect("unverified").is_some(), rank < len);
        let (mut keys, mut values) = ([K::default(); 37], [V::default(); 37]);
        let copied = view.copy_range(rank, &mut keys, &mut values).expect("unverified");
        assert_eq!(copied as u64, len.saturating_sub(rank).min(37));
        let mut scanned = 0;
        let count = view.scan(rank..rank + 600, |keys, _| scanned += keys.len() as u64).expect("unverified");
        assert_eq!((count, scanned), (scanned, len.saturating_sub(rank).min(600)));
    }
    assert_eq!(view.min().expect("unverified").is_some(), len > 0);
    assert_eq!(view.max().expect("unverified").is_some(), len > 0);
    let mut ranks = vec![u64::MAX; queries.len()];
    view.lower_bound_batch(queries, &mut ranks).expect("unverified");
    assert!(ranks.iter().all(|&rank| rank <= len));
    let mut values = vec![V::default(); queries.len()];
    let mut present = vec![u64::MAX; queries.len().div_ceil(64)];
    let found = view.get_batch(queries, &mut values, &mut present).expect("unverified");
    let ones: u32 = present.iter().map(|word| word.count_ones()).sum();
    assert_eq!(found, ones as usize);
    assert!(view.contains_batch(queries, &mut present).expect("unverified") <= queries.len());
    if !cfg!(miri) {
        view.par_lower_bound_batch(queries, &mut ranks).expect("unverified");
        assert!(ranks.iter().all(|&rank| rank <= len));
        assert!(view.par_get_batch(queries, &mut values, &mut present).expect("unverified") <= queries.len());
    }
    assert!(index.meta().is_ok());
}

#[test]
fn a_broken_record_is_no_record() {
    let folder = scratch();
    let path = folder.path().join("t.pleach");
    let tuples: Vec<(u64, u64)> = (0..100).map(|key| (key, key << 32 | 7)).collect();
    for (logical, is_record, is_clean) in [
        ("record<a: u32, b: u32>", true, true),
        ("record<a: u32, b: u16>", false, false),
        ("record<a: u32,b: u32>", false, false),
        ("record<", false, false),
        ("Timestamp(Second, None)", false, true),
    ] {
        let meta = Meta { value_logical: logical.into(), ..Meta::default() };
        fs::write(&path, naive::build_with(&tuples, &meta, false, Grid::No)).expect("written");
        let report = check(&path);
        let codes: Vec<_> = report.findings.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, if is_clean { vec![] } else { vec!["meta"] }, "{logical}");
        let index = Index::open(&path).expect("opens");
        assert_eq!(index.record().expect("reads").is_some(), is_record, "{logical}");
        assert_eq!(index.typed::<u64, u64>().expect("types").get(3), Ok(Some(3 << 32 | 7)));
    }
}

/// Overwrites META, tuple lines, spine and grid: bytes of chance, of one kind, or a few changes.
fn scramble(bytes: &mut [u8], random: &mut Random, round: u64) {
    for tag in [Tag::META, Tag::LINE, Tag::SPINE, Tag::GRID] {
        if header(bytes).section(tag).is_none() {
            continue;
        }
        let place = content(bytes, tag);
        if place.is_empty() {
            continue;
        }
        let length = place.len() as u64;
        match round % 6 {
            0 => bytes[place].fill_with(|| random.next() as u8),
            1 => bytes[place].fill(0xFF),
            2 => bytes[place].fill(0),
            3 => {
                for _ in 0..=length / 512 {
                    flip(bytes, (place.start as u64 * 8 + random.below(length * 8)) as usize);
                }
            }
            4 if matches!(tag, Tag::SPINE | Tag::GRID) => bytes[place].fill_with(|| random.next() as u8),
            5 if tag == Tag::LINE => bytes[place].fill_with(|| random.next() as u8),
            _ => {}
        }
        // Every spine line claims to be inexact, so that searches step right over what they find.
        if tag == Tag::SPINE && random.below(2) == 0 {
            let place = content(bytes, tag);
            for line in bytes[place].chunks_exact_mut(64) {
                line[63] |= 1;
            }
        }
    }
}

fn unverified<K: Key, V: Value + Debug>(count: usize, rounds: u64, isas: &[Isa]) {
    let words = Shape::Duplicates.words(count, 8 * K::Word::BYTES as u32, 3);
    // A tight pair at each line's end makes the header say that some spine lines are inexact.
    let tuples: Vec<(K, V)> = words
        .iter()
        .map(|&word| (K::decode(K::Word::from_u64(word)), V::from_bits(V::Bits::from_u64(mix(word)))))
        .collect();
    let meta = Meta { key_name: "k".into(), ..Meta::default() };
    let wholes = [Grid::No, Grid::Always].map(|grid| {
        let mut whole = naive::build_with(&tuples, &meta, false, grid);
        let inexact = entry_at(&whole, Tag::SPINE) + 56 + 28;
        put(&mut whole, inexact, 8, 1);
        reseal(&mut whole);
        whole
    });
    let mut random = Random(mix(count as u64));
    for round in 0..2 * rounds {
        let mut bytes = wholes[round as usize % 2].clone();
        let round = round / 2;
        scramble(&mut bytes, &mut random, round);
        let queries: Vec<K> = (0..if cfg!(miri) { 3 } else { 150 })
            .map(|i| match i % 3 {
                0 => words.get(random.below(count.max(1) as u64) as usize).copied().unwrap_or(0),
                1 => random.next(),
                _ => [0, 1, u64::MAX, u64::MAX - 1][random.below(4) as usize],
            })
            .map(|word| K::decode(K::Word::from_u64(word)))
            .collect();
        for &isa in isas {
            for verify in [Verify::None, Verify::Header] {
                let options = Index::options().verify(verify).isa(Some(isa));
                let index = options.from_bytes(bytes.clone()).expect("the header is right");
                roam::<K, V>(&index, &queries, &mut random);
            }
        }
    }
}

macro_rules! unverified_pairs {
    ($($name:ident: $key:ty, $value:ty;)*) => {
        $(#[test] fn $name() {
            if cfg!(miri) {
                return unverified::<$key, $value>(120, 2, &[Isa::Scalar]);
            }
            for (count, rounds) in [(0, 2), (1, 6), (5, 6), (120, 60), (5_000, 60), (60_000, 18)] {
                within(Duration::from_secs(300), move || unverified::<$key, $value>(count, rounds, &Isa::available()));
            }
        })*
    };
}
unverified_pairs! {
    unverified_u64_u64: u64, u64;
    unverified_u32_u32: u32, u32;
    unverified_u32_none: u32, ();
    unverified_i64_u32: i64, u32;
    unverified_i32_f64: i32, f64;
}

#[test]
fn unverified_mapping_of_random_bytes() {
    if cfg!(miri) {
        return;
    }
    let (tuples, whole) = victim();
    let folder = scratch();
    let path = folder.path().join("t.pleach");
    let mut random = Random(5);
    for round in 0..30 {
        let mut bytes = whole.clone();
        scramble(&mut bytes, &mut random, round);
        fs::write(&path, &bytes).expect("written");
        let queries: Vec<u64> = tuples.iter().map(|tuple| tuple.0).step_by(9).collect();
        for residence in [Residence::Mapped, Residence::Resident] {
            let index = Index::options().residence(residence).open(&path).expect("the header is right");
            roam::<u64, u64>(&index, &queries, &mut random);
        }
    }
}

/// What must happen to a file whose header says something else in a field.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// `Header::parse` refuses it.
    Refused,
    /// It opens; `fsck` finds the damage.
    Found,
    /// The field may hold anything.
    Free,
}

/// Fields of the superblock: name, byte, width.
const SUPERBLOCK_FIELDS: &[(&str, usize, usize, Fate)] = &[
    ("magic", 0, 8, Fate::Refused),
    ("magic, second half", 8, 8, Fate::Refused),
    ("version_major", 16, 2, Fate::Refused),
    ("version_minor", 18, 2, Fate::Refused),
    ("development", 20, 4, Fate::Found),
    ("reader_features", 24, 8, Fate::Refused),
    ("writer_features", 32, 8, Fate::Free),
    ("ignorable_features", 40, 8, Fate::Free),
    ("file_id", 48, 8, Fate::Found),
    ("file_id, second half", 56, 8, Fate::Found),
    ("generation", 64, 8, Fate::Free),
    ("file_bytes", 72, 8, Fate::Refused),
    ("tuples", 80, 8, Fate::Refused),
    ("key_type", 88, 2, Fate::Refused),
    ("value_type", 90, 2, Fate::Refused),
    ("key_bytes", 92, 4, Fate::Refused),
    ("value_bytes", 96, 4, Fate::Refused),
    ("table_offset", 104, 8, Fate::Refused),
    ("table_bytes", 112, 8, Fate::Refused),
    ("sections", 120, 4, Fate::Refused),
    ("min_key_len", 128, 4, Fate::Found),
    ("max_key_len", 132, 4, Fate::Found),
    ("min_key", 136, 8, Fate::Found),
    ("min_key, rest", 192, 8, Fate::Found),
    ("max_key", 200, 8, Fate::Found),
    ("reserved", 296, 8, Fate::Found),
    ("reserved, last", 4084, 8, Fate::Found),
];

/// Numbers that a forger would try.
const NUMBERS: [u64; 14] = [
    0,
    1,
    2,
    255,
    4095,
    4096,
    8192,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    1 << 63,
    u64::MAX - 4095,
    u64::MAX - 1,
    u64::MAX,
];

/// Puts a number into a field, with right sums, and sees what happens.
fn forge(whole: &[u8], what: &str, at: usize, width: usize, value: u64, fate: Fate) {
    let mut bytes = whole.to_vec();
    put(&mut bytes, at, width, value);
    if bytes == whole {
        return;
    }
    reseal_head(&mut bytes);
    let start = Instant::now();
    let parsed = Header::parse(&bytes[..HEAD_BYTES], bytes.len() as u64);
    assert!(start.elapsed() < Duration::from_secs(1), "{what} = {value}: slow");
    let opened = Index::from_bytes(bytes.clone());
    assert_eq!(opened.is_ok(), parsed.is_ok(), "{what} = {value}");
    let report = check_bytes(&bytes);
    match fate {
        Fate::Refused => {
            let error = parsed.expect_err(&format!("{what} = {value} was accepted"));
            assert!(!error.to_string().contains('\n'), "{error}");
            assert_ne!(report.verdict, Verdict::Clean, "{what} = {value}");
        }
        Fate::Found => {
            assert_eq!(report.verdict, Verdict::Damaged, "{what} = {value}");
            // What opens is searched without harm.
            if let Ok(index) = opened {
                roam::<u64, u64>(&index, &[0, 1, u64::MAX, mix(3)], &mut Random(1));
            }
        }
        Fate::Free => assert_eq!(report.findings, [], "{what} = {value}"),
    }
}

#[test]
fn forged_superblocks_are_refused() {
    let (_, whole) = victim();
    let mut failed = Vec::new();
    for &(name, at, width, fate) in SUPERBLOCK_FIELDS {
        let attempt = || NUMBERS.iter().for_each(|&value| forge(&whole, name, at, width, value, fate));
        if std::panic::catch_unwind(attempt).is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
    for (value, fate) in [(0, Fate::Found), (2, Fate::Refused), (u64::MAX, Fate::Refused)] {
        forge(&whole, "unique", 100, 4, value, fate);
    }
    // Types of the same sizes: nothing but the file id can tell.
    for (at, value) in [(88, 4), (90, 4), (90, 6)] {
        let mut bytes = whole.clone();
        put(&mut bytes, at, 2, value);
        reseal_head(&mut bytes);
        assert_found(&bytes, ("type of the same size", "file-id", "superblock"));
    }
}

#[test]
fn forged_section_tables_are_refused() {
    let (_, whole) = victim();
    let mut failed = Vec::new();
    for tag in [Tag::META, Tag::LINE, Tag::SPINE, Tag::SUMS, Tag::SUM2] {
        let entry = entry_at(&whole, tag);
        let spine = tag == Tag::SPINE;
        let known = tag == Tag::LINE || spine;
        let refused_if = |condition| if condition { Fate::Refused } else { Fate::Found };
        let mut fields = vec![
            ("offset", 8, 8, Fate::Refused),
            ("sums_offset", 32, 8, Fate::Refused),
            ("sums", 40, 8, Fate::Refused),
            ("sums_crc", 48, 4, Fate::Found),
            ("reserved", 52, 4, Fate::Refused),
            ("elements", 24, 8, refused_if(known)),
            ("geometry reserved", 56 + 60, 4, Fate::Refused),
            ("reserved2", 120, 8, Fate::Refused),
        ];
        let mut geometry = vec![
            ("line_bytes", 0, 4),
            ("key_bytes", 4, 4),
            ("value_bytes", 8, 4),
            ("tuples_per_line", 12, 4),
            ("lines_per_page", 16, 4),
            ("levels", 20, 4),
            ("order", 24, 4),
            ("encodings, last", 52, 8),
        ];
        if !spine {
            geometry.push(("encodings", 36, 8));
        }
        fields
            .extend(geometry.into_iter().map(|(name, at, width)| (name, 56 + at, width, refused_if(known))));
        fields.push(("inexact", 56 + 28, 8, refused_if(tag == Tag::LINE)));
        if known {
            fields.push(("length", 16, 8, Fate::Refused));
        }
        for (name, at, width, fate) in fields {
            let what = format!("{tag} {name}");
            let attempt =
                || NUMBERS.iter().for_each(|&value| forge(&whole, &what, entry + at, width, value, fate));
            if std::panic::catch_unwind(attempt).is_err() {
                failed.push(what);
            }
        }
        for value in [4097, 1 << 20, 1 << 32, 1 << 63, u64::MAX - 127, u64::MAX] {
            forge(&whole, &format!("{tag} length"), entry + 16, 8, value, Fate::Refused);
        }
        for value in [2, 3, 0x8000_0001, u64::MAX] {
            forge(&whole, &format!("{tag} flags"), entry + 4, 4, value, Fate::Refused);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
    let encodings = entry_at(&whole, Tag::SPINE) + 56 + 36;
    for code in 1..=255 {
        // Both levels are of 16-bit codes: another encoding has another length.
        forge(&whole, "encoding", encodings, 1, if code == 1 { 0 } else { code }, Fate::Refused);
    }
    // A root of nine full separators would fill one line too: nothing but the file id can tell.
    forge(&whole, "encoding of the root", encodings + 1, 1, 0, Fate::Found);
    for levels in [0, 1, 3, 24, 25, 255, 1 << 31] {
        forge(&whole, "levels", entry_at(&whole, Tag::SPINE) + 56 + 20, 4, levels, Fate::Refused);
    }
}

/// Refused for its table, whatever the sums say.
fn assert_refused(mut bytes: Vec<u8>, what: &str) -> FormatError {
    reseal_head(&mut bytes);
    let error = Header::parse(&bytes[..HEAD_BYTES], bytes.len() as u64).err();
    let error = error.unwrap_or_else(|| panic!("{what}: accepted"));
    assert!(Index::from_bytes(bytes.clone()).is_err(), "{what}");
    assert_ne!(check_bytes(&bytes).verdict, Verdict::Clean, "{what}");
    error
}

#[test]
fn forged_places_of_sections_are_refused() {
    let (_, whole) = victim();
    let at = |tag| entry_at(&whole, tag);
    let (meta, line, spine, sums) = (at(Tag::META), at(Tag::LINE), at(Tag::SPINE), at(Tag::SUMS));
    let offset = |entry: usize| number(&whole, entry + 8, 8);
    let with = |changes: &[(usize, u64)]| {
        let mut bytes = whole.clone();
        for &(at, value) in changes {
            put(&mut bytes, at, 8, value);
        }
        bytes
    };
    let end = whole.len() as u64;
    for (what, changes) in [
        ("two sections at one place", vec![(spine + 8, offset(line))]),
        ("overlap", vec![(spine + 8, offset(line) + 4096)]),
        ("out of order", vec![(line + 8, offset(spine)), (spine + 8, offset(line))]),
        ("unaligned", vec![(spine + 8, offset(spine) + 64)]),
        ("over the closing superblock", vec![(at(Tag::SUM2) + 8, end - 4096)]),
        ("past the end", vec![(at(Tag::SUM2) + 8, end)]),
        ("far past the end", vec![(at(Tag::SUM2) + 8, 1 << 62)]),
        ("wrapping", vec![(line + 8, u64::MAX - 4095), (line + 16, 8192)]),
        ("in the section table", vec![(meta + 8, 4096)]),
        ("at the start", vec![(meta + 8, 0)]),
        ("a hole at 8192", vec![(meta + 8, 12288)]),
        ("sums in the tuple lines", vec![(line + 32, offset(line))]),
        ("sums of the spine in SUM2", vec![(spine + 32, offset(at(Tag::SUM2)))]),
        ("sums of SUMS in SUMS", vec![(sums + 32, offset(sums))]),
        ("sums unaligned", vec![(line + 32, number(&whole, line + 32, 8) + 2)]),
        ("sums past their section", vec![(line + 32, number(&whole, at(Tag::SUM2) + 8, 8) - 8)]),
        ("sums wrapping", vec![(line + 32, u64::MAX - 3)]),
    ] {
        let error = assert_refused(with(&changes), what);
        assert!(matches!(error, FormatError::Corrupt { .. }), "{what}: {error:?}");
    }
    // The same section twice, and none of a kind.
    for (from, to) in [(line, spine), (spine, line), (line, sums), (meta, line)] {
        let mut bytes = whole.clone();
        bytes.copy_within(from..from + 4, to);
        assert_refused(bytes, "a section twice");
    }
    for count in 0..5u64 {
        let mut bytes = whole.clone();
        put(&mut bytes, 120, 4, count);
        assert_refused(bytes, "fewer sections");
    }
    let mut bytes = whole.clone();
    bytes[spine..spine + 4].copy_from_slice(b"NEWS");
    assert!(matches!(assert_refused(bytes, "unknown required section"), FormatError::Feature { .. }));
}

/// The victim with one more section of 4 KiB between META and LINE.
fn with_unknown_section(required: bool) -> (Vec<(u64, u64)>, Vec<u8>) {
    let (tuples, whole) = victim();
    let meta = entry_at(&whole, Tag::META);
    let count = header(&whole).sections.len();
    let place = extent(&whole, Tag::META).end;
    let mut bytes = whole.clone();
    bytes.splice(place..place, std::iter::repeat_n(b'x', 4096));
    // Entries behind META move one on, and all they point at 4096 on.
    let table = TABLE_OFFSET as usize;
    bytes.copy_within(table + ENTRY_BYTES..table + count * ENTRY_BYTES, table + 2 * ENTRY_BYTES);
    let new = meta + ENTRY_BYTES;
    bytes[new..new + ENTRY_BYTES].fill(0);
    bytes[new..new + 4].copy_from_slice(b"NEWS");
    put(&mut bytes, new + 4, 4, u64::from(required));
    put(&mut bytes, new + 8, 8, place as u64);
    put(&mut bytes, new + 16, 8, 4096);
    for entry in (0..=count).filter(|&entry| entry != 1).map(|entry| meta + entry * ENTRY_BYTES) {
        for at in [entry + 8, entry + 32] {
            let old = number(&bytes, at, 8);
            if old >= place as u64 {
                put(&mut bytes, at, 8, old + 4096);
            }
        }
    }
    // Its list of one sum goes behind the last one in SUMS.
    let sums = meta + (count - 1) * ENTRY_BYTES;
    let length = number(&bytes, sums + 16, 8);
    let list = number(&bytes, sums + 8, 8) + length.next_multiple_of(128);
    put(&mut bytes, new + 32, 8, list);
    put(&mut bytes, new + 40, 8, 1);
    put(&mut bytes, sums + 16, 8, length.next_multiple_of(128) + 4);
    let elements = number(&bytes, sums + 24, 8);
    put(&mut bytes, sums + 24, 8, elements + 1);
    let file_bytes = bytes.len() as u64;
    put(&mut bytes, 72, 8, file_bytes);
    put(&mut bytes, 120, 4, count as u64 + 1);
    reseal(&mut bytes);
    (tuples, bytes)
}

#[test]
fn unknown_sections_are_skipped_unless_required() {
    let (tuples, bytes) = with_unknown_section(false);
    assert_eq!(check_bytes(&bytes).findings, []);
    for verify in Verify::ALL {
        let index = Index::options().verify(verify).from_bytes(bytes.clone()).expect("skips it");
        let view = index.typed::<u64, u64>().expect("types of the file");
        for &(key, value) in tuples.iter().step_by(7) {
            assert_eq!(view.get(key), Ok(Some(value)));
        }
        assert_eq!(index.meta().expect("readable").key_name, "id");
    }
    // A flipped bit in it is found.
    let mut damaged = bytes.clone();
    flip(&mut damaged, extent(&bytes, Tag(*b"NEWS")).start * 8);
    assert_found(&damaged, ("unknown section", "block", "NEWS"));
    let (_, bytes) = with_unknown_section(true);
    let refused = Index::from_bytes(bytes.clone());
    assert!(
        matches!(refused, Err(OpenError::Format { source: FormatError::Feature { .. }, .. })),
        "{refused:?}"
    );
    assert_eq!(check_bytes(&bytes).verdict, Verdict::Newer);
}

#[test]
fn newer_foreign_and_stumps_are_told_apart() {
    let (_, whole) = victim();
    let changed = |at: usize, width: usize, value: u64| {
        let mut bytes = whole.clone();
        put(&mut bytes, at, width, value);
        reseal_head(&mut bytes);
        bytes
    };
    let minor = u64::from(VERSION_MINOR);
    let others =
        [(16, 2, 1), (18, 2, minor - 1), (18, 2, minor + 1), (18, 2, 0xFFFF), (24, 8, 1), (24, 8, 1 << 63)];
    for (at, width, value) in others {
        let bytes = changed(at, width, value);
        let report = check_bytes(&bytes);
        assert_eq!(report.verdict, Verdict::Newer, "byte {at}: {:?}", report.findings);
        let error = Header::parse(&bytes[..HEAD_BYTES], bytes.len() as u64).expect_err("newer");
        assert!(!error.is_damage(), "{error}");
        // The same bytes without right sums are damage, never a newer version.
        let mut bytes = whole.clone();
        put(&mut bytes, at, width, value);
        assert_eq!(check_bytes(&bytes).verdict, Verdict::Damaged, "byte {at}");
    }
    for foreign in [&b"PAR1 and so on"[..], &[0; 5000], &[0xFF; 20_000], b"\x89PNG\r\n\x1a\n", b"a", &[0]] {
        assert_eq!(check_bytes(foreign).verdict, Verdict::Foreign, "{foreign:?}");
    }
    for length in 0..=200 {
        let verdict = check_bytes(&whole[..length]).verdict;
        assert_eq!(verdict, Verdict::Damaged, "the first {length} bytes");
    }
    // The magic at one end only: half a copy, or a torn write.
    let mut bytes = whole.clone();
    bytes[..HEAD_BYTES].fill(0);
    assert_eq!(check_bytes(&bytes).verdict, Verdict::Damaged, "magic at the end only");
    let mut bytes = whole.clone();
    let end = bytes.len() - 4096;
    bytes[end..].fill(0);
    assert_eq!(check_bytes(&bytes).verdict, Verdict::Damaged, "magic at the start only");
    let folder = scratch();
    assert!(fsck(folder.path(), &FsckOptions::default()).is_err(), "a folder");
    assert!(fsck(&folder.path().join("no"), &FsckOptions::default()).is_err(), "nothing there");
}

#[test]
fn swapping_halves_of_the_file_is_found() {
    let (_, whole) = victim();
    let mut bytes = whole.clone();
    let spine = extent(&whole, Tag::SPINE);
    let sums = extent(&whole, Tag::SUMS);
    swap(&mut bytes, spine.start, sums.start, 4096);
    assert_found(&bytes, ("sections exchanged", "block", "SPIN"));
}

/// Name of a file that the child process of a SIGBUS test cuts short while it searches.
const CUT_PATH: &str = "PLEACH_TEST_CUT_PATH";
/// What the child does: bytes to cut to, whether SIGBUS is contained, whether the copy is resident.
const CUT_HOW: &str = "PLEACH_TEST_CUT_HOW";

/// Runs [`cut_child`] in a process of its own.
fn cut_in_child(path: &Path, how: &str) -> std::process::Output {
    std::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "cut_child", "--nocapture"])
        .env(CUT_PATH, path)
        .env(CUT_HOW, how)
        .output()
        .expect("a child")
}

/// Does nothing unless [`cut_in_child`] started it.
#[test]
fn cut_child() {
    let (Ok(path), Ok(how)) = (std::env::var(CUT_PATH), std::env::var(CUT_HOW)) else { return };
    let how: Vec<&str> = how.split(' ').collect();
    let (length, contain, resident) =
        (how[0].parse::<u64>().expect("a number"), how[1] == "contain", how[2] == "resident");
    if contain {
        pleach::contain_sigbus();
        pleach::contain_sigbus();
    }
    let (tuples, _) = large();
    let residence = if resident { Residence::Resident } else { Residence::Mapped };
    let index = Index::options().residence(residence).open(&path).expect("opens");
    let view = index.typed::<u64, u64>().expect("types of the file");
    let keys: Vec<u64> = tuples.iter().map(|tuple| tuple.0).collect();
    let mut ranks = vec![0; keys.len()];
    view.lower_bound_batch(&keys, &mut ranks).expect("still whole");
    File::options().write(true).open(&path).expect("opened").set_len(length).expect("cut");
    let (mut values, mut present) = (vec![0; keys.len()], vec![0; keys.len().div_ceil(64)]);
    let answers: Vec<Result<(), ReadError>> = vec![
        match how[3] {
            "single" => keys.iter().try_for_each(|&key| view.get(key).map(drop)),
            "batch" => view.get_batch(&keys, &mut values, &mut present).map(drop),
            "parallel" => view.par_get_batch(&keys, &mut values, &mut present).map(drop),
            "range" => view.range(..).and_then(|mut range| range.try_for_each(|tuple| tuple.map(drop))),
            _ => view.copy_range(0, &mut vec![0; keys.len()], &mut vec![0; keys.len()]).map(drop),
        },
        view.get(keys[keys.len() / 2]).map(drop),
        view.lower_bound_batch(&keys[..64], &mut ranks[..64]),
        view.max().map(drop),
        index.meta().map(drop),
    ];
    let wanted = if resident { Ok(()) } else { Err(ReadError::MappingLost) };
    assert!(answers.iter().all(|answer| *answer == wanted), "{answers:?}");
    // Another file is not concerned.
    let other = tempfile::NamedTempFile::new().expect("a file");
    fs::write(other.path(), victim().1).expect("written");
    let other = Index::open(other.path()).expect("opens");
    assert!(other.typed::<u64, u64>().expect("types of the file").min().expect("readable").is_some());
    println!("as expected");
}

#[test]
fn a_file_cut_short_under_its_mapping_is_an_error() {
    use std::os::unix::process::ExitStatusExt;
    let (_, whole) = large();
    let folder = scratch();
    let path = folder.path().join("t.pleach");
    for length in [0, 4096, whole.len() / 2] {
        for operation in ["single", "batch", "parallel", "range", "copy"] {
            for residence in ["mapped", "resident"] {
                fs::write(&path, &whole).expect("written");
                let output = cut_in_child(&path, &format!("{length} contain {residence} {operation}"));
                let text = String::from_utf8_lossy(&output.stdout);
                assert!(
                    output.status.success() && text.contains("as expected"),
                    "{length} {operation} {residence}: {:?}\n{text}\n{}",
                    output.status,
                    String::from_utf8_lossy(&output.stderr)
                );
            }
        }
    }
    // Without the handler the process dies: this test would notice if nothing were cut.
    fs::write(&path, &whole).expect("written");
    let output = cut_in_child(&path, "0 alone mapped single");
    assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{output:?}");
}
