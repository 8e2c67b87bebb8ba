//! Every strategy against `partition_point`, in files with and without a grid; the guarantees of the planner.

use super::planner::ascend;
use super::*;
use crate::Index;
use pleach_builder::BuildOptions;
use pleach_builder::build_bytes;
use std::time::Duration;

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 31).wrapping_mul(0x7FB5_D329_728E_A185);
    let x = (x ^ x >> 27).wrapping_mul(0x81DA_DEF4_BC2D_D44D);
    x ^ x >> 33
}

fn index<K: Key>(tuples: &[(K, u32)], grid: bool) -> Index {
    let options = BuildOptions { grid, ..BuildOptions::default() };
    Index::from_bytes(build_bytes(tuples, &options).expect("a file")).expect("opened")
}

/// Sorted tuples, queries in no order; `make` makes keys.
fn data<K: Key>(tuples: u64, queries: u64, make: impl Fn(u64) -> K) -> (Vec<(K, u32)>, Vec<K>) {
    // Every third key occurs twice.
    let mut table: Vec<(K, u32)> = (0..tuples).map(|i| (make(mix(i - i % 3 / 2)), mix(i) as u32)).collect();
    table.sort_by_key(|tuple| tuple.0.encode());
    let asked = (0..queries).map(|i| match i % 3 {
        0 => make(mix(i + (1 << 40))),
        _ if table.is_empty() => K::default(),
        _ => table[mix(i) as usize % table.len()].0,
    });
    let asked = asked.collect();
    (table, asked)
}

fn check<K: Key>(table: &[(K, u32)], asked: &[K], scratch: &mut Scratch<K, u32>) {
    let rank_of = |key: &K| table.partition_point(|tuple| tuple.0.encode() < key.encode());
    let ranks: Vec<u64> = asked.iter().map(|key| rank_of(key) as u64).collect();
    let hit =
        |at: usize| table.get(ranks[at] as usize).filter(|tuple| tuple.0.encode() == asked[at].encode());
    let bits = |at: usize| u64::from(hit(at).is_some());
    let found = (0..asked.len()).filter(|&at| hit(at).is_some()).count();
    for grid in [true, false] {
        let index = index(table, grid);
        let view = index.typed::<K, u32>().expect("the types");
        for strategy in Strategy::ALL {
            let place = format!("{strategy}, grid {grid}, {} tuples, {} queries", table.len(), asked.len());
            let (mut values, mut present) =
                (vec![7; asked.len() + 1], vec![u64::MAX; asked.len().div_ceil(64)]);
            let mut parts = vec![Scratch::default(); 3];
            for parallel in [false, true] {
                let got = if parallel {
                    view.par_get_batch_by(strategy, asked, &mut values, &mut present, &mut parts)
                } else {
                    view.get_batch_by(strategy, asked, &mut values, &mut present, scratch)
                };
                assert_eq!(got, Ok(found), "{place}");
                for at in 0..asked.len() {
                    assert_eq!(values[at], hit(at).map_or(0, |tuple| tuple.1), "{place}: {at}");
                    assert_eq!(present[at / 64] >> (at % 64) & 1, bits(at), "{place}: {at}");
                }
                assert_eq!(values[asked.len()], 7, "{place}");
            }
            let mut got = vec![7; asked.len() + 1];
            view.lower_bound_batch_by(strategy, asked, &mut got, scratch).expect("ranks");
            assert_eq!(got.split_last(), Some((&7, &ranks[..])), "{place}");
        }
    }
}

fn check_type<K: Key>(make: impl Fn(u64) -> K + Copy, extremes: &[K]) {
    let mut scratch = Scratch::default();
    for (tuples, queries) in [(0, 65), (1, 63), (5, 64), (1000, 0), (1000, 1), (5000, 1000), (20_000, 20_001)]
    {
        let (table, mut asked) = data(tuples, queries, make);
        check(&table, &asked, &mut scratch);
        asked.extend(extremes);
        check(&table, &asked, &mut scratch);
        asked.sort_by_key(|key| key.encode());
        check(&table, &asked, &mut scratch);
        asked.reverse();
        check(&table, &asked, &mut scratch);
        asked.fill(table.get(table.len() / 2).map_or(K::default(), |tuple| tuple.0));
        check(&table, &asked, &mut scratch);
    }
    // Two clusters far apart, and the extremes as keys.
    let (mut table, asked) = data(3000, 9000, |x| make(x & 0xFFF));
    table.extend(extremes.iter().map(|&key| (key, 9)));
    table.sort_by_key(|tuple| tuple.0.encode());
    check(&table, &asked, &mut scratch);
}

