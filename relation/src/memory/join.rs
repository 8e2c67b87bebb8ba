//! Joins, with duplicates on both sides.
//!
//! If no right key is duplicated, each left tuple has at most one partner, and a join is one walk into a
//! buffer that is large enough. This is checked during the walk, part by part. If it is not so, or if an
//! answer may be larger than its inputs, the join takes two passes over runs of equal keys. The first counts.
//! The second works on equal pieces of the *output*, so that a run of a million by a million is spread over
//! all threads like any other million million tuples.

use super::buffer::{Buffer, Held, Nothing, Pairs, Tuples, into_two};
use super::columns::Columns;
use super::cut::{gallop, gallop_back, merge};
use super::distinct::is_distinct;
use super::options::Options;
use super::ordered::Target;
use super::part::Part;
use super::ranks::RankPairs;
use super::sweep::{sweep, sweep_checked};
use super::walk::{Anti, Emit, Semi, with_join_walk};
use crate::error::RelationError;
use crate::rules::How;
use pleach_format::Word;
use rayon::prelude::*;

/// Result of a join: columns of equal length. The value of a side that has no part in a tuple is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joined<K, A, B> {
    /// Keys.
    pub keys: Vec<K>,
    /// Left values.
    pub left: Vec<A>,
    /// Right values; for a semi or an anti join, all are the default.
    pub right: Vec<B>,
    /// For an outer join, one number per tuple: 1 if it has a left part, 2 if it has a right one, 3 for both;
    /// otherwise empty.
    pub sides: Vec<u8>,
}

/// Tuples of both sides.
struct Both<'a, 't, K, A, B> {
    left: &'a [A],
    right: &'a [B],
    /// Values for missing parts.
    absent: (A, B),
    has_sides: bool,
    to: (Held<'t, K>, Held<'t, A>, Held<'t, B>, Held<'t, u8>),
}

impl<K: Copy, A: Copy, B: Copy> Emit<K> for Both<'_, '_, K, A, B> {
    #[inline(always)]
    unsafe fn write_at(&mut self, at: usize, i: usize, j: usize, key: K, left: bool, right: bool) {
        // SAFETY: there are as many values as keys; an absent side is not read; the caller guarantees the
        // ranks, and room at `at`.
        unsafe {
            let a = if left { self.left.as_ptr().add(i) } else { &raw const self.absent.0 };
            let b = if right { self.right.as_ptr().add(j) } else { &raw const self.absent.1 };
            self.to.0.write_at(at, key);
            self.to.1.write_at(at, *a);
            self.to.2.write_at(at, *b);
            if self.has_sides {
                self.to.3.write_at(at, u8::from(left) | u8::from(right) << 1);
            }
        }
    }
}

impl<K: Copy, A: Copy, B: Copy> Buffer<K> for Both<'_, '_, K, A, B> {
    fn reserve(&mut self, room: usize) {
        self.to.0.reserve(room);
        self.to.1.reserve(room);
        self.to.2.reserve(room);
        if self.has_sides {
            self.to.3.reserve(room);
        }
    }
    unsafe fn place(&self, from: usize, count: usize, to: u64) {
        // SAFETY: the caller guarantees that the tuples were emitted, and that no other thread writes to
        // these places.
        unsafe {
            self.to.0.place(from, count, to);
            self.to.1.place(from, count, to);
            self.to.2.place(from, count, to);
            if self.has_sides {
                self.to.3.place(from, count, to);
            }
        }
    }
}

/// Tuples of one key, or of consecutive keys of one side alone, and the position of their first answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Left rank, and the number of left tuples.
    pub i: usize,
    pub m: usize,
    /// Right rank, and the number of right tuples.
    pub j: usize,
    pub n: usize,
    pub at: u64,
}

/// Returns the number of answers of `m` left and `n` right tuples of a key.
fn answers(how: How, m: usize, n: usize) -> u128 {
    let (m, n) = (m as u128, n as u128);
    match how {
        How::Semi if n > 0 => m,
        How::Semi => 0,
        How::Anti if n == 0 => m,
        How::Anti => 0,
        _ if m > 0 && n > 0 => m * n,
        How::Left => m,
        How::Right => n,
        How::Full => m + n,
        How::Inner => 0,
    }
}

