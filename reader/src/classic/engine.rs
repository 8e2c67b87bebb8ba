//! The searches compiled for each kernel and number of queries in flight.

use super::descent::{self, Step};
use super::kernel::{Joint, Kernel, Paper, Scalar, Wide};
use super::paged::{self, Distances, Level, Nibbles, Records};
use super::{Compare, InFlight};
use crate::arch::Isa;
use pleach_format::classic::TreeWord;

/// The levels of a tree, by its form.
#[derive(Clone, Copy)]
pub(crate) enum Way<'a> {
    Full(&'a [Step]),
    Distances(&'a [Level]),
    Nibbles(&'a [Level]),
}

/// # Safety
/// The caller guarantees the CPU features of `K`, as [`Kernel`] requires.
#[inline(always)]
unsafe fn full<K: Kernel, W: TreeWord, const S: usize>(
    steps: &[Step],
    bytes: &[u8],
    queries: &[W],
    gaps: &mut [u64],
) {
    let (groups, rest) = queries.as_chunks::<S>();
    let (outputs, last) = gaps.as_chunks_mut::<S>();
    for (group, output) in groups.iter().zip(outputs) {
        // SAFETY: the caller guarantees the CPU features of `K`.
        *output = unsafe { descent::group::<K, W, S>(steps, bytes, group) };
    }
    for (&query, output) in rest.iter().zip(last) {
        // SAFETY: the caller guarantees the CPU features of `K`.
        [*output] = unsafe { descent::group::<K, W, 1>(steps, bytes, &[query]) };
    }
}

/// # Safety
/// The caller guarantees the CPU features of `K`, as [`Kernel`] requires.
#[inline(always)]
unsafe fn packed<K: Kernel, R: Records<W>, W: TreeWord, const S: usize>(
    levels: &[Level],
    bytes: &[u8],
    queries: &[W],
    gaps: &mut [u64],
) {
    let (groups, rest) = queries.as_chunks::<S>();
    let (outputs, last) = gaps.as_chunks_mut::<S>();
    for (group, output) in groups.iter().zip(outputs) {
        // SAFETY: the caller guarantees the CPU features of `K`.
        *output = unsafe { paged::group::<K, R, W, S>(levels, bytes, group) };
    }
    for (&query, output) in rest.iter().zip(last) {
        // SAFETY: the caller guarantees the CPU features of `K`.
        [*output] = unsafe { paged::group::<K, R, W, 1>(levels, bytes, &[query]) };
    }
}

/// # Safety
/// The caller guarantees the CPU features of `K`, as [`Kernel`] requires.
#[inline(always)]
unsafe fn any<K: Kernel, W: TreeWord, const S: usize>(
    way: Way<'_>,
    bytes: &[u8],
    queries: &[W],
    gaps: &mut [u64],
) {
    // SAFETY: the caller guarantees the CPU features of `K`.
    unsafe {
        match way {
            Way::Full(steps) => full::<K, W, S>(steps, bytes, queries, gaps),
            // Keys of 16 bytes have no distances, and shorter ones no nibbles (FORMAT.md): no search is
            // compiled for them.
            Way::Distances(levels) if W::BYTES <= 8 => {
                packed::<K, Distances, W, S>(levels, bytes, queries, gaps);
            }
            Way::Nibbles(levels) if W::BYTES == 16 => {
                packed::<K, Nibbles, W, S>(levels, bytes, queries, gaps)
            }
            Way::Distances(_) | Way::Nibbles(_) => gaps.fill(0),
        }
    }
}

/// Each variant has its own module, since generic code is compiled module by module, and the variants are
/// large.
macro_rules! variants {
    ($($(#[cfg($cfg:meta)])? $(#[target_feature($features:meta)])? $name:ident $kernel:ty;)*) => {$(
        $(#[cfg($cfg)])?
        mod $name {
            use super::*;

            $(#[target_feature($features)])?
            /// # Safety
            /// The caller guarantees a CPU with the function's features.
            pub(super) unsafe fn search<W: TreeWord, const S: usize>(
                way: Way<'_>,
                bytes: &[u8],
                queries: &[W],
                gaps: &mut [u64],
            ) {
                // SAFETY: the function is compiled for the kernel's features, and the caller guarantees that
                // the CPU has them.
                unsafe { any::<$kernel, W, S>(way, bytes, queries, gaps) }
            }
        }
    )*};
}
variants! {
    scalar Scalar;
    paper Paper;
    wide_scalar Wide<crate::arch::scalar::Scalar, false>;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    avx2 Wide<crate::arch::avx2::Avx2, true>;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,popcnt")]
    avx512 Wide<crate::arch::avx512::Avx512, true>;
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    neon Wide<crate::arch::neon::Neon, false>;
}

/// Searches of full trees with the addresses of a group computed together.
macro_rules! joint_variants {
    ($($(#[cfg($cfg:meta)])? $(#[target_feature($features:meta)])? $name:ident $kernel:ty;)*) => {$(
        $(#[cfg($cfg)])?
        mod $name {
            use super::*;

            $(#[target_feature($features)])?
            /// # Safety
            /// The caller guarantees a CPU with the function's features.
            pub(super) unsafe fn search<W: TreeWord, const S: usize>(
                steps: &[Step],
                bytes: &[u8],
                queries: &[W],
                gaps: &mut [u64],
            ) {
                // SAFETY: the function is compiled for the kernel's features, and the caller guarantees that
                // the CPU has them.
                unsafe { full::<$kernel, W, S>(steps, bytes, queries, gaps) }
            }
        }
    )*};
}
joint_variants! {
    joint_scalar Joint<crate::arch::scalar::Scalar, false>;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    joint_avx2 Joint<crate::arch::avx2::Avx2, true>;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,popcnt")]
    joint_avx512 Joint<crate::arch::avx512::Avx512, true>;
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    joint_neon Joint<crate::arch::neon::Neon, false>;
}

fn joint<W: TreeWord, const S: usize>(
    isa: Isa,
    steps: &[Step],
    bytes: &[u8],
    queries: &[W],
    gaps: &mut [u64],
) {
    // SAFETY: each variant is called only after `is_available` has found its features.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 if isa.is_available() => joint_avx2::search::<W, S>(steps, bytes, queries, gaps),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if isa.is_available() => joint_avx512::search::<W, S>(steps, bytes, queries, gaps),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon if isa.is_available() => joint_neon::search::<W, S>(steps, bytes, queries, gaps),
            _ => joint_scalar::search::<W, S>(steps, bytes, queries, gaps),
        }
    }
}

fn with<W: TreeWord, const S: usize>(
    compare: Compare,
    way: Way<'_>,
    bytes: &[u8],
    queries: &[W],
    gaps: &mut [u64],
) {
    let compare = match (compare, way) {
        (Compare::Joint(isa), Way::Full(steps)) => return joint::<W, S>(isa, steps, bytes, queries, gaps),
        (Compare::Joint(isa), Way::Distances(_) | Way::Nibbles(_)) => Compare::Wide(isa),
        _ => compare,
    };
    // SAFETY: a kernel that needs CPU features is called only after `is_available` has found them; the others
    // need none beyond the target's.
    unsafe {
        match compare {
            Compare::Paper => paper::search::<W, S>(way, bytes, queries, gaps),
            #[cfg(target_arch = "x86_64")]
            Compare::Wide(Isa::Avx2) if compare.is_available() => {
                avx2::search::<W, S>(way, bytes, queries, gaps)
            }
            #[cfg(target_arch = "x86_64")]
            Compare::Wide(Isa::Avx512) if compare.is_available() => {
                avx512::search::<W, S>(way, bytes, queries, gaps);
            }
            #[cfg(target_arch = "aarch64")]
            Compare::Wide(Isa::Neon) if compare.is_available() => {
                neon::search::<W, S>(way, bytes, queries, gaps)
            }
            Compare::Wide(_) | Compare::Joint(_) => wide_scalar::search::<W, S>(way, bytes, queries, gaps),
            Compare::Scalar => scalar::search::<W, S>(way, bytes, queries, gaps),
        }
    }
}

/// Writes the gaps in which queries end.
pub(crate) fn search<W: TreeWord>(
    compare: Compare,
    in_flight: InFlight,
    way: Way<'_>,
    bytes: &[u8],
    queries: &[W],
    gaps: &mut [u64],
) {
    match in_flight {
        InFlight::One => with::<W, 1>(compare, way, bytes, queries, gaps),
        InFlight::Four => with::<W, 4>(compare, way, bytes, queries, gaps),
        InFlight::Eight => with::<W, 8>(compare, way, bytes, queries, gaps),
        InFlight::Sixteen => with::<W, 16>(compare, way, bytes, queries, gaps),
        InFlight::ThirtyTwo => with::<W, 32>(compare, way, bytes, queries, gaps),
    }
}
