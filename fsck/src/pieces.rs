//! Reads a section in pieces, in file order, on all threads.
//!
//! The next piece is given to any thread that is free, so that the disk sees one stream. Bytes a few pieces
//! ahead are requested early, so that they arrive while others are checked. Each thread has one buffer.

use super::{Check, ReadAt};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes per piece: whole sum blocks and lines. Small enough that copied bytes are still in a cache when they
/// are checked.
pub(super) const PIECE_BYTES: u64 = sized(256 << 10, 8 << 10);
/// Number of bytes that are requested ahead of the read position.
const AHEAD_BYTES: u64 = sized(16 << 20, 24 << 10);

/// Returns the amount that is checked at once: less in the tests of this crate, so that small files have
/// several pieces.
pub(super) const fn sized(size: u64, of_tests: u64) -> u64 {
    if cfg!(test) { of_tests } else { size }
}

/// Bytes that were read.
pub(super) struct Piece<'b> {
    /// The piece alone.
    pub bytes: &'b [u8],
    /// The piece with the bytes requested on both sides.
    pub with_sides: &'b [u8],
    /// Number of bytes before the piece.
    pub before: usize,
}

impl<R: ReadAt> Check<'_, R> {
    /// Reads `extent` bytes, beginning at `offset`, and passes each piece to `work` with its place in the
    /// extent, and with up to `sides` bytes of the extent before and after it. Stops early if the check is
    /// cancelled.
    ///
    /// # Errors
    /// The first error of the source or of `work`.
    pub(super) fn pieces(
        &self,
        offset: u64,
        extent: u64,
        sides: (u64, u64),
        work: impl Fn(u64, Piece<'_>) -> io::Result<()> + Sync,
    ) -> io::Result<()> {
        let count = extent.div_ceil(PIECE_BYTES);
        let (next, failed) = (AtomicU64::new(0), Failed::default());
        let ask = |at: u64, bytes: u64| {
            if at < extent {
                self.source.will_need(offset + at, bytes.min(extent - at));
            }
        };
        let one = |buffer: &mut Vec<u8>, number: u64| {
            let at = number * PIECE_BYTES;
            match number {
                0 => ask(0, AHEAD_BYTES),
                _ => ask(at + AHEAD_BYTES - PIECE_BYTES, PIECE_BYTES),
            }
            let length = PIECE_BYTES.min(extent - at);
            let before = sides.0.min(at);
            let after = sides.1.min(extent - at - length);
            buffer.resize((before + length + after) as usize, 0);
            self.source.read_exact_at(buffer, offset + at - before)?;
            let bytes = &buffer[before as usize..(before + length) as usize];
            work(at, Piece { bytes, with_sides: buffer, before: before as usize })?;
            self.advance(length);
            io::Result::Ok(())
        };
        let worker = || {
            let mut buffer = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count || self.is_cancelled() || failed.is_set() {
                    return;
                }
                if let Err(error) = one(&mut buffer, number) {
                    return failed.set(error);
                }
            }
        };
        // A thread that is busy elsewhere comes late, and finds nothing left to do.
        let others = (rayon::current_num_threads() as u64).min(count).saturating_sub(1);
        rayon::scope(|scope| {
            (0..others).for_each(|_| scope.spawn(|_| worker()));
            worker();
        });
        failed.into_result()
    }
}

/// The first error of several threads.
#[derive(Default)]
struct Failed {
    is_set: AtomicBool,
    error: Mutex<Option<io::Error>>,
}

impl Failed {
    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }
    fn set(&self, error: io::Error) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.is_set.store(true, Ordering::Relaxed);
    }
    fn into_result(self) -> io::Result<()> {
        self.error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}
