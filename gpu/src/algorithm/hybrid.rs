//! Search of tuple lines that stay in page-locked memory of the host, below an image on the device.
//!
//! There are two ways. Each query reads its line over the link: right for few queries, and for many where the
//! link serves random reads well.
//!
//! Or the lines are *streamed*. The descent writes down the line of each query and marks the pieces that are
//! touched. Then lines are copied to the device part by part, touched pieces only and in order, and after
//! each part the queries whose lines are in it are answered. A query whose line turns out to be after the
//! part waits for the next one.
//!
//! The choice follows from both rates, which are measured when the table is made, and from the number of
//! pieces that a batch of that length is expected to touch. All work is queued; nothing waits for the host.

use super::arguments::Arguments;
use super::order::AnyOrder;
use super::search::Search;
use super::spine::{Part, Spine, hybrid_answer, hybrid_fetch, hybrid_lines};
use crate::driver::LaunchShape;
use crate::kernel::{Batch, Instance};
use crate::memory::DeviceBuffer;
use crate::resident::{Resident, grid};
use crate::stream::Event;
use crate::{Gpu, GpuError, Stream};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes per piece; a piece is fetched if any of its lines is needed.
pub(crate) const PIECE_BYTES: u64 = 4096;
/// Maximum number of bytes of a part of the lines on the device.
const PART_BYTES_MAX: u64 = 128 << 20;
/// Threads per block.
const THREADS: u32 = 256;
/// Number of lines read one by one to measure the rate of such reads.
const SAMPLE: u64 = 1 << 16;

/// What answers a streamed batch.
pub(crate) trait ByParts {
    /// Queues writing down the line of each query, and marking its piece.
    ///
    /// # Safety
    /// As [`Search::search`]; the memory that `arguments` and `part` point to must stay alive, too.
    unsafe fn note_lines(
        &self,
        stream: &Stream,
        arguments: &Arguments,
        batch: &Batch,
        part: &Part,
    ) -> Result<(), GpuError>;

    /// Returns the kernel that answers a part.
    fn answering(&self) -> (Instance, &'static str);

    /// Queues answering the queries whose lines are in a part.
    ///
    /// # Safety
    /// As [`ByParts::note_lines`].
    unsafe fn answer(
        &self,
        stream: &Stream,
        shape: LaunchShape,
        arguments: &Arguments,
        batch: &Batch,
        part: &Part,
    ) -> Result<(), GpuError>;
}

/// Values, presence and ranks.
impl ByParts for Spine {
    unsafe fn note_lines(
        &self,
        stream: &Stream,
        arguments: &Arguments,
        batch: &Batch,
        part: &Part,
    ) -> Result<(), GpuError> {
        // SAFETY: the caller guarantees batch, arguments and part.
        unsafe { hybrid_lines(stream, self.instance(), self.shape(batch.count), arguments, batch, part) }
    }

    fn answering(&self) -> (Instance, &'static str) {
        (self.instance(), "hybrid_answer")
    }

    unsafe fn answer(
        &self,
        stream: &Stream,
        shape: LaunchShape,
        arguments: &Arguments,
        batch: &Batch,
        part: &Part,
    ) -> Result<(), GpuError> {
        // SAFETY: the caller guarantees batch, arguments and part.
        unsafe { hybrid_answer(stream, self.instance(), shape, arguments, batch, part) }
    }
}

/// A table whose lines stay with the host.
#[derive(Debug)]
pub(crate) struct Hybrid {
    spine: Arc<Spine>,
    gpu: Gpu,
    line_count: u64,
    /// Nanoseconds per line that is read by itself, and per piece that is streamed.
    line_ns: f64,
    piece_ns: f64,
    room: Mutex<Room>,
}

/// Buffers of a streamed search; one search uses them at a time.
#[derive(Debug)]
struct Room {
    fetching: Stream,
    parts: [DeviceBuffer; 2],
    touched: DeviceBuffer,
    numbers: DeviceBuffer,
    /// End of the last search that uses them.
    last: Option<Event>,
}

impl Hybrid {
    /// Creates the search from the image, and measures the link.
    pub(crate) fn new(stream: &Stream, resident: &Resident, spine: Arc<Spine>) -> Result<Self, GpuError> {
        let gpu = resident.gpu.clone();
        let pieces = (resident.line_count * 64).div_ceil(PIECE_BYTES);
        let part_bytes = (pieces * PIECE_BYTES).min(PART_BYTES_MAX).min(gpu.left_bytes()? / 8);
        let part_bytes = (part_bytes / PIECE_BYTES).max(1) * PIECE_BYTES;
        let room = Room {
            fetching: Stream::new(&gpu)?,
            parts: [DeviceBuffer::new(&gpu, part_bytes)?, DeviceBuffer::new(&gpu, part_bytes)?],
            touched: DeviceBuffer::new(&gpu, pieces)?,
            numbers: DeviceBuffer::new(&gpu, 0)?,
            last: None,
        };
        let line_count = resident.line_count;
        let mut this = Self { spine, gpu, line_count, line_ns: 0.0, piece_ns: 0.0, room: Mutex::new(room) };
        this.measure(stream, resident)?;
        Ok(this)
    }

