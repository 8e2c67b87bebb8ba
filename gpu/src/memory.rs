//! Memory of a device, and host memory that the device reads and writes directly.
//!
//! Buffers are shared handles: a clone refers to the same memory, and queued work holds a clone, so memory is
//! freed only when nothing uses it. This module enforces the limit on the total memory of a device
//! ([`crate::GpuOptions`]).

use crate::{Gpu, GpuError, Stream};
use std::sync::Arc;

/// Memory of a device: address, length and device.
#[derive(Clone, Debug)]
pub struct DeviceBuffer {
    memory: Arc<Memory>,
    address: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Memory {
    gpu: Gpu,
    address: u64,
    owned: Owned,
}

/// Action that frees the memory when nothing uses it any more.
#[derive(Debug)]
enum Owned {
    /// The memory belongs to the caller.
    Nothing,
    /// This number of bytes was allocated on the device.
    Device(u64),
    /// The memory belongs to a pinned buffer.
    Pinned(PinnedBuffer),
    /// The host memory at this address was registered.
    Registered(usize),
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self.owned {
            Owned::Device(bytes) => {
                // SAFETY: `new` allocated it; queued work holds clones, and waits before it drops them.
                unsafe { self.gpu.driver().free(self.address) };
                self.gpu.give_back(bytes);
            }
            // SAFETY: `register` registered it.
            Owned::Registered(host) => unsafe {
                self.gpu.driver().unregister(std::ptr::without_provenance(host));
            },
            Owned::Nothing | Owned::Pinned(_) => {}
        }
    }
}

impl DeviceBuffer {
    /// Allocates memory with arbitrary content; with `bytes` 0 it has an address too.
    ///
    /// # Errors
    /// [`GpuError::Memory`] beyond the limit, [`GpuError::OutOfMemory`] if the device has no memory left.
    pub fn new(gpu: &Gpu, bytes: u64) -> Result<Self, GpuError> {
        let owned_bytes = bytes.max(1);
        gpu.take(owned_bytes)?;
        match gpu.driver().allocate(owned_bytes) {
            Ok(address) => {
                let memory = Memory { gpu: gpu.clone(), address, owned: Owned::Device(owned_bytes) };
                Ok(Self { memory: Arc::new(memory), address, bytes })
            }
            Err(error) => {
                gpu.give_back(owned_bytes);
                Err(error)
            }
        }
    }

    /// Wraps memory of the caller's, for instance of another library, by its device address. It is not freed
    /// here.
    ///
    /// # Safety
    /// The memory must belong to this device (or be reachable from it), have `bytes` bytes, and outlive this
    /// value, its clones and all work that is queued with it.
    #[must_use]
    pub unsafe fn from_raw(gpu: &Gpu, address: u64, bytes: u64) -> Self {
        let memory = Arc::new(Memory { gpu: gpu.clone(), address, owned: Owned::Nothing });
        Self { memory, address, bytes }
    }

    /// Allocates page-locked host memory, addressed as the device reads it.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`] or [`GpuError::Driver`] if the driver cannot allocate it.
    pub fn pinned(gpu: &Gpu, bytes: u64) -> Result<Self, GpuError> {
        let call = "allocating pinned memory";
        let length = usize::try_from(bytes).map_err(|_| GpuError::OutOfMemory { call })?;
        let pinned = PinnedBuffer::new(gpu, length)?;
        let address = pinned.address();
        let memory = Memory { gpu: gpu.clone(), address, owned: Owned::Pinned(pinned) };
        Ok(Self { memory: Arc::new(memory), address, bytes })
    }

    /// Calls `with` with the host's view of pinned memory that is not yet shared.
    pub(crate) fn with_pinned(&self, with: impl FnOnce(&mut [u8])) {
        if let Owned::Pinned(pinned) = &self.memory.owned {
            // SAFETY: the buffer keeps its owner alive. The caller made the buffer and has not shared it, so
            // nothing else reads or writes it.
            with(unsafe { std::slice::from_raw_parts_mut(pinned.host(), pinned.as_bytes().len()) });
        }
    }

    /// Makes host memory readable by the device in place; the device does not write it.
    ///
    /// # Safety
    /// The bytes must stay mapped and unchanged until this value, its clones and all work that is queued with
    /// it are gone.
    pub(crate) unsafe fn register(gpu: &Gpu, bytes: &[u8]) -> Result<Self, GpuError> {
        // SAFETY: the caller guarantees that the bytes stay mapped.
        let address = unsafe { gpu.driver().register_read_only(bytes.as_ptr(), bytes.len()) }?;
        let owned = Owned::Registered(bytes.as_ptr().addr());
        let memory = Arc::new(Memory { gpu: gpu.clone(), address, owned });
        Ok(Self { memory, address, bytes: bytes.len() as u64 })
    }

