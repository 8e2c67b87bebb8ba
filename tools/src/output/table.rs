//! The columns of a table, and what writes them.

use crate::message::Message;
use arrow_schema::{DataType, TimeUnit};
use pleach::{FieldKind, KeyType, Meta, ValueType};
use pleach_builder::Strings;
use pleach_format::logical::Form;
use pleach_format::{Logical, Meaning};
use std::collections::HashMap;
use std::fmt;
use std::io;

/// A part of a column.
#[derive(Clone, Copy, Debug)]
pub enum Numbers<'a> {
    U8(&'a [u8]),
    U16(&'a [u16]),
    I8(&'a [i8]),
    I16(&'a [i16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    F32(&'a [f32]),
    F64(&'a [f64]),
    U128(&'a [u128]),
    /// Byte strings.
    Bytes(&'a Strings),
    /// Texts.
    Utf8(&'a Strings),
}

impl Numbers<'_> {
    /// Returns the number of elements.
    pub fn len(self) -> usize {
        match self {
            Self::U8(numbers) => numbers.len(),
            Self::U16(numbers) => numbers.len(),
            Self::I8(numbers) => numbers.len(),
            Self::I16(numbers) => numbers.len(),
            Self::U32(numbers) => numbers.len(),
            Self::U64(numbers) => numbers.len(),
            Self::I32(numbers) => numbers.len(),
            Self::I64(numbers) => numbers.len(),
            Self::F32(numbers) => numbers.len(),
            Self::F64(numbers) => numbers.len(),
            Self::U128(numbers) => numbers.len(),
            Self::Bytes(strings) | Self::Utf8(strings) => strings.len(),
        }
    }
}

/// A type that columns can have; `()` stands for no column.
pub trait Cell: Sized {
    /// Plain Arrow type; `None` for no column.
    const PLAIN: Option<DataType>;
    /// Makes a part of a column.
    fn numbers(cells: &[Self]) -> Option<Numbers<'_>>;
}

impl Cell for () {
    const PLAIN: Option<DataType> = None;
    fn numbers(_: &[Self]) -> Option<Numbers<'_>> {
        None
    }
}

/// Arrow has no integer of this width: sixteen bytes are stored, the most significant one first.
impl Cell for u128 {
    const PLAIN: Option<DataType> = Some(DataType::FixedSizeBinary(16));
    fn numbers(cells: &[Self]) -> Option<Numbers<'_>> {
        Some(Numbers::U128(cells))
    }
}

macro_rules! cells {
    ($($t:ty, $variant:ident, $plain:ident;)*) => {$(
        impl Cell for $t {
            const PLAIN: Option<DataType> = Some(DataType::$plain);
            fn numbers(cells: &[Self]) -> Option<Numbers<'_>> { Some(Numbers::$variant(cells)) }
        }
    )*};
}
cells! {
    u32, U32, UInt32;
    u64, U64, UInt64;
    i32, I32, Int32;
    i64, I64, Int64;
    f32, F32, Float32;
    f64, F64, Float64;
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the column.
    pub name: String,
    /// Type of the column, which may be logical (a timestamp of integers).
    pub data_type: DataType,
    /// Form in which text formats write it, if it is logical.
    pub form: Option<Form>,
    /// Its extension type in Arrow, if it has one.
    pub metadata: HashMap<String, String>,
}

impl Field {
    /// Makes a column of type `T` with its logical type from META, if the two fit together: a damaged or
    /// newer META costs the logical type, not the export. `None` if there is no column.
    pub fn new<T: Cell>(name: &str, default_name: &str, logical: &str) -> Option<Self> {
        let plain = T::PLAIN?;
        let logical = pleach_input::logical_type(logical).filter(|logical| fits(&plain, logical));
        let name = if name.is_empty() { default_name } else { name };
        let data_type = logical.unwrap_or(plain);
        Some(Self { name: name.to_owned(), data_type, form: None, metadata: HashMap::new() })
    }

    /// Gives the column what it means, in formats that cannot tell by its Arrow type alone.
    fn meant(self, meaning: &Meaning) -> Self {
        let is_text = pleach_input::is_text_in_arrow(&meaning.logical);
        Self {
            form: meaning.form(),
            metadata: pleach_input::extension_metadata(&meaning.logical).unwrap_or_default(),
            data_type: if is_text { DataType::Utf8 } else { self.data_type },
            ..self
        }
    }

    /// Makes a column of this type; `None` for values of type `none`.
    pub fn of_type(value_type: ValueType, name: &str, default_name: &str, logical: &str) -> Option<Self> {
        let name = if name.is_empty() { default_name } else { name }.to_owned();
        let meaning = Meaning::new(value_type, logical);
        let field =
            |data_type| Some(Self { name: name.clone(), data_type, form: None, metadata: HashMap::new() });
        let field = match value_type {
            ValueType::U32 => Self::new::<u32>(&name, "", logical),
            ValueType::U64 => Self::new::<u64>(&name, "", logical),
            ValueType::I32 => Self::new::<i32>(&name, "", logical),
            ValueType::I64 => Self::new::<i64>(&name, "", logical),
            ValueType::F32 => Self::new::<f32>(&name, "", logical),
            ValueType::F64 => Self::new::<f64>(&name, "", logical),
            ValueType::Fixed(bytes) => field(DataType::FixedSizeBinary(bytes.into())),
            ValueType::Bytes => field(DataType::Binary),
            ValueType::Utf8 => field(DataType::Utf8),
            ValueType::None => None,
        };
        field.map(|field| field.meant(&meaning))
    }

    /// Makes a key column of this type.
    pub fn of_key(key_type: KeyType, name: &str, logical: &str) -> Option<Self> {
        let same = match key_type {
            KeyType::U128 => {
                let name = if name.is_empty() { "key" } else { name };
                let meaning = Meaning::new(key_type, logical);
                return Self::new::<u128>(name, "", logical).map(|field| field.meant(&meaning));
            }
            KeyType::U32 => ValueType::U32,
            KeyType::U64 => ValueType::U64,
            KeyType::I32 => ValueType::I32,
            KeyType::I64 => ValueType::I64,
            KeyType::F64 => ValueType::F64,
            KeyType::Fixed(bytes) => ValueType::Fixed(bytes),
            KeyType::Bytes => ValueType::Bytes,
            KeyType::Utf8 => ValueType::Utf8,
        };
        Self::of_type(same, name, "key", logical)
    }

    /// Makes the columns of keys of this type: one for each part of composite ones.
    pub fn of_keys(key_type: KeyType, name: &str, logical: &str) -> Vec<Self> {
        let Logical::Composite(composite) = Meaning::new(key_type, logical).logical else {
            return Self::of_key(key_type, name, logical).into_iter().collect();
        };
        let part = |(name, meaning): &(String, Meaning)| {
            let logical = meaning.logical.meta();
            match FieldKind::from_name(&meaning.words) {
                Some(kind) => Some(Self::of_field(&pleach::Field { name: name.clone(), kind, logical })),
                None => Self::of_key(KeyType::from_name(&meaning.words)?, name, &logical),
            }
        };
        composite.columns().iter().filter_map(part).collect()
    }

    /// Makes a column for a field of records.
    pub fn of_field(field: &pleach::Field) -> Self {
        let plain = match field.kind {
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
            FieldKind::Bytes => DataType::Binary,
            FieldKind::Utf8 => DataType::Utf8,
        };
        let logical = pleach_input::logical_type(&field.logical);
        let data_type = logical.filter(|logical| fits(&plain, logical)).unwrap_or(plain);
        let made = Self { name: field.name.clone(), data_type, form: None, metadata: HashMap::new() };
        made.meant(&Meaning::new(field.kind, &field.logical))
    }

    /// Returns the columns of a Pleach file.
    pub fn of_tuples(types: (KeyType, ValueType), meta: &Meta) -> Vec<Self> {
        [
            Self::of_key(types.0, &meta.key_name, &meta.key_logical),
            Self::of_type(types.1, &meta.value_name, "value", &meta.value_logical),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Returns true if integers of type `plain` can be read as `logical`.
fn fits(plain: &DataType, logical: &DataType) -> bool {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let decimal = |precision: u8, digits: u8, scale: i8| {
        (1..=digits).contains(&precision) && i16::from(scale) <= i16::from(precision)
    };
    match (plain, logical) {
        (DataType::UInt32 | DataType::UInt8, DataType::Boolean) => true,
        (DataType::Int32, DataType::Date32 | DataType::Time32(Second | Millisecond))
        | (DataType::Int64, DataType::Date64 | DataType::Timestamp(..) | DataType::Duration(_))
        | (DataType::Int64, DataType::Time64(Microsecond | Nanosecond)) => true,
        (DataType::Int64, &DataType::Decimal32(precision, scale)) => decimal(precision, 9, scale),
        (DataType::Int64, &DataType::Decimal64(precision, scale)) => decimal(precision, 18, scale),
        (DataType::Int64, &DataType::Decimal128(precision, scale)) => decimal(precision, 38, scale),
        _ => false,
    }
}

/// Error in writing a table.
#[derive(Debug)]
pub enum OutputError {
    /// A system error.
    Io(io::Error),
    /// The format cannot hold the data: the reason, and what to do.
    Unfit(Message),
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Unfit(message) => message.fmt(f),
        }
    }
}

impl std::error::Error for OutputError {}

impl From<io::Error> for OutputError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Returns the number of rows; all columns must have equally many.
pub fn rows(columns: &[Numbers<'_>]) -> Result<usize, OutputError> {
    let rows = columns.first().map_or(0, |column| column.len());
    match columns.iter().find(|column| column.len() != rows) {
        None => Ok(rows),
        Some(other) => {
            let other = other.len();
            let what = format!("columns of unequal length, {rows} and {other} rows");
            Err(OutputError::Unfit(Message::new(what).advise("run pleach fsck")))
        }
    }
}

/// Writes a table, batch by batch.
pub trait TableWriter {
    /// Appends rows: one [`Numbers`] for each [`Field`], all of one length.
    fn write_batch(&mut self, columns: &[Numbers<'_>]) -> Result<(), OutputError>;
    /// Writes the end of the format. Without it a table is not complete.
    fn finish(&mut self) -> Result<(), OutputError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logical_types_must_fit_their_numbers() {
        let kept = |logical| Field::new::<i64>("t", "key", logical).map(|field| field.data_type);
        assert_eq!(kept(""), Some(DataType::Int64));
        assert_eq!(kept("Date32"), Some(DataType::Int64));
        assert_eq!(kept("Date64"), Some(DataType::Date64));
        assert_eq!(kept("Time64(Second)"), Some(DataType::Int64));
        assert_eq!(kept("Decimal128(15, 2)"), Some(DataType::Decimal128(15, 2)));
        assert_eq!(kept("Decimal128(0, 0)"), Some(DataType::Int64));
        assert_eq!(kept("Decimal128(2, 3)"), Some(DataType::Int64));
        assert_eq!(kept("Decimal32(10, 0)"), Some(DataType::Int64));
        assert_eq!(kept("Boolean"), Some(DataType::Int64));
        let boolean = Field::new::<u32>("t", "value", "Boolean").map(|field| field.data_type);
        assert_eq!(boolean, Some(DataType::Boolean));
        assert_eq!(kept("of a later version"), Some(DataType::Int64));
        assert_eq!(Field::new::<()>("t", "value", ""), None);
        assert_eq!(Field::new::<u32>("", "value", "").map(|field| field.name), Some("value".to_owned()));
    }
}
