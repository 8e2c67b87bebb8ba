//! Masks: the bits they keep, compared with a naive count; and the rank of a query among keys of any
//! length, compared with all keys.

use pleach_format::Mask;
use pleach_format::mask::{Chunk, HEAD_BYTES, Place, Survey};
use pleach_format::tail::{TAIL_GUARD_BYTES, Tail};
use pleach_kit::generate::Random;
use std::collections::BTreeSet;

fn place(mask: &Mask, query: &[u8]) -> Place {
    mask.place(query, Chunk::compress)
}

/// A tail with its guard bytes.
fn tail_of(tail: &Tail, key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    tail.push(key, Chunk::compress, &mut bytes);
    assert_eq!(bytes.len(), tail.bytes());
    bytes.resize(tail.bytes() + TAIL_GUARD_BYTES, 0xA5);
    bytes
}

fn mask_of(keys: &[&[u8]], fixed: Option<usize>, word_bytes: usize) -> Mask {
    let mut survey = Survey::default();
    keys.iter().for_each(|key| survey.add(key));
    let mask = survey.mask(fixed, word_bytes);
    // In another order, and merged from two halves, it is the same.
    let (left, right) = keys.split_at(keys.len() / 2);
    let (mut a, mut b) = (Survey::default(), Survey::default());
    left.iter().rev().for_each(|key| a.add(key));
    right.iter().for_each(|key| b.add(key));
    a.merge(&b);
    assert_eq!(a.mask(fixed, word_bytes).to_bytes(), mask.to_bytes());
    assert_eq!(Mask::parse(&mask.to_bytes(), mask.word_bytes(), 0).unwrap(), mask);
    mask
}

/// Words keep the order, queries find their place; `queries` are checked against all keys.
fn check(keys: &mut [&[u8]], queries: &[&[u8]], fixed: Option<usize>, word_bytes: usize) -> Mask {
    keys.sort_unstable();
    let mask = mask_of(keys, fixed, word_bytes);
    let words: Vec<u128> = keys
        .iter()
        .map(|key| match place(&mask, key) {
            Place::Word(word) => word,
            gap @ Place::Gap { .. } => panic!("{key:?}: {gap:?}"),
        })
        .collect();
    assert!(words.is_sorted(), "{words:x?}");
    for (key, &word) in keys.iter().zip(&words) {
        let mut back = vec![7];
        if mask.is_lossless() {
            mask.unpack(word, &mut back);
            assert_eq!(&back[1..], *key);
        } else if let Some(tail) = mask.tail() {
            mask.unpack_with(word, &tail_of(tail, key), &mut back);
            assert_eq!(&back[1..], *key);
        }
    }
    for (tail, key) in keys.iter().filter_map(|key| Some((mask.tail()?, key))) {
        let stored = tail_of(tail, key);
        for query in queries.iter().filter(|query| place(&mask, query) == place(&mask, key)) {
            let found = tail.compare(&stored, query, Chunk::expand);
            assert_eq!(found, key.cmp(query), "{key:?} {query:?}");
        }
    }
    for query in queries.iter().chain(&*keys) {
        let below = keys.iter().filter(|key| *key < query).count();
        let through = keys.iter().filter(|key| *key <= query).count();
        match place(&mask, query) {
            Place::Word(word) => {
                let low = words.iter().filter(|&&other| other < word).count();
                let high = words.iter().filter(|&&other| other <= word).count();
                assert!(low <= below && through <= high, "{query:?}");
                if mask.is_lossless() {
                    assert_eq!((low, high), (below, through), "{query:?}");
                }
            }
            Place::Gap { word, after } => {
                let rank = words.iter().filter(|&&other| other < word || after && other == word).count();
                assert_eq!((below, through), (rank, rank), "{query:?}, {word:x} {after}");
            }
        }
    }
    mask
}

