//! A logical type is part of the type: in every command, for keys, values and fields of records.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

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

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], parts: &[&str]) {
    let output = pleach(folder, arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(2 | 8)), "{arguments:?}: {:?}: {told}", output.status.code());
    assert_eq!(told.lines().count(), 1, "{told}");
    for part in parts {
        assert!(told.contains(part), "{arguments:?}: {part:?} is not in {told}");
    }
}

/// A file of these keys of a type, with the values 1, 2 and so on.
#[track_caller]
fn file(folder: &Path, name: &str, key_type: &str, keys: &[&str]) {
    let rows: String = keys.iter().zip(1..).map(|(key, value)| format!("{key},{value}\n")).collect();
    let csv = format!("{name}.csv");
    fs::write(folder.join(&csv), format!("k,v\n{rows}")).expect("writes");
    printed(folder, &["build", &csv, "-o", name, "--key-type", key_type, "--value-type", "u32", "-q"]);
}

/// Types with texts that are their own, in ascending order.
const TYPES: &[(&str, &[&str])] = &[
    ("date", &["-0044-03-15", "1969-12-31", "2024-02-29", "+10000-01-01"]),
    ("date[ms]", &["1969-12-31", "2024-02-29"]),
    ("time[s]", &["00:00:00", "23:59:59"]),
    ("time[us]", &["00:00:00.000001", "12:00:00.25"]),
    ("timestamp[s]", &["1970-01-01T00:00:00", "2024-01-01T12:00:00"]),
    ("timestamp[us,UTC]", &["1969-12-31T23:59:59.999999Z", "2024-01-01T12:00:00.5Z"]),
    ("timestamp[ns,Europe/Berlin]", &["2024-01-01T12:00:00.000000001Z"]),
    ("duration[ms]", &["-0.25s", "90s"]),
    ("decimal(10,2)", &["-0.50", "7.00", "7675.00"]),
    ("decimal64(12,0)", &["-7", "7"]),
    ("uuid", &["00000000-0000-0000-0000-000000000001", "01234567-89ab-cdef-0123-456789abcdef"]),
];

