//! Targets that fuzzers measure: built with libFuzzer's instruments, run for a time, and what they ran
//! through counted.

use crate::arguments;
use crate::lab::{self, Lab, grouped};
use crate::suites::TRIPLE;
use anyhow::{Context, Result, ensure};
use pleach_format::checksum::crc32;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The fuzz targets: `tests/fuzz/targets`.
const FUZZERS: [&str; 4] = ["open", "search", "import", "text"];

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

/// Work that one fuzz target has done. Stored next to the corpus, so that hours of one program can be
/// spread over several runs.
#[derive(Default)]
struct Work {
    /// Sum of the program that did it.
    program: u32,
    runs: u64,
    answers: u64,
    /// Processor time.
    seconds: f64,
}

impl Work {
    fn path(lab: &Lab, name: &str) -> PathBuf {
        lab.root.join("target/fuzz").join(format!("{name}.done"))
    }

    /// Returns the work that this program has done before, if it is the same.
    fn load(lab: &Lab, name: &str, programs: &Path) -> Result<Self> {
        let program = crc32(&std::fs::read(programs.join(name))?);
        let text = std::fs::read_to_string(Self::path(lab, name)).unwrap_or_default();
        let mut words = text.split_whitespace();
        let is_same = words.next().and_then(|word| word.parse().ok()) == Some(program);
        let mut next = || words.next()?.parse::<f64>().ok().filter(|_| is_same);
        let (runs, answers, seconds) = (next(), next(), next());
        Ok(Self {
            program,
            runs: runs.unwrap_or_default() as u64,
            answers: answers.unwrap_or_default() as u64,
            seconds: seconds.unwrap_or_default(),
        })
    }

    fn save(&self, lab: &Lab, name: &str) -> Result<()> {
        let text = format!("{} {} {} {:.1}\n", self.program, self.runs, self.answers, self.seconds);
        Ok(std::fs::write(Self::path(lab, name), text)?)
    }
}

/// Seconds of processors that a process has taken so far: utime and stime of `proc(5)`.
fn processor_seconds(process: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields = stat.rsplit_once(") ")?.1.split(' ').skip(11).take(2);
    Some(fields.map(|field| field.parse::<f64>()).sum::<Result<f64, _>>().ok()? / 100.0)
}

/// A fuzz target, to be run.
fn program(programs: &Path, name: &str) -> Command {
    let mut command = Command::new(programs.join(name));
    // Two fuzzers on two cores: threads that wait for each other would only cost time.
    command.env("RAYON_NUM_THREADS", "1");
    // Pool threads that are still exiting at the end are not leaks.
    command.env("ASAN_OPTIONS", "detect_leaks=0").stdin(Stdio::null());
    command
}

