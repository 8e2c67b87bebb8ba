//! Tuple lines: reading and writing one line of 64 bytes.
//!
//! ```text
//! (u32,u32)  k k k k k k k k  v v v v v v v v      8 keys, 8 values
//! (u64,u64)  k  k  k  k  v  v  v  v                4 keys, 4 values
//! (u64,u32)  k  k  k  k  k  .  v v v v v           5 keys, 4 zero bytes, 5 values
//! ```
//! Every line but the last is full, so `rank = line * n + slot`. The last line's free key slots
//! are all ones and its free values zero: a search that counts keys below the query never counts
//! the padding, and clamps nothing.

use crate::key::{Bits, Word};
use crate::layout::{LINE_BYTES, LineGeometry};

/// A line as bytes.
pub type Line = [u8; LINE_BYTES];

/// Geometry of lines of these words.
#[must_use]
pub const fn geometry<W: Word, B: Bits>() -> LineGeometry {
    LineGeometry::new(W::BYTES, B::BYTES)
}

/// Writes up to `n` tuples as one line; free slots get the padding.
#[inline]
pub fn encode<W: Word, B: Bits>(tuples: impl Iterator<Item = (W, B)>, line: &mut Line) {
    let geometry = geometry::<W, B>();
    let n = geometry.tuples_per_line();
    let (keys, values) = line.split_at_mut(geometry.values_at());
    keys.fill(0);
    let mut used = 0;
    for (slot, (key, value)) in tuples.take(n).enumerate() {
        key.write(&mut keys[slot * W::BYTES..]);
        value.write(&mut values[slot * B::BYTES..]);
        used = slot + 1;
    }
    for slot in used..n {
        W::MAX.write(&mut keys[slot * W::BYTES..]);
        B::default().write(&mut values[slot * B::BYTES..]);
    }
}

/// Key in a slot.
#[inline]
#[must_use]
pub fn key<W: Word>(line: &Line, slot: usize) -> W {
    W::read(&line[slot * W::BYTES..])
}

/// Value in a slot of a line of these words.
#[inline]
#[must_use]
pub fn value<W: Word, B: Bits>(line: &Line, slot: usize) -> B {
    B::read(&line[geometry::<W, B>().values_at() + slot * B::BYTES..])
}

/// Number of keys of the line that are below `query`: the slot of its lower bound.
#[inline]
#[must_use]
pub fn keys_below<W: Word>(line: &Line, tuples_per_line: usize, query: W) -> usize {
    (0..tuples_per_line).filter(|&slot| key::<W>(line, slot) < query).count()
}
