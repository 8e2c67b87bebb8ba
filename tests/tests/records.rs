//! Records with texts: what was built is read back, what breaks a rule is named, and no bytes do harm.

use pleach::{
    Datum, FieldKind, FieldValue, FsckOptions, Index, KeyType, Map, OpenOptions, Row, ValueType, Verify, fsck,
};
use pleach_builder::rebuild::{self, CompactOptions, RebuildOptions, compact};
use pleach_builder::source::{Intervals, Op, Schema};
use pleach_builder::{Builder, Chunk, ChunkSource, Column, Silent, Source, Strings, in_memory};
use pleach_format::record::{Field, Record};
use pleach_tests::generate::{Random, mix};
use pleach_tests::mutate::{header, reseal};
use std::fs;
use std::path::Path;

/// A record of some fields, many of them texts.
fn record(random: &mut Random) -> Record {
    let kinds = [
        FieldKind::Utf8,
        FieldKind::Bytes,
        FieldKind::Utf8,
        FieldKind::U8,
        FieldKind::F64,
        FieldKind::I16,
        FieldKind::Fixed(3),
    ];
    loop {
        let count = 1 + random.below(6);
        let fields = (0..count).map(|at| Field::new(format!("f{at}"), kinds[random.below(7) as usize]));
        let record = Record::new(fields.collect()).expect("a record");
        if record.has_texts() {
            return record;
        }
    }
}

/// A value of a field, of these bytes.
fn field(kind: FieldKind, random: &mut Random) -> Vec<u8> {
    match kind {
        FieldKind::Utf8 => {
            "aé\u{1f600}".chars().cycle().take(random.below(9) as usize).collect::<String>().into()
        }
        FieldKind::Bytes => (0..random.below(9)).map(|_| random.next() as u8).collect(),
        kind => mix(random.next()).to_le_bytes()[..kind.bytes()].to_vec(),
    }
}

/// Bytes of a file with these values, whatever they are, and a record in META.
fn built(values: &[Vec<u8>], record: &Record, interval: bool) -> Vec<u8> {
    let mut strings = Strings::default();
    values.iter().for_each(|value| strings.push(value));
    let keys = Column::U64((0..values.len() as u64).map(|rank| rank * 10).collect());
    let schema = Schema {
        value_logical: record.to_string(),
        interval: interval.then_some(Intervals::Disjoint),
        ..Schema::plain(KeyType::U64, ValueType::Bytes, None)
    };
    let chunk = Chunk { keys, values: Column::Bytes(strings), ops: Vec::new() };
    let mut source = ChunkSource::new(schema, std::iter::once(chunk));
    in_memory(&mut source, &Default::default(), &Silent).expect("builds")
}

fn findings(path: &Path) -> Vec<String> {
    let report = fsck(path, &FsckOptions::default()).expect("readable");
    let one = |finding: &pleach_fsck::Finding| {
        format!("{} {} {}", finding.code.name(), finding.text, finding.expected)
    };
    report.findings.iter().map(one).collect()
}

#[test]
fn every_field_comes_back() {
    let mut random = Random(11);
    for _ in 0..40 {
        let record = record(&mut random);
        let rows: Vec<Vec<Vec<u8>>> = (0..random.below(400))
            .map(|_| record.fields().iter().map(|of| field(of.kind, &mut random)).collect())
            .collect();
        // The naive encoding: fields, ends of texts, texts.
        let naive = |row: &Vec<Vec<u8>>| {
            let (mut fixed, mut texts) = (Vec::new(), Vec::new());
            for (field, bytes) in record.fields().iter().zip(row) {
                if matches!(field.kind, FieldKind::Utf8 | FieldKind::Bytes) {
                    texts.extend_from_slice(bytes);
                    fixed.extend((texts.len() as u32).to_le_bytes());
                } else {
                    fixed.extend_from_slice(bytes);
                }
            }
            [fixed, texts].concat()
        };
        let values: Vec<Vec<u8>> = rows.iter().map(naive).collect();
        let bytes = built(&values, &record, false);
        for verify in [Verify::Header, Verify::Full] {
            let index = OpenOptions::default().verify(verify).from_bytes(bytes.clone()).expect("opens");
            assert_eq!(index.record().expect("reads"), Some(record.clone()));
            let map = Map::<u64, Row>::from_index(index.into()).expect("types");
            for (rank, row) in rows.iter().enumerate() {
                let found = map.get(rank as u64 * 10).expect("reads").expect("is there");
                let wanted: Vec<FieldValue<'_>> = (record.fields().iter().zip(row))
                    .map(|(field, bytes)| field.kind.read(bytes).expect("a value"))
                    .collect();
                let same = |one: &FieldValue<'_>, other: &FieldValue<'_>| match (one, other) {
                    (FieldValue::F64(one), FieldValue::F64(other)) => one.to_bits() == other.to_bits(),
                    _ => one == other,
                };
                assert!(found.iter().zip(&wanted).all(|((_, value), wanted)| same(&value, wanted)));
                let mut packed = Vec::new();
                assert!(record.pack(&wanted, &mut packed) && packed == values[rank]);
            }
        }
    }
}