#[test]
fn strategies_agree_on_u32() {
    check_type(|x| x as u32, &[0, 1, u32::MAX - 1, u32::MAX]);
}

#[test]
fn strategies_agree_on_u64() {
    check_type(|x| x, &[0, 1, u64::MAX - 1, u64::MAX]);
}

#[test]
fn strategies_agree_on_i64() {
    check_type(|x| x as i64, &[i64::MIN, -1, 0, i64::MAX]);
}

#[test]
fn strategies_agree_on_f64() {
    check_type(
        |x| (x as i64 as f64) / 1e3,
        &[f64::NEG_INFINITY, -0.0, 0.0, f64::MIN_POSITIVE, f64::INFINITY],
    );
}

#[test]
fn strategies_agree_on_u128() {
    check_type(|x| u128::from(x) << 64 | u128::from(mix(x)), &[0, 1, u128::MAX - 1, u128::MAX]);
}

#[test]
fn many_buffers_and_deep_sorts() {
    let (table, asked) = data(300_000, 120_000, |x| x);
    check(&table, &asked, &mut Scratch::default());
    // Half of the queries equal, the others dense: a bucket of one digit that has to be cut again and again.
    let asked: Vec<u64> =
        (0..70_000).map(|i| if i % 2 == 0 { 1 << 60 } else { (1 << 60) + mix(i) % 4096 }).collect();
    check(&table, &asked, &mut Scratch::default());
}

#[test]
fn sorting_is_stable() {
    let keys: Vec<u64> = (0..100_000).map(|i| mix(i) % 5000 * 1_000_003).collect();
    let mut order = Order::default();
    sorted::sort(&keys, Span { low: 1 << 20, high: 1 << 31, bytes: 1 << 30 }, &mut order);
    let mut expected: Vec<(u64, u32)> = keys.iter().copied().zip(0..).collect();
    expected.sort();
    assert_eq!(order.pairs, expected);
}

#[test]
fn short_buffers_are_refused() {
    let (table, asked) = data(100, 100, |x| x);
    let index = index(&table, true);
    let view = index.typed::<u64, u32>().expect("the types");
    let mut scratch = Scratch::default();
    for strategy in Strategy::ALL {
        let got = view.get_batch_by(strategy, &asked, &mut [0; 99], &mut [0; 2], &mut scratch);
        assert_eq!(got, Err(ReadError::Buffer { name: "values", needed: 100, found: 99 }));
        let got = view.get_batch_by(strategy, &asked, &mut [0; 100], &mut [0; 1], &mut scratch);
        assert_eq!(got, Err(ReadError::Buffer { name: "present", needed: 2, found: 1 }));
        let got = view.lower_bound_batch_by(strategy, &asked, &mut [0; 99], &mut scratch);
        assert_eq!(got, Err(ReadError::Buffer { name: "ranks", needed: 100, found: 99 }));
    }
    assert!(view.par_get_batch_by(Strategy::Auto, &asked, &mut [0; 100], &mut [0; 2], &mut []).is_err());
}

#[test]
fn names_are_read_back() {
    for strategy in Strategy::ALL {
        assert_eq!(strategy.to_string().parse(), Ok(strategy));
    }
    assert!("other".parse::<Strategy>().is_err());
}

#[test]
fn plans_keep_their_promises() {
    let (table, _) = data(100_000, 0, |x| x);
    for grid in [true, false] {
        let index = index(&table, grid);
        let view = index.typed::<u64, u32>().expect("the types");
        let costs = Costs::default();
        for log in 0..28 {
            for (sorted, threads) in [(None, 1), (Some(true), 1), (Some(false), 2)] {
                let request = Request { sorted, threads, ..Request::new(1 << log) };
                let choice = view.plan_batch(&request, &costs);
                assert!(choice.strategy != Strategy::Auto && choice.batch == 1 << log, "{choice:?}");
                for estimate in [choice.estimate_ns_per_query, choice.estimate_response_ns] {
                    assert!(estimate.is_finite() && estimate > 0.0, "{choice:?}");
                }
                if sorted == Some(true) && log > 10 {
                    assert!(matches!(choice.strategy, Strategy::Unbuffered | Strategy::Sorted), "{choice:?}");
                }
                for response_ns in [1_000, 100_000, 10_000_000] {
                    let bounded =
                        view.plan_batch(&Request { response_ns: Some(response_ns), ..request }, &costs);
                    assert!(bounded.estimate_response_ns <= response_ns as f64, "{bounded:?}");
                    assert!(bounded.batch <= choice.batch);
                }
            }
        }
        let none = view.plan_batch(&Request { response_ns: Some(1), ..Request::new(100) }, &costs);
        assert_eq!((none.strategy, none.batch), (Strategy::OneByOne, 1));
    }
}

