//! Composite keys as struct arrays: their parts are columns.

use super::arrays::{meant_field, numbers, strings, texts};
use super::types::{field_type, key_type, logical_type};
use crate::error::BatchError;
use crate::gather::Gathered;
use crate::parsed::Parsed;
use crate::table::Table;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StructArray};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};
use pleach::KeyType;
use pleach_builder::{Chunk, Column, SourceError};
use pleach_format::logical::{Composite, Element, Logical, Meaning};
use pleach_format::record::FieldKind;
use pleach_input::InputOptions;
use std::sync::Arc;

/// Tuples that are converted at a time.
const PIECE: usize = 1 << 16;

/// Makes an array of what its elements mean: texts of types that Arrow lacks, structs of composite keys, and all others
/// unchanged.
///
/// # Errors
/// [`ArrowError`] if composite keys do not have the parts of their type: they came from a damaged file.
pub fn meant(array: ArrayRef, logical: &Logical) -> Result<ArrayRef, ArrowError> {
    match logical {
        Logical::Composite(composite) => structs(composite, &array),
        logical => Ok(texts(array, logical)),
    }
}

/// Makes a struct array of composite keys.
///
/// # Errors
/// [`ArrowError`] if keys do not have the parts of their type: they came from a damaged file.
fn structs(composite: &Composite, keys: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let parts = composite.parts();
    let mut columns: Vec<Vec<Option<Element>>> = vec![Vec::with_capacity(keys.len()); parts.all().len()];
    for at in 0..keys.len() {
        if keys.is_null(at) {
            columns.iter_mut().for_each(|column| column.push(None));
            continue;
        }
        let elements = match keys.data_type() {
            DataType::UInt32 => parts.split_number(keys.as_primitive::<UInt32Type>().value(at).into()),
            DataType::UInt64 => parts.split_number(keys.as_primitive::<UInt64Type>().value(at).into()),
            DataType::FixedSizeBinary(_) => {
                let bytes = keys.as_fixed_size_binary().value(at);
                match bytes.try_into() {
                    Ok(word) if parts.is_number() => parts.split_number(u128::from_be_bytes(word)),
                    _ => parts.split(bytes),
                }
            }
            _ => keys.as_binary_opt::<i64>().and_then(|keys| parts.split(keys.value(at))),
        };
        let elements = elements.ok_or_else(|| {
            ArrowError::InvalidArgumentError("a key does not have the parts of its type".to_owned())
        })?;
        columns.iter_mut().zip(elements).for_each(|(column, element)| column.push(Some(element)));
    }
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for ((name, meaning), column) in composite.columns().iter().zip(columns) {
        let array = part(meaning, column)?;
        fields.push(meant_field(name, &array, true, &meaning.logical));
        arrays.push(array);
    }
    Ok(Arc::new(StructArray::try_new(Fields::from(fields), arrays, keys.nulls().cloned())?))
}

/// Returns the Arrow type of the words of a part, and their bytes; `None` for strings and for 128 bits.
fn words_of(meaning: &Meaning) -> (DataType, Option<usize>) {
    match (FieldKind::from_name(&meaning.words), KeyType::from_name(&meaning.words)) {
        (Some(FieldKind::Fixed(_) | FieldKind::Bytes | FieldKind::Utf8) | None, held) => {
            (key_type(held.unwrap_or(KeyType::Bytes)), None)
        }
        (Some(number), _) => (field_type(number), Some(number.bytes())),
    }
}

/// Makes the array of a part.
fn part(meaning: &Meaning, column: Vec<Option<Element>>) -> Result<ArrayRef, ArrowError> {
    let nulls: NullBuffer = column.iter().map(Option::is_some).collect();
    let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
    let (plain, bytes) = words_of(meaning);
    let array = match bytes {
        Some(bytes) => {
            let mut words = Vec::with_capacity(column.len() * bytes);
            for element in &column {
                let word = match element {
                    Some(Element::Signed(number)) => number.cast_unsigned(),
                    Some(Element::Unsigned(number)) => *number as u64,
                    Some(Element::Bytes(_)) | None => 0,
                };
                words.extend_from_slice(&word.to_le_bytes()[..bytes]);
            }
            let data_type = logical_type(plain, &meaning.logical);
            // Numbers must begin at their alignment.
            numbers(data_type, Buffer::from_slice_ref(&words), column.len(), nulls)?
        }
        None => {
            let mut all = Gathered { offsets: vec![0], data: Vec::new() };
            for element in column {
                match element {
                    Some(Element::Bytes(bytes)) => all.data.extend_from_slice(&bytes),
                    Some(Element::Unsigned(number)) => all.data.extend_from_slice(&number.to_be_bytes()),
                    Some(Element::Signed(_)) | None => {}
                }
                all.offsets.push(all.data.len() as u64);
            }
            strings(plain, all, nulls)?
        }
    };
    Ok(texts(array, &meaning.logical))
}

