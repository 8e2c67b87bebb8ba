//! The sections of a file as proportionate bars, and single keys and values of any type as text.

use crate::render::text::{counted, printable, put_meant, put_meant_json};
use pleach::Datum;
use pleach_format::Header;
use pleach_format::logical::Form;
use pleach_format::section::{TABLE_BYTES, TABLE_OFFSET};
use pleach_format::superblock::SUPERBLOCK_BYTES;
use pleach_format::view::CLOSING_BYTES;

/// A section of a file, drawn as a bar.
pub struct Bar {
    /// First byte.
    pub offset: u64,
    /// Number of bytes, with padding.
    pub bytes: u64,
    /// Name of the section.
    pub name: String,
    /// Contents of the section.
    pub note: String,
}

/// Returns the bars of the whole file, in file order.
pub fn bars(header: &Header) -> Vec<Bar> {
    let block = SUPERBLOCK_BYTES as u64;
    let entries = counted(header.sections.len() as u64, "section");
    let mut bars = vec![
        Bar { offset: 0, bytes: block, name: "superblock".into(), note: String::new() },
        Bar { offset: TABLE_OFFSET, bytes: TABLE_BYTES as u64, name: "section table".into(), note: entries },
    ];
    for section in &header.sections {
        let entry = &section.entry;
        let (name, noun) = match entry.tag.kind() {
            Some(kind) => (format!("{} {}", kind.name, kind.content), kind.element),
            None => (entry.tag.to_string(), "element"),
        };
        let padding = section.extent() - entry.length.get().min(section.extent());
        let mut note = counted(entry.elements.get(), noun);
        if padding > 0 {
            note += &format!(", {} of padding", counted(padding, "byte"));
        }
        bars.push(Bar { offset: section.offset(), bytes: section.extent(), name, note });
    }
    bars.push(Bar {
        offset: header.file_bytes - CLOSING_BYTES as u64,
        bytes: CLOSING_BYTES as u64,
        name: "closing copies".into(),
        note: "of section table and superblock".into(),
    });
    bars
}

/// Returns a key or value as text for people, without control characters.
pub fn datum_text(datum: &Datum<'_>, form: Option<Form>) -> String {
    let mut out = Vec::new();
    put_meant(datum, form, &mut out);
    printable(&String::from_utf8_lossy(&out))
}

/// Returns a key or value as JSON.
pub fn datum_json(datum: &Datum<'_>, form: Option<Form>) -> serde_json::Value {
    let mut out = Vec::new();
    put_meant_json(datum, form, &mut out);
    serde_json::from_slice(&out).unwrap_or_else(|_| datum_text(datum, form).into())
}

/// Returns the smallest and the largest key in the superblock, which stores only the beginning of long byte
/// keys.
pub fn key_ends(header: &Header) -> Option<(Datum<'_>, Datum<'_>)> {
    let key = header.key_type;
    match header.key_range() {
        Some((min, max)) => Some((Datum::of_word(key, min), Datum::of_word(key, max))),
        None => header.key_ends().map(|(min, max)| (Datum::of_bytes(key, min), Datum::of_bytes(key, max))),
    }
}
