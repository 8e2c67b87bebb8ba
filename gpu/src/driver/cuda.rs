//! The CUDA driver.
//!
//! Each device has one primary context. It is retained while any object of the device is alive and made
//! current before each call, so any thread may call. No setting of the whole context is changed except the
//! level 2 fetch size, for measurements. Handles are the CUDA driver's own pointers.

use super::{Driver, Handle, LaunchShape, Limits, Program};
use crate::kernel::compile;
use crate::{Device, GpuError, Unavailable, probe};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUfunction_attribute as Function};
use std::ffi::{CString, c_void};

/// An open device.
#[derive(Debug)]
pub(crate) struct Cuda {
    device: Device,
    limits: Limits,
    number: sys::CUdevice,
    context: sys::CUcontext,
}

// SAFETY: the driver may be called from any thread where the context is current; each method makes it
// current.
unsafe impl Send for Cuda {}
// SAFETY: the context is made current by each method, and the driver locks the state that threads share.
unsafe impl Sync for Cuda {}

/// Returns a function for `map_err` that names the failed call.
fn refused(call: &'static str) -> impl FnOnce(DriverError) -> GpuError {
    move |error| match error.0 {
        sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => GpuError::OutOfMemory { call },
        sys::CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE
        | sys::CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
        | sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
        | sys::CUresult::CUDA_ERROR_LAUNCH_FAILED
        | sys::CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED => {
            GpuError::Lost { call, cause: format!("{error:?}") }
        }
        _ => GpuError::Driver { call, cause: format!("{error:?}") },
    }
}

impl Cuda {
    /// Opens a device by its ordinal.
    pub(crate) fn open(ordinal: u32) -> Result<Self, GpuError> {
        let devices = probe::devices()?;
        let Some(device) = devices.iter().find(|device| device.ordinal == ordinal).cloned() else {
            let missing = format!("device {ordinal}: use 0 to {}", devices.len() - 1);
            return Err(Unavailable { missing }.into());
        };
        if device.compute < (7, 5) {
            let (major, minor) = device.compute;
            let missing =
                format!("a device of compute capability 7.5 or later: device {ordinal} has {major}.{minor}");
            return Err(Unavailable { missing }.into());
        }
        let call = "opening the device";
        let number = result::device::get(ordinal.cast_signed()).map_err(refused(call))?;
        // SAFETY: the driver returned the number; `drop` releases the context.
        let context = unsafe { result::primary_ctx::retain(number) }.map_err(refused(call))?;
        let limits = Limits { shared_bytes_max: 0, registers_read_only: false, is_integrated: false };
        let mut this = Self { device, limits, number, context };
        this.limits = Limits {
            shared_bytes_max: this
                .attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            registers_read_only: this
                .attribute(Attribute::CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED)?
                == 1,
            is_integrated: this.attribute(Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED)? == 1
                || this
                    .attribute(Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES)?
                    == 1,
        };
        Ok(this)
    }

    fn attribute(&self, which: Attribute) -> Result<u32, GpuError> {
        // SAFETY: the driver returned the device.
        let count = unsafe { result::device::get_attribute(self.number, which) }
            .map_err(refused("querying its attributes"))?;
        Ok(count.unsigned_abs())
    }

    /// Makes the context current on this thread.
    fn enter(&self) -> Result<(), GpuError> {
        // SAFETY: the context is retained as long as `self` lives.
        unsafe { result::ctx::set_current(self.context) }.map_err(refused("entering the context"))
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // SAFETY: `open` retained the context once. Nothing can be done about a failure.
        let _ = unsafe { result::primary_ctx::release(self.number) };
    }
}

fn stream_of(handle: Handle) -> sys::CUstream {
    handle as usize as sys::CUstream
}

fn event_of(handle: Handle) -> sys::CUevent {
    handle as usize as sys::CUevent
}

fn function_of(handle: Handle) -> sys::CUfunction {
    handle as usize as sys::CUfunction
}

