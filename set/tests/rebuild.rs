//! Changes make the generation that a build of the changed tuples would hold, and touch no other files.

mod common;

use common::{Random, Tuple, key, numbers, set, source};
use pleach_builder::source::{Op, Schema, Source, SourceError};
use pleach_builder::{ChunkSource, Silent};
use pleach_format::{KeyType, ValueType};
use pleach_set::{
    Content, Datum, Entry, Folder, Object, Part, Partition, Set, SetError, SetRebuildOptions, SetRebuilt,
    Store, StoreError, SweepOptions, key_bytes, manifest_name, rebuild_set, rollback_set, sweep,
};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

type Change = (Op, Tuple);

fn rebuild(path: &Path, schema: &Schema, changes: &[Change]) -> Result<SetRebuilt, SetError> {
    rebuild_in(Arc::new(Folder::new(path)), schema, changes)
}

fn rebuild_in(store: Arc<dyn Store>, schema: &Schema, changes: &[Change]) -> Result<SetRebuilt, SetError> {
    let tuples: Vec<Tuple> = changes.iter().map(|(_, tuple)| tuple.clone()).collect();
    let mut chunk = pleach_builder::source::Chunk::default();
    source(schema.clone(), &tuples).next_chunk(&mut chunk, usize::MAX).expect("a chunk");
    chunk.ops = changes.iter().map(|(op, _)| *op).collect();
    let given = schema.clone();
    let open = Box::new(move |_: &Schema| -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(ChunkSource::new(given, [chunk])))
    });
    rebuild_set(store, open, &SetRebuildOptions::default(), &Silent)
}

/// Applies changes to a plain list.
fn model(key_type: KeyType, tuples: &mut Vec<Tuple>, changes: &[Change]) {
    for (op, (key, value)) in changes {
        if matches!(op, Op::Put | Op::Del) {
            tuples.retain(|(own, _)| own != key);
        }
        if matches!(op, Op::Put | Op::Add) {
            tuples.push((key.clone(), value.clone()));
        }
    }
    tuples.sort_by_key(|(own, _)| key_bytes(key_type, own).expect("its type").into_owned());
}

#[test]
fn changes_apply_as_to_a_list() {
    let folder = tempfile::tempdir().expect("a folder");
    for (at, key_type) in
        [KeyType::U64, KeyType::I64, KeyType::F64, KeyType::Utf8, KeyType::U128].into_iter().enumerate()
    {
        let path = folder.path().join(at.to_string());
        let schema = Schema::plain(key_type, ValueType::U64, None);
        let mut random = Random(at as u64);
        let mut tuples: Vec<Tuple> =
            (0..300).map(|value| (key(key_type, random.below(400)), Datum::U64(value))).collect();
        set(&path, schema.clone(), &tuples, Partition::Tuples(30));
        model(key_type, &mut tuples, &[]);
        for generation in 2..7 {
            let changes: Vec<Change> = (0..random.below(60))
                .map(|value| {
                    let op = Op::ALL[random.below(3) as usize];
                    (op, (key(key_type, random.below(450)), Datum::U64(1000 * generation + value)))
                })
                .collect();
            let rebuilt = rebuild(&path, &schema, &changes).expect("it is rebuilt");
            assert_eq!(rebuilt.applied.rows(), changes.len() as u64);
            model(key_type, &mut tuples, &changes);
            let now = Set::open(&path).expect("the set");
            assert_eq!((now.generation(), now.len()), (generation, tuples.len() as u64));
            let all: Vec<Tuple> = now.iter().map(|tuple| tuple.expect("tuple")).collect();
            assert_eq!(all, tuples);
        }
    }
}

