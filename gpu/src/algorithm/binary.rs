//! Binary search of the sorted keys, one thread per query: words, which need no byte swap.
//!
//! It has no structure of its own, so that tests compare other searches with it, and benchmarks too.

use super::search::Search;
use crate::driver::LaunchShape;
use crate::kernel::{Batch, Columns, Instance, SourceSpec};
use crate::resident::{Resident, SortedColumns};
use crate::{GpuError, Stream};

crate::kernel! {
    /// Binary search of the sorted keys.
    BINARY = SourceSpec::new("binary.cu", include_str!("../kernels/binary.cu"));
    /// Binary search.
    binary(columns: Columns, batch: Batch);
}

/// Threads per block.
const THREADS: u32 = 256;

/// Sorted keys that are searched by halving.
#[derive(Debug)]
pub(crate) struct Binary {
    instance: Instance,
    columns: SortedColumns,
    blocks_max: u32,
}

impl Binary {
    /// Creates the search of a table's sorted keys.
    pub(crate) fn new(stream: &Stream, resident: &Resident) -> Result<Self, GpuError> {
        let instance = resident.instance(&BINARY, 0);
        let blocks_max = resident.gpu.blocks_at_once(instance, "binary", THREADS, 0)?;
        Ok(Self { instance, columns: resident.columns(stream)?, blocks_max })
    }
}

impl Search for Binary {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        let shape = LaunchShape::limited(self.blocks_max, THREADS, 0, batch.count);
        // SAFETY: the caller guarantees the batch and its buffers; `self` owns the columns.
        unsafe { binary(stream, self.instance, shape, &self.columns.arguments(), batch) }
    }

    fn bytes(&self) -> u64 {
        0
    }
}
