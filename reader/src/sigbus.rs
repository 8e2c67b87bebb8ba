//! Containing SIGBUS: truncation of a mapped file becomes an error instead of a crash.
//!
//! [`contain_sigbus`] installs a handler for the whole process. On a fault inside one of our mappings it maps
//! zero pages over the rest of that mapping and sets a flag, which every batch checks. Searches accept any
//! bytes, so until then they run on the zeros without harm. Any other SIGBUS is passed to the previous
//! handler, and ours stays installed. The handler only loads and stores atomics and makes system calls.

mod slots;
mod sync;

use slots::{Slot, Slots};

/// Slots per block.
const BLOCK: usize = 64;

/// All mappings that are watched; their number is not limited.
static MAPS: Slots<BLOCK> = Slots::new();

/// A registered mapping. Dropping it frees its slot, and must come before the unmapping.
pub(crate) struct Watch(&'static Slot);

impl Watch {
    /// Registers `length` bytes from `start`.
    pub(crate) fn new(start: usize, length: usize) -> Self {
        Self(MAPS.take(&(start..start + length)))
    }

    /// Returns true if a fault was contained in this mapping. False guarantees that all earlier reads of this
    /// thread got bytes of the file.
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

/// Makes truncation of a mapped file an error, [`crate::ReadError::MappingLost`], instead of the end of the
/// process. Applies to the whole process; does nothing on systems without signals.
///
/// A SIGBUS that is not about one of our mappings is passed to the previous handler, and ours stays
/// installed. If there was none, a fault ends the process as it would without ours, and a signal that a
/// process sent is ignored.
///
/// Call it again after another handler was installed that does not pass on unknown signals: ours is then put
/// before that one, and passes on to it. While ours is the installed handler, a further call does nothing.
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

    /// A handler that ours was put before, and the handler from the previous time ours was installed. Never
    /// freed, because a signal may be in progress.
    struct Before {
        action: sigaction,
        older: *const Before,
    }

    /// The handler that ours was last put before.
    static BEFORE: AtomicPtr<Before> = AtomicPtr::new(null_mut());
    /// Bytes per page, set when the handler is installed.
    static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);
    /// Held while the handler is installed, by one thread at a time.
    static INSTALLING: Mutex<()> = Mutex::new(());

    pub(super) fn install() {
        let _one = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = handle as *const () as usize;
        // SAFETY: `sigaction` is plain data, for which all zeros are valid. All pointers are to locals that
        // outlive the calls. The handler only does async-signal-safe operations. `sysconf` reads a constant
        // of the system.
        unsafe {
            PAGE_BYTES.store(libc::sysconf(libc::_SC_PAGESIZE) as usize, Ordering::Relaxed);
            let mut now: sigaction = zeroed();
            libc::sigaction(libc::SIGBUS, null(), &raw mut now);
            if now.sa_sigaction == ours {
                return;
            }
            // The handler to pass on to must be set before the first signal comes.
            let older = BEFORE.load(Ordering::Relaxed);
            BEFORE.store(Box::into_raw(Box::new(Before { action: now, older })), Ordering::Release);
            let mut action: sigaction = zeroed();
            action.sa_sigaction = ours;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &raw const action, null_mut());
        }
    }

    /// Returns the address of the calling thread's `errno`.
    fn errno() -> *mut c_int {
        // SAFETY: the C library guarantees that this call has no preconditions and returns a valid address.
        unsafe {
            #[cfg(any(target_os = "macos", target_os = "ios", target_os = "freebsd"))]
            return libc::__error();
            #[cfg(not(any(target_os = "macos", target_os = "ios", target_os = "freebsd")))]
            return libc::__errno_location();
        }
    }

    extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the C library guarantees that `errno` belongs to this thread. The kernel guarantees a valid
        // siginfo for a handler installed with SA_SIGINFO; it has an address if the kernel raised the signal,
        // which a positive code indicates.
        unsafe {
            let before = *errno();
            let is_fault = (*info).si_code > 0;
            if !(is_fault && contain((*info).si_addr() as usize)) {
                pass_on(signal, info, context, is_fault);
            }
            *errno() = before;
        }
    }

    /// Maps zeros over the rest of the mapping that contains `address`. Returns true if there is such a
    /// mapping and it could be replaced.
    fn contain(address: usize) -> bool {
        let Some((slot, end)) = MAPS.covering(address) else { return false };
        let from = address & !(PAGE_BYTES.load(Ordering::Relaxed) - 1);
        slot.lose();
        // SAFETY: `from .. end` is inside a mapping that we own and that is only read. The slot was
        // registered when it was found, and the thread that faults in a mapping keeps it from being unmapped.
        // It is replaced by readable zero pages, which a later munmap of the whole mapping also removes.
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

    /// Passes a signal that is not ours to the previous handler.
    ///
    /// A handler that was installed after ours may pass it back to us, if ours was put before it again. It
    /// then goes to the handler before that one. A mark in the last word of its siginfo, which the kernel
    /// leaves zero, shows that a signal came back.
    ///
    /// # Safety
    /// The caller guarantees the arguments of a handler that was installed with SA_SIGINFO.
    unsafe fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void, is_fault: bool) {
        const WORDS: usize = size_of::<siginfo_t>() / size_of::<usize>();
        // SAFETY: the kernel guarantees that the siginfo is on this thread's stack, aligned to words, and
        // handlers may write to it. Nodes reachable from `BEFORE` are never freed. Handlers are called with
        // the arguments that they were installed for.
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
            // The standard library's handler resets the action to the default, and so removes ours, if it
            // does not know the address. A signal that a process sent is no reason for that, so ours is
            // restored. A fault occurs again and then ends the process.
            if !is_fault {
                let mut now: sigaction = zeroed();
                libc::sigaction(signal, null(), &raw mut now);
                if now.sa_sigaction == libc::SIG_DFL {
                    libc::sigaction(signal, &raw const there, null_mut());
                }
            }
        }
    }

    /// Handles a signal that no other handler takes. A fault ends the process, as the kernel does even if the
    /// signal is ignored; a signal that a process sent is ignored.
    fn end(signal: c_int, is_fault: bool) {
        if !is_fault {
            return;
        }
        // SAFETY: these system calls only read the struct, a local, for which all zeros are valid.
        unsafe {
            let mut default: sigaction = zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(signal, &raw const default, null_mut());
            // The signal is not blocked while our handler runs (SA_NODEFER). Raise it: not every fault occurs
            // again.
            libc::raise(signal);
        }
    }
}
