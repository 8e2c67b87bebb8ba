//! Layout arithmetic against a slow recursive construction, and encodings against their rules.

use crate::checksum::{FileId, SUM_BLOCK_BYTES, binding, crc32, sum_blocks, sum_into};
use crate::key::{Bits, Key, Word};
use crate::layout::{CHILD_LINES_MAX, LineGeometry, SpineGeometry, align_up, section_start};
use crate::line::{self, Line};
use crate::meta::Meta;
use crate::section::{HUGE_PAGE_BYTES, LARGE_ALIGN, LARGE_SECTION_BYTES, LEVELS_MAX, Tag};
use crate::spine::{self, Border, Encoding};
use crate::superblock::{CRC_OFFSET, SUPERBLOCK_BYTES, Superblock, key_prefix, key_word};
use crate::types::{KeyType, ValueType};
use crate::{FormatError, version};
use siphasher::sip128::SipHasher24;

const ALL: [Encoding; 4] = [Encoding::Delta8, Encoding::Delta16, Encoding::Delta32, Encoding::Raw];

/// A small deterministic generator (an xorshift with a multiplicative output).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// Returns the lines of each level, bottom first, by grouping children until one is left.
fn levels_recursively(children: Vec<usize>, fanouts: &[usize]) -> Vec<usize> {
    if children.len() <= 1 {
        return Vec::new();
    }
    let parents: Vec<usize> = children.chunks(fanouts[0]).map(<[usize]>::len).collect();
    let mut all = vec![parents.len()];
    all.extend(levels_recursively(parents, &fanouts[1..]));
    all
}

#[test]
fn spine_geometry_is_that_of_grouping() {
    for key_bytes in [4, 8] {
        for encoding in ALL {
            let fanout = encoding.separators(key_bytes) + 1;
            for lines in (0..600).chain([fanout * fanout - 1, fanout * fanout, fanout * fanout + 1, 100_003])
            {
                let expected = levels_recursively(vec![0; lines], &[fanout; LEVELS_MAX]);
                let encodings = vec![encoding; expected.len()];
                let spine =
                    SpineGeometry::new(lines as u64, 1, key_bytes, &encodings).expect("ends in one line");
                let got: Vec<usize> = spine.levels.iter().map(|level| level.lines as usize).collect();
                assert_eq!(got, expected, "{lines} lines, fanout {fanout}");
                let mut offset = 0;
                for level in spine.levels.iter().rev() {
                    assert_eq!(level.offset, offset, "root first, each level on 128 bytes");
                    offset += (level.lines * 64).next_multiple_of(128);
                }
                assert_eq!(spine.bytes, offset);
                assert_eq!(
                    SpineGeometry::new(lines as u64, 1, key_bytes, &vec![encoding; expected.len() + 1]),
                    None
                );
                if !expected.is_empty() {
                    assert_eq!(SpineGeometry::new(lines as u64, 1, key_bytes, &encodings[1..]), None);
                }
            }
        }
    }
}

#[test]
fn a_sparse_spine_is_that_of_fewer_lines() {
    for child_lines in [1u64, 2, 16, CHILD_LINES_MAX] {
        for lines in (0..600u64).chain([100_003]) {
            let children = lines.div_ceil(child_lines);
            let encodings = |count: usize| vec![Encoding::Delta16; count];
            let all = (0..LEVELS_MAX).map(|count| SpineGeometry::new(children, 1, 8, &encodings(count)));
            let dense = all.flatten().next().expect("some number of levels ends in one line");
            let sparse = SpineGeometry::new(lines, child_lines, 8, &encodings(dense.levels.len()));
            let sparse = sparse.expect("as many levels");
            assert_eq!(
                (&sparse.levels, sparse.bytes),
                (&dense.levels, dense.bytes),
                "{child_lines}: {lines}"
            );
            assert_eq!(sparse.child_lines, child_lines);
        }
    }
    for no_group in [0, 3, 17, CHILD_LINES_MAX * 2, u64::MAX] {
        assert_eq!(SpineGeometry::new(1, no_group, 8, &[]), None, "{no_group}");
    }
}

