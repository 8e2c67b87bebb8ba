//! Panics of the Parquet and Arrow libraries on damaged input, as errors.
//!
//! The libraries check most of what they read, not all: some damage ends in an assertion. Unwinding
//! is caught here, and nothing of what was being read is used afterwards. The message that Rust would
//! print is held back, for the calling thread and this time only.

use super::problem;
use crate::source::SourceError;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`; a panic in it becomes the error that `input` is damaged.
pub(super) fn guarded<T>(
    input: &str,
    work: impl FnOnce() -> Result<T, SourceError>,
) -> Result<T, SourceError> {
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
    outcome.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no reason given");
        Err(problem(input, "", format!("it is damaged and cannot be read ({text}): make it again")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_errors() {
        assert_eq!(guarded("t", || Ok(1)).ok(), Some(1));
        let error = guarded::<()>("t", || panic!("at {}", 5)).expect_err("panicked");
        assert_eq!(error.to_string(), "t: it is damaged and cannot be read (at 5): make it again");
        let error = guarded::<()>("t", || Err(problem("t", "", "x"))).expect_err("failed");
        assert_eq!(error.to_string(), "t: x");
    }
}
