//! Every list and tree, vector and number of queries in flight against `partition_point`. Vectors that
//! this CPU lacks are rows too: portable code of the same k answers for them.

use super::*;

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 31).wrapping_mul(0x7FB5_D329_728E_A185);
    let x = (x ^ x >> 27).wrapping_mul(0x81DA_DEF4_BC2D_D44D);
    x ^ x >> 33
}

trait Number: KaryWord {
    const BITS: u32;
    fn narrow(word: u64) -> Self;
    fn widen(self) -> u64;
}
impl Number for u32 {
    const BITS: u32 = 32;
    fn narrow(word: u64) -> Self {
        word as u32
    }
    fn widen(self) -> u64 {
        self.into()
    }
}
impl Number for u64 {
    const BITS: u32 = 64;
    fn narrow(word: u64) -> Self {
        word
    }
    fn widen(self) -> u64 {
        self
    }
}

/// A way to the ranks of many queries: its name, and whether it takes one query at a time.
type Search<'a, W> = (String, Box<dyn Fn(&[W], &mut [u64]) + 'a>);

/// Every variant over the same keys: the one table of the tests.
fn variants<'a, W: Number>(keys: &'a [W], trees: &'a [(Vectors, Vec<W>)]) -> Vec<Search<'a, W>> {
    let mut all: Vec<Search<'a, W>> = Vec::new();
    for &(vectors, ref slots) in trees {
        let list = List::new(keys).with(vectors, InFlight::Eight);
        let tree = Tree::new(vectors, keys.len(), slots).expect("enough slots");
        assert_eq!((list.vectors(), tree.vectors()), (vectors, vectors));
        let one = list.clone();
        all.push((
            format!("list {vectors:?}, one by one"),
            Box::new(move |queries, ranks| {
                queries.iter().zip(ranks).for_each(|(&query, rank)| *rank = one.lower_bound(query));
            }),
        ));
        let one = tree.clone();
        all.push((
            format!("tree {vectors:?}, one by one"),
            Box::new(move |queries, ranks| {
                queries.iter().zip(ranks).for_each(|(&query, rank)| *rank = one.lower_bound(query));
            }),
        ));
        for in_flight in InFlight::ALL {
            let list = list.clone().with(vectors, in_flight);
            all.push((
                format!("list {vectors:?} {in_flight:?}"),
                Box::new(move |queries, ranks| list.lower_bounds(queries, ranks)),
            ));
            let tree = tree.clone().with(in_flight);
            all.push((
                format!("tree {vectors:?} {in_flight:?}"),
                Box::new(move |queries, ranks| tree.lower_bounds(queries, ranks)),
            ));
        }
        for reach in [1, 100] {
            let list = List::with_reach(keys, vectors, InFlight::Four, reach);
            all.push((
                format!("list {vectors:?}, gathers reach {reach}"),
                Box::new(move |queries, ranks| list.lower_bounds(queries, ranks)),
            ));
        }
        all.push((
            format!("list {vectors:?}, threads"),
            Box::new(move |queries, ranks| list.par_lower_bounds(queries, ranks)),
        ));
        all.push((
            format!("tree {vectors:?}, threads"),
            Box::new(move |queries, ranks| tree.par_lower_bounds(queries, ranks)),
        ));
    }
    all
}

fn trees<W: Number>(keys: &[W]) -> Vec<(Vectors, Vec<W>)> {
    let tree = |vectors: Vectors| {
        let mut slots = vec![W::narrow(7); Tree::<W>::slots(vectors, keys.len()).expect("small") + 3];
        assert!(Tree::linearise(vectors, keys, &mut slots).is_some());
        (vectors, slots)
    };
    Vectors::ALL.into_iter().map(tree).collect()
}

fn check<W: Number>(keys: &[W], queries: &[W], what: &str) {
    let expected: Vec<u64> =
        queries.iter().map(|query| keys.partition_point(|key| key < query) as u64).collect();
    let trees = trees(keys);
    let mut ranks = vec![0; queries.len()];
    for (name, search) in variants(keys, &trees) {
        ranks.fill(u64::MAX);
        search(queries, &mut ranks);
        for (at, (rank, expected)) in ranks.iter().zip(&expected).enumerate() {
            assert_eq!(rank, expected, "{what}, {} keys, {name}, {:?}", keys.len(), queries[at]);
        }
    }
}

