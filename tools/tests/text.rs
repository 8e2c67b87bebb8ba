//! Text as the command line takes it: one table of rules over every command and way that reads text.
//!
//! The rules of lines, marks and compression are in `pleach_input::text`, whose own tests go through the
//! library; here it is checked that every command reads through it.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("writes");
    encoder.finish().expect("ends")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("writes")
}

fn halves(text: &str, pack: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let (one, two) = text.as_bytes().split_at(text.len() / 2);
    [pack(one), pack(two)].concat()
}

fn cut(mut bytes: Vec<u8>, left_out: usize) -> Vec<u8> {
    bytes.truncate(bytes.len() - left_out);
    bytes
}

/// A rule: its name, what it makes of lines that end in line feeds, and what comes of them: their rows, or
/// an error that says so.
type Rule = (&'static str, fn(&str) -> Vec<u8>, Result<(), &'static str>);

const RULES: &[Rule] = &[
    ("as it is", |text| text.into(), Ok(())),
    ("no last line feed", |text| text.trim_end().into(), Ok(())),
    ("byte order mark", |text| format!("\u{feff}{text}").into(), Ok(())),
    ("CRLF", |text| text.replace('\n', "\r\n").into(), Ok(())),
    ("CR", |text| text.replace('\n', "\r").into(), Ok(())),
    ("CR but the last", |text| text.trim_end().replace('\n', "\r").into(), Ok(())),
    ("blank lines", |text| format!("\n{}\n\n", text.replace('\n', "\n\n")).into(), Ok(())),
    ("blank lines with CRLF", |text| text.replace('\n', "\r\n\r\n").into(), Ok(())),
    ("gzip", |text| gzip(text.as_bytes()), Ok(())),
    ("gzip in two members", |text| halves(text, gzip), Ok(())),
    (
        "gzip of a mark and CRLF",
        |text| gzip(format!("\u{feff}{}", text.replace('\n', "\r\n")).as_bytes()),
        Ok(()),
    ),
    ("zstd", |text| zstd(text.as_bytes()), Ok(())),
    ("zstd in two frames", |text| halves(text, zstd), Ok(())),
    ("UTF-16", |_| b"\xff\xfe1\0\n\0".to_vec(), Err("it is UTF-16: convert it to UTF-8")),
    (
        "a CR among LF",
        |text| text.replacen('\n', "\r", 2).replacen('\r', "\n", 1).into(),
        Err("carriage return without a line feed"),
    ),
    ("LF among CR", |text| text.replacen('\n', "\r", 1).into(), Err("carriage return without a line feed")),
    ("gzip that is cut off", |text| cut(gzip(text.as_bytes()), 9), Err("its gzip stream is truncated")),
    ("zstd that is cut off", |text| cut(zstd(text.as_bytes()), 4), Err("its zstd stream is truncated")),
    (
        "gzip that is damaged",
        |text| {
            let mut bytes = gzip(text.as_bytes());
            let at = bytes.len() - 7;
            bytes[at] ^= 0x10;
            bytes
        },
        Err("its gzip stream is damaged"),
    ),
    ("gzip of gzip", |text| gzip(&gzip(text.as_bytes())), Err("compressed with gzip a second time")),
    ("bzip2", |_| b"BZh91AY&SY\x12\x34\x56".to_vec(), Err("its bzip2 stream is ")),
    ("xz", |_| b"\xfd7zXZ\0\0\x04".to_vec(), Err("its xz stream is ")),
    ("lz4", |_| b"\x04\x22\x4d\x18\x64".to_vec(), Err("its lz4 stream is ")),
    ("ZIP", |_| b"PK\x03\x04\x14\0\0".to_vec(), Err("a ZIP archive (or an Excel workbook), not text")),
    ("Parquet", |_| b"PAR1\x15\x04\x15".to_vec(), Err("a Parquet file, not text")),
    ("Arrow", |_| b"ARROW1\0\0\xff\xff\xff\xff".to_vec(), Err("an Arrow IPC file, not text")),
    ("NUL", |text| text.replacen('2', "2\0", 1).into(), Err("whole number")),
];

