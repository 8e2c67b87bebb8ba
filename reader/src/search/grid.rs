//! Look-ups by the grid: segments where there are any, a unit of 64 bits, then the tuple line.
//!
//! A batch goes through its steps in groups of [`GROUP`] queries. First find the place of each query in the first
//! segment and prefetch what it leads to: a segment, a unit or a line. Where there are segments, take a step for each
//! that may be on the way; queries that have arrived stay where they are. Then count the marks before the cell and
//! prefetch the tuple line, and also the next one if the cell itself has a mark. Last, search the line. Steps of
//! some other groups come between those of a group, so that loads of segments and units, which mostly hit a cache,
//! and of lines, which do not, overlap.
//!
//! The steps of a group are computed together, by vector instructions where there are any ([`Simd::step`]), and so
//! are ranks from the results of the lines. Numbers of segments, units and lines are clamped to the last one, so a
//! forged file cannot lead outside.

use super::descent::{self, Answers, Hit, Output};
use super::grid_plan::GridPlan;
use super::plan::Plan;
use crate::arch::Simd;
use crate::arch::lanes::{LANES, Lanes};
use pleach_format::grid::{Parts, STEPS_MAX};
use pleach_format::key::{Bits, Word};
use pleach_format::line;
use std::hint::{black_box, select_unpredictable};
use std::marker::PhantomData;

/// Queries per group; they take each step together.
const GROUP: usize = LANES;
/// Groups between the prefetch of a segment or a unit and the read of it.
const STEP_AHEAD: usize = 2;
/// Groups between the prefetch of a line and the read of it.
const LINE_AHEAD: usize = 4;
/// Groups in flight; a power of two.
const RING: usize = ((STEPS_MAX as usize + 1) * STEP_AHEAD + LINE_AHEAD + 1).next_power_of_two();

/// Returns a bitmap of the first `n` words of a line; a bit is 1 if the word is the query.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
unsafe fn equal<S: Simd, W: Word>(line: &line::Line, n: usize, query: W) -> u32 {
    debug_assert!(n * W::BYTES <= line.len());
    // SAFETY: the caller guarantees the CPU features of `S`.
    unsafe {
        match W::BYTES {
            4 => S::equal32(line, n, query.to_u128() as u32),
            _ => S::equal64(line, n, query.to_u128() as u64),
        }
    }
}

/// Writes a number into an array by a separate store. Otherwise a compiler that sees the array read as a
/// vector below assembles that vector number by number, which costs more than the count that made each
/// number.
#[inline(always)]
fn put(place: &mut u32, number: u32) {
    // SAFETY: the language guarantees that a `&mut` reference is valid for writes.
    unsafe { std::ptr::write_volatile(place, number) }
}

/// Returns the hit of a query whose tuple line is `at` or a later one.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
unsafe fn settle<S: Simd, W: Word, B: Bits>(plan: &Plan<'_>, at: u32, query: W) -> Hit<B> {
    let n = const { line::geometry::<W, B>().tuples_per_line() };
    let mut at = at as usize;
    // SAFETY: the caller guarantees the CPU features of `S`.
    let mut slot = unsafe { descent::below::<S, W>(plan.tuple_lines.at(at), n, query) };
    if slot == n && at < plan.tuple_lines.last() {
        at += 1;
        // SAFETY: the caller guarantees the CPU features of `S`.
        slot = unsafe { descent::below::<S, W>(plan.tuple_lines.at(at), n, query) };
        if slot == n {
            return descent::step_right::<W, B>(plan, at - 1, query);
        }
    }
    descent::hit_in::<W, B>(plan, at, slot, query)
}

/// Searches for one query.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
pub(crate) unsafe fn locate<S: Simd, W: Word, B: Bits>(
    plan: &Plan<'_>,
    grid: &GridPlan<'_>,
    query: W,
) -> Hit<B> {
    let at = grid.line((plan.tuple_lines.start(), plan.tuple_lines.last()), query);
    // SAFETY: the caller guarantees the CPU features of `S`.
    unsafe { settle::<S, W, B>(plan, at, query) }
}

/// Queries that take each step together.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Group<W> {
    query: [W; GROUP],
    /// Where each is: see [`Place`]. At last the tuple line, and 1 above it if its cell has a mark.
    places: Lanes,
}

impl<W: Word> Group<W> {
    /// Returns the queries in 64 bits each.
    #[inline(always)]
    fn words(&self) -> Lanes {
        Lanes(self.query.map(|query| query.to_u128() as u64))
    }

    /// Returns the tuple line of query `i`.
    #[inline(always)]
    fn at(&self, i: usize) -> u32 {
        self.places.0[i] as u32
    }

    /// Returns 1 if query `i` may be right of its line, else 0.
    #[inline(always)]
    fn own(&self, i: usize) -> u32 {
        (self.places.0[i] >> 32) as u32
    }
}

