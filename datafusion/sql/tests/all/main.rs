//! The command `pleach-sql`: what it prints, and how it ends.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A folder with a file of squares.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let squares = (0..1000u64).map(|number| (number, number * number));
    pleach_builder::Builder::new()
        .names("number", "square")
        .build(folder.path().join("squares.pleach"), squares)
        .expect("the build succeeds");
    folder
}

fn run(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pleach-sql"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    child.stdin.take().expect("it is a pipe").write_all(input.as_bytes()).expect("it is read");
    child.wait_with_output().expect("it ends")
}

fn printed(folder: &Path, arguments: &[&str], input: &str) -> String {
    let output = run(folder, arguments, input);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is text")
}

fn refused(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = run(folder, arguments, "");
    let text = String::from_utf8(output.stderr).expect("it is text");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("error: "), "{text}");
    text
}

#[test]
fn results_have_three_formats() {
    let folder = folder();
    let query = "SELECT * FROM squares WHERE number IN (3, 12)";
    let ask = |format: &str, query: &str| {
        printed(folder.path(), &["-t", "squares=squares.pleach", "--format", format, "-c", query], "")
    };
    assert_eq!(ask("csv", query), "number,square\n3,9\n12,144\n");
    assert_eq!(ask("json", query), "{\"number\":3,\"square\":9}\n{\"number\":12,\"square\":144}\n");
    let table = "+--------+--------+\n| number | square |\n+--------+--------+\n| 3      | 9      |\n\
                 | 12     | 144    |\n+--------+--------+\n";
    assert_eq!(ask("table", query), table);
    let none = "SELECT * FROM squares WHERE number > 5000";
    assert_eq!(ask("csv", none), "number,square\n");
    assert_eq!(ask("json", none), "");
    assert!(ask("table", none).contains("| number | square |"));
}

#[test]
fn statements_come_from_arguments_files_and_input() {
    let folder = folder();
    fs::write(
        folder.path().join("script.sql"),
        "SELECT 1 AS a; SELECT square FROM 'squares.pleach' WHERE number = 9;",
    )
    .expect("it can be written");
    let csv = |arguments: &[&str], input: &str| {
        let arguments = [&["--format", "csv"], arguments].concat();
        printed(folder.path(), &arguments, input)
    };
    assert_eq!(csv(&["-f", "script.sql"], ""), "a\n1\nsquare\n81\n");
    assert_eq!(csv(&["-c", "SELECT 7 AS b", "-f", "-"], "SELECT 8 AS c"), "b\n7\nc\n8\n");
    assert_eq!(csv(&[], "SELECT count(*) AS n FROM 'squares.pleach'"), "n\n1000\n");
}

#[test]
fn a_set_is_made_and_asked() {
    let folder = folder();
    let copy =
        "COPY (SELECT * FROM 'squares.pleach') TO 'set' STORED AS PLEACH OPTIONS (partition_tuples 100)";
    printed(folder.path(), &["-c", copy], "");
    let ask = ["--memory", "512MiB", "--partitions", "2", "--format", "csv"];
    let count =
        [&ask[..], &["-c", "SELECT count(*) AS n, max(square) AS m FROM 'set' WHERE number < 500"]].concat();
    assert_eq!(printed(folder.path(), &count, ""), "n,m\n500,249001\n");
    let explain = printed(folder.path(), &["-c", "EXPLAIN SELECT * FROM 'set' WHERE number = 7"], "");
    assert!(explain.contains("PleachScanExec") && explain.contains("files=1/10"), "{explain}");
}

#[test]
fn failures_are_one_line_and_a_code() {
    let folder = folder();
    let path = folder.path();
    assert!(refused(path, &["-t", "t=missing.pleach", "-c", "SELECT 1"], 8).contains("missing.pleach"));
    assert!(refused(path, &["-c", "SELECT * FROM 'missing.pleach'"], 8).contains("missing.pleach"));
    assert!(refused(path, &["-f", "missing.sql"], 8).contains("missing.sql"));
    refused(path, &["-c", "SELEKT 1"], 2);
    refused(path, &["-c", "SELECT nothing FROM 'squares.pleach'"], 2);
    refused(path, &["-c", "SELECT 1 / 0"], 8);
    let bytes = fs::read(path.join("squares.pleach")).expect("it is there");
    fs::write(path.join("cut.pleach"), &bytes[..bytes.len() / 2]).expect("it can be written");
    assert!(refused(path, &["-t", "t=cut.pleach", "-c", "SELECT * FROM t"], 4).contains("cut.pleach"));
    // Arguments are explained on more than one line.
    for wrong in
        [&["--format", "xml"][..], &["-t", "squares.pleach"], &["--memory", "lots"], &["--partitions", "0"]]
    {
        assert_eq!(run(path, wrong, "").status.code(), Some(2), "{wrong:?}");
    }
    let help = printed(path, &["--help"], "");
    assert!(help.contains("--table <NAME=PATH>"), "{help}");
}
