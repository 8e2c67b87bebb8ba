//! The relational commands: every answer beside nested loops, in every format, and what is refused.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;
use tpchgen::distribution::Distributions;
use tpchgen::generators::{CustomerGenerator, OrderGenerator};
use tpchgen::text::TextPool;

struct Place(TempDir);

/// Keys and values.
type Tuples = Vec<(u64, u64)>;

impl Place {
    fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("text")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .collect();
        names.sort();
        names
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
    fn run(&self, args: &[&str]) -> String {
        String::from_utf8(self.output(args, 0).stdout).expect("text")
    }

    /// Returns the one line on standard error; checks that no files are left.
    #[track_caller]
    fn refused(&self, args: &[&str], code: i32, parts: &[&str]) {
        let before = self.names();
        let output = self.output(args, code);
        let line = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(line.starts_with("error: ") && line.lines().count() == 1, "{line}");
        for part in parts {
            assert!(line.contains(part), "{line}: no {part}");
        }
        assert!(output.stdout.is_empty());
        assert_eq!(self.names(), before);
    }

    /// `NAME.pleach` of these tuples, which come back in the order of their keys.
    fn build(&self, name: &str, mut tuples: Tuples) -> Tuples {
        let rows: String = tuples.iter().map(|(key, value)| format!("{key},{value}\n")).collect();
        self.write("t.csv", &format!("id,{name}\n{rows}"));
        self.run(&["build", "t.csv", "-o", &format!("{name}.pleach"), "--quiet"]);
        tuples.sort_by_key(|tuple| tuple.0);
        tuples
    }
}

fn mix(number: u64) -> u64 {
    let word =
        (number ^ number >> 30).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word ^ word >> 27
}

/// Tuples with duplicates, and keys that the other seed has too.
fn tuples(seed: u64, count: u64) -> Tuples {
    (0..count).map(|row| (mix(seed * 1000 + row) % 60, mix(seed * 2000 + row) % 100)).collect()
}

fn lines(rows: &[(u64, Vec<Option<u64>>)]) -> String {
    let cell = |value: &Option<u64>| value.map_or(String::new(), |value| value.to_string());
    rows.iter()
        .map(|(key, values)| {
            let cells: String = values.iter().map(|value| format!("\t{}", cell(value))).collect();
            format!("{key}{cells}\n")
        })
        .collect()
}

fn plain(tuples: &[(u64, u64)]) -> String {
    tuples.iter().map(|(key, value)| format!("{key}\t{value}\n")).collect()
}

/// A join by nested loops.
fn joined(left: &[(u64, u64)], right: &[(u64, u64)], how: &str) -> Vec<(u64, Vec<Option<u64>>)> {
    let mut rows = Vec::new();
    for key in 0..60 {
        let of = |side: &[(u64, u64)]| -> Vec<u64> {
            side.iter().filter(|tuple| tuple.0 == key).map(|tuple| tuple.1).collect()
        };
        let (a, b) = (of(left), of(right));
        match how {
            "semi" | "anti" => {
                let wanted = (how == "semi") != b.is_empty();
                rows.extend(a.iter().filter(|_| wanted).map(|&value| (key, vec![Some(value)])));
                continue;
            }
            _ => {}
        }
        for &left in &a {
            rows.extend(b.iter().map(|&right| (key, vec![Some(left), Some(right)])));
        }
        if b.is_empty() && matches!(how, "left" | "full") {
            rows.extend(a.iter().map(|&left| (key, vec![Some(left), None])));
        }
        if a.is_empty() && matches!(how, "right" | "full") {
            rows.extend(b.iter().map(|&right| (key, vec![None, Some(right)])));
        }
    }
    rows
}

