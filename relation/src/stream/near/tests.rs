//! As-of and band joins against nested loops, over all key types, with pieces so small that windows are cut
//! everywhere.

use super::*;
use crate::expr::Point;
use crate::stream::Chunk;
use crate::stream::columns::key_at;
use pleach::{Index, Key, KeyType, ValueType, Word};
use pleach_builder::{BuildOptions, Silent, Strings, build_bytes, build_strings_bytes};

const RIGHT: u64 = 1_000_000;
const HOWS: [How; 4] = [How::Inner, How::Left, How::Semi, How::Anti];

/// A distance as the oracle computes it.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Gap {
    Whole(u128),
    Float(f64),
}

fn number(key_type: KeyType, word: u128) -> i128 {
    match key_type {
        KeyType::I32 => i32::decode(word as u32).into(),
        KeyType::I64 => i64::decode(word as u64).into(),
        _ => word as i128,
    }
}

fn gap(key_type: KeyType, a: u128, b: u128) -> Gap {
    match key_type {
        KeyType::F64 => {
            let (a, b) = (f64::decode(a as u64), f64::decode(b as u64));
            Gap::Float(if a == b { 0.0 } else { (a - b).abs() })
        }
        KeyType::U128 => Gap::Whole(a.abs_diff(b)),
        _ => Gap::Whole(number(key_type, a).abs_diff(number(key_type, b))),
    }
}

fn limit(key_type: KeyType, text: &str) -> Gap {
    match key_type {
        KeyType::F64 => Gap::Float(text.parse().unwrap()),
        _ => Gap::Whole(text.parse().unwrap()),
    }
}

/// The partners of a left key, by reading all right keys.
fn partners_of(rule: Rule, most: Option<Gap>, key_type: KeyType, key: u128, right: &[u128]) -> Vec<usize> {
    let is_near = |&j: &usize| most.is_none_or(|most| gap(key_type, key, right[j]) <= most);
    let below = (0..right.len()).rfind(|&j| right[j] <= key);
    let above = (0..right.len()).find(|&j| right[j] >= key);
    let partner = match rule {
        Rule::Band => return (0..right.len()).filter(is_near).collect(),
        Rule::AsOf(AsOf::Backward) => below,
        Rule::AsOf(AsOf::Forward) => above,
        Rule::AsOf(AsOf::Nearest) => match (below, above) {
            (Some(i), Some(j)) => {
                let is_above = gap(key_type, right[j], key) < gap(key_type, key, right[i]);
                Some(if is_above { j } else { i })
            }
            _ => below.or(above),
        },
    };
    partner.filter(is_near).into_iter().collect()
}

type Answers = Vec<(usize, Option<usize>)>;

fn oracle(how: How, partners: &[Vec<usize>]) -> Answers {
    let mut all = Vec::new();
    for (i, partners) in partners.iter().enumerate() {
        match how {
            How::Semi if !partners.is_empty() => all.push((i, None)),
            How::Anti | How::Left if partners.is_empty() => all.push((i, None)),
            How::Semi | How::Anti => {}
            _ => all.extend(partners.iter().map(|&j| (i, Some(j)))),
        }
    }
    all
}

fn column(key_type: KeyType, words: &[u128]) -> Column {
    match key_type.bytes() {
        4 => Column::U32(words.iter().map(|&word| word as u32).collect()),
        8 => Column::U64(words.iter().map(|&word| word as u64).collect()),
        _ => Column::U128(words.to_vec()),
    }
}

fn values(from: u64, count: usize) -> Column {
    Column::U64((from..from + count as u64).collect())
}

fn run<'a>(
    rule: Rule,
    most: Option<&str>,
    how: How,
    (left, right): (Relation<'a>, Relation<'a>),
    piece_tuples: usize,
) -> Answer<'a> {
    let options = StreamOptions { piece_tuples, ..StreamOptions::default() };
    let most = most.map(Distance::from);
    match rule {
        Rule::AsOf(direction) => asof(direction, most.as_ref(), how, left, right, options).unwrap(),
        Rule::Band => band(&most.unwrap(), how, left, right, options).unwrap(),
    }
}

