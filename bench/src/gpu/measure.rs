//! Limits of a device, and batches whose answers are known.
//!
//! A [`Meter`] times work on a stream, and measures random reads (in many [`ReadForm`]s, the best of which is
//! the limit), copies, launches and the host link.
//!
//! A [`Maker`] draws queries from a sorted column of distinct keys on the device, each with the answer it
//! must get, and compares answers there, so that no batch travels to the host to be checked. Values are
//! [`value_of`] their keys, so the right answer follows from the query alone and from no search.
//!
//! [`FetchLimit`] is the only setting of the whole context here; dropping it restores the previous value.

use pleach_format::key::Word;
use pleach_gpu::internal::{
    Instance, LaunchShape, Lowest, SourceSpec, copy, copy_in, copy_out, grid, set_l2_fetch_bytes,
};
use pleach_gpu::{DeviceBuffer, Gpu, GpuError, PinnedBuffer, Stream};

pleach_gpu::kernel! {
    /// Limits of a device, and batches whose answers are known.
    MEASURE = SourceSpec {
        option_name: Some("IN_FLIGHT"),
        options: &[BATCHES, 1, 2, 4, 8, 16],
        has_value_width: true,
        // Values have the keys' type; reads are of 8 bytes.
        exists: |instance| {
            let widths = [instance.word_bytes, instance.value_bytes];
            let is_made = widths == [8, 8] || instance.option == BATCHES && widths == [4, 4];
            instance.lowest == Lowest::Codes16 && is_made
        },
        numbers: |_| vec![
            ("BYTES_OF_READS", size_of::<Reads>() as u64),
            ("BYTES_OF_MOVE", size_of::<Move>() as u64),
            ("BYTES_OF_DRAW", size_of::<Draw>() as u64),
            ("BYTES_OF_COMPARE", size_of::<Compare>() as u64),
        ],
        ..SourceSpec::new("measure.cu", include_str!("measure.cu"))
    };
    /// Random reads of 8 bytes.
    random_words(reads: Reads) if |instance| instance.option != BATCHES;
    /// Random reads of lines.
    random_lines(reads: Reads) if |instance| instance.option != BATCHES;
    /// A copy.
    copy_words(copy: Move) if |instance| instance.option != BATCHES;
    /// Does nothing.
    nothing(unused: u32) if |instance| instance.option != BATCHES;
    /// Makes queries and the answers that they must get.
    make_queries(draw: Draw) if |instance| instance.option == BATCHES;
    /// Makes ascending queries and the answers that they must get.
    make_ascending(draw: Draw) if |instance| instance.option == BATCHES;
    /// Counts wrong answers.
    compare_answers(compare: Compare) if |instance| instance.option == BATCHES;
    /// Adds values up.
    sum_values(compare: Compare) if |instance| instance.option == BATCHES;
}

/// Arguments of the read kernels; the same as in measure.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Reads {
    from: u64,
    units: u64,
    reads: u64,
    sum: u64,
    seed: u32,
    load: u32,
}

/// Arguments of the copy; the same as in measure.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Move {
    from: u64,
    to: u64,
    count: u64,
}

/// Arguments of drawing queries; the same as in measure.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Draw {
    keys: u64,
    tuples: u64,
    queries: u64,
    values: u64,
    present: u64,
    count: u64,
    seed: u64,
    octaves: f64,
    kind: u64,
}

/// Arguments of comparing answers; the same as in measure.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Compare {
    values: u64,
    wanted: u64,
    present: u64,
    wanted_present: u64,
    count: u64,
    differences: u64,
    numbers: u64,
}

/// Option of the instances that make batches; for the others it is the reads in flight per thread.
const BATCHES: u16 = 0;
/// Default threads per block.
const THREADS: u32 = 256;
/// Threads per block of `make_ascending`, which sorts one query of each: GROUP in measure.cu.
const GROUP: u32 = 1024;
/// Bytes per line.
const LINE_BYTES: u64 = 64;

/// Unit of a random read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 8 bytes, by one thread.
    Word,
    /// A line of 64 bytes, by four lanes.
    Line,
}

impl Unit {
    /// Returns the bytes of the unit.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Word => 8,
            Self::Line => LINE_BYTES,
        }
    }
}

/// Load instruction of a random read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A plain load.
    Plain,
    /// A load through the read-only path.
    ReadOnly,
    /// A load whose line is evicted first.
    Streaming,
    /// A load that is not kept in the level 1 cache.
    NoAllocate,
}

impl Load {
    /// All load instructions.
    pub const ALL: [Self; 4] = [Self::Plain, Self::ReadOnly, Self::Streaming, Self::NoAllocate];

