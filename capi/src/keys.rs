//! Arrays of keys.

use crate::index::pleach_type;
use crate::memory::{given, slice};
use crate::status::{Failure, Result, input, pleach_status};
use pleach_batch::{Keys, Lane, Nulls, Numbers, Table, Texts};
use reader::Queries;
use std::ffi::c_void;

/// An array of keys. Set all fields to 0 first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pleach_keys {
    /// Type of the keys: any number, or `PLEACH_BYTES` or `PLEACH_UTF8` for strings. Texts are also keys of files
    /// whose keys are dates, addresses, digits and the like, in the form that the command prints.
    pub key_type: pleach_type,
    /// Number of keys.
    pub count: usize,
    /// The numbers, or the bytes of the strings, one after the other.
    pub data: *const c_void,
    /// Bytes from one number to the next, which may be negative; 0 if they lie one after the other.
    pub stride: isize,
    /// Not 0: numbers are in the other byte order.
    pub is_swapped: u32,
    /// Strings: bytes of an offset, 4 or 8.
    pub offset_bytes: u32,
    /// Strings: where each begins in `data`, and where the last one ends: one offset more than keys.
    pub offsets: *const c_void,
    /// Strings: bytes of `data`.
    pub data_bytes: usize,
    /// A bit for each key, least significant first; 0 is a null, which is in no file. NULL if there are none.
    pub validity: *const u8,
    /// Number of the first key's bit.
    pub validity_offset: usize,
}

/// Strings of the caller.
struct Strings<'a> {
    data: &'a [u8],
    offsets: Offsets<'a>,
    nulls: Option<Nulls<'a>>,
}

enum Offsets<'a> {
    Narrow(&'a [i32]),
    Wide(&'a [i64]),
}

impl Offsets<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Narrow(all) => all.len(),
            Self::Wide(all) => all.len(),
        }
    }

    /// Returns an offset; one that cannot be is behind all data.
    fn get(&self, at: usize) -> usize {
        let wide = match self {
            Self::Narrow(all) => i64::from(all[at]),
            Self::Wide(all) => all[at],
        };
        usize::try_from(wide).unwrap_or(usize::MAX)
    }
}

impl Queries for Strings<'_> {
    fn len(&self) -> usize {
        self.offsets.len() - 1
    }
    fn get(&self, index: usize) -> &[u8] {
        // The offsets were checked; one that another thread changed since gives an empty string.
        self.data.get(self.offsets.get(index)..self.offsets.get(index + 1)).unwrap_or_default()
    }
}

impl Texts for Strings<'_> {
    fn is_null(&self, at: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(at))
    }
}

fn lane(key_type: pleach_type) -> Option<Lane> {
    Some(match key_type {
        pleach_type::PLEACH_U8 => Lane::U8,
        pleach_type::PLEACH_U16 => Lane::U16,
        pleach_type::PLEACH_U32 => Lane::U32,
        pleach_type::PLEACH_U64 => Lane::U64,
        pleach_type::PLEACH_U128 => Lane::U128,
        pleach_type::PLEACH_I8 => Lane::I8,
        pleach_type::PLEACH_I16 => Lane::I16,
        pleach_type::PLEACH_I32 => Lane::I32,
        pleach_type::PLEACH_I64 => Lane::I64,
        pleach_type::PLEACH_F32 => Lane::F32,
        pleach_type::PLEACH_F64 => Lane::F64,
        pleach_type::PLEACH_NONE
        | pleach_type::PLEACH_FIXED
        | pleach_type::PLEACH_BYTES
        | pleach_type::PLEACH_UTF8 => return None,
    })
}

/// The number of a type in a structure of the caller, which may hold any number.
///
/// # Safety
/// `keys` is null or points to a structure.
unsafe fn type_number(keys: *const pleach_keys) -> u32 {
    // SAFETY: the caller guarantees the structure; the type is its first field, and read as a number.
    if keys.is_null() { 0 } else { unsafe { keys.cast::<u32>().read() } }
}

