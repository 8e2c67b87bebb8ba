//! Binary search of the sorted keys, one thread per query.
//!
//! Pleach's form searches words, which need no byte swap. Its twin keeps the upper levels of the search in
//! shared memory, as many as pay for a batch of that length.
//!
//! The three forms of the slides on searching with GPUs search strings of 16 characters in place. For them
//! the keys are turned into such strings once, and the queries of each batch before its search, so that these
//! forms answer the same batches as all other algorithms.
//!
//! All streams share the memory for converted queries: a batch waits on the device until the previous one has
//! been searched, and a batch longer than all before it waits on the host.

use super::{Algorithm, BinaryForm, Search};
use crate::driver::LaunchShape;
use crate::kernel::Instance;
use crate::kernel::table::{
    Batch, Columns, Source, binary, binary_bytes, binary_cached, binary_swap, binary_top, swap_keys,
};
use crate::memory::DeviceBuffer;
use crate::resident::{Resident, SortedColumns};
use crate::stream::Event;
use crate::{GpuError, Stream};
use std::sync::{Mutex, PoisonError};

/// Sorted keys, and the number of search levels kept in shared memory; the same as in binary.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TopColumns {
    pub(crate) columns: Columns,
    pub(crate) levels: u64,
}

/// Words to be converted to strings; the same as in binary.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Swap {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) count: u64,
}

/// Threads per block.
const THREADS: u32 = 256;
/// Threads of a block that shares a top.
const TOP_THREADS: u32 = 1024;
/// Bytes per string.
const STRING_BYTES: u64 = 16;

/// Sorted keys that are searched by halving.
#[derive(Debug)]
pub(crate) struct Binary {
    form: BinaryForm,
    instance: Instance,
    columns: SortedColumns,
    blocks_max: u32,
    /// For [`BinaryForm::Top`]: the number of levels that fit into shared memory, at most all levels.
    levels_max: u32,
    /// For the forms that search strings.
    strings: Option<Strings>,
}

/// Keys as strings, and room for a batch of queries.
#[derive(Debug)]
struct Strings {
    keys: DeviceBuffer,
    swap_blocks_max: u32,
    queries: Mutex<Option<Queries>>,
}

/// Converted queries, and the end of their last search.
#[derive(Debug)]
struct Queries {
    buffer: DeviceBuffer,
    searched: Event,
}

impl Binary {
    /// Creates the search of a table's sorted keys.
    pub(crate) fn new(stream: &Stream, resident: &Resident, form: BinaryForm) -> Result<Self, GpuError> {
        let gpu = &resident.gpu;
        let (word_bytes, tuples) = (u32::from(resident.word_bytes), resident.tuples);
        let instance = resident.instance(Source::Binary, 0);
        let (entry, threads) = match form {
            BinaryForm::Plain => ("binary", THREADS),
            BinaryForm::Top => ("binary_top", TOP_THREADS),
            BinaryForm::Bytes => ("binary_bytes", THREADS),
            BinaryForm::Swap => ("binary_swap", THREADS),
            BinaryForm::Cached => ("binary_cached", THREADS),
        };
        let are_strings = matches!(form, BinaryForm::Bytes | BinaryForm::Swap | BinaryForm::Cached);
        if are_strings && word_bytes != 16 {
            let cause = format!("this form searches strings of 16 bytes, not words of {word_bytes}");
            return Err(Algorithm::Binary(form).refused(cause));
        }
        // Two blocks share a multiprocessor; levels beyond the last would probe nothing.
        let words_max = (gpu.limits().shared_bytes_max / 2 / word_bytes).max(1);
        let levels_max = words_max.ilog2().min(u64::BITS - (tuples - 1).leading_zeros());
        let shared_bytes = match form {
            BinaryForm::Top => word_bytes << levels_max,
            _ => Self::shared_bytes(form),
        };
        let blocks_max = gpu.blocks_at_once(instance, entry, threads, shared_bytes)?;
        let columns = resident.columns(stream)?;
        let strings = are_strings.then(|| Strings::new(stream, resident, instance, &columns)).transpose()?;
        Ok(Self { form, instance, columns, blocks_max, levels_max, strings })
    }

    /// Returns the shared memory per block, without a top.
    fn shared_bytes(form: BinaryForm) -> u32 {
        // The query and the probed string of each thread.
        if form == BinaryForm::Cached { 2 * STRING_BYTES as u32 * THREADS } else { 0 }
    }

    /// Returns the number of levels that pay: a block loads at most four words per query for them, so that
    /// the top saves more loads than it costs.
    fn levels(&self, queries_a_block: u64) -> u32 {
        (4 * queries_a_block).ilog2().min(self.levels_max)
    }

    /// Queues a search with the top of the tree in shared memory.
    unsafe fn search_top(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        let mut shape = shape(self.blocks_max, TOP_THREADS, 0, batch.count);
        let levels = self.levels(batch.count.div_ceil(shape.blocks.into()));
        shape.shared_bytes = u32::from(self.instance.word_bytes) << levels;
        let table = TopColumns { columns: self.columns.arguments(), levels: levels.into() };
        // SAFETY: the caller guarantees the batch and its buffers; `self` owns the columns, and the shared
        // memory holds the levels.
        unsafe { binary_top(stream, self.instance, shape, &table, batch) }
    }
}

