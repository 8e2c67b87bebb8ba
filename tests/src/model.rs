//! Oracle for an index of byte-string keys: a sorted vector, searched one key after the other.
//!
//! Tuples with equal keys stay in the order in which they were given. A rank is a place in the vector.

use std::ops::{Bound, Range, RangeBounds};

/// Tuples in the order of their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model<V> {
    tuples: Vec<(Vec<u8>, V)>,
}

impl<V> Model<V> {
    /// A model of tuples in any order.
    #[must_use]
    pub fn new(mut tuples: Vec<(Vec<u8>, V)>) -> Self {
        tuples.sort_by(|a, b| a.0.cmp(&b.0));
        Self { tuples }
    }

    /// All tuples in order.
    #[must_use]
    pub fn tuples(&self) -> &[(Vec<u8>, V)] {
        &self.tuples
    }

    /// Returns the number of keys less than `key`: the rank of the first that is not.
    #[must_use]
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        self.tuples.partition_point(|tuple| tuple.0.as_slice() < key)
    }

    /// Returns the number of keys not greater than `key`: the rank of the first that is.
    #[must_use]
    pub fn upper_bound(&self, key: &[u8]) -> usize {
        self.tuples.partition_point(|tuple| tuple.0.as_slice() <= key)
    }

    /// The value of the first tuple of `key`.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&V> {
        self.get_all(key).next()
    }

    /// The values of all tuples of `key`, in the order in which they were given.
    pub fn get_all(&self, key: &[u8]) -> impl Iterator<Item = &V> + '_ {
        self.tuples[self.lower_bound(key)..self.upper_bound(key)].iter().map(|tuple| &tuple.1)
    }

    /// The ranks of the tuples whose keys lie in `range`; empty if it ends before it begins.
    #[must_use]
    pub fn ranks<'k>(&self, range: impl RangeBounds<&'k [u8]>) -> Range<usize> {
        let start = match range.start_bound() {
            Bound::Included(key) => self.lower_bound(key),
            Bound::Excluded(key) => self.upper_bound(key),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(key) => self.upper_bound(key),
            Bound::Excluded(key) => self.lower_bound(key),
            Bound::Unbounded => self.tuples.len(),
        };
        start..end.max(start)
    }

    /// Returns the number of tuples with keys in `range`.
    #[must_use]
    pub fn count<'k>(&self, range: impl RangeBounds<&'k [u8]>) -> usize {
        self.ranks(range).len()
    }

    /// The tuples whose keys lie in `range`.
    #[must_use]
    pub fn range<'k>(&self, range: impl RangeBounds<&'k [u8]>) -> &[(Vec<u8>, V)] {
        &self.tuples[self.ranks(range)]
    }

    /// The tuples whose keys begin with `prefix`.
    #[must_use]
    pub fn prefix(&self, prefix: &[u8]) -> &[(Vec<u8>, V)] {
        let from = &self.tuples[self.lower_bound(prefix)..];
        &from[..from.partition_point(|tuple| tuple.0.starts_with(prefix))]
    }
}

/// Returns the first key after all that begin with `prefix`; `None` if there is none, as for "" and "\xFF".
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|&byte| byte != 0xFF)?;
    let mut end = prefix[..=kept].to_vec();
    end[kept] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adversarial;

    #[test]
    fn duplicates_keep_their_order() {
        let texts = ["b", "a", "b", "", "b", "a\0", "a", ""];
        let tuples = texts.iter().zip(0..).map(|(text, i)| (text.as_bytes().to_vec(), i)).collect();
        let model = Model::new(tuples);
        assert_eq!(model.tuples().iter().map(|tuple| tuple.1).collect::<Vec<_>>(), [3, 7, 1, 6, 5, 0, 2, 4]);
        assert_eq!(model.get(b"b"), Some(&0));
        assert_eq!(model.get(b"bb"), None);
        assert_eq!(model.get_all(b"b").copied().collect::<Vec<_>>(), [0, 2, 4]);
        assert_eq!((model.lower_bound(b"a"), model.upper_bound(b"a")), (2, 4));
        assert_eq!((model.lower_bound(b""), model.upper_bound(b"")), (0, 2));
        assert_eq!(model.count(b"a".as_slice()..=b"b".as_slice()), 6);
        assert_eq!(model.count(b"a".as_slice()..b"b".as_slice()), 3);
        assert_eq!(model.count((Bound::Excluded(b"a".as_slice()), Bound::Unbounded)), 4);
        assert_eq!(model.count(b"b".as_slice()..b"a".as_slice()), 0);
        assert_eq!(model.count(..), 8);
        assert_eq!(model.prefix(b"a").len(), 3);
        assert_eq!(model.prefix(b"").len(), 8);
        assert_eq!(model.range(b"a\0".as_slice()..)[0].1, 5);
        assert!(Model::<u32>::new(Vec::new()).get(b"").is_none());
    }

    /// Against plain filters over every tuple.
    #[test]
    fn answers_are_those_of_a_scan() {
        for (name, case) in adversarial::all() {
            let step = case.keys.len().div_ceil(400);
            let keys: Vec<Vec<u8>> = case.keys.into_iter().step_by(step).collect();
            // Every third key occurs twice, in the other half of the input.
            let twice = keys.iter().step_by(3).rev();
            let tuples: Vec<(Vec<u8>, usize)> = keys.iter().chain(twice).cloned().zip(0..).collect();
            let model = Model::new(tuples.clone());
            let step = case.queries.len().div_ceil(200);
            let queries: Vec<&[u8]> = case.queries.iter().step_by(step).map(Vec::as_slice).collect();
            for (i, &query) in queries.iter().enumerate() {
                let scan = |of: &dyn Fn(&[u8]) -> bool| -> Vec<usize> {
                    tuples.iter().filter(|tuple| of(&tuple.0)).map(|tuple| tuple.1).collect()
                };
                assert_eq!(model.lower_bound(query), scan(&|key| key < query).len(), "{name}");
                assert_eq!(model.upper_bound(query), scan(&|key| key <= query).len(), "{name}");
                let equal = scan(&|key| key == query);
                assert_eq!(model.get(query), equal.first(), "{name}");
                assert!(model.get_all(query).eq(&equal), "{name}");
                let to = queries[(i * 7 + 3) % queries.len()];
                assert_eq!(model.count(query..to), scan(&|key| query <= key && key < to).len(), "{name}");
                assert_eq!(model.range(query..=to).len(), scan(&|key| query <= key && key <= to).len());
                let prefix = &query[..query.len() / 2];
                let begin: Vec<usize> = model.prefix(prefix).iter().map(|tuple| tuple.1).collect();
                let mut sorted = begin.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, scan(&|key| key.starts_with(prefix)), "{name}");
                let end = prefix_end(prefix);
                let ranks = match &end {
                    Some(end) => model.ranks(prefix..end.as_slice()),
                    None => model.ranks(prefix..),
                };
                assert_eq!(ranks.len(), begin.len(), "{name}: a prefix is a range");
            }
        }
    }

    #[test]
    fn ends_of_prefixes() {
        assert_eq!(prefix_end(b"a"), Some(b"b".to_vec()));
        assert_eq!(prefix_end(b"a\xFF\xFF"), Some(b"b".to_vec()));
        assert_eq!(prefix_end(b"\0"), Some(b"\x01".to_vec()));
        assert_eq!(prefix_end(b""), None);
        assert_eq!(prefix_end(b"\xFF\xFF"), None);
    }
}
