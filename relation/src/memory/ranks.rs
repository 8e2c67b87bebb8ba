//! Answers as ranks in their inputs.

use rayon::prelude::*;

/// Rank of a missing tuple.
pub const ABSENT: u64 = u64::MAX;

/// Positions of an answer in its inputs: one pair per tuple, with [`ABSENT`] for a side that has no part in
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankPairs {
    /// Left ranks.
    pub left: Vec<u64>,
    /// Right ranks.
    pub right: Vec<u64>,
}

/// Returns the elements at `ranks`, and `absent` for [`ABSENT`] ranks. O(ranks), in parallel.
#[must_use]
pub fn gather<T: Copy + Send + Sync>(elements: &[T], ranks: &[u64], absent: T) -> Vec<T> {
    let at = |&rank: &u64| usize::try_from(rank).ok().and_then(|rank| elements.get(rank)).copied();
    pleach_builder::pool::ready();
    ranks.par_iter().with_min_len(1 << 12).map(|rank| at(rank).unwrap_or(absent)).collect()
}
