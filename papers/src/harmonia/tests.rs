//! Tests of batches against a `BTreeMap` that applies the operations one after another; the tree's rules are
//! checked after each batch.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

const ALL: [(Order, Counting); 4] = [
    (Order::Leaf, Counting::Chunk),
    (Order::Leaf, Counting::Operation),
    (Order::Batch, Counting::Chunk),
    (Order::Batch, Counting::Operation),
];

/// Checks every rule of the tree: breadth-first levels, prefix sums, separators, counts, padding, order.
fn check<K: Key, V: Value>(tree: &HarmoniaTree<K, V>) {
    let levels = tree.levels();
    let (stride, fanout) = (tree.stride_words(), tree.fanout() as usize);
    let nodes: u64 = levels.iter().map(|level| level.nodes).sum();
    assert_eq!(tree.counts().len() as u64, nodes);
    assert_eq!(tree.keys().len() as u64, nodes * stride as u64);
    assert_eq!(tree.keys().as_ptr() as usize % 64, 0);
    assert_eq!(stride * K::Word::BYTES, (fanout * K::Word::BYTES).next_multiple_of(64));
    let node = |node: u64| {
        let words = &tree.keys()[node as usize * stride..][..stride];
        let (keys, padding) = words.split_at(tree.counts()[node as usize].into());
        assert!(keys.len() < fanout && keys.is_sorted() && padding.iter().all(|&word| word == K::Word::MAX));
        keys
    };
    let Some(leaves) = levels.last() else {
        assert!(tree.is_empty() && tree.children() == [0]);
        return;
    };
    assert_eq!(levels[0], HarmoniaLevel { first: 0, nodes: 1, ..levels[0] });
    assert_eq!(tree.values().len(), leaves.nodes as usize * fanout);
    assert_eq!(tree.children().len() as u64, leaves.first + 1);
    assert_eq!(u64::from(tree.children()[leaves.first as usize]), nodes);
    let mut below = leaves.first..nodes;
    // For each node of the level below: the first and the last key under it.
    let mut spans = Vec::new();
    for leaf in below.clone() {
        let keys = node(leaf);
        let is_last = leaf + 1 == nodes;
        assert!(keys.len() as u64 >= if is_last { 1 } else { tree.least_keys().into() }, "leaf {leaf}");
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
        spans.push((keys[0], keys[keys.len() - 1]));
    }
    for level in levels.iter().rev().skip(1) {
        assert_eq!(level.first + level.nodes, below.start, "levels follow each other");
        let mut above = Vec::new();
        let mut child = below.start;
        for at in level.first..level.first + level.nodes {
            let (keys, first) = (node(at), child);
            assert_eq!(u64::from(tree.children()[at as usize]), first);
            for (&separator, child) in keys.iter().zip(first..) {
                let place = (child - below.start) as usize;
                assert!(spans[place].1 <= separator && separator < spans[place + 1].0);
            }
            assert!(at + 1 == level.first + level.nodes || keys.len() as u32 == tree.node_keys());
            child += keys.len() as u64 + 1;
            above
                .push((spans[(first - below.start) as usize].0, spans[(child - below.start) as usize - 1].1));
        }
        assert_eq!(child, below.end, "every node has one parent");
        (below, spans) = (level.first..level.first + level.nodes, above);
    }
    let tuples: u64 = tree.leaves().map(|(keys, _)| keys.len() as u64).sum();
    assert_eq!(tuples, tree.len());
}

/// Applies the operations one after another; returns the expected report.
fn oracle<K: Key + Ord, V: Value>(map: &mut BTreeMap<K, V>, batch: &[Change<K, V>]) -> Report {
    let mut report = Report::default();
    for change in batch {
        let is_there = map.contains_key(&change.key());
        let counter = match (change, is_there) {
            (Change::Put(..), false) => &mut report.inserted,
            (Change::Put(..) | Change::Update(..), true) => &mut report.updated,
            (Change::Update(..), false) => &mut report.absent_updates,
            (Change::Delete(_), true) => &mut report.deleted,
            (Change::Delete(_), false) => &mut report.absent_deletes,
        };
        *counter += 1;
        match *change {
            Change::Put(key, value) => drop(map.insert(key, value)),
            Change::Update(key, value) => drop(map.get_mut(&key).map(|old| *old = value)),
            Change::Delete(key) => drop(map.remove(&key)),
        }
    }
    report
}

