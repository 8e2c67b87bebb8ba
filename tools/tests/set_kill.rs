//! Workers and committers that are killed at any moment, and in each other's way: the set is an old generation or a
//! new one, whole, and never a mixture; a sweep leaves nothing else.
//!
//! `PLEACH_KILLS=200 cargo test -p pleach-cli --test set_kill` kills more often than the 20 times of a usual run.

#![cfg(unix)]

use pleach_set::{CheckOptions, Datum, Set, check_set};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Keys of the set; each generation gives all of them one value.
const KEYS: u64 = 20_000;
const FILES: &str = "8";

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn spawn(folder: &Path, args: &[&str]) -> Child {
    let command = Command::new(env!("CARGO_BIN_EXE_pleach"))
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    command.expect("it runs")
}

/// Writes the table and the changes that give all keys a value.
fn prepare(folder: &Path, value: u64) {
    let rows: String = (0..KEYS).rev().map(|key| format!("{key},{value}\n")).collect();
    fs::write(folder.join("table.csv"), "id,v\n".to_owned() + &rows).expect("a file");
    let rows: String = (0..KEYS).map(|key| format!("put,{key},{value}\n")).collect();
    fs::write(folder.join("changes.csv"), "op,id,v\n".to_owned() + &rows).expect("a file");
}

/// Checks that the set is whole, and returns its generation and the value that all keys have.
fn whole(folder: &Path) -> (u64, u64) {
    let set = Set::open(folder.join("set")).expect("the set opens");
    assert_eq!(set.len(), KEYS);
    let mut values = BTreeSet::new();
    for (at, tuple) in set.iter().enumerate() {
        let (key, value) = tuple.expect("it is read");
        assert_eq!(key, Datum::U64(at as u64));
        let Datum::U64(value) = value else { panic!("{value:?}") };
        values.insert(value);
    }
    assert_eq!(values.len(), 1, "a mixture: {values:?}");
    let checked = check_set(&set, &CheckOptions { digests: true, ..CheckOptions::default() });
    let checked = checked.expect("it is checked");
    assert!(checked.files.iter().all(pleach_set::FileCheck::is_whole), "{:?}", checked.files);
    (set.generation(), values.into_iter().next().expect("a value"))
}

const BUILD: [&str; 9] = ["set", "build", "table.csv", "-o", "set", "--partitions", FILES, "--memory", "64M"];
const REBUILD: [&str; 5] = ["set", "rebuild", "set", "--apply", "changes.csv"];
const SWEEP: [&str; 7] = ["set", "sweep", "set", "--grace", "3600", "--keep", "1"];

#[test]
fn killed_workers_and_committers_leave_a_whole_set() {
    let kills = std::env::var("PLEACH_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20u64);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut random = Random(kills);
    prepare(folder, 0);
    let started = Instant::now();
    assert!(spawn(folder, &BUILD).wait().expect("it ends").success());
    let took = started.elapsed().as_millis() as u64 + 20;
    let (mut generation, mut value) = whole(folder);
    let mut published = 0;
    for kill in 1..=kills {
        prepare(folder, kill);
        // One to three at a time, of which some are killed.
        let mut running: Vec<Child> = (0..1 + random.below(3))
            .map(|_| {
                let args: &[&str] = match random.below(5) {
                    0 | 1 => &REBUILD,
                    4 => &SWEEP,
                    _ => &BUILD,
                };
                spawn(folder, args)
            })
            .collect();
        sleep(Duration::from_millis(random.below(took * 5 / 4)));
        running[0].kill().expect("it is killed");
        for child in &mut running {
            let _ = child.wait().expect("it ends");
        }
        let (now, held) = whole(folder);
        assert!(now >= generation, "generation {now} after {generation}");
        assert!(held == kill || (now == generation && held == value), "kill {kill}: {held} after {value}");
        published += u64::from(now > generation);
        (generation, value) = (now, held);
    }
    assert!(kills < 20 || (published > 0 && published < 3 * kills), "{published} of {kills}");
    // What was left is swept, and only that.
    let sweep = ["set", "sweep", "set", "--grace", "0", "--keep", "1"];
    assert!(spawn(folder, &sweep).wait().expect("it ends").success());
    assert_eq!(whole(folder), (generation, value));
    let set = Set::open(folder.join("set")).expect("the set opens");
    let named: BTreeSet<String> = set.manifest().entries().map(|entry| entry.name).collect();
    let names = |part: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(folder.join("set").join(part)).expect("a folder");
        entries.map(|entry| format!("{part}/{}", entry.expect("an entry").file_name().display())).collect()
    };
    assert_eq!(names("files"), named);
    assert_eq!(names("manifests").len(), 1);
}

/// Readers of a set that is rebuilt and swept meanwhile see whole generations.
#[test]
fn readers_are_not_disturbed() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    prepare(folder, 0);
    assert!(spawn(folder, &BUILD).wait().expect("it ends").success());
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for value in 1..6 {
                prepare(folder, value);
                assert!(spawn(folder, &REBUILD).wait().expect("it ends").success());
                assert!(spawn(folder, &SWEEP).wait().expect("it ends").success());
            }
        });
        let mut last = 0;
        while !writer.is_finished() {
            let (generation, _) = whole(folder);
            assert!(generation >= last);
            last = generation;
        }
        writer.join().expect("no panic");
    });
    assert_eq!(whole(folder).1, 5);
}
