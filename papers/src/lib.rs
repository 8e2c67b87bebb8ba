//! What exists only to reproduce papers: their algorithms where Pleach has better ones, and their tables and figures.
//!
//! No crate of the product depends on this one. [`gpu`] has what runs on a GPU.

pub mod gpu;
