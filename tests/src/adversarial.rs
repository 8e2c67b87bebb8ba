//! Byte-string keys that break searches which look at a part of a key, and queries that hit the weak
//! spot.
//!
//! Each function returns a [`Case`]: ascending, distinct keys, and queries in no particular order, of
//! which some are present. [`all`] has every one of them at a size for ordinary tests. A *nibble* is four
//! bits of a key; nibble 0 is the upper half of byte 0. A search over partial keys keeps only nibbles in
//! which the keys of a page differ, so it must notice where a query differs in one of the others.

use crate::generate::Random;

/// Keys and queries.
#[derive(Clone, Debug)]
pub struct Case {
    /// Ascending and distinct.
    pub keys: Vec<Vec<u8>>,
    /// Present and absent ones.
    pub queries: Vec<Vec<u8>>,
}

/// The longest key.
pub const LONGEST: usize = 65_535;

impl Case {
    /// Sorts the keys and leaves repeated ones out.
    fn new(mut keys: Vec<Vec<u8>>, queries: Vec<Vec<u8>>) -> Self {
        keys.sort_unstable();
        keys.dedup();
        Self { keys, queries }
    }

    /// The length of every key, if all have the same: then fixed bytes hold the case, too.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        let width = self.keys.first()?.len();
        self.keys.iter().all(|key| key.len() == width).then_some(width)
    }
}

/// Every case with its name.
#[must_use]
pub fn all() -> Vec<(String, Case)> {
    let mut cases = Vec::new();
    for (bytes, nibble) in [(4, 0), (4, 7), (15, 0), (15, 13), (15, 29), (64, 64), (300, 599)] {
        cases.push((format!("one nibble {nibble} of {bytes} bytes"), one_nibble(300, bytes, nibble)));
    }
    for bytes in [3, 15, 16, 40] {
        cases.push((format!("constant nibbles of {bytes} bytes"), constant_nibbles(bytes, 1000)));
    }
    for kept in [1, 8, 16, 32] {
        cases.push((format!("equal in {kept} nibbles"), equal_partial_keys(kept, 5000)));
    }
    cases.push(("prefixes of each other".to_owned(), prefixes(40)));
    cases.push(("zero bytes inside".to_owned(), zero_bytes(6)));
    cases.push(("empty key alone".to_owned(), empty_key(false)));
    cases.push(("empty key among others".to_owned(), empty_key(true)));
    cases.push(("all 0x00 and all 0xFF".to_owned(), extremes()));
    cases
}

/// Flips nibble number `nibble` of `key` by `bits`.
fn flip(key: &mut [u8], nibble: usize, bits: u8) {
    key[nibble / 2] ^= (bits & 15) << (4 * (1 - nibble % 2));
}

/// About `groups` groups of 16 keys of `bytes` bytes, which share all but nibble number `nibble`.
///
/// The one nibble is all that parts 16 neighbours when it is the last, and throws them over the whole
/// index when it is the first. Queries: each key, and each with a nibble beside the chosen one changed,
/// with its last byte left out, and with a zero byte appended.
///
/// # Panics
/// If a key has no such nibble.
#[must_use]
pub fn one_nibble(groups: usize, bytes: usize, nibble: usize) -> Case {
    assert!(nibble < 2 * bytes, "nibble {nibble} of {bytes} bytes");
    let mut random = Random(bytes as u64 * 1000 + nibble as u64);
    let (mut keys, mut queries) = (Vec::new(), Vec::new());
    for _ in 0..groups {
        let base: Vec<u8> = (0..bytes).map(|_| random.next() as u8).collect();
        for bits in 0..16 {
            let mut key = base.clone();
            flip(&mut key, nibble, bits);
            queries.push(key.clone());
            for neighbour in [nibble.wrapping_sub(1), nibble + 1] {
                if neighbour < 2 * bytes {
                    let mut other = key.clone();
                    flip(&mut other, neighbour, 1 + random.below(15) as u8);
                    queries.push(other);
                }
            }
            queries.push(key[..bytes - 1].to_vec());
            queries.push([key.as_slice(), b"\0"].concat());
            keys.push(key);
        }
    }
    Case::new(keys, queries)
}