    /// Copies bytes to new memory; blocks until the copy is done.
    ///
    /// # Errors
    /// As [`DeviceBuffer::new`]; [`GpuError::Driver`] if the copy fails.
    pub fn from_host(stream: &Stream, bytes: &[u8]) -> Result<Self, GpuError> {
        let buffer = Self::new(stream.gpu(), bytes.len() as u64)?;
        buffer.copy_from_host(stream, bytes)?;
        Ok(buffer)
    }

    /// Returns a part of the buffer, which shares its memory.
    ///
    /// # Panics
    /// If the part is not inside the buffer.
    #[must_use]
    pub fn part(&self, from: u64, bytes: u64) -> Self {
        assert!(from <= self.bytes && bytes <= self.bytes - from, "a part lies inside its buffer");
        Self { memory: Arc::clone(&self.memory), address: self.address + from, bytes }
    }

    /// Returns the address on the device.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the device of the buffer.
    #[must_use]
    pub fn gpu(&self) -> &Gpu {
        &self.memory.gpu
    }

    /// Copies from the host; blocks until done.
    ///
    /// # Errors
    /// [`GpuError::Buffer`] if the buffer is shorter than `bytes`, [`GpuError::Driver`] if the copy fails.
    pub fn copy_from_host(&self, stream: &Stream, bytes: &[u8]) -> Result<(), GpuError> {
        self.holds("device", bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the check above guarantees that the buffer is long enough; both live until the stream was
        // waited for.
        unsafe { stream.gpu().driver().copy_in(stream.handle(), self.address, bytes.as_ptr(), bytes.len()) }?;
        stream.synchronize()
    }

    /// Copies the first bytes of the buffer to the host; blocks until done.
    ///
    /// # Errors
    /// As [`DeviceBuffer::copy_from_host`].
    pub fn copy_to_host(&self, stream: &Stream, bytes: &mut [u8]) -> Result<(), GpuError> {
        self.holds("device", bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the check above guarantees that the buffer is long enough; both live until the stream was
        // waited for.
        unsafe {
            stream.gpu().driver().copy_out(stream.handle(), bytes.as_mut_ptr(), self.address, bytes.len())
        }?;
        stream.synchronize()
    }

    /// Queues filling the buffer with a byte.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn fill(&self, stream: &Stream, byte: u8) -> Result<(), GpuError> {
        if self.bytes == 0 {
            return Ok(());
        }
        let bytes = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        // SAFETY: the range is the whole buffer; the caller keeps it, as for all queued work.
        unsafe { stream.gpu().driver().fill(stream.handle(), self.address, byte, bytes) }
    }

    /// Checks that the buffer has `needed` bytes; `name` is for the message.
    ///
    /// # Errors
    /// [`GpuError::Buffer`] if it has fewer.
    pub fn holds(&self, name: &'static str, needed: u64) -> Result<(), GpuError> {
        if self.bytes < needed {
            return Err(GpuError::Buffer { name, needed, found: self.bytes });
        }
        Ok(())
    }
}

/// Page-locked host memory: copies to and from it overlap with other work, and the device can read it in
/// place.
#[derive(Debug)]
pub struct PinnedBuffer {
    gpu: Gpu,
    host: *mut u8,
    address: u64,
    bytes: usize,
}

// SAFETY: the buffer owns its memory, like a boxed slice.
unsafe impl Send for PinnedBuffer {}
// SAFETY: the buffer owns its memory, and `&self` only reads.
unsafe impl Sync for PinnedBuffer {}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        // SAFETY: `new` allocated it; queued work owns the buffer until it is done.
        unsafe { self.gpu.driver().free_pinned(self.host) };
    }
}

impl PinnedBuffer {
    /// Allocates memory, zeroed.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`] or [`GpuError::Driver`] if the driver cannot allocate it.
    pub fn new(gpu: &Gpu, bytes: usize) -> Result<Self, GpuError> {
        let (host, address) = gpu.driver().allocate_pinned(bytes.max(1))?;
        // SAFETY: the memory was allocated above with that length.
        unsafe { host.write_bytes(0, bytes.max(1)) };
        Ok(Self { gpu: gpu.clone(), host, address, bytes })
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: `new` allocated and zeroed them; work that writes them owns the buffer meanwhile.
        unsafe { std::slice::from_raw_parts(self.host, self.bytes) }
    }

    /// Returns the bytes, for writing.
    #[must_use]
    pub fn as_mut_bytes(&mut self) -> &mut [u8] {
        // SAFETY: `new` allocated and zeroed them; `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.host, self.bytes) }
    }

    /// Returns the address under which the device reads the memory.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the device of the buffer.
    #[must_use]
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    pub(crate) fn host(&self) -> *mut u8 {
        self.host
    }
}
