//! Pointers that other modules give in capsules. The unsafe code of this crate is here.

#![allow(unsafe_code)]

use datafusion::arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::CStr;

/// Name of the capsule of a table.
pub(crate) const TABLE: &CStr = c"datafusion_table_provider";
/// Name of the capsule of a stream of arrays.
pub(crate) const STREAM: &CStr = c"arrow_array_stream";
/// Name of the capsule of a schema.
pub(crate) const SCHEMA: &CStr = c"arrow_schema";
const CODEC: &CStr = c"datafusion_logical_extension_codec";
const CODEC_METHOD: &str = "__datafusion_logical_extension_codec__";

/// Proof that the package `datafusion` has our major version; only `version` makes one.
#[derive(Clone, Copy)]
pub(crate) struct SameVersion(());

impl SameVersion {
    /// Returns the proof if the two major versions are equal.
    pub(crate) fn of(theirs: u64) -> Option<Self> {
        (theirs == datafusion_ffi::version()).then_some(Self(()))
    }
}

/// Returns the codec of a session of the package `datafusion`, by which filters come here. `session` is such a
/// session, or the capsule of the codec.
///
/// # Errors
/// An exception of the session; `TypeError` if it is neither.
pub(crate) fn codec(_: SameVersion, session: &Bound<'_, PyAny>) -> PyResult<FFI_LogicalExtensionCodec> {
    let given = match session.getattr_opt(CODEC_METHOD)? {
        Some(method) => method.call0()?,
        None => session.clone(),
    };
    let capsule = named(&given, CODEC, "not a session of DataFusion: pass a datafusion.SessionContext")?;
    let pointer = capsule.pointer_checked(Some(CODEC))?.cast::<FFI_LogicalExtensionCodec>();
    // SAFETY: the package guarantees, by the name of the capsule, that the pointer is to such a struct, which the
    // capsule owns, and `given` keeps the capsule until the copy is made. `SameVersion` guarantees that its struct is
    // ours: it is `repr(C)`, and changes only with the major version.
    Ok(unsafe { pointer.as_ref() }.clone())
}

/// Takes the stream of arrays out of an object that has `__arrow_c_stream__`.
///
/// # Errors
/// An exception of the object; `TypeError` if it has no stream.
pub(crate) fn stream(object: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let wrong = "not a table: pass a path, a Table, or an object with __arrow_c_stream__";
    let Some(method) = object.getattr_opt("__arrow_c_stream__")? else {
        return Err(PyTypeError::new_err(wrong));
    };
    let given = method.call0()?;
    let capsule = named(&given, STREAM, wrong)?;
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the PyCapsule protocol of Arrow guarantees, by the name of the capsule, that the pointer is to a stream,
    // which a consumer may move out if it leaves a released one; `from_raw` leaves an empty one. The interpreter's
    // lock, which `capsule` shows, keeps others from it meanwhile.
    let reader = unsafe { ArrowArrayStreamReader::from_raw(pointer.as_ptr()) };
    reader.map_err(|error| PyTypeError::new_err(format!("the stream of arrays cannot be read: {error}")))
}

/// Returns an object as a capsule with this name.
fn named<'a, 'py>(
    object: &'a Bound<'py, PyAny>,
    name: &CStr,
    wrong: &str,
) -> PyResult<&'a Bound<'py, PyCapsule>> {
    let capsule = object.cast::<PyCapsule>().map_err(|_| PyTypeError::new_err(wrong.to_owned()))?;
    if capsule.is_valid_checked(Some(name)) {
        Ok(capsule)
    } else {
        Err(PyTypeError::new_err(wrong.to_owned()))
    }
}
