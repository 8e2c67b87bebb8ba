//! Our operators over relations on a device, in one pass: joins and set operations.
//! In *random* inputs half of the left keys are on the right: numbers that rise by random steps belong to
//! the left, to the right or to both sides, a third each. *Aligned* ones have the same keys. Values have 4
//! bytes and follow from keys and sides. Bytes in and out are counted once each, those of values that an
//! operation does not read not at all, and rates are set beside a copy of the same run. Times are the
//! device's, with the pass that cuts the inputs. The results of the last repetition are compared with the
//! CPU's.

use super::limits;
use super::tables::size_name;
use super::{Bench, GpuReport, GpuRow};
use crate::BenchError;
use crate::data::mix64;
use crate::report::spread;
use pleach::KeyType;
use pleach_gpu::relation::{Form, Joined, Operation, Rule, Sorted, merge};
use pleach_gpu::{DeviceBuffer, GpuError};
use rayon::prelude::*;
use zerocopy::IntoBytes;

/// Keys of a run that a thread makes.
const RUN: u64 = 1 << 16;

/// The operations: their names, whether values go along.
const OPERATIONS: [(Operation, &str, bool); 8] = [
    (Operation::Inner, "join", true),
    (Operation::Full, "full-join", true),
    (Operation::Intersection(Rule::Set), "intersect", true),
    (Operation::Union(Rule::Set), "union", true),
    (Operation::Difference(Rule::Set), "difference", true),
    (Operation::Intersection(Rule::Set), "intersect-keys", false),
    (Operation::Union(Rule::Set), "union-keys", false),
    (Operation::Difference(Rule::Set), "difference-keys", false),
];

/// Side to which a number of the inputs belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
    Both,
}

/// Inputs: keys of both sides in order, each with the sides that it is on.
struct Inputs {
    keys: Vec<(u64, Side)>,
}

fn value_of(key: u64, side: u64) -> u32 {
    mix64(key ^ side << 62) as u32
}

impl Inputs {
    /// About `tuples` keys a side, of `key_bytes` bytes.
    fn new(tuples: u64, key_bytes: u8, is_aligned: bool) -> Self {
        let count = if is_aligned { tuples } else { tuples + tuples / 2 };
        // Steps fill the range of keys.
        let most = if key_bytes == 4 { u32::MAX.into() } else { u64::MAX };
        let step = most / count.max(1);
        let runs = (0..count.div_ceil(RUN)).into_par_iter().flat_map_iter(|run| {
            (run * RUN..count.min((run + 1) * RUN)).map(move |i| {
                let draw = mix64(i);
                let side = match draw % 3 {
                    _ if is_aligned => Side::Both,
                    0 => Side::Left,
                    1 => Side::Right,
                    _ => Side::Both,
                };
                (i * step + (draw >> 8) % step.max(1), side)
            })
        });
        Self { keys: runs.collect() }
    }

    fn side(
        &self,
        bench: &Bench<'_>,
        is_left: bool,
        key_bytes: u8,
        has_values: bool,
    ) -> Result<Sorted, GpuError> {
        let other = if is_left { Side::Right } else { Side::Left };
        let keys: Vec<u64> = self.keys.par_iter().filter(|key| key.1 != other).map(|key| key.0).collect();
        let values: Vec<u32> = keys.par_iter().map(|&key| value_of(key, u64::from(!is_left))).collect();
        let values = has_values.then(|| (values.as_bytes(), 4));
        let sorted = if key_bytes == 4 {
            let keys: Vec<u32> = keys.par_iter().map(|&key| key as u32).collect();
            Sorted::from_host(&bench.stream, (keys.as_bytes(), 4), values)
        } else {
            Sorted::from_host(&bench.stream, (keys.as_bytes(), 8), values)
        };
        Ok(sorted?.promised_unique(true))
    }

    /// Keys that an operation answers, with their sides.
    fn wanted(&self, operation: Operation) -> Vec<(u64, Side)> {
        let is_wanted = |side: Side| match operation {
            Operation::Inner | Operation::Intersection(_) | Operation::Semi => side == Side::Both,
            Operation::Difference(_) | Operation::Anti => side == Side::Left,
            Operation::Left => side != Side::Right,
            Operation::Right => side != Side::Left,
            _ => true,
        };
        self.keys.par_iter().filter(|key| is_wanted(key.1)).copied().collect()
    }
}

pub(super) fn words(
    bench: &Bench<'_>,
    buffer: &DeviceBuffer,
    width: u8,
    count: u64,
) -> Result<Vec<u64>, GpuError> {
    if width == 4 {
        let mut words = vec![0u32; count as usize];
        buffer.copy_to_host(&bench.stream, words.as_mut_bytes())?;
        Ok(words.into_par_iter().map(u64::from).collect())
    } else {
        let mut words = vec![0u64; count as usize];
        buffer.copy_to_host(&bench.stream, words.as_mut_bytes())?;
        Ok(words)
    }
}

