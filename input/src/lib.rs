//! Tables as sources of tuples: CSV, TSV, Parquet, Arrow IPC, NumPy `.npy` and raw binary.
//!
//! [`open`] selects the format by the extension, and the key and value columns by [`InputOptions`]. Several
//! inputs are concatenated in argument order; columns are found by the names of the first. Input without an
//! extension (standard input, pipes) needs its format given. Each format is a [`Source`] of its own; `Table`
//! concatenates them, checks that they agree, and adds row numbers for `@row`. All text, lists of keys
//! included, is read by [`text::open`].
//!
//! Numbers, byte strings and texts keep their types unless others are requested; then they are converted
//! exactly or refused. `docs/INPUT.md` has the table.
//!
//! Row numbers in messages count the data rows of one input from 1; header lines and blank lines are not
//! rows. `@row` counts from 0, over all inputs.

mod arrow_ipc;
mod choose;
mod columnar;
mod convert;
mod csv;
mod fields;
mod guard;
mod logical;
mod messages;
mod names;
mod npy;
mod pages;
mod parquet;
mod raw;
mod strings;
pub mod text;

pub use logical::{logical_text, logical_type};

use pleach_builder::source::{Chunk, Column, Schema, Source, SourceError};
use choose::{Chosen, choose_key, choose_value};
use convert::{Slice, Target};
use names::{Asked, Names};
use pleach_format::logical::{Logical, matching, shown};
use pleach_format::meta::TEXT_BYTES_MAX;
use pleach_format::record::{FieldKind, Record};
use pleach_format::{KeyType, ValueType};
use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use text::{Content, MARK_BYTES};

/// Format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Text with fields separated by commas, quoted by `"` where needed.
    Csv,
    /// Text with fields separated by tabs, without quotes.
    Tsv,
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow IPC, file or stream.
    Arrow,
    /// A NumPy array.
    Npy,
    /// Little-endian tuples, key then value, without padding; byte strings unchanged.
    Raw,
}

/// Extensions of compressed files.
const PACKED: [&str; 10] = ["gz", "gzip", "zst", "zstd", "bz2", "xz", "lz4", "z", "zip", "bgz"];

/// Returns the extension of a path in lower case.
fn extension(path: &Path) -> Option<String> {
    path.extension()?.to_str().map(str::to_ascii_lowercase)
}

impl Format {
    /// Returns the format for the extension of `path`, in upper or lower case. A second extension may follow,
    /// for the compression: `t.csv.gz`. O(1).
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        let last = extension(path)?;
        let name = if PACKED.contains(&last.as_str()) { extension(&path.with_extension(""))? } else { last };
        Some(match name.as_str() {
            "csv" => Self::Csv,
            "tsv" | "tab" => Self::Tsv,
            "parquet" | "pq" => Self::Parquet,
            "arrow" | "arrows" | "ipc" | "feather" => Self::Arrow,
            "npy" => Self::Npy,
            "raw" | "bin" => Self::Raw,
            _ => return None,
        })
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "parquet" => Self::Parquet,
            "arrow" => Self::Arrow,
            "npy" => Self::Npy,
            "raw" => Self::Raw,
            _ => return Err(format!("unknown format '{text}': use csv, tsv, parquet, arrow, npy or raw")),
        })
    }
}

/// Meaning of the first line of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Header {
    /// Names of columns. Refused if the line may be data: no chosen column is text, none was chosen by its
    /// name, and all of the fields parse.
    #[default]
    Checked,
    /// Names of columns, whatever they look like.
    Each,
    /// Names of columns in the first input, and data in all others.
    First,
}

