//! Every look-up, on every instruction set, residence and verification, against a naive oracle.

use pleach::{Index, Isa, Key, OpenOptions, Residence, Value, Verify};
use pleach_builder::{BuildOptions, Harmonia, build_bytes};
use pleach_format::Word;
use pleach_format::meta::Meta;
use pleach_tests::generate::{Random, Shape, mix};
use pleach_tests::naive::{self, Grid};
use pleach_tests::near;
use pleach_tests::{figure, is_long};
use std::fmt::Debug;

/// Keys worth asking for: those of the file, their neighbours, extremes, and random ones.
fn queries<K: Key>(tuples: &[(K, impl Value)], seed: u64) -> Vec<K> {
    let mut random = Random(seed);
    let mut words = vec![0, 1, u128::MAX, u128::MAX - 1];
    for _ in 0..200 {
        words.push(u128::from(random.next()) << 64 | u128::from(random.next()));
    }
    let step = (tuples.len() / 400).max(1);
    for (key, _) in tuples.iter().step_by(step).chain(tuples.last()) {
        let word = key.encode().to_u128();
        words.extend([word, word.wrapping_add(1), word.wrapping_sub(1)]);
    }
    words.into_iter().map(|word| K::decode(K::Word::from_u128(word))).collect()
}

/// Keys of these words, in order; wide ones with something in both halves, floats without NaN, which cannot
/// be a key, and with one zero.
fn keys<K: Key>(words: &[u64]) -> Vec<K> {
    let wide = |word: u64| match K::Word::BYTES {
        16 => u128::from(word) << 64 | u128::from(mix(word)),
        _ => word.into(),
    };
    let key = |&word: &u64| K::decode(K::decode(K::Word::from_u128(wide(word))).encode());
    // Not equal to itself: NaN.
    words.iter().map(key).filter(|key| key.partial_cmp(key).is_some()).collect()
}

