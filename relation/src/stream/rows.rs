//! Operators of one input: select, project, reduce.
//!
//! Chunks are ranges of ranks. For a sum of floats they begin at multiples of a block. A key that continues
//! from the chunk before has a partial result for each of its blocks, so the sum is that of the blocks in
//! order, wherever chunks end. Sums of integers are held in 128 bits until their key ends: only a total that
//! does not fit is refused.

use super::device::{Device, Task, checked};
use super::input::{AnyKey, Relation, slice};
use super::matched::take;
use super::{Answer, Chunk, Field, Produced, Producer, Schema, StreamOptions, Wanted, answered_by, append};
use crate::error::RelationError;
use crate::expr;
use crate::memory::rows::BLOCK_TUPLES;
use crate::rules::Reduction;
use pleach::{KeyType, ValueType};
use pleach_builder::{Column, Silent};
use pleach_format::{Logical, Meaning, Record};
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

    fn positions(&self) -> Vec<u32> {
        let is_set = |at: &usize| self.words[at / 64] >> (at % 64) & 1 == 1;
        (0..self.bits).filter(is_set).map(|at| at as u32).collect()
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
type Work<'a> = dyn Fn(Chunk) -> Result<Chunk, RelationError> + Send + Sync + 'a;

/// A running operator of one input.
struct One<'a> {
    input: Relation<'a>,
    /// Ranks that remain to be read, ascending.
    ranges: VecDeque<Range<u64>>,
    done: u64,
    tuples: u64,
    /// Bytes of strings per chunk.
    bytes: u64,
    work: Box<Work<'a>>,
    /// For a reduction, combines a key that continues in the next chunk.
    fold: Option<Fold>,
    carried: Option<Chunk>,
}

impl One<'_> {
    fn range(&mut self) -> Result<Option<Range<u64>>, RelationError> {
        let Some(front) = self.ranges.front_mut() else { return Ok(None) };
        let from = front.start;
        let most = front.end.min(from.saturating_add(self.tuples));
        let mut to = self.input.within(from..most, self.bytes)?;
        if to < most && self.fold.is_some_and(Fold::has_blocks) {
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
        pleach_builder::pool::ready();
        let mut ranges = Vec::new();
        while ranges.len() < rayon::current_num_threads() * 2
            && let Some(range) = self.range()?
        {
            ranges.push(range);
        }
        let this = &*self;
        let chunks: Vec<Result<Chunk, RelationError>> = ranges
            .par_iter()
            .map(|range| {
                let (keys, values) = this.input.read(range.clone(), true)?;
                (this.work)(Chunk { keys, values, first_rank: range.start, ..Chunk::default() })
            })
            .collect();
        let Some(fold) = self.fold else {
            let produced: Vec<Produced> =
                chunks.into_iter().map(|chunk| chunk.map(Produced::Chunk)).collect::<Result<_, _>>()?;
            return Ok((!produced.is_empty()).then_some(produced));
        };
        if chunks.is_empty() {
            let last = self.carried.take().map(|chunk| fold.finished(chunk)).transpose()?;
            return Ok(last.map(|chunk| vec![Produced::Chunk(chunk)]));
        }
        let mut produced = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let (whole, carried) = fold.carry(self.carried.take(), chunk?);
            self.carried = carried;
            produced.push(Produced::Chunk(fold.finished(whole)?));
        }
        Ok(Some(produced))
    }

    fn done(&self) -> u64 {
        self.done
    }
}

fn part(chunk: &Chunk, range: Range<usize>) -> Chunk {
    Chunk { keys: slice(&chunk.keys, range.clone()), values: slice(&chunk.values, range), ..Chunk::default() }
}

fn one<'a>(
    (input, ranges): (Relation<'a>, Vec<Range<u64>>),
    schema: Schema,
    plan: &str,
    (options, device): (StreamOptions<'a>, Option<&'a dyn Device>),
    work: Box<Work<'a>>,
    fold: Option<Fold>,
) -> Answer<'a> {
    let ranges: VecDeque<Range<u64>> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
    let total = ranges.iter().map(|range| range.end - range.start).sum();
    let (tuples, bytes) = (options.tuples(device), options.piece_bytes as u64);
    let is_folded = fold.is_some_and(Fold::has_blocks) && device.is_none();
    let tuples = if is_folded { tuples.div_ceil(BLOCK_TUPLES) * BLOCK_TUPLES } else { tuples } as u64;
    Answer {
        schema,
        producer: Box::new(One { input, ranges, done: 0, tuples, bytes, work, fold, carried: None }),
        plan: format!("{plan}: {total} tuples in pieces of {tuples}{}", answered_by(device)),
        total,
        piece_tuples: tuples,
        ready: VecDeque::new(),
        kept: super::Kept::Both,
        observer: &Silent,
    }
}

