//! Byte keys against a sorted vector: every look-up, every instruction set, every way to build.

use pleach::{
    FsckOptions, Index, Isa, Key, KeyType, Near, OpenOptions, StringRange, Value, ValueType, Verify, fsck,
};
use pleach_builder::storage::MemoryStorage;
use pleach_builder::{BuildOptions, Chunk, ChunkSource, Column, Schema, Silent, Strings, Unique};
use pleach_builder::{build_strings_bytes, build_with_storage};
use pleach_format::section::{Tag, TrieParameters};
use pleach_tests::adversarial;
use pleach_tests::is_long;
use pleach_tests::mutate::{content, contents, reseal};
use pleach_tests::naive::assemble;
use pleach_tests::pages;
use rayon::prelude::*;
use std::fmt::Debug;
use std::ops::Bound;
use std::path::Path;

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 31).wrapping_mul(0x7FB5_D329_728E_A185);
    let x = (x ^ x >> 27).wrapping_mul(0x81DA_DEF4_BC2D_D44D);
    x ^ x >> 33
}

type Tuples = Vec<(Vec<u8>, u32)>;

/// Queries near every key: itself, changed in each place that matters, longer, shorter.
fn queries(keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut queries: Vec<Vec<u8>> = vec![vec![], vec![0], vec![0xFF; 40], vec![0xFF; 3], b"zzz".to_vec()];
    let step = (keys.len() / 300).max(1);
    for (number, key) in keys.iter().enumerate().step_by(step) {
        queries.push(key.clone());
        queries.push([&key[..], &[0]].concat());
        queries.push([&key[..], b"a"].concat());
        queries.push(key[..key.len() / 2].to_vec());
        queries.push(key[..key.len().saturating_sub(1)].to_vec());
        for at in [0, number % key.len().max(1), key.len() / 2, key.len().saturating_sub(1)] {
            for change in [1u8, 0x10, 0x80, 0xFF] {
                let mut other = key.clone();
                if let Some(byte) = other.get_mut(at) {
                    *byte ^= change;
                }
                queries.push(other);
            }
        }
    }
    queries
}

fn gathered<V: Value>(range: StringRange<'_, V>) -> Vec<(Vec<u8>, V)> {
    range.collect::<Result<_, _>>().expect("verified")
}

fn check_file(bytes: &[u8], sorted: &Tuples, verify: Verify, isa: Isa) {
    let options = OpenOptions::default().verify(verify).isa(Some(isa));
    let index = options.from_bytes(bytes.to_vec()).expect("opens");
    let view = index.strings::<u32>().expect("types");
    let keys: Vec<Vec<u8>> = sorted.iter().map(|tuple| tuple.0.clone()).collect();
    let queries = queries(&keys);
    let mut ranks = vec![9; queries.len()];
    view.lower_bound_batch(&queries, &mut ranks).unwrap();
    let (mut values, mut present) = (vec![9; queries.len()], vec![u64::MAX; queries.len().div_ceil(64)]);
    let found = view.get_batch(&queries, &mut values, &mut present).unwrap();
    let (mut par_values, mut par_present) = (vec![9; queries.len()], vec![7; queries.len().div_ceil(64)]);
    view.par_get_batch(&queries, &mut par_values, &mut par_present).unwrap();
    assert_eq!((&values, &present), (&par_values, &par_present));
    let mut contained = vec![7; queries.len().div_ceil(64)];
    assert_eq!(view.contains_batch(&queries, &mut contained).unwrap(), found);
    assert_eq!(contained, present);
    let keys_only = index.strings::<()>().expect("keys only");
    let mut counted = 0;
    for (at, query) in queries.iter().enumerate() {
        let low = sorted.partition_point(|tuple| tuple.0 < *query);
        let high = sorted.partition_point(|tuple| tuple.0 <= *query);
        let wanted = sorted.get(low).filter(|tuple| tuple.0 == *query).map(|tuple| tuple.1);
        let what = format!("{query:?} among {} keys, {isa} {verify}", sorted.len());
        assert_eq!(view.get(query).unwrap(), wanted, "{what}");
        assert_eq!(keys_only.contains(query).unwrap(), wanted.is_some(), "{what}");
        assert_eq!(view.rank(query).unwrap(), wanted.map(|_| low as u64), "{what}");
        assert_eq!(view.lower_bound(query).unwrap(), low as u64, "{what}");
        assert_eq!(view.upper_bound(query).unwrap(), high as u64, "{what}");
        assert_eq!(ranks[at], low as u64, "batch: {what}");
        assert_eq!(values[at], wanted.unwrap_or(0), "batch: {what}");
        assert_eq!(present[at / 64] >> (at % 64) & 1 == 1, wanted.is_some(), "batch: {what}");
        counted += usize::from(wanted.is_some());
        if at % 7 == 0 {
            // Keys that begin with a key are consecutive, starting at its rank.
            let prefixed: Vec<_> =
                sorted[low..].iter().take_while(|tuple| tuple.0.starts_with(query)).cloned().collect();
            assert_eq!(gathered(view.prefix(query).unwrap()), prefixed, "prefix {what}");
            assert_eq!(gathered(view.get_all(query).unwrap()), sorted[low..high], "{what}");
            // Another query, or one nearby: of long ranges only some are gathered.
            let near = sorted.get(low + at * 31 % 300).filter(|_| at % 9 != 0 || sorted.len() > 3000);
            let other = near.map_or(&queries[(at * 31 + 5) % queries.len()], |tuple| &tuple.0);
            let end = sorted.partition_point(|tuple| tuple.0 < *other).max(low);
            let bounds = (Bound::Included(&query[..]), Bound::Excluded(&other[..]));
            assert_eq!(view.count(bounds).unwrap(), (end - low) as u64, "{what}");
            let mut back: Vec<_> = view.range(bounds).unwrap().rev().collect::<Result<_, _>>().unwrap();
            back.reverse();
            assert_eq!(back, sorted[low..end], "{what}");
        }
    }
    assert_eq!(found, counted);
    for near in [Near::Floor, Near::Ceiling] {
        view.near_batch(near, &queries, &mut ranks).unwrap();
        for (query, &rank) in queries.iter().zip(&ranks) {
            let expected = match near {
                Near::Ceiling => sorted.partition_point(|tuple| tuple.0 < *query),
                _ => sorted.partition_point(|tuple| tuple.0 <= *query).wrapping_sub(1),
            };
            let expected = if expected < sorted.len() { expected as u64 } else { u64::MAX };
            assert_eq!(rank, expected, "{near:?} of {query:?} among {} keys, {isa} {verify}", sorted.len());
        }
    }
    assert_eq!(gathered(view.ranks(0..u64::MAX)), *sorted);
    assert_eq!(view.min().unwrap().as_ref(), sorted.first());
    assert_eq!(view.max().unwrap().as_ref(), sorted.last());
}