#[test]
fn arithmetic_beyond_32_bits() {
    let geometry = LineGeometry::new(8, 8);
    let tuples = (1 << 33) + 5;
    assert_eq!(geometry.lines(tuples), (1 << 31) + 2);
    assert_eq!(geometry.bytes(tuples), Some(((1 << 31) + 2) * 64));
    assert_eq!(geometry.place((1 << 33) + 3), (1 << 31, 3));
    assert_eq!(geometry.tuples_in_line(1 << 31, tuples), 4);
    assert_eq!(geometry.tuples_in_line((1 << 31) + 1, tuples), 1);
    assert_eq!(geometry.tuples_in_line((1 << 31) + 2, tuples), 0);
    assert_eq!(geometry.bytes(u64::MAX), None);
    for tuples in [(1u64 << 32) - 1, 1 << 32, (1 << 32) + 1, 1 << 40] {
        let lines = geometry.lines(tuples);
        let mut encodings = vec![Encoding::Delta16];
        let mut left = lines.div_ceil(28);
        while left > 1 {
            encodings.push(Encoding::Delta32);
            left = left.div_ceil(14);
        }
        let spine = SpineGeometry::new(lines, 1, 8, &encodings).expect("fits");
        assert_eq!(spine.levels[0].children, lines);
        assert_eq!(spine.levels.last().map(|level| level.lines), Some(1));
    }
    assert_eq!(SpineGeometry::new(u64::MAX, 1, 8, &[Encoding::Delta16]), None);
    assert_eq!(section_start(Tag::FAST, 8193, LARGE_SECTION_BYTES - 1), Some(12288));
    assert_eq!(section_start(Tag::FAST, 8193, LARGE_SECTION_BYTES), Some(HUGE_PAGE_BYTES));
    assert_eq!(section_start(Tag::LINE, 8193, LARGE_SECTION_BYTES - 1), Some(12288));
    assert_eq!(section_start(Tag::LINE, 8193, LARGE_SECTION_BYTES), Some(LARGE_ALIGN));
    for sums in [Tag::SUMS, Tag::SUM2] {
        assert_eq!(section_start(sums, 8193, LARGE_SECTION_BYTES), Some(12288));
    }
    assert_eq!(section_start(Tag::LINE, u64::MAX, 1), None);
    assert_eq!(align_up(u64::MAX - 100, 128), None);
}

fn check_key_order<K: Key>(mut keys: Vec<K>) {
    keys.sort_by(|a, b| a.partial_cmp(b).expect("no NaN"));
    assert!(keys.windows(2).all(|pair| pair[0].encode() <= pair[1].encode()), "{keys:?}");
    assert!(keys.iter().all(|&key| K::decode(key.encode()) == key));
    for key in keys {
        let word = key.encode().to_u128();
        assert_eq!(key_word(&key_prefix(word, K::Word::BYTES), K::Word::BYTES), word);
    }
}

#[test]
fn encodings_keep_the_order() {
    check_key_order(vec![0u32, 1, u32::MAX, 1 << 31, (1 << 31) - 1]);
    check_key_order(vec![0u64, 1, u64::MAX, 1 << 63, (1 << 63) - 1]);
    check_key_order(vec![0u128, 1, u128::MAX, 1 << 127, 1 << 64, (1 << 64) - 1]);
    check_key_order(vec![0.0, -0.0, 1.0, -1.0, f64::MIN, f64::MAX, f64::INFINITY, -f64::INFINITY, 5e-324]);
    check_key_order(vec![0, 1, -1, i32::MIN, i32::MAX]);
    check_key_order(vec![0, 1, -1, i64::MIN, i64::MAX]);
}

#[test]
fn words_that_are_no_keys_are_those_of_nan_and_minus_zero() {
    let words = [0, 1, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, 1 << 63, u128::from(u64::MAX)];
    for key_type in KeyType::NUMERIC.iter().copied().chain([KeyType::Fixed(8), KeyType::Bytes, KeyType::Utf8])
    {
        let has_all = words.iter().all(|&word| key_type.has_word(word));
        assert_eq!(has_all, key_type.has_all_words(), "{key_type}");
        assert_eq!(key_type.minus_zero().is_some(), key_type == KeyType::F64, "{key_type}");
        assert!(key_type.minus_zero().is_none_or(|word| !key_type.has_word(word.into())), "{key_type}");
    }
    let minus_zero = (-0.0_f64).to_bits() ^ u64::MAX;
    assert_eq!(KeyType::F64.minus_zero(), Some(minus_zero));
    for (float, is_key) in [(0.0, true), (f64::NEG_INFINITY, true), (f64::INFINITY, true), (f64::NAN, false)]
    {
        assert_eq!(KeyType::F64.has_word(float.encode().into()), is_key, "{float}");
    }
    assert!(!KeyType::F64.has_word(1 << 64));
}

