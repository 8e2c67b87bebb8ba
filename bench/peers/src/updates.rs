//! Stores that take a batch of changes, as peers of a rebuild: LMDB and redb, one transaction a batch.

use crate::{Engine, PeerError, stores};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A store of (u64,u64) tuples that was built, and that is changed once.
#[derive(Debug)]
pub struct Updates {
    engine: Engine,
    folder: PathBuf,
    tuples: usize,
}

/// Seconds, and the values of the keys that were looked up.
pub type Applied = (f64, Vec<Option<u64>>);

impl Updates {
    /// Builds the store in an empty folder, which outlives it.
    ///
    /// # Errors
    /// Errors of the engine; [`io::ErrorKind::Unsupported`] for one that is not updated here.
    pub fn build(engine: Engine, tuples: &[(u64, u64)], folder: &Path) -> Result<Self, PeerError> {
        // Never searched: closed at once.
        drop(engine.build(tuples, folder)?);
        Ok(Self { engine, folder: folder.to_owned(), tuples: tuples.len() })
    }

    /// Puts all tuples in one transaction and commits it, durably or without waiting for the disk. The time counts
    /// from `start`, before the store is opened; the values of `probes` are read afterwards.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn apply(
        &self,
        puts: &[(u64, u64)],
        durable: bool,
        start: &Instant,
        probes: &[u64],
    ) -> Result<Applied, PeerError> {
        match self.engine {
            Engine::Lmdb => stores::lmdb::update(puts, durable, &self.folder, self.tuples, start, probes),
            Engine::Redb => stores::redb::update(puts, durable, &self.folder, start, probes),
            other => Err(PeerError {
                engine: other.name(),
                operation: "update",
                cause: io::Error::from(io::ErrorKind::Unsupported).into(),
            }),
        }
    }
}
