//! Buffers for the parts of a table (FAST section 8 (c), after Zhou and Ross 2003).
//!
//! The paper's buffers belong to the children of the first page: a query goes down that page and waits until its
//! buffer is searched. Here the first page is a division: the span of the keys is cut into parts of one width, as
//! many as make a part of the table fit into the second cache. A counting pass finds how many queries
//! each part has, a second one moves them, so buffers need no limits and lie one after the other: the search goes
//! through all of them in one call and its pipeline never runs empty. Answers are fetched back from
//! where each query went. Keys that crowd together share a buffer, which is right, and no faster than none.

use super::{Order, Span, begin, room};
use pleach_format::key::Key;

/// Bytes of a table's part.
const PART_BYTES: u64 = 1 << 18;
/// Most buffers: their open ends have to stay in the caches, and their pages in the TLB.
const BUFFERS_MAX: u64 = 1 << 10;
/// Queries a buffer, at least and on average.
const QUERIES_MIN: u64 = 64;

/// Number of buffers as a power of two.
pub(super) fn buffer_bits(queries: usize, table_bytes: u64) -> u32 {
    let parts = (table_bytes / PART_BYTES).min(queries as u64 / QUERIES_MIN);
    parts.clamp(1, BUFFERS_MAX).ilog2()
}

/// Moves queries into buffers: `order.keys`, and for each where it went in `order.slots`.
pub(super) fn partition<K: Key>(keys: &[K], span: Span<K::Word>, order: &mut Order<K>) {
    let bits = buffer_bits(keys.len(), span.bytes);
    let cut = span.cut(bits);
    let buffer = |key: K| cut.part(key.encode());
    let Order { keys: moved, slots, counts, .. } = order;
    let (moved, slots) = (room(moved, keys.len()), room(slots, keys.len()));
    let counts = room(counts, 1 << bits);
    counts.fill(0);
    for &key in keys {
        counts[buffer(key)] += 1;
    }
    begin(counts);
    for (&key, slot) in keys.iter().zip(slots) {
        let next = &mut counts[buffer(key)];
        moved[*next as usize] = key;
        *slot = *next;
        *next += 1;
    }
}

/// Fetches each query's answer from where it went.
pub(super) fn put_back<A: Copy>(slots: &[u32], from: (&[A], &[u64]), to: (&mut [A], &mut [u64])) {
    for (&slot, answer) in slots.iter().zip(to.0) {
        *answer = from.0[slot as usize];
    }
    for (slots, word) in slots.chunks(64).zip(to.1) {
        let mut bits = 0;
        for (at, &slot) in slots.iter().enumerate() {
            bits |= (from.1[slot as usize / 64] >> (slot % 64) & 1) << at;
        }
        *word = bits;
    }
}