/// Passes each run of a part, with its number of answers, to `take`. No key continues beyond the part.
fn each_run<K: Word>(a: &[K], b: &[K], part: Part, how: How, mut take: impl FnMut(Run, u128)) {
    let ((mut i, i_end), (mut j, j_end)) = (part.left, part.right);
    while i < i_end || j < j_end {
        let (m, n) = match (a[..i_end].get(i), b[..j_end].get(j)) {
            (Some(x), Some(y)) if x == y => {
                (gallop(&a[..i_end], i, |key| key <= x) - i, gallop(&b[..j_end], j, |key| key <= y) - j)
            }
            (Some(x), Some(y)) if x < y => (gallop(&a[..i_end], i, |key| key < y) - i, 0),
            (Some(x), Some(_)) => (0, gallop(&b[..j_end], j, |key| key < x) - j),
            (Some(_), None) => (i_end - i, 0),
            _ => (0, j_end - j),
        };
        // Keys out of order give no run: then the rest is skipped.
        if m + n == 0 {
            break;
        }
        let count = answers(how, m, n);
        if count > 0 {
            take(Run { i, m, j, n, at: 0 }, count);
        }
        (i, j) = (i + m, j + n);
    }
}

/// Returns the runs of a part, or of whole columns, and their number of answers; `None` above `limit`.
pub(crate) fn runs<K: Word>(
    a: &[K],
    b: &[K],
    part: Part,
    how: How,
    limit: u64,
) -> Result<(Vec<Run>, u64), u128> {
    let (mut runs, mut total) = (Vec::new(), 0u128);
    each_run(a, b, part, how, |run, count| {
        if total <= u128::from(limit) {
            runs.push(Run { at: total as u64, ..run });
        }
        total += count;
    });
    if total > u128::from(limit) { Err(total) } else { Ok((runs, total as u64)) }
}

/// Yields answers `from..to` of some runs: left rank, right rank.
pub(crate) fn expand(
    runs: &[Run],
    how: How,
    (from, to): (u64, u64),
    mut put: impl FnMut(Option<usize>, Option<usize>),
) {
    let mut number = runs.partition_point(|run| run.at <= from).saturating_sub(1);
    let mut at = from;
    while at < to
        && let Some(run) = runs.get(number)
    {
        let end = runs.get(number + 1).map_or(u64::MAX, |next| next.at).min(to);
        let skipped = (at - run.at) as usize;
        let count = (end - at) as usize;
        let is_pair = run.m > 0 && run.n > 0 && !matches!(how, How::Semi | How::Anti);
        if is_pair {
            let (mut left, mut right) = (skipped / run.n, skipped % run.n);
            for _ in 0..count.min(run.m * run.n - skipped) {
                put(Some(run.i + left), Some(run.j + right));
                right += 1;
                if right == run.n {
                    (left, right) = (left + 1, 0);
                }
            }
        } else if run.m > 0 {
            (skipped..run.m.min(skipped + count)).for_each(|left| put(Some(run.i + left), None));
        } else {
            (skipped..run.n.min(skipped + count)).for_each(|right| put(None, Some(run.j + right)));
        }
        at = end;
        number += 1;
    }
}

/// Parts, with no key in two of them, and the number of answers before each; the last entry is the total.
struct Counted {
    parts: Vec<Part>,
    /// Answers before each part; one entry more than there are parts.
    before: Vec<u64>,
}

fn counted<K: Word>(a: &[K], b: &[K], how: How, options: &Options) -> Result<Counted, u128> {
    let tuples = options.part_tuples.max(1).saturating_mul(4);
    let (total, end) = (a.len() + b.len(), (a.len(), b.len()));
    let border = |number: usize| {
        let (i, j) = merge(a, b, number.saturating_mul(tuples).min(total), (0, 0), end);
        let last = |keys: &[K], at: usize| at.checked_sub(1).map(|at| keys[at]);
        match last(a, i).max(last(b, j)) {
            Some(key) if a.get(i) == Some(&key) || b.get(j) == Some(&key) => {
                (gallop_back(a, i, |&k| k < key), gallop_back(b, j, |&k| k < key))
            }
            _ => (i, j),
        }
    };
    pleach_builder::pool::ready();
    let parts: Vec<(Part, u128)> = (0..total.div_ceil(tuples))
        .into_par_iter()
        .map(|number| {
            let from = border(number);
            let is_last = (number + 1).saturating_mul(tuples) >= total;
            let to = if is_last { end } else { border(number + 1) };
            let to = (to.0.max(from.0), to.1.max(from.1));
            let part = Part { left: (from.0, to.0), right: (from.1, to.1) };
            let mut count = 0;
            each_run(a, b, part, how, |_, answers| count += answers);
            (part, count)
        })
        .collect();
    let sum: u128 = parts.iter().map(|part| part.1).sum();
    if sum > 1 << 63 {
        return Err(sum);
    }
    let mut before = vec![0];
    before.extend(parts.iter().scan(0, |at, part| {
        *at += part.1 as u64;
        Some(*at)
    }));
    Ok(Counted { parts: parts.into_iter().map(|part| part.0).collect(), before })
}

