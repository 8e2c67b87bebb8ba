//! Numbers that follow from a seed: SplitMix64 (Steele, Lea, Flood, 2014).

/// A generator.
pub struct Random(u64);

impl Random {
    /// Makes a generator whose first state is that one.
    pub const fn new(state: u64) -> Self {
        Self(state)
    }

    /// Returns 64 random bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix64(self.0)
    }

    /// Returns a number below `bound`; 0 if that is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        below(self.next(), bound)
    }

    /// Shuffles the items, all orders equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end as u64 + 1) as usize);
        }
    }
}

/// Mixes 64 bits without visible structure.
pub const fn mix64(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Returns a number below `bound` that follows from well mixed bits; 0 if `bound` is 0.
pub const fn below(mixed: u64, bound: u64) -> u64 {
    ((mixed as u128 * bound as u128) >> 64) as u64
}
