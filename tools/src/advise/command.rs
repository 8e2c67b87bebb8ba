//! The command of a build, as a person types it.

use crate::cli::{BuildArgs, Header, IntervalEnd, OverlapHow};
use clap::ValueEnum;
use pleach_builder::Layout;
use pleach_input::Nulls;
use std::fmt::Display;
use std::path::Path;

/// Returns the command of a build: a line for a shell.
pub fn command(args: &BuildArgs) -> String {
    let table = &args.table;
    let mut line = "pleach build".to_owned();
    let mut put = |word: String| {
        line.push(' ');
        line.push_str(&word);
    };
    for input in &table.inputs {
        put(path(input, true));
    }
    put(format!("-o {}", path(&args.output, false)));
    let mut option = |name: &str, value: Option<&dyn Display>| {
        if let Some(value) = value {
            let value = value.to_string();
            put(format!("--{name}{}{}", if value.starts_with('-') { '=' } else { ' ' }, quoted(&value)));
        }
    };
    let texts = [
        ("key", table.key.as_deref()),
        ("value", table.value.as_deref()),
        ("key-type", table.key_type.as_ref().map(|key| key.text.as_str())),
        ("value-type", table.value_type.as_ref().map(|value| value.text.as_str())),
        ("interval", table.interval.as_deref()),
    ];
    for (name, text) in texts {
        option(name, text.as_ref().map(|text| text as &dyn Display));
    }
    let nulls = match &table.nulls {
        Nulls::Error => None,
        Nulls::Skip => Some("skip".to_owned()),
        Nulls::Fill(text) => Some(format!("default={text}")),
    };
    let is_exclusive = table.interval_end == IntervalEnd::Exclusive;
    let delimiter = table
        .delimiter
        .map(|byte| if byte == b'\t' { "\\t".to_owned() } else { char::from(byte).to_string() });
    let raw = table.raw.map(|(key, value)| format!("{key},{value}"));
    let layout =
        Some(args.layout).filter(|layout| *layout != Layout::default()).map(|layout| layout.to_string());
    let temp = args.temp.as_ref().map(|folder| folder.to_string_lossy().into_owned());
    let others = [
        ("interval-end", is_exclusive.then(|| "exclusive".to_owned())),
        ("nulls", nulls),
        ("format", table.format.map(|format| format.row().name.to_owned())),
        ("kmers", table.kmers.map(|bases| bases.to_string())),
        ("raw", raw),
        ("delimiter", delimiter),
        ("layout", layout),
        ("values", args.values.and_then(name)),
        ("overlap", Some(args.overlap).filter(|how| *how == OverlapHow::Last).and_then(name)),
        ("unique", args.unique.and_then(name)),
        ("memory", args.memory.map(|bytes| bytes.to_string())),
        ("threads", Some(args.threads).filter(|threads| *threads > 0).map(|threads| threads.to_string())),
        ("temp", temp),
    ];
    for (name, text) in &others {
        option(name, text.as_ref().map(|text| text as &dyn Display));
    }
    let flags = [
        (table.no_header, "--no-header"),
        (table.header.is_some_and(|header| matches!(header, Header::Each)), "--header"),
        (table.header.is_some_and(|header| matches!(header, Header::First)), "--header=first"),
        (args.sorted, "--sorted"),
        (args.force, "--force"),
    ];
    for (_, flag) in flags.iter().filter(|(is_set, _)| *is_set) {
        put((*flag).to_owned());
    }
    line
}

/// Returns the name of a choice.
fn name(value: impl ValueEnum) -> Option<String> {
    value.to_possible_value().map(|value| value.get_name().to_owned())
}

/// Returns a path that no option is taken for; `-` alone is standard input.
fn path(path: &Path, is_input: bool) -> String {
    let text = path.to_string_lossy();
    let is_option = text.starts_with('-') && !(is_input && text == "-");
    quoted(&if is_option { format!("./{text}") } else { text.into_owned() })
}

/// Returns a word that a shell leaves as it is.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./,:=@%+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn parsed(line: &[&str]) -> BuildArgs {
        let cli = Cli::try_parse_from(line).unwrap_or_else(|error| panic!("{error}"));
        let Command::Build(args) = cli.command else { panic!("it is build") };
        *args
    }

    #[test]
    fn commands_are_those_that_were_given() {
        let lines: [&[&str]; 7] = [
            &["t.csv", "-o", "t.pleach"],
            &[
                "a.csv",
                "b c.csv",
                "-o",
                "t.pleach",
                "--key",
                "it's",
                "--value",
                "a,b",
                "--value-type",
                "u64,decimal(10,2)",
            ],
            &[
                "-",
                "-o",
                "t",
                "--interval",
                "end",
                "--interval-end",
                "exclusive",
                "--format",
                "csv",
                "--delimiter",
                ";",
            ],
            &[
                "t",
                "-o",
                "u",
                "--raw",
                "u64,none",
                "--layout",
                "lines,spine",
                "--unique",
                "last",
                "--memory",
                "1024",
            ],
            &[
                "t.csv",
                "-o",
                "t",
                "--key-type",
                "prefix:auto",
                "--nulls",
                "default=-",
                "--no-header",
                "--force",
            ],
            &[
                "t.csv",
                "-o",
                "t",
                "--value=-1",
                "--values",
                "plain",
                "--overlap",
                "last",
                "--temp",
                "/tmp",
                "--header=first",
            ],
            &["./-x.csv", "-o", "./-o", "--delimiter", "\\t", "--threads", "2", "--header", "--sorted"],
        ];
        for words in lines {
            let written = command(&parsed(&[&["pleach", "build"], words].concat()));
            let expected: Vec<String> = words
                .iter()
                .map(|word| match word.split_once('=') {
                    Some((option, value)) if option == "--value" => format!("{option}={}", quoted(value)),
                    _ => quoted(word),
                })
                .collect();
            assert_eq!(written, format!("pleach build {}", expected.join(" ")));
        }
    }

    #[test]
    fn shells_leave_words_as_they_are() {
        for (word, written) in
            [("a.csv", "a.csv"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("", "''"), ("$a", "'$a'")]
        {
            assert_eq!(quoted(word), written);
        }
    }
}
