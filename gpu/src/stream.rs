//! Streams of work on a device, and results that are not ready yet.
//!
//! Work of one stream is done in the order in which it was queued. Queueing returns at once with a
//! [`Pending`], which keeps alive the resources that the work uses; [`Pending::wait`] blocks until the work
//! is done. Dropping a [`Pending`] blocks too, so buffers are never freed under a kernel.

use crate::driver::Handle;
use crate::memory::DeviceBuffer;
use crate::{Gpu, GpuError};
use std::sync::Arc;

/// A queue of work on a device. Clones share the queue.
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
            // SAFETY: `new` made the stream, and only this value held it.
            unsafe { self.gpu.driver().free_stream(self.handle) };
        }
    }
}

impl Stream {
    /// Creates a new queue.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn new(gpu: &Gpu) -> Result<Self, GpuError> {
        let handle = gpu.driver().new_stream()?;
        Ok(Self { inner: Arc::new(Inner { gpu: gpu.clone(), handle, is_owned: true }) })
    }

    /// Wraps a queue of the caller's: a `CUstream` as a number, 0 for the default one. It is not freed here.
    ///
    /// # Safety
    /// The stream must belong to this device's primary context and outlive this value and all work that is
    /// queued through it.
    #[must_use]
    pub unsafe fn from_raw(gpu: &Gpu, stream: u64) -> Self {
        Self { inner: Arc::new(Inner { gpu: gpu.clone(), handle: stream, is_owned: false }) }
    }

    /// Returns the device of the stream.
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
    /// [`GpuError::Driver`] or [`GpuError::Lost`] if a driver call fails, or if the queued work failed.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        // SAFETY: `inner` keeps the handle alive.
        unsafe { self.gpu().driver().synchronize(self.handle()) }
    }

    /// Places a mark after the work queued so far.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn mark(&self) -> Result<Event, GpuError> {
        let event = Event::new(self.gpu(), true)?;
        event.record(self)?;
        Ok(event)
    }

    /// Makes work queued from now on wait until a mark of another stream is passed.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn wait_for(&self, event: &Event) -> Result<(), GpuError> {
        // SAFETY: `self` and `event` keep both handles alive.
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
        // SAFETY: `new` made the event, and only this value held it.
        unsafe { self.gpu.driver().free_event(self.handle) };
    }
}

impl Event {
    pub(crate) fn new(gpu: &Gpu, is_timed: bool) -> Result<Self, GpuError> {
        let handle = gpu.driver().new_event(is_timed)?;
        Ok(Self { gpu: gpu.clone(), handle })
    }

    pub(crate) fn record(&self, stream: &Stream) -> Result<(), GpuError> {
        // SAFETY: `self` and `stream` keep both handles alive.
        unsafe { self.gpu.driver().record(self.handle, stream.handle()) }
    }

    /// Returns true if the work before the mark is done.
    ///
    /// # Errors
    /// [`GpuError::Driver`] or [`GpuError::Lost`] if a driver call fails, or if the work failed.
    pub fn is_done(&self) -> Result<bool, GpuError> {
        // SAFETY: `self` keeps the handle alive.
        unsafe { self.gpu.driver().has_happened(self.handle) }
    }

    /// Blocks until the work before the mark is done.
    ///
    /// # Errors
    /// As [`Event::is_done`].
    pub fn wait(&self) -> Result<(), GpuError> {
        // SAFETY: `self` keeps the handle alive.
        unsafe { self.gpu.driver().wait(self.handle) }
    }

    /// Returns the device time in milliseconds from this mark to a later one; both must have been passed.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn milliseconds_to(&self, end: &Self) -> Result<f32, GpuError> {
        // SAFETY: `self` and `end` keep both handles alive.
        unsafe { self.gpu.driver().elapsed_ms(self.handle, end.handle) }
    }
}

/// Queued work, and its result.
#[must_use = "the work is waited for when this is dropped"]
pub struct Pending<T> {
    event: Event,
    kept: Vec<DeviceBuffer>,
    // Taken by `wait`.
    finish: Option<Finish<T>>,
}

/// Makes the result when the work is done.
type Finish<T> = Box<dyn FnOnce() -> Result<T, GpuError> + Send>;

impl<T> Pending<T> {
    /// Waits for all work queued on `stream` so far, which uses `kept`; then `finish` makes the result.
    pub(crate) fn new(
        stream: &Stream,
        kept: Vec<DeviceBuffer>,
        finish: impl FnOnce() -> Result<T, GpuError> + Send + 'static,
    ) -> Result<Self, GpuError> {
        let event = Event::new(stream.gpu(), false)?;
        event.record(stream)?;
        Ok(Self { event, kept, finish: Some(Box::new(finish)) })
    }

    /// Returns true if [`Pending::wait`] would return at once.
    ///
    /// # Errors
    /// As [`Event::is_done`].
    pub fn is_done(&self) -> Result<bool, GpuError> {
        self.event.is_done()
    }

    /// Makes work queued on another stream from now on wait for this work.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn then_on(&self, stream: &Stream) -> Result<(), GpuError> {
        stream.wait_for(&self.event)
    }

    /// Blocks until the work is done, and returns its result.
    ///
    /// # Errors
    /// As [`Event::is_done`], and any error of making the result.
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
        // A lost device no longer uses the memory.
        let _ = self.event.wait();
    }
}
