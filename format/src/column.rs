//! Sorted columns: keys or values in rank order, in Arrow's layout.
//!
//! ```text
//! fixed    element 0, element 1, ...                          64 zero bytes
//! varying  offset 0 .. offset n, zeros to 128, the bytes      64 zero bytes
//! ```
//! Element `i` of a varying column is the bytes from offset `i` up to offset `i + 1`. Offsets have 4 bytes if
//! the last one fits in an `i32`, else 8: Arrow's `Binary` and `LargeBinary`.

use crate::key::Key;
use crate::layout::align_up;
use crate::section::{ARRAY_ALIGN, ColumnParameters, Parameters};
use crate::types::KeyType;

/// Zero bytes at the end of a column, so that wide loads of the last element stay inside the section.
pub const GUARD_BYTES: u64 = 64;

/// Shape of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnGeometry {
    /// Bytes per element; 0 if elements vary in length.
    pub element_bytes: u64,
    /// Bytes per offset: 4 or 8; 0 if elements do not vary in length.
    pub offset_bytes: u64,
    /// Number of elements.
    pub elements: u64,
    /// Bytes of all elements together.
    pub data_bytes: u64,
    /// First byte of the data, relative to the start of the section.
    pub data_at: u64,
}

impl ColumnGeometry {
    /// Creates the shape for elements of one size. Returns `None` on overflow.
    #[must_use]
    pub fn fixed(elements: u64, element_bytes: u64) -> Option<Self> {
        let data_bytes = elements.checked_mul(element_bytes)?;
        Some(Self { element_bytes, offset_bytes: 0, elements, data_bytes, data_at: 0 })
    }

    /// Creates the shape for elements of `element_bytes`, or, if that is 0, of any size, with `data_bytes` bytes
    /// together. Returns `None` on overflow.
    #[must_use]
    pub fn of_elements(elements: u64, element_bytes: u64, data_bytes: u64) -> Option<Self> {
        if element_bytes == 0 {
            Self::varying(elements, data_bytes)
        } else {
            Self::fixed(elements, element_bytes)
        }
    }

    /// Creates the shape for elements of any size that have `data_bytes` bytes together. Returns `None` on
    /// overflow.
    #[must_use]
    pub fn varying(elements: u64, data_bytes: u64) -> Option<Self> {
        let offset_bytes = if data_bytes <= i32::MAX as u64 { 4 } else { 8 };
        Self::with_offsets(elements, data_bytes, offset_bytes)
    }

    fn with_offsets(elements: u64, data_bytes: u64, offset_bytes: u64) -> Option<Self> {
        let data_at = align_up(elements.checked_add(1)?.checked_mul(offset_bytes)?, ARRAY_ALIGN)?;
        Some(Self { element_bytes: 0, offset_bytes, elements, data_bytes, data_at })
    }

    /// Returns the bytes of the section, or `None` on overflow.
    #[must_use]
    pub fn bytes(self) -> Option<u64> {
        self.data_at.checked_add(self.data_bytes)?.checked_add(GUARD_BYTES)
    }

    /// Returns the parameters of the section.
    #[must_use]
    pub fn parameters(self) -> ColumnParameters {
        ColumnParameters {
            element_bytes: (self.element_bytes as u32).into(),
            offset_bytes: (self.offset_bytes as u32).into(),
            reserved: [0; 56],
        }
    }

    /// Reads the shape of a section of `length` bytes from its parameters. Returns `None` if no shape
    /// matches.
    #[must_use]
    pub fn from_parameters(stored: Parameters, elements: u64, length: u64) -> Option<Self> {
        let stored = ColumnParameters::from(stored);
        let (element_bytes, offset_bytes) =
            (stored.element_bytes.get().into(), stored.offset_bytes.get().into());
        let this = match (element_bytes, offset_bytes) {
            (0, 4 | 8) => {
                let empty = Self::with_offsets(elements, 0, offset_bytes)?;
                let data_bytes = length.checked_sub(empty.bytes()?)?;
                Self { data_bytes, ..empty }
            }
            (1.., 0) => Self::fixed(elements, element_bytes)?,
            _ => return None,
        };
        let narrow = this.offset_bytes != 4 || this.data_bytes <= i32::MAX as u64;
        (this.parameters() == stored && this.bytes() == Some(length) && narrow).then_some(this)
    }
}

