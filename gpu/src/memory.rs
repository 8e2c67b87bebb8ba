//! Memory of a device, and host memory that it reads and writes directly.
//!
//! Buffers are shared handles: a clone is the same memory, and work that is queued holds one, so memory is freed only
//! when nobody uses it. What a device may allocate in all has a limit ([`crate::GpuOptions`]), which is kept here.

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

/// What has to be undone when nobody uses memory any more.
#[derive(Debug)]
enum Owned {
    /// It is the caller's.
    Nothing,
    /// So many bytes of the device.
    Device(u64),
    /// Memory of the host.
    Pinned(PinnedBuffer),
    /// The host's memory from this address on was registered.
    Registered(usize),
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self.owned {
            Owned::Device(bytes) => {
                // SAFETY: allocated by `new`; queued work holds clones, and waits before it drops them.
                unsafe { self.gpu.driver().free(self.address) };
                self.gpu.give_back(bytes);
            }
            // SAFETY: registered by `register`.
            Owned::Registered(host) => unsafe {
                self.gpu.driver().unregister(std::ptr::without_provenance(host));
            },
            Owned::Nothing | Owned::Pinned(_) => {}
        }
    }
}

impl DeviceBuffer {
    /// New memory, of any content; with `bytes` 0 it has an address too.
    ///
    /// # Errors
    /// [`GpuError::Memory`] beyond the limit, [`GpuError::OutOfMemory`].
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

    /// Memory of the caller's, for instance of another library: its address on the device. It is not freed here.
    ///
    /// # Safety
    /// The memory is of this device (or reachable from it), has that many bytes, and outlives this value, its clones
    /// and all work that is queued with it.
    #[must_use]
    pub unsafe fn from_raw(gpu: &Gpu, address: u64, bytes: u64) -> Self {
        let memory = Arc::new(Memory { gpu: gpu.clone(), address, owned: Owned::Nothing });
        Self { memory, address, bytes }
    }

