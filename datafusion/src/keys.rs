//! Sets of keys: ranges of byte strings that compare as the keys do.
//!
//! A key is its bytes in a manifest: a number big-endian, or the bytes of the key. The smallest byte string above
//! a key is the key and a zero byte, and no key of a fixed length lies between the two. So every condition is a
//! list of half-open ranges, and a single key `k` is the range from `k` to `k 00`.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// The keys from `start` on, and below `end`, if there is an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRange {
    /// The first byte string inside.
    pub start: Vec<u8>,
    /// The first byte string after it; `None` if it has no end.
    pub end: Option<Vec<u8>>,
}

impl KeyRange {
    /// Returns the range of a single key.
    #[must_use]
    pub fn point(key: Vec<u8>) -> Self {
        let end = Some(after(&key));
        Self { start: key, end }
    }

    /// Returns the key, if the range is that of a single key.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        let end = self.end.as_deref()?;
        (end.split_last() == Some((&0, &self.start[..]))).then_some(&self.start)
    }

    fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }
}

/// Returns the smallest byte string above a key.
#[must_use]
pub fn after(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

/// A set of keys: ranges that ascend and do not overlap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySet {
    ranges: Vec<KeyRange>,
}

impl KeySet {
    /// Returns the set of all keys.
    #[must_use]
    pub fn all() -> Self {
        Self { ranges: vec![KeyRange { start: Vec::new(), end: None }] }
    }
    /// Returns the set of no keys.
    #[must_use]
    pub const fn none() -> Self {
        Self { ranges: Vec::new() }
    }
    /// Returns the set of these ranges, in any order.
    #[must_use]
    pub fn of(mut ranges: Vec<KeyRange>) -> Self {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_by(|a, b| a.start.cmp(&b.start));
        let mut all: Vec<KeyRange> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match all.last_mut() {
                Some(last) if last.end.as_ref().is_none_or(|end| range.start <= *end) => {
                    if is_above(&range.end, &last.end) {
                        last.end = range.end;
                    }
                }
                _ => all.push(range),
            }
        }
        Self { ranges: all }
    }
    /// Returns the set of single keys.
    #[must_use]
    pub fn points(keys: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self::of(keys.into_iter().map(KeyRange::point).collect())
    }
    /// Returns the set of the keys in one range.
    #[must_use]
    pub fn range(start: Vec<u8>, end: Option<Vec<u8>>) -> Self {
        Self::of(vec![KeyRange { start, end }])
    }

    /// Returns the ranges, ascending.
    #[must_use]
    pub fn ranges(&self) -> &[KeyRange] {
        &self.ranges
    }
    /// Returns true if all keys are in the set.
    #[must_use]
    pub fn is_all(&self) -> bool {
        matches!(&self.ranges[..], [one] if one.start.is_empty() && one.end.is_none())
    }
    /// Returns true if no key is in the set.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the keys that are in both sets.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        if self.is_all() {
            return other.clone();
        }
        let (mut left, mut right) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        let mut ranges = Vec::new();
        while let (Some(one), Some(two)) = (left.peek(), right.peek()) {
            let start = one.start.as_slice().max(&two.start);
            let end = if is_above(&one.end, &two.end) { &two.end } else { &one.end };
            let both = KeyRange { start: start.to_vec(), end: end.clone() };
            if !both.is_empty() {
                ranges.push(both);
            }
            if is_above(&one.end, &two.end) {
                right.next();
            } else {
                left.next();
            }
        }
        Self { ranges }
    }
    /// Returns the keys that are in one of the sets.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.ranges.extend(other.ranges);
        Self::of(self.ranges)
    }
    /// Returns the keys that are not in the set.
    #[must_use]
    pub fn not(&self) -> Self {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        let mut start = Some(Vec::new());
        for range in &self.ranges {
            if let Some(start) = start {
                ranges.push(KeyRange { start, end: Some(range.start.clone()) });
            }
            start = range.end.clone();
        }
        ranges.extend(start.map(|start| KeyRange { start, end: None }));
        Self::of(ranges)
    }

    /// Returns the ranges that can have keys from `min` to `max`, both included. O(log ranges).
    #[must_use]
    pub fn meeting(&self, min: &[u8], max: &[u8]) -> &[KeyRange] {
        let first =
            self.ranges.partition_point(|range| range.end.as_ref().is_some_and(|end| &end[..] <= min));
        let last = self.ranges.partition_point(|range| &range.start[..] <= max);
        &self.ranges[first.min(last)..last]
    }
    /// Returns true if all keys from `min` to `max`, both included, are in the set.
    #[must_use]
    pub fn covers(&self, min: &[u8], max: &[u8]) -> bool {
        let covers =
            |range: &KeyRange| &range.start[..] <= min && range.end.as_ref().is_none_or(|end| max < &end[..]);
        self.meeting(min, max).iter().any(covers)
    }

    /// Returns the number of single keys, and that of longer ranges.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let points = self.ranges.iter().filter(|range| range.key().is_some()).count();
        (points, self.ranges.len() - points)
    }
}

/// Returns true if an end is above another one; `None` is above all.
fn is_above(one: &Option<Vec<u8>>, two: &Option<Vec<u8>>) -> bool {
    let order = match (one, two) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(one), Some(two)) => one.cmp(two),
    };
    order == Ordering::Greater
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A set of numbers below 8, each of them one byte, by a mask of bits.
    fn of_mask(mask: u8) -> KeySet {
        KeySet::points((0..8u8).filter(|bit| mask >> bit & 1 == 1).map(|bit| vec![bit]))
    }

    fn mask_of(set: &KeySet) -> u8 {
        (0..8u8).filter(|&bit| set.covers(&[bit], &[bit])).fold(0, |mask, bit| mask | 1 << bit)
    }

    #[test]
    fn sets_are_those_of_their_masks() {
        for left in 0..=255u8 {
            assert_eq!(mask_of(&of_mask(left)), left);
            assert_eq!(mask_of(&of_mask(left).not()), !left);
            assert_eq!(of_mask(left).not().not(), of_mask(left));
            for right in (0..=255u8).step_by(7) {
                let (one, two) = (of_mask(left), of_mask(right));
                assert_eq!(mask_of(&one.and(&two)), left & right, "{left} and {right}");
                assert_eq!(mask_of(&one.not().and(&two)), !left & right, "not {left} and {right}");
                assert_eq!(mask_of(&one.clone().or(two)), left | right, "{left} or {right}");
            }
        }
    }

    #[test]
    fn ends_are_excluded() {
        let set = KeySet::range(vec![2], Some(vec![5]));
        assert_eq!(mask_of(&set), 0b0001_1100);
        assert!(set.covers(&[2], &[4]) && !set.covers(&[2], &[5]) && !set.covers(&[1], &[3]));
        assert_eq!(set.meeting(&[5], &[7]), []);
        assert_eq!(set.meeting(&[4], &[7]).len(), 1);
        assert_eq!(set.meeting(&[0], &[1]), []);
        assert_eq!(set.meeting(&[0], &[2]).len(), 1);
        assert!(KeySet::range(vec![5], Some(vec![5])).is_none());
        assert!(KeySet::all().is_all() && KeySet::all().not().is_none());
        assert_eq!(KeySet::points([vec![3], vec![3], vec![1]]).counts(), (2, 0));
        assert_eq!(set.counts(), (0, 1));
    }
}
