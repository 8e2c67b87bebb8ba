//! Keys and ranks for which a condition can hold.
//!
//! The analysis goes from the leaves up. A comparison of the key with constants is a set of ranges, anything
//! else is all keys; `and` intersects, `or` unites, and `not` is pushed down to the leaves, where it is the
//! complement. Ranks are handled in the same way. So the condition holds for no tuple outside of both. It is
//! *exact* if it holds for all tuples inside: then the ranges are the answer.

use super::column::{Kind, Leaf, Side};
use super::operator::Comparison;
use super::tree::{Int, IntWhat, Test, shown_bytes};
use pleach_format::Key;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

/// Maximum number of ranges; more are merged into one that covers all of them.
const RANGES_MAX: usize = 4096;

/// A key in its stored form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// The encoded word of a number; also a rank.
    Word(u128),
    /// A byte string.
    Bytes(Vec<u8>),
}

/// A position between keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Before all keys.
    Start,
    /// Before the first key that is at least this.
    Before(Point),
    /// Before the first key that is above this.
    After(Point),
    /// After all keys.
    End,
}

impl Cut {
    fn parts(&self) -> (u8, Option<&Point>, bool) {
        match self {
            Self::Start => (0, None, false),
            Self::Before(point) => (1, Some(point), false),
            Self::After(point) => (1, Some(point), true),
            Self::End => (2, None, false),
        }
    }
}

impl PartialOrd for Cut {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cut {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

/// Keys from one position to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Start of the range.
    pub start: Cut,
    /// End of the range, above `start`.
    pub end: Cut,
}

/// Ranges, ascending and disjoint.
type Ranges = Vec<KeyRange>;

fn everything() -> Ranges {
    vec![KeyRange { start: Cut::Start, end: Cut::End }]
}

fn is_everything(ranges: &[KeyRange]) -> bool {
    matches!(ranges, [KeyRange { start: Cut::Start, end: Cut::End }])
}

fn between(start: Cut, end: Cut) -> Ranges {
    if start < end { vec![KeyRange { start, end }] } else { Vec::new() }
}

/// Returns the union. O(n log n).
fn union(mut ranges: Ranges) -> Ranges {
    ranges.sort_by(|a, b| a.start.cmp(&b.start));
    let mut joined: Ranges = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => {
                if range.end > last.end {
                    last.end = range.end;
                }
            }
            _ => joined.push(range),
        }
    }
    joined
}

/// Returns the intersection. O(n).
fn intersection(left: &[KeyRange], right: &[KeyRange]) -> Ranges {
    let (mut i, mut j) = (0, 0);
    let mut both = Vec::new();
    while let (Some(one), Some(other)) = (left.get(i), right.get(j)) {
        let start = (&one.start).max(&other.start).clone();
        let end = (&one.end).min(&other.end).clone();
        both.extend(between(start, end));
        if one.end < other.end {
            i += 1;
        } else {
            j += 1;
        }
    }
    both
}

fn complement(ranges: &[KeyRange]) -> Ranges {
    let mut start = Cut::Start;
    let mut rest = Vec::new();
    for range in ranges {
        rest.extend(between(start, range.start.clone()));
        start = range.end.clone();
    }
    rest.extend(between(start, Cut::End));
    rest
}

/// Ranges of a condition, and whether they are exact.
#[derive(Clone, Debug)]
pub(super) struct Analysis {
    keys: Ranges,
    ranks: Ranges,
    exact: bool,
}

impl Analysis {
    fn exact(keys: Ranges, ranks: Ranges) -> Self {
        Self { keys, ranks, exact: true }
    }

    fn unknown() -> Self {
        Self { keys: everything(), ranks: everything(), exact: false }
    }

    fn constant(truth: bool) -> Self {
        let ranges = if truth { everything() } else { Vec::new() };
        Self::exact(ranges.clone(), ranges)
    }

    /// Returns the ranges of an operand that is the key or the rank; their complement if `negated`.
    fn on(leaf: &Leaf, ranges: Ranges, negated: bool) -> Self {
        let ranges = if negated { complement(&ranges) } else { ranges };
        match (leaf.side, leaf.at) {
            (Side::Key, None) => Self::exact(ranges, everything()),
            (Side::Rank, _) => Self::exact(everything(), ranges),
            _ => Self::unknown(),
        }
    }

    fn bounded(mut self) -> Self {
        for ranges in [&mut self.keys, &mut self.ranks] {
            if ranges.len() > RANGES_MAX
                && let (Some(first), Some(last)) = (ranges.first(), ranges.last())
            {
                *ranges = between(first.start.clone(), last.end.clone());
                self.exact = false;
            }
        }
        self
    }

