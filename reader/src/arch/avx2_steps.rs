//! Steps of eight look-ups by the grid with AVX2: two vectors of four places.
//!
//! Vectors hold 64 bits for each look-up. Compares are signed, and a choice looks at the sign bit only, so a bit of a
//! place or of a segment is moved there to choose by it.

use super::lanes::{Arrays, LANES, Lanes};
use super::{LINE_BITS, prefetch};
use pleach_format::grid::{MARKS, Place, Segment};
use std::arch::x86_64::*;

/// Look-ups in a vector.
const WIDTH: usize = 4;
const _: () = assert!(LANES == 2 * WIDTH);
/// How far to the left a place moves until its bit for units is the sign.
const UNIT_TO_SIGN: i32 = 1;
/// How far to the left the upper 8 bytes of a segment move until their bit for marks is the sign.
const MARKED_TO_SIGN: i32 = 6;
/// The same for units.
const UNITS_TO_SIGN: i32 = 7;

/// # Safety
/// The caller guarantees AVX, and that `first` is 0 or [`WIDTH`].
#[inline(always)]
unsafe fn load(lanes: &Lanes, first: usize) -> __m256i {
    // SAFETY: the caller guarantees AVX; four of eight lanes from `first` on are inside.
    unsafe { _mm256_loadu_si256(lanes.0.as_ptr().add(first).cast()) }
}

/// # Safety
/// The caller guarantees AVX, and that `first` is 0 or [`WIDTH`].
#[inline(always)]
unsafe fn store(from: __m256i, lanes: &mut Lanes, first: usize) {
    // SAFETY: the caller guarantees AVX; four of eight lanes from `first` on are inside.
    unsafe { _mm256_storeu_si256(lanes.0.as_mut_ptr().add(first).cast(), from) }
}

/// Returns `number` in each lane.
///
/// # Safety
/// The caller guarantees AVX.
#[inline(always)]
unsafe fn all(number: u64) -> __m256i {
    // SAFETY: the caller guarantees AVX.
    unsafe { _mm256_set1_epi64x(number.cast_signed()) }
}

/// Returns `a`, or `b` in lanes whose sign is set in `choice`.
///
/// # Safety
/// The caller guarantees AVX.
#[inline(always)]
unsafe fn select(a: __m256i, b: __m256i, choice: __m256i) -> __m256i {
    // SAFETY: the caller guarantees AVX.
    unsafe {
        let (a, b) = (_mm256_castsi256_pd(a), _mm256_castsi256_pd(b));
        _mm256_castpd_si256(_mm256_blendv_pd(a, b, _mm256_castsi256_pd(choice)))
    }
}

/// Returns all ones in lanes whose sign is set, and zero in others.
///
/// # Safety
/// The caller guarantees AVX2.
#[inline(always)]
unsafe fn signs(lanes: __m256i) -> __m256i {
    // SAFETY: the caller guarantees AVX2.
    unsafe { _mm256_cmpgt_epi64(_mm256_setzero_si256(), lanes) }
}

/// Returns the smaller of two numbers in each lane. Those of `b` are below 2^63; those of `a` may be any.
///
/// # Safety
/// The caller guarantees AVX2.
#[inline(always)]
unsafe fn min(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the caller guarantees AVX2.
    unsafe { select(a, b, _mm256_or_si256(_mm256_cmpgt_epi64(a, b), a)) }
}

/// Returns the lower half of the bits of each lane.
///
/// # Safety
/// The caller guarantees AVX2.
#[inline(always)]
unsafe fn low_half(lanes: __m256i) -> __m256i {
    // SAFETY: the caller guarantees AVX2.
    unsafe { _mm256_blend_epi32::<0b1010_1010>(lanes, _mm256_setzero_si256()) }
}

/// Counts the bits of each lane that are below one bit.
///
/// # Safety
/// The caller guarantees AVX2.
#[inline(always)]
unsafe fn ones_below(lanes: __m256i, bit: __m256i) -> __m256i {
    // SAFETY: the caller guarantees AVX2.
    unsafe {
        let bits = _mm256_and_si256(lanes, _mm256_add_epi64(bit, all(u64::MAX)));
        let of_nibble =
            _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
        let nibble = _mm256_set1_epi8(15);
        let low = _mm256_shuffle_epi8(of_nibble, _mm256_and_si256(bits, nibble));
        let high = _mm256_shuffle_epi8(of_nibble, _mm256_and_si256(_mm256_srli_epi16::<4>(bits), nibble));
        _mm256_sad_epu8(_mm256_add_epi8(low, high), _mm256_setzero_si256())
    }
}

