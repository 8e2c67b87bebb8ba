//! Inputs whose lengths were forged: refused or read, at the price of a good file's memory; and inputs of
//! features that this version does not have: what is said of them.
//!
//! Every place of a small file of each format takes the numbers that a forger would write there. The
//! allocator counts.

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, FixedSizeBinaryArray, LargeStringArray, RecordBatch, StringArray,
    StringViewArray, UInt64Array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use pleach_builder::source::{Chunk, Source, SourceError};
use pleach_input::{Format, InputOptions, open, open_stream};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::io::{Cursor, Write};
use std::sync::Arc;

/// Counts the memory that a thread holds.
struct Counting;

thread_local! {
    /// Bytes held since [`peak_of`] began, and the most there were.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn count(bytes: isize) {
    // A thread that ends has no counter any more.
    let _ = HELD.try_with(|held| {
        let now = held.get().0.saturating_add(bytes);
        held.set((now, held.get().1.max(now)));
    });
}

// SAFETY: memory is the system's; only sizes are counted, in a cell that allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: as our caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: as our caller promises.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: as our caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes.cast_signed() - layout.size().cast_signed());
        // SAFETY: as our caller promises.
        unsafe { System.realloc(at, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Memory that reading a few hundred rows may take: buffers of read calls, a batch, a chunk.
const PEAK_BYTES: isize = 48 << 20;

/// Reads all of an input, or as many chunks as no small file has.
fn drain(source: Result<Box<dyn Source>, SourceError>) -> Result<usize, SourceError> {
    let mut source = source?;
    let mut chunk = Chunk::new(source.schema().key_type, source.schema().value_type);
    let mut rows = 0;
    for _ in 0..32 {
        source.next_chunk(&mut chunk, 1 << 12)?;
        if chunk.is_empty() {
            break;
        }
        rows += chunk.len();
    }
    Ok(rows)
}

/// Reads bytes as a stream, and as a file. Neither takes much memory, whatever comes of it.
fn read(bytes: &[u8], format: Format, place: &str) -> Result<usize, SourceError> {
    // A stream in a file is read as any stream.
    let is_stream = format == Format::Arrow && !bytes.starts_with(b"ARROW1");
    let options = InputOptions { format: Some(format), ..InputOptions::default() };
    HELD.set((0, 0));
    let stream = drain(open_stream("t", Box::new(Cursor::new(bytes.to_vec())), &options));
    let peak = HELD.get().1;
    if let Err(error) = &stream {
        let line = error.to_string();
        assert!(!line.contains('\n') && line.contains(": "), "{place}: {line}");
    }
    assert!(peak <= PEAK_BYTES, "{place}: the stream took {peak} bytes: {stream:?}");
    if is_stream {
        return stream;
    }
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("written");
    HELD.set((0, 0));
    let from_file = drain(open(&[file.path().to_owned()], &options));
    let peak = HELD.get().1;
    assert!(peak <= PEAK_BYTES, "{place}: the file took {peak} bytes: {from_file:?}");
    from_file
}

/// Rows of a table of numbers, texts, fixed strings and a dictionary.
fn table(views: bool) -> RecordBatch {
    let texts: Vec<String> = (0..60).map(|row| format!("a text that is long enough {}", row % 7)).collect();
    let fixed =
        FixedSizeBinaryArray::try_from_iter(texts.iter().map(|text| &text.as_bytes()[..9])).expect("fixed");
    let keys = Arc::new(UInt64Array::from_iter_values(0..60)) as ArrayRef;
    let text: ArrayRef = if views {
        Arc::new(StringViewArray::from_iter_values(&texts))
    } else {
        Arc::new(StringArray::from_iter_values(&texts))
    };
    let dictionary: DictionaryArray<Int32Type> = texts.iter().map(String::as_str).collect();
    RecordBatch::try_from_iter([
        ("k", keys),
        ("v", text),
        ("large", Arc::new(LargeStringArray::from_iter_values(&texts)) as ArrayRef),
        ("fixed", Arc::new(fixed) as ArrayRef),
        ("dictionary", Arc::new(dictionary) as ArrayRef),
    ])
    .expect("a batch")
}

fn arrow(is_file: bool, codec: Option<CompressionType>, views: bool) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(codec).expect("is supported");
    let table = table(views);
    let mut bytes = Vec::new();
    if is_file {
        let mut writer =
            FileWriter::try_new_with_options(&mut bytes, &table.schema(), options).expect("writes");
        writer.write(&table).and_then(|()| writer.finish()).expect("writes");
    } else {
        let mut writer =
            StreamWriter::try_new_with_options(&mut bytes, &table.schema(), options).expect("writes");
        writer.write(&table).and_then(|()| writer.finish()).expect("writes");
    }
    bytes
}

/// Numbers that a forger writes in the place of a length.
const LENGTHS: [i64; 3] = [1 << 40, i64::MAX, i32::MAX as i64];

#[test]
fn forged_arrow_takes_no_memory() {
    for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        for (is_file, views) in [(true, false), (false, false), (true, true)] {
            let good = arrow(is_file, codec, views);
            assert_eq!(read(&good, Format::Arrow, "the good one").expect("reads"), 60);
            let mut refused = 0;
            for at in (0..good.len() - 8).step_by(4) {
                // Numbers of 8 bytes are at multiples of 8.
                for length in
                    LENGTHS.into_iter().filter(|&length| at % 8 == 0 || length == i64::from(i32::MAX))
                {
                    let mut forged = good.clone();
                    // Numbers of 4 bytes are next to each other.
                    if length == i64::from(i32::MAX) {
                        forged[at..at + 4].copy_from_slice(&i32::MAX.to_le_bytes());
                    } else {
                        forged[at..at + 8].copy_from_slice(&length.to_le_bytes());
                    }
                    let place = format!("{codec:?}, file {is_file}, views {views}, {length} at {at}");
                    refused += usize::from(read(&forged, Format::Arrow, &place).is_err());
                }
            }
            assert!(refused > good.len() / 8, "{refused}");
        }
    }
}

