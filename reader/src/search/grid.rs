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
use crate::arch::{LINE_BITS, second_at};
use pleach_format::grid::{Parts, STEPS_MAX};
use pleach_format::key::{Bits, Word};
use pleach_format::layout::LINE_BYTES;
use pleach_format::line;
use std::hint::select_unpredictable;
use std::marker::PhantomData;

/// Queries per group; they take each step together.
const GROUP: usize = LANES;
/// Groups between the prefetch of a segment or a unit and the read of it.
const STEP_AHEAD: usize = 2;
/// Groups between the prefetch of a line and the read of it.
const LINE_AHEAD: usize = 4;
/// Groups between the prefetch of queries and the read of them.
const QUERIES_AHEAD: usize = 16;
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

/// Returns a bitmap of the first `n` words of two lines: see [`Simd::equal_pair64`].
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
unsafe fn equal_pair<S: Simd, W: Word>(lines: [&line::Line; 2], n: usize, query: W) -> u32 {
    // SAFETY: the caller guarantees the CPU features of `S`.
    unsafe {
        match W::BYTES {
            4 => S::equal_pair32(lines, n, query.to_u128() as u32),
            _ => S::equal_pair64(lines, n, query.to_u128() as u64),
        }
    }
}

/// Returns a bitmap of the words of two lines that are not below a query: see [`Simd::from_pair64`].
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
unsafe fn from_pair<S: Simd, W: Word>(lines: [&line::Line; 2], n: usize, query: W) -> u32 {
    // SAFETY: the caller guarantees the CPU features of `S`.
    unsafe {
        match W::BYTES {
            4 => S::from_pair32(lines, n, query.to_u128() as u32),
            _ => S::from_pair64(lines, n, query.to_u128() as u64),
        }
    }
}

/// Returns the hit of a query whose tuple line is `at` or a later one.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
unsafe fn settle<S: Simd, W: Word, B: Bits>(plan: &Plan<'_>, at: u32, query: W) -> Hit<B> {
    let n = const { n_of::<W, B>() };
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
    /// Where each is: see [`Place`]. At last the tuple line, and 1 above it if its cell has a mark, or what
    /// [`Simd::pairs`] makes of that.
    places: Lanes,
}

impl<W: Word> Group<W> {
    /// Returns the queries in 64 bits each.
    #[inline(always)]
    fn words(&self) -> Lanes {
        Lanes(self.query.map(|query| query.to_u128() as u64))
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
        let is_one = grid.shape.steps == 0 && matches!(grid.shape.root.parts(), Some(Parts::Units(_)));
        match (is_one, const { (S::PAIRS, O::BOTH_LINES) }) {
            // Below one segment few queries are right of a mark.
            (true, (true, true)) => pipeline::<S, W, B, O, true, true>(plan, grid, queries, flip, output),
            (true, _) => pipeline::<S, W, B, O, true, false>(plan, grid, queries, flip, output),
            (false, (true, _)) => pipeline::<S, W, B, O, false, true>(plan, grid, queries, flip, output),
            (false, _) => pipeline::<S, W, B, O, false, false>(plan, grid, queries, flip, output),
        }
    }
}

