//! Publication: a new file gets its name when it is complete and on the disk, or not at all.
//!
//! Index files and tables are both published here. No file replaces one of its own inputs or a kept
//! generation, by whatever name. An index replaces nothing, an empty file or a Pleach file; a table replaces
//! anything but a Pleach file. [`Rules::force`] lifts the last two limits. The rules are checked before any
//! work, and again right before the rename.
//!
//! The steps: take the lock file beside the target, create a temporary file in the same folder, write, sync,
//! rename, sync the folder (otherwise a power cut may bring the old file back). Dropping a `Publication`
//! removes the temporary file and the lock. A killed build leaves both, unlocked: the next build of the same
//! target removes them.

use crate::error::{BuildError, SYNCING_FOLDER};
use crate::held;
use crate::observe::{Phase, Silent, Watch};
use crate::standing::Standing;
use crate::storage::{
    Access, Identity, Kind, Locked, RealStorage, Storage, StorageFile, StorageLock, StorageTemp,
    lacks_owners, open_stray,
};
use pleach_format::superblock::Superblock;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Suffix of the name of a temporary file: `.NAME.XXXXXX.pleach-tmp`.
const TEMP_SUFFIX: &str = ".pleach-tmp";
/// Suffix of the name of a lock file: `.NAME.pleach-lock`.
const LOCK_SUFFIX: &str = ".pleach-lock";
/// Random characters in the name of a temporary file.
const RANDOM_BYTES: usize = 6;
/// Maximum number of symbolic links followed to the target.
const LINKS_MAX: usize = 40;

/// The kind of file to publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// An index file, or the part of one that was saved.
    Index,
    /// The next generation of the index at the target, which is also its input.
    Next,
    /// A second copy of a generation, under a name not in use.
    Copy,
    /// The same generation in the current format; it may be a kept one.
    Upgrade,
    /// Anything else: a table, a report, a page.
    Table,
}

/// Rules for what a new file may replace.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Kind of the new file.
    pub what: What,
    /// Input files, under any of their names. Missing ones are ignored.
    pub inputs: Vec<PathBuf>,
    /// Allows an index to replace a file that is not a Pleach file, and a table to replace one that is.
    pub force: bool,
}

impl Rules {
    /// Creates the rules for an index file.
    #[must_use]
    pub fn index(inputs: Vec<PathBuf>, force: bool) -> Self {
        Self { what: What::Index, inputs, force }
    }

    /// Creates the rules for a table.
    #[must_use]
    pub fn table(inputs: Vec<PathBuf>, force: bool) -> Self {
        Self { what: What::Table, inputs, force }
    }

    fn of(what: What, inputs: Vec<PathBuf>) -> Self {
        Self { what, inputs, force: false }
    }

    /// Creates the rules for an upgrade.
    pub(crate) fn upgrade() -> Self {
        Self::of(What::Upgrade, Vec::new())
    }

    /// Creates the rules for the next generation.
    pub(crate) fn next(inputs: Vec<PathBuf>) -> Self {
        Self::of(What::Next, inputs)
    }

    /// Checks that the file `target` may be written. A command calls it before it reads anything; publishing
    /// checks again.
    ///
    /// # Errors
    /// The reason why not: [`BuildError::OutputIsInput`], [`BuildError::OutputIsKept`],
    /// [`BuildError::TargetForeign`], [`BuildError::TargetIsIndex`], [`BuildError::TargetIsDirectory`],
    /// [`BuildError::TargetNotRegular`] or [`BuildError::Io`].
    pub fn check(&self, target: &Path) -> Result<(), BuildError> {
        match self.judged(&RealStorage, target) {
            Err(BuildError::TargetNotRegular { .. }) if self.what == What::Table => Ok(()),
            judged => judged.map(|_| ()),
        }
    }