fn check(answer: Answer<'_>, how: How, wanted: &Answers, keys: [&dyn Fn(usize) -> Point; 3], at: &str) {
    let found = answer.collect().unwrap();
    let [left, right, zero] = keys;
    let lefts: Vec<u64> = wanted.iter().map(|pair| 1 + pair.0 as u64).collect();
    assert_eq!(found.values, Column::U64(lefts), "left values of {at}");
    let is_wide = !matches!(how, How::Semi | How::Anti);
    let rights = wanted.iter().map(|pair| pair.1.map_or(0, |j| RIGHT + j as u64)).collect();
    assert_eq!(found.right, if is_wide { Column::U64(rights) } else { Column::None }, "right values of {at}");
    for (row, &(i, j)) in wanted.iter().enumerate() {
        assert_eq!(key_at(&found.keys, row), left(i), "key {row} of {at}");
        if is_wide {
            assert_eq!(key_at(&found.right_keys, row), j.map_or_else(|| zero(0), right), "{row} of {at}");
        }
    }
    assert_eq!(found.right_keys.len(), if is_wide { wanted.len() } else { 0 }, "{at}");
    let sides = wanted.iter().map(|pair| if pair.1.is_some() { 3 } else { 1 });
    assert_eq!(found.sides, if how == How::Left { sides.collect() } else { Vec::new() }, "sides of {at}");
}

/// Numbers that look random.
fn mix(seed: u64) -> u64 {
    let word = (seed ^ seed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) ^ word >> 31
}

/// Ascending words of a type.
fn words(key_type: KeyType, kind: usize, count: usize, seed: u64) -> Vec<u128> {
    let (zero, ends): (u128, [u128; 2]) = match key_type {
        KeyType::F64 => {
            let word = |float: f64| float.encode().to_u128();
            (0, [word(f64::NEG_INFINITY), word(f64::INFINITY)])
        }
        _ => (1 << (8 * key_type.bytes() - 1), [0, u128::MAX >> (128 - 8 * key_type.bytes())]),
    };
    let small = |number: u64| match key_type {
        KeyType::F64 => (number as f64 * 0.75 - 30.5).encode().to_u128(),
        _ => zero - 40 + u128::from(number),
    };
    let mut words: Vec<u128> = (0..count as u64)
        .map(|at| {
            let random = mix(seed * 1_000_003 + at + 1);
            match kind {
                // Many duplicates; few; far apart; one key; the ends of the type among others.
                0 => small(random % (1 + count as u64 / 4)),
                1 => small(random % (8 * count as u64)),
                2 => small(random % 9 * 1000 + random / 9 % 3),
                3 => small(7),
                _ => match random % 4 {
                    0 => ends[(random / 4 % 2) as usize],
                    _ => small(random / 4 % 60),
                },
            }
        })
        .collect();
    words.sort_unstable();
    words
}

#[test]
fn joins_by_distance_answer_what_the_rules_say() {
    let types = [KeyType::U32, KeyType::U64, KeyType::I32, KeyType::I64, KeyType::U128, KeyType::F64];
    let rules = AsOf::ALL.iter().map(|&asof| Rule::AsOf(asof)).chain([Rule::Band]).collect::<Vec<_>>();
    for (number, (m, n)) in [(0, 0), (0, 3), (3, 0), (1, 1), (2, 5), (70, 64), (1, 300), (300, 2), (150, 130)]
        .into_iter()
        .enumerate()
    {
        for (at, &key_type) in types.iter().enumerate() {
            for kind in 0..5 {
                let seed = (number * 100 + at * 10 + kind) as u64;
                let (a, b) = (words(key_type, kind, m, seed), words(key_type, (kind + at) % 5, n, seed + 7));
                let (left_keys, right_keys) = (column(key_type, &a), column(key_type, &b));
                let (left_values, right_values) = (values(1, m), values(RIGHT, n));
                let types = (key_type, ValueType::U64);
                let left = Relation::from_columns("a", types, &left_keys, &left_values).unwrap();
                let right = Relation::from_columns("b", types, &right_keys, &right_values).unwrap();
                let most = match key_type {
                    KeyType::F64 => ["0", "1.5", "1e308", "inf"],
                    _ => ["0", "2", "2000", "18446744073709551615"],
                };
                for &rule in &rules {
                    let limits = most.into_iter().map(Some).chain([None]);
                    for text in limits.filter(|text| text.is_some() || rule != Rule::Band) {
                        let most = text.map(|text| limit(key_type, text));
                        let partners: Vec<Vec<usize>> =
                            a.iter().map(|&key| partners_of(rule, most, key_type, key, &b)).collect();
                        for how in HOWS {
                            let wanted = oracle(how, &partners);
                            let zero = match key_type {
                                KeyType::I32 => 1 << 31,
                                KeyType::I64 | KeyType::F64 => 1 << 63,
                                _ => 0,
                            };
                            for piece_tuples in [[1, 64], [7, 4096]][(kind + number) % 2] {
                                let at = format!(
                                    "{how} {rule:?} {text:?} of {key_type}, kind {kind}, {m} and {n}, \
                                     pieces of {piece_tuples}"
                                );
                                let run = || run(rule, text, how, (left, right), piece_tuples);
                                let keys: [&dyn Fn(usize) -> Point; 3] =
                                    [&|i| Point::Word(a[i]), &|j| Point::Word(b[j]), &|_| Point::Word(zero)];
                                check(run(), how, &wanted, keys, &at);
                                assert_eq!(run().count().unwrap(), wanted.len() as u64, "count of {at}");
                            }
                        }
                    }
                }
            }
        }
    }
}

