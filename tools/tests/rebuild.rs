//! `pleach rebuild` and `pleach compact`: output, files, refusals.

use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    /// With `t.pleach`: keys 0, 10, .. 990, values 0 to 99, each key once.
    fn new() -> Self {
        let place = Self(TempDir::new().expect("a temporary folder"));
        let rows: String = (0..100).map(|row| format!("{},{row}\n", row * 10)).collect();
        place.write("t.csv", &format!("id,value\n{rows}"));
        place.run(&["build", "t.csv", "-o", "t.pleach", "--quiet"], 0);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
        let mut names: Vec<String> = names.filter(|name| name.contains("pleach")).collect();
        names.sort();
        names
    }

    fn with_input(&self, input: &str, args: &[&str], code: i32) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pleach"))
            .args(args)
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a child");
        // A command that refuses its arguments does not read.
        let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
        let output = child.wait_with_output().expect("a run");
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// Standard output.
    fn run(&self, args: &[&str], code: i32) -> String {
        String::from_utf8(self.with_input("", args, code).stdout).expect("text")
    }

    /// The one line on standard error of a command that fails with 2 or 8; what was there is still there.
    fn refused(&self, args: &[&str], code: i32, parts: &[&str]) {
        let before = std::fs::read(self.path("t.pleach")).expect("there");
        let names = self.names();
        let output = self.with_input("", args, code);
        let text = String::from_utf8(output.stderr).expect("text");
        assert!(
            text.starts_with("error: ") && text.lines().count() == 1 && output.stdout.is_empty(),
            "{text}"
        );
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
        assert_eq!((std::fs::read(self.path("t.pleach")).expect("there"), self.names()), (before, names));
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.run(args, 0)).expect("JSON")
    }
}

#[test]
fn changes_apply_in_their_order() {
    let place = Place::new();
    let changes =
        "op,key,value\nput,10,77\nadd,20,5\ndel,30,\ndel,31\nput,5,1\nput,5,2\ndel,40,9\nadd,40,8\n";
    place.write("c.csv", changes);
    let document = place.json(&["rebuild", "t.pleach", "--apply", "c.csv", "--keep", "1", "--json"]);
    assert_eq!(
        (document["schema"].as_str(), document["generation"].as_str()),
        (Some("pleach.rebuild.v1"), Some("2"))
    );
    assert_eq!((document["base_tuples"].as_str(), document["tuples"].as_str()), (Some("100"), Some("101")));
    let of = |name: &str| document["changes"][name].as_str().expect("a number").to_owned();
    assert_eq!(["rows", "puts", "adds", "dels"].map(of), ["8", "3", "2", "3"]);
    assert_eq!(["superseded", "absent", "removed", "written"].map(of), ["1", "1", "3", "4"]);
    assert_eq!(
        (document["method"].as_str(), document["kept_generations"].as_u64()),
        (Some("merge"), Some(1))
    );
    assert_eq!(
        place.run(&["range", "t.pleach", "0", "60"], 0),
        "0\t0\n5\t2\n10\t77\n20\t2\n20\t5\n40\t8\n50\t5\n"
    );
    assert_eq!(place.names(), ["t.pleach", "t.pleach.g1"]);
    assert_eq!(place.run(&["get", "t.pleach.g1", "10"], 0), "10\t1\n");
    place.run(&["fsck", "t.pleach", "--quiet"], 0);
    // From standard input, as TSV, columns by number.
    let output = place.with_input(
        "7\tdel\t20\n8\tput\t990\n",
        &[
            "rebuild",
            "t.pleach",
            "--apply",
            "-",
            "--format",
            "tsv",
            "--no-header",
            "--op",
            "1",
            "--key",
            "2",
            "--value",
            "0",
        ],
        0,
    );
    let text = String::from_utf8(output.stderr).expect("text");
    assert!(
        text.contains("generation 3, 99 tuples (was 101)") && text.contains("1 put, 0 added, 1 deleted"),
        "{text}"
    );
    assert_eq!(place.run(&["get", "t.pleach", "990"], 0), "990\t8\n");
    // Only values: a patch.
    place.write("v.csv", "op,key,value\nput,990,9\n");
    assert_eq!(place.json(&["rebuild", "t.pleach", "--apply", "v.csv", "--json"])["method"], "patch");
    assert_eq!(place.run(&["get", "t.pleach", "990"], 0), "990\t9\n");
    place.run(&["fsck", "t.pleach", "--quiet"], 0);
}

