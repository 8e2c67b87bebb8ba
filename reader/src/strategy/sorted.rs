//! Sort of a batch before it is swept (FAST section 8 (d)).
//!
//! A stable radix sort from the most significant digit on; words move with the numbers of their queries. The
//! first digit is cut from the span of the file's keys, so bits in which these do not differ cost nothing. A
//! bucket's next digit is cut from the bucket's own span, so there are about log(queries) / 10 passes for
//! keys of any width, and a bucket of equal words is done at once.
//!
//! After the first pass buckets fit into a cache. Small buckets are sorted by insertion.

use super::order::{Order, Pair, Span, begin, room};
use pleach_format::key::{Key, Word};

/// Maximum bits per digit.
const DIGIT_BITS: u32 = 10;
/// Maximum number of pairs for insertion sort.
const INSERTION: usize = 24;

/// Returns the bits of a digit that leaves about eight pairs per bucket.
fn digit_bits(pairs: usize) -> u32 {
    pairs.max(1).ilog2().saturating_sub(3).clamp(1, DIGIT_BITS)
}

/// Sorts queries into `order.keys`, and into `order.pairs` with their numbers.
pub(super) fn sort<K: Key>(keys: &[K], span: Span<K::Word>, order: &mut Order<K>) {
    let Order { keys: moved, pairs, spare, counts, .. } = order;
    let (pairs, spare) = (room(pairs, keys.len()), room(spare, keys.len()));
    let bits = digit_bits(keys.len());
    let cut = span.cut(bits);
    let counts = room(counts, 1 << bits);
    counts.fill(0);
    for &key in keys {
        counts[cut.part(key.encode())] += 1;
    }
    begin(counts);
    for (&key, number) in keys.iter().zip(0..) {
        let word = key.encode();
        let next = &mut counts[cut.part(word)];
        pairs[*next as usize] = (word, number);
        *next += 1;
    }
    let mut start = 0;
    for &end in &*counts {
        let bucket = start..end as usize;
        sort_bucket(&mut pairs[bucket.clone()], &mut spare[bucket]);
        start = end as usize;
    }
    for (key, pair) in room(moved, keys.len()).iter_mut().zip(&*pairs) {
        *key = K::decode(pair.0);
    }
}

fn sort_bucket<W: Word>(pairs: &mut [Pair<W>], spare: &mut [Pair<W>]) {
    if pairs.len() <= INSERTION {
        for end in 1..pairs.len() {
            let pair = pairs[end];
            let mut at = end;
            while at > 0 && pair.0 < pairs[at - 1].0 {
                pairs[at] = pairs[at - 1];
                at -= 1;
            }
            pairs[at] = pair;
        }
        return;
    }
    let ends =
        pairs.iter().fold((W::MAX, W::default()), |ends, pair| (ends.0.min(pair.0), ends.1.max(pair.0)));
    if ends.0 == ends.1 {
        return;
    }
    let bits = digit_bits(pairs.len());
    let shift = (ends.1 - ends.0).bit_length().saturating_sub(bits);
    let digit = |word: W| word.cell(ends.0, shift) as usize & ((1 << bits) - 1);
    let mut counts = [0; 1 << DIGIT_BITS];
    let counts = &mut counts[..1 << bits];
    for pair in &*pairs {
        counts[digit(pair.0)] += 1;
    }
    begin(counts);
    for &pair in &*pairs {
        let next = &mut counts[digit(pair.0)];
        spare[*next as usize] = pair;
        *next += 1;
    }
    pairs.copy_from_slice(spare);
    if shift > 0 {
        let mut start = 0;
        for &end in &*counts {
            let bucket = start..end as usize;
            sort_bucket(&mut pairs[bucket.clone()], &mut spare[bucket]);
            start = end as usize;
        }
    }
}

/// Moves each answer to the position of its query.
pub(super) fn put_back<W, A: Copy>(pairs: &[Pair<W>], from: (&[A], &[u64]), to: (&mut [A], &mut [u64])) {
    for (pair, &answer) in pairs.iter().zip(from.0) {
        to.0[pair.1 as usize] = answer;
    }
    if !to.1.is_empty() {
        to.1.fill(0);
        for (at, pair) in pairs.iter().enumerate() {
            let bit = from.1[at / 64] >> (at % 64) & 1;
            to.1[pair.1 as usize / 64] |= bit << (pair.1 % 64);
        }
    }
}
