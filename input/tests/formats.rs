//! Every input format: what it delivers, and every refusal with its exact text.

use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Date32Array, Date64Array, Decimal64Array,
    Decimal128Array, DictionaryArray, DurationNanosecondArray, FixedSizeBinaryArray, Float32Array,
    Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, IntervalYearMonthArray, LargeBinaryArray,
    LargeStringArray, RecordBatch, StringArray, StringViewArray, Time32SecondArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{Field, Schema as ArrowSchema};
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use pleach_builder::source::{Chunk, Column, Schema, Source, SourceError};
use pleach_builder::storage::MemoryStorage;
use pleach_builder::{BuildOptions, Silent, build_with_storage};
use pleach_format::{Key, KeyType, ValueType};
use pleach_input::{Format, InputOptions, open, open_stream};
use proptest::prelude::*;
use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Data that a source returned: encoded keys and value bits, widened; or wide words, or strings.
#[derive(Debug, PartialEq)]
struct Read64 {
    schema: Schema,
    keys: Vec<u64>,
    values: Vec<u64>,
    wide_keys: Vec<u128>,
    key_strings: Vec<Vec<u8>>,
    value_strings: Vec<Vec<u8>>,
}

impl Read64 {
    /// Number of keys.
    fn rows(&self) -> usize {
        self.keys.len() + self.wide_keys.len() + self.key_strings.len()
    }

    fn key_texts(&self) -> Vec<&str> {
        self.key_strings.iter().map(|text| std::str::from_utf8(text).expect("is UTF-8")).collect()
    }
}

fn words(column: &Column) -> Vec<u64> {
    match column {
        Column::U32(words) => words.iter().map(|&word| u64::from(word)).collect(),
        Column::U64(words) => words.clone(),
        _ => Vec::new(),
    }
}

fn wide_words(column: &Column) -> &[u128] {
    if let Column::U128(words) = column { words } else { &[] }
}

fn strings(column: &Column) -> Vec<Vec<u8>> {
    if let Column::Bytes(strings) = column {
        strings.iter().map(<[u8]>::to_vec).collect()
    } else {
        Vec::new()
    }
}

fn drain(source: &mut dyn Source, tuples_max: usize) -> Result<Read64, SourceError> {
    let schema = source.schema().clone();
    let mut read = Read64 {
        schema,
        keys: Vec::new(),
        values: Vec::new(),
        wide_keys: Vec::new(),
        key_strings: Vec::new(),
        value_strings: Vec::new(),
    };
    let mut chunk = Chunk::new(read.schema.key_type, read.schema.value_type);
    loop {
        source.next_chunk(&mut chunk, tuples_max)?;
        if chunk.is_empty() {
            break;
        }
        assert!(chunk.len() <= tuples_max);
        assert!(chunk.values.len() == chunk.len() || read.schema.value_type == ValueType::None);
        let same = |a: &Column, b: &Column| std::mem::discriminant(a) == std::mem::discriminant(b);
        assert!(same(&chunk.keys, &Column::for_key(read.schema.key_type)));
        assert!(same(&chunk.values, &Column::for_value(read.schema.value_type)));
        read.keys.extend(words(&chunk.keys));
        read.values.extend(words(&chunk.values));
        read.wide_keys.extend(wide_words(&chunk.keys));
        read.key_strings.extend(strings(&chunk.keys));
        read.value_strings.extend(strings(&chunk.values));
    }
    if let Some(rows) = read.schema.rows {
        assert_eq!(rows, read.rows() as u64);
    }
    if let (done, Some(total)) = source.progress() {
        assert_eq!(done, total);
    }
    Ok(read)
}

/// Reads a stream in several chunk sizes and as one that yields few bytes at a time.
fn stream(bytes: &[u8], format: Format, options: &InputOptions) -> Result<Read64, SourceError> {
    let options = InputOptions { format: Some(format), ..options.clone() };
    let whole = open_stream("standard input", Box::new(Cursor::new(bytes.to_vec())), &options)
        .and_then(|mut source| drain(&mut *source, 1 << 20));
    let slow = open_stream("standard input", Box::new(Trickle(bytes.to_vec(), 0)), &options)
        .and_then(|mut source| drain(&mut *source, 7));
    match (whole, slow) {
        (Ok(whole), Ok(slow)) => {
            assert_eq!(whole, slow);
            Ok(whole)
        }
        (Err(whole), Err(slow)) => {
            assert_eq!(whole.to_string(), slow.to_string());
            Err(whole)
        }
        (whole, slow) => panic!("{whole:?} but slowly {slow:?}"),
    }
}

/// Hands out 1 to 1,000 bytes at a time.
struct Trickle(Vec<u8>, usize);

impl Read for Trickle {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let left = &self.0[self.1..];
        let bytes = left.len().min(out.len()).min(1 + self.1 % 1000);
        out[..bytes].copy_from_slice(&left[..bytes]);
        self.1 += bytes;
        Ok(bytes)
    }
}

fn csv(text: impl AsRef<[u8]>, options: &InputOptions) -> Result<Read64, SourceError> {
    stream(text.as_ref(), Format::Csv, options)
}

fn plain() -> InputOptions {
    InputOptions::default()
}

fn keyed(key: KeyType) -> InputOptions {
    InputOptions { key_type: Some(key), ..plain() }
}

fn valued(value: ValueType) -> InputOptions {
    InputOptions { value_type: Some(value), ..plain() }
}

#[track_caller]
fn refused(read: Result<Read64, SourceError>, text: &str) {
    match read {
        Ok(read) => panic!("{read:?} instead of {text}"),
        Err(error) => assert_eq!(error.to_string(), text),
    }
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), array.null_count() > 0))
        .collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), arrays).expect("is a batch")
}

fn parquet_bytes(batch: &RecordBatch, compression: Compression) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(1000))
        .build();
    let mut bytes = Vec::new();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).expect("writes");
    writer.write(batch).expect("writes");
    writer.close().expect("writes");
    bytes
}

fn arrow_file(batches: &[RecordBatch]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer =
        arrow_ipc::writer::FileWriter::try_new(&mut bytes, &batches[0].schema()).expect("writes");
    for batch in batches {
        writer.write(batch).expect("writes");
    }
    writer.finish().expect("writes");
    drop(writer);
    bytes
}

fn arrow_stream(batches: &[RecordBatch], compression: Option<arrow_ipc::CompressionType>) -> Vec<u8> {
    let options = arrow_ipc::writer::IpcWriteOptions::default()
        .try_with_compression(compression)
        .expect("is supported");
    let mut bytes = Vec::new();
    let mut writer =
        arrow_ipc::writer::StreamWriter::try_new_with_options(&mut bytes, &batches[0].schema(), options)
            .expect("writes");
    for batch in batches {
        writer.write(batch).expect("writes");
    }
    writer.finish().expect("writes");
    drop(writer);
    bytes
}

fn save(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).expect("writes");
    path
}

fn file(name: &str, bytes: &[u8], options: &InputOptions) -> Result<Read64, SourceError> {
    let folder = tempfile::tempdir().expect("makes a folder");
    let path = save(folder.path(), name, bytes);
    let read = |tuples_max| {
        open(std::slice::from_ref(&path), options).and_then(|mut source| drain(&mut *source, tuples_max))
    };
    let (large, small) = (read(1 << 20), read(3));
    match (large, small) {
        (Ok(large), Ok(small)) => {
            assert_eq!(large, small);
            Ok(large)
        }
        (Err(large), Err(small)) => {
            assert_eq!(large.to_string(), small.to_string());
            Err(SourceError { input: name.to_owned(), ..large })
        }
        (large, small) => panic!("{large:?} but in small chunks {small:?}"),
    }
}

/// The same batch through Parquet and both kinds of Arrow: all must agree.
fn typed(batch: &RecordBatch, options: &InputOptions) -> Result<Read64, SourceError> {
    let parquet = file("t.parquet", &parquet_bytes(batch, Compression::SNAPPY), options);
    let arrow = file("t.parquet.arrow", &arrow_file(std::slice::from_ref(batch)), options);
    let streamed = stream(&arrow_stream(std::slice::from_ref(batch), None), Format::Arrow, options);
    match (parquet, arrow, streamed) {
        (Ok(parquet), Ok(arrow), Ok(streamed)) => {
            assert_eq!(parquet, arrow);
            assert_eq!(streamed.schema.rows, None);
            assert_eq!(arrow, Read64 { schema: arrow.schema.clone(), ..streamed });
            Ok(parquet)
        }
        (Err(parquet), Err(arrow), Err(streamed)) => {
            let text = |error: &SourceError| format!("{}: {}: {}", error.place, error.what, error.advice);
            assert_eq!(text(&parquet), text(&arrow));
            assert_eq!(text(&parquet), text(&streamed));
            Err(parquet)
        }
        other => panic!("{other:?}"),
    }
}

// ---------------------------------------------------------------------------------------------- CSV

#[test]
fn csv_takes_the_first_two_columns() {
    let read = csv("id,name,x\n1,2,3\n4,5,6\n", &plain()).expect("reads");
    assert_eq!((read.keys, read.values), (vec![1, 4], vec![2, 5]));
    assert_eq!((read.schema.key_name.as_str(), read.schema.value_name.as_str()), ("id", "name"));
    assert_eq!((read.schema.key_type, read.schema.value_type), (KeyType::U64, ValueType::U64));
    assert_eq!(read.schema.rows, None);
    let read = csv("id\n1\n4\n", &plain()).expect("reads");
    assert_eq!((read.keys, read.schema.value_type), (vec![1, 4], ValueType::None));
    let read = csv("id\n", &plain()).expect("reads");
    assert!(read.keys.is_empty());
}

#[test]
fn csv_columns_are_chosen_by_name_or_number() {
    let text = "a,b,0,c\n1,2,3,4\n5,6,7,8\n";
    let choose = |key: &str, value: &str| InputOptions {
        key: Some(key.to_owned()),
        value: Some(value.to_owned()),
        ..plain()
    };
    let read = csv(text, &choose("c", "b")).expect("reads");
    assert_eq!((read.keys, read.values), (vec![4, 8], vec![2, 6]));
    // A name that is a number goes before the number.
    let read = csv(text, &choose("0", "3")).expect("reads");
    assert_eq!((read.keys, read.values), (vec![3, 7], vec![4, 8]));
    let read = csv(text, &choose("b", "b")).expect("reads");
    assert_eq!((&read.keys, &read.values), (&vec![2, 6], &vec![2, 6]));
    let key_only = InputOptions { key: Some("b".to_owned()), ..plain() };
    let read = csv(text, &key_only).expect("reads");
    assert_eq!((read.keys, read.values), (vec![2, 6], vec![1, 5]));
    refused(
        csv(text, &choose("d", "b")),
        r#"standard input: no column "d": the columns are "a", "b", "0", "c""#,
    );
    refused(
        csv(text, &choose("a", "4")),
        r#"standard input: no column "4": the columns are "a", "b", "0", "c""#,
    );
    refused(
        csv("a,b,a\n", &choose("a", "b")),
        r#"standard input: column "a" occurs 2 times: choose it by number"#,
    );
    let dropped = InputOptions { value: Some("no such".to_owned()), ..valued(ValueType::None) };
    assert_eq!(csv(text, &dropped).expect("reads").schema.value_type, ValueType::None);
    refused(
        csv("a\n1\n", &valued(ValueType::U32)),
        "standard input: a value type without a value column: leave it out, or name a column",
    );
}

