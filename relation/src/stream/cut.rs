//! Pieces of work over two inputs, one after the other.
//!
//! Merge path cuts both inputs into about equal numbers of tuples. Each cut is moved to the beginning of a
//! key, on both sides; so the tuples between two cuts can be processed alone, by every operator alike. Where
//! strings are long, pieces have fewer tuples.
//!
//! A key with more tuples than a piece holds becomes a piece of its own. The two numbers of tuples determine
//! its answer: some of its left tuples, some of its right ones, or all pairs. Such pieces are cut again, by
//! the size of their answers.

use super::device::Task;
use super::input::Relation;
use super::options::StreamOptions;
use crate::error::RelationError;
use crate::expr::Point;
use crate::rules::{How, SetOperation, SetRule};
use std::collections::VecDeque;
use std::ops::Range;

/// An operator of two inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Set(SetOperation, SetRule),
    Join(How),
    /// All pairs, whatever the keys.
    Product,
}

impl Operator {
    /// Returns the operator as a task for devices.
    pub(super) fn task(self) -> Task<'static> {
        match self {
            Self::Set(operation, rule) => Task::Set(operation, rule),
            Self::Join(how) => Task::Join(how),
            Self::Product => Task::Product,
        }
    }
}

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Tuples of both sides; no key continues outside them.
    Sweep(Range<u64>, Range<u64>),
    /// Left tuples are the answer.
    Left(Range<u64>),
    /// Right tuples are the answer.
    Right(Range<u64>),
    /// All pairs are the answer.
    Pairs(Range<u64>, Range<u64>),
    /// Tuples that are not in the answer, but are read because they may be damaged.
    Pass(Range<u64>, Range<u64>),
}

