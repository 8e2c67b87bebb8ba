//! Stage 1 of the paper: both inputs are cut into partitions by a recursive double-sided binary search
//! (section 4.1).
//!
//! Evenly spaced pivots of the left input are searched in both inputs. Then the partitions are cut again by
//! pivots of the right one, so that there are exactly as many as requested, some of them empty if keys
//! repeat. A cut is before all tuples with its pivot's key. Then tuples at the ends of a partition that no
//! key of the other side can match are left out, as far as the operation does not need them.

use super::columns::{Relation, View};
use super::merge::Operation;
use super::sink::scan;
use super::unary::{STAGES, paper_bounds, paper_partition};
use super::{Stages, refused};
use pleach_gpu::internal::{Instance, Job, grid};
use pleach_gpu::{DeviceBuffer, GpuError, Stream};

/// Threads per block.
const THREADS: u32 = 256;
/// Maximum number of partitions.
const PARTITIONS_MAX: u32 = 1 << 24;

/// Arguments of the search for cuts; the same as Partition in relation.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Cuts {
    left: View,
    right: View,
    left_cuts: u64,
    right_cuts: u64,
    partitions: u32,
    from: u32,
    to: u32,
    side: u32,
}

/// Arguments of the bounds of partitions; the same as in relation.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Bounds {
    left: View,
    right: View,
    left_cuts: u64,
    right_cuts: u64,
    ranges: u64,
    expected: u64,
    partitions: u32,
    operation: u32,
}

/// Ranks of both inputs, ends excluded; the same as in relation_stream.cuh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Range {
    /// First left rank.
    pub left: u64,
    /// Rank after the last left tuple.
    pub left_end: u64,
    /// First right rank.
    pub right: u64,
    /// Rank after the last right tuple.
    pub right_end: u64,
}

impl Range {
    /// Returns the number of tuples of both sides.
    #[must_use]
    pub const fn tuples(&self) -> u64 {
        self.left_end - self.left + (self.right_end - self.right)
    }
}

/// Partitions after cutting, without the tuples that were left out.
#[derive(Clone, Debug)]
pub struct Partitions {
    /// Ranges of each partition without the tuples at its ends that have no partner.
    pub ranges: Vec<Range>,
    /// Number of tuples that were left out.
    pub discarded: u64,
    /// Times: `partition` for the search, `expected` for the bounds and the scan of expected sizes.
    pub stages: Stages,
}

/// Partitions on the device.
pub(super) struct Parts {
    pub(super) ranges: DeviceBuffer,
    /// Places of the expected results of each partition, and their total.
    pub(super) places: DeviceBuffer,
    pub(super) expected: u64,
}

/// Returns the number of parts into which each round cuts: the two factors of a number that are nearest to
/// each other.
fn rounds(partitions: u32) -> [u32; 2] {
    let root = partitions.isqrt();
    let first = (1..=root).rev().find(|&factor| partitions.is_multiple_of(factor)).unwrap_or(1);
    [first, partitions / first]
}

/// Queues the search, the bounds and the scan of expected sizes.
pub(super) fn cut(
    job: &mut Job<'_>,
    (left, right): (&Relation, &Relation),
    partitions: u32,
    operation: Operation,
) -> Result<Parts, GpuError> {
    if !(1..=PARTITIONS_MAX).contains(&partitions) {
        return Err(refused(format!("{partitions} partitions: ask for 1 to {PARTITIONS_MAX}")));
    }
    left.check()?;
    right.check()?;
    if left.key_bytes() != right.key_bytes() {
        return Err(refused(format!("keys of {} and of {} bytes", left.key_bytes(), right.key_bytes())));
    }
    let (stream, gpu, key_bytes) = (job.stream(), left.gpu(), left.key_bytes());
    let numbers = u64::from(partitions) * 8;
    let (left_cuts, right_cuts) = (job.buffer(numbers + 8)?, job.buffer(numbers + 8)?);
    let instance = Instance::new(&STAGES, key_bytes, 0);
    let mut cuts = Cuts {
        left: left.view(),
        right: right.view(),
        left_cuts: left_cuts.address(),
        right_cuts: right_cuts.address(),
        partitions,
        from: partitions,
        to: partitions,
        side: 1,
    };
    job.stage("partition", || {
        for parts in rounds(partitions) {
            cuts.to = cuts.from / parts;
            cuts.side ^= 1;
            let items = u64::from(partitions / cuts.to) + 1;
            let shape = grid(gpu, instance, "paper_partition", THREADS, 0, items)?;
            // SAFETY: there is one cut more than partitions; the job keeps them, and the caller the
            // relations.
            unsafe { paper_partition(stream, instance, shape, &cuts) }?;
            cuts.from = cuts.to;
        }
        Ok(())
    })?;
    let ranges = job.buffer(u64::from(partitions) * size_of::<Range>() as u64)?;
    let (sizes, places) = (job.buffer(numbers)?, job.buffer(numbers + 8)?);
    let bounds = Bounds {
        left: cuts.left,
        right: cuts.right,
        left_cuts: cuts.left_cuts,
        right_cuts: cuts.right_cuts,
        ranges: ranges.address(),
        expected: sizes.address(),
        partitions,
        operation: operation as u32,
    };
    let shape = grid(gpu, instance, "paper_bounds", THREADS, 0, partitions.into())?;
    // SAFETY: there is a range, a size and a place for each partition, and one place more; the job keeps
    // them, and the caller the relations.
    job.stage("expected", || unsafe {
        paper_bounds(stream, instance, shape, &bounds)?;
        scan(stream, key_bytes, &sizes, &places, partitions)
    })?;
    let expected = job.number(&places, partitions.into())?;
    Ok(Parts { ranges, places, expected })
}

/// Partitions two relations for an operation: sizes, tuples that are left out, times. O(partitions *
/// log(tuples)); blocks.
///
/// # Errors
/// [`GpuError::Operator`] for keys of two widths, for no partition or more than 2^24, or for more than
/// 2^31 tuples; [`GpuError::Memory`] if the partitions do not fit, [`GpuError::Driver`] if a driver call
/// fails.
pub fn partition(
    stream: &Stream,
    (left, right): (&Relation, &Relation),
    partitions: u32,
    operation: Operation,
) -> Result<Partitions, GpuError> {
    let mut job = Job::new(stream);
    let parts = cut(&mut job, (left, right), partitions, operation)?;
    let mut bytes = vec![0; partitions as usize * size_of::<Range>()];
    parts.ranges.copy_to_host(stream, &mut bytes)?;
    let stages = job.end()?;
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|word| word.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte)))
        .collect();
    let range = |word: &[u64]| Range { left: word[0], left_end: word[1], right: word[2], right_end: word[3] };
    let ranges: Vec<Range> = words.chunks_exact(4).map(range).collect();
    let left_over: u64 = ranges.iter().map(Range::tuples).sum();
    Ok(Partitions { ranges, discarded: left.tuples() + right.tuples() - left_over, stages })
}

#[cfg(test)]
mod tests {
    use super::rounds;

    #[test]
    fn rounds_cut_evenly() {
        assert_eq!(rounds(14_336), [112, 128]);
        assert_eq!(rounds(1), [1, 1]);
        assert_eq!(rounds(7), [1, 7]);
        for partitions in 1..300 {
            let [first, second] = rounds(partitions);
            assert_eq!(first * second, partitions);
        }
    }
}
