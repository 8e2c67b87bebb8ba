//! The choice between Pleach's own algorithms; no batch waits for it.
//!
//! A batch with fewer queries than the table has lines goes through the image, because a sweep would read
//! lines that no query needs.
//!
//! For a longer batch the device samples the order of the queries. The search through the image and the sweep
//! are both queued, and each does nothing if the sample favors the other. Samples are kept in a few slots; a
//! slot is overwritten only after the searches that read it are done.

use super::order::{AnyOrder, SAMPLE_BYTES};
use super::search::Search;
use super::spine::Spine;
use super::sweep::Sweep;
use crate::kernel::Batch;
use crate::memory::DeviceBuffer;
use crate::resident::{Residence, Resident};
use crate::stream::Event;
use crate::{GpuError, Stream};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of samples in use at the same time.
const SLOTS: usize = 64;
/// Minimum number of queries worth a sample: for 2^22 ascending queries the sweep gains less than the sample
/// takes.
const QUERIES_MIN: u64 = 1 << 23;

/// Queries per line of the host that make a sweep worthwhile: between 16, where it takes twice as long as
/// streaming the lines, and 256, where it takes two thirds (H200).
const HOST_TURNS: u64 = 64;

/// A table that is searched through its image, or by a sweep.
#[derive(Debug)]
pub(crate) struct Auto {
    any_order: Arc<dyn AnyOrder>,
    sweep: Sweep,
    /// Minimum number of queries whose order is sampled.
    sampled_min: u64,
    samples: DeviceBuffer,
    slots: Mutex<(usize, [Option<Event>; SLOTS])>,
}

impl Auto {
    /// Creates the choice for a table, from its image and the search through it.
    pub(crate) fn new(
        resident: &Resident,
        spine: Arc<Spine>,
        any_order: Arc<dyn AnyOrder>,
    ) -> Result<Self, GpuError> {
        // Lines that stay with the host arrive faster in pieces than a sweep reads them.
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

    /// Returns true if the order of a batch of this length is sampled.
    fn is_sampled(&self, count: u64) -> bool {
        count >= self.sampled_min
    }
}

impl Search for Auto {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        if !self.is_sampled(batch.count) {
            // SAFETY: the caller guarantees the batch and its buffers, as `Search::search` requires.
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
        // SAFETY: the caller guarantees the batch and its buffers. The slot of the sample belongs to this
        // search until its mark is passed.
        let queued = unsafe {
            self.sweep
                .sample(stream, batch, &sample)
                // This search may zero the presence bitmap, so it comes first.
                .and_then(|()| self.any_order.search_unless(stream, batch, order))
                .and_then(|()| self.sweep.search_if(stream, batch, order))
        };
        slots.1[slot] = Some(stream.mark()?);
        queued
    }

    fn writes_bytes(&self, count: u64) -> bool {
        // A sweep always does.
        self.any_order.writes_bytes(count)
    }

    fn is_recordable(&self, count: u64) -> bool {
        !self.is_sampled(count) && self.any_order.is_recordable(count)
    }

    fn bytes(&self) -> u64 {
        self.any_order.bytes() + self.samples.bytes()
    }
}