fn check(key_type: KeyType, mut tuples: Tuples) -> Index {
    let bytes = build_strings_bytes(key_type, &tuples, &BuildOptions::default()).expect("builds");
    let small = BuildOptions { memory_bytes: 1, threads: 1, ..BuildOptions::default() };
    let same = build_strings_bytes(key_type, &tuples, &small).expect("builds in little memory");
    assert!(bytes == same, "memory and threads change nothing");
    // Stable: equal keys keep the order of the input.
    tuples.sort_by(|a, b| a.0.cmp(&b.0));
    let promised = BuildOptions { sorted: true, ..BuildOptions::default() };
    let same = build_strings_bytes(key_type, &tuples, &promised).expect("builds from sorted input");
    assert!(bytes == same, "order changes nothing");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.pleach");
    std::fs::write(&path, &bytes).expect("written");
    let report = pleach::fsck(&path, &pleach::FsckOptions::default()).expect("read");
    assert_eq!(report.findings, []);
    for isa in Isa::available() {
        check_file(&bytes, &tuples, Verify::Header, isa);
    }
    check_file(&bytes, &tuples, Verify::Touched, Isa::best());
    check_file(&bytes, &tuples, Verify::Full, Isa::Scalar);
    check_pages(&bytes, &tuples);
    Index::from_bytes(bytes).expect("opens")
}

/// What the second reader reads of pages, and what the second writer writes.
fn check_pages(bytes: &[u8], sorted: &Tuples) {
    let header = Index::from_bytes(bytes.to_vec()).expect("opens").header().clone();
    let Some((_, shape)) = header.text else { return };
    let keys: Vec<Vec<u8>> = sorted.iter().map(|tuple| tuple.0.clone()).collect();
    let section = &bytes[content(bytes, Tag::TEXT)];
    assert!(pages::keys(section, keys.len(), shape.place_bytes as usize) == keys, "the second reader");
    if keys.iter().any(|key| key.len() > 4000) {
        return;
    }
    let mut sections = contents(bytes);
    sections.retain(|section| section.0 != Tag::TRIE);
    let at = sections.iter().position(|section| section.0 == Tag::TEXT).expect("there");
    sections[at] = pages::text(&keys);
    let without = assemble(header.superblock, sections.clone());
    assert_clean(&without);
    check_file(&without, sorted, Verify::Header, Isa::best());
    if let Some(trie) = pages::trie(&keys) {
        let levels = TrieParameters::from(trie.4).levels.get();
        sections.insert(at + 1, trie);
        let other = assemble(header.superblock, sections);
        // A trie of two children a node may be too deep.
        if levels <= 64 {
            assert_clean(&other);
            check_file(&other, sorted, Verify::Header, Isa::best());
        }
    }
}

fn numbered(keys: impl IntoIterator<Item = Vec<u8>>) -> Tuples {
    keys.into_iter().zip(1u32..).collect()
}

