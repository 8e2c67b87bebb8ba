//! Tasks that run in parallel and write their results one after the other, in one pass.
//!
//! A thread takes the next task and works into a buffer of its own, which stays in its cache; then the size
//! of the result is known. Its position follows from the tasks before: each task waits until the one before
//! it publishes its end, publishes its own end, and copies afterwards. Tasks are taken in order and are
//! alike, so that the wait is short. (On a GPU this is called decoupled look-back.)
//!
//! So the output is written once, without a count before and without gaps to close after it. As it is written
//! from a buffer, the stores can bypass the cache, which saves reading what is overwritten.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use pleach_format::cpu;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Outputs of at least this size bypass the cache: they do not fit into it.
const STREAM_BYTES: usize = 8 << 20;

/// The task whose turn it is, and the position of its results.
struct Turn {
    task: AtomicUsize,
    offset: AtomicU64,
    failed: AtomicBool,
}

/// Signals the other threads that this one panics; otherwise they would wait forever.
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
/// `work` fills the thread's buffer and returns a count. `place` gets the buffer and the sum of all earlier
/// counts; the threads call it concurrently, and places never overlap. Neither may use the pool: a thread
/// that waits for the task before it must not have that task's work below it on its stack.
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
    pleach_builder::pool::ready();
    let threads = rayon::current_num_threads().min(tasks);
    if threads <= 1 {
        thread();
    } else {
        rayon::scope(|scope| (0..threads).for_each(|_| scope.spawn(|_| thread())));
    }
    turn.offset.load(Ordering::Relaxed)
}

/// A column that several threads write to, each at places of its own.
pub(crate) struct Target<T> {
    start: *mut T,
    capacity: usize,
    stream: bool,
}

// SAFETY: it is an address; the callers of `write` guarantee that no two threads write to one place.
unsafe impl<T: Send> Sync for Target<T> {}
// SAFETY: it is an address, and `T` may be sent; the callers of `write` guarantee places of their own.
unsafe impl<T: Send> Send for Target<T> {}

impl<T: Copy> Target<T> {
    /// Reserves room for `capacity` elements in a vector, which is empty afterwards. The vector must not be
    /// touched while this target is in use.
    pub(crate) fn new(vector: &mut Vec<T>, capacity: usize) -> Self {
        vector.clear();
        vector.reserve(capacity);
        let stream = capacity.saturating_mul(size_of::<T>()) >= STREAM_BYTES;
        Self { start: vector.as_mut_ptr(), capacity, stream }
    }

    /// Copies elements to place `at`, if they end within the capacity.
    ///
    /// # Safety
    /// The vector has not moved or been touched since [`Target::new`], and no other thread writes to these
    /// places.
    pub(crate) unsafe fn write(&self, at: u64, elements: &[T]) {
        let Ok(at) = usize::try_from(at) else { return };
        if at.checked_add(elements.len()).is_none_or(|end| end > self.capacity) {
            return;
        }
        // SAFETY: the check above keeps it inside the vector's allocation; the caller guarantees that the
        // vector is still there and that no other thread writes here.
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

/// Copies bytes with stores that bypass the cache, where the CPU supports them.
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

/// Bytes per cache line.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE: usize = 64;

/// Copies lines, four stores each.
///
/// Uses assembly: elements of any type may have uninitialised bytes, which no vector type of the language can
/// hold, but which a copy can.
///
/// # Safety
/// Both ranges are valid for `lines` lines and do not overlap; `to` is aligned to a line.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn lines_sse2(from: *const u8, to: *mut u8, lines: usize) {
    for at in (0..lines * LINE).step_by(LINE) {
        // SAFETY: the caller guarantees both ranges; each store takes 16 bytes at a multiple of 16; SSE is
        // part of x86-64.
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
/// Both ranges are valid for `lines` lines and do not overlap, `to` is aligned to a line, and the CPU has
/// [`cpu::avx512f`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f")]
unsafe fn lines_avx512(from: *const u8, to: *mut u8, lines: usize) {
    for at in (0..lines * LINE).step_by(LINE) {
        // SAFETY: the caller guarantees both ranges and AVX-512 F; the store takes 64 bytes at a multiple of
        // 64.
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
    // SAFETY: the caller guarantees that both ranges are valid and do not overlap.
    unsafe { to.copy_from_nonoverlapping(from, bytes) }
}

/// Makes stores that bypassed the cache visible to threads that wait for this one.
fn fence() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: SSE is part of x86-64; a fence touches no memory.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
