//! The paper on relational algebra (Diamos et al. 2012): cycles of the five CTA-joins (Table 3), sizes of partitions,
//! tuples discarded and times (Figures 10 to 14), block streaming (Figures 15 and 16), the stages of JOIN (section
//! 5.1) with every CTA-join, dense and to pages (section 6.1), and the other operators (Figure 9).
//!
//! Keys are of 4 bytes, as the paper's tuples; values of JOIN and the SET family too. Bytes in and out are counted
//! once each, and rates are set beside a copy of the same run. Of random inputs half of the left keys are on the
//! right; aligned ones have the same keys. Values follow from keys, and all answers are compared with the CPU's. Times
//! are sums of stages on the device, without the allocations between them.

use crate::gpu::relation::{
    Column, Combine, CtaCycles, CtaJoin, Form, Merged, Operation, PaperOptions, Predicate, Projection,
    Relation, Stages, cta_join, merge, partition, product, project, select, stream_blocks, to_dense,
    to_pages,
};
use pleach_bench::BenchError;
use pleach_bench::data::{mix32, mix64};
use pleach_bench::gpu::tables::size_name;
use pleach_bench::gpu::{Bench, GpuReport, GpuRow, limits};
use pleach_bench::report::spread;
use pleach_gpu::{DeviceBuffer, GpuError};
use rayon::prelude::*;
use serde_json::json;
use zerocopy::IntoBytes;

/// Threads and inputs of Table 3: those of the paper, and of brute force its printed inputs too.
const TABLE_3_THREADS: u32 = 512;
const TABLE_3: [(CtaJoin, u64); 6] = [
    (CtaJoin::BinarySearch, 512),
    (CtaJoin::BlockedBinarySearch, 2048),
    (CtaJoin::BruteForce, 512),
    (CtaJoin::BruteForce, 1024),
    (CtaJoin::Hash, 2048),
    (CtaJoin::Network, 2048),
];
/// Of a hundred tuples of Table 3 so many match.
const TABLE_3_MATCHES: u64 = 42;
/// Partitions of Figures 10 to 14.
const PARTITIONS: u32 = 14_336;
/// Bytes of a block of Figures 15 and 16.
const BLOCK_BYTES: u32 = 1024;
/// Tuples of a page.
const PAGE_TUPLES: u32 = 1024;
/// Bars of a histogram.
const BARS: usize = 16;
/// Smallest key of the Pareto distributions.
const PARETO_LEAST: f64 = 1000.0;
/// CTAs of a SELECT for each multiprocessor.
const SELECT_BLOCKS: u32 = 16;

/// Sizes of the measurements.
#[derive(Clone, Debug)]
pub struct RelationSizes {
    /// Tuples of each input of Figures 10 to 16, ascending.
    pub swept: Vec<u64>,
    /// Tuples of each input of the operators.
    pub operators: Vec<u64>,
    /// Partitions of all of them.
    pub partitions: u32,
    /// CTA-joins that are measured.
    pub joins: Vec<CtaJoin>,
}

impl RelationSizes {
    /// Those of the paper, and 2^26; `quick` takes smaller ones.
    #[must_use]
    pub fn new(quick: bool) -> Self {
        Self {
            swept: if quick {
                vec![1 << 16, 1 << 20]
            } else {
                (13..=24).step_by(2).chain([24]).map(|k| 1 << k).collect()
            },
            operators: if quick { vec![1 << 20] } else { vec![1 << 24, 1 << 26] },
            partitions: PARTITIONS,
            joins: CtaJoin::ALL.to_vec(),
        }
    }

    /// Whether all of them can be measured.
    pub(super) fn are_possible(&self) -> bool {
        let mut all = self.swept.iter().chain(&self.operators);
        all.all(|size| (2..=1 << 30).contains(size)) && (1..=1 << 24).contains(&self.partitions)
    }
}

