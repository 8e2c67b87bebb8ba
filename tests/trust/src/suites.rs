//! Targets that tests, fuzzers and tools of their own measure: they are run from here, and their figures gathered.
//!
//! Tests print what they have counted as `figure NUMBER: text`, for the target of that number.

use crate::lab::{self, Lab, grouped};
use anyhow::{Context, Result, bail, ensure};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs tests, in their long form unless the short one is asked for, and gathers the figures of a target.
fn figures(lab: &Lab, number: u32, tests: &[&[&str]]) -> Result<String> {
    let mut found = Vec::new();
    for test in tests {
        let mut args = vec!["test", "--locked"];
        if !lab.short {
            args.push("--release");
        }
        let split = test.iter().position(|arg| *arg == "--").unwrap_or(test.len());
        args.extend(&test[..split]);
        args.extend(["--", "--nocapture"]);
        args.extend(test.get(split + 1..).unwrap_or_default());
        let environment: &[(&str, &str)] = if lab.short { &[] } else { &[("PLEACH_TESTS", "long")] };
        let text = lab.cargo(&args, environment)?;
        let passed: u64 = text
            .lines()
            .filter_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<u64>().ok())
            .sum();
        ensure!(passed > 0, "{}: no test ran", test.join(" "));
        let mark = format!("figure {number}: ");
        found.extend(
            text.lines().filter_map(|line| line.split_once(&mark).map(|(_, figure)| figure.to_owned())),
        );
        if tests.len() == 1 && found.is_empty() {
            found.push(format!("{passed} tests pass"));
        }
    }
    found.dedup();
    Ok(found.join("; "))
}

