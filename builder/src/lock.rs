//! How one builder at a time gets a name: a lock file that its holder removes.
//!
//! The file is locked as the kernel locks files, so that a killed holder holds nothing; its name is removed by its
//! holder while it is locked. Who opened the file before it was removed and locks it afterwards holds a file that
//! nobody else will ever look at: so the name is looked at again after locking, and if it leads elsewhere all begins
//! anew. Who holds the lock writes its name into the file, for those who find it.
//!
//! `tests/tests/schedules.rs` runs this text under a model checker.

use std::io;

/// What the protocol needs of a file system: one name, and the files that stand under it one after the other.
pub(crate) trait LockName {
    /// An open file; closing it gives its lock back.
    type File;

    /// Opens the file under the name, or makes one.
    fn open(&self) -> io::Result<Self::File>;
    /// Locks a file, if nobody else has; `None` if nobody can lock a file here.
    fn try_lock(&self, file: &Self::File) -> io::Result<Option<bool>>;
    /// Whether the name leads to this file now.
    fn leads_to(&self, file: &Self::File) -> io::Result<bool>;
    /// Who has written its name into the file; empty if nobody has.
    fn holder(&self, file: &Self::File) -> io::Result<String>;
    /// Writes a name into the file.
    fn set_holder(&self, file: &Self::File, holder: &str) -> io::Result<()>;
    /// Removes the name, whatever it leads to.
    fn remove(&self);
    /// Waits a moment for a holder to write its name; false when that has been long enough.
    fn wait(&self) -> bool;
}

/// What came of it.
pub(crate) enum Taken<F> {
    /// Ours, until the file is closed, before which the name is to be removed.
    Held(F),
    /// Held by the one of this name.
    Busy(String),
    /// By nobody: no file can be locked here.
    Unknown,
}

/// How often a lock that somebody has is looked at anew: who only looks for strays has it for a moment.
const LOOKS: usize = 3;
/// Attempts at a lock file that others keep removing between our open and our lock.
const ATTEMPTS: usize = 100;

/// Takes the lock, if nobody has it.
pub(crate) fn take<N: LockName>(name: &N, holder: &str) -> io::Result<Taken<N::File>> {
    let (mut attempts, mut looks) = (0, 0);
    while attempts < ATTEMPTS {
        let file = name.open()?;
        let is_locked = name.try_lock(&file).inspect_err(|_| {
            // What we have made should not stay; but only who holds the lock may remove the name.
            if matches!((name.try_lock(&file), name.leads_to(&file)), (Ok(Some(true)), Ok(true))) {
                name.remove();
            }
        })?;
        let Some(is_locked) = is_locked else {
            // One who can lock, from another machine perhaps, has written its name.
            if matches!((name.holder(&file), name.leads_to(&file)), (Ok(other), Ok(true)) if other.is_empty())
            {
                name.remove();
            }
            return Ok(Taken::Unknown);
        };
        if !is_locked {
            let other = name.holder(&file)?;
            looks += 1;
            // Whoever took the lock a moment ago has yet to write its name; one that stands there may be that of a
            // dead holder, whose file somebody is looking at.
            if (other.is_empty() || looks < LOOKS) && name.wait() {
                continue;
            }
            return Ok(Taken::Busy(other));
        }
        attempts += 1;
        let is_ours = name.leads_to(&file).inspect_err(|_| {
            if matches!(name.leads_to(&file), Ok(true)) {
                name.remove();
            }
        })?;
        if !is_ours {
            continue;
        }
        name.set_holder(&file, holder).inspect_err(|_| name.remove())?;
        return Ok(Taken::Held(file));
    }
    Err(io::Error::other("the lock file keeps disappearing: try again"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A name that others have, or that leads nowhere; it counts how often it is opened and waited for.
    struct Contested {
        is_locked: bool,
        holder: &'static str,
        waits: usize,
        opened: Cell<usize>,
        waited: Cell<usize>,
    }

    impl LockName for Contested {
        type File = ();
        fn open(&self) -> io::Result<()> {
            self.opened.set(self.opened.get() + 1);
            assert!(self.opened.get() <= 1000, "for ever");
            Ok(())
        }
        fn try_lock(&self, (): &()) -> io::Result<Option<bool>> {
            Ok(Some(!self.is_locked))
        }
        fn leads_to(&self, (): &()) -> io::Result<bool> {
            Ok(false)
        }
        fn holder(&self, (): &()) -> io::Result<String> {
            Ok(self.holder.to_owned())
        }
        fn set_holder(&self, (): &(), _: &str) -> io::Result<()> {
            unreachable!("nobody gets it")
        }
        fn remove(&self) {
            unreachable!("it is not ours")
        }
        fn wait(&self) -> bool {
            self.waited.set(self.waited.get() + 1);
            self.waited.get() <= self.waits
        }
    }

    /// What comes of it, and how often it was opened and waited for.
    fn taken(is_locked: bool, holder: &'static str, waits: usize) -> (Option<String>, usize, usize) {
        let name = Contested { is_locked, holder, waits, opened: Cell::default(), waited: Cell::default() };
        let busy = match take(&name, "us") {
            Ok(Taken::Busy(other)) => Some(other),
            Ok(Taken::Held(()) | Taken::Unknown) => unreachable!("nobody gets it"),
            Err(_) => None,
        };
        (busy, name.opened.get(), name.waited.get())
    }

    #[test]
    fn contested_locks_are_looked_at_a_few_times() {
        let them = || Some("them".to_owned());
        assert_eq!(taken(true, "them", 100), (them(), LOOKS, LOOKS - 1));
        assert_eq!(taken(true, "them", 0), (them(), 1, 1));
        // Who has not written its name yet is waited for.
        assert_eq!(taken(true, "", 50), (Some(String::new()), 51, 51));
        assert_eq!(taken(false, "", 100), (None, ATTEMPTS, 0));
    }
}
