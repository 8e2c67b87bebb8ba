//! An open device: the limits on its use, and the programs loaded on it.

use crate::driver::{Driver, Handle, LaunchShape, Limits, cuda::Cuda};
use crate::image::Lowest;
use crate::kernel::Instance;
use crate::{Device, GpuError};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Limits and settings of an open device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuOptions {
    /// Maximum number of bytes allocated on the device; `None`: all of its memory.
    pub memory_bytes: Option<u64>,
    /// Form of the lowest nodes of an image in device memory; `None`: the fastest form.
    pub lowest: Option<Lowest>,
    /// Bits per code of a fine image's lowest nodes: 16, 24 or 32; `None`: as few as keep the keys apart.
    pub fine_bits: Option<u32>,
    /// Maximum number of codes in the top of an image; `None`: the fastest number.
    pub top_max: Option<usize>,
    /// [`crate::Algorithm::Auto`] samples the order of batches with at least this many queries; `None`:
    /// built-in threshold.
    pub sampled_min: Option<u64>,
}

/// A device that is open for work. Clones share the device.
#[derive(Clone, Debug)]
pub struct Gpu {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    driver: Box<dyn Driver>,
    options: GpuOptions,
    memory_bytes: u64,
    used_bytes: AtomicU64,
    modules: Mutex<HashMap<Instance, Module>>,
    constants: Mutex<HashMap<Instance, Constant>>,
}

/// Owner of a program's constant memory, and the end of the last work that uses it.
#[derive(Debug)]
struct Constant {
    owner: u64,
    used: Handle,
}

/// A loaded program, and those of its entries that were used so far.
#[derive(Debug)]
struct Module {
    handle: Handle,
    functions: HashMap<&'static str, Function>,
}

/// An entry of a loaded program.
#[derive(Clone, Copy, Debug)]
struct Function {
    handle: Handle,
    shared_bytes: u32,
}

impl Drop for Inner {
    fn drop(&mut self) {
        let constants = std::mem::take(self.constants.get_mut().unwrap_or_else(PoisonError::into_inner));
        for constant in constants.into_values() {
            // SAFETY: `with_constant` made the event, and only this map held it.
            unsafe { self.driver.free_event(constant.used) };
        }
        let modules = std::mem::take(self.modules.get_mut().unwrap_or_else(PoisonError::into_inner));
        for module in modules.into_values() {
            // SAFETY: `module` loaded it. Streams and pending work hold the device, so none of its work is
            // left.
            unsafe { self.driver.unload(module.handle) };
        }
    }
}

impl Gpu {
    /// Opens a device by its ordinal.
    ///
    /// # Errors
    /// [`GpuError::Unavailable`] if the device is missing or too old, [`GpuError::Driver`] if a driver call
    /// fails.
    pub fn open(ordinal: u32) -> Result<Self, GpuError> {
        Self::with_options(ordinal, GpuOptions::default())
    }

    /// Opens a device by its ordinal, within the limits of `options`.
    ///
    /// # Errors
    /// As [`Gpu::open`].
    pub fn with_options(ordinal: u32, options: GpuOptions) -> Result<Self, GpuError> {
        Ok(Self::on(Box::new(Cuda::open(ordinal)?), options))
    }

    /// Opens a device that is a CPU and runs the kernels' own text: for tests.
    ///
    /// # Errors
    /// [`GpuError::Unavailable`] without a C++ compiler.
    #[cfg(feature = "emulate")]
    pub fn emulated(order: crate::LaneOrder, options: GpuOptions) -> Result<Self, GpuError> {
        Ok(Self::on(Box::new(crate::driver::emulated::Emulated::new(order)?), options))
    }

    /// Makes an emulated device fail as lost after `works` more copies, launches and waits.
    #[cfg(feature = "emulate")]
    pub fn lose_after(&self, works: u64) {
        self.driver().lose_after(works);
    }

    fn on(driver: Box<dyn Driver>, options: GpuOptions) -> Self {
        let memory_bytes = options.memory_bytes.unwrap_or(u64::MAX);
        let (used_bytes, modules, constants) = (AtomicU64::new(0), Mutex::default(), Mutex::default());
        let inner = Inner { driver, options, memory_bytes, used_bytes, modules, constants };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the description of the device.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.inner.driver.device()
    }

    /// Returns the number of bytes allocated on the device through this value and its clones.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.inner.used_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that may still be allocated.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if the driver does not report the free memory.
    pub fn left_bytes(&self) -> Result<u64, GpuError> {
        let left = self.inner.memory_bytes.saturating_sub(self.used_bytes());
        Ok(left.min(self.driver().free_bytes()?))
    }

