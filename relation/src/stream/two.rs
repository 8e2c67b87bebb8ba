//! Operators of two inputs: sets, joins, products.

use super::answer::{
    Answer, Kept, Produced, Producer, TUPLES_MAX, Wanted, chunk_or_positions, next_pieces, produced,
};
use super::chunk::Schema;
use super::columns::NONE;
use super::cut::{Operator, Piece, Pieces};
use super::device::{Answered, Device, answered_by, checked};
use super::input::Relation;
use super::matched::{Matched, expanded, matched};
use super::options::{PIECE_TUPLES, StreamOptions};
use super::pairs::{Both, Positions, Runs, Shape};
use crate::error::RelationError;
use crate::memory::Plan;
use crate::rules::{How, SetOperation, SetRule};
use pleach_builder::rescale::Rescale;
use pleach_format::Meaning;
use pleach_format::logical::matching;
use std::ops::Range;
use std::sync::Arc;

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
        let pieces = next_pieces(|| self.pieces.next(wanted == Wanted::Count))?;
        produced(&pieces, |piece| self.produce(piece, wanted))
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
pub(super) fn check_size(inputs: &Inputs<'_>, operator: Operator, limit: u128) -> Result<(), RelationError> {
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
    let inputs = Inputs::new(left, right, operator, &options)?;
    let answer = start(&inputs, operator, options)?;
    check_size(&inputs, operator, TUPLES_MAX)?;
    Ok(answer)
}

/// Two inputs in common units, and the schema of their answer.
pub(super) struct Inputs<'a> {
    pub left: Relation<'a>,
    pub right: Relation<'a>,
    pub schema: Schema,
}

impl<'a> Inputs<'a> {
    /// Creates the pair; refuses inputs whose keys, or values if these mix, have different meanings.
    pub(super) fn new(
        mut left: Relation<'a>,
        mut right: Relation<'a>,
        operator: Operator,
        options: &StreamOptions<'_>,
    ) -> Result<Self, RelationError> {
        // A product compares no keys.
        let (mut schema, right_schema) = match operator {
            Operator::Product => (left.schema()?, right.schema()?),
            Operator::Set(..) | Operator::Join(_) => {
                (left.exact_schema(options)?, right.exact_schema(options)?)
            }
        };
        if operator != Operator::Product {
            let here = Meaning::new(left.key_type(), &schema.key_logical);
            let there = Meaning::new(right.key_type(), &right_schema.key_logical);
            let common = matching(&here, &there).ok_or_else(|| RelationError::KeyTypes {
                left: left.name(),
                left_type: here.to_string(),
                right: right.name(),
                right_type: there.to_string(),
            })?;
            left.keys = Rescale::new(true, &here, &common.meaning, common.left);
            right.keys = Rescale::new(true, &there, &common.meaning, common.right);
            schema.key_logical = common.meaning.logical.meta();
        }
        if matches!(operator, Operator::Set(SetOperation::Union, _)) {
            let here = Meaning::new(left.value_type(), &schema.values.logical);
            let there = Meaning::new(right.value_type(), &right_schema.values.logical);
            let common = matching(&here, &there).ok_or_else(|| RelationError::ValueTypes {
                left: left.name(),
                left_type: here.to_string(),
                right: right.name(),
                right_type: there.to_string(),
            })?;
            left.values = Rescale::new(false, &here, &common.meaning, common.left);
            right.values = Rescale::new(false, &there, &common.meaning, common.right);
            schema.values.logical = common.meaning.logical.meta();
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
        (schema.key_type, schema.values.value_type) = left.types();
        schema.is_interval = false;
        // Keys of a product are the left ones.
        let of_right = right_schema.approximate.filter(|_| operator != Operator::Product);
        if schema.approximate.is_some() || of_right.is_some() {
            let left = schema.approximate.unwrap_or(left.len());
            schema.approximate = Some(left.saturating_add(of_right.unwrap_or(0)));
        }
        schema.right = is_wide.then_some(right_schema.values);
        schema.has_sides = has_sides;
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
    let device = checked(options.device, operator.task(), left.types(), Some(right.types()))?;
    let piece_tuples = options.tuples(device) as u64;
    let plan = match device {
        Some(_) => answered_by(device),
        None => format!("; {}", Plan::new(left.len(), right.len())),
    };
    let plan = format!("both are read in pieces of {piece_tuples} tuples{plan}");
    let pieces = Pieces::new((left, right), operator, &options, piece_tuples);
    let value_types = (left.value_type(), right.value_type());
    let shape = Shape {
        is_either: is_union,
        has_sides,
        right_key: None,
        value_types,
        chunk_bytes: options.piece_bytes,
    };
    let producer = Box::new(Two { left, right, operator, shape, piece_tuples, pieces, device });
    Ok(Answer::new(schema, producer, plan, (left.len() + right.len(), piece_tuples)))
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
