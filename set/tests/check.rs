//! A check of a set finds damage in any file, and says what lies about.

mod common;

use common::numbers;
use pleach::ErrorKind;
use pleach_set::{CheckOptions, Set, check_set};
use std::fs;

#[test]
fn checks_find_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    numbers(path, 0..100, 10);
    let set = Set::open(path).expect("the set");
    let digests = CheckOptions { digests: true, ..CheckOptions::default() };
    let whole = check_set(&set, &digests).expect("it is checked");
    assert!(whole.files.len() == 10 && whole.files.iter().all(|file| file.is_whole()), "{whole:?}");
    assert!(whole.litter.is_empty() && !whole.cancelled);
    let names: Vec<_> = (0..10).map(|file| path.join(set.manifest().name(file))).collect();
    // A byte in the middle, a file that is missing, one of another place, and litter.
    let mut bytes = fs::read(&names[2]).expect("it is read");
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(&names[2], &bytes).expect("it is written");
    fs::remove_file(&names[4]).expect("it is removed");
    fs::copy(&names[7], &names[6]).expect("it is copied");
    fs::write(path.join("files/litter.pleach"), b"x").expect("it is written");
    fs::write(path.join("manifests/.new-1"), b"x").expect("it is written");
    let checked = check_set(&set, &CheckOptions::default()).expect("it is checked");
    let bad: Vec<_> = checked.files.iter().enumerate().filter(|(_, file)| !file.is_whole()).collect();
    assert_eq!(bad.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [2, 4, 6]);
    assert!(!bad[0].1.findings.is_empty());
    assert_eq!(bad[1].1.problem.as_ref().map(|(kind, _)| *kind), Some(ErrorKind::NotFound));
    assert_eq!(bad[2].1.problem.as_ref().map(|(kind, _)| *kind), Some(ErrorKind::Damaged));
    let litter: Vec<_> = checked.litter.iter().map(|object| object.name.as_str()).collect();
    assert_eq!(litter, ["files/litter.pleach", "manifests/.new-1"]);
    let stopped = CheckOptions { progress: Some(&|_, _| false), ..CheckOptions::default() };
    assert!(check_set(&set, &stopped).expect("it is stopped").cancelled);
}

/// Bytes that no sum of the file covers are covered by the digest.
#[test]
fn digests_cover_every_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    numbers(path, 0..10, 10);
    let set = Set::open(path).expect("the set");
    let entry = set.manifest().entry(0);
    // A whole file with the same superblock but for the digest in the manifest.
    let mut facts = set.manifest().facts().clone();
    (facts.generation, facts.parent) = (2, 1);
    let mut other = entry;
    other.digest[5] ^= 1;
    let manifest = pleach_set::Manifest::new(&facts, &[other]).expect("its own rules hold");
    fs::write(path.join(pleach_set::manifest_name(2)), manifest.as_bytes()).expect("it is written");
    let set = Set::open(path).expect("the set");
    assert!(check_set(&set, &CheckOptions::default()).expect("it is checked").files[0].is_whole());
    let digests = CheckOptions { digests: true, ..CheckOptions::default() };
    let checked = check_set(&set, &digests).expect("it is checked");
    let problem = checked.files[0].problem.as_ref().expect("another digest");
    assert!(problem.1.contains("SHA-256"), "{problem:?}");
}
