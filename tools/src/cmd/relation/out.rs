//! An answer as an index file, as a table, or as lines on standard output.
//!
//! Files appear whole or not at all, and only after every byte that was read has been verified. An answer
//! whose keys are out of order is sorted through an index file; if the output is an index file, no other one
//! is needed.

use crate::cli::Global;
use crate::cli::relation::{Out, OutFormat};
use crate::errors::{self, relation_failure};
use crate::failure::{self, Code, ExitStatus, Failure};
use crate::meant::Meant;
use crate::message::Message;
use crate::output::{self, Field, Gathered, OutputError, TableWriter, Target, writer};
use crate::progress::Progress;
use crate::render::json;
use crate::render::text::{counted, grouped, put_datum_json, put_meant, put_meant_json};
use crate::search;
use crate::stdout::{self, Output};
use arrow_schema::DataType;
use pleach::{Datum, Index, KeyType, Record, ValueType};
use pleach_builder::BuildOptions;
use pleach_builder::publish::Rules;
use pleach_format::approximate::Approximate;
use pleach_format::logical::Form;
use pleach_format::{Logical, Meaning};
use pleach_relation::expr::Predicate;
use pleach_relation::{Answer, Chunk, Relation, Schema, StreamOptions};
use pleach_set::LeftOut;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A running relational command.
pub struct Job<'a> {
    name: &'static str,
    out: &'a Out,
    global: &'a Global,
    inputs: Vec<PathBuf>,
    /// Format of the file, if the output is a file.
    format: Option<OutFormat>,
    /// Tuples of the answer at most.
    limit: u64,
    progress: Progress,
    started: Instant,
    /// Files of sets that the answer is made without.
    left_out: Vec<LeftOut>,
}

impl<'a> Job<'a> {
    /// Checks the destination of the answer.
    pub fn new(
        name: &'static str,
        out: &'a Out,
        global: &'a Global,
        inputs: Vec<PathBuf>,
    ) -> Result<Self, Failure> {
        let format = match (&out.output, out.format) {
            (None, _) => None,
            (Some(_), Some(format)) => Some(format),
            (Some(path), None) if path.as_os_str() == "-" => Some(OutFormat::Csv),
            (Some(path), None) => Some(of_path(path).ok_or_else(|| {
                let known = "pleach csv tsv parquet arrow";
                let message = Message::new("unknown extension").at(path.display());
                Failure::usage(message.advise(format!("give --format, one of {known}")))
            })?),
        };
        let file = out.output.as_ref().filter(|path| path.as_os_str() != "-");
        if let Some(path) = file {
            output::check(path, &rules(out, format, &inputs))?;
        } else if format == Some(OutFormat::Pleach) {
            let message = Message::new("an index file cannot be written to standard output");
            let message = message.at(format!("pleach {name}"));
            return Err(Failure::usage(message.advise("name a file with -o, or choose another --format")));
        }
        let progress = Progress::new(global).reading_tuples();
        let (limit, started) = (u64::MAX, Instant::now());
        let left_out = Vec::new();
        Ok(Self { name, out, global, inputs, format, limit, progress, started, left_out })
    }

    /// Says in the end that the answer is made without some files of sets.
    pub fn without(self, left_out: Vec<LeftOut>) -> Self {
        Self { left_out, ..self }
    }

    /// Makes at most so many tuples.
    pub fn limited(self, limit: Option<u64>) -> Self {
        Self { limit: limit.unwrap_or(u64::MAX), ..self }
    }

    /// Explains how the command works, if requested.
    pub fn explain(&self, lines: &[String]) {
        if self.out.explain {
            search::explain(lines);
        }
    }

    /// Returns the options for building files.
    pub fn build_options(&self) -> BuildOptions {
        let default = BuildOptions::default();
        BuildOptions {
            memory_bytes: self.out.memory.unwrap_or(default.memory_bytes),
            threads: self.out.threads,
            temp_dir: self.out.temp.clone(),
            inputs: output::inputs(self.inputs.iter().map(PathBuf::as_path)),
            force: self.out.force,
            ..default
        }
    }

