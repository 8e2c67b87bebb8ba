//! Batches that are recorded once and run again and again: a graph of the driver's, which takes less of the host's time
//! than queueing the same work anew.
//!
//! [`Recorded`] goes from buffers of the device to such. [`RecordedBatch`] is for a host that asks a few keys at a time
//! and waits: its kernel reads the keys from pinned memory and writes the answers there, so nothing is copied and one
//! call of the driver does all. Of more keys than [`DIRECT_MAX`] the copies are recorded, too.

use crate::driver::Handle;
use crate::memory::{DeviceBuffer, PinnedBuffer};
use crate::stream::Pending;
use crate::table::{Queued, as_bytes, as_mut_bytes};
use crate::{Algorithm, Answers, Gpu, GpuError, GpuTable, Stream};
use pleach::{Key, ReadError, Value};
use pleach_format::key::Bits;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Most keys that the kernel reads where the host put them: of more, many multiprocessors would ask over the link.
const DIRECT_MAX: usize = 128;

/// A batch between the same buffers each time.
#[derive(Clone, Debug)]
pub struct Recorded<'t> {
    inner: Arc<Graph>,
    // The lines may lie in the mapping that the table borrows.
    table: PhantomData<&'t ()>,
}

/// Recorded work, and what it uses.
struct Graph {
    gpu: Gpu,
    handle: Handle,
    queued: Queued,
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made by `Recorded::new`; what is pending holds it until its work is done.
        unsafe { self.gpu.driver().free_graph(self.handle) };
    }
}

impl Graph {
    /// Queues it.
    ///
    /// # Safety
    /// It is kept, or the stream waited for, until its work is done.
    unsafe fn launch(&self, stream: &Stream) -> Result<(), GpuError> {
        // SAFETY: the graph is alive; the rest is the contract.
        unsafe { self.gpu.driver().launch_graph(self.handle, stream.handle()) }
    }
}

impl Recorded<'_> {
    fn new(stream: &Stream, queue: impl FnOnce() -> Result<Queued, GpuError>) -> Result<Self, GpuError> {
        let gpu = stream.gpu().clone();
        // SAFETY: the stream is this call's own, and has no work.
        unsafe { gpu.driver().begin_capture(stream.handle()) }?;
        let queued = queue();
        // SAFETY: as above; it is recording.
        let handle = unsafe { gpu.driver().end_capture(stream.handle()) };
        let inner = Arc::new(Graph { queued: queued?, handle: handle?, gpu });
        Ok(Self { inner, table: PhantomData })
    }

    /// Queues it.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn run(&self, stream: &Stream) -> Result<Pending<()>, GpuError> {
        let graph = Arc::clone(&self.inner);
        // SAFETY: it and what it uses are kept by what is pending.
        unsafe { graph.launch(stream) }?;
        Pending::new(stream, graph.queued.kept.clone(), move || {
            drop(graph);
            Ok(())
        })
    }
}

