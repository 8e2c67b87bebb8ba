//! A batch of keys, of whatever Python object.

use crate::errors::exception;
use crate::numpy::{Elements, Memory, input};
use arrow_array::cast::AsArray;
use arrow_array::types::ByteArrayType;
use arrow_array::{Array, ArrayRef, GenericByteArray, GenericByteViewArray};
use arrow_schema::DataType;
use pleach::{KeyType, Queries};
use pleach_batch::{Keys, Lane, Nulls, Numbers, Table, Texts};
use pleach_format::logical::{Logical, Meaning, Ratio, Unit, ratio};
use pyo3::prelude::*;
use pyo3_arrow::PyArray;

/// Keys, and who owns their memory.
pub(crate) enum Batch {
    /// A NumPy array of numbers, and how they become keys of the file.
    Memory(Memory, Lane, Option<Ratio>),
    /// An Arrow array of numbers.
    Numbers(ArrayRef, Lane, Option<Ratio>),
    /// An Arrow array of strings.
    Strings(ArrayRef),
    /// Strings that were copied from a NumPy array.
    Copied(Copied),
}

/// Byte strings that were copied.
pub(crate) struct Copied {
    data: Vec<u8>,
    ends: Vec<usize>,
}

impl Queries for Copied {
    fn len(&self) -> usize {
        self.ends.len() - 1
    }
    fn get(&self, index: usize) -> &[u8] {
        &self.data[self.ends[index]..self.ends[index + 1]]
    }
}
impl Texts for Copied {
    fn is_null(&self, _: usize) -> bool {
        false
    }
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

impl Batch {
    /// Makes a batch for this file of a NumPy array, or of an object that exports one Arrow array.
    pub(crate) fn of(table: &Table, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Some(memory) = Memory::of(object)? {
            return Self::of_memory(table, memory);
        }
        if object.hasattr("__arrow_c_array__")? {
            let (array, _) = object.extract::<PyArray>()?.into_inner();
            return Self::of_array(table, array);
        }
        let name = object.get_type().name()?;
        let text = format!("{name} cannot be keys: give a NumPy array, an Arrow array, a Series or a list");
        Err(exception("TypesError", text))
    }

    fn of_memory(table: &Table, memory: Memory) -> PyResult<Self> {
        match memory.elements.clone() {
            Elements::Numbers(lane) => {
                plain(table, lane.name())?;
                Ok(Self::Memory(memory, lane, None))
            }
            Elements::Times { unit, is_duration } => {
                let own = times(&unit, is_duration)?;
                let ratio = common(table, &own)?;
                Ok(Self::Memory(memory, Lane::I64, ratio))
            }
            Elements::Bytes { bytes, is_padded } => {
                // A file with keys of this length has zeros at their ends, too.
                let is_padded = is_padded && table.key_type() != KeyType::Fixed(bytes as u16);
                copied(&memory, bytes, |raw, data| {
                    let end = match raw.iter().rposition(|&byte| byte != 0) {
                        _ if !is_padded => raw.len(),
                        Some(last) => last + 1,
                        None => 0,
                    };
                    data.extend_from_slice(&raw[..end]);
                    Some(())
                })
            }
            Elements::Texts { characters } => {
                let is_swapped = memory.is_swapped;
                copied(&memory, characters * 4, |raw, data| {
                    let (words, _) = raw.as_chunks::<4>();
                    let code = |word: &[u8; 4]| {
                        if is_swapped { u32::from_be_bytes(*word) } else { u32::from_le_bytes(*word) }
                    };
                    let end = words.iter().rposition(|word| code(word) != 0).map_or(0, |last| last + 1);
                    for word in &words[..end] {
                        let letter = char::from_u32(code(word))?;
                        data.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                    Some(())
                })
            }
        }
    }

    fn of_array(table: &Table, array: ArrayRef) -> PyResult<Self> {
        let data_type = array.data_type().clone();
        let lane = match &data_type {
            DataType::UInt8 => Lane::U8,
            DataType::UInt16 => Lane::U16,
            DataType::UInt32 => Lane::U32,
            DataType::UInt64 => Lane::U64,
            DataType::Int8 => Lane::I8,
            DataType::Int16 => Lane::I16,
            DataType::Int32 | DataType::Date32 | DataType::Time32(_) => Lane::I32,
            DataType::Int64
            | DataType::Date64
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Duration(_) => Lane::I64,
            DataType::Float32 => Lane::F32,
            DataType::Float64 => Lane::F64,
            DataType::FixedSizeBinary(16) if table.key_type() == KeyType::U128 => Lane::U128,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Binary => {
                return Ok(Self::Strings(array));
            }
            DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
                return Ok(Self::Strings(array));
            }
            DataType::Dictionary(_, values) => {
                let values = arrow_cast(&array, values)?;
                return Self::of_array(table, values);
            }
            _ => {
                let text =
                    format!("arrays of type {data_type} cannot be keys: give numbers, texts, bytes or times");
                return Err(exception("TypesError", text));
            }
        };
        let meta = pleach_input::logical_text(&data_type).unwrap_or_default();
        let ratio = match Logical::of_meta(&meta) {
            Logical::Plain if lane == Lane::U128 => None,
            Logical::Plain => {
                plain(table, lane.name())?;
                None
            }
            own => common(table, &own)?,
        };
        Ok(Self::Numbers(array, lane, ratio))
    }