#[test]
fn only_files_that_changes_meet_are_made_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let schema = Schema::plain(KeyType::U64, ValueType::U64, None);
    let old = numbers(path, 0..1000, 100);
    let tuple = |key: u64, value: u64| (Datum::U64(key), Datum::U64(value));
    let changes = [
        (Op::Put, tuple(250, 1)),
        (Op::Del, tuple(251, 0)),
        (Op::Put, tuple(777, 2)),
        (Op::Put, tuple(5000, 3)),
    ];
    let done = rebuild(path, &schema, &changes).expect("it is rebuilt");
    assert_eq!((done.touched, done.written, done.carried, done.base_tuples), (3, 3, 7, 1000));
    let now = Set::open(path).expect("the set");
    for file in 0..10 {
        let is_same = old.manifest().entry(file) == now.manifest().entry(file);
        assert_eq!(is_same, ![2, 7, 9].contains(&file), "file {file}");
    }
    assert_eq!(now.get(&Datum::U64(250)).expect("get"), Some(Datum::U64(1)));
    assert_eq!(now.get(&Datum::U64(251)).expect("get"), None);
    assert_eq!(now.last().expect("last"), Some(tuple(5000, 3)));
    assert_eq!(old.get(&Datum::U64(250)).expect("get"), Some(Datum::U64(250)), "readers keep the old one");

    // A file that grows is divided, and one without tuples goes.
    let mut changes: Vec<Change> = (0..250).map(|value| (Op::Add, tuple(150, value))).collect();
    changes.extend((300..400).map(|key| (Op::Del, tuple(key, 0))));
    let done = rebuild(path, &schema, &changes).expect("it is rebuilt");
    assert_eq!((done.touched, done.carried), (2, 8));
    let now = Set::open(path).expect("the set");
    // The run of equal keys is not divided.
    assert_eq!((done.written, now.manifest().files()), (2, 10));
    assert_eq!(now.get_all(&Datum::U64(150)).expect("all").count(), 251);
    assert_eq!(now.count(Datum::U64(300)..Datum::U64(400)).expect("count"), 0);
    assert_eq!(now.len(), 1000 + 250 - 100);
    assert_eq!(now.iter().inspect(|tuple| assert!(tuple.is_ok())).count() as u64, now.len());

    // All tuples go, and come again.
    let all: Vec<Change> = now.iter().map(|it| (Op::Del, it.expect("tuple"))).collect();
    rebuild(path, &schema, &all).expect("it is rebuilt");
    assert!(Set::open(path).expect("the set").is_empty());
    rebuild(path, &schema, &[(Op::Add, tuple(7, 8))]).expect("it is rebuilt");
    let now = Set::open(path).expect("the set");
    assert_eq!(now.iter().map(|it| it.expect("tuple")).collect::<Vec<_>>(), [tuple(7, 8)]);
    // Nothing to do is a generation, too.
    rebuild(path, &schema, &[]).expect("it is rebuilt");
    assert_eq!(Set::open(path).expect("the set").len(), 1);
}

#[test]
fn changes_that_are_refused_leave_the_set() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    numbers(path, 0..100, 10);
    let before = fs::read_dir(path.join("files")).expect("the folder").count();
    let other = Schema::plain(KeyType::U32, ValueType::U64, None);
    let changes = [(Op::Put, (Datum::U32(5), Datum::U64(1)))];
    assert!(rebuild(path, &other, &changes).is_err(), "keys of another type");
    // The second file that is met is missing.
    let set = Set::open(path).expect("the set");
    fs::remove_file(path.join(set.manifest().name(5))).expect("it is removed");
    let schema = Schema::plain(KeyType::U64, ValueType::U64, None);
    let changes = [5, 55].map(|key| (Op::Put, (Datum::U64(key), Datum::U64(1))));
    assert!(matches!(rebuild(path, &schema, &changes), Err(SetError::Missing { .. })));
    assert_eq!(Set::open(path).expect("the set").generation(), 1);
    assert_eq!(fs::read_dir(path.join("files")).expect("the folder").count(), before - 1, "nothing is left");
    let none = rebuild(&path.join("none"), &schema, &changes);
    assert!(matches!(none, Err(SetError::NoSet { .. })));
}

