//! Relational operators over sorted relations: index files, sorted columns, slices.
//!
//! The operators are those of Diamos, Wu, Lele, Wang and Yalamanchili, "Relational Algorithms for
//! Multi-Bulk-Synchronous Processors" (2012), Table 1. What each of them answers is written in [`rules`].

pub mod expr;
pub mod rules;

pub use rules::{How, Reduction, SetOperation, SetRule};