/// Compares every look-up of an index with its tuples; how many answers of points that were.
fn check_index<K: Key, V: Value + Debug>(index: &Index, tuples: &[(K, V)], what: &str) -> u64 {
    let view = index.typed::<K, V>().expect("types of the file");
    let keys_only = index.typed::<K, ()>().expect("keys of the file");
    assert_eq!(view.len(), tuples.len() as u64, "{what}");
    let queries = queries(tuples, tuples.len() as u64);
    let lower = |query: K| tuples.partition_point(|&(key, _)| key.encode() < query.encode());
    let upper = |query: K| tuples.partition_point(|&(key, _)| key.encode() <= query.encode());

    let mut ranks = vec![u64::MAX; queries.len()];
    view.lower_bound_batch(&queries, &mut ranks).expect("readable");
    let mut values = vec![V::default(); queries.len()];
    let mut present = vec![u64::MAX; queries.len().div_ceil(64)];
    let found = view.get_batch(&queries, &mut values, &mut present).expect("readable");
    let mut par_values = values.clone();
    let mut par_present = vec![0; present.len()];
    let par_found = view.par_get_batch(&queries, &mut par_values, &mut par_present).expect("readable");
    assert_eq!((par_found, &par_present), (found, &present), "{what}");
    let mut contains = vec![0; present.len()];
    assert_eq!(keys_only.contains_batch(&queries, &mut contains).expect("readable"), found, "{what}");
    assert_eq!(contains, present, "{what}");

    let mut expected_found = 0;
    for (i, &query) in queries.iter().enumerate() {
        let (low, high) = (lower(query), upper(query));
        let expected = (low < high).then(|| tuples[low].1);
        let context = || format!("{what}: query {i} = {query:?}");
        assert_eq!(ranks[i], low as u64, "{}", context());
        assert_eq!(view.lower_bound(query), Ok(low as u64), "{}", context());
        assert_eq!(view.upper_bound(query), Ok(high as u64), "{}", context());
        assert_eq!(view.rank(query), Ok(expected.map(|_| low as u64)), "{}", context());
        assert_eq!(view.contains(query), Ok(expected.is_some()), "{}", context());
        assert_eq!(view.get(query), Ok(expected), "{}", context());
        assert_eq!(keys_only.get(query), Ok(expected.map(|_| ())), "{}", context());
        assert_eq!(view.count(query..=query), Ok((high - low) as u64), "{}", context());
        assert_eq!(present[i / 64] >> (i % 64) & 1, u64::from(expected.is_some()), "{}", context());
        assert_eq!(values[i], expected.unwrap_or_default(), "{}", context());
        assert_eq!(par_values[i], values[i], "{}", context());
        expected_found += usize::from(expected.is_some());
    }
    // The answers of the loop, one by one and in batches.
    let mut compared = queries.len() as u64 * 11;
    assert_eq!(found, expected_found, "{what}");
    compared += near::check(&view, tuples, &queries, what);
    if !queries.len().is_multiple_of(64) {
        assert_eq!(present[queries.len() / 64] >> (queries.len() % 64), 0, "{what}: bits past the end");
    }

    // Batches in order, which are swept where they are dense: all tuples, some, each query again.
    let in_order = |mut queries: Vec<K>| {
        queries.sort_by_key(|query| query.encode());
        queries
    };
    let all: Vec<K> = tuples.iter().map(|tuple| tuple.0).collect();
    let some: Vec<K> =
        all.iter().copied().enumerate().filter(|(i, _)| i % 64 < 9).map(|(_, key)| key).collect();
    for queries in [queries.clone(), [all, queries.clone()].concat(), some, [&queries[..]; 3].concat()] {
        let queries = in_order(queries);
        let (mut ranks, mut values) = (vec![9; queries.len()], vec![V::default(); queries.len()]);
        let mut present = vec![u64::MAX; queries.len().div_ceil(64)];
        view.lower_bound_batch(&queries, &mut ranks).expect("readable");
        view.get_batch(&queries, &mut values, &mut present).expect("readable");
        let mut contains = vec![9; present.len()];
        keys_only.contains_batch(&queries, &mut contains).expect("readable");
        assert_eq!(contains, present, "{what}: in order");
        for (i, &query) in queries.iter().enumerate() {
            let low = lower(query);
            let expected =
                tuples.get(low).filter(|tuple| tuple.0.encode() == query.encode()).map(|tuple| tuple.1);
            assert_eq!(ranks[i], low as u64, "{what}: in order, query {i} = {query:?}");
            assert_eq!(present[i / 64] >> (i % 64) & 1, u64::from(expected.is_some()), "{what}: {query:?}");
            assert_eq!(values[i], expected.unwrap_or_default(), "{what}: in order, query {i} = {query:?}");
        }
        compared += queries.len() as u64 * 3;
        compared += near::check(&view, tuples, &queries, &format!("{what}: in order"));
    }

    // Ranges, from both ends, and the extremes.
    let collect = |range: pleach::Range<'_, K, V>| range.collect::<Result<Vec<_>, _>>().expect("readable");
    for pair in queries.windows(2).step_by(17).take(40) {
        let backwards = pair[1].encode() < pair[0].encode();
        let (a, b) = if backwards { (pair[1], pair[0]) } else { (pair[0], pair[1]) };
        let expected = &tuples[lower(a)..lower(b)];
        assert_eq!(collect(view.range(a..b).expect("readable")), expected, "{what}: {a:?}..{b:?}");
        assert_eq!(view.count(a..=b), Ok((upper(b) - lower(a)) as u64), "{what}");
        let mut both = view.range(a..=b).expect("readable");
        let (mut front, mut back) = (Vec::new(), Vec::new());
        while let Some(tuple) = both.next() {
            front.push(tuple.expect("readable"));
            back.extend(both.next_back().map(|tuple| tuple.expect("readable")));
        }
        front.extend(back.into_iter().rev());
        assert_eq!(front, &tuples[lower(a)..upper(b)], "{what}: both ends of {a:?}..={b:?}");
        assert_eq!(collect(view.get_all(a).expect("readable")), &tuples[lower(a)..upper(a)], "{what}");
    }
    assert_eq!(collect(view.range(..).expect("readable")), tuples, "{what}: all");
    assert_eq!(view.min(), Ok(tuples.first().copied()), "{what}");
    assert_eq!(view.max(), Ok(tuples.last().copied()), "{what}");
    assert_eq!(view.select(tuples.len() as u64), Ok(None), "{what}");
    let middle = tuples.len() / 2;
    assert_eq!(view.select(middle as u64), Ok(tuples.get(middle).copied()), "{what}");
    let (mut keys, mut values) = (vec![K::default(); tuples.len() + 3], vec![V::default(); tuples.len() + 3]);
    let start = middle / 2;
    let copied = view.copy_range(start as u64, &mut keys, &mut values).expect("readable");
    assert_eq!(copied, tuples.len() - start, "{what}");
    let pairs: Vec<(K, V)> = keys.into_iter().zip(values).take(copied).collect();
    assert_eq!(pairs, &tuples[start..], "{what}: copy_range");
    for (start, end) in [(0, tuples.len()), (start, tuples.len() + 7), (start + 1, middle), (middle, 0)] {
        let mut scanned = Vec::new();
        let count = view.scan(start as u64..end as u64, |keys, values| {
            let value = |at: usize| values.get(at).copied().unwrap_or_default();
            scanned.extend(keys.iter().enumerate().map(|(at, &key)| (key, value(at))));
        });
        let end = end.clamp(start.min(tuples.len()), tuples.len());
        assert_eq!(scanned, &tuples[start.min(end)..end], "{what}: scan of {start}..{end}");
        assert_eq!(count, Ok(scanned.len() as u64), "{what}: scan of {start}..{end}");
    }
    let mut count = 0;
    let scanned = view.scan_range(.., |keys, _| count += keys.len()).expect("readable");
    assert_eq!((scanned, count), (tuples.len() as u64, tuples.len()), "{what}: scan_range");
    compared
}

