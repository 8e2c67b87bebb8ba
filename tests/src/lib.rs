//! What the tests of several crates share: generators, oracles, named damage.

pub mod adversarial;
pub mod fault;
pub mod generate;
pub mod model;
pub mod mutate;
pub mod naive;