/// Calls `ask` with the keys of the caller. Texts are read as the keys of `table` are written.
///
/// # Safety
/// `keys` is null, or points to a structure that describes arrays which live during the call.
pub(crate) unsafe fn with_keys<R>(
    table: &Table,
    keys: *const pleach_keys,
    ask: impl FnOnce(&Keys<'_>, usize) -> Result<R>,
) -> Result<R> {
    // SAFETY: the caller guarantees the same.
    unsafe { with(Some(table), keys, ask) }
}

/// Calls `ask` with texts or bytes of the caller as they are.
///
/// # Safety
/// As [`with_keys`].
pub(crate) unsafe fn with_texts<R>(
    keys: *const pleach_keys,
    ask: impl FnOnce(&dyn Texts) -> Result<R>,
) -> Result<R> {
    // SAFETY: the caller guarantees the same.
    unsafe {
        with(None, keys, |keys, _| match keys {
            Keys::Texts(texts) => ask(*texts),
            Keys::Numbers(_) => {
                let text = "prefixes.key_type must be PLEACH_BYTES or PLEACH_UTF8: numbers are no prefixes";
                Err(Failure(pleach_status::PLEACH_TYPES, text.to_owned()))
            }
        })
    }
}

/// Does the work of both; texts stay as they are without a table.
///
/// # Safety
/// As [`with_keys`].
unsafe fn with<R>(
    table: Option<&Table>,
    keys: *const pleach_keys,
    ask: impl FnOnce(&Keys<'_>, usize) -> Result<R>,
) -> Result<R> {
    // SAFETY: the caller guarantees the structure.
    let number = unsafe { type_number(keys) };
    if number > pleach_type::PLEACH_UTF8 as u32 {
        return Err(input(format!("keys.key_type is {number}: use a pleach_type")));
    }
    // SAFETY: the caller guarantees the structure, and its type is one.
    let keys = unsafe { given(keys, "keys") }?;
    let nulls = match keys.validity.is_null() {
        true => None,
        false => {
            let bits = keys.validity_offset.checked_add(keys.count);
            let bytes =
                bits.ok_or_else(|| input("keys.validity_offset is too large: give that of the bitmap"))?;
            // SAFETY: the caller guarantees a bit for each key.
            let bitmap = unsafe { slice(keys.validity, bytes.div_ceil(8), "keys.validity") }?;
            Some(Nulls::new(bitmap, keys.validity_offset))
        }
    };
    if let Some(lane) = lane(keys.key_type) {
        if keys.count > 0 && keys.data.is_null() {
            return Err(input("keys.data is NULL: give a pointer"));
        }
        let stride = if keys.stride == 0 { lane.bytes().cast_signed() } else { keys.stride };
        // SAFETY: the caller guarantees the numbers; they are copied before use, so other threads may write to them.
        let numbers =
            unsafe { Numbers::new(keys.data.cast(), keys.count, stride, lane, keys.is_swapped != 0) };
        return ask(&Keys::Numbers(numbers.with_nulls(nulls)), keys.count);
    }
    match keys.key_type {
        pleach_type::PLEACH_BYTES | pleach_type::PLEACH_UTF8 => {}
        _ => {
            let text = "keys.key_type must be a number, PLEACH_BYTES or PLEACH_UTF8: \
                        strings of one length have offsets, too";
            return Err(Failure(pleach_status::PLEACH_TYPES, text.to_owned()));
        }
    }
    // SAFETY: the caller guarantees the bytes of the strings.
    let data = unsafe { slice(keys.data.cast::<u8>(), keys.data_bytes, "keys.data") }?;
    let many = keys.count.checked_add(1).ok_or_else(|| input("keys.count is too large"))?;
    // SAFETY: the caller guarantees one offset more than keys.
    let offsets = unsafe {
        match keys.offset_bytes {
            4 => Offsets::Narrow(slice(keys.offsets.cast(), many, "keys.offsets")?),
            8 => Offsets::Wide(slice(keys.offsets.cast(), many, "keys.offsets")?),
            other => return Err(input(format!("keys.offset_bytes is {other}: use 4 or 8"))),
        }
    };
    let is_wrong = |at: &usize| offsets.get(*at) > offsets.get(at + 1) || offsets.get(at + 1) > data.len();
    if let Some(at) = (0..keys.count).find(is_wrong) {
        return Err(input(format!(
            "keys.offsets are wrong: string {at} is not inside the data: give ascending offsets"
        )));
    }
    let strings = Strings { data, offsets, nulls };
    // Texts of a logical type are addresses, dates or digits; bytes are what the file has.
    let parsed = match (keys.key_type, table) {
        (pleach_type::PLEACH_UTF8, Some(table)) => table.parsed(&strings)?,
        _ => None,
    };
    match parsed {
        Some(parsed) => parsed.with(|parsed| ask(parsed, keys.count)),
        None => ask(&Keys::Texts(&strings), keys.count),
    }
}
