//! Sizes of the pieces of a stream, and the device that answers them.

use super::device::Device;

/// Tuples per piece, of both sides together.
pub(super) const PIECE_TUPLES: usize = 1 << 17;
/// Bytes of strings per side of a piece and per chunk: usually enough for `PIECE_TUPLES` tuples.
const PIECE_BYTES: usize = 16 << 20;
/// Size of the pieces of a stream, and the device that answers them. Affects only speed and memory.
#[derive(Clone, Copy, Debug)]
pub struct StreamOptions<'a> {
    /// Tuples per piece, of both sides together: 1 to 2^30.
    pub piece_tuples: usize,
    /// Bytes of strings per side of a piece and per chunk. One tuple, or one block of a sum of floats, may
    /// exceed it.
    pub piece_bytes: usize,
    /// Device that answers pieces, of the size that it prefers; `None` is the CPU.
    pub device: Option<&'a dyn Device>,
    /// Permits joins, set operations and reductions of keys that are shorter than those they stand for, although equal
    /// keys may stand for different ones. Affects whether there is an answer, and not only speed.
    pub approximate: bool,
}

impl Default for StreamOptions<'_> {
    fn default() -> Self {
        Self { piece_tuples: PIECE_TUPLES, piece_bytes: PIECE_BYTES, device: None, approximate: false }
    }
}

impl StreamOptions<'_> {
    /// Returns the tuples per piece of an operator that `device` answers.
    pub(super) fn tuples(&self, device: Option<&dyn Device>) -> usize {
        device.map_or(self.piece_tuples, Device::piece_tuples).clamp(1, 1 << 30)
    }
}
