//! Searches of papers: algorithms that a `pleach_gpu::GpuTable` accepts as its own.

mod binary;
mod pary;
mod pary_tree;
mod regular;

use pleach_gpu::Algorithm;
use pleach_gpu::internal::External;
#[cfg(test)]
pub(super) use {binary::SLIDES, pary::PARY, pary_tree::PARY_TREE, regular::REGULAR};

/// Forms of binary search, in addition to [`Algorithm::Binary`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryForm {
    /// Words, with the top of the search in shared memory.
    Top,
    /// 16-byte strings, byte by byte.
    Bytes,
    /// 16-byte strings, as words whose bytes are swapped.
    Swap,
    /// As `Swap`, with the query and the probed string of each thread in shared memory.
    Cached,
}

impl BinaryForm {
    /// The forms that search strings.
    pub const STRINGS: [Self; 3] = [Self::Bytes, Self::Swap, Self::Cached];

    const fn name(self) -> &'static str {
        match self {
            Self::Top => "top",
            Self::Bytes => "bytes",
            Self::Swap => "swap",
            Self::Cached => "cached",
        }
    }
}

/// Forms of P-ary search of the sorted keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PAryForm {
    /// Boundaries in shared memory.
    List,
    /// Votes of a warp; at most 32 threads per query.
    Ballot,
}

impl PAryForm {
    const fn name(self) -> &'static str {
        match self {
            Self::List => "",
            Self::Ballot => "ballot",
        }
    }
}

/// Binary search in a form of the slides on searching with GPUs.
#[must_use]
pub const fn binary(form: BinaryForm) -> Algorithm {
    // SAFETY: the searches clamp what they read from the structure to the table, and write answers only.
    Algorithm::External(unsafe { External::new("binary", form.name(), [0; 3], binary::make) })
}

/// P-ary search of the sorted keys (Kaldewey et al.), by `threads` threads per query: a power of two, 4 to
/// 1024.
#[must_use]
pub const fn pary(threads: u16, form: PAryForm) -> Algorithm {
    // SAFETY: as for `binary`.
    Algorithm::External(unsafe { External::new("p-ary", form.name(), [threads, 0, 0], pary::make) })
}

/// P-ary search of the contiguous B+tree of an order, 4 to 1025, by `threads` threads per query: a power of
/// two, 4 to 1024.
#[must_use]
pub const fn pary_tree(threads: u16, order: u16) -> Algorithm {
    // SAFETY: as for `binary`.
    Algorithm::External(unsafe { External::new("p-ary-tree", "", [threads, order, 0], pary_tree::make) })
}

/// The B+tree that Harmonia is compared with: keys and references in each node, a group of lanes per query.
/// Fanout 8 to 128, nodes filled to 50 to 100 percent, blocks of 32 to 1024 threads.
#[must_use]
pub const fn regular_tree(fanout: u16, fill: u8, threads: u16) -> Algorithm {
    let parameters = [fanout, fill as u16, threads];
    // SAFETY: as for `binary`.
    Algorithm::External(unsafe { External::new("regular-tree", "", parameters, regular::make) })
}
