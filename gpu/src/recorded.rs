//! Batches that are recorded once and run many times: a graph of the driver, which takes less of the host's
//! time than queueing the same work again.
//!
//! [`Recorded`] runs between device buffers. [`RecordedBatch`] is for a host that looks up a few keys at a
//! time and waits: its kernel reads the keys from pinned memory and writes the answers there, so nothing is
//! copied and one driver call does everything.

use crate::driver::Handle;
use crate::memory::{DeviceBuffer, PinnedBuffer};
use crate::pending::Pending;
use crate::table::{Presence, Queued, as_bytes, as_mut_bytes, first_of};
use crate::{Algorithm, Answers, Gpu, GpuError, GpuTable, Stream};
use pleach::{Key, ReadError, Value};
use pleach_format::key::Bits;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A batch between the same buffers each time.
#[derive(Clone, Debug)]
pub struct Recorded<'t> {
    inner: Arc<Graph>,
    // The lines may be in the mapping that the table borrows.
    table: PhantomData<&'t ()>,
}

/// Recorded work, and the resources that it uses.
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
        // SAFETY: `Recorded::new` made the graph; pending work holds it until that work is done.
        unsafe { self.gpu.driver().free_graph(self.handle) };
    }
}

impl Graph {
    /// Queues the recorded work.
    ///
    /// # Safety
    /// The graph must be kept, or the stream waited for, until the work is done.
    unsafe fn launch(&self, stream: &Stream) -> Result<(), GpuError> {
        // SAFETY: `self` keeps the graph; the caller guarantees to keep it until the work is done.
        unsafe { self.gpu.driver().launch_graph(self.handle, stream.handle()) }
    }
}

impl Recorded<'_> {
    fn new(stream: &Stream, queue: impl FnOnce() -> Result<Queued, GpuError>) -> Result<Self, GpuError> {
        let gpu = stream.gpu().clone();
        // SAFETY: the stream belongs to this call, and has no work.
        unsafe { gpu.driver().begin_capture(stream.handle()) }?;
        let queued = queue();
        // SAFETY: the stream belongs to this call, and is recording.
        let handle = unsafe { gpu.driver().end_capture(stream.handle()) };
        let inner = Arc::new(Graph { queued: queued?, handle: handle?, gpu });
        Ok(Self { inner, table: PhantomData })
    }

    /// Queues the recorded batch.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn run(&self, stream: &Stream) -> Result<Pending<()>, GpuError> {
        let graph = Arc::clone(&self.inner);
        // SAFETY: the returned `Pending` keeps the graph and the resources that it uses.
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
    /// As [`GpuTable::search_on`]; [`GpuError::Algorithm`] for batches that cannot be recorded: `auto` where
    /// it would sample the order of the queries, strings, tuple lines that are streamed from the host.
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
        Recorded::new(&stream, || {
            self.start(&stream, algorithm, queries, count, (answers, Presence::Bits), None)
        })
    }

    /// Records batches of `count` keys, for a host that searches them and waits. Blocks.
    ///
    /// # Errors
    /// As [`GpuTable::record`]; [`GpuError::Asked`] if the types are not the file's.
    pub fn record_batch<K: Key, V: Value>(
        &self,
        algorithm: Algorithm,
        count: usize,
    ) -> Result<RecordedBatch<'_, K, V>, GpuError> {
        self.index().typed::<K, V>()?;
        let gpu = self.gpu();
        let ends = ends::<K, V>(count);
        let mut memory = PinnedBuffer::new(gpu, ends[2].max(1))?;
        memory.as_mut_bytes().fill(0);
        // SAFETY: `RecordedBatch` owns the memory and, like this function, waits for the work that uses it.
        let all = unsafe { DeviceBuffer::from_raw(gpu, memory.address(), ends[2] as u64) };
        let part = |from: usize, to: usize| all.part(from as u64, (to - from) as u64);
        let (queries, values, present) = (part(0, ends[0]), part(ends[0], ends[1]), part(ends[1], ends[2]));
        let answers = Answers { values: Some(&values), present: Some(&present), ..Answers::default() };
        let recorded = self.record(algorithm, &queries, count as u64, answers)?;
        let stream = Stream::new(gpu)?;
        Ok(RecordedBatch { recorded, stream, memory, count, types: PhantomData })
    }
}

/// Returns the ends of keys, values and presence, each in host cache lines of its own.
fn ends<K: Key, V: Value>(count: usize) -> [usize; 3] {
    let values_at = (count * size_of::<K>()).next_multiple_of(64);
    let present_at = values_at + (count * V::Bits::BYTES).next_multiple_of(64);
    [values_at, present_at, present_at + count.div_ceil(64) * 8]
}

/// Recorded look-ups of a fixed number of keys, from the host and back.
#[derive(Debug)]
pub struct RecordedBatch<'t, K, V> {
    recorded: Recorded<'t>,
    stream: Stream,
    /// Keys, values and presence: together, so that the device translates one address.
    memory: PinnedBuffer,
    count: usize,
    types: PhantomData<(K, V)>,
}

impl<K: Key, V: Value> RecordedBatch<'_, K, V> {
    /// Looks up the values of keys and their presence, as [`pleach::Typed::get_batch`] does. Returns the
    /// number of keys that are present. Blocks.
    ///
    /// # Errors
    /// [`GpuError::Read`] if the number of keys is not the recorded one, or a buffer is too short;
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn get(&mut self, keys: &[K], values: &mut [V], present: &mut [u64]) -> Result<usize, GpuError> {
        let (count, found) = (self.count, keys.len());
        if found != count {
            return Err(ReadError::Buffer { name: "keys", needed: count, found }.into());
        }
        let values = first_of("values", count, values)?;
        let present = first_of("present", count.div_ceil(64), present)?;
        let keys = as_bytes(keys);
        self.memory.as_mut_bytes()[..keys.len()].copy_from_slice(keys);
        // SAFETY: the stream is waited for below, before this returns.
        let launched = unsafe { self.recorded.inner.launch(&self.stream) };
        self.stream.synchronize()?;
        launched?;
        let values = as_mut_bytes(values);
        let bytes = values.len();
        let [values_at, present_at, _] = ends::<K, V>(count);
        let memory = self.memory.as_bytes();
        values.copy_from_slice(&memory[values_at..values_at + bytes]);
        let words = as_mut_bytes(present);
        let bytes = words.len();
        words.copy_from_slice(&memory[present_at..present_at + bytes]);
        Ok(present.iter().map(|word| word.count_ones() as usize).sum())
    }
}