#[test]
fn csv_without_header_goes_by_number() {
    let options = InputOptions { no_header: true, ..plain() };
    let read = csv("1,2,3\n4,5,6", &options).expect("reads");
    assert_eq!((read.keys, read.values), (vec![1, 4], vec![2, 5]));
    assert_eq!((read.schema.key_name.as_str(), read.schema.value_name.as_str()), ("key", "value"));
    let chosen = InputOptions { key: Some("2".to_owned()), value: Some("0".to_owned()), ..options.clone() };
    let read = csv("1,2,3\n4,5,6", &chosen).expect("reads");
    assert_eq!((read.keys, read.values), (vec![3, 6], vec![1, 4]));
    let missing = InputOptions { key: Some("3".to_owned()), ..options.clone() };
    refused(
        csv("1,2,3\n", &missing),
        r#"standard input: no column "3": there are 3 columns, numbered from 0"#,
    );
    refused(
        csv("1,2\n,5\n", &options),
        "standard input: row 2, column 0: it is null: leave such rows out with --nulls skip, fill values in with \
         --nulls default=V, or choose another column",
    );
    refused(csv("", &options), "standard input: it is empty, but rows are expected");
}

#[test]
fn csv_lines_quotes_and_marks() {
    let expected = (vec![1, 3, 5], vec![2, 4, 6]);
    for text in [
        "k,v\n1,2\n3,4\n5,6\n",
        "k,v\n1,2\n3,4\n5,6",
        "k,v\r\n1,2\r\n3,4\r\n5,6\r\n",
        "k,v\r\n1,2\n3,4\r\n5,6",
        "\u{feff}k,v\n1,2\n3,4\n5,6\n",
        "\n\nk,v\n\n1,2\n\r\n3,4\n5,6\n\n\r\n\n",
        "\"k\",\"v\"\n\"1\",2\n3,\"4\"\n\"5\",\"6\"\r\n",
        "\"k\",v\n\"1\",\"2\"\n 3 ,\t4\n+5,0000000000000000000000006",
    ] {
        let read = csv(text, &plain()).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!((read.keys, read.values), expected, "{text:?}");
        assert_eq!(read.schema.key_name, "k");
    }
    let text = "k,text,v\n1,\"a \"\"b\"\",\n\r\n,\",2\n3,c,4\n5,\"\",6\n";
    let options = InputOptions { value: Some("v".to_owned()), ..plain() };
    let read = csv(text, &options).expect("reads");
    assert_eq!((read.keys, read.values), expected);
    let read = csv("\"a,\"\"b\"\"\n\",v\n1,2\n", &plain()).expect("reads");
    assert_eq!(read.schema.key_name, "a,\"b\"\n");
}

#[test]
fn csv_delimiters_and_tsv() {
    let semicolon = InputOptions { delimiter: Some(b';'), ..plain() };
    assert_eq!(csv("k;v\n1;2\n", &semicolon).expect("reads").values, [2]);
    let read = stream(b"a\\tb\tv\\\\\\x\n1\t2\n", Format::Tsv, &plain()).expect("reads");
    assert_eq!((read.keys, read.values), (vec![1], vec![2]));
    assert_eq!((read.schema.key_name.as_str(), read.schema.value_name.as_str()), ("a\tb", "v\\\\x"));
    // Quotes are letters in TSV.
    let by_name = InputOptions { value: Some("v".to_owned()), ..plain() };
    let read = stream(b"k\tt\tv\n1\t5\" pipe\t2\n", Format::Tsv, &by_name).expect("reads");
    assert_eq!((read.keys, read.values), (vec![1], vec![2]));
    refused(
        stream(b"k\tv\n\"1\"\t2\n", Format::Tsv, &plain()),
        "standard input: row 1, column \"k\": not a whole number: \"\\\"1\\\"\": correct it, or choose another \
         column or --key-type",
    );
    refused(
        csv("k,v\n", &InputOptions { delimiter: Some(b'1'), ..plain() }),
        "standard input: invalid delimiter '1', which occurs in numbers or quotes: use another",
    );
}

#[test]
fn csv_types() {
    let both = |key, value| InputOptions { key_type: Some(key), value_type: Some(value), ..plain() };
    let read =
        csv("k,v\n-2147483648,-1\n2147483647,1\n", &both(KeyType::I32, ValueType::I32)).expect("reads");
    assert_eq!(read.keys, [u64::from(i32::MIN.encode()), u64::from(i32::MAX.encode())]);
    assert_eq!(read.values, [0xffff_ffff, 1]);
    let text = "k,v\n-9223372036854775808,1.5\n9223372036854775807,NaN\n-1,-inf\n0,1e-320\n";
    let read = csv(text, &both(KeyType::I64, ValueType::F64)).expect("reads");
    assert_eq!(read.keys, [i64::MIN.encode(), i64::MAX.encode(), (-1_i64).encode(), 0_i64.encode()]);
    let floats: Vec<f64> = read.values.iter().map(|&bits| f64::from_bits(bits)).collect();
    assert_eq!((floats[0], floats[2], floats[3]), (1.5, f64::NEG_INFINITY, 1e-320));
    assert!(floats[1].is_nan());
    let read = csv("k,v\n4294967295,0.1\n", &both(KeyType::U32, ValueType::F32)).expect("reads");
    assert_eq!((read.keys[0], read.values[0]), (u64::from(u32::MAX), u64::from(0.1_f32.to_bits())));
    // Around the longest numbers, on their way from 19 to 20 digits and past the end.
    for number in [9_999_999_999_999_999_999, 10_000_000_000_000_000_000, u64::MAX - 1, u64::MAX] {
        let read = csv(format!("k,v\n{number},0{number}\n"), &plain()).expect("reads");
        assert_eq!((read.keys[0], read.values[0]), (number, number));
    }
    for number in
        ["18446744073709551616", "19999999999999999999", "20000000000000000000", "99999999999999999999"]
    {
        assert!(csv(format!("k\n{number}\n"), &plain()).is_err(), "{number}");
    }
}

#[test]
fn csv_refusals() {
    let rest = "correct it, or choose another column or";
    for (text, problem) in [
        ("", "it is empty, but a header line is expected"),
        ("\n\r\n", "it is empty, but a header line is expected"),
        ("k,v\n1,2\n3\n", "row 2: it has 1 field, but the first line has 2: give every row the same number"),
        (
            "k,v\n1,2\n3,4,5\n",
            "row 2: it has 3 fields, but the first line has 2: give every row the same number",
        ),
        ("k\n1\n2,3\n", "row 2: it has 2 fields, but the first line has 1: give every row the same number"),
        (
            "k,v\n1,2\n3,\n",
            "row 2, column \"v\": it is null: leave such rows out with --nulls skip, fill values in with \
             --nulls default=V, or choose another column",
        ),
        (
            "k,v\n1,\"\"\n",
            "row 1, column \"v\": it is null: leave such rows out with --nulls skip, fill values in with \
             --nulls default=V, or choose another column",
        ),
        ("k,v\n1,NaN\n", &format!("row 1, column \"v\": not a whole number: \"NaN\": {rest} --value-type")),
        ("k,v\n1.5,2\n", &format!("row 1, column \"k\": not a whole number: \"1.5\": {rest} --key-type")),
        (
            "k,v\n1\r2,2\n",
            "row 1, field 1: carriage return without a line feed: use the same line end in all rows, or \
             quote the field",
        ),
        (
            "k,v\n-1,2\n",
            "row 1, column \"k\": \"-1\" does not fit u64 (0 to 18446744073709551615): choose another type with \
             --key-type",
        ),
        (
            "k,v\n1,18446744073709551616\n",
            "row 1, column \"v\": \"18446744073709551616\" does not fit u64 (0 to 18446744073709551615): choose \
             another type with --value-type",
        ),
        ("k,v\n1,\"2\n", "row 1: missing closing quote: add it"),
        ("k,\"v\n1,2\n", "row 1: missing closing quote: add it"),
        (
            "k,v\n1,2\"3\n",
            "row 1, field 2: a quote inside an unquoted field: quote the field, and double the \
             quotes in it",
        ),
        (
            "k,v\n1,2\n\"3\"4,5\n",
            "row 2, field 1: text after the closing quote: quote the field, and double the quotes in it",
        ),
        ("\u{feff}", "it is empty, but a header line is expected"),
    ] {
        refused(csv(text, &plain()), &format!("standard input: {problem}"));
    }
    refused(csv(b"\xff\xfek\0", &plain()), "standard input: it is UTF-16: convert it to UTF-8");
    assert!(csv(b"k\xff,v\n", &plain()).is_err());
    refused(
        csv("k,v\n1,2\n4294967296,2\n", &keyed(KeyType::U32)),
        "standard input: row 2, column \"k\": \"4294967296\" does not fit u32 (0 to 4294967295): choose another \
         type with --key-type",
    );
    refused(
        csv("k,v\n1,1e999\n", &valued(ValueType::F64)),
        "standard input: row 1, column \"v\": \"1e999\" does not fit f64: choose another type with --value-type",
    );
    refused(
        csv("k,v\n1,x\n", &valued(ValueType::F32)),
        "standard input: row 1, column \"v\": not a number: \"x\": correct it, or choose another column or \
         --value-type",
    );
}

