//! A walk over whole columns on all threads: parts, buffers, and the places of the emitted tuples.

use super::blocks::walk_blocks;
use super::buffer::Buffer;
use super::cut::Cuts;
use super::distinct::is_distinct;
use super::options::Options;
use super::ordered::in_order;
use super::part::Part;
use super::plan::{Method, Plan};
use super::vector;
use super::walk::{GALLOP_RATIO, LANES, Walk, leap, walk};
use pleach_format::Word;
use std::sync::atomic::{AtomicBool, Ordering};

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
                from += W::room(part);
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
        from += W::room(part);
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
    buffer.reserve(parts.iter().map(W::room).sum());
    let is_uneven = |part: &Part| {
        let (left, right) = part.tuples();
        left.min(right).saturating_mul(GALLOP_RATIO) < left.max(right)
    };
    if parts.iter().any(is_uneven) {
        let (mut counts, mut from) = ([0; LANES], 0);
        for (part, count) in parts.iter().zip(&mut counts) {
            // SAFETY: the room of all parts was reserved above.
            *count = unsafe { leap::<W, K>(a, b, *part, from, buffer) };
            from += W::room(part);
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