impl Counted {
    fn total(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// Writes all answers, in equal pieces.
    fn write<K: Word, B: Buffer<K>>(
        &self,
        (a, b): (&[K], &[K]),
        how: How,
        options: &Options,
        buffer: impl Fn() -> B + Sync + Send,
    ) {
        pleach_builder::pool::ready();
        let piece = options.piece_tuples.max(1) as u64;
        self.parts.par_iter().zip(self.before.par_windows(2)).for_each(|(part, bounds)| {
            let count = bounds[1] - bounds[0];
            if count == 0 {
                return;
            }
            let Ok((runs, _)) = runs(a, b, *part, how, count) else { return };
            (0..count.div_ceil(piece)).into_par_iter().for_each_init(&buffer, |buffer, number| {
                let (from, to) = (number * piece, ((number + 1) * piece).min(count));
                buffer.reserve((to - from) as usize);
                let mut at = 0;
                expand(&runs, how, (from, to), |left, right| {
                    let key = left.map_or_else(|| right.map_or(K::MAX, |j| b[j]), |i| a[i]);
                    let (i, j) = (left.unwrap_or(0), right.unwrap_or(0));
                    if at < (to - from) as usize {
                        // SAFETY: there is room for `to - from`; `expand` yields ranks whose keys were read
                        // above, or none.
                        unsafe { buffer.write_at(at, i, j, key, left.is_some(), right.is_some()) };
                        at += 1;
                    }
                });
                // SAFETY: `at` tuples were written; pieces do not overlap.
                unsafe { buffer.place(0, at, bounds[0] + from) };
            });
        });
    }
}

/// Returns a check that a part's right keys are unique, which semi and anti joins do not need.
fn check<'a, K: Word>(how: How, b: &'a [K]) -> impl Fn(&Part) -> bool + Sync + 'a {
    move |part| matches!(how, How::Semi | How::Anti) || is_distinct(b, part.right)
}

fn fits(tuples: u128, tuple_bytes: usize, options: &Options) -> Result<usize, RelationError> {
    let limit = u128::from(options.memory_bytes) / (tuple_bytes as u128).max(1);
    let limit = limit.min(i64::MAX as u128);
    if tuples > limit {
        return Err(RelationError::TooLarge { what: "the join", tuples, limit });
    }
    Ok(tuples as usize)
}

/// Counts the tuples of a join in one pass; `None` if it finds a right key twice, unless that does not matter.
fn swept<K: Word>(how: How, left: &[K], right: &[K], options: &Options) -> Option<u64> {
    let check = check(how, right);
    with_join_walk!(how, W => sweep_checked::<W, K, _>(left, right, options, || Nothing, &check))
}

/// Counts the tuples of a join. O(|A| + |B|), writes nothing.
///
/// # Errors
/// [`RelationError::TooLarge`] above 2^63 tuples.
pub fn join_count<K: Word>(
    how: How,
    left: &[K],
    right: &[K],
    options: &Options,
) -> Result<u64, RelationError> {
    if let Some(count) = swept(how, left, right, options) {
        return Ok(count);
    }
    let counted = counted(left, right, how, options);
    let limit = 1 << 63;
    counted.map(|counted| counted.total()).map_err(|tuples| RelationError::TooLarge {
        what: "the join",
        tuples,
        limit,
    })
}

/// Returns the ranks of the tuples of a join, in two passes: the first counts, so that exactly as much memory
/// is taken. Semi joins give the first right rank. O(|A| + |B| + answers).
///
/// # Errors
/// [`RelationError::TooLarge`] if the answer exceeds the limit of `options`.
pub fn join_ranks<K: Word>(
    how: How,
    left: &[K],
    right: &[K],
    options: &Options,
) -> Result<RankPairs, RelationError> {
    let mut pairs = RankPairs::default();
    if let Some(count) = swept(how, left, right, options) {
        let room = fits(count.into(), 16, options)?;
        into_two(&mut pairs.left, &mut pairs.right, room, |targets| {
            let buffer = || Pairs::new(targets);
            with_join_walk!(how, W => sweep::<W, K, _>(left, right, options, buffer))
        });
        return Ok(pairs);
    }
    let counted = match counted(left, right, how, options) {
        Ok(counted) => counted,
        Err(tuples) => return fits(tuples, 16, options).map(|_| pairs),
    };
    let room = fits(counted.total().into(), 16, options)?;
    into_two(&mut pairs.left, &mut pairs.right, room, |targets| {
        counted.write((left, right), how, options, || Pairs::new(targets));
        counted.total()
    });
    Ok(pairs)
}