    /// Returns the number of keys.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Memory(memory, ..) => memory.len,
            Self::Numbers(array, ..) | Self::Strings(array) => array.len(),
            Self::Copied(copied) => copied.len(),
        }
    }

    /// Calls `ask` with the keys.
    pub(crate) fn with<R>(&self, ask: impl FnOnce(&Keys<'_>) -> R) -> R {
        match self {
            Self::Memory(memory, lane, ratio) => {
                // SAFETY: the array says that these numbers are there, and its object is held by `memory`. They are
                // copied before use, so other threads may write to them.
                let numbers = unsafe {
                    let start = memory.start as *const u8;
                    Numbers::new(start, memory.len, memory.stride, *lane, memory.is_swapped)
                };
                ask(&Keys::Numbers(numbers.with_ratio(*ratio)))
            }
            Self::Numbers(array, lane, ratio) => {
                let data = array.to_data();
                let bytes = lane.bytes();
                let values = &data.buffers()[0].as_slice()[data.offset() * bytes..];
                assert!(values.len() >= array.len() * bytes, "Arrow checks the length of its buffers");
                // SAFETY: the assertion shows that as many numbers are there, and `data` holds the buffer.
                let numbers = unsafe {
                    Numbers::new(
                        values.as_ptr(),
                        array.len(),
                        bytes.cast_signed(),
                        *lane,
                        *lane == Lane::U128,
                    )
                };
                let nulls = data.nulls().map(|nulls| Nulls::new(nulls.validity(), nulls.offset()));
                ask(&Keys::Numbers(numbers.with_ratio(*ratio).with_nulls(nulls)))
            }
            Self::Strings(array) => match array.data_type() {
                DataType::Utf8 => ask(&Keys::Texts(&Strings(array.as_string::<i32>()))),
                DataType::LargeUtf8 => ask(&Keys::Texts(&Strings(array.as_string::<i64>()))),
                DataType::Binary => ask(&Keys::Texts(&Strings(array.as_binary::<i32>()))),
                DataType::LargeBinary => ask(&Keys::Texts(&Strings(array.as_binary::<i64>()))),
                DataType::Utf8View => ask(&Keys::Texts(&Strings(array.as_string_view()))),
                DataType::BinaryView => ask(&Keys::Texts(&Strings(array.as_binary_view()))),
                _ => ask(&Keys::Texts(&Strings(array.as_fixed_size_binary()))),
            },
            Self::Copied(copied) => ask(&Keys::Texts(copied)),
        }
    }
}

fn arrow_cast(array: &ArrayRef, to: &DataType) -> PyResult<ArrayRef> {
    let values = array.as_any_dictionary();
    arrow_select::take::take(values.values(), values.keys(), None)
        .map_err(|error| exception("InputError", format!("dictionary of {to} cannot be read: {error}")))
}

/// Copies the strings of an array.
fn copied(
    memory: &Memory,
    bytes: usize,
    mut put: impl FnMut(&[u8], &mut Vec<u8>) -> Option<()>,
) -> PyResult<Batch> {
    let mut all = Copied { data: Vec::new(), ends: Vec::with_capacity(memory.len + 1) };
    all.ends.push(0);
    let mut raw = vec![0u8; bytes];
    for at in 0..memory.len {
        let start = (memory.start as *const u8).wrapping_offset(memory.stride * at.cast_signed());
        // SAFETY: the array says that these bytes are there, and its object is held by `memory`; the reader of
        // numbers copies, so other threads may write to them.
        let numbers = unsafe { Numbers::new(start, bytes, 1, Lane::U8, false) };
        numbers.read(0, &mut raw);
        if put(&raw, &mut all.data).is_none() {
            return Err(input(format!("key {at} is not a text: it has a code that is no character")));
        }
        all.ends.push(all.data.len());
    }
    Ok(Batch::Copied(all))
}

/// Checks that numbers without a meaning can be keys of the file.
fn plain(table: &Table, given: &str) -> PyResult<()> {
    match table.key_meaning() {
        Logical::Plain | Logical::Unknown(_) => Ok(()),
        meaning => {
            let text = format!(
                "types differ: the keys are {given}, but the file has {meaning} keys: give such keys"
            );
            Err(exception("TypesError", text))
        }
    }
}

/// Returns how keys of another unit become keys of the file.
fn common(table: &Table, own: &Logical) -> PyResult<Option<Ratio>> {
    let found = ratio(own, table.key_meaning());
    found.map(|found| Some(found).filter(|&found| found != Ratio::ONE)).ok_or_else(|| {
        let held = Meaning { words: table.key_type().to_string(), logical: table.key_meaning().clone() };
        let text = format!("types differ: the keys are {own}, but the file has {held} keys: convert them");
        exception("TypesError", text)
    })
}

fn times(unit: &str, is_duration: bool) -> PyResult<Logical> {
    let unit = match unit {
        "D" if !is_duration => return Ok(Logical::Date32),
        "s" => Unit::Second,
        "ms" => Unit::Millisecond,
        "us" => Unit::Microsecond,
        "ns" => Unit::Nanosecond,
        _ => {
            let text = format!("times in the unit '{unit}' cannot be keys: use D, s, ms, us or ns");
            return Err(exception("TypesError", text));
        }
    };
    Ok(if is_duration { Logical::Duration(unit) } else { Logical::Timestamp(unit, None) })
}
