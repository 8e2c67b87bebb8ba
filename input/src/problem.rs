//! The errors of inputs that several formats share.

use pleach_builder::SourceError;
use std::error::Error;
use std::fmt;
use std::io;

/// What is wrong with an input, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    what: String,
    /// Empty if the fault says everything.
    advice: String,
}

/// Makes a fault of its parts, which may hold texts of the user.
pub(crate) fn fault(what: impl Into<String>, advice: impl Into<String>) -> Fault {
    Fault { what: what.into(), advice: advice.into() }
}

impl Fault {
    /// Adds another thing to do.
    pub(crate) fn or(mut self, advice: &str) -> Self {
        self.advice += &format!(", or {advice}");
        self
    }
}

impl From<&'static str> for Fault {
    /// Takes a sentence of ours, `what: what to do`, which holds no text of the user.
    fn from(sentence: &'static str) -> Self {
        let (what, advice) = sentence.rsplit_once(": ").unwrap_or((sentence, ""));
        fault(what, advice)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.advice.is_empty() { Ok(()) } else { write!(f, ": {}", self.advice) }
    }
}

impl Error for Fault {}

/// Makes an error without a cause.
pub(crate) fn problem(input: &str, place: impl Into<String>, fault: impl Into<Fault>) -> SourceError {
    let Fault { what, advice } = fault.into();
    SourceError { input: input.to_owned(), place: place.into(), what, advice, cause: None }
}

/// Makes an error with a cause, whose text is shown, too.
pub(crate) fn caused<E>(input: &str, place: impl Into<String>, text: &str, cause: E) -> SourceError
where
    E: Error + Send + Sync + 'static,
{
    SourceError {
        input: input.to_owned(),
        place: place.into(),
        what: text.to_owned(),
        advice: String::new(),
        cause: Some(Box::new(cause)),
    }
}

/// Makes the error of a failed read.
pub(crate) fn unreadable(input: &str, place: impl Into<String>, error: io::Error) -> SourceError {
    caused(input, place, "cannot be read", error)
}

/// Formats a place as `row 17, column "id"`, with rows counted from 1.
pub(crate) fn place(row: u64, column: &str) -> String {
    format!("row {row}, {column}")
}

/// Makes the error for a key that has no place in the order.
pub(crate) fn nan_key(input: &str, row: u64, label: &str) -> SourceError {
    let text = "NaN cannot be a key: remove the row, or choose another column with --key";
    problem(input, place(row, label), text)
}

/// Makes the error for a missing key or value.
pub(crate) fn missing(input: &str, row: u64, label: &str) -> SourceError {
    let advice = "leave such rows out with --nulls skip, fill values in with --nulls default=V, or choose \
                  another column";
    problem(input, place(row, label), fault("it is null", advice))
}

/// Makes the error for an unknown operation.
pub(crate) fn unknown_op(input: &str, row: u64, op: &[u8]) -> SourceError {
    let shown = String::from_utf8_lossy(&op[..op.len().min(40)]).escape_debug().to_string();
    let text = fault(format!("unknown operation '{shown}'"), "use put, add or del");
    problem(input, format!("row {row}"), text)
}
