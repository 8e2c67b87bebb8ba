//! Chunks of an answer as record batches.

use crate::arrow::{key_type, logical_type, meant, meant_field, number_type, numbers, records, strings};
use crate::gather::Gathered;
use arrow_array::{Array as _, ArrayRef, RecordBatch, UInt8Array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use pleach::{Key as _, KeyType, ValueType};
use pleach_builder::{Column, Strings};
use pleach_format::logical::Meaning;
use pleach_format::record::Record;
use pleach_relation::{Chunk, Field as Values, Schema as Types};
use std::sync::Arc;
use zerocopy::IntoBytes;

/// The side of a join on which a tuple has a value, as in [`Chunk::sides`].
const LEFT: u8 = 1;
const RIGHT: u8 = 2;

/// Makes record batches of chunks. The columns have the names of the input's; a join has `left` and `right`, and an
/// as-of or a band join `key_right`, with nulls where that side has no tuple.
pub(super) struct Columns {
    types: Types,
    schema: SchemaRef,
}

impl Columns {
    pub(super) fn new(types: &Types) -> Result<Self, ArrowError> {
        let columns = Self { types: types.clone(), schema: Arc::new(Schema::empty()) };
        let value_type = |values: &Values| Column::for_value(values.value_type);
        let empty = Chunk {
            keys: Column::for_key(types.key_type),
            values: value_type(&types.values),
            right: types.right.as_ref().map_or(Column::None, value_type),
            right_keys: Column::for_key(types.key_type),
            ..Chunk::default()
        };
        let fields: Vec<Field> = columns.arrays(&empty)?.into_iter().map(|(field, _)| field).collect();
        Ok(Self { schema: Arc::new(Schema::new(fields)), ..columns })
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Makes the record batch of a chunk.
    pub(super) fn batch(&self, chunk: &Chunk) -> Result<RecordBatch, ArrowError> {
        let arrays = self.arrays(chunk)?.into_iter().map(|(_, array)| array).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
    }

    /// Makes the columns of a chunk.
    fn arrays(&self, chunk: &Chunk) -> Result<Vec<(Field, ArrayRef)>, ArrowError> {
        let types = &self.types;
        let name = |given: &str, usual: &str| if given.is_empty() { usual } else { given }.to_owned();
        let column = |name: String, array: ArrayRef, has_nulls, held: String, meta: &str| {
            (meant_field(name, &array, has_nulls, &Meaning::new(held, meta).logical), array)
        };
        let of_values = |name: &str, array: ArrayRef, has_nulls, values: &Values| {
            column(name.to_owned(), array, has_nulls, values.value_type.to_string(), &values.logical)
        };
        let (key_name, held) = (name(&types.key_name, "key"), types.key_type.to_string());
        let keys = self.keys(&chunk.keys, None)?;
        let mut all = vec![column(key_name, keys, false, held.clone(), &types.key_logical)];
        let sides = |bit| types.has_sides.then(|| nulls(&chunk.sides, bit));
        let Some(right) = &types.right else {
            if let Some(array) = values(&types.values, &chunk.values, None)? {
                all.push(of_values(&name(&types.values.name, "value"), array, false, &types.values));
            }
            return Ok(all);
        };
        let lefts = values(&types.values, &chunk.values, sides(LEFT))?;
        let rights = values(right, &chunk.right, sides(RIGHT))?;
        let has_nulls = types.has_right_keys || (lefts.is_some() && rights.is_some());
        let tells_sides = types.has_sides && !has_nulls;
        all.extend(lefts.map(|array| of_values("left", array, types.has_sides, &types.values)));
        if types.has_right_keys {
            let keys = self.keys(&chunk.right_keys, sides(RIGHT))?;
            all.push(column("key_right".to_owned(), keys, types.has_sides, held, &types.key_logical));
        }
        all.extend(rights.map(|array| of_values("right", array, types.has_sides, right)));
        if tells_sides {
            // Nulls do not say it where a side has no values.
            let array: ArrayRef = Arc::new(UInt8Array::from(chunk.sides.clone()));
            all.push((Field::new("sides", array.data_type().clone(), false), array));
        }
        Ok(all)
    }

    fn keys(&self, keys: &Column, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let held = self.types.key_type;
        let logical = Meaning::new(held, &self.types.key_logical).logical;
        let data_type = logical_type(key_type(held), &logical);
        let buffer = match keys {
            Column::Bytes(all) => {
                let array = strings(key_type(held), gathered(all), nulls);
                return array.and_then(|array| meant(array, &logical));
            }
            Column::U32(words) => decoded32(held, words),
            Column::U64(words) => decoded64(held, words),
            Column::U128(words) => {
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
                Buffer::from_vec(bytes)
            }
            Column::None => Buffer::from_vec(Vec::<u64>::new()),
        };
        numbers(data_type, buffer, keys.len(), nulls).and_then(|array| meant(array, &logical))
    }
}

fn decoded32(held: KeyType, words: &[u32]) -> Buffer {
    match held {
        KeyType::I32 => Buffer::from_vec(words.iter().map(|&word| i32::decode(word)).collect::<Vec<_>>()),
        KeyType::U32
        | KeyType::U64
        | KeyType::I64
        | KeyType::U128
        | KeyType::F64
        | KeyType::Fixed(_)
        | KeyType::Bytes
        | KeyType::Utf8 => Buffer::from_vec(words.to_vec()),
    }
}

fn decoded64(held: KeyType, words: &[u64]) -> Buffer {
    match held {
        KeyType::I64 => Buffer::from_vec(words.iter().map(|&word| i64::decode(word)).collect::<Vec<_>>()),
        KeyType::F64 => Buffer::from_vec(words.iter().map(|&word| f64::decode(word)).collect::<Vec<_>>()),
        KeyType::U32
        | KeyType::U64
        | KeyType::I32
        | KeyType::U128
        | KeyType::Fixed(_)
        | KeyType::Bytes
        | KeyType::Utf8 => Buffer::from_vec(words.to_vec()),
    }
}

/// Makes the array of values; `None` if there are none.
fn values(
    types: &Values,
    column: &Column,
    nulls: Option<NullBuffer>,
) -> Result<Option<ArrayRef>, ArrowError> {
    let held = types.value_type;
    if held == ValueType::None {
        return Ok(None);
    }
    let record = Record::of(held, &types.logical);
    let array = match (column, record) {
        (Column::Bytes(all), Some(record)) => records(&record, all.len(), |at| all.get(at), nulls),
        (Column::Bytes(all), None) => {
            let logical = Meaning::new(held, &types.logical).logical;
            strings(number_type(held), gathered(all), nulls).and_then(|array| meant(array, &logical))
        }
        (Column::U32(words), Some(record)) => records(&record, words.len(), |at| words[at].as_bytes(), nulls),
        (Column::U64(words), Some(record)) => records(&record, words.len(), |at| words[at].as_bytes(), nulls),
        (Column::U32(words), None) => plain(types, Buffer::from_vec(words.clone()), words.len(), nulls),
        (Column::U64(words), None) => plain(types, Buffer::from_vec(words.clone()), words.len(), nulls),
        (Column::None | Column::U128(_), _) => plain(types, Buffer::from_vec(Vec::<u64>::new()), 0, nulls),
    };
    array.map(Some)
}

fn plain(
    types: &Values,
    words: Buffer,
    len: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let logical = Meaning::new(types.value_type, &types.logical).logical;
    let data_type = logical_type(number_type(types.value_type), &logical);
    numbers(data_type, words, len, nulls).and_then(|array| meant(array, &logical))
}

/// Returns which tuples have a value on a side.
fn nulls(sides: &[u8], bit: u8) -> NullBuffer {
    NullBuffer::new(BooleanBuffer::collect_bool(sides.len(), |at| sides[at] & bit != 0))
}

fn gathered(all: &Strings) -> Gathered {
    let mut gathered = Gathered { offsets: vec![0], data: Vec::new() };
    for at in 0..all.len() {
        gathered.data.extend_from_slice(all.get(at));
        gathered.offsets.push(gathered.data.len() as u64);
    }
    gathered
}
