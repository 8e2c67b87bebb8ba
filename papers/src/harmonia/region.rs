//! Arrays whose first element is aligned to a line of memory.

use std::ops::{Deref, DerefMut};

/// A fixed number of elements.
#[derive(Debug)]
pub(super) struct Region<T> {
    store: Vec<T>,
    at: usize,
    len: usize,
}

/// Bytes of a line of memory.
const LINE_BYTES: usize = 64;

impl<T: Copy + Default> Region<T> {
    /// Allocates `len` elements, on huge pages if the system provides them. They hold the default value, and
    /// no memory is touched yet: the thread that writes first places it.
    pub fn new(len: usize) -> Self {
        let spare = LINE_BYTES / size_of::<T>().max(1);
        let mut store = vec![T::default(); len + spare];
        pleach_builder::classic::advise_huge(&mut store);
        let misplaced = store.as_ptr() as usize % LINE_BYTES / size_of::<T>().max(1);
        let at = if misplaced == 0 || size_of::<T>() == 0 { 0 } else { spare - misplaced };
        Self { store, at, len }
    }
}

impl<T: Copy + Default> Clone for Region<T> {
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl<T> Deref for Region<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.store[self.at..self.at + self.len]
    }
}

impl<T> DerefMut for Region<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.store[self.at..self.at + self.len]
    }
}
