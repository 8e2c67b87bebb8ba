//! The program `pleach-bench`: usage errors, what it may replace, machines without a GPU, interruptions.

use pleach_builder::BuildOptions;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pleach-bench"));
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command
}

fn run(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().expect("runs")
}

/// Runs a command that must fail: with this code, nothing on standard output, and one line that has these parts.
fn fails_with(folder: &Path, args: &[&str], code: i32, parts: &[&str]) {
    let output = run(folder, args);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    assert!(text.starts_with("error: ") && text.lines().count() == 1, "{args:?}: {text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    assert!(output.stdout.is_empty(), "{args:?}");
}

fn done(folder: &Path, args: &[&str]) {
    let output = run(folder, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn help_and_usage() {
    let folder = TempDir::new().expect("a folder");
    let output = run(folder.path(), &["--help"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && output.stderr.is_empty(), "{text}");
    assert!(text.contains("Examples:") && text.contains("--queries"), "{text}");
    let path = folder.path();
    fails_with(path, &[], 2, &["<WHAT>", "pleach-bench --help"]);
    fails_with(path, &["lookups"], 2, &["unknown value 'lookups'", "lookup, keys, compress"]);
    fails_with(path, &["plot"], 2, &["missing report: bench plot: "]);
    fails_with(path, &["open", "r.json"], 2, &["bench open: REPORT and --output are for bench plot"]);
    fails_with(path, &["open", "--queries", "zipf"], 2, &["--queries is for bench lookup"]);
    fails_with(path, &["open", "--keys-from", "a.npy"], 2, &["--keys-from is for bench keys"]);
    fails_with(
        path,
        &["keys", "--distributions", "odd"],
        2,
        &["unknown keys 'odd'", "use one of uniform dense20"],
    );
    fails_with(path, &["keys", "--keys-from", "a.npy", "--tuples", "9"], 2, &["the file has its own keys"]);
    fails_with(path, &["keys", "--keys-from", "a.npy"], 2, &["bench keys: ", "a.npy"]);
    fails_with(path, &["keys", "--kinds", "path"], 2, &["--kinds and --repetitions are for bench texts"]);
    fails_with(
        path,
        &["texts", "--kinds", "odd"],
        2,
        &["unknown keys 'odd'", "use one of phone digits:16:2"],
    );
    fails_with(path, &["texts", "--keys-from", "a", "--kinds", "url"], 2, &["the file has its own keys"]);
    fails_with(
        path,
        &["texts", "--keys-from", "a", "--key", "b"],
        2,
        &["--key and --raw are for bench keys"],
    );
    fails_with(path, &["texts", "--tuples", "3"], 2, &["bench texts: ", "use 4 to 2^31 tuples"]);
}

#[test]
fn keys_of_rules_and_of_files() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let rows = |args: &[&str]| {
        let output = run(path, args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
        report["rows"].as_array().expect("rows").clone()
    };
    let all = rows(&[
        "keys",
        "--quick",
        "--tuples",
        "3000",
        "--threads",
        "1",
        "--json",
        "--queries",
        "half-miss",
        "--distributions",
        "shards,cells,wild",
    ]);
    for name in ["shards", "cells", "wild"] {
        for engine in ["pleach", "hashbrown", "prefetching-hash", "limit-one-line"] {
            let is_there = |row: &serde_json::Value| row["keys"] == name && row["engine"] == engine;
            assert!(all.iter().any(is_there), "{name} {engine}");
        }
    }
    let text: String = (0..500).map(|i| format!("{},{i}\n", i * i)).collect();
    fs::write(path.join("own.csv"), format!("row,id\n{text}")).expect("written");
    let own = rows(&[
        "keys",
        "--quick",
        "--keys-from",
        "own.csv",
        "--key",
        "row",
        "--threads",
        "1",
        "--json",
        "--queries",
        "uniform",
    ]);
    assert!(own.iter().any(|row| row["engine"] == "pleach" && row["tuples"] == 500));
    assert!(own.iter().all(|row| row["keys"] == "own.csv"));
}

#[test]
fn without_a_gpu_it_says_so() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    fails_with(path, &["gpu", "--only", "reuse"], 2, &["bench gpu: --only reuse: use limits, peers"]);
    fails_with(path, &["gpu-reuse", "r.json"], 2, &["bench gpu-reuse: REPORT is for bench plot"]);
    let Err(missing) = pleach_gpu::devices() else { return };
    for bench in ["gpu", "gpu-keys", "gpu-near", "gpu-relation", "gpu-reuse"] {
        fails_with(path, &[bench, "--quick"], 8, &["no GPU: ", &missing.to_string()]);
    }
}

/// What `plot` draws.
const REPORT: &str = r#"{"schema":"pleach-bench-1","rows":[{"engine":"pleach","operation":"get","key_type":"u32",
    "value_type":"u32","tuples":64,"ns_per_query":5.0}]}"#;

