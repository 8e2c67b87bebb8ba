//! The interface of a structure that a device searches.

use crate::kernel::Batch;
use crate::{GpuError, Stream};
use std::fmt;

/// A structure that is ready to be searched.
pub trait Search: fmt::Debug + Send + Sync {
    /// Queues the search of a batch of at least one query in a table of at least one tuple.
    ///
    /// # Safety
    /// Queries and answers must be arrays of the batch's lengths. They and the structure must stay alive
    /// until the work is done.
    ///
    /// # Errors
    /// [`GpuError::Algorithm`] if the batch cannot be searched, [`GpuError::Driver`] if a driver call fails.
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError>;

    /// Queues the search of a batch as [`Search::search`] does, but leaves the answers in the order in which
    /// the queries are sorted: answer i belongs to query `numbers[i]`, an array with one u32 per query.
    ///
    /// # Safety
    /// As [`Search::search`]; `numbers` must be the address of such an array that stays alive until the work
    /// is done.
    ///
    /// # Errors
    /// As [`Search::search`]; [`GpuError::Algorithm`] if it does not sort.
    unsafe fn search_sorted(&self, _: &Stream, _: &Batch, _numbers: u64) -> Result<(), GpuError> {
        Err(GpuError::Algorithm { algorithm: "this one", cause: "it does not sort its queries".to_owned() })
    }

    /// Returns the number of lanes per query for a batch of this length, where a model chooses it.
    fn lanes(&self, _queries: u64) -> Option<u32> {
        None
    }

    /// Returns true if the presence bitmap has to be zeroed before the search.
    fn wants_zeroed_present(&self) -> bool {
        false
    }

    /// Returns true if a search of this many queries can write presence as bytes.
    fn writes_bytes(&self, _count: u64) -> bool {
        false
    }

    /// Returns true if a search of this many queries may be recorded: it queues the same work each time, on
    /// one stream, and shares no buffer with other searches.
    fn is_recordable(&self, _count: u64) -> bool {
        true
    }

    /// Returns the bytes of device memory of the structure.
    fn bytes(&self) -> u64;
}
