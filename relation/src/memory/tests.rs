//! Every operator over slices against an oracle that goes through keys one by one, on all distributions,
//! with parts so small that they have borders everywhere.

use super::*;
use crate::rules::{How, SetOperation, SetRule};
use pleach_format::Word;
use std::collections::BTreeMap;

/// Small numbers in an order that nothing follows from.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed ^ mixed >> 31
    }
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Pairs of key columns, each pair of another kind.
pub(crate) fn pairs(m: usize, n: usize) -> Vec<(Vec<u64>, Vec<u64>)> {
    let mut random = Random((m * 1000 + n) as u64);
    let mut made: Vec<(Vec<u64>, Vec<u64>)> = Vec::new();
    let mut add = |draw: &mut dyn FnMut() -> u64| {
        let mut column = |tuples: usize| (0..tuples).map(|_| draw()).collect::<Vec<u64>>();
        made.push((column(m), column(n)));
    };
    let spread = (m + n) as u64;
    add(&mut || random.next());
    add(&mut || random.next() % (spread + 1));
    add(&mut || random.next() % (spread / 8 + 1));
    add(&mut || (0..4).map(|_| random.next() % (spread + 1)).sum());
    add(&mut || (random.unit().powf(-1.0)).min(1e9) as u64);
    add(&mut || (random.unit().powf(-0.25)).min(1e9) as u64);
    add(&mut || [0, u64::MAX, u64::MAX - 1][(random.next() % 3) as usize]);
    add(&mut || 7);
    let ascending =
        |tuples: usize, from: u64, step: u64| (0..tuples as u64).map(|at| from + at * step).collect();
    made.push((ascending(m, 0, 1), ascending(n, 0, 1)));
    made.push((ascending(m, 0, 1), ascending(n, m as u64, 1)));
    made.push((ascending(m, n as u64, 1), ascending(n, 0, 1)));
    made.push((ascending(m, 0, 2), ascending(n, 1, 2)));
    made.push((ascending(m, u64::MAX - 3 * m as u64, 3), ascending(n, u64::MAX - n as u64, 1)));
    for (left, right) in &mut made {
        left.sort_unstable();
        right.sort_unstable();
    }
    // Miri is slow.
    made.into_iter().step_by(if cfg!(miri) { 4 } else { 1 }).collect()
}

/// Sizes of both sides, around the borders of parts of 1, 7 and 64 tuples and of four of them. Miri is slow.
const SIZES: &[(usize, usize)] = if cfg!(miri) { &[(0, 5), (4, 3), (15, 9)] } else { &ALL_SIZES };
const ALL_SIZES: [(usize, usize); 14] = [
    (0, 0),
    (0, 5),
    (5, 0),
    (1, 1),
    (3, 4),
    (4, 4),
    (31, 32),
    (64, 64),
    (65, 63),
    (128, 129),
    (200, 3),
    (3, 200),
    (1, 300),
    (257, 511),
];

fn options() -> Vec<Options> {
    let defaults = Options::default();
    let of = |&part_tuples: &usize| Options { part_tuples, piece_tuples: part_tuples * 3, ..defaults };
    let parts: &[usize] = if cfg!(miri) { &[4] } else { &[1, 7, 64] };
    parts.iter().map(of).collect()
}

fn groups(keys: &[u64]) -> BTreeMap<u64, Vec<u64>> {
    let mut groups: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    keys.iter().enumerate().for_each(|(rank, &key)| groups.entry(key).or_default().push(rank as u64));
    groups
}

pub(crate) type Answers = Vec<(u64, Option<u64>, Option<u64>)>;