#[test]
fn samples_tell_order() {
    let mut keys: Vec<u64> = (0..1000).collect();
    assert!(ascend(&keys) && ascend(&keys[..1]) && ascend::<u64>(&[]));
    let index = index(&[(1u64, 1)], true);
    let view = index.typed::<u64, u32>().expect("the types");
    let choice = view.plan_queries(&keys, &Request::new(0), &Costs::default());
    assert!(choice.why.contains("in order"), "{choice:?}");
    keys.reverse();
    assert!(!ascend(&keys));
    // Runs in order, one after the other.
    let runs: Vec<u64> = (0..1000).map(|i| i % 300).collect();
    assert!(!ascend(&runs));
}

#[test]
fn costs_are_measured_and_read_back() {
    let tables: Vec<Index> = [10, 14]
        .map(|log| {
            let tuples: Vec<(u64, u64)> = (0..1 << log).map(|i| (i << 20, mix(i))).collect();
            Index::from_bytes(build_bytes(&tuples, &BuildOptions::default()).expect("a file"))
                .expect("opened")
        })
        .into();
    let costs = Costs::tune(&tables, Duration::from_millis(50)).expect("costs");
    assert!(costs.named().iter().all(|(_, cost)| cost.is_finite() && *cost >= 0.0), "{costs:?}");
    assert_eq!(Costs::from_named(&costs.named()), Ok(costs));
    assert!(Costs::from_named(&[]).is_err());
    let mut bad = costs.named();
    bad[0].1 = f64::NAN;
    assert!(Costs::from_named(&bad).is_err());
    assert_eq!(Costs::tune(&[], Duration::ZERO), Ok(Costs::default()));
}

#[test]
fn plans_follow_the_structure() {
    let tuples: Vec<(u64, u32)> = (0..300_000).map(|i| (i << 40 | mix(i) >> 30, i as u32)).collect();
    let layout = "lines,spine,grid,fast:auto,harmonia:16,btree:16".parse().expect("a layout");
    let bytes = build_bytes(&tuples, &BuildOptions::default().with_layout(layout)).expect("a file");
    let plan = |structure: crate::Structure| {
        let index = Index::options().structure(structure).from_bytes(bytes.clone()).expect("opened");
        let request = Request { strategy: Strategy::Unbuffered, ..Request::new(1 << 16) };
        index.plan_batch(&request, &Costs::default())
    };
    let spine = plan(crate::Structure::Spine).estimate_ns_per_query;
    assert!(plan(crate::Structure::Grid).estimate_ns_per_query < spine);
    for (structure, said) in [
        (crate::Structure::Fast, "of the FAST tree"),
        (crate::Structure::Harmonia, "of Harmonia's tree"),
        (crate::Structure::Btree, "of the B+tree"),
    ] {
        let plan = plan(structure);
        assert!(plan.estimate_ns_per_query > spine && plan.why.contains(said), "{structure}: {plan:?}");
    }
    // Of the trees alone, that with the shortest way leads; a node of two lines beats one of nine.
    let trees = "lines,fast:full,harmonia:64:100,btree:64".parse().expect("a layout");
    let bytes = build_bytes(&tuples, &BuildOptions::default().with_layout(trees)).expect("a file");
    let index = Index::from_bytes(bytes).expect("opened");
    assert_eq!(index.structure(), crate::Structure::Fast);
    // Without any structure, lines are bisected.
    let alone = BuildOptions::default().with_layout("lines".parse().expect("a layout"));
    let index = Index::from_bytes(build_bytes(&tuples, &alone).expect("a file")).expect("opened");
    let plan = index.plan_batch(&Request::new(1 << 16), &Costs::default());
    assert!(plan.why.contains("to bisect"), "{plan:?}");
}
