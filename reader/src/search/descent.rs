//! One descent, and many at once.
//!
//! A batch is cut into groups of [`GROUP`] queries. At each step of the clock every group in flight
//! moves one level down, the lowest first, and asks for the line it will need at its next step; one
//! new group enters at the root. So at any time the groups stand on all levels, and the misses of
//! the bottom level and of the tuple lines overlap with compares in cached lines (interleaving;
//! FAST section 5.2 pipelines a group level by level instead).

use super::plan::{LevelPlan, Plan};
use super::{grid, sweep};
use crate::arch::Simd;
use pleach_format::key::{Bits, Word};
use pleach_format::line::{self, Line};
use pleach_format::section::LEVELS_MAX;
use pleach_format::spine::{self, Encoding, delta_header, is_inexact};
use pleach_format::view;
use std::hint::select_unpredictable;
use std::marker::PhantomData;

/// Queries of a group. Divides 64, so that a group's bits lie in one word of a bitmap.
pub(crate) const GROUP: usize = 16;
/// Groups in flight at most: one a level, one at the tuple lines; a power of two.
const RING: usize = (LEVELS_MAX + 1).next_power_of_two();

/// Where a query ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hit<B> {
    /// Rank of its lower bound.
    pub(crate) rank: u64,
    /// Whether the key at that rank is the query.
    pub(crate) found: bool,
    /// Value there; default if not found.
    pub(crate) value: B,
}

/// Of the first `n` words of a line, how many are below `query`.
///
/// # Safety
/// As [`Simd`].
#[inline(always)]
pub(super) unsafe fn below<S: Simd, W: Word>(line: &Line, n: usize, query: W) -> usize {
    // SAFETY: the contract is passed on.
    unsafe {
        match W::BYTES {
            4 => S::below32(line, n, query.to_u128() as u32),
            8 => S::below64(line, n, query.to_u128() as u64),
            // No vector compare is as wide; four at most are counted.
            _ => (0..n).map(|slot| usize::from(line::key::<W>(line, slot) < query)).sum(),
        }
    }
}

/// Code of a query in the grid of a delta line: 0 below its base, at most `max`.
///
/// How a query compares with either end is as good as random, so both are selected, not branched on.
#[inline(always)]
fn query_code<W: Word>(line: &Line, query: W, max: u64) -> u64 {
    let (base, shift, _) = delta_header::<W>(line);
    let cell = query.cell(base, shift);
    let cell = select_unpredictable(cell > max, max, cell);
    select_unpredictable(query < base, 0, cell)
}

/// Child of a spine line for a query.
///
/// # Safety
/// As [`Simd`].
#[inline(always)]
unsafe fn child<S: Simd, W: Word>(encoding: Encoding, line: &Line, query: W) -> usize {
    // SAFETY: the contract is passed on.
    unsafe {
        match encoding {
            Encoding::Delta8 => {
                let wanted = query_code(line, query, u64::from(u8::MAX)) as u8;
                S::below8(line, const { Encoding::Delta8.separators(W::BYTES) }, wanted)
            }
            Encoding::Delta16 => {
                let wanted = query_code(line, query, u64::from(u16::MAX)) as u16;
                S::below16(line, const { Encoding::Delta16.separators(W::BYTES) }, wanted)
            }
            Encoding::Delta32 => {
                let wanted = query_code(line, query, u64::from(u32::MAX)) as u32;
                S::below32(line, const { Encoding::Delta32.separators(W::BYTES) }, wanted)
            }
            _ => below::<S, W>(line, const { Encoding::Raw.separators(W::BYTES) }, query),
        }
    }
}

/// What a tuple line says of a query.
///
/// # Safety
/// As [`Simd`].
#[inline(always)]
pub(crate) unsafe fn leaf<S: Simd, W: Word, B: Bits>(plan: &Plan<'_>, at: usize, query: W) -> Hit<B> {
    let n = const { line::geometry::<W, B>().tuples_per_line() };
    let at = at.min(plan.tuple_lines.last());
    let line = plan.tuple_lines.at(at);
    // SAFETY: the contract is passed on.
    let slot = unsafe { below::<S, W>(line, n, query) };
    if slot == n && plan.header.inexact && at < plan.tuple_lines.last() && passed_inexact(plan, at, query) {
        return step_right::<W, B>(plan, at, query);
    }
    hit_in::<W, B>(plan, at, slot, query)
}

