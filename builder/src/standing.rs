//! What stands under a name, by its bytes: an index, something that was one, or something of somebody else's.

use crate::storage::Storage;
use pleach_format::superblock::{SUPERBLOCK_BYTES, Superblock};
use pleach_format::version::MAGIC;
use std::io;
use std::path::Path;

/// A regular file, as far as its first and its last bytes tell.
#[derive(Debug)]
pub(crate) enum Standing {
    /// Nothing, or no byte.
    Empty,
    /// A file whose superblock, or the copy at its end, can be read.
    Index(Box<Superblock>),
    /// Our mark at either end, and no superblock of this version: damaged, or of another version.
    Marked,
    /// Not ours.
    Foreign,
}

impl Standing {
    /// Looks at a regular file.
    pub(crate) fn of(storage: &dyn Storage, path: &Path) -> io::Result<Self> {
        let (file, bytes) = storage.open(path)?;
        if bytes == 0 {
            return Ok(Self::Empty);
        }
        let mut is_marked = false;
        for offset in [0, bytes.saturating_sub(SUPERBLOCK_BYTES as u64)] {
            let mut block = vec![0; bytes.min(SUPERBLOCK_BYTES as u64) as usize];
            match file.read_exact_at(&mut block, offset) {
                // Cut in the meantime: what is read is not there any more.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => continue,
                read => read?,
            }
            if !block.starts_with(&MAGIC) {
                continue;
            }
            is_marked = true;
            if let Ok(superblock) = Superblock::decode(&block, offset) {
                return Ok(Self::Index(Box::new(superblock)));
            }
        }
        Ok(if is_marked { Self::Marked } else { Self::Foreign })
    }

    /// Whether it is a file of ours, damaged or not.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Index(_) | Self::Marked)
    }

    /// Its superblock.
    pub(crate) fn superblock(&self) -> Option<&Superblock> {
        match self {
            Self::Index(superblock) => Some(superblock),
            _ => None,
        }
    }
}
