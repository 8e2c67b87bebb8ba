//! A set in a folder of a local disk.

use crate::error::{Result, SetError, StoreError};
use crate::manifest::{Entry, FILES, MANIFESTS};
use crate::store::{Content, Object, Part, Store};
use pleach_builder::remains;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::NamedTempFile;

/// Prefix of the names of files that are not complete.
const UNFINISHED: &str = ".new-";

/// The folder of a set.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Names a folder. Nothing is read or written yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if a path is that of a set: a folder with a folder `manifests`.
    pub fn is_set(path: impl AsRef<Path>) -> bool {
        path.as_ref().join(MANIFESTS).is_dir()
    }

    /// Creates the folder with the folders of files and of manifests, as far as they are missing.
    ///
    /// # Errors
    /// [`SetError::Store`]; [`SetError::Usage`] if the folder is there and has other contents.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self> {
        let store = Self::new(path);
        let failed = |source| store.failed("create", "", source);
        let known = [FILES, MANIFESTS, "latest"].map(|name| name.trim_end_matches('/'));
        if !Self::is_set(&store.path) && store.path.exists() {
            for entry in fs::read_dir(&store.path).map_err(|error| store.failed("list", "", error))? {
                let name = entry.map_err(failed)?.file_name();
                if !known.iter().any(|known| name == *known) {
                    return Err(SetError::Usage(format!(
                        "the folder is not a set and not empty: {}: it has {}: name another folder",
                        store.path.display(),
                        name.display(),
                    )));
                }
            }
        }
        for folder in ["", FILES, MANIFESTS] {
            fs::create_dir_all(store.at(folder)).map_err(failed)?;
        }
        store.sync("").map_err(failed)?;
        Ok(store)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn failed(&self, operation: &'static str, name: &str, source: io::Error) -> StoreError {
        StoreError { operation, name: self.at(name).display().to_string(), source }
    }

    fn sync(&self, folder: &str) -> io::Result<()> {
        match File::open(self.at(folder)).and_then(|folder| folder.sync_all()) {
            // Some file systems cannot do that.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTSUP)) => Ok(()),
            synced => synced,
        }
    }

    fn write(&self, name: &str, content: Content<'_>, is_new: bool) -> io::Result<()> {
        let (folder, _) = name.rsplit_once('/').map_or(("", name), |(folder, name)| (folder, name));
        let path = self.at(name);
        if is_new && path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let make = || {
            tempfile::Builder::new()
                .prefix(UNFINISHED)
                .permissions(fs::Permissions::from_mode(0o666))
                .tempfile_in(self.at(folder))
        };
        let (mut file, token) = remains::make(make, |file: &NamedTempFile| Some(file.path().to_owned()))?;
        match content {
            Content::Bytes(bytes) => file.write_all(bytes)?,
            Content::File(from) => {
                io::copy(&mut File::open(from)?, file.as_file_mut())?;
            }
        }
        file.as_file().sync_all()?;
        remains::publish(&path, || {
            let persisted = if is_new { file.persist_noclobber(&path) } else { file.persist(&path) };
            persisted.map_err(|error| error.error)
        })?;
        drop(token);
        self.sync(folder)
    }
}

impl Store for Folder {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn read(&self, name: &str, part: Part, expected: Option<u64>) -> Result<Vec<u8>, StoreError> {
        let failed = |source| self.failed("read", name, source);
        let file = File::open(self.at(name)).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        if expected.is_some_and(|expected| expected != bytes) {
            let text = format!("it has {bytes} bytes, not {}", expected.unwrap_or_default());
            return Err(failed(io::Error::new(io::ErrorKind::InvalidData, text)));
        }
        match part {
            Part::Whole { bytes_max } => {
                if bytes > bytes_max {
                    let text = format!("it has {bytes} bytes, more than {bytes_max}");
                    return Err(failed(io::Error::new(io::ErrorKind::InvalidData, text)));
                }
                let mut content = Vec::new();
                (&file).take(bytes_max).read_to_end(&mut content).map_err(failed)?;
                Ok(content)
            }
            Part::Range(range) => {
                let length = range.end.saturating_sub(range.start);
                if range.end > bytes {
                    return Err(failed(io::ErrorKind::UnexpectedEof.into()));
                }
                let mut content = vec![0; length as usize];
                file.read_exact_at(&mut content, range.start).map_err(failed)?;
                Ok(content)
            }
        }
    }

    fn length(&self, name: &str) -> Result<u64, StoreError> {
        let metadata = fs::metadata(self.at(name)).map_err(|error| self.failed("look at", name, error))?;
        Ok(metadata.len())
    }

    fn create_new(&self, name: &str, content: Content<'_>) -> Result<(), StoreError> {
        self.write(name, content, true).map_err(|error| self.failed("create", name, error))
    }

    fn put_hint(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.write(name, Content::Bytes(bytes), false).map_err(|error| self.failed("write", name, error))
    }

    fn list(&self, folder: &str) -> Result<Vec<Object>, StoreError> {
        let failed = |source| self.failed("list", folder, source);
        let entries = match fs::read_dir(self.at(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut objects = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let metadata = match entry.metadata() {
                // It was deleted meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata.map_err(failed)?,
            };
            if metadata.is_dir() {
                continue;
            }
            let name = format!("{folder}{}", entry.file_name().display());
            objects.push(Object { name, bytes: metadata.len(), age: age(&metadata).map_err(failed)? });
        }
        Ok(objects)
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        match fs::remove_file(self.at(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed("delete", name, error)),
            _ => Ok(()),
        }
    }

    fn age(&self, name: &str) -> Result<Duration, StoreError> {
        let metadata = fs::metadata(self.at(name)).and_then(|metadata| age(&metadata));
        metadata.map_err(|error| self.failed("look at", name, error))
    }

    fn renew(&self, name: &str) -> Result<(), StoreError> {
        let renewed = File::open(self.at(name)).and_then(|file| file.set_modified(SystemTime::now()));
        renewed.map_err(|error| self.failed("renew", name, error))
    }

    fn local(&self, name: &str) -> Option<PathBuf> {
        Some(self.at(name))
    }

    fn fetch(&self, entry: &Entry) -> Result<PathBuf> {
        Ok(self.at(&entry.name))
    }
}

fn age(metadata: &fs::Metadata) -> io::Result<Duration> {
    // A time in the future, by a clock that was wrong, is none.
    Ok(metadata.modified()?.elapsed().unwrap_or_default())
}
