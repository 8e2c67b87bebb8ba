//! Ends of a command: the exit codes of the contract, and the one line on standard error.
//!
//! The line is `error: what: where: what to do`, or with `--json` one object of the same parts. The exit code
//! is 2 for arguments that can never be right, 4 for damage, and 8 for anything else that depends on the
//! world (files, data, devices). A [`Code`] is more precise; scripts rely on it.

use crate::limits;
use crate::message::Message;
use crate::render::json;
use crate::render::text::printable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use pleach_builder::remains::{self, Abandoned};
use std::error::Error as _;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// End of a command that did what was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// All went well: 0.
    Success,
    /// A key of `get` is missing, or `diff` found differences: 1.
    Missing,
    /// `fsck` or `inspect` found damage: 4.
    Damage,
}

impl ExitStatus {
    /// Returns the exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Missing => 1,
            Self::Damage => 4,
        }
    }
}

/// Runs a command for each of several files. A failure of one file does not hide the others: it is told, and the last
/// one is the result. Damage of any file is the result of all.
pub fn of_each<T>(
    files: &[T],
    mut run: impl FnMut(&T) -> Result<ExitStatus, Failure>,
) -> Result<ExitStatus, Failure> {
    let tell = |failure: Failure| failure.line().iter().for_each(|line| say(line));
    let (mut status, mut failed) = (ExitStatus::Success, None);
    for file in files {
        match run(file) {
            Ok(ExitStatus::Success) => {}
            Ok(found) => status = found,
            Err(failure @ (Failure::Interrupted | Failure::ClosedPipe)) => return Err(failure),
            Err(failure) => failed.replace(failure).into_iter().for_each(tell),
        }
    }
    match failed {
        Some(failure) if status == ExitStatus::Success || failure.code() == status.code() => Err(failure),
        failed => {
            failed.into_iter().for_each(tell);
            Ok(status)
        }
    }
}

/// Kind of a failure. The names are part of the contract: later versions add some, and change none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// Arguments that can never be right.
    Usage,
    /// A Pleach file is damaged.
    Damaged,
    /// A file of a newer version.
    Newer,
    /// A file of an older version.
    Older,
    /// A file that is not a Pleach file.
    Foreign,
    /// There is no such file or folder.
    NotFound,
    /// The system forbids it.
    Permission,
    /// A folder, a pipe or a device where a file is needed, or the other way round.
    NotAFile,
    /// The output is an input, or something else that must not be replaced.
    WouldOverwrite,
    /// The data is invalid.
    Input,
    /// Two inputs, or an input and a file, are of different types.
    TypesDiffer,
    /// More than a file or a file system can hold.
    TooLarge,
    /// Another process uses the file.
    Busy,
    /// The disk is full, or a quota is exhausted.
    NoSpace,
    /// Memory is exhausted.
    OutOfMemory,
    /// A limit of the system is reached: open files, threads.
    Limit,
    /// A GPU is missing, or fails.
    Device,
    /// Another error of the system.
    Io,
    /// Ctrl-C or SIGTERM.
    Interrupted,
    /// Anything else.
    Failed,
}

impl Code {
    /// All codes.
    #[cfg(test)]
    pub const ALL: [Self; 20] = [
        Self::Usage,
        Self::Damaged,
        Self::Newer,
        Self::Older,
        Self::Foreign,
        Self::NotFound,
        Self::Permission,
        Self::NotAFile,
        Self::WouldOverwrite,
        Self::Input,
        Self::TypesDiffer,
        Self::TooLarge,
        Self::Busy,
        Self::NoSpace,
        Self::OutOfMemory,
        Self::Limit,
        Self::Device,
        Self::Io,
        Self::Interrupted,
        Self::Failed,
    ];

