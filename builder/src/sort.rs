//! Stable parallel radix sort of tuples in memory; sorted tuples are passed on while it continues.
//!
//! The first pass separates the tuples by the top bits in which their keys differ, into buckets that fit in
//! the second-level cache. Every thread counts and scatters consecutive parts of the input; the slots of a
//! part in each bucket follow those of the parts before it, so equal keys keep their order. Scattering uses a
//! line-sized buffer per bucket, so memory receives whole lines.
//!
//! A bucket is then separated again, into about as many cells as it has tuples, and insertion sort does the
//! rest. Recursion handles skew: bits are counted from the smallest key of each range, so every pass
//! separates something. Sorted groups are consumed while the next group is sorted. Slots of different threads
//! are disjoint slices, so none of this is unsafe.

use crate::error::BuildError;
use crate::hint;
use crate::observe::Watch;
use crate::pack::{KeyLane, Tuple, ValueLane};
use crate::parallel;
use crate::stream;
use std::mem;

/// Bytes per bucket of the first pass: two of them fit in a second-level cache.
const BUCKET_BYTES: usize = 256 << 10;
/// Maximum number of bits of the first pass: more streams cost more than they save.
const PARTITION_BITS_MAX: u32 = 12;
/// Maximum number of bits of a pass inside a bucket.
const CELL_BITS_MAX: u32 = 15;
/// Bytes that are sorted and passed on at once.
const GROUP_BYTES: usize = 8 << 20;
/// Maximum number of tuples for insertion sort.
const INSERTION_MAX: usize = 24;
/// Parts of the input per thread; more than one, so that a slow thread can be helped.
const PARTS_PER_THREAD: usize = 2;
/// Bytes gathered for a bucket before they are written.
const GATHER_BYTES: usize = 64;

/// Receiver of sorted tuples, in order.
pub(crate) trait Consume<W, B>: Send {
    /// Receives the next tuples. They belong to the consumer until it returns.
    fn take(&mut self, tuples: &[Tuple<W, B>]) -> Result<(), BuildError>;
}

/// Working memory of a sort, beside its two large buffers: groups that stay in the cache.
pub(crate) struct Groups<W, B> {
    ready: Vec<Tuple<W, B>>,
    next: Vec<Tuple<W, B>>,
    /// Return the pages of a large buffer to the system as soon as they are no longer needed: the page cache
    /// then writes the result into memory that is free.
    release: bool,
}

impl<W: KeyLane, B: ValueLane> Groups<W, B> {
    /// Creates working memory for sorts of up to `tuples` tuples. With `release` the large buffers are used
    /// only once.
    pub(crate) fn new(tuples: usize, release: bool) -> Self {
        let size = tuples.min(GROUP_BYTES / size_of::<Tuple<W, B>>());
        Self { ready: vec![Tuple::default(); size], next: vec![Tuple::default(); size], release }
    }

    fn release(&self, buffer: &mut [Tuple<W, B>]) {
        if self.release {
            hint::release(buffer);
        }
    }
}

