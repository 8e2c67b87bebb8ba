//! A walk over whole columns on all threads: parts, buffers, and the places of the emitted tuples.

use super::Options;
use super::blocks::walk_blocks;
use super::cut::Cuts;
use super::ordered::{Target, in_order};
use super::vector;
use super::walk::{Emit, GALLOP_RATIO, LANES, Part, Walk, leap, walk};
use pleach_format::Word;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// A thread's buffer for the tuples that a walk emits.
pub(crate) trait Buffer<K>: Emit<K> {
    /// Reserves room for `room` tuples.
    fn reserve(&mut self, room: usize);
    /// Returns the address for keys, if only the key of a tuple is kept.
    fn keys_alone(&mut self) -> Option<*mut K> {
        None
    }
    /// Copies `count` emitted tuples from `from` on to place `to` of the output.
    ///
    /// # Safety
    /// `count` tuples were emitted there; no other thread writes to these places.
    unsafe fn place(&self, from: usize, count: usize, to: u64);
}

/// Method of searching the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Merges both sides.
    Sweep,
    /// Skips through the longer side in doubling steps, from each key of the shorter one.
    Gallop,
}

/// Method of an operator, and the reason for it. `Display` writes it in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Method.
    pub method: Method,
    /// Tuples of the left side.
    pub left: u64,
    /// Tuples of the right side.
    pub right: u64,
}

impl Plan {
    /// Makes the plan for sides of these lengths.
    #[must_use]
    pub fn new(left: u64, right: u64) -> Self {
        let (short, long) = (left.min(right), left.max(right));
        let gallop = short.saturating_mul(GALLOP_RATIO as u64) < long;
        Self { method: if gallop { Method::Gallop } else { Method::Sweep }, left, right }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { left, right, .. } = self;
        match self.method {
            Method::Sweep => write!(f, "sweep: {left} and {right} tuples are merged"),
            Method::Gallop => {
                let (short, long) = (left.min(right), left.max(right));
                write!(f, "gallop: {long} tuples are more than {GALLOP_RATIO} times {short}")
            }
        }
    }
}

/// Walks through both columns and returns the number of emitted tuples. Those that do not fit into the output
/// are counted, but not written. O(|A| + |B|).
pub(super) fn sweep<W: Walk, K: Word, B: Buffer<K>>(
    a: &[K],
    b: &[K],
    options: &Options,
    buffer: impl Fn() -> B + Sync,
) -> u64 {
    sweep_checked::<W, K, B>(a, b, options, buffer, &|_| true).unwrap_or(0)
}

/// Runs [`sweep`] while `check` is true for each part. Returns `None` otherwise; the output is then invalid.
pub(super) fn sweep_checked<W: Walk, K: Word, B: Buffer<K>>(
    a: &[K],
    b: &[K],
    options: &Options,
    buffer: impl Fn() -> B + Sync,
    check: &(dyn Fn(&Part) -> bool + Sync),
) -> Option<u64> {
    let is_short = Plan::new(a.len() as u64, b.len() as u64).method == Method::Gallop;
    // The result is then short too, and the longer side need not be read in full.
    let is_sparse = is_short && !W::RIGHT_ALONE && (!W::LEFT_ALONE || a.len() < b.len());
    let cuts = Cuts::new(a, b, W::PARTING, options.part_tuples.max(1), is_sparse);
    let failed = AtomicBool::new(false);
    let count = in_order(
        cuts.parts().div_ceil(LANES),
        || (buffer(), Vec::with_capacity(LANES), 0),
        |task, (buffer, pieces, passed)| {
            pieces.clear();
            if failed.load(Ordering::Relaxed) {
                return 0;
            }
            let parts = cuts.parts_from(task * LANES, LANES);
            if !parts.iter().all(check) {
                failed.store(true, Ordering::Relaxed);
                return 0;
            }
            let counts = walk_parts::<W, K>(a, b, &parts, buffer, passed);
            let mut from = 0;
            for (part, count) in parts.iter().zip(counts) {
                pieces.push((from, count));
                from += part.room::<W>();
            }
            counts.iter().sum()
        },
        |mut to, (buffer, pieces, _)| {
            for &(from, count) in &*pieces {
                // SAFETY: the walk emitted these; `in_order` gives each task places of its own.
                unsafe { buffer.place(from, count, to) };
                to += count as u64;
            }
        },
    );
    (!failed.into_inner()).then_some(count)
}