#[test]
fn phone_numbers_become_words_of_8_bytes() {
    let phone = |i: u64| {
        let (a, b, c) = (mix(i) % 1000, mix(i + 7) % 1000, mix(i + 99) % 10_000);
        format!("{}-{a:03}-{b:03}-{c:04}", 10 + mix(i + 3) % 25).into_bytes()
    };
    let index = check(KeyType::Fixed(15), numbered((0..20_000).map(phone)));
    assert_eq!(index.header().geometry.key_bytes, 8);
    assert!(index.key_column().is_none());
    check(KeyType::Utf8, numbered((0..3000).map(phone)));
}

#[test]
fn sizes_at_every_edge() {
    for count in [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 400, 2000] {
        let digits = |i: u64| format!("{:08}", mix(i) % 100_000_000).into_bytes();
        check(KeyType::Fixed(8), numbered((0..count).map(digits)));
        let short = |i: u64| format!("{}", mix(i) % 1000).into_bytes();
        check(KeyType::Bytes, numbered((0..count).map(short)));
        let random = |i: u64| (0..1 + i % 40).map(|j| mix(i * 64 + j) as u8).collect();
        check(KeyType::Bytes, numbered((0..count).map(random)));
    }
}

#[test]
fn keys_that_no_word_holds() {
    let wide = |i: u64| (0..16).map(|j| mix(i * 16 + j) as u8).collect();
    let index = check(KeyType::Fixed(16), numbered((0..5000).map(wide)));
    assert_eq!((index.header().geometry.key_bytes, index.key_column().is_some()), (16, false));
    let long = |i: u64| (0..128).map(|j| b'0' + (mix(i * 128 + j) % 10) as u8).collect();
    let index = check(KeyType::Fixed(128), numbered((0..5000).map(long)));
    // 16 digits make the word, 112 the tail of 56 bytes.
    let tail_bytes = index.mask().and_then(|mask| mask.tail()).map(|tail| tail.bytes());
    assert_eq!((index.header().geometry.key_bytes, index.key_column().is_some()), (8, false));
    assert_eq!(tail_bytes, Some(64));
    // Tails of a few bits, of any number of bytes, with lengths, and with runs of equal words before them.
    let mut shapes: Vec<(u64, u64)> =
        [2, 3, 10, 200].iter().flat_map(|&v| [17, 18, 33, 40, 67, 129].map(|bytes| (v, bytes))).collect();
    if !is_long() {
        // Every number of values and of bytes is met.
        shapes = shapes
            .into_iter()
            .enumerate()
            .filter(|(at, _)| at % 6 % 4 == at / 6)
            .map(|shape| shape.1)
            .collect();
    }
    shapes.into_par_iter().for_each(|(values, bytes)| {
        let key =
            |i: u64| -> Vec<u8> { (0..bytes).map(|j| (mix((i % 400) * 131 + j) % values) as u8).collect() };
        let fixed = check(KeyType::Fixed(bytes as u16), numbered((0..600).map(key)));
        assert!(fixed.key_column().is_none());
        let cut = |i: u64| {
            let mut key = key(i / 3);
            key.truncate(bytes as usize - (i % 3) as usize);
            key
        };
        check(KeyType::Bytes, numbered((0..600).map(cut)));
        let late = |i: u64| [&vec![b'x'; 20 + (i % 2) as usize][..], &key(i)].concat();
        check(KeyType::Bytes, numbered((0..300).map(late)));
    });
    // Runs of equal words: the first hundred bytes are one of three.
    let alike = |i: u64| {
        let start = [b"https://www.example.com/", b"https://www.example.org/", b"ftp://files.example.net/"];
        let mut key = start[(mix(i) % 3) as usize].repeat(4);
        key.extend_from_slice(&mix(i % 3000).to_be_bytes()[..5]);
        key
    };
    check(KeyType::Bytes, numbered((0..6000).map(alike)));
}