/// A folder with `base.pleach`, of the keys 1, 2, 3 and 9.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().expect("a temporary folder"));
        place.write("base.csv", b"id,v\n1,1\n2,2\n3,3\n9,9\n");
        place.good(&["build", "base.csv", "-o", "base.pleach", "-q"]);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).expect("a file");
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    /// Runs with `input` as standard input, or in a pipe of this name.
    fn run(&self, args: &[&str], input: Option<&[u8]>, pipe: Option<&str>) -> Output {
        let mut command = self.command(args);
        let bytes = input.unwrap_or_default().to_vec();
        // Nobody waits for these writers: a command that ends early lets them hang or fail.
        if let Some(name) = pipe {
            let path = self.path(name);
            let _ = fs::remove_file(&path);
            assert!(Command::new("mkfifo").arg(&path).status().expect("runs").success());
            std::thread::spawn(move || fs::write(path, bytes));
        } else if input.is_some() {
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("a child");
            let mut stdin = child.stdin.take().expect("a pipe");
            std::thread::spawn(move || stdin.write_all(&bytes));
            return child.wait_with_output().expect("a run");
        }
        command.output().expect("a run")
    }

    fn good(&self, args: &[&str]) -> String {
        let output = self.run(args, None, None);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// One line on standard error, and this exit code.
    fn refused(&self, args: &[&str], code: i32, parts: &[&str]) {
        let output = self.run(args, None, None);
        said(&output, code, parts, &format!("{args:?}"));
    }

    fn all(&self, file: &str) -> String {
        self.good(&["range", file, "..", ".."])
    }
}

fn said(output: &Output, code: i32, parts: &[&str], what: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{what}: {text}");
    let line = text.strip_suffix('\n').unwrap_or(&text);
    assert!(line.starts_with("error: ") && !line.contains('\n'), "{what}: {text}");
    for part in parts {
        assert!(line.contains(part), "{what}: {part:?} is not in {line}");
    }
}

/// A way to text: its name; the lines it wants; and what it does with them, which ends in what it says and
/// the rows that came of it.
type Way = (&'static str, &'static str, fn(&Place, &[u8]) -> (Output, String));

const TABLE: &str = "id,v\n1,10\n2,20\n3,30\n";
const KEYS: &str = "1\n2\n3\n";
const CHANGES: &str = "op,v,id\nput,10,1\nput,20,2\nput,30,3\n";

fn built(place: &Place, args: &[&str], input: Option<&[u8]>, pipe: Option<&str>) -> (Output, String) {
    let _ = fs::remove_file(place.path("o.pleach"));
    let output = place.run(&[&["build", "-o", "o.pleach", "-q"], args].concat(), input, pipe);
    if output.status.success() {
        return (output, place.all("o.pleach"));
    }
    // Nothing partial is left.
    assert!(!place.path("o.pleach").exists());
    (output, String::new())
}

fn applied(place: &Place, args: &[&str], input: Option<&[u8]>, pipe: Option<&str>) -> (Output, String) {
    fs::copy(place.path("base.pleach"), place.path("r.pleach")).expect("a copy");
    let output = place.run(&[&["rebuild", "r.pleach", "-q", "--apply"], args].concat(), input, pipe);
    if output.status.success() {
        return (output, place.all("r.pleach").replace("9\t9\n", ""));
    }
    assert!(
        fs::read(place.path("r.pleach")).expect("there")
            == fs::read(place.path("base.pleach")).expect("there")
    );
    (output, String::new())
}

fn got(place: &Place, args: &[&str], input: Option<&[u8]>, pipe: Option<&str>) -> (Output, String) {
    let output = place.run(&[&["get", "base.pleach", "--keys"], args].concat(), input, pipe);
    // The same rows as elsewhere.
    let rows = String::from_utf8_lossy(&output.stdout).replace('\n', "0\n");
    (output, rows)
}