    /// Returns the place of the target and the file there, if it may be replaced.
    fn judged(&self, storage: &dyn Storage, target: &Path) -> Result<(Place, Standing), BuildError> {
        let looking = |error| BuildError::io("looking for the target", target, error);
        let there = storage.identity(target).map_err(looking)?;
        if let Some(there) = there {
            for input in &self.inputs {
                let found = match storage.identity(input) {
                    // A file that we may not look up cannot be read either; opening it reports that.
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
                    found => found.map_err(|error| BuildError::io("looking for the input", input, error))?,
                };
                if found == Some(there) {
                    return Err(BuildError::OutputIsInput { path: target.to_owned() });
                }
            }
        }
        if there.is_some_and(|there| there.is_device) {
            return Err(BuildError::TargetNotRegular { path: target.to_owned() });
        }
        let place = Place::resolve(storage, target)
            .map_err(looking)?
            .ok_or_else(|| BuildError::TargetIsDirectory { path: target.to_owned() })?;
        let links = match place.kind {
            Kind::Directory => return Err(BuildError::TargetIsDirectory { path: target.to_owned() }),
            Kind::Symlink(_) | Kind::Other => {
                return Err(BuildError::TargetNotRegular { path: target.to_owned() });
            }
            Kind::Missing => return Ok((place, Standing::Empty)),
            Kind::File { links, .. } => links,
        };
        let standing = match Standing::of(storage, &place.path()) {
            // `force` permits replacing it, whatever it is.
            Err(error) if self.force && error.kind() == io::ErrorKind::PermissionDenied => Standing::Foreign,
            standing => standing.map_err(|error| BuildError::io("looking into the target", target, error))?,
        };
        self.check_kept(storage, target, &place, &standing, there.filter(|_| links > 1))?;
        match (self.what, &standing) {
            (What::Index, Standing::Foreign) if !self.force => {
                Err(BuildError::TargetForeign { path: target.to_owned() })
            }
            (What::Table, standing) if standing.is_ours() && !self.force => {
                Err(BuildError::TargetIsIndex { path: target.to_owned() })
            }
            (What::Copy, _) => Err(BuildError::io("creating", target, io::ErrorKind::AlreadyExists.into())),
            _ => Ok((place, standing)),
        }
    }

    /// Refuses to replace a kept generation: of the index that its name implies or, under another name, of an
    /// input.
    fn check_kept(
        &self,
        storage: &dyn Storage,
        target: &Path,
        place: &Place,
        standing: &Standing,
        linked: Option<Identity>,
    ) -> Result<(), BuildError> {
        let refused = || Err(BuildError::OutputIsKept { path: target.to_owned() });
        let looking = |error| BuildError::io("looking for generations", target, error);
        if !matches!(self.what, What::Copy | What::Upgrade)
            && standing.is_ours()
            && let Some((name, _)) = held::parts(&place.name)
        {
            let index = place.folder.join(name);
            let is_file = matches!(storage.kind(&index).map_err(looking)?, Kind::File { .. });
            // A file that cannot be read may be an index.
            if is_file && Standing::of(storage, &index).map_or(true, |index| index.is_ours()) {
                return refused();
            }
        }
        let Some(linked) = linked else { return Ok(()) };
        for input in &self.inputs {
            let Some(input) = Place::resolve(storage, input).ok().flatten() else { continue };
            let entries = listed(storage, &input.folder).map_err(looking)?;
            for entry in entries {
                if held::of_name(&input.name, &entry).is_some()
                    && storage.identity(&input.folder.join(entry)).map_err(looking)? == Some(linked)
                {
                    return refused();
                }
            }
        }
        Ok(())
    }
}

/// Generation number and lineage of a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descent {
    pub generation: u64,
    /// File id of the first generation; zero in the first generation itself.
    pub lineage: [u8; 16],
}

impl Descent {
    /// Descent of a file that continues no other.
    pub(crate) const FIRST: Self = Self { generation: 1, lineage: [0; 16] };

    /// Returns the descent of the file after all generations of this index. Numbers only increase, even if an
    /// old generation was put back by hand.
    fn after(
        storage: &dyn Storage,
        target: &Path,
        names: &[OsString],
        block: &Superblock,
    ) -> Result<Self, BuildError> {
        let mut newest = block.generation.get();
        let name = target.file_name().unwrap_or_default();
        for generation in names.iter().filter_map(|entry| held::of_name(name, entry)) {
            if generation > newest
                && held::Held::of(storage, target, generation, block.first_id())?.is_generation()
            {
                newest = generation;
            }
        }
        let generation = newest.checked_add(1);
        let generation = generation.ok_or_else(|| BuildError::LastGeneration { path: target.to_owned() })?;
        Ok(Self { generation, lineage: block.first_id() })
    }
}

