//! The seam between a build and the system: every system operation of a build uses the traits of this module.
//!
//! [`RealStorage`] is the file system, [`UnnamedStorage`] one file without a name, and [`MemoryStorage`]
//! keeps files in memory. Tests wrap them and let the n-th operation fail. Dropping a temporary file or a
//! lock removes it, unless it was given up; such removals cannot be reported, so they are not operations.

use crate::lock::{self, LockName, Taken};
use crate::remains::{self, Token};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Kind of the file under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No file.
    Missing,
    /// A regular file.
    File {
        /// Its permissions, owner and group.
        access: Access,
        /// Number of names (hard links) of the file.
        links: u64,
    },
    /// A folder.
    Directory,
    /// A symbolic link with this target.
    Symlink(PathBuf),
    /// A device, a pipe or a socket.
    Other,
}

/// Permission bits, owner and group of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Permission bits.
    pub mode: u32,
    /// The user that owns it.
    pub user: u32,
    /// Its group.
    pub group: u32,
}

/// Identity of a file, independent of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Device number.
    pub device: u64,
    /// Inode number on that device.
    pub inode: u64,
    /// True for a device, a pipe or a socket: neither a regular file nor a folder.
    pub is_device: bool,
}

/// Returns true for the error of a file system, mount or server that does not support a call.
fn is_unknown_call(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    errno.is_some_and(|errno| [libc::ENOSYS, libc::EOPNOTSUPP, libc::ENOTSUP].contains(&errno))
}

/// Returns true if an error means that files cannot be locked here, as opposed to a lock held by another
/// process. NFS does not lock for writing a file that is open only for reading.
pub(crate) fn lacks_locks(error: &io::Error) -> bool {
    is_unknown_call(error)
        || matches!(error.raw_os_error(), Some(libc::ENOLCK | libc::EBADF | libc::EINVAL | libc::EPERM))
}

/// Returns true if an error means that a file cannot have a second name here.
pub(crate) fn lacks_links(error: &io::Error) -> bool {
    is_unknown_call(error)
        || matches!(
            error.raw_os_error(),
            Some(libc::EPERM | libc::EMLINK | libc::EXDEV | libc::EACCES | libc::EINVAL)
        )
}

/// Returns true if an error means that owner or permissions cannot be set here, or not by this user.
pub(crate) fn lacks_owners(error: &io::Error) -> bool {
    is_unknown_call(error) || matches!(error.raw_os_error(), Some(libc::EPERM | libc::EINVAL | libc::EACCES))
}

/// Returns true if an error means that a folder cannot be synced here: there is nothing to wait for, or no
/// way to.
fn lacks_folder_sync(error: &io::Error) -> bool {
    is_unknown_call(error)
        || matches!(
            error.raw_os_error(),
            Some(libc::EINVAL | libc::EBADF | libc::EACCES | libc::EPERM | libc::EISDIR)
        )
}

/// Returns true if an error means that this user may not open, lock or remove a file.
fn is_not_ours(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM | libc::EROFS))
}

/// An open file.
///
/// # Errors
/// Each fallible method returns the error of the system if the operation fails.
pub trait StorageFile: Send + Sync {
    /// Writes all bytes at an offset; the file grows as needed.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Fills `bytes` from an offset; fails if the file ends before.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;
    /// Truncates or extends the file.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// Sets the permission bits.
    fn set_mode(&self, mode: u32) -> io::Result<()>;
    /// Returns the user and the group that own the file.
    fn owner(&self) -> io::Result<(u32, u32)>;
    /// Sets the group, and the user unless `user` is `None`.
    fn set_owner(&self, user: Option<u32>, group: u32) -> io::Result<()>;
    /// Waits until the file is on the disk.
    fn sync(&self) -> io::Result<()>;
}

