//! Conditions on tuples.

use super::check;
use super::column::{Side, Tuples};
use super::error::{EvalError, ExprError};
use super::evaluate;
use super::program::{self, Program};
use super::ranges::{self, Analysis, KeyRange, Point};
use super::schema::Schema;
use super::tree::Test;
use std::fmt;
use std::ops::Range;

/// A condition on tuples, ready to be evaluated.
#[derive(Clone, Debug)]
pub struct Predicate {
    test: Test,
    ranges: Analysis,
}

impl Predicate {
    /// Parses a condition on tuples of this schema. O(length), except for lists of values, which are sorted.
    ///
    /// # Errors
    /// A fault in the text or its types, with its place. No tuple is read.
    pub fn parse(text: &str, schema: &Schema) -> Result<Self, ExprError> {
        let test = check::condition(text, schema)?;
        let ranges = ranges::analyse(&test);
        Ok(Self { test, ranges })
    }

    /// Sets bit `i % 64` of word `i / 64` of `bits` if the condition holds for tuple `i`, and clears all
    /// others. Returns the number of tuples for which it holds. Resizes `bits` as needed. O(tuples x size of
    /// the condition).
    ///
    /// # Errors
    /// A number does not fit, or is divided by zero, in the tuple that the error names.
    pub fn evaluate(&self, tuples: &Tuples<'_>, bits: &mut Vec<u64>) -> Result<u64, EvalError> {
        evaluate::evaluate(&self.test, tuples, bits)
    }

    /// Returns disjoint, ascending ranges of keys, as narrow as can be seen; the condition holds for no key
    /// outside them.
    #[must_use]
    pub fn key_ranges(&self) -> &[KeyRange] {
        self.ranges.keys()
    }

    /// Returns ranges of ranks for a file of `tuples` tuples; the condition holds for no rank outside them,
    /// whatever the keys.
    #[must_use]
    pub fn rank_ranges(&self, tuples: u64) -> Vec<Range<u64>> {
        self.ranges.ranks(tuples)
    }

    /// Returns true if the condition holds for every tuple whose key and rank are in
    /// [`Predicate::key_ranges`] and [`Predicate::rank_ranges`]: then no tuple needs to be evaluated.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.ranges.is_exact()
    }

    /// Returns the ranks that must be read in a file of `tuples` tuples, as disjoint, ascending ranges.
    /// `lower` and `upper` return the file's lower and upper bound of a key. O(ranges) look-ups.
    ///
    /// # Errors
    /// The errors of the look-ups.
    pub fn ranks<E>(
        &self,
        tuples: u64,
        lower: impl FnMut(&Point) -> Result<u64, E>,
        upper: impl FnMut(&Point) -> Result<u64, E>,
    ) -> Result<Vec<Range<u64>>, E> {
        self.ranges.resolve(tuples, lower, upper)
    }

    /// Returns true if the condition uses the rank of a tuple.
    #[must_use]
    pub fn uses_rank(&self) -> bool {
        self.test.uses(Side::Rank)
    }

    /// Returns true if the condition uses values, so that they must be read.
    #[must_use]
    pub fn uses_values(&self) -> bool {
        self.test.uses(Side::Value)
    }

    /// Returns the condition as a program of 64-bit words; `None` if it needs wider numbers, floats, texts,
    /// or checks.
    #[must_use]
    pub fn program(&self) -> Option<Program> {
        program::compile(&self.test)
    }

    /// Describes the evaluation, line by line.
    #[must_use]
    pub fn explain(&self) -> Vec<String> {
        let mut lines = vec![format!("where {self}")];
        lines.extend(self.ranges.explain());
        lines.push(match (self.is_exact(), self.program()) {
            (true, _) => "these ranges are the answer: no tuple is tested".to_owned(),
            (false, Some(program)) => {
                format!(
                    "each tuple there is tested, column by column; {} steps on a device",
                    program.ops.len()
                )
            }
            (false, None) => "each tuple there is tested, column by column; not on a device".to_owned(),
        });
        lines
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.test.fmt(f)
    }
}