fn check_lines<W: Word, B: Bits>() {
    let geometry = line::geometry::<W, B>();
    let n = geometry.tuples_per_line();
    assert!(n * (W::BYTES + B::BYTES) <= 64 && (n + 1) * (W::BYTES + B::BYTES) > 64);
    let mut random = Random(7);
    for used in 0..=n {
        let mut tuples: Vec<(W, B)> =
            (0..used).map(|_| (W::from_u64(random.next()), B::from_u64(random.next()))).collect();
        tuples.sort_by_key(|tuple| tuple.0);
        let mut line = [0x55; 64];
        line::encode(tuples.iter().copied(), &mut line);
        for (slot, &(key, value)) in tuples.iter().enumerate() {
            assert_eq!(line::key::<W>(&line, slot), key);
            assert_eq!(line::value::<W, B>(&line, slot), value);
            let below = tuples.iter().filter(|tuple| tuple.0 < key).count();
            assert_eq!(line::keys_below(&line, n, key), below);
        }
        assert!((used..n).all(|slot| line::key::<W>(&line, slot) == W::MAX));
        assert!((used..n).all(|slot| line::value::<W, B>(&line, slot) == B::default()));
        assert!(line[n * W::BYTES..geometry.values_at()].iter().all(|&byte| byte == 0));
        assert_eq!(
            line::keys_below(&line, n, W::MAX),
            tuples.iter().filter(|tuple| tuple.0 < W::MAX).count()
        );
    }
}

#[test]
fn lines_hold_what_was_put() {
    check_lines::<u32, ()>();
    check_lines::<u32, u32>();
    check_lines::<u32, u64>();
    check_lines::<u64, ()>();
    check_lines::<u64, u32>();
    check_lines::<u64, u64>();
    check_lines::<u128, ()>();
    check_lines::<u128, u32>();
    check_lines::<u128, u64>();
}

/// Returns the borders between children, given the first and the last key of each.
fn borders<W: Word>(children: &[(W, W)]) -> Vec<Border<W>> {
    children.windows(2).map(|pair| Border { last: pair[0].1, first: pair[1].0, second: pair[1].0 }).collect()
}

fn check_spine_lines<W: Word, T: Into<u128>>(make: impl Fn(&mut Random) -> T) {
    let mut random = Random(11);
    for _ in 0..400 {
        for encoding in ALL {
            let slots = encoding.separators(W::BYTES);
            let count = 1 + (random.next() as usize) % (slots + 1);
            let mut words: Vec<W> = (0..count * 2).map(|_| W::from_u128(make(&mut random).into())).collect();
            words.sort_unstable();
            let children: Vec<(W, W)> = words.chunks(2).map(|pair| (pair[0], pair[1])).collect();
            let borders = borders(&children);
            let mut line: Line = [0x55; 64];
            let cost = spine::encode(encoding, &borders, &mut line);
            let flagged = spine::is_inexact(encoding, &line);
            assert_eq!(cost.flagged, u64::from(flagged));
            let queries = words.iter().flat_map(|&word| {
                let word = word.to_u128();
                [word, word.wrapping_add(1), word.wrapping_sub(1)].map(W::from_u128)
            });
            for query in queries.chain([W::from_u64(0), W::MAX]) {
                // The correct child of a lower bound is the first one whose last key is at least the query.
                let exact = children[..children.len() - 1].iter().filter(|child| child.1 < query).count();
                let got = spine::child(encoding, &line, query);
                // Between the last key of a child and the first key of the next, either child is correct.
                let right = got == exact || (exact == got + 1 && query <= children[exact].0);
                assert!(
                    right || (flagged && got < exact),
                    "{encoding:?} {children:?} {query:?}: {got}, {exact}"
                );
                if flagged && children.iter().any(|child| child.0 == query || child.1 == query) {
                    assert!(got <= exact);
                }
            }
        }
    }
}

#[test]
fn a_spine_line_leads_to_the_right_child() {
    check_spine_lines::<u32, _>(Random::next);
    check_spine_lines::<u64, _>(Random::next);
    check_spine_lines::<u64, _>(|random| random.next() >> 40);
    check_spine_lines::<u32, _>(|random| random.next() % 40);
    check_spine_lines::<u64, _>(|random| u64::MAX - random.next() % 40);
    check_spine_lines::<u32, _>(|random| [0, u64::from(u32::MAX)][random.next() as usize % 2]);
    check_spine_lines::<u128, _>(|random| u128::from(random.next()) << 64 | u128::from(random.next()));
    check_spine_lines::<u128, _>(|random| u128::MAX - u128::from(random.next()));
    check_spine_lines::<u128, _>(|random| random.next() % 40);
    check_spine_lines::<u128, _>(|random| {
        u128::from(random.next() % 3) << 100 | u128::from(random.next() % 6)
    });
    // Groups of neighbours with huge gaps: inexact on purpose.
    check_spine_lines::<u64, _>(|random| (random.next() % 3) * (u64::MAX / 4) + random.next() % 6);
    check_spine_lines::<u32, _>(|random| (random.next() % 3) * (u32::MAX as u64 / 4) + random.next() % 6);
}

#[test]
fn narrow_borders_get_a_phase_of_their_own() {
    // Neighbours 1 apart in a range that needs cells of 8: base = left would leave one inexact.
    let borders: Vec<Border<u64>> = [(0, 4), (100_001, 100_006), (400_000, 400_008)]
        .map(|(last, first)| (last + (1 << 40), first + (1 << 40)))
        .map(|(last, first)| Border { last, first, second: first })
        .to_vec();
    let mut line = [0; 64];
    assert_eq!(spine::encode(Encoding::Delta16, &borders, &mut line).inexact, 0);
    let (base, shift, flags) = spine::delta_header::<u64>(&line);
    assert_eq!((shift, flags), (3, 0));
    assert!(base < 1 << 40, "the first phase would not do");
}

