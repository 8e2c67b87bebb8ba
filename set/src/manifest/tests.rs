//! A manifest is what its bytes say, and a forged one is refused by its rule.

use super::bytes::{Head, RawEntry};
use super::*;
use zerocopy::FromBytes;

fn meta() -> Meta {
    Meta { key_name: "id".into(), value_name: "price".into(), ..Meta::default() }
}

fn facts(key_type: KeyType) -> Facts {
    let schema =
        Schema { key_type, value_type: ValueType::F64, meta: meta(), unique: true, partition_tuples: 10 };
    Facts { set_id: [7; 16], generation: 3, parent: 2, created_ms: 1_700_000_000_000, schema }
}

fn entry(number: u64, min: &[u8], max: &[u8]) -> Entry {
    Entry {
        name: format!("files/{number:032x}.pleach"),
        file_bytes: 16_384 + 4096 * number,
        digest: [number as u8; 32],
        file_id: [(number as u8).wrapping_add(1); 16],
        head_sum: number as u32 + 2,
        tuples: number + 1,
        min: min.to_vec(),
        max: max.to_vec(),
    }
}

fn numbers(files: u64) -> Vec<Entry> {
    let key = |number: u64| number.to_be_bytes();
    (0..files).map(|number| entry(number, &key(10 * number), &key(10 * number + 5))).collect()
}

/// Gives bytes the sum that they need.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - SUM_BYTES;
    let sum = Sha256::digest(&bytes[..end]);
    bytes[end..].copy_from_slice(&sum);
    bytes
}

#[test]
fn what_is_written_is_read() {
    for files in [0, 1, 2, 100] {
        let (facts, entries) = (facts(KeyType::U64), numbers(files));
        let manifest = Manifest::new(&facts, &entries).expect("it is valid");
        assert_eq!(manifest.facts(), &facts);
        assert_eq!(manifest.entries().collect::<Vec<_>>(), entries);
        assert_eq!(manifest.tuples(), files * (files + 1) / 2);
        assert_eq!(manifest.file_bytes(), entries.iter().map(|entry| entry.file_bytes).sum::<u64>());
        let again = Manifest::parse(manifest.as_bytes().to_vec()).expect("it is valid");
        assert_eq!(again.as_bytes(), manifest.as_bytes());
    }
}

#[test]
fn keys_and_ranks_lead_to_files() {
    let entries = numbers(50);
    let manifest = Manifest::new(&facts(KeyType::U64), &entries).expect("it is valid");
    for key in 0..520u64 {
        let bytes = key.to_be_bytes();
        let holds = |entry: &&Entry| *entry.min <= bytes[..] && bytes[..] <= *entry.max;
        let own = entries.iter().position(|entry| holds(&entry));
        assert_eq!(manifest.file_of_key(&bytes), own, "{key}");
        let above = entries.iter().filter(|entry| *entry.max < bytes[..]).count();
        assert_eq!(manifest.file_at_or_above(&bytes), above, "{key}");
        let below = entries.iter().filter(|entry| *entry.min <= bytes[..]).count().checked_sub(1);
        assert_eq!(manifest.file_at_or_below(&bytes), below, "{key}");
    }
    let mut rank = 0;
    for (file, entry) in entries.iter().enumerate() {
        assert_eq!(manifest.ranks(file), rank..rank + entry.tuples);
        for rank in manifest.ranks(file) {
            assert_eq!(manifest.file_of_rank(rank), Some(file));
        }
        rank += entry.tuples;
    }
    assert_eq!(manifest.file_of_rank(rank), None);
}

#[test]
fn keys_of_any_length() {
    let long = vec![9; KEY_BYTES_MAX];
    let entries =
        [entry(0, b"", b""), entry(1, b"\0", b"a"), entry(2, b"a\0", &long[..300]), entry(3, &long, &long)];
    let manifest = Manifest::new(&facts(KeyType::Bytes), &entries);
    // "a\0" is above "a", and 300 times 9 is below 65,535 times 9 but below "a" as well.
    assert_eq!(manifest.expect_err("9 is below a").rule, Rule::KeyOrder);
    let entries = [
        entry(0, b"", b""),
        entry(1, b"\0", b"\x01"),
        entry(2, b"\x01\0", &long[..300]),
        entry(3, &long, &long),
    ];
    let manifest = Manifest::new(&facts(KeyType::Bytes), &entries).expect("it is valid");
    assert_eq!(manifest.entries().collect::<Vec<_>>(), entries);
    assert_eq!(manifest.file_of_key(b""), Some(0));
    assert_eq!(manifest.file_of_key(b"\x01"), Some(1));
    assert_eq!(manifest.file_of_key(b"\x01\0\0"), Some(2));
    let too_long = [entry(0, b"", &vec![0; KEY_BYTES_MAX + 1])];
    assert_eq!(Manifest::new(&facts(KeyType::Bytes), &too_long).expect_err("too long").rule, Rule::Key);
}