#[test]
fn csv_rows_across_blocks() {
    // Several blocks of 2 MiB, with a quoted line break now and then, and a long row.
    let mut text = String::from("k,t,v\n");
    let mut expected = (Vec::new(), Vec::new());
    for row in 0..200_000_u64 {
        let (key, value) = (row.wrapping_mul(0x9e37_79b9_7f4a_7c15), row * row);
        let filler = if row % 1000 == 7 { "\"a\n,b\"" } else { "some text to skip over" };
        text.push_str(&format!("{key},{filler},{value}\n"));
        expected.0.push(key);
        expected.1.push(value);
    }
    text.push_str(&format!("1,\"{}\",2", "\n,long".repeat(1 << 20)));
    expected.0.push(1);
    expected.1.push(2);
    let options = InputOptions { value: Some("v".to_owned()), ..plain() };
    let read = file("t.csv", text.as_bytes(), &options).expect("reads");
    assert_eq!((read.keys, read.values), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// The csv crate reads the accepted text, and finds the same numbers in it.
    #[test]
    fn csv_agrees_with_another_parser(
        rows in proptest::collection::vec((any::<u64>(), any::<i32>(), "[a-z\", \n]{0,6}", 0..16_u8), 0..40),
    ) {
        let mut text = String::from("k,t,v\n");
        for (key, value, filler, style) in &rows {
            let quoted = filler.replace('"', "\"\"");
            let is_quoted = style & 1 == 0 || filler.contains(['"', ',', '\n']);
            let quoted = if is_quoted { format!("\"{quoted}\"") } else { quoted };
            let key = if style & 2 == 0 { format!("\"{key}\"") } else { format!("{key}") };
            let end = if style & 4 == 0 { "\r\n" } else { "\n" };
            let blank = if style & 8 == 0 { "\n" } else { "" };
            text.push_str(&format!("{key},{quoted},{value}{end}{blank}"));
        }
        let options = InputOptions { value: Some("v".to_owned()), ..valued(ValueType::I32) };
        let read = csv(&text, &options).expect("reads");
        let mut other = csv::Reader::from_reader(text.as_bytes());
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for record in other.records() {
            let record = record.expect("reads");
            keys.push(record[0].parse::<u64>().expect("is a number"));
            values.push(u64::from(record[2].parse::<i32>().expect("is a number").cast_unsigned()));
        }
        prop_assert_eq!((read.keys, read.values), (keys, values));
    }

    /// Fast and slow rows agree for all contents: quoting a field changes nothing.
    #[test]
    fn csv_fast_and_slow_rows_agree(
        fields in proptest::collection::vec("[-+ \t0-9.eNa]{0,22}", 1..6),
        kind in 0..9_usize,
        key_kind in 0..9_usize,
    ) {
        let strings = [ValueType::Fixed(2), ValueType::Bytes, ValueType::Utf8];
        let value_types = [&ValueType::NUMERIC[1..], &strings].concat();
        let key_types = [KeyType::NUMERIC, &[KeyType::Fixed(2), KeyType::Bytes, KeyType::Utf8]].concat();
        let text = |read: Result<Read64, SourceError>| match read {
            Ok(read) => format!("{read:?}"),
            Err(error) => error.to_string(),
        };
        let with = |name: &str, row: &dyn Fn(&str) -> String| -> String {
            format!("{name}\n{}", fields.iter().map(|field| row(field)).collect::<String>())
        };
        let options = valued(value_types[kind]);
        let plain_text = with("k,v", &|f| format!("7,{f}\n"));
        prop_assert_eq!(text(csv(plain_text, &options)), text(csv(with("k,v", &|f| format!("7,\"{f}\"\n")), &options)));
        let options = keyed(key_types[key_kind]);
        let plain_text = with("k,v", &|f| format!("{f},7\n"));
        prop_assert_eq!(text(csv(plain_text, &options)), text(csv(with("k,v", &|f| format!("\"{f}\",7\n")), &options)));
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), format in 0..6_usize) {
        let format = [Format::Csv, Format::Tsv, Format::Parquet, Format::Arrow, Format::Npy, Format::Raw][format];
        let options = InputOptions {
            raw: (format == Format::Raw).then_some((KeyType::U32, ValueType::F64)),
            no_header: bytes.len() % 2 == 0,
            ..plain()
        };
        let _ = stream(&bytes, format, &options);
    }

    #[test]
    fn random_text_never_panics(text in "[0-9,\"\r\n\t a-]{0,200}", tabs in any::<bool>()) {
        let format = if tabs { Format::Tsv } else { Format::Csv };
        let _ = stream(text.as_bytes(), format, &plain());
        let _ = stream(text.as_bytes(), format, &InputOptions { no_header: true, ..valued(ValueType::F32) });
        let _ = stream(text.as_bytes(), format, &InputOptions { no_header: true, ..keyed(KeyType::Utf8) });
    }

    #[test]
    fn damaged_tables_never_panic(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 0..4),
        cut in any::<prop::sample::Index>(),
        kind in 0..4_usize,
        key in 0..3_usize,
    ) {
        let dictionary: DictionaryArray<Int8Type> = vec!["a", "b", "a"].into_iter().collect();
        let table = batch(vec![
            ("k", Arc::new(Int64Array::from(vec![1, 2, 3]))),
            ("v", Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0]))),
            ("d", Arc::new(dictionary)),
        ]);
        let (format, mut bytes) = match kind {
            0 => (Format::Parquet, parquet_bytes(&table, Compression::SNAPPY)),
            1 => (Format::Arrow, arrow_file(&[table])),
            2 => (Format::Arrow, arrow_stream(&[table], None)),
            _ => (Format::Npy, npy("<u8", "(3, 2)", &[1; 48])),
        };
        if flips.is_empty() {
            bytes.truncate(cut.index(bytes.len()));
        }
        for (index, flip) in flips {
            let at = index.index(bytes.len());
            bytes[at] ^= flip;
        }
        let folder = tempfile::tempdir().expect("makes a folder");
        let path = save(folder.path(), "t", &bytes);
        let options = InputOptions { format: Some(format), key: Some(key.to_string()), ..plain() };
        let _ = open(&[path], &options).and_then(|mut source| drain_any(&mut *source));
        let _ = open_stream("s", Box::new(Cursor::new(bytes)), &options).and_then(|mut source| drain_any(&mut *source));
    }
}

fn drain_any(source: &mut dyn Source) -> Result<(), SourceError> {
    let mut chunk = Chunk::default();
    loop {
        source.next_chunk(&mut chunk, 100)?;
        if chunk.is_empty() {
            return Ok(());
        }
    }
}

// ------------------------------------------------------------------------------ Parquet and Arrow

#[test]
fn typed_integers_keep_their_types() {
    macro_rules! check {
        ($($array:ident $t:ty => $key:ident as $wide:ty, $value:ident;)*) => {$(
            let numbers: Vec<$t> = vec![<$t>::MIN, 0, 1, 7, <$t>::MAX];
            let table = batch(vec![
                ("id", Arc::new($array::from(numbers.clone()))),
                ("n", Arc::new($array::from(numbers.clone()))),
            ]);
            let read = typed(&table, &plain()).expect("reads");
            assert_eq!(read.schema, Schema {
                key_type: KeyType::$key,
                value_type: ValueType::$value,
                key_name: "id".into(),
                value_name: "n".into(),
                key_logical: String::new(),
                value_logical: String::new(),
                rows: Some(5),
                ..Schema::plain(KeyType::$key, ValueType::$value, None)
            });
            let keys: Vec<u64> = numbers.iter().map(|&n| u64::from(<$wide>::from(n).encode())).collect();
            assert_eq!(read.keys, keys);
            let bits: Vec<u64> =
                numbers.iter().map(|&n| u64::from(pleach_format::Value::to_bits(<$wide>::from(n)))).collect();
            assert_eq!(read.values, bits);
        )*};
    }
    check! {
        UInt8Array u8 => U32 as u32, U32;
        UInt16Array u16 => U32 as u32, U32;
        UInt32Array u32 => U32 as u32, U32;
        UInt64Array u64 => U64 as u64, U64;
        Int8Array i8 => I32 as i32, I32;
        Int16Array i16 => I32 as i32, I32;
        Int32Array i32 => I32 as i32, I32;
        Int64Array i64 => I64 as i64, I64;
    }
}

#[test]
fn typed_floats() {
    let table = batch(vec![
        ("id", Arc::new(UInt64Array::from(vec![1, 2]))),
        ("x", Arc::new(Float32Array::from(vec![1.5, f32::NAN]))),
        ("y", Arc::new(Float64Array::from(vec![0.1, 2.0]))),
        ("w", Arc::new(Float64Array::from(vec![8.0, 9.0]))),
    ]);
    let read = typed(&table, &plain()).expect("reads");
    assert_eq!(read.schema.value_type, ValueType::F32);
    assert_eq!(read.values, [u64::from(1.5_f32.to_bits()), u64::from(f32::NAN.to_bits())]);
    let y = InputOptions { value: Some("y".into()), ..plain() };
    assert_eq!(typed(&table, &y).expect("reads").values, [0.1_f64.to_bits(), 2_f64.to_bits()]);
    let narrow = InputOptions { value_type: Some(ValueType::F32), ..y };
    refused(
        typed(&table, &narrow),
        "t.parquet: row 1, column \"y\": 0.1 does not fit f32: choose another type with --value-type",
    );
    let key = InputOptions { key: Some("w".into()), ..plain() };
    let read = typed(&table, &key).expect("reads");
    assert_eq!((read.schema.key_type, read.keys), (KeyType::F64, vec![8_f64.encode(), 9_f64.encode()]));
    let whole = InputOptions { key_type: Some(KeyType::U32), ..key };
    assert_eq!(typed(&table, &whole).expect("reads").keys, [8, 9]);
}

#[test]
fn typed_logical_types_are_kept() {
    let key: ArrayRef = Arc::new(Date32Array::from(vec![-1, 19_000]));
    let values: Vec<(ArrayRef, ValueType, &str, [u64; 2])> = vec![
        (Arc::new(Date32Array::from(vec![5, 6])), ValueType::I32, "Date32", [5, 6]),
        (Arc::new(Date64Array::from(vec![5, 6])), ValueType::I64, "Date64", [5, 6]),
        (Arc::new(Time32SecondArray::from(vec![5, 6])), ValueType::I32, "Time32(Second)", [5, 6]),
        (Arc::new(Time64MicrosecondArray::from(vec![5, 6])), ValueType::I64, "Time64(Microsecond)", [5, 6]),
        (Arc::new(DurationNanosecondArray::from(vec![5, 6])), ValueType::I64, "Duration(Nanosecond)", [5, 6]),
        (
            Arc::new(TimestampMillisecondArray::from(vec![5, -1])),
            ValueType::I64,
            "Timestamp(Millisecond, None)",
            [5, u64::MAX],
        ),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![5, 6]).with_timezone("Europe/Berlin")),
            ValueType::I64,
            "Timestamp(Microsecond, Some(\"Europe/Berlin\"))",
            [5, 6],
        ),
        (
            Arc::new(Decimal128Array::from(vec![1234, -1]).with_precision_and_scale(15, 2).expect("is one")),
            ValueType::I64,
            "Decimal128(15, 2)",
            [1234, u64::MAX],
        ),
        (
            Arc::new(Decimal64Array::from(vec![1234, 1]).with_precision_and_scale(15, 2).expect("is one")),
            ValueType::I64,
            "Decimal64(15, 2)",
            [1234, 1],
        ),
    ];
    for (array, value_type, logical, bits) in values {
        let table = batch(vec![("day", key.clone()), ("v", array)]);
        let read = typed(&table, &plain()).expect("reads");
        assert_eq!((read.schema.key_type, read.schema.key_logical.as_str()), (KeyType::I32, "Date32"));
        assert_eq!((read.schema.value_type, read.schema.value_logical.as_str()), (value_type, logical));
        assert_eq!(read.values, bits);
        // A type of one's choice gives plain numbers.
        let plain_numbers = InputOptions { key_type: Some(KeyType::I64), ..plain() };
        let read = typed(&table, &plain_numbers).expect("reads");
        assert_eq!((read.keys[0], read.schema.key_logical.as_str()), ((-1_i64).encode(), ""));
    }
}