#[test]
fn joins() {
    let place = Place::new();
    let (a, b) = (place.build("a", tuples(1, 150)), place.build("b", tuples(2, 90)));
    for how in ["inner", "left", "right", "full", "semi", "anti"] {
        let wanted = joined(&a, &b, how);
        let command = ["join", "a.pleach", "b.pleach", "--how", how];
        assert_eq!(place.run(&command), lines(&wanted), "{how}");
        let is_pair = !matches!(how, "semi" | "anti");
        let is_outer = matches!(how, "left" | "right" | "full");
        for out in ["o.pleach", "o.parquet", "o.arrow", "o.csv", "o.tsv"] {
            place.run(&[&command[..], &["-o", out, "--quiet"]].concat());
        }
        let header = match (is_pair, is_outer) {
            (false, _) => "id,a",
            (true, false) => "key,left,right",
            (true, true) => "key,left,right,sides",
        };
        assert_eq!(place.read("o.csv").lines().next(), Some(header));
        // An index file holds it too, and gives the same table.
        place.run(&["export", "o.pleach", "-o", "x.csv"]);
        let rows = |name: &str| place.read(name).lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(rows("x.csv"), rows("o.csv"), "{how}");
        assert_eq!(rows("o.csv").len(), wanted.len());
        assert_eq!(rows("o.csv").join("\n").replace(',', "\t"), rows("o.tsv").join("\n"));
        let values = header.split_once(',').map_or("", |(_, values)| values);
        for table in ["o.parquet", "o.arrow"] {
            place.run(&["build", table, "-o", "y.pleach", "--value", values, "--quiet"]);
            place.run(&["export", "y.pleach", "-o", "y.csv"]);
            assert_eq!(rows("y.csv"), rows("o.csv"), "{how} {table}");
        }
        place.run(&["fsck", "o.pleach"]);
    }
    let first = &joined(&a, &b, "full")[0];
    let line = place.run(&["join", "a.pleach", "b.pleach", "--how", "full", "--json"]);
    let line: Value = serde_json::from_str(line.lines().next().expect("a line")).expect("JSON");
    let text = |value: Option<u64>| value.map_or(Value::Null, |value| value.to_string().into());
    assert_eq!(
        line,
        json!({ "key": first.0.to_string(), "left": text(first.1[0]), "right": text(first.1[1]) })
    );
    // A join of a join: fields of both.
    place.run(&["join", "a.pleach", "b.pleach", "-o", "ab.pleach", "--quiet"]);
    place.run(&["join", "ab.pleach", "b.pleach", "-o", "abb.pleach", "--quiet"]);
    let text = place.run(&["inspect", "abb.pleach"]);
    assert!(
        text.contains("left_left: u64, from byte 0") && text.contains("right: u64, from byte 16"),
        "{text}"
    );
    assert_eq!(
        place.run(&["join", "ab.pleach", "b.pleach"]),
        place.run(&["range", "abb.pleach", "..", ".."])
    );
}

#[test]
fn sets() {
    let place = Place::new();
    let names = ["a", "b", "c"];
    let files = names.map(|name| format!("{name}.pleach"));
    let all: Vec<Tuples> =
        (1..=3).zip(names).map(|(seed, name)| place.build(name, tuples(seed, 70))).collect();
    let of = |file: &[(u64, u64)], key: u64| -> Tuples {
        file.iter().copied().filter(|tuple| tuple.0 == key).collect()
    };
    for count in [2, 3] {
        for multiset in [false, true] {
            let mut wanted: [Tuples; 3] = Default::default();
            for key in 0..60 {
                let mut union = of(&all[0], key);
                let mut both = union.clone();
                for file in &all[1..count] {
                    let other = of(file, key);
                    let more = other.len().saturating_sub(union.len());
                    union.extend_from_slice(&other[other.len() - more..]);
                    both.truncate(other.len());
                }
                let (left, right) = (of(&all[0], key), of(&all[1], key));
                let mut rest = left[right.len().min(left.len())..].to_vec();
                if !multiset {
                    union.truncate(1);
                    both.truncate(1);
                    rest = if right.is_empty() { left[..left.len().min(1)].to_vec() } else { Vec::new() };
                }
                wanted[0].extend(union);
                wanted[1].extend(both);
                wanted[2].extend(rest);
            }
            let flag: &[&str] = if multiset { &["--multiset"] } else { &[] };
            let inputs: Vec<&str> = files[..count].iter().map(String::as_str).collect();
            for (command, wanted) in [("union", &wanted[0]), ("intersect", &wanted[1])] {
                let run = [&[command][..], &inputs, flag].concat();
                assert_eq!(place.run(&run), plain(wanted), "{run:?}");
                place.run(&[&run[..], &["-o", "o.pleach", "--quiet", "--threads", "1"]].concat());
                assert_eq!(place.run(&["range", "o.pleach", "..", ".."]), plain(wanted));
            }
            let run = [&["difference", "a.pleach", "b.pleach"][..], flag].concat();
            assert_eq!(place.run(&run), plain(&wanted[2]), "{run:?}");
        }
    }
    assert_eq!(place.names().iter().filter(|name| name.starts_with('.')).count(), 0);
}

