//! The searches compiled for each kernel and number of queries in flight.

use super::joint;
use super::kernel::{OneByOne, Paper};
use super::{Compare, Switched};
use crate::InFlight;
use pleach::Isa;
use pleach::internal;
use pleach_format::classic::TreeWord;

/// Each variant has its own module, since generic code is compiled module by module, and the variants are
/// large.
macro_rules! variants {
    ($($(#[cfg($cfg:meta)] #[target_feature($features:meta)])? $name:ident $simd:ty, $pext:literal;)*) => {$(
        $(#[cfg($cfg)])?
        mod $name {
            use super::*;

            $(#[target_feature($features)])?
            /// # Safety
            /// The caller guarantees a CPU with the function's features.
            pub(super) unsafe fn search<W: TreeWord, const N: usize>(
                tree: &Switched<'_, W>,
                queries: &[W],
                gaps: &mut [u64],
            ) {
                // SAFETY: the function is compiled for the kernel's features, and the caller guarantees that
                // the CPU has them.
                unsafe { internal::gaps::<$simd, W, $pext, N>(&tree.tree, queries, gaps) }
            }
        }
    )*};
}
variants! {
    scalar OneByOne, false;
    paper Paper, false;
    wide_scalar internal::Scalar, false;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    avx2 internal::Avx2, true;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,popcnt")]
    avx512 internal::Avx512, true;
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    neon internal::Neon, false;
}

/// Searches of full trees with the addresses of a group computed together; with `AVX2` in its vectors.
macro_rules! joint_variants {
    ($($(#[cfg($cfg:meta)] #[target_feature($features:meta)])? $name:ident $simd:ty, $avx2:literal;)*) => {$(
        $(#[cfg($cfg)])?
        mod $name {
            use super::*;

            $(#[target_feature($features)])?
            /// # Safety
            /// The caller guarantees a CPU with the function's features.
            pub(super) unsafe fn search<W: TreeWord, const N: usize>(
                steps: &[joint::Step],
                bytes: &[u8],
                queries: &[W],
                gaps: &mut [u64],
            ) {
                // SAFETY: the function is compiled for the type's features, and the caller guarantees that
                // the CPU has them.
                unsafe { joint::all::<$simd, W, $avx2, N>(steps, bytes, queries, gaps) }
            }
        }
    )*};
}
joint_variants! {
    joint_scalar internal::Scalar, false;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    joint_avx2 internal::Avx2, true;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,popcnt")]
    joint_avx512 internal::Avx512, true;
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    joint_neon internal::Neon, false;
}

fn joint<W: TreeWord, const N: usize>(
    isa: Isa,
    steps: &[joint::Step],
    bytes: &[u8],
    queries: &[W],
    gaps: &mut [u64],
) {
    // SAFETY: each variant is called only after `is_available` has found its features.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 if isa.is_available() => joint_avx2::search::<W, N>(steps, bytes, queries, gaps),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if isa.is_available() => joint_avx512::search::<W, N>(steps, bytes, queries, gaps),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon if isa.is_available() => joint_neon::search::<W, N>(steps, bytes, queries, gaps),
            _ => joint_scalar::search::<W, N>(steps, bytes, queries, gaps),
        }
    }
}

fn with<W: TreeWord, const N: usize>(tree: &Switched<'_, W>, queries: &[W], gaps: &mut [u64]) {
    let compare = match (tree.compare, &tree.steps) {
        (Compare::Joint(isa), Some(steps)) => return joint::<W, N>(isa, steps, tree.bytes, queries, gaps),
        (Compare::Joint(isa), None) => Compare::Wide(isa),
        (compare, _) => compare,
    };
    // SAFETY: a kernel that needs CPU features is called only after `is_available` has found them; the others
    // need none beyond the target's.
    unsafe {
        match compare {
            Compare::Paper => paper::search::<W, N>(tree, queries, gaps),
            #[cfg(target_arch = "x86_64")]
            Compare::Wide(Isa::Avx2) if compare.is_available() => avx2::search::<W, N>(tree, queries, gaps),
            #[cfg(target_arch = "x86_64")]
            Compare::Wide(Isa::Avx512) if compare.is_available() => {
                avx512::search::<W, N>(tree, queries, gaps);
            }
            #[cfg(target_arch = "aarch64")]
            Compare::Wide(Isa::Neon) if compare.is_available() => neon::search::<W, N>(tree, queries, gaps),
            Compare::Wide(_) | Compare::Joint(_) => wide_scalar::search::<W, N>(tree, queries, gaps),
            Compare::Scalar => scalar::search::<W, N>(tree, queries, gaps),
        }
    }
}

/// Writes the gaps in which queries end.
pub(super) fn search<W: TreeWord>(
    tree: &Switched<'_, W>,
    in_flight: InFlight,
    queries: &[W],
    gaps: &mut [u64],
) {
    match in_flight {
        InFlight::One => with::<W, 1>(tree, queries, gaps),
        InFlight::Four => with::<W, 4>(tree, queries, gaps),
        InFlight::Eight => with::<W, 8>(tree, queries, gaps),
        InFlight::Sixteen => with::<W, 16>(tree, queries, gaps),
        InFlight::ThirtyTwo => with::<W, 32>(tree, queries, gaps),
    }
}
