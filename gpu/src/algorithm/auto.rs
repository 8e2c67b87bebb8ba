//! The choice among our own algorithms, which no batch waits for.
//!
//! A batch that has fewer queries than the table has lines goes through the image: a sweep would read lines that nobody
//! asks for. Of a longer one the device samples the order, and the sweep and the search through the image are both
//! queued, each of which does nothing if the sample is for the other. A sample lies in one of a few slots, each of
//! which is written anew only when the searches that read it are done.

use super::Search;
use super::spine::Spine;
use super::sweep::{DESCENTS_MAX, SAMPLE_BYTES, Sweep};
use crate::kernel::table::Batch;
use crate::memory::DeviceBuffer;
use crate::resident::Resident;
use crate::stream::Event;
use crate::{GpuError, Stream};
use std::sync::{Arc, Mutex, PoisonError};

/// Samples that are in use at the same time.
const SLOTS: usize = 64;
/// Fewest queries that are worth a sample.
const QUERIES_MIN: u64 = 1 << 20;

/// A table that is searched through its image, or swept.
#[derive(Debug)]
pub(crate) struct Auto {
    spine: Arc<Spine>,
    sweep: Sweep,
    line_count: u64,
    samples: DeviceBuffer,
    slots: Mutex<(usize, [Option<Event>; SLOTS])>,
}

impl Auto {
    /// Takes a table and its image.
    pub(crate) fn new(resident: &Resident, spine: Arc<Spine>) -> Result<Self, GpuError> {
        Ok(Self {
            sweep: Sweep::new(resident, Arc::clone(&spine))?,
            spine,
            line_count: resident.line_count,
            samples: DeviceBuffer::new(&resident.gpu, SLOTS as u64 * SAMPLE_BYTES)?,
            slots: Mutex::new((0, [const { None }; SLOTS])),
        })
    }

    /// Whether the order of so many queries is looked at.
    fn is_sampled(&self, count: u64) -> bool {
        count >= QUERIES_MIN.max(self.line_count)
    }
}

impl Search for Auto {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        if !self.is_sampled(batch.count) {
            // SAFETY: the caller's promise.
            return unsafe { self.spine.search(stream, batch) };
        }
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.0;
        slots.0 = (slot + 1) % SLOTS;
        if let Some(last) = slots.1[slot].take() {
            stream.wait_for(&last)?;
        }
        let sample = self.samples.part(slot as u64 * SAMPLE_BYTES, SAMPLE_BYTES);
        let order = sample.address();
        // SAFETY: the caller's promise; the sample is this search's until its mark is passed.
        let queued = unsafe {
            self.sweep
                .sample(stream, batch, &sample)
                .and_then(|()| self.sweep.search_if(stream, batch, order))
                .and_then(|()| self.spine.search_unless(stream, batch, order, DESCENTS_MAX))
        };
        slots.1[slot] = Some(stream.mark()?);
        queued
    }

    fn is_recordable(&self, count: u64) -> bool {
        !self.is_sampled(count)
    }

    fn bytes(&self) -> u64 {
        self.spine.bytes() + self.samples.bytes()
    }
}
