//! The lock file protocol: one builder at a time per target.
//!
//! The holder locks the file by the kernel's file locks, so a killed holder holds nothing. It removes the
//! name while the file is locked, and writes its own name into the file, for those who find it locked.
//!
//! Another process may have opened the file before the removal and lock it afterwards: it then holds a file
//! that nobody else will find. So a builder looks up the name again after locking, and starts over if it
//! leads elsewhere.
//!
//! `tests/tests/schedules.rs` runs this text under a model checker.

use std::io;

/// The operations of a file system that the protocol needs: one name, and the files that have it one after
/// the other.
pub(crate) trait LockName {
    /// An open file; closing it releases its lock.
    type File;

    /// Opens the file of this name, or creates one.
    fn open(&self) -> io::Result<Self::File>;
    /// Locks a file; false if somebody else holds the lock, `None` if files cannot be locked here.
    fn try_lock(&self, file: &Self::File) -> io::Result<Option<bool>>;
    /// Returns true if the name still leads to this file.
    fn leads_to(&self, file: &Self::File) -> io::Result<bool>;
    /// Returns the holder's name as written in the file; empty if there is none.
    fn holder(&self, file: &Self::File) -> io::Result<String>;
    /// Writes a name into the file.
    fn set_holder(&self, file: &Self::File, holder: &str) -> io::Result<()>;
    /// Removes the name, whatever it leads to.
    fn remove(&self);
    /// Waits a moment for a holder to write its name; returns false once the wait has been long enough.
    fn wait(&self) -> bool;
}

/// Result of [`take`].
pub(crate) enum Taken<F> {
    /// Ours until the file is closed. The holder removes the name before that.
    Held(F),
    /// Held by the process of this name.
    Busy(String),
    /// Held by nobody: files cannot be locked here.
    Unknown,
}

/// Number of looks at a lock that is held: a process that only looks for strays holds it for a moment.
const LOOKS: usize = 3;
/// Attempts at a lock file that others keep removing between our open and our lock.
const ATTEMPTS: usize = 100;

/// Takes the lock if nobody holds it.
///
/// # Errors
/// The errors of the operations of `name`; also if the lock file disappears [`ATTEMPTS`] times.
pub(crate) fn take<N: LockName>(name: &N, holder: &str) -> io::Result<Taken<N::File>> {
    let (mut attempts, mut looks) = (0, 0);
    while attempts < ATTEMPTS {
        let file = name.open()?;
        let is_locked = name.try_lock(&file).inspect_err(|_| {
            // A file that we created should not stay, but only the holder of the lock may remove the name.
            if matches!((name.try_lock(&file), name.leads_to(&file)), (Ok(Some(true)), Ok(true))) {
                name.remove();
            }
        })?;
        let Some(is_locked) = is_locked else {
            // A process that can lock, perhaps on another machine, has written its name.
            if matches!((name.holder(&file), name.leads_to(&file)), (Ok(other), Ok(true)) if other.is_empty())
            {
                name.remove();
            }
            return Ok(Taken::Unknown);
        };
        if !is_locked {
            let other = name.holder(&file)?;
            looks += 1;
            // A holder that took the lock a moment ago has yet to write its name. A name found in the file
            // may be that of a dead holder, if somebody is only looking at the file.
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

    /// A name that others hold, or that leads nowhere; it counts calls of open and wait.
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

    /// Returns the result, and the numbers of opens and waits.
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
        // A holder that has not written its name yet is waited for.
        assert_eq!(taken(true, "", 50), (Some(String::new()), 51, 51));
        assert_eq!(taken(false, "", 100), (None, ATTEMPTS, 0));
    }
}