fn file<K: Key>(key_type: KeyType, words: &[u128], from: u64) -> Index {
    assert_eq!(K::TYPE, key_type);
    let tuples: Vec<(K, u64)> =
        words.iter().zip(from..).map(|(&word, value)| (K::decode(K::Word::from_u128(word)), value)).collect();
    Index::from_bytes(build_bytes(&tuples, &BuildOptions::default()).unwrap()).unwrap()
}

#[test]
fn files_of_any_layout_answer_as_columns_do() {
    type File = fn(KeyType, &[u128], u64) -> Index;
    let types: [(KeyType, File); 4] = [
        (KeyType::U32, file::<u32>),
        (KeyType::I64, file::<i64>),
        (KeyType::U128, file::<u128>),
        (KeyType::F64, file::<f64>),
    ];
    for (key_type, file) in types {
        let (a, b) = (words(key_type, 0, 2500, 1), words(key_type, 1, 2000, 2));
        let (left, right) = (file(key_type, &a, 1), file(key_type, &b, RIGHT));
        let inputs = (Relation::from_index(&left), Relation::from_index(&right));
        for rule in [Rule::AsOf(AsOf::Nearest), Rule::Band] {
            for how in HOWS {
                let most = Some(limit(key_type, "3"));
                let partners: Vec<Vec<usize>> =
                    a.iter().map(|&key| partners_of(rule, most, key_type, key, &b)).collect();
                let wanted = oracle(how, &partners);
                let zero = if matches!(key_type, KeyType::I64 | KeyType::F64) { 1 << 63 } else { 0 };
                for piece_tuples in [50, 1000, 1 << 17] {
                    let at = format!("{how} {rule:?} of {key_type}, pieces of {piece_tuples}");
                    let keys: [&dyn Fn(usize) -> Point; 3] =
                        [&|i| Point::Word(a[i]), &|j| Point::Word(b[j]), &|_| Point::Word(zero)];
                    check(run(rule, Some("3"), how, inputs, piece_tuples), how, &wanted, keys, &at);
                }
            }
        }
    }
}

fn texts(kind: KeyType, codes: &[u64], from: u64) -> Index {
    let tuples: Vec<(Vec<u8>, u64)> =
        codes.iter().zip(from..).map(|(code, value)| (format!("{code:04}x").into_bytes(), value)).collect();
    Index::from_bytes(build_strings_bytes(kind, &tuples, &BuildOptions::default()).unwrap()).unwrap()
}

#[test]
fn byte_strings_join_by_order() {
    let (mut a, mut b): (Vec<u64>, Vec<u64>) =
        ((0..200).map(|at| mix(at) % 300).collect(), (0..150).map(|at| mix(at + 999) % 300).collect());
    a.sort_unstable();
    b.sort_unstable();
    let words = |codes: &[u64]| codes.iter().map(|&code| code.into()).collect::<Vec<u128>>();
    let (numbers, others) = (words(&a), words(&b));
    for kind in [KeyType::Utf8, KeyType::Bytes, KeyType::Fixed(5)] {
        let (left, right) = (texts(kind, &a, 1), texts(kind, &b, RIGHT));
        let inputs = (Relation::from_index(&left), Relation::from_index(&right));
        for direction in [AsOf::Backward, AsOf::Forward] {
            let rule = Rule::AsOf(direction);
            let partners: Vec<Vec<usize>> =
                numbers.iter().map(|&key| partners_of(rule, None, KeyType::U64, key, &others)).collect();
            for how in HOWS {
                for piece_tuples in [1, 30, 4096] {
                    let at = format!("{how} {direction} of {kind}, pieces of {piece_tuples}");
                    let key =
                        |codes: &[u64], i: usize| Point::Bytes(format!("{:04}x", codes[i]).into_bytes());
                    let keys: [&dyn Fn(usize) -> Point; 3] =
                        [&|i| key(&a, i), &|j| key(&b, j), &|_| Point::Bytes(vec![0; kind.bytes()])];
                    check(
                        run(rule, None, how, inputs, piece_tuples),
                        how,
                        &oracle(how, &partners),
                        keys,
                        &at,
                    );
                }
            }
        }
        let options = StreamOptions::default();
        let refused = asof(AsOf::Nearest, None, How::Inner, inputs.0, inputs.1, options);
        let text = refused.map(|_| ()).unwrap_err().to_string();
        assert!(text.starts_with(&format!("no distance between {kind} keys: bytes in memory")), "{text}");
        let one = Distance::from("1");
        assert!(asof(AsOf::Backward, Some(&one), How::Inner, inputs.0, inputs.1, options).is_err());
        assert!(band(&one, How::Inner, inputs.0, inputs.1, options).is_err());
    }
}

