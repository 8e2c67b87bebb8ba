//! Operators of one input, and the product: select, project, reduce, product.
//!
//! None of them compares keys of two sides; a task is a block of ranks. Blocks of a reduction have a fixed
//! number of tuples, so that sums of floats do not depend on the threads. Each block sums its runs; the
//! results of a run that continues in the next block are combined in the order of the blocks.

use super::buffer::{HeldPairs, into_two};
use super::columns::Columns;
use super::options::Options;
use super::ordered::in_order;
use crate::error::RelationError;
use pleach_format::Word;
use rayon::prelude::*;
use std::ops::Range;

/// Tuples per block of a reduction. It determines sums of floats: see `rules.rs`.
pub(crate) const BLOCK_TUPLES: usize = 4096;

/// Returns the ranks of the tuples that a predicate keeps, in order. The predicate must not use the thread
/// pool. O(tuples).
#[must_use]
pub fn select_ranks<K: Word, V: Copy + Send + Sync>(
    columns: Columns<'_, K, V>,
    predicate: impl Fn(K, V) -> bool + Sync,
    options: &Options,
) -> Vec<u64> {
    pleach_builder::pool::ready();
    let part = options.part_tuples.max(1);
    let counts: Vec<u64> = columns
        .keys
        .par_chunks(part)
        .zip_eq(columns.values.par_chunks(part))
        .map(|(keys, values)| keys.iter().zip(values).map(|(&k, &v)| u64::from(predicate(k, v))).sum())
        .collect();
    let mut ranks = Vec::with_capacity(counts.iter().sum::<u64>() as usize);
    // Counted first, so that exactly as much memory is taken.
    let pieces: Vec<Vec<u64>> = (0..counts.len())
        .into_par_iter()
        .map(|number| {
            let from = number * part;
            let to = (from + part).min(columns.len());
            let mut ranks = Vec::with_capacity(counts[number] as usize);
            ranks.extend(
                (from..to).filter(|&at| predicate(columns.keys[at], columns.values[at])).map(|at| at as u64),
            );
            ranks
        })
        .collect();
    pieces.iter().for_each(|piece| ranks.extend_from_slice(piece));
    ranks
}

/// Returns the tuples that a predicate keeps, in order, in one pass. The predicate must not use the thread
/// pool. O(tuples).
#[must_use]
pub fn select<K: Word, V: Copy + Send + Sync>(
    columns: Columns<'_, K, V>,
    predicate: impl Fn(K, V) -> bool + Sync,
    options: &Options,
) -> (Vec<K>, Vec<V>) {
    let fill = |range: Range<usize>, held: &mut HeldPairs<'_, K, V>| {
        let mut count = 0;
        for (&key, &value) in columns.keys[range.clone()].iter().zip(&columns.values[range]) {
            // SAFETY: at most one tuple is kept per tuple of the task, and there is room for all of them.
            unsafe { held.write_at(count, key, value) };
            count += usize::from(predicate(key, value));
        }
        count
    };
    // SAFETY: `fill` wrote all tuples that it counts.
    unsafe { filled(columns.len(), options, fill) }
}

