//! An iterator over the tuples of a file whose keys are byte strings.

use crate::error::ReadError;
use crate::iter::Range;
use crate::rest::Rest;
use crate::texts::Cursor;
use pleach_format::Value;
use pleach_format::mask::Mask;
use std::iter::FusedIterator;

/// The words and values of a range of ranks, by the width of words.
#[derive(Clone)]
pub(crate) enum Tuples<'a, V: Value> {
    Four(Range<'a, u32, V>),
    Eight(Range<'a, u64, V>),
    Sixteen(Range<'a, u128, V>),
}

/// Iterator over the tuples of a range of ranks. An item is an error if a block does not match its sum
/// ([`crate::Verify::Touched`]) or the mapping was lost.
#[derive(Clone)]
pub struct StringRange<'a, V: Value> {
    mask: &'a Mask,
    rest: Rest<'a>,
    words: Tuples<'a, V>,
    /// The page of the next key from the front, if keys are stored so.
    cursor: Option<Cursor<'a>>,
    front: u64,
    back: u64,
}

macro_rules! next_tuple {
    ($self:expr, $next:ident) => {
        match &mut $self.words {
            Tuples::Four(words) => words.$next()?.map(|(word, value)| (u128::from(word), value)),
            Tuples::Eight(words) => words.$next()?.map(|(word, value)| (u128::from(word), value)),
            Tuples::Sixteen(words) => words.$next()?,
        }
    };
}

impl<'a, V: Value> StringRange<'a, V> {
    /// Creates the iterator over these ranks, which are those of `words`.
    pub(crate) fn new(
        mask: &'a Mask,
        rest: Rest<'a>,
        words: Tuples<'a, V>,
        ranks: std::ops::Range<u64>,
    ) -> Self {
        Self { mask, rest, words, cursor: None, front: ranks.start, back: ranks.end }
    }

    /// Returns the number of tuples that remain.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.back - self.front
    }

    fn tuple(&mut self, rank: u64, tuple: Result<(u128, V), ReadError>) -> Result<(Vec<u8>, V), ReadError> {
        let (word, value) = tuple?;
        let mut key = Vec::new();
        match self.rest.texts() {
            Some(texts) => texts.next_key(&mut self.cursor, rank, &mut key)?,
            None => self.rest.key(self.mask, rank, word, &mut key)?,
        }
        Ok((key, value))
    }
}

impl<V: Value> Iterator for StringRange<'_, V> {
    type Item = Result<(Vec<u8>, V), ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let tuple = next_tuple!(self, next);
        let rank = self.front;
        self.front = (rank + 1).min(self.back);
        Some(self.tuple(rank, tuple))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match usize::try_from(self.remaining()) {
            Ok(remaining) => (remaining, Some(remaining)),
            Err(_) => (usize::MAX, None),
        }
    }
}

impl<V: Value> DoubleEndedIterator for StringRange<'_, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let tuple = next_tuple!(self, next_back);
        self.back = self.back.saturating_sub(1).max(self.front);
        Some(self.tuple(self.back, tuple))
    }
}

impl<V: Value> FusedIterator for StringRange<'_, V> {}