/// Does the same as [`Segment::place`]. `rest` are the upper 8 bytes of segments. `ONE`: they have units.
///
/// # Safety
/// The caller guarantees AVX2.
#[inline(always)]
unsafe fn inside<const ONE: bool>(base: __m256i, rest: __m256i, words: __m256i) -> __m256i {
    // SAFETY: the caller guarantees AVX2.
    unsafe {
        let number = _mm256_and_si256(_mm256_srli_epi64::<32>(rest), all((1 << 24) - 1));
        let sign = all(1 << 63);
        let above = _mm256_cmpgt_epi64(_mm256_xor_si256(words, sign), _mm256_xor_si256(base, sign));
        let part = _mm256_and_si256(above, _mm256_sub_epi64(words, base));
        let part = _mm256_srlv_epi64(part, _mm256_srli_epi64::<58>(rest));
        let cells = _mm256_or_si256(_mm256_slli_epi64::<5>(number), all(31));
        if ONE {
            let part = min(part, cells);
            let at = low_half(_mm256_add_epi64(rest, _mm256_srli_epi64::<5>(part)));
            let what = _mm256_or_si256(_mm256_and_si256(part, all(31)), all(u64::from(Place::UNIT)));
            return _mm256_or_si256(at, _mm256_slli_epi64::<32>(what));
        }
        let (units, marked) =
            (_mm256_slli_epi64::<UNITS_TO_SIGN>(rest), _mm256_slli_epi64::<MARKED_TO_SIGN>(rest));
        let last = select(select(number, cells, units), all(u64::from(MARKS) - 1), marked);
        let part = min(part, last);
        let cell = _mm256_and_si256(part, all(31));
        let bit = _mm256_sllv_epi64(all(1), cell);
        let further = select(part, _mm256_srli_epi64::<5>(part), units);
        let further = select(further, ones_below(number, bit), marked);
        let at = low_half(_mm256_add_epi64(rest, further));
        // The first mark ends the line of words up to the base.
        let own = _mm256_and_si256(above, _mm256_and_si256(_mm256_srlv_epi64(number, cell), all(1)));
        let of_unit = _mm256_or_si256(cell, all(u64::from(Place::UNIT)));
        let what = select(select(all(u64::from(Place::SEGMENT)), of_unit, units), own, marked);
        _mm256_or_si256(at, _mm256_slli_epi64::<32>(what))
    }
}

/// Puts addresses of what four places lead to into `addresses`.
///
/// # Safety
/// The caller guarantees AVX2, and that `first` is 0 or [`WIDTH`].
#[inline(always)]
unsafe fn find(arrays: &Arrays, places: __m256i, addresses: &mut Lanes, first: usize) {
    // SAFETY: the caller guarantees AVX2 and `first`.
    unsafe {
        let unit = _mm256_slli_epi64::<UNIT_TO_SIGN>(places);
        let (lines, units, segments) = (arrays.lines.addr(), arrays.units.addr(), arrays.segments.addr());
        let starts = select(select(all(lines as u64), all(units as u64), unit), all(segments as u64), places);
        let bits = select(select(all(6), all(3), unit), all(4), places);
        store(_mm256_add_epi64(starts, _mm256_sllv_epi64(low_half(places), bits)), addresses, first);
    }
}

/// Prefetches all addresses.
#[inline(always)]
fn ask(addresses: &Lanes) {
    for address in addresses.0 {
        prefetch(std::ptr::without_provenance::<u8>(address as usize));
    }
}

/// Implements [`Simd::root`](super::Simd::root).
///
/// # Safety
/// The caller guarantees AVX2.
#[inline(always)]
pub(super) unsafe fn root<const ONE: bool>(
    arrays: &Arrays,
    root: Segment,
    words: &Lanes,
    places: &mut Lanes,
) {
    let [base, rest] = root.halves();
    let mut addresses = Lanes::default();
    for first in [0, WIDTH] {
        // SAFETY: the caller guarantees AVX2.
        unsafe {
            let made = inside::<ONE>(all(base), all(rest), load(words, first));
            store(made, places, first);
            if ONE {
                let distance = _mm256_slli_epi64::<3>(low_half(made));
                store(_mm256_add_epi64(all(arrays.units.addr() as u64), distance), &mut addresses, first);
            } else {
                find(arrays, made, &mut addresses, first);
            }
        }
    }
    ask(&addresses);
}

