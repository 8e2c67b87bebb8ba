//! Vector instructions: one small trait over a line of 64 bytes, with one implementation per level.
//!
//! The searches need two operations: count the words among the first `n` of a line that are below a query,
//! and find those that are equal to it. Each method is `#[inline(always)]` and never carries
//! `#[target_feature]` itself. The outer function of a variant does, so that the whole descent is compiled
//! once for each level. A value of a level's type proves that this CPU has its features, because
//! [`Simd::detect`] makes one only if the CPU has them (the portable level needs none). The engines of
//! `search` are made of such a value; those of trees ask [`Isa::is_available`] before each call.

use lanes::{Arrays, Lanes};
use pleach_format::cpu;
use pleach_format::grid;
use pleach_format::layout::LINE_BYTES;
use pleach_format::line::Line;
use pleach_format::mask::{Chunk, Mask, Place};
use pleach_format::tail::Tail;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

pub(crate) mod lanes;
pub(crate) mod scalar;

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_steps;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;

/// A level of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// Portable code, always present: the reference for the others.
    Scalar,
    /// x86-64 with AVX2, BMI1, BMI2 and POPCNT.
    Avx2,
    /// x86-64 with AVX-512 F, BW, VL, and the above.
    Avx512,
    /// 64-bit Arm.
    Neon,
}

impl Isa {
    /// All levels; a later one is preferred to an earlier one.
    pub const ALL: [Isa; 4] = [Isa::Scalar, Isa::Neon, Isa::Avx2, Isa::Avx512];

    /// Returns true if this CPU has the level.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            Self::Avx2 => cpu::avx2_search(),
            Self::Avx512 => cpu::avx512_search(),
            Self::Neon => cpu::neon(),
        }
    }

    /// Returns the levels of this CPU, least preferred first.
    #[must_use]
    pub fn available() -> Vec<Isa> {
        Self::ALL.into_iter().filter(|isa| isa.is_available()).collect()
    }

    /// Returns the best level of this CPU.
    #[must_use]
    pub fn best() -> Isa {
        Self::ALL.into_iter().rfind(|isa| isa.is_available()).unwrap_or(Self::Scalar)
    }

    /// Returns the lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isa {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|isa| isa.name() == name)
            .ok_or_else(|| format!("unknown instruction set `{name}`: use scalar, avx2, avx512 or neon"))
    }
}