/// Keys of a few letters, some with zeros at the end: only their lengths distinguish these.
fn keys(random: &mut Random, lengths: &[usize]) -> Vec<Vec<u8>> {
    let letters: &[u8] = [&[0, 1][..], &[0, b'a', b'b'], &[0x80, 0, 7, 0xFF]][random.below(3) as usize];
    let common = random.below(6) as usize;
    let mut all = BTreeSet::new();
    for _ in 0..1 + random.below(12) {
        let length = lengths[random.below(lengths.len() as u64) as usize];
        let zeros = random.below(4) as usize;
        let letter = |at: usize, random: &mut Random| match at {
            at if at < common => b'k',
            at if at + zeros >= length => 0,
            _ => letters[random.below(letters.len() as u64) as usize],
        };
        all.insert((0..length).map(|at| letter(at, random)).collect::<Vec<u8>>());
    }
    all.into_iter().collect()
}

/// Keys, and what is near them: shorter, longer, with another byte.
fn queries(random: &mut Random, keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut queries = vec![Vec::new(), vec![0xFF; 40], vec![0; 40]];
    for key in keys {
        queries.push(key.clone());
        for length in key.len().saturating_sub(5)..key.len() + 20 {
            let mut other = key.clone();
            other.resize(length, 0);
            queries.push(other);
        }
        for _ in 0..8 {
            let mut other = key.clone();
            let Some(byte) = other.get_mut(random.below(key.len().max(1) as u64) as usize) else { continue };
            *byte ^= 1 << random.below(8);
            other.resize(key.len() + random.below(3) as usize, 0);
            queries.push(other);
        }
    }
    queries
}

#[test]
fn queries_stand_where_they_should() {
    let mut random = Random(11);
    let (mut gaps, mut tails, mut lossless) = (0, 0, 0);
    for turn in 0..600 {
        let lengths: &[usize] =
            [&[8][..], &[8, 9], &[3, 4, 5, 6], &[9, 10], &[12, 14, 15], &[16, 17, 20], &[1, 30], &[24]]
                [turn % 8];
        let keys = keys(&mut random, lengths);
        let longest = keys.iter().map(Vec::len).max().expect("a key");
        let fixed = (lengths.len() == 1 && turn % 16 < 8).then_some(longest);
        let padded = |key: &[u8], at: usize| key.get(at).copied().unwrap_or(0);
        let queries = queries(&mut random, &keys);
        let queries: Vec<&[u8]> = queries.iter().map(Vec::as_slice).collect();
        let mut survey = Survey::default();
        keys.iter().for_each(|key| survey.add(key));
        let agree = |at: &usize| keys.iter().all(|key| padded(key, *at) == padded(&keys[0], *at));
        assert_eq!(survey.common_bytes(), (0..longest).take_while(agree).count());
        for word_bytes in [4, 8, 16] {
            let mask =
                check(&mut keys.iter().map(Vec::as_slice).collect::<Vec<_>>(), &queries, fixed, word_bytes);
            assert_eq!((mask.key_bytes_max(), mask.is_fixed()), (longest, fixed.is_some()));
            assert_eq!(mask.chunks().len(), mask.covered().div_ceil(8));
            let narrowest = [4, 8, 16].into_iter().find(|&bytes| mask.bits() as usize <= 8 * bytes);
            assert_eq!(narrowest, Some(mask.word_bytes()));
            assert!(mask.word_bytes() <= word_bytes);
            // Bits in which keys differ, byte by byte, and those of their lengths.
            let differing = |at: usize| {
                keys.iter().fold(0, |all, key| all | (padded(key, at) ^ padded(&keys[0], at))).count_ones()
            };
            let spread = keys.iter().fold(0, |all, key| all | (key.len() ^ longest));
            let of_length = if fixed.is_some() { 0 } else { usize::BITS - spread.leading_zeros() };
            let kept = (0..mask.covered()).map(differing).sum::<u32>();
            let all = (0..longest).map(differing).sum::<u32>() + of_length;
            assert_eq!(mask.is_lossless(), all <= 8 * word_bytes as u32);
            if mask.is_lossless() {
                assert_eq!((mask.covered(), mask.bits()), (longest, all));
                assert_eq!(mask.tail(), None);
                lossless += 1;
            } else {
                assert_eq!(mask.bits(), kept);
                let is_full = kept + differing(mask.covered()) > 8 * word_bytes as u32;
                assert!(is_full || mask.covered() == longest);
                let tail = mask.tail().expect("short keys have tails");
                assert_eq!(tail.bits() as u32, all - kept);
                assert_eq!(tail.bytes(), Tail::bytes_for(tail.bits()));
                assert_eq!(tail.parts().len(), (longest - mask.covered()).div_ceil(8));
                assert_eq!(tail.has_wide(), tail.parts().iter().any(|part| part.is_wide));
                assert_eq!(mask.clone().without_tail().tail(), None);
                tails += 1;
            }
            let is_gap = |query: &&&[u8]| matches!(place(&mask, query), Place::Gap { .. });
            gaps += queries.iter().filter(is_gap).count();
        }
    }
    assert!(gaps > 10_000 && tails > 100 && lossless > 500, "{gaps} {tails} {lossless}");
}

