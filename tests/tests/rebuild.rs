//! Generations: readers that go on reading, rebuilds that are killed, faults at every system operation.

use pleach::{FsckOptions, Index, Live, OpenError, Verdict, fsck};
use pleach_builder::rebuild::{Method, RebuildOptions, Rebuilt, rebuild, rebuild_with_storage};
use pleach_builder::source::{Schema, Source};
use pleach_builder::{
    BuildError, BuildOptions, Chunk, ChunkSource, Column, Op, Silent, build_slice, build_strings,
    publish::strays,
};
use pleach_format::{KeyType, ValueType};
use pleach_tests::fault::Fault;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// Tuples of the tables: several pieces of work for each thread.
const TUPLES: u64 = 60_000;

/// In memory if possible: hundreds of files are synced.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

fn changes(changes: impl Iterator<Item = (Op, u64, u64)>) -> Box<dyn Source> {
    let mut chunk = Chunk::new(KeyType::U64, ValueType::U64);
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    for (op, key, value) in changes {
        chunk.ops.push(op);
        keys.push(key);
        values.push(value);
    }
    chunk.keys = Column::U64(keys);
    chunk.values = Column::U64(values);
    Box::new(ChunkSource::new(Schema::plain(KeyType::U64, ValueType::U64, None), vec![chunk]))
}

fn apply(target: &Path, batch: Box<dyn Source>, options: &RebuildOptions) -> Result<Rebuilt, BuildError> {
    rebuild(target, Box::new(move |_: &Schema| Ok(batch)), options, &Silent)
}

/// All keys 0, 2, 4, ... have the generation's number as value; key 1 is there in odd generations alone.
fn generation(target: &Path, number: u64, method: Method) -> Rebuilt {
    let puts = (0..TUPLES).map(move |i| (Op::Put, 2 * i, number));
    let op = if number % 2 == 1 { Op::Put } else { Op::Del };
    let extra = (method == Method::Merge).then_some((op, 1, number));
    let options = RebuildOptions { method: Method::Auto, ..RebuildOptions::default() };
    apply(target, changes(puts.chain(extra)), &options).expect("a rebuild")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect();
    names.sort();
    names
}

fn is_clean(path: &Path) -> bool {
    fsck(path, &FsckOptions::default()).is_ok_and(|report| report.verdict == Verdict::Clean)
}

