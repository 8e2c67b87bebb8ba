//! Containing SIGBUS: a file that is cut short under its mapping becomes an error, not a crash.
//!
//! [`contain_sigbus`] installs a handler for the whole process. On a fault inside one of our maps it
//! puts zero pages over the rest of that map and sets a flag, which every batch checks: searches
//! accept any bytes, so they run on harmlessly until then. Every other SIGBUS goes to whoever had the
//! signal before, and ours stays. The handler only loads and stores atomics and calls `mmap`.

mod slots;

use slots::{Slot, Slots};

/// What `slots` is built on; a model checker has others.
mod sync {
    pub use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
}

/// Slots of a block.
const BLOCK: usize = 64;

/// The maps that are watched, however many there are.
static MAPS: Slots<BLOCK> = Slots::new();

/// A registered map. Gives its place back when dropped, which must be before the map is unmapped.
pub(crate) struct Watch(&'static Slot);

impl Watch {
    /// Registers `length` bytes from `start`.
    pub(crate) fn new(start: usize, length: usize) -> Self {
        Self(MAPS.take(&(start..start + length)))
    }

    /// Whether a fault was contained in this map, before what this thread has read of it.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.0.is_lost()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

/// From now on a mapped file that is truncated gives [`crate::ReadError::MappingLost`] instead of
/// killing the process. For the whole process; does nothing where there are no signals.
///
/// A SIGBUS that is not about one of our maps goes to the handler that was there before, and ours stays. Where there
/// was none, a fault ends the process as it would without us, and a signal that a process sent is ignored.
///
/// Call it again after somebody else has installed a handler that does not pass on what it does not know: ours is
/// then put before that one, and passes on to it. While ours is the one in place, a further call does nothing.
pub fn contain_sigbus() {
    #[cfg(unix)]
    unix::install();
}

#[cfg(unix)]
mod unix {
    use super::MAPS;
    use libc::{c_int, c_void, sigaction, siginfo_t};
    use std::mem::zeroed;
    use std::ptr::{null, null_mut};
    use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
    use std::sync::{Mutex, PoisonError};

    /// A handler that ours was put before, and the one that stood there when ours was put there the time before.
    /// Never freed: a signal may be on its way.
    struct Before {
        action: sigaction,
        older: *const Before,
    }

    /// The handler that ours was put before last.
    static BEFORE: AtomicPtr<Before> = AtomicPtr::new(null_mut());
    /// Bytes of a page, asked for once.
    static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);
    /// One thread at a time installs.
    static INSTALLING: Mutex<()> = Mutex::new(());

    pub(super) fn install() {
        let _one = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = handle as *const () as usize;
        // SAFETY: `sigaction` is plain data for which all zeros is valid; all pointers are to locals that outlive the
        // calls; the handler keeps to async-signal-safe operations; `sysconf` reads a constant of the system.
        unsafe {
            PAGE_BYTES.store(libc::sysconf(libc::_SC_PAGESIZE) as usize, Ordering::Relaxed);
            let mut now: sigaction = zeroed();
            libc::sigaction(libc::SIGBUS, null(), &raw mut now);
            if now.sa_sigaction == ours {
                return;
            }
            // Whom we pass on to is known before the first signal comes.
            let older = BEFORE.load(Ordering::Relaxed);
            BEFORE.store(Box::into_raw(Box::new(Before { action: now, older })), Ordering::Release);
            let mut action: sigaction = zeroed();
            action.sa_sigaction = ours;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &raw const action, null_mut());
        }
    }

    /// The place of the calling thread's `errno`.
    fn errno() -> *mut c_int {
        // SAFETY: the call only gives an address.
        unsafe {
            #[cfg(any(target_os = "macos", target_os = "ios", target_os = "freebsd"))]
            return libc::__error();
            #[cfg(not(any(target_os = "macos", target_os = "ios", target_os = "freebsd")))]
            return libc::__errno_location();
        }
    }

    extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: `errno` is this thread's own. The kernel passes a valid siginfo for a handler installed with
        // SA_SIGINFO; it has an address if the kernel raised the signal, which a positive code says.
        unsafe {
            let before = *errno();
            let is_fault = (*info).si_code > 0;
            if !(is_fault && contain((*info).si_addr() as usize)) {
                pass_on(signal, info, context, is_fault);
            }
            *errno() = before;
        }
    }

    /// Puts zeros over the rest of the map in which an address lies. Whether it lies in one.
    fn contain(address: usize) -> bool {
        let Some((slot, end)) = MAPS.covering(address) else { return false };
        let from = address & !(PAGE_BYTES.load(Ordering::Relaxed) - 1);
        slot.lose();
        // SAFETY: `from .. end` lies in a map that we own and that is only read: the slot was registered when it was
        // looked at, and who faults in a map keeps it from being given back. It is replaced by readable zero pages,
        // which later munmap of the whole map also removes.
        let mapped = unsafe {
            libc::mmap(
                from as *mut c_void,
                end - from,
                libc::PROT_READ,
                libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        mapped != libc::MAP_FAILED
    }

    /// Hands a signal that is not ours to the handler before ours.
    ///
    /// A handler that was installed behind ours may hand it back to us, if ours was put before it again: then it goes
    /// to the one before. That it comes back is told by a mark in the last word of its siginfo, which the kernel leaves
    /// zero.
    ///
    /// # Safety
    /// The arguments are those of a handler that was installed with SA_SIGINFO.
    unsafe fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void, is_fault: bool) {
        const WORDS: usize = size_of::<siginfo_t>() / size_of::<usize>();
        // SAFETY: the siginfo is on this thread's stack, aligned to words, and handlers may write to it; what `BEFORE`
        // leads to is never freed; handlers are called with the arguments that they were installed for.
        unsafe {
            let mark = info.cast::<*const Before>().add(WORDS - 1);
            let newest: *const Before = BEFORE.load(Ordering::Acquire);
            let mut next = newest;
            let mut node = newest;
            while !node.is_null() {
                if node == *mark {
                    next = (*node).older;
                    break;
                }
                node = (*node).older;
            }
            let Some(before) = next.as_ref() else { return end(signal, is_fault) };
            let call = before.action.sa_sigaction;
            if call == libc::SIG_DFL || call == libc::SIG_IGN {
                return end(signal, is_fault);
            }
            let marked = *mark;
            let mut there: sigaction = zeroed();
            libc::sigaction(signal, null(), &raw mut there);
            *mark = next;
            if before.action.sa_flags & libc::SA_SIGINFO != 0 {
                let call: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = std::mem::transmute(call);
                call(signal, info, context);
            } else {
                let call: extern "C" fn(c_int) = std::mem::transmute(call);
                call(signal);
            }
            *mark = marked;
            // The standard library's handler takes itself away, and so ours, where it knows nothing of the address;
            // what a process sent is no reason to. A fault comes again, and then ends the process.
            if !is_fault {
                let mut now: sigaction = zeroed();
                libc::sigaction(signal, null(), &raw mut now);
                if now.sa_sigaction == libc::SIG_DFL {
                    libc::sigaction(signal, &raw const there, null_mut());
                }
            }
        }
    }

    /// What happens where nobody else handles the signal: a fault ends the process, as the kernel ends it also where
    /// the signal is ignored; what a process sent is ignored.
    fn end(signal: c_int, is_fault: bool) {
        if !is_fault {
            return;
        }
        // SAFETY: plain system calls; the struct is a local for which all zeros is valid.
        unsafe {
            let mut default: sigaction = zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(signal, &raw const default, null_mut());
            // Not blocked while ours runs (SA_NODEFER). Not every fault happens again.
            libc::raise(signal);
        }
    }
}
