//! The number of queries that take turns.

/// Number S of queries whose cache misses overlap. Answers do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlight {
    /// No software pipelining.
    One,
    /// 4, as in the paper on Knights Ferry.
    Four,
    /// 8, as in the paper on CPUs.
    Eight,
    /// 16.
    Sixteen,
    /// 32.
    ThirtyTwo,
}

impl InFlight {
    /// All numbers, ascending.
    pub const ALL: [Self; 5] = [Self::One, Self::Four, Self::Eight, Self::Sixteen, Self::ThirtyTwo];

    /// Returns the number of queries.
    #[must_use]
    pub const fn queries(self) -> usize {
        match self {
            Self::One => 1,
            Self::Four => 4,
            Self::Eight => 8,
            Self::Sixteen => 16,
            Self::ThirtyTwo => 32,
        }
    }
}
