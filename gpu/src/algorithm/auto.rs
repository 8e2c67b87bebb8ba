//! The choice among our own algorithms, which no batch waits for.
//!
//! A batch that has fewer queries than the table has lines goes through the image: a sweep would read lines that nobody
//! asks for. Of a longer one the device samples the order, and the search through the image and the sweep are both
//! queued, each of which does nothing if the sample is for the other. A sample lies in one of a few slots, each of
//! which is written anew only when the searches that read it are done.

use super::Search;
use super::spine::Spine;
use super::sweep::{SAMPLE_BYTES, Sweep};
use crate::kernel::table::Batch;
use crate::memory::DeviceBuffer;
use crate::resident::{Residence, Resident};
use crate::stream::Event;
use crate::{GpuError, Stream};
use std::sync::{Arc, Mutex, PoisonError};

/// Samples that are in use at the same time.
const SLOTS: usize = 64;
/// Fewest queries that are worth a sample: of 2^22 that ascend the sweep gains less than the sample takes.
const QUERIES_MIN: u64 = 1 << 23;

/// Queries for each line of the host that pay for a sweep: between 16, where it takes twice as long as streaming the
/// lines, and 256, where it takes two thirds (H200).
const HOST_TURNS: u64 = 64;

/// A search through the image of batches in any order.
pub(crate) trait AnyOrder: Search {
    /// As [`Search::search`] of a batch that is not short, but nothing is answered if a sample at address `order` has
    /// at most [`super::sweep::DESCENTS_MAX`] descents.
    ///
    /// # Safety
    /// As [`Search::search`]; the sample is alive until the work is done, too.
    unsafe fn search_unless(&self, stream: &Stream, batch: &Batch, order: u64) -> Result<(), GpuError>;
}

/// A table that is searched through its image, or swept.
#[derive(Debug)]
pub(crate) struct Auto {
    any_order: Arc<dyn AnyOrder>,
    sweep: Sweep,
    /// Fewest queries of which the order is sampled.
    sampled_min: u64,
    samples: DeviceBuffer,
    slots: Mutex<(usize, [Option<Event>; SLOTS])>,
}

impl Auto {
    /// Takes a table, its image, and the search through that.
    pub(crate) fn new(
        resident: &Resident,
        spine: Arc<Spine>,
        any_order: Arc<dyn AnyOrder>,
    ) -> Result<Self, GpuError> {
        // Lines that stay with the host come faster in pieces than as a sweep reads them.
        let lines = match resident.residence {
            Residence::Hybrid => resident.line_count.saturating_mul(HOST_TURNS),
            _ => resident.line_count,
        };
        Ok(Self {
            sweep: Sweep::new(resident, spine)?,
            any_order,
            sampled_min: resident.gpu.options().sampled_min.unwrap_or(QUERIES_MIN.max(lines)),
            samples: DeviceBuffer::new(&resident.gpu, SLOTS as u64 * SAMPLE_BYTES)?,
            slots: Mutex::new((0, [const { None }; SLOTS])),
        })
    }

    /// Whether the order of so many queries is looked at.
    fn is_sampled(&self, count: u64) -> bool {
        count >= self.sampled_min
    }
}

impl Search for Auto {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        if !self.is_sampled(batch.count) {
            // SAFETY: the caller's promise.
            return unsafe { self.any_order.search(stream, batch) };
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
                // This one may zero the bitmap, so it comes first.
                .and_then(|()| self.any_order.search_unless(stream, batch, order))
                .and_then(|()| self.sweep.search_if(stream, batch, order))
        };
        slots.1[slot] = Some(stream.mark()?);
        queued
    }

    fn is_recordable(&self, count: u64) -> bool {
        !self.is_sampled(count) && self.any_order.is_recordable(count)
    }

    fn bytes(&self) -> u64 {
        self.any_order.bytes() + self.samples.bytes()
    }
}