#[test]
fn selections() {
    let place = Place::new();
    let a = place.build("a", tuples(1, 150));
    let kept = |test: &dyn Fn(usize, u64, u64) -> bool| {
        let kept: Tuples =
            (0..).zip(&a).filter(|(rank, tuple)| test(*rank, tuple.0, tuple.1)).map(|(_, t)| *t).collect();
        plain(&kept)
    };
    for (text, test) in [
        ("key > 30", &(|_: usize, key: u64, _: u64| key > 30) as &dyn Fn(usize, u64, u64) -> bool),
        ("key between 10 and 20 and a != 5", &|_, key, value| (10..=20).contains(&key) && value != 5),
        ("id in (3, 7, 59) or rank < 4", &|rank, key, _| [3, 7, 59].contains(&key) || rank < 4),
        ("value & 7 == key & 7", &|_, key, value| value & 7 == key & 7),
        ("rank >= 100 and rank < 120", &|rank, _, _| (100..120).contains(&rank)),
        ("not (key < 1000)", &|_, _, _| false),
        ("true", &|_, _, _| true),
    ] {
        assert_eq!(place.run(&["select", "a.pleach", "--where", text]), kept(test), "{text}");
        place.run(&["select", "a.pleach", "--where", text, "-o", "o.pleach", "--quiet"]);
        assert_eq!(place.run(&["range", "o.pleach", "..", ".."]), kept(test), "{text}");
    }
    let told = place.output(&["select", "a.pleach", "--where", "key < 5", "--explain", "-o", "o.csv"], 0);
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("explain: keys that are read: (.., 0x4]"), "{told}");
    assert!(told.contains("select made o.csv: "), "{told}");
    let document = place.run(&["select", "a.pleach", "--where", "key < 5", "--json", "-o", "o.csv"]);
    let document: Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(document["schema"], "pleach.select.v1");
    let select = |text| ["select", "a.pleach", "--where", text, "-o", "n.csv"];
    place.refused(&select("key <"), 2, &["expected an operand, found the end: column 6 of the expression"]);
    place.refused(&select("kee < 5"), 2, &["unknown name 'kee'", "key, value, rank"]);
    place.refused(&select("1 / value >= 0"), 8, &["divides by zero", "rank"]);
    assert!(place.run(&["select", "a.pleach", "--where", "value != 0 and 1 / value >= 1"]).contains("\t1\n"));
}

