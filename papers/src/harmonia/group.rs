//! Grouping: operations sorted by leaf, those of one leaf in the order of the batch.
//!
//! Leaves are cut into buckets of about equally many operations, none of too many leaves. Portions of the
//! batch, small enough for a core's cache, are each sorted by bucket with a counting sort. A bucket is then a
//! short piece of every portion, in the order of the batch, and is sorted by leaf in the same way.
//!
//! The paper sorts queries by some of their bits before the search (4.1); here the leaf itself is known,
//! which is better.

use crate::parallel;

/// An element that belongs to a leaf.
pub(super) trait Routed: Copy + Default + Send + Sync {
    /// Returns the leaf.
    fn leaf(&self) -> u32;
}

/// Elements per portion.
const PORTION: usize = 1 << 15;
/// Approximate number of elements per bucket.
const BUCKET: usize = 1 << 12;
/// Maximum number of ranges of leaves that are counted to cut buckets.
const BINS: u32 = 1 << 16;
/// Number of bins whose counts are summed by one task.
const SUM_BINS: usize = 1 << 12;

/// Elements sorted by bucket, portion by portion.
pub(super) struct Groups<T> {
    /// First leaf of each bucket, and the number of leaves.
    starts: Vec<u32>,
    /// Elements of each portion, and the starts of its buckets.
    portions: Vec<(Vec<T>, Vec<u32>)>,
}

/// Groups elements `0..leaves_of.len()`; calls `make` once for each.
pub(super) fn group<T: Routed>(
    leaves_of: &[u32],
    leaves: u32,
    make: impl Fn(usize) -> T + Sync,
) -> Groups<T> {
    let shift = (u32::BITS - leaves.leading_zeros()).saturating_sub(BINS.trailing_zeros());
    let (starts, buckets_of) = cut(&histogram(leaves_of, leaves, shift), leaves, shift);
    let buckets = starts.len() - 1;
    let portion = |at: usize| {
        let leaves_of = part(leaves_of, PORTION, at);
        let mut ends = vec![0u32; buckets + 1];
        for &leaf in leaves_of {
            ends[buckets_of[(leaf >> shift) as usize] as usize + 1] += 1;
        }
        for bucket in 1..=buckets {
            ends[bucket] += ends[bucket - 1];
        }
        let mut places = ends.clone();
        let mut elements = vec![T::default(); leaves_of.len()];
        for (index, &leaf) in leaves_of.iter().enumerate() {
            let place = &mut places[buckets_of[(leaf >> shift) as usize] as usize];
            elements[*place as usize] = make(at * PORTION + index);
            *place += 1;
        }
        (elements, ends)
    };
    let portions = parallel::map(leaves_of.len().div_ceil(PORTION), portion);
    Groups { starts, portions }
}

/// Returns part `at` of the parts of length `len`.
fn part(leaves_of: &[u32], len: usize, at: usize) -> &[u32] {
    &leaves_of[at * len..leaves_of.len().min((at + 1) * len)]
}

/// Counts the elements in each `2^shift` leaves.
fn histogram(leaves_of: &[u32], leaves: u32, shift: u32) -> Vec<u32> {
    let bins = (leaves >> shift) as usize + 1;
    pleach_builder::pool::ready();
    let len = leaves_of.len().div_ceil(rayon::current_num_threads()).max(PORTION);
    let count = |at| {
        let mut counts = vec![0u32; bins];
        for &leaf in part(leaves_of, len, at) {
            counts[(leaf >> shift) as usize] += 1;
        }
        counts
    };
    let parts = parallel::map(leaves_of.len().div_ceil(len), count);
    let mut counts = vec![0u32; bins];
    parallel::jobs(counts.chunks_mut(SUM_BINS).enumerate(), |(task, counts)| {
        for part in &parts {
            counts.iter_mut().zip(&part[task * SUM_BINS..]).for_each(|(count, part)| *count += part);
        }
    });
    counts
}

/// Returns the first leaf of each bucket and the number of leaves, and the bucket of each bin.
fn cut(bins: &[u32], leaves: u32, shift: u32) -> (Vec<u32>, Vec<u32>) {
    let span_max = (leaves / 1024).max(1 << 13);
    let (mut starts, mut buckets_of) = (vec![0], Vec::with_capacity(bins.len()));
    let mut elements = 0;
    for (bin, &count) in bins.iter().enumerate() {
        let first = (bin as u64) << shift;
        let start = u64::from(starts[starts.len() - 1]);
        let is_full = elements > 0 && elements + count as usize > BUCKET;
        if first > start && (is_full || first - start >= u64::from(span_max)) && first < u64::from(leaves) {
            starts.push(first as u32);
            elements = 0;
        }
        elements += count as usize;
        buckets_of.push(starts.len() as u32 - 1);
    }
    starts.push(leaves);
    (starts, buckets_of)
}

/// Memory of a thread that sorts buckets.
#[derive(Default)]
pub(super) struct Scratch<T> {
    ends: Vec<u32>,
    elements: Vec<T>,
}

impl<T: Routed> Groups<T> {
    /// Returns the number of buckets.
    pub fn buckets(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the elements of a bucket, sorted by leaf and then by place in the batch.
    pub fn bucket<'s>(&self, bucket: usize, scratch: &'s mut Scratch<T>) -> &'s [T] {
        let Scratch { ends, elements } = scratch;
        let first = self.starts[bucket];
        let span = (self.starts[bucket + 1] - first) as usize;
        let pieces = || {
            self.portions
                .iter()
                .map(|(elements, ends)| &elements[ends[bucket] as usize..ends[bucket + 1] as usize])
        };
        ends.clear();
        ends.resize(span + 1, 0);
        for piece in pieces() {
            for element in piece {
                ends[(element.leaf() - first) as usize + 1] += 1;
            }
        }
        for at in 1..=span {
            ends[at] += ends[at - 1];
        }
        let len = ends[span] as usize;
        if elements.len() < len {
            elements.resize(len, T::default());
        }
        for piece in pieces() {
            for element in piece {
                let place = &mut ends[(element.leaf() - first) as usize];
                elements[*place as usize] = *element;
                *place += 1;
            }
        }
        &elements[..len]
    }
}
