//! `pleach build`: builds one file from tables.
//!
//! Arguments that can never be right are refused before anything is opened. The builder watches [`Progress`],
//! so Ctrl-C ends it with no files left, even while it waits for a silent pipe.

use crate::cli::{BuildArgs, Global};
use crate::failure::{self, Code, ExitStatus, Failure};
use crate::output;
use crate::parse::ValueTypes;
use crate::progress::Progress;
use crate::render::json;
use crate::render::text::{counted, grouped, hex};
use crate::search;
use pleach::ReadError;
use pleach_builder::publish::Rules;
use pleach_builder::source::{Schema, Source, SourceError};
use pleach_builder::{BuildError, BuildOptions, Summary};
use pleach_input::{FORMATS, Format, FormatRow, InputOptions, Types};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub fn run(args: &BuildArgs, global: &Global) -> Result<ExitStatus, Failure> {
    check(args)?;
    let inputs = output::inputs(args.inputs.iter().map(PathBuf::as_path));
    output::check(&args.output, &Rules::index(inputs.clone(), args.force))?;
    let started = Instant::now();
    let progress = Progress::new(global);
    let mut source = open(args, global).map_err(|error| progress.failed(source_failure(&error)))?;
    let options = BuildOptions { inputs, ..build_options(args) };
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

/// Refuses arguments that no file and no data could make right.
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
    if args.raw.is_some() {
        return Ok(());
    }
    for path in &args.inputs {
        let format = input_format(path, args.format, |_| true)?;
        if format.is_some_and(|format| format.row().types == Types::Required) && !path.is_dir() {
            let path = path.display();
            return Err(Failure::usage(format!(
                "raw input has no types: {path}: give --raw, such as --raw u64,u64"
            )));
        }
    }
    Ok(())
}

/// Returns the format of an input: the given one, or that of its extension. `None` for a folder, which opening
/// it reports. `accepts` selects the formats that the failure lists.
pub(super) fn input_format(
    path: &Path,
    given: Option<Format>,
    accepts: impl Fn(&FormatRow) -> bool,
) -> Result<Option<Format>, Failure> {
    if given.is_some() {
        return Ok(given);
    }
    if path.as_os_str() == "-" {
        return Err(Failure::usage("unknown format: standard input: give it with --format"));
    }
    let format = Format::from_path(path);
    if format.is_some() || path.is_dir() {
        return Ok(format);
    }
    let advice = pleach_input::looks_like(path).unwrap_or_else(|| {
        let known: Vec<&str> = FORMATS.iter().filter(|row| accepts(row)).map(|row| row.name).collect();
        format!("give --format, one of {}", known.join(" "))
    });
    Err(Failure::usage(format!("unknown extension: {}: {advice}", path.display())))
}

fn open(args: &BuildArgs, global: &Global) -> Result<Box<dyn Source>, SourceError> {
    let (value_type, value_logical, fields) = match &args.value_type {
        None => (None, None, &[][..]),
        Some(ValueTypes::One(one)) => (Some(one.kind), one.logical.clone(), &[][..]),
        Some(ValueTypes::Fields(kinds)) => (None, None, &kinds[..]),
    };
    let options = InputOptions {
        format: args.format,
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
        header: args.header.map(Into::into).unwrap_or_default(),
        ..InputOptions::default()
    };
    pleach_input::open(&args.inputs, &options)
}

fn build_options(args: &BuildArgs) -> BuildOptions {
    let default = BuildOptions::default();
    BuildOptions {
        unique: args.unique.map(Into::into),
        sorted: args.sorted,
        memory_bytes: args.memory.unwrap_or(default.memory_bytes),
        threads: args.threads,
        temp_dir: args.temp.clone(),
        keep: args.keep,
        force: args.force,
        ..default
    }
    .with_layout(args.layout)
}

/// Converts the error of a refused input: bad data, or a file that cannot be read.
pub fn source_failure(error: &SourceError) -> Failure {
    match search::system_error(error.cause.as_deref().map(|cause| cause as _)) {
        Some(system) if error.place.is_empty() => Failure::io("cannot read", Path::new(&error.input), system),
        Some(system) => {
            let text = format!("cannot read: {}: {}: {}", error.input, error.place, failure::advise(system));
            Failure::at(Code::of_io(system), text, &error.input)
        }
        None => {
            let code = if Path::new(&error.input).is_dir() { Code::NotAFile } else { Code::Input };
            Failure::at(code, format!("bad input: {}", in_our_words(error)), &error.input)
        }
    }
}

