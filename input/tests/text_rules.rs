//! Rules for text before its lines are read: one table for all functions of the library that read text. The
//! command line has the same table for its own functions (`tools/tests/text.rs`).

use flate2::Compression;
use flate2::write::GzEncoder;
use pleach_builder::source::{Chunk, Column, Op, Source};
use pleach_format::{KeyType, ValueType};
use pleach_input::{Format, InputOptions, open, open_stream, text};
use proptest::prelude::*;
use std::fs;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("writes");
    encoder.finish().expect("ends")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("writes")
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).expect("writes");
    encoder.finish().expect("ends")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder =
        lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).expect("starts");
    encoder.write_all(bytes).expect("writes");
    encoder.finish().expect("ends")
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).expect("writes");
    encoder.finish().expect("ends")
}

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let fast = brotli::enc::BrotliEncoderParams { quality: 1, ..Default::default() };
    brotli::BrotliCompress(&mut &bytes[..], &mut out, &fast).expect("writes");
    out
}

/// A codec: its name, the extension of its files, and how bytes are compressed.
type Codec = (&'static str, &'static str, fn(&[u8]) -> Vec<u8>);

const CODECS: [Codec; 6] = [
    ("gzip", "gz", gzip),
    ("zstd", "zst", zstd),
    ("bzip2", "bz2", bzip2),
    ("xz", "xz", xz),
    ("lz4", "lz4", lz4),
    ("brotli", "br", brotli),
];

/// Packed in two pieces, cut in the middle of a line.
fn twice(bytes: &[u8], pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let (one, two) = bytes.split_at(bytes.len() / 2);
    [pack(one), pack(two)].concat()
}

fn replaced(text: &str, from: &str, to: &str) -> Vec<u8> {
    text.replace(from, to).into_bytes()
}

/// A rule: its name, what it makes of lines that end in line feeds, and what comes of them: their rows, or
/// an error that says so.
type Rule = (&'static str, fn(&str) -> Vec<u8>, Result<(), &'static str>);

