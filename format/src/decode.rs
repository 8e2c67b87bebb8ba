//! A lenient decoder of the superblock and the section table, for tools. It returns every field with its
//! place, even in a damaged file.
//!
//! Decoding never fails and never discards what was read. A field that looks wrong gets a remark.

use crate::checksum::crc32;
use crate::section::{
    ENTRY_BYTES, Entry, SECTIONS_MAX, TABLE_BYTES, TABLE_OFFSET, decode_table, entry_offset,
};
use crate::superblock::{CRC_OFFSET, SUPERBLOCK_BYTES, Superblock};
use crate::types::{KeyType, ValueType};
use crate::version::{MAGIC, reads};
use zerocopy::FromBytes;

/// A field as stored in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Name, as in `spec/FORMAT.md`.
    pub name: String,
    /// Its value, as text.
    pub value: String,
    /// The remark if something is wrong with the field.
    pub remark: Option<String>,
}

/// Returns the fields of a superblock that begins at `offset`. Short input gives the fields that are
/// complete.
#[must_use]
pub fn superblock(bytes: &[u8], offset: u64) -> Vec<Field> {
    let mut padded = [0; SUPERBLOCK_BYTES];
    let there = bytes.len().min(SUPERBLOCK_BYTES);
    padded[..there].copy_from_slice(&bytes[..there]);
    let Ok(block) = Superblock::read_from_bytes(&padded) else { return Vec::new() };
    let mut fields = Vec::new();
    let mut at = 0u64;
    let mut put = |name: &str, length: u64, value: String, remark: Option<String>| {
        if at + length <= there as u64 {
            fields.push(Field { offset: offset + at, length, name: name.to_owned(), value, remark });
        }
        at += length;
    };
    let unless = |good: bool, remark: String| (!good).then_some(remark);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (major, minor) = (block.version_major.get(), block.version_minor.get());
    put(
        "magic",
        16,
        block.magic.escape_ascii().to_string(),
        unless(block.magic == MAGIC, "not that of Pleach".into()),
    );
    put(
        "version_major",
        2,
        major.to_string(),
        unless(reads(major, minor), "not read by this program".into()),
    );
    put("version_minor", 2, minor.to_string(), None);
    let mark = block.reserved_mark.get().to_le_bytes();
    let mark_text = if mark == [0; 4] { "zero".to_owned() } else { mark.escape_ascii().to_string() };
    put("reserved_mark", 4, mark_text, None);
    put("reader_features", 8, format!("{:#x}", block.reader_features), None);
    put("writer_features", 8, format!("{:#x}", block.writer_features), None);
    put("ignorable_features", 8, format!("{:#x}", block.ignorable_features), None);
    put("file_id", 16, hex(&block.file_id), None);
    put("generation", 8, block.generation.to_string(), None);
    put("file_bytes", 8, block.file_bytes.to_string(), None);
    put("tuples", 8, block.tuples.to_string(), None);
    let key = KeyType::from_code(block.key_type.get(), block.key_bytes.get());
    put(
        "key_type",
        2,
        key.map_or(block.key_type.to_string(), |key| key.to_string()),
        unless(key.is_some(), "unknown".into()),
    );
    let value = ValueType::from_code(block.value_type.get(), block.value_bytes.get());
    put(
        "value_type",
        2,
        value.map_or(block.value_type.to_string(), |value| value.to_string()),
        unless(value.is_some(), "unknown".into()),
    );
    put("key_bytes", 4, block.key_bytes.to_string(), None);
    put("value_bytes", 4, block.value_bytes.to_string(), None);
    put("unique", 4, block.unique.to_string(), None);
    put("table_offset", 8, block.table_offset.to_string(), None);
    put("table_bytes", 8, block.table_bytes.to_string(), None);
    put("sections", 4, block.sections.to_string(), None);
    put("table_crc", 4, format!("{:08x}", block.table_crc), None);
    put("min_key_len", 4, block.min_key_len.to_string(), None);
    put("max_key_len", 4, block.max_key_len.to_string(), None);
    let length = |len: u32| (len as usize).min(block.min_key.len());
    put("min_key", 64, hex(&block.min_key[..length(block.min_key_len.get())]), None);
    put("max_key", 64, hex(&block.max_key[..length(block.max_key_len.get())]), None);
    let builder = String::from_utf8_lossy(&block.builder).trim_end_matches('\0').to_owned();
    put("builder", 32, builder, None);
    let lineage = if block.lineage == [0; 16] { "none".into() } else { hex(&block.lineage) };
    put("lineage", 16, lineage, None);
    let zero = block.reserved.iter().all(|&byte| byte == 0);
    put("reserved", block.reserved.len() as u64, if zero { "zero" } else { "not zero" }.into(), None);
    let found = crc32(&padded[..CRC_OFFSET]);
    let good = found == block.crc.get();
    put("crc", 4, format!("{:08x}", block.crc), unless(good, format!("the bytes give {found:08x}")));
    fields
}