/// Sorts `tuples` with a `scratch` of the same length, and passes them on in order. Both buffers have
/// unspecified content afterwards. O(n) per pass; O(log range) passes for adversarial keys.
pub(crate) fn sort<W: KeyLane, B: ValueLane>(
    tuples: &mut [Tuple<W, B>],
    scratch: &mut [Tuple<W, B>],
    groups: &mut Groups<W, B>,
    watch: &Watch<'_>,
    consumer: &mut dyn Consume<W, B>,
) -> Result<(), BuildError> {
    watch.check()?;
    let group = groups.next.len().max(1);
    let span = Span::of_parallel(tuples);
    if span.sorted {
        for part in tuples.chunks(group) {
            watch.check()?;
            consumer.take(part)?;
        }
        return Ok(());
    }
    if tuples.len() <= group {
        sort_into(tuples, scratch);
        return consumer.take(scratch);
    }
    let wanted = (size_of_val(tuples) / BUCKET_BYTES).max(2).ilog2();
    let radix = span.radix(wanted.clamp(1, PARTITION_BITS_MAX));
    let ends = partition(tuples, scratch, radix, watch)?;
    // From here on `scratch` holds the buckets, and `tuples` is free.
    groups.release(tuples);
    let mut walk = Walk { data: scratch, free: tuples, ends: &ends, at: 0, bucket: 0 };
    let mut ready_len = 0;
    loop {
        let mut next = walk.next(group);
        let ready = &groups.ready[..ready_len];
        let sorted = &mut groups.next;
        let (done, taken) = parallel::both(
            &mut || match &mut next {
                Next::Group { data, sizes } => sort_buckets(data, &mut sorted[..data.len()], sizes, watch),
                _ => Ok(()),
            },
            &mut || if ready.is_empty() { Ok(()) } else { consumer.take(ready) },
        );
        taken?;
        done?;
        ready_len = 0;
        match next {
            Next::Group { data, .. } => {
                ready_len = data.len();
                groups.release(data);
                mem::swap(&mut groups.ready, &mut groups.next);
            }
            Next::Large { data, free } => sort(data, free, groups, watch, consumer)?,
            Next::End => return Ok(()),
        }
    }
}

enum Next<'a, W, B> {
    /// Neighbouring buckets.
    Group {
        data: &'a mut [Tuple<W, B>],
        sizes: Vec<usize>,
    },
    /// A bucket larger than a group, and as much free memory.
    Large {
        data: &'a mut [Tuple<W, B>],
        free: &'a mut [Tuple<W, B>],
    },
    End,
}

/// An iteration over the buckets in groups.
struct Walk<'a, W, B> {
    data: &'a mut [Tuple<W, B>],
    free: &'a mut [Tuple<W, B>],
    ends: &'a [usize],
    at: usize,
    bucket: usize,
}

impl<'a, W, B> Walk<'a, W, B> {
    fn next(&mut self, group: usize) -> Next<'a, W, B> {
        let from = self.at;
        let mut sizes = Vec::new();
        while let Some(&end) = self.ends.get(self.bucket) {
            if end - from > group && self.at > from {
                break;
            }
            self.bucket += 1;
            if end > self.at {
                sizes.push(end - self.at);
                self.at = end;
            }
            if self.at - from >= group {
                break;
            }
        }
        let len = self.at - from;
        let (data, rest) = mem::take(&mut self.data).split_at_mut(len);
        self.data = rest;
        let (free, rest) = mem::take(&mut self.free).split_at_mut(len);
        self.free = rest;
        match len {
            0 => Next::End,
            _ if len > group => Next::Large { data, free },
            _ => Next::Group { data, sizes },
        }
    }
}

/// Sorts neighbouring buckets in parallel, into `sorted`; `data` is destroyed.
fn sort_buckets<W: KeyLane, B: ValueLane>(
    data: &mut [Tuple<W, B>],
    sorted: &mut [Tuple<W, B>],
    sizes: &[usize],
    watch: &Watch<'_>,
) -> Result<(), BuildError> {
    let mut jobs = Vec::with_capacity(sizes.len());
    let (mut data, mut sorted) = (data, sorted);
    for &size in sizes {
        let (from, data_rest) = data.split_at_mut(size);
        let (to, sorted_rest) = sorted.split_at_mut(size);
        jobs.push((from, to));
        (data, sorted) = (data_rest, sorted_rest);
    }
    parallel::try_jobs(jobs, |(from, to)| {
        watch.check()?;
        sort_into(from, to);
        Ok(())
    })
}

/// The range of keys in a pass.
#[derive(Clone, Copy)]
struct Span<W> {
    min: W,
    max: W,
    sorted: bool,
}

impl<W: KeyLane> Span<W> {
    fn empty() -> Self {
        Self { min: W::MAX, max: W::default(), sorted: true }
    }