/// Returns the schema of the tuples of an input.
fn schema(input: &Relation<'_>) -> Result<Schema, RelationError> {
    let names = input.prepare()?;
    let values = Field { name: names.value, value_type: input.value_type(), logical: names.value_logical };
    Ok(Schema {
        key_type: input.key_type(),
        key_name: names.key,
        key_logical: names.key_logical,
        values,
        right: None,
        has_sides: false,
        is_sorted: true,
    })
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
        let rows = keep.positions();
        Ok(Chunk { keys: take(&chunk.keys, &rows), values: take(&chunk.values, &rows), ..Chunk::default() })
    };
    Ok(one((input, whole(&input)), schema(&input)?, "select", (options, None), Box::new(work), None))
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
    let schema = schema(&input)?;
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
        let rows = keep.positions();
        Ok(Chunk { keys: take(&chunk.keys, &rows), values: take(&chunk.values, &rows), ..Chunk::default() })
    };
    Ok(one((input, ranges), schema, "select", (options, device), Box::new(work), None))
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
    let schema = projection.schema(&schema(&input)?)?;
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
    Ok(one((input, whole(&input)), schema, "project", (options, device), Box::new(work), None))
}

/// A reduction of values of one type.
#[derive(Clone, Copy)]
struct Fold {
    operation: Reduction,
    key_type: KeyType,
    value_type: ValueType,
}

impl Fold {
    /// Returns the type of the results; `None` if there is no such reduction.
    fn output(self) -> Option<ValueType> {
        use ValueType as T;
        Some(match (self.operation, self.value_type) {
            (Reduction::Count, _) => T::U64,
            (Reduction::First, kind) => kind,
            (Reduction::Sum, T::U32 | T::U64) => T::U64,
            (Reduction::Sum, T::I32 | T::I64) => T::I64,
            (Reduction::Sum, T::F32 | T::F64) => T::F64,
            (Reduction::Min | Reduction::Max, kind) if !kind.is_bytes() && kind != T::None => kind,
            _ => return None,
        })
    }

    /// Returns true if results depend on where blocks begin.
    fn has_blocks(self) -> bool {
        self.operation == Reduction::Sum && self.output() == Some(ValueType::F64)
    }

    /// Returns the result of one value, in 128 bits: sums of integers as 128-bit integers, others unchanged.
    fn single(self, bits: u64) -> u128 {
        match self.operation {
            Reduction::Count => return 1,
            Reduction::Sum => {}
            _ => return bits.into(),
        }
        match self.value_type {
            ValueType::I32 => i128::from((bits as u32).cast_signed()).cast_unsigned(),
            ValueType::I64 => i128::from(bits.cast_signed()).cast_unsigned(),
            ValueType::F32 => f64::from(f32::from_bits(bits as u32)).to_bits().into(),
            ValueType::U32 | ValueType::U64 | ValueType::F64 => bits.into(),
            ValueType::None | ValueType::Fixed(_) | ValueType::Bytes | ValueType::Utf8 => bits.into(),
        }
    }

    /// Combines two neighbouring results. There are fewer than 2^64 values of 64 bits, so no sum exceeds 128
    /// bits.
    fn both(self, first: u128, second: u128) -> u128 {
        use ValueType as T;
        let [bits, next] = [first, second].map(|bits| bits as u64);
        let is_less = || match self.value_type {
            T::I32 => (next as u32).cast_signed() < (bits as u32).cast_signed(),
            T::I64 => next.cast_signed() < bits.cast_signed(),
            T::F32 => f32::from_bits(next as u32).total_cmp(&f32::from_bits(bits as u32)).is_lt(),
            T::F64 => f64::from_bits(next).total_cmp(&f64::from_bits(bits)).is_lt(),
            _ => next < bits,
        };
        match (self.operation, self.value_type) {
            (Reduction::First, _) => first,
            (Reduction::Sum, T::F32 | T::F64) => {
                (f64::from_bits(bits) + f64::from_bits(next)).to_bits().into()
            }
            (Reduction::Count | Reduction::Sum, _) => first.wrapping_add(second),
            (Reduction::Min, _) => {
                if is_less() {
                    second
                } else {
                    first
                }
            }
            (Reduction::Max, _) => {
                if is_less() || first == second {
                    first
                } else {
                    second
                }
            }
        }
    }

