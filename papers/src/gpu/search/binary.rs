//! Binary search of the sorted keys, one thread per query, in the forms of the slides on searching with GPUs.
//!
//! One form keeps the upper levels of the search in shared memory, as many as pay for a batch of that length.
//!
//! Three forms search strings of 16 characters in place. For them the keys are turned into such strings once,
//! and the queries of each batch before its search, so that these forms answer the same batches as all other
//! algorithms. All streams share the memory for converted queries: a batch waits on the device until the
//! previous one has been searched, and a batch longer than all before it waits on the host.

use super::BinaryForm;
use pleach_gpu::internal::{
    Batch, Columns, External, Instance, LaunchShape, Resident, Search, SortedColumns, SourceSpec,
    blocks_at_once, shared_bytes_max,
};
use pleach_gpu::{DeviceBuffer, Event, GpuError, Stream};
use std::sync::{Arc, Mutex, PoisonError};

pleach_gpu::kernel! {
    /// Binary search in the forms of the slides.
    SLIDES = SourceSpec {
        numbers: |_| vec![
            ("BYTES_OF_TOP_COLUMNS", size_of::<TopColumns>() as u64),
            ("BYTES_OF_SWAP", size_of::<Swap>() as u64),
        ],
        ..SourceSpec::new("slides.cu", include_str!("../kernels/slides.cu"))
    };
    /// Binary search with its upper levels in shared memory.
    binary_top(table: TopColumns, batch: Batch);
    /// Binary search of strings, byte by byte.
    binary_bytes(columns: Columns, batch: Batch) if |instance| instance.word_bytes == 16;
    /// Binary search of strings, as words whose bytes are swapped.
    binary_swap(columns: Columns, batch: Batch) if |instance| instance.word_bytes == 16;
    /// Binary search of strings, through shared memory.
    binary_cached(columns: Columns, batch: Batch) if |instance| instance.word_bytes == 16;
    /// Converts words to strings, and back.
    swap_keys(swap: Swap) if |instance| instance.word_bytes == 16;
}

/// Sorted keys, and the number of search levels kept in shared memory; the same as in slides.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TopColumns {
    columns: Columns,
    levels: u64,
}

/// Words to be converted to strings; the same as in slides.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Swap {
    from: u64,
    to: u64,
    count: u64,
}

/// Threads per block.
const THREADS: u32 = 256;
/// Threads of a block that shares a top.
const TOP_THREADS: u32 = 1024;
/// Bytes per string.
const STRING_BYTES: u64 = 16;

/// Creates the search of a table's sorted keys in a form.
pub(super) fn make(stream: &Stream, resident: &Resident, of: External) -> Result<Arc<dyn Search>, GpuError> {
    Ok(match BinaryForm::STRINGS.into_iter().find(|form| form.name() == of.form) {
        None => Arc::new(Top::new(stream, resident)?),
        Some(form) => Arc::new(Strings::new(stream, resident, form, of.name)?),
    })
}

/// Sorted keys that are searched by halving, with the top of the search in shared memory.
#[derive(Debug)]
struct Top {
    instance: Instance,
    columns: SortedColumns,
    blocks_max: u32,
    /// Number of levels that fit into shared memory, at most all levels.
    levels_max: u32,
}

impl Top {
    fn new(stream: &Stream, resident: &Resident) -> Result<Self, GpuError> {
        let (gpu, word_bytes) = (&resident.gpu, u32::from(resident.word_bytes));
        let instance = resident.instance(&SLIDES, 0);
        // Two blocks share a multiprocessor; levels beyond the last would probe nothing.
        let words_max = (shared_bytes_max(gpu) / 2 / word_bytes).max(1);
        let levels_max = words_max.ilog2().min(u64::BITS - (resident.tuples - 1).leading_zeros());
        let blocks_max = blocks_at_once(gpu, instance, "binary_top", TOP_THREADS, word_bytes << levels_max)?;
        Ok(Self { instance, columns: resident.columns(stream)?, blocks_max, levels_max })
    }

    /// Returns the number of levels that pay: a block loads at most four words per query for them, so that
    /// the top saves more loads than it costs.
    fn levels(&self, queries_a_block: u64) -> u32 {
        (4 * queries_a_block).ilog2().min(self.levels_max)
    }
}

impl Search for Top {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        let mut shape = LaunchShape::limited(self.blocks_max, TOP_THREADS, 0, batch.count);
        let levels = self.levels(batch.count.div_ceil(shape.blocks.into()));
        shape.shared_bytes = u32::from(self.instance.word_bytes) << levels;
        let table = TopColumns { columns: self.columns.arguments(), levels: levels.into() };
        // SAFETY: the caller guarantees the batch and its buffers; `self` owns the columns, and the shared
        // memory holds the levels.
        unsafe { binary_top(stream, self.instance, shape, &table, batch) }
    }

    fn bytes(&self) -> u64 {
        0
    }
}