/// A number in (0, 1].
fn unit(i: u64) -> f64 {
    ((mix64(i) >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// How keys are distributed.
#[derive(Clone, Copy, Debug)]
enum Spread {
    Uniform,
    Normal,
    Pareto(i32),
}

impl Spread {
    const ALL: [Self; 6] =
        [Self::Uniform, Self::Normal, Self::Pareto(1), Self::Pareto(2), Self::Pareto(3), Self::Pareto(4)];

    fn name(self) -> String {
        match self {
            Self::Uniform => "uniform".to_owned(),
            Self::Normal => "normal".to_owned(),
            Self::Pareto(shape) => format!("pareto-{shape}"),
        }
    }

    /// Sorted keys, with whatever duplicates there are.
    fn keys(self, count: u64, seed: u64) -> Vec<u32> {
        let key = |i: u64| {
            let x = match self {
                Self::Uniform => unit(i) * f64::from(u32::MAX),
                Self::Normal => {
                    let radius = (-2.0 * unit(i).ln()).sqrt();
                    let angle = std::f64::consts::TAU * unit(i ^ 1 << 60);
                    radius.mul_add(angle.cos() * f64::from(1u32 << 28), f64::from(1u32 << 31))
                }
                Self::Pareto(shape) => PARETO_LEAST * unit(i).powf(-1.0 / f64::from(shape)),
            };
            x.clamp(0.0, u32::MAX.into()) as u32
        };
        let mut keys: Vec<u32> = (0..count).into_par_iter().map(|i| key(seed << 40 | i)).collect();
        keys.par_sort_unstable();
        keys
    }
}

fn upload(bench: &Bench<'_>, keys: &[u32], values: Option<&[u32]>) -> Result<Relation, GpuError> {
    let values = values.map(|values| (values.as_bytes(), 4));
    Relation::from_host(&bench.stream, (keys.as_bytes(), 4), values.as_slice())
}

fn download(bench: &Bench<'_>, buffer: &DeviceBuffer, count: u64) -> Result<Vec<u32>, GpuError> {
    let mut words = vec![0u32; count as usize];
    buffer.copy_to_host(&bench.stream, words.as_mut_bytes())?;
    Ok(words)
}

/// A row with a check of its answers.
fn checked(row: GpuRow, is_right: bool, what: &str) -> GpuRow {
    if is_right { row } else { row.with("error", format!("wrong {what}")).with("is_wrong", true) }
}

/// All rows.
pub(super) fn measure(
    bench: &Bench<'_>,
    sizes: &RelationSizes,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    if report.find("limit/copy").is_none() {
        bench.options.told.step("limits: copy")?;
        bench.push(report, limits::copy(bench)?)?;
    }
    let copy = report.find("limit/copy").and_then(|row| row.get("tb_per_s")).unwrap_or(f64::NAN);
    table_3(bench, sizes, report)?;
    for &tuples in &sizes.swept {
        for spread in Spread::ALL {
            partitions(bench, sizes.partitions, (spread, tuples), copy, report)?;
        }
    }
    for &tuples in &sizes.operators {
        for is_aligned in [false, true] {
            operators(bench, sizes, (tuples, is_aligned), copy, report)?;
        }
    }
    Ok(())
}

/// Two blocks of distinct keys, of which some match.
fn table_3_blocks(tuples: u64) -> (Vec<u32>, Vec<u32>) {
    let left: Vec<u32> = (0..tuples as u32).map(|i| i << 12 | mix32(i) & 0xFFE).collect();
    let matches = |i: usize| mix64(i as u64) % 100 < TABLE_3_MATCHES;
    let right = left.iter().enumerate().map(|(i, &key)| if matches(i) { key } else { key | 1 });
    let right = right.collect();
    (left, right)
}

/// Table 3: a CTA alone, and as many as the device runs.
fn table_3(bench: &Bench<'_>, sizes: &RelationSizes, report: &mut GpuReport) -> Result<(), BenchError> {
    let joins = &sizes.joins;
    for (join, tuples) in TABLE_3.into_iter().filter(|row| joins.contains(&row.0)) {
        bench.options.told.step(&format!("Table 3: {}, {tuples} tuples", join.name()))?;
        let (left, right) = table_3_blocks(tuples);
        let wanted: Vec<u32> =
            left.iter().zip(&right).filter(|(left, right)| left == right).map(|pair| *pair.0).collect();
        let sides = (upload(bench, &left, None)?, upload(bench, &right, None)?);
        let sides = (&sides.0, &sides.1);
        for (name, blocks) in [("alone", 1), ("full", 4 * bench.gpu.device().multiprocessors)] {
            let mut all = Vec::new();
            let mut is_right = true;
            for repetition in 0..=bench.options.repetitions {
                let (cycles, keys) = cta_join(&bench.stream, join, sides, TABLE_3_THREADS, blocks)?;
                is_right &= keys == wanted.as_bytes();
                is_right &= cycles.iter().all(|cta| cta.outputs == wanted.len() as u64);
                // The first launch loads the program.
                if repetition > 0 {
                    all.extend(cycles);
                }
            }
            let median = |of: fn(&CtaCycles) -> u64| {
                spread(&all.iter().map(|cycles| of(cycles) as f64).collect::<Vec<_>>()).0
            };
            let (joined, scan, compact) =
                (median(|cta| cta.join), median(|cta| cta.scan), median(|cta| cta.compact));
            let cycles = median(|cta| cta.join + cta.scan + cta.compact);
            let outputs = wanted.len().max(1) as f64;
            let row = GpuRow::new("relation-table-3", join.name(), &[&tuples.to_string(), name])
                .with("threads", TABLE_3_THREADS)
                .with("blocking", join.blocking())
                .with("inputs", tuples)
                .with("outputs", wanted.len())
                .with("ctas", blocks)
                .number("cycles", cycles)
                .number("join_cycles", joined)
                .number("scan_cycles", scan)
                .number("compact_cycles", compact)
                .number("cycles_per_output", cycles / outputs)
                .number("join_per_output", joined / outputs)
                .number("prefix_sum_per_output", (scan + compact) / outputs);
            bench.push(report, checked(row, is_right, "results of a CTA"))?;
        }
    }
    Ok(())
}

/// Left keys that the right side has, with all their tuples, by a merge.
fn partners(left: &[u32], right: &[u32]) -> u64 {
    let (mut at, mut count) = (0, 0);
    for &key in left {
        while at < right.len() && right[at] < key {
            at += 1;
        }
        count += u64::from(right.get(at) == Some(&key));
    }
    count
}

/// Figures 10 to 14, and 15 and 16, of a distribution and a size.
fn partitions(
    bench: &Bench<'_>,
    count: u32,
    (spread_of, tuples): (Spread, u64),
    copy: f64,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let (name, size) = (spread_of.name(), size_name(tuples));
    bench.options.told.step(&format!("Figures 10 to 16: {name}, {size}"))?;
    let (left, right) = (spread_of.keys(tuples, 1), spread_of.keys(tuples, 2));
    let sides = (upload(bench, &left, None)?, upload(bench, &right, None)?);
    let sides = (&sides.0, &sides.1);
    let mut searched = Vec::new();
    let mut bounded = Vec::new();
    let mut last = None;
    for _ in 0..=bench.options.repetitions {
        let found = partition(&bench.stream, sides, count, Operation::Join)?;
        searched.push(found.stages.ms("partition"));
        bounded.push(found.stages.ms("expected"));
        last = Some(found);
    }
    let Some(found) = last else { return Ok(()) };
    let sizes: Vec<u64> = found.ranges.iter().map(crate::gpu::relation::Range::tuples).collect();
    let (least, most) = (sizes.iter().copied().min().unwrap_or(0), sizes.iter().copied().max().unwrap_or(0));
    let mut bars = [0u64; BARS];
    for size in &sizes {
        bars[((size - least) * BARS as u64 / (most - least + 1)) as usize] += 1;
    }
    let part = |side: &[u32], from: u64, to: u64| side[from as usize..to as usize].to_vec();
    let kept = found.ranges.par_iter().map(|range| {
        partners(&part(&left, range.left, range.left_end), &part(&right, range.right, range.right_end))
    });
    let is_right = kept.sum::<u64>() == partners(&left, &right);
    let row = GpuRow::new("relation-partition", "double-sided", &[&name, &size])
        .with("partitions", count)
        .with("tuples", 2 * tuples)
        .with("least", least)
        .with("most", most)
        .number("mean", sizes.iter().sum::<u64>() as f64 / sizes.len().max(1) as f64)
        .with("histogram", json!(bars))
        .with("empty", sizes.iter().filter(|&&size| size == 0).count())
        .with("discarded", found.discarded)
        .number("us", spread(&searched[1..]).0 * 1e3)
        .number("bounds_us", spread(&bounded[1..]).0 * 1e3);
    bench.push(report, checked(row, is_right, "partitions: tuples that match are apart"))?;

    let options = PaperOptions {
        threads: 256,
        block_bytes: BLOCK_BYTES,
        partitions: count,
        ..PaperOptions::new(CtaJoin::BinarySearch)
    };
    let mut ms = Vec::new();
    let mut counted = None;
    for _ in 0..=bench.options.repetitions {
        let (found, stages) = stream_blocks(&bench.stream, sides, &options)?;
        ms.push(stages.ms("stream"));
        counted = Some(found);
    }
    let Some(counted) = counted else { return Ok(()) };
    let (median, ..) = spread(&ms[1..]);
    let streamed = 8 * tuples - 4 * found.discarded;
    let rate = streamed as f64 / median.max(1e-9) / 1e9;
    let row = GpuRow::new("relation-stream", "blocks", &[&name, &size])
        .with("block_bytes", BLOCK_BYTES)
        .with("bytes", streamed)
        .with("discarded_by_blocks", counted.discarded_by_blocks)
        .with("discarded_by_cuts", counted.discarded_by_cuts)
        .with("blocks", counted.blocks)
        .number("us", median * 1e3)
        .number("tb_per_s", rate)
        .number("of_copy", rate / copy);
    bench.push(report, row)
}

/// Two inputs on the device and on the host.
struct Inputs {
    left: Relation,
    right: Relation,
    left_keys: Vec<u32>,
    right_keys: Vec<u32>,
}

/// The value of a key on a side.
fn value_of(key: u32, side: u32) -> u32 {
    mix32(key ^ 0x5DEE_CE66 ^ side << 7)
}

impl Inputs {
    fn new(bench: &Bench<'_>, tuples: u64, is_aligned: bool) -> Result<Self, GpuError> {
        // A bijection of numbers, so keys are distinct.
        let keys = |first: u64| {
            let mut keys: Vec<u32> =
                (first..first + tuples).into_par_iter().map(|i| mix32(i as u32)).collect();
            keys.par_sort_unstable();
            keys
        };
        let (left_keys, right_keys) = (keys(1), keys(if is_aligned { 1 } else { 1 + tuples / 2 }));
        let side = |keys: &[u32], side: u32| {
            let values: Vec<u32> = keys.par_iter().map(|&key| value_of(key, side)).collect();
            upload(bench, keys, Some(&values))
        };
        let (left, right) = (side(&left_keys, 0)?, side(&right_keys, 1)?);
        Ok(Self { left, right, left_keys, right_keys })
    }

    /// Keys that an operation answers.
    fn wanted(&self, operation: Operation) -> Vec<u32> {
        let (left, right) = (&self.left_keys, &self.right_keys);
        let has = |side: &[u32], key: &u32| side.binary_search(key).is_ok();
        match operation {
            Operation::Join | Operation::Intersection => {
                left.par_iter().filter(|key| has(right, key)).copied().collect()
            }
            Operation::Difference => left.par_iter().filter(|key| !has(right, key)).copied().collect(),
            Operation::Union => {
                let mut all: Vec<u32> =
                    right.par_iter().filter(|key| !has(left, key)).chain(left.par_iter()).copied().collect();
                all.par_sort_unstable();
                all
            }
        }
    }

    /// Whether results have these keys and the values that follow from them.
    fn are_right(
        &self,
        bench: &Bench<'_>,
        operation: Operation,
        found: &Relation,
        wanted: &[u32],
    ) -> Result<bool, GpuError> {
        let (dense, _) = to_dense(&bench.stream, found)?;
        if dense.tuples() != wanted.len() as u64 {
            return Ok(false);
        }
        let mut is_right = download(bench, dense.keys(), dense.tuples())? == wanted;
        for (side, Column { buffer, .. }) in dense.columns().iter().enumerate() {
            let values = download(bench, buffer, dense.tuples())?;
            is_right &= values.par_iter().zip(wanted).all(|(&value, key)| {
                let is_left = operation != Operation::Union || self.left_keys.binary_search(key).is_ok();
                value == value_of(*key, if is_left { side as u32 } else { 1 })
            });
        }
        Ok(is_right)
    }
}

/// Medians of each stage of some runs.
fn stages_of(runs: &[Stages]) -> (Vec<(&'static str, f64)>, f64) {
    let Some(first) = runs.first() else { return (Vec::new(), f64::NAN) };
    let mut names: Vec<&'static str> = first.all.iter().map(|stage| stage.0).collect();
    names.dedup();
    let of = |name: &str| spread(&runs.iter().map(|run| run.ms(name)).collect::<Vec<_>>()).0;
    let total = spread(&runs.iter().map(Stages::total_ms).collect::<Vec<_>>()).0;
    (names.into_iter().map(|name| (name, of(name))).collect(), total)
}

/// A row of stages, of which the first run does not count.
fn stage_row(row: GpuRow, runs: &[Stages], (tuples, bytes): (u64, u64), copy: f64) -> GpuRow {
    let (stages, total) = stages_of(runs.get(1..).unwrap_or(runs));
    let rate = bytes as f64 / total.max(1e-9) / 1e9;
    let mut row = row
        .with("bytes", bytes)
        .number("ms", total)
        .number("g_per_s", tuples as f64 / total.max(1e-9) / 1e6)
        .number("tb_per_s", rate)
        .number("of_copy", rate / copy);
    for (name, ms) in stages {
        row.set(&format!("{name}_ms"), ms);
        row.set(&format!("{name}_share"), ms / total);
    }
    row
}

/// JOIN by every CTA-join, dense and to pages, and the other operators.
fn operators(
    bench: &Bench<'_>,
    of: &RelationSizes,
    (tuples, is_aligned): (u64, bool),
    copy: f64,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    let size = size_name(tuples);
    let kind = if is_aligned { "aligned" } else { "random" };
    bench.options.told.step(&format!("JOIN and the SET family: {kind}, {size}: making keys"))?;
    let inputs = Inputs::new(bench, tuples, is_aligned)?;
    for operation in Operation::ALL {
        let wanted = inputs.wanted(operation);
        // UNION has a way of its own; of the others of the SET family one CTA-join will do.
        let joins = match operation {
            Operation::Join => &of.joins[..],
            _ => of.joins.last().map_or(&[][..], std::slice::from_ref),
        };
        for &join in joins {
            for (form, form_name) in [(Form::Dense, "dense"), (Form::Pages(PAGE_TUPLES), "pages")] {
                bench.options.told.step(&format!(
                    "{} by {}: {kind}, {size}",
                    operation.name(),
                    join.name()
                ))?;
                let partitions = of.partitions;
                let options = PaperOptions { form, partitions, ..PaperOptions::new(join) };
                let mut runs = Vec::new();
                let mut last: Option<Merged> = None;
                for _ in 0..=bench.options.repetitions {
                    drop(last.take());
                    let merged = merge(&bench.stream, operation, (&inputs.left, &inputs.right), &options)?;
                    runs.push(merged.stages.clone());
                    last = Some(merged);
                }
                let Some(merged) = last else { continue };
                let engine = if operation == Operation::Union { "binary-search" } else { join.name() };
                let parts = ["u32", &size, kind, form_name];
                let row = GpuRow::new(&format!("relation-{}", operation.name()), engine, &parts)
                    .with("outputs", wanted.len())
                    .with("is_retried", merged.is_retried)
                    .with("discarded_by_blocks", merged.counted.discarded_by_blocks)
                    .with("blocks", merged.counted.blocks)
                    .with("pages", merged.relation.pages().map(|list| list.pages));
                let bytes = inputs.left.bytes() + inputs.right.bytes() + merged.relation.bytes();
                let row = stage_row(row, &runs, (2 * tuples, bytes), copy);
                let is_right = inputs.are_right(bench, operation, &merged.relation, &wanted)?;
                bench.push(report, checked(row, is_right, "results"))?;
            }
        }
    }
    if is_aligned { Ok(()) } else { unary(bench, &inputs, &size, copy, report) }
}

/// Times some runs of an operator, and gives the last answer.
fn runs<T>(
    bench: &Bench<'_>,
    mut run: impl FnMut() -> Result<(T, Stages), GpuError>,
) -> Result<(Option<T>, Vec<Stages>), BenchError> {
    let (mut last, mut all) = (None, Vec::new());
    for _ in 0..=bench.options.repetitions {
        // Two answers at a time may be more than the device has.
        drop(last.take());
        let (made, stages) = run()?;
        last = Some(made);
        all.push(stages);
    }
    Ok((last, all))
}

/// SELECT of half of the tuples, PROJECT, PRODUCT, and conversions.
fn unary(
    bench: &Bench<'_>,
    inputs: &Inputs,
    size: &str,
    copy: f64,
    report: &mut GpuReport,
) -> Result<(), BenchError> {
    bench.options.told.step(&format!("SELECT, PROJECT, PRODUCT, pages: {size}"))?;
    let (stream, from, keys) = (&bench.stream, &inputs.left, &inputs.left_keys);
    let tuples = from.tuples();
    let half = Predicate { low: 0, high: u64::MAX, mask: 1, bits: 0 };
    let taken: Vec<u32> = keys.par_iter().filter(|&key| key & 1 == 0).copied().collect();
    let blocks = SELECT_BLOCKS * bench.gpu.device().multiprocessors;
    for (form, name) in [(Form::Dense, "dense"), (Form::Pages(PAGE_TUPLES), "pages")] {
        let (last, all) = runs(bench, || {
            let merged = select(stream, from, &half, blocks, form)?;
            Ok((merged.relation, merged.stages))
        })?;
        let Some(found) = last else { continue };
        let row = GpuRow::new("relation-select", "compact", &["u32", size, "50%", name]);
        let row = stage_row(row, &all, (tuples, from.bytes() + found.bytes()), copy);
        let is_right = inputs.are_right(bench, Operation::Difference, &found, &taken)?;
        bench.push(report, checked(row, is_right, "tuples"))?;
    }

    let narrowed = Projection { key_shift: 8, has_values: false, value_shift: 0, value_mask: 0 };
    let (last, all) = runs(bench, || project(stream, from, &narrowed))?;
    if let Some(found) = last {
        let row = GpuRow::new("relation-project", "keys", &["u32", size]);
        // Values are not read.
        let row = stage_row(row, &all, (tuples, 4 * tuples + found.bytes()), copy);
        let found = download(bench, found.keys(), found.tuples())?;
        let is_right = found.par_iter().zip(keys).all(|(&found, &key)| found == key >> 8);
        bench.push(report, checked(row, is_right, "keys"))?;
    }

    let side = tuples.isqrt();
    let few = upload(bench, &keys[..side as usize], Some(&keys[..side as usize]))?;
    let (last, all) = runs(bench, || product(stream, (&few, &few), Combine::Sum))?;
    if let Some(found) = last {
        let row = GpuRow::new("relation-product", "sums", &["u32", size]);
        let row = stage_row(row, &all, (found.tuples(), found.bytes()), copy);
        let sums = match found.columns().first() {
            Some(column) => download(bench, &column.buffer, found.tuples())?,
            None => Vec::new(),
        };
        let sum = |at: usize| keys[at / side as usize].wrapping_add(keys[at % side as usize]);
        let is_right = sums.len() as u64 == side * side
            && sums.par_iter().enumerate().all(|(at, &found)| found == sum(at));
        bench.push(report, checked(row, is_right, "sums"))?;
    }

    let (paged, all) = runs(bench, || to_pages(stream, from, PAGE_TUPLES))?;
    let Some(paged) = paged else { return Ok(()) };
    let row = GpuRow::new("relation-pages", "from-dense", &["u32", size]);
    bench.push(report, stage_row(row, &all, (tuples, 2 * from.bytes()), copy))?;
    let (dense, all) = runs(bench, || to_dense(stream, &paged))?;
    let Some(dense) = dense else { return Ok(()) };
    let row = GpuRow::new("relation-pages", "to-dense", &["u32", size]);
    let row = stage_row(row, &all, (tuples, 2 * from.bytes()), copy);
    let is_right = inputs.are_right(bench, Operation::Difference, &dense, keys)?;
    bench.push(report, checked(row, is_right, "tuples"))
}