    /// Blocks until all work on the device is done, of all streams.
    ///
    /// # Errors
    /// [`GpuError::Driver`] or [`GpuError::Lost`] if a driver call fails, or if the work failed.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.driver().synchronize_all()
    }

    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.inner.driver
    }

    pub(crate) fn options(&self) -> GpuOptions {
        self.inner.options
    }

    pub(crate) fn limits(&self) -> Limits {
        self.driver().limits()
    }

    /// Reserves `bytes` of the memory limit for an allocation.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), GpuError> {
        let limit = self.inner.memory_bytes;
        let taken = self.inner.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|&sum| sum <= limit)
        });
        taken.map(|_| ()).map_err(|used| GpuError::Memory { needed: bytes, free: limit.saturating_sub(used) })
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        self.inner.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns an entry of an instance, loaded on first use and allowed to use `shared_bytes` of shared
    /// memory.
    fn function(
        &self,
        instance: Instance,
        entry: &'static str,
        shared_bytes: u32,
    ) -> Result<Handle, GpuError> {
        let driver = self.driver();
        let mut modules = self.inner.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let module = Self::module(driver, &mut modules, instance)?;
        let function = match module.functions.entry(entry) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                // SAFETY: the map above keeps the module loaded.
                let handle = unsafe { driver.function(module.handle, entry) }?;
                place.insert(Function { handle, shared_bytes: 0 })
            }
        };
        if shared_bytes > function.shared_bytes {
            // SAFETY: the function belongs to a module that the map keeps loaded.
            unsafe { driver.allow_shared(function.handle, shared_bytes) }?;
            function.shared_bytes = shared_bytes;
        }
        Ok(function.handle)
    }

    /// Returns a program, loaded on first use.
    fn module<'m>(
        driver: &dyn Driver,
        modules: &'m mut HashMap<Instance, Module>,
        instance: Instance,
    ) -> Result<&'m mut Module, GpuError> {
        Ok(match modules.entry(instance) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                let handle = instance.with_program(|program| driver.load(program))?;
                place.insert(Module { handle, functions: HashMap::new() })
            }
        })
    }

    /// Queues work on `stream` that reads a program's constant memory filled by `owner`. If another owner
    /// filled it last, `bytes` are first copied there from the device address `from`. Such work runs one
    /// after the other.
    ///
    /// # Safety
    /// `stream` must be alive. The constant memory must hold `bytes`; the memory at `from` must stay alive until
    /// the work is done.
    pub(crate) unsafe fn with_constant(
        &self,
        stream: Handle,
        (instance, name): (Instance, &'static str),
        owner: u64,
        (from, bytes): (u64, usize),
        work: impl FnOnce() -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        let driver = self.driver();
        let address = {
            let mut modules = self.inner.modules.lock().unwrap_or_else(PoisonError::into_inner);
            let module = Self::module(driver, &mut modules, instance)?;
            // SAFETY: the map above keeps the module loaded.
            unsafe { driver.constant(module.handle, name) }?
        };
        let mut constants = self.inner.constants.lock().unwrap_or_else(PoisonError::into_inner);
        let constant = match constants.entry(instance) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(Constant { owner: 0, used: driver.new_event(false)? })
            }
        };
        let is_filled = std::mem::replace(&mut constant.owner, 0) == owner;
        // SAFETY: the map keeps the event alive. The caller guarantees `bytes` at both addresses. Waiting for
        // the event orders the copy after all work that reads the constant memory.
        unsafe {
            driver.wait_on(stream, constant.used)?;
            if !is_filled {
                driver.copy(stream, address, from, bytes)?;
            }
        }
        let done = work();
        // SAFETY: the map keeps the event alive, and the caller the stream.
        unsafe { driver.record(constant.used, stream) }?;
        if done.is_ok() {
            constant.owner = owner;
        }
        done
    }

    /// Returns the number of blocks of an entry that run on the whole device at a time; at least one.
    pub(crate) fn blocks_at_once(
        &self,
        instance: Instance,
        entry: &'static str,
        threads: u32,
        shared_bytes: u32,
    ) -> Result<u32, GpuError> {
        let function = self.function(instance, entry, shared_bytes)?;
        // SAFETY: `inner` keeps the module of the function loaded.
        let blocks = unsafe { self.driver().blocks_at_once(function, threads, shared_bytes) }?;
        Ok((blocks * self.device().multiprocessors).max(1))
    }

    /// Launches an entry. Only the typed functions that `kernel!` makes call it.
    ///
    /// # Safety
    /// `arguments` must point to values of the entry's parameter types; whatever these point to must stay
    /// alive until the work is done.
    pub(crate) unsafe fn launch(
        &self,
        stream: Handle,
        instance: Instance,
        entry: &'static str,
        shape: LaunchShape,
        arguments: &mut [*mut c_void],
    ) -> Result<(), GpuError> {
        let function = self.function(instance, entry, shape.shared_bytes)?;
        // SAFETY: the function is that entry of a module that `inner` keeps loaded; the caller guarantees the
        // arguments.
        unsafe { self.driver().launch(stream, function, shape, arguments) }
    }
}
