//! Arrow arrays as keys, and as answers.
//!
//! ```text
//! keys.rs       an array becomes keys, in place
//! types.rs      the Arrow type of keys, values and fields
//! arrays.rs     memory becomes an array
//! composite.rs  composite keys are structs of their parts
//! answers.rs    arrays of the values of keys, and of tuples at ranks
//! tuples.rs     the tuples of a range as record batches
//! ```

mod answers;
mod arrays;
mod composite;
mod keys;
mod tuples;
mod types;

pub use arrays::{meant_field, numbers, record_field, records, strings};
pub use composite::meant;
pub use keys::ArrowKeys;
pub use tuples::Tuples;
pub use types::{key_type, logical_type, number_type};
