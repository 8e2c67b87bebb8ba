//! Batches of every type of numbers, against a naive search.

use crate::{BatchError, Bound, Found, Keys, Lane, LaneType, Nulls, Numbers, Pool, Table, Texts, Values};
use pleach::{Index, Queries};
use std::sync::Arc;

fn table(bytes: Vec<u8>) -> Table {
    Table::of(Arc::new(Index::from_bytes(bytes).unwrap())).unwrap()
}

/// Numbers as real numbers, exactly: 128-bit integers, and floats in halves of the smallest difference here.
trait Exact: LaneType {
    fn exact(self) -> i128;
}
macro_rules! exact {
    ($($integer:ident)*) => {$(
        impl Exact for $integer {
            #[allow(clippy::cast_lossless, clippy::cast_possible_wrap, reason = "for all integers")]
            fn exact(self) -> i128 {
                (self as i128).saturating_mul(1 << 20)
            }
        }
    )*};
}
exact! { u8 u16 u32 u64 i8 i16 i32 i64 }
impl Exact for f64 {
    fn exact(self) -> i128 {
        if self.is_nan() { i128::MAX } else { (self * f64::from(1 << 20)) as i128 }
    }
}
impl Exact for f32 {
    fn exact(self) -> i128 {
        f64::from(self).exact()
    }
}

fn check<K: Exact, Q: Exact>(table: &Table, keys: &[K], queries: &[Q]) {
    let asked = Keys::Numbers(Numbers::of(queries));
    for threads in [1, 3] {
        let pool = Pool::of(threads);
        let mut ranks = vec![7; queries.len()];
        let mut found = vec![true; queries.len()];
        let mut bits = vec![255; queries.len().div_ceil(8)];
        let mut values = vec![7; queries.len()];
        let count =
            table.get(&asked, &mut Values::U32(&mut values), &mut Found::Bools(&mut found), &pool).unwrap();
        assert_eq!(table.contains(&asked, &mut Found::Bits(&mut bits), &pool).unwrap(), count);
        let mut order = [vec![0; queries.len()], vec![0; queries.len()]];
        table.bounds(&asked, Bound::Lower, &mut order[0], &pool).unwrap();
        table.bounds(&asked, Bound::Upper, &mut order[1], &pool).unwrap();
        let ranked = table.rank(&asked, &mut ranks, &mut Found::None, &pool).unwrap();
        assert_eq!(ranked, count);
        for (at, query) in queries.iter().enumerate() {
            let exact = query.exact();
            let lower = keys.iter().filter(|key| key.exact() < exact).count();
            let upper = keys.iter().filter(|key| key.exact() <= exact).count();
            assert_eq!((order[0][at], order[1][at]), (lower as u64, upper as u64), "bounds of {at}");
            assert_eq!(ranks[at], lower as u64);
            assert_eq!(found[at], upper > lower);
            assert_eq!(bits[at / 8] >> (at % 8) & 1 != 0, upper > lower);
            assert_eq!(values[at], if upper > lower { lower as u32 } else { 0 });
        }
        assert_eq!(found.iter().filter(|&&found| found).count(), count);
    }
}

macro_rules! every_lane {
    ($table:expr, $keys:expr, [$($lane:ident)*]) => {$(
        let mut queries = vec![$lane::MIN, $lane::MAX, 0 as $lane, 1 as $lane, 100 as $lane];
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap,
            reason = "any numbers will do")]
        queries.extend((0..2500i64).map(|number| (number * 7 - 300) as $lane));
        check($table, $keys, &queries);
        check($table, $keys, &queries[..1]);
        check($table, $keys, &queries[..0]);
    )*};
}

