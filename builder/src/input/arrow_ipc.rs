//! Arrow IPC, file and stream, and what Parquet shares with it: columns from record batches.
//!
//! A file is read by its footer; a stream, or a file that comes through a pipe, message by message
//! in the order of its bytes. Lengths in a file are checked against the file before the library
//! allocates by them.

use super::convert::{self, Kind, Slice, Target};
use super::fields::Fields;
use super::guard::guarded;
use super::logical::natural;
use super::strings::{self, CHUNK_BYTES, held_bytes};
use super::{
    Body, Chosen, InputOptions, Names, caused, choose_key, choose_value, fill, misfit, missing, prepare,
    problem, unknown_op,
};
use crate::source::{Chunk, Column, Op, Schema, Source, SourceError};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_ipc::reader::{FileReader, StreamDecoder, read_footer_length};
use arrow_ipc::{root_as_footer, root_as_message};
use arrow_schema::ArrowError;
use arrow_schema::{DataType, Schema as ArrowSchema};
use pleach_format::{KeyType, ValueType};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a read call.
const READ_BYTES: usize = 4 << 20;

/// Record batches, one after the other.
pub(super) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// The columns that were chosen among those of an Arrow schema.
pub(super) struct Columns {
    key: (usize, Chosen<KeyType>),
    value: Option<(usize, Chosen<ValueType>)>,
    /// Of a record.
    fields: Option<Fields>,
    /// Of a table of changes.
    op: Option<usize>,
    key_label: String,
    value_label: String,
    key_name: String,
    value_name: String,
}

impl Columns {
    pub(super) fn choose(
        input: &str,
        schema: &ArrowSchema,
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let names = Names::Named(&names);
        let (key, value, fields) = names.choose(input, options)?;
        let held = |index: usize| schema.field(index).data_type();
        let chosen_key =
            choose_key(input, &names.label(key), &held(key).to_string(), natural(held(key)), options)?;
        let chosen_value = value
            .map(|index| {
                let held = held(index);
                let natural = natural(held);
                let label = names.label(index);
                choose_value(input, &label, &held.to_string(), natural, options)
            })
            .transpose()?;
        let fields = fields
            .map(|columns| {
                Fields::choose(input, names, &columns, options, |index| {
                    Some((held(index).to_string(), natural(held(index))))
                })
            })
            .transpose()?;
        Ok(Self {
            fields,
            key_label: names.label(key),
            value_label: value.map_or_else(String::new, |index| names.label(index)),
            key_name: names.kept(key, "key"),
            value_name: value.map_or_else(String::new, |index| names.kept(index, "value")),
            key: (key, chosen_key),
            op: names.choose_op(input, options)?,
            value: value.zip(chosen_value),
        })
    }

    /// The columns to read that hold texts or binary strings of varying length: see
    /// [`super::parquet`].
    pub(super) fn varying(&self, schema: &ArrowSchema) -> Vec<usize> {
        let mut columns = self.projection();
        columns.retain(|&index| {
            let data_type = schema.field(index).data_type();
            natural(data_type).is_some_and(|natural| matches!(natural.kind, Kind::Bytes | Kind::Utf8))
        });
        columns
    }