/// About `count` keys of `bytes` bytes (at least 3) that are equal in most of their nibbles: `0x7` in
/// every nibble but the two of a byte near the front, of one in the middle and of the last one.
///
/// Queries differ from a key in a nibble that is constant in the whole set, downwards (`0x0`, `0x6`) and
/// upwards (`0x8`, `0xF`): before the first varying nibble, between two of them, after the second; in one
/// place and in two that contradict each other. Such a query is before or after all keys that agree with it
/// so far, whatever its later nibbles are.
///
/// # Panics
/// If `bytes` is less than 3.
#[must_use]
pub fn constant_nibbles(bytes: usize, count: usize) -> Case {
    assert!(bytes >= 3, "three bytes vary");
    let varying = [bytes / 8, bytes / 2, bytes - 1];
    let mut random = Random(bytes as u64);
    let key = |random: &mut Random| {
        let mut key = vec![0x77; bytes];
        varying.iter().for_each(|&byte| key[byte] = random.next() as u8);
        key
    };
    let keys: Vec<Vec<u8>> = (0..count).map(|_| key(&mut random)).collect();
    // In three bytes all nibbles vary: there the queries change the varying ones.
    let constant: Vec<usize> = (0..2 * bytes).filter(|nibble| !varying.contains(&(nibble / 2))).collect();
    let places = if constant.is_empty() { (0..2 * bytes).collect() } else { constant };
    let mut queries = keys.clone();
    for (i, key) in keys.iter().enumerate() {
        let place = |random: &mut Random| places[random.below(places.len() as u64) as usize];
        let first = if i < places.len() { places[i] } else { place(&mut random) };
        for to in [0x0, 0x6, 0x8, 0xF] {
            let mut query = key.clone();
            flip(&mut query, first, to ^ 0x7);
            queries.push(query.clone());
            // A second difference the other way, after or before the first.
            flip(&mut query, place(&mut random), 0x7 ^ 0xF ^ to);
            queries.push(query.clone());
            // And the varying nibbles of no key at all.
            varying.iter().for_each(|&byte| query[byte] = random.next() as u8);
            queries.push(query);
        }
    }
    for byte in [0x00, 0x66, 0x77, 0x78, 0x88, 0xFF] {
        queries.push(vec![byte; bytes]);
        queries.push(vec![byte; bytes + 1]);
        queries.push(vec![byte; bytes - 1]);
    }
    Case::new(keys, queries)
}

/// `count` keys whose first `kept` varying nibbles are all equal, after and before other keys, so that
/// partial keys of `kept` nibbles cannot separate them.
///
/// One nibble in four varies in the whole set, but in the long run of `count` keys only those after the
/// first `kept` of them. The few other keys, 64 on either side, differ in every varying nibble and so make
/// a page keep them. With 100,000 keys a walk along equal partial keys shows as time. Queries: first, last
/// and some keys of the run, the keys around, neighbours in a kept and in a constant nibble.
#[must_use]
pub fn equal_partial_keys(kept: usize, count: usize) -> Case {
    // The run is counted in the nibbles after the kept ones, two bits of each.
    let behind = (usize::BITS - count.leading_zeros()).div_ceil(2) as usize;
    let nibbles = kept + behind;
    let bytes = (4 * nibbles).div_ceil(2);
    let mut random = Random(kept as u64);
    let spread = |values: &mut dyn FnMut(usize) -> u8| {
        let mut key = vec![0x33; bytes];
        for place in 0..nibbles {
            flip(&mut key, 4 * place + 1, 0x3 ^ values(place));
        }
        key
    };
    let run: Vec<Vec<u8>> = (0..count)
        .map(|i| {
            spread(&mut |place| match place.checked_sub(kept) {
                None => 0x8,
                Some(place) => (i >> (2 * (behind - 1 - place)) & 3) as u8 * 4,
            })
        })
        .collect();
    let mut queries: Vec<Vec<u8>> = run.iter().step_by(count / 200 + 1).cloned().collect();
    queries.extend(run.first().into_iter().chain(run.last()).cloned());
    for key in queries.clone() {
        for nibble in [0, 1, 4 * (kept / 2) + 1, 4 * kept, 4 * kept + 1, 2 * bytes - 1] {
            let mut query = key.clone();
            flip(&mut query, nibble.min(2 * bytes - 1), 1 + random.below(15) as u8);
            queries.push(query);
        }
        queries.push(key[..bytes / 2].to_vec());
    }
    let mut keys = run;
    for i in 0..128 {
        let around = spread(&mut |place| match place {
            0 if i % 2 == 0 => random.below(8) as u8,
            0 => 9 + random.below(7) as u8,
            _ => random.below(16) as u8,
        });
        queries.push(around.clone());
        keys.push(around);
    }
    Case::new(keys, queries)
}

