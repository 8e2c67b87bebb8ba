//! Columns of any type that are gathered for a table.

use super::table::{Numbers, OutputError};
use crate::message::Message;
use pleach::{Datum, FieldKind, FieldValue, Key, KeyType, Record, ValueType};
use pleach_builder::{Column, Strings};
use pleach_format::logical::{Composite, Element, Meaning};

/// A column of a batch, of any type.
pub enum Gathered {
    U8(Vec<u8>),
    U16(Vec<u16>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    U128(Vec<u128>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bytes(Strings),
    Utf8(Strings),
}

impl Gathered {
    /// Makes an empty column for the type of `first`; `None` for values of type `none`.
    pub fn like(first: &Datum<'_>) -> Option<Self> {
        Some(match first {
            Datum::None => return None,
            Datum::U32(_) => Self::U32(Vec::new()),
            Datum::U64(_) => Self::U64(Vec::new()),
            Datum::U128(_) => Self::U128(Vec::new()),
            Datum::I32(_) => Self::I32(Vec::new()),
            Datum::I64(_) => Self::I64(Vec::new()),
            Datum::F32(_) => Self::F32(Vec::new()),
            Datum::F64(_) => Self::F64(Vec::new()),
            Datum::Bytes(_) => Self::Bytes(Strings::default()),
            Datum::Utf8(_) => Self::Utf8(Strings::default()),
        })
    }

    /// Makes empty columns for values: the fields of a record, or one column for the type of `first`.
    pub fn values(record: Option<&Record>, first: &Datum<'_>) -> Vec<Self> {
        match record {
            Some(record) => record.fields().iter().map(|field| Self::of(field.kind)).collect(),
            None => Self::like(first).into_iter().collect(),
        }
    }

    /// Makes an empty column for fields of this kind.
    pub fn of(kind: FieldKind) -> Self {
        match kind {
            FieldKind::U8 => Self::U8(Vec::new()),
            FieldKind::U16 => Self::U16(Vec::new()),
            FieldKind::U32 => Self::U32(Vec::new()),
            FieldKind::U64 => Self::U64(Vec::new()),
            FieldKind::I8 => Self::I8(Vec::new()),
            FieldKind::I16 => Self::I16(Vec::new()),
            FieldKind::I32 => Self::I32(Vec::new()),
            FieldKind::I64 => Self::I64(Vec::new()),
            FieldKind::F32 => Self::F32(Vec::new()),
            FieldKind::F64 => Self::F64(Vec::new()),
            FieldKind::Fixed(_) | FieldKind::Bytes => Self::Bytes(Strings::default()),
            FieldKind::Utf8 => Self::Utf8(Strings::default()),
        }
    }

    /// Makes an empty column for a part of composite keys.
    fn of_part(meaning: &Meaning) -> Self {
        match FieldKind::from_name(&meaning.words) {
            Some(kind) => Self::of(kind),
            None if meaning.words == "u128" => Self::U128(Vec::new()),
            None => Self::Bytes(Strings::default()),
        }
    }

    fn push_element(&mut self, element: &Element) {
        match (self, element) {
            (Self::U8(column), Element::Unsigned(number)) => column.push(*number as u8),
            (Self::U16(column), Element::Unsigned(number)) => column.push(*number as u16),
            (Self::U32(column), Element::Unsigned(number)) => column.push(*number as u32),
            (Self::U64(column), Element::Unsigned(number)) => column.push(*number as u64),
            (Self::U128(column), Element::Unsigned(number)) => column.push(*number),
            (Self::I8(column), Element::Signed(number)) => column.push(*number as i8),
            (Self::I16(column), Element::Signed(number)) => column.push(*number as i16),
            (Self::I32(column), Element::Signed(number)) => column.push(*number as i32),
            (Self::I64(column), Element::Signed(number)) => column.push(*number),
            (Self::Bytes(column) | Self::Utf8(column), Element::Bytes(bytes)) => column.push(bytes),
            _ => unreachable!("the elements of a part are of one type"),
        }
    }

    /// Makes a column of each part of composite keys; refuses a key without the parts of its type, of a damaged file.
    pub fn of_parts(composite: &Composite, keys: &Self) -> Result<Vec<Self>, OutputError> {
        let mut columns: Vec<Self> =
            composite.columns().iter().map(|(_, meaning)| Self::of_part(meaning)).collect();
        let parts = composite.parts();
        for row in 0..keys.numbers().len() {
            let elements = match keys.datum(row) {
                Datum::U32(number) => parts.split_number(number.into()),
                Datum::U64(number) => parts.split_number(number.into()),
                Datum::U128(number) => parts.split_number(number),
                Datum::Bytes(bytes) => parts.split(&bytes),
                _ => None,
            };
            let elements = elements.ok_or_else(|| {
                let message = Message::new("a key does not have the parts of its type");
                OutputError::Unfit(message.advise("run pleach fsck, or give --raw-values"))
            })?;
            columns.iter_mut().zip(&elements).for_each(|(column, element)| column.push_element(element));
        }
        Ok(columns)
    }

    pub fn push_field(&mut self, value: FieldValue<'_>) {
        match (self, value) {
            (Self::U8(column), FieldValue::U8(number)) => column.push(number),
            (Self::U16(column), FieldValue::U16(number)) => column.push(number),
            (Self::I8(column), FieldValue::I8(number)) => column.push(number),
            (Self::I16(column), FieldValue::I16(number)) => column.push(number),
            (column, value) => column.push(&Datum::of_field(value)),
        }
    }

    pub fn push(&mut self, datum: &Datum<'_>) {
        match (self, datum) {
            (Self::U32(column), Datum::U32(number)) => column.push(*number),
            (Self::U64(column), Datum::U64(number)) => column.push(*number),
            (Self::U128(column), Datum::U128(number)) => column.push(*number),
            (Self::I32(column), Datum::I32(number)) => column.push(*number),
            (Self::I64(column), Datum::I64(number)) => column.push(*number),
            (Self::F32(column), Datum::F32(number)) => column.push(*number),
            (Self::F64(column), Datum::F64(number)) => column.push(*number),
            (Self::Bytes(column), Datum::Bytes(bytes)) => column.push(bytes),
            (Self::Utf8(column), Datum::Utf8(text)) => column.push(text),
            _ => unreachable!("all data of a column are of one type"),
        }
    }

    pub fn numbers(&self) -> Numbers<'_> {
        match self {
            Self::U8(column) => Numbers::U8(column),
            Self::U16(column) => Numbers::U16(column),
            Self::I8(column) => Numbers::I8(column),
            Self::I16(column) => Numbers::I16(column),
            Self::U32(column) => Numbers::U32(column),
            Self::U64(column) => Numbers::U64(column),
            Self::U128(column) => Numbers::U128(column),
            Self::I32(column) => Numbers::I32(column),
            Self::I64(column) => Numbers::I64(column),
            Self::F32(column) => Numbers::F32(column),
            Self::F64(column) => Numbers::F64(column),
            Self::Bytes(column) => Numbers::Bytes(column),
            Self::Utf8(column) => Numbers::Utf8(column),
        }
    }
}

fn words32(column: &Column) -> &[u32] {
    if let Column::U32(words) = column { words } else { &[] }
}

fn words64(column: &Column) -> &[u64] {
    if let Column::U64(words) = column { words } else { &[] }
}

fn words128(column: &Column) -> &[u128] {
    if let Column::U128(words) = column { words } else { &[] }
}

fn strings(column: &Column) -> Strings {
    if let Column::Bytes(strings) = column { strings.clone() } else { Strings::default() }
}

impl Gathered {
    /// Converts a column of encoded keys, whose variant is that of the type.
    pub fn of_keys(key_type: KeyType, keys: &Column) -> Self {
        match key_type {
            KeyType::U32 => Self::U32(words32(keys).to_vec()),
            KeyType::U64 => Self::U64(words64(keys).to_vec()),
            KeyType::U128 => Self::U128(words128(keys).to_vec()),
            KeyType::I32 => Self::I32(words32(keys).iter().map(|&word| i32::decode(word)).collect()),
            KeyType::I64 => Self::I64(words64(keys).iter().map(|&word| i64::decode(word)).collect()),
            KeyType::F64 => Self::F64(words64(keys).iter().map(|&word| f64::decode(word)).collect()),
            KeyType::Fixed(_) | KeyType::Bytes => Self::Bytes(strings(keys)),
            KeyType::Utf8 => Self::Utf8(strings(keys)),
        }
    }

