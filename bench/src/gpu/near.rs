//! Floors, ceilings, nearest tuples and intervals on a device, beside exact look-ups of the same table and the same
//! batches, in turn.
//!
//! One table has keys and values of one type. Another one has the same keys as starts of intervals, every second of
//! which ends before the next one begins; its values have 8 bytes and begin with the last key. All answers of a first
//! batch, and a part of those of each timed one, are compared with a search of the sorted keys.

use super::case::{Trouble, failed};
use super::measure::{Drawn, KnownBatch, Maker};
use super::tables::{self, Cell, Keys, Made, first, kind_name, size_name};
use super::{Bench, GpuReport, GpuRow};
use crate::BenchError;
use pleach::{Index, Key, Near, ValueType};
use pleach_builder::source::Intervals::Disjoint;
use pleach_builder::{BuildOptions, Chunk, ChunkSource, Column, Schema, Silent};
use pleach_gpu::{Algorithm, Answers, DeviceBuffer, GpuError, GpuTable, NearBuffers, Residence};
use rayon::prelude::*;
use zerocopy::IntoBytes;

/// Answers that are compared of each timed batch.
const COMPARED: u64 = 1 << 16;
/// Tuples of a chunk that is built.
const CHUNK: usize = 1 << 14;

/// Kinds of look-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Get,
    Near(Near),
    Interval,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Near(Near::Floor) => "floor",
            Self::Near(Near::Ceiling) => "ceiling",
            Self::Near(Near::Nearest) => "nearest",
            Self::Interval => "interval",
        }
    }
}

/// Kinds on a plain table, and on one of intervals, in the order in which they take turns.
const PLAIN: [Kind; 4] =
    [Kind::Get, Kind::Near(Near::Floor), Kind::Near(Near::Ceiling), Kind::Near(Near::Nearest)];
const HELD: [Kind; 3] = [Kind::Get, Kind::Near(Near::Floor), Kind::Interval];

/// Returns the rank of the answer.
fn rank<T: Cell>(keys: &[T], ends: &[T], kind: Kind, query: T) -> Option<usize> {
    let below = keys.partition_point(|&key| key.widen() <= query.widen());
    let floor = below.checked_sub(1);
    let is_key = floor.is_some_and(|floor| keys[floor].widen() == query.widen());
    let ceiling = if is_key { floor } else { Some(below).filter(|&rank| rank < keys.len()) };
    match kind {
        Kind::Get => floor.filter(|_| is_key),
        Kind::Near(Near::Floor) => floor,
        Kind::Near(Near::Ceiling) => ceiling,
        Kind::Near(Near::Nearest) => match (floor, ceiling) {
            (Some(low), Some(high)) => {
                let (low_key, high_key) = (keys[low].widen(), keys[high].widen());
                let is_high = query.widen() - low_key > high_key - query.widen();
                Some(if is_high { high } else { low })
            }
            (low, high) => low.or(high),
        },
        Kind::Interval => floor.filter(|&floor| ends[floor].widen() >= query.widen()),
    }
}

/// Returns the value of a tuple, as 8 bytes.
fn value<T: Cell>(keys: &[T], ends: &[T], rank: usize) -> u64 {
    match (ends.get(rank), T::BYTES) {
        (Some(end), 4) => end.widen() | (rank as u64) << 32,
        (Some(end), _) => end.widen(),
        (None, _) => tables::value(keys[rank]).widen(),
    }
}

/// A table on the device, what it was made of, and room for batches.
struct Held<'b, 'i, T> {
    bench: &'b Bench<'b>,
    table: GpuTable<'i>,
    maker: Maker,
    keys: &'i [T],
    /// Last keys of intervals; empty on a plain table.
    ends: &'i [T],
    room: KnownBatch,
    values: DeviceBuffer,
    present: DeviceBuffer,
}

