//! Nothing is destroyed by a slip: every command that writes a file, against every name that a file which
//! must stay can be given as.
//!
//! One table of commands, one of slips. Whatever happens, what was there before is there afterwards, byte
//! for byte.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    /// Two indexes, one of them with two kept generations, a table of either, changes.
    fn new() -> Self {
        let place = Self(TempDir::new().expect("a temporary folder"));
        place.write("t.csv", "id,value\n1,10\n2,20\n");
        place.write("u.csv", "id,value\n2,21\n3,30\n");
        place.write("c.csv", "op,id,value\nput,1,11\n");
        place.write("notes.txt", "not to be lost\n");
        place.write("empty", "");
        place.done(&["build", "t.csv", "-o", "a.pleach"]);
        place.done(&["rebuild", "a.pleach", "--apply", "c.csv", "--keep", "2"]);
        place.done(&["rebuild", "a.pleach", "--apply", "c.csv", "--keep", "2"]);
        place.done(&["build", "u.csv", "-o", "b.pleach"]);
        place.done(&["build", "u.csv", "-o", "old.pleach"]);
        let mut damaged = fs::read(place.at("b.pleach")).expect("there");
        damaged[0] ^= 1;
        place.write("damaged", damaged);
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.at(name), bytes).expect("written");
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_pleach"))
            .args(args)
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .output()
            .expect("runs")
    }

    fn done(&self, args: &[&str]) {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// The one line of a command that refuses.
    fn refused(&self, args: &[&str]) -> String {
        let before = self.snapshot();
        let output = self.run(args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(8), "{args:?}: {text}");
        assert!(text.starts_with("error: ") && text.lines().count() == 1, "{args:?}: {text}");
        assert_eq!(self.snapshot(), before, "{args:?}");
        text
    }

    /// Contents of every name: bytes of files, texts of links.
    fn snapshot(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        for entry in fs::read_dir(self.0.path()).expect("a folder") {
            let path = entry.expect("an entry").path();
            let kind = fs::symlink_metadata(&path).expect("there").file_type();
            let bytes = match () {
                () if kind.is_symlink() => {
                    fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
                }
                () if kind.is_file() => fs::read(&path).expect("read"),
                () => Vec::new(),
            };
            all.insert(path, bytes);
        }
        all
    }
}

/// Kind of output of a command.
#[derive(Clone, Copy, PartialEq)]
enum Makes {
    Index,
    Table,
}

/// A command that writes: what comes before its output and after it, what it makes, and the files it reads.
struct Writer {
    args: &'static [&'static str],
    after: &'static [&'static str],
    makes: Makes,
    inputs: &'static [&'static str],
}

const fn writer(
    args: &'static [&'static str],
    after: &'static [&'static str],
    makes: Makes,
    inputs: &'static [&'static str],
) -> Writer {
    Writer { args, after, makes, inputs }
}