/// The lengths before the compressed buffers themselves.
#[test]
fn lengths_of_packed_buffers_are_bounded() {
    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let good = arrow(false, Some(codec), false);
        let table = table(false);
        // Buffers begin with what they unpack to: those of the keys, and of the texts.
        let texts: u64 =
            table.column(1).as_any().downcast_ref::<StringArray>().expect("texts").value_data().len() as u64;
        for length in [480_u64, texts] {
            // Behind it is the codec's own mark.
            let mark = if codec == CompressionType::ZSTD { 0xfd2f_b528_u32 } else { 0x184d_2204 };
            let start = [&length.to_le_bytes()[..], &mark.to_le_bytes()].concat();
            let at = good.windows(12).position(|bytes| bytes == start).expect("is there");
            for stated in [1_u64 << 40, 1 << 62, u64::MAX - 1, 1 << 33] {
                let mut forged = good.clone();
                forged[at..at + 8].copy_from_slice(&stated.to_le_bytes());
                let error =
                    read(&forged, Format::Arrow, &format!("{stated} for {length}")).expect_err("is forged");
                let error = error.to_string();
                assert!(
                    error.contains("decompress to") && error.ends_with("it is truncated or damaged"),
                    "{error}"
                );
            }
        }
    }
}

fn parquet(codec: Compression, version: WriterVersion, encoding: Option<Encoding>) -> Vec<u8> {
    let mut properties = WriterProperties::builder().set_compression(codec).set_writer_version(version);
    if let Some(encoding) = encoding {
        properties = properties.set_dictionary_enabled(false).set_column_encoding("v".into(), encoding);
    }
    let table = table(false).project(&[0, 1, 3]).expect("columns");
    let mut bytes = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut bytes, table.schema(), Some(properties.build())).expect("writes");
    writer.write(&table).expect("writes");
    writer.close().expect("writes");
    bytes
}

/// A number as Thrift's compact protocol and the delta encodings write it.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

