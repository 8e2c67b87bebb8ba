//! Building on the GPU: tuple lines and spine, and the classic tree, from sorted columns on the device. What is built
//! is compared once with the file's own sections, byte by byte.

use super::case::{Case, Trouble, failed};
use super::tables::{Cell, Made, value};
use super::{GpuReport, GpuRow};
use crate::BenchError;
use crate::report::spread;
use pleach_format::LineGeometry;
use pleach_format::classic::Geometry;
use pleach_gpu::build::{ClassicBuilder, ClassicForm, LineBuilder};
use pleach_gpu::{DeviceBuffer, GpuError};
use rayon::prelude::*;
use zerocopy::IntoBytes;

/// All rows of a table.
pub(crate) fn measure<T: Cell>(
    case: &Case<'_, '_>,
    made: &Made<T>,
    [key_type, size]: [&str; 2],
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let row = GpuRow::new("build", "spine", &[key_type, size]);
    let row = finished(row, spine(case, made))?;
    case.bench.push(report, row)?;
    for (name, form) in [("classic", ClassicForm::Grid), ("classic-paper", ClassicForm::Paper)] {
        let row = GpuRow::new("build", name, &[key_type, size]);
        let row = finished(row, classic::<T>(case, form))?;
        case.bench.push(report, row)?;
    }
    Ok(())
}

fn finished(row: GpuRow, ms: Result<Vec<f64>, Trouble>) -> Result<GpuRow, BenchError> {
    match ms {
        Ok(ms) => {
            let (median, least, most) = spread(&ms);
            let row = row.with("repetitions", ms.len()).number("build_ms", median);
            Ok(row.number("build_ms_min", least).number("build_ms_max", most))
        }
        Err(trouble) => failed(row, trouble),
    }
}

/// Milliseconds of tuple lines and spine.
fn spine<T: Cell>(case: &Case<'_, '_>, made: &Made<T>) -> Result<Vec<f64>, Trouble> {
    let (bench, header) = (case.bench, made.index.header());
    let values: Vec<T> = made.keys.par_iter().map(|&key| value(key)).collect();
    let values = DeviceBuffer::from_host(&bench.stream, values.as_slice().as_bytes())?;
    let geometry = LineGeometry::new(T::BYTES, T::BYTES);
    let mut all = Vec::new();
    for repetition in 0..=bench.options.repetitions {
        let builder = LineBuilder::new(bench.gpu, geometry, header.tuples, false)?;
        let (ms, pending) = bench.meter.time(|stream| builder.build(stream, &case.keys, &values))?;
        let built = pending.wait()?;
        if repetition > 0 {
            all.push(ms);
            continue;
        }
        let whole = made.index.as_bytes();
        for (name, offset, buffer) in
            [("lines", header.lines_offset, &built.lines), ("spine", header.spine_offset, &built.spine)]
        {
            let mut bytes = vec![0; buffer.bytes() as usize];
            buffer.copy_to_host(&bench.stream, &mut bytes)?;
            let file = usize::try_from(offset).ok().and_then(|offset| whole.get(offset..));
            if file.and_then(|file| file.get(..bytes.len())) != Some(&bytes[..]) {
                return Err(Trouble::Wrong(format!("the {name} are not those of the file")));
            }
        }
    }
    Ok(all)
}

/// Milliseconds of the classic tree.
fn classic<T: Cell>(case: &Case<'_, '_>, form: ClassicForm) -> Result<Vec<f64>, Trouble> {
    let bench = case.bench;
    let tuples = case.keys.bytes() / T::BYTES as u64;
    let geometry = Geometry { padded: true, ..Geometry::paper(tuples, T::BYTES as u32) };
    let builder = ClassicBuilder::new(bench.gpu, &geometry, form)?;
    let tree = DeviceBuffer::new(bench.gpu, builder.bytes())?;
    let once = || -> Result<f64, GpuError> {
        let (ms, pending) = bench.meter.time(|stream| builder.build(stream, &case.keys, &tree))?;
        pending.wait()?;
        Ok(ms)
    };
    once()?;
    Ok((0..bench.options.repetitions).map(|_| once()).collect::<Result<_, GpuError>>()?)
}
