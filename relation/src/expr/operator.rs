//! Comparisons, and operations on whole numbers.

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Comparison {
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::AtLeast => ">=",
        }
    }

    pub(super) fn from_sign(sign: &str) -> Option<Self> {
        Some(match sign {
            "=" | "==" => Self::Equal,
            "!=" | "<>" => Self::Unequal,
            "<" => Self::Below,
            "<=" => Self::AtMost,
            ">" => Self::Above,
            ">=" => Self::AtLeast,
            _ => return None,
        })
    }

    /// Returns the comparison with its sides exchanged.
    pub(super) const fn mirrored(self) -> Self {
        match self {
            Self::Below => Self::Above,
            Self::AtMost => Self::AtLeast,
            Self::Above => Self::Below,
            Self::AtLeast => Self::AtMost,
            same => same,
        }
    }

    /// Returns true if the comparison holds for two operands in this order.
    pub(super) const fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Below => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::Above => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }
}

/// An operation on whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Or,
    Xor,
    And,
    Left,
    Right,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// The operations with their signs, loosest first; those of one row have the same precedence.
pub(super) const LEVELS: [&[(&str, Arithmetic)]; 6] = [
    &[("|", Arithmetic::Or)],
    &[("^", Arithmetic::Xor)],
    &[("&", Arithmetic::And)],
    &[("<<", Arithmetic::Left), (">>", Arithmetic::Right)],
    &[("+", Arithmetic::Add), ("-", Arithmetic::Subtract)],
    &[("*", Arithmetic::Multiply), ("/", Arithmetic::Divide), ("%", Arithmetic::Remainder)],
];

impl Arithmetic {
    pub(super) fn sign(self) -> &'static str {
        let all = LEVELS.iter().copied().flatten();
        all.copied().find(|&(_, operation)| operation == self).map_or("", |(sign, _)| sign)
    }
}
