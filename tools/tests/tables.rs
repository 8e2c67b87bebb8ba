//! Commands on index files take tables, too: each operator, each kind of input, with the answer of built files.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Runs the command in a folder; standard input is this file of it.
fn output(folder: &Path, args: &[&str], input: Option<&str>) -> Output {
    let stdin = input.map_or(Stdio::null(), |name| File::open(folder.join(name)).expect("a file").into());
    let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
    let output = command.args(args).current_dir(folder).env("TMPDIR", folder).stdin(stdin).output();
    output.expect("runs")
}

#[track_caller]
fn run(folder: &Path, line: &str) -> (String, String) {
    let args: Vec<&str> = line.split(' ').collect();
    let input = line.contains(" - ").then_some("stdin");
    let output = output(folder, &args, input);
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(matches!(output.status.code(), Some(0 | 1)) && !told.contains("error"), "{line}: {told}");
    (String::from_utf8(output.stdout).expect("text"), told)
}

#[track_caller]
fn refused(folder: &Path, line: &str, code: i32, wanted: &str) {
    let before = names(folder);
    let output = output(folder, &line.split(' ').collect::<Vec<_>>(), None);
    let told = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(code), "{line}: {told}");
    // Tables that were read before the bad one are told, too.
    let (last, others) =
        told.lines().rev().collect::<Vec<_>>().split_first().map_or(("", 0), |(last, all)| {
            (*last, all.iter().filter(|line| !line.starts_with("read ")).count())
        });
    assert!(last.starts_with("error: ") && others == 0, "{line}: {told}");
    assert!(told.contains(wanted), "{line}: {told}: no {wanted}");
    assert_eq!(names(folder), before, "{line}");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect();
    names.sort();
    names
}

fn mix(number: u64) -> u64 {
    let word =
        (number ^ number >> 30).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word ^ word >> 27
}

/// `NAME.csv`, out of order, and the same tuples in all other kinds of files.
fn place(folder: &Path, name: &str, seed: u64, count: u64) {
    let rows: Vec<(u64, u64)> =
        (0..count).map(|row| (mix(seed * 1000 + row) % 60, mix(seed * 2000 + row) % 100)).collect();
    let text: String = rows.iter().map(|(key, value)| format!("{key},{value}\n")).collect();
    fs::write(folder.join(format!("{name}.csv")), format!("id,{name}\n{text}")).expect("written");
    run(folder, &format!("build {name}.csv -o {name}.pleach -q"));
    for format in ["parquet", "arrow", "tsv"] {
        run(folder, &format!("export {name}.pleach -o {name}.{format} -q"));
    }
    let json: String =
        rows.iter().map(|(key, value)| format!("{{\"id\":{key},\"{name}\":{value}}}\n")).collect();
    fs::write(folder.join(format!("{name}.ndjson")), json).expect("written");
    let raw: Vec<u8> =
        rows.iter().flat_map(|(key, value)| [key.to_le_bytes(), value.to_le_bytes()]).flatten().collect();
    fs::write(folder.join(format!("{name}.raw")), raw).expect("written");
    let parts = folder.join(format!("{name}s"));
    fs::create_dir(&parts).expect("a folder");
    for (number, rows) in text.lines().collect::<Vec<_>>().chunks(50).enumerate() {
        let text = format!("id,{name}\n{}\n", rows.join("\n"));
        fs::write(parts.join(format!("part-{number:02}.csv")), text).expect("written");
    }
}

/// Operators of two inputs A and B.
const TWO: [&str; 15] = [
    "join A B",
    "join A B --how left",
    "join A B --how full",
    "join A B --how semi",
    "join A B --how anti",
    "join A B --asof backward",
    "join A B --within 2",
    "union A B",
    "union A B --multiset",
    "intersect A B",
    "intersect A B --multiset",
    "difference A B",
    "product A B --count",
    "diff A B",
    "diff A B --count",
];
/// Operators of one input A.
const ONE: [&str; 5] = [
    "select A --where value<50",
    "project A --columns value,key",
    "reduce A --op sum",
    "reduce A --op first",
    "select A --where rank<9 --count",
];
/// What a table is, with the options that it needs; `N` is its name.
const KINDS: [(&str, &str); 9] = [
    ("N.csv", ""),
    ("N.tsv", ""),
    ("N.parquet", ""),
    ("N.arrow", ""),
    ("N.ndjson", ""),
    ("N.raw", " --raw u64,u64"),
    ("Ns", ""),
    ("Ns/part-*.csv", ""),
    ("-", " --input-format csv"),
];

