//! A pseudorandom permutation of 0..n without a table: element `i` is calculated.
//!
//! A Feistel network over two digits of different bases whose product is n or a little more; what falls
//! beyond n is sent round again. So keys made from `at(0)`, `at(1)`, ... are distinct, in no order, and
//! any part of them can be made by any thread.

use crate::data::{below, mix64};

/// A permutation of 0..n.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shuffle {
    size: u64,
    low: u64,
    high: u64,
    rounds: [u64; 4],
}

impl Shuffle {
    /// A permutation of 0..`size`; `size` is at least 1 and at most 2^62.
    pub(super) fn new(size: u64, seed: u64) -> Self {
        assert!((1..=1 << 62).contains(&size), "a permutation of {size} numbers");
        let root = size.isqrt();
        let low = if root * root == size { root } else { root + 1 };
        let rounds = [1, 2, 3, 4].map(|round| mix64(seed ^ mix64(round)));
        Self { size, low, high: size.div_ceil(low), rounds }
    }

    /// Element `i`, which is below the size.
    #[inline]
    pub(super) fn at(&self, i: u64) -> u64 {
        let mut x = i;
        loop {
            let (mut low, mut high) = (x % self.low, x / self.low);
            for pair in self.rounds.chunks(2) {
                low += below(mix64(high ^ pair[0]), self.low);
                low -= if low >= self.low { self.low } else { 0 };
                high += below(mix64(low ^ pair[1]), self.high);
                high -= if high >= self.high { self.high } else { 0 };
            }
            x = high * self.low + low;
            if x < self.size {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        for size in [1, 2, 3, 10, 99, 100, 101, 5000, 1 << 16] {
            let mut all: Vec<u64> = (0..size).map(|i| Shuffle::new(size, 7).at(i)).collect();
            assert!(size < 99 || all.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count() < 10);
            all.sort_unstable();
            assert!((0..size).eq(all));
        }
    }

    #[test]
    fn it_spreads_evenly() {
        let size = 1 << 62;
        let shuffle = Shuffle::new(size, 1);
        let mut cells = [0; 16];
        for i in 0..16_000 {
            let x = shuffle.at(i);
            assert!(x < size);
            cells[(x >> 58) as usize] += 1;
        }
        assert!(cells.iter().all(|&count| (850..1150).contains(&count)), "{cells:?}");
        assert_ne!(Shuffle::new(size, 2).at(0), shuffle.at(0));
    }
}
