//! All values of each key of a batch: count, scan, fill.
//!
//! The ranks of the lower bounds give the start of each key's tuples. The device counts the tuples and scans
//! the counts to offsets. The host gets the sum, allocates, and the device fills in the values. Keys may be
//! in any order: the results follow the order of the query keys, and tuples with equal keys follow the order
//! in the file.

use crate::algorithm::Algorithm;
use crate::kernel::{Batch, SourceSpec};
use crate::memory::DeviceBuffer;
use crate::resident::{Resident, grid};
use crate::table::{Answers, as_bytes, as_mut_bytes};
use crate::{GpuError, GpuTable};
use pleach::{Key, Value};
use pleach_format::key::Bits;

/// Threads per block.
const THREADS: u32 = 256;
/// Counts per tile that a block scans; the same as in all.cu.
const TILE: u64 = 2048;

crate::kernel! {
    /// All values of each key.
    ALL = SourceSpec {
        has_value_width: true,
        numbers: |_| vec![("BYTES_OF_ALL", size_of::<All>() as u64)],
        ..SourceSpec::new("all.cu", include_str!("kernels/all.cu"))
    };
    /// Counts the tuples of each query's key.
    all_count(all: All, batch: Batch);
    /// Scans tiles of counts.
    all_tiles(all: All, count: u64);
    /// Scans the tiles' sums.
    all_sums(all: All, count: u64);
    /// Adds the sum of the counts before each tile.
    all_add(all: All, count: u64);
    /// Fills in the values.
    all_fill(all: All, count: u64);
}

/// Arguments of the kernels; the same as in all.cu.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct All {
    pub(crate) lines: u64,
    pub(crate) tuples: u64,
    pub(crate) ranks: u64,
    pub(crate) offsets: u64,
    pub(crate) sums: u64,
    pub(crate) values: u64,
    pub(crate) total: u64,
}

/// All tuples of each key of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct AllTuples<V> {
    /// Rank of each key's first tuple, or of the first tuple with a greater key.
    pub ranks: Vec<u64>,
    /// Start of each key's values; one more than keys, so that key `i` has `offsets[i]..offsets[i + 1]`, the
    /// tuples from `ranks[i]` on.
    pub offsets: Vec<u64>,
    /// Values of all keys, one key after the other.
    pub values: Vec<V>,
}

impl GpuTable<'_> {
    /// Returns all values of each key. O(keys + values), in addition to the search; blocks.
    ///
    /// # Errors
    /// As [`GpuTable::get_batch_by`]; [`GpuError::Memory`] if the device has no room for the values.
    pub fn get_all_by<K: Key, V: Value>(
        &self,
        algorithm: Algorithm,
        keys: &[K],
    ) -> Result<AllTuples<V>, GpuError> {
        self.index().typed::<K, V>()?;
        let count = keys.len();
        let mut all = AllTuples { ranks: vec![0; count], offsets: vec![0; count + 1], values: Vec::new() };
        let Some(resident) = self.resident().filter(|_| count > 0) else { return Ok(all) };
        let (gpu, stream) = (self.gpu(), self.stream());
        let queries = DeviceBuffer::from_host(stream, as_bytes(keys))?;
        let ranks = DeviceBuffer::new(gpu, count as u64 * 8)?;
        let offsets = DeviceBuffer::new(gpu, count as u64 * 8 + 8)?;
        let sums = DeviceBuffer::new(gpu, (count as u64).div_ceil(TILE) * 8)?;
        let asked = Answers { ranks: Some(&ranks), rank_bytes: 8, ..Answers::default() };
        self.search_on(stream, algorithm, &queries, count as u64, asked)?.wait()?;

        let batch = Batch {
            queries: queries.address(),
            count: count as u64,
            kind: self.kind(),
            rank_bytes: 8,
            ..Batch::default()
        };
        let mut arguments = All {
            lines: resident.lines.address(),
            tuples: resident.tuples,
            ranks: ranks.address(),
            offsets: offsets.address(),
            sums: sums.address(),
            ..All::default()
        };
        // SAFETY: the buffers hold a rank and an offset per query and one more, and a sum per tile; all live
        // until the stream was waited for.
        let counted = unsafe { self.scan(resident, &arguments, &batch) };
        stream.synchronize()?;
        counted?;
        offsets.copy_to_host(stream, as_mut_bytes(&mut all.offsets))?;
        ranks.copy_to_host(stream, as_mut_bytes(&mut all.ranks))?;
        // In a damaged file a count may be any number up to the number of tuples.
        let total = all.offsets[count];
        if V::Bits::BYTES > 0 && total > 0 {
            let bytes = total.saturating_mul(V::Bits::BYTES as u64);
            let left = gpu.left_bytes()?;
            if bytes > left {
                return Err(GpuError::Memory { needed: bytes, free: left });
            }
            let values = DeviceBuffer::new(gpu, bytes)?;
            (arguments.values, arguments.total) = (values.address(), total);
            let instance = resident.instance(&ALL, 0);
            let shape = grid(gpu, instance, "all_fill", THREADS, 0, total)?;
            // SAFETY: the buffers are those of the scan, and one with room for as many values as the sum; all
            // live until the stream was waited for.
            let filled = unsafe { all_fill(stream, instance, shape, &arguments, &batch.count) };
            stream.synchronize()?;
            filled?;
            all.values = vec![V::default(); total as usize];
            values.copy_to_host(stream, as_mut_bytes(&mut all.values))?;
        }
        Ok(all)
    }

    /// Queues counting and scanning.
    ///
    /// # Safety
    /// The arrays must be as `arguments` describe them, and live until the work is done.
    unsafe fn scan(&self, resident: &Resident, arguments: &All, batch: &Batch) -> Result<(), GpuError> {
        let (gpu, stream) = (self.gpu(), self.stream());
        let instance = resident.instance(&ALL, 0);
        let count = batch.count;
        let shape = |entry, items| grid(gpu, instance, entry, THREADS, 0, items);
        let tiles = count.div_ceil(TILE);
        // SAFETY: the caller guarantees the arrays.
        unsafe {
            all_count(stream, instance, shape("all_count", count)?, arguments, batch)?;
            all_tiles(stream, instance, shape("all_tiles", tiles * u64::from(THREADS))?, arguments, &count)?;
            all_sums(stream, instance, shape("all_sums", 1)?, arguments, &count)?;
            all_add(stream, instance, shape("all_add", count)?, arguments, &count)
        }
    }
}
