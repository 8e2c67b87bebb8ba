//! The current generation of something that has generations, shared by threads.
//!
//! Readers take a reference and keep it for as long as they like. One thread at a time checks for the next
//! generation and makes it the current one. It keeps the old generation until nobody reads it: dropping it
//! means unmapping a file, and no look-up should pay for that.
//!
//! `tests/tests/schedules.rs` runs this source under a model checker.

use super::sync::{Arc, Mutex, PoisonError, RwLock};

/// Holder of the current generation.
#[derive(Debug)]
pub(crate) struct Current<T> {
    current: RwLock<Arc<T>>,
    /// Old generations that may still be read.
    retired: Mutex<Vec<Arc<T>>>,
}

impl<T> Current<T> {
    pub(crate) fn new(first: T) -> Self {
        Self { current: RwLock::new(Arc::new(first)), retired: Mutex::new(Vec::new()) }
    }

    /// Returns the current generation.
    pub(crate) fn get(&self) -> Arc<T> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the current generation by the one that `next` returns, if any. Returns the result of `is_new`
    /// for the old and the next generation, or false if there is no next one.
    ///
    /// # Errors
    /// The error of `next`; the current generation then stays.
    pub(crate) fn refresh<E>(
        &self,
        next: impl FnOnce(&T) -> Result<Option<T>, E>,
        is_new: impl FnOnce(&T, &T) -> bool,
    ) -> Result<bool, E> {
        // One thread at a time. It also drops generations that nobody reads any more.
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
