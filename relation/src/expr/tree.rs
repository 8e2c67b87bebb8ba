//! Conditions as trees with types: what a text means, whatever it is then used for.

use super::column::{Leaf, Side};
use super::operator::{Arithmetic, Comparison};
use std::fmt;

/// Width in which whole numbers are computed. Wider results are checked during the computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    I64,
    U64,
    I128,
    /// Contains a u128; never negative.
    U128,
}

impl Width {
    /// Returns the narrowest width for these numbers.
    pub(super) fn of(low: i128, high: i128) -> Self {
        if low >= i64::MIN.into() && high <= i64::MAX.into() {
            Self::I64
        } else if low >= 0 && high <= u64::MAX.into() {
            Self::U64
        } else {
            Self::I128
        }
    }
}

/// Expression that gives a whole number for each tuple.
#[derive(Clone, Debug)]
pub(super) struct Int {
    pub(super) what: IntWhat,
    /// Least and greatest result; without meaning for [`Width::U128`].
    pub(super) low: i128,
    pub(super) high: i128,
    /// Width that its operands and its result fit into.
    pub(super) width: Width,
    /// Column of the expression, for messages.
    pub(super) column: usize,
}

#[derive(Clone, Debug)]
pub(super) enum IntWhat {
    /// A constant; a negative one as the bits of an `i128`.
    Constant(u128),
    Leaf(Leaf),
    Arithmetic(Arithmetic, Box<Int>, Box<Int>),
}

/// A condition.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Constant(bool),
    Not(Box<Test>),
    All(Vec<Test>),
    Any(Vec<Test>),
    /// Numbers from `low` to `high`, as `i128` bits unless the width is [`Width::U128`].
    Within(Int, u128, u128),
    /// Numbers of a list, ascending as `u128`, without duplicates.
    In(Int, Vec<u128>),
    Compare(Comparison, Int, Int, Width),
    Float(Comparison, Leaf, f64),
    FloatPair(Comparison, Leaf, Leaf),
    Text(Comparison, Leaf, Vec<u8>),
    TextPair(Comparison, Leaf, Leaf),
    Prefix(Leaf, Vec<u8>),
    /// Byte strings of a list, ascending, without duplicates.
    TextIn(Leaf, Vec<Vec<u8>>),
}

impl Int {
    fn leaves(&self, found: &mut dyn FnMut(&Leaf)) {
        match &self.what {
            IntWhat::Constant(_) => {}
            IntWhat::Leaf(leaf) => found(leaf),
            IntWhat::Arithmetic(_, left, right) => {
                left.leaves(found);
                right.leaves(found);
            }
        }
    }

    /// Returns a number of this width as text.
    pub(super) fn shown(&self, number: u128) -> String {
        if self.width == Width::U128 { number.to_string() } else { number.cast_signed().to_string() }
    }
}

impl Test {
    fn leaves(&self, found: &mut dyn FnMut(&Leaf)) {
        match self {
            Self::Constant(_) => {}
            Self::Not(of) => of.leaves(found),
            Self::All(of) | Self::Any(of) => of.iter().for_each(|test| test.leaves(found)),
            Self::Within(int, ..) | Self::In(int, _) => int.leaves(found),
            Self::Compare(_, left, right, _) => {
                left.leaves(found);
                right.leaves(found);
            }
            Self::Float(_, leaf, _)
            | Self::Text(_, leaf, _)
            | Self::Prefix(leaf, _)
            | Self::TextIn(leaf, _) => found(leaf),
            Self::FloatPair(_, left, right) | Self::TextPair(_, left, right) => {
                found(left);
                found(right);
            }
        }
    }

    /// Returns true if the test uses this side of tuples.
    pub(super) fn uses(&self, side: Side) -> bool {
        let mut uses = false;
        self.leaves(&mut |leaf| uses |= leaf.side == side);
        uses
    }
}

impl fmt::Display for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            IntWhat::Constant(number) => f.write_str(&self.shown(*number)),
            IntWhat::Leaf(leaf) => f.write_str(&leaf.name),
            IntWhat::Arithmetic(operation, left, right) => write!(f, "({left} {} {right})", operation.sign()),
        }
    }
}

/// Returns bytes as text, or in hexadecimal digits.
pub(super) fn shown_bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("{text:?}"),
        Err(_) => format!("\\x{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chain = |f: &mut fmt::Formatter<'_>, tests: &[Test], word: &str| {
            f.write_str("(")?;
            for (index, test) in tests.iter().enumerate() {
                f.write_str(if index > 0 { word } else { "" })?;
                test.fmt(f)?;
            }
            f.write_str(")")
        };
        match self {
            Self::Constant(truth) => truth.fmt(f),
            Self::Not(of) => write!(f, "not {of}"),
            Self::All(tests) => chain(f, tests, " and "),
            Self::Any(tests) => chain(f, tests, " or "),
            Self::Within(int, low, high) if low == high => write!(f, "{int} == {}", int.shown(*low)),
            Self::Within(int, low, high) => {
                write!(f, "{int} between {} and {}", int.shown(*low), int.shown(*high))
            }
            Self::In(int, list) if list.len() <= 8 => {
                let shown: Vec<String> = list.iter().map(|&number| int.shown(number)).collect();
                write!(f, "{int} in ({})", shown.join(", "))
            }
            Self::In(int, list) => write!(f, "{int} in ({} numbers)", list.len()),
            Self::Compare(comparison, left, right, _) => write!(f, "{left} {} {right}", comparison.sign()),
            Self::Float(comparison, leaf, number) => {
                write!(f, "{} {} {number:?}", leaf.name, comparison.sign())
            }
            Self::FloatPair(comparison, left, right) | Self::TextPair(comparison, left, right) => {
                write!(f, "{} {} {}", left.name, comparison.sign(), right.name)
            }
            Self::Text(comparison, leaf, text) => {
                write!(f, "{} {} {}", leaf.name, comparison.sign(), shown_bytes(text))
            }
            Self::Prefix(leaf, prefix) => write!(f, "{} starts with {}", leaf.name, shown_bytes(prefix)),
            Self::TextIn(leaf, list) if list.len() <= 8 => {
                let shown: Vec<String> = list.iter().map(|text| shown_bytes(text)).collect();
                write!(f, "{} in ({})", leaf.name, shown.join(", "))
            }
            Self::TextIn(leaf, list) => write!(f, "{} in ({} texts)", leaf.name, list.len()),
        }
    }
}
