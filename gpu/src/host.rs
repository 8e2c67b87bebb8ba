//! Batches whose queries come from the host and whose answers go there.
//!
//! A large batch is cut into chunks, which several slots take in turn. Each slot has a stream and buffers of
//! its own, so one chunk's queries are copied to the device while another is searched and a third one's
//! answers are copied back; both directions of the link are busy.
//!
//! From pinned memory chunks are copied directly. Ordinary slices are copied through pinned buffers of the
//! slots: each core has chunks and two slots of its own, which it fills and empties, so that cores never wait
//! for each other.
//!
//! A small batch is not copied at all: the kernel reads the queries from pinned host memory and writes the
//! answers there, which saves the latency of two copies.

use crate::algorithm::Algorithm;
use crate::algorithm::near::{NearArguments, NearSearch};
use crate::algorithm::search::Search;
use crate::kernel::Batch;
use crate::memory::{DeviceBuffer, PinnedBuffer};
use crate::stream::Event;
use crate::{Gpu, GpuError, Stream};
use rayon::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// Queries per chunk of a pinned batch, a multiple of 64.
pub(crate) const CHUNK: usize = 1 << 21;
/// Number of slots that take its chunks in turn: one is filled, one is searched, one is emptied.
const SLOTS: usize = 4;
/// Bytes of queries per chunk of slices. Smaller chunks cost more calls, larger ones do not stay in caches.
const STAGED_BYTES: usize = 2 << 20;
/// Minimum number of queries per chunk of slices, if the batch has enough: fewer are not worth the calls.
const STAGED_MIN: usize = 1 << 17;
/// Slots per core, and maximum number of cores that take part.
const CORE_SLOTS: usize = 2;
const CORES_MAX: usize = 16;
/// Maximum number of queries that the kernel reads from host memory.
pub(crate) const SMALL_MAX: usize = 1 << 14;

/// Maximum bytes of a query, and of an answer: a rank, a key and a value.
const WORD_BYTES_MAX: usize = 16;
const ANSWER_BYTES_MAX: usize = 8 + WORD_BYTES_MAX + 8;

/// Kind of answer requested for each query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Values of this number of bytes, and presence.
    Values(usize),
    /// Ranks of 8 bytes.
    Ranks,
    /// Parts of a tuple, and presence.
    Tuples(Parts),
}

/// Parts of tuples that are requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) ranks: bool,
    pub(crate) keys: bool,
    /// Bytes of a value; 0 if it is not requested.
    pub(crate) value_bytes: usize,
}

/// A search for a kind of answers.
pub(crate) enum Searched<'a> {
    /// For values, presence or ranks.
    Get(&'a dyn Search),
    /// For tuples near queries, or for floors of intervals that hold their queries.
    Near { search: &'a NearSearch, algorithm: Algorithm, is_interval: bool },
}

impl Searched<'_> {
    /// Queues a batch; keys of tuples go to address `keys`.
    ///
    /// # Safety
    /// As [`Search::search`], and as [`NearSearch::search`] for the keys.
    unsafe fn queue(&self, stream: &Stream, batch: &Batch, keys: u64) -> Result<(), GpuError> {
        // SAFETY: the caller guarantees the batch, its buffers and the keys.
        unsafe {
            match *self {
                Self::Get(search) => search.search(stream, batch),
                Self::Near { search, algorithm, is_interval } => {
                    let near = NearArguments { keys, is_interval: is_interval.into(), unused: 0 };
                    search.search(stream, algorithm, batch, &near)
                }
            }
        }
    }

    fn wants_zeroed_present(&self) -> bool {
        match self {
            Self::Get(search) => search.wants_zeroed_present(),
            Self::Near { .. } => false,
        }
    }
}

/// Properties common to all chunks of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) word_bytes: usize,
    pub(crate) kind: u16,
    pub(crate) asked: Asked,
}

