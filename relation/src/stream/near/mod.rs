//! Joins by distance: as-of joins and band joins.
//!
//! ```text
//! reach.rs     distances between keys               windows.rs   left pieces and their right windows
//! partners.rs  which tuples of these are pairs
//! ```
//! The right tuples that can be partners of consecutive left tuples are consecutive too. So each left piece
//! is read with its window of right tuples, and pieces are done in parallel. See [`crate::rules`] for the
//! tuples of the answers.

mod partners;
mod reach;
mod windows;

#[cfg(test)]
mod tests;

use super::answer::{
    Answer, Kept, Produced, Producer, TUPLES_MAX, Wanted, chunk_or_positions, next_pieces, produced,
};
use super::columns::{NONE, append};
use super::cut::Operator;
use super::input::Relation;
use super::matched::expanded;
use super::options::StreamOptions;
use super::pairs::{Both, Positions, Runs, Shape};
use super::two::Inputs;
use crate::error::RelationError;
use crate::rules::{AsOf, How};
use pleach_builder::Column;
use pleach_format::Meaning;
use std::ops::Range;
use std::sync::Arc;

pub use reach::Distance;
use reach::Reach;
use windows::{Piece, Rule, Windows};

/// A running join by distance.
struct Near<'a> {
    left: Relation<'a>,
    right: Relation<'a>,
    how: How,
    rule: Rule,
    reach: Reach,
    shape: Shape,
    piece_tuples: u64,
    windows: Windows<'a>,
}

impl Producer for Near<'_> {
    fn next(&mut self, wanted: Wanted) -> Result<Option<Vec<Produced>>, RelationError> {
        let pieces = next_pieces(|| self.windows.next(wanted == Wanted::Count))?;
        produced(&pieces, |piece| self.produce(piece, wanted))
    }

    fn done(&self) -> u64 {
        self.windows.done()
    }
}

impl Near<'_> {
    fn produce(&self, piece: &Piece, wanted: Wanted) -> Result<Produced, RelationError> {
        let is_wide = !matches!(self.how, How::Semi | How::Anti);
        let (wants_left, wants_right) = match wanted {
            Wanted::Count => (false, false),
            Wanted::Tuples(Kept::Both) => (true, is_wide),
            Wanted::Tuples(Kept::Left) => (true, false),
            Wanted::Tuples(Kept::Right) => (false, is_wide),
        };
        let counts = wanted == Wanted::Count;
        let (left, right, (i, j)) = match (piece, self.rule) {
            (Piece::Pairs(_, window), _) if counts => {
                return Ok(Produced::Count((window.end - window.start).into()));
            }
            (Piece::Pairs(rank, window), _) => {
                let pairs = (window.end - window.start) as u32;
                let left = self.left.read(*rank..rank + 1, wants_left)?;
                let right = self.right.read(window.clone(), wants_right)?;
                (left, right, (vec![0; pairs as usize], (0..pairs).collect()))
            }
            (Piece::Window(ranks, window), rule) => {
                let left = self.left.read(ranks.clone(), wants_left)?;
                let right = self.right.read(window.clone(), wants_right)?;
                match rule {
                    Rule::AsOf(asof) => {
                        let partners = partners::in_window(&left.0, &right.0, asof, self.reach);
                        (left, right, partners::answers(self.how, &partners))
                    }
                    Rule::Band => return Ok(self.band(left, right, counts)),
                }
            }
            (Piece::Singles(ranks, from), rule) => {
                let left = self.left.read(ranks.clone(), wants_left)?;
                let (right, partners) = self.singles(ranks, *from, rule, wants_right)?;
                (left, right, partners::answers(self.how, &partners))
            }
        };
        if counts {
            return Ok(Produced::Count(i.len() as u128));
        }
        Ok(chunk_or_positions(Positions::new(self.both(left, right), i, j)))
    }

    fn both(&self, left: (Column, Column), right: (Column, Column)) -> Arc<Both> {
        Arc::new(Both { left, right, shape: self.shape })
    }

    fn band(&self, left: (Column, Column), right: (Column, Column), counts: bool) -> Produced {
        let (runs, total) = partners::in_band(&left.0, &right.0, self.how, self.reach);
        if counts {
            return Produced::Count(total.into());
        }
        let (both, how) = (self.both(left, right), self.how);
        if total > 4 * self.piece_tuples {
            return Produced::Runs(Box::new(Runs { both, how, runs, at: 0, total }));
        }
        let (i, j) = expanded(how, &runs, 0, total);
        chunk_or_positions(Positions::new(both, i, j))
    }

    /// Looks up the partner of each left tuple. Returns the partners, each once, and their positions.
    fn singles(
        &self,
        ranks: &Range<u64>,
        from: u64,
        rule: Rule,
        wants_values: bool,
    ) -> Result<((Column, Column), Vec<u32>), RelationError> {
        let (mut keys, mut values) = self.right.read(0..0, wants_values)?;
        let (mut partners, mut last) = (Vec::new(), None);
        for rank in ranks.clone() {
            let partner = match rule {
                Rule::AsOf(asof) => {
                    partners::of_key(&self.left.verified_key(rank)?, &self.right, from, (asof, self.reach))?
                }
                Rule::Band => None,
            };
            if let Some(partner) = partner
                && last != Some(partner)
            {
                let one = self.right.read(partner..partner + 1, wants_values)?;
                append(&mut keys, &one.0);
                append(&mut values, &one.1);
                last = Some(partner);
            }
            partners.push(if partner.is_some() { keys.len() as u32 - 1 } else { NONE });
        }
        Ok(((keys, values), partners))
    }
}

