//! Converts the errors of the libraries to failures of a command.

use crate::failure::{self, Code, Failure};
use crate::found;
use crate::message::Message;
use pleach::{ErrorKind, FormatError, OpenError, ReadError};
use pleach_builder::BuildError;
use pleach_builder::source::SourceError;
use pleach_gpu::GpuError;
use pleach_relation::RelationError;
use pleach_relation::expr::ExprError;
use pleach_set::SetError;
use std::error::Error;
use std::io::{self, IsTerminal, Write, stderr};
use std::path::Path;

/// Converts the error of opening a file.
pub fn opening(error: &OpenError) -> Failure {
    match error {
        OpenError::Io { operation, path, source } => {
            Failure::io(&format!("cannot {operation}"), path, source)
        }
        OpenError::Format { path, source } => refused(path, source),
        OpenError::Damaged { path, .. } => {
            Failure::new(Code::Damaged, Message::of(error).known(path.display()))
        }
        OpenError::Types { .. } => Failure::new(Code::TypesDiffer, Message::of(error)),
        OpenError::Structure { .. } => Failure::usage(Message::of(error)),
        _ => Failure::new(Code::Failed, Message::of(error)),
    }
}

/// Converts the error of a file that was refused: damaged, foreign, newer or older. If the head is not that
/// of a Pleach file, the end of the file shows whether the head was overwritten.
pub fn refused(path: &Path, error: &FormatError) -> Failure {
    if !error.is_damage()
        && let Some(message) = found::damage_of(path)
    {
        return placed(Code::Damaged, message, path);
    }
    let code = match error {
        FormatError::Foreign => Code::Foreign,
        FormatError::Version { found, reads } if found < reads => Code::Older,
        FormatError::Version { .. } | FormatError::Feature { .. } | FormatError::Section { .. } => {
            Code::Newer
        }
        _ => Code::Damaged,
    };
    placed(code, Message::of(error), path)
}

/// Converts the error of a failed look-up.
pub fn reading(path: &Path) -> impl Fn(ReadError) -> Failure + Copy {
    move |error| {
        let code = if error.is_damage() { Code::Damaged } else { Code::Failed };
        placed(code, Message::of(&error), path)
    }
}

/// Converts the error of a GPU.
pub fn device(error: GpuError) -> Failure {
    match error {
        GpuError::Open(error) => opening(&error),
        error => Failure::new(Code::Device, Message::of(&error)),
    }
}

/// Makes the failure of a text that lacks its place.
pub fn placed(code: Code, message: Message, path: &Path) -> Failure {
    Failure::new(code, message.at(path.display()))
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
    |error| placed(Code::TypesDiffer, Message::of(&error), path)
}

/// Converts the error of a refused input: bad data, or a file that cannot be read.
pub fn source_failure(error: &SourceError) -> Failure {
    if let Some(error) = error.cause.as_ref().and_then(|cause| cause.downcast_ref::<SetError>()) {
        return set_failure(error);
    }
    let place = |message: Message| {
        let message = message.at(&error.input);
        if error.place.is_empty() { message } else { message.more(&error.place) }
    };
    if let Some(system) = system_error(error.cause.as_deref().map(|cause| cause as _)) {
        let message = place(Message::new("cannot read")).because(failure::advise(system));
        return Failure::new(Code::of_io(system), message);
    }
    let code = if Path::new(&error.input).is_dir() { Code::NotAFile } else { Code::Input };
    Failure::new(code, place(Message::new("bad input")).because(in_our_words(error)))
}

/// Returns the fault with the library's words in brackets, as a reason, and not in place of the advice.
fn in_our_words(error: &SourceError) -> Message {
    match &error.cause {
        Some(cause) => {
            let cause = cause.to_string().replace(": ", " - ");
            Message::new(format!("{} ({cause})", error.what))
                .advise("check that its format is that of its name, or make it again")
        }
        None if error.advice.is_empty() => Message::new(&error.what),
        None => Message::new(&error.what).advise(&error.advice),
    }
}