#[test]
fn broken_values_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.pleach");
    let record = Record::parse("record<name: utf8, n: u16, blob: bytes>").expect("a record");
    let whole = b"\x02\0\0\0\x07\0\x05\0\0\0abxyz".to_vec();
    assert_eq!(record.check(&whole), Ok(()));
    let with = |at: usize, byte: u8| {
        let mut value = whole.clone();
        value[at] = byte;
        value
    };
    let long = |text: &[u8]| {
        let mut value = (text.len() as u32).to_le_bytes().to_vec();
        value.extend([0, 0]);
        value.extend((text.len() as u32).to_le_bytes());
        value.extend_from_slice(text);
        value
    };
    let mut broken_text = vec![b'x'; 5 << 20];
    assert_eq!(record.check(&long(&broken_text)), Ok(()));
    fs::write(&path, built(&[whole.clone(), long(&broken_text), whole.clone()], &record, false))
        .expect("written");
    assert_eq!(findings(&path), Vec::<String>::new());
    broken_text[4 << 20] = 0xff;
    for (value, wanted) in [
        (whole[..9].to_vec(), "fields of 10 bytes"),
        (Vec::new(), "fields of 10 bytes"),
        (with(6, 1), "ends of texts that ascend, up to field blob"),
        (with(6, 4), "texts that end where the value does"),
        (with(0, 6), "texts that end where the value does"),
        (with(9, 0xff), "texts that end where the value does"),
        ([&whole[..], b"z"].concat(), "texts that end where the value does"),
        (with(10, 0xff), "valid UTF-8 in field name"),
        (long(&broken_text), "valid UTF-8 in field name"),
        ([&long(&broken_text[..4 << 20])[..], b"x"].concat(), "texts that end where the value does"),
    ] {
        let values = [whole.clone(), whole.clone(), value.clone(), whole.clone()];
        fs::write(&path, built(&values, &record, false)).expect("written");
        let rule = "the element of rank 2 must be that of its tuple";
        assert_eq!(findings(&path), [format!("column {rule} {wanted}")], "{wanted}");
        // A reader shows something, and its typed maps an error.
        let index = Index::open(&path).expect("opens");
        let (_, shown) = index.tuple(2).expect("reads").expect("is there");
        assert_eq!(record.values(&shown.packed()).count(), 3);
        assert!(matches!(shown, Datum::Bytes(_)));
        let map = Map::<u64, (String, u16, Vec<u8>)>::open(&path).expect("types");
        assert_eq!(map.get(0).expect("reads"), Some(("ab".to_owned(), 7, b"xyz".to_vec())));
        assert!(map.get(20).is_err() && map.get_many(&[0, 20]).is_err());
        assert!(Map::<u64, Row>::open(&path).expect("types").get(20).is_err());
    }
}

/// Any bytes as values: records show something, intervals are inside the file, and the check ends.
#[test]
fn values_of_any_bytes_do_no_harm() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.pleach");
    let mut random = Random(3);
    for round in 0..60 {
        let interval = round % 2 == 0;
        let mut fields = record(&mut random).fields().to_vec();
        if interval {
            fields.insert(0, Field::new("last", FieldKind::U64));
        }
        let record = Record::new(fields).expect("a record");
        let values: Vec<Vec<u8>> = (0..200)
            .map(|_| {
                let mut packed: Vec<u8> =
                    (0..random.below(40)).map(|_| (random.below(12) * 3) as u8).collect();
                if random.below(3) == 0 {
                    packed.resize(packed.len().max(record.bytes()), 0);
                }
                packed
            })
            .collect();
        let bytes = match interval {
            // The builder refuses intervals that overlap: META says later that these are some.
            true => {
                let apart: Vec<Vec<u8>> = (0..200u64)
                    .map(|rank| {
                        [
                            (rank * 10 + random.below(12)).min(rank * 10 + 9).to_le_bytes().to_vec(),
                            values[rank as usize].clone(),
                        ]
                        .concat()
                    })
                    .collect();
                built(&apart, &record, true)
            }
            false => built(&values, &record, false),
        };
        fs::write(&path, &bytes).expect("written");
        let broken = findings(&path).len();
        let index = Index::open(&path).expect("opens");
        let mut bad = 0;
        for rank in 0..200 {
            let (_, value) = index.tuple(rank).expect("reads").expect("is there");
            let packed = value.packed();
            assert_eq!(record.values(&packed).count(), record.len());
            bad += usize::from(record.check(&packed).is_err());
        }
        assert!(broken == bad || broken >= 20 && bad >= 20, "{broken} findings of {bad}");
        if let Some(intervals) = index.intervals::<u64>().expect("reads") {
            let queries: Vec<u64> = (0..2100).collect();
            let mut ranks = vec![0; queries.len()];
            intervals.find_batch(&queries, &mut ranks).expect("reads");
            for (query, rank) in queries.iter().zip(ranks) {
                assert!(rank == u64::MAX || rank == query / 10);
            }
        }
    }
}

