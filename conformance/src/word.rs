//! Keys and values, and the words by which lines of the protocol name them.

use pleach_format::{KeyType, ValueType};
use std::cmp::Ordering;
use std::fmt;

/// A key or a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    None,
    /// An unsigned number.
    Unsigned(u128),
    /// A signed number.
    Signed(i64),
    /// The bits of an `f32`.
    Float32(u32),
    /// The bits of an `f64`.
    Float64(u64),
    /// A byte string, or a text.
    Bytes(Vec<u8>),
}

/// How the cells of a column are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As `-`.
    None,
    /// As digits.
    Unsigned,
    /// As digits, perhaps with a minus.
    Signed,
    /// As the 8 digits of their bits.
    Float32,
    /// As the 16 digits of their bits.
    Float64,
    /// As the digits of their bytes.
    Bytes,
}

impl Kind {
    /// Returns the kind of the keys of a type.
    #[must_use]
    pub fn of_key(key: KeyType) -> Self {
        match key {
            KeyType::U32 | KeyType::U64 | KeyType::U128 => Self::Unsigned,
            KeyType::I32 | KeyType::I64 => Self::Signed,
            KeyType::F64 => Self::Float64,
            KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => Self::Bytes,
        }
    }

    /// Returns the kind of the values of a type.
    #[must_use]
    pub fn of_value(value: ValueType) -> Self {
        match value {
            ValueType::None => Self::None,
            ValueType::U32 | ValueType::U64 => Self::Unsigned,
            ValueType::I32 | ValueType::I64 => Self::Signed,
            ValueType::F32 => Self::Float32,
            ValueType::F64 => Self::Float64,
            ValueType::Fixed(_) | ValueType::Bytes | ValueType::Utf8 => Self::Bytes,
        }
    }

    /// Reads a word; `None` if it is no cell of this kind.
    #[must_use]
    pub fn read(self, word: &str) -> Option<Cell> {
        let bits = |digits: usize| {
            let text = word.strip_prefix('f').filter(|text| text.len() == digits)?;
            u64::from_str_radix(text, 16).ok()
        };
        Some(match self {
            Self::None => return (word == "-").then_some(Cell::None),
            Self::Unsigned => Cell::Unsigned(word.parse().ok()?),
            Self::Signed => Cell::Signed(word.parse().ok()?),
            Self::Float32 => Cell::Float32(bits(8)? as u32),
            Self::Float64 => Cell::Float64(bits(16)?),
            Self::Bytes => Cell::Bytes(unhex(word.strip_prefix('x')?)?),
        })
    }
}

impl Cell {
    /// Makes a number of an `f64`.
    #[must_use]
    pub fn float(number: f64) -> Self {
        Self::Float64(number.to_bits())
    }

    /// Compares two keys of one type, as a file orders them.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Unsigned(a), Self::Unsigned(b)) => a.cmp(b),
            (Self::Signed(a), Self::Signed(b)) => a.cmp(b),
            // Keys are never NaN, and both zeros are the same key.
            (Self::Float64(a), Self::Float64(b)) => {
                f64::from_bits(*a).partial_cmp(&f64::from_bits(*b)).unwrap_or(Ordering::Equal)
            }
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            (a, b) => unreachable!("{a} and {b} are keys of different types"),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("-"),
            Self::Unsigned(number) => write!(f, "{number}"),
            Self::Signed(number) => write!(f, "{number}"),
            Self::Float32(bits) => write!(f, "f{bits:08x}"),
            Self::Float64(bits) => write!(f, "f{bits:016x}"),
            Self::Bytes(bytes) => f.write_str(&hex(bytes)),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

/// Returns the word of a byte string.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    std::iter::once("x".to_owned()).chain(bytes.iter().map(|byte| format!("{byte:02x}"))).collect()
}

/// Reads hexadecimal digits, two for each byte.
#[must_use]
pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok().filter(|it| it.len() == 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        for (kind, word) in [
            (Kind::None, "-"),
            (Kind::Unsigned, "340282366920938463463374607431768211455"),
            (Kind::Signed, "-9223372036854775808"),
            (Kind::Float32, "f7fc00001"),
            (Kind::Float64, "f3ff0000000000000"),
            (Kind::Bytes, "x"),
            (Kind::Bytes, "x00ff"),
        ] {
            assert_eq!(kind.read(word).expect("a cell").to_string(), word);
        }
        for (kind, word) in [
            (Kind::None, "0"),
            (Kind::Unsigned, "-1"),
            (Kind::Signed, "f0"),
            (Kind::Float32, "f3ff0000000000000"),
            (Kind::Bytes, "00"),
            (Kind::Bytes, "x0"),
            (Kind::Bytes, "xé0"),
        ] {
            assert_eq!(kind.read(word), None, "{word}");
        }
    }

    #[test]
    fn keys_have_the_order_of_their_type() {
        assert_eq!(Cell::float(-0.0).order(&Cell::float(0.0)), Ordering::Equal);
        assert_eq!(Cell::float(-1.0).order(&Cell::float(f64::NEG_INFINITY)), Ordering::Greater);
        assert_eq!(Cell::Signed(-1).order(&Cell::Signed(1)), Ordering::Less);
        assert_eq!(Cell::from("a").order(&Cell::from("a\0")), Ordering::Less);
    }
}