impl Form {
    /// Returns the bytes per answer of each array of answers: values or ranks; or ranks, keys and values.
    fn each(self) -> [usize; 3] {
        match self.asked {
            Asked::Values(bytes) => [bytes, 0, 0],
            Asked::Ranks => [8, 0, 0],
            Asked::Tuples(Parts { ranks, keys, value_bytes }) => {
                [if ranks { 8 } else { 0 }, if keys { self.word_bytes } else { 0 }, value_bytes]
            }
        }
    }

    /// Returns the bytes per answer, without presence.
    fn bytes(self) -> usize {
        self.each().iter().sum()
    }

    /// Returns where the arrays of `count` answers begin: those of long elements first, so that all are aligned.
    fn starts(self, count: usize) -> [usize; 3] {
        let each = self.each();
        std::array::from_fn(|array| {
            let is_before =
                |other: usize| each[other] > each[array] || (each[other] == each[array] && other < array);
            (0..3).filter(|&other| is_before(other)).map(|other| each[other] * count).sum()
        })
    }

    /// Returns the batch with these addresses, and the address of the keys of tuples.
    fn batch(self, queries: u64, count: usize, answers: u64, present: u64) -> (Batch, u64) {
        let (each, starts) = (self.each(), self.starts(count));
        let at = |array: usize| if each[array] == 0 { 0 } else { answers + starts[array] as u64 };
        let (values, value_bytes, ranks, keys) = match self.asked {
            Asked::Values(bytes) => (at(0), bytes as u16, 0, 0),
            Asked::Ranks => (0, 0, at(0), 0),
            Asked::Tuples(parts) => (at(2), parts.value_bytes as u16, at(0), at(1)),
        };
        let present = if self.asked == Asked::Ranks { 0 } else { present };
        let (count, kind) = (count as u64, self.kind);
        let (present_bytes, rank_bytes) = (0, 8);
        let batch =
            Batch { queries, count, values, present, ranks, kind, present_bytes, rank_bytes, value_bytes };
        (batch, keys)
    }

    /// Copies the arrays of answers out of the memory where a chunk's lie together.
    fn split(self, count: usize, from: &[u8], answers: &mut [&mut [u8]; 3]) {
        for ((to, start), bytes) in answers.iter_mut().zip(self.starts(count)).zip(self.each()) {
            to.copy_from_slice(&from[start..start + count * bytes]);
        }
    }
}

/// Returns the bytes of a presence bitmap, in whole words of 64 bits.
pub(crate) fn bitmap_bytes(count: usize) -> usize {
    count.div_ceil(64) * 8
}

/// A stream with device memory for a chunk.
#[derive(Debug)]
struct Slot {
    stream: Stream,
    queries: DeviceBuffer,
    answers: DeviceBuffer,
    present: DeviceBuffer,
    staged: Option<Staged>,
}

/// Pinned memory of a slot.
#[derive(Debug)]
struct Staged {
    queries: PinnedBuffer,
    /// Answers of a chunk, followed by its presence bitmap.
    answers: PinnedBuffer,
    present_at: usize,
    /// Mark after which a chunk's answers have been copied.
    arrived: Event,
}

impl Slot {
    fn new(gpu: &Gpu, form: Form, chunk: usize, is_staged: bool) -> Result<Self, GpuError> {
        let sizes = [chunk * form.word_bytes, chunk * form.bytes(), bitmap_bytes(chunk)];
        let staged = if is_staged {
            Some(Staged {
                queries: PinnedBuffer::new(gpu, sizes[0])?,
                answers: PinnedBuffer::new(gpu, sizes[1] + sizes[2])?,
                present_at: sizes[1],
                arrived: Event::new(gpu, false)?,
            })
        } else {
            None
        };
        let both = DeviceBuffer::new(gpu, (sizes[1] + sizes[2]) as u64)?;
        Ok(Self {
            stream: Stream::new(gpu)?,
            queries: DeviceBuffer::new(gpu, sizes[0] as u64)?,
            answers: both.part(0, sizes[1] as u64),
            present: both.part(sizes[1] as u64, sizes[2] as u64),
            staged,
        })
    }

