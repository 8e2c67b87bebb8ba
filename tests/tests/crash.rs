//! The old file or the new one, never anything else, and no litter: whatever the system refuses.
//!
//! Kills and signals need the binary: `tools/tests/kill.rs`.

use pleach::{FsckOptions, Verdict, fsck};
use pleach_builder::publish::strays;
use pleach_builder::storage::{Identity, Kind, Locked, RealStorage, Storage, StorageFile, StorageTemp};
use pleach_builder::{
    BuildError, BuildOptions, Chunk, Column, Schema, Silent, Source, SourceError, Summary, build, build_iter,
    build_slice, build_with_storage,
};
use pleach_format::{KeyType, ValueType};
use pleach_tests::fault::Fault;
use pleach_tests::generate::mix;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    names
}

/// Tuples in random order, as a source that yields chunks of a given size.
struct Mixed {
    schema: Schema,
    next: u64,
    count: u64,
    chunk: usize,
}

impl Mixed {
    fn new(count: u64, chunk: usize) -> Self {
        let schema = Schema {
            key_name: "id".into(),
            value_name: "row".into(),
            ..Schema::plain(KeyType::U64, ValueType::U64, None)
        };
        Self { schema, next: 0, count, chunk }
    }
}

impl Source for Mixed {
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        chunk.clear();
        let end = (self.next + self.chunk.min(tuples_max) as u64).min(self.count);
        if let (Column::U64(keys), Column::U64(values)) = (&mut chunk.keys, &mut chunk.values) {
            keys.extend((self.next..end).map(mix));
            values.extend(self.next..end);
        }
        self.next = end;
        Ok(())
    }
    fn progress(&self) -> (u64, Option<u64>) {
        (self.next, Some(self.count))
    }
}

/// Fails each operation of a build in turn, until a run meets no fault. Gives their number.
fn fail_everywhere(tuples: u64, memory_bytes: u64, errno: i32, forever: bool) -> u64 {
    // In memory if possible: hundreds of builds are synced.
    let scratch =
        || tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary folder");
    let (folder, spills) = (scratch(), scratch());
    let target = folder.path().join("t.pleach");
    let options = BuildOptions {
        memory_bytes,
        threads: 2,
        temp_dir: Some(spills.path().to_owned()),
        generation: 2,
        ..BuildOptions::default()
    };
    build_slice(&[(1u64, 2u64)], &target, &BuildOptions::default()).expect("built");
    let old = fs::read(&target).expect("there");
    let mut new: Option<Vec<u8>> = None;
    for at in 0.. {
        fs::write(&target, &old).expect("written");
        let fault = Fault { at, forever, errno, count: Arc::default() };
        let result = build_with_storage(&mut Mixed::new(tuples, 1000), &target, &options, &Silent, &fault);
        let what = format!("operation {at}, errno {errno}, forever {forever}: {result:?}");
        assert_eq!(names(folder.path()), ["t.pleach"], "{what}");
        assert_eq!(names(spills.path()), Vec::<String>::new(), "{what}");
        assert_eq!(strays(&target).expect("listed"), Vec::<PathBuf>::new(), "{what}");
        let now = fs::read(&target).expect("there");
        match result {
            Ok(summary) => {
                assert!(now != old && summary.file_bytes == now.len() as u64, "{what}");
                assert_eq!(fsck(&target, &FsckOptions::default()).expect("readable").findings, [], "{what}");
                assert!(new.is_none_or(|new| new == now), "{what}");
                return fault.count.load(Ordering::Relaxed);
            }
            Err(BuildError::Io { operation, source, path }) => {
                assert_eq!(source.raw_os_error(), Some(errno), "{what}");
                assert!(!path.as_os_str().is_empty(), "{what}");
                if operation == "syncing the folder" {
                    // The new name is there already; whether it survives a power cut is not known.
                    assert_eq!(
                        fsck(&target, &FsckOptions::default()).expect("readable").findings,
                        [],
                        "{what}"
                    );
                    new = Some(now);
                } else {
                    assert!(now == old, "{what}: the old file was touched");
                }
            }
            Err(_) => panic!("{what}"),
        }
    }
    unreachable!("a build has finitely many operations")
}