    /// Reduces a chunk that begins with a block to one tuple per key, with results in 128 bits; the first key
    /// has one tuple for each of its blocks.
    fn chunk(self, chunk: &Chunk) -> Chunk {
        let mut rows: Vec<u32> = Vec::new();
        let mut results: Vec<u128> = Vec::new();
        let is_first = self.operation == Reduction::First;
        for from in (0..chunk.len()).step_by(BLOCK_TUPLES) {
            let to = (from + BLOCK_TUPLES).min(chunk.len());
            let goes_on = from > 0 && is_equal(&chunk.keys, from - 1, from);
            // The block's result for its first key, if that key continues from the block before.
            let mut open: Option<u128> = None;
            for at in from..to {
                let bits = if is_first { 0 } else { self.single(bits_at(&chunk.values, at)) };
                let is_new = at == 0 || !is_equal(&chunk.keys, at - 1, at);
                if is_new || (at == from && is_equal(&chunk.keys, 0, at)) {
                    self.close(&mut open, &mut results);
                    rows.push(at as u32);
                    results.push(bits);
                } else if goes_on && rows.last().is_some_and(|&row| (row as usize) < from) {
                    open = Some(open.map_or(bits, |block| self.both(block, bits)));
                } else if let Some(last) = results.last_mut() {
                    *last = self.both(*last, bits);
                }
            }
            self.close(&mut open, &mut results);
        }
        let values = if is_first { take(&chunk.values, &rows) } else { Column::U128(results) };
        Chunk { keys: take(&chunk.keys, &rows), values, ..Chunk::default() }
    }

    fn close(self, open: &mut Option<u128>, results: &mut [u128]) {
        if let (Some(block), Some(last)) = (open.take(), results.last_mut()) {
            *last = self.both(*last, block);
        }
    }

    /// Converts a chunk that a device made to the form of [`Fold::chunk`].
    fn widened(self, chunk: Chunk) -> Chunk {
        let is_signed = self.operation == Reduction::Sum && self.output() == Some(ValueType::I64);
        let values = match chunk.values {
            values if self.operation == Reduction::First => values,
            Column::U32(words) => Column::U128(words.into_iter().map(u128::from).collect()),
            Column::U64(words) if is_signed => {
                let signed = |bits: u64| i128::from(bits.cast_signed()).cast_unsigned();
                Column::U128(words.into_iter().map(signed).collect())
            }
            Column::U64(words) => Column::U128(words.into_iter().map(u128::from).collect()),
            values => values,
        };
        Chunk { values, ..chunk }
    }

    /// Combines the key that continues from the chunk before, and keeps the last key back.
    fn carry(self, carried: Option<Chunk>, chunk: Chunk) -> (Chunk, Option<Chunk>) {
        if chunk.is_empty() {
            return (chunk, carried);
        }
        let parts = (1..chunk.len()).take_while(|&at| is_equal(&chunk.keys, 0, at)).count() + 1;
        let mut done = part(&chunk, 0..0);
        let (mut head, mut from) = (part(&chunk, 0..1), 1);
        match carried {
            Some(carried) if key_at(&carried.keys, 0) == key_at(&chunk.keys, 0) => {
                (head, from) = (carried, 0)
            }
            Some(carried) => done = carried,
            None => {}
        }
        if let (Column::U128(head), Column::U128(results)) = (&mut head.values, &chunk.values) {
            head[0] = results[from..parts].iter().fold(head[0], |head, &block| self.both(head, block));
        }
        for more in [head, part(&chunk, parts..chunk.len())] {
            append(&mut done.keys, &more.keys);
            append(&mut done.values, &more.values);
        }
        let last = done.len() - 1;
        (part(&done, 0..last), Some(part(&done, last..last + 1)))
    }

