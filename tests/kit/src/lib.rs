//! What tests make files of, and damage them with. It knows the format alone, so that what checks files can be tested
//! without building all that writes and searches them.

pub mod generate;
pub mod mutate;
pub mod naive;

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
