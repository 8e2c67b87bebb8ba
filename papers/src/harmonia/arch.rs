//! Counting of keys below a query, and compilation of work for the vector instructions of the CPU.

use pleach_format::Word;
use std::hint::select_unpredictable;

/// Words that are compared together.
const BLOCK: usize = 8;

/// Returns the number of words below `query` in a node: its whole stride, whose last word is free, hence all
/// ones. Steps of a binary search without branches lead to a block, whose words are compared as vectors.
/// Several searches can overlap, and each touches few lines.
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

/// Work to be done with the best instructions. Its `run` must always be inlined.
pub(super) trait Work {
    /// Result of the work.
    type Output;
    /// Does the work.
    fn run(self) -> Self::Output;
}

/// Does the work, compiled for AVX2 and BMI2 if the CPU has both.
pub(super) fn best<T: Work>(work: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    if pleach_format::cpu::avx2_bmi2() {
        // SAFETY: the check above found AVX2 and BMI2, for which the function is compiled.
        return unsafe { run_avx2(work) };
    }
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn run_avx2<T: Work>(work: T) -> T::Output {
    work.run()
}
