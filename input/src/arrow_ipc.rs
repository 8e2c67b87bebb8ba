//! Arrow IPC, file and stream, and the code shared with Parquet: columns from record batches.
//!
//! A file is read by its footer; a stream, or a file that comes through a pipe, message by message in the
//! order of its bytes. Lengths are bounded before the library allocates by them: see [`super::messages`].

use super::convert::{self, Kind, Slice, Target};
use super::fields::Fields;
use super::guard::{Refused, guarded};
use super::logical::natural;
use super::messages::{self, HEAD_BYTES_MAX, message_in};
use super::strings::{self, CHUNK_BYTES, held_bytes};
use super::{
    Asked, Body, Chosen, Names, choose_key, choose_value, fill, misfit, missing, prepare, problem, unknown_op,
};
use pleach_builder::source::{Chunk, Column, Op, Schema, Source, SourceError};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_data::ArrayData;
use arrow_ipc::reader::{FileDecoder, StreamDecoder, read_footer_length};
use arrow_ipc::{Block, MetadataVersion, root_as_footer};
use arrow_schema::{DataType, Schema as ArrowSchema, SchemaRef};
use pleach_format::{KeyType, ValueType};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes per read call, if messages are small.
const READ_BYTES: usize = 1 << 20;

/// Record batches, one after the other.
pub(super) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, Refused>> + Send>;

/// The columns that were chosen among those of an Arrow schema.
pub(super) struct Columns {
    key: (usize, Chosen<KeyType>),
    value: Option<(usize, Chosen<ValueType>)>,
    /// Fields of a record.
    fields: Option<Fields>,
    /// Column of the operation in a table of changes.
    op: Option<usize>,
    key_label: String,
    value_label: String,
    key_name: String,
    value_name: String,
}

impl Columns {
    pub(super) fn choose(input: &str, schema: &ArrowSchema, options: &Asked) -> Result<Self, SourceError> {
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

    /// Returns the columns to read that hold texts or binary strings of varying length: see
    /// [`super::parquet`].
    pub(super) fn varying(&self, schema: &ArrowSchema) -> Vec<usize> {
        let mut columns = self.projection();
        columns.retain(|&index| {
            let data_type = schema.field(index).data_type();
            natural(data_type).is_some_and(|natural| matches!(natural.kind, Kind::Bytes | Kind::Utf8))
        });
        columns
    }

    /// Returns the columns to read, ascending.
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
    /// For a record: the columns, and their places in a batch.
    fields: Option<Fields>,
    fields_at: Vec<usize>,
    /// The current batch: key, value, and the next row.
    key: Option<ArrayRef>,
    value: Option<ArrayRef>,
    field_arrays: Vec<ArrayRef>,
    ops: Vec<Op>,
    next: usize,
    rows: u64,
    extent: Extent,
}

/// How progress is measured in bytes.
pub(super) enum Extent {
    /// By the share of the rows, of this number of bytes.
    Bytes(u64),
    /// By the bytes read so far.
    Read(Arc<AtomicU64>),
}

impl BatchSource {
    /// Creates the source. `projected`: the batches hold only [`Columns::projection`].
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

    /// Takes the next batch that has rows. Returns false at the end.
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
                Some(Err(refused)) => return Err(refused.at(&self.input, format!("after row {}", self.rows))),
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

    /// Returns the operations of a batch.
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

