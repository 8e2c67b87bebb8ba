//! Values that are stored once, against a sorted vector: their sections, every way to read them, and damage.

use pleach::{FsckOptions, Index, KeyType, OpenOptions, Residence, ValueType, Verify, fsck};
use pleach_builder::storage::MemoryStorage;
use pleach_builder::{
    BuildError, BuildOptions, Chunk, ChunkSource, Column, Schema, Silent, Strings, Unique, Values,
    build_with_storage,
};
use pleach_format::codes::code_bytes;
use pleach_format::section::Tag;
use pleach_tests::mutate::{content, header, reseal};
use std::path::Path;

/// Keys and values, both as the bytes that columns hold.
type Tuples = Vec<(Vec<u8>, Vec<u8>)>;

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 31).wrapping_mul(0x7FB5_D329_728E_A185);
    let x = (x ^ x >> 27).wrapping_mul(0x81DA_DEF4_BC2D_D44D);
    x ^ x >> 33
}

/// Value number `number` of a type: all of them differ.
fn value(value_type: ValueType, number: u64) -> Vec<u8> {
    match value_type.fixed_bytes() {
        Some(bytes) => {
            let number = (number as u32).to_le_bytes();
            number.into_iter().chain(std::iter::repeat(b'.')).take(bytes).collect()
        }
        // The first one is empty.
        None if number == 0 => Vec::new(),
        None => format!("{}ü{number}", "x".repeat((number % 7) as usize)).into_bytes(),
    }
}

fn key(key_type: KeyType, number: u64) -> Vec<u8> {
    match key_type {
        KeyType::U64 => mix(number).to_be_bytes().to_vec(),
        // Longer than words, with tails or with a column.
        _ => format!("{}{:x}", "ab".repeat((number % 9 * (number % 4)) as usize), mix(number)).into_bytes(),
    }
}

/// Tuples in input order, whose values are `different` ones.
fn tuples(types: (KeyType, ValueType), count: u64, different: u64) -> Tuples {
    let number = |at: u64| if at < different { at } else { mix(at) % different.max(1) };
    (0..count).map(|at| (key(types.0, at), value(types.1, number(at)))).collect()
}

fn build(
    types: (KeyType, ValueType),
    tuples: &Tuples,
    options: &BuildOptions,
) -> Result<Vec<u8>, BuildError> {
    let mut chunk = Chunk::new(types.0, types.1);
    let (mut keys, mut values) = (Strings::default(), Strings::default());
    for (key, value) in tuples {
        match (&mut chunk.keys, <[u8; 8]>::try_from(&key[..])) {
            (Column::U64(words), Ok(bytes)) => words.push(u64::from_be_bytes(bytes)),
            _ => keys.push(key),
        }
        values.push(value);
    }
    if types.0 != KeyType::U64 {
        chunk.keys = Column::Bytes(keys);
    }
    chunk.values = Column::Bytes(values);
    let storage = MemoryStorage::default();
    let target = Path::new("/t.pleach");
    let mut source = ChunkSource::new(Schema::plain(types.0, types.1, None), [chunk]);
    build_with_storage(&mut source, target, options, &Silent, &storage)?;
    Ok(storage.take(target).expect("there"))
}

fn wanted(values: Values) -> BuildOptions {
    BuildOptions { values, ..BuildOptions::default() }
}

fn sorted(tuples: &Tuples) -> Tuples {
    let mut sorted = tuples.clone();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    sorted
}

/// The codes and the different values, as the format has them.
fn coded(sorted: &Tuples) -> (Vec<u8>, Vec<&[u8]>) {
    let mut values: Vec<&[u8]> = Vec::new();
    let mut numbers = std::collections::BTreeMap::new();
    let mut codes = Vec::new();
    for (_, value) in sorted {
        let code = *numbers.entry(&value[..]).or_insert_with(|| {
            values.push(value);
            values.len() as u32 - 1
        });
        codes.push(code);
    }
    let width = code_bytes(values.len() as u64) as usize;
    (codes.iter().flat_map(|code| code.to_le_bytes()[..width].to_vec()).collect(), values)
}

const TYPES: [(KeyType, ValueType); 6] = [
    (KeyType::U64, ValueType::Utf8),
    (KeyType::U64, ValueType::Bytes),
    (KeyType::U64, ValueType::Fixed(4)),
    (KeyType::Utf8, ValueType::Utf8),
    (KeyType::Utf8, ValueType::Fixed(100)),
    (KeyType::Bytes, ValueType::Fixed(17)),
];