/// Joins two relations: in one pass if no right key is duplicated, else in two. O(|A| + |B| + answers).
///
/// # Errors
/// [`RelationError::TooLarge`], before memory is taken, if the answer exceeds the limit of `options`.
pub fn join<K, A, B>(
    how: How,
    left: Columns<'_, K, A>,
    right: Columns<'_, K, B>,
    options: &Options,
) -> Result<Joined<K, A, B>, RelationError>
where
    K: Word,
    A: Copy + Default + Send + Sync,
    B: Copy + Default + Send + Sync,
{
    let mut joined = Joined { keys: Vec::new(), left: Vec::new(), right: Vec::new(), sides: Vec::new() };
    join_into(how, left, right, options, &mut joined)?;
    Ok(joined)
}

/// Joins as [`join`] does, into columns whose memory is reused.
///
/// # Errors
/// The errors of [`join`].
pub fn join_into<K, A, B>(
    how: How,
    left: Columns<'_, K, A>,
    right: Columns<'_, K, B>,
    options: &Options,
    joined: &mut Joined<K, A, B>,
) -> Result<(), RelationError>
where
    K: Word,
    A: Copy + Default + Send + Sync,
    B: Copy + Default + Send + Sync,
{
    let (a, b) = (left.keys, right.keys);
    let has_sides = matches!(how, How::Left | How::Right | How::Full);
    let tuple_bytes = size_of::<K>() + size_of::<A>() + size_of::<B>() + usize::from(has_sides);
    let bound = match how {
        How::Right | How::Full => a.len().saturating_add(b.len()),
        _ => a.len(),
    };
    // An answer of at most as many tuples as unique right keys give needs no count, if there is memory for
    // it.
    let bound = match fits(bound as u128, tuple_bytes, options) {
        Ok(bound) => bound,
        Err(_) => fits(join_count(how, a, b, options)?.into(), tuple_bytes, options)?,
    };
    if matches!(how, How::Semi | How::Anti) {
        let count = into_two(&mut joined.keys, &mut joined.left, bound, |targets| {
            let buffer = || Tuples::of_left(left.values, targets);
            match how {
                How::Semi => sweep::<Semi, K, _>(a, b, options, buffer),
                _ => sweep::<Anti, K, _>(a, b, options, buffer),
            }
        });
        joined.right.clear();
        joined.right.resize(count as usize, B::default());
        joined.sides.clear();
        return Ok(());
    }
    let check = check(how, b);
    let swept = into_joined(joined, bound, has_sides, |targets| {
        let buffer = || both(&left, &right, has_sides, targets);
        with_join_walk!(how, W => sweep_checked::<W, K, _>(a, b, options, buffer, &check))
    });
    if swept.is_some() {
        return Ok(());
    }
    let counted = match counted(a, b, how, options) {
        Ok(counted) => counted,
        Err(tuples) => return fits(tuples, tuple_bytes, options).map(|_| ()),
    };
    let room = fits(counted.total().into(), tuple_bytes, options)?;
    into_joined(joined, room, has_sides, |targets| {
        counted.write((a, b), how, options, || both(&left, &right, has_sides, targets));
        Some(counted.total())
    });
    Ok(())
}

type Targets<K, A, B> = (Target<K>, Target<A>, Target<B>, Target<u8>);

fn both<'a, 't, K: Word, A: Copy + Default, B: Copy + Default>(
    left: &Columns<'a, K, A>,
    right: &Columns<'a, K, B>,
    has_sides: bool,
    targets: &'t Targets<K, A, B>,
) -> Both<'a, 't, K, A, B> {
    let to = (Held::new(&targets.0), Held::new(&targets.1), Held::new(&targets.2), Held::new(&targets.3));
    Both { left: left.values, right: right.values, absent: Default::default(), has_sides, to }
}

/// Runs with the columns as outputs of at most `capacity` tuples; `run` returns the number of tuples that it
/// wrote.
fn into_joined<K: Word, A: Copy, B: Copy>(
    joined: &mut Joined<K, A, B>,
    capacity: usize,
    has_sides: bool,
    run: impl FnOnce(&Targets<K, A, B>) -> Option<u64>,
) -> Option<u64> {
    let targets = (
        Target::new(&mut joined.keys, capacity),
        Target::new(&mut joined.left, capacity),
        Target::new(&mut joined.right, capacity),
        Target::new(&mut joined.sides, if has_sides { capacity } else { 0 }),
    );
    let count = run(&targets)?;
    let length = usize::try_from(count).ok().filter(|&length| length <= capacity)?;
    // SAFETY: `run` wrote all places below `count`, which are inside the capacity, of all columns, and of `sides` if
    // there are any.
    unsafe {
        joined.keys.set_len(length);
        joined.left.set_len(length);
        joined.right.set_len(length);
        joined.sides.set_len(if has_sides { length } else { 0 });
    }
    Some(count)
}
