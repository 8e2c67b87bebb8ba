//! Keys and values whose types are known only at run time, for tools that show any file.

use crate::error::ReadError;
use crate::index::Index;
use crate::rest::Rest;
use pleach_format::mask::Mask;
use pleach_format::record::FieldValue;
use pleach_format::view::{self, Bytes};
use pleach_format::{Key, KeyType, ValueType};
use std::borrow::Cow;

/// A key or a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum<'a> {
    /// A value of type `none`.
    None,
    /// A `u32`.
    U32(u32),
    /// A `u64`.
    U64(u64),
    /// A `u128`.
    U128(u128),
    /// An `i32`.
    I32(i32),
    /// An `i64`.
    I64(i64),
    /// An `f32`.
    F32(f32),
    /// An `f64`.
    F64(f64),
    /// A byte string.
    Bytes(Cow<'a, [u8]>),
    /// A text; not UTF-8 if the file is damaged and was not verified.
    Utf8(Cow<'a, [u8]>),
}

impl<'a> Datum<'a> {
    /// Creates a numeric key from its word.
    #[must_use]
    pub fn of_word(key_type: KeyType, word: u128) -> Self {
        match key_type {
            KeyType::U32 => Self::U32(word as u32),
            KeyType::U64 => Self::U64(word as u64),
            KeyType::I32 => Self::I32(i32::decode(word as u32)),
            KeyType::I64 => Self::I64(i64::decode(word as u64)),
            KeyType::F64 => Self::F64(f64::decode(word as u64)),
            KeyType::U128 | KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => Self::U128(word),
        }
    }

    /// Creates a byte key.
    #[must_use]
    pub fn of_bytes(key_type: KeyType, bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        if key_type == KeyType::Utf8 { Self::Utf8(bytes.into()) } else { Self::Bytes(bytes.into()) }
    }

    /// Creates a numeric value from its bits.
    #[must_use]
    pub fn of_bits(value_type: ValueType, bits: u64) -> Self {
        match value_type {
            ValueType::U32 => Self::U32(bits as u32),
            ValueType::U64 => Self::U64(bits),
            ValueType::I32 => Self::I32((bits as u32).cast_signed()),
            ValueType::I64 => Self::I64(bits.cast_signed()),
            ValueType::F32 => Self::F32(f32::from_bits(bits as u32)),
            ValueType::F64 => Self::F64(f64::from_bits(bits)),
            ValueType::None | ValueType::Fixed(_) | ValueType::Bytes | ValueType::Utf8 => Self::None,
        }
    }

    /// Creates the value of a record's field; narrow integers widen.
    #[must_use]
    pub fn of_field(value: FieldValue<'a>) -> Self {
        match value {
            FieldValue::U8(number) => Self::U32(number.into()),
            FieldValue::U16(number) => Self::U32(number.into()),
            FieldValue::U32(number) => Self::U32(number),
            FieldValue::U64(number) => Self::U64(number),
            FieldValue::I8(number) => Self::I32(number.into()),
            FieldValue::I16(number) => Self::I32(number.into()),
            FieldValue::I32(number) => Self::I32(number),
            FieldValue::I64(number) => Self::I64(number),
            FieldValue::F32(number) => Self::F32(number),
            FieldValue::F64(number) => Self::F64(number),
            FieldValue::Fixed(bytes) | FieldValue::Bytes(bytes) => Self::Bytes(bytes.into()),
            FieldValue::Utf8(text) => Self::Utf8(text.as_bytes().into()),
        }
    }

    /// Copies borrowed bytes, so that the datum outlives its file.
    #[must_use]
    pub fn into_owned(self) -> Datum<'static> {
        match self {
            Self::None => Datum::None,
            Self::U32(number) => Datum::U32(number),
            Self::U64(number) => Datum::U64(number),
            Self::U128(number) => Datum::U128(number),
            Self::I32(number) => Datum::I32(number),
            Self::I64(number) => Datum::I64(number),
            Self::F32(number) => Datum::F32(number),
            Self::F64(number) => Datum::F64(number),
            Self::Bytes(bytes) => Datum::Bytes(Cow::Owned(bytes.into_owned())),
            Self::Utf8(bytes) => Datum::Utf8(Cow::Owned(bytes.into_owned())),
        }
    }

    /// Returns the bytes of the record stored as this value; empty if a value of this type cannot hold one.
    #[must_use]
    pub fn packed(&self) -> Cow<'_, [u8]> {
        match self {
            Self::U32(word) => word.to_le_bytes().to_vec().into(),
            Self::U64(word) => word.to_le_bytes().to_vec().into(),
            Self::Bytes(bytes) => Cow::Borrowed(bytes),
            _ => Cow::Borrowed(&[]),
        }
    }
}

