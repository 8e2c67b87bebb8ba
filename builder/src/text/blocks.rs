//! Short pieces of a list that may have spilled: the blocks that were read last are kept.

use crate::error::BuildError;
use crate::overflow::Overflow;
use std::borrow::Cow;

/// Bytes of a block.
const BLOCK_BYTES: u64 = 1 << 16;
/// Blocks that are kept.
const BLOCKS: usize = 64;

/// Blocks of a list of bytes that no longer grows.
#[derive(Default)]
pub(super) struct Blocks {
    list: Vec<(u64, Vec<u8>)>,
    oldest: usize,
}

impl Blocks {
    /// Returns `length` bytes of the list from `at` on, which there must be.
    pub(super) fn get<'s>(
        &mut self,
        bytes: &'s Overflow<u8>,
        at: u64,
        length: usize,
    ) -> Result<Cow<'s, [u8]>, BuildError> {
        if bytes.is_in_memory(at) {
            return bytes.range(at, at + length as u64);
        }
        let mut found = Vec::with_capacity(length);
        let mut at = at;
        while found.len() < length {
            let block = self.block(bytes, at / BLOCK_BYTES)?;
            let from = &block[(at % BLOCK_BYTES) as usize..];
            let from = &from[..from.len().min(length - found.len())];
            found.extend_from_slice(from);
            at += from.len() as u64;
        }
        Ok(Cow::Owned(found))
    }

    fn block(&mut self, bytes: &Overflow<u8>, number: u64) -> Result<&[u8], BuildError> {
        let place = match self.list.iter().position(|block| block.0 == number) {
            Some(place) => place,
            None => {
                let start = number * BLOCK_BYTES;
                let read = bytes.range(start, bytes.len().min(start + BLOCK_BYTES))?.into_owned();
                if self.list.len() < BLOCKS {
                    self.list.push((number, read));
                    self.list.len() - 1
                } else {
                    self.oldest = (self.oldest + 1) % BLOCKS;
                    self.list[self.oldest] = (number, read);
                    self.oldest
                }
            }
        };
        Ok(&self.list[place].1)
    }
}
