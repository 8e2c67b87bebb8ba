//! Whole files are clean, and named damage has its name.
//!
//! Files are the golden ones, and some of the kit's: nothing here builds or searches.

use pleach_format::section::Tag;
use pleach_format::view::HEAD_BYTES;
use pleach_fsck::{Code, Finding, FsckOptions, Report, Verdict, check_bytes, fsck};
use pleach_kit::generate::mix;
use pleach_kit::mutate::{PLAIN, SEALED, content, entry_at, flip, header, put, reseal, victim};
use pleach_kit::{files, naive};
use std::fs;
use std::path::Path;
use std::sync::Mutex;

fn checked(path: &Path, threads: usize) -> Report {
    fsck(path, &FsckOptions { threads, progress: None }).expect("readable")
}

#[test]
fn golden_files_are_clean() {
    for path in files(&pleach_kit::folder()) {
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
    findings.iter().any(|finding| finding.code.name() == code && finding.section == section)
}

/// Codes are read by programs: none is renamed, and each damage of the kit names one.
#[test]
fn codes_keep_their_names() {
    let names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    let expected = "superblock superblock-copy length table table-copy header sums block order duplicate key \
                    line-padding padding separator spine-line min-max file-id meta mask column grid packed \
                    harmonia classic btree interval text trie";
    assert_eq!(names.join(" "), expected);
    assert_eq!(Code::MinMax.to_string(), "min-max");
    for damage in PLAIN.iter().chain(SEALED) {
        assert!(names.contains(&damage.code), "{}: {}", damage.name, damage.code);
    }
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
            assert!(is_field(&whole, finding), "{}: {finding:?}", damage.name);
            let end = finding.offset.checked_add(finding.length).expect("a range");
            assert!(end <= 2 * whole.len() as u64 + 8192, "{}: {finding}", damage.name);
        }
    }
}

/// Returns true if a finding in the section table names a field of it, or the bytes after its entries.
fn is_field(whole: &[u8], finding: &Finding) -> bool {
    let Some(section) =
        header(whole).sections.iter().position(|it| it.entry.tag.to_string() == finding.section)
    else {
        let is_rest = finding.offset + finding.length == HEAD_BYTES as u64;
        return finding.section != "section table" || finding.length <= 8 || is_rest;
    };
    if finding.code.name() != "header" {
        return true;
    }
    let section = &header(whole).sections[section];
    let within = finding.offset.wrapping_sub(entry_at(whole, section.entry.tag) as u64);
    [(0, 8), (4, 4), (8, 8), (24, 8), (32, 8), (56, 64)].contains(&(within, finding.length))
        || finding.offset == section.offset()
}

/// An empty file names no keys: neither their bytes nor their lengths.
#[test]
fn an_empty_file_has_no_outermost_keys() {
    let whole = naive::build::<u64, u64>(&[], &pleach_format::meta::Meta::default(), true);
    assert_eq!(check_bytes(&whole), []);
    for at in [128, 132, 136, 199, 200, 263] {
        let mut bytes = whole.clone();
        bytes[at] = 1;
        reseal(&mut bytes);
        assert!(names(&check_bytes(&bytes), "min-max", "superblock"), "byte {at}");
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
    let version = pleach_format::version::VERSION_MAJOR;
    let mut bytes = whole.clone();
    put(&mut bytes, 16, 2, u64::from(version) + 1);
    reseal(&mut bytes);
    assert_eq!(verdict(&bytes), Verdict::Newer);
    // The two superblocks do not agree on it.
    let closing = bytes.len() - 4096;
    flip(&mut bytes, (closing + 16) * 8);
    assert_eq!(verdict(&bytes), Verdict::Damaged);
    let refused = fsck(&folder, &FsckOptions::default());
    assert!(refused.is_err(), "a folder is no file");
    fs::remove_dir_all(&folder).expect("removed");
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
        assert!(
            findings.iter().any(|it| it.code.name() == "key" && it.offset == at),
            "{word:x}: {findings:?}"
        );
    }
    // For other types the same words are valid keys.
    let tuples = [(7u64, 0u32), ((1 << 63) - 1, 1), (u64::MAX - 1, 2)];
    assert_eq!(check_bytes(&naive::build(&tuples, &pleach_format::meta::Meta::default(), true)), []);
}

/// A first segment that ends below the highest key, or has other cells: a search would miss what is there.
#[test]
fn a_grid_that_its_keys_leave_is_found() {
    let whole = victim().1;
    let entry = grid_entry(&whole);
    // Its base, what is first, its number of units, the width of its cells.
    for (field, bit) in [(80, 30), (88, 0), (92, 0), (92, 26)] {
        let mut bytes = whole.clone();
        bytes[entry + field + bit / 8] ^= 1 << (bit % 8);
        reseal(&mut bytes);
        let findings = check_bytes(&bytes);
        assert!(findings.iter().any(|it| it.section == "GRID"), "{field}, {bit}: {findings:?}");
    }
}

fn grid_entry(whole: &[u8]) -> usize {
    let is_it = |at: &usize| &whole[*at..*at + 4] == b"GRID";
    (4096..8192).step_by(128).find(is_it).expect("a grid")
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
    // Some of which end inside what is read at once.
    let text = |shorter: usize| "x".repeat((1 << 16) - 3 - shorter);
    let meta = pleach_format::meta::Meta {
        key_name: text(15_000),
        value_name: text(0),
        key_logical: text(30_001),
        value_logical: text(7),
        layout: text(0),
        interval: String::new(),
        approximate: String::new(),
    };
    let whole = naive::build(&[(1u64, 2u64)], &meta, true);
    assert_eq!(check_bytes(&whole), []);
    let records = content(&whole, Tag::META);
    let last = records.end - (8 + (1 << 16));
    // Its reserved bytes, its length, a letter, and the padding after it.
    for at in [last + 2, last + 6, last + 1000, records.end - 2] {
        let mut bytes = whole.clone();
        bytes[at] = 0xFF;
        reseal(&mut bytes);
        let findings = check_bytes(&bytes);
        let placed = |it: &Finding| it.code.name() == "meta" && it.offset == last as u64;
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
    assert!(told[0] > 0 && told[0] < all_bytes / 2 && told[told.len() - 1] > all_bytes / 10 * 9, "{told:?}");
    let stop = |_: u64, _: u64| false;
    let report = fsck(&path, &FsckOptions { threads: 1, progress: Some(&stop) }).expect("readable");
    assert!(report.cancelled && report.blocks < 10, "{} blocks", report.blocks);
    fs::remove_file(&path).expect("removed");
}

/// Hashes and prefixes are told as such, and nothing else is.
#[test]
fn approximate_keys_are_told() {
    let file = |key_logical: &str, approximate: &str| {
        let meta = pleach_format::meta::Meta {
            key_logical: key_logical.to_owned(),
            approximate: approximate.to_owned(),
            ..Default::default()
        };
        check_bytes(&naive::build(&[(1u64, 2u64), (5, 6)], &meta, false))
    };
    for (key_logical, approximate) in
        [("Hash64", "2"), ("Hash64(3)", "2"), ("Hex(12)", "2"), ("Hex(12)", ""), ("", "")]
    {
        assert_eq!(file(key_logical, approximate), [], "{key_logical} {approximate}");
    }
    for (key_logical, approximate) in [("Hash64", ""), ("", "2"), ("Hash64", "x"), ("Hash64", "-1")] {
        let found = file(key_logical, approximate);
        assert!(
            found.iter().any(|finding| finding.code == Code::Meta),
            "{key_logical} {approximate}: {found:?}"
        );
    }
}
