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
