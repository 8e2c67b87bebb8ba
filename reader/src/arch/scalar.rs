//! Portable counting: plain loops, which the compiler may vectorise for the baseline CPU.

use super::Simd;
use pleach_format::line::Line;

/// Needs no CPU features.
#[derive(Clone, Copy)]
pub struct Scalar(());

impl Scalar {
    /// The proof for every CPU.
    pub const PROOF: Self = Self(());
}

impl Simd for Scalar {
    fn detect() -> Option<Self> {
        Some(Self::PROOF)
    }
    #[inline(always)]
    unsafe fn below8(line: &Line, n: usize, query: u8) -> usize {
        line[..n].iter().map(|&code| usize::from(code < query)).sum()
    }
    #[inline(always)]
    unsafe fn below16(line: &Line, n: usize, query: u16) -> usize {
        let (words, _) = line.as_chunks::<2>();
        words[..n].iter().map(|&word| usize::from(u16::from_le_bytes(word) < query)).sum()
    }
    #[inline(always)]
    unsafe fn below32(line: &Line, n: usize, query: u32) -> usize {
        let (words, _) = line.as_chunks::<4>();
        words[..n].iter().map(|&word| usize::from(u32::from_le_bytes(word) < query)).sum()
    }
    #[inline(always)]
    unsafe fn below64(line: &Line, n: usize, query: u64) -> usize {
        let (words, _) = line.as_chunks::<8>();
        words[..n].iter().map(|&word| usize::from(u64::from_le_bytes(word) < query)).sum()
    }
}
