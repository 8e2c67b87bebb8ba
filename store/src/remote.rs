//! One file in an object store.

use crate::connection::{Connection, Facts};
use crate::download::{download, upload};
use crate::fault::Fault;
use crate::location::{Kind, Remote};
use crate::options::StoreOptions;
use bytes::Bytes;
use object_store::coalesce_ranges;
use pleach::{Fetch, Index, OpenError, OpenOptions};
use pleach_set::{Result, SetError, StoreError};
use sha2::{Digest, Sha256};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Bytes between two ranges that are brought together with them: a request costs as much time as these.
pub const GAP_BYTES: u64 = 64 << 10;

/// A file in an object store, as it was when it was opened.
///
/// Its length and its tag (`ETag`) are asked once. Every later request is for the object with this tag: if it is
/// replaced, reads fail and say so.
#[derive(Clone, Debug)]
pub struct RemoteFile {
    connection: Connection,
    /// Name relative to the place of the connection.
    name: String,
    bytes: u64,
    /// What the first answer said.
    facts: Arc<OnceLock<Facts>>,
}

impl RemoteFile {
    /// Asks for the length and the tag of a file. One request.
    ///
    /// # Errors
    /// [`SetError::Usage`] if the environment is not complete; [`SetError::Store`].
    pub fn open(remote: Remote, options: StoreOptions) -> Result<Self> {
        let connection = Connection::new(remote, options)?;
        let path = connection.path("");
        let facts = connection.run("open", "", |connection| async move { connection.facts(&path).await })?;
        Ok(Self { connection, name: String::new(), bytes: facts.bytes, facts: Arc::new(facts.into()) })
    }

    /// Names a file of a set, whose length is known. Its first read asks for the tag.
    pub(crate) fn of_set(connection: Connection, name: String, bytes: u64) -> Self {
        Self { connection, name, bytes, facts: Arc::default() }
    }

    /// Returns the place as messages show it.
    #[must_use]
    pub fn place(&self) -> String {
        self.connection.shown(&self.name)
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads ranges of bytes, several at a time; those that are near each other by one request.
    ///
    /// # Errors
    /// [`StoreError`]; one that says so if the file was replaced since it was opened.
    pub fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StoreError> {
        let Some((first, rest)) = ranges.split_first() else { return Ok(Vec::new()) };
        if let Some(facts) = self.facts.get() {
            return self.read_known(ranges, facts);
        }
        let (path, range, expected) = (self.connection.path(&self.name), first.clone(), Some(self.bytes));
        let (bytes, facts) = self.connection.run("read", &self.name, |connection| async move {
            connection.part(&path, range, expected).await
        })?;
        let facts = self.facts.get_or_init(|| facts);
        let mut all = vec![bytes];
        all.extend(self.read_known(rest, facts)?);
        Ok(all)
    }

    fn read_known(&self, ranges: &[Range<u64>], facts: &Facts) -> Result<Vec<Bytes>, StoreError> {
        let (path, facts, ranges) = (self.connection.path(&self.name), facts.clone(), ranges.to_vec());
        self.connection.run("read", &self.name, |connection| async move {
            let read = |range: Range<u64>| {
                let (connection, path, facts) = (connection.clone(), path.clone(), facts.clone());
                async move { connection.range(&path, range, &facts).await }
            };
            coalesce_ranges(&ranges, read, GAP_BYTES).await
        })
    }

    fn facts(&self) -> Result<Facts, StoreError> {
        if let Some(facts) = self.facts.get() {
            return Ok(facts.clone());
        }
        let path = self.connection.path(&self.name);
        let facts = self
            .connection
            .run("open", &self.name, |connection| async move { connection.facts(&path).await })?;
        Ok(self.facts.get_or_init(|| facts).clone())
    }

    /// Brings the whole file into the cache, and returns its path there. Its bytes are checked as those of any
    /// file when they are read: a file alone has no digest.
    ///
    /// # Errors
    /// [`StoreError`]; of kind [`std::io::ErrorKind::InvalidInput`] if it is larger than what may be downloaded.
    pub fn fetch(&self) -> Result<PathBuf, StoreError> {
        let object = (self.connection.path(&self.name), self.place());
        let facts = self.facts()?;
        let key = self.key(&facts);
        self.connection
            .run("download", &self.name, |connection| download(connection, object, facts, key, None))
    }

    /// Opens the file for look-ups, which bring the blocks that they need: two or more requests now, for what leads
    /// to the blocks.
    ///
    /// # Errors
    /// [`SetError::Store`] if bytes cannot be read, of kind [`std::io::ErrorKind::Unsupported`] if the server knows
    /// no ranges, or the options want all bytes to be verified; [`SetError::File`] if they are refused.
    pub fn open_index(self, options: OpenOptions) -> Result<Index> {
        let (place, bytes) = (self.place(), self.bytes);
        let shown = place.clone();
        options.open_remote(&place, Arc::new(self), bytes).map_err(|error| match error {
            OpenError::Io { source, .. } => StoreError { operation: "read", name: shown, source }.into(),
            error => SetError::File { name: shown, source: error.into() },
        })
    }

    /// Opens the file for look-ups, from the cache if it is there, or if whole files are wanted or nothing else is
    /// possible.
    ///
    /// # Errors
    /// Those of [`RemoteFile::open_index`] and of [`RemoteFile::fetch`].
    pub fn open_any(self, options: OpenOptions) -> Result<Index> {
        if !self.connection.options.whole && self.cached().is_none() {
            match self.clone().open_index(options) {
                Err(SetError::Store(error)) if error.source.kind() == io::ErrorKind::Unsupported => {}
                opened => return opened,
            }
        }
        let path = self.fetch()?;
        options.open(path).map_err(|error| SetError::File { name: self.place(), source: error.into() })
    }

    /// Returns the path in the cache, if the file is there.
    fn cached(&self) -> Option<PathBuf> {
        let options = &self.connection.options;
        let key = self.key(self.facts.get()?);
        let path = options.cache.path(&key, |name| options.environment.get(name).cloned());
        path.ok().filter(|path| options.cache.has(path, self.bytes))
    }

    /// Returns the name of this object, as it is now, in the cache.
    fn key(&self, facts: &Facts) -> [u8; 32] {
        let mut hasher = Sha256::new();
        let (tag, modified) = (facts.tag.clone().unwrap_or_default(), facts.modified.timestamp_millis());
        for part in [self.place(), tag, modified.to_string(), facts.bytes.to_string()] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize().into()
    }
}

impl Fetch for RemoteFile {
    fn fetch(&self, ranges: &[Range<u64>], take: &mut dyn FnMut(usize, &[u8])) -> io::Result<()> {
        let all = self.read_ranges(ranges).map_err(|error| error.source)?;
        all.iter().enumerate().for_each(|(at, bytes)| take(at, bytes));
        Ok(())
    }
}

/// Sends a local file to an object store. Without `force` an object that is there is an error.
///
/// # Errors
/// [`SetError::Usage`] if the environment is not complete; [`SetError::Store`], of kind
/// [`std::io::ErrorKind::AlreadyExists`] if there is one.
pub fn upload_file(from: &Path, to: Remote, force: bool, options: StoreOptions) -> Result<()> {
    let connection = Connection::new(to, options)?;
    if connection.remote.kind() == Kind::Http {
        let fault = Fault::Store(object_store::Error::NotSupported {
            source: "servers of HTTP are only read".into(),
        });
        return Err(connection.failed("write", "", fault).into());
    }
    let (path, from) = (connection.path(""), from.to_owned());
    Ok(connection.run("write", "", |connection| upload(connection, path, from, !force))?)
}
