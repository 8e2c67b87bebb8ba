//! The sections of a file as proportionate bars, and single keys and values of any type as text.

use crate::render::text::{Text, counted};
use pleach_format::section::{TABLE_BYTES, TABLE_OFFSET, Tag};
use pleach_format::superblock::SUPERBLOCK_BYTES;
use pleach_format::{Bits, Header, Key, KeyType, Value, ValueType, Word};

/// Characters of a bar that is the whole file.
const BAR: f64 = 24.0;

/// A stretch of a file.
pub struct Bar {
    /// First byte.
    pub offset: u64,
    /// Its bytes, with padding.
    pub bytes: u64,
    /// What it is.
    pub name: String,
    /// What is in it.
    pub note: String,
}

/// The whole file, stretch by stretch.
pub fn bars(header: &Header) -> Vec<Bar> {
    let block = SUPERBLOCK_BYTES as u64;
    let entries = counted(header.sections.len() as u64, "section");
    let mut bars = vec![
        Bar { offset: 0, bytes: block, name: "superblock".into(), note: String::new() },
        Bar { offset: TABLE_OFFSET, bytes: TABLE_BYTES as u64, name: "section table".into(), note: entries },
    ];
    for section in &header.sections {
        let entry = &section.entry;
        let (name, noun) = match entry.tag {
            Tag::META => ("META names", "record"),
            Tag::LINE => ("LINE tuple lines", "tuple"),
            Tag::SPINE => ("SPIN spine", "line"),
            Tag::SUMS => ("SUMS sums", "sum"),
            Tag::SUM2 => ("SUM2 their sums", "sum"),
            _ => ("", "element"),
        };
        let name = if name.is_empty() { entry.tag.to_string() } else { name.to_owned() };
        let padding = section.extent() - entry.length.get().min(section.extent());
        let mut note = counted(entry.elements.get(), noun);
        if padding > 0 {
            note += &format!(", {} of padding", counted(padding, "byte"));
        }
        bars.push(Bar { offset: section.offset(), bytes: section.extent(), name, note });
    }
    bars.push(Bar {
        offset: header.file_bytes - block,
        bytes: block,
        name: "closing copy".into(),
        note: "of the superblock".into(),
    });
    bars
}

/// A bar of this share of the whole; never empty.
pub fn bar(share: f64) -> String {
    "#".repeat(((share * BAR).round() as usize).clamp(1, BAR as usize))
}

fn text_of(value: impl Text) -> String {
    let mut out = Vec::new();
    value.put(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn decoded<K: Key>(word: u64) -> K {
    K::decode(K::Word::from_u64(word))
}

/// An encoded key.
pub fn key_text(key_type: KeyType, word: u64) -> String {
    match key_type {
        KeyType::U32 => text_of(decoded::<u32>(word)),
        KeyType::I32 => text_of(decoded::<i32>(word)),
        KeyType::U64 => text_of(decoded::<u64>(word)),
        KeyType::I64 => text_of(decoded::<i64>(word)),
        _ => format!("{word:#x}"),
    }
}

/// An encoded key; keys of 64 bits as strings.
pub fn key_json(key_type: KeyType, word: u64) -> serde_json::Value {
    match key_type {
        KeyType::U32 => decoded::<u32>(word).into(),
        KeyType::I32 => decoded::<i32>(word).into(),
        _ => key_text(key_type, word).into(),
    }
}

fn valued<V: Value>(bits: u64) -> V {
    V::from_bits(V::Bits::from_u64(bits))
}

/// A value's bits.
pub fn value_text(value_type: ValueType, bits: u64) -> String {
    match value_type {
        ValueType::None => String::new(),
        ValueType::U32 => text_of(valued::<u32>(bits)),
        ValueType::U64 => text_of(valued::<u64>(bits)),
        ValueType::I32 => text_of(valued::<i32>(bits)),
        ValueType::I64 => text_of(valued::<i64>(bits)),
        ValueType::F32 => text_of(valued::<f32>(bits)),
        ValueType::F64 => text_of(valued::<f64>(bits)),
        _ => format!("{bits:#x}"),
    }
}

/// A value's bits; values of 64-bit integers as strings, none as null.
pub fn value_json(value_type: ValueType, bits: u64) -> serde_json::Value {
    match value_type {
        ValueType::None => serde_json::Value::Null,
        ValueType::U32 => valued::<u32>(bits).into(),
        ValueType::I32 => valued::<i32>(bits).into(),
        // The shortest text of either width, read as the double that JSON has; NaN stays text.
        ValueType::F32 | ValueType::F64 => {
            let text = value_text(value_type, bits);
            text.parse().ok().filter(|value: &f64| value.is_finite()).map_or(text.into(), Into::into)
        }
        _ => value_text(value_type, bits).into(),
    }
}