    /// Returns the name that `--json` prints.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Damaged => "damaged",
            Self::Newer => "newer",
            Self::Older => "older",
            Self::Foreign => "foreign",
            Self::NotFound => "not-found",
            Self::Permission => "permission",
            Self::NotAFile => "not-a-file",
            Self::WouldOverwrite => "would-overwrite",
            Self::Input => "input",
            Self::TypesDiffer => "types-differ",
            Self::TooLarge => "too-large",
            Self::Busy => "busy",
            Self::NoSpace => "no-space",
            Self::OutOfMemory => "out-of-memory",
            Self::Limit => "limit",
            Self::Device => "device",
            Self::Io => "io",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }

    /// Returns the exit code.
    pub fn exit(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Damaged => 4,
            Self::Interrupted => 130,
            _ => 8,
        }
    }

    /// Returns the code of an error of the system.
    pub fn of_io(error: &io::Error) -> Self {
        known(error).code
    }
}

/// End of a command that did not do what was requested.
#[derive(Debug)]
pub enum Failure {
    /// Everything is printed already (help, version): 0.
    Done,
    /// The reader closed standard output: success, by contract.
    ClosedPipe,
    /// `pleach` without a command: its help on standard error, 2.
    Help(String),
    /// A fault: `what: where: what to do`.
    Fault {
        /// Kind of the failure.
        code: Code,
        /// What is printed.
        message: Message,
    },
    /// Ctrl-C or SIGTERM: 130.
    Interrupted,
}

/// True if errors are printed as objects.
static JSON: AtomicBool = AtomicBool::new(false);

/// Selects whether errors are printed as objects or as lines.
pub fn set_json(json: bool) {
    JSON.store(json, Ordering::Relaxed);
}

impl Failure {
    /// Makes a failure of a known kind.
    pub fn new(code: Code, message: Message) -> Self {
        Self::Fault { code, message }
    }

    /// Makes the failure for arguments that can never be right.
    pub fn usage(message: Message) -> Self {
        Self::new(Code::Usage, message)
    }

    /// Makes the failure for a system error on a file: `operation` as in "cannot open".
    pub fn io(operation: &str, path: &Path, error: &io::Error) -> Self {
        Self::new(Code::of_io(error), Message::new(operation).at(path.display()).because(advise(error)))
    }