impl<'b, 'i, T: Cell> Held<'b, 'i, T> {
    fn new(bench: &'b Bench<'b>, index: &'i Index, keys: &'i [T], ends: &'i [T]) -> Result<Self, GpuError> {
        let table = GpuTable::with_residence(index, bench.gpu, Residence::Device)?;
        let on_device = DeviceBuffer::from_host(&bench.stream, keys.as_bytes())?;
        let maker = Maker::new(&bench.stream, &on_device, T::BYTES as u8)?;
        let room = maker.room(bench.options.batch)?;
        let values = DeviceBuffer::new(bench.gpu, bench.options.batch * 8)?;
        // Whole words of 64 bits.
        let present = DeviceBuffer::new(bench.gpu, bench.options.batch.div_ceil(64) * 8)?;
        Ok(Self { bench, table, maker, keys, ends, room, values, present })
    }

    /// Times a batch on the device.
    fn time(&self, kind: Kind, batch: &KnownBatch) -> Result<f64, GpuError> {
        let stream = &self.bench.stream;
        self.values.fill(stream, 0x5A)?;
        self.present.fill(stream, 0x5A)?;
        let (values, present) = (Some(&self.values), Some(&self.present));
        let to = NearBuffers { values, present, ..NearBuffers::default() };
        let (auto, queries, count) = (Algorithm::Auto, &batch.queries, batch.count);
        let (ms, pending) = self.bench.meter.time(|stream| match kind {
            Kind::Get => {
                let answers = Answers { values, present, ..Answers::default() };
                self.table.search_on(stream, auto, queries, count, answers)
            }
            Kind::Near(near) => self.table.near_on(stream, auto, near, queries, count, to),
            Kind::Interval => self.table.interval_on(stream, auto, queries, count, to),
        })?;
        pending.wait()?;
        Ok(ms)
    }

    /// Compares answers from `from` on, which is a multiple of 64. Returns their number.
    fn compare(&self, kind: Kind, batch: &KnownBatch, from: u64, most: u64) -> Result<u64, Trouble> {
        let count = most.min(batch.count - from);
        let value_bytes = if self.ends.is_empty() { T::BYTES as u64 } else { 8 };
        let fetch = |buffer: &DeviceBuffer, start: u64, bytes: u64| -> Result<Vec<u8>, GpuError> {
            let mut host = vec![0; bytes as usize];
            buffer.part(start, bytes).copy_to_host(&self.bench.stream, &mut host)?;
            Ok(host)
        };
        let word_bytes = T::BYTES as u64;
        let queries = fetch(&batch.queries, from * word_bytes, count * word_bytes)?;
        let values = fetch(&self.values, from * value_bytes, count * value_bytes)?;
        let present = fetch(&self.present, from / 8, count.div_ceil(8))?;
        let number = |bytes: &[u8], at: usize, each: u64| {
            let mut whole = [0; 8];
            let each = each as usize;
            whole[..each].copy_from_slice(&bytes[at * each..(at + 1) * each]);
            u64::from_le_bytes(whole)
        };
        let (keys, ends) = (self.keys, self.ends);
        let wrong = (0..count as usize).into_par_iter().find_first(|&at| {
            let query = T::narrow(number(&queries, at, word_bytes));
            let rank = rank(keys, ends, kind, query);
            let is_there = present[at / 8] >> (at % 8) & 1 == 1;
            let value = rank.map_or(0, |rank| self::value(keys, ends, rank));
            is_there != rank.is_some() || number(&values, at, value_bytes) != value
        });
        match wrong {
            Some(at) => Err(Trouble::Wrong(format!("{}: query {} is wrong", kind.name(), from + at as u64))),
            None => Ok(count),
        }
    }

    /// Times all kinds in turn on the same batches. Returns the times of each, and the answers compared.
    fn times(&self, kinds: &[Kind], drawn: Drawn) -> Result<(Vec<Vec<f64>>, Vec<u64>), Trouble> {
        let batch = first(&self.room, self.bench.options.batch);
        let (mut times, mut compared) = (vec![Vec::new(); kinds.len()], vec![0; kinds.len()]);
        for turn in 0..=self.bench.options.repetitions as u64 {
            self.maker.draw(&batch, drawn, turn)?;
            for (at, &kind) in kinds.iter().enumerate() {
                let ms = self.time(kind, &batch)?;
                if turn == 0 {
                    // It loads kernels, and makes images.
                    compared[at] += self.compare(kind, &batch, 0, batch.count)?;
                    continue;
                }
                let places = (batch.count / COMPARED).max(1);
                let from = turn.wrapping_mul(0x9E37_79B9) % places * COMPARED;
                compared[at] += self.compare(kind, &batch, from, COMPARED)?;
                times[at].push(ms);
            }
        }
        Ok((times, compared))
    }

