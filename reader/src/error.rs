//! Errors of opening and reading a file.

use pleach_format::record::FieldError;
use pleach_format::{FormatError, KeyType, ValueType};
use pleach_fsck::Finding;
use std::path::{Path, PathBuf};
use std::{error, fmt, io};

/// Result of the functions of [`crate::Map`] and its twins.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any error of this crate: what is wrong, where, and what to do.
///
/// It is made of the errors of the single steps by `?`. [`Error::kind`] says how to react; the text is one line,
/// for people.
///
/// ```
/// use pleach::{ErrorKind, Map};
///
/// let error = Map::<u64, u64>::open("no such file").expect_err("there is none");
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// assert_eq!(error.code(), "not-found");
/// assert!(error.to_string().starts_with("cannot open: no such file: "));
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    /// Path of the file; empty if the cause names it, or if there is none.
    path: PathBuf,
    cause: Cause,
}

/// Error of a single step.
enum Cause {
    Open(OpenError),
    Read(ReadError),
    Types(TypeError),
    Asked {
        asked: String,
        holds: String,
    },
    Field(FieldError),
    #[cfg(feature = "build")]
    Build(pleach_builder::BuildError),
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $code:literal;)*) => {
        /// Kind of an [`Error`]. Later versions add kinds, and change none.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $kind,)*
        }

        impl ErrorKind {
            /// Returns the stable name, which the command line prints with `--json`, too.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$kind => $code,)*
                }
            }
        }
    };
}
kinds! {
    /// The call is wrong: a buffer is too short, a record has no such field, an option is not possible.
    Usage = "usage";
    /// A Pleach file is damaged, or was truncated while it was mapped.
    Damaged = "damaged";
    /// The file is of a newer version.
    Newer = "newer";
    /// The file is of an older version.
    Older = "older";
    /// The file is not a Pleach file.
    Foreign = "foreign";
    /// There is no such file.
    NotFound = "not-found";
    /// The system forbids it.
    Permission = "permission";
    /// A folder or a device where a file is needed.
    NotAFile = "not-a-file";
    /// The file holds other types.
    TypesDiffer = "types-differ";
    /// There is not enough memory.
    OutOfMemory = "out-of-memory";
    /// Another error of the system.
    Io = "io";
    /// The tuples of a build are not valid.
    Input = "input";
    /// A build would replace a file that it must not replace.
    WouldOverwrite = "would-overwrite";
    /// Another process builds the file.
    Busy = "busy";
    /// The disk is full, or a quota is exhausted.
    NoSpace = "no-space";
    /// More than a file can hold.
    TooLarge = "too-large";
    /// A limit of the system is reached: open files, threads.
    Limit = "limit";
    /// The observer of a build cancelled it.
    Interrupted = "interrupted";
    /// Anything else.
    Failed = "failed";
}

impl ErrorKind {
    fn of_format(error: &FormatError) -> Self {
        match error {
            FormatError::Foreign => Self::Foreign,
            FormatError::Version { found, reads } if found < reads => Self::Older,
            FormatError::Version { .. } | FormatError::Feature { .. } | FormatError::Section { .. } => {
                Self::Newer
            }
            _ => Self::Damaged,
        }
    }

    fn of_io(kind: io::ErrorKind) -> Self {
        use io::ErrorKind as Kind;
        match kind {
            Kind::NotFound | Kind::NotADirectory | Kind::InvalidFilename => Self::NotFound,
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem => Self::Permission,
            Kind::IsADirectory | Kind::NotSeekable => Self::NotAFile,
            Kind::StorageFull | Kind::QuotaExceeded | Kind::WriteZero => Self::NoSpace,
            Kind::OutOfMemory => Self::OutOfMemory,
            Kind::FileTooLarge => Self::TooLarge,
            Kind::ResourceBusy | Kind::ExecutableFileBusy | Kind::WouldBlock | Kind::Deadlock => Self::Busy,
            _ => Self::Io,
        }
    }

    #[cfg(feature = "build")]
    fn of_build(error: &pleach_builder::BuildError) -> Self {
        use pleach_builder::BuildError as Build;
        match error {
            _ if error.is_damage() => Self::Damaged,
            Build::Source(_) | Build::Unsorted { .. } | Build::Duplicate { .. } | Build::NotUnique { .. } => {
                Self::Input
            }
            Build::Interrupted => Self::Interrupted,
            Build::Busy { .. } | Build::LockClosed { .. } => Self::Busy,
            Build::Io { source, .. } => Self::of_io(source.kind()),
            Build::ManyFiles { .. } | Build::Threads { .. } => Self::Limit,
            Build::TooLarge { .. } | Build::TooManyValues { .. } => Self::TooLarge,
            Build::NotPackable { .. }
            | Build::NoDictionary { .. }
            | Build::Harmonia { .. }
            | Build::Layout(_) => Self::Usage,
            Build::Base { source, .. } => Self::of_format(source),
            Build::OutOfMemory { .. } | Build::ManyChanges { .. } => Self::OutOfMemory,
            Build::OutputIsInput { .. }
            | Build::OutputIsKept { .. }
            | Build::TargetForeign { .. }
            | Build::TargetIsIndex { .. }
            | Build::GenerationTaken { .. }
            | Build::Overtaken { .. } => Self::WouldOverwrite,
            Build::NoGeneration { .. } => Self::NotFound,
            Build::Types { .. } => Self::TypesDiffer,
            Build::TargetIsDirectory { .. } | Build::TargetNotRegular { .. } => Self::NotAFile,
            _ => Self::Failed,
        }
    }
}

