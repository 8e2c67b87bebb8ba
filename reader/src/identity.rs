//! The identity of a file, by which a new generation under the same name is noticed.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Identity of the file under a name: device, inode, length and time of the last write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
    written: (i64, i64),
}

impl Identity {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            // The inode number of a removed file can be used again.
            written: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}
