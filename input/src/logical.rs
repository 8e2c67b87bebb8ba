//! Contents of the columns of typed inputs: plain numbers, byte strings and logical types.
//!
//! Booleans, dates, times, timestamps, durations and decimals are integers with a *logical type*. Its text
//! ([`logical_text`], [`logical_type`]) is part of the file: it is defined here and does not follow the Arrow
//! library.

use crate::kind::Kind;
use arrow_schema::{DataType, Field, TimeUnit};
use pleach_format::logical::Logical;
use pleach_format::record::FieldKind;
use std::collections::HashMap;

/// The content of a column of a typed input, and its type unless another one is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Natural {
    /// Kind of its elements.
    pub(crate) kind: Kind,
    /// Logical type, empty if plain.
    pub(crate) logical: String,
    /// Digits after the decimal point of a decimal: with any, it becomes `i64` or nothing; it never becomes a
    /// float.
    pub(crate) scale: Option<i8>,
    /// Its type as a field of a record, if that is narrower than `kind`.
    pub(crate) narrow: Option<FieldKind>,
    /// Logical type of its texts or bytes, of which Arrow has only an extension type.
    pub(crate) extension: Option<Logical>,
}

/// Returns the content of a column of this Arrow type, if it can be stored in a Pleach file at all.
pub(crate) fn natural(data_type: &DataType) -> Option<Natural> {
    let kind = match data_type {
        DataType::Boolean | DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => Kind::U32,
        DataType::UInt64 => Kind::U64,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Date32 | DataType::Time32(_) => {
            Kind::I32
        }
        DataType::Int64
        | DataType::Date64
        | DataType::Timestamp(..)
        | DataType::Time64(_)
        | DataType::Duration(_)
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..) => Kind::I64,
        DataType::Float32 => Kind::F32,
        DataType::Float64 => Kind::F64,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Utf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Kind::Bytes,
        DataType::FixedSizeBinary(bytes) => fixed(usize::try_from(*bytes).ok()?),
        DataType::Dictionary(_, values) if !matches!(**values, DataType::Dictionary(..)) => {
            return natural(values);
        }
        _ => return None,
    };
    let scale = match data_type {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => {
            Some(*scale)
        }
        _ => None,
    };
    let narrow = match data_type {
        DataType::Boolean | DataType::UInt8 => Some(FieldKind::U8),
        DataType::UInt16 => Some(FieldKind::U16),
        DataType::Int8 => Some(FieldKind::I8),
        DataType::Int16 => Some(FieldKind::I16),
        _ => None,
    };
    Some(Natural {
        kind,
        logical: logical_text(data_type).unwrap_or_default(),
        scale,
        narrow,
        extension: None,
    })
}

/// Returns the content of a column of an Arrow schema, whose type may be an extension.
pub(crate) fn natural_of(field: &Field) -> Option<Natural> {
    let extension = extension_of(field);
    natural(field.data_type()).map(|natural| Natural { extension, ..natural })
}

/// Key of an extension's name in the metadata of an Arrow field, and of the extension's own metadata.
const EXTENSION: (&str, &str) = ("ARROW:extension:name", "ARROW:extension:metadata");
/// The extension type of uuids, which Arrow defines.
const ARROW_UUID: &str = "arrow.uuid";
/// The extension type of columns whose texts are those of a logical type; its metadata is the text in META.
const TEXTS: &str = "pleach.text";

/// Returns the metadata of an Arrow field for a logical type that Arrow lacks: its extension type. Uuids are 16
/// bytes, all others texts. `None` for types that Arrow has.
#[must_use]
pub fn extension_metadata(logical: &Logical) -> Option<HashMap<String, String>> {
    let (name, metadata) = match logical {
        Logical::Uuid => (ARROW_UUID, String::new()),
        logical if is_text_in_arrow(logical) => (TEXTS, logical.meta()),
        _ => return None,
    };
    Some(HashMap::from([(EXTENSION.0.to_owned(), name.to_owned()), (EXTENSION.1.to_owned(), metadata)]))
}

/// Reports whether Arrow arrays hold the texts of this type, since Arrow does not know what its words mean. Composite
/// keys are structs; hashes and prefixes are the words themselves, since no text gives them back.
#[must_use]
pub fn is_text_in_arrow(logical: &Logical) -> bool {
    let is_other = match logical {
        Logical::Boolean | Logical::Uuid | Logical::Composite(_) => true,
        logical => matches!(logical, Logical::Hash64(_) | Logical::Prefix(_)),
    };
    logical.form().is_some_and(|form| !form.is_signed()) && !is_other
}

/// Returns the logical type of an Arrow field whose type is an extension that Pleach writes.
#[must_use]
pub fn extension_of(field: &Field) -> Option<Logical> {
    let metadata = field.metadata();
    let logical = match metadata.get(EXTENSION.0)?.as_str() {
        ARROW_UUID => Logical::Uuid,
        TEXTS => Logical::of_meta(metadata.get(EXTENSION.1)?),
        _ => return None,
    };
    (logical == Logical::Uuid || is_text_in_arrow(&logical)).then_some(logical)
}

/// Returns the kind of strings of `bytes` bytes each: `bytesN`, unless N is 0 or more than a type allows.
pub(crate) fn fixed(bytes: usize) -> Kind {
    u16::try_from(bytes).ok().filter(|&bytes| bytes > 0).map_or(Kind::Bytes, Kind::Fixed)
}