    /// Returns the name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::ReadOnly => "read-only",
            Self::Streaming => "streaming",
            Self::NoAllocate => "no-allocate",
        }
    }
}

/// A form of random reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadForm {
    /// Unit of a read.
    pub unit: Unit,
    /// Reads of a thread before the first one is used: 1, 2, 4, 8 or 16.
    pub in_flight: u16,
    /// Threads per block: a multiple of 32, at most 1024, or 512 with 16 in flight.
    pub threads: u32,
    /// Load instruction.
    pub load: Load,
}

impl ReadForm {
    /// Returns all forms that are tried for a limit.
    #[must_use]
    pub fn all(unit: Unit) -> Vec<Self> {
        let mut all = Vec::new();
        for in_flight in [1, 2, 4, 8, 16] {
            for threads in
                [128, 256, 512, 1024].into_iter().filter(|&threads| in_flight < 16 || threads <= 512)
            {
                all.extend(Load::ALL.map(|load| Self { unit, in_flight, threads, load }));
            }
        }
        all
    }

    /// Returns the name used in reports.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} in flight, {} a block, {}", self.in_flight, self.threads, self.load.name())
    }
}

/// Number of bytes that the level 2 cache fetches at a time, for the whole context, until this value is
/// dropped.
#[derive(Debug)]
pub struct FetchLimit {
    gpu: Gpu,
    before: u32,
}

impl FetchLimit {
    /// Sets the number: 32, 64 or 128 bytes.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn set(gpu: &Gpu, bytes: u32) -> Result<Self, GpuError> {
        Ok(Self { gpu: gpu.clone(), before: set_l2_fetch_bytes(gpu, bytes)? })
    }
}

impl Drop for FetchLimit {
    fn drop(&mut self) {
        // A lost device has no settings any more.
        let _ = set_l2_fetch_bytes(&self.gpu, self.before);
    }
}

/// Rates of the host link in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Link {
    /// To the device, alone.
    pub to_device: f64,
    /// From the device, alone.
    pub from_device: f64,
    /// To the device while as many bytes are copied the other way.
    pub to_device_of_both: f64,
    /// From the device while as many bytes are copied the other way.
    pub from_device_of_both: f64,
}

/// Times work on a stream, and measures the limits of the device.
#[derive(Debug)]
pub struct Meter {
    stream: Stream,
    /// A sum, and the buffer that is written to flush the caches.
    sum: DeviceBuffer,
    flushed: DeviceBuffer,
}

fn instance(option: u16) -> Instance {
    Instance { option, ..Instance::new(&MEASURE, 8, 8) }
}

impl Meter {
    /// Creates a meter whose flush writes `flush_bytes`, which should be several times the level 2 cache.
    ///
    /// # Errors
    /// [`GpuError::Memory`] or [`GpuError::OutOfMemory`] if the device has no room for its buffers.
    pub fn new(stream: &Stream, flush_bytes: u64) -> Result<Self, GpuError> {
        let gpu = stream.gpu();
        let (sum, flushed) = (DeviceBuffer::new(gpu, 16)?, DeviceBuffer::new(gpu, flush_bytes)?);
        Ok(Self { stream: stream.clone(), sum, flushed })
    }

    /// Returns the stream.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the device time, in milliseconds, of the work that `work` queues on the stream; blocks until
    /// it is done. Earlier work is not counted, and gives the host time to queue: with [`Meter::flush`]
    /// first, no launch is waited for.
    ///
    /// # Errors
    /// The errors of `work`, and [`GpuError::Driver`] if a driver call fails.
    pub fn time<T>(&self, work: impl FnOnce(&Stream) -> Result<T, GpuError>) -> Result<(f64, T), GpuError> {
        let start = self.stream.mark()?;
        let made = work(&self.stream)?;
        let end = self.stream.mark()?;
        end.wait()?;
        Ok((f64::from(start.milliseconds_to(&end)?), made))
    }

