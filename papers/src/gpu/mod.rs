//! Papers on a GPU: their searches and operators, their kernels, and their tables and figures.
//!
//! [`search`] has algorithms that a `pleach_gpu::GpuTable` accepts as its own. [`relation`] has the operators
//! of the paper on relational algebra. [`tables`] measures them, and what else the papers measure.

pub mod command;
#[cfg(test)]
mod kernel;
pub mod relation;
pub mod search;
pub mod tables;