#[test]
fn projections_and_reductions() {
    let place = Place::new();
    let a = place.build("a", tuples(1, 150));
    let mut swapped: Tuples = a.iter().map(|tuple| (tuple.1, tuple.0)).collect();
    swapped.sort_by_key(|tuple| tuple.0);
    let swap = ["project", "a.pleach", "--columns", "value,key"];
    assert_eq!(place.run(&swap), plain(&swapped));
    place.run(&[&swap[..], &["-o", "o.pleach", "--quiet"]].concat());
    assert_eq!(place.run(&["range", "o.pleach", "..", ".."]), plain(&swapped));
    place.run(&[&swap[..], &["-o", "o.csv", "--quiet"]].concat());
    assert_eq!(place.read("o.csv").lines().next(), Some("a,id"));
    let high = place.run(&["project", "a.pleach", "--columns", "key[2:62],low=key[0:2],rank"]);
    let wanted: String =
        (0..).zip(&a).map(|(rank, (key, _))| format!("{}\t{}\t{rank}\n", key >> 2, key & 3)).collect();
    assert_eq!(high, wanted);
    let mut groups: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    a.iter().for_each(|(key, value)| groups.entry(*key).or_default().push(*value));
    for (op, of) in [
        ("sum", &(|values: &[u64]| values.iter().sum()) as &dyn Fn(&[u64]) -> u64),
        ("min", &|values| values.iter().copied().min().unwrap_or(0)),
        ("max", &|values| values.iter().copied().max().unwrap_or(0)),
        ("count", &|values| values.len() as u64),
        ("first", &|values| values[0]),
    ] {
        let wanted: Tuples = groups.iter().map(|(key, values)| (*key, of(values))).collect();
        assert_eq!(place.run(&["reduce", "a.pleach", "--op", op]), plain(&wanted), "{op}");
    }
    place.refused(&["project", "a.pleach", "--columns", "key,left"], 2, &["unknown name 'left'"]);
    place.run(&["join", "a.pleach", "a.pleach", "-o", "aa.pleach", "--quiet"]);
    place.refused(
        &["reduce", "aa.pleach", "--op", "sum"],
        8,
        &["cannot compute the sum of record<left: u64, right: u64> values"],
    );
    let fields = place.run(&["project", "aa.pleach", "--columns", "key,right"]);
    let wanted: Tuples =
        joined(&a, &a, "inner").iter().map(|(key, values)| (*key, values[1].unwrap_or(0))).collect();
    assert_eq!(fields, plain(&wanted));
    let wanted: usize = joined(&a, &a, "inner").iter().filter(|(_, values)| values[0] < values[1]).count();
    assert_eq!(place.run(&["select", "aa.pleach", "--where", "left < right"]).lines().count(), wanted);
}

/// Joins by distance, by nested loops.
fn near(left: &[(u64, u64)], right: &[(u64, u64)], rule: &str, most: u64, how: &str) -> String {
    let mut text = String::new();
    for &(key, value) in left {
        let far = |tuple: &&(u64, u64)| tuple.0.abs_diff(key) <= most;
        let below = right.iter().rfind(|tuple| tuple.0 <= key);
        let above = right.iter().find(|tuple| tuple.0 >= key);
        let nearest = match (below, above) {
            (Some(below), Some(above)) if above.0 - key < key - below.0 => Some(above),
            _ => below.or(above),
        };
        let partners: Vec<&(u64, u64)> = match rule {
            "backward" => below.into_iter().filter(far).collect(),
            "forward" => above.into_iter().filter(far).collect(),
            "nearest" => nearest.into_iter().filter(far).collect(),
            _ => right.iter().filter(far).collect(),
        };
        match (how, partners.is_empty()) {
            ("semi", false) | ("anti", true) => text += &format!("{key}\t{value}\n"),
            ("semi" | "anti", _) => {}
            ("left", true) => text += &format!("{key}\t{value}\t\t\n"),
            _ => partners.iter().for_each(|(other, of_it)| {
                text += &format!("{key}\t{value}\t{other}\t{of_it}\n");
            }),
        }
    }
    text
}

