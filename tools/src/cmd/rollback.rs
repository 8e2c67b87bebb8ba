//! `pleach rollback`: publishes an old generation again.

use super::build::kept_text;
use crate::cli::{Global, RollbackArgs};
use crate::errors::build_failure;
use crate::failure::{self, ExitStatus, Failure};
use crate::place;
use crate::progress::Progress;
use crate::render::json;
use crate::render::text::{counted, grouped, hex};
use crate::stdout;
use pleach_builder::rebuild::{RollbackOptions, rollback};
use std::time::Instant;

pub fn run(args: &RollbackArgs, global: &Global) -> Result<ExitStatus, Failure> {
    if place::is_set(&args.file, global)? {
        return super::set::rollback(args, global);
    }
    place::only_here(&args.file)?;
    let started = Instant::now();
    let progress = Progress::new(global);
    let options = RollbackOptions { keep: args.keep, force: args.force };
    let done = rollback(&args.file, args.generation, &options, &progress)
        .map_err(|error| progress.failed(build_failure(&error)))?;
    drop(progress);
    let seconds = started.elapsed().as_secs_f64();
    if global.json {
        let mut document = json::document("rollback");
        document.insert("file".to_owned(), args.file.display().to_string().into());
        document.insert("from".to_owned(), json::int(done.from));
        document.insert("generation".to_owned(), json::int(done.generation));
        document.insert("file_id".to_owned(), hex(&done.file_id).into());
        document.insert("tuples".to_owned(), json::int(done.tuples));
        document.insert("file_bytes".to_owned(), json::int(done.file_bytes));
        document.insert("kept_generations".to_owned(), done.kept.into());
        document.insert("seconds".to_owned(), seconds.into());
        stdout::print_json(document)?;
    } else if !global.quiet {
        failure::say(&format!(
            "rolled back {}: generation {} is that of number {}, {}, {} bytes{}, {seconds:.1} s",
            args.file.display(),
            done.generation,
            done.from,
            counted(done.tuples, "tuple"),
            grouped(done.file_bytes),
            kept_text(Some(done.kept), done.left.as_deref()),
        ));
    }
    Ok(ExitStatus::Success)
}
