//! Errors and panics of the Parquet and Arrow libraries, as errors of ours.
//!
//! The libraries check most of what they read, but not all: some damage, and some unknown types, end in an
//! assertion. Unwinding is caught here, and nothing that was being read is used afterwards. The message that
//! Rust would print is suppressed, for the calling thread and this time only. The library's text is shown as
//! the reason, with advice. The library does not distinguish a damaged file from one that is too new, and so
//! neither do we.

use crate::problem::{Fault, fault, problem, unreadable};
use arrow_schema::ArrowError;
use pleach_builder::SourceError;
use std::cell::Cell;
use std::fmt::Display;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// The reason why something could not be read.
#[derive(Debug)]
pub(crate) enum Refused {
    /// A sentence of ours, with advice.
    Ours(Fault),
    /// The reason that a library gave.
    Library(String),
    /// An error of the system.
    System(io::Error),
}

impl Refused {
    pub(crate) fn ours(fault: impl Into<Fault>) -> Self {
        Self::Ours(fault.into())
    }

    /// Wraps the reason of a library.
    pub(crate) fn library(reason: impl Display) -> Self {
        Self::Library(one_line(&reason.to_string()))
    }

    /// Wraps an error of the Arrow library.
    pub(crate) fn arrow(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => Self::System(error),
            error => Self::library(error),
        }
    }

    /// Converts it to the error of an input.
    pub(crate) fn at(self, input: &str, place: impl Into<String>) -> SourceError {
        match self {
            Self::Ours(fault) => problem(input, place, fault),
            Self::Library(reason) => problem(input, place, unread(&reason)),
            Self::System(error) => unreadable(input, place, error),
        }
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Returns the message for content that a library does not read, with its `reason`.
fn unread(reason: &str) -> Fault {
    let advice = "check that it is complete, or write it again with plain types, uncompressed or compressed with \
                  zstd or snappy";
    fault(format!("this version cannot read it ({reason})"), advice)
}

/// Shortens a reason and removes its line ends.
fn one_line(reason: &str) -> String {
    const LETTERS: usize = 200;
    let mut line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(LETTERS) {
        line.truncate(end);
        line.push_str("...");
    }
    line
}

/// Runs `work`; returns the message of a panic in it.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
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
    // On a panic the caller drops the reader: nothing half done remains visible.
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
pub(crate) fn guarded<T>(
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
