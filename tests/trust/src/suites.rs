//! Targets that tests, fuzzers and tools of their own measure: they are run from here, and their figures gathered.
//!
//! Tests print what they have counted as `figure NUMBER: text`, for the target of that number.

use crate::arguments;
use crate::lab::{self, Lab, grouped};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
        let passed = passed(&text);
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

/// What is instrumented is built for.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// What Miri can run: nothing that maps files, nor the layouts of whole trees, which take it hours.
const MIRI: &[&[&str]] = &[
    &["-p", "pleach-format", "--lib", "--", "--skip", "classic"],
    &["-p", "pleach-tests", "--test", "corrupt", "--", "unverified"],
];

/// Flags that make a program which libFuzzer can lead.
const FUZZER: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address";

/// Builds the fuzz targets with these flags into this folder; where they are.
fn fuzzers(lab: &Lab, folder: &str, flags: &str) -> Result<PathBuf> {
    let folder = lab.root.join(folder);
    let target = folder.to_str().context("a plain path")?;
    let manifest = lab.root.join("tests/fuzz/Cargo.toml");
    let manifest = manifest.to_str().context("a plain path")?;
    lab.cargo(
        &[
            "build",
            "--release",
            "--locked",
            "--manifest-path",
            manifest,
            "--target",
            TRIPLE,
            "--target-dir",
            target,
        ],
        // Sanitizers are said to be unstable; this compiler has them all the same.
        &[("RUSTFLAGS", flags), ("RUSTC_BOOTSTRAP", "1")],
    )?;
    Ok(folder.join(TRIPLE).join("release"))
}

/// Seconds of processors that ended children of this process have taken: what `proc(5)` calls cutime and cstime.
fn children_seconds() -> Result<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit_once(") ").context("a name in parentheses")?.1.split(' ').skip(13).take(2);
    let ticks: u64 = fields.map(|field| field.parse::<u64>()).sum::<Result<_, _>>()?;
    Ok(ticks / 100)
}

/// Runs a fuzz target for so long.
fn fuzz(lab: &Lab, names: &[&str], seconds: u64) -> Result<String> {
    let programs = fuzzers(lab, "target/fuzz", FUZZER)?;
    let before = children_seconds()?;
    let mut running = Vec::new();
    for name in names {
        let [corpus, seeds] = corpora(lab, name);
        std::fs::create_dir_all(&corpus)?;
        let mut command = Command::new(programs.join(name));
        command.arg(&corpus).arg(&seeds).arg(format!("-max_total_time={seconds}"));
        // Threads of pools that are on their way out are no leaks.
        command.args([
            "-timeout=10",
            "-rss_limit_mb=2048",
            "-print_final_stats=1",
            "-max_len=8192",
            // Threads of pools that are on their way out are none.
            "-detect_leaks=0",
        ]);
        // Two fuzzers on two cores: threads that wait for each other would only cost time.
        command.env("RAYON_NUM_THREADS", "1");
        command.arg(format!("-artifact_prefix={}/", programs.display())).current_dir(&lab.root);
        // What it says goes to a file: a pipe that nobody reads would stop it.
        let log = tempfile::NamedTempFile::new()?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.reopen()?).spawn()?;
        running.push((name, child, log));
    }
    let mut told = Vec::new();
    for (name, mut child, log) in running {
        let status = child.wait()?;
        let text = String::from_utf8_lossy(&std::fs::read(log.path())?).into_owned();
        ensure!(status.success(), "{name}: {status}\n{}", lab::tail(&text, 40));
        let number = |mark: &str| -> Option<u64> {
            text.lines().find_map(|line| line.split_once(mark)?.1.trim().parse().ok())
        };
        let runs = number("stat::number_of_executed_units:").context("statistics")?;
        let answers =
            number("answers compared:").map(|answers| format!(", {} answers compared", grouped(answers)));
        told.push(format!("`{name}` {} runs{}", grouped(runs), answers.unwrap_or_default()));
    }
    let seconds = children_seconds()? - before;
    Ok(format!("{}; {} s of processors, no finding", told.join("; "), grouped(seconds)))
}

/// What a fuzz target has found worth keeping, and what it began with.
fn corpora(lab: &Lab, name: &str) -> [PathBuf; 2] {
    ["target/fuzz/corpus", "tests/fuzz/corpus"].map(|folder| lab.root.join(folder).join(name))
}

