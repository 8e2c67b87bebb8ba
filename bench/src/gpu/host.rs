//! Batches whose queries come from the host and whose answers go there: from pinned memory, from ordinary slices, and a
//! few queries at a time. Times are the host's, from the call until the answers are there.

use super::case::{Case, Trouble, failed};
use super::measure::{Drawn, KnownBatch};
use super::tables::{Cell, size_name};
use super::{GpuReport, GpuRow};
use crate::BenchError;
use crate::report::spread;
use pleach_gpu::{Algorithm, PinnedBatch, PinnedBuffer};
use std::time::Instant;
use zerocopy::IntoBytes;

/// Short batches.
const COUNTS: [u64; 3] = [1, 32, 1024];

/// All rows of a table.
pub(crate) fn measure<T: Cell>(
    case: &Case<'_, '_>,
    [key_type, size]: [&str; 2],
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let (bench, batch) = (case.bench, case.bench.options.batch);
    let link = report.find("limit/link").and_then(|link| {
        Some((link.get("to_device_of_both_gb_per_s")?, link.get("from_device_of_both_gb_per_s")?))
    });
    // Milliseconds in which the link alone carries queries and answers, both ways at a time.
    let link_ms = link.map(|(to, from)| {
        let (key, answer) = (T::BYTES as f64, T::BYTES as f64 + 0.125);
        batch as f64 * (key / to).max(answer / from) / 1e6
    });
    let named = |engine: &str, count: u64| GpuRow::new("host", engine, &[key_type, size, &size_name(count)]);
    for (engine, times) in [("pinned", pinned::<T>(case, batch)), ("slices", slices::<T>(case, batch))] {
        let row = named(engine, batch);
        let row = match times {
            Ok(ms) => {
                let (median, _, _) = spread(&ms);
                let row =
                    row.times(batch, &ms).number("gb_per_s", T::BYTES as f64 * batch as f64 / median / 1e6);
                match link_ms {
                    Some(link_ms) => row.number("link_ms", link_ms).number("of_link", link_ms / median),
                    None => row,
                }
            }
            Err(trouble) => failed(row, trouble)?,
        };
        bench.push(report, row)?;
    }
    let short = COUNTS.map(|count| [("short", count, false), ("recorded", count, true)]);
    for (engine, count, is_recorded) in short.into_iter().flatten() {
        let row = GpuRow::new("host", engine, &[key_type, size, &count.to_string()]);
        let times = if is_recorded { recorded::<T>(case, count) } else { short_times::<T>(case, count) };
        let row = match times {
            Ok(us) => {
                let (median, least, most) = spread(&us);
                let row = row.with("batch", count).with("repetitions", us.len());
                row.number("us", median).number("us_min", least).number("us_max", most)
            }
            Err(trouble) => failed(row, trouble)?,
        };
        bench.push(report, row)?;
    }
    Ok(())
}

/// Milliseconds of batches from pinned memory.
fn pinned<T: Cell>(case: &Case<'_, '_>, count: u64) -> Result<Vec<f64>, Trouble> {
    let (gpu, stream) = (case.bench.gpu, &case.bench.stream);
    let length = usize::try_from(count).unwrap_or(usize::MAX);
    let mut batch = PinnedBatch {
        keys: PinnedBuffer::new(gpu, length * T::BYTES)?,
        count: length,
        values: PinnedBuffer::new(gpu, length * T::BYTES)?,
        present: PinnedBuffer::new(gpu, length.div_ceil(64) * 8)?,
    };
    let mut all = Vec::new();
    for seed in 0..=case.bench.options.repetitions as u64 {
        let drawn = case.draw(Drawn::Present, count, seed)?;
        drawn.queries.part(0, count * T::BYTES as u64).copy_to_host(stream, batch.keys.as_mut_bytes())?;
        batch.values.as_mut_bytes().fill(0x5A);
        batch.present.as_mut_bytes().fill(0);
        let start = Instant::now();
        batch = case.table.get_pinned(Algorithm::Auto, batch)?.wait()?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        case.compare_host(&drawn, batch.values.as_bytes(), batch.present.as_bytes())?;
        // The first one makes buffers.
        if seed > 0 {
            all.push(ms);
        }
    }
    Ok(all)
}