/// Returns the names of the entries of a folder; none if it may not be read.
fn listed(storage: &dyn Storage, folder: &Path) -> io::Result<Vec<OsString>> {
    match storage.list(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(Vec::new()),
        listed => listed,
    }
}

/// Gives a new file the owner, the group and the permissions of the old one, as far as the system permits. If
/// the group cannot be kept, neither the new nor the old group gets a permission that group and others did
/// not both have.
fn keep_access(file: &dyn StorageFile, old: Access) -> io::Result<()> {
    if file.owner()? != (old.user, old.group) {
        let may = |done: io::Result<()>| match done {
            Err(error) if lacks_owners(&error) => Ok(false),
            done => done.map(|()| true),
        };
        // Without the right to change the owner, the group may still be set to one of our own.
        if !may(file.set_owner(Some(old.user), old.group))? {
            may(file.set_owner(None, old.group))?;
        }
    }
    let (user, group) = file.owner()?;
    let mut mode = old.mode;
    if user != old.user {
        mode &= !0o4000;
    }
    if group != old.group {
        let both = (mode >> 3) & mode & 0o7;
        mode = (mode & 0o5700) | both << 3 | both;
    }
    match file.set_mode(mode) {
        // The file system has no permissions, or only the owner may set them: the file keeps the narrow mode
        // of its creation.
        Err(error) if lacks_owners(&error) => Ok(()),
        set => set,
    }
}

/// The real place of a target, with its links followed.
struct Place {
    folder: PathBuf,
    name: OsString,
    kind: Kind,
}

impl Place {
    /// Follows symbolic links: the file that a link points to is the one replaced.
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

    fn path(&self) -> PathBuf {
        // Written as the user wrote it.
        if self.folder == Path::new(".") { PathBuf::from(&self.name) } else { self.folder.join(&self.name) }
    }

    /// Returns `.NAME` followed by `end`.
    fn beside(&self, end: &str) -> OsString {
        let mut name = OsString::from(".");
        name.push(&self.name);
        name.push(end);
        name
    }

    /// Returns true if `name` is that of a temporary file of this target.
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

/// Finds the unlocked temporary files and lock files of `target` that a killed build left. The next build of
/// the target removes them. O(entries of the folder).
///
/// # Errors
/// The error of the system if the folder or one of these files cannot be read.
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
            // Only a test: closing the file releases the lock.
            Ok(Some(file)) if file.try_lock_shared().is_ok() => found.push(path),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the path of the target with its links followed.
pub(crate) fn resolved(storage: &dyn Storage, target: &Path) -> Result<PathBuf, BuildError> {
    let place = Place::resolve(storage, target);
    let place = place.map_err(|error| BuildError::io("looking for the target", target, error))?;
    place.map(|place| place.path()).ok_or_else(|| BuildError::TargetIsDirectory { path: target.to_owned() })
}

/// A file that is being written and does not have its name yet.
pub(crate) struct Publication<'a> {
    storage: &'a dyn Storage,
    // Dropped in this order: the temporary file first, the lock last.
    temp: Box<dyn StorageTemp>,
    _lock: Option<Box<dyn StorageLock>>,
    folder: PathBuf,
    target: PathBuf,
    rules: Rules,
    standing: Standing,
    replaced: Option<Identity>,
    descent: Descent,
}

impl<'a> Publication<'a> {
    /// Checks that the target may be replaced, takes the lock, removes strays and creates the temporary file.
    pub(crate) fn begin(storage: &'a dyn Storage, target: &Path, rules: Rules) -> Result<Self, BuildError> {
        Self::begin_like(storage, target, rules, None)
    }

