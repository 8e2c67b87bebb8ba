//! Generators, oracles and named damage that the tests of several crates share.

pub mod adversarial;
pub mod fault;
pub mod model;
pub mod near;
pub mod roam;
pub mod trees;
pub mod whole;

pub use pleach_kit::{figure, generate, is_long, mutate, naive, pages};

/// The Rust programs of README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