    /// Measures batches of each order.
    fn measure(
        &self,
        group: &str,
        kinds: &[Kind],
        names: [&str; 2],
        report: &mut GpuReport,
    ) -> Result<(), BenchError> {
        for drawn in [Drawn::Present, Drawn::HalfAbsent, Drawn::Ascending] {
            let parts = [names[0], names[1], kind_name(drawn)];
            let (times, compared) = match self.times(kinds, drawn) {
                Ok(found) => found,
                Err(trouble) => {
                    self.bench.push(report, failed(GpuRow::new(group, "all", &parts), trouble)?)?;
                    continue;
                }
            };
            let exact = crate::report::spread(&times[0]).0;
            for ((kind, times), compared) in kinds.iter().zip(&times).zip(compared) {
                let row = GpuRow::new(group, kind.name(), &parts).times(self.bench.options.batch, times);
                let of_get = crate::report::spread(times).0 / exact.max(1e-9);
                let row = row.with("compared", compared).number("of_get", of_get);
                let row = match kind {
                    Kind::Get => row,
                    Kind::Near(near) => row.with("structure_bytes", self.table.near_bytes(*near)?),
                    Kind::Interval => row.with("structure_bytes", self.table.near_bytes(Near::Floor)?),
                };
                self.bench.push(report, row)?;
            }
        }
        Ok(())
    }
}

/// Both tables of a size and a key type.
pub(super) fn measure<T: Cell>(
    bench: &Bench<'_>,
    tuples: u64,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let (options, names) = (bench.options, [<T as Key>::TYPE.to_string(), size_name(tuples)]);
    let names = [names[0].as_str(), &names[1]];
    options.told.step(&format!("{} x {}: building", names[1], names[0]))?;
    let made = tables::make::<T>(Keys::Uniform, tuples, options.dir.as_deref())?;
    Held::new(bench, &made.index, &made.keys, &[])?.measure("near", &PLAIN, names, report)?;
    let Made { keys, .. } = made;
    options.told.step(&format!("{} x {}: building intervals", names[1], names[0]))?;
    let key = |rank: usize| keys[rank].widen();
    let last_of = |rank: usize| {
        let end = if rank + 1 < keys.len() { key(rank + 1) - 1 } else { key(rank) };
        T::narrow(if rank.is_multiple_of(2) { end } else { key(rank) + (end - key(rank)) / 2 })
    };
    let ends: Vec<T> = (0..keys.len()).into_par_iter().map(last_of).collect();
    let folder = crate::folder(options.dir.as_deref())?;
    let path = folder.path().join("intervals.pleach");
    let is_narrow = T::BYTES == 4;
    let record = if is_narrow { "record<last: u32, value: u32>" } else { "record<last: u64>" };
    let schema = Schema {
        value_logical: record.to_owned(),
        interval: Some(Disjoint),
        ..Schema::plain(<T as Key>::TYPE, ValueType::U64, None)
    };
    let chunks = keys.chunks(CHUNK).zip(ends.chunks(CHUNK)).enumerate().map(|(number, (keys, ends))| {
        let mut chunk = Chunk::new(<T as Key>::TYPE, ValueType::U64);
        for (rank, (key, end)) in (number * CHUNK..).zip(keys.iter().zip(ends)) {
            match &mut chunk.keys {
                Column::U32(words) => words.push(key.widen() as u32),
                Column::U64(words) => words.push(key.widen()),
                _ => {}
            }
            if let Column::U64(words) = &mut chunk.values {
                words.push(end.widen() | if is_narrow { (rank as u64) << 32 } else { 0 });
            }
        }
        chunk
    });
    let mut source = ChunkSource::new(schema, chunks);
    pleach_builder::build(&mut source, &path, &BuildOptions::default(), &Silent)?;
    let index = Index::open(&path)?;
    Held::new(bench, &index, &keys, &ends)?.measure("near-interval", &HELD, names, report)
}