macro_rules! tests {
    ($($(#[$doc:meta])* $name:ident: $number:literal, [$($test:expr),*];)*) => {
        $($(#[$doc])* pub fn $name(lab: &Lab) -> Result<String> {
            figures(lab, $number, &[$(&$test),*])
        })*
    };
}

/// A test of the damage suite.
const fn damage(name: &'static str) -> [&'static str; 6] {
    ["-p", "pleach-tests", "--test", "corrupt", "--", name]
}

tests! {
    /// Target 1.
    bit_flips: 1, [damage("flip")];
    /// Target 2.
    other_damage: 2, [damage("found"), damage("named")];
    /// Target 3.
    every_byte: 3, [damage("every_flipped_bit")];
    /// Target 4.
    truncation: 4, [damage("length")];
    /// Target 5.
    forged: 5, [damage("forged")];
    /// Target 6.
    unverified: 6, [damage("unverified")];
    /// Target 21.
    agree: 21, [["-p", "pleach-tests", "--test", "agree"]];
    /// Target 23.
    salvage: 23, [["-p", "pleach-tests", "--test", "salvage"]];
    /// Target 26.
    compatibility: 26, [["-p", "pleach-tests", "--test", "golden"]];
    /// Target 28.
    models: 28, [["-p", "pleach-tests", "--test", "schedules"], ["-p", "pleach-builder", "--lib", "harmonia::model"]];
}

/// Flags that make a program which libFuzzer can lead.
const FUZZER: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address";

/// Builds the fuzz targets; the folder they are in.
fn fuzzers(lab: &Lab) -> Result<std::path::PathBuf> {
    let folder = lab.root.join("target/fuzz");
    let target = folder.to_str().context("a plain path")?;
    let manifest = lab.root.join("tests/fuzz/Cargo.toml");
    let manifest = manifest.to_str().context("a plain path")?;
    let triple = "x86_64-unknown-linux-gnu";
    lab.cargo(
        &[
            "build",
            "--release",
            "--locked",
            "--manifest-path",
            manifest,
            "--target",
            triple,
            "--target-dir",
            target,
        ],
        // Sanitizers are said to be unstable; this compiler has them all the same.
        &[("RUSTFLAGS", FUZZER), ("RUSTC_BOOTSTRAP", "1")],
    )?;
    Ok(folder.join(triple).join("release"))
}

/// Runs a fuzz target for so long.
fn fuzz(lab: &Lab, names: &[&str], seconds: u64) -> Result<String> {
    let programs = fuzzers(lab)?;
    let mut running = Vec::new();
    for name in names {
        let corpus = lab.root.join("target/fuzz/corpus").join(name);
        std::fs::create_dir_all(&corpus)?;
        let seeds = lab.root.join("tests/fuzz/corpus").join(name);
        let mut command = Command::new(programs.join(name));
        command.arg(&corpus).arg(&seeds).arg(format!("-max_total_time={seconds}"));
        command.args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1", "-max_len=8192"]);
        command.arg(format!("-artifact_prefix={}/", programs.display())).current_dir(&lab.root);
        // What it says goes to a file: a pipe that nobody reads would stop it.
        let log = tempfile::NamedTempFile::new()?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.reopen()?).spawn()?;
        running.push((name, child, log, Instant::now()));
    }
    let mut told = Vec::new();
    for (name, mut child, log, start) in running {
        let status = child.wait()?;
        let text = String::from_utf8_lossy(&std::fs::read(log.path())?).into_owned();
        ensure!(status.success(), "{name}: {status}\n{}", lab::tail(&text, 40));
        let number = |mark: &str| -> Option<u64> {
            text.lines().find_map(|line| line.split_once(mark)?.1.trim().parse().ok())
        };
        let runs = number("stat::number_of_executed_units:").context("statistics")?;
        let answers =
            number("answers compared:").map(|answers| format!(", {} answers compared", grouped(answers)));
        let seconds = start.elapsed().as_secs();
        told.push(format!(
            "`{name}` {} runs in {seconds} s, no finding{}",
            grouped(runs),
            answers.unwrap_or_default()
        ));
    }
    Ok(told.join("; "))
}

/// Seconds of a fuzz target in each form.
fn fuzz_seconds(lab: &Lab) -> u64 {
    let asked = std::env::var("PLEACH_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(lab.tries(60, 3600))
}

/// Target 17.
pub fn fuzz_open(lab: &Lab) -> Result<String> {
    fuzz(lab, &["open"], fuzz_seconds(lab))
}

/// Target 18.
pub fn fuzz_search(lab: &Lab) -> Result<String> {
    fuzz(lab, &["search"], fuzz_seconds(lab))
}

/// Target 19.
pub fn fuzz_import(lab: &Lab) -> Result<String> {
    fuzz(lab, &["import", "text"], fuzz_seconds(lab))
}

/// Target 20.
pub fn sanitizers(lab: &Lab) -> Result<String> {
    let mut told = Vec::new();
    let triple = "x86_64-unknown-linux-gnu";
    for (name, flags) in [("address", "-Zsanitizer=address"), ("thread", "-Zsanitizer=thread")] {
        let flags = format!("{flags} -Cunsafe-allow-abi-mismatch=sanitizer");
        let folder = format!("target/{name}");
        let mut args = vec![
            "test",
            "--locked",
            "--target",
            triple,
            "--target-dir",
            &folder,
            "--release",
            "--no-fail-fast",
        ];
        args.extend([
            "-p",
            "pleach",
            "-p",
            "pleach-format",
            "-p",
            "pleach-builder",
            "-p",
            "pleach-tests",
            "--tests",
        ]);
        let text = lab.cargo(&args, &[("RUSTFLAGS", &flags), ("RUSTC_BOOTSTRAP", "1")])?;
        let passed: u64 = text
            .lines()
            .filter_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<u64>().ok())
            .sum();
        told.push(format!("{name} sanitizer: {passed} tests, clean"));
    }
    Ok(told.join("; "))
}

/// Target 22.
pub fn gpu(lab: &Lab) -> Result<String> {
    figures(lab, 22, &[&["-p", "pleach-gpu", "--features", "emulate", "--test", "emulated"]])
}

/// Target 29.
pub fn mutants(lab: &Lab) -> Result<String> {
    let out = lab.root.join("target/mutants");
    if !lab::has("cargo-mutants") && Command::new("cargo").args(["mutants", "--version"]).output().is_err() {
        bail!("cargo-mutants is missing: cargo install cargo-mutants");
    }
    let out = out.to_str().context("a plain path")?;
    let mut cargo = Command::new("cargo");
    cargo.args(["mutants", "--no-shuffle", "--output", out, "--config", "tests/mutants.toml"]);
    // Its exit code says whether mutants were missed, which is counted here.
    let output = cargo.current_dir(&lab.root).output()?;
    let text = lab::both(&output);
    let count = |name: &str| -> Result<u64> {
        let path = std::path::Path::new(out).join("mutants.out").join(format!("{name}.txt"));
        Ok(std::fs::read_to_string(path).map_or(0, |text| text.lines().count()) as u64)
    };
    let (caught, missed, timeout) = (count("caught")?, count("missed")?, count("timeout")?);
    let killed = caught + timeout;
    ensure!(killed > 0, "{}", lab::tail(&text, 30));
    let share = killed as f64 / (killed + missed) as f64;
    ensure!(share >= 0.9, "{killed} of {} killed: {:.1}%", killed + missed, share * 100.0);
    Ok(format!("{} mutants, {:.1}% killed; {missed} survive", grouped(killed + missed), share * 100.0))
}

/// Target 30.
pub fn sets(_: &Lab) -> Result<String> {
    bail!("there are no sets of files yet")
}
