//! Pointers of the caller become texts, slices and places for answers. The header says what the caller guarantees: a
//! pointer is null, or it points to as many elements as the function says, for as long as the call takes.

use crate::status::{Result, input};
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

fn missing(name: &str) -> crate::status::Failure {
    input(format!("{name} is NULL: give a pointer"))
}

/// Returns what a pointer points to.
///
/// # Safety
/// The pointer is null, or valid for reads while the result is used.
pub(crate) unsafe fn given<'a, T>(pointer: *const T, name: &str) -> Result<&'a T> {
    // SAFETY: the caller guarantees the pointer.
    unsafe { pointer.as_ref() }.ok_or_else(|| missing(name))
}

/// Returns a place for an answer.
///
/// # Safety
/// The pointer is null, or valid for writes while the result is used, and nobody else uses the place.
pub(crate) unsafe fn place<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T> {
    // SAFETY: the caller guarantees the pointer.
    unsafe { pointer.as_mut() }.ok_or_else(|| missing(name))
}

/// Writes an answer that the caller may not want.
///
/// # Safety
/// The pointer is null, or valid for writes.
pub(crate) unsafe fn put<T>(pointer: *mut T, value: T) {
    if !pointer.is_null() {
        // SAFETY: the caller guarantees the pointer.
        unsafe { pointer.write(value) };
    }
}

/// Returns elements. Without any, the pointer may be null.
///
/// # Safety
/// The pointer is null, or valid for reads of so many elements while the result is used.
pub(crate) unsafe fn slice<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T]> {
    check(pointer, count, name)?;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: the caller guarantees the elements; `check` made sure of the alignment and the length.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Returns elements for writing. Without any, the pointer may be null.
///
/// # Safety
/// The pointer is null, or valid for writes of so many elements while the result is used, and nobody else uses them.
pub(crate) unsafe fn slice_mut<'a, T>(pointer: *mut T, count: usize, name: &str) -> Result<&'a mut [T]> {
    check(pointer, count, name)?;
    if count == 0 {
        return Ok(&mut []);
    }
    // SAFETY: the caller guarantees the elements; `check` made sure of the alignment and the length.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

fn check<T>(pointer: *const T, count: usize, name: &str) -> Result<()> {
    if count > 0 && pointer.is_null() {
        return Err(missing(name));
    }
    if count > 0 && !pointer.is_aligned() {
        return Err(input(format!("{name} is not aligned: give a pointer to whole elements")));
    }
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(input(format!("{name} has {count} elements, which no memory has: give fewer")));
    }
    Ok(())
}

/// Returns a text; `None` for null.
///
/// # Safety
/// The pointer is null, or points to a text that ends in a zero byte.
pub(crate) unsafe fn text(pointer: *const c_char, name: &str) -> Result<Option<String>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller guarantees the text.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map(|text| Some(text.to_owned()))
        .map_err(|_| input(format!("{name} is not UTF-8: give a text")))
}

/// Returns a path.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn path(pointer: *const c_char, name: &str) -> Result<PathBuf> {
    if pointer.is_null() {
        return Err(missing(name));
    }
    // SAFETY: the caller guarantees the text.
    let text = unsafe { CStr::from_ptr(pointer) };
    Ok(PathBuf::from(OsStr::from_bytes(text.to_bytes())))
}

/// Reads a structure of options whose first field is its size: an older caller has fewer fields, which keep their
/// defaults, and a newer one has more, which are not known here.
///
/// # Safety
/// The pointer is null, or points to as many bytes as its first field says, which are fields of `T`.
pub(crate) unsafe fn options<T: Copy>(pointer: *const T, default: T, name: &str) -> Result<T> {
    if pointer.is_null() {
        return Ok(default);
    }
    // SAFETY: the caller guarantees that the first field is there.
    let size = unsafe { pointer.cast::<usize>().read_unaligned() };
    if size < size_of::<usize>() || size > 1 << 16 {
        return Err(input(format!("{name}.size is {size}: set it to sizeof *{name}")));
    }
    let mut whole = default;
    let bytes = size.min(size_of::<T>());
    // SAFETY: the caller guarantees so many bytes; `whole` has room for them, and any bytes are valid for the fields.
    unsafe { pointer.cast::<u8>().copy_to_nonoverlapping((&raw mut whole).cast(), bytes) };
    Ok(whole)
}
