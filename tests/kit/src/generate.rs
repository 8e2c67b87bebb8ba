//! Deterministic data: mixers and key sets with a known shape.

/// A bijective mixer of 64 bits: no two inputs give the same output.
#[must_use]
pub const fn mix(x: u64) -> u64 {
    let mut x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

/// A small random generator with a printed seed: `Random(7).next()`.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits. It never ends, so it is not an iterator.
    #[allow(clippy::should_implement_trait, reason = "an endless source gives no Option")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }
    /// A number below `end` (which is not 0).
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Numbers off an input of a fuzzer, from its front; zeros when it has ended.
pub struct Taker<'a>(pub &'a [u8]);

impl Taker<'_> {
    /// Returns the next number of at most 8 bytes, little-endian.
    pub fn take(&mut self, bytes: usize) -> u64 {
        let mut word = [0; 8];
        let (now, rest) = self.0.split_at(bytes.min(self.0.len()));
        word[..now.len()].copy_from_slice(now);
        self.0 = rest;
        u64::from_le_bytes(word)
    }
}

/// Distribution of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// 0, 1, 2, ...
    Dense,
    /// Uniform over all words.
    Uniform,
    /// Runs of neighbours at random places.
    Clustered,
    /// Keys that occur many times.
    Duplicates,
    /// All keys the same.
    Equal,
    /// 0 and the largest key, many times each, and little between.
    Extremes,
    /// Tight groups with huge gaps between: no narrow code parts the members of a group.
    Adversarial,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Shape; 7] = [
        Shape::Dense,
        Shape::Uniform,
        Shape::Clustered,
        Shape::Duplicates,
        Shape::Equal,
        Shape::Extremes,
        Shape::Adversarial,
    ];

    /// `count` words of `bits` bits of this shape, sorted.
    #[must_use]
    pub fn words(self, count: usize, bits: u32, seed: u64) -> Vec<u64> {
        let max = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        let mut random = Random(mix(seed));
        let mut words: Vec<u64> = (0..count as u64)
            .map(|i| match self {
                Self::Dense => i,
                Self::Uniform => random.next() & max,
                Self::Clustered => (mix(i / 37) & max & !0xFF) | (i % 37),
                Self::Duplicates => mix(i / 23) & max,
                Self::Equal => max / 3,
                Self::Extremes => match i % 5 {
                    0 | 1 => 0,
                    2 | 3 => max,
                    _ => random.next() & max,
                },
                Self::Adversarial => (i / 5000) * (max / 64) + i % 5000,
            })
            .map(|word| word.min(max))
            .collect();
        words.sort_unstable();
        words
    }
}