/// Compares words of a line with a query.
///
/// Methods are not called from closures: a closure that is not inlined is compiled without the features, and then each
/// instruction is a call.
///
/// # Safety
/// The caller of a method guarantees that the calling code is compiled for, and runs on, a CPU with the
/// features of the implementing type.
#[doc(hidden)]
pub trait Simd: Copy + Send + Sync + 'static {
    /// Returns the proof that this CPU has the features; `None` if it has not.
    fn detect() -> Option<Self>;
    /// Counts the bytes among the first `n <= 63` that are below `query`.
    unsafe fn below8(line: &Line, n: usize, query: u8) -> usize;
    /// Counts the 16-bit words among the first `n <= 31` that are below `query`.
    unsafe fn below16(line: &Line, n: usize, query: u16) -> usize;
    /// Counts the 32-bit words among the first `n <= 16` that are below `query`.
    unsafe fn below32(line: &Line, n: usize, query: u32) -> usize;
    /// Counts the 64-bit words among the first `n <= 8` that are below `query`.
    unsafe fn below64(line: &Line, n: usize, query: u64) -> usize;
    /// Returns a bitmap of the first `n <= 16` 32-bit words; a bit is 1 if the word is `query`.
    #[inline(always)]
    unsafe fn equal32(line: &Line, n: usize, query: u32) -> u32 {
        let (words, _) = line.as_chunks::<4>();
        (0..n).fold(0, |bits, slot| bits | u32::from(u32::from_le_bytes(words[slot]) == query) << slot)
    }
    /// Returns a bitmap of the first `n <= 8` 64-bit words; a bit is 1 if the word is `query`.
    #[inline(always)]
    unsafe fn equal64(line: &Line, n: usize, query: u64) -> u32 {
        let (words, _) = line.as_chunks::<8>();
        (0..n).fold(0, |bits, slot| bits | u32::from(u64::from_le_bytes(words[slot]) == query) << slot)
    }
    /// Two lines are compared with a query for little more than one: then `equal_pair32` and `equal_pair64` are asked.
    const PAIRS: bool = false;
    /// Returns a bitmap of the first `n` words of two lines; a bit is 1 if the word is `query`. Those of the second
    /// line stand from bit [`second_at`] on.
    #[inline(always)]
    unsafe fn equal_pair32(lines: [&Line; 2], n: usize, query: u32) -> u32 {
        // SAFETY: the caller guarantees the CPU features.
        let (first, second) =
            unsafe { (Self::equal32(lines[0], n, query), Self::equal32(lines[1], n, query)) };
        first | second << second_at(4, n)
    }
    /// The same of words of 64 bits.
    #[inline(always)]
    unsafe fn equal_pair64(lines: [&Line; 2], n: usize, query: u64) -> u32 {
        // SAFETY: the caller guarantees the CPU features.
        let (first, second) =
            unsafe { (Self::equal64(lines[0], n, query), Self::equal64(lines[1], n, query)) };
        first | second << second_at(8, n)
    }
    /// Returns a bitmap of the first `n` words of two lines, as `equal_pair32` does; a bit is 1 if the word is not
    /// below `query`.
    #[inline(always)]
    unsafe fn from_pair32(lines: [&Line; 2], n: usize, query: u32) -> u32 {
        // SAFETY: the caller guarantees the CPU features.
        let (first, second) =
            unsafe { (Self::below32(lines[0], n, query), Self::below32(lines[1], n, query)) };
        bits_from(first, n) | bits_from(second, n) << second_at(4, n)
    }
    /// The same of words of 64 bits.
    #[inline(always)]
    unsafe fn from_pair64(lines: [&Line; 2], n: usize, query: u64) -> u32 {
        // SAFETY: the caller guarantees the CPU features.
        let (first, second) =
            unsafe { (Self::below64(lines[0], n, query), Self::below64(lines[1], n, query)) };
        bits_from(first, n) | bits_from(second, n) << second_at(8, n)
    }
    /// Puts the places of words in one segment into `places`, and prefetches what they lead to. `ONE`: it has units.
    #[inline(always)]
    unsafe fn root<const ONE: bool>(arrays: &Arrays, root: grid::Segment, words: &Lanes, places: &mut Lanes) {
        for (place, &word) in places.0.iter_mut().zip(&words.0) {
            *place = root.place(word).to_u64();
        }
        ask(arrays, places);
    }
    /// Leads each word whose place is a segment to its place in that one, and prefetches what it leads to.
    ///
    /// The caller also guarantees the segments of `arrays`.
    #[inline(always)]
    unsafe fn step(arrays: &Arrays, words: &Lanes, places: &mut Lanes) {
        for (both, &word) in places.0.iter_mut().zip(&words.0) {
            let place = grid::Place::from_u64(*both);
            let segment = u64::from(place.what & grid::Place::SEGMENT != 0).wrapping_neg();
            // Who has arrived reads the first segment, which is in the cache, and not some other one.
            // SAFETY: the caller guarantees the segments.
            let inside = unsafe { arrays.segment(segment as u32 & place.at) }.place(word);
            *both = segment & inside.to_u64() | !segment & *both;
        }
        ask(arrays, places);
    }
    /// Leads places to tuple lines: each becomes the number of a line, and bit 32 is 1 if the word may be right of
    /// it. `ONE`: all places are units.
    ///
    /// The caller also guarantees the units of `arrays`.
    #[inline(always)]
    unsafe fn lines<const ONE: bool>(arrays: &Arrays, places: &mut Lanes) {
        for both in &mut places.0 {
            // SAFETY: the caller guarantees the units.
            let (at, own) = unsafe { arrays.line(grid::Place::from_u64(*both)) };
            *both = grid::Place { at, what: own }.to_u64();
        }
    }
    /// Makes bytes of the numbers of tuple lines, as [`Simd::lines`] leaves them: `places` become the first byte of
    /// each line, counted from the first line, and `nexts` that of the next line if the word may be right of its own,
    /// but not past the last line.
    #[inline(always)]
    unsafe fn pairs(last_line: u32, places: &mut Lanes, nexts: &mut Lanes) {
        for (place, next) in places.0.iter_mut().zip(&mut nexts.0) {
            let grid::Place { at, what: own } = grid::Place::from_u64(*place);
            *place = u64::from(at) << LINE_BITS;
            *next = u64::from((at + own).min(last_line)) << LINE_BITS;
        }
    }
}

