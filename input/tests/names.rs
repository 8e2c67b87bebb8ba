//! Columns are found by their names: over formats, orders of columns, and the ways to choose them; and a
//! header that may as well be data is refused.

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{Field, Schema as ArrowSchema};
use pleach_builder::source::{Chunk, Column, Op, Source};
use pleach_format::record::{FieldKind, Record};
use pleach_format::{KeyType, ValueType};
use pleach_input::{Format, Header, InputOptions, open, open_stream};
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FORMATS: [&str; 6] = ["csv", "tsv", "ndjson", "parquet", "arrow", "npy"];

/// A table of numbers, of a column for each name, as a file of a format.
fn table(folder: &Path, name: &str, columns: &[(&str, &[u64])]) -> PathBuf {
    let path = folder.join(name);
    let format = name.rsplit('.').next().expect("an extension");
    let rows = columns[0].1.len();
    let bytes = match format {
        "csv" | "tsv" => {
            let delimiter = if format == "csv" { "," } else { "\t" };
            let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
            let mut text = names.join(delimiter) + "\n";
            for row in 0..rows {
                let fields: Vec<String> = columns.iter().map(|(_, column)| column[row].to_string()).collect();
                text += &(fields.join(delimiter) + "\n");
            }
            text.into_bytes()
        }
        "ndjson" => {
            let object = |row: usize| {
                let members: Vec<String> =
                    columns.iter().map(|(name, column)| format!("\"{name}\":{}", column[row])).collect();
                format!("{{{}}}\n", members.join(","))
            };
            (0..rows).map(object).collect::<String>().into_bytes()
        }
        "npy" => {
            let fields: String = columns.iter().map(|(name, _)| format!("('{name}','<u8'),")).collect();
            let header = format!("{{'descr':[{fields}],'fortran_order':False,'shape':({rows},)}}\n");
            let mut bytes = b"\x93NUMPY\x01\0".to_vec();
            bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
            bytes.extend_from_slice(header.as_bytes());
            for row in 0..rows {
                columns.iter().for_each(|(_, column)| bytes.extend_from_slice(&column[row].to_le_bytes()));
            }
            bytes
        }
        _ => {
            let columns = columns
                .iter()
                .map(|(name, column)| (*name, Arc::new(UInt64Array::from(column.to_vec())) as ArrayRef));
            typed(format, columns.collect())
        }
    };
    fs::write(&path, bytes).expect("writes");
    path
}

fn typed(format: &str, columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), false)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), arrays).expect("is a batch");
    let mut bytes = Vec::new();
    if format == "parquet" {
        let mut writer =
            parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).expect("writes");
        writer.write(&batch).expect("writes");
        writer.close().expect("writes");
    } else {
        let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut bytes, &batch.schema()).expect("writes");
        writer.write(&batch).expect("writes");
        writer.finish().expect("writes");
    }
    bytes
}

type Rows = Vec<(u64, u64)>;

fn rows(source: &mut dyn Source) -> Result<(Rows, Vec<Op>), String> {
    let (mut all, mut ops) = (Vec::new(), Vec::new());
    let schema = source.schema().clone();
    let mut chunk = Chunk::new(schema.key_type, schema.value_type);
    loop {
        source.next_chunk(&mut chunk, 100).map_err(|error| error.to_string())?;
        if chunk.is_empty() {
            return Ok((all, ops));
        }
        let words = |column: &Column| match column {
            Column::U64(words) => words.clone(),
            _ => vec![0; chunk.keys.len()],
        };
        all.extend(words(&chunk.keys).into_iter().zip(words(&chunk.values)));
        ops.extend_from_slice(&chunk.ops);
    }
}

fn read(inputs: &[PathBuf], options: &InputOptions) -> Result<Rows, String> {
    let mut source = open(inputs, options).map_err(|error| error.to_string())?;
    rows(&mut *source).map(|(rows, _)| rows)
}

fn chosen(key: Option<&str>, value: Option<&str>) -> InputOptions {
    InputOptions { key: key.map(str::to_owned), value: value.map(str::to_owned), ..InputOptions::default() }
}