/// Runs a fuzz target once, for a number of seconds of the clock.
fn run_for(lab: &Lab, programs: &Path, name: &str, seconds: u64, work: &mut Work) -> Result<()> {
    let [corpus, seeds] = corpora(lab, name);
    std::fs::create_dir_all(&corpus)?;
    let mut command = program(programs, name);
    command.arg(&corpus).arg(&seeds).arg(format!("-max_total_time={seconds}"));
    command.args([
        "-timeout=10",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
        // Names of functions take long to find.
        "-print_funcs=0",
        "-max_len=8192",
        // Inputs that keep memory allocated for a while, as pools do, would be run twice.
        "-detect_leaks=0",
    ]);
    command.arg(format!("-artifact_prefix={}/{name}-", programs.display())).current_dir(&lab.root);
    // A build buffers lines; and few bytes of an input may decompress to many: a page of Parquet to 1 GiB.
    let most = if BUILDS.contains(&name) { 1536 } else { 64 };
    command.arg(format!("-malloc_limit_mb={most}"));
    // Its output goes to a file: an unread pipe would block it.
    let log = tempfile::NamedTempFile::new()?;
    let mut child = command.stdout(Stdio::null()).stderr(log.reopen()?).spawn()?;
    let mut taken = 0.0;
    let status = loop {
        taken = processor_seconds(child.id()).unwrap_or(taken);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let text = String::from_utf8_lossy(&std::fs::read(log.path())?).into_owned();
    ensure!(status.success(), "{name}: {status}\n{}", lab::tail(&text, 40));
    let number = |mark: &str| -> Option<u64> {
        text.lines().find_map(|line| line.split_once(mark)?.1.trim().parse().ok())
    };
    work.runs += number("stat::number_of_executed_units:").context("statistics")?;
    if name == COMPARES {
        work.answers += number("answers compared:").context("no word of how many answers were compared")?;
    }
    work.seconds += taken;
    Ok(())
}

/// Inputs that made a program fail once must not do so any more: they are not part of the corpus.
fn replay(programs: &Path, name: &str) -> Result<()> {
    let prefix = format!("{name}-");
    let is_artifact = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ["crash-", "timeout-", "oom-", "leak-"]
            .iter()
            .any(|kind| file.starts_with(&format!("{prefix}{kind}")))
    };
    for path in files_of(programs).filter(is_artifact) {
        let output = program(programs, name).arg(&path).output()?;
        let text = lab::tail(&lab::both(&output), 40);
        ensure!(output.status.success(), "{name} fails as before on {}: {text}", path.display());
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Fuzz targets that build from what they are given: their libraries' memory is not bounded.
const BUILDS: [&str; 2] = ["import", "search"];

/// The fuzz target that compares answers, and counts them.
const COMPARES: &str = "search";

/// Seconds of the clock after which what was done is written down.
const SLICE_SECONDS: u64 = 300;

/// Runs fuzz targets side by side, each for so long: of the clock in the short form, in the long one of a
/// processor and in all, the work of earlier calls included (`target/fuzz/NAME.done`).
fn fuzz(lab: &Lab, names: &[&str], seconds: u64) -> Result<String> {
    let programs = fuzzers(lab, "target/fuzz", FUZZER)?;
    let one = |name: &str| -> Result<String> {
        let mut work = Work::default();
        replay(&programs, name)?;
        if lab.short {
            run_for(lab, &programs, name, seconds, &mut work)?;
        } else {
            work = Work::load(lab, name, &programs)?;
        }
        while !lab.short && work.seconds < seconds as f64 {
            let left = (seconds as f64 - work.seconds).ceil() as u64 + 1;
            run_for(lab, &programs, name, left.min(SLICE_SECONDS), &mut work)?;
            work.save(lab, name)?;
        }
        ensure!(name != COMPARES || work.answers > 0, "{name}: no answer was compared");
        let answers = match work.answers {
            0 => String::new(),
            answers => format!(", {} answers compared", grouped(answers)),
        };
        let (runs, taken) = (grouped(work.runs), grouped(work.seconds as u64));
        Ok(format!("`{name}` {runs} runs{answers}, {taken} s of a processor"))
    };
    let told: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = names.iter().map(|name| scope.spawn(|| one(name))).collect();
        running.into_iter().map(|running| running.join().expect("no panic")).collect()
    });
    let told: Vec<String> = told.into_iter().collect::<Result<_>>()?;
    Ok(format!("{}; no finding", told.join("; ")))
}

/// Corpus that a fuzz target has found, and the one with which it began.
fn corpora(lab: &Lab, name: &str) -> [PathBuf; 2] {
    ["target/fuzz/corpus", "tests/fuzz/corpus"].map(|folder| lab.root.join(folder).join(name))
}