/// Key and ranks of the tuples of a set operation: the side that the tuple is taken from, by `rules.rs`.
pub(crate) fn set_oracle(operation: SetOperation, rule: SetRule, left: &[u64], right: &[u64]) -> Answers {
    let (lefts, rights) = (groups(left), groups(right));
    let keys: std::collections::BTreeSet<u64> = left.iter().chain(right).copied().collect();
    let mut answers = Vec::new();
    for key in keys {
        let (of_left, of_right) =
            (lefts.get(&key).cloned().unwrap_or_default(), rights.get(&key).cloned().unwrap_or_default());
        let (m, n) = (of_left.len(), of_right.len());
        let (from_left, from_right) = match (operation, rule) {
            (SetOperation::Union, SetRule::Set) if m > 0 => (&of_left[..1], &of_right[..0]),
            (SetOperation::Union, SetRule::Set) => (&of_left[..0], &of_right[..1]),
            (SetOperation::Union, SetRule::Multiset) => (&of_left[..], &of_right[m.min(n)..]),
            (SetOperation::Intersection, SetRule::Set) => (&of_left[..m.min(n).min(1)], &of_right[..0]),
            (SetOperation::Intersection, SetRule::Multiset) => (&of_left[..m.min(n)], &of_right[..0]),
            (SetOperation::Difference, SetRule::Set) if n > 0 => (&of_left[..0], &of_right[..0]),
            (SetOperation::Difference, SetRule::Set) => (&of_left[..m.min(1)], &of_right[..0]),
            (SetOperation::Difference, SetRule::Multiset) => (&of_left[m.min(n)..], &of_right[..0]),
        };
        answers.extend(from_left.iter().map(|&rank| (key, Some(rank), None)));
        answers.extend(from_right.iter().map(|&rank| (key, None, Some(rank))));
    }
    answers
}

pub(crate) fn join_oracle(how: How, left: &[u64], right: &[u64]) -> Answers {
    let mut answers = Answers::new();
    let (lefts, rights) = (groups(left), groups(right));
    for (i, key) in left.iter().enumerate() {
        let partners = rights.get(key).cloned().unwrap_or_default();
        let alone = (*key, Some(i as u64), None);
        match how {
            How::Semi if !partners.is_empty() => answers.push(alone),
            How::Anti | How::Left | How::Full if partners.is_empty() => answers.push(alone),
            How::Semi | How::Anti => {}
            _ => answers.extend(partners.iter().map(|&j| (*key, Some(i as u64), Some(j)))),
        }
    }
    if matches!(how, How::Right | How::Full) {
        let alone = right.iter().enumerate().filter(|(_, key)| !lefts.contains_key(key));
        answers.extend(alone.map(|(j, &key)| (key, None, Some(j as u64))));
    }
    answers.sort_by_key(|answer| answer.0);
    answers
}

/// Values that say whose they are: left ranks, and right ranks above a million.
fn values(tuples: usize, from: u64) -> Vec<u64> {
    (0..tuples as u64).map(|rank| from + rank).collect()
}

pub(crate) const RIGHT: u64 = 1 << 20;

#[test]
fn set_operations_answer_what_the_rules_say() {
    for &(m, n) in SIZES {
        for (kind, (a, b)) in pairs(m, n).into_iter().enumerate() {
            let (a_values, b_values) = (values(m, 0), values(n, RIGHT));
            let left = Columns::new("left", &a, &a_values).unwrap();
            let right = Columns::new("right", &b, &b_values).unwrap();
            for options in options() {
                for &operation in SetOperation::ALL {
                    for &rule in SetRule::ALL {
                        let wanted = set_oracle(operation, rule, &a, &b);
                        let at = format!("{operation} {rule}, kind {kind}, {m} and {n}, {options:?}");
                        let (keys, found) = set_operation(operation, rule, left, right, &options);
                        let expected: Vec<u64> = wanted.iter().map(|answer| answer.0).collect();
                        assert_eq!(keys, expected, "keys of {at}");
                        let one = |answer: &(u64, Option<u64>, Option<u64>)| {
                            answer.1.unwrap_or(RIGHT + answer.2.unwrap_or(0))
                        };
                        assert_eq!(found, wanted.iter().map(one).collect::<Vec<u64>>(), "values of {at}");
                        assert_eq!(
                            set_count(operation, rule, left, right, &options),
                            wanted.len() as u64,
                            "count of {at}"
                        );
                        let ranks = set_ranks(operation, rule, left, right, &options);
                        let from = |(&i, &j): (&u64, &u64)| if i == ABSENT { RIGHT + j } else { i };
                        let found: Vec<u64> = ranks.left.iter().zip(&ranks.right).map(from).collect();
                        assert_eq!(found, wanted.iter().map(one).collect::<Vec<u64>>(), "ranks of {at}");
                    }
                }
            }
        }
    }
}

