//! Intervals: files whose keys begin intervals, and whose values say where these end.
//!
//! META calls a file one of intervals. Its values are then records whose first field is the last key of the interval
//! that begins at the key: of the same type, and 16 bytes with the most significant one first for `u128`. Intervals do
//! not overlap, so that at most one holds a key: the one that begins last at or before it, if it does not end before.

use crate::key::Key;
use crate::record::{FieldKind, Record};
use crate::types::{KeyType, ValueType};

/// The text in META of a file of intervals.
pub const INCLUSIVE: &str = "inclusive";

/// Where the last key of an interval is in a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    key_type: KeyType,
}

/// Returns the kind of field that holds a key of this type; `None` for keys that are byte strings.
#[must_use]
pub const fn field_of(key_type: KeyType) -> Option<FieldKind> {
    Some(match key_type {
        KeyType::U32 => FieldKind::U32,
        KeyType::U64 => FieldKind::U64,
        KeyType::I32 => FieldKind::I32,
        KeyType::I64 => FieldKind::I64,
        KeyType::F64 => FieldKind::F64,
        KeyType::U128 => FieldKind::Fixed(16),
        KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => return None,
    })
}

/// Returns the word of the last key of an interval.
#[inline]
fn end(key_type: KeyType, value: &[u8]) -> u128 {
    match key_type {
        KeyType::U32 => value.first_chunk().map_or(0, |&bytes| u32::from_le_bytes(bytes).into()),
        KeyType::U64 => value.first_chunk().map_or(0, |&bytes| u64::from_le_bytes(bytes).into()),
        KeyType::I32 => value.first_chunk().map_or(0, |&bytes| i32::from_le_bytes(bytes).encode().into()),
        KeyType::I64 => value.first_chunk().map_or(0, |&bytes| i64::from_le_bytes(bytes).encode().into()),
        KeyType::F64 => value.first_chunk().map_or(0, |&bytes| f64::from_le_bytes(bytes).encode().into()),
        KeyType::U128 => value.first_chunk().map_or(0, |&bytes| u128::from_be_bytes(bytes)),
        KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => 0,
    }
}

impl Ends {
    /// Returns where intervals end in a file with these types and texts in META. `None` if it has no intervals, or if
    /// META contradicts the types.
    #[must_use]
    pub fn of(key_type: KeyType, value_type: ValueType, value_logical: &str, interval: &str) -> Option<Self> {
        let record = Record::of(value_type, value_logical).filter(|_| interval == INCLUSIVE)?;
        (record.fields().first()?.kind == field_of(key_type)?).then_some(Self { key_type })
    }

    /// Returns the number of bytes of an end.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.key_type.bytes()
    }

    /// Returns the word of the last key of an interval, from the bytes of its value. A value that is too short, which
    /// only a damaged file has, ends before all keys.
    #[must_use]
    pub fn word(self, value: &[u8]) -> u128 {
        end(self.key_type, value)
    }

    /// Does the same where the type of keys is known when this is compiled.
    #[must_use]
    #[inline]
    pub fn word_of<K: Key>(self, value: &[u8]) -> u128 {
        debug_assert!(self.key_type == K::TYPE);
        end(K::TYPE, value)
    }

    /// Writes the last key of an interval into the bytes of its value.
    pub fn put(self, word: u128, value: &mut [u8]) {
        let mut put = |bytes: &[u8]| {
            if let Some(to) = value.get_mut(..bytes.len()) {
                to.copy_from_slice(bytes);
            }
        };
        match self.key_type {
            KeyType::U32 => put(&(word as u32).to_le_bytes()),
            KeyType::U64 => put(&(word as u64).to_le_bytes()),
            KeyType::I32 => put(&i32::decode(word as u32).to_le_bytes()),
            KeyType::I64 => put(&i64::decode(word as u64).to_le_bytes()),
            KeyType::F64 => put(&f64::decode(word as u64).to_le_bytes()),
            KeyType::U128 => put(&word.to_be_bytes()),
            KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => {}
        }
    }

    /// Returns the word of the key before another; `None` if it is the first one of the type.
    #[must_use]
    pub fn before(self, word: u128) -> Option<u128> {
        let first = if self.key_type == KeyType::F64 { f64::NEG_INFINITY.encode().into() } else { 0 };
        // The word of -0.0 is no key: the one before 0.0 is the smallest number below it.
        let zero = self.key_type.minus_zero().map(|word| u128::from(word) + 1);
        let step = if Some(word) == zero { 2 } else { 1 };
        (word > first).then(|| word - step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<K: Key>(keys: &[K]) {
        let kind = field_of(K::TYPE).expect("numbers");
        let record = format!("record<last: {kind}, v: u8>");
        let value_type = ValueType::Fixed(K::TYPE.bytes() as u16 + 1);
        let ends = Ends::of(K::TYPE, value_type, &record, INCLUSIVE).expect("intervals");
        assert_eq!(Ends::of(K::TYPE, value_type, &record, ""), None);
        assert_eq!(Ends::of(K::TYPE, value_type, "record<last: u8>", INCLUSIVE), None);
        let mut value = vec![7; ends.bytes() + 1];
        for &key in keys {
            let word = pleach_word(key);
            ends.put(word, &mut value);
            assert_eq!((ends.word(&value), value[ends.bytes()]), (word, 7));
            assert_eq!(ends.word(&value[1..ends.bytes()]), 0);
        }
        let words: Vec<u128> = keys.iter().map(|&key| pleach_word(key)).collect();
        assert!(words.is_sorted());
        assert_eq!(ends.before(words[0]), None);
        assert!(words[1..].iter().all(|&word| ends.before(word).is_some_and(|before| before < word)));
    }

    fn pleach_word<K: Key>(key: K) -> u128 {
        crate::key::Word::to_u128(key.encode())
    }

    #[test]
    fn ends_are_keys() {
        check(&[0_u32, 1, u32::MAX]);
        check(&[0_u64, 1 << 40, u64::MAX]);
        check(&[i32::MIN, -1, 0, i32::MAX]);
        check(&[i64::MIN, -1, 0, i64::MAX]);
        check(&[0_u128, 1 << 100, u128::MAX]);
        check(&[f64::NEG_INFINITY, -0.5, 0.0, 1e300, f64::INFINITY]);
        assert_eq!(field_of(KeyType::Utf8), None);
        let float =
            Ends::of(KeyType::F64, ValueType::U64, "record<last: f64>", INCLUSIVE).expect("intervals");
        let before = float.before(0.0_f64.encode().into()).expect("there is one");
        assert_eq!(f64::decode(before as u64), -f64::from_bits(1));
    }
}
