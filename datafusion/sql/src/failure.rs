//! Ends of the command: exit codes, and one line on standard error.

use datafusion::error::DataFusionError;
use pleach::ErrorKind;
use pleach_datafusion::Error;
use std::io;
use std::process::ExitCode;

/// End of a command that did not do what was requested.
#[derive(Debug)]
pub enum Failure {
    /// A fault: its exit code, and what is printed.
    Fault(u8, String),
    /// The reader closed standard output: success.
    ClosedPipe,
    /// Ctrl-C.
    Interrupted,
}

const USAGE: u8 = 2;
const DAMAGED: u8 = 4;
const FAILED: u8 = 8;
const INTERRUPTED: u8 = 130;

impl Failure {
    /// A statement or an argument that can never be right.
    pub fn usage(text: String) -> Self {
        Self::Fault(USAGE, text)
    }
    /// Anything else.
    pub fn failed(text: String) -> Self {
        Self::Fault(FAILED, text)
    }
    /// A system call that failed.
    pub fn io(operation: &str, place: &str, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::ClosedPipe;
        }
        let text = error.to_string();
        let text = text.find(" (os error ").map_or(text.as_str(), |end| &text[..end]);
        Self::failed(format!("cannot {operation}: {place}: {text}"))
    }
    /// An error of a table, a plan or a query.
    pub fn engine(error: &DataFusionError) -> Self {
        let code = match Error::inside(error).map(Error::kind) {
            Some(ErrorKind::Damaged) => DAMAGED,
            Some(ErrorKind::Usage) => USAGE,
            _ => FAILED,
        };
        Self::Fault(code, Error::line_of(error))
    }
    /// An error of a statement before it runs.
    pub fn planning(error: DataFusionError) -> Self {
        let is_statement = matches!(
            error.find_root(),
            DataFusionError::SQL(..) | DataFusionError::Plan(_) | DataFusionError::SchemaError(..)
        );
        if is_statement { Self::usage(Error::line_of(&error)) } else { Self::engine(&error) }
    }

    /// Prints the line, and returns the exit code.
    pub fn end(self) -> ExitCode {
        match self {
            Self::Fault(code, text) => {
                eprintln!("error: {text}");
                ExitCode::from(code)
            }
            Self::ClosedPipe => ExitCode::SUCCESS,
            Self::Interrupted => ExitCode::from(INTERRUPTED),
        }
    }
}

/// Prints the error of wrong arguments, or the help that was asked for.
pub fn of_arguments(error: &clap::Error) -> ExitCode {
    // Nobody reads the text if standard output is closed.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}