#[test]
fn every_operation_fails_once() {
    for errno in [libc::EIO, libc::ENOSPC] {
        let small = fail_everywhere(500, 1 << 30, errno, false);
        assert!(small > 8, "{small}");
        let spilled = fail_everywhere(20_000, 1, errno, false);
        assert!(spilled > 50, "{spilled}");
    }
}

#[test]
fn every_operation_fails_for_ever() {
    for errno in [libc::EIO, libc::ENOSPC, libc::EDQUOT] {
        fail_everywhere(500, 1 << 30, errno, true);
    }
    fail_everywhere(20_000, 1, libc::ENOSPC, true);
}

/// A file system, or a mount of one, that answers one kind of call with an error, always.
struct Lacking {
    call: Call,
    errno: i32,
    met: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Link,
    SetOwner,
    SetMode,
    List,
}

struct LackingFile<F: ?Sized> {
    call: Call,
    errno: i32,
    file: Box<F>,
}

impl StorageFile for LackingFile<dyn StorageTemp> {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.file().write_all_at(bytes, offset)
    }
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.file().read_exact_at(bytes, offset)
    }
    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.file().set_len(bytes)
    }
    fn set_mode(&self, mode: u32) -> io::Result<()> {
        match self.call {
            Call::SetMode => Err(io::Error::from_raw_os_error(self.errno)),
            _ => self.file.file().set_mode(mode),
        }
    }
    fn owner(&self) -> io::Result<(u32, u32)> {
        match self.call {
            // Another one than the old file's, which cannot be changed.
            Call::SetOwner => Ok((4_000_000, 4_000_000)),
            _ => self.file.file().owner(),
        }
    }
    fn set_owner(&self, user: Option<u32>, group: u32) -> io::Result<()> {
        match self.call {
            Call::SetOwner => Err(io::Error::from_raw_os_error(self.errno)),
            _ => self.file.file().set_owner(user, group),
        }
    }
    fn sync(&self) -> io::Result<()> {
        self.file.file().sync()
    }
}

impl StorageTemp for LackingFile<dyn StorageTemp> {
    fn file(&self) -> &dyn StorageFile {
        self
    }
    fn path(&self) -> &Path {
        self.file.path()
    }
    fn persist(self: Box<Self>, target: &Path) -> io::Result<()> {
        self.file.persist(target)
    }
}

impl Lacking {
    fn meet(&self, call: Call) -> io::Result<()> {
        if self.call != call {
            return Ok(());
        }
        self.met.fetch_add(1, Ordering::Relaxed);
        Err(io::Error::from_raw_os_error(self.errno))
    }
}

impl Storage for Lacking {
    fn kind(&self, path: &Path) -> io::Result<Kind> {
        RealStorage.kind(path)
    }
    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        RealStorage.identity(path)
    }
    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        self.meet(Call::List)?;
        RealStorage.list(folder)
    }
    fn lock(&self, path: &Path, holder: &str) -> io::Result<Locked> {
        RealStorage.lock(path, holder)
    }
    fn create_temp(
        &self,
        folder: &Path,
        prefix: &OsString,
        suffix: &str,
        mode: u32,
    ) -> io::Result<Box<dyn StorageTemp>> {
        let file = RealStorage.create_temp(folder, prefix, suffix, mode)?;
        Ok(Box::new(LackingFile { call: self.call, errno: self.errno, file }))
    }
    fn create_spill(&self, folder: &Path) -> io::Result<Box<dyn StorageFile>> {
        RealStorage.create_spill(folder)
    }
    fn open(&self, path: &Path) -> io::Result<(Box<dyn StorageFile>, u64)> {
        RealStorage.open(path)
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.meet(Call::Link)?;
        RealStorage.link(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        RealStorage.remove(path)
    }
    fn remove_unlocked(&self, path: &Path) -> io::Result<bool> {
        RealStorage.remove_unlocked(path)
    }
    fn sync_dir(&self, folder: &Path) -> io::Result<()> {
        RealStorage.sync_dir(folder)
    }
}

