//! Records on the command line: values of several columns go in, are shown, and come out again.

use arrow_array::{
    ArrayRef, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float64Array, Int8Array, Int16Array,
    Int32Array, RecordBatch, StringArray, UInt8Array, UInt16Array, UInt32Array,
};
use arrow_schema::{DataType, Field, Schema};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    #[track_caller]
    fn output(&self, args: &[&str], code: i32) -> Output {
        let output = Command::new(env!("CARGO_BIN_EXE_pleach"))
            .args(args)
            .current_dir(self.0.path())
            .output()
            .expect("the binary runs");
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// Standard output.
    #[track_caller]
    fn run(&self, args: &[&str], code: i32) -> String {
        String::from_utf8(self.output(args, code).stdout).expect("text")
    }

    /// The line on standard error.
    #[track_caller]
    fn refused(&self, args: &[&str], code: i32, line: &str) {
        let output = self.output(args, code);
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("error: {line}\n"));
    }

    #[track_caller]
    fn same(&self, one: &str, other: &str) {
        let read = |name| fs::read(self.path(name)).expect("reads");
        assert!(read(one) == read(other), "{one} and {other} differ");
        // The next builds of them begin anew.
        let _ = fs::remove_file(self.path(other));
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.run(args, 0)).expect("JSON")
    }
}

const TABLE: &str = "id,left,right,\"a tag\"\n7,1,0.5,abc\n3,255,-1e300,\\x000102\n7,0,NaN,\"x,y\"\n";
const BUILD: [&str; 8] =
    ["build", "t.csv", "-o", "t.pleach", "--value", "left,right,a tag", "--value-type", "u8,f64,bytes3"];

#[test]
fn text_goes_in_and_out() {
    let place = Place::new();
    place.write("t.csv", TABLE);
    let told = place.output(&BUILD, 0);
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("u64 to record<left: u8, right: f64, \"a tag\": bytes3>"), "{told}");
    assert_eq!(
        place.run(&["get", "t.pleach", "7", "4", "3", "--all"], 1),
        "7\t1\t0.5\t616263\n7\t0\tNaN\t782c79\n3\t255\t-1e300\t000102\n"
    );
    assert_eq!(place.run(&["get", "t.pleach", "7", "--rank"], 0), "7\t1\n");
    assert_eq!(
        place.run(&["range", "t.pleach", "..", "..", "--limit", "2"], 0),
        "3\t255\t-1e300\t000102\n7\t1\t0.5\t616263\n"
    );
    assert_eq!(
        place.json(&["get", "t.pleach", "7", "--json"]),
        json!({ "key": "7", "value": { "left": 1, "right": 0.5, "a tag": "616263" } })
    );
    let text = place.run(&["inspect", "t.pleach"], 0);
    let values = "\n  values      bytes12 as record\n    field     left: u8, from byte 0\n";
    assert!(text.contains(values), "{text}");
    assert!(text.contains("\"a tag\": bytes3, from byte 9\n"), "{text}");
    let fields = &place.json(&["inspect", "t.pleach", "--json"])["value"]["record"];
    assert_eq!(fields[1], json!({ "name": "right", "type": "f64", "logical": "", "offset": 1 }));
    place.run(&["fsck", "t.pleach"], 0);
    for table in ["out.csv", "out.tsv", "out.parquet", "out.arrow"] {
        place.run(&["export", "t.pleach", "-o", table], 0);
        let types: &[&str] = if table.ends_with("sv") { &BUILD[6..] } else { &[] };
        let values = ["build", table, "-o", "b.pleach", "--value", "left,right,a tag"];
        place.run(&[&values[..], types].concat(), 0);
        place.same("t.pleach", "b.pleach");
    }
    assert_eq!(
        fs::read_to_string(place.path("out.csv")).expect("reads"),
        "id,left,right,a tag\n3,255,-1e300,\\x000102\n7,1,0.5,\\x616263\n7,0,NaN,\\x782c79\n"
    );
}