/// A rebuild and a merge keep records with texts, and intervals with texts apart.
#[test]
fn changes_keep_texts() {
    let folder = tempfile::tempdir().expect("a folder");
    let [path, other, merged] = ["a", "b", "m"].map(|name| folder.path().join(name));
    let builder = Builder::new().fields(["n", "name"]);
    let name = |key: u64| "n".repeat(key as usize % 7);
    builder.build(&path, (0..500u64).map(|key| (key * 2, (key as u32, name(key))))).expect("builds");
    builder.build(&other, (0..500u64).map(|key| (key * 2 + 1, (7u32, "other".to_owned())))).expect("builds");
    let open = |schema: &Schema| {
        let record = schema.record().expect("a record");
        let mut values = Strings::default();
        let mut packed = Vec::new();
        assert!(record.pack(&[FieldValue::U32(9), FieldValue::Utf8("changed")], &mut packed));
        values.push(&packed);
        values.push(b"");
        let (keys, ops) = (Column::U64(vec![10, 12]), vec![Op::Put, Op::Del]);
        let chunk = Chunk { keys, values: Column::Bytes(values), ops };
        Ok(Box::new(ChunkSource::new(schema.clone(), std::iter::once(chunk))) as Box<dyn Source>)
    };
    rebuild::rebuild(&path, Box::new(open), &RebuildOptions::default(), &Silent).expect("changes");
    compact(&[path.clone(), other], &merged, &CompactOptions::default(), &Silent).expect("merges");
    for (path, count) in [(&path, 499), (&merged, 999)] {
        assert_eq!(findings(path), Vec::<String>::new());
        let map = Map::<u64, (u32, String)>::open(path).expect("types");
        assert_eq!(map.len(), count);
        assert_eq!(map.get(10).expect("reads"), Some((9, "changed".to_owned())));
        assert_eq!(map.get(12).expect("reads"), None);
        assert_eq!(map.get(20).expect("reads"), Some((10, name(10))));
    }
    let map = Map::<u64, (u32, String)>::open(&merged).expect("types");
    assert_eq!(map.get(21).expect("reads"), Some((7, "other".to_owned())));
}

/// An interval with texts that ends behind the next one, or before it starts, is named with its section.
#[test]
fn ends_of_intervals_with_texts_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("i.pleach");
    let record = Record::parse("record<last: u64, name: utf8>").expect("a record");
    // Long texts, too: of these, ends alone are read.
    for length in [3, 40_000] {
        let values: Vec<Vec<u8>> = (0..1500u64)
            .map(|rank| {
                let (mut packed, text) = (Vec::new(), "x".repeat((rank % 2) as usize * length));
                let values = [FieldValue::U64(rank * 10 + 9), FieldValue::Utf8(&text)];
                assert!(record.pack(&values, &mut packed));
                packed
            })
            .collect();
        let whole = built(&values, &record, true);
        let place = header(&whole).values.expect("a column");
        for (rank, last) in [(0, 10), (700, 7010), (1023, 10_240), (1024, 3), (1499, 0)] {
            let mut bytes = whole.clone();
            let at = place.data_offset() as usize + values[..rank].iter().map(Vec::len).sum::<usize>();
            bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(last));
            reseal(&mut bytes);
            fs::write(&path, &bytes).expect("written");
            let report = fsck(&path, &FsckOptions::default()).expect("readable");
            let found: Vec<_> =
                report.findings.iter().map(|it| (it.code.name(), &it.section[..], it.offset)).collect();
            assert_eq!(found, [("interval", "VALS", at as u64)], "{rank}");
        }
        fs::write(&path, &whole).expect("written");
        assert_eq!(findings(&path), Vec::<String>::new());
    }
}