#[test]
fn file_systems_that_lack_calls_are_served() {
    let unknown = [libc::ENOSYS, libc::EOPNOTSUPP, libc::EPERM];
    let rows: [(Call, &[i32]); 3] =
        [(Call::Link, &[libc::EMLINK, libc::EXDEV]), (Call::SetOwner, &[libc::EINVAL]), (Call::SetMode, &[])];
    let rows = rows.into_iter().flat_map(|(call, more)| {
        unknown.into_iter().chain(more.iter().copied()).map(move |errno| (call, errno))
    });
    for (call, errno) in rows.chain([(Call::List, libc::EACCES)]) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let target = folder.path().join("t.pleach");
        build_slice(&[(1u64, 2u64)], &target, &BuildOptions::default()).expect("built");
        fs::set_permissions(&target, fs::Permissions::from_mode(0o654)).expect("set");
        let old = fs::read(&target).expect("there");
        let storage = Lacking { call, errno, met: AtomicU64::new(0) };
        let keep = (call != Call::List).then_some(1);
        let options = BuildOptions { keep, ..BuildOptions::default() };
        let what = format!("{call:?}, errno {errno}");
        let made = build_with_storage(&mut Mixed::new(500, 100), &target, &options, &Silent, &storage);
        assert_eq!(made.map(|made| (made.generation, made.kept)).expect(&what), (2, keep), "{what}");
        assert_eq!(fsck(&target, &FsckOptions::default()).expect("readable").findings, [], "{what}");
        if keep.is_some() {
            let kept = folder.path().join("t.pleach.g1");
            assert!(fs::read(&kept).expect("kept") == old, "{what}");
            assert_eq!(names(folder.path()), ["t.pleach", "t.pleach.g1"], "{what}");
        }
        assert!(storage.met.into_inner() > 0 || !matches!(call, Call::Link | Call::List), "{what}");
        let mode = fs::metadata(&target).expect("there").mode() & 0o7777;
        // Whoever is in another group now may do no more than both could.
        let wanted = match call {
            Call::SetOwner => 0o644,
            Call::SetMode => 0o600,
            Call::Link | Call::List => 0o654,
        };
        assert_eq!(mode, wanted, "{what}");
    }
}

