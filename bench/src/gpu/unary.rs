//! Our operators of one relation on a device in one pass, and the product of two.
//!
//! SELECT takes half of the tuples, by their values, by their keys, or by a program. PROJECT drops the
//! values, or packs bits of key and value into a new one. Reductions are sums of runs of equal keys of a
//! mean length. Bytes in and out are counted once each and set beside a copy of the same run; those of a
//! product, which has next to none in, beside a fill. Values have 4 bytes. The results of the last
//! repetition are compared with the CPU's.

use super::relation::{copy_rate, words};
use super::tables::size_name;
use super::{Bench, GpuReport, GpuRow};
use crate::BenchError;
use crate::data::mix64;
use crate::report::spread;
use pleach::KeyType;
use pleach_gpu::relation::condition::{Op, Operand, Program};
use pleach_gpu::relation::{
    self as operators, Combine, Condition, Numbers, Part, Projection, Reduction, Relation, Side, Test,
};
use pleach_gpu::{DeviceBuffer, GpuError};
use rayon::prelude::*;
use zerocopy::IntoBytes;

/// Mean lengths of runs of equal keys; 0 is one run.
const RUNS: [(u64, &str); 4] = [(1, "runs-1"), (10, "runs-10"), (1000, "runs-1000"), (0, "all-equal")];
/// Results of a product for each tuple that the other operators take.
const PRODUCT_RATIO: u64 = 2;

/// A relation on the device, and here.
struct Made {
    keys: Vec<u64>,
    values: Vec<u32>,
    relation: Relation,
}

fn made(bench: &Bench<'_>, key_bytes: u8, keys: Vec<u64>) -> Result<Made, GpuError> {
    let values: Vec<u32> = (0..keys.len() as u64).into_par_iter().map(|i| mix64(!i) as u32).collect();
    let bytes = Some((values.as_bytes(), 4));
    let relation = if key_bytes == 4 {
        let keys: Vec<u32> = keys.par_iter().map(|&key| key as u32).collect();
        Relation::from_host(&bench.stream, (keys.as_bytes(), 4), bytes)?
    } else {
        Relation::from_host(&bench.stream, (keys.as_bytes(), 8), bytes)?
    };
    Ok(Made { keys, values, relation })
}

/// Keys that rise by random steps.
fn spread_keys(tuples: u64, key_bytes: u8) -> Vec<u64> {
    let most = if key_bytes == 4 { u32::MAX.into() } else { u64::MAX };
    let step = most / tuples.max(1);
    (0..tuples).into_par_iter().map(|i| i * step + mix64(i) % step.max(1)).collect()
}

/// Runs of equal keys.
fn run_keys(tuples: u64, mean: u64) -> Vec<u64> {
    let is_first = |i: u64| mean > 0 && i > 0 && mix64(i).is_multiple_of(mean);
    let rise = |key: &mut u64, i: u64| {
        *key += u64::from(is_first(i));
        Some(*key)
    };
    (0..tuples).scan(7, rise).collect()
}

/// Result of an operator, as words.
struct Results {
    keys: Vec<u64>,
    values: Vec<u64>,
}

fn results(bench: &Bench<'_>, relation: &Relation) -> Result<Results, GpuError> {
    let keys = words(bench, relation.keys(), relation.key_bytes(), relation.tuples())?;
    let values = match relation.values() {
        Some(column) => words(bench, &column.buffer, column.bytes, relation.tuples())?,
        None => Vec::new(),
    };
    Ok(Results { keys, values })
}

