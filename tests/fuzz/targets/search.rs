//! Tuples of chance, built and searched by every operation, against a sorted vector: for each instruction
//! set, with and without verification, whole and damaged. A damaged file answers rightly or refuses, where
//! it verifies.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pleach::classic::Classic;
use pleach::{Index, Isa, Key, OpenOptions, Structure, Typed, Value, Verify};
use pleach_builder::classic::{self, Compressed, TreeKey, Vectors};
use pleach_builder::{Btree, BuildOptions, Fast, Harmonia, Layout, Unique, build_bytes, build_strings_bytes};
use pleach_format::classic::paged::{Form, Prefix};
use pleach_format::classic::{Geometry, TreeWord, section};
use pleach_format::{Bits, KeyType, Word};
use pleach_tests::generate::{Random, Shape, Taker, mix};
use std::fmt::Debug;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Answers that were compared.
static ANSWERS: AtomicU64 = AtomicU64::new(0);

extern "C" fn tell() {
    eprintln!("answers compared: {}", ANSWERS.load(Relaxed));
}

/// Words of a shape, and words of the input.
fn words(taker: &mut Taker<'_>, bits: u32) -> Vec<u64> {
    let max = u64::MAX >> (64 - bits);
    let shape = Shape::ALL[taker.take(1) as usize % Shape::ALL.len()];
    let count = taker.take(2) as usize % 1500;
    let mut words = shape.words(count, bits, taker.take(1));
    let listed = taker.take(1) as usize % 64;
    for _ in 0..listed {
        let width = 1 + taker.take(1) as usize % 8;
        words.push(taker.take(width) & max);
    }
    // In the order of a mixer: what is built is not sorted.
    words.sort_by_key(|&word| mix(word));
    words
}

/// A FAST tree of some form that holds words of 4 bytes, of short pages.
fn fast(bits: u64) -> Fast {
    let form = [Form::Full, Form::Delta, Form::Auto, Form::Full][bits as usize % 4];
    Fast { form, padded: bits & 4 != 0, d_p: Some(6 + (bits >> 3) as u32 % 3), ..Fast::default() }
}

/// Without the sections that keys of this type cannot have.
fn options(taker: &mut Taker<'_>, key_type: KeyType) -> BuildOptions {
    let without = match key_type {
        key_type if key_type.is_bytes() => 0b00100,
        KeyType::U128 => 0b00100,
        _ => 0,
    };
    let bits = taker.take(2) & !without;
    let layout = Layout {
        spine: bits & 0x8000 == 0,
        grid: bits & 1 != 0,
        columns: bits & 2 != 0,
        packed: bits & 4 != 0,
        fast: (bits & 8 != 0).then(|| fast(bits >> 9)),
        wide: bits & 0x2000 != 0,
        harmonia: (bits & 16 != 0)
            .then(|| Harmonia { fanout: 8 << (bits >> 5 & 3), fill_percent: 50 + (bits >> 7) as u32 % 51 }),
        btree: (bits & 0x1000 != 0).then(|| Btree { order: 4 + (bits >> 4) as u32 % 20 }),
        values: pleach_builder::Values::Auto,
    };
    let memory_bytes = if bits & 0x4000 != 0 { 1 } else { 1 << 30 };
    let unique = [None, Some(Unique::First), Some(Unique::Last)][(bits >> 8) as usize % 3];
    BuildOptions { threads: 1, memory_bytes, unique, ..BuildOptions::default() }.with_layout(layout)
}

/// An answer is right, or an error where that is allowed.
#[track_caller]
fn took<T: PartialEq + Debug, E: Debug>(found: Result<T, E>, wanted: T, may_refuse: bool) {
    match found {
        Ok(found) => assert_eq!(found, wanted),
        Err(error) => assert!(may_refuse, "{error:?}"),
    }
    ANSWERS.fetch_add(1, Relaxed);
}

