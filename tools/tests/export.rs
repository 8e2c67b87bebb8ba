//! `export` and `build` are inverses: every type, logical type and name comes back, byte for byte.

use arrow_array::{
    ArrayRef, Date32Array, Date64Array, Decimal32Array, Decimal64Array, Decimal128Array,
    DurationMillisecondArray, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    Time32MillisecondArray, Time64NanosecondArray, TimestampMicrosecondArray, TimestampSecondArray,
    UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

fn pleach(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pleach"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("the binary runs")
}

#[track_caller]
fn done(folder: &Path, arguments: &[&str]) {
    // Files are compared: a build over another one would be its next generation.
    if let (["build", ..], Some(at)) = (arguments, arguments.iter().position(|word| *word == "-o")) {
        let _ = fs::remove_file(folder.join(arguments[at + 1]));
    }
    let output = pleach(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], code: i32, line: &str) {
    let output = pleach(folder, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), format!("error: {line}\n"));
    assert!(output.stdout.is_empty());
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("is a folder")
        .map(|entry| entry.expect("is an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn save(folder: &Path, name: &str, columns: &[(&str, ArrayRef)]) {
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), false)).collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = columns.iter().map(|(_, array)| array.clone()).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays).expect("is a batch");
    let file = File::create(folder.join(name)).expect("creates");
    let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &schema).expect("begins");
    writer.write(&batch).expect("writes");
    writer.finish().expect("ends");
}

fn parquet_schema(path: &Path) -> SchemaRef {
    let file = File::open(path).expect("is there");
    parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file)
        .expect("is Parquet")
        .schema()
        .clone()
}

/// Exports to `table`, builds from it again, and compares the bytes.
#[track_caller]
fn there_and_back(folder: &Path, table: &str, options: &[&str]) {
    done(folder, &["export", "a.pleach", "-o", table]);
    let build: Vec<&str> = ["build", table, "-o", "b.pleach"].iter().chain(options).copied().collect();
    done(folder, &build);
    let same = fs::read(folder.join("a.pleach")).expect("reads")
        == fs::read(folder.join("b.pleach")).expect("reads");
    assert!(same, "{table} does not give the same file");
}

#[test]
fn every_type_survives() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let folder = folder.path();
    let integers: Vec<ArrayRef> = vec![
        Arc::new(UInt32Array::from(vec![3, 1, u32::MAX])),
        Arc::new(UInt64Array::from(vec![3, 1, u64::MAX])),
        Arc::new(Int32Array::from(vec![i32::MIN, 1, i32::MAX])),
        Arc::new(Int64Array::from(vec![i64::MIN, 1, i64::MAX])),
        Arc::new(Date32Array::from(vec![3, -1, 2])),
        Arc::new(Date64Array::from(vec![86_400_000, -86_400_000, 0])),
        Arc::new(Time32MillisecondArray::from(vec![3, 1, 2])),
        Arc::new(Time64NanosecondArray::from(vec![3, 1, 2])),
        Arc::new(DurationMillisecondArray::from(vec![3, -1, 2])),
        Arc::new(TimestampSecondArray::from(vec![3, -1, 2])),
        Arc::new(TimestampMicrosecondArray::from(vec![3, -1, 2]).with_timezone("Europe/Berlin")),
        Arc::new(Decimal32Array::from(vec![3, -1, 2]).with_precision_and_scale(5, 2).expect("is one")),
        Arc::new(Decimal64Array::from(vec![3, -1, 2]).with_precision_and_scale(15, 2).expect("is one")),
        Arc::new(Decimal128Array::from(vec![3, -1, 2]).with_precision_and_scale(15, 2).expect("is one")),
    ];
    let mut values = integers.clone();
    values.push(Arc::new(Float32Array::from(vec![0.1, f32::NAN, f32::MAX])));
    values.push(Arc::new(Float64Array::from(vec![0.1, f64::NAN, f64::MIN_POSITIVE])));
    let pairs =
        integers.iter().map(|key| (key, &values[4])).chain(values.iter().map(|value| (&integers[0], value)));
    for (key, value) in pairs {
        save(folder, "t.arrow", &[("the key", key.clone()), ("a,\"value\"", value.clone())]);
        done(folder, &["build", "t.arrow", "-o", "a.pleach"]);
        there_and_back(folder, "o.parquet", &[]);
        there_and_back(folder, "o.arrow", &[]);
        let schema = parquet_schema(&folder.join("o.parquet"));
        assert_eq!(
            (schema.field(0).name().as_str(), schema.field(0).data_type()),
            ("the key", key.data_type())
        );
        assert_eq!(
            (schema.field(1).name().as_str(), schema.field(1).data_type()),
            ("a,\"value\"", value.data_type())
        );
    }
}