    /// Returns the folder for unnamed files.
    pub fn folder(&self) -> PathBuf {
        let file = self.out.output.as_ref().filter(|path| path.as_os_str() != "-");
        let beside = file.and_then(|path| path.parent()).map(Path::to_owned);
        let beside =
            beside.map(|folder| if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder });
        self.out.temp.clone().or(beside).unwrap_or_else(std::env::temp_dir)
    }

    /// Writes the answer to its destination.
    pub fn finish(&self, answer: Answer<'_>) -> Result<ExitStatus, Failure> {
        self.explain(&[answer.plan().to_owned()]);
        if answer.schema().approximate.is_some() {
            self.explain(&["approximate: equal keys may stand for different ones".to_owned()]);
        }
        if let Some(found) = approximate(answer.schema()).filter(|found| found.rate.is_some()) {
            self.explain(&[found.describe()]);
        }
        let status = self
            .written(answer.limited(self.limit).watched(&self.progress))
            .map_err(|failure| self.progress.failed(failure))?;
        search::without(&self.left_out, status, self.global)
    }

    fn written(&self, answer: Answer<'_>) -> Result<ExitStatus, Failure> {
        if let (Some(OutFormat::Pleach), Some(path)) = (self.format, &self.out.output) {
            let made =
                answer.to_index(path, &self.build_options(), &self.progress).map_err(relation_failure)?;
            return self.told(path, made.tuples, made.file_bytes, made.approximate);
        }
        if self.out.count {
            let count = answer.count().map_err(relation_failure)?;
            return stdout::print_count(self.name, count, self.global.json);
        }
        if answer.schema().is_sorted {
            return self.table_or_lines(answer);
        }
        let index = temporary(answer, self)?;
        let input = Relation::from_index(&index);
        let schema = input.expr_schema().map_err(relation_failure)?;
        let all = Predicate::parse("true", &schema)
            .map_err(|error| Failure::new(Code::Failed, errors::expression_message(&error)))?;
        let sorted =
            pleach_relation::select_where(input, &all, StreamOptions::default()).map_err(relation_failure)?;
        self.table_or_lines(sorted.watched(&self.progress))
    }

    fn table_or_lines(&self, answer: Answer<'_>) -> Result<ExitStatus, Failure> {
        let columns = Columns::of(answer.schema(), self.global.raw_values);
        let (Some(format), Some(path)) = (self.format.and_then(table_format), &self.out.output) else {
            return lines(answer, &columns, self.global.json);
        };
        let to_stdout = path.as_os_str() == "-";
        let mut target = match to_stdout {
            true => Target::standard_output(),
            false => Target::create(path, rules(self.out, self.format, &self.inputs))?,
        };
        let format = format.for_target(&target);
        let tuples = self.table(answer, &columns, format, &mut target).map_err(|stop| match stop {
            Stop::Failure(failure) => failure,
            Stop::Output(OutputError::Io(error)) => target.failure(&error),
            Stop::Output(OutputError::Unfit(message)) => errors::placed(Code::Failed, message, path),
        })?;
        let bytes = target.bytes();
        target.commit()?;
        if to_stdout {
            return Ok(ExitStatus::Success);
        }
        self.told(path, tuples, bytes, columns.approximate)
    }

    fn table(
        &self,
        mut answer: Answer<'_>,
        columns: &Columns,
        format: output::Format,
        target: &mut Target,
    ) -> Result<u64, Stop> {
        let mut table: Box<dyn TableWriter + '_> = writer(format, &columns.fields(), target)?;
        let mut tuples = 0;
        while let Some(chunk) = answer.next_chunk().map_err(|error| Stop::Failure(relation_failure(error)))? {
            tuples += chunk.len() as u64;
            let gathered = columns.gathered(&chunk)?;
            let numbers: Vec<_> = gathered.iter().map(Gathered::numbers).collect();
            table.write_batch(&numbers)?;
        }
        table.finish()?;
        Ok(tuples)
    }

    fn told(
        &self,
        path: &Path,
        tuples: u64,
        bytes: u64,
        approximate: Option<Approximate>,
    ) -> Result<ExitStatus, Failure> {
        let seconds = self.started.elapsed().as_secs_f64();
        if self.global.json {
            let mut document = json::document(self.name);
            document.insert("output".to_owned(), path.display().to_string().into());
            document.insert("tuples".to_owned(), json::int(tuples));
            document.insert("output_bytes".to_owned(), json::int(bytes));
            document.insert("approximate".to_owned(), json::approximate(approximate));
            document.insert("seconds".to_owned(), seconds.into());
            stdout::print_json(document)?;
        } else if !self.global.quiet {
            let (name, path) = (self.name, path.display());
            failure::say(&format!(
                "{name} made {path}: {}, {} bytes, {seconds:.1} s",
                counted(tuples, "tuple"),
                grouped(bytes),
            ));
        }
        Ok(ExitStatus::Success)
    }
}

/// Returns how often the keys of an answer stand for others, if they are shorter than those they stand for.
fn approximate(schema: &Schema) -> Option<Approximate> {
    let distinct = schema.approximate?;
    let logical = Meaning::new(schema.key_type, &schema.key_logical).logical;
    Approximate::of(&logical, &distinct.to_string(), distinct)
}

