//! What exists only to reproduce papers: their algorithms where Pleach has better ones, and their tables and figures.
//!
//! No crate of the product depends on this one.
//! `cargo run --release -p pleach-papers -- TABLE`: measures a table or a figure of a paper.
//!
//! [`fast`] has the ideas of FAST, each a switch. [`kary`] is k-ary search in a sorted slice and in a
//! linearised tree. [`harmonia`] is Harmonia's tree in memory, with its batch update. [`tables`] measures
//! them; [`report`] is the form of most results. [`gpu`] has what runs on a GPU.

pub mod fast;
pub mod gpu;
pub mod harmonia;
mod in_flight;
pub mod kary;
mod parallel;
pub mod report;
pub mod tables;

pub use in_flight::InFlight;
