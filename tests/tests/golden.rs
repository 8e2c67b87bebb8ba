//! Files that were written once and are kept: today's builder must write the same bytes, and today's
//! reader must read them, tuple by tuple.
//!
//! `tests/data/v1.0/` holds them, `tests/data/bad/` damaged ones that `fsck` must name. What builds
//! them below is never changed; a new format version gets a folder and builders of its own.
//! `PLEACH_BLESS=1 cargo test -p pleach-tests --test golden` writes files that are missing.

use pleach::{
    FsckOptions, Index, Isa, Key, KeyType, Map, OpenOptions, Structure, Value, ValueType, Verdict, Verify,
    fsck,
};
use pleach_builder::source::Intervals;
use pleach_builder::storage::MemoryStorage;
use pleach_builder::{
    BuildOptions, Chunk, ChunkSource, Column, Fast, Harmonia, Schema, Silent, Source, SourceError, Unique,
    Values, build_strings_bytes, build_with_storage,
};
use pleach_format::classic::Geometry;
use pleach_format::classic::paged::Form;
use pleach_format::classic::section::load;
use pleach_format::section::Tag;
use pleach_format::spine::Encoding;
use pleach_format::{Bits, Word};
use pleach_tests::mutate::{self, Damage, PLAIN, SEALED, reseal_head};
use pleach_tests::trees::{compressed, with_compressed_pages, with_compressed_tree};
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of the superblock that name the program: they change with every release.
const BUILDER: std::ops::Range<usize> = 264..296;
/// Most bytes of a golden file: they are kept in the repository for ever.
const GOLDEN_BYTES_MAX: usize = 52 << 10;

fn data(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(folder)
}

fn blessing() -> bool {
    std::env::var_os("PLEACH_BLESS").is_some_and(|value| value == "1")
}

/// A mixer of this file's own, so that no change elsewhere changes what is built.
fn spread(x: u64) -> u64 {
    let x = (x ^ 0x5851_F42D_4C95_7F2D).wrapping_mul(0xD134_2543_DE82_EF95);
    let x = (x ^ x >> 32).wrapping_mul(0xDABA_0B6E_B093_22E3);
    x ^ x >> 29
}

/// Tuples as a source with names.
struct Named<'a, K, V> {
    schema: Schema,
    tuples: &'a [(K, V)],
}

impl<K: Key, V: Value> Source for Named<'_, K, V> {
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        chunk.clear();
        let (now, later) = self.tuples.split_at(tuples_max.min(self.tuples.len()));
        let put = |column: &mut Column, word: u128| match column {
            Column::None | Column::Bytes(_) => {}
            Column::U32(column) => column.push(word as u32),
            Column::U64(column) => column.push(word as u64),
            Column::U128(column) => column.push(word),
        };
        for (key, value) in now {
            put(&mut chunk.keys, key.encode().to_u128());
            put(&mut chunk.values, value.to_bits().to_u64().into());
        }
        self.tuples = later;
        Ok(())
    }
    fn progress(&self) -> (u64, Option<u64>) {
        (0, None)
    }
}

