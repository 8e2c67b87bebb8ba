//! Segmented reduction in one pass: kernels/reduce_few.cu, and kernels/reduce.cu if runs turn out to be
//! short.
//!
//! Sums of signed numbers of 8 bytes are first tried in 64 bits. If a partial sum does not fit, high and low
//! halves are summed separately, which cannot fail, and then joined, so that only a total that does not fit
//! is an error.

use super::condition::Condition;
use super::dense::Relation;
use super::job::{Job, Stages};
use super::onepass::{ONE_PASS_TEXT, tiles_ahead};
use super::operator::{Answer, Input, Output};
use super::select::select;
use crate::driver::LaunchShape;
use crate::kernel::{Instance, SourceSpec, Text};
use crate::memory::DeviceBuffer;
use crate::{GpuError, Stream};

/// Threads per block: REDUCERS in reduce.cu.
const THREADS: u32 = 512;
/// Tuples per tile: TILE in reduce.cu.
const TILE: u32 = THREADS * 8;
/// Threads per block and tuples per tile: REDUCERS and TILE in reduce_few.cu.
const FEW_THREADS: u32 = 256;
const FEW_TILE: u32 = FEW_THREADS * 8 * 4;
/// Content of `failed` while no tuple has failed.
const NOBODY: u64 = u64::MAX;

/// Reduction of the values of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their sum: of integers in 64 bits, of floats as f64.
    Sum,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The number of values, u64.
    Count,
    /// The first value.
    First,
}

/// Type of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Numbers {
    /// u32 or u64.
    Unsigned,
    /// i32 or i64.
    Signed,
    /// f32 or f64.
    Float,
}

/// KIND_... in reduce.cu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Full,
    Extended,
    LowHalf,
    OrderedFloat,
}

const REDUCE_TEXT: Text = Text { name: "reduce.cuh", text: include_str!("../kernels/reduce.cuh") };

/// Returns the row of a text of reductions.
const fn row(name: &'static str, text: &'static str) -> SourceSpec {
    SourceSpec {
        shared: &[ONE_PASS_TEXT, REDUCE_TEXT],
        has_value_width: true,
        numbers: |_| vec![("BYTES_OF_REDUCE", size_of::<Reduce>() as u64)],
        ..SourceSpec::new(name, text).narrow()
    }
}

crate::kernel! {
    /// Segmented reduction in one pass.
    REDUCE = row("reduce.cu", include_str!("../kernels/reduce.cu"));
    /// Sums of the values of each key, modulo 2^64, or their counts.
    reduce_sum(reduce: Reduce);
    /// Sums of floats.
    reduce_float(reduce: Reduce) if |instance| instance.value_bytes > 0;
    /// Smallest or largest values.
    reduce_least(reduce: Reduce) if |instance| instance.value_bytes > 0;
    /// Sums, with a check that each fits.
    reduce_checked(reduce: Reduce) if |instance| instance.value_bytes == 8;
    /// Joins sums of both halves.
    reduce_join(high: u64, low: u64, count: u32, failed: u64) if |instance| instance.value_bytes == 8;
}

crate::kernel! {
    /// Segmented reduction in one pass, where runs are not short.
    REDUCE_FEW = row("reduce_few.cu", include_str!("../kernels/reduce_few.cu"));
    /// As `reduce_sum`, where runs are not short.
    few_sum(reduce: Reduce);
    /// As `reduce_float`, where runs are not short.
    few_float(reduce: Reduce) if |instance| instance.value_bytes > 0;
    /// As `reduce_least`, where runs are not short.
    few_least(reduce: Reduce) if |instance| instance.value_bytes > 0;
    /// As `reduce_checked`, where runs are not short.
    few_checked(reduce: Reduce) if |instance| instance.value_bytes == 8;
}

/// Arguments of the reductions; the same as in reduce.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Reduce {
    keys: u64,
    values: u64,
    keys_to: u64,
    values_to: u64,
    told: u64,
    carried: u64,
    failed: u64,
    flip: u64,
    tuples: u32,
    ahead: u32,
    is_aligned: u32,
    kind: u32,
    shift: u32,
    to_bytes: u32,
}

/// Entry of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Sum,
    Float,
    Least,
    Checked,
}

/// Parameters that differ between launches.
#[derive(Clone, Copy, Debug)]
struct Way {
    entry: Entry,
    kind: Kind,
    flip: u64,
    shift: u32,
}

/// Returns the blocks per multiprocessor: REDUCER_BLOCKS in reduce_few.cu.
fn few_blocks(key_bytes: u8, value_bytes: u8) -> u32 {
    match key_bytes + value_bytes {
        0..=8 => 4,
        9..=12 => 3,
        _ => 2,
    }
}

