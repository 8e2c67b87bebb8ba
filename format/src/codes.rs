//! Values that are kept once: their codes, and the limits of the values.
//!
//! If many tuples have equal values that are byte strings, the section VALS holds each different value once,
//! and the section CODE holds a code for each tuple: the index of its value in VALS. CODE is a column of
//! numbers of 1, 2 or 4 bytes ([`crate::column`]), so a value is found by two loads instead of one, and the
//! values themselves mostly stay in the caches.

use crate::column::{ColumnGeometry, GUARD_BYTES};
use crate::layout::align_up;
use crate::section::SECTION_ALIGN;

/// Maximum number of values that are kept once.
pub const CODED_VALUES_MAX: u64 = 1 << 24;
/// Maximum bytes of all values that are kept once.
pub const CODED_BYTES_MAX: u64 = 1 << 28;

/// Returns the bytes of a code if there are this many values: the fewest that suffice.
#[must_use]
pub fn code_bytes(values: u64) -> u64 {
    match values {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

/// Reports whether a column of `codes` and a column of `values` fit together in a file of `tuples`.
#[must_use]
pub fn is_sound(codes: ColumnGeometry, values: ColumnGeometry, tuples: u64) -> bool {
    codes.elements == tuples
        && codes.element_bytes == code_bytes(values.elements)
        && (values.elements > 0) == (tuples > 0)
        && values.elements <= tuples.min(CODED_VALUES_MAX)
        && values.data_bytes <= CODED_BYTES_MAX
}

/// Reads a code from its bytes, of which there are 1, 2 or 4.
#[inline(always)]
#[must_use]
pub fn code(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        _ => 0,
    }
}

/// Reports whether values take fewer bytes of a file if each of them is stored once.
///
/// `values` is the column of different values, and `all` that of the values of all tuples.
#[must_use]
pub fn is_shorter(values: ColumnGeometry, all: ColumnGeometry) -> bool {
    let section = |shape: ColumnGeometry| align_up(shape.bytes()?, SECTION_ALIGN);
    let codes = ColumnGeometry::fixed(all.elements, code_bytes(values.elements)).and_then(section);
    let once = codes.zip(section(values)).and_then(|(codes, values)| codes.checked_add(values));
    once.zip(section(all)).is_some_and(|(once, all)| once < all)
}

const _: () = assert!(GUARD_BYTES >= 4, "a code can be read as four bytes");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_as_wide_as_their_values_need() {
        for (values, bytes) in [(0, 1), (1, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 4), (1 << 24, 4)] {
            assert_eq!(code_bytes(values), bytes, "{values}");
        }
        assert_eq!([code(&[200]), code(&[1, 2]), code(&[1, 2, 3, 4])], [200, 0x0201, 0x0403_0201]);
        assert_eq!([code(&[]), code(&[1, 2, 3])], [0, 0]);
    }

    #[test]
    fn only_columns_that_fit_together_are_sound() {
        let fixed = |elements, bytes| ColumnGeometry::fixed(elements, bytes).expect("small");
        let texts = |elements, bytes| ColumnGeometry::varying(elements, bytes).expect("small");
        assert!(is_sound(fixed(1000, 1), texts(256, 999), 1000));
        assert!(is_sound(fixed(1000, 2), texts(257, 0), 1000));
        assert!(is_sound(fixed(0, 1), texts(0, 0), 0));
        for (codes, values, tuples) in [
            (fixed(1000, 1), texts(257, 999), 1000),
            (fixed(1000, 2), texts(256, 999), 1000),
            (fixed(999, 1), texts(256, 999), 1000),
            (fixed(1000, 1), texts(0, 0), 1000),
            (fixed(0, 1), texts(1, 1), 0),
            (fixed(2, 1), texts(3, 1), 2),
            (fixed(1000, 1), texts(2, CODED_BYTES_MAX + 1), 1000),
            (fixed(1 << 25, 4), fixed(CODED_VALUES_MAX + 1, 1), 1 << 25),
        ] {
            assert!(!is_sound(codes, values, tuples), "{codes:?} {values:?} {tuples}");
        }
    }

    #[test]
    fn few_values_are_shorter_once_and_many_are_not() {
        let texts = |elements, bytes| ColumnGeometry::varying(elements, bytes).expect("small");
        assert!(is_shorter(texts(250, 2_000), texts(1 << 20, 8 << 20)));
        assert!(!is_shorter(texts(1 << 20, 8 << 20), texts(1 << 20, 8 << 20)));
        // A section begins on a multiple of 4096 bytes.
        assert!(!is_shorter(texts(1, 8), texts(100, 800)));
    }
}
