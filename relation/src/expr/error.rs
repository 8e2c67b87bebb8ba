//! Errors in the text of an expression, and in its evaluation.

use std::fmt;
use std::ops::Range;

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
    pub(super) fn new(
        text: &str,
        place: Range<usize>,
        what: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Self {
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
