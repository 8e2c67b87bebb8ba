//! Searches by a tree of its own section: FAST, Harmonia's, the contiguous B+tree.
//!
//! A tree turns queries into ranks, exactly or nearly. The tuple line of that rank then decides: it has the
//! answer, or says on which side the answer is. A batch alternates: while the tuple lines of one chunk of queries
//! are being loaded, the next chunk goes down the tree.

use super::descent::{self, Answers, GROUP, Hit, Output, hit_in};
use super::plan::Plan;
use super::tree_plan::{CHUNK, TreePlan};
use crate::arch::Simd;
use pleach_format::key::{Bits, Word};
use pleach_format::line;
use pleach_format::view;
use std::marker::PhantomData;

/// Returns the hit of a query whose lower bound a tree has found at `rank`, or near it.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
pub(super) unsafe fn settle<S: Simd, W: Word, B: Bits>(
    plan: &Plan<'_>,
    is_lossy: bool,
    rank: u64,
    query: W,
) -> Hit<B> {
    let n = const { line::geometry::<W, B>().tuples_per_line() };
    let lines = plan.tuple_lines;
    let at = ((rank / n as u64) as usize).min(lines.last());
    // SAFETY: the caller guarantees the CPU features of `S`.
    let slot = unsafe { descent::below::<S, W>(lines.at(at), n, query) };
    if is_lossy && slot == 0 && at > 0 && line::key::<W>(lines.at(at - 1), n - 1) >= query {
        return step_left::<W, B>(plan, at - 1, query);
    }
    if slot == n && at < lines.last() {
        return descent::step_right::<W, B>(plan, at, query);
    }
    hit_in::<W, B>(plan, at, slot, query)
}

/// Returns the hit in the first line whose last key is not below the query, which line `at` or one before it is.
#[cold]
#[inline(never)]
fn step_left<W: Word, B: Bits>(plan: &Plan<'_>, at: usize, query: W) -> Hit<B> {
    let bytes = view::Bytes(plan.bytes);
    let n = const { line::geometry::<W, B>().tuples_per_line() };
    // `Header::parse` has checked that every line is inside the bytes.
    let left = view::step_left::<W, _>(plan.header, &bytes, at as u64, query);
    let at = left.map_or(at, |left| left as usize);
    let slot = line::keys_below::<W>(plan.tuple_lines.at(at), n, query);
    hit_in(plan, at, slot, query)
}

/// Searches for one query.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
pub(super) unsafe fn locate<S: Simd, W: Word, B: Bits>(
    plan: &Plan<'_>,
    tree: &TreePlan<'_>,
    query: W,
) -> Hit<B> {
    // SAFETY: the caller guarantees the CPU features of `S`.
    unsafe { settle::<S, W, B>(plan, tree.is_lossy(), tree.rank(query), query) }
}

/// A chunk of queries whose ranks are known.
#[derive(Clone, Copy)]
struct Chunk<W> {
    queries: [W; CHUNK],
    ranks: [u64; CHUNK],
    count: usize,
}

/// Answers of a group of a chunk.
struct Landed<'a, S, W> {
    plan: &'a Plan<'a>,
    is_lossy: bool,
    queries: &'a [W],
    ranks: &'a [u64],
    simd: PhantomData<S>,
}

impl<S: Simd, W: Word, B: Bits> Answers<B> for Landed<'_, S, W> {
    #[inline(always)]
    fn hit(&mut self, i: usize) -> Hit<B> {
        // SAFETY: only `batch` makes a `Landed`, and its caller guarantees the CPU features of `S`.
        unsafe { settle::<S, W, B>(self.plan, self.is_lossy, self.ranks[i], self.queries[i]) }
    }
}

/// Searches for all queries. Each is xor-ed with `flip`.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
pub(super) unsafe fn batch<S: Simd, W: Word, B: Bits, O: Output<B>>(
    plan: &Plan<'_>,
    tree: &TreePlan<'_>,
    queries: &[W],
    flip: W,
    output: &mut O,
) {
    debug_assert!(S::detect().is_some());
    let n = const { line::geometry::<W, B>().tuples_per_line() };
    let is_lossy = tree.is_lossy();
    let mut chunks = [Chunk { queries: [W::default(); CHUNK], ranks: [0; CHUNK], count: 0 }; 2];
    let count = queries.len().div_ceil(CHUNK);
    for clock in 0..=count {
        if let Some(queries) = queries.chunks(CHUNK).nth(clock) {
            let chunk = &mut chunks[clock % 2];
            chunk.count = queries.len();
            chunk.queries.iter_mut().zip(queries).for_each(|(to, &query)| *to = output.query(query ^ flip));
            tree.ranks(&chunk.queries[..chunk.count], &mut chunk.ranks);
            for &rank in &chunk.ranks[..chunk.count] {
                plan.tuple_lines.prefetch((rank / n as u64) as usize);
            }
        }
        let Some(number) = clock.checked_sub(1) else { continue };
        let Chunk { queries, ranks, count } = &chunks[number % 2];
        let groups = queries[..*count].chunks(GROUP).zip(ranks.chunks(GROUP)).enumerate();
        for (group, (queries, ranks)) in groups {
            let answers = Landed::<S, W> { plan, is_lossy, queries, ranks, simd: PhantomData };
            output.each(number * CHUNK + group * GROUP, queries.len(), answers);
        }
    }
}
