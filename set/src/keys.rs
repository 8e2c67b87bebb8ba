//! Keys as manifests have them: byte strings that compare as the keys do.

use crate::error::{Result, SetError};
use pleach::{Datum, Key, Word};
use pleach_format::KeyType;
use std::borrow::Cow;

/// Returns the bytes of a key: the encoding of a number, big-endian, or the bytes of the key.
///
/// # Errors
/// [`SetError::Key`] if it is not of this type.
pub fn key_bytes<'k>(key_type: KeyType, key: &'k Datum<'_>) -> Result<Cow<'k, [u8]>> {
    fn word<K: Key>(key: K) -> Cow<'static, [u8]> {
        let bytes = key.encode().to_u128().to_be_bytes();
        bytes[bytes.len() - K::TYPE.bytes()..].to_vec().into()
    }
    let found = match key_type {
        KeyType::U32 => {
            if let Datum::U32(key) = key {
                Some(word(*key))
            } else {
                None
            }
        }
        KeyType::U64 => {
            if let Datum::U64(key) = key {
                Some(word(*key))
            } else {
                None
            }
        }
        KeyType::U128 => {
            if let Datum::U128(key) = key {
                Some(word(*key))
            } else {
                None
            }
        }
        KeyType::I32 => {
            if let Datum::I32(key) = key {
                Some(word(*key))
            } else {
                None
            }
        }
        KeyType::I64 => {
            if let Datum::I64(key) = key {
                Some(word(*key))
            } else {
                None
            }
        }
        KeyType::F64 => {
            if let Datum::F64(key) = key {
                Some(word(*key))
            } else {
                None
            }
        }
        KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => {
            if let Datum::Bytes(key) | Datum::Utf8(key) = key { Some(Cow::Borrowed(&**key)) } else { None }
        }
    };
    found.ok_or_else(|| SetError::Key { key: format!("{key:?}"), holds: key_type.to_string() })
}

/// Returns the key of such bytes.
#[must_use]
pub fn key_datum(key_type: KeyType, key: &[u8]) -> Datum<'static> {
    if key_type.is_bytes() {
        return Datum::of_bytes(key_type, key.to_vec());
    }
    let word = key.iter().fold(0u128, |word, &byte| word << 8 | u128::from(byte));
    Datum::of_word(key_type, word)
}
