//! Set operations on keys alone, a block of each side at a time (AVX-512).
//!
//! *Intersection and difference* ([`blocks`]): all keys of a block of one side are compared with all of a block of the
//! other: each right key is broadcast and compared with the left block, which gives the left keys that have a
//! partner. Then the block whose last key is smaller is done, or both are. Of an intersection what matched is
//! compressed and written at once; of a difference the matches of a left block are gathered until it is done.
//!
//! *Union* ([`union`]): a bitonic network merges the block that holds the next key of either side with the larger half
//! of what was merged before; the smaller half comes out, without what equals the key before it (the network of
//! Batcher 1968, used so by Inoue and Taura, "SIMD- and Cache-Friendly Algorithm for Sorting an Array of Structures",
//! 2015).
//!
//! Nothing branches on a key. Two parts are gone through in turn, since each step waits for the one before. Kernels
//! look on the way whether a key stands twice on a side: then what they wrote means nothing.

use super::walk::Part;
use pleach_format::Word;
use std::any::TypeId;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// Left keys with a partner.
    Both,
    /// Left keys without one.
    LeftAlone,
    /// Keys of either side.
    Either,
}

/// Most keys that are written behind the last one that counts.
pub(crate) const SLACK: usize = 16;
/// Parts that are gone through in turn.
pub(crate) const TOGETHER: usize = 2;

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
pub(crate) struct Ended<K> {
    /// What remains: of an intersection or a difference less than a block of one side, or what the caller does not
    /// want to be read.
    pub rest: Part,
    /// Keys that were written.
    pub count: usize,
    /// Of a difference: which keys of the left block that remains have a partner behind which the right side stands.
    pub matched: u32,
    /// Of a union: keys that come before what remains, or among it, ascending; they are not written yet.
    pub carried: [K; SLACK],
    /// How many of them there are.
    pub carries: usize,
    /// Of a union: the key that was written last.
    pub last: K,
    /// Whether a key stood twice on a side.
    pub repeats: bool,
}

