//! Standard input that an interruption ends.
//!
//! A read of a silent pipe blocks, and a signal does not end it. So a thread of its own reads, and
//! the one that wants the bytes looks for Ctrl-C while it waits.

use crate::interrupt::Guard;
use std::io::{self, ErrorKind, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces that are read ahead.
const PIECES: usize = 4;
/// How often the one that waits looks for an interruption.
const PATIENCE: Duration = Duration::from_millis(100);

/// Standard input.
pub struct Stdin {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    used: usize,
    guard: Guard,
    /// No thread reads ahead.
    is_alone: bool,
}

impl Stdin {
    /// Starts to read.
    pub fn new() -> Self {
        let (sender, pieces) = sync_channel(PIECES);
        let started = thread::Builder::new().spawn(move || {
            let mut input = io::stdin().lock();
            loop {
                let mut piece = vec![0; PIECE_BYTES];
                let result = match input.read(&mut piece) {
                    Ok(0) => break,
                    Ok(read) => {
                        piece.truncate(read);
                        Ok(piece)
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let failed = result.is_err();
                if sender.send(result).is_err() || failed {
                    break;
                }
            }
        });
        // Without a thread, whoever wants the bytes reads them.
        let is_alone = started.is_err();
        Self { is_alone, pieces, piece: Vec::new(), used: 0, guard: Guard::new() }
    }
}

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_alone {
            return io::stdin().lock().read(buffer);
        }
        while self.used == self.piece.len() {
            if self.guard.is_interrupted() {
                return Err(io::Error::other("interrupted"));
            }
            match self.pieces.recv_timeout(PATIENCE) {
                Ok(piece) => (self.piece, self.used) = (piece?, 0),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
        let count = buffer.len().min(self.piece.len() - self.used);
        buffer[..count].copy_from_slice(&self.piece[self.used..self.used + count]);
        self.used += count;
        Ok(count)
    }
}
