//! Counting keys below a query, and compiling work for the vector instructions that the CPU has.

use pleach_format::Word;

/// Words that are looked at together.
const BLOCK: usize = 8;

/// Number of words of an ascending slice that are below `query`: first the blocks whose last word is below it,
/// then the words of one block. Both loops have no branches, so that a compiler makes vector compares of them.
#[inline(always)]
pub(super) fn below<W: Word>(words: &[W], query: W) -> usize {
    let (blocks, rest) = words.as_chunks::<BLOCK>();
    let full = blocks.iter().map(|block| usize::from(block[BLOCK - 1] < query)).sum::<usize>();
    match blocks.get(full) {
        Some(block) => full * BLOCK + block.iter().map(|&word| usize::from(word < query)).sum::<usize>(),
        None => full * BLOCK + rest.iter().filter(|&&word| word < query).count(),
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
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
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
