//! Mutation tests: mutants of the code that reads, verifies and publishes, and how many of them a test kills.

use crate::lab::{self, Lab, grouped};
use anyhow::{Result, ensure};
use pleach_format::checksum::crc32;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Code that is mutated, the tests that run on it, and their optimization: most tests end before an
/// optimizing compiler would. The second look is only at mutants that the first one missed.
const MUTANTS: &[(&[&str], &[&str], &str)] = &[
    (&["-p", "pleach-fsck"], &["--test", "damage"], "0"),
    (&["-p", "pleach-fsck"], &["--lib"], "0"),
    (&["-p", "pleach-fsck"], &["--test", "sections"], "1"),
    (&["-p", "pleach-format"], &["--lib", "--tests"], "0"),
    (
        &["-p", "pleach-format", "--test-package", "pleach-fsck"],
        &["--test", "damage", "--test", "sections"],
        "1",
    ),
    (&["-p", "pleach-builder"], &["--lib", "--", "lock::"], "0"),
    (&["-p", "pleach-builder"], &["--test", "publish"], "0"),
    (&["-p", "pleach"], &["--lib", "--", "touched::"], "0"),
    (&["-p", "pleach", "--test-package", "pleach-tests"], &["--test", "corrupt", "--", "verified"], "0"),
];

/// Completed results, in `tests/mutants.txt`: for each file its sum, the number of killed mutants, and the
/// survivors. Nothing is known of a file that has changed since.
struct Record<'a> {
    lab: &'a Lab,
    files: BTreeMap<String, Tried>,
}

#[derive(Default)]
struct Tried {
    sum: String,
    killed: usize,
    /// Names of mutants.
    survivors: BTreeSet<String>,
}

impl Tried {
    /// Survivors without a reason.
    fn unexplained(&self, explained: &BTreeMap<String, usize>) -> Vec<&str> {
        let mut left = explained.clone();
        let mut is_open = |name: &&str| match left.get_mut(&kind(name)).filter(|left| **left > 0) {
            Some(left) => {
                *left -= 1;
                false
            }
            None => true,
        };
        self.survivors.iter().map(String::as_str).filter(|name| is_open(name)).collect()
    }
}

impl<'a> Record<'a> {
    const PATH: &'static str = "tests/mutants.txt";

    fn open(lab: &'a Lab) -> Self {
        let text = std::fs::read_to_string(lab.root.join(Self::PATH)).unwrap_or_default();
        let mut files: BTreeMap<String, Tried> = BTreeMap::new();
        let mut last = String::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix("  ") {
                files.entry(last.clone()).or_default().survivors.insert(name.to_owned());
                continue;
            }
            let mut words = line.split(' ');
            let (Some(sum), Some(file), Some(killed)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            last = file.to_owned();
            let killed = killed.parse().unwrap_or_default();
            files.insert(last.clone(), Tried { sum: sum.to_owned(), killed, survivors: BTreeSet::new() });
        }
        files.retain(|file, tried| tried.sum == sum(lab, file));
        Self { lab, files }
    }

    /// Takes over what is known of files whose mutants have all been tried, and of survivors that were
    /// tried again.
    fn note(&mut self, ledger: &Ledger<'_>, list: &str) -> Result<()> {
        let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        list.lines().for_each(|name| files.entry(file_of(name)).or_default().push(name));
        for (file, names) in files {
            let outcome = |name: &str| ledger.outcomes.get(name).map(String::as_str);
            let is_killed = |name: &str| matches!(outcome(name), Some("caught" | "timeout"));
            if let Some(tried) = self.files.get_mut(file) {
                let before = tried.survivors.len();
                tried.survivors.retain(|name| !is_killed(name));
                tried.killed += before - tried.survivors.len();
            } else if names.iter().all(|name| outcome(name).is_some()) {
                let killed = names.iter().filter(|name| is_killed(name)).count();
                let missed = names.iter().filter(|name| outcome(name) == Some("missed"));
                let survivors = missed.map(|&name| name.to_owned()).collect();
                self.files.insert(file.to_owned(), Tried { sum: sum(self.lab, file), killed, survivors });
            }
        }
        self.save()
    }

    fn save(&self) -> Result<()> {
        let mut text = String::from(
            "# Files whose mutants were all tried (cargo trust 29): sum, name, how many were killed;\n\
             # below it, those that survive. A file that has another sum is tried again.\n",
        );
        for (file, tried) in &self.files {
            text += &format!("{} {file} {}\n", tried.sum, tried.killed);
            tried.survivors.iter().for_each(|name| text += &format!("  {name}\n"));
        }
        Ok(std::fs::write(self.lab.root.join(Self::PATH), text)?)
    }
}

/// Results of a file.
fn sum(lab: &Lab, file: &str) -> String {
    format!("{:08x}", crc32(&std::fs::read(lab.root.join(file)).unwrap_or_default()))
}

/// As an expression that is about this text alone.
fn escaped(text: &str) -> String {
    let is_special = |letter: char| r"\.+*?()|[]{}^$#&-~".contains(letter);
    text.chars().flat_map(|letter| is_special(letter).then_some('\\').into_iter().chain([letter])).collect()
}

/// The file that a mutant changes.
fn file_of(name: &str) -> &str {
    name.split(':').next().unwrap_or_default()
}

