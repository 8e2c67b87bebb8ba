//! `pleach rebuild`: makes the next generation of a file from a batch of changes.

use super::build::{kept_text, put_nulls};
use crate::changes;
use crate::cli::{Global, Method, RebuildArgs};
use crate::errors::build_failure;
use crate::failure::{self, ExitStatus, Failure};
use crate::message::Message;
use crate::metrics::{Metrics, Run};
use crate::output;
use crate::place;
use crate::progress::Progress;
use crate::render::json;
use crate::render::text::{counted, grouped, hex};
use crate::request::nulls_text;
use crate::stdout;
use crate::tables::input_format;
use pleach_builder::rebuild::{self, RebuildOptions, Rebuilt};
use pleach_builder::source::Schema;
use pleach_input::{FORMATS, NullCounts, alternatives};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

pub fn run(args: &RebuildArgs, global: &Global) -> Result<ExitStatus, Failure> {
    check(args)?;
    if place::is_set(&args.file, global)? {
        return super::set::rebuild(args, global);
    }
    place::only_here(&args.file)?;
    let inputs = output::inputs([args.apply.as_path()]);
    let run = Run { command: "rebuild", file: &args.file, inputs, metrics: args.metrics.as_deref() };
    run.measure(|metrics| measured(args, global, metrics))
}

fn measured(args: &RebuildArgs, global: &Global, metrics: &Metrics) -> Result<ExitStatus, Failure> {
    let started = Instant::now();
    let progress = Progress::new(global).timed(metrics);
    let default = RebuildOptions::default();
    let options = RebuildOptions {
        method: match args.method {
            Method::Auto => rebuild::Method::Auto,
            Method::Merge => rebuild::Method::Merge,
            Method::Patch => rebuild::Method::Patch,
        },
        keep: args.keep,
        approximate: args.approximate,
        salvage: args.salvage,
        memory_bytes: args.memory.unwrap_or(default.memory_bytes),
        threads: args.threads,
        temp_dir: args.temp.clone(),
        inputs: output::inputs([args.apply.as_path()]),
        ..default
    };
    let counts = NullCounts::default();
    let open = Box::new(|schema: &Schema| changes::open(args, schema, global, &counts));
    let done = rebuild::rebuild(&args.file, open, &options, &progress)
        .map_err(|error| progress.failed(build_failure(&error)))?;
    drop(progress);
    let took = started.elapsed();
    metrics.tell(|told| {
        told.tuples = Some(done.summary.tuples);
        told.written_bytes = Some(done.summary.file_bytes);
        told.generation = Some(done.summary.generation);
    });
    if global.json {
        let mut document = document(&args.file, &done, took);
        put_nulls(&counts, &mut document);
        stdout::print_json(document)?;
    } else if !global.quiet {
        failure::say(&text(&args.file, &done, &counts, took));
    }
    Ok(ExitStatus::Success)
}

/// Refuses arguments that no file and no data could make right.
fn check(args: &RebuildArgs) -> Result<(), Failure> {
    match input_format(&args.apply, args.format, |row| row.has_changes)? {
        Some(format) if !format.row().has_changes => {
            let known = alternatives(FORMATS.iter().filter(|row| row.has_changes).map(|row| row.name));
            let message = Message::new("changes need a column of operations").at("pleach rebuild");
            Err(Failure::usage(message.advise(format!("give them as {known}"))))
        }
        _ => Ok(()),
    }
}

fn text(path: &Path, done: &Rebuilt, counts: &NullCounts, took: Duration) -> String {
    let (summary, applied) = (&done.summary, &done.applied);
    let mut notes = Vec::new();
    if applied.absent > 0 {
        notes.push(format!("{} found nothing", counted(applied.absent, "delete")));
    }
    if applied.superseded > 0 {
        notes.push(format!("{} superseded within the batch", counted(applied.superseded, "change")));
    }
    if done.lost > 0 {
        notes.push(format!("{} lost with damaged blocks", counted(done.lost, "tuple")));
    }
    let mut notes: String = notes.iter().map(|note| format!(", {note}")).collect();
    notes.push_str(&nulls_text(counts));
    notes.push_str(&kept_text(done.kept, done.left.as_deref()));
    format!(
        "rebuilt {}: generation {}, {} (was {}), {} bytes, by {}: {} put, {} added, {} deleted{notes}, {:.1} s",
        path.display(),
        summary.generation,
        counted(summary.tuples, "tuple"),
        grouped(done.base_tuples),
        grouped(summary.file_bytes),
        done.method.name(),
        grouped(applied.puts),
        grouped(applied.adds),
        grouped(applied.dels),
        took.as_secs_f64(),
    )
}

fn document(path: &Path, done: &Rebuilt, took: Duration) -> serde_json::Map<String, Value> {
    let (summary, applied) = (&done.summary, &done.applied);
    let mut document = json::document("rebuild");
    document.insert("file".to_owned(), path.display().to_string().into());
    document.insert("generation".to_owned(), json::int(summary.generation));
    document.insert("approximate".to_owned(), json::approximate(summary.approximate));
    document.insert("method".to_owned(), done.method.name().into());
    document.insert("base_tuples".to_owned(), json::int(done.base_tuples));
    document.insert("tuples".to_owned(), json::int(summary.tuples));
    document.insert("file_bytes".to_owned(), json::int(summary.file_bytes));
    document.insert("file_id".to_owned(), hex(&summary.file_id).into());
    document.insert("changes".to_owned(), changes::json(applied));
    document.insert("lost_tuples".to_owned(), json::int(done.lost));
    document.insert("kept_generations".to_owned(), done.kept.into());
    document.insert("seconds".to_owned(), took.as_secs_f64().into());
    document
}