// SAFETY of all blocks below: the library is loaded (`open` checked), the context is current (`enter`), and
// the caller guarantees, by the contract of the trait, that addresses and handles are of this driver and
// alive.
impl Driver for Cuda {
    fn device(&self) -> &Device {
        &self.device
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn free_bytes(&self) -> Result<u64, GpuError> {
        self.enter()?;
        let (free, _) = result::mem_get_info().map_err(refused("querying free memory"))?;
        Ok(free as u64)
    }

    fn l2_fetch_bytes(&self) -> Result<u32, GpuError> {
        self.enter()?;
        let bytes = result::ctx::get_limit(sys::CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY)
            .map_err(refused("querying the cache's limit"))?;
        Ok(u32::try_from(bytes).unwrap_or(u32::MAX))
    }

    fn set_l2_fetch_bytes(&self, bytes: u32) -> Result<(), GpuError> {
        self.enter()?;
        result::ctx::set_limit(sys::CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY, bytes as usize)
            .map_err(refused("setting the cache's limit"))
    }

    fn allocate(&self, bytes: u64) -> Result<u64, GpuError> {
        self.enter()?;
        let bytes =
            usize::try_from(bytes).map_err(|_| GpuError::OutOfMemory { call: "allocating memory" })?;
        // SAFETY: see the head of this block.
        unsafe { result::malloc_sync(bytes) }.map_err(refused("allocating memory"))
    }

    unsafe fn free(&self, address: u64) {
        if self.enter().is_ok() {
            // SAFETY: see the head of this block. Nothing can be done about a failure.
            let _ = unsafe { result::free_sync(address) };
        }
    }

    fn allocate_pinned(&self, bytes: usize) -> Result<(*mut u8, u64), GpuError> {
        self.enter()?;
        let call = "allocating pinned memory";
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: see the head of this block.
        let host = unsafe { result::malloc_host(bytes, flags) }.map_err(refused(call))?;
        let mut address = 0;
        // SAFETY: `host` was mapped for the device by its flag.
        let mapped = unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut address, host, 0) }.result();
        if let Err(error) = mapped {
            // SAFETY: the memory was allocated above, and nothing else knows it.
            let _ = unsafe { result::free_host(host) };
            return Err(refused(call)(error));
        }
        Ok((host.cast(), address))
    }

    unsafe fn free_pinned(&self, host: *mut u8) {
        if self.enter().is_ok() {
            // SAFETY: see the head of this block.
            let _ = unsafe { result::free_host(host.cast()) };
        }
    }

    unsafe fn register_read_only(&self, host: *const u8, bytes: usize) -> Result<u64, GpuError> {
        self.enter()?;
        let call = "pinning the mapped file";
        let flags = sys::CU_MEMHOSTREGISTER_DEVICEMAP | sys::CU_MEMHOSTREGISTER_READ_ONLY;
        // SAFETY: the caller guarantees that the memory is mapped; the driver only reads it.
        unsafe { sys::cuMemHostRegister_v2(host.cast_mut().cast(), bytes, flags) }
            .result()
            .map_err(refused(call))?;
        let mut address = 0;
        // SAFETY: the memory was registered above.
        unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut address, host.cast_mut().cast(), 0) }
            .result()
            .map_err(|error| {
                // SAFETY: the memory was registered above.
                let _ = unsafe { sys::cuMemHostUnregister(host.cast_mut().cast()) };
                refused(call)(error)
            })?;
        Ok(address)
    }

    unsafe fn unregister(&self, host: *const u8) {
        if self.enter().is_ok() {
            // SAFETY: see the head of this block.
            let _ = unsafe { sys::cuMemHostUnregister(host.cast_mut().cast()) };
        }
    }

    fn new_stream(&self) -> Result<Handle, GpuError> {
        self.enter()?;
        let stream =
            result::stream::create(result::stream::StreamKind::NonBlocking).map_err(refused("a stream"))?;
        Ok(stream as usize as Handle)
    }

    unsafe fn free_stream(&self, stream: Handle) {
        if self.enter().is_ok() {
            // SAFETY: see the head of this block.
            let _ = unsafe { result::stream::destroy(stream_of(stream)) };
        }
    }

    unsafe fn synchronize(&self, stream: Handle) -> Result<(), GpuError> {
        self.enter()?;
        // SAFETY: see the head of this block.
        unsafe { result::stream::synchronize(stream_of(stream)) }.map_err(refused("waiting for its work"))
    }

    fn synchronize_all(&self) -> Result<(), GpuError> {
        self.enter()?;
        result::ctx::synchronize().map_err(refused("waiting for its work"))
    }

    unsafe fn copy_in(&self, stream: Handle, to: u64, from: *const u8, bytes: usize) -> Result<(), GpuError> {
        self.enter()?;
        // SAFETY: see the head of this block.
        unsafe { sys::cuMemcpyHtoDAsync_v2(to, from.cast(), bytes, stream_of(stream)) }
            .result()
            .map_err(refused("copying to the device"))
    }

    unsafe fn copy_out(&self, stream: Handle, to: *mut u8, from: u64, bytes: usize) -> Result<(), GpuError> {
        self.enter()?;
        // SAFETY: see the head of this block.
        unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, stream_of(stream)) }
            .result()
            .map_err(refused("copying from the device"))
    }

    unsafe fn copy(&self, stream: Handle, to: u64, from: u64, bytes: usize) -> Result<(), GpuError> {
        self.enter()?;
        // SAFETY: see the head of this block.
        unsafe { result::memcpy_dtod_async(to, from, bytes, stream_of(stream)) }
            .map_err(refused("copying on the device"))
    }

    unsafe fn fill(&self, stream: Handle, at: u64, byte: u8, bytes: usize) -> Result<(), GpuError> {
        self.enter()?;
        // SAFETY: see the head of this block.
        unsafe { result::memset_d8_async(at, byte, bytes, stream_of(stream)) }
            .map_err(refused("filling memory"))
    }

    fn new_event(&self, is_timed: bool) -> Result<Handle, GpuError> {
        self.enter()?;
        let flags = if is_timed {
            sys::CUevent_flags::CU_EVENT_DEFAULT
        } else {
            sys::CUevent_flags::CU_EVENT_DISABLE_TIMING
        };
        let event = result::event::create(flags).map_err(refused("an event"))?;
        Ok(event as usize as Handle)
    }

    unsafe fn free_event(&self, event: Handle) {
        if self.enter().is_ok() {
            // SAFETY: see the head of this block.
            let _ = unsafe { result::event::destroy(event_of(event)) };
        }
    }

    unsafe fn record(&self, event: Handle, stream: Handle) -> Result<(), GpuError> {
        self.enter()?;
        // SAFETY: see the head of this block.
        unsafe { result::event::record(event_of(event), stream_of(stream)) }.map_err(refused("an event"))
    }

    unsafe fn has_happened(&self, event: Handle) -> Result<bool, GpuError> {
        self.enter()?;
        // SAFETY: see the head of this block.
        match unsafe { result::event::query(event_of(event)) } {
            Ok(()) => Ok(true),
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(error) => Err(refused("its work")(error)),
        }
    }

    unsafe fn wait(&self, event: Handle) -> Result<(), GpuError> {
        self.enter()?;
        // SAFETY: see the head of this block.
        unsafe { result::event::synchronize(event_of(event)) }.map_err(refused("waiting for its work"))
    }

    unsafe fn wait_on(&self, stream: Handle, event: Handle) -> Result<(), GpuError> {
        self.enter()?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: see the head of this block.
        unsafe { result::stream::wait_event(stream_of(stream), event_of(event), flags) }
            .map_err(refused("ordering streams"))
    }

    unsafe fn elapsed_ms(&self, start: Handle, end: Handle) -> Result<f32, GpuError> {
        self.enter()?;
        // SAFETY: see the head of this block.
        unsafe { result::event::elapsed(event_of(start), event_of(end)) }.map_err(refused("an event"))
    }

    fn load(&self, program: &Program<'_>) -> Result<Handle, GpuError> {
        self.enter()?;
        let code = compile::code(program, self.device.compute)?;
        // SAFETY: `code` is a cubin, or PTX that ends in a zero byte.
        let module = unsafe { result::module::load_data(code.as_ptr().cast()) }
            .map_err(refused("loading a kernel"))?;
        Ok(module as usize as Handle)
    }

    unsafe fn unload(&self, module: Handle) {
        if self.enter().is_ok() {
            // SAFETY: see the head of this block.
            let _ = unsafe { result::module::unload(module as usize as sys::CUmodule) };
        }
    }

    unsafe fn function(&self, module: Handle, entry: &'static str) -> Result<Handle, GpuError> {
        self.enter()?;
        let call = "finding a kernel";
        let name =
            CString::new(entry).map_err(|error| GpuError::Driver { call, cause: error.to_string() })?;
        // SAFETY: see the head of this block.
        let function = unsafe { result::module::get_function(module as usize as sys::CUmodule, name) }
            .map_err(refused(call))?;
        Ok(function as usize as Handle)
    }

    unsafe fn constant(&self, module: Handle, name: &'static str) -> Result<u64, GpuError> {
        self.enter()?;
        let call = "finding constant memory";
        let name = CString::new(name).map_err(|error| GpuError::Driver { call, cause: error.to_string() })?;
        let (mut address, mut bytes) = (0, 0);
        let module = module as usize as sys::CUmodule;
        // SAFETY: see the head of this block; the call writes two numbers through valid pointers.
        unsafe { sys::cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, module, name.as_ptr()) }
            .result()
            .map_err(refused(call))?;
        Ok(address)
    }

    unsafe fn allow_shared(&self, function: Handle, bytes: u32) -> Result<(), GpuError> {
        self.enter()?;
        let which = Function::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: see the head of this block.
        unsafe { result::function::set_function_attribute(function_of(function), which, bytes.cast_signed()) }
            .map_err(refused("requesting shared memory"))
    }

    unsafe fn blocks_at_once(
        &self,
        function: Handle,
        threads: u32,
        shared_bytes: u32,
    ) -> Result<u32, GpuError> {
        self.enter()?;
        let mut blocks = 0;
        // SAFETY: see the head of this block; the call writes one number through a valid pointer.
        unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                function_of(function),
                threads.cast_signed(),
                shared_bytes as usize,
            )
        }
        .result()
        .map_err(refused("querying occupancy"))?;
        Ok(blocks.unsigned_abs())
    }

    unsafe fn launch(
        &self,
        stream: Handle,
        function: Handle,
        shape: LaunchShape,
        arguments: &mut [*mut c_void],
    ) -> Result<(), GpuError> {
        self.enter()?;
        // SAFETY: see the head of this block; the caller guarantees that the arguments have the kernel's
        // types.
        unsafe {
            result::launch_kernel(
                function_of(function),
                (shape.blocks, 1, 1),
                (shape.threads, 1, 1),
                shape.shared_bytes,
                stream_of(stream),
                arguments,
            )
        }
        .map_err(refused("launching a kernel"))
    }

    unsafe fn begin_capture(&self, stream: Handle) -> Result<(), GpuError> {
        self.enter()?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: see the head of this block.
        unsafe { result::stream::begin_capture(stream_of(stream), mode) }.map_err(refused("recording work"))
    }

    unsafe fn is_capturing(&self, stream: Handle) -> Result<bool, GpuError> {
        self.enter()?;
        // SAFETY: see the head of this block.
        let status = unsafe { result::stream::is_capturing(stream_of(stream)) };
        let none = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        status.map(|status| status != none).map_err(refused("looking at a stream"))
    }

    unsafe fn end_capture(&self, stream: Handle) -> Result<Handle, GpuError> {
        self.enter()?;
        let call = "recording work";
        // SAFETY: see the head of this block.
        let graph = unsafe { result::stream::end_capture(stream_of(stream)) }.map_err(refused(call))?;
        // SAFETY: the graph was made above; it is destroyed only after its executable form was made.
        let ready = unsafe { result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0)) };
        // SAFETY: the graph was made above, and is not used below.
        let _ = unsafe { result::graph::destroy(graph) };
        Ok(ready.map_err(refused(call))? as usize as Handle)
    }

    unsafe fn launch_graph(&self, graph: Handle, stream: Handle) -> Result<(), GpuError> {
        self.enter()?;
        // SAFETY: see the head of this block.
        unsafe { result::graph::launch(graph as usize as sys::CUgraphExec, stream_of(stream)) }
            .map_err(refused("running recorded work"))
    }

    unsafe fn free_graph(&self, graph: Handle) {
        if self.enter().is_ok() {
            // SAFETY: see the head of this block.
            let _ = unsafe { result::graph::exec_destroy(graph as usize as sys::CUgraphExec) };
        }
    }
}
