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
use pleach_format::version::VERSION_MAJOR;
use pleach_format::view::HEAD_BYTES;
use pleach_format::{Bits, Word};
use pleach_tests::generate::{Random, Shape, mix};
use pleach_tests::mutate::{
    Damage, PLAIN, SCRAMBLES, SEALED, content, entry_at, extent, flip, header, number, put, reseal,
    reseal_head, scramble, swap, victim,
};
use pleach_tests::naive::{self, Grid};
use pleach_tests::roam::roam;
use pleach_tests::whole::wholes;
use pleach_tests::{figure, is_long};
use rayon::prelude::*;
use std::fmt::Debug;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Files here are in memory, where there is such a folder.
const MEMORY: &str = "/dev/shm";

/// A folder in memory if there is one: these tests write a lot.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(MEMORY).or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

fn check(path: &Path) -> Report {
    fsck(path, &FsckOptions::default()).expect("readable")
}

/// Returns the findings of `fsck` for these bytes.
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
    let named =
        report.findings.iter().any(|finding| finding.code.name() == code && finding.section == section);
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
    figure(2, &format!("{} kinds of plain damage", PLAIN.len()));
}

#[test]
fn damage_under_right_sums_is_named() {
    assert_all_found(SEALED, &victim().1);
    figure(2, &format!("{} kinds under right sums, all named", SEALED.len()));
}

#[test]
fn a_wrong_grid_under_right_sums_is_named() {
    let tuples: Vec<(u64, u64)> = (0..6000).map(|i| (mix(i), i)).collect();
    let whole = build_bytes(&tuples, &BuildOptions::default()).expect("built");
    assert_eq!(check_bytes(&whole).findings, []);
    let (_, shape) = header(&whole).grid.expect("numbers have a grid");
    let section = content(&whole, Tag::GRID);
    let unit = |number: u64| (shape.units_at + number * 8) as usize;
    for (what, at, bit, code) in [
        ("a mark", unit(3), 5, "grid"),
        ("a count", unit(200) + 4, 0, "grid"),
        ("the last unit", unit(shape.units - 1) + 5, 0, "grid"),
        ("the guard", section.len() - 1, 7, "padding"),
    ] {
        let mut bytes = whole.clone();
        bytes[section.start + at] ^= 1 << bit;
        reseal(&mut bytes);
        let report = check_bytes(&bytes);
        assert!(
            report.findings.iter().any(|finding| finding.code.name() == code),
            "{what}: {:?}",
            report.findings
        );
    }
}

/// Every bit of the segments of keys that crowd at every scale.
#[test]
fn wrong_segments_under_right_sums_are_named() {
    let tuples: Vec<(u64, u64)> = (0..900).map(|i| (mix(i) >> (mix(i + 9999) % 60), i)).collect();
    let whole = build_bytes(&tuples, &BuildOptions::default()).expect("built");
    assert_eq!(check_bytes(&whole).findings, []);
    let (_, shape) = header(&whole).grid.expect("numbers have a grid");
    assert!(shape.steps > 1 && shape.segments > 50, "{shape:?}");
    let section = content(&whole, Tag::GRID);
    let mut unseen = 0;
    for bit in 0..shape.units_at as usize * 8 {
        let mut bytes = whole.clone();
        bytes[section.start + bit / 8] ^= 1 << (bit % 8);
        reseal(&mut bytes);
        if check_bytes(&bytes).findings.is_empty() {
            unseen += 1;
            // Then no search finds less than before.
            let index = Index::from_bytes(bytes).expect("opens");
            let view = index.typed::<u64, u64>().expect("its types");
            for (key, _) in &tuples {
                for query in [key.saturating_sub(1), *key, key.saturating_add(1)] {
                    let expected = tuples_below(&tuples, query);
                    assert_eq!(view.lower_bound(query).expect("read"), expected, "bit {bit}, {query}");
                }
            }
        }
    }
    // The base of a part without borders has no meaning, and low bits of others decide little.
    assert!(unseen < shape.segments as usize * 64, "{unseen}");
}

