//! Operators over index files, in chunks.
//!
//! ```text
//! input.rs    ranges of a file as dense columns, every block verified
//! cut.rs      two inputs become pieces that are done alone
//! matched.rs  a piece: which tuples answer
//! pairs.rs    these become chunks
//! rows.rs     operators of one input
//! device.rs   pieces that another device answers
//! target.rs   an answer becomes an index file
//! ```
//! An [`Answer`] is evaluated when its chunks are requested. It reads a few pieces of its inputs for each
//! thread of the current pool, works on them in parallel, and yields their results in order. So the pieces in
//! flight bound its memory, whatever the size of the inputs and the answer.

mod cut;
pub mod device;
mod input;
mod matched;
mod pairs;
mod rows;
mod target;

#[cfg(test)]
mod tests;

pub use input::Relation;
pub use rows::{Bitmap, Predicate, Projection, project, reduce, select, select_where};

use crate::error::RelationError;
use crate::memory;
use crate::rules::{How, SetOperation, SetRule};
use cut::{Operator, Piece, Pieces};
use device::{Answered, Device};
#[cfg(feature = "gpu")]
pub(crate) use matched::take;
use matched::{Matched, NONE, expanded, matched};
use pairs::{Both, Positions, Runs, Shape};
use pleach::{KeyType, ValueType};
use pleach_builder::rescale::Rescale;
use pleach_builder::{Column, Observer, Phase, Silent};
use pleach_format::Meaning;
use pleach_format::logical::matching;
use rayon::prelude::*;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Tuples of an answer, with consecutive ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Encoded keys, or byte strings.
    pub keys: Column,
    /// Value bits, or byte strings; the left values of a join.
    pub values: Column,
    /// Right values of a join.
    pub right: Column,
    /// For an outer join, one number per tuple: 1 if it has a left part, 2 if it has a right one, 3 for both;
    /// otherwise empty. The value of a missing part is zero, or an empty string, or a string of zero bytes if
    /// all have one length.
    pub sides: Vec<u8>,
    /// Rank of the first tuple of a chunk of an input, for predicates and projections; 0 in an answer.
    pub first_rank: u64,
}

impl Chunk {
    /// Number of tuples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if the chunk has no tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name; empty if it has none.
    pub name: String,
    /// Its type.
    pub value_type: ValueType,
    /// Its logical type in Arrow's notation, empty if plain.
    pub logical: String,
}

/// Types and names of the columns of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Key type.
    pub key_type: KeyType,
    /// Name of the key column; empty if it has none.
    pub key_name: String,
    /// Logical type of the keys in Arrow's notation, empty if plain.
    pub key_logical: String,
    /// Values; the left values of a join.
    pub values: Field,
    /// Right values of a join.
    pub right: Option<Field>,
    /// True if chunks specify which sides each tuple has.
    pub has_sides: bool,
    /// True if the keys are in order.
    pub is_sorted: bool,
}

/// Tuples per piece, of both sides together.
const PIECE_TUPLES: usize = 1 << 17;
/// Bytes of strings per side of a piece and per chunk: usually enough for `PIECE_TUPLES` tuples.
const PIECE_BYTES: usize = 16 << 20;
/// Maximum tuples of an answer.
const TUPLES_MAX: u128 = 1 << 63;

/// Size of the pieces of a stream, and the device that answers them. Affects only speed and memory.
#[derive(Clone, Copy, Debug)]
pub struct StreamOptions<'a> {
    /// Tuples per piece, of both sides together: 1 to 2^30.
    pub piece_tuples: usize,
    /// Bytes of strings per side of a piece and per chunk. One tuple, or one block of a sum of floats, may
    /// exceed it.
    pub piece_bytes: usize,
    /// Device that answers pieces, of the size that it prefers; `None` is the CPU.
    pub device: Option<&'a dyn Device>,
}

impl Default for StreamOptions<'_> {
    fn default() -> Self {
        Self { piece_tuples: PIECE_TUPLES, piece_bytes: PIECE_BYTES, device: None }
    }
}

impl StreamOptions<'_> {
    /// Returns the tuples per piece of an operator that `device` answers.
    fn tuples(&self, device: Option<&dyn Device>) -> usize {
        device.map_or(self.piece_tuples, Device::piece_tuples).clamp(1, 1 << 30)
    }
}

/// Returns the end of a plan: the device that answers its pieces.
fn answered_by(device: Option<&dyn Device>) -> String {
    device.map_or_else(String::new, |device| format!("; answered by {}", device.name()))
}

/// Which parts of the answer the caller requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// The number of tuples: no column is made.
    Count,
    Tuples(Kept),
}

