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

pub(crate) mod cta;
pub(crate) mod merge;
pub(crate) mod pages;
pub(crate) mod partition;
pub(crate) mod relation;
pub(crate) mod sink;
pub(crate) mod unary;

pub use cta::{CtaCycles, cta_join};
pub use merge::{Counted, Merged, Operation, PaperOptions, merge, stream_blocks};
pub use pages::{to_dense, to_pages};
pub use partition::{Partitions, Range, partition};
pub use relation::{Column, PageList, Relation};
pub use sink::Form;
pub use unary::{Combine, Predicate, Projection, product, project, select};

use crate::kernel::Instance;
use crate::kernel::table::Source;
use crate::memory::DeviceBuffer;
use crate::stream::Event;
use crate::{GpuError, Stream};

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

    /// Returns the number of tuples per thread: BLOCKING in relation_paper_join.cu.
    #[must_use]
    pub const fn blocking(self) -> u32 {
        match self {
            Self::BinarySearch => 1,
            Self::BruteForce => 2,
            Self::BlockedBinarySearch | Self::Hash | Self::Network => 4,
        }
    }

    fn instance(self, word_bytes: u8) -> Instance {
        Instance { option: self as u16, ..instance(Source::PaperJoin, word_bytes) }
    }
}

/// Milliseconds of each stage on the device, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stages {
    /// Names and times; a stage that was repeated is listed again.
    pub all: Vec<(&'static str, f64)>,
}

impl Stages {
    /// Returns the milliseconds of a stage; 0 if it was not needed.
    #[must_use]
    pub fn ms(&self, name: &str) -> f64 {
        self.all.iter().filter(|stage| stage.0 == name).map(|stage| stage.1).sum()
    }

    /// Returns the milliseconds of all stages.
    #[must_use]
    pub fn total_ms(&self) -> f64 {
        self.all.iter().map(|stage| stage.1).sum()
    }
}

fn instance(source: Source, word_bytes: u8) -> Instance {
    Instance { source, word_bytes, value_bytes: 0, option: 0, lowest: crate::image::Lowest::Codes16 }
}

/// An operator under way: the memory that queued work uses, and the marks around its stages.
///
/// Its buffers live until the stream has been waited for; dropping the job waits.
pub(crate) struct Job<'s> {
    stream: &'s Stream,
    kept: Vec<DeviceBuffer>,
    marks: Vec<(&'static str, Event, Event)>,
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        // A lost device no longer uses the memory.
        let _ = self.stream.synchronize();
    }
}

impl<'s> Job<'s> {
    pub(crate) fn new(stream: &'s Stream) -> Self {
        Self { stream, kept: Vec::new(), marks: Vec::new() }
    }

    /// Allocates memory with arbitrary content.
    pub(crate) fn buffer(&mut self, bytes: u64) -> Result<DeviceBuffer, GpuError> {
        let buffer = DeviceBuffer::new(self.stream.gpu(), bytes)?;
        self.kept.push(buffer.clone());
        Ok(buffer)
    }

    /// Allocates memory of zeros.
    pub(crate) fn zeroed(&mut self, bytes: u64) -> Result<DeviceBuffer, GpuError> {
        let buffer = self.buffer(bytes)?;
        buffer.fill(self.stream, 0)?;
        Ok(buffer)
    }

    /// Frees memory, except the buffers in `kept` and those that others hold.
    fn free_but(&mut self, kept: &[&DeviceBuffer]) -> Result<(), GpuError> {
        self.stream.synchronize()?;
        self.kept = kept.iter().map(|&buffer| buffer.clone()).collect();
        Ok(())
    }

    /// Queues work between two marks.
    pub(crate) fn stage<T>(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<T, GpuError>,
    ) -> Result<T, GpuError> {
        let start = self.stream.mark()?;
        let made = work()?;
        self.marks.push((name, start, self.stream.mark()?));
        Ok(made)
    }

    /// Returns a number of 64 bits; blocks.
    pub(crate) fn number(&self, buffer: &DeviceBuffer, at: u64) -> Result<u64, GpuError> {
        let mut bytes = [0; 8];
        buffer.part(at * 8, 8).copy_to_host(self.stream, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Returns the times of all stages; blocks.
    pub(crate) fn end(self) -> Result<Stages, GpuError> {
        self.stream.synchronize()?;
        let time = |(name, start, end): &(&'static str, Event, Event)| {
            Ok((*name, f64::from(start.milliseconds_to(end)?)))
        };
        Ok(Stages { all: self.marks.iter().map(time).collect::<Result<_, GpuError>>()? })
    }
}

fn refused(cause: impl Into<String>) -> GpuError {
    GpuError::PaperOperator { cause: cause.into() }
}

/// Returns the definitions of the kernels' texts.
pub(crate) fn numbers() -> Vec<(&'static str, u64)> {
    vec![
        ("BYTES_OF_PAPER_VIEW", size_of::<relation::View>() as u64),
        ("BYTES_OF_PAPER_SINK", size_of::<sink::Sink>() as u64),
        ("BYTES_OF_PAPER_GATHER", size_of::<sink::Gather>() as u64),
        ("BYTES_OF_PAPER_RANGE", size_of::<Range>() as u64),
        ("BYTES_OF_PAPER_PARTITION", size_of::<partition::Cuts>() as u64),
        ("BYTES_OF_PAPER_BOUNDS", size_of::<partition::Bounds>() as u64),
        ("BYTES_OF_PAPER_MERGE", size_of::<merge::Merge>() as u64),
        ("BYTES_OF_PAPER_SELECT", size_of::<unary::Select>() as u64),
        ("BYTES_OF_PAPER_PROJECT", size_of::<unary::Project>() as u64),
        ("BYTES_OF_PAPER_PRODUCT", size_of::<unary::Product>() as u64),
        ("BYTES_OF_PAPER_CHAINS", size_of::<pages::Chains>() as u64),
        ("BYTES_OF_PAPER_CONVERT", size_of::<pages::Convert>() as u64),
        ("BYTES_OF_PAPER_CTA_JOIN", size_of::<cta::Task>() as u64),
    ]
}
