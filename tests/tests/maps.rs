//! Every look-up of the owned maps against a sorted vector: all types of keys and values, every residence and
//! verification; and files with a damaged byte.

use pleach::build::{BuildKey, BuildValue, Builder, Layout};
use pleach::{
    AnyMap, Bitmap, BytesMap, Datum, Index, Key, Map, MapValue, OpenOptions, Residence, Row, Verify,
};
use pleach_tests::generate::{Random, mix};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::ops::Bound;

/// A key or a value that is made of a number.
trait Made: Clone + PartialEq + Debug {
    fn made(number: u64) -> Self;
    /// What an [`AnyMap`] shows.
    fn datum(&self) -> Datum<'static>;
}

macro_rules! numbers {
    ($($t:ty: $number:ident => $made:expr;)*) => {$(
        impl Made for $t {
            fn made($number: u64) -> Self {
                $made
            }
            fn datum(&self) -> Datum<'static> {
                Datum::from(self.to_owned())
            }
        }
    )*};
}
numbers! {
    u32: number => number as u32;
    u64: number => number;
    u128: number => u128::from(number) << 64 | u128::from(mix(number));
    i32: number => number as i32;
    i64: number => number as i64;
    f32: number => (number % 100_003) as f32 - 17.5;
    f64: number => (number % (1 << 50)) as f64 - 1e15;
    String: number => format!("{number}{}", "é".repeat(number as usize % 23));
    Vec<u8>: number => number.to_be_bytes()[..number as usize % 9].repeat(1 + number as usize % 5);
}

macro_rules! others {
    ($($t:ty: $number:ident => $made:expr, $value:ident => $datum:expr;)*) => {$(
        impl Made for $t {
            fn made($number: u64) -> Self {
                $made
            }
            fn datum(&self) -> Datum<'static> {
                let $value = self;
                $datum
            }
        }
    )*};
}
others! {
    (): _number => (), _value => Datum::None;
    [u8; 7]: number => number.to_be_bytes()[1..].try_into().expect("7 bytes"), bytes => bytes.to_vec().into();
    (u8, f64): number => (number as u8, number as f64 / 8.0), record => {
        Datum::from([&[record.0][..], &record.1.to_le_bytes()].concat())
    };
    (u16, i16): number => (number as u16, -(number as i16 & 0x7FFF)), record => {
        Datum::from(u32::from(record.0) | u32::from(record.1.cast_unsigned()) << 16)
    };
    (u16, String): number => (number as u16, String::made(number)), record => {
        let end = record.1.len() as u32;
        Datum::from([&record.0.to_le_bytes()[..], &end.to_le_bytes(), record.1.as_bytes()].concat())
    };
    (Vec<u8>, f64, String): number => {
        (Vec::made(number >> 3), number as f64, String::made(number))
    }, record => {
        let (a, b, c) = record;
        let ends = [a.len() as u32, (a.len() + c.len()) as u32].map(u32::to_le_bytes);
        Datum::from([&ends[0][..], &b.to_le_bytes(), &ends[1], a, c.as_bytes()].concat())
    };
    (i64,): number => (number as i64,), record => Datum::from(record.0.cast_unsigned());
    (u32, [u8; 3], f32, i8): number => {
        (number as u32, [number as u8, 0, 255], number as f32, number as i8)
    }, record => {
        let (a, b, c, d) = *record;
        Datum::from([&a.to_le_bytes()[..], &b, &c.to_le_bytes(), &d.to_le_bytes()].concat())
    };
}