/// The hit of a query of which `slot` keys of tuple line `at` are below it, and all lines before.
#[inline(always)]
pub(super) fn hit_in<W: Word, B: Bits>(plan: &Plan<'_>, at: usize, slot: usize, query: W) -> Hit<B> {
    let n = const { line::geometry::<W, B>().tuples_per_line() };
    // A slot past the end is never equal: the last key is below the query. The rank tells a key of
    // all ones from padding.
    let rank = at as u64 * n as u64 + slot as u64;
    let (slot, line) = (slot.min(n - 1), plan.tuple_lines.at(at));
    let found = line::key::<W>(line, slot) == query && rank < plan.tuples;
    let value = line::value::<W, B>(line, slot);
    Hit { rank: rank.min(plan.tuples), found, value: select_unpredictable(found, value, B::default()) }
}

/// Whether the border between tuple line `at`, which is not the last, and the next one may not part them,
/// and the query lies in its cell. The lines on the way were just read, so they are in the cache.
#[cold]
#[inline(never)]
fn passed_inexact<W: Word>(plan: &Plan<'_>, at: usize, query: W) -> bool {
    let mut at = at;
    for level in (0..plan.depth()).rev().filter_map(|stage| plan.level(stage)) {
        let slot = at % level.fanout;
        at /= level.fanout;
        // Right of the last child the level above has the border.
        if slot + 1 < level.fanout {
            let line = level.lines.at(at.min(level.lines.last()));
            return is_inexact(level.encoding, line)
                && spine::code(level.encoding, line, slot) == query_code(line, query, u64::MAX);
        }
    }
    false
}

/// The answer right of tuple line `at`, all of whose keys are below the query: a border on the way was
/// parted inexactly, or the query lies between two lines.
#[cold]
#[inline(never)]
pub(super) fn step_right<W: Word, B: Bits>(plan: &Plan<'_>, at: usize, query: W) -> Hit<B> {
    let bytes = view::Bytes(plan.bytes);
    let n = const { line::geometry::<W, B>().tuples_per_line() };
    // The header proved every line to lie in the bytes.
    let right = view::step_right::<W, _>(plan.header, &bytes, at as u64 + 1, query);
    let at = right.map_or(plan.tuple_lines.last(), |right| right as usize);
    let slot = line::keys_below::<W>(plan.tuple_lines.at(at), n, query);
    hit_in(plan, at, slot, query)
}

/// The tuple line that the spine leads a query to.
///
/// # Safety
/// As [`Simd`].
#[inline(always)]
pub(crate) unsafe fn line_of<S: Simd, W: Word>(plan: &Plan<'_>, query: W) -> usize {
    let mut at = 0;
    for level in plan.levels() {
        let node = at.min(level.lines.last());
        // SAFETY: the contract is passed on.
        at = node * level.fanout + unsafe { child::<S, W>(level.encoding, level.lines.at(node), query) };
    }
    at.min(plan.tuple_lines.last())
}

/// One query from the root to its tuple line.
///
/// # Safety
/// As [`Simd`].
#[inline(always)]
pub(crate) unsafe fn locate<S: Simd, W: Word, B: Bits>(plan: &Plan<'_>, query: W) -> Hit<B> {
    if let Some(grid) = &plan.grid {
        // SAFETY: the contract is passed on.
        return unsafe { grid::locate::<S, W, B>(plan, grid, query) };
    }
    // SAFETY: the contract is passed on.
    unsafe { leaf::<S, W, B>(plan, line_of::<S, W>(plan, query), query) }
}

/// Queries that stand on the same level.
#[derive(Clone, Copy)]
struct Group<W> {
    query: [W; GROUP],
    at: [usize; GROUP],
}

/// Moves a group one level down.
///
/// # Safety
/// As [`Simd`].
#[inline(always)]
unsafe fn step<S: Simd, W: Word>(level: &LevelPlan<'_>, below: super::plan::Lines<'_>, group: &mut Group<W>) {
    macro_rules! each {
        ($encoding:expr) => {
            for (at, &query) in group.at.iter_mut().zip(&group.query) {
                let node = (*at).min(level.lines.last());
                // SAFETY: the contract is passed on.
                let child = unsafe { child::<S, W>($encoding, level.lines.at(node), query) };
                *at = node * const { $encoding.separators(W::BYTES) + 1 } + child;
                below.prefetch(*at);
            }
        };
    }
    match level.encoding {
        Encoding::Delta8 => each!(Encoding::Delta8),
        Encoding::Delta16 => each!(Encoding::Delta16),
        Encoding::Delta32 => each!(Encoding::Delta32),
        _ => each!(Encoding::Raw),
    }
}