/// Keys that fill 16 bytes before they differ, in every way that a trie over pages must tell apart.
#[test]
fn keys_by_page() {
    let letter = |i: u64| b'a' + (mix(i) % 26) as u8;
    // Hosts of 30 letters that have little in common, so that their bits fill a word.
    let host = |i: u64| -> Vec<u8> { (0..30).map(|at| letter(mix(i) % 7 * 1000 + at)).collect() };
    // The end is one of `ends`, made of few letters or of zero bytes.
    let urls = |i: u64| [host(i), (0..mix(i) % 40).map(|j| letter(mix(i) % 900 + j)).collect()].concat();
    let zeros =
        |i: u64| [host(i), vec![0; (mix(i) % 50) as usize], vec![letter(i); (i % 3) as usize]].concat();
    let chain = |i: u64| [b"a chain of keys that ".repeat(2), vec![b'a'; (mix(i) % 900) as usize]].concat();
    let nested = |i: u64| {
        let folder = |level: u32| {
            let number = mix(i / 4u64.pow(level)) % 4;
            [b'/'].into_iter().chain((0..30).map(move |at| letter(number * 1000 + at)))
        };
        (0..8).rev().flat_map(folder).collect::<Vec<u8>>()
    };
    let long = |i: u64| {
        let tail = vec![letter(mix(i) % 5); 300 + (mix(i) % 2000) as usize];
        [b"the same beginning of each ".to_vec(), tail, mix(i % 500).to_be_bytes().to_vec()].concat()
    };
    let equal = |i: u64| [b"many of each, over several pages: ".to_vec(), urls(i / 20)].concat();
    let kinds: [&(dyn Fn(u64) -> Vec<u8> + Sync); 6] = [&urls, &zeros, &chain, &nested, &long, &equal];
    let sizes = [2, 15, 16, 17, 31, 33, 48, 65, 177, 1000];
    let cases: Vec<_> =
        kinds.into_iter().enumerate().flat_map(|kind| sizes.map(|size| (kind, size))).collect();
    let deep: usize = cases
        .into_par_iter()
        .map(|((kind, key), size)| {
            let index = check(KeyType::Bytes, numbered((0..size).map(key)));
            let header = index.header();
            // Few keys may fit in words or tails.
            if size == 1000 {
                let tags: Vec<Tag> = header.sections.iter().map(|section| section.entry.tag).collect();
                assert!(
                    header.text.is_some() && header.trie.is_some(),
                    "kind {kind}: {tags:?}, {:?}",
                    index.mask()
                );
                assert_eq!(header.spine.levels.len(), 0, "words are not searched");
            }
            header.trie.map_or(0, |(_, trie)| trie.levels as usize)
        })
        .max()
        .expect("cases");
    assert!(deep > 3, "{deep} levels");
    // Without the trie, pages are bisected; with columns or trees, keys are where they were.
    let tuples = numbered((0..500).map(urls));
    let mut sorted = tuples.clone();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    for (layout, tags) in [
        ("lines", &[Tag::TEXT][..]),
        ("lines,spine", &[Tag::TEXT, Tag::TRIE]),
        ("lines,spine,columns", &[Tag::SPINE, Tag::KEYS]),
        ("lines,btree", &[Tag::BTREE]),
    ] {
        let options = BuildOptions::default().with_layout(layout.parse().expect("a layout"));
        let bytes = build_strings_bytes(KeyType::Utf8, &tuples, &options).expect("builds");
        let header = Index::from_bytes(bytes.clone()).expect("opens").header().clone();
        let all = [Tag::TEXT, Tag::TRIE, Tag::SPINE, Tag::KEYS, Tag::BTREE];
        let there: Vec<Tag> = all.into_iter().filter(|&tag| header.section(tag).is_some()).collect();
        let mut wanted = tags.to_vec();
        wanted.sort_by_key(|tag| all.iter().position(|of| of == tag));
        assert_eq!(there, wanted, "{layout}");
        check_file(&bytes, &sorted, Verify::Header, Isa::best());
        check_file(&bytes, &sorted, Verify::Touched, Isa::best());
        assert_clean(&bytes);
    }
}

#[test]
fn adversarial_keys() {
    // One nibble differs, at the front, in the middle, at the end.
    for at in [0, 20, 39] {
        let mut keys = Vec::new();
        for nibble in 0..16u8 {
            for high in [0, 4] {
                let mut key = vec![0x55; 40];
                key[at] = 0x50 & !(0xF0 >> high) | nibble << high;
                keys.push(key);
            }
        }
        check(KeyType::Fixed(40), numbered(keys));
    }
    // Prefixes of each other, zero bytes, extremes.
    let mut keys: Vec<Vec<u8>> = (0..70).map(|n| vec![b'a'; n]).collect();
    keys.extend((0..70).map(|n| [&b"a"[..], &vec![0; n]].concat()));
    keys.extend((0..70).map(|n| vec![0; n]));
    keys.extend((0..70).map(|n| vec![0xFF; n]));
    keys.extend([vec![0; 65_535], vec![0xFF; 65_535], vec![b'a'; 65_535]]);
    check(KeyType::Bytes, numbered(keys.clone()));
    keys.retain(|key| key.len() < 20);
    check(KeyType::Bytes, numbered(keys));
    // All equal, and many of each.
    check(KeyType::Bytes, numbered(vec![b"same".to_vec(); 500]));
    check(KeyType::Utf8, numbered((0..3000).map(|i| format!("k{}", mix(i) % 40).into_bytes())));
    check(KeyType::Fixed(1), numbered((0..1000u64).map(|i| vec![mix(i) as u8])));
}