/// All of them, but `rebuild`, `rollback` and `man`, which have no name for their output, and `bench plot`, which is
/// tested with its program.
const WRITERS: &[Writer] = &[
    writer(&["build", "t.csv", "u.csv", "-o"], &[], Makes::Index, &["t.csv", "u.csv"]),
    writer(&["compact", "a.pleach", "b.pleach", "-o"], &[], Makes::Index, &["a.pleach", "b.pleach"]),
    writer(&["fsck", "a.pleach", "--salvage"], &[], Makes::Index, &["a.pleach"]),
    writer(&["export", "a.pleach", "-o"], &["--format", "csv"], Makes::Table, &["a.pleach"]),
    writer(&["export", "a.pleach", "-o"], &["--format", "tsv"], Makes::Table, &["a.pleach"]),
    writer(&["export", "a.pleach", "-o"], &["--format", "parquet"], Makes::Table, &["a.pleach"]),
    writer(&["export", "a.pleach", "-o"], &["--format", "arrow"], Makes::Table, &["a.pleach"]),
    writer(
        &["select", "a.pleach", "--where", "key > 0", "-o"],
        &["--format", "pleach"],
        Makes::Index,
        &["a.pleach"],
    ),
    writer(
        &["project", "a.pleach", "--columns", "key,value", "-o"],
        &["--format", "pleach"],
        Makes::Index,
        &["a.pleach"],
    ),
    writer(
        &["reduce", "a.pleach", "--op", "sum", "-o"],
        &["--format", "pleach"],
        Makes::Index,
        &["a.pleach"],
    ),
    writer(
        &["union", "a.pleach", "b.pleach", "-o"],
        &["--format", "pleach"],
        Makes::Index,
        &["a.pleach", "b.pleach"],
    ),
    writer(
        &["intersect", "a.pleach", "b.pleach", "-o"],
        &["--format", "pleach"],
        Makes::Index,
        &["a.pleach", "b.pleach"],
    ),
    writer(
        &["difference", "a.pleach", "b.pleach", "-o"],
        &["--format", "pleach"],
        Makes::Index,
        &["a.pleach", "b.pleach"],
    ),
    writer(
        &["join", "a.pleach", "b.pleach", "-o"],
        &["--format", "pleach"],
        Makes::Index,
        &["a.pleach", "b.pleach"],
    ),
    writer(
        &["product", "a.pleach", "b.pleach", "-o"],
        &["--format", "pleach"],
        Makes::Index,
        &["a.pleach", "b.pleach"],
    ),
    writer(
        &["select", "a.pleach", "--where", "key > 0", "-o"],
        &["--format", "csv"],
        Makes::Table,
        &["a.pleach"],
    ),
    writer(
        &["join", "a.pleach", "b.pleach", "-o"],
        &["--format", "parquet"],
        Makes::Table,
        &["a.pleach", "b.pleach"],
    ),
];

impl Writer {
    fn command<'a>(&self, output: &'a str, force: bool) -> Vec<&'a str> {
        let mut command: Vec<&str> = self.args.to_vec();
        command.push(output);
        command.extend(self.after);
        command.extend(force.then_some("--force"));
        command
    }
}

#[test]
fn no_output_is_an_input_by_any_name() {
    let place = Place::new();
    for writer in WRITERS {
        for &input in writer.inputs {
            let whole = place.at(input);
            let whole = whole.to_str().expect("text");
            let dotted = format!("./{input}");
            fs::hard_link(place.at(input), place.at("hard")).expect("linked");
            symlink(input, place.at("soft")).expect("linked");
            symlink("soft", place.at("soft2")).expect("linked");
            for output in [input, whole, &dotted, "hard", "soft", "soft2"] {
                for force in [false, true] {
                    let command = writer.command(output, force);
                    if command[0] == "fsck" && output != "hard" {
                        // Seen before anything is looked at.
                        let before = place.snapshot();
                        assert_eq!(place.run(&command).status.code(), Some(2), "{command:?}");
                        assert_eq!(place.snapshot(), before);
                        continue;
                    }
                    let text = place.refused(&command);
                    assert!(text.contains("output is the input: "), "{command:?}: {text}");
                }
            }
            ["hard", "soft", "soft2"]
                .iter()
                .for_each(|name| fs::remove_file(place.at(name)).expect("removed"));
        }
    }
    // The input has a link of its own.
    symlink("t.csv", place.at("in.csv")).expect("linked");
    let text = place.refused(&["build", "in.csv", "-o", "t.csv", "--force"]);
    assert!(text.contains("output is the input: t.csv"), "{text}");
    let text = place.refused(&["rebuild", "a.pleach", "--apply", "a.pleach", "--format", "csv"]);
    assert!(text.contains("output is the input: a.pleach"), "{text}");
    // By way of standard input.
    let before = place.snapshot();
    let output = Command::new(env!("CARGO_BIN_EXE_pleach"))
        .args(["build", "-", "--format", "csv", "-o", "t.csv", "--force"])
        .current_dir(place.0.path())
        .stdin(fs::File::open(place.at("t.csv")).expect("opens"))
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(8) && text.contains("output is the input"), "{text}");
    assert_eq!(place.snapshot(), before);
}

