//! Batches of a file of intervals: each key is answered by the interval that holds it.

use crate::answer::{Found, Values, WORDS};
use crate::convert::{FromNumbers, PIECE, Piece};
use crate::error::{BatchError, Result};
use crate::keys::Keys;
use crate::pool::Pool;
use crate::room::Room;
use crate::table::{Table, any_key, any_value};
use pleach::Value;

impl Table {
    /// Finds the intervals that hold keys, and returns the number of keys that are in one. The rank of others, and of
    /// nulls, is [`u64::MAX`].
    pub(crate) fn holding(
        &self,
        keys: &Keys<'_>,
        ranks: &mut [u64],
        mut found: Found<'_>,
        pool: &Pool<'_>,
    ) -> Result<usize> {
        any_key!(
            self.key_type(),
            K => self.held_by::<K>(keys, ranks, pool)?,
            else ranks.fill(u64::MAX)
        );
        let mut count = 0;
        for (piece, ranks) in ranks.chunks(PIECE).enumerate() {
            let mut present = [0; WORDS];
            for (at, &rank) in ranks.iter().enumerate() {
                let is_held = rank != u64::MAX;
                present[at / 64] |= u64::from(is_held) << (at % 64);
                count += usize::from(is_held);
            }
            found.put(piece * PIECE, ranks.len(), &present);
        }
        Ok(count)
    }

    fn held_by<K: FromNumbers>(&self, keys: &Keys<'_>, ranks: &mut [u64], pool: &Pool<'_>) -> Result<()> {
        let typed = self.typed::<K, ()>()?;
        let intervals = typed.intervals().map_err(|error| self.failed(error))?;
        // Keys of numbers are given as numbers, and a file that is opened has what its META says.
        let (Keys::Numbers(numbers), Some(intervals)) = (keys, intervals) else {
            ranks.fill(u64::MAX);
            return Ok(());
        };
        let each = pool.task_keys(ranks.len());
        pool.sum(ranks.chunks_mut(each).enumerate(), |(number, ranks)| {
            let mut piece = Piece::<K>::new();
            for (at, ranks) in ranks.chunks_mut(PIECE).enumerate() {
                let (first, count) = (number * each + at * PIECE, ranks.len());
                K::convert(&mut piece, numbers, first, count);
                let searched = intervals.find_batch(&piece.keys[..count], ranks);
                searched.map_err(|error| self.failed(error))?;
                if !piece.any {
                    continue;
                }
                for at in (0..count).filter(|&at| piece.is_miss(at)) {
                    // The number lies just below the key: only an interval that has begun before holds both.
                    let begins = match ranks[at] {
                        u64::MAX => None,
                        rank => typed.select(rank).map_err(|error| self.failed(error))?,
                    };
                    let is_above = piece.above[at / 64] >> (at % 64) & 1 != 0;
                    if is_above
                        || numbers.is_null(first + at)
                        || begins.is_none_or(|(key, ())| key == piece.keys[at])
                    {
                        ranks[at] = u64::MAX;
                    }
                }
            }
            Ok(0)
        })?;
        Ok(())
    }

    /// Looks up the values of the intervals that hold keys.
    pub(crate) fn get_held(
        &self,
        keys: &Keys<'_>,
        values: &mut Values<'_>,
        found: Found<'_>,
        pool: &Pool<'_>,
    ) -> Result<usize> {
        let mut ranks = vec![0; keys.len()];
        let count = self.holding(keys, &mut ranks, found, pool)?;
        match values {
            Values::None => {}
            Values::U32(values) => self.fill_at(&ranks, Room::Slice(values))?,
            Values::U64(values) => self.fill_at(&ranks, Room::Slice(values))?,
            Values::I32(values) => self.fill_at(&ranks, Room::Slice(values))?,
            Values::I64(values) => self.fill_at(&ranks, Room::Slice(values))?,
            Values::F32(values) => self.fill_at(&ranks, Room::Slice(values))?,
            Values::F64(values) => self.fill_at(&ranks, Room::Slice(values))?,
            Values::Shared(shared) => any_value!(
                self.value_type(),
                V => self.fill_at::<V>(&ranks, shared.room())?,
                else {}
            ),
        }
        Ok(count)
    }

    /// Writes the values at ranks; the default of the type for a rank past the end.
    pub(crate) fn fill_at<V: Value>(&self, ranks: &[u64], values: Room<'_, V>) -> Result<()> {
        let has = values.len();
        let short = BatchError::Short { name: "values", needed: ranks.len(), found: has };
        let mut values = values.first(ranks.len()).ok_or(short)?;
        any_key!(
            self.key_type(),
            K => {
                let typed = self.typed::<K, V>()?;
                let mut keys = [K::default(); PIECE];
                for (piece, ranks) in ranks.chunks(PIECE).enumerate() {
                    let filled = values.fill(piece * PIECE, ranks.len(), |values| {
                        values.fill(V::default());
                        typed.select_batch(ranks, &mut keys, values)
                    });
                    filled.map_err(|error| self.failed(error))?;
                }
            },
            else {}
        );
        Ok(())
    }
}