#[test]
fn rollbacks_publish_old_generations() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let store = || Arc::new(Folder::new(path));
    numbers(path, 0..10, 5);
    assert!(matches!(rollback_set(store(), None), Err(SetError::Usage(_))), "there is none before");
    numbers(path, 0..20, 5);
    numbers(path, 0..30, 5);
    assert_eq!(rollback_set(store(), None).expect("generation 2").tuples(), 20);
    assert_eq!(rollback_set(store(), Some(1)).expect("generation 1").tuples(), 10);
    let now = Set::open(path).expect("the set");
    assert_eq!((now.generation(), now.len()), (5, 10));
    assert!(matches!(rollback_set(store(), Some(5)), Err(SetError::Usage(_))));
    assert!(matches!(rollback_set(store(), Some(9)), Err(SetError::Usage(_))));
    // The current manifest is damaged: a rollback repairs the set.
    fs::write(path.join(manifest_name(5)), b"damage").expect("it is written");
    assert!(Set::open(path).is_err());
    assert_eq!(rollback_set(store(), Some(3)).expect("generation 3").generation(), 6);
    assert_eq!(Set::open(path).expect("the set").len(), 30);
    // Files that only an old generation names are young again, so that no sweep takes them.
    let old = std::time::SystemTime::now() - Duration::from_secs(100 * 3600);
    for entry in fs::read_dir(path.join("files")).expect("the folder") {
        let file = fs::File::open(entry.expect("an entry").path()).expect("it opens");
        file.set_modified(old).expect("its time is set");
    }
    let rolled = rollback_set(store(), Some(2)).expect("generation 2");
    for entry in rolled.entries() {
        let age = fs::metadata(path.join(&entry.name)).and_then(|it| it.modified()).expect("its time");
        assert!(age.elapsed().unwrap_or_default() < Duration::from_secs(600), "{}", entry.name);
    }
    sweep(&Folder::new(path), &SweepOptions { grace: Duration::ZERO, keep: 1, dry_run: false })
        .expect("it is swept");
    assert_eq!(Set::open(path).expect("the set").iter().inspect(|tuple| assert!(tuple.is_ok())).count(), 20);
    assert!(rollback_set(store(), Some(1)).is_err(), "it was swept");
}

/// A folder that fails once a manifest is there, as a disk does whose last sync fails, or a network on the way back.
#[derive(Debug)]
struct FailsAfter(Folder);

impl Store for FailsAfter {
    fn create_new(&self, name: &str, content: Content<'_>) -> Result<(), StoreError> {
        self.0.create_new(name, content)?;
        Err(StoreError { operation: "create", name: name.into(), source: io::ErrorKind::TimedOut.into() })
    }
    fn place(&self) -> String {
        self.0.place()
    }
    fn read(&self, name: &str, part: Part, expected: Option<u64>) -> Result<Vec<u8>, StoreError> {
        self.0.read(name, part, expected)
    }
    fn length(&self, name: &str) -> Result<u64, StoreError> {
        self.0.length(name)
    }
    fn put_hint(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.0.put_hint(name, bytes)
    }
    fn list(&self, folder: &str) -> Result<Vec<Object>, StoreError> {
        self.0.list(folder)
    }
    fn delete(&self, name: &str) -> Result<(), StoreError> {
        self.0.delete(name)
    }
    fn age(&self, name: &str) -> Result<Duration, StoreError> {
        self.0.age(name)
    }
    fn renew(&self, name: &str) -> Result<(), StoreError> {
        self.0.renew(name)
    }
    fn local(&self, name: &str) -> Option<PathBuf> {
        self.0.local(name)
    }
    fn fetch(&self, entry: &Entry) -> Result<PathBuf, SetError> {
        self.0.fetch(entry)
    }
}

#[test]
fn files_that_may_be_published_are_not_deleted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("set");
    let schema = Schema::plain(KeyType::U64, ValueType::U64, None);
    numbers(&path, 0..100, 20);
    let changes = [(Op::Put, (Datum::U64(1_000), Datum::U64(7)))];
    let failed = rebuild_in(Arc::new(FailsAfter(Folder::new(&path))), &schema, &changes);
    assert!(matches!(failed, Err(SetError::Store(_))), "{failed:?}");
    let now = Set::open(&path).expect("the set");
    assert_eq!((now.generation(), now.len()), (2, 101), "the manifest is there");
    assert_eq!(now.get(&Datum::U64(1_000)).expect("its file is there"), Some(Datum::U64(7)));
}
