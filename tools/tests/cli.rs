//! The command line as scripts see it: what goes to which stream, and every exit code.
//!
//! Each test runs the binary in a folder of its own.

use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Outcome of a run.
struct Run {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Run {
    /// Ended with this code; success and a missing key say nothing on standard error.
    fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    /// Standard output is exactly this.
    fn prints(self, text: &str) -> Self {
        assert_eq!(self.out, text, "stderr: {}", self.err);
        self
    }

    /// Nothing on standard output, exactly one line on standard error: this one.
    fn fails(self, code: i32, line: &str) -> Self {
        let run = self.ends(code);
        assert_eq!(run.err, format!("error: {line}\n"));
        assert_eq!(run.out, "");
        run
    }

    /// As [`Run::fails`], for lines with parts that depend on other crates.
    fn fails_with(self, code: i32, parts: &[&str]) -> Self {
        let run = self.ends(code);
        let line = run.err.strip_suffix('\n').unwrap_or_else(|| panic!("no line: {:?}", run.err));
        assert!(line.starts_with("error: ") && !line.contains('\n'), "{line}");
        for part in parts {
            assert!(line.contains(part), "{part:?} is not in {line:?}");
        }
        assert_eq!(run.out, "");
        run
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

/// A folder with files, in which commands run.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(name), bytes).expect("a file");
        self
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        finished(self.command(args).output().expect("a run"))
    }

    fn pipe(&self, input: &[u8], args: &[&str]) -> Run {
        let mut child = self.spawn(args, Stdio::piped());
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        // A command that ends early closes the pipe; its own exit code tells whether that is right.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let run = finished(child.wait_with_output().expect("a run"));
        writer.join().expect("a writer");
        run
    }

    fn spawn(&self, args: &[&str], stdin: Stdio) -> Child {
        let mut command = self.command(args);
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a child")
    }

    /// Builds `t.pleach`: keys 0, 10, .. 9990, values 0, 1, .. 999, u64 to u64.
    fn with_thousand(self) -> Self {
        let rows: String = (0..1000).map(|row| format!("{},{row}\n", row * 10)).collect();
        self.write("t.csv", format!("id,value\n{rows}"));
        self.run(&["build", "t.csv", "-o", "t.pleach", "--unique", "error"]).ends(0);
        self
    }

