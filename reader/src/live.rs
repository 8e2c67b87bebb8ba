//! Following the generations of a file: readers keep what they have, and switch when they like.
//!
//! A rebuild renames a new file over the old one. Who has the old one mapped goes on reading it; a look at the
//! name's inode says that there is another, for the price of one system call. A view is always of one whole
//! generation: the new one is opened beside the old one, which is left only when that has succeeded.

mod current;

use crate::error::OpenError;
use crate::index::{Index, OpenOptions};
use current::Current;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// What `current` is built on; a model checker has others.
mod sync {
    pub use std::sync::{Arc, Mutex, PoisonError, RwLock};
}

/// Which file stands under a name: device, inode, length and time of the last write.
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
            // An inode number is given again once its file is gone.
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
    /// Opens a file with the default options.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::with_options(path, OpenOptions::default())
    }

    /// Opens a file; its next generations are opened with the same options.
    pub fn with_options(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self, OpenError> {
        Ok(Self(Current::new(options.open(path)?)))
    }

    /// The generation that is current now. Keep it for as long as answers shall agree with each other. O(1).
    #[must_use]
    pub fn get(&self) -> Arc<Index> {
        self.0.get()
    }

    /// Whether there is a new generation, which then is the current one. O(1); one system call if there is none.
    ///
    /// # Errors
    /// What opening it says, or that it holds other types: the old generation stays.
    pub fn refresh(&self) -> Result<bool, OpenError> {
        let is_new = |old: &Index, next: &Index| !next.is_same_generation(old);
        self.0.refresh(Index::next_generation, is_new)
    }
}