/// Options for reading inputs. By default the first column is the key and the second, if there is one, the
/// value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputOptions {
    /// Format of every input; determined by the extension if `None`.
    pub format: Option<Format>,
    /// Key column: its name, or its number from 0 (a name that is a number takes precedence). The first
    /// column if `None`.
    pub key: Option<String>,
    /// Value column, or `@row` for the row number. If `None`, the second column (the first if the second is
    /// the key), or no values if there is only one column. A list of columns separated by commas makes a
    /// record, unless the whole text is the name of a column.
    pub value: Option<String>,
    /// Key type; if `None`, that of the column, and `u64` for CSV and TSV.
    pub key_type: Option<KeyType>,
    /// Value type; if `None`, that of the column, and `u64` for CSV and TSV. `none` drops the values.
    pub value_type: Option<ValueType>,
    /// Types of the fields of a record: one for all, or one for each. If empty, those of the columns, and
    /// `u64` for CSV and TSV.
    pub field_types: Vec<FieldKind>,
    /// Meaning of the keys: the notation of texts, or the unit or scale to which numbers are converted. That
    /// of the column if `None`; [`Logical::Plain`] accepts no other one.
    pub key_logical: Option<Logical>,
    /// Meaning of the values, or of all fields of a record.
    pub value_logical: Option<Logical>,
    /// Meanings of the fields of a record: one for all, or one for each.
    pub field_logicals: Vec<Logical>,
    /// Keys and values with a logical type are given as the stored integers.
    pub raw_values: bool,
    /// Values are this record. Its fields are the columns of their names or, without a header, the columns
    /// after the key.
    pub record: Option<Record>,
    /// Types of raw tuples, all of fixed length. If set, every input is raw.
    pub raw: Option<(KeyType, ValueType)>,
    /// Delimiter of text; if `None`, a comma for CSV and a tab for TSV.
    pub delimiter: Option<u8>,
    /// The first line of text is data, and columns have only numbers.
    pub no_header: bool,
    /// Meaning of the first line of text, unless `no_header` is set.
    pub header: Header,
    /// The input is a table of changes: operation ([`pleach_builder::Op`]), key and value; a `del` may lack the value.
    /// By default these are the columns `op`, `key` (or `key_name`) and `value` (or `value_name`), and
    /// without a header the first three. CSV, TSV, Parquet and Arrow support such tables.
    pub changes: bool,
    /// Column of the operation in a table of changes; if `None`, `op` or the first column.
    pub op: Option<String>,
    /// Name of the key column in the file to be changed.
    pub key_name: Option<String>,
    /// Name of the value column in the file to be changed.
    pub value_name: Option<String>,
}

impl InputOptions {
    fn is_raw(&self) -> bool {
        self.raw_values || self.raw.is_some()
    }

    /// Returns the notation of key texts, if it is not that of a plain type.
    fn key_texts(&self) -> Option<&Logical> {
        self.key_logical.as_ref().filter(|_| !self.raw_values)
    }

    fn value_texts(&self) -> Option<&Logical> {
        self.value_logical.as_ref().filter(|_| !self.raw_values)
    }
}

/// Name of the value column that holds row numbers.
const ROW: &str = "@row";

