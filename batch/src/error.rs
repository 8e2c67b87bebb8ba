//! What a batch is refused for.

/// Result of a batch.
pub type Result<T> = std::result::Result<T, BatchError>;

/// Error of a batch: what is wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The keys cannot be keys of this file.
    #[error("types differ: the keys are {given}, but the file has {held} keys: {advice}")]
    Keys {
        /// Type of the keys.
        given: String,
        /// Type of the file's keys.
        held: String,
        /// What to do.
        advice: &'static str,
    },
    /// The buffer for values has another type.
    #[error(
        "types differ: the buffer is for {given} values, but the file has {held} values: pass a buffer of that type"
    )]
    Values {
        /// Type of the buffer.
        given: String,
        /// Type of the file's values.
        held: String,
    },
    /// An array cannot be keys of a file.
    #[error("{0}")]
    Refused(String),
    /// Values of the file are not of its type.
    #[error("damaged: {path}: values are not of their type ({what}): restore or rebuild it")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// A buffer is too short.
    #[error(
        "too short: the buffer `{name}` has {found} elements, but {needed} are needed: pass a longer one"
    )]
    Short {
        /// Name of the buffer.
        name: &'static str,
        /// Number of elements needed.
        needed: usize,
        /// Number of elements found.
        found: usize,
    },
    /// The answer does not fit into memory.
    #[error("out of memory: {bytes} bytes are needed for the answer: ask for fewer keys at a time")]
    Memory {
        /// Bytes of the answer.
        bytes: u64,
    },
    /// The file could not be opened or read.
    #[error(transparent)]
    Pleach(#[from] pleach::Error),
    /// A set or one of its files could not be opened or read.
    #[cfg(feature = "set")]
    #[error(transparent)]
    Set(Box<pleach_set::SetError>),
    /// An expression, or the number of inputs of an operator, is not valid.
    #[error("{0}")]
    Expression(String),
    /// A relational operator failed.
    #[cfg(feature = "relation")]
    #[error(transparent)]
    Relation(Box<pleach_relation::RelationError>),
    /// A table could not be made a file in memory.
    #[cfg(feature = "relation")]
    #[error(transparent)]
    Build(Box<pleach_builder::BuildError>),
    /// The system permits no more threads.
    #[error("cannot start threads: raise the limit of processes (ulimit -u, the container's)")]
    Threads,
    /// The caller stopped the batch.
    #[error("interrupted")]
    Interrupted,
}

#[cfg(feature = "set")]
impl From<pleach_set::SetError> for BatchError {
    fn from(error: pleach_set::SetError) -> Self {
        Self::Set(Box::new(error))
    }
}

// Boxed, because these errors would make every result of a batch large.
#[cfg(feature = "relation")]
impl From<pleach_relation::RelationError> for BatchError {
    fn from(error: pleach_relation::RelationError) -> Self {
        Self::Relation(Box::new(error))
    }
}

#[cfg(feature = "relation")]
impl From<pleach_builder::BuildError> for BatchError {
    fn from(error: pleach_builder::BuildError) -> Self {
        Self::Build(Box::new(error))
    }
}