/// How many lines of `format` all that the fuzzers have kept runs through.
fn coverage(lab: &Lab) -> Result<String> {
    let sysroot = lab::succeed("rustc", &["--print", "sysroot"])?;
    let tools = Path::new(sysroot.trim()).join("lib/rustlib").join(TRIPLE).join("bin");
    let (merge, report) = (tools.join("llvm-profdata"), tools.join("llvm-cov"));
    if !merge.is_file() || !report.is_file() {
        return Err(lab::NotHere("llvm-tools are missing: rustup component add llvm-tools".into()).into());
    }
    let programs = fuzzers(lab, "target/coverage", "--cfg fuzzing -Cinstrument-coverage")?;
    let mut parts = vec!["merge".to_owned(), "-sparse".into(), "-o".into()];
    let whole = programs.join("all.profdata").display().to_string();
    parts.push(whole.clone());
    let mut objects = Vec::new();
    for name in ["open", "search", "import", "text"] {
        let folders = corpora(lab, name).map(|folder| std::fs::read_dir(folder).into_iter().flatten());
        let inputs: Vec<_> = folders.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        for (number, inputs) in inputs.chunks(1000).enumerate() {
            let part = programs.join(format!("{name}-{number}.profraw"));
            let mut command = Command::new(programs.join(name));
            command.args(inputs).env("LLVM_PROFILE_FILE", &part).current_dir(&lab.root);
            let output = command.stdin(Stdio::null()).output()?;
            ensure!(output.status.success(), "{name}: {}", lab::tail(&lab::both(&output), 20));
            parts.push(part.display().to_string());
        }
        objects.extend(["-object".to_owned(), programs.join(name).display().to_string()]);
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    lab::succeed(&merge.display().to_string(), &parts)?;
    let profile = format!("-instr-profile={whole}");
    let mut args = vec!["export", "-summary-only", "-format=text", &profile];
    args.extend(objects.iter().map(String::as_str));
    let output = Command::new(report).args(args).output()?;
    let text: serde_json::Value = serde_json::from_slice(&output.stdout).context("a report of llvm-cov")?;
    let (mut covered, mut count) = (0, 0);
    for file in text["data"][0]["files"].as_array().context("files")? {
        let lines = &file["summary"]["lines"];
        if file["filename"].as_str().is_some_and(|name| name.contains("/format/src/")) {
            eprintln!("{:>5} of {:>5} lines: {}", lines["covered"], lines["count"], file["filename"]);
            covered += lines["covered"].as_u64().unwrap_or_default();
            count += lines["count"].as_u64().unwrap_or_default();
        }
    }
    let share = covered as f64 / count.max(1) as f64;
    ensure!(share >= 0.95, "{covered} of {count} lines of `format` are run through: {:.1}%", share * 100.0);
    Ok(format!("{:.1}% of the {} lines of `format`", share * 100.0, grouped(count)))
}

/// Seconds of a fuzz target, where somebody asked for some.
fn fuzz_seconds_asked() -> Option<u64> {
    std::env::var("PLEACH_FUZZ_SECONDS").ok()?.parse().ok()
}

/// Seconds of a fuzz target in each form.
fn fuzz_seconds(lab: &Lab) -> u64 {
    fuzz_seconds_asked().unwrap_or(lab.tries(60, 3600))
}

/// Target 17.
pub fn fuzz_open(lab: &Lab) -> Result<String> {
    let told = fuzz(lab, &["open"], fuzz_seconds(lab))?;
    if lab.short {
        return Ok(told);
    }
    Ok(format!("{told}; the corpora of all fuzz targets run through {}", coverage(lab)?))
}

/// Target 18.
pub fn fuzz_search(lab: &Lab) -> Result<String> {
    fuzz(lab, &["search"], fuzz_seconds(lab))
}

/// Target 19. The short form leaves out what takes minutes to build, unless it is asked for.
pub fn fuzz_import(lab: &Lab) -> Result<String> {
    let by_chance = arguments::by_chance(lab, lab.tries(300, 100_000))?;
    if lab.short && fuzz_seconds_asked().is_none() {
        return Ok(by_chance);
    }
    Ok(format!("{}; {by_chance}", fuzz(lab, &["import", "text"], fuzz_seconds(lab))?))
}

/// Tests that passed, by what cargo printed.
fn passed(text: &str) -> u64 {
    let passed = |line: &str| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<u64>().ok();
    text.lines().filter_map(passed).sum()
}

/// Target 20. The standard library is instrumented, too.
pub fn sanitizers(lab: &Lab) -> Result<String> {
    let mut told = Vec::new();
    for name in ["address", "thread"] {
        let flags = format!("-Zsanitizer={name}");
        let folder = format!("target/{name}");
        let build =
            ["test", "--locked", "--release", "--no-fail-fast", "--target", TRIPLE, "--target-dir", &folder];
        let packages = ["-p", "pleach", "-p", "pleach-format", "-p", "pleach-builder", "-p", "pleach-tests"];
        let args = [&build[..], &["-Zbuild-std"], &packages, &["--lib", "--tests"]].concat();
        let text = lab.nightly(&args, &[("RUSTFLAGS", &flags), ("PLEACH_SANITIZED", name)])?;
        told.push(format!("{} tests under the {name} sanitizer", grouped(passed(&text))));
    }
    let mut miri = 0;
    for tests in MIRI {
        let args = [&["miri", "test", "--locked", "--target-dir", "target/miri"], *tests].concat();
        miri += passed(&lab.nightly(&args, &[])?);
    }
    told.push(format!("{} under Miri", grouped(miri)));
    Ok(format!("{}; no finding", told.join(", ")))
}

/// Target 22.
pub fn gpu(lab: &Lab) -> Result<String> {
    figures(lab, 22, &[&["-p", "pleach-gpu", "--features", "emulate", "--test", "emulated"]])
}

/// What is changed by mutants, and what looks at it. The second look at `format` is at those alone that the first one
/// missed.
const MUTANTS: &[(&[&str], &[&str])] = &[
    (&["-p", "pleach-fsck"], &[]),
    (&["-p", "pleach-format"], &[]),
    (&["-p", "pleach-format", "--iterate", "--test-package", "pleach-fsck"], &[]),
    (&["-p", "pleach-builder"], &["--test", "publish"]),
    (&["-p", "pleach", "--test-package", "pleach-tests"], &["--test", "corrupt", "--", "verified"]),
];

/// Target 29. Hours: what was done before, of the same sources, is not done again.
pub fn mutants(lab: &Lab) -> Result<String> {
    lab::need(&["cargo-mutants"], false)
        .or_else(|_| lab::succeed("cargo", &["mutants", "--version"]).map(drop))?;
    let (mut killed, mut missed) = (0, 0);
    for (number, (choice, tests)) in MUTANTS.iter().enumerate() {
        // Both looks at `format` share a folder.
        let out = lab.root.join("target/mutants").join(choice[1]);
        std::fs::create_dir_all(&out)?;
        let out = out.to_str().context("a plain path")?;
        let mut cargo = Command::new("cargo");
        cargo.args([
            "mutants",
            "--no-shuffle",
            "--jobs",
            "2",
            "--config",
            "tests/mutants.toml",
            "--output",
            out,
        ]);
        cargo.args(["--minimum-test-timeout", "60"]).args(*choice).arg("--").args(*tests);
        // Its exit code says whether mutants were missed, which is counted here.
        let output = cargo.current_dir(&lab.root).stdin(Stdio::null()).output()?;
        let names = |kind: &str| -> Vec<String> {
            let path = Path::new(out).join("mutants.out").join(format!("{kind}.txt"));
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.lines().map(str::to_owned).collect()
        };
        let found = (names("caught").len() + names("timeout").len(), names("missed"));
        ensure!(found.0 > 0 || choice.contains(&"--iterate"), "{}", lab::tail(&lab::both(&output), 30));
        killed += found.0;
        let is_looked_at_again = MUTANTS.get(number + 1).is_some_and(|next| next.0.contains(&"--iterate"));
        if !is_looked_at_again {
            missed += found.1.len();
            found.1.iter().for_each(|name| eprintln!("survives: {name}"));
        }
    }
    let share = killed as f64 / (killed + missed) as f64;
    ensure!(share >= 0.9, "{killed} of {} killed: {:.1}%", killed + missed, share * 100.0);
    Ok(format!(
        "{} mutants, {:.1}% killed; {missed} survive",
        grouped((killed + missed) as u64),
        share * 100.0
    ))
}

/// Target 30.
pub fn sets(_: &Lab) -> Result<String> {
    bail!("there are no sets of files yet")
}