    /// Makes the failure for a system error while writing to standard output; a closed pipe is success.
    pub fn stdout(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::io("cannot write", Path::new("standard output"), error),
        }
    }

    /// Makes a failure of a usage error that clap found, as one line. `command` is as in "pleach get".
    pub fn from_clap(error: &clap::Error, command: &str) -> Self {
        let context = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => Some(text.clone()),
            Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
            _ => None,
        };
        let see = format!("see `{command} --help`");
        let suggested = [
            ContextKind::SuggestedSubcommand,
            ContextKind::SuggestedArg,
            ContextKind::SuggestedValue,
            ContextKind::SuggestedCommand,
        ];
        let meant = suggested.into_iter().find_map(|kind| match error.get(kind) {
            Some(ContextValue::String(meant)) => Some(meant.clone()),
            // The most similar value is the last.
            Some(ContextValue::Strings(meant)) => meant.last().cloned(),
            _ => None,
        });
        let meant = meant.map(|meant| format!("did you mean '{meant}'?"));
        let argument = context(ContextKind::InvalidArg);
        let value = context(ContextKind::InvalidValue);
        let message = |what: String, place: String, advice| Message::new(what).at(place).advise(advice);
        let message = match (error.kind(), argument, value) {
            // Pleach's own parsers return messages; the argument is the place.
            (ErrorKind::ValueValidation, Some(argument), value) => {
                let text = error.source().map_or_else(|| first_lines(error), ToString::to_string);
                let own = error.source().and_then(|source| source.downcast_ref::<Message>());
                let own = own.cloned().unwrap_or_else(|| Message::of(&text));
                match (own.advice(), value) {
                    (Some(_), _) => own.at(argument),
                    // A parser of the standard library.
                    (None, Some(value)) => {
                        message(format!("invalid value '{value}' ({text})"), argument, see)
                    }
                    (None, None) => message(text, argument, see),
                }
            }
            (ErrorKind::InvalidValue, Some(argument), Some(value)) if !value.is_empty() => {
                let known = context(ContextKind::ValidValue).unwrap_or_default();
                let meant = meant.map_or(String::new(), |meant| format!("{meant} "));
                message(format!("unknown value '{value}'"), argument, format!("{meant}use one of {known}"))
            }
            (ErrorKind::MissingRequiredArgument, Some(missing), _) => {
                message("missing arguments".to_owned(), format!("{command} {missing}"), see)
            }
            (ErrorKind::MissingSubcommand, ..) => {
                message("missing command".to_owned(), command.to_owned(), see)
            }
            _ => message(first_lines(error), command.to_owned(), meant.unwrap_or(see)),
        };
        Self::usage(message)
    }

    /// Returns the exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Done | Self::ClosedPipe => 0,
            Self::Help(_) => Code::Usage.exit(),
            Self::Fault { code, .. } => code.exit(),
            Self::Interrupted => Code::Interrupted.exit(),
        }
    }

    /// Returns the name of its kind: that of its [`Code`].
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Done | Self::ClosedPipe => "",
            Self::Help(_) => Code::Usage.name(),
            Self::Fault { code, .. } => code.name(),
            Self::Interrupted => Code::Interrupted.name(),
        }
    }

    /// Returns its sentence, in one line, for another program.
    pub fn text(&self) -> String {
        match self {
            Self::Done | Self::ClosedPipe => String::new(),
            Self::Help(_) => "missing command: pleach: name one".to_owned(),
            Self::Fault { message, .. } => message.to_string(),
            Self::Interrupted => "interrupted".to_owned(),
        }
    }

    /// Returns the line for standard error, if there is one: always a single line, whatever paths and
    /// messages hold.
    pub fn line(&self) -> Option<String> {
        match self {
            Self::Done | Self::ClosedPipe => None,
            Self::Help(_) if JSON.load(Ordering::Relaxed) => {
                let message = Message::new("missing command").at("pleach").advise("see `pleach --help`");
                Some(told(Code::Usage, &message))
            }
            Self::Help(text) => Some(text.trim_end().to_owned()),
            Self::Fault { code, message } => Some(told(*code, message)),
            Self::Interrupted => {
                Some(interrupted(&remains::published().map_or(Abandoned::Unchanged, Abandoned::Published)))
            }
        }
    }
}

/// Returns the line, or the object, of an interrupted command, by what it left.
pub fn interrupted(left: &Abandoned) -> String {
    let message = Message::new("interrupted");
    let message = match left {
        Abandoned::Unchanged => message.more("nothing was changed").advise("start it again"),
        Abandoned::Published(path) => message.at(path.display()).advise("the new file is in place, check it"),
        Abandoned::Uncertain => {
            message.more("a file was being replaced").advise("check which one is in place")
        }
    };
    told(Code::Interrupted, &message)
}

/// Returns the line, or the object, of a message.
fn told(code: Code, message: &Message) -> String {
    let text = message.to_string();
    let text = text.trim();
    if !JSON.load(Ordering::Relaxed) {
        return format!("error: {}", printable(text));
    }
    let mut document = json::document("error");
    document.insert("code".to_owned(), code.name().into());
    document.insert("exit".to_owned(), code.exit().into());
    document.insert("what".to_owned(), message.what().into());
    document.insert("where".to_owned(), message.place().into());
    document.insert("advice".to_owned(), message.advice().into());
    document.insert("message".to_owned(), text.into());
    json::line(document)
}

/// Returns the text of clap before its usage, on one line.
fn first_lines(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let told = text.lines().map(str::trim).take_while(|line| {
        !["Usage:", "For more information", "tip:"].iter().any(|&stop| line.starts_with(stop))
    });
    let told = told.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    told.strip_prefix("error: ").unwrap_or(&told).to_owned()
}