/// Names and logical types of the columns.
type Names = [&'static str; 4];
const NAMELESS: Names = [""; 4];

fn build<K: Key, V: Value>(tuples: &[(K, V)], names: Names, options: &BuildOptions) -> Vec<u8> {
    let [key_name, value_name, key_logical, value_logical] = names.map(str::to_owned);
    let schema = Schema {
        key_name,
        value_name,
        key_logical,
        value_logical,
        ..Schema::plain(K::TYPE, V::TYPE, Some(tuples.len() as u64))
    };
    let storage = MemoryStorage::default();
    let target = Path::new("/golden.pleach");
    build_with_storage(&mut Named { schema, tuples }, target, options, &Silent, &storage).expect("built");
    storage.take(target).expect("there")
}

/// Addresses as intervals: keys and ends have a logical type, and META says that keys begin intervals.
#[test]
fn intervals() {
    let tuples: Vec<(u32, u64)> = (0..500u32)
        .map(|at| {
            let (start, last) = ((at << 22) | (at % 3), (at << 22) + (1 << (at % 20 + 2)) + 5);
            (start, u64::from(last) | u64::from(at % 7) << 32)
        })
        .collect();
    let record = "record<last: u32 \"Ipv4\", country: u32>";
    let schema = Schema {
        key_name: "first".to_owned(),
        key_logical: "Ipv4".to_owned(),
        value_logical: record.to_owned(),
        interval: Some(Intervals::Disjoint),
        ..Schema::plain(KeyType::U32, ValueType::U64, None)
    };
    let storage = MemoryStorage::default();
    let target = Path::new("/golden.pleach");
    let mut source = Named { schema, tuples: &tuples };
    build_with_storage(&mut source, target, &BuildOptions::default(), &Silent, &storage).expect("built");
    let golden = compare("intervals.pleach", storage.take(target).expect("there"));
    // The second builder writes the same.
    let meta = pleach_format::meta::Meta {
        key_name: "first".to_owned(),
        key_logical: "Ipv4".to_owned(),
        value_logical: record.to_owned(),
        interval: "inclusive".to_owned(),
        ..Default::default()
    };
    let mut second = pleach_tests::naive::build(&tuples, &meta, false);
    second[BUILDER].copy_from_slice(&golden[BUILDER]);
    reseal_head(&mut second);
    assert!(second == golden, "the second builder writes other bytes");
    let map: Map<u32, (u32, u32)> = Map::from_bytes(golden).expect("opens");
    for (at, &(start, value)) in tuples.iter().enumerate() {
        let (last, country) = (value as u32, (value >> 32) as u32);
        let expected = Some((start, (last, country)));
        assert_eq!(map.interval(start).expect("readable"), expected);
        assert_eq!(map.interval(last).expect("readable"), expected);
        let before = start.checked_sub(1).and_then(|key| map.interval(key).expect("readable"));
        assert_eq!(before.is_some(), at > 0 && before.is_some_and(|(_, (last, _))| last >= start - 1));
        assert_eq!(map.interval(last + 1).expect("readable"), None, "a gap follows");
    }
}

/// Records of texts, bytes, booleans and numbers, as intervals.
#[test]
fn records_of_texts() {
    let record = "record<last: u32, name: utf8, flag: u8 \"Boolean\", blob: bytes, note: utf8>";
    let name = |at: u32| ["", "a", "été", "\u{1f600}", "a,\"b\""][at as usize % 5];
    let tuples: Vec<(u32, Vec<u8>)> = (0..300u32)
        .map(|at| {
            let (name, note) = (name(at), "n".repeat(at as usize % 7));
            let blob: Vec<u8> = (0..at % 4).map(|byte| (byte + at) as u8).collect();
            let ends = [name.len(), name.len() + blob.len(), name.len() + blob.len() + note.len()];
            let mut value = (at * 1000 + 500).to_le_bytes().to_vec();
            value.extend((ends[0] as u32).to_le_bytes());
            value.push((at % 3 == 0).into());
            ends[1..].iter().for_each(|&end| value.extend((end as u32).to_le_bytes()));
            value.extend([name.as_bytes(), &blob, note.as_bytes()].concat());
            (at * 1000, value)
        })
        .collect();
    let schema = Schema {
        key_name: "first".to_owned(),
        value_logical: record.to_owned(),
        interval: Some(Intervals::Disjoint),
        ..Schema::plain(KeyType::U32, ValueType::Bytes, None)
    };
    let mut chunk = Chunk::new(KeyType::U32, ValueType::Bytes);
    for (key, value) in &tuples {
        if let (Column::U32(keys), Column::Bytes(values)) = (&mut chunk.keys, &mut chunk.values) {
            keys.push(*key);
            values.push(value);
        }
    }
    let storage = MemoryStorage::default();
    let target = Path::new("/golden.pleach");
    let mut source = ChunkSource::new(schema, [chunk]);
    build_with_storage(&mut source, target, &BuildOptions::default(), &Silent, &storage).expect("built");
    let golden = compare("records-text.pleach", storage.take(target).expect("there"));
    // The second builder writes the same.
    let meta = pleach_format::meta::Meta {
        key_name: "first".to_owned(),
        value_logical: record.to_owned(),
        interval: "inclusive".to_owned(),
        ..Default::default()
    };
    let mut second = pleach_tests::naive::build_strings(&tuples, &meta);
    second[BUILDER].copy_from_slice(&golden[BUILDER]);
    reseal_head(&mut second);
    assert!(second == golden, "the second builder writes other bytes");
    let map: Map<u32, (u32, String, u8, Vec<u8>, String)> = Map::from_bytes(golden).expect("opens");
    for (at, (key, value)) in (0..).zip(&tuples) {
        let (last, found, flag, blob, note) = map.get(*key).expect("readable").expect("there");
        assert_eq!((last, &found[..], flag), (at * 1000 + 500, name(at), u8::from(at % 3 == 0)));
        assert_eq!((blob.len(), note.len()), (at as usize % 4, at as usize % 7));
        assert_eq!(map.interval(key + 500).expect("readable").map(|(start, _)| start), Some(*key));
        assert_eq!(map.interval(key + 501).expect("readable"), None);
        let (_, datum) = map.index().tuple(at.into()).expect("readable").expect("there");
        assert_eq!(&*datum.packed(), &value[..]);
    }
}

/// Composite keys that are numbers, and keys that are the first digits of longer ones.
#[test]
fn composite_and_approximate_keys() {
    let composite = "composite<shop: u16, day: i32 \"Date32\">";
    for (name, key_logical, approximate) in
        [("composite.pleach", composite, None), ("approximate.pleach", "Hex(12)", Some(500))]
    {
        let key = |at: u64| (at % 7) << 32 | ((at * 86_413) ^ 0x8000_0000);
        let mut tuples: Vec<(u64, u32)> = (0..500).map(|at| (key(at), at as u32)).collect();
        tuples.sort_unstable();
        let schema = Schema {
            key_name: "shop,day".to_owned(),
            value_name: "n".to_owned(),
            key_logical: key_logical.to_owned(),
            approximate,
            ..Schema::plain(KeyType::U64, ValueType::U32, None)
        };
        let storage = MemoryStorage::default();
        let target = Path::new("/golden.pleach");
        let mut source = Named { schema, tuples: &tuples };
        build_with_storage(&mut source, target, &BuildOptions::default(), &Silent, &storage).expect("built");
        let golden = compare(name, storage.take(target).expect("there"));
        // The second builder writes the same.
        let meta = pleach_format::meta::Meta {
            key_name: "shop,day".to_owned(),
            value_name: "n".to_owned(),
            key_logical: key_logical.to_owned(),
            approximate: approximate.map(|distinct| distinct.to_string()).unwrap_or_default(),
            ..Default::default()
        };
        let mut second = pleach_tests::naive::build(&tuples, &meta, false);
        second[BUILDER].copy_from_slice(&golden[BUILDER]);
        reseal_head(&mut second);
        assert!(second == golden, "{name}: the second builder writes other bytes");
        let map: Map<u64, u32> = Map::from_bytes(golden).expect("opens");
        assert!(tuples.iter().all(|&(key, value)| map.get(key).expect("readable") == Some(value)));
        let found = map.index().approximate().expect("readable");
        assert_eq!(found.map(|found| found.distinct), approximate);
    }
}

fn path_of(name: &str) -> PathBuf {
    data("v1.0").join(name)
}

/// Compares a golden file with what is built now; gives its bytes.
fn compare(name: &str, mut built: Vec<u8>) -> Vec<u8> {
    let path = path_of(name);
    assert!(built.len() <= GOLDEN_BYTES_MAX, "{name} has {} bytes", built.len());
    if blessing() && !path.exists() {
        fs::create_dir_all(data("v1.0")).expect("a folder");
        fs::write(&path, &built).expect("written");
    }
    let golden = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    built[BUILDER].copy_from_slice(&golden[BUILDER]);
    reseal_head(&mut built);
    if built != golden {
        let at = built.iter().zip(&golden).position(|(a, b)| a != b);
        panic!(
            "{name}: the builder writes other bytes from byte {at:?} on ({} for {})",
            built.len(),
            golden.len()
        );
    }
    assert_eq!(fsck(&path, &FsckOptions::default()).expect("readable").findings, []);
    golden
}

/// Compares a golden file with what is built now, and reads it.
///
/// `tuples` are in input order; `wanted` are those that the file must hold, in order.
fn check<K: Key, V: Value + Debug>(
    name: &str,
    tuples: &[(K, V)],
    names: Names,
    options: &BuildOptions,
    wanted: &[(K, V)],
) -> Vec<u8> {
    let built = build(tuples, names, options);
    let golden = compare(name, built);
    let path = path_of(name);

    // Bits are compared: NaN is a value like any other.
    let bits = |tuple: &(K, V)| (tuple.0, tuple.1.to_bits());
    let wanted: Vec<_> = wanted.iter().map(bits).collect();
    for isa in Isa::available() {
        let index = Index::options().verify(Verify::Full).isa(Some(isa)).open(&path).expect("opens");
        assert_eq!((index.len(), index.generation()), (wanted.len() as u64, options.generation));
        assert_eq!(index.is_unique(), options.unique.is_some());
        let meta = index.meta().expect("readable");
        assert_eq!([&meta.key_name, &meta.value_name, &meta.key_logical, &meta.value_logical], names);
        let index = Index::options().isa(Some(isa)).open(&path).expect("opens");
        let view = index.typed::<K, V>().expect("types of the file");
        let all: Result<Vec<_>, _> = view.range(..).expect("readable").collect();
        let all: Vec<_> = all.expect("readable").iter().map(bits).collect();
        assert!(all == wanted, "{name}: other tuples");
        for (rank, &(key, value)) in wanted.iter().enumerate() {
            let first = wanted.partition_point(|tuple| tuple.0 < key);
            assert_eq!(view.rank(key), Ok(Some(first as u64)), "{name}: {key:?}");
            let got = view.get(key).expect("readable").map(V::to_bits);
            assert_eq!(got, Some(wanted[first].1), "{name}: {key:?}");
            let selected = view.select(rank as u64).expect("readable").map(|tuple| bits(&tuple));
            assert_eq!(selected, Some((key, value)), "{name}: rank {rank}");
        }
    }
    golden
}

fn sorted<K: Key, V: Value>(tuples: &[(K, V)]) -> Vec<(K, V)> {
    let mut sorted = tuples.to_vec();
    sorted.sort_by_key(|tuple| tuple.0.encode());
    sorted
}

/// 1002 tuples in random order, some keys three times, 0 and the largest key among them.
fn u64_u64() -> Vec<(u64, u64)> {
    let key = |i: u64| match i {
        17 | 500 => 0,
        18 | 900 => u64::MAX,
        _ if i % 10 == 3 => spread(i / 30),
        _ => spread(i),
    };
    (0..1002).map(|i| (key(i), i)).collect()
}

#[test]
fn u64_to_u64_with_duplicates() {
    let tuples = u64_u64();
    let golden = check("u64_u64.pleach", &tuples, NAMELESS, &BuildOptions::default(), &sorted(&tuples));
    let spine = mutate::header(&golden).spine;
    assert_eq!((spine.child_lines, spine.levels[0].encoding), (16, Encoding::Delta8));
    // A few literal answers, so that no common error stays hidden.
    let index = Index::from_bytes(golden).expect("opens");
    let view = index.typed::<u64, u64>().expect("types of the file");
    let values = |key| {
        view.get_all(key).expect("readable").map(|tuple| tuple.expect("readable").1).collect::<Vec<_>>()
    };
    assert_eq!(values(0), [17, 500]);
    assert_eq!(values(u64::MAX), [18, 900]);
    assert_eq!(view.get(1), Ok(None));
}

/// Signed keys, NaN, infinities, both zeros, names and logical types.
fn i32_f64() -> Vec<(i32, f64)> {
    let special =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, f64::MIN_POSITIVE, f64::MAX, 5e-324];
    (0..700)
        .map(|i| {
            let value = special.get(i as usize).copied().unwrap_or(i as f64 / 8.0);
            (spread(i) as i32, if i == 0 { f64::from_bits(0x7FF8_0000_DEAD_BEEF) } else { value })
        })
        .chain([(i32::MIN, -1.5), (i32::MAX, 1.5), (0, 0.1), (-1, 1e300)])
        .collect()
}

