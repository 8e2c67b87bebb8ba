//! An operator under way, and the times of its stages.

use crate::memory::DeviceBuffer;
use crate::stream::Event;
use crate::{GpuError, Stream};

/// Milliseconds of each stage on the device, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stages {
    /// Names and times; a stage that was repeated is listed again.
    pub all: Vec<(&'static str, f64)>,
}

impl Stages {
    /// Returns the milliseconds of a stage; 0 if it was not needed.
    #[must_use]
    pub fn ms(&self, name: &str) -> f64 {
        self.all.iter().filter(|stage| stage.0 == name).map(|stage| stage.1).sum()
    }

    /// Returns the milliseconds of all stages.
    #[must_use]
    pub fn total_ms(&self) -> f64 {
        self.all.iter().map(|stage| stage.1).sum()
    }
}

/// An operator under way: the memory that queued work uses, and the marks around its stages.
///
/// Its buffers live until the stream has been waited for; dropping the job waits.
#[derive(Debug)]
pub struct Job<'s> {
    stream: &'s Stream,
    kept: Vec<DeviceBuffer>,
    marks: Vec<(&'static str, Event, Event)>,
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        // A lost device no longer uses the memory.
        let _ = self.stream.synchronize();
    }
}

impl<'s> Job<'s> {
    /// Creates a job without memory.
    #[must_use]
    pub fn new(stream: &'s Stream) -> Self {
        Self { stream, kept: Vec::new(), marks: Vec::new() }
    }

    /// Returns the stream of the job.
    #[must_use]
    pub fn stream(&self) -> &'s Stream {
        self.stream
    }

    /// Allocates memory with arbitrary content.
    ///
    /// # Errors
    /// As [`DeviceBuffer::new`].
    pub fn buffer(&mut self, bytes: u64) -> Result<DeviceBuffer, GpuError> {
        let buffer = DeviceBuffer::new(self.stream.gpu(), bytes)?;
        self.kept.push(buffer.clone());
        Ok(buffer)
    }

    /// Frees memory, except the buffers in `kept` and those that others hold; blocks.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn free_but(&mut self, kept: &[&DeviceBuffer]) -> Result<(), GpuError> {
        self.stream.synchronize()?;
        self.kept = kept.iter().map(|&buffer| buffer.clone()).collect();
        Ok(())
    }

    /// Queues work between two marks.
    ///
    /// # Errors
    /// The errors of `work`, and [`GpuError::Driver`] if a driver call fails.
    pub fn stage<T>(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<T, GpuError>,
    ) -> Result<T, GpuError> {
        let start = self.stream.mark()?;
        let made = work()?;
        self.marks.push((name, start, self.stream.mark()?));
        Ok(made)
    }

    /// Returns a number of 64 bits; blocks.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn number(&self, buffer: &DeviceBuffer, at: u64) -> Result<u64, GpuError> {
        let mut bytes = [0; 8];
        buffer.part(at * 8, 8).copy_to_host(self.stream, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Returns the times of all stages; blocks.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn end(self) -> Result<Stages, GpuError> {
        self.stream.synchronize()?;
        let time = |(name, start, end): &(&'static str, Event, Event)| {
            Ok((*name, f64::from(start.milliseconds_to(end)?)))
        };
        Ok(Stages { all: self.marks.iter().map(time).collect::<Result<_, GpuError>>()? })
    }
}