/// Sorted tuples of `count` numbers, among them equal keys, and keys to ask for.
fn data<K: Made, V: Made>(
    count: usize,
    order: impl Fn(&K, &K) -> Ordering,
    valid: impl Fn(&K) -> bool,
) -> (Vec<(K, V)>, Vec<K>) {
    let mut random = Random(count as u64 + 1);
    let key = |number: u64| K::made(mix(number) >> (number % 3 * 20));
    let mut tuples: Vec<(K, V)> =
        (0..count as u64).map(|i| (key(i - i % 5 / 3), V::made(mix(i) >> 13))).collect();
    tuples.retain(|(key, _)| valid(key));
    let mut queries: Vec<K> = (0..150).map(|_| K::made(random.next() >> random.below(40))).collect();
    queries.extend(tuples.iter().step_by((count / 200).max(1)).map(|tuple| tuple.0.clone()));
    queries.extend([0, 1, u64::MAX].map(K::made));
    queries.retain(|key| valid(key));
    tuples.sort_by(|a, b| order(&a.0, &b.0));
    (tuples, queries)
}

/// Compares all look-ups of a map. `$query => $ask` makes an argument of a query.
macro_rules! compare {
    ($map:expr, $tuples:expr, $queries:expr, $order:expr, $query:ident => $ask:expr, $what:expr) => {{
        let (map, queries, what) = ($map, $queries, $what);
        let tuples: &[_] = $tuples;
        let lower = |key| tuples.partition_point(|tuple| $order(&tuple.0, key) == Ordering::Less);
        let upper = |key| tuples.partition_point(|tuple| $order(&tuple.0, key) != Ordering::Greater);
        assert_eq!((map.len(), map.is_empty()), (tuples.len() as u64, tuples.is_empty()), "{what}");
        let many = map.get_many(queries).expect("reads");
        assert_eq!(map.par_get_many(queries).expect("reads"), many, "{what}");
        let ranks = map.rank_many(queries).expect("reads");
        let present = map.contains_many(queries).expect("reads");
        let each: Vec<_> = map.many(queries.iter().cloned()).collect::<Result<_, _>>().expect("reads");
        assert_eq!((each.len(), present.len()), (queries.len(), queries.len()), "{what}");
        for (at, $query) in queries.iter().enumerate() {
            let (low, high) = (lower($query), upper($query));
            let expected = tuples[low..high].first().map(|tuple| tuple.1.clone());
            let context = || format!("{what}: {:?}", $query);
            assert_eq!(many[at], expected, "{}", context());
            assert_eq!(each[at], ($query.clone(), expected.clone()), "{}", context());
            assert_eq!(map.get($ask).expect("reads"), expected, "{}", context());
            assert_eq!(map.contains($ask).expect("reads"), expected.is_some(), "{}", context());
            assert_eq!(present.get(at), expected.is_some(), "{}", context());
            let rank = expected.as_ref().map(|_| low as u64);
            assert_eq!((map.rank($ask).expect("reads"), ranks[at]), (rank, rank), "{}", context());
            assert_eq!(map.lower_bound($ask).expect("reads"), low as u64, "{}", context());
            assert_eq!(map.upper_bound($ask).expect("reads"), high as u64, "{}", context());
            assert_eq!(map.ceiling($ask).expect("reads").as_ref(), tuples.get(low), "{}", context());
            let floor = high.checked_sub(1).map(|at| &tuples[at]);
            assert_eq!(map.floor($ask).expect("reads").as_ref(), floor, "{}", context());
            let all: Vec<_> = map.get_all($ask).expect("reads").collect::<Result<_, _>>().expect("reads");
            assert_eq!(all, tuples[low..high], "{}", context());
        }
        assert_eq!(map.first().expect("reads").as_ref(), tuples.first(), "{what}");
        assert_eq!(map.last().expect("reads").as_ref(), tuples.last(), "{what}");
        assert_eq!(map.select(tuples.len() as u64).expect("reads"), None, "{what}");
        let all: Vec<_> = map.into_iter().collect::<Result<_, _>>().expect("reads");
        assert_eq!(all, tuples, "{what}");
        let mut backwards: Vec<_> = map.iter().rev().collect::<Result<_, _>>().expect("reads");
        backwards.reverse();
        assert_eq!(backwards, tuples, "{what}");
        // From both ends, by ranks.
        let (start, end) = (tuples.len() / 3, tuples.len());
        let mut both = map.ranks(start as u64..end as u64 + 9);
        let (mut front, mut back) = (Vec::new(), Vec::new());
        while let Some(tuple) = both.next() {
            front.push(tuple.expect("reads"));
            back.extend(both.next_back().map(|tuple| tuple.expect("reads")));
            assert_eq!(both.remaining() as usize, end - start - front.len() - back.len(), "{what}");
        }
        front.extend(back.into_iter().rev());
        assert_eq!(front, tuples[start..], "{what}");
        for pair in queries.windows(2).step_by(7) {
            let is_up = $order(&pair[0], &pair[1]) != Ordering::Greater;
            let (a, b) = if is_up { (&pair[0], &pair[1]) } else { (&pair[1], &pair[0]) };
            let range = map.range(a.clone()..b.clone()).expect("reads");
            let found: Vec<_> = range.collect::<Result<_, _>>().expect("reads");
            assert_eq!(found, tuples[lower(a)..lower(b)], "{what}: {a:?}..{b:?}");
            let bounds = (Bound::Excluded(a.clone()), Bound::Included(b.clone()));
            let count = upper(b).max(upper(a)) - upper(a);
            assert_eq!(map.count(bounds.clone()).expect("reads"), count as u64, "{what}: {a:?}..={b:?}");
            let backwards = map.range(b.clone()..a.clone()).expect("reads").count();
            assert_eq!(backwards, 0, "{what}: {b:?}..{a:?}");
        }
    }};
}