/// An operator that yields chunks in order.
trait Producer: Send {
    /// Returns the next chunks; `None` at the end.
    fn next(&mut self, wanted: Wanted) -> Result<Option<Vec<Produced>>, RelationError>;
    /// Returns the number of input tuples that were read.
    fn done(&self) -> u64;
}

/// Result of a piece.
enum Produced {
    Chunk(Chunk),
    Count(u128),
    /// More bytes than fit into a chunk.
    Positions(Positions),
    /// More tuples than fit into a chunk.
    Runs(Box<Runs>),
}

/// The answer of an operator, evaluated when its chunks are requested.
pub struct Answer<'a> {
    schema: Schema,
    producer: Box<dyn Producer + 'a>,
    plan: String,
    total: u64,
    piece_tuples: u64,
    /// Ready chunks, in order.
    ready: VecDeque<Produced>,
    /// Values of a join or a product that are kept.
    kept: Kept,
    observer: &'a dyn Observer,
}

/// Values of a join or a product that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// Those of both sides.
    #[default]
    Both,
    /// Left ones, as the only values.
    Left,
    /// Right ones, as the only values.
    Right,
}

impl<'a> Answer<'a> {
    /// Returns the same tuples with the values of one side only. Does not change an answer that has one
    /// value.
    #[must_use]
    pub fn keep(mut self, kept: Kept) -> Self {
        if kept != Kept::Both
            && let Some(right) = self.schema.right.take()
        {
            self.kept = kept;
            self.schema.has_sides = false;
            if kept == Kept::Right {
                self.schema.values = right;
            }
        }
        self
    }

    /// Returns the types and names of its columns.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Describes in one line how it will be evaluated.
    #[must_use]
    pub fn plan(&self) -> &str {
        &self.plan
    }

    /// Reports the progress of reading the inputs to `observer`, which may cancel.
    #[must_use]
    pub fn watched(mut self, observer: &'a dyn Observer) -> Self {
        self.observer = observer;
        self
    }

    fn fill(&mut self, wanted: Wanted) -> Result<bool, RelationError> {
        while self.ready.is_empty() {
            if self.observer.cancelled() {
                return Err(RelationError::Interrupted);
            }
            let Some(produced) = self.producer.next(wanted)? else { return Ok(false) };
            self.ready.extend(produced);
            self.observer.progress(Phase::Read, self.producer.done(), Some(self.total));
        }
        Ok(true)
    }

