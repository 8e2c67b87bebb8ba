//! Presence of the keys of a batch.

use std::fmt;

/// A bit for each query of a batch: 1 if its key is present.
///
/// A batch sets its length, so one bitmap serves many batches, and its memory is allocated once.
///
/// ```
/// use pleach::Bitmap;
///
/// let present: Bitmap = [true, false, true].into_iter().collect();
/// assert_eq!((present.len(), present.count_ones()), (3, 2));
/// assert!(present.get(0) && !present.get(1));
/// assert_eq!(present.ones().collect::<Vec<_>>(), [0, 2]);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Bitmap {
    /// Bit `i % 64` of word `i / 64` is bit `i`; bits past the end are 0.
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// Creates a bitmap of `len` zeros.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    /// Returns the number of bits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }
    /// Returns true if there are no bits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns bit `at`.
    ///
    /// # Panics
    /// If `at` is not below [`Bitmap::len`].
    #[must_use]
    #[inline]
    pub fn get(&self, at: usize) -> bool {
        assert!(at < self.len, "bit {at} of {}", self.len);
        self.words[at / 64] >> (at % 64) & 1 != 0
    }

    /// Returns the number of bits that are 1.
    #[must_use]
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Iterates over all bits.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = bool> {
        (0..self.len).map(|at| self.words[at / 64] >> (at % 64) & 1 != 0)
    }

    /// Iterates over the places of the bits that are 1, ascending.
    pub fn ones(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(number, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(number * 64 + bit)
            })
        })
    }

    /// Returns the words: bit `i` is bit `i % 64` of word `i / 64`. Bits past the end are 0.
    #[must_use]
    pub fn as_words(&self) -> &[u64] {
        &self.words
    }

    /// Sets the length to `len` and returns the words, whose contents are arbitrary: the caller writes all of them,
    /// and zeros past the end.
    pub(crate) fn reset(&mut self, len: usize) -> &mut [u64] {
        self.len = len;
        self.words.resize(len.div_ceil(64), 0);
        &mut self.words
    }

    /// Sets all bits to 0: after an error the words are arbitrary.
    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }
}

impl FromIterator<bool> for Bitmap {
    fn from_iter<I: IntoIterator<Item = bool>>(bits: I) -> Self {
        let mut bitmap = Self::default();
        for bit in bits {
            if bitmap.len.is_multiple_of(64) {
                bitmap.words.push(0);
            }
            bitmap.words[bitmap.len / 64] |= u64::from(bit) << (bitmap.len % 64);
            bitmap.len += 1;
        }
        bitmap
    }
}

impl fmt::Debug for Bitmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bitmap({} of {})", self.count_ones(), self.len)
    }
}