/// A row to be measured.
struct Asked<'a> {
    name: &'a str,
    parts: [&'a str; 3],
    /// Bytes that are read.
    read_bytes: u64,
    /// Limit that the rate is compared with: its name, and its rate in TB/s.
    beside: (&'a str, f64),
}

/// Repeats an operator, compares what came out last, and adds a row.
fn row(
    bench: &Bench<'_>,
    report: &mut GpuReport,
    asked: &Asked<'_>,
    run: impl Fn() -> Result<(Relation, f64), GpuError>,
    is_right: impl FnOnce(&Results) -> bool,
) -> Result<(), BenchError> {
    let mut ms = Vec::new();
    let mut last = None;
    for _ in 0..=bench.options.repetitions {
        drop(last.take());
        let (relation, took) = run()?;
        ms.push(took);
        last = Some(relation);
    }
    let Some(relation) = last else { return Ok(()) };
    let bytes = asked.read_bytes + relation.bytes();
    // The first launch loads the program.
    let (median, least, most) = spread(&ms[1..]);
    let rate = bytes as f64 / median.max(1e-9) / 1e9;
    let made = GpuRow::new("one-pass", asked.name, &asked.parts)
        .with("results", relation.tuples())
        .with("bytes", bytes)
        .number("ms", median)
        .number("ms_min", least)
        .number("ms_max", most)
        .number("tb_per_s", rate)
        .number(asked.beside.0, rate / asked.beside.1);
    let found = results(bench, &relation)?;
    let made =
        if is_right(&found) { made } else { made.with("error", "wrong results").with("is_wrong", true) };
    bench.push(report, made)
}

/// Returns the rate in TB/s at which the driver fills memory.
fn fill_rate(bench: &Bench<'_>, report: &mut GpuReport) -> Result<f64, BenchError> {
    let bytes = bench.options.copy_bytes;
    let to = DeviceBuffer::new(bench.gpu, bytes)?;
    let once = || bench.meter.time(|stream| to.fill(stream, 0x5A)).map(|timed| timed.0);
    once()?;
    let ms = (0..bench.options.repetitions).map(|_| once()).collect::<Result<Vec<f64>, GpuError>>()?;
    let rate = bytes as f64 / spread(&ms).0.max(1e-9) / 1e9;
    bench.push(report, GpuRow::new("limit", "fill", &[]).with("bytes", bytes).number("tb_per_s", rate))?;
    Ok(rate)
}

/// All rows.
pub(super) fn measure(bench: &Bench<'_>, report: &mut GpuReport) -> Result<(), BenchError> {
    let copy = copy_rate(bench, report)?;
    let fill = fill_rate(bench, report)?;
    for &tuples in &bench.options.tuples {
        for &key_type in &bench.options.key_types {
            let what = format!("select, project, reduce, product: {key_type}, {}", size_name(tuples));
            bench.options.told.step(&what)?;
            one(bench, (key_type, tuples), copy, report)?;
            reductions(bench, (key_type, tuples), copy, report)?;
            product(bench, (key_type, tuples), fill, report)?;
        }
    }
    Ok(())
}

/// Returns true if a value or a key is taken.
fn is_even(word: u64) -> bool {
    word.is_multiple_of(2)
}

fn one(
    bench: &Bench<'_>,
    (key_type, tuples): (KeyType, u64),
    copy: f64,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let (key_bytes, size, key_name) = (key_type.bytes() as u8, size_name(tuples), key_type.to_string());
    let made = made(bench, key_bytes, spread_keys(tuples, key_bytes))?;
    let Made { keys, values, relation } = &made;
    let tuple_bytes = u64::from(key_bytes) + 4;
    let beside = ("of_copy", copy);
    let load = |operand| Op::Load { operand, flip: 0, shift: 0, bits: 32, is_signed: false };
    let program =
        Program::new(&[load(Operand::Value), Op::Push(1), Op::And, Op::Push(0), Op::Equal], Vec::new())?;
    for (way, condition) in [
        ("50%", Condition::Values(Test::bits(1, 0))),
        ("50%-by-key", Condition::Keys(Test::bits(1, 0))),
        ("50%-by-program", Condition::Program(program)),
    ] {
        let by_key = matches!(condition, Condition::Keys(_));
        let taken = |at: usize| is_even(if by_key { keys[at] } else { values[at].into() });
        let parts = [&key_name[..], &size, way];
        let asked = Asked { name: "select", parts, read_bytes: tuples * tuple_bytes, beside };
        let run = || {
            let answer = operators::select(&bench.stream, relation, &condition)?;
            Ok((answer.relation, answer.stages.total_ms()))
        };
        row(bench, report, &asked, run, |found| {
            let wanted: Vec<usize> = (0..keys.len()).into_par_iter().filter(|&at| taken(at)).collect();
            wanted.len() == found.keys.len()
                && wanted
                    .par_iter()
                    .zip(&found.keys)
                    .zip(&found.values)
                    .all(|((&at, &key), &value)| (key, value) == (keys[at], values[at].into()))
        })?;
    }
    let low = |side, left| Part { side, right: 0, mask: 0xFFFF, left };
    let packed = vec![low(Side::Value, 16), low(Side::Key, 0)];
    for (way, value, read) in [("drop", Vec::new(), key_bytes.into()), ("pack", packed, tuple_bytes)] {
        let value_bytes = if value.is_empty() { 0 } else { 4 };
        let projection = Projection { key: vec![Part::whole(Side::Key)], key_bytes, value, value_bytes };
        let parts = [&key_name[..], &size, way];
        let asked = Asked { name: "project", parts, read_bytes: tuples * read, beside };
        let run = || {
            let projected = operators::project(&bench.stream, relation, &projection)?;
            Ok((projected.relation, projected.stages.total_ms()))
        };
        row(bench, report, &asked, run, |found| {
            let of = |at: usize| u64::from(values[at] & 0xFFFF) << 16 | keys[at] & 0xFFFF;
            found.keys == *keys
                && (value_bytes == 0
                    || found.values.par_iter().enumerate().all(|(at, &value)| value == of(at)))
        })?;
    }
    Ok(())
}

fn reductions(
    bench: &Bench<'_>,
    (key_type, tuples): (KeyType, u64),
    copy: f64,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let (key_bytes, size, key_name) = (key_type.bytes() as u8, size_name(tuples), key_type.to_string());
    for (mean, way) in RUNS {
        let made = made(bench, key_bytes, run_keys(tuples, mean))?;
        let parts = [&key_name[..], &size, way];
        let read_bytes = tuples * (u64::from(key_bytes) + 4);
        let asked = Asked { name: "reduce", parts, read_bytes, beside: ("of_copy", copy) };
        let run = || {
            let sums = operators::reduce(&bench.stream, &made.relation, Reduction::Sum, Numbers::Unsigned)?;
            Ok((sums.relation, sums.stages.total_ms()))
        };
        row(bench, report, &asked, run, |found| {
            let mut sums: Vec<(u64, u64)> = Vec::new();
            for (&key, &value) in made.keys.iter().zip(&made.values) {
                match sums.last_mut() {
                    Some(last) if last.0 == key => last.1 += u64::from(value),
                    _ => sums.push((key, value.into())),
                }
            }
            found.keys.len() == sums.len()
                && found.keys.iter().copied().zip(found.values.iter().copied()).eq(sums)
        })?;
    }
    Ok(())
}

fn product(
    bench: &Bench<'_>,
    (key_type, tuples): (KeyType, u64),
    fill: f64,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let key_bytes = key_type.bytes() as u8;
    let lefts = (PRODUCT_RATIO * tuples).isqrt().next_power_of_two();
    let rights = (PRODUCT_RATIO * tuples).div_ceil(lefts);
    let left = made(bench, key_bytes, spread_keys(lefts, key_bytes))?;
    let right = made(bench, key_bytes, spread_keys(rights, key_bytes))?;
    let (key_name, size) = (key_type.to_string(), size_name(lefts * rights));
    let parts = [&key_name[..], &size, "right"];
    let asked = Asked { name: "product", parts, read_bytes: 0, beside: ("of_fill", fill) };
    let run = || {
        let both = (&left.relation, &right.relation);
        let answer = operators::product(&bench.stream, both, Combine::Right)?;
        Ok((answer.relation, answer.stages.total_ms()))
    };
    row(bench, report, &asked, run, |found| {
        let of = |at: usize| (left.keys[at / rights as usize], u64::from(right.values[at % rights as usize]));
        let all = found.keys.par_iter().zip(&found.values).enumerate();
        found.keys.len() as u64 == lefts * rights
            && all.into_par_iter().all(|(at, (&key, &value))| (key, value) == of(at))
    })
}
