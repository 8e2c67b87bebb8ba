//! Units of time, of which logical types and their texts are made.

/// Unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// `s`.
    Second,
    /// `ms`.
    Millisecond,
    /// `us`.
    Microsecond,
    /// `ns`.
    Nanosecond,
}

impl Unit {
    /// All units, from the coarsest to the finest.
    pub const ALL: [Self; 4] = [Self::Second, Self::Millisecond, Self::Microsecond, Self::Nanosecond];

    /// Reports whether a time of day in this unit has 32 bits.
    #[must_use]
    pub const fn is_coarse(self) -> bool {
        matches!(self, Self::Second | Self::Millisecond)
    }

    /// Returns the number of digits after the point of a second.
    #[must_use]
    pub const fn digits(self) -> u32 {
        match self {
            Self::Second => 0,
            Self::Millisecond => 3,
            Self::Microsecond => 6,
            Self::Nanosecond => 9,
        }
    }

    /// Returns the number of units in a second.
    #[must_use]
    pub const fn per_second(self) -> i64 {
        10_i64.pow(self.digits())
    }

    pub(super) const fn meta(self) -> &'static str {
        match self {
            Self::Second => "Second",
            Self::Millisecond => "Millisecond",
            Self::Microsecond => "Microsecond",
            Self::Nanosecond => "Nanosecond",
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Millisecond => "ms",
            Self::Microsecond => "us",
            Self::Nanosecond => "ns",
        }
    }

    pub(super) fn find_by(text: &str, name: impl Fn(Self) -> &'static str) -> Option<Self> {
        Self::ALL.into_iter().find(|&unit| name(unit) == text)
    }
}
