//! Searches in trees of nodes, in groups of queries, compiled for each instruction set: what Harmonia's tree and
//! the contiguous B+tree have in common.

use crate::arch::{Isa, Simd};
use pleach_format::Word;

/// Queries per group.
const GROUP: usize = 16;

/// A tree whose queries go down in groups.
pub(crate) trait Nodes {
    /// Returns the ranks of the lower bounds of a group's queries. Cache misses of the group overlap.
    ///
    /// # Safety
    /// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
    unsafe fn group<S: Simd, W: Word, const N: usize>(&self, queries: &[W; N]) -> [u64; N];
}

/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
unsafe fn all<S: Simd, T: Nodes, W: Word>(tree: &T, queries: &[W], ranks: &mut [u64]) {
    let (groups, rest) = queries.as_chunks::<GROUP>();
    let (outputs, last) = ranks.as_chunks_mut::<GROUP>();
    for (group, output) in groups.iter().zip(outputs) {
        // SAFETY: the caller guarantees the CPU features of `S`.
        *output = unsafe { tree.group::<S, W, GROUP>(group) };
    }
    for (&query, output) in rest.iter().zip(last) {
        // SAFETY: the caller guarantees the CPU features of `S`.
        [*output] = unsafe { tree.group::<S, W, 1>(&[query]) };
    }
}

/// Writes the ranks of lower bounds. Portable code replaces an instruction set that this CPU lacks.
pub(crate) fn search<T: Nodes, W: Word>(tree: &T, isa: Isa, queries: &[W], ranks: &mut [u64]) {
    // SAFETY: each variant is called only after `is_available` has found its features; portable code needs
    // none.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 if isa.is_available() => avx2(tree, queries, ranks),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if isa.is_available() => avx512(tree, queries, ranks),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon if isa.is_available() => neon(tree, queries, ranks),
            _ => all::<crate::arch::scalar::Scalar, T, W>(tree, queries, ranks),
        }
    }
}

macro_rules! variants {
    ($(#[$attribute:meta] #[$feature:meta] $name:ident $simd:ty;)*) => {$(
        #[$attribute]
        #[$feature]
        /// # Safety
        /// The caller guarantees a CPU with the function's features.
        unsafe fn $name<T: Nodes, W: Word>(tree: &T, queries: &[W], ranks: &mut [u64]) {
            // SAFETY: the function is compiled for the type's features, and the caller guarantees that the
            // CPU has them.
            unsafe { all::<$simd, T, W>(tree, queries, ranks) }
        }
    )*};
}
variants! {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    avx2 crate::arch::avx2::Avx2;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,popcnt")]
    avx512 crate::arch::avx512::Avx512;
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    neon crate::arch::neon::Neon;
}
