//! Harmonia's tree of built files: all fanouts and fills against a binary search, and forged bytes.

use crate::{Index, Isa};
use pleach_builder::{BuildOptions, Harmonia};

fn index(keys: &[u64], fanout: u32, fill_percent: u32) -> Index {
    let tuples: Vec<(u64, u32)> = keys.iter().zip(0..).map(|(&key, rank)| (key, rank)).collect();
    let options =
        BuildOptions { harmonia: Some(Harmonia { fanout, fill_percent }), ..BuildOptions::default() };
    let bytes = pleach_builder::build_bytes(&tuples, &options).expect("a file");
    Index::options().verify(crate::Verify::Full).from_bytes(bytes).expect("a clean file")
}

#[test]
fn all_fanouts_and_fills_agree_with_a_binary_search() {
    for fanout in 8..=128u32 {
        for fill in [50, 69, 100] {
            let full = u64::from(pleach_format::harmonia::node_keys(fanout, fill));
            for count in [0, 1, full, full + 1, full * (full + 1), full * (full + 1) + 1] {
                if count > 700 && fanout % 40 != 9 {
                    continue;
                }
                let mut keys: Vec<u64> = (0..count).map(|i| i / 3 * 5 + 1).collect();
                if let Some(last) = keys.last_mut() {
                    *last = u64::MAX;
                }
                let index = index(&keys, fanout, fill);
                let tree = index.harmonia::<u64, u32>().unwrap().expect("a tree");
                let queries: Vec<u64> = (0..count * 2).chain([u64::MAX - 1, u64::MAX]).collect();
                let wanted: Vec<u64> =
                    queries.iter().map(|&q| keys.partition_point(|&key| key < q) as u64).collect();
                for isa in Isa::available() {
                    let mut ranks = vec![7; queries.len()];
                    tree.clone().with(isa).lower_bounds(&queries, &mut ranks).unwrap();
                    assert_eq!(ranks, wanted, "{fanout} {fill} {count} {isa}");
                }
                for &query in queries.iter().rev().take(5) {
                    let rank = keys.iter().position(|&key| key == query).map(|rank| rank as u32);
                    assert_eq!(tree.get(query).unwrap(), rank);
                }
                let scanned: Vec<u64> = tree.range(4, 90).unwrap().map(|tuple| tuple.unwrap().0).collect();
                let within: Vec<u64> = keys.iter().copied().filter(|key| (4..90).contains(key)).collect();
                assert_eq!(scanned, within);
            }
        }
    }
}

#[test]
fn forged_prefix_sums_never_lead_outside() {
    let keys: Vec<u64> = (0..3000).collect();
    let tuples: Vec<(u64, u32)> = keys.iter().map(|&key| (key, 1)).collect();
    let options =
        BuildOptions { harmonia: Some(Harmonia { fanout: 8, fill_percent: 100 }), ..BuildOptions::default() };
    let sound = pleach_builder::build_bytes(&tuples, &options).unwrap();
    let (offset, shape) = Index::from_bytes(sound.clone()).unwrap().header().harmonia.clone().unwrap();
    for forged in [0u32, 1, 77, 1 << 31, u32::MAX] {
        for everything in [false, true] {
            let mut bytes = sound.clone();
            let start = if everything { offset } else { offset + shape.children_at };
            let end = offset + shape.children_at + (shape.inner + 1) * 4;
            for entry in bytes[start as usize..end as usize].chunks_exact_mut(4) {
                entry.copy_from_slice(&forged.to_le_bytes());
            }
            let index = Index::from_bytes(bytes).unwrap();
            let tree = index.harmonia::<u64, u32>().unwrap().unwrap();
            let mut ranks = vec![0; keys.len()];
            for isa in Isa::available() {
                tree.clone().with(isa).lower_bounds(&keys, &mut ranks).unwrap();
                assert!(ranks.iter().all(|&rank| rank <= 3000));
            }
            let _ = tree.get(5).unwrap();
        }
    }
}

#[test]
fn views_of_other_types_are_refused() {
    let index = index(&[1, 2], 8, 100);
    assert!(index.harmonia::<u32, u32>().unwrap().is_none());
    let plain = pleach_builder::build_bytes(&[(1u64, 2u64)], &BuildOptions::default()).unwrap();
    assert!(Index::from_bytes(plain).unwrap().harmonia::<u64, u64>().unwrap().is_none());
}
