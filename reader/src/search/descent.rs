//! One descent, and a batch of descents.
//!
//! A batch is cut into groups of [`GROUP`] queries. At each step of the clock every group in flight moves one
//! level down, the lowest first, and prefetches the line it needs at its next step; one new group enters at
//! the root.
//!
//! At any time there are groups on all levels, so the misses of the bottom level and of the tuple lines
//! overlap with compares in cached lines (interleaving; FAST section 5.2 pipelines a group level by level
//! instead).

use super::plan::{LevelPlan, Lines, Plan};
use crate::arch::{Simd, prefetch};
use pleach_format::key::{Bits, Word};
use pleach_format::layout::LINE_BYTES;
use pleach_format::line::{self, Line};
use pleach_format::section::LEVELS_MAX;
use pleach_format::spine::{self, Encoding, delta_header, is_inexact};
use pleach_format::view;
use std::hint::select_unpredictable;
use std::marker::PhantomData;

/// Queries per group. Divides 64, so that a group's bits are in one word of a bitmap.
pub(crate) const GROUP: usize = 16;
/// Maximum number of groups in flight: one per level and one at the tuple lines; a power of two.
const RING: usize = (LEVELS_MAX + 1).next_power_of_two();

/// Result of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hit<B> {
    /// Rank of the query's lower bound.
    pub(crate) rank: u64,
    /// True if the key at that rank is the query.
    pub(crate) found: bool,
    /// Value at that rank; the default if not found.
    pub(crate) value: B,
}

/// Counts the words among the first `n` of a line that are below `query`.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
pub(super) unsafe fn below<S: Simd, W: Word>(line: &Line, n: usize, query: W) -> usize {
    debug_assert!(n * W::BYTES <= line.len());
    // SAFETY: the caller guarantees the CPU features of `S`.
    unsafe {
        match W::BYTES {
            4 => S::below32(line, n, query.to_u128() as u32),
            8 => S::below64(line, n, query.to_u128() as u64),
            // No vector compare is that wide; at most four words are counted.
            _ => (0..n).map(|slot| usize::from(line::key::<W>(line, slot) < query)).sum(),
        }
    }
}

/// Returns the code of a query in the grid of a delta line: 0 below its base, at most `max`.
///
/// Selects, not branches, handle both ends, since a query's position relative to them is practically random.
#[inline(always)]
fn query_code<W: Word>(line: &Line, query: W, max: u64) -> u64 {
    let (base, shift, _) = delta_header::<W>(line);
    let cell = query.cell(base, shift);
    let cell = select_unpredictable(cell > max, max, cell);
    select_unpredictable(query < base, 0, cell)
}

