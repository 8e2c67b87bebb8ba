//! NDJSON: names and types of the first lines, exact numbers, nulls, and what is no object.

use pleach_builder::Schema;
use pleach_builder::source::{Chunk, Column};
use pleach_format::{KeyType, Logical, ValueType};
use pleach_input::{Format, InputOptions, Nulls, open_stream};
use std::io::Cursor;

fn options() -> InputOptions {
    InputOptions { format: Some(Format::Ndjson), ..InputOptions::default() }
}

/// The schema, and all chunks.
fn read(text: &str, options: &InputOptions) -> Result<(Schema, Vec<Chunk>), String> {
    let stream = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let mut source = open_stream("t", stream, options).map_err(|error| error.to_string())?;
    let mut chunks = Vec::new();
    loop {
        let mut chunk = Chunk::new(source.schema().key_type, source.schema().value_type);
        source.next_chunk(&mut chunk, 1000).map_err(|error| error.to_string())?;
        if chunk.is_empty() {
            return Ok((source.schema().clone(), chunks));
        }
        chunks.push(chunk);
    }
}

#[track_caller]
fn types(text: &str, options: &InputOptions) -> (KeyType, ValueType) {
    let (schema, _) = read(text, options).expect("reads");
    (schema.key_type, schema.value_type)
}

#[test]
fn types_are_those_of_the_first_lines() {
    use {KeyType as K, ValueType as V};
    for (text, wanted) in [
        ("{\"a\":1,\"b\":\"x\"}\n", (K::U64, V::Utf8)),
        ("{\"a\":\"x\",\"b\":1.5}\n", (K::Utf8, V::F64)),
        ("{\"a\":-1,\"b\":true}", (K::I64, V::U32)),
        ("{\"a\":1,\"b\":2}\n\n{\"b\":-3,\"a\":4}\r\n", (K::U64, V::I64)),
        ("{\"a\":18446744073709551615,\"b\":2e3}", (K::U64, V::F64)),
        // Names may have escapes, and members that are not asked for may be anything.
        ("{\"\\u0061\":1,\"b\":2,\"c\":{\"a\":[1,{}]}}", (K::U64, V::U64)),
        // The first line need not have all members.
        ("{\"a\":1}\n{\"a\":2,\"b\":\"x\"}\n{\"a\":3,\"b\":\"y\"}", (K::U64, V::Utf8)),
    ] {
        let nulls = InputOptions { nulls: Nulls::Skip, ..options() };
        assert_eq!(types(text, &nulls), wanted, "{text}");
    }
}

#[test]
fn requested_types_are_exact() {
    let text = "{\"a\":340282366920938463463374607431768211455,\"b\":\"19.90\"}\n{\"a\":7,\"b\":0.10}\n";
    let decimal = InputOptions {
        key_type: Some(KeyType::U128),
        value_type: Some(ValueType::I64),
        value_logical: Some(Logical::of_meta("Decimal128(10, 2)")),
        ..options()
    };
    let (schema, chunks) = read(text, &decimal).expect("reads");
    assert_eq!(schema.key_type, KeyType::U128);
    assert_eq!(chunks[0].keys, Column::U128(vec![u128::MAX, 7]));
    assert_eq!(chunks[0].values, Column::U64(vec![1990, 10]));
    let texts = InputOptions { key_type: Some(KeyType::Utf8), ..options() };
    let (_, chunks) = read("{\"a\":12,\"b\":1}\n{\"a\":\"x\",\"b\":2}\n", &texts).expect("reads");
    let Column::Bytes(strings) = &chunks[0].keys else { panic!("{:?}", chunks[0].keys) };
    assert_eq!((strings.get(0), strings.get(1)), (&b"12"[..], &b"x"[..]));
}

#[test]
fn many_rows_in_many_batches() {
    let mut text = String::new();
    for row in 0..100_000_u64 {
        // Members change places, and some lines are blank.
        let line =
            if row % 2 == 0 { "{\"k\":#,\"v\":%}\n" } else { "{ \"v\" : % , \"x\":[], \"k\" : # }\n\n" };
        text += &line.replace('#', &row.to_string()).replace('%', &(row * 3).to_string());
    }
    let (_, chunks) = read(&text, &options()).expect("reads");
    let mut rows = 0;
    for chunk in chunks {
        let (Column::U64(keys), Column::U64(values)) = (&chunk.keys, &chunk.values) else { panic!() };
        for (key, value) in keys.iter().zip(values) {
            assert_eq!((*key, *value), (rows, rows * 3));
            rows += 1;
        }
    }
    assert_eq!(rows, 100_000);
}

#[test]
fn what_does_not_fit_is_refused_with_its_line() {
    let long = "{\"a\":1,\"b\":1}\n".repeat(100_000);
    for (text, parts) in [
        ("[1,2]\n".to_owned(), &["line 1", "it is a list", "jq"][..]),
        ("{\"a\":1,\"b\":2}\n{\"a\":1,\n".to_owned(), &["line 2", "not a JSON object", "EOF"]),
        ("7\n".to_owned(), &["line 1", "not a JSON object"]),
        ("{\"a\":1} x\n".to_owned(), &["line 1", "not a JSON object"]),
        (String::new(), &["no objects", "JSON object"]),
        ("\n\n".to_owned(), &["no objects"]),
        ("{\"a\":1,\"b\":{}}\n".to_owned(), &["column \"b\"", "objects or lists"]),
        ("{\"a\":1}\n{\"a\":\"x\"}\n".to_owned(), &["column \"a\"", "numbers and texts"]),
        ("{\"a\":1,\"a\":2}\n".to_owned(), &["line 1", "\"a\" occurs twice"]),
        ("{\"a\":null,\"b\":1}\n".to_owned(), &["it is null"]),
        (format!("{long}{{\"a\":1.5,\"b\":1}}\n"), &["line 100001", "column \"a\"", "1.5", "--key-type"]),
        (format!("{long}{{\"a\":-1,\"b\":1}}\n"), &["line 100001", "column \"a\"", "-1"]),
        (format!("{long}{{\"a\":1\n"), &["line 100001", "not a JSON object"]),
        (format!("{long}{{\"b\":1}}\n"), &["row 100001", "it is null"]),
    ] {
        let error = read(&text, &options()).expect_err(&text[text.len().saturating_sub(30)..]);
        for part in parts {
            assert!(error.contains(part), "{part} is not in {error}");
        }
    }
    // A first line that is longer than what is looked at for names and types.
    let wide = format!("{{\"a\":1,\"b\":2,\"x\":\"{}\"}}\n{{\"a\":3,\"b\":4}}\n", "y".repeat(3 << 20));
    let (_, chunks) = read(&wide, &options()).expect("reads");
    assert_eq!(chunks.iter().map(Chunk::len).sum::<usize>(), 2);
    let skip = InputOptions { nulls: Nulls::Skip, ..options() };
    let (_, chunks) = read("{\"a\":null,\"b\":1}\n{\"a\":2,\"b\":1}\n{\"a\":3}\n", &skip).expect("reads");
    assert_eq!(chunks.iter().map(Chunk::len).sum::<usize>(), 1);
    // A chain of lists within lists ends in an error, not in the stack.
    let deep = format!("{{\"x\":{}1}}\n", "[".repeat(200_000));
    assert!(read(&deep, &options()).is_err());
}
