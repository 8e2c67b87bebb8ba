//! The example runs, and checks its answers.

#[path = "../examples/look_up.rs"]
mod look_up;

#[test]
fn look_up_runs() {
    look_up::main().expect("the example runs");
}
