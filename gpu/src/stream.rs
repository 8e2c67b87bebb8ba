//! Streams of work on a device. Work of one stream is done in the order in which it was queued.

use crate::driver::Handle;
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

    /// Returns the `CUstream` as a number.
    #[must_use]
    pub fn raw(&self) -> u64 {
        self.inner.handle
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

    /// Returns true if work that is queued now is recorded, and not run.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn is_recording(&self) -> Result<bool, GpuError> {
        // SAFETY: `inner` keeps the handle alive.
        unsafe { self.gpu().driver().is_capturing(self.handle()) }
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