    /// The columns to read, ascending.
    pub(super) fn projection(&self) -> Vec<usize> {
        let mut columns: Vec<usize> =
            [Some(self.key.0), self.value.as_ref().map(|(index, _)| *index), self.op]
                .into_iter()
                .flatten()
                .collect();
        columns
            .extend(self.fields.iter().flat_map(|fields| fields.columns.iter().map(|column| column.index)));
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    fn schema(&self, rows: Option<u64>) -> Schema {
        let (value_type, value_logical) = match &self.value {
            Some((_, chosen)) => (chosen.kind, chosen.logical.clone()),
            None => (ValueType::None, String::new()),
        };
        let mut schema = Schema {
            key_type: self.key.1.kind,
            value_type,
            key_name: self.key_name.clone(),
            value_name: self.value_name.clone(),
            key_logical: self.key.1.logical.clone(),
            value_logical,
            rows,
        };
        if let Some(fields) = &self.fields {
            fields.describe(&mut schema);
        }
        schema
    }
}

/// A source of record batches.
pub(super) struct BatchSource {
    input: String,
    batches: Batches,
    schema: Schema,
    columns: Columns,
    /// Columns of a batch that are the key and the value.
    key_at: usize,
    value_at: Option<usize>,
    op_at: Option<usize>,
    /// Of a record: the columns, and where they are in a batch.
    fields: Option<Fields>,
    fields_at: Vec<usize>,
    /// The batch that is being read: key, value, and the next row.
    key: Option<ArrayRef>,
    value: Option<ArrayRef>,
    field_arrays: Vec<ArrayRef>,
    ops: Vec<Op>,
    next: usize,
    rows: u64,
    extent: Extent,
}

/// How progress in bytes is told.
pub(super) enum Extent {
    /// By the share of the rows in so many bytes.
    Bytes(u64),
    /// By the bytes that were read so far.
    Read(Arc<AtomicU64>),
}

impl BatchSource {
    /// `projected` says whether the batches hold only [`Columns::projection`].
    pub(super) fn new(
        input: &str,
        batches: Batches,
        mut columns: Columns,
        projected: bool,
        rows: Option<u64>,
        extent: Extent,
    ) -> Self {
        let projection = columns.projection();
        let at = |index: usize| {
            if projected { projection.iter().position(|&column| column == index).unwrap_or(0) } else { index }
        };
        let fields_at =
            columns.fields.iter().flat_map(|fields| fields.columns.iter().map(|column| at(column.index)));
        Self {
            fields_at: fields_at.collect(),
            field_arrays: Vec::new(),
            input: input.to_owned(),
            batches,
            schema: columns.schema(rows),
            fields: columns.fields.take(),
            key_at: at(columns.key.0),
            value_at: columns.value.as_ref().map(|(index, _)| at(*index)),
            op_at: columns.op.map(at),
            ops: Vec::new(),
            columns,
            key: None,
            value: None,
            next: 0,
            rows: 0,
            extent,
        }
    }

    /// Takes the next batch that has rows. False at the end.
    fn advance(&mut self) -> Result<bool, SourceError> {
        let input = self.input.clone();
        guarded(&input, || self.advance_unguarded())
    }

    fn advance_unguarded(&mut self) -> Result<bool, SourceError> {
        loop {
            let batch = match self.batches.next() {
                None => {
                    self.key = None;
                    self.value = None;
                    self.field_arrays.clear();
                    return Ok(false);
                }
                Some(Ok(batch)) => batch,
                Some(Err(error)) => {
                    let place = format!("after row {}", self.rows);
                    return Err(caused(&self.input, place, "cannot be read", error));
                }
            };
            if batch.num_rows() == 0 {
                continue;
            }
            self.key = Some(self.column(&batch, self.key_at, &self.columns.key_label, &[])?);
            self.ops = match self.op_at {
                Some(at) => self.ops_of(&batch, at)?,
                None => Vec::new(),
            };
            self.value = match self.value_at {
                Some(at) => Some(self.column(&batch, at, &self.columns.value_label, &self.ops)?),
                None => None,
            };
            if let Some(fields) = &self.fields {
                let columns = fields.columns.iter().zip(&self.fields_at);
                self.field_arrays = columns
                    .map(|(column, &at)| {
                        self.column_of(&batch, at, &column.label, column.target.kind, &self.ops)
                    })
                    .collect::<Result<_, _>>()?;
            }
            self.next = 0;
            return Ok(true);
        }
    }

    /// The operations of a batch.
    fn ops_of(&self, batch: &RecordBatch, at: usize) -> Result<Vec<Op>, SourceError> {
        let array = self.column(batch, at, "column of operations", &[])?;
        let strings = Strings::of(&array, 0, array.len()).ok_or_else(|| {
            let text = format!("it holds {}, not the texts put, add and del", array.data_type());
            problem(&self.input, "column of operations", text)
        })?;
        (0..array.len())
            .map(|index| {
                let text = strings.get(index);
                Op::from_name(text).ok_or_else(|| unknown_op(&self.input, self.rows + 1 + index as u64, text))
            })
            .collect()
    }

    /// A column of a batch without nulls (but where `ops` deletes, whose values mean nothing), decoded if it is
    /// a dictionary of numbers. That of strings may be a thousand times as long when it is decoded.
    fn column(
        &self,
        batch: &RecordBatch,
        at: usize,
        label: &str,
        ops: &[Op],
    ) -> Result<ArrayRef, SourceError> {
        let value = self.columns.value.as_ref();
        self.column_of(batch, at, label, value.map_or(Kind::U32, |(_, chosen)| chosen.target.kind), ops)
    }

