//! The compares that the product does not use: the number of keys of a SIMD block that are below the query.
//!
//! [`Paper`] finds it as the paper does for SSE, by a compare, a bit mask and a table of eight entries.
//! [`OneByOne`] is the reference, and what a plain binary tree does.

use pleach::internal::Simd;
use pleach_format::line::Line;

/// Keys one by one. Needs no CPU features.
#[derive(Clone, Copy)]
pub(super) struct OneByOne;

/// One compare of 16 bytes, for four-byte words in blocks of two levels; other blocks one by one. Needs no
/// CPU features.
#[derive(Clone, Copy)]
pub(super) struct Paper;

/// Counts the words of `B` bytes among the first `n` that are below the query.
#[inline(always)]
fn count<const B: usize, W: Ord>(line: &Line, n: usize, query: W, read: impl Fn([u8; B]) -> W) -> usize {
    let (words, _) = line.as_chunks::<B>();
    if n == 1 {
        return usize::from(words.first().is_some_and(|&word| read(word) < query));
    }
    words.iter().take(n).filter(|&&word| read(word) < query).count()
}

impl Simd for OneByOne {
    fn detect() -> Option<Self> {
        Some(Self)
    }
    #[inline(always)]
    unsafe fn below8(line: &Line, n: usize, query: u8) -> usize {
        count(line, n, query, u8::from_le_bytes)
    }
    #[inline(always)]
    unsafe fn below16(line: &Line, n: usize, query: u16) -> usize {
        count(line, n, query, u16::from_le_bytes)
    }
    #[inline(always)]
    unsafe fn below32(line: &Line, n: usize, query: u32) -> usize {
        count(line, n, query, u32::from_le_bytes)
    }
    #[inline(always)]
    unsafe fn below64(line: &Line, n: usize, query: u64) -> usize {
        count(line, n, query, u64::from_le_bytes)
    }
}

/// Children by the compares of root, left and right node. Only 0, 2, 3 and 7 occur in a sorted block; the
/// other entries keep a damaged block inside.
#[cfg(target_arch = "x86_64")]
static CHILD: [u8; 8] = [0, 1, 1, 2, 1, 2, 2, 3];

impl Simd for Paper {
    fn detect() -> Option<Self> {
        Some(Self)
    }
    #[inline(always)]
    unsafe fn below8(line: &Line, n: usize, query: u8) -> usize {
        count(line, n, query, u8::from_le_bytes)
    }
    #[inline(always)]
    unsafe fn below16(line: &Line, n: usize, query: u16) -> usize {
        count(line, n, query, u16::from_le_bytes)
    }
    #[inline(always)]
    unsafe fn below32(line: &Line, n: usize, query: u32) -> usize {
        #[cfg(target_arch = "x86_64")]
        if n == 3 {
            use std::arch::x86_64::*;
            // SAFETY: SSE2 is part of x86-64; 16 bytes are read from an array of 64. Flipping the sign of
            // both sides makes the signed compare unsigned.
            let mask = unsafe {
                let sign = _mm_set1_epi32(i32::MIN);
                let nodes = _mm_xor_si128(_mm_loadu_si128(line.as_ptr().cast()), sign);
                let wanted = _mm_set1_epi32((query ^ (1 << 31)).cast_signed());
                _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpgt_epi32(wanted, nodes)))
            };
            return usize::from(CHILD[(mask & 7) as usize]);
        }
        count(line, n, query, u32::from_le_bytes)
    }
    #[inline(always)]
    unsafe fn below64(line: &Line, n: usize, query: u64) -> usize {
        count(line, n, query, u64::from_le_bytes)
    }
}
