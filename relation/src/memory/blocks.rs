//! Walks through parts with vectors, and completes the rest: less than a block of one side.

use super::buffer::Buffer;
use super::cut::gallop;
use super::distinct::is_distinct;
use super::part::Part;
use super::vector::{Blocks, Ended, SLACK, TOGETHER, blocks};
use super::walk::{LANES, Walk, leap};
use pleach_format::Word;

/// Walks through parts in blocks, writing to `keys`, each part after the room of those before it. Returns
/// `None` if a duplicate key on a side makes the result invalid: then another walk has to do it.
///
/// # Safety
/// Blocks are available for these keys; `keys` is where `buffer` puts them, with the room of all parts.
pub(super) unsafe fn walk_blocks<W: Walk, K: Word>(
    (a, b): (&[K], &[K]),
    parts: &[Part],
    what: Blocks,
    keys: *mut K,
    buffer: &mut impl Buffer<K>,
) -> Option<[usize; LANES]> {
    // A union of sets omits duplicates anyway.
    let may_repeat = what == Blocks::Either && W::LAST_OF_BOTH;
    let (mut counts, mut from) = ([0; LANES], 0);
    for (parts, counts) in parts.chunks(TOGETHER).zip(counts.chunks_mut(TOGETHER)) {
        // An odd last part is paired with an empty one.
        let mut together = [Part::default(); TOGETHER];
        let (mut starts, mut lasts) = ([from; TOGETHER], [K::default(); TOGETHER]);
        for (at, &part) in parts.iter().enumerate() {
            assert!(part.left.1 <= a.len() && part.right.1 <= b.len(), "a part is inside the inputs");
            (together[at], starts[at], lasts[at]) = (part, from, before(a, b, part));
            from += W::room(&part);
            let is_again =
                |keys: &[K], (from, to): (usize, usize)| !is_distinct(keys, (from, to.min(from + 1)));
            if !may_repeat && (is_again(a, part.left) || is_again(b, part.right)) {
                return None;
            }
        }
        // SAFETY: the parts are inside the columns, and each of `starts` is where the room of its part begins.
        let ended = unsafe {
            let outs = starts.map(|start| keys.add(start));
            blocks((a, b), together, what, (outs, lasts))
        };
        for (at, count) in counts.iter_mut().enumerate().take(parts.len()) {
            let ended = &ended[at];
            if ended.repeats && !may_repeat {
                return None;
            }
            // SAFETY: the part's room begins there, and `ended.count` of its places are used.
            *count = ended.count
                + unsafe {
                    match what {
                        Blocks::Either if !may_repeat && !is_rest_distinct(a, b, ended.rest) => return None,
                        Blocks::Either => finish_union((a, b), ended, keys.add(starts[at] + ended.count)),
                        _ => finish::<W, K>((a, b), ended, keys, starts[at] + ended.count, buffer),
                    }
                };
        }
    }
    Some(counts)
}

/// Returns the key before a part; for a part at the start, a key other than the first.
fn before<K: Word>(a: &[K], b: &[K], part: Part) -> K {
    let before = |keys: &[K], at: usize| at.checked_sub(1).map(|at| keys[at]);
    let first = || [a.first(), b.first()].into_iter().flatten().min().map(|&key| key ^ K::MAX);
    before(a, part.left.0).max(before(b, part.right.0)).or_else(first).unwrap_or_default()
}

fn is_rest_distinct<K: Word>(a: &[K], b: &[K], rest: Part) -> bool {
    is_distinct(a, rest.left) && is_distinct(b, rest.right)
}

/// Completes an intersection or a difference.
///
/// # Safety
/// There is room from place `at` on for each remaining left key.
unsafe fn finish<W: Walk, K: Word>(
    (a, b): (&[K], &[K]),
    ended: &Ended<K>,
    keys: *mut K,
    mut at: usize,
    buffer: &mut impl Buffer<K>,
) -> usize {
    let (start, mut rest, mut matched) = (at, ended.rest, ended.matched);
    // The left block that was begun.
    while matched != 0 {
        let (i, j) = (rest.left.0, rest.right.0);
        let j = gallop(&b[..rest.right.1], j, |key| *key < a[i]);
        let is_alone = matched & 1 == 0 && b[..rest.right.1].get(j) != Some(&a[i]);
        // SAFETY: one place for each left key of the part.
        unsafe { keys.add(at).write(a[i]) };
        at += usize::from(is_alone);
        rest = Part { left: (i + 1, rest.left.1), right: (j, rest.right.1) };
        matched >>= 1;
    }
    // SAFETY: one place for each left key of the part: the remaining ones follow those that were written.
    at - start + unsafe { leap::<W, K>(a, b, rest, at, buffer) }
}

/// Completes a union: the carried keys are merged with the shorter side, which has a block at most, and both
/// with the longer one.
///
/// # Safety
/// There is room at `out` for the carried keys, and for each remaining key.
unsafe fn finish_union<K: Word>((a, b): (&[K], &[K]), ended: &Ended<K>, out: *mut K) -> usize {
    let rest = ended.rest;
    let (left, right) = (&a[rest.left.0..rest.left.1], &b[rest.right.0..rest.right.1]);
    let (short, long) = if left.len() < right.len() { (left, right) } else { (right, left) };
    let mut few = Vec::with_capacity(SLACK + short.len());
    few.extend_from_slice(&ended.carried[..ended.carries]);
    few.extend_from_slice(short);
    // Two runs: a merge.
    few.sort();
    let (mut i, mut j, mut at, mut last) = (0, 0, 0, ended.last);
    while i < few.len() && j < long.len() {
        let is_few = few[i] <= long[j];
        let key = if is_few { few[i] } else { long[j] };
        // SAFETY: each remaining key is written once at most, and the caller guarantees room for all.
        unsafe { out.add(at).write(key) };
        at += usize::from(key != last);
        last = key;
        i += usize::from(is_few);
        j += usize::from(!is_few);
    }
    for &key in few[i..].iter().chain(&long[j..]) {
        // SAFETY: each remaining key is written once at most, and the caller guarantees room for all.
        unsafe { out.add(at).write(key) };
        at += usize::from(key != last);
        last = key;
    }
    at
}