    /// Returns the next chunk, which is not empty. Returns `None` at the end, after everything on which the
    /// answer depends has been verified.
    ///
    /// # Errors
    /// [`RelationError::Damaged`], [`RelationError::Overflow`], [`RelationError::Interrupted`]: chunks that
    /// were returned before are then invalid.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, RelationError> {
        while self.fill(Wanted::Tuples(self.kept))? {
            let mut chunk = match self.ready.pop_front() {
                Some(Produced::Chunk(chunk)) => chunk,
                Some(Produced::Positions(mut positions)) => {
                    let chunk = positions.next_chunk();
                    if positions.len() > 0 {
                        self.ready.push_front(Produced::Positions(positions));
                    }
                    chunk
                }
                Some(Produced::Runs(runs)) => {
                    self.expand(*runs);
                    continue;
                }
                Some(Produced::Count(_)) | None => continue,
            };
            if self.kept != Kept::Both {
                let right = std::mem::take(&mut chunk.right);
                chunk.sides.clear();
                if self.kept == Kept::Right {
                    chunk.values = right;
                }
            }
            if !chunk.is_empty() {
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    /// Makes chunks of the next results of some runs; the rest goes back to the queue.
    fn expand(&mut self, mut runs: Runs) {
        let parts = runs.expand(self.piece_tuples);
        if runs.at < runs.total {
            self.ready.push_front(Produced::Runs(Box::new(runs)));
        }
        pleach_builder::pool::ready();
        let produced: Vec<Produced> = parts.into_par_iter().map(chunk_or_positions).collect();
        produced.into_iter().rev().for_each(|produced| self.ready.push_front(produced));
    }

    /// Counts the tuples of the answer, without those that were already returned. Reads and verifies the
    /// keys; makes no column of the answer.
    ///
    /// # Errors
    /// The errors of [`Answer::next_chunk`], and [`RelationError::TooLarge`] above 2^63.
    pub fn count(mut self) -> Result<u64, RelationError> {
        let tuples = self.counted()?;
        match u64::try_from(tuples) {
            Ok(count) if tuples <= TUPLES_MAX => Ok(count),
            _ => Err(RelationError::TooLarge { what: "the answer", tuples, limit: TUPLES_MAX }),
        }
    }

    fn counted(&mut self) -> Result<u128, RelationError> {
        let mut total = 0u128;
        while self.fill(Wanted::Count)? {
            total += match self.ready.pop_front() {
                Some(Produced::Count(count)) => count,
                Some(Produced::Chunk(chunk)) => chunk.len() as u128,
                Some(Produced::Positions(positions)) => positions.len() as u128,
                Some(Produced::Runs(runs)) => u128::from(runs.total - runs.at),
                None => 0,
            };
        }
        Ok(total)
    }

    /// Passes the chunks to `sink`, in order.
    ///
    /// # Errors
    /// The errors of [`Answer::next_chunk`] and of the sink.
    pub fn for_each_chunk(
        mut self,
        mut sink: impl FnMut(Chunk) -> Result<(), RelationError>,
    ) -> Result<(), RelationError> {
        while let Some(chunk) = self.next_chunk()? {
            sink(chunk)?;
        }
        Ok(())
    }

    /// Returns the whole answer in memory, as one chunk.
    ///
    /// # Errors
    /// The errors of [`Answer::next_chunk`].
    pub fn collect(mut self) -> Result<Chunk, RelationError> {
        let right =
            self.schema.right.as_ref().map_or(Column::None, |field| Column::for_value(field.value_type));
        let mut all = Chunk {
            keys: Column::for_key(self.schema.key_type),
            values: Column::for_value(self.schema.values.value_type),
            right,
            sides: Vec::new(),
            first_rank: 0,
        };
        while let Some(chunk) = self.next_chunk()? {
            append(&mut all.keys, &chunk.keys);
            append(&mut all.values, &chunk.values);
            append(&mut all.right, &chunk.right);
            all.sides.extend_from_slice(&chunk.sides);
        }
        Ok(all)
    }
}

/// Appends a column of the same type.
fn append(column: &mut Column, more: &Column) {
    match (column, more) {
        (Column::U32(words), Column::U32(more)) => words.extend_from_slice(more),
        (Column::U64(words), Column::U64(more)) => words.extend_from_slice(more),
        (Column::U128(words), Column::U128(more)) => words.extend_from_slice(more),
        (Column::Bytes(strings), Column::Bytes(more)) => more.iter().for_each(|string| strings.push(string)),
        _ => {}
    }
}

/// Makes a chunk if there are few bytes.
fn chunk_or_positions(mut positions: Positions) -> Produced {
    match positions.is_chunk() {
        true => Produced::Chunk(positions.next_chunk()),
        false => Produced::Positions(positions),
    }
}

/// A running operator of two inputs.
struct Two<'a> {
    left: Relation<'a>,
    right: Relation<'a>,
    operator: Operator,
    shape: Shape,
    piece_tuples: u64,
    pieces: Pieces<'a>,
    device: Option<&'a dyn Device>,
}

impl Producer for Two<'_> {
    fn next(&mut self, wanted: Wanted) -> Result<Option<Vec<Produced>>, RelationError> {
        pleach_builder::pool::ready();
        let mut pieces = Vec::new();
        while pieces.len() < rayon::current_num_threads() * 2
            && let Some(piece) = self.pieces.next(wanted == Wanted::Count)?
        {
            pieces.push(piece);
        }
        if pieces.is_empty() {
            return Ok(None);
        }
        let this = &*self;
        let produced: Vec<Result<Produced, RelationError>> =
            pieces.par_iter().map(|piece| this.produce(piece, wanted)).collect();
        produced.into_iter().collect::<Result<_, _>>().map(Some)
    }

    fn done(&self) -> u64 {
        self.pieces.done()
    }
}

