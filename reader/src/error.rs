//! What can go wrong when a file is opened or read.

use pleach_format::{FormatError, KeyType, ValueType};
use pleach_fsck::Finding;
use std::path::PathBuf;
use std::{error, fmt, io};

/// Why a file could not be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The system refused.
    Io {
        /// What was tried: `open`, `read`, `map`, ...
        operation: &'static str,
        /// On which file; empty for bytes in memory.
        path: PathBuf,
        /// Its answer.
        source: io::Error,
    },
    /// The bytes were not accepted.
    Format {
        /// Which file; empty for bytes in memory.
        path: PathBuf,
        /// Why.
        source: FormatError,
    },
    /// Verification of the whole file ([`crate::Verify::Full`]) found damage.
    Damaged {
        /// Which file; empty for bytes in memory.
        path: PathBuf,
        /// The first finding.
        first: Box<Finding>,
        /// How many there are.
        findings: usize,
    },
    /// The instruction set that was asked for is not there.
    Isa(crate::Isa),
    /// The next generation of a file holds other types than the one that is open, which stays.
    Types {
        /// Which file.
        path: PathBuf,
        /// What the open generation holds.
        holds: (KeyType, ValueType),
        /// What the next one holds.
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
                "types differ: {}: it now holds {} to {}, the open generation {} to {}: open it anew",
                at(path),
                found.0,
                found.1,
                holds.0,
                holds.1
            ),
            Self::Isa(isa) => write!(f, "this CPU has no {isa}: choose one of `pleach devices`"),
        }
    }
}

impl OpenError {
    /// Whether the file is damaged, as opposed to unreadable, foreign or newer.
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

/// Why a look-up could not be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// A block that the query touched does not match its sum ([`crate::Verify::Touched`]).
    Format(FormatError),
    /// The file was truncated or lost its device while it was mapped.
    MappingLost,
    /// A buffer of the caller is too short.
    Buffer {
        /// Which one.
        name: &'static str,
        /// Elements that are needed.
        needed: usize,
        /// Elements that are there.
        found: usize,
    },
    /// There is no room for a copy of what is mapped.
    Memory {
        /// Bytes that are needed.
        bytes: u64,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(error) => error.fmt(f),
            Self::MappingLost => {
                let what = "damaged: it was truncated or became unreadable while it was mapped";
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
    /// Whether the file is damaged, as opposed to a wrong call.
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

/// A typed view was asked for that does not fit the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeError {
    /// What was asked for.
    pub asked: (KeyType, ValueType),
    /// What the file holds.
    pub holds: (KeyType, ValueType),
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, holds) = (self.asked, self.holds);
        write!(f, "the file holds {} keys with {} values, not {} with {}", holds.0, holds.1, asked.0, asked.1)
    }
}

impl error::Error for TypeError {}
