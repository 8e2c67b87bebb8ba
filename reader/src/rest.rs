//! What the words of a file leave out of its byte keys, and where it lies.

use crate::column::Column;
use crate::error::ReadError;
use crate::index::Index;
use pleach_format::mask::Mask;
use pleach_format::tail::Tail;
use std::cmp::Ordering;

/// What settles which key stands behind a word.
#[derive(Clone, Copy)]
pub(crate) enum Rest<'a> {
    /// Words are whole keys.
    Nothing,
    /// Kept bits behind the word, of one size.
    Tails(&'a Tail, Column<'a>),
    /// Whole keys.
    Keys(Column<'a>),
}

impl<'a> Rest<'a> {
    /// Of a file that was opened, which proved that one of the three is there.
    pub(crate) fn new(index: &'a Index, mask: &'a Mask) -> Self {
        if mask.is_lossless() {
            return Self::Nothing;
        }
        match (mask.tail(), index.tails(), index.key_column()) {
            (Some(tail), Some(tails), _) => Self::Tails(tail, tails),
            (_, _, Some(keys)) => Self::Keys(keys),
            _ => Self::Nothing,
        }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// How the key of a rank, which has the query's word, compares with the query; `None` past the
    /// end. Verified as the index is.
    pub(crate) fn compare(&self, rank: u64, query: &[u8]) -> Result<Option<Ordering>, ReadError> {
        match self {
            Self::Nothing => Ok(Some(Ordering::Equal)),
            Self::Tails(tail, tails) => {
                let there = tails.get_in_place(rank)?;
                let order = there.map(|_| crate::arch::compare_tail(tail, tails.guarded(rank), query));
                // Behind the read: what a lost mapping gave is no order.
                tails.check_mapping()?;
                Ok(order)
            }
            Self::Keys(keys) => {
                let order = keys.get_in_place(rank)?.map(|key| key.cmp(query));
                keys.check_mapping()?;
                Ok(order)
            }
        }
    }

    /// [`Rest::compare`] without a look at sums or at the mapping; any answer past the end.
    #[inline(always)]
    pub(crate) fn compare_unverified(&self, rank: u64, query: &[u8]) -> Ordering {
        match self {
            Self::Nothing => Ordering::Equal,
            Self::Tails(tail, tails) => crate::arch::compare_tail(tail, tails.guarded(rank), query),
            Self::Keys(keys) => {
                let key = keys.at(rank);
                // Mostly they are equal, and equality is found faster than order.
                if key == query { Ordering::Equal } else { key.cmp(query) }
            }
        }
    }

    /// Whether [`Rest::prefetch_offset`] does anything.
    pub(crate) fn has_offsets(&self) -> bool {
        matches!(self, Self::Keys(keys) if keys.offset_bytes().is_some())
    }
    /// Hints that [`Rest::prefetch`] will be called soon.
    #[inline(always)]
    pub(crate) fn prefetch_offset(&self, rank: u64) {
        if let Self::Keys(keys) = self {
            keys.prefetch_offset(rank);
        }
    }
    /// Hints that a rank will be compared soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self, rank: u64) {
        match self {
            Self::Nothing => {}
            Self::Tails(_, column) | Self::Keys(column) => column.prefetch(rank),
        }
    }

    /// Adds the key of a rank that has this word to `key`.
    pub(crate) fn key(&self, mask: &Mask, rank: u64, word: u128, key: &mut Vec<u8>) -> Result<(), ReadError> {
        match self {
            Self::Nothing => mask.unpack(word, key),
            Self::Tails(_, tails) => {
                tails.get_in_place(rank)?;
                mask.unpack_with(word, tails.guarded(rank), key);
                tails.check_mapping()?;
            }
            Self::Keys(keys) => {
                key.extend_from_slice(keys.get_in_place(rank)?.unwrap_or_default());
                keys.check_mapping()?;
            }
        }
        Ok(())
    }
}