/// Walks on this thread alone. Returns the pieces of the result: where each begins in the buffer, and its
/// length.
pub(crate) fn sweep_here<W: Walk, K: Word, B: Buffer<K>>(
    a: &[K],
    b: &[K],
    buffer: &mut B,
) -> Vec<(usize, usize)> {
    let tuples = (a.len() + b.len()).div_ceil(LANES).max(1);
    let parts = Cuts::new(a, b, W::PARTING, tuples, false).parts_from(0, LANES);
    let counts = walk_parts::<W, K>(a, b, &parts, buffer, &mut 0);
    let mut from = 0;
    let piece = |(part, count): (&Part, usize)| {
        let start = from;
        from += part.room::<W>();
        (start, count)
    };
    parts.iter().zip(counts).map(piece).collect()
}

/// Number of tasks that do not try blocks after one in which keys repeat.
const PASSED: u32 = 15;

/// Walks through parts by the fastest method for them. `passed` is the number of tasks that will not try
/// blocks.
fn walk_parts<W: Walk, K: Word>(
    a: &[K],
    b: &[K],
    parts: &[Part],
    buffer: &mut impl Buffer<K>,
    passed: &mut u32,
) -> [usize; LANES] {
    buffer.reserve(parts.iter().map(Part::room::<W>).sum());
    let is_uneven = |part: &Part| {
        let (left, right) = part.tuples();
        left.min(right).saturating_mul(GALLOP_RATIO) < left.max(right)
    };
    if parts.iter().any(is_uneven) {
        let (mut counts, mut from) = ([0; LANES], 0);
        for (part, count) in parts.iter().zip(&mut counts) {
            // SAFETY: the room of all parts was reserved above.
            *count = unsafe { leap::<W, K>(a, b, *part, from, buffer) };
            from += part.room::<W>();
        }
        return counts;
    }
    let by_blocks = W::BLOCKS.filter(|_| vector::is_available::<K>()).zip(buffer.keys_alone());
    if *passed > 0 {
        *passed -= 1;
    } else if let Some((what, keys)) = by_blocks {
        // SAFETY: blocks are available for these keys, and the room of all parts was reserved above.
        let counts = unsafe { walk_blocks::<W, K>((a, b), parts, what, keys, buffer) };
        if let Some(counts) = counts {
            return counts;
        }
        *passed = PASSED;
    }
    let is_distinct = |part: &Part| is_distinct(a, part.left) && is_distinct(b, part.right);
    let is_unique = W::HAS_UNIQUE && by_blocks.is_none() && parts.iter().all(is_distinct);
    // SAFETY: the room of all parts was reserved above; the other walk needs the same, as it emits the same
    // sides.
    unsafe {
        if is_unique { walk::<W::Unique, K>(a, b, parts, buffer) } else { walk::<W, K>(a, b, parts, buffer) }
    }
}

/// Returns true if no key is duplicated among these, or equal to the one before them. O(keys); brings them
/// into the cache.
pub(crate) fn is_distinct<K: Word>(keys: &[K], (from, to): (usize, usize)) -> bool {
    let keys = &keys[from.saturating_sub(1)..to];
    #[cfg(target_arch = "x86_64")]
    if pleach_format::cpu::avx2() {
        // SAFETY: the CPU has AVX2.
        return unsafe { equal_neighbours_avx2(keys) } == 0;
    }
    equal_neighbours(keys) == 0
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn equal_neighbours_avx2<K: Word>(keys: &[K]) -> u64 {
    equal_neighbours(keys)
}

/// Counts by a sum, because compilers vectorise sums.
#[inline(always)]
fn equal_neighbours<K: Word>(keys: &[K]) -> u64 {
    let Some((_, next)) = keys.split_first() else { return 0 };
    keys.iter().zip(next).map(|(key, next)| u64::from(key == next)).sum()
}

/// Elements in a buffer, and the column that they are copied to.
pub(super) struct Held<'t, T> {
    elements: Vec<T>,
    target: &'t Target<T>,
}