/// Opens `inputs`, to be read one after the other; `-` is standard input. Reads headers, but no data.
///
/// # Errors
/// [`SourceError`] if an input cannot be opened or is not of its format, a column is missing or its type
/// cannot be stored, or the types of the inputs differ.
pub fn open(inputs: &[PathBuf], options: &InputOptions) -> Result<Box<dyn Source>, SourceError> {
    let mut table = Table::new(options)?;
    let mut standard_input = false;
    for path in inputs {
        if path.as_os_str() == "-" {
            if standard_input {
                return Err(problem(STANDARD_INPUT, "", "it can be read only once: name it once"));
            }
            standard_input = true;
            let format = stream_format(STANDARD_INPUT, &table.options)?;
            let body = Body::Stream(Box::new(io::stdin()));
            let source = open_body(STANDARD_INPUT, body, format, &table.options)?;
            table.add(STANDARD_INPUT, Pending::Open(source), None)?;
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
/// Those of [`open`]; also if neither `options.format` nor `options.raw` specifies the format.
pub fn open_stream(
    name: &str,
    stream: Box<dyn Read + Send>,
    options: &InputOptions,
) -> Result<Box<dyn Source>, SourceError> {
    let mut table = Table::new(options)?;
    let format = stream_format(name, &table.options)?;
    let source = open_body(name, Body::Stream(stream), format, &table.options)?;
    table.add(name, Pending::Open(source), None)?;
    table.finish()
}

const STANDARD_INPUT: &str = "standard input";

/// The bytes of an input.
enum Body {
    /// A regular file, which can seek, and its length.
    File(File, u64),
    /// Anything else.
    Stream(Box<dyn Read + Send>),
}

impl Body {
    /// Returns a stream, and its length if that is certain.
    fn into_stream(self) -> (Box<dyn Read + Send>, Option<u64>) {
        match self {
            Self::File(file, bytes) => (Box::new(file), Some(bytes)),
            Self::Stream(stream) => (stream, None),
        }
    }

    /// Returns `self`, unless its first bytes show a content other than `wanted`.
    fn checked(self, input: &str, wanted: Content) -> Result<Self, SourceError> {
        let mut head = [0; MARK_BYTES];
        let (bytes, body) = match self {
            Self::File(mut file, bytes) => {
                let read = fill(&mut file, &mut head).map_err(|error| unreadable(input, error))?;
                io::Seek::rewind(&mut file).map_err(|error| unreadable(input, error))?;
                (read, Self::File(file, bytes))
            }
            Self::Stream(mut stream) => {
                let read = fill(&mut *stream, &mut head).map_err(|error| unreadable(input, error))?;
                let first = io::Cursor::new(head[..read].to_vec());
                (read, Self::Stream(Box::new(first.chain(stream))))
            }
        };
        match Content::of(&head[..bytes]) {
            Some(found) if found != wanted => {
                let text = format!("it is {} and not {}: {}", found.name(), wanted.name(), found.advice());
                Err(problem(input, "", text))
            }
            None if text::is_plain(&head[..bytes]) => {
                let what = match wanted {
                    Content::Parquet => "it is no Parquet file that can be read",
                    Content::Arrow => "it is no Arrow file or stream that can be read",
                    _ => return Ok(body),
                };
                Err(problem(input, "", format!("{what}: it looks like text: give --format csv or tsv")))
            }
            _ => Ok(body),
        }
    }

    /// Returns a file that can seek: a stream is first copied to an unnamed temporary file.
    fn into_file(self, input: &str) -> Result<(File, u64), SourceError> {
        match self {
            Self::File(file, bytes) => Ok((file, bytes)),
            Self::Stream(mut stream) => {
                let failed = |error| caused(input, "", "cannot be kept in a temporary file", error);
                let mut file = tempfile::tempfile().map_err(failed)?;
                let bytes = io::copy(&mut stream, &mut file).map_err(failed)?;
                io::Seek::rewind(&mut file).map_err(failed)?;
                Ok((file, bytes))
            }
        }
    }
}

fn stream_format(input: &str, options: &Asked) -> Result<Format, SourceError> {
    options.format.ok_or_else(|| problem(input, "", "its format is not known: give it with --format"))
}

/// Describes the probable content of a file with an unknown extension, and what to do; `None` if its first
/// bytes do not show it.
#[must_use]
pub fn looks_like(path: &Path) -> Option<String> {
    let content = Content::of_path(path)?;
    let advice = match content {
        Content::Gzip | Content::Zstd => "give --format of what is in it, as csv",
        content => content.advice(),
    };
    Some(format!("it looks like {}: {advice}", content.noun()))
}

/// Opens one named input; returns its length, too, if it is a regular file.
fn open_path(path: &Path, options: &Asked) -> Result<(Box<dyn Source>, Option<u64>), SourceError> {
    let input = path.display().to_string();
    let file = File::open(path).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound && input.contains(['*', '?', '[']) {
            let text =
                "there is no such file: leave out the quotes, so that the shell finds the files it means";
            return problem(&input, "", text);
        }
        unreadable(&input, error)
    })?;
    let metadata = file.metadata().map_err(|error| unreadable(&input, error))?;
    if metadata.is_dir() {
        return Err(problem(&input, "", "is a folder: name the files in it"));
    }
    let format = options.format.or_else(|| Format::of_path(path)).ok_or_else(|| {
        let known = ".csv, .tsv, .parquet, .arrow, .npy";
        let advice = looks_like(path).unwrap_or_else(|| "give the format with --format".to_owned());
        problem(&input, "", format!("its extension is none of {known}: {advice}"))
    })?;
    // Raw tuples may begin with any bytes, but a name with the extension of a compressed file is no accident.
    if format == Format::Raw
        && extension(path).is_some_and(|last| PACKED.contains(&last.as_str()))
        && let Some(content) = Content::of_path(path).filter(|content| content.is_packed())
    {
        return Err(problem(&input, "", format!("it is {}: {}", content.name(), content.advice())));
    }
    let (body, bytes) = if metadata.is_file() {
        (Body::File(file, metadata.len()), Some(metadata.len()))
    } else {
        (Body::Stream(Box::new(file)), None)
    };
    Ok((open_body(&input, body, format, options)?, bytes))
}

fn open_body(
    input: &str,
    body: Body,
    format: Format,
    options: &Asked,
) -> Result<Box<dyn Source>, SourceError> {
    let body = match format {
        Format::Parquet => body.checked(input, Content::Parquet)?,
        Format::Arrow => body.checked(input, Content::Arrow)?,
        Format::Npy => body.checked(input, Content::Npy)?,
        Format::Csv | Format::Tsv | Format::Raw => body,
    };
    match format {
        Format::Csv | Format::Tsv => csv::open(input, body, format == Format::Tsv, options),
        Format::Parquet => guard::guarded(input, || parquet::open(input, body, options)),
        Format::Arrow => guard::guarded(input, || arrow_ipc::open(input, body, options)),
        Format::Npy | Format::Raw if options.changes => {
            let text = "it has no column for put, add and del: give changes as CSV, TSV, Parquet or Arrow";
            Err(problem(input, "", text))
        }
        Format::Npy => npy::open(input, body, options),
        Format::Raw => raw::open(input, body, options),
    }
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
    pending: std::collections::VecDeque<(String, Pending)>,
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
                return Err(problem(
                    "input",
                    "",
                    "it cannot be raw and of another format: give one of the two",
                ));
            }
            options.format = Some(Format::Raw);
        }
        let mut row = None;
        if options.value.as_deref() == Some(ROW) && options.value_type != Some(ValueType::None) {
            let value_type = options.value_type.unwrap_or(ValueType::U64);
            let target =
                Target::of_value(value_type).filter(|target| !target.kind.is_bytes()).ok_or_else(|| {
                    let text = format!("row numbers cannot be {value_type}: choose a type of numbers");
                    problem("input", "", format!("{text} with --value-type"))
                })?;
            row = Some((value_type, target));
        }
        if options.value.as_deref() == Some(ROW) {
            options.value = None;
            options.value_type = Some(ValueType::None);
        }
        Ok(Self {
            options: Asked::new(options),
            row,
            schema: None,
            pending: std::collections::VecDeque::new(),
            current: None,
            rows: 0,
            numbers: Vec::new(),
            bytes_before: 0,
            bytes_total: Some(0),
        })
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
                    return Err(problem(input, "", text));
                }
            }
            self.schema = Some(Schema { rows: Some(0), ..schema.clone() });
            return Ok(());
        };
        let pairs = [
            ("key", schema.key_meaning(), first.key_meaning()),
            ("value", schema.value_meaning(), first.value_meaning()),
        ];
        for (role, here, there) in pairs {
            // Rows are not converted silently: the user names a type to choose the unit.
            if matching(&here, &there).is_none_or(|common| !common.is_same(&here, &there)) {
                let text = format!("its {role}s are {here}, but those of the first input are {there}");
                return Err(problem(
                    input,
                    "",
                    format!("{text}: give --{role}-type, or build from one kind"),
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
        if let Some((value_type, _)) = row {
            schema.value_type = value_type;
            "row".clone_into(&mut schema.value_name);
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
            problem(input, "", format!("{text}: choose another type with --value-type"))
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
            let text = format!("{} rows were announced, {} came", self.schema().rows.unwrap_or(0), self.rows);
            return Err(problem("input", "", format!("{text}: do not change it while it is read")));
        }
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        let within = self.current.as_ref().map_or(0, |(_, source)| source.progress().0);
        (self.bytes_before + within, self.bytes_total)
    }
}

/// Makes an error without a cause.
fn problem(input: &str, place: impl Into<String>, text: impl Into<String>) -> SourceError {
    SourceError { input: input.to_owned(), place: place.into(), problem: text.into(), cause: None }
}

/// Makes an error with a cause, whose text is shown, too.
fn caused<E>(input: &str, place: impl Into<String>, text: &str, cause: E) -> SourceError
where
    E: Error + Send + Sync + 'static,
{
    let mut shown = cause.to_string();
    if let Some(end) = shown.find(" (os error ") {
        shown.truncate(end);
    }
    SourceError {
        input: input.to_owned(),
        place: place.into(),
        problem: format!("{text}: {shown}"),
        cause: Some(Box::new(cause)),
    }
}

fn unreadable(input: &str, error: io::Error) -> SourceError {
    caused(input, "", "cannot be read", error)
}

/// Formats a place as `row 17, column "id"`, with rows counted from 1.
fn place(row: u64, column: &str) -> String {
    format!("row {row}, {column}")
}

/// Makes the error for a number that does not fit.
fn misfit(input: &str, row: u64, label: &str, number: &str, target: Target) -> SourceError {
    if number == "NaN" && target.is_float_key() {
        return nan_key(input, row, label);
    }
    let option = target.option();
    if let (Some((_, from)), Some(form), Ok(word)) = (target.from, target.form, number.parse::<i64>()) {
        let (word, noun) = (shown(from, word), form.noun());
        let text = format!("{word} is no whole {noun}: choose a finer type with {option}, or another column");
        return problem(input, place(row, label), text);
    }
    let text = format!("{number} does not fit {}: choose another type with {option}", target.kind.bounds());
    problem(input, place(row, label), text)
}

/// Makes the error for a key that has no place in the order.
fn nan_key(input: &str, row: u64, label: &str) -> SourceError {
    let text = "NaN cannot be a key: remove the row, or choose another column with --key";
    problem(input, place(row, label), text)
}

/// Makes the error for a missing key or value.
fn missing(input: &str, row: u64, label: &str) -> SourceError {
    problem(input, place(row, label), "it is null: fill or drop such rows, or choose another column")
}

/// Makes the error for an unknown operation.
fn unknown_op(input: &str, row: u64, op: &[u8]) -> SourceError {
    let shown = String::from_utf8_lossy(&op[..op.len().min(40)]).escape_debug().to_string();
    let text = format!("'{shown}' is no operation: the first column says put, add or del");
    problem(input, format!("row {row}"), text)
}

/// Clears `chunk` and gives it the columns of `schema`.
fn prepare(chunk: &mut Chunk, schema: &Schema) {
    let give = |column: &mut Column, wanted: Column| {
        if std::mem::discriminant(column) != std::mem::discriminant(&wanted) {
            *column = wanted;
        }
    };
    chunk.clear();
    give(&mut chunk.keys, Column::for_key(schema.key_type));
    give(&mut chunk.values, Column::for_value(schema.value_type));
}

/// Reads until `buffer` is full or the input ends; returns the number of bytes read.
fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