/// A temporary file with a name, locked while it exists. Dropping it removes it.
///
/// # Errors
/// [`StorageTemp::persist`] returns the error of the system, or fails if the process is ending.
pub trait StorageTemp: Send + Sync {
    /// Returns the open file.
    fn file(&self) -> &dyn StorageFile;
    /// Returns its path.
    fn path(&self) -> &Path;
    /// Renames it over `target`.
    fn persist(self: Box<Self>, target: &Path) -> io::Result<()>;
}

/// A lock that is held. Dropping it removes the lock file and releases it.
pub trait StorageLock: Send + Sync {}

/// Result of [`Storage::lock`].
pub enum Locked {
    /// The lock was taken.
    Held(Box<dyn StorageLock>),
    /// Held by the process that wrote this text.
    Busy(String),
    /// Files cannot be locked here: nothing is held, and no file was left.
    Unknown,
    /// The lock file belongs to this user, and nobody else may open it to test the lock.
    Closed {
        /// User id of the owner.
        owner: u32,
    },
}

/// The file system operations that a build needs.
///
/// # Errors
/// Each fallible method returns the error of the system if the operation fails.
pub trait Storage: Sync {
    /// Returns the kind of the file under a name; links are not followed.
    fn kind(&self, path: &Path) -> io::Result<Kind>;
    /// Returns the identity of the file that a name leads to, through links; `None` if there is none.
    fn identity(&self, path: &Path) -> io::Result<Option<Identity>>;
    /// Returns the names of the entries of a folder.
    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>>;
    /// Creates or takes over a lock file and writes `holder` into it. Does not wait for a held lock to be
    /// released, only (a moment) for the holder to write its name.
    fn lock(&self, path: &Path, holder: &str) -> io::Result<Locked>;
    /// Creates and locks a file `PREFIX` + six letters or digits + `SUFFIX`, with permissions `mode` less the
    /// umask.
    fn create_temp(
        &self,
        folder: &Path,
        prefix: &OsString,
        suffix: &str,
        mode: u32,
    ) -> io::Result<Box<dyn StorageTemp>>;
    /// Creates a file without a name.
    fn create_spill(&self, folder: &Path) -> io::Result<Box<dyn StorageFile>>;
    /// Opens a file for reading; returns its length, too.
    fn open(&self, path: &Path) -> io::Result<(Box<dyn StorageFile>, u64)>;
    /// Gives a file a second name, which must not be in use.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a name; succeeds if nothing has it.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes a file that nobody has locked. Returns `false`, and the file stays, if it is locked or if the
    /// lock cannot be tested or the file not removed.
    fn remove_unlocked(&self, path: &Path) -> io::Result<bool>;
    /// Waits until the entries of a folder are on the disk, if the file system can do that.
    fn sync_dir(&self, folder: &Path) -> io::Result<()>;
}

/// The file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealStorage;

/// Minimum size of writes that are sent to the disk at once, so that little is left for the final sync.
const WRITEBACK_BYTES: usize = 1 << 20;

impl RealStorage {
    /// Makes a file of the storage of an open file.
    pub(crate) fn own(self, file: File) -> Box<dyn StorageFile> {
        Box::new(RealFile { file, is_kept: false })
    }
}

struct RealFile {
    file: File,
    /// True if the contents must survive a power cut; a file without a name is not synced.
    is_kept: bool,
}

impl StorageFile for RealFile {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)?;
        if self.is_kept && bytes.len() >= WRITEBACK_BYTES {
            crate::hint::start_writeback(&self.file, offset, bytes.len() as u64)?;
        }
        Ok(())
    }
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }
    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }
    fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.file.set_permissions(fs::Permissions::from_mode(mode))
    }
    fn owner(&self) -> io::Result<(u32, u32)> {
        self.file.metadata().map(|found| (found.uid(), found.gid()))
    }
    fn set_owner(&self, user: Option<u32>, group: u32) -> io::Result<()> {
        fchown(&self.file, user, Some(group))
    }
    fn sync(&self) -> io::Result<()> {
        if self.is_kept { self.file.sync_all() } else { Ok(()) }
    }
}

struct RealTemp {
    file: RealFile,
    // Dropped in this order: the name stays registered until it is removed.
    path: tempfile::TempPath,
    _token: Option<Token>,
}