/// Keys that begin with other keys, up to `longest` bytes: "", "a", "aa", ..., and "a\0", "a\0\0",
/// ..., "aa\0", ..., "a\0b". Padded with zeros many are the same; only their lengths separate them.
///
/// Queries: all keys, and each with one byte more or another last one.
#[must_use]
pub fn prefixes(longest: usize) -> Case {
    let mut keys = vec![Vec::new()];
    for letters in 0..=longest {
        for zeros in 0..=longest - letters {
            keys.push([vec![b'a'; letters], vec![0; zeros]].concat());
        }
        keys.push([&vec![b'a'; letters][..], b"\0b"].concat());
    }
    let mut queries = keys.clone();
    for key in &keys {
        for more in [b"\0".as_slice(), b"\x01", b"a", b"\xFF", b"\0\0\0\0\0\0\0\0"] {
            queries.push([key, more].concat());
        }
        if let Some((_, front)) = key.split_last() {
            queries.push([front, b"\x01"].concat());
        }
    }
    Case::new(keys, queries)
}

/// Every key of up to `longest` bytes of 0x00, 0x01 and 0xFF that ends in 0x00 or begins with it, and
/// some longer ones with zeros in the middle of text. Queries: every one of up to `longest` bytes, present
/// or not. There are 3^`longest` of those.
#[must_use]
pub fn zero_bytes(longest: usize) -> Case {
    let mut queries: Vec<Vec<u8>> = vec![Vec::new()];
    let mut start = 0;
    for _ in 0..longest {
        let end = queries.len();
        for i in start..end {
            for byte in [0x00, 0x01, 0xFF] {
                queries.push([queries[i].as_slice(), &[byte]].concat());
            }
        }
        start = end;
    }
    let mut keys: Vec<Vec<u8>> =
        queries.iter().filter(|key| key.first() == Some(&0) || key.last() == Some(&0)).cloned().collect();
    for zeros in 0..40 {
        let text = |middle: u8| [b"key".as_slice(), &vec![middle; zeros], b"end"].concat();
        keys.push(text(0));
        queries.extend([text(0), text(1), text(0)[..3 + zeros].to_vec()]);
    }
    Case::new(keys, queries)
}

/// The empty key, alone or among others.
#[must_use]
pub fn empty_key(among_others: bool) -> Case {
    let mut keys = vec![Vec::new()];
    if among_others {
        keys.extend((0..=255u8).flat_map(|byte| [vec![byte], vec![byte; 2], vec![0, byte, byte]]));
    }
    let queries = [b"".as_slice(), b"\0", b"\0\0", b"a", b"\xFF", b"\xFF\xFF", b"\xFF\xFF\xFF"];
    Case::new(keys, queries.map(<[u8]>::to_vec).to_vec())
}

