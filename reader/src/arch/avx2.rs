//! AVX2: two vectors of 32 bytes per line. Unsigned compares of 8, 16 and 32 bits use `max` (`max(k, q) == k`
//! means `k >= q`); those of 64 bits flip the sign bit.

use super::avx2_steps;
use super::lanes::{Arrays, Lanes};
use super::{Isa, Simd};
use pleach_format::grid::Segment;
use pleach_format::line::Line;
use std::arch::x86_64::*;

/// AVX2 and POPCNT.
#[derive(Clone, Copy)]
pub struct Avx2(());

/// Returns the bits of the first `n` 16-bit lanes after `packs_epi16`, which works within 128-bit halves.
const fn packed_lanes(n: usize) -> u32 {
    let mut mask = 0;
    let mut lane = 0;
    while lane < n {
        let within = lane % 16;
        mask |= 1u32 << (within / 8 * 16 + lane / 16 * 8 + within % 8);
        lane += 1;
    }
    mask
}

/// Results of [`packed_lanes`] for `n` from 0 to 32.
static PACKED_LANES: [u32; 33] = {
    let mut masks = [0; 33];
    let mut n = 0;
    while n <= 32 {
        masks[n] = packed_lanes(n);
        n += 1;
    }
    masks
};

/// Loads the 32 bytes of half `HALF` (0 or 1) of a line.
///
/// # Safety
/// The caller guarantees AVX.
#[inline(always)]
unsafe fn half<const HALF: usize>(line: &Line) -> __m256i {
    const { assert!(HALF < 2) };
    // SAFETY: the caller guarantees AVX; bytes `32 * HALF .. 32 * HALF + 32` are inside the line, and the
    // load needs no alignment.
    unsafe { _mm256_loadu_si256(line.as_ptr().add(32 * HALF).cast()) }
}

/// Returns the highest bit of each 32-bit lane.
///
/// # Safety
/// The caller guarantees AVX.
#[inline(always)]
unsafe fn bits32(lanes: __m256i) -> u32 {
    // SAFETY: the caller guarantees AVX.
    unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(lanes)).cast_unsigned() }
}

/// Returns the highest bit of each 64-bit lane.
///
/// # Safety
/// The caller guarantees AVX.
#[inline(always)]
unsafe fn bits64(lanes: __m256i) -> u32 {
    // SAFETY: the caller guarantees AVX.
    unsafe { _mm256_movemask_pd(_mm256_castsi256_pd(lanes)).cast_unsigned() }
}

impl Simd for Avx2 {
    fn detect() -> Option<Self> {
        Isa::Avx2.is_available().then_some(Self(()))
    }
    #[inline(always)]
    unsafe fn below8(line: &Line, n: usize, query: u8) -> usize {
        // SAFETY: the caller guarantees AVX2, by the contract of `Simd`; no memory but the line is read.
        unsafe {
            let wanted = _mm256_set1_epi8(query.cast_signed());
            let (low, high) = (half::<0>(line), half::<1>(line));
            let low = _mm256_cmpeq_epi8(_mm256_max_epu8(low, wanted), low);
            let high = _mm256_cmpeq_epi8(_mm256_max_epu8(high, wanted), high);
            let not_below = u64::from(_mm256_movemask_epi8(low).cast_unsigned())
                | u64::from(_mm256_movemask_epi8(high).cast_unsigned()) << 32;
            (!not_below & ((1u64 << n) - 1)).count_ones() as usize
        }
    }

    #[inline(always)]
    unsafe fn below16(line: &Line, n: usize, query: u16) -> usize {
        // SAFETY: the caller guarantees AVX2, by the contract of `Simd`; no memory but the line is read.
        unsafe {
            let wanted = _mm256_set1_epi16(query.cast_signed());
            let (low, high) = (half::<0>(line), half::<1>(line));
            let low = _mm256_cmpeq_epi16(_mm256_max_epu16(low, wanted), low);
            let high = _mm256_cmpeq_epi16(_mm256_max_epu16(high, wanted), high);
            let not_below = _mm256_movemask_epi8(_mm256_packs_epi16(low, high)).cast_unsigned();
            (!not_below & PACKED_LANES[n]).count_ones() as usize
        }
    }

