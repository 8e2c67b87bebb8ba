//! Search of ascending queries: a merge of the batch with the tuple lines.
//!
//! It is one launch, with a block per *tile* of consecutive queries. A tile has as many queries as span about
//! one chunk of lines if they are evenly spread; a block has one chunk in shared memory. A short batch has
//! shorter tiles, so that all of the device works on it.
//!
//! The kernel answers any batch: it searches a tile that is out of order, or has few queries among many
//! lines, through the device image of the spine.
//!
//! The device can sample whether a batch ascends, and the search can depend on the result, so that the choice
//! does not wait for the host. Order decides speed, never answers.

use super::arguments::{self, IMAGE_TEXT};
use super::imaged::Imaged;
use super::order::{DESCENTS_MAX, SAMPLE_BYTES};
use super::search::Search;
use crate::driver::LaunchShape;
use crate::kernel::{Batch, Instance, SourceSpec, Text};
use crate::memory::DeviceBuffer;
use crate::resident::Resident;
use crate::{GpuError, Stream};
use std::sync::Arc;

/// Threads per block.
pub(crate) const THREADS: u16 = 256;
/// Threads of the one block that samples.
const SAMPLE_THREADS: u32 = 1024;
/// Number of rows of 32 queries that are sampled.
const SAMPLE_ROWS: u32 = 256;
/// Bytes per tuple line.
const LINE_BYTES: u32 = 64;
/// Lines per chunk. Five blocks with such a chunk fit on a multiprocessor with 228 KiB. If keys and values
/// have columns of equal size, those of a line are in different halves of the banks.
const CHUNK_LINES: u32 = 574;
/// Number of lines that a tile of evenly spread queries spans: few tiles are so uneven that they span another
/// chunk.
const TILE_LINES: u64 = 512;
/// Minimum and maximum rows of a warp in a tile, if the batch is not short.
const ROWS_MIN: u64 = 4;
const ROWS_MAX: u64 = 32;
/// Tiles for each block that runs at a time, so that the last of them do not work alone for long.
const TURNS: u64 = 4;
/// Maximum number of lines per query of a tile that is streamed. A single query costs about as much as two
/// lines.
const LINES_A_QUERY: u32 = 1;

/// Text that the kernels share which merge; [`NUMBERS`] belong to it.
pub(crate) const SWEEP_TEXT: Text = Text { name: "sweep.cuh", text: include_str!("../kernels/sweep.cuh") };

/// Definitions of that text, and of the image's.
pub(crate) const NUMBERS: [(&str, u64); 2] = [
    ("BYTES_OF_SPINE", size_of::<arguments::Arguments>() as u64),
    ("BYTES_OF_SWEEP", size_of::<Arguments>() as u64),
];

crate::kernel! {
    /// Ascending queries merged with the tuple lines.
    SWEEP = SourceSpec {
        shared: &[IMAGE_TEXT, SWEEP_TEXT],
        option_name: Some("THREADS"),
        options: &[THREADS],
        has_value_width: true,
        numbers: |_| NUMBERS.to_vec(),
        ..SourceSpec::new("sweep.cu", include_str!("../kernels/sweep.cu"))
    };
    /// Merges ascending queries with the lines.
    sweep(table: Arguments, batch: Batch);
    /// Samples whether queries ascend.
    sample_order(batch: Batch, places: u32, found: u64);
}

/// Arguments of the kernel; the same as Sweep in sweep.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Arguments {
    pub(crate) image: arguments::Arguments,
    /// Address of a sample; 0 if the search does not depend on one.
    pub(crate) order: u64,
    pub(crate) rows: u32,
    pub(crate) chunk_lines: u32,
    pub(crate) stream_lines: u32,
    pub(crate) descents_max: u32,
}

/// A table whose lines are merged with ascending queries.
#[derive(Debug)]
pub(crate) struct Sweep {
    instance: Instance,
    tiles: Tiles,
}

/// Tiles of batches for a table.
#[derive(Debug)]
pub(crate) struct Tiles {
    image: Arc<Imaged>,
    line_count: u64,
    blocks_max: u32,
}

impl Tiles {
    /// Creates the tiles for a kernel that answers them, and an image of the table.
    pub(crate) fn new(
        resident: &Resident,
        image: Arc<Imaged>,
        instance: Instance,
        entry: &'static str,
    ) -> Result<Self, GpuError> {
        let (threads, shared_bytes) = (THREADS.into(), Self::shared_bytes());
        let blocks_max = resident.gpu.blocks_at_once(instance, entry, threads, shared_bytes)?;
        Ok(Self { image, line_count: resident.line_count, blocks_max })
    }

    /// Returns the shared memory per block: a chunk, or a line per thread.
    fn shared_bytes() -> u32 {
        CHUNK_LINES.max(THREADS.into()) * LINE_BYTES
    }