fn check(types: (KeyType, ValueType), tuples: &Tuples) {
    let what = format!("{types:?}, {} tuples", tuples.len());
    let bytes = build(types, tuples, &wanted(Values::Dictionary)).expect("builds");
    let sorted = sorted(tuples);
    let (codes, values) = coded(&sorted);
    let found = &bytes[content(&bytes, Tag::CODES)];
    assert_eq!(found, [&codes[..], &[0; 64]].concat(), "{what}");
    let there = header(&bytes);
    let place = there.values.expect("values");
    assert_eq!(place.shape.elements, values.len() as u64, "{what}");
    let data = &bytes[place.data_offset() as usize..][..place.shape.data_bytes as usize];
    assert_eq!(data, values.concat(), "{what}");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.pleach");
    std::fs::write(&path, &bytes).expect("written");
    assert_eq!(fsck(&path, &FsckOptions::default()).expect("readable").findings, [], "{what}");
    for verify in [Verify::Header, Verify::Touched, Verify::Full] {
        for residence in [Residence::Mapped, Residence::Resident] {
            let index =
                OpenOptions::default().verify(verify).residence(residence).open(&path).expect("opens");
            let column = index.value_column().expect("values");
            assert_eq!((column.len(), column.stored()), (sorted.len() as u64, values.len() as u64), "{what}");
            assert_eq!(column.codes().as_deref(), Some(&codes[..]));
            let ranks: Vec<u64> = (0..sorted.len() as u64).rev().chain([u64::MAX]).collect();
            let (mut ends, mut data) = (Vec::new(), Vec::new());
            column.append(&ranks, &mut ends, &mut data).expect("whole");
            let mut start = 0;
            for (&rank, &end) in ranks.iter().zip(&ends) {
                let value = sorted.get(rank as usize).map(|tuple| &tuple.1[..]);
                assert_eq!(column.get(rank).expect("whole").as_deref(), value, "{what}: {rank}");
                assert_eq!(&data[start..end as usize], value.unwrap_or_default(), "{what}: {rank}");
                start = end as usize;
            }
        }
    }
}

#[test]
fn every_value_is_read_by_its_code() {
    for types in TYPES {
        for (count, different) in [(0, 0), (1, 1), (2, 1), (300, 256), (300, 257), (3000, 40)] {
            check(types, &tuples(types, count, different));
        }
    }
    // Codes of four bytes.
    let types = (KeyType::U64, ValueType::Fixed(4));
    check(types, &tuples(types, 66_000, 65_536));
    check(types, &tuples(types, 66_000, 65_537));
}

#[test]
fn a_dictionary_is_made_where_it_is_shorter() {
    let types = (KeyType::U64, ValueType::Utf8);
    let has_codes = |tuples: &Tuples, options: &BuildOptions| {
        let bytes = build(types, tuples, options).expect("builds");
        header(&bytes).codes.is_some()
    };
    let few = tuples(types, 20_000, 250);
    assert!(has_codes(&few, &wanted(Values::Auto)));
    assert!(!has_codes(&few, &wanted(Values::Plain)));
    let columns = BuildOptions { columns: true, ..wanted(Values::Auto) };
    assert!(!has_codes(&few, &columns), "columns are read without a copy");
    assert!(has_codes(&few, &BuildOptions { columns: true, ..wanted(Values::Dictionary) }));
    // All different; too few to fill another page; more than 65,536, also if each comes often.
    assert!(!has_codes(&tuples(types, 20_000, 20_000), &wanted(Values::Auto)));
    assert!(!has_codes(&tuples(types, 100, 2), &wanted(Values::Auto)));
    assert!(has_codes(&tuples(types, 300_000, 65_536), &wanted(Values::Auto)));
    assert!(!has_codes(&tuples(types, 300_000, 65_537), &wanted(Values::Auto)));
    // Neither is a dictionary of numbers possible, nor one that the memory does not hold.
    let numbers = pleach_builder::build_bytes(&[(1u64, 2u32)], &wanted(Values::Dictionary));
    let told = numbers.expect_err("numbers").to_string();
    assert!(told.contains("u32 are in the tuple lines"), "{told}");
    let small = BuildOptions { memory_bytes: 1 << 20, ..wanted(Values::Dictionary) };
    let told = build(types, &tuples(types, 20_000, 20_000), &small).expect_err("too many").to_string();
    assert!(told.starts_with("a dictionary holds at most 262144 bytes"), "{told}");
}

