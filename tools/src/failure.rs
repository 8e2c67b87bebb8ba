//! How a command ends: the exit codes of the contract, and the one line on standard error.
//!
//! `error: what: where: what to do`. Arguments that can never be right are [`Failure::Usage`] (2);
//! what depends on the world (files, data, devices) is [`Failure::Operational`] (8).

use crate::interrupt;
use crate::render::text::printable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

/// How a command ended that did what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// All went well: 0.
    Success,
    /// A key of `get` is missing: 1.
    Missing,
    /// `fsck` or `inspect` found damage: 4.
    Damage,
}

impl ExitStatus {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Missing => 1,
            Self::Damage => 4,
        }
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// All is printed already (help, version): 0.
    Done,
    /// The reader of our standard output went away: success, by contract.
    ClosedPipe,
    /// `pleach` without a command: its help on standard error, 2.
    Help(String),
    /// Arguments that can never be right: 2.
    Usage(String),
    /// Damage met by `fsck` or `inspect` that left nothing to print: 4.
    Damage(String),
    /// Everything else that went wrong: 8.
    Operational(String),
    /// Ctrl-C or SIGTERM: 130.
    Interrupted,
}

impl Failure {
    /// Arguments that can never be right. `text` is `what: where: what to do`.
    pub fn usage(text: impl Into<String>) -> Self {
        Self::Usage(text.into())
    }

    /// Something in the world is not as needed. `text` is `what: where: what to do`.
    pub fn operational(text: impl Into<String>) -> Self {
        Self::Operational(text.into())
    }

    /// A system error on a file: `operation` as in "cannot open".
    pub fn io(operation: &str, path: &Path, error: &io::Error) -> Self {
        Self::Operational(format!("{operation}: {}: {}", path.display(), advise(error)))
    }

    /// A system error while writing data to standard output; a closed pipe is success.
    pub fn stdout(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Operational(format!("cannot write: standard output: {}", advise(error))),
        }
    }

    /// A usage error that clap found, as one line. `command` is as in "pleach get".
    pub fn from_clap(error: &clap::Error, command: &str) -> Self {
        let context = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => Some(text.clone()),
            Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
            _ => None,
        };
        let argument = context(ContextKind::InvalidArg);
        let value = context(ContextKind::InvalidValue);
        Self::Usage(match (error.kind(), argument, value) {
            // Our own parsers say `what: what to do`; the argument is where.
            (ErrorKind::ValueValidation, Some(argument), _) => {
                let text = error.source().map_or_else(|| first_lines(error), ToString::to_string);
                match text.rsplit_once(": ") {
                    Some((what, advice)) => format!("{what}: {argument}: {advice}"),
                    None => format!("{text}: {argument}: see `{command} --help`"),
                }
            }
            (ErrorKind::InvalidValue, Some(argument), Some(value)) if !value.is_empty() => {
                let known = context(ContextKind::ValidValue).unwrap_or_default();
                format!("unknown value '{value}': {argument}: use one of {known}")
            }
            _ => format!("{}: {command}: see `{command} --help`", first_lines(error)),
        })
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Done | Self::ClosedPipe => 0,
            Self::Help(_) | Self::Usage(_) => 2,
            Self::Damage(_) => 4,
            Self::Operational(_) => 8,
            Self::Interrupted => 130,
        }
    }

    /// What belongs on standard error: one line, whatever paths and messages hold.
    pub fn line(&self) -> Option<String> {
        match self {
            Self::Done | Self::ClosedPipe => None,
            Self::Help(text) => Some(text.trim_end().to_owned()),
            Self::Usage(text) | Self::Damage(text) | Self::Operational(text) => {
                Some(format!("error: {}", printable(text.trim())))
            }
            Self::Interrupted => Some(interrupt::MESSAGE.to_owned()),
        }
    }
}

/// What clap says before its usage, on one line.
fn first_lines(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let told = text.lines().map(str::trim).take_while(|line| {
        !["Usage:", "For more information", "tip:"].iter().any(|&stop| line.starts_with(stop))
    });
    let told = told.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    told.strip_prefix("error: ").unwrap_or(&told).to_owned()
}

/// Writes data to standard output and flushes it.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error))
}

/// A line on standard error beside what was asked for: a summary, a warning, a remark. What cannot be told there
/// cannot be told anywhere, and changes nothing of what was done.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(line));
}

/// The system's message, with advice where there is any.
pub fn advise(error: &io::Error) -> String {
    if let Some(advice) = crate::limits::advice(error) {
        return format!("{}: {advice}", text_of(error));
    }
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "check the name",
        io::ErrorKind::PermissionDenied => "check who may read and write it",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space, or write elsewhere",
        io::ErrorKind::ReadOnlyFilesystem => "write elsewhere",
        io::ErrorKind::IsADirectory => "name a file",
        _ => return text_of(error),
    };
    format!("{}: {advice}", text_of(error))
}

/// The system's words without Rust's "(os error 2)".
fn text_of(error: &impl Display) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