#[test]
fn adversarial_cases_and_their_queries() {
    let mut cases = adversarial::all();
    cases.push(("a run of 100,000".to_owned(), adversarial::equal_partial_keys(8, 100_000)));
    for (name, case) in cases {
        let key_type = match case.width() {
            Some(width @ 1..) => KeyType::Fixed(width as u16),
            _ => KeyType::Bytes,
        };
        let tuples = numbered(case.keys.iter().cloned());
        let bytes = build_strings_bytes(key_type, &tuples, &BuildOptions::default()).expect("builds");
        for isa in Isa::available() {
            let index = OpenOptions::default().isa(Some(isa)).from_bytes(bytes.clone()).expect("opens");
            let view = index.strings::<u32>().expect("types");
            let (mut ranks, mut values) = (vec![0; case.queries.len()], vec![0; case.queries.len()]);
            let mut present = vec![0; case.queries.len().div_ceil(64)];
            view.lower_bound_batch(&case.queries, &mut ranks).expect("readable");
            view.get_batch(&case.queries, &mut values, &mut present).expect("readable");
            for (at, query) in case.queries.iter().enumerate() {
                let low = tuples.partition_point(|tuple| tuple.0 < *query);
                let wanted = tuples.get(low).filter(|tuple| tuple.0 == *query).map_or(0, |tuple| tuple.1);
                let start = &query[..query.len().min(50)];
                assert_eq!((ranks[at], values[at]), (low as u64, wanted), "{name} {isa}: {start:?}");
                assert_eq!(present[at / 64] >> (at % 64) & 1 == 1, wanted != 0, "{name} {isa}: {start:?}");
            }
        }
    }
}

#[test]
fn a_run_of_equal_words_is_not_walked() {
    // 100,000 keys that share their word: the 130 varying bytes in front are taken from two outliers.
    let run = |i: u32| [&[b'm'; 130][..], &i.to_be_bytes()].concat();
    let mut keys: Vec<Vec<u8>> = (0..100_000).map(run).collect();
    keys.push(vec![0; 134]);
    keys.push(vec![0xFF; 134]);
    let tuples = numbered(keys);
    let bytes = build_strings_bytes(KeyType::Fixed(134), &tuples, &BuildOptions::default()).expect("builds");
    let index = Index::from_bytes(bytes).expect("opens");
    let view = index.strings::<u32>().expect("types");
    for (key, value) in tuples.iter().step_by(997) {
        assert_eq!(view.get(key).unwrap(), Some(*value));
        let longer = [&key[..], &[0]].concat();
        assert_eq!(view.get(&longer).unwrap(), None);
        assert_eq!(view.lower_bound(&longer).unwrap(), view.lower_bound(key).unwrap() + 1);
    }
}

/// A file of these bytes is clean.
#[track_caller]
fn assert_clean(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t");
    std::fs::write(&path, bytes).expect("written");
    assert_eq!(fsck(&path, &FsckOptions::default()).expect("readable").findings, []);
}

#[test]
fn unique_keys_of_equal_words_are_clean() {
    let run = |i: u32| [&[b'm'; 130][..], &i.to_be_bytes()].concat();
    let mut keys: Vec<Vec<u8>> = (0..3000).map(run).collect();
    keys.push(vec![0; 134]);
    keys.push(vec![0xFF; 134]);
    let options = BuildOptions { unique: Some(Unique::Error), ..BuildOptions::default() };
    let bytes = build_strings_bytes(KeyType::Fixed(134), &numbered(keys), &options).expect("builds");
    let mask = Index::from_bytes(bytes.clone()).expect("opens");
    assert!(mask.is_unique());
    assert_clean(&bytes);
}

#[test]
fn long_values_are_clean_and_broken_texts_are_found() {
    // Letters of two bytes, so that pieces of an even number of bytes part one.
    let text = |letters: usize| format!("x{}", "\u{fc}".repeat(letters)).into_bytes();
    let lengths = [3 << 20, 0, 5, 2 << 20, 1 << 20, 7, 5 << 20];
    let mut chunk = Chunk::new(KeyType::U64, ValueType::Utf8);
    chunk.keys = Column::U64((0..lengths.len() as u64).collect());
    chunk.values = column(lengths.into_iter().map(text));
    let schema = Schema::plain(KeyType::U64, ValueType::Utf8, None);
    let whole = build(&schema, chunk, &BuildOptions::default()).expect("builds");
    assert_clean(&whole);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t");
    let values = content(&whole, Tag::VALUES);
    for at in [values.end - 65, values.end - 9_000_000, values.start + 4_000_000] {
        let mut bytes = whole.clone();
        bytes[at] = 0xFF;
        reseal(&mut bytes);
        std::fs::write(&path, &bytes).expect("written");
        let findings = fsck(&path, &FsckOptions::default()).expect("readable").findings;
        assert!(
            findings.iter().any(|it| it.section == "VALS" && it.expected == "valid UTF-8"),
            "{findings:?}"
        );
    }
}

fn column(strings: impl IntoIterator<Item = Vec<u8>>) -> Column {
    let mut column = Strings::default();
    strings.into_iter().for_each(|string| column.push(&string));
    Column::Bytes(column)
}

fn build(
    schema: &Schema,
    chunk: Chunk,
    options: &BuildOptions,
) -> Result<Vec<u8>, pleach_builder::BuildError> {
    let storage = MemoryStorage::default();
    let target = Path::new("/t.pleach");
    let mut source = ChunkSource::new(schema.clone(), [chunk]);
    build_with_storage(&mut source, target, options, &Silent, &storage)?;
    Ok(storage.take(target).expect("built"))
}