impl Two<'_> {
    fn produce(&self, piece: &Piece, wanted: Wanted) -> Result<Produced, RelationError> {
        let counts = wanted == Wanted::Count;
        let length = |range: &Range<u64>| u128::from(range.end - range.start);
        match piece {
            // These keys are not in the result, but are read and verified too.
            Piece::Left(range) | Piece::Right(range) if counts => return Ok(Produced::Count(length(range))),
            Piece::Pairs(a, b) if counts => return Ok(Produced::Count(length(a) * length(b))),
            _ => {}
        }
        let (a, b) = match piece {
            Piece::Sweep(a, b) | Piece::Pairs(a, b) | Piece::Pass(a, b) => (a.clone(), b.clone()),
            Piece::Left(a) => (a.clone(), 0..0),
            Piece::Right(b) => (0..0, b.clone()),
        };
        let (m, n) = ((a.end - a.start) as u32, (b.end - b.start) as u32);
        let (wants_left, wants_right) = self.wants_values(wanted);
        let left = self.left.read(a, wants_left)?;
        let right = self.right.read(b, wants_right)?;
        let answered = match (piece, self.operator, self.device) {
            (Piece::Sweep(..), _, Some(device)) | (Piece::Pairs(..), Operator::Product, Some(device))
                if !counts =>
            {
                device.two(self.operator.task(), &left, &right)?
            }
            _ => None,
        };
        let rows = match answered {
            Some(Answered::Chunk(chunk)) => return Ok(Produced::Chunk(chunk)),
            Some(Answered::Rows(i, j)) => Some((i, j)),
            None => None,
        };
        let both = |left, right| Arc::new(Both { left, right, shape: self.shape });
        let (i, j): (Vec<u32>, Vec<u32>) = match (rows, piece) {
            (Some(rows), _) => rows,
            (None, Piece::Pass(..)) => return Ok(Produced::Count(0)),
            (None, Piece::Left(_)) => ((0..m).collect(), vec![NONE; m as usize]),
            (None, Piece::Right(_)) => (vec![NONE; n as usize], (0..n).collect()),
            (None, Piece::Pairs(..)) => (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).unzip(),
            (None, Piece::Sweep(..)) => match matched(&left.0, &right.0, self.operator) {
                Matched::Rows(i, j) => (i, j),
                Matched::Runs(_, _, total) if counts => return Ok(Produced::Count(total.into())),
                Matched::Runs(how, runs, total) if total > 4 * self.piece_tuples => {
                    let runs = Runs { both: both(left, right), how, runs, at: 0, total };
                    return Ok(Produced::Runs(Box::new(runs)));
                }
                Matched::Runs(how, runs, total) => expanded(how, &runs, 0, total),
            },
        };
        if counts {
            return Ok(Produced::Count(i.len() as u128));
        }
        Ok(chunk_or_positions(Positions::new(both(left, right), i, j)))
    }

    /// Returns the sides whose values are needed: right ones only in unions, joins and products, and only
    /// those that are kept.
    fn wants_values(&self, wanted: Wanted) -> (bool, bool) {
        let has_right = match self.operator {
            Operator::Set(..) => self.shape.is_either,
            Operator::Join(how) => !matches!(how, How::Semi | How::Anti),
            Operator::Product => true,
        };
        match wanted {
            Wanted::Count => (false, false),
            Wanted::Tuples(Kept::Both) => (true, has_right),
            Wanted::Tuples(Kept::Left) => (true, self.shape.is_either),
            Wanted::Tuples(Kept::Right) => (self.shape.is_either, has_right),
        }
    }
}

/// Refuses an operator whose answer exceeds `limit` tuples. If it may, it is counted first, which takes long.
fn check_size(inputs: &Inputs<'_>, operator: Operator, limit: u128) -> Result<(), RelationError> {
    let (left, right) = (inputs.left, inputs.right);
    let too_large = |what, tuples| Err(RelationError::TooLarge { what, tuples, limit });
    let pairs = u128::from(left.len()) * u128::from(right.len());
    match operator {
        _ if pairs <= limit => Ok(()),
        Operator::Product => too_large("the product", pairs),
        Operator::Join(How::Inner | How::Left | How::Right | How::Full) => {
            let options = StreamOptions::default();
            if Pieces::new((left, right), operator, &options, PIECE_TUPLES as u64).answers_max()? <= limit {
                return Ok(());
            }
            match start(inputs, operator, options)?.counted()? {
                tuples if tuples <= limit => Ok(()),
                tuples => too_large("the join", tuples),
            }
        }
        _ => Ok(()),
    }
}

fn two<'a>(
    left: Relation<'a>,
    right: Relation<'a>,
    operator: Operator,
    options: StreamOptions<'a>,
) -> Result<Answer<'a>, RelationError> {
    let inputs = Inputs::new(left, right, operator)?;
    let answer = start(&inputs, operator, options)?;
    check_size(&inputs, operator, TUPLES_MAX)?;
    Ok(answer)
}

/// Two inputs in common units, and the schema of their answer.
struct Inputs<'a> {
    left: Relation<'a>,
    right: Relation<'a>,
    schema: Schema,
}

