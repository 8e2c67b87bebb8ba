//! Every kind of tree, kernel and number of queries in flight against `partition_point`.

use super::*;
use pleach_kit::classic::{Case, each_dropped_nibble, each_forged, each_full, each_packed};

fn compares() -> Vec<Compare> {
    let wide = Isa::available().into_iter().flat_map(|isa| [Compare::Wide(isa), Compare::Joint(isa)]);
    [Compare::Scalar, Compare::Paper].into_iter().chain(wide).collect()
}

/// Checks every kernel over one tree.
fn check<W: TreeWord>(case: &Case<'_, W>) {
    let Case { what, keys, queries, .. } = case;
    let Some(tree) = Switched::new(&case.geometry, case.form, case.bytes, keys) else {
        assert!(case.has_long_blocks(), "{what}");
        return;
    };
    let (mut ranks, wanted) = (vec![0; queries.len()], case.ranks());
    for (turn, compare) in compares().into_iter().enumerate() {
        // Every second one, the others with the next kernel and the next size.
        let others = (turn + keys.len()) % 2;
        for in_flight in InFlight::ALL.into_iter().skip(others).step_by(2) {
            let tree = tree.clone().with(compare, in_flight);
            ranks.fill(u64::MAX);
            tree.lower_bounds(queries, &mut ranks);
            assert_eq!(ranks, wanted, "{what} {compare:?} {in_flight:?}");
        }
        let tree = tree.clone().with(compare, InFlight::One);
        for (&query, &rank) in queries.iter().zip(&wanted).take(20) {
            assert_eq!(tree.lower_bound(query), rank, "{what} {compare:?} {query:?}");
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
        let tree = Switched::new(&case.geometry, case.form, case.bytes, case.keys).expect("a tree");
        let work = tree.lower_bounds(case.queries, &mut vec![0; case.queries.len()]);
        // Shorter words keep only the nibbles that part the keys.
        assert!(work == Work::default() || case.form == Form::Auto, "{}", case.what);
    });
}

/// Random bytes: every answer is a rank, but any rank.
#[test]
fn forged_trees_end_inside() {
    fn inside<W: TreeWord>(case: &Case<'_, W>) {
        let Some(tree) = Switched::new(&case.geometry, case.form, case.bytes, case.keys) else { return };
        let mut ranks = vec![0; case.queries.len()];
        for compare in compares() {
            for in_flight in [InFlight::One, InFlight::Four, InFlight::Eight] {
                tree.clone().with(compare, in_flight).lower_bounds(case.queries, &mut ranks);
                assert!(ranks.iter().all(|&rank| rank <= case.geometry.keys), "{}", case.what);
            }
        }
    }
    each_forged(inside, inside);
}