#[test]
fn i32_to_f64_with_names() {
    let tuples = i32_f64();
    let names = ["day", "price", "Date32", "Float64"];
    let golden = check("i32_f64.pleach", &tuples, names, &BuildOptions::default(), &sorted(&tuples));
    let index = Index::from_bytes(golden).expect("opens");
    let view = index.typed::<i32, f64>().expect("types of the file");
    assert_eq!(view.min(), Ok(Some((i32::MIN, -1.5))));
    assert_eq!(view.max(), Ok(Some((i32::MAX, 1.5))));
    assert_eq!((view.get(0), view.get(-1)), (Ok(Some(0.1)), Ok(Some(1e300))));
}

#[test]
fn u32_keys_alone_unique() {
    let tuples: Vec<(u32, ())> = (0..2500).map(|i| ((spread(i / 2) >> 40) as u32, ())).collect();
    let mut wanted = sorted(&tuples);
    wanted.dedup();
    assert!(wanted.len() > 1000 && wanted.len() < 1500);
    let options = BuildOptions { unique: Some(Unique::First), ..BuildOptions::default() };
    check("u32_none.pleach", &tuples, ["id", "", "", ""], &options, &wanted);
}

#[test]
fn u64_to_u32_last_of_each() {
    let tuples: Vec<(u64, u32)> = (0..1500).map(|i| (spread(i % 1111) >> 3, i as u32)).collect();
    let mut wanted: Vec<(u64, u32)> = (0..1111)
        .map(|i| (spread(i) >> 3, if i + 1111 < 1500 { i as u32 + 1111 } else { i as u32 }))
        .collect();
    wanted.sort_unstable();
    let options = BuildOptions { unique: Some(Unique::Last), generation: 7, ..BuildOptions::default() };
    check("u64_u32.pleach", &tuples, NAMELESS, &options, &wanted);
}

