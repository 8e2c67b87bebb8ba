//! Tables whose keys crowd on every level of a grid: they build, are whole, answer as a list does, and their grids
//! stay small. What they cost is measured by `pleach-bench keys --distributions nested`.

use pleach::{Index, OpenOptions, Verify};
use pleach_builder::{BuildOptions, build_bytes};
use pleach_format::grid::STEPS_MAX;
use pleach_format::section::Tag;
use pleach_tests::generate::mix;
use pleach_tests::naive;
use pleach_tests::whole::crowded;

type Keys = fn(u64) -> u64;

/// Keys by their number, of a table of any size.
const TABLES: [(&str, Keys); 9] = [
    ("crowds in crowds", |i| crowded(mix(i))),
    ("one half alike", |i| if i % 2 == 0 { 1 << 63 } else { mix(i) }),
    ("runs of a line's length", |i| mix(i / 9)),
    ("runs between far keys", |i| (mix(i / 64) >> 20 << 20) | ((i % 64) / 60)),
    ("powers", |i| mix(i) >> (mix(!i) % 64)),
    ("powers from above", |i| !(mix(i) >> (mix(!i) % 64))),
    ("a crowd at the end", |i| if i % 50 == 0 { mix(i) } else { u64::MAX - i }),
    ("a crowd in the middle", |i| if i % 50 == 0 { mix(i) } else { (1 << 62) + i * i % 1009 }),
    ("steps of all sizes", |i| (i / 4) << (i / 4 % 33)),
];

#[test]
fn crowds_cost_no_more_than_they_may() {
    let mut deepest = 0;
    for (name, key) in TABLES {
        for count in [300, 5_000, 120_000] {
            let mut tuples: Vec<(u64, u64)> = (0..count).map(|i| (key(i), i)).collect();
            tuples.sort_unstable();
            // Short words would make other tables of them.
            let wide = BuildOptions { wide: true, ..BuildOptions::default() };
            let bytes = build_bytes(&tuples, &wide).expect("builds");
            let what = format!("{name}, {count}");
            if count <= 5_000 {
                assert!(bytes == naive::build(&tuples, &naive::wide(), false), "{what}");
            }
            let index = OpenOptions::default().verify(Verify::Full).from_bytes(bytes).expect("whole");
            let (_, shape) = index.header().grid.expect("a grid");
            assert!(shape.steps <= STEPS_MAX, "{what}");
            deepest = deepest.max(shape.steps);
            let length = index.header().section(Tag::GRID).expect("a grid").entry.length.get();
            assert!(length < 40 * index.header().lines + 4096, "{what}: {length} bytes");
            check(&index, &tuples, &what);
            let short = Index::from_bytes(build_bytes(&tuples, &BuildOptions::default()).expect("builds"));
            check(&short.expect("opens"), &tuples, &what);
        }
    }
    assert!(deepest >= 5, "{deepest} segments on the way are not many");
}

/// Compares look-ups with a list: keys, their neighbours, and the ends.
fn check(index: &Index, tuples: &[(u64, u64)], what: &str) {
    let view = index.typed::<u64, u64>().expect("types");
    let every = (tuples.len() / 4_000).max(1);
    let near =
        tuples.iter().step_by(every).flat_map(|&(key, _)| [key.wrapping_sub(1), key, key.wrapping_add(1)]);
    let mut queries: Vec<u64> = near.chain([0, u64::MAX]).collect();
    for turn in 0..2 {
        let count = queries.len();
        let (mut ranks, mut values) = (vec![0; count], vec![0; count]);
        let mut present = vec![0; count.div_ceil(64)];
        view.lower_bound_batch(&queries, &mut ranks).expect("ranks");
        view.get_batch(&queries, &mut values, &mut present).expect("values");
        for (at, &query) in queries.iter().enumerate() {
            let rank = tuples.partition_point(|tuple| tuple.0 < query);
            let there = tuples.get(rank).filter(|tuple| tuple.0 == query);
            assert_eq!(ranks[at], rank as u64, "{what}: {query} in turn {turn}");
            assert_eq!(present[at / 64] >> (at % 64) & 1 == 1, there.is_some(), "{what}: {query}");
            assert_eq!(values[at], there.map_or(0, |tuple| tuple.1), "{what}: {query}");
        }
        // Once more in order.
        queries.sort_unstable();
    }
}