#[test]
fn only_one_of_many_builders_gets_the_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let target = folder.path().join("t.pleach");
    // All start together; each that gets "busy" also gets the holder.
    let start = std::sync::Barrier::new(4);
    let results: Vec<Result<Summary, BuildError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u64)
            .map(|number| {
                let (start, target) = (&start, &target);
                scope.spawn(move || {
                    start.wait();
                    let options =
                        BuildOptions { generation: number + 1, threads: 1, ..BuildOptions::default() };
                    build(&mut Mixed::new(200_000, 1000), target, &options, &Silent)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(results.iter().any(Result::is_ok), "{results:?}");
    for result in &results {
        if let Err(error) = result {
            let BuildError::Busy { path, holder } = error else { panic!("{error}") };
            assert_eq!(*path, target);
            assert!(holder.contains(&format!("process {}", std::process::id())), "{holder}");
        }
    }
    assert_eq!(fsck(&target, &FsckOptions::default()).expect("readable").verdict, Verdict::Clean);
    assert_eq!(names(folder.path()), ["t.pleach"]);
}

/// Names the folder for a child process; see [`in_child`].
const CHILD_FOLDER: &str = "PLEACH_TEST_CHILD_FOLDER";
/// Names what the child does.
const CHILD_TASK: &str = "PLEACH_TEST_CHILD_TASK";
/// Text that a child prints if it could not set the scene.
const IMPOSSIBLE: &str = "cannot be done here";

/// Runs `task` of [`child`] in a process of its own. `through` is a command that sets the scene and
/// then runs the command that follows in its arguments.
fn in_child(task: &str, folder: &Path, through: &[&str]) -> Output {
    let this = std::env::current_exe().expect("this test");
    let mut command = match through {
        [] => Command::new(&this),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(&this);
            command
        }
    };
    command.args(["--exact", "child", "--nocapture"]).env(CHILD_FOLDER, folder).env(CHILD_TASK, task);
    command.output().unwrap_or_else(|error| Output {
        status: Default::default(),
        stdout: Vec::new(),
        stderr: error.to_string().into_bytes(),
    })
}

/// Returns true if a child did its task; prints a note if the scene could not be set for it.
fn did(task: &str, output: &Output) -> bool {
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !text.contains("running 1 test") || text.contains(IMPOSSIBLE) {
        // Past the harness, which keeps what passing tests print.
        let _ = writeln!(io::stderr(), "SKIPPED {task}: {IMPOSSIBLE}: {}", errors.trim());
        return false;
    }
    assert!(output.status.success() && text.contains("as expected"), "{task}: {output:?}\n{text}\n{errors}");
    true
}

/// Does nothing unless [`in_child`] started it.
#[test]
fn child() {
    let (Ok(folder), Ok(task)) = (std::env::var(CHILD_FOLDER), std::env::var(CHILD_TASK)) else { return };
    match task.as_str() {
        "full-disk" => full_disk(Path::new(&folder)),
        "no-permission" => no_permission(Path::new(&folder)),
        "shared" => shared(Path::new(&folder)),
        "others" => others(Path::new(&folder)),
        _ => panic!("unknown task {task}"),
    }
    println!("as expected");
}

/// A build that fits succeeds; one that does not leaves only the old file.
fn full_disk(folder: &Path) {
    let target = folder.join("t.pleach");
    let options = BuildOptions { threads: 2, ..BuildOptions::default() };
    build_slice(&[(1u64, 2u64)], &target, &options).expect("fits");
    let old = fs::read(&target).expect("there");
    for memory_bytes in [1, 1 << 30] {
        for sorted in [true, false] {
            let options = BuildOptions { memory_bytes, ..options.clone() };
            let tuples = (0..100_000u64).map(|i| (if sorted { i } else { mix(i) }, i));
            let error = build_iter(tuples, &target, &options).expect_err("1.6 MB do not fit");
            let BuildError::Io { source, .. } = &error else { panic!("{error}") };
            let full = matches!(source.raw_os_error(), Some(libc::ENOSPC | libc::EFBIG));
            assert!(full && !error.to_string().contains('\n'), "{error}");
            assert!(fs::read(&target).expect("there") == old);
            assert_eq!(names(folder), ["t.pleach"]);
        }
    }
    build_iter((0..1000u64).map(|i| (mix(i), i)), &target, &options).expect("fits");
    assert_eq!(fsck(&target, &FsckOptions::default()).expect("readable").verdict, Verdict::Clean);
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let name = folder.path().to_str().expect("a plain name");
    // A disk of 1 MiB, mounted for one process alone.
    let mount = r#"mount -t tmpfs -o size=1m tmpfs "$0" && exec "$@""#;
    let mounted = in_child("full-disk", folder.path(), &["unshare", "--mount", "sh", "-c", mount, name]);
    let mounted = did("a full disk", &mounted);
    assert!(!mounted || names(folder.path()).is_empty(), "the child's disk is its own");
    // No file may grow beyond 1024 blocks (of 512 or 1024 bytes, as the shell likes).
    let limit = r#"trap "" XFSZ; ulimit -f 1024 && exec "$0" "$@""#;
    let limited = did("a limited size", &in_child("full-disk", folder.path(), &["sh", "-c", limit]));
    assert!(mounted || limited, "no way to fill a disk");
}

/// Runs as a user who may not write here.
fn no_permission(folder: &Path) {
    if let Err(error) = fs::read_dir(folder) {
        println!("{IMPOSSIBLE}");
        eprintln!("this user cannot reach {}: {error}", folder.display());
        return;
    }
    if File::create(folder.join("probe")).is_ok() {
        println!("{IMPOSSIBLE}");
        eprintln!("this user may write everywhere");
        return;
    }
    for target in ["t.pleach", "new.pleach", "open/no/t.pleach"] {
        let error = build_slice(&[(3u64, 4u64)], &folder.join(target), &BuildOptions::default())
            .expect_err("refused");
        let BuildError::Io { source, .. } = &error else { panic!("{error}") };
        let refused = matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound);
        assert!(refused && !error.to_string().contains('\n'), "{error}");
    }
    // A folder for spills in which nothing can be made: only a build that spills needs it.
    let open = folder.join("open");
    let target = open.join("t.pleach");
    let options =
        BuildOptions { temp_dir: Some(folder.to_owned()), memory_bytes: 1, ..BuildOptions::default() };
    let error = build_iter((0..20_000u64).map(|i| (mix(i), i)), &target, &options).expect_err("cannot spill");
    assert!(matches!(error, BuildError::Io { .. }), "{error}");
    assert_eq!(names(&open), Vec::<String>::new());
    // A file that may be read can be searched without any right to write.
    let index = pleach::Index::open(folder.join("t.pleach")).expect("opens");
    assert_eq!(index.typed::<u64, u64>().expect("types of the file").get(1), Ok(Some(2)));
}

#[test]
fn a_folder_without_permission_is_left_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(folder.path().join("open")).expect("a folder");
    build_slice(&[(1u64, 2u64)], &folder.path().join("t.pleach"), &BuildOptions::default()).expect("built");
    let old = fs::read(folder.path().join("t.pleach")).expect("there");
    fs::set_permissions(folder.path().join("open"), fs::Permissions::from_mode(0o777)).expect("set");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).expect("set");
    let root = fs::metadata("/proc/self").expect("this process").uid() == 0;
    let nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let output = in_child("no-permission", folder.path(), if root { &nobody } else { &[] });
    did("no permission", &output);
    assert_eq!(names(folder.path()), ["open", "t.pleach"]);
    assert!(fs::read(folder.path().join("t.pleach")).expect("there") == old);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("set");
}

