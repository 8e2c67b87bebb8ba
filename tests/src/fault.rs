//! A file system with an operation that fails: the n-th one, or all from the n-th on.

use pleach_builder::storage::{Identity, Kind, Locked, RealStorage, Storage, StorageFile, StorageTemp};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Answer that is forced on an operation.
#[derive(Clone)]
pub struct Fault {
    /// Number of the operation that fails; counted from 0.
    pub at: u64,
    /// True if all later ones fail too, as on a disk that is full or gone.
    pub forever: bool,
    /// The error of the system.
    pub errno: i32,
    /// Operations so far.
    pub count: Arc<AtomicU64>,
}

impl Fault {
    fn step(&self) -> io::Result<()> {
        let now = self.count.fetch_add(1, Ordering::Relaxed);
        if now == self.at || (self.forever && now > self.at) {
            return Err(io::Error::from_raw_os_error(self.errno));
        }
        Ok(())
    }
}

/// A file with an operation that fails.
struct Faulty<F: ?Sized> {
    fault: Fault,
    file: Box<F>,
}

macro_rules! faulty {
    ($kind:ty, $self:ident => $inner:expr) => {
        impl StorageFile for Faulty<$kind> {
            fn write_all_at(&$self, bytes: &[u8], offset: u64) -> io::Result<()> {
                $self.fault.step()?;
                $inner.write_all_at(bytes, offset)
            }
            fn read_exact_at(&$self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
                $self.fault.step()?;
                $inner.read_exact_at(bytes, offset)
            }
            fn set_len(&$self, bytes: u64) -> io::Result<()> {
                $self.fault.step()?;
                $inner.set_len(bytes)
            }
            fn set_mode(&$self, mode: u32) -> io::Result<()> {
                $self.fault.step()?;
                $inner.set_mode(mode)
            }
            fn owner(&$self) -> io::Result<(u32, u32)> {
                $self.fault.step()?;
                $inner.owner()
            }
            fn set_owner(&$self, user: Option<u32>, group: u32) -> io::Result<()> {
                $self.fault.step()?;
                $inner.set_owner(user, group)
            }
            fn sync(&$self) -> io::Result<()> {
                $self.fault.step()?;
                $inner.sync()
            }
        }
    };
}
faulty!(dyn StorageFile, self => self.file);
faulty!(dyn StorageTemp, self => self.file.file());

impl StorageTemp for Faulty<dyn StorageTemp> {
    fn file(&self) -> &dyn StorageFile {
        self
    }
    fn path(&self) -> &Path {
        self.file.path()
    }
    fn persist(self: Box<Self>, target: &Path) -> io::Result<()> {
        self.fault.step()?;
        self.file.persist(target)
    }
}

impl Storage for Fault {
    fn kind(&self, path: &Path) -> io::Result<Kind> {
        self.step()?;
        RealStorage.kind(path)
    }
    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        self.step()?;
        RealStorage.identity(path)
    }
    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        self.step()?;
        RealStorage.list(folder)
    }
    fn lock(&self, path: &Path, holder: &str) -> io::Result<Locked> {
        self.step()?;
        RealStorage.lock(path, holder)
    }
    fn create_temp(
        &self,
        folder: &Path,
        prefix: &OsString,
        suffix: &str,
        mode: u32,
    ) -> io::Result<Box<dyn StorageTemp>> {
        self.step()?;
        let file = RealStorage.create_temp(folder, prefix, suffix, mode)?;
        Ok(Box::new(Faulty { fault: self.clone(), file }))
    }
    fn create_spill(&self, folder: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.step()?;
        let file = RealStorage.create_spill(folder)?;
        Ok(Box::new(Faulty { fault: self.clone(), file }))
    }
    fn open(&self, path: &Path) -> io::Result<(Box<dyn StorageFile>, u64)> {
        self.step()?;
        let (file, bytes) = RealStorage.open(path)?;
        Ok((Box::new(Faulty { fault: self.clone(), file }), bytes))
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        RealStorage.link(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        RealStorage.remove(path)
    }
    fn remove_unlocked(&self, path: &Path) -> io::Result<bool> {
        self.step()?;
        RealStorage.remove_unlocked(path)
    }
    fn sync_dir(&self, folder: &Path) -> io::Result<()> {
        self.step()?;
        RealStorage.sync_dir(folder)
    }
}