/// Queries and answers in ordinary memory.
struct Slices<T> {
    keys: Vec<T>,
    values: Vec<T>,
    present: Vec<u64>,
}

impl<T: Cell> Slices<T> {
    fn new(count: u64) -> Self {
        let length = usize::try_from(count).unwrap_or(usize::MAX);
        let cells = || vec![T::default(); length];
        Self { keys: cells(), values: cells(), present: vec![0; length.div_ceil(64)] }
    }

    /// Milliseconds of a batch; its answers are compared.
    fn once(&mut self, case: &Case<'_, '_>, drawn: &KnownBatch, is_flushed: bool) -> Result<f64, Trouble> {
        let (stream, meter) = (&case.bench.stream, &case.bench.meter);
        drawn.queries.copy_to_host(stream, self.keys.as_mut_slice().as_mut_bytes())?;
        self.values.fill(T::narrow(0x5A5A_5A5A_5A5A_5A5A));
        self.present.fill(0);
        if is_flushed {
            meter.flush()?;
        }
        stream.synchronize()?;
        let start = Instant::now();
        case.table.get_batch_by(Algorithm::Auto, &self.keys, &mut self.values, &mut self.present)?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        case.compare_host(drawn, self.values.as_slice().as_bytes(), self.present.as_slice().as_bytes())?;
        Ok(ms)
    }
}

/// Milliseconds of batches from slices.
pub(crate) fn slices<T: Cell>(case: &Case<'_, '_>, count: u64) -> Result<Vec<f64>, Trouble> {
    let mut slices = Slices::<T>::new(count);
    let mut all = Vec::new();
    for seed in 0..=case.bench.options.repetitions as u64 {
        let drawn = case.draw(Drawn::Present, count, seed)?;
        let ms = slices.once(case, &drawn, false)?;
        if seed > 0 {
            all.push(ms);
        }
    }
    Ok(all)
}

/// Microseconds of a few queries, the device's caches empty.
fn short_times<T: Cell>(case: &Case<'_, '_>, count: u64) -> Result<Vec<f64>, Trouble> {
    let count = count.min(case.bench.options.batch);
    let mut slices = Slices::<T>::new(count);
    let mut all = Vec::new();
    for seed in 0..=case.bench.options.short_repetitions as u64 {
        let drawn = case.draw(Drawn::Present, count, seed)?;
        let us = slices.once(case, &drawn, true)? * 1e3;
        if seed > 0 {
            all.push(us);
        }
    }
    Ok(all)
}

/// Microseconds of a few queries whose work was recorded, the device's caches empty.
fn recorded<T: Cell>(case: &Case<'_, '_>, count: u64) -> Result<Vec<f64>, Trouble> {
    let count = count.min(case.bench.options.batch);
    let (stream, meter) = (&case.bench.stream, &case.bench.meter);
    let mut batch = case.table.record_batch::<T, T>(Algorithm::Auto, count as usize)?;
    let Slices { mut keys, mut values, mut present } = Slices::<T>::new(count);
    let mut all = Vec::new();
    for seed in 0..=case.bench.options.short_repetitions as u64 {
        let drawn = case.draw(Drawn::Present, count, seed)?;
        drawn.queries.copy_to_host(stream, keys.as_mut_slice().as_mut_bytes())?;
        meter.flush()?;
        stream.synchronize()?;
        let start = Instant::now();
        batch.get(&keys, &mut values, &mut present)?;
        let us = start.elapsed().as_secs_f64() * 1e6;
        case.compare_host(&drawn, values.as_slice().as_bytes(), present.as_slice().as_bytes())?;
        if seed > 0 {
            all.push(us);
        }
    }
    Ok(all)
}