/// A folder with a report, an index with two kept generations, and other files.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().expect("a temporary folder"));
        fs::write(place.at("notes.txt"), "not to be lost\n").expect("written");
        fs::write(place.at("empty"), "").expect("written");
        fs::write(place.at("report.json"), REPORT).expect("written");
        let build = |name: &str, value: u64, keep: Option<usize>| {
            let options = BuildOptions { keep, ..BuildOptions::default() };
            pleach_builder::build_slice(&[(1u64, value)], &place.at(name), &options).expect("built");
        };
        for value in 0..3 {
            build("a.pleach", value, Some(2));
        }
        build("old.pleach", 1, None);
        let mut damaged = fs::read(place.at("old.pleach")).expect("there");
        damaged[0] ^= 1;
        fs::write(place.at("damaged"), damaged).expect("written");
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The one line of a command that refuses and changes nothing.
    fn refused(&self, args: &[&str]) -> String {
        let before = self.snapshot();
        let output = run(self.0.path(), args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(8), "{args:?}: {text}");
        assert!(text.starts_with("error: ") && text.lines().count() == 1, "{args:?}: {text}");
        assert_eq!(self.snapshot(), before, "{args:?}");
        text
    }

    /// What every name stands for: bytes of files, texts of links.
    fn snapshot(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(self.0.path()).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let bytes = |path: &Path| match fs::symlink_metadata(path).expect("there").file_type() {
            kind if kind.is_symlink() => {
                fs::read_link(path).expect("a link").into_os_string().into_encoded_bytes()
            }
            kind if kind.is_file() => fs::read(path).expect("read"),
            _ => Vec::new(),
        };
        paths.map(|path| (path.clone(), bytes(&path))).collect()
    }
}

fn plot(output: &str, force: bool) -> Vec<&str> {
    let mut command = vec!["plot", "report.json", "-o", output];
    command.extend(force.then_some("--force"));
    command
}

#[test]
fn a_picture_is_no_input_by_any_name() {
    let place = Place::new();
    let whole = place.at("report.json");
    fs::hard_link(&whole, place.at("hard")).expect("linked");
    symlink("report.json", place.at("soft")).expect("linked");
    symlink("soft", place.at("soft2")).expect("linked");
    for output in ["report.json", whole.to_str().expect("text"), "./report.json", "hard", "soft", "soft2"] {
        for force in [false, true] {
            let text = place.refused(&plot(output, force));
            assert!(text.contains("output is the input: "), "{output}: {text}");
        }
    }
}

#[test]
fn a_picture_is_no_kept_generation() {
    let place = Place::new();
    symlink("a.pleach.g1", place.at("soft")).expect("linked");
    for output in ["a.pleach.g1", "./a.pleach.g2", "soft"] {
        for force in [false, true] {
            let text = place.refused(&plot(output, force));
            assert!(text.contains("output is a kept generation: "), "{output}: {text}");
        }
    }
}

#[test]
fn what_a_picture_may_replace() {
    let place = Place::new();
    for output in ["old.pleach", "damaged"] {
        let text = place.refused(&plot(output, false));
        assert!(text.contains("is a Pleach file, ") && text.contains("--force"), "{text}");
        done(place.0.path(), &plot(output, true));
    }
    for output in ["new", "empty", "notes.txt"] {
        done(place.0.path(), &plot(output, false));
    }
    for output in ["old.pleach", "damaged", "new", "empty", "notes.txt"] {
        let bytes = fs::read(place.at(output)).expect("there");
        assert!(!bytes.starts_with(b"\x89PLEACH") && bytes.starts_with(b"<svg"), "{output}");
    }
    // Devices and pipes pass where a table goes, and stay what they are.
    done(place.0.path(), &plot("/dev/null", false));
    assert!(fs::metadata("/dev/null").expect("there").file_type().is_char_device());
    assert_eq!(run(place.0.path(), &plot(".", true)).status.code(), Some(8));
}

#[test]
#[cfg(target_os = "linux")]
fn generated_files_go_with_their_folder() {
    let folder = TempDir::new().expect("a folder");
    let count = || fs::read_dir(folder.path()).expect("a folder").count();
    let mut child = command(folder.path(), &["lookup", "--quick", "--tuples", "2^22"])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a child");
    let since = Instant::now();
    while count() == 0 {
        assert!(since.elapsed() < Duration::from_secs(60), "there is no folder");
        thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("kill").success());
    let since = Instant::now();
    while child.try_wait().expect("a status").is_none() {
        assert!(since.elapsed() < Duration::from_secs(5), "it goes on");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(child.wait().expect("a status").code(), Some(130));
    assert_eq!(count(), 0);
}