    /// Times look-ups one by one, and a part that is streamed.
    fn measure(&mut self, stream: &Stream, resident: &Resident) -> Result<(), GpuError> {
        // The queries cover the range of keys. Where they are dense there are lines, which is sufficient
        // here.
        let words = usize::from(resident.word_bytes);
        let span = resident.high - resident.low;
        let mut queries = Vec::with_capacity(SAMPLE as usize * words);
        for at in 0..u128::from(SAMPLE) {
            let step = at.wrapping_mul(0x9E37_79B9) % u128::from(SAMPLE);
            let word = resident.low + span / u128::from(SAMPLE) * step;
            queries.extend_from_slice(&word.to_le_bytes()[..words]);
        }
        let queries = DeviceBuffer::from_host(stream, &queries)?;
        let present = DeviceBuffer::new(&self.gpu, SAMPLE / 8)?;
        let batch = Batch {
            queries: queries.address(),
            count: SAMPLE,
            present: present.address(),
            rank_bytes: 8,
            ..Batch::default()
        };
        // SAFETY: the batch's buffers live until the stream was waited for.
        let line = best_ms(stream, || unsafe { self.spine.search(stream, &batch) })?;
        let room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        room.touched.fill(stream, 1)?;
        let part = self.part(&room, 0);
        // SAFETY: the part's buffers live until the stream was waited for.
        let streamed = best_ms(stream, || unsafe { self.fetch(stream, &part) })?;
        drop(room);
        self.line_ns = f64::from(line) * 1e6 / SAMPLE as f64;
        self.piece_ns = f64::from(streamed) * 1e6 / (part.count * 64).div_ceil(PIECE_BYTES) as f64;
        Ok(())
    }

    /// Returns the search through the image.
    pub(crate) fn spine(&self) -> &Spine {
        &self.spine
    }

    /// Returns a part of the lines by its number.
    fn part(&self, room: &Room, number: u64) -> Part {
        let buffer = &room.parts[(number % 2) as usize];
        let first = number * (buffer.bytes() / 64);
        Part {
            numbers: room.numbers.address(),
            touched: room.touched.address(),
            lines: buffer.address(),
            first,
            count: (self.line_count - first).min(buffer.bytes() / 64),
        }
    }

    /// Queues fetching the touched pieces of a part.
    ///
    /// # Safety
    /// The part's buffers must stay alive until the work is done.
    unsafe fn fetch(&self, stream: &Stream, part: &Part) -> Result<(), GpuError> {
        let instance = self.spine.instance();
        let shape = grid(&self.gpu, instance, "hybrid_fetch", THREADS, 0, part.count * 4)?;
        // SAFETY: the caller guarantees the part's buffers; the lines belong to the table.
        unsafe { hybrid_fetch(stream, instance, shape, self.spine.arguments(), part) }
    }

    /// Returns true if a batch of this length should be streamed.
    pub(crate) fn is_streamed(&self, queries: u64) -> bool {
        let pieces = (self.line_count * 64).div_ceil(PIECE_BYTES) as f64;
        let touched = pieces * -(-(queries as f64) / pieces).exp_m1();
        // The passes over the batch for each part are cheap compared with the link.
        touched * self.piece_ns < queries as f64 * self.line_ns
    }

