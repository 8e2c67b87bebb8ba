//! `spec/FORMAT.md` is normative: its tables are compared with the constants of the code.

use pleach::Builder;
use pleach_format::checksum::{SUM_BLOCK_BYTES, crc32};
use pleach_format::layout::{CHILD_LINES_MAX, LINE_BYTES};
use pleach_format::logical::{Logical, both_of_v6, hash_of, hash128};
use pleach_format::mask::{Chunk, MASK_BYTES_MAX, Place, Survey};
use pleach_format::meta::{META_BYTES_MAX, Meta, TEXT_BYTES_MAX};
use pleach_format::section::{
    ARRAY_ALIGN, BtreeParameters, ColumnParameters, ENTRY_BYTES, Entry, FastParameters, GridParameters,
    HUGE_PAGE_BYTES, HarmoniaParameters, LARGE_ALIGN, LARGE_SECTION_BYTES, LEVELS_MAX, LineParameters, Need,
    PARAMETERS_BYTES, PackedParameters, SECTION_ALIGN, SECTIONS, SECTIONS_MAX, SpineParameters, TABLE_BYTES,
    TABLE_OFFSET, TextParameters, TrieParameters,
};
use pleach_format::short::{Run, Seek, Short};
use pleach_format::spine::{self, Border, Encoding};
use pleach_format::superblock::{CRC_OFFSET, SUPERBLOCK_BYTES, Superblock};
use pleach_format::types::KEY_BYTES_MAX;
use pleach_format::version::{MAGIC, VERSION_MAJOR, VERSION_MINOR};
use pleach_format::{Key, KeyType, LineGeometry, ValueType, packed};
use pleach_fsck::Code;
use std::collections::BTreeSet;
use std::mem::offset_of;

const SPEC: &str = include_str!("../../spec/FORMAT.md");

/// The rows of the table whose header begins with these cells.
fn table(header: &[&str]) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = SPEC.lines();
    lines
        .by_ref()
        .find(|line| line.starts_with('|') && cells(line).iter().zip(header).all(|(a, b)| a == b))
        .unwrap_or_else(|| panic!("spec/FORMAT.md has no table {header:?}"));
    lines.skip(1).take_while(|line| line.starts_with('|')).map(cells).collect()
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is not a number"))
}

#[test]
fn constants() {
    let known = [
        ("SUPERBLOCK_BYTES", SUPERBLOCK_BYTES as u64),
        ("TABLE_OFFSET", TABLE_OFFSET),
        ("TABLE_BYTES", TABLE_BYTES as u64),
        ("ENTRY_BYTES", ENTRY_BYTES as u64),
        ("SECTIONS_MAX", SECTIONS_MAX as u64),
        ("SECTION_ALIGN", SECTION_ALIGN),
        ("LARGE_SECTION_BYTES", LARGE_SECTION_BYTES),
        ("LARGE_ALIGN", LARGE_ALIGN),
        ("HUGE_PAGE_BYTES", HUGE_PAGE_BYTES),
        ("ARRAY_ALIGN", ARRAY_ALIGN),
        ("LINE_BYTES", LINE_BYTES as u64),
        ("SUM_BLOCK_BYTES", SUM_BLOCK_BYTES as u64),
        ("LEVELS_MAX", LEVELS_MAX as u64),
        ("CHILD_LINES_MAX", CHILD_LINES_MAX),
        ("VERSION_MAJOR", u64::from(VERSION_MAJOR)),
        ("VERSION_MINOR", u64::from(VERSION_MINOR)),
    ];
    let rows = table(&["constant", "value"]);
    let documented: Vec<(&str, u64)> = rows.iter().map(|row| (row[0].as_str(), number(&row[1]))).collect();
    assert_eq!(documented, known);
}

