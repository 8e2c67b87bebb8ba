//! K-ary search: one query across the lanes of a vector, k - 1 separators per compare.
//!
//! ```text
//! vector.rs   words of a vector below the query: SSE, AVX2, AVX-512, NEON, portable
//! list.rs     separators gathered from a sorted list      tree.rs   nodes of a linearised tree
//! engine.rs   both compiled for each vector and number of queries in flight
//! ```
//! k is one more than the lanes of a vector, so log_k(n) steps replace the log_2(n) steps of a binary search:
//! the answer to one query comes sooner, at the price of k - 1 loads per step. A list gathers them from as
//! many cache lines; a tree stores them next to each other.
//!
//! This is a baseline: a FAST tree ([`pleach::classic`]) blocks the same nodes by cache lines and pages, and
//! Pleach's own look-ups are faster than both.
//!
//! Kaldewey, *P-ary search* (slides); Schlegel, Gemulla, Lehner, DaMoN 2009; Kim et al., TODS 36(4), 2011,
//! section 2.

mod engine;
mod list;
#[cfg(test)]
mod tests;
mod tree;
mod vector;

use crate::InFlight;
use engine::{Found, Way, search};
use list::Plan;
use pleach::Isa;
use rayon::prelude::*;
use tree::Shape;

/// Keys of k-ary search: `u32` and `u64`, in numeric order.
pub trait KaryWord: vector::Forms {}
impl KaryWord for u32 {}
impl KaryWord for u64 {}

/// Vectors of a search, which determine k. Answers do not depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Vectors {
    /// Portable code for 16 bytes, always present: the reference for the others.
    Portable,
    /// 16 bytes of x86-64 with SSE 4.2 and POPCNT: k is 5 for keys of 4 bytes, 3 for 8.
    Sse,
    /// 16 bytes of 64-bit Arm: k is 5, 3.
    Neon,
    /// 32 bytes of x86-64 with [`Isa::Avx2`]: k is 9, 5.
    Avx2,
    /// 64 bytes of x86-64 with [`Isa::Avx512`]: k is 17, 9.
    Avx512,
}

impl Vectors {
    /// All vectors; a later one is preferred to an earlier one.
    pub const ALL: [Self; 5] = [Self::Portable, Self::Sse, Self::Neon, Self::Avx2, Self::Avx512];

    /// Returns true if this CPU has the vectors. If it does not, portable code for the same k replaces them.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            Self::Sse => pleach_format::cpu::sse42(),
            Self::Neon => Isa::Neon.is_available(),
            Self::Avx2 => Isa::Avx2.is_available(),
            Self::Avx512 => Isa::Avx512.is_available(),
        }
    }

    /// Returns the widest vectors of this CPU.
    #[must_use]
    pub fn best() -> Self {
        Self::ALL.into_iter().rfind(|vectors| vectors.is_available()).unwrap_or(Self::Portable)
    }

    /// Returns the number of keys `W` per vector: k - 1.
    #[must_use]
    pub const fn lanes<W: KaryWord>(self) -> usize {
        let bytes = match self {
            Self::Portable | Self::Sse | Self::Neon => 16,
            Self::Avx2 => 32,
            Self::Avx512 => 64,
        };
        bytes / size_of::<W>()
    }

    /// Returns the lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Sse => "sse",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// Queries per task of a thread.
const PIECE: usize = 1 << 10;

/// K-ary search in a sorted slice. In a slice that is not sorted, answers are arbitrary ranks in
/// `0..=keys.len()`.
#[derive(Clone, Debug)]
pub struct List<'a, W> {
    keys: &'a [W],
    plan: Plan,
    found: Found,
    in_flight: InFlight,
}

impl<'a, W: KaryWord> List<'a, W> {
    /// Creates a search in ascending `keys`; equal keys are allowed. Uses the widest vectors of this CPU and
    /// 8 queries in flight. O(log n).
    #[must_use]
    pub fn new(keys: &'a [W]) -> Self {
        Self::with_reach(keys, Vectors::best(), InFlight::Eight, vector::REACH)
    }

    /// Sets the vectors and the number of queries in flight. O(log n).
    #[must_use]
    pub fn with(self, vectors: Vectors, in_flight: InFlight) -> Self {
        Self::with_reach(self.keys, vectors, in_flight, vector::REACH)
    }

    /// Creates a search whose gathers reach `reach` keys; `reach` is cut at [`vector::REACH`].
    fn with_reach(keys: &'a [W], vectors: Vectors, in_flight: InFlight, reach: usize) -> Self {
        let plan = Plan::new(keys.len(), vectors.lanes::<W>(), reach.min(vector::REACH));
        Self { keys, plan, found: Found::new(vectors), in_flight }
    }