    /// Queues writing over the caches.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn flush(&self) -> Result<(), GpuError> {
        self.flushed.fill(&self.stream, 0)
    }

    /// Queues a kernel that does nothing.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn launch_nothing(&self) -> Result<(), GpuError> {
        let shape = LaunchShape { blocks: 1, threads: 32, shared_bytes: 0 };
        // SAFETY: the kernel takes a number and accesses no memory.
        unsafe { nothing(&self.stream, instance(1), shape, &0) }
    }

    /// Returns the milliseconds of `reads` random reads from a buffer, and the sum of the words of 64 bits
    /// that were read.
    ///
    /// # Errors
    /// [`GpuError::Buffer`] if the buffer is shorter than one unit, [`GpuError::Driver`] if a driver call
    /// fails.
    pub fn random_reads(
        &self,
        from: &DeviceBuffer,
        reads: u64,
        form: ReadForm,
        seed: u32,
    ) -> Result<(f64, u64), GpuError> {
        from.holds("read at random", form.unit.bytes())?;
        let (threads, in_flight) = (form.threads, form.in_flight);
        let instance = instance(in_flight);
        let lanes = if form.unit == Unit::Line { 4 } else { 1 };
        let entry = if form.unit == Unit::Line { "random_lines" } else { "random_words" };
        let turns = reads.saturating_mul(lanes).div_ceil(in_flight.into());
        let shape = grid(self.stream.gpu(), instance, entry, threads, 0, turns)?;
        let arguments = Reads {
            from: from.address(),
            units: (from.bytes() / form.unit.bytes()).min(u32::MAX.into()),
            reads,
            sum: self.sum.address(),
            seed,
            load: form.load as u32,
        };
        self.sum.fill(&self.stream, 0)?;
        let (ms, ()) = self.time(|stream| {
            // SAFETY: the kernel reads whole units of the buffer and adds to the sum; both outlive the wait
            // in `time`.
            unsafe {
                match form.unit {
                    Unit::Word => random_words(stream, instance, shape, &arguments),
                    Unit::Line => random_lines(stream, instance, shape, &arguments),
                }
            }
        })?;
        Ok((ms, self.number()?[0]))
    }

    /// Measures random reads as [`Meter::random_reads`] does, from pinned host memory.
    ///
    /// # Errors
    /// As [`Meter::random_reads`].
    pub fn random_reads_of_host(
        &self,
        from: &PinnedBuffer,
        reads: u64,
        form: ReadForm,
        seed: u32,
    ) -> Result<(f64, u64), GpuError> {
        let bytes = from.as_bytes().len() as u64;
        // SAFETY: the address is the device's address of `from`, which is borrowed until the reads are done.
        let seen = unsafe { DeviceBuffer::from_raw(from.gpu(), from.address(), bytes) };
        self.random_reads(&seen, reads, form, seed)
    }

    /// Returns the milliseconds of a copy on the device by the driver, with the length of the shorter buffer.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn copy(&self, to: &DeviceBuffer, from: &DeviceBuffer) -> Result<f64, GpuError> {
        // SAFETY: both buffers outlive the wait in `time`.
        Ok(self.time(|stream: &Stream| unsafe { copy(stream, to, from) })?.0)
    }

    /// Returns the milliseconds of the same copy by a kernel with this number of loads of 16 bytes in flight;
    /// bytes past the last 16 are not copied.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn copy_by_kernel(
        &self,
        to: &DeviceBuffer,
        from: &DeviceBuffer,
        in_flight: u16,
    ) -> Result<f64, GpuError> {
        let count = to.bytes().min(from.bytes()) / 16;
        if count == 0 {
            return Ok(0.0);
        }
        let instance = instance(in_flight);
        let shape = grid(self.stream.gpu(), instance, "copy_words", GROUP, 0, count)?;
        let arguments = Move { from: from.address(), to: to.address(), count };
        // SAFETY: the range is inside both buffers, which outlive the wait in `time`.
        let work = |stream: &Stream| unsafe { copy_words(stream, instance, shape, &arguments) };
        Ok(self.time(work)?.0)
    }

    /// Measures the host link: the best of `repetitions` copies of `bytes` each way.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`] if there is no room for the buffers, [`GpuError::Driver`] if a driver call
    /// fails.
    pub fn link(&self, bytes: usize, repetitions: usize) -> Result<Link, GpuError> {
        let gpu = self.stream.gpu();
        let other = Stream::new(gpu)?;
        let (sent, received) = (PinnedBuffer::new(gpu, bytes)?, PinnedBuffer::new(gpu, bytes)?);
        let (to, from) = (DeviceBuffer::new(gpu, bytes as u64)?, DeviceBuffer::new(gpu, bytes as u64)?);
        from.fill(&self.stream, 0)?;
        // SAFETY: each buffer is used by one copy at a time, and outlives the waits below.
        let send = |stream: &Stream| unsafe { copy_in(stream, &to, &sent) };
        // SAFETY: each buffer is used by one copy at a time, and outlives the waits below.
        let receive = |stream: &Stream| unsafe { copy_out(stream, &received, &from) };
        let mut link = Link::default();
        let rate = |ms: f64| if ms > 0.0 { bytes as f64 / ms * 1e3 } else { 0.0 };
        for _ in 0..repetitions {
            link.to_device = link.to_device.max(rate(self.time(send)?.0));
            link.from_device = link.from_device.max(rate(self.time(receive)?.0));
            let start = self.stream.mark()?;
            other.wait_for(&start)?;
            // The other stream first, so that an error leaves no work under way that is not waited for.
            let received = receive(&other).and_then(|()| other.mark());
            let sent = send(&self.stream).and_then(|()| self.stream.mark());
            self.stream.synchronize()?;
            other.synchronize()?;
            let (sent, received) = (sent?, received?);
            let to = rate(start.milliseconds_to(&sent)?.into());
            let from = rate(start.milliseconds_to(&received)?.into());
            if to.min(from) > link.to_device_of_both.min(link.from_device_of_both) {
                (link.to_device_of_both, link.from_device_of_both) = (to, from);
            }
        }
        Ok(link)
    }

    /// Returns the numbers that kernels leave in `sum`; blocks.
    fn number(&self) -> Result<[u64; 2], GpuError> {
        read_numbers(&self.sum, &self.stream)
    }
}