/// Compares the map of any types.
fn compare_any<K: Made, V: Made>(
    map: &AnyMap,
    tuples: &[(K, V)],
    queries: &[K],
    order: impl Fn(&K, &K) -> Ordering,
    what: &str,
) {
    let shown = |tuple: &(K, V)| (tuple.0.datum(), tuple.1.datum());
    let lower = |key: &K| tuples.partition_point(|tuple| order(&tuple.0, key) == Ordering::Less);
    let upper = |key: &K| tuples.partition_point(|tuple| order(&tuple.0, key) != Ordering::Greater);
    let data: Vec<Datum<'_>> = queries.iter().map(Made::datum).collect();
    let many = map.get_many(&data).expect("reads");
    for ((query, key), found) in queries.iter().zip(&data).zip(many) {
        let (low, high) = (lower(query), upper(query));
        let expected = tuples[low..high].first().map(|tuple| tuple.1.datum());
        assert_eq!(found, expected, "{what}: {key:?}");
        assert_eq!(map.get(key).expect("reads"), expected, "{what}: {key:?}");
        assert_eq!(map.contains(key).expect("reads"), expected.is_some(), "{what}: {key:?}");
        let floor = high.checked_sub(1).map(|at| shown(&tuples[at]));
        assert_eq!(map.floor(key).expect("reads"), floor, "{what}: {key:?}");
        assert_eq!(map.ceiling(key).expect("reads"), tuples.get(low).map(shown), "{what}: {key:?}");
        let range = map.range(key.clone()..=key.clone()).expect("reads");
        assert_eq!(range.size_hint().0, high - low, "{what}: {key:?}");
    }
    let all: Vec<_> = map.iter().collect::<Result<_, _>>().expect("reads");
    assert_eq!(all, tuples.iter().map(shown).collect::<Vec<_>>(), "{what}");
    let last = map.iter().next_back().transpose().expect("reads");
    assert_eq!(last, map.last().expect("reads"), "{what}");
    assert_eq!(map.first().expect("reads"), tuples.first().map(shown), "{what}");
}