    /// Converts results to the type of the answer.
    fn finished(self, chunk: Chunk) -> Result<Chunk, RelationError> {
        let Column::U128(results) = &chunk.values else { return Ok(chunk) };
        let output = self.output();
        let is_signed = self.operation == Reduction::Sum && output == Some(ValueType::I64);
        let fits = |result: u128| {
            if is_signed {
                i64::try_from(result.cast_signed()).is_ok()
            } else {
                u64::try_from(result).is_ok()
            }
        };
        if let Some(at) = results.iter().position(|&result| !fits(result)) {
            let key = match key_at(&chunk.keys, at) {
                AnyKey::Word(word) => pleach::Datum::of_word(self.key_type, word),
                AnyKey::Bytes(bytes) => pleach::Datum::of_bytes(self.key_type, bytes),
            };
            return Err(RelationError::Overflow { key: format!("{key:?}") });
        }
        let values = match output.map(ValueType::bytes) {
            Some(4) => Column::U32(results.iter().map(|&bits| bits as u32).collect()),
            _ => Column::U64(results.iter().map(|&bits| bits as u64).collect()),
        };
        Ok(Chunk { values, ..chunk })
    }
}

fn key_at(keys: &Column, at: usize) -> AnyKey {
    match keys {
        Column::Bytes(strings) => AnyKey::Bytes(strings.get(at).to_vec()),
        Column::U32(words) => AnyKey::Word(words[at].into()),
        Column::U64(words) => AnyKey::Word(words[at].into()),
        Column::U128(words) => AnyKey::Word(words[at]),
        Column::None => AnyKey::Word(0),
    }
}

fn is_equal(keys: &Column, one: usize, other: usize) -> bool {
    match keys {
        Column::Bytes(strings) => strings.get(one) == strings.get(other),
        Column::U32(words) => words[one] == words[other],
        Column::U64(words) => words[one] == words[other],
        Column::U128(words) => words[one] == words[other],
        Column::None => true,
    }
}

fn bits_at(values: &Column, at: usize) -> u64 {
    match values {
        Column::U32(words) => words[at].into(),
        Column::U64(words) => words[at],
        _ => 0,
    }
}

/// Reduces the input to one tuple per key.
///
/// # Errors
/// [`RelationError::NoReduction`] if the reduction is not defined for the values, [`RelationError::Damaged`],
/// [`RelationError::NoDevice`]; sums that do not fit end the answer with [`RelationError::Overflow`].
pub fn reduce<'a>(
    input: Relation<'a>,
    operation: Reduction,
    options: StreamOptions<'a>,
) -> Result<Answer<'a>, RelationError> {
    let fold = Fold { operation, key_type: input.key_type(), value_type: input.value_type() };
    let mut schema = schema(&input)?;
    let record = Record::of(input.value_type(), &schema.values.logical);
    let is_any = matches!(operation, Reduction::Count | Reduction::First);
    let meaning = Meaning::new(input.value_type(), &schema.values.logical);
    let adds = match (operation, &meaning.logical) {
        (Reduction::Sum, logical) => {
            matches!(
                logical,
                Logical::Plain | Logical::Decimal { .. } | Logical::Duration(_) | Logical::Unknown(_)
            )
        }
        _ => true,
    };
    let Some(output) = fold.output().filter(|_| is_any || record.is_none()).filter(|_| adds) else {
        return Err(RelationError::NoReduction {
            operation: operation.name(),
            value_type: meaning.to_string(),
            input: input.name(),
        });
    };
    if operation == Reduction::Count || output != schema.values.value_type {
        schema.values.logical = String::new();
    }
    if let (Reduction::Sum, Logical::Decimal { scale, .. }) = (operation, meaning.logical) {
        // A sum uses all digits of the type.
        schema.values.logical = Logical::Decimal { bits: 128, precision: 38, scale }.meta();
    }
    schema.values.value_type = output;
    let (types, task) = (input.types(), Task::Reduce(operation));
    let device = checked(options.device, task, types, None)?;
    let work = move |chunk: Chunk| {
        if let Some(device) = device
            && let Some(answer) = device.one(task, types, &chunk)?
        {
            return Ok(fold.widened(answer));
        }
        Ok(fold.chunk(&chunk))
    };
    let options = (options, device);
    Ok(one((input, whole(&input)), schema, operation.name(), options, Box::new(work), Some(fold)))
}