/// Goes through whole blocks of parts, and writes to `outs`. Of a union `lasts` are the keys before the parts, which are
/// not written again.
///
/// # Safety
/// [`is_available`]; the parts lie inside the columns; each of `outs` has room for the left keys of its part, of a union
/// for the right ones too, and [`SLACK`] more.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn blocks<K: Word>(
    (a, b): (&[K], &[K]),
    parts: [Part; TOGETHER],
    what: Blocks,
    (outs, lasts): ([*mut K; TOGETHER], [K; TOGETHER]),
) -> [Ended<K>; TOGETHER] {
    // A key behind each block is looked at.
    let ends = (a.len().saturating_sub(1), b.len().saturating_sub(1));
    macro_rules! run {
        ($k:ty, $sift:ident, $merge:ident) => {{
            let (a, b) = (a.as_ptr().cast::<$k>(), b.as_ptr().cast::<$k>());
            let outs = outs.map(|out| out.cast::<$k>());
            let lasts = lasts.map(|last| last.to_u128() as $k);
            // SAFETY: `K` is this type, which the comparison settled; the rest is the caller's contract.
            let ended = unsafe {
                match what {
                    Blocks::Both => $sift::<false>(a, b, ends, parts, outs),
                    Blocks::LeftAlone => $sift::<true>(a, b, ends, parts, outs),
                    Blocks::Either => $merge(a, b, ends, parts, (outs, lasts)),
                }
            };
            ended.map(|ended| Ended {
                rest: ended.rest,
                count: ended.count,
                matched: ended.matched,
                carried: ended.carried.map(|key| K::from_u128(key.into())),
                carries: ended.carries,
                last: K::from_u128(ended.last.into()),
                repeats: ended.repeats,
            })
        }};
    }
    if TypeId::of::<K>() == TypeId::of::<u32>() {
        run!(u32, sift32, merge32)
    } else {
        run!(u64, sift64, merge64)
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn blocks<K: Word>(
    _: (&[K], &[K]),
    parts: [Part; TOGETHER],
    _: Blocks,
    (_, lasts): ([*mut K; TOGETHER], [K; TOGETHER]),
) -> [Ended<K>; TOGETHER] {
    std::array::from_fn(|at| Ended::new(parts[at], lasts[at]))
}

impl<K: Word> Ended<K> {
    fn new(rest: Part, last: K) -> Self {
        let carried = [K::default(); SLACK];
        Self { rest, count: 0, matched: 0, carried, carries: 0, last, repeats: false }
    }
}

/// Where whole blocks of a part end.
fn stops(part: Part, ends: (usize, usize)) -> (usize, usize) {
    (part.left.1.min(ends.0), part.right.1.min(ends.1))
}

/// The kernels for a width: keys and signed keys, lanes of a vector, the type of masks, and intrinsics.
macro_rules! kernels {
    ($sift:ident, $sift_step:ident, $merge:ident, $merge_step:ident, $key:ty, $signed:ty, $n:literal, $mask:ty,
     $stages:literal, $equal:ident, $unequal:ident, $set1:ident, $compress:ident, $min:ident, $max:ident,
     $permute:ident, $blend:ident, $align:ident) => {
        /// A part of an intersection or a difference (`ALONE`) under way.
        #[cfg(target_arch = "x86_64")]
        #[inline]
        #[target_feature(enable = "avx512f,popcnt")]
        unsafe fn $sift_step<const ALONE: bool>(
            (a, b): (*const $key, *const $key),
            (i, j): (&mut usize, &mut usize),
            (out, count): (*mut $key, &mut usize),
            (matched, repeats): (&mut $mask, &mut $mask),
        ) {
            use std::arch::x86_64::*;
            // SAFETY: both blocks, and a key behind each, lie inside the columns. A left key counts once at most,
            // whatever the keys are, and what is written ends at most a block behind those that count.
            unsafe {
                let left = _mm512_loadu_si512(a.add(*i).cast());
                let right = _mm512_loadu_si512(b.add(*j).cast());
                *repeats |= $equal(left, _mm512_loadu_si512(a.add(*i + 1).cast()))
                    | $equal(right, _mm512_loadu_si512(b.add(*j + 1).cast()));
                let mut found: [$mask; 4] = [0; 4];
                for at in 0..$n {
                    found[at % 4] |= $equal(left, $set1(*b.add(*j + at) as $signed));
                }
                let found = found[0] | found[1] | found[2] | found[3];
                let (left_last, right_last) = (*a.add(*i + $n - 1), *b.add(*j + $n - 1));
                let (left_done, right_done) = (left_last <= right_last, right_last <= left_last);
                let done: $mask = if left_done { <$mask>::MAX } else { 0 };
                let first = found & !*matched;
                *matched |= found;
                let write = if ALONE { !*matched & done } else { first };
                *matched &= !done;
                _mm512_storeu_si512(out.add(*count).cast(), $compress(write, left));
                *count += write.count_ones() as usize;
                *i += usize::from(left_done) * $n;
                *j += usize::from(right_done) * $n;
            }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,popcnt")]
        unsafe fn $sift<const ALONE: bool>(
            a: *const $key,
            b: *const $key,
            ends: (usize, usize),
            parts: [Part; TOGETHER],
            outs: [*mut $key; TOGETHER],
        ) -> [Ended<$key>; TOGETHER] {
            let (mut i, mut j) = (parts.map(|part| part.left.0), parts.map(|part| part.right.0));
            let stops = parts.map(|part| stops(part, ends));
            let (mut counts, mut matched, mut repeats) = ([0; 2], [0; 2], [0; 2]);
            macro_rules! step {
                ($at:literal) => {
                    // SAFETY: the loop looked that both blocks end before the stops.
                    unsafe {
                        $sift_step::<ALONE>(
                            (a, b),
                            (&mut i[$at], &mut j[$at]),
                            (outs[$at], &mut counts[$at]),
                            (&mut matched[$at], &mut repeats[$at]),
                        )
                    }
                };
            }
            macro_rules! has_blocks {
                ($at:literal) => {
                    (i[$at] + $n <= stops[$at].0) & (j[$at] + $n <= stops[$at].1)
                };
            }
            while has_blocks!(0) & has_blocks!(1) {
                step!(0);
                step!(1);
            }
            while has_blocks!(0) {
                step!(0);
            }
            while has_blocks!(1) {
                step!(1);
            }
            std::array::from_fn(|at| Ended {
                count: counts[at],
                // What is left of an intersection has been written as far as it matched.
                matched: if ALONE { matched[at].into() } else { 0 },
                repeats: repeats[at] != 0,
                ..Ended::new(
                    Part { left: (i[at], parts[at].left.1), right: (j[at], parts[at].right.1) },
                    0,
                )
            })
        }

        /// A part of a union under way: merges the next block with what is carried.
        #[cfg(target_arch = "x86_64")]
        #[inline]
        #[target_feature(enable = "avx512f,popcnt")]
        unsafe fn $merge_step(
            (a, b): (*const $key, *const $key),
            (i, j): (&mut usize, &mut usize),
            (out, count): (*mut $key, &mut usize),
            (carried, before, repeats): (
                &mut std::arch::x86_64::__m512i,
                &mut std::arch::x86_64::__m512i,
                &mut $mask,
            ),
        ) {
            use std::arch::x86_64::*;
            // Lane `at` of stage `s` is exchanged with lane `at ^ (n >> s)`; stage 0 turns a vector round.
            const LANES: [[$key; $n]; $stages + 1] = {
                let mut lanes = [[0; $n]; $stages + 1];
                let mut stage = 0;
                while stage <= $stages {
                    let mut at = 0;
                    while at < $n {
                        lanes[stage][at] =
                            if stage == 0 { ($n - 1 - at) as $key } else { (at ^ ($n >> stage)) as $key };
                        at += 1;
                    }
                    stage += 1;
                }
                lanes
            };
            const UPPER: [$mask; $stages + 1] = {
                let mut masks = [0; $stages + 1];
                let mut stage = 1;
                while stage <= $stages {
                    let mut at = 0;
                    while at < $n {
                        if at & ($n >> stage) != 0 {
                            masks[stage] |= 1 << at;
                        }
                        at += 1;
                    }
                    stage += 1;
                }
                masks
            };
            // SAFETY: both blocks, and a key behind each, lie inside the columns; a block is written for each that is
            // read, so that what is written ends inside the room, whatever the keys are.
            unsafe {
                let from_left = *a.add(*i) <= *b.add(*j);
                let next = if from_left { a.add(*i) } else { b.add(*j) };
                *i += usize::from(from_left) * $n;
                *j += usize::from(!from_left) * $n;
                let block = _mm512_loadu_si512(next.cast());
                *repeats |= $equal(block, _mm512_loadu_si512(next.add(1).cast()));
                let lanes = |stage: usize| _mm512_loadu_si512(LANES[stage].as_ptr().cast());
                let turned = $permute(lanes(0), block);
                let mut low = $min(*carried, turned);
                let mut high = $max(*carried, turned);
                for stage in 1..=$stages {
                    let other = $permute(lanes(stage), low);
                    low = $blend(UPPER[stage], $min(low, other), $max(low, other));
                    let other = $permute(lanes(stage), high);
                    high = $blend(UPPER[stage], $min(high, other), $max(high, other));
                }
                let keep = $unequal(low, $align(low, *before));
                _mm512_storeu_si512(out.add(*count).cast(), $compress(keep, low));
                *count += keep.count_ones() as usize;
                *before = low;
                *carried = high;
            }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,popcnt")]
        unsafe fn $merge(
            a: *const $key,
            b: *const $key,
            ends: (usize, usize),
            parts: [Part; TOGETHER],
            (outs, lasts): ([*mut $key; TOGETHER], [$key; TOGETHER]),
        ) -> [Ended<$key>; TOGETHER] {
            use std::arch::x86_64::*;
            let (mut i, mut j) = (parts.map(|part| part.left.0), parts.map(|part| part.right.0));
            let stops = parts.map(|part| stops(part, ends));
            let (mut counts, mut repeats) = ([0; 2], [0; 2]);
            let mut before = lasts.map(|last| $set1(last as $signed));
            let mut carried = [_mm512_setzero_si512(); 2];
            let mut began = [false; 2];
            macro_rules! has_blocks {
                ($at:literal) => {
                    (i[$at] + $n <= stops[$at].0) & (j[$at] + $n <= stops[$at].1)
                };
            }
            macro_rules! begin {
                ($at:literal) => {
                    // The first block is carried.
                    if has_blocks!($at) {
                        // SAFETY: it lies inside the column, and a key behind it.
                        unsafe {
                            carried[$at] = _mm512_loadu_si512(a.add(i[$at]).cast());
                            repeats[$at] =
                                $equal(carried[$at], _mm512_loadu_si512(a.add(i[$at] + 1).cast()));
                        }
                        i[$at] += $n;
                        began[$at] = true;
                    }
                };
            }
            macro_rules! step {
                ($at:literal) => {
                    // SAFETY: the loop looked that both blocks end before the stops.
                    unsafe {
                        $merge_step(
                            (a, b),
                            (&mut i[$at], &mut j[$at]),
                            (outs[$at], &mut counts[$at]),
                            (&mut carried[$at], &mut before[$at], &mut repeats[$at]),
                        )
                    }
                };
            }
            begin!(0);
            begin!(1);
            while has_blocks!(0) & has_blocks!(1) {
                step!(0);
                step!(1);
            }
            while has_blocks!(0) {
                step!(0);
            }
            while has_blocks!(1) {
                step!(1);
            }
            std::array::from_fn(|at| {
                let rest = Part { left: (i[at], parts[at].left.1), right: (j[at], parts[at].right.1) };
                let mut ended = Ended { count: counts[at], repeats: repeats[at] != 0, ..Ended::new(rest, 0) };
                let mut lanes = [0; $n];
                // SAFETY: both arrays have the room of a vector.
                unsafe {
                    _mm512_storeu_si512(lanes.as_mut_ptr().cast(), before[at]);
                    _mm512_storeu_si512(ended.carried.as_mut_ptr().cast(), carried[at]);
                }
                ended.last = lanes[$n - 1];
                ended.carries = if began[at] { $n } else { 0 };
                ended
            })
        }
    };
}

/// The last key of `before`, then all of `low` but the last.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn align64(
    low: std::arch::x86_64::__m512i,
    before: std::arch::x86_64::__m512i,
) -> std::arch::x86_64::__m512i {
    std::arch::x86_64::_mm512_alignr_epi64::<7>(low, before)
}
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn align32(
    low: std::arch::x86_64::__m512i,
    before: std::arch::x86_64::__m512i,
) -> std::arch::x86_64::__m512i {
    std::arch::x86_64::_mm512_alignr_epi32::<15>(low, before)
}

kernels!(
    sift64, sift_step64, merge64, merge_step64, u64, i64, 8, u8, 3,
    _mm512_cmpeq_epi64_mask, _mm512_cmpneq_epi64_mask, _mm512_set1_epi64, _mm512_maskz_compress_epi64,
    _mm512_min_epu64, _mm512_max_epu64, _mm512_permutexvar_epi64, _mm512_mask_blend_epi64, align64
);
kernels!(
    sift32, sift_step32, merge32, merge_step32, u32, i32, 16, u16, 4,
    _mm512_cmpeq_epi32_mask, _mm512_cmpneq_epi32_mask, _mm512_set1_epi32, _mm512_maskz_compress_epi32,
    _mm512_min_epu32, _mm512_max_epu32, _mm512_permutexvar_epi32, _mm512_mask_blend_epi32, align32
);
