//! Queries that are byte strings, in the forms that batches take.

/// Queries of a batch: byte strings by index.
pub trait Queries: Sync {
    /// Returns the number of strings.
    fn len(&self) -> usize;
    /// Returns the string at `index`, which must be less than [`Queries::len`].
    fn get(&self, index: usize) -> &[u8];
    /// Returns true if there are no strings.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: AsRef<[u8]> + Sync> Queries for [T] {
    fn len(&self) -> usize {
        self.len()
    }
    #[inline(always)]
    fn get(&self, index: usize) -> &[u8] {
        self[index].as_ref()
    }
}

impl<T: AsRef<[u8]> + Sync> Queries for Vec<T> {
    fn len(&self) -> usize {
        self.len()
    }
    #[inline(always)]
    fn get(&self, index: usize) -> &[u8] {
        self[index].as_ref()
    }
}

/// Queries of one length, one after the other in a slice.
#[derive(Clone, Copy, Debug)]
pub struct FixedQueries<'a> {
    bytes: &'a [u8],
    size: usize,
}

impl<'a> FixedQueries<'a> {
    /// Splits `bytes` into strings of `size` bytes; bytes after the last whole string are ignored.
    ///
    /// # Panics
    /// If `size` is 0.
    #[must_use]
    pub fn new(bytes: &'a [u8], size: usize) -> Self {
        assert!(size > 0, "strings of zero bytes cannot be distinguished");
        Self { bytes, size }
    }
}

impl Queries for FixedQueries<'_> {
    fn len(&self) -> usize {
        self.bytes.len() / self.size
    }
    #[inline(always)]
    fn get(&self, index: usize) -> &[u8] {
        &self.bytes[index * self.size..][..self.size]
    }
}
