//! The compares of k-ary search: the number of a vector's words that are below the query.
//!
//! The words come from one place ([`Vector::below`]: a node of a tree, or the end of a search in a list) or
//! from many ([`Vector::below_at`]: separators spread over a list). Their number is the child, since those
//! below the query come first. AVX-512 gathers spread words by one instruction, the others load them one by
//! one: AVX2's gather took up to half as long again (Zen 3).
//!
//! Unsigned compares of AVX2 and SSE use `max` (4 bytes) or flip the sign (8 bytes).
//!
//! [`Plain`] is the reference for every number of lanes. Methods are `#[inline(always)]`, and the outer
//! functions of `engine` compile them for their features.

use std::fmt::Debug;

/// Lanes of the widest vector.
pub const LANES_MAX: usize = 16;

/// Indices of the words of a gather.
pub type Places = [u32; LANES_MAX];

/// Number of words that a gather reaches: its indices are signed and have 4 bytes.
pub const REACH: usize = i32::MAX as usize;

/// A vector of words `W`.
///
/// # Safety
/// The caller of a method guarantees that the calling code is compiled for, and runs on, a CPU with the
/// features of the implementing type.
pub trait Vector<W>: Copy + Send + Sync + 'static {
    /// Number of its words.
    const LANES: usize;

    /// Counts the words among the first [`Self::LANES`] that are below `query`.
    ///
    /// # Safety
    /// The caller guarantees the features as the trait requires, and at least [`Self::LANES`] words.
    unsafe fn below(words: &[W], query: W) -> usize;

    /// Counts the words at the first [`Self::LANES`] places that are below `query`.
    ///
    /// # Safety
    /// The caller guarantees the features as the trait requires, and that these places are below the number
    /// of words and below [`REACH`].
    unsafe fn below_at(words: &[W], places: &Places, query: W) -> usize;
}

/// The vectors for a type of words.
pub trait Forms: Sized + Copy + Ord + Debug + Send + Sync + 'static {
    /// The greatest word, which fills slots without a key.
    const GREATEST: Self;
    /// Portable code for 16 bytes.
    type Plain16: Vector<Self>;
    /// Portable code for 32 bytes.
    type Plain32: Vector<Self>;
    /// Portable code for 64 bytes.
    type Plain64: Vector<Self>;
    /// 16 bytes.
    #[cfg(target_arch = "x86_64")]
    type Sse: Vector<Self>;
    /// 32 bytes.
    #[cfg(target_arch = "x86_64")]
    type Avx2: Vector<Self>;
    /// 64 bytes.
    #[cfg(target_arch = "x86_64")]
    type Avx512: Vector<Self>;
    /// 16 bytes.
    #[cfg(target_arch = "aarch64")]
    type Neon: Vector<Self>;
}

macro_rules! forms {
    ($word:ty, $narrow:literal, $middle:literal, $wide:literal) => {
        impl Forms for $word {
            const GREATEST: Self = Self::MAX;
            type Plain16 = Plain<$narrow>;
            type Plain32 = Plain<$middle>;
            type Plain64 = Plain<$wide>;
            #[cfg(target_arch = "x86_64")]
            type Sse = x86::Sse;
            #[cfg(target_arch = "x86_64")]
            type Avx2 = x86::Avx2;
            #[cfg(target_arch = "x86_64")]
            type Avx512 = x86::Avx512;
            #[cfg(target_arch = "aarch64")]
            type Neon = arm::Neon;
        }
    };
}
forms!(u32, 4, 8, 16);
forms!(u64, 2, 4, 8);

/// Portable code for `L` lanes.
#[derive(Clone, Copy)]
pub struct Plain<const L: usize>;

impl<W: Forms, const L: usize> Vector<W> for Plain<L> {
    const LANES: usize = L;

    #[inline(always)]
    unsafe fn below(words: &[W], query: W) -> usize {
        words.iter().take(L).map(|&word| usize::from(word < query)).sum()
    }

    #[inline(always)]
    unsafe fn below_at(words: &[W], places: &Places, query: W) -> usize {
        let word = |&place: &u32| words.get(place as usize).is_some_and(|&word| word < query);
        places.iter().take(L).map(|place| usize::from(word(place))).sum()
    }
}

