//! Classic trees in files, full and compressed: searched in place, checked slot by slot.

use pleach::internal::ClassicTree;
use pleach::{KeyType, OpenOptions, Verify};
use pleach_builder::{BuildOptions, build_strings_bytes};
use pleach_format::Word;
use pleach_format::classic::TreeWord;
use pleach_format::section::Tag;
use pleach_fsck::check_bytes;
use pleach_tests::generate::mix;
use pleach_tests::is_long;
use pleach_tests::mutate::{content, entry_at, header, reseal};
use pleach_tests::trees::{delta, partial, with_compressed_tree};
use std::collections::BTreeMap;

type Tuples = Vec<(Vec<u8>, u32)>;

fn numbered(keys: impl Iterator<Item = Vec<u8>>) -> Tuples {
    keys.zip(0..).collect()
}

fn assert_clean(bytes: &[u8]) {
    assert_eq!(check_bytes(bytes), []);
}

#[test]
fn a_classic_tree_beside_the_lines() {
    let options = BuildOptions { classic: true, wide: true, ..BuildOptions::default() };
    for count in [0u64, 1, 2, 64, 65, 1000, 4097] {
        let tuples: Vec<(u64, u32)> = (0..count).map(|i| (mix(i) >> 8, i as u32)).collect();
        let bytes = pleach_builder::build_bytes(&tuples, &options).expect("builds");
        let index = OpenOptions::default().verify(Verify::Full).from_bytes(bytes).expect("opens");
        let view = index.typed::<u64, u32>().expect("types");
        let tree = ClassicTree::<u64>::open(&index).expect("readable").expect("has a tree");
        let tree = tree.search().expect("whole");
        let queries: Vec<u64> =
            tuples.iter().flat_map(|tuple| [tuple.0, tuple.0 + 1]).chain([0, u64::MAX]).collect();
        let (mut ranks, mut wanted) = (vec![7; queries.len()], vec![8; queries.len()]);
        tree.lower_bounds(&queries, &mut ranks);
        view.lower_bound_batch(&queries, &mut wanted).expect("readable");
        assert_eq!(ranks, wanted, "{count}");
        assert!(ClassicTree::<u32>::open(&index).expect("readable").is_none());
    }
    let words: Tuples = numbered((0..3000).map(|i| format!("{:020}", mix(i)).into_bytes()));
    let bytes = build_strings_bytes(KeyType::Utf8, &words, &options).expect("builds");
    let index = OpenOptions::default().verify(Verify::Full).from_bytes(bytes).expect("opens");
    assert!(ClassicTree::<u128>::open(&index).expect("readable").is_some_and(|tree| tree.search().is_some()));
}

/// Every byte of a classic tree follows from the tuples.
#[test]
fn damaged_classic_trees_are_found() {
    let options = BuildOptions { classic: true, ..BuildOptions::default() };
    let small: Vec<(u32, u32)> = (0..40_000).map(|i| (mix(i) as u32, i as u32)).collect();
    let strings = numbered((0..700).map(|i| format!("{:020}", mix(i)).into_bytes()));
    let files = [
        pleach_builder::build_bytes(&small, &options).expect("builds"),
        build_strings_bytes(KeyType::Utf8, &strings, &options).expect("builds"),
    ];
    for whole in files {
        assert_clean(&whole);
        let tree = content(&whole, Tag::FAST);
        let tries = if is_long() { 3000 } else { 60 };
        for turn in 0..tries {
            // The last bytes, which are padding, and others.
            let at = if turn < 10 {
                tree.end - 1 - turn * 13
            } else {
                tree.start + mix(turn as u64) as usize % tree.len()
            };
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (turn % 8);
            let index =
                OpenOptions::default().verify(Verify::Touched).from_bytes(bytes.clone()).expect("opens");
            assert!(ClassicTree::<u32>::open(&index).is_err(), "byte {at}: its sum");
            reseal(&mut bytes);
            let findings = check_bytes(&bytes);
            assert!(
                findings.iter().any(|it| it.section == "FAST" && it.offset <= at as u64),
                "byte {at}: {findings:?}"
            );
        }
        // Another geometry under right sums.
        let entry = entry_at(&whole, Tag::FAST);
        for (at, wrong) in [(93, 1), (94, 3), (95, 9), (96, 0), (92, 9), (76, 3), (24, 5)] {
            let mut bytes = whole.clone();
            if bytes[entry + at] == wrong {
                continue;
            }
            bytes[entry + at] = wrong;
            reseal(&mut bytes);
            let findings = check_bytes(&bytes);
            assert!(findings.iter().any(|it| it.section == "FAST"), "field {at}: {findings:?}");
        }
    }
}

/// Compressed trees are searched in the file, and every byte of them is checked.
#[test]
fn damaged_compressed_trees_are_found() {
    fn searched<W: TreeWord + Word>(bytes: &[u8]) {
        let index = OpenOptions::default().verify(Verify::Full).from_bytes(bytes.to_vec()).expect("opens");
        let tree = ClassicTree::<W>::open(&index).expect("readable").expect("has a tree");
        let tree = tree.search().expect("whole");
        let there = header(bytes);
        for rank in (0..there.tuples).step_by(11) {
            let (line, slot) = there.geometry.place(rank);
            let key =
                <W as Word>::read(&bytes[there.line_offset(line) as usize + slot * <W as Word>::BYTES..]);
            let mut ranks = [0];
            tree.lower_bounds(&[key], &mut ranks);
            assert_eq!(ranks, [rank]);
        }
    }
    let options = BuildOptions { classic: true, wide: true, ..BuildOptions::default() };
    for count in [0u64, 1, 700, 9000] {
        let wide: Vec<(u64, u32)> = (0..count).map(|i| (mix(i) >> (i % 50), i as u32)).collect();
        let wide = BTreeMap::from_iter(wide).into_iter().collect::<Vec<_>>();
        let narrow: Vec<(u32, u32)> =
            (0..count as u32).map(|i| (i * 3 + (mix(i.into()) as u32 & 1), i)).collect();
        let strings = numbered((0..count).map(|i| format!("{:020}", mix(i)).into_bytes()));
        let whole = pleach_builder::build_bytes(&wide, &options).expect("builds");
        let wide = with_compressed_tree::<u64>(&whole, delta);
        let whole = pleach_builder::build_bytes(&narrow, &options).expect("builds");
        let narrow = with_compressed_tree::<u32>(&whole, delta);
        searched::<u64>(&wide);
        searched::<u32>(&narrow);
        let mut files = vec![wide, narrow];
        if count > 1 {
            let whole = build_strings_bytes(KeyType::Utf8, &strings, &options).expect("builds");
            let strings = with_compressed_tree::<u128>(&whole, partial);
            searched::<u128>(&strings);
            files.push(strings);
        }
        for whole in files {
            assert_clean(&whole);
            let tree = content(&whole, Tag::FAST);
            let tries = if is_long() { 8 * tree.len() } else { 300 };
            for turn in 0..tries {
                let bit = if is_long() { turn } else { mix(turn as u64) as usize % (8 * tree.len()) };
                let mut bytes = whole.clone();
                bytes[tree.start + bit / 8] ^= 1 << (bit % 8);
                reseal(&mut bytes);
                let findings = check_bytes(&bytes);
                assert!(findings.iter().any(|it| it.section == "FAST"), "bit {bit}: {findings:?}");
            }
        }
    }
}