/// Checks offsets and widths of a byte map against (name, offset) pairs and the size of the whole.
fn check_map(section: &str, fields: &[(&str, usize)], size: usize) {
    let start = SPEC.find(section).unwrap_or_else(|| panic!("no {section}"));
    let rows: Vec<Vec<String>> = SPEC[start..]
        .lines()
        .skip_while(|line| !line.contains("offset | bytes | field"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect();
    assert_eq!(rows.len(), fields.len(), "{section}");
    for (i, (row, &(name, offset))) in rows.iter().zip(fields).enumerate() {
        assert_eq!((row[2].as_str(), number(&row[0])), (name, offset as u64), "{section}");
        let next = fields.get(i + 1).map_or(size, |next| next.1);
        assert_eq!(number(&row[1]), (next - offset) as u64, "{section}: bytes of {name}");
    }
}

macro_rules! fields {
    ($t:ty: $($field:ident)*) => { [$((stringify!($field), offset_of!($t, $field))),*] };
}

#[test]
fn superblock() {
    let mut fields = fields!(Superblock: magic version_major version_minor reader_features writer_features
        ignorable_features file_id generation file_bytes tuples key_type value_type key_bytes value_bytes unique
        table_offset table_bytes sections table_crc min_key_len max_key_len min_key max_key builder lineage
        reserved crc)
    .to_vec();
    fields.insert(3, ("reserved_mark", 20));
    check_map("## 5. The superblock", &fields, SUPERBLOCK_BYTES);
    let magic: Vec<String> = MAGIC.iter().map(|byte| format!("{byte:02X}")).collect();
    assert!(SPEC.contains(&magic.join(" ")), "the magic is in the document");
}

#[test]
fn section_table() {
    let fields = fields!(Entry: tag flags offset length elements sums_offset sums sums_crc reserved
        parameters reserved2);
    check_map("## 6. The section table", &fields, ENTRY_BYTES);
    let fields = fields!(LineParameters: line_bytes word_bytes value_bytes line_tuples base runs reserved);
    check_map("| LINE: offset", &fields, PARAMETERS_BYTES);
    let fields =
        fields!(SpineParameters: line_bytes word_bytes levels child_lines inexact_lines encodings reserved);
    check_map("| SPIN: offset", &fields, PARAMETERS_BYTES);
    let fields = fields!(ColumnParameters: element_bytes offset_bytes reserved);
    check_map("| TAIL, KEYS, VALS, CODE: offset", &fields, PARAMETERS_BYTES);
    let fields = fields!(TextParameters: page_keys place_bytes reserved);
    check_map("| TEXT: offset", &fields, PARAMETERS_BYTES);
    let fields = fields!(TrieParameters: node_bytes levels reserved);
    check_map("| TRIE: offset", &fields, PARAMETERS_BYTES);
    let fields = fields!(PackedParameters: word_bytes page_keys reserved);
    check_map("| PACK: offset", &fields, PARAMETERS_BYTES);
    let fields = fields!(FastParameters: line_bytes word_bytes levels form d_k d_l d_p padded reserved);
    check_map("| FAST: offset", &fields, PARAMETERS_BYTES);
    let fields = fields!(GridParameters: word_bytes steps usual_steps gap segments base first form reserved);
    check_map("| GRID: offset", &fields, PARAMETERS_BYTES);
    let fields =
        fields!(HarmoniaParameters: node_bytes word_bytes value_bytes node_keys fanout levels reserved);
    check_map("| HARM: offset", &fields, PARAMETERS_BYTES);
    let fields = fields!(BtreeParameters: order word_bytes value_bytes levels reserved);
    check_map("| BTRE: offset", &fields, PARAMETERS_BYTES);
}

/// The sections, whether they are required, and a table of the parameters of those that have any.
#[test]
fn sections() {
    let heading = SPEC.lines().filter(|line| line.contains("offset | bytes | field"));
    let headings: Vec<&str> = heading.filter_map(|line| line.strip_prefix("| ")?.split(':').next()).collect();
    let tables = |name: &str| headings.iter().filter(|tags| tags.split(", ").any(|tag| tag == name)).count();
    let known: Vec<(&str, &str)> = SECTIONS
        .iter()
        .map(|kind| {
            assert_eq!(tables(kind.name), usize::from(!kind.parameters.is_empty()), "{}", kind.name);
            let need = match kind.need {
                Need::Required => "required",
                Need::Skippable => "skippable",
                Need::ByContent => "by content",
            };
            (kind.name, need)
        })
        .collect();
    let rows = table(&["tag", "content", "flag"]);
    let documented: Vec<(&str, &str)> = rows.iter().map(|row| (row[0].as_str(), row[2].as_str())).collect();
    assert_eq!(documented, known);
}

/// The refusals are numbered from 1 on, and each has a name of its own and a level.
#[test]
fn refusals() {
    let rows = table(&["number", "name", "the reader refuses a file"]);
    assert!(rows.len() >= 49, "{} refusals", rows.len());
    let mut names = BTreeSet::new();
    for (row, wanted) in rows.iter().zip(1..) {
        assert_eq!(number(&row[0]), wanted);
        assert!(names.insert(&row[1]), "{} occurs twice", row[1]);
        let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(!row[1].is_empty() && row[1].chars().all(is_letter), "{}", row[1]);
        assert!(["1", "2", "3"].contains(&row[3].as_str()), "{}: level {}", row[1], row[3]);
    }
}

/// Every code of `fsck` is in one of the two tables, and nothing else is.
#[test]
fn codes() {
    let damage = table(&["code", "what is damaged", "level"]);
    let rules = table(&["code", "rule"]);
    let documented: BTreeSet<&str> = damage.iter().chain(&rules).map(|row| row[0].as_str()).collect();
    assert_eq!(documented.len(), damage.len() + rules.len(), "each code has one row");
    assert_eq!(documented, Code::ALL.iter().map(|code| code.name()).collect());
}

/// The tags of META are those that are written.
#[test]
fn tags_of_meta() {
    let text = || "x".to_owned();
    let meta = Meta {
        key_name: text(),
        value_name: text(),
        key_logical: text(),
        value_logical: text(),
        layout: text(),
        interval: text(),
        approximate: text(),
    };
    let written: Vec<u64> =
        meta.encode().chunks(16).map(|record| u16::from_le_bytes([record[0], record[1]]).into()).collect();
    let rows = table(&["tag number", "text"]);
    assert_eq!(rows.iter().map(|row| number(&row[0])).collect::<Vec<_>>(), written);
}

/// Logical types without arguments are known, and have the key type that their row says.
#[test]
fn logical_types() {
    let mut count = 0;
    for row in table(&["logical type", "key type", "value type"]) {
        for name in row[0].split('`').skip(1).step_by(2).filter(|name| !name.contains(['(', '<'])) {
            let words = Logical::of_meta(name).key_words().unwrap_or_else(|| panic!("{name} is unknown"));
            // Booleans are values and fields only.
            let wanted = if name == "Boolean" { "none" } else { words.as_str() };
            assert_eq!(row[1], wanted, "{name}");
            count += 1;
        }
    }
    assert!(count >= 10, "{count} types");
}

/// Numbers in the table of limits, without the commas.
#[test]
fn limits() {
    let rows = table(&["what", "limit"]);
    let limit = |what: &str| {
        let row = rows.iter().find(|row| row[0] == what).unwrap_or_else(|| panic!("no limit of {what}"));
        row[1].replace(',', "")
    };
    assert_eq!(limit("sections"), SECTIONS_MAX.to_string());
    assert_eq!(limit("bytes of a key"), KEY_BYTES_MAX.to_string());
    assert_eq!(limit("bytes of META; of a text in META"), format!("{META_BYTES_MAX}; {TEXT_BYTES_MAX}"));
    assert_eq!(limit("bytes of MASK"), MASK_BYTES_MAX.to_string());
    assert_eq!(limit("levels of SPIN; child_lines"), format!("{LEVELS_MAX}; {CHILD_LINES_MAX}"));
}

/// Lines of blocks of code of the appendix: the number at the beginning, in this base, and the bytes after it. A
/// comment is three spaces or more behind them.
fn dump(radix: u32, digits: usize) -> Vec<(usize, Vec<u8>)> {
    let start = SPEC.find("## Appendix A").expect("an appendix");
    let end = SPEC.find("## Appendix B").expect("another one");
    let lines = SPEC[start..end].lines().filter_map(|line| {
        let (at, rest) = line.split_at_checked(digits)?;
        let at = usize::from_str_radix(at.trim_start(), radix).ok()?;
        let bytes = rest.strip_prefix("  ")?.split("   ").next()?;
        let bytes = bytes.split(' ').map(|byte| u8::from_str_radix(byte, 16));
        Some((at, bytes.collect::<Result<Vec<u8>, _>>().ok()?))
    });
    lines.collect()
}

/// The file of the appendix is what the builder makes, to the last byte.
#[test]
fn the_file_of_the_appendix() {
    let tuples = [(5u64, 1u64), (300, 3), (1000, 2)];
    let mut built = Builder::new().names("k", "v").to_bytes(tuples).expect("a file");
    let mut documented = vec![0; built.len()];
    let lines = dump(16, 8);
    assert!(lines.len() > 40, "{} lines", lines.len());
    for (at, bytes) in lines {
        documented[at..at + bytes.len()].copy_from_slice(&bytes);
    }
    let (head, closing) = documented.split_at_mut(built.len() - TABLE_BYTES - SUPERBLOCK_BYTES);
    closing[..TABLE_BYTES].copy_from_slice(&head[SUPERBLOCK_BYTES..SUPERBLOCK_BYTES + TABLE_BYTES]);
    closing[TABLE_BYTES..].copy_from_slice(&head[..SUPERBLOCK_BYTES]);
    assert_eq!(documented[CRC_OFFSET..SUPERBLOCK_BYTES], crc32(&documented[..CRC_OFFSET]).to_le_bytes());
    // The builder's name changes with every release.
    let builder = offset_of!(Superblock, builder)..offset_of!(Superblock, lineage);
    for at in [0, built.len() - SUPERBLOCK_BYTES] {
        built[at..][builder.clone()].copy_from_slice(&documented[builder.clone()]);
        let crc = crc32(&built[at..at + CRC_OFFSET]);
        built[at + CRC_OFFSET..at + SUPERBLOCK_BYTES].copy_from_slice(&crc.to_le_bytes());
    }
    let wrong = documented.iter().zip(&built).position(|(documented, built)| documented != built);
    assert_eq!(wrong, None, "the first byte that differs");
}

/// The message of the appendix has the file id as its hash.
#[test]
fn the_file_id_of_the_appendix() {
    let mut message = Vec::new();
    for (at, bytes) in dump(10, 3) {
        assert_eq!(at, message.len());
        message.extend(bytes);
    }
    let id: Vec<String> = hash128(&message).to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(SPEC.contains(&format!("The output is `{}`.", id.join(" "))), "{id:?}");
}

/// Asserts that the document contains a text, in one line or in several.
fn assert_says(text: &str) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(SPEC).contains(&words(text)), "the document does not say: {text}");
}

