//! Operators over sorted slices.
//!
//! ```text
//! columns.rs  an input                             ranks.rs    an answer as ranks in its inputs
//! options.rs  sizes of the units of work           plan.rs     merge or gallop
//! part.rs     a part of both inputs                cut.rs      cuts of both inputs into parts
//! walk.rs     steps through both sides without a branch, four parts in turn
//! vector.rs   the same by blocks, for keys alone   blocks.rs   what blocks leave
//! distinct.rs duplicates among neighbours          buffer.rs   what a walk emits
//! ordered.rs  tasks in parallel, results one after the other, in one pass
//! sweep.rs    all of these together
//! set.rs      union, intersection, difference      join.rs     joins
//! many.rs     of more than two inputs              rows.rs     select, project, product, reduce
//! ```
//! Keys are *encoded* words (see [`pleach_format::key`]); values are of any `Copy` type.
//!
//! There are two forms. Functions whose names end in `ranks` count first, and then write exactly as many
//! pairs of ranks as there are; [`gather`] fetches the elements. The others write tuples in one pass, into a
//! buffer that is large enough for every answer: |A| + |B| tuples for set operations, |A| for a join whose
//! right keys are unique. A join whose answer turns out to be larger counts and begins again. Memory that is
//! not written is not touched.

mod blocks;
mod buffer;
mod columns;
mod cut;
mod distinct;
mod join;
mod many;
mod options;
mod ordered;
mod part;
mod plan;
mod ranks;
mod rows;
mod set;
mod sweep;
mod vector;
pub(crate) mod walk;

#[cfg(test)]
pub(crate) mod tests;

pub use columns::{Columns, no_values};
pub use join::{Joined, join, join_count, join_into, join_ranks};
pub use many::{intersect_all, union_all};
pub use options::Options;
pub use plan::{Method, Plan};
pub use ranks::{ABSENT, RankPairs, gather};
pub use rows::{Reduce, product, project, reduce, select, select_ranks};
pub use set::{set_count, set_into, set_of_left, set_operation, set_ranks};

pub(crate) use buffer::Buffer;
pub(crate) use distinct::is_distinct;
pub(crate) use join::{Run, expand, runs};
pub(crate) use part::Part;
pub(crate) use rows::BLOCK_TUPLES;
pub(crate) use sweep::sweep_here;
pub(crate) use walk::{Emit, Walk, with_join_walk, with_set_walk};
