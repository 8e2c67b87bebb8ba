//! Samples of the order of a batch, and the searches that depend on them.

use super::search::Search;
use crate::kernel::Batch;
use crate::{GpuError, Stream};

/// Maximum number of descents in a sample of an ascending batch: few descents leave few tiles out of order.
pub(crate) const DESCENTS_MAX: u32 = 4;
/// Bytes that a sample writes: the number of descents, and of pairs examined.
pub(crate) const SAMPLE_BYTES: u64 = 8;

/// A search through the image for batches in any order.
pub(crate) trait AnyOrder: Search {
    /// Queues a search as [`Search::search`] does, for a batch that is not short, but answers nothing if the
    /// sample at address `order` has at most [`DESCENTS_MAX`] descents.
    ///
    /// # Safety
    /// As [`Search::search`]; the sample must stay alive until the work is done, too.
    unsafe fn search_unless(&self, stream: &Stream, batch: &Batch, order: u64) -> Result<(), GpuError>;
}