fn read_numbers(buffer: &DeviceBuffer, stream: &Stream) -> Result<[u64; 2], GpuError> {
    let mut bytes = [0; 16];
    buffer.copy_to_host(stream, &mut bytes)?;
    Ok([<u64 as Word>::read(&bytes[..8]), <u64 as Word>::read(&bytes[8..])])
}

/// Finalizer of splitmix64.
const fn mix64(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Returns the value of a key in tables whose answers a [`Maker`] knows; for 4-byte keys, its low half is the
/// value.
#[must_use]
pub const fn value_of(key: u64) -> u64 {
    mix64(key ^ 0x5851_F42D_4C95_7F2D)
}

/// Distribution of the queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Drawn {
    /// Present keys, with equal probability.
    Present,
    /// Every other query, by chance, is for an absent key: in the gap above a present key, or above all keys
    /// where there is no gap.
    HalfAbsent,
    /// Present keys by Zipf's law with exponent 1.
    Zipf,
    /// Present keys, in ascending order.
    Ascending,
}

/// Queries on the device, and the answers that they must get.
#[derive(Clone, Debug)]
pub struct KnownBatch {
    /// Keys.
    pub queries: DeviceBuffer,
    /// Values of the keys, 0 where a key is absent.
    pub values: DeviceBuffer,
    /// Presence bit of each key.
    pub present: DeviceBuffer,
    /// Number of keys.
    pub count: u64,
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Differences {
    /// Number of queries whose value or presence is wrong.
    pub count: u64,
    /// Index of the first of them; meaningless if there are none.
    pub first: u64,
}

/// Draws batches from a sorted column of distinct keys on the device, and compares answers there.
#[derive(Debug)]
pub struct Maker {
    stream: Stream,
    instance: Instance,
    keys: DeviceBuffer,
    tuples: u64,
    numbers: DeviceBuffer,
}

impl Maker {
    /// Creates a maker for a column of unsigned keys of 4 or 8 bytes, distinct and ascending.
    ///
    /// # Errors
    /// [`GpuError::Memory`] or [`GpuError::OutOfMemory`] if the device has no room, and [`GpuError::Buffer`]
    /// if there is no key.
    pub fn new(stream: &Stream, keys: &DeviceBuffer, key_bytes: u8) -> Result<Self, GpuError> {
        let word_bytes = if key_bytes == 4 { 4 } else { 8 };
        keys.holds("keys", word_bytes.into())?;
        let instance = Instance::new(&MEASURE, word_bytes, word_bytes);
        let numbers = DeviceBuffer::new(stream.gpu(), 16)?;
        let tuples = keys.bytes() / u64::from(word_bytes);
        Ok(Self { stream: stream.clone(), instance, keys: keys.clone(), tuples, numbers })
    }

    /// Allocates room for a batch.
    ///
    /// # Errors
    /// [`GpuError::Memory`] or [`GpuError::OutOfMemory`] if the device has no room.
    pub fn room(&self, count: u64) -> Result<KnownBatch, GpuError> {
        let gpu = self.stream.gpu();
        let bytes = count * u64::from(self.instance.word_bytes);
        Ok(KnownBatch {
            queries: DeviceBuffer::new(gpu, bytes)?,
            values: DeviceBuffer::new(gpu, bytes)?,
            present: DeviceBuffer::new(gpu, count.div_ceil(32) * 4)?,
            count,
        })
    }