#[test]
fn joins_answer_what_the_rules_say() {
    for &(m, n) in SIZES {
        for (kind, (a, b)) in pairs(m, n).into_iter().enumerate() {
            let mut distinct = b.clone();
            distinct.dedup();
            for b in [&b, &distinct] {
                let (a_values, b_values) = (values(m, 1), values(b.len(), RIGHT));
                let left = Columns::new("left", &a, &a_values).unwrap();
                let right = Columns::new("right", b, &b_values).unwrap();
                for &how in How::ALL {
                    let wanted = join_oracle(how, &a, b);
                    for options in options() {
                        let at = format!("{how} join, kind {kind}, {m} and {}, {options:?}", b.len());
                        check_join(how, (left, right), &wanted, &options, &at);
                    }
                }
            }
        }
    }
}

fn check_join(
    how: How,
    (left, right): (Columns<'_, u64, u64>, Columns<'_, u64, u64>),
    wanted: &Answers,
    options: &Options,
    at: &str,
) {
    let joined = join(how, left, right, options).unwrap();
    assert_eq!(joined.keys, wanted.iter().map(|answer| answer.0).collect::<Vec<u64>>(), "keys of {at}");
    let lefts: Vec<u64> = wanted.iter().map(|answer| answer.1.map_or(0, |i| 1 + i)).collect();
    let rights: Vec<u64> = wanted.iter().map(|answer| answer.2.map_or(0, |j| RIGHT + j)).collect();
    assert_eq!((joined.left, joined.right), (lefts, rights), "values of {at}");
    if matches!(how, How::Left | How::Right | How::Full) {
        let sides =
            wanted.iter().map(|answer| u8::from(answer.1.is_some()) | u8::from(answer.2.is_some()) << 1);
        assert_eq!(joined.sides, sides.collect::<Vec<u8>>(), "sides of {at}");
    }
    assert_eq!(
        join_count(how, left.keys, right.keys, options).unwrap(),
        wanted.len() as u64,
        "count of {at}"
    );
    let ranks = join_ranks(how, left.keys, right.keys, options).unwrap();
    let lefts: Vec<u64> = wanted.iter().map(|answer| answer.1.unwrap_or(ABSENT)).collect();
    assert_eq!(ranks.left, lefts, "left ranks of {at}");
    if how != How::Semi && how != How::Anti {
        let rights: Vec<u64> = wanted.iter().map(|answer| answer.2.unwrap_or(ABSENT)).collect();
        assert_eq!(ranks.right, rights, "right ranks of {at}");
    }
}

