//! Counting keys below a query, and compiling work for the vector instructions that the CPU has.

use pleach_format::Word;
use std::hint::select_unpredictable;

/// Words that are looked at together.
const BLOCK: usize = 8;

/// Number of words below `query` in a node: its whole stride, whose last word is free, hence all ones. Steps of a
/// binary search without branches lead to a block, whose words are compared as vectors: several searches go on
/// at once, and each touches few lines.
#[inline(always)]
pub(super) fn below<W: Word>(node: &[W], query: W) -> usize {
    let (blocks, rest) = node.as_chunks::<BLOCK>();
    let (mut first, mut left) = (0, blocks.len());
    while left > 1 {
        let half = left / 2;
        let right = first + half;
        first = select_unpredictable(blocks[right - 1][BLOCK - 1] < query, right, first);
        left -= half;
    }
    match blocks.get(first) {
        Some(block) if rest.is_empty() || block[BLOCK - 1] >= query => {
            first * BLOCK + block.iter().map(|&word| usize::from(word < query)).sum::<usize>()
        }
        // Strides of u128 may end with half a block.
        _ => blocks.len() * BLOCK + rest.iter().filter(|&&word| word < query).count(),
    }
}

/// Something to do with the best instructions there are. Its `run` must be inlined always.
pub(super) trait Work {
    /// What comes of it.
    type Output;
    /// Does it.
    fn run(self) -> Self::Output;
}

/// Does the work, compiled for AVX2 and BMI2 where the CPU has both.
pub(super) fn best<T: Work>(work: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    if pleach_format::cpu::avx2_bmi2() {
        // SAFETY: the CPU has the features for which the function is compiled.
        return unsafe { run_avx2(work) };
    }
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn run_avx2<T: Work>(work: T) -> T::Output {
    work.run()
}