#[test]
fn records_of_a_word_are_numbers_inside() {
    let place = Place::new();
    let rows: String = (0..1000).map(|row| format!("{},{},{}\n", row * 3 % 1000, row, 1000 - row)).collect();
    place.write("t.csv", &format!("k,a,b\n{rows}"));
    for (types, stored) in [("u16", "u32"), ("u32,i32", "u64"), ("i16,u64", "bytes10")] {
        let build =
            ["build", "t.csv", "-o", "t.pleach", "--key-type", "u32", "--value", "a,b", "--value-type"];
        place.run(&[&build[..], &[types]].concat(), 0);
        assert_eq!(place.json(&["inspect", "t.pleach", "--json"])["value"]["type"], json!(stored));
        assert_eq!(
            place.run(&["get", "t.pleach", "0", "999", "2"], 0),
            "0\t0\t1000\n999\t333\t667\n2\t334\t666\n"
        );
        place.run(&["export", "t.pleach", "-o", "t.parquet"], 0);
        place.run(&["build", "t.parquet", "-o", "b.pleach", "--key", "k", "--value", "a,b"], 0);
        place.same("t.pleach", "b.pleach");
        fs::remove_file(place.path("t.pleach")).expect("removed");
    }
}

#[test]
fn columns_keep_their_types() {
    let place = Place::new();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("k", Arc::new(UInt32Array::from(vec![2, 1]))),
        ("u8", Arc::new(UInt8Array::from(vec![200, 0]))),
        ("i8", Arc::new(Int8Array::from(vec![-128, 127]))),
        ("u16", Arc::new(UInt16Array::from(vec![65535, 0]))),
        ("i16", Arc::new(Int16Array::from(vec![-32768, 1]))),
        ("i32", Arc::new(Int32Array::from(vec![i32::MIN, 5]))),
        ("f64", Arc::new(Float64Array::from(vec![0.1, -0.0]))),
        ("day", Arc::new(Date32Array::from(vec![9000, -1]))),
        (
            "price",
            Arc::new(
                Decimal128Array::from(vec![12345, -1]).with_precision_and_scale(15, 2).expect("is a decimal"),
            ),
        ),
        (
            "id",
            Arc::new(FixedSizeBinaryArray::try_from_iter(["ab", "cd"].iter()).expect("are of one length")),
        ),
        ("text", Arc::new(StringArray::from(vec!["four", "more"]))),
    ];
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), false)).collect();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema.clone(), columns.into_iter().map(|(_, array)| array).collect());
    let file = File::create(place.path("t.arrow")).expect("creates");
    let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &schema).expect("begins");
    writer.write(&batch.expect("is a batch")).expect("writes");
    writer.finish().expect("ends");
    let names = "u8,i8,u16,i16,i32,f64,day,price,id";
    place.run(&["build", "t.arrow", "-o", "t.pleach", "--value", names], 0);
    assert_eq!(
        place.run(&["get", "t.pleach", "2"], 0),
        "2\t200\t-128\t65535\t-32768\t-2147483648\t0.1\t1994-08-23\t123.45\t6162\n"
    );
    for table in ["out.parquet", "out.arrow"] {
        place.run(&["export", "t.pleach", "-o", table], 0);
        place.run(&["build", table, "-o", "b.pleach", "--value", names], 0);
        place.same("t.pleach", "b.pleach");
    }
    let file = File::open(place.path("out.parquet")).expect("is there");
    let read =
        parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).expect("is Parquet");
    let types: Vec<&DataType> = read.schema().fields().iter().map(|field| field.data_type()).collect();
    assert_eq!(types[1], &DataType::UInt8);
    assert_eq!(types[7], &DataType::Date32);
    assert_eq!(types[8], &DataType::Decimal128(15, 2));
    place.run(&["build", "t.arrow", "-o", "b.pleach", "--value", "text,u8", "--value-type", "bytes4,u8"], 0);
    assert_eq!(place.run(&["get", "b.pleach", "1"], 0), "1\t6d6f7265\t0\n");
    fs::remove_file(place.path("b.pleach")).expect("removed");
    place.run(&["build", "t.arrow", "-o", "b.pleach", "--value", "text,u8"], 0);
    assert_eq!(place.run(&["get", "b.pleach", "1"], 0), "1\tmore\t0\n");
    place.refused(
        &["build", "t.arrow", "-o", "b.pleach", "--value", "u16,i16", "--value-type", "u8,i16"],
        8,
        "bad input: t.arrow: row 1, column \"u16\": 65535 does not fit u8 (0 to 255): choose another type with \
         --value-type",
    );
}