#[test]
fn few_left_tuples_search_many_right_ones() {
    let a: Vec<u32> = (0..300).map(|at| at * 10_007 + 5).collect();
    let b: Vec<u32> = (0..3_000_000).collect();
    let (left_keys, right_keys) = (Column::U32(a.clone()), Column::U32(b));
    let types = (KeyType::U32, ValueType::None);
    let left = Relation::from_columns("a", types, &left_keys, &Column::None).unwrap();
    let right = Relation::from_columns("b", types, &right_keys, &Column::None).unwrap();
    for piece_tuples in [100, 1 << 14] {
        let options = StreamOptions { piece_tuples, ..StreamOptions::default() };
        let found = asof(AsOf::Nearest, None, How::Left, left, right, options).unwrap().collect().unwrap();
        let wanted: Vec<u32> = a.iter().map(|&key| key.min(2_999_999)).collect();
        assert_eq!(found.right_keys, Column::U32(wanted));
        let found = band(&1_u64.into(), How::Inner, left, right, options).unwrap().collect().unwrap();
        let near = |key: u32| (key - 1..=key + 1).filter(|&key| key < 3_000_000);
        assert_eq!(found.right_keys, Column::U32(a.iter().flat_map(|&key| near(key)).collect()));
    }
    // All pairs, in pieces.
    let mut answer = band(&u64::MAX.into(), How::Left, left, right, StreamOptions::default()).unwrap();
    let mut tuples = 0;
    for _ in 0..20 {
        let chunk = answer.next_chunk().unwrap().unwrap();
        assert!(chunk.len() <= 1 << 17, "{}", chunk.len());
        tuples += chunk.len() as u64;
    }
    assert_eq!(answer.count().unwrap() + tuples, 900_000_000);
}

#[test]
fn answers_do_not_depend_on_threads() {
    let (a, b) = (words(KeyType::I64, 0, 3000, 5), words(KeyType::I64, 1, 3000, 6));
    let (left_keys, right_keys) = (column(KeyType::I64, &a), column(KeyType::I64, &b));
    let types = (KeyType::I64, ValueType::None);
    let left = Relation::from_columns("a", types, &left_keys, &Column::None).unwrap();
    let right = Relation::from_columns("b", types, &right_keys, &Column::None).unwrap();
    for rule in [Rule::AsOf(AsOf::Nearest), Rule::Band] {
        let made = [1, 2, 7].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let answer = run(rule, Some("9"), How::Left, (left, right), 100);
                answer.to_bytes(&BuildOptions::default(), &Silent).unwrap()
            })
        });
        assert!(made[0] == made[1] && made[1] == made[2]);
    }
}

#[test]
fn answers_that_are_too_large_are_refused() {
    let keys = Column::U32(vec![7; 1 << 12]);
    let many = Relation::from_columns("many", (KeyType::U32, ValueType::None), &keys, &Column::None).unwrap();
    let options = StreamOptions { piece_tuples: 1000, ..StreamOptions::default() };
    let (inputs, reach) =
        checked(How::Inner, Rule::Band, Some(&0_u64.into()), (many, many), &options).unwrap();
    let sized = |limit| check_size(&inputs, How::Inner, reach, &options, limit);
    assert!(sized(1 << 24).is_ok());
    let text = sized((1 << 24) - 1).unwrap_err().to_string();
    assert!(text.starts_with("too large: the join has 16777216 tuples, at most 16777215 fit"), "{text}");
    for how in [How::Right, How::Full] {
        let text = band(&0_u64.into(), how, many, many, options).map(|_| ()).unwrap_err().to_string();
        assert!(text.starts_with(&format!("cannot make a {how} band join: ")), "{text}");
        assert!(asof(AsOf::Nearest, None, how, many, many, options).is_err());
    }
    let text = band(&"x".into(), How::Inner, many, many, options).map(|_| ()).unwrap_err().to_string();
    assert!(text.starts_with("invalid distance 'x': many holds u32 keys: use"), "{text}");
}

