//! Following the generations of a file: readers keep the one they have and switch when they choose.
//!
//! A rebuild renames a new file over the old one. Readers that have the old file mapped go on reading it.
//! Comparing the inode under the name with that of the open file detects a new generation, at the cost of one
//! system call. A view always covers one whole generation: the new one is opened beside the old one, which is
//! released only after that has succeeded.

mod current;
mod sync;

use crate::error::OpenError;
use crate::index::{Index, OpenOptions};
use current::Current;
use std::path::Path;
use std::sync::Arc;

/// A file that is open, or a map of it: what [`Live`] follows through its generations. It is implemented for
/// [`Index`], [`crate::Map`], [`crate::BytesMap`] and [`crate::AnyMap`].
pub trait Followed: Sized {
    /// Error of opening it.
    type Error: From<OpenError>;
    /// Makes it of an open file.
    ///
    /// # Errors
    /// If the file holds other types.
    fn from_opened(index: Index) -> Result<Self, Self::Error>;
    /// Returns the open file.
    fn opened(&self) -> &Index;

    /// Opens the file now under the name of this one, if it is a different file.
    ///
    /// # Errors
    /// Those of [`OpenOptions::open`], and an error if the file holds other types.
    fn next_generation(&self) -> Result<Option<Self>, Self::Error> {
        self.opened().next_generation()?.map(Self::from_opened).transpose()
    }
}

impl Followed for Index {
    type Error = OpenError;
    fn from_opened(index: Index) -> Result<Self, OpenError> {
        Ok(index)
    }
    fn opened(&self) -> &Index {
        self
    }
}

/// The current generation of a file, shared by threads: `Live<Map<u64, u64>>`.
///
/// ```
/// use pleach::{Builder, Live, Map};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("prices.pleach");
/// struct Shop {
///     prices: Live<Map<u32, f64>>,
/// }
/// Builder::new().build(&path, [(1u32, 9.5f64), (2, 3.0)])?;
/// let shop = Shop { prices: Live::open(&path)? };
/// // In each thread that reads:
/// let prices = shop.prices.current();
/// assert_eq!(prices.get(1)?, Some(9.5));
/// // Another process builds the next generation.
/// Builder::new().build(&path, [(1u32, 8.0f64)])?;
/// // Now and then, in any thread:
/// assert!(shop.prices.refresh()?);
/// assert_eq!(shop.prices.current().get(1)?, Some(8.0));
/// // Who has the old generation keeps it.
/// assert_eq!(prices.get(1)?, Some(9.5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Live<T: Followed = Index>(Current<T>);

impl<T: Followed> Live<T> {
    /// Opens a file with the default options. O(1).
    ///
    /// # Errors
    /// Those of [`OpenOptions::open`], and an error if the file holds other types.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, T::Error> {
        Self::with_options(path, OpenOptions::default())
    }

    /// Opens a file with `options`, which also apply to its next generations.
    ///
    /// # Errors
    /// Those of [`Live::open`].
    pub fn with_options(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self, T::Error> {
        Ok(Self(Current::new(T::from_opened(options.open(path)?)?)))
    }

    /// Returns the current generation. Keep it for as long as answers must agree with each other. O(1).
    #[must_use]
    pub fn current(&self) -> Arc<T> {
        self.0.get()
    }

    /// Switches to the next generation if there is one, and reports whether it did. O(1); one system call if
    /// there is none.
    ///
    /// # Errors
    /// Those of [`Live::open`]. The old generation then stays current.
    pub fn refresh(&self) -> Result<bool, T::Error> {
        let is_new = |old: &T, next: &T| !next.opened().is_same_generation(old.opened());
        self.0.refresh(T::next_generation, is_new)
    }
}
