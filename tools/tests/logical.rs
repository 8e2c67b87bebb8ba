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
    ("ipv4", &["0.0.0.1", "192.0.2.1", "255.255.255.255"]),
    ("ipv6", &["::", "2001:db8::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]),
    ("ip", &["0.0.0.1", "255.255.255.255", "::", "::1:0:0:0", "2001:db8::1"]),
    ("hex:5", &["00000", "5baa6", "c0ffe"]),
    ("hex:16", &["0123456789abcdef", "f000000000000000"]),
    ("hex:31", &["0123456789abcdef0123456789abcde", "f00000000000000000000000000000f"]),
    ("hex:40", &["0123456789abcdef0123456789abcdef01234567", "f0000000000000000000000000000000000000ff"]),
    ("hex", &["00", "0123456789abcdef", "5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8"]),
    ("dna2", &["A", "AA", "ACGTACGTACGTACGTACGTACGTACGTACG", "GT"]),
    ("dna2:canonical", &["AC", "ACG", "CG", "GA"]),
];

/// Types whose stored form is printed as the text is, or as digits.
fn is_plain(kind: &str) -> bool {
    matches!(kind, "decimal64(12,0)" | "hex" | "hex:40")
}

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
        refused(folder, &["get", "k.pleach", "abx"], &["'abx' is not a", kind, ": use "]);
        // Integers are what is stored, both ways.
        let raw = printed(folder, &["range", "--raw-values", "k.pleach", "..", ".."]);
        let first = raw.split('\t').next().expect("a key");
        let again = printed(folder, &["get", "--raw-values", "k.pleach", "--", first]);
        assert_eq!(again, format!("{first}\t1\n"), "{kind}");
        let is_number = first.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        assert!(is_number || is_plain(kind), "{kind}: {first}");
        // A value, and a field of a record.
        let rows: String = texts.iter().zip(1..).map(|(text, at)| format!("{at},{text},{at}\n")).collect();
        fs::write(folder.join("v.csv"), format!("k,v,w\n{rows}")).expect("writes");
        for (columns, types) in [("v", (*kind).to_owned()), ("v,w", format!("{kind},u8"))] {
            if *kind == "hex" && columns != "v" {
                // A field has a fixed width.
                continue;
            }
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
            for table in ["t.csv", "t.tsv", "t.parquet", "t.arrow"] {
                anew("w.pleach");
                printed(folder, &["export", "v.pleach", "-o", table, "-q"]);
                let build = ["build", table, "-o", "w.pleach", "--value", columns, "-q"];
                // Formats with types know what is meant.
                let has_types = table.ends_with("parquet") || table.ends_with("arrow");
                let typed = ["--value-type", &types];
                printed(folder, &[&build[..], if has_types { &[] } else { &typed }].concat());
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
        ("ipv4", "192.0.2.1", "u32", "1"),
        ("ipv6", "::1", "ip", "::1"),
        ("hex:16", "0123456789abcdef", "u64", "1"),
        ("dna2", "ACGT", "dna2:canonical", "ACGT"),
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
fn distances_are_read_in_the_meaning_of_the_keys() {
    let folder = tempfile::tempdir().expect("makes");
    let folder = folder.path();
    for (left, key, right, other, near, far, wrong) in [
        ("timestamp[s]", "2024-01-01", "timestamp[us]", "2024-01-01T00:00:00.5", "500ms", "499ms", "5"),
        (
            "timestamp[us,UTC]",
            "2024-01-01T00:00:00Z",
            "timestamp[ns,UTC]",
            "2024-01-02T00:00:00Z",
            "1d",
            "23.9h",
            "1",
        ),
        ("date", "2024-01-01", "date", "2024-02-01", "31", "30d", "x"),
        ("date", "2024-01-01", "date[ms]", "2024-01-15", "2w", "13d", "1y"),
        ("time[ms]", "12:00:00", "time[us]", "12:01:00", "1m", "59999ms", "60"),
        ("duration[s]", "90s", "duration[ms]", "0.5s", "89.5s", "89s", "-1s"),
        ("decimal(10,2)", "7.50", "decimal(12,4)", "7.5004", "0.0004", "0.0003", "1s"),
        ("i64", "-9223372036854775808", "i64", "9223372036854775807", "18446744073709551615", "1", "1.x"),
        ("f64", "-0.5", "f64", "inf", "inf", "1e308", "nan"),
        ("ipv4", "192.0.2.1", "ipv4", "192.0.2.9", "8", "7", "/24"),
    ] {
        file(folder, "a.pleach", left, &[key]);
        file(folder, "b.pleach", right, &[other]);
        for (one, two) in [("a.pleach", "b.pleach"), ("b.pleach", "a.pleach")] {
            let tuples = |distance: &str| {
                let text = printed(folder, &["join", one, two, "--within", distance]);
                let nearest = ["join", one, two, "--asof", "nearest", "--tolerance", distance];
                assert_eq!(text, printed(folder, &nearest), "{left} {distance}");
                text.lines().count()
            };
            assert_eq!((tuples(near), tuples(far)), (1, 0), "{left} {right}");
            refused(folder, &["join", one, two, "--within", wrong], &["invalid distance", wrong, "use"]);
        }
    }
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

/// Prefixes of digits and bases, and networks of addresses, are ranges.
#[test]
fn prefixes_are_ranges() {
    let folder = tempfile::tempdir().expect("makes");
    let folder = folder.path();
    let rows: &[(&str, &[&str], &str, &[&str])] = &[
        (
            "ipv4",
            &["9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"],
            "10.0.0.0/8",
            &["10.0.0.0", "10.255.255.255"],
        ),
        (
            "ipv6",
            &["2001:db7::", "2001:db8::", "2001:db8::1", "2001:db9::"],
            "2001:db8::/32",
            &["2001:db8::", "2001:db8::1"],
        ),
        ("ip", &["10.0.0.0", "::", "::1"], "::/0", &["10.0.0.0", "::", "::1"]),
        ("ip", &["10.0.0.0", "::", "::1"], "0.0.0.0/0", &["10.0.0.0"]),
        ("hex", &["5baa", "5baa61", "5bab"], "5baa6", &["5baa61"]),
        ("hex:7", &["5baa612", "5bab000", "5c00000"], "5b", &["5baa612", "5bab000"]),
        (
            "hex:40",
            &["5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8", "6000000000000000000000000000000000000000"],
            "5BAA6",
            &["5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8"],
        ),
        (
            "uuid",
            &["01234567-89ab-cdef-0123-456789abcdef", "0123ffff-89ab-cdef-0123-456789abcdef"],
            "01234567-89",
            &["01234567-89ab-cdef-0123-456789abcdef"],
        ),
        ("dna2", &["AC", "ACG", "ACT", "AG"], "ac", &["AC", "ACG", "ACT"]),
    ];
    for (kind, keys, prefix, found) in rows {
        drop(fs::remove_file(folder.join("p.pleach")));
        file(folder, "p.pleach", kind, keys);
        let told = printed(folder, &["range", "p.pleach", "--prefix", prefix]);
        let told: Vec<&str> = told.lines().map(|line| line.split('\t').next().unwrap_or_default()).collect();
        assert_eq!(told, *found, "{kind} {prefix}");
    }
    file(folder, "v4.pleach", "ipv4", &["192.0.2.1"]);
    refused(folder, &["range", "v4.pleach", "--prefix", "10.1.0.0/8"], &["bits behind its length"]);
    refused(folder, &["range", "v4.pleach", "--prefix", "::/8"], &["other family"]);
    file(folder, "d.pleach", "date", &["2024-01-01"]);
    refused(folder, &["range", "d.pleach", "--prefix", "2024"], &["--prefix is for"]);
}

/// Floor, ceiling and nearest of keys of every type.
#[test]
fn tuples_near_a_key_are_found() {
    let folder = tempfile::tempdir().expect("makes");
    let folder = folder.path();
    fs::write(folder.join("t.csv"), "k,v\n10,a\n20,b\n20,c\n30,d\n").expect("writes");
    printed(folder, &["build", "t.csv", "-o", "t.pleach", "--value-type", "utf8", "-q"]);
    let near = |how: &str, keys: &[&str]| {
        let output = pleach(folder, &[&["get", "t.pleach", how, "--missing", "-"], keys].concat());
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(
        near("--floor", &["9", "10", "20", "29", "99"]),
        "9\t-\n10\t10\ta\n20\t20\tc\n29\t20\tc\n99\t30\td\n"
    );
    assert_eq!(near("--ceiling", &["9", "11", "20", "31"]), "9\t10\ta\n11\t20\tb\n20\t20\tb\n31\t-\n");
    assert_eq!(near("--nearest", &["0", "15", "16", "99"]), "0\t10\ta\n15\t10\ta\n16\t20\tb\n99\t30\td\n");
    let json = printed(folder, &["get", "t.pleach", "--floor", "--json", "29"]);
    assert_eq!(json, "{\"query\":\"29\",\"rank\":\"2\",\"key\":\"20\",\"value\":\"c\"}\n");
    assert_eq!(printed(folder, &["get", "t.pleach", "--ceiling", "--rank", "12"]), "12\t20\t1\n");
    file(folder, "w.pleach", "utf8", &["b", "d"]);
    assert_eq!(printed(folder, &["get", "w.pleach", "--floor", "c"]), "c\tb\t1\n");
    assert_eq!(printed(folder, &["get", "w.pleach", "--ceiling", "c"]), "c\td\t2\n");
    refused(folder, &["get", "w.pleach", "--nearest", "c"], &["--nearest is for keys that are numbers"]);
    file(folder, "d.pleach", "date", &["2024-01-01", "2024-03-01"]);
    assert_eq!(printed(folder, &["get", "d.pleach", "--floor", "2024-02-29"]), "2024-02-29\t2024-01-01\t1\n");
    assert_eq!(
        printed(folder, &["get", "d.pleach", "--nearest", "2024-02-29"]),
        "2024-02-29\t2024-03-01\t2\n"
    );
}

/// Intervals answer by the one that holds a key, and come out as they went in.
#[test]
fn intervals_hold_keys() {
    let folder = tempfile::tempdir().expect("makes");
    let folder = folder.path();
    let table = "last,first,country,n\n10.0.0.255,10.0.0.0,DE,1\n10.0.2.0,10.0.1.0,FR,2\n\
                 255.255.255.255,255.0.0.0,XX,3\n";
    fs::write(folder.join("t.csv"), table.replace("XX", "-")).expect("writes");
    let build = |more: &[&str]| {
        drop(fs::remove_file(folder.join("t.pleach")));
        let types =
            ["--key", "first", "--key-type", "ipv4", "--value", "country,n", "--value-type", "bytes2,u8"];
        pleach(
            folder,
            &[&["build", "t.csv", "-o", "t.pleach", "--interval", "last"], &types[..], more].concat(),
        )
    };
    let told = |output: Output| String::from_utf8(output.stderr).expect("text");
    let refusal = told(build(&[]));
    assert!(refusal.contains("row 3") && refusal.contains("has 1 bytes"), "{refusal}");
    fs::write(folder.join("t.csv"), table).expect("writes");
    let summary = told(build(&[]));
    assert!(
        summary.contains("3 intervals, u32 ipv4 to record<last: u32 ipv4, country: bytes2, n: u8>"),
        "{summary}"
    );
    let asked =
        ["9.255.255.255", "10.0.0.0", "10.0.0.255", "10.0.1.0", "10.0.2.0", "10.0.2.1", "255.255.255.255"];
    fs::write(folder.join("keys.txt"), asked.join("\n")).expect("writes");
    let answer = pleach(folder, &["get", "t.pleach", "--keys", "keys.txt", "--missing", "none"]);
    let expected = "9.255.255.255\tnone\n\
                    10.0.0.0\t10.0.0.0\t10.0.0.255\t4445\t1\n\
                    10.0.0.255\t10.0.0.0\t10.0.0.255\t4445\t1\n\
                    10.0.1.0\t10.0.1.0\t10.0.2.0\t4652\t2\n\
                    10.0.2.0\t10.0.1.0\t10.0.2.0\t4652\t2\n\
                    10.0.2.1\tnone\n\
                    255.255.255.255\t255.0.0.0\t255.255.255.255\t5858\t3\n";
    assert_eq!(String::from_utf8_lossy(&answer.stdout), expected);
    assert_eq!(answer.status.code(), Some(1));
    printed(folder, &["fsck", "t.pleach", "-q"]);
    let seen = printed(folder, &["inspect", "t.pleach"]);
    // Long facts are broken into lines.
    let seen = seen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(seen.contains("intervals: keys begin them"), "{seen}");
    // Out and in again.
    printed(folder, &["export", "t.pleach", "-o", "o.parquet", "-q"]);
    let again = ["build", "o.parquet", "-o", "o.pleach", "--interval", "last", "--value", "country,n", "-q"];
    printed(folder, &again);
    let [one, other] = ["t.pleach", "o.pleach"].map(|name| fs::read(folder.join(name)).expect("reads"));
    assert!(one == other, "an exported table makes the same file");
    // Half-open intervals, overlaps, ends before starts.
    for (row, more, parts) in [
        ("10.0.0.0,10.0.0.0,DE,1", &["--interval-end", "exclusive"][..], &["row 1", "is empty"][..]),
        ("9.0.0.0,10.0.0.0,DE,1", &[], &["t.csv: row 1", "10.0.0.0 to 9.0.0.0 ends before it starts"]),
        (
            "10.0.1.0,10.0.0.0,DE,1\n10.0.2.0,10.0.1.0,FR,2",
            &[],
            &["10.0.0.0 to 10.0.1.0 (row 1) and 10.0.1.0 to 10.0.2.0 (row 2)"],
        ),
    ] {
        fs::write(folder.join("t.csv"), format!("last,first,country,n\n{row}\n")).expect("writes");
        let output = build(more);
        assert_eq!(output.status.code(), Some(8), "{row}");
        let refusal = told(output);
        assert!(parts.iter().all(|part| refusal.contains(part)), "{refusal}");
        assert!(!folder.join("t.pleach").exists());
    }
    assert!(build(&["--interval-end", "exclusive"]).status.success(), "ends are where others begin");
    assert_eq!(
        printed(folder, &["get", "t.pleach", "10.0.1.0"]),
        "10.0.1.0\t10.0.1.0\t10.0.1.255\t4652\t2\n"
    );
    // Networks, one in another: the later row wins.
    fs::write(folder.join("n.csv"), "net,v\n10.0.0.0/8,1\n10.1.0.0/16,2\n2001:db8::/32,3\n").expect("writes");
    let networks = ["build", "n.csv", "-o", "n.pleach", "--key-type", "cidr", "-q"];
    refused(folder, &networks, &["intervals overlap", "(row 1)", "(row 2)", "--overlap last"]);
    printed(folder, &[&networks[..], &["--overlap", "last"]].concat());
    let keys = ["get", "n.pleach", "10.0.255.255", "10.1.0.0", "10.2.0.0", "2001:db8:ffff::1"];
    let values: Vec<String> = printed(folder, &keys)
        .lines()
        .map(|line| line.rsplit('\t').next().expect("a field").to_owned())
        .collect();
    assert_eq!(values, ["1", "2", "1", "3"]);
    fs::write(folder.join("n.csv"), "net,v\n10.0.0.1/8,1\n").expect("writes");
    refused(folder, &networks, &["row 1", "bits behind its length"]);
    refused(folder, &[&networks[..], &["--interval", "v"]].concat(), &["networks say where they end"]);
    refused(folder, &["build", "t.csv", "-o", "x.pleach", "--overlap", "last"], &["there are no intervals"]);
}

/// Rows with nulls are refused, left out or filled in, and counted.
#[test]
fn nulls_are_refused_left_out_or_filled_in() {
    let folder = tempfile::tempdir().expect("makes");
    let folder = folder.path();
    fs::write(folder.join("t.csv"), "k,v,w\n1,,2024-01-01\n,5,2024-01-02\n3,6,\n4,7,2024-01-04\n")
        .expect("writes");
    let build = |more: &[&str]| {
        drop(fs::remove_file(folder.join("t.pleach")));
        let output = pleach(folder, &[&["build", "t.csv", "-o", "t.pleach"], more].concat());
        String::from_utf8(output.stderr).expect("text")
    };
    let told = build(&[]);
    assert!(
        told.contains("row 1, column \"v\": it is null: leave such rows out with --nulls skip"),
        "{told}"
    );
    let told = build(&["--nulls", "skip"]);
    assert!(told.contains("2 tuples") && told.contains("2 rows with nulls left out"), "{told}");
    assert_eq!(printed(folder, &["range", "t.pleach", "..", ".."]), "3\t6\n4\t7\n");
    let told = build(&["--nulls", "default=9"]);
    assert!(told.contains("row 2, column \"k\": it is null"), "{told}");
    let record = ["--value", "v,w", "--value-type", "u32,date"];
    let told = build(&[&record[..], &["--nulls", "skip"]].concat());
    assert!(told.contains("1 tuple,") && told.contains("3 rows with nulls left out"), "{told}");
    let told = build(&[&record[..], &["--nulls", "default=2024-02-02"]].concat());
    assert!(told.contains("the default \"2024-02-02\" of nulls is not a value of type u32"), "{told}");
    fs::write(folder.join("t.csv"), "k,v\n1,\n2,5\n").expect("writes");
    let told = build(&["--nulls", "default=9"]);
    assert!(told.contains("1 null filled in"), "{told}");
    assert_eq!(printed(folder, &["range", "t.pleach", "..", ".."]), "1\t9\n2\t5\n");
    // In changes, too: a del needs no value.
    fs::write(folder.join("c.csv"), "op,k,v\nput,3,\ndel,2,\nput,,4\nput,5,6\n").expect("writes");
    refused(folder, &["rebuild", "t.pleach", "--apply", "c.csv"], &["row 1", "it is null"]);
    let output = pleach(folder, &["rebuild", "t.pleach", "--apply", "c.csv", "--nulls", "skip"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("2 rows with nulls left out"), "{told}");
    assert_eq!(printed(folder, &["range", "t.pleach", "..", ".."]), "1\t9\n5\t6\n");
    refused(
        folder,
        &["build", "t.csv", "-o", "x.pleach", "--nulls", "drop"],
        &["use error, skip or default=V"],
    );
    let told = build(&["--nulls", "skip", "--value", "@row"]);
    assert!(told.contains("row numbers are those of all rows"), "{told}");
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
        assert_eq!(told.contains(last), is_plain(kind), "{kind}: {told}");
        let ends = |more: &[&str]| printed(folder, &[&["inspect", "looked.pleach", "--json"], more].concat());
        assert!(ends(&[]).contains(&format!("\"max\":\"{last}\"")), "{kind}");
        let has_last = ends(&["--raw-values"]).contains(&format!("\"max\":\"{last}\""));
        assert_eq!(has_last, is_plain(kind), "{kind}");
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
