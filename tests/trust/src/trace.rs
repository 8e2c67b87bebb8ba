//! Targets 7 and 10: SIGKILL, and every error that fits, at every system call of a build and of rebuilds.
//!
//! `strace` stops the process at its k-th call of a kind and kills it there, or answers in the kernel's
//! place; k goes up until a run ends without having been met. The file must be the old one or the new one,
//! byte for byte, the error one line under exit code 8, and the folder clean: at once, or after the next
//! build where the process was killed.

use crate::lab::{self, Lab, grouped, names};
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Output;

/// A command that makes `t.pleach` or replaces it, and both files.
struct Job {
    name: &'static str,
    args: Vec<&'static str>,
    old: Option<Vec<u8>>,
    new: Vec<u8>,
}

/// A folder with inputs, and what is done in it.
struct Place {
    folder: tempfile::TempDir,
    /// Output of `strace`, outside the folder that is examined.
    log: tempfile::NamedTempFile,
    inputs: Vec<String>,
    jobs: Vec<Job>,
}

const BUILD: &[&str] = &["build", "-o", "t.pleach", "--raw", "u64,u64", "--quiet", "--threads", "2"];

impl Place {
    fn new(lab: &Lab) -> Result<Self> {
        let folder = lab.memory()?;
        let path = |name: &str| folder.path().join(name);
        fs::write(path("old.raw"), lab::raw(600, 7))?;
        fs::write(path("new.raw"), lab::raw(3000, 0))?;
        fs::write(path("many.raw"), lab::raw(30_000, 0))?;
        let key = |i: u64| pleach_tests::generate::mix(i);
        let puts: String = (0..40).map(|i| format!("put,{},{}\n", key(i), i + 1000)).collect();
        fs::write(path("patch.csv"), format!("op,key,value\n{puts}"))?;
        let merge: String =
            (580..640).map(|i| format!("put,{},1\ndel,{},\n", key(i), key(i - 500))).collect();
        fs::write(path("merge.csv"), format!("op,key,value\n{merge}"))?;
        let (inputs, log) = (names(folder.path())?, tempfile::NamedTempFile::new()?);
        let mut place = Self { inputs, folder, log, jobs: Vec::new() };
        let with = |more: &[&'static str]| [BUILD, more].concat();
        let rebuild =
            |more: &[&'static str]| [&["rebuild", "t.pleach", "--quiet", "--threads", "2"], more].concat();
        let jobs = [
            ("first build", with(&["new.raw"])),
            ("build", with(&["new.raw"])),
            ("build that spills", with(&["--memory", "1", "many.raw"])),
            ("rebuild by merging", rebuild(&["--method", "merge", "--apply", "merge.csv"])),
            ("rebuild by patching", rebuild(&["--method", "patch", "--apply", "patch.csv"])),
        ];
        for (name, args) in jobs {
            place.sweep(lab)?;
            let old = (name != "first build").then(|| fs::read(place.target())).transpose()?;
            place.put(old.as_deref())?;
            place.run(lab, &args)?;
            let new = fs::read(place.target())?;
            ensure!(old.as_ref() != Some(&new), "{name} changes nothing");
            place.jobs.push(Job { name, args, old, new });
        }
        Ok(place)
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("t.pleach")
    }

    /// Contents of the folder before a job.
    fn put(&self, old: Option<&[u8]>) -> Result<()> {
        let _ = fs::remove_file(self.target());
        Ok(old.map_or(Ok(()), |old| fs::write(self.target(), old))?)
    }

    /// The next build, which sweeps what a killed one has left.
    fn sweep(&self, lab: &Lab) -> Result<()> {
        self.run(lab, &[BUILD, &["old.raw"]].concat())?;
        ensure!(self.litter()?.is_empty(), "{:?} is left by the next build", self.litter()?);
        Ok(())
    }

    fn run(&self, lab: &Lab, args: &[&str]) -> Result<()> {
        let output = lab.pleach(self.folder.path(), args).output()?;
        ensure!(output.status.success(), "{args:?}: {}", lab::both(&output));
        Ok(())
    }

    /// Returns the names in the folder other than inputs and target.
    fn litter(&self) -> Result<Vec<String>> {
        let mut names = names(self.folder.path())?;
        names.retain(|name| !self.inputs.contains(name) && name != "t.pleach");
        Ok(names)
    }

    /// Calls of each kind that a job makes: the maximum of one thread, and the number that the system's
    /// loader makes before the program begins.
    fn calls(&self, lab: &Lab, job: &Job) -> Result<BTreeMap<String, (u64, u64)>> {
        self.put(job.old.as_deref())?;
        let log = path(self.log.path())?;
        let scene = ["-f", "-qq", "-o", log, "-e", "trace=%file,%desc,%memory", "-e", "signal=none"];
        let output =
            lab.through("strace", &scene, self.folder.path(), &job.args).output().context("strace")?;
        let text = lab::both(&output);
        if !output.status.success() && text.to_lowercase().contains("ptrace") {
            return Err(lab::NotHere(format!("strace: {}", text.trim())).into());
        }
        ensure!(output.status.success(), "{}: {text}", job.name);
        let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
        let mut of_loader = None;
        for line in fs::read_to_string(log)?.lines() {
            let Some((thread, call)) = line.split_once(' ') else { continue };
            let name: String =
                call.trim().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            if name == "poll" && of_loader.is_none() {
                // The first thing that the program's runtime does: are standard input and output open?
                of_loader = Some(counts.clone());
            }
            if !name.is_empty() && !call.contains("resumed>") {
                *counts.entry((thread.to_owned(), name)).or_default() += 1;
            }
        }
        let of_loader = of_loader.context("the program's first call is not seen")?;
        let mut most = BTreeMap::new();
        for ((thread, name), count) in counts {
            let first = of_loader.get(&(thread, name.clone())).copied().unwrap_or_default();
            let entry: &mut (u64, u64) = most.entry(name).or_default();
            *entry = (count.max(entry.0), first.max(entry.1));
        }
        Ok(most)
    }

    /// Runs a job with something happening at the k-th call of a kind. Descriptors are logged with their files.
    fn meet(&self, lab: &Lab, job: &Job, call: &str, what: &str, k: u64) -> Result<Output> {
        self.put(job.old.as_deref())?;
        let inject = format!("inject={call}:{what}:when={k}");
        let (log, trace) = (path(self.log.path())?, format!("trace={call}"));
        let scene = ["-f", "-qq", "-y", "-o", log, "-e", &trace, "-e", &inject, "-e", "signal=none"];
        lab.through("strace", &scene, self.folder.path(), &job.args).output().context("strace")
    }

    /// Returns the last logged answer that was given in the kernel's place.
    fn answered(&self) -> Result<Answered> {
        let log = String::from_utf8_lossy(&fs::read(self.log.path())?).into_owned();
        let calls = injected(&log);
        let folder = self.folder.path().canonicalize()?;
        let folder = path(&folder)?;
        let of_build = calls.iter().find(|call| must_be_told(call, folder)).cloned();
        Ok(Answered { is_met: !calls.is_empty(), of_build })
    }

    /// Returns true if the target is the new file; it must be one of the two.
    fn is_new(&self, job: &Job, what: &str) -> Result<bool> {
        let now = match fs::read(self.target()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            now => Some(now?),
        };
        let is_new = now.as_ref() == Some(&job.new);
        ensure!(is_new || now == job.old, "{what}: neither the old file nor the new one");
        Ok(is_new)
    }
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().context("a plain path")
}

/// Calls that `strace` has answered, by its log. What it prints of a call that others come between is put
/// together.
fn injected(log: &str) -> Vec<String> {
    let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
    let mut calls = Vec::new();
    for line in log.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim();
        if let Some(first) = call.strip_suffix("<unfinished ...>") {
            begun.insert(thread, first);
        } else if call.ends_with("(INJECTED)") {
            let first = begun.get(thread).filter(|_| call.starts_with("<... ")).copied();
            calls.push(format!("{}{call}", first.unwrap_or_default()));
        }
    }
    calls
}

/// Calls without which what was built is not on the disk under its name.
const OF_BUILD: [&str; 10] = [
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "ftruncate",
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
];

/// Returns true if a call that failed must end a build: one of these, of a file in this folder or of the
/// folder itself. Output for people, and calls that may be repeated, may fail.
fn must_be_told(call: &str, folder: &str) -> bool {
    let name = call.split('(').next().unwrap_or_default();
    // The first descriptor: what is written may name the folder, too. All that is renamed is the build's.
    let is_here = call.split_once('<').is_some_and(|(_, path)| path.starts_with(folder));
    OF_BUILD.contains(&name) && (is_here || name.starts_with("rename")) && !call.contains(" EINTR ")
}

/// Which call is met, in the short form: the first ones, and then some.
fn is_tried(lab: &Lab, k: u64, number: u64) -> bool {
    !lab.short || (k + number).is_multiple_of(11)
}

/// Target 7.
pub fn kills(lab: &Lab) -> Result<String> {
    lab::need(&["strace"], false)?;
    let place = Place::new(lab)?;
    let (mut killed, mut new, mut littered, mut calls) = (0, 0, 0, 0);
    for job in &place.jobs {
        for (number, (call, (count, _))) in (0..).zip(place.calls(lab, job)?) {
            calls += count;
            for k in (1..=count).filter(|&k| is_tried(lab, k, number)) {
                let what = format!("{}, killed at {call} {k}", job.name);
                let output = place.meet(lab, job, &call, "signal=SIGKILL", k)?;
                let is_new = place.is_new(job, &what)?;
                if !lab::was_killed(output.status) {
                    // Threads share the work anew each time: this call did not come.
                    ensure!(output.status.success() && is_new, "{what}: {}", lab::both(&output));
                    continue;
                }
                killed += 1;
                new += u64::from(is_new);
                if !place.litter()?.is_empty() {
                    littered += 1;
                    place.sweep(lab).with_context(|| what.clone())?;
                }
            }
        }
    }
    ensure!(killed > 0 && new > 0 && littered > 0, "{killed} killed, {new} new, {littered} littered");
    Ok(format!(
        "{} kills at {} system calls of three builds, a first one among them, and two rebuilds (calls on files, \
         descriptors and memory, of the busiest thread of each kind): {} times the old file or none where none was, \
         {new} times the new one, never anything else; the next build swept what {littered} had left",
        grouped(killed),
        grouped(calls),
        grouped(killed - new),
    ))
}

/// Errors that a call may answer.
fn errors(call: &str) -> &'static [&'static str] {
    match call {
        "open" | "openat" | "creat" => &["EIO", "ENOSPC", "EMFILE", "EINTR"],
        "read" | "pread64" | "readv" | "preadv" => &["EIO", "EINTR"],
        "write" | "pwrite64" | "writev" | "pwritev" => &["EIO", "ENOSPC", "EDQUOT", "EINTR"],
        "ftruncate" | "fallocate" => &["EIO", "ENOSPC", "EDQUOT", "EINTR"],
        "copy_file_range" | "sendfile" => &["EIO", "ENOSPC", "EINTR"],
        "fsync" | "fdatasync" => &["EIO", "ENOSPC", "EDQUOT", "EINTR"],
        "rename" | "renameat" | "renameat2" | "link" | "linkat" => &["EIO", "ENOSPC", "EDQUOT"],
        "flock" => &["EIO", "EINTR"],
        "mmap" | "mremap" => &["ENOMEM"],
        "unlink" | "unlinkat" | "statx" | "newfstatat" | "getdents64" | "lseek" | "sync_file_range"
        | "fchmod" | "readlink" => &["EIO"],
        _ => &[],
    }
}

