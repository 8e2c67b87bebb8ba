//! The meaning of the elements of a column: their kind, and the column of the file that they become.

use pleach_builder::{Column, Strings};
use pleach_format::logical::{Form, Logical, Ratio};
use pleach_format::record::FieldKind;
use pleach_format::{Key, KeyType, ValueType};

/// Meaning of the words or byte strings of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    U32,
    U64,
    U128,
    I32,
    I64,
    F32,
    F64,
    Fixed(u16),
    Bytes,
    Utf8,
}

impl Kind {
    /// Returns true for byte strings.
    pub(crate) fn is_bytes(self) -> bool {
        matches!(self, Self::Fixed(_) | Self::Bytes | Self::Utf8)
    }

    /// Returns true for floats.
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Returns the type of keys of this kind; 32-bit floats widen.
    pub(crate) fn key_type(self) -> KeyType {
        match self {
            Self::U32 => KeyType::U32,
            Self::U64 => KeyType::U64,
            Self::U128 => KeyType::U128,
            Self::I32 => KeyType::I32,
            Self::I64 => KeyType::I64,
            Self::F32 | Self::F64 => KeyType::F64,
            Self::Fixed(bytes) => KeyType::Fixed(bytes),
            Self::Bytes => KeyType::Bytes,
            Self::Utf8 => KeyType::Utf8,
        }
    }

    /// Returns the type of values of this kind, if there are such values.
    pub(crate) fn value_type(self) -> Option<ValueType> {
        Some(match self {
            Self::U32 => ValueType::U32,
            Self::U64 => ValueType::U64,
            Self::U128 => return None,
            Self::I32 => ValueType::I32,
            Self::I64 => ValueType::I64,
            Self::F32 => ValueType::F32,
            Self::F64 => ValueType::F64,
            Self::Fixed(bytes) => ValueType::Fixed(bytes),
            Self::Bytes => ValueType::Bytes,
            Self::Utf8 => ValueType::Utf8,
        })
    }

    /// Returns the type and its bounds, for messages.
    pub(crate) fn bounds(self) -> String {
        match self {
            Self::U32 => format!("u32 (0 to {})", u32::MAX),
            Self::U64 => format!("u64 (0 to {})", u64::MAX),
            Self::U128 => format!("u128 (0 to {})", u128::MAX),
            Self::I32 => format!("i32 ({} to {})", i32::MIN, i32::MAX),
            Self::I64 => format!("i64 ({} to {})", i64::MIN, i64::MAX),
            Self::F32 => "f32".to_owned(),
            Self::F64 => "f64".to_owned(),
            Self::Fixed(bytes) => format!("bytes{bytes}"),
            Self::Bytes => "bytes".to_owned(),
            Self::Utf8 => "utf8".to_owned(),
        }
    }
}

/// A column to be filled: the meaning of its elements, and whether they are keys, which are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    pub(crate) key: bool,
    /// Notation of texts, if they are those of a logical type.
    pub(crate) form: Option<Form>,
    /// Conversion factor and notation, if the words of the input are in another unit.
    pub(crate) from: Option<(Ratio, Form)>,
}

impl Target {
    /// Creates a target of plain elements.
    pub(crate) fn of(kind: Kind, key: bool) -> Self {
        Self { kind, key, form: None, from: None }
    }

    /// Returns the same target for texts of a logical type.
    pub(crate) fn meant(self, logical: Option<&Logical>) -> Self {
        Self { form: logical.and_then(Logical::form), ..self }
    }

    /// Creates a target of encoded keys.
    pub(crate) fn of_key(key_type: KeyType) -> Self {
        let kind = match key_type {
            KeyType::U32 => Kind::U32,
            KeyType::U64 => Kind::U64,
            KeyType::I32 => Kind::I32,
            KeyType::I64 => Kind::I64,
            KeyType::U128 => Kind::U128,
            KeyType::F64 => Kind::F64,
            KeyType::Fixed(bytes) => Kind::Fixed(bytes),
            KeyType::Bytes => Kind::Bytes,
            KeyType::Utf8 => Kind::Utf8,
        };
        Self::of(kind, true)
    }

    /// Creates a target of value bits. `None` for `none`.
    pub(crate) fn of_value(value_type: ValueType) -> Option<Self> {
        let kind = match value_type {
            ValueType::U32 => Kind::U32,
            ValueType::U64 => Kind::U64,
            ValueType::I32 => Kind::I32,
            ValueType::I64 => Kind::I64,
            ValueType::F32 => Kind::F32,
            ValueType::F64 => Kind::F64,
            ValueType::Fixed(bytes) => Kind::Fixed(bytes),
            ValueType::Bytes => Kind::Bytes,
            ValueType::Utf8 => Kind::Utf8,
            ValueType::None => return None,
        };
        Some(Self::of(kind, false))
    }

    /// Returns the mask with which the bits of a number are xored to become a word of this column: the sign
    /// bit of signed keys (see [`pleach_format::Key::encode`]), otherwise 0. Not for float keys.
    pub(crate) fn flip(self) -> u64 {
        match (self.key, self.kind) {
            (true, Kind::I32) => u64::from(0_i32.encode()),
            (true, Kind::I64) => 0_i64.encode(),
            _ => 0,
        }
    }

    /// Returns true if elements are floats that need [`Key::encode`].
    pub(crate) fn is_float_key(self) -> bool {
        self.key && self.kind.is_float()
    }

    /// Returns the option that selects another type.
    pub(crate) fn option(self) -> &'static str {
        if self.key { "--key-type" } else { "--value-type" }
    }
}

/// A column of an input that is read.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Its number among the columns of the input.
    pub(crate) index: usize,
    pub(crate) target: Target,
    /// Its name, for messages.
    pub(crate) label: String,
}

/// Makes an empty column for values.
pub(crate) fn empty(target: Target) -> Column {
    match target.kind {
        Kind::U32 | Kind::I32 | Kind::F32 => Column::U32(Vec::new()),
        kind if kind.is_bytes() => Column::Bytes(Strings::default()),
        _ => Column::U64(Vec::new()),
    }
}

/// Returns the type of a field and, if it is narrow, its bounds, for messages.
pub(crate) fn bounds(kind: FieldKind) -> String {
    match kind {
        FieldKind::U8 => format!("u8 (0 to {})", u8::MAX),
        FieldKind::U16 => format!("u16 (0 to {})", u16::MAX),
        FieldKind::I8 => format!("i8 ({} to {})", i8::MIN, i8::MAX),
        FieldKind::I16 => format!("i16 ({} to {})", i16::MIN, i16::MAX),
        other => other.to_string(),
    }
}
