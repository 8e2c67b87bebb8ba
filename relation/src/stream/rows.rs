//! Operators of one input: select, project, reduce.
//!
//! Chunks are ranges of ranks. For a sum of floats they begin at multiples of a block. A key that continues
//! from the chunk before has a partial result for each of its blocks, so the sum is that of the blocks in
//! order, wherever chunks end. Sums of integers are held in 128 bits until their key ends: only a total that
//! does not fit is refused.

use super::answer::{Answer, Produced, Producer, Wanted, next_pieces};
use super::chunk::{Chunk, Schema};
use super::columns::take;
use super::device::{Device, Task, answered_by, checked};
use super::folds::Folds;
use super::input::Relation;
use super::options::StreamOptions;
use crate::error::RelationError;
use crate::expr;
use crate::memory::BLOCK_TUPLES;
use crate::rules::{Aggregate, Reduction};
use rayon::prelude::*;
use std::collections::VecDeque;
use std::ops::Range;

/// One bit per tuple of a chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    bits: usize,
}

impl Bitmap {
    /// Makes a bitmap of `bits` bits, none set.
    #[must_use]
    pub fn new(bits: usize) -> Self {
        Self { words: vec![0; bits.div_ceil(64)], bits }
    }

    /// Number of bits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bits
    }

    /// Returns true if there are no bits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bits == 0
    }

    /// Sets or clears a bit.
    ///
    /// # Panics
    /// If `at` is past the last word.
    #[inline]
    pub fn set(&mut self, at: usize, value: bool) {
        let word = &mut self.words[at / 64];
        *word = *word & !(1 << (at % 64)) | u64::from(value) << (at % 64);
    }

    /// Returns the words: bit `i % 64` of word `i / 64` belongs to tuple `i`; bits after the last tuple have
    /// no meaning.
    #[must_use]
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Returns the tuples of a chunk whose bits are set.
    fn kept(&self, chunk: &Chunk) -> Chunk {
        let is_set = |at: &usize| self.words[at / 64] >> (at % 64) & 1 == 1;
        let rows: Vec<u32> = (0..self.bits).filter(is_set).map(|at| at as u32).collect();
        Chunk { keys: take(&chunk.keys, &rows), values: take(&chunk.values, &rows), ..Chunk::default() }
    }
}

/// A condition that selects tuples. Called from several threads.
pub trait Predicate: Sync {
    /// Sets the bit of each tuple of the chunk that is kept; no bit is set before the call.
    ///
    /// # Errors
    /// Any error of the evaluation; it ends the operator.
    fn evaluate(&self, chunk: &Chunk, keep: &mut Bitmap) -> Result<(), RelationError>;

    /// Returns the condition as an expression, if it is one; others are evaluated only by the CPU.
    fn condition(&self) -> Option<&expr::Predicate> {
        None
    }
}

/// A function that makes new tuples. Called from several threads.
pub trait Projection: Sync {
    /// Returns the schema of the result; [`Schema::is_sorted`] specifies whether the order is kept.
    ///
    /// # Errors
    /// Any mismatch between the projection and the input.
    fn schema(&self, input: &Schema) -> Result<Schema, RelationError>;
    /// Makes the new keys and values, equally many of both.
    ///
    /// # Errors
    /// Any error of the evaluation; it ends the operator.
    fn map(&self, chunk: &Chunk) -> Result<Chunk, RelationError>;

    /// Returns the projection as a list of columns, if it is one; others are made only by the CPU.
    fn columns(&self) -> Option<&expr::Projection> {
        None
    }
}

/// Makes a chunk of the result from a chunk of the input.
type Map<'a> = dyn Fn(Chunk) -> Result<Chunk, RelationError> + Send + Sync + 'a;

/// What becomes of chunks.
enum Work<'a> {
    Map(Box<Map<'a>>),
    /// Results of reductions, and which make those of a chunk: a key may continue in the next one.
    Fold(Folds, Box<Reduce<'a>>),
}

/// Makes the results of each reduction from a chunk of the input.
type Reduce<'a> = dyn Fn(&Folds, Chunk) -> Result<Vec<Chunk>, RelationError> + Send + Sync + 'a;

impl Work<'_> {
    fn has_blocks(&self) -> bool {
        match self {
            Self::Map(_) => false,
            Self::Fold(folds, _) => folds.has_blocks(),
        }
    }

    fn of(&self, chunk: Chunk) -> Result<Vec<Chunk>, RelationError> {
        match self {
            Self::Map(map) => Ok(vec![map(chunk)?]),
            Self::Fold(folds, reduce) => reduce(folds, chunk),
        }
    }
}