#[test]
fn every_input_has_the_columns_of_the_first() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let (id, v): (&[u64], &[u64]) = (&[3, 4], &[300, 400]);
    let orders: [&[(&str, &[u64])]; 4] = [
        &[("id", id), ("v", v)],
        &[("v", v), ("id", id)],
        &[("x", &[7, 8]), ("v", v), ("y", &[8, 9]), ("id", id)],
        &[("v", v), ("x", &[7, 7]), ("id", id)],
    ];
    for first in FORMATS {
        let one = table(folder.path(), &format!("a.{first}"), &[("id", &[1, 2]), ("v", &[100, 200])]);
        for second in FORMATS {
            for (number, order) in orders.iter().enumerate() {
                let two = table(folder.path(), &format!("b{number}.{second}"), order);
                let inputs = [one.clone(), two];
                let by_name = vec![(1, 100), (2, 200), (3, 300), (4, 400)];
                for options in [chosen(None, None), chosen(Some("id"), Some("v")), chosen(Some("id"), None)] {
                    let found = read(&inputs, &options);
                    assert_eq!(found.as_ref(), Ok(&by_name), "{first} {second} {number} {options:?}");
                }
                // A number is a number everywhere.
                let by_number = read(&inputs, &chosen(Some("0"), Some("1"))).expect("reads");
                assert_eq!(by_number[2..], [(order[0].1[0], order[1].1[0]), (order[0].1[1], order[1].1[1])]);
                // Each for itself.
                let mixed = read(&inputs, &chosen(Some("0"), None)).expect("reads");
                assert_eq!(mixed[2..], [(order[0].1[0], 300), (order[0].1[1], 400)]);
                // Records, too.
                let record = InputOptions {
                    value: Some("v,id".into()),
                    field_types: vec![FieldKind::U32; 2],
                    ..InputOptions::default()
                };
                let found = read(&inputs, &record).expect("reads");
                assert_eq!((found[0].1, found[2].1), (100 | 1 << 32, 300 | 3 << 32));
            }
        }
    }
}

#[test]
fn other_names_are_refused_with_both_lists() {
    let folder = tempfile::tempdir().expect("makes a folder");
    for first in FORMATS {
        let one = table(folder.path(), &format!("a.{first}"), &[("id", &[1]), ("v", &[100])]);
        for second in FORMATS {
            let refused = |columns: &[(&str, &[u64])], parts: &[&str]| {
                let two = table(folder.path(), &format!("b.{second}"), columns);
                let error =
                    read(&[one.clone(), two.clone()], &InputOptions::default()).expect_err("is refused");
                for part in parts {
                    assert!(error.contains(part), "{first} {second}: {part} is not in {error}");
                }
                assert!(error.starts_with(&two.display().to_string()), "{error}");
                assert!(error.contains(&one.display().to_string()), "{error}");
            };
            let both = [r#"its columns are "#, r#"are "id", "v""#, "by number"];
            refused(
                &[("key", &[2]), ("v", &[3])],
                &[&["no column \"id\"", "\"key\", \"v\"", "--key"], &both[..]].concat(),
            );
            refused(
                &[("id", &[2]), ("w", &[3])],
                &[&["no column \"v\"", "\"id\", \"w\"", "--value"], &both[..]].concat(),
            );
            refused(&[("id", &[2])], &[&["no column \"v\"", "--value"], &both[..]].concat());
            if second == "csv" || second == "tsv" {
                let twice: &[(&str, &[u64])] = &[("v", &[2]), ("id", &[3]), ("id", &[4])];
                refused(twice, &[&["\"id\"", "2 times"], &both[..]].concat());
            }
        }
    }
    // If the first input has a name twice, only an identical header determines which column is meant.
    let one = table(folder.path(), "a.csv", &[("id", &[1]), ("id", &[5]), ("v", &[6])]);
    let two = table(folder.path(), "b.csv", &[("v", &[1]), ("id", &[2])]);
    assert_eq!(read(&[one.clone(), one.clone()], &InputOptions::default()), Ok(vec![(1, 5), (1, 5)]));
    let error = read(&[one, two], &InputOptions::default()).expect_err("is refused");
    assert!(error.contains("occurs there more than once"), "{error}");
}

#[test]
fn inputs_without_names_go_by_number() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let save = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("writes");
        folder.path().join(name)
    };
    let inputs = [save("a.csv", "1,2\n"), save("b.csv", "3,4\n")];
    let options = InputOptions { no_header: true, ..InputOptions::default() };
    assert_eq!(read(&inputs, &options), Ok(vec![(1, 2), (3, 4)]));
    let parquet = table(folder.path(), "c.parquet", &[("v", &[5]), ("id", &[6])]);
    assert_eq!(read(&[inputs[0].clone(), parquet], &options), Ok(vec![(1, 2), (5, 6)]));
}