/// Returns the error with the library's words in brackets, as a reason, and not in place of the advice.
fn in_our_words(error: &SourceError) -> String {
    let text = error.to_string();
    let Some(cause) = error.cause.as_ref().map(ToString::to_string) else { return text };
    match text.strip_suffix(&cause).and_then(|text| text.strip_suffix(": ")) {
        Some(what) => {
            let cause = cause.replace(": ", " - ");
            format!("{what} ({cause}): check that its format is that of its name, or make it again")
        }
        None => text,
    }
}

/// Converts the error of a build.
pub fn build_failure(error: &BuildError) -> Failure {
    let code = match error {
        BuildError::Source(error) => return source_failure(error),
        BuildError::Interrupted => return Failure::Interrupted,
        // Messages count rows from 1, as those about the data do.
        BuildError::Unsorted { row, previous, key } => {
            let text = format!(
                "input is not sorted: row {}: key {key} comes after key {previous}: build without --sorted, or sort it",
                row + 1
            );
            return Failure::new(Code::Input, text);
        }
        BuildError::Duplicate { key, row } => {
            let place = row.map_or(String::new(), |row| format!(" again in row {}", row + 1));
            let text =
                format!("duplicate key: {key}{place}: remove it, or choose --unique first or --unique last");
            return Failure::new(Code::Input, text);
        }
        // A Pleach file that was whole when it was opened.
        BuildError::Io { operation, path, source }
            if *operation == "reading" && source.kind() == io::ErrorKind::UnexpectedEof =>
        {
            return search::reading(path)(ReadError::MappingLost);
        }
        BuildError::Io { operation, path, source } => {
            return Failure::io(&format!("{operation} failed"), path, source);
        }
        BuildError::Base { path, source } => return search::refused(path, source),
        BuildError::Damaged { path, .. } => {
            return Failure::at(Code::Damaged, error.to_string(), path.display());
        }
        BuildError::Types { .. } => Code::TypesDiffer,
        BuildError::Busy { .. } => Code::Busy,
        BuildError::TooLarge { .. } | BuildError::LastGeneration { .. } => Code::TooLarge,
        BuildError::ManyChanges { .. } | BuildError::OutOfMemory { .. } => Code::OutOfMemory,
        BuildError::NotPackable { .. } | BuildError::NotUnique { .. } => Code::Input,
        BuildError::TargetIsDirectory { .. } | BuildError::TargetNotRegular { .. } => Code::NotAFile,
        BuildError::Threads { .. } | BuildError::ManyFiles { .. } => Code::Limit,
        BuildError::OutputIsInput { .. }
        | BuildError::OutputIsKept { .. }
        | BuildError::TargetForeign { .. }
        | BuildError::TargetIsIndex { .. }
        | BuildError::GenerationTaken { .. } => Code::WouldOverwrite,
        BuildError::Overtaken { .. } | BuildError::LockClosed { .. } => Code::Busy,
        _ => return Failure::operational(error.to_string()),
    };
    Failure::new(code, error.to_string())
}

/// Returns the bytes of the file per tuple.
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
    let generation = match summary.generation {
        1 => String::new(),
        generation => format!(", generation {generation}"),
    };
    let (keys, values) = (schema.key_meaning(), schema.value_meaning());
    format!(
        "built {}: {}{dropped}, {} to {}, {} bytes ({:.2} a tuple), {order}{generation}{}, {:.1} s",
        path.display(),
        counted(summary.tuples, "tuple"),
        keys,
        values,
        grouped(summary.file_bytes),
        bytes_per_tuple(summary),
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
    document.insert("unique".to_owned(), summary.unique.into());
    document.insert("sorted_input".to_owned(), summary.sorted_input.into());
    document.insert("runs".to_owned(), json::int(summary.runs));
    document.insert("spine".to_owned(), spine.into());
    document.insert("seconds".to_owned(), took.as_secs_f64().into());
    document
}