/// A running operator of one input.
struct One<'a> {
    input: Relation<'a>,
    /// Ranks that remain to be read, ascending.
    ranges: VecDeque<Range<u64>>,
    done: u64,
    tuples: u64,
    /// Bytes of strings per chunk.
    bytes: u64,
    work: Work<'a>,
    /// The last key of reductions, which may continue in the next chunk.
    carried: Option<Vec<Chunk>>,
}

impl One<'_> {
    fn range(&mut self) -> Result<Option<Range<u64>>, RelationError> {
        let Some(front) = self.ranges.front_mut() else { return Ok(None) };
        let from = front.start;
        let most = front.end.min(from.saturating_add(self.tuples));
        let mut to = self.input.within(from..most, self.bytes)?;
        if to < most && self.work.has_blocks() {
            let blocks = ((to - from) / BLOCK_TUPLES as u64).max(1);
            to = most.min(from + blocks * BLOCK_TUPLES as u64);
        }
        front.start = to;
        if front.is_empty() {
            self.ranges.pop_front();
        }
        self.done += to - from;
        Ok(Some(from..to))
    }
}

impl Producer for One<'_> {
    fn next(&mut self, _: Wanted) -> Result<Option<Vec<Produced>>, RelationError> {
        let ranges = next_pieces(|| self.range())?;
        let this = &*self;
        let chunks: Vec<Result<Vec<Chunk>, RelationError>> = ranges
            .par_iter()
            .map(|range| {
                let (keys, values) = this.input.read(range.clone(), true)?;
                this.work.of(Chunk { keys, values, first_rank: range.start, ..Chunk::default() })
            })
            .collect();
        let chunks: Vec<Vec<Chunk>> = chunks.into_iter().collect::<Result<_, _>>()?;
        let Work::Fold(folds, _) = &self.work else {
            let produced: Vec<Produced> = chunks.into_iter().flatten().map(Produced::Chunk).collect();
            return Ok((!produced.is_empty()).then_some(produced));
        };
        if chunks.is_empty() {
            let last = self.carried.take().map(|chunks| folds.finished(chunks)).transpose()?;
            return Ok(last.map(|chunk| vec![Produced::Chunk(chunk)]));
        }
        let mut produced = Vec::with_capacity(chunks.len());
        for chunks in chunks {
            let (whole, carried) = folds.carry(self.carried.take(), chunks);
            self.carried = carried;
            produced.push(Produced::Chunk(folds.finished(whole)?));
        }
        Ok(Some(produced))
    }

    fn done(&self) -> u64 {
        self.done
    }
}

fn one<'a>(
    (input, ranges): (Relation<'a>, Vec<Range<u64>>),
    schema: Schema,
    plan: &str,
    (options, device): (StreamOptions<'a>, Option<&'a dyn Device>),
    work: Work<'a>,
) -> Answer<'a> {
    let ranges: VecDeque<Range<u64>> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
    let total = ranges.iter().map(|range| range.end - range.start).sum();
    let (tuples, bytes) = (options.tuples(device), options.piece_bytes as u64);
    let is_folded = work.has_blocks() && device.is_none();
    let tuples = if is_folded { tuples.div_ceil(BLOCK_TUPLES) * BLOCK_TUPLES } else { tuples } as u64;
    let plan = format!("{plan}: {total} tuples in pieces of {tuples}{}", answered_by(device));
    let producer = Box::new(One { input, ranges, done: 0, tuples, bytes, work, carried: None });
    Answer::new(schema, producer, plan, (total, tuples))
}

/// Selects the tuples that a predicate keeps.
///
/// # Errors
/// [`RelationError::Damaged`], [`RelationError::NoDevice`].
pub fn select<'a>(
    input: Relation<'a>,
    predicate: &'a (dyn Predicate + 'a),
    options: StreamOptions<'a>,
) -> Result<Answer<'a>, RelationError> {
    if let Some(condition) = predicate.condition() {
        return select_where(input, condition, options);
    }
    only_here(options, "a predicate of the program's own")?;
    let work = move |chunk: Chunk| {
        let mut keep = Bitmap::new(chunk.len());
        predicate.evaluate(&chunk, &mut keep)?;
        Ok(keep.kept(&chunk))
    };
    Ok(one((input, whole(&input)), input.schema()?, "select", (options, None), Work::Map(Box::new(work))))
}

/// Refuses devices for an operation that none can do.
fn only_here(options: StreamOptions<'_>, what: &str) -> Result<(), RelationError> {
    match options.device {
        None => Ok(()),
        Some(device) => Err(RelationError::NoDevice { what: what.to_owned(), device: device.name() }),
    }
}

