//! Tables that live in files: LMDB, redb, fst, RocksDB.

#[cfg(feature = "stores")]
pub(crate) mod fst;
#[cfg(feature = "stores")]
pub(crate) mod lmdb;
#[cfg(feature = "stores")]
pub(crate) mod redb;
#[cfg(feature = "rocksdb")]
pub(crate) mod rocks;

use crate::PeerError;
use std::error::Error;
use std::fs;
use std::io;
use std::path::Path;

/// Turns an engine's error into ours.
fn failed<E: Into<Box<dyn Error + Send + Sync>>>(
    engine: &'static str,
    operation: &'static str,
) -> impl Fn(E) -> PeerError {
    move |cause| PeerError { engine, operation, cause: cause.into() }
}

/// Bytes of a file on the disk: its allocated blocks where the system tells, else its length.
fn disk_bytes(path: &Path) -> io::Result<u64> {
    let metadata = fs::metadata(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Ok(metadata.blocks() * 512)
    }
    #[cfg(not(unix))]
    Ok(metadata.len())
}