    fn of<B: ValueLane>(tuples: &[Tuple<W, B>]) -> Self {
        let Some(first) = tuples.first() else { return Self::empty() };
        let (mut min, mut max, mut sorted) = (first.key, first.key, true);
        let mut previous = first.key;
        for tuple in tuples {
            min = min.min(tuple.key);
            max = max.max(tuple.key);
            sorted &= previous <= tuple.key;
            previous = tuple.key;
        }
        Self { min, max, sorted }
    }

    fn of_parallel<B: ValueLane>(tuples: &[Tuple<W, B>]) -> Self {
        const PART: usize = 1 << 16;
        let spans = parallel::map(tuples.len().div_ceil(PART), |part| {
            // Include one tuple more, so that the order across the boundary is checked, too.
            let from = part * PART;
            Self::of(&tuples[from..(from + PART + 1).min(tuples.len())])
        });
        spans.into_iter().fold(Self::empty(), |left, right| Self {
            min: left.min.min(right.min),
            max: left.max.max(right.max),
            sorted: left.sorted && right.sorted,
        })
    }

    /// Returns the cells for the top `bits` bits in which keys of this span can differ.
    fn radix(self, bits: u32) -> Radix<W> {
        let shift = (self.max - self.min).bit_length().saturating_sub(bits);
        Radix { min: self.min, shift, cells: self.max.cell(self.min, shift) as usize + 1 }
    }
}

/// Mapping of keys to cells.
#[derive(Clone, Copy)]
struct Radix<W> {
    min: W,
    shift: u32,
    cells: usize,
}

impl<W: KeyLane> Radix<W> {
    #[inline(always)]
    fn cell(self, key: W) -> usize {
        key.cell(self.min, self.shift) as usize
    }
}

/// Partitions `from` into `to`, stably and in parallel; returns the end of each bucket.
fn partition<W: KeyLane, B: ValueLane>(
    from: &[Tuple<W, B>],
    to: &mut [Tuple<W, B>],
    radix: Radix<W>,
    watch: &Watch<'_>,
) -> Result<Vec<usize>, BuildError> {
    crate::pool::ready();
    let parts = rayon::current_num_threads() * PARTS_PER_THREAD;
    let part = from.len().div_ceil(parts).max(1);
    let counts = parallel::try_map(from.len().div_ceil(part), |number| {
        let mut counts = vec![0; radix.cells];
        for block in from[number * part..from.len().min((number + 1) * part)].chunks(1 << 20) {
            watch.check()?;
            for tuple in block {
                counts[radix.cell(tuple.key)] += 1;
            }
        }
        Ok(counts)
    })?;

    // Bucket by bucket, part by part: so equal keys keep the order of the input.
    let mut slots: Vec<Vec<&mut [Tuple<W, B>]>> =
        counts.iter().map(|_| Vec::with_capacity(radix.cells)).collect();
    let mut ends = Vec::with_capacity(radix.cells);
    let (mut rest, mut end) = (to, 0);
    for cell in 0..radix.cells {
        for (slots, counts) in slots.iter_mut().zip(&counts) {
            let (own, others) = rest.split_at_mut(counts[cell]);
            slots.push(own);
            rest = others;
            end += counts[cell];
        }
        ends.push(end);
    }
    parallel::try_jobs(from.chunks(part).zip(slots), |(tuples, slots)| {
        let scattered = scatter(tuples, slots, radix, watch);
        // Also after an error: no thread may meet a store that is still in flight.
        stream::stream_fence();
        scattered
    })?;
    Ok(ends)
}

