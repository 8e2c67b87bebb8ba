//! Ascending queries: a merge of the batch with the tuple lines (FAST section 8, sort-based).
//!
//! A query that follows another one mostly ends in the same line, or in one of the next few. So the sweep stays
//! where it is, looks at the last key of up to [`STEPS`] lines, and goes down the spine only for a query that lies
//! further on, along lines that the one before it has left in the cache. It pays where queries are no
//! further apart than a few lines, and beside a grid where several end in each line; else the groups of
//! [`super::descent::batch`] overlap more misses.

use super::descent::{self, Answers, GROUP, Hit, Output};
use super::plan::Plan;
use crate::arch::Simd;
use pleach_format::key::{Bits, Word};
use pleach_format::line;
use std::marker::PhantomData;

/// Fewer queries are not looked at.
const QUERIES_MIN: usize = 64;
/// Lines that are looked at before the spine is asked.
const STEPS: usize = 8;
/// Most tuple lines a query, on average, at which a sweep pays beside the spine. The step to the next line is a
/// branch that is hard to foretell.
const LINES_A_QUERY: u64 = 4;
/// Fewest queries a line, on average, at which it pays beside a grid, which has no such branch: with one query a
/// line the grid takes half of its time or less.
const QUERIES_A_LINE: u64 = 8;
/// Lines ahead of the sweep that are asked for.
const AHEAD: usize = 12;

/// Whether `queries`, each xor-ed with `flip`, ascend and stand close enough to each other.
///
/// # Safety
/// As [`Simd`].
#[inline(always)]
pub(crate) unsafe fn pays<S: Simd, W: Word>(plan: &Plan<'_>, queries: &[W], flip: W) -> bool {
    let (Some(&first), Some(&last)) = (queries.first(), queries.last()) else { return false };
    // Blocks without a branch a pair; of a batch in no order the first one says no.
    if queries.len() < QUERIES_MIN
        || !queries.windows(QUERIES_MIN + 1).step_by(QUERIES_MIN).all(|block| ascends(block, flip))
        || !ascends(&queries[queries.len() - QUERIES_MIN..], flip)
    {
        return false;
    }
    // SAFETY: the contract is passed on.
    let lines = unsafe { [first, last].map(|query| descent::line_of::<S, W>(plan, query ^ flip)) };
    is_close(plan.grid.is_some(), queries.len() as u64, lines[1].saturating_sub(lines[0]) as u64)
}

/// Whether ascending queries over so many tuple lines stand close enough to each other for a sweep.
pub(crate) fn is_close(has_grid: bool, queries: u64, lines: u64) -> bool {
    if has_grid {
        lines.saturating_mul(QUERIES_A_LINE) <= queries
    } else {
        lines <= queries.saturating_mul(LINES_A_QUERY)
    }
}

#[inline(always)]
fn ascends<W: Word>(queries: &[W], flip: W) -> bool {
    queries.windows(2).fold(true, |ascends, pair| ascends & (pair[0] ^ flip <= pair[1] ^ flip))
}

/// Answers ascending queries.
///
/// # Safety
/// As [`Simd`].
#[inline(always)]
pub(crate) unsafe fn sweep<S: Simd, W: Word, B: Bits, O: Output<B>>(
    plan: &Plan<'_>,
    queries: &[W],
    flip: W,
    output: &mut O,
) {
    let mut swept = Swept::<S, W> { plan, group: &[], flip, at: 0, simd: PhantomData };
    for (number, group) in queries.chunks(GROUP).enumerate() {
        swept.group = group;
        output.each(number * GROUP, group.len(), &mut swept);
    }
}

/// Where the sweep stands.
struct Swept<'a, S, W> {
    plan: &'a Plan<'a>,
    group: &'a [W],
    flip: W,
    /// Tuple line of the query before.
    at: usize,
    simd: PhantomData<S>,
}

impl<S: Simd, W: Word, B: Bits> Answers<B> for &mut Swept<'_, S, W> {
    #[inline(always)]
    fn hit(&mut self, i: usize) -> Hit<B> {
        let n = const { line::geometry::<W, B>().tuples_per_line() };
        let (plan, lines) = (self.plan, self.plan.tuple_lines);
        let query = self.group[i] ^ self.flip;
        // The first line from here on whose last key is not below the query.
        let mut steps = 0;
        while steps < STEPS && self.at < lines.last() && line::key::<W>(lines.at(self.at), n - 1) < query {
            self.at += 1;
            steps += 1;
        }
        if steps == STEPS {
            // SAFETY: made by `sweep` alone, whose contract is that of `Simd`.
            let line = unsafe { descent::line_of::<S, W>(plan, query) };
            if line < self.at {
                // Led to the left by an inexact border, of lines that are known to be below.
                return descent::step_right::<W, B>(plan, self.at - 1, query);
            }
            self.at = line;
        } else if steps > 0 {
            lines.prefetch(self.at + AHEAD);
        }
        // SAFETY: as above.
        unsafe { descent::leaf::<S, W, B>(plan, self.at, query) }
    }
}
