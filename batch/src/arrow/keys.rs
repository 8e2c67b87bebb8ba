//! Keys in Arrow arrays, read where they lie.

use crate::error::{BatchError, Result};
use crate::keys::{Keys, Texts};
use crate::nulls::Nulls;
use crate::numbers::{Lane, Numbers};
use crate::parsed::Parsed;
use crate::table::Table;
use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, Decimal128Type};
use arrow_array::{Array, ArrayRef, GenericByteArray, GenericByteViewArray, Int64Array};
use arrow_schema::DataType;
use pleach::Queries;
use pleach_format::logical::{Logical, Ratio};
use std::sync::Arc;

/// An Arrow array of keys for one file. Cloning it copies no keys.
#[derive(Clone, Debug)]
pub struct ArrowKeys {
    array: ArrayRef,
    /// Type of the numbers, and how they become keys; `None` for strings.
    numbers: Option<(Lane, Option<Ratio>)>,
    /// The keys, if the strings are their texts.
    parsed: Option<Arc<Parsed>>,
}

/// An Arrow array of strings as texts of a batch.
struct Strings<'a, A>(&'a A);

macro_rules! strings {
    ($([$($generics:tt)*] $array:ty, $bytes:expr;)*) => {$(
        impl<$($generics)*> Queries for Strings<'_, $array> {
            fn len(&self) -> usize {
                self.0.len()
            }
            fn get(&self, index: usize) -> &[u8] {
                ($bytes)(self.0, index)
            }
        }
        impl<$($generics)*> Texts for Strings<'_, $array> {
            fn is_null(&self, at: usize) -> bool {
                self.0.is_null(at)
            }
        }
    )*};
}
strings! {
    [T: ByteArrayType] GenericByteArray<T>, bytes_of::<T>;
    [] arrow_array::StringViewArray, view_of;
    [] arrow_array::BinaryViewArray, view_of;
    [] arrow_array::FixedSizeBinaryArray, fixed_of;
}

fn bytes_of<T: ByteArrayType>(array: &GenericByteArray<T>, index: usize) -> &[u8] {
    array.value(index).as_ref()
}
fn view_of<T: arrow_array::types::ByteViewType>(array: &GenericByteViewArray<T>, index: usize) -> &[u8] {
    array.value(index).as_ref()
}
fn fixed_of(array: &arrow_array::FixedSizeBinaryArray, index: usize) -> &[u8] {
    array.value(index)
}

