//! AVX-512: one load and one compare per line; compares yield bit masks directly.

use super::{Isa, Simd};
use pleach_format::line::Line;
use std::arch::x86_64::*;

/// AVX-512 F, BW and VL.
#[derive(Clone, Copy)]
pub struct Avx512(());

/// Loads the whole line.
///
/// # Safety
/// The caller guarantees AVX-512 F.
#[inline(always)]
unsafe fn load(line: &Line) -> __m512i {
    // SAFETY: the caller guarantees AVX-512 F; a line has 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(line.as_ptr().cast()) }
}

impl Simd for Avx512 {
    fn detect() -> Option<Self> {
        Isa::Avx512.is_available().then_some(Self(()))
    }
    #[inline(always)]
    unsafe fn below8(line: &Line, n: usize, query: u8) -> usize {
        // SAFETY: the caller guarantees AVX-512 F and BW, by the contract of `Simd`.
        unsafe {
            let wanted = _mm512_set1_epi8(query.cast_signed());
            let below = _mm512_cmplt_epu8_mask(load(line), wanted);
            (below & ((1u64 << n) - 1)).count_ones() as usize
        }
    }

    #[inline(always)]
    unsafe fn below16(line: &Line, n: usize, query: u16) -> usize {
        // SAFETY: the caller guarantees AVX-512 F and BW, by the contract of `Simd`.
        unsafe {
            let wanted = _mm512_set1_epi16(query.cast_signed());
            let below = _mm512_cmplt_epu16_mask(load(line), wanted);
            (below & ((1u32 << n) - 1)).count_ones() as usize
        }
    }

    #[inline(always)]
    unsafe fn below32(line: &Line, n: usize, query: u32) -> usize {
        // SAFETY: the caller guarantees AVX-512 F and BW, by the contract of `Simd`.
        unsafe {
            let wanted = _mm512_set1_epi32(query.cast_signed());
            let below = u32::from(_mm512_cmplt_epu32_mask(load(line), wanted));
            (below & ((1u32 << n) - 1)).count_ones() as usize
        }
    }

    #[inline(always)]
    unsafe fn below64(line: &Line, n: usize, query: u64) -> usize {
        // SAFETY: the caller guarantees AVX-512 F and BW, by the contract of `Simd`.
        unsafe {
            let wanted = _mm512_set1_epi64(query.cast_signed());
            let below = u32::from(_mm512_cmplt_epu64_mask(load(line), wanted));
            (below & ((1u32 << n) - 1)).count_ones() as usize
        }
    }

    #[inline(always)]
    unsafe fn equal32(line: &Line, n: usize, query: u32) -> u32 {
        // SAFETY: the caller guarantees AVX-512 F and BW, by the contract of `Simd`.
        unsafe {
            let wanted = _mm512_set1_epi32(query.cast_signed());
            u32::from(_mm512_cmpeq_epi32_mask(load(line), wanted)) & ((1u32 << n) - 1)
        }
    }

    #[inline(always)]
    unsafe fn equal64(line: &Line, n: usize, query: u64) -> u32 {
        // SAFETY: the caller guarantees AVX-512 F and BW, by the contract of `Simd`.
        unsafe {
            let wanted = _mm512_set1_epi64(query.cast_signed());
            u32::from(_mm512_cmpeq_epi64_mask(load(line), wanted)) & ((1u32 << n) - 1)
        }
    }
}
