//! Buffers for the parts of a table (FAST section 8 (c), after Zhou and Ross 2003).
//!
//! The paper's buffers belong to the children of the first page: a query goes down that page and waits until
//! its buffer is searched. Here a division replaces the first page. The span of the keys is cut into parts of
//! equal width, as many as make a part of the table fit into the second cache. A first pass counts the
//! queries of each part, and a second pass moves them.
//!
//! Buffers therefore need no limits and are contiguous: one call searches all of them, and its pipeline never
//! runs empty. Answers are then read from each query's new position. Clustered keys share a buffer; the
//! answers are right, but no faster than without buffers.

use super::order::{Order, Span, begin, room};
use pleach_format::key::Key;

/// Bytes per part of the table.
const PART_BYTES: u64 = 1 << 18;
/// Maximum number of buffers: their open ends must stay in the caches, and their pages in the TLB.
const BUFFERS_MAX: u64 = 1 << 10;
/// Minimum number of queries per buffer, on average.
const QUERIES_MIN: u64 = 64;

/// Returns the logarithm to base 2 of the number of buffers.
pub(super) fn buffer_bits(queries: usize, table_bytes: u64) -> u32 {
    let parts = (table_bytes / PART_BYTES).min(queries as u64 / QUERIES_MIN);
    parts.clamp(1, BUFFERS_MAX).ilog2()
}

/// Moves queries into the buffers in `order.keys`, and stores the new position of each in `order.slots`.
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

/// Reads each query's answer from the query's new position.
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