/// File of the outcomes of mutants: one line each, with the sum of the mutated file and the outcome before
/// the mutant's name. Nothing is known of a file that has changed since.
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

    /// Sum of the file that a mutant changes.
    fn sum(&self, name: &str) -> String {
        sum(self.lab, file_of(name))
    }

    /// Results of an earlier run: cargo-mutants continues from them, unless a source has changed since.
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
        let files: BTreeSet<&str> = list.lines().map(file_of).collect();
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
    let mut explained = BTreeMap::new();
    text.lines().filter_map(kind).for_each(|(name, count)| *explained.entry(name).or_default() += count);
    Ok(explained)
}

/// Target 29. Hours: what was done before is not done again, except mutants that survived without a reason.
pub fn mutants(lab: &Lab) -> Result<String> {
    lab::succeed("cargo", &["mutants", "--version"])?;
    let config = ["--config", "tests/mutants.toml", "--no-shuffle"];
    let (mut record, explained) = (Record::open(lab), explained(lab)?);
    let mut there = BTreeSet::new();
    for (choice, tests, optimised) in MUTANTS {
        // Both looks at a package share a folder.
        let out = lab.root.join("target/mutants").join(choice[1]);
        std::fs::create_dir_all(&out)?;
        let mut ledger = Ledger::open(lab, out.join("outcomes.txt"));
        ledger.resume(&out)?;
        let list = [&["mutants", "--list"], &config[..], &choice[..2]].concat();
        let list = Command::new("cargo").args(list).current_dir(&lab.root).output()?;
        ensure!(list.status.success(), "{}", lab::both(&list));
        let list = String::from_utf8(list.stdout)?;
        record.note(&ledger, &list)?;
        there.extend(list.lines().map(|name| file_of(name).to_owned()));
        // Mutants of files that are not on record, and survivors without a reason.
        let again: BTreeSet<&str> =
            record.files.values().flat_map(|tried| tried.unexplained(&explained)).collect();
        let is_new = |name: &&str| !record.files.contains_key(file_of(name));
        let names: Vec<String> =
            list.lines().filter(|name| is_new(name) || again.contains(name)).map(str::to_owned).collect();
        let is_open = |name: &String| ledger.outcomes.get(name).is_none_or(|it| it == "missed");
        if names.iter().any(is_open) {
            ledger.begin(&out, &list)?;
            let new = list.lines().filter(is_new).map(|name| format!("{}:.*", escaped(file_of(name))));
            let again = again.iter().map(|name| escaped(name));
            let choices: BTreeSet<String> = new.chain(again).collect();
            let choices: Vec<String> = choices.into_iter().collect();
            let mut cargo = Command::new("cargo");
            cargo.arg("mutants").args(config).args([
                "--iterate",
                "--jobs",
                "2",
                "--minimum-test-timeout",
                "20",
            ]);
            cargo.arg("--re").arg(format!("^({})$", choices.join("|")));
            // That way a mutated file is compiled again within a second, and compiling takes most of the time.
            cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "1");
            cargo.env("CARGO_PROFILE_DEV_OPT_LEVEL", optimised);
            // The first test that fails is enough.
            cargo.env("RUSTC_BOOTSTRAP", "1");
            if let [_, _, "--test-package", package] = choice {
                // cargo-mutants would look for these tests in the package that it changes.
                let tests = [&["test", "--locked", "-p", package], *tests].concat();
                lab::succeed("cargo", &tests)?;
                cargo.args(["--baseline", "skip", "--timeout", "90"]);
            }
            cargo.arg("--output").arg(&out).args(*choice).arg("--").args(*tests);
            if !tests.contains(&"--") {
                cargo.arg("--");
            }
            cargo.args(["-Zunstable-options", "--fail-fast"]);
            let output = cargo.current_dir(&lab.root).stdin(Stdio::null()).output()?;
            ledger.gather(&out)?;
            record.note(&ledger, &list)?;
            // Missed mutants and timeouts are counted here; otherwise tests failed without any change.
            let is_tried = matches!(output.status.code(), Some(0 | 2 | 3));
            ensure!(is_tried, "{}: {}", output.status, lab::tail(&lab::both(&output), 30));
            let undone = names.iter().filter(|name| !ledger.outcomes.contains_key(*name)).count();
            ensure!(undone == 0, "{undone} mutants are not tried: {}", lab::tail(&lab::both(&output), 30));
        }
    }
    record.files.retain(|file, _| there.contains(file));
    record.save()?;
    let killed: usize = record.files.values().map(|tried| tried.killed).sum();
    let missed: usize = record.files.values().map(|tried| tried.survivors.len()).sum();
    let unexplained: Vec<&str> =
        record.files.values().flat_map(|tried| tried.unexplained(&explained)).collect();
    unexplained.iter().for_each(|name| eprintln!("survives: {name}"));
    let unexplained = unexplained.len();
    let all = killed + missed;
    let share = killed as f64 / all as f64;
    ensure!(share >= 0.9, "{killed} of {all} killed: {:.1}%", share * 100.0);
    ensure!(unexplained == 0, "{unexplained} of {missed} survivors are not in docs/MUTANTS.md");
    Ok(format!(
        "{} mutants, {:.1}% killed; {missed} survive, each explained (MUTANTS.md)",
        grouped(all as u64),
        share * 100.0
    ))
}
