//! Targets 13 to 15: files that are cut or overwritten under readers, readers across publishes, builders at once.
//!
//! Readers are processes of their own: this program, started again with the hidden command `reader` or `cut`.

use crate::disks::within;
use crate::lab::{self, Lab, grouped, names, succeed};
use crate::limits::drop_caches;
use anyhow::{Context, Result, bail, ensure};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use pleach::{Index, Live, ReadError, Residence, Verify};
use pleach_builder::{BuildOptions, build_iter};
use pleach_tests::generate::{Random, mix};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// This program again.
fn myself(args: &[&str]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

/// Keys of the file that is cut, and their values.
const CUT_TUPLES: u64 = 60_000;

/// The child of [`cuts`]: eight threads search while the file is cut or overwritten.
pub fn cut_child(path: &str, how: &str, resident: bool) -> Result<()> {
    pleach::contain_sigbus();
    let residence = if resident { Residence::Resident } else { Residence::Mapped };
    let index = Arc::new(Index::options().residence(residence).open(path)?);
    let view = index.typed::<u64, u64>()?;
    let mut all: Vec<(u64, u64)> = (0..CUT_TUPLES).map(|i| (mix(i), i)).collect();
    all.sort_unstable();
    let rank_of = |key: u64| all.partition_point(|tuple| tuple.0 < key);
    // Whole arrays each time: now and then.
    let columns = || -> Result<bool, ReadError> {
        let columns = index.columns()?;
        let (keys, values) = (columns.keys.as_deref(), columns.values.as_deref());
        let is_right = |array: Option<&dyn Array>, wanted: &dyn Fn(usize) -> u64| {
            array.and_then(|array| array.as_primitive_opt::<UInt64Type>()).is_some_and(|array| {
                array.len() == all.len() && (0..all.len()).all(|rank| array.value(rank) == wanted(rank))
            })
        };
        Ok(is_right(keys, &|rank| all[rank].0) && is_right(values, &|rank| all[rank].1))
    };
    let (stop, lost, answers, wrong) =
        (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| -> Result<()> {
        for thread in 0..8u64 {
            let (stop, lost, answers, wrong, all) = (&stop, &lost, &answers, &wrong, &all);
            let columns = &columns;
            scope.spawn(move || {
                let mut random = Random(thread << 32);
                let (mut ranks, mut keys) = ([0; 64], [0; 64]);
                while !stop.load(Ordering::Relaxed) {
                    let number = random.below(CUT_TUPLES);
                    keys.fill_with(|| mix(random.below(CUT_TUPLES)));
                    // Each thread begins with another kind: what meets the cut first is of all kinds.
                    let found = match (number + thread) % 5 {
                        _ if number % 128 == thread => columns(),
                        0 => view.get(mix(number)).map(|value| value == Some(number)),
                        1 => view.lower_bound_batch(&keys, &mut ranks).map(|()| {
                            keys.iter().zip(&ranks).all(|(&key, &rank)| rank == rank_of(key) as u64)
                        }),
                        2 => view.range(mix(number)..).and_then(|range| {
                            let mut wanted = all[rank_of(mix(number))..].iter();
                            range.take(30).try_fold(true, |right, tuple| {
                                tuple.map(|tuple| right && wanted.next() == Some(&tuple))
                            })
                        }),
                        3 => view.select(number).map(|tuple| tuple.as_ref() == all.get(number as usize)),
                        _ => view.max().map(|tuple| tuple.as_ref() == all.last()),
                    };
                    match found {
                        Ok(is_right) => {
                            answers.fetch_add(1, Ordering::Relaxed);
                            wrong.fetch_add(u64::from(!is_right), Ordering::Relaxed);
                        }
                        Err(ReadError::MappingLost) => {
                            lost.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        within(Duration::from_secs(60), "searching", || Ok(answers.load(Ordering::Relaxed) > 100))?;
        let file = File::options().write(true).open(path)?;
        match how.parse::<u64>() {
            Ok(bytes) => file.set_len(bytes)?,
            Err(_) => file.write_all_at(&vec![0xA5; file.metadata()?.len() as usize], 0)?,
        }
        let before = answers.load(Ordering::Relaxed);
        let is_met = || lost.load(Ordering::Relaxed) > 8 || answers.load(Ordering::Relaxed) > before + 20_000;
        let met = within(Duration::from_secs(60), "meeting the cut", || Ok(is_met()));
        stop.store(true, Ordering::Relaxed);
        met
    })?;
    let (lost, wrong) = (lost.into_inner(), wrong.into_inner());
    match (resident, how) {
        // A copy in memory is not concerned.
        (true, _) => ensure!(lost == 0 && wrong == 0, "{lost} lost, {wrong} wrong"),
        // Unverified answers of an overwritten file may be wrong; that they come is all.
        (false, "overwrite") => ensure!(lost == 0, "{lost} lost"),
        (false, _) => {
            ensure!(lost > 0, "the cut was not met");
            ensure!(wrong == 0, "{wrong} wrong answers");
            ensure!(index.check_mapping() == Err(ReadError::MappingLost), "not lost for good");
        }
    }
    println!("as expected");
    Ok(())
}

/// Target 13.
pub fn cuts(lab: &Lab) -> Result<String> {
    let folder = lab.memory()?;
    let path = folder.path().join("t.pleach");
    let options = BuildOptions { columns: true, ..BuildOptions::default() };
    build_iter((0..CUT_TUPLES).map(|i| (mix(i), i)), &path, &options)?;
    let whole = fs::read(&path)?;
    let text = path.to_str().context("a plain path")?;
    // Whole pages: up to the end of a page the system shows zeros for what was cut off.
    let half = (whole.len() / 2 / 4096 * 4096).to_string();
    let runs = lab.tries(3, 100);
    let mut tried = 0;
    for how in ["0", "4096", &half, "overwrite"] {
        for residence in ["mapped", "resident"] {
            for run in 0..runs {
                fs::write(&path, &whole)?;
                let output = myself(&["cut", text, how, residence])?.output()?;
                let text = lab::both(&output);
                let is_right = output.status.success() && text.contains("as expected");
                ensure!(is_right, "{how}, {residence}, run {run}: {}: {text}", output.status);
                tried += 1;
            }
        }
    }
    let (checked, met) = shrinking(lab, folder.path(), &whole, runs)?;
    Ok(format!(
        "{tried} runs of eight threads that search and take columns, the file cut to 0, 4096 and half its bytes or \
         overwritten: right answers, then an error where it was mapped and cut, right answers from a copy in memory, \
         no signal; {checked} \
         runs of `fsck`, `inspect`, `get`, `range` and `export` on shrinking files, {met} of which met the cut: exit \
         code 0, 4 or 8, and nothing printed but what the whole file says"
    ))
}

/// The command on files that shrink under it: an error, or damage; what it prints is the beginning of the
/// right answer. Number of runs, and of runs that did not end as if the file were whole.
fn shrinking(lab: &Lab, folder: &Path, whole: &[u8], runs: u64) -> Result<(u64, u64)> {
    let path = folder.join("t.pleach");
    let keys: String = (0..2000).map(|i| format!("{}\n", mix(i * 30))).collect();
    fs::write(folder.join("keys.txt"), keys)?;
    let commands: [&[&str]; 5] = [
        &["fsck", "t.pleach", "--quiet"],
        &["inspect", "t.pleach", "--quiet"],
        &["get", "t.pleach", "--keys", "keys.txt", "--verify", "header", "--quiet"],
        &["range", "t.pleach", "0", "18446744073709551615", "--verify", "header", "--quiet"],
        &["export", "t.pleach", "-o", "out.csv", "--quiet"],
    ];
    let (mut checked, mut all_met) = (0, 0);
    for command in commands {
        fs::write(&path, whole)?;
        let wanted = lab.pleach(folder, command).stdout(Stdio::piped()).output()?;
        ensure!(wanted.status.success(), "{command:?}: {}", lab::both(&wanted));
        let exported = fs::read(folder.join("out.csv")).ok();
        let (mut met, began) = (0, std::time::Instant::now());
        lab.pleach(folder, command).output()?;
        let took = began.elapsed();
        for run in 0..runs {
            fs::write(&path, whole)?;
            let _ = fs::remove_file(folder.join("out.csv"));
            let child = lab.pleach(folder, command).stdout(Stdio::piped()).spawn()?;
            std::thread::sleep(took.mul_f64((mix(run) % 1000) as f64 / 1000.0));
            let length = [0, 4096, whole.len() as u64 / 2 / 4096 * 4096][run as usize % 3];
            File::options().write(true).open(&path)?.set_len(length)?;
            let output = child.wait_with_output()?;
            let what = || format!("{command:?}, run {run}: {}: {}", output.status, tail_of(&output));
            match output.status.code() {
                Some(0) => {
                    ensure!(output.stdout == wanted.stdout, "other output: {}", what());
                    ensure!(fs::read(folder.join("out.csv")).ok() == exported, "another file: {}", what());
                }
                Some(4 | 8) => {
                    met += 1;
                    let is_report = matches!(command[0], "fsck" | "inspect");
                    ensure!(
                        is_report || wanted.stdout.starts_with(&output.stdout),
                        "wrong output: {}",
                        what()
                    );
                    ensure!(!folder.join("out.csv").exists(), "a file all the same: {}", what());
                }
                _ => bail!("{}", what()),
            }
            checked += 1;
        }
        ensure!(lab.short || met > 0, "{command:?}: no run met the cut");
        all_met += met;
    }
    Ok((checked, all_met))
}

fn tail_of(output: &std::process::Output) -> String {
    lab::tail(&String::from_utf8_lossy(&output.stderr), 5)
}

/// Tuples of each generation of the file that is published again and again.
const GENERATION_TUPLES: u64 = 3000;

/// Value of a key in a generation.
fn value_of(key: u64, generation: u64) -> u64 {
    mix(key ^ generation << 40)
}

fn publish(path: &Path, generation: u64) -> Result<()> {
    let options = BuildOptions { generation, threads: 1, ..BuildOptions::default() };
    let tuples = (0..GENERATION_TUPLES).map(|i| (i * 3, value_of(i * 3, generation)));
    build_iter(tuples, path, &options)?;
    Ok(())
}

/// The child of [`publishes`]: reads until the last generation is there.
pub fn reader_child(path: &str, last: u64) -> Result<()> {
    let live = Live::<Index>::open(path)?;
    let mut random = Random(u64::from(std::process::id()));
    let (mut answers, mut seen, mut before) = (0u64, 0u64, 0);
    loop {
        let index = live.current();
        let generation = index.generation();
        ensure!(generation >= before, "generation {generation} after {before}");
        seen += u64::from(before != 0 && generation != before);
        before = generation;
        let view = index.typed::<u64, u64>()?;
        let keys: Vec<u64> = (0..40).map(|_| random.below(GENERATION_TUPLES * 3)).collect();
        let (mut values, mut present) = ([0; 40], [0; 1]);
        view.get_batch(&keys, &mut values, &mut present)?;
        for (at, &key) in keys.iter().enumerate() {
            let wanted = (key % 3 == 0).then(|| value_of(key, generation));
            let found = (present[0] >> at & 1 == 1).then(|| values[at]);
            ensure!(
                found == wanted && view.get(key)? == wanted,
                "a mixture: {key} in generation {generation}"
            );
            answers += 2;
        }
        drop(index);
        if generation == last {
            // Nothing that is gone may be held still.
            live.refresh()?;
            let maps = fs::read_to_string("/proc/self/maps")?;
            let held = maps.lines().filter(|line| line.contains(".pleach (deleted)")).count();
            ensure!(held == 0, "{held} old generations are still mapped");
            println!("{answers} {seen}");
            return Ok(());
        }
        live.refresh()?;
    }
}

/// Target 14.
pub fn publishes(lab: &Lab) -> Result<String> {
    let publishes = lab.tries(60, 1000);
    let folder = lab.memory()?;
    let path = folder.path().join("t.pleach");
    publish(&path, 1)?;
    let last = (publishes + 1).to_string();
    let text = path.to_str().context("a plain path")?;
    let readers: Vec<Child> =
        (0..8).map(|_| Ok(myself(&["reader", text, &last])?.spawn()?)).collect::<Result<_>>()?;
    for generation in 2..=publishes + 1 {
        publish(&path, generation)?;
        std::thread::sleep(Duration::from_millis(2));
    }
    let (mut answers, mut seen) = (0, 0);
    for reader in readers {
        let output = reader.wait_with_output()?;
        ensure!(output.status.success(), "a reader: {}: {}", output.status, lab::both(&output));
        let text = String::from_utf8(output.stdout)?;
        let mut numbers = text.split_whitespace().map(str::parse::<u64>);
        answers += numbers.next().context("answers")??;
        seen += numbers.next().context("generations")??;
    }
    ensure!(seen > 8 * 2, "readers saw {seen} generations");
    Ok(format!(
        "8 reading processes across {} publishes: {} answers, each that of the generation it names, {} changes of \
         generation seen; no old file is held in the end",
        grouped(publishes),
        grouped(answers),
        grouped(seen),
    ))
}

/// The identity of the content of a file whose every byte is verified.
fn id(path: &Path) -> Result<[u8; 16]> {
    let index = Index::options().verify(Verify::Full).open(path)?;
    Ok(index.file_id())
}

/// Target 15.
pub fn builders(lab: &Lab) -> Result<String> {
    let rounds = lab.tries(5, 100);
    let folder = lab.memory()?;
    let mut files = Vec::new();
    for builder in 0..4u64 {
        let name = format!("{builder}.raw");
        fs::write(folder.path().join(&name), lab::raw(20_000 + builder, builder * 1000))?;
        let args = ["build", "-o", "t.pleach", "--raw", "u64,u64", "--quiet", &name];
        let output = lab.pleach(folder.path(), &args).output()?;
        ensure!(output.status.success(), "{}", lab::both(&output));
        files.push(id(&folder.path().join("t.pleach"))?);
    }
    let clean = names(folder.path())?;
    let (mut won, mut busy) = (0, 0);
    for round in 0..rounds {
        let mut children = Vec::new();
        for builder in 0..4 {
            let name = format!("{builder}.raw");
            let args = ["build", "-o", "t.pleach", "--raw", "u64,u64", "--quiet", &name];
            children.push(lab.pleach(folder.path(), &args).spawn()?);
        }
        let ids: Vec<u32> = children.iter().map(Child::id).collect();
        let mut winners = 0;
        for child in children {
            let output = child.wait_with_output()?;
            if output.status.success() {
                winners += 1;
                continue;
            }
            let text = lab::refused(&output, 8)?;
            let is_named = ids.iter().any(|id| text.contains(&format!("process {id} ")));
            ensure!(text.contains("busy") && is_named, "round {round}: {text}");
            busy += 1;
        }
        ensure!(winners > 0, "round {round}: nobody built");
        won += winners;
        // Generations go on; what they hold is one of four.
        let now = id(&folder.path().join("t.pleach"))?;
        ensure!(files.contains(&now), "round {round}: the file of none of them");
        ensure!(names(folder.path())? == clean, "round {round}: {:?}", names(folder.path())?);
    }
    ensure!(busy > 0, "no two builders met");
    Ok(format!(
        "{rounds} rounds of four builders of one target: {won} built, {busy} were told which process \
         holds it; the file was always that of one of them, and no litter"
    ))
}

/// The child of [`opening`]: opens a file, and asks for one key if it shall.
pub fn open_child(path: &str, asks: bool) -> Result<()> {
    let index = Index::open(path)?;
    // A mark in the trace: a call that nothing else makes.
    let _ = fs::metadata("/pleach-opened");
    println!("{}", mapped_pages(path)?);
    if asks {
        ensure!(index.typed::<u64, u64>()?.get(0)? == Some(0), "a wrong answer");
    }
    Ok(())
}

/// Pages of the mapping of a file that this process has touched, in the kernel's words.
fn mapped_pages(path: &str) -> Result<u64> {
    let maps = fs::read_to_string("/proc/self/smaps")?;
    let mut lines = maps.lines().skip_while(|line| !line.ends_with(path));
    let line = lines.find(|line| line.starts_with("Rss:"));
    let Some(line) = line else { bail!("{path} is not mapped") };
    let kilobytes: u64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
    Ok(kilobytes / 4)
}

/// Costs of opening: system calls, pages of the mapping that were touched, and pages of the file that came into
/// memory, by the kernel's counts; the last also with a look-up.
pub struct Opening {
    pub calls: u64,
    pub touched_pages: u64,
    pub read_pages: u64,
    pub asked_pages: u64,
    pub bytes: u64,
}

/// Opens a file from cold in a process of its own, under `strace`, without a look-up and with one.
pub fn opening(path: &Path) -> Result<Opening> {
    let (calls, touched_pages, read_pages) = opened(path, "open")?;
    let (_, _, asked_pages) = opened(path, "ask")?;
    Ok(Opening { calls, touched_pages, read_pages, asked_pages, bytes: fs::metadata(path)?.len() })
}

fn opened(path: &Path, how: &str) -> Result<(u64, u64, u64)> {
    let log = tempfile::NamedTempFile::new()?;
    let text = path.to_str().context("a plain path")?;
    drop_caches()?;
    let this = std::env::current_exe()?;
    let log_path = log.path().to_str().context("a plain path")?;
    let output = Command::new("strace")
        .args(["-f", "-s", "4096", "-o", log_path])
        .arg(this)
        .args(["open", text, how])
        .output()?;
    ensure!(output.status.success(), "{}", lab::both(&output));
    let answer = String::from_utf8(output.stdout)?;
    let touched_pages = answer.trim().parse()?;
    let trace = fs::read_to_string(log.path())?;
    let begin = trace.lines().position(|line| line.contains("openat(") && line.contains(text));
    let end = trace.lines().position(|line| line.contains("/pleach-opened")).context("the mark")?;
    let calls = (end - begin.context("the file is opened")?) as u64;
    let read_pages = succeed("fincore", &["--noheadings", "--output", "PAGES", text])?.trim().parse()?;
    Ok((calls, touched_pages, read_pages))
}
