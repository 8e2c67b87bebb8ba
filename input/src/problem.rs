//! The errors of inputs that several formats share.

use pleach_builder::SourceError;
use std::error::Error;
use std::io;

/// Makes an error without a cause.
pub(crate) fn problem(input: &str, place: impl Into<String>, text: impl Into<String>) -> SourceError {
    SourceError { input: input.to_owned(), place: place.into(), problem: text.into(), cause: None }
}

/// Makes an error with a cause, whose text is shown, too.
pub(crate) fn caused<E>(input: &str, place: impl Into<String>, text: &str, cause: E) -> SourceError
where
    E: Error + Send + Sync + 'static,
{
    let mut shown = cause.to_string();
    if let Some(end) = shown.find(" (os error ") {
        shown.truncate(end);
    }
    SourceError {
        input: input.to_owned(),
        place: place.into(),
        problem: format!("{text}: {shown}"),
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
    problem(input, place(row, label), "it is null: fill or drop such rows, or choose another column")
}

/// Makes the error for an unknown operation.
pub(crate) fn unknown_op(input: &str, row: u64, op: &[u8]) -> SourceError {
    let shown = String::from_utf8_lossy(&op[..op.len().min(40)]).escape_debug().to_string();
    let text = format!("unknown operation '{shown}': use put, add or del");
    problem(input, format!("row {row}"), text)
}
