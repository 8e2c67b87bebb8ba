//! The bytes of keys that the words of a file leave out, and the column that stores them.

use crate::column::Column;
use crate::error::ReadError;
use crate::index::Index;
use crate::texts::Texts;
use pleach_format::mask::Mask;
use pleach_format::tail::Tail;
use std::cmp::Ordering;

/// The column that decides which key a word belongs to.
#[derive(Clone, Copy)]
pub(crate) enum Rest<'a> {
    /// Words are whole keys.
    Nothing,
    /// Tails of one length: the kept bits of the key that are not in the word.
    Tails(&'a Tail, Column<'a>),
    /// Whole keys.
    Keys(Column<'a>),
    /// Whole keys, by page.
    Texts(Texts<'a>),
}

impl<'a> Rest<'a> {
    /// Selects the column. Opening the file has checked that one of the three cases holds.
    pub(crate) fn new(index: &'a Index, mask: &'a Mask) -> Self {
        if mask.is_lossless() {
            return Self::Nothing;
        }
        if let Some(texts) = Texts::new(index) {
            return Self::Texts(texts);
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

    /// Returns the keys by page, if they are stored so.
    #[inline]
    pub(crate) fn texts(&self) -> Option<&Texts<'a>> {
        match self {
            Self::Texts(texts) => Some(texts),
            Self::Nothing | Self::Tails(..) | Self::Keys(_) => None,
        }
    }

    /// Compares the key at `rank`, which has the query's word, with the query; `None` past the end. Verified
    /// as the index is.
    pub(crate) fn compare(&self, rank: u64, query: &[u8]) -> Result<Option<Ordering>, ReadError> {
        match self {
            // Keys by page are searched by page: see `Texts`.
            Self::Nothing | Self::Texts(_) => Ok(Some(Ordering::Equal)),
            Self::Tails(tail, tails) => {
                let there = tails.get_in_place(rank)?;
                let order = there.map(|_| crate::arch::compare_tail(tail, tails.guarded(rank), query));
                // Check after the read: a lost mapping yields zeros, not a key to compare.
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

    /// Runs [`Rest::compare`] without checking sums or the mapping; the result past the end is arbitrary.
    #[inline(always)]
    pub(crate) fn compare_unverified(&self, rank: u64, query: &[u8]) -> Ordering {
        match self {
            Self::Nothing | Self::Texts(_) => Ordering::Equal,
            Self::Tails(tail, tails) => crate::arch::compare_tail(tail, tails.guarded(rank), query),
            Self::Keys(keys) => {
                let key = keys.at(rank);
                // Usually they are equal, and equality is found faster than order.
                if key == query { Ordering::Equal } else { key.cmp(query) }
            }
        }
    }

    /// Returns true if [`Rest::prefetch_offset`] does anything.
    pub(crate) fn has_offsets(&self) -> bool {
        matches!(self, Self::Keys(keys) if keys.offset_bytes().is_some())
    }
    /// Prefetches the offsets that [`Rest::prefetch`] will read.
    #[inline(always)]
    pub(crate) fn prefetch_offset(&self, rank: u64) {
        if let Self::Keys(keys) = self {
            keys.prefetch_offset(rank);
        }
    }
    /// Prefetches the bytes that a comparison at `rank` will read.
    #[inline(always)]
    pub(crate) fn prefetch(&self, rank: u64) {
        match self {
            Self::Nothing | Self::Texts(_) => {}
            Self::Tails(_, column) | Self::Keys(column) => column.prefetch(rank),
        }
    }

    /// Appends the key at `rank`, which has this word, to `key`.
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
            Self::Texts(texts) => texts.key(rank, key)?,
        }
        Ok(())
    }
}
