//! Strategies to answer a batch, and the choice between them (FAST, Kim et al., section 8, figure 13).
//!
//! A batch can be answered key by key, in groups as it comes, in buffers that each belong to one part of the
//! table, or sorted and merged with the table. The later strategies move each query more often, so that lines
//! are read in a better order. They pay only if a batch is large relative to the table, and their first
//! answers come late. All give the same answers, in the order of the queries.
//!
//! * [`buffered`]: a counting pass places the queries of one part of the table next to each other.
//! * [`sorted`]: a stable radix sort of words and the numbers of their queries.
//! * [`kind`]: the strategies by name; [`order`]: memory for queries in another order.
//! * [`planner`]: an estimate for each strategy, and the best one for a batch, a table and a response time.

mod buffered;
mod kind;
mod order;
mod planner;
mod sorted;
#[cfg(test)]
mod tests;
mod tune;

pub use kind::Strategy;
pub use planner::{Choice, Costs, Request};

use crate::Typed;
use crate::error::ReadError;
use order::{Order, Span, room};
use pleach_format::{Key, Value};
use rayon::prelude::*;

/// Maximum number of queries that are reordered at a time; a longer batch is answered in pieces. A multiple
/// of 64.
const PIECE: usize = 1 << 26;

/// Memory for batches that are reordered, and the costs that [`Strategy::Auto`] uses.
///
/// It grows to the largest batch and is reused: calls with one scratch allocate nothing once it is large
/// enough. About 24 bytes per query for keys of eight bytes when buffered, 64 when sorted.
#[derive(Clone, Debug, Default)]
pub struct Scratch<K: Key, V: Value> {
    costs: Costs,
    order: Order<K>,
    values: Room<V>,
    ranks: Room<u64>,
}

impl<K: Key, V: Value> Scratch<K, V> {
    /// Creates an empty scratch whose costs [`Strategy::Auto`] uses.
    #[must_use]
    pub fn new(costs: Costs) -> Self {
        Self { costs, ..Self::default() }
    }
    /// Returns the costs that [`Strategy::Auto`] uses.
    #[must_use]
    pub fn costs(&self) -> &Costs {
        &self.costs
    }
}

/// Reordered answers.
#[derive(Clone, Debug, Default)]
struct Room<A> {
    answers: Vec<A>,
    present: Vec<u64>,
}

/// Kind of answers: values with presence, or ranks.
trait Ask<K> {
    type Answer: Copy + Default;
    /// True if there is a bitmap of presence.
    const PRESENCE: bool;
    fn one(&self, key: K) -> Result<Option<Self::Answer>, ReadError>;
    fn many(&self, keys: &[K], answers: &mut [Self::Answer], present: &mut [u64])
    -> Result<usize, ReadError>;
}

struct Values<'t, 'a, K: Key, V: Value>(&'t Typed<'a, K, V>);

impl<K: Key, V: Value> Ask<K> for Values<'_, '_, K, V> {
    type Answer = V;
    const PRESENCE: bool = true;
    fn one(&self, key: K) -> Result<Option<V>, ReadError> {
        self.0.get(key)
    }
    fn many(&self, keys: &[K], values: &mut [V], present: &mut [u64]) -> Result<usize, ReadError> {
        self.0.get_batch(keys, values, present)
    }
}

struct Ranks<'t, 'a, K: Key, V: Value>(&'t Typed<'a, K, V>);

impl<K: Key, V: Value> Ask<K> for Ranks<'_, '_, K, V> {
    type Answer = u64;
    const PRESENCE: bool = false;
    fn one(&self, key: K) -> Result<Option<u64>, ReadError> {
        self.0.lower_bound(key).map(Some)
    }
    fn many(&self, keys: &[K], ranks: &mut [u64], _: &mut [u64]) -> Result<usize, ReadError> {
        self.0.lower_bound_batch(keys, ranks).map(|()| 0)
    }
}

/// Answers queries by a strategy other than `Auto`. Buffers have the length of the queries.
fn answer<K: Key, A: Ask<K>>(
    ask: &A,
    (strategy, span): (Strategy, Option<Span<K::Word>>),
    keys: &[K],
    (answers, present): (&mut [A::Answer], &mut [u64]),
    order: &mut Order<K>,
    back: &mut Room<A::Answer>,
) -> Result<usize, ReadError> {
    if strategy == Strategy::OneByOne {
        let mut found = 0;
        present.fill(0);
        for (at, (&key, answer)) in keys.iter().zip(answers.iter_mut()).enumerate() {
            let there = ask.one(key)?;
            *answer = there.unwrap_or_default();
            if A::PRESENCE && there.is_some() {
                present[at / 64] |= 1 << (at % 64);
                found += 1;
            }
        }
        return Ok(found);
    }
    let Some(span) = span.filter(|_| strategy != Strategy::Unbuffered) else {
        return ask.many(keys, answers, present);
    };
    let mut found = 0;
    for (piece, keys) in keys.chunks(PIECE).enumerate() {
        let first = piece * PIECE;
        let answers = &mut answers[first..first + keys.len()];
        let words = if A::PRESENCE { keys.len().div_ceil(64) } else { 0 };
        let present = if A::PRESENCE { &mut present[first / 64..first / 64 + words] } else { &mut [] };
        let (got, there) = (room(&mut back.answers, keys.len()), room(&mut back.present, words));
        if strategy == Strategy::Sorted {
            sorted::sort(keys, span, order);
            found += ask.many(&order.keys[..keys.len()], got, there)?;
            sorted::put_back(&order.pairs[..keys.len()], (got, there), (answers, present));
        } else {
            buffered::partition(keys, span, order);
            found += ask.many(&order.keys[..keys.len()], got, there)?;
            buffered::put_back(&order.slots[..keys.len()], (got, there), (answers, present));
        }
    }
    Ok(found)
}

