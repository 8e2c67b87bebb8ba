//! Sorted columns: keys or values in rank order, as Arrow lays them out.
//!
//! ```text
//! fixed    element 0, element 1, ...                          64 zero bytes
//! varying  offset 0 .. offset n, zeros to 128, the bytes      64 zero bytes
//! ```
//! Element `i` of a varying column is the bytes from offset `i` up to offset `i + 1`. Offsets are
//! of 4 bytes if the last one fits in an `i32`, else of 8: Arrow's `Binary` and `LargeBinary`.

use crate::key::Key;
use crate::layout::align_up;
use crate::section::{ARRAY_ALIGN, Geometry};
use crate::types::KeyType;

/// Zero bytes at the end of a column, so that wide loads of the last element stay inside.
pub const GUARD_BYTES: u64 = 64;

/// Shape of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnGeometry {
    /// Bytes of an element; 0 if they vary.
    pub element_bytes: u64,
    /// Bytes of an offset: 4 or 8; 0 if elements do not vary.
    pub offset_bytes: u64,
    /// Number of elements.
    pub elements: u64,
    /// Bytes of all elements.
    pub data_bytes: u64,
    /// First byte of the data, counted from the start of the section.
    pub data_at: u64,
}

impl ColumnGeometry {
    /// Elements of one size. `None` on overflow.
    #[must_use]
    pub fn fixed(elements: u64, element_bytes: u64) -> Option<Self> {
        let data_bytes = elements.checked_mul(element_bytes)?;
        Some(Self { element_bytes, offset_bytes: 0, elements, data_bytes, data_at: 0 })
    }

    /// Elements of any size, `data_bytes` together. `None` on overflow.
    #[must_use]
    pub fn varying(elements: u64, data_bytes: u64) -> Option<Self> {
        let offset_bytes = if data_bytes <= i32::MAX as u64 { 4 } else { 8 };
        Self::with_offsets(elements, data_bytes, offset_bytes)
    }

    fn with_offsets(elements: u64, data_bytes: u64, offset_bytes: u64) -> Option<Self> {
        let data_at = align_up(elements.checked_add(1)?.checked_mul(offset_bytes)?, ARRAY_ALIGN)?;
        Some(Self { element_bytes: 0, offset_bytes, elements, data_bytes, data_at })
    }

    /// Bytes of the section. `None` on overflow.
    #[must_use]
    pub fn bytes(self) -> Option<u64> {
        self.data_at.checked_add(self.data_bytes)?.checked_add(GUARD_BYTES)
    }

    /// As it stands in the section table.
    #[must_use]
    pub fn stored(self) -> Geometry {
        Geometry {
            key_bytes: (self.element_bytes as u32).into(),
            value_bytes: (self.offset_bytes as u32).into(),
            ..Geometry::default()
        }
    }

    /// From the section table: the shape of a section of `length` bytes, if there is one.
    #[must_use]
    pub fn from_stored(stored: Geometry, elements: u64, length: u64) -> Option<Self> {
        let (element_bytes, offset_bytes) = (stored.key_bytes.get().into(), stored.value_bytes.get().into());
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
        (this.stored() == stored && this.bytes() == Some(length) && narrow).then_some(this)
    }
}

/// Appends a numeric key, given as its word, as the key column holds it: little-endian as the type
/// has it, but `u128` most significant byte first, as Arrow's `FixedSizeBinary(16)`.
pub fn push_native_key(key_type: KeyType, word: u128, out: &mut Vec<u8>) {
    match key_type {
        KeyType::U32 => out.extend_from_slice(&(word as u32).to_le_bytes()),
        KeyType::U64 => out.extend_from_slice(&(word as u64).to_le_bytes()),
        KeyType::I32 => out.extend_from_slice(&i32::decode(word as u32).to_le_bytes()),
        KeyType::I64 => out.extend_from_slice(&i64::decode(word as u64).to_le_bytes()),
        KeyType::F64 => out.extend_from_slice(&f64::decode(word as u64).to_le_bytes()),
        _ => out.extend_from_slice(&word.to_be_bytes()),
    }
}
