//! Pleach files and sets as tables of DataFusion.
//!
//! DataFusion plans and runs queries; a Pleach file answers what it alone can: single keys and lists of keys, ranges
//! in order, exact counts. [`PleachTable`] is a file or a set as a table, and [`PleachScanExec`] the plan node that
//! reads it.
//!
//! ```text
//! source.rs      what is read: a file, or one generation of a set
//! schema.rs      its columns: names and Arrow types
//! keys.rs        sets of keys                           literal.rs     literals of queries as keys
//! filter.rs      conditions of queries as sets of keys  pieces.rs      how a scan is divided
//! scan.rs        the plan node                          stream.rs      the rows of a partition
//! read.rs        tuples as columns
//! statistics.rs  exact numbers for the planner          table.rs       the table
//! lookup/        joins by look-ups, and the rule that makes them
//! align.rs       merge joins of two tables: the same borders on both sides
//! factory.rs     CREATE EXTERNAL TABLE, sessions        copy.rs        COPY ... TO: files and sets of queries
//! ```

mod align;
mod copy;
pub mod error;
mod factory;
mod filter;
mod keys;
mod literal;
pub mod lookup;
mod pieces;
mod read;
mod scan;
mod schema;
mod source;
mod statistics;
mod stream;
mod table;

pub use align::AlignRule;
pub use copy::{CopyOptions, PleachFormatFactory, bytes_of};
pub use error::Error;
pub use factory::{FORMAT, PathTables, PleachTableFactory, register, register_formats, session, with_paths};
pub use filter::{Condition, Conditions};
pub use keys::{KeyRange, KeySet, after};
pub use literal::{Comparison, Literals};
pub use lookup::{LookupJoinExec, LookupJoinRule};
pub use pieces::{Division, Piece, Pieces, divide};
pub use scan::{PleachScanExec, ScanDescription};
pub use schema::Columns;
pub use source::{OpenFile, Source};
pub use table::PleachTable;