/// Harmonia's tree of a shape that follows from `seed`: every fanout and fill comes up among the sizes.
fn check_harmonia<K: Key, V: Value + Debug>(tuples: &[(K, V)], seed: u64, what: &str) {
    let mut random = Random(seed);
    let fanout = 8 + (random.next() % 121) as u32;
    let fill_percent = 50 + (random.next() % 51) as u32;
    let options =
        BuildOptions { harmonia: Some(Harmonia { fanout, fill_percent }), ..BuildOptions::default() };
    let what = format!("{what} fanout {fanout}, {fill_percent}%");
    let bytes = build_bytes(tuples, &options).unwrap_or_else(|error| panic!("{what}: {error}"));
    let index = OpenOptions::default().verify(Verify::Full).from_bytes(bytes);
    let index = index.unwrap_or_else(|error| panic!("{what}: {error}"));
    let tree = index.harmonia::<K, V>().expect("readable").expect("a tree of these types");
    let queries = queries(tuples, seed);
    let lower = |query: K| tuples.partition_point(|&(key, _)| key.encode() < query.encode());
    for isa in Isa::available() {
        let tree = tree.clone().with(isa);
        let mut ranks = vec![u64::MAX; queries.len()];
        tree.lower_bounds(&queries, &mut ranks).expect("readable");
        for (&query, &rank) in queries.iter().zip(&ranks) {
            assert_eq!(rank, lower(query) as u64, "{what} {isa}: {query:?}");
        }
        for &query in queries.iter().step_by(7) {
            let tuple = tuples.get(lower(query)).filter(|tuple| tuple.0.encode() == query.encode());
            let bits = |value: V| value.to_bits();
            let found = tree.get(query).expect("readable").map(bits);
            assert_eq!(found, tuple.map(|tuple| bits(tuple.1)), "{what} {isa}: {query:?}");
        }
    }
}

/// Sizes around slots, lines, spine lines and levels of this pair of types.
fn sizes<K: Key, V: Value>() -> Vec<usize> {
    let n = 64 / (K::Word::BYTES + <V::Bits as pleach_format::Bits>::BYTES);
    let fanout = pleach_format::spine::Encoding::Delta16.separators(K::Word::BYTES) + 1;
    let mut sizes: Vec<usize> = (0..=2 * n + 1).collect();
    for edge in [n * 4, n * 13, n * 14, n * 15, n * fanout, n * fanout * 2, n * 64, n * fanout * fanout] {
        sizes.extend([edge - 1, edge, edge + 1]);
    }
    sizes.dedup();
    sizes
}

