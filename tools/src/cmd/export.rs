//! `pleach export`: writes the tuples of a file as a table, in key order.
//!
//! Names and logical types come from META, so building from the exported table gives the same file again.
//! Tuples are copied in bulk and written batch by batch: memory does not grow with the file.

use crate::any::Any;
use crate::cli::{ExportArgs, Global, Verify};
use crate::errors;
use crate::failure::{self, Code, ExitStatus, Failure};
use crate::meant::Meant;
use crate::message::Message;
use crate::output::{self, Cell, Field, Format, Gathered, OutputError, TableWriter, Target, writer};
use crate::progress::Progress;
use crate::render::json;
use crate::render::text::{counted, grouped};
use crate::search::{self, Opened};
use crate::stdout;
use pleach::{Datum, Index, Key, Meta, Record, Typed, Value};
use pleach_builder::publish::Rules;
use pleach_format::logical::Composite;
use pleach_format::{Logical, Meaning};
use std::time::Instant;

/// Tuples per batch.
const BATCH: usize = 1 << 16;
/// Maximum bytes of the strings of a batch, without its last tuple.
const BATCH_BYTES: usize = 16 << 20;

pub fn run(args: &ExportArgs, global: &Global) -> Result<ExitStatus, Failure> {
    let started = Instant::now();
    let to_stdout = args.output.as_os_str() == "-";
    let format = format(args, to_stdout)?;
    let rules = Rules::table(output::inputs([args.file.as_path()]), args.force);
    if !to_stdout {
        output::check(&args.output, &rules)?;
    }
    // A table outlives its file: no damaged data may get into it.
    let opened = Opened::whole(&args.file, global, Verify::Touched)?;
    let (index, tuples) = (opened.index(), opened.len());
    let mut meta = index.meta().map_err(errors::reading(&args.file))?;
    let progress = Progress::new(global);
    let mut target = if to_stdout { Target::standard_output() } else { Target::create(&args.output, rules)? };
    let format = format.for_target(&target);
    let record = search::record(index, &args.file)?
        .map(|record| if global.raw_values { record.plain() } else { record });
    if global.raw_values {
        meta.key_logical.clear();
        if record.is_none() {
            meta.value_logical.clear();
        }
    }
    let composite = composite(index, &meta);
    let is_any = opened.set().is_some() || composite.is_some();
    if is_any || Any::is_needed(index, record.as_ref(), &Meant::default()) {
        let written = write_any(&opened, record.as_ref(), args, &meta, format, &mut target, &progress);
        written.map_err(|stop| stop.failure(&target, args))?;
    } else {
        pleach::with_typed!(index, |view| write(&view, args, &meta, format, &mut target, &progress))
            .map_err(errors::typing(&args.file))??;
    }
    let bytes = target.bytes();
    target.commit()?;
    drop(progress);
    let took = started.elapsed().as_secs_f64();
    if to_stdout {
        // The table was written to standard output.
    } else if global.json {
        let mut document = json::document("export");
        document.insert("file".to_owned(), args.file.display().to_string().into());
        document.insert("output".to_owned(), args.output.display().to_string().into());
        document.insert("format".to_owned(), format.name().into());
        document.insert("rows".to_owned(), json::int(tuples));
        document.insert("output_bytes".to_owned(), json::int(bytes));
        document.insert("seconds".to_owned(), took.into());
        stdout::print_json(document)?;
    } else if !global.quiet {
        failure::say(&format!(
            "exported {}: {}, {} bytes, {took:.1} s",
            args.output.display(),
            counted(tuples, "tuple"),
            grouped(bytes),
        ));
    }
    opened.end(ExitStatus::Success, global)
}

fn format(args: &ExportArgs, to_stdout: bool) -> Result<Format, Failure> {
    let known = "csv tsv parquet arrow";
    match args.format {
        Some(format) => Format::from_input(format).ok_or_else(|| {
            let message = Message::new("format is for input only").at("pleach export");
            Failure::usage(message.advise(format!("use one of {known}")))
        }),
        None if to_stdout => Ok(Format::Csv),
        None => Format::of_path(&args.output).ok_or_else(|| {
            let message = Message::new("unknown extension").at(args.output.display());
            Failure::usage(message.advise(format!("give --format, one of {known}")))
        }),
    }
}

fn write<K: Key + Cell, V: Value + Cell>(
    view: &Typed<'_, K, V>,
    args: &ExportArgs,
    meta: &Meta,
    format: Format,
    target: &mut Target,
    progress: &Progress,
) -> Result<(), Failure> {
    let written = write_rows(view, args, meta, format, &mut *target, progress);
    written.map_err(|stop| stop.failure(target, args))
}

