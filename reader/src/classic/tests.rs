//! Every kind of tree and instruction set against `partition_point`.

use super::*;
use pleach_format::classic::paged::Prefix;
use pleach_kit::classic::{
    Case, each_dropped_nibble, each_forged, each_full, each_packed, full, mix, packed_misleading,
};

/// Checks every instruction set over one tree.
fn check<W: TreeWord>(case: &Case<'_, W>) {
    let Case { what, keys, queries, .. } = case;
    let Some(tree) = Classic::new(&case.geometry, case.form, case.bytes, keys) else {
        assert!(case.has_long_blocks(), "{what}");
        return;
    };
    let (mut ranks, wanted) = (vec![0; queries.len()], case.ranks());
    for isa in Isa::available() {
        let tree = tree.clone().with(isa);
        ranks.fill(u64::MAX);
        tree.lower_bounds(queries, &mut ranks);
        assert_eq!(ranks, wanted, "{what} {isa}");
        for (&query, &rank) in queries.iter().zip(&wanted).take(20) {
            assert_eq!(tree.lower_bound(query), rank, "{what} {isa} {query:?}");
        }
    }
}

#[test]
fn full_trees_of_4_bytes() {
    each_full(check::<u32>);
}

#[test]
fn full_trees_of_8_bytes() {
    each_full(check::<u64>);
}

#[test]
fn full_trees_of_16_bytes() {
    each_full(check::<u128>);
}

#[test]
fn compressed_trees_of_4_bytes() {
    each_packed(&[Form::Delta, Form::Auto], check::<u32>);
}

#[test]
fn compressed_trees_of_8_bytes() {
    each_packed(&[Form::Delta, Form::Partial, Form::Auto], check::<u64>);
}

#[test]
fn compressed_trees_of_16_bytes() {
    each_packed(&[Form::Delta, Form::Partial, Form::Auto], check::<u128>);
}

/// Every query that leaves the keys of its page at any nibble.
#[test]
fn queries_that_differ_in_dropped_nibbles() {
    each_dropped_nibble(|case| {
        check(case);
        let tree = Classic::new(&case.geometry, case.form, case.bytes, case.keys).expect("a tree");
        let work = tree.lower_bounds(case.queries, &mut vec![0; case.queries.len()]);
        // Shorter words keep only the nibbles that part the keys.
        assert!(work == Work::default() || case.form == Form::Auto, "{}", case.what);
    });
}

/// 100,000 different keys with one partial key: the end is found by bisection, not by a scan.
#[test]
#[cfg_attr(miri, ignore = "too long")]
fn a_long_run_of_equal_words_is_left_fast() {
    let run = 100_000u64;
    // Nibbles that differ fill all 32 bits before those in which the run's keys differ.
    let mut keys: Vec<u128> = (0..run).map(|i| 0x8888_8888u128 << 96 | u128::from(i)).collect();
    keys.extend((0..1000u64).map(|i| u128::from(mix(i)) << 64));
    keys.sort_unstable();
    let geometry = Geometry {
        keys: keys.len() as u64,
        key_bytes: 16,
        d_k: 1,
        d_l: 2,
        d_p: 9,
        padded: false,
        aligned: false,
    };
    let paged = Paged::new(geometry, Form::Partial).expect("sound");
    // By another writer than ours, and as if no page knew better than the first: pages inside the run would keep its
    // low nibbles.
    let bytes = packed_misleading(&keys, &paged, Prefix::Contiguous);
    let tree = Classic::new(&geometry, paged.form(), &bytes, &keys).expect("a tree");
    let queries: Vec<u128> = (0..run).step_by(997).map(|i| 0x8888_8888u128 << 96 | u128::from(i)).collect();
    let mut ranks = vec![0; queries.len()];
    let work = tree.lower_bounds(&queries, &mut ranks);
    for (query, rank) in queries.iter().zip(&ranks) {
        assert_eq!(*rank, keys.partition_point(|key| key < query) as u64);
    }
    assert!(work.missed > 0, "the run was meant to mislead");
    assert!(work.extra < work.missed * 60, "{work:?}");
}

/// Random bytes: every answer is a rank, but any rank.
#[test]
fn forged_trees_end_inside() {
    fn inside<W: TreeWord>(case: &Case<'_, W>) {
        let Some(tree) = Classic::new(&case.geometry, case.form, case.bytes, case.keys) else { return };
        let mut ranks = vec![0; case.queries.len()];
        for isa in Isa::available() {
            tree.clone().with(isa).lower_bounds(case.queries, &mut ranks);
            assert!(ranks.iter().all(|&rank| rank <= case.geometry.keys), "{}", case.what);
        }
    }
    each_forged(inside, inside);
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let keys = [1u32, 2, 3];
    let geometry = Geometry::paper(3, 4);
    let bytes = full(&keys, &geometry);
    assert!(Classic::new(&geometry, Form::Full, &bytes, &keys).is_some());
    assert!(Classic::new(&geometry, Form::Full, &bytes[1..], &keys).is_none());
    assert!(Classic::new(&geometry, Form::Full, &bytes, &keys[1..]).is_none());
    assert!(Classic::new(&geometry, Form::Full, &bytes, &[1u64, 2, 3]).is_none());
    assert!(Classic::new(&geometry, Form::Partial, &bytes, &keys).is_none());
    let deep = Geometry { d_k: 5, d_l: 5, ..geometry };
    assert!(Classic::new(&deep, Form::Full, &[0; 4096], &keys).is_none());
    assert!(Classic::new(&Geometry { d_p: 0, ..geometry }, Form::Full, &bytes, &keys).is_none());
    // Fewer places for answers than queries: the other queries are ignored.
    let tree = Classic::new(&geometry, Form::Full, &bytes, &keys).expect("a tree");
    let mut ranks = [9; 2];
    tree.lower_bounds(&[3, 9, 1], &mut ranks);
    assert_eq!(ranks, [2, 3]);
}
