//! The neighbours of queries: the tuple at the lower bound of a query, or the one before it.
//!
//! The last tuple at or below a query is the one before the lower bound of the next word, so that is searched for. A
//! search yields the lower bounds of a group of queries, and so has just read their lines. A neighbour is mostly in the
//! same line, and else the last tuple of the line before. With the grid, both lines of a query are compared at once,
//! and a table says where the value of the neighbour is (`Found::near_with` of `grid`): nothing there branches on
//! queries.

use super::descent::{Answers, GROUP, Output};
use super::output::Presence;
use super::plan::Plan;
use pleach_format::key::{Bits, Word};
use pleach_format::line;
use std::hint::select_unpredictable;

/// The tuples of a batch of neighbours, as a search writes them. Each slice is as long as the queries, or empty if it
/// is not wanted.
pub(crate) struct Tuples<'a, W, B> {
    /// Rank of each tuple; [`u64::MAX`] if there is none.
    pub(crate) ranks: &'a mut [u64],
    /// Its word and its value; the default if there is none.
    pub(crate) words: &'a mut [W],
    pub(crate) values: &'a mut [B],
    /// A bit for each query: whether there is one.
    pub(crate) present: &'a mut [u64],
}

/// Which neighbours a search yields.
#[derive(Clone, Copy)]
pub(crate) struct Side {
    /// Each query is searched for as the word after it.
    pub(crate) is_next: bool,
    /// The tuple before the lower bound is wanted, and not the one at it.
    pub(crate) is_before: bool,
}

/// Output of neighbours.
pub(crate) struct Neighbors<'a, W, B> {
    plan: &'a Plan<'a>,
    side: Side,
    ranks: &'a mut [u64],
    words: &'a mut [W],
    values: &'a mut [B],
    presence: Presence<'a>,
}

impl<'a, W: Word, B: Bits> Neighbors<'a, W, B> {
    #[inline(always)]
    pub(crate) fn new(plan: &'a Plan<'a>, side: Side, tuples: Tuples<'a, W, B>) -> Self {
        let Tuples { ranks, words, values, present } = tuples;
        let presence = Presence { bitmap: present, found: 0 };
        Self { plan, side, ranks, words, values, presence }
    }

    /// Returns the number of queries that have a neighbour.
    #[inline(always)]
    pub(crate) fn found(&self) -> usize {
        self.presence.found
    }
}

impl<W: Word, B: Bits> Output<B> for Neighbors<'_, W, B> {
    const BOTH_LINES: bool = true;

    #[inline(always)]
    fn query<Q: Word>(&self, query: Q) -> Q {
        let next = query.successor().unwrap_or(query);
        select_unpredictable(self.side.is_next, next, query)
    }

    #[inline(always)]
    fn each(&mut self, first: usize, count: usize, mut answers: impl Answers<B>) {
        let queries = first..first + count;
        let mut unwanted = [0; GROUP];
        let ranks = match self.ranks.get_mut(queries.clone()) {
            // Words are read by ranks.
            None if !self.words.is_empty() => Some(&mut unwanted[..count]),
            ranks => ranks,
        };
        let values = self.values.get_mut(queries.clone());
        let mut missing = answers.near::<W>(self.plan, self.side.is_before, count, ranks, values);
        missing &= (1 << count) - 1;
        self.presence.put(first, count, !missing & ((1 << count) - 1));
        let ranks = self.ranks.get(queries.clone()).unwrap_or(&unwanted[..count]);
        if let Some(words) = self.words.get_mut(queries) {
            for (word, &rank) in words.iter_mut().zip(ranks) {
                let (line, slot) = self.plan.place::<W, B>(rank);
                *word = line::key(line, slot);
            }
        }
        // Only queries outside the keys of the file have no neighbour.
        while missing != 0 {
            let at = first + missing.trailing_zeros() as usize;
            missing &= missing - 1;
            self.ranks.get_mut(at).into_iter().for_each(|to| *to = u64::MAX);
            self.words.get_mut(at).into_iter().for_each(|to| *to = W::default());
            self.values.get_mut(at).into_iter().for_each(|to| *to = B::default());
        }
    }
}