/// Binary logarithm of the bytes of a line.
pub(crate) const LINE_BITS: u32 = LINE_BYTES.trailing_zeros();

/// Returns the bit at which the words of the second line begin in a bitmap of two lines: that of the second half of a
/// vector which holds the words of both, if it does.
pub(crate) const fn second_at(word_bytes: usize, n: usize) -> u32 {
    let half_line = LINE_BYTES / 2;
    if word_bytes * n <= half_line { (half_line / word_bytes) as u32 } else { 16 }
}

/// Returns the bits from `first` to before `n`.
#[inline(always)]
fn bits_from(first: usize, n: usize) -> u32 {
    (1 << n) - (1 << first)
}

/// Prefetches what places lead to.
#[inline(always)]
fn ask(arrays: &Arrays, places: &Lanes) {
    for &place in &places.0 {
        prefetch(arrays.address(grid::Place::from_u64(place)));
    }
}

/// Prefetches the cache line at `pointer`. A hint: any address is allowed.
#[inline(always)]
pub fn prefetch<T>(pointer: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the CPU guarantees that a prefetch never faults at any address; SSE is part of x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(pointer.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the CPU guarantees that `prfm` never faults and changes no register or memory.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) pointer, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = pointer;
}

/// Runs [`Mask::place`], with the instruction that gathers bits if this CPU has it.
#[inline]
pub(crate) fn place(mask: &Mask, query: &[u8]) -> Place {
    let mut found = Place::Word(0);
    places(mask, 1, |_| query, |_, place| found = place);
    found
}

/// Prefetch distance for long queries, which do not share cache lines.
#[cfg(target_arch = "x86_64")]
const QUERIES_AHEAD: usize = 16;

/// Runs [`place`] for many queries, with one check for the instruction.
#[inline]
pub(crate) fn places<'q>(
    mask: &Mask,
    count: usize,
    query: impl Fn(usize) -> &'q [u8],
    put: impl FnMut(usize, Place),
) {
    #[cfg(target_arch = "x86_64")]
    if cpu::bmi() {
        // SAFETY: `cpu::bmi` has just found BMI1 and BMI2.
        return unsafe { places_bmi2(mask, count, query, put) };
    }
    let mut put = put;
    (0..count).for_each(|at| put(at, mask.place(query(at), Chunk::compress)));
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2")]
fn places_bmi2<'q>(
    mask: &Mask,
    count: usize,
    query: impl Fn(usize) -> &'q [u8],
    mut put: impl FnMut(usize, Place),
) {
    let long = mask.key_bytes_max() >= 64;
    for at in 0..count {
        if long && at + QUERIES_AHEAD < count {
            prefetch(query(at + QUERIES_AHEAD).as_ptr());
        }
        let bytes = query(at);
        put(at, mask.place(bytes, |chunk, bytes| std::arch::x86_64::_pext_u64(bytes, chunk.mask)));
    }
}