/// Returns the rules for replacing the output.
fn rules(out: &Out, format: Option<OutFormat>, inputs: &[PathBuf]) -> Rules {
    let inputs = output::inputs(inputs.iter().map(PathBuf::as_path));
    match format {
        Some(OutFormat::Pleach) => Rules::index(inputs, out.force),
        _ => Rules::table(inputs, out.force),
    }
}

/// Reason why writing stopped.
enum Stop {
    Failure(Failure),
    Output(OutputError),
}

impl From<OutputError> for Stop {
    fn from(error: OutputError) -> Self {
        Self::Output(error)
    }
}

fn of_path(path: &Path) -> Option<OutFormat> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pleach")) {
        return Some(OutFormat::Pleach);
    }
    Some(match output::Format::of_path(path)? {
        output::Format::Csv => OutFormat::Csv,
        output::Format::Tsv => OutFormat::Tsv,
        output::Format::Parquet => OutFormat::Parquet,
        output::Format::Arrow | output::Format::ArrowStream => OutFormat::Arrow,
    })
}

fn table_format(format: OutFormat) -> Option<output::Format> {
    match format {
        OutFormat::Pleach => None,
        OutFormat::Csv => Some(output::Format::Csv),
        OutFormat::Tsv => Some(output::Format::Tsv),
        OutFormat::Parquet => Some(output::Format::Parquet),
        OutFormat::Arrow => Some(output::Format::Arrow),
    }
}

/// Writes an answer to an index file without a name.
pub fn temporary(answer: Answer<'_>, job: &Job<'_>) -> Result<Index, Failure> {
    let folder = job.folder();
    let file =
        answer.to_unnamed_index(&folder, &job.build_options(), &job.progress).map_err(relation_failure)?;
    pleach::contain_sigbus();
    let opened = Index::options().open_file(&file, &folder);
    opened.map_err(|error| errors::opening(&error))
}

/// A value of an answer: its name, and its fields if it is a record.
struct Value {
    name: &'static str,
    field: pleach_relation::Field,
    record: Option<Record>,
    /// Its type if it is the right key.
    key: Option<KeyType>,
    /// Formats in which its columns are printed.
    forms: Vec<Option<Form>>,
    /// Bit of `sides` that is set if it is present.
    side: u8,
}

/// Columns of an answer.
struct Columns {
    schema: Schema,
    approximate: Option<Approximate>,
    key_form: Option<Form>,
    values: Vec<Value>,
}

impl Columns {
    /// Makes the columns of an answer; with `is_raw` they are the stored integers.
    fn of(schema: &Schema, is_raw: bool) -> Self {
        let approximate = approximate(schema);
        let mut schema = schema.clone();
        if is_raw {
            let plain = |value_type, logical: &mut String| {
                let record = Record::of(value_type, logical);
                *logical = record.map_or_else(String::new, |record| record.plain().to_string());
            };
            schema.key_logical.clear();
            plain(schema.values.value_type, &mut schema.values.logical);
            if let Some(right) = &mut schema.right {
                plain(right.value_type, &mut right.logical);
            }
        }
        let key = (schema.key_type, schema.key_logical.as_str());
        let value = |name, field: &pleach_relation::Field, side| {
            let meant = Meant::new(key, (field.value_type, &field.logical));
            let record = Record::of(field.value_type, &field.logical);
            let forms = if record.is_some() { meant.fields } else { vec![meant.value] };
            Value { name, field: field.clone(), record, key: None, forms, side }
        };
        let key_form = Meant::new(key, (ValueType::None, "")).key_form();
        let right_key = || {
            let (name, logical) = (String::new(), schema.key_logical.clone());
            let field = pleach_relation::Field { name, value_type: ValueType::None, logical };
            let (key, forms) = (Some(schema.key_type), vec![key_form]);
            Value { name: "key_right", field, record: None, key, forms, side: 2 }
        };
        let values = match &schema.right {
            None => vec![value("value", &schema.values, 1)],
            Some(right) => {
                let left = [value("left", &schema.values, 1)].into_iter();
                left.chain(schema.has_right_keys.then(right_key)).chain([value("right", right, 2)]).collect()
            }
        };
        Self { schema, approximate, key_form, values }
    }

