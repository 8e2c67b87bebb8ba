//! Functions that `get` and `range` share: opening a file, and converting its errors to failures.

use crate::cli::{Global, Verify};
use crate::cmd::inspect;
use crate::failure::{self, Code, Failure};
use pleach::{FormatError, Index, OpenError, ReadError, Record};
use pleach_gpu::GpuError;
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

/// Opens a file for searching, with the requested verification.
pub fn open(path: &Path, global: &Global, default: Verify) -> Result<Index, Failure> {
    pleach::contain_sigbus();
    Index::options()
        .verify(global.verify.unwrap_or(default).into())
        .open(path)
        .map_err(|error| opening(&error))
}

/// Returns the record type of the values of a file, if they are records.
pub fn record(index: &Index, path: &Path) -> Result<Option<Record>, Failure> {
    index.record().map_err(reading(path))
}

/// Converts the error of opening a file.
pub fn opening(error: &OpenError) -> Failure {
    match error {
        OpenError::Io { operation, path, source } => {
            Failure::io(&format!("cannot {operation}"), path, source)
        }
        OpenError::Format { path, source } => refused(path, source),
        OpenError::Damaged { path, .. } => Failure::at(Code::Damaged, error.to_string(), path.display()),
        OpenError::Types { .. } => Failure::new(Code::TypesDiffer, error.to_string()),
        _ => Failure::operational(error.to_string()),
    }
}

/// Converts the error of a file that was refused: damaged, foreign, newer or older. If the head is not that
/// of a Pleach file, the end of the file shows whether the head was overwritten.
pub fn refused(path: &Path, error: &FormatError) -> Failure {
    if !error.is_damage()
        && let Some(text) = inspect::damage_of(path)
    {
        return placed_as(Code::Damaged, &text, path);
    }
    let code = match error {
        FormatError::Foreign => Code::Foreign,
        FormatError::Version { found, reads } if found < reads => Code::Older,
        FormatError::Version { .. } | FormatError::Feature { .. } => Code::Newer,
        _ => Code::Damaged,
    };
    placed_as(code, &error.to_string(), path)
}

/// Converts the error of a failed look-up.
pub fn reading(path: &Path) -> impl Fn(ReadError) -> Failure + Copy {
    move |error| {
        let code = if error.is_damage() { Code::Damaged } else { Code::Failed };
        placed_as(code, &error.to_string(), path)
    }
}

/// Converts the error of a GPU.
pub fn device(error: GpuError) -> Failure {
    match error {
        GpuError::Open(error) => opening(&error),
        error => Failure::new(Code::Device, error.to_string()),
    }
}

/// Adds the place to a text: `what: what to do` becomes `what: where: what to do`. Its first words determine
/// the kind.
pub fn placed(text: &str, path: &Path) -> Failure {
    placed_as(Code::of_text(text), text, path)
}

/// Does the same as [`placed`], for a known kind.
pub fn placed_as(code: Code, text: &str, path: &Path) -> Failure {
    let place = path.display();
    let text = match text.rsplit_once(": ") {
        Some((what, advice)) => format!("{what}: {place}: {advice}"),
        None => format!("{text}: {place}"),
    };
    Failure::at(code, text, place)
}

/// Returns the system error behind another one, if there is one.
pub fn system_error<'a>(mut error: Option<&'a (dyn Error + 'static)>) -> Option<&'a io::Error> {
    while let Some(found) = error {
        if let Some(system) = found.downcast_ref::<io::Error>()
            && system.raw_os_error().is_some()
        {
            return Some(system);
        }
        error = found.source();
    }
    None
}

/// Converts the error of a file whose types are not the requested ones.
pub fn typing(path: &Path) -> impl Fn(pleach::TypeError) -> Failure + '_ {
    |error| placed(&error.to_string(), path)
}

/// Explains on standard error how a search works.
pub fn explain(lines: &[String]) {
    for line in lines {
        failure::say(&format!("explain: {line}"));
    }
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