impl<'a> Inputs<'a> {
    /// Creates the pair; refuses inputs whose keys, or values if these mix, have different meanings.
    fn new(
        mut left: Relation<'a>,
        mut right: Relation<'a>,
        operator: Operator,
    ) -> Result<Self, RelationError> {
        let (mut names, right_names) = (left.prepare()?, right.prepare()?);
        if operator != Operator::Product {
            let here = Meaning::new(left.key_type(), &names.key_logical);
            let there = Meaning::new(right.key_type(), &right_names.key_logical);
            let common = matching(&here, &there).ok_or_else(|| RelationError::KeyTypes {
                left: left.name(),
                left_type: here.to_string(),
                right: right.name(),
                right_type: there.to_string(),
            })?;
            left.keys = Rescale::new(true, &here, &common.meaning, common.left);
            right.keys = Rescale::new(true, &there, &common.meaning, common.right);
            names.key_logical = common.meaning.logical.meta();
        }
        if matches!(operator, Operator::Set(SetOperation::Union, _)) {
            let here = Meaning::new(left.value_type(), &names.value_logical);
            let there = Meaning::new(right.value_type(), &right_names.value_logical);
            let common = matching(&here, &there).ok_or_else(|| RelationError::ValueTypes {
                left: left.name(),
                left_type: here.to_string(),
                right: right.name(),
                right_type: there.to_string(),
            })?;
            left.values = Rescale::new(false, &here, &common.meaning, common.left);
            right.values = Rescale::new(false, &there, &common.meaning, common.right);
            names.value_logical = common.meaning.logical.meta();
        }
        left.check_ends()?;
        right.check_ends()?;
        let (is_wide, has_sides) = match operator {
            Operator::Set(..) => (false, false),
            Operator::Join(how) => {
                (!matches!(how, How::Semi | How::Anti), matches!(how, How::Left | How::Right | How::Full))
            }
            Operator::Product => (true, false),
        };
        let field = |relation: &Relation<'_>, name: String, logical: String| Field {
            name,
            value_type: relation.value_type(),
            logical,
        };
        let schema = Schema {
            key_type: left.key_type(),
            key_name: names.key,
            key_logical: names.key_logical,
            values: field(&left, names.value, names.value_logical),
            right: is_wide.then(|| field(&right, right_names.value, right_names.value_logical)),
            has_sides,
            is_sorted: true,
        };
        Ok(Self { left, right, schema })
    }
}

fn start<'a>(
    inputs: &Inputs<'a>,
    operator: Operator,
    options: StreamOptions<'a>,
) -> Result<Answer<'a>, RelationError> {
    let Inputs { left, right, ref schema } = *inputs;
    let (schema, has_sides) = (schema.clone(), schema.has_sides);
    let is_union = matches!(operator, Operator::Set(SetOperation::Union, _));
    let device = device::checked(options.device, operator.task(), left.types(), Some(right.types()))?;
    let piece_tuples = options.tuples(device) as u64;
    let plan = match device {
        Some(_) => answered_by(device),
        None => format!("; {}", memory::Plan::new(left.len(), right.len())),
    };
    let plan = format!("both are read in pieces of {piece_tuples} tuples{plan}");
    let pieces = Pieces::new((left, right), operator, &options, piece_tuples);
    let value_types = (left.value_type(), right.value_type());
    let shape = Shape { is_either: is_union, has_sides, value_types, chunk_bytes: options.piece_bytes };
    let producer = Box::new(Two { left, right, operator, shape, piece_tuples, pieces, device });
    let total = left.len() + right.len();
    Ok(Answer {
        schema,
        producer,
        plan,
        total,
        piece_tuples,
        ready: VecDeque::new(),
        kept: Kept::Both,
        observer: &Silent,
    })
}

/// Returns the union, intersection or difference of two inputs.
///
/// # Errors
/// [`RelationError::KeyTypes`], [`RelationError::ValueTypes`] of a union, [`RelationError::Damaged`].
pub fn set<'a>(
    operation: SetOperation,
    rule: SetRule,
    left: Relation<'a>,
    right: Relation<'a>,
    options: StreamOptions<'a>,
) -> Result<Answer<'a>, RelationError> {
    two(left, right, Operator::Set(operation, rule), options)
}

/// Joins two inputs.
///
/// # Errors
/// [`RelationError::KeyTypes`], [`RelationError::Damaged`], [`RelationError::TooLarge`] above 2^63 tuples:
/// where there may be that many they are counted first.
pub fn join<'a>(
    how: How,
    left: Relation<'a>,
    right: Relation<'a>,
    options: StreamOptions<'a>,
) -> Result<Answer<'a>, RelationError> {
    two(left, right, Operator::Join(how), options)
}

/// Returns all pairs of tuples: the left key and both values.
///
/// # Errors
/// [`RelationError::TooLarge`], [`RelationError::Damaged`].
pub fn product<'a>(
    left: Relation<'a>,
    right: Relation<'a>,
    options: StreamOptions<'a>,
) -> Result<Answer<'a>, RelationError> {
    two(left, right, Operator::Product, options)
}