/// Returns the child of a spine line for a query.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
unsafe fn child<S: Simd, W: Word>(encoding: Encoding, line: &Line, query: W) -> usize {
    // SAFETY: the caller guarantees the CPU features of `S`.
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

/// Searches one tuple line for a query.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
pub(crate) unsafe fn leaf<S: Simd, W: Word, B: Bits>(plan: &Plan<'_>, at: usize, query: W) -> Hit<B> {
    let n = const { line::geometry::<W, B>().tuples_per_line() };
    let at = at.min(plan.tuple_lines.last());
    let line = plan.tuple_lines.at(at);
    // SAFETY: the caller guarantees the CPU features of `S`.
    let slot = unsafe { below::<S, W>(line, n, query) };
    if slot == n
        && plan.header.inexact_lines > 0
        && at < plan.tuple_lines.last()
        && passed_inexact(plan, at, query)
    {
        return step_right::<W, B>(plan, at, query);
    }
    hit_in::<W, B>(plan, at, slot, query)
}

/// Returns the hit of a query that has `slot` keys of tuple line `at` below it, and all earlier lines.
#[inline(always)]
pub(super) fn hit_in<W: Word, B: Bits>(plan: &Plan<'_>, at: usize, slot: usize, query: W) -> Hit<B> {
    let n = const { line::geometry::<W, B>().tuples_per_line() };
    // A slot past the end is never equal: the last key is below the query. The rank distinguishes a key of
    // all ones from padding.
    let rank = at as u64 * n as u64 + slot as u64;
    let (slot, line) = (slot.min(n - 1), plan.tuple_lines.at(at));
    let found = line::key::<W>(line, slot) == query && rank < plan.tuples;
    let value = line::value::<W, B>(line, slot);
    Hit { rank: rank.min(plan.tuples), found, value: select_unpredictable(found, value, B::default()) }
}

/// Returns true if the border between tuple line `at`, which is not the last, and the next one is inexact, so
/// that it may not separate them, and the query is in its cell. The lines on the way were just read, so they
/// are in the cache.
#[cold]
#[inline(never)]
fn passed_inexact<W: Word>(plan: &Plan<'_>, at: usize, query: W) -> bool {
    // The search in a group of lines leaves only its last line to the right.
    if !(at + 1).is_multiple_of(plan.child_lines) {
        return false;
    }
    let mut at = at / plan.child_lines;
    for level in (0..plan.depth()).rev().filter_map(|stage| plan.level(stage)) {
        let slot = at % level.fanout;
        at /= level.fanout;
        // The border to the right of the last child is in the level above.
        if slot + 1 < level.fanout {
            let line = level.lines.at(at.min(level.lines.last()));
            return is_inexact(level.encoding, line)
                && spine::code(level.encoding, line, slot) == query_code(line, query, u64::MAX);
        }
    }
    false
}

/// Returns the hit to the right of tuple line `at`, all of whose keys are below the query: either a border on
/// the way is inexact, or the query is between two lines.
#[cold]
#[inline(never)]
pub(super) fn step_right<W: Word, B: Bits>(plan: &Plan<'_>, at: usize, query: W) -> Hit<B> {
    let bytes = view::Bytes(plan.bytes);
    let n = const { line::geometry::<W, B>().tuples_per_line() };
    // `Header::parse` has checked that every line is inside the bytes.
    let right = view::step_right::<W, _>(plan.header, &bytes, at as u64 + 1, query);
    let at = right.map_or(plan.tuple_lines.last(), |right| right as usize);
    let slot = line::keys_below::<W>(plan.tuple_lines.at(at), n, query);
    hit_in(plan, at, slot, query)
}

/// Returns the number of the tuple line to which the spine leads a query, or that to which a tree leads it, nearly.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
pub(crate) unsafe fn line_of<S: Simd, W: Word>(plan: &Plan<'_>, query: W) -> usize {
    if let Some(tree) = &plan.tree {
        let n = plan.header.geometry.tuples_per_line() as u64;
        return ((tree.rank(query) / n) as usize).min(plan.tuple_lines.last());
    }
    let mut at = 0;
    for level in plan.levels() {
        let node = at.min(level.lines.last());
        // SAFETY: the caller guarantees the CPU features of `S`.
        at = node * level.fanout + unsafe { child::<S, W>(level.encoding, level.lines.at(node), query) };
    }
    line_in_group(plan, at, query)
}

/// Returns the first tuple line of a group, a child of the lowest level, whose last key is not below the query, or the
/// last line of the group. No branch depends on the query.
#[inline(always)]
fn line_in_group<W: Word>(plan: &Plan<'_>, group: usize, query: W) -> usize {
    let last_slot = plan.header.geometry.tuples_per_line() - 1;
    // A forged line may lead to any group, and `Lines::at` clamps.
    let mut at = group.saturating_mul(plan.child_lines).min(plan.tuple_lines.last());
    let mut width = plan.child_lines;
    while width > 1 {
        width /= 2;
        let is_right = line::key::<W>(plan.tuple_lines.at(at + width - 1), last_slot) < query;
        at += select_unpredictable(is_right, width, 0);
    }
    at.min(plan.tuple_lines.last())
}

/// Queries on the same level.
#[derive(Clone, Copy)]
struct Group<W> {
    query: [W; GROUP],
    at: [usize; GROUP],
}

/// What a level leads to.
struct Below<'a> {
    lines: Lines<'a>,
    /// Lines in a child.
    child_lines: usize,
}

impl Below<'_> {
    /// Prefetches the line of a child that is read first.
    #[inline(always)]
    fn prefetch(&self, child: usize) {
        self.lines.prefetch(child.wrapping_mul(self.child_lines) + (self.child_lines - 1) / 2);
    }
}

