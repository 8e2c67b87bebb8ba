//! `pleach advise` and `build --dry-run`: what they say is what a build does, they read and take no more than they say,
//! and they write nothing.

use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The limits of the command.
const READ_BYTES: u64 = 64 << 20;
const TIME: Duration = Duration::from_secs(10);
/// Code of tests is slower than that of users: what a trial does between two looks at the clock takes longer, too.
const MORE: Duration = Duration::from_secs(5);

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.at(name), text).expect("written");
    }

    fn command(&self, program: &str) -> Command {
        let folder = Path::new(env!("CARGO_BIN_EXE_pleach")).parent().expect("a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command.current_dir(self.0.path()).env("PATH", format!("{}:{path}", folder.display()));
        command.env("XDG_CACHE_HOME", self.0.path());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command("pleach").args(args).output().expect("runs")
    }

    fn done(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {error}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.done(&[args, &["--json"]].concat())).expect("JSON")
    }

    /// Runs a line as a user does.
    fn shell(&self, line: &str, input: &str) {
        let mut command = self.command("sh");
        command.args(["-ec", line]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("written");
        let output = child.wait_with_output().expect("ends");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn names(&self) -> Vec<PathBuf> {
        let mut names: Vec<PathBuf> = fs::read_dir(self.0.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        names.sort();
        names
    }
}

fn number(value: &Value) -> u64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value} is no number"))
}

