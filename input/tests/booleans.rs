//! Booleans of every format, as values and as fields, and texts and bytes as fields.

use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, DictionaryArray, LargeBinaryArray,
    LargeStringArray, RecordBatch, StringArray, StringViewArray, UInt8Array, UInt32Array,
};
use pleach_builder::source::{Chunk, Column, Op, Schema, SourceError};
use pleach_format::logical::{Logical, field_types};
use pleach_format::record::{FieldValue, Record};
use pleach_format::{KeyType, ValueType};
use pleach_input::{Format, InputOptions, Nulls, open_batches, open_stream};
use std::io::Cursor;
use std::sync::Arc;

/// Schema, values and operations of a source.
type Read = (Schema, Vec<Vec<u8>>, Vec<Op>);

fn drain(mut source: Box<dyn pleach_builder::Source>) -> Result<Read, SourceError> {
    let schema = source.schema().clone();
    let (mut values, mut ops) = (Vec::new(), Vec::new());
    let mut chunk = Chunk::new(schema.key_type, schema.value_type);
    loop {
        source.next_chunk(&mut chunk, 3)?;
        if chunk.is_empty() {
            return Ok((schema, values, ops));
        }
        ops.extend(chunk.ops.iter().copied());
        match &chunk.values {
            Column::U32(words) => values.extend(words.iter().map(|word| word.to_le_bytes().to_vec())),
            Column::U64(words) => values.extend(words.iter().map(|word| word.to_le_bytes().to_vec())),
            Column::Bytes(strings) => values.extend(strings.iter().map(<[u8]>::to_vec)),
            Column::None | Column::U128(_) => {}
        }
    }
}

fn read(bytes: &[u8], format: Format, options: &InputOptions) -> Result<Read, SourceError> {
    let options = InputOptions { format: Some(format), ..options.clone() };
    drain(open_stream("t", Box::new(Cursor::new(bytes.to_vec())), &options)?)
}

fn csv(text: &str, options: &InputOptions) -> Result<Read, SourceError> {
    read(text.as_bytes(), Format::Csv, options)
}

/// Reads batches of Arrow, with rows of both batches.
fn arrow(columns: Vec<(&str, ArrayRef)>, options: &InputOptions) -> Result<Read, SourceError> {
    let nullable = columns.into_iter().map(|(name, array)| (name, array, true));
    let table = RecordBatch::try_from_iter_with_nullable(nullable).expect("a batch");
    let batches = [table.slice(0, 1), table.slice(1, table.num_rows() - 1)].map(Ok);
    drain(open_batches("t", &table.schema(), batches.into_iter(), options)?)
}

fn boolean() -> InputOptions {
    InputOptions {
        value_type: Some(ValueType::U32),
        value_logical: Some(Logical::Boolean),
        ..InputOptions::default()
    }
}

fn numbers(read: &Read) -> Vec<u8> {
    read.1.iter().map(|value| value[0]).collect()
}

fn record(read: &Read) -> Record {
    Record::of(read.0.value_type, &read.0.value_logical).expect("a record")
}

fn fields(columns: &str, types: &str) -> InputOptions {
    let (field_types, field_logicals) =
        field_types(types).filter(|_| !types.is_empty()).unwrap_or_default().into_iter().unzip();
    InputOptions { value: Some(columns.to_owned()), field_types, field_logicals, ..InputOptions::default() }
}

#[track_caller]
fn refused(read: Result<Read, SourceError>, text: &str) {
    assert_eq!(read.expect_err(text).to_string(), text);
}

#[test]
fn texts_are_booleans_or_refused() {
    let found = csv("k,v\n1,true\n2,FALSE\n3, True \n4,0\n5,1\n", &boolean()).expect("reads");
    assert_eq!((found.0.value_type, &found.0.value_logical[..]), (ValueType::U32, "Boolean"));
    assert_eq!(numbers(&found), [1, 0, 1, 0, 1]);
    for (text, row, shown) in [("1,yes", 1, "yes"), ("1,1\n2,2", 2, "2"), ("1,1.0", 1, "1.0")] {
        refused(
            csv(&format!("k,v\n{text}\n"), &boolean()),
            &format!("t: row {row}, column \"v\": not a boolean: \"{shown}\": use true or false"),
        );
    }
    let nulls = InputOptions { nulls: Nulls::Fill("true".to_owned()), ..boolean() };
    assert_eq!(numbers(&csv("k,v\n1,\n2,false\n", &nulls).expect("reads")), [1, 0]);
    refused(
        csv("k,v\n1,\n", &boolean()),
        "t: row 1, column \"v\": it is null: leave such rows out with --nulls skip, fill values in with \
         --nulls default=V, or choose another column",
    );
    // Keys are none.
    let keys = InputOptions {
        key_type: Some(KeyType::U32),
        key_logical: Some(Logical::Boolean),
        ..InputOptions::default()
    };
    refused(csv("k,v\ntrue,1\n", &keys), "t: keys cannot be booleans: choose --key-type u32 for 1 and 0");
}