fn compare<K: Key, V: Value + Debug>(
    view: &Typed<'_, K, V>,
    tuples: &[(K, V)],
    taker: &mut Taker<'_>,
    may_refuse: bool,
) where
    V::Bits: Debug,
{
    let bits = |tuple: &(K, V)| (tuple.0.encode(), tuple.1.to_bits());
    let mut random = Random(taker.take(2));
    let max = K::Word::MAX.to_u128() as u64;
    let queries: Vec<K> = (0..60)
        .map(|number| {
            let some = tuples.get(random.below(tuples.len() as u64 + 1) as usize);
            let near = some.map_or(0, |tuple| tuple.0.encode().to_u128() as u64);
            let word = match number % 6 {
                0..=2 => near,
                3 => near.wrapping_add(1) & max,
                4 => near.wrapping_sub(1) & max,
                _ => random.next() & max,
            };
            K::decode(K::Word::from_u64(word))
        })
        .collect();
    let lower = |key: K| tuples.partition_point(|tuple| tuple.0.encode() < key.encode());
    let upper = |key: K| tuples.partition_point(|tuple| tuple.0.encode() <= key.encode());
    let first = |key: K| tuples.get(lower(key)).filter(|tuple| tuple.0.encode() == key.encode());
    for (number, &key) in queries.iter().enumerate() {
        let (low, high) = (lower(key), upper(key));
        took(view.lower_bound(key), low as u64, may_refuse);
        took(view.upper_bound(key), high as u64, may_refuse);
        took(view.contains(key), low < high, may_refuse);
        took(view.rank(key), (low < high).then_some(low as u64), may_refuse);
        took(
            view.get(key).map(|value| value.map(Value::to_bits)),
            first(key).map(|tuple| tuple.1.to_bits()),
            may_refuse,
        );
        took(
            view.select(low as u64).map(|tuple| tuple.map(|tuple| bits(&tuple))),
            tuples.get(low).map(bits),
            may_refuse,
        );
        if number % 8 == 0 {
            let other = queries[(number + 1) % queries.len()];
            let wanted = if lower(other) > low { &tuples[low..lower(other)] } else { &[] };
            took(view.count(key..other), wanted.len() as u64, may_refuse);
            let found =
                view.range(key..other).and_then(|range| range.take(50).collect::<Result<Vec<_>, _>>());
            let wanted: Vec<_> = wanted.iter().take(50).map(bits).collect();
            took(found.map(|found| found.iter().map(bits).collect()), wanted, may_refuse);
            let found =
                view.get_all(key).and_then(|range| range.rev().take(50).collect::<Result<Vec<_>, _>>());
            let wanted: Vec<_> = tuples[low..high].iter().rev().take(50).map(bits).collect();
            took(found.map(|found| found.iter().map(bits).collect()), wanted, may_refuse);
        }
    }
    let mut ranks = vec![u64::MAX; queries.len()];
    let found = view.lower_bound_batch(&queries, &mut ranks).map(|()| ranks);
    took(found, queries.iter().map(|&key| lower(key) as u64).collect(), may_refuse);
    let (mut values, mut present) = (vec![V::default(); queries.len()], vec![0; queries.len().div_ceil(64)]);
    let found = view.get_batch(&queries, &mut values, &mut present);
    let is_answered = found.is_ok();
    took(found, queries.iter().filter(|&&key| first(key).is_some()).count(), may_refuse);
    if is_answered {
        for (number, &key) in queries.iter().enumerate() {
            let is_present = present[number / 64] >> (number % 64) & 1 == 1;
            let found = is_present.then(|| values[number].to_bits());
            took(Ok::<_, ()>(found), first(key).map(|tuple| tuple.1.to_bits()), false);
        }
    }
    let mut all = Vec::new();
    let scanned = view.scan(0..view.len(), |keys, values| {
        // Of no bytes: none.
        let value = |slot: usize| values.get(slot).copied().unwrap_or_default();
        all.extend(keys.iter().enumerate().map(|(slot, &key)| bits(&(key, value(slot)))));
    });
    took(scanned.map(|_| all), tuples.iter().map(bits).collect(), may_refuse);
    took(view.max().map(|tuple| tuple.map(|tuple| bits(&tuple))), tuples.last().map(bits), may_refuse);
    let index = view.index();
    if let Some(packed) = index.packed_keys::<K>() {
        let rank = random.below(tuples.len() as u64 + 1);
        let wanted = tuples.get(rank as usize).map(|tuple| tuple.0.encode());
        took(packed.get(rank).map(|key| key.map(|key| key.encode())), wanted, may_refuse);
    }
    // What is damaged answers rightly only where it is verified.
    let verify = if may_refuse { Verify::Touched } else { Verify::Header };
    for structure in Structure::ALL.into_iter().filter(|structure| structure.is_in(index.header())) {
        let options = OpenOptions::default().structure(structure).verify(verify);
        let index = options.from_bytes(index.as_bytes().into_owned()).expect("opens");
        let mut ranks = vec![0; queries.len()];
        let view = index.typed::<K, V>().expect("types of the file");
        let found = view.lower_bound_batch(&queries, &mut ranks).map(|()| ranks);
        took(found, queries.iter().map(|&key| lower(key) as u64).collect(), may_refuse);
        for &key in &queries {
            took(view.contains(key), lower(key) < upper(key), may_refuse);
        }
    }
}