/// Searches for all queries. Each query is xor-ed with `flip`.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
pub(super) unsafe fn batch<S: Simd, W: Word, B: Bits, O: Output<B>>(
    plan: &Plan<'_>,
    grid: &GridPlan<'_>,
    queries: &[W],
    flip: W,
    output: &mut O,
) {
    // SAFETY: the caller guarantees the CPU features of `S`.
    unsafe {
        if grid.shape.steps == 0 && matches!(grid.shape.root.parts(), Some(Parts::Units(_))) {
            pipeline::<S, W, B, O, true>(plan, grid, queries, flip, output);
        } else {
            pipeline::<S, W, B, O, false>(plan, grid, queries, flip, output);
        }
    }
}

/// Runs [`batch`] for a grid whose first segment has units (`ONE`) or others.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
unsafe fn pipeline<S: Simd, W: Word, B: Bits, O: Output<B>, const ONE: bool>(
    plan: &Plan<'_>,
    grid: &GridPlan<'_>,
    queries: &[W],
    flip: W,
    output: &mut O,
) {
    let arrays = &grid.arrays((plan.tuple_lines.start(), plan.tuple_lines.last()));
    let steps = if ONE { 0 } else { grid.shape.steps as usize };
    let unit_at = (steps + 1) * STEP_AHEAD;
    let line_at = unit_at + LINE_AHEAD;
    let (whole, rest) = queries.as_chunks::<GROUP>();
    let mut ring = [Group { query: [W::default(); GROUP], places: Lanes([0; GROUP]) }; RING];
    // A short last group is padded with its last query; the extra answers are dropped.
    let mut padded = [rest.last().copied().unwrap_or_default(); GROUP];
    padded[..rest.len()].copy_from_slice(rest);
    let groups = whole.len() + usize::from(!rest.is_empty());
    for clock in 0..groups + line_at {
        if clock < groups {
            let group = &mut ring[clock % RING];
            let queries = if clock < whole.len() { &whole[clock] } else { &padded };
            for (query, &asked) in group.query.iter_mut().zip(queries) {
                *query = asked ^ flip;
            }
            // SAFETY: the caller guarantees the CPU features of `S`.
            unsafe { S::root::<ONE>(arrays, grid.shape.root, &group.words(), &mut group.places) }
        }
        for step in 1..=steps {
            let start = step * STEP_AHEAD;
            if clock >= start && clock - start < groups {
                let group = &mut ring[(clock - start) % RING];
                // SAFETY: the caller guarantees the CPU features of `S`; `grid` guarantees its segments, of which
                // there is one if there is a step.
                unsafe { S::step(arrays, &group.words(), &mut group.places) }
            }
        }
        if clock >= unit_at && clock - unit_at < groups {
            let group = &mut ring[(clock - unit_at) % RING];
            // SAFETY: the caller guarantees the CPU features of `S`; `grid` guarantees its units.
            unsafe { S::lines::<ONE>(arrays, &mut group.places) }
            for i in 0..GROUP {
                plan.tuple_lines.prefetch(group.at(i) as usize);
                plan.tuple_lines.prefetch(group.at(i) as usize + group.own(i) as usize);
            }
        }
        if clock >= line_at {
            let number = clock - line_at;
            let first = number * GROUP;
            // SAFETY: the caller guarantees the CPU features of `S`; `Simd::lines` clamps lines.
            let hits = unsafe { Found::<S, W, ONE>::new(plan, &ring[number % RING]) };
            // The length of whole groups is a constant.
            if number < whole.len() {
                output.each(first, GROUP, hits);
            } else {
                output.each(first, rest.len(), hits);
            }
        }
    }
}

/// Answers of a group that has arrived at its tuple lines.
///
/// Each query is compared with the keys of one line. A few queries are *late*: all keys of that line are
/// below them, so they may be in a later line. These are answered after the others.
struct Found<'a, S, W, const ONE: bool> {
    plan: &'a Plan<'a>,
    group: &'a Group<W>,
    simd: PhantomData<S>,
}

/// Numbers that are compared like the words of a line.
#[repr(align(64))]
struct Said([u32; 16]);

impl Said {
    /// Returns a bitmap of the first `n` numbers; a bit is 1 if the number is `number`. They are read from
    /// memory, as a vector.
    ///
    /// # Safety
    /// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
    #[inline(always)]
    unsafe fn equal<S: Simd>(&mut self, n: usize, number: u32) -> u32 {
        black_box(&mut self.0);
        // SAFETY: the caller guarantees the CPU features of `S`.
        unsafe { S::equal32(zerocopy::transmute_ref!(&self.0), n, number) }
    }
}

impl<'a, S: Simd, W: Word, const ONE: bool> Found<'a, S, W, ONE> {
    /// # Safety
    /// The caller guarantees the CPU features of `S`, and that `group.at` are numbers of tuple lines.
    #[inline(always)]
    unsafe fn new(plan: &'a Plan<'a>, group: &'a Group<W>) -> Self {
        debug_assert!((0..GROUP).all(|i| group.at(i) as usize <= plan.tuple_lines.last()));
        Self { plan, group, simd: PhantomData }
    }