macro_rules! of_keys {
    ($($name:ident $key:ident [$($lane:ident)*];)*) => {$(
        #[test]
        fn $name() {
            let mut keys = vec![$key::MIN, $key::MAX];
            keys.extend((0..3000u16).map(|number| $key::from(number as u8) + $key::from(number / 256) * (200 as $key)));
            keys.sort_by(|one, other| one.partial_cmp(other).unwrap());
            keys.dedup();
            let tuples = keys.iter().zip(0u32..).map(|(&key, rank)| (key, rank));
            let table = table(pleach_builder::Builder::new().to_bytes(tuples).unwrap());
            every_lane!(&table, &keys, [$($lane)*]);
            let empty = crate::tests::table(
                pleach_builder::Builder::new().to_bytes(std::iter::empty::<($key, u32)>()).unwrap());
            every_lane!(&empty, &[] as &[$key], [$($lane)*]);
        }
    )*};
}
of_keys! {
    keys_u32 u32 [u8 u16 u32 u64 i8 i16 i32 i64];
    keys_u64 u64 [u8 u16 u32 u64 i8 i16 i32 i64];
    keys_i32 i32 [u8 u16 u32 u64 i8 i16 i32 i64];
    keys_i64 i64 [u8 u16 u32 u64 i8 i16 i32 i64];
}

#[test]
fn keys_f64() {
    let mut keys: Vec<f64> = (0..3000).map(|number| f64::from(number) / 4.0 - 100.0).collect();
    keys.extend([9_007_199_254_740_992.0, 9_007_199_254_740_994.0, 9.3e18]);
    let tuples = keys.iter().zip(0u32..).map(|(&key, rank)| (key, rank));
    let table = table(pleach_builder::Builder::new().to_bytes(tuples).unwrap());
    every_lane!(&table, &keys, [u8 u16 u32 i8 i16 i32]);
    // Between two floats, and beyond the last exact one.
    check(&table, &keys, &[9_007_199_254_740_993u64, 9_007_199_254_740_992, 9_007_199_254_740_995, u64::MAX]);
    check(&table, &keys, &[9_007_199_254_740_993i64, 9_007_199_254_740_994, i64::MIN, i64::MAX]);
    check(&table, &keys, &[0.25f64, 0.3, -100.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0]);
    check(&table, &keys, &[0.25f32, 0.3, f32::NAN, f32::MAX]);
}

fn squares() -> Table {
    table(pleach_builder::Builder::new().to_bytes((0..5000u64).map(|key| (key, key * key))).unwrap())
}

/// Memory of every layout: strides, byte order, places that are not aligned, nulls.
#[test]
fn layouts() {
    let table = squares();
    let keys: Vec<u64> = (0..4000).map(|key| key * 3).collect();
    let expected: Vec<u64> = keys.iter().map(|&key| if key < 5000 { key * key } else { 0 }).collect();
    let get = |numbers: Numbers<'_>| {
        let mut values = vec![1; numbers.len()];
        let keys = Keys::Numbers(numbers);
        table.get(&keys, &mut Values::U64(&mut values), &mut Found::None, &Pool::current()).unwrap();
        values
    };
    assert_eq!(get(Numbers::of(&keys)), expected);
    let swapped: Vec<u64> = keys.iter().map(|key| key.swap_bytes()).collect();
    let bytes: Vec<u8> = std::iter::once(9).chain(keys.iter().flat_map(|key| key.to_le_bytes())).collect();
    let spread: Vec<u64> = keys.iter().flat_map(|&key| [key, 77, 78]).collect();
    // SAFETY: each describes numbers of a vector that lives.
    let (other_order, unaligned, apart, backwards, one) = unsafe {
        (
            Numbers::new(swapped.as_ptr().cast(), swapped.len(), 8, Lane::U64, true),
            Numbers::new(bytes[1..].as_ptr(), keys.len(), 8, Lane::U64, false),
            Numbers::new(spread.as_ptr().cast(), keys.len(), 24, Lane::U64, false),
            Numbers::new(keys.last().unwrap() as *const u64 as *const u8, 3, -8, Lane::U64, false),
            Numbers::new(keys[5..].as_ptr().cast(), 2000, 0, Lane::U64, false),
        )
    };
    assert_eq!(get(other_order), expected);
    assert_eq!(get(unaligned), expected);
    assert_eq!(get(apart), expected);
    assert_eq!(get(backwards), [0; 3]);
    assert_eq!(get(one), [225; 2000]);
    let valid: Vec<u8> = vec![0b0101_0101; 600];
    let nulls = Numbers::of(&keys).with_nulls(Some(Nulls::new(&valid, 1)));
    let some: Vec<u64> =
        expected.iter().enumerate().map(|(at, &value)| if at % 2 == 1 { value } else { 0 }).collect();
    assert_eq!(get(nulls), some);
    let mut found = vec![false; keys.len()];
    let asked = Keys::Numbers(nulls);
    table.contains(&asked, &mut Found::Bools(&mut found), &Pool::of(2)).unwrap();
    for (at, found) in found.iter().enumerate() {
        assert_eq!(*found, at % 2 == 1 && keys[at] < 5000);
    }
}

