//! Counts, samples, statistics and differences: `get --count` and `--exists`, `--count` of the operators, `select
//! --limit`, `sample`, `stats`, `diff`, and several files of `fsck` and `inspect`.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    /// A folder with `a.pleach` and `b.pleach`, of numbers, and `t.pleach`, of texts.
    fn new() -> Self {
        let place = Self(TempDir::new().expect("a temporary folder"));
        place.build("a", "id,v\n1,10\n2,20\n2,21\n3,30\n9,90\n", &[]);
        place.build("b", "id,v\n2,21\n2,20\n3,31\n4,40\n9,90\n9,91\n", &[]);
        place.build("t", "name,v\nax,1\nabc,2\nab,3\n", &["--key-type", "utf8"]);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn build(&self, name: &str, text: &str, options: &[&str]) {
        fs::write(self.path("t.csv"), text).expect("written");
        let out = format!("{name}.pleach");
        self.run(&[&["build", "t.csv", "-o", &out, "--quiet"], options].concat(), 0);
    }

    #[track_caller]
    fn output(&self, args: &[&str], code: i32) -> Output {
        let output = Command::new(env!("CARGO_BIN_EXE_pleach"))
            .args(args)
            .current_dir(self.0.path())
            .output()
            .expect("the binary runs");
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// Standard output.
    #[track_caller]
    fn run(&self, args: &[&str], code: i32) -> String {
        String::from_utf8(self.output(args, code).stdout).expect("text")
    }

    #[track_caller]
    fn json(&self, args: &[&str], code: i32) -> Value {
        let text = self.run(&[args, &["--json"]].concat(), code);
        assert_eq!(text.lines().count(), 1, "{text}");
        serde_json::from_str(&text).expect("JSON")
    }
}

#[test]
fn get_counts_and_tells_which_keys_are_there() {
    let place = Place::new();
    for (args, count, code) in [
        (&["a.pleach", "1", "2", "9"][..], "3\n", 0),
        (&["a.pleach", "1", "7", "8"], "1\n", 1),
        (&["a.pleach", "2", "7", "--all"], "2\n", 1),
        (&["a.pleach", "0", "5", "--floor"], "1\n", 1),
        (&["t.pleach", "ab", "ax", "b"], "2\n", 1),
        (&["t.pleach", "ab", "b", "--ceiling"], "1\n", 1),
    ] {
        assert_eq!(place.run(&[&["get", "--count"], args].concat(), code), count, "{args:?}");
    }
    let told = place.json(&["get", "a.pleach", "1", "7", "--count"], 1);
    assert_eq!(told, serde_json::json!({"schema": "pleach.get-count.v1", "count": "1"}));
    assert_eq!(place.run(&["get", "a.pleach", "1", "7", "--exists"], 1), "1\ttrue\n7\tfalse\n");
    assert_eq!(place.run(&["get", "t.pleach", "ab", "b", "--exists"], 1), "ab\ttrue\nb\tfalse\n");
    assert_eq!(place.run(&["get", "a.pleach", "1", "--exists"], 0), "1\ttrue\n");
    let told = place.run(&["get", "a.pleach", "1", "7", "--exists", "--json"], 1);
    assert_eq!(told, "{\"key\":\"1\",\"exists\":true}\n{\"key\":\"7\",\"exists\":false}\n");
    let told = place.run(&["get", "t.pleach", "b", "--exists", "--json"], 1);
    assert_eq!(told, "{\"key\":\"b\",\"exists\":false}\n");
    // From a list, in one batch or several.
    let keys: String = (0..300_000).map(|key| format!("{key}\n")).collect();
    fs::write(place.path("keys.txt"), keys).expect("written");
    assert_eq!(place.run(&["get", "a.pleach", "--keys", "keys.txt", "--count"], 1), "4\n");
    let lines = place.run(&["get", "a.pleach", "--keys", "keys.txt", "--exists"], 1);
    let there: Vec<&str> = lines.lines().filter(|line| line.ends_with("true")).collect();
    assert_eq!((lines.lines().count(), there), (300_000, vec!["1\ttrue", "2\ttrue", "3\ttrue", "9\ttrue"]));
    // Standard output is data: who is no person is told by the exit code alone.
    assert!(place.output(&["get", "a.pleach", "7"], 1).stderr.is_empty());
}

#[test]
fn operators_count_and_select_stops() {
    let place = Place::new();
    for (args, count) in [
        (&["union", "a.pleach", "b.pleach"][..], "5\n"),
        (&["union", "a.pleach", "b.pleach", "--multiset"], "7\n"),
        (&["intersect", "a.pleach", "b.pleach"], "3\n"),
        (&["difference", "a.pleach", "b.pleach"], "1\n"),
        (&["join", "a.pleach", "b.pleach"], "7\n"),
        (&["product", "a.pleach", "b.pleach"], "30\n"),
        (&["select", "a.pleach", "--where", "value > 20"], "3\n"),
        // An answer out of order needs no sort to be counted.
        (&["project", "a.pleach", "--columns", "value,key"], "5\n"),
        (&["reduce", "a.pleach", "--op", "sum"], "4\n"),
    ] {
        let lines = place.run(args, 0).lines().count();
        assert_eq!(place.run(&[args, &["--count"]].concat(), 0), count, "{args:?}");
        assert_eq!(format!("{lines}\n"), count, "{args:?}");
    }
    let told = place.json(&["intersect", "a.pleach", "b.pleach", "--count"], 0);
    assert_eq!(told, serde_json::json!({"schema": "pleach.intersect-count.v1", "count": "3"}));
    let limited = |limit: &str| place.run(&["select", "a.pleach", "--where", "key > 1", "--limit", limit], 0);
    assert_eq!(limited("0"), "");
    assert_eq!(limited("2"), "2\t20\n2\t21\n");
    assert_eq!(limited("99"), "2\t20\n2\t21\n3\t30\n9\t90\n");
    for limit in [0, 1, 2, 99] {
        let limit = limit.to_string();
        let lines = limited(&limit);
        let select = ["select", "a.pleach", "--where", "key > 1", "--limit", &limit, "-q", "-o"];
        place.run(&[&select[..], &["l.pleach"]].concat(), 0);
        assert_eq!(place.run(&["range", "l.pleach", "..", ".."], 0), lines);
        let table = place.run(&[&select[..], &["-"]].concat(), 0);
        assert_eq!(
            table.lines().skip(1).map(|line| line.replace(',', "\t") + "\n").collect::<String>(),
            lines
        );
    }
    for args in [
        &["select", "a.pleach", "--where", "true", "--limit", "2", "--count"][..],
        &["union", "a.pleach", "b.pleach", "--count", "-o", "x.csv"],
        &["get", "a.pleach", "1", "--count", "--exists"],
        &["get", "a.pleach", "1", "--exists", "--rank"],
    ] {
        place.output(args, 2);
    }
    assert!(!place.path("x.csv").exists());
}

#[test]
fn samples_are_tuples_of_the_file() {
    let place = Place::new();
    let rows: String = (0..10_000).map(|key| format!("{key},{}\n", key * 2)).collect();
    place.build("many", &format!("id,v\n{rows}"), &[]);
    let drawn = place.run(&["sample", "many.pleach", "100"], 0);
    let keys: BTreeSet<u64> = drawn
        .lines()
        .map(|line| {
            let (key, value) = line.split_once('\t').expect("a tuple");
            let key: u64 = key.parse().expect("a key");
            assert_eq!(value, (key * 2).to_string());
            key
        })
        .collect();
    assert_eq!((keys.len(), drawn.lines().count()), (100, 100));
    assert!(keys.first() < Some(&1000) && keys.last() > Some(&9000), "spread over the file: {keys:?}");
    assert_eq!(drawn, place.run(&["sample", "many.pleach", "100", "--seed", "1"], 0));
    assert_ne!(drawn, place.run(&["sample", "many.pleach", "100", "--seed", "2"], 0));
    assert_eq!(place.run(&["sample", "a.pleach", "99"], 0), place.run(&["range", "a.pleach", "..", ".."], 0));
    assert_eq!(place.run(&["sample", "a.pleach", "0"], 0), "");
    assert_eq!(place.run(&["sample", "t.pleach", "1"], 0).lines().count(), 1);
}

#[test]
fn stats_are_those_of_the_tuples() {
    let place = Place::new();
    let told = place.json(&["stats", "b.pleach"], 0);
    assert_eq!((&told["tuples"], &told["keys"]["distinct"]), (&"6".into(), &"4".into()));
    assert_eq!((&told["keys"]["min"], &told["keys"]["max"]), (&"2".into(), &"9".into()));
    assert_eq!((&told["keys"]["repeated"], &told["keys"]["tuples_of_a_key_max"]), (&"2".into(), &"2".into()));
    assert_eq!((&told["keys"]["gap_max"], &told["keys"]["varying_bits"]), (&5.0.into(), &"f".into()));
    let sum = |histogram: &Value| -> u64 {
        let counts = histogram.as_array().expect("a list");
        counts.iter().map(|count| count.as_str().expect("a number").parse::<u64>().expect("a number")).sum()
    };
    assert_eq!((sum(&told["keys"]["histogram"]), sum(&told["values"][0]["histogram"])), (6, 6));
    assert_eq!(told["values"][0]["sum"], 293.0);
    let told = place.json(&["stats", "t.pleach"], 0);
    assert_eq!((&told["keys"]["min"], &told["keys"]["max"]), (&"ab".into(), &"ax".into()));
    let bytes = ["bytes_min", "bytes_max", "common_bytes"].map(|name| told["keys"][name].as_u64());
    assert_eq!(bytes, [Some(2), Some(3), Some(1)]);
    let text = place.run(&["stats", "b.pleach"], 0);
    for part in
        ["6 tuples", "different 4", "2 keys, 2 at most (2)", "5 at most (behind 4)", "4 of 64 differ", "████"]
    {
        assert!(text.contains(part), "{text}: no {part}");
    }
    // Whole numbers have whole ranges, and no more than there are numbers.
    place.build("w", "id,v\n1,1\n2,17\n2,40\n", &[]);
    let text = place.run(&["stats", "w.pleach"], 0);
    let bar = "\u{2588}".repeat(24);
    let half = "\u{2588}".repeat(12);
    let keys = format!("  from  tuples\n     1       1  {half}\n     2       2  {bar}\n");
    assert!(text.contains(&keys), "{text}");
    let (_, values) = text.split_once("\nvalues\n").expect("values");
    let lines: Vec<&str> = values.lines().skip_while(|line| !line.starts_with("  from ")).skip(1).collect();
    assert_eq!((lines.len(), lines[0]), (14, &*format!("     1       1  {bar}")), "{text}");
    assert_eq!((lines[1], lines[5]), ("     4       0", &*format!("    16       1  {bar}")), "{text}");
    // Floats with NaN, records, logical types, no values, nothing at all.
    place.build("f", "id,v\n1,NaN\n2,-1.5\n3,inf\n", &["--value-type", "f64"]);
    assert_eq!(place.json(&["stats", "f.pleach"], 0)["values"][0]["nan"], "1");
    place.run(&["stats", "f.pleach"], 0);
    let types = ["--value", "n,d", "--value-type", "u8,date"];
    place.build("r", "id,n,d\n1,7,2024-01-01\n2,9,2024-01-31\n", &types);
    let text = place.run(&["stats", "r.pleach"], 0);
    assert!(text.contains("field n") && text.contains("2024-01-31"), "{text}");
    place.build("n", "id\n1\n5\n", &["--value-type", "none"]);
    assert!(place.run(&["stats", "n.pleach"], 0).contains("2 tuples"));
    place.build("e", "id,v\n", &[]);
    assert!(place.run(&["stats", "e.pleach"], 0).contains("0 tuples"));
    place.build("x", "id,v\n0,1\n340282366920938463463374607431768211455,2\n", &["--key-type", "u128"]);
    assert!(place.run(&["stats", "x.pleach"], 0).contains("128 of 128 differ"));
}

#[test]
fn diff_finds_what_was_added_removed_and_changed() {
    let place = Place::new();
    let lines = place.output(&["diff", "a.pleach", "b.pleach"], 1);
    // The values of 2 have another order, which is no difference.
    let wanted = "-\t1\t10\n-\t3\t30\n+\t3\t31\n+\t4\t40\n+\t9\t91\n";
    assert_eq!(String::from_utf8_lossy(&lines.stdout), wanted);
    assert_eq!(String::from_utf8_lossy(&lines.stderr), "2 tuples added, 1 removed, 1 changed\n");
    let back = place.run(&["diff", "b.pleach", "a.pleach", "--count"], 1);
    assert_eq!(back, "added\t1\nremoved\t2\nchanged\t1\n");
    let told = place.json(&["diff", "a.pleach", "b.pleach", "--count"], 1);
    let wanted = serde_json::json!(
        {"schema": "pleach.diff.v1", "added": "2", "removed": "1", "changed": "1"}
    );
    assert_eq!(told, wanted);
    let first = place.run(&["diff", "a.pleach", "b.pleach", "--json"], 1);
    assert_eq!(first.lines().next(), Some("{\"difference\":\"removed\",\"key\":\"1\",\"value\":\"10\"}"));
    assert_eq!(place.run(&["diff", "a.pleach", "a.pleach"], 0), "");
    place.build("e", "id,v\n", &[]);
    assert_eq!(
        place.run(&["diff", "e.pleach", "a.pleach", "--count"], 1),
        "added\t5\nremoved\t0\nchanged\t0\n"
    );
    // A key with so many tuples that a search for each would not end.
    let rows = |from: u64, to: u64| -> String { (from..to).map(|v| format!("7,{v}\n")).collect() };
    place.build("m", &format!("id,v\n{}", rows(0, 200_000)), &[]);
    place.build("n", &format!("id,v\n{}{}", rows(100_000, 200_001), rows(0, 99_999)), &[]);
    let told = place.run(&["diff", "m.pleach", "n.pleach"], 1);
    assert_eq!(told, "-\t7\t99999\n+\t7\t200000\n");
    place.build("u", "name,v\nab,3\nabd,2\nax,1\n", &["--key-type", "utf8"]);
    assert_eq!(place.run(&["diff", "t.pleach", "u.pleach", "--quiet"], 1), "-\tabc\t2\n+\tabd\t2\n");
    let refused = place.output(&["diff", "a.pleach", "t.pleach"], 8);
    let line = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(line.contains("its keys are utf8") && line.contains("u64"), "{line}");
}

#[test]
fn several_files_are_checked_and_shown() {
    let place = Place::new();
    fs::write(place.path("foreign"), "text").expect("written");
    let mut bytes = fs::read(place.path("b.pleach")).expect("readable");
    bytes[9000] ^= 1;
    fs::write(place.path("damaged.pleach"), bytes).expect("written");
    let lines = place.run(&["fsck", "a.pleach", "t.pleach"], 0);
    assert_eq!(lines.lines().filter(|line| line.starts_with("clean: ")).count(), 2, "{lines}");
    let all = place.output(&["fsck", "foreign", "damaged.pleach", "a.pleach"], 4);
    let text = String::from_utf8_lossy(&all.stdout).into_owned();
    assert!(text.contains("damaged: damaged.pleach") && text.contains("clean: a.pleach"), "{text}");
    assert!(String::from_utf8_lossy(&all.stderr).contains("foreign"), "the first failure is told");
    let all = place.output(&["fsck", "foreign", "a.pleach", "none.pleach"], 8);
    let told = String::from_utf8_lossy(&all.stderr).into_owned();
    assert!(told.contains("foreign") && told.contains("none.pleach"), "{told}");
    let lines = place.run(&["fsck", "a.pleach", "damaged.pleach", "--json"], 4);
    let verdicts: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(verdicts.iter().map(|one| &one["verdict"]).collect::<Vec<_>>(), ["clean", "damaged"]);
    let text = place.run(&["inspect", "a.pleach", "t.pleach"], 0);
    assert!(text.contains("a.pleach") && text.contains("t.pleach"), "{text}");
    place.output(&["fsck", "a.pleach", "b.pleach", "--salvage", "x.pleach"], 2);
}
