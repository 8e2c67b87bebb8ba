//! The ideas of FAST one by one: [`Classic`] with each of them a switch.
//!
//! ```text
//! kernel.rs   keys of a block below the query: one by one, and the paper's SSE form
//! joint.rs    the descent that computes the addresses of all queries in flight at once
//! engine.rs   the searches compiled for each kernel and number of queries in flight
//! ```
//! Blocks, lines and pages are switched by the geometry of a tree. Whole lines of 64 bytes at once, and 16
//! queries in flight, are the form of the product.
//!
//! Kim et al., TODS 36(4), 2011, sections 5.1.2, 5.1.3 and 5.3.

mod engine;
mod joint;
mod kernel;
#[cfg(test)]
mod tests;

use crate::InFlight;
use pleach::Isa;
use pleach::classic::{Classic, Work};
use pleach_format::classic::paged::Form;
use pleach_format::classic::{Geometry, TreeWord};

/// Kernel that compares the keys of a block. Answers do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// One by one.
    Scalar,
    /// Three 4-byte keys by one SSE2 compare, and their child from a table; other blocks one by one.
    Paper,
    /// All keys of a block, up to 64 bytes, by one or two compares of this instruction set: the 16-lane form.
    /// Portable code replaces an instruction set that this CPU lacks.
    Wide(Isa),
    /// The compares of [`Self::Wide`], and in full trees the addresses of all queries in flight computed
    /// together: the Knights Ferry form (section 5.3), with [`InFlight::Four`] in the paper. Compressed trees
    /// are searched as with [`Self::Wide`].
    Joint(Isa),
}

impl Compare {
    /// Returns true if this CPU has the features that the kernel needs.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar | Self::Paper => true,
            Self::Wide(isa) | Self::Joint(isa) => isa.is_available(),
        }
    }

    /// Returns the best kernel of this CPU.
    #[must_use]
    pub fn best() -> Self {
        Self::Wide(Isa::best())
    }
}

/// A classic tree, searched with a kernel and a number of queries in flight. As for [`Classic`], no search
/// panics, loops or reads outside the bytes, whatever they are.
#[derive(Clone, Debug)]
pub struct Switched<'a, W> {
    tree: Classic<'a, W>,
    bytes: &'a [u8],
    /// Steps of a full tree for [`Compare::Joint`].
    steps: Option<Vec<joint::Step>>,
    compare: Compare,
    in_flight: InFlight,
}

impl<'a, W: TreeWord> Switched<'a, W> {
    /// Creates the tree with the best kernel and 16 queries in flight; `None` where [`Classic::new`] refuses
    /// it. O(levels).
    #[must_use]
    pub fn new(geometry: &Geometry, form: Form, bytes: &'a [u8], keys: &'a [W]) -> Option<Self> {
        let tree = Classic::new(geometry, form, bytes, keys)?;
        let steps = if form == Form::Full { Some(joint::steps(&geometry.tree()?)) } else { None };
        Some(Self { tree, bytes, steps, compare: Compare::best(), in_flight: InFlight::Sixteen })
    }

    /// Sets the kernel and the number of queries in flight.
    #[must_use]
    pub fn with(self, compare: Compare, in_flight: InFlight) -> Self {
        Self { compare, in_flight, ..self }
    }

    /// Returns the rank of the first key that is not below `query`; the number of keys if all are. O(log N).
    #[must_use]
    pub fn lower_bound(&self, query: W) -> u64 {
        let mut rank = [0];
        engine::search(self, InFlight::One, &[query], &mut rank);
        pleach::internal::ranks(&self.tree, &[query], &mut rank, 0, &mut Work::default());
        rank[0]
    }

    /// Writes the ranks of many queries, up to the length of `ranks`, and returns the additional work of
    /// partial keys.
    pub fn lower_bounds(&self, queries: &[W], ranks: &mut [u64]) -> Work {
        let mut work = Work::default();
        // The gaps of a block of queries are still in the cache when full keys decide.
        const BLOCK: usize = 1 << 12;
        let ahead = if self.in_flight == InFlight::One { 0 } else { 16 };
        for (queries, ranks) in queries.chunks(BLOCK).zip(ranks.chunks_mut(BLOCK)) {
            let count = queries.len().min(ranks.len());
            let (queries, ranks) = (&queries[..count], &mut ranks[..count]);
            engine::search(self, self.in_flight, queries, ranks);
            pleach::internal::ranks(&self.tree, queries, ranks, ahead, &mut work);
        }
        work
    }
}