macro_rules! from {
    ($($t:ty as $variant:ident, $from:ident => $made:expr;)*) => {$(
        impl<'a> From<$t> for Datum<'a> {
            fn from($from: $t) -> Self {
                Self::$variant($made)
            }
        }
    )*};
}
from! {
    u32 as U32, number => number;
    u64 as U64, number => number;
    u128 as U128, number => number;
    i32 as I32, number => number;
    i64 as I64, number => number;
    f32 as F32, number => number;
    f64 as F64, number => number;
    &'a [u8] as Bytes, bytes => bytes.into();
    Vec<u8> as Bytes, bytes => bytes.into();
    &'a str as Utf8, text => text.as_bytes().into();
    String as Utf8, text => text.into_bytes().into();
}

impl Index {
    /// Returns the encoded key (of a byte key, its word) and the bits of the value at `rank`, widened; `None` past
    /// the end.
    fn raw_tuple(&self, rank: u64) -> Result<Option<(u128, u64)>, ReadError> {
        let header = self.header();
        let tuple = match self.verified() {
            Some(verified) => view::tuple(header, &verified, rank)?,
            None => view::tuple(header, &Bytes(self.bytes()), rank)?,
        };
        self.check_mapping()?;
        Ok(tuple)
    }

    /// Returns the key and the value at `rank`, for all types; `None` if `rank` is past the last tuple. For
    /// display: typed views are faster.
    ///
    /// # Errors
    /// [`ReadError::Format`] if a block does not match its sum, which only [`crate::Verify::Touched`] checks;
    /// [`ReadError::MappingLost`] if the file was truncated while it was mapped.
    pub fn tuple(&self, rank: u64) -> Result<Option<(Datum<'_>, Datum<'_>)>, ReadError> {
        let Some((word, bits)) = self.raw_tuple(rank)? else { return Ok(None) };
        let key = match self.mask() {
            None => Datum::of_word(self.key_type(), word),
            Some(mask) => self.byte_key(mask, rank, word)?,
        };
        let value = match self.value_type() {
            ValueType::Fixed(_) | ValueType::Bytes => Datum::Bytes(self.byte_value(rank)?),
            ValueType::Utf8 => Datum::Utf8(self.byte_value(rank)?),
            numeric @ (ValueType::None
            | ValueType::U32
            | ValueType::U64
            | ValueType::I32
            | ValueType::I64
            | ValueType::F32
            | ValueType::F64) => Datum::of_bits(numeric, bits),
        };
        Ok(Some((key, value)))
    }

    fn byte_key(&self, mask: &Mask, rank: u64, word: u128) -> Result<Datum<'_>, ReadError> {
        let mut key = Vec::new();
        Rest::new(self, mask).key(mask, rank, word, &mut key)?;
        Ok(Datum::of_bytes(self.key_type(), key))
    }

    /// Returns the bytes of the value at `rank`; empty past the end. Verified as the index is.
    pub(crate) fn packed_value(&self, rank: u64) -> Result<Cow<'_, [u8]>, ReadError> {
        let bits = || self.raw_tuple(rank).map(|tuple| tuple.unwrap_or_default().1.to_le_bytes());
        match self.value_type() {
            ValueType::None => Ok(Cow::Borrowed(&[])),
            ValueType::U32 | ValueType::I32 | ValueType::F32 => Ok(bits()?[..4].to_vec().into()),
            ValueType::U64 | ValueType::I64 | ValueType::F64 => Ok(bits()?.to_vec().into()),
            ValueType::Fixed(_) | ValueType::Bytes | ValueType::Utf8 => self.byte_value(rank),
        }
    }

    fn byte_value(&self, rank: u64) -> Result<Cow<'_, [u8]>, ReadError> {
        Ok(self.value_column().map_or(Ok(None), |column| column.get(rank))?.unwrap_or_default())
    }
}
