//! How a file gets its name: complete and on the disk, or not at all.
//!
//! Lock file beside the target, temporary file in the same folder, write, sync, rename, sync of the
//! folder (without the last one a power cut brings the old file back). Whatever happens, dropping a
//! `Publication` removes the temporary file and the lock. A killed build leaves both behind,
//! unlocked: the next build of the same target sweeps them.

use crate::error::{BuildError, SYNCING_FOLDER};
use crate::observe::{Phase, Watch};
use crate::storage::{Kind, Locked, RealStorage, Storage, StorageFile, StorageLock, StorageTemp, open_stray};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// End of the name of a temporary file: `.NAME.XXXXXX.pleach-tmp`.
const TEMP_SUFFIX: &str = ".pleach-tmp";
/// End of the name of a lock file: `.NAME.pleach-lock`.
const LOCK_SUFFIX: &str = ".pleach-lock";
/// Random characters in the name of a temporary file.
const RANDOM_BYTES: usize = 6;
/// Most links that are followed to the target.
const LINKS_MAX: usize = 40;

/// Where a target really lies.
struct Place {
    folder: PathBuf,
    name: OsString,
    kind: Kind,
}

impl Place {
    /// Follows symbolic links: what a link points to is what is replaced.
    fn resolve(storage: &dyn Storage, target: &Path) -> io::Result<Option<Self>> {
        let mut path = target.to_owned();
        for _ in 0..=LINKS_MAX {
            let Some(name) = path.file_name().map(OsStr::to_owned) else { return Ok(None) };
            let folder = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
                _ => PathBuf::from("."),
            };
            match storage.kind(&path)? {
                Kind::Symlink(to) => path = folder.join(to),
                kind => return Ok(Some(Self { folder, name, kind })),
            }
        }
        Err(io::Error::from_raw_os_error(libc::ELOOP))
    }

    /// `.NAME` and what follows.
    fn beside(&self, end: &str) -> OsString {
        let mut name = OsString::from(".");
        name.push(&self.name);
        name.push(end);
        name
    }

    /// Whether `name` is that of a temporary file of this target.
    fn is_temp(&self, name: &OsStr) -> bool {
        let prefix = self.beside(".");
        name.as_bytes()
            .strip_prefix(prefix.as_bytes())
            .and_then(|rest| rest.strip_suffix(TEMP_SUFFIX.as_bytes()))
            .is_some_and(|random| {
                random.len() == RANDOM_BYTES && random.iter().all(u8::is_ascii_alphanumeric)
            })
    }
}

