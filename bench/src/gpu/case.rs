//! One table on the device, and timed searches of it: fresh queries each time, every answer compared on the
//! device.

use super::measure::{Differences, Drawn, KnownBatch, Maker};
use super::tables::{Cell, Made, first};
use super::{Bench, GpuRow, engines};
use crate::BenchError;
use pleach_gpu::{Algorithm, Answers, DeviceBuffer, GpuError, GpuTable, Residence};
use std::cell::OnceCell;
use std::time::Instant;
use zerocopy::IntoBytes;

/// Contents of answer buffers before a search, so that answers of an earlier search cannot pass for new ones.
const STALE: u8 = 0x5A;
/// A row whose batch takes longer than this is measured with a shorter one.
const BATCH_MS_MAX: f64 = 60.0;
/// Queries by which that is found out.
const PROBE: u64 = 1 << 18;
/// Runs that take longer than this in all are repeated less often.
const ALL_MS_MAX: f64 = 2000.0;
const REPETITIONS_MIN: usize = 3;

/// Why a search has no times.
#[derive(Debug)]
pub enum Trouble {
    /// It failed.
    Gpu(GpuError),
    /// It answered wrongly.
    Wrong(String),
}

impl From<GpuError> for Trouble {
    fn from(error: GpuError) -> Self {
        Self::Gpu(error)
    }
}

/// A search to be timed.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Distribution of the queries.
    pub kind: Drawn,
    /// Queries of a batch, or fewer if they are slow.
    pub most: u64,
    /// Repetitions that are timed.
    pub repetitions: usize,
    /// True if the caches are emptied before each search.
    pub is_flushed: bool,
    /// Never fewer queries.
    pub is_whole: bool,
    /// In which order answers come.
    pub order: Order,
}

/// In which order answers come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// That of the queries.
    Asked,
    /// That in which they were sorted, with their numbers.
    Sorted,
    /// None come: queries are sorted and that is all.
    Nothing,
}

impl Asked {
    /// As often as the options say, caches as they are.
    pub fn new(bench: &Bench<'_>, algorithm: Algorithm, kind: Drawn, most: u64) -> Self {
        let repetitions = bench.options.repetitions;
        Self { algorithm, kind, most, repetitions, is_flushed: false, is_whole: false, order: Order::Asked }
    }
}

/// Times of a search.
#[derive(Clone, Debug)]
pub struct Times {
    /// Queries of a batch.
    pub count: u64,
    /// Milliseconds of each repetition.
    pub ms: Vec<f64>,
    /// Answers that were compared.
    pub compared: u64,
}

/// A table on the device, with room for a batch and for its answers.
pub struct Case<'b, 'i> {
    /// State that all measurements share.
    pub bench: &'b Bench<'b>,
    /// The table.
    pub table: GpuTable<'i>,
    /// Draws queries, and compares answers.
    pub maker: Maker,
    /// Keys on the device, sorted.
    pub keys: DeviceBuffer,
    room: KnownBatch,
    values: DeviceBuffer,
    present: DeviceBuffer,
    /// Numbers of sorted queries, from the first batch that has some.
    numbers: OnceCell<DeviceBuffer>,
}

impl<'b, 'i> Case<'b, 'i> {
    /// Puts a table where the device reads it, with room for batches of `queries_max` queries.
    pub fn new<T: Cell>(
        bench: &'b Bench<'b>,
        made: &'i Made<T>,
        batch: u64,
        residence: Residence,
    ) -> Result<Self, GpuError> {
        let table = GpuTable::with_residence(&made.index, bench.gpu, residence)?;
        let keys = DeviceBuffer::from_host(&bench.stream, made.keys.as_slice().as_bytes())?;
        let maker = Maker::new(&bench.stream, &keys, T::BYTES as u8)?;
        let room = maker.room(batch)?;
        let values = DeviceBuffer::new(bench.gpu, room.values.bytes())?;
        // Whole words of 64 bits.
        let present = DeviceBuffer::new(bench.gpu, batch.div_ceil(64) * 8)?;
        let numbers = OnceCell::new();
        Ok(Self { bench, table, maker, keys, room, values, present, numbers })
    }

    /// Draws fresh queries; the buffers of the answers hold none.
    pub fn draw(&self, kind: Drawn, count: u64, seed: u64) -> Result<KnownBatch, GpuError> {
        let batch = first(&self.room, count);
        self.maker.draw(&batch, kind, seed)?;
        self.values.fill(&self.bench.stream, STALE)?;
        self.present.fill(&self.bench.stream, STALE)?;
        Ok(batch)
    }

    /// Compares the answers with those of a batch.
    pub fn compare(&self, batch: &KnownBatch) -> Result<(), Trouble> {
        Self::judge(batch, self.maker.compare(batch, &self.values, &self.present)?)
    }

    fn judge(batch: &KnownBatch, found: Differences) -> Result<(), Trouble> {
        if found.count == 0 {
            return Ok(());
        }
        let (wrong, all, first) = (found.count, batch.count, found.first);
        Err(Trouble::Wrong(format!("{wrong} of {all} answers are wrong, the first of query {first}")))
    }

