//! Byte-string keys in one piece of memory, laid out as Arrow's `LargeBinary`: all bytes one after
//! the other, and the offsets between them. A million keys are two allocations, not a million.

use std::ops::Range;

/// A growing list of byte strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    data: Vec<u8>,
    /// Start of each key, and the end of the last one.
    offsets: Vec<u64>,
}

impl Default for Keys {
    fn default() -> Self {
        Self::with_capacity(0, 0)
    }
}

impl Keys {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty list with room for `keys` keys of `bytes` bytes together.
    #[must_use]
    pub fn with_capacity(keys: usize, bytes: usize) -> Self {
        let mut offsets = Vec::with_capacity(keys + 1);
        offsets.push(0);
        Self { data: Vec::with_capacity(bytes), offsets }
    }

    /// Adds a key at the end.
    pub fn push(&mut self, key: &[u8]) {
        self.data.extend_from_slice(key);
        self.offsets.push(self.data.len() as u64);
    }

    /// Adds what `write` appends to the bytes as one key at the end.
    ///
    /// # Panics
    /// If `write` removes bytes.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.data.len();
        write(&mut self.data);
        assert!(self.data.len() >= start, "a key is appended, nothing is removed");
        self.offsets.push(self.data.len() as u64);
    }

    /// Adds all keys of `other` at the end.
    pub fn append(&mut self, other: View<'_>) {
        let (first, last) = other.bounds();
        let shift = self.data.len() as u64;
        self.data.extend_from_slice(&other.data[first as usize..last as usize]);
        self.offsets.extend(other.offsets[1..].iter().map(|offset| offset - first + shift));
    }

    /// Removes the last key.
    pub fn pop(&mut self) {
        if self.offsets.len() > 1 {
            self.offsets.pop();
            self.data.truncate(self.offsets[self.offsets.len() - 1] as usize);
        }
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Returns true if there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Key number `i`.
    ///
    /// # Panics
    /// If there are not that many.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, i: usize) -> &[u8] {
        self.view().get(i)
    }

    /// All keys in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        self.view().iter()
    }

    /// The list as something to pass by value.
    #[inline(always)]
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View { data: &self.data, offsets: &self.offsets }
    }

    /// The bytes of all keys.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Start of each key, and the end of the last one: one more than there are keys.
    #[must_use]
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// The length of every key, if all have the same.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        let width = self.offsets.get(1)?;
        let is_fixed = self.offsets.windows(2).all(|pair| pair[1] - pair[0] == *width);
        is_fixed.then_some(*width as usize)
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Keys {
    fn from_iter<I: IntoIterator<Item = T>>(keys: I) -> Self {
        let mut list = Self::new();
        for key in keys {
            list.push(key.as_ref());
        }
        list
    }
}

/// Some consecutive keys of a [`Keys`].
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    data: &'a [u8],
    offsets: &'a [u64],
}

impl<'a> View<'a> {
    /// Number of keys.
    #[inline(always)]
    #[must_use]
    pub fn len(self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns true if there is no key.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Key number `i` of these.
    ///
    /// # Panics
    /// If there are not that many.
    #[inline(always)]
    #[must_use]
    pub fn get(self, i: usize) -> &'a [u8] {
        &self.data[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }

    /// All of these keys in order.
    #[inline(always)]
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.offsets.windows(2).map(move |pair| &self.data[pair[0] as usize..pair[1] as usize])
    }

    /// The keys of `range`.
    ///
    /// # Panics
    /// If there are not that many.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Self {
        Self { data: self.data, offsets: &self.offsets[range.start..=range.end] }
    }

    /// Groups of `keys` keys; the last may be shorter.
    ///
    /// # Panics
    /// If `keys` is 0.
    pub fn chunks(self, keys: usize) -> impl Iterator<Item = Self> {
        (0..self.len()).step_by(keys).map(move |start| self.slice(start..(start + keys).min(self.len())))
    }

    fn bounds(self) -> (u64, u64) {
        (self.offsets[0], self.offsets[self.offsets.len() - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let mut keys = Keys::new();
        assert!(keys.is_empty());
        assert_eq!(keys.width(), None);
        keys.push(b"");
        keys.push_with(|data| data.extend_from_slice(b"a\0"));
        keys.push(b"bcd");
        assert_eq!(keys.iter().collect::<Vec<_>>(), [b"".as_slice(), b"a\0", b"bcd"]);
        assert_eq!((keys.len(), keys.get(1), keys.width()), (3, b"a\0".as_slice(), None));
        assert_eq!((keys.data(), keys.offsets()), (b"a\0bcd".as_slice(), [0, 0, 2, 5].as_slice()));
        keys.pop();
        assert_eq!(keys, [b"".as_slice(), b"a\0"].into_iter().collect());
        keys.pop();
        keys.pop();
        keys.pop();
        assert_eq!(keys, Keys::new());
    }

    #[test]
    fn views_keep_their_place() {
        let keys: Keys = (0..10).map(|i| "x".repeat(i)).collect();
        let view = keys.view().slice(3..8);
        assert_eq!((view.len(), view.get(0), view.get(4)), (5, b"xxx".as_slice(), b"xxxxxxx".as_slice()));
        let mut copy: Keys = ["y"].into_iter().collect();
        copy.append(view.slice(1..3));
        assert_eq!(copy, ["y", "xxxx", "xxxxx"].into_iter().collect());
        let lengths: Vec<usize> = keys.view().chunks(4).map(View::len).collect();
        assert_eq!(lengths, [4, 4, 2]);
        assert!(Keys::new().view().is_empty());
    }

    #[test]
    fn width_is_that_of_all() {
        let fixed: Keys = ["ab", "cd", "\0\0"].into_iter().collect();
        assert_eq!(fixed.width(), Some(2));
        let mixed: Keys = ["ab", "cd", "e"].into_iter().collect();
        assert_eq!(mixed.width(), None);
        assert_eq!([""].into_iter().collect::<Keys>().width(), Some(0));
    }
}
