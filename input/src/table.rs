//! Several inputs as one source.

use crate::batches::{BatchSource, Columns, Extent};
use crate::body::Body;
use crate::convert::{self, Slice};
use crate::flat::Flat;
use crate::format::Format;
use crate::guard::Refused;
use crate::kind::Target;
use crate::names::Asked;
use crate::nulls::Nulls;
use crate::open::{open_body, open_path};
use crate::options::InputOptions;
use crate::paths::expanded;
use crate::problem::{fault, problem};
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use pleach_builder::{Chunk, Column, Schema, Source, SourceError, Starts};
use pleach_format::logical::matching;
use pleach_format::meta::TEXT_BYTES_MAX;
use pleach_format::{KeyType, ValueType};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

/// Name of the value column that holds row numbers.
const ROW: &str = "@row";

const STANDARD_INPUT: &str = "standard input";

/// Opens `inputs`, to be read one after the other; `-` is standard input, and folders and patterns stand for the
/// files in them ([`expanded`]). Reads headers, but no data.
///
/// # Errors
/// [`SourceError`] if an input cannot be opened or is not of its format, a column is missing or its type
/// cannot be stored, or the types of the inputs differ.
pub fn open(inputs: &[PathBuf], options: &InputOptions) -> Result<Box<dyn Source>, SourceError> {
    let mut table = Table::new(options)?;
    let mut standard_input = false;
    for path in &expanded(inputs)? {
        if path.as_os_str() == "-" {
            if standard_input {
                return Err(problem(STANDARD_INPUT, "", "it can be read only once: name it once"));
            }
            standard_input = true;
            table.add_stream(STANDARD_INPUT, Box::new(io::stdin()))?;
            continue;
        }
        let (source, bytes) = open_path(path, &table.options)?;
        let input = path.display().to_string();
        match bytes {
            // Thousands of inputs must not need thousands of open files: only the first stays open.
            Some(_) if !table.pending.is_empty() => {
                let schema = source.schema().clone();
                drop(source);
                table.agree(&input, &schema)?;
                table.count(schema.rows, bytes);
                table.pending.push_back((input, Pending::Path(path.clone())));
            }
            _ => table.add(&input, Pending::Open(source), bytes)?,
        }
    }
    table.finish()
}

/// Opens a stream of bytes as a table; messages call it `name`.
///
/// # Errors
/// The errors of [`open`]; also if neither `options.format` nor `options.raw` specifies the format.
pub fn open_stream(
    name: &str,
    stream: Box<dyn Read + Send>,
    options: &InputOptions,
) -> Result<Box<dyn Source>, SourceError> {
    let mut table = Table::new(options)?;
    table.add_stream(name, stream)?;
    table.finish()
}

/// Opens record batches as a table; messages call it `name`. Columns are chosen by the names of `schema`, which is that
/// of all batches.
///
/// # Errors
/// [`SourceError`] if a column is missing or its type cannot be stored.
pub fn open_batches(
    name: &str,
    schema: &arrow_schema::Schema,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    options: &InputOptions,
) -> Result<Box<dyn Source>, SourceError> {
    let flat = Flat::of(schema, options);
    let (schema, options) = flat.as_ref().map_or((schema, options), |flat| (&flat.schema, &flat.options));
    let mut table = Table::new(options)?;
    let columns = Columns::choose(name, schema, &table.options)?;
    let batches = batches.map(move |batch| {
        let batch =
            batch.and_then(|batch| flat.as_ref().map_or(Ok(batch.clone()), |flat| flat.batch(&batch)));
        batch.map_err(Refused::library)
    });
    let batches = Box::new(batches);
    let source = BatchSource::new(name, batches, columns, false, None, Extent::Read(Arc::default()));
    table.add(name, Pending::Open(Box::new(source)), None)?;
    table.finish()
}

/// An input that is yet to be read.
enum Pending {
    Path(PathBuf),
    Open(Box<dyn Source>),
}

/// Several inputs as one source.
struct Table {
    /// The given options, with the format of raw input set and without `@row`, which is handled here; and the
    /// choices of the first input.
    options: Asked,
    /// Type of the row numbers, if they are the values.
    row: Option<(ValueType, Target)>,
    schema: Option<Schema>,
    /// Name of the input whose schema that is.
    first: String,
    pending: VecDeque<(String, Pending)>,
    current: Option<(String, Box<dyn Source>)>,
    rows: u64,
    /// Row numbers of one chunk.
    numbers: Vec<u64>,
    bytes_before: u64,
    bytes_total: Option<u64>,
}

