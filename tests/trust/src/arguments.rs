//! Target 19, the part that no fuzzer reaches: command lines of chance, run as a user would run them.
//!
//! Commands and their options come from the completions that the command prints for shells, so that none is
//! forgotten; between them are names of whole, damaged and missing files, numbers at every edge,
//! expressions, random texts and bytes. In every case: an exit code of the contract, nothing but one line
//! on standard error where it is refused, never a panic, a signal, a wait without end, or litter.

use crate::disks::within;
use crate::lab::{Lab, command, grouped, names, tail};
use anyhow::{Context, Result, ensure};
use pleach_tests::generate::Random;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Commands that measure, and take long.
const LONG: [&str; 4] = ["bench", "tune", "demo", "help"];

/// Files of the folder in which commands are run.
const FILES: [&str; 9] =
    ["a.pleach", "b.pleach", "s.pleach", "r.pleach", "bad.pleach", "a.csv", "s.csv", "keys.txt", "empty"];

/// Values that may follow an option or be alone.
const WORDS: &[&str] = &[
    "0",
    "1",
    "2",
    "7",
    "-1",
    "3.5",
    "64",
    "1K",
    "1KiB",
    "512MiB",
    "1e3",
    "1e400",
    "nan",
    "inf",
    "10%",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211455",
    "",
    " ",
    "-",
    "--",
    ".",
    "..",
    "/",
    "none",
    "full",
    "touched",
    "header",
    "cpu",
    "cuda",
    "auto",
    "u8",
    "u32",
    "u64",
    "u128",
    "i64",
    "f64",
    "utf8",
    "bytes",
    "bytes3",
    "bytes17",
    "bytes0",
    "default",
    "csv",
    "raw",
    "parquet",
    "arrow",
    "npy",
    "u64,u64",
    "u32,u32",
    "id",
    "row",
    "key",
    "value",
    "rank",
    "key[0:4]",
    "key[4:0]",
    "key[0:99]",
    "key,value",
    "value,key",
    "rank,key,value",
    "key > 5",
    "key in (1, 2, 3)",
    "value & 3 == 1",
    "not key < 10",
    "(key",
    "key ==",
    "rank < 3 or value >= 18446744073709551615",
    "key == 'x'",
    "sum",
    "min",
    "max",
    "count",
    "first",
    "inner",
    "left",
    "right",
    "full",
    "semi",
    "anti",
    "1..5",
    "5..1",
    "..",
    "10..",
    "..=10",
    "tab",
    ",",
    ";",
    "\t",
    "\n",
    "\u{1b}[2J",
    "é",
    "\u{202e}",
    "out.pleach",
    "out.csv",
    "out.parquet",
    "out.arrow",
    "missing.pleach",
    "no/such/folder",
    "/dev/null",
    "spine",
    "binary",
    "eytzinger",
    "bst",
    "fast",
    "harmonia",
    "btree",
    "p-ary",
    "grid",
    "columns",
    "lines",
    "missing",
    "null",
    "skip",
    "error",
    "record<a: u32, b: i16>",
];