/// Answers that `strace` gave in the kernel's place.
struct Answered {
    /// Anything.
    is_met: bool,
    /// A call that must not fail unnoticed.
    of_build: Option<String>,
}

/// Outcomes of commands that met an error.
#[derive(Default)]
struct Ends {
    runs: u64,
    /// Failed calls that must not stay unnoticed.
    of_build: u64,
    /// Exit code 8, one line, the old file.
    refused: u64,
    /// The same with the new file in place: the sync of the folder failed.
    unsynced: u64,
    /// Exit code 8 without a line: writing the line is what failed.
    silent: u64,
    /// A temporary file is left: removing it is what failed.
    littered: u64,
    borne: u64,
    /// The system's loader, before the program begins; the allocator, which ends the process.
    loader: u64,
    memory: u64,
}

impl Ends {
    /// Takes one in, or says what is wrong with it.
    fn add(
        &mut self,
        output: &Output,
        (call, error): (&str, &str),
        answered: &Answered,
        is_new: bool,
        is_loader: bool,
    ) -> Result<()> {
        if !answered.is_met {
            // Threads share the work anew each time: this call did not come.
            ensure!(output.status.success() && is_new, "nothing was answered: {}", lab::both(output));
            return Ok(());
        }
        self.runs += 1;
        self.of_build += u64::from(answered.of_build.is_some());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        // A thread that gets no stack for signals panics inside the standard library, before it is ours.
        let mut panics = text.lines().filter(|line| line.contains("panicked at")).peekable();
        let is_stack = panics.peek().is_some();
        let is_of_system = panics.all(|line| line.contains("/library/std/src/sys/"));
        ensure!(is_of_system && (!is_stack || error == "ENOMEM"), "a panic: {text}");
        match output.status.code() {
            Some(0) => {
                ensure!(is_new, "success without the new file");
                // It is there now, but perhaps not after a power cut.
                ensure!(answered.of_build.is_none(), "success all the same: {:?}", answered.of_build);
                self.borne += 1;
            }
            Some(8) => {
                // Calls are counted in each thread: the line itself may be what was not written.
                let is_silent = call == "write" && text.is_empty();
                if !is_silent {
                    lab::refused(output, 8)?;
                }
                // The name was given before the folder's sync failed.
                ensure!(!is_new || text.contains("syncing the folder"), "the new file all the same: {text}");
                *match (is_new, is_silent) {
                    (true, _) => &mut self.unsynced,
                    (_, true) => &mut self.silent,
                    _ => &mut self.refused,
                } += 1;
            }
            // It may say so, or crash.
            _ if is_loader => {
                ensure!(!is_new, "the new file before the program begins");
                self.loader += 1;
            }
            // The allocator got no memory, or a thread no stack: Rust ends the process.
            code => {
                let is_aborted =
                    output.status.signal() == Some(libc::SIGABRT) || code == Some(128 + libc::SIGABRT);
                let is_ended = is_aborted || is_stack && code == Some(101);
                let is_memory = error == "ENOMEM" && is_ended && !is_new;
                ensure!(is_memory, "{}: {text}", output.status);
                self.memory += 1;
            }
        }
        Ok(())
    }
}