#[test]
fn answers_are_those_of_built_files() {
    let folder = TempDir::new().expect("a folder");
    let folder = folder.path();
    place(folder, "a", 1, 150);
    place(folder, "b", 2, 90);
    let before = names(folder);
    for operator in ONE {
        let wanted = run(folder, &operator.replace('A', "a.pleach")).0;
        for (kind, options) in KINDS {
            // Only this name begins with `N`.
            fs::copy(folder.join("a.csv"), folder.join("stdin")).expect("copied");
            let (found, told) = run(folder, &(operator.replace('A', &kind.replace('N', "a")) + options));
            assert_eq!(found, wanted, "{operator} {kind}");
            assert!(told.starts_with("read ") && told.contains("150 tuples, u64 to u64"), "{told}");
        }
    }
    for operator in TWO {
        let command = |a: &str, b: &str| operator.replace('A', a).replace('B', b);
        let wanted = run(folder, &command("a.pleach", "b.pleach")).0;
        for (kind, options) in KINDS {
            let (a, b) = (kind.replace('N', "a"), kind.replace('N', "b"));
            for (a, b, stdin) in [
                (a.as_str(), "b.pleach", "a.csv"),
                ("a.pleach", b.as_str(), "b.csv"),
                (&a, "b.parquet", "a.csv"),
            ] {
                fs::copy(folder.join(stdin), folder.join("stdin")).expect("copied");
                let found = run(folder, &(command(a, b) + options)).0;
                assert_eq!(found, wanted, "{operator} {a} {b}");
            }
        }
    }
    fs::remove_file(folder.join("stdin")).expect("removed");
    assert_eq!(names(folder), before);
}

#[test]
fn many_tables_of_several_kinds() {
    let folder = TempDir::new().expect("a folder");
    let folder = folder.path();
    ["a", "b", "c"].iter().zip(1..).for_each(|(name, seed)| place(folder, name, seed, 40));
    for operator in ["union", "intersect"] {
        let wanted = run(folder, &format!("{operator} a.pleach b.pleach c.pleach")).0;
        assert_eq!(run(folder, &format!("{operator} a.csv b.parquet cs")).0, wanted);
        assert_eq!(run(folder, &format!("{operator} a.tsv b.pleach c.arrow")).0, wanted);
    }
    // The output is a file as ever, and quiet is quiet.
    let (_, told) = run(folder, "join a.csv b.parquet -o o.pleach -q");
    assert_eq!(told, "");
    let wanted = run(folder, "join a.pleach b.pleach").0;
    assert_eq!(run(folder, "range o.pleach .. ..").0, wanted);
}

