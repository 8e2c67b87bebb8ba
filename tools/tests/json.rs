//! `--json` of every command and of every kind of error: one document, or one object a line, with a schema.

use clap::CommandFactory;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Commands as a person runs them in the folder of [`prepare`], each with the code with which it ends. Every command
/// of the program must be here.
const COMMANDS: [(&[&str], i32); 53] = [
    (&["build", "t.csv", "-o", "new.pleach", "--force"], 0),
    (&["build", "t.csv", "-o", "dry.pleach", "--dry-run"], 0),
    (&["advise", "t.csv"], 0),
    (&["advise", "t.pleach"], 0),
    (&["get", "t.pleach", "1", "2"], 0),
    (&["get", "t.pleach", "1", "99"], 1),
    (&["get", "t.pleach", "1", "--rank"], 0),
    (&["get", "t.pleach", "1", "--count"], 0),
    (&["get", "t.pleach", "9", "--floor"], 0),
    (&["range", "t.pleach", "1", "3"], 0),
    (&["range", "t.pleach", "1", "3", "--count"], 0),
    (&["inspect", "t.pleach"], 0),
    (&["inspect", "many.pleach", "--page", "0"], 0),
    (&["inspect", "t.pleach", "--line", "0"], 0),
    (&["inspect", "t.pleach", "--html", "t.html"], 0),
    (&["inspect", "bad.pleach"], 4),
    (&["fsck", "t.pleach"], 0),
    (&["fsck", "bad.pleach"], 4),
    (&["fsck", "bad.pleach", "--salvage", "saved.pleach"], 4),
    (&["sample", "t.pleach", "2"], 0),
    (&["stats", "t.pleach"], 0),
    (&["diff", "t.pleach", "u.pleach"], 1),
    (&["diff", "t.pleach", "u.pleach", "--count"], 1),
    (&["export", "t.pleach", "-o", "out.csv"], 0),
    (&["rebuild", "r.pleach", "--apply", "changes.csv", "--keep", "2"], 0),
    (&["generations", "r.pleach"], 0),
    (&["rollback", "r.pleach"], 0),
    (&["upgrade", "t.pleach"], 0),
    (&["compact", "t.pleach", "u.pleach", "-o", "both.pleach"], 0),
    (&["set", "build", "t.csv", "-o", "set", "--partition-tuples", "2"], 0),
    (&["set", "write", "t.csv", "-o", "other"], 0),
    (&["get", "set", "1", "99"], 1),
    (&["range", "set", "1", "3"], 0),
    (&["fsck", "set", "--digests"], 0),
    (&["inspect", "set"], 0),
    (&["stats", "set"], 0),
    (&["export", "set", "-o", "set.csv"], 0),
    (&["set", "rebuild", "set", "--apply", "changes.csv"], 0),
    (&["set", "generations", "set"], 0),
    (&["set", "rollback", "set"], 0),
    (&["set", "sweep", "set", "--dry-run"], 0),
    (&["select", "set", "--where", "key > 1", "-o", "of-set.csv"], 0),
    (&["select", "t.pleach", "--where", "key > 1", "-o", "some.csv"], 0),
    (&["project", "t.pleach", "--columns", "k=value,key", "-o", "some.pleach"], 0),
    (&["reduce", "t.pleach", "--op", "count", "-o", "counts.csv"], 0),
    (&["union", "t.pleach", "u.pleach", "-o", "union.csv"], 0),
    (&["intersect", "t.pleach", "u.pleach", "-o", "intersect.csv"], 0),
    (&["difference", "t.pleach", "u.pleach", "-o", "difference.csv"], 0),
    (&["join", "t.pleach", "u.pleach", "-o", "join.csv"], 0),
    (&["product", "t.pleach", "u.pleach", "-o", "product.csv"], 0),
    (&["demo", "--tuples", "2000"], 0),
    (&["devices"], 0),
    (&["completions", "bash"], 0),
];

/// Commands of which a run takes long or needs another program, with the reason.
const LEFT_OUT: [(&str, &str); 2] =
    [("bench", "runs pleach-bench, whose tests check it"), ("tune", "measures the machine; --show below")];

fn pleach(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pleach"))
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder)
        .args(args)
        .output()
        .expect("it runs")
}