/// A number that is another one for each row, in no order.
fn mixed(row: u64) -> u64 {
    row.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn rows(count: u64, row: impl Fn(u64) -> String) -> String {
    (0..count).map(row).collect()
}

fn dna(row: u64) -> String {
    (0..31).map(|at| char::from(b"ACGT"[(mixed(row) >> (2 * at) & 3) as usize])).collect()
}

/// Checks that the command that was advised runs, and makes the file that was promised, to the byte: small tables are
/// read as a whole.
fn keeps_its_word(place: &Place, args: &[&str], expected: &[&str]) {
    let before = place.names();
    let advice = place.json(&[&["advise"], args].concat());
    assert_eq!(place.names(), before, "{args:?} leaves something");
    let (command, first) = (advice["command"].as_str().expect("a command"), &advice["choices"][0]);
    assert_eq!(first["command"], command);
    for word in expected {
        assert!(format!("{command} ").contains(&format!("{word} ")), "{args:?}: {word} is not in {command}");
    }
    place.shell(command, "");
    let file = command.split(" -o ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a file");
    let bytes = fs::metadata(place.at(file)).expect("the file").len();
    assert_eq!(number(&first["file_bytes"]), bytes, "{args:?}: {first}");
    assert_eq!(first["bytes_are_estimated"], false, "{args:?}");
    assert!(first["look_up_ns"].as_f64().is_some_and(|ns| ns > 0.0), "{args:?}: {first}");
    assert!(number(&advice["read_bytes"]) <= READ_BYTES, "{advice}");
    // The file, measured.
    let found = &place.json(&["advise", file])["choices"][0];
    for name in ["key_type", "value_type", "layout", "tuples", "file_bytes", "approximate"] {
        assert_eq!(found[name], first[name], "{args:?}: {name}");
    }
    fs::remove_file(place.at(file)).expect("removed");
}

#[test]
fn the_command_builds_what_was_promised() {
    let place = Place::new();
    let n = 3000;
    let address = |row: u64| (mixed(row) as u32).to_be_bytes().map(|byte| byte.to_string()).join(".");
    place.write("n.csv", format!("id,v\n{}", rows(n, |row| format!("{},{}.5\n", mixed(row) >> 20, row % 9))));
    place.write("i.csv", format!("id,v\n{}", rows(n, |row| format!("{},{}\n", row as i64 - 9, row))));
    place.write("f.csv", format!("id,v\n{}", rows(n, |row| format!("{row}.25,text {row}\n"))));
    place.write(
        "d.csv",
        format!("day,at\n{}", rows(27, |row| format!("2024-02-{:02},2024-02-01T10:00\n", row + 1))),
    );
    place.write("sha.txt", rows(n, |row| format!("{:016X}{:024x}:{}\r\n", mixed(row), row, row % 7)));
    place.write("k.tsv", rows(n, |row| format!("{}\t{}\n", dna(row), row % 1000)));
    place.write(
        "ip.csv",
        format!("ip,country\n{}", rows(n, |row| format!("{},C{}\n", address(row), row % 50))),
    );
    let networks = rows(200, |row| format!("10.{row}.0.0/16,{row}\n"));
    place.write("net.csv", format!("net,v\n{networks}"));
    let ranges = rows(200, |row| format!("10.{row}.0.0,10.{row}.9.255,X{}\n", row % 9));
    place.write("ranges.csv", format!("first,last,country\n{ranges}"));
    let uuid = |row: u64| format!("{:08x}-89ab-4def-8123-{:012x}", mixed(row) >> 32, row);
    place.write("u.csv", format!("id,v\n{}", rows(n, |row| format!("{},{row}\n", uuid(row)))));
    place.write(
        "it's a table.csv",
        format!("word,v\n{}", rows(n, |row| format!("w {}é,{row}\n", mixed(row)))),
    );
    let three =
        rows(n, |row| format!("{},{},2024-01-{:02},{}\n", row % 90, mixed(row) >> 40, row % 28 + 1, row));
    place.write("three.csv", format!("a,b,day,c\n{three}"));
    place.write("null.csv", format!("id,v\n1,\n{}", rows(n, |row| format!("{},{row}\n", row + 2))));
    place.write("r.ndjson", rows(n, |row| format!("{{\"id\":{row},\"v\":\"x{}\"}}\n", row % 9)));
    place.write(
        "r.raw",
        (0..n).flat_map(|row| [mixed(row).to_le_bytes(), row.to_le_bytes()].concat()).collect::<Vec<u8>>(),
    );
    fs::create_dir(place.at("parts")).expect("a folder");
    for part in 0..3 {
        place.write(
            &format!("parts/{part}.csv"),
            format!("id,v\n{}", rows(n, |row| format!("{},1\n", row * 3 + part))),
        );
    }
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&fs::read(place.at("n.csv")).expect("a table")).expect("packed");
    place.write("p.csv.gz", packed.finish().expect("packed"));
    for (table, typed) in [("n.csv", "n.parquet"), ("ip.csv", "texts.arrow")] {
        let types = ["--key-type", if table == "n.csv" { "i64" } else { "utf8" }];
        let value = ["--value-type", if table == "n.csv" { "f64" } else { "utf8" }];
        place.done(&[&["build", table, "-o", "t", "-q"], &types[..], &value].concat());
        place.done(&["export", "t", "-o", typed]);
        fs::remove_file(place.at("t")).expect("removed");
    }
    // Of one column: keys without values.
    place.write("one.csv", format!("id\n{}", rows(n, |row| format!("{}\n", row * 5))));
    place.write("list.csv", rows(n, |row| format!("word {}\n", mixed(row))));
    let tables: [(&[&str], &[&str]); 27] = [
        (&["one.csv"], &["-o one.pleach", "--key-type u64"]),
        (&["list.csv", "--no-header"], &["--key-type utf8", "--no-header"]),
        (&["n.csv"], &["-o n.pleach", "--key-type u64", "--value-type f64"]),
        (&["i.csv"], &["--key-type i64", "--value-type u64"]),
        (&["f.csv"], &["--key-type f64", "--value-type utf8"]),
        (&["d.csv"], &["--key-type date", "--value-type 'timestamp[us]'"]),
        (
            &["sha.txt", "--format", "csv", "--delimiter", ":", "--no-header"],
            &["--key-type hex", "--value-type u64"],
        ),
        (&["k.tsv", "--no-header"], &["--key-type dna2", "--value-type u64", "--no-header"]),
        (&["k.tsv", "--no-header", "--key-type", "dna2:canonical"], &["--key-type dna2:canonical"]),
        (&["ip.csv"], &["--key-type ipv4", "--value-type utf8"]),
        (&["ip.csv", "--key-type", "prefix:auto"], &["--key-type prefix:auto"]),
        (&["net.csv"], &["--key-type cidr", "--value-type u64"]),
        (&["ranges.csv", "--interval", "last"], &["--key-type ipv4", "--value-type utf8", "--interval last"]),
        (&["u.csv"], &["--key-type uuid"]),
        (&["it's a table.csv", "-o", "o"], &["-o o", "--key-type utf8"]),
        (&["three.csv", "--key", "a,day"], &["--key-type u64,date", "--value-type u64"]),
        (&["three.csv", "--value", "b,day,c"], &["--key-type u64", "--value-type u64,date,u64"]),
        (&["three.csv", "--value", "@row"], &["--value @row"]),
        (&["three.csv", "--unique", "last"], &["--unique last"]),
        (&["null.csv", "--nulls", "skip"], &["--nulls skip"]),
        (
            &["null.csv", "--nulls", "default=7", "--memory", "128M"],
            &["--nulls default=7", "--memory 134217728"],
        ),
        (&["r.ndjson"], &["-o r.pleach"]),
        (&["r.raw", "--raw", "u64,u64"], &["--raw u64,u64"]),
        (&["parts"], &["build parts", "-o parts.pleach"]),
        (&["parts/*.csv", "-o", "all.pleach"], &["build 'parts/*.csv'"]),
        (&["p.csv.gz"], &["-o p.pleach", "--value-type f64"]),
        (&["n.parquet"], &["-o n.pleach"]),
    ];
    for (args, expected) in tables {
        keeps_its_word(&place, args, expected);
    }
    keeps_its_word(&place, &["texts.arrow"], &["--key-type ipv4"]);
}

