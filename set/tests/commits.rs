//! Commits exclude each other, generations can be followed, and a sweep deletes what nobody needs.

mod common;

use common::{Tuple, numbers, publish, write};
use pleach_builder::source::Schema;
use pleach_format::{KeyType, ValueType};
use pleach_set::{
    Committer, Content, Datum, Folder, LiveSet, Object, Partition, Set, SetError, Store, SweepOptions,
    generations, manifest_name, sweep,
};
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

fn plain() -> Schema {
    Schema::plain(KeyType::U64, ValueType::U64, None)
}

fn tuples(range: std::ops::Range<u64>) -> Vec<Tuple> {
    range.map(|key| (Datum::U64(key), Datum::U64(key))).collect()
}

/// Makes a file as old as that.
fn age(path: &Path, hours: u64) {
    let then = SystemTime::now() - Duration::from_secs(hours * 3600);
    File::open(path).and_then(|file| file.set_modified(then)).expect("its time is set");
}

fn age_all(path: &Path, hours: u64) {
    for folder in ["files", "manifests"] {
        for entry in fs::read_dir(path.join(folder)).expect("the folder") {
            age(&entry.expect("an entry").path(), hours);
        }
    }
}

fn count(path: &Path, folder: &str) -> usize {
    fs::read_dir(path.join(folder)).expect("the folder").count()
}

#[test]
fn of_two_committers_one_wins() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let written = write(path, plain(), &tuples(0..100), Partition::Tuples(50));
    for generation in 1..=3 {
        let committers: Vec<_> = (0..8)
            .map(|_| {
                let mut committer = Committer::begin(Arc::new(Folder::new(path))).expect("the set");
                committer.add(&written).expect("the types");
                committer
            })
            .collect();
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                committers.into_iter().map(|committer| scope.spawn(|| committer.publish())).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
        for error in outcomes.into_iter().filter_map(Result::err) {
            assert!(matches!(error, SetError::Lost { generation: lost } if lost == generation), "{error}");
            assert!(error.to_string().contains(&format!("generation {generation}")), "{error}");
        }
        let set = Set::open(path).expect("the set");
        assert_eq!((set.generation(), set.len()), (generation, 100));
    }
    assert_eq!(count(path, "manifests"), 3, "nothing unfinished is left");
}

#[test]
fn sets_grow_by_commits() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    publish(path, &write(path, plain(), &tuples(100..200), Partition::Tuples(50)));
    let old = Set::open(path).expect("the set");
    assert_eq!(old.get(&Datum::U64(150)).expect("get"), Some(Datum::U64(150)));
    let live = LiveSet::open(path).expect("the set");
    assert_eq!(live.current().get(&Datum::U64(150)).expect("get"), Some(Datum::U64(150)));
    assert!(!live.refresh().expect("it is read"));
    // Before, between and after what is there.
    for range in [0..50, 300..350, 200..250] {
        let written = write(path, plain(), &tuples(range), Partition::Tuples(500));
        let mut committer = Committer::begin(Arc::new(Folder::new(path))).expect("the set");
        committer.keep(|_, _| true).expect("the types");
        committer.add(&written).expect("the types");
        committer.publish().expect("it is published");
    }
    assert!(live.refresh().expect("it is read"));
    let now = live.current();
    assert_eq!((now.generation(), now.len(), now.manifest().files()), (4, 250, 5));
    assert_eq!(now.open_files(), 1, "files that both have stay open");
    assert_eq!(now.manifest().facts().set_id, old.manifest().facts().set_id);
    assert_eq!(old.get(&Datum::U64(10)).expect("get"), None, "a reader keeps its generation");
    let listed = generations(&Folder::new(path)).expect("they are listed");
    let tuples: Vec<_> = listed.iter().map(|it| it.manifest.as_ref().expect("whole").tuples).collect();
    assert_eq!(tuples, [100, 150, 200, 250]);
}

#[test]
fn old_files_are_not_committed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let written = write(path, plain(), &tuples(0..10), Partition::Tuples(50));
    age(&path.join(&written.entries[0].name), 13);
    let begin = || {
        let mut committer = Committer::begin(Arc::new(Folder::new(path))).expect("the set");
        committer.add(&written).expect("the types");
        committer
    };
    let error = begin().publish().expect_err("a sweep of 24 h may come");
    assert!(matches!(error, SetError::Stale { .. }), "{error}");
    begin().grace(Duration::from_secs(30 * 3600)).publish().expect("a longer grace");
    // Files of the current generation may be of any age.
    let mut committer = Committer::begin(Arc::new(Folder::new(path))).expect("the set");
    committer.keep(|_, _| true).expect("the types");
    committer.publish().expect("they are named");
}