#[test]
fn digits_take_four_bits() {
    let mut keys: [&[u8]; 4] =
        [b"10-000-123-4567", b"34-999-999-9999", b"25-989-741-2988", b"11-111-111-1111"];
    let queries: [&[u8]; 9] = [
        b"",
        b"0",
        b"25-989-741-2988 ",
        b"25-989-741-298",
        b"25-98A-741-2988",
        b"25-98\x01-741-2988",
        b"25+989-741-2988",
        b"zz",
        b"10.000-123-4567",
    ];
    let mask = check(&mut keys, &queries, Some(15), 16);
    assert!(mask.is_lossless() && mask.bits() <= 48 && mask.word_bytes() == 8);
    check(&mut keys, &queries, None, 16);
}

#[test]
fn lengths_settle_ties() {
    let mut keys: [&[u8]; 9] = [b"", b"\0", b"\0\0", b"a", b"a\0", b"a\0\0", b"aa", b"aa\0", b"b"];
    let queries: [&[u8]; 8] =
        [b"\0\0\0", b"a\0\0\0", b"a\0b", b"aaa", b"\xFF\xFF\xFF\xFF", b"aa\0\0", b"A", b"a\x01"];
    for word_bytes in [4, 8, 16] {
        assert!(check(&mut keys, &queries, None, word_bytes).is_lossless());
    }
    // Truncated, equal words represent several keys.
    let mut long: Vec<Vec<u8>> = Vec::new();
    for i in 0..200u32 {
        long.push([&i.to_le_bytes()[..], &i.wrapping_mul(0x9E37_79B9).to_be_bytes()].concat());
        long.push(vec![i as u8; i as usize % 13]);
    }
    let mut keys: Vec<&[u8]> = long.iter().map(Vec::as_slice).collect();
    for word_bytes in [4, 8] {
        assert!(!check(&mut keys, &queries, None, word_bytes).is_lossless());
    }
    check(&mut [], &queries, None, 16);
    check(&mut [b"abc"], &queries, None, 16);
    check(&mut [b"abc", b"abc"], &queries, Some(3), 16);
}

#[test]
fn tails_are_rounded_where_it_costs_little() {
    let bytes =
        [(0, 0), (1, 1), (8, 1), (9, 2), (17, 3), (24, 3), (25, 4), (33, 5), (48, 6), (49, 8), (64, 8)];
    let more =
        [(96, 12), (97, 16), (128, 16), (200, 25), (201, 32), (408, 51), (409, 64), (512, 64), (824, 103)];
    for (bits, bytes) in bytes.into_iter().chain(more) {
        assert_eq!(Tail::bytes_for(bits), bytes, "{bits} bits");
    }
}

