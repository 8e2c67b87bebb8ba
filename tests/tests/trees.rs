//! Trees in files: FAST in every form, Harmonia's, the contiguous B+tree. Look-ups by each of them are those by
//! the spine, and every byte of them is checked.

use pleach::{Index, Isa, Key, KeyType, OpenOptions, Residence, Structure, Value, Verify};
use pleach_builder::{BuildOptions, build_bytes, build_strings_bytes};
use pleach_format::Word;
use pleach_format::section::Tag;
use pleach_fsck::check_bytes;
use pleach_tests::generate::mix;
use pleach_tests::is_long;
use pleach_tests::mutate::{content, entry_at, header, reseal};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;

type Texts = Vec<(Vec<u8>, u32)>;

fn numbered(keys: impl Iterator<Item = Vec<u8>>) -> Texts {
    keys.zip(0..).collect()
}

fn options(layout: &str) -> BuildOptions {
    BuildOptions::default().with_layout(layout.parse().expect("a layout"))
}

/// Layouts with one structure beside the lines, and with all. Pages are short, so that there are several levels.
const LAYOUTS: [&str; 12] = [
    "lines",
    "lines,fast:full",
    "lines,fast:full:packed:dp=7",
    "lines,fast:full:dk=2:dl=2:dp=9",
    "lines,fast:delta:dp=7",
    "lines,fast:delta:packed:dp=8",
    "lines,fast:auto",
    "lines,fast:auto:packed:dp=6",
    "lines,harmonia:8:100",
    "lines,btree:4",
    "lines,btree:17",
    "lines,spine,grid,fast:auto:dp=6,harmonia,btree",
];

/// Keys as texts.
type DrawText = fn(u64) -> Vec<u8>;

/// Keys as numbers below 2^64, spread to the width of a type.
type Draw = fn(u64) -> u64;

/// Spread, dense, clustered, runs of equal keys across pages, ends of the range, keys that differ in nibbles far
/// apart, and one key.
fn shapes() -> [(&'static str, Draw); 7] {
    [
        ("spread", mix),
        ("dense", |i| i * 2 + 1),
        ("clustered", |i| ((mix(i / 50) >> 20) << 20) | (i % 50 * 3)),
        ("runs", |i| mix(i / 700) >> 3),
        ("ends", |i| if i.is_multiple_of(2) { i % 3 } else { u64::MAX - i % 3 }),
        ("nibbles", |i| (mix(i) & 0xF00F_00F0_0000_F00F) | 0x0550_0000_0000_0000),
        ("one", |_| 77),
    ]
}

fn sizes() -> Vec<u64> {
    let mut sizes = vec![0, 1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 127, 128, 129, 1000];
    sizes.extend([2047, 2048, 2049, 5000]);
    if is_long() {
        sizes.extend((6..14).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]));
    }
    sizes
}

/// Compares every look-up by a structure with a sorted list.
fn compare<K: Key + Debug, V: Value + Debug>(index: &Index, tuples: &[(K, V)], queries: &[K], what: &str)
where
    K::Word: Debug,
{
    let view = index.typed::<K, V>().expect("types");
    let word = |key: &K| key.encode();
    let lower = |key: K| tuples.partition_point(|tuple| word(&tuple.0) < key.encode());
    let first = |key: K| tuples.get(lower(key)).filter(|tuple| word(&tuple.0) == key.encode());
    let wanted: Vec<u64> = queries.iter().map(|&key| lower(key) as u64).collect();
    let mut ranks = vec![u64::MAX; queries.len()];
    view.lower_bound_batch(queries, &mut ranks).expect("readable");
    assert_eq!(ranks, wanted, "{what}");
    let (mut values, mut present) = (vec![V::default(); queries.len()], vec![0; queries.len().div_ceil(64)]);
    let found = view.get_batch(queries, &mut values, &mut present).expect("readable");
    assert_eq!(found, queries.iter().filter(|&&key| first(key).is_some()).count(), "{what}");
    for (at, &key) in queries.iter().enumerate() {
        let wanted = first(key).map_or(V::default(), |tuple| tuple.1);
        assert_eq!(format!("{:?}", values[at]), format!("{wanted:?}"), "{what} {key:?}");
        assert_eq!(present[at / 64] >> (at % 64) & 1 == 1, first(key).is_some());
    }
    for &key in queries.iter().step_by(7) {
        assert_eq!(view.lower_bound(key).expect("readable"), lower(key) as u64, "{what} {key:?}");
        assert_eq!(view.contains(key).expect("readable"), first(key).is_some());
        let upper = tuples.partition_point(|tuple| word(&tuple.0) <= key.encode());
        assert_eq!(view.upper_bound(key).expect("readable"), upper as u64, "{what} {key:?}");
        let next =
            view.range(key..).expect("readable").next().map(|tuple| tuple.expect("readable").0.encode());
        assert_eq!(next, tuples.get(lower(key)).map(|tuple| word(&tuple.0)), "{what}");
    }
}

