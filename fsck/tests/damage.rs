//! Whole files are clean; named damage has its name; and what follows from the tuples cannot be changed in any byte,
//! even under right sums.
//!
//! Files are the golden ones, and some of the kit's: nothing here builds or searches.

use pleach_format::Header;
use pleach_format::section::Tag;
use pleach_format::view::HEAD_BYTES;
use pleach_fsck::{Finding, FsckOptions, Report, Verdict, check_bytes, fsck};
use pleach_kit::generate::{Random, mix};
use pleach_kit::mutate::{
    PLAIN, SEALED, content, entry_at, extent, flip, header, put, reseal, reseal_head, victim,
};
use pleach_kit::{figure, is_long, naive};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Files of a folder of `tests/data`.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(folder);
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(files.len() > 10);
    files
}

fn golden() -> Vec<(String, Vec<u8>)> {
    let read = |path: PathBuf| (path.display().to_string(), fs::read(&path).expect("readable"));
    files(&format!("v0.{}", pleach_format::version::VERSION_MINOR)).into_iter().map(read).collect()
}

fn checked(path: &Path, threads: usize) -> Report {
    fsck(path, &FsckOptions { threads, progress: None }).expect("readable")
}

#[test]
fn golden_files_are_clean() {
    for path in files(&format!("v0.{}", pleach_format::version::VERSION_MINOR)) {
        let bytes = fs::read(&path).expect("readable");
        assert_eq!(check_bytes(&bytes), [], "{}", path.display());
        let header = header(&bytes);
        let sections = header.sections.iter();
        let blocks =
            sections.map(|section| if section.entry.tag == Tag::SUM2 { 0 } else { section.entry.sums.get() });
        let blocks: u64 = blocks.sum();
        for threads in [0, 1, 3] {
            let report = checked(&path, threads);
            assert_eq!((report.verdict, report.cancelled), (Verdict::Clean, false), "{}", path.display());
            assert_eq!((report.blocks, report.bytes), (blocks, bytes.len() as u64), "{}", path.display());
            assert_eq!(report.tuples, Some(header.tuples));
        }
    }
}

#[test]
fn bad_files_are_damaged() {
    for path in files("bad") {
        let report = checked(&path, 0);
        assert_eq!(report.verdict, Verdict::Damaged, "{}", path.display());
        assert!(!report.findings.is_empty());
    }
}

fn names(findings: &[Finding], code: &str, section: &str) -> bool {
    findings.iter().any(|finding| finding.code == code && finding.section == section)
}

#[test]
fn named_damage_has_its_name() {
    let whole = victim().1;
    assert_eq!(check_bytes(&whole), []);
    for damage in PLAIN.iter().chain(SEALED) {
        let mut bytes = whole.clone();
        (damage.make)(&mut bytes);
        let findings = check_bytes(&bytes);
        assert!(names(&findings, damage.code, damage.section), "{}: {findings:?}", damage.name);
        for finding in &findings {
            assert!(!finding.to_string().contains('\n'), "{}: {finding}", damage.name);
            let end = finding.offset.checked_add(finding.length).expect("a range");
            assert!(end <= 2 * whole.len() as u64 + 8192, "{}: {finding}", damage.name);
        }
    }
}

/// Of a byte that is hit somewhere, the place is told.
#[test]
fn damage_is_placed() {
    let whole = victim().1;
    let step = if is_long() { 1 } else { 13 };
    for at in (0..whole.len()).step_by(step) {
        let mut bytes = whole.clone();
        flip(&mut bytes, at * 8 + (mix(at as u64) % 8) as usize);
        let findings = check_bytes(&bytes);
        let at = at as u64;
        let placed = |finding: &&Finding| (finding.offset..finding.offset + finding.length).contains(&at);
        let Some(finding) = findings.iter().find(placed) else { panic!("byte {at}: {findings:?}") };
        assert!(finding.length <= 8192, "byte {at}: {finding}");
        let end = findings.iter().map(|finding| finding.offset + finding.length).max();
        assert!(end <= Some(whole.len() as u64), "byte {at}: {findings:?}");
        assert!(findings.is_sorted_by_key(|finding| finding.offset), "{findings:?}");
    }
}

