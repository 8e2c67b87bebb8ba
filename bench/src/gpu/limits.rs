//! Limits of the device: random reads at each table's own size, a copy, a launch, the host link.
//!
//! The limit of random reads is the best over reads in flight, threads a block, loads, and bytes that the
//! level 2 cache fetches at a time: all forms are tried once, the best few are measured like everything
//! else. The last of these is a setting of the whole context, which is put back.

use super::measure::{FetchLimit, ReadForm, Unit};
use super::tables::size_name;
use super::{Bench, GpuReport, GpuRow, Group};
use crate::BenchError;
use crate::report::spread;
use pleach::KeyType;
use pleach_format::LineGeometry;
use pleach_gpu::{DeviceBuffer, GpuError, PinnedBuffer};

/// Bytes that the level 2 cache may fetch at a time.
const FETCH_BYTES: [u32; 3] = [32, 64, 128];
/// Forms that are measured after all were tried.
const FINALISTS: usize = 4;
/// Reads of a trial, as a share of those of a measurement.
const TRIAL_SHARE: u64 = 4;
/// Random reads of pinned memory, as a share of those of device memory.
const PINNED_SHARE: u64 = 8;

/// Bytes of the tuple lines of a table.
pub(crate) fn footprint(key_type: KeyType, tuples: u64) -> u64 {
    let bytes = if key_type == KeyType::U32 { 4 } else { 8 };
    tuples.div_ceil(LineGeometry::new(bytes, bytes).tuples_per_line() as u64) * 64
}

/// Measures all limits that the other groups need.
pub(crate) fn measure(bench: &Bench<'_>, report: &mut GpuReport) -> Result<(), BenchError> {
    let options = bench.options;
    options.told.step("limits of the device")?;
    let launch = empty_launch(bench)?;
    bench.push(report, launch)?;
    let copy = copy(bench)?;
    bench.push(report, copy)?;
    let sizes = options.key_types.iter().flat_map(|&key_type| {
        options.tuples.iter().map(move |&tuples| (key_type, tuples, footprint(key_type, tuples)))
    });
    let sizes: Vec<(KeyType, u64, u64)> = sizes.collect();
    let most = sizes.iter().map(|size| size.2).max().unwrap_or(64);
    let buffer = DeviceBuffer::new(bench.gpu, most)?;
    buffer.fill(&bench.stream, 0x5A)?;
    for (key_type, tuples, bytes) in sizes {
        for (unit, name) in [(Unit::Word, "random-words"), (Unit::Line, "random-lines")] {
            options.told.step(&format!("limits: {name} of {} MiB", bytes >> 20))?;
            let (ms, form, fetch) = best(bench, unit, &buffer.part(0, bytes), options.reads)?;
            let row = GpuRow::new("limit", name, &[&key_type.to_string(), &size_name(tuples)])
                .times(options.reads, &ms)
                .with("bytes", bytes)
                .with("form", form.name())
                .with("l2_fetch_bytes", fetch);
            bench.push(report, row)?;
        }
    }
    drop(buffer);
    if [Group::Host, Group::Hybrid, Group::Limits].into_iter().any(|group| options.has(group)) {
        options.told.step("limits of the host link")?;
        let copied = usize::try_from(options.copy_bytes).unwrap_or(usize::MAX);
        let link = bench.meter.link(copied, options.repetitions)?;
        let each = link.to_device_of_both.min(link.from_device_of_both);
        let row = GpuRow::new("limit", "link", &[])
            .number("to_device_gb_per_s", link.to_device / 1e9)
            .number("from_device_gb_per_s", link.from_device / 1e9)
            .number("to_device_of_both_gb_per_s", link.to_device_of_both / 1e9)
            .number("from_device_of_both_gb_per_s", link.from_device_of_both / 1e9)
            .number("gb_per_s", each / 1e9)
            .with("bytes", copied);
        bench.push(report, row)?;
        for &bytes in &options.pinned_bytes {
            let row = pinned(bench, bytes)?;
            bench.push(report, row)?;
        }
    }
    Ok(())
}

/// A launch of nothing, timed as a search of a few queries is.
fn empty_launch(bench: &Bench<'_>) -> Result<GpuRow, BenchError> {
    let meter = &bench.meter;
    let once = || -> Result<f64, GpuError> {
        meter.flush()?;
        meter.flush()?;
        Ok(meter.time(|_| meter.launch_nothing())?.0 * 1e3)
    };
    once()?;
    let repetitions = bench.options.short_repetitions;
    let us = (0..repetitions).map(|_| once()).collect::<Result<Vec<f64>, GpuError>>()?;
    let (median, least, most) = spread(&us);
    let row = GpuRow::new("limit", "empty-launch", &[]).with("repetitions", repetitions);
    Ok(row.number("us", median).number("us_min", least).number("us_max", most))
}