fn checked<'b, T>(name: &'static str, needed: usize, buffer: &'b mut [T]) -> Result<&'b mut [T], ReadError> {
    let found = buffer.len();
    buffer.get_mut(..needed).ok_or(ReadError::Buffer { name, needed, found })
}

impl<K: Key, V: Value> Typed<'_, K, V> {
    /// Returns the smallest and the largest word; reads two lines. `None` in an empty file, and if the
    /// strategy does not need it.
    fn span(&self, strategy: Strategy) -> Result<Option<Span<K::Word>>, ReadError> {
        if !matches!(strategy, Strategy::Buffered | Strategy::Sorted) {
            return Ok(None);
        }
        let (Some((low, _)), Some((high, _))) = (self.min()?, self.max()?) else { return Ok(None) };
        let bytes = self.plan().map_or(0, |plan| plan.header.lines * 64);
        // In a damaged file the first key may be above the last one.
        let low = low.encode();
        Ok(Some(Span { low, high: high.encode().max(low), bytes }))
    }

    /// Runs [`Typed::get_batch`] by a strategy: the same answers, in the order of the queries.
    ///
    /// The value of an absent key is the default of its type. O(levels) lines per query; `Buffered` moves
    /// each query twice, `Sorted` O(log(queries) / 10) times.
    ///
    /// # Errors
    /// Those of [`Typed::get_batch`].
    pub fn get_batch_by(
        &self,
        strategy: Strategy,
        keys: &[K],
        values: &mut [V],
        present: &mut [u64],
        scratch: &mut Scratch<K, V>,
    ) -> Result<usize, ReadError> {
        let strategy = self.resolved(strategy, keys, &scratch.costs);
        let values = checked("values", keys.len(), values)?;
        let present = checked("present", keys.len().div_ceil(64), present)?;
        let how = (strategy, self.span(strategy)?);
        answer(&Values(self), how, keys, (values, present), &mut scratch.order, &mut scratch.values)
    }

    /// Runs [`Typed::lower_bound_batch`] by a strategy, as [`Typed::get_batch_by`] does.
    ///
    /// # Errors
    /// Those of [`Typed::lower_bound_batch`].
    pub fn lower_bound_batch_by(
        &self,
        strategy: Strategy,
        keys: &[K],
        ranks: &mut [u64],
        scratch: &mut Scratch<K, V>,
    ) -> Result<(), ReadError> {
        let strategy = self.resolved(strategy, keys, &scratch.costs);
        let ranks = checked("ranks", keys.len(), ranks)?;
        let how = (strategy, self.span(strategy)?);
        let answers = (ranks, &mut [][..]);
        answer(&Ranks(self), how, keys, answers, &mut scratch.order, &mut scratch.ranks).map(|_| ())
    }

    /// Runs [`Typed::get_batch_by`] on the threads of the current rayon pool: one part of the batch for each
    /// of `scratches`, of which there must be at least one.
    ///
    /// # Errors
    /// Those of [`Typed::get_batch`], and [`ReadError::Buffer`] if `scratches` is empty.
    pub fn par_get_batch_by(
        &self,
        strategy: Strategy,
        keys: &[K],
        values: &mut [V],
        present: &mut [u64],
        scratches: &mut [Scratch<K, V>],
    ) -> Result<usize, ReadError> {
        let values = checked("values", keys.len(), values)?;
        let present = checked("present", keys.len().div_ceil(64), present)?;
        let (needed, found) = (1, scratches.len());
        if found == 0 {
            return Err(ReadError::Buffer { name: "scratches", needed, found });
        }
        let part = keys.len().div_ceil(found).next_multiple_of(64).max(64);
        pleach_fsck::pool::ready();
        keys.par_chunks(part)
            .zip(values.par_chunks_mut(part))
            .zip(present.par_chunks_mut(part / 64))
            .zip(scratches.par_iter_mut())
            .map(|(((keys, values), present), scratch)| {
                self.get_batch_by(strategy, keys, values, present, scratch)
            })
            .try_reduce(|| 0, |a, b| Ok(a + b))
    }
}