#[test]
fn text_keeps_numbers_and_names() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let folder = folder.path();
    let key: ArrayRef = Arc::new(Int64Array::from(vec![5, -7, 5]));
    let value: ArrayRef = Arc::new(Float64Array::from(vec![0.1, -1e300, f64::INFINITY]));
    save(folder, "t.arrow", &[("a\t\"k\",", key), ("v\\\n", value)]);
    done(folder, &["build", "t.arrow", "-o", "a.pleach"]);
    there_and_back(folder, "o.csv", &["--key-type", "i64", "--value-type", "f64"]);
    there_and_back(folder, "o.tsv", &["--key-type", "i64", "--value-type", "f64"]);
    assert_eq!(
        fs::read_to_string(folder.join("o.tsv")).expect("reads"),
        "a\\t\"k\",\tv\\\\\\n\n-7\t-1e300\n5\t0.1\n5\tinf\n"
    );
}

#[test]
fn sets_rows_and_nothing_at_all() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let folder = folder.path();
    fs::write(folder.join("t.csv"), "id\n5\n3\n5\n").expect("writes");
    done(folder, &["build", "t.csv", "-o", "a.pleach"]);
    for table in ["o.csv", "o.tsv", "o.parquet", "o.arrow"] {
        there_and_back(folder, table, &[]);
    }
    assert_eq!(fs::read_to_string(folder.join("o.csv")).expect("reads"), "id\n3\n5\n5\n");
    assert_eq!(parquet_schema(&folder.join("o.parquet")).fields().len(), 1);
    done(folder, &["build", "t.csv", "--value", "@row", "-o", "a.pleach"]);
    there_and_back(folder, "o.parquet", &[]);
    done(folder, &["export", "a.pleach", "-o", "o.csv"]);
    assert_eq!(fs::read_to_string(folder.join("o.csv")).expect("reads"), "id,row\n3,1\n5,0\n5,2\n");
    fs::write(folder.join("t.csv"), "id,n\n").expect("writes");
    done(folder, &["build", "t.csv", "--key-type", "u32", "-o", "a.pleach"]);
    there_and_back(folder, "o.parquet", &[]);
    there_and_back(folder, "o.arrow", &[]);
    assert_eq!(parquet_schema(&folder.join("o.parquet")).field(0).data_type(), &DataType::UInt32);
    // One column as key and value.
    fs::write(folder.join("t.csv"), "id\n5\n3\n").expect("writes");
    done(folder, &["build", "t.csv", "--key", "id", "--value", "id", "-o", "a.pleach"]);
    there_and_back(folder, "o.parquet", &[]);
}

#[test]
fn many_batches_in_every_format() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let folder = folder.path();
    let bytes: Vec<u8> = (0..200_000_u64)
        .flat_map(|n| [n.wrapping_mul(0x9e37_79b9_7f4a_7c15), n])
        .flat_map(u64::to_le_bytes)
        .collect();
    fs::write(folder.join("t.raw"), bytes).expect("writes");
    done(folder, &["build", "t.raw", "--raw", "u64,u64", "-o", "a.pleach"]);
    for table in ["o.csv", "o.tsv", "o.parquet", "o.arrow"] {
        there_and_back(folder, table, &[]);
    }
}

