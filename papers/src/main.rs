//! `cargo run --release -p pleach-papers -- TABLE`: measures a table or a figure of a paper.

fn main() {}