    /// Compares answers that came to the host.
    pub fn compare_host(&self, batch: &KnownBatch, values: &[u8], present: &[u8]) -> Result<(), Trouble> {
        self.values.copy_from_host(&self.bench.stream, values)?;
        self.present.copy_from_host(&self.bench.stream, present)?;
        self.compare(batch)
    }

    /// Milliseconds of the device for one search of a batch.
    fn search(&self, algorithm: Algorithm, batch: &KnownBatch, is_flushed: bool) -> Result<f64, Trouble> {
        let (meter, table) = (&self.bench.meter, &self.table);
        let answers =
            Answers { values: Some(&self.values), present: Some(&self.present), ..Answers::default() };
        if is_flushed {
            // Twice: while that goes on, the host has time to queue the search.
            meter.flush()?;
            meter.flush()?;
        }
        let (ms, pending) =
            meter.time(|stream| table.search_on(stream, algorithm, &batch.queries, batch.count, answers))?;
        pending.wait()?;
        self.compare(batch)?;
        Ok(ms)
    }

    /// The same by an algorithm that sorts, with answers as it sorts them, or none.
    fn search_sorted(&self, algorithm: Algorithm, batch: &KnownBatch, order: Order) -> Result<f64, Trouble> {
        let (meter, table) = (&self.bench.meter, &self.table);
        if self.numbers.get().is_none() {
            let _ = self.numbers.set(DeviceBuffer::new(self.bench.gpu, self.room.count * 4)?);
        }
        let numbers = self.numbers.get().unwrap_or(&self.values);
        numbers.fill(&self.bench.stream, STALE)?;
        let answers = match order {
            Order::Nothing => Answers::default(),
            _ => Answers { values: Some(&self.values), present: Some(&self.present), ..Answers::default() },
        };
        let (queries, count) = (&batch.queries, batch.count);
        let (ms, pending) = meter
            .time(|stream| table.search_sorted_on(stream, algorithm, queries, count, answers, numbers))?;
        pending.wait()?;
        if order == Order::Sorted {
            let found = self.maker.compare_numbered(batch, &self.values, &self.present, numbers)?;
            Self::judge(batch, found)?;
        }
        Ok(ms)
    }

    /// Times searches.
    pub fn time(&self, asked: Asked) -> Result<Times, Trouble> {
        let Asked { algorithm, kind, most, repetitions, is_flushed, is_whole, order } = asked;
        self.table.prepare(algorithm)?;
        let mut compared = 0;
        let mut once = |count: u64, seed: u64| -> Result<f64, Trouble> {
            let batch = self.draw(kind, count, seed)?;
            compared += count;
            match order {
                Order::Asked => self.search(algorithm, &batch, is_flushed),
                _ => self.search_sorted(algorithm, &batch, order),
            }
        };
        let most = most.min(self.room.count);
        let probe = PROBE.min(most);
        // Twice: the first one loads the kernels.
        once(probe, 0)?;
        let ms = once(probe, 1)?;
        let fitting = (probe as f64 * BATCH_MS_MAX / ms.max(1e-6)) as u64;
        let is_fast = is_whole || fitting >= most;
        let count = if is_fast { most } else { (fitting.max(probe) / 2).next_power_of_two().min(most) };
        let ms = if count == probe { ms } else { once(count, 2)? };
        let affordable = (ALL_MS_MAX / ms.max(1e-6)) as usize;
        let repetitions = repetitions.min(affordable.max(REPETITIONS_MIN));
        let ms = (0..repetitions as u64).map(|seed| once(count, 3 + seed)).collect::<Result<Vec<_>, _>>()?;
        Ok(Times { count, ms, compared })
    }

    /// As [`Case::time`], as a row: with the time that making the structure took, or with what went wrong.
    pub fn row(&self, group: &str, parts: &[&str], asked: Asked) -> Result<GpuRow, BenchError> {
        let row = GpuRow::new(group, &engines::label(asked.algorithm), parts);
        let start = Instant::now();
        let times = self.table.prepare(asked.algorithm).map_err(Trouble::from).and_then(|()| {
            let prepare_ms = start.elapsed().as_secs_f64() * 1e3;
            let bytes = self.table.structure_bytes(asked.algorithm)?;
            Ok((prepare_ms, bytes, self.time(asked)?))
        });
        match times {
            Ok((prepare_ms, bytes, times)) => Ok(row
                .times(times.count, &times.ms)
                .with("compared", times.compared)
                .number("prepare_ms", prepare_ms)
                .with("structure_bytes", bytes)),
            Err(trouble) => failed(row, trouble),
        }
    }
}

/// A row that says what went wrong; an error if nothing more can be measured.
pub fn failed(row: GpuRow, trouble: Trouble) -> Result<GpuRow, BenchError> {
    match trouble {
        Trouble::Gpu(error @ (GpuError::Lost { .. } | GpuError::Unavailable(_))) => Err(error.into()),
        Trouble::Gpu(error) => Ok(row.with("error", error.to_string())),
        Trouble::Wrong(text) => Ok(row.with("error", text).with("is_wrong", true)),
    }
}
