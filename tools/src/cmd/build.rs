//! `pleach build`: builds one file from tables.
//!
//! Arguments that can never be right are refused before anything is opened. The builder watches [`Progress`],
//! so Ctrl-C ends it with no files left, even while it waits for a silent pipe.

use super::advise;
use crate::cli::{BuildArgs, Global, TableArgs};
use crate::errors::{build_failure, source_failure};
use crate::failure::{self, ExitStatus, Failure};
use crate::message::Message;
use crate::metrics::{Metrics, Run};
use crate::output;
use crate::place;
use crate::progress::Progress;
use crate::render::json;
use crate::render::text::{counted, grouped, hex, printable};
use crate::request::nulls_text;
use crate::stdout;
use crate::tables::{self, Origin};
use pleach_builder::publish::Rules;
use pleach_builder::source::Schema;
use pleach_builder::{BuildOptions, Summary};
use pleach_format::Meaning;
use pleach_input::NullCounts;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub fn run(args: &BuildArgs, global: &Global) -> Result<ExitStatus, Failure> {
    if args.dry_run {
        return advise::dry_run(args, global);
    }
    // Folders and patterns become the files in them, so that each is checked.
    let inputs = pleach_input::expanded(&args.table.inputs).map_err(|error| source_failure(&error))?;
    let args = &BuildArgs { table: TableArgs { inputs, ..args.table.clone() }, ..args.clone() };
    tables::check(args)?;
    let inputs = output::inputs(args.table.inputs.iter().map(PathBuf::as_path));
    let sent = if place::is_url(&args.output) { Some(Sent::new(args)?) } else { None };
    let target = sent.as_ref().map_or(&args.output, |sent| &sent.file);
    output::check(target, &Rules::index(inputs.clone(), args.force))?;
    let files = inputs.iter().filter(|input| input.is_file()).cloned().collect();
    let run = Run { command: "build", file: &args.output, inputs: files, metrics: args.metrics.as_deref() };
    run.measure(|metrics| measured(args, target, inputs, global, metrics))
}

/// A file that is built here, and sent to a URL.
struct Sent {
    file: PathBuf,
    _folder: TempDir,
}

impl Sent {
    fn new(args: &BuildArgs) -> Result<Self, Failure> {
        if args.keep.is_some() {
            let message =
                Message::new("generations of one file are kept beside it, on this machine").at("--keep");
            return Err(Failure::usage(message.advise("leave it out, or build a set")));
        }
        let temp = args.temp.clone().unwrap_or_else(std::env::temp_dir);
        let folder = tempfile::Builder::new().prefix("pleach-build-").tempdir_in(&temp);
        let folder = folder.map_err(|error| Failure::io("cannot write to folder", &temp, &error))?;
        Ok(Self { file: folder.path().join("file.pleach"), _folder: folder })
    }
}

fn measured(
    args: &BuildArgs,
    target: &Path,
    inputs: Vec<PathBuf>,
    global: &Global,
    metrics: &Metrics,
) -> Result<ExitStatus, Failure> {
    let started = Instant::now();
    let progress = Progress::new(global).timed(metrics);
    let counts = NullCounts::default();
    let mut source = tables::open(&args.table, global, &counts, &Origin::Inputs)
        .map_err(|error| progress.failed(source_failure(&error)))?;
    let options = BuildOptions { inputs, ..tables::build_options(args) };
    let summary = pleach_builder::build(&mut *source, target, &options, &progress)
        .map_err(|error| progress.failed(build_failure(&error)))?;
    let schema = source.schema().published();
    drop(progress);
    if target != args.output {
        place::upload(target, &args.output, args.force, global)?;
    }
    let took = started.elapsed();
    metrics.tell(|told| {
        told.tuples = Some(summary.tuples);
        told.written_bytes = Some(summary.file_bytes);
        told.generation = Some(summary.generation);
    });
    if global.json {
        let mut document = document(&args.output, &summary, took);
        if let Some(record) = schema.record() {
            document.insert("record".to_owned(), record.to_string().into());
        }
        put_nulls(&counts, &mut document);
        document.insert("key_name".to_owned(), schema.key_name.into());
        document.insert("value_name".to_owned(), schema.value_name.into());
        stdout::print_json(document)?;
    } else if !global.quiet {
        failure::say(&text(&args.output, &summary, &schema, &counts, took));
    }
    Ok(ExitStatus::Success)
}

