//! What `get` and `range` share: opening a file, and its errors as failures.

use crate::cli::{Global, Verify};
use crate::failure::{self, Failure, advise};
use pleach::{Index, OpenError, ReadError, Record};
use std::io::{self, Write};
use std::path::Path;

/// Opens a file for searching, with the verification that was asked for.
pub fn open(path: &Path, global: &Global, default: Verify) -> Result<Index, Failure> {
    pleach::contain_sigbus();
    Index::options()
        .verify(global.verify.unwrap_or(default).into())
        .open(path)
        .map_err(|error| opening(&error))
}

/// The fields of the values of a file, if they are records.
pub fn record(index: &Index, path: &Path) -> Result<Option<Record>, Failure> {
    index.record().map_err(reading(path))
}

/// A file that could not be opened: 8 in every command but `fsck` and `inspect`.
pub fn opening(error: &OpenError) -> Failure {
    match error {
        OpenError::Io { operation, path, source } => {
            Failure::io(&format!("cannot {operation}"), path, source)
        }
        OpenError::Format { path, source } => placed(&source.to_string(), path),
        _ => Failure::operational(error.to_string()),
    }
}

/// A look-up that could not be answered.
pub fn reading(path: &Path) -> impl Fn(ReadError) -> Failure + Copy {
    move |error| placed(&error.to_string(), path)
}

/// `what: what to do` gets its place: `what: where: what to do`.
pub fn placed(text: &str, path: &Path) -> Failure {
    Failure::operational(match text.rsplit_once(": ") {
        Some((what, advice)) => format!("{what}: {}: {advice}", path.display()),
        None => format!("{text}: {}", path.display()),
    })
}

/// Why a file's types are not those that were asked for.
pub fn typing(path: &Path) -> impl Fn(pleach::TypeError) -> Failure + '_ {
    |error| placed(&error.to_string(), path)
}

/// Says on standard error how a search is done.
pub fn explain(lines: &[String]) {
    for line in lines {
        failure::say(&format!("explain: {line}"));
    }
}

/// Standard output as a buffer that is written out in large pieces.
pub struct Output {
    /// What is not written yet.
    pub buffer: Vec<u8>,
    out: io::StdoutLock<'static>,
}

/// From this size on the buffer is written out.
const PIECE_BYTES: usize = 1 << 20;

impl Output {
    /// An empty buffer before standard output.
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

/// A system error on an input that is not the index.
pub fn input_failure(name: &str, error: &io::Error) -> Failure {
    Failure::operational(format!("cannot read: {name}: {}", advise(error)))
}
