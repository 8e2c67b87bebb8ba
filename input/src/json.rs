//! NDJSON: a JSON object a line, as logs and exports of databases have them.
//!
//! The members of the objects are columns. Their names and types are those of the first lines, up to 1 MiB of them:
//! texts, booleans, whole numbers (`u64`, or `i64` if one is negative) and floats. A column for which another type is
//! requested is read as the letters of its numbers and texts, so that decimals and large integers stay exact. A member
//! that is missing is null. Members of other names are skipped without being looked at.
//!
//! Lines are read through [`crate::text`], and become record batches, which [`crate::batches`] reads.

use crate::batches::{BatchSource, Batches, Columns, Extent};
use crate::body::Body;
use crate::folders::Folders;
use crate::guard::Refused;
use crate::names::{Asked, Choice, Names};
use crate::options::InputOptions;
use crate::parse::Shown;
use crate::problem::{fault, problem};
use crate::text::{self, TextReader, Use};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use memchr::{memchr, memrchr};
use pleach_builder::{Source, SourceError};
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the first lines, from which names and types are taken.
const SAMPLE_BYTES: usize = 1 << 20;
/// Bytes per read call.
const READ_BYTES: usize = 1 << 20;
/// Rows of a batch, and bytes of lines at which it ends.
const BATCH_ROWS: usize = 16 << 10;
const BATCH_BYTES: usize = 4 << 20;
/// Maximum length of a line: an object that does not end must not use all memory.
const LINE_BYTES_MAX: usize = 64 << 20;

