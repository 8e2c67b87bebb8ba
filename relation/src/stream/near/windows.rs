//! Pieces of left tuples, each with its window: the right ranks that can hold partners.
//!
//! Windows of ascending left keys ascend too, so the search for each begins where the one before began. The
//! search reads verified keys alone, because tuples outside the window are not read. A left piece whose
//! window is too large for a piece is halved. Two cases remain:
//!
//! - A few left tuples are spread over many right ones. An as-of join then looks up each left tuple.
//! - One left tuple of a band join has many partners. Its window is cut, and all of it is in the answer.

use super::reach::Reach;
use crate::error::RelationError;
use crate::expr::Point;
use crate::rules::AsOf;
use crate::stream::input::Relation;
use crate::stream::options::StreamOptions;
use std::ops::Range;

/// Maximum left tuples of a piece that are looked up one by one.
const SINGLES_MAX: u64 = 64;
/// Right tuples per left one from which looking up each left tuple is faster than reading the window.
const SPARSE: u64 = 1 << 13;

/// Which right tuples are partners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    AsOf(AsOf),
    Band,
}

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Left tuples, and the right ones that can be their partners.
    Window(Range<u64>, Range<u64>),
    /// Left tuples whose partners are looked up one by one, from a right rank on.
    Singles(Range<u64>, u64),
    /// A left tuple, and partners of it.
    Pairs(u64, Range<u64>),
}

/// The pieces, made on request.
pub(super) struct Windows<'a> {
    left: Relation<'a>,
    right: Relation<'a>,
    rule: Rule,
    reach: Reach,
    /// Tuples per piece, of both sides together.
    tuples: u64,
    /// Bytes of strings per side of a piece.
    bytes: u64,
    /// First left rank of the next piece.
    at: u64,
    /// First right rank of the last window.
    low: u64,
    /// Left tuples to try next.
    step: u64,
    /// A left tuple, and the rest of its partners.
    rest: Option<(u64, Range<u64>)>,
}

impl<'a> Windows<'a> {
    pub(super) fn new(
        (left, right): (Relation<'a>, Relation<'a>),
        (rule, reach): (Rule, Reach),
        options: &StreamOptions<'_>,
        tuples: u64,
    ) -> Self {
        let (tuples, bytes) = (tuples.max(1), options.piece_bytes as u64);
        let step = (tuples / 2).max(1);
        Self { left, right, rule, reach, tuples, bytes, at: 0, low: 0, step, rest: None }
    }

    /// Returns the number of tuples of both sides that no later piece needs.
    pub(super) fn done(&self) -> u64 {
        if self.at == self.left.len() && self.rest.is_none() {
            return self.left.len() + self.right.len();
        }
        self.at + self.low
    }

    /// Returns the next piece. The partners of a left tuple alone are not cut if only a count was requested
    /// (`counts`).
    pub(super) fn next(&mut self, counts: bool) -> Result<Option<Piece>, RelationError> {
        if let Some((rank, window)) = self.rest.take() {
            let mut end = window.end;
            if !counts {
                end = end.min(window.start.saturating_add(self.tuples));
                end = self.right.within(window.start..end, self.bytes)?;
            }
            if end < window.end {
                self.rest = Some((rank, end..window.end));
            }
            return Ok(Some(Piece::Pairs(rank, window.start..end)));
        }
        let from = self.at;
        if from == self.left.len() {
            return Ok(None);
        }
        let end = self.left.len().min(from.saturating_add(self.step));
        let mut count = self.left.within(from..end, self.bytes)? - from;
        self.low = self.first(&self.left.verified_key(from)?)?;
        loop {
            let high = self.end(&self.left.verified_key(from + count - 1)?)?;
            let window = high - self.low;
            let tuples = count.saturating_add(window);
            if tuples <= self.tuples && self.right.within(self.low..high, self.bytes)? == high {
                self.step = if tuples <= self.tuples / 2 { count * 2 } else { count };
                self.at += count;
                return Ok(Some(Piece::Window(from..self.at, self.low..high)));
            }
            let is_sparse = count == 1 || window / count >= SPARSE;
            match self.rule {
                Rule::AsOf(_) if is_sparse => {
                    self.step = count.min(SINGLES_MAX);
                    self.at += self.step;
                    return Ok(Some(Piece::Singles(from..self.at, self.low)));
                }
                Rule::Band if count == 1 => {
                    (self.step, self.at) = (1, from + 1);
                    self.rest = Some((from, self.low..high));
                    return self.next(counts);
                }
                Rule::AsOf(_) | Rule::Band => count /= 2,
            }
        }
    }

    /// Returns the first right rank that a left key needs.
    fn first(&self, key: &Point) -> Result<u64, RelationError> {
        match self.rule {
            Rule::AsOf(AsOf::Forward) => self.right.verified_from(self.low, |other| other < key),
            Rule::AsOf(AsOf::Backward | AsOf::Nearest) => {
                Ok(self.right.verified_from(self.low, |other| other <= key)?.saturating_sub(1))
            }
            Rule::Band => {
                let is_near = |other: &Point| self.reach.holds(word(other), word(key));
                self.right.verified_from(self.low, |other| other < key && !is_near(other))
            }
        }
    }

    /// Returns the end of the right ranks that a left key needs.
    fn end(&self, key: &Point) -> Result<u64, RelationError> {
        let (low, end) = (self.low, self.right.len());
        match self.rule {
            Rule::AsOf(AsOf::Backward) => self.right.verified_from(low, |other| other <= key),
            Rule::AsOf(AsOf::Forward) => {
                Ok(self.right.verified_from(low, |other| other < key)?.saturating_add(1).min(end))
            }
            Rule::AsOf(AsOf::Nearest) => {
                Ok(self.right.verified_from(low, |other| other <= key)?.saturating_add(1).min(end))
            }
            Rule::Band => {
                let is_near = |other: &Point| self.reach.holds(word(key), word(other));
                self.right.verified_from(low, |other| other <= key || is_near(other))
            }
        }
    }
}

/// Returns the word of a key; byte strings have none, nor a distance.
pub(super) fn word(key: &Point) -> u128 {
    match key {
        Point::Word(word) => *word,
        Point::Bytes(_) => 0,
    }
}
