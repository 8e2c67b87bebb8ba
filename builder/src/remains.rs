//! Registry of names that must not remain if the process ends early: temporary files, lock files, temporary
//! folders.
//!
//! A name is in the registry from its creation until it is removed or has become the final name. A process
//! may have to end while its threads still work (waiting for a pipe that nobody writes, or out of memory): it
//! calls [`abandon`], which removes all registered names, and then exits. From then on nothing is made and
//! nothing is published.
//!
//! Names are made ([`make`]) and files published ([`publish`]) while the gate is held shared; [`abandon`]
//! closes it. So every name is in the registry or was never made, and the result of [`abandon`] is true of
//! every published file. Calling [`abandon`] is optional: otherwise dropping a [`Token`] only removes its
//! name from the registry.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, TryLockError};
use std::time::{Duration, Instant};

/// Maximum time that [`abandon`] waits for a name that is being made or a file that is being published.
const PATIENCE: Duration = Duration::from_millis(200);
/// Interval between its attempts.
const LOOK: Duration = Duration::from_millis(1);
/// Maximum number of attempts to remove a folder in which others still make files.
const ATTEMPTS: usize = 20;

/// Result of [`abandon`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Abandoned {
    /// No file was published; the previous files are still there.
    Unchanged,
    /// This file has its new contents; if there were several, it is the last one.
    Published(PathBuf),
    /// A file was being published, and the system does not report whether it has its name.
    Uncertain,
}

#[derive(Default)]
struct State {
    /// Names by number; true for folders.
    names: BTreeMap<u64, (PathBuf, bool)>,
    next: u64,
    is_abandoned: bool,
    published: Option<PathBuf>,
}

struct Registry {
    /// Held shared while a name is made or a file is published.
    gate: RwLock<()>,
    state: Mutex<State>,
}

static REGISTRY: Registry = Registry::new();

/// A registered name; dropping the token removes the name from the registry.
#[must_use = "a name is forgotten when its token is dropped"]
pub struct Token {
    registry: &'static Registry,
    number: u64,
}

impl Drop for Token {
    fn drop(&mut self) {
        self.registry.state().names.remove(&self.number);
    }
}

/// Calls `make` to create something, and registers the name that `name` returns for it.
///
/// # Errors
/// The errors of `make`, or that the process is ending.
pub fn make<T>(
    make: impl FnOnce() -> io::Result<T>,
    name: impl FnOnce(&T) -> Option<PathBuf>,
) -> io::Result<(T, Option<Token>)> {
    REGISTRY.make(make, name)
}

/// Registers the name of a file that was made a moment ago. Prefer [`make`].
pub fn register(path: &Path) -> Token {
    REGISTRY.register(path, false)
}

/// Registers the name of a folder, which is removed with all its entries.
pub fn register_folder(path: &Path) -> Token {
    REGISTRY.register(path, true)
}

/// Gives a file its name: calls `rename`, unless the process is ending.
///
/// # Errors
/// The errors of `rename`, or that the process is ending.
pub fn publish<T>(target: &Path, rename: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    REGISTRY.publish(target, rename)
}

/// Removes all registered names and forbids making or publishing any more. Call it last, in a process that is
/// about to end. It waits a moment at most, whatever the other threads hold, and needs almost no memory.
pub fn abandon() -> Abandoned {
    REGISTRY.abandon()
}