#[test]
fn empty() {
    let none: [(u64, u64); 0] = [];
    check("empty.pleach", &none, NAMELESS, &BuildOptions::default(), &none);
}

#[test]
fn one_tuple() {
    let one = [(-7i64, 2.5f32)];
    check("one.pleach", &one, NAMELESS, &BuildOptions::default(), &one);
}

/// Words as long as keys.
fn wide() -> BuildOptions {
    BuildOptions { wide: true, ..BuildOptions::default() }
}

/// Bytes of a word, what is added to its bits, and the runs of these.
type Words = (usize, u128, Vec<(u8, u8)>);

fn short_of(file: &[u8]) -> Option<Words> {
    mutate::header(file).short.map(|short| {
        let runs = short.runs().map(|run| (run.from, run.bits));
        (short.word_bytes(), short.base(), runs.collect())
    })
}

#[test]
fn short_words() {
    // Below and above zero: the smallest key is subtracted.
    let near: Vec<(i64, u64)> = (0..800).map(|i| ((spread(i) >> 32) as i64 - (1 << 31), i)).collect();
    let wanted = sorted(&near);
    let golden = check("short_i64_u64.pleach", &near, NAMELESS, &BuildOptions::default(), &wanted);
    let base = u128::from(wanted[0].0.encode());
    assert_eq!(short_of(&golden), Some((4, base, vec![(0, 32)])));

    // Six runs of bits, of which the nearest join.
    let kept = 0x7000_0F00_0330_C00F_u64;
    let apart: Vec<(u64, u32)> =
        (0..900).map(|i| ((spread(i) & kept) | 0x8000_00F0_0000_0000, i as u32)).collect();
    let golden = check("short_u64_u32.pleach", &apart, NAMELESS, &BuildOptions::default(), &sorted(&apart));
    let runs = vec![(0, 4), (14, 12), (40, 4), (60, 3)];
    assert_eq!(short_of(&golden), Some((4, 0x8000_00F0_0000_0000, runs)));

    // Half of the bits of a long number.
    let long: Vec<(u128, ())> = (0..500).map(|i| (u128::from(spread(i)) << 40 | 0xAB << 120, ())).collect();
    let options = BuildOptions { columns: true, fast: Some(Fast::default()), ..BuildOptions::default() };
    let golden = check("short_u128_none_columns.pleach", &long, NAMELESS, &options, &sorted(&long));
    assert_eq!(short_of(&golden), Some((8, 0xAB << 120, vec![(40, 64)])));
}

