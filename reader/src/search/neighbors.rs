//! The neighbours of queries: the tuple at the lower bound of a query, or the one before it.
//!
//! A search yields the lower bounds of a group of queries, and so has just read their lines. A neighbour is nearly
//! always in the same line; else it is the last tuple of the line before, which is prefetched. Neighbours are read
//! when the next group arrives, so that this load overlaps with the search of that group.

use super::descent::{Answers, Output};
use super::plan::Plan;
use pleach_format::key::{Bits, Word};
use pleach_format::line;

/// The tuples of a batch of neighbours, as a search writes them. The slices of words and values are empty if they are
/// not wanted.
pub(crate) struct Tuples<'a, W, B> {
    /// Rank of each tuple; past the last rank if there is none.
    pub(crate) ranks: &'a mut [u64],
    pub(crate) words: &'a mut [W],
    pub(crate) values: &'a mut [B],
}

/// Output of neighbours.
pub(crate) struct Neighbors<'a, W, B> {
    plan: &'a Plan<'a>,
    /// Tuples from a neighbour to the lower bound: 0 or 1.
    back: u64,
    tuples: Tuples<'a, W, B>,
    /// First query of the group that was not read, and the number of its queries.
    pending: (usize, usize),
}

impl<'a, W: Word, B: Bits> Neighbors<'a, W, B> {
    /// Makes the output of the tuples at the lower bounds, or `back` before them.
    #[inline(always)]
    pub(crate) fn new(plan: &'a Plan<'a>, back: u64, tuples: Tuples<'a, W, B>) -> Self {
        Self { plan, back, tuples, pending: (0, 0) }
    }

    /// Reads the neighbours of the group that is pending. To be called after the last group, too.
    #[inline(always)]
    pub(crate) fn read(&mut self) {
        let n = const { line::geometry::<W, B>().tuples_per_line() } as u64;
        let (first, count) = self.pending;
        let Some(ranks) = self.tuples.ranks.get(first..first + count) else { return };
        let lines = &self.plan.tuple_lines;
        // A rank without a tuple is that of a line past the end, and `Lines::at` clamps.
        if let Some(words) = self.tuples.words.get_mut(first..first + count) {
            for (word, &rank) in words.iter_mut().zip(ranks) {
                *word = line::key::<W>(lines.at((rank / n) as usize), (rank % n) as usize);
            }
        }
        if let Some(values) = self.tuples.values.get_mut(first..first + count) {
            for (value, &rank) in values.iter_mut().zip(ranks) {
                *value = line::value::<W, B>(lines.at((rank / n) as usize), (rank % n) as usize);
            }
        }
    }
}

impl<W: Word, B: Bits> Output<B> for Neighbors<'_, W, B> {
    #[inline(always)]
    fn each(&mut self, first: usize, count: usize, mut answers: impl Answers<B>) {
        let n = const { line::geometry::<W, B>().tuples_per_line() } as u64;
        if let Some(ranks) = self.tuples.ranks.get_mut(first..first + count) {
            answers.ranks(ranks);
            for rank in ranks.iter_mut() {
                *rank = rank.wrapping_sub(self.back);
                self.plan.tuple_lines.prefetch((*rank / n) as usize);
            }
        }
        self.read();
        self.pending = (first, count);
    }
}