fn tuples_below(tuples: &[(u64, u64)], query: u64) -> u64 {
    tuples.iter().filter(|tuple| tuple.0 < query).count() as u64
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
    let wide = naive::build(&tuples, &naive::wide(), false);
    // Full separators: groups of neighbours with huge gaps.
    let tuples: Vec<(u64, ())> = (0..1200).map(|i| (((i / 24) << 56) | (i % 24), ())).collect();
    let raw = naive::build(&tuples, &naive::wide(), false);
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
    let mut bytes = naive::build(&tuples, &naive::wide(), false);
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

/// Flips bits of some bytes of a file in place and expects `fsck` to find each: all of them, or one of each byte.
fn assert_flips_found(whole: &[u8], bytes: Range<usize>, all: bool, folder: &Path) -> u64 {
    let path = folder.join(format!("{}.pleach", bytes.start));
    fs::write(&path, whole).expect("written");
    let file = File::options().write(true).open(&path).expect("opened");
    let mut flips = 0;
    for bit in bytes.start * 8..bytes.end * 8 {
        let at = bit / 8;
        if !all && bit % 8 != mix(at as u64) as usize % 8 {
            continue;
        }
        file.write_all_at(&[whole[at] ^ 1 << (bit % 8)], at as u64).expect("written");
        let report = check(&path);
        assert_eq!(report.verdict, Verdict::Damaged, "bit {} of byte {at}", bit % 8);
        assert_placed(&report, at);
        file.write_all_at(&whole[at..=at], at as u64).expect("written");
        flips += 1;
    }
    assert_eq!(check(&path).verdict, Verdict::Clean);
    flips
}

/// The place that is named is that of the byte.
fn assert_placed(report: &Report, at: usize) {
    let near = |offset: u64, length: u64| (offset..offset + length).contains(&(at as u64));
    let placed = report.findings.iter().any(|finding| near(finding.offset, finding.length));
    assert!(placed, "byte {at}: {:?}", report.findings);
}

/// Each task flips in a file of its own. How many were flipped.
fn flip_all(whole: &[u8], all: bool) -> u64 {
    let folder = scratch();
    let step = whole.len().div_ceil(64);
    let flip = |task: usize| {
        let bytes = (task * step).min(whole.len())..((task + 1) * step).min(whole.len());
        assert_flips_found(whole, bytes, all, folder.path())
    };
    (0..64usize).into_par_iter().map(flip).sum()
}

#[test]
fn every_flipped_bit_of_a_small_file_is_found() {
    let count = if is_long() { 14_000 } else { 130 };
    let tuples: Vec<(u64, u64)> = (0..count).map(|i| (mix(i / 2) >> 1, i)).collect();
    let whole = build_bytes(&tuples, &BuildOptions::default()).expect("built");
    let size = if is_long() { 240 << 10..=280 << 10 } else { 20 << 10..=40 << 10 };
    assert!(size.contains(&whole.len()), "{}", whole.len());
    let flips = flip_all(&whole, is_long());
    let which = if is_long() { "every bit" } else { "a bit of every byte" };
    let kibibytes = whole.len() >> 10;
    figure(1, &format!("{flips} flips, {which} of a file of {kibibytes} KiB, all found and the block named"));
    // All types and sections, where every byte is met.
    let others = if is_long() { wholes() } else { &wholes()[..1] };
    let bytes: u64 = others.iter().map(|whole| flip_all(whole, false)).sum();
    figure(
        3,
        &format!("{} bytes of {} files, none outside a sum", bytes + whole.len() as u64, others.len() + 1),
    );
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
    let (flips, cut) = (AtomicUsize::new(0), AtomicUsize::new(0));
    (0..16u64).into_par_iter().for_each(|task| {
        let path = folder.path().join(format!("{task}.pleach"));
        fs::write(&path, &whole).expect("written");
        let file = File::options().write(true).open(&path).expect("opened");
        let mut random = Random(mix(task + 100));
        for _ in 0..if is_long() { 6250 } else { 100 } {
            let bit = random.below(whole.len() as u64 * 8) as usize;
            let at = bit / 8;
            file.write_all_at(&[whole[at] ^ 1 << (bit % 8)], at as u64).expect("written");
            let report = check(&path);
            assert_eq!(report.verdict, Verdict::Damaged, "bit {} of byte {at}", bit % 8);
            assert_placed(&report, at);
            file.write_all_at(&whole[at..=at], at as u64).expect("written");
            flips.fetch_add(1, Relaxed);
        }
        assert_eq!(check(&path).verdict, Verdict::Clean);
        // Shorter and shorter, so that one copy serves all.
        let mut lengths: Vec<u64> = (0..64).map(|_| random.below(whole.len() as u64)).collect();
        lengths
            .extend((0..whole.len() as u64 / 4096).filter(|page| page % 16 == task).map(|page| page * 4096));
        let borders = header(&whole)
            .sections
            .iter()
            .flat_map(|section| [section.offset(), section.end])
            .collect::<Vec<_>>();
        lengths.extend(borders.iter().flat_map(|border| [border - 1, *border, border + 1]));
        lengths.sort_unstable();
        for length in lengths.into_iter().rev() {
            file.set_len(length).expect("cut");
            assert_eq!(check(&path).verdict, Verdict::Damaged, "{length} bytes");
            let opened = Index::open(&path);
            assert!(matches!(opened, Err(OpenError::Format { .. })), "{length} bytes: {opened:?}");
            cut.fetch_add(1, Relaxed);
        }
    });
    let (flips, cut, kibibytes) = (flips.into_inner(), cut.into_inner(), whole.len() >> 10);
    figure(
        4,
        &format!(
            "{cut} lengths of a file of {kibibytes} KiB, all pages and borders of sections, all refused"
        ),
    );
    figure(1, &format!("{flips} flips drawn in a file of {kibibytes} KiB, all found"));
}

#[test]
fn every_length_is_refused() {
    let whole = &wholes()[1];
    let folder = scratch();
    let path = folder.path().join("t.pleach");
    fs::write(&path, [&whole[..], &[0; 4096]].concat()).expect("written");
    let file = File::options().write(true).open(&path).expect("opened");
    // Shorter and shorter.
    let mut lengths = 0;
    for length in (0..=whole.len() as u64 + 4096).rev() {
        if length == whole.len() as u64 || (!is_long() && length % 61 != 0) {
            continue;
        }
        file.set_len(length).expect("cut");
        let opened = Index::open(&path);
        assert!(matches!(opened, Err(OpenError::Format { .. })), "{length} bytes: {opened:?}");
        let verdict = check(&path).verdict;
        assert_eq!(verdict, Verdict::Damaged, "{length} bytes");
        lengths += 1;
    }
    figure(4, &format!("{lengths} lengths of a file of {} bytes and 4096 more, all refused", whole.len()));
}

#[test]
fn bursts_and_pairs_of_bits_are_found() {
    let (_, whole) = victim();
    let mut random = Random(77);
    let bursts = if is_long() { 20_000 } else { 200 };
    let folder = scratch();
    let path = folder.path().join("t.pleach");
    fs::write(&path, &whole).expect("written");
    let file = File::options().write(true).open(&path).expect("opened");
    for _ in 0..bursts {
        let at = random.below(whole.len() as u64 - 8) as usize;
        let burst = (random.next() as u32 | 1).rotate_left(random.below(32) as u32);
        let shift = random.below(8);
        let changed = number(&whole, at, 8) ^ u64::from(burst) << shift;
        file.write_all_at(&changed.to_le_bytes(), at as u64).expect("written");
        assert_eq!(check(&path).verdict, Verdict::Damaged, "burst {burst:x} at byte {at}");
        file.write_all_at(&whole[at..at + 8], at as u64).expect("written");
    }
    // Two bits of the superblock: of all pairs in its fields every one in the long form.
    let bits = 304 * 8;
    let step = if is_long() { 1 } else { 1009 };
    let pairs: u64 = (0..bits)
        .into_par_iter()
        .map(|first| {
            let mut head = whole[..HEAD_BYTES].to_vec();
            let mut pairs = 0;
            flip(&mut head, first);
            for second in (first + 1..bits).filter(|second| (first + second) % step == 0) {
                flip(&mut head, second);
                let parsed = Header::parse(&head, whole.len() as u64);
                assert!(parsed.is_err(), "bits {first} and {second}");
                flip(&mut head, second);
                pairs += 1;
            }
            pairs
        })
        .sum();
    // One figure each: commas are put into the number that a figure begins with.
    figure(2, &format!("{bursts} bursts of up to 32 bits, all found"));
    figure(2, &format!("{pairs} pairs of bits of the superblock, all refused"));
}

#[test]
fn blocks_of_other_generations_and_torn_ones_are_found() {
    let (tuples, whole) = victim();
    let changed: Vec<(u64, u64)> = tuples.iter().map(|&(key, value)| (key, value ^ 1)).collect();
    let meta = Meta { key_name: "id".into(), value_name: "number".into(), ..Meta::default() };
    let before = naive::build(&changed, &meta, true);
    assert_eq!(before.len(), whole.len());
    let mut tried = 0;
    for section in &header(&whole).sections {
        let (start, end) = (section.offset() as usize, section.end as usize);
        for block in (start..end).step_by(8192) {
            let block_end = (block + 8192).min(end);
            // The whole block, or its first sectors, as the generation before has them, or zeros.
            for torn in (block + 512..=block_end).step_by(512) {
                for other in [&before[block..torn], &vec![0; torn - block]] {
                    let mut bytes = whole.clone();
                    bytes[block..torn].copy_from_slice(other);
                    if bytes != whole {
                        assert_eq!(check_bytes(&bytes).verdict, Verdict::Damaged, "{block} to {torn}");
                        tried += 1;
                    }
                }
            }
        }
    }
    assert!(tried > 100, "{tried}");
    figure(
        2,
        &format!("{tried} times a block torn at 512 bytes or taken from another generation, all found"),
    );
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
        let codes: Vec<_> = report.findings.iter().map(|finding| finding.code.name()).collect();
        assert_eq!(codes, if is_clean { vec![] } else { vec!["meta"] }, "{logical}");
        let index = Index::open(&path).expect("opens");
        assert_eq!(index.record().expect("reads").is_some(), is_record, "{logical}");
        assert_eq!(index.typed::<u64, u64>().expect("types").get(3), Ok(Some(3 << 32 | 7)));
    }
}

