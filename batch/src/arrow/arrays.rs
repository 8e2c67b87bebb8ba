//! Arrow arrays of memory.

use super::types::{field_type, logical_type};
use crate::gather::Gathered;
use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, StructArray, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field, Fields};
use pleach_format::logical::{Logical, Meaning};
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
        DataType::Boolean => {
            let word_bytes = buffer.len().checked_div(len).unwrap_or(0).max(1);
            let words = buffer.as_slice().chunks(word_bytes);
            let bits: BooleanBuffer =
                words.take(len).map(|word| word.iter().any(|&byte| byte != 0)).collect();
            bits.into_inner()
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

/// Makes an array of texts of types that Arrow lacks, and leaves all others unchanged.
#[must_use]
pub(super) fn texts(array: ArrayRef, logical: &Logical) -> ArrayRef {
    let Some(form) = logical.form().filter(|_| pleach_input::is_text_in_arrow(logical)) else { return array };
    let (mut texts, mut text) = (LargeStringBuilder::new(), Vec::new());
    let mut put = |is_null: bool, put: &dyn Fn(&mut Vec<u8>)| {
        text.clear();
        put(&mut text);
        texts.append_option((!is_null).then(|| String::from_utf8_lossy(&text)));
    };
    macro_rules! each {
        ($typed:expr, $put:ident) => {{
            let typed = $typed;
            for at in 0..typed.len() {
                put(typed.is_null(at), &|text| form.$put(typed.value(at).into(), text));
            }
        }};
    }
    match array.data_type() {
        DataType::UInt32 => each!(array.as_primitive::<UInt32Type>(), put_unsigned),
        DataType::UInt64 => each!(array.as_primitive::<UInt64Type>(), put_unsigned),
        DataType::FixedSizeBinary(_) => each!(array.as_fixed_size_binary(), put_bytes),
        DataType::LargeBinary => each!(array.as_binary::<i64>(), put_bytes),
        _ => return array,
    }
    Arc::new(texts.finish())
}

/// Makes a column of what the elements of an array mean. Its type says so if it is not one of Arrow's own.
#[must_use]
pub fn meant_field(name: impl Into<String>, array: &ArrayRef, has_nulls: bool, logical: &Logical) -> Field {
    let metadata = pleach_input::extension_metadata(logical).unwrap_or_default();
    Field::new(name, array.data_type().clone(), has_nulls).with_metadata(metadata)
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
        let array = record_field(record, number, len, &packed)?;
        let logical = Meaning::new(field.kind, &field.logical).logical;
        fields.push(meant_field(field.name.clone(), &array, false, &logical));
        arrays.push(array);
    }
    let array = StructArray::try_new(Fields::from(fields), arrays, nulls);
    Ok(Arc::new(array?))
}

/// Makes an array of one field of records, of which `packed` returns the bytes.
///
/// # Errors
/// [`ArrowError`] if the memory is not such an array: it came from a damaged file.
///
/// # Panics
/// If there is no such field.
pub fn record_field<'a>(
    record: &Record,
    number: usize,
    len: usize,
    packed: impl Fn(usize) -> &'a [u8],
) -> Result<ArrayRef, ArrowError> {
    let field = &record.fields()[number];
    let data_type = logical_type(field_type(field.kind), &Logical::of_meta(&field.logical));
    let logical = Meaning::new(field.kind, &field.logical).logical;
    if field.kind.is_text() {
        let mut all = Gathered { offsets: vec![0], data: Vec::new() };
        for at in 0..len {
            let value = record.get(number, packed(at));
            all.data.extend_from_slice(value.and_then(|value| value.as_bytes()).unwrap_or_default());
            all.offsets.push(all.data.len() as u64);
        }
        return Ok(texts(strings(data_type, all, None)?, &logical));
    }
    let mut bytes = Vec::with_capacity(len * field.kind.bytes());
    for at in 0..len {
        match record.get(number, packed(at)) {
            Some(value) => put(&value, &mut bytes),
            None => bytes.resize(bytes.len() + field.kind.bytes(), 0),
        }
    }
    // Numbers must begin at their alignment.
    let buffer = Buffer::from_slice_ref(&bytes);
    Ok(texts(numbers(data_type, buffer, len, None)?, &logical))
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
        FieldValue::Fixed(raw) | FieldValue::Bytes(raw) => bytes.extend_from_slice(raw),
        FieldValue::Utf8(text) => bytes.extend_from_slice(text.as_bytes()),
    }
}