#[test]
fn joins_by_distance() {
    let place = Place::new();
    let (a, b) = (place.build("a", tuples(1, 150)), place.build("b", tuples(2, 30)));
    for how in ["inner", "left", "semi", "anti"] {
        for (rule, most) in [
            ("backward", None),
            ("forward", Some(2)),
            ("nearest", Some(1)),
            ("nearest", None),
            ("band", Some(2)),
        ] {
            let text = most.unwrap_or(0).to_string();
            let how_and_files = ["join", "a.pleach", "b.pleach", "--how", how];
            let command = match (rule, most) {
                ("band", _) => [&how_and_files[..], &["--within", &text]].concat(),
                (_, Some(_)) => [&how_and_files[..], &["--asof", rule, "--tolerance", &text]].concat(),
                (_, None) => [&how_and_files[..], &["--asof", rule]].concat(),
            };
            let wanted = near(&a, &b, rule, most.unwrap_or(u64::MAX), how);
            assert_eq!(place.run(&command), wanted, "{how} {rule} {most:?}");
            for threads in ["1", "2"] {
                let out = format!("o{threads}.pleach");
                place
                    .run(&[&command[..], &["-o", &out, "--threads", threads, "--quiet", "--force"]].concat());
            }
            assert!(fs::read(place.path("o1.pleach")).unwrap() == fs::read(place.path("o2.pleach")).unwrap());
            for out in ["o.parquet", "o.arrow", "o.csv"] {
                place.run(&[&command[..], &["-o", out, "--quiet"]].concat());
            }
            let header = match how {
                "inner" => "key,left,key_right,right",
                "left" => "key,left,key_right,right,sides",
                _ => "id,a",
            };
            assert_eq!(place.read("o.csv").lines().next(), Some(header));
            // An index file holds it too, and gives the same table.
            place.run(&["export", "o1.pleach", "-o", "x.csv"]);
            let rows = |name: &str| place.read(name).lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(rows("o.csv"), rows("x.csv"), "{how} {rule}");
        }
    }
    let line = place.run(&["join", "a.pleach", "b.pleach", "--asof", "nearest", "--json"]);
    let first: Value = serde_json::from_str(line.lines().next().expect("a line")).expect("JSON");
    assert!(first["key_right"].is_string() && first["right"].is_string(), "{first}");
    let refused = |more: &[&str], code, parts: &[&str]| {
        place.refused(&[&["join", "a.pleach", "b.pleach"], more].concat(), code, parts);
    };
    refused(&["--asof", "nearest", "--how", "full"], 2, &["cannot make a full as-of join", "inner, left"]);
    refused(&["--within", "2", "--how", "right"], 2, &["cannot make a right band join"]);
    refused(&["--within", "-2"], 2, &["invalid distance '-2': a.pleach holds u64 keys: use a number"]);
    refused(&["--within", "5s"], 2, &["invalid distance '5s'", "such as 5"]);
    refused(&["--asof", "backward", "--tolerance", ""], 2, &["invalid distance ''"]);
    refused(&["--tolerance", "5"], 2, &["--asof"]);
    refused(&["--within", "5", "--asof", "nearest"], 2, &["--within", "--asof"]);
    place.write("s.csv", "k,v\nb,1\nd,2\n");
    place.run(&["build", "s.csv", "-o", "s.pleach", "--key-type", "utf8", "--quiet"]);
    let texts = ["join", "s.pleach", "s.pleach"];
    assert_eq!(place.run(&[&texts[..], &["--asof", "backward"]].concat()), "b\t1\tb\t1\nd\t2\td\t2\n");
    let advice = ["no distance between utf8 keys: s.pleach", "backward or forward, without a tolerance"];
    place.refused(&[&texts[..], &["--asof", "nearest"]].concat(), 8, &advice);
    place.refused(&[&texts[..], &["--within", "1"]].concat(), 8, &advice);
    // A text as the right key is a field of the record.
    place.run(&[&texts[..], &["--asof", "forward", "-o", "o.pleach", "--quiet"]].concat());
    assert_eq!(place.run(&["range", "o.pleach", "..", ".."]), "b\t1\tb\t1\nd\t2\td\t2\n");
}

#[test]
fn products() {
    let place = Place::new();
    let (a, b) = (place.build("a", tuples(1, 20)), place.build("b", tuples(2, 7)));
    for (combine, of) in [
        ("pair", &(|a: u64, b: u64| vec![Some(a), Some(b)]) as &dyn Fn(u64, u64) -> Vec<Option<u64>>),
        ("left", &|a, _| vec![Some(a)]),
        ("right", &|_, b| vec![Some(b)]),
    ] {
        let mut wanted = Vec::new();
        for left in &a {
            wanted.extend(b.iter().map(|right| (left.0, of(left.1, right.1))));
        }
        let command = ["product", "a.pleach", "b.pleach", "--combine", combine];
        assert_eq!(place.run(&command), lines(&wanted), "{combine}");
        place.run(&[&command[..], &["-o", "o.pleach", "--quiet"]].concat());
        assert_eq!(place.run(&["range", "o.pleach", "..", ".."]), lines(&wanted), "{combine}");
    }
}