/// Takes the answers of a batch, a group at a time.
pub(crate) trait Output<B: Bits> {
    /// Takes the answers of `count <= GROUP` queries, from number `first` on, which are inside one word of a
    /// bitmap.
    fn each(&mut self, first: usize, count: usize, answers: impl Answers<B>);
}

/// Answers of a group, of the kind that an output asks for, and once. Not closures: methods can be inlined
/// for sure, into code compiled for an instruction set.
pub(crate) trait Answers<B: Bits> {
    /// All that is known of query `i`. Asked in ascending order.
    fn hit(&mut self, i: usize) -> Hit<B>;
    /// Ranks of the first queries, as many as there is room for.
    #[inline(always)]
    fn ranks(&mut self, ranks: &mut [u64]) {
        for (i, rank) in ranks.iter_mut().enumerate() {
            *rank = self.hit(i).rank;
        }
    }
    /// A bit for each of the first `count` queries that is there.
    #[inline(always)]
    fn presence(&mut self, count: usize) -> u64 {
        let mut bits = 0;
        for i in 0..count {
            bits |= u64::from(self.hit(i).found) << i;
        }
        bits
    }
    /// Values of the first queries, as many as there is room for, and a bit for each that is there.
    #[inline(always)]
    fn values(&mut self, values: &mut [B]) -> u64 {
        let mut bits = 0;
        for (i, value) in values.iter_mut().enumerate() {
            let hit = self.hit(i);
            *value = hit.value;
            bits |= u64::from(hit.found) << i;
        }
        bits
    }
}

/// Hits of a group that stands at its tuple lines.
struct Leaves<'a, S, W> {
    plan: &'a Plan<'a>,
    group: &'a Group<W>,
    simd: PhantomData<S>,
}

impl<S: Simd, W: Word, B: Bits> Answers<B> for Leaves<'_, S, W> {
    #[inline(always)]
    fn hit(&mut self, i: usize) -> Hit<B> {
        // SAFETY: made by `batch` alone, whose contract is that of `Simd`.
        unsafe { leaf::<S, W, B>(self.plan, self.group.at[i], self.group.query[i]) }
    }
}

/// All queries, in groups on different levels. `flip` is xor-ed to each query.
///
/// # Safety
/// As [`Simd`].
#[inline(always)]
pub(crate) unsafe fn batch<S: Simd, W: Word, B: Bits, O: Output<B>>(
    plan: &Plan<'_>,
    queries: &[W],
    flip: W,
    output: &mut O,
) {
    // SAFETY: the contract is passed on.
    if unsafe { sweep::pays::<S, W>(plan, queries, flip) } {
        // SAFETY: the contract is passed on.
        return unsafe { sweep::sweep::<S, W, B, O>(plan, queries, flip, output) };
    }
    if let Some(grid) = &plan.grid {
        // SAFETY: the contract is passed on.
        return unsafe { grid::batch::<S, W, B, O>(plan, grid, queries, flip, output) };
    }
    let depth = plan.depth();
    let groups = queries.len().div_ceil(GROUP);
    let mut ring = [Group { query: [W::default(); GROUP], at: [0; GROUP] }; RING];
    for clock in 0..groups + depth {
        for stage in (0..=depth).rev() {
            let Some(number) = clock.checked_sub(stage).filter(|&number| number < groups) else { continue };
            let group = &mut ring[number % RING];
            let first = number * GROUP;
            let count = GROUP.min(queries.len() - first);
            if stage == 0 {
                let queries = &queries[first..first + count];
                for i in 0..GROUP {
                    // A short last group is filled up with its last query; those answers are dropped.
                    let query = queries[i.min(count - 1)];
                    group.query[i] = query ^ flip;
                    group.at[i] = 0;
                }
            }
            if let Some(level) = plan.level(stage) {
                let below = plan.level(stage + 1).map_or(plan.tuple_lines, |level| level.lines);
                // SAFETY: the contract is passed on.
                unsafe { step::<S, W>(level, below, group) };
            } else {
                output.each(first, count, Leaves::<S, W> { plan, group, simd: PhantomData });
            }
        }
    }
}
