//! Whether the tests test: mutants of what is read, verified and published, and how many of them a test kills.

use crate::lab::{self, Lab, grouped};
use anyhow::{Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is changed by mutants, and what looks at it. The second look at `format` is at those alone that the first one
/// missed.
const MUTANTS: &[(&[&str], &[&str])] = &[
    (&["-p", "pleach-fsck"], &["--lib", "--tests"]),
    (&["-p", "pleach-format"], &["--lib", "--tests"]),
    (&["-p", "pleach-format", "--test-package", "pleach-fsck"], &["--lib", "--tests"]),
    (&["-p", "pleach-builder"], &["--test", "publish"]),
    (&["-p", "pleach", "--test-package", "pleach-tests"], &["--test", "corrupt", "--", "verified"]),
];

/// Where the outcomes of mutants are kept: one line each, the outcome before the mutant's name.
struct Ledger {
    path: PathBuf,
    outcomes: BTreeMap<String, String>,
}

impl Ledger {
    fn open(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let line =
            |line: &str| line.split_once(' ').map(|(outcome, name)| (name.to_owned(), outcome.to_owned()));
        Self { path, outcomes: text.lines().filter_map(line).collect() }
    }

    /// Takes over what cargo-mutants has written so far, to the end or not.
    fn gather(&mut self, out: &Path) -> Result<()> {
        for outcome in ["unviable", "missed", "timeout", "caught"] {
            let path = out.join("mutants.out").join(format!("{outcome}.txt"));
            let text = std::fs::read_to_string(path).unwrap_or_default();
            self.outcomes.extend(text.lines().map(|name| (name.to_owned(), outcome.to_owned())));
        }
        let lines: Vec<_> =
            self.outcomes.iter().map(|(name, outcome)| format!("{outcome} {name}\n")).collect();
        Ok(std::fs::write(&self.path, lines.concat())?)
    }
}

/// A mutant's name without line and column, which move: of `a.rs:1:2: replace x` it is `a.rs: replace x`.
fn kind(name: &str) -> String {
    let mut parts = name.splitn(4, ':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(file), Some(_), Some(_), Some(rest)) => format!("{file}:{rest}"),
        _ => name.to_owned(),
    }
}

/// Kinds of mutants that may survive: what docs/MUTANTS.md lists, each below why.
fn explained(lab: &Lab) -> Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(lab.root.join("docs/MUTANTS.md"))?;
    let name = |line: &str| Some(line.strip_prefix("- `")?.strip_suffix('`')?.to_owned());
    Ok(text.lines().filter_map(name).collect())
}

/// Target 29. Hours: what was done before is not done again, except mutants that survived.
pub fn mutants(lab: &Lab) -> Result<String> {
    lab::succeed("cargo", &["mutants", "--version"])?;
    let config = ["--config", "tests/mutants.toml", "--no-shuffle"];
    let (mut killed, mut survivors) = (0, Vec::new());
    for (number, (choice, tests)) in MUTANTS.iter().enumerate() {
        // Both looks at `format` share a folder.
        let out = lab.root.join("target/mutants").join(choice[1]);
        std::fs::create_dir_all(&out)?;
        let mut ledger = Ledger::open(out.join("outcomes.txt"));
        ledger.gather(&out)?;
        let list = [&["mutants", "--list"], &config[..], &choice[..2]].concat();
        let list = Command::new("cargo").args(list).current_dir(&lab.root).output()?;
        ensure!(list.status.success(), "{}", lab::both(&list));
        let list = String::from_utf8(list.stdout)?;
        let is_open = |ledger: &Ledger, name: &str| ledger.outcomes.get(name).is_none_or(|it| it == "missed");
        if list.lines().any(|name| is_open(&ledger, name)) {
            let mut cargo = Command::new("cargo");
            cargo.arg("mutants").args(config).args([
                "--iterate",
                "--jobs",
                "2",
                "--minimum-test-timeout",
                "20",
            ]);
            cargo.env("CARGO_PROFILE_DEV_DEBUG", "0");
            cargo.arg("--output").arg(&out).args(*choice).arg("--").args(*tests);
            // Its exit code says whether mutants were missed, which is counted here.
            let output = cargo.current_dir(&lab.root).stdin(Stdio::null()).output()?;
            ledger.gather(&out)?;
            let undone = list.lines().filter(|name| !ledger.outcomes.contains_key(*name)).count();
            ensure!(undone == 0, "{undone} mutants are not tried: {}", lab::tail(&lab::both(&output), 30));
        }
        if MUTANTS.get(number + 1).is_some_and(|next| next.0[1] == choice[1]) {
            continue;
        }
        for name in list.lines() {
            match ledger.outcomes[name].as_str() {
                "caught" | "timeout" => killed += 1,
                "missed" => survivors.push(name.to_owned()),
                _ => {}
            }
        }
    }
    let (explained, missed) = (explained(lab)?, survivors.len());
    let unexplained: Vec<_> = survivors.into_iter().filter(|name| !explained.contains(&kind(name))).collect();
    unexplained.iter().for_each(|name| eprintln!("survives: {name}"));
    let all = killed + missed;
    let share = killed as f64 / all as f64;
    ensure!(share >= 0.9, "{killed} of {all} killed: {:.1}%", share * 100.0);
    ensure!(unexplained.is_empty(), "{} of {missed} survivors are not in docs/MUTANTS.md", unexplained.len());
    Ok(format!(
        "{} mutants, {:.1}% killed; {missed} survive, each explained (MUTANTS.md)",
        grouped(all as u64),
        share * 100.0
    ))
}