    fn column_of(
        &self,
        batch: &RecordBatch,
        at: usize,
        label: &str,
        kind: Kind,
        ops: &[Op],
    ) -> Result<ArrayRef, SourceError> {
        let Some(array) = batch.columns().get(at) else {
            return Err(problem(&self.input, label, "it is missing in some batches: the file is damaged"));
        };
        // Of a dictionary, keys and values may both be null.
        let mut array = Arc::clone(array);
        if let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
            let deletes = |index: usize| ops.get(index) == Some(&Op::Del);
            let bad = (0..nulls.len()).find(|&index| nulls.is_null(index) && !deletes(index));
            if let Some(index) = bad {
                return Err(missing(&self.input, self.rows + 1 + index as u64, label));
            }
            // A row that is not null stands in for those that are.
            let stand_in = (0..nulls.len()).find(|&index| !nulls.is_null(index));
            let rows: arrow_array::UInt64Array = match stand_in {
                Some(stand_in) => (0..nulls.len())
                    .map(|index| Some(if nulls.is_null(index) { stand_in } else { index } as u64))
                    .collect(),
                None => return Ok(stand_in_of(kind, array.len())),
            };
            array = arrow_select::take::take(&array, &rows, None)
                .map_err(|error| caused(&self.input, label, "cannot be read", error))?;
        }
        match array.data_type() {
            DataType::Dictionary(_, values) if !is_strings(values) => {
                let dictionary = array.as_any_dictionary();
                arrow_select::take::take(dictionary.values(), dictionary.keys(), None)
                    .map_err(|error| caused(&self.input, label, "cannot be read", error))
            }
            _ => Ok(array),
        }
    }

    fn append(
        &self,
        array: &ArrayRef,
        count: usize,
        label: &str,
        target: Target,
        out: &mut Column,
    ) -> Result<(), SourceError> {
        let row = |index: usize| self.rows + 1 + index as u64;
        if let Some(strings) = Strings::of(array, self.next, count) {
            return strings.append(target, out).map_err(|(index, what)| {
                strings::misfit(&self.input, row(index), label, strings.get(index), target, what)
            });
        }
        let data = array.to_data();
        let numbers = slice(&data, self.next, count).ok_or_else(|| {
            problem(
                &self.input,
                label,
                format!("it holds {} in some batches: the file is damaged", data.data_type()),
            )
        })?;
        convert::append(numbers, target, out)
            .map_err(|index| misfit(&self.input, row(index), label, &numbers.text(index), target))
    }
}

impl Source for BatchSource {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        prepare(chunk, &self.schema);
        let tuples_max = self.fields.as_ref().map_or(tuples_max, |fields| fields.tuples_max(tuples_max));
        let first_row = self.rows + 1;
        while chunk.len() < tuples_max && held_bytes(chunk) < CHUNK_BYTES {
            if self.key.as_ref().is_none_or(|key| self.next == key.len()) && !self.advance()? {
                break;
            }
            let Some(key) = &self.key else { break };
            let mut count = (key.len() - self.next).min(tuples_max - chunk.len());
            for array in [Some(key), self.value.as_ref()].into_iter().flatten() {
                if let Some(strings) = Strings::of(array, self.next, count) {
                    count = strings.prefix(CHUNK_BYTES);
                }
            }
            self.append(key, count, &self.columns.key_label, self.columns.key.1.target, &mut chunk.keys)?;
            if let (Some(value), Some((_, chosen))) = (&self.value, &self.columns.value) {
                self.append(value, count, &self.columns.value_label, chosen.target, &mut chunk.values)?;
            }
            if let Some(mut fields) = self.fields.take() {
                for (index, column) in fields.columns.iter().enumerate() {
                    let (array, out) = (&self.field_arrays[index], &mut fields.held[index]);
                    self.append(array, count, &column.label, column.target, out)?;
                }
                self.fields = Some(fields);
            }
            if self.op_at.is_some() {
                chunk.ops.extend_from_slice(&self.ops[self.next..self.next + count]);
            }
            self.next += count;
            self.rows += count as u64;
        }
        if let Some(fields) = &mut self.fields {
            fields.pack(&self.input, first_row, &mut chunk.values)?;
        }
        Ok(())
    }

    fn progress(&self) -> (u64, Option<u64>) {
        match &self.extent {
            Extent::Bytes(bytes) => {
                // Nothing to read is all read.
                let (done, rows) = match self.schema.rows {
                    Some(rows) if rows > 0 => (self.rows, rows),
                    _ => (1, 1),
                };
                let share = u128::from(*bytes) * u128::from(done) / u128::from(rows);
                (u64::try_from(share).unwrap_or(*bytes), Some(*bytes))
            }
            Extent::Read(bytes) => (bytes.load(Ordering::Relaxed), None),
        }
    }
}

