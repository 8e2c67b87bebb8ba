//! What the sections of B+trees have in common: nodes of tuples in order, and an output of small parts.

use crate::error::BuildError;
use crate::external::Spills;
use crate::overflow::Overflow;
use crate::pack::{KeyLane, Take, Tuple, ValueLane};
use crate::section::TakeBytes;

/// Bytes that are passed on at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Gathers bytes and passes them on by the mebibyte.
pub(crate) struct Out<'a, 't> {
    buffer: Vec<u8>,
    take: &'a mut TakeBytes<'t>,
    /// Bytes passed on so far.
    at: u64,
}

impl<'a, 't> Out<'a, 't> {
    pub(crate) fn new(take: &'a mut TakeBytes<'t>) -> Self {
        Self { buffer: Vec::with_capacity(2 * BUFFER_BYTES), take, at: 0 }
    }

    fn pass(&mut self, at_least: usize) -> Result<(), BuildError> {
        if self.buffer.len() >= at_least {
            (self.take)(&self.buffer)?;
            self.at += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Passes the bytes on, if they are many.
    pub(crate) fn flush(&mut self) -> Result<(), BuildError> {
        self.pass(BUFFER_BYTES)
    }

    /// Appends bytes.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), BuildError> {
        self.buffer.extend_from_slice(bytes);
        self.flush()
    }

    /// Appends zero bytes, which the caller overwrites.
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.buffer.len();
        self.buffer.resize(start + bytes, 0);
        &mut self.buffer[start..]
    }

    /// Appends zero bytes up to byte `end`, and passes everything on.
    pub(crate) fn zeros_to(&mut self, end: u64) -> Result<(), BuildError> {
        self.pass(0)?;
        self.buffer.resize((end - self.at) as usize, 0);
        self.pass(0)
    }

    /// Appends a node of `bytes` bytes with these keys; the bytes after them are ones.
    pub(crate) fn node<W: KeyLane>(&mut self, bytes: usize, keys: &[W]) -> Result<(), BuildError> {
        let start = self.buffer.len();
        self.buffer.resize(start + bytes, 0xFF);
        for (slot, key) in self.buffer[start..].chunks_exact_mut(W::BYTES).zip(keys) {
            key.write(slot);
        }
        self.flush()
    }
}

/// Passes all tuples to a function.
pub(crate) type EachBatch<'a, W, B> = dyn FnMut(&mut Take<'_, W, B>) -> Result<(), BuildError> + 'a;

/// Passes the tuples of each node to `take`, in order; `next` returns how many the next node has, not 0. The last
/// node may have fewer.
pub(crate) fn each_node<W: KeyLane, B: ValueLane>(
    next: &mut dyn FnMut() -> usize,
    each_batch: &mut EachBatch<'_, W, B>,
    take: &mut Take<'_, W, B>,
) -> Result<(), BuildError> {
    let mut carry: Vec<Tuple<W, B>> = Vec::new();
    let mut count = None;
    each_batch(&mut |mut tuples| {
        while !tuples.is_empty() {
            let wanted = *count.get_or_insert_with(&mut *next);
            let (now, later) = tuples.split_at((wanted - carry.len()).min(tuples.len()));
            if carry.is_empty() && now.len() == wanted {
                take(now)?;
                count = None;
            } else {
                carry.extend_from_slice(now);
                if carry.len() == wanted {
                    take(&carry)?;
                    carry.clear();
                    count = None;
                }
            }
            tuples = later;
        }
        Ok(())
    })?;
    if carry.is_empty() { Ok(()) } else { take(&carry) }
}

/// Returns the last key of each leaf, of which `bytes` may be in memory; `each_leaf` passes the tuples of each.
pub(crate) fn lasts<W: KeyLane, B: ValueLane>(
    spills: Spills<'_>,
    bytes: usize,
    each_leaf: &mut EachBatch<'_, W, B>,
) -> Result<Overflow<W>, BuildError> {
    let mut lasts = Overflow::<W>::new(bytes / W::BYTES);
    let mut some = Vec::with_capacity(1 << 12);
    each_leaf(&mut |leaf| {
        some.extend(leaf.last().map(|tuple| tuple.key));
        if some.len() == some.capacity() {
            lasts.extend(&some, spills)?;
            some.clear();
        }
        Ok(())
    })?;
    lasts.extend(&some, spills)?;
    Ok(lasts)
}