const WAYS: &[Way] = &[
    ("build", TABLE, |place, bytes| {
        place.write("t.csv", bytes);
        built(place, &["t.csv"], None, None)
    }),
    ("build -", TABLE, |place, bytes| built(place, &["-", "--format", "csv"], Some(bytes), None)),
    ("build of a pipe", TABLE, |place, bytes| built(place, &["p.csv"], Some(bytes), Some("p.csv"))),
    ("build of several", TABLE, |place, bytes| {
        place.write("a.csv", b"v,id\n");
        place.write("t.csv", bytes);
        built(place, &["a.csv", "t.csv", "--key", "id", "--value", "v"], None, None)
    }),
    ("build of TSV", "id\tv\n1\t10\n2\t20\n3\t30\n", |place, bytes| {
        place.write("t.tsv", bytes);
        built(place, &["t.tsv"], None, None)
    }),
    ("get --keys", KEYS, |place, bytes| {
        place.write("keys", bytes);
        got(place, &["keys"], None, None)
    }),
    ("get --keys -", KEYS, |place, bytes| got(place, &["-"], Some(bytes), None)),
    ("get --keys of a pipe", KEYS, |place, bytes| got(place, &["p"], Some(bytes), Some("p"))),
    ("rebuild --apply", CHANGES, |place, bytes| {
        place.write("c.csv", bytes);
        applied(place, &["c.csv"], None, None)
    }),
    ("rebuild --apply -", CHANGES, |place, bytes| {
        applied(place, &["-", "--format", "csv"], Some(bytes), None)
    }),
    ("rebuild --apply of a pipe", CHANGES, |place, bytes| {
        applied(place, &["p.csv"], Some(bytes), Some("p.csv"))
    }),
];

#[test]
fn every_command_reads_text_by_the_same_rules() {
    let place = Place::new();
    for (way, lines, run) in WAYS {
        for (rule, change, expected) in RULES {
            let what = format!("{way}, {rule}");
            let (output, rows) = run(&place, &change(lines));
            match expected {
                Ok(()) => {
                    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
                    assert_eq!(rows, "1\t10\n2\t20\n3\t30\n", "{what}");
                }
                Err(text) => said(&output, 8, &[text], &what),
            }
        }
    }
}

#[test]
fn lists_of_keys_may_have_a_header() {
    let place = Place::new();
    place.write("keys", b"\nid\n\n1\n2\n");
    assert_eq!(place.good(&["get", "base.pleach", "--keys", "keys"]), "1\t1\n2\t2\n");
    place.write("keys", b"customer\n1\n");
    let parts = [
        "'customer' is not a u64 key: keys: line 1: remove the line if it is a header, else give a whole number",
    ];
    place.refused(&["get", "base.pleach", "--keys", "keys"], 8, &parts);
    place.write("keys", b"1\nid\n");
    let output = place.run(&["get", "base.pleach", "--keys", "keys"], None, None);
    said(&output, 8, &["'id' is not a u64 key: keys: line 2: give a whole number"], "a name among keys");
    // A text is a key, whatever it says.
    place.write("t.csv", b"name\nname\nb\n");
    place.good(&["build", "t.csv", "-o", "t.pleach", "--key-type", "utf8", "-q"]);
    place.write("keys", b"name\r\n\r\nb\r\n");
    assert_eq!(place.good(&["get", "t.pleach", "--keys", "keys"]), "name\nb\n");
    place.write("keys", b"b\nna\rme\n");
    let output = place.run(&["get", "t.pleach", "--keys", "keys"], None, None);
    said(&output, 8, &["carriage return without a line feed: keys: line 2: "], "CR in a key");
    // Ids as tables write them that lacked one; in byte keys a point is a point.
    place.write("keys", b"id\n1.0\n2.00\n");
    assert_eq!(place.good(&["get", "base.pleach", "--keys", "keys"]), "1\t1\n2\t2\n");
    place.write("keys", b"1.5\n");
    place.refused(&["get", "base.pleach", "--keys", "keys"], 8, &["'1.5' is not a u64 key"]);
    place.write("b.csv", b"name\n12\n");
    place.good(&["build", "b.csv", "-o", "b.pleach", "--key-type", "bytes2", "-q"]);
    place.write("keys", b"12.0\n");
    place.refused(&["get", "b.pleach", "--keys", "keys"], 8, &["'12.0' is not a bytes2 key"]);
    place.refused(&["get", "base.pleach", "--keys", "."], 8, &["is a folder"]);
}