#[test]
fn full_separators() {
    let tuples: Vec<(u64, u64)> = (0..700).map(|i| (((i / 24) << 57) | (i % 24), i)).collect();
    let golden = check("raw.pleach", &tuples, NAMELESS, &wide(), &tuples);
    assert_eq!(mutate::header(&golden).spine.levels[0].encoding, Encoding::Raw);
}

#[test]
fn codes_of_8_bits() {
    let tuples: Vec<(u32, u32)> = (1000..3500).map(|i| (i, i ^ 77)).collect();
    let golden = check("delta8.pleach", &tuples, NAMELESS, &BuildOptions::default(), &tuples);
    assert_eq!(mutate::header(&golden).spine.levels[0].encoding, Encoding::Delta8);
}

#[test]
fn codes_of_16_bits() {
    let tuples = u64_u64();
    let options = BuildOptions { grid: false, ..BuildOptions::default() };
    let golden = check("delta16.pleach", &tuples, NAMELESS, &options, &sorted(&tuples));
    let spine = mutate::header(&golden).spine;
    assert_eq!((spine.child_lines, spine.levels[0].encoding), (1, Encoding::Delta16));
}

#[test]
fn codes_of_32_bits() {
    // Runs of neighbours, and gaps between them that 16 bits of code cannot span.
    let key = |i: u64| ((spread(i / 37) & 0xFFFF_FF00) | (i % 37)) as i64 - (1 << 31);
    let tuples: Vec<(i64, i32)> = (0..900).map(|i| (key(i), -(i as i32))).collect();
    let golden = check("delta32.pleach", &tuples, NAMELESS, &wide(), &sorted(&tuples));
    assert_eq!(mutate::header(&golden).spine.levels[0].encoding, Encoding::Delta32);
}

#[test]
fn wide_numbers() {
    let tuples: Vec<(u128, u64)> =
        (0..500).map(|i| (u128::from(spread(i)) << 64 | u128::from(spread(i + 5000)), i)).collect();
    check("u128_u64.pleach", &tuples, NAMELESS, &BuildOptions::default(), &sorted(&tuples));
    let floats: Vec<(f64, u32)> =
        (0..400).map(|i| ((spread(i) >> 40) as f64 / 1024.0 - 5000.0, i as u32)).collect();
    let options = BuildOptions { columns: true, ..BuildOptions::default() };
    check("f64_u32_columns.pleach", &floats, NAMELESS, &options, &sorted(&floats));
}

#[test]
fn packed_keys() {
    let tuples: Vec<(i64, ())> = (0..1100).map(|i| ((spread(i) >> 44) as i64 - 500_000, ())).collect();
    let options = BuildOptions { packed: true, grid: false, ..BuildOptions::default() };
    let wanted = sorted(&tuples);
    let golden = check("i64_none_packed.pleach", &tuples, NAMELESS, &options, &wanted);
    let index = Index::from_bytes(golden).expect("opens");
    let mut keys = Vec::new();
    index.packed_keys::<i64>().expect("there").read(0..u64::MAX, &mut keys).expect("readable");
    assert!(keys.iter().zip(&wanted).all(|(key, tuple)| *key == tuple.0) && keys.len() == wanted.len());
}

#[test]
fn harmonia() {
    let tuples: Vec<(u64, u32)> = (0..300).map(|i| (spread(i) >> 20 << 20, i as u32)).collect();
    let harmonia = Some(Harmonia { fanout: 8, fill_percent: 69 });
    let options = BuildOptions { harmonia, grid: false, ..BuildOptions::default() };
    let wanted = sorted(&tuples);
    let golden = check("u64_u32_harmonia.pleach", &tuples, NAMELESS, &options, &wanted);
    let index = Index::from_bytes(golden).expect("opens");
    let tree = index.harmonia::<u64, u32>().expect("readable").expect("there");
    assert_eq!((tree.shape().fanout, tree.shape().node_keys, tree.shape().levels.len()), (8, 4, 4));
    assert!(wanted.iter().zip(0..).all(|(tuple, rank)| tree.lower_bound(tuple.0) == Ok(rank)));
}