/// Leaves obstacles for others: a temporary file and a lock file that no other user may open, one that others may
/// read, and an index.
fn shared(folder: &Path) {
    if File::create(folder.join("probe")).is_err() {
        println!("{IMPOSSIBLE}");
        return;
    }
    fs::remove_file(folder.join("probe")).expect("removed");
    let options = BuildOptions::default();
    for name in ["t.pleach", "closed.pleach", "read.pleach"] {
        build_slice(&[(1u64, 2u64)], &folder.join(name), &options).expect("built");
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o644)).expect("set");
    }
    for (name, mode) in [
        (".t.pleach.Ab3xyz.pleach-tmp", 0o600),
        (".closed.pleach.pleach-lock", 0o600),
        (".read.pleach.pleach-lock", 0o644),
    ] {
        fs::write(folder.join(name), b"").expect("written");
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).expect("set");
    }
}

/// Builds beside what another user has left.
fn others(folder: &Path) {
    let options = BuildOptions::default();
    if let Err(error) = fs::read_dir(folder) {
        println!("{IMPOSSIBLE}");
        eprintln!("{error}");
        return;
    }
    // With another name, the strays of others are not an obstacle.
    build_slice(&[(1u64, 2u64)], &folder.join("new.pleach"), &options).expect("built");
    assert_eq!(strays(&folder.join("t.pleach")).expect("listed"), Vec::<PathBuf>::new());
    // A stray that is not ours stays, and the index may be replaced where the folder lets us.
    let sticky = fs::metadata(folder).expect("there").mode() & 0o1000 != 0;
    let replaced = build_slice(&[(1u64, 3u64)], &folder.join("t.pleach"), &options);
    assert_eq!(replaced.is_ok(), !sticky, "{replaced:?}");
    assert!(folder.join(".t.pleach.Ab3xyz.pleach-tmp").exists());
    // A readable lock is not an obstacle either; an unreadable one is reported, with its owner.
    let replaced = build_slice(&[(1u64, 3u64)], &folder.join("read.pleach"), &options);
    assert_eq!(replaced.is_ok(), !sticky, "{replaced:?}");
    let error = build_slice(&[(1u64, 3u64)], &folder.join("closed.pleach"), &options).expect_err("closed");
    assert!(matches!(error, BuildError::LockClosed { .. }), "{error}");
    let text = error.to_string();
    let owner = fs::metadata(folder.join("closed.pleach")).expect("there").uid();
    assert!(text.contains(".closed.pleach.pleach-lock") && text.contains(&format!("user {owner}")), "{text}");
}

#[test]
fn what_another_user_left_is_no_obstacle() {
    if fs::metadata("/proc/self").expect("this process").uid() != 0 {
        let _ = writeln!(io::stderr(), "SKIPPED shared folders: {IMPOSSIBLE}: this needs to be root");
        return;
    }
    for mode in [0o777, 0o1777] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).expect("set");
        let of = |user: &'static str| ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"];
        if did("a shared folder", &in_child("shared", folder.path(), &of("65533"))) {
            did("what another user left", &in_child("others", folder.path(), &of("65534")));
            let left: Vec<String> =
                names(folder.path()).into_iter().filter(|name| name.contains("pleach-tmp")).collect();
            assert_eq!(left, [".t.pleach.Ab3xyz.pleach-tmp"], "{mode:o}");
            // Root sweeps it, and its builds do not take files away from their users.
            let target = folder.path().join("t.pleach");
            let before = fs::metadata(&target).expect("there");
            fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).expect("set");
            build_slice(&[(1u64, 4u64)], &target, &BuildOptions { keep: Some(1), ..BuildOptions::default() })
                .expect("built");
            let after = fs::metadata(&target).expect("there");
            assert_eq!(
                (after.uid(), after.gid(), after.mode() & 0o7777),
                (before.uid(), before.gid(), 0o600)
            );
            assert!(before.uid() >= 65533 && !folder.path().join(".t.pleach.Ab3xyz.pleach-tmp").exists());
        }
    }
}

