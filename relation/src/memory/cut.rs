//! Cuts of two sorted columns into parts that are processed alone.
//!
//! The inputs are the sides of a rectangle, and merging them is a path through it from corner to corner
//! (Odeh, Green, Mwassi, Shmueli, Birk: "Merge Path", 2012; the double-sided binary search of Diamos and
//! others 2012, section 5). The path crosses diagonal `d` after `d` tuples of both sides; one binary search
//! finds the crossing. Parts between equally distant diagonals have equally many tuples, whatever the keys
//! are.
//!
//! A diagonal may cross a run of equal keys, so that long runs are spread over all threads. Set rules and
//! joins take the left tuples of a key before its right ones ([`merge`]). Multiset rules pair equal keys; a
//! part must then begin with equally many tuples of both sides, unless one of them has no more
//! ([`balanced`]).

use super::part::{Part, Parting};
use pleach_format::Word;

/// Returns the first index from `from` on whose key is not `below`: doubling steps, then bisection. O(log of
/// the distance).
pub(crate) fn gallop<K>(keys: &[K], from: usize, below: impl Fn(&K) -> bool) -> usize {
    let (mut low, mut step) = (from, 1);
    while let Some(key) = keys.get(low + step - 1)
        && below(key)
    {
        low += step;
        step *= 2;
    }
    let end = (low + step - 1).min(keys.len());
    low + keys[low.min(end)..end].partition_point(below)
}

/// Returns the first index of the keys that end before `end` and are not `below`. O(log of the distance from
/// `end`).
pub(crate) fn gallop_back<K>(keys: &[K], end: usize, below: impl Fn(&K) -> bool) -> usize {
    let (mut high, mut step) = (end, 1);
    while high >= step && !below(&keys[high - step]) {
        high -= step;
        step *= 2;
    }
    let low = high.saturating_sub(step);
    low + keys[low..high].partition_point(below)
}

/// Returns how many left and right tuples are among the first `diagonal` of the merge that takes left ones
/// before equal right ones. The left number is searched between `low` and `high`. O(log(high - low)).
pub(crate) fn merge<K: Word>(
    a: &[K],
    b: &[K],
    diagonal: usize,
    low: (usize, usize),
    high: (usize, usize),
) -> (usize, usize) {
    let mut from = low.0.max(diagonal.saturating_sub(high.1.min(b.len())));
    let mut to = high.0.min(a.len()).min(diagonal - low.1.min(diagonal)).max(from);
    while from < to {
        let middle = from + (to - from) / 2;
        // Left tuple `middle` is among them if it comes before the last right tuple that could be.
        if a[middle] <= b[(diagonal - middle - 1).min(b.len() - 1)] {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    (from, diagonal - from)
}

/// Converts a cut of [`merge`] to one of the pairwise walk: from a key that it separates, both sides have
/// given equally many tuples, or one of them all. O(log(run)).
pub(crate) fn balanced<K: Word>(a: &[K], b: &[K], (i, j): (usize, usize)) -> (usize, usize) {
    let last = |keys: &[K], at: usize| at.checked_sub(1).map(|at| keys[at]);
    let Some(key) = last(a, i).max(last(b, j)) else { return (i, j) };
    if a.get(i) != Some(&key) && b.get(j) != Some(&key) {
        return (i, j);
    }
    let (a_from, b_from) = (gallop_back(a, i, |&k| k < key), gallop_back(b, j, |&k| k < key));
    let (m, n) = (gallop(a, i, |&k| k <= key) - a_from, gallop(b, j, |&k| k <= key) - b_from);
    let taken = (i - a_from) + (j - b_from);
    let pairs = (taken / 2).min(m).min(n);
    match (taken / 2 > pairs, m < n) {
        (false, _) => (a_from + pairs, b_from + pairs),
        (true, true) => (a_from + m, b_from + taken - m),
        (true, false) => (a_from + taken - n, b_from + n),
    }
}

/// Cuts of two columns into parts of `tuples` tuples of both sides.
pub(crate) struct Cuts<'a, K> {
    a: &'a [K],
    b: &'a [K],
    parting: Parting,
    tuples: usize,
    /// Parts have equally many tuples of the shorter side, with the matching tuples of the longer one.
    is_sparse: bool,
    /// Cuts of [`merge`] at every [`COARSE`]th part: most of a search then touches few pages.
    coarse: Vec<(usize, usize)>,
}

/// Parts between coarse cuts.
const COARSE: usize = 64;

impl<'a, K: Word> Cuts<'a, K> {
    /// Cuts into parts of `tuples >= 1` tuples. O(parts log(tuples)) for the coarse cuts.
    pub(crate) fn new(a: &'a [K], b: &'a [K], parting: Parting, tuples: usize, is_sparse: bool) -> Self {
        if is_sparse {
            // Each tuple costs a search.
            let tuples = (tuples / 16).max(1);
            return Self { a, b, parting, tuples, is_sparse, coarse: Vec::new() };
        }
        let (total, end) = (a.len() + b.len(), (a.len(), b.len()));
        let step = tuples.saturating_mul(COARSE);
        let mut coarse = vec![(0, 0)];
        while let Some(&low) = coarse.last()
            && low != end
        {
            coarse.push(merge(a, b, coarse.len().saturating_mul(step).min(total), low, end));
        }
        Self { a, b, parting, tuples, is_sparse, coarse }
    }

    /// Returns the number of parts.
    pub(crate) fn parts(&self) -> usize {
        let (a, b) = (self.a.len(), self.b.len());
        if !self.is_sparse {
            return (a + b).div_ceil(self.tuples);
        }
        // A shorter side without tuples has one part too, because the longer side may be emitted.
        a.min(b).div_ceil(self.tuples).max(1)
    }

    /// Returns a cut by the shorter side; it is a cut of [`merge`] too, at another diagonal.
    fn sparse_cut(&self, number: usize) -> (usize, usize) {
        let (a, b) = (self.a, self.b);
        let at = number.saturating_mul(self.tuples);
        if number == 0 {
            (0, 0)
        } else if at >= a.len().min(b.len()) {
            (a.len(), b.len())
        } else if a.len() < b.len() {
            (at, b.partition_point(|&key| key < a[at]))
        } else {
            (a.partition_point(|&key| key <= b[at]), at)
        }
    }

    fn cut(&self, number: usize) -> (usize, usize) {
        let (total, end) = (self.a.len() + self.b.len(), (self.a.len(), self.b.len()));
        let diagonal = number.saturating_mul(self.tuples).min(total);
        let low = self.coarse.get(number / COARSE).copied().unwrap_or(end);
        let high = self.coarse.get(number / COARSE + 1).copied().unwrap_or(end);
        let cut = if self.is_sparse {
            self.sparse_cut(number)
        } else if diagonal == total {
            end
        } else {
            merge(self.a, self.b, diagonal, low, high)
        };
        if self.parting == Parting::Balanced { balanced(self.a, self.b, cut) } else { cut }
    }

    /// Returns up to `count` parts from number `first` on. Each begins where the one before it ends, the
    /// first at the start and the last at the end of the inputs, if keys are sorted; all are inside the
    /// inputs in any case.
    pub(crate) fn parts_from(&self, first: usize, count: usize) -> Vec<Part> {
        let mut from = self.cut(first);
        let last = (first + count).min(self.parts());
        (first + 1..=last)
            .map(|number| {
                let to = self.cut(number);
                let to = (to.0.clamp(from.0, self.a.len()), to.1.clamp(from.1, self.b.len()));
                let part = Part { left: (from.0, to.0), right: (from.1, to.1) };
                from = to;
                part
            })
            .collect()
    }
}
