//! An open device: what it may use, and the programs that are loaded on it.

use crate::driver::{Driver, Handle, LaunchShape, Limits, cuda::Cuda};
use crate::image::Lowest;
use crate::kernel::Instance;
use crate::{Device, GpuError};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a device may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuOptions {
    /// Most bytes that may be allocated on it; `None` for what is there.
    pub memory_bytes: Option<u64>,
    /// What the lowest nodes of an image in its memory are made of; `None` for what is fast.
    pub lowest: Option<Lowest>,
    /// Most codes of the top of an image; `None` for what is fast.
    pub top_max: Option<usize>,
    /// Fewest queries of which [`crate::Algorithm::Auto`] samples the order; `None` for what is fast.
    pub sampled_min: Option<u64>,
}

/// A device that is open for work. Clones are the same device.
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

/// Who filled a program's constant memory, and the end of the last work that uses it.
#[derive(Debug)]
struct Constant {
    owner: u64,
    used: Handle,
}

/// A loaded program, and its entries as far as they were asked for.
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
            // SAFETY: made by `with_constant`, and nobody else holds it.
            unsafe { self.driver.free_event(constant.used) };
        }
        let modules = std::mem::take(self.modules.get_mut().unwrap_or_else(PoisonError::into_inner));
        for module in modules.into_values() {
            // SAFETY: loaded by `function`; streams hold the device, so none has work left that it waits for.
            unsafe { self.driver.unload(module.handle) };
        }
    }
}

impl Gpu {
    /// Opens a device by its number.
    ///
    /// # Errors
    /// [`GpuError::Unavailable`] if it is not there or too old, [`GpuError::Driver`] if the driver refuses.
    pub fn open(ordinal: u32) -> Result<Self, GpuError> {
        Self::with_options(ordinal, GpuOptions::default())
    }

    /// Opens a device by its number, to use no more of it than is said.
    ///
    /// # Errors
    /// As [`Gpu::open`].
    pub fn with_options(ordinal: u32, options: GpuOptions) -> Result<Self, GpuError> {
        Ok(Self::on(Box::new(Cuda::open(ordinal)?), options))
    }

    /// A device that is a CPU, which runs the kernels' own text: for tests.
    ///
    /// # Errors
    /// [`GpuError::Unavailable`] without a C++ compiler.
    #[cfg(feature = "emulate")]
    pub fn emulated(order: crate::LaneOrder, options: GpuOptions) -> Result<Self, GpuError> {
        Ok(Self::on(Box::new(crate::driver::emulated::Emulated::new(order)?), options))
    }

    /// Lets an emulated device be lost after so many more copies, launches and waits.
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

    /// What it is.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.inner.driver.device()
    }

    /// Bytes that are allocated on it through this value and its clones.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.inner.used_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that may still be allocated.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn left_bytes(&self) -> Result<u64, GpuError> {
        let left = self.inner.memory_bytes.saturating_sub(self.used_bytes());
        Ok(left.min(self.driver().free_bytes()?))
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

    /// Counts an allocation.
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

    /// An entry of an instance, loaded on first use and allowed to have `shared_bytes`.
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
                // SAFETY: the module is alive.
                let handle = unsafe { driver.function(module.handle, entry) }?;
                place.insert(Function { handle, shared_bytes: 0 })
            }
        };
        if shared_bytes > function.shared_bytes {
            // SAFETY: the function is alive.
            unsafe { driver.allow_shared(function.handle, shared_bytes) }?;
            function.shared_bytes = shared_bytes;
        }
        Ok(function.handle)
    }

    /// A program, loaded on first use.
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

    /// Queues work on `stream` that reads a program's constant memory as `owner` fills it, by a copy of `bytes` from
    /// an address of the device if another one filled it last. Such work is done one after the other.
    ///
    /// # Safety
    /// The constant memory has that many bytes; what is at `from` is alive until the work is done.
    pub(crate) unsafe fn with_constant(
        &self,
        stream: &crate::Stream,
        (instance, name): (Instance, &'static str),
        owner: u64,
        (from, bytes): (u64, usize),
        work: impl FnOnce() -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        let driver = self.driver();
        let address = {
            let mut modules = self.inner.modules.lock().unwrap_or_else(PoisonError::into_inner);
            let module = Self::module(driver, &mut modules, instance)?;
            // SAFETY: the module is alive.
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
        // SAFETY: the event is alive; both arrays have that many bytes, and work that reads the constant memory is over
        // before it is written.
        unsafe {
            driver.wait_on(stream.handle(), constant.used)?;
            if !is_filled {
                driver.copy(stream.handle(), address, from, bytes)?;
            }
        }
        let done = work();
        // SAFETY: as above.
        unsafe { driver.record(constant.used, stream.handle()) }?;
        if done.is_ok() {
            constant.owner = owner;
        }
        done
    }

    /// Blocks of an entry that run on the whole device at a time; at least one.
    pub(crate) fn blocks_at_once(
        &self,
        instance: Instance,
        entry: &'static str,
        threads: u32,
        shared_bytes: u32,
    ) -> Result<u32, GpuError> {
        let function = self.function(instance, entry, shared_bytes)?;
        // SAFETY: the function is alive as long as `inner`.
        let blocks = unsafe { self.driver().blocks_at_once(function, threads, shared_bytes) }?;
        Ok((blocks * self.device().multiprocessors).max(1))
    }

    /// Launches an entry; called by the typed functions of `kernel::table` alone.
    ///
    /// # Safety
    /// `arguments` point to values of the entry's parameter types; what these point to is alive until the work is done.
    pub(crate) unsafe fn launch(
        &self,
        stream: Handle,
        instance: Instance,
        entry: &'static str,
        shape: LaunchShape,
        arguments: &mut [*mut c_void],
    ) -> Result<(), GpuError> {
        let function = self.function(instance, entry, shape.shared_bytes)?;
        // SAFETY: the function is that entry; the rest is the caller's promise.
        unsafe { self.driver().launch(stream, function, shape, arguments) }
    }
}