    /// Queues a chunk: copies from `queries`, searches, copies to `answers` and `present`.
    ///
    /// # Safety
    /// The addresses must be of memory of the chunk's size; it and `search` must live until the stream was
    /// waited for.
    unsafe fn queue(
        &self,
        search: &Searched<'_>,
        form: Form,
        count: usize,
        [queries, answers, present]: [*mut u8; 3],
    ) -> Result<(), GpuError> {
        let (driver, stream) = (self.stream.gpu().driver(), self.stream.handle());
        let (batch, keys) =
            form.batch(self.queries.address(), count, self.answers.address(), self.present.address());
        // SAFETY: the slot was allocated for a whole chunk; the caller guarantees the memory at `queries`,
        // `answers` and `present`.
        unsafe {
            driver.copy_in(stream, self.queries.address(), queries, count * form.word_bytes)?;
            if batch.present != 0 && (search.wants_zeroed_present() || !count.is_multiple_of(64)) {
                driver.fill(stream, batch.present, 0, bitmap_bytes(count))?;
            }
            search.queue(&self.stream, &batch, keys)?;
            let bytes = [count * form.bytes(), if batch.present == 0 { 0 } else { bitmap_bytes(count) }];
            let at_once =
                bytes[0] as u64 == self.answers.bytes() && answers.wrapping_add(bytes[0]) == present;
            if at_once && bytes[1] > 0 {
                driver.copy_out(stream, answers, self.answers.address(), bytes[0] + bytes[1])?;
                return Ok(());
            }
            if bytes[0] > 0 {
                driver.copy_out(stream, answers, self.answers.address(), bytes[0])?;
            }
            if bytes[1] > 0 {
                driver.copy_out(stream, present, self.present.address(), bytes[1])?;
            }
        }
        Ok(())
    }
}

/// The slots of a table, made at their first use and kept for batches of the same form.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// Bytes per answer of these slots.
    answer_bytes: usize,
    /// Queries per chunk of these slots.
    chunk: usize,
    slots: Vec<Slot>,
    small: Option<(Stream, PinnedBuffer)>,
}

impl Slots {
    /// Returns slots for batches of `count` queries, and the number of queries per chunk.
    fn of(&mut self, gpu: &Gpu, form: Form, count: usize) -> Result<(&mut [Slot], usize), GpuError> {
        let cores = rayon::current_num_threads().min(CORES_MAX);
        let share = count.div_ceil(cores).clamp(STAGED_MIN.min(count), STAGED_BYTES / form.word_bytes);
        let chunk = share.next_power_of_two();
        let chunks = count.div_ceil(chunk);
        let slots = chunks.min(cores) * CORE_SLOTS;
        if self.answer_bytes != form.bytes() || self.chunk < chunk || self.slots.len() < slots {
            self.slots.clear();
            for _ in 0..slots {
                self.slots.push(Slot::new(gpu, form, chunk, true)?);
            }
            (self.answer_bytes, self.chunk) = (form.bytes(), chunk);
        }
        Ok((&mut self.slots, chunk))
    }

    /// Searches a batch of ordinary slices, given as bytes; blocks until the answers are there.
    pub(crate) fn search(
        &mut self,
        gpu: &Gpu,
        search: &Searched<'_>,
        form: Form,
        queries: &[u8],
        answers: [&mut [u8]; 3],
        present: &mut [u8],
    ) -> Result<(), GpuError> {
        let count = queries.len() / form.word_bytes;
        if count <= SMALL_MAX {
            return self.search_small(gpu, search, form, queries, answers, present);
        }
        let (slots, chunk) = self.of(gpu, form, count)?;
        let chunks = Chunk::all(form, chunk, queries, answers, present);
        let result = on_cores(slots, search, form, chunks);
        if result.is_err() {
            // No copy may be under way when the next batch takes the slots.
            for slot in slots.iter_mut() {
                let _ = slot.stream.synchronize();
                slot.staged = None;
            }
            self.slots.clear();
        }
        result
    }

