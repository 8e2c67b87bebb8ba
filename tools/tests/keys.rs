//! Keys of several columns, batches of prefixes, and keys that are shorter than those they stand for.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

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

/// What a command says on standard error, on one line, without success.
#[track_caller]
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = pleach(folder, arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.lines().count() == 1, "{arguments:?}: {told}");
    told
}

const CALLS: &str = "chrom,pos,name,depth\n\
    chr2,100,a,7\n\
    chr1,200,b,8\n\
    \"chr1,x\",5,c,9\n\
    chr1,100,d,10\n\
    chr10,1,e,11\n\
    chr1,300,\"q\"\"z\",12\n";

fn calls(folder: &Path) {
    fs::write(folder.join("calls.csv"), CALLS).expect("writes");
    let of_text = ["--key", "chrom,pos", "--key-type", "utf8,u32", "--value", "depth", "--value-type", "u32"];
    printed(folder, &[&["build", "calls.csv", "-o", "a", "-q"][..], &of_text].concat());
}

#[test]
fn keys_of_several_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    calls(folder);
    assert_eq!(printed(folder, &["get", "a", "chr1,100", "\"chr1,x\",5"]), "chr1,100\t10\n\"chr1,x\",5\t9\n");
    assert_eq!(pleach(folder, &["get", "a", "chr1,101"]).status.code(), Some(1));
    let first = "chr1,100\t10\nchr1,200\t8\nchr1,300\t12\n";
    assert_eq!(printed(folder, &["range", "a", "--prefix", "chr1"]), first);
    let between = printed(folder, &["range", "a", "chr1", "chr10"]);
    assert_eq!(between, format!("{first}\"chr1,x\",5\t9\n"));
    let inclusive = printed(folder, &["range", "a", "chr1", "chr10", "--inclusive"]);
    assert_eq!(inclusive, format!("{between}chr10,1\t11\n"));
    assert_eq!(printed(folder, &["range", "a", "chr1,150", "chr1,300"]), "chr1,200\t8\n");
    assert_eq!(printed(folder, &["get", "a", "--floor", "chr1,250"]), "chr1,250\tchr1,200\t8\n");
    let json = printed(folder, &["--json", "get", "a", "\"chr1,x\",5"]);
    assert_eq!(json, "{\"key\":\"\\\"chr1,x\\\",5\",\"value\":9}\n");
    printed(folder, &["fsck", "a", "-q"]);
    let shown = printed(folder, &["inspect", "a"]);
    assert!(shown.contains("bytes (utf8, u32) \"chrom,pos\", chr1,100 to chr2,100"), "{shown}");
}

#[test]
fn composite_keys_go_out_as_columns_and_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    calls(folder);
    let csv = printed(folder, &["export", "a", "-o", "-"]);
    assert!(csv.starts_with("chrom,pos,depth\nchr1,100,10\n"), "{csv}");
    for (name, types) in
        [("b.csv", &["--key-type", "utf8,u32", "--value-type", "u32"][..]), ("b.parquet", &[])]
    {
        let _ = fs::remove_file(folder.join("b"));
        printed(folder, &["export", "a", "-o", name, "-q"]);
        let build =
            [&["build", name, "-o", "b", "-q", "--key", "chrom,pos", "--value", "depth"], types].concat();
        printed(folder, &build);
        assert!(
            fs::read(folder.join("a")).expect("reads") == fs::read(folder.join("b")).expect("reads"),
            "{name}"
        );
    }
    // Changes have the columns of the parts.
    let changes = "op,chrom,pos,depth\nput,chr1,100,99\ndel,chr2,100,\nadd,chr3,7,1\n";
    fs::write(folder.join("changes.csv"), changes).expect("writes");
    printed(folder, &["rebuild", "b", "--apply", "changes.csv", "-q"]);
    let after = printed(folder, &["range", "b", "..", ".."]);
    assert!(after.contains("chr1,100\t99\n") && after.ends_with("chr3,7\t1\n"), "{after}");
    let joined = printed(folder, &["join", "a", "b"]);
    assert!(joined.starts_with("chr1,100\t10\t99\n"), "{joined}");
    printed(folder, &["join", "a", "b", "-o", "j.csv", "-q"]);
    let joined = fs::read_to_string(folder.join("j.csv")).expect("reads");
    assert!(joined.starts_with("chrom,pos,left,right\nchr1,100,10,99\n"), "{joined}");
    // Two numbers are one word, and dates keep their form.
    fs::write(folder.join("d.csv"), "day,shop,n\n2024-02-29,7,1\n1969-12-31,300,2\n").expect("writes");
    let of_days =
        ["build", "d.csv", "-o", "d", "-q", "--key", "day,shop", "--key-type", "date,u16", "--value-type"];
    printed(folder, &[&of_days[..], &["u32"]].concat());
    assert_eq!(printed(folder, &["range", "d", "..", ".."]), "1969-12-31,300\t2\n2024-02-29,7\t1\n");
    assert!(printed(folder, &["inspect", "d"]).contains("u64 (date, u16)"));
}

