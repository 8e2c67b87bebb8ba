//! What is asked of a device: memory, copies, streams, events, programs and launches.
//!
//! Everything above this module speaks of a device through one trait, so that it runs on a GPU through the CUDA
//! driver and, in tests, on a CPU that runs the same kernels' text. Addresses, streams, events, modules and functions
//! are plain numbers here, valid for the driver that gave them; owners with `Drop` are made of them in `memory` and
//! `stream`. Calls return when the work is queued; only `synchronize`, `wait` and allocation block.

pub(crate) mod cuda;
#[cfg(feature = "emulate")]
pub(crate) mod emulated;

use crate::{Device, GpuError};
use std::ffi::c_void;
use std::fmt::Debug;

/// A number by which a driver knows something of its own.
pub(crate) type Handle = u64;

/// What decides launch shapes and layouts, beside [`Device`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Most bytes of shared memory of a block.
    pub(crate) shared_bytes_max: u32,
    /// Whether a read-only mapping may be registered.
    pub(crate) registers_read_only: bool,
    /// Whether device and host memory are one, or the device reads host memory at the speed of its own.
    pub(crate) is_integrated: bool,
}

/// How a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaunchShape {
    /// Blocks.
    pub(crate) blocks: u32,
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub(crate) shared_bytes: u32,
}

/// A program to load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program<'a> {
    /// Name of its source, for messages.
    pub(crate) name: &'static str,
    /// Its text.
    pub(crate) text: &'a str,
    /// Numbers that it is compiled for.
    pub(crate) defines: &'a [(&'static str, u64)],
    /// Its entries.
    #[cfg_attr(not(feature = "emulate"), expect(dead_code, reason = "g++ is told of them"))]
    pub(crate) entries: &'static [&'static str],
}

/// A device.
///
/// # Safety of its methods
/// Addresses are of this driver, in bounds and alive until the work that uses them has ended; handles are alive.
pub(crate) trait Driver: Debug + Send + Sync {
    fn device(&self) -> &Device;
    fn limits(&self) -> Limits;
    /// Bytes free on the device.
    fn free_bytes(&self) -> Result<u64, GpuError>;
    /// Bytes that the level 2 cache fetches at most; a setting of the whole context, for measuring alone.
    fn l2_fetch_bytes(&self) -> Result<u32, GpuError> {
        Ok(0)
    }
    /// Sets it; a device without such a cache ignores it.
    fn set_l2_fetch_bytes(&self, _bytes: u32) -> Result<(), GpuError> {
        Ok(())
    }

    /// Is lost after so many more copies, launches and waits, for tests; a real device does not do as it is told.
    #[cfg(feature = "emulate")]
    fn lose_after(&self, _works: u64) {}

    /// Device memory; `bytes` is not 0.
    fn allocate(&self, bytes: u64) -> Result<u64, GpuError>;
    unsafe fn free(&self, address: u64);
    /// Page-locked host memory that the device reads as well: host address and the device's.
    fn allocate_pinned(&self, bytes: usize) -> Result<(*mut u8, u64), GpuError>;
    unsafe fn free_pinned(&self, host: *mut u8);
    /// Makes host memory readable for the device; its address there.
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
    /// Whether what was recorded has happened.
    unsafe fn has_happened(&self, event: Handle) -> Result<bool, GpuError>;
    unsafe fn wait(&self, event: Handle) -> Result<(), GpuError>;
    /// Lets work queued later on `stream` wait for an event.
    unsafe fn wait_on(&self, stream: Handle, event: Handle) -> Result<(), GpuError>;
    /// Milliseconds from one event to a later one; both have happened.
    unsafe fn elapsed_ms(&self, start: Handle, end: Handle) -> Result<f32, GpuError>;

    fn load(&self, program: &Program<'_>) -> Result<Handle, GpuError>;
    unsafe fn unload(&self, module: Handle);
    unsafe fn function(&self, module: Handle, entry: &'static str) -> Result<Handle, GpuError>;
    /// Address of a program's constant memory of that name.
    unsafe fn constant(&self, module: Handle, name: &'static str) -> Result<u64, GpuError>;
    /// Lets a function have that much dynamic shared memory.
    unsafe fn allow_shared(&self, function: Handle, bytes: u32) -> Result<(), GpuError>;
    /// Blocks of a function that run on a multiprocessor at a time.
    unsafe fn blocks_at_once(
        &self,
        function: Handle,
        threads: u32,
        shared_bytes: u32,
    ) -> Result<u32, GpuError>;
    /// `arguments` point to values of the kernel's parameter types.
    unsafe fn launch(
        &self,
        stream: Handle,
        function: Handle,
        shape: LaunchShape,
        arguments: &mut [*mut c_void],
    ) -> Result<(), GpuError>;

    /// From here on, work queued on `stream` is recorded instead of run.
    unsafe fn begin_capture(&self, stream: Handle) -> Result<(), GpuError>;
    /// What was recorded, ready to run.
    unsafe fn end_capture(&self, stream: Handle) -> Result<Handle, GpuError>;
    unsafe fn launch_graph(&self, graph: Handle, stream: Handle) -> Result<(), GpuError>;
    unsafe fn free_graph(&self, graph: Handle);
}