#[test]
fn no_output_is_a_kept_generation() {
    let place = Place::new();
    symlink("a.pleach.g1", place.at("soft")).expect("linked");
    fs::hard_link(place.at("a.pleach.g2"), place.at("hard")).expect("linked");
    for writer in WRITERS {
        for output in ["a.pleach.g1", "./a.pleach.g2", "soft", "hard"] {
            // A second name of a file that is not an input's generation is not destroyed: the other name stays.
            if output == "hard" && !writer.inputs.contains(&"a.pleach") {
                continue;
            }
            for force in [false, true] {
                let command = writer.command(output, force);
                let text = place.refused(&command);
                assert!(text.contains("output is a kept generation: "), "{command:?}: {text}");
            }
        }
    }
    let text = place.refused(&["rebuild", "a.pleach.g1", "--apply", "c.csv"]);
    assert!(text.contains("output is a kept generation: a.pleach.g1"), "{text}");
    // Generations may be read, and their index be made anew of them.
    place.done(&[
        "compact",
        "a.pleach.g1",
        "a.pleach.g2",
        "-o",
        "a.pleach",
        "--unique",
        "last",
        "--keep",
        "3",
    ]);
    assert!(place.at("a.pleach.g3").exists());
}

#[test]
fn what_may_be_replaced() {
    for writer in WRITERS {
        let place = Place::new();
        assert!(Command::new("mkfifo").arg(place.at("pipe")).status().expect("runs").success());
        for (output, foreign) in
            [("new", false), ("empty", false), ("old.pleach", false), ("damaged", false), ("notes.txt", true)]
        {
            let command = writer.command(output, false);
            let is_refused = match writer.makes {
                Makes::Index => foreign,
                Makes::Table => ["old.pleach", "damaged"].contains(&output),
            };
            if is_refused {
                let text = place.refused(&command);
                let wanted = match writer.makes {
                    Makes::Index => "not a Pleach file: ",
                    Makes::Table => "is a Pleach file, not a table: ",
                };
                assert!(text.contains(wanted) && text.contains("--force"), "{command:?}: {text}");
                place.done(&writer.command(output, true));
            } else {
                place.done(&command);
            }
            let bytes = fs::read(place.at(output)).expect("there");
            assert_eq!(bytes.starts_with(b"\x89PLEACH"), writer.makes == Makes::Index, "{command:?}");
        }
        // Devices and pipes pass where a table goes, and stay what they are.
        let command = writer.command("/dev/null", false);
        match writer.makes {
            Makes::Table => place.done(&command),
            Makes::Index => {
                let text = place.refused(&command);
                assert!(text.contains("not a regular file: /dev/null"), "{text}");
                let text = place.refused(&writer.command("pipe", true));
                assert!(text.contains("not a regular file: pipe"), "{text}");
            }
        }
        assert!(fs::metadata("/dev/null").expect("there").file_type().is_char_device());
        let folder = writer.command(".", true);
        assert!(place.run(&folder).status.code() == Some(8), "{folder:?}");
    }
    let place = Place::new();
    let text = place.refused(&["rebuild", "notes.txt", "--apply", "c.csv"]);
    assert!(text.contains("not a Pleach file"), "{text}");
    let text = place.refused(&["rollback", "notes.txt"]);
    assert!(text.contains("not a Pleach file: notes.txt: name another file"), "{text}");
    // Pages of the manual.
    fs::create_dir(place.at("man1")).expect("made");
    fs::copy(place.at("a.pleach"), place.at("man1/pleach-get.1")).expect("copied");
    let text = place.run(&["man", "man1"]);
    assert_eq!(text.status.code(), Some(8));
    assert!(
        fs::read(place.at("man1/pleach-get.1")).expect("there")
            == fs::read(place.at("a.pleach")).expect("there")
    );
    fs::write(place.at("man1/pleach-get.1"), "old").expect("written");
    place.done(&["man", "man1"]);
    assert!(fs::read(place.at("man1/pleach-get.1")).expect("there").starts_with(b".ie"));
}

/// Refusals come before any work: the command does not wait for an input without a writer.
#[test]
fn refused_before_anything_is_read() {
    let place = Place::new();
    assert!(Command::new("mkfifo").arg(place.at("pipe.csv")).status().expect("runs").success());
    let text = place.refused(&["build", "pipe.csv", "-o", "notes.txt"]);
    assert!(text.contains("not a Pleach file: notes.txt"), "{text}");
}

