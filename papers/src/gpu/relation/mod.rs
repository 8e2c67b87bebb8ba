//! The operators of the paper on relational algebra (Diamos et al., "Relational Algorithms for
//! Multi-Bulk-Synchronous Processors", 2012), with the paper's stages, each timed. Pleach's own operators are
//! compared with them.
//!
//! A [`Relation`] is sorted columns on a device, dense or as a list of pages (section 4.3). [`select`],
//! [`project`] and [`product`] are Figures 3 to 5; [`merge`] is JOIN and the SET family (Figures 6 and 7).
//!
//! [`partition`] cuts both inputs by a recursive double-sided binary search. A CTA streams the blocks of its
//! partition through shared memory and joins them by one of five [`CtaJoin`]s (Table 3). Results are written
//! to a temporary or to pages of the CTA's own, and a gather closes the gaps, or pages are linked.
//! [`stream_blocks`] only streams, [`cta_join`] only joins two blocks.
//!
//! Answers follow the set rule of `pleach-relation`; a join's tuples with equal keys are ordered by left
//! rank, then by right rank. The paper packs a tuple into a word of 32 bits. Here keys have 4 or 8 bytes, and
//! values 0, 4 or 8.

pub(crate) mod columns;
pub(crate) mod cta;
pub(crate) mod merge;
pub(crate) mod pages;
pub(crate) mod partition;
pub(crate) mod sink;
pub(crate) mod unary;

pub use columns::{PageList, Relation};
pub use cta::{CtaCycles, cta_join};
pub use merge::{Counted, Merged, Operation, PaperOptions, merge, stream_blocks};
pub use pages::{to_dense, to_pages};
pub use partition::{Partitions, Range, partition};
pub use pleach_gpu::relation::{Column, Stages};
pub use sink::Form;
pub use unary::{Combine, Predicate, Projection, product, project, select};

use pleach_gpu::internal::{Instance, Job, Text};
use pleach_gpu::{DeviceBuffer, GpuError};

/// Texts that the kernels share.
const RELATION_TEXT: Text = Text { name: "relation.cuh", text: include_str!("../kernels/relation.cuh") };
const STREAM_TEXT: Text =
    Text { name: "relation_stream.cuh", text: include_str!("../kernels/relation_stream.cuh") };

/// Method of matching the tuples of two blocks in shared memory (section 4.2, Figure 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CtaJoin {
    /// Lower and upper bound of each left tuple.
    BinarySearch,
    /// Bounds of four left tuples together, and all tuples between them.
    BlockedBinarySearch,
    /// All tuples against all.
    BruteForce,
    /// A hash table in shared memory, without atomics.
    Hash,
    /// Halves that overlap, with side exits to binary search.
    Network,
}

impl CtaJoin {
    /// All methods, in the order of Table 3.
    pub const ALL: [Self; 5] =
        [Self::BinarySearch, Self::BlockedBinarySearch, Self::BruteForce, Self::Hash, Self::Network];

    /// Returns the name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BinarySearch => "binary-search",
            Self::BlockedBinarySearch => "blocked-binary-search",
            Self::BruteForce => "brute-force",
            Self::Hash => "hash",
            Self::Network => "network",
        }
    }

    /// Returns the number of tuples per thread: BLOCKING in relation_join.cu.
    #[must_use]
    pub const fn blocking(self) -> u32 {
        match self {
            Self::BinarySearch => 1,
            Self::BruteForce => 2,
            Self::BlockedBinarySearch | Self::Hash | Self::Network => 4,
        }
    }

    fn instance(self, word_bytes: u8) -> Instance {
        Instance { option: self as u16, ..Instance::new(&cta::JOIN, word_bytes, 0) }
    }
}

/// Allocates memory of zeros.
fn zeroed(job: &mut Job<'_>, bytes: u64) -> Result<DeviceBuffer, GpuError> {
    let buffer = job.buffer(bytes)?;
    buffer.fill(job.stream(), 0)?;
    Ok(buffer)
}

/// Returns the definitions that the shared texts need.
fn numbers(more: &[(&'static str, u64)]) -> Vec<(&'static str, u64)> {
    let mut all = vec![
        ("BYTES_OF_PAPER_VIEW", size_of::<columns::View>() as u64),
        ("BYTES_OF_PAPER_SINK", size_of::<sink::Sink>() as u64),
        ("BYTES_OF_PAPER_RANGE", size_of::<Range>() as u64),
        ("BYTES_OF_PAPER_MERGE", size_of::<merge::Merge>() as u64),
    ];
    all.extend(more);
    all
}

fn refused(cause: impl Into<String>) -> GpuError {
    GpuError::Operator { operator: "the paper's operators", cause: cause.into() }
}
