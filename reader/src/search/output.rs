//! What batches write: values, presence, ranks and hits.

use super::descent::{Answers, GROUP, Hit, Output};
use pleach_format::key::Bits;

/// Output of presence as a bitmap: bit `i % 64` of word `i / 64`.
pub(crate) struct Presence<'a> {
    pub(crate) bitmap: &'a mut [u64],
    pub(crate) found: usize,
}

impl Presence<'_> {
    /// Writes `count` bits, from query `first` on.
    #[inline(always)]
    pub(super) fn put(&mut self, first: usize, count: usize, bits: u64) {
        let ones = (1u64 << count) - 1;
        let (word, shift) = (first / 64, first % 64);
        if let Some(word) = self.bitmap.get_mut(word) {
            *word = *word & !(ones << shift) | bits << shift;
        }
        self.found += bits.count_ones() as usize;
    }
}

impl<B: Bits> Output<B> for Presence<'_> {
    #[inline(always)]
    fn each(&mut self, first: usize, count: usize, mut answers: impl Answers<B>) {
        let bits = answers.presence(count);
        self.put(first, count, bits);
    }
}

/// Output of values and presence.
pub(crate) struct Values<'a, B> {
    pub(crate) values: &'a mut [B],
    pub(crate) presence: Presence<'a>,
}

impl<B: Bits> Output<B> for Values<'_, B> {
    #[inline(always)]
    fn each(&mut self, first: usize, count: usize, mut answers: impl Answers<B>) {
        let Some(values) = self.values.get_mut(first..first + count) else { return };
        let bits = answers.values(values);
        self.presence.put(first, count, bits);
    }
}

/// Output of ranks.
pub(crate) struct Ranks<'a>(pub(crate) &'a mut [u64]);

impl<B: Bits> Output<B> for Ranks<'_> {
    const BOTH_LINES: bool = true;

    #[inline(always)]
    fn each(&mut self, first: usize, count: usize, mut answers: impl Answers<B>) {
        if let Some(ranks) = self.0.get_mut(first..first + count) {
            answers.ranks(ranks);
        }
    }
}

/// Output of hits, passed on a group at a time as soon as they are known.
pub(crate) struct Hits<'a, B>(pub(crate) &'a mut PutHits<'a, B>);
/// Receives the number of a group's first query, and the group's hits.
pub(crate) type PutHits<'a, B> = dyn FnMut(usize, &[Hit<B>]) + 'a;

impl<B: Bits> Output<B> for Hits<'_, B> {
    #[inline(always)]
    fn each(&mut self, first: usize, count: usize, mut answers: impl Answers<B>) {
        let mut known = [Hit::default(); GROUP];
        for (i, slot) in known[..count].iter_mut().enumerate() {
            *slot = answers.hit(i);
        }
        (self.0)(first, &known[..count]);
    }
}