#[test]
fn examples_of_hashes_and_encodings() {
    let spaced = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    for text in ["", "abc"] {
        assert_says(&format!("| `{}` |", spaced(&hash128(text.as_bytes()).to_le_bytes())));
    }
    assert_says(&format!("`123456789` is {:08X}", crc32(b"123456789")));
    for (name, turn) in [("Hash64", 0), ("Hash64(1)", 1), ("Hash64(8)", 8)] {
        assert!(matches!(Logical::of_meta(name), Logical::Hash64(found) if found == turn));
        assert_says(&format!("| `{name}` | {:016X} |", hash_of(b"abc", turn)));
    }
    assert_says(&format!("`::1` is {}", both_of_v6(1)));
    assert_says(&format!("| i32 -5 | {:08X} |", (-5i32).encode()));
    assert_says(&format!("| f64 1.0 | {:016X} |", 1f64.encode()));
    assert_says(&format!("| f64 -1.0 | {:016X} |", (-1f64).encode()));
}

#[test]
fn examples_of_words() {
    let mut runs = [Run::default(); 4];
    (runs[0], runs[1]) = (Run { from: 0, bits: 1 }, Run { from: 50, bits: 12 });
    let short = Short::new(8, 4, 0, runs).expect("runs");
    let keys = [1u64, 0x000C_0000_0000_0001, 0x0FFC_0000_0000_0000, 0x3FFC_0000_0000_0001];
    let [first, rest @ ..] = keys.map(|key| format!("{key:016X}"));
    assert_says(&format!("The keys 1, {}, {} and {} (hexadecimal)", rest[0], rest[1], rest[2]));
    assert_eq!(first, format!("{:016X}", 1));
    let words = keys.map(|key| match short.seek(key) {
        Seek::Word(word) => format!("{word:X}"),
        Seek::Before(_) | Seek::End => panic!("{key:x} has no word"),
    });
    assert_says(&format!("their words are {}, {}, {} and {}", words[0], words[1], words[2], words[3]));
    assert_eq!((short.seek(2u64), short.seek(1u64 << 63)), (Seek::Before(2), Seek::End));

    let mut survey = Survey::default();
    let keys = ["ab1", "ab22", "ac9"];
    keys.iter().for_each(|key| survey.add(key.as_bytes()));
    let mask = survey.mask(None, 4);
    let bytes: Vec<String> = mask.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_says(&format!("{} reference", bytes[32..36].join(" ")));
    assert_says(&format!("{} mask", bytes[36..].join(" ")));
    let place = |query: &str| mask.place(query.as_bytes(), Chunk::compress);
    for key in keys {
        let Place::Word(word) = place(key) else { panic!("{key} has no word") };
        assert!(
            table(&["key", "byte 1, bit 0"])
                .iter()
                .any(|row| row[0] == format!("`{key}`") && row[5] == word.to_string())
        );
    }
    for row in table(&["query", "word", "side"]) {
        let (word, side) = match place(row[0].trim_matches('`')) {
            Place::Word(word) => (word, 0),
            Place::Gap { word, after } => (word, if after { 1 } else { -1 }),
        };
        assert_eq!((row[1].as_str(), row[2].as_str()), (&*word.to_string(), &*side.to_string()), "{row:?}");
    }
}

