//! `pleach bench` runs `pleach-bench`: the one beside it, else the one on PATH, else it says how to get it.
//!
//! Programs of the system are put in its place, under its name.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Runs `pleach`, whose copy is in `folder`; PATH has no other folder than `path`.
fn run(folder: &Path, path: &Path, args: &[&str]) -> Output {
    Command::new(folder.join("pleach")).args(args).env("PATH", path).output().expect("a run")
}

fn program(name: &str) -> String {
    let folders = ["/bin", "/usr/bin"].map(|folder| format!("{folder}/{name}"));
    folders.into_iter().find(|path| Path::new(path).exists()).expect("a program of the system")
}

// One test: a program that is being written while another thread starts a process cannot be started.
#[test]
fn the_program_is_found_or_described() {
    let folder = TempDir::new().expect("a folder");
    let (folder, path) = (folder.path(), folder.path().join("path"));
    fs::create_dir(&path).expect("a folder");
    fs::copy(env!("CARGO_BIN_EXE_pleach"), folder.join("pleach")).expect("copied");
    let out = |output: Output| String::from_utf8(output.stdout).expect("text");

    let missing = run(folder, &path, &["bench", "lookup", "--quick"]);
    let line = String::from_utf8(missing.stderr).expect("text");
    assert_eq!((missing.status.code(), missing.stdout.len()), (Some(8), 0), "{line}");
    assert!(line.starts_with("error: cannot find pleach-bench: ") && line.lines().count() == 1, "{line}");
    assert!(line.contains("cargo run --release -p pleach-bench -- "), "{line}");
    let missing = run(folder, &path, &["bench", "lookup", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&missing.stderr).expect("JSON");
    assert_eq!((&document["code"], &document["exit"]), (&"not-found".into(), &8.into()));
    let usage = run(folder, &path, &["bench"]);
    assert_eq!(usage.status.code(), Some(2));
    assert!(out(run(folder, &path, &["bench", "--help"])).contains("cargo install --path bench"));

    symlink(program("false"), path.join("pleach-bench")).expect("linked");
    assert_eq!(run(folder, &path, &["bench", "lookup"]).status.code(), Some(1), "its exit code");

    // The one beside it comes first.
    symlink(program("echo"), folder.join("pleach-bench")).expect("linked");
    for (args, told) in [
        (&["bench", "lookup", "--quick"][..], "lookup --quick\n"),
        (&["bench", "--quick", "lookup", "--tuples", "2^26"], "--quick lookup --tuples 2^26\n"),
        (&["bench", "lookup", "--json", "-q", "--help"], "lookup --json -q --help\n"),
        (&["--json", "-q", "bench", "open"], "--json --quiet open\n"),
        (&["bench", "plot", "r.json", "-o", "-"], "plot r.json -o -\n"),
    ] {
        let output = run(folder, &path, args);
        assert!(output.status.success(), "{args:?}");
        assert_eq!(out(output), told, "{args:?}");
    }
}