#[test]
fn arrays_are_booleans_without_a_request() {
    let keys = || ("k", Arc::new(UInt32Array::from(vec![1, 2, 3])) as ArrayRef);
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
    let found = arrow(vec![keys(), ("v", flags.clone())], &InputOptions::default()).expect("reads");
    assert_eq!((found.0.value_type, &found.0.value_logical[..]), (ValueType::U32, "Boolean"));
    assert_eq!(numbers(&found), [1, 0, 1]);
    // Another type is a plain number.
    let wide = InputOptions { value_type: Some(ValueType::U64), ..InputOptions::default() };
    let found = arrow(vec![keys(), ("v", flags.clone())], &wide).expect("reads");
    assert_eq!((found.0.value_type, &found.0.value_logical[..]), (ValueType::U64, ""));
    // Numbers and texts become booleans where these are requested.
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["TRUE", "false", "1"]));
    for array in [texts, Arc::new(UInt8Array::from(vec![1, 0, 1])) as ArrayRef] {
        let found = arrow(vec![keys(), ("v", array)], &boolean()).expect("reads");
        assert_eq!((&found.0.value_logical[..], numbers(&found)), ("Boolean", vec![1, 0, 1]));
    }
    let seven: ArrayRef = Arc::new(UInt8Array::from(vec![1, 0, 7]));
    refused(
        arrow(vec![keys(), ("v", seven)], &boolean()),
        "t: row 3, column \"v\": 7 does not fit bool (0 or 1): choose another type with --value-type",
    );
    // Nulls, and rows of changes.
    let some: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]));
    let filled = InputOptions { nulls: Nulls::Fill("true".to_owned()), ..InputOptions::default() };
    assert_eq!(numbers(&arrow(vec![keys(), ("v", some.clone())], &filled).expect("reads")), [1, 1, 0]);
    let ops: ArrayRef = Arc::new(StringArray::from(vec!["put", "del", "add"]));
    let changes = InputOptions { changes: true, key_type: Some(KeyType::U32), ..boolean() };
    let found = arrow(vec![("op", ops), ("key", keys().1), ("value", some)], &changes).expect("reads");
    assert_eq!((numbers(&found)[0], numbers(&found)[2], found.2), (1, 0, vec![Op::Put, Op::Del, Op::Add]));
}

#[test]
fn numpy_has_booleans() {
    let npy = |descr: &str, data: &[u8], rows: usize| {
        let mut header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({rows},), }}");
        while (header.len() + 11) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    };
    let rows = [1, 0, 0, 0, 1, 2, 0, 0, 0, 0];
    let bytes = npy("[('k', '<u4'), ('v', '|b1')]", &rows, 2);
    let found = read(&bytes, Format::Npy, &InputOptions::default()).expect("reads");
    assert_eq!((&found.0.value_logical[..], numbers(&found)), ("Boolean", vec![1, 0]));
    let found = read(&bytes, Format::Npy, &fields("v,k", "")).expect("reads");
    assert_eq!(record(&found).to_string(), "record<v: u8 \"Boolean\", k: u32>");
    assert_eq!(found.1[0], [1, 1, 0, 0, 0]);
    let broken = npy("[('k', '<u4'), ('v', '|b1')]", &[1, 0, 0, 0, 3], 1);
    refused(
        read(&broken, Format::Npy, &InputOptions::default()),
        "t: row 1, column \"v\": 3 does not fit bool (0 or 1): choose another type with --value-type",
    );
}

#[test]
fn texts_and_booleans_are_fields() {
    let table = "k,a,name,flag,blob\n1,7,one,true,\\x00ff\n2,8,,FALSE,xyz\n3,9,\"a,b\",1,\n";
    let found = csv(table, &fields("a,name,flag,blob", "u16,utf8,bool,bytes")).expect("reads");
    let is = record(&found);
    assert_eq!(is.to_string(), "record<a: u16, name: utf8, flag: u8 \"Boolean\", blob: bytes>");
    assert_eq!((found.0.value_type, is.storage()), (ValueType::Bytes, ValueType::Bytes));
    let rows: Vec<Vec<FieldValue<'_>>> = found.1.iter().map(|value| is.values(value).collect()).collect();
    let row = |a, name, flag, blob: &'static [u8]| {
        vec![FieldValue::U16(a), FieldValue::Utf8(name), FieldValue::U8(flag), FieldValue::Bytes(blob)]
    };
    assert_eq!(rows, [row(7, "one", 1, b"\0\xff"), row(8, "", 0, b"xyz"), row(9, "a,b", 1, b"")]);
    assert!(found.1.iter().all(|value| is.check(value).is_ok()));
    // One type for all.
    let all = InputOptions { value_type: Some(ValueType::Utf8), ..fields("a,name", "") };
    assert_eq!(record(&csv(table, &all).expect("reads")).to_string(), "record<a: utf8, name: utf8>");
    let all = InputOptions { value: Some("flag,k".to_owned()), ..boolean() };
    let found = csv("k,flag\n1,true\n0,0\n", &all).expect("reads");
    assert_eq!(record(&found).to_string(), "record<flag: u8 \"Boolean\", k: u8 \"Boolean\">");
    refused(
        csv("k,a,b\n1,x,maybe\n", &fields("a,b", "utf8,bool")),
        "t: row 1, column \"b\": not a boolean: \"maybe\": use true or false",
    );
    refused(
        read(b"k,a,b\n1,2,\xff\n", Format::Csv, &fields("a,b", "u8,utf8")),
        "t: row 1, column \"b\": \"\u{fffd}\" is not valid UTF-8: choose bytes with --value-type",
    );
}