#[test]
fn nothing_is_left_of_a_failure() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let folder = folder.path();
    let digits = Decimal128Array::from(vec![1, 123_456]).with_precision_and_scale(5, 2).expect("is one");
    save(folder, "t.arrow", &[("k", Arc::new(UInt32Array::from(vec![1, 2]))), ("v", Arc::new(digits))]);
    done(folder, &["build", "t.arrow", "-o", "a.pleach"]);
    fs::write(folder.join("o.parquet"), "old").expect("writes");
    let before = names(folder);
    refused(
        folder,
        &["export", "a.pleach", "-o", "o.parquet"],
        8,
        "123456 has more than the 5 digits of its decimal type (scale 2): o.parquet: export it as CSV",
    );
    assert_eq!(fs::read(folder.join("o.parquet")).expect("reads"), b"old");
    assert_eq!(names(folder), before);
    refused(
        folder,
        &["export", "a.pleach", "-o", "a.pleach", "--format", "csv"],
        8,
        "output is the input: a.pleach: name another file",
    );
    refused(
        folder,
        &["export", "a.pleach", "-o", "none/o.csv"],
        8,
        "cannot create: none/o.csv: No such file or directory: check the name",
    );
    fs::create_dir(folder.join("d.csv")).expect("makes a folder");
    refused(folder, &["export", "a.pleach", "-o", "d.csv"], 8, "is a folder: d.csv: name a file");
    refused(
        folder,
        &["export", "a.pleach", "-o", "o.npy"],
        2,
        "unknown extension: o.npy: give --format, one of csv tsv parquet arrow",
    );
    refused(
        folder,
        &["export", "a.pleach", "-o", "o.npy", "--format", "npy"],
        2,
        "format is for input only: pleach export: use one of csv tsv parquet arrow",
    );
    if Path::new("/dev/full").exists() {
        for format in ["csv", "arrow", "parquet"] {
            fs::write(folder.join("t.csv"), "k\n1\n").expect("writes");
            done(folder, &["build", "t.csv", "-o", "s.pleach"]);
            refused(
                folder,
                &["export", "s.pleach", "-o", "/dev/full", "--format", format],
                8,
                "cannot write: /dev/full: No space left on device: free some space, or write elsewhere",
            );
        }
    }
}

#[test]
fn pipes_get_streams_of_arrow_and_files_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rows: String = (0..200_000).map(|key| format!("{key},{}\n", key * 3)).collect();
    fs::write(folder.join("t.csv"), format!("id,v\n{rows}")).expect("written");
    let shell = |script: &str| {
        let script = script.replace("PLEACH ", &format!("'{}' -q ", env!("CARGO_BIN_EXE_pleach")));
        let mut command = Command::new("bash");
        command.args(["-c", &format!("set -o pipefail; {script}")]).current_dir(folder);
        let output = command.output().expect("runs");
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    shell("PLEACH build t.csv -o t.pleach");
    let wanted = shell("PLEACH range t.pleach .. ..");
    let starts = |bytes: &[u8]| bytes.starts_with(b"ARROW1");
    for make in ["export t.pleach", "select t.pleach --where true", "join t.pleach t.pleach --how semi"] {
        let piped = shell(&format!("PLEACH {make} -o - --format arrow"));
        assert!(!starts(&piped) && piped.starts_with(&[0xff; 4]), "a stream: {make}");
        shell(&format!("PLEACH {make} -o t.arrow; PLEACH {make} -o t.arrows"));
        assert!(starts(&fs::read(folder.join("t.arrow")).expect("read")), "a file: {make}");
        assert_eq!(fs::read(folder.join("t.arrows")).expect("read"), piped, "{make}");
        let fifo = format!("mkfifo p; PLEACH {make} -o p --format arrow & cat p; wait $!; rm p");
        assert_eq!(shell(&fifo), piped, "{make}");
        for read in ["cat t.arrow", "cat t.arrows", &format!("PLEACH {make} -o - --format arrow")] {
            shell(&format!("{read} | PLEACH build - --format arrow -o back.pleach"));
            assert_eq!(shell("PLEACH range back.pleach .. .."), wanted, "{make} {read}");
        }
        // A table may go on to the next command.
        let more = "PLEACH reduce - --input-format arrow --op first";
        assert_eq!(shell(&format!("PLEACH {make} -o - --format arrow | {more}")), wanted);
    }
    let csv = shell("PLEACH select t.pleach --where 'key < 2' -o -");
    assert_eq!(csv, b"id,v\n0,0\n1,3\n");
    let refused = Command::new(env!("CARGO_BIN_EXE_pleach"))
        .args(["select", "t.pleach", "--where", "true", "-o", "-", "--format", "pleach"])
        .current_dir(folder)
        .output()
        .expect("runs");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot be written to standard output"));
}