fn check_types<K: Key, V: Value + Debug>() {
    let mut compared = 0;
    for shape in Shape::ALL {
        for size in sizes::<K, V>() {
            // Every second size with a shape, the others with the next one.
            if !is_long() && size > 3 && (size + shape as usize) % 2 == 1 {
                continue;
            }
            let words = shape.words(size, (8 * K::Word::BYTES as u32).min(64), size as u64);
            let tuples: Vec<(K, V)> = keys::<K>(&words)
                .into_iter()
                .enumerate()
                .map(|(i, key)| {
                    let value = V::from_bits(<V::Bits as pleach_format::Bits>::from_u64(
                        mix(i as u64) & 0x000F_FFFF_3FFF_FFFF,
                    ));
                    (key, value)
                })
                .collect();
            let what = format!("{} {} {shape:?} {size}", K::TYPE, V::TYPE);
            let bytes = naive::build(&tuples, &Meta::default(), false);
            let report =
                |bytes: &[u8]| OpenOptions::default().verify(Verify::Full).from_bytes(bytes.to_vec());
            compared += check_index(
                &report(&bytes).unwrap_or_else(|error| panic!("{what}: {error}")),
                &tuples,
                &what,
            );
            // Some of the sizes with each shape: the suite is long.
            if (size / 2 + shape as usize).is_multiple_of(3) {
                check_harmonia(&tuples, mix(size as u64) ^ mix(shape as u64 + 99), &what);
            }
            // With a grid where there need not be one, and without one above lines or groups of them, each on one
            // instruction set: all of them come up among the shapes and sizes.
            let turn = size + shape as usize;
            for grid in [Grid::Always, Grid::No, Grid::Groups] {
                let bytes = naive::build_with(&tuples, &Meta::default(), false, grid);
                let index = report(&bytes).unwrap_or_else(|error| panic!("{what} {grid:?}: {error}"));
                assert_eq!(
                    index.header().grid.is_some(),
                    grid == Grid::Always
                        && index.header().lines > 1
                        && index.header().geometry.key_bytes <= 8
                );
                let all = Isa::available();
                let isa = all[(turn / 2 + grid as usize) % all.len()];
                let index = OpenOptions::default().isa(Some(isa)).from_bytes(bytes.clone()).expect("opens");
                compared += check_index(&index, &tuples, &format!("{what} {grid:?} {isa}"));
            }
            let small = size < 40 || size % 5 == 0;
            for isa in Isa::available() {
                let options = OpenOptions::default().isa(Some(isa));
                let index = options.from_bytes(bytes.clone()).expect("opens");
                compared += check_index(&index, &tuples, &format!("{what} {isa}"));
            }
            if small {
                let folder = tempfile::tempdir().expect("a temp folder");
                let path = folder.path().join("t.pleach");
                std::fs::write(&path, &bytes).expect("written");
                // The same of these.
                for residence in [Residence::Mapped, Residence::Resident] {
                    let verify = Verify::ALL[(turn + residence as usize) % Verify::ALL.len()];
                    let options = OpenOptions::default().residence(residence).verify(verify);
                    let index = options.open(&path).expect("opens");
                    compared += check_index(&index, &tuples, &format!("{what} {residence:?} {verify}"));
                }
            }
        }
    }
    figure(21, &format!("{compared} answers compared"));
}

macro_rules! pairs {
    ($($name:ident: $key:ty, $value:ty;)*) => {
        $(#[test] fn $name() { check_types::<$key, $value>(); })*
    };
}
pairs! {
    u32_none: u32, ();
    u32_u32: u32, u32;
    u32_u64: u32, u64;
    u64_none: u64, ();
    u64_u32: u64, u32;
    u64_u64: u64, u64;
    i32_f32: i32, f32;
    i32_i64: i32, i64;
    i64_f64: i64, f64;
    i64_i32: i64, i32;
    u128_none: u128, ();
    u128_u32: u128, u32;
    u128_u64: u128, u64;
    f64_u32: f64, u32;
    f64_i64: f64, i64;
}