/// Searches files whose sections hold anything; returns the number of look-ups of each instruction set.
fn unverified<K: Key, V: Value + Debug>(count: usize, rounds: u64, isas: &[Isa]) -> u64 {
    let words = Shape::Duplicates.words(count, 8 * K::Word::BYTES as u32, 3);
    // A tight pair at each line's end makes the header say that some spine lines are inexact.
    let tuples: Vec<(K, V)> = words
        .iter()
        .map(|&word| (K::decode(K::Word::from_u64(word)), V::from_bits(V::Bits::from_u64(mix(word)))))
        .collect();
    let meta = Meta { key_name: "k".into(), ..Meta::default() };
    let wholes = [Grid::No, Grid::Always, Grid::Groups].map(|grid| {
        let mut whole = naive::build_with(&tuples, &meta, false, grid);
        let inexact = entry_at(&whole, Tag::SPINE) + 56 + 16;
        put(&mut whole, inexact, 8, 1);
        reseal(&mut whole);
        whole
    });
    let mut random = Random(mix(count as u64));
    let mut asked = 0;
    for round in 0..3 * rounds {
        let mut bytes = wholes[round as usize % 3].clone();
        let round = round / 3;
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
            // Twice, with other look-ups.
            for _ in 0..2 {
                let options = Index::options().isa(Some(isa));
                let index = options.from_bytes(bytes.clone()).expect("the header is right");
                asked += roam::<K, V>(&index, &queries, &mut random);
            }
        }
    }
    asked / isas.len() as u64
}