/// Appends a numeric key, given as its word, in the form used in the key column: little-endian in its own
/// type, but `u128` with the most significant byte first, as in Arrow's `FixedSizeBinary(16)`.
pub fn push_native_key(key_type: KeyType, word: u128, out: &mut Vec<u8>) {
    match key_type {
        KeyType::U32 => out.extend_from_slice(&(word as u32).to_le_bytes()),
        KeyType::U64 => out.extend_from_slice(&(word as u64).to_le_bytes()),
        KeyType::I32 => out.extend_from_slice(&i32::decode(word as u32).to_le_bytes()),
        KeyType::I64 => out.extend_from_slice(&i64::decode(word as u64).to_le_bytes()),
        KeyType::F64 => out.extend_from_slice(&f64::decode(word as u64).to_le_bytes()),
        KeyType::U128 | KeyType::Fixed(_) | KeyType::Bytes | KeyType::Utf8 => {
            out.extend_from_slice(&word.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: u64 = i32::MAX as u64;

    #[test]
    fn shapes_come_back_from_the_table_and_no_others_do() {
        let shapes = [
            (ColumnGeometry::fixed(0, 4), 64, 0),
            (ColumnGeometry::fixed(10, 16), 160 + 64, 0),
            (ColumnGeometry::varying(31, 100), 128 + 100 + 64, 128),
            (ColumnGeometry::varying(32, 0), 256 + 64, 256),
            (ColumnGeometry::varying(0, NARROW), 128 + NARROW + 64, 128),
            (ColumnGeometry::varying(15, NARROW + 1), 128 + NARROW + 1 + 64, 128),
            (ColumnGeometry::varying(16, NARROW + 1), 256 + NARROW + 1 + 64, 256),
        ];
        for (shape, bytes, data_at) in shapes {
            let shape = shape.expect("small");
            assert_eq!((shape.bytes(), shape.data_at), (Some(bytes), data_at), "{shape:?}");
            assert_eq!(
                ColumnGeometry::from_parameters(shape.parameters().into(), shape.elements, bytes),
                Some(shape)
            );
            assert_eq!(shape.offset_bytes == 8, shape.data_bytes > NARROW, "{shape:?}");
            // Only a varying column can have another length, as long as its offsets fit.
            for length in [bytes - 1, bytes + 1, 0, u64::MAX] {
                let other =
                    ColumnGeometry::from_parameters(shape.parameters().into(), shape.elements, length);
                let holds = shape.element_bytes == 0
                    && length >= data_at + GUARD_BYTES
                    && (shape.offset_bytes == 8 || length - data_at - GUARD_BYTES <= NARROW);
                assert_eq!(other.is_some(), holds, "{shape:?} {length}");
                assert!(other.is_none_or(|other| other.bytes() == Some(length)), "{shape:?} {length}");
            }
        }
    }

    #[test]
    fn forged_shapes_are_refused() {
        let stored = |element: u32, offset: u32, last: u8| {
            let mut reserved = [0; 56];
            reserved[55] = last;
            ColumnParameters { element_bytes: element.into(), offset_bytes: offset.into(), reserved }
        };
        let shape = |stored: ColumnParameters, elements, length| {
            ColumnGeometry::from_parameters(stored.into(), elements, length)
        };
        for (element, offset) in [(0, 0), (0, 2), (0, 16), (4, 4), (1, 8)] {
            assert_eq!(shape(stored(element, offset, 0), 10, 1000), None, "{element} {offset}");
        }
        let good = stored(4, 0, 0);
        assert!(shape(good, 10, 104).is_some());
        assert_eq!(shape(stored(4, 0, 1), 10, 104), None, "a reserved byte");
        assert_eq!(shape(good, u64::MAX / 4 + 11, 104), None);
        assert_eq!(ColumnGeometry::fixed(u64::MAX / 4 + 1, 4), None);
        assert_eq!(ColumnGeometry::fixed(u64::MAX / 4, 4).and_then(ColumnGeometry::bytes), None);
        assert_eq!(ColumnGeometry::varying(u64::MAX, 0), None);
        assert_eq!(ColumnGeometry::varying(u64::MAX / 4, 0), None);
    }

    #[test]
    fn keys_lie_as_arrow_has_them() {
        let native = |key_type, word| {
            let mut out = vec![7];
            push_native_key(key_type, word, &mut out);
            assert_eq!(out.remove(0), 7, "what was there stays");
            out
        };
        assert_eq!(native(KeyType::U32, 0x0102_0304), [4, 3, 2, 1]);
        assert_eq!(native(KeyType::U64, 0x0102_0304), [4, 3, 2, 1, 0, 0, 0, 0]);
        assert_eq!(native(KeyType::I32, u128::from((-2i32).encode())), (-2i32).to_le_bytes());
        assert_eq!(native(KeyType::I64, u128::from((-2i64).encode())), (-2i64).to_le_bytes());
        assert_eq!(native(KeyType::F64, u128::from((-1.5f64).encode())), (-1.5f64).to_le_bytes());
        assert_eq!(native(KeyType::U128, 1 << 120 | 9), (1u128 << 120 | 9).to_be_bytes());
    }
}