    /// Returns the vectors, which determine k.
    #[must_use]
    pub fn vectors(&self) -> Vectors {
        self.found.vectors()
    }

    /// Returns the rank of the first key that is not below `query`; the number of keys if all are. O(log_k n)
    /// steps of k - 1 loads.
    #[must_use]
    pub fn lower_bound(&self, query: W) -> u64 {
        let mut rank = [0];
        search(self.found, InFlight::One, Way::List(&self.plan, self.keys), &[query], &mut rank);
        rank[0]
    }

    /// Writes the ranks of many queries, up to the length of `ranks`.
    pub fn lower_bounds(&self, queries: &[W], ranks: &mut [u64]) {
        search(self.found, self.in_flight, Way::List(&self.plan, self.keys), queries, ranks);
    }

    /// Runs [`List::lower_bounds`] on the threads of the current rayon pool.
    pub fn par_lower_bounds(&self, queries: &[W], ranks: &mut [u64]) {
        pleach_builder::pool::ready();
        let pieces = queries.par_chunks(PIECE).zip(ranks.par_chunks_mut(PIECE));
        pieces.for_each(|(queries, ranks)| self.lower_bounds(queries, ranks));
    }
}

/// K-ary search in a linearised tree: nodes of k - 1 keys, level by level, in slots of the caller. In slots
/// that [`Tree::linearise`] did not write, answers are arbitrary ranks in `0..=keys`.
#[derive(Clone, Debug)]
pub struct Tree<'a, W> {
    slots: &'a [W],
    shape: Shape,
    found: Found,
    in_flight: InFlight,
}

impl<'a, W: KaryWord> Tree<'a, W> {
    /// Returns the number of slots of a tree of `keys` keys in nodes of these vectors: at most 2 (k - 1) per
    /// level more than keys. `None` beyond 2^48 keys. O(log n).
    #[must_use]
    pub fn slots(vectors: Vectors, keys: usize) -> Option<usize> {
        Some(Shape::new(keys, vectors.lanes::<W>())?.slots())
    }

    /// Writes the tree of ascending `keys` into the first of `slots`, and returns it with 8 queries in
    /// flight. If `slots` begins at a multiple of 64 bytes, no node is in two cache lines. `None` if there
    /// are fewer slots than [`Tree::slots`]. O(n), on the threads of the current rayon pool.
    #[must_use]
    pub fn linearise(vectors: Vectors, keys: &[W], slots: &'a mut [W]) -> Option<Self> {
        let shape = Shape::new(keys.len(), vectors.lanes::<W>())?;
        shape.fill(keys, slots.get_mut(..shape.slots())?);
        Self::new(vectors, keys.len(), slots)
    }

    /// Opens a tree that [`Tree::linearise`] wrote before, for as many keys and vectors of the same width.
    /// `None` if there are too few slots. O(log n).
    #[must_use]
    pub fn new(vectors: Vectors, keys: usize, slots: &'a [W]) -> Option<Self> {
        let shape = Shape::new(keys, vectors.lanes::<W>())?;
        let slots = slots.get(..shape.slots())?;
        Some(Self { slots, shape, found: Found::new(vectors), in_flight: InFlight::Eight })
    }

    /// Sets the number of queries in flight.
    #[must_use]
    pub fn with(self, in_flight: InFlight) -> Self {
        Self { in_flight, ..self }
    }

    /// Returns the vectors, which determine k.
    #[must_use]
    pub fn vectors(&self) -> Vectors {
        self.found.vectors()
    }

    /// Returns the rank of the first key that is not below `query`; the number of keys if all are. O(log_k n)
    /// steps of one load.
    #[must_use]
    pub fn lower_bound(&self, query: W) -> u64 {
        let mut rank = [0];
        search(self.found, InFlight::One, Way::Tree(&self.shape, self.slots), &[query], &mut rank);
        rank[0]
    }

    /// Writes the ranks of many queries, up to the length of `ranks`.
    pub fn lower_bounds(&self, queries: &[W], ranks: &mut [u64]) {
        search(self.found, self.in_flight, Way::Tree(&self.shape, self.slots), queries, ranks);
    }

    /// Runs [`Tree::lower_bounds`] on the threads of the current rayon pool.
    pub fn par_lower_bounds(&self, queries: &[W], ranks: &mut [u64]) {
        pleach_builder::pool::ready();
        let pieces = queries.par_chunks(PIECE).zip(ranks.par_chunks_mut(PIECE));
        pieces.for_each(|(queries, ranks)| self.lower_bounds(queries, ranks));
    }
}