/// Runs [`batch`] for a grid whose first segment has units (`ONE`) or others. `PAIRED`: both lines of a query are
/// compared together, and are therefore known by their first bytes.
///
/// # Safety
/// The caller guarantees the CPU features of `S`, as [`Simd`] requires.
#[inline(always)]
unsafe fn pipeline<S: Simd, W: Word, B: Bits, O: Output<B>, const ONE: bool, const PAIRED: bool>(
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
    // What `Simd::pairs` makes of groups.
    let mut nexts = [Lanes([0; GROUP]); RING];
    // A short last group is padded with its last query; the extra answers are dropped.
    let mut padded = [rest.last().copied().unwrap_or_default(); GROUP];
    padded[..rest.len()].copy_from_slice(rest);
    let groups = whole.len() + usize::from(!rest.is_empty());
    for clock in 0..groups + line_at {
        if clock < groups {
            // The prefetches of lines leave the processor's own prefetching of queries behind.
            crate::arch::prefetch(queries.as_ptr().wrapping_add((clock + QUERIES_AHEAD) * GROUP));
            let group = &mut ring[clock % RING];
            let queries = if clock < whole.len() { &whole[clock] } else { &padded };
            for (query, &asked) in group.query.iter_mut().zip(queries) {
                *query = output.query(asked ^ flip);
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
            let at = (clock - unit_at) % RING;
            let (group, nexts) = (&mut ring[at], &mut nexts[at]);
            // SAFETY: the caller guarantees the CPU features of `S`; `grid` guarantees its units.
            unsafe { S::lines::<ONE>(arrays, &mut group.places) }
            if PAIRED {
                // SAFETY: the caller guarantees the CPU features of `S`.
                unsafe { S::pairs(arrays.last_line, &mut group.places, nexts) }
            }
            for i in 0..GROUP {
                if PAIRED {
                    plan.tuple_lines.prefetch_byte(group.places.0[i]);
                    plan.tuple_lines.prefetch_byte(nexts.0[i]);
                } else {
                    let (at, own) = (group.places.0[i] as u32 as usize, (group.places.0[i] >> 32) as usize);
                    plan.tuple_lines.prefetch(at);
                    plan.tuple_lines.prefetch(at + own);
                }
            }
        }
        if clock >= line_at {
            let number = clock - line_at;
            let first = number * GROUP;
            // SAFETY: the caller guarantees the CPU features of `S`; `Simd::lines` clamps lines.
            let hits =
                unsafe { Found::<S, W, ONE, PAIRED>::new(plan, &ring[number % RING], &nexts[number % RING]) };
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
/// Each query is compared with the keys of its line and, where that is cheap or keys crowd, of the next one, without a
/// branch, which would be hard to predict. A few queries are *late*: all keys of these lines are below them. They are
/// answered after the others.
struct Found<'a, S, W, const ONE: bool, const PAIRED: bool> {
    plan: &'a Plan<'a>,
    group: &'a Group<W>,
    nexts: &'a Lanes,
    simd: PhantomData<S>,
}

impl<'a, S: Simd, W: Word, const ONE: bool, const PAIRED: bool> Found<'a, S, W, ONE, PAIRED> {
    /// # Safety
    /// The caller guarantees the CPU features of `S`, and that places are numbers of tuple lines, or if
    /// `PAIRED` places and `nexts` their first bytes.
    #[inline(always)]
    unsafe fn new(plan: &'a Plan<'a>, group: &'a Group<W>, nexts: &'a Lanes) -> Self {
        Self { plan, group, nexts, simd: PhantomData }
    }

    /// Returns the number of the tuple line of query `i`.
    #[inline(always)]
    fn at(&self, i: usize) -> u32 {
        let place = self.group.places.0[i];
        (if PAIRED { place >> LINE_BITS } else { place }) as u32
    }

    /// Returns 1 if query `i` may be right of its line, else 0.
    #[inline(always)]
    fn own(&self, i: usize) -> u32 {
        let place = self.group.places.0[i];
        if PAIRED { u32::from(place != self.nexts.0[i]) } else { (place >> 32) as u32 }
    }

    /// Returns the first bytes of the two lines of query `i`, counted from the first line.
    #[inline(always)]
    fn bytes(&self, i: usize) -> [u64; 2] {
        if PAIRED {
            return [self.group.places.0[i], self.nexts.0[i]];
        }
        let next = (self.at(i) + self.own(i)).min(self.plan.tuple_lines.last() as u32);
        [u64::from(self.at(i)) << LINE_BITS, u64::from(next) << LINE_BITS]
    }

    /// Returns the tuple line of query `i`.
    #[inline(always)]
    fn line(&self, i: usize) -> &'a line::Line {
        let place = self.group.places.0[i];
        // SAFETY: the caller of `new` guarantees that this is the first byte, or the number, of a tuple line.
        unsafe {
            if PAIRED {
                self.plan.tuple_lines.at_byte(place)
            } else {
                self.plan.tuple_lines.at_known(place as u32 as usize)
            }
        }
    }

    /// Returns the tuple line of query `i`, or the next one if the query may be right of it; not past the last.
    #[inline(always)]
    fn next(&self, i: usize) -> &'a line::Line {
        // SAFETY: the caller of `new` guarantees bytes of lines; numbers are clamped to the last.
        unsafe {
            if PAIRED {
                self.plan.tuple_lines.at_byte(self.nexts.0[i])
            } else {
                let next = self.at(i) + self.own(i);
                self.plan.tuple_lines.at_known((next as usize).min(self.plan.tuple_lines.last()))
            }
        }
    }

    /// Returns the value of query `i` and its presence, of its line or, if it may be right of that, the next one.
    #[inline(always)]
    fn find<B: Bits>(&self, i: usize) -> (B, bool) {
        let n = const { n_of::<W, B>() };
        let (line, query) = (self.line(i), self.group.query[i]);
        if ONE {
            // SAFETY: the caller of `new` guarantees the CPU features of `S`.
            return value_at::<W, B>(line, unsafe { equal::<S, W>(line, n, query) });
        }
        let next = self.next(i);
        if PAIRED {
            // SAFETY: the caller of `new` guarantees the CPU features of `S`.
            return value_in_either::<W, B>([line, next], unsafe {
                equal_pair::<S, W>([line, next], n, query)
            });
        }
        // SAFETY: the caller of `new` guarantees the CPU features of `S`.
        let (slots, more) = unsafe { (equal::<S, W>(line, n, query), equal::<S, W>(next, n, query)) };
        let is_first = slots != 0;
        let line = select_unpredictable(is_first, line, next);
        value_at::<W, B>(line, select_unpredictable(is_first, slots, more))
    }

    /// Where the keys of the second line begin, in the numbers that [`Found::below`] returns.
    const fn second_at<B: Bits>() -> usize {
        if PAIRED { second_at(W::BYTES, n_of::<W, B>()) as usize } else { n_of::<W, B>() }
    }

    /// Returns which key is the lower bound of query `i`: its slot in the line of the query, or, if all keys of that
    /// are below the query, `second_at` and its slot in the next line. That slot is the number of keys in a line if
    /// this next line does not decide either.
    #[inline(always)]
    fn below<B: Bits>(&self, i: usize) -> usize {
        let (n, second_at) = const { (n_of::<W, B>(), Self::second_at::<B>()) };
        let (line, next, query) = (self.line(i), self.next(i), self.group.query[i]);
        if PAIRED {
            // Where both are the same line, that one has all keys below the query or decides.
            // SAFETY: the caller of `new` guarantees the CPU features of `S`.
            let bits = u64::from(unsafe { from_pair::<S, W>([line, next], n, query) });
            return (bits | 1 << (second_at + n)).trailing_zeros() as usize;
        }
        // SAFETY: the caller of `new` guarantees the CPU features of `S`.
        let (first, second) =
            unsafe { (descent::below::<S, W>(line, n, query), descent::below::<S, W>(next, n, query)) };
        first + select_unpredictable(first == n, second, 0)
    }

    /// Returns the number of a key that [`Found::below`] returns, counted from the first key of the line of the query.
    #[inline(always)]
    fn tuple<B: Bits>(below: usize) -> usize {
        let (n, second_at) = const { (n_of::<W, B>(), Self::second_at::<B>()) };
        below - select_unpredictable(below >= second_at, second_at - n, 0)
    }

    /// Writes ranks and values of neighbours: see [`Answers::near`].
    #[inline(always)]
    fn near_with<B: Bits, const RANKS: bool, const VALUES: bool>(
        &self,
        is_before: bool,
        count: usize,
        ranks: &mut [u64],
        values: &mut [B],
    ) -> u64 {
        let (n, second_at, plan) = (n_of::<W, B>(), Self::second_at::<B>(), self.plan);
        let near = if is_before {
            const { &Near::of::<W, B>(Self::second_at::<B>(), true) }
        } else {
            const { &Near::of::<W, B>(Self::second_at::<B>(), false) }
        };
        // Shifted by each query, so the last one comes first.
        let mut late = 0;
        for i in (0..count).rev() {
            let below = self.below::<B>(i);
            late = late << 1 | u32::from(below >= second_at + n);
            if RANKS {
                let rank = u64::from(self.at(i)) * n as u64 + Self::tuple::<B>(below) as u64;
                ranks[i] = rank.wrapping_sub(u64::from(is_before)).min(plan.tuples - 1);
            }
            if VALUES {
                let [line, next] = self.bytes(i);
                let base = select_unpredictable(below > near.first_line, next, line);
                let place = near.places[below % 64];
                // SAFETY: both are the first bytes of tuple lines, and `near` leads into them or the one before.
                values[i] = unsafe { plan.tuple_lines.read(base as i64 + i64::from(place)) };
            }
        }
        while let Some(i) = next(&mut late, count) {
            // SAFETY: the caller of `new` guarantees the CPU features of `S`.
            let hit = unsafe { settle::<S, W, B>(plan, self.at(i), self.group.query[i]) };
            let rank = hit.rank.wrapping_sub(u64::from(is_before)).min(plan.tuples - 1);
            if RANKS {
                ranks[i] = rank;
            }
            if VALUES {
                let (line, slot) = plan.place::<W, B>(rank);
                values[i] = line::value::<W, B>(line, slot);
            }
        }
        self.outside::<B>(is_before)
    }

    /// Returns a bitmap of the queries that are above all keys, or `is_before` of those without a key below them.
    #[inline(always)]
    fn outside<B: Bits>(&self, is_before: bool) -> u64 {
        let plan = self.plan;
        let (line, slot) =
            if is_before { plan.place::<W, B>(0) } else { plan.place::<W, B>(plan.tuples - 1) };
        let edge = line::key::<W>(line, slot);
        let is_outside = |query: W| if is_before { query <= edge } else { query > edge };
        let any = self.group.query.iter().fold(false, |any, &query| any | is_outside(query));
        if any {
            (0..GROUP).fold(0, |bits, i| bits | u64::from(is_outside(self.group.query[i])) << i)
        } else {
            0
        }
    }

    /// Returns the queries that their lines do not decide.
    #[inline(always)]
    fn late<B: Bits>(&self, present: u64) -> u32 {
        let padding = self.padding();
        if present == (1 << GROUP) - 1 {
            return padding;
        }
        let open = (0..GROUP).fold(0, |open, i| open | self.own(i) << i) & !(present as u32);
        if ONE {
            return padding | open;
        }
        let last = const { n_of::<W, B>() - 1 };
        let mut above = 0;
        for i in 0..GROUP {
            above |= u32::from(line::key::<W>(self.next(i), last) < self.group.query[i]) << i;
        }
        padding | open & above
    }

    /// Returns the queries that are late before any line is read: all, if one is a key of all ones, which
    /// could be padding.
    #[inline(always)]
    fn padding(&self) -> u32 {
        let any = self.group.query.iter().fold(false, |any, &query| any | (query == W::MAX));
        if any { (1 << GROUP) - 1 } else { 0 }
    }
}

impl<S: Simd, W: Word, B: Bits, const ONE: bool, const PAIRED: bool> Answers<B>
    for Found<'_, S, W, ONE, PAIRED>
{
    #[inline(always)]
    fn hit(&mut self, i: usize) -> Hit<B> {
        // SAFETY: the caller of `new` guarantees the CPU features of `S`.
        unsafe { settle::<S, W, B>(self.plan, self.at(i), self.group.query[i]) }
    }

    #[inline(always)]
    fn ranks(&mut self, ranks: &mut [u64]) {
        let n = const { n_of::<W, B>() };
        let mut late = 0;
        for (i, rank) in ranks.iter_mut().enumerate() {
            let (slot, is_late) = if PAIRED {
                let below = self.below::<B>(i);
                (Self::tuple::<B>(below), below == Self::second_at::<B>() + n)
            } else {
                // SAFETY: the caller of `new` guarantees the CPU features of `S`.
                let slot = unsafe { descent::below::<S, W>(self.line(i), n, self.group.query[i]) };
                (slot, slot == n)
            };
            *rank = (u64::from(self.at(i)) * n as u64 + slot as u64).min(self.plan.tuples);
            late |= u32::from(is_late) << i;
        }
        while let Some(i) = next(&mut late, ranks.len()) {
            ranks[i] = Answers::<B>::hit(self, i).rank;
        }
    }

    #[inline(always)]
    fn near<K: Word>(
        &mut self,
        _: &Plan<'_>,
        is_before: bool,
        count: usize,
        ranks: Option<&mut [u64]>,
        values: Option<&mut [B]>,
    ) -> u64 {
        match (ranks, values) {
            (Some(ranks), Some(values)) => self.near_with::<B, true, true>(is_before, count, ranks, values),
            (Some(ranks), None) => self.near_with::<B, true, false>(is_before, count, ranks, &mut []),
            (None, Some(values)) => self.near_with::<B, false, true>(is_before, count, &mut [], values),
            (None, None) => self.outside::<B>(is_before),
        }
    }

    #[inline(always)]
    fn presence(&mut self, count: usize) -> u64 {
        let mut present = 0;
        for i in 0..count {
            present |= u64::from(self.find::<B>(i).1) << i;
        }
        let mut late = self.late::<B>(present);
        while let Some(i) = next(&mut late, count) {
            present = present & !(1 << i) | u64::from(Answers::<B>::hit(self, i).found) << i;
        }
        present
    }

    #[inline(always)]
    fn values(&mut self, values: &mut [B]) -> u64 {
        let mut present = 0;
        for (i, value) in values.iter_mut().enumerate() {
            let is_found;
            (*value, is_found) = self.find::<B>(i);
            present |= u64::from(is_found) << i;
        }
        let mut late = self.late::<B>(present);
        while let Some(i) = next(&mut late, values.len()) {
            let hit = Answers::<B>::hit(self, i);
            values[i] = hit.value;
            present = present & !(1 << i) | u64::from(hit.found) << i;
        }
        present
    }
}

/// Returns the value of the first slot in a bitmap of a line, and whether there is one.
#[inline(always)]
fn value_at<W: Word, B: Bits>(line: &line::Line, slots: u32) -> (B, bool) {
    let (values_at, n) = const { (line::geometry::<W, B>().values_at(), n_of::<W, B>()) };
    let slot = (slots | 1 << (n - 1)).trailing_zeros() as usize;
    let value = B::read(&line[values_at + slot * B::BYTES..]);
    (select_unpredictable(slots != 0, value, B::default()), slots != 0)
}

/// Returns the value of the first slot in a bitmap of two lines (see [`second_at`]), and whether there is one.
#[inline(always)]
fn value_in_either<W: Word, B: Bits>([line, next]: [&line::Line; 2], slots: u32) -> (B, bool) {
    let of_first = const { (1 << second_at(W::BYTES, n_of::<W, B>())) - 1 };
    let line = select_unpredictable(slots & of_first != 0, line, next);
    let at = const { places::<W, B>() }[(slots | 1 << 31).trailing_zeros() as usize];
    let value = B::read(&line[usize::from(at)..]);
    (select_unpredictable(slots != 0, value, B::default()), slots != 0)
}

/// Where the value of a neighbour is, by what [`Found::below`] returns.
struct Near {
    /// Up to this number, counted from the first byte of the line of the query, else from that of the next one.
    first_line: usize,
    places: [i8; 64],
}

impl Near {
    /// Of the tuple at the lower bound, or the one before it.
    const fn of<W: Word, B: Bits>(second_at: usize, is_before: bool) -> Self {
        let (geometry, n) = (line::geometry::<W, B>(), n_of::<W, B>());
        let mut places = [0; 64];
        let mut below = 0;
        while below < second_at + n {
            let is_second = below >= second_at;
            let slot = if is_second { below - second_at } else { below };
            let slot = if slot < n { slot as i8 } else { 0 };
            let (line, slot) = match (is_before, is_second, slot) {
                (false, _, slot) => (0, slot),
                (true, false, 0) => (-1, n as i8 - 1),
                (true, true, 0) => (0, n as i8 - 1),
                (true, _, slot) => (0, slot - 1),
            };
            places[below] = line * LINE_BYTES as i8 + (geometry.values_at() as i8 + slot * B::BYTES as i8);
            below += 1;
        }
        Self { first_line: if is_before { second_at } else { second_at - 1 }, places }
    }
}

/// Returns the number of tuples in a line.
const fn n_of<W: Word, B: Bits>() -> usize {
    line::geometry::<W, B>().tuples_per_line()
}

/// Where the value of each bit of a bitmap of two lines begins in its line.
const fn places<W: Word, B: Bits>() -> [u8; 32] {
    let (geometry, n) = (line::geometry::<W, B>(), n_of::<W, B>());
    let second_at = second_at(W::BYTES, n) as usize;
    let mut places = [geometry.values_at() as u8; 32];
    let mut bit = 0;
    while bit < 32 {
        let slot = bit % second_at;
        if slot < n && bit / second_at < 2 {
            places[bit] = (geometry.values_at() + slot * B::BYTES) as u8;
        }
        bit += 1;
    }
    places
}

/// Removes the lowest bit and returns its number, or `None` if it is not among the first `count`.
#[inline(always)]
fn next(bits: &mut u32, count: usize) -> Option<usize> {
    let i = bits.trailing_zeros() as usize;
    *bits &= bits.wrapping_sub(1);
    (i < count).then_some(i)
}