impl Table {
    /// Reads composite keys of a struct array, whose fields have the names of the parts or else are in their order. A
    /// null in any part makes a null key.
    ///
    /// # Errors
    /// [`BatchError::Refused`] if the file has no composite keys, or if the fields are not its parts.
    pub(super) fn of_structs(&self, keys: &StructArray) -> Result<Parsed, BatchError> {
        let Logical::Composite(composite) = self.key_meaning() else {
            let text =
                "types differ: the keys are structs, but those of the file are not composite: give one array";
            return Err(BatchError::Refused(text.to_owned()));
        };
        let refused = |error: &dyn std::fmt::Display| {
            BatchError::Refused(format!("these keys cannot be read: {error}"))
        };
        let columns = composite.columns();
        if keys.num_columns() != columns.len() {
            let (given, held) = (keys.num_columns(), columns.len());
            let text =
                format!("the keys have {given} parts, but those of the file have {held}: give as many");
            return Err(BatchError::Refused(text));
        }
        let by_name = columns.iter().all(|(name, _)| keys.column_by_name(name).is_some());
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for (at, (name, _)) in columns.iter().enumerate() {
            let index = if by_name { keys.column_names().iter().position(|own| own == name) } else { None };
            let index = index.unwrap_or(at);
            let metadata = keys.fields()[index].metadata().clone();
            let array = keys.column(index);
            fields.push(Field::new(name, array.data_type().clone(), true).with_metadata(metadata));
            arrays.push(Arc::clone(array));
        }
        let nulls = arrays.iter().fold(keys.nulls().cloned(), |nulls, array| {
            NullBuffer::union(nulls.as_ref(), array.logical_nulls().as_ref())
        });
        let valid: BooleanArray =
            (0..keys.len()).map(|at| Some(nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at)))).collect();
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(|error| refused(&error))?;
        let batch =
            arrow_select::filter::filter_record_batch(&batch, &valid).map_err(|error| refused(&error))?;
        let options = InputOptions {
            key_logical: Some(self.key_meaning().clone()),
            value_type: Some(pleach::ValueType::None),
            ..InputOptions::default()
        };
        // A part that its type cannot hold is refused.
        let refused_at = |error: SourceError| {
            let place = if error.place.is_empty() { String::new() } else { format!(": {}", error.place) };
            let wanted = self.key_meaning().name();
            BatchError::Refused(format!("keys{place}: {}: give parts of the types {wanted}", error.what))
        };
        let source = pleach_input::open_batches("keys", &schema, std::iter::once(Ok(batch)), &options);
        let mut source = source.map_err(refused_at)?;
        let mut parsed = Parsed::of_type(self.key_type().is_bytes(), keys.len());
        let mut places = (0..keys.len()).filter(|&at| valid.value(at));
        let mut chunk = Chunk::default();
        loop {
            source.next_chunk(&mut chunk, PIECE).map_err(refused_at)?;
            if chunk.is_empty() {
                break;
            }
            for at in 0..chunk.len() {
                let element = match &chunk.keys {
                    Column::U32(words) => Element::Unsigned(words[at].into()),
                    Column::U64(words) => Element::Unsigned(words[at].into()),
                    Column::U128(words) => Element::Unsigned(words[at]),
                    Column::Bytes(all) => Element::Bytes(all.get(at).to_vec()),
                    Column::None => Element::Unsigned(0),
                };
                parsed.put(places.next().unwrap_or(0), element);
            }
        }
        parsed.fill(keys.len());
        Ok(parsed)
    }
}
