//! `pleach build`: tables to one file.
//!
//! The arguments that can never be right are refused before anything is opened. The builder watches
//! [`Progress`], so Ctrl-C ends it with nothing left behind, also while it waits for a silent pipe.

use crate::cli::{BuildArgs, Format, Global};
use crate::failure::{self, ExitStatus, Failure};
use crate::parse::ValueTypes;
use crate::progress::Progress;
use crate::render::json;
use crate::render::text::{counted, grouped, hex};
use crate::stdin::Stdin;
use pleach_builder::input::{self, InputOptions};
use pleach_builder::source::{Schema, Source, SourceError};
use pleach_builder::{BuildError, BuildOptions, Summary};
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

pub fn run(args: &BuildArgs, global: &Global) -> Result<ExitStatus, Failure> {
    check(args)?;
    let started = Instant::now();
    let progress = Progress::new(global);
    let mut source = open(args, global).map_err(|error| progress.failed(source_failure(&error)))?;
    let options = build_options(args);
    let summary = pleach_builder::build(&mut *source, &args.output, &options, &progress)
        .map_err(|error| progress.failed(build_failure(&error)))?;
    let schema = source.schema().clone();
    drop(progress);
    let took = started.elapsed();
    if global.json {
        let mut document = document(&args.output, &summary, took);
        if let Some(record) = schema.record() {
            document.insert("record".to_owned(), record.to_string().into());
        }
        document.insert("key_name".to_owned(), schema.key_name.into());
        document.insert("value_name".to_owned(), schema.value_name.into());
        json::print(document)?;
    } else if !global.quiet {
        failure::say(&text(&args.output, &summary, &schema, took));
    }
    Ok(ExitStatus::Success)
}

