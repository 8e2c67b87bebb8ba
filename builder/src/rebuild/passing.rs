//! Errors of the build that pass through a source.

use crate::error::BuildError;
use crate::source::SourceError;

/// Wraps an error so that it can pass through a [`Source`](crate::source::Source).
pub(crate) fn source_error(error: BuildError) -> SourceError {
    SourceError {
        input: "base".into(),
        place: String::new(),
        what: "cannot be read".into(),
        advice: String::new(),
        cause: Some(Box::new(error)),
    }
}

/// Returns the error that [`source_error`] wrapped, or `error` itself.
pub(crate) fn unwrapped(error: BuildError) -> BuildError {
    match error {
        BuildError::Source(mut source) => {
            match source.cause.take().map(|cause| cause.downcast::<BuildError>()) {
                Some(Ok(error)) => *error,
                Some(Err(cause)) => BuildError::Source(SourceError { cause: Some(cause), ..source }),
                None => BuildError::Source(source),
            }
        }
        error => error,
    }
}
