//! Iteration over tuples in order, from both ends.

use crate::error::ReadError;
use crate::index::Index;
use crate::search::plan::Lines;
use crate::touched::Verified;
use pleach_format::checksum::SUM_BLOCK_BYTES;
use pleach_format::key::Bits;
use pleach_format::{Key, Short, Value, line};
use std::iter::FusedIterator;
use std::marker::PhantomData;

/// Maximum number of bytes of a remote file that come together.
const AHEAD_BYTES_MAX: u64 = 1 << 20;

/// A place in the tuple lines.
#[derive(Clone, Copy)]
struct Place {
    line: usize,
    slot: usize,
}

/// Iterator over the tuples of a range of ranks. An item is an error if a block does not match its sum
/// ([`crate::Verify::Touched`]) or the mapping was lost; iteration ends there.
#[derive(Clone)]
pub struct Range<'a, K: Key, V: Value> {
    index: &'a Index,
    lines: Option<Lines<'a>>,
    short: Option<&'a Short>,
    remaining: u64,
    tuples_per_line: usize,
    values_at: usize,
    /// Next tuple from the front, and one past the next from the back.
    front: Place,
    back: Place,
    /// The line that was checked last.
    entered: usize,
    /// Bytes of a remote file that come together when a block is missing; twice as many each time.
    ahead_bytes: u64,
    types: PhantomData<(K, V)>,
}

impl<'a, K: Key, V: Value> Range<'a, K, V> {
    pub(crate) fn new(index: &'a Index, lines: Option<Lines<'a>>, ranks: std::ops::Range<u64>) -> Self {
        let geometry = index.header().geometry;
        let end = ranks.end.min(index.len());
        let start = ranks.start.min(end);
        let place = |rank| {
            let (line, slot) = geometry.place(rank);
            Place { line: usize::try_from(line).unwrap_or(usize::MAX), slot }
        };
        Self {
            index,
            lines,
            short: index.header().short.as_ref(),
            remaining: end - start,
            tuples_per_line: geometry.tuples_per_line(),
            values_at: geometry.values_at(),
            front: place(start),
            back: place(end),
            entered: usize::MAX,
            ahead_bytes: SUM_BLOCK_BYTES as u64,
            types: PhantomData,
        }
    }

    /// Returns the number of tuples that remain.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    #[inline]
    fn tuple(&mut self, place: Place) -> Result<(K, V), ReadError> {
        if place.line != self.entered {
            self.enter(place.line).inspect_err(|_| self.remaining = 0)?;
        }
        let Some(lines) = &self.lines else { return Err(ReadError::MappingLost) };
        let line = lines.at(place.line);
        let key = K::decode(line::whole_key(line, self.short, place.slot));
        let value = V::Bits::read(&line[self.values_at + place.slot * V::Bits::BYTES..]);
        // Check after the read: a lost mapping yields zeros, not a tuple.
        self.index.check_mapping().inspect_err(|_| self.remaining = 0)?;
        Ok((key, V::from_bits(value)))
    }

    /// Verifies the line, if the index verifies; called once per line.
    fn enter(&mut self, line: usize) -> Result<(), ReadError> {
        if let Some(verified) = self.index.verified() {
            let at = verified.header.line_offset(line as u64);
            if self.index.is_remote() {
                self.enter_remote(&verified, line, at)?;
            }
            verified.check(at)?;
        }
        self.entered = line;
        Ok(())
    }
}

impl<K: Key, V: Value> Range<'_, K, V> {
    /// Brings the block of a line, and more of those that come next.
    fn enter_remote(&mut self, verified: &Verified<'_>, line: usize, at: u64) -> Result<(), ReadError> {
        let (front, back) = (self.front.line as u64, self.back.line as u64);
        let is_forward = line as u64 <= front;
        let bytes = if is_forward {
            // The line of the last tuple is before or at the back.
            let end = verified.header.line_offset(back + u64::from(self.back.slot > 0));
            at..end.min(at + self.ahead_bytes).max(at + 1)
        } else {
            verified.header.line_offset(front).max(at.saturating_sub(self.ahead_bytes)).min(at)..at + 1
        };
        if verified.check_ahead(at, bytes)? {
            self.ahead_bytes = (self.ahead_bytes * 2).min(AHEAD_BYTES_MAX);
        }
        Ok(())
    }
}

impl<K: Key, V: Value> Iterator for Range<'_, K, V> {
    type Item = Result<(K, V), ReadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.remaining = self.remaining.checked_sub(1)?;
        let place = self.front;
        self.front.slot += 1;
        if self.front.slot == self.tuples_per_line {
            self.front = Place { line: place.line + 1, slot: 0 };
        }
        Some(self.tuple(place))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match usize::try_from(self.remaining) {
            Ok(remaining) => (remaining, Some(remaining)),
            Err(_) => (usize::MAX, None),
        }
    }
}

impl<K: Key, V: Value> DoubleEndedIterator for Range<'_, K, V> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.remaining = self.remaining.checked_sub(1)?;
        if self.back.slot == 0 {
            self.back = Place { line: self.back.line.checked_sub(1)?, slot: self.tuples_per_line };
        }
        self.back.slot -= 1;
        Some(self.tuple(self.back))
    }
}

impl<K: Key, V: Value> ExactSizeIterator for Range<'_, K, V> {}
impl<K: Key, V: Value> FusedIterator for Range<'_, K, V> {}
