//! Targets 8, 11 and 12: kills at random moments, disks that are full or read-only, calls that do part of
//! the work.

use crate::lab::{self, Lab, grouped, names, succeed};
use anyhow::{Context, Result, ensure};
use pleach::{FsckOptions, fsck};
use pleach_tests::generate::Random;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const BUILD: &[&str] = &["build", "-o", "t.pleach", "--raw", "u64,u64", "--quiet"];

/// Target 8.
pub fn kills(lab: &Lab) -> Result<String> {
    let kills = lab.tries(20, 1000);
    let folder = lab.memory()?;
    let at = |name: &str| folder.path().join(name);
    fs::write(at("old.raw"), lab::raw(5000, 7))?;
    fs::write(at("new.raw"), lab::raw(200_000, 0))?;
    let new_args = [BUILD, &["--memory", "1MiB", "new.raw"]].concat();
    let old_args = [BUILD, &["old.raw"]].concat();
    let run = |args: &[&str]| -> Result<Vec<u8>> {
        let output = lab.pleach(folder.path(), args).output()?;
        ensure!(output.status.success(), "{}", lab::both(&output));
        Ok(fs::read(at("t.pleach"))?)
    };
    let start = Instant::now();
    run(&new_args)?;
    let took = start.elapsed();
    // Over an index a build makes its next generation.
    fs::remove_file(at("t.pleach"))?;
    let old = run(&old_args)?;
    let new = run(&new_args)?;
    let clean = names(folder.path())?;
    let mut random = Random(8);
    let (mut killed, mut renewed, mut littered) = (0, 0, 0);
    for number in 0..kills {
        fs::write(at("t.pleach"), &old)?;
        let mut child = lab.pleach(folder.path(), &new_args).spawn()?;
        std::thread::sleep(took.mul_f64(random.below(1100) as f64 / 1000.0));
        let _ = child.kill();
        let status = child.wait()?;
        let now = fs::read(at("t.pleach"))?;
        ensure!(now == old || now == new, "kill {number}: neither the old file nor the new one");
        let is_done = status.success() && now == new;
        ensure!(is_done || lab::was_killed(status), "kill {number}: the build ended by itself: {status}");
        killed += u64::from(lab::was_killed(status));
        renewed += u64::from(now == new);
        if names(folder.path())? != clean {
            littered += 1;
            run(&old_args)?;
            ensure!(names(folder.path())? == clean, "kill {number}: {:?}", names(folder.path())?);
        }
    }
    ensure!(killed > 0 && littered > 0, "no build was caught at work");
    Ok(format!(
        "{} builds, {} killed at work: {} times the old file, {renewed} times the new one; each of {littered} heaps of \
         litter was swept by the next build",
        grouped(kills),
        grouped(killed),
        grouped(kills - renewed),
    ))
}

/// Builds on a disk that cannot hold the result: only the old file stays.
fn does_not_fit(lab: &Lab, folder: &Path, input: &Path, through: &[&str]) -> Result<u64> {
    let old = fs::read(folder.join("t.pleach"))?;
    let clean = names(folder)?;
    let input = input.to_str().context("a plain path")?;
    let mut tried = 0;
    for more in [&["--memory", "1"][..], &["--memory", "64MiB"], &["--layout", "lines,spine,columns,classic"]]
    {
        let args = [BUILD, more, &[input]].concat();
        let output = match through {
            [] => lab.pleach(folder, &args).output()?,
            [first, rest @ ..] => lab.through(first, rest, folder, &args).output()?,
        };
        lab::refused(&output, 8)?;
        ensure!(fs::read(folder.join("t.pleach"))? == old, "{more:?}: the old file was touched");
        ensure!(names(folder)? == clean, "{more:?}: {:?}", names(folder)?);
        tried += 1;
    }
    Ok(tried)
}

/// A folder on which something is mounted; unmounted when dropped.
struct Mount(tempfile::TempDir);

impl Mount {
    fn new(args: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let at = folder.path().to_str().context("a plain path")?.to_owned();
        lab::allowed(succeed("mount", &[args, &[&at]].concat()))?;
        Ok(Self(folder))
    }
    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = succeed("umount", &[&self.path().to_string_lossy()]);
    }
}

