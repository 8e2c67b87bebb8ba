//! The tuples near keys that need not be in the file.

use crate::answer::{Bound, short};
use crate::convert::{FromNumbers, PIECE, Piece};
use crate::error::{BatchError, Result};
use crate::keys::Keys;
use crate::numbers::Numbers;
use crate::pool::Pool;
use crate::table::{Table, any_key};
use pleach::{Near, Tuples, Typed};

impl Table {
    /// Finds the ranks of the tuples near many keys: of equal keys, the floor is the last and the ceiling the
    /// first. The rank is [`u64::MAX`] if there is no such tuple, and for a null. A number that is no key of the
    /// file's type, such as -1, has its place in the order; its nearest tuple is that of the smallest key above
    /// it.
    ///
    /// # Errors
    /// Those of [`Table::get`]; [`BatchError::Refused`] for the nearest of byte strings, which have no distance.
    pub fn near(&self, keys: &Keys<'_>, near: Near, ranks: &mut [u64], pool: &Pool<'_>) -> Result<()> {
        self.check(keys)?;
        let ranks = short("ranks", ranks, keys.len())?;
        match near {
            Near::Floor => {
                self.bounds(keys, Bound::Upper, ranks, pool)?;
                ranks.iter_mut().for_each(|rank| *rank = rank.wrapping_sub(1));
            }
            Near::Ceiling => self.bounds(keys, Bound::Lower, ranks, pool)?,
            #[cfg(feature = "set")]
            Near::Nearest if self.is_set() && matches!(keys, Keys::Numbers(_)) => {
                if let Some(files) = self.files() {
                    self.nearest_in_files(files, keys, ranks, pool)?;
                }
            }
            Near::Nearest => match keys {
                Keys::Numbers(numbers) => any_key!(
                    self.key_type(),
                    K => self.nearest(&self.typed::<K, ()>()?, numbers, ranks, pool)?,
                    else {}
                ),
                Keys::Texts(_) => {
                    let text = "byte strings have no distance: ask for the floor or the ceiling";
                    return Err(BatchError::Refused(text.to_owned()));
                }
            },
        }
        for (at, rank) in ranks.iter_mut().enumerate() {
            if *rank >= self.len() || keys.is_null(at) {
                *rank = u64::MAX;
            }
        }
        Ok(())
    }

    fn nearest<K: FromNumbers>(
        &self,
        typed: &Typed<'_, K, ()>,
        numbers: &Numbers<'_>,
        ranks: &mut [u64],
        pool: &Pool<'_>,
    ) -> Result<()> {
        let each = pool.task_keys(ranks.len());
        let tasks = ranks.chunks_mut(each).enumerate();
        pool.sum(tasks, |(number, ranks)| {
            let mut piece = Piece::<K>::new();
            for (at, ranks) in ranks.chunks_mut(PIECE).enumerate() {
                let (first, count) = (number * each + at * PIECE, ranks.len());
                K::convert(&mut piece, numbers, first, count);
                let to = Tuples { ranks: &mut *ranks, ..Tuples::default() };
                let found = typed.near_batch(Near::Nearest, &piece.keys[..count], to);
                found.map_err(|error| self.failed(error))?;
                if piece.any {
                    for at in (0..count).filter(|&at| piece.is_miss(at)) {
                        // The key stands for a number just below it, or for one above all keys.
                        let key = piece.keys[at];
                        if piece.above[at / 64] >> (at % 64) & 1 != 0 {
                            ranks[at] = typed.len().wrapping_sub(1);
                        } else if typed.contains(key).map_err(|error| self.failed(error))? {
                            ranks[at] = typed.lower_bound(key).map_err(|error| self.failed(error))?;
                        }
                    }
                }
            }
            Ok(0)
        })?;
        Ok(())
    }
}