#[test]
fn typed_decimals_have_limits() {
    let large = Decimal128Array::from(vec![1, i128::from(i64::MAX) + 1]).with_precision_and_scale(38, 0);
    let cents = Decimal128Array::from(vec![1234, 5]).with_precision_and_scale(15, 2);
    let table = batch(vec![
        ("k", Arc::new(UInt32Array::from(vec![1, 2]))),
        ("large", Arc::new(large.expect("is one"))),
        ("cents", Arc::new(cents.expect("is one"))),
    ]);
    refused(
        typed(&table, &plain()),
        "t.parquet: row 2, column \"large\": 9223372036854775808 does not fit i64 (-9223372036854775808 to \
         9223372036854775807): choose another type with --value-type",
    );
    assert_eq!(typed(&table, &valued(ValueType::U64)).expect("reads").values, [1, 1 << 63]);
    let cents = InputOptions { value: Some("cents".into()), ..valued(ValueType::F64) };
    refused(
        typed(&table, &cents),
        "t.parquet: column \"cents\": wrong type: Decimal128(15, 2) can become i64, not f64: choose one of these with \
         --value-type, or another column",
    );
}

#[test]
fn typed_dictionaries_decode() {
    let keys = Int8Array::from(vec![0, 1, 0, 2]);
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![100, -200, 300]));
    let table = batch(vec![
        ("id", Arc::new(DictionaryArray::new(keys, ids))),
        ("n", Arc::new(UInt16Array::from(vec![1, 2, 3, 4]))),
    ]);
    let read = typed(&table, &plain()).expect("reads");
    assert_eq!(read.schema.key_type, KeyType::I64);
    assert_eq!(read.keys, [100_i64, -200, 100, 300].map(Key::encode));
    // A null that is in the dictionary and not in the keys.
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(100), None]));
    let table = batch(vec![("id", Arc::new(DictionaryArray::new(Int8Array::from(vec![0, 1]), ids)))]);
    refused(
        file("t.arrow", &arrow_file(&[table]), &plain()),
        "t.arrow: row 2, column \"id\": it is null: leave such rows out with --nulls skip, fill values in with \
         --nulls default=V, or choose another column",
    );
}

#[test]
fn typed_refusals() {
    let table = batch(vec![
        ("id", Arc::new(Int64Array::from(vec![Some(1), Some(-5), None]))),
        ("name", Arc::new(StringArray::from(vec!["a", "b", "c"]))),
        ("n", Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]))),
        ("flag", Arc::new(BooleanArray::from(vec![true, false, true]))),
        ("span", Arc::new(IntervalYearMonthArray::from(vec![1, 2, 3]))),
        ("m", Arc::new(Int32Array::from(vec![1, 2, 3]))),
    ]);
    let held = "integers (8 to 64 bits), floats (32 or 64 bits), dates, times, timestamps, durations, decimals, \
                booleans, texts or binary strings";
    let options =
        |key: &str, value: &str| InputOptions { key: Some(key.into()), value: Some(value.into()), ..plain() };
    refused(
        typed(&table, &options("m", "span")),
        &format!(
            "t.parquet: column \"span\": wrong type: it holds Interval(YearMonth), but values are {held}: choose \
             another column with --value, or --value-type none"
        ),
    );
    refused(
        typed(&table, &options("span", "m")),
        &format!(
            "t.parquet: column \"span\": wrong type: it holds Interval(YearMonth), but keys are {held}: choose \
             another column with --key"
        ),
    );
    refused(
        typed(&table, &options("flag", "m")),
        "t.parquet: column \"flag\": wrong type: keys cannot be booleans: choose another column with --key, or \
         --key-type u32 for 1 and 0",
    );
    refused(
        typed(&table, &options("m", "n")),
        "t.parquet: row 2, column \"n\": it is null: leave such rows out with --nulls skip, fill values in with \
         --nulls default=V, or choose another column",
    );
    refused(
        typed(&table, &options("id", "m")),
        "t.parquet: row 3, column \"id\": it is null: leave such rows out with --nulls skip, fill values in with \
         --nulls default=V, or choose another column",
    );
    let table = batch(vec![("id", Arc::new(Int64Array::from(vec![1, 2, -5])))]);
    refused(
        typed(&table, &keyed(KeyType::U64)),
        "t.parquet: row 3, column \"id\": -5 does not fit u64 (0 to 18446744073709551615): choose another type with \
         --key-type",
    );
    refused(
        typed(&table, &InputOptions { value: Some("x".into()), ..plain() }),
        "t.parquet: no column \"x\": the columns are \"id\"",
    );
}

#[test]
fn typed_columns_in_any_order_and_number() {
    let columns: Vec<(String, ArrayRef)> = (0..6_u64)
        .map(|column| {
            let numbers: Vec<u64> = (0..5000).map(|row| row * 10 + column).collect();
            (format!("c{column}"), Arc::new(UInt64Array::from(numbers)) as ArrayRef)
        })
        .collect();
    let table = batch(columns.iter().map(|(name, array)| (name.as_str(), array.clone())).collect());
    for (key, value) in [(0, 5), (5, 0), (3, 3), (4, 2)] {
        let options =
            InputOptions { key: Some(format!("c{key}")), value: Some(value.to_string()), ..plain() };
        let read = typed(&table, &options).expect("reads");
        assert_eq!(read.keys, (0..5000).map(|row| row * 10 + key).collect::<Vec<_>>());
        assert_eq!(read.values, (0..5000).map(|row| row * 10 + value).collect::<Vec<_>>());
    }
}

#[test]
fn parquet_codecs() {
    let numbers: Vec<u64> = (0..3000).map(|row| row / 3).collect();
    let table = batch(vec![("k", Arc::new(UInt64Array::from(numbers.clone())))]);
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
    ] {
        let bytes = parquet_bytes(&table, compression);
        assert_eq!(file("t.parquet", &bytes, &plain()).expect("reads").keys, numbers, "{compression}");
        assert_eq!(stream(&bytes, Format::Parquet, &plain()).expect("reads").keys, numbers);
    }
}

#[test]
fn arrow_streams_and_batches() {
    let part = |from: u32, to: u32| batch(vec![("k", Arc::new(UInt32Array::from_iter_values(from..to)))]);
    let batches = [part(0, 10), part(10, 10), part(10, 3000), part(3000, 3001)];
    let expected: Vec<u64> = (0..3001).collect();
    let as_file = arrow_file(&batches);
    let read = file("t.arrow", &as_file, &plain()).expect("reads");
    assert_eq!((read.keys, read.schema.rows), (expected.clone(), Some(3001)));
    // A file through a pipe, and a stream in a file.
    assert_eq!(stream(&as_file, Format::Arrow, &plain()).expect("reads").keys, expected);
    for compression in
        [None, Some(arrow_ipc::CompressionType::LZ4_FRAME), Some(arrow_ipc::CompressionType::ZSTD)]
    {
        let as_stream = arrow_stream(&batches, compression);
        assert_eq!(stream(&as_stream, Format::Arrow, &plain()).expect("reads").keys, expected);
        assert_eq!(file("t.arrows", &as_stream, &plain()).expect("reads").keys, expected);
    }
    let empty = arrow_stream(&[part(0, 0)], None);
    assert!(stream(&empty, Format::Arrow, &plain()).expect("reads").keys.is_empty());
    assert!(file("t.arrow", &arrow_file(&[part(0, 0)]), &plain()).expect("reads").keys.is_empty());
    // Every truncation is an error, never fewer rows. A stream may end after any of its messages.
    for length in 0..as_file.len() {
        assert!(file("t.arrow", &as_file[..length], &plain()).is_err() || length < 8, "{length}");
    }
    assert!(file("t.arrow", b"", &plain()).is_err());
    let mut tail = arrow_stream(&batches, None);
    tail.extend_from_slice(b"tail");
    assert!(stream(&tail, Format::Arrow, &plain()).is_err());
}

#[test]
fn foreign_bytes_are_refused() {
    for (name, text) in [
        ("t.parquet", "not a readable Parquet file"),
        ("t.arrow", "not a readable Arrow file or stream"),
        ("t.npy", "not a NumPy array: check the format of the file"),
    ] {
        let error = file(name, b"id,n\n1,2\n3,4\n", &plain()).expect_err("is foreign");
        assert!(error.to_string().starts_with(&format!("{name}: {text}")), "{error}");
    }
}

// --------------------------------------------------------------------------------------- NumPy, raw

fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let descr = if descr.starts_with('[') { descr.to_owned() } else { format!("'{descr}'") };
    npy_of(1, &format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"), data)
}

fn npy_of(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend_from_slice(&[version, 0]);
    let length = (header.len() + 1).next_multiple_of(64);
    if version == 1 {
        bytes.extend_from_slice(&u16::try_from(length).expect("is short").to_le_bytes());
    } else {
        bytes.extend_from_slice(&u32::try_from(length).expect("is short").to_le_bytes());
    }
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + length - header.len() - 1, b' ');
    bytes.push(b'\n');
    bytes.extend_from_slice(data);
    bytes
}

fn both(name: &str, format: Format, bytes: &[u8], options: &InputOptions) -> Result<Read64, SourceError> {
    match (file(name, bytes, options), stream(bytes, format, options)) {
        (Ok(file), Ok(stream)) => {
            assert_eq!(file, Read64 { schema: file.schema.clone(), ..stream });
            Ok(file)
        }
        (Err(file), Err(_)) => Err(file),
        (file, stream) => panic!("{file:?} but {stream:?}"),
    }
}

#[test]
fn npy_numbers_in_both_byte_orders() {
    macro_rules! check {
        ($($t:ty, $descr:literal => $key:ident as $wide:ty;)*) => {$(
            let numbers: Vec<$t> = vec![<$t>::MIN, 0, 1, <$t>::MAX, 100];
            let keys: Vec<u64> = numbers.iter().map(|&n| u64::from(<$wide>::from(n).encode())).collect();
            let little: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
            let big: Vec<u8> = numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
            for (order, data) in [('<', little), ('>', big)] {
                let bytes = npy(&format!("{order}{}", $descr), "(5,)", &data);
                let read = both("t.npy", Format::Npy, &bytes, &plain()).expect("reads");
                assert_eq!((read.schema.key_type, read.schema.value_type), (KeyType::$key, ValueType::None));
                assert_eq!((read.schema.key_name.as_str(), read.schema.rows), ("key", Some(5)));
                assert_eq!(read.keys, keys);
            }
        )*};
    }
    check! {
        u8, "u1" => U32 as u32; u16, "u2" => U32 as u32; u32, "u4" => U32 as u32; u64, "u8" => U64 as u64;
        i8, "i1" => I32 as i32; i16, "i2" => I32 as i32; i32, "i4" => I32 as i32; i64, "i8" => I64 as i64;
    }
}

