//! Containing SIGBUS: a file that is cut short under its mapping becomes an error, not a crash.
//!
//! [`contain_sigbus`] installs a handler for the whole process. On a fault inside one of our maps it
//! puts zero pages over the rest of that map and sets a flag, which every batch checks: searches
//! accept any bytes, so they run on harmlessly until then. A fault anywhere else goes to whoever
//! had the signal before. The handler only loads and stores atomics and calls `mmap`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Maps that can be watched at a time; more are mapped all the same, but not contained.
const SLOTS: usize = 256;

struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    lost: AtomicBool,
}

static REGISTRY: [Slot; SLOTS] =
    [const { Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0), lost: AtomicBool::new(false) } };
        SLOTS];

/// A registered map. Gives its place back when dropped, which must be before the map is unmapped.
pub(crate) struct Watch(Option<usize>);

impl Watch {
    /// Registers `length` bytes from `start`.
    pub(crate) fn new(start: usize, length: usize) -> Self {
        let free = REGISTRY.iter().position(|slot| {
            slot.start.compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        });
        if let Some(free) = free {
            REGISTRY[free].lost.store(false, Ordering::Release);
            REGISTRY[free].end.store(start + length, Ordering::Release);
        }
        Self(free)
    }

    /// Whether a fault was contained in this map.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        // What was read stays before this: a fault sets the flag in the middle of a read.
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
        self.0.is_some_and(|slot| REGISTRY[slot].lost.load(Ordering::Relaxed))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            REGISTRY[slot].end.store(0, Ordering::Release);
            REGISTRY[slot].start.store(0, Ordering::Release);
        }
    }
}

/// From now on a mapped file that is truncated gives [`crate::ReadError::MappingLost`] instead of
/// killing the process. Process-wide, idempotent; does nothing where there are no signals.
pub fn contain_sigbus() {
    #[cfg(unix)]
    unix::install();
}

#[cfg(unix)]
mod unix {
    use super::{Ordering, REGISTRY};
    use std::ptr;
    use std::sync::OnceLock;

    /// What handled SIGBUS before us.
    static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

    pub(super) fn install() {
        BEFORE.get_or_init(|| {
            // SAFETY: `sigaction` is plain data for which all zeros is valid; both pointers are to
            // locals that outlive the calls; the handler keeps to async-signal-safe operations.
            unsafe {
                let mut before: libc::sigaction = std::mem::zeroed();
                let mut ours: libc::sigaction = std::mem::zeroed();
                ours.sa_sigaction = handle as *const () as usize;
                ours.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_ONSTACK;
                libc::sigemptyset(&raw mut ours.sa_mask);
                libc::sigaction(libc::SIGBUS, &raw const ours, &raw mut before);
                before
            }
        });
    }

    extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        // SAFETY: the kernel passes a valid siginfo for a handler installed with SA_SIGINFO, and
        // SIGBUS has an address.
        let address = unsafe { (*info).si_addr() } as usize;
        for slot in &REGISTRY {
            let (start, end) = (slot.start.load(Ordering::Acquire), slot.end.load(Ordering::Acquire));
            if start == 0 || address < start || address >= end {
                continue;
            }
            // SAFETY: sysconf only reads a constant of the system.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
            let from = address & !(page - 1);
            slot.lost.store(true, Ordering::Release);
            // SAFETY: `from .. end` lies in a map that we own and that is only read; it is replaced
            // by readable zero pages, which later munmap of the whole map also removes.
            let mapped = unsafe {
                libc::mmap(
                    from as *mut libc::c_void,
                    end - from,
                    libc::PROT_READ,
                    libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                )
            };
            if mapped != libc::MAP_FAILED {
                return;
            }
        }
        // Not ours: restore what was there and let the fault happen again.
        // SAFETY: plain system call; a null old-action pointer is allowed.
        unsafe {
            match BEFORE.get() {
                Some(before) => libc::sigaction(signal, before, ptr::null_mut()),
                None => {
                    let mut default: libc::sigaction = std::mem::zeroed();
                    default.sa_sigaction = libc::SIG_DFL;
                    libc::sigaction(signal, &raw const default, ptr::null_mut())
                }
            };
        }
    }
}
