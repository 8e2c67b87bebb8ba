//! Bytes that a build makes once and needs again: in memory while they are few, then in a spill file.

use crate::error::BuildError;
use crate::external::{Spill, Spills};
use crate::section::TakeBytes;
use std::borrow::Cow;

/// Bytes that are read back at once.
const PIECE_BYTES: usize = 1 << 20;
/// Bytes that are read at once where few are wanted.
const BLOCK_BYTES: u64 = 1 << 16;
/// Blocks that are kept for the next reads.
const BLOCKS: usize = 64;

/// A list of bytes that only grows.
pub(crate) struct Kept<'a> {
    spills: Spills<'a>,
    limit_bytes: usize,
    /// What is not in the spill file: the end.
    memory: Vec<u8>,
    spill: Option<Spill>,
    spilled: u64,
}

/// Blocks of a [`Kept`] that were read.
#[derive(Default)]
pub(crate) struct Blocks {
    list: Vec<(u64, Vec<u8>)>,
    oldest: usize,
}

impl<'a> Kept<'a> {
    /// Creates an empty list, of which about `limit_bytes` stay in memory.
    pub(crate) fn new(spills: Spills<'a>, limit_bytes: usize) -> Self {
        Self { spills, limit_bytes, memory: Vec::new(), spill: None, spilled: 0 }
    }

    pub(crate) fn len(&self) -> u64 {
        self.spilled + self.memory.len() as u64
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), BuildError> {
        self.memory.extend_from_slice(bytes);
        if self.memory.len() > self.limit_bytes {
            if self.spill.is_none() {
                self.spill = Some(self.spills.create()?);
            }
            if let Some(spill) = &self.spill {
                spill.output().write(&self.memory, self.spilled)?;
            }
            self.spilled += self.memory.len() as u64;
            self.memory.clear();
        }
        Ok(())
    }

    /// Passes on all bytes, in order.
    pub(crate) fn each(&self, take: &mut TakeBytes<'_>) -> Result<(), BuildError> {
        if let Some(spill) = &self.spill {
            let mut piece = vec![0; PIECE_BYTES];
            for at in (0..self.spilled).step_by(PIECE_BYTES) {
                let piece = &mut piece[..PIECE_BYTES.min((self.spilled - at) as usize)];
                spill.output().read(piece, at)?;
                take(piece)?;
            }
        }
        take(&self.memory)
    }

    /// Returns `length` bytes from `at` on, which there must be. `blocks` are those of this list.
    pub(crate) fn get<'s>(
        &'s self,
        blocks: &mut Blocks,
        at: u64,
        length: usize,
    ) -> Result<Cow<'s, [u8]>, BuildError> {
        let Some(spill) = &self.spill else {
            return Ok(Cow::Borrowed(&self.memory[at as usize..][..length]));
        };
        let mut bytes = Vec::with_capacity(length);
        let mut at = at;
        while bytes.len() < length {
            let left = length - bytes.len();
            if at >= self.spilled {
                bytes.extend_from_slice(&self.memory[(at - self.spilled) as usize..][..left]);
                break;
            }
            let number = at / BLOCK_BYTES;
            let block = blocks.read(spill, number, self.spilled)?;
            let from = &block[(at % BLOCK_BYTES) as usize..];
            let from = &from[..from.len().min(left)];
            bytes.extend_from_slice(from);
            at += from.len() as u64;
        }
        Ok(Cow::Owned(bytes))
    }
}

impl Blocks {
    fn read(&mut self, spill: &Spill, number: u64, end: u64) -> Result<&[u8], BuildError> {
        let found = self.list.iter().position(|block| block.0 == number);
        let place = match found {
            Some(place) => place,
            None => {
                let start = number * BLOCK_BYTES;
                let mut bytes = vec![0; BLOCK_BYTES.min(end - start) as usize];
                spill.output().read(&mut bytes, start)?;
                if self.list.len() < BLOCKS {
                    self.list.push((number, bytes));
                    self.list.len() - 1
                } else {
                    self.oldest = (self.oldest + 1) % BLOCKS;
                    self.list[self.oldest] = (number, bytes);
                    self.oldest
                }
            }
        };
        Ok(&self.list[place].1)
    }
}
