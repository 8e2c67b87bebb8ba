//! Classification of an existing file by its bytes: an index, a damaged or newer one, or a foreign file.

use crate::storage::Storage;
use pleach_format::superblock::{SUPERBLOCK_BYTES, Superblock};
use pleach_format::version::MAGIC;
use std::io;
use std::path::Path;

/// Kind of a regular file, judged by its first and last bytes.
#[derive(Debug)]
pub(crate) enum Standing {
    /// No file, or an empty one.
    Empty,
    /// A file whose superblock, or the copy at its end, can be read.
    Index(Box<Superblock>),
    /// Our magic bytes at either end, but no superblock of this version: damaged, or of another version.
    Marked,
    /// Not a Pleach file.
    Foreign,
}

impl Standing {
    /// Classifies a regular file.
    pub(crate) fn of(storage: &dyn Storage, path: &Path) -> io::Result<Self> {
        let (file, bytes) = storage.open(path)?;
        if bytes == 0 {
            return Ok(Self::Empty);
        }
        let mut is_marked = false;
        for offset in [0, bytes.saturating_sub(SUPERBLOCK_BYTES as u64)] {
            let mut block = vec![0; bytes.min(SUPERBLOCK_BYTES as u64) as usize];
            match file.read_exact_at(&mut block, offset) {
                // Truncated in the meantime: these bytes no longer exist.
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

    /// Returns true if it is a Pleach file, damaged or not.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Index(_) | Self::Marked)
    }

    /// Returns its superblock.
    pub(crate) fn superblock(&self) -> Option<&Superblock> {
        match self {
            Self::Index(superblock) => Some(superblock),
            _ => None,
        }
    }
}
