//! A set below a prefix of an object store.

use crate::connection::{Connection, Facts};
use crate::download::{download, upload};
use crate::fault::Fault;
use crate::location::{Kind, Remote};
use crate::options::StoreOptions;
use crate::remote::RemoteFile;
use bytes::Bytes;
use object_store::path::Path as ObjectPath;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt};
use pleach::{Index, OpenOptions};
use pleach_set::{Content, Entry, FILES, MANIFESTS, Object, Part, Result, SetError, Store, StoreError};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Age up to which an object is as good as new: a sweep with a sensible grace is far from deleting it.
pub const RENEW_AGE: Duration = Duration::from_secs(10 * 60);

/// The objects of a set below a prefix.
///
/// ```no_run
/// use pleach_set::{Datum, Set};
/// use pleach_store::{Location, ObjectFolder, StoreOptions};
/// use std::sync::Arc;
///
/// let Location::Remote(remote) = Location::parse("s3://lake/orders")? else { panic!() };
/// let store = ObjectFolder::new(remote, StoreOptions::default())?;
/// let orders = Set::options().store(Arc::new(store))?;
/// println!("{:?}", orders.get(&Datum::U64(17))?);
/// # Ok::<(), pleach_set::SetError>(())
/// ```
#[derive(Debug)]
pub struct ObjectFolder {
    connection: Connection,
    /// True once the store was seen to refuse what is already there.
    refuses: Mutex<bool>,
}

impl ObjectFolder {
    /// Makes a client with the credentials of the environment. No request is sent yet.
    ///
    /// # Errors
    /// [`SetError::Usage`] if the environment is not complete, or wrong.
    pub fn new(remote: Remote, options: StoreOptions) -> Result<Self> {
        Ok(Self { connection: Connection::new(remote, options)?, refuses: Mutex::new(false) })
    }

