//! Ctrl-C and SIGTERM, whatever a command waits for: exit code 130 soon, one line, no files left.
//! Commands block in every possible way: they open a pipe without a writer, read a silent one, or wait for
//! standard input or for the reader of their output. Only the signal ends such a wait here.

#![cfg(target_os = "linux")]

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// An answer that takes longer was none to the signal.
const SOON: Duration = Duration::from_secs(5);

/// Kind of the files that a command is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// `never` is a pipe that no process opens for writing.
    Open,
    /// `never` is a pipe that is open and silent.
    Read,
    /// Standard input is a silent pipe.
    Input,
    /// Nobody reads standard output.
    Output,
}

/// All commands that read, by what they read from a pipe. `FILE` is an index, `never` is the pipe.
const READ_TABLES: [&str; 13] = [
    "advise never --format csv",
    "build never --format csv -o o.pleach --dry-run",
    "build never --format csv -o o.pleach",
    "build t.csv never --format csv -o o.pleach",
    "build never t.csv --format csv -o t.pleach",
    "build never --format parquet -o o.pleach",
    "build never --format arrow -o o.pleach",
    "build never --raw u64,u64 -o o.pleach",
    "rebuild t.pleach --apply never --format csv",
    "rebuild t.pleach --apply never --format csv --keep 2",
    "join t.pleach never --input-format csv -o o.csv",
    "union t.csv never --input-format csv",
    "diff t.pleach never --input-format csv",
];
const READ_KEYS: [&str; 2] = ["get t.pleach --keys never", "get t.pleach --keys never --json"];
const READ_INDEXES: [&str; 15] = [
    "get never 1",
    "range never .. ..",
    "inspect never",
    "fsck never",
    "export never -o o.csv",
    "compact t.pleach never -o o.pleach",
    "select never --where true -o o.pleach",
    "project never --columns key,value -o o.csv",
    "reduce never --op sum",
    "union t.pleach never -o o.pleach",
    "intersect never t.pleach",
    "difference t.pleach never -o o.parquet",
    "join t.pleach never -o o.csv",
    "product t.pleach never",
    "fsck never --salvage o.pleach",
];
const READ_INPUT: [&str; 8] = [
    "advise - --format csv",
    "build - --format csv -o o.pleach",
    "build t.csv - --format csv -o o.pleach",
    "build /dev/fd/0 --format csv -o t.pleach",
    "rebuild t.pleach --apply - --format csv",
    "reduce - --input-format csv --op sum",
    "get t.pleach --keys -",
    "get t.pleach --keys /dev/fd/0",
];
const PRINT: [&str; 7] = [
    "get t.pleach --keys keys",
    "range t.pleach .. ..",
    "export t.pleach -o - --format csv",
    "select t.pleach --where true",
    "join t.pleach t.pleach",
    "union t.pleach t.pleach",
    "product t.pleach t.pleach",
];

fn pleach(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
    command.args(line.split(' ')).current_dir(folder);
    command
}

/// A folder with tables, keys, and an index that prints more than a pipe holds.
fn place(folder: &Path) {
    let rows: String = (0..30_000).map(|row| format!("{row},{row}\n")).collect();
    fs::write(folder.join("t.csv"), format!("id,value\n{rows}")).expect("written");
    let keys: String = (0..30_000).map(|row| format!("{row}\n")).collect();
    fs::write(folder.join("keys"), keys).expect("written");
    let built = pleach(folder, "build t.csv -o t.pleach -q").status().expect("a run");
    assert!(built.success());
    let made = Command::new("mkfifo").arg(folder.join("never")).status().expect("mkfifo");
    assert!(made.success());
}

/// Names and, of regular files, what is in them.
fn content(folder: &Path) -> Vec<(String, Option<Vec<u8>>)> {
    let mut all: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| {
            let entry = entry.expect("an entry");
            let is_file = entry.file_type().expect("a type").is_file();
            let bytes = is_file.then(|| fs::read(entry.path()).expect("readable"));
            (entry.file_name().to_string_lossy().into_owned(), bytes)
        })
        .collect();
    all.sort();
    all
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.expect("kill").success());
}

/// Waits until the handler is there, and a moment longer: what comes after it is what is interrupted.
fn wait_for_handler(child: &mut Child) {
    let status = format!("/proc/{}/status", child.id());
    let since = Instant::now();
    loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        if caught >> (libc::SIGINT - 1) & 1 == 1 {
            break;
        }
        assert!(child.try_wait().expect("a status").is_none(), "it has ended");
        assert!(since.elapsed() < Duration::from_secs(60), "there is no handler");
        thread::sleep(Duration::from_millis(2));
    }
    thread::sleep(Duration::from_millis(200));
}

