//! The neighbours of queries: the tuple at the lower bound of a query, or the one before it.
//!
//! The last tuple at or below a query is the one before the lower bound of the next word, so that is searched for. A
//! search yields the lower bounds of a group of queries, and so has just read their lines. A neighbour is mostly in the
//! same line, and else the last tuple of the line before.

use super::descent::{Answers, GROUP, Output};
use super::output::Presence;
use super::plan::Plan;
use pleach_format::key::{Bits, Word};
use pleach_format::line::{self, Line};
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

/// Returns the line and the slot of a rank. One without a tuple is that of a line past the end, and `Lines::at` clamps.
#[inline(always)]
fn place<'a, W: Word, B: Bits>(plan: &Plan<'a>, rank: u64) -> (&'a Line, usize) {
    let n = const { line::geometry::<W, B>().tuples_per_line() } as u64;
    (plan.tuple_lines.at((rank / n) as usize), (rank % n) as usize)
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

    /// Reads the neighbours with these ranks, from query `first` on.
    #[inline(always)]
    fn read(&mut self, ranks: &[u64], first: usize) {
        let (tuples, queries) = (self.plan.tuples, first..first + ranks.len());
        if let Some(values) = self.values.get_mut(queries.clone()) {
            for (to, &rank) in values.iter_mut().zip(ranks) {
                let (line, slot) = place::<W, B>(self.plan, rank);
                let value = line::value::<W, B>(line, slot);
                *to = select_unpredictable(rank < tuples, value, B::default());
            }
        }
        if let Some(words) = self.words.get_mut(queries.clone()) {
            for (to, &rank) in words.iter_mut().zip(ranks) {
                let (line, slot) = place::<W, B>(self.plan, rank);
                *to = select_unpredictable(rank < tuples, line::key::<W>(line, slot), W::default());
            }
        }
        if let Some(to) = self.ranks.get_mut(queries) {
            for (to, &rank) in to.iter_mut().zip(ranks) {
                *to = select_unpredictable(rank < tuples, rank, u64::MAX);
            }
        }
        let mut bits = 0;
        for (i, &rank) in ranks.iter().enumerate() {
            bits |= u64::from(rank < tuples) << i;
        }
        self.presence.put(first, ranks.len(), bits);
    }
}

impl<W: Word, B: Bits> Output<B> for Neighbors<'_, W, B> {
    #[inline(always)]
    fn query<Q: Word>(&self, query: Q) -> Q {
        let next = query.successor().unwrap_or(query);
        select_unpredictable(self.side.is_next, next, query)
    }

    #[inline(always)]
    fn each(&mut self, first: usize, count: usize, mut answers: impl Answers<B>) {
        let mut ranks = [0; GROUP];
        let ranks = &mut ranks[..count];
        answers.ranks(ranks);
        for rank in ranks.iter_mut() {
            *rank = rank.wrapping_sub(u64::from(self.side.is_before));
        }
        self.read(ranks, first);
    }
}
