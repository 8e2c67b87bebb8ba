//! The searches compiled for each vector and number of queries in flight.

use super::list::{self, Plan};
use super::tree::{self, Shape};
use super::vector::{Forms, Vector};
use super::{KaryWord, Vectors};
use crate::InFlight;

/// The structure that is searched.
#[derive(Clone, Copy)]
pub(crate) enum Way<'a, W> {
    List(&'a Plan, &'a [W]),
    Tree(&'a Shape, &'a [W]),
}

/// Vectors, and whether this CPU has them; checked once, so that a search need not check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    vectors: Vectors,
    here: bool,
}

impl Found {
    pub(crate) fn new(vectors: Vectors) -> Self {
        Self { vectors, here: vectors.is_available() }
    }

    pub(crate) fn vectors(self) -> Vectors {
        self.vectors
    }
}

/// # Safety
/// The caller guarantees the CPU features of `V`, as [`Vector`] requires, and that the way is for vectors of
/// `V::LANES` lanes.
#[inline(always)]
unsafe fn any<V: Vector<W>, W: Forms, const S: usize>(way: Way<'_, W>, queries: &[W], ranks: &mut [u64]) {
    let (groups, rest) = queries.as_chunks::<S>();
    let (outputs, last) = ranks.as_chunks_mut::<S>();
    for (group, output) in groups.iter().zip(outputs) {
        // SAFETY: the caller guarantees the CPU features of `V`, and that the way is for its lanes.
        *output = unsafe {
            match way {
                Way::List(plan, keys) => list::group::<V, W, S>(plan, keys, group),
                Way::Tree(shape, slots) => tree::group::<V, W, S>(shape, slots, group),
            }
        };
    }
    for (&query, output) in rest.iter().zip(last) {
        // SAFETY: the caller guarantees the CPU features of `V`, and that the way is for its lanes.
        [*output] = unsafe {
            match way {
                Way::List(plan, keys) => list::group::<V, W, 1>(plan, keys, &[query]),
                Way::Tree(shape, slots) => tree::group::<V, W, 1>(shape, slots, &[query]),
            }
        };
    }
}

macro_rules! variants {
    ($($(#[$attribute:meta])* $name:ident $form:ident;)*) => {$(
        $(#[$attribute])*
        /// # Safety
        /// The caller guarantees a CPU with the function's features, and that the way is for the lanes of the
        /// vector.
        unsafe fn $name<W: KaryWord, const S: usize>(way: Way<'_, W>, queries: &[W], ranks: &mut [u64]) {
            // SAFETY: the function is compiled for the vector's features; the caller guarantees that the CPU
            // has them and that the way is for the vector's lanes.
            unsafe { any::<W::$form, W, S>(way, queries, ranks) }
        }
    )*};
}
variants! {
    plain16 Plain16;
    plain32 Plain32;
    plain64 Plain64;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "sse4.2,popcnt")]
    sse Sse;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    avx2 Avx2;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,popcnt")]
    avx512 Avx512;
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    neon Neon;
}

fn with<W: KaryWord, const S: usize>(found: Found, way: Way<'_, W>, queries: &[W], ranks: &mut [u64]) {
    // SAFETY: a feature is used only if `Found::new` has found it. `List` and `Tree` make plans and shapes
    // for the lanes of the same vectors, and the portable code that replaces vectors has as many lanes.
    unsafe {
        match found.vectors {
            #[cfg(target_arch = "x86_64")]
            Vectors::Sse if found.here => sse::<W, S>(way, queries, ranks),
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx2 if found.here => avx2::<W, S>(way, queries, ranks),
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx512 if found.here => avx512::<W, S>(way, queries, ranks),
            #[cfg(target_arch = "aarch64")]
            Vectors::Neon if found.here => neon::<W, S>(way, queries, ranks),
            Vectors::Portable | Vectors::Sse | Vectors::Neon => plain16::<W, S>(way, queries, ranks),
            Vectors::Avx2 => plain32::<W, S>(way, queries, ranks),
            Vectors::Avx512 => plain64::<W, S>(way, queries, ranks),
        }
    }
}

/// Writes the ranks of queries, up to the length of `ranks`.
pub(crate) fn search<W: KaryWord>(
    found: Found,
    in_flight: InFlight,
    way: Way<'_, W>,
    queries: &[W],
    ranks: &mut [u64],
) {
    let count = queries.len().min(ranks.len());
    let (queries, ranks) = (&queries[..count], &mut ranks[..count]);
    match in_flight {
        InFlight::One => with::<W, 1>(found, way, queries, ranks),
        InFlight::Four => with::<W, 4>(found, way, queries, ranks),
        InFlight::Eight => with::<W, 8>(found, way, queries, ranks),
        InFlight::Sixteen => with::<W, 16>(found, way, queries, ranks),
        InFlight::ThirtyTwo => with::<W, 32>(found, way, queries, ranks),
    }
}
