//! The algorithms that search a table on a device, and what each of them needs.
//!
//! All answer the same [`Batch`] exactly, so that they can be compared; they differ in the structure they descend. Each
//! has a module with its argument structs and a type that implements [`Search`]: made once for a [`Resident`] table,
//! it owns what it derived from the tuple lines, and queues searches.

pub(crate) mod auto;
pub(crate) mod binary;
pub(crate) mod btree;
pub(crate) mod fast;
pub(crate) mod hybrid;
pub(crate) mod pary;
pub(crate) mod spine;
pub(crate) mod sweep;

use crate::kernel::table::Batch;
use crate::{GpuError, Stream};
use std::fmt;

/// How a batch is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Whichever is fastest for the batch.
    #[default]
    Auto,
    /// Through the device image to a tuple line: ours.
    Spine,
    /// A merge of ascending queries with the tuple lines: ours.
    Sweep,
    /// Binary search of the sorted keys.
    Binary(BinaryForm),
    /// P-ary search of the sorted keys (Kaldewey et al.).
    PAry {
        /// Threads of a query: a power of two, 4 to 1024.
        threads: u16,
        /// How threads agree.
        form: PAryForm,
    },
    /// P-ary search of the contiguous B+tree.
    PAryTree {
        /// Threads of a query: a power of two, 4 to 1024.
        threads: u16,
        /// Most children of a node, 4 to 128.
        order: u16,
    },
    /// The FAST tree, 15-key blocks (Kim et al., section 5.2).
    Fast {
        /// How lanes agree.
        form: FastForm,
        /// Queries in flight of a group of lanes: 1, 2, 4.
        simultaneous: u16,
    },
    /// The contiguous B+tree (Daga and Nutter).
    Btree {
        /// Most children of a node, 4 to 128.
        order: u16,
        /// The launch.
        form: BtreeForm,
    },
}

impl Algorithm {
    /// Name, without parameters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Spine => "spine",
            Self::Sweep => "sweep",
            Self::Binary(_) => "binary",
            Self::PAry { .. } => "p-ary",
            Self::PAryTree { .. } => "p-ary-tree",
            Self::Fast { .. } => "fast",
            Self::Btree { .. } => "btree",
        }
    }

    /// An error that says why it does not search a table.
    pub(crate) fn refused(self, cause: impl Into<String>) -> GpuError {
        GpuError::Algorithm { algorithm: self.name(), cause: cause.into() }
    }
}

/// Forms of binary search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BinaryForm {
    /// Words, a query a thread.
    #[default]
    Plain,
    /// The same with the top of the search in shared memory.
    Top,
    /// 16-byte strings, byte by byte.
    Bytes,
    /// 16-byte strings, words whose bytes are swapped.
    Swap,
    /// The same with the query and the probed string of each thread in shared memory.
    Cached,
}

/// Forms of P-ary search of the sorted keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PAryForm {
    /// Boundaries in shared memory.
    #[default]
    List,
    /// Votes of a warp; at most 32 threads.
    Ballot,
}

/// Forms of the FAST search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FastForm {
    /// Comparison bits and the table of ancestors in shared memory, a warp a block.
    #[default]
    Paper,
    /// The same kernel in a launch that fills the device.
    Grid,
    /// Votes of a warp.
    Ballot,
}

/// Launches of the B+tree search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BtreeForm {
    /// Blocks of 256, at most 32,768 threads.
    #[default]
    Paper,
    /// As many blocks as run at a time.
    Grid,
}

/// A structure that is ready to be searched.
pub(crate) trait Search: fmt::Debug + Send + Sync {
    /// Queues the search of a batch of at least one query in a table of at least one tuple.
    ///
    /// # Safety
    /// Queries and answers are arrays of the batch's lengths, alive until the work is done; the structure is, too.
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError>;

    /// Whether the bitmap of presence has to be zeroed before.
    fn wants_zeroed_present(&self) -> bool {
        false
    }

    /// Whether a search of so many queries may be recorded: it queues the same work each time, on one stream, and
    /// shares no buffer with other searches.
    fn is_recordable(&self, _count: u64) -> bool {
        true
    }

    /// Bytes of device memory of its own.
    fn bytes(&self) -> u64;
}
