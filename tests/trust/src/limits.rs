//! Targets 16, 24, 25 and 27: opening, determinism, memory, and the speed and manners of `fsck`.

use crate::lab::{self, Lab, grouped, median};
use crate::live::opening;
use anyhow::{Context, Result, ensure};
use pleach_builder::{BuildOptions, build_iter};
use pleach_tests::generate::{Random, mix};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A file of sorted tuples of 16 bytes.
fn sorted(path: &Path, tuples: u64) -> Result<()> {
    let options = BuildOptions { sorted: true, memory_bytes: 1 << 30, ..BuildOptions::default() };
    build_iter((0..tuples).map(|i| (i * 7, i)), path, &options)?;
    Ok(())
}

/// Target 16.
pub fn open(lab: &Lab) -> Result<String> {
    lab::need(&["strace", "fincore"], true)?;
    let folder = lab.disk()?;
    let mut found = Vec::new();
    for tuples in [1 << 16, if lab.short { 1 << 22 } else { 1 << 30 }] {
        let path = folder.path().join("t.pleach");
        sorted(&path, tuples)?;
        found.push(opening(&path)?);
        fs::remove_file(path)?;
    }
    let (small, large) = (&found[0], &found[1]);
    ensure!(small.calls == large.calls, "{} system calls, then {}", small.calls, large.calls);
    ensure!(large.touched_pages <= 2, "{} pages touched", large.touched_pages);
    ensure!(
        large.read_pages <= small.read_pages,
        "{} pages read, then {}",
        small.read_pages,
        large.read_pages
    );
    let size = |bytes: u64| match bytes >> 30 {
        0 => format!("{} MiB", bytes >> 20),
        giga => format!("{giga} GiB"),
    };
    Ok(format!(
        "files of {} and {}: {} system calls each, {} and {} pages of the mapping touched, {} and {} pages read from \
         the disk, read-ahead and all; with the first look-up {} and {}",
        size(small.bytes),
        size(large.bytes),
        small.calls,
        small.touched_pages,
        large.touched_pages,
        small.read_pages,
        large.read_pages,
        small.asked_pages,
        large.asked_pages,
    ))
}

/// Target 24.
pub fn same_bytes(lab: &Lab) -> Result<String> {
    let folder = lab.memory()?;
    let at = |name: &str| folder.path().join(name);
    let tuples = lab.tries(60_000, 3_000_000);
    let mut input = lab::raw(tuples, 0);
    fs::write(at("0.raw"), &input)?;
    // Keys are unique: the order of the input must not matter.
    for shuffle in 1..4u64 {
        let mut random = Random(shuffle);
        for tuple in (1..tuples as usize).rev() {
            let other = random.below(tuple as u64 + 1) as usize;
            for byte in 0..16 {
                input.swap(tuple * 16 + byte, other * 16 + byte);
            }
        }
        fs::write(at(&format!("{shuffle}.raw")), &input)?;
    }
    let (mut builds, mut sums) = (0, Vec::new());
    for layout in ["lines,spine,grid", "lines,spine,grid,columns,packed,classic,harmonia"] {
        let mut found = BTreeSet::new();
        for shuffle in 0..4 {
            for threads in ["1", "2", "8"] {
                for memory in ["1", "16MiB", "64MiB", "4GiB"] {
                    let name = format!("{shuffle}.raw");
                    let args = ["build", "-o", "t.pleach", "--raw", "u64,u64", "--quiet", &name];
                    let more = ["--layout", layout, "--threads", threads, "--memory", memory];
                    // Over an index a build makes its next generation.
                    let _ = std::fs::remove_file(at("t.pleach"));
                    let output = lab.pleach(folder.path(), &[&args[..], &more].concat()).output()?;
                    ensure!(output.status.success(), "{more:?}: {}", lab::both(&output));
                    let sum = lab::succeed("sha256sum", &[at("t.pleach").to_str().context("a path")?])?;
                    found.insert(sum.split_whitespace().next().context("a sum")?.to_owned());
                    builds += 1;
                }
            }
        }
        ensure!(found.len() == 1, "{layout}: {} different files", found.len());
        sums.extend(found);
    }
    Ok(format!(
        "{builds} builds of {} tuples: 1, 2 and 8 threads, memory of 1 byte to 4 GiB, four orders of the input, two \
         layouts: one SHA-256 each",
        grouped(tuples)
    ))
}