#[test]
fn a_thousand_findings_are_kept() {
    let whole = victim().1;
    let mut bytes = whole.clone();
    let lines = content(&whole, Tag::LINE);
    for (number, line) in bytes[lines].chunks_exact_mut(64).enumerate() {
        for slot in 0..4 {
            let key = u64::MAX - (number * 4 + slot) as u64;
            line[slot * 8..][..8].copy_from_slice(&key.to_le_bytes());
        }
    }
    reseal(&mut bytes);
    assert_eq!(check_bytes(&bytes).len(), 1000);
}

#[test]
fn files_of_others_and_of_later_versions_are_told_apart() {
    let folder = std::env::temp_dir().join(format!("pleach-fsck-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("t");
    let verdict = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("written");
        checked(&path, 1).verdict
    };
    let whole = victim().1;
    assert_eq!(verdict(&whole), Verdict::Clean);
    assert_eq!(verdict(b"plain text"), Verdict::Foreign);
    assert_eq!(verdict(&[b'x'; 100_000]), Verdict::Foreign);
    // The beginning or the end alone says whose it is.
    let mut bytes = whole.clone();
    bytes[..8].fill(0);
    assert_eq!(verdict(&bytes), Verdict::Damaged);
    assert_eq!(verdict(&whole[..whole.len() - 1]), Verdict::Damaged);
    assert_eq!(verdict(&whole[..100]), Verdict::Damaged);
    let version = pleach_format::version::VERSION_MINOR;
    let mut bytes = whole.clone();
    put(&mut bytes, 18, 2, u64::from(version) + 1);
    reseal(&mut bytes);
    assert_eq!(verdict(&bytes), Verdict::Newer);
    // The two superblocks do not agree on it.
    let closing = bytes.len() - 4096;
    flip(&mut bytes, (closing + 18) * 8);
    assert_eq!(verdict(&bytes), Verdict::Damaged);
    let refused = fsck(&folder, &FsckOptions::default());
    assert!(refused.is_err(), "a folder is no file");
    fs::remove_dir_all(&folder).expect("removed");
}

/// Every byte of a section that follows from the tuples, changed under right sums.
#[test]
fn what_follows_from_the_tuples_cannot_be_changed() {
    let step = if is_long() { 1 } else { 7 };
    let mut tried = 0;
    for (name, whole) in golden() {
        let there = header(&whole);
        for tag in [Tag::GRID, Tag::PACK, Tag::HARMONIA, Tag::KEYS, Tag::VALUES] {
            // Byte strings stand in their columns alone: others would be the keys of another file.
            let is_free = tag == Tag::KEYS && there.key_type.is_bytes()
                || tag == Tag::VALUES && there.value_type.is_bytes();
            if there.section(tag).is_none() || is_free {
                continue;
            }
            for (turn, at) in extent(&whole, tag).enumerate().filter(|(turn, _)| turn % step == 0) {
                let mut bytes = whole.clone();
                flip(&mut bytes, at * 8 + (mix(turn as u64) % 8) as usize);
                reseal(&mut bytes);
                let findings = check_bytes(&bytes);
                assert!(!findings.is_empty(), "{name}: byte {at} of {tag}");
                tried += 1;
            }
        }
    }
    figure(
        3,
        &format!(
            "{tried} bytes of sections that follow from the tuples, changed under right sums: all found"
        ),
    );
}

/// Every bit of the section table's entries but the sums, which are made right: no other entry is a valid one, where
/// it is not that of an unknown section which may be skipped. (The span of a grid is free: its marks are looked at.)
#[test]
fn entries_of_the_table_cannot_be_changed() {
    let mut tried = 0;
    for (name, whole) in golden() {
        for section in &header(&whole).sections {
            let tag = section.entry.tag;
            let at = entry_at(&whole, tag);
            let bytes = (0..128).filter(|byte| !(32..52).contains(byte));
            let bytes = bytes.filter(|byte| tag != Tag::GRID || !(100..116).contains(byte));
            let step = if is_long() { 1 } else { 5 };
            for bit in bytes.flat_map(|byte| 8 * byte..8 * byte + 8).step_by(step) {
                let mut bytes = whole.clone();
                flip(&mut bytes, 8 * at + bit);
                reseal_head(&mut bytes);
                tried += 1;
                let Ok(there) = Header::parse(&bytes[..HEAD_BYTES], bytes.len() as u64) else { continue };
                reseal(&mut bytes);
                let may_skip = there.section(tag).is_none() && section.entry.flags.get() == 0;
                assert!(may_skip || !check_bytes(&bytes).is_empty(), "{name}: {tag} bit {bit}");
            }
        }
    }
    assert!(tried > 5_000);
}

/// Codes of separators, keys and padding: what may be changed is known.
#[test]
fn lines_and_separators_cannot_be_changed_but_for_values() {
    let step = if is_long() { 1 } else { 7 };
    for (name, whole) in golden() {
        let there = header(&whole);
        let geometry = there.geometry;
        let lines = extent(&whole, Tag::LINE);
        for at in lines.clone().step_by(step) {
            let (line, slot) = ((at - lines.start) / 64, (at - lines.start) % 64);
            let used = geometry.tuples_in_line(line as u64, there.tuples);
            let is_value =
                slot >= geometry.values_at() && slot < geometry.values_at() + used * geometry.value_bytes;
            if is_value {
                continue;
            }
            let mut bytes = whole.clone();
            // The highest bit of a byte of a key: no neighbour of it can be meant.
            bytes[at] ^= 0x80;
            reseal(&mut bytes);
            let is_low =
                slot < used * geometry.key_bytes && slot % geometry.key_bytes < geometry.key_bytes - 1;
            // Low bytes of keys may be others, in order all the same.
            assert!(is_low || !check_bytes(&bytes).is_empty(), "{name}: byte {at}");
        }
    }
}

/// Tuples over several pieces, and what breaks at their borders.
#[test]
fn damage_at_the_borders_of_pieces_is_placed() {
    // 4096 lines a piece, four tuples a line.
    let tuples: Vec<(u64, u64)> = (0..4096 * 4 * 2 + 700).map(|i| (i * 1000 + mix(i) % 900, i)).collect();
    let whole = naive::build(&tuples, &pleach_format::meta::Meta::default(), true);
    assert_eq!(check_bytes(&whole), []);
    let there = header(&whole);
    assert!(there.grid.is_some() && there.lines > 2 * 4096);
    let lines = content(&whole, Tag::LINE).start;
    let key = |line: u64, slot: u64| lines + (line * 64 + slot * 8) as usize;
    for line in [0, 1, 4094, 4095, 4096, 4097, 8191, 8192, there.lines - 2] {
        let tuple = |slot: u64| tuples[(line * 4 + slot) as usize].0;
        // A key that its left neighbour exceeds.
        for slot in 0..4 {
            if line + slot == 0 {
                continue;
            }
            let before = if slot == 0 { tuples[line as usize * 4 - 1].0 } else { tuple(slot - 1) };
            for (wrong, code) in [(before - 1, "order"), (before, "duplicate")] {
                let mut bytes = whole.clone();
                put(&mut bytes, key(line, slot), 8, wrong);
                reseal(&mut bytes);
                let findings = check_bytes(&bytes);
                let placed = findings.iter().any(|finding| {
                    finding.code == code
                        && finding.section == "LINE"
                        && finding.offset == key(line, slot) as u64
                        && finding.length == 8
                        && finding.found == wrong.to_string()
                });
                assert!(placed, "line {line}, slot {slot}, {code}: {findings:?}");
                let others = findings.iter().filter(|finding| ["order", "duplicate"].contains(&finding.code));
                assert_eq!(others.count(), 1, "line {line}, slot {slot}: {findings:?}");
            }
        }
        // The mark of its border, moved by a cell.
        if line + 1 < there.lines {
            let mut bytes = whole.clone();
            let last = tuple(3);
            // A last key far enough on that its cell is another: the next line's first key stays above it.
            let next = tuples[line as usize * 4 + 4].0;
            put(&mut bytes, key(line, 3), 8, next - 1);
            reseal(&mut bytes);
            if next - 1 > last + 500 {
                assert!(
                    !check_bytes(&bytes).is_empty(),
                    "line {line}: its separator and its mark stand elsewhere"
                );
            }
        }
    }
    // Each unit of the grid, each kind of its bits.
    let units = content(&whole, Tag::GRID);
    let mut random = Random(7);
    for _ in 0..if is_long() { 5000 } else { 150 } {
        let mut bytes = whole.clone();
        flip(&mut bytes, units.start * 8 + random.below(units.len() as u64 * 8) as usize);
        reseal(&mut bytes);
        let findings = check_bytes(&bytes);
        assert!(findings.iter().any(|finding| finding.section == "GRID"), "{findings:?}");
    }
    // Every separator between two lines, one more or less than it is.
    let spine = content(&whole, Tag::SPINE);
    for _ in 0..if is_long() { 5000 } else { 150 } {
        let mut bytes = whole.clone();
        let at = spine.start + random.below(spine.len() as u64) as usize;
        bytes[at] = bytes[at].wrapping_add(if random.below(2) == 0 { 1 } else { 0xFF });
        reseal(&mut bytes);
        let findings = check_bytes(&bytes);
        // A base may be another where all cells stay the same.
        let is_base = (54..62).contains(&((at - spine.start) % 64));
        let found = findings.iter().any(|finding| finding.section == "SPIN");
        assert!(is_base || found, "byte {} of the spine: {findings:?}", at - spine.start);
    }
}

/// Keys of floats are numbers, and zero has one word.
#[test]
fn words_that_no_float_has_are_found() {
    let keys: Vec<f64> = (-300..300).map(|i| f64::from(i) / 4.0).collect();
    let tuples: Vec<(f64, u32)> = keys.into_iter().zip(0..).collect();
    let whole = naive::build(&tuples, &pleach_format::meta::Meta::default(), true);
    assert_eq!(check_bytes(&whole), []);
    let n = header(&whole).geometry.tuples_per_line();
    let place = |rank: usize| content(&whole, Tag::LINE).start + rank / n * 64 + rank % n * 8;
    let nan = f64::NAN.to_bits();
    for (rank, word) in
        [(300, (1u64 << 63) - 1), (599, nan ^ 1 << 63), (0, !(nan | 1 << 63)), (300, nan ^ 1 << 63)]
    {
        let mut bytes = whole.clone();
        put(&mut bytes, place(rank), 8, word);
        reseal(&mut bytes);
        let findings = check_bytes(&bytes);
        let at = place(rank) as u64;
        assert!(findings.iter().any(|it| it.code == "key" && it.offset == at), "{word:x}: {findings:?}");
    }
    // Of other types the same words are keys like others.
    let tuples = [(7u64, 0u32), ((1 << 63) - 1, 1), (u64::MAX - 1, 2)];
    assert_eq!(check_bytes(&naive::build(&tuples, &pleach_format::meta::Meta::default(), true)), []);
}

/// A grid that ends below the highest key: a search would miss what is there.
#[test]
fn a_grid_that_its_keys_leave_is_found() {
    let whole = victim().1;
    let (units, grid) = (header(&whole).grid.expect("a grid").1.units, content(&whole, Tag::GRID).start);
    let segments = header(&whole).grid.expect("a grid").1.segments as usize;
    let last = grid + (segments - 1) * 8 + 4;
    for wrong in [units * 1000, units * 2, u64::from(u32::MAX)] {
        let mut bytes = whole.clone();
        put(&mut bytes, last, 4, wrong);
        reseal(&mut bytes);
        let findings = check_bytes(&bytes);
        assert!(findings.iter().any(|it| it.text.contains("highest key")), "{wrong}: {findings:?}");
    }
}

/// Texts of a file do not reach the terminal as they are.
#[test]
fn findings_hold_no_control_characters() {
    let meta = pleach_format::meta::Meta {
        value_logical: "record<\u{1b}]0;x\u{7}\u{1b}[2J\n".into(),
        ..Default::default()
    };
    let findings = check_bytes(&naive::build(&[(1u64, 2u64)], &meta, true));
    assert!(names(&findings, "meta", "META"));
    assert!(findings.iter().all(|it| !it.to_string().contains(char::is_control)), "{findings:?}");
}

/// META whose records are not all held at once, and what may be wrong with the last one.
#[test]
fn long_records_are_looked_at_one_by_one() {
    let text = || "x".repeat((1 << 16) - 3);
    let meta = pleach_format::meta::Meta {
        key_name: text(),
        value_name: text(),
        key_logical: text(),
        value_logical: text(),
        layout: text(),
    };
    let whole = naive::build(&[(1u64, 2u64)], &meta, true);
    assert_eq!(check_bytes(&whole), []);
    let records = content(&whole, Tag::META);
    let last = records.end - (8 + (1 << 16));
    // Its reserved bytes, its length, a letter, and the padding behind it.
    for at in [last + 2, last + 6, last + 1000, records.end - 2] {
        let mut bytes = whole.clone();
        bytes[at] = 0xFF;
        reseal(&mut bytes);
        let findings = check_bytes(&bytes);
        let placed = |it: &Finding| it.code == "meta" && it.offset == last as u64;
        assert!(findings.iter().any(placed), "byte {at}: {findings:?}");
    }
    let entry = entry_at(&whole, Tag::META);
    for wrong in [4, 6] {
        let mut bytes = whole.clone();
        put(&mut bytes, entry + 24, 8, wrong);
        reseal(&mut bytes);
        assert!(names(&check_bytes(&bytes), "meta", "META"), "{wrong} records");
    }
}

#[test]
fn progress_is_told_and_can_stop_the_check() {
    let tuples: Vec<(u64, u64)> = (0..40_000).map(|i| (mix(i) >> 1, i)).collect();
    let mut sorted = tuples;
    sorted.sort_unstable();
    let whole = naive::build(&sorted, &pleach_format::meta::Meta::default(), true);
    let path = std::env::temp_dir().join(format!("pleach-fsck-progress-{}", std::process::id()));
    fs::write(&path, &whole).expect("written");
    let all_bytes = whole.len() as u64;
    let told = Mutex::new(Vec::new());
    let tell = |done: u64, all: u64| {
        assert!(done <= all && all == all_bytes);
        told.lock().expect("no panic").push(done);
        true
    };
    let report = fsck(&path, &FsckOptions { threads: 1, progress: Some(&tell) }).expect("readable");
    assert_eq!((report.verdict, report.cancelled), (Verdict::Clean, false));
    let told = told.into_inner().expect("no panic");
    assert!(told.len() > 3 && told.is_sorted(), "{told:?}");
    assert!(told[0] < all_bytes / 2 && told[told.len() - 1] > all_bytes / 10 * 9, "{told:?}");
    let stop = |_: u64, _: u64| false;
    let report = fsck(&path, &FsckOptions { threads: 1, progress: Some(&stop) }).expect("readable");
    assert!(report.cancelled && report.blocks < 10, "{} blocks", report.blocks);
    fs::remove_file(&path).expect("removed");
}