fn start<'a>(
    inputs: &Inputs<'a>,
    how: How,
    (rule, reach): (Rule, Reach),
    options: &StreamOptions<'a>,
) -> Answer<'a> {
    let Inputs { left, right, ref schema } = *inputs;
    let piece_tuples = options.tuples(None) as u64;
    let plan =
        format!("both are read in pieces of {piece_tuples} tuples: left tuples, and right ones near them");
    let windows = Windows::new((left, right), (rule, reach), options, piece_tuples);
    let shape = Shape {
        is_either: false,
        has_sides: schema.has_sides,
        right_key: schema.has_right_keys.then_some(schema.key_type),
        value_types: (left.value_type(), right.value_type()),
        chunk_bytes: options.piece_bytes,
    };
    let producer = Box::new(Near { left, right, how, rule, reach, shape, piece_tuples, windows });
    Answer::new(schema.clone(), producer, plan, (left.len() + right.len(), piece_tuples))
}

/// Checks the inputs, and returns them in common units with the greatest distance of a pair.
fn checked<'a>(
    how: How,
    rule: Rule,
    limit: Option<&Distance>,
    (left, right): (Relation<'a>, Relation<'a>),
    options: &StreamOptions<'_>,
) -> Result<(Inputs<'a>, Reach), RelationError> {
    let join = match rule {
        Rule::AsOf(_) => "as-of join",
        Rule::Band => "band join",
    };
    if matches!(how, How::Right | How::Full) {
        return Err(RelationError::NoHow { how, join });
    }
    if let Some(device) = options.device {
        return Err(RelationError::NoDevice { what: format!("{join}s"), device: device.name() });
    }
    let mut inputs = Inputs::new(left, right, Operator::Join(how), options)?;
    let schema = &mut inputs.schema;
    schema.has_right_keys = schema.right.is_some();
    let (key_type, meaning) = (schema.key_type, Meaning::new(schema.key_type, &schema.key_logical));
    let reach = match limit {
        Some(limit) => limit.reach(key_type, &meaning, &left.name())?,
        None if rule != Rule::AsOf(AsOf::Nearest) => Reach::all(key_type),
        // Checks that there are distances.
        None => {
            Distance::from("0").reach(key_type, &meaning, &left.name())?;
            Reach::all(key_type)
        }
    };
    Ok((inputs, reach))
}

/// Joins each left tuple with at most one right tuple: the one that `asof` specifies, if it is at most
/// `tolerance` away. The answer has the right keys too ([`Schema::has_right_keys`](super::Schema)).
///
/// Reads both inputs once, O(left + right); where left tuples are few, it searches the right input for each.
///
/// ```
/// use pleach::{KeyType, ValueType};
/// use pleach_builder::Column;
/// use pleach_relation::{AsOf, How, Relation, StreamOptions, asof};
///
/// let (trades, quotes) = (Column::U32(vec![3, 9, 20]), Column::U32(vec![1, 9, 10]));
/// let (prices, types) = (Column::U32(vec![100, 101, 102]), (KeyType::U32, ValueType::U32));
/// let left = Relation::from_columns("trades", types, &trades, &prices)?;
/// let right = Relation::from_columns("quotes", types, &quotes, &prices)?;
/// let joined = asof(AsOf::Backward, Some(&"5".into()), How::Inner, left, right, StreamOptions::default())?;
/// assert_eq!(joined.collect()?.right_keys, Column::U32(vec![1, 9]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`RelationError::KeyTypes`], [`RelationError::NoHow`] for right and full joins,
/// [`RelationError::Distance`] if the tolerance is not a distance between such keys,
/// [`RelationError::NoDistance`] if they have none and one is needed, [`RelationError::NoDevice`],
/// [`RelationError::Damaged`].
pub fn asof<'a>(
    asof: AsOf,
    tolerance: Option<&Distance>,
    how: How,
    left: Relation<'a>,
    right: Relation<'a>,
    options: StreamOptions<'a>,
) -> Result<Answer<'a>, RelationError> {
    let rule = Rule::AsOf(asof);
    let (inputs, reach) = checked(how, rule, tolerance, (left, right), &options)?;
    Ok(start(&inputs, how, (rule, reach), &options))
}

/// Joins each left tuple with all right tuples at most `distance` away. The answer has the right keys too
/// ([`Schema::has_right_keys`](super::Schema)).
///
/// O(left + right + answer).
///
/// # Errors
/// The errors of [`asof`], and [`RelationError::TooLarge`] above 2^63 tuples: where there may be that many
/// they are counted first.
pub fn band<'a>(
    distance: &Distance,
    how: How,
    left: Relation<'a>,
    right: Relation<'a>,
    options: StreamOptions<'a>,
) -> Result<Answer<'a>, RelationError> {
    let (inputs, reach) = checked(how, Rule::Band, Some(distance), (left, right), &options)?;
    if matches!(how, How::Semi | How::Anti) {
        // One partner suffices: the nearest one.
        return Ok(start(&inputs, how, (Rule::AsOf(AsOf::Nearest), reach), &options));
    }
    check_size(&inputs, how, reach, &options, TUPLES_MAX)?;
    Ok(start(&inputs, how, (Rule::Band, reach), &options))
}

/// Refuses a band join whose answer exceeds `limit` tuples. If it may, it is counted first.
fn check_size(
    inputs: &Inputs<'_>,
    how: How,
    reach: Reach,
    options: &StreamOptions<'_>,
    limit: u128,
) -> Result<(), RelationError> {
    if u128::from(inputs.left.len()) * u128::from(inputs.right.len()) <= limit {
        return Ok(());
    }
    match start(inputs, how, (Rule::Band, reach), options).counted()? {
        tuples if tuples <= limit => Ok(()),
        tuples => Err(RelationError::TooLarge { what: "the join", tuples, limit }),
    }
}