/// A folder with something of everything.
fn scene(lab: &Lab, folder: &Path) -> Result<()> {
    let table = |rows: u64, step: u64| -> String {
        std::iter::once("id,row\n".to_owned())
            .chain((0..rows).map(|i| format!("{},{i}\n", i * step)))
            .collect()
    };
    fs::write(folder.join("a.csv"), table(500, 3))?;
    // Names that would steer a terminal, were they shown as they are.
    fs::write(folder.join("b.csv"), table(300, 5).replacen("id,row", "i\u{9b}2Jd,r\u{202e}ow", 1))?;
    let texts: String = (0..200).map(|i| format!("name{},{i}\n", i * 7 % 1000)).collect();
    fs::write(folder.join("s.csv"), format!("name,row\n{texts}"))?;
    fs::write(folder.join("keys.txt"), "3\n5\n15\nx\n")?;
    fs::write(folder.join("empty"), "")?;
    for (from, to, key) in [("a", "a", "u64"), ("b", "b", "u64"), ("s", "s", "utf8"), ("a", "r", "i32")] {
        let (from, to) = (format!("{from}.csv"), format!("{to}.pleach"));
        let output = lab.pleach(folder, &["build", &from, "-o", &to, "--key-type", key]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut bytes = fs::read(folder.join("a.pleach"))?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    fs::write(folder.join("bad.pleach"), bytes)?;
    Ok(())
}

/// Options, and words, of each command.
fn options(lab: &Lab, folder: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let output = lab.pleach(folder, &["completions", "bash"]).stdout(Stdio::piped()).output()?;
    let text = String::from_utf8(output.stdout)?;
    let mut all = BTreeMap::new();
    let mut name = None;
    for line in text.lines().map(str::trim) {
        if let Some(found) = line.strip_prefix("pleach__subcmd__").and_then(|line| line.strip_suffix(')')) {
            name = (!found.contains("__")).then(|| found.to_owned());
        } else if let (Some(words), Some(name)) = (line.strip_prefix("opts="), name.take()) {
            all.insert(name, words.trim_matches('"').split(' ').map(str::to_owned).collect());
        }
    }
    all.retain(|name, _| !LONG.contains(&name.as_str()));
    ensure!(all.len() > 10, "commands are not found in the completions: {text}");
    Ok(all)
}

fn one_of<'a, T: ?Sized>(random: &mut Random, all: &'a [&'a T]) -> &'a T {
    all[random.below(all.len() as u64) as usize]
}

/// A word of any kind.
fn word(random: &mut Random) -> OsString {
    match random.below(16) {
        0..=7 => one_of(random, &FILES).into(),
        8..=13 => one_of(random, WORDS).into(),
        14 => random.next().to_string().into(),
        _ => {
            let length = if random.below(8) == 0 { 5000 } else { random.below(12) };
            // An argument cannot contain a zero byte.
            OsString::from_vec((0..length).map(|_| (random.below(255) + 1) as u8).collect())
        }
    }
}

/// A command line: mostly one that could be meant.
fn arguments(random: &mut Random, commands: &BTreeMap<String, Vec<String>>) -> Vec<OsString> {
    let Some((name, options)) = commands.iter().nth(random.below(commands.len() as u64) as usize) else {
        return Vec::new();
    };
    let mut line: Vec<OsString> = vec![name.into()];
    // Files come first, or an output is named: most commands are refused otherwise.
    for _ in 0..random.below(3) {
        line.push(if random.below(4) > 0 { one_of(random, &FILES).into() } else { word(random) });
    }
    if random.below(2) == 0 && options.iter().any(|option| option == "-o") {
        let out = ["out.pleach", "out.csv", "out.parquet", "out.arrow", "a.pleach"];
        line.extend(["-o".into(), one_of(random, &out).into()]);
    }
    for _ in 0..random.below(4) {
        let Some(option) = options.get(random.below(options.len() as u64) as usize) else { break };
        line.push(option.into());
        if random.below(4) > 0 {
            line.push(word(random));
        }
    }
    if random.below(16) == 0 {
        let (one, other) =
            (random.below(line.len() as u64) as usize, random.below(line.len() as u64) as usize);
        line.swap(one, other);
    }
    line
}

/// Returns true if a terminal obeys a character: controls, and marks that turn the direction of letters.
fn is_obeyed(letter: char) -> bool {
    letter.is_control() && letter != '\n' && letter != '\r'
        || matches!(letter, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Runs one, and looks at how it ends. Its exit code.
fn run(lab: &Lab, folder: &Path, line: &[OsString]) -> Result<i32> {
    let mut child = command(&lab.pleach, folder, &[]);
    child.args(line).stderr(fs::File::create(folder.join("stderr"))?);
    // Look-ups and exports write keys and values as they are, those two nothing that is in a file.
    let shows = line.first().is_some_and(|name| name == "inspect" || name == "fsck");
    if shows {
        child.stdout(fs::File::create(folder.join("stdout"))?);
    }
    let mut child = child.spawn()?;
    let mut status = None;
    within(Duration::from_secs(60), "a command", || {
        status = child.try_wait()?;
        Ok(status.is_some())
    })
    .inspect_err(|_| drop(child.kill()))?;
    let said = String::from_utf8_lossy(&fs::read(folder.join("stderr"))?).into_owned();
    let code = status.context("it has ended")?.code().context("a signal ended it")?;
    ensure!([0, 1, 2, 4, 8].contains(&code), "exit code {code}: {}", tail(&said, 5));
    ensure!(!said.contains("panicked"), "a panic: {}", tail(&said, 5));
    let is_error =
        |line: &&str| ["error: ", "{\"schema\":\"pleach.error."].iter().any(|mark| line.starts_with(mark));
    let errors = said.lines().filter(is_error).count();
    // One line, but for help, and for what is said beside.
    let is_beside = |line: &&str| ["warning: ", "explain: "].iter().any(|mark| line.starts_with(mark));
    let lines = said.lines().filter(|line| !is_beside(line) && !line.is_empty()).count();
    // Commands that take several files have an error for each.
    let most = if shows { line.len() } else { 1 };
    let is_told = match code {
        2 => errors == 1 && lines == 1 || said.contains("Usage: pleach"),
        8 => (1..=most).contains(&errors) && lines == errors,
        4 => errors <= most,
        _ => errors == 0,
    };
    ensure!(is_told, "exit code {code}, {errors} errors: {}", tail(&said, 5));
    ensure!(!said.chars().any(is_obeyed), "a terminal is steered: {said:?}");
    fs::remove_file(folder.join("stderr"))?;
    if shows {
        let shown = fs::read(folder.join("stdout"))?;
        let shown = str::from_utf8(&shown).context("what is shown is text")?;
        ensure!(!shown.chars().any(is_obeyed), "a terminal is steered: {shown:?}");
        fs::remove_file(folder.join("stdout"))?;
    }
    let litter = |name: &String| name.starts_with('.') || name.contains(".tmp") || name.ends_with(".lock");
    let litter: Vec<String> = names(folder)?.into_iter().filter(litter).collect();
    ensure!(litter.is_empty(), "litter: {litter:?}");
    Ok(code)
}

/// So many command lines, on two threads. A sentence.
pub fn by_chance(lab: &Lab, count: u64) -> Result<String> {
    let made = lab.memory()?;
    scene(lab, made.path())?;
    let commands = options(lab, made.path())?;
    let (next, accepted) = (AtomicU64::new(0), AtomicU64::new(0));
    let worker = || -> Result<()> {
        let folder = lab.memory()?;
        let whole = names(made.path())?;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            for name in &whole {
                fs::copy(made.path().join(name), folder.path().join(name))?;
            }
            let line = arguments(&mut Random(number << 32), &commands);
            let code = run(lab, folder.path(), &line).with_context(|| {
                let words: Vec<_> = line.iter().map(|word| shown(word)).collect();
                format!("command line {number}: pleach {}", words.join(" "))
            })?;
            accepted.fetch_add(u64::from(code == 0), Ordering::Relaxed);
            // A name that was made need not be text.
            for entry in fs::read_dir(folder.path())? {
                let entry = entry?;
                if !entry.file_name().to_str().is_some_and(|name| whole.iter().any(|one| one == name)) {
                    let path = entry.path();
                    if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
                }
            }
        }
    };
    std::thread::scope(|scope| -> Result<()> {
        let other = scope.spawn(worker);
        worker()?;
        other.join().map_err(|_| anyhow::anyhow!("a panic of our own"))?
    })?;
    let is_fair = accepted.load(Ordering::Relaxed) * 100 > count;
    ensure!(is_fair, "{} of {count} command lines accepted", accepted.load(Ordering::Relaxed));
    Ok(format!(
        "{} command lines of chance, {} of them accepted: each an exit code of the contract, one line where refused",
        grouped(count),
        grouped(accepted.into_inner())
    ))
}

fn shown(word: &OsStr) -> String {
    format!("{word:?}")
}
