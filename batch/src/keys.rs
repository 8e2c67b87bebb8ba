//! The keys of a batch.

use crate::numbers::Numbers;
use pleach::Queries;

/// Byte strings or texts: elements by number, of which some may be null.
pub trait Texts: Queries {
    /// Returns true if element `at` is null. Its bytes are then arbitrary.
    fn is_null(&self, at: usize) -> bool;
}

impl<T: AsRef<[u8]> + Sync> Texts for [T] {
    fn is_null(&self, _: usize) -> bool {
        false
    }
}

/// The keys of a batch.
#[derive(Clone, Copy)]
pub enum Keys<'a> {
    /// Numbers.
    Numbers(Numbers<'a>),
    /// Texts or byte strings.
    Texts(&'a dyn Texts),
}

impl Keys<'_> {
    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    /// Returns true if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if key `at` is null.
    pub(crate) fn is_null(&self, at: usize) -> bool {
        match self {
            Self::Numbers(numbers) => numbers.is_null(at),
            Self::Texts(texts) => texts.is_null(at),
        }
    }

    /// Returns the type of the keys, for messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Numbers(numbers) => numbers.lane().name(),
            Self::Texts(_) => "texts or bytes",
        }
    }
}

/// A part of a batch of texts.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) texts: &'a dyn Texts,
    pub(crate) first: usize,
    pub(crate) count: usize,
}

impl Queries for Part<'_> {
    fn len(&self) -> usize {
        self.count
    }
    #[inline]
    fn get(&self, index: usize) -> &[u8] {
        let at = self.first + index;
        // The bytes of a null are arbitrary; its answer is replaced.
        if self.texts.is_null(at) { &[] } else { self.texts.get(at) }
    }
}

/// The smallest string above each string of a part: the string and a zero byte.
pub(crate) struct Next {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Next {
    pub(crate) fn of(part: &Part<'_>) -> Self {
        let mut next = Self { bytes: Vec::new(), ends: vec![0] };
        for at in 0..part.count {
            next.bytes.extend_from_slice(part.get(at));
            next.bytes.push(0);
            next.ends.push(next.bytes.len());
        }
        next
    }
}

impl Queries for Next {
    fn len(&self) -> usize {
        self.ends.len() - 1
    }
    fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.ends[index]..self.ends[index + 1]]
    }
}