#[test]
fn other_words_and_values() {
    fn of<K: Word, V: Copy + Send + Sync + PartialEq + std::fmt::Debug>(value: impl Fn(u64) -> V) {
        let (m, n) = if cfg!(miri) { (13, 12) } else { (130, 127) };
        for (a, b) in pairs(m, n) {
            let narrow = |keys: &[u64]| {
                let mut keys: Vec<K> = keys.iter().map(|&key| K::from_u64(key)).collect();
                keys.sort_unstable();
                keys
            };
            let (a, b) = (narrow(&a), narrow(&b));
            let wide = |keys: &[K]| -> Vec<u64> { keys.iter().map(|key| key.to_u128() as u64).collect() };
            let a_values: Vec<V> = (0..m as u64).map(&value).collect();
            let b_values: Vec<V> = (RIGHT..RIGHT + n as u64).map(&value).collect();
            let left = Columns::new("left", &a, &a_values).unwrap();
            let right = Columns::new("right", &b, &b_values).unwrap();
            let options = Options { part_tuples: 16, ..Options::default() };
            for &operation in SetOperation::ALL {
                for &rule in SetRule::ALL {
                    let wanted = set_oracle(operation, rule, &wide(&a), &wide(&b));
                    let (keys, found) = set_operation(operation, rule, left, right, &options);
                    assert_eq!(wide(&keys), wanted.iter().map(|answer| answer.0).collect::<Vec<u64>>());
                    let one = |answer: &(u64, Option<u64>, Option<u64>)| {
                        value(answer.1.unwrap_or(RIGHT + answer.2.unwrap_or(0)))
                    };
                    assert_eq!(found, wanted.iter().map(one).collect::<Vec<V>>());
                }
            }
        }
    }
    of::<u32, u32>(|value| value as u32);
    of::<u32, ()>(|_| ());
    of::<u128, [u8; 3]>(|value| [value as u8, (value >> 8) as u8, (value >> 16) as u8]);
    of::<u64, u128>(u128::from);
}

#[test]
fn keys_alone_go_by_blocks() {
    fn of<K: Word>() {
        let sizes = [(17, 33), (8, 8), (16, 16), (100, 90), (700, 900), (1000, 40), (2000, 2000)];
        for &(m, n) in &sizes[..if cfg!(miri) { 1 } else { sizes.len() }] {
            for (kind, (mut a, mut b)) in pairs(m, n).into_iter().enumerate() {
                // Blocks are for keys that occur once: some runs are left in others.
                if kind % 2 == 0 {
                    a.dedup();
                    b.dedup();
                }
                let narrow = |keys: &[u64]| {
                    let mut keys: Vec<K> = keys.iter().map(|&key| K::from_u64(key)).collect();
                    keys.sort_unstable();
                    keys
                };
                let (a, b) = (narrow(&a), narrow(&b));
                let wide = |keys: &[K]| -> Vec<u64> { keys.iter().map(|key| key.to_u128() as u64).collect() };
                let left = Columns::new("left", &a, no_values(a.len())).unwrap();
                let right = Columns::new("right", &b, no_values(b.len())).unwrap();
                for &operation in SetOperation::ALL {
                    for &rule in SetRule::ALL {
                        let wanted = set_oracle(operation, rule, &wide(&a), &wide(&b));
                        let wanted: Vec<u64> = wanted.into_iter().map(|answer| answer.0).collect();
                        for &part_tuples in if cfg!(miri) { &[8][..] } else { &[5, 40, 64, 500] } {
                            let options = Options { part_tuples, ..Options::default() };
                            let (found, _) = match operation {
                                SetOperation::Union => set_operation(operation, rule, left, right, &options),
                                _ => set_of_left(operation, rule, left, &b, &options),
                            };
                            let at = format!("{operation} {rule}, kind {kind}, {m} and {n}, {part_tuples}");
                            assert_eq!(wide(&found), wanted, "{at}");
                        }
                    }
                }
            }
        }
    }
    of::<u64>();
    of::<u32>();
}