    #[inline(always)]
    unsafe fn below32(line: &Line, n: usize, query: u32) -> usize {
        // SAFETY: the caller guarantees AVX2, by the contract of `Simd`; no memory but the line is read.
        unsafe {
            let wanted = _mm256_set1_epi32(query.cast_signed());
            if n == 16 {
                let (low, high) = (half::<0>(line), half::<1>(line));
                let low = _mm256_cmpeq_epi32(_mm256_max_epu32(low, wanted), low);
                let high = _mm256_cmpeq_epi32(_mm256_max_epu32(high, wanted), high);
                // Two bits per key, in an order that does not matter.
                let not_below = _mm256_movemask_epi8(_mm256_packs_epi32(low, high)).cast_unsigned();
                return 16 - not_below.count_ones() as usize / 2;
            }
            let keys = half::<0>(line);
            let mut not_below = bits32(_mm256_cmpeq_epi32(_mm256_max_epu32(keys, wanted), keys));
            if n > 8 {
                let keys = half::<1>(line);
                not_below |= bits32(_mm256_cmpeq_epi32(_mm256_max_epu32(keys, wanted), keys)) << 8;
            }
            (!not_below & ((1u32 << n) - 1)).count_ones() as usize
        }
    }

    #[inline(always)]
    unsafe fn below64(line: &Line, n: usize, query: u64) -> usize {
        // SAFETY: the caller guarantees AVX2, by the contract of `Simd`; no memory but the line is read.
        unsafe {
            let sign = _mm256_set1_epi64x(i64::MIN);
            let wanted = _mm256_set1_epi64x((query ^ (1 << 63)).cast_signed());
            let mut mask = bits64(_mm256_cmpgt_epi64(wanted, _mm256_xor_si256(half::<0>(line), sign)));
            if n > 4 {
                mask |= bits64(_mm256_cmpgt_epi64(wanted, _mm256_xor_si256(half::<1>(line), sign))) << 4;
            }
            (mask & ((1u32 << n) - 1)).count_ones() as usize
        }
    }

    #[inline(always)]
    unsafe fn equal32(line: &Line, n: usize, query: u32) -> u32 {
        // SAFETY: the caller guarantees AVX2, by the contract of `Simd`; no memory but the line is read.
        unsafe {
            let wanted = _mm256_set1_epi32(query.cast_signed());
            let mut bits = bits32(_mm256_cmpeq_epi32(half::<0>(line), wanted));
            if n > 8 {
                bits |= bits32(_mm256_cmpeq_epi32(half::<1>(line), wanted)) << 8;
            }
            bits & ((1u32 << n) - 1)
        }
    }

    #[inline(always)]
    unsafe fn equal64(line: &Line, n: usize, query: u64) -> u32 {
        // SAFETY: the caller guarantees AVX2, by the contract of `Simd`; no memory but the line is read.
        unsafe {
            let wanted = _mm256_set1_epi64x(query.cast_signed());
            let mut bits = bits64(_mm256_cmpeq_epi64(half::<0>(line), wanted));
            if n > 4 {
                bits |= bits64(_mm256_cmpeq_epi64(half::<1>(line), wanted)) << 4;
            }
            bits & ((1u32 << n) - 1)
        }
    }

    // A second compare of half a line costs less than a branch that is hard to predict.
    const PAIRS: bool = true;

    #[inline(always)]
    unsafe fn root<const ONE: bool>(arrays: &Arrays, root: Segment, words: &Lanes, places: &mut Lanes) {
        // SAFETY: the caller guarantees AVX2, by the contract of `Simd`.
        unsafe { avx2_steps::root::<ONE>(arrays, root, words, places) }
    }

    #[inline(always)]
    unsafe fn step(arrays: &Arrays, words: &Lanes, places: &mut Lanes) {
        // SAFETY: the caller guarantees AVX2 and the segments, by the contract of `Simd`.
        unsafe { avx2_steps::step(arrays, words, places) }
    }

    #[inline(always)]
    unsafe fn lines<const ONE: bool>(arrays: &Arrays, places: &mut Lanes) {
        // SAFETY: the caller guarantees AVX2 and the units, by the contract of `Simd`.
        unsafe { avx2_steps::lines::<ONE>(arrays, places) }
    }

    #[inline(always)]
    unsafe fn pairs(last_line: u32, places: &mut Lanes, nexts: &mut Lanes) {
        // SAFETY: the caller guarantees AVX2, by the contract of `Simd`.
        unsafe { avx2_steps::pairs(last_line, places, nexts) }
    }
}
