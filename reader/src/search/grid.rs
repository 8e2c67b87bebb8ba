//! Look-ups by the grid: a unit of 64 bits, then the tuple line.
//!
//! A batch goes through three steps in groups of [`GROUP`] queries: find the cell and ask for its unit;
//! count the marks before the cell and ask for the tuple line, and for the next one if the cell has a mark
//! itself; search the line. Between two steps of a group come those of [`UNIT_AHEAD`] and [`LINE_AHEAD`]
//! others, so that units, which mostly come from a cache, and lines, which do not, are under way at the
//! same time. The cells of a group are computed together, by vector instructions where there are any,
//! and so are ranks from what the lines said.
//!
//! What a forged file says is clamped: the numbers of segments, units and lines to the last one.

use super::descent::{self, Answers, Hit, Output};
use super::plan::Plan;
use crate::arch::{self, Simd};
use pleach_format::Header;
use pleach_format::grid::{self, BLOCK_UNITS, GridGeometry, Segment};
use pleach_format::key::{Bits, Word};
use pleach_format::line;
use std::hint::{black_box, select_unpredictable};
use std::marker::PhantomData;

/// Queries that take a step together.
const GROUP: usize = 8;
/// Groups between asking for a unit and reading it.
const UNIT_AHEAD: usize = 2;
/// Groups between asking for a unit and reading the line.
const LINE_AHEAD: usize = 6;
/// Groups in flight; a power of two.
const RING: usize = (LINE_AHEAD + 1).next_power_of_two();

/// The arrays of a file's grid, proved to lie in its bytes.
#[derive(Clone, Copy)]
pub(crate) struct GridPlan<'a> {
    segments: *const [u8; 8],
    units: *const [u8; 8],
    supers: *const [u8; 4],
    last_segment: usize,
    last_unit: u32,
    shape: GridGeometry,
    bytes: PhantomData<&'a [u8]>,
}

// SAFETY: a `GridPlan` is a shared borrow of immutable bytes, like the `&[u8]` it was made from.
unsafe impl Send for GridPlan<'_> {}
// SAFETY: as above.
unsafe impl Sync for GridPlan<'_> {}

impl<'a> GridPlan<'a> {
    /// `None` without a grid, and for bytes that the header does not describe.
    pub(super) fn new(header: &Header, bytes: &'a [u8]) -> Option<Self> {
        let (offset, shape) = header.grid?;
        let section = bytes.get(usize::try_from(offset).ok()?..)?;
        let section = section.get(..usize::try_from(shape.bytes()).ok()?)?;
        let count = |number: u64| usize::try_from(number).ok();
        let (segments, _) = section.as_chunks::<8>();
        let (units, _) = section.get(count(shape.units_at)?..)?.as_chunks::<8>();
        let (supers, _) = section.get(count(shape.supers_at)?..)?.as_chunks::<4>();
        Some(Self {
            segments: segments.get(..count(shape.segments)?)?.as_ptr(),
            units: units.get(..count(shape.units)?)?.as_ptr(),
            supers: supers.get(..count(shape.supers)?)?.as_ptr(),
            last_segment: count(shape.segments)?.checked_sub(1)?,
            last_unit: u32::try_from(shape.units).ok()?.checked_sub(1)?,
            shape,
            bytes: PhantomData,
        })
    }

    #[inline(always)]
    fn segment(&self, number: usize) -> Segment {
        // SAFETY: `segments` points to `last_segment + 1` segments that live for 'a, and the index is at
        // most `last_segment`.
        Segment::from_bytes(unsafe { &*self.segments.add(number.min(self.last_segment)) })
    }

    /// Unit and cell of a position.
    #[inline(always)]
    fn place(&self, position: u32) -> (u32, u32) {
        let (segment, inside) = grid::segment_of(position, self.shape.segment_bits);
        grid::place(self.segment(segment), inside)
    }

    #[inline(always)]
    fn prefetch(&self, unit: u32) {
        arch::prefetch(self.units.wrapping_add(unit as usize));
    }