/// An operator under way, without the parameters that differ between launches.
struct Reducer<'j, 's> {
    job: &'j mut Job<'s>,
    stream: &'s Stream,
    reduce: Reduce,
    key_bytes: u8,
    value_bytes: u8,
    told: DeviceBuffer,
    carried: DeviceBuffer,
    failed: DeviceBuffer,
    /// True if runs have turned out to be short.
    is_crowded: bool,
    /// Number of results of the last run.
    results: u64,
}

impl Reducer<'_, '_> {
    fn run(&mut self, way: Way) -> Result<(), GpuError> {
        if !self.is_crowded {
            self.launch(way, true)?;
            let tiles = u64::from(self.reduce.tuples.div_ceil(FEW_TILE));
            // After the count follow tickets, then a flag: a warp had more results than there is room for.
            self.is_crowded = self.job.number(&self.told, tiles + 2)? != 0;
            if !self.is_crowded {
                self.results = self.job.number(&self.told, tiles)?;
                return Ok(());
            }
        }
        self.launch(way, false)?;
        self.results = self.job.number(&self.told, self.reduce.tuples.div_ceil(TILE).into())?;
        Ok(())
    }

    fn launch(&mut self, way: Way, is_few: bool) -> Result<(), GpuError> {
        let Self { job, stream, reduce, told, carried, failed, .. } = self;
        let reduce = Reduce { kind: way.kind as u32, flip: way.flip, shift: way.shift, ..*reduce };
        let source = if is_few { &REDUCE_FEW } else { &REDUCE };
        let instance = Instance::new(source, self.key_bytes, self.value_bytes);
        let tiles = reduce.tuples.div_ceil(if is_few { FEW_TILE } else { TILE });
        let shape = if is_few {
            let most = stream.gpu().device().multiprocessors * few_blocks(self.key_bytes, self.value_bytes);
            LaunchShape { blocks: tiles.min(most), threads: FEW_THREADS, shared_bytes: 0 }
        } else {
            LaunchShape { blocks: tiles, threads: THREADS, shared_bytes: 0 }
        };
        job.stage("reduce", || {
            told.part(0, words_told(tiles) * 8).fill(stream, 0)?;
            carried.part(0, u64::from(tiles) * 16).fill(stream, 0)?;
            if way.entry == Entry::Checked {
                failed.fill(stream, 0xFF)?;
            }
            // SAFETY: there is room for a result of every tuple, and for the state of each tile; the job
            // keeps what was made, and the caller the relation.
            unsafe {
                match (way.entry, is_few) {
                    (Entry::Sum, true) => few_sum(stream, instance, shape, &reduce),
                    (Entry::Float, true) => few_float(stream, instance, shape, &reduce),
                    (Entry::Least, true) => few_least(stream, instance, shape, &reduce),
                    (Entry::Checked, true) => few_checked(stream, instance, shape, &reduce),
                    (Entry::Sum, false) => reduce_sum(stream, instance, shape, &reduce),
                    (Entry::Float, false) => reduce_float(stream, instance, shape, &reduce),
                    (Entry::Least, false) => reduce_least(stream, instance, shape, &reduce),
                    (Entry::Checked, false) => reduce_checked(stream, instance, shape, &reduce),
                }
            }
        })
    }

    /// Joins sums of halves, after [`Entry::Checked`] failed. Exact.
    fn halves(&mut self) -> Result<(), GpuError> {
        let half = |kind, shift| Way { entry: Entry::Sum, kind, flip: 0, shift };
        let high = self.reduce.values_to;
        let low = self.job.buffer(u64::from(self.reduce.tuples) * 8)?;
        self.reduce.values_to = low.address();
        self.run(half(Kind::LowHalf, 0))?;
        self.reduce.values_to = high;
        self.run(half(Kind::Full, 32))?;
        let tuples = self.results as u32;
        let instance = Instance::new(&REDUCE, self.key_bytes, self.value_bytes);
        let shape = LaunchShape { blocks: tuples.div_ceil(THREADS), threads: THREADS, shared_bytes: 0 };
        let (stream, low_at, failed_at) = (self.stream, low.address(), self.failed.address());
        self.job.stage("join", || {
            self.failed.fill(stream, 0xFF)?;
            // SAFETY: there are as many sums of either half; the job keeps them.
            unsafe { reduce_join(stream, instance, shape, &high, &low_at, &tuples, &failed_at) }
        })
    }
}

/// Returns the number of words for the tile states, with the words after them.
fn words_told(tiles: u32) -> u64 {
    u64::from(tiles) + 3
}