#[test]
fn every_choice_can_be_built() {
    let place = Place::new();
    place.write("w.csv", format!("word,v\n{}", rows(5000, |row| format!("word {},{row}\n", mixed(row)))));
    place.write("n.csv", format!("id,v\n{}", rows(5000, |row| format!("{},{row}\n", mixed(row)))));
    for (table, least) in [("w.csv", 7), ("n.csv", 7)] {
        let advice = place.json(&["advise", table, "-o", "t"]);
        let choices = advice["choices"].as_array().expect("choices");
        // On a machine that does much else there is no time for all.
        assert!(choices.len() >= least || advice["complete"] == false, "{table}: {advice}");
        for choice in choices {
            let command = choice["command"].as_str().expect("a command");
            place.shell(&format!("{command} -q"), "");
            let built = fs::metadata(place.at("t")).expect("the file").len();
            assert_eq!(number(&choice["file_bytes"]), built, "{command}");
        }
    }
    let layouts = |advice: &Value| -> Vec<String> {
        let choices = advice["choices"].as_array().expect("choices");
        choices.iter().map(|choice| choice["layout"].as_str().expect("a layout").to_owned()).collect()
    };
    let numbers = place.json(&["advise", "n.csv"]);
    let (is_complete, numbers) = (numbers["complete"] == true, layouts(&numbers));
    for layout in ["lines,spine,grid", "lines,spine", "lines,spine,grid,columns", "lines,spine,grid,packed"] {
        assert!(!is_complete || numbers.iter().any(|one| one == layout), "{layout} is not in {numbers:?}");
    }
    // Texts are not packed, and have shorter keys.
    let texts = place.json(&["advise", "w.csv"]);
    assert!(layouts(&texts).iter().all(|layout| !layout.contains("packed")));
    let is_approximate = |choice: &Value| choice["approximate"] == true;
    let has_shorter = texts["choices"].as_array().expect("choices").iter().any(is_approximate);
    assert!(has_shorter || texts["complete"] == false, "{texts}");
}