/// Files of a folder, which need not be there.
fn files_of(folder: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Counts of executions of each line of each file of `format`, from the report of `llvm-cov` for one program.
fn add_lines(lines: &mut BTreeMap<String, BTreeMap<u32, u64>>, lcov: &str) -> Option<()> {
    let mut file = None;
    for line in lcov.lines() {
        if let Some(path) = line.strip_prefix("SF:") {
            file = path.split_once("/format/src/").map(|(_, name)| name.to_owned());
        } else if let (Some(file), Some(data)) = (&file, line.strip_prefix("DA:")) {
            let (number, hits) = data.split_once(',')?;
            *lines.entry(file.clone()).or_default().entry(number.parse().ok()?).or_default() +=
                hits.parse::<u64>().ok()?;
        }
    }
    Some(())
}

/// Programs that merge and report profiles.
fn coverage_tools() -> Result<[PathBuf; 2]> {
    let sysroot = lab::succeed("rustc", &["--print", "sysroot"])?;
    let folder = Path::new(sysroot.trim()).join("lib/rustlib").join(TRIPLE).join("bin");
    let tools = ["llvm-profdata", "llvm-cov"].map(|name| folder.join(name));
    if tools.iter().any(|tool| !tool.is_file()) {
        return Err(lab::NotHere("llvm-tools are missing: rustup component add llvm-tools".into()).into());
    }
    Ok(tools)
}

/// Returns the number of lines of `format` that the corpora of all fuzzers execute. Each program is looked
/// at by itself, and a line counts that one of them has run: profiles of programs that hold different
/// instances of a function do not add.
fn coverage(lab: &Lab) -> Result<String> {
    let [merge, report] = coverage_tools()?;
    let programs = fuzzers(lab, "target/coverage", "--cfg fuzzing -Cinstrument-coverage")?;
    let mut lines = BTreeMap::new();
    for name in FUZZERS {
        // Copied first: a fuzzer that still runs replaces inputs by smaller ones.
        let copy = lab.memory()?;
        for (number, path) in corpora(lab, name).iter().flat_map(|folder| files_of(folder)).enumerate() {
            let copied = std::fs::copy(&path, copy.path().join(number.to_string()));
            copied.map(drop).or_else(|e| if e.kind() == ErrorKind::NotFound { Ok(()) } else { Err(e) })?;
        }
        let whole = programs.join(format!("{name}.profdata"));
        let mut parts = vec!["merge".to_owned(), "-sparse".into(), "-o".into(), whole.display().to_string()];
        let inputs: Vec<_> = files_of(copy.path()).collect();
        for (number, inputs) in inputs.chunks(1000).enumerate() {
            let part = programs.join(format!("{name}-{number}.profraw"));
            let mut command = program(&programs, name);
            command.args(inputs).env("LLVM_PROFILE_FILE", &part);
            let output = command.current_dir(&lab.root).output()?;
            ensure!(output.status.success(), "{name}: {}", lab::tail(&lab::both(&output), 20));
            parts.push(part.display().to_string());
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        lab::succeed(&merge.display().to_string(), &parts)?;
        let profile = format!("-instr-profile={}", whole.display());
        let output = Command::new(&report)
            .args(["export", "-format=lcov", &profile])
            .arg(programs.join(name))
            .output()?;
        ensure!(output.status.success(), "{}", lab::both(&output));
        add_lines(&mut lines, &String::from_utf8_lossy(&output.stdout)).context("a report of llvm-cov")?;
    }
    let (mut covered, mut count) = (0, 0);
    for (file, lines) in &lines {
        let missed: Vec<_> =
            lines.iter().filter(|line| *line.1 == 0).map(|line| line.0.to_string()).collect();
        if !missed.is_empty() {
            eprintln!(
                "format/src/{file}: {} of {} lines, not {}",
                lines.len() - missed.len(),
                lines.len(),
                missed.join(" ")
            );
        }
        covered += lines.len() - missed.len();
        count += lines.len();
    }
    let share = covered as f64 / count.max(1) as f64;
    ensure!(share >= 0.95, "{covered} of {count} lines of `format` are run through: {:.1}%", share * 100.0);
    Ok(format!("{:.1}% of the {} lines of `format`", share * 100.0, grouped(count as u64)))
}

/// Returns the seconds of a fuzz target, if they were requested.
fn fuzz_seconds_asked() -> Option<u64> {
    std::env::var("PLEACH_FUZZ_SECONDS").ok()?.parse().ok()
}

/// Processor seconds that a figure represents.
const WHOLE_SECONDS: u64 = 3600;

/// Seconds of a fuzz target in each form.
fn fuzz_seconds(lab: &Lab) -> u64 {
    fuzz_seconds_asked().unwrap_or(lab.tries(60, WHOLE_SECONDS))
}

/// Numbers of the targets here.
const NUMBERS: RangeInclusive<u32> = 17..=19;

/// Returns true if this target would be measured for less time than its figure represents.
pub fn is_shortened(number: u32) -> bool {
    NUMBERS.contains(&number) && fuzz_seconds_asked().is_some_and(|seconds| seconds < WHOLE_SECONDS)
}

/// Target 17.
pub fn fuzz_open(lab: &Lab) -> Result<String> {
    if !lab.short {
        // Rather than after the hour.
        coverage_tools()?;
    }
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

/// Target 19. The short form leaves out programs that take minutes to build, unless they are requested.
pub fn fuzz_import(lab: &Lab) -> Result<String> {
    let by_chance = || arguments::by_chance(lab, lab.tries(300, 100_000));
    if lab.short && fuzz_seconds_asked().is_none() {
        return by_chance();
    }
    // First what is kept from one call to the next.
    let fuzzed = fuzz(lab, &["import", "text"], fuzz_seconds(lab))?;
    Ok(format!("{fuzzed}; {}", by_chance()?))
}
