//! `pleach upgrade`: gives files of the last version before this one the form of this version.

use crate::cli::{Global, UpgradeArgs};
use crate::errors::build_failure;
use crate::failure::{self, ExitStatus, Failure};
use crate::progress::Progress;
use crate::render::json;
use crate::render::text::{counted, grouped, hex};
use crate::stdout;
use pleach_builder::rebuild::{Upgraded, upgrade};
use std::path::Path;
use std::time::Instant;

pub fn run(args: &UpgradeArgs, global: &Global) -> Result<ExitStatus, Failure> {
    for file in &args.files {
        let started = Instant::now();
        let progress = Progress::new(global);
        let done = upgrade(file, &progress).map_err(|error| progress.failed(build_failure(&error)))?;
        drop(progress);
        let seconds = started.elapsed().as_secs_f64();
        if global.json {
            print_json(file, &done, seconds)?;
        } else if !global.quiet {
            failure::say(&sentence(file, &done, seconds));
        }
    }
    Ok(ExitStatus::Success)
}

fn sentence(file: &Path, done: &Upgraded, seconds: f64) -> String {
    let kept = match done.kept {
        0 => String::new(),
        kept => format!(", and {}", counted(kept as u64, "kept generation")),
    };
    match done.from {
        Some((major, minor)) => format!(
            "upgraded {} from {major}.{minor}: generation {}, {}, {} bytes{kept}, {seconds:.1} s",
            file.display(),
            done.generation,
            counted(done.tuples, "tuple"),
            grouped(done.file_bytes),
        ),
        None if done.kept > 0 => {
            format!("{} is of this version{kept} upgraded, {seconds:.1} s", file.display())
        }
        None => format!("{} is of this version: nothing to do", file.display()),
    }
}

fn print_json(file: &Path, done: &Upgraded, seconds: f64) -> Result<(), Failure> {
    let mut document = json::document("upgrade");
    document.insert("file".to_owned(), file.display().to_string().into());
    let from = done.from.map(|(major, minor)| format!("{major}.{minor}"));
    document.insert("from".to_owned(), from.into());
    document.insert("generation".to_owned(), json::int(done.generation));
    document.insert("file_id".to_owned(), hex(&done.file_id).into());
    document.insert("tuples".to_owned(), json::int(done.tuples));
    document.insert("file_bytes".to_owned(), json::int(done.file_bytes));
    document.insert("upgraded_generations".to_owned(), done.kept.into());
    document.insert("seconds".to_owned(), seconds.into());
    stdout::print_json(document)
}