impl Error {
    fn new(cause: Cause) -> Self {
        Self(Box::new(Inner { path: PathBuf::new(), cause }))
    }

    /// Creates the error for types that differ from those of the file.
    pub(crate) fn types(path: &Path, asked: String, holds: String) -> Self {
        Self::new(Cause::Asked { asked, holds }).at(path)
    }

    /// Adds the path of the file.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Self {
        path.clone_into(&mut self.0.path);
        self
    }

    /// Returns the kind, by which a program can react.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &self.0.cause {
            Cause::Open(OpenError::Io { source, .. }) => ErrorKind::of_io(source.kind()),
            Cause::Open(OpenError::Format { source, .. }) | Cause::Read(ReadError::Format(source)) => {
                ErrorKind::of_format(source)
            }
            Cause::Open(OpenError::Damaged { .. }) | Cause::Read(ReadError::MappingLost) => {
                ErrorKind::Damaged
            }
            Cause::Open(OpenError::Isa(_) | OpenError::Structure { .. })
            | Cause::Read(ReadError::Buffer { .. })
            | Cause::Field(_) => ErrorKind::Usage,
            Cause::Open(OpenError::Types { .. }) | Cause::Types(_) | Cause::Asked { .. } => {
                ErrorKind::TypesDiffer
            }
            Cause::Read(ReadError::Memory { .. }) => ErrorKind::OutOfMemory,
            Cause::Read(ReadError::Fetch { kind, .. }) => ErrorKind::of_io(*kind),
            #[cfg(feature = "build")]
            Cause::Build(error) => ErrorKind::of_build(error),
        }
    }

    /// Returns the stable name of the kind.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind().code()
    }

    /// Returns true if the file is damaged, as opposed to unreadable, foreign, newer, or to a wrong call.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        self.kind() == ErrorKind::Damaged
    }

    /// Returns the path of the file, if the error concerns one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        let path = match &self.0.cause {
            Cause::Open(
                OpenError::Io { path, .. }
                | OpenError::Format { path, .. }
                | OpenError::Damaged { path, .. }
                | OpenError::Structure { path, .. }
                | OpenError::Types { path, .. },
            ) => path,
            _ => &self.0.path,
        };
        Some(path.as_path()).filter(|path| !path.as_os_str().is_empty())
    }

    /// Returns the error of the step that failed: an [`OpenError`], a [`ReadError`], a [`TypeError`], a
    /// [`FieldError`] or, with the feature `build`, a `BuildError`. `None` if there is no more to know.
    #[must_use]
    pub fn get_ref(&self) -> Option<&(dyn error::Error + Send + Sync + 'static)> {
        match &self.0.cause {
            Cause::Open(error) => Some(error),
            Cause::Read(error) => Some(error),
            Cause::Types(error) => Some(error),
            Cause::Field(error) => Some(error),
            Cause::Asked { .. } => None,
            #[cfg(feature = "build")]
            Cause::Build(error) => Some(error),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.cause {
            Cause::Open(error) => return error.fmt(f),
            #[cfg(feature = "build")]
            Cause::Build(error) => return error.fmt(f),
            Cause::Asked { asked, holds } => {
                let path = at(&self.0.path);
                return write!(f, "types differ: {path}: it holds {holds}, not {asked}: ask for its types");
            }
            Cause::Read(_) | Cause::Types(_) | Cause::Field(_) => {}
        }
        if !self.0.path.as_os_str().is_empty() {
            write!(f, "{}: ", self.0.path.display())?;
        }
        match &self.0.cause {
            Cause::Read(error) => error.fmt(f),
            Cause::Types(error) => error.fmt(f),
            Cause::Field(error) => error.fmt(f),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({}: {self})", self.code())
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        // The text is that of the cause, so its source comes next.
        self.get_ref().and_then(error::Error::source)
    }
}

macro_rules! causes {
    ($($(#[$feature:meta])? $error:ty => $cause:ident;)*) => {$(
        $(#[$feature])?
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::new(Cause::$cause(error))
            }
        }
    )*};
}
causes! {
    OpenError => Open;
    ReadError => Read;
    TypeError => Types;
    FieldError => Field;
    #[cfg(feature = "build")]
    pleach_builder::BuildError => Build;
}

impl From<FormatError> for Error {
    fn from(error: FormatError) -> Self {
        ReadError::from(error).into()
    }
}

/// Reason why a file could not be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// A system call failed.
    Io {
        /// The operation that failed: `open`, `read`, `map`, ...
        operation: &'static str,
        /// Path of the file; empty for bytes in memory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The bytes are not those of a valid file of a known version.
    Format {
        /// Path of the file; empty for bytes in memory.
        path: PathBuf,
        /// The rule that the bytes break.
        source: FormatError,
    },
    /// Verification of the whole file ([`crate::Verify::Full`]) found damage.
    Damaged {
        /// Path of the file; empty for bytes in memory.
        path: PathBuf,
        /// The first finding.
        first: Box<Finding>,
        /// Number of findings.
        findings: usize,
    },
    /// This CPU does not have the requested instruction set.
    Isa(crate::Isa),
    /// The file does not have the requested search structure.
    Structure {
        /// Path of the file; empty for bytes in memory.
        path: PathBuf,
        /// The structure.
        structure: crate::Structure,
    },
    /// The types of the next generation differ from those of the open one, which stays open.
    Types {
        /// Path of the file.
        path: PathBuf,
        /// Types of the open generation.
        holds: (KeyType, ValueType),
        /// Types of the next generation.
        found: (KeyType, ValueType),
    },
}

fn at(path: &std::path::Path) -> String {
    if path.as_os_str().is_empty() { "bytes in memory".into() } else { path.display().to_string() }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { operation, path, source } => write!(f, "cannot {operation}: {}: {source}", at(path)),
            Self::Format { path, source } => write!(f, "{}: {source}", at(path)),
            Self::Damaged { path, first, findings } => {
                write!(f, "damaged: {}: {first} ({findings} findings): restore or rebuild it", at(path))
            }
            Self::Types { path, holds, found } => write!(
                f,
                "types differ: {}: it now holds {} to {}, but the open generation holds {} to {}: open it \
                 again",
                at(path),
                found.0,
                found.1,
                holds.0,
                holds.1
            ),
            Self::Structure { path, structure } => write!(
                f,
                "{} has no {structure}: choose a structure that `pleach inspect` shows, or build with \
                 --layout lines,{structure}",
                at(path)
            ),
            Self::Isa(isa) => {
                write!(f, "this CPU does not support {isa}: choose one that `pleach devices` shows")
            }
        }
    }
}