impl ArrowKeys {
    /// Makes keys for this file of an array. Nulls are missing keys. A dictionary is replaced by its values.
    ///
    /// # Errors
    /// [`BatchError::Refused`] if the array has no keys of the file's type or meaning.
    pub fn new(table: &Table, array: ArrayRef) -> Result<Self> {
        let data_type = array.data_type().clone();
        let lane = match &data_type {
            DataType::UInt8 => Lane::U8,
            DataType::UInt16 => Lane::U16,
            DataType::UInt32 => Lane::U32,
            DataType::UInt64 => Lane::U64,
            DataType::Int8 => Lane::I8,
            DataType::Int16 => Lane::I16,
            DataType::Int32 | DataType::Date32 | DataType::Time32(_) => Lane::I32,
            DataType::Decimal128(..) => {
                let words = array.as_primitive::<Decimal128Type>();
                // A file has decimals of 64 bits: a larger one is in none.
                let words: Int64Array =
                    words.iter().map(|word| word.and_then(|word| i64::try_from(word).ok())).collect();
                let meta = pleach_input::logical_text(&data_type).unwrap_or_default();
                let ratio = table.ratio_of(&Logical::of_meta(&meta))?;
                let numbers = Some((Lane::I64, ratio));
                return Ok(Self { array: Arc::new(words), numbers, parsed: None });
            }
            DataType::Decimal32(..) => Lane::I32,
            DataType::Int64
            | DataType::Decimal64(..)
            | DataType::Date64
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Duration(_) => Lane::I64,
            DataType::Float32 => Lane::F32,
            DataType::Float64 => Lane::F64,
            DataType::FixedSizeBinary(16) if table.takes_wide() => Lane::U128,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let mut keys = Self { array, numbers: None, parsed: None };
                keys.parsed = keys.with_texts(|texts| table.parsed(texts))?.map(Arc::new);
                return Ok(keys);
            }
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => {
                return Ok(Self { array, numbers: None, parsed: None });
            }
            DataType::Struct(_) => {
                let parsed = Some(Arc::new(table.of_structs(array.as_struct())?));
                return Ok(Self { array, numbers: None, parsed });
            }
            DataType::Dictionary(_, values) => {
                return Self::new(table, unpacked(&array, values)?);
            }
            _ => {
                let text =
                    format!("arrays of type {data_type} cannot be keys: give numbers, texts, bytes or times");
                return Err(BatchError::Refused(text));
            }
        };
        let meta = pleach_input::logical_text(&data_type).unwrap_or_default();
        let ratio = match Logical::of_meta(&meta) {
            Logical::Plain if lane == Lane::U128 => None,
            Logical::Plain => {
                table.check_plain(lane.name())?;
                None
            }
            own => table.ratio_of(&own)?,
        };
        Ok(Self { array, numbers: Some((lane, ratio)), parsed: None })
    }

    /// Takes an array of texts or byte strings as it is: prefixes of keys.
    ///
    /// # Errors
    /// [`BatchError::Refused`] if the array has other elements.
    pub fn of_strings(array: ArrayRef) -> Result<Self> {
        match array.data_type() {
            DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Ok(Self { array, numbers: None, parsed: None }),
            other => Err(BatchError::Refused(format!(
                "arrays of type {other} are no prefixes: give texts or bytes"
            ))),
        }
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.array.len()
    }

    /// Returns true if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.array.is_empty()
    }

    /// Calls `ask` with the keys.
    pub fn with<R>(&self, ask: impl FnOnce(&Keys<'_>) -> R) -> R {
        let array = &self.array;
        if let Some(parsed) = &self.parsed {
            return parsed.with(ask);
        }
        let Some((lane, ratio)) = self.numbers else {
            return self.with_texts(|texts| ask(&Keys::Texts(texts)));
        };
        let data = array.to_data();
        let bytes = lane.bytes();
        let values = &data.buffers()[0].as_slice()[data.offset() * bytes..];
        assert!(values.len() >= array.len() * bytes, "Arrow checks the length of its buffers");
        let (start, stride) = (values.as_ptr(), bytes.cast_signed());
        // SAFETY: the assertion shows that as many numbers are there, and `data` holds the buffer.
        let numbers = unsafe { Numbers::new(start, array.len(), stride, lane, lane == Lane::U128) };
        let nulls = data.nulls().map(|nulls| Nulls::new(nulls.validity(), nulls.offset()));
        ask(&Keys::Numbers(numbers.with_ratio(ratio).with_nulls(nulls)))
    }

    fn with_texts<R>(&self, ask: impl FnOnce(&dyn Texts) -> R) -> R {
        let array = &self.array;
        match array.data_type() {
            DataType::Utf8 => ask(&Strings(array.as_string::<i32>())),
            DataType::LargeUtf8 => ask(&Strings(array.as_string::<i64>())),
            DataType::Binary => ask(&Strings(array.as_binary::<i32>())),
            DataType::LargeBinary => ask(&Strings(array.as_binary::<i64>())),
            DataType::Utf8View => ask(&Strings(array.as_string_view())),
            DataType::BinaryView => ask(&Strings(array.as_binary_view())),
            _ => ask(&Strings(array.as_fixed_size_binary())),
        }
    }
}

/// Replaces a dictionary by its values.
fn unpacked(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let values = array.as_any_dictionary();
    arrow_select::take::take(values.values(), values.keys(), None).map_err(|error| {
        BatchError::Refused(format!("dictionary of {to} cannot be read: {error}: give values"))
    })
}
