//! What can be wrong with the bytes of a file.

use core::fmt;

/// Why bytes were not accepted. Each variant says where and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// The first bytes are not ours.
    Foreign,
    /// The file is shorter than its superblock says, or than any Pleach file can be.
    Truncated {
        /// Bytes that should be there.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// The file is longer than its superblock says.
    Extended {
        /// Bytes that should be there.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// Whole, but of a version this library does not read.
    Version {
        /// Version of the file.
        found: (u16, u16),
        /// Version this library reads.
        reads: (u16, u16),
    },
    /// Whole, but needs a feature that this library does not know.
    Feature {
        /// The unknown feature bits.
        unknown: u64,
    },
    /// A stored sum does not match the bytes.
    Checksum {
        /// What was summed: `superblock`, `section table`, or a section's tag.
        what: &'static str,
        /// First byte of what was summed.
        offset: u64,
        /// The sum that is stored.
        expected: u32,
        /// The sum of the bytes.
        found: u32,
    },
    /// A stored number that cannot be.
    Corrupt {
        /// Which structure.
        what: &'static str,
        /// Where it lies in the file.
        offset: u64,
        /// Which rule it breaks.
        rule: &'static str,
        /// The number that is stored.
        found: u64,
    },
}

impl FormatError {
    /// Whether the file is damaged, as opposed to foreign, newer, or in need of an unknown feature.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        !matches!(self, Self::Foreign | Self::Version { .. } | Self::Feature { .. })
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("not a Pleach file: make one with `pleach build`"),
            Self::Truncated { expected, found } => write!(
                f,
                "truncated: {found} bytes are there, {expected} are needed: copy it again or rebuild it"
            ),
            Self::Extended { expected, found } => write!(
                f,
                "{found} bytes are there, only {expected} belong to it: copy it again or rebuild it"
            ),
            Self::Version { found, reads } => write!(
                f,
                "format version {}.{}, this program reads {}.{}: {}",
                found.0,
                found.1,
                reads.0,
                reads.1,
                if found > reads { "use a newer program" } else { "build the file again" }
            ),
            Self::Feature { unknown } => {
                write!(f, "needs features {unknown:#x} that this program does not know: use a newer program")
            }
            Self::Checksum { what, offset, expected, found } => write!(
                f,
                "damaged {what} at byte {offset}: sum {expected:08x} is stored, the bytes give {found:08x}: \
                 run `pleach fsck`, restore or rebuild it"
            ),
            Self::Corrupt { what, offset, rule, found } => write!(
                f,
                "damaged {what} at byte {offset}: {rule}, found {found}: run `pleach fsck`, restore or rebuild it"
            ),
        }
    }
}

impl core::error::Error for FormatError {}
