//! The old file or the new one, and no litter, whatever fails and whichever other process runs.

mod common;

use common::{Chunks, check_file, mix, numbered, sorted};
use pleach_builder::publish::strays;
use pleach_builder::storage::{
    Identity, Kind, Locked, RealStorage, Storage, StorageFile, StorageTemp, UnnamedStorage,
};
use pleach_builder::{
    BuildError, BuildOptions, Chunk, Observer, Phase, Schema, Silent, Source, SourceError, build, build_iter,
    build_slice, build_with_storage,
};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Number of calls that set the length of a file.
static LENGTHS_SET: AtomicU64 = AtomicU64::new(0);

/// Fails its n-th operation.
struct Failing {
    at: u64,
    count: Arc<AtomicU64>,
}

fn step(count: &AtomicU64, at: u64) -> io::Result<()> {
    if count.fetch_add(1, Ordering::Relaxed) == at {
        return Err(io::Error::other("injected"));
    }
    Ok(())
}

struct FailingFile<F: ?Sized> {
    at: u64,
    count: Arc<AtomicU64>,
    file: Box<F>,
}

macro_rules! failing_file {
    ($($kind:tt)*) => {
        impl StorageFile for FailingFile<$($kind)*> {
            fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
                step(&self.count, self.at)?;
                self.inner().write_all_at(bytes, offset)
            }
            fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
                step(&self.count, self.at)?;
                self.inner().read_exact_at(bytes, offset)
            }
            fn set_len(&self, bytes: u64) -> io::Result<()> {
                LENGTHS_SET.fetch_add(1, Ordering::Relaxed);
                step(&self.count, self.at)?;
                self.inner().set_len(bytes)
            }
            fn set_mode(&self, mode: u32) -> io::Result<()> {
                step(&self.count, self.at)?;
                self.inner().set_mode(mode)
            }
            fn owner(&self) -> io::Result<(u32, u32)> {
                step(&self.count, self.at)?;
                self.inner().owner()
            }
            fn set_owner(&self, user: Option<u32>, group: u32) -> io::Result<()> {
                step(&self.count, self.at)?;
                self.inner().set_owner(user, group)
            }
            fn sync(&self) -> io::Result<()> {
                step(&self.count, self.at)?;
                self.inner().sync()
            }
        }
    };
}
failing_file!(dyn StorageFile);
failing_file!(dyn StorageTemp);

impl FailingFile<dyn StorageFile> {
    fn inner(&self) -> &dyn StorageFile {
        &*self.file
    }
}
impl FailingFile<dyn StorageTemp> {
    fn inner(&self) -> &dyn StorageFile {
        self.file.file()
    }
}

impl StorageTemp for FailingFile<dyn StorageTemp> {
    fn file(&self) -> &dyn StorageFile {
        self
    }
    fn path(&self) -> &Path {
        self.file.path()
    }
    fn persist(self: Box<Self>, target: &Path) -> io::Result<()> {
        step(&self.count, self.at)?;
        self.file.persist(target)
    }
}

impl Storage for Failing {
    fn kind(&self, path: &Path) -> io::Result<Kind> {
        step(&self.count, self.at)?;
        RealStorage.kind(path)
    }
    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        step(&self.count, self.at)?;
        RealStorage.identity(path)
    }
    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        step(&self.count, self.at)?;
        RealStorage.list(folder)
    }
    fn lock(&self, path: &Path, holder: &str) -> io::Result<Locked> {
        step(&self.count, self.at)?;
        RealStorage.lock(path, holder)
    }
    fn create_temp(
        &self,
        folder: &Path,
        prefix: &OsString,
        suffix: &str,
        mode: u32,
    ) -> io::Result<Box<dyn StorageTemp>> {
        step(&self.count, self.at)?;
        let file = RealStorage.create_temp(folder, prefix, suffix, mode)?;
        Ok(Box::new(FailingFile { at: self.at, count: Arc::clone(&self.count), file }))
    }
    fn create_spill(&self, folder: &Path) -> io::Result<Box<dyn StorageFile>> {
        step(&self.count, self.at)?;
        let file = RealStorage.create_spill(folder)?;
        Ok(Box::new(FailingFile { at: self.at, count: Arc::clone(&self.count), file }))
    }
    fn open(&self, path: &Path) -> io::Result<(Box<dyn StorageFile>, u64)> {
        step(&self.count, self.at)?;
        let (file, bytes) = RealStorage.open(path)?;
        Ok((Box::new(FailingFile { at: self.at, count: Arc::clone(&self.count), file }), bytes))
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        step(&self.count, self.at)?;
        RealStorage.link(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        step(&self.count, self.at)?;
        RealStorage.remove(path)
    }
    fn remove_unlocked(&self, path: &Path) -> io::Result<bool> {
        step(&self.count, self.at)?;
        RealStorage.remove_unlocked(path)
    }
    fn sync_dir(&self, folder: &Path) -> io::Result<()> {
        step(&self.count, self.at)?;
        RealStorage.sync_dir(folder)
    }
}