    /// Converts a column of bits of values, whose variant is that of the type; `None` for type `none`, and if
    /// there is no column.
    pub fn of_values(value_type: ValueType, values: &Column) -> Option<Self> {
        if matches!(values, Column::None) {
            return None;
        }
        Some(match value_type {
            ValueType::None => return None,
            ValueType::U32 => Self::U32(words32(values).to_vec()),
            ValueType::U64 => Self::U64(words64(values).to_vec()),
            ValueType::I32 => Self::I32(words32(values).iter().map(|bits| bits.cast_signed()).collect()),
            ValueType::I64 => Self::I64(words64(values).iter().map(|bits| bits.cast_signed()).collect()),
            ValueType::F32 => Self::F32(words32(values).iter().map(|&bits| f32::from_bits(bits)).collect()),
            ValueType::F64 => Self::F64(words64(values).iter().map(|&bits| f64::from_bits(bits)).collect()),
            ValueType::Fixed(_) | ValueType::Bytes => Self::Bytes(strings(values)),
            ValueType::Utf8 => Self::Utf8(strings(values)),
        })
    }

    /// Converts records to a column for each field.
    pub fn of_records(record: &Record, values: &Column) -> Vec<Self> {
        let mut columns: Vec<Self> = record.fields().iter().map(|field| Self::of(field.kind)).collect();
        let mut put = |packed: &[u8]| {
            columns
                .iter_mut()
                .zip(record.values(packed))
                .for_each(|(column, field)| column.push_field(field));
        };
        match values {
            Column::U32(words) => words.iter().for_each(|word| put(&word.to_le_bytes())),
            Column::U64(words) => words.iter().for_each(|word| put(&word.to_le_bytes())),
            Column::Bytes(strings) => strings.iter().for_each(put),
            Column::None | Column::U128(_) => {}
        }
        columns
    }

    /// Returns the element of a row. Panics if there is no such row.
    pub fn datum(&self, row: usize) -> Datum<'_> {
        match self {
            Self::U8(column) => Datum::U32(column[row].into()),
            Self::U16(column) => Datum::U32(column[row].into()),
            Self::I8(column) => Datum::I32(column[row].into()),
            Self::I16(column) => Datum::I32(column[row].into()),
            Self::U32(column) => Datum::U32(column[row]),
            Self::U64(column) => Datum::U64(column[row]),
            Self::U128(column) => Datum::U128(column[row]),
            Self::I32(column) => Datum::I32(column[row]),
            Self::I64(column) => Datum::I64(column[row]),
            Self::F32(column) => Datum::F32(column[row]),
            Self::F64(column) => Datum::F64(column[row]),
            Self::Bytes(column) => Datum::Bytes(column.get(row).into()),
            Self::Utf8(column) => Datum::Utf8(column.get(row).into()),
        }
    }
}