impl Table {
    fn new(options: &InputOptions) -> Result<Self, SourceError> {
        let mut options = options.clone();
        if options.raw.is_some() {
            if options.format.is_some_and(|format| format != Format::Raw) {
                return Err(problem("input", "", "--raw and another format: give one of the two"));
            }
            options.format = Some(Format::Raw);
        }
        let mut row = None;
        if options.value.as_deref() == Some(ROW) && options.value_type != Some(ValueType::None) {
            let value_type = options.value_type.unwrap_or(ValueType::U64);
            let target =
                Target::of_value(value_type).filter(|target| !target.kind.is_bytes()).ok_or_else(|| {
                    let text = format!("row numbers cannot be {value_type}");
                    problem("input", "", fault(text, "choose a numeric type with --value-type"))
                })?;
            row = Some((value_type, target));
        }
        if row.is_some() && options.kmers.is_some() {
            return Err(problem("input", "", "the value of a k-mer is its count: leave out --value"));
        }
        if row.is_some() && options.nulls == Nulls::Skip {
            let text = "row numbers are those of all rows, but --nulls skip leaves rows out";
            return Err(problem("input", "", fault(text, "leave such rows out of the input")));
        }
        if options.value.as_deref() == Some(ROW) {
            options.value = None;
            options.value_type = Some(ValueType::None);
        }
        Ok(Self {
            options: Asked::new(options),
            row,
            schema: None,
            first: String::new(),
            pending: VecDeque::new(),
            current: None,
            rows: 0,
            numbers: Vec::new(),
            bytes_before: 0,
            bytes_total: Some(0),
        })
    }

    fn add_stream(&mut self, name: &str, stream: Box<dyn Read + Send>) -> Result<(), SourceError> {
        // The first letter of sequences says which format they have.
        let format = self.options.format.or(self.options.kmers.map(|_| Format::Fasta));
        let format = format.ok_or_else(|| problem(name, "", "unknown format: give it with --format"))?;
        let source = open_body(name, Body::Stream(stream, None), format, &self.options)?;
        self.add(name, Pending::Open(source), None)
    }

    fn add(&mut self, input: &str, pending: Pending, bytes: Option<u64>) -> Result<(), SourceError> {
        if let Pending::Open(source) = &pending {
            let schema = source.schema().clone();
            self.agree(input, &schema)?;
            self.count(schema.rows, bytes);
        }
        self.options.settle();
        self.pending.push_back((input.to_owned(), pending));
        Ok(())
    }

    /// Takes the schema of the first input; refuses one that differs from it in anything but names.
    fn agree(&mut self, input: &str, schema: &Schema) -> Result<(), SourceError> {
        let Some(first) = &self.schema else {
            for (role, name) in [("key", &schema.key_name), ("value", &schema.value_name)] {
                if name.len() > TEXT_BYTES_MAX {
                    let text = format!("the name of the {role} column is longer than {TEXT_BYTES_MAX} bytes");
                    return Err(problem(input, "", fault(text, "")));
                }
            }
            self.schema = Some(Schema { rows: Some(0), ..schema.clone() });
            input.clone_into(&mut self.first);
            return Ok(());
        };
        let pairs = [
            ("key", schema.key_meaning(), first.key_meaning()),
            ("value", schema.value_meaning(), first.value_meaning()),
        ];
        for (role, here, there) in pairs {
            // Rows are not converted silently: the user names a type to choose the unit.
            if matching(&here, &there).is_none_or(|common| !common.is_same(&here, &there)) {
                let text = format!("its {role}s are {here}, but those of {} are {there}", self.first);
                return Err(problem(
                    input,
                    "",
                    fault(text, format!("give --{role}-type, or build from inputs of one type")),
                ));
            }
        }
        Ok(())
    }

    fn count(&mut self, rows: Option<u64>, bytes: Option<u64>) {
        if let Some(schema) = &mut self.schema {
            schema.rows = schema.rows.zip(rows).and_then(|(sum, more)| sum.checked_add(more));
        }
        self.bytes_total = self.bytes_total.zip(bytes).and_then(|(sum, more)| sum.checked_add(more));
    }