    /// Searches a batch that the device reads and writes in pinned memory.
    fn search_small(
        &mut self,
        gpu: &Gpu,
        search: &Searched<'_>,
        form: Form,
        queries: &[u8],
        answers: [&mut [u8]; 3],
        present: &mut [u8],
    ) -> Result<(), GpuError> {
        let answers_at = SMALL_MAX * WORD_BYTES_MAX;
        let present_at = answers_at + SMALL_MAX * ANSWER_BYTES_MAX;
        if self.small.is_none() {
            let bytes = present_at + bitmap_bytes(SMALL_MAX);
            self.small = Some((Stream::new(gpu)?, PinnedBuffer::new(gpu, bytes)?));
        }
        let Some((stream, pinned)) = &mut self.small else { return Ok(()) };
        let count = queries.len() / form.word_bytes;
        let address = pinned.address();
        let (batch, keys) =
            form.batch(address, count, address + answers_at as u64, address + present_at as u64);
        let bytes = pinned.as_mut_bytes();
        bytes[..queries.len()].copy_from_slice(queries);
        bytes[present_at..present_at + bitmap_bytes(count)].fill(0);
        // SAFETY: the pinned memory holds a small batch of any form, and lives until the stream was waited
        // for.
        let queued = unsafe { search.queue(stream, &batch, keys) };
        stream.synchronize()?;
        queued?;
        let bytes = pinned.as_bytes();
        let mut answers = answers;
        form.split(count, &bytes[answers_at..present_at], &mut answers);
        present.copy_from_slice(&bytes[present_at..present_at + present.len()]);
        Ok(())
    }
}

/// Queries of a chunk, and the places of its answers, as bytes.
struct Chunk<'a> {
    queries: &'a [u8],
    answers: [&'a mut [u8]; 3],
    present: &'a mut [u8],
}

impl<'a> Chunk<'a> {
    /// Splits a batch into chunks of that many queries.
    fn all(
        form: Form,
        chunk: usize,
        queries: &'a [u8],
        mut answers: [&'a mut [u8]; 3],
        mut present: &'a mut [u8],
    ) -> Vec<Self> {
        let make = |queries: &'a [u8]| {
            let count = queries.len() / form.word_bytes;
            let bits = bitmap_bytes(count).min(present.len());
            Self {
                queries,
                answers: std::array::from_fn(|array| {
                    answers[array].split_off_mut(..count * form.each()[array]).unwrap_or_default()
                }),
                present: present.split_off_mut(..bits).unwrap_or_default(),
            }
        };
        queries.chunks(chunk * form.word_bytes).map(make).collect()
    }
}

/// Searches chunks through staged slots, [`CORE_SLOTS`] for each of several cores, which work in parallel.
fn on_cores(
    slots: &mut [Slot],
    search: &Searched<'_>,
    form: Form,
    chunks: Vec<Chunk<'_>>,
) -> Result<(), GpuError> {
    let cores = slots.len() / CORE_SLOTS;
    let mut shares: Vec<Vec<Chunk<'_>>> = (0..cores).map(|_| Vec::new()).collect();
    for (at, chunk) in chunks.into_iter().enumerate() {
        shares[at % cores].push(chunk);
    }
    slots
        .par_chunks_mut(CORE_SLOTS)
        .zip(shares)
        .with_max_len(1)
        .map(|(slots, share)| in_turn(slots, search, form, share))
        .reduce(|| Ok(()), Result::and)
}

