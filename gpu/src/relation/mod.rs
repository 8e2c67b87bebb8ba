//! Relational operators of one pass over sorted columns on a device.
//!
//! [`merge`] has joins and set operations. [`select`] and [`reduce`] read each tuple once and write each
//! result once: tiles pass on their numbers of results (kernels/onepass.cuh), so that no pass has to count
//! first or gather afterwards. [`project`] and [`product`] know their places; a projection that changes the
//! order is sorted by [`sort`] where the caller requests it.
//!
//! Answers follow the rules of `pleach-relation`. The input bounds the size of the results, except for a
//! product, whose size is checked before memory is allocated.

pub(crate) mod columns;
pub mod condition;
mod dense;
pub(crate) mod expand;
pub(crate) mod job;
mod joined;
pub(crate) mod merge;
mod onepass;
mod operator;
pub(crate) mod project;
pub(crate) mod reduce;
pub(crate) mod select;
pub(crate) mod sort;

pub use columns::Sorted;
pub use condition::{Condition, Test};
pub use dense::{Column, Relation};
pub use job::Stages;
pub use joined::{Form, Joined};
pub use merge::{Operation, Rule, merge};
pub use operator::Answer;
pub use project::{Combine, PARTS_MAX, Part, Projected, Projection, Side, product, project};
pub use reduce::{Numbers, Reduction, reduce};
pub use select::select;
pub use sort::sort;