    fn finish(mut self) -> Result<Box<dyn Source>, SourceError> {
        let row = self.row;
        let Some(schema) = &mut self.schema else {
            return Err(problem("input", "", "there is none: name at least one"));
        };
        if self.options.nulls == Nulls::Skip {
            // Nobody knows how many rows will be left out.
            schema.rows = None;
        }
        schema.derived = self.options.derived.filter(|_| !self.options.changes);
        if let Some((value_type, _)) = row {
            schema.value_type = value_type;
            "row".clone_into(&mut schema.value_name);
        }
        if let Some(interval) = self.options.interval.clone().filter(|_| !self.options.changes) {
            let is_counted = self.options.nulls != Nulls::Skip;
            // Rows are counted over all inputs.
            let name = match (self.pending.front(), self.pending.len()) {
                (Some((name, _)), 1) => name.clone(),
                _ => "the inputs".to_owned(),
            };
            let starts = Starts::new(Box::new(self), &name, interval.is_exclusive, is_counted)?;
            return Ok(Box::new(starts));
        }
        Ok(Box::new(self))
    }

    /// Opens the next input; returns `None` after the last one.
    fn advance(&mut self) -> Result<Option<&mut Box<dyn Source>>, SourceError> {
        if self.current.is_none() {
            let Some((input, pending)) = self.pending.pop_front() else { return Ok(None) };
            let source = match pending {
                Pending::Open(source) => source,
                Pending::Path(path) => {
                    let (source, _) = open_path(&path, &self.options)?;
                    // The file may have been replaced since it was examined; `@row` does not concern it.
                    let mut schema = source.schema().clone();
                    if let Some((value_type, _)) = self.row {
                        schema.value_type = value_type;
                    }
                    self.agree(&input, &schema)?;
                    source
                }
            };
            self.current = Some((input, source));
        }
        Ok(self.current.as_mut().map(|(_, source)| source))
    }

    fn number_rows(&mut self, chunk: &mut Chunk, mut values: Column) -> Result<(), SourceError> {
        let Some((value_type, target)) = self.row else { return Ok(()) };
        let end = self.rows + chunk.len() as u64;
        self.numbers.clear();
        self.numbers.extend(self.rows..end);
        let width = value_type.bytes();
        if !matches!((&values, width), (Column::U32(_), 4) | (Column::U64(_), 8)) {
            values = Column::with_width(width);
        }
        values.clear();
        convert::append(Slice::U64(&self.numbers), target, &mut values).map_err(|index| {
            let text = format!("row number {} does not fit {}", self.numbers[index], target.kind.bounds());
            let input = self.current.as_ref().map_or("input", |(input, _)| input);
            problem(input, "", fault(text, "choose another type with --value-type"))
        })?;
        chunk.values = values;
        Ok(())
    }
}

impl Source for Table {
    fn schema(&self) -> &Schema {
        // `finish` returns no table without a schema; the type system requires a value all the same.
        const NONE: &Schema = &Schema {
            key_type: KeyType::U64,
            value_type: ValueType::None,
            key_name: String::new(),
            value_name: String::new(),
            key_logical: String::new(),
            value_logical: String::new(),
            rows: Some(0),
            interval: None,
            derived: None,
            unique: None,
            approximate: None,
        };
        self.schema.as_ref().unwrap_or(NONE)
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        let values = if self.row.is_some() { std::mem::take(&mut chunk.values) } else { Column::None };
        chunk.clear();
        while let Some(source) = self.advance()? {
            source.next_chunk(chunk, tuples_max.max(1))?;
            if !chunk.is_empty() {
                self.number_rows(chunk, values)?;
                self.rows += chunk.len() as u64;
                return Ok(());
            }
            self.bytes_before += source.progress().0;
            self.current = None;
        }
        if self.schema().rows.is_some_and(|rows| rows != self.rows) {
            let text = format!("expected {} rows, found {}", self.schema().rows.unwrap_or(0), self.rows);
            return Err(problem("input", "", fault(text, "do not change the input while it is read")));
        }
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        let within = self.current.as_ref().map_or(0, |(_, source)| source.progress().0);
        (self.bytes_before + within, self.bytes_total)
    }
}