/// Returns the key at a place of a column.
fn key_at(
    job: &Job<'_>,
    stream: &Stream,
    (keys, key_bytes): (&DeviceBuffer, u8),
    at: u64,
) -> Result<u64, GpuError> {
    if key_bytes == 8 {
        return job.number(keys, at);
    }
    let mut bytes = [0; 4];
    keys.part(at * 4, 4).copy_to_host(stream, &mut bytes)?;
    Ok(u32::from_le_bytes(bytes).into())
}

/// Reduces the tuples of each key to one tuple. Reads and writes once; room is made for as many results as
/// tuples. Blocks. Times: `reduce`, twice where runs turn out to be short, and again, followed by `join`, for
/// signed sums of which a part does not fit; or `select` for [`Reduction::First`].
///
/// Only keys and places of the tuples determine the order in which floats are added. The smallest and largest
/// floats are those of the total order.
///
/// # Errors
/// [`GpuError::Sum`] if a sum does not fit into 64 bits; [`GpuError::Operator`] for more than 2^31
/// tuples, or if values are absent; [`GpuError::Memory`] if the results do not fit; [`GpuError::Driver`] if a
/// driver call fails.
pub fn reduce(
    stream: &Stream,
    from: &Relation,
    reduction: Reduction,
    numbers: Numbers,
) -> Result<Answer, GpuError> {
    let (key_bytes, input_bytes) = (from.key_bytes(), from.value_bytes());
    if input_bytes == 0 && reduction != Reduction::Count {
        let cause = "a relation without values: only its tuples can be counted".into();
        return Err(GpuError::Operator { operator: "reduce", cause });
    }
    if reduction == Reduction::First {
        return select(stream, from, &Condition::Firsts);
    }
    let input = Input::new("reduce", from)?;
    let gpu = stream.gpu();
    let value_bytes = if reduction == Reduction::Count { 0 } else { input_bytes };
    let to_bytes = match reduction {
        Reduction::Sum | Reduction::Count => 8,
        Reduction::Min | Reduction::Max | Reduction::First => value_bytes,
    };
    let mut job = Job::new(stream);
    let output = Output::new(&mut job, gpu, [key_bytes, to_bytes], input.tuples.into())?;
    if input.tuples == 0 {
        return Ok(Answer { relation: output.relation(0)?, stages: Stages::default() });
    }
    let tiles = input.tuples.div_ceil(TILE);
    let (told, carried) = (job.buffer(words_told(tiles) * 8)?, job.buffer(u64::from(tiles) * 16)?);
    let failed = job.buffer(8)?;
    let sign = 1 << (8 * u32::from(value_bytes.max(1)) - 1);
    let way = |entry, kind, flip| Way { entry, kind, flip, shift: 0 };
    let chosen = match (reduction, numbers) {
        (Reduction::Count, _) => way(Entry::Sum, Kind::Full, 0),
        (Reduction::Sum, Numbers::Float) => way(Entry::Float, Kind::Full, 0),
        (Reduction::Sum, numbers) => {
            let kind = if numbers == Numbers::Signed { Kind::Extended } else { Kind::Full };
            way(if value_bytes == 8 { Entry::Checked } else { Entry::Sum }, kind, 0)
        }
        (least, numbers) => {
            let (kind, flip) = match numbers {
                Numbers::Unsigned => (Kind::Full, 0),
                Numbers::Signed => (Kind::Full, sign),
                Numbers::Float => (Kind::OrderedFloat, 0),
            };
            way(Entry::Least, kind, if least == Reduction::Max { !flip } else { flip })
        }
    };
    let reduce = Reduce {
        keys: input.keys,
        values: input.values,
        keys_to: output.keys.address(),
        values_to: output.values(),
        told: told.address(),
        carried: carried.address(),
        failed: failed.address(),
        flip: 0,
        tuples: input.tuples,
        ahead: tiles_ahead(gpu),
        is_aligned: input.is_aligned.into(),
        kind: 0,
        shift: 0,
        to_bytes: to_bytes.into(),
    };
    let mut reducer = Reducer {
        job: &mut job,
        stream,
        reduce,
        key_bytes,
        value_bytes,
        told,
        carried,
        failed,
        is_crowded: false,
        results: 0,
    };
    reducer.run(chosen)?;
    if chosen.entry == Entry::Checked {
        let rank = reducer.job.number(&reducer.failed, 0)?;
        if rank != NOBODY && chosen.kind == Kind::Full {
            return Err(GpuError::Sum { key: key_at(&job, stream, (from.keys(), key_bytes), rank)? });
        }
        if rank != NOBODY {
            reducer.halves()?;
            let place = reducer.job.number(&reducer.failed, 0)?;
            if place != NOBODY {
                return Err(GpuError::Sum { key: key_at(&job, stream, (&output.keys, key_bytes), place)? });
            }
        }
    }
    let tuples = reducer.results;
    Ok(Answer { relation: output.relation(tuples)?, stages: job.end()? })
}