/// Moves each tuple to the next free slot of its cell, a line at a time. The caller must fence.
fn scatter<W: KeyLane, B: ValueLane>(
    tuples: &[Tuple<W, B>],
    mut slots: Vec<&mut [Tuple<W, B>]>,
    radix: Radix<W>,
    watch: &Watch<'_>,
) -> Result<(), BuildError> {
    let gather = const { GATHER_BYTES / size_of::<Tuple<W, B>>() };
    let mut lines = vec![Tuple::<W, B>::default(); radix.cells * gather];
    // The buffer of a cell is filled from the offset at which its slots begin in a line of memory, so that
    // all flushes but the first and the last write whole lines.
    let mut starts: Vec<u8> = slots.iter().map(|slots| stream::place_in_line(slots) as u8).collect();
    let mut filled = starts.clone();
    for block in tuples.chunks(1 << 20) {
        watch.check()?;
        for tuple in block {
            let cell = radix.cell(tuple.key);
            let fill = usize::from(filled[cell]);
            let line = &mut lines[cell * gather..][..gather];
            line[fill] = *tuple;
            if fill + 1 < gather {
                filled[cell] = fill as u8 + 1;
            } else {
                filled[cell] = 0;
                let start = usize::from(mem::take(&mut starts[cell]));
                flush(&mut slots[cell], &line[start..]);
            }
        }
    }
    for (cell, (&start, &fill)) in starts.iter().zip(&filled).enumerate() {
        flush(&mut slots[cell], &lines[cell * gather..][usize::from(start)..usize::from(fill)]);
    }
    Ok(())
}

#[inline(always)]
fn flush<W: KeyLane, B: ValueLane>(slots: &mut &mut [Tuple<W, B>], line: &[Tuple<W, B>]) {
    let (now, later) = mem::take(slots).split_at_mut(line.len());
    if !stream::stream_line(line, now) {
        now.copy_from_slice(line);
    }
    *slots = later;
}

/// Sorts `from` into `to`; `from` is destroyed.
fn sort_into<W: KeyLane, B: ValueLane>(from: &mut [Tuple<W, B>], to: &mut [Tuple<W, B>]) {
    if from.len() <= INSERTION_MAX {
        to.copy_from_slice(from);
        insertion(to);
        return;
    }
    let span = Span::of(from);
    if span.sorted {
        to.copy_from_slice(from);
        return;
    }
    let (radix, ends, most) = cells(from, to, span);
    settle(to, from, radix, &ends, most);
}

/// Sorts `data` in place; `free` has the same length and is destroyed.
fn sort_here<W: KeyLane, B: ValueLane>(data: &mut [Tuple<W, B>], free: &mut [Tuple<W, B>]) {
    if data.len() <= INSERTION_MAX {
        insertion(data);
        return;
    }
    let span = Span::of(data);
    if span.sorted {
        return;
    }
    let (radix, ends, most) = cells(data, free, span);
    data.copy_from_slice(free);
    settle(data, free, radix, &ends, most);
}

/// Scatters `from` into `to` by about as many cells as there are tuples. Returns the end of each cell and the
/// size of the largest.
fn cells<W: KeyLane, B: ValueLane>(
    from: &[Tuple<W, B>],
    to: &mut [Tuple<W, B>],
    span: Span<W>,
) -> (Radix<W>, Vec<u32>, u32) {
    let radix = span.radix((usize::BITS - from.len().leading_zeros()).min(CELL_BITS_MAX));
    let mut ends = vec![0u32; radix.cells];
    for tuple in from {
        ends[radix.cell(tuple.key)] += 1;
    }
    let (mut sum, mut most) = (0, 0);
    for end in &mut ends {
        let count = *end;
        most = most.max(count);
        *end = sum;
        sum += count;
    }
    for tuple in from {
        let end = &mut ends[radix.cell(tuple.key)];
        to[*end as usize] = *tuple;
        *end += 1;
    }
    (radix, ends, most)
}

/// Sorts the cells of `data`.
fn settle<W: KeyLane, B: ValueLane>(
    data: &mut [Tuple<W, B>],
    free: &mut [Tuple<W, B>],
    radix: Radix<W>,
    ends: &[u32],
    most: u32,
) {
    if radix.shift == 0 {
        return;
    }
    if most as usize <= INSERTION_MAX {
        insertion(data);
        return;
    }
    let mut from = 0;
    for &end in ends {
        let end = end as usize;
        if end - from > INSERTION_MAX {
            sort_here(&mut data[from..end], &mut free[from..end]);
        } else {
            insertion(&mut data[from..end]);
        }
        from = end;
    }
}