#[test]
fn keys_out_of_order_are_refused_and_do_no_harm() {
    let keys = [3u64, 4, 4, 2, 9];
    let refused = Columns::new("orders", &keys, &keys).unwrap_err().to_string();
    assert_eq!(refused, "not sorted: orders: the key of rank 3 is below the one before it: sort it first");
    assert!(Columns::new("orders", &keys, &keys[1..]).is_err());
    // Nothing is asked of the answers but that they come.
    let mut random = Random(5);
    for &tuples in if cfg!(miri) { &[5usize, 20][..] } else { &[5, 100, 700] } {
        let mut draw = || (0..tuples).map(|_| random.next() % 200).collect::<Vec<u64>>();
        let (a, b) = (draw(), draw());
        let short = &b[..3];
        for options in options() {
            for b in [&b, short] {
                let left = Columns::sorted("left", &a, &a).unwrap();
                let right = Columns::sorted("right", b, b).unwrap();
                for &operation in SetOperation::ALL {
                    for &rule in SetRule::ALL {
                        let (keys, _) = set_operation(operation, rule, left, right, &options);
                        assert!(keys.len() <= a.len() + b.len() + 2 * (a.len() + b.len()));
                    }
                }
                let alone = Columns::sorted("left", &a, no_values(a.len())).unwrap();
                for operation in [SetOperation::Intersection, SetOperation::Difference] {
                    let (keys, _) = set_of_left(operation, SetRule::Multiset, alone, b, &options);
                    assert!(keys.len() <= 3 * a.len());
                }
                for &how in How::ALL {
                    let joined = join(how, left, right, &options).unwrap();
                    assert_eq!(joined.keys.len(), joined.left.len());
                }
            }
        }
    }
}

#[test]
fn a_join_too_large_is_refused_with_its_size() {
    let keys = vec![7u64; 1000];
    let options = Options { memory_bytes: 1 << 20, ..Options::default() };
    let columns = Columns::new("keys", &keys, &keys).unwrap();
    let refused = join(How::Inner, columns, columns, &options).unwrap_err().to_string();
    assert!(refused.contains("the join has 1000000 tuples, at most 43690 fit"), "{refused}");
    let refused = product(columns, &keys, |a, b| a + b, &options).unwrap_err().to_string();
    assert!(refused.contains("the product has 1000000 tuples"), "{refused}");
    assert_eq!(join_count(How::Inner, &keys, &keys, &options).unwrap(), 1_000_000);
    // Unique right keys, which take another way, have the same limit: of what is answered, not of what could be.
    let keys: Vec<u64> = (0..1000).collect();
    let others: Vec<u64> = (900..1900).collect();
    let (left, right) =
        (Columns::new("left", &keys, &keys).unwrap(), Columns::new("right", &others, &others).unwrap());
    for (how, tuples, tuple_bytes) in [
        (How::Inner, 100, 24),
        (How::Left, 1000, 25),
        (How::Full, 1900, 25),
        (How::Semi, 100, 24),
        (How::Anti, 900, 24),
    ] {
        let options = |memory_bytes| Options { memory_bytes, ..Options::default() };
        let enough = tuples * tuple_bytes;
        assert_eq!(join(how, left, right, &options(enough)).unwrap().keys.len() as u64, tuples, "{how}");
        let refused = join(how, left, right, &options(enough - 1)).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("the join has {tuples} tuples, at most {} fit", tuples - 1)),
            "{refused}"
        );
    }
    let options = Options { part_tuples: usize::MAX, ..Options::default() };
    let doubled: Vec<u64> = (0..1000).map(|at| at / 2).collect();
    let columns = Columns::new("doubled", &doubled, &doubled).unwrap();
    assert_eq!(join(How::Inner, columns, columns, &options).unwrap().keys.len(), 2000);
}

struct Sum;

impl Reduce<u64> for Sum {
    type Output = u64;
    fn single(&self, value: u64) -> u64 {
        value
    }
    fn both(&self, first: u64, second: u64) -> Option<u64> {
        first.checked_add(second)
    }
}

