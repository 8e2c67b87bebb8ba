//! Streams of work on a device, and answers that are still to come.
//!
//! Work of one stream is done in the order in which it was queued. Queueing returns at once with a [`Pending`], which
//! keeps alive what the work uses; [`Pending::wait`] blocks until it is done. Dropping a [`Pending`] blocks too, so
//! buffers never go away under a kernel.

use crate::driver::Handle;
use crate::memory::DeviceBuffer;
use crate::{Gpu, GpuError};
use std::sync::Arc;

/// A queue of work.
#[derive(Clone, Debug)]
pub struct Stream {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    gpu: Gpu,
    handle: Handle,
    is_owned: bool,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.is_owned {
            // SAFETY: made by `new`, and nobody else holds it.
            unsafe { self.gpu.driver().free_stream(self.handle) };
        }
    }
}

impl Stream {
    /// A new queue.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn new(gpu: &Gpu) -> Result<Self, GpuError> {
        let handle = gpu.driver().new_stream()?;
        Ok(Self { inner: Arc::new(Inner { gpu: gpu.clone(), handle, is_owned: true }) })
    }

    /// A queue of the caller's: a `CUstream` as a number, 0 for the default one. It is not freed here.
    ///
    /// # Safety
    /// The stream is of this device's primary context and outlives this value and all work that is queued through it.
    #[must_use]
    pub unsafe fn from_raw(gpu: &Gpu, stream: u64) -> Self {
        Self { inner: Arc::new(Inner { gpu: gpu.clone(), handle: stream, is_owned: false }) }
    }

    /// Its device.
    #[must_use]
    pub fn gpu(&self) -> &Gpu {
        &self.inner.gpu
    }

    pub(crate) fn handle(&self) -> Handle {
        self.inner.handle
    }

    /// Blocks until all work queued so far is done.
    ///
    /// # Errors
    /// [`GpuError::Driver`], [`GpuError::Lost`]: also of work that failed.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        // SAFETY: the handle is alive as long as `inner`.
        unsafe { self.gpu().driver().synchronize(self.handle()) }
    }

    /// A mark after the work queued so far.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn mark(&self) -> Result<Event, GpuError> {
        let event = Event::new(self.gpu(), true)?;
        event.record(self)?;
        Ok(event)
    }

    /// Lets work queued from now on wait until a mark of another stream is passed.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn wait_for(&self, event: &Event) -> Result<(), GpuError> {
        // SAFETY: both handles are alive.
        unsafe { self.gpu().driver().wait_on(self.handle(), event.handle) }
    }
}

/// A mark in a stream.
#[derive(Debug)]
pub struct Event {
    gpu: Gpu,
    handle: Handle,
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and nobody else holds it.
        unsafe { self.gpu.driver().free_event(self.handle) };
    }
}

impl Event {
    pub(crate) fn new(gpu: &Gpu, is_timed: bool) -> Result<Self, GpuError> {
        let handle = gpu.driver().new_event(is_timed)?;
        Ok(Self { gpu: gpu.clone(), handle })
    }

    pub(crate) fn record(&self, stream: &Stream) -> Result<(), GpuError> {
        // SAFETY: both handles are alive.
        unsafe { self.gpu.driver().record(self.handle, stream.handle()) }
    }

    /// Whether the work before it is done.
    ///
    /// # Errors
    /// [`GpuError::Driver`], [`GpuError::Lost`]: also of work that failed.
    pub fn is_done(&self) -> Result<bool, GpuError> {
        // SAFETY: the handle is alive.
        unsafe { self.gpu.driver().has_happened(self.handle) }
    }

    /// Blocks until the work before it is done.
    ///
    /// # Errors
    /// As [`Event::is_done`].
    pub fn wait(&self) -> Result<(), GpuError> {
        // SAFETY: the handle is alive.
        unsafe { self.gpu.driver().wait(self.handle) }
    }

    /// Milliseconds of the device from here to a later mark; both are passed.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn milliseconds_to(&self, end: &Self) -> Result<f32, GpuError> {
        // SAFETY: the handles are alive.
        unsafe { self.gpu.driver().elapsed_ms(self.handle, end.handle) }
    }
}

/// Work that is queued, and what comes of it.
#[must_use = "the work is waited for when this is dropped"]
pub struct Pending<T> {
    event: Event,
    kept: Vec<DeviceBuffer>,
    // Taken by `wait`.
    finish: Option<Finish<T>>,
}

/// Makes the answer when the work is done.
type Finish<T> = Box<dyn FnOnce() -> Result<T, GpuError> + Send>;

impl<T> Pending<T> {
    /// After all that is queued on `stream`, which uses `kept`; then `finish` makes the answer.
    pub(crate) fn new(
        stream: &Stream,
        kept: Vec<DeviceBuffer>,
        finish: impl FnOnce() -> Result<T, GpuError> + Send + 'static,
    ) -> Result<Self, GpuError> {
        let event = Event::new(stream.gpu(), false)?;
        event.record(stream)?;
        Ok(Self { event, kept, finish: Some(Box::new(finish)) })
    }

    /// Whether [`Pending::wait`] would return at once.
    ///
    /// # Errors
    /// As [`Event::is_done`].
    pub fn is_done(&self) -> Result<bool, GpuError> {
        self.event.is_done()
    }

    /// Lets work queued on another stream from now on wait for this.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn then_on(&self, stream: &Stream) -> Result<(), GpuError> {
        stream.wait_for(&self.event)
    }

    /// Blocks until the work is done, and gives what came of it.
    ///
    /// # Errors
    /// As [`Event::is_done`], and what making the answer says.
    pub fn wait(mut self) -> Result<T, GpuError> {
        self.event.wait()?;
        let finish = self.finish.take();
        self.kept.clear();
        finish.map_or_else(|| unreachable!("taken only here, and `self` is gone then"), |finish| finish())
    }
}

impl<T> std::fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("event", &self.event).finish_non_exhaustive()
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        // A device that is lost uses nothing any more.
        let _ = self.event.wait();
    }
}