/// Fails every operation of a build in turn; of a large one every third after the first ones, unless the
/// long form of the tests is requested. Returns the number of operations, and their names if they fail.
fn fail_everywhere(tuples: &[(u64, u64)], memory_bytes: u64) -> (u64, BTreeSet<&'static str>) {
    let is_long = std::env::var_os("PLEACH_TESTS").is_some_and(|form| form == "long");
    let every = if is_long || tuples.len() < 1 << 20 { 1 } else { 3 };
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("table.pleach");
    let old = pleach_builder::build_bytes(&[(1u64, 2u64)], &BuildOptions::default()).unwrap();
    let wanted = sorted(tuples.to_vec());
    let options = BuildOptions { memory_bytes, threads: 2, ..BuildOptions::default() };
    let stray = folder.path().join(".table.pleach.abc123.pleach-tmp");
    let mut operations = BTreeSet::new();
    for at in (0..6).chain((6..).step_by(every)) {
        fs::write(&target, &old).unwrap();
        fs::write(&stray, b"of a build that was killed").unwrap();
        let count = Arc::new(AtomicU64::new(0));
        let storage = Failing { at, count: Arc::clone(&count) };
        let mut source = Chunks::new(tuples, 50_000);
        let result = build_with_storage(&mut source, &target, &options, &Silent, &storage);
        let file = fs::read(&target).unwrap();
        match result {
            Ok(_) => {
                assert_eq!(names(folder.path()), ["table.pleach"]);
                check_file(&file, &wanted);
                return (count.load(Ordering::Relaxed), operations);
            }
            Err(error) => {
                let BuildError::Io { operation, source, .. } = &error else { panic!("{error}") };
                assert_eq!(source.to_string(), "injected");
                operations.insert(*operation);
                assert!(!error.to_string().contains('\n'));
                let _ = fs::remove_file(&stray);
                assert_eq!(names(folder.path()), ["table.pleach"], "after {operation}, operation {at}");
                if *operation == "syncing the folder" {
                    check_file(&file, &wanted);
                } else {
                    assert_eq!(file, old, "after {operation}, operation {at}");
                }
            }
        }
    }
    unreachable!()
}

#[test]
fn every_operation_may_fail() {
    let (small, operations) = fail_everywhere(&numbered(500, |row| row), 1 << 30);
    assert!(small > 8, "{small}");
    for operation in ["syncing", "syncing the folder"] {
        assert!(operations.contains(operation), "{operation} is none of {operations:?}");
    }
    let (spilled, _) = fail_everywhere(&numbered(20_000, mix), 1);
    assert!(spilled > 50, "{spilled}");
    let (large, _) = fail_everywhere(&numbered(2_900_000, |row| row), 1 << 30);
    assert!(large > 20, "{large}");
    // Much is written before disorder shows.
    let before = LENGTHS_SET.load(Ordering::Relaxed);
    let (turned, _) = fail_everywhere(&numbered(2_900_000, |row| (row + 1) % 2_900_000), 1 << 30);
    assert!(turned > large, "{turned}");
    // And is cut off.
    assert!(LENGTHS_SET.load(Ordering::Relaxed) > before);
}

/// Stops at the n-th question.
struct Stop {
    at: u64,
    asked: AtomicU64,
}
impl Observer for Stop {
    fn cancelled(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) >= self.at
    }
}

