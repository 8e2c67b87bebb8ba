//! Bit strings, as used by tails and packed pages. Bit `i` is bit `i % 8` of byte `i / 8`; bit 0 is the least
//! significant one.

/// Appends numbers of a few bits each to a vector.
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    held: u128,
    bits: u32,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, held: 0, bits: 0 }
    }

    /// Appends the low `count <= 64` bits of `value`; its other bits must be zero.
    pub(crate) fn push(&mut self, value: u64, count: u32) {
        self.held |= u128::from(value) << self.bits;
        self.bits += count;
        while self.bits >= 8 {
            self.out.push(self.held as u8);
            self.held >>= 8;
            self.bits -= 8;
        }
    }

    /// Writes the pending bits, then zeros up to a length of `end` bytes, which must have room for all bits.
    pub(crate) fn finish(self, end: usize) {
        if self.bits > 0 {
            self.out.push(self.held as u8);
        }
        self.out.resize(end, 0);
    }
}

/// Reads up to 64 bits, beginning at bit `shift < 8` of `bytes`. Bits above the requested ones are arbitrary.
/// `is_wide` states that the bits end after the first eight bytes. Returns `None` if there are fewer than
/// eight bytes.
#[inline(always)]
pub(crate) fn read(bytes: &[u8], shift: u32, is_wide: bool) -> Option<u64> {
    let bits = u64::from_le_bytes(*bytes.first_chunk()?) >> shift;
    if !is_wide {
        return Some(bits);
    }
    Some(bits | u64::from(bytes.get(8).copied().unwrap_or(0)) << (64 - shift))
}