/// Opens a table of objects.
pub(crate) fn open(input: &str, body: Body, options: &Asked) -> Result<Box<dyn Source>, SourceError> {
    let (stream, _) = body.into_stream();
    let reader = text::open(input, stream, Use::Lines)?;
    let mut lines = Lines {
        input: input.to_owned(),
        reader,
        buffer: Vec::new(),
        start: 0,
        ended: false,
        failed: None,
        line: 0,
    };
    let mut has_line = false;
    // The first line may be longer than the sample.
    while !lines.ended && (lines.buffer.len() < SAMPLE_BYTES || !has_line) {
        match lines.refill() {
            Ok(()) => has_line = has_line || lines.buffer.contains(&b'\n'),
            // The rows before the error are read first.
            Err(error) if has_line => {
                lines.failed = Some(error);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let (names, found) = lines.sample()?;
    if names.is_empty() {
        return Err(problem(input, "", "it has no objects, but a line with a JSON object is expected"));
    }
    let folders = Folders::asked(input, &names, options)?;
    let all: Vec<String> = names.iter().cloned().chain(folders.names()).collect();
    let choice = Names::Named(&all).choose(input, options)?;
    let requested = requested(&choice, options);
    let types: Vec<DataType> = (0..names.len())
        .map(|at| if requested.contains(&at) { DataType::Utf8 } else { found[at].data_type() })
        .collect();
    let fields: Vec<Field> =
        names.iter().zip(&types).map(|(name, of)| Field::new(name, of.clone(), true)).collect();
    let schema = Schema::new(fields);
    let columns = Columns::choose(input, &schema, options)?;
    let projection = columns.projection();
    for &at in &projection {
        if found[at].is_mixed() && !requested.contains(&at) {
            let text = format!("it holds {}", found[at].words());
            let advice = "request a type with --key-type or --value-type, or choose another column";
            return Err(problem(input, format!("column {:?}", names[at]), fault(text, advice)));
        }
    }
    let schema = Arc::new(schema.project(&projection).map_err(|error| Refused::arrow(error).at(input, ""))?);
    let slots = projection.iter().enumerate().map(|(slot, &at)| (names[at].clone(), slot)).collect();
    let bytes = Arc::new(AtomicU64::new(0));
    let extent = Extent::Read(Arc::clone(&bytes));
    let batches: Batches = Box::new(Objects { lines, slots, schema, bytes, failed: false });
    Ok(Box::new(BatchSource::new(input, batches, columns, true, None, extent)))
}

/// Returns the columns for which a type is requested: they are read as letters. A column that is read twice, once
/// without a type, keeps its own.
fn requested(choice: &Choice, options: &InputOptions) -> Vec<usize> {
    let keys = || std::iter::once(choice.key).chain(choice.parts.iter().copied());
    let values = || choice.value.into_iter().chain(choice.fields.iter().flatten().copied());
    let has_key_types = options.key_type.is_some() || !options.part_types.is_empty();
    let has_value_types =
        options.value_type.is_some() || !options.field_types.is_empty() || options.record.is_some();
    // The ends of intervals are keys, too.
    let ends = usize::from(options.interval.is_some());
    match (has_key_types, has_value_types) {
        (true, true) => keys().chain(values()).collect(),
        (true, false) => {
            let plain: Vec<usize> = values().skip(ends).collect();
            keys().chain(values().take(ends)).filter(|column| !plain.contains(column)).collect()
        }
        (false, true) => {
            let plain: Vec<usize> = keys().chain(values().take(ends)).collect();
            values().skip(ends).filter(|column| !plain.contains(column)).collect()
        }
        (false, false) => Vec::new(),
    }
}

/// What the members of a column are.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    texts: bool,
    booleans: bool,
    whole: bool,
    negative: bool,
    fractions: bool,
    nested: bool,
}

impl Seen {
    fn see(&mut self, raw: &str) {
        match raw.as_bytes() {
            [b'"', ..] => self.texts = true,
            [b't' | b'f', ..] => self.booleans = true,
            [b'n', ..] => {}
            [b'{' | b'[', ..] => self.nested = true,
            number if number.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) => self.fractions = true,
            number => {
                self.whole = true;
                self.negative |= number.starts_with(b"-");
            }
        }
    }

    fn is_mixed(self) -> bool {
        let kinds = [self.texts, self.booleans, self.whole || self.fractions, self.nested];
        self.nested || kinds.into_iter().filter(|&is_one| is_one).count() > 1
    }

    fn data_type(self) -> DataType {
        match self {
            Self { texts: true, .. } | Self { nested: true, .. } => DataType::Utf8,
            Self { booleans: true, .. } => DataType::Boolean,
            Self { fractions: true, .. } => DataType::Float64,
            Self { negative: true, .. } => DataType::Int64,
            Self { whole: true, .. } => DataType::UInt64,
            // Nulls alone.
            _ => DataType::Utf8,
        }
    }

    fn words(self) -> String {
        let names = [
            (self.whole || self.fractions, "numbers"),
            (self.texts, "texts"),
            (self.booleans, "booleans"),
            (self.nested, "objects or lists"),
        ];
        let names: Vec<&str> =
            names.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name).collect();
        names.join(" and ")
    }
}

/// The members of an object, as they are written.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// Visits an object; keeps the members that `is_wanted` accepts.
struct Object<'f>(&'f dyn Fn(&str) -> bool);

impl<'de> Visitor<'de> for Object<'_> {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            if (self.0)(&name) {
                members.push((name, map.next_value()?));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Members(members))
    }
}

/// A name, borrowed if it has no escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Parses a line.
fn members<'a>(line: &'a [u8], is_wanted: &dyn Fn(&str) -> bool) -> Result<Members<'a>, serde_json::Error> {
    let mut parser = serde_json::Deserializer::from_slice(line);
    let members = parser.deserialize_map(Object(is_wanted))?;
    parser.end()?;
    Ok(members)
}

/// Lines of a text.
struct Lines {
    input: String,
    reader: TextReader,
    buffer: Vec<u8>,
    start: usize,
    ended: bool,
    /// An error behind the bytes of the buffer.
    failed: Option<SourceError>,
    /// Lines that were returned.
    line: u64,
}

