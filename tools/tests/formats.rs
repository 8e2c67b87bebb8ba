//! The list of input formats is the same in the help, in messages and in the documents.

use pleach_input::{FORMATS, FormatRow, Types};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn pleach(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pleach")).args(args).output().expect("runs")
}

fn names(which: impl Fn(&FormatRow) -> bool) -> String {
    let names: Vec<&str> = FORMATS.iter().filter(|row| which(row)).map(|row| row.name).collect();
    names.join(" ")
}

#[test]
fn help_names_every_format() {
    for command in ["build", "rebuild"] {
        let output = pleach(&[command, "--help"]);
        let help = String::from_utf8(output.stdout).expect("text");
        for row in FORMATS {
            let line = help.lines().find(|line| line.trim_start().starts_with(&format!("- {}:", row.name)));
            let line = line.unwrap_or_else(|| panic!("{} is not in the help of {command}", row.name));
            assert!(line.contains(row.about), "{line}");
        }
    }
}

#[test]
fn messages_list_the_formats() {
    for (args, known) in [
        (&["build", "t.odd", "-o", "t.pleach"][..], names(|_| true)),
        (&["rebuild", "t.pleach", "--apply", "t.odd"], names(|row| row.has_changes)),
    ] {
        let output = pleach(args);
        let error = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.ends_with(&format!("give --format, one of {known}\n")), "{error}");
    }
}

/// Makes the line of a format in the table of `docs/INPUT.md`.
fn line(row: &FormatRow) -> String {
    let extensions: Vec<String> = row.extensions.iter().map(|extension| format!("`.{extension}`")).collect();
    let types = match row.types {
        Types::Requested => "`u64` unless requested",
        Types::Own => "of the columns",
        Types::Shown => "as they are written",
        Types::Required => "given by `--raw`",
        Types::Kmers => "`dna2:canonical`",
    };
    let yes = |is: bool| if is { "yes" } else { "no" };
    format!(
        "| `{}` | {} | {} | {} | {types} | {} | {} | {} |",
        row.name,
        row.about,
        extensions.join(" "),
        yes(row.has_names),
        match (row.treats_nulls, row.has_nulls) {
            (true, _) => "`--nulls`",
            (false, true) => "refused",
            (false, false) => "none",
        },
        if row.is_streamed { "read as it arrives" } else { "copied to a file" },
        yes(row.has_changes),
    )
}

#[test]
fn the_document_has_the_same_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/INPUT.md");
    let text = fs::read_to_string(path).expect("docs/INPUT.md");
    let lines: Vec<String> = FORMATS.iter().map(line).collect();
    let found: Vec<&str> =
        text.lines().filter(|line| line.starts_with("| `") && line.contains("`.")).collect();
    assert_eq!(found, lines, "the table of formats in docs/INPUT.md");
}

#[test]
fn kmers_are_counted_and_looked_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_pleach"))
            .args(args)
            .current_dir(folder.path())
            .output()
            .expect("runs");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    fs::write(folder.path().join("a.fa"), ">one\nACGNTTT\nAA\n>two\r\nttaaa\r\n>short\nAC\n")
        .expect("written");
    fs::write(folder.path().join("b.fq"), "@r\nCGT\n+\n!!!\n").expect("written");
    let built = run(&["build", "a.fa", "b.fq", "--kmers", "3", "-o", "k.pleach"]);
    assert_eq!(built.0, Some(0), "{}", built.2);
    assert!(built.2.contains("3 windows with other letters than A C G T left out"), "{}", built.2);
    // AAA is TTT, and TTA is TAA.
    let (_, lines, _) = run(&["range", "k.pleach", "..", ".."]);
    assert_eq!(lines, "AAA\t2\nACG\t2\nTAA\t4\n");
    assert_eq!(run(&["get", "k.pleach", "TTT", "cgt"]).1, "AAA\t2\nACG\t2\n");
    let more = ["--key-type", "dna2", "--value-type", "none", "-q"];
    let built = run(&[&["build", "a.fa", "b.fq", "--kmers", "3", "-o", "n.pleach"], &more[..]].concat());
    assert_eq!(built.0, Some(0), "{}", built.2);
    assert_eq!(run(&["range", "n.pleach", "..", ".."]).1, "AAA\nACG\nCGT\nTAA\nTTA\nTTT\n");
    for (args, wanted) in [
        (&["build", "a.fa", "-o", "x.pleach"][..], "give their length, such as --kmers 31"),
        (&["build", "a.fa", "-o", "x.pleach", "--kmers", "62"], "give 1 to 61"),
        (&["build", "a.fa", "-o", "x.pleach", "--kmers", "0"], "give 1 to 61"),
        (
            &["build", "a.fa", "-o", "x.pleach", "--kmers", "3", "--value", "n"],
            "the value of a k-mer is its count",
        ),
        (
            &["build", "a.fa", "-o", "x.pleach", "--kmers", "3", "--value", "@row"],
            "the value of a k-mer is its count",
        ),
        (&["build", "t.csv", "-o", "x.pleach", "--kmers", "3"], "CSV has no k-mers"),
        (&["build", "cut.fq", "-o", "x.pleach", "--kmers", "3"], "cut.fq: line 2, record 1: it ends within"),
        (&["build", "v.csv", "-o", "x.pleach", "--unique", "sum"], "key 1: choose --value-type u64"),
        (
            &["build", "t.csv", "-o", "x.pleach", "--unique", "sum", "--value-type", "f64"],
            "cannot be summed up",
        ),
    ] {
        fs::write(folder.path().join("t.csv"), "id,v\n1,2\n").expect("written");
        fs::write(folder.path().join("cut.fq"), "@r\nCGT").expect("written");
        fs::write(folder.path().join("v.csv"), format!("id,v\n1,{}\n1,1\n", u64::MAX)).expect("written");
        let (code, _, error) = run(args);
        assert_ne!(code, Some(0));
        assert!(error.contains(wanted) && error.lines().count() == 1, "{error}");
        assert!(!folder.path().join("x.pleach").exists());
    }
}