/// Runs a command, sends it signals, and says what is wrong with its end.
fn interrupted(line: &str, wait: Wait, signals: &[&str]) -> Result<(), String> {
    let folder = TempDir::new().expect("a folder");
    let folder = folder.path();
    place(folder);
    let before = content(folder);
    // Opened for reading and writing, so that opening does not block.
    let _silent = (wait == Wait::Read)
        .then(|| OpenOptions::new().read(true).write(true).open(folder.join("never")).expect("a pipe"));
    let mut command = pleach(folder, line);
    command.stdin(if wait == Wait::Input { Stdio::piped() } else { Stdio::null() });
    command.stdout(if wait == Wait::Output { Stdio::piped() } else { Stdio::null() });
    let mut child = command.stderr(Stdio::piped()).spawn().expect("a child");
    let held = (child.stdin.take(), child.stdout.take());
    wait_for_handler(&mut child);
    let since = Instant::now();
    for name in signals {
        signal(&child, name);
        thread::sleep(Duration::from_millis(20));
    }
    let status = loop {
        if let Some(status) = child.try_wait().expect("a status") {
            break status;
        }
        if since.elapsed() > SOON {
            child.kill().expect("killed");
            child.wait().expect("a status");
            return Err("it goes on".to_owned());
        }
        thread::sleep(Duration::from_millis(5));
    };
    let mut text = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut text).expect("text");
    drop(held);
    if status.code() != Some(130) {
        return Err(format!("{status}: {text}"));
    }
    let is_told = if line.ends_with("--json") {
        let object: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        object["code"] == "interrupted" && object["exit"] == 130 && text.lines().count() == 1
    } else {
        text == "error: interrupted: nothing was changed: start it again\n"
    };
    if !is_told {
        return Err(format!("it says {text:?}"));
    }
    let after = content(folder);
    if after != before {
        return Err(format!("left behind: {:?}", after.iter().map(|(name, _)| name).collect::<Vec<_>>()));
    }
    Ok(())
}

#[test]
fn every_command_that_waits_is_interrupted() {
    let mut cases = Vec::new();
    let mut add = |lines: &[&'static str], wait: Wait| {
        for &line in lines {
            for signals in [&["INT"][..], &["TERM"], &["INT", "INT"], &["TERM", "INT", "TERM"]] {
                cases.push((line, wait, signals));
            }
        }
    };
    add(&READ_TABLES, Wait::Open);
    add(&READ_TABLES, Wait::Read);
    add(&READ_KEYS, Wait::Open);
    add(&READ_KEYS, Wait::Read);
    add(&READ_INDEXES, Wait::Open);
    add(&READ_INPUT, Wait::Input);
    add(&PRINT, Wait::Output);
    let mut wrong = Vec::new();
    // They wait for most of the time: many at once.
    for some in cases.chunks(12) {
        thread::scope(|scope| {
            let runs: Vec<_> = some
                .iter()
                .map(|&(line, wait, signals)| {
                    (line, wait, signals, scope.spawn(move || interrupted(line, wait, signals)))
                })
                .collect();
            for (line, wait, signals, run) in runs {
                if let Err(what) = run.join().expect("a case") {
                    wrong.push(format!("{line} ({wait:?}, {signals:?}): {what}"));
                }
            }
        });
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn generated_files_go_with_their_folder() {
    let folder = TempDir::new().expect("a folder");
    let mut child = pleach(folder.path(), "demo --tuples 4000000")
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a child");
    let since = Instant::now();
    while fs::read_dir(folder.path()).expect("a folder").next().is_none() {
        assert!(since.elapsed() < Duration::from_secs(60), "there is no folder");
        thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "INT");
    let since = Instant::now();
    while child.try_wait().expect("a status").is_none() {
        assert!(since.elapsed() < SOON, "it goes on");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(child.wait().expect("a status").code(), Some(130));
    assert_eq!(content(folder.path()), []);
}

#[test]
fn who_is_started_without_hangups_goes_on() {
    let folder = TempDir::new().expect("a folder");
    place(folder.path());
    let started = |ignore: bool| {
        // Whoever runs the tests may have been started without hangups, too.
        let start = if ignore { "trap '' HUP; exec" } else { "exec env --default-signal=HUP" };
        let script = format!("{start} '{}' get t.pleach --keys -", env!("CARGO_BIN_EXE_pleach"));
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(folder.path());
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("a child");
        wait_for_handler(&mut child);
        signal(&child, "HUP");
        let mut input = child.stdin.take().expect("a pipe");
        let mut written = false;
        if ignore {
            thread::sleep(Duration::from_millis(200));
            written = input.write_all(b"7\n").is_ok();
        } else {
            // It ends although its input goes on.
            let asked = Instant::now();
            while child.try_wait().expect("a child").is_none() && asked.elapsed() < Duration::from_secs(60) {
                thread::sleep(Duration::from_millis(20));
            }
        }
        drop(input);
        (written, child.wait_with_output().expect("a run"))
    };
    let (written, output) = started(true);
    assert!(written && output.status.success() && output.stdout == b"7\t7\n", "{:?}", output);
    let (_, output) = started(false);
    assert_eq!((output.status.code(), output.status.signal()), (Some(130), None));
}