/// Returns the text of a logical type as stored in the META section: `Date32`, `Date64`, `Time32(Second)`,
/// `Time64(Microsecond)`, `Timestamp(Microsecond, None)`, `Timestamp(Second, Some("UTC"))`,
/// `Duration(Nanosecond)`, `Decimal128(15, 2)` (and 32, 64), `Boolean`. `None` for every other type.
#[must_use]
pub fn logical_text(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Boolean => "Boolean".to_owned(),
        DataType::Date32 => "Date32".to_owned(),
        DataType::Date64 => "Date64".to_owned(),
        DataType::Time32(unit) => format!("Time32({})", unit_text(*unit)),
        DataType::Time64(unit) => format!("Time64({})", unit_text(*unit)),
        DataType::Duration(unit) => format!("Duration({})", unit_text(*unit)),
        DataType::Timestamp(unit, None) => format!("Timestamp({}, None)", unit_text(*unit)),
        DataType::Timestamp(unit, Some(zone)) => {
            let zone = zone.replace('\\', "\\\\").replace('"', "\\\"");
            format!("Timestamp({}, Some(\"{zone}\"))", unit_text(*unit))
        }
        DataType::Decimal32(precision, scale) => format!("Decimal32({precision}, {scale})"),
        DataType::Decimal64(precision, scale) => format!("Decimal64({precision}, {scale})"),
        DataType::Decimal128(precision, scale) => format!("Decimal128({precision}, {scale})"),
        _ => return None,
    })
}

/// Parses the text of a logical type; the inverse of [`logical_text`]. `None` for text that it does not
/// produce, so that a file of a later version still exports, with plain numbers.
#[must_use]
pub fn logical_type(text: &str) -> Option<DataType> {
    let (name, arguments) = match text.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')')?),
        None => (text, ""),
    };
    let decimal = || -> Option<(u8, i8)> {
        let (precision, scale) = arguments.split_once(", ")?;
        Some((precision.parse().ok()?, scale.parse().ok()?))
    };
    let found = match name {
        "Boolean" => DataType::Boolean,
        "Date32" => DataType::Date32,
        "Date64" => DataType::Date64,
        "Time32" => DataType::Time32(unit_of(arguments)?),
        "Time64" => DataType::Time64(unit_of(arguments)?),
        "Duration" => DataType::Duration(unit_of(arguments)?),
        "Timestamp" => {
            let (unit, zone) = arguments.split_once(", ")?;
            let zone = match zone {
                "None" => None,
                _ => Some(unescape(zone.strip_prefix("Some(\"")?.strip_suffix("\")")?).into()),
            };
            DataType::Timestamp(unit_of(unit)?, zone)
        }
        "Decimal32" => decimal().map(|(precision, scale)| DataType::Decimal32(precision, scale))?,
        "Decimal64" => decimal().map(|(precision, scale)| DataType::Decimal64(precision, scale))?,
        "Decimal128" => decimal().map(|(precision, scale)| DataType::Decimal128(precision, scale))?,
        _ => return None,
    };
    // Accept only our own spelling: `Decimal128(+5, 02)` is not ours.
    (logical_text(&found)? == text).then_some(found)
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.push(if letter == '\\' { letters.next().unwrap_or('\\') } else { letter });
    }
    plain
}

fn unit_text(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "Second",
        TimeUnit::Millisecond => "Millisecond",
        TimeUnit::Microsecond => "Microsecond",
        TimeUnit::Nanosecond => "Nanosecond",
    }
}

fn unit_of(text: &str) -> Option<TimeUnit> {
    Some(match text {
        "Second" => TimeUnit::Second,
        "Millisecond" => TimeUnit::Millisecond,
        "Microsecond" => TimeUnit::Microsecond,
        "Nanosecond" => TimeUnit::Nanosecond,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logical_types_survive_as_text() {
        use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
        let mut types = vec![DataType::Boolean, DataType::Date32, DataType::Date64];
        for unit in [Second, Millisecond, Microsecond, Nanosecond] {
            types.push(DataType::Time32(unit));
            types.push(DataType::Time64(unit));
            types.push(DataType::Duration(unit));
            for zone in [None, Some("UTC"), Some("+02:00"), Some("a\"b\\c)"), Some("")] {
                types.push(DataType::Timestamp(unit, zone.map(Into::into)));
            }
        }
        for (precision, scale) in [(1, 0), (38, -5), (15, 2)] {
            types.push(DataType::Decimal32(precision, scale));
            types.push(DataType::Decimal64(precision, scale));
            types.push(DataType::Decimal128(precision, scale));
        }
        for data_type in types {
            let text = logical_text(&data_type).expect("is logical");
            assert_eq!(logical_type(&text).as_ref(), Some(&data_type), "{text}");
        }
        let micros = DataType::Timestamp(Microsecond, None);
        assert_eq!(logical_text(&micros).as_deref(), Some("Timestamp(Microsecond, None)"));
        for plain in [DataType::UInt32, DataType::Float64, DataType::Utf8] {
            assert_eq!(logical_text(&plain), None);
        }
        for foreign in ["", "UInt32", "Date32()", "Decimal128(+5, 2)", "Decimal128(5,2)", "Timestamp(Second)"]
        {
            assert_eq!(logical_type(foreign), None, "{foreign}");
        }
    }
}
