//! Following the generations of a set.

use crate::error::Result;
use crate::set::{Set, SetOptions};
use crate::store::Store;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The current generation of a set, shared by threads. Readers keep the one that they have, and switch when they
/// choose.
///
/// ```no_run
/// # fn main() -> pleach_set::Result<()> {
/// use pleach_set::{Datum, LiveSet};
///
/// let orders = LiveSet::open("orders")?;
/// let now = orders.current();
/// let first = now.get(&Datum::U64(17))?;
/// // Now and then, in any thread:
/// let is_new = orders.refresh()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LiveSet {
    current: RwLock<Arc<Set>>,
    /// One thread at a time looks for the next generation.
    looking: Mutex<()>,
}

impl LiveSet {
    /// Opens the current generation of the set in a folder.
    ///
    /// # Errors
    /// Those of [`Set::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self::of(Set::open(path)?))
    }

    /// Opens the current generation of the set in a store.
    ///
    /// # Errors
    /// Those of [`Set::open`].
    pub fn with_options(store: Arc<dyn Store>, options: SetOptions) -> Result<Self> {
        Ok(Self::of(options.store(store)?))
    }

    /// Begins with a set that is open.
    #[must_use]
    pub fn of(set: Set) -> Self {
        Self { current: RwLock::new(Arc::new(set)), looking: Mutex::default() }
    }

    /// Returns the current generation. Keep it for as long as answers must agree with each other. O(1).
    #[must_use]
    pub fn current(&self) -> Arc<Set> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Switches to the newest generation, and reports whether there was a newer one. Files that both have stay
    /// open.
    ///
    /// # Errors
    /// Those of [`Set::next_generation`]. The old generation then stays current.
    pub fn refresh(&self) -> Result<bool> {
        let _alone = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(next) = self.current().next_generation()? else { return Ok(false) };
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        Ok(true)
    }
}