/// Returns the word at place number `lane`.
///
/// # Safety
/// The caller guarantees that place number `lane` is below the number of words.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
unsafe fn word_at<W: Copy>(words: &[W], places: &Places, lane: usize) -> W {
    // SAFETY: the caller guarantees that the place is below the number of words.
    unsafe { *words.get_unchecked(places[lane] as usize) }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Places, Vector, word_at};
    use std::arch::x86_64::*;

    /// SSE 4.2 and POPCNT.
    #[derive(Clone, Copy)]
    pub struct Sse;

    /// AVX2 and POPCNT.
    #[derive(Clone, Copy)]
    pub struct Avx2;

    /// AVX-512 F and POPCNT.
    #[derive(Clone, Copy)]
    pub struct Avx512;

    /// # Safety
    /// The caller guarantees SSE 4.2.
    #[inline(always)]
    unsafe fn below_sse_u32(words: __m128i, query: u32) -> usize {
        // SAFETY: the caller guarantees SSE 4.2; no memory is read.
        unsafe {
            let equal = _mm_cmpeq_epi32(_mm_max_epu32(words, _mm_set1_epi32(query.cast_signed())), words);
            4 - _mm_movemask_ps(_mm_castsi128_ps(equal)).count_ones() as usize
        }
    }

    /// # Safety
    /// The caller guarantees SSE 4.2.
    #[inline(always)]
    unsafe fn below_sse_u64(words: __m128i, query: u64) -> usize {
        // SAFETY: the caller guarantees SSE 4.2; no memory is read.
        unsafe {
            let wanted = _mm_set1_epi64x((query ^ 1 << 63).cast_signed());
            let below = _mm_cmpgt_epi64(wanted, _mm_xor_si128(words, _mm_set1_epi64x(i64::MIN)));
            _mm_movemask_pd(_mm_castsi128_pd(below)).count_ones() as usize
        }
    }

    /// # Safety
    /// The caller guarantees AVX2.
    #[inline(always)]
    unsafe fn below_avx2_u32(words: __m256i, query: u32) -> usize {
        // SAFETY: the caller guarantees AVX2; no memory is read.
        unsafe {
            let wanted = _mm256_set1_epi32(query.cast_signed());
            let equal = _mm256_cmpeq_epi32(_mm256_max_epu32(words, wanted), words);
            8 - _mm256_movemask_ps(_mm256_castsi256_ps(equal)).count_ones() as usize
        }
    }

    /// # Safety
    /// The caller guarantees AVX2.
    #[inline(always)]
    unsafe fn below_avx2_u64(words: __m256i, query: u64) -> usize {
        // SAFETY: the caller guarantees AVX2; no memory is read.
        unsafe {
            let wanted = _mm256_set1_epi64x((query ^ 1 << 63).cast_signed());
            let below = _mm256_cmpgt_epi64(wanted, _mm256_xor_si256(words, _mm256_set1_epi64x(i64::MIN)));
            _mm256_movemask_pd(_mm256_castsi256_pd(below)).count_ones() as usize
        }
    }

    impl Vector<u32> for Sse {
        const LANES: usize = 4;

        #[inline(always)]
        unsafe fn below(words: &[u32], query: u32) -> usize {
            // SAFETY: the caller guarantees SSE 4.2 and 4 words.
            unsafe { below_sse_u32(_mm_loadu_si128(words.as_ptr().cast()), query) }
        }

        #[inline(always)]
        unsafe fn below_at(words: &[u32], places: &Places, query: u32) -> usize {
            // SAFETY: the caller guarantees SSE 4.2, and that the first 4 places are inside.
            unsafe {
                let at = |lane| word_at(words, places, lane).cast_signed();
                below_sse_u32(_mm_setr_epi32(at(0), at(1), at(2), at(3)), query)
            }
        }
    }

    impl Vector<u64> for Sse {
        const LANES: usize = 2;

        #[inline(always)]
        unsafe fn below(words: &[u64], query: u64) -> usize {
            // SAFETY: the caller guarantees SSE 4.2 and 2 words.
            unsafe { below_sse_u64(_mm_loadu_si128(words.as_ptr().cast()), query) }
        }

        #[inline(always)]
        unsafe fn below_at(words: &[u64], places: &Places, query: u64) -> usize {
            // SAFETY: the caller guarantees SSE 4.2, and that the first 2 places are inside.
            unsafe {
                let at = |lane| word_at(words, places, lane).cast_signed();
                below_sse_u64(_mm_set_epi64x(at(1), at(0)), query)
            }
        }
    }

    impl Vector<u32> for Avx2 {
        const LANES: usize = 8;

        #[inline(always)]
        unsafe fn below(words: &[u32], query: u32) -> usize {
            // SAFETY: the caller guarantees AVX2 and 8 words.
            unsafe { below_avx2_u32(_mm256_loadu_si256(words.as_ptr().cast()), query) }
        }

        #[inline(always)]
        unsafe fn below_at(words: &[u32], places: &Places, query: u32) -> usize {
            // SAFETY: the caller guarantees AVX2, and that the first 8 places are inside.
            unsafe {
                let at = |lane| word_at(words, places, lane).cast_signed();
                let words = _mm256_setr_epi32(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
                below_avx2_u32(words, query)
            }
        }
    }

    impl Vector<u64> for Avx2 {
        const LANES: usize = 4;

        #[inline(always)]
        unsafe fn below(words: &[u64], query: u64) -> usize {
            // SAFETY: the caller guarantees AVX2 and 4 words.
            unsafe { below_avx2_u64(_mm256_loadu_si256(words.as_ptr().cast()), query) }
        }

        #[inline(always)]
        unsafe fn below_at(words: &[u64], places: &Places, query: u64) -> usize {
            // SAFETY: the caller guarantees AVX2, and that the first 4 places are inside.
            unsafe {
                let at = |lane| word_at(words, places, lane).cast_signed();
                below_avx2_u64(_mm256_setr_epi64x(at(0), at(1), at(2), at(3)), query)
            }
        }
    }

    impl Vector<u32> for Avx512 {
        const LANES: usize = 16;

        #[inline(always)]
        unsafe fn below(words: &[u32], query: u32) -> usize {
            // SAFETY: the caller guarantees AVX-512 F and 16 words.
            unsafe {
                let words = _mm512_loadu_si512(words.as_ptr().cast());
                _mm512_cmplt_epu32_mask(words, _mm512_set1_epi32(query.cast_signed())).count_ones() as usize
            }
        }

        #[inline(always)]
        unsafe fn below_at(words: &[u32], places: &Places, query: u32) -> usize {
            // SAFETY: the caller guarantees AVX-512 F, and that all 16 places are inside and below `REACH`,
            // so that no sign bit is set. All 64 bytes of `places` are read.
            unsafe {
                let at = _mm512_loadu_si512(places.as_ptr().cast());
                let words = _mm512_i32gather_epi32::<4>(at, words.as_ptr().cast());
                _mm512_cmplt_epu32_mask(words, _mm512_set1_epi32(query.cast_signed())).count_ones() as usize
            }
        }
    }

    impl Vector<u64> for Avx512 {
        const LANES: usize = 8;

        #[inline(always)]
        unsafe fn below(words: &[u64], query: u64) -> usize {
            // SAFETY: the caller guarantees AVX-512 F and 8 words.
            unsafe {
                let words = _mm512_loadu_si512(words.as_ptr().cast());
                _mm512_cmplt_epu64_mask(words, _mm512_set1_epi64(query.cast_signed())).count_ones() as usize
            }
        }

        #[inline(always)]
        unsafe fn below_at(words: &[u64], places: &Places, query: u64) -> usize {
            // SAFETY: the caller guarantees AVX-512 F, and that the first 8 places are inside and below
            // `REACH`, so that no sign bit is set. 32 of the 64 bytes of `places` are read.
            unsafe {
                let at = _mm256_loadu_si256(places.as_ptr().cast());
                let words = _mm512_i32gather_epi64::<8>(at, words.as_ptr().cast());
                _mm512_cmplt_epu64_mask(words, _mm512_set1_epi64(query.cast_signed())).count_ones() as usize
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::{Places, Vector, word_at};
    use std::arch::aarch64::*;

    /// NEON, which every 64-bit Arm has.
    #[derive(Clone, Copy)]
    pub struct Neon;

    impl Vector<u32> for Neon {
        const LANES: usize = 4;

        #[inline(always)]
        unsafe fn below(words: &[u32], query: u32) -> usize {
            // SAFETY: the caller guarantees 4 words; NEON is part of the architecture.
            unsafe {
                let below = vcltq_u32(vld1q_u32(words.as_ptr()), vdupq_n_u32(query));
                vaddvq_u32(vshrq_n_u32::<31>(below)) as usize
            }
        }

        #[inline(always)]
        unsafe fn below_at(words: &[u32], places: &Places, query: u32) -> usize {
            // SAFETY: the caller guarantees that the first 4 places are inside; the array has 4 words.
            unsafe {
                let words: [u32; 4] = std::array::from_fn(|lane| word_at(words, places, lane));
                Self::below(&words, query)
            }
        }
    }

    impl Vector<u64> for Neon {
        const LANES: usize = 2;

        #[inline(always)]
        unsafe fn below(words: &[u64], query: u64) -> usize {
            // SAFETY: the caller guarantees 2 words; NEON is part of the architecture.
            unsafe {
                let below = vcltq_u64(vld1q_u64(words.as_ptr()), vdupq_n_u64(query));
                vaddvq_u64(vshrq_n_u64::<63>(below)) as usize
            }
        }

        #[inline(always)]
        unsafe fn below_at(words: &[u64], places: &Places, query: u64) -> usize {
            // SAFETY: the caller guarantees that the first 2 places are inside; the array has 2 words.
            unsafe {
                let words: [u64; 2] = std::array::from_fn(|lane| word_at(words, places, lane));
                Self::below(&words, query)
            }
        }
    }
}