#[test]
fn targets_that_are_no_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    let options = BuildOptions::default();
    let one = [(1u64, 2u64)];
    fs::create_dir(at("folder")).expect("a folder");
    let refused = build_slice(&one, &at("folder"), &options);
    assert!(matches!(refused, Err(BuildError::TargetIsDirectory { .. })), "{refused:?}");
    let refused = build_slice(&one, &at("gone/t.pleach"), &options);
    assert!(
        matches!(&refused, Err(BuildError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound),
        "{refused:?}"
    );
    let refused = build_slice(&one, Path::new("/dev/null"), &options);
    assert!(matches!(refused, Err(BuildError::TargetNotRegular { .. })), "{refused:?}");
    fs::write(at("file"), b"").expect("written");
    assert!(build_slice(&one, &at("file/t.pleach"), &options).is_err());
    assert!(!at("gone").exists());
    assert_eq!(names(folder.path()), ["file", "folder"]);
    assert_eq!(names(&at("folder")), Vec::<String>::new());
}

#[test]
fn links_are_followed_and_modes_kept() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("deep")).expect("a folder");
    build_slice(&[(1u64, 1u64)], &at("deep/real"), &BuildOptions::default()).expect("built");
    fs::set_permissions(at("deep/real"), fs::Permissions::from_mode(0o640)).expect("set");
    symlink("deep/real", at("link")).expect("linked");
    // A reader has the old file open all the while.
    let reader = pleach::Index::open(at("link")).expect("opens");
    let before = fs::metadata(at("deep/real")).expect("there").ino();
    build_slice(&[(1u64, 7u64)], &at("link"), &BuildOptions { generation: 2, ..BuildOptions::default() })
        .expect("built");
    assert!(fs::symlink_metadata(at("link")).expect("there").is_symlink());
    let metadata = fs::metadata(at("deep/real")).expect("there");
    assert_eq!(metadata.mode() & 0o7777, 0o640);
    assert_ne!(metadata.ino(), before, "a new file, not the old one overwritten");
    assert_eq!(reader.typed::<u64, u64>().expect("types of the file").get(1), Ok(Some(1)), "generation 1");
    let reader = pleach::Index::open(at("link")).expect("opens");
    assert_eq!(reader.typed::<u64, u64>().expect("types of the file").get(1), Ok(Some(7)), "generation 2");
    assert_eq!(
        (names(folder.path()), names(&at("deep"))),
        (vec!["deep".into(), "link".into()], vec!["real".into()])
    );
}

#[test]
fn readers_see_one_generation_or_the_next() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let target = folder.path().join("t.pleach");
    let publish = |generation: u64| {
        let options = BuildOptions { generation, threads: 1, ..BuildOptions::default() };
        build_iter((0..500u64).map(|key| (key, key * generation)), &target, &options).expect("built");
    };
    publish(1);
    let stop = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut last = 0;
                    while stop.load(Ordering::Acquire) == 0 {
                        let index = pleach::Index::open(&target).expect("always there");
                        let generation = index.generation();
                        assert!(generation >= last, "{generation} after {last}");
                        last = generation;
                        let view = index.typed::<u64, u64>().expect("types of the file");
                        for key in [1, 255, 499] {
                            assert_eq!(view.get(key), Ok(Some(key * generation)));
                        }
                    }
                    last
                })
            })
            .collect();
        (2..=100).for_each(publish);
        stop.store(1, Ordering::Release);
        for reader in readers {
            assert!(reader.join().expect("no panic") >= 1);
        }
    });
    assert_eq!(names(folder.path()), ["t.pleach"]);
}