const RULES: &[Rule] = &[
    ("as it is", |text| text.into(), Ok(())),
    ("no last line feed", |text| text.trim_end().into(), Ok(())),
    ("byte order mark", |text| format!("\u{feff}{text}").into(), Ok(())),
    ("CRLF", |text| replaced(text, "\n", "\r\n"), Ok(())),
    ("CRLF but the last", |text| replaced(text.trim_end(), "\n", "\r\n"), Ok(())),
    ("CR", |text| replaced(text, "\n", "\r"), Ok(())),
    ("CR but the last", |text| replaced(text.trim_end(), "\n", "\r"), Ok(())),
    ("blank lines", |text| format!("\n{}\n\n", text.replace('\n', "\n\n")).into(), Ok(())),
    ("blank lines with CRLF", |text| format!("\r\n{}", text.replace('\n', "\r\n\r\n")).into(), Ok(())),
    ("blank lines with CR", |text| format!("\r{}", text.replace('\n', "\r\r")).into(), Ok(())),
    ("gzip", |text| gzip(text.as_bytes()), Ok(())),
    ("gzip in two members", |text| twice(text.as_bytes(), gzip), Ok(())),
    ("zstd", |text| zstd(text.as_bytes()), Ok(())),
    ("zstd in two frames", |text| twice(text.as_bytes(), zstd), Ok(())),
    (
        "zstd behind a frame to skip",
        |text| [b"\x53\x2a\x4d\x18\x01\0\0\0!", &zstd(text.as_bytes())[..]].concat(),
        Ok(()),
    ),
    ("gzip of a mark and CR", |text| gzip(&replaced(&format!("\u{feff}{text}"), "\n", "\r")), Ok(())),
    (
        "UTF-16",
        |text| {
            text.encode_utf16()
                .fold(b"\xff\xfe".to_vec(), |all, unit| [&all[..], &unit.to_le_bytes()].concat())
        },
        Err("it is UTF-16"),
    ),
    ("UTF-16, the other way", |_| b"\xfe\xff\0i".to_vec(), Err("it is UTF-16")),
    (
        "UTF-16 without a mark",
        |text| text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        Err("it is UTF-16"),
    ),
    ("gzip of UTF-16", |_| gzip(b"\xff\xfei\0"), Err("it is UTF-16")),
    (
        "a CR among LF",
        |text| text.replacen('\n', "\r", 2).replacen('\r', "\n", 1).into(),
        Err("carriage return without"),
    ),
    (
        "a CR among CRLF",
        |text| replaced(&text.replacen('\n', "\r\r", 2).replacen("\r\r", "\r\n", 1), "\n", "\n"),
        Err("carriage return without"),
    ),
    (
        "gzip that is cut off",
        |text| {
            let all = gzip(text.as_bytes());
            all[..all.len() - 9].to_vec()
        },
        Err("its gzip stream is truncated"),
    ),
    (
        "gzip that ends in its head",
        |text| gzip(text.as_bytes())[..5].to_vec(),
        Err("its gzip stream is truncated"),
    ),
    (
        "gzip whose sum is wrong",
        |text| {
            let mut all = gzip(text.as_bytes());
            let at = all.len() - 6;
            all[at] ^= 1;
            all
        },
        Err("its gzip stream is damaged"),
    ),
    (
        "zstd that is cut off",
        |text| {
            let all = zstd(text.as_bytes());
            all[..all.len() - 3].to_vec()
        },
        Err("its zstd stream is truncated"),
    ),
    (
        "zstd that is damaged",
        |_| b"\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(),
        Err("its zstd stream "),
    ),
    (
        "gzip of gzip",
        |text| gzip(&gzip(text.as_bytes())),
        Err("it is compressed with gzip a second time, not text: decompress it first"),
    ),
    ("gzip of zstd", |text| gzip(&zstd(text.as_bytes())), Err("it is compressed with zstd a second time")),
    ("bzip2", |text| bzip2(text.as_bytes()), Ok(())),
    ("bzip2 in two streams", |text| twice(text.as_bytes(), bzip2), Ok(())),
    ("xz", |text| xz(text.as_bytes()), Ok(())),
    ("xz in two streams", |text| twice(text.as_bytes(), xz), Ok(())),
    ("lz4", |text| lz4(text.as_bytes()), Ok(())),
    ("lz4 in two frames", |text| twice(text.as_bytes(), lz4), Ok(())),
    (
        "lz4 with a frame to skip between",
        |text| {
            let (one, two) = text.as_bytes().split_at(9);
            [&lz4(one)[..], b"\x5a\x2a\x4d\x18\x03\0\0\0abc", &lz4(two)].concat()
        },
        Ok(()),
    ),
    ("bzip2 without its end", |_| b"BZh91AY&SY\x12\x34".to_vec(), Err("its bzip2 stream is ")),
    ("xz without its end", |_| b"\xfd7zXZ\0\0\x04".to_vec(), Err("its xz stream is ")),
    ("lz4 without its end", |_| b"\x04\x22\x4d\x18\x64\x40".to_vec(), Err("its lz4 stream is ")),
    ("xz of zstd", |text| xz(&zstd(text.as_bytes())), Err("it is compressed with zstd a second time")),
    ("ZIP", |_| b"PK\x03\x04\x14\0".to_vec(), Err("it is a ZIP archive")),
    ("Parquet", |_| b"PAR1\x15\x04\x15".to_vec(), Err("it is a Parquet file, not text")),
    ("Arrow", |_| b"ARROW1\0\0\xff\xff\xff\xff".to_vec(), Err("it is an Arrow IPC file, not text")),
    ("an Arrow stream", |_| b"\xff\xff\xff\xff\x78\0\0\0".to_vec(), Err("it is an Arrow IPC file, not text")),
    ("NumPy", |_| b"\x93NUMPY\x01\0v\0".to_vec(), Err("it is a NumPy array, not text")),
    ("one of ours", |_| b"\x89PLEACH\r\n\x1a\n\0\0\0\0\0".to_vec(), Err("it is a Pleach file, not text")),
    ("NUL", |text| text.replacen("2,", "2\0,", 1).into(), Err("row 2")),
    ("nothing", |_| Vec::new(), Err("it is empty")),
    ("gzip of nothing", |_| gzip(b""), Err("it is empty")),
];

/// Hands out one to nine bytes at a time.
struct Trickle(Vec<u8>, usize);

