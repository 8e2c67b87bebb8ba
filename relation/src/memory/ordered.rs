//! Tasks that run in parallel and write their results one behind the other, in one pass.
//!
//! A thread takes the next task, works into a buffer of its own that stays in its cache, and then knows how much there
//! is. Where it goes follows from the tasks before: each waits for the one before it to say where it ends, says where
//! it ends itself, and copies afterwards. Tasks are taken in order and are alike, so that the wait is short. (On a GPU
//! this is called decoupled look-back.) So the output is written once, without a count before and without gaps to
//! close after it; and as it is written from a buffer, it can go around the cache, which saves reading what is
//! overwritten.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use pleach_format::cpu;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Outputs of at least so many bytes go around the cache: they do not fit into it.
const STREAM_BYTES: usize = 8 << 20;

/// Whose turn it is, and where its results begin.
struct Turn {
    task: AtomicUsize,
    offset: AtomicU64,
    failed: AtomicBool,
}

/// Tells the others that this thread panics: they would wait for ever.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Runs tasks `0..tasks` on all threads of the current pool and returns the sum of their counts.
///
/// `work` fills the thread's buffer and returns a count; `place` gets the buffer and the sum of all earlier counts,
/// each thread for itself, so that places never overlap. Neither may use the pool: a thread that waits for the one
/// before it must not have work of that one below it.
pub(crate) fn in_order<B>(
    tasks: usize,
    buffer: impl Fn() -> B + Sync,
    work: impl Fn(usize, &mut B) -> usize + Sync,
    place: impl Fn(u64, &mut B) + Sync,
) -> u64 {
    let next = AtomicUsize::new(0);
    let turn = Turn { task: AtomicUsize::new(0), offset: AtomicU64::new(0), failed: AtomicBool::new(false) };
    let thread = || {
        let _alarm = Alarm(&turn.failed);
        let mut buffer = buffer();
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                break;
            }
            let count = work(task, &mut buffer);
            let mut waited = 0u32;
            while turn.task.load(Ordering::Acquire) != task {
                if turn.failed.load(Ordering::Relaxed) {
                    return;
                }
                waited += 1;
                if waited.is_multiple_of(1 << 10) {
                    std::thread::yield_now();
                }
                std::hint::spin_loop();
            }
            let offset = turn.offset.load(Ordering::Relaxed);
            turn.offset.store(offset + count as u64, Ordering::Relaxed);
            turn.task.store(task + 1, Ordering::Release);
            place(offset, &mut buffer);
        }
        fence();
    };
    let threads = rayon::current_num_threads().min(tasks);
    if threads <= 1 {
        thread();
    } else {
        rayon::scope(|scope| (0..threads).for_each(|_| scope.spawn(|_| thread())));
    }
    turn.offset.load(Ordering::Relaxed)
}

/// A column that threads write to, each at places of its own.
pub(crate) struct Target<T> {
    start: *mut T,
    capacity: usize,
    stream: bool,
}

// SAFETY: it is an address; who writes through it promises that no two threads write to one place.
unsafe impl<T: Send> Sync for Target<T> {}
// SAFETY: the same.
unsafe impl<T: Send> Send for Target<T> {}

impl<T: Copy> Target<T> {
    /// Makes room for `capacity` elements in a vector, which is empty afterwards. The vector must not be touched as
    /// long as this is used.
    pub(crate) fn new(vector: &mut Vec<T>, capacity: usize) -> Self {
        vector.clear();
        vector.reserve(capacity);
        let stream = capacity.saturating_mul(size_of::<T>()) >= STREAM_BYTES;
        Self { start: vector.as_mut_ptr(), capacity, stream }
    }

    /// Copies elements to place `at`, if they end within the capacity.
    ///
    /// # Safety
    /// The vector is where it was when this was made, and no other thread writes to these places.
    pub(crate) unsafe fn write(&self, at: u64, elements: &[T]) {
        let Ok(at) = usize::try_from(at) else { return };
        if at.checked_add(elements.len()).is_none_or(|end| end > self.capacity) {
            return;
        }
        // SAFETY: inside the vector's allocation, by the check above; the caller promises the rest.
        unsafe {
            let to = self.start.add(at);
            if self.stream {
                stream(elements.as_ptr().cast(), to.cast(), size_of_val(elements));
            } else {
                to.copy_from_nonoverlapping(elements.as_ptr(), elements.len());
            }
        }
    }
}

/// Copies bytes around the cache, where the CPU can.
///
/// # Safety
/// Both ranges are valid for `bytes` bytes and do not overlap.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn stream(from: *const u8, to: *mut u8, bytes: usize) {
    let head = to.align_offset(LINE).min(bytes);
    let lines = (bytes - head) / LINE;
    let tail = bytes - head - lines * LINE;
    // SAFETY: the three parts together are the ranges; in the middle `to` is aligned to a line; SSE2 is part of x86-64,
    // and AVX-512 is used where it was detected.
    unsafe {
        to.copy_from_nonoverlapping(from, head);
        let (from, to) = (from.add(head), to.add(head));
        if cpu::avx512f() {
            lines_avx512(from, to, lines);
        } else {
            lines_sse2(from, to, lines);
        }
        to.add(lines * LINE).copy_from_nonoverlapping(from.add(lines * LINE), tail);
    }
}

/// Bytes of a line of the cache.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE: usize = 64;

/// Copies lines, four stores each.
///
/// By instructions of our own: an element of any type may have bytes that are not initialised, which no vector of the
/// language can hold, and a copy can.
///
/// # Safety
/// As [`stream`], of `lines` lines; `to` is aligned to one.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn lines_sse2(from: *const u8, to: *mut u8, lines: usize) {
    for at in (0..lines * LINE).step_by(LINE) {
        // SAFETY: the contract; each store takes 16 bytes at a multiple of 16; SSE is part of x86-64.
        unsafe {
            std::arch::asm!(
                "movups {a}, [{from}]", "movups {b}, [{from} + 16]",
                "movups {c}, [{from} + 32]", "movups {d}, [{from} + 48]",
                "movntps [{to}], {a}", "movntps [{to} + 16], {b}",
                "movntps [{to} + 32], {c}", "movntps [{to} + 48], {d}",
                from = in(reg) from.add(at), to = in(reg) to.add(at),
                a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, d = out(xmm_reg) _,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// Copies lines, a store each.
///
/// # Safety
/// As [`lines_sse2`], and the CPU has [`cpu::avx512f`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f")]
unsafe fn lines_avx512(from: *const u8, to: *mut u8, lines: usize) {
    for at in (0..lines * LINE).step_by(LINE) {
        // SAFETY: the contract; the store takes 64 bytes at a multiple of 64.
        unsafe {
            std::arch::asm!(
                "vmovups {line}, [{from}]", "vmovntps [{to}], {line}",
                from = in(reg) from.add(at), to = in(reg) to.add(at), line = out(zmm_reg) _,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
unsafe fn stream(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's contract.
    unsafe { to.copy_from_nonoverlapping(from, bytes) }
}

/// What went around the cache is visible to whoever waits for this thread.
fn fence() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: SSE is part of x86-64; a fence touches no memory.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
