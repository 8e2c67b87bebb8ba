//! AVX-512: one load and one compare per line; compares yield bit masks directly.

use super::lanes::{Arrays, LANES, Lanes};
use super::{Isa, Simd};
use super::{LINE_BITS, prefetch};
use pleach_format::grid::{MARKS, Place, Segment};
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

    const PAIRS: bool = true;

    #[inline(always)]
    unsafe fn equal_pair32(lines: [&Line; 2], n: usize, query: u32) -> u32 {
        // SAFETY: the caller guarantees AVX-512 F, BW and VL, by the contract of `Simd`.
        unsafe {
            if n > 8 {
                return Self::equal32(lines[0], n, query) | Self::equal32(lines[1], n, query) << 16;
            }
            let wanted = _mm512_set1_epi32(query.cast_signed());
            let bits = u32::from(_mm512_cmpeq_epi32_mask(halves(lines), wanted));
            bits & (((1u32 << n) - 1) * 0x101)
        }
    }

    #[inline(always)]
    unsafe fn equal_pair64(lines: [&Line; 2], n: usize, query: u64) -> u32 {
        // SAFETY: the caller guarantees AVX-512 F, BW and VL, by the contract of `Simd`.
        unsafe {
            if n > 4 {
                return Self::equal64(lines[0], n, query) | Self::equal64(lines[1], n, query) << 16;
            }
            let wanted = _mm512_set1_epi64(query.cast_signed());
            let bits = u32::from(_mm512_cmpeq_epi64_mask(halves(lines), wanted));
            if n == 4 { bits } else { bits & (((1u32 << n) - 1) * 0x11) }
        }
    }

    #[inline(always)]
    unsafe fn from_pair32(lines: [&Line; 2], n: usize, query: u32) -> u32 {
        // SAFETY: the caller guarantees AVX-512 F, BW and VL, by the contract of `Simd`.
        unsafe {
            let wanted = _mm512_set1_epi32(query.cast_signed());
            if n > 8 {
                let first = _mm512_cmpge_epu32_mask(load(lines[0]), wanted);
                let second = _mm512_cmpge_epu32_mask(load(lines[1]), wanted);
                return _mm512_kunpackw(second.into(), first.into()) & (((1u32 << n) - 1) * 0x1_0001);
            }
            let bits = u32::from(_mm512_cmpge_epu32_mask(halves(lines), wanted));
            bits & (((1u32 << n) - 1) * 0x101)
        }
    }

    #[inline(always)]
    unsafe fn from_pair64(lines: [&Line; 2], n: usize, query: u64) -> u32 {
        // SAFETY: the caller guarantees AVX-512 F, BW and VL, by the contract of `Simd`.
        unsafe {
            let wanted = _mm512_set1_epi64(query.cast_signed());
            if n > 4 {
                let first = _mm512_cmpge_epu64_mask(load(lines[0]), wanted);
                let second = _mm512_cmpge_epu64_mask(load(lines[1]), wanted);
                return _mm512_kunpackw(second.into(), first.into()) & (((1u32 << n) - 1) * 0x1_0001);
            }
            let bits = u32::from(_mm512_cmpge_epu64_mask(halves(lines), wanted));
            if n == 4 { bits } else { bits & (((1u32 << n) - 1) * 0x11) }
        }
    }

    #[inline(always)]
    unsafe fn root<const ONE: bool>(arrays: &Arrays, root: Segment, words: &Lanes, places: &mut Lanes) {
        let [base, rest] = root.halves();
        // SAFETY: the caller guarantees AVX-512 F and BW, by the contract of `Simd`.
        unsafe {
            let (base, rest) = (_mm512_set1_epi64(base.cast_signed()), _mm512_set1_epi64(rest.cast_signed()));
            let made = inside::<ONE>(base, rest, load_lanes(words));
            store_lanes(made, places);
            if ONE {
                for &place in &places.0 {
                    prefetch(arrays.units.wrapping_add(place as u32 as usize));
                }
            } else {
                ask(arrays, made);
            }
        }
    }

    #[inline(always)]
    unsafe fn step(arrays: &Arrays, words: &Lanes, places: &mut Lanes) {
        // SAFETY: the caller guarantees AVX-512 F and BW, by the contract of `Simd`, and the segments; their
        // numbers are clamped to the last one.
        unsafe {
            let before = load_lanes(places);
            let go = _mm512_cmplt_epi64_mask(before, _mm512_setzero_si512());
            if go == 0 {
                return;
            }
            // Who has arrived reads the first segment, which is in the cache, and not some other one.
            let at = _mm512_and_si512(before, low_half());
            let last = _mm512_set1_epi64(i64::from(arrays.last_segment));
            let mut numbers = Lanes::default();
            store_lanes(_mm512_maskz_min_epu64(go, at, last), &mut numbers);
            let segment = |lane: usize| _mm_loadu_si128(arrays.segments.add(numbers.0[lane] as usize).cast());
            let four = |a, b, c, d| {
                let low = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(segment(a)), segment(b));
                let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(segment(c)), segment(d));
                _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
            };
            let (even, odd) = (four(0, 2, 4, 6), four(1, 3, 5, 7));
            let (base, rest) = (_mm512_unpacklo_epi64(even, odd), _mm512_unpackhi_epi64(even, odd));
            let after = _mm512_mask_mov_epi64(before, go, inside::<false>(base, rest, load_lanes(words)));
            store_lanes(after, places);
            ask(arrays, after);
        }
    }

    #[inline(always)]
    unsafe fn lines<const ONE: bool>(arrays: &Arrays, places: &mut Lanes) {
        // SAFETY: the caller guarantees AVX-512 F and BW, by the contract of `Simd`, and the units; their numbers
        // are clamped to the last one.
        unsafe {
            let before = load_lanes(places);
            let segment = _mm512_cmplt_epi64_mask(before, _mm512_setzero_si512());
            let unit = _mm512_test_epi64_mask(before, _mm512_set1_epi64(i64::from(Place::UNIT) << 32));
            let (segment, unit) = if ONE { (0, u8::MAX) } else { (segment, unit) };
            let at = _mm512_and_si512(before, low_half());
            let last = _mm512_set1_epi64(i64::from(arrays.last_unit));
            let mut numbers = Lanes::default();
            // Who has arrived reads the first unit, which is in the cache.
            store_lanes(_mm512_maskz_min_epu64(unit, at, last), &mut numbers);
            let unit_at =
                |lane: usize| u64::from_le_bytes(*arrays.units.add(numbers.0[lane] as usize)).cast_signed();
            let units = _mm512_set_epi64(
                unit_at(7),
                unit_at(6),
                unit_at(5),
                unit_at(4),
                unit_at(3),
                unit_at(2),
                unit_at(1),
                unit_at(0),
            );
            let cell = _mm512_and_si512(_mm512_srli_epi64::<32>(before), _mm512_set1_epi64(31));
            let bit = _mm512_sllv_epi64(_mm512_set1_epi64(1), cell);
            let marks = count_ones(_mm512_and_si512(units, below(bit)));
            let inside = _mm512_add_epi64(_mm512_srli_epi64::<32>(units), marks);
            let at = _mm512_mask_mov_epi64(_mm512_maskz_mov_epi64(!segment, at), unit, inside);
            let own = _mm512_mask_test_epi64_mask(unit, units, bit)
                | _mm512_mask_test_epi64_mask(!unit, before, _mm512_set1_epi64(1 << 32))
                | segment;
            let at = _mm512_min_epu64(at, _mm512_set1_epi64(i64::from(arrays.last_line)));
            store_lanes(_mm512_mask_or_epi64(at, own, at, _mm512_set1_epi64(1 << 32)), places);
        }
    }

    #[inline(always)]
    unsafe fn pairs(last_line: u32, places: &mut Lanes, nexts: &mut Lanes) {
        // SAFETY: the caller guarantees AVX-512 F, by the contract of `Simd`.
        unsafe {
            let both = load_lanes(places);
            let (at, own) = (_mm512_and_si512(both, low_half()), _mm512_srli_epi64::<32>(both));
            let next = _mm512_min_epu64(_mm512_add_epi64(at, own), _mm512_set1_epi64(i64::from(last_line)));
            store_lanes(_mm512_slli_epi64::<{ LINE_BITS }>(at), places);
            store_lanes(_mm512_slli_epi64::<{ LINE_BITS }>(next), nexts);
        }
    }
}