/// Values whose missing part is not a word: five bytes of a record, eight of one, and four of a byte string.
#[test]
fn outer_joins_of_records_and_byte_strings() {
    let place = Place::new();
    place.write("a.csv", "id,n,tag\n1,5,abcd\n2,7,cdef\n");
    place.write("b.csv", "id,n,tag\n2,9,efgh\n3,11,ghij\n");
    for (columns, types, is_record) in
        [("n,tag", "u8,bytes4", true), ("n,tag", "u32,bytes4", true), ("tag", "bytes4", false)]
    {
        for side in ["a", "b"] {
            let (from, to) = (format!("{side}.csv"), format!("{side}.pleach"));
            place.run(&["build", &from, "-o", &to, "--value", columns, "--value-type", types, "--quiet"]);
        }
        let full = ["join", "a.pleach", "b.pleach", "--how", "full"];
        // With the number of a record, or without it.
        let with = |with: &'static str| if is_record { with } else { "" };
        let (none, zero, head) = (with("\t"), with("0,"), with("left_n,left_tag,right_n,right_tag"));
        let shown = format!(
            "1{}\t61626364{none}\t\n2{}\t63646566{}\t65666768\n3{none}\t{}\t6768696a\n",
            with("\t5"),
            with("\t7"),
            with("\t9"),
            with("\t11")
        );
        assert_eq!(place.run(&full), shown, "{types}");
        let rows = [
            ("1", "5,", "\\x61626364", zero, "\\x00000000"),
            ("2", "7,", "\\x63646566", "9,", "\\x65666768"),
        ];
        let mut table = format!("key,{},sides\n", if is_record { head } else { "left,right" });
        for (at, (key, n, left, m, right)) in rows.into_iter().enumerate() {
            let (n, m) = (if is_record { n } else { "" }, if is_record { m } else { "" });
            table += &format!("{key},{n}{left},{m}{right},{}\n", 1 + 2 * at);
        }
        table += &format!("3,{zero}\\x00000000,{}\\x6768696a,2\n", with("11,"));
        place.run(&[&full[..], &["-o", "o.csv", "--quiet"]].concat());
        assert_eq!(place.read("o.csv"), table, "{types}");
        let nothing: Vec<Value> = place
            .run(&[&full[..], &["--json"]].concat())
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!((&nothing[0]["right"], &nothing[2]["left"]), (&json!(null), &json!(null)), "{types}");
        // Other formats hold the same table.
        for format in ["parquet", "arrow", "pleach"] {
            place.run(&[&full[..], &["-o", &format!("o.{format}"), "--quiet"]].concat());
        }
        assert_eq!(place.run(&["export", "o.pleach", "-o", "-"]).replacen("id", "key", 1), table, "{types}");
        for format in ["parquet", "arrow"] {
            let file = fs::File::open(place.path(&format!("o.{format}"))).expect("opens");
            let batches: Vec<arrow_array::RecordBatch> = if format == "arrow" {
                let reader = arrow_ipc::reader::FileReader::try_new(file, None).expect("reads");
                reader.map(|batch| batch.expect("a batch")).collect()
            } else {
                let builder = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file);
                let reader = builder.expect("reads").build().expect("reads");
                reader.map(|batch| batch.expect("a batch")).collect()
            };
            assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 3, "{format}");
            let tag =
                batches[0].column_by_name(if is_record { "left_tag" } else { "left" }).expect("a column");
            let tag: &arrow_array::FixedSizeBinaryArray = tag.as_any().downcast_ref().expect("bytes");
            assert_eq!((tag.value(0), tag.value(2)), (b"abcd".as_slice(), [0; 4].as_slice()), "{format}");
        }
    }
    place.write("t.csv", "t\na\n\"\"\nb\n");
    place.run(&["build", "t.csv", "-o", "t.pleach", "--key-type", "utf8", "--quiet"]);
    let all = ["select", "t.pleach", "--where", "rank >= 0"];
    place.refused(
        &[&all[..], &["-o", "o2.tsv"]].concat(),
        8,
        &["a line of TSV would be blank and so skipped", "o2.tsv"],
    );
    place.run(&[&all[..], &["-o", "o2.csv", "--quiet"]].concat());
    assert_eq!(place.read("o2.csv"), "t\n\"\"\na\nb\n");
}