#[test]
fn the_header_of_the_first_part_is_that_of_all() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let save = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("writes");
        folder.path().join(name)
    };
    let first = InputOptions { header: Header::First, ..InputOptions::default() };
    let parts = [save("a.csv", "v,id\n10,1\n"), save("b.csv", "20,2\n30,3\n"), save("c.tsv", "40\t4\n")];
    let by_name = InputOptions { key: Some("id".into()), ..first.clone() };
    assert_eq!(read(&parts, &by_name), Ok(vec![(1, 10), (2, 20), (3, 30), (4, 40)]));
    assert_eq!(read(&parts, &first), Ok(vec![(10, 1), (20, 2), (30, 3), (40, 4)]));
    // Without the option the second part is refused, numbers or not, with advice.
    let error = read(&parts, &InputOptions::default()).expect_err("is refused");
    assert!(
        error.contains("b.csv: first line: \"20,2\" is data") && error.contains("--header=first"),
        "{error}"
    );
    let texts = InputOptions { key_type: Some(KeyType::Utf8), ..InputOptions::default() };
    let named = [save("d.csv", "name,v\na,1\n"), save("e.csv", "b,2\n")];
    let error = read(&named, &texts).expect_err("is refused");
    assert!(error.contains("\"b,2\" is data") && error.contains("--header=first"), "{error}");
    // Where only texts are read, nothing of the line decides.
    let strings = InputOptions { value_type: Some(ValueType::Utf8), ..texts.clone() };
    let error = read(&named, &strings).expect_err("is refused");
    assert!(error.contains("no column \"name\"") && error.contains("--header=first"), "{error}");
    // A header that comes again is none of the rows, and rows of another length are of another table.
    let again = [named[0].clone(), named[0].clone()];
    let error =
        read(&again, &InputOptions { header: Header::First, ..texts.clone() }).expect_err("is refused");
    assert!(
        error.contains("it repeats the header of") && error.contains("--header, without =first"),
        "{error}"
    );
    let wide = [parts[0].clone(), save("f.csv", "1,2,3\n")];
    let error = read(&wide, &first).expect_err("is refused");
    assert!(error.contains("it has 3 fields, but the header of") && error.contains("has 2"), "{error}");
}

#[test]
fn a_header_that_may_be_data_is_refused() {
    let key_types = [
        (KeyType::U32, "7"),
        (KeyType::U64, "7"),
        (KeyType::I32, "-7"),
        (KeyType::I64, "-7"),
        (KeyType::U128, "7"),
        (KeyType::F64, "7.5"),
        (KeyType::Fixed(4), "ab12"),
        (KeyType::Fixed(2), "\\xab12"),
        (KeyType::Fixed(40), "1202ba1202ba1202ba1202ba1202ba1202ba1202"),
        (KeyType::Utf8, "7"),
        (KeyType::Bytes, "7"),
    ];
    let value_types = [
        (ValueType::None, "x"),
        (ValueType::U32, "7"),
        (ValueType::U64, "7.0"),
        (ValueType::I32, "-7"),
        (ValueType::I64, " 7"),
        (ValueType::F32, "1e3"),
        (ValueType::F64, "NaN"),
        (ValueType::Fixed(3), "abc"),
        (ValueType::Utf8, "7"),
        (ValueType::Bytes, "7"),
    ];
    let opens = |text: &str, format: Format, options: &InputOptions| {
        let options = InputOptions { format: Some(format), ..options.clone() };
        let source = open_stream("input", Box::new(Cursor::new(text.as_bytes().to_vec())), &options);
        source
            .map_err(|error| error.to_string())
            .and_then(|mut source| rows(&mut *source).map(|(rows, _)| rows.len()))
    };
    for (key_type, key) in key_types {
        for (value_type, value) in value_types {
            for (format, delimiter) in [(Format::Csv, ','), (Format::Tsv, '\t')] {
                let line = format!("{key}{delimiter}{value}\n");
                let options = InputOptions {
                    key_type: Some(key_type),
                    value_type: Some(value_type),
                    ..InputOptions::default()
                };
                let what = format!("{key_type} to {value_type}, {format:?}");
                // Texts can be anything, so the other column decides, if there is one.
                let has_text = matches!(key_type, KeyType::Utf8 | KeyType::Bytes);
                let is_text =
                    has_text && matches!(value_type, ValueType::None | ValueType::Utf8 | ValueType::Bytes);
                // Twice the line: a header and a row, or two rows, or a question.
                let text = line.repeat(2);
                match opens(&text, format, &options) {
                    Ok(rows) => assert_eq!((is_text, rows), (true, 1), "{what}"),
                    Err(error) => {
                        assert!(!is_text, "{what}: {error}");
                        for part in ["input: first line: ", "may be data", "--no-header", "--header"] {
                            assert!(error.contains(part), "{what}: {error}");
                        }
                    }
                }
                let no_header = InputOptions { no_header: true, ..options.clone() };
                assert_eq!(opens(&text, format, &no_header), Ok(2), "{what}");
                let header = InputOptions { header: Header::Each, ..options.clone() };
                assert_eq!(opens(&text, format, &header), Ok(1), "{what}");
                // A column that is called by its name makes a header of the line; a number may be meant as one.
                if !key.contains('\\') && key.parse::<usize>().is_err() && key != value {
                    let named = InputOptions { key: Some(key.into()), ..options.clone() };
                    assert_eq!(opens(&text, format, &named), Ok(1), "{what}");
                }
                // One field that is none of the type does it, too.
                let name = opens(&format!("name of a key{delimiter}{value}\n{line}"), format, &options);
                if has_text && !is_text {
                    assert!(name.is_err_and(|error| error.contains("may be data")), "{what}");
                } else {
                    assert_eq!(name, Ok(1), "{what}");
                }
            }
        }
    }
    // Records: all of their columns.
    let record = InputOptions { value: Some("1,2".into()), ..InputOptions::default() };
    assert!(opens("1,2,3\n4,5,6\n", Format::Csv, &record).is_err());
    assert_eq!(
        opens("0,x,3\n4,5,6\n", Format::Csv, &InputOptions { value: Some("x,2".into()), ..record.clone() }),
        Ok(1)
    );
    assert_eq!(
        opens("a,2,3\n4,5,6\n", Format::Csv, &InputOptions { value: Some("2,3".into()), ..record }),
        Ok(1)
    );
    // Row numbers are none of the columns.
    let numbered = InputOptions { value: Some("@row".into()), ..InputOptions::default() };
    assert!(opens("1\n2\n", Format::Csv, &numbered).is_err());
}