impl StorageTemp for RealTemp {
    fn file(&self) -> &dyn StorageFile {
        &self.file
    }
    fn path(&self) -> &Path {
        &self.path
    }
    fn persist(self: Box<Self>, target: &Path) -> io::Result<()> {
        remains::publish(target, || self.path.persist(target).map_err(|error| error.error))
    }
}

struct RealLock {
    path: PathBuf,
    // Held for its lock; closed after the name is removed.
    _file: File,
    _token: Option<Token>,
}

impl StorageLock for RealLock {}

impl Drop for RealLock {
    fn drop(&mut self) {
        // A lock file that cannot be removed is still unlocked, and taken over later.
        let _ = fs::remove_file(&self.path);
    }
}

/// Maximum time for the holder of a lock to write its name into it.
const HOLDER_PATIENCE: Duration = Duration::from_millis(200);

/// Attempts to create or open a lock file that others keep removing and creating.
const OPEN_ATTEMPTS: usize = 100;

/// A lock file under its name.
struct LockFile<'a> {
    path: &'a Path,
    asked: Instant,
}

impl LockName for LockFile<'_> {
    type File = File;

    fn open(&self) -> io::Result<File> {
        for _ in 0..OPEN_ATTEMPTS {
            // Created, or opened without O_CREAT: in a folder that everybody may write, the kernel refuses to
            // open another user's file with it.
            match OpenOptions::new().read(true).write(true).create_new(true).open(self.path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made,
            }
            match open_to_lock(self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                opened => return opened,
            }
        }
        Err(io::Error::other("the lock file keeps disappearing: try again"))
    }
    fn try_lock(&self, file: &File) -> io::Result<Option<bool>> {
        match file.try_lock() {
            Ok(()) => Ok(Some(true)),
            Err(TryLockError::WouldBlock) => Ok(Some(false)),
            Err(TryLockError::Error(error)) if lacks_locks(&error) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
    fn leads_to(&self, file: &File) -> io::Result<bool> {
        let ours = file.metadata()?;
        match fs::symlink_metadata(self.path) {
            Ok(named) => Ok((ours.dev(), ours.ino()) == (named.dev(), named.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
    fn holder(&self, file: &File) -> io::Result<String> {
        let mut text = String::new();
        file.take(4096).read_to_string(&mut text)?;
        Ok(text.trim().to_owned())
    }
    fn set_holder(&self, mut file: &File, holder: &str) -> io::Result<()> {
        match file.set_len(0).and_then(|()| file.write_all(holder.as_bytes())) {
            // Another user's file, open for reading alone: the lock holds all the same.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EBADF | libc::EINVAL)) => Ok(()),
            written => written,
        }
    }
    fn remove(&self) {
        let _ = fs::remove_file(self.path);
    }
    fn wait(&self) -> bool {
        let is_patient = self.asked.elapsed() < HOLDER_PATIENCE;
        if is_patient {
            std::thread::sleep(HOLDER_PATIENCE / 100);
        }
        is_patient
    }
}

/// A temporary file that is locked, and removed if the process ends early ([`remains`]).
pub struct LockedTemp {
    // Dropped in this order: the name stays registered until it is removed.
    temp: tempfile::NamedTempFile,
    token: Option<Token>,
}

impl LockedTemp {
    /// Returns the open file.
    #[must_use]
    pub fn as_file(&self) -> &File {
        self.temp.as_file()
    }

    /// Returns the open file, for writing.
    pub fn as_file_mut(&mut self) -> &mut File {
        self.temp.as_file_mut()
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.temp.path()
    }

    /// Renames it over `target`.
    ///
    /// # Errors
    /// The error of the system, or that the process is ending.
    pub fn persist(self, target: &Path) -> io::Result<()> {
        remains::publish(target, || self.temp.persist(target).map(drop).map_err(|error| error.error))
    }
}

/// Attempts at a temporary file that others remove as a stray between its creation and our lock.
const TEMP_ATTEMPTS: usize = 100;

/// Creates and locks a temporary file, for [`RealStorage`] and for other outputs that are swept in the same
/// way.
///
/// A process that looks for strays locks them for a moment; this function waits for that. A sweep at that
/// moment may remove the file before it is locked; then another one is created.
///
/// # Errors
/// The error of the system.
pub fn locked_temp(folder: &Path, prefix: &OsString, suffix: &str, mode: u32) -> io::Result<LockedTemp> {
    for _ in 0..TEMP_ATTEMPTS {
        let make = || {
            tempfile::Builder::new()
                .prefix(prefix)
                .suffix(suffix)
                .rand_bytes(6)
                .permissions(fs::Permissions::from_mode(mode))
                .tempfile_in(folder)
        };
        let (temp, token) = remains::make(make, |temp| Some(temp.path().to_owned()))?;
        match temp.as_file().lock() {
            // Without locks nobody sweeps, either.
            Err(error) if lacks_locks(&error) => {}
            locked => locked?,
        }
        if (LockFile { path: temp.path(), asked: Instant::now() }).leads_to(temp.as_file())? {
            return Ok(LockedTemp { temp, token });
        }
    }
    Err(io::Error::other("temporary files keep disappearing: try again"))
}

/// Opens a file for locking: for writing, as network file systems require, or else for reading.
fn open_to_lock(path: &Path) -> io::Result<File> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if is_not_ours(&error) => File::open(path),
        opened => opened,
    }
}

/// Opens a possible stray. `None` if it is not a regular file (opening a pipe would wait for its other end)
/// or if this user may not open it.
pub(crate) fn open_stray(path: &Path) -> io::Result<Option<File>> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Ok(None);
    }
    match open_to_lock(path) {
        Err(error) if is_not_ours(&error) => Ok(None),
        opened => opened.map(Some),
    }
}

impl Storage for RealStorage {
    fn kind(&self, path: &Path) -> io::Result<Kind> {
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_dir() => Ok(Kind::Directory),
            Ok(metadata) if metadata.is_file() => {
                let mode = metadata.mode() & 0o7777;
                let access = Access { mode, user: metadata.uid(), group: metadata.gid() };
                Ok(Kind::File { access, links: metadata.nlink() })
            }
            Ok(metadata) if metadata.is_symlink() => fs::read_link(path).map(Kind::Symlink),
            Ok(_) => Ok(Kind::Other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kind::Missing),
            Err(error) => Err(error),
        }
    }

    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        match fs::metadata(path) {
            Ok(found) => {
                let is_device = !(found.is_file() || found.is_dir());
                Ok(Some(Identity { device: found.dev(), inode: found.ino(), is_device }))
            }
            // A dangling link, or a loop of links.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
                    || error.raw_os_error() == Some(libc::ELOOP) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
    }

    fn lock(&self, path: &Path, holder: &str) -> io::Result<Locked> {
        let take = || lock::take(&LockFile { path, asked: Instant::now() }, holder);
        let name = |taken: &Taken<File>| matches!(taken, Taken::Held(_)).then(|| path.to_owned());
        match remains::make(take, name) {
            Ok((Taken::Held(file), token)) => {
                Ok(Locked::Held(Box::new(RealLock { path: path.to_owned(), _file: file, _token: token })))
            }
            Ok((Taken::Busy(holder), _)) => Ok(Locked::Busy(holder)),
            Ok((Taken::Unknown, _)) => Ok(Locked::Unknown),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => match fs::symlink_metadata(path)
            {
                Ok(found) => Ok(Locked::Closed { owner: found.uid() }),
                Err(_) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    fn create_temp(
        &self,
        folder: &Path,
        prefix: &OsString,
        suffix: &str,
        mode: u32,
    ) -> io::Result<Box<dyn StorageTemp>> {
        let LockedTemp { temp, token } = locked_temp(folder, prefix, suffix, mode)?;
        let (file, path) = temp.into_parts();
        Ok(Box::new(RealTemp { file: RealFile { file, is_kept: true }, path, _token: token }))
    }

    fn create_spill(&self, folder: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(RealFile { file: tempfile::tempfile_in(folder)?, is_kept: false }))
    }

    fn remove_unlocked(&self, path: &Path) -> io::Result<bool> {
        let removed = match open_stray(path) {
            Ok(Some(file)) => match file.try_lock() {
                // In a sticky folder others' files stay.
                Ok(()) => match fs::remove_file(path) {
                    Err(error) if is_not_ours(&error) => Ok(false),
                    removed => removed.map(|()| true),
                },
                Err(TryLockError::WouldBlock) => Ok(false),
                Err(TryLockError::Error(error)) if lacks_locks(&error) => Ok(false),
                Err(TryLockError::Error(error)) => Err(error),
            },
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            removed => removed,
        }
    }

    fn open(&self, path: &Path) -> io::Result<(Box<dyn StorageFile>, u64)> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        // A pipe has no length, and would pass for a truncated file.
        if !metadata.is_file() {
            return Err(io::ErrorKind::NotSeekable.into());
        }
        Ok((Box::new(RealFile { file, is_kept: false }), metadata.len()))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn sync_dir(&self, folder: &Path) -> io::Result<()> {
        match File::open(folder).and_then(|folder| folder.sync_all()) {
            Err(error) if lacks_folder_sync(&error) => Ok(()),
            synced => synced,
        }
    }
}

/// One file without a name, which only its builder reads: nothing of it remains in any case, and it is not
/// synced.
#[derive(Debug)]
pub struct UnnamedStorage {
    target: PathBuf,
    built: Arc<Mutex<Option<File>>>,
}

impl UnnamedStorage {
    /// Creates the storage on the file system of `folder`.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { target: folder.join("unnamed.pleach"), built: Arc::default() }
    }

    /// Returns the target to build; errors show it.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Returns the file once it is built.
    #[must_use]
    pub fn into_file(self) -> Option<File> {
        self.built.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

struct UnnamedTemp {
    file: RealFile,
    path: PathBuf,
    built: Arc<Mutex<Option<File>>>,
}

impl StorageTemp for UnnamedTemp {
    fn file(&self) -> &dyn StorageFile {
        &self.file
    }
    fn path(&self) -> &Path {
        &self.path
    }
    fn persist(self: Box<Self>, _target: &Path) -> io::Result<()> {
        *self.built.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.file.file);
        Ok(())
    }
}

impl Storage for UnnamedStorage {
    fn kind(&self, _path: &Path) -> io::Result<Kind> {
        Ok(Kind::Missing)
    }
    fn identity(&self, _path: &Path) -> io::Result<Option<Identity>> {
        Ok(None)
    }
    fn list(&self, _folder: &Path) -> io::Result<Vec<OsString>> {
        Ok(Vec::new())
    }
    fn lock(&self, _path: &Path, _holder: &str) -> io::Result<Locked> {
        Ok(Locked::Held(Box::new(NoLock)))
    }
    fn create_temp(
        &self,
        folder: &Path,
        _prefix: &OsString,
        _suffix: &str,
        _mode: u32,
    ) -> io::Result<Box<dyn StorageTemp>> {
        let file = RealFile { file: tempfile::tempfile_in(folder)?, is_kept: false };
        Ok(Box::new(UnnamedTemp { file, path: self.target.clone(), built: Arc::clone(&self.built) }))
    }
    fn create_spill(&self, folder: &Path) -> io::Result<Box<dyn StorageFile>> {
        RealStorage.create_spill(folder)
    }
    fn open(&self, _path: &Path) -> io::Result<(Box<dyn StorageFile>, u64)> {
        Err(io::ErrorKind::NotFound.into())
    }
    fn link(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }
    fn remove(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
    fn remove_unlocked(&self, _path: &Path) -> io::Result<bool> {
        Ok(true)
    }
    fn sync_dir(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// Files in memory. Locks are always granted.
#[derive(Debug, Default)]
pub struct MemoryStorage {
    files: Arc<Mutex<BTreeMap<PathBuf, Vec<u8>>>>,
}

impl MemoryStorage {
    /// Adds or replaces a file.
    pub fn put(&self, path: &Path, bytes: Vec<u8>) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), bytes);
    }

    /// Removes a file and returns its bytes.
    #[must_use]
    pub fn take(&self, path: &Path) -> Option<Vec<u8>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).remove(path)
    }
}