#[test]
fn wrong_composite_keys_get_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    calls(folder);
    for (arguments, part) in [
        (&["get", "a", "chr1"][..], "give its 2 parts, separated by commas, such as abc,5"),
        (&["get", "a", "chr1,5,6"], "give its 2 parts"),
        (&["get", "a", "chr1,99999999999"], "outside the range"),
        (&["range", "a", "--prefix", "chr1,x"], "no (utf8, u32) key begins with 'chr1,x'"),
        (
            &["build", "calls.csv", "-o", "x", "--key", "chrom,chrom"],
            "two columns of the key have the name \"chrom\"",
        ),
        (&["build", "calls.csv", "-o", "x", "--key", "chrom,no"], "no column \"no\""),
        (
            &[
                "build",
                "calls.csv",
                "-o",
                "x",
                "--key",
                "pos,depth",
                "--key-type",
                "u8,u8",
                "--value-type",
                "none",
            ],
            "row 6, column \"pos\": 300 does not fit u8 (0 to 255)",
        ),
        (
            &["build", "calls.csv", "-o", "x", "--key", "pos,depth", "--key-type", "u8,u8,u8"],
            "2 key columns, but 3 types",
        ),
        (
            &["build", "calls.csv", "-o", "x", "--key", "pos,depth", "--key-type", "u32,f64"],
            "'f64' for a part of a key",
        ),
        (&["build", "calls.csv", "-o", "x", "--key-type", "u32,u32"], "types of parts without parts"),
        (
            &["build", "calls.csv", "-o", "x", "--key", "pos,depth", "--interval", "name"],
            "intervals need keys of one column",
        ),
        (&["build", "calls.csv", "-o", "x", "--key", "chrom,pos", "--key-type", "hash64"], "of one column"),
    ] {
        let told = refused(folder, arguments);
        assert!(told.contains(part), "{arguments:?}: {part:?} is not in {told}");
    }
    assert!(!folder.join("x").exists());
}

