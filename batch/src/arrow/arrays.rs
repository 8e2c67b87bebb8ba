//! Arrow arrays of memory.

use super::types::{field_type, logical_type};
use crate::gather::Gathered;
use arrow_array::{ArrayRef, StructArray, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field, Fields};
use pleach_format::logical::Logical;
use pleach_format::record::{FieldValue, Record};
use std::sync::Arc;

/// Returns the nulls of answers; `None` if all keys were found.
pub(super) fn nulls(found: Vec<u8>, len: usize, count: usize) -> Option<NullBuffer> {
    (count < len).then(|| NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(found), 0, len)))
}

fn built(builder: arrow_data::ArrayDataBuilder) -> Result<ArrayRef, ArrowError> {
    builder.build().map(make_array)
}

/// Makes an array of numbers, in native byte order; those of 128 bits are bytes.
///
/// # Errors
/// [`ArrowError`] if the memory is not such an array: it came from a damaged file.
pub fn numbers(
    data_type: DataType,
    buffer: Buffer,
    len: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
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

/// Makes an array of byte strings or texts. With a fixed length, an empty string of a missing key becomes zeros.
///
/// # Errors
/// [`ArrowError`] if the memory is not such an array: it came from a damaged file.
pub fn strings(
    data_type: DataType,
    all: Gathered,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let len = all.offsets.len() - 1;
    if let DataType::FixedSizeBinary(bytes) = data_type {
        let bytes = usize::try_from(bytes).unwrap_or(0);
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
        let builder = ArrayData::builder(data_type).len(len).add_buffer(Buffer::from_vec(data));
        return built(builder.nulls(nulls));
    }
    let offsets: Vec<i64> = all.offsets.iter().map(|&offset| offset.cast_signed()).collect();
    let builder = ArrayData::builder(data_type).len(len);
    let builder = builder.add_buffer(Buffer::from_vec(offsets)).add_buffer(Buffer::from_vec(all.data));
    built(builder.nulls(nulls))
}

/// Makes a struct array of records, of which `packed` returns the bytes.
///
/// # Errors
/// [`ArrowError`] if the memory is not such an array: it came from a damaged file.
pub fn records<'a>(
    record: &Record,
    len: usize,
    packed: impl Fn(usize) -> &'a [u8],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (number, field) in record.fields().iter().enumerate() {
        let plain = field_type(field.kind);
        let data_type = logical_type(plain, &Logical::of_meta(&field.logical));
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
    Ok(Arc::new(array?))
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