/// Adds how many nulls there were to a document.
pub(super) fn put_nulls(counts: &NullCounts, document: &mut serde_json::Map<String, Value>) {
    document.insert("skipped_rows".to_owned(), json::int(counts.skipped()));
    document.insert("filled_values".to_owned(), json::int(counts.filled()));
    document.insert("skipped_windows".to_owned(), json::int(counts.windows()));
}

/// Returns the bytes of the file per tuple.
fn bytes_per_tuple(summary: &Summary) -> f64 {
    summary.file_bytes as f64 / summary.tuples.max(1) as f64
}

fn text(path: &Path, summary: &Summary, schema: &Schema, counts: &NullCounts, took: Duration) -> String {
    let order = match (summary.sorted_input, summary.runs) {
        (true, _) => "input was in order".to_owned(),
        (false, 0) => "sorted in memory".to_owned(),
        (false, runs) => format!("sorted on disk in {}", counted(runs, "run")),
    };
    let dropped = summary.rows - summary.tuples.min(summary.rows);
    let dropped =
        if dropped > 0 { format!(" of {}", counted(dropped + summary.tuples, "row")) } else { String::new() };
    let generation = match summary.generation {
        1 => String::new(),
        generation => format!(", generation {generation}"),
    };
    let (keys, values) = (Meaning::new(summary.key_type, &summary.key_logical), schema.value_meaning());
    let approximate = summary.approximate.map(|found| format!(", {}", found.describe())).unwrap_or_default();
    let tuples = counted(summary.tuples, schema.interval.map_or("tuple", |_| "interval"));
    format!(
        "built {}: {}{dropped}, {} to {}, {} bytes ({:.2} a tuple), {order}{generation}{approximate}{}{}, {:.1} s",
        path.display(),
        tuples,
        keys,
        printable(&values.to_string()),
        grouped(summary.file_bytes),
        bytes_per_tuple(summary),
        nulls_text(counts),
        kept_text(summary.kept, summary.left.as_deref()),
        took.as_secs_f64(),
    )
}

/// Returns `, 2 old generations kept`, and the reason if there are more.
pub(super) fn kept_text(kept: Option<usize>, left: Option<&str>) -> String {
    let kept = kept.map(|kept| format!(", {} kept", counted(kept as u64, "old generation")));
    let left = left.map(|why| format!(", some are left: {why}"));
    kept.into_iter().chain(left).collect()
}

fn document(path: &Path, summary: &Summary, took: Duration) -> serde_json::Map<String, Value> {
    let spine: Vec<Value> = summary
        .spine
        .iter()
        .map(|(encoding, lines)| json!({ "encoding": encoding, "lines": lines.to_string() }))
        .collect();
    let mut document = json::document("build");
    document.insert("file".to_owned(), path.display().to_string().into());
    document.insert("rows".to_owned(), json::int(summary.rows));
    document.insert("tuples".to_owned(), json::int(summary.tuples));
    document.insert("file_bytes".to_owned(), json::int(summary.file_bytes));
    document.insert("bytes_per_tuple".to_owned(), bytes_per_tuple(summary).into());
    document.insert("file_id".to_owned(), hex(&summary.file_id).into());
    document.insert("generation".to_owned(), json::int(summary.generation));
    document.insert("kept_generations".to_owned(), summary.kept.into());
    document.insert("key_type".to_owned(), summary.key_type.to_string().into());
    document.insert("value_type".to_owned(), summary.value_type.to_string().into());
    document.insert("key_logical".to_owned(), summary.key_logical.clone().into());
    document.insert("approximate".to_owned(), json::approximate(summary.approximate));
    document.insert("unique".to_owned(), summary.unique.into());
    document.insert("sorted_input".to_owned(), summary.sorted_input.into());
    document.insert("runs".to_owned(), json::int(summary.runs));
    document.insert("spine".to_owned(), spine.into());
    document.insert("seconds".to_owned(), took.as_secs_f64().into());
    document
}