/// Temporary files and lock files of `target` that a killed build has left behind, and that nobody
/// has locked. The next build of the target removes them. O(entries of the folder).
pub fn strays(target: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(place) = Place::resolve(&RealStorage, target)? else { return Ok(Vec::new()) };
    let lock = place.beside(LOCK_SUFFIX);
    let mut found = Vec::new();
    for name in RealStorage.list(&place.folder)? {
        if !place.is_temp(&name) && name != lock {
            continue;
        }
        let path = place.folder.join(name);
        match open_stray(&path) {
            // Only a look: the lock is given back when the file is closed.
            Ok(Some(file)) if file.try_lock_shared().is_ok() => found.push(path),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    found.sort();
    Ok(found)
}

/// A file on its way to its name.
pub(crate) struct Publication<'a> {
    storage: &'a dyn Storage,
    // Dropped in this order: the temporary file first, the lock last.
    temp: Box<dyn StorageTemp>,
    _lock: Box<dyn StorageLock>,
    folder: PathBuf,
    target: PathBuf,
}

impl<'a> Publication<'a> {
    /// Takes the lock, sweeps strays and creates the temporary file.
    pub(crate) fn begin(storage: &'a dyn Storage, target: &Path) -> Result<Self, BuildError> {
        let place = Place::resolve(storage, target)
            .map_err(|error| BuildError::io("looking for the target", target, error))?
            .ok_or_else(|| BuildError::TargetIsDirectory { path: target.to_owned() })?;
        let mode = match place.kind {
            Kind::Directory => return Err(BuildError::TargetIsDirectory { path: target.to_owned() }),
            Kind::Missing => None,
            Kind::File { mode } => Some(mode),
            Kind::Symlink(_) | Kind::Other => {
                return Err(BuildError::TargetNotRegular { path: target.to_owned() });
            }
        };
        let lock_path = place.folder.join(place.beside(LOCK_SUFFIX));
        let lock = match storage.lock(&lock_path, &holder()) {
            Ok(Locked::Held(lock)) => lock,
            Ok(Locked::Busy(holder)) => {
                let holder = if holder.is_empty() { "another process".to_owned() } else { holder };
                return Err(BuildError::Busy { path: target.to_owned(), holder });
            }
            Err(error) => return Err(BuildError::io("creating the lock file", lock_path, error)),
        };
        let names = storage
            .list(&place.folder)
            .map_err(|error| BuildError::io("listing the folder", &place.folder, error))?;
        for name in names.iter().filter(|name| place.is_temp(name)) {
            let path = place.folder.join(name);
            storage
                .remove_unlocked(&path)
                .map_err(|error| BuildError::io("removing a left-over file", path, error))?;
        }
        // Nobody who may not read the old file opens the new one before it has the old one's mode.
        let first = mode.map_or(0o666, |_| 0o600);
        let temp = storage
            .create_temp(&place.folder, &place.beside("."), TEMP_SUFFIX, first)
            .map_err(|error| BuildError::io("creating a temporary file", &place.folder, error))?;
        if let Some(mode) = mode {
            temp.file()
                .set_mode(mode)
                .map_err(|error| BuildError::io("setting the mode", temp.path(), error))?;
        }
        let target = place.folder.join(&place.name);
        Ok(Self { storage, temp, _lock: lock, folder: place.folder, target })
    }

    /// The temporary file.
    pub(crate) fn output(&self) -> Output<'_> {
        Output { file: self.temp.file(), path: self.temp.path() }
    }

    /// Folder of the target.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The target, its links followed.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Syncs the file, so that [`Publication::commit`] has little left to wait for, or to fail at.
    pub(crate) fn sync(&self, watch: &Watch<'_>) -> Result<(), BuildError> {
        watch.check()?;
        watch.progress(Phase::Sync, 0, None);
        self.output().sync()
    }

    /// Syncs the file, gives it its name and syncs the folder. A sync that failed is never tried
    /// again: the kernel may have dropped the bytes and would say that all is well.
    pub(crate) fn commit(self, watch: &Watch<'_>) -> Result<(), BuildError> {
        self.sync(watch)?;
        self.rename(watch)?.sync()
    }

    /// Gives the file its name and waits for no disk: without [`Publication::sync`] before it and [`Published::sync`]
    /// after it, a power cut may leave neither file whole.
    pub(crate) fn rename(self, watch: &Watch<'_>) -> Result<Published<'a>, BuildError> {
        watch.check()?;
        let Self { storage, temp, _lock, folder, target } = self;
        temp.persist(&target).map_err(|error| BuildError::io("renaming to the target", target, error))?;
        Ok(Published { storage, folder, _lock })
    }
}

/// A file that has its name; nobody else builds it until this is dropped.
pub(crate) struct Published<'a> {
    storage: &'a dyn Storage,
    folder: PathBuf,
    _lock: Box<dyn StorageLock>,
}

impl Published<'_> {
    /// Syncs the folder, so that the name outlives a power cut.
    pub(crate) fn sync(&self) -> Result<(), BuildError> {
        let done = self.storage.sync_dir(&self.folder);
        done.map_err(|error| BuildError::io(SYNCING_FOLDER, &self.folder, error))
    }
}

/// Who we are, for those who find our lock.
fn holder() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    format!("process {} on {}", std::process::id(), if host.is_empty() { "this machine" } else { host })
}

/// An open file and its path, which its errors name.
#[derive(Clone, Copy)]
pub(crate) struct Output<'a> {
    pub file: &'a dyn StorageFile,
    pub path: &'a Path,
}

impl Output<'_> {
    pub(crate) fn write(self, bytes: &[u8], offset: u64) -> Result<(), BuildError> {
        self.file.write_all_at(bytes, offset).map_err(|error| BuildError::io("writing", self.path, error))
    }
    pub(crate) fn read(self, bytes: &mut [u8], offset: u64) -> Result<(), BuildError> {
        self.file
            .read_exact_at(bytes, offset)
            .map_err(|error| BuildError::io("reading back", self.path, error))
    }
    pub(crate) fn set_len(self, bytes: u64) -> Result<(), BuildError> {
        self.file.set_len(bytes).map_err(|error| BuildError::io("setting the length", self.path, error))
    }
    fn sync(self) -> Result<(), BuildError> {
        self.file.sync().map_err(|error| BuildError::io("syncing", self.path, error))
    }
}