#[test]
fn what_is_refused_leaves_nothing() {
    let place = Place::new();
    place.build("a", tuples(1, 5000));
    place.write("t.csv", "k,v\n1,x\n");
    place.run(&["build", "t.csv", "-o", "text.pleach", "--value-type", "utf8", "--quiet"]);
    place.run(&[
        "build",
        "t.csv",
        "-o",
        "narrow.pleach",
        "--key-type",
        "u32",
        "--value-type",
        "utf8",
        "--quiet",
    ]);
    place.refused(
        &["join", "a.pleach", "narrow.pleach", "-o", "o.pleach"],
        8,
        &["key types differ", "u64", "u32"],
    );
    place.refused(&["union", "a.pleach", "text.pleach", "-o", "o.csv"], 8, &["value types differ"]);
    place.refused(
        &["union", "a.pleach", "a.pleach", "text.pleach", "-o", "o.csv"],
        8,
        &["value types differ"],
    );
    place.refused(&["join", "a.pleach", "a.pleach", "-o", "a.pleach"], 8, &["output is the input: a.pleach"]);
    place.refused(&["join", "a.pleach", "a.pleach", "-o", "o.txt"], 2, &["unknown extension: o.txt"]);
    place.refused(&["join", "a.pleach", "none.pleach", "-o", "o.csv"], 8, &["none.pleach"]);
    place.refused(&["union", "a.pleach"], 2, &["pleach union --help"]);
    let device = ["join", "a.pleach", "a.pleach", "-o", "o.csv", "--device", "cuda"];
    place.refused(&device, 8, &["no device", "--device cpu"]);
    // A flipped bit in a value: every command that reads it says so, and the file that was there stays.
    let mut bytes = fs::read(place.path("a.pleach")).expect("reads");
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(place.path("bad.pleach"), bytes).expect("written");
    place.write("o.csv", "old");
    for out in ["o.csv", "o.parquet", "o.pleach"] {
        for command in [
            &["select", "bad.pleach", "--where", "value < 200"][..],
            &["project", "bad.pleach", "--columns", "value,key"],
            &["reduce", "bad.pleach", "--op", "count"],
            &["union", "a.pleach", "bad.pleach"],
            &["join", "bad.pleach", "a.pleach"],
        ] {
            place.refused(&[command, &["-o", out]].concat(), 4, &["bad.pleach"]);
        }
    }
    assert_eq!(place.read("o.csv"), "old");
}

/// The example of the README.
#[test]
fn orders_of_customers() {
    let place = Place::new();
    let (mut orders, mut customers) = (String::new(), String::new());
    let mut nations = BTreeMap::new();
    // Comments are not used: a short text to take them from is made sooner.
    let distributions = Distributions::static_default();
    let pool = TextPool::new(100_000, distributions);
    let made = CustomerGenerator::new_with_distributions_and_text_pool(0.002, 1, 1, distributions, &pool);
    for customer in made.iter() {
        nations.insert(customer.c_custkey, customer.c_nationkey);
        customers += &format!("{},{},{}\n", customer.c_custkey, customer.c_nationkey, customer.c_acctbal);
    }
    let mut rows = Vec::new();
    let made = OrderGenerator::new_with_distributions_and_text_pool(0.002, 1, 1, distributions, &pool);
    for order in made.iter() {
        let price = order.o_totalprice.to_string();
        orders += &format!("{},{},{price}\n", order.o_orderkey, order.o_custkey);
        rows.push((order.o_custkey, order.o_orderkey, price.parse::<f64>().expect("a price")));
    }
    place.write("orders.csv", &format!("o_orderkey,o_custkey,o_totalprice\n{orders}"));
    place.write("customer.csv", &format!("c_custkey,c_nationkey,c_acctbal\n{customers}"));
    for line in [
        "build orders.csv -o orders.pleach --key o_custkey --value o_orderkey,o_totalprice --value-type u64,f64",
        "build customer.csv -o customers.pleach --value c_nationkey,c_acctbal --value-type u8,f64",
        "join orders.pleach customers.pleach -o joined.pleach",
        "project joined.pleach --columns nation=right_c_nationkey,left_o_orderkey -o by-nation.pleach",
        "reduce by-nation.pleach --op count -o orders-of-nations.csv",
    ] {
        place.run(&line.split(' ').chain(["--quiet"]).collect::<Vec<_>>());
    }
    rows.sort_by_key(|row| row.0);
    assert!(rows.len() > 2000 && nations.len() == 300);
    let answer = place.run(&[
        "select",
        "joined.pleach",
        "--where",
        "right_c_nationkey == 7 and left_o_totalprice > 2.5e5",
    ]);
    let wanted: Vec<(u64, u64)> = rows
        .iter()
        .filter(|(customer, _, price)| nations[customer] == 7 && *price > 2.5e5)
        .map(|(customer, order, _)| (*customer as u64, *order as u64))
        .collect();
    let found: Vec<(u64, u64)> = answer
        .lines()
        .map(|line| {
            let mut cells = line.split('\t').map(|cell| cell.parse::<u64>());
            let mut next = || cells.next().expect("a cell").expect("a number");
            (next(), next())
        })
        .collect();
    assert!(!wanted.is_empty());
    assert_eq!(found, wanted);
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    rows.iter().for_each(|(customer, ..)| *counts.entry(nations[customer]).or_default() += 1);
    let wanted: String = counts.iter().map(|(nation, count)| format!("{nation},{count}\n")).collect();
    assert_eq!(
        place.read("orders-of-nations.csv").split_once('\n').map(|(_, rows)| rows),
        Some(wanted.as_str())
    );
}