impl Read for Trickle {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let left = &self.0[self.1..];
        let bytes = left.len().min(out.len()).min(1 + self.1 % 9);
        out[..bytes].copy_from_slice(&left[..bytes]);
        self.1 += bytes;
        Ok(bytes)
    }
}

/// Keys, values and operations, or why there are none.
type Rows = Result<Vec<(u64, u64, Option<Op>)>, String>;

/// Everything that a source delivers.
fn rows(source: &mut dyn Source) -> Rows {
    let mut all = Vec::new();
    let mut chunk = Chunk::new(KeyType::U64, ValueType::U64);
    loop {
        source.next_chunk(&mut chunk, 2).map_err(|error| error.to_string())?;
        if chunk.is_empty() {
            let (done, total) = source.progress();
            assert!(total.is_none_or(|total| total == done), "{done} of {total:?}");
            return Ok(all);
        }
        let (Column::U64(keys), Column::U64(values)) = (&chunk.keys, &chunk.values) else {
            panic!("numbers are asked for")
        };
        let ops = chunk.ops.iter().copied().map(Some).chain(std::iter::repeat(None));
        all.extend(keys.iter().zip(values).zip(ops).map(|((&key, &value), op)| (key, value, op)));
    }
}

fn read(source: Result<Box<dyn Source>, pleach_builder::SourceError>) -> Rows {
    source.map_err(|error| error.to_string()).and_then(|mut source| rows(&mut *source))
}

fn save(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).expect("writes");
    path
}

/// The ways to text: each gets lines through a rule, and gives what it read.
fn ways(folder: &Path, rule: fn(&str) -> Vec<u8>) -> Vec<(&'static str, Rows)> {
    let csv = rule("id,v\n1,10\n2,20\n3,30\n");
    let options = InputOptions { format: Some(Format::Csv), ..InputOptions::default() };
    let changes = InputOptions {
        key_type: Some(KeyType::U64),
        value_type: Some(ValueType::U64),
        changes: true,
        key_name: Some("id".into()),
        ..options.clone()
    };
    let file = save(folder, "t.csv", &csv);
    let first = save(folder, "first.csv", b"id,v\n");
    let of_changes = rule("op,id,value\nput,1,10\nput,2,20\nput,3,30\n");
    let tsv = String::from_utf8(csv.clone())
        .ok()
        .filter(|text| text.contains(",v"))
        .map(|text| text.replace(',', "\t"));
    let mut ways = vec![
        ("a file", read(open(std::slice::from_ref(&file), &InputOptions::default()))),
        ("a stream", read(open_stream("input", Box::new(Cursor::new(csv.clone())), &options))),
        ("a slow stream", read(open_stream("input", Box::new(Trickle(csv, 0)), &options))),
        ("the second input", read(open(&[first, file], &InputOptions::default()))),
        ("changes", read(open_stream("input", Box::new(Trickle(of_changes, 0)), &changes))),
    ];
    if let Some(tsv) = tsv {
        let options = InputOptions { format: Some(Format::Tsv), ..options };
        ways.push(("TSV", read(open_stream("input", Box::new(Cursor::new(tsv.into_bytes())), &options))));
    }
    ways
}

#[test]
fn one_reader_for_every_text() {
    let folder = tempfile::tempdir().expect("makes a folder");
    for (name, rule, expected) in RULES {
        for (way, found) in ways(folder.path(), *rule) {
            match (expected, &found) {
                (Ok(()), Ok(rows)) => {
                    let rows: Vec<(u64, u64)> = rows.iter().map(|&(key, value, _)| (key, value)).collect();
                    assert_eq!(rows, [(1, 10), (2, 20), (3, 30)], "{name}, {way}");
                }
                (Err(text), Err(error)) => assert!(error.contains(text), "{name}, {way}: {error}"),
                _ => panic!("{name}, {way}: {found:?}"),
            }
        }
    }
}

