//! JOIN and the SET family (Figures 6 and 7): partition, expected sizes, the main kernel, a scan of the
//! counts, and a gather; for pages, linking instead of the gather.
//!
//! A temporary has room for the expected results of each partition. For a JOIN that is the longer of both
//! sides, which is right if the keys of one side are unique. If duplicates on both sides give more results,
//! the main kernel counts on without writing and raises a flag, and runs again with room for exact counts, so
//! that no result is lost. Then places have no gaps, and nothing is gathered.

use super::columns::{Relation, View};
use super::cta::paper_merge;
use super::partition::{Parts, cut};
use super::sink::{Form, Outcome, Sink, Target, stage_bytes};
use super::{CtaJoin, RELATION_TEXT, STREAM_TEXT, Stages, numbers, refused, zeroed};
use pleach_gpu::internal::{Instance, Job, LaunchShape, SourceSpec, shared_bytes_max};
use pleach_gpu::{DeviceBuffer, GpuError, Stream};

pleach_gpu::kernel! {
    /// The paper's block streaming, and UNION.
    STREAM = SourceSpec {
        shared: &[RELATION_TEXT, STREAM_TEXT],
        numbers: |_| numbers(&[]),
        ..SourceSpec::new("relation_stream.cu", include_str!("../kernels/relation_stream.cu")).narrow()
    };
    /// Streams the blocks of both inputs, and checks their ranges.
    paper_stream(merge: Merge);
    /// UNION of each partition.
    paper_union(merge: Merge);
}

/// Number of partitions in the paper's Figures 10 to 14.
const PARTITIONS: u32 = 14_336;
/// Maximum number of threads per block.
const THREADS_MAX: u32 = 512;
/// Bytes of shared memory that the kernels declare, with some reserve.
const STATIC_BYTES: u32 = 4 << 10;
/// Maximum number of tuples per block, whose numbers have 16 bits.
const BLOCK_TUPLES_MAX: u32 = 1 << 15;

/// Operation on two relations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Pairs of tuples with equal keys: key, left value, right value.
    Join,
    /// The first left tuple of each key that both relations have.
    Intersection,
    /// The first tuple of each key that the right relation lacks.
    Difference,
    /// The first tuple of each key of either relation, the left one if both have it.
    Union,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 4] = [Self::Join, Self::Intersection, Self::Difference, Self::Union];

    /// Returns the name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Intersection => "intersect",
            Self::Difference => "difference",
            Self::Union => "union",
        }
    }
}

/// Parameters of the paper's stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaperOptions {
    /// Method of joining blocks; UNION has a method of its own.
    pub cta_join: CtaJoin,
    /// Threads per CTA: a power of two from 32 to 512.
    pub threads: u32,
    /// Bytes of keys per block; at most a thread's tuples for each thread.
    pub block_bytes: u32,
    /// Number of CTAs, each with a partition.
    pub partitions: u32,
    /// Number of tuples of both sides above which a CTA cuts its partition.
    pub section_tuples: u32,
    /// Form of the results.
    pub form: Form,
}

impl PaperOptions {
    /// Returns 256 threads, each with as many tuples as the CTA-join blocks in registers: blocks of 1 to 4 KB
    /// of 4-byte keys.
    #[must_use]
    pub const fn new(cta_join: CtaJoin) -> Self {
        Self {
            cta_join,
            threads: 256,
            block_bytes: 1024 * cta_join.blocking(),
            partitions: PARTITIONS,
            section_tuples: 16 << 10,
            form: Form::Dense,
        }
    }
}

/// Counts of the main kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Number of tuples that cuts inside CTAs left out.
    pub discarded_by_cuts: u64,
    /// Number of tuples in blocks that a check of ranges discarded.
    pub discarded_by_blocks: u64,
    /// Number of blocks loaded, of both sides; some tuples are loaded more than once.
    pub blocks: u64,
}

