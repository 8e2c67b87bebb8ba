//! The searches compiled for each instruction set, as tables of functions.
//!
//! An [`Engine`] is chosen once, when a view is made. It proves that the CPU has the features its functions
//! need, because it is made only of the proof that [`Simd::detect`] returns.

use super::choose;
use super::descent::Hit;
use super::neighbors::{Neighbors, Side, Tuples};
use super::output::{Hits, Presence, Ranks, Values};
use super::plan::Plan;
use crate::arch::{Isa, Simd, scalar::Scalar};
use pleach_format::key::{Bits, Word};
use std::any::{Any, TypeId};

/// Writes neighbours, and returns their number.
type WriteNeighbors<W, B> = unsafe fn(&Plan<'_>, &[W], W, Side, Tuples<'_, W, B>) -> usize;

/// Functions of one instruction set for words `W` and value bits `B`.
#[derive(Clone, Copy)]
pub(crate) struct Engine<W, B> {
    locate: unsafe fn(&Plan<'_>, W) -> Hit<B>,
    values: unsafe fn(&Plan<'_>, &[W], W, &mut Values<'_, B>),
    presence: unsafe fn(&Plan<'_>, &[W], W, &mut Presence<'_>),
    ranks: unsafe fn(&Plan<'_>, &[W], W, &mut Ranks<'_>),
    hits: unsafe fn(&Plan<'_>, &[W], W, &mut Hits<'_, B>),
    neighbors: WriteNeighbors<W, B>,
}

impl<W: Word, B: Bits> Engine<W, B> {
    /// Searches for one query.
    #[inline(always)]
    pub(crate) fn locate(&self, plan: &Plan<'_>, query: W) -> Hit<B> {
        // SAFETY: an `Engine` is made only of the proof that this CPU has the features of its functions.
        unsafe { (self.locate)(plan, query) }
    }
    /// Writes values and presence.
    pub(crate) fn values(&self, plan: &Plan<'_>, queries: &[W], flip: W, output: &mut Values<'_, B>) {
        // SAFETY: an `Engine` is made only of the proof that this CPU has the features of its functions.
        unsafe { (self.values)(plan, queries, flip, output) }
    }
    /// Writes presence only.
    pub(crate) fn presence(&self, plan: &Plan<'_>, queries: &[W], flip: W, output: &mut Presence<'_>) {
        // SAFETY: an `Engine` is made only of the proof that this CPU has the features of its functions.
        unsafe { (self.presence)(plan, queries, flip, output) }
    }
    /// Writes the ranks of lower bounds.
    pub(crate) fn ranks(&self, plan: &Plan<'_>, queries: &[W], flip: W, output: &mut Ranks<'_>) {
        // SAFETY: an `Engine` is made only of the proof that this CPU has the features of its functions.
        unsafe { (self.ranks)(plan, queries, flip, output) }
    }
    /// Yields the hit of each query.
    pub(crate) fn hits(&self, plan: &Plan<'_>, queries: &[W], flip: W, output: &mut Hits<'_, B>) {
        // SAFETY: an `Engine` is made only of the proof that this CPU has the features of its functions.
        unsafe { (self.hits)(plan, queries, flip, output) }
    }
    /// Writes the neighbours of queries, each xor-ed with `flip`, and returns their number.
    pub(crate) fn neighbors(
        &self,
        plan: &Plan<'_>,
        queries: &[W],
        flip: W,
        side: Side,
        tuples: Tuples<'_, W, B>,
    ) -> usize {
        // SAFETY: an `Engine` is made only of the proof that this CPU has the features of its functions.
        unsafe { (self.neighbors)(plan, queries, flip, side, tuples) }
    }
}

macro_rules! variant {
    ($(#[$feature:meta])* $module:ident, $simd:ty) => {
        mod $module {
            use super::*;
            // SAFETY (of all six): the caller guarantees a CPU with the features named above, for which all
            // code inlined here is compiled, as `Simd` requires.
            $(#[$feature])*
            unsafe fn locate<W: Word, B: Bits>(plan: &Plan<'_>, query: W) -> Hit<B> {
                // SAFETY: the caller guarantees the CPU features of this module.
                unsafe { choose::locate::<$simd, W, B>(plan, query) }
            }
            $(#[$feature])*
            unsafe fn values<W: Word, B: Bits>(plan: &Plan<'_>, queries: &[W], flip: W, output: &mut Values<'_, B>) {
                // SAFETY: the caller guarantees the CPU features of this module.
                unsafe { choose::batch::<$simd, W, B, _>(plan, queries, flip, output) }
            }
            $(#[$feature])*
            unsafe fn presence<W: Word, B: Bits>(plan: &Plan<'_>, queries: &[W], flip: W, output: &mut Presence<'_>) {
                // SAFETY: the caller guarantees the CPU features of this module.
                unsafe { choose::batch::<$simd, W, B, _>(plan, queries, flip, output) }
            }
            $(#[$feature])*
            unsafe fn ranks<W: Word, B: Bits>(plan: &Plan<'_>, queries: &[W], flip: W, output: &mut Ranks<'_>) {
                // SAFETY: the caller guarantees the CPU features of this module.
                unsafe { choose::batch::<$simd, W, B, _>(plan, queries, flip, output) }
            }
            $(#[$feature])*
            unsafe fn hits<W: Word, B: Bits>(plan: &Plan<'_>, queries: &[W], flip: W, output: &mut Hits<'_, B>) {
                // SAFETY: the caller guarantees the CPU features of this module.
                unsafe { choose::batch::<$simd, W, B, _>(plan, queries, flip, output) }
            }
            $(#[$feature])*
            unsafe fn neighbors<W: Word, B: Bits>(
                plan: &Plan<'_>,
                queries: &[W],
                flip: W,
                side: Side,
                tuples: Tuples<'_, W, B>,
            ) -> usize {
                let mut output = Neighbors::new(plan, side, tuples);
                // SAFETY: the caller guarantees the CPU features of this module.
                unsafe { choose::batch::<$simd, W, B, _>(plan, queries, flip, &mut output) }
                output.found()
            }
            /// Makes the engine; the argument proves that this CPU has the features named above.
            pub(super) fn engine<W: Word, B: Bits>(_: $simd) -> Engine<W, B> {
                Engine { locate, values, presence: presence::<W, B>, ranks: ranks::<W, B>, hits, neighbors }
            }
        }
    };
}

variant!(scalar, Scalar);
#[cfg(target_arch = "x86_64")]
variant!(
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    avx2,
    crate::arch::avx2::Avx2
);
#[cfg(target_arch = "x86_64")]
variant!(
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,popcnt")]
    avx512,
    crate::arch::avx512::Avx512
);
#[cfg(target_arch = "aarch64")]
variant!(
    #[target_feature(enable = "neon")]
    neon,
    crate::arch::neon::Neon
);

/// One table of functions for each pair of types, made by code that is not generic. It is therefore compiled
/// once, here, and not in each crate that searches.
macro_rules! engines {
    ($($name:ident: $word:ty, $bits:ty;)*) => {
        $(
            #[inline(never)]
            fn $name(isa: Isa) -> Engine<$word, $bits> {
                let made = match isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => Simd::detect().map(avx512::engine),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => Simd::detect().map(avx2::engine),
                    #[cfg(target_arch = "aarch64")]
                    Isa::Neon => Simd::detect().map(neon::engine),
                    _ => None,
                };
                made.unwrap_or_else(|| scalar::engine(Scalar::PROOF))
            }
        )*

        /// Returns the engine of an instruction set; the scalar engine if this CPU does not have it.
        pub(crate) fn engine<W: Word, B: Bits>(isa: Isa) -> Engine<W, B> {
            let (word, bits) = (TypeId::of::<W>(), TypeId::of::<B>());
            $(
                if (word, bits) == (TypeId::of::<$word>(), TypeId::of::<$bits>())
                    && let Some(engine) = (&$name(isa) as &dyn Any).downcast_ref::<Engine<W, B>>()
                {
                    return *engine;
                }
            )*
            unreachable!("`Word` and `Bits` are sealed: there are no other types");
        }
    };
}
engines! {
    engine_u32_none: u32, ();
    engine_u32_u32: u32, u32;
    engine_u32_u64: u32, u64;
    engine_u64_none: u64, ();
    engine_u64_u32: u64, u32;
    engine_u64_u64: u64, u64;
    engine_u128_none: u128, ();
    engine_u128_u32: u128, u32;
    engine_u128_u64: u128, u64;
}