    /// Does the same; if there is no file at the target, the new file gets the access rights `like`.
    pub(crate) fn begin_like(
        storage: &'a dyn Storage,
        target: &Path,
        rules: Rules,
        like: Option<Access>,
    ) -> Result<Self, BuildError> {
        let (place, _) = rules.judged(storage, target)?;
        let lock = Self::lock(storage, target, &place)?;
        // Under the lock nobody else publishes: the file found now is the one replaced.
        let (place, standing) = rules.judged(storage, target)?;
        let replaced = storage
            .identity(target)
            .map_err(|error| BuildError::io("looking for the target", target, error))?;
        let names = listed(storage, &place.folder)
            .map_err(|error| BuildError::io("listing the folder", &place.folder, error))?;
        for name in names.iter().filter(|name| place.is_temp(name)) {
            let path = place.folder.join(name);
            storage
                .remove_unlocked(&path)
                .map_err(|error| BuildError::io("removing a left-over file", path, error))?;
        }
        let continues = matches!(rules.what, What::Index | What::Next);
        let descent = match standing.superblock().filter(|_| continues) {
            Some(block) => Descent::after(storage, &place.path(), &names, block)?,
            None => Descent::FIRST,
        };
        let old = match place.kind {
            Kind::File { access, .. } => Some(access),
            _ => like,
        };
        // Until the new file has the mode of the old one, nobody may open it who may not read the old one.
        let first = old.map_or(0o666, |_| 0o600);
        let temp = storage
            .create_temp(&place.folder, &place.beside("."), TEMP_SUFFIX, first)
            .map_err(|error| BuildError::io("creating a temporary file", &place.folder, error))?;
        if let Some(old) = old {
            keep_access(temp.file(), old)
                .map_err(|error| BuildError::io("setting owner and mode", temp.path(), error))?;
        }
        let target = place.path();
        Ok(Self {
            storage,
            temp,
            _lock: lock,
            folder: place.folder,
            target,
            rules,
            standing,
            replaced,
            descent,
        })
    }

    /// Takes the lock of the target; `None` if files cannot be locked here.
    fn lock(
        storage: &dyn Storage,
        target: &Path,
        place: &Place,
    ) -> Result<Option<Box<dyn StorageLock>>, BuildError> {
        let path = place.folder.join(place.beside(LOCK_SUFFIX));
        match storage.lock(&path, &holder()) {
            Ok(Locked::Held(lock)) => Ok(Some(lock)),
            // Concurrent builds write separate temporary files: one of the two results remains, complete.
            Ok(Locked::Unknown) => Ok(None),
            Ok(Locked::Busy(holder)) => {
                let holder = if holder.is_empty() { "another process".to_owned() } else { holder };
                Err(BuildError::Busy { path: target.to_owned(), holder })
            }
            Ok(Locked::Closed { owner }) => Err(BuildError::LockClosed { path, owner }),
            Err(error) => Err(BuildError::io("creating the lock file", path, error)),
        }
    }

    /// Returns the superblock of the replaced file, if that is an index.
    pub(crate) fn replaced(&self) -> Option<&Superblock> {
        self.standing.superblock()
    }

    /// Returns generation number and lineage of the file.
    pub(crate) fn descent(&self) -> Descent {
        self.descent
    }

    /// Sets a descent that the file at the target does not specify.
    pub(crate) fn set_descent(&mut self, descent: Descent) {
        self.descent = descent;
    }

    pub(crate) fn storage(&self) -> &'a dyn Storage {
        self.storage
    }

    /// Returns the temporary file.
    pub(crate) fn output(&self) -> Output<'_> {
        Output { file: self.temp.file(), path: self.temp.path() }
    }

    /// Returns the folder of the target.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the target with its links followed.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Syncs the file, so that [`Publication::commit`] has little left to wait for, or to fail at.
    pub(crate) fn sync(&self, watch: &Watch<'_>) -> Result<(), BuildError> {
        watch.check()?;
        watch.progress(Phase::Sync, 0, None);
        self.output().sync()
    }

    /// Syncs the file, gives it its name and syncs the folder. A failed sync is never tried again: the kernel
    /// may have dropped the bytes and would report success.
    pub(crate) fn commit(self, watch: &Watch<'_>) -> Result<(), BuildError> {
        self.sync(watch)?;
        self.rename(watch)?.sync()
    }

    /// Checks a last time that the target may be replaced: it may have changed since.
    fn check_again(&self) -> Result<(), BuildError> {
        self.rules.judged(self.storage, &self.target)?;
        // Replaced on a file system without locks, or by a process that ignores them.
        if matches!(self.rules.what, What::Next | What::Upgrade)
            && self
                .storage
                .identity(&self.target)
                .map_err(|error| BuildError::io("looking for the target", &self.target, error))?
                != self.replaced
        {
            return Err(BuildError::Overtaken { path: self.target.clone() });
        }
        Ok(())
    }

    /// Gives the file its name and waits for no disk. Without [`Publication::sync`] before it and
    /// [`Published::sync`] after it, a power cut may leave neither file complete.
    pub(crate) fn rename(self, watch: &Watch<'_>) -> Result<Published<'a>, BuildError> {
        watch.check()?;
        self.check_again()?;
        let Self { storage, temp, _lock, folder, target, .. } = self;
        temp.persist(&target).map_err(|error| BuildError::io("renaming to the target", target, error))?;
        Ok(Published { storage, folder, _lock })
    }
}

