//! Batches of keys whose types are known at run time, from memory of any layout.
//!
//! Bindings of Pleach to other languages get keys as arrays: numbers of another width, with a stride, in the other
//! byte order, with nulls, or in memory that other threads may write to. This crate answers such batches without an
//! object for each key. [`Table`] is an open file; [`Keys`] are the keys of a batch.
//!
//! # Idea
//!
//! A batch is cut into pieces of 1024 keys. The numbers of a piece are copied, so that nobody can change them any
//! more, and become keys of the file's type. Then the piece is one batch of the typed reader. Pieces are
//! shared by the threads of a [`Pool`].
//!
//! A number that is not a key of the file's type has its place nevertheless: -1 is below all unsigned keys, and
//! 2^53 + 1 lies between two floats. Look-ups miss it, and searches by order return the rank of its place.
//!
//! ```
//! use pleach_batch::{Found, Keys, Numbers, Pool, Table, Values};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("squares.pleach");
//! pleach_builder::Builder::new().build(&path, (0..1000u64).map(|number| (number, number * number)))?;
//! let table = Table::open(&path)?;
//! let keys = [3i32, -1, 12];
//! let (mut values, mut found) = ([0u64; 3], [false; 3]);
//! let count = table.get(
//!     &Keys::Numbers(Numbers::of(&keys)),
//!     &mut Values::U64(&mut values),
//!     &mut Found::Bools(&mut found),
//!     &Pool::current(),
//! )?;
//! assert_eq!((count, values, found), (2, [9, 0, 144], [true, false, true]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
#[cfg(feature = "arrow")]
pub mod arrow;
mod convert;
mod error;
mod gather;
mod intervals;
mod keys;
mod meaning;
mod near;
mod nulls;
mod numbers;
mod parsed;
mod pool;
mod prefix;
#[cfg(feature = "relation")]
pub mod relation;
mod room;
#[cfg(feature = "set")]
mod set;
mod table;
#[cfg(test)]
mod tests;

pub use answer::{Bound, Found, Values};
pub use error::{BatchError, Result};
pub use gather::{Column, Gathered};
pub use keys::{Copied, Keys, Texts};
pub use nulls::Nulls;
pub use numbers::{Lane, LaneType, Numbers};
pub use parsed::Parsed;
pub use pool::Pool;
pub use room::Shared;
pub use table::Table;
