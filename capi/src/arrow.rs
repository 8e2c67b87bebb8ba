//! Arrow's C data interface, in and out. What a function takes it releases, also if it fails.

use crate::build::{build_of, rebuild_of};
use crate::index::pleach_index;
use crate::memory::{given, path, place};
use crate::options::pleach_build_options;
use crate::status::{Result, guard, input, pleach_status};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{RecordBatchReader, make_array};
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;
use pleach_batch::arrow::{ArrowKeys, Tuples};
use std::ffi::c_char;

/// Takes a stream of the caller.
///
/// # Safety
/// `stream` is null, or points to a stream that was not released.
pub(crate) unsafe fn taken(
    stream: *mut FFI_ArrowArrayStream,
    name: &str,
) -> Result<Box<dyn RecordBatchReader + Send>> {
    // SAFETY: the caller guarantees the stream.
    let stream = unsafe { place(stream, name) }?;
    // SAFETY: as above; what is left in its place is a released stream.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream) };
    let reader = ArrowArrayStreamReader::try_new(stream);
    Ok(Box::new(reader.map_err(|error| {
        input(format!("the stream {name} cannot be read: {error}: give one that was not released"))
    })?))
}

/// Gives a stream to the caller.
///
/// # Safety
/// `out` is null, or a place for a stream.
pub(crate) unsafe fn give(
    reader: Box<dyn RecordBatchReader + Send>,
    out: *mut FFI_ArrowArrayStream,
) -> Result<()> {
    if out.is_null() {
        return Err(input("out is NULL: give a pointer"));
    }
    // SAFETY: the caller guarantees the place.
    unsafe { out.write(FFI_ArrowArrayStream::new(reader)) };
    Ok(())
}

/// Looks up the keys of an Arrow array. The answer is an array of their values, with nulls for missing keys: numbers,
/// times, strings, a struct for records; booleans (which keys are there) if the file has no values. Keys are numbers,
/// times, decimals, strings, or dictionaries of them; nulls are missing.
///
/// # Safety
/// `index` is open; `keys_type` and `keys` are not released, and the function takes `keys`; `values_type` and `values`
/// are places for the result, which the caller releases.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_get_arrow(
    index: *const pleach_index,
    keys_type: *const FFI_ArrowSchema,
    keys: *mut FFI_ArrowArray,
    values_type: *mut FFI_ArrowSchema,
    values: *mut FFI_ArrowArray,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the array; what is left in its place is a released one.
        let keys = unsafe { FFI_ArrowArray::from_raw(place(keys, "keys")?) };
        // SAFETY: the caller guarantees the index and the type.
        let (index, keys_type) = unsafe { (given(index, "index")?, given(keys_type, "keys_type")?) };
        if values_type.is_null() || values.is_null() {
            return Err(input("values is NULL: give places for a type and an array"));
        }
        // SAFETY: the caller guarantees that the type is that of the array, which is not released.
        let keys = unsafe { arrow_array::ffi::from_ffi(keys, keys_type) };
        let keys = keys.map_err(|error| {
            input(format!("the array keys cannot be read: {error}: give one that was not released"))
        })?;
        let keys = ArrowKeys::new(&index.table, make_array(keys))?;
        let answer = index.table.get_array(&keys, &index.pool())?;
        let made = arrow_array::ffi::to_ffi(&answer.to_data());
        let (array, schema) = made.map_err(|error| input(error.to_string()))?;
        // SAFETY: the caller guarantees the places.
        unsafe {
            values.write(array);
            values_type.write(schema);
        }
        Ok(())
    })
}

/// Reads the tuples of the ranks `first` to `end` (exclusive; beyond the end is the end) as a stream of record batches
/// of `batch_rows` tuples (0 for 65,536). The stream keeps the file open.
///
/// # Safety
/// `index` is open; `out` is a place for a stream, which the caller releases.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_range_arrow(
    index: *const pleach_index,
    first: u64,
    end: u64,
    batch_rows: usize,
    out: *mut FFI_ArrowArrayStream,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the index.
        let index = unsafe { given(index, "index") }?;
        let rows = if batch_rows == 0 { 1 << 16 } else { batch_rows };
        let tuples = Tuples::new(&index.table, first..end, rows, index.threads())?;
        // SAFETY: the caller guarantees the place.
        unsafe { give(Box::new(tuples), out) }
    })
}

/// Builds the file `file` from a stream of record batches: complete or not at all. See `pleach_build`.
///
/// # Safety
/// `stream` is not released; the function takes it. `file` is a text; `options` is NULL or a structure with its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_build_arrow(
    stream: *mut FFI_ArrowArrayStream,
    file: *const c_char,
    options: *const pleach_build_options,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the stream and the texts.
        let (reader, file) = unsafe { (taken(stream, "stream")?, path(file, "file")?) };
        let open = |input: &_| pleach_input::open_batches("table", &reader.schema(), reader, input);
        // SAFETY: the caller guarantees the options.
        unsafe { build_of(&file, Vec::new(), options, open) }
    })
}

/// Makes the next generation of the file `file` from a stream of changes: see `pleach_rebuild`.
///
/// # Safety
/// As `pleach_build_arrow`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_rebuild_arrow(
    file: *const c_char,
    stream: *mut FFI_ArrowArrayStream,
    options: *const pleach_build_options,
) -> pleach_status {
    guard(|| {
        // SAFETY: the caller guarantees the stream and the texts.
        let (reader, file) = unsafe { (taken(stream, "stream")?, path(file, "file")?) };
        let open = |input: &_| pleach_input::open_batches("changes", &reader.schema(), reader, input);
        // SAFETY: the caller guarantees the options.
        unsafe { rebuild_of(&file, Vec::new(), options, open) }
    })
}
