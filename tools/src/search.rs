//! What `get` and `range` share: opening a file, and its errors as failures.

use crate::cli::{Global, Verify};
use crate::cmd::inspect;
use crate::failure::{self, Code, Failure};
use pleach::{FormatError, Index, OpenError, ReadError, Record};
use pleach_gpu::GpuError;
use std::error::Error;
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

/// A file that could not be opened.
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

/// A file whose bytes were not accepted: damaged, foreign, newer or older. A head that is not ours tells little alone:
/// the end of the file says whether something was written over it.
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

/// A look-up that could not be answered.
pub fn reading(path: &Path) -> impl Fn(ReadError) -> Failure + Copy {
    move |error| {
        let code = if error.is_damage() { Code::Damaged } else { Code::Failed };
        placed_as(code, &error.to_string(), path)
    }
}

/// A GPU that did not answer.
pub fn device(error: GpuError) -> Failure {
    match error {
        GpuError::Open(error) => opening(&error),
        error => Failure::new(Code::Device, error.to_string()),
    }
}

/// `what: what to do` gets its place: `what: where: what to do`. What it begins with says which kind it is.
pub fn placed(text: &str, path: &Path) -> Failure {
    placed_as(Code::of_text(text), text, path)
}

/// The same of a known kind.
pub fn placed_as(code: Code, text: &str, path: &Path) -> Failure {
    let place = path.display();
    let text = match text.rsplit_once(": ") {
        Some((what, advice)) => format!("{what}: {place}: {advice}"),
        None => format!("{text}: {place}"),
    };
    Failure::at(code, text, place)
}

/// The error of the system behind another one, if there is one.
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
