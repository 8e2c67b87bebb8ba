//! Texts of records, their bytes, and bytes that are none.

use super::*;

fn record(fields: &[(&str, FieldKind)]) -> Record {
    let fields = fields.iter().map(|&(name, kind)| Field::new(name, kind)).collect();
    Record::new(fields).expect("is a record")
}

#[test]
fn texts_come_back() {
    use FieldKind::*;
    let mut all: Vec<(String, FieldKind)> =
        FieldKind::NUMERIC.iter().map(|&kind| (kind.to_string(), kind)).collect();
    all.extend(
        [("tag", Fixed(3)), ("text", Utf8), ("blob", Bytes)].map(|(name, kind)| (name.to_owned(), kind)),
    );
    for name in ["", " ", "a b", "1a", "a\"b\\", "é", "x: u8, y", ">", "record<"] {
        all.push((name.to_owned(), Fixed(65)));
    }
    let fields: Vec<Field> = all.into_iter().map(|(name, kind)| Field::new(name, kind)).collect();
    let mut fields = Record::new(fields).expect("is a record").fields().to_vec();
    fields[6].logical = "Date32".to_owned();
    fields[7].logical = "Timestamp(Second, Some(\"a\\\"b\"))".to_owned();
    let record = Record::new(fields).expect("is a record");
    let text = record.to_string();
    assert_eq!(Record::parse(&text).as_ref(), Some(&record), "{text}");
    // No other text is valid: not a prefix of it, nor one with anything more.
    for (end, _) in text.char_indices() {
        assert_eq!(Record::parse(&text[..end]), None);
    }
    assert_eq!(Record::parse(&format!("{text} ")), None);
    let plain = super::tests::record(&[("left", U32), ("right", F64), ("tag", Fixed(3))]);
    assert_eq!(plain.to_string(), "record<left: u32, right: f64, tag: bytes3>");
}

#[test]
fn broken_texts_are_no_records() {
    for text in [
        "",
        "Date32",
        "record<>",
        "record<a>",
        "record<a: u32",
        "record<a: u32>>",
        "record<a:u32>",
        "record<a: u32,b: u32>",
        "record<a: u32, a: u8>",
        "record<a: u32, >",
        "record<a: bool>",
        "record<a: utf8 >",
        "record<a: utf16>",
        "record<a: bytes0>",
        "record<a: bytes03>",
        "record<a: bytes65536>",
        "record<a: bytes65535, b: u8>",
        "record<\"a\": u8>",
        "record<a b: u8>",
        "record<\"a b\\c\": u8>",
        "record<a: u8 \"\">",
        "record<a: u8 >",
        "record<\"a: u8>",
    ] {
        assert_eq!(Record::parse(text), None, "{text}");
    }
    let many = |count: usize| {
        Record::new((0..count).map(|number| Field::new(format!("f{number}"), FieldKind::U8)).collect())
    };
    assert!(many(FIELDS_MAX).is_ok());
    assert_eq!(many(FIELDS_MAX + 1), Err(RecordError::Fields(FIELDS_MAX + 1)));
    assert_eq!(many(0), Err(RecordError::Fields(0)));
    let most = many(FIELDS_MAX).map(|record| record.to_string()).unwrap_or_default();
    assert!(Record::parse(&most).is_some());
    assert_eq!(Record::parse(&most.replace("f1023: u8>", "f1023: u8, g: u8>")), None);
}

#[test]
fn fields_are_packed_and_found() {
    use FieldKind::*;
    let record = record(&[("a", U8), ("b", I16), ("c", F64), ("d", Fixed(2))]);
    assert_eq!((record.bytes(), record.storage()), (13, ValueType::Fixed(13)));
    assert_eq!((record.offset(2), record.find("d"), record.find("e")), (3, Some(3), None));
    let values = [FieldValue::U8(200), FieldValue::I16(-2), FieldValue::F64(0.5), FieldValue::Fixed(b"xy")];
    let mut packed = Vec::new();
    assert!(record.pack(&values, &mut packed));
    assert_eq!(packed[..3], [200, 0xFE, 0xFF]);
    assert_eq!(record.values(&packed).collect::<Vec<_>>(), values);
    assert_eq!(record.values(&packed[..12]).count(), 3);
    assert_eq!(record.get(4, &packed), None);
    let short = [FieldValue::Fixed(b"x")];
    for wrong in [&values[..3], &[values[1], values[0], values[2], values[3]], &short] {
        assert!(!record.pack(wrong, &mut packed));
    }
    assert_eq!(packed.len(), 13);
}