#[test]
fn a_dry_run_says_what_the_build_does() {
    let place = Place::new();
    place.write(
        "t.csv",
        format!("id,v\n{}", rows(20_000, |row| format!("{},{}\n", mixed(row) >> 30, row % 1000))),
    );
    for options in [
        &[][..],
        &["--layout", "lines,spine"],
        &["--layout", "lines,spine,columns,packed"],
        &["--layout", "lines,fast:auto"],
        &["--value-type", "none"],
        &["--key", "v", "--value", "id", "--unique", "first"],
        &["--key-type", "utf8", "--value-type", "utf8", "--values", "plain"],
        &["--key-type", "hash64"],
        &["--memory", "64M", "--threads", "1"],
    ] {
        let args = [&["build", "t.csv", "-o", "t.pleach"], options].concat();
        let said = place.json(&[&args[..], &["--dry-run"]].concat());
        assert_eq!(place.names(), [place.at("t.csv")], "{options:?} writes");
        assert_eq!(
            (&said["schema"], said["choices"].as_array().map(Vec::len)),
            (&"pleach.dry-run.v1".into(), Some(1))
        );
        let built = place.json(&args);
        let said = &said["choices"][0];
        for name in ["file_bytes", "tuples", "bytes_per_tuple"] {
            assert_eq!(said[name], built[name], "{options:?}: {name}");
        }
        let measured = &place.json(&["advise", "t.pleach"])["choices"][0];
        assert_eq!((&said["layout"], &said["key_type"]), (&measured["layout"], &measured["key_type"]));
        // The line of the command has the same options.
        fs::remove_file(place.at("t.pleach")).expect("removed");
        place.shell(said["command"].as_str().expect("a command"), "");
        assert_eq!(fs::metadata(place.at("t.pleach")).expect("a file").len(), number(&built["file_bytes"]));
        fs::remove_file(place.at("t.pleach")).expect("removed");
    }
}

#[test]
fn people_get_a_table_and_a_command() {
    let place = Place::new();
    place.write("t.csv", format!("id,v\n{}", rows(5000, |row| format!("{row},x\n"))));
    let text = place.done(&["advise", "t.csv"]);
    let line = "pleach build t.csv -o t.pleach --key-type u64 --value-type utf8";
    assert!(
        text.starts_with("t.csv: 5,000 rows, in order; ") && text.ends_with(&format!("\n\n{line}\n")),
        "{text}"
    );
    for word in
        ["u64 to utf8\n", "layout ", "bytes/tuple", "ns/look-up", "GPU pays after", "\nlines,spine,grid "]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains('~'), "nothing is estimated: {text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert_eq!(place.done(&["advise", "t.csv", "--quiet"]), format!("{line}\n"));
    place.shell(
        "sh -c \"$(pleach advise t.csv --quiet)\" && pleach get t.pleach 7 && pleach advise t.pleach",
        "",
    );
    let measured = place.done(&["advise", "t.pleach"]);
    assert!(measured.contains("u64 to utf8") && !measured.contains("pleach build"), "{measured}");
}

#[test]
fn no_rows_are_no_reason_to_fail() {
    let place = Place::new();
    place.write("t.csv", "id,v\n");
    let advice = place.json(&["advise", "t.csv"]);
    let first = &advice["choices"][0];
    assert_eq!((number(&advice["rows"]), number(&first["tuples"])), (0, 0));
    assert!(first["look_up_ns"].is_null() && first["gpu_pays_after"].is_null(), "{first}");
    place.shell(advice["command"].as_str().expect("a command"), "");
    let bytes = fs::metadata(place.at("t.pleach")).expect("a file").len();
    assert_eq!(number(&first["file_bytes"]), bytes);
    assert!(place.done(&["advise", "t.pleach"]).contains(" - "), "there is nothing to look up");
}

