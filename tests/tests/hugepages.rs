//! A freshly built file is mapped by huge pages, and still is after it was read from the disk.
//!
//! Tells aloud when it cannot be tried: another file system, an older kernel, huge pages off.

#![cfg(target_os = "linux")]

use pleach::Index;
use pleach_builder::{BuildOptions, build_iter};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Tuples of the file: 256 MiB of them.
const TUPLES: u64 = 1 << 24;
/// Part of the file that must be mapped by huge pages, in percent.
const HUGE_PERCENT: u64 = 95;

/// Type of the file system that a folder is on: that of the longest mount point above it.
fn file_system(folder: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.nth(1)?, words.next()?))
    });
    let above = mounts.filter(|(point, _)| folder.starts_with(point));
    above.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind.to_owned()).unwrap_or_default()
}

/// Drops what the page cache holds of a file, by coreutils' way of calling posix_fadvise.
fn drop_cache(path: &Path) -> bool {
    let mut dd = Command::new("dd");
    dd.arg(format!("of={}", path.display())).args(["oflag=nocache", "conv=notrunc,fdatasync", "count=0"]);
    dd.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Why it cannot be tried here.
fn impossible(folder: &Path) -> Option<String> {
    let enabled = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if !enabled.contains("[madvise]") && !enabled.contains("[always]") {
        return Some(format!("transparent huge pages are off: {}", enabled.trim()));
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.trim().parse::<u32>().ok());
    let kernel = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let needs = match file_system(folder).as_str() {
        "ext4" => (6, 16),
        "xfs" => (6, 1),
        other => return Some(format!("the file system is {other:?}, not ext4 or xfs")),
    };
    (kernel < needs).then(|| format!("kernel {kernel:?} is older than {needs:?}"))
}

/// Bytes of a file's mappings in this process, and bytes of them that are mapped by huge pages.
fn mapped(path: &Path) -> (u64, u64) {
    let smaps = fs::read_to_string("/proc/self/smaps").expect("this process's mappings");
    let path = path.to_str().expect("a plain name");
    let (mut ours, mut bytes, mut huge) = (false, 0, 0);
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let number = || words.clone().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0) << 10;
        match first {
            "Size:" if ours => bytes += number(),
            "FilePmdMapped:" if ours => huge += number(),
            _ if !first.ends_with(':') => ours = line.ends_with(path),
            _ => {}
        }
    }
    (bytes, huge)
}

fn assert_huge(path: &Path, what: &str) {
    let length = fs::metadata(path).expect("there").len();
    let (bytes, huge) = mapped(path);
    assert!(bytes >= length, "{what}: {bytes} of {length} bytes are mapped");
    let percent = huge * 100 / length;
    println!("{what}: {huge} of {length} bytes by huge pages: {percent}%");
    assert!(percent >= HUGE_PERCENT, "{what}: only {percent}% by huge pages");
}

#[test]
fn a_file_is_mapped_by_huge_pages() {
    // Without links: the kernel knows mappings and mounts by their real names.
    let folder = fs::canonicalize(env!("CARGO_TARGET_TMPDIR")).expect("cargo made it");
    if let Some(why) = impossible(&folder) {
        // Past the harness, which keeps what passing tests print.
        let _ = writeln!(io::stderr(), "SKIPPED a_file_is_mapped_by_huge_pages: {why}");
        return;
    }
    let folder = tempfile::tempdir_in(folder).expect("a temporary folder");
    let path = folder.path().join("huge.pleach");
    build_iter((0..TUPLES).map(|key| (key, !key)), &path, &BuildOptions::default()).expect("built");
    {
        let index = Index::open(&path).expect("opens");
        let sum: u64 = index.as_bytes().iter().step_by(64).map(|&byte| u64::from(byte)).sum();
        assert_ne!(sum, 0);
        assert_huge(&path, "freshly built");
    }

    // What is mapped is never dropped, so nothing is mapped now; what is dirty neither, so it is synced.
    File::open(&path).expect("opens").sync_all().expect("synced");
    if !drop_cache(&path) {
        let _ = writeln!(io::stderr(), "SKIPPED a_file_is_mapped_by_huge_pages, cold cache: no dd");
        return;
    }
    let index = Index::open(&path).expect("opens");
    let view = index.typed::<u64, u64>().expect("types of the file");
    let (mut keys, mut values) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut rank = 0;
    while rank < TUPLES {
        let count = view.copy_range(rank, &mut keys, &mut values).expect("readable");
        assert!(count > 0);
        assert_eq!((keys[0], values[count - 1]), (rank, !(rank + count as u64 - 1)));
        rank += count as u64;
    }
    // The spine and the sums, too.
    let sum: u64 = index.as_bytes().iter().step_by(4096).map(|&byte| u64::from(byte)).sum();
    assert_ne!(sum, 0);
    assert_huge(&path, "after a scan from a cold cache");
}