/// Most memory of its own that a process ever had, in bytes.
fn peak(id: u32, most: &mut u64) -> Result<()> {
    // The process may be gone by now.
    let Ok(status) = fs::read_to_string(format!("/proc/{id}/status")) else { return Ok(()) };
    let value = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
    };
    *most = (*most).max(value("RssAnon:") + value("RssShmem:"));
    Ok(())
}

/// Target 25.
pub fn memory(lab: &Lab) -> Result<String> {
    let folder = lab.disk()?;
    let limit: u64 = lab.tries(160, 256) << 20;
    let tuples = lab.tries(12, 100) * limit / 160;
    {
        let mut out = BufWriter::new(File::create(folder.path().join("in.raw"))?);
        for i in 0..tuples {
            out.write_all(&mix(i).to_le_bytes())?;
            out.write_all(&i.to_le_bytes())?;
        }
        out.flush()?;
    }
    let mut figures = Vec::new();
    let layouts = ["lines,spine,grid", "lines,spine,columns,packed"];
    for layout in &layouts[..lab.tries(1, 2) as usize] {
        let memory = limit.to_string();
        let args = ["build", "-o", "t.pleach", "--raw", "u64,u64", "--quiet", "in.raw", "--memory", &memory];
        let mut child = lab.pleach(folder.path(), &[&args[..], &["--layout", layout]].concat()).spawn()?;
        let mut most = 0;
        let status = loop {
            peak(child.id(), &mut most)?;
            if let Some(status) = child.try_wait()? {
                break status;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        ensure!(status.success(), "{status}");
        let most = most << 10;
        let is_within = (limit / 10..=limit).contains(&most);
        ensure!(is_within, "{layout}: {} MiB under a limit of {}", most >> 20, limit >> 20);
        figures.push(format!("{} MiB ({layout})", most >> 20));
    }
    Ok(format!(
        "{} MiB of input under `--memory {}MiB`: at most {} of memory of its own",
        (tuples * 16) >> 20,
        limit >> 20,
        figures.join(" and ")
    ))
}

pub fn drop_caches() -> Result<()> {
    lab::succeed("sync", &[])?;
    lab::allowed(fs::write("/proc/sys/vm/drop_caches", "3").context("dropping the caches"))
}

/// Target 27.
pub fn fsck(lab: &Lab) -> Result<String> {
    lab::need(&["dd", "script", "strace"], true)?;
    let folder = lab.disk()?;
    let path = folder.path().join("t.pleach");
    sorted(&path, if lab.short { 1 << 22 } else { 1 << 28 })?;
    let bytes = fs::metadata(&path)?.len();
    let text = path.to_str().context("a plain path")?;
    let (mut ours, mut dd, mut warm) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..lab.tries(1, 5) {
        drop_caches()?;
        let start = Instant::now();
        lab::succeed("dd", &[&format!("if={text}"), "of=/dev/null", "bs=1M"])?;
        dd.push(bytes as f64 / start.elapsed().as_secs_f64());
        drop_caches()?;
        for speeds in [&mut ours, &mut warm] {
            let start = Instant::now();
            let output = lab.pleach(folder.path(), &["fsck", "t.pleach", "--quiet"]).output()?;
            ensure!(output.status.success(), "{}", lab::both(&output));
            speeds.push(bytes as f64 / start.elapsed().as_secs_f64());
        }
    }
    let (ours, dd, warm) = (median(ours), median(dd), median(warm));
    // From so little nothing can be said about speed.
    ensure!(lab.short || ours >= 0.8 * dd, "{:.2} GB/s, dd {:.2}", ours / 1e9, dd / 1e9);
    // It says how far it is, and stops when it is asked to: from cold, on one thread, so that there is time.
    drop_caches()?;
    let slow = ["-c", r#"exec script -qec "$0 fsck t.pleach --threads 1" /dev/null"#];
    let mut child = lab.through("sh", &slow, folder.path(), &[]).stdout(Stdio::piped()).spawn()?;
    let start = Instant::now();
    let (mut shown, mut text_shown) = (Vec::new(), Vec::new());
    let mut output = BufReader::new(child.stdout.take().context("a pipe")?);
    let mut piece = [0; 4096];
    loop {
        let count = output.read(&mut piece)?;
        if count == 0 {
            break;
        }
        shown.push(start.elapsed());
        text_shown.extend_from_slice(&piece[..count]);
    }
    ensure!(child.wait()?.success());
    // Two seconds pass before anything is shown.
    let (first, last) = (shown.first().copied().unwrap_or_default(), start.elapsed());
    let pauses = shown.windows(2).map(|pair| pair[1] - pair[0]).chain(shown.last().map(|&it| last - it));
    let longest = pauses.max().unwrap_or_default();
    let text_shown = String::from_utf8_lossy(&text_shown).into_owned();
    let is_shown = shown.len() > 5 && text_shown.contains('%') && first < Duration::from_millis(2600);
    ensure!(lab.short || is_shown, "{} times something is shown, first after {first:?}", shown.len());
    ensure!(lab.short || longest <= Duration::from_millis(500), "a pause of {longest:?} in what is shown");
    drop_caches()?;
    let child = lab.pleach(folder.path(), &["fsck", "t.pleach", "--threads", "1"]).spawn()?;
    std::thread::sleep(Duration::from_millis(if lab.short { 5 } else { 200 }));
    let asked = Instant::now();
    lab::succeed("kill", &["-INT", &child.id().to_string()])?;
    let output = child.wait_with_output()?;
    let stopped = asked.elapsed();
    let is_stopped = matches!(output.status.code(), Some(130)) || lab.short;
    ensure!(is_stopped && stopped < Duration::from_secs(1), "{} after {stopped:?}", output.status);
    let json = lab.pleach(folder.path(), &["fsck", "t.pleach", "--json"]).stdout(Stdio::piped()).output()?;
    ensure!(json.status.success(), "{}", lab::both(&json));
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).context("JSON")?;
    ensure!(report.get("findings").is_some(), "{report}");
    // No byte of it is mapped.
    let log = tempfile::NamedTempFile::new()?;
    let log_path = log.path().to_str().context("a path")?;
    let scene = ["-f", "-y", "-o", log_path, "-e", "trace=mmap,pread64"];
    let output = lab.through("strace", &scene, folder.path(), &["fsck", "t.pleach", "--quiet"]).output()?;
    ensure!(output.status.success(), "{}", lab::both(&output));
    let mut reads = 0;
    for line in BufReader::new(log.reopen()?).lines() {
        let line = line?;
        // Descriptors are shown with the names of their files.
        let of_file = line.contains("/t.pleach>");
        ensure!(!(of_file && line.contains("mmap(")), "mapped: {line}");
        reads += u64::from(of_file && line.contains("pread64("));
    }
    ensure!(reads > 0, "no read is seen");
    Ok(format!(
        "{} MiB from cold: {:.2} GB/s, dd {:.2} GB/s, ratio {:.2} (medians of {}); warm {:.2} GB/s on all cores; \
         it says how far it is after {} ms, and then every {} ms or more often; Ctrl-C ends it after {} ms with exit \
         code 130; it reads by `pread` and maps nothing",
        bytes >> 20,
        ours / 1e9,
        dd / 1e9,
        ours / dd,
        lab.tries(1, 5),
        warm / 1e9,
        first.as_millis(),
        longest.as_millis(),
        stopped.as_millis(),
    ))
}