#[test]
fn standard_input_is_read_once() {
    let place = Place::new();
    let table = format!("id,v\n{}", rows(4000, |row| format!("{},{row}\n", mixed(row))));
    place.shell("pleach advise - --format csv --json > advice", &table);
    let advice: Value = serde_json::from_slice(&fs::read(place.at("advice")).expect("advice")).expect("JSON");
    let command = advice["command"].as_str().expect("a command");
    assert!(command.starts_with("pleach build - -o table.pleach"), "{command}");
    place.shell(command, &table);
    let bytes = fs::metadata(place.at("table.pleach")).expect("a file").len();
    assert_eq!(number(&advice["choices"][0]["file_bytes"]), bytes);
    place.shell("pleach build - --format csv -o t --dry-run -q", &table);
    place.shell(
        "mkfifo pipe && exec 3<&0 && { cat <&3 > pipe & } && pleach advise pipe --format csv -q",
        &table,
    );
    let refused = place.run(&["advise", "-", "advice", "--format", "csv"]);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(8) && error.contains("a stream among other inputs"), "{error}");
}

/// Runs a command whose standard input never ends, and returns its output and the bytes that it took.
fn endless(place: &Place, args: &[&str], row: impl Fn(u64) -> String) -> (Output, u64) {
    let mut command = place.command("pleach");
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    let (mut sent, mut at) = (0, 0);
    loop {
        let block = rows(1000, |row_of| row(at + row_of));
        at += 1000;
        // The command does not wait for the end.
        if pipe.write_all(block.as_bytes()).is_err() || sent > 2 * READ_BYTES {
            break;
        }
        sent += block.len() as u64;
    }
    drop(pipe);
    (child.wait_with_output().expect("ends"), sent)
}

#[test]
fn no_more_is_read_than_it_says() {
    let place = Place::new();
    let text = "x".repeat(400);
    let row = |at: u64| format!("{},{text}{at}\n", mixed(at));
    let started = Instant::now();
    let args = ["advise", "-", "--format", "csv", "--no-header", "--json"];
    let (output, sent) = endless(&place, &args, row);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(started.elapsed() < TIME + MORE, "{:?}", started.elapsed());
    // The pipe holds some, too.
    assert!(sent <= READ_BYTES + (2 << 20), "{sent}");
    let advice: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(advice["rows_are"], "at-least");
    assert!(number(&advice["read_bytes"]) <= READ_BYTES);

    // What is behind the limit is no table.
    let mut file = File::create(place.at("large.csv")).expect("a file");
    writeln!(file, "id,v").expect("written");
    for at in 0..170_000 {
        file.write_all(row(at).as_bytes()).expect("written");
    }
    writeln!(file, "neither number nor text").expect("written");
    drop(file);
    for args in [
        &["advise", "large.csv"][..],
        &["build", "large.csv", "-o", "t", "--value-type", "utf8", "--dry-run"],
    ] {
        let started = Instant::now();
        let advice = place.json(args);
        assert!(started.elapsed() < TIME + MORE, "{args:?}: {:?}", started.elapsed());
        assert_eq!(advice["rows_are"], "about");
        let told = number(&advice["rows"]);
        assert!(
            (165_000..175_000).contains(&told) && number(&advice["read_bytes"]) <= READ_BYTES,
            "{advice}"
        );
        assert_eq!(advice["choices"][0]["bytes_are_estimated"], true);
    }
    let refused = place.run(&["build", "large.csv", "-o", "t", "--value-type", "utf8"]);
    assert_eq!(refused.status.code(), Some(8), "the build finds it");
}

#[test]
fn no_size_takes_longer() {
    let place = Place::new();
    // A tebibyte of which the disk has nothing.
    File::create(place.at("t.raw")).expect("a file").set_len(1 << 40).expect("a sparse file");
    let started = Instant::now();
    let said =
        place.json(&["build", "t.raw", "--raw", "u64,u64", "-o", "t", "--memory", "128M", "--dry-run"]);
    assert!(started.elapsed() < TIME + MORE, "{:?}", started.elapsed());
    assert_eq!((number(&said["rows"]), &said["rows_are"]), (1 << 36, &"exact".into()));
    let bytes = number(&said["choices"][0]["file_bytes"]);
    assert!(((1u64 << 39)..(1 << 41)).contains(&bytes), "{bytes}");
    assert_eq!(place.names().len(), 1);
}