    pub(super) fn keys(&self) -> &[KeyRange] {
        &self.keys
    }

    pub(super) fn is_exact(&self) -> bool {
        self.exact
    }

    pub(super) fn ranks(&self, tuples: u64) -> Vec<Range<u64>> {
        let rank = |cut: &Cut| match cut {
            Cut::Start => 0,
            Cut::Before(Point::Word(word)) => u64::try_from(*word).unwrap_or(u64::MAX).min(tuples),
            Cut::After(Point::Word(word)) => {
                u64::try_from(*word).map_or(tuples, |rank| rank.saturating_add(1).min(tuples))
            }
            _ => tuples,
        };
        let ranges = self.ranks.iter().map(|range| rank(&range.start)..rank(&range.end));
        ranges.filter(|range| !range.is_empty()).collect()
    }

    pub(super) fn resolve<E>(
        &self,
        tuples: u64,
        mut lower: impl FnMut(&Point) -> Result<u64, E>,
        mut upper: impl FnMut(&Point) -> Result<u64, E>,
    ) -> Result<Vec<Range<u64>>, E> {
        let mut rank = |cut: &Cut| match cut {
            Cut::Start => Ok(0),
            Cut::Before(point) => lower(point),
            Cut::After(point) => upper(point),
            Cut::End => Ok(tuples),
        };
        let mut found: Vec<Range<u64>> = Vec::new();
        let wanted = self.ranks(tuples);
        let mut next = 0;
        for range in &self.keys {
            let (start, end) = (rank(&range.start)?, rank(&range.end)?.min(tuples));
            // Both lists ascend.
            while wanted.get(next).is_some_and(|ranks| ranks.end <= start) {
                next += 1;
            }
            for ranks in wanted[next..].iter().take_while(|ranks| ranks.start < end) {
                let (start, end) = (ranks.start.max(start), ranks.end.min(end));
                match found.last_mut() {
                    Some(last) if last.end >= start => last.end = last.end.max(end),
                    _ if start < end => found.push(start..end),
                    _ => {}
                }
            }
        }
        Ok(found)
    }

    /// Describes in words the ranges that are read.
    pub(super) fn explain(&self) -> Vec<String> {
        let line = |what: &str, ranges: &[KeyRange]| {
            let shown: Vec<String> = ranges.iter().take(4).map(|range| range.to_string()).collect();
            match ranges.len() {
                0 => format!("{what}: none"),
                count if count > 4 => format!("{what}: {} and {} more ranges", shown.join(", "), count - 4),
                _ => format!("{what}: {}", shown.join(", ")),
            }
        };
        let mut lines = vec![line("keys that are read", &self.keys)];
        if !is_everything(&self.ranks) {
            lines.push(line("ranks that are read", &self.ranks));
        }
        lines
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => write!(f, "{word:#x}"),
            Self::Bytes(bytes) => f.write_str(&shown_bytes(bytes)),
        }
    }
}

impl fmt::Display for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.start, &self.end) {
            (Cut::Start | Cut::End, Cut::Start | Cut::End) => f.write_str("all"),
            (Cut::Before(start), Cut::After(end)) if start == end => start.fmt(f),
            (start, end) => {
                match start {
                    Cut::Before(point) => write!(f, "[{point}, ")?,
                    Cut::After(point) => write!(f, "({point}, ")?,
                    Cut::Start | Cut::End => f.write_str("(.., ")?,
                }
                match end {
                    Cut::Before(point) => write!(f, "{point})"),
                    Cut::After(point) => write!(f, "{point}]"),
                    Cut::Start | Cut::End => f.write_str("..)"),
                }
            }
        }
    }
}

/// Returns the ranges outside of which `test` holds for no tuple.
pub(super) fn analyse(test: &Test) -> Analysis {
    side(test, false)
}

