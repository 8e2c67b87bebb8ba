//! The data of the benchmarks: keys without structure, values that follow from the key and not from
//! its rank, queries in no order.
//!
//! Keys are a bijective mixer over 1..=n, so they are distinct and evenly spread; the value of a key
//! is a second mixer of it, so every answer can be checked without a table.

use pleach_peers::Number;

/// Finaliser of splitmix64: a bijection of u64 without visible structure.
#[inline(always)]
#[must_use]
pub const fn mix64(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Finaliser of murmur3: a bijection of u32.
#[inline(always)]
#[must_use]
pub const fn mix32(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x85EB_CA6B);
    x = (x ^ (x >> 13)).wrapping_mul(0xC2B2_AE35);
    x ^ (x >> 16)
}

/// A number evenly spread below `bound` that follows from a well mixed `x`.
#[inline(always)]
#[must_use]
pub const fn below(x: u64, bound: u64) -> u64 {
    ((x as u128 * bound as u128) >> 64) as u64
}

/// Key number `i`, 1-based; different for different `i` that fit the type.
#[inline]
#[must_use]
pub fn key<K: Number>(i: u64) -> K {
    if K::BYTES == 4 { K::narrow(u64::from(mix32(i as u32))) } else { K::narrow(mix64(i)) }
}

/// Returns the value of `key`.
#[inline(always)]
#[must_use]
pub fn value<K: Number, V: Number>(key: K) -> V {
    V::narrow(mix64(key.widen() ^ 0x5851_F42D_4C95_7F2D))
}

/// `count` tuples with ascending, distinct keys. `count` must be below 2^32 for keys of four bytes:
/// beyond it keys repeat and are left out.
#[must_use]
pub fn tuples<K: Number, V: Number>(count: u64) -> Vec<(K, V)> {
    use rayon::slice::ParallelSliceMut;
    let mut keys: Vec<K> = (1..=count).map(key).collect();
    keys.par_sort_unstable();
    keys.dedup();
    keys.into_iter().map(|key| (key, value(key))).collect()
}

/// `count` keys that are present, each drawn from all of them, in no order. Empty without tuples.
#[must_use]
pub fn hits<K: Number, V>(tuples: &[(K, V)], count: usize) -> Vec<K> {
    let ranks = tuples.len() as u64;
    let draw = |i: u64| tuples.get(below(mix64(i.wrapping_mul(0x9E37_79B9_7F4A_7C15)), ranks) as usize);
    (1..=count as u64).filter_map(draw).map(|tuple| tuple.0).collect()
}

/// Kind of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queries {
    /// Present keys, each as likely as any other.
    Hits,
    /// Every other query, by chance, is for a key that is absent, drawn from the same range as the others.
    HalfMisses,
    /// Present keys by Zipf's law with exponent 1: the k-th most frequent key is looked up 1/k as often as
    /// the first; frequency does not depend on the order of the keys.
    Zipf,
    /// Present keys, each as likely as any other, in ascending order.
    Sorted,
}

impl Queries {
    /// Returns the name in reports and arguments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hits => "uniform",
            Self::HalfMisses => "half-miss",
            Self::Zipf => "zipf",
            Self::Sorted => "sorted",
        }
    }

    /// `count` queries to [`tuples`], in no order, and a bit for each: whether its key is present. Empty without
    /// tuples. Absent keys are those that the next tuples would have; if there are none (2^32 keys of four
    /// bytes), all are hits.
    #[must_use]
    pub fn draw<K: Number, V>(self, tuples: &[(K, V)], count: usize) -> (Vec<K>, Vec<u64>) {
        let mut queries = hits(tuples, count);
        let mut there = vec![u64::MAX; queries.len().div_ceil(64)];
        let keys = tuples.len() as u64;
        match self {
            Self::Hits => {}
            Self::Sorted => queries.sort_unstable(),
            Self::HalfMisses => {
                let absent = if K::BYTES == 4 { (1 << 32) - 1 - keys } else { u64::MAX - keys };
                for (at, query) in queries.iter_mut().enumerate() {
                    let drawn = mix64(at as u64 ^ 0x00C0_FFEE_0000_0000);
                    if drawn & 1 == 1 && absent > 0 {
                        *query = key(keys + 1 + below(mix64(drawn), absent));
                        there[at / 64] &= !(1 << (at % 64));
                    }
                }
            }
            Self::Zipf => {
                let log = (keys as f64 + 1.0).ln();
                for (at, query) in queries.iter_mut().enumerate() {
                    // The inverse of the distribution, taken as continuous.
                    let even = (mix64(at as u64 ^ 0x0BAD_CAFE_0000_0000) >> 11) as f64 / (1u64 << 53) as f64;
                    *query = key(((even * log).exp() as u64).clamp(1, keys));
                }
            }
        }
        (queries, there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_distinct_and_ascending() {
        fn check<K: Number>() {
            let tuples = tuples::<K, u32>(5000);
            assert_eq!(tuples.len(), 5000);
            assert!(tuples.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
        check::<u32>();
        check::<u64>();
    }

    #[test]
    fn half_misses_and_zipf_are_what_they_say() {
        fn check<K: Number>() {
            let tuples = tuples::<K, u32>(1000);
            for kind in [Queries::Hits, Queries::HalfMisses, Queries::Zipf, Queries::Sorted] {
                let (queries, there) = kind.draw(&tuples, 10_000);
                assert_eq!((queries.len(), there.len()), (10_000, 157));
                let mut counts = std::collections::BTreeMap::new();
                let mut hits = 0;
                for (at, query) in queries.iter().enumerate() {
                    let is_there = tuples.binary_search_by_key(query, |tuple| tuple.0).is_ok();
                    assert_eq!(there[at / 64] >> (at % 64) & 1 == 1, is_there, "{kind:?} {at}");
                    hits += usize::from(is_there);
                    *counts.entry(*query).or_insert(0) += 1;
                }
                let most = counts.into_values().max().unwrap_or(0);
                match kind {
                    Queries::Hits | Queries::Sorted => assert!(hits == 10_000 && most < 40, "{most}"),
                    Queries::HalfMisses => assert!((4700..5300).contains(&hits), "{hits}"),
                    Queries::Zipf => assert!(hits == 10_000 && (800..1300).contains(&most), "{most}"),
                }
            }
        }
        check::<u32>();
        check::<u64>();
        assert!(Queries::Zipf.draw::<u64, u64>(&[], 3).0.is_empty());
    }

    #[test]
    fn queries_are_hits_without_order() {
        let tuples = tuples::<u64, u64>(5000);
        let queries = hits(&tuples, 4096);
        assert_eq!(queries.len(), 4096);
        assert!(queries.iter().all(|query| tuples.binary_search_by_key(query, |tuple| tuple.0).is_ok()));
        let ascents = queries.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((1800..2300).contains(&ascents), "{ascents}");
        assert!(hits::<u64, u64>(&[], 3).is_empty());
    }
}