/// Values for rows of which none has one: they mean nothing, but have the type of the column.
fn stand_in_of(kind: Kind, rows: usize) -> ArrayRef {
    match kind {
        Kind::Fixed(bytes) => {
            let zeros = vec![0u8; usize::from(bytes)];
            Arc::new(arrow_array::BinaryArray::from_iter_values((0..rows).map(|_| &zeros)))
        }
        Kind::Bytes => Arc::new(arrow_array::BinaryArray::from_iter_values((0..rows).map(|_| b""))),
        Kind::Utf8 => Arc::new(arrow_array::StringArray::from_iter_values((0..rows).map(|_| ""))),
        _ => Arc::new(arrow_array::UInt32Array::from(vec![0; rows])),
    }
}

/// Whether elements of this type are byte strings.
fn is_strings(data_type: &DataType) -> bool {
    natural(data_type).is_some_and(|natural| natural.kind.is_bytes())
}

/// Some consecutive strings of a column without nulls.
struct Strings<'a> {
    array: &'a dyn Array,
    /// Places in `array`.
    places: Places,
    /// They are UTF-8.
    valid: bool,
}

enum Places {
    Range(std::ops::Range<usize>),
    /// Of a dictionary.
    List(Vec<usize>),
}

/// Evaluates with a function from the places of strings to their bytes.
macro_rules! with_strings {
    ($strings:expr, |$get:ident| $body:expr) => {{
        let array = $strings.array;
        macro_rules! of {
            ($typed:expr) => {{
                let typed = $typed;
                let $get = |at: usize| -> &[u8] { typed.value(at).as_ref() };
                $body
            }};
        }
        match array.data_type() {
            DataType::Utf8 => of!(array.as_string::<i32>()),
            DataType::LargeUtf8 => of!(array.as_string::<i64>()),
            DataType::Utf8View => of!(array.as_string_view()),
            DataType::Binary => of!(array.as_binary::<i32>()),
            DataType::LargeBinary => of!(array.as_binary::<i64>()),
            DataType::BinaryView => of!(array.as_binary_view()),
            _ => of!(array.as_fixed_size_binary()),
        }
    }};
}

impl<'a> Strings<'a> {
    /// The strings `start..start + count`; `None` if the column holds none.
    fn of(array: &'a ArrayRef, start: usize, count: usize) -> Option<Self> {
        let (array, places): (&dyn Array, _) = match array.data_type() {
            DataType::Dictionary(_, values) if is_strings(values) => {
                let part = array.slice(start, count);
                let places = if count == 0 { Vec::new() } else { part.as_any_dictionary().normalized_keys() };
                (array.as_any_dictionary().values(), Places::List(places))
            }
            other if is_strings(other) => (array, Places::Range(start..start + count)),
            _ => return None,
        };
        let valid = matches!(array.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        Some(Self { array, places, valid })
    }

    fn append(&self, target: Target, out: &mut Column) -> Result<(), (usize, strings::StringProblem)> {
        with_strings!(self, |get| match &self.places {
            Places::Range(range) => strings::append(range.clone().map(get), self.valid, target, out),
            Places::List(list) => strings::append(list.iter().copied().map(get), self.valid, target, out),
        })
    }

    /// How many of them have no more than `bytes` bytes together, but at least one.
    fn prefix(&self, bytes: usize) -> usize {
        with_strings!(self, |get| match &self.places {
            Places::Range(range) => strings::prefix(range.clone().map(|at| get(at).len()), bytes),
            Places::List(list) => strings::prefix(list.iter().map(|&at| get(at).len()), bytes),
        })
    }

    fn get(&self, index: usize) -> &[u8] {
        let at = match &self.places {
            Places::Range(range) => range.start + index,
            Places::List(list) => list[index],
        };
        with_strings!(self, |get| get(at))
    }
}

/// The numbers `start..start + count` of a column without nulls.
fn slice(data: &ArrayData, start: usize, count: usize) -> Option<Slice<'_>> {
    macro_rules! of {
        ($variant:ident, $t:ty) => {{
            // The library checked length and alignment when it made the array.
            data.buffer::<$t>(0).get(start..start.checked_add(count)?).map(Slice::$variant)
        }};
    }
    if start.checked_add(count)? > data.len() {
        return None;
    }
    match data.data_type() {
        DataType::UInt8 => of!(U8, u8),
        DataType::UInt16 => of!(U16, u16),
        DataType::UInt32 => of!(U32, u32),
        DataType::UInt64 => of!(U64, u64),
        DataType::Int8 => of!(I8, i8),
        DataType::Int16 => of!(I16, i16),
        DataType::Int32 | DataType::Date32 | DataType::Time32(_) | DataType::Decimal32(..) => of!(I32, i32),
        DataType::Int64
        | DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_)
        | DataType::Decimal64(..) => of!(I64, i64),
        DataType::Decimal128(..) => of!(I128, i128),
        DataType::Float32 => of!(F32, f32),
        DataType::Float64 => of!(F64, f64),
        _ => None,
    }
}