#[test]
fn parts_of_a_table_are_built_with_one_option() {
    let place = Place::new();
    for (part, text) in
        [("part-aa.csv", "id,v\n1,10\n"), ("part-ab.csv", "2,20\n3,30\n"), ("part-ac.csv", "4,40\n")]
    {
        place.write(part, text.as_bytes());
    }
    let build = |more: &[&'static str]| {
        let parts = ["build", "part-aa.csv", "part-ab.csv", "part-ac.csv", "-o", "o.pleach", "-q"];
        [&parts[..], more].concat()
    };
    place.refused(
        &build(&[]),
        8,
        &["part-ab.csv: first line: \"2,20\"", "part-aa.csv", "--header=first", "--no-header"],
    );
    place.good(&build(&["--header=first"]));
    assert_eq!(place.all("o.pleach"), "1\t10\n2\t20\n3\t30\n4\t40\n");
    place.good(&build(&["--header=first", "--key", "v", "--value", "id"]));
    assert_eq!(place.all("o.pleach"), "10\t1\n20\t2\n30\t3\n40\t4\n");
    place.refused(&build(&["--header=second"]), 2, &["second", "each", "first"]);
    place.refused(&build(&["--header", "--no-header"]), 2, &["--no-header"]);
}

#[test]
fn a_first_line_of_data_is_refused() {
    let place = Place::new();
    place.write("n.tsv", b"1\t2\n3\t4\n");
    place.refused(
        &["build", "n.tsv", "-o", "o.pleach"],
        8,
        &["n.tsv: first line: ", "--no-header", "--header"],
    );
    place.good(&["build", "n.tsv", "-o", "o.pleach", "-q", "--no-header"]);
    assert_eq!(place.all("o.pleach"), "1\t2\n3\t4\n");
    place.good(&["build", "n.tsv", "-o", "o.pleach", "-q", "--header"]);
    assert_eq!(place.all("o.pleach"), "3\t4\n");
    // A text can be anything, so the number decides; without one, nothing does.
    place.refused(&["build", "n.tsv", "-o", "o.pleach", "--key-type", "utf8"], 8, &["n.tsv: first line: "]);
    let texts = ["build", "n.tsv", "-o", "o.pleach", "-q", "--key-type", "utf8", "--value-type", "utf8"];
    place.good(&texts);
    assert_eq!(place.all("o.pleach"), "3\t4\n");
    // Digits of bytes decide as numbers do.
    place.write("hex.csv", b"aabb,x\nccdd,y\n");
    let digits = ["build", "hex.csv", "-o", "o.pleach", "--key-type", "hex", "--value-type", "utf8"];
    place.refused(&digits, 8, &["hex.csv: first line: \"aabb,x\"", "--no-header"]);
    let before = fs::read(place.path("base.pleach")).expect("there");
    place.write("c.csv", b"put,1,11\nput,2,22\n");
    place.refused(
        &["rebuild", "base.pleach", "--apply", "c.csv"],
        8,
        &["c.csv: first line: \"put,1,11\"", "--no-header"],
    );
    assert!(fs::read(place.path("base.pleach")).expect("there") == before);
    place.good(&["rebuild", "base.pleach", "--apply", "c.csv", "--no-header", "-q"]);
    assert_eq!(place.all("base.pleach"), "1\t11\n2\t22\n3\t3\n9\t9\n");
    place.write("c.csv", b"op,customer,v\nput,1,11\n");
    place.refused(&["rebuild", "base.pleach", "--apply", "c.csv"], 8, &["\"id\"", "\"customer\"", "--key"]);
    // The other way round than in the file: found by name.
    place.write("c.csv", b"op,v,id\nput,12,1\n");
    place.good(&["rebuild", "base.pleach", "--apply", "c.csv", "-q"]);
    assert_eq!(place.all("base.pleach"), "1\t12\n2\t22\n3\t3\n9\t9\n");
}

