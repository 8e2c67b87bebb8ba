//! A prefetch hint. The only unsafe line of the limit measurement's loops.

/// Prefetches the cache line at the start of `line`; does nothing on a CPU without such an instruction.
#[inline(always)]
pub(crate) fn prefetch<T>(line: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing as far as the program can see and never faults, whatever the
    // address; this one comes from a reference. SSE is part of every x86_64.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(line).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}