/// Each rule, by a change that breaks it and no rule before it.
#[test]
fn every_rule_refuses() {
    let whole = || encode(&facts(KeyType::U64), &numbers(3));
    let head = |change: fn(&mut Head)| {
        let mut bytes = whole();
        let head = Head::mut_from_prefix(&mut bytes).expect("there is a head").0;
        change(head);
        sealed(bytes)
    };
    let raw = |change: fn(&mut RawEntry)| {
        let mut bytes = whole();
        let place = HEAD_BYTES + ENTRY_BYTES;
        let entry = RawEntry::mut_from_prefix(&mut bytes[place..]).expect("there is an entry").0;
        change(entry);
        sealed(bytes)
    };
    let with = |change: fn(&mut Vec<Entry>)| {
        let mut entries = numbers(3);
        change(&mut entries);
        encode(&facts(KeyType::U64), &entries)
    };
    let cases: Vec<(Rule, Vec<u8>)> = vec![
        (Rule::Magic, b"not a manifest".to_vec()),
        (Rule::Magic, head(|head| head.magic[4] = b'X')),
        (Rule::Truncated, Vec::new()),
        (Rule::Truncated, whole()[..287].to_vec()),
        (Rule::Truncated, whole()[..whole().len() - 1].to_vec()),
        (Rule::Extended, [whole(), vec![0]].concat()),
        (Rule::Sum, {
            let mut bytes = whole();
            bytes[300] ^= 1;
            bytes
        }),
        (Rule::Version, head(|head| head.version_major = 1.into())),
        (Rule::Feature, head(|head| head.required_features = (1 << 63).into())),
        (Rule::Generation, head(|head| head.generation = 0.into())),
        (Rule::Generation, head(|head| head.parent = 3.into())),
        (Rule::Files, head(|head| head.files = 5_000.into())),
        (Rule::Files, head(|head| head.files = u64::MAX.into())),
        (Rule::Files, head(|head| head.files = (u64::MAX / ENTRY_BYTES as u64).into())),
        (Rule::Reserved, head(|head| head.reserved[99] = 1)),
        (Rule::Reserved, head(|head| head.reserved0 = 1.into())),
        (Rule::Reserved, head(|head| head.reserved1[0] = 1)),
        (Rule::Reserved, raw(|entry| entry.reserved[7] = 1)),
        (Rule::KeyType, head(|head| head.key_type = 99.into())),
        (Rule::KeyType, head(|head| head.key_bytes = 4.into())),
        (Rule::ValueType, head(|head| head.value_type = 99.into())),
        (Rule::Unique, head(|head| head.unique = 2.into())),
        (Rule::PartitionTuples, head(|head| head.partition_tuples = 0.into())),
        (Rule::Meta, head(|head| head.meta_bytes = u32::MAX.into())),
        (Rule::Meta, head(|head| head.meta_bytes = (head.meta_bytes.get() - 8).into())),
        (Rule::EntryPlace, raw(|entry| entry.offset = (entry.offset.get() + 1).into())),
        (Rule::EntryPlace, raw(|entry| entry.name_bytes = u32::MAX.into())),
        (Rule::EntryPlace, raw(|entry| entry.max_bytes = u32::MAX.into())),
        (Rule::Name, with(|entries| entries[1].name = "/etc/passwd".into())),
        (Rule::Name, with(|entries| entries[1].name = "files/".into())),
        (Rule::Name, with(|entries| entries[1].name = "files/../latest".into())),
        (Rule::Name, with(|entries| entries[1].name = "files/.hidden".into())),
        (Rule::Name, with(|entries| entries[1].name = "files/a/b".into())),
        (Rule::Name, with(|entries| entries[1].name = "files/a\n".into())),
        (Rule::Name, with(|entries| entries[1].name = format!("files/{}", "a".repeat(250)))),
        (Rule::Key, with(|entries| entries[1].min = vec![0; 7])),
        (Rule::Key, with(|entries| entries[1].max = vec![255; 9])),
        (Rule::KeyOrder, with(|entries| entries.swap(0, 1))),
        (Rule::KeyOrder, with(|entries| entries[1].min = entries[0].max.clone())),
        (Rule::KeyOrder, with(|entries| entries[1].max = vec![0; 8])),
        (Rule::Tuples, with(|entries| entries[2].tuples = 0)),
        (Rule::Tuples, with(|entries| entries.iter_mut().for_each(|entry| entry.tuples = u64::MAX / 2 + 1))),
        (Rule::FileBytes, with(|entries| entries[0].file_bytes = 4096)),
        (Rule::FileBytes, with(|entries| entries[0].file_bytes = 16_385)),
        (Rule::FileBytes, with(|entries| entries.iter_mut().for_each(|it| it.file_bytes = 1 << 63))),
        (Rule::Totals, head(|head| head.tuples = 7.into())),
        (Rule::Totals, head(|head| head.file_bytes = 0.into())),
        (Rule::NameTwice, with(|entries| entries[2].name = entries[0].name.clone())),
    ];
    for (at, (rule, bytes)) in cases.iter().enumerate() {
        let refused = Manifest::parse(bytes.clone()).expect_err(&format!("case {at}: {}", rule.name()));
        assert_eq!(refused.rule, *rule, "case {at}: {refused}");
    }
    for rule in Rule::ALL {
        assert!(cases.iter().any(|(tried, _)| tried == rule), "{} is not tried", rule.name());
    }
    let ordered = Rule::ALL.iter().zip(1..).all(|(&rule, number)| rule as u32 == number);
    assert!(ordered, "rules are numbered in their order");
}