#[test]
fn npy_shapes_and_fields() {
    let numbers: Vec<u8> = (0..6_u64).flat_map(u64::to_le_bytes).collect();
    let read = both("t.npy", Format::Npy, &npy("<u8", "(3, 2)", &numbers), &plain()).expect("reads");
    assert_eq!((read.keys, read.values), (vec![0, 2, 4], vec![1, 3, 5]));
    assert_eq!((read.schema.key_name.as_str(), read.schema.value_name.as_str()), ("key", "value"));
    let swapped = InputOptions { key: Some("2".into()), value: Some("0".into()), ..plain() };
    let read = both("t.npy", Format::Npy, &npy("<u8", "(2, 3)", &numbers), &swapped).expect("reads");
    assert_eq!((read.keys, read.values), (vec![2, 5], vec![0, 3]));
    let read = both("t.npy", Format::Npy, &npy("<u8", "(6, 1)", &numbers), &plain()).expect("reads");
    assert_eq!(read.keys.len(), 6);
    assert!(both("t.npy", Format::Npy, &npy("<u8", "(0,)", &[]), &plain()).expect("reads").keys.is_empty());
    // Structured, of versions 2 and 3, unaligned, one field big-endian.
    let mut data = Vec::new();
    for row in 0..1000_u32 {
        data.push(7);
        data.extend_from_slice(&(row * 3).to_le_bytes());
        data.extend_from_slice(&(f64::from(row) / 2.0).to_be_bytes());
    }
    for version in [2, 3] {
        let descr = "[('pad', '|u1'), ('id', '<u4'), ('x', '>f8')]";
        let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (1000,), }}");
        let bytes = npy_of(version, &header, &data);
        let options = InputOptions { key: Some("id".into()), value: Some("x".into()), ..plain() };
        let read = both("t.npy", Format::Npy, &bytes, &options).expect("reads");
        assert_eq!((read.schema.key_type, read.schema.value_type), (KeyType::U32, ValueType::F64));
        assert_eq!((read.schema.key_name.as_str(), read.schema.value_name.as_str()), ("id", "x"));
        assert_eq!(read.keys, (0..1000).map(|row| row * 3).collect::<Vec<u64>>());
        assert_eq!(read.values[999], 499.5_f64.to_bits());
    }
    let times: Vec<u8> = [5_i64, -1].iter().flat_map(|n| n.to_le_bytes()).collect();
    let read = both("t.npy", Format::Npy, &npy("<M8[us]", "(2,)", &times), &plain()).expect("reads");
    assert_eq!(read.schema.key_logical, "Timestamp(Microsecond, None)");
    let times: Vec<u8> = [5_i64, i64::MIN].iter().flat_map(|n| n.to_le_bytes()).collect();
    refused(
        both("t.npy", Format::Npy, &npy("<M8[us]", "(2,)", &times), &plain()),
        "t.npy: row 2, column 0: it is null (NaT): fill or drop such rows, or choose another column",
    );
}

#[test]
fn npy_refusals() {
    let numbers: Vec<u8> = (0..6_u64).flat_map(u64::to_le_bytes).collect();
    for (bytes, problem) in [
        (
            npy("<u8", "(7,)", &numbers),
            "its header declares 7 rows (56 bytes), but 48 bytes follow: it is truncated",
        ),
        (npy("<u8", "(5,)", &numbers), "more bytes follow its 5 rows: cut them off"),
        (
            npy_of(1, "{'descr': '<u8', 'fortran_order': True, 'shape': (4, 2)}", &numbers),
            "its header declares 4 rows (64 bytes), but 48 bytes follow: it is truncated",
        ),
        (
            npy("<u8", "(1, 3, 2)", &numbers),
            "its shape is (1, 3, 2): one or two dimensions are supported, one if it is structured",
        ),
        (npy("|O", "(6,)", &numbers), "it holds Python objects: save numbers"),
        (
            npy("<f2", "(24,)", &numbers),
            "column 0: wrong type: it holds <f2, but keys are integers (8 to 64 bits), floats (32 or 64 bits), dates, \
             times, timestamps, durations, decimals, booleans, texts or binary strings: choose another column \
             with --key",
        ),
        (b"\x93NUMPY\x01\x00\xff".to_vec(), "it ends inside the header of a NumPy array: it is truncated"),
        (
            b"\x93NUMPY\x09\x00\xff".to_vec(),
            "it is a NumPy array of version 9: versions 1 to 3 are supported",
        ),
        (
            npy_of(1, "{'descr': '<u8'}", &numbers),
            "invalid NumPy header (missing 'fortran_order'): write it again",
        ),
    ] {
        refused(file("t.npy", &bytes, &plain()), &format!("t.npy: {problem}"));
        assert!(stream(&bytes, Format::Npy, &plain()).is_err());
    }
    refused(
        stream(&npy("<u8", "(7,)", &numbers), Format::Npy, &plain()),
        "standard input: it ends after 6 of 7 rows: it is truncated",
    );
}

#[test]
fn raw_of_all_types() {
    let key_types = [KeyType::NUMERIC, &[KeyType::Fixed(3), KeyType::Fixed(16)]].concat();
    let value_types = [ValueType::NUMERIC, &[ValueType::Fixed(1), ValueType::Fixed(9)]].concat();
    for &key_type in &key_types {
        for &value_type in &value_types {
            let options = InputOptions { raw: Some((key_type, value_type)), ..plain() };
            // Enough rows for several pieces and, in one case, several reads.
            let rows = if key_type == KeyType::U64 && value_type == ValueType::U64 { 300_001 } else { 3001 };
            let mut bytes = Vec::new();
            let (mut keys, mut wide_keys, mut key_strings) = (Vec::new(), Vec::new(), Vec::new());
            let (mut values, mut value_strings) = (Vec::new(), Vec::new());
            for row in 0..rows {
                let (key, value) = (hash(row), hash(row + 1_000_000));
                let wide = u128::from(key) << 64 | u128::from(value);
                let narrow = u32::try_from(key >> 32).expect("is narrow");
                let key_bytes = match key_type {
                    KeyType::U32 | KeyType::I32 => narrow.to_le_bytes().to_vec(),
                    KeyType::F64 => (key.cast_signed() as f64).to_le_bytes().to_vec(),
                    KeyType::U64 | KeyType::I64 => key.to_le_bytes().to_vec(),
                    _ => wide.to_le_bytes()[..key_type.bytes()].to_vec(),
                };
                match key_type {
                    KeyType::U32 => keys.push(narrow.into()),
                    KeyType::I32 => keys.push((narrow ^ (1 << 31)).into()),
                    KeyType::U64 => keys.push(key),
                    KeyType::I64 => keys.push(key ^ (1 << 63)),
                    KeyType::F64 => keys.push((key.cast_signed() as f64).encode()),
                    KeyType::U128 => wide_keys.push(wide),
                    _ => key_strings.push(key_bytes.clone()),
                }
                let value_bytes = wide.to_le_bytes()[..value_type.bytes()].to_vec();
                match value_type {
                    ValueType::None => {}
                    ValueType::Fixed(_) => value_strings.push(value_bytes.clone()),
                    _ => values.push(if value_bytes.len() == 4 { value & 0xffff_ffff } else { value }),
                }
                bytes.extend(key_bytes);
                bytes.extend(value_bytes);
            }
            let read = both("t.anything.raw", Format::Raw, &bytes, &options).expect("reads");
            assert_eq!((read.schema.key_type, read.schema.value_type), (key_type, value_type));
            assert_eq!((read.schema.rows, read.schema.key_name.as_str()), (Some(rows), "key"));
            assert_eq!((read.keys, read.values), (keys, values));
            assert_eq!((read.wide_keys, read.key_strings), (wide_keys, key_strings));
            assert_eq!(read.value_strings, value_strings);
        }
    }
}

