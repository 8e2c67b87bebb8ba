//! Joins by look-ups: the rows of any plan ask a Pleach file or set for the tuples of their keys.
//!
//! A hash join reads one of its sides whole and keeps it in memory. A look-up join does neither with the table of
//! Pleach: each batch of the other side, the *probe*, is one batch of look-ups, and only tuples that match are read.
//!
//! ```text
//! side.rs    recognizes the table under projections, filters, repartitions and sorts of a plan
//! cost.rs    estimates what look-ups, hash joins and merge joins take
//! rule.rs    replaces joins where look-ups are the fastest
//! join.rs    the join as a physical plan              output.rs  where its columns come from
//! stream.rs  the join as a stream of batches          step.rs    the join of a few probe rows
//! find.rs    keys become runs of ranks                gather.rs  ranks become columns
//! files.rs   the files of a table: which has a key, and opening them
//! ```

mod cost;
mod files;
mod find;
mod gather;
mod join;
mod output;
mod rule;
mod side;
mod step;
mod stream;

pub use cost::{Costs, Probe, Rival, Table};
pub use join::LookupJoinExec;
pub use rule::{Choose, LookupJoinRule};
pub use side::TableSide;
