//! The interface of a device: memory, copies, streams, events, programs and launches.
//!
//! All code above this module uses a device through one trait, so that it runs on a GPU through the CUDA
//! driver and, in tests, on a CPU that runs the same kernels' text.
//!
//! Addresses, streams, events, modules and functions are plain numbers here, valid for the driver that
//! returned them; `memory` and `stream` wrap them in owners with `Drop`. Calls return when the work is
//! queued; only `synchronize`, `wait` and allocation block.

pub(crate) mod cuda;
#[cfg(feature = "emulate")]
pub(crate) mod emulated;

use crate::{Device, GpuError};
use std::ffi::c_void;
use std::fmt::Debug;

/// A number by which a driver knows one of its objects.
pub(crate) type Handle = u64;

/// Properties that decide launch shapes and layouts, in addition to [`Device`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Maximum number of bytes of shared memory per block.
    pub(crate) shared_bytes_max: u32,
    /// True if a read-only mapping may be registered.
    pub(crate) registers_read_only: bool,
    /// True if device and host share their memory, or the device reads host memory at the speed of its own.
    pub(crate) is_integrated: bool,
}

/// Shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Number of blocks.
    pub blocks: u32,
    /// Threads per block.
    pub threads: u32,
    /// Bytes of dynamic shared memory per block.
    pub shared_bytes: u32,
}

impl LaunchShape {
    /// Returns a launch with a thread for each of `items`, limited to the blocks that run at a time.
    #[must_use]
    pub fn limited(blocks_max: u32, threads: u32, shared_bytes: u32, items: u64) -> Self {
        let blocks = items.div_ceil(threads.into()).clamp(1, blocks_max.into());
        Self { blocks: u32::try_from(blocks).unwrap_or(blocks_max), threads, shared_bytes }
    }
}

/// A program to load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program<'a> {
    /// Name of the source, for messages.
    pub(crate) name: &'static str,
    /// Text of the source.
    pub(crate) text: &'a str,
    /// Numbers that it is compiled for.
    pub(crate) defines: &'a [(&'static str, u64)],
    /// Names of the entries.
    #[cfg_attr(not(feature = "emulate"), expect(dead_code, reason = "g++ is told of them"))]
    pub(crate) entries: &'a [&'static str],
}

/// A device.
///
/// # Safety of its methods
/// Addresses must be of this driver, in bounds and alive until the work that uses them has ended; handles
/// must be alive.
pub(crate) trait Driver: Debug + Send + Sync {
    fn device(&self) -> &Device;
    fn limits(&self) -> Limits;
    /// Returns the number of free bytes on the device.
    fn free_bytes(&self) -> Result<u64, GpuError>;
    /// Returns the maximum number of bytes that the level 2 cache fetches at a time; a setting of the whole
    /// context, for measurements only.
    fn l2_fetch_bytes(&self) -> Result<u32, GpuError> {
        Ok(0)
    }
    /// Sets that number; a device without such a cache ignores it.
    fn set_l2_fetch_bytes(&self, _bytes: u32) -> Result<(), GpuError> {
        Ok(())
    }

    /// Makes the device fail as lost after `works` more copies, launches and waits, for tests; a real device
    /// ignores it.
    #[cfg(feature = "emulate")]
    fn lose_after(&self, _works: u64) {}

    /// Allocates device memory; `bytes` must not be 0.
    fn allocate(&self, bytes: u64) -> Result<u64, GpuError>;
    unsafe fn free(&self, address: u64);
    /// Allocates page-locked host memory that the device can read. Returns its host address and its device
    /// address.
    fn allocate_pinned(&self, bytes: usize) -> Result<(*mut u8, u64), GpuError>;
    unsafe fn free_pinned(&self, host: *mut u8);
    /// Makes host memory readable by the device. Returns its device address.
    unsafe fn register_read_only(&self, host: *const u8, bytes: usize) -> Result<u64, GpuError>;
    unsafe fn unregister(&self, host: *const u8);

    fn new_stream(&self) -> Result<Handle, GpuError>;
    unsafe fn free_stream(&self, stream: Handle);
    unsafe fn synchronize(&self, stream: Handle) -> Result<(), GpuError>;
    /// Waits for all work of the device's context.
    fn synchronize_all(&self) -> Result<(), GpuError>;
    unsafe fn copy_in(&self, stream: Handle, to: u64, from: *const u8, bytes: usize) -> Result<(), GpuError>;
    unsafe fn copy_out(&self, stream: Handle, to: *mut u8, from: u64, bytes: usize) -> Result<(), GpuError>;
    unsafe fn copy(&self, stream: Handle, to: u64, from: u64, bytes: usize) -> Result<(), GpuError>;
    unsafe fn fill(&self, stream: Handle, at: u64, byte: u8, bytes: usize) -> Result<(), GpuError>;

    fn new_event(&self, is_timed: bool) -> Result<Handle, GpuError>;
    unsafe fn free_event(&self, event: Handle);
    unsafe fn record(&self, event: Handle, stream: Handle) -> Result<(), GpuError>;
    /// Returns true if the recorded event has happened.
    unsafe fn has_happened(&self, event: Handle) -> Result<bool, GpuError>;
    unsafe fn wait(&self, event: Handle) -> Result<(), GpuError>;
    /// Makes work queued later on `stream` wait for an event.
    unsafe fn wait_on(&self, stream: Handle, event: Handle) -> Result<(), GpuError>;
    /// Returns the milliseconds from one event to a later one; both must have happened.
    unsafe fn elapsed_ms(&self, start: Handle, end: Handle) -> Result<f32, GpuError>;

    fn load(&self, program: &Program<'_>) -> Result<Handle, GpuError>;
    unsafe fn unload(&self, module: Handle);
    unsafe fn function(&self, module: Handle, entry: &'static str) -> Result<Handle, GpuError>;
    /// Returns the address of a program's constant memory of that name.
    unsafe fn constant(&self, module: Handle, name: &'static str) -> Result<u64, GpuError>;
    /// Allows a function to use that much dynamic shared memory.
    unsafe fn allow_shared(&self, function: Handle, bytes: u32) -> Result<(), GpuError>;
    /// Returns the number of blocks of a function that run on a multiprocessor at a time.
    unsafe fn blocks_at_once(
        &self,
        function: Handle,
        threads: u32,
        shared_bytes: u32,
    ) -> Result<u32, GpuError>;
    /// Launches a function; `arguments` must point to values of the kernel's parameter types.
    unsafe fn launch(
        &self,
        stream: Handle,
        function: Handle,
        shape: LaunchShape,
        arguments: &mut [*mut c_void],
    ) -> Result<(), GpuError>;

    /// Starts recording: work queued on `stream` is recorded and not run.
    unsafe fn begin_capture(&self, stream: Handle) -> Result<(), GpuError>;
    /// Returns true if work queued on `stream` is recorded.
    unsafe fn is_capturing(&self, stream: Handle) -> Result<bool, GpuError>;
    /// Ends recording. Returns the recorded work, ready to run.
    unsafe fn end_capture(&self, stream: Handle) -> Result<Handle, GpuError>;
    unsafe fn launch_graph(&self, graph: Handle, stream: Handle) -> Result<(), GpuError>;
    unsafe fn free_graph(&self, graph: Handle);
}
