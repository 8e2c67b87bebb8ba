//! `pleach set sweep`: deletes old generations and litter.

use crate::cli::Global;
use crate::cli::set::SweepArgs;
use crate::errors::set_failure;
use crate::failure::{self, ExitStatus, Failure};
use crate::place;
use crate::render::json;
use crate::render::text::{counted, grouped};
use crate::stdout;
use pleach_set::{Object, SweepOptions, sweep};
use serde_json::{Value, json};

pub fn run(args: &SweepArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let store = place::store(&args.dir, global)?;
    let options = SweepOptions { grace: args.grace, keep: args.keep, dry_run: args.dry_run };
    let swept = sweep(&*store, &options).map_err(|error| set_failure(&error))?;
    if global.json {
        let objects = |objects: &[Object]| -> Value {
            let object = |object: &Object| {
                let age = object.age.as_secs();
                json!({ "name": object.name, "bytes": json::int(object.bytes), "age_seconds": json::int(age) })
            };
            objects.iter().map(object).collect()
        };
        let numbers = |all: &[u64]| -> Value { all.iter().map(|&it| json::int(it)).collect() };
        let mut document = json::document("set-sweep");
        document.insert("set".to_owned(), args.dir.display().to_string().into());
        document.insert("dry_run".to_owned(), args.dry_run.into());
        document.insert("kept_generations".to_owned(), numbers(&swept.kept));
        document.insert("deleted_generations".to_owned(), numbers(&swept.generations));
        document.insert("deleted_files".to_owned(), objects(&swept.files));
        document.insert("young_files".to_owned(), objects(&swept.young));
        document.insert("deleted_bytes".to_owned(), json::int(swept.bytes()));
        stdout::print_json(document)?;
    } else if !global.quiet {
        let done = if args.dry_run { "would delete" } else { "deleted" };
        failure::say(&format!(
            "swept {}: {} kept, {done} {} and {} of {} bytes, {} too young",
            args.dir.display(),
            counted(swept.kept.len() as u64, "generation"),
            counted(swept.generations.len() as u64, "manifest"),
            counted(swept.files.len() as u64, "file"),
            grouped(swept.bytes()),
            swept.young.len()
        ));
    }
    Ok(ExitStatus::Success)
}
