//! Arrays of Arrow as slices of numbers and as byte strings.

use crate::convert::Slice;
use crate::kind::{Kind, Target};
use crate::logical::natural;
use crate::strings;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use pleach_builder::Column;
use std::sync::Arc;

/// Makes placeholder values for rows that have none; they have the type of the column.
pub(crate) fn stand_in_of(kind: Kind, rows: usize) -> ArrayRef {
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

/// Makes 1 and 0 of booleans; all other arrays stay as they are.
pub(crate) fn numbers(array: ArrayRef) -> ArrayRef {
    match array.as_boolean_opt() {
        Some(booleans) => {
            let words = booleans.values().iter().map(u8::from);
            Arc::new(arrow_array::UInt8Array::from_iter_values(words))
        }
        None => array,
    }
}

/// Returns true if elements of this type are byte strings.
pub(crate) fn is_strings(data_type: &DataType) -> bool {
    natural(data_type).is_some_and(|natural| natural.kind.is_bytes())
}

/// Some consecutive strings of a column without nulls.
pub(crate) struct ArrayStrings<'a> {
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

impl<'a> ArrayStrings<'a> {
    /// Returns the strings `start..start + count`; `None` if the column holds none.
    pub(crate) fn new(array: &'a ArrayRef, start: usize, count: usize) -> Option<Self> {
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

    /// Appends the strings, converted; see [`strings::append`].
    pub(crate) fn append(
        &self,
        target: Target,
        out: &mut Column,
    ) -> Result<(), (usize, strings::StringProblem)> {
        with_strings!(self, |get| match &self.places {
            Places::Range(range) => strings::append(range.clone().map(get), self.valid, target, out),
            Places::List(list) => strings::append(list.iter().copied().map(get), self.valid, target, out),
        })
    }

    /// Returns how many of the first strings have at most `bytes` bytes together; at least one.
    pub(crate) fn prefix(&self, bytes: usize) -> usize {
        with_strings!(self, |get| match &self.places {
            Places::Range(range) => strings::prefix(range.clone().map(|at| get(at).len()), bytes),
            Places::List(list) => strings::prefix(list.iter().map(|&at| get(at).len()), bytes),
        })
    }

    /// Returns the string at `index`.
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let at = match &self.places {
            Places::Range(range) => range.start + index,
            Places::List(list) => list[index],
        };
        with_strings!(self, |get| get(at))
    }
}

/// Returns the numbers `start..start + count` of a column without nulls.
pub(crate) fn slice(data: &ArrayData, start: usize, count: usize) -> Option<Slice<'_>> {
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
