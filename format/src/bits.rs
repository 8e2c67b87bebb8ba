//! Strings of bits, of which bit `i` is bit `i % 8` (0 is the least significant one) of byte `i / 8`: what
//! tails and packed pages are made of.

/// Adds numbers of a few bits each to the end of a vector.
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    held: u128,
    bits: u32,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, held: 0, bits: 0 }
    }

    /// Adds the low `count <= 64` bits of `value`, whose other bits are zero.
    pub(crate) fn put(&mut self, value: u64, count: u32) {
        self.held |= u128::from(value) << self.bits;
        self.bits += count;
        while self.bits >= 8 {
            self.out.push(self.held as u8);
            self.held >>= 8;
            self.bits -= 8;
        }
    }

    /// Writes what is held back, and zeros up to a length of `end` bytes, which holds all bits.
    pub(crate) fn finish(self, end: usize) {
        if self.bits > 0 {
            self.out.push(self.held as u8);
        }
        self.out.resize(end, 0);
    }
}

/// Up to 64 bits from bit `shift < 8` of `bytes` on; bits above those wanted are any. `is_wide` says that
/// they end beyond the first eight bytes. `None` if there are no eight bytes.
#[inline(always)]
pub(crate) fn read(bytes: &[u8], shift: u32, is_wide: bool) -> Option<u64> {
    let bits = u64::from_le_bytes(*bytes.first_chunk()?) >> shift;
    if !is_wide {
        return Some(bits);
    }
    Some(bits | u64::from(bytes.get(8).copied().unwrap_or(0)) << (64 - shift))
}
