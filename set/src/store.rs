//! Where the objects of a set are: a small interface, which a folder and object stores can offer.
//!
//! Objects have names such as `manifests/00000000000000000001.manifest`, relative to the set. They are created
//! whole or not at all, and never overwritten; only the hint is.

use crate::error::{Result, SetError, StoreError};
use crate::manifest::Entry;
use pleach::{Index, OpenOptions};
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Part of an object that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it, which is refused if it is longer than this.
    Whole {
        /// Maximum bytes.
        bytes_max: u64,
    },
    /// These bytes, all of which must be there.
    Range(Range<u64>),
}

/// Bytes of a new object.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// The bytes of a local file.
    File(&'a Path),
}

/// An object of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Name relative to the set.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// Time since it was written, by the clock of the store.
    pub age: Duration,
}

/// A place with the objects of one set.
///
/// Every method may be called from several threads. All of them wait for the answer.
pub trait Store: fmt::Debug + Send + Sync {
    /// Returns the place as messages show it, without credentials.
    fn place(&self) -> String;

    /// Reads an object or a part of it. If `expected` is given, the object has that many bytes, or it is an
    /// error of kind [`io::ErrorKind::InvalidData`].
    ///
    /// # Errors
    /// [`StoreError`], which tells a missing object from others.
    fn read(&self, name: &str, part: Part, expected: Option<u64>) -> Result<Vec<u8>, StoreError>;

    /// Returns the length of an object in bytes.
    ///
    /// # Errors
    /// Those of [`Store::read`].
    fn length(&self, name: &str) -> Result<u64, StoreError>;

    /// Creates an object: complete and lasting once this returns, and never in part under its name.
    ///
    /// # Errors
    /// [`StoreError`] of kind [`io::ErrorKind::AlreadyExists`] if there is one of this name, which stays as it
    /// is: of two that create at the same time, one wins.
    fn create_new(&self, name: &str, content: Content<'_>) -> Result<(), StoreError>;

    /// Writes the hint, which may replace an older one. Nothing depends on it but speed.
    ///
    /// # Errors
    /// [`StoreError`].
    fn put_hint(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError>;

    /// Lists the objects of a folder, such as `files/`, in no order. A missing folder has none.
    ///
    /// # Errors
    /// [`StoreError`]; of kind [`io::ErrorKind::Unsupported`] if the store has no lists.
    fn list(&self, folder: &str) -> Result<Vec<Object>, StoreError>;

    /// Deletes an object. One that is missing is no error.
    ///
    /// # Errors
    /// [`StoreError`].
    fn delete(&self, name: &str) -> Result<(), StoreError>;

    /// Returns the time since an object was written, by the clock of the store.
    ///
    /// # Errors
    /// Those of [`Store::read`].
    fn age(&self, name: &str) -> Result<Duration, StoreError>;

    /// Makes an object as young as if it had been written now, so that no sweep takes it for litter.
    ///
    /// # Errors
    /// Those of [`Store::read`].
    fn renew(&self, name: &str) -> Result<(), StoreError>;

    /// Returns the local path of an object, if a file there is the object. Who writes a file then builds it at
    /// its place, which need not be there yet.
    fn local(&self, name: &str) -> Option<PathBuf>;

    /// Returns a local file with all bytes of a file of the set: the file itself, or a copy that was checked
    /// by its digest.
    ///
    /// # Errors
    /// [`SetError::Missing`]; those of [`Store::read`].
    fn fetch(&self, entry: &Entry) -> Result<PathBuf>;

    /// Opens a file of the set. What the manifest says of it is compared by the caller.
    ///
    /// # Errors
    /// [`SetError::Missing`], [`SetError::File`]; those of [`Store::fetch`].
    fn open(&self, entry: &Entry, options: OpenOptions) -> Result<Index> {
        let path = self.fetch(entry)?;
        options.open(&path).map_err(|error| match &error {
            pleach::OpenError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                SetError::Missing { name: path.display().to_string() }
            }
            _ => SetError::File { name: entry.name.clone(), source: error.into() },
        })
    }
}
