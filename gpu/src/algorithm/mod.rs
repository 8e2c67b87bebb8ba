//! The algorithms that search a table on a device, and what each of them needs.
//!
//! All answer the same [`Batch`] exactly, so that they can be compared; they differ in the structure they descend. Each
//! has a module with its argument structs and a type that implements [`Search`]: made once for a [`Resident`] table,
//! it owns what it derived from the tuple lines, and queues searches.

pub(crate) mod auto;
pub(crate) mod binary;
pub(crate) mod btree;
pub(crate) mod fast;
pub(crate) mod harmonia;
pub(crate) mod hybrid;
pub(crate) mod ntg;
pub(crate) mod pary;
pub(crate) mod psa;
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
    /// Harmonia's B+tree (Yan et al.).
    Harmonia(HarmoniaForm),
    /// The B+tree that Harmonia is compared with: keys and references in each node, a group of lanes a query.
    RegularTree {
        /// Most children of a node, 8 to 128.
        fanout: u16,
        /// Percent of its places for keys that a node fills, 50 to 100.
        fill: u8,
        /// Threads of a block: a multiple of 32, 32 to 1024.
        threads: u16,
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
            Self::Harmonia(_) => "harmonia",
            Self::RegularTree { .. } => "regular-tree",
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

/// The tree and the search of Harmonia.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HarmoniaForm {
    /// Most children of a node, 8 to 128.
    pub fanout: u16,
    /// Percent of its places for keys that a node fills, 50 to 100.
    pub fill: u8,
    /// How a batch is sorted before it is searched.
    pub sort: QuerySort,
    /// Lanes of a query.
    pub group: Group,
    /// How a lane goes through a node.
    pub scan: Scan,
    /// Where the child region lies.
    pub children: ChildRegion,
}

impl Default for HarmoniaForm {
    /// The paper's: fanout 64, full nodes, partial sorting, narrowed groups, child region in constant memory.
    fn default() -> Self {
        Self {
            fanout: 64,
            fill: 100,
            sort: QuerySort::Partial,
            group: Group::Auto,
            scan: Scan::Keys,
            children: ChildRegion::Constant,
        }
    }
}

/// How a batch is sorted before it is searched (PSA).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QuerySort {
    /// Not at all.
    None,
    /// By as many of the highest bits as Equation 2 says.
    #[default]
    Partial,
    /// By all bits.
    Full,
    /// By so many of the highest bits in which the table's keys differ.
    Bits(u8),
}

/// How many lanes of a warp search for a query together (NTG).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Group {
    /// As many as the model says that is fitted to devices of now.
    #[default]
    Auto,
    /// As many as Equation 4 says.
    Paper,
    /// One for each child, up to a warp.
    Whole,
    /// So many: a power of two, 1 to 32.
    Of(u8),
}

/// How a lane goes through a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scan {
    /// Key by key, in steps of the group: the paper's.
    #[default]
    Keys,
    /// 16 bytes at a step.
    Vectors,
    /// By halving, a lane a query, whatever the group: ours.
    Halves,
}

/// Where the child region lies, as far as whole levels fit; the rest is read through the read-only cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChildRegion {
    /// In constant memory.
    #[default]
    Constant,
    /// In shared memory.
    Shared,
    /// In the read-only cache alone.
    Ldg,
}

/// A structure that is ready to be searched.
pub(crate) trait Search: fmt::Debug + Send + Sync {
    /// Queues the search of a batch of at least one query in a table of at least one tuple.
    ///
    /// # Safety
    /// Queries and answers are arrays of the batch's lengths, alive until the work is done; the structure is, too.
    unsafe fn search(&self, stream: &Stream, batch: &Batch) -> Result<(), GpuError>;

    /// Queues the search of a batch as above, but lets answers stand in the order in which queries are sorted: answer i
    /// is that of query `numbers[i]`, an array of as many u32.
    ///
    /// # Safety
    /// As [`Search::search`].
    unsafe fn search_sorted(&self, _: &Stream, _: &Batch, _numbers: u64) -> Result<(), GpuError> {
        Err(GpuError::Algorithm { algorithm: "this one", cause: "it does not sort its queries".to_owned() })
    }

    /// Lanes that search for a query of a batch of so many, where a model says how many.
    fn lanes(&self, _queries: u64) -> Option<u32> {
        None
    }

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