struct Words(Vec<Option<String>>);
impl Queries for Words {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn get(&self, index: usize) -> &[u8] {
        self.0[index].as_deref().unwrap_or("junk").as_bytes()
    }
}
impl Texts for Words {
    fn is_null(&self, at: usize) -> bool {
        self.0[at].is_none()
    }
}

#[test]
fn texts() {
    let words: Vec<String> = (0..3000).map(|number| format!("word{:05}", number * 2)).collect();
    let tuples = words.iter().zip(0u32..).map(|(word, rank)| (word.as_str(), rank));
    let table = table(pleach_builder::Builder::new().to_bytes(tuples).unwrap());
    let mut asked: Vec<Option<String>> = (0..5000).map(|number| Some(format!("word{number:05}"))).collect();
    asked.extend([None, Some(String::new()), Some("zzz".to_owned()), Some("word00000\0".to_owned()), None]);
    let queries = Words(asked);
    let keys = Keys::Texts(&queries);
    let count = keys.len();
    for threads in [1, 2] {
        let pool = Pool::of(threads);
        let (mut values, mut found) = (vec![5; count], vec![true; count]);
        let (mut ranks, mut lower, mut upper) = (vec![5; count], vec![5; count], vec![5; count]);
        let hits =
            table.get(&keys, &mut Values::U32(&mut values), &mut Found::Bools(&mut found), &pool).unwrap();
        let mut also = vec![true; count];
        assert_eq!(table.contains(&keys, &mut Found::Bools(&mut also), &pool).unwrap(), hits);
        assert_eq!(found, also);
        assert_eq!(table.rank(&keys, &mut ranks, &mut Found::Bools(&mut also), &pool).unwrap(), hits);
        assert_eq!(found, also);
        table.bounds(&keys, Bound::Lower, &mut lower, &pool).unwrap();
        table.bounds(&keys, Bound::Upper, &mut upper, &pool).unwrap();
        for (at, query) in queries.0.iter().enumerate() {
            let Some(query) = query else {
                assert_eq!((values[at], found[at], ranks[at], lower[at], upper[at]), (0, false, 0, 0, 0));
                continue;
            };
            let first = words.partition_point(|word| word < query) as u64;
            let end = words.partition_point(|word| word <= query) as u64;
            assert_eq!((ranks[at], lower[at], upper[at]), (first, first, end), "{query}");
            assert_eq!((found[at], values[at]), (end > first, if end > first { first as u32 } else { 0 }));
        }
    }
}

#[test]
fn gathered() {
    let tuples = (0..20_000u32).map(|key| (key, "v".repeat(key as usize % 50)));
    let table = table(pleach_builder::Builder::new().to_bytes(tuples).unwrap());
    let mut ranks: Vec<u64> = (0..40_000).map(|at| at * 7919 % 21_000).collect();
    ranks.extend([u64::MAX, 20_000, 19_999]);
    for threads in [1, 3] {
        let all = table.values_at(&ranks, &Pool::of(threads)).unwrap();
        assert_eq!(all.offsets.len(), ranks.len() + 1);
        for (at, &rank) in ranks.iter().enumerate() {
            let length = if rank < 20_000 { rank % 50 } else { 0 };
            assert_eq!(all.offsets[at + 1] - all.offsets[at], length);
        }
    }
}

