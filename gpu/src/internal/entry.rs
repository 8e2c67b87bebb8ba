//! What the rows and the functions that [`kernel!`](crate::kernel!) makes refer to, in all crates with kernels.

pub use crate::driver::LaunchShape;
pub use crate::kernel::row::{Entry, Instance, SourceSpec};

use crate::{GpuError, Stream};
use std::ffi::c_void;

/// Launches an entry; the functions that [`kernel!`](crate::kernel!) makes call it.
///
/// # Safety
/// `arguments` must point to values of the entry's parameter types; whatever these point to must stay alive
/// until the work is done.
///
/// # Errors
/// [`GpuError::Driver`] if a driver call fails; [`GpuError::Unavailable`] or [`GpuError::Compile`] if the
/// source cannot be compiled.
pub unsafe fn launch(
    stream: &Stream,
    instance: Instance,
    entry: &'static str,
    shape: LaunchShape,
    arguments: &mut [*mut c_void],
) -> Result<(), GpuError> {
    // SAFETY: the caller guarantees the arguments.
    unsafe { stream.gpu().launch(stream.handle(), instance, entry, shape, arguments) }
}