#[test]
fn byte_values_stand_in_a_column() {
    let value = |i: u64| vec![b'v'; (mix(i) % 90) as usize];
    let keys: Vec<u64> = (0..5000).map(|i| mix(i) % 4000).collect();
    let schema = Schema::plain(KeyType::U64, ValueType::Bytes, None);
    let chunk =
        Chunk { keys: Column::U64(keys.clone()), values: column((0..5000).map(value)), ops: Vec::new() };
    let mut built = Vec::new();
    for memory_bytes in [1 << 30, 1] {
        let options = BuildOptions { memory_bytes, ..BuildOptions::default() };
        built.push(build(&schema, chunk.clone(), &options).expect("builds"));
    }
    assert!(built[0] == built[1]);
    let mut wanted: Vec<(u64, Vec<u8>)> = keys.iter().copied().zip((0..5000).map(value)).collect();
    wanted.sort_by_key(|tuple| tuple.0);
    let index = Index::from_bytes(built.remove(0)).expect("opens");
    let (view, values) = (index.typed::<u64, ()>().expect("keys"), index.value_column().expect("there"));
    for (rank, (key, value)) in wanted.iter().enumerate() {
        assert_eq!(view.select(rank as u64).unwrap(), Some((*key, ())));
        assert_eq!(values.get(rank as u64).unwrap().as_deref(), Some(&value[..]));
    }
    // Both, by string keys with duplicates, and each choice among these.
    let key = |i: u64| format!("key-{}", mix(i) % 300).into_bytes();
    let schema = Schema::plain(KeyType::Utf8, ValueType::Fixed(3), None);
    let value = |i: u64| (i as u32).to_be_bytes()[1..].to_vec();
    let chunk =
        Chunk { keys: column((0..2000).map(key)), values: column((0..2000).map(value)), ops: Vec::new() };
    for unique in [None, Some(Unique::First), Some(Unique::Last)] {
        for memory_bytes in [1 << 30, 1] {
            let options = BuildOptions { unique, memory_bytes, ..BuildOptions::default() };
            let index = Index::from_bytes(build(&schema, chunk.clone(), &options).expect("builds")).unwrap();
            let mut wanted: Vec<(Vec<u8>, Vec<u8>)> = (0..2000).map(|i| (key(i), value(i))).collect();
            if unique == Some(Unique::Last) {
                wanted.reverse();
            }
            wanted.sort_by(|a, b| a.0.cmp(&b.0));
            if unique.is_some() {
                wanted.dedup_by(|later, earlier| later.0 == earlier.0);
            }
            let (view, values) = (index.strings::<()>().expect("keys"), index.value_column().expect("there"));
            assert_eq!(view.len(), wanted.len() as u64);
            for (rank, (key, value)) in wanted.iter().enumerate() {
                assert_eq!(view.key(rank as u64).unwrap().as_deref(), Some(&key[..]));
                assert_eq!(values.get(rank as u64).unwrap().as_deref(), Some(&value[..]));
            }
        }
    }
    let options = BuildOptions { unique: Some(Unique::Error), ..BuildOptions::default() };
    let error = build(&schema, chunk, &options).expect_err("duplicates").to_string();
    assert!(error.starts_with("duplicate key: \"key-"), "{error}");
}

#[test]
fn columns_beside_the_lines() {
    let keys: Vec<i64> = (0..3000).map(|i| mix(i).cast_signed()).collect();
    let tuples: Vec<(i64, f32)> = keys.iter().map(|&key| (key, key as f32)).collect();
    let options = BuildOptions { columns: true, ..BuildOptions::default() };
    let bytes = pleach_builder::build_bytes(&tuples, &options).expect("builds");
    let index = Index::from_bytes(bytes).expect("opens");
    let mut wanted = tuples.clone();
    wanted.sort_by_key(|tuple| tuple.0);
    let (keys, values) = (index.key_column().expect("keys"), index.value_column().expect("values"));
    assert_eq!((keys.element_bytes(), values.element_bytes()), (Some(8), Some(4)));
    let flat: Vec<u8> = wanted.iter().flat_map(|tuple| tuple.0.to_le_bytes()).collect();
    assert!(keys.data() == flat);
    let flat: Vec<u8> = wanted.iter().flat_map(|tuple| tuple.1.to_le_bytes()).collect();
    assert!(values.data() == flat);
    let texts: Tuples = numbered((0..3000).map(|i| mix(i).to_string().into_bytes()));
    let bytes = build_strings_bytes(KeyType::Utf8, &texts, &options).expect("builds");
    let index = Index::from_bytes(bytes).expect("opens");
    let keys = index.key_column().expect("keys");
    assert_eq!(keys.offset_bytes(), Some(4));
    let view = index.strings::<u32>().expect("types");
    for rank in 0..3000 {
        assert_eq!(keys.get(rank).unwrap().as_deref(), view.key(rank).unwrap().as_deref());
    }
}