    /// Builds `s.pleach`: negative keys and repeated ones, i64 to f64.
    fn with_signed(self) -> Self {
        self.write("s.csv", "k,v\n-5,1.5\n7,0.1\n-1,1e300\n7,-2\n7,3\n");
        self.run(&["build", "s.csv", "-o", "s.pleach", "--key-type", "i64", "--value-type", "f64"]).ends(0);
        self
    }
}

fn finished(output: std::process::Output) -> Run {
    Run {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

// ---- get -------------------------------------------------------------------------------------

#[test]
fn get_prints_in_query_order() {
    let place = Place::new().with_thousand();
    place.run(&["get", "t.pleach", "30", "0", "9990"]).ends(0).prints("30\t3\n0\t0\n9990\t999\n");
    place.run(&["get", "t.pleach", "30", "5", "20"]).ends(1).prints("30\t3\n20\t2\n");
    place.run(&["get", "t.pleach", "5", "20", "--missing", "\\N"]).ends(1).prints("5\t\\N\n20\t2\n");
    place.run(&["get", "t.pleach", "30", "--rank"]).ends(0).prints("30\t3\n");
    place.run(&["get", "t.pleach", "007"]).ends(1).prints("");
}

#[test]
fn get_takes_negative_keys_and_repeated_ones() {
    let place = Place::new().with_signed();
    place.run(&["get", "s.pleach", "-5", "-1"]).ends(0).prints("-5\t1.5\n-1\t1e300\n");
    place.run(&["get", "s.pleach", "7", "-6"]).ends(1).prints("7\t0.1\n");
    place.run(&["get", "s.pleach", "7", "--all"]).ends(0).prints("7\t0.1\n7\t-2.0\n7\t3.0\n");
    place.run(&["get", "s.pleach", "7", "--all", "--rank"]).ends(0).prints("7\t2\n7\t3\n7\t4\n");
}

#[test]
fn get_reads_keys_from_files_and_pipes() {
    let place = Place::new().with_thousand();
    place.write("keys", "10\r\n20\n5\n30");
    place.run(&["get", "t.pleach", "--keys", "keys"]).ends(1).prints("10\t1\n20\t2\n30\t3\n");
    place.pipe(b"10\n20\n", &["get", "t.pleach", "--keys", "-"]).ends(0).prints("10\t1\n20\t2\n");
    place.pipe(b"", &["get", "t.pleach", "--keys", "-"]).ends(0).prints("");
    place.write("bad", "10\n20\nx\n30\n");
    let run = place.run(&["get", "t.pleach", "--keys", "bad"]).ends(8).prints("10\t1\n20\t2\n");
    let last = u64::MAX;
    assert_eq!(
        run.err,
        format!("error: 'x' is not a u64 key: bad: line 3: give a whole number from 0 to {last}\n")
    );
}

#[test]
fn get_streams_more_keys_than_are_verified_by_default() {
    let place = Place::new().with_thousand();
    let keys: String = (0..250_000).map(|i| format!("{}\n", i % 1000 * 10)).collect();
    let expected: String = (0..250_000).map(|i| format!("{}\t{}\n", i % 1000 * 10, i % 1000)).collect();
    place.write("keys", &keys);
    place.run(&["get", "t.pleach", "--keys", "keys"]).ends(0).prints(&expected);
    place.pipe(keys.as_bytes(), &["get", "t.pleach", "--keys", "-"]).ends(0).prints(&expected);
}

#[test]
fn get_answers_while_its_input_is_open() {
    let place = Place::new().with_thousand();
    let mut child = place.spawn(&["get", "t.pleach", "--keys", "-"], Stdio::piped());
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut stdout = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    for key in [30, 20] {
        writeln!(stdin, "{key}").expect("written");
        let mut line = String::new();
        std::io::BufRead::read_line(&mut stdout, &mut line).expect("an answer");
        assert_eq!(line, format!("{key}\t{}\n", key / 10));
    }
    drop(stdin);
    assert!(child.wait().expect("an end").success());
}

#[test]
fn get_prints_one_object_a_line() {
    let place = Place::new().with_thousand();
    let run = place.run(&["get", "t.pleach", "30", "5", "--json", "--missing", "a\"b"]).ends(1);
    run.prints("{\"key\":\"30\",\"value\":\"3\"}\n{\"key\":\"5\",\"missing\":\"a\\\"b\"}\n");
    let place = place.with_signed();
    place.run(&["get", "s.pleach", "-1", "--json"]).ends(0).prints("{\"key\":\"-1\",\"value\":1e300}\n");
    place.write("u.csv", "k,v\n4294967295,7\n");
    place.run(&["build", "u.csv", "-o", "u.pleach", "--key-type", "u32", "--value-type", "f32"]).ends(0);
    place
        .run(&["get", "u.pleach", "4294967295", "--json"])
        .ends(0)
        .prints("{\"key\":4294967295,\"value\":7.0}\n");
}

#[test]
fn keys_alone_print_without_a_tab() {
    let place = Place::new();
    place.write("k.csv", "k\n3\n1\n2\n");
    place.run(&["build", "k.csv", "-o", "k.pleach"]).ends(0);
    place.run(&["get", "k.pleach", "2", "9"]).ends(1).prints("2\n");
    place.run(&["get", "k.pleach", "2", "9", "--json"]).ends(1).prints("{\"key\":\"2\"}\n");
    place.run(&["get", "k.pleach", "2", "--rank"]).ends(0).prints("2\t1\n");
    place.run(&["range", "k.pleach", "..", ".."]).ends(0).prints("1\n2\n3\n");
}

#[test]
fn wrong_keys_are_usage_errors() {
    let place = Place::new().with_thousand();
    let give = "argument KEY: give a whole number from 0 to 18446744073709551615";
    place.run(&["get", "t.pleach", "1", "x"]).fails(2, &format!("'x' is not a u64 key: {give}"));
    place.run(&["get", "t.pleach", "-1"]).fails(2, &format!("'-1' is not a u64 key: {give}"));
    place.run(&["get", "t.pleach", ""]).fails(2, &format!("'' is not a u64 key: {give}"));
    let big = "18446744073709551616";
    place.run(&["get", "t.pleach", big]).fails(2, &format!("'{big}' is not a u64 key: {give}"));
}

#[test]
fn what_a_later_version_does_is_told() {
    let place = Place::new();
    place
        .run(&["get", "f", "1", "--device", "tpu"])
        .fails(2, "unknown device 'tpu': --device <DEVICE>: use auto, cpu, cuda or cuda:N");
    place.run(&["get", "f", "1", "--strategy", "shuffled"]).fails(
        2,
        "unknown strategy 'shuffled': --strategy <HOW>: use auto, one-by-one, unbuffered, buffered, sorted, \
         spine, grid, fast, harmonia or btree",
    );
    place.run(&["build", "a.csv", "-o", "b", "--layout", "trie"]).fails(
        2,
        "unknown layout 'trie': --layout <L,...>: use lines and optionally spine, grid, columns, packed, wide, \
         plain, dictionary, fast[:FORM[:PADDING]], harmonia[:FANOUT[:PERCENT]], btree[:ORDER]",
    );
    let usable = "use fast[:full|delta|partial|auto][:packed|padded][:dk=LEVELS][:dl=LEVELS][:dp=LEVELS]";
    for (layout, part, advice) in [
        ("spine", "no tuple lines in layout 'spine'", "use lines and optionally"),
        ("lines,fast:half", "unknown word 'half' in 'fast:half'", usable),
        ("lines,fast:dp=x", "invalid number 'x' in 'fast:dp=x'", usable),
        ("lines,btree:3", "invalid tree 'btree:3'", "use btree:ORDER, with an order of 4 to 128"),
    ] {
        place.run(&["build", "a.csv", "-o", "b", "--layout", layout]).fails_with(2, &[part, advice]);
    }
    // Trees that cannot hold the keys.
    place.write("a.csv", "k,v\n1,2\n");
    for (layout, part) in [
        ("lines,fast:partial", "fast:partial:padded does not hold words of 4 bytes"),
        ("lines,fast:full:dp=40", "fast:full:padded:dp=40 is no tree of words of 4 bytes"),
        ("lines,fast:delta:dp=4", "fast:delta:padded:dp=4 is no tree of words of 4 bytes"),
    ] {
        let args = ["build", "a.csv", "-o", "b", "--key-type", "u32", "--layout", layout];
        place.run(&args).fails_with(2, &[part, "use "]);
        assert_eq!(place.names(), ["a.csv"]);
    }
    place.run(&["build", "a.csv", "-o", "b", "--key-type", "u8"]).fails(
        2,
        "unknown key type 'u8': --key-type <T>: use one of u32 u64 i32 i64 u128 f64 bytes16 (any N) bytes utf8, \
         or date time[us] timestamp[us] timestamp[us,UTC] duration[us] decimal(10,2) uuid ipv4 ipv6 ip hex hex:16 \
         (first digits) dna2 dna2:canonical",
    );
}

#[test]
fn byte_keys_are_searched_by_text_and_by_prefix() {
    let place = Place::new();
    let table = "word,number\nalpha,1\nalphabet,2\n\"a\tb\",3\n\"\",4\nbeta,5\nalpha,6\n";
    std::fs::write(place.path("t.csv"), table).expect("written");
    place.run(&["build", "t.csv", "-o", "t", "--key-type", "utf8", "--quiet"]).ends(0);
    place
        .run(&["get", "t", "alpha", "beta", "", "a\\tb"])
        .ends(0)
        .prints("alpha\t1\nbeta\t5\n\t4\na\\tb\t3\n");
    place.run(&["get", "t", "--all", "alpha"]).ends(0).prints("alpha\t1\nalpha\t6\n");
    place.run(&["get", "t", "alphab", "--missing", "-"]).ends(1).prints("alphab\t-\n");
    place.run(&["get", "t", "beta", "--rank"]).ends(0).prints("beta\t5\n");
    place.run(&["get", "t", "beta", "--json"]).ends(0).prints("{\"key\":\"beta\",\"value\":\"5\"}\n");
    place.run(&["range", "t", "--prefix", "alpha"]).ends(0).prints("alpha\t1\nalpha\t6\nalphabet\t2\n");
    place.run(&["range", "t", "--prefix", "alpha", "--count"]).ends(0).prints("3\n");
    place.run(&["range", "t", "--prefix", "", "--reverse", "--limit", "1"]).ends(0).prints("beta\t5\n");
    place.run(&["range", "t", "alpha", "beta"]).ends(0).prints("alpha\t1\nalpha\t6\nalphabet\t2\n");
    place.run(&["fsck", "t"]).ends(0);
    place.run(&["inspect", "t"]).ends(0);
    place.run(&["inspect", "t", "--json"]).ends(0).json();
    // As bytes they are read unchanged, looked up and printed as hexadecimal digits, and returned.
    place
        .run(&["build", "t.csv", "-o", "b", "--key-type", "bytes", "--value-type", "bytes", "--quiet"])
        .ends(0);
    place.run(&["get", "b", "62657461"]).ends(0).prints("62657461\t35\n");
    for (table, types) in [("b.csv", true), ("b.tsv", true), ("b.parquet", false), ("b.arrow", false)] {
        place.run(&["export", "b", "-o", table, "--quiet"]).ends(0);
        let _ = std::fs::remove_file(place.path("again"));
        let mut build = vec!["build", table, "-o", "again", "--quiet"];
        if types {
            build.extend(["--key-type", "bytes", "--value-type", "bytes"]);
        }
        place.run(&build).ends(0);
        let same = std::fs::read(place.path("b")).expect("there")
            == std::fs::read(place.path("again")).expect("there");
        assert!(same, "{table}");
    }
    place
        .run(&["get", "b", "6265746"])
        .fails(2, "'6265746' is not a bytes key: argument KEY: give it in hexadecimal digits");
    place
        .run(&[
            "build",
            "t.csv",
            "-o",
            "n",
            "--key",
            "number",
            "--value",
            "word",
            "--value-type",
            "utf8",
            "--quiet",
        ])
        .ends(0);
    place.run(&["get", "n", "2", "3"]).ends(0).prints("2\talphabet\n3\ta\\tb\n");
    place.run(&["range", "n", "--prefix", "1"]).fails(
        2,
        "--prefix is for byte keys, addresses, digits and DNA: the keys are u64: give LO and HI for numbers",
    );
}

#[test]
fn a_page_of_the_spine_is_shown() {
    let place = Place::new().with_thousand();
    let run = place.run(&["inspect", "t.pleach", "--page", "0"]).ends(0);
    assert!(run.out.starts_with("spine line 0 of ") && run.out.contains("encoding delta8"), "{}", run.out);
    let document = place.run(&["inspect", "t.pleach", "--page", "0", "--json"]).ends(0).json();
    assert_eq!(document["schema"], "pleach.inspect-page.v1");
    place
        .run(&["inspect", "t.pleach", "--page", "999"])
        .fails_with(8, &["no spine line 999", "give a number"]);
}

#[test]
fn pages_of_trees_are_shown() {
    let place = Place::new();
    let rows: String = (0..5000u64).map(|i| format!("{},{i}\n", i * i * 1_000_003 + i % 7)).collect();
    place.write("t.csv", format!("key,value\n{rows}"));
    for (form, said, words) in [
        ("full", "words are whole keys of 8 bytes", "full"),
        ("delta", "words are distances of ", "delta"),
        ("partial", "  pmask  ", "partial"),
        ("auto", "words are ", ""),
    ] {
        let layout = format!("lines,fast:{form}:dp=7,harmonia:16,btree:16");
        place.run(&["build", "t.csv", "-o", "t.pleach", "--layout", &layout, "--force", "-q"]).ends(0);
        let run = place.run(&["inspect", "t.pleach"]).ends(0);
        for tree in ["FAST      13 levels", "Harmonia  ", "B+tree    ", "goes down a tree"] {
            assert!(run.out.contains(tree), "{tree}: {}", run.out);
        }
        // The first structure of the file is the FAST tree: there is no spine.
        let run = place.run(&["inspect", "t.pleach", "--page", "3"]).ends(0);
        assert!(
            run.out.starts_with("FAST page 3 of ") && run.out.contains("\nthe first line\n"),
            "{}",
            run.out
        );
        let page =
            |structure, page| ["inspect", "t.pleach", "--structure", structure, "--page", page, "--json"];
        // A lowest page: those above have distances in all compressed trees.
        let document = place.run(&page("fast", "3")).ends(0).json();
        assert_eq!(
            (&document["schema"], &document["form"]),
            (&"pleach.inspect-page.v1".into(), &form.into())
        );
        assert!(words.is_empty() || document["words"] == words, "{document}");
        // The middle key of the tree is its root.
        let middle = 4095u64 * 4095 * 1_000_003;
        let root = place.run(&page("fast", "0")).ends(0).json();
        assert_eq!(root["first_line"][0][0], middle.to_string(), "{root}");
        let run = place.run(&["inspect", "t.pleach", "--structure", "fast", "--page", "3"]).ends(0);
        assert!(run.out.contains(said), "{}", run.out);
        place
            .run(&["inspect", "t.pleach", "--structure", "fast", "--page", "9999"])
            .fails_with(8, &["no page 9999 of 'fast'", "give a number from 0 to "]);
    }
    let node = |structure, number| {
        place
            .run(&["inspect", "t.pleach", "--structure", structure, "--page", number, "--json"])
            .ends(0)
            .json()
    };
    // A leaf and its parent; the first child of the root is node 1.
    for structure in ["harmonia", "btree"] {
        let root = node(structure, "0");
        assert_eq!((&root["level"], root["leaf"].as_bool()), (&0.into(), Some(false)), "{root}");
        assert!(root["first_child"] == 1 || root["first_child"] == "1", "{root}");
        assert_eq!(
            node(structure, "300")["keys"].as_array().map(Vec::len),
            Some(if structure == "btree" { 15 } else { 10 })
        );
    }
    let sums = &node("harmonia", "0")["prefix_sums"]["sums"];
    assert!(sums.as_array().is_some_and(|sums| sums.len() == 8 && sums[0] == 1), "{sums}");
    place
        .run(&["inspect", "t.pleach", "--structure", "spine", "--page", "0"])
        .fails_with(8, &["no spine line 0"]);
    place
        .run(&["inspect", "t.pleach", "--structure", "grid", "--page", "0"])
        .fails_with(2, &["spine, fast, harmonia or btree"]);
    place.run(&["inspect", "t.pleach", "--structure", "fast"]).fails_with(2, &["--page"]);
    // Records that lie about the place and the width of a page.
    let whole = fs::read(place.path("t.pleach")).expect("readable");
    let entry = (4096..8192).find(|&at| whole[at..].starts_with(b"FAST")).expect("a section");
    let section = u64::from_le_bytes(*whole[entry + 8..].first_chunk().expect("eight bytes")) as usize;
    for (from, said) in [(11, "the record of the page says byte "), (10, "words of 255 bytes")] {
        let mut forged = whole.clone();
        forged[section + from..section + 16].fill(0xFF);
        fs::write(place.path("f.pleach"), forged).expect("written");
        place
            .run(&["inspect", "f.pleach", "--page", "0"])
            .fails_with(4, &[said, "f.pleach", "run pleach fsck"]);
    }
    // A structure that a file lacks is named with those that it has.
    place
        .with_thousand()
        .run(&["inspect", "t.pleach", "--structure", "btree", "--page", "0"])
        .fails_with(8, &["no pages of 'btree'", "the file has spine"]);
}

#[test]
fn explain_goes_to_standard_error() {
    let place = Place::new().with_thousand();
    let run = place.run(&["get", "t.pleach", "30", "--explain"]).ends(0).prints("30\t3\n");
    assert!(
        run.err.lines().count() >= 1 && run.err.lines().all(|line| line.starts_with("explain: ")),
        "{}",
        run.err
    );
    assert!(run.err.contains("copying to a GPU is "), "{}", run.err);
    let run = place.run(&["range", "t.pleach", "0", "20", "--explain"]).ends(0).prints("0\t0\n10\t1\n");
    assert!(run.err.contains("ranks 0 to 2"), "{}", run.err);
}

#[test]
fn strategies_give_the_same_answers() {
    let place = Place::new().with_thousand();
    let keys: String = (0..3000u64).map(|i| format!("{}\n", i * 7919 % 10_000)).collect();
    place.write("wanted.txt", &keys);
    let plain = place.run(&["get", "t.pleach", "--keys", "wanted.txt", "--missing", "-"]).ends(1).out;
    for strategy in ["auto", "one-by-one", "unbuffered", "buffered", "sorted"] {
        let line = ["get", "t.pleach", "--keys", "wanted.txt", "--missing", "-", "--strategy", strategy];
        place.run(&line).ends(1).prints(&plain);
        place.run(&[&line[..], &["--response", "0.01"]].concat()).ends(1).prints(&plain);
    }
    // By each structure of a file, few keys and many.
    let layout = "lines,spine,grid,fast:auto,harmonia:8,btree:4";
    place.run(&["build", "t.csv", "-o", "all.pleach", "--layout", layout]).ends(0);
    let few: Vec<String> = (0..40).map(|i| (i * 7).to_string()).collect();
    for structure in ["spine", "grid", "fast", "harmonia", "btree"] {
        let line = ["get", "all.pleach", "--keys", "wanted.txt", "--missing", "-", "--strategy", structure];
        place.run(&line).ends(1).prints(&plain);
        let few = |file| {
            let keys = few.iter().map(String::as_str);
            let args = ["get", file, "--missing", "-", "--strategy", "auto"].into_iter().chain(keys);
            args.collect::<Vec<_>>()
        };
        let wanted = place.run(&few("t.pleach")).ends(1).out;
        let mut args = few("all.pleach");
        args[5] = structure;
        place.run(&args).ends(1).prints(&wanted);
        if structure != "spine" && structure != "grid" {
            let args = ["get", "t.pleach", "30", "--strategy", structure];
            let advice = format!("--layout lines,{structure}");
            place.run(&args).fails_with(2, &[&format!("has no {structure}"), &advice]);
        }
    }
    let args = ["get", "all.pleach", "30", "--explain", "--strategy", "fast"];
    let told = place.run(&args).ends(0).err;
    assert!(told.contains("FAST tree, auto, d_K"), "{told}");
    let run = place.run(&["get", "t.pleach", "30", "--explain", "--json", "--strategy", "sorted"]).ends(0);
    let last = run.err.lines().last().and_then(|line| line.strip_prefix("explain: ")).expect("a line");
    let told: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(told["choice"]["strategy"], "sorted");
    assert!(told["choice"]["estimate_ns_per_query"].as_f64().is_some_and(|ns| ns > 0.0), "{told}");
}

// ---- range -----------------------------------------------------------------------------------

#[test]
fn range_is_half_open() {
    let place = Place::new().with_thousand();
    place.run(&["range", "t.pleach", "10", "30"]).ends(0).prints("10\t1\n20\t2\n");
    place.run(&["range", "t.pleach", "10", "30", "--inclusive"]).ends(0).prints("10\t1\n20\t2\n30\t3\n");
    place.run(&["range", "t.pleach", "9970", ".."]).ends(0).prints("9970\t997\n9980\t998\n9990\t999\n");
    place.run(&["range", "t.pleach", "..", "11"]).ends(0).prints("0\t0\n10\t1\n");
    place.run(&["range", "t.pleach", "30", "10"]).ends(0).prints("");
    place.run(&["range", "t.pleach", "11", "19"]).ends(0).prints("");
    place.run(&["range", "t.pleach", "..", "..", "--limit", "2"]).ends(0).prints("0\t0\n10\t1\n");
    place
        .run(&["range", "t.pleach", "..", "..", "--limit", "2", "--reverse"])
        .ends(0)
        .prints("9990\t999\n9980\t998\n");
    place.run(&["range", "t.pleach", "..", "..", "--count"]).ends(0).prints("1000\n");
    place.run(&["range", "t.pleach", "15", "..", "--count", "--limit", "7"]).ends(0).prints("7\n");
    place
        .run(&["range", "t.pleach", "10", "21", "--json"])
        .ends(0)
        .prints("{\"key\":\"10\",\"value\":\"1\"}\n{\"key\":\"20\",\"value\":\"2\"}\n");
    let document = place.run(&["range", "t.pleach", "..", "..", "--count", "--json"]).ends(0).json();
    assert_eq!(document["count"], "1000");
    let all: String = (0..1000).rev().map(|row| format!("{}\t{row}\n", row * 10)).collect();
    place.run(&["range", "t.pleach", "..", "..", "--reverse"]).ends(0).prints(&all);
}

#[test]
fn range_takes_negative_ends() {
    let place = Place::new().with_signed();
    place.run(&["range", "s.pleach", "-5", "-1"]).ends(0).prints("-5\t1.5\n");
    place.run(&["range", "s.pleach", "-5", "-1", "--inclusive"]).ends(0).prints("-5\t1.5\n-1\t1e300\n");
    place.run(&["range", "s.pleach", "7", "7", "--inclusive", "--count"]).ends(0).prints("3\n");
    place.run(&["range", "s.pleach", "7", "x"]).fails(
        2,
        "'x' is not an i64 key: argument HI: give a whole number from -9223372036854775808 to \
         9223372036854775807, or ..",
    );
}

// ---- build -----------------------------------------------------------------------------------

#[test]
fn build_reads_raw_and_standard_input() {
    let place = Place::new().with_thousand();
    let raw: Vec<u8> = (0..1000u64).flat_map(|row| [row * 10, row]).flat_map(u64::to_le_bytes).collect();
    place.write("t.bin", &raw);
    place
        .run(&["build", "t.bin", "-o", "r.pleach", "--raw", "u64,u64", "--unique", "error"])
        .ends(0)
        .prints("");
    place.run(&["range", "r.pleach", "..", "20"]).prints("0\t0\n10\t1\n");
    let csv = place.read("t.csv");
    place.pipe(&csv, &["build", "-", "--format", "csv", "-o", "p.pleach", "--unique", "error"]).ends(0);
    assert!(place.read("p.pleach") == place.read("t.pleach"), "a pipe gives the same bytes");
    place.pipe(&raw, &["build", "-", "-o", "q.pleach", "--raw", "u64,u64", "--unique", "error"]).ends(0);
    assert!(place.read("q.pleach") == place.read("r.pleach"), "a pipe gives the same bytes");
}

#[test]
fn build_tells_what_it_did() {
    let place = Place::new();
    place.write("a.csv", "k,v\n3,1\n1,2\n1,3\n");
    let run = place.run(&["build", "a.csv", "-o", "a.pleach", "--unique", "last"]).ends(0).prints("");
    assert!(run.err.starts_with("built a.pleach: 2 tuples of 3 rows, u64 to u64, "), "{}", run.err);
    let run = place.run(&["build", "a.csv", "-o", "a.pleach", "--quiet"]).ends(0).prints("");
    assert_eq!(run.err, "");
    let run = place.run(&["build", "a.csv", "-o", "a.pleach", "--json"]).ends(0);
    assert_eq!(run.err, "");
    let document = run.json();
    assert_eq!(document["schema"], "pleach.build.v1");
    assert_eq!(document["tuples"], "3");
    assert_eq!(document["key_name"], "k");
    place.run(&["get", "a.pleach", "1", "--all"]).prints("1\t2\n1\t3\n");
}

#[test]
fn build_chooses_columns() {
    let place = Place::new();
    place.write("a.csv", "x,k,v\n9,1,2.5\n8,2,3.5\n");
    let build = |more: &[&str]| {
        place.run(&[&["build", "a.csv", "-o", "a.pleach"], more].concat()).ends(0);
        place.run(&["range", "a.pleach", "..", ".."]).ends(0).out
    };
    assert_eq!(build(&["--key", "k", "--value", "v", "--value-type", "f32"]), "1\t2.5\n2\t3.5\n");
    assert_eq!(build(&["--key", "x", "--value", "@row"]), "8\t1\n9\t0\n");
    assert_eq!(build(&["--key", "k", "--value-type", "none"]), "1\n2\n");
    place.write("n.txt", "7|-3\n8|-4\n");
    let args = ["build", "n.txt", "-o", "n.pleach", "--format", "csv", "--delimiter", "|", "--no-header"];
    place.run(&[&args[..], &["--key", "1", "--value", "0", "--key-type", "i32"]].concat()).ends(0);
    place.run(&["range", "n.pleach", "..", ".."]).ends(0).prints("-4\t8\n-3\t7\n");
}

/// Every refusal leaves what was there, and nothing else.
#[test]
fn bad_input_is_one_line_and_leaves_nothing() {
    let place = Place::new().with_thousand();
    let before = place.read("t.pleach");
    place
        .write("null.csv", "id,v\n1,2\n,3\n")
        .write("word.csv", "id,v\n1,2\nx,3\n")
        .write("range.csv", "id,v\n1,2\n4294967296,3\n")
        .write("unsorted.csv", "id,v\n2,1\n1,2\n")
        .write("twice.csv", "id,v\n1,1\n1,2\n")
        .write("short.bin", [0; 15])
        .write("no.parquet", "this is no parquet file")
        .write("odd.csv", "id,v\n1\n");
    fs::create_dir(place.path("folder")).expect("a folder");
    let names = place.names();
    let refused = |args: &[&str], code: i32, parts: &[&str]| {
        place.run(&[&["build"], args, &["-o", "t.pleach"]].concat()).fails_with(code, parts);
        assert_eq!(place.names(), names, "{args:?} left something behind");
        assert!(place.read("t.pleach") == before, "{args:?} changed the file");
    };
    refused(&["gone.csv"], 8, &["gone.csv", "No such file", "check the name"]);
    refused(&["t.csv", "--key", "nope"], 8, &["t.csv", "\"nope\"", "\"id\""]);
    refused(&["null.csv"], 8, &["null.csv", "row 2", "\"id\""]);
    refused(&["word.csv"], 8, &["word.csv", "row 2", "\"id\""]);
    refused(&["range.csv", "--key-type", "u32"], 8, &["range.csv", "row 2", "\"id\"", "4294967296"]);
    refused(&["unsorted.csv", "--sorted"], 8, &["not sorted", "row 2"]);
    refused(&["twice.csv", "--unique", "error"], 8, &["duplicate", "1"]);
    refused(&["short.bin", "--raw", "u64,u64"], 8, &["short.bin"]);
    refused(&["no.parquet"], 8, &["no.parquet"]);
    refused(&["folder", "--format", "csv"], 8, &["folder"]);
    refused(&["odd.csv"], 8, &["odd.csv"]);
    refused(&["short.bin"], 2, &["raw input has no types: short.bin: give --raw, such as --raw u64,u64"]);
    refused(&["-"], 2, &["unknown format: standard input: give it with --format"]);
    refused(&["t.csv", "--raw", "u64,u65"], 2, &["'u65'", "--raw"]);
    refused(&["t.csv", "--raw", "u64", "--format", "csv"], 2, &["--raw with another --format"]);
    refused(
        &["t.csv", "--unique", "maybe"],
        2,
        &["unknown value 'maybe': --unique <WHICH>: use one of error, first, last"],
    );
    refused(&["t.csv", "--memory", "lots"], 2, &["invalid size 'lots': --memory <SIZE>: use 4KiB"]);
    refused(&["t.csv", "--delimiter", "ab"], 2, &["invalid delimiter 'ab': --delimiter <C>: use one"]);
    refused(&[], 2, &["missing arguments", "pleach build --help"]);
    place.run(&["build", "t.csv"]).fails_with(2, &["--output", "pleach build --help"]);
    place.run(&["build", "t.csv", "-o", "-"]).fails_with(2, &["standard output"]);
    place.run(&["build", "t.csv", "-o", "folder"]).fails_with(8, &["folder"]);
    place.run(&["build", "t.csv", "-o", "gone/x.pleach"]).fails_with(8, &["gone", "No such file"]);
    assert_eq!(place.names(), names);
}

#[test]
fn nan_keys_and_values_out_of_range_are_named() {
    let place = Place::new();
    place.write("f.csv", "k,v\n1,2\n2,-1\n");
    place.run(&["build", "f.csv", "-o", "f.pleach"]).fails_with(8, &["f.csv", "row 2", "\"v\""]);
    place.write("g.csv", "k,v\nNaN,2\n");
    place.run(&["build", "g.csv", "-o", "f.pleach"]).fails_with(8, &["g.csv", "row 1", "\"k\""]);
    assert_eq!(place.names(), ["f.csv", "g.csv"]);
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_search_is_130() {
    let place = Place::new().with_thousand();
    let mut child = place.spawn(&["get", "t.pleach", "--keys", "-"], Stdio::piped());
    let stdin = child.stdin.take();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("kill").success());
    finished(child.wait_with_output().expect("a run"))
        .fails(130, "interrupted: nothing was changed: start it again");
    drop(stdin);
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_build_leaves_nothing() {
    for signal in ["INT", "TERM"] {
        let place = Place::new();
        let mut child = place.spawn(&["build", "-", "--format", "csv", "-o", "x.pleach"], Stdio::piped());
        let mut stdin = child.stdin.take().expect("a pipe");
        let rows: String = (0..200_000).map(|row| format!("{row},1\n")).collect();
        stdin.write_all(b"k,v\n").and_then(|()| stdin.write_all(rows.as_bytes())).expect("written");
        // The pipe stays open and silent: the build waits for more.
        std::thread::sleep(std::time::Duration::from_millis(300));
        let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(sent.expect("kill").success());
        let run = finished(child.wait_with_output().expect("a run"));
        run.fails(130, "interrupted: nothing was changed: start it again");
        assert_eq!(place.names(), [""; 0], "after {signal}");
        drop(stdin);
    }
}

#[test]
fn a_second_builder_is_told_who_is_first() {
    let place = Place::new().with_thousand();
    let before = place.read("t.pleach");
    let mut first = place.spawn(&["build", "-", "--format", "csv", "-o", "t.pleach"], Stdio::piped());
    let mut stdin = first.stdin.take().expect("a pipe");
    let rows: String = (0..500_000).map(|row| format!("{row},1\n")).collect();
    stdin.write_all(b"k,v\n").and_then(|()| stdin.write_all(rows.as_bytes())).expect("written");
    // The first one has its lock when its files are there.
    let started = std::time::Instant::now();
    while place.names().len() < 3 && started.elapsed().as_secs() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    place
        .run(&["build", "t.csv", "-o", "t.pleach"])
        .fails_with(8, &["busy: t.pleach", &first.id().to_string()]);
    assert!(place.read("t.pleach") == before);
    drop(stdin);
    finished(first.wait_with_output().expect("a run")).ends(0);
    place.run(&["range", "t.pleach", "..", "..", "--count"]).ends(0).prints("500000\n");
    assert_eq!(place.names(), ["t.csv", "t.pleach"]);
}

#[test]
fn strays_are_remarked_by_fsck_and_swept_by_build() {
    let place = Place::new().with_thousand();
    place.write(".t.pleach.abc123.pleach-tmp", "litter");
    let run = place.run(&["fsck", "t.pleach"]).ends(0);
    let advice = "the next build removes it";
    assert!(
        run.err.starts_with("remark: left over by an interrupted build: ") && run.err.contains(advice),
        "{}",
        run.err
    );
    let document = place.run(&["fsck", "t.pleach", "--json"]).ends(0).json();
    assert_eq!(document["strays"].as_array().map(Vec::len), Some(1));
    place.run(&["build", "t.csv", "-o", "t.pleach"]).ends(0);
    assert_eq!(place.names(), ["t.csv", "t.pleach"]);
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_is_8() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new().with_thousand();
    fs::create_dir(place.path("closed")).expect("a folder");
    fs::set_permissions(place.path("closed"), fs::Permissions::from_mode(0o555)).expect("permissions");
    if fs::write(place.path("closed/probe"), "").is_ok() {
        eprintln!("skipped: this user may write everywhere");
        return;
    }
    place.run(&["build", "t.csv", "-o", "closed/t.pleach"]).fails_with(8, &["closed", "Permission denied"]);
    fs::set_permissions(place.path("t.csv"), fs::Permissions::from_mode(0o000)).expect("permissions");
    place.run(&["build", "t.csv", "-o", "u.pleach"]).fails_with(8, &["t.csv", "Permission denied"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_size_limit_is_8_and_leaves_nothing() {
    let place = Place::new().with_thousand();
    let before = place.read("t.pleach");
    let names = place.names();
    let script = format!("ulimit -f 8; exec '{}' build t.csv -o t.pleach", env!("CARGO_BIN_EXE_pleach"));
    let output =
        Command::new("sh").args(["-c", &script]).current_dir(place.0.path()).output().expect("a run");
    finished(output).fails_with(8, &["t.pleach", "File too large"]);
    assert_eq!(place.names(), names);
    assert!(place.read("t.pleach") == before);
}

// ---- damage ----------------------------------------------------------------------------------

/// Writes `name`, which is `t.pleach` with `change` done to its bytes.
fn damaged(place: &Place, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = place.read("t.pleach");
    change(&mut bytes);
    place.write(name, bytes);
}

#[test]
fn damage_is_4() {
    let place = Place::new().with_thousand();
    place.run(&["fsck", "t.pleach"]).ends(0);
    place.run(&["fsck", "t.pleach", "--quiet"]).ends(0).prints("");
    place.run(&["inspect", "t.pleach"]).ends(0);
    damaged(&place, "empty", Vec::clear);
    damaged(&place, "prefix", |bytes| bytes.truncate(5));
    damaged(&place, "magic", |bytes| bytes.truncate(16));
    damaged(&place, "half", |bytes| bytes.truncate(bytes.len() / 2));
    damaged(&place, "long", |bytes| bytes.extend_from_slice(&[0; 4096]));
    damaged(&place, "version", |bytes| bytes[16] ^= 1);
    damaged(&place, "first", |bytes| bytes[0] ^= 1);
    damaged(&place, "table", |bytes| bytes[4100] ^= 1);
    damaged(&place, "last", |bytes| {
        let at = bytes.len() - 4000;
        bytes[at] ^= 1;
    });
    for name in ["empty", "prefix", "magic", "half", "long", "version", "first", "table", "last"] {
        for command in ["fsck", "inspect"] {
            let run = place.run(&[command, name]).ends(4);
            assert!(
                run.err.is_empty() && run.out.contains(name) && run.out.contains("damaged"),
                "{name}: {}",
                run.out
            );
            let run = place.run(&[command, name, "--json"]).ends(4);
            assert_eq!(run.json()["verdict"], "damaged", "{command} {name}");
        }
        // Opening does not look at the closing copy.
        if name != "last" {
            place.run(&["get", name, "10"]).fails_with(4, &[name]);
            place.run(&["range", name, "0", "10"]).fails_with(4, &[name]);
        }
    }
}

#[test]
fn inspect_of_a_damaged_head_shows_what_the_copy_says() {
    let place = Place::new().with_thousand();
    damaged(&place, "bad", |bytes| bytes[80] ^= 7);
    let run = place.run(&["inspect", "bad"]).ends(4);
    for part in [
        "bad: damaged",
        "80  tuples              1007",
        "<-- differs from the first superblock",
        "1,000, keys are unique",
    ] {
        assert!(run.out.contains(part), "{part}: {}", run.out);
    }
    place.run(&["inspect", "bad", "--line", "0"]).fails_with(4, &["damaged superblock", "bad", "fsck"]);
    place.run(&["inspect", "bad", "--mapping"]).fails_with(4, &["damaged superblock", "bad"]);
}

#[test]
fn a_flipped_bit_in_a_tuple_is_never_answered() {
    let place = Place::new().with_thousand();
    let document = place.run(&["inspect", "t.pleach", "--json"]).ends(0).json();
    let lines: usize =
        document["tuple_lines"]["offset"].as_str().and_then(|at| at.parse().ok()).expect("an offset");
    damaged(&place, "bad", |bytes| bytes[lines + 3] ^= 4);
    let run = place.run(&["fsck", "bad"]).ends(4);
    assert!(run.out.contains("block: LINE") || run.out.contains("LINE"), "{}", run.out);
    place.run(&["inspect", "bad", "--line", "0"]).ends(4);
    for verify in ["touched", "full"] {
        place.run(&["get", "bad", "0", "--verify", verify]).fails_with(4, &["bad"]);
        place.run(&["range", "bad", "0", "50", "--verify", verify]).fails_with(4, &["bad"]);
    }
    place.run(&["get", "bad", "0"]).fails_with(4, &["damaged"]);
}

#[test]
fn what_is_whole_is_salvaged() {
    let place = Place::new();
    let rows: String = (0..3000).map(|row| format!("{},{row}\n", row * 10)).collect();
    place.write("t.csv", format!("k,v\n{rows}"));
    place.run(&["build", "t.csv", "-o", "t.pleach"]).ends(0);
    let document = place.run(&["inspect", "t.pleach", "--json"]).ends(0).json();
    let lines: usize =
        document["tuple_lines"]["offset"].as_str().and_then(|at| at.parse().ok()).expect("an offset");
    // Blocks of 8 KiB, 5 tuples a line.
    damaged(&place, "bad", |bytes| {
        bytes[lines + 8192 + 3] ^= 4;
        bytes[lines + 3 * 8192 + 3] ^= 4;
    });
    let before = fs::read(place.path("bad")).expect("a file");
    let run = place.run(&["fsck", "bad", "--salvage", "saved"]).ends(4);
    for line in [
        "lost: 640 tuples from rank 640: keys from 6390 to 12800\n",
        "lost: 640 tuples from rank 1,920: keys from 19190 to 25600\n",
        "salvaged: saved: 1,720 tuples, 1,280 lost\n",
    ] {
        assert!(run.out.contains(line), "{}", run.out);
    }
    assert!(fs::read(place.path("bad")).expect("a file") == before, "the input changed");
    place.run(&["fsck", "saved"]).ends(0);
    place.run(&["get", "saved", "6390", "12800"]).ends(0).prints("6390\t639\n12800\t1280\n");
    place.run(&["get", "saved", "6400"]).ends(1);
    let document = place.run(&["fsck", "bad", "--salvage", "saved", "--json"]).ends(4).json();
    assert_eq!(document["salvage"]["lost_tuples"], "1280");
    assert_eq!(document["salvage"]["lost"][1]["rank"], "1920");
    assert_eq!(document["salvage"]["lost"][1]["after"], "19190");
    // Nothing was lost of a whole one.
    let run = place.run(&["fsck", "t.pleach", "--salvage", "copy"]).ends(0);
    assert!(run.out.contains("salvaged: copy: 3,000 tuples, none lost\n"), "{}", run.out);
    // The file itself is never written, by whatever name.
    place.run(&["fsck", "bad", "--salvage", "bad"]).fails_with(2, &["the same", "bad"]);
    place.run(&["fsck", "bad", "--salvage", "./bad"]).fails_with(2, &["the same", "bad"]);
    assert!(fs::read(place.path("bad")).expect("a file") == before, "the input changed");
    place.write("foreign", "no file of ours, but long enough to be one".repeat(999));
    place.run(&["fsck", "foreign", "--salvage", "none"]).fails_with(8, &["foreign"]);
    assert!(!place.path("none").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_is_cut_while_it_is_read_is_damaged() {
    let place = Place::new();
    let rows: String = (0..400_000).map(|row| format!("{row},{row}\n")).collect();
    place.write("t.csv", format!("k,v\n{rows}"));
    place.run(&["build", "t.csv", "-o", "t.pleach"]).ends(0);
    // The pipe is full long before the end: the command waits with most of the file unread.
    let child = place.spawn(&["range", "t.pleach", "..", "..", "--verify", "header"], Stdio::null());
    std::thread::sleep(std::time::Duration::from_millis(500));
    let file = fs::OpenOptions::new().write(true).open(place.path("t.pleach")).expect("a file");
    file.set_len(8192).expect("cut");
    let run = finished(child.wait_with_output().expect("a run")).ends(4);
    assert!(run.err.contains("t.pleach") && run.err.lines().count() == 1, "{}", run.err);
    let expected: String = (0..400_000).map(|row| format!("{row}\t{row}\n")).collect();
    assert!(expected.starts_with(&run.out), "no wrong answer");
}

#[test]
fn foreign_and_newer_files_are_8() {
    let place = Place::new().with_thousand();
    place.write("foreign", "id,value\n1,2\n");
    let advice = "make one with `pleach build`";
    for args in [&["get", "foreign", "1"][..], &["range", "foreign", "1", "2"], &["fsck", "foreign"]] {
        place.run(args).fails(8, &format!("not a Pleach file: foreign: {advice}"));
    }
    let run = place.run(&["inspect", "foreign"]).ends(8);
    assert!(run.out.contains("foreign"), "{}", run.out);
    assert_eq!(run.err, format!("error: not a Pleach file: foreign: {advice}\n"));
    let document = place.run(&["fsck", "foreign", "--json"]).ends(8).json();
    assert_eq!(document["verdict"], "foreign");

    damaged(&place, "newer", |bytes| {
        let last = bytes.len() - 4096;
        for at in [0, last] {
            bytes[at + 16] = 99;
            let sum = pleach_format::checksum::crc32(&bytes[at..at + 4092]);
            bytes[at + 4092..at + 4096].copy_from_slice(&sum.to_le_bytes());
        }
    });
    for args in [&["get", "newer", "1"][..], &["range", "newer", "1", "2"], &["fsck", "newer"]] {
        place.run(args).fails_with(8, &["99.0", "newer", "use a newer program"]);
    }
    place.run(&["inspect", "newer"]).ends(8);
    place.write("older", include_bytes!("../../tests/data/v0.13/one.pleach"));
    for args in [&["get", "older", "1"][..], &["fsck", "older"]] {
        place.run(args).fails_with(8, &["0.13", "older", "run `pleach upgrade` on it"]);
    }
    let document = place.run(&["upgrade", "older", "--json"]).ends(0).json();
    assert_eq!((&document["from"], &document["tuples"]), (&"0.13".into(), &"1".into()));
    place.run(&["upgrade", "older"]).ends(0);
    place.run(&["fsck", "older"]).ends(0);
    place.run(&["upgrade", "foreign", "older"]).fails(8, &format!("not a Pleach file: foreign: {advice}"));
}

#[test]
fn files_that_cannot_be_read_are_8() {
    let place = Place::new();
    fs::create_dir(place.path("folder")).expect("a folder");
    for args in
        [&["get", "gone", "1"][..], &["range", "gone", "1", "2"], &["fsck", "gone"], &["inspect", "gone"]]
    {
        place.run(args).fails_with(8, &["gone", "No such file or directory: check the name"]);
    }
    for args in [&["get", "folder", "1"][..], &["fsck", "folder"], &["inspect", "folder"]] {
        place.run(args).fails_with(8, &["folder"]);
    }
    let place = place.with_thousand();
    place
        .run(&["get", "t.pleach", "--keys", "gone"])
        .fails(8, "cannot open: gone: No such file or directory: check the name");
}

// ---- inspect, fsck ---------------------------------------------------------------------------

#[test]
fn inspect_shows_the_file() {
    let place = Place::new().with_thousand();
    let run = place.run(&["inspect", "t.pleach"]).ends(0);
    for part in [
        "t.pleach: whole",
        "u64 \"id\", 0 to 9990",
        "u64 \"value\"",
        "1,000",
        "keys are unique",
        "LINE",
        "SPIN",
        "level 0",
    ] {
        assert!(run.out.contains(part), "{part}: {}", run.out);
    }
    let document = place.run(&["inspect", "t.pleach", "--json"]).ends(0).json();
    assert_eq!(document["schema"], "pleach.inspect.v1");
    assert_eq!(document["tuples"], "1000");
    assert_eq!(document["key"]["max"], "9990");
    assert_eq!(document["sections"][1]["tag"], "LINE");
    let covered: u64 = document["sections"]
        .as_array()
        .expect("sections")
        .iter()
        .map(|section| section["extent"].as_str().and_then(|bytes| bytes.parse::<u64>().ok()).expect("bytes"))
        .sum();
    assert_eq!(covered + 4 * 4096, fs::metadata(place.path("t.pleach")).expect("a file").len());

    let run = place.run(&["inspect", "t.pleach", "--line", "2"]).ends(0);
    assert!(run.out.contains("tuple line 2 of 200") && run.out.contains(": good"), "{}", run.out);
    let document = place.run(&["inspect", "t.pleach", "--line", "2", "--json"]).ends(0).json();
    assert_eq!(document["tuples"][3], serde_json::json!({ "rank": "13", "key": "130", "value": "13" }));
    place
        .run(&["inspect", "t.pleach", "--line", "200"])
        .fails(8, "no tuple line 200: t.pleach: give a number from 0 to 199");
}

#[cfg(target_os = "linux")]
#[test]
fn inspect_shows_the_mapping() {
    let place = Place::new().with_thousand();
    let document = place.run(&["inspect", "t.pleach", "--mapping", "--json"]).ends(0).json();
    let resident: u64 = document["resident_kb"].as_str().and_then(|kb| kb.parse().ok()).expect("kB");
    assert!(resident * 1024 >= fs::metadata(place.path("t.pleach")).expect("a file").len());
}

#[test]
fn fsck_reports() {
    let place = Place::new().with_thousand();
    let document = place.run(&["fsck", "t.pleach", "--json"]).ends(0).json();
    assert_eq!(document["schema"], "pleach.fsck.v1");
    assert_eq!(document["verdict"], "clean");
    assert_eq!(document["tuples"], "1000");
    let run = place.run(&["fsck", "t.pleach"]).ends(0);
    assert!(run.out.starts_with("clean: t.pleach: ") && run.out.lines().count() == 1, "{}", run.out);
    let before = place.read("t.pleach");
    place.run(&["fsck", "t.pleach", "--threads", "1"]).ends(0);
    // So many that starting them would not end.
    for command in ["fsck", "compact", "build"] {
        let run = place.run(&[command, "t.pleach", "-o", "o", "--threads", "404097118812781966"]).ends(2);
        assert!(run.err.contains("use 0 (all) to 1024") || command == "fsck", "{}", run.err);
    }
    let run = place.run(&["fsck", "t.pleach", "--threads", "1025"]).ends(2);
    assert!(run.err.contains("use 0 (all) to 1024"), "{}", run.err);
    assert!(before == place.read("t.pleach"));
}

// ---- export ----------------------------------------------------------------------------------

#[test]
fn export_and_back_gives_the_same_bytes() {
    let place = Place::new().with_thousand().with_signed();
    for (from, unique) in [("t.pleach", Some("error")), ("s.pleach", None)] {
        for table in ["x.csv", "x.tsv", "x.parquet", "x.arrow"] {
            place.run(&["export", from, "-o", table]).ends(0).prints("");
            // Over another one it would be the next generation.
            let _ = std::fs::remove_file(place.path("x.pleach"));
            let mut args = vec!["build", table, "-o", "x.pleach"];
            if let Some(unique) = unique {
                args.extend(["--unique", unique]);
            } else if table.ends_with("sv") {
                args.extend(["--key-type", "i64", "--value-type", "f64"]);
            }
            place.run(&args).ends(0);
            assert!(place.read("x.pleach") == place.read(from), "{from} by {table}");
        }
    }
    place
        .run(&["export", "s.pleach", "-o", "-"])
        .ends(0)
        .prints("k,v\n-5,1.5\n-1,1e300\n7,0.1\n7,-2.0\n7,3.0\n");
    assert_eq!(place.run(&["export", "t.pleach", "-o", "x.csv", "--json"]).ends(0).json()["rows"], "1000");
}

#[test]
fn export_refuses_in_one_line() {
    let place = Place::new().with_thousand();
    place.write("old.csv", "kept");
    damaged(&place, "bad", |bytes| bytes[4100] ^= 1);
    place.run(&["export", "bad", "-o", "old.csv"]).fails_with(4, &["bad"]);
    place.run(&["export", "gone", "-o", "old.csv"]).fails_with(8, &["gone", "No such file"]);
    place.run(&["export", "t.pleach", "-o", "x.odd"]).fails_with(2, &["x.odd", "--format"]);
    place
        .run(&["export", "t.pleach", "-o", "x", "--format", "npy"])
        .fails_with(2, &["csv tsv parquet arrow"]);
    place.run(&["export", "t.pleach", "-o", "gone/x.csv"]).fails_with(8, &["gone/x.csv", "No such file"]);
    place.run(&["export", "t.pleach"]).fails_with(2, &["--output"]);
    assert_eq!(place.read("old.csv"), b"kept");
    assert_eq!(place.names(), ["bad", "old.csv", "t.csv", "t.pleach"]);
}

// ---- the rest --------------------------------------------------------------------------------

#[test]
fn help_and_version() {
    let place = Place::new();
    let run = place.run(&["--version"]).ends(0);
    assert_eq!(run.out, format!("pleach {}\n", env!("CARGO_PKG_VERSION")));
    let run = place.run(&[]).ends(2).prints("");
    assert!(run.err.contains("Usage: pleach"), "{}", run.err);
    for command in [
        "build",
        "get",
        "range",
        "inspect",
        "fsck",
        "export",
        "rebuild",
        "compact",
        "select",
        "project",
        "reduce",
        "union",
        "intersect",
        "difference",
        "advise",
        "join",
        "product",
        "demo",
        "devices",
        "bench",
        "completions",
        "man",
    ] {
        let run = place.run(&[command, "--help"]).ends(0);
        assert!(run.out.contains("Examples:") && run.err.is_empty(), "{command}: {}", run.out);
        assert!(place.run(&["--help"]).out.contains(command));
    }
    // An older name of `header` is accepted and not shown.
    let help = place.run(&["get", "--help"]).ends(0).out;
    assert!(help.contains("- touched:") && !help.contains("- none:"), "{help}");
    place.run(&["get", "f", "1", "--verify", "none"]).fails_with(8, &["f"]);
    place.run(&["merge", "f"]).fails_with(2, &["unrecognized subcommand 'merge'", "pleach --help"]);
    place.run(&["get", "f", "1", "--nope"]).fails_with(2, &["'--nope'", "pleach get --help"]);
    place.run(&["get", "f"]).fails_with(2, &["<KEY>", "pleach get --help"]);
    place
        .run(&["get", "f", "1", "--verify", "often"])
        .fails(2, "unknown value 'often': --verify <HOW>: use one of header, touched, full");
    place.run(&["get", "f", "1", "--keys", "k"]).fails_with(2, &["cannot be used with", "pleach get --help"]);
}

#[test]
fn completions_for_every_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = place.run(&["completions", shell]).ends(0);
        assert!(run.out.contains("pleach") && run.out.contains("inspect"), "{shell}");
    }
    place.run(&["completions", "tcsh"]).fails_with(2, &["unknown value 'tcsh'", "bash"]);
    assert_eq!(place.run(&["completions", "bash", "--json"]).ends(0).json()["shell"], "bash");
}

#[test]
fn man_writes_a_page_for_each_command() {
    let place = Place::new();
    place.run(&["man", "man1", "--quiet"]).ends(0).prints("");
    let names = Place::names_in(&place.path("man1"));
    assert_eq!(names.len(), 31, "{names:?}");
    for name in &names {
        let page = String::from_utf8(place.read(&format!("man1/{name}"))).expect("text");
        assert!(page.contains(".TH") && page.contains("NAME"), "{name}");
    }
    place.write("file", "");
    place.run(&["man", "file/x"]).fails_with(8, &["cannot make folder: file/x"]);
}

#[test]
fn devices_says_what_is_used() {
    let place = Place::new();
    let run = place.run(&["devices"]).ends(0);
    assert!(run.out.contains("CPU") && run.out.contains("used") && run.err.is_empty(), "{}", run.out);
    let document = place.run(&["devices", "--json"]).ends(0).json();
    assert_eq!(document["schema"], "pleach.devices.v1");
    assert!(document["cpu"]["isa_used"].is_string());
}

#[test]
fn without_a_gpu_cuda_is_refused_and_auto_answers() {
    let place = Place::new().with_thousand();
    let document = place.run(&["devices", "--json"]).ends(0).json();
    let missing = document["gpus_missing"].as_str().unwrap_or_default().to_owned();
    place.run(&["get", "t.pleach", "30", "--device", "auto"]).ends(0).prints("30\t3\n");
    place.run(&["get", "t.pleach", "30", "--device", "cpu"]).ends(0).prints("30\t3\n");
    let near = ["--floor", "--ceiling", "--nearest"];
    if missing.is_empty() {
        // A GPU is there, and answers the same.
        place.run(&["get", "t.pleach", "30", "--device", "cuda"]).ends(0).prints("30\t3\n");
        for near in near {
            place.run(&["get", "t.pleach", near, "30", "--device", "cuda"]).ends(0).prints("30\t30\t3\n");
        }
        place.run(&["get", "t.pleach", "30", "--device", "cuda:99"]).fails_with(8, &["cuda:99"]);
        return;
    }
    for device in ["cuda", "cuda:0", "cuda:7"] {
        place.run(&["get", "t.pleach", "30", "--device", device]).fails_with(8, &["no GPU: ", &missing]);
        for near in near {
            place
                .run(&["get", "t.pleach", near, "30", "--device", device])
                .fails_with(8, &["no GPU: ", &missing]);
        }
    }
}

#[test]
fn a_closed_pipe_is_success() {
    let place = Place::new();
    let rows: String = (0..300_000).map(|row| format!("{row},{row}\n")).collect();
    place.write("t.csv", format!("k,v\n{rows}"));
    place.run(&["build", "t.csv", "-o", "t.pleach"]).ends(0);
    place.write("keys", (0..300_000).map(|row| format!("{row}\n")).collect::<String>());
    for args in [
        &["range", "t.pleach", "..", ".."][..],
        &["get", "t.pleach", "--keys", "keys"],
        &["inspect", "t.pleach"],
        &["fsck", "t.pleach"],
        &["devices"],
        &["completions", "bash"],
        &["--help"],
        &["--version"],
        &["range", "t.pleach", "..", "..", "--count"],
    ] {
        let mut child = place.spawn(args, Stdio::null());
        drop(child.stdout.take());
        let run = finished(child.wait_with_output().expect("a run"));
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_8() {
    let place = Place::new().with_thousand();
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    for args in [&["range", "t.pleach", "..", ".."][..], &["inspect", "t.pleach"], &["--help"]] {
        let output = place.command(args).stdout(full()).output().expect("a run");
        let run = finished(output).ends(8);
        assert!(
            run.err.starts_with("error: cannot write: standard output: No space left on device"),
            "{}",
            run.err
        );
    }
}

#[test]
fn errors_stay_on_one_line_whatever_names_hold() {
    let place = Place::new();
    place.run(&["get", "a\nb\u{1b}[31m", "1"]).fails_with(8, &["a\\nb\\u{1b}[31m"]);
}

#[test]
fn arguments_need_not_be_text() {
    let place = Place::new().with_thousand();
    let word = OsString::from_vec(b"\xC2\x1bx.pleach".to_vec());
    for before in [&[][..], &["get", "t.pleach"], &["-q"], &["build", "t.csv", "--key-type"]] {
        let mut command = place.command(before);
        let run = finished(command.arg(&word).output().expect("a run"));
        run.fails_with(2, &[": see `pleach"]);
    }
    let mut command = place.command(&["build", "t.csv", "-o"]);
    let run = finished(command.arg(&word).output().expect("a run")).ends(0);
    assert!(run.err.starts_with("built \u{FFFD}\\u{1b}x.pleach: "), "{}", run.err);
    assert!(place.0.path().join(word).is_file());
}

#[test]
fn no_name_steers_a_terminal() {
    let place = Place::new().with_thousand();
    let name = |end: &str| format!("a\u{1b}[31m\u{202e}b{end}");
    let (file, other, csv) = (name(".pleach"), name("2.pleach"), name(".csv"));
    place.write("c.csv", "op,id,value\nput,5,5\n");
    let lines: [&[&str]; 10] = [
        &["build", "t.csv", "-o", &file],
        &["rebuild", &file, "--apply", "c.csv"],
        &["compact", &file, &file, "-o", &other],
        &["export", &file, "-o", &csv],
        &["select", &file, "--where", "key == 5", "-o", &other],
        &["fsck", &file],
        &["fsck", &file, "--salvage", &other],
        &["inspect", &file],
        &["inspect", &file, "--mapping"],
        &["man", &name("")],
    ];
    for line in lines {
        let run = place.run(line).ends(0);
        let said = run.out + &run.err;
        assert!(said.contains("a\\u{1b}[31m\\u{202e}b"), "{line:?}: {said}");
        assert!(!said.contains(['\u{1b}', '\u{202e}']), "{line:?}: {said}");
    }
}

impl Place {
    fn names_in(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }
}
