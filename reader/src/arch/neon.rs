//! NEON: four vectors of 16 bytes per line. A compare yields lanes of all ones, that is minus one.
//! Subtracting the lanes that count and adding across them yields the number.

use super::{Isa, Simd};
use pleach_format::line::Line;
use std::arch::aarch64::*;

/// NEON, which every 64-bit Arm has.
#[derive(Clone, Copy)]
pub struct Neon(());

const LANES8: [u8; 64] = {
    let mut lanes = [0; 64];
    let mut lane = 0;
    while lane < 64 {
        lanes[lane] = lane as u8;
        lane += 1;
    }
    lanes
};
const LANES16: [u16; 32] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
    29, 30, 31,
];
const LANES32: [u32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const LANES64: [u64; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

impl Simd for Neon {
    fn detect() -> Option<Self> {
        Isa::Neon.is_available().then_some(Self(()))
    }
    #[inline(always)]
    unsafe fn below8(line: &Line, n: usize, query: u8) -> usize {
        // SAFETY: NEON is part of the architecture. Loads of 16 bytes at 0, 16, 32 and 48 stay in the 64
        // bytes of the line, and loads of lane numbers stay in their array.
        unsafe {
            let wanted = vdupq_n_u8(query);
            let limit = vdupq_n_u8(n as u8);
            let mut count = vdupq_n_u8(0);
            for vector in 0..4 {
                let codes = vld1q_u8(line.as_ptr().add(16 * vector));
                let lanes = vld1q_u8(LANES8.as_ptr().add(16 * vector));
                count = vsubq_u8(count, vandq_u8(vcltq_u8(codes, wanted), vcltq_u8(lanes, limit)));
            }
            vaddvq_u8(count) as usize
        }
    }

    #[inline(always)]
    unsafe fn below16(line: &Line, n: usize, query: u16) -> usize {
        // SAFETY: NEON is part of the architecture. Loads of 16 bytes at 0, 16, 32 and 48 stay in the 64
        // bytes of the line, and loads of lane numbers stay in their array.
        unsafe {
            let wanted = vdupq_n_u16(query);
            let limit = vdupq_n_u16(n as u16);
            let mut count = vdupq_n_u16(0);
            for vector in 0..4 {
                let words = vreinterpretq_u16_u8(vld1q_u8(line.as_ptr().add(16 * vector)));
                let lanes = vld1q_u16(LANES16.as_ptr().add(8 * vector));
                count = vsubq_u16(count, vandq_u16(vcltq_u16(words, wanted), vcltq_u16(lanes, limit)));
            }
            vaddvq_u16(count) as usize
        }
    }

    #[inline(always)]
    unsafe fn below32(line: &Line, n: usize, query: u32) -> usize {
        // SAFETY: NEON is part of the architecture. The caller guarantees `n <= 16`, so loads stay in the 64
        // bytes of the line, and loads of lane numbers stay in their array.
        unsafe {
            let wanted = vdupq_n_u32(query);
            let limit = vdupq_n_u32(n as u32);
            let mut count = vdupq_n_u32(0);
            for vector in 0..n.div_ceil(4) {
                let words = vreinterpretq_u32_u8(vld1q_u8(line.as_ptr().add(16 * vector)));
                let lanes = vld1q_u32(LANES32.as_ptr().add(4 * vector));
                count = vsubq_u32(count, vandq_u32(vcltq_u32(words, wanted), vcltq_u32(lanes, limit)));
            }
            vaddvq_u32(count) as usize
        }
    }

    #[inline(always)]
    unsafe fn below64(line: &Line, n: usize, query: u64) -> usize {
        // SAFETY: NEON is part of the architecture. The caller guarantees `n <= 8`, so loads stay in the 64
        // bytes of the line, and loads of lane numbers stay in their array.
        unsafe {
            let wanted = vdupq_n_u64(query);
            let limit = vdupq_n_u64(n as u64);
            let mut count = vdupq_n_u64(0);
            for vector in 0..n.div_ceil(2) {
                let words = vreinterpretq_u64_u8(vld1q_u8(line.as_ptr().add(16 * vector)));
                let lanes = vld1q_u64(LANES64.as_ptr().add(2 * vector));
                count = vsubq_u64(count, vandq_u64(vcltq_u64(words, wanted), vcltq_u64(lanes, limit)));
            }
            vaddvq_u64(count) as usize
        }
    }
}