/// Loads the first half of each line.
///
/// # Safety
/// The caller guarantees AVX-512 F.
#[inline(always)]
unsafe fn halves([first, second]: [&Line; 2]) -> __m512i {
    // SAFETY: the caller guarantees AVX-512 F; a line has 64 bytes, and the loads need no alignment.
    unsafe {
        let first = _mm256_loadu_si256(first.as_ptr().cast());
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(first), _mm256_loadu_si256(second.as_ptr().cast()))
    }
}

/// # Safety
/// The caller guarantees AVX-512 F.
#[inline(always)]
unsafe fn load_lanes(lanes: &Lanes) -> __m512i {
    // SAFETY: the caller guarantees AVX-512 F; `Lanes` are 64 bytes.
    unsafe { _mm512_loadu_si512(lanes.0.as_ptr().cast()) }
}

/// # Safety
/// The caller guarantees AVX-512 F.
#[inline(always)]
unsafe fn store_lanes(from: __m512i, lanes: &mut Lanes) {
    // SAFETY: the caller guarantees AVX-512 F; `Lanes` are 64 bytes.
    unsafe { _mm512_storeu_si512(lanes.0.as_mut_ptr().cast(), from) }
}

/// Returns the lower half of the bits of each lane.
///
/// # Safety
/// The caller guarantees AVX-512 F.
#[inline(always)]
unsafe fn low_half() -> __m512i {
    // SAFETY: the caller guarantees AVX-512 F.
    unsafe { _mm512_set1_epi64(i64::from(u32::MAX)) }
}