/// CPU time of this thread.
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to a struct of ours.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn readers_go_on_reading() {
    let folder = scratch();
    let target = folder.path().join("t.pleach");
    let tuples: Vec<(u64, u64)> = (0..TUPLES).map(|i| (2 * i, 1)).collect();
    build_slice(&tuples, &target, &BuildOptions::default()).expect("a build");
    let live = Live::<Index>::open(&target).expect("opens");
    let (done, lookups, slowest) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let (live, done, lookups, slowest) = (&live, &done, &lookups, &slowest);
            scope.spawn(move || {
                let mut random = 0x1234_5678 + thread;
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let index = live.current();
                    let number = index.generation();
                    assert!(number >= last, "generations only go on");
                    last = number;
                    let view = index.typed::<u64, u64>().expect("its types");
                    for _ in 0..200 {
                        random = u64::wrapping_mul(random ^ (random >> 7), 0x9E37_79B9_7F4A_7C15);
                        let key = random % (2 * TUPLES);
                        let start = thread_time();
                        let value = view.get(key).expect("a look-up");
                        let took = thread_time() - start;
                        slowest.fetch_max(took.as_nanos() as u64, Ordering::Relaxed);
                        // Of the last generation that was merged.
                        let merged = number / 3 * 3;
                        let wanted = match key {
                            1 => (merged % 2 == 1).then_some(merged),
                            key => key.is_multiple_of(2).then_some(number),
                        };
                        assert_eq!(value, wanted, "generation {number}, key {key}");
                        lookups.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        for number in 2..=101 {
            let method = if number % 3 == 0 { Method::Merge } else { Method::Patch };
            assert_eq!(generation(&target, number, method).summary.generation, number);
            assert!(live.refresh().expect("the next generation"));
            assert!(!live.refresh().expect("no other"));
            assert_eq!(live.current().generation(), number);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(is_clean(&target));
    let (lookups, slowest) = (lookups.into_inner(), slowest.into_inner());
    println!("{lookups} look-ups during 100 rebuilds, the slowest {slowest} ns of CPU time");
    assert!(lookups > 10_000);
    // Optimised code alone is held to it: a debug build verifies nothing about speed.
    assert!(cfg!(debug_assertions) || slowest < 1_000_000, "{slowest} ns");
}

#[test]
fn a_file_of_another_type_is_refused_and_the_old_one_stays() {
    let folder = scratch();
    let target = folder.path().join("t.pleach");
    build_slice(&[(1u64, 10u64)], &target, &BuildOptions::default()).expect("a build");
    let live = Live::open(&target).expect("opens");
    let mut index = Index::open(&target).expect("opens");
    assert!(!index.refresh().expect("no other"));
    build_strings(KeyType::Utf8, &[("a", 1u64)], &target, &BuildOptions::default()).expect("a build");
    assert!(matches!(live.refresh(), Err(OpenError::Types { .. })));
    let text = index.refresh().expect_err("another type").to_string();
    assert!(text.contains("utf8 to u64") && text.contains("u64 to u64"), "{text}");
    for index in [&*live.current(), &index] {
        assert_eq!(index.typed::<u64, u64>().unwrap().get(1).unwrap(), Some(10));
    }
    std::fs::write(&target, b"no such file").expect("written");
    assert!(index.refresh().is_err() && live.refresh().is_err());
    std::fs::remove_file(&target).expect("removed");
    assert!(index.refresh().is_err());
    build_slice(&[(1u64, 11u64)], &target, &BuildOptions::default()).expect("a build");
    assert!(index.refresh().expect("a new file"));
    assert_eq!(index.typed::<u64, u64>().unwrap().get(1).unwrap(), Some(11));
    let mut bytes = Index::from_bytes(std::fs::read(&target).unwrap()).unwrap();
    assert!(!bytes.refresh().expect("nothing to follow"));
}

/// Names the file for a child process.
const CHILD_TARGET: &str = "PLEACH_TEST_REBUILD_TARGET";

/// Not a test of its own: what the child of [`killed_rebuilds`] does, until it is killed.
#[test]
fn child() {
    let Ok(target) = std::env::var(CHILD_TARGET) else { return };
    let target = PathBuf::from(target);
    loop {
        let next = Index::open(&target).expect("opens").generation() + 1;
        generation(&target, next, if next.is_multiple_of(2) { Method::Merge } else { Method::Patch });
    }
}

#[test]
fn killed_rebuilds_leave_a_whole_generation() {
    let kills = std::env::var("PLEACH_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let folder = scratch();
    let target = folder.path().join("t.pleach");
    let tuples: Vec<(u64, u64)> = (0..TUPLES).map(|i| (2 * i, 1)).collect();
    build_slice(&tuples, &target, &BuildOptions::default()).expect("a build");
    // Moments of the first two rebuilds of a child, however long they take here.
    let start = Instant::now();
    generation(&target, 2, Method::Merge);
    let moments = 20_000 + 2 * start.elapsed().as_micros() as u64;
    let (mut random, mut left, mut moved) = (0x5DEE_CE66u64, 0, 0);
    let mut before = 2;
    for kill in 0..kills {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "child", "--nocapture"])
            .env(CHILD_TARGET, &target)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a process");
        random = random.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (random >> 29);
        std::thread::sleep(Duration::from_micros(2_000 + random % moments));
        child.kill().expect("killed");
        child.wait().expect("gone");
        assert!(is_clean(&target), "kill {kill}");
        let index = Index::open(&target).expect("opens");
        let number = index.generation();
        assert!(number >= before);
        moved += u64::from(number > before);
        before = number;
        let view = index.typed::<u64, u64>().unwrap();
        for i in (0..TUPLES).step_by(997) {
            assert_eq!(view.get(2 * i).unwrap(), Some(number), "kill {kill}");
        }
        left += strays(&target).expect("listed").len();
        if kill % 20 == 0 {
            // The next run sweeps what was left.
            generation(&target, number + 1, Method::Merge);
            before = number + 1;
            assert_eq!(names(folder.path()), ["t.pleach"]);
        }
    }
    generation(&target, before + 1, Method::Merge);
    assert_eq!(names(folder.path()), ["t.pleach"]);
    println!("{kills} kills: {moved} met a new generation, {left} strays");
    assert!(left > 0 && moved > 0, "kills came while a rebuild was under way");
}

#[test]
fn two_rebuilds_at_once() {
    let folder = scratch();
    let target = folder.path().join("t.pleach");
    build_slice(&[(1u64, 1u64)], &target, &BuildOptions::default()).expect("a build");
    let (inside, outside) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    std::thread::scope(|scope| {
        let (target, wait) = (&target, (Arc::clone(&inside), Arc::clone(&outside)));
        let first = scope.spawn(move || {
            let open = move |_: &Schema| {
                wait.0.wait();
                wait.1.wait();
                Ok(changes([(Op::Put, 1, 2)].into_iter()))
            };
            // In a pool of its own: the common one has one thread where there is one core, and the other needs it.
            let options = RebuildOptions { threads: 1, ..RebuildOptions::default() };
            rebuild(target, Box::new(open), &options, &Silent)
        });
        inside.wait();
        let error = apply(target, changes([].into_iter()), &RebuildOptions::default()).expect_err("busy");
        assert!(matches!(error, BuildError::Busy { .. }), "{error}");
        outside.wait();
        assert_eq!(first.join().expect("no panic").expect("a rebuild").summary.generation, 2);
    });
}

#[test]
fn every_operation_of_a_rebuild_fails() {
    let start = Instant::now();
    for (extra, forever) in [(false, false), (true, false), (true, true)] {
        let folder = scratch();
        let target = folder.path().join("t.pleach");
        let tuples: Vec<(u64, u64)> = (0..2000).map(|i| (2 * i, 1)).collect();
        build_slice(&tuples, &target, &BuildOptions::default()).expect("a build");
        let old = std::fs::read(&target).expect("there");
        for at in 0.. {
            std::fs::write(&target, &old).expect("written");
            let batch = changes([(Op::Put, 8, 5)].into_iter().chain(extra.then_some((Op::Add, 9, 9))));
            let fault = Fault { at, forever, errno: libc::ENOSPC, count: Arc::default() };
            let options = RebuildOptions { keep: Some(1), threads: 2, ..RebuildOptions::default() };
            let open = Box::new(move |_: &Schema| Ok(batch));
            let result = rebuild_with_storage(&target, open, &options, &Silent, &fault);
            let what = format!("operation {at}, forever {forever}: {result:?}");
            let kept = target.with_extension("pleach.g1");
            assert!(is_clean(&target), "{what}");
            assert!(!kept.exists() || std::fs::read(&kept).expect("there") == old, "{what}");
            let is_kept = std::fs::remove_file(&kept).is_ok();
            assert_eq!(names(folder.path()), ["t.pleach"], "{what}");
            let now = std::fs::read(&target).expect("there");
            match result {
                // Old generations could not be looked through.
                Ok(done) if done.left.is_some() => assert_eq!(done.summary.generation, 2, "{what}"),
                Ok(done) => {
                    assert_eq!((done.summary.generation, done.kept), (2, Some(1)), "{what}");
                    assert!(at > 12, "{what}");
                    break;
                }
                Err(BuildError::Io { operation, source, .. }) => {
                    assert_eq!(source.raw_os_error(), Some(libc::ENOSPC), "{what}");
                    let is_published = operation == "syncing the folder";
                    assert!(now == old || is_published, "{what}");
                    // If only one operation fails, nothing is left of the attempt.
                    assert!(forever || is_published || !is_kept, "{what}");
                }
                Err(_) => panic!("{what}"),
            }
        }
    }
    println!("{:?}", start.elapsed());
}
