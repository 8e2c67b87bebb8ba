//! Failures of every command on every kind of bad file: exit code, one line, with `--json` one object with
//! a code, and no files left.

use pleach_format::checksum::{SUM_BLOCK_BYTES, crc32};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

struct Run {
    code: Option<i32>,
    out: String,
    err: String,
}

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().expect("a temporary folder"));
        let rows = |keys: &str| (0..3000).map(|row| format!("{keys}{row:05},{row}\n")).collect::<String>();
        place.write("t.csv", format!("id,value\n{}", rows("")));
        place.write("s.csv", format!("id,value\n{}", rows("key ")));
        place.write("keys", "5\n7\n");
        place.write("c.csv", "op,id,value\nput,5,1\n");
        place.write("cs.csv", "op,id,value\nput,key 00005,1\n");
        place.good("build t.csv -o t.pleach -q --layout lines,spine,columns");
        place.good("build s.csv -o s.pleach -q --key-type utf8 --value-type utf8");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("written");
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file")
    }

    fn command(&self, line: &str) -> Command {
        self.command_of(&line.split(' ').collect::<Vec<_>>())
    }

    fn command_of(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> Run {
        self.run_of(&line.split(' ').collect::<Vec<_>>())
    }

    fn run_of(&self, arguments: &[&str]) -> Run {
        let output = self.command_of(arguments).output().expect("a run");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    fn good(&self, line: &str) {
        let run = self.run(line);
        assert_eq!(run.code, Some(0), "{line}: {}", run.err);
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Sections of a file: name, offset and length.
    fn sections(&self, name: &str) -> Vec<(String, usize, usize)> {
        let run = self.run(&format!("inspect {name} --json"));
        let document: Value = serde_json::from_str(&run.out).expect("JSON");
        let number = |value: &Value| value.as_str().and_then(|text| text.parse().ok()).expect("a number");
        let sections = document["sections"].as_array().expect("sections");
        let section = |section: &Value| {
            let tag = section["tag"].as_str().expect("a tag").to_owned();
            (tag, number(&section["offset"]), number(&section["length"]))
        };
        sections.iter().map(section).collect()
    }
}

/// All commands that read an index. `FILE` is the one that something is wrong with, `GOOD` another of its types,
/// `CHANGES` are changes in its types; what is `true` reads every section.
const COMMANDS: [(&str, bool); 24] = [
    ("get FILE 5 --verify full", true),
    ("get FILE --keys keys --verify full", true),
    ("range FILE .. .. --verify full", true),
    ("range FILE .. .. --count --verify full", true),
    ("export FILE -o o.csv --verify full", true),
    ("export FILE -o o.parquet --verify full", true),
    ("export FILE -o o.arrow --verify full", true),
    ("export FILE -o - --format csv --verify full", true),
    ("rebuild FILE --apply CHANGES --method merge", false),
    ("rebuild FILE --apply CHANGES --method merge --keep 2", false),
    ("compact FILE GOOD -o o.pleach", false),
    ("compact GOOD FILE -o o.pleach", false),
    ("select FILE --where true --verify full", true),
    ("project FILE --columns key,value -o o.pleach --verify full", true),
    ("reduce FILE --op count -o o.csv --verify full", true),
    ("union FILE GOOD -o o.pleach --verify full", true),
    ("union GOOD FILE -o o.csv --verify full", true),
    ("intersect GOOD FILE --verify full", true),
    ("difference FILE GOOD -o o.parquet --verify full", true),
    ("join FILE GOOD -o o.csv --verify full", true),
    ("join GOOD FILE --verify full", true),
    ("product FILE FILE --combine left --verify full", true),
    ("inspect FILE --mapping", true),
    ("inspect FILE --line 0", false),
];
/// These say what they find on standard output, damage too.
const EXAMINERS: [&str; 4] =
    ["inspect FILE", "fsck FILE", "fsck FILE --quiet", "fsck FILE --salvage o.pleach"];

/// The command ends so, with a line and with an object, and leaves nothing; what is wrong, if something is.
fn ends(place: &Place, line: &str, exit: i32, code: &str) -> Result<(), String> {
    let names = place.names();
    let run = place.run(line);
    let told = || format!("{line}: {:?} {:?} {:?}", run.code, run.out.get(..200), run.err);
    let parts = run.err.split(": ").count();
    if run.code != Some(exit) || !run.err.starts_with("error: ") || run.err.lines().count() != 1 || parts < 3
    {
        return Err(told());
    }
    let json = place.run(&format!("{line} --json"));
    let object: Value =
        serde_json::from_str(&json.err).map_err(|error| format!("{line}: {error}: {}", json.err))?;
    let message = object["message"].as_str().unwrap_or_default();
    if json.code != Some(exit)
        || json.err.lines().count() != 1
        || object["schema"] != "pleach.error.v1"
        || object["code"] != code
        || object["exit"] != exit
        || !["what", "where", "advice"].iter().all(|name| object[name].is_string())
        || message.is_empty()
    {
        return Err(format!("{line} --json: {:?}: {}", json.code, json.err));
    }
    if place.names() != names {
        return Err(format!("{line}: left behind: {:?}", place.names()));
    }
    Ok(())
}

/// A file that something is wrong with, and how commands end that meet it.
struct Fault {
    what: String,
    bytes: Vec<u8>,
    /// True if it is in a part that only some commands read.
    is_hidden: bool,
}

fn faults(place: &Place, name: &str) -> Vec<Fault> {
    let whole = place.read(name);
    let fault = |what: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        Fault { what: format!("{name}, {what}"), bytes, is_hidden: false }
    };
    let mut all = vec![
        fault("empty", &Vec::clear),
        fault("a part of the mark", &|bytes| bytes.truncate(5)),
        fault("the mark alone", &|bytes| bytes.truncate(16)),
        fault("cut in half", &|bytes| bytes.truncate(bytes.len() / 2)),
        fault("too long", &|bytes| bytes.extend_from_slice(&[0; 4096])),
        fault("another first byte", &|bytes| bytes[0] ^= 1),
        fault("another version in the head alone", &|bytes| bytes[18] ^= 64),
        fault("the section table", &|bytes| bytes[4100] ^= 1),
    ];
    for (tag, offset, length) in place.sections(name) {
        let mut fault = fault(&tag, &|bytes| bytes[offset + length / 2] ^= 1);
        fault.is_hidden = !["META", "LINE"].contains(&tag.as_str());
        all.push(fault);
    }
    all
}

/// The lines to run for a file, the good one and the changes of its types.
fn filled(line: &str, good: &str) -> String {
    let changes = if good.starts_with('s') { "cs.csv" } else { "c.csv" };
    line.replace("FILE", "bad").replace("GOOD", good).replace("CHANGES", changes)
}

#[test]
fn damage_is_4_whoever_meets_it() {
    let place = Place::new();
    let mut wrong = Vec::new();
    let mut runs = 0;
    for good in ["t.pleach", "s.pleach"] {
        let faults = faults(&place, good);
        assert!(faults.len() > 12, "the sections are there");
        for Fault { what, bytes, is_hidden } in faults {
            place.write("bad", &bytes);
            for (line, reads_all) in COMMANDS {
                if is_hidden && !reads_all || line.contains("--line") && what.contains("META") {
                    continue;
                }
                // Values of texts have no such pairs.
                if good == "s.pleach" && line.starts_with("project") {
                    continue;
                }
                runs += 1;
                if line.contains("--line") && what.contains("LINE") {
                    continue;
                }
                let line = filled(line, good);
                wrong.extend(ends(&place, &line, 4, "damaged").err().map(|error| format!("{what}: {error}")));
                assert!(place.read("bad") == bytes, "{line}");
            }
            for line in EXAMINERS {
                let is_saved = line.contains("--salvage");
                let line = filled(line, good);
                let run = place.run(&line);
                let _ = fs::remove_file(place.path("o.pleach"));
                // If nothing can be saved, that is an error, too.
                let is_told = run.err.is_empty() || is_saved;
                if run.code != Some(4) || !is_told {
                    wrong.push(format!("{what}: {line}: {:?} {}", run.code, run.err));
                }
            }
        }
    }
    assert!(runs > 300 && wrong.is_empty(), "{} of {runs}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_is_no_damage_is_8_with_a_code() {
    let place = Place::new();
    let mut wrong = Vec::new();
    let mut check = |name: &str, code: &str| {
        let tables = ["build FILE --format csv -o o.pleach", "rebuild t.pleach --apply FILE --format csv"];
        let of_tables = ["get t.pleach --keys FILE"];
        let is_table_too = ["not-found", "not-a-file", "permission"].contains(&code);
        let lines = COMMANDS.iter().map(|&(line, _)| line).chain(EXAMINERS);
        let lines = lines.chain(tables.into_iter().chain(of_tables).filter(|_| is_table_too));
        for line in lines {
            let line = filled(line, "t.pleach").replace("bad", name);
            wrong.extend(ends(&place, &line, 8, code).err().map(|error| format!("{name}: {error}")));
        }
    };
    place.write("foreign", "id,value\n1,2\n");
    place.write("long", "x".repeat(100_000));
    let mut newer = place.read("t.pleach");
    let last = newer.len() - 4096;
    for at in [0, last] {
        newer[at + 16] = 99;
        let sum = crc32(&newer[at..at + 4092]);
        newer[at + 4092..at + 4096].copy_from_slice(&sum.to_le_bytes());
    }
    place.write("newer", &newer);
    fs::create_dir(place.path("folder")).expect("a folder");
    std::os::unix::fs::symlink("circle", place.path("circle")).expect("a link");
    place.write("closed", place.read("t.pleach"));
    let nobody: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    fs::set_permissions(place.path("closed"), nobody).expect("permissions");
    check("gone", "not-found");
    check("gone/t.pleach", "not-found");
    check("t.csv/t.pleach", "not-found");
    check("circle", "not-found");
    check("folder", "not-a-file");
    check("foreign", "foreign");
    check("long", "foreign");
    check("newer", "newer");
    place.write("older", include_bytes!("../../tests/data/v0.13/one.pleach"));
    check("older", "older");
    if fs::read(place.path("closed")).is_err() {
        check("closed", "permission");
    } else {
        eprintln!("skipped: this user may read everything");
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn errors_beside_files_have_codes() {
    let place = Place::new();
    place.write("bad.csv", "id,value\n1,x\n");
    place.write("bad.keys", "x\n");
    place.write("twice.csv", "id,value\n1,1\n1,2\n");
    for (line, exit, code) in [
        ("buidl t.csv", 2, "usage"),
        ("build t.csv", 2, "usage"),
        ("build t.csv -o o.pleach --memory lots", 2, "usage"),
        ("build t.csv -o o.pleach --unique maybe", 2, "usage"),
        ("get t.pleach x", 2, "usage"),
        ("get t.pleach 1 --device-memory 1G --devise cpu", 2, "usage"),
        ("select t.pleach --where key+", 2, "usage"),
        ("build bad.csv -o o.pleach", 8, "input"),
        ("build twice.csv -o o.pleach --unique error", 8, "input"),
        ("get t.pleach --keys bad.keys", 8, "input"),
        ("build t.csv -o folder/o.pleach", 8, "not-found"),
        ("export t.pleach -o folder/o.csv", 8, "not-found"),
        ("export t.pleach -o t.pleach/o.csv", 8, "not-found"),
        ("join t.pleach s.pleach", 8, "types-differ"),
        ("compact t.pleach s.pleach -o o.pleach", 8, "types-differ"),
    ] {
        assert_eq!(ends(&place, line, exit, code), Ok(()));
    }
    let run = place.run("--json");
    let object: Value = serde_json::from_str(&run.err).expect("an object");
    assert_eq!((run.code, &object["code"]), (Some(2), &Value::from("usage")));
}

/// A text of the user may hold what separates the parts of a message.
#[test]
fn quoted_texts_do_not_cut_messages() {
    let place = Place::new();
    place.write("colons.csv", "a: b,value\n1,2\n");
    for (args, what, at, advice) in [
        (
            &["select", "t.pleach", "--where", "`a: b` > 1"][..],
            "unknown name 'a: b'",
            "column 1 of the expression",
            "write one of ",
        ),
        (
            &["build", "t.csv", "-o", "o.pleach", "--layout", "lines,a: b"],
            "unknown layout 'a: b'",
            "--layout",
            "use lines and optionally",
        ),
        (
            &["build", "t.csv", "-o", "o.pleach", "--layout", "lines,spine,harmonia: 4: 5"],
            "invalid number ' 4' in 'harmonia: 4: 5'",
            "--layout",
            "use harmonia:FANOUT:PERCENT",
        ),
        (
            &["build", "colons.csv", "-o", "o.pleach", "--key", "no"],
            "bad input",
            "colons.csv",
            "the columns are \"a: b\", \"value\"",
        ),
    ] {
        let run = place.run_of(&[args, &["--json"][..]].concat());
        let object: Value = serde_json::from_str(&run.err).expect("an object");
        let part = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(part("what"), what, "{}", run.err);
        assert!(part("where").starts_with(at) && part("advice").starts_with(advice), "{}", run.err);
    }
}

#[test]
fn what_was_meant_is_asked() {
    let place = Place::new();
    for (line, what) in [
        ("buidl", "unrecognized subcommand 'buidl': pleach: did you mean 'build'?"),
        ("fscq t.pleach", "unrecognized subcommand 'fscq': pleach: did you mean 'fsck'?"),
        (
            "build t.csv --fomat csv -o o",
            "unexpected argument '--fomat' found: pleach build: did you mean '--format'?",
        ),
        (
            "build t.csv -o o --unique frist",
            "unknown value 'frist': --unique <WHICH>: did you mean 'first'? use one of error, first, last, sum",
        ),
        ("nothing-like-it", "unrecognized subcommand 'nothing-like-it': pleach: see `pleach --help`"),
    ] {
        let run = place.run(line);
        assert_eq!((run.code, run.err), (Some(2), format!("error: {what}\n")));
    }
}

/// Changes four bytes of a block so that its CRC32 is `sum` again: the sum is linear, so each bit of them
/// has its own effect on it, and the right ones are found by elimination.
fn forge(block: &mut [u8], at: usize, sum: u32) {
    let base = crc32(block);
    // For each bit: its change of the sum, and the bit itself.
    let mut rows: Vec<(u32, u32)> = (0..32)
        .map(|bit| {
            block[at + bit / 8] ^= 1 << (bit % 8);
            let effect = crc32(block) ^ base;
            block[at + bit / 8] ^= 1 << (bit % 8);
            (effect, 1 << bit)
        })
        .collect();
    let (mut wanted, mut bits) = (base ^ sum, 0);
    for column in (0..32).rev() {
        let place = rows.iter().position(|row| row.0 >> column & 1 == 1).expect("the sum is one to one");
        let (effect, bit) = rows.swap_remove(place);
        for row in rows.iter_mut().filter(|row| row.0 >> column & 1 == 1) {
            *row = (row.0 ^ effect, row.1 ^ bit);
        }
        if wanted >> column & 1 == 1 {
            (wanted, bits) = (wanted ^ effect, bits ^ bit);
        }
    }
    block[at..at + 4].iter_mut().zip(bits.to_le_bytes()).for_each(|(byte, bits)| *byte ^= bits);
    assert_eq!(crc32(block), sum);
}

#[test]
fn sums_and_file_ids_do_not_authenticate() {
    let place = Place::new();
    let id = |run: &Run| {
        let document: Value = serde_json::from_str(&run.out).expect("JSON");
        (document["verdict"].clone(), document["file_id"].clone(), document["file_id_verified"].clone())
    };
    let (verdict, honest, verified) = id(&place.run("inspect t.pleach --json"));
    assert_eq!((verdict, verified), ("whole".into(), true.into()));
    let said = place.run("inspect t.pleach --verify header");
    assert!(said.out.contains("as stored, not verified"), "{}", said.out);
    let sections = place.sections("t.pleach");
    let &(_, start, length) = sections.iter().find(|section| section.0 == "VALS").expect("a column");

    // Damaged values: not whole with an id that looks right.
    let mut bytes = place.read("t.pleach");
    bytes[start + length / 2] ^= 1;
    place.write("bad", &bytes);
    let run = place.run("inspect bad --json");
    assert_eq!(run.code, Some(4));
    let (verdict, _, verified) = id(&run);
    assert_eq!((verdict, verified), ("damaged".into(), false.into()));
    let run = place.run("inspect bad");
    assert!(!run.out.contains("whole") && run.out.contains("not verified"), "{}", run.out);

    // Forged ones: a value of the forger's choice, four bytes of a neighbour, and no other byte.
    let mut bytes = place.read("t.pleach");
    let block = &mut bytes[start..start + SUM_BLOCK_BYTES.min(length)];
    let sum = crc32(block);
    block[8..16].copy_from_slice(&666u64.to_le_bytes());
    forge(block, 16, sum);
    place.write("forged", &bytes);
    let columns = place.run("export forged -o - --format csv --verify header");
    assert_eq!(columns.code, Some(0));
    assert_ne!(bytes, place.read("t.pleach"));
    // Neither the sums nor the id, which is made of sums, show it: only a hash or a signature of the whole
    // file does.
    let (_, forged, _) = id(&place.run("inspect forged --json"));
    assert_eq!(forged, honest);
    let trust = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/TRUST.md")).expect("a file");
    assert!(trust.contains("sha256sum") && !trust.contains("compares its file id"));
}

/// Keys that one batch takes; the first 100,000 are verified as they are read.
const BATCH: u64 = 1 << 16;

#[test]
fn a_long_get_answers_from_the_index_it_opened() {
    let place = Place::new();
    let rows = |add: u64| (0..4 * BATCH).map(|row| format!("{row},{}\n", row + add)).collect::<String>();
    place.write("old.csv", format!("id,value\n{}", rows(0)));
    place.write("new.csv", format!("id,value\n{}", rows(1)));
    place.good("build new.csv -o new.pleach -q");
    for what in ["removed", "a foreign file", "another generation", "a folder", "a pipe", "damaged"] {
        let _ = fs::remove_file(place.path("x.pleach"));
        place.good("build old.csv -o x.pleach -q");
        let mut command = place.command("get x.pleach --keys -");
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("a child");
        let mut input = child.stdin.take().expect("a pipe");
        let mut answers = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let ask = |input: &mut dyn Write, part: u64| {
            let keys: String = (part * BATCH..(part + 1) * BATCH).map(|key| format!("{key}\n")).collect();
            input.write_all(keys.as_bytes())
        };
        // Another thread writes the input: both pipes may be full.
        let (asks, asked) = std::sync::mpsc::channel::<u64>();
        let writer = std::thread::spawn(move || {
            for part in asked {
                if ask(&mut input, part).is_err() {
                    break;
                }
            }
        });
        for part in 0..4 {
            asks.send(part).expect("a writer");
            for key in part * BATCH..(part + 1) * BATCH {
                let line = answers.next().unwrap_or_else(|| panic!("{what}: no answer for {key}"));
                assert_eq!(line.expect("text"), format!("{key}\t{key}"), "{what}");
            }
            if part == 0 {
                let path = place.path("x.pleach");
                fs::remove_file(&path).expect("removed");
                match what {
                    "a foreign file" => place.write("x.pleach", "id,value\n1,2\n"),
                    "another generation" => {
                        fs::copy(place.path("new.pleach"), &path).expect("copied");
                    }
                    "a folder" => fs::create_dir(&path).expect("a folder"),
                    "a pipe" => {
                        assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success())
                    }
                    "damaged" => place.write("x.pleach", &place.read("new.pleach")[..9000]),
                    _ => {}
                }
            }
        }
        drop(asks);
        writer.join().expect("a writer");
        let output = child.wait_with_output().expect("a run");
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{what}");
        if what == "a folder" {
            fs::remove_dir(place.path("x.pleach")).expect("removed");
        }
    }
}
