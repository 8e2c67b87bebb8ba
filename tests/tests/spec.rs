//! `docs/FORMAT.md` is normative: its tables are compared with the constants of the code.

use pleach_format::checksum::SUM_BLOCK_BYTES;
use pleach_format::layout::{CHILD_LINES_MAX, LINE_BYTES};
use pleach_format::section::{
    ARRAY_ALIGN, ColumnParameters, ENTRY_BYTES, Entry, FastParameters, GridParameters, HUGE_PAGE_BYTES,
    HarmoniaParameters, LARGE_ALIGN, LARGE_SECTION_BYTES, LEVELS_MAX, LineParameters, PARAMETERS_BYTES,
    PackedParameters, SECTION_ALIGN, SECTIONS, SECTIONS_MAX, SpineParameters, TABLE_BYTES, TABLE_OFFSET,
    TextParameters, TrieParameters,
};
use pleach_format::spine::{self, Encoding};
use pleach_format::superblock::{SUPERBLOCK_BYTES, Superblock};
use pleach_format::version::{MAGIC, VERSION_MAJOR, VERSION_MINOR};
use pleach_format::{KeyType, LineGeometry, ValueType};
use std::mem::offset_of;

const SPEC: &str = include_str!("../../docs/FORMAT.md");

/// The rows of the table whose header begins with these cells.
fn table(header: &[&str]) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = SPEC.lines();
    lines
        .by_ref()
        .find(|line| line.starts_with('|') && cells(line).iter().zip(header).all(|(a, b)| a == b))
        .unwrap_or_else(|| panic!("docs/FORMAT.md has no table {header:?}"));
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
    let fields = fields!(Superblock: magic version_major version_minor development reader_features writer_features
        ignorable_features file_id generation file_bytes tuples key_type value_type key_bytes value_bytes unique
        table_offset table_bytes sections table_crc min_key_len max_key_len min_key max_key builder lineage
        reserved crc);
    check_map("## 2. Superblock", &fields, SUPERBLOCK_BYTES);
    let magic: Vec<String> = MAGIC.iter().map(|byte| format!("{byte:02X}")).collect();
    assert!(SPEC.contains(&magic.join(" ")), "the magic stands in the document");
}

#[test]
fn section_table() {
    let fields = fields!(Entry: tag flags offset length elements sums_offset sums sums_crc reserved
        parameters reserved2);
    check_map("## 4. Section table", &fields, ENTRY_BYTES);
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
}

/// Each kind of section has a row in section 1 and, if it has parameters, a table of them.
#[test]
fn sections() {
    let heading = SPEC.lines().filter(|line| line.contains("offset | bytes | field"));
    let headings: Vec<&str> = heading.filter_map(|line| line.strip_prefix("| ")?.split(':').next()).collect();
    let tables = |name: &str| headings.iter().filter(|tags| tags.split(", ").any(|tag| tag == name)).count();
    for kind in SECTIONS {
        assert_eq!(tables(kind.name), usize::from(!kind.parameters.is_empty()), "{}", kind.name);
        let row = |line: &str| {
            line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').starts_with(kind.name)
        };
        assert!(SPEC.lines().any(row), "{} is not in the list of section 1", kind.name);
    }
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
    let rows = table(&["encoding", "code", "separators (4-byte keys)"]);
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