    /// Marks before a cell, and whether it has one itself.
    ///
    /// # Safety
    /// `unit` is at most `last_unit`.
    #[inline(always)]
    unsafe fn marks_before(&self, unit: u32, cell: u32) -> (u32, bool) {
        let unit = unit as usize;
        // SAFETY: `units` points to `last_unit + 1` units that live for 'a, and the index is at most
        // `last_unit` by the contract.
        let bits = u64::from_le_bytes(unsafe { *self.units.add(unit) });
        // SAFETY: `supers` points to one super for each started block of units, which live for 'a.
        let counted = u32::from_le_bytes(unsafe { *self.supers.add(unit / BLOCK_UNITS as usize) });
        let (marks, own) = grid::marks_before(bits, cell);
        (counted.wrapping_add(marks), own)
    }
}

/// Of the first `n` words of a line, a bit for each that is the query.
///
/// # Safety
/// As [`Simd`].
#[inline(always)]
unsafe fn equal<S: Simd, W: Word>(line: &line::Line, n: usize, query: W) -> u32 {
    // SAFETY: the contract is passed on.
    unsafe {
        match W::BYTES {
            4 => S::equal32(line, n, query.to_u128() as u32),
            _ => S::equal64(line, n, query.to_u128() as u64),
        }
    }
}

/// Leaves a number in an array by a store of its own. Else a compiler that sees the array read as a vector
/// below puts that vector together number by number, which costs more than the count that made each.
#[inline(always)]
fn put(place: &mut u32, number: u32) {
    // SAFETY: a reference is valid for writes.
    unsafe { std::ptr::write_volatile(place, number) }
}

/// All that is known of a query, whose line is `at` or a later one.
///
/// # Safety
/// As [`Simd`].
#[inline(always)]
unsafe fn settle<S: Simd, W: Word, B: Bits>(plan: &Plan<'_>, at: u32, query: W) -> Hit<B> {
    let n = const { line::geometry::<W, B>().tuples_per_line() };
    let mut at = at as usize;
    // SAFETY: the contract is passed on.
    let mut slot = unsafe { descent::below::<S, W>(plan.tuple_lines.at(at), n, query) };
    if slot == n && at < plan.tuple_lines.last() {
        at += 1;
        // SAFETY: the contract is passed on.
        slot = unsafe { descent::below::<S, W>(plan.tuple_lines.at(at), n, query) };
        if slot == n {
            return descent::step_right::<W, B>(plan, at - 1, query);
        }
    }
    descent::hit_in::<W, B>(plan, at, slot, query)
}

/// One query.
///
/// # Safety
/// As [`Simd`].
#[inline(always)]
pub(crate) unsafe fn locate<S: Simd, W: Word, B: Bits>(
    plan: &Plan<'_>,
    grid: &GridPlan<'_>,
    query: W,
) -> Hit<B> {
    let (unit, cell) = grid.place(grid.shape.scale::<W>().position(query));
    // SAFETY: the unit is clamped.
    let (at, _) = unsafe { grid.marks_before(unit.min(grid.last_unit), cell) };
    let at = at.min(plan.tuple_lines.last() as u32);
    // SAFETY: the contract is passed on.
    unsafe { settle::<S, W, B>(plan, at, query) }
}

/// Queries that take a step together.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Group<W> {
    query: [W; GROUP],
    /// Unit, then tuple line.
    at: [u32; GROUP],
    /// Cell, then 1 if it has a mark.
    own: [u32; GROUP],
}

/// All queries. `flip` is xor-ed to each query.
///
/// # Safety
/// As [`Simd`].
#[inline(always)]
pub(super) unsafe fn batch<S: Simd, W: Word, B: Bits, O: Output<B>>(
    plan: &Plan<'_>,
    grid: &GridPlan<'_>,
    queries: &[W],
    flip: W,
    output: &mut O,
) {
    // One segment is in hand; many have to be looked up.
    // SAFETY: the contract is passed on.
    unsafe {
        if grid.shape.segment_bits == 0 {
            pipeline::<S, W, B, O, true>(plan, grid, queries, flip, output);
        } else {
            pipeline::<S, W, B, O, false>(plan, grid, queries, flip, output);
        }
    }
}