/// Moves a group one level down.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
unsafe fn step<S: Simd, W: Word>(level: &LevelPlan<'_>, below: &Below<'_>, group: &mut Group<W>) {
    macro_rules! each {
        ($encoding:expr) => {
            for (at, &query) in group.at.iter_mut().zip(&group.query) {
                let node = (*at).min(level.lines.last());
                // SAFETY: the caller guarantees the CPU features of `S`.
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

/// Receives the answers of a batch, a group at a time.
pub(crate) trait Output<B: Bits> {
    /// A query that may be right of its line is to be compared with the next one at once, where that is cheap.
    const BOTH_LINES: bool = false;
    /// Returns the word that is searched for in the place of a query.
    #[inline(always)]
    fn query<W: Word>(&self, query: W) -> W {
        query
    }
    /// Receives the answers of `count <= GROUP` queries from number `first` on; their bits are in one word of
    /// a bitmap.
    fn each(&mut self, first: usize, count: usize, answers: impl Answers<B>);
}

/// Answers of a group. An output calls one of the methods, once. These are not closures, because methods are
/// sure to be inlined into code compiled for an instruction set.
pub(crate) trait Answers<B: Bits> {
    /// Returns the hit of query `i`; called in ascending order.
    fn hit(&mut self, i: usize) -> Hit<B>;
    /// Writes the ranks of the first `ranks.len()` queries.
    #[inline(always)]
    fn ranks(&mut self, ranks: &mut [u64]) {
        for (i, rank) in ranks.iter_mut().enumerate() {
            *rank = self.hit(i).rank;
        }
    }
    /// Returns a bitmap of the first `count` queries; a bit is 1 if the key is present.
    #[inline(always)]
    fn presence(&mut self, count: usize) -> u64 {
        let mut bits = 0;
        for i in 0..count {
            bits |= u64::from(self.hit(i).found) << i;
        }
        bits
    }
    /// Writes the ranks and the values of the tuples at the lower bounds of the first `count` queries, or `is_before`
    /// of those before them. Returns a bitmap of the queries that have no such tuple, whose rank and value are
    /// anything.
    #[inline(always)]
    fn near<W: Word>(
        &mut self,
        plan: &Plan<'_>,
        is_before: bool,
        count: usize,
        mut ranks: Option<&mut [u64]>,
        mut values: Option<&mut [B]>,
    ) -> u64 {
        let mut missing = 0;
        for i in 0..count {
            let rank = self.hit(i).rank.wrapping_sub(u64::from(is_before));
            missing |= u64::from(rank >= plan.tuples) << i;
            if let Some(to) = ranks.as_mut().and_then(|ranks| ranks.get_mut(i)) {
                *to = rank;
            }
            if let Some(to) = values.as_mut().and_then(|values| values.get_mut(i)) {
                let (line, slot) = plan.place::<W, B>(rank);
                *to = line::value::<W, B>(line, slot);
            }
        }
        missing
    }
    /// Writes the values of the first `values.len()` queries, and returns their presence as a bitmap.
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

/// Answers of a group that has arrived at its tuple lines, or at groups of them.
struct Leaves<'a, S, W> {
    plan: &'a Plan<'a>,
    group: &'a Group<W>,
    simd: PhantomData<S>,
}

impl<S: Simd, W: Word, B: Bits> Answers<B> for Leaves<'_, S, W> {
    #[inline(always)]
    fn hit(&mut self, i: usize) -> Hit<B> {
        let query = self.group.query[i];
        let at = line_in_group(self.plan, self.group.at[i], query);
        // SAFETY: only `batch` makes a `Leaves`, and its caller guarantees the CPU features of `S`.
        unsafe { leaf::<S, W, B>(self.plan, at, query) }
    }
}

/// Prefetches queries that are read soon after those from `first` on. The prefetches of lines leave the processor's own
/// ones of queries behind.
#[inline(always)]
fn prefetch_queries<W: Word>(queries: &[W], first: usize) {
    const AHEAD_BYTES: usize = 1024;
    for line in 0..(GROUP * W::BYTES).div_ceil(LINE_BYTES) {
        let at = queries.as_ptr().wrapping_add(first);
        prefetch(at.wrapping_byte_add(AHEAD_BYTES + line * LINE_BYTES));
    }
}

/// Searches for all queries, in groups on different levels. Each query is xor-ed with `flip`.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
pub(crate) unsafe fn batch<S: Simd, W: Word, B: Bits, O: Output<B>>(
    plan: &Plan<'_>,
    queries: &[W],
    flip: W,
    output: &mut O,
) {
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
                prefetch_queries(queries, first);
                let queries = &queries[first..first + count];
                for i in 0..GROUP {
                    // A short last group is padded with its last query; the extra answers are dropped.
                    let query = queries[i.min(count - 1)];
                    group.query[i] = output.query(query ^ flip);
                    group.at[i] = 0;
                }
            }
            if let Some(level) = plan.level(stage) {
                let below = match plan.level(stage + 1) {
                    Some(level) => Below { lines: level.lines, child_lines: 1 },
                    None => Below { lines: plan.tuple_lines, child_lines: plan.child_lines },
                };
                // SAFETY: the caller guarantees the CPU features of `S`.
                unsafe { step::<S, W>(level, &below, group) };
            } else {
                output.each(first, count, Leaves::<S, W> { plan, group, simd: PhantomData });
            }
        }
    }
}