    /// Returns the launch of a batch, and its arguments, with the address of a sample or 0.
    pub(crate) fn launch(&self, queries: u64, order: u64) -> (LaunchShape, Arguments) {
        let rows = rows(queries, self.line_count, self.blocks_max);
        let tile = rows * u32::from(THREADS);
        let arguments = Arguments {
            image: self.image.even,
            order,
            rows,
            chunk_lines: CHUNK_LINES,
            stream_lines: tile * LINES_A_QUERY,
            descents_max: DESCENTS_MAX,
        };
        let shape = LaunchShape {
            blocks: u32::try_from(queries.div_ceil(tile.into())).unwrap_or(u32::MAX),
            threads: THREADS.into(),
            shared_bytes: Self::shared_bytes(),
        };
        (shape, arguments)
    }
}

/// Returns the number of rows of 32 queries that a warp has in a tile.
fn rows(queries: u64, lines: u64, blocks_max: u32) -> u32 {
    let threads = u64::from(THREADS);
    let even = queries.saturating_mul(TILE_LINES) / lines / threads;
    let fair = queries / (threads * u64::from(blocks_max) * TURNS);
    even.clamp(ROWS_MIN, ROWS_MAX).min(fair).max(1) as u32
}

impl Sweep {
    /// Creates the sweep of a table, with its image.
    pub(crate) fn new(resident: &Resident, image: Arc<Imaged>) -> Result<Self, GpuError> {
        let instance = resident.instance(&SWEEP, THREADS);
        Ok(Self { instance, tiles: Tiles::new(resident, image, instance, "sweep")? })
    }

    /// Queues sampling the order of a batch, which writes 8 bytes to `found`, for [`Sweep::search_if`].
    ///
    /// # Safety
    /// The queries of the batch, and `found`, must stay alive until the work is done.
    pub(crate) unsafe fn sample(
        &self,
        stream: &Stream,
        batch: &Batch,
        found: &DeviceBuffer,
    ) -> Result<(), GpuError> {
        // SAFETY: the caller guarantees queries and `found`.
        unsafe { sample(stream, self.instance, batch, found) }
    }

    /// Queues a search as [`Search::search`] does, but does nothing if a sample at address `order`, unless
    /// that is 0, has more than [`DESCENTS_MAX`] descents.
    ///
    /// # Safety
    /// As [`Search::search`]; the sample must stay alive until the work is done, too.
    pub(crate) unsafe fn search_if(
        &self,
        stream: &Stream,
        batch: &Batch,
        order: u64,
    ) -> Result<(), GpuError> {
        let (shape, arguments) = self.tiles.launch(batch.count, order);
        // SAFETY: the caller guarantees the batch, its buffers and the sample; the tiles own
        // lines and image, and shared memory holds a chunk.
        unsafe { sweep(stream, self.instance, shape, &arguments, batch) }
    }
}

/// Queues sampling the order of a batch as [`Sweep::sample`] does, by an instance of [`SWEEP`].
///
/// # Safety
/// The queries of the batch, and `found`, must stay alive until the work is done.
pub(crate) unsafe fn sample(
    stream: &Stream,
    instance: Instance,
    batch: &Batch,
    found: &DeviceBuffer,
) -> Result<(), GpuError> {
    found.holds("order", SAMPLE_BYTES)?;
    let shape = LaunchShape { blocks: 1, threads: SAMPLE_THREADS, shared_bytes: 0 };
    // SAFETY: the caller guarantees queries and `found`, which has room for both numbers.
    unsafe { sample_order(stream, instance, shape, batch, &SAMPLE_ROWS, &found.address()) }
}

impl Search for Sweep {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        // SAFETY: the caller guarantees the batch and its buffers, as `Search::search` requires; there is no
        // sample.
        unsafe { self.search_if(stream, batch, 0) }
    }

    /// Returns 0: the spine has the same image.
    fn bytes(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_span_a_chunk_and_short_batches_use_the_whole_device() {
        // 2^26 queries: lines of 4, 8 and 16 tuples, one query per tuple.
        assert_eq!(rows(1 << 26, 1 << 24, 660), 8);
        assert_eq!(rows(1 << 26, 1 << 23, 660), 16);
        assert_eq!(rows(1 << 26, 1 << 22, 660), 32);
        // Many more queries than tuples, and many fewer.
        assert_eq!(rows(1 << 26, 1, 660), 32);
        assert_eq!(rows(1 << 22, 1 << 24, 660), 4);
        // Short batches.
        assert_eq!(rows(1 << 20, 1 << 24, 660), 1);
        assert_eq!(rows(1, 1, 1), 1);
        assert_eq!(rows(1 << 20, 1 << 10, 1), 32);
        // No product overflows.
        assert_eq!(rows(u64::MAX, 1 << 32, u32::MAX), 32);
    }

    #[test]
    fn a_tile_is_whole_words_of_the_bitmap() {
        assert_eq!(THREADS % 32, 0);
        assert!(u64::from(CHUNK_LINES) > TILE_LINES && Tiles::shared_bytes() <= 48 << 10);
    }
}