/// Result of an operator.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The results; those of a JOIN have a column for the values of each side that has values.
    pub relation: Relation,
    /// True if duplicates exceeded the room, so that the main kernel ran again.
    pub is_retried: bool,
    /// Counts of the last run of the main kernel.
    pub counted: Counted,
    /// Times: `partition`, `expected`, `main`, `scan`, `gather` or `link`.
    pub stages: Stages,
}

/// Arguments of the main kernels; the same as in relation_stream.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Merge {
    left: View,
    right: View,
    sink: Sink,
    ranges: u64,
    stats: u64,
    operation: u32,
    block_tuples: u32,
    section_tuples: u32,
    unused: u32,
}

/// Returns the bytes of blocks of both inputs, as `blocks_at` lays them out.
fn blocks_bytes(tuples: u32, key_bytes: u8, widths: [u8; 2]) -> u32 {
    tuples * (2 * u32::from(key_bytes) + u32::from(widths[0]) + u32::from(widths[1]))
}

/// Returns the entries of a block's hash table: at least two for each tuple.
pub(super) const fn table_entries(tuples: u32) -> u32 {
    if tuples <= 1 { 2 } else { (2 * tuples).next_power_of_two() }
}

impl PaperOptions {
    /// Returns the tuples per block for keys of a width, if the CTA can take them.
    fn block_tuples(&self, key_bytes: u8, is_joined: bool) -> Result<u32, GpuError> {
        let tuples = self.block_bytes / u32::from(key_bytes);
        let most = if is_joined { self.threads * self.cta_join.blocking() } else { BLOCK_TUPLES_MAX };
        if !self.threads.is_power_of_two() || !(32..=THREADS_MAX).contains(&self.threads) {
            return Err(refused(format!("{} threads: ask for 32, 64, ... {THREADS_MAX}", self.threads)));
        }
        // Values after the keys are aligned to 8 bytes.
        if tuples == 0 || !tuples.is_multiple_of(2) || tuples > most {
            let (bytes, key) = (self.block_bytes, u32::from(key_bytes));
            return Err(refused(format!(
                "blocks of {bytes} bytes: ask for a multiple of {} up to {}",
                2 * key,
                most * key
            )));
        }
        if self.section_tuples == 0 {
            return Err(refused("sections of no tuple: ask for one or more"));
        }
        Ok(tuples)
    }
}

/// The kernel of an operation, with all arguments but the sink.
struct Launch {
    instance: Instance,
    shape: LaunchShape,
    merge: Merge,
}

impl Launch {
    fn new(
        job: &mut Job<'_>,
        (left, right): (&Relation, &Relation),
        operation: Option<Operation>,
        (parts, stats): (&Parts, &DeviceBuffer),
        widths: [u8; 2],
        options: &PaperOptions,
    ) -> Result<Self, GpuError> {
        let key_bytes = left.key_bytes();
        let is_joined = operation.is_some_and(|operation| operation != Operation::Union);
        let tuples = options.block_tuples(key_bytes, is_joined)?;
        let values = [left.value_bytes(), right.value_bytes()];
        let stage = stage_bytes(tuples, key_bytes, widths);
        let (instance, more) = match operation {
            None => (Instance::new(&STREAM, key_bytes, 0), 0),
            Some(Operation::Union) => (Instance::new(&STREAM, key_bytes, 0), stage + 4 * (tuples + 1)),
            Some(_) if options.cta_join == CtaJoin::Hash => {
                (options.cta_join.instance(key_bytes), stage + 2 * table_entries(tuples))
            }
            Some(_) => (options.cta_join.instance(key_bytes), stage),
        };
        let shared_bytes = blocks_bytes(tuples, key_bytes, values) + more;
        let most = shared_bytes_max(job.stream().gpu());
        if shared_bytes.saturating_add(STATIC_BYTES) > most {
            let bytes = options.block_bytes;
            return Err(refused(format!(
                "blocks of {bytes} bytes of keys want {shared_bytes} bytes of shared memory, of {most}: ask for less"
            )));
        }
        let shape = LaunchShape { blocks: options.partitions, threads: options.threads, shared_bytes };
        let merge = Merge {
            left: left.view(),
            right: right.view(),
            sink: Sink::default(),
            ranges: parts.ranges.address(),
            stats: stats.address(),
            operation: operation.unwrap_or(Operation::Join) as u32,
            block_tuples: tuples,
            section_tuples: options.section_tuples,
            unused: 0,
        };
        Ok(Self { instance, shape, merge })
    }
}