/// [`batch`] of a grid of `ONE` segment, or of several.
///
/// # Safety
/// As [`Simd`].
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
    // A short last group is filled up with its last query; those answers are dropped.
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
                // SAFETY: units were clamped when they were asked for.
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
            // SAFETY: the contract is passed on, and lines were clamped when they were asked for.
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

/// Answers of a group that stands at its tuple lines.
///
/// Each query is compared with the keys of one line. A few are *late*: all keys of that line are below
/// them, so that they may stand in a later one. These are answered after the others.
struct Found<'a, S, W> {
    plan: &'a Plan<'a>,
    group: &'a Group<W>,
    simd: PhantomData<S>,
}

/// Numbers that are compared as the words of a line are.
#[repr(align(64))]
struct Said([u32; 16]);

impl Said {
    /// A bit for each of the first `n` numbers that is `number`. They are read from memory, as a vector.
    ///
    /// # Safety
    /// As [`Simd`].
    #[inline(always)]
    unsafe fn equal<S: Simd>(&mut self, n: usize, number: u32) -> u32 {
        black_box(&mut self.0);
        // SAFETY: the contract is passed on.
        unsafe { S::equal32(zerocopy::transmute_ref!(&self.0), n, number) }
    }
}

impl<'a, S: Simd, W: Word> Found<'a, S, W> {
    /// # Safety
    /// As [`Simd`], and `group.at` are numbers of tuple lines.
    #[inline(always)]
    unsafe fn new(plan: &'a Plan<'a>, group: &'a Group<W>) -> Self {
        Self { plan, group, simd: PhantomData }
    }

    /// The tuple line of query `i`, and the query.
    #[inline(always)]
    fn line(&self, i: usize) -> (&'a line::Line, W) {
        let (at, query) = (self.group.at[i], self.group.query[i]);
        // SAFETY: `at` is the number of a tuple line by the contract of `new`.
        (unsafe { self.plan.tuple_lines.at_known(at as usize) }, query)
    }

    /// Value of query `i`, and whether it is there; and a bit for it in `late`, if its line cannot tell.
    #[inline(always)]
    fn find<B: Bits>(&self, i: usize, late: &mut u32) -> (B, bool) {
        let n = const { line::geometry::<W, B>().tuples_per_line() };
        let (line, query) = self.line(i);
        // SAFETY: by the contract of `new`.
        let slots = unsafe { equal::<S, W>(line, n, query) };
        let found = slots != 0;
        let value = line::value::<W, B>(line, (slots | 1 << (n - 1)).trailing_zeros() as usize);
        *late |= (self.group.own[i] & u32::from(!found)) << i;
        (select_unpredictable(found, value, B::default()), found)
    }

    /// Late queries before any line was read: all, if there is a key of all ones, which could be padding.
    #[inline(always)]
    fn padding(&self) -> u32 {
        let any = self.group.query.iter().fold(false, |any, &query| any | (query == W::MAX));
        if any { (1 << GROUP) - 1 } else { 0 }
    }
}

impl<S: Simd, W: Word, B: Bits> Answers<B> for Found<'_, S, W> {
    #[inline(always)]
    fn hit(&mut self, i: usize) -> Hit<B> {
        // SAFETY: by the contract of `new`.
        unsafe { settle::<S, W, B>(self.plan, self.group.at[i], self.group.query[i]) }
    }

    #[inline(always)]
    fn ranks(&mut self, ranks: &mut [u64]) {
        let n = const { line::geometry::<W, B>().tuples_per_line() };
        let mut said = Said([0; 16]);
        for i in 0..GROUP {
            let (line, query) = self.line(i);
            // SAFETY: by the contract of `new`.
            put(&mut said.0[i], (unsafe { descent::below::<S, W>(line, n, query) } as u32).to_le());
        }
        // SAFETY: by the contract of `new`.
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

/// Takes the lowest of the first `count` bits.
#[inline(always)]
fn next(bits: &mut u32, count: usize) -> Option<usize> {
    let i = bits.trailing_zeros() as usize;
    *bits &= bits.wrapping_sub(1);
    (i < count).then_some(i)
}
