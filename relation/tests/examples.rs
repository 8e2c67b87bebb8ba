//! The example runs, and checks its answers.

#[path = "../examples/join.rs"]
mod join;

#[test]
fn join_runs() {
    join::main().expect("the example runs");
}