/// Numbers of tuples, and with how many damaged files of each: every kind of damage several times.
const UNVERIFIED: [(usize, u64); 6] = [(0, 2), (1, 7), (5, 7), (120, 63), (5_000, 63), (60_000, 21)];

macro_rules! unverified_pairs {
    ($($name:ident: $key:ty, $value:ty;)*) => {
        $(#[test] fn $name() {
            if cfg!(miri) {
                unverified::<$key, $value>(120, 2, &[Isa::Scalar]);
                return;
            }
            let times = if is_long() { 2 } else { 1 };
            let asked = Arc::new(AtomicU64::new(0));
            for (count, rounds) in UNVERIFIED {
                let asked = Arc::clone(&asked);
                within(Duration::from_secs(300), move || {
                    let more = unverified::<$key, $value>(count, times * rounds, &Isa::available());
                    asked.fetch_add(more, Relaxed);
                });
            }
            let asked = asked.load(Relaxed);
            // 10^7 for the five pairs together in the long form.
            assert!(asked >= times * 1_000_000, "{asked} look-ups");
            figure(6, &format!("{asked} look-ups by each instruction set"));
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
#[cfg_attr(miri, ignore = "maps a file")]
fn unverified_mapping_of_random_bytes() {
    let (tuples, whole) = victim();
    let folder = scratch();
    let path = folder.path().join("t.pleach");
    let mut random = Random(5);
    for round in 0..5 * SCRAMBLES {
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

/// The victim with one more section of 4 KiB between META and LINE.
fn with_unknown_section(required: bool) -> (Vec<(u64, u64)>, Vec<u8>) {
    let (tuples, whole) = victim();
    let meta = entry_at(&whole, Tag::META);
    let count = header(&whole).sections.len();
    let place = extent(&whole, Tag::META).end;
    let mut bytes = whole.clone();
    bytes.splice(place..place, std::iter::repeat_n(b'x', 4096));
    // Entries after META move by one, and the data that they point to by 4096.
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
    // Its list of one sum goes between that of META, of one sum as well, and the others, all of which are
    // made anew.
    let sums = meta + (count - 1) * ENTRY_BYTES;
    let list = number(&bytes, meta + 32, 8) + 128;
    put(&mut bytes, new + 32, 8, list);
    put(&mut bytes, new + 40, 8, 1);
    for entry in (2..count - 1).map(|entry| meta + entry * ENTRY_BYTES) {
        let old = number(&bytes, entry + 32, 8);
        put(&mut bytes, entry + 32, 8, old + 128);
    }
    let (start, length) = (number(&bytes, sums + 8, 8), number(&bytes, sums + 16, 8));
    put(&mut bytes, sums + 16, 8, length + 128);
    bytes[start as usize..][..length as usize].fill(0);
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
        matches!(refused, Err(OpenError::Format { source: FormatError::Section { .. }, .. })),
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
    let major = u64::from(VERSION_MAJOR);
    let others = [(16, 2, major - 1), (16, 2, major + 1), (16, 2, 0xFFFF), (24, 8, 2), (24, 8, 1 << 63)];
    for (at, width, value) in others {
        let bytes = changed(at, width, value);
        let report = check_bytes(&bytes);
        let wanted = if (at, value) == (16, major - 1) { Verdict::Older } else { Verdict::Newer };
        assert_eq!(report.verdict, wanted, "byte {at}: {:?}", report.findings);
        let error = Header::parse(&bytes[..HEAD_BYTES], bytes.len() as u64).expect_err("newer");
        assert!(!error.is_damage(), "{error}");
        // The same bytes without right sums are damage, never a newer version.
        let mut bytes = whole.clone();
        put(&mut bytes, at, width, value);
        assert_eq!(check_bytes(&bytes).verdict, Verdict::Damaged, "byte {at}");
    }
    // What a later minor version adds can be skipped: its reserved bytes are not looked at.
    let mut later = changed(18, 2, 1);
    assert_eq!(check_bytes(&later).verdict, Verdict::Clean);
    for at in [20, 312, 4088] {
        put(&mut later, at, 4, 7);
    }
    put(&mut later, 40, 8, 1 << 63);
    reseal_head(&mut later);
    assert_eq!(check_bytes(&later).verdict, Verdict::Clean);
    put(&mut later, 18, 2, 0);
    reseal_head(&mut later);
    assert_eq!(check_bytes(&later).verdict, Verdict::Damaged, "reserved bytes of 1.0");
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
    assert!(fsck(folder.path().join("no"), &FsckOptions::default()).is_err(), "nothing there");
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
/// Task of the child: bytes to cut to, whether SIGBUS is contained, whether the copy is resident.
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
    // The mapping is there before; of what is touched after the cut the first thing differs.
    let mut ranks = vec![0; keys.len()];
    if how[3] != "select" && how[3] != "max" {
        view.lower_bound_batch(&keys, &mut ranks).expect("still whole");
    }
    File::options().write(true).open(&path).expect("opened").set_len(length).expect("cut");
    let (mut values, mut present) = (vec![0; keys.len()], vec![0; keys.len().div_ceil(64)]);
    let (mut all_keys, mut all_values) = (vec![0; keys.len()], vec![0; keys.len()]);
    // For equal keys the value of the first is found.
    let first = |key: u64| tuples[tuples.partition_point(|tuple| tuple.0 < key)].1;
    let expected: Vec<u64> = keys.iter().map(|&key| first(key)).collect();
    // An answer is right, whatever comes after it.
    let right = |is_right: bool| assert!(is_right, "{how:?}: a wrong answer");
    let answers: Vec<Result<(), ReadError>> = vec![
        match how[3] {
            "single" => {
                let mut pairs = keys.iter().zip(&expected);
                pairs.try_for_each(|(&key, &value)| view.get(key).map(|it| right(it == Some(value))))
            }
            "select" => (0..view.len())
                .rev()
                .zip(tuples.iter().rev())
                .try_for_each(|(rank, tuple)| view.select(rank).map(|it| right(it == Some(*tuple)))),
            "max" => view.max().map(|it| right(it == tuples.last().copied())),
            "batch" => view.get_batch(&keys, &mut values, &mut present).map(|_| right(values == expected)),
            "parallel" => {
                view.par_get_batch(&keys, &mut values, &mut present).map(|_| right(values == expected))
            }
            "range" => view.range(..).and_then(|range| {
                range.zip(&tuples).try_for_each(|(it, tuple)| it.map(|it| right(it == *tuple)))
            }),
            "back" => view.range(..).and_then(|range| {
                range
                    .rev()
                    .zip(tuples.iter().rev())
                    .try_for_each(|(it, tuple)| it.map(|it| right(it == *tuple)))
            }),
            "scan" => view.scan(0..view.len(), |_, _| {}).map(drop),
            _ => view.copy_range(0, &mut all_keys, &mut all_values).map(|_| {
                right(all_keys.iter().copied().zip(all_values.iter().copied()).eq(tuples.iter().copied()))
            }),
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
    // Whole pages: up to the end of a page the system shows zeros instead of the bytes that were cut off.
    for length in [0, 4096, whole.len() / 2 / 4096 * 4096] {
        for operation in ["single", "select", "max", "batch", "parallel", "range", "back", "scan", "copy"] {
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
