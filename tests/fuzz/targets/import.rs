//! Any bytes as an input table, under any options: an error, or a file that is whole and has as many tuples.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pleach::{Index, Verify};
use pleach_builder::source::Derived;
use pleach_builder::storage::MemoryStorage;
use pleach_builder::{BuildOptions, Chunk, Silent, build_with_storage};
use pleach_format::logical::part_type;
use pleach_format::record::FieldKind;
use pleach_format::{KeyType, Logical, ValueType};
use pleach_input::{FORMATS, Format, Header, InputOptions, Interval, NullCounts, Nulls, open_stream};
use std::io::Cursor;
use std::path::Path;
use std::sync::Mutex;

/// Logical types that are requested; the first means none.
const LOGICAL: [&str; 12] = [
    "",
    "date",
    "time[ms]",
    "timestamp[us,UTC]",
    "duration[ns]",
    "decimal(9,2)",
    "uuid",
    "ipv4",
    "ip",
    "hex",
    "hex:5",
    "dna2:canonical",
];

/// Types of the parts of composite keys, one for all.
const PARTS: [&str; 8] = ["u8", "u32", "i16", "u128", "utf8", "bytes", "date", "ipv4"];

fn options(choices: &[u8; 6]) -> InputOptions {
    let logical = |choice: usize| Logical::of_name(LOGICAL[choice % LOGICAL.len()]);
    // What is left of the choices of format and of the value's type.
    let (meant, how) = (choices[0] as usize / FORMATS.len(), choices[4] as usize / 7);
    let key_types = [
        None,
        Some(KeyType::U64),
        Some(KeyType::U32),
        Some(KeyType::I64),
        Some(KeyType::U128),
        Some(KeyType::F64),
        Some(KeyType::Utf8),
        Some(KeyType::Bytes),
        Some(KeyType::Fixed(5)),
    ];
    let value_types = [
        None,
        Some(ValueType::None),
        Some(ValueType::U64),
        Some(ValueType::I32),
        Some(ValueType::F64),
        Some(ValueType::Utf8),
        Some(ValueType::Fixed(3)),
    ];
    let columns =
        [None, Some("0"), Some("1"), Some("2"), Some("id"), Some("@row"), Some("id,a,b"), Some("1,2")];
    let format = FORMATS[choices[0] as usize % FORMATS.len()].format;
    let raw = (
        KeyType::NUMERIC[choices[1] as usize % KeyType::NUMERIC.len()],
        ValueType::NUMERIC[choices[2] as usize % ValueType::NUMERIC.len()],
    );
    InputOptions {
        format: Some(format),
        key: columns[choices[1] as usize % columns.len()].map(str::to_owned),
        value: columns[choices[2] as usize % columns.len()].map(str::to_owned),
        key_type: key_types[choices[3] as usize % key_types.len()],
        value_type: value_types[choices[4] as usize % value_types.len()],
        field_types: if choices[5] & 1 != 0 { vec![FieldKind::U32] } else { Vec::new() },
        key_logical: logical(meant),
        value_logical: logical(meant / LOGICAL.len()),
        field_logicals: if how & 2 != 0 { logical(how / 4).into_iter().collect() } else { Vec::new() },
        raw_values: how & 1 != 0,
        record: None,
        raw: (format == Format::Raw).then_some(raw),
        delimiter: (choices[5] & 2 != 0).then_some(b';'),
        no_header: choices[5] & 4 != 0,
        header: [Header::Checked, Header::Each, Header::First][choices[5] as usize / 64 % 3],
        changes: choices[5] & 0x18 == 0x18,
        op: None,
        key_name: (choices[5] & 64 != 0).then(|| "id".to_owned()),
        value_name: None,
        kmers: matches!(format, Format::Fasta | Format::Fastq).then(|| 1 + choices[2] as usize % 64),
        nulls: [Nulls::Error, Nulls::Skip, Nulls::Fill("0".to_owned())][meant / 7 % 3].clone(),
        null_counts: NullCounts::default(),
        derived: [None, None, Some(Derived::Hash), Some(Derived::Prefix)][choices[4] as usize / 64],
        part_types: if how & 4 != 0 { part_type(PARTS[meant % PARTS.len()]).into_iter().collect() } else { vec![] },
        interval: (choices[4] & 0xe0 == 0xe0)
            .then(|| Interval { end: Some("1".to_owned()), is_exclusive: how & 8 != 0 }),
    }
}

/// Builds a file of it, if that can be done.
fn import(choices: &[u8; 6], bytes: &[u8]) {
    let options = options(choices);
    let Ok(mut source) = open_stream("input", Box::new(Cursor::new(bytes.to_vec())), &options) else {
        return;
    };
    if options.changes {
        let mut chunk = Chunk::new(source.schema().key_type, source.schema().value_type);
        while source.next_chunk(&mut chunk, 1000).is_ok() && !chunk.is_empty() {}
        return;
    }
    let storage = MemoryStorage::default();
    let columns = choices[5] & 32 != 0;
    let build = BuildOptions { threads: 1, memory_bytes: 1 << 30, columns, ..BuildOptions::default() };
    let target = Path::new("/t.pleach");
    let Ok(summary) = build_with_storage(&mut *source, target, &build, &Silent, &storage) else { return };
    let file = storage.take(target).expect("built");
    let index = Index::options().verify(Verify::Full).from_bytes(file).expect("whole");
    assert_eq!(index.len(), summary.tuples);
    assert!(index.meta().is_ok());
}

/// Message of the last panic.
static SAID: Mutex<String> = Mutex::new(String::new());

fuzz_target!(
    init: {
        // The product catches panics of the formats' libraries; they are not findings.
        std::panic::set_hook(Box::new(|panic| *SAID.lock().expect("no panic in it") = panic.to_string()));
    },
    |data: &[u8]| {
        let Some((choices, bytes)) = data.split_first_chunk::<6>() else { return };
        if std::panic::catch_unwind(|| import(choices, bytes)).is_err() {
            eprintln!("{}", SAID.lock().expect("no panic in it"));
            std::process::abort();
        }
    }
);