/// Returns true if results have these keys and the values that follow from them.
fn are_right(
    bench: &Bench<'_>,
    joined: &Joined,
    wanted: &[(u64, Side)],
    key_bytes: u8,
    is_pairs: bool,
) -> Result<bool, GpuError> {
    if joined.tuples != wanted.len() as u64 {
        return Ok(false);
    }
    let Some(keys) = &joined.keys else { return Ok(false) };
    let keys = words(bench, keys, key_bytes, joined.tuples)?;
    let mut is_right = keys.par_iter().zip(wanted).all(|(&key, wanted)| key == wanted.0);
    for (column, number) in joined.columns.iter().zip(0u64..) {
        let Some(column) = column else { continue };
        let values = words(bench, &column.buffer, column.bytes, joined.tuples)?;
        is_right &= values.par_iter().zip(wanted).all(|(&value, &(key, side))| {
            let wanted = match (is_pairs, side) {
                (true, Side::Right) if number == 0 => 0,
                (true, Side::Left) if number == 1 => 0,
                (true, _) => value_of(key, number),
                (false, side) => value_of(key, u64::from(side == Side::Right)),
            };
            value == u64::from(wanted)
        });
    }
    Ok(is_right)
}

/// Returns the rate of a copy in TB/s; measures it at the first call.
pub(super) fn copy_rate(bench: &Bench<'_>, report: &mut GpuReport) -> Result<f64, BenchError> {
    if report.find("limit/copy").is_none() {
        bench.options.told.step("limits: copy")?;
        bench.push(report, limits::copy(bench)?)?;
    }
    Ok(report.find("limit/copy").and_then(|row| row.get("tb_per_s")).unwrap_or(f64::NAN))
}

/// All rows.
pub(super) fn measure(bench: &Bench<'_>, report: &mut GpuReport) -> Result<(), BenchError> {
    let copy = copy_rate(bench, report)?;
    for &tuples in &bench.options.tuples {
        for &key_type in &bench.options.key_types {
            for is_aligned in [false, true] {
                operations(bench, (key_type, tuples), is_aligned, copy, report)?;
            }
        }
    }
    Ok(())
}

fn operations(
    bench: &Bench<'_>,
    (key_type, tuples): (KeyType, u64),
    is_aligned: bool,
    copy: f64,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let (order, size) = (if is_aligned { "aligned" } else { "random" }, size_name(tuples));
    let key_bytes = key_type.bytes() as u8;
    bench.options.told.step(&format!("joins and set operations: {key_type}, {size}, {order}"))?;
    let inputs = Inputs::new(tuples, key_bytes, is_aligned);
    for has_values in [true, false] {
        let left = inputs.side(bench, true, key_bytes, has_values)?;
        let right = inputs.side(bench, false, key_bytes, has_values)?;
        for (operation, name, _) in OPERATIONS.into_iter().filter(|row| row.2 == has_values) {
            let mut ms = Vec::new();
            let mut last = None;
            for _ in 0..=bench.options.repetitions {
                drop(last.take());
                let joined = merge(&bench.stream, operation, (&left, &right), Form::Values)?;
                ms.push(joined.milliseconds);
                last = Some(joined);
            }
            let Some(joined) = last else { continue };
            let wanted = inputs.wanted(operation);
            let is_pairs = matches!(operation, Operation::Inner | Operation::Full);
            let is_right = are_right(bench, &joined, &wanted, key_bytes, is_pairs)?;
            let (lefts, rights) = (left.tuples(), right.tuples());
            let values = if has_values { 4 } else { 0 };
            let read_right = if is_pairs || matches!(operation, Operation::Union(_)) { values } else { 0 };
            let out = u64::from(key_bytes)
                + joined.columns.iter().flatten().map(|column| u64::from(column.bytes)).sum::<u64>()
                + u64::from(joined.sides.is_some());
            let bytes = (lefts + rights) * u64::from(key_bytes)
                + lefts * values
                + rights * read_right
                + joined.tuples * out;
            // The first launch loads the program.
            let (median, least, most) = spread(&ms[1..]);
            let rate = bytes as f64 / median.max(1e-9) / 1e9;
            let row = GpuRow::new("one-pass", name, &[&key_type.to_string(), &size, order])
                .with("tuples", lefts + rights)
                .with("results", joined.tuples)
                .with("bytes", bytes)
                .number("ms", median)
                .number("ms_min", least)
                .number("ms_max", most)
                .number("g_per_s", (lefts + rights) as f64 / median.max(1e-9) / 1e6)
                .number("tb_per_s", rate)
                .number("of_copy", rate / copy);
            let row = if is_right { row } else { row.with("error", "wrong results").with("is_wrong", true) };
            bench.push(report, row)?;
        }
    }
    Ok(())
}