/// Converts the error of a build.
pub fn build_failure(error: &BuildError) -> Failure {
    let code = match error {
        BuildError::Source(error) => return source_failure(error),
        BuildError::Interrupted => return Failure::Interrupted,
        // Messages count rows from 1, as those about the data do.
        BuildError::Unsorted { row, previous, key } => {
            let message = Message::new("input is not sorted").at(format!("row {}", row + 1));
            let message = message.more(format!("key {key} comes after key {previous}"));
            return Failure::new(Code::Input, message.advise("build without --sorted, or sort it"));
        }
        BuildError::Duplicate { key, row } => {
            let place = row.map_or(String::new(), |row| format!(" again in row {}", row + 1));
            let message = Message::new("duplicate key").at(format!("{key}{place}"));
            let advice = "remove it, or choose --unique first or --unique last";
            return Failure::new(Code::Input, message.advise(advice));
        }
        BuildError::Sum { key, value_type } => {
            let message = Message::new(format!("a sum does not fit {value_type}")).at(format!("key {key}"));
            return Failure::new(Code::TooLarge, message.advise("choose --value-type u64"));
        }
        BuildError::Overlap { first, second } => {
            let message = Message::new("intervals overlap").at(format!("{first} and {second}"));
            let advice = "correct them, or choose --overlap last, by which the later row wins";
            return Failure::new(Code::Input, message.advise(advice));
        }
        // A Pleach file that was whole when it was opened.
        BuildError::Io { operation, path, source }
            if *operation == "reading" && source.kind() == io::ErrorKind::UnexpectedEof =>
        {
            return reading(path)(ReadError::MappingLost);
        }
        BuildError::Io { operation, path, source } => {
            return Failure::io(&format!("{operation} failed"), path, source);
        }
        BuildError::Base { path, source } => return refused(path, source),
        BuildError::Damaged { path, .. } => {
            return Failure::new(Code::Damaged, Message::of(error).known(path.display()));
        }
        BuildError::Types { .. } => Code::TypesDiffer,
        BuildError::Busy { .. } => Code::Busy,
        BuildError::TooLarge { .. }
        | BuildError::TooManyValues { .. }
        | BuildError::LastGeneration { .. } => Code::TooLarge,
        BuildError::ManyChanges { .. } | BuildError::OutOfMemory { .. } => Code::OutOfMemory,
        BuildError::Layout(_) => Code::Usage,
        BuildError::NotPackable { .. }
        | BuildError::NoDictionary { .. }
        | BuildError::NotUnique { .. }
        | BuildError::NoSum { .. }
        | BuildError::Approximate { .. } => Code::Input,
        BuildError::TargetIsDirectory { .. } | BuildError::TargetNotRegular { .. } => Code::NotAFile,
        BuildError::Threads { .. } | BuildError::ManyFiles { .. } => Code::Limit,
        BuildError::OutputIsInput { .. }
        | BuildError::OutputIsKept { .. }
        | BuildError::TargetForeign { .. }
        | BuildError::TargetIsIndex { .. }
        | BuildError::GenerationTaken { .. } => Code::WouldOverwrite,
        BuildError::Overtaken { .. } | BuildError::LockClosed { .. } => Code::Busy,
        _ => Code::Failed,
    };
    Failure::new(code, Message::of(error))
}

/// Converts the error of a set.
pub fn set_failure(error: &SetError) -> Failure {
    match error {
        SetError::Build(error) => return inner_failure(error),
        SetError::File { source, .. } => return inner_failure(source),
        SetError::Store(error) => {
            let message = Message::new(format!("cannot {}", error.operation)).at(&error.name);
            return Failure::new(Code::of_io(&error.source), message.because(failure::advise(&error.source)));
        }
        SetError::Usage(text) => return Failure::usage(Message::of(text)),
        _ => {}
    }
    let code = match error.kind() {
        ErrorKind::Damaged => Code::Damaged,
        ErrorKind::Newer => Code::Newer,
        ErrorKind::Foreign => Code::Foreign,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::TypesDiffer => Code::TypesDiffer,
        ErrorKind::Busy => Code::Busy,
        ErrorKind::Input => Code::Input,
        _ => Code::Failed,
    };
    Failure::new(code, Message::of(error))
}

/// Converts the error of a file of a set.
fn inner_failure(error: &pleach::Error) -> Failure {
    let Some(inner) = error.get_ref() else { return Failure::new(Code::TypesDiffer, Message::of(error)) };
    if let Some(error) = inner.downcast_ref::<BuildError>() {
        return build_failure(error);
    }
    if let Some(error) = inner.downcast_ref::<OpenError>() {
        return opening(error);
    }
    let code = if error.is_damage() { Code::Damaged } else { Code::Failed };
    Failure::new(code, Message::of(error))
}

/// Converts an operator's error to a failure.
pub fn relation_failure(error: RelationError) -> Failure {
    match error {
        RelationError::Build(error) => build_failure(&error),
        RelationError::Interrupted => Failure::Interrupted,
        RelationError::Expression(error) => {
            let message = Message::new(&error.what).at(error.location()).advise(error.advice());
            Failure::new(Code::Input, message)
        }
        RelationError::NoIndex { what } => {
            let message = Message::new(format!("an index file cannot hold {what}"));
            Failure::new(Code::Input, message.advise("write Parquet, Arrow or CSV instead"))
        }
        RelationError::Damaged { path, section, source } => {
            let message = Message::new("damaged").at(path.display()).more(format!("section {section}"));
            Failure::new(Code::Damaged, message.because(Message::of(&source)))
        }
        error @ (RelationError::Distance { .. }
        | RelationError::NoHow { .. }
        | RelationError::Approximate { .. }) => Failure::usage(Message::of(&error)),
        error => {
            let code = match &error {
                RelationError::KeyTypes { .. } | RelationError::ValueTypes { .. } => Code::TypesDiffer,
                RelationError::TooLarge { .. } | RelationError::Overflow { .. } => Code::TooLarge,
                RelationError::NoDevice { .. } | RelationError::Device(_) => Code::Device,
                RelationError::Sink(_) => Code::Failed,
                _ => Code::Input,
            };
            Failure::new(code, Message::of(&error))
        }
    }
}

/// Makes the message of an invalid expression.
pub fn expression_message(error: &ExprError) -> Message {
    Message::new(&error.what).at(error.location()).advise(error.advice())
}

/// Converts the error of an invalid expression: on a terminal its place is marked too.
pub fn expression_failure(error: &ExprError) -> Failure {
    if stderr().is_terminal() {
        let marked: String = error.caret().lines().map(|line| format!("  {line}\n")).collect();
        let _ = write!(stderr(), "{marked}");
    }
    Failure::usage(expression_message(error))
}
