//! Errors of opening and reading a file.

use pleach_format::{FormatError, KeyType, ValueType};
use pleach_fsck::Finding;
use std::path::PathBuf;
use std::{error, fmt, io};

/// Reason why a file could not be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// A system call failed.
    Io {
        /// The operation that failed: `open`, `read`, `map`, ...
        operation: &'static str,
        /// Path of the file; empty for bytes in memory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The bytes are not those of a valid file of a known version.
    Format {
        /// Path of the file; empty for bytes in memory.
        path: PathBuf,
        /// The rule that the bytes break.
        source: FormatError,
    },
    /// Verification of the whole file ([`crate::Verify::Full`]) found damage.
    Damaged {
        /// Path of the file; empty for bytes in memory.
        path: PathBuf,
        /// The first finding.
        first: Box<Finding>,
        /// Number of findings.
        findings: usize,
    },
    /// This CPU does not have the requested instruction set.
    Isa(crate::Isa),
    /// The types of the next generation differ from those of the open one, which stays open.
    Types {
        /// Path of the file.
        path: PathBuf,
        /// Types of the open generation.
        holds: (KeyType, ValueType),
        /// Types of the next generation.
        found: (KeyType, ValueType),
    },
}

fn at(path: &std::path::Path) -> String {
    if path.as_os_str().is_empty() { "bytes in memory".into() } else { path.display().to_string() }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { operation, path, source } => write!(f, "cannot {operation}: {}: {source}", at(path)),
            Self::Format { path, source } => write!(f, "{}: {source}", at(path)),
            Self::Damaged { path, first, findings } => {
                write!(f, "damaged: {}: {first} ({findings} findings): restore or rebuild it", at(path))
            }
            Self::Types { path, holds, found } => write!(
                f,
                "types differ: {}: it now holds {} to {}, but the open generation holds {} to {}: open it \
                 again",
                at(path),
                found.0,
                found.1,
                holds.0,
                holds.1
            ),
            Self::Isa(isa) => {
                write!(f, "this CPU does not support {isa}: choose one that `pleach devices` shows")
            }
        }
    }
}

impl OpenError {
    /// Returns true if the file is damaged, as opposed to unreadable, foreign or newer.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Format { source, .. } => source.is_damage(),
            Self::Damaged { .. } => true,
            Self::Io { .. } | Self::Isa(_) | Self::Types { .. } => false,
        }
    }
}

impl error::Error for OpenError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Format { source, .. } => Some(source),
            Self::Damaged { .. } | Self::Isa(_) | Self::Types { .. } => None,
        }
    }
}

/// Reason why a look-up could not be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// A block that the query read does not match its sum ([`crate::Verify::Touched`]).
    Format(FormatError),
    /// The file was truncated, or its device was lost, while it was mapped.
    MappingLost,
    /// A buffer of the caller is too short.
    Buffer {
        /// Name of the buffer's parameter.
        name: &'static str,
        /// Number of elements needed.
        needed: usize,
        /// Number of elements in the buffer.
        found: usize,
    },
    /// There is not enough memory for a copy of mapped bytes.
    Memory {
        /// Number of bytes needed.
        bytes: u64,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(error) => error.fmt(f),
            Self::MappingLost => {
                let what = "damaged: the file was truncated or became unreadable while it was mapped";
                write!(f, "{what}: run `pleach fsck`, restore it")
            }
            Self::Buffer { name, needed, found } => {
                write!(f, "buffer `{name}` has {found} elements: {needed} are needed")
            }
            Self::Memory { bytes } => {
                write!(
                    f,
                    "out of memory: {bytes} bytes are needed for a copy of the column: read it in ranges"
                )
            }
        }
    }
}

impl ReadError {
    /// Returns true if the file is damaged, as opposed to a wrong call.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Format(error) => error.is_damage(),
            Self::MappingLost => true,
            Self::Buffer { .. } | Self::Memory { .. } => false,
        }
    }
}

impl error::Error for ReadError {}

impl From<FormatError> for ReadError {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}

/// A typed view was requested whose types are not those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeError {
    /// Types of the requested view.
    pub asked: (KeyType, ValueType),
    /// Types of the file.
    pub holds: (KeyType, ValueType),
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, holds) = (self.asked, self.holds);
        write!(f, "the file holds {} keys with {} values, not {} with {}", holds.0, holds.1, asked.0, asked.1)
    }
}

impl error::Error for TypeError {}
