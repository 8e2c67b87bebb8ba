//! The list of formats: what each row claims is what its reader does.

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{Field, Schema};
use pleach_builder::Chunk;
use pleach_format::{KeyType, ValueType};
use pleach_input::{FORMATS, Format, InputOptions, Types, looks_like, open, open_stream};
use std::fs;
use std::io::{Cursor, Read};
use std::sync::Arc;

/// Columns of numbers and texts as a file of a format that has such columns.
fn table(format: Format, columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("a batch");
    let mut bytes = Vec::new();
    if format == Format::Parquet {
        let mut writer =
            parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).expect("begins");
        writer.write(&batch).expect("writes");
        writer.close().expect("ends");
    } else {
        let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut bytes, &batch.schema()).expect("begins");
        writer.write(&batch).expect("writes");
        writer.finish().expect("ends");
    }
    bytes
}

fn npy(descr: &str, rows: usize, data: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({rows},)}}\n");
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend_from_slice(&u16::try_from(header.len()).expect("short").to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// A table with the columns `id` and `v`: numbers below `rows`, and ten times as much.
fn sample(format: Format, rows: u32) -> Vec<u8> {
    let pairs = (0..rows).map(|id| (id, id * 10));
    let text = |delimiter: &str| {
        let lines: String = pairs.clone().map(|(id, v)| format!("{id}{delimiter}{v}\n")).collect();
        format!("id{delimiter}v\n{lines}").into_bytes()
    };
    let words = pairs.clone().flat_map(|(id, v)| [id.to_le_bytes(), v.to_le_bytes()].concat());
    match format {
        Format::Ndjson => {
            pairs.map(|(id, v)| format!("{{\"id\":{id},\"v\":{v}}}\n")).collect::<String>().into_bytes()
        }
        Format::Csv => text(","),
        Format::Tsv => text("\t"),
        Format::Parquet | Format::Arrow => {
            let column = |times: u32| Arc::new(UInt32Array::from_iter_values((0..rows).map(|id| id * times)));
            table(format, vec![("id", column(1)), ("v", column(10))])
        }
        Format::Npy => npy("[('id', '<u4'), ('v', '<u4')]", rows as usize, words),
        Format::Raw => words.collect(),
        Format::Fasta => (0..rows).map(|id| format!(">{id}\nACGT\n")).collect::<String>().into_bytes(),
        Format::Fastq => {
            (0..rows).map(|id| format!("@{id}\nACGT\n+\n!!!!\n")).collect::<String>().into_bytes()
        }
    }
}

/// A table of keys, of which one is null.
fn with_null(format: Format) -> Option<Vec<u8>> {
    match format {
        Format::Csv | Format::Tsv | Format::Raw | Format::Fasta | Format::Fastq => None,
        Format::Ndjson => Some(b"{\"id\":1}\n{\"id\":null}\n".to_vec()),
        Format::Parquet | Format::Arrow => {
            Some(table(format, vec![("id", Arc::new(UInt32Array::from(vec![Some(1), None])))]))
        }
        Format::Npy => Some(npy("'<M8[s]'", 1, i64::MIN.to_le_bytes())),
    }
}

/// A table of changes; of formats without texts a table of numbers.
fn changes(format: Format) -> Vec<u8> {
    match format {
        Format::Csv => b"op,key,value\nput,1,2\n".to_vec(),
        Format::Ndjson => b"{\"op\":\"put\",\"key\":1,\"value\":2}\n".to_vec(),
        Format::Tsv => b"op\tkey\tvalue\nput\t1\t2\n".to_vec(),
        Format::Parquet | Format::Arrow => {
            let number = |number: u32| Arc::new(UInt32Array::from(vec![number])) as ArrayRef;
            let op = Arc::new(StringArray::from(vec!["put"]));
            table(format, vec![("op", op), ("key", number(1)), ("value", number(2))])
        }
        Format::Npy | Format::Raw | Format::Fasta | Format::Fastq => sample(format, 1),
    }
}

fn options(format: Format) -> InputOptions {
    let raw = (format == Format::Raw).then_some((KeyType::U32, ValueType::U32));
    let kmers = matches!(format, Format::Fasta | Format::Fastq).then_some(4);
    InputOptions { format: Some(format), raw, kmers, ..InputOptions::default() }
}

fn stream(bytes: Vec<u8>) -> Box<dyn Read + Send> {
    Box::new(Cursor::new(bytes))
}

/// Reads all rows of a stream; returns their number, or the error.
fn read(bytes: Vec<u8>, options: &InputOptions) -> Result<usize, String> {
    let mut source = open_stream("t", stream(bytes), options).map_err(|error| error.to_string())?;
    let mut chunk = Chunk::new(source.schema().key_type, source.schema().value_type);
    let mut rows = 0;
    loop {
        source.next_chunk(&mut chunk, 1000).map_err(|error| error.to_string())?;
        if chunk.is_empty() {
            return Ok(rows);
        }
        rows += chunk.len();
    }
}

#[test]
fn names_and_extensions_select_the_format() {
    let folder = tempfile::tempdir().expect("a folder");
    for row in FORMATS {
        assert_eq!(row.name.parse(), Ok(row.format));
        assert_eq!(row.name, row.extensions[0], "the usual extension");
        for extension in row.extensions {
            for name in [format!("t.{extension}"), format!("T.{}", extension.to_uppercase())] {
                let path = folder.path().join(name);
                assert_eq!(Format::from_path(&path), Some(row.format));
                fs::write(&path, sample(row.format, 2)).expect("writes");
                let options = InputOptions { format: None, ..options(row.format) };
                let source = open(&[path], &options).expect("opens");
                assert_eq!(source.schema().rows.unwrap_or(2), 2, "{}", row.name);
            }
        }
    }
    let error = "xls".parse::<Format>().expect_err("none of them");
    assert_eq!(error, "unknown format 'xls': use csv, tsv, ndjson, parquet, arrow, npy, raw, fasta or fastq");
}

#[test]
fn first_bytes_identify_the_formats_with_types() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.odd");
    for row in FORMATS {
        fs::write(&path, sample(row.format, 2)).expect("writes");
        let found = looks_like(&path);
        assert_eq!(found.is_some(), row.types == Types::Own, "{}: {found:?}", row.name);
        assert!(found.is_none_or(|(_, advice)| advice == format!("give --format {}", row.name)));
    }
}