/// A mixer, for numbers without a pattern.
fn hash(number: u64) -> u64 {
    let mixed = (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

#[test]
fn raw_options_and_refusals() {
    let raw = InputOptions { raw: Some((KeyType::U64, ValueType::U64)), ..plain() };
    let bytes: Vec<u8> = [1_u64, 2, 3, u64::MAX].iter().flat_map(|n| n.to_le_bytes()).collect();
    // Swapped columns, other types, row numbers.
    let swapped = InputOptions { key: Some("1".into()), value: Some("0".into()), ..raw.clone() };
    let read = both("t.bin", Format::Raw, &bytes, &swapped).expect("reads");
    assert_eq!((read.keys, read.values), (vec![2, u64::MAX], vec![1, 3]));
    let narrow =
        InputOptions { key_type: Some(KeyType::U32), value_type: Some(ValueType::None), ..raw.clone() };
    assert_eq!(both("t.bin", Format::Raw, &bytes, &narrow).expect("reads").keys, [1, 3]);
    let numbered = InputOptions { value: Some("@row".into()), ..raw.clone() };
    let read = both("t.bin", Format::Raw, &bytes, &numbered).expect("reads");
    assert_eq!((read.keys, read.values), (vec![1, 3], vec![0, 1]));
    let narrow = InputOptions { value_type: Some(ValueType::U32), ..raw.clone() };
    refused(
        both("t.bin", Format::Raw, &bytes, &narrow),
        "t.bin: row 2, column 1: 18446744073709551615 does not fit u32 (0 to 4294967295): choose another type with \
         --value-type",
    );
    refused(
        both("t.bin", Format::Raw, &bytes[..31], &raw),
        "t.bin: invalid length: 15 bytes are left after the last row of 16 bytes: it is truncated, or has other types",
    );
    refused(
        stream(&bytes[..31], Format::Raw, &raw),
        "standard input: invalid length: 15 bytes are left after the last row of 16 bytes: it is truncated, \
         or has other types",
    );
    refused(
        file("t.raw", &bytes, &plain()),
        "t.raw: raw tuples have no types: give them with --raw, such as u64,u64",
    );
    refused(
        file("t.raw", &bytes, &InputOptions { format: Some(Format::Csv), ..raw }),
        "t.raw: --raw and another format: give one of the two",
    );
}

// ------------------------------------------------------------------------------- strings, wide keys

/// The file that a table becomes.
fn built(name: &str, bytes: &[u8], options: &InputOptions) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("makes a folder");
    let path = save(folder.path(), name, bytes);
    let mut source = open(&[path], options).expect("opens");
    let (storage, target) = (MemoryStorage::default(), Path::new("/t.pleach"));
    build_with_storage(&mut *source, target, &BuildOptions::default(), &Silent, &storage).expect("builds");
    storage.take(target).expect("is there")
}

/// A table of two columns, key and value, in CSV and in TSV.
fn texts_of(fields: &[(&[u8], &[u8])]) -> [(&'static str, Format, Vec<u8>); 2] {
    let (mut csv, mut tsv) = (b"key,value\n".to_vec(), b"key\tvalue\n".to_vec());
    for (row, (key, value)) in fields.iter().enumerate() {
        for (field, ends) in [(key, [b',', b'\t']), (value, [b'\n', b'\n'])] {
            let special = field.iter().any(|byte| b",\"\r\n".contains(byte));
            // Now and then without need, so that fast and slow rows mix.
            let quote = if special || row % 3 == 0 { &b"\""[..] } else { b"" };
            csv.extend_from_slice(quote);
            field
                .iter()
                .for_each(|byte| csv.extend(std::iter::repeat_n(*byte, 1 + usize::from(*byte == b'"'))));
            csv.extend_from_slice(quote);
            csv.push(ends[0]);
            for &byte in *field {
                match byte {
                    b'\t' => tsv.extend_from_slice(b"\\t"),
                    b'\n' => tsv.extend_from_slice(b"\\n"),
                    b'\r' => tsv.extend_from_slice(b"\\r"),
                    b'\\' => tsv.extend_from_slice(b"\\\\"),
                    _ => tsv.push(byte),
                }
            }
            tsv.push(ends[1]);
        }
    }
    [("t.csv", Format::Csv, csv), ("t.tsv", Format::Tsv, tsv)]
}

/// One column in all the ways in which it can be written.
struct Ways {
    key_type: KeyType,
    /// True if the values equal the keys; otherwise they are row numbers.
    value_type: Option<ValueType>,
    fields: Vec<Vec<u8>>,
    arrays: Vec<ArrayRef>,
    /// Arrays of another type, which must be refused.
    others: Vec<ArrayRef>,
    npy: Vec<(&'static str, Vec<u8>)>,
    raw: Option<Vec<u8>>,
}

fn ways() -> Vec<Ways> {
    let texts = [
        "b",
        "",
        "Zürich",
        "tab\there",
        "a, comma",
        "\"q\"",
        "line\r\nbreak",
        "back\\slash\\t",
        " b ",
        "b\r",
    ];
    let text_fields: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    let dictionary: DictionaryArray<Int8Type> = texts.into_iter().collect();
    let binary: Vec<&[u8]> = vec![b"\xff", b"\0\0", b"", b"a\tb\\", b"\xfe\xff,\"", &[7; 300]];
    let threes: Vec<&[u8]> = vec![b"abc", b"\0\0\0", b"\xff\"\n", b"a\\t", b"a\0\0"];
    let wides = [17, 0, u128::MAX, 1 << 127, u128::from(u64::MAX) + 1, 12_345_678_901_234_567_890_123];
    let smalls = [17_u128, 0, 99_999_999_999_999_999_999_999_999_999_999_999_999];
    let floats = [1.5_f64, -0.0, f64::NEG_INFINITY, -2.25, 0.0, f64::INFINITY];
    let fixed = |strings: Vec<Vec<u8>>| -> ArrayRef {
        Arc::new(FixedSizeBinaryArray::try_from_iter(strings.into_iter()).expect("is one"))
    };
    let flat = |strings: &[&[u8]]| strings.concat();
    let decimal =
        |numbers: &[u128]| -> Vec<Vec<u8>> { numbers.iter().map(|n| n.to_string().into_bytes()).collect() };
    vec![
        Ways {
            key_type: KeyType::Utf8,
            value_type: Some(ValueType::Utf8),
            fields: text_fields.clone(),
            arrays: vec![
                Arc::new(StringArray::from(texts.to_vec())),
                Arc::new(LargeStringArray::from(texts.to_vec())),
                Arc::new(StringViewArray::from(texts.to_vec())),
                Arc::new(dictionary),
            ],
            others: vec![Arc::new(BinaryArray::from_iter_values(text_fields.iter()))],
            npy: vec![
                (
                    "<U20",
                    texts.iter().flat_map(|text| letters(text, 20)).flat_map(u32::to_le_bytes).collect(),
                ),
                (
                    ">U13",
                    texts.iter().flat_map(|text| letters(text, 13)).flat_map(u32::to_be_bytes).collect(),
                ),
            ],
            raw: None,
        },
        Ways {
            key_type: KeyType::Bytes,
            value_type: Some(ValueType::Bytes),
            fields: binary.iter().map(|bytes| bytes.to_vec()).collect(),
            arrays: vec![
                Arc::new(BinaryArray::from(binary.clone())),
                Arc::new(LargeBinaryArray::from(binary.clone())),
                Arc::new(BinaryViewArray::from(binary.clone())),
            ],
            others: vec![],
            npy: vec![],
            raw: None,
        },
        Ways {
            key_type: KeyType::Fixed(3),
            value_type: Some(ValueType::Fixed(3)),
            fields: threes.iter().map(|bytes| bytes.to_vec()).collect(),
            arrays: vec![fixed(threes.iter().map(|bytes| bytes.to_vec()).collect())],
            others: vec![Arc::new(BinaryArray::from(threes.clone()))],
            npy: vec![("|S3", flat(&threes)), ("|V3", flat(&threes))],
            raw: Some(flat(&threes)),
        },
        Ways {
            key_type: KeyType::U128,
            value_type: None,
            fields: decimal(&wides),
            arrays: vec![],
            others: vec![
                fixed(wides.iter().map(|wide| wide.to_be_bytes().to_vec()).collect()),
                Arc::new(StringArray::from_iter_values(wides.iter().map(u128::to_string))),
            ],
            npy: vec![("|V16", wides.iter().flat_map(|wide| wide.to_be_bytes()).collect())],
            raw: Some(wides.iter().flat_map(|wide| wide.to_le_bytes()).collect()),
        },
        Ways {
            key_type: KeyType::U128,
            value_type: None,
            fields: decimal(&smalls),
            arrays: vec![],
            others: vec![Arc::new(
                Decimal128Array::from_iter_values(smalls.iter().map(|&n| i128::try_from(n).expect("fits")))
                    .with_precision_and_scale(38, 0)
                    .expect("is one"),
            )],
            npy: vec![],
            raw: None,
        },
        Ways {
            key_type: KeyType::U128,
            value_type: None,
            fields: decimal(&[3, 0, u64::MAX.into()]),
            arrays: vec![],
            others: vec![Arc::new(UInt64Array::from(vec![3, 0, u64::MAX]))],
            npy: vec![("<u8", [3, 0, u64::MAX].into_iter().flat_map(u64::to_le_bytes).collect())],
            raw: None,
        },
        Ways {
            key_type: KeyType::F64,
            value_type: None,
            fields: floats.iter().map(|float| float.to_string().into_bytes()).collect(),
            arrays: vec![
                Arc::new(Float64Array::from(floats.to_vec())),
                Arc::new(Float32Array::from_iter_values(floats.iter().map(|&float| float as f32))),
            ],
            others: vec![],
            npy: vec![
                ("<f8", floats.iter().flat_map(|float| float.to_le_bytes()).collect()),
                (">f8", floats.iter().flat_map(|float| float.to_be_bytes()).collect()),
            ],
            raw: Some(floats.iter().flat_map(|float| float.to_le_bytes()).collect()),
        },
        Ways {
            key_type: KeyType::F64,
            value_type: None,
            fields: vec![b"-9007199254740992".to_vec(), b"3".to_vec()],
            arrays: vec![],
            others: vec![Arc::new(Int64Array::from(vec![-(1 << 53), 3]))],
            npy: vec![],
            raw: None,
        },
    ]
}

/// The code points of a text, padded as NumPy does.
fn letters(text: &str, count: usize) -> Vec<u32> {
    let mut letters: Vec<u32> = text.chars().map(u32::from).collect();
    letters.resize(count, 0);
    letters
}

#[test]
fn every_type_from_every_format() {
    for ways in ways() {
        let rows = ways.fields.len();
        let numbers: Vec<Vec<u8>> = (0..rows).map(|row| row.to_string().into_bytes()).collect();
        let value_fields = if ways.value_type.is_some() { &ways.fields } else { &numbers };
        let fields: Vec<(&[u8], &[u8])> =
            ways.fields.iter().zip(value_fields).map(|(key, value)| (&key[..], &value[..])).collect();
        let asked = InputOptions {
            key_type: Some(ways.key_type),
            value_type: Some(ways.value_type.unwrap_or(ValueType::U64)),
            ..plain()
        };
        let [(name, format, csv), (_, _, tsv)] = texts_of(&fields);
        let wanted = both(name, format, &csv, &asked).expect("reads");
        assert_eq!(wanted.rows(), rows);
        if ways.value_type.is_some() {
            assert_eq!((&wanted.key_strings, &wanted.value_strings), (&ways.fields, &ways.fields));
        }
        let file = built("t.csv", &csv, &asked);
        let read = both("t.tsv", Format::Tsv, &tsv, &asked).expect("reads");
        assert_eq!((&read, built("t.tsv", &tsv, &asked) == file), (&wanted, true));

        let counts: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..rows as u64));
        let own = ways.arrays.iter().map(|array| (array, true));
        for (array, natural) in own.chain(ways.others.iter().map(|array| (array, false))) {
            let value = if ways.value_type.is_some() { array.clone() } else { counts.clone() };
            let table = batch(vec![("key", array.clone()), ("value", value)]);
            for options in [&asked, &plain()].into_iter().take(1 + usize::from(natural)) {
                let read = typed(&table, options).unwrap_or_else(|error| panic!("{array:?}: {error}"));
                assert_eq!(Read64 { schema: wanted.schema.clone(), ..read }, wanted, "{array:?}");
                let parquet = parquet_bytes(&table, Compression::SNAPPY);
                assert!(built("t.parquet", &parquet, options) == file, "{array:?}");
                assert!(built("t.arrow", &arrow_file(std::slice::from_ref(&table)), options) == file);
            }
        }
        let keys_only = InputOptions { value_type: None, ..asked.clone() };
        for (descr, data) in &ways.npy {
            let bytes = npy(descr, &format!("({rows},)"), data);
            let read = both("t.npy", Format::Npy, &bytes, &keys_only).expect("reads");
            assert_eq!(read.schema.key_type, ways.key_type);
            assert_eq!((&read.keys, &read.wide_keys), (&wanted.keys, &wanted.wide_keys), "{descr}");
            assert_eq!(read.key_strings, wanted.key_strings, "{descr}");
            built("t.npy", &bytes, &keys_only);
            // As a field of a structure, as the value.
            if ways.value_type.is_some() {
                let mut table = Vec::new();
                for (row, record) in data.chunks(data.len() / rows).enumerate() {
                    table.push(u8::try_from(row).expect("is small"));
                    table.extend_from_slice(record);
                }
                let bytes = npy(&format!("[('n', '|u1'), ('s', '{descr}')]"), &format!("({rows},)"), &table);
                let read = both("t.npy", Format::Npy, &bytes, &plain()).expect("reads");
                assert_eq!((read.keys.len(), &read.value_strings), (rows, &wanted.value_strings), "{descr}");
            }
        }
        if let Some(data) = &ways.raw {
            let raw = InputOptions { raw: Some((ways.key_type, ValueType::None)), ..plain() };
            let read = both("t.raw", Format::Raw, data, &raw).expect("reads");
            assert_eq!((&read.keys, &read.wide_keys), (&wanted.keys, &wanted.wide_keys));
            assert_eq!(read.key_strings, wanted.key_strings);
            built("t.raw", data, &raw);
        }
    }
}

#[test]
fn strings_convert_if_they_can() {
    let both_types = |key, value| InputOptions { key_type: Some(key), value_type: Some(value), ..plain() };
    let table = batch(vec![
        ("t", Arc::new(StringArray::from(vec!["ab", "cd"]))),
        ("b", Arc::new(BinaryArray::from(vec![&b"ef"[..], b"gh"]))),
        ("f", Arc::new(FixedSizeBinaryArray::try_from_iter([b"ij", b"kl"].into_iter()).expect("is one"))),
    ]);
    for (key, value) in [("t", "b"), ("b", "t"), ("f", "f")] {
        let columns = InputOptions { key: Some(key.into()), value: Some(value.into()), ..plain() };
        let natural = typed(&table, &columns).expect("reads");
        for (key_type, value_type) in [
            (KeyType::Utf8, ValueType::Fixed(2)),
            (KeyType::Bytes, ValueType::Utf8),
            (KeyType::Fixed(2), ValueType::Bytes),
        ] {
            let options = InputOptions {
                key: columns.key.clone(),
                value: columns.value.clone(),
                ..both_types(key_type, value_type)
            };
            let read = typed(&table, &options).expect("reads");
            assert_eq!((read.schema.key_type, read.schema.value_type), (key_type, value_type));
            assert_eq!(
                (&read.key_strings, &read.value_strings),
                (&natural.key_strings, &natural.value_strings)
            );
        }
    }
    // NumPy pads bytes with zeros; they are not part of a string of variable length.
    let bytes = npy("|S4", "(3,)", b"ab\0\0\0\0\0\0a\0b\0");
    let read = both("t.npy", Format::Npy, &bytes, &plain()).expect("reads");
    assert_eq!(read.schema.key_type, KeyType::Fixed(4));
    assert_eq!(read.key_strings, [b"ab\0\0", b"\0\0\0\0", b"a\0b\0"]);
    let read = both("t.npy", Format::Npy, &bytes, &keyed(KeyType::Utf8)).expect("reads");
    assert_eq!(read.key_texts(), ["ab", "", "a\0b"]);
    let void = npy("|V4", "(3,)", b"ab\0\0\0\0\0\0a\0b\0");
    let read = both("t.npy", Format::Npy, &void, &keyed(KeyType::Bytes)).expect("reads");
    assert_eq!(read.key_strings, [b"ab\0\0", b"\0\0\0\0", b"a\0b\0"]);
    // Only a column of texts: a blank line is not a row, and an empty text is written with quotes.
    let read = csv("t\nb\n\n\"\"\n b \r\n", &keyed(KeyType::Utf8)).expect("reads");
    assert_eq!(read.key_texts(), ["b", "", " b "]);
    // Backslashes that do not begin an escape, and one at the end.
    let read = stream(b"t\nC:\\dir\\\\new\\x\\\n", Format::Tsv, &keyed(KeyType::Utf8)).expect("reads");
    assert_eq!(read.key_texts(), ["C:\\dir\\new\\x\\"]);
}

#[test]
fn strings_that_do_not_fit() {
    let held = "choose one of these with --key-type, or another column";
    let strings = |strings: Vec<&[u8]>| batch(vec![("k", Arc::new(BinaryArray::from(strings)))]);
    let texts = |texts: Vec<&str>| batch(vec![("k", Arc::new(StringArray::from(texts)))]);
    let fixed = |bytes: &'static [u8]| {
        batch(vec![(
            "k",
            Arc::new(FixedSizeBinaryArray::try_from_iter([bytes].into_iter()).expect("is one")),
        )])
    };
    let long = "x".repeat(65_536);
    let shown = "x".repeat(40);
    for (table, key_type, problem) in [
        (
            strings(vec![b"a", b"\xff"]),
            Some(KeyType::Utf8),
            "row 2, column \"k\": \"\u{fffd}\" is not valid UTF-8: choose bytes with --key-type".to_owned(),
        ),
        (
            strings(vec![b"ab", b"abc"]),
            Some(KeyType::Fixed(2)),
            "row 2, column \"k\": \"abc\" has 3 bytes and does not fit bytes2: choose another type with --key-type"
                .to_owned(),
        ),
        (
            texts(vec!["a", &long]),
            None,
            "row 2, column \"k\": it has 65536 bytes, but a key has at most 65535: shorten it, or choose another \
             column with --key"
                .to_owned(),
        ),
        (
            texts(vec!["1", "x"]),
            Some(KeyType::U128),
            "row 2, column \"k\": not a whole number: \"x\": correct it, or choose another column or --key-type"
                .to_owned(),
        ),
        (
            texts(vec!["1", ""]),
            Some(KeyType::U128),
            "row 2, column \"k\": it is an empty text, not a whole number: fill or drop such rows, or choose \
             another type with --key-type".to_owned(),
        ),
        (
            texts(vec!["340282366920938463463374607431768211456"]),
            Some(KeyType::U128),
            "row 1, column \"k\": \"340282366920938463463374607431768211456\" does not fit u128 (0 to \
             340282366920938463463374607431768211455): choose another type with --key-type"
                .to_owned(),
        ),
        (
            texts(vec!["a"]),
            Some(KeyType::U64),
            "row 1, column \"k\": not a whole number: \"a\": correct it, or choose another column or --key-type"
                .to_owned(),
        ),
        (
            texts(vec!["7", "-1"]),
            Some(KeyType::U32),
            "row 2, column \"k\": \"-1\" does not fit u32 (0 to 4294967295): choose another type with --key-type"
                .to_owned(),
        ),
        (
            strings(vec![b"a"]),
            Some(KeyType::U128),
            format!("column \"k\": wrong type: Binary can become bytesN, bytes or utf8, not u128: {held}"),
        ),
        (
            fixed(b"abc"),
            Some(KeyType::Fixed(4)),
            format!(
                "column \"k\": wrong type: FixedSizeBinary(3) can become bytes3, bytes or utf8, not bytes4: \
                 {held}"
            ),
        ),
        (
            fixed(b"0123456789abcdef"),
            Some(KeyType::F64),
            format!(
                "column \"k\": wrong type: FixedSizeBinary(16) can become u128, bytes16, bytes or utf8, not f64: {held}"
            ),
        ),
        (
            batch(vec![("k", Arc::new(Int64Array::from(vec![1])))]),
            Some(KeyType::Utf8),
            format!("column \"k\": wrong type: Int64 can become u32, u64, u128, i32, i64 or f64, not utf8: {held}"),
        ),
        (
            batch(vec![("k", Arc::new(Int64Array::from(vec![1, -1])))]),
            Some(KeyType::U128),
            "row 2, column \"k\": -1 does not fit u128 (0 to 340282366920938463463374607431768211455): choose \
             another type with --key-type"
                .to_owned(),
        ),
        (
            batch(vec![("k", Arc::new(UInt64Array::from(vec![1, (1 << 53) + 1])))]),
            Some(KeyType::F64),
            "row 2, column \"k\": 9007199254740993 does not fit f64: choose another type with --key-type".to_owned(),
        ),
        (
            batch(vec![("k", Arc::new(Float64Array::from(vec![1.0, f64::NAN])))]),
            None,
            "row 2, column \"k\": NaN cannot be a key: remove the row, or choose another column with --key".to_owned(),
        ),
        (
            batch(vec![("k", Arc::new(StringArray::from(vec![Some("a"), None])))]),
            None,
            "row 2, column \"k\": it is null: leave such rows out with --nulls skip, fill values in with \
             --nulls default=V, or choose another column".to_owned(),
        ),
    ] {
        let options = InputOptions { key_type, ..plain() };
        refused(typed(&table, &options), &format!("t.parquet: {problem}"));
    }
    let both_types = |key_type, value_type| InputOptions { value_type: Some(value_type), ..keyed(key_type) };
    for (text, options, problem) in [
        (
            &b"k,v\na,1\n\xff,2\n"[..],
            keyed(KeyType::Utf8),
            "row 2, column \"k\": \"\u{fffd}\" is not valid UTF-8: choose bytes with --key-type".to_owned(),
        ),
        (
            b"k,v\nab,1\n,2\n",
            keyed(KeyType::Fixed(2)),
            "row 2, column \"k\": \"\" has 0 bytes and does not fit bytes2: choose another type with --key-type"
                .to_owned(),
        ),
        (
            b"k,v\n1,abc\n",
            valued(ValueType::Fixed(2)),
            "row 1, column \"v\": \"abc\" has 3 bytes and does not fit bytes2: choose another type with --value-type"
                .to_owned(),
        ),
        (
            b"k,v\na,\xff\n",
            both_types(KeyType::Utf8, ValueType::Utf8),
            "row 1, column \"v\": \"\u{fffd}\" is not valid UTF-8: choose bytes with --value-type".to_owned(),
        ),
        (
            b"k,v\n1.5,1\nnan,2\n",
            keyed(KeyType::F64),
            "row 2, column \"k\": NaN cannot be a key: remove the row, or choose another column with --key".to_owned(),
        ),
        (
            b"k,v\n,1\n",
            keyed(KeyType::F64),
            "row 1, column \"k\": it is null: leave such rows out with --nulls skip, fill values in with \
             --nulls default=V, or choose another column".to_owned(),
        ),
        (
            b"k,v\n1,1\n-1,2\n",
            keyed(KeyType::U128),
            "row 2, column \"k\": \"-1\" does not fit u128 (0 to 340282366920938463463374607431768211455): choose \
             another type with --key-type"
                .to_owned(),
        ),
        (
            format!("k,v\na,1\n{long},2\n").as_bytes(),
            keyed(KeyType::Bytes),
            "row 2, column \"k\": it has 65536 bytes, but a key has at most 65535: shorten it, or choose another \
             column with --key"
                .to_owned(),
        ),
        (
            format!("k,v\n{long},2\n").as_bytes(),
            keyed(KeyType::U64),
            format!(
                "row 1, column \"k\": not a whole number: \"{shown}...\": correct it, or choose another column or \
                 --key-type"
            ),
        ),
    ] {
        refused(csv(text, &options), &format!("standard input: {problem}"));
    }
    // The longest key there is.
    assert_eq!(
        csv(format!("k\n{}\n", &long[1..]), &keyed(KeyType::Utf8)).expect("reads").key_strings[0].len(),
        65_535
    );
}

