//! Which elements of an array are null.

/// Which elements of an array are null: Arrow's validity bitmap.
#[derive(Clone, Copy, Debug)]
pub struct Nulls<'a> {
    /// A bit for each element, least significant first; 0 is a null.
    valid: &'a [u8],
    /// Number of the first element's bit.
    offset: usize,
}

impl<'a> Nulls<'a> {
    /// Describes a bitmap, in which bit `offset` belongs to the first element.
    #[must_use]
    pub const fn new(valid: &'a [u8], offset: usize) -> Self {
        Self { valid, offset }
    }

    /// Returns true if element `at` is null, or beyond the bitmap.
    #[inline]
    #[must_use]
    pub fn is_null(&self, at: usize) -> bool {
        let bit = self.offset + at;
        self.valid.get(bit / 8).is_none_or(|byte| byte >> (bit % 8) & 1 == 0)
    }
}
