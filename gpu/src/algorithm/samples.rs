//! Places for samples of the order of batches, and the batches that are sampled.
//!
//! A place is overwritten only after the searches that read it are done.

use super::order::SAMPLE_BYTES;
use crate::memory::DeviceBuffer;
use crate::resident::{Residence, Resident};
use crate::stream::Event;
use crate::{GpuError, Stream};
use std::sync::{Mutex, PoisonError};

/// Maximum number of samples in use at the same time.
const SLOTS: usize = 64;
/// Minimum number of queries worth a sample: for 2^22 ascending queries the sweep gains less than the sample
/// takes.
const QUERIES_MIN: u64 = 1 << 23;
/// Queries per line of the host that make a sweep worthwhile: between 16, where it takes twice as long as
/// streaming the lines, and 256, where it takes two thirds (H200).
const HOST_TURNS: u64 = 64;

/// Places for samples.
#[derive(Debug)]
pub(crate) struct Samples {
    /// Minimum number of queries whose order is sampled.
    queries_min: u64,
    samples: DeviceBuffer,
    slots: Mutex<(usize, [Option<Event>; SLOTS])>,
}

impl Samples {
    /// Makes places for the batches of a table.
    pub(crate) fn new(resident: &Resident) -> Result<Self, GpuError> {
        // Lines that stay with the host arrive faster in pieces than a sweep reads them.
        let lines = match resident.residence {
            Residence::Hybrid => resident.line_count.saturating_mul(HOST_TURNS),
            _ => resident.line_count,
        };
        Ok(Self {
            queries_min: resident.gpu.options().sampled_min.unwrap_or(QUERIES_MIN.max(lines)),
            samples: DeviceBuffer::new(&resident.gpu, SLOTS as u64 * SAMPLE_BYTES)?,
            slots: Mutex::new((0, [const { None }; SLOTS])),
        })
    }

    /// Returns true if the order of a batch of this length is sampled.
    pub(crate) fn wants(&self, count: u64) -> bool {
        count >= self.queries_min
    }

    /// Queues work that uses a place of its own.
    pub(crate) fn with(
        &self,
        stream: &Stream,
        queue: impl FnOnce(&DeviceBuffer) -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.0;
        slots.0 = (slot + 1) % SLOTS;
        if let Some(last) = slots.1[slot].take() {
            stream.wait_for(&last)?;
        }
        let queued = queue(&self.samples.part(slot as u64 * SAMPLE_BYTES, SAMPLE_BYTES));
        slots.1[slot] = Some(stream.mark()?);
        queued
    }

    /// Returns the number of bytes of the places.
    pub(crate) fn bytes(&self) -> u64 {
        self.samples.bytes()
    }
}