#[test]
fn forged_parquet_takes_no_memory() {
    let zstd = Compression::ZSTD(ZstdLevel::default());
    for (codec, version, encoding) in [
        (zstd, WriterVersion::PARQUET_1_0, None),
        (Compression::UNCOMPRESSED, WriterVersion::PARQUET_2_0, Some(Encoding::DELTA_LENGTH_BYTE_ARRAY)),
        (Compression::UNCOMPRESSED, WriterVersion::PARQUET_1_0, Some(Encoding::DELTA_BYTE_ARRAY)),
    ] {
        let good = parquet(codec, version, encoding);
        assert_eq!(read(&good, Format::Parquet, "the good one").expect("reads"), 60);
        let footer =
            u32::from_le_bytes(good[good.len() - 8..good.len() - 4].try_into().expect("four")) as usize;
        let footer_at = good.len() - 8 - footer;
        let mut refused = 0;
        for at in 4..good.len() - 8 {
            for number in [0xffff_fffe_u64, 0x7fff_fffe, 1 << 40, u64::MAX >> 1] {
                // One byte becomes a number: what follows it moves.
                let mut forged = good[..at].to_vec();
                forged.extend(varint(number));
                if at >= footer_at {
                    forged.extend_from_slice(&good[at + 1..]);
                    let length = (forged.len() - 8 - footer_at) as u32;
                    let tail = forged.len() - 8;
                    forged[tail..tail + 4].copy_from_slice(&length.to_le_bytes());
                } else {
                    // Places in the footer stay: what was there goes.
                    let rest = forged.len();
                    forged.extend_from_slice(&good[rest.min(footer_at)..]);
                }
                let place = format!("{codec:?}, {version:?}, {encoding:?}, {number:#x} at {at}");
                refused += usize::from(read(&forged, Format::Parquet, &place).is_err());
            }
        }
        assert!(refused > good.len(), "{refused}");
    }
}

fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
    bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

#[test]
fn forged_npy_takes_no_memory() {
    let data = [1_u8; 480];
    for (header, rows) in [
        ("{'descr': '<u8', 'fortran_order': False, 'shape': (30, 2)}", 30),
        ("{'descr': '<u8', 'fortran_order': True, 'shape': (30, 2)}", 30),
        (
            "{'descr': [('a', '<u8'), ('b', '<u4'), ('c', '<u4', (1,))], 'fortran_order': False, 'shape': (30,)}",
            30,
        ),
        ("{'descr': '|S16', 'fortran_order': False, 'shape': (30,)}", 30),
        ("{'descr': '<U4', 'fortran_order': False, 'shape': (30,)}", 30),
    ] {
        if !header.contains("U4") {
            assert_eq!(read(&npy(header, &data), Format::Npy, header).expect("reads"), rows);
        }
        // Each number, greater.
        for (at, letter) in header.char_indices().filter(|(_, letter)| letter.is_ascii_digit()) {
            for number in ["0", "99999999", "1099511627776", "9999999999999999999"] {
                let forged = format!("{}{number}{}", &header[..at], &header[at + letter.len_utf8()..]);
                let _ = read(&npy(&forged, &data), Format::Npy, &forged);
            }
        }
        for length in [u32::MAX, 1 << 30, 1 << 22] {
            let mut forged = npy(header, &data);
            forged[8..12].copy_from_slice(&length.to_le_bytes());
            read(&forged, Format::Npy, "the length of the header").expect_err("is forged");
        }
    }
    let nested = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    read(&npy(&nested, &data), Format::Npy, "nested").expect_err("is forged");
}

/// Columns one after the other are read as a data frame has them, from files and streams, in any choice of
/// columns.
#[test]
fn fortran_order_is_read() {
    let (rows, columns) = (1_300_000_u64, 3_u64);
    let data: Vec<u8> = (0..columns)
        .flat_map(|column| (0..rows).map(move |row| (row * 10 + column) as u32))
        .flat_map(u32::to_be_bytes)
        .collect();
    let bytes =
        npy(&format!("{{'descr': '>u4', 'fortran_order': True, 'shape': ({rows}, {columns})}}"), &data);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.npy");
    fs::write(&path, &bytes).expect("written");
    for (key, value) in [(0, 1), (2, 0), (1, 1)] {
        let options = InputOptions {
            format: Some(Format::Npy),
            key: Some(key.to_string()),
            value: Some(value.to_string()),
            ..InputOptions::default()
        };
        for is_file in [true, false] {
            let mut source = if is_file {
                open(std::slice::from_ref(&path), &options).expect("opens")
            } else {
                open_stream("t", Box::new(Cursor::new(bytes.clone())), &options).expect("opens")
            };
            let mut chunk = Chunk::new(source.schema().key_type, source.schema().value_type);
            let mut row = 0;
            loop {
                source.next_chunk(&mut chunk, 1 << 16).expect("reads");
                if chunk.is_empty() {
                    break;
                }
                let (pleach_builder::Column::U32(keys), pleach_builder::Column::U32(values)) =
                    (&chunk.keys, &chunk.values)
                else {
                    panic!("numbers of four bytes")
                };
                for (&one, &other) in keys.iter().zip(values) {
                    assert_eq!((u64::from(one), u64::from(other)), (row * 10 + key, row * 10 + value));
                    row += 1;
                }
            }
            assert_eq!(row, rows);
        }
    }
    // One long row of a wide array is short where few columns are wanted.
    let wide: Vec<u8> = (0..2 * 100_000_u64).flat_map(u64::to_le_bytes).collect();
    let wide = npy("{'descr': '<u8', 'fortran_order': True, 'shape': (2, 100000)}", &wide);
    assert_eq!(read_rows(&wide), 2);
}

