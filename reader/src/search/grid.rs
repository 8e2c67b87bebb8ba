//! Look-ups by the grid: a unit of 64 bits, then the tuple line.
//!
//! A batch goes through three steps in groups of [`GROUP`] queries. First find the cell and prefetch its
//! unit. Then count the marks before the cell and prefetch the tuple line, and also the next one if the cell
//! itself has a mark. Last, search the line. Steps of [`UNIT_AHEAD`] and [`LINE_AHEAD`] other groups come
//! between those of a group, so that loads of units, which mostly hit a cache, and of lines, which do not,
//! overlap.
//!
//! The cells of a group are computed together, by vector instructions where there are any, and so are ranks
//! from the results of the lines. Numbers of segments, units and lines are clamped to the last one, so a
//! forged file cannot lead outside.

use super::descent::{self, Answers, Hit, Output};
use super::grid_plan::GridPlan;
use super::plan::Plan;
use crate::arch::Simd;
use pleach_format::grid;
use pleach_format::key::{Bits, Word};
use pleach_format::line;
use std::hint::{black_box, select_unpredictable};
use std::marker::PhantomData;

/// Queries per group; they take each step together.
const GROUP: usize = 8;
/// Groups between the prefetch of a unit and the read of it.
const UNIT_AHEAD: usize = 2;
/// Groups between the prefetch of a unit and the read of the line.
const LINE_AHEAD: usize = 6;
/// Groups in flight; a power of two.
const RING: usize = (LINE_AHEAD + 1).next_power_of_two();

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
    let (unit, cell) = grid.place(grid.shape.scale::<W>().position(query));
    // SAFETY: the unit is clamped to `last_unit`.
    let (at, _) = unsafe { grid.marks_before(unit.min(grid.last_unit), cell) };
    let at = at.min(plan.tuple_lines.last() as u32);
    // SAFETY: the caller guarantees the CPU features of `S`.
    unsafe { settle::<S, W, B>(plan, at, query) }
}

/// Queries that take each step together.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Group<W> {
    query: [W; GROUP],
    /// First the unit, then the tuple line.
    at: [u32; GROUP],
    /// First the cell, then 1 if the cell has a mark.
    own: [u32; GROUP],
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
    // A single segment is loaded once; several must be looked up per query.
    // SAFETY: the caller guarantees the CPU features of `S`.
    unsafe {
        if grid.shape.segment_bits == 0 {
            pipeline::<S, W, B, O, true>(plan, grid, queries, flip, output);
        } else {
            pipeline::<S, W, B, O, false>(plan, grid, queries, flip, output);
        }
    }
}

/// Runs [`batch`] for a grid of one segment (`ONE`) or of several.
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
    let scale = grid.shape.scale::<W>();
    let only = grid.segment(0);
    let lines = plan.tuple_lines;
    let last = lines.last() as u32;
    let (whole, rest) = queries.as_chunks::<GROUP>();
    let mut ring = [Group { query: [W::default(); GROUP], at: [0; GROUP], own: [0; GROUP] }; RING];
    // A short last group is padded with its last query; the extra answers are dropped.
    let mut padded = [rest.last().copied().unwrap_or_default(); GROUP];
    padded[..rest.len()].copy_from_slice(rest);
    let groups = whole.len() + usize::from(!rest.is_empty());
    for clock in 0..groups + LINE_AHEAD {
        if clock < groups {
            let group = &mut ring[clock % RING];
            let queries = if clock < whole.len() { &whole[clock] } else { &padded };
            for (query, &asked) in group.query.iter_mut().zip(queries) {
                *query = asked ^ flip;
            }
            if ONE {
                for i in 0..GROUP {
                    (group.at[i], group.own[i]) = grid::place(only, scale.position(group.query[i]));
                }
            } else {
                let mut positions = [0; GROUP];
                for (position, &query) in positions.iter_mut().zip(&group.query) {
                    *position = scale.position(query);
                }
                for (i, &position) in positions.iter().enumerate() {
                    (group.at[i], group.own[i]) = grid.place(position);
                }
            }
            for unit in &mut group.at {
                *unit = (*unit).min(grid.last_unit);
            }
            for &unit in &group.at {
                grid.prefetch(unit);
            }
        }
        if clock >= UNIT_AHEAD && clock - UNIT_AHEAD < groups {
            let group = &mut ring[(clock - UNIT_AHEAD) % RING];
            for i in 0..GROUP {
                // SAFETY: units were clamped to `last_unit` when they were prefetched.
                let (at, own) = unsafe { grid.marks_before(group.at[i], group.own[i]) };
                let at = at.min(last);
                (group.at[i], group.own[i]) = (at, own.into());
                lines.prefetch(at as usize);
                lines.prefetch(at as usize + usize::from(own));
            }
        }
        if clock >= LINE_AHEAD {
            let number = clock - LINE_AHEAD;
            let first = number * GROUP;
            // SAFETY: the caller guarantees the CPU features of `S`; lines were clamped when they were
            // prefetched.
            let hits = unsafe { Found::<S, W>::new(plan, &ring[number % RING]) };
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
struct Found<'a, S, W> {
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

impl<'a, S: Simd, W: Word> Found<'a, S, W> {
    /// # Safety
    /// The caller guarantees the CPU features of `S`, and that `group.at` are numbers of tuple lines.
    #[inline(always)]
    unsafe fn new(plan: &'a Plan<'a>, group: &'a Group<W>) -> Self {
        debug_assert!(group.at.iter().all(|&at| at as usize <= plan.tuple_lines.last()));
        Self { plan, group, simd: PhantomData }
    }

    /// Returns the tuple line of query `i`, and the query.
    #[inline(always)]
    fn line(&self, i: usize) -> (&'a line::Line, W) {
        let (at, query) = (self.group.at[i], self.group.query[i]);
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
        let found = slots != 0;
        let value = line::value::<W, B>(line, (slots | 1 << (n - 1)).trailing_zeros() as usize);
        *late |= (self.group.own[i] & u32::from(!found)) << i;
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

impl<S: Simd, W: Word, B: Bits> Answers<B> for Found<'_, S, W> {
    #[inline(always)]
    fn hit(&mut self, i: usize) -> Hit<B> {
        // SAFETY: the caller of `new` guarantees the CPU features of `S`.
        unsafe { settle::<S, W, B>(self.plan, self.group.at[i], self.group.query[i]) }
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
        for ((rank, at), slot) in ranks.iter_mut().zip(self.group.at).zip(said.0) {
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