/// Opens an IPC file or stream: they are told apart by their first bytes.
pub(super) fn open(input: &str, body: Body, options: &InputOptions) -> Result<Box<dyn Source>, SourceError> {
    let unreadable = |error: io::Error| super::unreadable(input, error);
    match body {
        Body::File(mut file, bytes) => {
            let mut start = [0; 8];
            let read = fill(&mut file, &mut start).map_err(unreadable)?;
            file.rewind().map_err(unreadable)?;
            if start.starts_with(b"ARROW1") && read == 8 {
                return open_file(input, file, bytes, options);
            }
            open_stream(input, Box::new(file), options)
        }
        Body::Stream(stream) => open_stream(input, stream, options),
    }
}

fn open_file(
    input: &str,
    mut file: File,
    bytes: u64,
    options: &InputOptions,
) -> Result<Box<dyn Source>, SourceError> {
    let damaged = |what: &str| problem(input, "", format!("{what}: it is truncated or damaged"));
    let rows = count_rows(&mut file, bytes)
        .map_err(|error| super::unreadable(input, error))?
        .map_err(|what| damaged(&what))?;
    let not_arrow = |error: ArrowError| caused(input, "", "it is no Arrow file that can be read", error);
    let probe = file.try_clone().map_err(|error| super::unreadable(input, error))?;
    let schema = FileReader::try_new(probe, None).map_err(not_arrow)?.schema();
    let columns = Columns::choose(input, &schema, options)?;
    let reader = FileReader::try_new(file, Some(columns.projection())).map_err(not_arrow)?;
    Ok(Box::new(BatchSource::new(input, Box::new(reader), columns, true, Some(rows), Extent::Bytes(bytes))))
}

/// The rows of all batches, from their headers alone. The inner error says what is wrong with the
/// file: a block outside of it would make the library allocate whatever length it claims.
fn count_rows(file: &mut File, bytes: u64) -> io::Result<Result<u64, String>> {
    let mut tail = [0; 10];
    if bytes < 18 {
        return Ok(Err("it ends within its first bytes".to_owned()));
    }
    file.seek(SeekFrom::Start(bytes - 10))?;
    file.read_exact(&mut tail)?;
    let Some(length) = read_footer_length(tail).ok().filter(|&length| (length as u64) <= bytes - 18) else {
        return Ok(Err("there is no Arrow footer at its end".to_owned()));
    };
    let footer_at = bytes - 10 - length as u64;
    file.seek(SeekFrom::Start(footer_at))?;
    let mut footer = vec![0; length];
    file.read_exact(&mut footer)?;
    let Ok(footer) = root_as_footer(&footer) else {
        return Ok(Err("its Arrow footer cannot be read".to_owned()));
    };
    let mut rows = 0_u64;
    let dictionaries = footer.dictionaries().into_iter().flatten().map(|block| (block, false));
    let batches = footer.recordBatches().into_iter().flatten().map(|block| (block, true));
    for (block, is_batch) in dictionaries.chain(batches) {
        let place = (|| {
            let start = u64::try_from(block.offset()).ok()?;
            let head = usize::try_from(block.metaDataLength()).ok()?;
            let end = start.checked_add(head as u64)?.checked_add(u64::try_from(block.bodyLength()).ok()?)?;
            (end <= footer_at && head >= 8).then_some((start, head))
        })();
        let Some((start, head)) = place else {
            return Ok(Err("a batch lies outside of it".to_owned()));
        };
        if !is_batch {
            continue;
        }
        file.seek(SeekFrom::Start(start))?;
        let mut message = vec![0; head];
        file.read_exact(&mut message)?;
        // Before the message: its length, and since 0.15 a marker before that.
        let skip = if message.starts_with(&[0xff; 4]) { 8 } else { 4 };
        let length = root_as_message(&message[skip..])
            .ok()
            .and_then(|message| message.header_as_record_batch().map(|batch| batch.length()));
        match length.and_then(|length| u64::try_from(length).ok()).and_then(|length| rows.checked_add(length))
        {
            Some(sum) => rows = sum,
            None => return Ok(Err("the header of a batch cannot be read".to_owned())),
        }
    }
    file.rewind()?;
    Ok(Ok(rows))
}