impl<'t, T: Copy> Held<'t, T> {
    pub(super) fn new(target: &'t Target<T>) -> Self {
        Self { elements: Vec::new(), target }
    }

    pub(super) fn reserve(&mut self, room: usize) {
        self.elements.reserve(room);
    }

    /// Returns the address of the first place.
    pub(super) fn start(&mut self) -> *mut T {
        self.elements.as_mut_ptr()
    }

    /// # Safety
    /// `at` is below the room that was reserved.
    #[inline(always)]
    pub(super) unsafe fn write_at(&mut self, at: usize, element: T) {
        // SAFETY: the caller guarantees that `at` is below the reserved room, so it is inside the vector's
        // allocation.
        unsafe { self.elements.as_mut_ptr().add(at).write(element) };
    }

    /// # Safety
    /// The elements were put; no other thread writes to these places.
    pub(super) unsafe fn place(&self, from: usize, count: usize, to: u64) {
        // SAFETY: the caller guarantees that they were put there, and that no other thread writes to these
        // places.
        unsafe {
            let elements = std::slice::from_raw_parts(self.elements.as_ptr().add(from), count);
            self.target.write(to, elements);
        }
    }
}

/// A buffer that only counts.
pub(super) struct Nothing;

impl<K> Emit<K> for Nothing {
    #[inline(always)]
    unsafe fn write_at(&mut self, _: usize, _: usize, _: usize, _: K, _: bool, _: bool) {}
}

impl<K> Buffer<K> for Nothing {
    fn reserve(&mut self, _: usize) {}
    unsafe fn place(&self, _: usize, _: usize, _: u64) {}
}

/// Pairs of ranks.
pub(super) struct Pairs<'t> {
    pub(super) left: Held<'t, u64>,
    pub(super) right: Held<'t, u64>,
}

impl<K> Emit<K> for Pairs<'_> {
    #[inline(always)]
    unsafe fn write_at(&mut self, at: usize, i: usize, j: usize, _: K, left: bool, right: bool) {
        // SAFETY: the caller guarantees room at `at`.
        unsafe {
            self.left.write_at(at, if left { i as u64 } else { super::ABSENT });
            self.right.write_at(at, if right { j as u64 } else { super::ABSENT });
        }
    }
}

impl<K> Buffer<K> for Pairs<'_> {
    fn reserve(&mut self, room: usize) {
        self.left.reserve(room);
        self.right.reserve(room);
    }
    unsafe fn place(&self, from: usize, count: usize, to: u64) {
        // SAFETY: the caller guarantees that the pairs were emitted, and that no other thread writes to these
        // places.
        unsafe {
            self.left.place(from, count, to);
            self.right.place(from, count, to);
        }
    }
}

/// Runs with vectors as outputs of at most `capacity` elements. Returns the number of elements, which the
/// vectors hold if it is at most `capacity`.
pub(super) fn into_two<A: Copy, B: Copy>(
    first: &mut Vec<A>,
    second: &mut Vec<B>,
    capacity: usize,
    run: impl FnOnce(&Target<A>, &Target<B>) -> u64,
) -> u64 {
    let (one, two) = (Target::new(first, capacity), Target::new(second, capacity));
    let count = run(&one, &two);
    if let Some(length) = usize::try_from(count).ok().filter(|&length| length <= capacity) {
        // SAFETY: `run` wrote all places below `count` of both, which are inside the capacity.
        unsafe {
            first.set_len(length);
            second.set_len(length);
        }
    }
    count
}
