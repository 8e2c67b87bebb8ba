//! Environment of the targets: the tested command, folders, inputs, and time limits.

use anyhow::{Context, Result, bail, ensure};
use pleach_tests::generate::mix;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

/// Environment of every target.
pub struct Lab {
    /// True if the short form is requested, which a machine of two cores ends within minutes.
    pub short: bool,
    /// Folder of the sources.
    pub root: PathBuf,
    /// The command `pleach`.
    pub pleach: PathBuf,
    /// A folder on a disk, where a target needs one.
    pub folder: Option<PathBuf>,
}

impl Lab {
    /// A number of tries: of the short form, or of the whole.
    pub fn tries(&self, short: u64, whole: u64) -> u64 {
        if self.short { short } else { whole }
    }

    /// A new folder in memory, if there is one.
    pub fn memory(&self) -> Result<tempfile::TempDir> {
        tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).context("a folder")
    }

    /// A new folder on a disk.
    pub fn disk(&self) -> Result<tempfile::TempDir> {
        match &self.folder {
            Some(folder) => tempfile::tempdir_in(folder),
            None => tempfile::tempdir(),
        }
        .context("a folder")
    }

    /// `pleach` in a folder.
    pub fn pleach(&self, folder: &Path, args: &[&str]) -> Command {
        command(&self.pleach, folder, args)
    }

    /// `pleach` in a folder, through another program that sets the scene.
    pub fn through<S: AsRef<OsStr>>(
        &self,
        program: &str,
        scene: &[S],
        folder: &Path,
        args: &[&str],
    ) -> Command {
        let mut command = Command::new(program);
        command.args(scene).arg(&self.pleach).args(args).current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// `cargo` in the folder of the sources, with what it prints on either stream.
    pub fn cargo(&self, args: &[&str], environment: &[(&str, &str)]) -> Result<String> {
        self.run_cargo(
            Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())),
            args,
            environment,
        )
    }

    /// The same of the nightly toolchain, which has Miri and all sanitizers.
    pub fn nightly(&self, args: &[&str], environment: &[(&str, &str)]) -> Result<String> {
        allowed(succeed("rustup", &["run", "nightly", "cargo", "miri", "--version"]))?;
        let mut cargo = Command::new("rustup");
        cargo.args(["run", "nightly", "cargo"]).env_remove("CARGO");
        self.run_cargo(cargo, args, environment)
    }

    fn run_cargo(&self, mut cargo: Command, args: &[&str], environment: &[(&str, &str)]) -> Result<String> {
        cargo.args(args).envs(environment.iter().copied()).current_dir(&self.root);
        let output = cargo.stdin(Stdio::null()).output().context("cargo")?;
        let text = both(&output);
        ensure!(output.status.success(), "cargo {}: {}\n{}", args.join(" "), output.status, tail(&text, 40));
        Ok(text)
    }
}

/// Reports a missing requirement of a target: a program, the rights of root, a kind of file system. The
/// short form prints it and continues; the whole form fails.
#[derive(Debug)]
pub struct NotHere(pub String);

impl fmt::Display for NotHere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot be measured here: {}", self.0)
    }
}

impl std::error::Error for NotHere {}

/// Programs, and root where a target mounts disks or drops caches.
pub fn need(programs: &[&str], root: bool) -> Result<()> {
    if let Some(missing) = programs.iter().find(|program| !has(program)) {
        return Err(NotHere(format!("{missing} is missing: install it")).into());
    }
    if root && succeed("id", &["-u"])?.trim() != "0" {
        return Err(NotHere("it takes the rights of root".into()).into());
    }
    Ok(())
}

/// Something that the system may not allow here.
pub fn allowed<T>(done: Result<T>) -> Result<T> {
    done.map_err(|error| NotHere(format!("{error:#}")).into())
}

/// A command with its output kept.
pub fn command(program: impl AsRef<OsStr>, folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Runs a program that must succeed; what it printed.
pub fn succeed(program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{program} cannot be run"))?;
    let text = both(&output);
    ensure!(output.status.success(), "{program} {}: {}: {}", args.join(" "), output.status, text.trim());
    Ok(text)
}

/// Returns true if a program is installed.
pub fn has(program: &str) -> bool {
    let found = |folder: PathBuf| folder.join(program).is_file();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).chain(["/usr/sbin".into(), "/sbin".into()]).any(found)
}

/// Returns the output of a command on both streams.
pub fn both(output: &Output) -> String {
    [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)].concat()
}

/// The last lines of a text.
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Returns true if a process was killed: itself, or the shell's way of saying so.
pub fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(libc::SIGKILL) || status.code() == Some(128 + libc::SIGKILL)
}

/// Raw tuples of two `u64`: keys in no order, values counted from some number.
pub fn raw(tuples: u64, value: u64) -> Vec<u8> {
    (0..tuples).flat_map(|i| [mix(i).to_le_bytes(), (i + value).to_le_bytes()]).flatten().collect()
}

/// Names in a folder, sorted.
pub fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let mut names: Vec<String> =
        entries.into_iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

/// A number with commas.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The middle of some numbers.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The one line of an error, under its exit code.
pub fn refused(output: &Output, code: i32) -> Result<String> {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(code), "{}, not {code}: {text}", output.status);
    if !text.starts_with("error: ") || text.trim_end().lines().count() != 1 {
        bail!("not one line of an error: {text}");
    }
    Ok(text)
}