impl OpenError {
    /// Returns true if the file is damaged, as opposed to unreadable, foreign or newer.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Format { source, .. } => source.is_damage(),
            Self::Damaged { .. } => true,
            Self::Io { .. } | Self::Isa(_) | Self::Structure { .. } | Self::Types { .. } => false,
        }
    }
}

impl error::Error for OpenError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Format { source, .. } => Some(source),
            Self::Damaged { .. } | Self::Isa(_) | Self::Structure { .. } | Self::Types { .. } => None,
        }
    }
}

/// Reason why a look-up could not be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// A block that the query read does not match its sum ([`crate::Verify::Touched`]).
    Format(FormatError),
    /// The file was truncated, or its device was lost, while it was mapped.
    MappingLost,
    /// A buffer of the caller is too short.
    Buffer {
        /// Name of the buffer's parameter.
        name: &'static str,
        /// Number of elements needed.
        needed: usize,
        /// Number of elements in the buffer.
        found: usize,
    },
    /// There is not enough memory for a copy of mapped bytes.
    Memory {
        /// Number of bytes needed.
        bytes: u64,
    },
    /// Bytes of a remote file could not be fetched. The next call tries again.
    Fetch {
        /// Offset of the first byte in the file.
        offset: u64,
        /// Number of bytes.
        bytes: u64,
        /// Kind of the source's error.
        kind: io::ErrorKind,
        /// Text of the source's error.
        message: Box<str>,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(error) => error.fmt(f),
            Self::MappingLost => {
                let what = "damaged: the file was truncated or became unreadable while it was mapped";
                write!(f, "{what}: run `pleach fsck`, restore it")
            }
            Self::Buffer { name, needed, found } => {
                write!(f, "buffer `{name}` has {found} elements: {needed} are needed")
            }
            Self::Memory { bytes } => {
                write!(
                    f,
                    "out of memory: {bytes} bytes are needed for a copy of the column: read it in ranges"
                )
            }
            Self::Fetch { offset, bytes, message, .. } => {
                write!(f, "cannot fetch {bytes} bytes at offset {offset}: {message}: try again")
            }
        }
    }
}

impl ReadError {
    /// Returns true if the file is damaged, as opposed to a wrong call.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Format(error) => error.is_damage(),
            Self::MappingLost => true,
            Self::Buffer { .. } | Self::Memory { .. } | Self::Fetch { .. } => false,
        }
    }
}

impl error::Error for ReadError {}

impl From<FormatError> for ReadError {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}

/// A typed view was requested whose types are not those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeError {
    /// Types of the requested view.
    pub asked: (KeyType, ValueType),
    /// Types of the file.
    pub holds: (KeyType, ValueType),
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, holds) = (self.asked, self.holds);
        write!(f, "the file holds {} keys with {} values, not {} with {}", holds.0, holds.1, asked.0, asked.1)
    }
}

impl error::Error for TypeError {}