#[test]
fn types_and_columns_of_tables() {
    let folder = TempDir::new().expect("a folder");
    let folder = folder.path();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("written");
    write("days.csv", "day,n\n2024-01-01,1\n2024-01-02,2\n");
    run(folder, "build days.csv -o days.pleach --key-type date -q");
    // Text has the type of the keys of the other input, whichever comes first.
    assert_eq!(run(folder, "join days.csv days.pleach").0, "2024-01-01\t1\t1\n2024-01-02\t2\t2\n");
    assert_eq!(run(folder, "diff days.pleach days.csv").0, "");
    run(folder, "export days.pleach -o days.parquet -q");
    assert_eq!(run(folder, "join days.csv days.parquet").0, "2024-01-01\t1\t1\n2024-01-02\t2\t2\n");
    // Each side has columns of its own.
    write("orders.csv", "order,customer,price\n1,7,20\n2,8,30\n3,7,50\n");
    write("people.csv", "id,name\n7,Ada\n8,Bob\n");
    let sides = "--left-key customer --left-value order,price --right-value name --right-value-type utf8";
    let wanted = "7\t1\t20\tAda\n7\t3\t50\tAda\n8\t2\t30\tBob\n";
    assert_eq!(run(folder, &format!("join orders.csv people.csv {sides}")).0, wanted);
    // A join that keeps no right values does not read them.
    assert_eq!(run(folder, "join orders.csv people.csv --left-key customer --how semi --count").0, "3\n");
    assert_eq!(
        run(folder, "difference people.csv orders.csv --left-value-type utf8 --right-key customer").0,
        ""
    );
    // Records, composite keys and hashes of the other input are those of the table.
    for options in
        ["--value a,b --value-type u8,utf8", "--key k,a --value b --value-type utf8 --key-type u32,u16"]
    {
        write("r.csv", "k,a,b\n1,2,x\n2,3,y\n");
        run(folder, &format!("build r.csv -o r.pleach -q {options}"));
        let value = if options.contains("--key") { " --value b" } else { "" };
        assert_eq!(
            run(
                folder,
                &format!(
                    "diff r.pleach r.csv{value}{}",
                    if value.is_empty() { "" } else { " --value-type utf8" }
                )
            )
            .0,
            ""
        );
    }
    write("t.csv", "word,n\nso,1\nno,2\n");
    run(folder, "build t.csv -o t.pleach --key-type hash64 -q");
    assert_eq!(run(folder, "intersect t.pleach t.csv --approximate --count").0, "2\n");
    // Keys of whole numbers convert; those with other meanings do not.
    write("n.ndjson", "{\"id\":-1,\"v\":1}\n{\"id\":7,\"v\":2}\n");
    run(folder, "build people.csv -o people.pleach --value-type utf8 -q");
    refused(folder, "join n.ndjson people.pleach", 8, "n.ndjson");
    write("n.ndjson", "{\"id\":7,\"v\":2}\n");
    assert_eq!(run(folder, "join n.ndjson people.pleach").0, "7\t2\tAda\n");
    // Nulls are counted, windows too.
    write("gap.csv", "id,v\n1,\n7,3\n");
    let (found, told) = run(folder, "join gap.csv people.pleach --nulls skip");
    assert_eq!(found, "7\t3\tAda\n");
    assert!(told.contains("1 row with nulls left out"), "{told}");
    write("s.fa", ">a\nACGTACNACGT\n");
    assert_eq!(run(folder, "select s.fa --kmers 4 --where value>1").0, "ACGT\t2\n");
}

#[test]
fn bad_tables_are_refused_as_by_build() {
    let folder = TempDir::new().expect("a folder");
    let folder = folder.path();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("written");
    write("a.csv", "id,v\n1,2\n");
    write("bad.csv", "id,v\n1,x\n");
    write("cut.parquet", "PAR1");
    write("odd", "?");
    run(folder, "build a.csv -o a.pleach -q");
    fs::create_dir(folder.join("none")).expect("a folder");
    for (line, code, wanted) in [
        ("join bad.csv a.pleach -o o.pleach", 8, "bad.csv: row 1, column \"v\""),
        ("join a.csv cut.parquet -o o.csv", 8, "cut.parquet"),
        ("union a.csv missing.csv", 8, "missing.csv"),
        ("union a.csv missing.pleach", 8, "missing.pleach"),
        ("union a.csv none", 8, "holds no files"),
        ("union a.csv x*.csv", 8, "no file matches"),
        ("join a.csv odd", 8, "odd"),
        ("join - - --input-format csv", 2, "read only once"),
        ("join - a.csv", 2, "give it with --input-format"),
        ("join a.pleach a.pleach --key id", 2, "no input is a table"),
        ("join a.pleach a.csv --left-key id", 2, "a.pleach: leave out"),
        ("join a.csv a.pleach -o a.csv", 8, "a.csv"),
        ("join a.csv a.pleach -o a.csv --force", 8, "a.csv"),
        ("reduce a.csv --op sum --key no", 8, "no column"),
        ("select a.csv --where value>x", 2, "x"),
        ("diff a.csv a.pleach --key-type utf8", 8, "a.pleach"),
        ("reduce a.csv --op sum --key-type u8,u8", 2, "composite key"),
        ("reduce a.csv --op sum --temp missing", 8, "missing"),
    ] {
        refused(folder, line, code, wanted);
    }
}