/// Applies a batch to a copy of the tree with each of the options; the tree takes the first result.
fn apply<K: Key + Ord, V: Value>(
    tree: &mut HarmoniaTree<K, V>,
    map: &mut BTreeMap<K, V>,
    batch: &[Change<K, V>],
    threads: &[usize],
) -> Report {
    let before = tree.len();
    let wanted = oracle(map, batch);
    let mut first = None;
    for (order, counting) in ALL {
        for &threads in threads {
            let mut copy = tree.clone();
            let report = copy.apply_with(batch, &BatchOptions { threads, order, counting }).unwrap();
            let way = format!("{order:?} {counting:?} {threads} threads, {} operations", batch.len());
            let counts = |report: Report| {
                let Report { inserted, updated, deleted, absent_deletes, absent_updates, superseded, .. } =
                    report;
                (inserted, updated, deleted, absent_deletes, absent_updates, superseded)
            };
            if order == Order::Leaf {
                assert_eq!(counts(report), counts(wanted), "{way}");
            } else {
                let (inserted, updated, deleted, absent_deletes, absent_updates, superseded) = counts(report);
                let all = inserted + updated + deleted + absent_deletes + absent_updates + superseded;
                assert!(
                    all == batch.len() as u64 && before + inserted - deleted == map.len() as u64,
                    "{way}"
                );
            }
            assert!(copy.iter().eq(map.iter().map(|(&key, &value)| (key, value))), "{way}");
            check(&copy);
            first.get_or_insert((copy, report));
        }
    }
    let (outcome, report) = first.unwrap();
    *tree = outcome;
    report
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

fn loaded(tuples: u64, fanout: u32, percent: u32) -> (HarmoniaTree<u64, u64>, BTreeMap<u64, u64>) {
    let map: BTreeMap<u64, u64> = (0..tuples).map(|i| (i * 10 + 5, i)).collect();
    let list: Vec<_> = map.iter().map(|(&key, &value)| (key, value)).collect();
    let tree = HarmoniaTree::load(&list, fanout, percent).unwrap();
    check(&tree);
    (tree, map)
}

#[test]
fn random_batches() {
    let mut state = 1;
    for (fanout, percent) in
        [(8, 50), (8, 100), (9, 69), (64, 50), (64, 69), (64, 100), (128, 50), (128, 100)]
    {
        let keys = u64::from(node_keys(fanout, percent));
        for tuples in [0, 1, keys, keys + 1, keys * (keys + 1), keys * (keys + 1) + 1, 5000] {
            let (mut tree, mut map) = loaded(tuples, fanout, percent);
            let top = tuples * 10 + 10;
            for (round, length) in [1, 3000, 300, 3000].into_iter().enumerate() {
                // Numbers of ten operations: puts, updates, and the rest deletes.
                let (puts, updates) = [(7, 1), (1, 0), (3, 3), (2, 0)][round];
                let batch: Vec<_> = (0..length)
                    .map(|at| {
                        let key = random(&mut state) % top;
                        match random(&mut state) % 10 {
                            kind if kind < puts => Change::Put(key, at),
                            kind if kind < puts + updates => Change::Update(key / 10 * 10 + 5, at),
                            _ => Change::Delete(if at % 2 == 0 { key } else { key / 10 * 10 + 5 }),
                        }
                    })
                    .collect();
                apply(&mut tree, &mut map, &batch, &[1, 3]);
                for key in (0..top).step_by(7).chain([u64::MAX]) {
                    assert_eq!(tree.get(key), map.get(&key).copied());
                }
            }
        }
    }
}

#[test]
fn all_in_and_all_out() {
    for (fanout, percent) in [(8, 50), (9, 100), (64, 69), (128, 100)] {
        let (mut tree, mut map) = loaded(3000, fanout, percent);
        let inserts: Vec<_> = (0..30_000).map(|key| Change::Put(key, key + 1)).collect();
        let report = apply(&mut tree, &mut map, &inserts, &[2]);
        assert!(report.inserted == 27_000 && report.updated == 3000 && report.splits > 0);
        let ascending: Vec<_> = (30_000..40_000).map(|key| Change::Put(key, 0)).collect();
        apply(&mut tree, &mut map, &ascending, &[2]);
        let mut state = 9;
        let mut some: Vec<_> = map.keys().copied().collect();
        some.sort_by_cached_key(|_| random(&mut state));
        let deletes: Vec<_> = some.iter().map(|&key| Change::Delete(key)).collect();
        let report = apply(&mut tree, &mut map, &deletes[..39_990], &[2]);
        assert!(report.merges > 0 && tree.len() == 10);
        apply(&mut tree, &mut map, &deletes, &[1, 4]);
        assert!(tree.is_empty() && tree.levels().is_empty() && tree.get(5).is_none());
        // An empty tree grows levels at once, and shrinks back to nothing.
        apply(&mut tree, &mut map, &inserts, &[3]);
        assert!(tree.levels().len() > 2);
        let deletes: Vec<_> = (0..30_000).rev().map(Change::Delete).collect();
        apply(&mut tree, &mut map, &deletes, &[2]);
        assert!(tree.is_empty());
    }
}

#[test]
fn a_hot_leaf() {
    for (fanout, percent) in [(8, 69), (64, 100)] {
        let (mut tree, mut map) = loaded(20_000, fanout, percent);
        let mut state = 5;
        let mut batch = |kinds: u64| -> Vec<Change<u64, u64>> {
            (0..20_000)
                .map(|at| {
                    let key = 100_000 + random(&mut state) % 400;
                    if random(&mut state) % 10 < kinds { Change::Put(key, at) } else { Change::Delete(key) }
                })
                .collect()
        };
        for kinds in [10, 5, 8, 2, 0] {
            let batch = batch(kinds);
            apply(&mut tree, &mut map, &batch, &[1, 4]);
        }
    }
}

#[test]
fn the_root_splits_and_goes() {
    let (mut tree, mut map) = loaded(7, 8, 100);
    assert_eq!(tree.levels().len(), 1);
    let report = apply(&mut tree, &mut map, &[Change::Put(1, 1)], &[1, 2]);
    assert!((report.splits, tree.levels().len(), report.nodes_moved) == (1, 2, 3), "{report:?}");
    let deletes: Vec<_> = map.keys().take(6).map(|&key| Change::Delete(key)).collect();
    let report = apply(&mut tree, &mut map, &deletes, &[1, 2]);
    assert!(report.merges > 0 && tree.levels().len() == 1, "{report:?}");
    let report = apply(&mut tree, &mut map, &[Change::Update(1, 2), Change::Delete(2)], &[1, 2]);
    assert!((report.absent_updates, report.absent_deletes) == (1, 1) && report.nodes_moved == 0);
}

#[test]
fn operations_on_one_key_keep_their_order() {
    use Change::{Delete, Put, Update};
    let (mut tree, mut map) = loaded(1000, 8, 100);
    let lists = [
        vec![Put(5, 1), Put(5, 2), Delete(5), Update(5, 3)],
        vec![Put(7, 1), Update(7, 2), Update(7, 3)],
        vec![Delete(15), Put(15, 1), Delete(15), Put(15, 9), Update(15, 10)],
        vec![Update(25, 1), Update(25, 2), Update(26, 1)],
        vec![Put(8, 1), Delete(8)],
    ];
    // One of each list in turn.
    let longest = lists.iter().map(Vec::len).max().unwrap();
    let of_turn = |at: usize| lists.iter().filter_map(move |list| list.get(at).copied());
    let batch: Vec<_> = (0..longest).flat_map(of_turn).collect();
    apply(&mut tree, &mut map, &batch, &[1, 4]);
    assert_eq!([5, 7, 15, 25, 8].map(|key| tree.get(key)), [None, Some(3), Some(10), Some(2), None]);
}

#[test]
fn loads_are_the_sections_of_files() {
    for (tuples, fanout, percent) in [(0u64, 8, 50), (1, 8, 100), (5000, 9, 69), (100_000, 64, 69)] {
        let (tree, map) = loaded(tuples, fanout, percent);
        let shape = (fanout, node_keys(fanout, percent));
        let geometry = HarmoniaGeometry::new(tuples, shape, 8, 8).unwrap();
        assert_eq!(tree.levels(), geometry.levels);
        for (depth, level) in geometry.levels.iter().enumerate() {
            for at in 0..level.nodes {
                let keys = tree.counts()[(level.first + at) as usize];
                assert_eq!(u64::from(keys), geometry.keys_of(depth, at));
            }
        }
        for (node, &child) in tree.children().iter().enumerate().take(geometry.inner as usize) {
            assert_eq!(u64::from(child), geometry.first_child(node as u64));
        }
        assert!(tree.iter().eq(map));
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let load = |tuples: &[(u64, ())], fanout, percent| HarmoniaTree::load(tuples, fanout, percent).err();
    assert_eq!(load(&[], 7, 100), Some(HarmoniaError::Shape { fanout: 7, node_keys: 6 }));
    assert_eq!(load(&[], 8, 10), Some(HarmoniaError::Shape { fanout: 8, node_keys: 0 }));
    assert_eq!(load(&[(1, ()), (2, ()), (2, ())], 8, 100), Some(HarmoniaError::Order { at: 2 }));
    assert_eq!(load(&[(1, ()), (0, ())], 8, 100), Some(HarmoniaError::Order { at: 1 }));
    let floats = HarmoniaTree::load(&[(f64::NAN, ())], 8, 100).err();
    assert_eq!(floats, Some(HarmoniaError::NotAKey { at: 0 }));
    let mut tree = HarmoniaTree::load(&[(-0.5, 1u32)], 8, 100).unwrap();
    let batch = [Change::Put(1.0, 2), Change::Delete(f64::NAN)];
    assert_eq!(tree.apply(&batch, 1), Err(HarmoniaError::NotAKey { at: 1 }));
    assert!(tree.len() == 1 && tree.get(f64::NAN).is_none() && tree.get(-0.5) == Some(1));
    assert_eq!(tree.apply(&[], 0), Ok(Report::default()));
}

/// Makes random keys and operations for a pair of types.
fn any_types<K: Key + Ord, V: Value>(
    words: &[u64],
    operations: &[(u8, u64, u64)],
    (fanout, percent): (u32, u32),
) {
    let key = |word: u64| K::decode(K::Word::from_u64(word));
    let value = |bits: u64| V::from_bits(V::Bits::from_u64(bits));
    let mut map: BTreeMap<K, V> = words.iter().map(|&word| (key(word), value(word))).collect();
    let tuples: Vec<_> = map.iter().map(|(&key, &value)| (key, value)).collect();
    let mut tree = HarmoniaTree::load(&tuples, fanout, percent).unwrap();
    check(&tree);
    for batch in operations.chunks(operations.len().div_ceil(3).max(1)) {
        let batch: Vec<_> = batch
            .iter()
            .map(|&(kind, word, bits)| match kind % 4 {
                0 | 1 => Change::Put(key(word), value(bits)),
                2 => Change::Update(key(word), value(bits)),
                _ => Change::Delete(key(word)),
            })
            .collect();
        apply(&mut tree, &mut map, &batch, &[2]);
    }
}

fn word() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0u64..300, (0u64..9).prop_map(|distance| u64::MAX - distance)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn batches_of_any_types(
        words in vec(word(), 0..1500),
        operations in vec((any::<u8>(), word(), any::<u64>()), 0..1500),
        fanout in 8u32..=128,
        percent in 50u32..=100,
    ) {
        any_types::<u32, ()>(&words, &operations, (fanout, percent));
        any_types::<u64, u64>(&words, &operations, (fanout, percent));
        any_types::<u128, u32>(&words, &operations, (fanout, percent));
    }
}