/// Keys as strings, and room for a batch of queries.
#[derive(Debug)]
struct Strings {
    form: BinaryForm,
    instance: Instance,
    columns: SortedColumns,
    keys: DeviceBuffer,
    blocks_max: u32,
    swap_blocks_max: u32,
    queries: Mutex<Option<Queries>>,
}

/// Converted queries, and the end of their last search.
#[derive(Debug)]
struct Queries {
    buffer: DeviceBuffer,
    searched: Option<Event>,
}

impl Strings {
    /// Converts the keys to strings. Waits for the device.
    fn new(
        stream: &Stream,
        resident: &Resident,
        form: BinaryForm,
        algorithm: &'static str,
    ) -> Result<Self, GpuError> {
        if resident.word_bytes != 16 {
            let cause =
                format!("this form searches strings of 16 bytes, not words of {}", resident.word_bytes);
            return Err(GpuError::Algorithm { algorithm, cause });
        }
        let instance = resident.instance(&SLIDES, 0);
        let entry = match form {
            BinaryForm::Bytes => "binary_bytes",
            BinaryForm::Swap => "binary_swap",
            BinaryForm::Top | BinaryForm::Cached => "binary_cached",
        };
        let blocks_max = blocks_at_once(&resident.gpu, instance, entry, THREADS, Self::shared_bytes(form))?;
        let columns = resident.columns(stream)?;
        let keys = resident.buffer(resident.tuples.saturating_mul(STRING_BYTES))?;
        let (from, to) = (columns.keys.address(), keys.address());
        let swap_blocks_max = blocks_at_once(&resident.gpu, instance, "swap_keys", THREADS, 0)?;
        let shape = LaunchShape::limited(swap_blocks_max, THREADS, 0, resident.tuples);
        // SAFETY: both buffers hold a word per tuple, and live until the stream has been waited for.
        let queued =
            unsafe { swap_keys(stream, instance, shape, &Swap { from, to, count: resident.tuples }) };
        stream.synchronize()?;
        queued?;
        Ok(Self { form, instance, columns, keys, blocks_max, swap_blocks_max, queries: Mutex::default() })
    }

    /// Returns the shared memory per block: the query and the probed string of each thread.
    fn shared_bytes(form: BinaryForm) -> u32 {
        if form == BinaryForm::Cached { 2 * STRING_BYTES as u32 * THREADS } else { 0 }
    }

    /// Returns room for a batch of `count` queries, which work queued on `stream` may use from now on.
    fn room<'q>(
        stream: &Stream,
        room: &'q mut Option<Queries>,
        count: u64,
    ) -> Result<&'q mut Queries, GpuError> {
        let bytes = count * STRING_BYTES;
        let searched = room.as_ref().and_then(|queries| queries.searched.as_ref());
        if room.as_ref().is_some_and(|queries| queries.buffer.bytes() >= bytes) {
            searched.map_or(Ok(()), |searched| stream.wait_for(searched))?;
        } else {
            searched.map_or(Ok(()), Event::wait)?;
            *room = Some(Queries { buffer: DeviceBuffer::new(stream.gpu(), bytes)?, searched: None });
        }
        room.as_mut().map_or_else(|| unreachable!("made above"), Ok)
    }
}

impl Search for Strings {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        let mut room = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        let queries = Self::room(stream, &mut room, batch.count)?;
        let turned = queries.buffer.address();
        let columns = Columns { keys: self.keys.address(), ..self.columns.arguments() };
        let strings = Batch { queries: turned, ..*batch };
        let shared_bytes = Self::shared_bytes(self.form);
        let shape = LaunchShape::limited(self.blocks_max, THREADS, shared_bytes, batch.count);
        let (instance, columns) = (self.instance, &columns);
        let swap_shape = LaunchShape::limited(self.swap_blocks_max, THREADS, 0, batch.count);
        let swap = Swap { from: batch.queries, to: turned, count: batch.count };
        // SAFETY: the caller guarantees queries and answers. The room holds as many queries, and the previous
        // search has left it. Keys and queries are strings that `self` owns, and the launch has shared memory
        // for each thread.
        let queued = unsafe {
            swap_keys(stream, instance, swap_shape, &swap).and_then(|()| match self.form {
                BinaryForm::Bytes => binary_bytes(stream, instance, shape, columns, &strings),
                BinaryForm::Swap => binary_swap(stream, instance, shape, columns, &strings),
                BinaryForm::Top | BinaryForm::Cached => {
                    binary_cached(stream, instance, shape, columns, &strings)
                }
            })
        };
        queries.searched = Some(stream.mark()?);
        queued
    }

    fn is_recordable(&self, _count: u64) -> bool {
        false
    }

    fn bytes(&self) -> u64 {
        let queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        self.keys.bytes() + queries.as_ref().map_or(0, |queries| queries.buffer.bytes())
    }
}
