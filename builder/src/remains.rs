//! What must not remain if the process ends early: names of temporary files, lock files and temporary folders.
//!
//! Who makes such a name has it in the registry until it is gone or has become what it was made for. A process that
//! must end while its threads are at work (they wait for a pipe that nobody writes, memory is used up) calls
//! [`abandon`], which removes all these names, and ends. From then on nothing is made and nothing is published. Names
//! are made ([`make`]) and files published ([`publish`]) while the gate is held shared; [`abandon`] closes it. So a
//! name is in the registry or was never made, and what is said of a file that is being published is true.
//!
//! Nobody has to call [`abandon`]: without it dropping a [`Token`] forgets a name, and that is all.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::{Duration, Instant};

/// How long [`abandon`] waits for a name that is being made or a file that is being published.
const PATIENCE: Duration = Duration::from_millis(200);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(1);
/// How often a folder is removed again in which others still make files.
const ATTEMPTS: usize = 20;

/// What came of [`abandon`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Abandoned {
    /// No file was published: what was there before is still there.
    Unchanged,
    /// This file has its new contents; if there were several, it is the last of them.
    Published(PathBuf),
    /// A file was being published, and the system does not say whether it has its name.
    Uncertain,
}

#[derive(Default)]
struct State {
    /// Names and whether they are folders, by number.
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

/// A name that is in the registry until this is dropped.
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

/// Makes something that has a name, and has that name in the registry.
///
/// # Errors
/// Those of `make`, or that the process is ending.
pub fn make<T>(
    make: impl FnOnce() -> io::Result<T>,
    name: impl FnOnce(&T) -> Option<PathBuf>,
) -> io::Result<(T, Option<Token>)> {
    REGISTRY.make(make, name)
}

/// Has the name of a file that was made a moment ago in the registry. Prefer [`make`].
pub fn register(path: &Path) -> Token {
    REGISTRY.register(path, false)
}

/// Has the name of a folder in the registry, which goes with all that is in it.
pub fn register_folder(path: &Path) -> Token {
    REGISTRY.register(path, true)
}

/// Gives a file its name: `rename` is called, unless the process is ending.
///
/// # Errors
/// Those of `rename`, or that the process is ending.
pub fn publish<T>(target: &Path, rename: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    REGISTRY.publish(target, rename)
}

/// Removes all names that are registered, and forbids to make or publish any. For a process that is about to end: call
/// it last. It waits a moment at most, whatever the other threads hold, and needs next to no memory.
pub fn abandon() -> Abandoned {
    REGISTRY.abandon()
}

fn ending() -> io::Error {
    io::Error::other("the process is ending")
}

impl Registry {
    const fn new() -> Self {
        let state = State { names: BTreeMap::new(), next: 0, is_abandoned: false, published: None };
        Self { gate: RwLock::new(()), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make<T>(
        &'static self,
        make: impl FnOnce() -> io::Result<T>,
        name: impl FnOnce(&T) -> Option<PathBuf>,
    ) -> io::Result<(T, Option<Token>)> {
        let _gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
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
        let _gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        if self.state().is_abandoned {
            return Err(ending());
        }
        let done = rename()?;
        let mut state = self.state();
        // What goes with a folder that goes was never there.
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

/// Tries to get a lock for a while: who is ending cannot wait for threads that may never give it back.
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

/// Removes a name. What cannot be removed cannot be told either: the next build sweeps it.
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
        Box::leak(Box::new(Registry::new()))
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
        // Made by somebody who did not ask.
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