fn numbers<K: Key, V: Value + Debug>(taker: &mut Taker<'_>)
where
    V::Bits: Debug,
{
    let options = options(taker, K::TYPE);
    let bits = 8 * (K::Word::BYTES as u32).min(8);
    let mut tuples: Vec<(K, V)> = words(taker, bits)
        .into_iter()
        .enumerate()
        .map(|(row, word)| {
            (K::decode(K::Word::from_u64(word)), V::from_bits(V::Bits::from_u64(mix(row as u64))))
        })
        .collect();
    let bytes = build_bytes(&tuples, &options).expect("builds");
    tuples.sort_by_key(|tuple| tuple.0.encode());
    match options.unique {
        Some(Unique::Last) => {
            tuples.reverse();
            tuples.dedup_by_key(|tuple| tuple.0.encode());
            tuples.reverse();
        }
        Some(_) => tuples.dedup_by_key(|tuple| tuple.0.encode()),
        None => {}
    }
    let isas = Isa::available();
    let isa = isas[taker.take(1) as usize % isas.len()];
    let verify = Verify::ALL[taker.take(1) as usize % Verify::ALL.len()];
    let index = Index::options().isa(Some(isa)).verify(verify).from_bytes(bytes.clone()).expect("opens");
    let view = index.typed::<K, V>().expect("types");
    assert_eq!(view.len(), tuples.len() as u64);
    compare(&view, &tuples, taker, false);
    // Damaged anywhere: never a wrong answer where what is touched is verified.
    let mut damaged = bytes;
    for _ in 0..=taker.take(1) % 3 {
        let at = taker.take(3) as usize % damaged.len();
        damaged[at] ^= (taker.take(1) as u8).max(1);
    }
    if let Ok(index) = Index::options().isa(Some(isa)).verify(Verify::Touched).from_bytes(damaged) {
        let view = index.typed::<K, V>().expect("types");
        compare(&view, &tuples, taker, true);
    }
}

fn strings(key_type: KeyType, taker: &mut Taker<'_>) {
    let options = options(taker, key_type);
    let count = taker.take(1) as usize * 2;
    let mut random = Random(taker.take(1));
    let (letters, longest) = (1 + taker.take(1) % 255, 1 + taker.take(1) % 70);
    // With parts, keys have long beginnings in common, and are kept by page.
    let parts = taker.take(1) % 7;
    let mut tuples: Vec<(Vec<u8>, u32)> = (0..count as u32)
        .map(|row| {
            let length = match key_type {
                KeyType::Fixed(bytes) => u64::from(bytes),
                _ => random.below(longest),
            };
            let first = if key_type == KeyType::Utf8 { b'a' } else { 0 };
            let letters = if key_type == KeyType::Utf8 { letters % 25 + 1 } else { letters };
            let mut key: Vec<u8> = Vec::new();
            if parts > 0 && !matches!(key_type, KeyType::Fixed(_)) {
                for _ in 0..random.below(4) {
                    let part = random.below(parts);
                    key.extend((0..20).map(|at| first + (mix(part * 99 + at) % letters) as u8));
                }
            }
            key.extend((0..length).map(|_| first + random.below(letters) as u8));
            (key, row)
        })
        .collect();
    let bytes = build_strings_bytes(key_type, &tuples, &options).expect("builds");
    tuples.sort_by(|a, b| a.0.cmp(&b.0));
    match options.unique {
        Some(Unique::Last) => {
            tuples.reverse();
            tuples.dedup_by(|a, b| a.0 == b.0);
            tuples.reverse();
        }
        Some(_) => tuples.dedup_by(|a, b| a.0 == b.0),
        None => {}
    }
    let isas = Isa::available();
    let isa = isas[taker.take(1) as usize % isas.len()];
    let mut damaged = bytes.clone();
    let at = taker.take(3) as usize % damaged.len();
    damaged[at] ^= (taker.take(1) as u8).max(1);
    for (bytes, verify, may_refuse) in [(bytes, Verify::Header, false), (damaged, Verify::Touched, true)] {
        let Ok(index) = Index::options().isa(Some(isa)).verify(verify).from_bytes(bytes) else {
            assert!(may_refuse);
            continue;
        };
        let view = index.strings::<u32>().expect("types");
        let mut queries: Vec<Vec<u8>> =
            tuples.iter().step_by(tuples.len() / 20 + 1).map(|tuple| tuple.0.clone()).collect();
        let near = queries.clone();
        if !matches!(key_type, KeyType::Fixed(_)) {
            queries.extend(near.iter().map(|key| [&key[..], b"a"].concat()));
            queries.extend(near.iter().map(|key| key[..key.len() / 2].to_vec()));
        }
        let lower = |key: &[u8]| tuples.partition_point(|tuple| &tuple.0[..] < key);
        let first = |key: &[u8]| tuples.get(lower(key)).filter(|tuple| tuple.0 == key).map(|tuple| tuple.1);
        for key in &queries {
            took(view.lower_bound(key), lower(key) as u64, may_refuse);
            took(view.upper_bound(key), tuples.partition_point(|tuple| tuple.0 <= *key) as u64, may_refuse);
            took(view.get(key), first(key), may_refuse);
            let rank = lower(key) as u64;
            took(view.select(rank), tuples.get(lower(key)).cloned(), may_refuse);
            let prefix = &key[..key.len() / 2];
            let wanted = tuples.iter().filter(|tuple| tuple.0.starts_with(prefix)).count() as u64;
            took(view.prefix_ranks(prefix).map(|ranks| ranks.end - ranks.start), wanted, may_refuse);
        }
        let mut ranks = vec![0; queries.len()];
        let found = view.lower_bound_batch(&queries, &mut ranks).map(|()| ranks);
        took(found, queries.iter().map(|key| lower(key) as u64).collect(), may_refuse);
        let (mut values, mut present) = (vec![0; queries.len()], vec![0; queries.len().div_ceil(64)]);
        if view.get_batch(&queries, &mut values, &mut present).is_ok() {
            for (number, key) in queries.iter().enumerate() {
                let found = (present[number / 64] >> (number % 64) & 1 == 1).then(|| values[number]);
                took(Ok::<_, ()>(found), first(key), false);
            }
        }
    }
}

/// A classic tree of any depths answers as the list does, and says of each slot which key is there.
fn descend<W: TreeKey + TreeWord + Debug>(keys: &[W], geometry: &Geometry, form: Form, bytes: &[u8]) {
    assert_eq!(section::load(&section::store(geometry, form), geometry.keys), Some((*geometry, form)));
    let Some(tree) = Classic::new(geometry, form, bytes, keys) else { return };
    let queries: Vec<W> = keys
        .iter()
        .step_by(keys.len() / 40 + 1)
        .flat_map(|key| [-1i128, 0, 1].map(|near| W::narrow(key.widen().wrapping_add_signed(near))))
        .chain([W::narrow(0), W::MAX])
        .collect();
    let wanted: Vec<u64> =
        queries.iter().map(|query| keys.partition_point(|key| key < query) as u64).collect();
    let mut ranks = vec![0; queries.len()];
    for isa in Isa::available() {
        let tree = tree.clone().with(isa);
        tree.lower_bounds(&queries, &mut ranks);
        took(Ok::<_, ()>(&ranks), &wanted, false);
        for (&query, &rank) in queries.iter().zip(&wanted) {
            took(Ok::<_, ()>(tree.lower_bound(query)), rank, false);
        }
    }
    if form == Form::Full {
        let plan = geometry.tree().expect("it was built");
        for slot in 0..plan.slots() {
            if let Some(index) = plan.index_of(slot) {
                assert_eq!(plan.slot_of(index), Some(slot));
            }
        }
    }
}

fn trees<W: TreeKey + TreeWord + Debug>(taker: &mut Taker<'_>) -> (Vec<W>, Geometry) {
    let mut keys: Vec<W> = words(taker, 64).into_iter().map(|word| W::narrow(word.into())).collect();
    if W::BYTES == 16 {
        // Keys that differ far up, far down, or in between.
        let shift = taker.take(1) % 65;
        keys.iter_mut().for_each(|key| *key = W::narrow(key.widen() << shift));
    }
    keys.sort_unstable();
    let bits = taker.take(2) as u32;
    let d_k = 1 + bits % 4;
    let d_l = d_k * (1 + (bits >> 2) % 3);
    let d_p = d_l * (1 + (bits >> 4) % 4);
    let (count, padded) = (keys.len() as u64, bits >> 7 & 1 == 1);
    (keys, Geometry { keys: count, key_bytes: W::BYTES as u32, d_k, d_l, d_p, padded, aligned: false })
}

fn full<W: TreeKey + TreeWord + Debug>(taker: &mut Taker<'_>) {
    let (keys, geometry) = trees::<W>(taker);
    let Some(tree) = geometry.tree() else { return };
    let mut bytes = vec![0xA5; tree.bytes() as usize];
    classic::build(&keys, &geometry, Vectors::Best, &mut bytes).expect("builds");
    descend(&keys, &geometry, Form::Full, &bytes);
}

fn compressed<W: TreeKey + TreeWord + Debug>(taker: &mut Taker<'_>) {
    let form = [Form::Delta, Form::Partial, Form::Auto][taker.take(1) as usize % 3];
    let (keys, geometry) = trees::<W>(taker);
    let plan = Compressed::plan(&keys, &geometry, (form, Prefix::default()), Vectors::Best);
    let Ok(plan) = plan else { return };
    let mut bytes = vec![0xA5; plan.bytes() as usize];
    plan.build(&keys, &mut bytes).expect("builds");
    descend(&keys, &geometry, form, &bytes);
}

fn packed_trees(taker: &mut Taker<'_>) {
    match taker.take(1) % 3 {
        0 => compressed::<u32>(taker),
        1 => compressed::<u64>(taker),
        _ => compressed::<u128>(taker),
    }
}

fuzz_target!(|data: &[u8]| {
    static ONCE: Once = Once::new();
    // SAFETY: `tell` is a function of the program's whole life and prints a number.
    ONCE.call_once(|| unsafe {
        libc::atexit(tell);
    });
    let mut taker = Taker(data);
    match taker.take(1) % 10 {
        0 => numbers::<u64, u64>(&mut taker),
        1 => numbers::<u32, u32>(&mut taker),
        2 => numbers::<u64, ()>(&mut taker),
        3 => numbers::<i64, f64>(&mut taker),
        4 => numbers::<u128, u32>(&mut taker),
        5 => strings(KeyType::Fixed(1 + (taker.take(1) % 20) as u16), &mut taker),
        6 => strings(KeyType::Bytes, &mut taker),
        7 => strings(KeyType::Utf8, &mut taker),
        8 => match taker.take(1) % 3 {
            0 => full::<u32>(&mut taker),
            1 => full::<u64>(&mut taker),
            _ => full::<u128>(&mut taker),
        },
        _ => packed_trees(&mut taker),
    }
});