    /// Returns the columns of a table: `key,left,right` for a join, with `key_right` before `right` for an
    /// as-of or a band join and `sides` for an outer one; otherwise their own names.
    fn fields(&self) -> Vec<Field> {
        let schema = &self.schema;
        let is_pair = schema.right.is_some();
        let key_name = if is_pair { "" } else { &schema.key_name };
        let mut fields = Field::of_keys(schema.key_type, key_name, &schema.key_logical);
        for value in &self.values {
            if let Some(key) = value.key {
                fields.extend(Field::of_key(key, value.name, &value.field.logical));
                continue;
            }
            match &value.record {
                Some(record) => fields.extend(record.fields().iter().map(|field| {
                    let mut field = Field::of_field(field);
                    if is_pair {
                        field.name = format!("{}_{}", value.name, field.name);
                    }
                    field
                })),
                None => {
                    let name = if is_pair { "" } else { &value.field.name };
                    let (value_type, logical) = (value.field.value_type, &value.field.logical);
                    fields.extend(Field::of_type(value_type, name, value.name, logical));
                }
            }
        }
        if schema.has_sides {
            fields.push(Field {
                name: "sides".to_owned(),
                data_type: DataType::UInt8,
                form: None,
                metadata: HashMap::new(),
            });
        }
        fields
    }

    /// Returns the columns of a value.
    fn columns_of(value: &Value, chunk: &Chunk) -> Vec<Gathered> {
        if let Some(key) = value.key {
            return vec![Gathered::of_keys(key, &chunk.right_keys)];
        }
        let column = if value.side == 2 { &chunk.right } else { &chunk.values };
        match &value.record {
            Some(record) => Gathered::of_records(record, column),
            None => Gathered::of_values(value.field.value_type, column).into_iter().collect(),
        }
    }

    fn gathered(&self, chunk: &Chunk) -> Result<Vec<Gathered>, OutputError> {
        let keys = Gathered::of_keys(self.schema.key_type, &chunk.keys);
        let meaning = Meaning::new(self.schema.key_type, &self.schema.key_logical);
        let mut columns = match &meaning.logical {
            Logical::Composite(composite) => Gathered::of_parts(composite, &keys)?,
            _ => vec![keys],
        };
        columns.extend(self.values.iter().flat_map(|value| Self::columns_of(value, chunk)));
        if self.schema.has_sides {
            columns.push(Gathered::U8(chunk.sides.clone()));
        }
        Ok(columns)
    }
}

/// Prints lines on standard output: key and values separated by tabs, or an object each. A missing side of an
/// outer join is empty, or null.
fn lines(mut answer: Answer<'_>, columns: &Columns, is_json: bool) -> Result<ExitStatus, Failure> {
    let mut output = Output::new();
    let told =
        columns.approximate.map(|found| format!(",\"approximate\":{}", json::approximate(Some(found))));
    let line_end = format!("{}}}\n", told.unwrap_or_default());
    while let Some(chunk) = answer.next_chunk().map_err(relation_failure)? {
        let keys = Gathered::of_keys(columns.schema.key_type, &chunk.keys);
        let values: Vec<Vec<Gathered>> =
            columns.values.iter().map(|value| Columns::columns_of(value, &chunk)).collect();
        for row in 0..chunk.len() {
            let sides = chunk.sides.get(row).copied().unwrap_or(3);
            let out = &mut output.buffer;
            if is_json {
                out.extend_from_slice(b"{\"key\":");
                put_meant_json(&keys.datum(row), columns.key_form, out);
            } else {
                put_meant(&keys.datum(row), columns.key_form, out);
            }
            for (value, gathered) in
                columns.values.iter().zip(&values).filter(|(_, gathered)| !gathered.is_empty())
            {
                let is_there = sides & value.side != 0;
                match is_json {
                    true => put_value_json(value, gathered, row, is_there, out),
                    false => {
                        for (column, &form) in gathered.iter().zip(&value.forms) {
                            out.push(b'\t');
                            if is_there {
                                put_meant(&column.datum(row), form, out);
                            }
                        }
                    }
                }
            }
            out.extend_from_slice(if is_json { line_end.as_bytes() } else { b"\n" });
            output.relieve()?;
        }
    }
    output.flush()?;
    Ok(ExitStatus::Success)
}

fn put_value_json(value: &Value, gathered: &[Gathered], row: usize, is_there: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(value.name.as_bytes());
    out.extend_from_slice(b"\":");
    match (&value.record, is_there) {
        (_, false) => out.extend_from_slice(b"null"),
        (None, _) => gathered
            .iter()
            .zip(&value.forms)
            .for_each(|(column, &form)| put_meant_json(&column.datum(row), form, out)),
        (Some(record), _) => {
            for (index, (field, column)) in record.fields().iter().zip(gathered).enumerate() {
                let form = value.forms.get(index).copied().flatten();
                out.push(if index > 0 { b',' } else { b'{' });
                put_datum_json(&Datum::Utf8(field.name.as_bytes().into()), out);
                out.push(b':');
                put_meant_json(&column.datum(row), form, out);
            }
            out.push(b'}');
        }
    }
}
