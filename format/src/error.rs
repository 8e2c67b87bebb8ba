//! Errors in the bytes of a file.

use crate::rules::{Breach, Rule};
use crate::section::Tag;
use crate::version::UPGRADED;
use core::fmt;

/// What the sum of a superblock covers, in [`FormatError::Checksum`].
pub(crate) const SUPERBLOCK: &str = "superblock";
/// The same of a section table.
pub(crate) const SECTION_TABLE: &str = "section table";

/// The reason why bytes were rejected. Each message says where the fault is and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// The file does not begin with the magic bytes of Pleach.
    Foreign,
    /// The file is shorter than its superblock specifies, or than the smallest valid file.
    Truncated {
        /// Expected number of bytes.
        expected: u64,
        /// Number of bytes found.
        found: u64,
    },
    /// The file is longer than its superblock specifies.
    Extended {
        /// Expected number of bytes.
        expected: u64,
        /// Number of bytes found.
        found: u64,
    },
    /// The file is intact, but of a version that this library does not read.
    Version {
        /// Version of the file.
        found: (u16, u16),
        /// Version this library reads.
        reads: (u16, u16),
    },
    /// The file is intact, but requires a feature that this library does not know.
    Feature {
        /// The unknown feature bits.
        unknown: u64,
    },
    /// The file is intact, but has a section that a reader must know, and this library does not.
    Section {
        /// Name of the section.
        tag: Tag,
    },
    /// A stored sum does not match the bytes.
    Checksum {
        /// The bytes that the sum covers: `superblock`, `section table`, or a section's tag.
        what: &'static str,
        /// Offset of the first byte that the sum covers.
        offset: u64,
        /// The stored sum.
        expected: u32,
        /// The sum of the bytes.
        found: u32,
    },
    /// A stored number is invalid.
    Corrupt {
        /// The structure that contains the number.
        what: &'static str,
        /// Offset of the number in the file.
        offset: u64,
        /// The rule that the number breaks.
        rule: Breach,
        /// The stored number.
        found: u64,
    },
}

impl FormatError {
    /// Reports whether the file is damaged, as opposed to foreign, newer, or in need of an unknown feature.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        !matches!(self, Self::Foreign | Self::Version { .. } | Self::Feature { .. } | Self::Section { .. })
    }

    /// Returns the rule that the file breaks, if this is an error of opening it; `None` for what is found only later.
    #[must_use]
    pub fn rule(&self) -> Option<Rule> {
        match self {
            Self::Foreign => Some(Rule::Magic),
            Self::Truncated { .. } => Some(Rule::Truncated),
            Self::Extended { .. } => Some(Rule::Extended),
            Self::Version { .. } => Some(Rule::Version),
            Self::Feature { .. } => Some(Rule::Feature),
            Self::Section { .. } => Some(Rule::RequiredSection),
            Self::Checksum { what: SUPERBLOCK, .. } => Some(Rule::SuperblockSum),
            Self::Checksum { what: SECTION_TABLE, .. } => Some(Rule::TableSum),
            Self::Checksum { .. } => None,
            Self::Corrupt { rule, .. } => rule.rule,
        }
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("not a Pleach file: make one with `pleach build`"),
            Self::Truncated { expected, found } => write!(
                f,
                "truncated: {found} bytes were found, {expected} are needed: copy it again or rebuild it"
            ),
            Self::Extended { expected, found } => write!(
                f,
                "too long: {found} bytes were found, only {expected} belong to the file: copy it again or \
                 rebuild it"
            ),
            Self::Version { found, reads } => write!(
                f,
                "format version {}.{}, this program reads {}.n: {}",
                found.0,
                found.1,
                reads.0,
                match *found {
                    UPGRADED => "run `pleach upgrade` on it",
                    found if found > *reads => "use a newer program",
                    _ => "build the file again",
                }
            ),
            Self::Feature { unknown } => {
                write!(
                    f,
                    "requires features {unknown:#x} that this program does not know: use a newer program"
                )
            }
            Self::Section { tag } => {
                write!(f, "requires the section {tag}, which this program does not know: use a newer program")
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