impl Lines {
    /// Reads more bytes.
    fn refill(&mut self) -> Result<(), SourceError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        if self.buffer.len() > LINE_BYTES_MAX {
            let text = fault(format!("it has more than {LINE_BYTES_MAX} bytes"), "write an object a line");
            return Err(problem(&self.input, format!("line {}", self.line + 1), text));
        }
        let held = self.buffer.len();
        self.buffer.resize(held + READ_BYTES, 0);
        let read = self.reader.fill(&mut self.buffer[held..]);
        if read.is_err() {
            self.buffer.truncate(held);
        }
        let (bytes, ended) =
            read.map_err(|error| text::failed(&self.input, format!("after line {}", self.line), error))?;
        self.buffer.truncate(held + bytes);
        self.ended = ended;
        if ended && self.buffer.last().is_some_and(|&byte| byte != b'\n') {
            self.buffer.push(b'\n');
        }
        Ok(())
    }

    /// Returns the place of the next line that is not blank; `None` at the end.
    fn next(&mut self) -> Result<Option<(usize, usize)>, SourceError> {
        loop {
            match memchr(b'\n', &self.buffer[self.start..]) {
                Some(length) => {
                    let (start, end) = (self.start, self.start + length);
                    self.start = end + 1;
                    self.line += 1;
                    if !self.buffer[start..end].trim_ascii().is_empty() {
                        return Ok(Some((start, end)));
                    }
                }
                None if self.ended => return Ok(None),
                None => self.refill()?,
            }
        }
    }

    /// Returns the names of the members in the whole lines of the buffer, and what they are.
    fn sample(&self) -> Result<(Vec<String>, Vec<Seen>), SourceError> {
        let (mut names, mut seen, mut places) = (Vec::new(), Vec::<Seen>::new(), HashMap::new());
        let end = memrchr(b'\n', &self.buffer).map_or(0, |at| at + 1);
        for (number, line) in self.buffer[..end].split(|&byte| byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let Members(members) = members(line, &|_| true)
                .map_err(|error| problem(&self.input, format!("line {}", number + 1), bad(line, &error)))?;
            for (name, raw) in members {
                let at = *places.entry(name.to_string()).or_insert_with(|| {
                    names.push(name.to_string());
                    seen.push(Seen::default());
                    names.len() - 1
                });
                seen[at].see(raw.get());
            }
        }
        Ok((names, seen))
    }
}

/// Returns what is wrong with a line that is not an object.
fn bad(line: &[u8], error: &serde_json::Error) -> crate::problem::Fault {
    if line.trim_ascii_start().starts_with(b"[") {
        return fault("it is a list, not an object", "write an object a line, for example with jq -c '.[]'");
    }
    let shown = &line[..line.len().min(60)];
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or_default();
    let text = format!("not a JSON object ({reason}, at byte {}): {}", error.column(), Shown(shown));
    fault(text, "write a whole object on each line")
}

/// Batches of the objects.
struct Objects {
    lines: Lines,
    /// Number of each wanted column among those of a batch.
    slots: HashMap<String, usize>,
    schema: Arc<Schema>,
    bytes: Arc<AtomicU64>,
    failed: bool,
}

impl Iterator for Objects {
    type Item = Result<RecordBatch, Refused>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let batch = self.batch().transpose()?;
        self.failed = batch.is_err();
        self.bytes.store(self.lines.reader.taken(), Ordering::Relaxed);
        Some(batch)
    }
}

