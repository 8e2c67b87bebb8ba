//! Intersection and difference of keys alone, a block of each side at a time (AVX-512).
//!
//! Where no key stands twice on a side, all keys of a block of one side are compared with all of a block of the
//! other: each right key is broadcast and compared with the left block, which gives the left keys that have a
//! partner. Then the block whose last key is smaller is done, or both are. Of an intersection what matched is
//! compressed and written at once; of a difference the matches of a left block are gathered until it is done.
//! Nothing branches on a key.

use super::walk::Part;
use pleach_format::Word;
use std::any::TypeId;

/// What is written of a left block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// Keys with a partner.
    Both,
    /// Keys without one.
    LeftAlone,
}

/// Most keys that are written behind the last one that counts.
pub(crate) const SLACK: usize = 16;

/// Whether there is a kernel for these keys on this CPU.
pub(crate) fn is_available<K: Word>() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let kind = TypeId::of::<K>();
        (kind == TypeId::of::<u64>() || kind == TypeId::of::<u32>()) && is_x86_feature_detected!("avx512f")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = TypeId::of::<K>();
        false
    }
}

/// Where a kernel ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// What remains, less than a block of one side.
    pub rest: Part,
    /// Keys that were written.
    pub count: usize,
    /// Of a difference: which keys of the left block that remains have a partner behind which the right side stands.
    pub matched: u32,
}

/// Goes through whole blocks of a part in which no key stands twice on a side, and writes to `out`.
///
/// # Safety
/// [`is_available`]; the part lies inside the columns; `out` has room for the left keys of the part and [`SLACK`] more.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn blocks<K: Word>(a: &[K], b: &[K], part: Part, what: Blocks, out: *mut K) -> Ended {
    // SAFETY: `K` is `u32` or `u64`, which the first compare settles; the rest is the caller's contract.
    unsafe {
        if TypeId::of::<K>() == TypeId::of::<u32>() {
            blocks32(a.as_ptr().cast(), b.as_ptr().cast(), part, what, out.cast())
        } else {
            blocks64(a.as_ptr().cast(), b.as_ptr().cast(), part, what, out.cast())
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn blocks<K: Word>(_: &[K], _: &[K], part: Part, _: Blocks, _: *mut K) -> Ended {
    Ended { rest: part, count: 0, matched: 0 }
}

macro_rules! kernel {
    ($name:ident, $key:ty, $signed:ty, $n:literal, $mask:ty, $equal:ident, $set1:ident, $compress:ident) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,popcnt")]
        unsafe fn $name(a: *const $key, b: *const $key, part: Part, what: Blocks, out: *mut $key) -> Ended {
            use std::arch::x86_64::*;
            let ((mut i, i_end), (mut j, j_end)) = (part.left, part.right);
            let (mut count, mut matched): (usize, $mask) = (0, 0);
            while i + $n <= i_end && j + $n <= j_end {
                // SAFETY: both blocks lie inside the part, and so inside the columns. A left key counts once at most,
                // whatever the keys are, and what is written ends at most a block behind those that count.
                unsafe {
                    let left = _mm512_loadu_si512(a.add(i).cast());
                    let mut found: [$mask; 4] = [0; 4];
                    for at in 0..$n {
                        let right = $set1(*b.add(j + at) as $signed);
                        found[at % 4] |= $equal(left, right);
                    }
                    let found = found[0] | found[1] | found[2] | found[3];
                    let (left_last, right_last) = (*a.add(i + $n - 1), *b.add(j + $n - 1));
                    let (left_done, right_done) = (left_last <= right_last, right_last <= left_last);
                    let done: $mask = if left_done { <$mask>::MAX } else { 0 };
                    let first = found & !matched;
                    matched |= found;
                    let write = match what {
                        Blocks::Both => first,
                        Blocks::LeftAlone => !matched & done,
                    };
                    matched &= !done;
                    _mm512_storeu_si512(out.add(count).cast(), $compress(write, left));
                    count += write.count_ones() as usize;
                    i += usize::from(left_done) * $n;
                    j += usize::from(right_done) * $n;
                }
            }
            let rest = Part { left: (i, i_end), right: (j, j_end) };
            // What is left of an intersection has been written as far as it matched.
            let matched = if what == Blocks::LeftAlone { matched } else { 0 };
            Ended { rest, count, matched: matched.into() }
        }
    };
}

kernel!(blocks64, u64, i64, 8, u8, _mm512_cmpeq_epi64_mask, _mm512_set1_epi64, _mm512_maskz_compress_epi64);
kernel!(blocks32, u32, i32, 16, u16, _mm512_cmpeq_epi32_mask, _mm512_set1_epi32, _mm512_maskz_compress_epi32);
