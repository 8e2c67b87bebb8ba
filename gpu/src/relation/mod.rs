//! Relational operators over sorted columns on a device, in one pass each.
//!
//! What each operator answers is written in the crate `pleach-relation`; the paper's own path, stage by stage, is
//! [`crate::relation_paper`], against which these are measured.

pub(crate) mod columns;
pub(crate) mod expand;
pub(crate) mod merge;

pub use columns::{Sorted, Values};
pub use merge::{Form, Joined, Operation, Rule, merge};