/// A guard for steps that must not be separated: while it lives, [`abandon`] waits (a moment).
#[must_use = "it holds as long as it lives"]
pub struct Hold(#[expect(dead_code, reason = "held, not read")] RwLockReadGuard<'static, ()>);

/// Makes [`abandon`] wait for the steps that follow.
pub fn hold() -> Hold {
    Hold(REGISTRY.gate())
}

/// Returns the file that was published last.
pub fn published() -> Option<PathBuf> {
    REGISTRY.state().published.clone()
}

fn ending() -> io::Error {
    io::Error::other("the process is ending")
}

impl Registry {
    const fn new() -> Self {
        let state = State { names: BTreeMap::new(), next: 0, is_abandoned: false, published: None };
        Self { gate: RwLock::new(()), state: Mutex::new(state) }
    }

    fn gate(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make<T>(
        &'static self,
        make: impl FnOnce() -> io::Result<T>,
        name: impl FnOnce(&T) -> Option<PathBuf>,
    ) -> io::Result<(T, Option<Token>)> {
        let _gate = self.gate();
        if self.state().is_abandoned {
            return Err(ending());
        }
        let made = make()?;
        let token = name(&made).map(|path| self.register(&path, false));
        Ok((made, token))
    }

    fn register(&'static self, path: &Path, is_folder: bool) -> Token {
        let path = path.to_owned();
        let mut state = self.state();
        if state.is_abandoned {
            remove(&path, is_folder);
        }
        let number = state.next;
        state.next += 1;
        state.names.insert(number, (path, is_folder));
        Token { registry: self, number }
    }

    fn publish<T>(&self, target: &Path, rename: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let _gate = self.gate();
        if self.state().is_abandoned {
            return Err(ending());
        }
        let done = rename()?;
        let mut state = self.state();
        // A file in a folder that will be removed does not count as published.
        if !state.names.values().any(|(path, is_folder)| *is_folder && target.starts_with(path)) {
            state.published = Some(target.to_owned());
        }
        Ok(done)
    }

    fn abandon(&self) -> Abandoned {
        let until = Instant::now() + PATIENCE;
        let gate = within(until, || self.gate.try_write());
        let Some(mut state) = within(until, || self.state.try_lock()) else { return Abandoned::Uncertain };
        state.is_abandoned = true;
        for (path, is_folder) in state.names.values() {
            remove(path, *is_folder);
        }
        match (&state.published, gate) {
            (Some(path), _) => Abandoned::Published(path.clone()),
            (None, Some(_)) => Abandoned::Unchanged,
            (None, None) => Abandoned::Uncertain,
        }
    }
}

/// Tries to take a lock until `until`: a process that is ending cannot wait for threads that may never
/// release it.
fn within<G>(until: Instant, lock: impl Fn() -> Result<G, TryLockError<G>>) -> Option<G> {
    loop {
        match lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(error)) => return Some(error.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LOOK),
            Err(TryLockError::WouldBlock) => return None,
        }
    }
}

/// Removes a name. Failures cannot be reported: the next build removes the file.
fn remove(path: &Path, is_folder: bool) {
    if !is_folder {
        let _ = fs::remove_file(path);
        return;
    }
    for _ in 0..ATTEMPTS {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn registry() -> &'static Registry {
        // All stay reachable, so that a sanitizer reports no leak.
        static ALL: Mutex<Vec<&Registry>> = Mutex::new(Vec::new());
        let made: &'static Registry = Box::leak(Box::new(Registry::new()));
        ALL.lock().expect("no panic").push(made);
        made
    }

    fn made(registry: &'static Registry, path: &Path) -> io::Result<(PathBuf, Option<Token>)> {
        registry.make(|| fs::write(path, "").map(|()| path.to_owned()), |path| Some(path.clone()))
    }

    #[test]
    fn what_is_registered_goes_and_nothing_comes_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let [kept, temp, late, target] =
            ["kept", "temp", "late", "target"].map(|name| folder.path().join(name));
        let inside = folder.path().join("inside");
        let registry = registry();
        drop(made(registry, &kept).unwrap());
        let _temp = made(registry, &temp).unwrap();
        fs::create_dir(&inside).unwrap();
        fs::write(inside.join("file"), "").unwrap();
        let _inside = registry.register(&inside, true);
        registry.publish(&inside.join("file"), || Ok(())).unwrap();
        assert_eq!(registry.abandon(), Abandoned::Unchanged);
        assert!(kept.exists() && !temp.exists() && !inside.exists());
        assert!(made(registry, &late).is_err() && !late.exists());
        assert!(registry.publish(&target, || fs::write(&target, "")).is_err() && !target.exists());
        // Made without asking the registry first.
        fs::write(&late, "").unwrap();
        let _late = registry.register(&late, false);
        assert!(!late.exists());
        assert_eq!(registry.abandon(), Abandoned::Unchanged);
    }

    #[test]
    fn what_is_published_is_said_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (temp, target) = (folder.path().join("temp"), folder.path().join("target"));
        let registry = registry();
        let (_, token) = made(registry, &temp).unwrap();
        registry.publish(&target, || fs::rename(&temp, &target)).unwrap();
        drop(token);
        assert_eq!(registry.abandon(), Abandoned::Published(target.clone()));
        assert!(target.exists());
        let failed = self::registry();
        assert!(failed.publish(&target, || Err::<(), _>(ending())).is_err());
        assert_eq!(failed.abandon(), Abandoned::Unchanged);
    }

    #[test]
    fn a_publication_that_hangs_is_not_waited_for() {
        let registry = registry();
        let (started, is_started) = mpsc::channel();
        let (done, is_done) = mpsc::channel::<()>();
        let hangs = std::thread::spawn(move || {
            registry.publish(Path::new("/target"), || {
                started.send(()).unwrap();
                is_done.recv().map_err(io::Error::other)
            })
        });
        is_started.recv().unwrap();
        assert_eq!(registry.abandon(), Abandoned::Uncertain);
        done.send(()).unwrap();
        hangs.join().unwrap().unwrap();
        assert_eq!(registry.abandon(), Abandoned::Published("/target".into()));
    }
}