/// Makes two columns of at most `tuples` elements by tasks. `fill` gets the numbers of a task's tuples and a
/// buffer with room for as many; it returns how many it wrote, from place 0 on.
///
/// # Safety
/// `fill` has written as many tuples as it returns.
unsafe fn filled<A: Copy + Send + Sync, B: Copy + Send + Sync>(
    tuples: usize,
    options: &Options,
    fill: impl Fn(Range<usize>, &mut HeldPairs<'_, A, B>) -> usize + Sync,
) -> (Vec<A>, Vec<B>) {
    let part = options.part_tuples.max(1);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    into_two(&mut first, &mut second, tuples, |targets| {
        in_order(
            tuples.div_ceil(part),
            || (HeldPairs::new(targets), 0),
            |task, (held, count)| {
                let range = task * part..((task + 1) * part).min(tuples);
                held.reserve(range.len());
                *count = fill(range, held);
                *count
            },
            // SAFETY: the caller guarantees that these were written; `in_order` gives each task places of
            // its own.
            |to, (held, count)| unsafe { held.place(0, *count, to) },
        )
    });
    (first, second)
}

/// Makes another key and value for each tuple. Unless the order of the keys `is_kept`, the tuples are sorted
/// by their new keys, stably. O(tuples), or O(tuples log(tuples)).
///
/// # Errors
/// [`RelationError::Unsorted`] if `is_kept` is true and the new keys are not in order.
pub fn project<K, V, L, W>(
    columns: Columns<'_, K, V>,
    map: impl Fn(K, V) -> (L, W) + Sync + Send,
    is_kept: bool,
) -> Result<(Vec<L>, Vec<W>), RelationError>
where
    K: Word,
    V: Copy + Send + Sync,
    L: Word,
    W: Copy + Send + Sync,
{
    pleach_builder::pool::ready();
    let mapped = columns.keys.par_iter().zip_eq(columns.values).with_min_len(1 << 12);
    if is_kept {
        let (keys, values): (Vec<L>, Vec<W>) = mapped.map(|(&key, &value)| map(key, value)).unzip();
        Columns::new("the projection", &keys, &values)?;
        return Ok((keys, values));
    }
    let mut tuples: Vec<(L, W)> = mapped.map(|(&key, &value)| map(key, value)).collect();
    tuples.par_sort_by_key(|tuple| tuple.0);
    Ok(tuples.into_par_iter().unzip())
}

/// Returns all pairs of tuples, by left rank, then by right rank: the left key, and the result of `combine`
/// for the values. The function must not use the thread pool. O(|A| |B|).
///
/// # Errors
/// [`RelationError::TooLarge`], before memory is taken, if the answer exceeds the limit of `options`.
pub fn product<K, A, B, C>(
    left: Columns<'_, K, A>,
    right: &[B],
    combine: impl Fn(A, B) -> C + Sync,
    options: &Options,
) -> Result<(Vec<K>, Vec<C>), RelationError>
where
    K: Word,
    A: Copy + Send + Sync,
    B: Copy + Send + Sync,
    C: Copy + Send + Sync,
{
    let tuples = left.len() as u128 * right.len() as u128;
    let tuple_bytes = (size_of::<K>() + size_of::<C>()) as u128;
    let limit = (u128::from(options.memory_bytes) / tuple_bytes).min(i64::MAX as u128);
    if tuples > limit {
        return Err(RelationError::TooLarge { what: "the product", tuples, limit });
    }
    let fill = |range: Range<usize>, held: &mut HeldPairs<'_, K, C>| {
        let (mut i, mut j) = (range.start / right.len(), range.start % right.len());
        for at in 0..range.len() {
            // SAFETY: there is room for as many tuples as the range has.
            unsafe { held.write_at(at, left.keys[i], combine(left.values[i], right[j])) };
            j += 1;
            if j == right.len() {
                (i, j) = (i + 1, 0);
            }
        }
        range.len()
    };
    // SAFETY: `fill` writes a tuple for each number of the range.
    Ok(unsafe { filled(tuples as usize, options, fill) })
}

/// An associative function that combines the values of a key.
pub trait Reduce<V>: Sync {
    /// Type of the result.
    type Output: Copy + Send + Sync;
    /// Returns the result of one value.
    fn single(&self, value: V) -> Self::Output;
    /// Combines the results of two neighbouring parts of a key's values; `None` if the result does not fit.
    fn both(&self, first: Self::Output, second: Self::Output) -> Option<Self::Output>;
}

/// Keys and their results, or the key whose result does not fit.
type Reduced<K, T> = Result<(Vec<K>, Vec<T>), K>;

/// Reduces to one tuple per key: `operation` combines its values, in their order. O(tuples).
///
/// # Errors
/// [`RelationError::Overflow`] with the first key whose result does not fit.
pub fn reduce<K: Word, V: Copy + Send + Sync, R: Reduce<V>>(
    columns: Columns<'_, K, V>,
    operation: &R,
) -> Result<(Vec<K>, Vec<R::Output>), RelationError> {
    let overflow = |key: K| RelationError::Overflow { key: key.to_u128().to_string() };
    pleach_builder::pool::ready();
    let blocks: Vec<Reduced<K, R::Output>> = columns
        .keys
        .par_chunks(BLOCK_TUPLES)
        .zip_eq(columns.values.par_chunks(BLOCK_TUPLES))
        .map(|(keys, values)| reduce_block(keys, values, operation))
        .collect();
    let (mut keys, mut results): (Vec<K>, Vec<R::Output>) = (Vec::new(), Vec::new());
    for block in blocks {
        let (block_keys, block_results) = block.map_err(overflow)?;
        let mut from = 0;
        if let (Some(last), Some(&key)) = (results.last_mut(), keys.last())
            && block_keys.first() == Some(&key)
        {
            *last = operation.both(*last, block_results[0]).ok_or_else(|| overflow(key))?;
            from = 1;
        }
        keys.extend_from_slice(&block_keys[from..]);
        results.extend_from_slice(&block_results[from..]);
    }
    Ok((keys, results))
}

/// Reduces one block; fails with the key whose result does not fit.
fn reduce_block<K: Word, V: Copy, R: Reduce<V>>(
    keys: &[K],
    values: &[V],
    operation: &R,
) -> Reduced<K, R::Output> {
    let (mut found, mut results): (Vec<K>, Vec<R::Output>) = (Vec::new(), Vec::new());
    for (&key, &value) in keys.iter().zip(values) {
        match results.last_mut() {
            Some(last) if found.last() == Some(&key) => {
                *last = operation.both(*last, operation.single(value)).ok_or(key)?;
            }
            _ => {
                found.push(key);
                results.push(operation.single(value));
            }
        }
    }
    Ok((found, results))
}