/// Columns of text with their names.
type Columns<'a> = &'a [(&'a str, &'a [&'a str])];

fn changes(folder: &Path, name: &str, columns: Columns<'_>) -> PathBuf {
    let path = folder.join(name);
    let format = name.rsplit('.').next().expect("an extension");
    let bytes = if format == "csv" || format == "tsv" {
        let delimiter = if format == "csv" { "," } else { "\t" };
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let mut text = names.join(delimiter) + "\n";
        for row in 0..columns[0].1.len() {
            let fields: Vec<&str> = columns.iter().map(|(_, column)| column[row]).collect();
            text += &(fields.join(delimiter) + "\n");
        }
        text.into_bytes()
    } else {
        let columns = columns.iter().map(|(name, column)| {
            let numbers: Result<Vec<u64>, _> = column.iter().map(|text| text.parse()).collect();
            let array: ArrayRef = match numbers {
                Ok(numbers) => Arc::new(UInt64Array::from(numbers)),
                Err(_) => Arc::new(StringArray::from(column.to_vec())),
            };
            (*name, array)
        });
        typed(format, columns.collect())
    };
    fs::write(&path, bytes).expect("writes");
    path
}

#[test]
fn changes_go_by_the_names_of_the_file() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let (op, key, value): (&[&str], &[&str], &[&str]) = (&["put", "add"], &["1", "2"], &["10", "20"]);
    let other: &[&str] = &["8", "9"];
    let of = |key_name: &str, value_name: &str| InputOptions {
        key_type: Some(KeyType::U64),
        value_type: Some(ValueType::U64),
        changes: true,
        key_name: Some(key_name.into()),
        value_name: Some(value_name.into()),
        ..InputOptions::default()
    };
    let found = |path: PathBuf, options: &InputOptions| {
        let mut source = open(&[path], options).map_err(|error| error.to_string())?;
        rows(&mut *source)
    };
    let expected = (vec![(1, 10), (2, 20)], vec![Op::Put, Op::Add]);
    for format in ["csv", "tsv", "parquet", "arrow"] {
        let name = format!("c.{format}");
        let good: [Columns<'_>; 6] = [
            &[("op", op), ("id", key), ("v", value)],
            &[("v", value), ("id", key), ("op", op)],
            &[("id", key), ("op", op), ("x", other), ("v", value)],
            &[("op", op), ("key", key), ("value", value)],
            &[("op", op), ("value", value), ("key", key)],
            // The file's own name goes first.
            &[("op", op), ("key", other), ("id", key), ("v", value)],
        ];
        for columns in good {
            let path = changes(folder.path(), &name, columns);
            assert_eq!(found(path, &of("id", "v")).as_ref(), Ok(&expected), "{format} {columns:?}");
        }
        let bad: [(Columns<'_>, &[&str]); 3] = [
            (&[("op", op), ("customer", key), ("v", value)], &["\"id\"", "\"key\"", "\"customer\"", "--key"]),
            (&[("op", op), ("id", key), ("price", value)], &["\"v\"", "\"value\"", "\"price\"", "--value"]),
            (&[("what", op), ("id", key), ("v", value)], &["\"op\"", "\"what\"", "--op"]),
        ];
        for (columns, parts) in bad {
            let path = changes(folder.path(), &name, columns);
            let error = found(path, &of("id", "v")).expect_err("is refused");
            for part in parts {
                assert!(error.contains(part), "{format}: {part} is not in {error}");
            }
        }
        // Asked for, by name and by number.
        let path = changes(folder.path(), &name, &[("w", value), ("what", op), ("k", key)]);
        for (op, key, value) in [("what", "k", "w"), ("1", "2", "0")] {
            let (op, key, value) = (Some(op.into()), Some(key.into()), Some(value.into()));
            let options = InputOptions { op, key, value, ..of("id", "v") };
            assert_eq!(found(path.clone(), &options).as_ref(), Ok(&expected), "{format}");
        }
        // A file whose columns had no names has none to go by.
        let path = changes(folder.path(), &name, &[("what", op), ("k", key), ("w", value)]);
        assert_eq!(found(path, &of("key", "value")).as_ref(), Ok(&expected), "{format}");
        let path = changes(folder.path(), &name, &[("op", op), ("value", value), ("key", key)]);
        assert_eq!(found(path, &of("key", "value")).as_ref(), Ok(&expected), "{format}");
        // Records have their fields by their names.
        let record = Record::parse("record<a: u32, b: u32>").expect("is one");
        let of_record =
            InputOptions { value_type: Some(record.storage()), record: Some(record), ..of("id", "") };
        let path = changes(folder.path(), &name, &[("b", value), ("op", op), ("a", other), ("id", key)]);
        let (rows, _) = found(path, &of_record).expect("reads");
        assert_eq!(rows, [(1, 8 | 10 << 32), (2, 9 | 20 << 32)], "{format}");
        let path = changes(folder.path(), &name, &[("op", op), ("id", key), ("a", value), ("c", other)]);
        let error = found(path, &of_record).expect_err("has no b");
        assert!(error.contains("no column \"b\"") && error.contains("\"c\""), "{format}: {error}");
    }
}

#[test]
fn changes_without_a_header_are_refused() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let path = folder.path().join("c.csv");
    fs::write(&path, "put,1,11\nput,2,22\n").expect("writes");
    for key_type in [KeyType::U64, KeyType::Utf8, KeyType::Bytes, KeyType::Fixed(1)] {
        for (key, value) in [("id", "v"), ("key", "value"), ("", "")] {
            let options = InputOptions {
                key_type: Some(key_type),
                value_type: Some(ValueType::U64),
                changes: true,
                key_name: Some(key.into()),
                value_name: Some(value.into()),
                ..InputOptions::default()
            };
            let error = open(std::slice::from_ref(&path), &options).err().expect("is refused").to_string();
            assert!(error.contains("c.csv: first line: \"put,1,11\" may be data"), "{error}");
            assert!(error.contains("--no-header"), "{error}");
            let numbers = InputOptions {
                op: Some("0".into()),
                key: Some("1".into()),
                value: Some("2".into()),
                ..options.clone()
            };
            assert!(open(std::slice::from_ref(&path), &numbers).is_err());
            let options = InputOptions { no_header: true, ..options };
            let mut source = open(std::slice::from_ref(&path), &options).expect("opens");
            assert_eq!(rows(&mut *source).expect("reads").1, [Op::Put, Op::Put]);
        }
    }
}

#[test]
fn columns_of_a_path_are_read() {
    let folder = tempfile::tempdir().expect("makes a folder");
    fs::create_dir(folder.path().join("year=2024")).expect("makes a folder");
    let path = table(folder.path(), "year=2024/a.parquet", &[("id", &[1]), ("v", &[2])]);
    // A Parquet column has its own type, and that of a path is a text unless another type is asked for.
    let numbers = InputOptions { value_type: Some(ValueType::U64), ..chosen(Some("id"), Some("year")) };
    assert_eq!(read(std::slice::from_ref(&path), &numbers), Ok(vec![(1, 2024)]));
    assert_eq!(read(&[folder.path().to_owned()], &numbers), Ok(vec![(1, 2024)]));
    let key = InputOptions { key_type: Some(KeyType::U64), ..chosen(Some("year"), Some("id")) };
    assert_eq!(read(&[path], &key), Ok(vec![(2024, 1)]));
    let error = read(&[folder.path().join("*.parquet")], &chosen(None, None)).expect_err("is no file");
    assert!(error.contains("no file matches this pattern"), "{error}");
}