#[test]
fn columns_have_names_and_types() {
    for row in FORMATS {
        let by_name = InputOptions { key: Some("v".into()), ..options(row.format) };
        assert_eq!(read(sample(row.format, 3), &by_name).is_ok(), row.has_names, "{}", row.name);
        let given = options(row.format);
        let source = open_stream("t", stream(sample(row.format, 3)), &given).expect("opens");
        let is_text = matches!(row.types, Types::Requested | Types::Shown);
        let key_type = match row.types {
            _ if is_text => KeyType::U64,
            Types::Kmers => KeyType::U128,
            Types::Own | Types::Required | Types::Requested | Types::Shown => KeyType::U32,
        };
        assert_eq!(source.schema().key_type, key_type, "{}", row.name);
        let untyped = InputOptions { raw: None, kmers: None, ..given };
        let result = read(sample(row.format, 3), &untyped);
        assert_eq!(
            result.is_err(),
            matches!(row.types, Types::Required | Types::Kmers),
            "{}: {result:?}",
            row.name
        );
    }
}

#[test]
fn nulls_are_refused_where_there_are_any() {
    for row in FORMATS {
        let table = with_null(row.format);
        assert_eq!(table.is_some(), row.has_nulls, "{}", row.name);
        let Some(table) = table else { continue };
        let error = read(table, &options(row.format)).expect_err("a null");
        assert!(error.contains("it is null"), "{}: {error}", row.name);
    }
}

/// A stream whose second half never arrives.
struct Half(Cursor<Vec<u8>>);

impl Read for Half {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(out)? {
            0 => Err(std::io::Error::other("the rest was read")),
            bytes => Ok(bytes),
        }
    }
}

#[test]
fn streams_are_read_as_they_arrive_or_copied() {
    for row in FORMATS {
        let mut bytes = sample(row.format, 1000);
        assert_eq!(read(bytes.clone(), &options(row.format)), Ok(1000), "{}", row.name);
        bytes.truncate(bytes.len() / 2);
        let opened = open_stream("t", Box::new(Half(Cursor::new(bytes))), &options(row.format));
        let error = opened.err().map(|error| error.to_string());
        assert_eq!(error.is_none(), row.is_streamed, "{}: {error:?}", row.name);
    }
}

#[test]
fn changes_are_read_or_refused() {
    for row in FORMATS {
        let options = InputOptions { changes: true, ..options(row.format) };
        let result = read(changes(row.format), &options);
        let refused =
            "t: it has no column for put, add and del: give changes as CSV, TSV, NDJSON, Parquet or Arrow";
        let wanted = if row.has_changes { Ok(1) } else { Err(refused.to_owned()) };
        assert_eq!(result, wanted, "{}", row.name);
    }
}