    /// Draws new queries into a batch; blocks until they are there.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn draw(&self, batch: &KnownBatch, kind: Drawn, seed: u64) -> Result<(), GpuError> {
        if batch.count == 0 {
            return Ok(());
        }
        let gpu = self.stream.gpu();
        let arguments = Draw {
            keys: self.keys.address(),
            tuples: self.tuples,
            queries: batch.queries.address(),
            values: batch.values.address(),
            present: batch.present.address(),
            count: batch.count,
            seed: mix64(seed),
            octaves: (self.tuples as f64 + 1.0).log2(),
            kind: match kind {
                Drawn::Present | Drawn::Ascending => 0,
                Drawn::HalfAbsent => 1,
                Drawn::Zipf => 2,
            },
        };
        // SAFETY: keys, queries and answers are arrays of these lengths, and outlive the wait below.
        unsafe {
            if kind == Drawn::Ascending {
                let shape = grid(gpu, self.instance, "make_ascending", GROUP, 0, batch.count)?;
                make_ascending(&self.stream, self.instance, shape, &arguments)?;
            } else {
                let shape = grid(gpu, self.instance, "make_queries", THREADS, 0, batch.count)?;
                make_queries(&self.stream, self.instance, shape, &arguments)?;
            }
        }
        self.stream.synchronize()
    }

    /// Compares answers with those that a batch must get; blocks.
    ///
    /// # Errors
    /// [`GpuError::Buffer`] if an answer buffer is too short, [`GpuError::Driver`] if a driver call fails.
    pub fn compare(
        &self,
        batch: &KnownBatch,
        values: &DeviceBuffer,
        present: &DeviceBuffer,
    ) -> Result<Differences, GpuError> {
        self.compare_with(batch, values, present, None)
    }

    /// Compares answers as [`Maker::compare`] does, in another order: answer i belongs to query `numbers[i]`,
    /// a u32.
    ///
    /// # Errors
    /// As [`Maker::compare`].
    pub fn compare_numbered(
        &self,
        batch: &KnownBatch,
        values: &DeviceBuffer,
        present: &DeviceBuffer,
        numbers: &DeviceBuffer,
    ) -> Result<Differences, GpuError> {
        numbers.holds("numbers", batch.count * 4)?;
        self.compare_with(batch, values, present, Some(numbers))
    }

    fn compare_with(
        &self,
        batch: &KnownBatch,
        values: &DeviceBuffer,
        present: &DeviceBuffer,
        numbers: Option<&DeviceBuffer>,
    ) -> Result<Differences, GpuError> {
        let mut start = [0; 16];
        start[8..].fill(0xFF);
        self.numbers.copy_from_host(&self.stream, &start)?;
        values.holds("values", batch.values.bytes())?;
        present.holds("present", batch.present.bytes())?;
        if batch.count > 0 {
            let arguments = Compare {
                values: values.address(),
                wanted: batch.values.address(),
                present: present.address(),
                wanted_present: batch.present.address(),
                count: batch.count,
                differences: self.numbers.address(),
                numbers: numbers.map_or(0, DeviceBuffer::address),
            };
            let shape = self.shape("compare_answers", batch.count)?;
            // SAFETY: the arrays have the batch's length, and outlive the wait in `read_numbers`.
            unsafe { compare_answers(&self.stream, self.instance, shape, &arguments) }?;
        }
        let [count, first] = read_numbers(&self.numbers, &self.stream)?;
        Ok(Differences { count, first })
    }

    /// Returns the sum of the values that a batch must get, modulo 2^64; blocks.
    ///
    /// # Errors
    /// [`GpuError::Driver`] if a driver call fails.
    pub fn sum(&self, batch: &KnownBatch) -> Result<u64, GpuError> {
        self.numbers.fill(&self.stream, 0)?;
        if batch.count > 0 {
            let values = batch.values.address();
            let arguments = Compare {
                values,
                wanted: values,
                present: batch.present.address(),
                wanted_present: batch.present.address(),
                count: batch.count,
                differences: self.numbers.address(),
                numbers: 0,
            };
            let shape = self.shape("sum_values", batch.count)?;
            // SAFETY: the arrays have the batch's length, and outlive the wait in `read_numbers`.
            unsafe { sum_values(&self.stream, self.instance, shape, &arguments) }?;
        }
        Ok(read_numbers(&self.numbers, &self.stream)?[0])
    }

    fn shape(&self, entry: &'static str, count: u64) -> Result<LaunchShape, GpuError> {
        grid(self.stream.gpu(), self.instance, entry, THREADS, 0, count)
    }
}
