//! What the tests of several crates share: generators, oracles, named damage.

pub mod generate;
pub mod mutate;
pub mod naive;