#[test]
fn one_side_is_kept_and_strings_are_bounded() {
    let (a, b) = (Column::U32((0..50).collect()), Column::U32((0..50).map(|at| at * 2).collect()));
    let mut strings = Strings::default();
    (0..50).for_each(|at| strings.push(&vec![b'a' + at % 26; 500]));
    let strings = Column::Bytes(strings);
    let types = (KeyType::U32, ValueType::Bytes);
    let left = Relation::from_columns("a", types, &a, &strings).unwrap();
    let right = Relation::from_columns("b", types, &b, &strings).unwrap();
    let whole = StreamOptions::default();
    for rule in [Rule::AsOf(AsOf::Forward), Rule::Band] {
        let start = |options| match rule {
            Rule::AsOf(direction) => asof(direction, None, How::Left, left, right, options).unwrap(),
            Rule::Band => band(&20_u64.into(), How::Left, left, right, options).unwrap(),
        };
        let all = start(whole).collect().unwrap();
        for piece_tuples in [5, 1 << 17] {
            let options = StreamOptions { piece_tuples, piece_bytes: 2000, ..whole };
            let mut found = Chunk::default();
            start(options)
                .for_each_chunk(|chunk| {
                    assert!(chunk.len() <= 2, "two values of 500 bytes a tuple");
                    match found.len() {
                        0 => found = chunk,
                        _ => {
                            append(&mut found.keys, &chunk.keys);
                            append(&mut found.values, &chunk.values);
                            append(&mut found.right, &chunk.right);
                            append(&mut found.right_keys, &chunk.right_keys);
                            found.sides.extend(chunk.sides);
                        }
                    }
                    Ok(())
                })
                .unwrap();
            assert!(found == all);
            let kept = start(options).keep(Kept::Right);
            assert!(!kept.schema().has_right_keys && kept.schema().right.is_none());
            let kept = kept.collect().unwrap();
            assert!(
                kept.values == all.right && kept.right == Column::None && kept.right_keys == Column::None
            );
            assert!(start(options).keep(Kept::Left).collect().unwrap().values == all.values);
        }
    }
}

/// A file whose keys are damaged answers with an error, or, where nothing was read of the block, as before.
#[test]
fn damage_in_what_is_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.pleach");
    let (a, b) = (words(KeyType::I64, 1, 4000, 1), words(KeyType::I64, 1, 4000, 2));
    let (left, right) = (file::<i64>(KeyType::I64, &a, 1), file::<i64>(KeyType::I64, &b, RIGHT));
    for (at, whole) in [0, 1, 2].into_iter().flat_map(|at| [(at, &left), (at, &right)]) {
        let mut bytes = whole.as_bytes().to_vec();
        let (offset, length) = (whole.header().lines_offset, whole.header().lines * 64);
        bytes[(offset + [0, length / 2, length - 1][at]) as usize] ^= 0x40;
        std::fs::write(&path, bytes).unwrap();
        let bad = Index::open(&path).unwrap();
        let inputs = match std::ptr::eq(whole, &left) {
            true => (Relation::from_index(&bad), Relation::from_index(&right)),
            false => (Relation::from_index(&left), Relation::from_index(&bad)),
        };
        let good = (Relation::from_index(&left), Relation::from_index(&right));
        for rule in [Rule::AsOf(AsOf::Backward), Rule::AsOf(AsOf::Nearest), Rule::Band] {
            for piece_tuples in [1, 100, 1 << 17] {
                match run(rule, Some("4"), How::Left, inputs, piece_tuples).collect() {
                    Err(RelationError::Damaged { path, .. }) => assert!(path.ends_with("bad.pleach")),
                    Err(error) => panic!("{error}"),
                    Ok(found) => {
                        let wanted = run(rule, Some("4"), How::Left, good, piece_tuples).collect();
                        assert!(found == wanted.unwrap() && !std::ptr::eq(whole, &left));
                    }
                }
            }
        }
    }
}