#[test]
fn arrays_of_fields() {
    let place = Place::new();
    let mut header =
        String::from("{'descr': [('k', '<u4'), ('a', '|u1'), ('b', '>i2')], 'fortran_order': False, ");
    header.push_str("'shape': (2,), }");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(&[5, 0, 0, 0, 9, 0xFF, 0xFE, 4, 0, 0, 0, 8, 1, 0]);
    fs::write(place.path("t.npy"), bytes).expect("written");
    place.run(&["build", "t.npy", "-o", "t.pleach", "--value", "b,a"], 0);
    assert_eq!(place.run(&["range", "t.pleach", "..", ".."], 0), "4\t256\t8\n5\t-2\t9\n");
    assert_eq!(place.json(&["inspect", "t.pleach", "--json"])["value"]["type"], json!("bytes3"));
}

#[test]
fn rebuilds_keep_the_fields() {
    let place = Place::new();
    place.write("t.csv", TABLE);
    place.run(&BUILD, 0);
    // By their names in any order, and short rows where nothing is needed.
    place.write("c.csv", "op,id,right,left,a tag\nput,3,2.5,9,new\ndel,7,,,\nadd,1,1,1,one\ndel,8\n");
    place.run(&["rebuild", "t.pleach", "--apply", "c.csv"], 0);
    assert_eq!(place.run(&["range", "t.pleach", "..", ".."], 0), "1\t1\t1.0\t6f6e65\n3\t9\t2.5\t6e6577\n");
    // By their places.
    place.write("n.csv", "put,1,4,5,two\n");
    place.run(&["rebuild", "t.pleach", "--apply", "n.csv", "--no-header"], 0);
    assert_eq!(place.run(&["get", "t.pleach", "1"], 0), "1\t4\t5.0\t74776f\n");
    let change = ["rebuild", "t.pleach", "--apply", "bad.csv"];
    place.write("bad.csv", "op,id,left,right\nput,1,4,5\n");
    place.refused(
        &change,
        8,
        "bad input: bad.csv: no column \"a tag\": the columns are \"op\", \"id\", \"left\", \"right\"",
    );
    place.write("bad.csv", "op,id,left,right,a tag\nput,1,256,5,two\n");
    place.refused(
        &change,
        8,
        "bad input: bad.csv: row 1, column \"left\": 256 does not fit u8 (0 to 255): choose another type with \
         --value-type",
    );
    place.run(&["compact", "t.pleach", "t.pleach", "-o", "c.pleach"], 0);
    assert_eq!(place.run(&["get", "c.pleach", "1"], 0), "1\t4\t5.0\t74776f\n");
    place.run(
        &[&BUILD[..2], &["-o", "u.pleach", "--value", "right,left,a tag"], &BUILD[6..7], &["f64,u8,bytes3"]]
            .concat(),
        0,
    );
    place.output(&["compact", "t.pleach", "u.pleach", "-o", "c.pleach"], 8);
}