/// Calls `check` with a file of the tuples in every residence and verification.
fn everywhere<K: BuildKey + Clone + Sync + Send, V: BuildValue + Clone + Sync + Send>(
    tuples: &[(K, V)],
    mut check: impl FnMut(&std::path::Path, OpenOptions, &str),
) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.pleach");
    for layout in ["lines,spine,grid", "lines,spine,columns"] {
        let builder = Builder::new().layout(layout.parse::<Layout>().expect("a layout"));
        // The order of equal keys is that of the input.
        builder.build(&path, tuples.iter().cloned()).expect("builds");
        for residence in [Residence::Mapped, Residence::Resident] {
            for verify in Verify::ALL {
                let options = Index::options().residence(residence).verify(verify);
                check(&path, options, &format!("{layout} {residence:?} {verify} {}", tuples.len()));
            }
        }
    }
}

const COUNTS: [usize; 5] = [0, 1, 13, 700, 6000];

/// Numbers to any values.
fn check_numbers<K, V>()
where
    K: Key + BuildKey + Made,
    V: MapValue + BuildValue + Made,
{
    let order = |a: &K, b: &K| a.encode().cmp(&b.encode());
    for count in COUNTS {
        // NaN is no key.
        let (tuples, queries) = data::<K, V>(count, order, |key| key.partial_cmp(key).is_some());
        everywhere(&tuples, |path, options, what| {
            let map: Map<K, V> = Map::with_options(path, options).expect("opens");
            compare!(&map, &tuples, &queries, order, query => *query, what);
            let any = AnyMap::with_options(path, options).expect("opens");
            compare_any(&any, &tuples, &queries, order, what);
        });
    }
}

/// Byte strings to any values.
fn check_strings<K, V>()
where
    K: BuildKey + Made + AsRef<[u8]> + Sync + Send,
    V: MapValue + BuildValue + Made,
{
    let order = |a: &K, b: &K| a.as_ref().cmp(b.as_ref());
    for count in COUNTS {
        let (tuples, queries) = data::<K, V>(count, order, |_| true);
        let as_read: Vec<(Vec<u8>, V)> =
            tuples.iter().map(|(key, value)| (key.as_ref().to_vec(), value.clone())).collect();
        let asked: Vec<Vec<u8>> = queries.iter().map(|key| key.as_ref().to_vec()).collect();
        everywhere(&tuples, |path, options, what| {
            let map: BytesMap<V> = BytesMap::with_options(path, options).expect("opens");
            compare!(&map, &as_read, &asked, |a: &Vec<u8>, b: &Vec<u8>| a.cmp(b), query => query, what);
            for prefix in asked.iter().step_by(5).map(|key| &key[..key.len() / 2]) {
                let found = map.prefix(prefix).expect("reads").collect::<Result<Vec<_>, _>>().expect("reads");
                let expected: Vec<_> =
                    as_read.iter().filter(|tuple| tuple.0.starts_with(prefix)).cloned().collect();
                assert_eq!(found, expected, "{what}: {prefix:?}");
            }
            let any = AnyMap::with_options(path, options).expect("opens");
            compare_any(&any, &tuples, &queries, order, what);
        });
    }
}

