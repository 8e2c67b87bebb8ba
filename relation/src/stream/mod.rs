//! Operators over index files, in chunks.
//!
//! ```text
//! input.rs    ranges of a file as dense columns, every block verified
//! cut.rs      two inputs become pieces that are done alone
//! matched.rs  a piece: which tuples answer
//! pairs.rs    these become chunks
//! two.rs      operators of two inputs              near/       as-of and band joins
//! rows.rs     operators of one input                  fold.rs     reductions, chunk by chunk
//! answer.rs   chunks on request                       chunk.rs    a chunk, and the types of its columns
//! folds.rs    several reductions at a time
//! columns.rs  elements of columns                     options.rs  sizes of pieces
//! device.rs   pieces that another device answers      expressions.rs  conditions and columns as texts
//! target.rs   an answer becomes an index file
//! ```
//! An [`Answer`] is evaluated when its chunks are requested. It reads a few pieces of its inputs for each
//! thread of the current pool, works on them in parallel, and yields their results in order. So the pieces in
//! flight bound its memory, whatever the size of the inputs and the answer.

mod answer;
mod chunk;
mod columns;
mod cut;
pub mod device;
mod expressions;
mod fold;
mod folds;
mod input;
mod matched;
mod near;
mod options;
mod pairs;
mod rows;
mod target;
mod two;

#[cfg(test)]
mod tests;

pub use answer::{Answer, Kept};
pub use chunk::{Chunk, Field, Schema};
pub use input::Relation;
pub use near::{Distance, asof, band};
pub use options::StreamOptions;
pub use rows::{Bitmap, Predicate, Projection, aggregate, project, reduce, select, select_where};
pub use two::{join, product, set};

#[cfg(feature = "gpu")]
pub(crate) use columns::take;