fn counted(job: &Job<'_>, stats: &DeviceBuffer) -> Result<Counted, GpuError> {
    Ok(Counted {
        discarded_by_cuts: job.number(stats, 0)?,
        discarded_by_blocks: job.number(stats, 1)?,
        blocks: job.number(stats, 2)?,
    })
}

/// Runs an operation by the paper's stages. Reads and writes each tuple a few times; blocks.
///
/// # Errors
/// [`GpuError::Operator`] for keys of two widths, for a UNION of values of two widths, or for options
/// that are not valid for a CTA; [`GpuError::Memory`] if the results do not fit; [`GpuError::Driver`] if a
/// driver call fails.
pub fn merge(
    stream: &Stream,
    operation: Operation,
    (left, right): (&Relation, &Relation),
    options: &PaperOptions,
) -> Result<Merged, GpuError> {
    let key_bytes = left.key_bytes();
    let widths = match operation {
        Operation::Join => [left.value_bytes(), right.value_bytes()],
        _ => [left.value_bytes(), 0],
    };
    if operation == Operation::Union && left.value_bytes() != right.value_bytes() {
        return Err(refused(format!(
            "a union of values of {} and of {} bytes",
            left.value_bytes(),
            right.value_bytes()
        )));
    }
    let mut job = Job::new(stream);
    let parts = cut(&mut job, (left, right), options.partitions, operation)?;
    let stats = zeroed(&mut job, 24)?;
    let mut launch =
        Launch::new(&mut job, (left, right), Some(operation), (&parts, &stats), widths, options)?;
    let (mut expected, mut places, mut is_retried) = (parts.expected, parts.places.clone(), false);
    loop {
        let tuples = (options.partitions, expected);
        let target = Target::new(&mut job, options.form, (key_bytes, widths), tuples, places)?;
        launch.merge.sink = target.sink();
        // SAFETY: the ranges are inside the relations, which the caller keeps; the target has the room that
        // its sink states, and the job keeps it.
        job.stage("main", || unsafe {
            match operation {
                Operation::Union => paper_union(stream, launch.instance, launch.shape, &launch.merge),
                _ => paper_merge(stream, launch.instance, launch.shape, &launch.merge),
            }
        })?;
        match target.end(&mut job, is_retried)? {
            Outcome::Done(relation) => {
                let counted = counted(&job, &stats)?;
                return Ok(Merged { relation, is_retried, counted, stages: job.end()? });
            }
            Outcome::Overflow(..) if is_retried => {
                return Err(refused("results do not fit where they were counted: a defect"));
            }
            Outcome::Overflow(tuples, offsets) => {
                // The buffers that were too small are freed first.
                job.free_but(&[&parts.ranges, &stats, &offsets])?;
                stats.fill(stream, 0)?;
                (expected, places, is_retried) = (tuples, offsets, true);
            }
        }
    }
}

/// Streams the blocks of both relations as a JOIN does, checks their ranges, and joins nothing. Times:
/// `partition`, `expected`, `stream`. Blocks.
///
/// # Errors
/// As [`merge`].
pub fn stream_blocks(
    stream: &Stream,
    (left, right): (&Relation, &Relation),
    options: &PaperOptions,
) -> Result<(Counted, Stages), GpuError> {
    let mut job = Job::new(stream);
    let parts = cut(&mut job, (left, right), options.partitions, Operation::Join)?;
    let stats = zeroed(&mut job, 24)?;
    let launch = Launch::new(&mut job, (left, right), None, (&parts, &stats), [0, 0], options)?;
    // SAFETY: the ranges are inside the relations, which the caller keeps; the job keeps the rest.
    job.stage("stream", || unsafe { paper_stream(stream, launch.instance, launch.shape, &launch.merge) })?;
    let counted = counted(&job, &stats)?;
    Ok((counted, job.end()?))
}