/// All trees and the packed column, for words of four bytes.
#[test]
fn trees_of_words_of_4_bytes() {
    let tuples: Vec<(u32, u64)> = (0..260).map(|i| ((spread(i) >> 33) as u32, i)).collect();
    let options = BuildOptions {
        fast: Some(Fast::default()),
        packed: true,
        harmonia: Some(Harmonia { fanout: 16, fill_percent: 100 }),
        grid: false,
        ..BuildOptions::default()
    };
    let wanted = sorted(&tuples);
    let golden = check("u32_u64_trees.pleach", &tuples, NAMELESS, &options, &wanted);
    compare(
        "u32_u64_trees_delta.pleach",
        with_compressed_tree::<u32>(&golden, compressed::<u32>(Form::Delta)),
    );
}

/// The FAST paper's tree, full as it is built, and compressed, which is read and checked all the same.
#[test]
fn classic_trees() {
    let tuples: Vec<(u64, u32)> = (0..700).map(|i| (spread(i) >> 9, i as u32)).collect();
    let options = BuildOptions { fast: Some(Fast::default()), grid: false, ..BuildOptions::default() };
    let wanted = sorted(&tuples);
    let golden = check("u64_u32_classic.pleach", &tuples, NAMELESS, &options, &wanted);
    let keys: Vec<u64> = wanted.iter().map(|tuple| tuple.0).collect();
    let distances = compare(
        "u64_u32_classic_delta.pleach",
        with_compressed_tree::<u64>(&golden, compressed::<u64>(Form::Delta)),
    );
    searched(golden, &keys);
    searched(distances, &keys);
    let texts: Vec<(String, u32)> = (0..300).map(|i| (format!("{:020}", spread(i)), i as u32)).collect();
    let built = build_strings_bytes(KeyType::Utf8, &texts, &options).expect("builds");
    let partial = with_compressed_tree::<u128>(&built, compressed(Form::Partial));
    compare("utf8_u32_classic_partial.pleach", partial);
    // Two levels of pages, of words of all widths and not padded, the last one of free slots alone.
    let near = |i: u64| match i {
        0..200 => i * 3,
        200..450 => 1 << 40 | spread(i) >> 34,
        _ => 1 << 63 | spread(i) >> 9,
    };
    let tuples: Vec<(u64, u32)> = (0..704).map(|i| (near(i), i as u32)).collect();
    let built = build(&tuples, NAMELESS, &options);
    let pages = with_compressed_pages::<u64>(
        &built,
        |full| Geometry { d_p: 5, padded: false, ..full },
        compressed::<u64>(Form::Delta),
    );
    let keys: Vec<u64> = sorted(&tuples).iter().map(|tuple| tuple.0).collect();
    searched(compare("u64_u32_classic_delta_pages.pleach", pages), &keys);
    // Three levels; the first one needs words of 16 bytes.
    let wide = |i: u64| match i {
        0..40 => u128::from(spread(i)) << 63,
        _ => u128::MAX << 96 | u128::from(spread(i)),
    };
    let tuples: Vec<(u128, ())> = (0..100).map(|i| (wide(i), ())).collect();
    let built = build(&tuples, NAMELESS, &options);
    let pages = with_compressed_pages::<u128>(
        &built,
        |full| Geometry { d_k: 1, d_l: 1, d_p: 4, ..full },
        compressed(Form::Partial),
    );
    let keys: Vec<u128> = sorted(&tuples).iter().map(|tuple| tuple.0).collect();
    let golden = compare("u128_none_classic_partial_pages.pleach", pages);
    let tree = mutate::header(&golden).section(Tag::FAST).map(|tree| tree.entry.parameters);
    let form = tree.and_then(|tree| load(&tree, 100)).map(|(_, form)| form);
    assert_eq!(form, Some(Form::Partial));
    searched(golden, &keys);
}

/// Files of tuple lines and one structure beside them, or none.
#[test]
fn without_a_spine() {
    let near = |i: u64| if i < 300 { (1 << 40) | (i * i) } else { spread(i) };
    let tuples: Vec<(u64, u32)> = (0..400).map(|i| (near(i), i as u32)).collect();
    let wanted = sorted(&tuples);
    let keys: Vec<u64> = wanted.iter().map(|tuple| tuple.0).collect();
    for (name, layout) in [
        ("lines", "lines"),
        ("fast", "lines,fast:auto:dp=6"),
        ("harmonia", "lines,harmonia:8:100"),
        ("btree", "lines,btree:16"),
    ] {
        let layout = layout.parse().expect("a layout");
        let options = BuildOptions::default().with_layout(layout);
        let golden = check(&format!("u64_u32_only_{name}.pleach"), &tuples, NAMELESS, &options, &wanted);
        if name == "fast" {
            searched(golden, &keys);
        }
    }
    let few: Vec<(u32, u64)> = (0..90).map(|i| ((spread(i) >> 33) as u32, i)).collect();
    let options = BuildOptions::default().with_layout("lines,btree:4".parse().expect("a layout"));
    check("u32_u64_only_btree.pleach", &few, NAMELESS, &options, &sorted(&few));
}

