//! Eight bytes of all keys, and which of their bits are kept: the unit in which keys become words.

/// Bytes per chunk, the unit that is compressed in one step.
pub(crate) const CHUNK_BYTES: usize = 8;

/// Mask of eight bytes of all keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Kept bits; the first byte is the most significant one.
    pub mask: u64,
    /// Values of the bits that all keys share; the other bits are zero.
    pub reference: u64,
    /// Positions of the bits that all keys share: the bits of covered bytes that are not kept.
    pub constant: u64,
    /// Number of kept bits.
    pub kept: u32,
    /// Bits moved in each step of the portable compression.
    moves: [u64; 6],
}

impl Chunk {
    pub(crate) fn new(mask: u64, reference: u64, covered: u64) -> Self {
        Self {
            mask,
            reference: reference & covered & !mask,
            constant: covered & !mask,
            kept: mask.count_ones(),
            moves: moves(mask),
        }
    }

    /// Returns the same chunk with its eight bytes in reverse order.
    pub(crate) fn turned(&self) -> Self {
        let [mask, reference, constant] = [self.mask, self.reference, self.constant].map(u64::swap_bytes);
        Self { mask, reference, constant, kept: self.kept, moves: moves(mask) }
    }

    /// Gathers the kept bits of `bytes` at the low end: the portable counterpart of the instruction `pext`.
    /// It takes six steps, each of which moves bits twice as far as the step before.
    #[inline]
    #[must_use]
    pub fn compress(&self, bytes: u64) -> u64 {
        let mut bits = bytes & self.mask;
        for (step, moving) in self.moves.iter().enumerate() {
            let moved = bits & moving;
            bits = (bits ^ moved) | (moved >> (1 << step));
        }
        bits
    }

    /// Scatters bits to their places; the inverse of [`Chunk::compress`] and the portable counterpart of the
    /// instruction `pdep`. Bits that are not kept become zero, and bits above the kept ones are ignored.
    #[inline]
    #[must_use]
    pub fn expand(&self, bits: u64) -> u64 {
        let mut bytes = bits;
        for (step, moving) in self.moves.iter().enumerate().rev() {
            bytes = (bytes & !moving) | (bytes << (1 << step) & moving);
        }
        bytes & self.mask
    }
}

/// Returns the bits that move in each step: those above an odd number of gaps of the size of the step.
fn moves(mask: u64) -> [u64; 6] {
    let mut moves = [0; 6];
    let mut mask = mask;
    let mut gaps = !mask << 1;
    for (step, moving) in moves.iter_mut().enumerate() {
        // Prefix parity: bit i is set if the number of gaps below it is odd.
        let mut parity = gaps;
        for doubling in 0..6 {
            parity ^= parity << (1 << doubling);
        }
        *moving = parity & mask;
        mask = (mask ^ *moving) | (*moving >> (1 << step));
        gaps &= !parity;
    }
    moves
}

/// Reads eight bytes from `at`, the first one most significant. Bytes after the end are zero.
#[inline(always)]
pub(crate) fn load(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(&whole) => u64::from_be_bytes(whole),
        None => load_end(bytes, at),
    }
}

#[inline]
fn load_end(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    let rest = &rest[..rest.len().min(CHUNK_BYTES)];
    if let (Some(&low), Some(&high)) = (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
        // Two loads that overlap.
        let high_at = 8 * (CHUNK_BYTES - rest.len());
        return u64::from(u32::from_be_bytes(low)) << 32 | u64::from(u32::from_be_bytes(high)) << high_at;
    }
    rest.iter().enumerate().fold(0, |word, (at, &byte)| word | u64::from(byte) << (56 - 8 * at))
}

#[cfg(test)]
mod tests {
    use super::Chunk;

    #[test]
    fn compression_gathers_the_kept_bits() {
        let mut state = 1u64;
        for round in 0..2000 {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            let mask = if round % 3 == 0 { state & state << 7 } else { state };
            let mask = [mask, 0, u64::MAX, 1, 1 << 63][if round < 5 { round } else { 0 }];
            let bytes = state.rotate_left(31) ^ 0x1234_5678_9ABC_DEF0;
            let chunk = Chunk::new(mask, 0, u64::MAX);
            let mut wanted = 0u64;
            for bit in (0..64).rev().filter(|bit| mask >> bit & 1 != 0) {
                wanted = wanted << 1 | bytes >> bit & 1;
            }
            assert_eq!(chunk.compress(bytes), wanted, "{mask:x}");
            assert_eq!(chunk.expand(wanted), bytes & mask);
        }
    }
}