/// Writes a line to standard error in addition to the result: a summary, a warning, a remark. A failure to
/// write it is ignored: it cannot be reported anywhere, and does not change what was done.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(line));
}

/// Properties of a system error.
struct Known {
    code: Code,
    /// Replacement for the system's words where those are a program's.
    words: Option<&'static str>,
    advice: &'static str,
}

/// Returns the properties of a system error, and what to do about it.
fn known(error: &io::Error) -> Known {
    use io::ErrorKind as Kind;
    let known = |code, advice| Known { code, words: None, advice };
    let said = |code, words, advice| Known { code, words: Some(words), advice };
    // Errors without a kind, or with a shared one.
    match error.raw_os_error() {
        Some(libc::EMFILE) => {
            return known(Code::Limit, "raise the limit of open files with `ulimit -n`, or name fewer files");
        }
        Some(libc::ENFILE) => return known(Code::Limit, "the system has too many files open: close some"),
        Some(libc::EPERM) => {
            return known(
                Code::Permission,
                "the file's owner or its file system must allow it: use another folder",
            );
        }
        Some(libc::EIO) => {
            return known(Code::Io, "the disk or its driver failed: see the system's log");
        }
        Some(libc::ELOOP) => return known(Code::NotFound, "links lead in a circle: name the file itself"),
        Some(libc::ENOLCK) => return known(Code::Io, "the file system has no locks: use another folder"),
        Some(libc::ENXIO) => {
            return known(Code::NotAFile, "no device or service has this name: check the name");
        }
        Some(libc::ENODEV) => {
            return known(Code::NotAFile, "its file system does not map files: copy it to a local disk");
        }
        Some(libc::EAGAIN) => {
            return known(
                Code::Limit,
                "raise the limit of processes (`ulimit -u`, the container's), or try again later",
            );
        }
        _ => {}
    }
    match error.kind() {
        Kind::NotFound => known(Code::NotFound, "check the name"),
        Kind::PermissionDenied => known(Code::Permission, "check its permissions"),
        Kind::StorageFull | Kind::QuotaExceeded => {
            known(Code::NoSpace, "free some space, or write elsewhere")
        }
        Kind::ReadOnlyFilesystem => known(Code::Permission, "write elsewhere"),
        Kind::IsADirectory => known(Code::NotAFile, "name a file"),
        Kind::NotADirectory => known(Code::NotFound, "a part of the path is not a folder: check the path"),
        Kind::DirectoryNotEmpty => known(Code::Io, "other programs write to it: use another folder"),
        Kind::AlreadyExists => known(Code::WouldOverwrite, "choose another name"),
        Kind::InvalidFilename => known(Code::NotFound, "choose a shorter name"),
        Kind::FileTooLarge => known(Code::TooLarge, "raise `ulimit -f`, or write to another file system"),
        Kind::OutOfMemory => known(
            Code::OutOfMemory,
            "give less with --memory, or raise the limit (`ulimit -v`, the container's)",
        ),
        Kind::StaleNetworkFileHandle => known(Code::Io, "the server has replaced it: start it again"),
        Kind::NotSeekable => said(Code::NotAFile, "it is a pipe", "name a regular file"),
        Kind::InvalidInput => said(Code::NotAFile, "it cannot be read like a file", "name a regular file"),
        Kind::InvalidData => known(Code::Input, "check its content"),
        Kind::UnexpectedEof => said(
            Code::Io,
            "it ends too early",
            "another process truncated it: let no process write to it, and start again",
        ),
        Kind::ResourceBusy | Kind::ExecutableFileBusy | Kind::WouldBlock => {
            known(Code::Busy, "another process has it: wait for it")
        }
        Kind::Deadlock => known(Code::Busy, "start it again"),
        Kind::CrossesDevices => known(Code::Io, "use one folder for all of it"),
        Kind::TooManyLinks => known(Code::Io, "remove some of its names"),
        Kind::TimedOut => known(Code::Io, "the file system does not answer: try again later"),
        Kind::Interrupted => known(Code::Io, "start it again"),
        Kind::WriteZero => {
            said(Code::NoSpace, "no more bytes are accepted", "free some space, or write elsewhere")
        }
        Kind::BrokenPipe => known(Code::Io, "the reading process has ended: start both again"),
        Kind::Unsupported => known(Code::Io, "this file system cannot do it: use another folder"),
        _ => known(Code::Io, "see the system's log, or use another folder"),
    }
}