/// A copy on the device: the best of the driver's and of ours.
pub fn copy(bench: &Bench<'_>) -> Result<GpuRow, BenchError> {
    let (options, meter) = (bench.options, &bench.meter);
    let bytes = options.copy_bytes;
    let (from, to) = (DeviceBuffer::new(bench.gpu, bytes)?, DeviceBuffer::new(bench.gpu, bytes)?);
    from.fill(&bench.stream, 0x5A)?;
    let mut found: Option<(f64, Vec<f64>, String)> = None;
    for in_flight in std::iter::once(0).chain(options.in_flight.iter().copied().filter(|&number| number <= 8))
    {
        let once = || match in_flight {
            0 => meter.copy(&to, &from),
            number => meter.copy_by_kernel(&to, &from, number),
        };
        once()?;
        let ms = (0..options.repetitions).map(|_| once()).collect::<Result<Vec<f64>, GpuError>>()?;
        let median = spread(&ms).0;
        if found.as_ref().is_none_or(|best| median < best.0) {
            let form =
                if in_flight == 0 { "driver".to_owned() } else { format!("kernel, {in_flight} in flight") };
            found = Some((median, ms, form));
        }
    }
    let (median, ms, form) = found.unwrap_or_default();
    let (_, least, most) = spread(&ms);
    Ok(GpuRow::new("limit", "copy", &[])
        .with("repetitions", ms.len())
        .number("ms", median)
        .number("ms_min", least)
        .number("ms_max", most)
        .number("tb_per_s", 2.0 * bytes as f64 / median.max(1e-9) / 1e9)
        .with("bytes", bytes)
        .with("form", form))
}

/// Times of the fastest way to read at random, which way, and the bytes that the cache fetched (0: as it was).
fn best(
    bench: &Bench<'_>,
    unit: Unit,
    buffer: &DeviceBuffer,
    reads: u64,
) -> Result<(Vec<f64>, ReadForm, u32), BenchError> {
    let options = bench.options;
    let forms: Vec<ReadForm> =
        ReadForm::all(unit).into_iter().filter(|form| options.in_flight.contains(&form.in_flight)).collect();
    let once = |form: ReadForm, reads: u64, seed: u32| -> Result<f64, GpuError> {
        Ok(bench.meter.random_reads(buffer, reads, form, seed)?.0)
    };
    let limits = |bytes: u32| if bytes == 0 { Ok(None) } else { FetchLimit::set(bench.gpu, bytes).map(Some) };
    let mut trials: Vec<(f64, ReadForm, u32)> = Vec::new();
    for bytes in std::iter::once(0).chain(FETCH_BYTES) {
        // A device that does not take it has no such limit.
        let Ok(_limit) = limits(bytes) else { continue };
        for &form in &forms {
            // The first launch of all loads the kernels.
            if trials.is_empty() {
                once(form, reads / TRIAL_SHARE, 0)?;
            }
            trials.push((once(form, reads / TRIAL_SHARE, 1)?, form, bytes));
        }
    }
    trials.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut found: Option<(Vec<f64>, ReadForm, u32)> = None;
    for &(_, form, bytes) in trials.iter().take(FINALISTS) {
        let _limit = limits(bytes)?;
        let ms = (0..options.repetitions as u32).map(|seed| once(form, reads, 2 + seed));
        let ms = ms.collect::<Result<Vec<f64>, GpuError>>()?;
        if found.as_ref().is_none_or(|best| spread(&ms).0 < spread(&best.0).0) {
            found = Some((ms, form, bytes));
        }
    }
    found.ok_or_else(|| {
        BenchError::Options("no reads in flight were asked for: use 1, 2, 4, 8, 16".to_owned())
    })
}

/// Random lines of pinned memory of the host.
fn pinned(bench: &Bench<'_>, bytes: u64) -> Result<GpuRow, BenchError> {
    let options = bench.options;
    let row = GpuRow::new("limit", "host-lines", &[&format!("{}MiB", bytes >> 20)]).with("bytes", bytes);
    let buffer = match PinnedBuffer::new(bench.gpu, usize::try_from(bytes).unwrap_or(usize::MAX)) {
        Ok(buffer) => buffer,
        Err(error) => return super::case::failed(row, error.into()),
    };
    let reads = (options.reads / PINNED_SHARE).max(1);
    let forms = ReadForm::all(Unit::Line)
        .into_iter()
        .filter(|form| options.in_flight.contains(&form.in_flight) && form.threads == 256);
    let once =
        |form: ReadForm, reads: u64, seed: u32| bench.meter.random_reads_of_host(&buffer, reads, form, seed);
    let mut trials: Vec<(f64, ReadForm)> = Vec::new();
    for form in forms {
        once(form, reads / 64, 0)?;
        trials.push((once(form, reads / 64, 1)?.0, form));
    }
    let Some(&(_, form)) = trials.iter().min_by(|a, b| a.0.total_cmp(&b.0)) else {
        return Ok(row.with("error", "no reads in flight were asked for"));
    };
    let ms = (0..options.repetitions as u32).map(|seed| Ok(once(form, reads, 2 + seed)?.0));
    let ms = ms.collect::<Result<Vec<f64>, GpuError>>()?;
    Ok(row.times(reads, &ms).with("form", form.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn footprints_are_whole_lines() {
        assert_eq!(footprint(KeyType::U64, 1 << 26), 1 << 30);
        assert_eq!(footprint(KeyType::U32, 1 << 26), 1 << 29);
        assert_eq!(footprint(KeyType::U64, 1), 64);
        assert_eq!(footprint(KeyType::U32, 9), 128);
    }
}
