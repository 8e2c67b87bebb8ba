//! The compares of a search: the number of keys of a SIMD block that are below the query.
//!
//! A block is stored breadth-first, but its keys below a query are those to the left of one gap, so their
//! number is the child in any order.
//!
//! [`Paper`] finds it as the paper does for SSE, by a compare, a bit mask and a table of eight entries.
//! [`Wide`] counts the bits of a whole line's compare, which is the paper's 16-lane form (one AVX-512
//! compare, or two of AVX2). [`Joint`] adds the addresses of all queries in flight at once. [`Scalar`] is the
//! reference for all of them.

use super::joint::Address;
use crate::arch::Simd;
use pleach_format::classic::TreeWord;
use pleach_format::classic::packed::Partial;
use pleach_format::line::Line;

/// Operations on the words of a block at the start of 64 bytes.
///
/// # Safety
/// The caller of a method guarantees that the calling code is compiled for, and runs on, a CPU with the
/// features of the implementing type.
pub(crate) trait Kernel: Copy + Send + Sync + 'static {
    /// Counts the words among the first `n`, `n * V::BYTES <= 64`, that are below `query`.
    unsafe fn below<V: TreeWord>(line: &Line, n: usize, query: V) -> usize;

    /// Packs the kept bits of a key.
    unsafe fn extract(record: &Partial, key: u128) -> u128 {
        record.word(key)
    }

    /// True if the addresses of a group's queries are computed together, by [`Kernel::slots`].
    const JOINT: bool = false;

    /// Clamps the numbers of lines and returns their slots.
    #[inline(always)]
    unsafe fn slots<const S: usize>(address: &Address, lines: &mut [u64; S]) -> [u64; S] {
        address.all(lines)
    }
}

/// Portable code.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

/// One compare of 16 bytes, for four-byte words in blocks of two levels.
#[derive(Clone, Copy)]
pub(crate) struct Paper;

/// Compares of a whole line; `PEXT` requires a CPU with BMI2.
#[derive(Clone, Copy)]
pub(crate) struct Wide<S, const PEXT: bool>(std::marker::PhantomData<S>);

/// [`Wide`] with the addresses of a group computed together; with `AVX2`, in AVX2 vectors.
#[derive(Clone, Copy)]
pub(crate) struct Joint<S, const AVX2: bool>(std::marker::PhantomData<S>);

#[inline(always)]
fn count<V: TreeWord>(line: &Line, n: usize, query: V) -> usize {
    V::slots(line).iter().take(n).filter(|&&word| V::from_bytes(word) < query).count()
}

impl Kernel for Scalar {
    #[inline(always)]
    unsafe fn below<V: TreeWord>(line: &Line, n: usize, query: V) -> usize {
        if n == 1 {
            return usize::from(V::slots(line).first().is_some_and(|&word| V::from_bytes(word) < query));
        }
        count(line, n, query)
    }
}

/// Children by the compares of root, left and right node. Only 0, 2, 3 and 7 occur in a sorted block; the
/// other entries keep a damaged block inside.
#[cfg(target_arch = "x86_64")]
static CHILD: [u8; 8] = [0, 1, 1, 2, 1, 2, 2, 3];

impl Kernel for Paper {
    #[inline(always)]
    unsafe fn below<V: TreeWord>(line: &Line, n: usize, query: V) -> usize {
        #[cfg(target_arch = "x86_64")]
        if V::BYTES == 4 && n == 3 {
            use std::arch::x86_64::*;
            let key = query.widen() as u32;
            // SAFETY: SSE2 is part of x86-64; 16 bytes are read from an array of 64. Flipping the sign of
            // both sides makes the signed compare unsigned.
            let mask = unsafe {
                let sign = _mm_set1_epi32(i32::MIN);
                let nodes = _mm_xor_si128(_mm_loadu_si128(line.as_ptr().cast()), sign);
                let wanted = _mm_set1_epi32((key ^ (1 << 31)).cast_signed());
                _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpgt_epi32(wanted, nodes)))
            };
            return usize::from(CHILD[(mask & 7) as usize]);
        }
        // SAFETY: `Scalar` needs no CPU feature.
        unsafe { Scalar::below(line, n, query) }
    }
}

impl<S: Simd, const PEXT: bool> Kernel for Wide<S, PEXT> {
    #[inline(always)]
    unsafe fn below<V: TreeWord>(line: &Line, n: usize, query: V) -> usize {
        // SAFETY: the caller guarantees the CPU features of `S`. Blocks of these widths have at most 31, 15
        // and 7 words.
        unsafe {
            match V::BYTES {
                2 => S::below16(line, n.min(31), query.widen() as u16),
                4 => S::below32(line, n.min(16), query.widen() as u32),
                8 => S::below64(line, n.min(8), query.widen() as u64),
                _ => count(line, n, query),
            }
        }
    }

    #[inline(always)]
    unsafe fn extract(record: &Partial, key: u128) -> u128 {
        #[cfg(target_arch = "x86_64")]
        if PEXT {
            let (high, low) = ((record.mask >> 64) as u64, record.mask as u64);
            // SAFETY: with `PEXT` the caller guarantees BMI2; no memory is read.
            let (upper, lower) = unsafe {
                use std::arch::x86_64::_pext_u64;
                (_pext_u64((key >> 64) as u64, high), _pext_u64(key as u64, low))
            };
            return u128::from(upper) << low.count_ones() | u128::from(lower);
        }
        record.word(key)
    }
}

impl<S: Simd, const AVX2: bool> Kernel for Joint<S, AVX2> {
    const JOINT: bool = true;

    #[inline(always)]
    unsafe fn below<V: TreeWord>(line: &Line, n: usize, query: V) -> usize {
        // SAFETY: the caller guarantees the CPU features of `S`.
        unsafe { Wide::<S, AVX2>::below(line, n, query) }
    }

    #[inline(always)]
    unsafe fn slots<const N: usize>(address: &Address, lines: &mut [u64; N]) -> [u64; N] {
        #[cfg(target_arch = "x86_64")]
        if AVX2 {
            // SAFETY: with `AVX2` the caller guarantees AVX2.
            return unsafe { address.all_avx2(lines) };
        }
        address.all(lines)
    }
}
