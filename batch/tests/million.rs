//! A million floors, ceilings, intervals and prefixes, against tables that have the answer for every key.
//!
//! The keys are so few that the oracle is an array with an element for each of them, filled by one walk.

use pleach::{BytesMap, Map};
use pleach_batch::{Copied, Pool, Table};
use pleach_builder::{Builder, Overlap};

/// Keys are below this.
const KEYS: u32 = 1 << 21;
const ROWS: u32 = 1 << 18;
const QUERIES: u64 = 1_000_000;

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 31).wrapping_mul(0x7FB5_D329_728E_A185);
    let x = (x ^ x >> 27).wrapping_mul(0x81DA_DEF4_BC2D_D44D);
    x ^ x >> 33
}

/// The key of a row; some are equal.
fn key(row: u32) -> u32 {
    (mix(row.into()) % u64::from(KEYS)) as u32
}

fn queries() -> Vec<u32> {
    (0..QUERIES).map(|at| (mix(at + (1 << 40)) % u64::from(KEYS)) as u32).collect()
}

#[test]
fn floors_and_ceilings() {
    let rows: Vec<(u32, u32)> = (0..ROWS).map(|row| (key(row), row)).collect();
    let mut first: Vec<Option<u32>> = vec![None; KEYS as usize];
    let mut last = first.clone();
    for &(key, row) in &rows {
        first[key as usize].get_or_insert(row);
        last[key as usize] = Some(row);
    }
    let (mut floors, mut ceilings) = (Vec::new(), Vec::new());
    let mut held = None;
    for (key, row) in (0..).zip(&last) {
        held = row.map(|row| (key, row)).or(held);
        floors.push(held);
    }
    let mut held = None;
    for (key, row) in (0..KEYS).rev().zip(first.iter().rev()) {
        held = row.map(|row| (key, row)).or(held);
        ceilings.push(held);
    }
    ceilings.reverse();
    let map: Map<u32, u32> = Map::from_bytes(Builder::new().to_bytes(rows).expect("builds")).expect("opens");
    let queries = queries();
    let of = |all: &[Option<(u32, u32)>]| queries.iter().map(|&key| all[key as usize]).collect::<Vec<_>>();
    assert!(map.floor_many(&queries).expect("readable") == of(&floors));
    assert!(map.ceiling_many(&queries).expect("readable") == of(&ceilings));
    let nearest = |&key: &u32| match (floors[key as usize], ceilings[key as usize]) {
        (Some(below), Some(above)) => Some(if key - below.0 <= above.0 - key { below } else { above }),
        (below, above) => below.or(above),
    };
    assert!(map.nearest_many(&queries).expect("readable") == queries.iter().map(nearest).collect::<Vec<_>>());
}

#[test]
fn intervals() {
    // Some lie behind each other without a gap, and some are of one key.
    let mut starts: Vec<u32> = (0..ROWS).map(key).collect();
    starts.sort_unstable();
    starts.dedup();
    let end = |at: usize| {
        let room = starts.get(at + 1).copied().unwrap_or(KEYS) - starts[at];
        starts[at] + [0, room - 1, room / 2][at % 3]
    };
    let rows: Vec<(u32, (u32, u32))> =
        (0..starts.len()).map(|at| (starts[at], (end(at), at as u32))).collect();
    let mut holders: Vec<Option<(u32, u32)>> = vec![None; KEYS as usize];
    for (start, value) in &rows {
        holders[*start as usize..=value.0 as usize].fill(Some(*value));
    }
    let bytes = Builder::new().intervals(Overlap::Error).to_bytes(rows).expect("builds");
    let map: Map<u32, (u32, u32)> = Map::from_bytes(bytes).expect("opens");
    let queries = queries();
    let expected: Vec<_> = queries.iter().map(|&key| holders[key as usize]).collect();
    assert!(map.interval_many(&queries).expect("readable") == expected);
}

#[test]
fn prefixes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("texts.pleach");
    let text = |key: u32| format!("{key:06x}");
    Builder::new().build(&path, (0..ROWS).map(|row| (text(key(row)), row))).expect("builds");
    let mut counts = vec![0u64; KEYS as usize];
    (0..ROWS).for_each(|row| counts[key(row) as usize] += 1);
    // Number of tuples below each key, and at last of all.
    let mut below = vec![0u64];
    counts.iter().for_each(|count| below.push(below[below.len() - 1] + count));
    let prefix = |at: u64| ((mix(at) % u64::from(KEYS)) >> (4 * (at % 6)), 6 - (at % 6) as usize);
    let written: Copied =
        (0..QUERIES).map(prefix).map(|(number, digits)| format!("{number:0digits$x}")).collect();
    let (mut first, mut end) = (vec![0; QUERIES as usize], vec![0; QUERIES as usize]);
    let table = Table::open(&path).expect("opens");
    table.prefix(&written, &mut first, &mut end, &Pool::current()).expect("readable");
    for (at, (number, digits)) in (0..QUERIES).map(prefix).enumerate() {
        let all = 1u64 << (4 * (6 - digits));
        let bound = |key: u64| below[key.min(KEYS.into()) as usize];
        assert_eq!(
            (first[at], end[at]),
            (bound(number * all), bound((number + 1) * all)),
            "{number:x} {digits}"
        );
    }
    let map: BytesMap<u32> = BytesMap::open(&path).expect("opens");
    assert_eq!(map.prefix("0").expect("readable").count() as u64, below[1 << 20]);
}