#[test]
fn keys_values_and_fields_are_given_and_printed_as_texts() {
    let folder = tempfile::tempdir().expect("makes");
    let folder = folder.path();
    // Over an index a build makes its next generation: bytes are compared of first ones.
    let anew = |name: &str| drop(fs::remove_file(folder.join(name)));
    for (kind, texts) in TYPES {
        // As a key.
        anew("k.pleach");
        file(folder, "k.pleach", kind, texts);
        let lines: String = texts.iter().zip(1..).map(|(text, at)| format!("{text}\t{at}\n")).collect();
        assert_eq!(printed(folder, &["range", "k.pleach", "..", ".."]), lines, "{kind}");
        for (text, at) in texts.iter().zip(1..) {
            assert_eq!(
                printed(folder, &["get", "k.pleach", "--", text]),
                format!("{text}\t{at}\n"),
                "{kind}"
            );
            let json = printed(folder, &["get", "--json", "k.pleach", "--", text]);
            assert_eq!(json, format!("{{\"key\":\"{text}\",\"value\":{at}}}\n"), "{kind}");
            let condition = format!("key == \"{text}\"");
            let selected = printed(folder, &["select", "k.pleach", "--where", &condition]);
            assert_eq!(selected, format!("{text}\t{at}\n"), "{kind}");
        }
        fs::write(folder.join("keys.txt"), texts.join("\n")).expect("writes");
        assert_eq!(printed(folder, &["get", "k.pleach", "--keys", "keys.txt"]), lines, "{kind}");
        refused(folder, &["get", "k.pleach", "abc"], &["'abc' is not a", kind, ": use "]);
        // Integers are what is stored, both ways.
        let raw = printed(folder, &["range", "--raw-values", "k.pleach", "..", ".."]);
        let first = raw.split('\t').next().expect("a key");
        let again = printed(folder, &["get", "--raw-values", "k.pleach", "--", first]);
        assert_eq!(again, format!("{first}\t1\n"), "{kind}");
        assert!(first.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'), "{kind}: {first}");
        // A value, and a field of a record.
        let rows: String = texts.iter().zip(1..).map(|(text, at)| format!("{at},{text},{at}\n")).collect();
        fs::write(folder.join("v.csv"), format!("k,v,w\n{rows}")).expect("writes");
        for (columns, types) in [("v", (*kind).to_owned()), ("v,w", format!("{kind},u8"))] {
            let build =
                ["build", "v.csv", "-o", "v.pleach", "--value", columns, "--value-type", &types, "-q"];
            anew("v.pleach");
            printed(folder, &build);
            let lines = printed(folder, &["range", "v.pleach", "..", ".."]);
            assert_eq!(
                lines.lines().next().and_then(|line| line.split('\t').nth(1)),
                Some(texts[0]),
                "{kind}"
            );
            // Text and back.
            for table in ["t.csv", "t.tsv"] {
                anew("w.pleach");
                printed(folder, &["export", "v.pleach", "-o", table, "-q"]);
                printed(
                    folder,
                    &["build", table, "-o", "w.pleach", "--value", columns, "--value-type", &types, "-q"],
                );
                let [one, other] =
                    ["v.pleach", "w.pleach"].map(|name| fs::read(folder.join(name)).expect("is there"));
                assert!(one == other, "{kind} {columns} by way of {table}");
            }
        }
        printed(folder, &["export", "k.pleach", "-o", "t.csv", "-q"]);
        let back = ["build", "t.csv", "-o", "w.pleach", "--key-type", kind, "--value-type", "u32", "-q"];
        anew("w.pleach");
        printed(folder, &back);
        assert!(
            fs::read(folder.join("k.pleach")).expect("reads")
                == fs::read(folder.join("w.pleach")).expect("reads")
        );
    }
}

/// Type and keys of both sides, and the keys that both have.
type Row<'a> = (&'a str, &'a [&'a str], &'a str, &'a [&'a str], &'a [&'a str]);

#[test]
fn what_means_the_same_is_matched_in_every_command() {
    let folder = tempfile::tempdir().expect("makes");
    let folder = folder.path();
    // Types and keys of both sides, and the keys that both have, as the finer one prints them.
    let rows: &[Row<'_>] = &[
        ("decimal(10,2)", &["5.25", "7.50"], "decimal(10,3)", &["0.525", "7.500"], &["7.500"]),
        (
            "timestamp[us]",
            &["2024-01-01", "2024-01-02"],
            "timestamp[ns]",
            &["2024-01-01T00:00:00", "2024-01-02T00:00:00.000000001"],
            &["2024-01-01T00:00:00"],
        ),
        (
            "timestamp[s,Asia/Tokyo]",
            &["2024-01-01T09:00:00+09:00"],
            "timestamp[ms,UTC]",
            &["2024-01-01T00:00:00Z"],
            &["2024-01-01T00:00:00Z"],
        ),
        ("date", &["2024-01-01", "2024-01-03"], "date[ms]", &["2024-01-01"], &["2024-01-01"]),
        ("time[s]", &["12:00:00"], "time[us]", &["12:00:00", "12:00:00.5"], &["12:00:00"]),
        ("duration[s]", &["90s"], "duration[ms]", &["0.5s", "90s"], &["90s"]),
    ];
    for (left, left_keys, right, right_keys, both) in rows {
        file(folder, "a.pleach", left, left_keys);
        file(folder, "b.pleach", right, right_keys);
        let keys = |text: String| -> Vec<String> {
            text.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
        };
        for (one, other) in [("a.pleach", "b.pleach"), ("b.pleach", "a.pleach")] {
            for command in ["join", "intersect"] {
                assert_eq!(keys(printed(folder, &[command, one, other])), *both, "{command} {left} {right}");
            }
            let all = left_keys.len() + right_keys.len();
            assert_eq!(
                keys(printed(folder, &["difference", "a.pleach", "b.pleach"])).len(),
                left_keys.len() - both.len()
            );
            printed(folder, &["compact", one, other, "-o", "c.pleach", "-q"]);
            assert_eq!(keys(printed(folder, &["range", "c.pleach", "..", ".."])).len(), all);
            let found = printed(folder, &["get", "--all", "c.pleach", "--", both[0]]);
            assert_eq!(found.lines().count(), 2, "compact {left} {right}: {found}");
            assert_eq!(
                keys(printed(folder, &["union", one, other])).len(),
                all - both.len(),
                "{left} {right}"
            );
        }
    }
}

#[test]
fn what_means_something_else_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("makes");
    let folder = folder.path();
    let uuid = "01234567-89ab-cdef-0123-456789abcdef";
    for (left, key, right, other) in [
        ("timestamp[us]", "2024-01-01", "timestamp[us,UTC]", "2024-01-01"),
        ("timestamp[ms]", "2024-01-01", "date[ms]", "2024-01-01"),
        ("timestamp[us]", "2024-01-01", "i64", "1"),
        ("decimal(10,2)", "7.50", "i64", "750"),
        ("decimal(10,0)", "7", "duration[s]", "7s"),
        ("date", "2024-01-01", "i32", "1"),
        ("uuid", uuid, "u128", "1"),
    ] {
        file(folder, "a.pleach", left, &[key]);
        file(folder, "b.pleach", right, &[other]);
        for command in ["join", "union", "intersect", "difference"] {
            refused(folder, &[command, "a.pleach", "b.pleach"], &[left, right, "a.pleach", "b.pleach"]);
        }
        refused(folder, &["compact", "a.pleach", "b.pleach", "-o", "c.pleach"], &[left, right]);
        assert!(!folder.join("c.pleach").exists());
    }
    // Values outside the range of the finer unit.
    file(folder, "a.pleach", "timestamp[s]", &["2024-01-01", "9999-01-01"]);
    file(folder, "b.pleach", "timestamp[ns]", &["2024-01-01"]);
    for command in ["join", "union"] {
        refused(folder, &[command, "a.pleach", "b.pleach"], &["a.pleach", "9999-01-01T00:00:00", "finer"]);
    }
    refused(folder, &["compact", "a.pleach", "b.pleach", "-o", "c.pleach"], &["9999-01-01T00:00:00"]);
}

#[test]
fn conditions_reductions_and_changes_know_what_is_meant() {
    let folder = tempfile::tempdir().expect("makes");
    let folder = folder.path();
    file(folder, "d.pleach", "decimal(10,2)", &["-1.50", "7.49", "7.50", "7.51"]);
    for (condition, tuples) in [
        ("key > 7.5", 1),
        ("key >= 7.5", 2),
        ("key > 7.495", 2),
        ("key <= 7.495", 2),
        ("key == 7.495", 0),
        ("key != 7.495", 4),
        ("key < -1.499", 1),
        ("key in (7.50, 7.51)", 2),
        ("key between 7 and \"7.5\"", 2),
        ("key < 1e30", 4),
    ] {
        let lines = printed(folder, &["select", "d.pleach", "--where", condition]);
        assert_eq!(lines.lines().count(), tuples, "{condition}: {lines}");
    }
    assert_eq!(printed(folder, &["select", "--raw-values", "d.pleach", "--where", "key > 750"]), "751\t4\n");
    refused(folder, &["select", "d.pleach", "--where", "key + 1 > 7"], &["decimal(10,2)"]);
    file(folder, "t.pleach", "timestamp[us,UTC]", &["2024-01-01T12:00:00Z", "2024-01-02"]);
    let later = printed(folder, &["select", "t.pleach", "--where", "k > \"2024-01-01T12:00:00Z\""]);
    assert_eq!(later, "2024-01-02T00:00:00Z\t2\n");
    assert_eq!(
        printed(folder, &["range", "t.pleach", "2024-01-01", "2024-01-02"]),
        "2024-01-01T12:00:00Z\t1\n"
    );
    refused(folder, &["select", "t.pleach", "--where", "key > 7"], &["timestamp[us,UTC]", "whole number"]);
    refused(folder, &["get", "t.pleach", "2024-01-01T12:00:00"], &["no time zone"]);
    refused(folder, &["get", "t.pleach", "2024-01-01T12:00:00.0000001Z"], &["finer than us"]);
    // Sums of what adds up.
    fs::write(folder.join("s.csv"), "k,p,d\n1,7.50,2024-01-01\n1,0.25,2024-01-02\n").expect("writes");
    for (column, name, kind) in [("p", "prices", "decimal(10,2)"), ("d", "days", "date")] {
        let name = format!("{name}.pleach");
        printed(folder, &["build", "s.csv", "-o", &name, "--value", column, "--value-type", kind, "-q"]);
    }
    assert_eq!(printed(folder, &["reduce", "prices.pleach", "--op", "sum"]), "1\t7.75\n");
    let last = ["reduce", "days.pleach", "--op", "max"];
    assert_eq!(printed(folder, &last), "1\t2024-01-02\n");
    refused(
        folder,
        &["reduce", "days.pleach", "--op", "sum"],
        &["cannot compute the sum of i32 date values", "days.pleach"],
    );
    // Changes as texts of the file's types.
    fs::write(folder.join("c.csv"), "op,k,v\nput,2024-01-03,3\ndel,2024-01-01T14:00:00+02:00,\n")
        .expect("writes");
    printed(folder, &["rebuild", "t.pleach", "--apply", "c.csv", "-q"]);
    assert_eq!(
        printed(folder, &["range", "t.pleach", "..", ".."]),
        "2024-01-02T00:00:00Z\t2\n2024-01-03T00:00:00Z\t3\n"
    );
    let told = pleach(
        folder,
        &[
            "build",
            "t.pleach.csv",
            "-o",
            "x.pleach",
            "--key-type",
            "timestamp[us,UTC]",
            "--value-type",
            "u32",
        ],
    );
    assert!(String::from_utf8_lossy(&told.stderr).contains("i64 timestamp[us,UTC] to u32"));
    fs::write(folder.join("raw.csv"), "k,v\n1704110400,1\n").expect("writes");
    refused(
        folder,
        &["build", "raw.csv", "-o", "x.pleach", "--key-type", "timestamp[s]"],
        &["row 1", "not a timestamp[s]"],
    );
    printed(
        folder,
        &["build", "raw.csv", "-o", "x.pleach", "--key-type", "timestamp[s]", "--raw-values", "-q"],
    );
    assert_eq!(printed(folder, &["range", "x.pleach", "..", ".."]), "2024-01-01T12:00:00\t1\n");
}

/// Keys are shown as they are given where something is wrong with them, and where a file is looked into, too.
#[test]
fn messages_and_pictures_show_keys_as_they_are_given() {
    let folder = tempfile::tempdir().expect("makes");
    let folder = folder.path();
    for &(kind, keys) in TYPES {
        let (first, last) = (keys[0], keys[keys.len() - 1]);
        // In order, out of order, and with texts as values, which take another way: each in memory and spilled.
        for value in ["1", "a"] {
            let value_type = if value == "1" { "u32" } else { "utf8" };
            let types = ["--key-type", kind, "--value-type", value_type];
            for rows in [[first, last, last], [last, first, last]] {
                let rows: String = rows.iter().map(|key| format!("{key},{value}\n")).collect();
                fs::write(folder.join("twice.csv"), format!("k,v\n{rows}")).expect("writes");
                for memory in ["1GiB", "1"] {
                    let build =
                        ["build", "twice.csv", "-o", "x.pleach", "--unique", "error", "--memory", memory];
                    refused(folder, &[&build[..], &types].concat(), &["duplicate key: ", last]);
                }
            }
            if first != last {
                fs::write(folder.join("down.csv"), format!("k,v\n{last},{value}\n{first},{value}\n"))
                    .expect("writes");
                let build = ["build", "down.csv", "-o", "x.pleach", "--sorted"];
                refused(folder, &[&build[..], &types].concat(), &["not sorted", first, last]);
            }
        }
        file(folder, "looked.pleach", kind, keys);
        let line = ["inspect", "looked.pleach", "--line", "0"];
        let told = printed(folder, &line);
        assert!(told.contains(first) && told.contains(last), "{kind}: {told}");
        let told = printed(folder, &[&line[..], &["--json"]].concat());
        assert!(told.contains(&format!("\"{last}\"")), "{kind}: {told}");
        let told = printed(folder, &[&line[..], &["--raw-values"]].concat());
        assert_eq!(told.contains(last), kind == "decimal64(12,0)", "{kind}: {told}");
        let ends = |more: &[&str]| printed(folder, &[&["inspect", "looked.pleach", "--json"], more].concat());
        assert!(ends(&[]).contains(&format!("\"{last}\"")), "{kind}");
        let has_last = ends(&["--raw-values"]).contains(&format!("\"{last}\""));
        assert_eq!(has_last, kind == "decimal64(12,0)", "{kind}");
    }
    // Separators of a spine, and the keys beside what salvage lost.
    let rows: String = (0..20_000).map(|row| format!("{row}.25,{row}\n")).collect();
    fs::write(folder.join("many.csv"), format!("k,v\n{rows}")).expect("writes");
    printed(folder, &["build", "many.csv", "-o", "many.pleach", "--key-type", "decimal(10,2)", "-q"]);
    let told = printed(folder, &["inspect", "many.pleach", "--page", "0"]);
    let slots: Vec<Vec<_>> = told.lines().map(|line| line.split_whitespace().collect()).collect();
    let slots: Vec<_> =
        slots.iter().filter(|slot| slot.len() == 4 && slot[0].parse::<u8>().is_ok()).collect();
    assert!(slots.len() > 3 && slots.iter().all(|slot| slot[3].contains('.')), "{told}");
    let mut bytes = fs::read(folder.join("many.pleach")).expect("reads");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(folder.join("many.pleach"), bytes).expect("writes");
    let output = pleach(folder, &["fsck", "many.pleach", "--salvage", "saved.pleach"]);
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains(".25"), "{told}");
}