/// Searches chunks through a core's slots in turn.
fn in_turn(
    slots: &mut [Slot],
    search: &Searched<'_>,
    form: Form,
    chunks: Vec<Chunk<'_>>,
) -> Result<(), GpuError> {
    let mut before: Vec<Option<Chunk<'_>>> = slots.iter().map(|_| None).collect();
    let ends = std::iter::repeat_with(|| None).take(slots.len());
    for (turn, next) in chunks.into_iter().map(Some).chain(ends).enumerate() {
        let at = turn % slots.len();
        let slot = &mut slots[at];
        let Some(staged) = &mut slot.staged else { continue };
        if let Some(mut chunk) = before[at].take() {
            staged.arrived.wait()?;
            let (answers, present) = staged.answers.as_bytes().split_at(staged.present_at);
            form.split(chunk.queries.len() / form.word_bytes, answers, &mut chunk.answers);
            chunk.present.copy_from_slice(&present[..chunk.present.len()]);
        }
        let Some(chunk) = next else { continue };
        let count = chunk.queries.len() / form.word_bytes;
        staged.queries.as_mut_bytes()[..chunk.queries.len()].copy_from_slice(chunk.queries);
        let answers = staged.answers.host();
        let places = [staged.queries.host(), answers, answers.wrapping_add(staged.present_at)];
        // SAFETY: the staged buffers hold a chunk; they are used again only after `arrived`, or an error's
        // handler, has waited.
        unsafe { slot.queue(search, form, count, places) }?;
        if let Some(staged) = &slot.staged {
            staged.arrived.record(&slot.stream)?;
        }
        before[at] = Some(chunk);
    }
    Ok(())
}

/// Queries and answers in pinned memory, for [`crate::GpuTable::get_pinned`].
#[derive(Debug)]
pub struct PinnedBatch {
    /// Keys, as an array of the file's key type.
    pub keys: PinnedBuffer,
    /// Number of keys.
    pub count: usize,
    /// Room for the values.
    pub values: PinnedBuffer,
    /// Room for the presence bitmap, in whole words of 64 bits.
    pub present: PinnedBuffer,
}

/// Slots for pinned batches that no batch uses now.
pub(crate) type Pool = Arc<Mutex<Vec<PinnedSlots>>>;

/// Slots of a pinned batch.
#[derive(Debug)]
pub(crate) struct PinnedSlots {
    form: Form,
    slots: Vec<Slot>,
}

impl PinnedSlots {
    /// Takes slots for batches of a form out of a pool, or makes them.
    pub(crate) fn take(pool: &Pool, gpu: &Gpu, form: Form) -> Result<Self, GpuError> {
        let mut free = pool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = free.iter().position(|slots| slots.form == form) {
            return Ok(free.swap_remove(at));
        }
        // Slots of another form would only occupy memory.
        free.clear();
        let slots = (0..SLOTS).map(|_| Slot::new(gpu, form, CHUNK, false)).collect::<Result<_, _>>()?;
        Ok(Self { form, slots })
    }

    /// Returns the slots to the pool.
    pub(crate) fn put(self, pool: &Pool) {
        pool.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }

    /// Queues a batch, its chunks in the slots in turn, so that work queued on `last` later waits for all of
    /// it.
    ///
    /// # Safety
    /// The buffers must hold the batch; they, `search` and `self` must live until `last` was waited for, also
    /// after an error.
    pub(crate) unsafe fn queue(
        &self,
        last: &Stream,
        search: &Searched<'_>,
        batch: &PinnedBatch,
    ) -> Result<(), GpuError> {
        let form = self.form;
        let queue = |chunk: usize| {
            let first = chunk * CHUNK;
            let count = CHUNK.min(batch.count - first);
            let places = [
                batch.keys.host().wrapping_add(first * form.word_bytes),
                batch.values.host().wrapping_add(first * form.bytes()),
                batch.present.host().wrapping_add(first / 8),
            ];
            // SAFETY: the caller guarantees that the buffers hold the batch, and the places are inside it.
            unsafe { self.slots[chunk % SLOTS].queue(search, form, count, places) }
        };
        let queued = (0..batch.count.div_ceil(CHUNK)).try_for_each(queue);
        for slot in &self.slots {
            last.wait_for(&slot.stream.mark()?)?;
        }
        queued
    }
}