#[test]
fn batches_of_prefixes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    calls(folder);
    fs::write(folder.join("p.txt"), "chr1\nchr9\nchr2\nchr1,100\n").expect("writes");
    let counted = printed(folder, &["range", "a", "--prefixes", "p.txt", "--count"]);
    assert_eq!(counted, "chr1\t3\nchr9\t0\nchr2\t1\nchr1,100\t1\n");
    let limited = printed(folder, &["range", "a", "--prefixes", "p.txt", "--limit", "1"]);
    assert_eq!(limited, "chr1\tchr1,100\t10\nchr2\tchr2,100\t7\nchr1,100\tchr1,100\t10\n");
    let json = printed(folder, &["--json", "range", "a", "--prefixes", "p.txt", "--limit", "1"]);
    assert!(json.starts_with("{\"prefix\":\"chr1\",\"key\":\"chr1,100\",\"value\":10}\n"), "{json}");
    // From standard input, and for digits.
    fs::write(folder.join("h.csv"), "h,n\n5baa61,1\n5baa70,2\n5bff00,3\n").expect("writes");
    printed(folder, &["build", "h.csv", "-o", "h", "--key-type", "hex", "-q"]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_pleach"))
        .current_dir(folder)
        .args(["range", "h", "--prefixes", "-", "--count"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("is piped").write_all(b"5\n5baa\n5b\n").expect("writes");
    let output = child.wait_with_output().expect("ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "5\t3\n5baa\t2\n5b\t3\n");
    assert!(refused(folder, &["range", "h", "--prefixes", "p.txt"]).contains("'chr1'"));
}

#[test]
fn shorter_keys_say_that_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let digits = |number: u64| format!("{:016x}{number:08x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let rows: String = (0..500).map(|number| format!("{},{number}\n", digits(number))).collect();
    fs::write(folder.join("h.csv"), format!("h,n\n{rows}")).expect("writes");
    let built = |name: &str, key_type: &str| {
        let output =
            pleach(folder, &["build", "h.csv", "-o", name, "--key-type", key_type, "--value-type", "u32"]);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (name, key_type, logical) in [("p", "prefix:auto", "hex:"), ("h", "hash64", "u64 hash64")] {
        let told = built(name, key_type);
        assert!(told.contains(logical) && told.contains("approximate: about "), "{told}");
        let json = printed(folder, &["--json", "get", name, &digits(7)]);
        assert!(json.contains("\"value\":7,\"approximate\":") && !json.contains("false"), "{json}");
        let output = pleach(folder, &["get", name, &digits(7), "--explain"]);
        assert!(String::from_utf8_lossy(&output.stderr).contains("approximate: about "));
        assert!(printed(folder, &["inspect", name]).contains("approximate: about "));
        let json: serde_json::Value =
            serde_json::from_str(&printed(folder, &["--json", "inspect", name])).expect("is JSON");
        assert!(json["approximate"].as_f64().is_some_and(|rate| rate < 0.2), "{json}");
        printed(folder, &["fsck", name, "-q"]);
        fs::write(folder.join("c.csv"), format!("op,h,n\nput,{},9\n", digits(7))).expect("writes");
        for refused_one in [
            &["join", name, name][..],
            &["union", name, name],
            &["intersect", name, name],
            &["difference", name, name],
            &["reduce", name, "--op", "count"],
            &["rebuild", name, "--apply", "c.csv"],
            &["compact", name, name, "-o", "x"],
        ] {
            let told = refused(folder, refused_one);
            assert!(told.contains("--approximate"), "{told}");
            let lines = printed(folder, &[refused_one, &["--approximate", "--json"]].concat());
            let Some(line) = lines.lines().next() else {
                assert_eq!(refused_one[0], "difference");
                continue;
            };
            let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            // Both files count where two are joined.
            assert!(line["approximate"].as_f64().is_some_and(|rate| rate < 0.4), "{refused_one:?}: {line}");
        }
        assert!(printed(folder, &["get", name, &digits(7)]).ends_with("\t9\n"));
        // What is made of it says so, too.
        for file in ["s.csv", "s.pleach"] {
            let told = printed(folder, &["--json", "select", name, "--where", "value < 100", "-o", file]);
            assert!(told.contains("\"approximate\":") && !told.contains("false"), "{told}");
        }
        assert!(printed(folder, &["inspect", "s.pleach"]).contains("approximate: about "));
    }
    let exact: serde_json::Value = {
        built("e", "hex");
        serde_json::from_str(&printed(folder, &["--json", "inspect", "e"])).expect("is JSON")
    };
    assert_eq!(exact["approximate"], false);
}

/// Texts are taken as they are by builds, changes and queries alike: blanks, tabs, nothing at all.
#[test]
fn texts_of_shorter_keys_are_taken_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (key_type, name) in [("hash64", "h"), ("prefix:auto", "p")] {
        fs::write(folder.join("t.tsv"), "k\tn\n a\t1\na\t2\na \t3\n\t4\na\\tb\t5\n\\\\\t6\n")
            .expect("writes");
        let build = ["build", "t.tsv", "-o", name, "--key-type", key_type, "--value-type", "u32", "-q"];
        printed(folder, &build);
        let values = |keys: &[&str]| {
            let lines = printed(folder, &[&["get", name][..], keys].concat());
            lines
                .lines()
                .map(|line| line.rsplit('\t').next().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(values(&[" a", "a", "a ", ""]), ["1", "2", "3", "4"], "{key_type}");
        fs::write(folder.join("c.tsv"), "op\tk\tn\nput\t a\t11\nput\ta \t13\nput\t\t14\nput\ta\\tb\t15\n")
            .expect("writes");
        printed(folder, &["rebuild", name, "--apply", "c.tsv", "--approximate", "-q"]);
        assert_eq!(values(&[" a", "a", "a ", ""]), ["11", "2", "13", "14"], "{key_type}");
        assert_eq!(printed(folder, &["range", name, "..", "..", "--count"]), "6\n", "{key_type}");
    }
}

/// A table of hashes or prefixes has these, and never texts that would be hashed or cut again.
#[test]
fn shorter_keys_go_out_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("t.csv"), "k,n\nalpha,1\nalphabet,2\nbeta,3\n").expect("writes");
    for (key_type, name) in [("hash64", "h"), ("prefix:auto", "p")] {
        let build = ["build", "t.csv", "-o", name, "--key-type", key_type, "--value-type", "u32", "-q"];
        printed(folder, &build);
        let words = printed(folder, &["range", name, "..", "..", "--raw-values"]);
        for table in ["t.arrow", "t.parquet"] {
            printed(folder, &["export", name, "-o", table, "--force", "-q"]);
            printed(folder, &["build", table, "-o", "again", "-q"]);
            assert_eq!(printed(folder, &["range", "again", "..", ".."]), words, "{key_type} by {table}");
            assert!(printed(folder, &["inspect", "again"]).contains(if name == "h" {
                "u64 \"k\""
            } else {
                "utf8 \"k\""
            }));
        }
    }
    // Prefixes of texts are cut as keys are.
    assert_eq!(printed(folder, &["range", "p", "--prefix", "alphabetical", "--count"]), "1\n");
    assert_eq!(printed(folder, &["range", "p", "--prefix", "al", "--count"]), "2\n");
    let explained = pleach(folder, &["join", "p", "p", "--approximate", "--explain"]);
    assert!(String::from_utf8_lossy(&explained.stderr).contains("approximate: equal keys may stand for"));
}
