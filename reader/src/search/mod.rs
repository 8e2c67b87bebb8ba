//! Searching the spine and the tuple lines of an open file.
//!
//! * [`plan`]: the arrays of a file, whose bounds are checked, and access that stays inside them.
//! * [`descent`]: one descent and one batch, generic over [`crate::arch::Simd`].
//! * [`grid_plan`]: the arrays of a grid, in the same way.
//! * [`grid`]: searches of files with a grid, which read a unit instead of the spine.
//! * [`tree_plan`]: a tree of an open file, and the ranks to which it leads.
//! * [`tree`]: searches by a tree of its own section: FAST, Harmonia's, the contiguous B+tree.
//! * [`sweep`]: batches in ascending order.
//! * [`choose`]: the one of these searches that a query or a batch gets.
//! * [`output`]: what batches write; [`neighbors`]: tuples near queries.
//! * [`engine`]: these searches compiled for each instruction set, one of which is chosen per view.
//!
//! A descent visits one line per level and then one tuple line. In each line it counts the separators below
//! the query, and that number is the child (FAST, Kim et al., section 4; counting needs no lookup table).
//! Lines of the bottom level and tuple lines miss the caches. A batch keeps several groups of queries in
//! flight, each on another level, so that these misses overlap with the work on cached levels.

mod choose;
pub(crate) mod descent;
pub(crate) mod engine;
mod grid;
mod grid_plan;
pub(crate) mod neighbors;
pub(crate) mod output;
pub(crate) mod plan;
pub(crate) mod sweep;
mod tree;
pub(crate) mod tree_plan;