    /// Returns the tuple line of query `i`, and the query.
    #[inline(always)]
    fn line(&self, i: usize) -> (&'a line::Line, W) {
        let (at, query) = (self.group.at(i), self.group.query[i]);
        // SAFETY: the caller of `new` guarantees that `at` is the number of a tuple line.
        (unsafe { self.plan.tuple_lines.at_known(at as usize) }, query)
    }

    /// Returns the value of query `i` and its presence. Sets its bit in `late` if its line does not decide.
    #[inline(always)]
    fn find<B: Bits>(&self, i: usize, late: &mut u32) -> (B, bool) {
        let n = const { line::geometry::<W, B>().tuples_per_line() };
        let (line, query) = self.line(i);
        // SAFETY: the caller of `new` guarantees the CPU features of `S`.
        let slots = unsafe { equal::<S, W>(line, n, query) };
        if ONE {
            let found = slots != 0;
            let value = line::value::<W, B>(line, (slots | 1 << (n - 1)).trailing_zeros() as usize);
            *late |= (self.group.own(i) & u32::from(!found)) << i;
            return (select_unpredictable(found, value, B::default()), found);
        }
        // Where keys crowd, many queries are right of a mark: both lines are compared without a branch.
        let own = self.group.own(i);
        let next = (self.group.at(i) + own).min(self.plan.tuple_lines.last() as u32);
        // SAFETY: the number is clamped to the last line.
        let next = unsafe { self.plan.tuple_lines.at_known(next as usize) };
        // SAFETY: the caller of `new` guarantees the CPU features of `S`.
        let more = unsafe { equal::<S, W>(next, n, query) };
        let line = select_unpredictable(slots != 0, line, next);
        let slots = select_unpredictable(slots != 0, slots, more);
        let found = slots != 0;
        let value = line::value::<W, B>(line, (slots | 1 << (n - 1)).trailing_zeros() as usize);
        let ends = W::read(&next[(n - 1) * W::BYTES..]) < query;
        *late |= (own & u32::from(ends) & u32::from(!found)) << i;
        (select_unpredictable(found, value, B::default()), found)
    }

    /// Returns the queries that are late before any line is read: all, if one is a key of all ones, which
    /// could be padding.
    #[inline(always)]
    fn padding(&self) -> u32 {
        let any = self.group.query.iter().fold(false, |any, &query| any | (query == W::MAX));
        if any { (1 << GROUP) - 1 } else { 0 }
    }
}

impl<S: Simd, W: Word, B: Bits, const ONE: bool> Answers<B> for Found<'_, S, W, ONE> {
    #[inline(always)]
    fn hit(&mut self, i: usize) -> Hit<B> {
        // SAFETY: the caller of `new` guarantees the CPU features of `S`.
        unsafe { settle::<S, W, B>(self.plan, self.group.at(i), self.group.query[i]) }
    }

    #[inline(always)]
    fn ranks(&mut self, ranks: &mut [u64]) {
        let n = const { line::geometry::<W, B>().tuples_per_line() };
        let mut said = Said([0; 16]);
        for i in 0..GROUP {
            let (line, query) = self.line(i);
            // SAFETY: the caller of `new` guarantees the CPU features of `S`.
            put(&mut said.0[i], (unsafe { descent::below::<S, W>(line, n, query) } as u32).to_le());
        }
        // SAFETY: the caller of `new` guarantees the CPU features of `S`.
        let mut late = unsafe { said.equal::<S>(GROUP, n as u32) };
        for ((rank, place), slot) in ranks.iter_mut().zip(self.group.places.0).zip(said.0) {
            let at = place as u32;
            *rank = (u64::from(at) * n as u64 + u64::from(u32::from_le(slot))).min(self.plan.tuples);
        }
        while let Some(i) = next(&mut late, ranks.len()) {
            ranks[i] = Answers::<B>::hit(self, i).rank;
        }
    }

    #[inline(always)]
    fn presence(&mut self, count: usize) -> u64 {
        let (mut present, mut late) = (0, self.padding());
        for i in 0..count {
            present |= u64::from(self.find::<B>(i, &mut late).1) << i;
        }
        while let Some(i) = next(&mut late, count) {
            present = present & !(1 << i) | u64::from(Answers::<B>::hit(self, i).found) << i;
        }
        present
    }

    #[inline(always)]
    fn values(&mut self, values: &mut [B]) -> u64 {
        let (mut present, mut late) = (0, self.padding());
        for (i, value) in values.iter_mut().enumerate() {
            let found;
            (*value, found) = self.find::<B>(i, &mut late);
            present |= u64::from(found) << i;
        }
        while let Some(i) = next(&mut late, values.len()) {
            let hit = Answers::<B>::hit(self, i);
            values[i] = hit.value;
            present = present & !(1 << i) | u64::from(hit.found) << i;
        }
        present
    }
}

/// Removes the lowest bit and returns its number, or `None` if it is not among the first `count`.
#[inline(always)]
fn next(bits: &mut u32, count: usize) -> Option<usize> {
    let i = bits.trailing_zeros() as usize;
    *bits &= bits.wrapping_sub(1);
    (i < count).then_some(i)
}