#[test]
fn packed_keys_beside_the_lines() {
    fn check<K: Key + Debug>(mut keys: Vec<K>) -> Vec<u8> {
        let options = BuildOptions { packed: true, ..BuildOptions::default() };
        let tuples: Vec<(K, u32)> = keys.iter().copied().zip(0..).collect();
        let bytes = pleach_builder::build_bytes(&tuples, &options).expect("builds");
        let little = BuildOptions { memory_bytes: 1, threads: 1, ..options };
        assert!(bytes == pleach_builder::build_bytes(&tuples, &little).expect("builds"));
        keys.sort_by_key(|key| key.encode());
        for verify in [Verify::Header, Verify::Touched, Verify::Full] {
            let index = OpenOptions::default().verify(verify).from_bytes(bytes.clone()).expect("opens");
            let packed = index.packed_keys::<K>().expect("has one");
            assert_eq!(packed.len(), keys.len() as u64);
            for (rank, key) in keys.iter().enumerate() {
                assert_eq!(packed.get(rank as u64).unwrap(), Some(*key));
            }
            assert_eq!(packed.get(keys.len() as u64).unwrap(), None);
            let (mut all, mut some) = (Vec::new(), Vec::new());
            packed.read(0..u64::MAX, &mut all).unwrap();
            assert!(all == keys);
            let middle = keys.len() / 3..keys.len() / 2;
            packed.read(middle.start as u64..middle.end as u64, &mut some).unwrap();
            assert!(some == keys[middle]);
        }
        bytes
    }
    for count in [0, 1, 2, 1023, 1024, 1025, 5000] {
        check::<u64>((0..count).map(mix).collect());
        check::<u32>((0..count as u32).map(|i| i * 3).collect());
        check::<i64>((0..count).map(|i| mix(i).cast_signed() >> 40).collect());
        check::<i32>(vec![-5; count as usize]);
        check::<f64>((0..count).map(|i| i as f64 - 77.5).collect());
    }
    // Dense keys take 10 bits.
    let bytes = check::<u64>((1 << 40..(1 << 40) + (1 << 16)).collect());
    let index = Index::from_bytes(bytes.clone()).expect("opens");
    assert!(index.packed_keys::<u32>().is_none() && index.packed_keys::<i64>().is_none());
    let packed_bytes = index.packed_keys::<u64>().expect("has one").bytes();
    assert!(packed_bytes < 90_000, "{packed_bytes}");
    // Damage is found, and harms no reader that does not look for it.
    let section = *index.header().section(Tag::PACK).expect("there");
    for round in 0..300 {
        let mut bytes = bytes.clone();
        let at = section.offset() as usize + (mix(round) % section.entry.length.get()) as usize;
        let records = section.offset() as usize + (mix(round) % 1024) as usize;
        bytes[if round % 2 == 0 { at } else { records }] ^= 1 << (round % 8);
        assert!(OpenOptions::default().verify(Verify::Full).from_bytes(bytes.clone()).is_err());
        let index = Index::from_bytes(bytes.clone()).expect("opens");
        let packed = index.packed_keys::<u64>().expect("has one");
        packed.read(0..u64::MAX, &mut Vec::new()).unwrap();
        let touched = OpenOptions::default().verify(Verify::Touched).from_bytes(bytes).expect("opens");
        let packed = touched.packed_keys::<u64>().expect("has one");
        for rank in (0..1 << 16).step_by(777) {
            if let Ok(key) = packed.get(rank) {
                assert_eq!(key, Some((1 << 40) + rank));
            }
        }
    }
    let refused = BuildOptions { packed: true, ..BuildOptions::default() };
    let error = build_strings_bytes(KeyType::Utf8, &numbered([b"a".to_vec()]), &refused).expect_err("text");
    let wanted = "a packed column holds numbers of 4 and 8 bytes, not utf8: leave it out of the layout";
    assert_eq!(error.to_string(), wanted);
}

