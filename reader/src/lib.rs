//! Look-ups in a Pleach file: a persistent, ordered index of (key, value) tuples.
//!
//! ```no_run
//! let index = pleach::Index::open("orders.pleach")?;
//! let orders = index.typed::<u64, u64>()?;
//! assert_eq!(orders.get(17)?, Some(4));
//!
//! // Many at once, into buffers of your own: the fast way.
//! let keys = [17, 18, 19];
//! let (mut values, mut present) = ([0; 3], [0; 1]);
//! let found = orders.get_batch(&keys, &mut values, &mut present)?;
//! for tuple in orders.range(17..=19)? {
//!     let (key, value) = tuple?;
//!     println!("{key} {value}");
//! }
//! # let _ = found;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Opening is O(1) and checks the header against the length of the file. [`Verify`] sets how much more is
//! checked; [`fsck`] checks the whole file. If the bytes were not verified an answer may be wrong, but no
//! look-up panics, loops or reads outside the file.
//!
//! An [`Index`] is `Send + Sync`; look-ups take no lock and need no write access. A published file is never
//! changed, so a rebuild under the same name does not disturb programs that have the old file open.

mod arch;
#[cfg(feature = "arrow")]
mod arrow;
mod bytes;
mod cast;
pub mod classic;
mod column;
mod datum;
mod dispatch;
mod error;
mod harmonia;
mod index;
#[doc(hidden)]
pub mod internal;
mod iter;
mod live;
mod packed;
mod rest;
mod scan;
#[cfg(target_os = "linux")]
mod sealed;
mod search;
mod sigbus;
mod strategy;
mod strings;
mod touched;
mod typed;

pub use arch::Isa;
#[cfg(feature = "arrow")]
pub use arrow::Columns;
pub use column::Column;
pub use datum::Datum;
pub use error::{OpenError, ReadError, TypeError};
pub use harmonia::Harmonia;
pub use index::{Index, OpenOptions, Residence, Verify};
pub use iter::Range;
pub use live::Live;
pub use packed::Packed;
pub use pleach_format::meta::Meta;
pub use pleach_format::record::{Field, FieldKind, FieldValue, Record};
pub use pleach_format::{FormatError, Header, Key, KeyType, Mask, Value, ValueType, Word};
pub use pleach_fsck::{Finding, FsckOptions, Progress, Report, Verdict, fsck, fsck_file};
pub use sigbus::contain_sigbus;
pub use strategy::{Choice, Costs, Request, Scratch, Strategy};
pub use strings::{FixedQueries, Queries, StringRange, Strings};
pub use typed::Typed;

/// The program of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
