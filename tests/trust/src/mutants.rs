//! Whether the tests test: mutants of what is read, verified and published, and how many of them a test kills.

use crate::lab::{self, Lab, grouped};
use anyhow::{Result, ensure};
use pleach_format::checksum::crc32;
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

/// Where the outcomes of mutants are kept: one line each, the sum of the file that is changed and the outcome before
/// the mutant's name. Of a file that is another one by now nothing is known.
struct Ledger<'a> {
    lab: &'a Lab,
    path: PathBuf,
    outcomes: BTreeMap<String, String>,
}

impl<'a> Ledger<'a> {
    fn open(lab: &'a Lab, path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let mut this = Self { lab, path, outcomes: BTreeMap::new() };
        let known = text.lines().filter_map(|line| {
            let (sum, rest) = line.split_once(' ')?;
            let (outcome, name) = rest.split_once(' ')?;
            (sum == this.sum(name)).then(|| (name.to_owned(), outcome.to_owned()))
        });
        this.outcomes = known.collect();
        this
    }

    /// Of the file that a mutant changes.
    fn sum(&self, name: &str) -> String {
        let file = name.split(':').next().unwrap_or_default();
        let bytes = std::fs::read(self.lab.root.join(file)).unwrap_or_default();
        format!("{:08x}", crc32(&bytes))
    }

    /// What a run before this one has left: cargo-mutants goes on from there, unless a source is another one by now.
    fn resume(&mut self, out: &Path) -> Result<()> {
        let text = std::fs::read_to_string(out.join("sources.txt")).unwrap_or_default();
        let is_same = |line: &str| line.split_once(' ').is_some_and(|(sum, file)| sum == self.sum(file));
        if !text.is_empty() && text.lines().all(is_same) {
            return self.gather(out);
        }
        match std::fs::remove_dir_all(out.join("mutants.out")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Notes which sources are changed from now on.
    fn begin(&self, out: &Path, list: &str) -> Result<()> {
        let files: BTreeSet<&str> = list.lines().filter_map(|name| name.split(':').next()).collect();
        let lines: Vec<_> = files.into_iter().map(|file| format!("{} {file}\n", self.sum(file))).collect();
        Ok(std::fs::write(out.join("sources.txt"), lines.concat())?)
    }

    /// Takes over what cargo-mutants has written so far, to the end or not.
    fn gather(&mut self, out: &Path) -> Result<()> {
        for outcome in ["unviable", "missed", "timeout", "caught"] {
            let path = out.join("mutants.out").join(format!("{outcome}.txt"));
            let text = std::fs::read_to_string(path).unwrap_or_default();
            self.outcomes.extend(text.lines().map(|name| (name.to_owned(), outcome.to_owned())));
        }
        let lines: Vec<_> = self
            .outcomes
            .iter()
            .map(|(name, outcome)| format!("{} {outcome} {name}\n", self.sum(name)))
            .collect();
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

/// Kinds of mutants that may survive, and how many of each: what docs/MUTANTS.md lists, each below why.
fn explained(lab: &Lab) -> Result<BTreeMap<String, usize>> {
    let text = std::fs::read_to_string(lab.root.join("docs/MUTANTS.md"))?;
    let kind = |line: &str| {
        let (name, count) = line.strip_prefix("- `")?.rsplit_once('`')?;
        let count = count.trim().strip_suffix(" times").map_or(Some(1), |count| count.parse().ok())?;
        Some((name.to_owned(), count))
    };
    Ok(text.lines().filter_map(kind).collect())
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
        let mut ledger = Ledger::open(lab, out.join("outcomes.txt"));
        ledger.resume(&out)?;
        let list = [&["mutants", "--list"], &config[..], &choice[..2]].concat();
        let list = Command::new("cargo").args(list).current_dir(&lab.root).output()?;
        ensure!(list.status.success(), "{}", lab::both(&list));
        let list = String::from_utf8(list.stdout)?;
        let is_open =
            |ledger: &Ledger<'_>, name: &str| ledger.outcomes.get(name).is_none_or(|it| it == "missed");
        if list.lines().any(|name| is_open(&ledger, name)) {
            ledger.begin(&out, &list)?;
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
            let output = cargo.current_dir(&lab.root).stdin(Stdio::null()).output()?;
            ledger.gather(&out)?;
            // Whether mutants were missed or took too long is counted here; else tests failed without any change.
            let is_tried = matches!(output.status.code(), Some(0 | 2 | 3));
            ensure!(is_tried, "{}: {}", output.status, lab::tail(&lab::both(&output), 30));
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
    let (mut explained, missed) = (explained(lab)?, survivors.len());
    let mut is_explained = |name: &String| {
        let left = explained.get_mut(&kind(name)).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    };
    let unexplained: Vec<_> = survivors.into_iter().filter(|name| !is_explained(name)).collect();
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
