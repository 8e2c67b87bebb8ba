//! A file that is missing, foreign, newer, damaged or of another set is one error that names it; with `partial`
//! it is left out, and said.

mod common;

use common::{Tuple, numbers, publish, set, write};
use pleach::ErrorKind;
use pleach_builder::source::Schema;
use pleach_format::{KeyType, ValueType};
use pleach_set::{
    Committer, Datum, Entry, Facts, Folder, Manifest, Partition, Set, SetError, Written, manifest_name,
};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Publishes entries without any check of a committer.
fn forge(path: &Path, change: impl FnOnce(&mut Facts, &mut Vec<Entry>)) {
    let old = Set::open(path).expect("the set");
    let (mut facts, mut entries) = (old.manifest().facts().clone(), old.manifest().entries().collect());
    (facts.parent, facts.generation) = (facts.generation, facts.generation + 1);
    change(&mut facts, &mut entries);
    let manifest = Manifest::new(&facts, &entries).expect("its own rules hold");
    fs::write(path.join(manifest_name(facts.generation)), manifest.as_bytes()).expect("it is written");
}

#[test]
fn a_file_that_is_not_as_it_should_be() {
    let folder = tempfile::tempdir().expect("a folder");
    type Damage = fn(&Path, &Path);
    let cases: [(&str, ErrorKind, Damage); 7] = [
        ("missing", ErrorKind::NotFound, |file, _| fs::remove_file(file).expect("it is removed")),
        ("foreign", ErrorKind::Foreign, |file, _| fs::write(file, vec![7; 20_000]).expect("it is written")),
        ("cut", ErrorKind::Damaged, |file, _| {
            let file = fs::OpenOptions::new().write(true).open(file).expect("it opens");
            file.set_len(9000).expect("it is cut");
        }),
        ("empty", ErrorKind::Damaged, |file, _| fs::write(file, []).expect("it is written")),
        ("newer", ErrorKind::Newer, |file, _| {
            let mut bytes = fs::read(file).expect("it is read");
            bytes[16] = 2;
            let sum = pleach_format::checksum::crc32(&bytes[..4092]).to_le_bytes();
            bytes[4092..4096].copy_from_slice(&sum);
            fs::write(file, bytes).expect("it is written");
        }),
        ("damaged head", ErrorKind::Damaged, |file, _| {
            let mut bytes = fs::read(file).expect("it is read");
            bytes[100] ^= 1;
            fs::write(file, bytes).expect("it is written");
        }),
        ("of another place", ErrorKind::Damaged, |file, other| {
            fs::copy(other, file).expect("it is copied");
        }),
    ];
    for (name, kind, damage) in cases {
        let path = folder.path().join(name);
        let whole = numbers(&path, 0..100, 10);
        let (file, other) = (whole.manifest().name(4).to_owned(), whole.manifest().name(5).to_owned());
        damage(&path.join(&file), &path.join(other));
        let set = Set::open(&path).expect("the set opens");
        assert_eq!(set.get(&Datum::U64(35)).expect("other files answer"), Some(Datum::U64(35)));
        let error = set.get(&Datum::U64(45)).expect_err(name);
        assert_eq!(error.kind(), kind, "{name}: {error}");
        assert!(error.to_string().contains(&file), "{name}: {error}");
        let mut tuples = set.iter();
        assert_eq!(tuples.by_ref().take_while(Result::is_ok).count(), 40, "{name}");
        assert!(tuples.next().is_none(), "an iterator ends after an error");

        let partial = Set::options().partial(true).open(&path).expect("the set opens");
        assert_eq!(partial.get(&Datum::U64(45)).expect("it is left out"), None);
        assert_eq!(partial.iter().inspect(|tuple| assert!(tuple.is_ok())).count(), 90, "{name}");
        assert_eq!(partial.iter().rev().inspect(|tuple| assert!(tuple.is_ok())).count(), 90, "{name}");
        let out = partial.left_out();
        assert!(out.len() == 1 && out[0].name == file && out[0].tuples == 10, "{name}: {out:?}");
        assert!(partial.lower_bound(&Datum::U64(45)).is_err(), "ranks are never partial");
    }
}

#[test]
fn a_manifest_that_lies_is_found_when_touched() {
    let folder = tempfile::tempdir().expect("a folder");
    type Lie = fn(&mut Facts, &mut Vec<Entry>);
    let cases: [(&str, Lie); 9] = [
        ("min", |_, entries| entries[4].min = 40u64.to_be_bytes().to_vec()),
        ("min above", |_, entries| entries[4].min = 42u64.to_be_bytes().to_vec()),
        ("max", |_, entries| entries[4].max = 48u64.to_be_bytes().to_vec()),
        ("tuples", |_, entries| entries[4].tuples += 1),
        ("file id", |_, entries| entries[4].file_id[0] ^= 1),
        ("sum", |_, entries| entries[4].head_sum ^= 1),
        ("bytes", |_, entries| entries[4].file_bytes += 4096),
        ("unique", |facts, _| facts.schema.unique = true),
        ("names", |facts, _| facts.schema.meta.key_name = "other".into()),
    ];
    for (name, lie) in cases {
        let path = folder.path().join(name);
        // Between the files with 39 and 41 there is room.
        let tuples: Vec<Tuple> = (0..100).map(|key| (Datum::U64(key), Datum::U64(key))).collect();
        let tuples: Vec<Tuple> =
            tuples.into_iter().filter(|(key, _)| !matches!(key, Datum::U64(40))).collect();
        let written =
            write(&path, Schema::plain(KeyType::U64, ValueType::U64, None), &tuples, Partition::Files(10));
        publish(&path, &written);
        let key = 45u64.to_be_bytes().to_vec();
        let at = written.entries.iter().position(|it| it.min <= key && key <= it.max);
        assert_eq!(at, Some(4));
        forge(&path, lie);
        let set = Set::open(&path).expect("the set opens");
        assert_eq!(set.generation(), 2);
        let error = set.get(&Datum::U64(45)).expect_err(name);
        assert!(matches!(error, SetError::Differs { .. }), "{name}: {error}");
        assert!(error.to_string().contains(set.manifest().name(4)), "{name}: {error}");
    }
}

