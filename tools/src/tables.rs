//! The tables of a build, and its options, as the command line has them.
//!
//! Arguments that can never be right are refused before anything is opened.

use crate::cli::{BuildArgs, Global, IntervalEnd, OverlapHow, TableArgs};
use crate::failure::Failure;
use crate::message::Message;
use crate::request::InputTypes;
use pleach_builder::source::{Source, SourceError};
use pleach_builder::{BuildOptions, Layout, Overlap};
use pleach_input::{FORMATS, Format, FormatRow, InputOptions, Interval, NullCounts, Types};
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

/// Refuses arguments that no file and no data could make right.
pub fn check(args: &BuildArgs) -> Result<(), Failure> {
    if args.output.as_os_str() == "-" {
        return Err(Failure::usage(
            Message::new("cannot write to standard output").at("pleach build").advise("name a file with -o"),
        ));
    }
    if args.table.raw.is_some() && args.table.format.is_some_and(|format| format != Format::Raw) {
        return Err(Failure::usage(
            Message::new("--raw with another --format").at("pleach build").advise("give one of the two"),
        ));
    }
    let has_interval = interval(&args.table).is_some();
    if args.table.interval.is_some() && args.table.key_type.as_ref().is_some_and(|named| named.is_network) {
        let message = Message::new("networks say where they end").at("--interval");
        return Err(Failure::usage(message.advise("leave it out, or choose the key type ip")));
    }
    if !has_interval && args.overlap == OverlapHow::Last {
        let message = Message::new("there are no intervals").at("--overlap");
        return Err(Failure::usage(message.advise("name the column of their ends with --interval END")));
    }
    let derived = args.table.key_type.as_ref().and_then(|named| named.derived);
    if has_interval && derived.is_some() {
        let message = Message::new("intervals need keys that are numbers").at("--key-type");
        return Err(Failure::usage(message.advise("choose another key type, or leave out --interval")));
    }
    if has_interval && args.unique.is_some() {
        let message = Message::new("intervals do not overlap, so no key occurs twice").at("--unique");
        return Err(Failure::usage(message.advise("choose --overlap last to let the later row win")));
    }
    let table = &args.table;
    types(table).check(table.key.as_deref(), table.value.as_deref(), has_interval)?;
    if table.raw.is_some() || table.kmers.is_some() {
        return Ok(());
    }
    for path in &args.table.inputs {
        let format = input_format(path, args.table.format, |_| true)?;
        if format.is_some_and(|format| format.row().types == Types::Required) && !path.is_dir() {
            let message = Message::new("raw input has no types").at(path.display());
            return Err(Failure::usage(message.advise("give --raw, such as --raw u64,u64")));
        }
    }
    Ok(())
}

/// Returns the format of an input: the given one, or that of its extension. `None` for a folder, whose files
/// opening examines. `accepts` selects the formats that the failure lists.
pub fn input_format(
    path: &Path,
    given: Option<Format>,
    accepts: impl Fn(&FormatRow) -> bool,
) -> Result<Option<Format>, Failure> {
    if given.is_some() {
        return Ok(given);
    }
    if path.as_os_str() == "-" {
        return Err(Failure::usage(
            Message::new("unknown format").at("standard input").advise("give it with --format"),
        ));
    }
    let format = Format::from_path(path);
    if format.is_some() || path.is_dir() {
        return Ok(format);
    }
    let message = Message::new("unknown extension").at(path.display());
    Err(Failure::usage(match pleach_input::looks_like(path) {
        Some((found, advice)) => message.more(found).advise(advice),
        None => {
            let known: Vec<&str> = FORMATS.iter().filter(|row| accepts(row)).map(|row| row.name).collect();
            message.advise(format!("give --format, one of {}", known.join(" ")))
        }
    }))
}

/// What is read: the inputs by their names, or bytes that were read from a stream before.
#[derive(Clone, Debug)]
pub enum Origin {
    /// The inputs.
    Inputs,
    /// The bytes of the only input, a stream.
    Bytes(Arc<[u8]>),
}

/// Opens the tables of a build.
pub fn open(
    args: &TableArgs,
    global: &Global,
    counts: &NullCounts,
    from: &Origin,
) -> Result<Box<dyn Source>, SourceError> {
    let options = InputOptions {
        format: args.format,
        key: args.key.clone(),
        value: args.value.clone(),
        raw_values: global.raw_values,
        raw: args.raw,
        delimiter: args.delimiter,
        no_header: args.no_header,
        header: args.header.map(Into::into).unwrap_or_default(),
        interval: interval(args),
        nulls: args.nulls.clone(),
        kmers: args.kmers,
        null_counts: counts.clone(),
        ..types(args).options()
    };
    match from {
        Origin::Inputs => pleach_input::open(&args.inputs, &options),
        Origin::Bytes(bytes) => {
            let path = args.inputs.first().filter(|path| path.as_os_str() != "-");
            let name = path.map_or("standard input".to_owned(), |path| path.display().to_string());
            pleach_input::open_stream(&name, Box::new(Cursor::new(Arc::clone(bytes))), &options)
        }
    }
}

/// Returns the requested types.
fn types(args: &TableArgs) -> InputTypes<'_> {
    InputTypes { key: args.key_type.as_deref(), value: args.value_type.as_deref() }
}

/// Returns where intervals end, if keys begin some.
fn interval(args: &TableArgs) -> Option<Interval> {
    let is_exclusive = args.interval_end == IntervalEnd::Exclusive;
    let is_network = args.key_type.as_ref().is_some_and(|named| named.is_network);
    let end = args.interval.clone();
    (is_network || end.is_some()).then_some(Interval { end, is_exclusive })
}

/// Returns the options of the builder.
pub fn build_options(args: &BuildArgs) -> BuildOptions {
    let default = BuildOptions::default();
    BuildOptions {
        unique: args.unique.map(Into::into),
        overlap: match args.overlap {
            OverlapHow::Error => Overlap::Error,
            OverlapHow::Last => Overlap::Last,
        },
        sorted: args.sorted,
        memory_bytes: args.memory.unwrap_or(default.memory_bytes),
        threads: args.threads,
        temp_dir: args.temp.clone(),
        keep: args.keep,
        force: args.force,
        ..default
    }
    .with_layout(Layout { values: args.values.map_or(args.layout.values, Into::into), ..args.layout })
}