/// Target 11.
pub fn full(lab: &Lab) -> Result<String> {
    lab::need(&["mount", "mkfs.ext4"], true)?;
    let folder = lab.memory()?;
    let (small, large) = (folder.path().join("small.raw"), folder.path().join("large.raw"));
    fs::write(&small, lab::raw(2000, 1))?;
    fs::write(&large, lab::raw(1_300_000, 0))?;
    let build_small = |at: &Path| -> Result<()> {
        let args = [BUILD, &[small.to_str().context("a plain path")?]].concat();
        let output = lab.pleach(at, &args).output()?;
        ensure!(output.status.success(), "{}", lab::both(&output));
        ensure!(fsck(at.join("t.pleach"), &FsckOptions::default())?.findings.is_empty());
        Ok(())
    };
    let mut tried = 0;
    // A file system in memory, of 1 MiB.
    let disk = Mount::new(&["-t", "tmpfs", "-o", "size=1m", "tmpfs"])?;
    build_small(disk.path())?;
    tried += does_not_fit(lab, disk.path(), &large, &[])?;
    build_small(disk.path())?;
    drop(disk);
    // An image of 16 MiB.
    let image = folder.path().join("image");
    fs::File::create(&image)?.set_len(16 << 20)?;
    let image = image.to_str().context("a plain path")?;
    succeed("mkfs.ext4", &["-q", "-F", image])?;
    let disk = Mount::new(&["-o", "loop", image])?;
    build_small(disk.path())?;
    tried += does_not_fit(lab, disk.path(), &large, &[])?;
    build_small(disk.path())?;
    // The same one, read-only.
    succeed("mount", &["-o", "remount,ro", &disk.path().to_string_lossy()])?;
    tried += does_not_fit(lab, disk.path(), &small, &[])?;
    ensure!(fsck(disk.path().join("t.pleach"), &FsckOptions::default())?.findings.is_empty());
    drop(disk);
    // A limit to the size of files.
    let limited = lab.memory()?;
    build_small(limited.path())?;
    let limit = ["-c", r#"ulimit -f 1024; exec "$0" "$@""#];
    tried += does_not_fit(lab, limited.path(), &large, &[&["sh"], &limit[..]].concat())?;
    Ok(format!(
        "{tried} builds on a full tmpfs, a full ext4 image, a read-only one and under RLIMIT_FSIZE: each one line, \
         exit code 8, the old file whole, no litter, no signal; what fits is built"
    ))
}

/// Stands between a program and the system: reads and writes do a part of what was asked, or are interrupted.
const PART_OF_THE_WORK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
static atomic_uint state, calls, interrupted, parts;
__attribute__((constructor)) static void begin(void) { state = atoi(getenv("PLEACH_SEED")) * 1000003u; }
static unsigned next(void) {
    unsigned x = (atomic_fetch_add(&state, 1) + 1) * 2654435761u;
    x = (x ^ x >> 15) * 2246822519u;
    return (x ^ x >> 13) * 3266489917u >> 7;
}
/* 0: interrupted; else how many bytes. */
static size_t part(size_t bytes) {
    unsigned chance = next() % 8;
    atomic_fetch_add(&calls, 1);
    if (chance == 0) { atomic_fetch_add(&interrupted, 1); return 0; }
    if (bytes == 1 || chance > 4) return bytes;
    atomic_fetch_add(&parts, 1);
    return 1 + next() % (bytes - 1);
}
#define STAND(result, name, parameters, buffer, ...)                          \
    result name parameters {                                                  \
        static result (*real) parameters;                                     \
        if (!real) real = (result (*) parameters)dlsym(RTLD_NEXT, #name);     \
        if (bytes > 0) {                                                      \
            bytes = part(bytes);                                              \
            if (!bytes) { errno = EINTR; return -1; }                         \
        }                                                                     \
        return real(fd, buffer, bytes __VA_ARGS__);                           \
    }
STAND(ssize_t, read, (int fd, void *to, size_t bytes), to)
STAND(ssize_t, write, (int fd, const void *from, size_t bytes), from)
STAND(ssize_t, pread64, (int fd, void *to, size_t bytes, off64_t at), to, , at)
STAND(ssize_t, pwrite64, (int fd, const void *from, size_t bytes, off64_t at), from, , at)
/* How often it stood between. */
__attribute__((destructor)) static void tell(void) {
    FILE *out = fopen(getenv("PLEACH_PARTS"), "w");
    if (out) { fprintf(out, "%u %u %u", calls, interrupted, parts); fclose(out); }
}
"#;

/// Target 12.
pub fn parts(lab: &Lab) -> Result<String> {
    let folder = lab.memory()?;
    let at = |name: &str| folder.path().join(name);
    fs::write(at("part.c"), PART_OF_THE_WORK)?;
    let library = at("part.so");
    let compiler = if lab::has("cc") { "cc" } else { "gcc" };
    let paths =
        [library.to_str().context("a path")?, at("part.c").to_str().context("a path")?].map(str::to_owned);
    succeed(compiler, &["-O1", "-shared", "-fPIC", "-o", &paths[0], &paths[1], "-ldl"])?;
    fs::write(at("in.raw"), lab::raw(60_000, 0))?;
    let rows: String =
        (0..20_000u64).map(|i| format!("{},{}\n", pleach_tests::generate::mix(i), i)).collect();
    fs::write(at("in.csv"), format!("id,row\n{rows}"))?;
    let puts: String = (0..400).map(|i| format!("put,{},{i}\n", i * 3)).collect();
    fs::write(at("changes.csv"), format!("op,key,value\n{puts}"))?;
    let jobs: [&[&str]; 6] = [
        &["build", "-o", "t.pleach", "--raw", "u64,u64", "--quiet", "in.raw"],
        &["build", "-o", "t.pleach", "--raw", "u64,u64", "--quiet", "--memory", "1", "in.raw"],
        &["build", "-o", "t.pleach", "--quiet", "--layout", "lines,spine,grid,columns,packed", "in.csv"],
        &["rebuild", "t.pleach", "--quiet", "--apply", "changes.csv"],
        &["export", "t.pleach", "--quiet", "-o", "out.csv"],
        &["fsck", "t.pleach", "--quiet"],
    ];
    let rounds = lab.tries(2, 20);
    let (mut runs, mut counts) = (0, [0u64; 3]);
    for (number, args) in jobs.iter().enumerate() {
        let run = |seed: Option<u64>| -> Result<Vec<Vec<u8>>> {
            // Each job starts from the file that the ones before it have made, the first generation of it.
            let _ = fs::remove_file(at("t.pleach"));
            for before in &jobs[..number] {
                ensure!(lab.pleach(folder.path(), before).output()?.status.success(), "{before:?}");
            }
            // The output does not exist yet.
            let made =
                [("build", "t.pleach"), ("export", "out.csv")].iter().find(|(name, _)| *name == args[0]);
            let _ = made.map(|(_, made)| fs::remove_file(at(made)));
            let mut command = lab.pleach(folder.path(), args);
            if let Some(seed) = seed {
                command.env("LD_PRELOAD", &library).env("PLEACH_PARTS", at("parts"));
                command.env("PLEACH_SEED", seed.to_string());
            }
            let output = command.stdout(std::process::Stdio::piped()).output()?;
            ensure!(output.status.success(), "{args:?}: {}", lab::both(&output));
            let mut found = vec![output.stdout];
            found.extend(["t.pleach", "out.csv"].iter().filter_map(|name| fs::read(at(name)).ok()));
            Ok(found)
        };
        let whole = run(None)?;
        for round in 0..rounds {
            let _ = fs::remove_file(at("parts"));
            ensure!(run(Some(round))? == whole, "{args:?}, round {round}: other bytes");
            let found = fs::read_to_string(at("parts")).context("the library is not met")?;
            let found: Vec<u64> = found.split(' ').map(str::parse).collect::<Result<_, _>>()?;
            ensure!(found.len() == 3 && found[0] > 0, "{args:?}: no read or write was met");
            counts.iter_mut().zip(found).for_each(|(all, one)| *all += one);
            runs += 1;
        }
    }
    let [calls, interrupted, parts] = counts;
    ensure!(interrupted > 0 && parts > 0, "{interrupted} interrupted, {parts} parts");
    Ok(format!(
        "{runs} builds, rebuilds, exports and checks, {} reads and writes: {} were interrupted and {} did a part of \
         the work, others in each run: the same bytes as without",
        grouped(calls),
        grouped(interrupted),
        grouped(parts),
    ))
}

/// Patience with a child.
pub fn within(limit: Duration, what: &str, mut is_done: impl FnMut() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while !is_done()? {
        ensure!(start.elapsed() < limit, "{what}: not done after {limit:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
