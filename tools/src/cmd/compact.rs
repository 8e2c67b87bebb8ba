//! `pleach compact`: merges several files into one.

use super::build::kept_text;
use crate::cli::{CompactArgs, Global};
use crate::errors::build_failure;
use crate::failure::{self, ExitStatus, Failure};
use crate::metrics::{Metrics, Run};
use crate::progress::Progress;
use crate::render::json;
use crate::render::text::{counted, grouped, hex};
use crate::stdout;
use pleach_builder::rebuild::{CompactOptions, compact};
use std::time::Instant;

pub fn run(args: &CompactArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let inputs = args.files.clone();
    let run = Run { command: "compact", file: &args.output, inputs, metrics: args.metrics.as_deref() };
    run.measure(|metrics| measured(args, global, metrics))
}

fn measured(args: &CompactArgs, global: &Global, metrics: &Metrics) -> Result<ExitStatus, Failure> {
    let started = Instant::now();
    let progress = Progress::new(global).timed(metrics);
    let options = CompactOptions {
        unique: args.unique.map(Into::into),
        layout: args.layout,
        salvage: args.salvage,
        threads: args.threads,
        keep: args.keep,
        force: args.force,
        approximate: args.approximate,
    };
    let done = compact(&args.files, &args.output, &options, &progress)
        .map_err(|error| progress.failed(build_failure(&error)))?;
    drop(progress);
    let (summary, lost) = (&done.summary, done.lost_tuples());
    metrics.tell(|told| {
        told.tuples = Some(summary.tuples);
        told.written_bytes = Some(summary.file_bytes);
        told.generation = Some(summary.generation);
    });
    let seconds = started.elapsed().as_secs_f64();
    if global.json {
        let mut document = json::document("compact");
        document.insert("file".to_owned(), args.output.display().to_string().into());
        document.insert("files".to_owned(), args.files.len().into());
        document.insert("rows".to_owned(), json::int(summary.rows));
        document.insert("tuples".to_owned(), json::int(summary.tuples));
        document.insert("file_bytes".to_owned(), json::int(summary.file_bytes));
        document.insert("file_id".to_owned(), hex(&summary.file_id).into());
        document.insert("generation".to_owned(), json::int(summary.generation));
        document.insert("approximate".to_owned(), json::approximate(summary.approximate));
        document.insert("kept_generations".to_owned(), summary.kept.into());
        document.insert("lost_tuples".to_owned(), json::int(lost));
        document.insert("seconds".to_owned(), seconds.into());
        stdout::print_json(document)?;
    } else if !global.quiet {
        let lost = if lost > 0 {
            format!(", {} lost with damaged blocks", counted(lost, "tuple"))
        } else {
            String::new()
        };
        failure::say(&format!(
            "compacted {} to {}: {}, {} bytes{lost}{}, {seconds:.1} s",
            counted(args.files.len() as u64, "file"),
            args.output.display(),
            counted(summary.tuples, "tuple"),
            grouped(summary.file_bytes),
            kept_text(summary.kept, summary.left.as_deref()),
        ));
    }
    Ok(ExitStatus::Success)
}
