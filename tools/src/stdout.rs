//! Standard output: data in one piece, documents, and answers through a buffer.

use crate::failure::{ExitStatus, Failure};
use crate::render::json;
use anstream::AutoStream;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// Writes data to standard output and flushes it.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error))
}

/// Writes text for people to standard output: with its colours, if they are wanted.
pub fn print_people(text: &str) -> Result<(), Failure> {
    let mut out = AutoStream::auto(io::stdout().lock());
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error))
}

/// Prints a document on one line. Characters that would control a terminal are escaped, which is the same
/// JSON.
pub fn print_json(document: Map<String, Value>) -> Result<(), Failure> {
    let mut text = json::line(document);
    text.push('\n');
    print(text.as_bytes())
}

/// Prints the number of tuples or keys that a command found: a line, or a document.
pub fn print_count(command: &str, count: u64, is_json: bool) -> Result<ExitStatus, Failure> {
    if is_json {
        let mut document = json::document(&format!("{command}-count"));
        document.insert("count".to_owned(), json::int(count));
        print_json(document)?;
    } else {
        print(format!("{count}\n").as_bytes())?;
    }
    Ok(ExitStatus::Success)
}

/// Standard output with a buffer that is written in large pieces.
pub struct Output {
    /// Bytes that are not written yet.
    pub buffer: Vec<u8>,
    out: io::StdoutLock<'static>,
}

/// Size from which the buffer is written out.
const PIECE_BYTES: usize = 1 << 20;

impl Output {
    /// Makes an empty buffer for standard output.
    pub fn new() -> Self {
        Self { buffer: Vec::with_capacity(PIECE_BYTES + (PIECE_BYTES >> 3)), out: io::stdout().lock() }
    }

    /// Writes the buffer out if it is large.
    #[inline]
    pub fn relieve(&mut self) -> Result<(), Failure> {
        if self.buffer.len() >= PIECE_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes the buffer out.
    pub fn flush(&mut self) -> Result<(), Failure> {
        // `StdoutLock` buffers lines; a piece that ends in a newline passes it in one call.
        let written = self.out.write_all(&self.buffer).and_then(|()| self.out.flush());
        self.buffer.clear();
        written.map_err(|error| Failure::stdout(&error))
    }
}