/// Neither a flipped byte nor a cut leads to more than an error, whether the sum was made to fit or not.
#[test]
fn forged_manifests_are_refused_or_read() {
    let whole = encode(&facts(KeyType::U64), &numbers(2));
    for at in 0..whole.len() {
        for flip in [1, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            assert!(Manifest::parse(bytes.clone()).is_err(), "byte {at}");
            if let Ok(manifest) = Manifest::parse(sealed(bytes)) {
                // What is left can be asked without a panic.
                assert_eq!(manifest.entries().len(), manifest.files());
                assert!(manifest.entries().all(|entry| manifest.file_of_key(&entry.min).is_some()));
            }
        }
        assert!(Manifest::parse(whole[..at].to_vec()).is_err(), "{at} bytes");
    }
    let mut state = 12_345u64;
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..3 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as usize % (bytes.len() - SUM_BYTES);
            bytes[at] = (state >> 25) as u8;
        }
        let _ = Manifest::parse(sealed(bytes));
    }
}

#[test]
fn a_manifest_of_many_files_is_small() {
    let entries = numbers(100_000);
    let manifest = Manifest::new(&facts(KeyType::U64), &entries).expect("it is valid");
    assert!(manifest.as_bytes().len() < 25_000_000, "{} bytes", manifest.as_bytes().len());
}

#[test]
fn numbers_keep_their_order() {
    use crate::keys::{key_bytes, key_datum};
    use pleach::Datum;
    let keys = [i64::MIN, -1, 0, 1, i64::MAX].map(Datum::I64);
    let bytes = keys.each_ref().map(|key| key_bytes(KeyType::I64, key).expect("it is an i64").into_owned());
    assert!(bytes.is_sorted());
    for (key, bytes) in keys.iter().zip(&bytes) {
        assert_eq!(key_datum(KeyType::I64, bytes), *key);
    }
    let floats = [f64::NEG_INFINITY, -1.5, 0.0, 2.5, f64::INFINITY].map(Datum::F64);
    let bytes = floats.each_ref().map(|key| key_bytes(KeyType::F64, key).expect("it is an f64").into_owned());
    assert!(bytes.is_sorted());
    assert!(key_bytes(KeyType::U32, &Datum::U64(1)).is_err());
}
