//! Ascending queries: a merge of the batch with the tuple lines (FAST section 8, sort-based).
//!
//! A query usually ends in the same line as the query before it, or in one of the next few. The sweep
//! therefore keeps its place and compares with the last key of up to [`STEPS`] lines. Only for a query
//! further on does it go down the spine, along lines that the previous query has left in the cache.
//!
//! A sweep pays if queries are at most a few lines apart; beside a grid with few segments, if several queries end in
//! each line.
//! Otherwise the groups of [`super::descent::batch`] overlap more misses.

use super::descent::{self, Answers, GROUP, Hit, Output};
use super::plan::Plan;
use super::tree;
use crate::arch::Simd;
use pleach_format::Header;
use pleach_format::key::{Bits, Word};
use pleach_format::line;
use std::marker::PhantomData;

/// Minimum number of queries for a sweep.
const QUERIES_MIN: usize = 64;
/// Lines that are stepped over before the spine is searched.
const STEPS: usize = 8;
/// Maximum number of tuple lines per query, on average, at which a sweep pays beside the spine. The step to
/// the next line is a branch that is hard to predict.
const LINES_A_QUERY: u64 = 4;
/// Minimum number of queries per line, on average, at which a sweep pays beside a grid with few segments,
/// which has no such branch: with one query per line the grid takes half of the sweep's time or less.
const QUERIES_A_LINE: u64 = 8;
/// Number of lines that are prefetched ahead of the sweep.
const AHEAD: usize = 12;

/// Returns true if `queries`, each xor-ed with `flip`, ascend and are close enough to each other for a sweep.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
pub(crate) unsafe fn pays<S: Simd, W: Word>(plan: &Plan<'_>, queries: &[W], flip: W) -> bool {
    let (Some(&first), Some(&last)) = (queries.first(), queries.last()) else { return false };
    // Blocks are checked without a branch per pair; in a batch without order, the first block fails.
    if queries.len() < QUERIES_MIN
        || !queries.windows(QUERIES_MIN + 1).step_by(QUERIES_MIN).all(|block| ascends(block, flip))
        || !ascends(&queries[queries.len() - QUERIES_MIN..], flip)
    {
        return false;
    }
    // SAFETY: the caller guarantees the CPU features of `S`, which `line_of` requires.
    let (first, last) = unsafe {
        (descent::line_of::<S, W>(plan, first ^ flip), descent::line_of::<S, W>(plan, last ^ flip))
    };
    is_close(has_even_grid(plan.header), queries.len() as u64, last.saturating_sub(first) as u64)
}

/// Returns true if `queries` ascending queries over `lines` tuple lines are dense enough for a sweep.
pub(crate) fn is_close(has_even_grid: bool, queries: u64, lines: u64) -> bool {
    if has_even_grid {
        lines.saturating_mul(QUERIES_A_LINE) <= queries
    } else {
        lines <= queries.saturating_mul(LINES_A_QUERY)
    }
}

/// Reports whether a file has a grid with at most one segment on the way of nearly all queries. More segments take as
/// long as the lines of the spine, which are in the cache when queries ascend, or longer.
pub(crate) fn has_even_grid(header: &Header) -> bool {
    header.grid.as_ref().is_some_and(|(_, shape)| shape.usual_steps <= 1)
}

#[inline(always)]
fn ascends<W: Word>(queries: &[W], flip: W) -> bool {
    queries.windows(2).fold(true, |ascends, pair| ascends & (pair[0] ^ flip <= pair[1] ^ flip))
}

/// Answers ascending queries.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
pub(crate) unsafe fn sweep<S: Simd, W: Word, B: Bits, O: Output<B>>(
    plan: &Plan<'_>,
    queries: &[W],
    flip: W,
    output: &mut O,
) {
    let mut swept = Swept::<S, W> { plan, group: [W::default(); GROUP], at: 0, simd: PhantomData };
    for (number, group) in queries.chunks(GROUP).enumerate() {
        for (to, &query) in swept.group.iter_mut().zip(group) {
            *to = output.query(query ^ flip);
        }
        output.each(number * GROUP, group.len(), &mut swept);
    }
}

/// Position of the sweep, and the group that it answers.
struct Swept<'a, S, W> {
    plan: &'a Plan<'a>,
    group: [W; GROUP],
    /// Tuple line of the previous query.
    at: usize,
    simd: PhantomData<S>,
}

impl<S: Simd, W: Word, B: Bits> Answers<B> for &mut Swept<'_, S, W> {
    #[inline(always)]
    fn hit(&mut self, i: usize) -> Hit<B> {
        let n = const { line::geometry::<W, B>().tuples_per_line() };
        let (plan, lines) = (self.plan, self.plan.tuple_lines);
        let query = self.group[i];
        // Find the first line from here on whose last key is not below the query.
        let mut steps = 0;
        while steps < STEPS && self.at < lines.last() && line::key::<W>(lines.at(self.at), n - 1) < query {
            self.at += 1;
            steps += 1;
        }
        if steps == STEPS {
            if let Some(way) = &plan.tree {
                // SAFETY: only `sweep` makes a `Swept`, and its caller guarantees the CPU features of `S`.
                let hit = unsafe { tree::locate::<S, W, B>(plan, way, query) };
                self.at = ((hit.rank / n as u64) as usize).min(lines.last());
                return hit;
            }
            // SAFETY: only `sweep` makes a `Swept`, and its caller guarantees the CPU features of `S`.
            let line = unsafe { descent::line_of::<S, W>(plan, query) };
            if line < self.at {
                // An inexact border led to the left, to lines that are known to be below.
                return descent::step_right::<W, B>(plan, self.at - 1, query);
            }
            self.at = line;
        } else if steps > 0 {
            lines.prefetch(self.at + AHEAD);
        }
        // SAFETY: only `sweep` makes a `Swept`, and its caller guarantees the CPU features of `S`.
        unsafe { descent::leaf::<S, W, B>(plan, self.at, query) }
    }
}
