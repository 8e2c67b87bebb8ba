//! Stores that bypass the caches. Without them the same bytes are written, only more slowly.

use crate::pack::Tuple;
use zerocopy::IntoBytes;

/// Bytes of a line of memory.
const LINE_BYTES: usize = 64;

/// Returns the number of `T` between the start of a line of memory and the start of the slice; 0 if that is
/// not a whole number.
pub(crate) fn place_in_line<T>(slice: &[T]) -> usize {
    let bytes = slice.as_ptr() as usize % LINE_BYTES;
    if bytes.is_multiple_of(size_of::<T>()) { bytes / size_of::<T>() } else { 0 }
}

/// Copies a whole line of memory past the caches: the line is not read before it is overwritten, which saves
/// a third of the traffic of a scatter. Returns `false` and does nothing if the tuples have padding, the
/// slices are not a line long, `to` is not aligned to a line, or there is no such instruction.
///
/// Call [`stream_fence`] before other threads read the result.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn stream_line<W, B>(from: &[Tuple<W, B>], to: &mut [Tuple<W, B>]) -> bool
where
    W: Copy + IntoBytes,
    B: Copy + IntoBytes,
{
    use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    let is_dense = const { size_of::<W>() + size_of::<B>() == size_of::<Tuple<W, B>>() };
    if !is_dense {
        return false;
    }
    if size_of_val(from) != LINE_BYTES || size_of_val(to) != LINE_BYTES {
        return false;
    }
    let (source, line) = (from.as_ptr().cast::<__m128i>(), to.as_mut_ptr().cast::<__m128i>());
    if !(line as usize).is_multiple_of(LINE_BYTES) {
        return false;
    }
    for part in 0..LINE_BYTES / size_of::<__m128i>() {
        // SAFETY: both slices were checked to be 64 bytes long, and do not overlap, since one is borrowed
        // exclusively. The load needs no alignment; that of the store was just checked. SSE2 is part of
        // x86-64. A tuple is copied bit by bit, which `Copy` allows. All its bytes are initialised:
        // `IntoBytes` guarantees that of both fields, and the sizes compared above leave no padding.
        unsafe { _mm_stream_si128(line.add(part), _mm_loadu_si128(source.add(part))) };
    }
    true
}

/// Makes streamed lines visible to other threads, once they synchronise with this one.
#[cfg(target_arch = "x86_64")]
pub(crate) fn stream_fence() {
    // SAFETY: SSE is part of x86-64; a fence touches no memory.
    unsafe { core::arch::x86_64::_mm_sfence() };
}

/// Does nothing and returns `false`: this processor has no such instruction.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn stream_line<W, B>(_from: &[Tuple<W, B>], _to: &mut [Tuple<W, B>]) -> bool
where
    W: Copy + IntoBytes,
    B: Copy + IntoBytes,
{
    false
}

/// Does nothing: nothing was streamed.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn stream_fence() {}