#[test]
fn what_makes_no_record() {
    let place = Place::new();
    place.write("t.csv", "k,a,b,\"a,b\"\n1,2,3,4\n");
    let build = ["build", "t.csv", "-o", "t.pleach"];
    let with = |more: &[&'static str]| [&build[..], more].concat();
    // The name of a column goes before a list of names.
    place.run(&with(&["--value", "a,b"]), 0);
    assert_eq!(place.run(&["get", "t.pleach", "1"], 0), "1\t4\n");
    let input = "bad input: t.csv:";
    let known = "the columns are \"k\", \"a\", \"b\", \"a,b\"";
    for (more, code, line) in [
        (&["--value", "a,c"][..], 8, format!("{input} no column \"c\": {known}")),
        (&["--value", "a,a"], 8, format!("{input} two fields of a record have the name \"a\": rename one")),
        (
            &["--value", "a,b,k", "--value-type", "u8,u8"],
            8,
            format!("{input} there are 3 value columns, but 2 types: give one for each, or one for all"),
        ),
        (
            &["--value", "b,a", "--value-type", "u8,text"],
            2,
            "unknown type in 'u8,text' for the fields of a record: --value-type <T,...>: use u8 u16 u32 u64 i8 i16 \
             i32 i64 f32 f64 bytes16 (any N) bytes utf8 bool, or date time[us] timestamp[us] timestamp[us,UTC] \
             duration[us] decimal(10,2) uuid ipv4 ipv6 ip hex hex:16 (first digits) dna2 dna2:canonical"
                .to_owned(),
        ),
        (
            &["--value", "a", "--value-type", "u8"],
            2,
            "types of fields without fields: --value-type: name the columns of a record with --value a,b"
                .to_owned(),
        ),
    ] {
        place.refused(&with(more), code, &line);
    }
    place.run(&with(&["--value", "b,a", "--value-type", "none"]), 0);
    assert_eq!(place.run(&["get", "t.pleach", "1"], 0), "1\n");
}

const TEXTS: &str = "id,n,name,flag,blob,day\n7,1,\"a,b\",true,\\x00ff,2024-01-01\n3,255,,FALSE,xyz,1970-01-02\n\
                     7,0,\"tab\tline\",1,,1999-12-31\n";
const OF_TEXTS: [&str; 8] = [
    "build",
    "t.csv",
    "-o",
    "t.pleach",
    "--value",
    "n,name,flag,blob,day",
    "--value-type",
    "u8,utf8,bool,bytes,date",
];

#[test]
fn texts_and_booleans_go_in_and_out() {
    let place = Place::new();
    place.write("t.csv", TEXTS);
    let told = String::from_utf8_lossy(&place.output(&OF_TEXTS, 0).stderr).into_owned();
    let record = "record<n: u8, name: utf8, flag: u8 bool, blob: bytes, day: i32 date>";
    assert!(told.contains(&format!("u64 to {record}")), "{told}");
    assert_eq!(
        place.run(&["get", "t.pleach", "7", "3", "--all"], 0),
        "7\t1\ta,b\ttrue\t00ff\t2024-01-01\n7\t0\ttab\\tline\ttrue\t\t1999-12-31\n\
         3\t255\t\tfalse\t78797a\t1970-01-02\n"
    );
    assert_eq!(
        place.json(&["get", "t.pleach", "7", "--json"]),
        json!({
            "key": "7",
            "value": { "n": 1, "name": "a,b", "flag": true, "blob": "00ff", "day": "2024-01-01" },
        })
    );
    assert_eq!(
        place.run(&["range", "t.pleach", "..", "..", "--limit", "1", "--raw-values"], 0),
        "3\t255\t\t0\t78797a\t1\n"
    );
    place.run(&["fsck", "t.pleach"], 0);
    let text = place.run(&["inspect", "t.pleach"], 0);
    let values = "\n  values      bytes as record\n    field     n: u8, from byte 0\n";
    assert!(text.contains(values), "{text}");
    assert!(text.contains("    field     name: utf8, its end from byte 1\n"), "{text}");
    for table in ["out.csv", "out.tsv", "out.parquet", "out.arrow"] {
        place.run(&["export", "t.pleach", "-o", table], 0);
        let types: &[&str] = if table.ends_with("sv") { &OF_TEXTS[6..] } else { &[] };
        let values = ["build", table, "-o", "b.pleach", "--value", OF_TEXTS[5]];
        place.run(&[&values[..], types].concat(), 0);
        place.same("t.pleach", "b.pleach");
    }
    let file = File::open(place.path("out.parquet")).expect("is there");
    let read =
        parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).expect("is Parquet");
    let types: Vec<&DataType> = read.schema().fields().iter().map(|field| field.data_type()).collect();
    assert_eq!(types[2..5], [&DataType::Utf8, &DataType::Boolean, &DataType::Binary]);
    // Changes.
    place.write("c.csv", "op,id,name,n,flag,day,blob\nput,3,new,9,0,2000-01-01,\\x01\ndel,7,,,,,\n");
    place.run(&["rebuild", "t.pleach", "--apply", "c.csv"], 0);
    assert_eq!(place.run(&["range", "t.pleach", "..", ".."], 0), "3\t9\tnew\tfalse\t01\t2000-01-01\n");
    place.write("c.csv", "op,id,name,n,flag,day,blob\nput,3,new,9,maybe,2000-01-01,\\x01\n");
    place.refused(
        &["rebuild", "t.pleach", "--apply", "c.csv"],
        8,
        "bad input: c.csv: row 1, column \"flag\": not a boolean: \"maybe\": use true or false",
    );
}