#[test]
fn bad_strings_are_refused() {
    let refused = |key_type, value_type, keys: Vec<Vec<u8>>, options: &BuildOptions| {
        let schema = Schema::plain(key_type, value_type, None);
        let values = match value_type {
            ValueType::None => Column::None,
            _ => column(vec![b"value".to_vec(); keys.len()]),
        };
        build(&schema, Chunk { keys: column(keys), values, ops: Vec::new() }, options)
            .expect_err("refused")
            .to_string()
    };
    let options = BuildOptions::default();
    let long = vec![b"a".to_vec(), vec![b'b'; 65_536]];
    assert_eq!(
        refused(KeyType::Bytes, ValueType::None, long, &options),
        "input: row 1: the key has 65536 bytes, but a key has at most 65535: shorten it"
    );
    let text = vec![b"fine".to_vec(), vec![0xFF, 0xFE]];
    assert_eq!(
        refused(KeyType::Utf8, ValueType::None, text, &options),
        "input: row 1: not valid UTF-8: choose the type bytes"
    );
    let uneven = vec![b"abc".to_vec(), b"abcd".to_vec()];
    assert_eq!(
        refused(KeyType::Fixed(3), ValueType::None, uneven.clone(), &options),
        "input: row 1: the key has 4 bytes instead of 3: choose the type bytes"
    );
    assert_eq!(
        refused(KeyType::Bytes, ValueType::Fixed(4), uneven, &options),
        "input: row 0: the value has 5 bytes instead of 4: choose the type bytes"
    );
    let sorted = BuildOptions { sorted: true, ..BuildOptions::default() };
    let backwards = vec![b"b".to_vec(), b"a".to_vec()];
    let error = refused(KeyType::Bytes, ValueType::None, backwards, &sorted);
    assert!(error.starts_with("input is not sorted: row 1: key \"a\" comes after key \"b\""), "{error}");
}

/// Whatever the bytes are: no search panics, loops or leaves them. Answers may be wrong.
#[test]
fn damaged_files_are_searched_without_harm() {
    let phone = |i: u64| format!("{:02}-{:03}", mix(i) % 100, mix(i + 5) % 1000).into_bytes();
    let long = |i: u64| format!("{:020}{}", mix(i), "suffix".repeat((i % 7) as usize)).into_bytes();
    let uneven = |i: u64| format!("{}{}", "ab".repeat((i % 5 * (i % 17)) as usize), mix(i)).into_bytes();
    let shapes: [(KeyType, Tuples, bool); 4] = [
        (KeyType::Fixed(6), numbered((0..400).map(phone)), false),
        (KeyType::Bytes, numbered((0..400).map(long)), false),
        (KeyType::Bytes, numbered((0..400).map(uneven)), false),
        (KeyType::Bytes, numbered((0..400).map(uneven)), true),
    ];
    let mut kinds = Vec::new();
    for (key_type, tuples, columns) in shapes {
        let options = BuildOptions { columns, ..BuildOptions::default() };
        let whole = build_strings_bytes(key_type, &tuples, &options).expect("builds");
        let header = Index::from_bytes(whole.clone()).expect("opens").header().clone();
        kinds.push([Tag::TAIL, Tag::KEYS, Tag::TEXT].map(|tag| header.section(tag).is_some()));
        let queries: Vec<Vec<u8>> = tuples.iter().step_by(9).map(|tuple| tuple.0.clone()).collect();
        let (mut refused, mut opened) = (0, 0);
        for round in 0..600u64 {
            let mut bytes = whole.clone();
            // Behind the superblock and the table, which have sums of their own that opening checks.
            for change in 0..=round % 4 {
                let at = 8192 + (mix(round * 7 + change) % (bytes.len() as u64 - 8192 - 4096)) as usize;
                let len = (mix(round + change) % 40) as usize;
                let end = (at + len + 1).min(bytes.len() - 4096);
                bytes[at..end].fill(mix(round * 3 + change) as u8);
            }
            let damaged = bytes != whole;
            let Ok(index) = Index::from_bytes(bytes.clone()) else {
                refused += 1;
                continue;
            };
            opened += 1;
            let Ok(view) = index.strings::<u32>() else { continue };
            let mut ranks = vec![0; queries.len()];
            view.lower_bound_batch(&queries, &mut ranks).expect("unverified");
            assert!(ranks.iter().all(|&rank| rank <= view.len()));
            let (mut values, mut present) = (vec![0; queries.len()], vec![0; queries.len().div_ceil(64)]);
            view.get_batch(&queries, &mut values, &mut present).expect("unverified");
            for query in queries.iter().step_by(5) {
                let _ = view.get(query);
                let _ = view.upper_bound(query);
                let _ = view.prefix(&query[..query.len().min(2)]).map(Iterator::count);
                let _ = view.comparisons(query);
            }
            let _ = view.ranks(0..u64::MAX).filter(Result::is_ok).count();
            let full = OpenOptions::default().verify(Verify::Full).from_bytes(bytes.clone());
            assert_eq!(full.is_err(), damaged, "round {round}");
            // Verified as it goes along, an answer is right or an error.
            let Ok(index) = OpenOptions::default().verify(Verify::Touched).from_bytes(bytes) else {
                continue;
            };
            let view = index.strings::<u32>().expect("types");
            for (key, value) in tuples.iter().step_by(37) {
                if let Ok(found) = view.get(key) {
                    let first = tuples.iter().find(|tuple| tuple.0 == *key).expect("there").1;
                    assert_eq!(found, Some(first), "round {round}: {value}");
                }
            }
        }
        assert!(refused + opened == 600 && opened > 300, "{refused} refused, {opened} opened");
    }
    // Whole keys in words, tails, the key column.
    let is = |section: usize| [0, 1, 2].map(|number| number == section);
    assert_eq!(kinds, [is(3), is(0), is(2), is(1)]);
}
