//! The algorithms that search a table on a device, and the structures they need.
//!
//! All of them answer the same batch exactly, so that they can be compared; they differ in the structure they
//! descend. Each has a module with its argument structs and a type that implements [`search::Search`]. A
//! value of that type is made once for a resident table, owns what it derived from the tuple lines, or the copy
//! of a section, and queues searches.

pub(crate) mod arguments;
pub(crate) mod auto;
pub(crate) mod binary;
pub(crate) mod btree;
pub(crate) mod external;
pub(crate) mod fast;
pub(crate) mod fast_section;
pub(crate) mod fine;
pub(crate) mod harmonia;
pub(crate) mod hybrid;
pub(crate) mod imaged;
pub(crate) mod near;
pub(crate) mod ntg;
mod order;
pub(crate) mod psa;
pub(crate) mod samples;
pub(crate) mod search;
pub(crate) mod spine;
pub(crate) mod sweep;

use crate::GpuError;

/// Method of searching a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// The fastest method for the batch.
    #[default]
    Auto,
    /// Descent through the device image to a tuple line: Pleach's own.
    Spine,
    /// Merge of ascending queries with the tuple lines: Pleach's own.
    Sweep,
    /// Binary search of the sorted keys, one thread per query.
    Binary,
    /// Descent of a tree that the file holds, as it lies there.
    Section(SectionTree),
    /// The FAST tree, 15-key blocks (Kim et al., section 5.2), made from the tuple lines.
    Fast {
        /// Way in which the lanes of a query exchange their comparisons.
        form: FastForm,
        /// Queries in flight per group of lanes: 1, 2 or 4.
        simultaneous: u16,
    },
    /// The contiguous B+tree (Daga and Nutter), made from the tuple lines.
    Btree {
        /// Maximum number of children of a node, 4 to 128.
        order: u16,
        /// Shape of the launch.
        form: BtreeForm,
    },
    /// Harmonia's B+tree (Yan et al.), made from the tuple lines.
    Harmonia(HarmoniaForm),
    /// A search of another crate of this repository.
    #[doc(hidden)]
    External(external::External),
}

impl Algorithm {
    /// Returns the name, without parameters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Spine => "spine",
            Self::Sweep => "sweep",
            Self::Binary => "binary",
            Self::Section(tree) => tree.name(),
            Self::Fast { .. } => "fast",
            Self::Btree { .. } => "btree",
            Self::Harmonia(_) => "harmonia",
            Self::External(external) => external.name,
        }
    }

    /// Creates an error that says why the algorithm cannot search a table.
    pub(crate) fn refused(self, cause: impl Into<String>) -> GpuError {
        GpuError::Algorithm { algorithm: self.name(), cause: cause.into() }
    }

    /// Creates the error of a file without the section of the algorithm.
    pub(crate) fn without_section(self) -> GpuError {
        let name = self.name();
        self.refused(format!("the file has no such tree: build it with --layout lines,{name}"))
    }
}

/// A tree in a section of the file, and how it is searched. No copy is derived: the device has the section's bytes,
/// or reads them where the file is mapped.
///
/// ```no_run
/// use pleach::Index;
/// use pleach_gpu::{Algorithm, Gpu, GpuTable, SectionTree};
///
/// // Built with `--layout lines,fast:auto`.
/// let index = Index::open("ids.pleach")?;
/// let table = GpuTable::new(&index, &Gpu::open(0)?)?;
/// let (mut values, mut present) = ([0u64; 2], [0]);
/// table.get_batch_by(Algorithm::Section(SectionTree::Fast), &[7u64, 9], &mut values, &mut present)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SectionTree {
    /// FAST, in its own form, one thread per query.
    Fast,
    /// BTRE, one thread per query.
    Btree,
    /// HARM.
    Harmonia(HarmoniaSearch),
}

impl SectionTree {
    /// Returns the lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Btree => "btree",
            Self::Harmonia(_) => "harmonia",
        }
    }
}

/// Forms of the FAST search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FastForm {
    /// Comparison bits and the table of ancestors in shared memory, one warp per block.
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
    /// Blocks of 256 threads, at most 32,768 threads in all.
    #[default]
    Paper,
    /// As many blocks as run at a time.
    Grid,
}

/// Shape of Harmonia's tree, and how it is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HarmoniaForm {
    /// Maximum number of children of a node, 8 to 128.
    pub fanout: u16,
    /// Fill of a node: percent of its key places, 50 to 100.
    pub fill: u8,
    /// Order of a batch for the search.
    pub sort: QuerySort,
    /// Lanes per query.
    pub group: Group,
    /// Way in which a lane compares the keys of a node.
    pub scan: Scan,
    /// Place of the child region.
    pub children: ChildRegion,
}

/// How Harmonia's tree is searched; by default as in the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HarmoniaSearch {
    /// Order of a batch for the search.
    pub sort: QuerySort,
    /// Lanes per query.
    pub group: Group,
    /// Way in which a lane compares the keys of a node.
    pub scan: Scan,
    /// Place of the child region.
    pub children: ChildRegion,
}

impl HarmoniaSearch {
    /// The fastest one measured.
    pub const FASTEST: Self = Self {
        sort: QuerySort::Auto,
        group: Group::Auto,
        scan: Scan::Halves,
        children: ChildRegion::Constant,
    };
}

impl HarmoniaForm {
    /// Returns how the tree is searched.
    #[must_use]
    pub const fn search(self) -> HarmoniaSearch {
        let Self { sort, group, scan, children, .. } = self;
        HarmoniaSearch { sort, group, scan, children }
    }
}

impl Default for HarmoniaForm {
    /// Returns the paper's form: fanout 64, full nodes, partial sorting, narrowed groups, child region in
    /// constant memory.
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

/// Order of a batch for the search (PSA).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QuerySort {
    /// Not at all.
    None,
    /// By the number of highest bits given by Equation 2.
    #[default]
    Partial,
    /// By all bits.
    Full,
    /// By this number of the highest bits in which the table's keys differ.
    Bits(u8),
    /// As [`QuerySort::Partial`] if there are so many queries that it pays, else not at all.
    Auto,
}

/// Number of lanes of a warp that search for a query together (NTG).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Group {
    /// Group width from the model fitted to current GPUs.
    #[default]
    Auto,
    /// Group width given by Equation 4.
    Paper,
    /// One lane per child, up to a warp.
    Whole,
    /// This number of lanes: a power of two, 1 to 32.
    Of(u8),
}

/// Way in which a lane compares the keys of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scan {
    /// Key by key, in steps of the group: the paper's form.
    #[default]
    Keys,
    /// 16 bytes per step.
    Vectors,
    /// By halving, one lane per query, whatever the group: Pleach's own.
    Halves,
}

/// Place of the child region's top levels, as far as whole levels fit; the rest is read through the read-only
/// cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChildRegion {
    /// In constant memory.
    #[default]
    Constant,
    /// In shared memory.
    Shared,
    /// The read-only cache only.
    Ldg,
}
