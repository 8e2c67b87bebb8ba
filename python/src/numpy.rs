//! The memory of NumPy arrays, by their `__array_interface__`.

use crate::errors::exception;
use pleach::ValueType;
use pleach_batch::{Lane, LaneType, Shared};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// What the elements of an array are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Elements {
    /// Numbers.
    Numbers(Lane),
    /// Times since 1970, or lengths of time if `is_duration`, in this unit.
    Times {
        /// NumPy's name of the unit: `D`, `s`, `ms`, `us`, `ns`.
        unit: String,
        is_duration: bool,
    },
    /// Byte strings of this length; zeros at their end do not count if they are of kind `S`.
    Bytes { bytes: usize, is_padded: bool },
    /// Texts of this many characters of 4 bytes, padded with zeros.
    Texts { characters: usize },
}

/// An array of one dimension. It holds the object, so that the memory lives.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) start: usize,
    pub(crate) len: usize,
    pub(crate) stride: isize,
    pub(crate) elements: Elements,
    pub(crate) is_swapped: bool,
    is_writable: bool,
    /// Keeps the memory.
    _object: Py<PyAny>,
}

impl Memory {
    /// Describes the memory of an object; `None` if it is no NumPy array.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if object.hasattr("__arrow_c_array__")? || object.hasattr("__arrow_c_stream__")? {
            return Ok(None);
        }
        let Some(interface) = object.getattr_opt("__array_interface__")? else { return Ok(None) };
        let interface = interface.cast_into::<PyDict>()?;
        let item = |name: &str| -> PyResult<Bound<'_, PyAny>> {
            interface.get_item(name)?.ok_or_else(|| input(format!("this array has no {name}")))
        };
        let shape = item("shape")?.cast_into::<PyTuple>()?;
        if shape.len() != 1 {
            return Err(input(format!("the array has {} dimensions: give one of 1 dimension", shape.len())));
        }
        let len: usize = shape.get_item(0)?.extract()?;
        let (start, is_read_only): (usize, bool) = item("data")?.extract()?;
        let text: String = item("typestr")?.extract()?;
        let (elements, bytes) = elements(&text)?;
        let strides = interface.get_item("strides")?.filter(|strides| !strides.is_none());
        let stride = match strides {
            Some(strides) => strides.cast_into::<PyTuple>()?.get_item(0)?.extract()?,
            None => bytes.cast_signed(),
        };
        Ok(Some(Self {
            start,
            len,
            stride,
            elements,
            is_swapped: text.starts_with('>'),
            is_writable: !is_read_only,
            _object: object.clone().unbind(),
        }))
    }

    /// Describes an array to write numbers of type `T` into.
    pub(crate) fn for_writing<T: LaneType>(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        Self::written(object, name, T::LANE)
    }

    /// Describes the caller's array for the values of a file.
    pub(crate) fn for_values(object: &Bound<'_, PyAny>, value_type: ValueType) -> PyResult<Self> {
        let lane = match value_type {
            ValueType::U32 => Lane::U32,
            ValueType::U64 => Lane::U64,
            ValueType::I32 => Lane::I32,
            ValueType::I64 => Lane::I64,
            ValueType::F32 => Lane::F32,
            ValueType::F64 => Lane::F64,
            ValueType::None | ValueType::Fixed(_) | ValueType::Bytes | ValueType::Utf8 => {
                let text = "values that are not numbers come as an Arrow array".to_owned();
                return Err(exception("TypesError", text));
            }
        };
        Self::written(object, "out", lane)
    }

    fn written(object: &Bound<'_, PyAny>, name: &str, lane: Lane) -> PyResult<Self> {
        let memory = Self::of(object)?.ok_or_else(|| input(format!("{name} is no NumPy array: give one")))?;
        let is_times = matches!(memory.elements, Elements::Times { .. }) && lane == Lane::I64;
        if memory.elements != Elements::Numbers(lane) && !is_times {
            let text = format!("{name} has the wrong dtype: give an array of {}", lane.name());
            return Err(exception("TypesError", text));
        }
        let bytes = lane.bytes();
        let is_plain = memory.len <= 1 || memory.stride == bytes.cast_signed();
        if !memory.is_writable || memory.is_swapped || !is_plain || memory.start % bytes != 0 {
            let text = format!("{name} must be writable, contiguous, aligned and in native byte order");
            return Err(input(format!("{text}: give numpy.empty(n, dtype)")));
        }
        Ok(memory)
    }

    /// Returns the memory for values of a type; other threads may use it meanwhile. `None` if it was not made by
    /// [`Memory::for_values`] for this type.
    pub(crate) fn shared(&self, value_type: ValueType) -> Option<Shared<'_>> {
        // SAFETY: `for_values` checked type, order and stride of these numbers; the object is held, so the memory
        // lives, and there is no Rust reference to it.
        unsafe { Shared::new(value_type, self.start as *mut u8, self.len) }
    }

    /// Returns the numbers to write.
    ///
    /// # Safety
    /// The caller guarantees that this was made by [`Memory::for_writing`] for `T`, and that nobody else uses the array
    /// while the slice lives.
    pub(crate) unsafe fn slice<T: LaneType>(&mut self) -> &mut [T] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: `for_writing` checked type, alignment, order and stride of these numbers. The object is held, so the
        // memory lives. The caller guarantees the exclusive use.
        unsafe { std::slice::from_raw_parts_mut(self.start as *mut T, self.len) }
    }
}

pub(crate) fn input(text: String) -> PyErr {
    exception("InputError", text)
}

/// Parses a type string: `<i8`, `<M8[us]`, `|S16`.
fn elements(text: &str) -> PyResult<(Elements, usize)> {
    let refused = || {
        let text = format!(
            "arrays of dtype {text} cannot be keys: give integers, floats, datetime64, bytes or texts"
        );
        exception("TypesError", text)
    };
    let kind = text.get(1..2).ok_or_else(refused)?;
    let (size, unit) = match text[2..].split_once('[') {
        Some((size, unit)) => (size, unit.trim_end_matches(']')),
        None => (&text[2..], ""),
    };
    let size: usize = size.parse().map_err(|_| refused())?;
    let elements = match (kind, size) {
        ("u", 1) => Elements::Numbers(Lane::U8),
        ("u", 2) => Elements::Numbers(Lane::U16),
        ("u", 4) => Elements::Numbers(Lane::U32),
        ("u", 8) => Elements::Numbers(Lane::U64),
        ("i", 1) => Elements::Numbers(Lane::I8),
        ("i", 2) => Elements::Numbers(Lane::I16),
        ("i", 4) => Elements::Numbers(Lane::I32),
        ("i", 8) => Elements::Numbers(Lane::I64),
        ("f", 4) => Elements::Numbers(Lane::F32),
        ("f", 8) => Elements::Numbers(Lane::F64),
        ("M", 8) => Elements::Times { unit: unit.to_owned(), is_duration: false },
        ("m", 8) => Elements::Times { unit: unit.to_owned(), is_duration: true },
        ("S", 1..) => Elements::Bytes { bytes: size, is_padded: true },
        ("V", 1..) => Elements::Bytes { bytes: size, is_padded: false },
        ("U", 1..) => Elements::Texts { characters: size },
        _ => return Err(refused()),
    };
    let bytes = if kind == "U" { size * 4 } else { size };
    Ok((elements, bytes))
}