/// Returns all ranks of an input.
#[allow(clippy::single_range_in_vec_init)]
fn whole(input: &Relation<'_>) -> Vec<Range<u64>> {
    vec![0..input.len()]
}

/// Selects the tuples for which a condition holds. Reads only ranks for which it can hold, and does not
/// evaluate it if these ranks are the answer.
///
/// # Errors
/// [`RelationError::Damaged`], [`RelationError::NoDevice`]; the answer may also fail with
/// [`RelationError::Expression`].
pub fn select_where<'a>(
    input: Relation<'a>,
    condition: &'a expr::Predicate,
    options: StreamOptions<'a>,
) -> Result<Answer<'a>, RelationError> {
    let schema = input.schema()?;
    let (types, task) = (input.types(), Task::Select(condition));
    let device = checked(options.device, task, types, None)?;
    let ranges = condition.ranks(
        input.len(),
        |point| input.verified_bound(point, false),
        |point| input.verified_bound(point, true),
    )?;
    let work = move |chunk: Chunk| {
        if condition.is_exact() {
            return Ok(Chunk { first_rank: 0, ..chunk });
        }
        if let Some(device) = device
            && let Some(answer) = device.one(task, types, &chunk)?
        {
            return Ok(answer);
        }
        let mut keep = Bitmap::new(chunk.len());
        condition.evaluate_into(&chunk, &mut keep)?;
        Ok(keep.kept(&chunk))
    };
    Ok(one((input, ranges), schema, "select", (options, device), Work::Map(Box::new(work))))
}

/// Replaces keys and values. If the new keys are out of order, [`Schema::is_sorted`] is false, and writing an
/// index file sorts them.
///
/// # Errors
/// [`RelationError::Damaged`], [`RelationError::NoDevice`], and those of the projection.
pub fn project<'a>(
    input: Relation<'a>,
    projection: &'a (dyn Projection + 'a),
    options: StreamOptions<'a>,
) -> Result<Answer<'a>, RelationError> {
    let schema = projection.schema(&input.schema()?)?;
    let types = input.types();
    let device = match projection.columns() {
        Some(columns) => checked(options.device, Task::Project(columns), types, None)?.zip(Some(columns)),
        None => only_here(options, "a projection of the program's own").map(|()| None)?,
    };
    let work = move |chunk: Chunk| {
        if let Some((device, columns)) = device
            && let Some(answer) = device.one(Task::Project(columns), types, &chunk)?
        {
            return Ok(answer);
        }
        projection.map(&chunk)
    };
    let device = device.map(|device| device.0);
    Ok(one((input, whole(&input)), schema, "project", (options, device), Work::Map(Box::new(work))))
}

/// Reduces the input to one tuple per key: [`aggregate`] of one reduction of whole values.
///
/// # Errors
/// Those of [`aggregate`].
pub fn reduce<'a>(
    input: Relation<'a>,
    operation: Reduction,
    options: StreamOptions<'a>,
) -> Result<Answer<'a>, RelationError> {
    aggregate(input, &[operation.into()], options)
}

/// Reduces the input to one tuple per key. The value is the result of the reduction, or a record of several: their
/// fields are named by [`Aggregate::name`].
///
/// # Errors
/// [`RelationError::NoReduction`] if a reduction is not defined for the values, [`RelationError::NoField`],
/// [`RelationError::Reductions`], [`RelationError::Damaged`], [`RelationError::NoDevice`]; sums that do not fit end the
/// answer with [`RelationError::Overflow`].
pub fn aggregate<'a>(
    input: Relation<'a>,
    aggregates: &[Aggregate],
    options: StreamOptions<'a>,
) -> Result<Answer<'a>, RelationError> {
    let schema = Schema { is_interval: false, ..input.exact_schema(&options)? };
    let (folds, schema) = Folds::new(aggregates, &input, schema)?;
    let alone = folds.alone().map(|fold| (fold, Task::Reduce(fold.operation)));
    let types = input.types();
    let device = match alone {
        Some((_, task)) => checked(options.device, task, types, None)?,
        None => only_here(options, "reductions of fields").map(|()| None)?,
    };
    let work = move |folds: &Folds, chunk: Chunk| {
        if let (Some(device), Some((fold, task))) = (device, alone)
            && let Some(answer) = device.one(task, types, &chunk)?
        {
            return Ok(vec![fold.widened(answer)]);
        }
        folds.chunks(&chunk)
    };
    let names: Vec<String> = aggregates.iter().map(Aggregate::name).collect();
    let work = Work::Fold(folds, Box::new(work));
    Ok(one((input, whole(&input)), schema, &names.join(","), (options, device), work))
}
