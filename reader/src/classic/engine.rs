//! The searches compiled for each instruction set.

use super::descent::{self, Step};
use super::paged::{self, Level};
use crate::arch::{Isa, Simd};
use pleach_format::classic::TreeWord;

/// Number of queries whose cache misses overlap.
const IN_FLIGHT: usize = 16;

/// The levels of a tree.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// Keys in full.
    Full(Vec<Step>),
    /// Pages with records.
    Paged(Vec<Level>),
}

/// Writes the gaps in which queries end; the cache misses of `N` queries overlap.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires, and BMI2 with `PEXT`.
#[inline(always)]
pub(super) unsafe fn any<S: Simd, W: TreeWord, const PEXT: bool, const N: usize>(
    way: &Way,
    bytes: &[u8],
    queries: &[W],
    gaps: &mut [u64],
) {
    let (groups, rest) = queries.as_chunks::<N>();
    let (outputs, last) = gaps.as_chunks_mut::<N>();
    for (group, output) in groups.iter().zip(outputs) {
        // SAFETY: the caller guarantees the CPU features of `S`, and BMI2 with `PEXT`.
        *output = unsafe {
            match way {
                Way::Full(steps) => descent::group::<S, W, N>(steps, bytes, group),
                Way::Paged(levels) => paged::group::<S, W, PEXT, N>(levels, bytes, group),
            }
        };
    }
    for (&query, output) in rest.iter().zip(last) {
        // SAFETY: the caller guarantees the CPU features of `S`, and BMI2 with `PEXT`.
        [*output] = unsafe {
            match way {
                Way::Full(steps) => descent::group::<S, W, 1>(steps, bytes, &[query]),
                Way::Paged(levels) => paged::group::<S, W, PEXT, 1>(levels, bytes, &[query]),
            }
        };
    }
}

/// Each variant has its own module, since generic code is compiled module by module, and the variants are
/// large.
macro_rules! variants {
    ($($(#[cfg($cfg:meta)] #[target_feature($features:meta)])? $name:ident $simd:ty, $pext:literal;)*) => {$(
        $(#[cfg($cfg)])?
        mod $name {
            use crate::classic::engine::{IN_FLIGHT, TreeWord, Way, any};

            $(#[target_feature($features)])?
            /// # Safety
            /// The caller guarantees a CPU with the function's features.
            pub(super) unsafe fn search<W: TreeWord>(
                way: &Way,
                bytes: &[u8],
                queries: &[W],
                gaps: &mut [u64],
            ) {
                // SAFETY: the function is compiled for the type's features, and the caller guarantees that
                // the CPU has them.
                unsafe { any::<$simd, W, $pext, IN_FLIGHT>(way, bytes, queries, gaps) }
            }
        }
    )*};
}
variants! {
    scalar crate::arch::scalar::Scalar, false;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    avx2 crate::arch::avx2::Avx2, true;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,popcnt")]
    avx512 crate::arch::avx512::Avx512, true;
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    neon crate::arch::neon::Neon, false;
}

/// Writes the gaps in which queries end. Portable code replaces an instruction set that this CPU lacks.
pub(crate) fn search<W: TreeWord>(isa: Isa, way: &Way, bytes: &[u8], queries: &[W], gaps: &mut [u64]) {
    // SAFETY: each variant is called only after `is_available` has found its features; portable code needs
    // none.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 if isa.is_available() => avx2::search(way, bytes, queries, gaps),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if isa.is_available() => avx512::search(way, bytes, queries, gaps),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon if isa.is_available() => neon::search(way, bytes, queries, gaps),
            _ => scalar::search(way, bytes, queries, gaps),
        }
    }
}
