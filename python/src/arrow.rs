//! Arrow arrays of answers.

use crate::errors::exception;
use crate::numpy::input;
use arrow_array::{ArrayRef, StructArray, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Fields};
use pleach::ValueType;
use pleach_batch::Gathered;
use pleach_format::logical::Logical;
use pleach_format::record::{FieldKind, FieldValue, Record};
use pyo3::PyResult;
use std::sync::Arc;

/// Returns the Arrow type of words that mean this; `plain` is that of the words.
pub(crate) fn type_of(plain: DataType, meaning: &Logical) -> DataType {
    match meaning {
        Logical::Plain | Logical::Unknown(_) | Logical::Record(_) | Logical::Uuid => plain,
        meaning => pleach_input::logical_type(&meaning.meta()).unwrap_or(plain),
    }
}

/// Returns the Arrow type of plain numbers.
pub(crate) fn number_type(value_type: ValueType) -> DataType {
    match value_type {
        ValueType::U32 => DataType::UInt32,
        ValueType::U64 => DataType::UInt64,
        ValueType::I32 => DataType::Int32,
        ValueType::I64 => DataType::Int64,
        ValueType::F32 => DataType::Float32,
        ValueType::F64 => DataType::Float64,
        ValueType::None => DataType::Null,
        ValueType::Fixed(bytes) => DataType::FixedSizeBinary(bytes.into()),
        ValueType::Bytes => DataType::LargeBinary,
        ValueType::Utf8 => DataType::LargeUtf8,
    }
}

/// Returns the nulls of answers; `None` if all keys were found.
pub(crate) fn nulls(found: Vec<u8>, len: usize, count: usize) -> Option<NullBuffer> {
    (count < len).then(|| NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(found), 0, len)))
}

fn built(builder: arrow_data::ArrayDataBuilder) -> PyResult<ArrayRef> {
    let data = builder.build();
    let data =
        data.map_err(|error| exception("DamagedError", format!("values are not of their type ({error})")))?;
    Ok(make_array(data))
}

/// Makes an array of numbers.
pub(crate) fn numbers(
    data_type: DataType,
    buffer: Buffer,
    len: usize,
    nulls: Option<NullBuffer>,
) -> PyResult<ArrayRef> {
    // Decimals have words of 64 bits in a file.
    let buffer = match data_type {
        DataType::Decimal128(..) => {
            let words: &[i64] = buffer.typed_data();
            Buffer::from_vec(words.iter().map(|&word| i128::from(word)).collect::<Vec<_>>())
        }
        DataType::Decimal32(..) => {
            let words: &[i64] = buffer.typed_data();
            Buffer::from_vec(words.iter().map(|&word| word as i32).collect::<Vec<_>>())
        }
        _ => buffer,
    };
    if data_type == DataType::Null {
        return Ok(Arc::new(arrow_array::NullArray::new(len)));
    }
    built(ArrayData::builder(data_type).len(len).add_buffer(buffer).nulls(nulls))
}

/// Makes an array of byte strings or texts.
pub(crate) fn strings(value_type: ValueType, all: Gathered, nulls: Option<NullBuffer>) -> PyResult<ArrayRef> {
    let len = all.offsets.len() - 1;
    if let ValueType::Fixed(bytes) = value_type {
        let bytes = usize::from(bytes);
        let mut data = all.data;
        // The string of a missing key is empty.
        if data.len() != len * bytes {
            let mut full = vec![0; len * bytes];
            for (at, ends) in all.offsets.windows(2).enumerate() {
                let string = &data[ends[0] as usize..ends[1] as usize];
                full[at * bytes..][..string.len().min(bytes)]
                    .copy_from_slice(&string[..string.len().min(bytes)]);
            }
            data = full;
        }
        let builder = ArrayData::builder(number_type(value_type)).len(len).add_buffer(Buffer::from_vec(data));
        return built(builder.nulls(nulls));
    }
    let offsets: Vec<i64> = all.offsets.iter().map(|&offset| offset.cast_signed()).collect();
    let builder = ArrayData::builder(number_type(value_type)).len(len);
    let builder = builder.add_buffer(Buffer::from_vec(offsets)).add_buffer(Buffer::from_vec(all.data));
    built(builder.nulls(nulls))
}

/// Makes a struct array of records, of which `packed` returns the bytes.
pub(crate) fn records<'a>(
    record: &Record,
    len: usize,
    packed: impl Fn(usize) -> &'a [u8],
    nulls: Option<NullBuffer>,
) -> PyResult<ArrayRef> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (number, field) in record.fields().iter().enumerate() {
        let plain = field_type(field.kind);
        let data_type = type_of(plain, &Logical::of_meta(&field.logical));
        let mut bytes = Vec::with_capacity(len * field.kind.bytes());
        for at in 0..len {
            match record.get(number, packed(at)) {
                Some(value) => put(&value, &mut bytes),
                None => bytes.resize(bytes.len() + field.kind.bytes(), 0),
            }
        }
        // Numbers must begin at their alignment.
        let buffer = Buffer::from_slice_ref(&bytes);
        arrays.push(self::numbers(data_type.clone(), buffer, len, None)?);
        fields.push(Field::new(field.name.clone(), data_type, false));
    }
    let array = StructArray::try_new(Fields::from(fields), arrays, nulls);
    Ok(Arc::new(array.map_err(|error| input(error.to_string()))?))
}

fn field_type(kind: FieldKind) -> DataType {
    match kind {
        FieldKind::U8 => DataType::UInt8,
        FieldKind::U16 => DataType::UInt16,
        FieldKind::U32 => DataType::UInt32,
        FieldKind::U64 => DataType::UInt64,
        FieldKind::I8 => DataType::Int8,
        FieldKind::I16 => DataType::Int16,
        FieldKind::I32 => DataType::Int32,
        FieldKind::I64 => DataType::Int64,
        FieldKind::F32 => DataType::Float32,
        FieldKind::F64 => DataType::Float64,
        FieldKind::Bytes(bytes) => DataType::FixedSizeBinary(bytes.into()),
    }
}

fn put(value: &FieldValue<'_>, bytes: &mut Vec<u8>) {
    match value {
        FieldValue::U8(number) => bytes.push(*number),
        FieldValue::U16(number) => bytes.extend(number.to_le_bytes()),
        FieldValue::U32(number) => bytes.extend(number.to_le_bytes()),
        FieldValue::U64(number) => bytes.extend(number.to_le_bytes()),
        FieldValue::I8(number) => bytes.extend(number.to_le_bytes()),
        FieldValue::I16(number) => bytes.extend(number.to_le_bytes()),
        FieldValue::I32(number) => bytes.extend(number.to_le_bytes()),
        FieldValue::I64(number) => bytes.extend(number.to_le_bytes()),
        FieldValue::F32(number) => bytes.extend(number.to_le_bytes()),
        FieldValue::F64(number) => bytes.extend(number.to_le_bytes()),
        FieldValue::Bytes(raw) => bytes.extend_from_slice(raw),
    }
}