/// Fields of a mask at their worst values, one after the other.
#[test]
fn forged_masks_are_refused() {
    let mut survey = Survey::default();
    [&b"one key"[..], b"another", b"something else"].iter().for_each(|key| survey.add(key));
    let whole = survey.mask(None, 4).to_bytes();
    assert!(survey.mask(None, 4).tail().is_some());
    assert!(Mask::parse(&whole, 4, 0).is_ok());
    let put = |at: usize, bytes: &[u8]| {
        let mut forged = whole.clone();
        forged[at..at + bytes.len()].copy_from_slice(bytes);
        Mask::parse(&forged, 4, 0).is_ok()
    };
    // Longest key, covered bytes, kept bits of the length, flags, bytes of a tail, and what is reserved.
    assert!(!put(0, &65_536u32.to_le_bytes()) && !put(0, &15u32.to_le_bytes()));
    assert!(!put(4, &15u32.to_le_bytes()) && !put(8, &[2]) && !put(8, &[5]));
    assert!(!put(10, &[1]) && !put(10, &[2]) && !put(11, &[1]) && !put(11, &[2]));
    assert!(!put(12, &1025u16.to_le_bytes()) && !put(12, &[1, 0]));
    assert!((14..32).all(|at| !put(at, &[1])));
    let tail = u16::from_le_bytes([whole[12], whole[13]]);
    assert!(put(12, &(tail + 1).to_le_bytes()) && put(12, &1024u16.to_le_bytes()));
    assert!(Mask::parse(&whole, 2, 0).is_err());
    assert!(Mask::parse(&whole[..HEAD_BYTES - 1], 4, 0).is_err());
    // The longest key that there may be, in as many bytes of arrays.
    for (bytes, is_one) in [(65_535u32, true), (65_536, false)] {
        let mut forged = vec![0; 32 + 2 * bytes as usize];
        forged[..4].copy_from_slice(&bytes.to_le_bytes());
        forged[4..8].copy_from_slice(&bytes.to_le_bytes());
        forged[10] = 1;
        assert_eq!(Mask::parse(&forged, 8, 0).is_ok(), is_one, "{bytes}");
    }
    // Words that are just full, and one bit more.
    for (kept, is_one) in [(64, true), (65, false)] {
        let mut forged = vec![0; 32 + 2 * 9];
        forged[0] = 9;
        forged[4] = 9;
        forged[10] = 1;
        forged[11] = 1;
        (0..kept).for_each(|bit| forged[32 + 9 + bit / 8] |= 0x80 >> (bit % 8));
        assert_eq!(Mask::parse(&forged, 8, 0).is_ok(), is_one, "{kept}");
        // Such a word leaves no byte of a key out, and no bit to a tail.
        for (at, wrong) in [(0, 10), (12, 1)] {
            let mut forged = forged.clone();
            forged[at] = wrong;
            assert!(Mask::parse(&forged, 8, 0).is_err(), "{kept} {at}");
        }
    }
}

/// Keys whose tails would be too long are not whole in their words, which store no length.
#[test]
fn long_keys_have_no_tails() {
    let (zeros, ones) = (vec![0; 2000], vec![0xFF; 1999]);
    let mut survey = Survey::default();
    [&zeros, &ones].iter().for_each(|key| survey.add(key));
    let mask = survey.mask(None, 8);
    assert_eq!((mask.is_lossless(), mask.tail(), mask.covered(), mask.bits()), (false, None, 8, 64));
    let whole = mask.to_bytes();
    assert_eq!(Mask::parse(&whole, 8, 0), Ok(mask.clone()));
    let mut forged = whole.clone();
    forged[8] = 1;
    assert!(Mask::parse(&forged, 8, 0).is_err());
    assert_eq!((place(&mask, &zeros), place(&mask, &ones)), (Place::Word(0), Place::Word(u64::MAX.into())));
}
