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

/// Byte strings that were copied, one after the other. None of them is null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Default for Copied {
    fn default() -> Self {
        Self { bytes: Vec::new(), ends: vec![0] }
    }
}

impl Copied {
    /// Adds a string that is made of these pieces.
    pub fn push(&mut self, pieces: &[&[u8]]) {
        pieces.iter().for_each(|piece| self.bytes.extend_from_slice(piece));
        self.ends.push(self.bytes.len());
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Copied {
    fn from_iter<I: IntoIterator<Item = T>>(strings: I) -> Self {
        let mut all = Self::default();
        strings.into_iter().for_each(|string| all.push(&[string.as_ref()]));
        all
    }
}

impl Queries for Copied {
    fn len(&self) -> usize {
        self.ends.len() - 1
    }
    fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.ends[index]..self.ends[index + 1]]
    }
}

impl Texts for Copied {
    fn is_null(&self, _: usize) -> bool {
        false
    }
}

impl Part<'_> {
    /// Returns the smallest string above each string: the string and a zero byte.
    pub(crate) fn next(&self) -> Copied {
        let mut next = Copied::default();
        (0..self.count).for_each(|at| next.push(&[self.get(at), &[0]]));
        next
    }
}