#[test]
fn sums_are_bound_to_their_place() {
    let bytes = vec![7u8; SUM_BLOCK_BYTES * 2 + 4096];
    let mut sums = Vec::new();
    sum_into(&bytes, &mut sums);
    assert_eq!(sums.len() as u64, sum_blocks(bytes.len() as u64));
    assert_eq!(sums[0], sums[1], "unbound sums of equal blocks are equal");
    let id = [1; 16];
    let bound = [binding(&id, Tag::LINE, 0), binding(&id, Tag::LINE, 1), binding(&id, Tag::SPINE, 0)];
    assert!(bound[0] != bound[1] && bound[0] != bound[2] && bound[0] != binding(&[2; 16], Tag::LINE, 0));
    assert_eq!(crc32(b"123456789"), 0xCBF4_3926, "the CRC of IEEE 802.3");
}

#[test]
fn a_file_id_is_one_hash_of_types_count_and_sections() {
    let sums: Vec<u32> = (0..3000).map(|sum: u32| sum.wrapping_mul(0x9E37_79B9)).collect();
    let mut id = FileId::new(3, 5, true, 7 << 40);
    id.section(b"first", sums.iter().copied());
    id.section(b"second", []);
    let mut bytes = b"pleach file id 0\x03\0\x05\0\x01\0\0\0\0\0\0\0\0\x07\0\0first".to_vec();
    bytes.extend(sums.iter().flat_map(|sum| sum.to_le_bytes()));
    bytes.extend(b"second");
    assert_eq!(id.finish(), SipHasher24::new().hash(&bytes).as_bytes());
}

#[test]
fn every_bit_of_a_superblock_counts() {
    let mut block = Superblock::new(KeyType::U64, ValueType::F32);
    block.tuples = 17.into();
    let good = block.seal();
    assert!(Superblock::decode(&good, 0).is_ok());
    for bit in 0..SUPERBLOCK_BYTES * 8 {
        let mut bad = good;
        bad[bit / 8] ^= 1 << (bit % 8);
        match Superblock::decode(&bad, 0) {
            Err(FormatError::Foreign) => assert!(bit < 16 * 8, "bit {bit}"),
            Err(FormatError::Checksum { .. }) => assert!(bit >= 16 * 8, "bit {bit}"),
            other => panic!("bit {bit}: {other:?}"),
        }
    }
    for length in 0..SUPERBLOCK_BYTES {
        assert!(matches!(Superblock::decode(&good[..length], 0), Err(FormatError::Truncated { .. })));
    }
    let mut newer = Superblock::new(KeyType::U64, ValueType::F32);
    newer.version_minor = (version::VERSION_MINOR + 1).into();
    assert!(Superblock::decode(&newer.seal(), 0).is_ok(), "a later minor version can be read");
    for (major, advice) in [(version::VERSION_MAJOR + 1, "use a newer program"), (0, "build the file again")]
    {
        newer.version_major = major.into();
        let refused = Superblock::decode(&newer.seal(), 0).expect_err("another major version");
        assert!(
            matches!(refused, FormatError::Version { .. }) && refused.to_string().ends_with(advice),
            "{refused}"
        );
    }
    newer.version_minor = version::UPGRADED.1.into();
    let refused = Superblock::decode(&newer.seal(), 0).expect_err("0.13").to_string();
    assert_eq!(refused, "format version 0.13, this program reads 1.n: run `pleach upgrade` on it");
    let mut feature = Superblock::new(KeyType::U64, ValueType::F32);
    feature.reader_features = 4.into();
    assert_eq!(Superblock::decode(&feature.seal(), 0), Err(FormatError::Feature { unknown: 4 }));
    assert_eq!(CRC_OFFSET, 4092);
}

#[test]
fn meta_comes_back() {
    let meta = Meta {
        key_name: "o_orderkey".into(),
        value_name: "\u{fc}mlaut".into(),
        key_logical: String::new(),
        value_logical: "Timestamp(Microsecond, None)".into(),
        layout: "lines,spine,packed".into(),
        interval: String::new(),
        approximate: "500".into(),
    };
    let bytes = meta.encode();
    assert_eq!(Meta::decode(&bytes), meta);
    assert_eq!(meta.elements(), 5);
    assert!(bytes.len().is_multiple_of(8));
    for cut in 0..bytes.len() {
        let _ = Meta::decode(&bytes[..cut]);
    }
    let _ = Meta::decode(&[0xFF; 64]);
}
