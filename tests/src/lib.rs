//! What the tests of several crates share: generators, oracles, named damage.

pub mod adversarial;
pub mod fault;
pub mod generate;
pub mod model;
pub mod mutate;
pub mod naive;
pub mod roam;
pub mod whole;

/// Whether the long form of the tests is asked for (`PLEACH_TESTS=long`): loops that are exhaustive, or as long as
/// docs/TESTING.md says. Without it they take samples, so that the suite ends within minutes.
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("PLEACH_TESTS").is_some_and(|form| form == "long")
}

/// Says what was counted for a target of docs/TRUST.md: `cargo trust` gathers these lines.
pub fn figure(target: u32, text: &str) {
    println!("figure {target}: {text}");
}