fn read_rows(bytes: &[u8]) -> usize {
    let options = InputOptions { format: Some(Format::Npy), ..InputOptions::default() };
    drain(open_stream("t", Box::new(Cursor::new(bytes.to_vec())), &options)).expect("reads")
}

/// The bytes with the first `from` as `to`.
fn patched(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|window| window == from).expect("is there");
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let quads = bytes.chunks(3).map(|three| {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(three.get(at).copied().unwrap_or(0)));
        let letter = |at: usize| char::from(LETTERS[(bits >> (18 - 6 * at) & 63) as usize]);
        (0..4).map(|at| if at <= three.len() { letter(at) } else { '=' }).collect::<String>()
    });
    quads.collect()
}

/// Messages about unsupported features: what, where, what to do. None of them says that the file is damaged.
#[test]
fn features_that_are_not_read_are_named() {
    const HELD: &str = "integers (8 to 64 bits), floats (32 or 64 bits), dates, times, timestamps, durations, \
                        decimals, booleans, texts or binary strings";
    let numbers = |name: &str| {
        RecordBatch::try_from_iter([
            (name, Arc::new(UInt64Array::from_iter_values(0..60)) as ArrayRef),
            ("v", Arc::new(UInt64Array::from_iter_values(0..60)) as ArrayRef),
        ])
        .expect("a batch")
    };
    let parquet = |table: &RecordBatch| {
        let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
        let options = parquet::arrow::arrow_writer::ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(true);
        let mut bytes = Vec::new();
        let mut writer =
            ArrowWriter::try_new_with_options(&mut bytes, table.schema(), options).expect("writes");
        writer.write(table).expect("writes");
        writer.close().expect("writes");
        bytes
    };
    let file = |table: &RecordBatch| {
        let mut bytes = Vec::new();
        let mut writer = FileWriter::try_new(&mut bytes, &table.schema()).expect("writes");
        writer.write(table).and_then(|()| writer.finish()).expect("writes");
        drop(writer);
        bytes
    };
    // The codec of a column follows its path in the footer.
    let codec = |code: u8| {
        patched(&parquet(&numbers("k")), b"\x19\x18\x01k\x15\x00", &[0x19, 0x18, 1, b'k', 0x15, code])
    };
    let mut encrypted = parquet(&numbers("k"));
    let tail = encrypted.len() - 4;
    encrypted[tail..].copy_from_slice(b"PARE");
    let runs: arrow_array::Int32RunArray = ["a", "a", "b"].into_iter().collect();
    let runs = RecordBatch::try_from_iter([("k", Arc::new(runs) as ArrayRef)]).expect("a batch");
    let nulls = UInt64Array::from(vec![Some(1), None]);
    let nulls = RecordBatch::try_from_iter([("k", Arc::new(nulls) as ArrayRef)]).expect("a batch");
    let texts = Arc::new(StringArray::from(vec!["7", ""])) as ArrayRef;
    let texts = RecordBatch::try_from_iter([("k", texts)]).expect("a batch");
    let lists =
        arrow_array::ListArray::from_iter_primitive::<arrow_array::types::UInt8Type, _, _>([Some([Some(1)])]);
    let lists = RecordBatch::try_from_iter([("k", Arc::new(lists) as ArrayRef)]).expect("a batch");
    let held = lists.schema().field(0).data_type().to_string();
    let array = |header: &str| npy(header, &[0; 480]);
    let npy_error = |held: &str| {
        format!(
            "column 0: wrong type: it holds {held}, but keys are {HELD}: choose another column with --key"
        )
    };
    let plain = InputOptions::default();
    let as_number = InputOptions { key_type: Some(pleach_format::KeyType::U128), ..plain.clone() };
    let advice = "which this version does not read: write it with zstd or snappy";
    let null = "it is null: leave such rows out with --nulls skip, fill values in with \
     --nulls default=V, or choose another column";
    let rows: Vec<(&str, Format, Vec<u8>, &InputOptions, String)> = vec![
        ("LZO", Format::Parquet, codec(6), &plain, format!("column \"k\" is compressed with LZO, {advice}")),
        (
            "encryption",
            Format::Parquet,
            encrypted,
            &plain,
            "it is encrypted, which this version does not read: write it without encryption".into(),
        ),
        ("null", Format::Parquet, parquet(&nulls), &plain, format!("row 2, column \"k\": {null}")),
        ("null", Format::Arrow, file(&nulls), &plain, format!("row 2, column \"k\": {null}")),
        (
            "an empty text",
            Format::Parquet,
            parquet(&texts),
            &as_number,
            "row 2, column \"k\": it is an empty text, not a whole number: fill or drop such rows, or choose another \
             type with --key-type"
                .into(),
        ),
        (
            "run-end encoding",
            Format::Arrow,
            file(&runs),
            &plain,
            format!(
                "column \"k\": wrong type: it holds {}, but keys are {HELD}: choose another column with --key",
                runs.schema().field(0).data_type()
            ),
        ),
        (
            "lists",
            Format::Arrow,
            file(&lists),
            &plain,
            format!("column \"k\": wrong type: it holds {held}, but keys are {HELD}: choose another column with --key"),
        ),
        (
            "Feather of old",
            Format::Arrow,
            b"FEA1\0\0\0\0 and more FEA1".to_vec(),
            &plain,
            "it is Feather of version 1, which this version does not read: write it again as version 2".into(),
        ),
        (
            "objects",
            Format::Npy,
            array("{'descr': '|O', 'fortran_order': False, 'shape': (60,)}"),
            &plain,
            "it holds Python objects: save numbers".into(),
        ),
        (
            "complex numbers",
            Format::Npy,
            array("{'descr': '<c16', 'fortran_order': False, 'shape': (30,)}"),
            &plain,
            npy_error("<c16"),
        ),
        (
            "three dimensions",
            Format::Npy,
            array("{'descr': '<u8', 'fortran_order': True, 'shape': (5, 4, 3)}"),
            &plain,
            "its shape is (5, 4, 3): one or two dimensions are supported, one if it is structured".into(),
        ),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t");
    for (name, format, bytes, options, wanted) in rows {
        fs::write(&path, bytes).expect("written");
        let options = InputOptions { format: Some(format), ..options.clone() };
        let error = drain(open(std::slice::from_ref(&path), &options)).expect_err(name).to_string();
        assert_eq!(error, format!("{}: {wanted}", path.display()), "{name}");
    }
    // The types of Arrow are stored with those of Parquet; one of them is unknown, but the others are read
    // all the same.
    let table = numbers("big");
    let mut message = Vec::new();
    StreamWriter::try_new(&mut message, &table.schema()).expect("writes");
    let message = patched(&message, &64_u32.to_le_bytes(), &128_u32.to_le_bytes());
    let types = parquet::file::metadata::KeyValue::new("ARROW:schema".to_owned(), base64(&message));
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![types])).build();
    let options = parquet::arrow::arrow_writer::ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true);
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new_with_options(&mut bytes, table.schema(), options).expect("writes");
    writer.write(&table).expect("writes");
    writer.close().expect("writes");
    fs::write(&path, &bytes).expect("written");
    let options =
        InputOptions { format: Some(Format::Parquet), key: Some("v".into()), ..InputOptions::default() };
    assert_eq!(drain(open(std::slice::from_ref(&path), &options)).expect("reads"), 60);
    // In Arrow all columns are read, and the one that is not known is named.
    let good = file(&numbers("big"));
    let widths = (0..good.len() - 4).filter(|&at| good[at..at + 4] == 64_u32.to_le_bytes());
    let named = widths.filter(|&at| {
        let mut forged = good.clone();
        forged[at..at + 4].copy_from_slice(&128_u32.to_le_bytes());
        let error = drain(open_stream(
            "t",
            Box::new(Cursor::new(forged)),
            &InputOptions { format: Some(Format::Arrow), ..InputOptions::default() },
        ));
        error.is_err_and(|error| {
            let error = error.to_string();
            error.starts_with(
                "t: column \"big\" has a type that this version does not read (Int type with bit width",
            ) && error.ends_with("leave the column out, or write it as another type")
        })
    });
    assert_eq!(named.count(), 1);
}
