//! Set operations on keys alone, a block of each side at a time (AVX-512).
//!
//! *Intersection and difference* ([`blocks`]): each right key of a block is broadcast and compared with all
//! keys of the left block, which gives the left keys that have a partner. Then the block whose last key is
//! smaller is complete, or both are. An intersection compresses and writes its matches at once; a difference
//! collects the matches of a left block until it is complete.
//!
//! *Union* ([`union`]): a bitonic network merges the block that holds the next key of either side with the
//! larger half of the previous merge; the smaller half is written, without keys equal to the one before (the
//! network of Batcher 1968, used so by Inoue and Taura, "SIMD- and Cache-Friendly Algorithm for Sorting an
//! Array of Structures", 2015).
//!
//! Nothing branches on a key. Two parts are processed in turn, since each step waits for the one before.
//! Kernels detect duplicate keys on a side: then their output is invalid.

use super::part::Part;
use pleach_format::Word;
#[cfg(target_arch = "x86_64")]
use pleach_format::cpu;
use std::any::TypeId;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Keys that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// Left keys with a partner.
    Both,
    /// Left keys without one.
    LeftAlone,
    /// Keys of either side.
    Either,
}

/// Maximum number of keys written after the last valid one.
pub(crate) const SLACK: usize = 16;
/// Number of parts that are processed in turn.
pub(crate) const TOGETHER: usize = 2;
/// Prefetch distance: the CPU's own prefetching ends with each page of 4 KiB.
const AHEAD_BYTES: usize = 1024;

/// Returns true if there is a kernel for these keys on this CPU.
pub(crate) fn is_available<K: Word>() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let kind = TypeId::of::<K>();
        (kind == TypeId::of::<u64>() || kind == TypeId::of::<u32>()) && cpu::avx512f_popcnt()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = TypeId::of::<K>();
        false
    }
}

/// State of a part after a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended<K> {
    /// Rest of the part: for an intersection or a difference less than a block of one side, or what the
    /// caller excluded.
    pub rest: Part,
    /// Number of keys that were written.
    pub count: usize,
    /// For a difference: bits of the keys in the remaining left block whose partner is before the right
    /// position.
    pub matched: u32,
    /// For a union: keys that come before the rest, or among it, ascending; they are not written yet.
    pub carried: [K; SLACK],
    /// Number of carried keys.
    pub carries: usize,
    /// For a union: the key that was written last.
    pub last: K,
    /// True if a key was duplicated on a side.
    pub repeats: bool,
}