/// Returns the fields and the entries of the section table in `bytes`. `stored_crc` is the sum stored in the
/// superblock.
#[must_use]
pub fn table(bytes: &[u8], stored_crc: Option<u32>) -> (Vec<Field>, Vec<Entry>) {
    let found = crc32(bytes);
    let remark = match stored_crc {
        Some(stored) if stored != found || bytes.len() != TABLE_BYTES => {
            Some(format!("sum {stored:08x} is stored, the bytes give {found:08x}"))
        }
        _ => None,
    };
    let mut entries = decode_table(bytes, SECTIONS_MAX);
    while entries.last().is_some_and(|entry| entry.tag.0 == [0; 4]) {
        entries.pop();
    }
    let mut fields = vec![Field {
        offset: TABLE_OFFSET,
        length: bytes.len() as u64,
        name: "section table".into(),
        value: format!("{} entries", entries.len()),
        remark,
    }];
    for (index, entry) in entries.iter().enumerate() {
        fields.push(Field {
            offset: entry_offset(index),
            length: ENTRY_BYTES as u64,
            name: format!("entry {}", entry.tag),
            value: format!(
                "offset {} length {} elements {} sums {}",
                entry.offset, entry.length, entry.elements, entry.sums
            ),
            remark: None,
        });
    }
    (fields, entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::{Parameters, Tag};
    use zerocopy::IntoBytes;

    fn sample() -> Superblock {
        let mut block = Superblock::new(KeyType::U64, ValueType::F32);
        block.min_key_len = 3.into();
        block.max_key_len = 1000.into();
        block.min_key[..4].copy_from_slice(&[1, 2, 0xAB, 4]);
        block.builder[..6].copy_from_slice(b"pleach");
        block
    }

    fn remarks(bytes: &[u8]) -> Vec<(String, String)> {
        let fields = superblock(bytes, 0).into_iter();
        fields.filter_map(|field| Some((field.name, field.remark?))).collect()
    }

    #[test]
    fn fields_tile_the_superblock() {
        let bytes = sample().seal();
        let fields = superblock(&bytes, 1 << 20);
        let mut at = 1 << 20;
        for field in &fields {
            assert_eq!((field.offset, &field.remark), (at, &None), "{field:?}");
            at += field.length;
        }
        assert_eq!(at, (1 << 20) + SUPERBLOCK_BYTES as u64);
        let value = |name| fields.iter().find(|field| field.name == name).expect("a field").value.as_str();
        assert_eq!([value("key_type"), value("value_type"), value("builder")], ["u64", "f32", "pleach"]);
        assert_eq!([value("min_key"), value("reserved_mark"), value("reserved")], ["0102ab", "zero", "zero"]);
        assert_eq!(value("max_key").len(), 128, "no more than is there");
        // Miri is slow.
        for length in (0..bytes.len()).step_by(if cfg!(miri) { 509 } else { 1 }) {
            let there = superblock(&bytes[..length], 1 << 20);
            let same = there
                .iter()
                .zip(&fields)
                .all(|(one, other)| one.offset == other.offset && one.name == other.name);
            assert!(same && there.len() <= fields.len(), "{length}");
            let end = fields.get(there.len()).map_or(u64::MAX, |next| next.offset + next.length - (1 << 20));
            assert!(end > length as u64, "{length}: the next field is there, too");
        }
    }

    #[test]
    fn what_looks_wrong_gets_a_remark() {
        let damaged = |change: fn(&mut Superblock)| {
            let mut block = sample();
            change(&mut block);
            let found = remarks(&block.seal());
            assert_eq!(found.len(), 1, "{found:?}");
            found[0].0.clone()
        };
        assert_eq!(damaged(|block| block.magic[1] = b'p'), "magic");
        assert_eq!(damaged(|block| block.version_major = 9.into()), "version_major");
        assert_eq!(damaged(|block| block.key_type = 99.into()), "key_type");
        assert_eq!(damaged(|block| block.value_type = 99.into()), "value_type");
        let mut bytes = sample().seal();
        bytes[4000] = 1;
        assert_eq!(remarks(&bytes)[0].0, "crc");
        let reserved = superblock(&bytes, 0).into_iter().find(|field| field.name == "reserved");
        assert_eq!(reserved.expect("a field").value, "not zero");
    }

    #[test]
    fn entries_have_their_places() {
        let entry = |tag, offset| Entry::new(tag, true, offset, 100, 7, Parameters::NONE);
        let mut bytes = vec![0; TABLE_BYTES];
        for (index, entry) in [entry(Tag::META, 12_288), entry(Tag::LINE, 16_384)].iter().enumerate() {
            bytes[index * ENTRY_BYTES..][..ENTRY_BYTES].copy_from_slice(entry.as_bytes());
        }
        let sum = crc32(&bytes);
        let (fields, entries) = table(&bytes, Some(sum));
        assert_eq!(entries.iter().map(|entry| entry.tag).collect::<Vec<_>>(), [Tag::META, Tag::LINE]);
        let places: Vec<_> = fields.iter().map(|field| (field.offset, field.length, &*field.name)).collect();
        let (whole, one) = (TABLE_BYTES as u64, ENTRY_BYTES as u64);
        assert_eq!(
            places,
            [
                (TABLE_OFFSET, whole, "section table"),
                (TABLE_OFFSET, one, "entry META"),
                (TABLE_OFFSET + one, one, "entry LINE")
            ]
        );
        assert!(fields.iter().all(|field| field.remark.is_none()));
        assert_eq!(fields[0].value, "2 entries");
        assert!(fields[2].value.starts_with("offset 16384 length 100 elements 7"));
        assert_eq!(table(&bytes, None).0[0].remark, None, "nothing to hold it against");
        assert!(table(&bytes, Some(sum ^ 1)).0[0].remark.is_some());
        let short = &bytes[..TABLE_BYTES - ENTRY_BYTES];
        assert!(table(short, Some(crc32(short))).0[0].remark.is_some());
    }
}
