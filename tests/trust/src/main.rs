//! `cargo trust`: measures what docs/TRUST.md promises, and writes the figures there.
//!
//! Each target is a function that fails, or says in one sentence what it has measured. Figures are kept
//! with their date in `docs/trust.json`, from which the table of docs/TRUST.md is made.

mod arguments;
mod disks;
mod fuzzing;
mod lab;
mod limits;
mod live;
mod mutants;
mod power;
mod recorder;
mod suites;
mod table;
mod targets;
mod trace;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand};
use lab::Lab;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use targets::TARGETS;

/// Measures the targets of docs/TRUST.md: all, or those that are named by their numbers.
///
/// The whole form takes hours (fuzzers and mutants most of them) and wants root, for loop devices, mounts and cold
/// caches, and the packages strace, xfsprogs and btrfs-progs. What cannot be measured here is said, and fails; the
/// short form skips it.
#[derive(Debug, Parser)]
#[command(name = "cargo trust", arg_required_else_help = false, subcommand_negates_reqs = true)]
struct Cli {
    /// Numbers of targets [default: all]
    targets: Vec<u32>,
    /// The short form: minutes, on two cores, with the debug build of the command
    #[arg(long)]
    short: bool,
    /// Put the figures into docs/trust.json and docs/TRUST.md
    #[arg(long)]
    write: bool,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    /// Only say what the targets are
    #[arg(long)]
    list: bool,
    /// Folder on the disk that is measured and filled [default: the system's for temporary files]
    #[arg(long)]
    folder: Option<PathBuf>,
    /// The command `pleach`, if it is built already
    #[arg(long)]
    pleach: Option<PathBuf>,
    #[command(subcommand)]
    child: Option<Role>,
}

/// Tasks of this program as a child of itself.
#[derive(Debug, Subcommand)]
#[command(hide = true)]
enum Role {
    /// Searches while the file is cut.
    #[command(hide = true)]
    Cut { path: String, how: String, residence: String },
    /// Reads across publishes.
    #[command(hide = true)]
    Reader { path: String, last: u64 },
    /// Opens, and asks once.
    #[command(hide = true)]
    Open { path: String, how: String },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match &cli.child {
        Some(Role::Cut { path, how, residence }) => {
            live::cut_child(path, how, residence == "resident").map(|()| true)
        }
        Some(Role::Reader { path, last }) => live::reader_child(path, *last).map(|()| true),
        Some(Role::Open { path, how }) => live::open_child(path, how == "ask").map(|()| true),
        None => measure(&cli),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(4),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(8)
        }
    }
}

/// Builds the command; where it is.
fn command(root: &Path, short: bool) -> Result<PathBuf> {
    let form = if short { "debug" } else { "release" };
    let mut cargo = std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--locked", "-p", "pleach-cli"]).current_dir(root);
    if !short {
        cargo.arg("--release");
    }
    ensure!(cargo.status().context("cargo")?.success(), "the command does not build");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join(form).join("pleach"))
}

/// Returns true if all that was tried holds.
fn measure(cli: &Cli) -> Result<bool> {
    let known = |number: &u32| TARGETS.iter().any(|target| target.number == *number);
    if let Some(unknown) = cli.targets.iter().find(|number| !known(number)) {
        bail!("target {unknown}: there is none of this number: see --list");
    }
    let wanted = TARGETS.iter().filter(|target| match cli.targets.is_empty() {
        true => !cli.short || target.in_short,
        false => cli.targets.contains(&target.number),
    });
    if cli.list {
        wanted.for_each(|target| println!("{:>2}  {}", target.number, target.name));
        return Ok(true);
    }
    if cli.write && !cli.short {
        let shortened = wanted.clone().find(|target| fuzzing::is_shortened(target.number));
        if let Some(target) = shortened {
            bail!("target {}: PLEACH_FUZZ_SECONDS makes it too short to be written", target.number);
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("the sources")?.to_owned();
    let pleach = match &cli.pleach {
        Some(path) => path.canonicalize().with_context(|| path.display().to_string())?,
        None => command(&root, cli.short)?,
    };
    let lab = Lab { short: cli.short, root, pleach, folder: cli.folder.clone() };
    let mut all = true;
    for target in wanted {
        let start = Instant::now();
        if !cli.json {
            eprintln!("{:>2}  {} ...", target.number, target.name);
        }
        let outcome = (target.measure)(&lab);
        let seconds = start.elapsed().as_secs();
        let (holds, text) = match &outcome {
            Ok(figure) => (true, figure.clone()),
            Err(error) => (false, format!("{error:#}")),
        };
        let is_skipped = cli.short && outcome.is_err_and(|error| error.is::<lab::NotHere>());
        all &= holds || is_skipped;
        let word = if is_skipped {
            "SKIPPED"
        } else if holds {
            "holds"
        } else {
            "FAILS"
        };
        if cli.json {
            let row = serde_json::json!({
                "target": target.number, "name": target.name, "holds": holds, "figure": text, "seconds": seconds,
            });
            println!("{row}");
        } else {
            println!("{:>2}  {word}: {text} ({seconds} s)", target.number);
        }
        if cli.write && holds && !cli.short {
            table::keep(&lab.root, target.number, &text, seconds)?;
        } else if cli.write && !holds && !cli.short {
            // An old figure is not what the code of today reaches.
            table::forget(&lab.root, target.number)?;
        }
    }
    if cli.write {
        table::write(&lab.root)?;
    }
    Ok(all)
}
