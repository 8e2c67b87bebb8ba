//! Which operator, and how many inputs it has.

use crate::error::{BatchError, Result};
pub use pleach_relation::{Aggregate, AsOf, Distance, How, Kept, SetOperation, SetRule};

/// A relational operator. See [`pleach_relation::rules`] for the tuples of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The tuples for which a condition holds: an expression such as `value > 5`.
    Select(String),
    /// New tuples: expressions of the key and the value, such as `key, value * 2`.
    Project(String),
    /// One tuple for each key, with the results of these reductions.
    Reduce(Vec<Aggregate>),
    /// The tuples of several inputs, by keys.
    Set(SetOperation, SetRule),
    /// Pairs of tuples with equal keys.
    Join(How),
    /// Pairs of a left tuple and the right one whose key is the nearest in a direction, at most so far away.
    AsOf(How, AsOf, Option<Distance>),
    /// Pairs of tuples whose keys are at most so far apart.
    Band(How, Distance),
    /// All pairs of tuples.
    Product(Kept),
}

impl Operation {
    /// Checks the number of inputs.
    pub(super) fn check(&self, inputs: usize) -> Result<()> {
        let (is_right, wanted) = match self {
            Self::Select(_) | Self::Project(_) | Self::Reduce(_) => (inputs == 1, "one relation"),
            Self::Set(SetOperation::Difference, _)
            | Self::Join(_)
            | Self::AsOf(..)
            | Self::Band(..)
            | Self::Product(_) => (inputs == 2, "two relations"),
            Self::Set(SetOperation::Union | SetOperation::Intersection, _) => {
                (inputs >= 2, "two relations or more")
            }
        };
        if is_right {
            return Ok(());
        }
        Err(BatchError::Expression(format!("wrong number of inputs: {inputs}: give {wanted}")))
    }
}