#[test]
fn stopping_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("table.pleach");
    fs::write(&target, b"old").unwrap();
    for (count, memory_bytes) in
        [(1000, 1 << 30), (2_900_000, 1 << 30), (300_000, 1 << 20), (2_900_000, 100 << 20)]
    {
        for ordered in [true, false] {
            let tuples = numbered::<u64, u64>(count, |row| if ordered { row } else { mix(row) });
            let options = BuildOptions { memory_bytes, threads: 2, force: true, ..BuildOptions::default() };
            let mut at = 0;
            loop {
                let stop = Stop { at, asked: AtomicU64::new(0) };
                match build(&mut Chunks::new(&tuples, 100_000), &target, &options, &stop) {
                    Err(BuildError::Interrupted) => {}
                    Err(error) => panic!("{error}"),
                    Ok(_) => break,
                }
                assert_eq!(names(folder.path()), ["table.pleach"]);
                assert_eq!(fs::read(&target).unwrap(), b"old");
                at = (at + 1) * 4 / 3;
            }
            check_file(&fs::read(&target).unwrap(), &sorted(tuples));
            fs::write(&target, b"old").unwrap();
        }
    }
}

/// Does something at its first chunk, then ends with an error.
struct Broken<F> {
    schema: Schema,
    act: F,
}
impl<F: FnMut() + Send> Source for Broken<F> {
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn next_chunk(&mut self, _chunk: &mut Chunk, _tuples_max: usize) -> Result<(), SourceError> {
        (self.act)();
        let (input, place) = ("a.csv".into(), "row 7".into());
        Err(SourceError { input, place, what: "bad".into(), advice: String::new(), cause: None })
    }
    fn progress(&self) -> (u64, Option<u64>) {
        (0, None)
    }
}

fn schema() -> Schema {
    Chunks::new::<u32, u32>(&[], 1).schema().clone()
}

#[test]
fn second_builder_is_told_who_is_first() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("table.pleach");
    let mut busy = String::new();
    let act = || {
        assert_eq!(names(folder.path()).len(), 2, "lock and temporary file");
        assert_eq!(strays(&target).unwrap(), Vec::<PathBuf>::new(), "what is in use is no stray");
        let error = build_slice(&[(1u32, 2u32)], &target, &BuildOptions::default()).unwrap_err();
        let BuildError::Busy { path, holder } = &error else { panic!("{error}") };
        assert_eq!(*path, target);
        busy = holder.clone();
    };
    let mut source = Broken { schema: schema(), act };
    let error = build(&mut source, &target, &BuildOptions::default(), &Silent).unwrap_err();
    assert_eq!(error.to_string(), "a.csv: row 7: bad");
    assert!(busy.contains(&format!("process {}", std::process::id())), "{busy}");
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn a_file_without_a_name_is_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let tuples: Vec<(u64, u64)> = numbered(5000, |row| mix(row) % 4000);
    let target = folder.path().join("t");
    build(&mut Chunks::new(&tuples, 1000), &target, &BuildOptions::default(), &Silent).unwrap();
    let wanted = fs::read(&target).unwrap();
    // In memory, and by spilling.
    for memory_bytes in [1 << 30, 1] {
        let options = BuildOptions { memory_bytes, ..BuildOptions::default() };
        let storage = UnnamedStorage::new(folder.path());
        let mut source = Chunks::new(&tuples, 1000);
        build_with_storage(&mut source, storage.target(), &options, &Silent, &storage).unwrap();
        assert_eq!(names(folder.path()), ["t"]);
        let mut found = vec![0; wanted.len()];
        let file = storage.into_file().unwrap();
        assert_eq!(file.metadata().unwrap().len(), wanted.len() as u64);
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut found, 0).unwrap();
        assert!(found == wanted);
    }
    let storage = UnnamedStorage::new(&folder.path().join("none"));
    let mut source = Chunks::new(&tuples, 1000);
    let refused =
        build_with_storage(&mut source, storage.target(), &BuildOptions::default(), &Silent, &storage);
    assert!(refused.is_err() && storage.into_file().is_none());
}