/// Returns the system's message, and what to do.
pub fn advise(error: &io::Error) -> Message {
    let known = known(error);
    if error.raw_os_error().is_none() && known.words.is_none() {
        // A text of Pleach that says what to do already.
        let own = Message::of(error);
        if own.advice().is_some() {
            return own;
        }
    }
    let words = known.words.map_or_else(|| text_of(error), str::to_owned);
    let now =
        if error.raw_os_error() == Some(libc::EMFILE) { limits::open_files_now() } else { String::new() };
    Message::new(format!("{words}{now}")).advise(known.advice)
}

/// Returns the system's words without Rust's "(os error 2)".
fn text_of(error: &impl Display) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_error_of_the_system_has_advice() {
        for number in 1..134 {
            let error = io::Error::from_raw_os_error(number);
            let told = advise(&error);
            let text = told.to_string();
            let (what, advice) = (told.what(), told.advice().unwrap_or_else(|| panic!("{number}: {text}")));
            assert!(!what.is_empty() && advice.len() > 4 && !text.contains("os error"), "{number}: {text}");
            assert_eq!(Code::of_io(&error).exit(), 8, "{number}: {text}");
        }
        for (number, code, words) in [
            (libc::ENOENT, Code::NotFound, "check the name"),
            (libc::EACCES, Code::Permission, "permissions"),
            (libc::EPERM, Code::Permission, "file system must allow"),
            (libc::ENOSPC, Code::NoSpace, "free some space"),
            (libc::EDQUOT, Code::NoSpace, "free some space"),
            (libc::EROFS, Code::Permission, "write elsewhere"),
            (libc::EMFILE, Code::Limit, "ulimit -n"),
            (libc::ENFILE, Code::Limit, "close some"),
            (libc::ENOMEM, Code::OutOfMemory, "--memory"),
            (libc::EFBIG, Code::TooLarge, "ulimit -f"),
            (libc::EIO, Code::Io, "disk"),
            (libc::ESTALE, Code::Io, "start it again"),
            (libc::ENAMETOOLONG, Code::NotFound, "shorter"),
            (libc::ELOOP, Code::NotFound, "links"),
            (libc::ENOTDIR, Code::NotFound, "not a folder"),
            (libc::EISDIR, Code::NotAFile, "name a file"),
            (libc::ETXTBSY, Code::Busy, "another process"),
            (libc::EBUSY, Code::Busy, "another process"),
            (libc::ENOLCK, Code::Io, "locks"),
            (libc::EOPNOTSUPP, Code::Io, "another folder"),
            (libc::EXDEV, Code::Io, "one folder"),
            (libc::ESPIPE, Code::NotAFile, "regular file"),
        ] {
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(Code::of_io(&error), code, "{error}");
            assert!(advise(&error).to_string().contains(words), "{}", advise(&error));
        }
        let ours = io::Error::other("the lock file keeps disappearing: try again");
        assert_eq!(advise(&ours).to_string(), "the lock file keeps disappearing: try again");
    }

    #[test]
    fn codes_have_names_of_their_own() {
        let names: HashSet<&str> = Code::ALL.into_iter().map(Code::name).collect();
        assert_eq!(names.len(), Code::ALL.len());
        let kebab = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        assert!(names.iter().copied().all(kebab));
        assert!(names.iter().all(|name| crate::help::PLEACH.contains(name)), "--help names all of them");
    }
}