/// Decodes messages as their bytes arrive, so that no length in them is believed before.
struct StreamBatches {
    reader: Box<dyn Read + Send>,
    bytes_read: Arc<AtomicU64>,
    decoder: StreamDecoder,
    buffer: Buffer,
    /// The first bytes were looked at.
    started: bool,
    /// They are those of a file: its footer follows the end mark.
    is_file: bool,
    ended: bool,
    /// A batch that came before it was asked for.
    early: Option<RecordBatch>,
}

impl StreamBatches {
    /// The next batch, `None` at the end. With `schema_only`, returns as soon as there is a schema.
    fn pull(&mut self, schema_only: bool) -> Result<Option<RecordBatch>, ArrowError> {
        loop {
            // A schema of nothing but the header is decoded when the next bytes are looked at.
            if self.buffer.is_empty() && !self.ended {
                let mut bytes = vec![0; READ_BYTES];
                let read = fill(&mut *self.reader, &mut bytes)?;
                self.bytes_read.fetch_add(read as u64, Ordering::Relaxed);
                self.ended = read < bytes.len();
                bytes.truncate(read);
                if !self.started {
                    self.started = true;
                    // A file that comes through a pipe is its magic, a stream, and a footer.
                    self.is_file = bytes.starts_with(b"ARROW1\0\0");
                    if self.is_file {
                        // The magic is padded to 8 bytes, by some writers to 64.
                        let zeros = bytes[8..].iter().take(56).take_while(|&&byte| byte == 0).count();
                        bytes.drain(..8 + zeros / 8 * 8);
                    }
                }
                self.buffer = Buffer::from_vec(bytes);
            }
            if self.buffer.is_empty() {
                // A stream may end without its end mark, but not inside a message.
                self.decoder.finish()?;
                return Ok(None);
            }
            let batch = match self.decoder.decode(&mut self.buffer) {
                Ok(batch) => batch,
                Err(_) if self.is_file && self.decoder.finish().is_ok() => {
                    // Behind the end mark: the footer, which may be longer than this buffer.
                    let rest = io::copy(&mut self.reader, &mut io::sink())?;
                    self.bytes_read.fetch_add(rest, Ordering::Relaxed);
                    self.buffer = Buffer::from_vec(Vec::<u8>::new());
                    self.ended = true;
                    None
                }
                Err(error) => return Err(error),
            };
            if batch.is_some() || (schema_only && self.decoder.schema().is_some()) {
                return Ok(batch);
            }
        }
    }
}

impl Iterator for StreamBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.early.take() {
            Some(batch) => Some(Ok(batch)),
            None => self.pull(false).transpose(),
        }
    }
}

fn open_stream(
    input: &str,
    reader: Box<dyn Read + Send>,
    options: &InputOptions,
) -> Result<Box<dyn Source>, SourceError> {
    let bytes_read = Arc::new(AtomicU64::new(0));
    let extent = Extent::Read(Arc::clone(&bytes_read));
    let mut batches = StreamBatches {
        reader,
        bytes_read,
        decoder: StreamDecoder::new(),
        buffer: Buffer::from_vec(Vec::<u8>::new()),
        started: false,
        is_file: false,
        ended: false,
        early: None,
    };
    let not_arrow =
        |error: ArrowError| caused(input, "", "it is no Arrow file or stream that can be read", error);
    batches.early = batches.pull(true).map_err(not_arrow)?;
    let schema = batches
        .decoder
        .schema()
        .ok_or_else(|| problem(input, "", "it is no Arrow file or stream: check its format"))?;
    let columns = Columns::choose(input, &schema, options)?;
    Ok(Box::new(BatchSource::new(input, Box::new(batches), columns, false, None, extent)))
}