#[test]
fn digits_are_bytes_where_that_is_said() {
    let place = Place::new();
    let digits = ["1202BA", "1203BA", "1F0000"];
    let table: String = digits.iter().zip(1..).map(|(digits, row)| format!("{digits}:{row}\r\n")).collect();
    place.write("h.txt", table.as_bytes());
    let build =
        ["build", "h.txt", "--format", "csv", "--delimiter", ":", "-o", "h.pleach", "-q", "--key-type"];
    let with = |more: &[&'static str]| [&build[..], more].concat();
    place.refused(&with(&["bytes6"]), 8, &["first line", "--no-header"]);
    let parts = ["row 1", "has 6 bytes and does not fit bytes3", "give --key-type hex"];
    place.refused(&with(&["bytes3", "--no-header"]), 8, &parts);
    // Text of six characters: by its characters.
    place.good(&with(&["bytes6", "--no-header"]));
    assert_eq!(place.good(&["range", "h.pleach", "--prefix", "120", "--count"]), "2\n");
    assert_eq!(place.good(&["range", "h.pleach", "--prefix", "1202B", "--count"]), "1\n");
    assert_eq!(place.good(&["range", "h.pleach", "--prefix", "\\x1202", "--count"]), "0\n");
    assert_eq!(place.good(&["range", "h.pleach", "--prefix", "3132", "--count"]), "2\n");
    // Bytes: by digits, possibly an odd number of them.
    let table: String = digits.iter().zip(1..).map(|(digits, row)| format!("\\x{digits},{row}\n")).collect();
    place.write("b.csv", table.as_bytes());
    for key_type in ["bytes3", "bytes"] {
        place.good(&["build", "b.csv", "-o", "b.pleach", "-q", "--key-type", key_type, "--no-header"]);
        for (prefix, count) in [
            ("12", "2\n"),
            ("1", "3\n"),
            ("120", "2\n"),
            ("1202b", "1\n"),
            ("1F", "1\n"),
            ("2", "0\n"),
            ("", "3\n"),
            ("\\x120", "2\n"),
        ] {
            let found = place.good(&["range", "b.pleach", "--prefix", prefix, "--count"]);
            assert_eq!(found, count, "{key_type} {prefix}");
        }
    }
    place.refused(&["range", "b.pleach", "--prefix", "xyz"], 2, &["hexadecimal digits"]);
}

#[test]
fn whole_floats_are_integers() {
    let place = Place::new();
    place.write("t.csv", b"id,v\n1.0,-10.000\n20.0,11\n");
    for (key_type, value_type) in [("u64", "i64"), ("u32", "i32"), ("i64", "i32"), ("u128", "i64")] {
        let types = ["--key-type", key_type, "--value-type", value_type];
        place.good(&[&["build", "t.csv", "-o", "t.pleach", "-q"], &types[..]].concat());
        assert_eq!(place.all("t.pleach"), "1\t-10\n20\t11\n");
    }
    for bad in ["1.5", "1.", ".0", "1e3", "1.0.0"] {
        place.write("t.csv", format!("id,v\n{bad},1\n").as_bytes());
        place.refused(&["build", "t.csv", "-o", "x.pleach"], 8, &["row 1", "not a whole number", bad]);
    }
}

#[test]
fn what_is_no_table_is_named() {
    let place = Place::new();
    fs::create_dir_all(place.path("t/year=2024")).expect("a folder");
    place.write("t/year=2024/a.csv", b"id,v\n1,2\n");
    fs::create_dir(place.path("nothing")).expect("a folder");
    for input in ["t", "t/*", "t/*/*.csv", "t/year=2024/a.csv"] {
        place.good(&["build", input, "--value", "year", "-o", "y.pleach", "-q"]);
        assert_eq!(place.all("y.pleach"), "1\t2024\n", "{input}");
    }
    let nothing = "nothing: the folder holds no files";
    place.refused(&["build", "nothing", "-o", "o.pleach"], 8, &[nothing]);
    place.refused(&["rebuild", "base.pleach", "--apply", "nothing"], 8, &[nothing]);
    place.refused(
        &["build", "part-*.csv", "-o", "o.pleach"],
        8,
        &["part-*.csv", "no file matches this pattern"],
    );
    for (bytes, what) in [
        (gzip(b"id,v\n"), "it looks like gzip: give the --format of its content"),
        (b"PAR1\x15\x04".to_vec(), "it looks like a Parquet file: give --format parquet"),
        (b"BZh91AY&SY".to_vec(), "it looks like bzip2: give the --format of its content"),
        (b"text".to_vec(), "give --format, one of csv tsv ndjson parquet arrow"),
    ] {
        place.write("odd.data", &bytes);
        place.refused(&["build", "odd.data", "-o", "o.pleach"], 2, &["odd.data", what]);
        place.refused(&["rebuild", "base.pleach", "--apply", "odd.data"], 2, &["odd.data", what]);
    }
    // Packed files have the format of the name before, and are read where they are text.
    place.write("t.csv.gz", &gzip(b"id,v\n1,2\n"));
    place.good(&["build", "t.csv.gz", "-o", "o.pleach", "-q"]);
    assert_eq!(place.all("o.pleach"), "1\t2\n");
    place.write("t.parquet.gz", &gzip(b"PAR1"));
    place.refused(&["build", "t.parquet.gz", "-o", "o.pleach"], 8, &["not a readable Parquet file"]);
}