    /// New page-locked memory of the host, as the device reads it.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn pinned(gpu: &Gpu, bytes: u64) -> Result<Self, GpuError> {
        let call = "asking for pinned memory";
        let length = usize::try_from(bytes).map_err(|_| GpuError::OutOfMemory { call })?;
        let pinned = PinnedBuffer::new(gpu, length)?;
        let address = pinned.address();
        let memory = Memory { gpu: gpu.clone(), address, owned: Owned::Pinned(pinned) };
        Ok(Self { memory: Arc::new(memory), address, bytes })
    }

    /// Calls with the host's view of pinned memory that nobody else knows yet.
    pub(crate) fn with_pinned(&self, with: impl FnOnce(&mut [u8])) {
        if let Owned::Pinned(pinned) = &self.memory.owned {
            // SAFETY: its owner lives; the caller made the buffer and told nobody, so nothing else reads or writes it.
            with(unsafe { std::slice::from_raw_parts_mut(pinned.host(), pinned.as_bytes().len()) });
        }
    }

    /// Memory of the host that the device reads where it lies, and does not write.
    ///
    /// # Safety
    /// The bytes lie still until this value, its clones and all work that is queued with it are gone.
    pub(crate) unsafe fn register(gpu: &Gpu, bytes: &[u8]) -> Result<Self, GpuError> {
        // SAFETY: mapped, by the contract.
        let address = unsafe { gpu.driver().register_read_only(bytes.as_ptr(), bytes.len()) }?;
        let owned = Owned::Registered(bytes.as_ptr().addr());
        let memory = Arc::new(Memory { gpu: gpu.clone(), address, owned });
        Ok(Self { memory, address, bytes: bytes.len() as u64 })
    }

    /// Copies bytes to new memory; blocks until they are there.
    ///
    /// # Errors
    /// As [`DeviceBuffer::new`], [`GpuError::Driver`].
    pub fn from_host(stream: &Stream, bytes: &[u8]) -> Result<Self, GpuError> {
        let buffer = Self::new(stream.gpu(), bytes.len() as u64)?;
        buffer.copy_from_host(stream, bytes)?;
        Ok(buffer)
    }

    /// A part of it.
    ///
    /// # Panics
    /// If the part is not inside.
    #[must_use]
    pub fn part(&self, from: u64, bytes: u64) -> Self {
        assert!(from <= self.bytes && bytes <= self.bytes - from, "a part lies inside its buffer");
        Self { memory: Arc::clone(&self.memory), address: self.address + from, bytes }
    }

    /// Its address on the device.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its length.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its device.
    #[must_use]
    pub fn gpu(&self) -> &Gpu {
        &self.memory.gpu
    }

    /// Copies from the host; blocks until done.
    ///
    /// # Errors
    /// [`GpuError::Buffer`] if it is shorter, [`GpuError::Driver`].
    pub fn copy_from_host(&self, stream: &Stream, bytes: &[u8]) -> Result<(), GpuError> {
        self.holds("device", bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the buffer is long enough; both live until the stream was waited for.
        unsafe { stream.gpu().driver().copy_in(stream.handle(), self.address, bytes.as_ptr(), bytes.len()) }?;
        stream.synchronize()
    }

    /// Copies its first bytes to the host; blocks until done.
    ///
    /// # Errors
    /// As [`DeviceBuffer::copy_from_host`].
    pub fn copy_to_host(&self, stream: &Stream, bytes: &mut [u8]) -> Result<(), GpuError> {
        self.holds("device", bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe {
            stream.gpu().driver().copy_out(stream.handle(), bytes.as_mut_ptr(), self.address, bytes.len())
        }?;
        stream.synchronize()
    }

    /// Queues filling it with a byte.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn fill(&self, stream: &Stream, byte: u8) -> Result<(), GpuError> {
        if self.bytes == 0 {
            return Ok(());
        }
        let bytes = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        // SAFETY: inside the buffer; the caller keeps it, as for all that is queued.
        unsafe { stream.gpu().driver().fill(stream.handle(), self.address, byte, bytes) }
    }

    /// Whether a batch fits.
    pub(crate) fn holds(&self, name: &'static str, needed: u64) -> Result<(), GpuError> {
        if self.bytes < needed {
            return Err(GpuError::Buffer { name, needed, found: self.bytes });
        }
        Ok(())
    }
}

/// Page-locked memory of the host: copies to and from it run beside other work, and the device reads it as it lies.
#[derive(Debug)]
pub struct PinnedBuffer {
    gpu: Gpu,
    host: *mut u8,
    address: u64,
    bytes: usize,
}

// SAFETY: it owns its memory, like a boxed slice.
unsafe impl Send for PinnedBuffer {}
// SAFETY: as above; `&self` only reads.
unsafe impl Sync for PinnedBuffer {}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated by `new`; queued work owns the buffer until it is done.
        unsafe { self.gpu.driver().free_pinned(self.host) };
    }
}

impl PinnedBuffer {
    /// New memory, zeroed.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn new(gpu: &Gpu, bytes: usize) -> Result<Self, GpuError> {
        let (host, address) = gpu.driver().allocate_pinned(bytes.max(1))?;
        // SAFETY: allocated above with that length.
        unsafe { host.write_bytes(0, bytes.max(1)) };
        Ok(Self { gpu: gpu.clone(), host, address, bytes })
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: `new` allocated and zeroed them; work that writes them owns the buffer meanwhile.
        unsafe { std::slice::from_raw_parts(self.host, self.bytes) }
    }

    /// Its bytes, to write.
    #[must_use]
    pub fn as_mut_bytes(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.host, self.bytes) }
    }

    /// Address under which the device reads it.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its device.
    #[must_use]
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    pub(crate) fn host(&self) -> *mut u8 {
        self.host
    }
}