#[derive(Default)]
struct MemoryFile(Mutex<Vec<u8>>);

impl MemoryFile {
    fn bytes(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn index(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

impl StorageFile for MemoryFile {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let at = index(offset)?;
        let mut file = self.bytes();
        if file.len() < at + bytes.len() {
            file.resize(at + bytes.len(), 0);
        }
        file[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let at = index(offset)?;
        let file = self.bytes();
        let found = file.get(at..at + bytes.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(found);
        Ok(())
    }
    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.bytes().resize(index(bytes)?, 0);
        Ok(())
    }
    fn set_mode(&self, _mode: u32) -> io::Result<()> {
        Ok(())
    }
    fn owner(&self) -> io::Result<(u32, u32)> {
        Ok((0, 0))
    }
    fn set_owner(&self, _user: Option<u32>, _group: u32) -> io::Result<()> {
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

struct MemoryTemp {
    file: MemoryFile,
    path: PathBuf,
    files: Arc<Mutex<BTreeMap<PathBuf, Vec<u8>>>>,
}

impl StorageTemp for MemoryTemp {
    fn file(&self) -> &dyn StorageFile {
        &self.file
    }
    fn path(&self) -> &Path {
        &self.path
    }
    fn persist(self: Box<Self>, target: &Path) -> io::Result<()> {
        let bytes = std::mem::take(&mut *self.file.bytes());
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(target.to_owned(), bytes);
        Ok(())
    }
}

/// The lock of a storage that nobody else can use.
struct NoLock;
impl StorageLock for NoLock {}

impl Storage for MemoryStorage {
    fn kind(&self, path: &Path) -> io::Result<Kind> {
        let there = self.files.lock().unwrap_or_else(PoisonError::into_inner).contains_key(path);
        let access = Access { mode: 0o666, user: 0, group: 0 };
        Ok(if there { Kind::File { access, links: 1 } } else { Kind::Missing })
    }
    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        let identity = Identity { device: 0, inode: hasher.finish(), is_device: false };
        Ok(files.contains_key(path).then_some(identity))
    }
    fn list(&self, _folder: &Path) -> io::Result<Vec<OsString>> {
        Ok(Vec::new())
    }
    fn lock(&self, _path: &Path, _holder: &str) -> io::Result<Locked> {
        Ok(Locked::Held(Box::new(NoLock)))
    }
    fn create_temp(
        &self,
        folder: &Path,
        prefix: &OsString,
        suffix: &str,
        _mode: u32,
    ) -> io::Result<Box<dyn StorageTemp>> {
        let mut name = prefix.clone();
        name.push("memory");
        name.push(suffix);
        let (path, files) = (folder.join(name), Arc::clone(&self.files));
        Ok(Box::new(MemoryTemp { file: MemoryFile::default(), path, files }))
    }
    fn create_spill(&self, _folder: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(MemoryFile::default()))
    }
    fn open(&self, path: &Path) -> io::Result<(Box<dyn StorageFile>, u64)> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = files.get(path).ok_or(io::ErrorKind::NotFound)?.clone();
        let length = bytes.len() as u64;
        Ok((Box::new(MemoryFile(Mutex::new(bytes))), length))
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let bytes = files.get(from).ok_or(io::ErrorKind::NotFound)?.clone();
        files.insert(to.to_owned(), bytes);
        Ok(())
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        let _ = self.take(path);
        Ok(())
    }
    fn remove_unlocked(&self, path: &Path) -> io::Result<bool> {
        let _ = self.take(path);
        Ok(true)
    }
    fn sync_dir(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }
}
