//! Builds that are killed, stopped, or in each other's way: the old file or the new one, both whole,
//! and the next build leaves no litter.
//!
//! `PLEACH_KILLS=200 cargo test -p pleach-cli --test kill` kills more often than the 20 times of a
//! usual run.

#![cfg(unix)]

use pleach::{FsckOptions, fsck};
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Tuples of the new file: enough that a build takes a while, and spills.
const TUPLES: u64 = 400_000;

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 31).wrapping_mul(0x7FB5_D329_728E_A185);
    let x = (x ^ x >> 27).wrapping_mul(0x81DA_DEF4_BC2D_D44D);
    x ^ x >> 33
}

fn raw(tuples: u64, value: u64) -> Vec<u8> {
    (0..tuples).flat_map(|i| [mix(i).to_le_bytes(), (i + value).to_le_bytes()]).flatten().collect()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    names
}

/// Returns the bytes of a file without those that identify generation and index.
fn plain(path: &Path) -> Vec<u8> {
    let mut bytes = fs::read(path).expect("always there");
    let end = bytes.len() - 4096;
    for start in [0, end] {
        for part in [64..72, 296..312, 4092..4096] {
            bytes[start..][part].fill(0);
        }
    }
    bytes
}

/// A folder with two inputs, and the files that they become.
struct Place {
    folder: tempfile::TempDir,
    old: Vec<u8>,
    new: Vec<u8>,
    /// Measures a build of the new file.
    took: Duration,
}

const INPUTS: [&str; 2] = ["new.raw", "old.raw"];

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("old.raw"), raw(5000, 7)).expect("written");
        fs::write(folder.path().join("new.raw"), raw(TUPLES, 0)).expect("written");
        let mut place = Self { folder, old: Vec::new(), new: Vec::new(), took: Duration::ZERO };
        place.build("new.raw").wait().expect("a run");
        place.new = plain(&place.target());
        let start = Instant::now();
        place.build("new.raw").wait().expect("a run");
        place.took = start.elapsed();
        place.build("old.raw").wait().expect("a run");
        place.old = plain(&place.target());
        assert!(place.old != place.new);
        place
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("t.pleach")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
        command
            .current_dir(self.folder.path())
            .args(["build", "-o", "t.pleach", "--raw", "u64,u64", "--quiet"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    fn build(&self, input: &str) -> Child {
        // Little memory: runs are spilled and merged.
        self.command().args(["--memory", "1MiB", input]).spawn().expect("a build")
    }

    /// The file is the old one or the new one, and whole. Whether it is the new one.
    fn check(&self, what: &str) -> bool {
        let now = plain(&self.target());
        assert!(now == self.old || now == self.new, "{what}: neither the old file nor the new one");
        let report = fsck(self.target(), &FsckOptions::default()).expect("readable");
        assert_eq!(report.findings, [], "{what}");
        now == self.new
    }

    fn put_old(&self) {
        let status = self.build("old.raw").wait().expect("a run");
        assert!(status.success(), "{status}");
        let mut wanted: Vec<String> = INPUTS.map(str::to_owned).to_vec();
        wanted.push("t.pleach".to_owned());
        assert_eq!(names(self.folder.path()), wanted, "the next build leaves no litter");
        assert!(!self.check("put back"));
    }

    /// A moment in a build, or shortly after its end: the n-th of many.
    fn moment(&self, number: u64) -> Duration {
        self.took.mul_f64((mix(number + 1) % 1100) as f64 / 1000.0)
    }
}

/// Sends a signal by its name. The child was not waited for, so its id is still its own.
fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.expect("kill").success());
}

#[test]
fn killed_builds_leave_the_old_file_or_the_new_one() {
    let kills =
        std::env::var("PLEACH_KILLS").ok().map_or(20, |kills| kills.parse::<u64>().expect("a number"));
    let place = Place::new();
    let (mut killed, mut new, mut littered) = (0, 0, 0);
    for number in 0..kills {
        let mut child = place.build("new.raw");
        std::thread::sleep(place.moment(number));
        // It may have ended on its own: then there is no process to kill, and the file is the new one.
        let _ = child.kill();
        let status = child.wait().expect("a status");
        killed += u64::from(status.signal() == Some(libc::SIGKILL));
        let is_new = place.check(&format!("kill {number}, {status}"));
        assert!(is_new || !status.success());
        new += u64::from(is_new);
        littered += u64::from(names(place.folder.path()).len() > 3);
        place.put_old();
    }
    eprintln!(
        "{kills} builds: {killed} killed, {new} times the new file, {littered} times litter that the next build swept"
    );
    assert!(killed > 0 && littered > 0, "no build was caught at work");
}

#[test]
fn interrupted_builds_leave_nothing() {
    let place = Place::new();
    let mut interrupted = 0;
    for number in 0..12 {
        let (name, which) = if number % 2 == 0 { ("INT", libc::SIGINT) } else { ("TERM", libc::SIGTERM) };
        let mut child = place.build("new.raw");
        std::thread::sleep(place.moment(number + 1000));
        if child.try_wait().expect("a status").is_none() {
            signal(&child, name);
        }
        let output = child.wait_with_output().expect("a status");
        let (status, said) = (output.status, String::from_utf8_lossy(&output.stderr).into_owned());
        let is_new = place.check(&format!("signal {name}, {status}"));
        // Before the handler is there the signal ends the process by itself; nothing is begun yet.
        match status.code() {
            Some(0) => assert!(is_new),
            Some(130) => interrupted += 1,
            code => assert_eq!((code, status.signal()), (None, Some(which)), "{status}"),
        }
        // The disk may take longer over the folder than an interruption waits.
        assert_eq!(is_new, status.success() || said.contains("the new file is in place"), "{status}: {said}");
        assert_eq!(names(place.folder.path()).len(), 3, "{status}: {:?}", names(place.folder.path()));
        place.put_old();
    }
    assert!(interrupted > 0, "no build was caught at work");
}

#[test]
fn the_second_builder_is_told_who_is_first() {
    let place = Place::new();
    // The first builder waits for its input.
    let mut first = place.command();
    let mut first = first.arg("-").stdin(Stdio::piped()).spawn().expect("a build");
    let lock = place.folder.path().join(".t.pleach.pleach-lock");
    let deadline = Instant::now() + Duration::from_secs(60);
    let holder = format!("process {} ", first.id());
    while !fs::read_to_string(&lock).is_ok_and(|text| text.contains(&holder)) {
        assert!(Instant::now() < deadline, "the first builder takes no lock");
        assert!(first.try_wait().expect("a status").is_none(), "the first builder has ended");
        std::thread::sleep(Duration::from_millis(2));
    }
    let second = place.build("new.raw").wait_with_output().expect("a run");
    let text = String::from_utf8(second.stderr).expect("text");
    assert_eq!(second.status.code(), Some(8), "{text}");
    assert!(text.starts_with("error: busy: t.pleach: ") && text.contains(&holder), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(!place.check("while another builds"));
    // It is not disturbed, and ends well.
    let mut input = first.stdin.take().expect("a pipe");
    input.write_all(&fs::read(place.folder.path().join("new.raw")).expect("there")).expect("taken");
    drop(input);
    let status = first.wait().expect("a status");
    assert!(status.success() && place.check("after the first"), "{status}");
    place.put_old();
}