#[test]
fn examples_of_lines_and_pages() {
    let key = |rank: u128| if rank == 8 { (7 << 100) + 1 } else { rank << 100 };
    let border =
        |line: u128| Border { last: key(2 * line + 1), first: key(2 * line + 2), second: key(2 * line + 4) };
    let mut line = [0; LINE_BYTES];
    let cost = spine::encode(Encoding::Delta8, &(0..8).map(border).collect::<Vec<_>>(), &mut line);
    assert_eq!((cost.flagged, spine::delta_header::<u128>(&line)), (1, (1 << 100, 96, spine::INEXACT)));
    let codes: Vec<String> = line[..10].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_says(&format!("{} ...", codes.join(" ")));

    let mut page = Vec::new();
    packed::pack(&[1000u32, 1003, 1003, 1010, 1021], &mut page);
    let bytes: Vec<String> = page[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_says(&format!("begins with `{}`. It has {} bytes", bytes.join(" "), page.len()));
}

#[test]
fn types() {
    let rows = table(&["key type", "code", "bytes"]);
    let documented: Vec<(String, u64, u64)> =
        rows.iter().map(|row| (row[0].clone(), number(&row[1]), number(&row[2]))).collect();
    let known: Vec<(String, u64, u64)> = KeyType::NUMERIC
        .iter()
        .chain(&[KeyType::Bytes, KeyType::Utf8])
        .map(|key| (key.to_string(), u64::from(key.code()), key.bytes() as u64))
        .collect();
    assert_eq!(documented, known);
    let rows = table(&["value type", "code", "bytes"]);
    let documented: Vec<(String, u64, u64)> =
        rows.iter().map(|row| (row[0].clone(), number(&row[1]), number(&row[2]))).collect();
    let known: Vec<(String, u64, u64)> = ValueType::NUMERIC
        .iter()
        .chain(&[ValueType::Bytes, ValueType::Utf8])
        .map(|value| (value.to_string(), u64::from(value.code()), value.bytes() as u64))
        .collect();
    assert_eq!(documented, known);
    assert_eq!((KeyType::Fixed(3).code(), ValueType::Fixed(3).code()), (7, 7));
    for (pair, n) in
        [((4, 4), 8), ((8, 8), 4), ((8, 4), 5), ((4, 8), 5), ((4, 0), 16), ((8, 0), 8), ((16, 4), 3)]
    {
        assert_eq!(LineGeometry::new(pair.0, pair.1).tuples_per_line(), n);
    }
}

#[test]
fn encodings() {
    let rows = table(&["encoding", "code", "separators, 4-byte words"]);
    let known = [Encoding::Raw, Encoding::Delta16, Encoding::Delta32, Encoding::Delta8];
    assert_eq!(rows.len(), known.len());
    for (row, encoding) in rows.iter().zip(known) {
        assert_eq!(row[0], encoding.name());
        assert_eq!(number(&row[1]), encoding as u64);
        assert_eq!(number(&row[2]), encoding.separators(4) as u64);
        assert_eq!(number(&row[3]), encoding.separators(8) as u64);
        assert_eq!(number(&row[4]), encoding.separators(16) as u64);
    }
    assert_eq!((spine::base_at(4), spine::base_at(8), spine::SHIFT_AT, spine::FLAGS_AT), (58, 54, 62, 63));
}
