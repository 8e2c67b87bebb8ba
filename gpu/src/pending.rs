//! Results that are not ready yet.
//!
//! Queueing returns at once with a [`Pending`], which keeps alive the resources that the work uses;
//! [`Pending::wait`] blocks until the work is done. Dropping a [`Pending`] blocks too, so buffers are never
//! freed under a kernel.

use crate::memory::DeviceBuffer;
use crate::stream::Event;
use crate::{GpuError, Stream};

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