macro_rules! pairs {
    ($check:ident: $($name:ident: $key:ty, $value:ty;)*) => {
        $(#[test] fn $name() { $check::<$key, $value>(); })*
    };
}
pairs! {
    check_numbers:
    u32_none: u32, ();
    u32_u32: u32, u32;
    u32_f64: u32, f64;
    u32_utf8: u32, String;
    u64_u64: u64, u64;
    u64_bytes: u64, Vec<u8>;
    u64_record_of_4: u64, (u16, i16);
    u64_text_record: u64, (u16, String);
    i32_text_record: i32, (Vec<u8>, f64, String);
    u128_i32: u128, i32;
    u128_record: u128, (u8, f64);
    i32_i64: i32, i64;
    i32_fixed: i32, [u8; 7];
    i64_f32: i64, f32;
    i64_record_of_8: i64, (i64,);
    f64_u32: f64, u32;
    f64_record: f64, (u32, [u8; 3], f32, i8);
}
pairs! {
    check_strings:
    utf8_u32: String, u32;
    utf8_utf8: String, String;
    utf8_record: String, (u8, f64);
    bytes_none: Vec<u8>, ();
    bytes_f64: Vec<u8>, f64;
    bytes_bytes: Vec<u8>, Vec<u8>;
    fixed_u64: [u8; 7], u64;
    fixed_record_of_4: [u8; 7], (u16, i16);
    utf8_text_record: String, (Vec<u8>, f64, String);
    bytes_text_record: Vec<u8>, (u16, String);
}

#[test]
fn batches_fill_buffers() {
    let tuples: Vec<(u32, u64)> = (0..3000).map(|key| (key * 2, u64::from(key))).collect();
    let map: Map<u32, u64> =
        Map::from_bytes(Builder::new().to_bytes(tuples).expect("builds")).expect("opens");
    let names = (0..3000u32).map(|key| (format!("{key:05}"), key));
    let names: BytesMap<u32> =
        BytesMap::from_bytes(Builder::new().to_bytes(names).expect("builds")).expect("opens");
    let mut present = Bitmap::default();
    for count in [0, 1, 63, 64, 65, 5000, 100] {
        let keys: Vec<u32> = (0..count).collect();
        let texts: Vec<String> = keys.iter().map(|key| format!("{key:05}")).collect();
        for parallel in [false, true] {
            let mut values = vec![9; keys.len() + 3];
            let batch = if parallel { Map::par_get_batch } else { Map::get_batch };
            let found = batch(&map, &keys, &mut values, &mut present).expect("reads");
            assert_eq!((found, present.len()), (present.count_ones(), keys.len()));
            assert_eq!(present.iter().collect::<Bitmap>(), present);
            for &key in &keys {
                let (at, there) = (key as usize, key % 2 == 0 && key < 6000);
                assert_eq!(
                    (present.get(at), values[at]),
                    (there, if there { u64::from(key) / 2 } else { 0 })
                );
            }
            let mut values = vec![9; keys.len()];
            let batch = if parallel { BytesMap::par_get_batch } else { BytesMap::get_batch };
            batch(&names, &texts, &mut values, &mut present).expect("reads");
            assert_eq!(present.ones().collect::<Vec<_>>(), (0..keys.len().min(3000)).collect::<Vec<_>>());
            assert_eq!(present.as_words().len(), keys.len().div_ceil(64));
        }
    }
}

#[test]
fn fields_are_looked_up_by_name() {
    let builder = Builder::new().fields(["nation", "balance"]);
    let tuples = || (0..2000u64).map(|key| (key * 3, (key as u8, key as f64)));
    let map: Map<u64, Row> = Map::from_bytes(builder.to_bytes(tuples()).expect("builds")).expect("opens");
    let names = tuples().map(|(key, value)| (key.to_string(), value));
    let names: BytesMap<Row> = BytesMap::from_bytes(builder.to_bytes(names).expect("builds")).expect("opens");
    let keys: Vec<u64> = (0..6100).collect();
    let texts: Vec<String> = keys.iter().map(ToString::to_string).collect();
    let expected = |key: u64| (key.is_multiple_of(3) && key < 6000).then_some(key as f64 / 3.0);
    let wanted: Vec<Option<f64>> = keys.iter().map(|&key| expected(key)).collect();
    assert_eq!(map.get_field_many::<f64>(&keys, "balance").expect("reads"), wanted);
    assert_eq!(names.get_field_many::<f64>(&texts, "balance").expect("reads"), wanted);
    for key in [0, 1, 2997, 5997, 6000] {
        assert_eq!(map.get_field::<f64>(key, "balance").expect("reads"), expected(key));
        let nation = expected(key).map(|number| number as u64 as u8);
        assert_eq!(names.get_field::<u8>(key.to_string(), "nation").expect("reads"), nation);
    }
    assert!(map.get_field_many::<f64>(&keys, "nation").is_err());
    // Texts, too.
    let tuples = (0..2000u64).map(|key| (key * 3, (key as u8, format!("name {key}"), vec![key as u8; 2])));
    let builder = Builder::new().fields(["n", "name", "blob"]);
    let texts = Map::<u64, Row>::from_bytes(builder.to_bytes(tuples).expect("builds")).expect("opens");
    let names = texts.get_field_many::<String>(&[3, 4, 5997], "name").expect("reads");
    assert_eq!(names, [Some("name 1".to_owned()), None, Some("name 1999".to_owned())]);
    assert_eq!(texts.get_field::<Vec<u8>>(6, "blob").expect("reads"), Some(vec![2, 2]));
    assert!(texts.get_field_many::<Vec<u8>>(&[3], "name").is_err());
    let row = texts.get(9).expect("reads").expect("is there");
    let shown = format!("{row:?}");
    assert_eq!(shown, "{\"n\": U8(3), \"name\": Utf8(\"name 3\"), \"blob\": Bytes([3, 3])}");
    let borrowed = Builder::new().to_bytes([(1u32, ("a", &b"b"[..], 7u8))]).expect("builds");
    let owned = Map::<u32, (String, Vec<u8>, u8)>::from_bytes(borrowed).expect("opens");
    assert_eq!(owned.get(1).expect("reads"), Some(("a".to_owned(), b"b".to_vec(), 7)));
    assert!(map.get_field_many::<f64>(&[], "none").is_err());
    assert_eq!(map.record().map(ToString::to_string).as_deref(), Some("record<nation: u8, balance: f64>"));
    // Names that do not fit are refused, and fields have names without them.
    for names in [vec!["a"], vec!["a", "a"], vec!["a", "b", "c"]] {
        assert!(Builder::new().fields(names).to_bytes([(1u32, (1u8, 2u8))]).is_err());
    }
    assert!(Builder::new().fields(["a"]).to_bytes([(1u32, 2u32)]).is_err());
    let bytes = Builder::new().to_bytes([(1u32, (1u8, 2u16))]).expect("builds");
    let row = Map::<u32, Row>::from_bytes(bytes).expect("opens").get(1).expect("reads").expect("is there");
    assert_eq!((row.get("f1"), row.get("f2")), (Ok(1u8), Ok(2u16)));
}

/// With verification of what is read, an answer is right or an error; without it there is no panic.
#[test]
fn damage_is_an_error() {
    let tuples: Vec<(u32, String)> =
        (0..900u32).map(|key| (key * 2, String::made(mix(key.into())))).collect();
    let bytes = Builder::new().to_bytes(tuples.iter().cloned()).expect("builds");
    let keys: Vec<u32> = (0..1800).collect();
    let (mut random, mut damaged) = (Random(5), 0);
    for _ in 0..300 {
        let mut bytes = bytes.clone();
        let at = random.below(bytes.len() as u64 - 8192) as usize + 4096;
        bytes[at] ^= 1 << random.below(8);
        for verify in [Verify::Touched, Verify::Header] {
            let Ok(index) = Index::options().verify(verify).from_bytes(bytes.clone()) else { continue };
            let Ok(map) = Map::<u32, String>::from_index(index.into()) else { continue };
            let all: Result<Vec<_>, _> = map.iter().collect();
            let many = map.get_many(&keys);
            let single = map.get(1000);
            if verify == Verify::Header {
                continue;
            }
            for error in
                [all.as_ref().err(), many.as_ref().err(), single.as_ref().err()].into_iter().flatten()
            {
                assert!(error.is_damage(), "{error}");
                damaged += 1;
            }
            assert!(all.is_err() || all.is_ok_and(|all| all == tuples), "byte {at}");
            if let Ok(many) = many {
                let expected = |key: u32| tuples.get(key as usize / 2).filter(|_| key.is_multiple_of(2));
                assert!(
                    keys.iter()
                        .zip(many)
                        .all(|(&key, value)| value.as_ref() == expected(key).map(|it| &it.1))
                );
            }
            assert!(single.is_err() || single.is_ok_and(|value| value.as_ref() == Some(&tuples[500].1)));
        }
    }
    assert!(damaged > 100, "{damaged} errors");
}