#[test]
fn booleans_are_values() {
    let place = Place::new();
    place.write("t.csv", "k,v\n5,true\n1,0\n3,False\n");
    let build = ["build", "t.csv", "-o", "t.pleach", "--value-type", "bool"];
    let told = String::from_utf8_lossy(&place.output(&build, 0).stderr).into_owned();
    assert!(told.contains("u64 to u32 bool"), "{told}");
    assert_eq!(place.run(&["range", "t.pleach", "..", ".."], 0), "1\tfalse\n3\tfalse\n5\ttrue\n");
    assert_eq!(place.run(&["get", "t.pleach", "5", "--raw-values"], 0), "5\t1\n");
    assert_eq!(place.json(&["get", "t.pleach", "5", "--json"]), json!({ "key": "5", "value": true }));
    for table in ["out.csv", "out.tsv", "out.parquet", "out.arrow"] {
        place.run(&["export", "t.pleach", "-o", table], 0);
        let types: &[&str] = if table.ends_with("sv") { &build[4..] } else { &[] };
        place.run(&[&["build", table, "-o", "b.pleach"], types].concat(), 0);
        place.same("t.pleach", "b.pleach");
    }
    assert_eq!(fs::read_to_string(place.path("out.csv")).expect("reads"), "k,v\n1,false\n3,false\n5,true\n");
    // Relations keep what values mean.
    place.run(&["select", "t.pleach", "--where", "value = 1", "-o", "s.pleach"], 0);
    assert_eq!(place.run(&["get", "s.pleach", "5"], 0), "5\ttrue\n");
    for (condition, keys) in [
        ("value", "5\ttrue\n"),
        ("not value", "1\tfalse\n3\tfalse\n"),
        ("value = true", "5\ttrue\n"),
        ("value != 'true' and key > 1", "3\tfalse\n"),
        ("false = value", "1\tfalse\n3\tfalse\n"),
        ("value in (true, 0)", "1\tfalse\n3\tfalse\n5\ttrue\n"),
    ] {
        assert_eq!(place.run(&["select", "t.pleach", "--where", condition], 0), keys, "{condition}");
    }
    place.write("u.csv", "k,name\n5,five\n3,three\n4,four\n");
    place.run(&["build", "u.csv", "-o", "u.pleach", "--value-type", "utf8"], 0);
    place.run(&["join", "t.pleach", "u.pleach", "-o", "j.pleach", "--how", "left"], 0);
    assert_eq!(
        place.run(&["range", "j.pleach", "..", ".."], 0),
        "1\tfalse\t\t1\n3\tfalse\tthree\t3\n5\ttrue\tfive\t3\n"
    );
    place.run(&["fsck", "j.pleach"], 0);
    place.run(&["select", "j.pleach", "--where", "right like 'f%'", "-o", "f.csv"], 0);
    assert_eq!(
        fs::read_to_string(place.path("f.csv")).expect("reads"),
        "k,left,right,sides\n5,true,five,3\n"
    );
    place.refused(
        &["build", "t.csv", "-o", "b.pleach", "--key-type", "bool"],
        2,
        "unknown key type 'bool': --key-type <T>: use one of u32 u64 i32 i64 u128 f64 bytes16 (any N) bytes utf8, or \
         date time[us] timestamp[us] timestamp[us,UTC] duration[us] decimal(10,2) uuid ipv4 ipv6 ip hex hex:16 \
         (first digits) dna2 dna2:canonical",
    );
}
