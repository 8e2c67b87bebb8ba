//! The output of `cargo trust` about itself. This test also builds the program, which `.ci/run` then runs.

use std::process::Command;

#[test]
fn thirty_targets_are_listed() {
    let output = Command::new(env!("CARGO_BIN_EXE_trust")).arg("--list").output().expect("runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let numbers: Vec<u32> =
        text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
    assert_eq!(numbers, (1..=30).collect::<Vec<_>>());
    let output = Command::new(env!("CARGO_BIN_EXE_trust")).arg("31").output().expect("runs");
    assert_eq!(output.status.code(), Some(8));
    assert!(String::from_utf8_lossy(&output.stderr).contains("target 31"));
}