/// Implements [`Simd::step`](super::Simd::step).
///
/// # Safety
/// The caller guarantees AVX2 and the segments of `arrays`; their numbers are clamped to the last one.
#[inline(always)]
pub(super) unsafe fn step(arrays: &Arrays, words: &Lanes, places: &mut Lanes) {
    let (mut numbers, mut addresses) = (Lanes::default(), Lanes::default());
    // SAFETY: the caller guarantees AVX2 and the segments.
    unsafe {
        let (low, high) = (load(places, 0), load(places, WIDTH));
        if _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_or_si256(low, high))) == 0 {
            return;
        }
        let last = all(u64::from(arrays.last_segment));
        // Who has arrived reads the first segment, which is in the cache, and not some other one.
        store(_mm256_and_si256(signs(low), min(low_half(low), last)), &mut numbers, 0);
        store(_mm256_and_si256(signs(high), min(low_half(high), last)), &mut numbers, WIDTH);
        for first in [0, WIDTH] {
            let a = segment(arrays, numbers.0[first]);
            let b = segment(arrays, numbers.0[first + 1]);
            let c = segment(arrays, numbers.0[first + 2]);
            let d = segment(arrays, numbers.0[first + 3]);
            let even = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), c);
            let odd = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(b), d);
            let (base, rest) = (_mm256_unpacklo_epi64(even, odd), _mm256_unpackhi_epi64(even, odd));
            let before = load(places, first);
            let after = select(before, inside::<false>(base, rest, load(words, first)), before);
            store(after, places, first);
            find(arrays, after, &mut addresses, first);
        }
    }
    ask(&addresses);
}

/// Loads a segment.
///
/// # Safety
/// The caller guarantees the segment.
#[inline(always)]
unsafe fn segment(arrays: &Arrays, number: u64) -> __m128i {
    // SAFETY: the caller guarantees the segment; SSE2 is part of x86-64.
    unsafe { _mm_loadu_si128(arrays.segments.add(number as usize).cast()) }
}

/// Loads a unit.
///
/// # Safety
/// The caller guarantees the unit.
#[inline(always)]
unsafe fn unit(arrays: &Arrays, number: u64) -> i64 {
    // SAFETY: the caller guarantees the unit.
    u64::from_le_bytes(unsafe { *arrays.units.add(number as usize) }).cast_signed()
}

/// Implements [`Simd::lines`](super::Simd::lines).
///
/// # Safety
/// The caller guarantees AVX2 and the units of `arrays`; their numbers are clamped to the last one.
#[inline(always)]
pub(super) unsafe fn lines<const ONE: bool>(arrays: &Arrays, places: &mut Lanes) {
    let mut numbers = Lanes::default();
    // SAFETY: the caller guarantees AVX2 and the units.
    unsafe {
        let last = all(u64::from(arrays.last_unit));
        for first in [0, WIDTH] {
            let before = load(places, first);
            let number = min(low_half(before), last);
            // Who has arrived reads the first unit, which is in the cache.
            let reads = signs(_mm256_slli_epi64::<UNIT_TO_SIGN>(before));
            store(if ONE { number } else { _mm256_and_si256(number, reads) }, &mut numbers, first);
        }
        for first in [0, WIDTH] {
            let before = load(places, first);
            let number = |lane: usize| numbers.0[first + lane];
            let units = _mm256_setr_epi64x(
                unit(arrays, number(0)),
                unit(arrays, number(1)),
                unit(arrays, number(2)),
                unit(arrays, number(3)),
            );
            let what = _mm256_srli_epi64::<32>(before);
            let cell = _mm256_and_si256(what, all(31));
            let marks = ones_below(units, _mm256_sllv_epi64(all(1), cell));
            let mut at = _mm256_add_epi64(_mm256_srli_epi64::<32>(units), marks);
            let mut own = _mm256_srlv_epi64(units, cell);
            if !ONE {
                // A place with a segment leads to line 0, and the word may be right of it.
                let of_unit = _mm256_slli_epi64::<UNIT_TO_SIGN>(before);
                let of_line = _mm256_andnot_si256(signs(before), low_half(before));
                at = select(of_line, at, of_unit);
                own = select(what, own, of_unit);
                own = _mm256_or_si256(own, _mm256_srli_epi64::<63>(before));
            }
            let at = min(at, all(u64::from(arrays.last_line)));
            let own = _mm256_slli_epi64::<32>(_mm256_and_si256(own, all(1)));
            store(_mm256_or_si256(at, own), places, first);
        }
    }
}

/// Implements [`Simd::pairs`](super::Simd::pairs).
///
/// # Safety
/// The caller guarantees AVX2.
#[inline(always)]
pub(super) unsafe fn pairs(last_line: u32, places: &mut Lanes, nexts: &mut Lanes) {
    for first in [0, WIDTH] {
        // SAFETY: the caller guarantees AVX2.
        unsafe {
            let both = load(places, first);
            let (at, own) = (low_half(both), _mm256_srli_epi64::<32>(both));
            let next = min(_mm256_add_epi64(at, own), all(u64::from(last_line)));
            store(_mm256_slli_epi64::<{ LINE_BITS as i32 }>(at), places, first);
            store(_mm256_slli_epi64::<{ LINE_BITS as i32 }>(next), nexts, first);
        }
    }
}