impl Objects {
    fn batch(&mut self) -> Result<Option<RecordBatch>, Refused> {
        let mut columns: Vec<Building> =
            self.schema.fields().iter().map(|field| Building::new(field.data_type())).collect();
        let (mut rows, mut bytes) = (0, 0);
        while rows < BATCH_ROWS && bytes < BATCH_BYTES {
            let Some((start, end)) = self.lines.next().map_err(|error| Refused::ours(fault_of(&error)))?
            else {
                break;
            };
            let line = &self.lines.buffer[start..end];
            let place = self.lines.line;
            let at = |what: &dyn fmt::Display| format!("line {place}: {what}");
            let Members(members) = members(line, &|name| self.slots.contains_key(name))
                .map_err(|error| Refused::ours(fault(at(&bad(line, &error)), "")))?;
            for (name, raw) in members {
                let Some(&slot) = self.slots.get(&*name) else { continue };
                let raw = raw.get();
                let column = &mut columns[slot];
                if column.len() > rows {
                    let text = at(&format!("{name:?} occurs twice"));
                    return Err(Refused::ours(fault(text, "give every member a name of its own")));
                }
                column.push(raw).map_err(|what| {
                    let (shown, found) =
                        (Shown(&raw.as_bytes()[..raw.len().min(60)]), at(&format!("column {name:?}")));
                    let advice = "request a type with --key-type or --value-type, or choose another column";
                    Refused::ours(fault(format!("{found}: {shown} is not {what}"), advice))
                })?;
            }
            rows += 1;
            bytes += end - start;
            columns.iter_mut().filter(|column| column.len() < rows).for_each(Building::push_null);
        }
        if rows == 0 {
            return Ok(None);
        }
        let arrays = columns.into_iter().map(Building::finish).collect();
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options);
        batch.map(Some).map_err(Refused::arrow)
    }
}

/// Returns the text of an error of reading, for a batch.
fn fault_of(error: &SourceError) -> crate::problem::Fault {
    let text = error.to_string();
    fault(text.strip_prefix(&format!("{}: ", error.input)).unwrap_or(&text), "")
}

/// A column that grows.
enum Building {
    Texts(Vec<Option<String>>),
    Booleans(Vec<Option<bool>>),
    Unsigned(Vec<Option<u64>>),
    Signed(Vec<Option<i64>>),
    Floats(Vec<Option<f64>>),
}

impl Building {
    fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Booleans(Vec::new()),
            DataType::UInt64 => Self::Unsigned(Vec::new()),
            DataType::Int64 => Self::Signed(Vec::new()),
            DataType::Float64 => Self::Floats(Vec::new()),
            _ => Self::Texts(Vec::new()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Texts(all) => all.len(),
            Self::Booleans(all) => all.len(),
            Self::Unsigned(all) => all.len(),
            Self::Signed(all) => all.len(),
            Self::Floats(all) => all.len(),
        }
    }

    fn push_null(&mut self) {
        match self {
            Self::Texts(all) => all.push(None),
            Self::Booleans(all) => all.push(None),
            Self::Unsigned(all) => all.push(None),
            Self::Signed(all) => all.push(None),
            Self::Floats(all) => all.push(None),
        }
    }

    /// Appends a member as it is written; or returns what it is not.
    fn push(&mut self, raw: &str) -> Result<(), &'static str> {
        if raw == "null" {
            self.push_null();
            return Ok(());
        }
        match self {
            Self::Texts(all) => match raw.as_bytes() {
                [b'"', ..] => all.push(Some(serde_json::from_str(raw).map_err(|_| "a text")?)),
                [b'{' | b'[', ..] => return Err("a number or a text"),
                _ => all.push(Some(raw.to_owned())),
            },
            Self::Booleans(all) => all.push(Some(raw.parse().map_err(|_| "a boolean")?)),
            Self::Unsigned(all) => all.push(Some(raw.parse().map_err(|_| "a whole number of u64")?)),
            Self::Signed(all) => all.push(Some(raw.parse().map_err(|_| "a whole number of i64")?)),
            Self::Floats(all) => {
                let number: f64 = raw.parse().map_err(|_| "a number")?;
                all.push(
                    Some(number).filter(|number| number.is_finite()).ok_or("a number of f64").map(Some)?,
                );
            }
        }
        Ok(())
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Texts(all) => Arc::new(StringArray::from(all)),
            Self::Booleans(all) => Arc::new(BooleanArray::from(all)),
            Self::Unsigned(all) => Arc::new(UInt64Array::from(all)),
            Self::Signed(all) => Arc::new(Int64Array::from(all)),
            Self::Floats(all) => Arc::new(Float64Array::from(all)),
        }
    }
}
