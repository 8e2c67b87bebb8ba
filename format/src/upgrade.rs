//! Files of 0.13, the last version before 1.0, in the form of this version.
//!
//! The two differ in the superblock alone: in 0.13 it has another version, and the mark `DEVL` where now zeros
//! are. Sections, sums and the file id are the same bytes, because the superblock is under none of them.

use crate::error::FormatError;
use crate::rules::Rule;
use crate::superblock::{SUPERBLOCK_BYTES, Superblock};
use crate::version::{UPGRADED, VERSION_MAJOR, VERSION_MINOR};
use zerocopy::little_endian::U32;

/// The mark of files of 0.n.
const DEVELOPMENT: [u8; 4] = *b"DEVL";

/// Replaces the superblock at the beginning of `head`, which is of 0.13, by one of this version.
///
/// # Errors
/// Those of [`Superblock::sealed`]; [`FormatError::Version`] for any other version, this one among them;
/// [`FormatError::Corrupt`] without the mark of 0.n.
pub fn upgraded(head: &[u8]) -> Result<Vec<u8>, FormatError> {
    let mut block = Superblock::sealed(head, 0)?;
    let found = (block.version_major.get(), block.version_minor.get());
    if found != UPGRADED {
        return Err(FormatError::Version { found, reads: (VERSION_MAJOR, VERSION_MINOR) });
    }
    if block.reserved_mark.get().to_le_bytes() != DEVELOPMENT {
        return Err(FormatError::Corrupt {
            what: "superblock",
            offset: offset_in!(Superblock, reserved_mark),
            rule: Rule::Version.broken("a file of 0.13 has the mark DEVL"),
            found: block.reserved_mark.get().into(),
        });
    }
    (block.version_major, block.version_minor) = (VERSION_MAJOR.into(), VERSION_MINOR.into());
    block.reserved_mark = U32::ZERO;
    let mut head = head.to_vec();
    head[..SUPERBLOCK_BYTES].copy_from_slice(&block.seal());
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{KeyType, ValueType};

    #[test]
    fn only_files_of_0_13_are_upgraded() {
        let now = Superblock::new(KeyType::U64, ValueType::U32);
        let mut old = now;
        (old.version_major, old.version_minor) = (0.into(), 13.into());
        old.reserved_mark = U32::new(u32::from_le_bytes(DEVELOPMENT));
        assert_eq!(upgraded(&old.seal()), Ok(now.seal().to_vec()));
        for (major, minor) in [(0, 12), (0, 14), (1, 0), (2, 0)] {
            let mut other = old;
            (other.version_major, other.version_minor) = (major.into(), minor.into());
            let refused = upgraded(&other.seal());
            assert_eq!(refused, Err(FormatError::Version { found: (major, minor), reads: (1, 0) }));
        }
        let mut unmarked = old;
        unmarked.reserved_mark = U32::ZERO;
        assert!(matches!(upgraded(&unmarked.seal()), Err(FormatError::Corrupt { offset: 20, .. })));
        let mut damaged = old.seal();
        damaged[100] ^= 1;
        assert!(matches!(upgraded(&damaged), Err(FormatError::Checksum { .. })));
    }
}