#[test]
fn npy_and_raw_strings_that_do_not_fit() {
    let doubles: Vec<u8> = [1.0, f64::NAN].iter().flat_map(|n: &f64| n.to_le_bytes()).collect();
    let nan = "row 2, column 0: NaN cannot be a key: remove the row, or choose another column with --key";
    refused(both("t.npy", Format::Npy, &npy("<f8", "(2,)", &doubles), &plain()), &format!("t.npy: {nan}"));
    let raw = |key, value| InputOptions { raw: Some((key, value)), ..plain() };
    refused(
        both("t.raw", Format::Raw, &doubles, &raw(KeyType::F64, ValueType::None)),
        &format!("t.raw: {nan}"),
    );
    for (key, value, name) in [
        (KeyType::Utf8, ValueType::U64, "utf8"),
        (KeyType::U64, ValueType::Bytes, "bytes"),
        (KeyType::U128, ValueType::Utf8, "utf8"),
    ] {
        refused(
            file("t.raw", &doubles, &raw(key, value)),
            &format!(
                "t.raw: raw tuples have a fixed length, but {name} has none: give --raw a type like \
                 bytes16, or convert \
                 it to another format"
            ),
        );
    }
    refused(
        both("t.npy", Format::Npy, &npy("|S2", "(2,)", b"ab\xffc"), &keyed(KeyType::Utf8)),
        "t.npy: row 2, column 0: \"\u{fffd}c\" is not valid UTF-8: choose bytes with --key-type",
    );
    refused(
        both("t.npy", Format::Npy, &npy("<U1", "(2,)", &[97, 0, 0, 0, 0, 0, 0x11, 0]), &plain()),
        "t.npy: row 2, column 0: 0x110000 is not a character: it is damaged, or has another type",
    );
    refused(
        both("t.npy", Format::Npy, &npy("|S2", "(2,)", b"abcd"), &keyed(KeyType::Fixed(3))),
        "t.npy: column 0: wrong type: |S2 can become bytes2, bytes or utf8, not bytes3: choose one of these with \
         --key-type, or another column",
    );
    let swapped =
        InputOptions { key: Some("1".into()), value: Some("0".into()), ..raw(KeyType::U128, ValueType::U64) };
    let mut bytes = 5_u128.to_le_bytes().to_vec();
    bytes.extend(6_u64.to_le_bytes());
    refused(
        both("t.raw", Format::Raw, &bytes, &swapped),
        "t.raw: column 0: wrong type: it holds u128, which is not a type of values: choose u32, u64, i32, i64, f32 or \
         f64 with --value-type, or another column",
    );
    let narrow = InputOptions { value_type: Some(ValueType::U32), ..swapped };
    let read = both("t.raw", Format::Raw, &bytes, &narrow).expect("reads");
    assert_eq!((read.keys, read.values), (vec![6], vec![5]));
    let options = InputOptions { value: Some("@row".into()), ..valued(ValueType::Utf8) };
    refused(
        csv("k\n1\n", &options),
        "input: row numbers cannot be utf8: choose a numeric type with --value-type",
    );
}