#[test]
fn a_stream_that_breaks_off_says_after_which_row() {
    let text: String = (0..200_000).map(|row| format!("{row},{}\n", row * 7)).collect();
    for pack in [gzip, zstd] {
        let packed = pack(format!("id,v\n{text}").as_bytes());
        let cut = packed[..packed.len() * 2 / 3].to_vec();
        let options = InputOptions { format: Some(Format::Csv), ..InputOptions::default() };
        let error = read(open_stream("input", Box::new(Cursor::new(cut)), &options)).expect_err("is cut");
        let after: u64 = error
            .strip_prefix("input: after row ")
            .and_then(|rest| rest.split(':').next())
            .and_then(|number| number.parse().ok())
            .unwrap_or_else(|| panic!("{error}"));
        assert!(
            after > 50_000
                && after < 190_000
                && error.contains("stream is truncated after byte ")
                && error.contains("get the complete file"),
            "{error}"
        );
    }
}

#[test]
fn names_of_packed_files_tell_the_format() {
    let folder = tempfile::tempdir().expect("makes a folder");
    for (name, format) in [
        ("t.csv.gz", Some(Format::Csv)),
        ("T.TSV.ZST", Some(Format::Tsv)),
        ("t.csv.bz2", Some(Format::Csv)),
        ("t.parquet.gz", Some(Format::Parquet)),
        ("t.gz", None),
        ("csv.gz", None),
    ] {
        assert_eq!(Format::from_path(Path::new(name)), format, "{name}");
    }
    let path = save(folder.path(), "t.csv.gz", &gzip(b"id,v\n1,10\n"));
    assert_eq!(read(open(&[path], &InputOptions::default())), Ok(vec![(1, 10, None)]));
    // The name may be wrong: what it holds decides.
    let path = save(folder.path(), "t.csv.zst", b"id,v\n1,10\n");
    assert_eq!(read(open(&[path], &InputOptions::default())), Ok(vec![(1, 10, None)]));
    // What is in them is named, too.
    let raw = InputOptions { raw: Some((KeyType::U64, ValueType::U64)), ..InputOptions::default() };
    for (name, bytes, options, text) in [
        ("t.parquet.gz", gzip(b"PAR1"), InputOptions::default(), "not a readable Parquet file"),
        ("t.arrow.zst", zstd(b"ARROW1"), InputOptions::default(), "t.arrow.zst: "),
        (
            "t.npy.gz",
            gzip(b"\x93NUMPY"),
            InputOptions::default(),
            "it ends inside the header of a NumPy array",
        ),
        ("t.raw.gz", gzip(&[0; 15]), raw, "t.raw.gz: "),
        (
            "t.npy.gz",
            gzip(&gzip(b"x")),
            InputOptions::default(),
            "it is compressed with gzip, not a NumPy array",
        ),
        ("t.npy.gz", gzip(b"PAR1\x15"), InputOptions::default(), "it is a Parquet file, not a NumPy array"),
        (
            "t.parquet",
            b"ARROW1\0\0".to_vec(),
            InputOptions::default(),
            "it is an Arrow IPC file, not a Parquet file: give --format arrow",
        ),
        (
            "t.parquet",
            b"id,v\n1,2\n".to_vec(),
            InputOptions::default(),
            "not a readable Parquet file: it looks like text: give --format csv",
        ),
        (
            "t.data",
            b"PAR1\x15\x04".to_vec(),
            InputOptions::default(),
            "it looks like a Parquet file: give --format parquet",
        ),
        (
            "t.data",
            gzip(b"1,2\n"),
            InputOptions::default(),
            "it looks like gzip: give the --format of its content",
        ),
    ] {
        let path = save(folder.path(), name, &bytes);
        let error = read(open(&[path], &options)).expect_err(name);
        assert!(error.contains(text), "{name}: {error}");
    }
}

/// A little packed text is a lot of text: no more of it is held than one row may have.
#[test]
fn a_bomb_is_a_row_that_is_too_long() {
    let bomb = [zstd(b"id,v\n1,"), zstd(&[b'1'; 1 << 20]).repeat(140)].concat();
    assert!(bomb.len() < 1 << 17);
    let options = InputOptions { format: Some(Format::Csv), ..InputOptions::default() };
    let error = read(open_stream("input", Box::new(Cursor::new(bomb)), &options)).expect_err("is long");
    assert_eq!(error, "input: row 1: it has more than 67108864 bytes: close its quotes");
}