#[test]
fn reductions_of_fields_and_means() {
    let place = Place::new();
    place.write("t.csv", "id,amount,price,word\n1,5,0.50,b\n2,7,1.25,c\n1,6,0.25,a\n1,2,0.00,d\n");
    let types = ["--value", "amount,price,word", "--value-type", "u8,decimal(5,2),utf8", "--quiet"];
    place.run(&[&["build", "t.csv", "-o", "t.pleach"], &types[..]].concat());
    let wanted = "1\t13\t0.25\t3\tb\n2\t7\t1.25\t1\tc\n";
    let all = "sum:amount,avg:price,count,first:word";
    assert_eq!(place.run(&["reduce", "t.pleach", "--op", all]), wanted);
    assert_eq!(place.run(&[&["reduce", "t.csv", "--op", all], &types[..4]].concat()), wanted);
    place.run(&["reduce", "t.pleach", "--op", all, "-o", "o.csv", "--quiet"]);
    let head = "id,sum_amount,avg_price,count,first_word\n";
    assert_eq!(place.read("o.csv"), format!("{head}{}", wanted.replace('\t', ",")));
    place.run(&["reduce", "t.pleach", "--op", all, "-o", "o.pleach", "--quiet"]);
    assert_eq!(place.run(&["range", "o.pleach", "..", ".."]), wanted);
    let of_field = ["reduce", "t.pleach", "--op", "max,min,count", "--field", "amount"];
    assert_eq!(place.run(&of_field), "1\t6\t2\t3\n2\t7\t7\t1\n");
    assert_eq!(place.run(&["reduce", "t.pleach", "--op", "sum", "--field", "price"]), "1\t0.75\n2\t1.25\n");
    let a = place.build("a", tuples(1, 150));
    let mut means: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    a.iter().for_each(|(key, value)| means.entry(*key).or_default().push(*value));
    let mean = |of: &Vec<u64>| of.iter().sum::<u64>() as f64 / of.len() as f64;
    let wanted: String = means.iter().map(|(key, of)| format!("{key}\t{:?}\n", mean(of))).collect();
    assert_eq!(place.run(&["reduce", "a.pleach", "--op", "avg"]), wanted);
    place.refused(&["reduce", "t.pleach", "--op", "sum:no"], 8, &["no field \"no\"", "amount, price, word"]);
    place.refused(&["reduce", "t.pleach", "--op", "avg:word"], 8, &["cannot compute the avg of utf8"]);
    place.refused(&["reduce", "t.pleach", "--op", "avg"], 8, &["cannot compute the avg"]);
    place.refused(&["reduce", "t.pleach", "--op", "mix"], 2, &["unknown reduction 'mix'", "did you mean"]);
    place.refused(&["reduce", "t.pleach", "--op", "count,count"], 8, &["name each of them once"]);
}