/// Every size up to some, and those around full trees of every k.
fn sizes() -> Vec<usize> {
    if cfg!(miri) {
        return vec![0, 1, 2, 4, 5, 17, 26];
    }
    let mut sizes: Vec<usize> = (0..40).collect();
    for k in [3usize, 5, 9, 17] {
        for power in 1..8 {
            let full = k.pow(power);
            if full <= 5000 {
                // Full, one key less and more, a node more and less, and a whole last node of the root.
                sizes.extend([
                    full - 1,
                    full,
                    full + 1,
                    full + k - 1,
                    full + k,
                    full - k,
                    2 * full,
                    2 * full - 1,
                ]);
                sizes.push((k - 1) * full);
            }
        }
    }
    sizes.extend([1000, 12_345]);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

type Draw = fn(u64, u32) -> u64;

fn shapes() -> [(&'static str, Draw); 7] {
    [
        ("spread", |i, _| mix(i)),
        ("dense", |i, _| i),
        ("every third", |i, _| 3 * i + 1),
        ("duplicates", |i, _| mix(i) % 7),
        ("zero", |_, _| 0),
        ("greatest", |_, _| u64::MAX),
        // Around the sign bit and up to the greatest, with runs.
        ("high", |i, bits| {
            (1u64 << (bits - 1)).wrapping_add(mix(i) % 64).wrapping_sub(32) | (mix(!i) % 3) << 40
        }),
    ]
}

/// The ends, keys and their neighbours on both sides.
fn queries<W: Number>(keys: &[W]) -> Vec<W> {
    let greatest = W::GREATEST.widen();
    let mut queries = vec![W::narrow(0), W::narrow(1), W::GREATEST, W::narrow(greatest - 1)];
    queries.extend([greatest / 2, greatest / 2 + 1].map(W::narrow));
    let step = (keys.len() / 150).max(1);
    let ends = keys.iter().rev().take(20).chain(keys.iter().take(20));
    for key in keys.iter().step_by(step).chain(ends) {
        let key = key.widen();
        queries.extend([key, key.wrapping_add(1), key.wrapping_sub(1)].map(W::narrow));
    }
    queries.extend((0..50).map(|i| W::narrow(mix(i ^ 0xABCD))));
    queries
}

fn check_all<W: Number>() {
    for (name, draw) in shapes() {
        for count in sizes() {
            let mut keys: Vec<W> = (0..count as u64).map(|i| W::narrow(draw(i, W::BITS))).collect();
            keys.sort_unstable();
            check(&keys, &queries(&keys), name);
        }
    }
}

#[test]
fn keys_of_4_bytes() {
    check_all::<u32>();
}

#[test]
fn keys_of_8_bytes() {
    check_all::<u64>();
}

/// Every rank of every small list, for queries between, at and beyond its keys.
#[test]
#[cfg_attr(miri, ignore = "too long")]
fn every_rank_of_every_small_list() {
    for count in 0..330 {
        let keys: Vec<u32> = (0..count).map(|i| 2 * i + 1).collect();
        let queries: Vec<u32> = (0..2 * count + 2).collect();
        check(&keys, &queries, "odd numbers");
    }
}

#[test]
fn k_follows_from_the_vector() {
    let lanes = Vectors::ALL.map(|vectors| (vectors.lanes::<u32>() + 1, vectors.lanes::<u64>() + 1));
    assert_eq!(lanes, [(5, 3), (5, 3), (5, 3), (9, 5), (17, 9)]);
    assert!(Vectors::best().is_available());
    assert!(Vectors::Portable.is_available());
}

/// Words in no order, and slots that no tree has: answers are ranks inside the bounds.
#[test]
fn forged_words_end_inside() {
    let rounds = if cfg!(miri) { 3 } else { 200 };
    for round in 0..rounds {
        let count = [0, 1, 3, 80, 81, 700, 728][round as usize % 7] + (round as usize / 50);
        let slots = Tree::<u32>::slots(Vectors::Sse, count).expect("small");
        let words: Vec<u32> = (0..slots.max(6 * count) as u64)
            .map(|i| if mix(i ^ round).is_multiple_of(3) { 0 } else { mix(i + round) as u32 })
            .collect();
        let queries: Vec<u32> = (0..40).map(|i| mix(i + 7 * round) as u32).chain([0, 1, u32::MAX]).collect();
        let forged: Vec<(Vectors, Vec<u32>)> =
            Vectors::ALL.into_iter().map(|vectors| (vectors, [&words[..], &[1; 64]].concat())).collect();
        let mut ranks = vec![0; queries.len()];
        for (name, search) in variants(&words[..count], &forged) {
            ranks.fill(u64::MAX);
            search(&queries, &mut ranks);
            assert!(ranks.iter().all(|&rank| rank <= count as u64), "{name}, {count} keys: {ranks:?}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let keys: Vec<u64> = (0..100).collect();
    for vectors in Vectors::ALL {
        let slots = Tree::<u64>::slots(vectors, keys.len()).expect("small");
        let mut words = vec![0; slots];
        assert!(Tree::linearise(vectors, &keys, &mut words[1..]).is_none());
        assert!(Tree::linearise(vectors, &keys, &mut words).is_some());
        assert!(Tree::new(vectors, 100, &words[1..]).is_none());
        assert!(Tree::new(vectors, usize::MAX, &words).is_none());
        let tree = Tree::new(vectors, 100, &words).expect("a tree");
        // Fewer places for answers than queries: the other queries are ignored.
        let mut ranks = [9; 2];
        tree.lower_bounds(&[3, 200, 1], &mut ranks);
        assert_eq!(ranks, [3, 100]);
        List::new(&keys).with(vectors, InFlight::One).lower_bounds(&[4, 300, 1], &mut ranks);
        assert_eq!(ranks, [4, 100]);
    }
}
