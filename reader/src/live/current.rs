//! Of something that has generations the current one, shared by threads.
//!
//! Readers take a reference and keep it as long as they like. One thread at a time looks whether there is a next
//! generation, puts it in the place of the current one, and keeps the old one until nobody reads it: letting go of it
//! means unmapping a file, which no look-up should pay for.
//!
//! `tests/tests/schedules.rs` runs this text under a model checker.

use super::sync::{Arc, Mutex, PoisonError, RwLock};

/// The current generation.
#[derive(Debug)]
pub(crate) struct Current<T> {
    current: RwLock<Arc<T>>,
    /// Old generations that somebody still reads.
    retired: Mutex<Vec<Arc<T>>>,
}

impl<T> Current<T> {
    pub(crate) fn new(first: T) -> Self {
        Self { current: RwLock::new(Arc::new(first)), retired: Mutex::new(Vec::new()) }
    }

    /// The generation that is current now.
    pub(crate) fn get(&self) -> Arc<T> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts the next generation in place, if `next` gives one. Whether it is a new one, by `is_new` of old and next.
    pub(crate) fn refresh<E>(
        &self,
        next: impl FnOnce(&T) -> Result<Option<T>, E>,
        is_new: impl FnOnce(&T, &T) -> bool,
    ) -> Result<bool, E> {
        // One thread at a time; it also lets go of what nobody reads any more.
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        retired.retain(|old| Arc::strong_count(old) > 1);
        let now = self.get();
        let Some(next) = next(&now)? else { return Ok(false) };
        let is_new = is_new(&now, &next);
        retired.push(now);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        Ok(is_new)
    }
}