    /// Returns a column of a batch without nulls (except where `ops` deletes, whose values have no meaning),
    /// decoded if it is a dictionary of numbers. A decoded dictionary of strings could be a thousand times as
    /// long.
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
        // In a dictionary, keys and values may both be null.
        let mut array = Arc::clone(array);
        if let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
            let deletes = |index: usize| ops.get(index) == Some(&Op::Del);
            let bad = (0..nulls.len()).find(|&index| nulls.is_null(index) && !deletes(index));
            if let Some(index) = bad {
                return Err(missing(&self.input, self.rows + 1 + index as u64, label));
            }
            // A row that is not null replaces those that are.
            let stand_in = (0..nulls.len()).find(|&index| !nulls.is_null(index));
            let rows: arrow_array::UInt64Array = match stand_in {
                Some(stand_in) => (0..nulls.len())
                    .map(|index| Some(if nulls.is_null(index) { stand_in } else { index } as u64))
                    .collect(),
                None => return Ok(stand_in_of(kind, array.len())),
            };
            array = arrow_select::take::take(&array, &rows, None)
                .map_err(|error| Refused::arrow(error).at(&self.input, label))?;
        }
        match array.data_type() {
            DataType::Dictionary(_, values) if !is_strings(values) => {
                let dictionary = array.as_any_dictionary();
                arrow_select::take::take(dictionary.values(), dictionary.keys(), None)
                    .map_err(|error| Refused::arrow(error).at(&self.input, label))
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
                // Without rows, everything is read.
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

/// Makes placeholder values for rows that have none; they have the type of the column.
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

/// Returns true if elements of this type are byte strings.
fn is_strings(data_type: &DataType) -> bool {
    natural(data_type).is_some_and(|natural| natural.kind.is_bytes())
}

/// Some consecutive strings of a column without nulls.
struct Strings<'a> {
    array: &'a dyn Array,
    /// Places in `array`.
    places: Places,
    /// The strings are UTF-8.
    valid: bool,
}

enum Places {
    Range(std::ops::Range<usize>),
    /// Places in the values of a dictionary.
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
    /// Returns the strings `start..start + count`; `None` if the column holds none.
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

    /// Returns how many of the first strings have at most `bytes` bytes together; at least one.
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

/// Returns the numbers `start..start + count` of a column without nulls.
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

/// Opens an IPC file or stream; the first bytes show which it is.
pub(super) fn open(input: &str, body: Body, options: &Asked) -> Result<Box<dyn Source>, SourceError> {
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

/// Returns the maximum unpacked size of a batch: half of the memory, since it is copied to chunks.
fn batch_bytes_max() -> u64 {
    pleach_builder::options::physical_memory_bytes() / 2
}

fn open_file(
    input: &str,
    mut file: File,
    bytes: u64,
    options: &Asked,
) -> Result<Box<dyn Source>, SourceError> {
    let refused = |refused: Refused| refused.at(input, "");
    let footer = Footer::read(&mut file, bytes).map_err(refused)?;
    let columns = Columns::choose(input, &footer.schema, options)?;
    let rows = Some(footer.rows);
    let batches = FileBatches::new(file, footer, columns.projection()).map_err(refused)?;
    Ok(Box::new(BatchSource::new(input, Box::new(batches), columns, true, rows, Extent::Bytes(bytes))))
}

fn damaged(what: &str) -> Refused {
    Refused::ours(format!("{what}: it is truncated or damaged"))
}

/// Contents of a file's footer and of the headers of its batches.
struct Footer {
    schema: SchemaRef,
    version: MetadataVersion,
    dictionaries: Vec<Block>,
    batches: Vec<Block>,
    rows: u64,
}

impl Footer {
    /// Reads the footer, and counts the rows of all batches. All blocks must lie inside the file.
    fn read(file: &mut File, bytes: u64) -> Result<Self, Refused> {
        let mut tail = [0; 10];
        if bytes < 18 {
            return Err(damaged("it ends within its first bytes"));
        }
        file.seek(SeekFrom::Start(bytes - 10))?;
        file.read_exact(&mut tail)?;
        let length = read_footer_length(tail).ok();
        let length = length.filter(|&length| length as u64 <= (bytes - 18).min(HEAD_BYTES_MAX));
        let length = length.ok_or_else(|| damaged("there is no Arrow footer at its end"))?;
        let footer_at = bytes - 10 - length as u64;
        file.seek(SeekFrom::Start(footer_at))?;
        let mut footer = vec![0; length];
        file.read_exact(&mut footer)?;
        let footer = root_as_footer(&footer).map_err(|_| damaged("its Arrow footer cannot be read"))?;
        let schema = footer.schema().ok_or_else(|| damaged("its Arrow footer has no schema"))?;
        let mut this = Self {
            schema: Arc::new(messages::schema_of(&schema)?),
            version: footer.version(),
            dictionaries: footer.dictionaries().into_iter().flatten().copied().collect(),
            batches: footer.recordBatches().into_iter().flatten().copied().collect(),
            rows: 0,
        };
        for block in this.dictionaries.iter().chain(&this.batches) {
            let end = place_of(block).and_then(|(start, head, body)| {
                start.checked_add(head as u64)?.checked_add(body as u64).filter(|_| head >= 8)
            });
            if end.is_none_or(|end| end > footer_at) {
                return Err(damaged("a batch lies outside of it"));
            }
        }
        for block in &this.batches {
            let (start, head, _) = place_of(block).unwrap_or_default();
            file.seek(SeekFrom::Start(start))?;
            let mut message = vec![0; head];
            file.read_exact(&mut message)?;
            let length = message_in(&message)
                .and_then(|message| message.header_as_record_batch())
                .and_then(|batch| u64::try_from(batch.length()).ok());
            this.rows = length
                .and_then(|length| this.rows.checked_add(length))
                .ok_or_else(|| damaged("the header of a batch cannot be read"))?;
        }
        Ok(this)
    }
}

/// Returns the start of a block, and the bytes of its header and its body.
fn place_of(block: &Block) -> Option<(u64, usize, usize)> {
    let start = u64::try_from(block.offset()).ok()?;
    Some((start, usize::try_from(block.metaDataLength()).ok()?, usize::try_from(block.bodyLength()).ok()?))
}

/// The batches of a file, located by its footer.
struct FileBatches {
    file: File,
    schema: SchemaRef,
    decoder: FileDecoder,
    projection: Vec<usize>,
    /// The remaining batches.
    batches: std::vec::IntoIter<Block>,
    memory: u64,
}

impl FileBatches {
    /// Reads the dictionaries.
    fn new(file: File, footer: Footer, projection: Vec<usize>) -> Result<Self, Refused> {
        let decoder = FileDecoder::new(Arc::clone(&footer.schema), footer.version);
        let mut this = Self {
            file,
            schema: footer.schema,
            decoder: decoder.with_projection(projection.clone()),
            projection,
            batches: footer.batches.into_iter(),
            memory: batch_bytes_max(),
        };
        for block in &footer.dictionaries {
            let bytes = this.read(block)?;
            this.decoder.read_dictionary(block, &bytes).map_err(Refused::arrow)?;
        }
        Ok(this)
    }

    /// Reads and checks a block that lies inside the file.
    fn read(&mut self, block: &Block) -> Result<Buffer, Refused> {
        let (start, head, body) = place_of(block).unwrap_or_default();
        self.file.seek(SeekFrom::Start(start))?;
        let mut bytes = MutableBuffer::from_len_zeroed(head + body);
        self.file.read_exact(&mut bytes)?;
        let message =
            message_in(&bytes[..head]).ok_or_else(|| damaged("the header of a batch cannot be read"))?;
        messages::check(&message, &bytes[head..], &self.schema, Some(&self.projection), self.memory)?;
        Ok(bytes.into())
    }
}

impl Iterator for FileBatches {
    type Item = Result<RecordBatch, Refused>;

    fn next(&mut self) -> Option<Self::Item> {
        let block = self.batches.next()?;
        let batch = self
            .read(&block)
            .and_then(|bytes| self.decoder.read_record_batch(&block, &bytes).map_err(Refused::arrow));
        batch.and_then(|batch| batch.ok_or_else(|| damaged("a batch is none"))).map(Some).transpose()
    }
}

/// The batches of a stream, message by message.
struct StreamBatches {
    reader: BufReader<Counted>,
    decoder: StreamDecoder,
    schema: Option<SchemaRef>,
    /// The first bytes were examined.
    started: bool,
    /// It is a file: its footer follows the end mark.
    is_file: bool,
    /// A batch that arrived before it was requested.
    early: Option<RecordBatch>,
    /// The last message, if it is not decoded yet: one without a body is decoded only when the next one
    /// arrives.
    message: Buffer,
    memory: u64,
}

/// Counts what is read.
struct Counted {
    reader: Box<dyn Read + Send>,
    bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl StreamBatches {
    /// Skips the magic of a file, if there is one; returns the bytes that were read of the stream itself.
    fn start(&mut self) -> Result<Vec<u8>, Refused> {
        let mut start = vec![0; 8];
        let read = fill(&mut self.reader, &mut start)?;
        start.truncate(read);
        if start.starts_with(b"FEA1") {
            let text =
                "it is Feather of version 1, which this version does not read: write it again as version 2";
            return Err(Refused::ours(text));
        }
        // A file that comes through a pipe is its magic, a stream, and a footer.
        self.is_file = start == b"ARROW1\0\0";
        let mut words = 0;
        // The magic is padded to 8 bytes, by some writers to 64.
        while self.is_file && words < 8 && (words == 0 || start == [0; 8]) {
            start.resize(8, 0);
            let read = fill(&mut self.reader, &mut start)?;
            start.truncate(read);
            words += 1;
        }
        Ok(start)
    }

    /// Returns the next batch, or `None` at the end. With `schema_only`, returns as soon as the schema is
    /// known.
    fn pull(&mut self, schema_only: bool) -> Result<Option<RecordBatch>, Refused> {
        loop {
            while !self.message.is_empty() {
                if let Some(batch) = self.decoder.decode(&mut self.message).map_err(Refused::arrow)? {
                    return Ok(Some(batch));
                }
            }
            if schema_only && self.schema.is_some() {
                return Ok(None);
            }
            let start = if self.started { Vec::new() } else { self.start()? };
            self.started = true;
            let Some(bytes) = messages::next_message(&mut self.reader, start)? else {
                let rest = io::copy(&mut self.reader, &mut io::sink())?;
                if rest > 0 && !self.is_file {
                    return Err(Refused::ours(format!(
                        "{rest} bytes follow the end of its stream: cut them off"
                    )));
                }
                return Ok(None);
            };
            {
                let message =
                    message_in(&bytes).ok_or_else(|| damaged("the header of a message cannot be read"))?;
                let body_at = bytes.len().saturating_sub(usize::try_from(message.bodyLength()).unwrap_or(0));
                if let (Some(schema), None) = (message.header_as_schema(), &self.schema) {
                    self.schema = Some(Arc::new(messages::schema_of(&schema)?));
                }
                let schema =
                    self.schema.as_ref().ok_or_else(|| damaged("a batch comes before its schema"))?;
                messages::check(&message, &bytes[body_at..], schema, None, self.memory)?;
            }
            self.message = bytes;
        }
    }
}

impl Iterator for StreamBatches {
    type Item = Result<RecordBatch, Refused>;

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
    options: &Asked,
) -> Result<Box<dyn Source>, SourceError> {
    let bytes = Arc::new(AtomicU64::new(0));
    let extent = Extent::Read(Arc::clone(&bytes));
    let mut batches = StreamBatches {
        reader: BufReader::with_capacity(READ_BYTES, Counted { reader, bytes }),
        decoder: StreamDecoder::new(),
        schema: None,
        started: false,
        is_file: false,
        early: None,
        message: Buffer::from_vec(Vec::<u8>::new()),
        memory: batch_bytes_max(),
    };
    batches.early = batches.pull(true).map_err(|refused| refused.at(input, ""))?;
    let schema = batches.schema.clone().ok_or_else(|| {
        problem(
            input,
            "",
            "it is no Arrow file or stream that can be read: it has no schema: check its format",
        )
    })?;
    let columns = Columns::choose(input, &schema, options)?;
    Ok(Box::new(BatchSource::new(input, Box::new(batches), columns, false, None, extent)))
}