/// Returns a launch with a thread for each of `threads_needed`, limited to the blocks that run at a time.
pub(super) fn shape(blocks_max: u32, threads: u32, shared_bytes: u32, threads_needed: u64) -> LaunchShape {
    let blocks = threads_needed.div_ceil(threads.into()).clamp(1, blocks_max.into());
    LaunchShape { blocks: u32::try_from(blocks).unwrap_or(blocks_max), threads, shared_bytes }
}

impl Strings {
    /// Converts the keys to strings. Waits for the device.
    fn new(
        stream: &Stream,
        resident: &Resident,
        instance: Instance,
        columns: &SortedColumns,
    ) -> Result<Self, GpuError> {
        let swap_blocks_max = resident.gpu.blocks_at_once(instance, "swap_keys", THREADS, 0)?;
        let keys = resident.buffer(resident.tuples.saturating_mul(STRING_BYTES))?;
        let strings = Self { keys, swap_blocks_max, queries: Mutex::default() };
        let (from, to) = (columns.keys.address(), strings.keys.address());
        // SAFETY: both buffers hold a word per tuple, and live until the stream has been waited for.
        unsafe { strings.turn(stream, instance, from, to, resident.tuples) }?;
        stream.synchronize()?;
        Ok(strings)
    }

    /// Queues the conversion of words to strings.
    ///
    /// # Safety
    /// Both arrays must have `count` words, and stay alive until the work is done.
    unsafe fn turn(
        &self,
        stream: &Stream,
        instance: Instance,
        from: u64,
        to: u64,
        count: u64,
    ) -> Result<(), GpuError> {
        let shape = shape(self.swap_blocks_max, THREADS, 0, count);
        // SAFETY: the caller guarantees both arrays.
        unsafe { swap_keys(stream, instance, shape, &Swap { from, to, count }) }
    }

    /// Returns room for a batch of `count` queries, which work queued on `stream` may use from now on.
    fn room<'q>(stream: &Stream, room: &'q mut Option<Queries>, count: u64) -> Result<&'q Queries, GpuError> {
        let bytes = count * STRING_BYTES;
        match room {
            Some(queries) if queries.buffer.bytes() >= bytes => stream.wait_for(&queries.searched)?,
            _ => {
                if let Some(queries) = room.take() {
                    queries.searched.wait()?;
                }
                let buffer = DeviceBuffer::new(stream.gpu(), bytes)?;
                *room = Some(Queries { buffer, searched: Event::new(stream.gpu(), false)? });
            }
        }
        room.as_ref().map_or_else(|| unreachable!("made above"), Ok)
    }
}

impl Search for Binary {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        let Some(strings) = &self.strings else {
            if self.form == BinaryForm::Top {
                // SAFETY: the caller guarantees the batch and its buffers, as `Search::search` requires.
                return unsafe { self.search_top(stream, batch) };
            }
            let shape = shape(self.blocks_max, THREADS, 0, batch.count);
            // SAFETY: the caller guarantees the batch and its buffers; `self` owns the columns.
            return unsafe { binary(stream, self.instance, shape, &self.columns.arguments(), batch) };
        };
        let mut room = strings.queries.lock().unwrap_or_else(PoisonError::into_inner);
        let queries = Strings::room(stream, &mut room, batch.count)?;
        let turned = queries.buffer.address();
        // SAFETY: the caller guarantees the queries; the room holds as many, and the previous search has left
        // it.
        unsafe { strings.turn(stream, self.instance, batch.queries, turned, batch.count) }?;
        let (batch, columns) = (
            Batch { queries: turned, ..*batch },
            Columns { keys: strings.keys.address(), ..self.columns.arguments() },
        );
        let (batch, columns) = (&batch, &columns);
        let shape = shape(self.blocks_max, THREADS, Self::shared_bytes(self.form), batch.count);
        // SAFETY: the caller guarantees the answers; keys and queries are strings that `self` owns, and the
        // launch has shared memory for each thread.
        unsafe {
            match self.form {
                BinaryForm::Bytes => binary_bytes(stream, self.instance, shape, columns, batch),
                BinaryForm::Swap => binary_swap(stream, self.instance, shape, columns, batch),
                _ => binary_cached(stream, self.instance, shape, columns, batch),
            }
        }?;
        queries.searched.record(stream)
    }

    fn is_recordable(&self, _count: u64) -> bool {
        self.strings.is_none()
    }

    fn bytes(&self) -> u64 {
        let Some(strings) = &self.strings else { return 0 };
        let queries = strings.queries.lock().unwrap_or_else(PoisonError::into_inner);
        strings.keys.bytes() + queries.as_ref().map_or(0, |queries| queries.buffer.bytes())
    }
}