    /// Returns true if there is a set: one with a generation that its hint or a list shows.
    ///
    /// # Errors
    /// [`SetError::Store`].
    pub fn is_set(&self) -> Result<bool> {
        match pleach_set::newest(self) {
            Ok(_) => Ok(true),
            Err(SetError::NoSet { .. }) => Ok(false),
            // Servers without lists: there is no hint either.
            Err(SetError::Store(error)) if error.source.kind() == io::ErrorKind::Unsupported => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Checks that the store refuses to create an object that is there, and of two that create one at the same
    /// time refuses one. Writes a probe and deletes it; once a process.
    ///
    /// # Errors
    /// [`StoreError`] of kind [`io::ErrorKind::Unsupported`] if it does not.
    fn check_condition(&self) -> Result<(), StoreError> {
        let mut refuses = self.refuses.lock().unwrap_or_else(PoisonError::into_inner);
        if *refuses {
            return Ok(());
        }
        let name = fresh(".probe-").map_err(|error| self.connection.failed("probe", "", error.into()))?;
        let path = self.connection.path(&name);
        let is_safe = self.connection.run("probe", "", |connection| async move {
            let is_safe = probe(&connection, &path).await;
            let _ = connection.store.delete(&path).await;
            is_safe
        })?;
        if !is_safe {
            let text = "the store overwrites objects that it was asked to create, so that two committers would \
                        destroy each other's work: use a store that knows If-None-Match";
            let source = io::Error::new(io::ErrorKind::Unsupported, text);
            return Err(StoreError { operation: "commit to", name: self.place(), source });
        }
        *refuses = true;
        Ok(())
    }

    fn objects(&self, folder: &str) -> Result<Vec<ObjectMeta>, StoreError> {
        let prefix = self.connection.path(folder);
        self.connection.run("list", folder, |connection| async move {
            let prefix = (!prefix.as_ref().is_empty()).then_some(prefix);
            Ok(connection.store.list_with_delimiter(prefix.as_ref()).await?.objects)
        })
    }

    fn facts(&self, operation: &'static str, name: &str) -> Result<Facts, StoreError> {
        let path = self.connection.path(name);
        self.connection.run(operation, name, |connection| async move { connection.facts(&path).await })
    }

    fn missing(&self, entry: &Entry, error: StoreError) -> SetError {
        match error.is_missing() {
            true => SetError::Missing { name: self.connection.shown(&entry.name) },
            false => SetError::Store(error),
        }
    }

    /// Returns what a file of the set is, after its length was compared.
    fn file(&self, entry: &Entry) -> Result<Facts> {
        let facts = self.facts("read", &entry.name).map_err(|error| self.missing(entry, error))?;
        if facts.bytes != entry.file_bytes {
            let what = format!("it has {} bytes, not {}", facts.bytes, entry.file_bytes);
            return Err(SetError::Differs { name: self.connection.shown(&entry.name), what });
        }
        Ok(facts)
    }

    /// Returns the path of a file in the cache, if it is there.
    fn cached(&self, entry: &Entry) -> Option<PathBuf> {
        let options = &self.connection.options;
        let path = options.cache.path(&entry.digest, |name| options.environment.get(name).cloned());
        path.ok().filter(|path| options.cache.has(path, entry.file_bytes))
    }
}

/// Creates an object thrice, twice at the same time; true if one of them did.
async fn probe(connection: &Connection, path: &ObjectPath) -> Result<bool, Fault> {
    let create = |content: &'static str| connection.create(path, Bytes::from_static(content.as_bytes()));
    let (one, two) = futures_util::future::join(create("one"), create("two")).await;
    let mut created = 0;
    for done in [one, two, create("three").await] {
        match done {
            Ok(()) => created += 1,
            Err(Fault::Store(Error::AlreadyExists { .. })) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(created == 1)
}

/// Returns a name that no other object has or had.
fn fresh(prefix: &str) -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(format!("no random bytes: {error}")))?;
    Ok(format!("{prefix}{:032x}", u128::from_le_bytes(bytes)))
}

impl Store for ObjectFolder {
    fn place(&self) -> String {
        self.connection.remote.place()
    }

    fn read(&self, name: &str, part: Part, expected: Option<u64>) -> Result<Vec<u8>, StoreError> {
        let path = self.connection.path(name);
        let bytes = self.connection.run("read", name, |connection| async move {
            match part {
                Part::Whole { bytes_max } => connection.whole(&path, bytes_max, expected).await,
                Part::Range(range) if range.is_empty() => Ok(Bytes::new()),
                Part::Range(range) => Ok(connection.part(&path, range, expected).await?.0),
            }
        })?;
        Ok(bytes.into())
    }

    fn length(&self, name: &str) -> Result<u64, StoreError> {
        self.facts("look at", name).map(|facts| facts.bytes)
    }

    fn create_new(&self, name: &str, content: Content<'_>) -> Result<(), StoreError> {
        let path = self.connection.path(name);
        match content {
            Content::Bytes(bytes) => {
                if name.starts_with(MANIFESTS) {
                    self.check_condition()?;
                }
                let bytes = Bytes::copy_from_slice(bytes);
                self.connection
                    .run("create", name, |connection| async move { connection.create(&path, bytes).await })
            }
            Content::File(from) => {
                // Nobody else has a file of this name, so that a try may be repeated.
                let (from, is_new) = (from.to_owned(), !name.starts_with(FILES));
                self.connection.run("create", name, |connection| upload(connection, path, from, is_new))
            }
        }
    }

    fn put_hint(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let (path, bytes) = (self.connection.path(name), Bytes::copy_from_slice(bytes));
        self.connection.run("write", name, |connection| async move {
            connection.store.put(&path, bytes.into()).await?;
            Ok(())
        })
    }

    fn list(&self, folder: &str) -> Result<Vec<Object>, StoreError> {
        if self.connection.remote.kind() == Kind::Http {
            let fault = Fault::Store(Error::NotSupported { source: "servers of HTTP have no lists".into() });
            return Err(self.connection.failed("list", folder, fault));
        }
        let objects = self.objects(folder)?.into_iter();
        Ok(objects
            .filter_map(|meta| {
                let name = format!("{folder}{}", meta.location.filename()?);
                Some(Object { name, bytes: meta.size, age: self.connection.age(meta.last_modified) })
            })
            .collect())
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        let path = self.connection.path(name);
        self.connection.run("delete", name, |connection| async move {
            match connection.store.delete(&path).await {
                Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn age(&self, name: &str) -> Result<Duration, StoreError> {
        self.facts("look at", name).map(|facts| self.connection.age(facts.modified))
    }

    fn renew(&self, name: &str) -> Result<(), StoreError> {
        if self.age(name)? <= RENEW_AGE {
            return Ok(());
        }
        let path = self.connection.path(name);
        let folder = name.rsplit_once('/').map(|(folder, _)| folder).unwrap_or_default();
        let other = fresh(&format!("{folder}/.renew-"))
            .map_err(|error| self.connection.failed("renew", name, error.into()))?;
        let other = self.connection.path(&other);
        self.connection.run("renew", name, |connection| async move {
            if connection.remote.kind() != Kind::S3 {
                return Ok(connection.store.copy(&path, &path).await?);
            }
            // S3 refuses to copy an object onto itself.
            let copied = async {
                connection.store.copy(&path, &other).await?;
                connection.store.copy(&other, &path).await
            };
            let copied = copied.await;
            let _ = connection.store.delete(&other).await;
            Ok(copied?)
        })
    }

    fn local(&self, _name: &str) -> Option<PathBuf> {
        None
    }

    fn fetch(&self, entry: &Entry) -> Result<PathBuf> {
        // No request for a file that is here.
        if let Some(path) = self.cached(entry) {
            return Ok(path);
        }
        let facts = self.file(entry)?;
        let object = (self.connection.path(&entry.name), self.connection.shown(&entry.name));
        let digest = entry.digest;
        let fetched = self.connection.run("download", &entry.name, |connection| {
            download(connection, object, facts, digest, Some(digest))
        });
        fetched.map_err(|error| self.missing(entry, error))
    }

    fn open(&self, entry: &Entry, options: OpenOptions) -> Result<Index> {
        if !self.connection.options.whole && self.cached(entry).is_none() {
            let file = RemoteFile::of_set(self.connection.clone(), entry.name.clone(), entry.file_bytes);
            match file.open_index(options) {
                // Of servers without ranges, or where every byte is to be verified.
                Err(SetError::Store(error)) if error.source.kind() == io::ErrorKind::Unsupported => {}
                Err(SetError::Store(error)) => return Err(self.missing(entry, error)),
                opened => return opened,
            }
        }
        let path = self.fetch(entry)?;
        let failed =
            |error: pleach::OpenError| SetError::File { name: entry.name.clone(), source: error.into() };
        options.open(&path).map_err(failed)
    }
}

/// Shares a folder as what sets take.
impl From<ObjectFolder> for Arc<dyn Store> {
    fn from(folder: ObjectFolder) -> Self {
        Arc::new(folder)
    }
}
