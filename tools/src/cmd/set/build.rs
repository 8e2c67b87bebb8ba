//! `pleach set build` and `pleach set write`: files of a set from tables.

use super::entries;
use crate::cli::set::SetBuildArgs;
use crate::cli::{Global, TableArgs};
use crate::errors::{set_failure, source_failure};
use crate::failure::{self, ExitStatus, Failure};
use crate::message::Message;
use crate::place;
use crate::progress::Progress;
use crate::render::json;
use crate::render::text::{counted, grouped, hex};
use crate::request::nulls_text;
use crate::stdout;
use crate::tables::{self, Origin};
use pleach_builder::BuildOptions;
use pleach_input::NullCounts;
use pleach_set::{Committer, Manifest, Partition, Store, WriteReport, Writer, Written, discard};
use std::sync::Arc;
use std::time::Instant;

/// A run of one of the commands.
struct Run {
    store: Arc<dyn Store>,
    written: Written,
    report: WriteReport,
    counts: NullCounts,
}

pub fn build(args: &SetBuildArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let started = Instant::now();
    let run = run(args, global)?;
    let publish = || {
        let mut committer = Committer::begin(Arc::clone(&run.store))?;
        committer.add_own(&run.written)?;
        committer.publish()
    };
    let manifest = publish().map_err(|error| {
        discard(&*run.store, &run.written.entries, &error);
        set_failure(&error)
    })?;
    let seconds = started.elapsed().as_secs_f64();
    if global.json {
        let mut document = json::document("set-build");
        document.insert("set".to_owned(), args.output.display().to_string().into());
        document.insert("rows".to_owned(), json::int(run.report.rows));
        document.insert("sorted_input".to_owned(), run.report.sorted_input.into());
        document.insert("runs".to_owned(), json::int(run.report.runs));
        crate::cmd::build::put_nulls(&run.counts, &mut document);
        put_manifest(&manifest, &mut document);
        document.insert("seconds".to_owned(), seconds.into());
        stdout::print_json(document)?;
    } else if !global.quiet {
        let facts = text(&manifest);
        let (place, nulls) = (args.output.display(), nulls_text(&run.counts));
        failure::say(&format!("built {place}: {facts}{nulls}, {seconds:.1} s"));
    }
    Ok(ExitStatus::Success)
}

/// Describes a generation in a few words.
pub fn text(manifest: &Manifest) -> String {
    format!(
        "generation {}, {} of {}, {} bytes",
        manifest.generation(),
        counted(manifest.files() as u64, "file"),
        counted(manifest.tuples(), "tuple"),
        grouped(manifest.file_bytes())
    )
}

/// Adds what is known of a generation to a document.
pub fn put_manifest(manifest: &Manifest, document: &mut serde_json::Map<String, serde_json::Value>) {
    let schema = manifest.schema();
    document.insert("set_id".to_owned(), hex(&manifest.facts().set_id).into());
    document.insert("generation".to_owned(), json::int(manifest.generation()));
    document.insert("parent".to_owned(), json::int(manifest.facts().parent));
    document.insert("files".to_owned(), manifest.files().into());
    document.insert("tuples".to_owned(), json::int(manifest.tuples()));
    document.insert("file_bytes".to_owned(), json::int(manifest.file_bytes()));
    document.insert("partition_tuples".to_owned(), json::int(schema.partition_tuples));
    document.insert("key_type".to_owned(), schema.key_type.to_string().into());
    document.insert("value_type".to_owned(), schema.value_type.to_string().into());
    document.insert("unique".to_owned(), schema.unique.into());
}

pub fn write(args: &SetBuildArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let started = Instant::now();
    let run = run(args, global)?;
    stdout::print_json(entries::document(&run.written))?;
    if !global.quiet && !global.json {
        let tuples = run.written.entries.iter().map(|entry| entry.tuples).sum();
        failure::say(&format!(
            "wrote {} of {} to {}{}, {:.1} s: publish them with `pleach set commit`",
            counted(run.written.entries.len() as u64, "file"),
            counted(tuples, "tuple"),
            args.output.display(),
            nulls_text(&run.counts),
            started.elapsed().as_secs_f64()
        ));
    }
    Ok(ExitStatus::Success)
}

/// Writes the files.
fn run(args: &SetBuildArgs, global: &Global) -> Result<Run, Failure> {
    let inputs = pleach_input::expanded(&args.table.inputs).map_err(|error| source_failure(&error))?;
    let table = TableArgs { inputs, ..args.table.clone() };
    let of_file = SetBuildArgs { table, ..args.clone() }.of_file();
    tables::check(&of_file)?;
    if of_file.table.inputs.iter().any(|input| input.starts_with(&args.output)) {
        let message = Message::new("an input is in the folder of the set").at(args.output.display());
        return Err(Failure::usage(message.advise("name another folder")));
    }
    let is_new = !args.output.exists();
    let store = place::new_store(&args.output, global)?;
    let written = written(args, &of_file, global, &store);
    if written.is_err() && is_new {
        // Only folders without anything in them are removed.
        for folder in ["files", "manifests", ""] {
            let _ = std::fs::remove_dir(args.output.join(folder));
        }
    }
    let (written, report, counts) = written?;
    Ok(Run { store, written, report, counts })
}

fn written(
    args: &SetBuildArgs,
    of_file: &crate::cli::BuildArgs,
    global: &Global,
    store: &Arc<dyn Store>,
) -> Result<(Written, WriteReport, NullCounts), Failure> {
    let partition = match (args.partition_tuples, args.partitions) {
        (Some(0), _) | (_, Some(0)) => {
            let message =
                Message::new("a set has one file at least").at("--partitions or --partition-tuples");
            return Err(Failure::usage(message.advise("give 1 or more")));
        }
        (Some(tuples), _) => Partition::Tuples(tuples),
        (None, Some(files)) => Partition::Files(files),
        (None, None) => match pleach_set::current(&**store) {
            Ok(manifest) => Partition::Tuples(manifest.schema().partition_tuples),
            Err(_) => Partition::default(),
        },
    };
    let progress = Progress::new(global);
    let counts = NullCounts::default();
    let mut source = tables::open(&of_file.table, global, &counts, &Origin::Inputs)
        .map_err(|error| progress.failed(source_failure(&error)))?;
    let options = BuildOptions { inputs: of_file.table.inputs.clone(), ..tables::build_options(of_file) };
    let (written, report) = Writer::new(Arc::clone(store))
        .write(&mut *source, partition, &options, &progress)
        .map_err(|error| progress.failed(set_failure(&error)))?;
    Ok((written, report, counts))
}
