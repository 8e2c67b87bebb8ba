//! A batch of keys, of whatever Python object.

use crate::errors::{batch, exception};
use crate::numpy::{Elements, Memory, input};
use pleach::KeyType;
use pleach_batch::arrow::ArrowKeys;
use pleach_batch::{Copied, Keys, Lane, Numbers, Parsed, Table};
use pleach_format::logical::{Logical, Ratio, Unit};
use pyo3::prelude::*;
use pyo3_arrow::PyArray;

/// Keys, and who owns their memory.
pub(crate) enum Batch {
    /// A NumPy array of numbers, and how they become keys of the file.
    Memory(Memory, Lane, Option<Ratio>),
    /// An Arrow array.
    Arrow(ArrowKeys),
    /// Strings that were copied from a NumPy array.
    Copied(Copied),
    /// Keys that were read from texts.
    Parsed(Parsed),
}

impl Batch {
    /// Makes a batch for this file of a NumPy array, or of an object that exports one Arrow array.
    pub(crate) fn of(table: &Table, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::made(table, object, true)
    }

    /// Does the same for texts or bytes with which keys begin.
    pub(crate) fn of_prefixes(table: &Table, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::made(table, object, false)
    }

    fn made(table: &Table, object: &Bound<'_, PyAny>, are_keys: bool) -> PyResult<Self> {
        if let Some(memory) = Memory::of(object)? {
            return Self::of_memory(table, memory, are_keys);
        }
        if object.hasattr("__arrow_c_array__")? {
            let (array, _) = object.extract::<PyArray>()?.into_inner();
            let keys = if are_keys { ArrowKeys::new(table, array) } else { ArrowKeys::of_strings(array) };
            return Ok(Self::Arrow(keys.map_err(|error| batch(&error))?));
        }
        let name = object.get_type().name()?;
        let text = format!("{name} cannot be keys: give a NumPy array, an Arrow array, a Series or a list");
        Err(exception("TypesError", text))
    }

    fn of_memory(table: &Table, memory: Memory, are_keys: bool) -> PyResult<Self> {
        match memory.elements.clone() {
            Elements::Numbers(_) | Elements::Times { .. } if !are_keys => {
                Err(exception("TypesError", "numbers are no prefixes: give texts or bytes".to_owned()))
            }
            Elements::Numbers(lane) => {
                table.check_plain(lane.name()).map_err(|error| batch(&error))?;
                Ok(Self::Memory(memory, lane, None))
            }
            Elements::Times { unit, is_duration } => {
                let own = times(&unit, is_duration)?;
                let ratio = table.ratio_of(&own).map_err(|error| batch(&error))?;
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
                let texts = copied(&memory, characters * 4, |raw, data| {
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
                })?;
                let parsed = match &texts {
                    Self::Copied(texts) if are_keys => table.parsed(texts).map_err(|error| batch(&error))?,
                    _ => None,
                };
                Ok(parsed.map_or(texts, Self::Parsed))
            }
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
            Self::Arrow(keys) => keys.with(ask),
            Self::Copied(copied) => ask(&Keys::Texts(copied)),
            Self::Parsed(parsed) => parsed.with(ask),
        }
    }
}

/// Copies the strings of an array.
fn copied(
    memory: &Memory,
    bytes: usize,
    mut put: impl FnMut(&[u8], &mut Vec<u8>) -> Option<()>,
) -> PyResult<Batch> {
    let (mut all, mut string) = (Copied::default(), Vec::new());
    let mut raw = vec![0u8; bytes];
    for at in 0..memory.len {
        let start = (memory.start as *const u8).wrapping_offset(memory.stride * at.cast_signed());
        // SAFETY: the array says that these bytes are there, and its object is held by `memory`; the reader of
        // numbers copies, so other threads may write to them.
        let numbers = unsafe { Numbers::new(start, bytes, 1, Lane::U8, false) };
        numbers.read(0, &mut raw);
        string.clear();
        if put(&raw, &mut string).is_none() {
            return Err(input(format!("key {at} is not a text: it has a code that is no character")));
        }
        all.push(&[&string]);
    }
    Ok(Batch::Copied(all))
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