/// Returns the bits below one bit.
///
/// # Safety
/// The caller guarantees AVX-512 F.
#[inline(always)]
unsafe fn below(bit: __m512i) -> __m512i {
    // SAFETY: the caller guarantees AVX-512 F.
    unsafe { _mm512_add_epi64(bit, _mm512_set1_epi64(-1)) }
}

/// Counts the bits of each lane.
///
/// # Safety
/// The caller guarantees AVX-512 F and BW.
#[inline(always)]
unsafe fn count_ones(bits: __m512i) -> __m512i {
    // SAFETY: the caller guarantees AVX-512 F and BW.
    unsafe {
        let of_nibble = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
        let nibble = _mm512_set1_epi8(15);
        let low = _mm512_shuffle_epi8(of_nibble, _mm512_and_si512(bits, nibble));
        let high = _mm512_shuffle_epi8(of_nibble, _mm512_and_si512(_mm512_srli_epi16::<4>(bits), nibble));
        _mm512_sad_epu8(_mm512_add_epi8(low, high), _mm512_setzero_si512())
    }
}

/// Does the same as [`Segment::place`]. `rest` are the upper 8 bytes of segments. `ONE`: they have units.
///
/// # Safety
/// The caller guarantees AVX-512 F and BW.
#[inline(always)]
unsafe fn inside<const ONE: bool>(base: __m512i, rest: __m512i, words: __m512i) -> __m512i {
    // SAFETY: the caller guarantees AVX-512 F and BW.
    unsafe {
        let number = _mm512_and_si512(_mm512_srli_epi64::<32>(rest), _mm512_set1_epi64((1 << 24) - 1));
        let marked = _mm512_test_epi64_mask(rest, _mm512_set1_epi64(1 << 57));
        let unit = _mm512_mask_test_epi64_mask(!marked, rest, _mm512_set1_epi64(1 << 56));
        let (marked, unit) = if ONE { (0, u8::MAX) } else { (marked, unit) };
        let part = _mm512_sub_epi64(_mm512_max_epu64(words, base), base);
        let part = _mm512_srlv_epi64(part, _mm512_srli_epi64::<58>(rest));
        let cells = _mm512_or_si512(_mm512_slli_epi64::<5>(number), _mm512_set1_epi64(31));
        let last = _mm512_mask_mov_epi64(number, unit, cells);
        let last = _mm512_mask_mov_epi64(last, marked, _mm512_set1_epi64(i64::from(MARKS) - 1));
        let part = _mm512_min_epu64(part, last);
        let cell = _mm512_and_si512(part, _mm512_set1_epi64(31));
        let bit = _mm512_sllv_epi64(_mm512_set1_epi64(1), cell);
        // The first mark ends the line of words up to the base.
        let own = _mm512_mask_test_epi64_mask(marked & _mm512_cmpgt_epu64_mask(words, base), number, bit);
        let further = _mm512_mask_srli_epi64::<5>(part, unit, part);
        let further = if ONE {
            further
        } else {
            let marks = count_ones(_mm512_and_si512(number, below(bit)));
            _mm512_mask_mov_epi64(further, marked, marks)
        };
        let at = _mm512_and_si512(_mm512_add_epi64(rest, further), low_half());
        let what = _mm512_maskz_mov_epi64(!(marked | unit), _mm512_set1_epi64(i64::MIN));
        let in_unit =
            _mm512_or_si512(_mm512_slli_epi64::<32>(cell), _mm512_set1_epi64(i64::from(Place::UNIT) << 32));
        let what = _mm512_mask_mov_epi64(what, unit, in_unit);
        let what = _mm512_mask_mov_epi64(what, own, _mm512_set1_epi64(1 << 32));
        _mm512_or_si512(at, what)
    }
}

/// Prefetches what places lead to.
///
/// # Safety
/// The caller guarantees AVX-512 F.
#[inline(always)]
unsafe fn ask(arrays: &Arrays, places: __m512i) {
    // SAFETY: the caller guarantees AVX-512 F.
    unsafe {
        let segment = _mm512_cmplt_epi64_mask(places, _mm512_setzero_si512());
        let unit = _mm512_test_epi64_mask(places, _mm512_set1_epi64(i64::from(Place::UNIT) << 32));
        let pick = |line, of_segment, of_unit| {
            let line = _mm512_mask_mov_epi64(_mm512_set1_epi64(line), segment, _mm512_set1_epi64(of_segment));
            _mm512_mask_mov_epi64(line, unit, _mm512_set1_epi64(of_unit))
        };
        let address = |start: usize| start as i64;
        let starts =
            pick(address(arrays.lines.addr()), address(arrays.segments.addr()), address(arrays.units.addr()));
        let distance = _mm512_sllv_epi64(_mm512_and_si512(places, low_half()), pick(6, 4, 3));
        let mut addresses = Lanes::default();
        store_lanes(_mm512_add_epi64(starts, distance), &mut addresses);
        for lane in 0..LANES {
            prefetch(std::ptr::without_provenance::<u8>(addresses.0[lane] as usize));
        }
    }
}
