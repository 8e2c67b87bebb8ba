//! Values that are stored once: every command answers as it does for plain ones.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn pleach(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pleach"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("the binary runs")
}

#[track_caller]
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = pleach(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("is text")
}

/// The entry of a section in what `inspect` says.
fn section(folder: &Path, file: &str, tag: &str) -> Option<serde_json::Value> {
    let shown: serde_json::Value =
        serde_json::from_str(&printed(folder, &["inspect", file, "--json"])).expect("is JSON");
    let sections = shown["sections"].as_array().expect("sections").clone();
    sections.into_iter().find(|section| section["tag"] == tag)
}

/// Rows of a kind of value: 3,000 keys, each value many times; the first is empty if that is possible.
fn table(kind: &str) -> String {
    let mut rows = String::from(if kind == "record" { "k,a,b\n" } else { "k,v\n" });
    for at in 0..3000u32 {
        let number = at * 7919 % 250;
        let value = match kind {
            "utf8" if number == 0 => "\"\"".to_owned(),
            "utf8" => format!("label {number} ü"),
            "bytes" => "x".repeat(number as usize % 60) + &number.to_string(),
            "bytes5" => format!("{number:05}"),
            _ => format!("{number},{}.5", u64::from(number) << 40),
        };
        writeln!(rows, "{},{value}", u64::from(at) * 1_000_003 % 100_000).expect("writes");
    }
    rows
}

const KINDS: [(&str, &[&str]); 4] = [
    ("utf8", &["--value-type", "utf8"]),
    ("bytes", &["--value-type", "bytes"]),
    ("bytes5", &["--value-type", "bytes5"]),
    ("record", &["--value", "a,b", "--value-type", "u64,f64"]),
];

/// Runs a command on the plain file and on the coded one, whose names begin with `p` and `d`.
#[track_caller]
fn same(folder: &Path, arguments: &str) -> String {
    let [plain, coded] = ["p", "d"].map(|form| {
        let arguments = arguments.replace('@', form);
        printed(folder, &arguments.split(' ').collect::<Vec<_>>())
    });
    assert!(plain == coded, "{arguments}");
    plain
}

#[test]
fn every_command_answers_as_for_plain_values() {
    for (kind, types) in KINDS {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        fs::write(folder.join("t.csv"), table(kind)).expect("writes");
        let name_of = |at: u32| (u64::from(at) * 1_000_003 % 100_000).to_string();
        for (form, values) in [("p", "plain"), ("d", "dictionary")] {
            let build = ["build", "t.csv", "-q", "--values", values, "-o", form];
            printed(folder, &[&build[..], types].concat());
        }
        let (codes, values) = (section(folder, "d", "CODE"), section(folder, "d", "VALS"));
        assert_eq!(codes.expect("codes")["elements"], "3000", "{kind}");
        assert_eq!(values.expect("values")["elements"], "250", "{kind}");
        assert!(section(folder, "p", "CODE").is_none(), "{kind}");
        let keys: Vec<String> = (0..3000).step_by(7).map(name_of).chain(["100001".to_owned()]).collect();
        fs::write(folder.join("keys"), keys.join("\n")).expect("writes");
        let got = same(folder, &format!("get @ {}", name_of(5)));
        assert_eq!(got.lines().count(), 1, "{kind}");
        for arguments in [
            "get @ --keys keys --json",
            "get @ --keys keys --all",
            "get @ --keys keys --floor",
            "range @ 500 90000",
            "range @ 500 90000 --json --reverse",
            "select @ --where key<50000",
            "join @ @",
            "union @ @",
            "difference @ @",
            "export @ -o - --format csv",
            "export @ -o - --format ndjson",
            "fsck @ -q",
        ] {
            let output =
                |form: &str| pleach(folder, &arguments.replace('@', form).split(' ').collect::<Vec<_>>());
            let (plain, coded) = (output("p"), output("d"));
            assert_eq!(plain.status.code(), coded.status.code(), "{kind}: {arguments}");
            assert!(plain.stdout == coded.stdout, "{kind}: {arguments}");
            assert_eq!(
                String::from_utf8_lossy(&plain.stderr),
                String::from_utf8_lossy(&coded.stderr),
                "{kind}: {arguments}"
            );
        }
        // Through a table and back, through changes, and through a merge: the form that was asked for stays.
        for format in ["arrow", "parquet"] {
            printed(folder, &["export", "d", "-q", "-o", &format!("t.{format}")]);
            let of_record: &[&str] = if kind == "record" { &["--value", "a,b"] } else { &[] };
            printed(folder, &[&["build", &format!("t.{format}"), "-q", "-o", "back"], of_record].concat());
            let back = printed(folder, &["export", "back", "-o", "-", "--format", "csv"]);
            assert!(back == printed(folder, &["export", "p", "-o", "-", "--format", "csv"]), "{kind}");
        }
        let row = if kind == "record" {
            "op,k,a,b\nput,7,9,1.5\ndel,0,,\n"
        } else {
            "op,k,v\nput,7,00009\ndel,0,\n"
        };
        fs::write(folder.join("changes.csv"), row).expect("writes");
        same(folder, "rebuild @ --apply changes.csv -q");
        assert!(section(folder, "d", "CODE").is_some() && section(folder, "p", "CODE").is_none(), "{kind}");
        let seven = same(folder, "get @ 7");
        assert_eq!(seven.lines().count(), 1, "{kind}: {seven}");
        same(folder, "compact @ @ -o @2 -q --unique first");
        same(folder, "export @2 -o - --format csv");
        assert_eq!(printed(folder, &["fsck", "d", "-q"]), "", "{kind}");
    }
}

