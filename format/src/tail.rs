//! What a word leaves out of a byte key, where it is short: the kept bits behind those of the word.
//!
//! All tails of a file have the same number of bytes, so that the tail of a rank is found without an
//! offset, and mostly lies in one line. A look-up that found its word puts the stored key together
//! again, eight bytes at a time, and compares it with the query: bits that were not kept are those that
//! all keys share, so a query that differs there needs no case of its own.

use crate::bits::{self, Writer};
use crate::mask::{Chunk, load};
use core::cmp::Ordering;

/// Most bytes of a tail. Longer ones lie in the key column, as keys.
pub const TAIL_BYTES_MAX: usize = 1024;
/// Bytes behind a tail that may be read with it.
pub const TAIL_GUARD_BYTES: usize = 16;

/// Eight bytes of all keys behind the word, and where their kept bits stand in a tail. The first byte is
/// the least significant one here, so that a comparison need not turn words around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its kept bits.
    pub chunk: Chunk,
    /// First byte in the key.
    pub at: usize,
    /// Byte of a tail with the first kept bit.
    pub byte: usize,
    /// How many bits below it there belong to others.
    pub shift: u32,
    /// Whether the kept bits end beyond eight bytes from there.
    pub is_wide: bool,
}

impl Part {
    /// The eight bytes of a key from its tail.
    #[inline(always)]
    fn read(&self, tail: &[u8], expand: impl Fn(&Chunk, u64) -> u64) -> u64 {
        let from = tail.get(self.byte..).unwrap_or_default();
        // Bits above the kept ones do not count.
        let Some(bits) = bits::read(from, self.shift, self.is_wide) else { return self.chunk.reference };
        expand(&self.chunk, bits) | self.chunk.reference
    }
}

/// How a key follows from its word and its tail.
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
    /// `chunks` are those behind the word's `covered` bytes. `bytes` is what a tail takes in the file.
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

    /// Bytes of a tail in the file.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Whether any part [is wide](Part::is_wide).
    #[must_use]
    pub fn has_wide(&self) -> bool {
        self.has_wide
    }
    /// Bits of a tail.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.length_bit + self.length_mask.count_ones() as usize
    }
    pub(crate) fn length_mask(&self) -> u16 {
        self.length_mask
    }
    /// Eight bytes each, from the first one behind the word on; the last one may reach beyond the key.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
    /// The chunks, the first byte most significant.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Chunk> {
        self.parts.iter().map(|part| part.chunk.turned())
    }

    /// Bytes that a tail of so many bits takes: whole tails to a line where that costs little, so that
    /// none lies in two.
    #[must_use]
    pub fn bytes_for(bits: usize) -> usize {
        let bytes = bits.div_ceil(8);
        let power = bytes.next_power_of_two();
        if power <= 64 && power * 4 <= bytes * 5 { power } else { bytes }
    }

    /// Adds the tail of a key. O(bytes).
    pub fn push(&self, key: &[u8], compress: impl Fn(&Chunk, u64) -> u64, out: &mut Vec<u8>) {
        let end = out.len() + self.bytes;
        let mut writer = Writer::new(out);
        for part in &self.parts {
            writer.put(compress(&part.chunk, load(key, part.at).swap_bytes()), part.chunk.kept);
        }
        writer.put(key.len() as u64 & u64::from(self.length_mask), self.length_mask.count_ones());
        writer.finish(end);
    }

    /// How a key compares with a query that has its word. `tail` begins with the key's tail, followed
    /// by [`TAIL_GUARD_BYTES`] of any content; `expand` is [`Chunk::expand`] or its equal. O(bytes).
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

    /// Length of the key of a tail.
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

    /// Adds the bytes of a key behind its first `covered` ones, which end `key`; then cuts the key, which
    /// begins at `start`, to its length. `tail` as in [`Tail::compare`].
    pub(crate) fn unpack(&self, tail: &[u8], start: usize, key: &mut Vec<u8>) {
        for part in &self.parts {
            key.extend_from_slice(&part.read(tail, Chunk::expand).to_le_bytes());
        }
        key.resize(start + self.length(tail).min(self.key_bytes_max), 0);
    }
}
