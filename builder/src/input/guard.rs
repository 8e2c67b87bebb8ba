//! What the Parquet and Arrow libraries refuse, and their panics, as errors of ours.
//!
//! The libraries check most of what they read, not all: some damage, and some types that they do not know, end in an
//! assertion. Unwinding is caught here, and nothing of what was being read is used afterwards. The message that Rust
//! would print is held back, for the calling thread and this time only. What a library says is shown as the reason, and
//! what to do is said beside it; whether the file is damaged or merely new to this version, it does not tell apart, and
//! so neither do we.

use super::problem;
use crate::source::SourceError;
use arrow_schema::ArrowError;
use std::cell::Cell;
use std::fmt::Display;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Why something could not be read.
#[derive(Debug)]
pub(super) enum Refused {
    /// A sentence with what to do.
    Ours(String),
    /// The reason that a library gave.
    Library(String),
    /// The system's error.
    System(io::Error),
}

impl Refused {
    pub(super) fn ours(text: impl Into<String>) -> Self {
        Self::Ours(text.into())
    }

    /// The reason of a library.
    pub(super) fn library(reason: impl Display) -> Self {
        Self::Library(one_line(&reason.to_string()))
    }

    /// An error of the Arrow library.
    pub(super) fn arrow(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => Self::System(error),
            error => Self::library(error),
        }
    }

    /// As the error of an input.
    pub(super) fn at(self, input: &str, place: impl Into<String>) -> SourceError {
        match self {
            Self::Ours(text) => problem(input, place, text),
            Self::Library(reason) => problem(input, place, unread(&reason)),
            Self::System(error) => super::caused(input, place, "cannot be read", error),
        }
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// What is said of what a library does not read, for its `reason`.
fn unread(reason: &str) -> String {
    format!(
        "this version cannot read it ({reason}): check that it is whole, or write it again with plain types, packed \
         with zstd or snappy if at all"
    )
}

/// A reason without line ends and without end.
fn one_line(reason: &str) -> String {
    const LETTERS: usize = 200;
    let mut line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(LETTERS) {
        line.truncate(end);
        line.push_str("...");
    }
    line
}

/// Runs `work`; a panic in it becomes its message.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                previous(info);
            }
        }));
    });
    let before = GUARDED.replace(true);
    // On a panic the caller drops the reader: nobody sees what it left half done.
    let outcome = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(before);
    outcome.map_err(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no reason given");
        one_line(text)
    })
}

/// Runs `work`; a panic in it becomes the error that `input` cannot be read.
pub(super) fn guarded<T>(
    input: &str,
    work: impl FnOnce() -> Result<T, SourceError>,
) -> Result<T, SourceError> {
    caught(work).unwrap_or_else(|reason| Err(problem(input, "", unread(&reason))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_errors() {
        assert_eq!(guarded("t", || Ok(1)).ok(), Some(1));
        let error = guarded::<()>("t", || panic!("at {}\n  once", 5)).expect_err("panicked");
        assert_eq!(error.to_string(), format!("t: {}", unread("at 5 once")));
        let error = guarded::<()>("t", || Err(problem("t", "", "x"))).expect_err("failed");
        assert_eq!(error.to_string(), "t: x");
    }
}
