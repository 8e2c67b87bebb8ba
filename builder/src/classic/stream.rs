//! The keys of each level of pages of a tree of any size, in pieces of whole pages.
//!
//! The lowest pages take all keys, which are read again from the tuple lines as often as needed. The keys of
//! the pages above them are every `2^levels`-th key of the level below; they are kept, and spill to a temporary
//! file if they are many.

use super::page::TreeKey;
use crate::error::BuildError;
use crate::job::Job;
use crate::lines::Lines;
use crate::overflow::Overflow;
use crate::pack::{KeyLane, ValueLane};
use pleach_format::classic::PageLevel;
use std::marker::PhantomData;

/// Bytes of keys that are passed on at once, if a page is not longer.
const PIECE_BYTES: usize = 4 << 20;

/// Receives the number of the first of some consecutive pages, their number, and their keys: those of each page,
/// then the separator after it. Keys may be missing at the end.
pub(super) type TakePages<'a, W> = dyn FnMut(u64, u64, &[W]) -> Result<(), BuildError> + 'a;

/// Returns the keys from the first key of a page on.
pub(super) fn page_of<'a, W>(keys: &'a [W], level: &PageLevel, page: u64) -> &'a [W] {
    &keys[((page as usize) << level.levels).min(keys.len())..]
}

/// The keys of all levels of pages of a tree, which are read from the tuple lines of a file.
pub(super) struct Levels<'a, W, B> {
    job: &'a Job<'a>,
    lines: &'a Lines<W>,
    /// Keys of each level but the lowest, top first.
    upper: Vec<Overflow<W>>,
    values: PhantomData<B>,
}

impl<'a, W: KeyLane + TreeKey, B: ValueLane> Levels<'a, W, B> {
    /// Creates the lists of a tree with `levels` levels of pages, which are empty yet; `bytes` may be in memory.
    pub(super) fn new(job: &'a Job<'_>, lines: &'a Lines<W>, levels: usize, bytes: usize) -> Self {
        let upper = levels.saturating_sub(1);
        let limit = bytes / upper.max(1) / size_of::<W>();
        let upper = (0..upper).map(|_| Overflow::new(limit)).collect();
        Self { job, lines, upper, values: PhantomData }
    }

    /// Passes on the keys of a level, in order.
    fn keys(
        &self,
        number: usize,
        take: &mut dyn FnMut(&[W]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        if let Some(list) = self.upper.get(number) {
            return list.read(take);
        }
        let mut keys: Vec<W> = Vec::new();
        self.lines.each_batch::<B>(self.job.output, self.job.watch, &mut |tuples| {
            keys.clear();
            keys.extend(tuples.iter().map(|tuple| tuple.key));
            take(&keys)
        })
    }

    /// Passes the pages of a level to `take`, all that exist, in pieces of whole pages. The number of pages in
    /// each piece but the last is a multiple of `unit`, a power of two.
    pub(super) fn each_piece(
        &self,
        number: usize,
        level: &PageLevel,
        (pages, unit): (u64, u64),
        take: &mut TakePages<'_, W>,
    ) -> Result<(), BuildError> {
        let stride = 1usize << level.levels;
        let at_once = (PIECE_BYTES / size_of::<W>() / stride).max(1).next_multiple_of(unit as usize);
        let room = at_once * stride;
        let mut piece: Vec<W> = Vec::new();
        let mut first = 0;
        self.keys(number, &mut |mut some| {
            while piece.len() + some.len() >= room {
                let (now, later) = some.split_at(room - piece.len());
                piece.extend_from_slice(now);
                let count = (at_once as u64).min(pages - first);
                if count > 0 {
                    take(first, count, &piece)?;
                }
                first += count;
                piece.clear();
                some = later;
            }
            piece.extend_from_slice(some);
            Ok(())
        })?;
        if first < pages { take(first, pages - first, &piece) } else { Ok(()) }
    }

    /// Does the same, and makes the list of the level above from the separators.
    pub(super) fn raise(
        &mut self,
        number: usize,
        level: &PageLevel,
        pages: (u64, u64),
        take: &mut TakePages<'_, W>,
    ) -> Result<(), BuildError> {
        let spills = self.job.spills;
        let above = number.checked_sub(1);
        let limit = above.and_then(|above| self.upper.get(above)).map_or(1, Overflow::limit);
        let mut list = Overflow::new(limit);
        self.each_piece(number, level, pages, &mut |first, count, keys| {
            if above.is_some() {
                let stride = 1 << level.levels;
                let separators: Vec<W> = keys.iter().skip(stride - 1).step_by(stride).copied().collect();
                list.extend(&separators, spills)?;
            }
            take(first, count, keys)
        })?;
        if let Some(above) = above.and_then(|above| self.upper.get_mut(above)) {
            *above = list;
        }
        Ok(())
    }
}