/// The pieces, made on request.
pub(super) struct Pieces<'a> {
    left: Relation<'a>,
    right: Relation<'a>,
    operator: Operator,
    /// Tuples per piece.
    tuples: u64,
    /// Bytes of strings per side of a piece.
    bytes: u64,
    at: (u64, u64),
    /// Remaining pieces of a key with many tuples.
    rest: VecDeque<Piece>,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(
        (left, right): (Relation<'a>, Relation<'a>),
        operator: Operator,
        options: &StreamOptions<'_>,
        tuples: u64,
    ) -> Self {
        let (tuples, bytes) = (tuples.max(1), options.piece_bytes as u64);
        let mut this = Self { left, right, operator, tuples, bytes, at: (0, 0), rest: VecDeque::new() };
        if operator == Operator::Product {
            this.at = (left.len(), right.len());
            this.rest.push_back(Piece::Pairs(0..left.len(), 0..right.len()));
            if left.is_empty() || right.is_empty() {
                this.rest = VecDeque::from([Piece::Pass(0..left.len(), 0..right.len())]);
            }
        }
        this
    }

    /// Returns the number of tuples of both sides in the pieces that were returned.
    pub(super) fn done(&self) -> u64 {
        self.at.0 + self.at.1
    }

    /// Returns the next piece. If only a count was requested (`counts`), pieces whose answer follows from the
    /// numbers of tuples are not cut; their inputs are read as [`Piece::Pass`].
    pub(super) fn next(&mut self, counts: bool) -> Result<Option<Piece>, RelationError> {
        loop {
            match self.rest.pop_front() {
                Some(Piece::Pairs(left, right)) if counts && self.operator == Operator::Product => {
                    self.rest.push_front(Piece::Pass(left.clone(), right.clone()));
                    return Ok(Some(Piece::Pairs(left, right)));
                }
                Some(piece) if counts && !matches!(piece, Piece::Pass(..)) => return Ok(Some(piece)),
                Some(piece) => return self.limit(piece).map(Some),
                None => {}
            }
            let end = (self.left.len(), self.right.len());
            if self.at == end {
                return Ok(None);
            }
            let from = self.at;
            match self.cut()? {
                Some(to) => {
                    self.at = to;
                    return Ok(Some(Piece::Sweep(from.0..to.0, from.1..to.1)));
                }
                None => self.key_alone()?,
            }
        }
    }

    /// Returns an upper bound of the answers of a join, exact for keys that are pieces of their own. Reads
    /// few keys, and verifies none.
    pub(super) fn answers_max(mut self) -> Result<u128, RelationError> {
        let end = (self.left.len(), self.right.len());
        // Tuples without a partner.
        let mut answers = u128::from(end.0) + u128::from(end.1);
        while self.at != end {
            let from = self.at;
            match self.cut_tuples(self.tuples)? {
                Some(to) => {
                    self.at = to;
                    answers += u128::from(to.0 - from.0) * u128::from(to.1 - from.1);
                }
                None => self.key_alone()?,
            }
            for piece in self.rest.drain(..) {
                if let Piece::Pairs(left, right) = piece {
                    answers += u128::from(left.end - left.start) * u128::from(right.end - right.start);
                }
            }
        }
        Ok(answers)
    }

    /// Returns the first part of a piece, within the tuples and bytes per piece; the rest remains in the
    /// queue.
    fn limit(&mut self, piece: Piece) -> Result<Piece, RelationError> {
        let first = |input: &Relation<'_>, range: &Range<u64>, tuples: u64| {
            let end = range.end.min(range.start.saturating_add(tuples));
            input.within(range.start..end, self.bytes)
        };
        let split = |range: &Range<u64>, middle: u64| (range.start..middle, middle..range.end);
        let (now, later) = match &piece {
            Piece::Left(range) => {
                let (now, later) = split(range, first(&self.left, range, self.tuples)?);
                (Piece::Left(now), Piece::Left(later))
            }
            Piece::Right(range) => {
                let (now, later) = split(range, first(&self.right, range, self.tuples)?);
                (Piece::Right(now), Piece::Right(later))
            }
            Piece::Pass(left, right) => {
                let (a, c) = split(left, first(&self.left, left, self.tuples)?);
                let (b, d) = split(right, first(&self.right, right, self.tuples)?);
                (Piece::Pass(a, b), Piece::Pass(c, d))
            }
            Piece::Pairs(left, right) => {
                let middle = first(&self.right, right, self.tuples)?;
                let is_whole = middle == right.end;
                if !is_whole && left.end - left.start == 1 {
                    let (now, later) = split(right, middle);
                    (Piece::Pairs(left.clone(), now), Piece::Pairs(left.clone(), later))
                } else {
                    let n = (right.end - right.start).max(1);
                    let tuples = if is_whole { (self.tuples / n).max(1) } else { 1 };
                    let (now, later) = split(left, first(&self.left, left, tuples)?);
                    let later = Piece::Pairs(later, right.clone());
                    if !is_whole {
                        self.rest.push_front(later);
                        return self.limit(Piece::Pairs(now, right.clone()));
                    }
                    (Piece::Pairs(now, right.clone()), later)
                }
            }
            Piece::Sweep(..) => return Ok(piece),
        };
        if !later.is_empty() {
            self.rest.push_front(later);
        }
        Ok(now)
    }

    /// Returns the end of the next piece; `None` if the key that begins here has more tuples, or bytes, than
    /// a piece.
    fn cut(&self) -> Result<Option<(u64, u64)>, RelationError> {
        let (from, mut tuples) = (self.at, self.tuples);
        loop {
            let Some(to) = self.cut_tuples(tuples)? else { return Ok(None) };
            let fits = self.left.within(from.0..to.0, self.bytes)? == to.0
                && self.right.within(from.1..to.1, self.bytes)? == to.1;
            let is_least = (to.0 - from.0) + (to.1 - from.1) <= 1;
            if fits || is_least {
                return Ok(Some(to));
            }
            tuples = tuples.min((to.0 - from.0) + (to.1 - from.1)).div_ceil(2);
        }
    }

    /// Returns the end of a piece of `tuples` tuples; `None` if the key that begins here has more.
    fn cut_tuples(&self, tuples: u64) -> Result<Option<(u64, u64)>, RelationError> {
        let (a, b, from) = (&self.left, &self.right, self.at);
        let end = (a.len(), b.len());
        let diagonal = from.0.saturating_add(from.1).saturating_add(tuples);
        if diagonal >= end.0.saturating_add(end.1) {
            return Ok(Some(end));
        }
        // As `memory::cut::merge`: left tuples before equal right ones.
        let mut low = from.0.max(diagonal.saturating_sub(end.1));
        let mut high = end.0.min(diagonal - from.1).max(low);
        while low < high {
            let middle = low + (high - low) / 2;
            if a.key(middle)? <= b.key(diagonal - middle - 1)? {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let (i, j) = (low, diagonal - low);
        // The first key after the cut begins the next piece, unless it begins before the cut.
        let Some(key) = self.least((i, j))? else { return Ok(Some(end)) };
        let to = (a.bound(from.0..i, |k| *k < key)?, b.bound(from.1..j, |k| *k < key)?);
        Ok((to != from).then_some(to))
    }

    /// Returns the lesser of the keys at these ranks, if there are any.
    fn least(&self, (i, j): (u64, u64)) -> Result<Option<Point>, RelationError> {
        let key = |input: &Relation<'_>, at: u64| (at < input.len()).then(|| input.key(at)).transpose();
        let keys = [key(&self.left, i)?, key(&self.right, j)?];
        Ok(keys.into_iter().flatten().min())
    }

    /// Adds the answer of the key that begins here to the queue.
    fn key_alone(&mut self) -> Result<(), RelationError> {
        let (a, b, from) = (&self.left, &self.right, self.at);
        let Some(key) = self.least(from)? else { return Ok(()) };
        let to = (a.bound(from.0..a.len(), |k| *k <= key)?, b.bound(from.1..b.len(), |k| *k <= key)?);
        // Keys out of order, in a damaged file: skipped tuples are verified.
        let to = if to == from { (a.len(), b.len()) } else { to };
        let (left, right) = (from.0..to.0, from.1..to.1);
        let (m, n) = (to.0 - from.0, to.1 - from.1);
        let first = |range: &Range<u64>, tuples: u64| range.start..range.start + tuples;
        let last = |range: &Range<u64>, tuples: u64| range.end - tuples..range.end;
        let answer = match self.operator {
            Operator::Product => None,
            Operator::Set(operation, rule) => match (operation, rule) {
                (SetOperation::Union, SetRule::Set) if m > 0 => Some(Piece::Left(first(&left, 1))),
                (SetOperation::Union, SetRule::Set) => Some(Piece::Right(first(&right, n.min(1)))),
                (SetOperation::Union, SetRule::Multiset) => {
                    self.rest.push_back(Piece::Left(left.clone()));
                    Some(Piece::Right(last(&right, n.saturating_sub(m))))
                }
                (SetOperation::Intersection, SetRule::Set) => {
                    Some(Piece::Left(first(&left, m.min(n).min(1))))
                }
                (SetOperation::Intersection, SetRule::Multiset) => Some(Piece::Left(first(&left, m.min(n)))),
                (SetOperation::Difference, SetRule::Set) if n > 0 => None,
                (SetOperation::Difference, SetRule::Set) => Some(Piece::Left(first(&left, m.min(1)))),
                (SetOperation::Difference, SetRule::Multiset) => {
                    Some(Piece::Left(last(&left, m.saturating_sub(n))))
                }
            },
            Operator::Join(how) => match how {
                How::Semi if n > 0 => Some(Piece::Left(left.clone())),
                How::Anti if n == 0 => Some(Piece::Left(left.clone())),
                How::Semi | How::Anti => None,
                _ if m > 0 && n > 0 => Some(Piece::Pairs(left.clone(), right.clone())),
                How::Left | How::Full if m > 0 => Some(Piece::Left(left.clone())),
                How::Right | How::Full if n > 0 => Some(Piece::Right(right.clone())),
                _ => None,
            },
        };
        self.rest.extend(answer);
        self.rest.retain(|piece| !piece.is_empty());
        self.rest.push_back(Piece::Pass(left, right));
        self.at = to;
        Ok(())
    }
}

impl Piece {
    fn is_empty(&self) -> bool {
        match self {
            Self::Left(range) | Self::Right(range) => range.is_empty(),
            Self::Pairs(left, right) => left.is_empty() || right.is_empty(),
            Self::Sweep(left, right) | Self::Pass(left, right) => left.is_empty() && right.is_empty(),
        }
    }
}
