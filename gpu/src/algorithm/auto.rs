//! The choice between Pleach's own algorithms; no batch waits for it.
//!
//! A batch with fewer queries than the table has lines goes through the image, because a sweep would read
//! lines that no query needs.
//!
//! For a longer batch the device samples the order of the queries. The search through the image and the sweep
//! are both queued, and each does nothing if the sample favors the other.

use super::order::AnyOrder;
use super::samples::Samples;
use super::search::Search;
use super::spine::Spine;
use super::sweep::Sweep;
use crate::kernel::Batch;
use crate::resident::Resident;
use crate::{GpuError, Stream};
use std::sync::Arc;

/// A table that is searched through its image, or by a sweep.
#[derive(Debug)]
pub(crate) struct Auto {
    any_order: Arc<dyn AnyOrder>,
    sweep: Sweep,
    samples: Samples,
}

impl Auto {
    /// Creates the choice for a table, from its image and the search through it.
    pub(crate) fn new(
        resident: &Resident,
        spine: &Spine,
        any_order: Arc<dyn AnyOrder>,
    ) -> Result<Self, GpuError> {
        let sweep = Sweep::new(resident, Arc::clone(spine.image()))?;
        Ok(Self { sweep, any_order, samples: Samples::new(resident)? })
    }
}

impl Search for Auto {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        if !self.samples.wants(batch.count) {
            // SAFETY: the caller guarantees the batch and its buffers, as `Search::search` requires.
            return unsafe { self.any_order.search(stream, batch) };
        }
        self.samples.with(stream, |sample| {
            let order = sample.address();
            // SAFETY: the caller guarantees the batch and its buffers. The place of the sample belongs to this
            // search until its work is done.
            unsafe {
                self.sweep
                    .sample(stream, batch, sample)
                    // This search may zero the presence bitmap, so it comes first.
                    .and_then(|()| self.any_order.search_unless(stream, batch, order))
                    .and_then(|()| self.sweep.search_if(stream, batch, order))
            }
        })
    }

    fn writes_bytes(&self, count: u64) -> bool {
        // A sweep always does.
        self.any_order.writes_bytes(count)
    }

    fn is_recordable(&self, count: u64) -> bool {
        !self.samples.wants(count) && self.any_order.is_recordable(count)
    }

    fn bytes(&self) -> u64 {
        self.any_order.bytes() + self.samples.bytes()
    }
}
