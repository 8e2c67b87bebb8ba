//! Following the generations of a file: readers keep the one they have and switch when they choose.
//!
//! A rebuild renames a new file over the old one. Readers that have the old file mapped go on reading it.
//! Comparing the inode under the name with that of the open file detects a new generation, at the cost of one
//! system call. A view always covers one whole generation: the new one is opened beside the old one, which is
//! released only after that has succeeded.

mod current;

use crate::error::OpenError;
use crate::index::{Index, OpenOptions};
use current::Current;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// The primitives `current` is built on; a model checker substitutes its own.
mod sync {
    pub use std::sync::{Arc, Mutex, PoisonError, RwLock};
}

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

/// The current generation of a file, shared by threads.
///
/// ```no_run
/// let orders = pleach::Live::open("orders.pleach")?;
/// // In each thread that reads:
/// let index = orders.get();
/// let value = index.typed::<u64, u64>()?.get(17)?;
/// // Now and then, in any thread:
/// if orders.refresh()? {
///     println!("generation {}", orders.get().generation());
/// }
/// # let _ = value;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Live(Current<Index>);

impl Live {
    /// Opens a file with the default options. O(1).
    ///
    /// # Errors
    /// Those of [`OpenOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::with_options(path, OpenOptions::default())
    }

    /// Opens a file with `options`, which also apply to its next generations.
    ///
    /// # Errors
    /// Those of [`OpenOptions::open`].
    pub fn with_options(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self, OpenError> {
        Ok(Self(Current::new(options.open(path)?)))
    }

    /// Returns the current generation. Keep it for as long as answers must agree with each other. O(1).
    #[must_use]
    pub fn get(&self) -> Arc<Index> {
        self.0.get()
    }

    /// Switches to the next generation if there is one, and reports whether it did. O(1); one system call if
    /// there is none.
    ///
    /// # Errors
    /// Those of [`OpenOptions::open`], and [`OpenError::Types`] if the next generation has other types. The
    /// old generation then stays current.
    pub fn refresh(&self) -> Result<bool, OpenError> {
        let is_new = |old: &Index, next: &Index| !next.is_same_generation(old);
        self.0.refresh(Index::next_generation, is_new)
    }
}