impl GpuTable<'_> {
    /// Records a batch of a fixed number of queries between fixed buffers. Blocks.
    ///
    /// # Errors
    /// As [`GpuTable::search_on`]; [`GpuError::Algorithm`] for what cannot be recorded: `auto` where it would look at
    /// the order of the queries, strings, tuple lines that are streamed from the host.
    pub fn record(
        &self,
        algorithm: Algorithm,
        queries: &DeviceBuffer,
        count: u64,
        answers: Answers<'_>,
    ) -> Result<Recorded<'_>, GpuError> {
        self.check_recordable(algorithm, count)?;
        let stream = Stream::new(self.gpu())?;
        // Kernels are loaded by their first launch, which cannot be recorded.
        self.search_on(&stream, algorithm, queries, count, answers)?.wait()?;
        Recorded::new(&stream, || self.start(&stream, algorithm, queries, count, answers))
    }

    /// Records batches of `count` keys, for a host that asks them and waits. Blocks.
    ///
    /// # Errors
    /// As [`GpuTable::record`]; [`GpuError::Read`] for other types than the file's.
    pub fn record_batch<K: Key, V: Value>(
        &self,
        algorithm: Algorithm,
        count: usize,
    ) -> Result<RecordedBatch<'_, K, V>, GpuError> {
        self.index().typed::<K, V>()?;
        let gpu = self.gpu();
        let (values_bytes, present_bytes) = (values_bytes::<V>(count), count.div_ceil(64) * 8);
        let pinned = |bytes: usize| PinnedBuffer::new(gpu, bytes.max(1));
        let mut memory = [pinned(count * size_of::<K>())?, pinned(values_bytes + present_bytes)?];
        memory.iter_mut().for_each(|part| part.as_mut_bytes().fill(0));
        let is_direct = count <= DIRECT_MAX;
        let buffer = |part: &PinnedBuffer| {
            let bytes = part.as_bytes().len() as u64;
            if is_direct {
                // SAFETY: `RecordedBatch` owns the memory and, like this function, waits for the work that uses it.
                Ok(unsafe { DeviceBuffer::from_raw(gpu, part.address(), bytes) })
            } else {
                DeviceBuffer::new(gpu, bytes)
            }
        };
        let [queries, answers] = [buffer(&memory[0])?, buffer(&memory[1])?];
        let values = answers.part(0, values_bytes as u64);
        let present = answers.part(values_bytes as u64, present_bytes as u64);
        let asked = Answers { values: Some(&values), present: Some(&present), ..Answers::default() };
        let stream = Stream::new(gpu)?;
        self.check_recordable(algorithm, count as u64)?;
        // Kernels are loaded by their first launch, which cannot be recorded.
        if !is_direct {
            queries.fill(&stream, 0)?;
        }
        self.search_on(&stream, algorithm, &queries, count as u64, asked)?.wait()?;
        let (driver, handle) = (gpu.driver(), stream.handle());
        let recorded = Recorded::new(&stream, || {
            if is_direct {
                return self.start(&stream, algorithm, &queries, count as u64, asked);
            }
            let [to_device, from_device] = memory.each_ref().map(|part| (part.host(), part.as_bytes().len()));
            // SAFETY: both buffers have that size; `RecordedBatch` owns the memory and waits for the work that uses it.
            unsafe { driver.copy_in(handle, queries.address(), to_device.0, to_device.1) }?;
            let mut queued = self.start(&stream, algorithm, &queries, count as u64, asked)?;
            // SAFETY: as above.
            unsafe { driver.copy_out(handle, from_device.0, answers.address(), from_device.1) }?;
            queued.kept.extend([queries.clone(), answers.clone()]);
            Ok(queued)
        })?;
        Ok(RecordedBatch { recorded, stream, memory, count, types: PhantomData })
    }
}

/// Bytes before the bitmap, which is of whole words.
const fn values_bytes<V: Value>(count: usize) -> usize {
    (count * V::Bits::BYTES).next_multiple_of(8)
}

/// Batches of a fixed number of keys, from the host and back.
#[derive(Debug)]
pub struct RecordedBatch<'t, K, V> {
    recorded: Recorded<'t>,
    stream: Stream,
    /// Keys; values, then presence.
    memory: [PinnedBuffer; 2],
    count: usize,
    types: PhantomData<(K, V)>,
}

impl<K: Key, V: Value> RecordedBatch<'_, K, V> {
    /// Values of keys, and whether they are there, as [`pleach::Typed::get_batch`]; returns how many are. Blocks.
    ///
    /// # Errors
    /// [`GpuError::Read`] for another number of keys than was recorded, or buffers of another length;
    /// [`GpuError::Driver`].
    pub fn get(&mut self, keys: &[K], values: &mut [V], present: &mut [u64]) -> Result<usize, GpuError> {
        let count = self.count;
        let lengths = [
            ("keys", count, keys.len()),
            ("values", count, values.len()),
            ("present", count.div_ceil(64), present.len()),
        ];
        for (name, needed, found) in lengths {
            if needed != found {
                return Err(ReadError::Buffer { name, needed, found }.into());
            }
        }
        let [queries, answers] = &mut self.memory;
        let keys = as_bytes(keys);
        queries.as_mut_bytes()[..keys.len()].copy_from_slice(keys);
        // SAFETY: the stream is waited for below, before this returns.
        let launched = unsafe { self.recorded.inner.launch(&self.stream) };
        self.stream.synchronize()?;
        launched?;
        let values = as_mut_bytes(values);
        let bytes = values.len();
        let (found, bits) = answers.as_bytes().split_at(values_bytes::<V>(count));
        values.copy_from_slice(&found[..bytes]);
        let words = as_mut_bytes(present);
        let bytes = words.len();
        words.copy_from_slice(&bits[..bytes]);
        Ok(present.iter().map(|word| word.count_ones() as usize).sum())
    }
}