#[test]
fn threads_memory_and_order_do_not_change_a_byte() {
    for types in TYPES {
        let tuples = tuples(types, 20_000, 250);
        let mut others = tuples.clone();
        others.sort_by_key(|tuple| {
            mix(tuple.0.iter().fold(0, |sum: u64, &byte| sum.rotate_left(5) ^ u64::from(byte)))
        });
        // Equal keys stay in the order of the input.
        let unique = Some(Unique::Error);
        let first =
            build(types, &tuples, &BuildOptions { unique, ..BuildOptions::default() }).expect("builds");
        assert!(header(&first).codes.is_some(), "{types:?}");
        for (rows, threads, memory_bytes) in [(&tuples, 3, 1 << 30), (&others, 1, 1), (&others, 2, 1 << 30)] {
            let options = BuildOptions { unique, threads, memory_bytes, ..BuildOptions::default() };
            assert!(build(types, rows, &options).expect("builds") == first, "{types:?} {threads}");
        }
    }
}

#[test]
fn codes_of_no_value_are_found_and_lead_nowhere() {
    for types in TYPES {
        let tuples = tuples(types, 3000, 40);
        let whole = build(types, &tuples, &wanted(Values::Dictionary)).expect("builds");
        let codes = content(&whole, Tag::CODES);
        for (rank, code) in [(0u64, 40), (1500, 255), (2999, 41)] {
            let mut bytes = whole.clone();
            bytes[codes.start + rank as usize] = code;
            reseal(&mut bytes);
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("t");
            std::fs::write(&path, &bytes).expect("written");
            let findings = fsck(&path, &FsckOptions::default()).expect("readable").findings;
            let [finding] = &findings[..] else { panic!("{types:?}: {findings:?}") };
            assert_eq!((finding.section.as_ref(), finding.length), ("CODE", 1), "{types:?}");
            assert_eq!(finding.offset, codes.start as u64 + rank, "{types:?}");
            let index = OpenOptions::default().from_bytes(bytes.clone()).expect("opens");
            let column = index.value_column().expect("values");
            let unverified = column.get(rank).expect("no sum is read");
            assert_eq!(unverified.as_deref(), Some(&[][..]), "{types:?}");
            let touched = OpenOptions::default().verify(Verify::Touched).from_bytes(bytes).expect("opens");
            let column = touched.value_column().expect("values");
            let told = column.get(rank).expect_err("a forged code").to_string();
            assert!(told.contains("a code must be that of a value"), "{types:?}: {told}");
            assert!(std::sync::Arc::new(touched).columns().is_err(), "{types:?}");
        }
    }
}

#[test]
fn flipped_codes_are_found_by_their_sums() {
    let types = TYPES[0];
    let whole = build(types, &tuples(types, 20_000, 250), &wanted(Values::Auto)).expect("builds");
    let codes = content(&whole, Tag::CODES);
    for rank in [0, 8191, 8192, 19_999] {
        let mut bytes = whole.clone();
        bytes[codes.start + rank] ^= 1;
        let index = OpenOptions::default().verify(Verify::Touched).from_bytes(bytes).expect("opens");
        let told = index.value_column().expect("values").get(rank as u64).expect_err("a flipped bit");
        assert!(told.to_string().contains("CODE"), "{told}");
    }
}

#[test]
fn arrow_arrays_are_dictionaries() {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt32Type;
    let types = TYPES[0];
    let tuples = tuples(types, 20_000, 250);
    let bytes = build(types, &tuples, &wanted(Values::Auto)).expect("builds");
    let sorted = sorted(&tuples);
    for verify in [Verify::Header, Verify::Touched] {
        let index = OpenOptions::default().verify(verify).from_bytes(bytes.clone()).expect("opens");
        let columns = std::sync::Arc::new(index).columns().expect("whole");
        let values = columns.values.expect("values");
        let values = values.as_dictionary::<UInt32Type>();
        let texts = values.values().as_string::<i32>();
        assert_eq!(texts.len(), 250);
        for (code, (_, value)) in values.keys().values().iter().zip(&sorted) {
            assert_eq!(texts.value(*code as usize).as_bytes(), value);
        }
    }
}

#[test]
fn values_of_other_types_have_no_codes() {
    let bytes =
        pleach_builder::build_bytes(&[(1u64, 2u32); 50_000], &BuildOptions::default()).expect("builds");
    assert!(header(&bytes).codes.is_none());
    let index = Index::from_bytes(bytes).expect("opens");
    assert!(index.value_column().is_none());
}