/// Every layout, instruction set, structure and residence over keys of one type.
fn each_number<K: Key + Debug, V: Value + Debug>(
    extra: &[&str],
    spread: impl Fn(u64) -> K,
    value: impl Fn(u64) -> V,
) where
    K::Word: Debug,
{
    let folder = tempfile::tempdir().expect("a folder");
    for (number, (name, draw)) in shapes().into_iter().enumerate() {
        for (turn, &count) in sizes().iter().enumerate() {
            let mut tuples: Vec<(K, V)> = (0..count).map(|i| (spread(draw(i)), value(i))).collect();
            tuples.sort_by_key(|tuple| tuple.0.encode());
            let mut queries = vec![spread(0), spread(1), spread(u64::MAX)];
            for tuple in tuples.iter().step_by((count as usize / 150).max(1)) {
                let word = tuple.0.encode();
                queries.push(tuple.0);
                queries.extend(word.successor().map(K::decode));
                // A key that differs in one nibble.
                let bit = mix(queries.len() as u64) % (8 * <K::Word as Word>::BYTES as u64);
                queries.push(K::decode(word ^ K::Word::from_u128(1 << bit)));
            }
            let layouts = LAYOUTS.iter().chain(extra).enumerate();
            // Every third layout of each size in the short form; all with some sizes.
            let chosen = layouts.filter(|(at, _)| is_long() || (at + turn + number).is_multiple_of(3));
            for (at, layout) in chosen {
                let options = options(layout);
                let bytes = build_bytes(&tuples, &options).expect("builds");
                assert_eq!(check_bytes(&bytes), [], "{name} {count} {layout}");
                let path = folder.path().join("t.pleach");
                fs::write(&path, &bytes).expect("writes");
                for structure in Structure::ALL.into_iter().filter(|it| it.is_in(&header(&bytes))) {
                    for (set, isa) in Isa::available().into_iter().enumerate() {
                        let what = format!("{name} {count} {layout} {structure} {isa}");
                        let residence = [Residence::Mapped, Residence::Resident][(at + set) % 2];
                        let verify = [Verify::Header, Verify::Full, Verify::Touched][(at + turn) % 3];
                        let open = OpenOptions::default().structure(structure).isa(Some(isa));
                        let index = open.verify(verify).residence(residence).open(&path).expect("opens");
                        compare::<K, V>(&index, &tuples, &queries, &what);
                        if set == 0 && turn % 4 == 0 {
                            let mut sorted = queries.clone();
                            sorted.sort_by_key(|key| key.encode());
                            compare::<K, V>(&index, &tuples, &sorted, &what);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn words_of_4_bytes() {
    each_number::<u32, u32>(&[], |key| (key >> 32 ^ key) as u32, |i| i as u32);
}

#[test]
fn words_of_8_bytes() {
    let extra = ["lines,wide,fast:partial:dp=7", "lines,fast:partial:packed", "lines,wide,fast:auto:dp=5"];
    each_number::<i64, u64>(&extra, |key| key.cast_signed(), |i| i);
}

#[test]
fn words_of_16_bytes() {
    let extra = ["lines,wide,fast:partial:dp=7", "lines,wide,fast:auto:dp=5", "lines,wide,fast:delta:dp=6"];
    each_number::<u128, ()>(&extra, |key| u128::from(key) << 61 | u128::from(!key >> 50), |_| ());
}

#[test]
fn words_of_byte_keys() {
    let kinds: [(&str, DrawText); 3] = [
        ("digits", |i| format!("{:020}", mix(i)).into_bytes()),
        ("long", |i| {
            format!("https://host{}/a/long/path/{}/page{}", i % 3, mix(i / 7) % 90, i % 7).into_bytes()
        }),
        ("short", |i| format!("{i:x}").into_bytes()),
    ];
    let partial = "lines,fast:partial:dp=6";
    for (name, draw) in kinds {
        for count in [0, 1, 2, 65, 700, 3000] {
            let mut tuples = numbered((0..count).map(draw));
            tuples.sort();
            for layout in LAYOUTS.iter().chain([&partial]) {
                let bytes = build_strings_bytes(KeyType::Bytes, &tuples, &options(layout)).expect("builds");
                assert_eq!(check_bytes(&bytes), [], "{name} {count} {layout}");
                let wanted = Index::from_bytes(bytes.clone()).expect("opens");
                let wanted = wanted.strings::<u32>().expect("types");
                let mut queries: Vec<Vec<u8>> =
                    tuples.iter().step_by(5).map(|tuple| tuple.0.clone()).collect();
                queries.extend(queries.clone().into_iter().map(|mut key| {
                    key.push(b'!');
                    key
                }));
                queries.extend([Vec::new(), vec![0xFF; 30], b"https://host1".to_vec()]);
                let lower = |query: &Vec<u8>| tuples.partition_point(|tuple| tuple.0 < *query) as u64;
                for structure in Structure::ALL.into_iter().filter(|it| it.is_in(&header(&bytes))) {
                    let open = OpenOptions::default().structure(structure);
                    let index = open.from_bytes(bytes.clone()).expect("opens");
                    let view = index.strings::<u32>().expect("types");
                    let mut ranks = vec![0; queries.len()];
                    view.lower_bound_batch(&queries, &mut ranks).expect("readable");
                    let what = format!("{name} {count} {layout} {structure}");
                    assert!(ranks.iter().zip(&queries).all(|(rank, query)| *rank == lower(query)), "{what}");
                    for query in &queries {
                        assert_eq!(view.get(query), wanted.get(query), "{what}");
                        assert_eq!(view.lower_bound(query), Ok(lower(query)), "{what}");
                        assert_eq!(view.prefix_ranks(query), wanted.prefix_ranks(query), "{what}");
                    }
                }
            }
        }
    }
}

/// The same bytes for any number of threads, and however little memory there is.
#[test]
fn bytes_do_not_depend_on_memory_or_threads() {
    let layout = "lines,wide,fast:FORM:dp=6,harmonia:8,btree:5";
    for form in ["full", "delta", "partial", "auto", "full:packed", "auto:packed"] {
        let whole = options(&layout.replace("FORM", form));
        for count in [300u64, 20_000, 400_000] {
            let tuples: Vec<(u64, u32)> = (0..count).map(|i| (mix(i) >> (i % 40), i as u32)).collect();
            let build = |threads, memory_bytes| {
                let options = BuildOptions { threads, memory_bytes, ..whole.clone() };
                build_bytes(&tuples, &options).expect("builds")
            };
            let wanted = build(1, 1 << 32);
            assert!(wanted == build(3, 1 << 20), "{form} {count}");
            assert!(wanted == build(2, 1), "{form} {count}");
            if count < 400_000 {
                assert_eq!(check_bytes(&wanted), []);
            }
        }
    }
}

/// Every byte of a tree follows from the tuples.
#[test]
fn damaged_trees_are_found() {
    let sections =
        [("fast:full:dp=6", Tag::FAST), ("fast:delta:dp=6", Tag::FAST), ("fast:auto:dp=6", Tag::FAST)];
    let sections = sections.into_iter().chain([("harmonia:8", Tag::HARMONIA), ("btree:5", Tag::BTREE)]);
    for (number, (section, tag)) in sections.enumerate() {
        for count in [1u64, 700, 9000] {
            let wide: Vec<(u64, u32)> = (0..count).map(|i| (mix(i) >> (i % 50), i as u32)).collect();
            let wide: Vec<(u64, u32)> = BTreeMap::from_iter(wide).into_iter().collect();
            let narrow: Vec<(u32, u32)> =
                (0..count as u32).map(|i| (i * 3 + (mix(i.into()) as u32 & 1), i)).collect();
            let texts = numbered((0..count).map(|i| format!("{:020}", mix(i)).into_bytes()));
            let options = options(&format!("lines,wide,{section}"));
            let files = [
                build_bytes(&wide, &options).expect("builds"),
                build_bytes(&narrow, &options).expect("builds"),
                build_strings_bytes(KeyType::Utf8, &texts, &options).expect("builds"),
            ];
            let whole = &files[(number + count as usize) % files.len()];
            assert_eq!(check_bytes(whole), []);
            let tree = content(whole, tag);
            let tries = if is_long() { 8 * tree.len() } else { 200 };
            for turn in 0..tries {
                // The last bytes, which are padding, and others.
                let bit = match turn {
                    0..10 => 8 * (tree.len() - 1 - turn * 6 % tree.len()),
                    _ if is_long() => turn,
                    _ => mix(turn as u64) as usize % (8 * tree.len()),
                };
                let mut bytes = whole.clone();
                bytes[tree.start + bit / 8] ^= 1 << (bit % 8);
                reseal(&mut bytes);
                let findings = check_bytes(&bytes);
                let is_named = findings.iter().any(|it| it.section == tag.name());
                assert!(is_named, "{section} bit {bit}: {findings:?}");
            }
            // Other parameters under right sums are refused or named.
            let entry = entry_at(whole, tag) + 56;
            for field in if count == 9000 { 0..24 } else { 0..0 } {
                let mut bytes = whole.clone();
                bytes[entry + field] = bytes[entry + field].wrapping_add(1 + field as u8);
                reseal(&mut bytes);
                let findings = check_bytes(&bytes);
                assert!(!findings.is_empty(), "{section} field {field}");
            }
        }
    }
}

/// A file is not searched by what it does not have.
#[test]
fn missing_structures_are_refused() {
    let bytes = build_bytes(&[(1u64, 2u32)], &options("lines,btree")).expect("builds");
    for structure in [Structure::Spine, Structure::Grid, Structure::Fast, Structure::Harmonia] {
        let refused = OpenOptions::default().structure(structure).from_bytes(bytes.clone());
        let text = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(text.contains(&format!("has no {structure}")), "{text}");
    }
    let index = Index::from_bytes(bytes).expect("opens");
    assert_eq!(index.structure(), Structure::Btree);
}
