//! Memory for queries that are put into another order, and the parts of the keys that they are ordered by.

use pleach_format::{Key, Word};

/// A word and the number of its query.
pub(super) type Pair<W> = (W, u32);

/// Reordered queries.
#[derive(Clone, Debug, Default)]
pub(super) struct Order<K: Key> {
    pub(super) keys: Vec<K>,
    /// New position of each query.
    pub(super) slots: Vec<u32>,
    /// Words with the numbers of their queries, and as much memory again.
    pub(super) pairs: Vec<Pair<K::Word>>,
    pub(super) spare: Vec<Pair<K::Word>>,
    pub(super) counts: Vec<u32>,
}

/// Grows `vec` to `length` if it is shorter, and returns its first `length` elements.
pub(super) fn room<T: Copy + Default>(vec: &mut Vec<T>, length: usize) -> &mut [T] {
    if vec.len() < length {
        vec.resize(length, T::default());
    }
    &mut vec[..length]
}

/// Range of a file's keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span<W> {
    pub(super) low: W,
    pub(super) high: W,
    /// Bytes of the tuple lines.
    pub(super) bytes: u64,
}

impl<W: Word> Span<W> {
    /// Cuts the span into `2^bits` parts of equal width.
    pub(super) fn cut(self, bits: u32) -> Cut<W> {
        // A shift must be narrower than a word.
        let shift = if bits == 0 { 0 } else { (self.high - self.low).bit_length().saturating_sub(bits) };
        Cut { low: self.low, shift, last: (1 << bits) - 1 }
    }
}

/// A span that is cut into parts.
#[derive(Clone, Copy)]
pub(super) struct Cut<W> {
    low: W,
    shift: u32,
    last: u64,
}

impl<W: Word> Cut<W> {
    /// Returns the part that contains a word; the first or the last one if the word is outside the span.
    #[inline(always)]
    pub(super) fn part(&self, word: W) -> usize {
        if word < self.low { 0 } else { word.cell(self.low, self.shift).min(self.last) as usize }
    }
}

/// Turns the counts of parts into the positions at which they begin.
pub(super) fn begin(counts: &mut [u32]) {
    let mut before = 0;
    for count in counts {
        before += std::mem::replace(count, before);
    }
}
