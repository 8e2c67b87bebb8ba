//! Keys as manifests have them: byte strings that compare as the keys do.

use crate::error::{Result, SetError};
use crate::manifest::word_of;
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
    macro_rules! found {
        ($($number:ident)*) => {
            match key_type {
                $(KeyType::$number => if let Datum::$number(key) = key { Some(word(*key)) } else { None },)*
                KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => {
                    if let Datum::Bytes(key) | Datum::Utf8(key) = key { Some(Cow::Borrowed(&**key)) } else { None }
                }
            }
        };
    }
    let found = found!(U32 U64 U128 I32 I64 F64);
    found.ok_or_else(|| SetError::Key { key: format!("{key:?}"), holds: key_type.to_string() })
}

/// Returns the key of such bytes.
#[must_use]
pub fn key_datum(key_type: KeyType, key: &[u8]) -> Datum<'static> {
    if key_type.is_bytes() {
        return Datum::of_bytes(key_type, key.to_vec());
    }
    Datum::of_word(key_type, word_of(key))
}