#[test]
fn refusals() {
    let table = squares();
    let floats = Keys::Numbers(Numbers::of(&[1.0f64]));
    let words = Words(vec![Some("a".to_owned())]);
    let (mut long, mut wide) = ([0u64; 1], [0u32; 1]);
    let numbers = Keys::Numbers(Numbers::of(&[1u8, 2]));
    let pool = Pool::current();
    let errors = [
        table.get(&floats, &mut Values::U64(&mut long), &mut Found::None, &pool).unwrap_err(),
        table.get(&Keys::Texts(&words), &mut Values::None, &mut Found::None, &pool).unwrap_err(),
        table.get(&numbers, &mut Values::U32(&mut wide), &mut Found::None, &pool).unwrap_err(),
        table.get(&numbers, &mut Values::U64(&mut long), &mut Found::None, &pool).unwrap_err(),
        table.get(&numbers, &mut Values::None, &mut Found::Bits(&mut []), &pool).unwrap_err(),
        table.values_at(&[0], &pool).unwrap_err(),
        table.contains(&numbers, &mut Found::None, &pool.clone().asking(&|| false)).unwrap_err(),
    ];
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert!(texts[0].contains("f64") && texts[0].contains("u64"), "{texts:?}");
    assert!(texts[1].contains("give numbers"), "{texts:?}");
    assert!(matches!(errors[2], BatchError::Values { .. }));
    assert!(matches!(errors[3], BatchError::Short { name: "values", needed: 2, found: 1 }));
    assert!(matches!(errors[4], BatchError::Short { name: "found", .. }));
    assert!(matches!(errors[5], BatchError::Values { .. }));
    assert!(matches!(errors[6], BatchError::Interrupted));
}

/// Keys in another unit: exact ones are found, others have their place.
#[test]
fn units() {
    use pleach_format::logical::Ratio;
    let keys: Vec<i64> = (-2000..2000).map(|key| key * 3).collect();
    let tuples = keys.iter().zip(0u32..).map(|(&key, rank)| (key, rank));
    let table = table(pleach_builder::Builder::new().to_bytes(tuples).unwrap());
    let mut queries: Vec<i64> = (-7000..7000).map(|number| number * 11).collect();
    queries.extend([i64::MIN, i64::MIN + 1, i64::MAX]);
    for ratio in [Ratio { times: 1000, over: 1 }, Ratio { times: 1, over: 1000 }, Ratio::ONE] {
        let numbers = Numbers::of(&queries).with_ratio(Some(ratio));
        let asked = Keys::Numbers(numbers);
        let (mut lower, mut upper) = (vec![9; queries.len()], vec![9; queries.len()]);
        table.bounds(&asked, Bound::Lower, &mut lower, &Pool::current()).unwrap();
        table.bounds(&asked, Bound::Upper, &mut upper, &Pool::current()).unwrap();
        let mut found = vec![false; queries.len()];
        table.contains(&asked, &mut Found::Bools(&mut found), &Pool::current()).unwrap();
        for (at, &query) in queries.iter().enumerate() {
            let product = i128::from(query) * i128::from(ratio.times);
            let scaled = |key: i64| i128::from(key) * i128::from(ratio.over);
            let below = keys.iter().filter(|&&key| scaled(key) < product).count() as u64;
            let to = keys.iter().filter(|&&key| scaled(key) <= product).count() as u64;
            assert_eq!((lower[at], upper[at], found[at]), (below, to, to > below), "{query} {ratio:?}");
        }
    }
}

#[test]
fn tuples() {
    use crate::Column;
    let table = squares();
    let ranks: Vec<u64> = (0..40_000).map(|at| at * 7919 % 5100).collect();
    for threads in [1, 3] {
        let (keys, values) = table.tuples_at(&ranks, &Pool::of(threads)).unwrap();
        let (Column::Words(keys), Column::Words(values)) = (keys, values) else {
            panic!("numbers are words")
        };
        for (at, &rank) in ranks.iter().enumerate() {
            let rank = if rank < 5000 { rank } else { 0 };
            assert_eq!(keys[at * 8..][..8], rank.to_le_bytes());
            assert_eq!(values[at * 8..][..8], (rank * rank).to_le_bytes());
        }
    }
    let tuples = [("b", "two"), ("a", "one"), ("ccc", "")];
    let table = crate::tests::table(pleach_builder::Builder::new().to_bytes(tuples).unwrap());
    let (keys, values) = table.tuples_at(&[2, 0, 7, 1], &Pool::current()).unwrap();
    let strings = |data: &[u8], offsets: &[u64]| {
        Column::Strings(crate::Gathered { offsets: offsets.to_vec(), data: data.to_vec() })
    };
    assert_eq!(keys, strings(b"cccab", &[0, 3, 4, 4, 5]));
    assert_eq!(values, strings(b"onetwo", &[0, 0, 3, 3, 6]));
}

