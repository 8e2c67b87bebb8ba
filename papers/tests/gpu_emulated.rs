//! What papers have on a GPU, on a CPU that runs the kernels' own text, under sanitizers.

#[path = "gpu/relation.rs"]
mod relation;
#[path = "../../gpu/tests/suite/sanitized.rs"]
mod sanitized;
#[path = "gpu/searches.rs"]
mod searches;
#[path = "../../gpu/tests/suite/mod.rs"]
mod suite;

use pleach_gpu::LaneOrder;
use pleach_kit::figure;
use sanitized::{ORDERS, gpu};
use searches::{algorithms, of_strings};

#[test]
fn the_suite_passes_under_sanitizers() {
    sanitized::run_all(None);
}

/// All types at small sizes, more forms of the algorithms with one, and what else a table answers.
fn run_searches(order: LaneOrder) {
    let gpu = gpu(order);
    // A size in each order.
    let counts: &[u64] = match order {
        LaneOrder::Ascending => &[69],
        LaneOrder::Descending => &[5],
        LaneOrder::Random(_) => &[300],
    };
    suite::every_table(&gpu, counts, &algorithms(true), &of_strings(), 150);
    let tuples: Vec<(u64, u64)> = (0..1157).map(|i| (suite::mix(i / 3), i)).collect();
    let near = |key: u64| [key.saturating_sub(1), key, key.saturating_add(1)];
    suite::check(&gpu, &algorithms(false), tuples, near, &[0, u64::MAX], 300);
    suite::strings(&gpu, &[1, 2, 33], &algorithms(true));
    suite::recorded(&gpu, 500, &searches::recorded());
}

/// The tests proper, of an order of lanes each; relations have keys of 8 bytes in one order.
macro_rules! orders {
    ($($searches:ident $exact:ident $relations:ident $order:expr;)*) => {$(
        #[test]
        #[ignore = "run by `the_suite_passes_under_sanitizers`"]
        fn $searches() {
            run_searches($order);
        }

        #[test]
        #[ignore = "run by `the_suite_passes_under_sanitizers`"]
        fn $exact() {
            suite::exact::all(&gpu($order), &algorithms(true));
        }

        #[test]
        #[ignore = "run by `the_suite_passes_under_sanitizers`"]
        fn $relations() {
            relation::all(&gpu($order), $order == LaneOrder::Descending);
        }
    )*};
}

orders! {
    ascending_searches ascending_in_exact_buffers ascending_relations LaneOrder::Ascending;
    descending_searches descending_in_exact_buffers descending_relations LaneOrder::Descending;
    random_searches random_in_exact_buffers random_relations LaneOrder::Random(1);
}

#[test]
#[ignore = "run by `the_suite_passes_under_sanitizers`"]
fn what_is_asked_wrongly_is_refused() {
    searches::refusals(&gpu(LaneOrder::Random(2)));
}

#[test]
#[ignore = "run by `the_suite_passes_under_sanitizers`"]
fn damaged_tables_are_not_left() {
    for (order, counts) in [(ORDERS[0], &[1, 700][..]), (ORDERS[1], &[9][..]), (ORDERS[2], &[300][..])] {
        let asked = suite::damaged::all(&gpu(order), counts, &algorithms(true), &of_strings(), 200);
        assert!(asked > 5_000, "{asked}");
        figure(22, &format!("{asked} look-ups in tables whose lines hold anything"));
    }
}
