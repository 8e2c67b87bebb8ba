//! Reads tuples in order: ranges of keys, from both ends, ranges of ranks, and scans.

use pleach::{Builder, Map};
use std::ops::Bound;

pub(crate) fn main() -> pleach::Result<()> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("events.pleach");
    Builder::new().build(&path, (0..50_000i32).map(|second| (second * 2, f64::from(second))))?;
    let events: Map<i32, f64> = Map::open(&path)?;

    let keys = |range: std::ops::RangeInclusive<i32>| -> pleach::Result<Vec<i32>> {
        events.range(range)?.map(|tuple| Ok(tuple?.0)).collect()
    };
    assert_eq!(keys(3..=8)?, [4, 6, 8]);
    // How many there are takes two look-ups, and no scan.
    assert_eq!(events.count(1000..2000)?, 500);
    assert_eq!(events.count((Bound::Excluded(1000), Bound::Unbounded))?, 49_499);

    // From the end.
    let mut last = events.range(..100)?.rev();
    assert_eq!(last.next().transpose()?, Some((98, 49.0)));

    // All tuples, and those of a range of ranks: pages of a table.
    let sum: f64 = events.iter().map(|tuple| Ok(tuple?.1)).sum::<pleach::Result<f64>>()?;
    let page: Vec<(i32, f64)> = events.ranks(20..22).collect::<Result<_, _>>()?;
    assert_eq!(page, [(40, 20.0), (42, 21.0)]);

    // A scan passes columns to a closure, and is the fastest way to read much.
    let mut scanned = 0.0;
    events.typed().scan(0..events.len(), |_, values| scanned += values.iter().sum::<f64>())?;
    assert_eq!(scanned, sum);
    println!("{} events, sum {sum}", events.len());
    Ok(())
}