#[test]
fn a_dictionary_is_made_by_itself_and_can_be_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("t.csv"), table("utf8")).expect("writes");
    fs::write(folder.join("n.csv"), "k,v\n1,2\n").expect("writes");
    let text = ["--value-type", "utf8"];
    printed(folder, &[&["build", "t.csv", "-q", "-o", "a"][..], &text].concat());
    assert!(section(folder, "a", "CODE").is_some());
    printed(folder, &[&["build", "t.csv", "-q", "-o", "c", "--layout", "lines,plain"][..], &text].concat());
    assert!(section(folder, "c", "CODE").is_none());
    let output = pleach(folder, &["build", "n.csv", "-o", "n", "--values", "dictionary"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = "a dictionary holds byte strings and texts, but values of type u64 are in the tuple lines";
    assert!(!output.status.success() && told.contains(expected), "{told}");
    assert!(!folder.join("n").exists());
}

/// Intervals whose records are stored once: the end of each is read by its code.
#[test]
fn intervals_of_repeated_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut rows = String::from("start,end,note\n");
    for at in 0..200u32 {
        // Each second interval ends where the one after it would, so that records are equal.
        writeln!(rows, "{},{},{:08}", at * 10, at * 10 + 4, at % 3).expect("writes");
    }
    fs::write(folder.join("t.csv"), rows).expect("writes");
    for (form, values) in [("p", "plain"), ("d", "dictionary")] {
        let of_text = ["--interval", "end", "--value", "note", "--value-type", "bytes8", "--key-type", "u64"];
        printed(folder, &[&["build", "t.csv", "-q", "-o", form, "--values", values][..], &of_text].concat());
    }
    assert!(section(folder, "d", "CODE").is_some());
    let keys: Vec<String> = (0..2005).map(|key| key.to_string()).collect();
    fs::write(folder.join("keys"), keys.join("\n")).expect("writes");
    let output = |form: &str| pleach(folder, &["get", form, "--keys", "keys", "--json"]);
    let (plain, coded) = (output("p"), output("d"));
    assert!(plain.stdout == coded.stdout && !plain.stdout.is_empty());
    same(folder, "export @ -o - --format csv");
    assert_eq!(printed(folder, &["fsck", "d", "-q"]), "");
}