#[test]
fn sweeps_delete_what_nobody_needs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let store = Folder::new(path);
    for _ in 0..4 {
        numbers(path, 0..100, 50);
    }
    let options = SweepOptions { keep: 2, ..SweepOptions::default() };
    // Everything is young.
    let swept = sweep(&store, &options).expect("it is swept");
    assert_eq!((swept.kept.len(), swept.generations.len(), swept.files.len()), (4, 0, 0));
    // The last generation is young: the one before it may still be read, whatever `keep` is.
    age_all(path, 100);
    age(&path.join(manifest_name(4)), 1);
    let litter = write(path, plain(), &tuples(0..10), Partition::Tuples(50)).entries.remove(0);
    fs::write(path.join("files/.unfinished"), b"x").expect("it is written");
    age(&path.join("files/.unfinished"), 30);
    let dry = sweep(&store, &SweepOptions { keep: 1, dry_run: true, ..options }).expect("it is swept");
    assert_eq!(
        (&dry.kept[..], &dry.generations[..], dry.files.len(), dry.young.len()),
        (&[3, 4][..], &[1, 2][..], 5, 1)
    );
    assert_eq!((count(path, "files"), count(path, "manifests")), (10, 4), "a dry run deletes nothing");
    let swept = sweep(&store, &SweepOptions { keep: 1, ..options }).expect("it is swept");
    let names = |objects: &[Object]| objects.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    assert_eq!((swept.kept, swept.generations), (dry.kept, dry.generations));
    assert_eq!((names(&swept.files), names(&swept.young)), (names(&dry.files), names(&dry.young)));
    assert_eq!((count(path, "files"), count(path, "manifests")), (5, 2));
    assert!(path.join(&litter.name).exists(), "it is too young");
    age_all(path, 100);
    let swept = sweep(&store, &SweepOptions { keep: 1, ..options }).expect("it is swept");
    assert_eq!((&swept.kept[..], swept.files.len()), (&[4][..], 3));
    let set = Set::open(path).expect("the set");
    assert_eq!(set.iter().inspect(|tuple| assert!(tuple.is_ok())).count(), 100);
    assert_eq!(count(path, "files"), 2);
    // Without the hint, and by the hint alone.
    fs::remove_file(path.join("latest")).expect("it is removed");
    assert_eq!(Set::open(path).expect("the set").generation(), 4);
}

#[test]
fn a_sweep_does_not_guess() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    assert!(matches!(sweep(&Folder::new(path), &SweepOptions::default()), Err(SetError::NoSet { .. })));
    for _ in 0..3 {
        numbers(path, 0..10, 5);
    }
    age_all(path, 100);
    let kept = path.join(manifest_name(2));
    let whole = fs::read(&kept).expect("it is read");
    fs::write(&kept, b"damage").expect("it is written");
    let error = sweep(&Folder::new(path), &SweepOptions::default()).expect_err("it is damaged");
    assert!(matches!(error, SetError::Manifest { .. }), "{error}");
    assert_eq!((count(path, "files"), count(path, "manifests")), (6, 3), "nothing was deleted");
    fs::write(&kept, whole).expect("it is written");
    age_all(path, 100);
    let swept = sweep(&Folder::new(path), &SweepOptions::default()).expect("it is swept");
    assert_eq!((swept.kept, swept.generations, swept.files.len()), (vec![2, 3], vec![1], 2));
}

#[test]
fn objects_are_created_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Folder::create(folder.path()).expect("the folder");
    store.create_new("files/a", Content::Bytes(b"one")).expect("it is new");
    let error = store.create_new("files/a", Content::Bytes(b"two")).expect_err("it is there");
    assert_eq!(error.source.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(folder.path().join("files/a")).expect("it is read"), b"one");
    assert_eq!(count(folder.path(), "files"), 1);
    let other = tempfile::tempdir().expect("a folder");
    fs::write(other.path().join("letter.txt"), b"mine").expect("it is written");
    let error = Folder::create(other.path()).expect_err("it has other contents");
    assert!(error.to_string().contains("letter.txt"), "{error}");
    assert_eq!(fs::read_dir(other.path()).expect("the folder").count(), 1);
}
