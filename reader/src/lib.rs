//! Pleach: a persistent, ordered index of (key, value) tuples in one file, which is searched in place.
//!
//! It is for programs that look up, join or deduplicate millions of ids against large tables that are mostly
//! static. A file is built once, checksummed and never changed; it opens in O(1), and any number of processes and
//! threads search it without locks. There are no updates in place, no transactions and no SQL: a set of changes
//! makes the next generation of the file. A hash map in memory is faster where all fits in a cache.
//!
//! ```
//! use pleach::{Builder, Map};
//!
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let path = folder.path().join("orders.pleach");
//! // Build a file, here of orders and their customers; tuples may come in any order.
//! Builder::new().build(&path, (0..100_000u64).map(|order| (order, order % 977)))?;
//!
//! // Open it: a header and a mapping. A map can be cloned, sent to threads and stored in a struct.
//! let customers: Map<u64, u64> = Map::open(&path)?;
//! assert_eq!(customers.get(1000)?, Some(23));
//!
//! // Many at once: the fast way, because their cache misses overlap.
//! assert_eq!(customers.get_many(&[5, 978, 100_000])?, [Some(5), Some(1), None]);
//!
//! // In order.
//! for tuple in customers.range(10..20)? {
//!     let (order, customer) = tuple?;
//!     assert_eq!(order, customer);
//! }
//! # Ok::<(), pleach::Error>(())
//! ```
//!
//! # Types
//!
//! | to | use |
//! |---|---|
//! | look up numbers | [`Map<K, V>`](Map) |
//! | look up texts or byte strings | [`BytesMap<V>`](BytesMap) |
//! | look up in files of types that are not known in advance | [`AnyMap`], with [`Datum`]s |
//! | follow a file that is rebuilt, in all threads | [`Live<Map<K, V>>`](Live) |
//! | set verification and residence | [`OpenOptions`] |
//! | search a file in an object store | [`OpenOptions::open_remote`], with a [`Fetch`] |
//! | look up many keys without an allocation | [`Map::get_batch`], with a [`Bitmap`] |
//! | scan columns, choose a strategy, search by ranks | [`Typed`] and [`Strings`], by [`Map::typed`] |
//! | read sections, names and types of a file | [`Index`], by [`Map::index`] |
//! | check a whole file | [`fsck`] |
//! | build files | `Builder`, with the feature `build` |
//!
//! Keys `K` are `u32 u64 u128 i32 i64 f64`. Values `V` are `() u32 u64 i32 i64 f32 f64`, `String`, `Vec<u8>`,
//! `[u8; N]`, tuples of fields such as `(u32, f64, String)`, and [`Row`] for records whose fields are known at run
//! time. A boolean is a `u32`, or as a field a `u8`: 1 or 0.
//!
//! # Errors
//!
//! The functions of maps return [`Error`], which converts from the errors of all steps and from those of builds.
//! Its [`kind`](Error::kind) is stable, and its text is one line: what is wrong, where, and what to do. [`Index`]
//! and the views that borrow it return the error of their step: [`OpenError`], [`TypeError`], [`ReadError`].
//!
//! # Damage, and files that others change
//!
//! Opening checks the header against the length of the file. [`Verify`] sets how much more is checked. If bytes were
//! not verified an answer may be wrong, but no look-up panics, loops or reads outside the file. Bytes of a mapped
//! file may change at any time: results are copies, and nothing is checked in place and then read again. A file that
//! is truncated while it is mapped raises `SIGBUS`; [`contain_sigbus`] turns that into an error, and
//! [`Residence::Resident`] avoids it. Unsafe code is listed, with its reasons, in `docs/UNSAFE.md`.
//!
//! A published file is never changed, so a rebuild under the same name does not disturb programs that have the old
//! file open.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `build` | `Builder` and the module `build`: writing files |
//! | `arrow` | [`Index`]'s `columns`: sorted columns as Arrow arrays |
//!
//! No feature is on by default; without one, at most 12 packages are linked.

mod arch;
#[cfg(feature = "arrow")]
mod arrow;
mod bitmap;
mod btree;
#[cfg(feature = "build")]
pub mod build;
mod bytes;
mod cast;
pub mod classic;
mod column;
mod datum;
mod dispatch;
mod error;
mod fetch;
mod harmonia;
mod identity;
mod index;
#[doc(hidden)]
pub mod internal;
mod intervals;
mod iter;
mod live;
mod map;
mod near;
mod nodes;
mod packed;
mod queries;
mod remote;
mod rest;
mod scan;
#[cfg(target_os = "linux")]
mod sealed;
mod search;
mod sigbus;
mod strategy;
mod string_range;
mod strings;
mod structure;
mod texts;
mod touched;
mod typed;
mod way;
mod words;

pub use arch::Isa;
#[cfg(feature = "arrow")]
pub use arrow::Columns;
pub use bitmap::Bitmap;
#[cfg(feature = "build")]
pub use build::Builder;
pub use column::Column;
pub use datum::Datum;
pub use error::{Error, ErrorKind, OpenError, ReadError, Result, TypeError};
pub use fetch::{FETCH_BYTES, FETCH_RANGE_BYTES, Fetch, index_part};
pub use harmonia::Harmonia;
pub use index::{Index, OpenOptions, Residence, Verify};
pub use intervals::Intervals;
pub use iter::Range;
pub use live::{Followed, Live};
pub use map::any::{AnyEntries, AnyMap};
pub use map::{BytesMap, Entries, Map};
pub use near::{Near, Tuples};
pub use packed::Packed;
pub use pleach_format::approximate::Approximate;
pub use pleach_format::meta::Meta;
pub use pleach_format::record::{Field, FieldError, FieldKind, FieldType, FieldValue, Record};
pub use pleach_format::stored::{MapValue, Row};
pub use pleach_format::{FormatError, Header, Key, KeyType, Mask, Value, ValueType, Word};
pub use pleach_fsck::{Finding, FsckOptions, Progress, Report, Verdict, fsck, fsck_file};
pub use queries::{FixedQueries, Queries};
pub use sigbus::contain_sigbus;
pub use strategy::{Choice, Costs, Request, Scratch, Strategy};
pub use string_range::StringRange;
pub use strings::Strings;
pub use structure::Structure;
pub use typed::Typed;

/// The program of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