/// A file of any kind that is written front to back and appears complete under its name or not at all; or a
/// device or a pipe, which receives all that is written.
pub struct Draft {
    kind: DraftKind,
    bytes: u64,
}

enum DraftKind {
    File(Publication<'static>),
    Device(std::fs::File),
}

impl Draft {
    /// Takes the lock and creates a temporary file beside `target`, or opens the device.
    ///
    /// # Errors
    /// The errors of [`Rules::check`]; [`BuildError::Busy`] or [`BuildError::LockClosed`] if the lock is held or
    /// cannot be read; [`BuildError::Io`].
    pub fn create(target: &Path, rules: Rules) -> Result<Self, BuildError> {
        static STORAGE: RealStorage = RealStorage;
        let is_table = rules.what == What::Table;
        let kind = match Publication::begin(&STORAGE, target, rules) {
            Ok(publication) => DraftKind::File(publication),
            // A table, unlike an index, can be written to a pipe.
            Err(BuildError::TargetNotRegular { .. }) if is_table => {
                let device = std::fs::OpenOptions::new().write(true).open(target);
                DraftKind::Device(device.map_err(|error| BuildError::io("opening", target, error))?)
            }
            Err(error) => return Err(error),
        };
        Ok(Self { kind, bytes: 0 })
    }

    /// Returns the bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns true if the target is a device or a pipe.
    #[must_use]
    pub fn is_device(&self) -> bool {
        matches!(self.kind, DraftKind::Device(_))
    }

    /// Syncs the file and gives it its name. For a device, does nothing.
    ///
    /// # Errors
    /// [`BuildError::Io`]; those of [`Rules::check`] if the target has changed since the draft was created.
    pub fn commit(self) -> Result<(), BuildError> {
        match self.kind {
            DraftKind::File(publication) => publication.commit(&Watch::new(&Silent)),
            DraftKind::Device(_) => Ok(()),
        }
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.kind {
            DraftKind::File(publication) => {
                publication.temp.file().write_all_at(bytes, self.bytes)?;
                bytes.len()
            }
            DraftKind::Device(device) => device.write(bytes)?,
        };
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.kind {
            DraftKind::File(_) => Ok(()),
            DraftKind::Device(device) => device.flush(),
        }
    }
}

/// Publishes `bytes` as the file `target`.
///
/// # Errors
/// The errors of [`Draft::create`] and [`Draft::commit`]; [`BuildError::Io`] if a write fails.
pub fn replace(target: &Path, bytes: &[u8], rules: Rules) -> Result<(), BuildError> {
    let mut draft = Draft::create(target, rules)?;
    draft.write_all(bytes).map_err(|error| BuildError::io("writing", target, error))?;
    draft.commit()
}

/// A published file; its target stays locked until this is dropped.
pub(crate) struct Published<'a> {
    storage: &'a dyn Storage,
    folder: PathBuf,
    _lock: Option<Box<dyn StorageLock>>,
}

impl Published<'_> {
    /// Syncs the folder, so that the name survives a power cut.
    pub(crate) fn sync(&self) -> Result<(), BuildError> {
        let done = self.storage.sync_dir(&self.folder);
        done.map_err(|error| BuildError::io(SYNCING_FOLDER, &self.folder, error))
    }
}

/// Returns the text that names this process to others that find the lock.
fn holder() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    format!("process {} on {}", std::process::id(), if host.is_empty() { "this machine" } else { host })
}

/// An open file, and its path for error messages.
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
