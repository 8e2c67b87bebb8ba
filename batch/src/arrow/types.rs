//! The Arrow types of keys, values and fields.

use arrow_schema::DataType;
use pleach::{KeyType, ValueType};
use pleach_format::logical::Logical;
use pleach_format::record::FieldKind;

/// Returns the Arrow type of words that mean this; `plain` is that of the words.
#[must_use]
pub fn logical_type(plain: DataType, meaning: &Logical) -> DataType {
    match meaning {
        Logical::Plain | Logical::Unknown(_) | Logical::Record(_) => plain,
        meaning => pleach_input::logical_type(&meaning.meta()).unwrap_or(plain),
    }
}

/// Returns the Arrow type of values without a meaning.
#[must_use]
pub fn number_type(value_type: ValueType) -> DataType {
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

/// Returns the Arrow type of keys without a meaning; numbers of 128 bits are big-endian bytes.
#[must_use]
pub fn key_type(key_type: KeyType) -> DataType {
    match key_type {
        KeyType::U32 => DataType::UInt32,
        KeyType::U64 => DataType::UInt64,
        KeyType::I32 => DataType::Int32,
        KeyType::I64 => DataType::Int64,
        KeyType::F64 => DataType::Float64,
        KeyType::U128 => DataType::FixedSizeBinary(16),
        KeyType::Fixed(bytes) => DataType::FixedSizeBinary(bytes.into()),
        KeyType::Bytes => DataType::LargeBinary,
        KeyType::Utf8 => DataType::LargeUtf8,
    }
}

/// Returns the Arrow type of a field of a record, without a meaning.
pub(super) fn field_type(kind: FieldKind) -> DataType {
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
        FieldKind::Fixed(bytes) => DataType::FixedSizeBinary(bytes.into()),
        FieldKind::Bytes => DataType::LargeBinary,
        FieldKind::Utf8 => DataType::LargeUtf8,
    }
}