fn write_any(
    opened: &Opened,
    record: Option<&Record>,
    args: &ExportArgs,
    meta: &Meta,
    format: Format,
    target: &mut Target,
    progress: &Progress,
) -> Result<(), Stop> {
    let (index, tuples) = (opened.index(), opened.len());
    let keys = Field::of_keys(index.key_type(), &meta.key_name, &meta.key_logical);
    let composite = composite(index, meta);
    let values = match record {
        Some(record) => record.fields().iter().map(Field::of_field).collect(),
        None => {
            let value = Field::of_type(index.value_type(), &meta.value_name, "value", &meta.value_logical);
            value.into_iter().collect::<Vec<_>>()
        }
    };
    let fields: Vec<Field> = keys.into_iter().chain(values).collect();
    let mut table: Box<dyn TableWriter + '_> = writer(format, &fields, target)?;
    let meant = Meant::default();
    let any = Any::new(index, &args.file, record, &meant).of_set(opened.set());
    let mut rank = 0;
    while rank < tuples {
        if progress.is_interrupted() {
            return Err(Stop::Failure(Failure::Interrupted));
        }
        let most = tuples.min(rank + (BATCH / 8) as u64);
        let mut columns: Option<(Option<Gathered>, Vec<Gathered>)> = None;
        let (mut end, mut bytes) = (rank, 0);
        while end < most && bytes < BATCH_BYTES {
            if any.is_left_out(end).map_err(Stop::Failure)? {
                end += 1;
                continue;
            }
            let (key, value) = any.tuple(end).map_err(Stop::Failure)?;
            end += 1;
            bytes += string_bytes(&key) + string_bytes(&value);
            let (keys, values) =
                columns.get_or_insert_with(|| (Gathered::like(&key), Gathered::values(record, &value)));
            keys.iter_mut().for_each(|column| column.push(&key));
            match record {
                Some(record) => {
                    let packed = value.packed();
                    let fields = values.iter_mut().zip(record.values(&packed));
                    fields.for_each(|(column, field)| column.push_field(field));
                }
                None => values.iter_mut().for_each(|column| column.push(&value)),
            }
        }
        if let Some((keys, values)) = &columns {
            let parts = match (&composite, keys) {
                (Some(composite), Some(keys)) => Gathered::of_parts(composite, keys)?,
                _ => Vec::new(),
            };
            let keys = keys.iter().filter(|_| composite.is_none()).chain(&parts);
            let columns: Vec<_> = keys.chain(values).map(Gathered::numbers).collect();
            table.write_batch(&columns)?;
        }
        rank = end;
        progress.show("exporting", rank, Some(tuples));
    }
    Ok(table.finish()?)
}

/// Returns the columns of composite keys; `None` if keys are no such keys.
fn composite(index: &Index, meta: &Meta) -> Option<Composite> {
    match Meaning::new(index.key_type(), &meta.key_logical).logical {
        Logical::Composite(composite) => Some(composite),
        _ => None,
    }
}

/// Returns the bytes of a datum, if it is a string.
fn string_bytes(datum: &Datum<'_>) -> usize {
    match datum {
        Datum::Bytes(bytes) | Datum::Utf8(bytes) => bytes.len(),
        _ => 0,
    }
}

/// Reason why writing stopped.
enum Stop {
    Failure(Failure),
    Output(OutputError),
}

impl Stop {
    fn failure(self, target: &Target, args: &ExportArgs) -> Failure {
        match self {
            Self::Failure(failure) => failure,
            Self::Output(OutputError::Io(error)) => target.failure(&error),
            Self::Output(OutputError::Unfit(message)) => errors::placed(Code::Failed, message, &args.output),
        }
    }
}

impl From<OutputError> for Stop {
    fn from(error: OutputError) -> Self {
        Self::Output(error)
    }
}

fn write_rows<K: Key + Cell, V: Value + Cell>(
    view: &Typed<'_, K, V>,
    args: &ExportArgs,
    meta: &Meta,
    format: Format,
    target: &mut Target,
    progress: &Progress,
) -> Result<(), Stop> {
    let fields = Field::of_tuples((K::TYPE, V::TYPE), meta);
    let mut table: Box<dyn TableWriter + '_> = writer(format, &fields, target)?;
    let batch = usize::try_from(view.len()).unwrap_or(BATCH).min(BATCH);
    let mut keys = vec![K::default(); batch];
    let mut values = vec![V::default(); batch];
    let mut rank = 0;
    while rank < view.len() {
        if progress.is_interrupted() {
            return Err(Stop::Failure(Failure::Interrupted));
        }
        let count = view
            .copy_range(rank, &mut keys, &mut values)
            .map_err(|error| Stop::Failure(errors::reading(&args.file)(error)))?;
        let columns: Vec<_> =
            [K::numbers(&keys[..count]), V::numbers(&values[..count])].into_iter().flatten().collect();
        table.write_batch(&columns)?;
        rank += count as u64;
        progress.show("exporting", rank, Some(view.len()));
    }
    Ok(table.finish()?)
}