#[test]
fn rows() {
    let block = rows::BLOCK_TUPLES;
    let sizes = [0, 1, 65, 63, 64, 500, block - 1, block, block + 1, 2 * block + 5];
    for &tuples in &sizes[..if cfg!(miri) { 3 } else { sizes.len() }] {
        for (mut keys, _) in pairs(tuples, 1) {
            keys.sort_unstable();
            let values = values(tuples, 1);
            let columns = Columns::new("keys", &keys, &values).unwrap();
            let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
            keys.iter().zip(&values).for_each(|(&key, value)| *sums.entry(key).or_default() += value);
            assert_eq!(reduce(columns, &Sum).unwrap(), sums.into_iter().unzip());
            for options in options().iter().filter(|_| tuples <= 500) {
                let odd = |key: u64, value: u64| (key ^ value) & 1 == 1;
                let kept: Vec<usize> = (0..tuples).filter(|&at| odd(keys[at], values[at])).collect();
                let wanted: (Vec<u64>, Vec<u64>) = kept.iter().map(|&at| (keys[at], values[at])).unzip();
                assert_eq!(select(columns, odd, options), wanted);
                let ranks: Vec<u64> = kept.iter().map(|&at| at as u64).collect();
                assert_eq!(select_ranks(columns, odd, options), ranks);
                assert_eq!(gather(&keys, &ranks, 0), wanted.0);
                let right = [10u64, 20, 30];
                let (found, sums) = product(columns, &right, |a, b| a + b, options).unwrap();
                let pairs = (0..tuples * 3).map(|at| (keys[at / 3], values[at / 3] + right[at % 3]));
                assert_eq!((found, sums), pairs.unzip());
            }
            let turned = project(columns, |key, value| (!key, value), false).unwrap();
            let mut wanted: Vec<(u64, u64)> =
                keys.iter().zip(&values).map(|(&key, &value)| (!key, value)).collect();
            wanted.sort_by_key(|tuple| tuple.0);
            assert_eq!(turned, wanted.into_iter().unzip());
            assert!(project(columns, |key, value| (key >> 1, value), true).is_ok());
            let falls = keys.first() != keys.last();
            assert_eq!(project(columns, |key, value| (!key, value), true).is_err(), falls);
        }
    }
    let keys = [1u64, 1];
    let refused = reduce(Columns::new("keys", &keys, &[u64::MAX, 1]).unwrap(), &Sum).unwrap_err();
    assert_eq!(refused.to_string(), "sum overflows: key 1: choose another --op, or select fewer tuples");
}

#[test]
#[cfg_attr(miri, ignore = "too long")]
fn many_inputs() {
    let options = Options { part_tuples: 8, ..Options::default() };
    for inputs in 1..6usize {
        for kind in 0..13 {
            let columns: Vec<Vec<u64>> =
                (0..inputs).map(|at| pairs(40 + 30 * (at * 7 % 5), 1).swap_remove(kind).0).collect();
            let values: Vec<Vec<u64>> =
                columns.iter().enumerate().map(|(at, keys)| values(keys.len(), at as u64 * RIGHT)).collect();
            let relations: Vec<Columns<'_, u64, u64>> = columns
                .iter()
                .zip(&values)
                .map(|(keys, values)| Columns::new("", keys, values).unwrap())
                .collect();
            for &rule in SetRule::ALL {
                let none = Columns { keys: &[], values: &[] };
                let mut union = set_operation(SetOperation::Union, rule, relations[0], none, &options);
                let mut both =
                    set_operation(SetOperation::Intersection, rule, relations[0], relations[0], &options);
                for next in &relations[1..] {
                    let one = Columns::new("", &union.0, &union.1).unwrap();
                    let next_union = set_operation(SetOperation::Union, rule, one, *next, &options);
                    let one = Columns::new("", &both.0, &both.1).unwrap();
                    both = set_operation(SetOperation::Intersection, rule, one, *next, &options);
                    union = next_union;
                }
                assert_eq!(
                    union_all(rule, &relations, &options).0,
                    union.0,
                    "{inputs} of kind {kind}, {rule}"
                );
                let others: Vec<&[u64]> = columns[1..].iter().map(Vec::as_slice).collect();
                assert_eq!(intersect_all(rule, relations[0], &others, &options), both);
            }
        }
    }
}

#[test]
fn plans_say_why() {
    assert_eq!(Plan::new(10, 320).method, Method::Sweep);
    assert_eq!(Plan::new(321, 10).method, Method::Gallop);
    assert_eq!(Plan::new(321, 10).to_string(), "gallop: 321 tuples are more than 32 times 10");
}