/// Looks up keys by the FAST tree.
fn searched<K: Key>(bytes: Vec<u8>, keys: &[K]) {
    let options = OpenOptions::default().verify(Verify::Full).structure(Structure::Fast);
    let index = options.from_bytes(bytes).expect("opens");
    let mut ranks = vec![0; keys.len()];
    index.typed::<K, ()>().expect("types").lower_bound_batch(keys, &mut ranks).expect("readable");
    assert!(ranks.into_iter().eq(0..keys.len() as u64));
}

/// Byte keys: what is built is what is kept, and holds these keys.
fn check_strings(name: &str, key_type: KeyType, keys: &[Vec<u8>]) -> Index {
    check_strings_by(name, key_type, keys, &BuildOptions::default())
}

fn check_strings_by(name: &str, key_type: KeyType, keys: &[Vec<u8>], options: &BuildOptions) -> Index {
    let tuples: Vec<(&[u8], u32)> = keys.iter().map(Vec::as_slice).zip(7..).collect();
    let built = build_strings_bytes(key_type, &tuples, options).expect("builds");
    let golden = compare(name, built);
    let mut wanted = tuples.clone();
    wanted.sort_by_key(|tuple| tuple.0);
    let index = OpenOptions::default().verify(Verify::Full).from_bytes(golden).expect("opens");
    let view = index.strings::<u32>().expect("types of the file");
    let all: Result<Vec<_>, _> = view.ranks(0..u64::MAX).collect();
    let wanted: Vec<(Vec<u8>, u32)> = wanted.into_iter().map(|tuple| (tuple.0.to_vec(), tuple.1)).collect();
    assert!(all.expect("readable") == wanted, "{name}: other tuples");
    for (rank, (key, value)) in wanted.iter().enumerate() {
        let first = wanted.partition_point(|tuple| tuple.0 < *key);
        assert!(first == rank || !options.columns, "{name}: different keys");
        assert_eq!(
            view.get(key).expect("readable"),
            Some(if first == rank { *value } else { wanted[first].1 })
        );
        assert_eq!(view.rank(key).expect("readable"), Some(first as u64), "{name}: {key:?}");
    }
    index
}

#[test]
fn byte_keys() {
    let phone = |i: u64| {
        let number = spread(i) % 10_000_000_000;
        format!(
            "{}-{:03}-{:03}-{:04}",
            10 + i % 25,
            number / 10_000_000,
            number / 10_000 % 1000,
            number % 10_000
        )
    };
    let keys: Vec<Vec<u8>> = (0..700).map(|i| phone(i).into_bytes()).collect();
    let index = check_strings("bytes15_u32.pleach", KeyType::Fixed(15), &keys);
    assert!(index.mask().is_some_and(|mask| mask.is_lossless() && mask.bits() <= 48));
    // Longer than a word, of many lengths: some much longer than most, so whole keys are kept. Columns are asked for:
    // else they would be kept by page.
    let columns = BuildOptions { columns: true, ..BuildOptions::default() };
    let keys: Vec<Vec<u8>> = (0..130u64)
        .map(|i| format!("{}/{}", "ab".repeat((i % 9) as usize * (i % 10) as usize), spread(i)).into_bytes())
        .collect();
    let index = check_strings_by("utf8_u32.pleach", KeyType::Utf8, &keys, &columns);
    assert!(index.key_column().is_some() && index.header().tails.is_none());
    // Tails, with lengths and without.
    let long = |i: u64| [spread(i), spread(i + 1000), spread(i + 2000)].map(|n| format!("{n:020}")).concat();
    let keys: Vec<Vec<u8>> = (0..250).map(|i| long(i).into_bytes()).collect();
    let index = check_strings("bytes60_u32.pleach", KeyType::Fixed(60), &keys);
    assert!(index.key_column().is_none() && index.header().tails.is_some());
    let keys: Vec<Vec<u8>> = (0..250).map(|i| long(i).into_bytes()[(i % 7) as usize..].to_vec()).collect();
    let index = check_strings("utf8_tails_u32.pleach", KeyType::Utf8, &keys);
    assert!(index.key_column().is_none() && index.header().tails.is_some());
    let keys: Vec<Vec<u8>> = (0..40).flat_map(|n| [vec![0; n], [vec![b'a'], vec![0; n]].concat()]).collect();
    check_strings("bytes_u32.pleach", KeyType::Bytes, &keys[1..]);
}