#[test]
fn arrays_of_texts_are_fields() {
    let (texts, blobs) = (["", "é", "three"], [&b""[..], b"\xff\0", b"xy"]);
    let dictionary: DictionaryArray<Int8Type> = texts.into_iter().collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("k", Arc::new(UInt32Array::from(vec![1, 2, 3]))),
        ("a", Arc::new(StringArray::from(texts.to_vec()))),
        ("b", Arc::new(LargeStringArray::from(texts.to_vec()))),
        ("c", Arc::new(StringViewArray::from(texts.to_vec()))),
        ("d", Arc::new(dictionary)),
        ("e", Arc::new(BinaryArray::from(blobs.to_vec()))),
        ("f", Arc::new(LargeBinaryArray::from(blobs.to_vec()))),
        ("g", Arc::new(BinaryViewArray::from(blobs.to_vec()))),
        ("h", Arc::new(BooleanArray::from(vec![false, true, true]))),
    ];
    let found = arrow(columns, &fields("a,b,c,d,e,f,g,h", "")).expect("reads");
    let is = record(&found);
    assert_eq!(
        is.to_string(),
        "record<a: utf8, b: utf8, c: utf8, d: utf8, e: bytes, f: bytes, g: bytes, h: u8 \"Boolean\">"
    );
    for (row, value) in found.1.iter().enumerate() {
        assert_eq!(is.check(value), Ok(()));
        let values: Vec<FieldValue<'_>> = is.values(value).collect();
        assert!(values[..4].iter().all(|value| *value == FieldValue::Utf8(texts[row])));
        assert!(values[4..7].iter().all(|value| *value == FieldValue::Bytes(blobs[row])));
        assert_eq!(values[7], FieldValue::U8(u8::from(row > 0)));
    }
    // Nulls in texts are those of every column.
    let some = || -> Vec<(&str, ArrayRef)> {
        vec![
            ("k", Arc::new(UInt32Array::from(vec![1, 2, 3]))),
            ("a", Arc::new(StringArray::from(vec![Some("x"), None, Some("z")]))),
            ("b", Arc::new(UInt8Array::from(vec![1, 2, 3]))),
        ]
    };
    let asked = fields("a,b", "");
    assert!(arrow(some(), &asked).expect_err("is null").to_string().starts_with("t: row 2, column \"a\": "));
    let skipped = arrow(some(), &InputOptions { nulls: Nulls::Skip, ..asked.clone() }).expect("reads");
    assert_eq!(skipped.1.len(), 2);
    let nulls = Nulls::Fill("?".to_owned());
    let filled = arrow(some(), &InputOptions { nulls, ..fields("a,a2", "") });
    assert!(filled.is_err(), "no such column");
    // Fixed lengths are requested.
    let found = arrow(
        some()
            .into_iter()
            .take(1)
            .chain([
                ("t", Arc::new(StringArray::from(vec!["ab", "cd", "ef"])) as ArrayRef),
                ("n", Arc::new(UInt8Array::from(vec![1, 2, 3])) as ArrayRef),
            ])
            .collect(),
        &fields("t,n", "bytes2,u8"),
    );
    assert_eq!(record(&found.expect("reads")).to_string(), "record<t: bytes2, n: u8>");
}

#[test]
fn changes_have_the_fields_of_the_file() {
    let record = Record::parse("record<n: u16, name: utf8, flag: u8 \"Boolean\">").expect("a record");
    let changes = InputOptions {
        changes: true,
        key_type: Some(KeyType::U64),
        value_type: Some(ValueType::Bytes),
        record: Some(record.clone()),
        ..InputOptions::default()
    };
    let text = "op,key,flag,n,name\nput,1,true,5,one\ndel,2,,,\ndel,3\nadd,4,0,6,\n";
    let found = csv(text, &changes).expect("reads");
    assert_eq!(found.2, [Op::Put, Op::Del, Op::Del, Op::Add]);
    let row = |at: usize| record.values(&found.1[at]).collect::<Vec<_>>();
    assert_eq!(row(0), [FieldValue::U16(5), FieldValue::Utf8("one"), FieldValue::U8(1)]);
    assert_eq!(row(3), [FieldValue::U16(6), FieldValue::Utf8(""), FieldValue::U8(0)]);
    assert!(found.1.iter().all(|value| record.check(value).is_ok()));
}