/// Processes the whole blocks of parts, and writes to `outs`. For a union, `lasts` are the keys before the
/// parts, which are not written again.
///
/// # Safety
/// [`is_available`] is true for `K`; the parts are inside the columns; each of `outs` has room for the left
/// keys of its part, for a union for the right ones too, and for [`SLACK`] more.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn blocks<K: Word>(
    (a, b): (&[K], &[K]),
    parts: [Part; TOGETHER],
    what: Blocks,
    (outs, lasts): ([*mut K; TOGETHER], [K; TOGETHER]),
) -> [Ended<K>; TOGETHER] {
    let counts = (a.len(), b.len());
    macro_rules! run {
        ($k:ty, $sift:ident, $merge:ident) => {{
            let columns = (a.as_ptr().cast::<$k>(), b.as_ptr().cast::<$k>());
            let outs = outs.map(|out| out.cast::<$k>());
            let lasts = lasts.map(|last| last.to_u128() as $k);
            // SAFETY: the comparison settled that `K` is this type; the caller guarantees the CPU, the parts
            // and the room.
            let ended = unsafe {
                match what {
                    Blocks::Both => $sift::<false>(columns, counts, parts, outs),
                    Blocks::LeftAlone => $sift::<true>(columns, counts, parts, outs),
                    Blocks::Either => $merge(columns, counts, parts, (outs, lasts)),
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

/// A part in progress, by addresses: few enough for two parts to stay in registers.
#[derive(Clone, Copy)]
struct Lane<K> {
    left: *const K,
    right: *const K,
    /// The last positions where a block, and a key after it, are still inside the part and the column.
    ends: (*const K, *const K),
    out: *mut K,
}

impl<K: Copy> Lane<K> {
    /// Makes a lane for blocks of `n` keys; `counts` are the lengths of the columns.
    fn new((a, b): (*const K, *const K), counts: (usize, usize), part: Part, out: *mut K, n: usize) -> Self {
        let end = |column: *const K, count: usize, (from, to): (usize, usize)| {
            let stop = to.min(count.saturating_sub(1));
            // There is no block before the first position.
            stop.checked_sub(n)
                .filter(|&last| last >= from)
                .map_or(column.wrapping_add(from).wrapping_sub(1), |last| column.wrapping_add(last))
        };
        let (left, right) = (a.wrapping_add(part.left.0), b.wrapping_add(part.right.0));
        Self { left, right, ends: (end(a, counts.0, part.left), end(b, counts.1, part.right)), out }
    }

    /// Returns true if there is a block on both sides.
    #[inline(always)]
    fn has_blocks(&self) -> bool {
        (self.left <= self.ends.0) & (self.right <= self.ends.1)
    }

    /// Returns the rest of a part.
    fn rest(&self, (a, b): (*const K, *const K), part: Part) -> Part {
        let at = |place: *const K, column: *const K| (place.addr() - column.addr()) / size_of::<K>();
        Part { left: (at(self.left, a), part.left.1), right: (at(self.right, b), part.right.1) }
    }

    fn count(&self, out: *mut K) -> usize {
        (self.out.addr() - out.addr()) / size_of::<K>()
    }
}

/// Makes steps of both lanes in turn, then of each alone.
macro_rules! in_turn {
    ($lanes:ident, |$at:ident| $step:expr) => {{
        while $lanes[0].has_blocks() & $lanes[1].has_blocks() {
            {
                let $at = 0;
                $step
            }
            {
                let $at = 1;
                $step
            }
        }
        for $at in 0..TOGETHER {
            while $lanes[$at].has_blocks() {
                $step
            }
        }
    }};
}

/// Defines the kernels for a width: keys and signed keys, lanes of a vector, the type of masks, and
/// intrinsics.
macro_rules! kernels {
    ($sift:ident, $sift_step:ident, $merge:ident, $merge_step:ident, $key:ty, $signed:ty, $n:literal, $mask:ty,
     $stages:literal, $equal:ident, $unequal:ident, $set1:ident, $compress:ident, $permute:ident,
     $order:ident, $stage:ident, $align:ident, $ordered:ident) => {
        /// Processes a block of an intersection or a difference (`ALONE`).
        #[cfg(target_arch = "x86_64")]
        #[inline]
        #[target_feature(enable = "avx512f,popcnt")]
        unsafe fn $sift_step<const ALONE: bool>(
            lane: &mut Lane<$key>,
            matched: &mut $mask,
            repeats: &mut $mask,
        ) {
            let Lane { left: a, right: b, .. } = *lane;
            // SAFETY: both blocks, and a key after each, are inside the columns. A left key counts once at
            // most, whatever the keys are, and the output ends at most a block after the keys that count.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(a.wrapping_byte_add(AHEAD_BYTES).cast());
                _mm_prefetch::<_MM_HINT_T0>(b.wrapping_byte_add(AHEAD_BYTES).cast());
                let left = _mm512_loadu_si512(a.cast());
                let right = _mm512_loadu_si512(b.cast());
                *repeats |= $equal(left, _mm512_loadu_si512(a.add(1).cast()))
                    | $equal(right, _mm512_loadu_si512(b.add(1).cast()));
                let mut found: [$mask; 4] = [0; 4];
                for at in 0..$n {
                    found[at % 4] |= $equal(left, $set1(*b.add(at) as $signed));
                }
                let found = found[0] | found[1] | found[2] | found[3];
                let (left_last, right_last) = (*a.add($n - 1), *b.add($n - 1));
                let (left_done, right_done) = $ordered(left_last, right_last);
                let done: $mask = if left_done { <$mask>::MAX } else { 0 };
                let first = found & !*matched;
                *matched |= found;
                let write = if ALONE { !*matched & done } else { first };
                *matched &= !done;
                _mm512_storeu_si512(lane.out.cast(), $compress(write, left));
                lane.out = lane.out.add(write.count_ones() as usize);
                lane.left = a.add(usize::from(left_done) * $n);
                lane.right = b.add(usize::from(right_done) * $n);
            }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,popcnt")]
        unsafe fn $sift<const ALONE: bool>(
            columns: (*const $key, *const $key),
            counts: (usize, usize),
            parts: [Part; TOGETHER],
            outs: [*mut $key; TOGETHER],
        ) -> [Ended<$key>; TOGETHER] {
            let mut lanes: [Lane<$key>; TOGETHER] =
                std::array::from_fn(|at| Lane::new(columns, counts, parts[at], outs[at], $n));
            let (mut matched, mut repeats): ([$mask; 2], $mask) = ([0; 2], 0);
            // SAFETY: each lane has blocks on both sides.
            in_turn!(lanes, |at| unsafe {
                $sift_step::<ALONE>(&mut lanes[at], &mut matched[at], &mut repeats);
            });
            std::array::from_fn(|at| Ended {
                count: lanes[at].count(outs[at]),
                // The remaining matches of an intersection have been written already.
                matched: if ALONE { matched[at].into() } else { 0 },
                repeats: repeats != 0,
                ..Ended::new(lanes[at].rest(columns, parts[at]), 0)
            })
        }

        /// Processes a block of a union: merges the next one with the carried keys.
        #[cfg(target_arch = "x86_64")]
        #[inline]
        #[target_feature(enable = "avx512f,popcnt")]
        unsafe fn $merge_step(
            lane: &mut Lane<$key>,
            carried: &mut __m512i,
            before: &mut __m512i,
            repeats: &mut $mask,
        ) {
            // Lane `at` of stage `s` is exchanged with lane `at ^ (n >> s)`; stage 0 reverses a vector.
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
            let Lane { left: a, right: b, .. } = *lane;
            // SAFETY: both blocks, and a key after each, are inside the columns; a block is written for each that is
            // read, so that what is written ends inside the room, whatever the keys are.
            unsafe {
                let from_left = *a <= *b;
                let next = if from_left { a } else { b };
                lane.left = a.add(usize::from(from_left) * $n);
                lane.right = b.add(usize::from(!from_left) * $n);
                _mm_prefetch::<_MM_HINT_T0>(next.wrapping_byte_add(AHEAD_BYTES).cast());
                let block = _mm512_loadu_si512(next.cast());
                *repeats |= $equal(block, _mm512_loadu_si512(next.add(1).cast()));
                let lanes = |stage: usize| _mm512_loadu_si512(LANES[stage].as_ptr().cast());
                let turned = $permute(lanes(0), block);
                let (mut low, mut high) = $order(*carried, turned);
                for stage in 1..=$stages {
                    low = $stage(low, $permute(lanes(stage), low), UPPER[stage]);
                    high = $stage(high, $permute(lanes(stage), high), UPPER[stage]);
                }
                let keep = $unequal(low, $align(low, *before));
                _mm512_storeu_si512(lane.out.cast(), $compress(keep, low));
                lane.out = lane.out.add(keep.count_ones() as usize);
                *before = low;
                *carried = high;
            }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,popcnt")]
        unsafe fn $merge(
            columns: (*const $key, *const $key),
            counts: (usize, usize),
            parts: [Part; TOGETHER],
            (outs, lasts): ([*mut $key; TOGETHER], [$key; TOGETHER]),
        ) -> [Ended<$key>; TOGETHER] {
            let mut lanes: [Lane<$key>; TOGETHER] =
                std::array::from_fn(|at| Lane::new(columns, counts, parts[at], outs[at], $n));
            let mut repeats: $mask = 0;
            let mut before = lasts.map(|last| $set1(last as $signed));
            let mut carried = [_mm512_setzero_si512(); TOGETHER];
            let mut carries = [0; TOGETHER];
            for at in 0..TOGETHER {
                // The first block is carried.
                if lanes[at].has_blocks() {
                    // SAFETY: the block is inside the column, and so is a key after it.
                    unsafe {
                        carried[at] = _mm512_loadu_si512(lanes[at].left.cast());
                        repeats |= $equal(carried[at], _mm512_loadu_si512(lanes[at].left.add(1).cast()));
                        lanes[at].left = lanes[at].left.add($n);
                    }
                    carries[at] = $n;
                }
            }
            // SAFETY: each lane has blocks on both sides.
            in_turn!(lanes, |at| unsafe {
                $merge_step(&mut lanes[at], &mut carried[at], &mut before[at], &mut repeats);
            });
            std::array::from_fn(|at| {
                let mut ended = Ended {
                    count: lanes[at].count(outs[at]),
                    carries: carries[at],
                    repeats: repeats != 0,
                    ..Ended::new(lanes[at].rest(columns, parts[at]), 0)
                };
                let mut last = [0; $n];
                // SAFETY: both arrays have the size of a vector.
                unsafe {
                    _mm512_storeu_si512(last.as_mut_ptr().cast(), before[at]);
                    _mm512_storeu_si512(ended.carried.as_mut_ptr().cast(), carried[at]);
                }
                ended.last = last[$n - 1];
                ended
            })
        }
    };
}

/// Returns `a <= b` and `b <= a`, by assembly: compilers make vectors of two compares, and wait three times
/// as long for the answer, on which the next block depends.
macro_rules! ordered {
    ($name:ident, $key:ty, $form:literal) => {
        #[cfg(target_arch = "x86_64")]
        #[inline(always)]
        fn $name(a: $key, b: $key) -> (bool, bool) {
            let (not_above, not_below): (u8, u8);
            // SAFETY: compares two registers; both results are 0 or 1.
            unsafe {
                std::arch::asm!($form, "setbe {1}", "setae {2}", in(reg) a, out(reg_byte) not_above,
                    out(reg_byte) not_below, in(reg) b, options(pure, nomem, nostack));
            }
            (not_above != 0, not_below != 0)
        }
    };
}
ordered!(ordered64, u64, "cmp {0}, {3}");
ordered!(ordered32, u32, "cmp {0:e}, {3:e}");

/// Returns the last key of `before`, then all of `low` but the last.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn align64(low: __m512i, before: __m512i) -> __m512i {
    _mm512_alignr_epi64::<7>(low, before)
}
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn align32(low: __m512i, before: __m512i) -> __m512i {
    _mm512_alignr_epi32::<15>(low, before)
}

/// Returns the lesser and the greater of each two lanes. A minimum of words of 8 bytes takes two instructions
/// of one port, so they are compared and blended.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn order64(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
    let is_less = _mm512_cmplt_epu64_mask(a, b);
    (_mm512_mask_blend_epi64(is_less, b, a), _mm512_mask_blend_epi64(is_less, a, b))
}

/// Returns the lesser of each two lanes, and the greater where `upper` has bits.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn stage64(a: __m512i, b: __m512i, upper: u8) -> __m512i {
    let is_less = _mm512_cmplt_epu64_mask(a, b);
    let takes_a = _kxor_mask16(is_less.into(), upper.into()) as u8;
    _mm512_mask_blend_epi64(takes_a, b, a)
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn order32(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
    (_mm512_min_epu32(a, b), _mm512_max_epu32(a, b))
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn stage32(a: __m512i, b: __m512i, upper: u16) -> __m512i {
    _mm512_mask_max_epu32(_mm512_min_epu32(a, b), upper, a, b)
}

#[rustfmt::skip]
kernels!(
    sift64, sift_step64, merge64, merge_step64, u64, i64, 8, u8, 3,
    _mm512_cmpeq_epi64_mask, _mm512_cmpneq_epi64_mask, _mm512_set1_epi64, _mm512_maskz_compress_epi64,
    _mm512_permutexvar_epi64, order64, stage64, align64, ordered64
);
#[rustfmt::skip]
kernels!(
    sift32, sift_step32, merge32, merge_step32, u32, i32, 16, u16, 4,
    _mm512_cmpeq_epi32_mask, _mm512_cmpneq_epi32_mask, _mm512_set1_epi32, _mm512_maskz_compress_epi32,
    _mm512_permutexvar_epi32, order32, stage32, align32, ordered32
);