/// Runs [`Tail::compare`], with the instruction that scatters bits if this CPU has it.
#[inline]
pub(crate) fn compare_tail(shape: &Tail, tail: &[u8], query: &[u8]) -> Ordering {
    #[cfg(target_arch = "x86_64")]
    if cpu::bmi2() {
        // SAFETY: `cpu::bmi2` has just found BMI2.
        return unsafe { compare_tail_bmi2(shape, tail, query) };
    }
    shape.compare(tail, query, Chunk::expand)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi2")]
fn compare_tail_bmi2(shape: &Tail, tail: &[u8], query: &[u8]) -> Ordering {
    use std::arch::x86_64::_pdep_u64;
    // Usually they are equal: then neither an order nor a branch per part is needed.
    if let Some(last) = shape.parts().last()
        && tail.len() >= shape.bytes() + 8
        && query.len() >= last.at + 8
        && !shape.has_wide()
    {
        let mut different = 0;
        for part in shape.parts() {
            // SAFETY: `Tail` guarantees that parts ascend, so `part.at <= last.at`, and that
            // `part.byte <= shape.bytes()`. The conditions above guarantee 8 bytes from there in both slices.
            let (bits, asked) = unsafe {
                let bits = tail.as_ptr().add(part.byte).cast::<[u8; 8]>().read();
                (u64::from_le_bytes(bits), query.as_ptr().add(part.at).cast::<[u8; 8]>().read())
            };
            let stored = _pdep_u64(bits >> part.shift, part.chunk.mask) | part.chunk.reference;
            different |= stored ^ u64::from_le_bytes(asked);
        }
        if different == 0 {
            return shape.length(tail).cmp(&query.len());
        }
    }
    shape.compare(tail, query, |chunk, bits| _pdep_u64(bits, chunk.mask))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `.ci/neon` reads the output: the other tests search with the best of these instruction sets.
    #[test]
    fn instruction_sets_are_told() {
        let names: Vec<&str> = Isa::available().into_iter().map(Isa::name).collect();
        println!("instruction sets: {}", names.join(", "));
        assert!(names.contains(&Isa::best().name()) && names.contains(&"scalar"));
    }

    #[test]
    fn steps_of_vectors_are_those_of_plain_code() {
        #[cfg(target_arch = "x86_64")]
        {
            steps_are_those_of_plain_code::<avx2::Avx2>("AVX2");
            steps_are_those_of_plain_code::<avx512::Avx512>("AVX-512");
        }
        #[cfg(target_arch = "aarch64")]
        steps_are_those_of_plain_code::<neon::Neon>("NEON");
    }

    /// Random segments, most of which no writer makes, and words near them: each step is that of plain code.
    fn steps_are_those_of_plain_code<S: Simd>(name: &str) {
        if S::detect().is_none() {
            return println!("skipped: this CPU has no {name}");
        }
        let mut state = 7u64;
        let mut draw = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            (state ^ state >> 33).rotate_right((state >> 58) as u32)
        };
        let of_word = |word: u64| word.to_le_bytes();
        for round in 0..20_000 {
            let bits = draw() % 64;
            let segments: Vec<[u8; 16]> = (0..9)
                .map(|_| {
                    let mut bytes = [0; 16];
                    bytes[..8].copy_from_slice(&of_word(draw() >> bits));
                    bytes[8..].copy_from_slice(&of_word((draw() >> (round & 7) >> 32 << 32) | (draw() % 12)));
                    bytes
                })
                .collect();
            let units: Vec<[u8; 8]> = (0..9).map(|_| of_word(draw() & draw() & 0xF_FFFF_FFFF)).collect();
            let lines = vec![[0; 64]; 9];
            let (last_segment, last_unit, last_line) = (8, 8, (draw() % 9) as u32);
            let (segments_at, units_at, lines_at) =
                (segments.as_ptr(), units.as_ptr(), lines.as_ptr().cast());
            let arrays = Arrays {
                segments: segments_at,
                last_segment,
                units: units_at,
                last_unit,
                lines: lines_at,
                last_line,
            };
            let words = Lanes(std::array::from_fn(|_| draw() >> bits));
            let root = grid::Segment::from_bytes(&segments[0]);
            let is_one = matches!(root.parts(), Some(grid::Parts::Units(_)));
            let (mut plain, mut vector) = (Lanes::default(), Lanes::default());
            let (mut plain_next, mut vector_next) = (Lanes::default(), Lanes::default());
            let check = |plain: &Lanes, vector: &Lanes| assert_eq!(plain.0, vector.0, "{words:x?} {root:x?}");
            // SAFETY: the CPU has the features, and the arrays have the lengths.
            unsafe {
                scalar::Scalar::root::<false>(&arrays, root, &words, &mut plain);
                S::root::<false>(&arrays, root, &words, &mut vector);
                check(&plain, &vector);
                if is_one {
                    S::root::<true>(&arrays, root, &words, &mut vector);
                    check(&plain, &vector);
                    let (mut plain, mut vector) = (plain, vector);
                    scalar::Scalar::lines::<true>(&arrays, &mut plain);
                    S::lines::<true>(&arrays, &mut vector);
                    check(&plain, &vector);
                }
                for _ in 0..round % 4 {
                    scalar::Scalar::step(&arrays, &words, &mut plain);
                    S::step(&arrays, &words, &mut vector);
                    check(&plain, &vector);
                }
                scalar::Scalar::lines::<false>(&arrays, &mut plain);
                S::lines::<false>(&arrays, &mut vector);
                check(&plain, &vector);
                scalar::Scalar::pairs(last_line, &mut plain, &mut plain_next);
                S::pairs(last_line, &mut vector, &mut vector_next);
                check(&plain, &vector);
                check(&plain_next, &vector_next);
            }
        }
    }
}
