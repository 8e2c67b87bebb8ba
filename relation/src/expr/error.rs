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

    /// Returns the place for messages: `column 3 of the expression`.
    #[must_use]
    pub fn location(&self) -> String {
        column_text(self.column())
    }

    /// Returns what to do: `write` and the text that is allowed.
    #[must_use]
    pub fn advice(&self) -> String {
        format!("write {}", self.allowed)
    }
}

fn column_text(column: usize) -> String {
    format!("column {column} of the expression")
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.what, self.location(), self.advice())
    }
}

impl std::error::Error for ExprError {}

/// Error in the evaluation of an expression for a tuple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalError {
    /// Rank of the tuple.
    pub rank: u64,
    /// The fault.
    pub what: String,
    /// Column of the expression at which it occurred, in characters from 1, if it concerns one.
    pub column: Option<usize>,
}

impl EvalError {
    /// Returns the place for messages: `column 3 of the expression: the tuple of rank 5`.
    #[must_use]
    pub fn location(&self) -> String {
        let column = self.column.map_or(String::new(), |column| column_text(column) + ": ");
        format!("{column}the tuple of rank {}", self.rank)
    }

    /// Returns what to do.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        "exclude it by a condition before this one"
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.what, self.location(), self.advice())
    }
}

impl std::error::Error for EvalError {}