/// Sorts by stable insertion: the tuples are nearly in order.
fn insertion<W: KeyLane, B: ValueLane>(tuples: &mut [Tuple<W, B>]) {
    for at in 1..tuples.len() {
        let tuple = tuples[at];
        let mut to = at;
        while to > 0 && tuples[to - 1].key > tuple.key {
            tuples[to] = tuples[to - 1];
            to -= 1;
        }
        if to != at {
            tuples[to] = tuple;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::observe::Silent;

    struct Gather<W, B>(Vec<Tuple<W, B>>);
    impl<W: KeyLane, B: ValueLane> Consume<W, B> for Gather<W, B> {
        fn take(&mut self, tuples: &[Tuple<W, B>]) -> Result<(), BuildError> {
            self.0.extend_from_slice(tuples);
            Ok(())
        }
    }

    /// Mixes the bits of `x`: small, good enough, the same everywhere.
    pub(crate) fn mix(x: u64) -> u64 {
        let x = (x ^ x >> 31).wrapping_mul(0x7FB5_D329_728E_A185);
        let x = (x ^ x >> 27).wrapping_mul(0x81DA_DEF4_BC2D_D44D);
        x ^ x >> 33
    }

    fn check<W: KeyLane, B: ValueLane>(keys: impl Iterator<Item = u64>) {
        check_words::<W, B>(keys.map(u128::from));
    }

    fn check_words<W: KeyLane, B: ValueLane>(keys: impl Iterator<Item = u128>) {
        let mut tuples: Vec<Tuple<W, B>> = keys
            .enumerate()
            .map(|(row, key)| Tuple { key: W::from_u128(key), value: B::from_u64(row as u64) })
            .collect();
        let mut wanted = tuples.clone();
        wanted.sort_by_key(|tuple| tuple.key);
        let mut scratch = tuples.clone();
        let mut out = Gather(Vec::new());
        let mut groups = Groups::new(tuples.len(), false);
        sort(&mut tuples, &mut scratch, &mut groups, &Watch::new(&Silent), &mut out).unwrap();
        assert!(out.0 == wanted);
    }

    fn check_all(n: u64, key: impl Fn(u64) -> u64 + Copy) {
        check::<u64, u64>((0..n).map(key));
        check::<u32, u32>((0..n).map(key));
        check::<u64, ()>((0..n).map(key));
        check::<u32, u64>((0..n).map(key));
        check_words::<u128, u64>((0..n).map(|i| u128::from(key(i)) << 64 | u128::from(mix(key(i)))));
    }

    #[test]
    fn sorts_small() {
        for n in (0..200).chain([1000, 5000, 33_000]) {
            check_all(n, mix);
            check_all(n, |i| mix(i) % 7);
            check_all(n, |i| u64::MAX - i);
        }
    }

    #[test]
    fn sorts_large_whatever_the_keys() {
        let n = 2_300_000;
        check_all(n, mix);
        check_all(n, |i| n - i);
        if std::env::var_os("PLEACH_TESTS").is_some_and(|form| form == "long") {
            check_all(n, |i| mix(i) % 1000);
            check_all(n, |_| 42);
            check_all(n, |i| i);
        }
        // One outlier, so that the first pass separates nothing else.
        check_all(n, |i| if i == 77 { u64::MAX } else { mix(i) % 100_000 });
        // Clusters inside clusters: every pass finds skew again.
        check_all(n, |i| 1u64 << (mix(i) % 64) | mix(i) & 3);
        // One key has nearly all tuples.
        check_all(n, |i| if i % 100 == 0 { mix(i) } else { 0x8000_0000 });
    }
}
