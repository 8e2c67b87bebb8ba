//! Relational operators on files and on Arrow tables, for bindings.
//!
//! ```text
//! table.rs      an Arrow table becomes a file in memory
//! operation.rs  which operator, and its inputs
//! job.rs        an operator runs: to a file, to record batches, or as a stream of them
//! columns.rs    chunks of an answer become record batches
//! stream.rs     record batches on request, made by a thread
//! ```
//! No temporary file is made: tables and what lies between two operators are files in memory.

mod columns;
mod job;
mod operation;
mod stream;
mod table;

pub use job::Job;
pub use operation::Operation;
pub use stream::Answers;
pub use table::in_memory;
