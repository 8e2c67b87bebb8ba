//! The language of conditions and columns: `select --where` and `project --columns`.
//!
//! ```text
//! lex.rs       words, numbers, texts and signs           parse.rs     the tree
//! check.rs     types, constants, how wide numbers get    evaluate.rs  a chunk of tuples to a bitmap
//! ranges.rs    which keys a condition can hold for       program.rs   the same as a stack program, for devices
//! project.rs   lists of columns                          parts.rs     the same as bit fields, for devices
//! column.rs    columns as slices                      meaning.rs   dates, times, decimals and uuids
//! ```
//! Whole numbers are computed as if they had any number of bits. The types give the least and the greatest
//! result of each operation before anything is read. Where both fit into 64 bits, the operation is computed
//! in 64 bits without a check; elsewhere it is computed in 128 bits and checked. Nothing is rounded or
//! wrapped: a result that does not fit, or a division by zero, is an error that names the tuple, unless `and`
//! or `or` has decided before.
//!
//! Conditions are evaluated column by column in blocks of 4,096 tuples, from left to right; once an `and` or
//! `or` is decided for all tuples of a block, the rest is skipped. A comparison with a constant is one
//! subtraction and one comparison of the words as they are stored in the file.

mod apply;
mod check;
mod column;
mod evaluate;
mod lex;
mod meaning;
mod parse;
mod parts;
mod program;
mod project;
mod ranges;
#[cfg(test)]
mod tests;

pub use column::{ColumnRef, Side, StringsRef, Tuples};
pub use parts::{BitField, BitFields};
pub use program::{Load, Op, Program};
pub use project::Projection;
pub use ranges::{Cut, KeyRange, Point};

use pleach_format::{KeyType, Record, ValueType};
use std::fmt;
use std::ops::Range;

/// Types and names of the operands that an expression can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Type of the keys.
    pub key_type: KeyType,
    /// Type of the values.
    pub value_type: ValueType,
    /// The fields of the values, if they are records.
    pub record: Option<Record>,
    /// Name of the key column, a synonym of `key`; empty if it has none.
    pub key_name: String,
    /// Name of the value column, a synonym of `value`.
    pub value_name: String,
    /// Logical types of key and value, which projections keep.
    pub logical: (String, String),
    /// Treat dates, times, decimals and uuids as the numbers that are stored.
    pub is_raw: bool,
}

impl Schema {
    /// Makes a schema of types only.
    #[must_use]
    pub fn new(key_type: KeyType, value_type: ValueType) -> Self {
        let (key_name, value_name, logical) = Default::default();
        Self { key_type, value_type, record: None, key_name, value_name, logical, is_raw: false }
    }

    /// Makes the schema of a source, or of a file as META describes it.
    #[must_use]
    pub fn of(source: &pleach_builder::Schema) -> Self {
        Self {
            key_type: source.key_type,
            value_type: source.value_type,
            record: source.record(),
            key_name: source.key_name.clone(),
            value_name: source.value_name.clone(),
            logical: (source.key_logical.clone(), source.value_logical.clone()),
            is_raw: false,
        }
    }
}

/// Error in the text of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    /// The whole text.
    pub text: String,
    /// Range of bytes in the text that are wrong.
    pub place: Range<usize>,
    /// The fault at that place.
    pub what: String,
    /// Text that is allowed there.
    pub allowed: String,
}

impl ExprError {
    fn new(text: &str, place: Range<usize>, what: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self { text: text.to_owned(), place, what: what.into(), allowed: allowed.into() }
    }

    /// Returns the column of the place, in characters from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.text.get(..self.place.start).map_or(0, |before| before.chars().count()) + 1
    }

    /// Returns the text in one line, and below it carets under the place. Control characters are shown as
    /// blanks.
    #[must_use]
    pub fn caret(&self) -> String {
        let line: String =
            self.text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        let marked = self.text.get(self.place.clone()).map_or(0, |part| part.chars().count()).max(1);
        format!("{line}\n{}{}", " ".repeat(self.column() - 1), "^".repeat(marked))
    }
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: column {} of the expression: write {}", self.what, self.column(), self.allowed)
    }
}

impl std::error::Error for ExprError {}

/// Error in the evaluation of an expression for a tuple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalError {
    /// Rank of the tuple.
    pub rank: u64,
    /// The fault, and its place in the expression.
    pub what: String,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the tuple of rank {}: exclude it by a condition before this one", self.what, self.rank)
    }
}

impl std::error::Error for EvalError {}

/// A condition on tuples, ready to be evaluated.
#[derive(Clone, Debug)]
pub struct Predicate {
    test: check::Test,
    ranges: ranges::Analysis,
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