/// Nulls have their places in every piece of a batch, not only in the first.
#[test]
fn nulls_are_missing_in_every_piece() {
    let tuples: Vec<(u64, u32)> = (0..5000).map(|number| (number * 2, number as u32)).collect();
    let table =
        table(pleach_builder::build_bytes(&tuples, &pleach_builder::BuildOptions::default()).unwrap());
    for count in [1, 1023, 1024, 1025, 5000] {
        let queries: Vec<u16> = (0..count as u16).collect();
        let is_null = |at: usize| at % 3 == 1;
        let mut valid = vec![0u8; (count + 5) / 8 + 1];
        for at in (0..count).filter(|&at| !is_null(at)) {
            valid[(at + 5) / 8] |= 1 << ((at + 5) % 8);
        }
        let asked = Keys::Numbers(Numbers::of(&queries).with_nulls(Some(Nulls::new(&valid, 5))));
        for threads in [1, 2] {
            let pool = Pool::of(threads);
            let (mut ranks, mut found) = (vec![9; count], vec![9u8; count]);
            table.rank(&asked, &mut ranks, &mut Found::Bytes(&mut found), &pool).unwrap();
            let mut bounds = [vec![9; count], vec![9; count]];
            table.bounds(&asked, Bound::Lower, &mut bounds[0], &pool).unwrap();
            table.bounds(&asked, Bound::Upper, &mut bounds[1], &pool).unwrap();
            for at in 0..count {
                let (key, is_there) = (at as u64, at % 2 == 0 && !is_null(at));
                let expected = if is_null(at) { (0, 0) } else { (key.div_ceil(2), key / 2 + 1) };
                assert_eq!(found[at], u8::from(is_there), "{at} of {count}");
                assert_eq!(
                    (ranks[at], bounds[0][at], bounds[1][at]),
                    (expected.0, expected.0, expected.1),
                    "{at}"
                );
            }
        }
    }
}

/// Values in memory that others may use are those in a slice; what does not fit is refused.
#[test]
fn shared_memory_gets_the_same_values() {
    let tuples: Vec<(u64, f64)> = (0..3000).map(|number| (number * 2, number as f64)).collect();
    let table =
        table(pleach_builder::build_bytes(&tuples, &pleach_builder::BuildOptions::default()).unwrap());
    let queries: Vec<u32> = (0..7001).collect();
    let asked = Keys::Numbers(Numbers::of(&queries));
    let mut expected = vec![0.0; queries.len()];
    table.get(&asked, &mut Values::F64(&mut expected), &mut Found::None, &Pool::current()).unwrap();
    for threads in [1, 3] {
        let mut values = vec![f64::NAN; queries.len() + 1];
        let start: *mut u8 = values.as_mut_ptr().cast();
        // SAFETY: the vector has so many values, and is used again only afterwards.
        let shared = |len| unsafe { crate::Shared::new(pleach::ValueType::F64, start, len) }.unwrap();
        let pool = Pool::of(threads);
        let mut short = Values::Shared(shared(queries.len() - 1));
        let refused = table.get(&asked, &mut short, &mut Found::None, &pool);
        assert!(matches!(refused, Err(BatchError::Short { .. })), "{refused:?}");
        table.get(&asked, &mut Values::Shared(shared(queries.len())), &mut Found::None, &pool).unwrap();
        assert_eq!(&values[..queries.len()], &expected);
        assert!(values[queries.len()].is_nan());
    }
    let mut room = [0u64; 2];
    let start: *mut u8 = room.as_mut_ptr().cast();
    for value_type in [pleach::ValueType::None, pleach::ValueType::Utf8, pleach::ValueType::Fixed(8)] {
        // SAFETY: nothing is written.
        assert!(unsafe { crate::Shared::new(value_type, start, 2) }.is_none());
    }
    // SAFETY: as above.
    assert!(unsafe { crate::Shared::new(pleach::ValueType::U64, start.wrapping_add(4), 1) }.is_none());
}