/// Keys whose first 64 bytes are equal are compared as a whole.
#[test]
fn long_keys_that_lie() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = |number: u64| Datum::Bytes(format!("{}{number}", "p".repeat(80)).into_bytes().into());
    let tuples: Vec<Tuple> = (1..5).map(|number| (key(number), Datum::U64(number))).collect();
    set(folder.path(), Schema::plain(KeyType::Bytes, ValueType::U64, None), &tuples, Partition::Tuples(10));
    forge(folder.path(), |_, entries| *entries[0].max.last_mut().expect("it has bytes") = b'9');
    let set = Set::open(folder.path()).expect("the set opens");
    assert!(matches!(set.get(&key(2)), Err(SetError::Differs { .. })));
}

#[test]
fn manifests_that_are_damaged_or_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("set");
    assert!(matches!(Set::open(&path), Err(SetError::NoSet { .. })));
    numbers(&path, 0..10, 5);
    numbers(&path, 0..20, 5);
    let newest = path.join(manifest_name(2));
    let whole = fs::read(&newest).expect("it is read");
    for at in [0, 20, 200, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&newest, bytes).expect("it is written");
        let error = Set::open(&path).expect_err("it is damaged");
        assert!(
            matches!(error, SetError::Manifest { .. }) && error.to_string().contains("0002.manifest"),
            "{error}"
        );
    }
    fs::write(&newest, &whole[..100]).expect("it is written");
    assert_eq!(Set::open(&path).expect_err("it is cut").kind(), ErrorKind::Damaged);
    // That of another generation.
    fs::copy(path.join(manifest_name(1)), &newest).expect("it is copied");
    assert!(matches!(Set::open(&path), Err(SetError::Differs { .. })));
    fs::remove_file(&newest).expect("it is removed");
    assert_eq!(Set::open(&path).expect("the one before").generation(), 1);
}

/// The hint may be missing, stale, wrong or nonsense.
#[test]
fn the_hint_is_a_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    for _ in 0..4 {
        numbers(folder.path(), 0..10, 5);
    }
    let hint = folder.path().join("latest");
    assert_eq!(fs::read(&hint).expect("it is read"), b"4\n");
    for text in
        ["1\n", "3", "99\n", "0", "-1", "", "nonsense", "18446744073709551615", "184467440737095516160"]
    {
        fs::write(&hint, text).expect("it is written");
        assert_eq!(Set::open(folder.path()).expect("the set").generation(), 4, "{text}");
    }
    fs::remove_file(&hint).expect("it is removed");
    assert_eq!(Set::open(folder.path()).expect("the set").generation(), 4);
    let old = Set::open(folder.path().join(manifest_name(2))).expect("a manifest file");
    assert_eq!(old.generation(), 2);
}

#[test]
fn committers_refuse_what_no_set_may_have() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let plain = || Schema::plain(KeyType::U64, ValueType::U64, None);
    let tuples = |range: std::ops::Range<u64>| -> Vec<Tuple> {
        range.map(|key| (Datum::U64(key), Datum::U64(key))).collect()
    };
    let low = write(path, plain(), &tuples(0..10), Partition::Tuples(5));
    let over = write(path, plain(), &tuples(9..20), Partition::Tuples(50));
    let begin = || Committer::begin(Arc::new(Folder::new(path))).expect("the set");
    let mut both = begin();
    both.add(&low).expect("the types");
    both.add(&over).expect("the types");
    let error = both.publish().expect_err("9 is in both");
    assert!(
        matches!(error, SetError::Overlap { .. }) && error.to_string().contains(&over.entries[0].name),
        "{error}"
    );
    // Other types, other names.
    let other = write(path, Schema::plain(KeyType::U32, ValueType::U64, None), &[], Partition::Tuples(5));
    let named =
        write(path, Schema { key_name: "k".into(), ..plain() }, &tuples(50..60), Partition::Tuples(5));
    for other in [other, named] {
        let mut committer = begin();
        committer.add(&low).expect("the types");
        assert!(matches!(committer.add(&other), Err(SetError::Types { .. })));
    }
    // A file that is gone, or of another length.
    let gone = write(path, plain(), &tuples(100..110), Partition::Tuples(50));
    fs::remove_file(path.join(&gone.entries[0].name)).expect("it is removed");
    let mut committer = begin();
    committer.add(&gone).expect("the types");
    assert!(matches!(committer.publish(), Err(SetError::Missing { .. })));
    let mut wrong = low.clone();
    wrong.entries[0].file_bytes += 4096;
    let mut committer = begin();
    committer.add(&wrong).expect("the types");
    assert!(matches!(committer.publish(), Err(SetError::Differs { .. })));
    // A name that leads out of the set.
    let mut out = low.clone();
    out.entries[0].name = "files/../../x".into();
    assert!(matches!(begin().add(&out), Err(SetError::Usage(_))));
    assert!(matches!(begin().publish(), Err(SetError::Usage(_))));
    assert!(matches!(Set::open(path), Err(SetError::NoSet { .. })), "nothing was published");
    let nothing = Written { entries: Vec::new(), ..low };
    assert!(publish(path, &nothing).is_empty());
}
