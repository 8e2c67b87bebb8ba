//! Pleach for C: `pleach.h` and libpleach.
//!
//! ```text
//! status.rs    what a call returns, and the last error of a thread
//! memory.rs    pointers of the caller become texts, slices and places for answers
//! index.rs     open files
//! keys.rs      arrays of keys
//! batch.rs     batches into the caller's buffers
//! arrow.rs     Arrow's C data interface, in and out
//! options.rs   options of builds
//! build.rs     building, rebuilding, merging
//! set.rs       opening, building and sweeping sets
//! relation.rs  relational operators
//! care.rs      checking, exporting, the command line in process
//! ```
//! Every function catches panics: none crosses to the caller.

mod arrow;
mod batch;
mod build;
mod care;
mod index;
mod keys;
mod memory;
mod options;
mod relation;
mod set;
mod status;