/// Target 10.
pub fn errnos(lab: &Lab) -> Result<String> {
    lab::need(&["strace"], false)?;
    let place = Place::new(lab)?;
    let mut ends = Ends::default();
    let mut untried = BTreeSet::new();
    for job in &place.jobs {
        for (number, (call, (count, of_loader))) in (0..).zip(place.calls(lab, job)?) {
            if errors(&call).is_empty() {
                untried.insert(call.clone());
            }
            // Few, and all else depends on them: the short form has them all.
            let is_last_step = call.ends_with("sync") || call.starts_with("rename");
            for error in errors(&call) {
                for k in (1..=count).filter(|&k| is_last_step || is_tried(lab, k, number)) {
                    let what = || format!("{}, {error} at {call} {k}", job.name);
                    let output = place.meet(lab, job, &call, &format!("error={error}"), k)?;
                    let is_new = place.is_new(job, &what())?;
                    let answered = place.answered()?;
                    ends.add(&output, (&call, error), &answered, is_new, k <= of_loader)
                        .with_context(what)?;
                    // Cleaning up is what failed where a name could not be removed.
                    let may_litter =
                        call.starts_with("unlink") || !matches!(output.status.code(), Some(0 | 8));
                    let litter = place.litter()?;
                    ensure!(litter.is_empty() || may_litter, "{}: {litter:?} is left", what());
                    if !litter.is_empty() {
                        ends.littered += 1;
                        place.sweep(lab).with_context(what)?;
                    }
                }
            }
        }
    }
    let Ends { runs, of_build, refused, unsynced, silent, littered, borne, loader, memory } = ends;
    ensure!(
        refused > 0 && borne > 0 && of_build > 0,
        "{refused} refused, {borne} borne, {of_build} of builds"
    );
    let untried: Vec<String> = untried.into_iter().collect();
    Ok(format!(
        "{} errors at system calls of three builds and two rebuilds: {} ended with exit code 8, one line and the old \
         file, {silent} more could not write that line, {unsynced} said that the new file is in place and its folder \
         not synced; {} did no harm (interrupted calls, hints), which none of the {} did that failed writes, cuts, \
         syncs and renamings of what is built; {loader} met the system's loader and {memory} the allocator or the \
         start of a thread, which ends the process: the old file stayed; litter only in {littered} runs, whose removal \
         of it failed or which ended so, swept by the next build; no errors for {}",
        grouped(runs),
        grouped(refused),
        grouped(borne),
        grouped(of_build),
        untried.join(", "),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_calls_of_a_build_must_be_told() {
        let log = "\
            12 fsync(5</f/.t.tmp> <unfinished ...>\n\
            13 pwrite64(5</f/.t.tmp>, \"a\", 1, 0) = 1\n\
            12 <... fsync resumed>) = -1 EIO (Input/output error) (INJECTED)\n\
            12 write(2<pipe:[1]>, \"error: </f/t\"..., 80) = -1 EIO (Input/output error) (INJECTED)\n\
            13 fsync(3</f>) = -1 EINTR (Interrupted system call) (INJECTED)\n\
            13 renameat(AT_FDCWD</g>, \"a\", AT_FDCWD</g>, \"b\") = -1 EIO (Input/output error) (INJECTED)\n\
            13 fallocate(5</f/.t.tmp>, 0, 0, 9) = -1 EIO (Input/output error) (INJECTED)\n";
        let told: Vec<bool> = injected(log).iter().map(|call| must_be_told(call, "/f")).collect();
        assert_eq!(told, [true, false, false, true, false]);
    }
}
