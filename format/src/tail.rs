//! Tails: the kept bits of byte keys that do not fit in their words, if they are few.
//!
//! All tails of a file have the same number of bytes. So the tail of a rank is found without an offset, and
//! is mostly in one line. A look-up that has found its word reassembles the stored key, eight bytes at a
//! time, and compares it with the query. Bits that were not kept are those that all keys share, so a query
//! that differs there is not a special case.

use crate::bits::{self, Writer};
use crate::chunk::{Chunk, load};
use core::cmp::Ordering;

/// Maximum bytes of a tail. If tails would be longer, keys are stored whole, in the key column.
pub const TAIL_BYTES_MAX: usize = 1024;
/// Bytes after a tail that may be read with it.
pub const TAIL_GUARD_BYTES: usize = 16;

/// Eight bytes of all keys after the bytes of the word, and the place of their kept bits in a tail. The first
/// byte is the least significant one here, so that a comparison does not need to reverse the bytes of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Mask of its kept bits.
    pub chunk: Chunk,
    /// Offset of its first byte in the key.
    pub at: usize,
    /// Byte of a tail that contains the first kept bit.
    pub byte: usize,
    /// Number of bits below it in this byte, which belong to other parts.
    pub shift: u32,
    /// True if the kept bits end after eight bytes from there.
    pub is_wide: bool,
}

impl Part {
    /// Reads the eight bytes of a key from its tail.
    #[inline(always)]
    fn read(&self, tail: &[u8], expand: impl Fn(&Chunk, u64) -> u64) -> u64 {
        let from = tail.get(self.byte..).unwrap_or_default();
        // Bits above the kept ones are ignored.
        let Some(bits) = bits::read(from, self.shift, self.is_wide) else { return self.chunk.reference };
        expand(&self.chunk, bits) | self.chunk.reference
    }
}

/// Layout of the tails of a file: how a key follows from its word and its tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    parts: Vec<Part>,
    /// First bit of the length.
    length_bit: usize,
    length_mask: u16,
    key_bytes_max: usize,
    bytes: usize,
    has_wide: bool,
}

impl Tail {
    /// Creates the layout. `chunks` are those after the `covered` bytes of the word; `bytes` is the length of
    /// a tail in the file.
    pub(crate) fn new(
        chunks: impl Iterator<Item = Chunk>,
        covered: usize,
        length_mask: u16,
        key_bytes_max: usize,
        bytes: usize,
    ) -> Self {
        let mut bit = 0;
        let parts = chunks.enumerate().map(|(number, chunk)| {
            let (chunk, shift) = (chunk.turned(), bit as u32 % 8);
            let is_wide = shift + chunk.kept > 64;
            let part = Part { chunk, at: covered + number * 8, byte: bit / 8, shift, is_wide };
            bit += chunk.kept as usize;
            part
        });
        let parts: Vec<Part> = parts.collect();
        let has_wide = parts.iter().any(|part| part.is_wide);
        Self { parts, length_bit: bit, length_mask, key_bytes_max, bytes, has_wide }
    }

    /// Returns the bytes of a tail in the file.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Reports whether any part [is wide](Part::is_wide).
    #[must_use]
    pub fn has_wide(&self) -> bool {
        self.has_wide
    }
    /// Returns the number of bits in a tail.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.length_bit + self.length_mask.count_ones() as usize
    }
    pub(crate) fn length_mask(&self) -> u16 {
        self.length_mask
    }
    /// Returns the parts, eight bytes each, from the first byte after the word. The last one may reach past
    /// the end of the key.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
    /// Returns the chunks, with the first byte as the most significant.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Chunk> {
        self.parts.iter().map(|part| part.chunk.turned())
    }

    /// Returns the bytes of a tail of `bits` bits. They are rounded up to a power of two of at most 64 where
    /// that adds at most a quarter, so that no tail is in two lines.
    #[must_use]
    pub fn bytes_for(bits: usize) -> usize {
        let bytes = bits.div_ceil(8);
        let power = bytes.next_power_of_two();
        if power <= 64 && power * 4 <= bytes * 5 { power } else { bytes }
    }

    /// Appends the tail of a key. O(bytes).
    pub fn push(&self, key: &[u8], compress: impl Fn(&Chunk, u64) -> u64, out: &mut Vec<u8>) {
        let end = out.len() + self.bytes;
        let mut writer = Writer::new(out);
        for part in &self.parts {
            writer.push(compress(&part.chunk, load(key, part.at).swap_bytes()), part.chunk.kept);
        }
        writer.push(key.len() as u64 & u64::from(self.length_mask), self.length_mask.count_ones());
        writer.finish(end);
    }

    /// Compares a key with a query that has the same word. `tail` begins with the key's tail, followed by
    /// [`TAIL_GUARD_BYTES`] of any content; `expand` is [`Chunk::expand`] or an equivalent. O(bytes).
    #[inline(always)]
    #[must_use]
    pub fn compare(&self, tail: &[u8], query: &[u8], expand: impl Fn(&Chunk, u64) -> u64) -> Ordering {
        for part in &self.parts {
            let (stored, asked) = (part.read(tail, &expand), load(query, part.at).swap_bytes());
            if stored != asked {
                return stored.swap_bytes().cmp(&asked.swap_bytes());
            }
        }
        self.length(tail).cmp(&query.len())
    }

    /// Returns the length of the key of a tail.
    #[inline(always)]
    #[must_use]
    pub fn length(&self, tail: &[u8]) -> usize {
        let mask = self.length_mask;
        if mask == 0 {
            return self.key_bytes_max;
        }
        let from = tail.get(self.length_bit / 8..).and_then(<[u8]>::first_chunk);
        let four = from.map_or(0, |&bytes| u32::from_le_bytes(bytes));
        let bits = (four >> (self.length_bit % 8)) as u16 & mask;
        usize::from(self.key_bytes_max as u16 & !mask | bits)
    }

    /// Appends the bytes of a key after its first `covered` ones, which are at the end of `key`. Then cuts
    /// the key, which begins at `start`, to its length. `tail` is as in [`Tail::compare`].
    pub(crate) fn unpack(&self, tail: &[u8], start: usize, key: &mut Vec<u8>) {
        for part in &self.parts {
            key.extend_from_slice(&part.read(tail, Chunk::expand).to_le_bytes());
        }
        key.resize(start + self.length(tail).min(self.key_bytes_max), 0);
    }
}