/// Carriage returns in quotes are data; they end no line, even in a column that is not read.
#[test]
fn carriage_returns_stand_in_quotes_or_before_line_feeds() {
    let of = |text: &str| {
        let options =
            InputOptions { format: Some(Format::Csv), value: Some("v".into()), ..InputOptions::default() };
        read(open_stream("input", Box::new(Cursor::new(text.as_bytes().to_vec())), &options))
    };
    let many: String = (0..5000).map(|row| format!("{row},\"a\r\nb\",{row}\r\n")).collect();
    let expected: Vec<_> = (0..5000).map(|row| (row, row, None)).collect();
    assert_eq!(of(&format!("id,t,v\r\n{many}")), Ok(expected.clone()));
    // As Excel writes it for a Mac: line feeds within cells stay.
    let old: String = (0..5000).map(|row| format!("{row},\"a\nb\"\"\r\",{row}\r")).collect();
    assert_eq!(of(&format!("id,t,v\r{old}")), Ok(expected));
    for text in ["id,t,v\n1,a\rb,2\n", "id,t,v\r\n1,a\rb,2\r\n", "id,t,v\n0,x,0\n1,a\r,2\n"] {
        let error = of(text).expect_err("a carriage return in a field");
        assert!(error.contains("field 2: carriage return without a line feed"), "{error}");
    }
    let error = of("id,t,v\n1,\"a\"\rb,2\n").expect_err("a carriage return follows a quote");
    assert!(error.contains("row 1, field 2: carriage return"), "{error}");
}

/// Lists of keys have no quotes.
#[test]
fn lines_have_no_quotes() {
    let all = |bytes: &[u8]| {
        let mut out = String::new();
        let stream = Box::new(Trickle(bytes.to_vec(), 0));
        text::open("keys", stream, text::Use::Lines).expect("opens").read_to_string(&mut out).expect("reads");
        out
    };
    assert_eq!(all(b"\xef\xbb\xbf\"a\rb\"\rc\r"), "\"a\nb\"\nc\n");
    assert_eq!(all(b"a\r\nb"), "a\r\nb");
    assert_eq!(all(&gzip(b"1\n2")), "1\n2");
    assert_eq!(all(b""), "");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Packing changes nothing, whatever the text is.
    #[test]
    fn packed_text_reads_like_plain_text(text in "[0-9a,\"\r\n\u{feff}]{0,60}", cut in 0..60_usize) {
        let options = InputOptions {
            format: Some(Format::Csv),
            value: Some("1".into()),
            no_header: true,
            ..InputOptions::default()
        };
        let of = |bytes: Vec<u8>| read(open_stream("input", Box::new(Trickle(bytes, 0)), &options));
        let plain = of(text.clone().into_bytes());
        let cut = (0..=cut.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        let (one, two) = text.as_bytes().split_at(cut);
        prop_assert_eq!(&plain, &of([gzip(one), gzip(two)].concat()));
        prop_assert_eq!(&plain, &of([zstd(one), zstd(two)].concat()));
    }
}

/// Text that is longer than all buffers: pieces of the decoder, reads of the parser.
fn long() -> String {
    let mut text = String::from("id,v\n");
    for row in 0..250_000 {
        text += &format!("{row},{}\n", row * 7 % 1000);
    }
    text
}

#[test]
fn compressed_files_of_all_codecs_are_read_by_their_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = long();
    for (name, extension, pack) in CODECS {
        let path = save(folder.path(), &format!("t.csv.{extension}"), &pack(text.as_bytes()));
        let rows = read(open(std::slice::from_ref(&path), &InputOptions::default())).expect(name);
        assert_eq!(rows.len(), 250_000, "{name}");
        assert_eq!(rows[249_999], (249_999, 249_999 * 7 % 1000, None), "{name}");
    }
}