/// Long strings fill a chunk before it has its maximum number of tuples, in every format.
#[test]
fn chunks_of_long_strings_are_short() {
    let text = "0123456789".repeat(6000);
    let rows = 2000;
    let dictionary: DictionaryArray<Int8Type> = std::iter::repeat_n(text.as_str(), rows).collect();
    let plain_texts = StringArray::from_iter_values(std::iter::repeat_n(text.as_str(), 300));
    let fixed =
        FixedSizeBinaryArray::try_from_iter(std::iter::repeat_n(text.as_bytes(), 300)).expect("is one");
    let dictionary = batch(vec![("k", Arc::new(dictionary))]);
    let plain_texts = batch(vec![("k", Arc::new(plain_texts))]);
    let fixed = batch(vec![("k", Arc::new(fixed))]);
    let folder = tempfile::tempdir().expect("makes a folder");
    let csv = format!("k\n{}", format!("{text}\n").repeat(300));
    for (name, bytes, rows) in [
        ("d.parquet", parquet_bytes(&dictionary, Compression::UNCOMPRESSED), rows),
        ("d.arrow", arrow_file(&[dictionary]), rows),
        ("p.parquet", parquet_bytes(&plain_texts, Compression::UNCOMPRESSED), 300),
        ("p.arrow", arrow_file(&[plain_texts]), 300),
        ("f.parquet", parquet_bytes(&fixed, Compression::UNCOMPRESSED), 300),
        ("f.arrow", arrow_file(&[fixed]), 300),
        ("t.csv", csv.into_bytes(), 300),
        ("t.npy", npy("|S60000", "(300,)", text.repeat(300).as_bytes()), 300),
    ] {
        let path = save(folder.path(), name, &bytes);
        let options = keyed(KeyType::Utf8);
        let mut source = open(&[path], &options).expect("opens");
        let mut chunk = Chunk::default();
        let mut read = 0;
        loop {
            source.next_chunk(&mut chunk, 1 << 20).expect("reads");
            if chunk.is_empty() {
                break;
            }
            let Column::Bytes(strings) = &chunk.keys else { panic!("no strings") };
            assert!(strings.data_bytes() <= 10 << 20, "{name}: {} bytes", strings.data_bytes());
            assert!(strings.iter().all(|string| string == text.as_bytes()));
            read += chunk.len();
        }
        assert_eq!(read, rows, "{name}");
    }
}

// --------------------------------------------------------------------------------- several inputs

#[test]
fn inputs_are_concatenated_with_row_numbers() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let first = save(folder.path(), "a.csv", b"id,x\n5,1\n6,2\n");
    let second = save(folder.path(), "b.csv", b"y,x,id\n");
    let third = save(folder.path(), "c.tsv", b"id\tx\n7\t3\n");
    let inputs = [first.clone(), second, third];
    let mut source = open(&inputs, &plain()).expect("opens");
    let read = drain(&mut *source, 2).expect("reads");
    assert_eq!((&read.keys, &read.values), (&vec![5, 6, 7], &vec![1, 2, 3]));
    assert_eq!((read.schema.key_name.as_str(), read.schema.value_name.as_str()), ("id", "x"));
    for (value_type, expected) in [(None, ValueType::U64), (Some(ValueType::I32), ValueType::I32)] {
        let options = InputOptions { value: Some("@row".into()), value_type, ..plain() };
        let read = drain(&mut *open(&inputs, &options).expect("opens"), 2).expect("reads");
        assert_eq!((read.keys, read.values), (vec![5, 6, 7], vec![0, 1, 2]));
        assert_eq!((read.schema.value_type, read.schema.value_name.as_str()), (expected, "row"));
    }
    let options = InputOptions { value: Some("@row".into()), ..valued(ValueType::None) };
    assert!(drain(&mut *open(&inputs, &options).expect("opens"), 2).expect("reads").values.is_empty());

    let table =
        batch(vec![("id", Arc::new(UInt64Array::from(vec![8]))), ("x", Arc::new(Int32Array::from(vec![9])))]);
    let other = save(folder.path(), "d.parquet", &parquet_bytes(&table, Compression::SNAPPY));
    let mixed = [first.clone(), other.clone()];
    let error = open(&mixed, &plain()).err().expect("types differ");
    assert_eq!(
        error.to_string(),
        format!(
            "{}: its values are i32, but those of {} are u64: give --value-type, or build from inputs of one type",
            other.display(),
            first.display()
        )
    );
    let read = drain(&mut *open(&mixed, &valued(ValueType::U64)).expect("opens"), 9).expect("reads");
    assert_eq!((read.keys, read.values), (vec![5, 6, 8], vec![1, 2, 9]));
    let read = drain(&mut *open(&[other.clone(), other], &plain()).expect("opens"), 9).expect("reads");
    assert_eq!((read.keys, read.schema.rows), (vec![8, 8], Some(2)));
}

#[test]
fn logical_types_of_inputs_must_agree() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let millis = batch(vec![("t", Arc::new(TimestampMillisecondArray::from(vec![1])))]);
    let micros = batch(vec![("t", Arc::new(TimestampMicrosecondArray::from(vec![1])))]);
    let first = save(folder.path(), "a.arrow", &arrow_file(&[millis]));
    let second = save(folder.path(), "b.arrow", &arrow_file(&[micros]));
    let error = open(&[first.clone(), second.clone()], &plain()).err().expect("units differ");
    assert_eq!(
        error.to_string(),
        format!(
            "{}: its keys are i64 timestamp[us], but those of {} are i64 timestamp[ms]: give --key-type, or build from \
             inputs of one type",
            second.display(),
            first.display()
        )
    );
}

#[test]
fn units_are_converted_exactly_or_not_at_all() {
    use pleach_format::Logical;
    let folder = tempfile::tempdir().expect("makes a folder");
    let micros =
        batch(vec![("t", Arc::new(TimestampMicrosecondArray::from(vec![1_704_110_400_000_000, 5])))]);
    let path = save(folder.path(), "a.arrow", &arrow_file(&[micros]));
    let read = |name: Option<&str>| {
        let key_logical =
            Some(name.map_or(Logical::Plain, |name| Logical::of_name(name).expect("is a type")));
        let options = InputOptions { key_type: Some(KeyType::I64), key_logical, ..plain() };
        let opened = open(std::slice::from_ref(&path), &options).map_err(|error| error.to_string());
        opened.and_then(|mut source| drain(&mut *source, 9).map_err(|error| error.to_string()))
    };
    let nanos = read(Some("timestamp[ns]")).expect("is exact");
    assert_eq!(nanos.schema.key_logical, "Timestamp(Nanosecond, None)");
    assert_eq!(nanos.keys, [1_704_110_400_000_000_000_i64, 5000].map(Key::encode));
    let refused = |name, parts: &[&str]| {
        let error = read(name).expect_err("is refused");
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    };
    refused(Some("timestamp[ms]"), &["row 2", "1970-01-01T00:00:00.000005 is not a whole timestamp[ms]"]);
    // Another meaning, and none.
    refused(Some("timestamp[us,UTC]"), &["timestamp[us], but keys are timestamp[us,UTC]"]);
    refused(Some("decimal(10,2)"), &["timestamp[us], but keys are decimal(10,2)"]);
    refused(None, &["timestamp[us], but keys are plain i64"]);
}

#[test]
fn inputs_that_cannot_be_opened() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let path = |name: &str| folder.path().join(name);
    let text = |path: &PathBuf, options: &InputOptions| {
        let error = open(std::slice::from_ref(path), options).err().expect("is refused");
        error.to_string().replace(&folder.path().display().to_string(), "F")
    };
    assert_eq!(text(&path("no.csv"), &plain()), "F/no.csv: cannot be read: No such file or directory");
    fs::create_dir(path("d.csv")).expect("makes a folder");
    assert_eq!(
        text(&path("d.csv"), &plain()),
        "F/d.csv: the folder holds no files: name the files, or another folder"
    );
    let unknown = save(folder.path(), "t.xlsx", b"");
    assert_eq!(
        text(&unknown, &plain()),
        "F/t.xlsx: its extension is not one of .csv, .tsv, .ndjson, .parquet, .arrow, .npy, .fasta, .fastq: give the \
         format with --format"
    );
    assert_eq!(
        open(&[PathBuf::from("-")], &plain()).err().expect("is refused").to_string(),
        "standard input: unknown format: give it with --format"
    );
    assert!(open(&[], &plain()).is_err());
    assert_eq!(Format::from_path(Path::new("A.PARQUET")), Some(Format::Parquet));
    assert_eq!("npy".parse::<Format>(), Ok(Format::Npy));
    assert!("xlsx".parse::<Format>().is_err());
}

#[cfg(unix)]
#[test]
fn named_pipes_are_read_once() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let pipe = folder.path().join("p.csv");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs").success());
    let first = save(folder.path(), "a.csv", b"k\n1\n");
    let writer = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::write(pipe, b"k\n2\n3\n"))
    };
    let read = drain(&mut *open(&[first, pipe], &plain()).expect("opens"), 9).expect("reads");
    assert_eq!(read.keys, [1, 2, 3]);
    writer.join().expect("ends").expect("writes");
}
