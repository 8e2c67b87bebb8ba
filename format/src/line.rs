//! Tuple lines: reading and writing one line of 64 bytes.
//!
//! ```text
//! (u32,u32)  k k k k k k k k  v v v v v v v v      8 keys, 8 values
//! (u64,u64)  k  k  k  k  v  v  v  v                4 keys, 4 values
//! (u64,u32)  k  k  k  k  k  .  v v v v v           5 keys, 4 zero bytes, 5 values
//! ```
//! Every line except the last is full, so `rank = line * n + slot`. In the last line, free key slots are all
//! ones and free values are zero. So a search that counts the keys below a query never counts padding, and
//! needs no clamp.

pub use crate::cache_line::Line;
use crate::key::{Bits, Word};
use crate::layout::LineGeometry;
use crate::short::Short;

/// Returns the layout of lines of these words and values.
#[must_use]
pub const fn geometry<W: Word, B: Bits>() -> LineGeometry {
    LineGeometry::new(W::BYTES, B::BYTES)
}

/// Writes up to `n` tuples as one line, and padding to the free slots.
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

/// Returns the key in a slot.
#[inline]
#[must_use]
pub fn key<W: Word>(line: &Line, slot: usize) -> W {
    W::read(&line[slot * W::BYTES..])
}

/// Returns the word in a slot of a line with words of `word_bytes` bytes (4, 8 or 16), widened.
#[inline]
#[must_use]
pub fn word(line: &Line, word_bytes: usize, slot: usize) -> u128 {
    match word_bytes {
        4 => key::<u32>(line, slot).into(),
        8 => key::<u64>(line, slot).into(),
        _ => key(line, slot),
    }
}

/// Returns the key in a slot of a line whose words are those of the key type, or short.
#[inline]
#[must_use]
pub fn whole_key<W: Word>(line: &Line, short: Option<&Short>, slot: usize) -> W {
    match short {
        None => key(line, slot),
        Some(short) => short.key(word(line, short.word_bytes(), slot) as u64),
    }
}

/// Returns the value in a slot of a line of these words and values.
#[inline]
#[must_use]
pub fn value<W: Word, B: Bits>(line: &Line, slot: usize) -> B {
    B::read(&line[geometry::<W, B>().values_at() + slot * B::BYTES..])
}

/// Returns the number of keys in the line that are below `query`: the slot of its lower bound.
#[inline]
#[must_use]
pub fn keys_below<W: Word>(line: &Line, tuples_per_line: usize, query: W) -> usize {
    (0..tuples_per_line).filter(|&slot| key::<W>(line, slot) < query).count()
}
