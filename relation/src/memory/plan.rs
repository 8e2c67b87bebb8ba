//! The choice between merging the inputs and skipping through the longer one.

use super::walk::GALLOP_RATIO;
use std::fmt;

/// Method of searching the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Merges both sides.
    Sweep,
    /// Skips through the longer side in doubling steps, from each key of the shorter one.
    Gallop,
}

/// Method of an operator, and the reason for it. `Display` writes it in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Method.
    pub method: Method,
    /// Tuples of the left side.
    pub left: u64,
    /// Tuples of the right side.
    pub right: u64,
}

impl Plan {
    /// Makes the plan for sides of these lengths.
    #[must_use]
    pub fn new(left: u64, right: u64) -> Self {
        let (short, long) = (left.min(right), left.max(right));
        let gallop = short.saturating_mul(GALLOP_RATIO as u64) < long;
        Self { method: if gallop { Method::Gallop } else { Method::Sweep }, left, right }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { left, right, .. } = self;
        match self.method {
            Method::Sweep => write!(f, "sweep: {left} and {right} tuples are merged"),
            Method::Gallop => {
                let (short, long) = (left.min(right), left.max(right));
                write!(f, "gallop: {long} tuples are more than {GALLOP_RATIO} times {short}")
            }
        }
    }
}
