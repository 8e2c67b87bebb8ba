//! Errors: those of files and sets, as the engine carries them.

use datafusion::error::DataFusionError;
use pleach::ErrorKind;
use pleach_batch::BatchError;
use pleach_set::SetError;
use std::fmt;

/// Result of the functions of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of a file or a set. Its text is one line: what, where, what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be opened or read.
    File(pleach::Error),
    /// A set cannot be opened or read; the error names its file or manifest.
    Set(SetError),
    /// Tuples cannot be read as arrays.
    Batch(BatchError),
    /// What was asked for is not possible.
    Usage(String),
}

impl Error {
    /// Returns the error of a file or a set inside that of the engine, if there is one.
    #[must_use]
    pub fn inside(error: &DataFusionError) -> Option<&Self> {
        let mut found: &(dyn std::error::Error + 'static) = error;
        loop {
            if let Some(own) = found.downcast_ref::<Self>() {
                return Some(own);
            }
            // The source of an error that is wrapped is the next one, and not itself.
            found = match found.downcast_ref::<DataFusionError>() {
                Some(DataFusionError::External(inner)) => &**inner,
                _ => found.source()?,
            };
        }
    }

    /// Returns the text of an error of the engine in one line: that of the file or the set inside, if there is one.
    #[must_use]
    pub fn line_of(error: &DataFusionError) -> String {
        let text = match Self::inside(error) {
            Some(own) => own.to_string(),
            None => error.find_root().strip_backtrace(),
        };
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines.join(" ")
    }

    /// Returns the kind, by the names that `pleach` has for errors of files.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::File(error) => error.kind(),
            Self::Set(error) => error.kind(),
            Self::Batch(BatchError::Pleach(error)) => error.kind(),
            Self::Batch(BatchError::Damaged { .. }) => ErrorKind::Damaged,
            Self::Batch(BatchError::Keys { .. } | BatchError::Values { .. }) => ErrorKind::TypesDiffer,
            Self::Batch(BatchError::Memory { .. }) => ErrorKind::OutOfMemory,
            Self::Batch(_) => ErrorKind::Failed,
            Self::Usage(_) => ErrorKind::Usage,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Set(error) => error.fmt(f),
            Self::Batch(error) => error.fmt(f),
            Self::Usage(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(error) => Some(error),
            Self::Set(error) => Some(error),
            Self::Batch(error) => Some(error),
            Self::Usage(_) => None,
        }
    }
}

impl From<pleach::Error> for Error {
    fn from(error: pleach::Error) -> Self {
        Self::File(error)
    }
}

impl From<SetError> for Error {
    fn from(error: SetError) -> Self {
        Self::Set(error)
    }
}

impl From<BatchError> for Error {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::Pleach(error) => Self::File(error),
            error => Self::Batch(error),
        }
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        Self::External(Box::new(error))
    }
}
