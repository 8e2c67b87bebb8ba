//! Relational operators over sorted relations: index files, sorted columns, slices.
//!
//! The operators are those of Diamos, Wu, Lele, Wang and Yalamanchili, "Relational Algorithms for
//! Multi-Bulk-Synchronous Processors" (2012), Table 1. [`rules`] specifies the result of each.

mod error;
pub mod expr;
#[cfg(feature = "gpu")]
mod gpu;
pub mod memory;
pub mod rules;
pub mod stream;

pub use error::RelationError;
#[cfg(feature = "gpu")]
pub use gpu::OnGpu;
pub use rules::{Aggregate, AsOf, How, Reduction, SetOperation, SetRule};
pub use stream::device::Device;
pub use stream::{
    Answer, Bitmap, Chunk, Distance, Field, Kept, Predicate, Projection, Relation, Schema, StreamOptions,
    aggregate, asof, band, join, product, project, reduce, select, select_where, set,
};

/// The program of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