#[test]
fn larger_tables_are_made_up() {
    let place = Place::new();
    let count = 6 << 20;
    for (key, spread) in [(mixed as fn(u64) -> u64, "random"), (|row| row * 3 + (row & 1), "ascending")] {
        let tuples: Vec<u8> =
            (0..count).flat_map(|row| [key(row).to_le_bytes(), row.to_le_bytes()].concat()).collect();
        assert!(tuples.len() as u64 > READ_BYTES);
        place.write("t.raw", tuples);
        let args = ["build", "t.raw", "--raw", "u64,u64", "-o", "t.pleach"];
        let said = place.json(&[&args[..], &["--dry-run"]].concat());
        assert_eq!((number(&said["rows"]), &said["rows_are"]), (count, &"exact".into()), "{spread}");
        let bytes = number(&place.json(&args)["file_bytes"]);
        let told = number(&said["choices"][0]["file_bytes"]);
        assert!(told.abs_diff(bytes) <= bytes / 10, "{spread}: {told}, not {bytes}");
        assert_eq!(said["choices"][0]["bytes_are_estimated"], true);
    }
}

#[test]
fn bad_input_is_refused_as_a_build_does() {
    let place = Place::new();
    place.write("t.csv", "id,v\n1,2\nx,3\n");
    place.write("null.csv", "id,v\n1,2\n,3\n");
    place.write("data.csv", "1,2\n3,4\n");
    place.write("ragged.csv", "id,v\n1,2\n3\n");
    place.write("other", "no index");
    place.write("t.txt", "id,v\n");
    place.write("none.csv", "");
    place.write("twice.csv", "id,v\n1,2\n1,3\n");
    place.write("cross.csv", "a,b\n1,5\n3,9\n");
    let given = ["--key-type", "u64", "--value-type", "u64"];
    let cases: [(&[&str], &str); 14] = [
        (&["t.csv", given[0], given[1]], "row 2"),
        (&["null.csv"], "null"),
        (&["data.csv"], "may be data or a header"),
        (&["ragged.csv"], "row 2"),
        (&["missing.csv"], "missing.csv"),
        (&["t.csv", "--key", "none"], "no column"),
        (&["t.txt"], "unknown extension"),
        (&["none.csv"], "empty"),
        (&["-"], "unknown format"),
        (&["t.csv", "--raw", "u64", "--format", "csv"], "--raw"),
        (&["t.csv", "--key-type", "u46"], "u46"),
        (&["twice.csv", "--unique", "error"], "duplicate"),
        (&["cross.csv", "--interval", "b"], "overlap"),
        (&["p*.csv"], "p*.csv"),
    ];
    for (args, word) in cases {
        let build = place.run(&[&["build", "-o", "t"], args].concat());
        let error = String::from_utf8_lossy(&build.stderr).into_owned();
        assert!(error.contains(word) && !build.status.success(), "{args:?}: {error}");
        for other in [&["advise", "-o", "t"][..], &["build", "--dry-run", "-o", "t"]] {
            let output = place.run(&[other, args].concat());
            let told = String::from_utf8_lossy(&output.stderr).replace("pleach advise", "pleach build");
            assert_eq!(
                (told, output.status.code()),
                (error.clone(), build.status.code()),
                "{other:?} {args:?}"
            );
            assert!(output.stdout.is_empty());
        }
    }
    // The output may not be replaced, or is an input.
    for output in ["other", "twice.csv"] {
        let error = |args: &[&str]| String::from_utf8_lossy(&place.run(args).stderr).into_owned();
        let build = error(&["build", "twice.csv", "-o", output]);
        assert!(!build.is_empty());
        assert_eq!(error(&["advise", "twice.csv", "-o", output]), build);
        assert_eq!(error(&["build", "twice.csv", "-o", output, "--dry-run"]), build);
    }
    // A text in a later row than those that are tried at first.
    let late = rows(160_000, |row| format!("{row},7\n"));
    place.write("late.csv", format!("id,v\n{late}seven,7\n"));
    let command = place.done(&["advise", "late.csv", "-q"]);
    assert!(command.contains("--key-type utf8 --value-type u64"), "{command}");
}
