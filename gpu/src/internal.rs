//! Interface for the crates of this repository that add kernels and searches of their own.
//!
//! It is no part of the public interface: anything in it may change in any version.

pub mod entry;

pub use crate::algorithm::btree::{BTREE_TEXT, Built as BuiltBtree, Tree as BtreeTree};
pub use crate::algorithm::external::External;
pub use crate::algorithm::search::Search;
pub use crate::driver::LaunchShape;
pub use crate::image::Lowest;
pub use crate::kernel::{Batch, Columns, Compiler, Entry, Instance, Source, SourceSpec, Text};
pub use crate::relation::job::Job;
pub use crate::resident::{Resident, SortedColumns, grid};
pub use entry::launch;

use crate::{DeviceBuffer, Gpu, GpuError, PinnedBuffer, Stream};

/// Returns the number of blocks of an entry that run on the whole device at a time; at least one.
///
/// # Errors
/// As [`launch`].
pub fn blocks_at_once(
    gpu: &Gpu,
    instance: Instance,
    entry: &'static str,
    threads: u32,
    shared_bytes: u32,
) -> Result<u32, GpuError> {
    gpu.blocks_at_once(instance, entry, threads, shared_bytes)
}

/// Returns the maximum number of bytes of shared memory per block.
#[must_use]
pub fn shared_bytes_max(gpu: &Gpu) -> u32 {
    gpu.limits().shared_bytes_max
}

/// Sets the number of bytes that the level 2 cache fetches at a time, for the whole context, and returns the
/// number before.
///
/// # Errors
/// [`GpuError::Driver`] if a driver call fails.
pub fn set_l2_fetch_bytes(gpu: &Gpu, bytes: u32) -> Result<u32, GpuError> {
    let before = gpu.driver().l2_fetch_bytes()?;
    gpu.driver().set_l2_fetch_bytes(bytes)?;
    Ok(before)
}

/// Queues a copy between buffers of the device, of the length of the shorter one.
///
/// # Safety
/// Both buffers must stay alive until the work is done.
///
/// # Errors
/// [`GpuError::Driver`] if a driver call fails.
pub unsafe fn copy(stream: &Stream, to: &DeviceBuffer, from: &DeviceBuffer) -> Result<(), GpuError> {
    let bytes = usize::try_from(to.bytes().min(from.bytes())).unwrap_or(usize::MAX);
    // SAFETY: the range is inside both buffers, which the caller keeps.
    unsafe { stream.gpu().driver().copy(stream.handle(), to.address(), from.address(), bytes) }
}

/// Queues a copy from pinned memory to the device, of the length of the shorter buffer.
///
/// # Safety
/// As [`copy`].
///
/// # Errors
/// As [`copy`].
pub unsafe fn copy_in(stream: &Stream, to: &DeviceBuffer, from: &PinnedBuffer) -> Result<(), GpuError> {
    let bytes = from.as_bytes().len().min(usize::try_from(to.bytes()).unwrap_or(usize::MAX));
    // SAFETY: the range is inside both buffers, which the caller keeps.
    unsafe { stream.gpu().driver().copy_in(stream.handle(), to.address(), from.host(), bytes) }
}

/// Queues a copy from the device to pinned memory, of the length of the shorter buffer.
///
/// # Safety
/// As [`copy`]; nothing else may use the pinned buffer until the work is done.
///
/// # Errors
/// As [`copy`].
pub unsafe fn copy_out(stream: &Stream, to: &PinnedBuffer, from: &DeviceBuffer) -> Result<(), GpuError> {
    let bytes = to.as_bytes().len().min(usize::try_from(from.bytes()).unwrap_or(usize::MAX));
    // SAFETY: the range is inside both buffers, which the caller keeps; nothing else uses the host's.
    unsafe { stream.gpu().driver().copy_out(stream.handle(), to.host(), from.address(), bytes) }
}