#[test]
fn generations_are_listed_and_rolled_back_to() {
    let place = Place::new();
    let lines = |args: &[&str]| {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    place.write("a.pleach.g9", "notes");
    let text = lines(&["generations", "a.pleach"]);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 5, "{text}");
    assert_eq!([rows[1][..2].to_vec(), rows[2][..2].to_vec()], [["1", "kept"], ["2", "kept"]], "{text}");
    assert_eq!(
        (rows[3][..2].to_vec(), rows[4][..2].to_vec()),
        (vec!["9", "none:"], vec!["3", "current"]),
        "{text}"
    );
    let document: serde_json::Value =
        serde_json::from_str(&lines(&["generations", "a.pleach", "--json"])).expect("JSON");
    assert_eq!(document["schema"], "pleach.generations.v1");
    let of = |at: usize, name: &str| document["generations"][at][name].clone();
    assert_eq!((of(0, "generation"), of(0, "state")), ("1".into(), "kept".into()));
    assert_eq!(
        (of(2, "state"), of(2, "what")),
        ("foreign".into(), "a file that is not a Pleach file".into())
    );
    assert_eq!(
        (of(3, "state"), of(3, "path"), of(3, "tuples")),
        ("current".into(), "a.pleach".into(), "2".into())
    );
    // To the first one, as the fourth.
    assert_eq!(lines(&["get", "a.pleach", "1"]), "1\t11\n");
    let document: serde_json::Value =
        serde_json::from_str(&lines(&["rollback", "a.pleach", "1", "--json"])).expect("JSON");
    assert_eq!((document["from"].clone(), document["generation"].clone()), ("1".into(), "4".into()));
    assert_eq!(lines(&["get", "a.pleach", "1"]), "1\t10\n");
    assert_eq!(lines(&["get", "a.pleach.g3", "1"]), "1\t11\n");
    place.done(&["fsck", "a.pleach"]);
    place.done(&["rollback", "a.pleach"]);
    assert_eq!(lines(&["get", "a.pleach", "1"]), "1\t11\n");
    let text = place.refused(&["rollback", "a.pleach", "9"]);
    assert!(
        text.contains("no such generation: a.pleach.g9: it is a file that is not a Pleach file"),
        "{text}"
    );
    let text = place.refused(&["rollback", "b.pleach"]);
    assert!(text.contains("no such generation: b.pleach: none is kept"), "{text}");
    place.refused(&["generations", "t.csv"]);
    place.refused(&["generations", "nothing"]);
    // The file is gone, not lost.
    fs::remove_file(place.at("a.pleach")).expect("removed");
    assert!(lines(&["generations", "a.pleach"]).contains("gone"));
    place.done(&["rollback", "a.pleach"]);
    assert_eq!(lines(&["get", "a.pleach", "1"]), "1\t10\n");
}

/// Nightly builds have a history.
#[test]
fn builds_keep_what_they_replace() {
    let place = Place::new();
    for night in 0..6 {
        place.write("t.csv", format!("id,value\n1,{night}\n"));
        place.done(&["build", "t.csv", "-o", "n.pleach", "--keep", "2"]);
    }
    let names: Vec<String> = place
        .snapshot()
        .keys()
        .filter_map(|path| Path::new(path).file_name()?.to_str().map(str::to_owned))
        .filter(|name| name.starts_with("n."))
        .collect();
    assert_eq!(names, ["n.pleach", "n.pleach.g4", "n.pleach.g5"]);
    // Built over by another command, it goes on.
    place.done(&["union", "a.pleach", "b.pleach", "-o", "n.pleach"]);
    place.done(&["compact", "a.pleach", "b.pleach", "-o", "n.pleach", "--keep", "1"]);
    let output = place.run(&["inspect", "n.pleach", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["generation"], "8");
    assert!(document["lineage"].is_string());
    place.write("n.pleach.g8", "notes");
    let text = place.refused(&["build", "t.csv", "-o", "n.pleach", "--keep", "1"]);
    assert!(text.contains("name in use: n.pleach.g8"), "{text}");
}