/// Refuses what no file and no data could make right.
fn check(args: &BuildArgs) -> Result<(), Failure> {
    if args.output.as_os_str() == "-" {
        return Err(Failure::usage("cannot write to standard output: pleach build: name a file with -o"));
    }
    if args.raw.is_some() && args.format.is_some_and(|format| format != Format::Raw) {
        return Err(Failure::usage("--raw with another --format: pleach build: give one of the two"));
    }
    if matches!(args.value_type, Some(ValueTypes::Fields(_)))
        && !args.value.as_ref().is_some_and(|list| list.contains(','))
    {
        let text =
            "types of fields without fields: --value-type: name the columns of a record with --value a,b";
        return Err(Failure::usage(text));
    }
    for path in &args.inputs {
        let standard_input = path.as_os_str() == "-";
        let of_path = if standard_input { None } else { input::Format::of_path(path) };
        let format = args.format.map(input_format).or(of_path);
        if args.raw.is_some() {
            continue;
        }
        match format {
            None if standard_input => {
                return Err(Failure::usage("format not known: standard input: give it with --format"));
            }
            None => {
                let known = "csv tsv parquet arrow npy raw";
                let path = path.display();
                return Err(Failure::usage(format!(
                    "format not known by its extension: {path}: give --format, one of {known}"
                )));
            }
            Some(input::Format::Raw) => {
                let path = path.display();
                return Err(Failure::usage(format!(
                    "raw input has no types: {path}: give --raw, as --raw u64,u64"
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

pub(super) fn input_format(format: Format) -> input::Format {
    match format {
        Format::Csv => input::Format::Csv,
        Format::Tsv => input::Format::Tsv,
        Format::Parquet => input::Format::Parquet,
        Format::Arrow => input::Format::Arrow,
        Format::Npy => input::Format::Npy,
        Format::Raw => input::Format::Raw,
    }
}

fn open(args: &BuildArgs, global: &Global) -> Result<Box<dyn Source>, SourceError> {
    let (value_type, value_logical, fields) = match &args.value_type {
        None => (None, None, &[][..]),
        Some(ValueTypes::One(one)) => (Some(one.kind), one.logical.clone(), &[][..]),
        Some(ValueTypes::Fields(kinds)) => (None, None, &kinds[..]),
    };
    let options = InputOptions {
        format: args.format.map(input_format),
        key: args.key.clone(),
        value: args.value.clone(),
        key_type: args.key_type.as_ref().map(|named| named.kind),
        value_type,
        field_types: fields.iter().map(|named| named.kind).collect(),
        key_logical: args.key_type.as_ref().and_then(|named| named.logical.clone()),
        value_logical,
        field_logicals: fields.iter().map(|named| named.logical.clone().unwrap_or_default()).collect(),
        raw_values: global.raw_values,
        raw: args.raw,
        delimiter: args.delimiter,
        no_header: args.no_header,
        ..InputOptions::default()
    };
    match args.inputs.as_slice() {
        [only] if only.as_os_str() == "-" => {
            input::open_stream("standard input", Box::new(Stdin::new()), &options)
        }
        inputs => input::open(inputs, &options),
    }
}

fn build_options(args: &BuildArgs) -> BuildOptions {
    let default = BuildOptions::default();
    BuildOptions {
        unique: args.unique.map(Into::into),
        sorted: args.sorted,
        memory_bytes: args.memory.unwrap_or(default.memory_bytes),
        threads: args.threads,
        temp_dir: args.temp.clone(),
        ..default
    }
    .with_layout(args.layout)
}

/// The input was refused: bad data, or a file that cannot be read.
fn source_failure(error: &SourceError) -> Failure {
    let system = error.cause.as_ref().and_then(|cause| cause.downcast_ref::<io::Error>());
    match system {
        Some(system) if error.place.is_empty() => Failure::io("cannot read", Path::new(&error.input), system),
        _ => Failure::operational(format!("bad input: {error}")),
    }
}

pub(super) fn build_failure(error: &BuildError) -> Failure {
    match error {
        BuildError::Source(error) => source_failure(error),
        BuildError::Interrupted => Failure::Interrupted,
        // Rows are counted from 1 for people, as in messages about the data.
        BuildError::Unsorted { row, previous, key } => Failure::operational(format!(
            "input is not sorted: row {}: key {key} comes after key {previous}: build without --sorted, or sort it",
            row + 1
        )),
        BuildError::Duplicate { key, row } => {
            let place = row.map_or(String::new(), |row| format!(" again in row {}", row + 1));
            Failure::operational(format!(
                "duplicate key: {key}{place}: remove it, or choose --unique first or --unique last"
            ))
        }
        BuildError::Io { operation, path, source } => {
            Failure::io(&format!("{operation} failed"), path, source)
        }
        _ => Failure::operational(error.to_string()),
    }
}

/// Bytes of the file for each tuple.
fn bytes_per_tuple(summary: &Summary) -> f64 {
    summary.file_bytes as f64 / summary.tuples.max(1) as f64
}

fn text(path: &Path, summary: &Summary, schema: &Schema, took: Duration) -> String {
    let order = match (summary.sorted_input, summary.runs) {
        (true, _) => "input was in order".to_owned(),
        (false, 0) => "sorted in memory".to_owned(),
        (false, runs) => format!("sorted on disk in {}", counted(runs, "run")),
    };
    let dropped = summary.rows - summary.tuples.min(summary.rows);
    let dropped =
        if dropped > 0 { format!(" of {}", counted(dropped + summary.tuples, "row")) } else { String::new() };
    let (keys, values) = (schema.key_meaning(), schema.value_meaning());
    format!(
        "built {}: {}{dropped}, {} to {}, {} bytes ({:.2} a tuple), {order}, {:.1} s",
        path.display(),
        counted(summary.tuples, "tuple"),
        keys,
        values,
        grouped(summary.file_bytes),
        bytes_per_tuple(summary),
        took.as_secs_f64(),
    )
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
    document.insert("key_type".to_owned(), summary.key_type.to_string().into());
    document.insert("value_type".to_owned(), summary.value_type.to_string().into());
    document.insert("unique".to_owned(), summary.unique.into());
    document.insert("sorted_input".to_owned(), summary.sorted_input.into());
    document.insert("runs".to_owned(), json::int(summary.runs));
    document.insert("spine".to_owned(), spine.into());
    document.insert("seconds".to_owned(), took.as_secs_f64().into());
    document
}