#[test]
fn a_compressed_stream_that_is_cut_off_is_never_a_short_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "id,v\n1,10\n2,20\n3,30\n".to_owned().into_bytes();
    for (name, extension, pack) in CODECS {
        let whole = pack(&text);
        for length in 1..whole.len() {
            if (name == "bzip2" && length < 10) || (name == "zstd" && length < 2) {
                // So far it may be a text.
                continue;
            }
            let path = save(folder.path(), &format!("t.csv.{extension}"), &whole[..length]);
            let error = read(open(std::slice::from_ref(&path), &InputOptions::default()));
            let error = error.expect_err(&format!("{name} of {length} bytes of {}", whole.len()));
            // A mark that is cut may be taken for a name.
            let is_mark = length < 6;
            let is_told = error.contains(&format!("its {name} stream is ")) && error.contains("byte ");
            assert!(is_mark || is_told, "{name} {length}: {error}");
        }
        // One byte too many, and each byte changed: an error or the same rows.
        let rows = vec![(1, 10, None), (2, 20, None), (3, 30, None)];
        let more = [&whole[..], b"x"].concat();
        let path = save(folder.path(), &format!("t.csv.{extension}"), &more);
        match read(open(std::slice::from_ref(&path), &InputOptions::default())) {
            Ok(found) => assert_eq!(found, rows, "{name} and a byte"),
            Err(error) => assert!(error.contains(&format!("its {name} stream is ")), "{error}"),
        }
    }
}

#[test]
fn a_frame_of_lz4_that_ends_between_two_blocks_is_truncated() {
    let folder = tempfile::tempdir().expect("a folder");
    let info = lz4_flex::frame::FrameInfo::new().block_size(lz4_flex::frame::BlockSize::Max64KB);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(long().as_bytes()).expect("writes");
    let whole = encoder.finish().expect("ends");
    let (mut at, mut cuts) = (7, 0);
    loop {
        let path = save(folder.path(), "t.csv.lz4", &whole[..at]);
        let error = read(open(std::slice::from_ref(&path), &InputOptions::default())).expect_err("is cut");
        assert!(error.contains("its lz4 stream is truncated"), "{at}: {error}");
        let word = u32::from_le_bytes(whole[at..at + 4].try_into().expect("a word"));
        if word == 0 {
            break;
        }
        at += 4 + (word & 0x7fff_ffff) as usize;
        cuts += 1;
    }
    assert!(cuts > 10, "{cuts} blocks");
}

#[test]
fn a_long_compressed_text_that_is_damaged_is_an_error_at_the_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = long();
    for (name, extension, pack) in CODECS {
        let mut whole = pack(text.as_bytes());
        let length = whole.len();
        let cut = save(folder.path(), &format!("t.csv.{extension}"), &whole[..length / 2]);
        let error = read(open(std::slice::from_ref(&cut), &InputOptions::default())).expect_err(name);
        let after = format!("its {name} stream is truncated after byte ");
        let at: usize = error
            .split(&after)
            .nth(1)
            .expect(&error)
            .split(':')
            .next()
            .expect("one")
            .parse()
            .expect("a number");
        assert!(at <= length / 2 && at + (1 << 20) > length / 2, "{error}");
        assert!(name != "gzip" || error.contains("after row "), "{error}");
        // The others have no sum, or none by default.
        if ["gzip", "bzip2", "xz"].contains(&name) {
            whole[length / 2] ^= 0x55;
            let path = save(folder.path(), &format!("t.csv.{extension}"), &whole);
            // Wrong letters may be met before the sum shows that they are.
            let error = read(open(std::slice::from_ref(&path), &InputOptions::default())).expect_err(name);
            assert!(error.contains("row "), "{name}: {error}");
        }
    }
}

#[test]
fn tables_of_other_formats_may_be_compressed_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let raw: Vec<u8> = (0..100_u64).flat_map(|n| [n, n * 2]).flat_map(u64::to_le_bytes).collect();
    let options = InputOptions { raw: Some((KeyType::U64, ValueType::U64)), ..InputOptions::default() };
    let mut npy = b"\x93NUMPY\x01\0\x76\0".to_vec();
    let head = "{'descr': '<u8', 'fortran_order': False, 'shape': (100, 2), }";
    npy.extend(format!("{head:<117}\n").as_bytes());
    npy.extend(&raw);
    for (name, extension, pack) in CODECS {
        for (format, bytes, options) in [("raw", &raw, &options), ("npy", &npy, &InputOptions::default())] {
            let path = save(folder.path(), &format!("t.{format}.{extension}"), &pack(bytes));
            let rows = read(open(std::slice::from_ref(&path), options));
            let rows = rows.unwrap_or_else(|error| panic!("{name} {format}: {error}"));
            assert_eq!((rows.len(), rows[99]), (100, (99, 198, None)), "{name} {format}");
        }
    }
}
