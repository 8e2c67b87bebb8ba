//! Searching the spine and the tuple lines of an open file.
//!
//! * [`plan`]: the proved arrays of a file, and access that stays inside them.
//! * [`descent`]: one descent and one batch, written once over [`crate::arch::Simd`].
//! * [`grid`]: files with a grid: a unit instead of the spine.
//! * [`sweep`]: batches in ascending order.
//! * [`engine`]: the same compiled for each instruction set, chosen when a view is made.
//!
//! A descent visits one line a level and then one tuple line. The separators of a line that are
//! below the query are counted, which is the child (FAST, Kim et al., section 4; the counting form
//! needs no lookup table). Lines of the bottom level and tuple lines miss the caches; a batch keeps
//! several groups of queries in flight, each on another level, so that these misses overlap with
//! the work on cached levels.

pub(crate) mod descent;
pub(crate) mod engine;
mod grid;
pub(crate) mod plan;
pub(crate) mod sweep;