/// Byte keys by page: coded pages, and pages of one key; plain pages with wide lengths, zero bytes at ends, equal keys
/// over several pages, a trie with nodes of either kind.
#[test]
fn byte_keys_by_page() {
    let word = |i: u64| {
        ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"][(spread(i) % 8) as usize]
    };
    let url = |i: u64| {
        let host = spread(i) % 5;
        format!(
            "https://www.{}-{host}.example.org/{}/{}?id={}",
            word(host),
            word(i + 70),
            word(i + 900),
            i * 37
        )
    };
    let keys: Vec<Vec<u8>> = (0..609).map(|i| url(i).into_bytes()).collect();
    let index = check_strings("utf8_u32_text.pleach", KeyType::Utf8, &keys);
    let trie = index.header().trie.expect("a trie").1;
    assert!(index.header().text.is_some() && trie.levels > 1, "{trie:?}");
    let start = b"the beginning of all keys of this file: ";
    let mut keys: Vec<Vec<u8>> = (0..40).map(|zeros| [&start[..], &vec![0; zeros]].concat()).collect();
    keys.extend((0..60).map(|_| [&start[..], b"equal"].concat()));
    keys.extend((0..40).map(|letters| [&start[..], &vec![b'x'; 7 * letters]].concat()));
    let noise = |i: u64| (0..40 * (i % 9)).map(move |at| spread(i * 1000 + at) as u8);
    keys.extend((0..48).map(|i| start.iter().copied().chain(noise(i)).collect::<Vec<u8>>()));
    let index = check_strings("bytes_u32_text.pleach", KeyType::Bytes, &keys);
    assert!(index.header().text.is_some() && index.header().trie.is_some());
}

/// Texts of any length: empty ones, letters of one to four bytes, one of 5,000 bytes.
#[test]
fn texts_as_values() {
    let letters = ["a", "ß", "€", "𝄞"];
    let text = |i: u64| match i {
        300 => letters.concat().repeat(500),
        _ => {
            (0..spread(i) % 7).map(|at| letters[(spread(i) >> (8 + 2 * at)) as usize % 4]).collect::<String>()
        }
    };
    check_texts("u64_utf8.pleach", (0..500).map(|i| (spread(i), text(i))).collect(), Values::Auto);
    // Each value once: 300 different ones, whose codes have two bytes.
    let label = |i: u64| format!("{}{}", letters[(i % 4) as usize], i % 300);
    let tuples = (0..500).map(|i| (spread(i), label(i))).collect();
    check_texts("u64_utf8_dictionary.pleach", tuples, Values::Dictionary);
}

fn check_texts(name: &str, tuples: Vec<(u64, String)>, values: Values) {
    let schema = Schema::plain(KeyType::U64, ValueType::Utf8, Some(tuples.len() as u64));
    let mut chunk = Chunk::new(KeyType::U64, ValueType::Utf8);
    for (key, text) in &tuples {
        let (Column::U64(keys), Column::Bytes(texts)) = (&mut chunk.keys, &mut chunk.values) else {
            unreachable!("columns of these types")
        };
        keys.push(*key);
        texts.push(text.as_bytes());
    }
    let storage = MemoryStorage::default();
    let target = Path::new("/golden.pleach");
    let mut source = ChunkSource::new(schema, [chunk]);
    let options = BuildOptions { values, ..BuildOptions::default() };
    build_with_storage(&mut source, target, &options, &Silent, &storage).expect("built");
    let golden = compare(name, storage.take(target).expect("there"));
    let index = OpenOptions::default().verify(Verify::Full).from_bytes(golden).expect("opens");
    let mut wanted = tuples;
    wanted.sort();
    let keys = index.typed::<u64, ()>().expect("type of the file");
    let texts = index.value_column().expect("texts");
    for (rank, (key, text)) in wanted.iter().enumerate() {
        assert_eq!(keys.rank(*key), Ok(Some(rank as u64)), "{key:x}");
        assert_eq!(texts.get(rank as u64).expect("whole").as_deref(), Some(text.as_bytes()), "{key:x}");
    }
}

/// Damaged files that are kept. Each is made by the damage of its name; see `tests/kit/src/mutate.rs`.
const BAD: &[&str] = &[
    "flip-magic",
    "flip-table",
    "flip-key",
    "flip-sum-of-line",
    "truncate-half",
    "swap-blocks-and-sums",
    "order",
    "duplicate",
    "separator",
    "flag-missing",
    "free-slot",
    "min",
    "file-id",
    "meta-text",
];

#[test]
fn damaged_files_are_named() {
    let folder = data("bad");
    let named = |name: &str| -> &Damage {
        PLAIN
            .iter()
            .chain(SEALED)
            .find(|damage| damage.name == name)
            .unwrap_or_else(|| panic!("no damage {name}"))
    };
    if blessing() {
        fs::create_dir_all(&folder).expect("a folder");
    }
    for name in BAD {
        let damage = named(name);
        let path = folder.join(format!("{name}.pleach"));
        if blessing() && !path.exists() {
            let mut bytes = mutate::victim().1;
            (damage.make)(&mut bytes);
            fs::write(&path, bytes).expect("written");
        }
        let report = fsck(&path, &FsckOptions::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(report.verdict, Verdict::Damaged, "{name}");
        let found = report
            .findings
            .iter()
            .any(|finding| (finding.code.name(), &*finding.section) == (damage.code, damage.section));
        assert!(found, "{name}: {:?}", report.findings);
        let full = Index::options().verify(Verify::Full).open(&path);
        assert!(full.is_err(), "{name} was opened");
    }
    let mut there: Vec<String> = fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    let mut listed: Vec<String> = BAD.iter().map(|name| format!("{name}.pleach")).collect();
    there.sort();
    listed.sort();
    assert_eq!(there, listed, "each damaged file has a row in BAD");
}