#[test]
fn short_records_are_words() {
    use FieldKind::*;
    for (record, storage) in [
        (record(&[("a", U16), ("b", U16)]), ValueType::U32),
        (record(&[("a", F64)]), ValueType::U64),
        (record(&[("a", U32), ("b", I32)]), ValueType::U64),
        (record(&[("a", U8)]), ValueType::Fixed(1)),
        (record(&[("a", U32), ("b", U8)]), ValueType::Fixed(5)),
    ] {
        assert_eq!(record.storage(), storage);
        let text = record.to_string();
        assert!(Record::of(storage, &text).is_some());
        assert_eq!(Record::of(ValueType::F32, &text), None);
    }
    assert_eq!(Record::bits_of(&[1, 0, 0, 2]), Some(0x0200_0001));
    assert_eq!(Record::bits_of(&[1, 0, 0, 0, 0, 0, 0, 2]), Some(0x0200_0000_0000_0001));
    assert_eq!(Record::bits_of(&[1]), None);
}

#[test]
fn texts_follow_the_fields() {
    use FieldKind::*;
    let record = record(&[("a", U16), ("b", Utf8), ("c", U8), ("d", Bytes), ("e", Utf8)]);
    assert_eq!((record.bytes(), record.storage(), record.has_texts()), (15, ValueType::Bytes, true));
    let values = [
        FieldValue::U16(7),
        FieldValue::Utf8("é"),
        FieldValue::U8(9),
        FieldValue::Bytes(b""),
        FieldValue::Utf8("xyz"),
    ];
    let mut packed = Vec::new();
    assert!(record.pack(&values, &mut packed));
    assert_eq!(packed, b"\x07\0\x02\0\0\0\x09\x02\0\0\0\x05\0\0\0\xc3\xa9xyz");
    assert_eq!(record.check(&packed), Ok(()));
    assert_eq!(record.values(&packed).collect::<Vec<_>>(), values);
    assert_eq!(record.get_typed::<String>(4, &packed).as_deref(), Some("xyz"));
    assert_eq!(record.get_typed::<Vec<u8>>(3, &packed), Some(Vec::new()));
    assert_eq!(record.get_typed::<Vec<u8>>(4, &packed), None);
    let texts = ["é".as_bytes(), b"", b"xyz"];
    let mut completed = packed[..15].to_vec();
    [2..6, 7..11, 11..15].into_iter().for_each(|end| completed[end].fill(0));
    record.put_texts(texts.into_iter(), &mut completed);
    assert_eq!(completed, packed);
    assert_eq!(record.text_place(4).map(|place| place.text(&packed)), Some(&b"xyz"[..]));
    assert!(record.text_place(0).is_none() && record.text_place(5).is_none());
    assert!(!record.pack(&[values[0], values[3], values[2], values[3], values[4]], &mut packed));
}

#[test]
fn damaged_texts_are_empty() {
    use FieldKind::*;
    let record = record(&[("a", Utf8), ("b", Fixed(2)), ("c", Bytes)]);
    let mut whole = Vec::new();
    let values = [FieldValue::Utf8("ab"), FieldValue::Fixed(b"zz"), FieldValue::Bytes(b"cde")];
    assert!(record.pack(&values, &mut whole));
    for end in 0..whole.len() {
        let fault = if end < 10 { ValueFault::Short } else { ValueFault::Length };
        assert_eq!(record.check(&whole[..end]), Err(fault));
        assert_eq!(record.values(&whole[..end]).count(), 3);
    }
    assert_eq!(record.get(1, &whole[..5]), Some(FieldValue::Fixed(b"\0\0")));
    assert_eq!(record.get(2, &whole[..14]), Some(FieldValue::Bytes(b"")));
    let changed = |at: usize, byte: u8| {
        let mut value = whole.clone();
        value[at] = byte;
        value
    };
    assert_eq!(record.check(&changed(0, 6)), Err(ValueFault::Length));
    assert_eq!(record.check(&changed(6, 1)), Err(ValueFault::Descends(2)));
    assert_eq!(record.check(&changed(6, 4)), Err(ValueFault::Length));
    assert_eq!(record.check(&changed(11, 0xff)), Err(ValueFault::NotUtf8(0)));
    assert_eq!(record.check(&changed(12, 0xff)), Ok(()));
    assert_eq!(record.get(0, &changed(11, 0xff)), Some(FieldValue::Utf8("")));
    assert_eq!(record.get(2, &changed(6, 1)), Some(FieldValue::Bytes(b"")));
    assert_eq!(record.get_typed::<String>(0, &changed(11, 0xff)), None);
    let long = [&whole[..], b"x"].concat();
    assert_eq!(record.check(&long), Err(ValueFault::Length));
    // Every byte may be anything.
    for at in 0..whole.len() {
        for byte in 0..=255 {
            assert_eq!(record.values(&changed(at, byte)).count(), 3);
        }
    }
}