    /// Queues a streamed search.
    ///
    /// # Safety
    /// As [`Search::search`]; the memory that `arguments` point to must stay alive, too.
    pub(crate) unsafe fn stream(
        &self,
        stream: &Stream,
        batch: &Batch,
        arguments: &Arguments,
        by: &dyn ByParts,
    ) -> Result<(), GpuError> {
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = room.last.take() {
            stream.wait_for(&last)?;
            room.fetching.wait_for(&last)?;
        }
        if room.numbers.bytes() < batch.count * 4 {
            // Memory that queued work may use is freed only after that work is done.
            stream.synchronize()?;
            room.numbers = DeviceBuffer::new(&self.gpu, batch.count * 4)?;
        }
        // SAFETY: the caller guarantees batch and arguments; `room` belongs to this search until `last` has
        // passed.
        let queued = unsafe { self.queue(stream, batch, arguments, &room, by) };
        room.last = Some(stream.mark()?);
        queued
    }

    /// Queues the kernels of a streamed search.
    ///
    /// # Safety
    /// As [`Hybrid::stream`]; no other work under way may use `room`.
    unsafe fn queue(
        &self,
        stream: &Stream,
        batch: &Batch,
        arguments: &Arguments,
        room: &Room,
        by: &dyn ByParts,
    ) -> Result<(), GpuError> {
        room.touched.fill(stream, 0)?;
        if batch.present != 0 {
            // SAFETY: the caller guarantees the presence bitmap of the batch.
            unsafe {
                self.gpu.driver().fill(
                    stream.handle(),
                    batch.present,
                    0,
                    batch.count.div_ceil(32) as usize * 4,
                )
            }?;
        }
        // SAFETY: the caller guarantees batch and arguments; the room holds a number per query.
        unsafe { by.note_lines(stream, arguments, batch, &self.part(room, 0)) }?;
        let (answers, entry) = by.answering();
        let answering = grid(&self.gpu, answers, entry, THREADS, 0, batch.count)?;
        room.fetching.wait_for(&stream.mark()?)?;
        let parts = self.line_count.div_ceil(room.parts[0].bytes() / 64);
        // Marks after which the buffer of a part is free again.
        let mut free: [Option<Event>; 2] = [None, None];
        for number in 0..parts {
            let part = self.part(room, number);
            let buffer = &mut free[(number % 2) as usize];
            if let Some(answered) = buffer.take() {
                room.fetching.wait_for(&answered)?;
            }
            // SAFETY: the caller guarantees `room`; the last part in this buffer has been answered before it
            // is fetched again.
            unsafe { self.fetch(&room.fetching, &part) }?;
            stream.wait_for(&room.fetching.mark()?)?;
            // SAFETY: the caller guarantees batch and arguments; the part has been fetched.
            unsafe { by.answer(stream, answering, arguments, batch, &part) }?;
            *buffer = Some(stream.mark()?);
        }
        Ok(())
    }
}

/// Returns the time of the shorter of two runs, in milliseconds, after a run to warm up.
fn best_ms(stream: &Stream, mut run: impl FnMut() -> Result<(), GpuError>) -> Result<f32, GpuError> {
    let mut best = f32::MAX;
    for turn in 0..3 {
        let start = stream.mark()?;
        let queued = run();
        let end = stream.mark()?;
        end.wait()?;
        queued?;
        if turn > 0 {
            best = best.min(start.milliseconds_to(&end)?);
        }
    }
    Ok(best)
}

impl AnyOrder for Hybrid {
    unsafe fn search_unless(&self, stream: &Stream, batch: &Batch, order: u64) -> Result<(), GpuError> {
        if self.is_streamed(batch.count) {
            let arguments = self.spine.arguments().unless(order);
            // SAFETY: the caller guarantees the batch and its buffers, and the sample.
            unsafe { self.stream(stream, batch, &arguments, &*self.spine) }
        } else {
            // SAFETY: the caller guarantees the batch and its buffers, and the sample.
            unsafe { self.spine.search_unless(stream, batch, order) }
        }
    }
}

impl Search for Hybrid {
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError> {
        if self.is_streamed(batch.count) {
            // SAFETY: the caller guarantees the batch and its buffers, as `Search::search` requires.
            unsafe { self.stream(stream, batch, self.spine.arguments(), &*self.spine) }
        } else {
            // SAFETY: the caller guarantees the batch and its buffers, as `Search::search` requires.
            unsafe { self.spine.search(stream, batch) }
        }
    }

    fn is_recordable(&self, count: u64) -> bool {
        !self.is_streamed(count)
    }

    fn bytes(&self) -> u64 {
        let room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        self.spine.bytes() + room.parts.iter().map(DeviceBuffer::bytes).sum::<u64>() + room.touched.bytes()
    }
}
