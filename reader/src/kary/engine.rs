//! The searches compiled for each vector and number of queries in flight.

use super::list::{self, Plan};
use super::tree::{self, Shape};
use super::vector::{Forms, Vector};
use super::{KaryWord, Vectors};
use crate::classic::InFlight;

/// What is searched.
#[derive(Clone, Copy)]
pub(crate) enum Way<'a, W> {
    List(&'a Plan, &'a [W]),
    Tree(&'a Shape, &'a [W]),
}

/// Vectors, and whether this CPU has them: found once, so that a search need not ask.
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
/// As [`Vector`]; the way is for vectors of so many lanes.
#[inline(always)]
unsafe fn any<V: Vector<W>, W: Forms, const S: usize>(way: Way<'_, W>, queries: &[W], ranks: &mut [u64]) {
    let (groups, rest) = queries.as_chunks::<S>();
    let (outputs, last) = ranks.as_chunks_mut::<S>();
    for (group, output) in groups.iter().zip(outputs) {
        // SAFETY: the contract is passed on.
        *output = unsafe {
            match way {
                Way::List(plan, keys) => list::group::<V, W, S>(plan, keys, group),
                Way::Tree(shape, slots) => tree::group::<V, W, S>(shape, slots, group),
            }
        };
    }
    for (&query, output) in rest.iter().zip(last) {
        // SAFETY: the contract is passed on.
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
        /// The CPU has the function's features; the way is for vectors of so many lanes.
        unsafe fn $name<W: KaryWord, const S: usize>(way: Way<'_, W>, queries: &[W], ranks: &mut [u64]) {
            // SAFETY: compiled for the vector's features, and the caller's CPU has them.
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
    // SAFETY: a feature is used where `Found::new` detected it; plans and shapes are made for the lanes of
    // the same vectors, which are those of the portable code that stands in for them.
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

/// Ranks of as many queries as there is place for.
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