/// Makes the files that the commands use.
fn prepare(folder: &Path) {
    fs::write(folder.join("t.csv"), "id,v\n1,10\n2,20\n3,30\n").expect("a file");
    fs::write(folder.join("u.csv"), "id,v\n2,20\n3,31\n4,40\n").expect("a file");
    fs::write(folder.join("changes.csv"), "op,key,value\nput,1,11\nadd,9,90\n").expect("a file");
    let rows: String = (0..1000).map(|row| format!("{row},{row}\n")).collect();
    fs::write(folder.join("many.csv"), format!("id,v\n{rows}")).expect("a file");
    for (table, file) in
        [("many.csv", "many.pleach"), ("t.csv", "t.pleach"), ("t.csv", "r.pleach"), ("u.csv", "u.pleach")]
    {
        assert!(pleach(folder, &["build", table, "-o", file, "-q"]).status.success());
    }
    let mut bytes = fs::read(folder.join("t.pleach")).expect("a file");
    bytes[8200] ^= 1;
    fs::write(folder.join("bad.pleach"), bytes).expect("a file");
}

/// Parses lines of JSON.
fn documents(bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[test]
fn every_command_prints_json() {
    let folder = tempfile::tempdir().expect("a folder");
    prepare(folder.path());
    let mut told = BTreeSet::new();
    for (args, code) in COMMANDS.into_iter().chain([(&["tune", "--show"][..], 0), (&["man", "pages"], 0)]) {
        let output = pleach(folder.path(), &[args, &["--json"]].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.is_empty(), "{args:?}: {error}");
        let documents = documents(&output.stdout);
        assert!(!documents.is_empty(), "{args:?} prints nothing");
        for document in &documents {
            let object = document.as_object().unwrap_or_else(|| panic!("{args:?}: {document}"));
            // Answers are objects without a schema, one a line.
            let is_answer = object.contains_key("key");
            let schema = object.get("schema").and_then(Value::as_str).unwrap_or_default();
            let is_schema = schema.starts_with("pleach.") && schema.ends_with(".v1");
            assert!(is_answer || is_schema || args[0] == "diff", "{args:?}: {document}");
        }
        told.insert(args[0]);
    }
    let command = pleach_cli::Cli::command();
    for name in command.get_subcommands().map(clap::Command::get_name) {
        let is_left_out = LEFT_OUT.iter().any(|(left, _)| *left == name);
        assert!(told.contains(name) || is_left_out, "{name}: add it to COMMANDS");
    }
}

#[test]
fn every_error_is_an_object() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    prepare(folder);
    fs::write(folder.join("text.csv"), "id,v\nx,1\n").expect("a file");
    fs::write(folder.join("foreign"), "no Pleach file").expect("a file");
    fs::write(folder.join("words.csv"), "id,v\nab,1\n").expect("a file");
    fs::create_dir(folder.join("folder")).expect("a folder");
    assert!(
        pleach(folder, &["build", "words.csv", "-o", "w.pleach", "--key-type", "utf8", "-q"])
            .status
            .success()
    );
    let errors: [(&[&str], &str); 20] = [
        (&[], "usage"),
        (&["buidl"], "usage"),
        (&["get"], "usage"),
        (&["get", "t.pleach", "1", "--nothing"], "usage"),
        (&["get", "t.pleach", "--device", "tpu", "1"], "usage"),
        (&["get", "t.pleach", "--verify", "al", "1"], "usage"),
        (&["build", "t.csv", "-o", "x", "--key-type", "u46"], "usage"),
        (&["build", "t.csv", "-o", "x", "--threads", "many"], "usage"),
        (&["select", "t.pleach", "--where", "key >", "-o", "x.csv"], "usage"),
        (&["get", "none.pleach", "1"], "not-found"),
        (&["get", "folder", "1"], "not-a-file"),
        (&["get", "foreign", "1"], "foreign"),
        (&["get", "bad.pleach", "1", "--verify", "full"], "damaged"),
        (&["build", "text.csv", "-o", "x"], "input"),
        (&["build", "t.csv", "-o", "x", "--key", "none"], "input"),
        (&["build", "t.csv", "-o", "foreign"], "would-overwrite"),
        (&["build", "t.csv", "-o", "t.csv"], "would-overwrite"),
        (&["diff", "t.pleach", "w.pleach"], "types-differ"),
        (&["build", "t.csv", "-o", "x", "--metrics", "none/m"], "not-found"),
        (&["inspect", "t.pleach", "--html", "t.pleach"], "would-overwrite"),
    ];
    for (args, code) in errors {
        let output = pleach(folder, &[args, &["--json"]].concat());
        let documents = documents(&output.stderr);
        assert_eq!(documents.len(), 1, "{args:?}: {documents:?}");
        let error = &documents[0];
        assert_eq!(
            (&error["schema"], &error["code"]),
            (&"pleach.error.v1".into(), &code.into()),
            "{args:?}: {error}"
        );
        assert_eq!(error["exit"].as_i64(), output.status.code().map(i64::from), "{args:?}: {error}");
        assert!(error["what"].as_str().is_some_and(|what| !what.is_empty()), "{args:?}: {error}");
        assert!(error["advice"].as_str().is_some_and(|advice| !advice.is_empty()), "{args:?}: {error}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}