#[test]
fn strays_are_listed_and_swept() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    let temp = folder.path().join(".t.Ab3xyz.pleach-tmp");
    let lock = folder.path().join(".t.pleach-lock");
    let others = [".t.x.Ab3xyz.pleach-tmp", ".t.Ab3xy.pleach-tmp", ".tt.Ab3xyz.pleach-tmp", ".u.pleach-lock"];
    for other in others {
        fs::write(folder.path().join(other), b"").unwrap();
    }
    // A pipe is not a file: opening it would block.
    let pipe = folder.path().join(".t.Fifo00.pleach-tmp");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(strays(&target).unwrap(), Vec::<PathBuf>::new());
    assert_eq!(strays(Path::new("in the folder we are in")).unwrap(), Vec::<PathBuf>::new());
    build_slice(&[(1u32, ())], &target, &BuildOptions::default()).unwrap();
    fs::remove_file(&pipe).unwrap();
    fs::write(&temp, b"half a file").unwrap();
    fs::write(&lock, b"process 1 on elsewhere, killed long ago, with a long text").unwrap();
    assert_eq!(strays(&target).unwrap(), [temp.clone(), lock.clone()]);
    let held = File::open(&temp).unwrap();
    held.lock().unwrap();
    assert_eq!(strays(&target).unwrap(), [lock]);
    build_slice(&[(1u32, ())], &target, &BuildOptions::default()).unwrap();
    assert!(temp.exists(), "somebody has it locked");
    drop(held);
    build_iter((0..9u32).map(|key| (key, ())), &target, &BuildOptions::default()).unwrap();
    let mut left: Vec<String> = others.iter().map(|&name| name.to_owned()).chain(["t".to_owned()]).collect();
    left.sort();
    assert_eq!(names(folder.path()), left);
    assert_eq!(strays(&target).unwrap(), Vec::<PathBuf>::new());
}

#[test]
fn modes_links_and_folders() {
    let folder = tempfile::tempdir().unwrap();
    let options = BuildOptions::default();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let plain = folder.path().join("plain");
    fs::write(&plain, b"").unwrap();
    let target = folder.path().join("t");
    build_slice(&[(1u32, 2u32)], &target, &options).unwrap();
    assert_eq!(mode(&target), mode(&plain), "0666 and the umask");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o440)).unwrap();
    build_slice(&[(1u32, 3u32)], &target, &options).unwrap();
    assert_eq!(mode(&target), 0o440);

    // The target of a link is replaced, also one that is not there yet.
    fs::create_dir(folder.path().join("deep")).unwrap();
    symlink("deep/real", folder.path().join("link")).unwrap();
    symlink("link", folder.path().join("link2")).unwrap();
    for value in [1u32, 2] {
        build_slice(&[(1u32, value)], &folder.path().join("link2"), &options).unwrap();
        assert_eq!(names(&folder.path().join("deep")), ["real"]);
        check_file(&fs::read(folder.path().join("deep/real")).unwrap(), &[(1u32, value)]);
        assert!(fs::symlink_metadata(folder.path().join("link")).unwrap().is_symlink());
    }
    symlink("round", folder.path().join("round")).unwrap();
    assert!(matches!(
        build_slice(&[(1u32, ())], &folder.path().join("round"), &options),
        Err(BuildError::Io { .. })
    ));

    let error = build_slice(&[(1u32, ())], &folder.path().join("deep"), &options).unwrap_err();
    assert!(matches!(error, BuildError::TargetIsDirectory { .. }), "{error}");
    for odd in ["..", "/", ""] {
        assert!(build_slice(&[(1u32, ())], Path::new(odd), &options).is_err(), "{odd}");
    }
    let error = build_slice(&[(1u32, ())], &folder.path().join("no/such/t"), &options).unwrap_err();
    assert!(matches!(error, BuildError::Io { .. }), "{error}");
    let error = build_slice(&[(1u32, ())], Path::new("/dev/null"), &options).unwrap_err();
    assert!(matches!(error, BuildError::TargetNotRegular { .. }), "{error}");
    assert_eq!(names(&folder.path().join("deep")), ["real"]);
}

/// Counts phases.
#[derive(Default)]
struct Phases(std::sync::Mutex<Vec<Phase>>);
impl Observer for Phases {
    fn progress(&self, phase: Phase, done: u64, total: Option<u64>) {
        assert!(total.is_none_or(|total| done <= total));
        let mut phases = self.0.lock().unwrap();
        if phases.last() != Some(&phase) {
            phases.push(phase);
        }
    }
}

#[test]
fn progress_names_the_phases() {
    let folder = tempfile::tempdir().unwrap();
    let tuples = numbered::<u64, u64>(50_000, mix);
    for (memory_bytes, wanted) in [(1u64 << 30, Phase::Sort), (1, Phase::Merge)] {
        let phases = Phases::default();
        let options = BuildOptions { memory_bytes, ..BuildOptions::default() };
        build(&mut Chunks::new(&tuples, 1000), folder.path().join("t"), &options, &phases).unwrap();
        let seen = phases.0.into_inner().unwrap();
        assert!(
            seen.contains(&Phase::Read) && seen.contains(&wanted) && seen.ends_with(&[Phase::Sync]),
            "{seen:?}"
        );
    }
}