#[test]
fn what_is_refused_leaves_the_old_generation() {
    let place = Place::new();
    let apply = |name: &'static str| ["rebuild", "t.pleach", "--apply", name];
    place.write("op.csv", "op,key,value\nput,1,2\nputt,3,4\n");
    place.refused(&apply("op.csv"), 8, &["op.csv: row 2", "unknown operation 'putt'", "put, add or del"]);
    place.write("type.csv", "op,key,value\nput,minus,2\n");
    place.refused(&apply("type.csv"), 8, &["type.csv", "row 1", "minus"]);
    place.write("null.csv", "op,key,value\nput,1,\n");
    place.refused(&apply("null.csv"), 8, &["null.csv", "row 1"]);
    // A value may be left out where it is the last field; here it is not.
    place.write("last.csv", "op,value,key\ndel,,5\ndel,5\n");
    let line = ["rebuild", "t.pleach", "--apply", "last.csv", "--key", "key", "--value", "value"];
    place.refused(&line, 8, &["last.csv: row 2", "it has 2 fields, but the first line has 3"]);
    let line = ["rebuild", "t.pleach", "--apply", "last.csv", "--key", "2", "--value", "2"];
    place.refused(&line, 8, &["last.csv: row 2", "it has 2 fields, but the first line has 3"]);
    place.write("one.csv", "op\nput\n");
    place.refused(&apply("one.csv"), 8, &["one column", "an operation, a key and a value"]);
    place.refused(&apply("gone.csv"), 8, &["gone.csv", "No such file"]);
    place.refused(&apply("c.npy"), 2, &["operations", "csv"]);
    place.refused(&apply("c.odd"), 2, &["c.odd", "--format"]);
    place.refused(&["rebuild", "t.pleach", "--apply", "-"], 2, &["--format"]);
    place.refused(&["rebuild", "t.pleach"], 2, &["--apply"]);
    place.write("good.csv", "op,key,value\nput,1,2\n");
    place.refused(&["rebuild", "gone.pleach", "--apply", "good.csv"], 8, &["gone.pleach", "No such file"]);
    place.refused(&["rebuild", "t.csv", "--apply", "good.csv"], 8, &["t.csv", "not a Pleach file"]);
    place.refused(
        &["rebuild", "t.pleach", "--apply", "good.csv", "--method", "patch"],
        8,
        &["cannot be patched"],
    );
    let mut bytes = std::fs::read(place.path("t.pleach")).expect("there");
    bytes[12288 + 100] ^= 1;
    std::fs::write(place.path("t.pleach"), bytes).expect("written");
    place.refused(&apply("good.csv"), 4, &["damaged: ", "t.pleach", "LINE", "byte 12288", "--salvage"]);
    let output = place.with_input("", &["rebuild", "t.pleach", "--apply", "good.csv", "--salvage"], 0);
    assert!(String::from_utf8_lossy(&output.stderr).contains("100 tuples lost with damaged blocks"));
    assert_eq!(place.run(&["range", "t.pleach", "..", ".."], 0), "1\t2\n");
}

#[test]
fn files_become_one() {
    let place = Place::new();
    place.write("u.csv", "id,value\n5,1\n10,500\n2000,3\n");
    place.run(&["build", "u.csv", "-o", "u.pleach", "--quiet"], 0);
    let document = place.json(&["compact", "t.pleach", "u.pleach", "-o", "both.pleach", "--json"]);
    assert_eq!((document["tuples"].as_str(), document["files"].as_u64()), (Some("103"), Some(2)));
    assert_eq!(place.run(&["range", "both.pleach", "0", "20"], 0), "0\t0\n5\t1\n10\t1\n10\t500\n");
    std::fs::remove_file(place.path("both.pleach")).expect("removed");
    place.run(&["compact", "t.pleach", "u.pleach", "-o", "both.pleach", "--unique", "last", "--quiet"], 0);
    assert_eq!(place.run(&["get", "both.pleach", "10", "2000"], 0), "10\t500\n2000\t3\n");
    // The same as building from both tables.
    place.run(&["build", "t.csv", "u.csv", "-o", "built.pleach", "--unique", "last", "--quiet"], 0);
    let bytes = |name: &str| std::fs::read(place.path(name)).expect("there");
    assert!(bytes("both.pleach") == bytes("built.pleach"));
    place.run(&["build", "u.csv", "-o", "w.pleach", "--key-type", "u32", "--quiet"], 0);
    place.refused(
        &["compact", "t.pleach", "w.pleach", "-o", "x.pleach"],
        8,
        &["types differ", "w.pleach", "u32 to u64"],
    );
    place.refused(
        &["compact", "t.pleach", "u.pleach", "-o", "x.pleach", "--unique", "error"],
        8,
        &["duplicate key: 10"],
    );
    place.refused(&["compact", "-o", "x.pleach"], 2, &["FILE"]);
}