fn side(test: &Test, negated: bool) -> Analysis {
    match test {
        Test::Constant(truth) => Analysis::constant(*truth != negated),
        Test::Not(of) => side(of, !negated),
        Test::All(tests) if !negated => intersected(tests, negated),
        Test::Any(tests) if negated => intersected(tests, negated),
        Test::All(tests) | Test::Any(tests) => united(tests, negated),
        Test::Within(int, low, high) => match leaf(int) {
            Some(leaf) => {
                let (low, high) = (word(leaf, *low), word(leaf, *high));
                Analysis::on(leaf, between(before(low), after(leaf, high)), negated)
            }
            None => Analysis::unknown(),
        },
        Test::In(int, list) => match leaf(int) {
            Some(leaf) => {
                let ranges = list.iter().map(|&number| {
                    let word = word(leaf, number);
                    KeyRange { start: before(word), end: after(leaf, word) }
                });
                Analysis::on(leaf, union(ranges.collect()), negated).bounded()
            }
            None => Analysis::unknown(),
        },
        Test::Float(comparison, leaf, number) if leaf.side == Side::Key => {
            // A key is never NaN.
            let ranges = compared(*comparison, Point::Word((<f64 as Key>::encode(*number)).into()));
            Analysis::on(leaf, ranges, negated)
        }
        Test::Text(comparison, leaf, text) => {
            Analysis::on(leaf, compared(*comparison, Point::Bytes(text.clone())), negated)
        }
        Test::Prefix(leaf, prefix) => {
            let end = successor(prefix).map_or(Cut::End, |end| Cut::Before(Point::Bytes(end)));
            Analysis::on(leaf, between(Cut::Before(Point::Bytes(prefix.clone())), end), negated)
        }
        Test::TextIn(leaf, list) => {
            let ranges = list.iter().map(|text| {
                let point = Point::Bytes(text.clone());
                KeyRange { start: Cut::Before(point.clone()), end: Cut::After(point) }
            });
            Analysis::on(leaf, union(ranges.collect()), negated).bounded()
        }
        Test::Compare(..) | Test::Float(..) | Test::FloatPair(..) | Test::TextPair(..) => Analysis::unknown(),
    }
}

fn intersected(tests: &[Test], negated: bool) -> Analysis {
    let of = tests.iter().map(|test| side(test, negated));
    of.fold(Analysis::constant(true), |all, one| Analysis {
        keys: intersection(&all.keys, &one.keys),
        ranks: intersection(&all.ranks, &one.ranks),
        exact: all.exact && one.exact,
    })
}

fn united(tests: &[Test], negated: bool) -> Analysis {
    let of: Vec<Analysis> = tests.iter().map(|test| side(test, negated)).collect();
    // Some keys at any rank, or some ranks of any key: the union is exact. A mixture is inside a larger
    // range.
    let exact = of.iter().all(|one| one.exact)
        && (of.iter().all(|one| is_everything(&one.ranks)) || of.iter().all(|one| is_everything(&one.keys)));
    let (mut keys, mut ranks) = (Vec::new(), Vec::new());
    // A test that holds for no tuple adds nothing.
    for one in of.into_iter().filter(|one| !one.keys.is_empty() && !one.ranks.is_empty()) {
        keys.extend(one.keys);
        ranks.extend(one.ranks);
    }
    Analysis { keys: union(keys), ranks: union(ranks), exact }.bounded()
}

/// Returns the operand of a number, if it is just the key or the rank.
fn leaf(int: &Int) -> Option<&Leaf> {
    match &int.what {
        IntWhat::Leaf(leaf) if leaf.at.is_none() && leaf.side != Side::Value => Some(leaf),
        _ => None,
    }
}

/// Returns the encoded word of a number that fits the operand.
fn word(leaf: &Leaf, number: u128) -> u128 {
    match leaf.kind {
        Kind::I32 => u128::from(number as u32 ^ 1 << 31),
        Kind::I64 => u128::from(number as u64 ^ 1 << 63),
        _ => number,
    }
}

fn compared(comparison: Comparison, point: Point) -> Ranges {
    let (before, after) = (Cut::Before(point.clone()), Cut::After(point));
    match comparison {
        Comparison::Equal => between(before, after),
        Comparison::Unequal => complement(&between(before, after)),
        Comparison::Below => between(Cut::Start, before),
        Comparison::AtMost => between(Cut::Start, after),
        Comparison::Above => between(after, Cut::End),
        Comparison::AtLeast => between(before, Cut::End),
    }
}

/// Returns the cut before a word; before the least word it is the start.
fn before(word: u128) -> Cut {
    if word == 0 { Cut::Start } else { Cut::Before(Point::Word(word)) }
}

/// Returns the cut after a word; after the greatest word it is the end.
fn after(leaf: &Leaf, word: u128) -> Cut {
    if word == u128::MAX >> (128 - leaf.kind.bits()) { Cut::End } else { Cut::After(Point::Word(word)) }
}

/// Returns the first byte string above all that begin with `prefix`, if there is one.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte < 0xFF)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}