/// Keys of nothing but 0x00 and of nothing but 0xFF, at the lengths where words, blocks and length
/// fields end, up to [`LONGEST`] bytes. Queries: those, and the lengths between, also with another last
/// byte. No query is longer than a key may be.
#[must_use]
pub fn extremes() -> Case {
    let lengths = [
        1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257, 4095, 4096, 65_534,
    ];
    let (mut keys, mut queries) = (Vec::new(), vec![Vec::new()]);
    for length in lengths.into_iter().chain([LONGEST]) {
        for byte in [0x00u8, 0xFF] {
            keys.push(vec![byte; length]);
            for query in [length - 1, length, length + 1] {
                let query = query.min(LONGEST);
                queries.push(vec![byte; query]);
                let mut other = vec![byte; query.max(1)];
                other[query.max(1) - 1] = !byte;
                queries.push(other);
            }
        }
    }
    Case::new(keys, queries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn present(case: &Case) -> usize {
        let keys: BTreeSet<&Vec<u8>> = case.keys.iter().collect();
        case.queries.iter().filter(|query| keys.contains(query)).count()
    }

    #[test]
    fn every_case_is_ascending_and_asks_for_both() {
        for (name, case) in all() {
            assert!(case.keys.is_sorted_by(|a, b| a < b), "{name}");
            assert!(case.keys.iter().chain(&case.queries).all(|key| key.len() <= LONGEST), "{name}");
            let present = present(&case);
            assert!(present > 0 && present < case.queries.len(), "{name}: {present} present");
            assert!(case.keys.len() < 20_000 && case.queries.len() < 50_000, "{name}: quick enough");
        }
        let (first, second) = (all(), all());
        for ((name, a), (_, b)) in first.iter().zip(&second) {
            assert!(a.keys == b.keys && a.queries == b.queries, "{name}: again the same");
        }
    }

    #[test]
    fn groups_share_all_but_one_nibble() {
        for nibble in [0, 5, 11] {
            let case = one_nibble(50, 6, nibble);
            assert_eq!((case.keys.len(), case.width()), (50 * 16, Some(6)));
            let without = |key: &Vec<u8>| {
                let mut key = key.clone();
                key[nibble / 2] &= if nibble % 2 == 0 { 0x0F } else { 0xF0 };
                key
            };
            let groups: BTreeSet<Vec<u8>> = case.keys.iter().map(without).collect();
            assert_eq!(groups.len(), 50);
        }
    }

    /// Which nibbles differ between keys.
    fn varying(keys: &[Vec<u8>]) -> Vec<usize> {
        let nibble = |key: &[u8], i: usize| key[i / 2] >> (4 * (1 - i % 2)) & 15;
        let nibbles = 0..2 * keys[0].len();
        nibbles.filter(|&i| keys.iter().any(|key| nibble(key, i) != nibble(&keys[0], i))).collect()
    }

    #[test]
    fn queries_differ_in_constant_nibbles() {
        let case = constant_nibbles(16, 1000);
        assert_eq!(varying(&case.keys), [4, 5, 16, 17, 30, 31]);
        let constant: Vec<usize> = (0..32).filter(|i| ![4, 5, 16, 17, 30, 31].contains(i)).collect();
        let base = [0x77; 16];
        for place in constant {
            for smaller in [true, false] {
                let differs = |query: &&Vec<u8>| {
                    let shift = 4 * (1 - place % 2);
                    query.len() == 16
                        && (query[place / 2] >> shift & 15 != 7)
                        && (query[place / 2] < base[place / 2]) == smaller
                };
                assert!(case.queries.iter().any(|query| differs(&query)), "{place} {smaller}");
            }
        }
    }

    #[test]
    fn runs_are_equal_in_the_kept_nibbles() {
        for (kept, count) in [(1, 100), (8, 5000), (16, 100_000)] {
            let case = equal_partial_keys(kept, count);
            assert!(case.keys.len() > count && case.keys.len() <= count + 128);
            assert!(case.width().is_some());
            let whole = varying(&case.keys);
            assert!(whole.iter().all(|nibble| nibble % 4 == 1), "{whole:?}");
            let partial = |key: &[u8]| -> Vec<u8> {
                whole[..kept].iter().map(|i| key[i / 2] >> (4 * (1 - i % 2)) & 15).collect()
            };
            let run = case.keys.iter().filter(|key| partial(key) == vec![8; kept]).count();
            assert_eq!(run, count);
            assert!(partial(&case.keys[0]) < vec![8; kept], "keys before the run");
            assert!(partial(&case.keys[case.keys.len() - 1]) > vec![8; kept], "keys behind it");
        }
    }

    #[test]
    fn prefixes_begin_with_each_other() {
        let case = prefixes(3);
        for text in [b"".as_slice(), b"a", b"aa", b"aaa", b"a\0", b"a\0\0", b"\0", b"\0\0\0", b"aa\0b"] {
            assert!(case.keys.iter().any(|key| key == text), "{text:?}");
        }
        assert_eq!(prefixes(40).keys.len(), 41 * 42 / 2 + 41);
    }

    #[test]
    fn lengths_of_extremes() {
        let case = extremes();
        let lengths: BTreeSet<usize> = case.keys.iter().map(Vec::len).collect();
        assert_eq!((lengths.len() * 2, lengths.last()), (case.keys.len(), Some(&LONGEST)));
        assert_eq!(empty_key(false).keys, [Vec::<u8>::new()]);
        assert!(empty_key(true).keys.len() > 700);
        assert_eq!(zero_bytes(2).keys.iter().filter(|key| key.len() <= 2).count(), 1 + 5);
    }
}
