//! Kernels: their rows, the instances of each, and how they are compiled and launched.
//!
//! A *source* is a CUDA C++ text. An *instance* is a source with the numbers it is compiled for: bytes of a
//! word and of a value, and one more of its own (threads per query, say). Its *entries* are the functions
//! that can be launched, each through a typed function that the macro `kernel!` makes, and in no other way.
//!
//! Numbers that Rust and CUDA share are passed from here to the text as definitions. The sizes of argument
//! structs are among them, and the text asserts these.
//!
//! To add a kernel: its text in `kernels/`, its row and argument structs in the file that launches it, and
//! its name in the list of `rows.rs`, which tests compile.

pub(crate) mod cache;
mod common;
pub(crate) mod compile;
pub(crate) mod embedded;
mod macros;
pub(crate) mod row;
#[cfg(test)]
mod rows;
#[cfg(test)]
mod tests;

pub use common::{Batch, Columns};
pub use compile::Compiler;
pub use row::{Entry, Instance, Source, SourceSpec, Text};
