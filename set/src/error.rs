//! Errors of sets: what is wrong, where, and what to do.

use crate::manifest::{ManifestError, Rule};
use pleach::ErrorKind;
use pleach_builder::BuildError;
use std::fmt;
use std::io;
use std::time::Duration;

/// Result of the functions of this crate.
pub type Result<T, E = SetError> = std::result::Result<T, E>;

/// Any error of a set. Its text is one line; [`SetError::kind`] says how to react.
#[derive(Debug)]
#[non_exhaustive]
pub enum SetError {
    /// There is no set.
    NoSet {
        /// Where it was looked for.
        place: String,
    },
    /// An object could not be read, written or listed.
    Store(StoreError),
    /// A manifest was refused.
    Manifest {
        /// Name of the manifest.
        name: String,
        /// The rule that it breaks.
        source: ManifestError,
    },
    /// A file that the manifest names is missing.
    Missing {
        /// Name of the file.
        name: String,
    },
    /// A file of the set cannot be opened or read.
    File {
        /// Name of the file.
        name: String,
        /// Why not.
        source: pleach::Error,
    },
    /// A file is not the one that the manifest describes.
    Differs {
        /// Name of the file.
        name: String,
        /// What differs, and how.
        what: String,
    },
    /// Two files have keys in common, so that they cannot be in one set.
    Overlap {
        /// Name of the file with the smaller first key.
        first: String,
        /// Name of the other one.
        second: String,
    },
    /// A file has other types or options than the set.
    Types {
        /// Name of the file.
        name: String,
        /// What differs, and how.
        what: String,
    },
    /// Another committer published this generation first.
    Lost {
        /// The generation of the other committer.
        generation: u64,
    },
    /// A file that is to be committed is so old that a sweep may delete it.
    Stale {
        /// Name of the file.
        name: String,
        /// Its age.
        age: Duration,
        /// The most that is allowed.
        most: Duration,
    },
    /// What was asked for is not possible.
    Usage(String),
    /// A file could not be built: a `pleach_builder::BuildError`, which [`pleach::Error::get_ref`] returns.
    Build(pleach::Error),
    /// A key is of another type than those of the set.
    Key {
        /// The key.
        key: String,
        /// The type of the keys.
        holds: String,
    },
}

impl SetError {
    /// Returns the kind, by the names that `pleach` has for errors of files.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSet { .. } | Self::Missing { .. } => ErrorKind::NotFound,
            Self::Store(error) => kind_of_io(&error.source),
            Self::Manifest { source, .. } => match source.rule {
                Rule::Magic => ErrorKind::Foreign,
                Rule::Version | Rule::Feature => ErrorKind::Newer,
                _ => ErrorKind::Damaged,
            },
            Self::File { source, .. } => source.kind(),
            Self::Differs { .. } => ErrorKind::Damaged,
            Self::Overlap { .. } => ErrorKind::Input,
            Self::Types { .. } | Self::Key { .. } => ErrorKind::TypesDiffer,
            Self::Lost { .. } => ErrorKind::Busy,
            Self::Stale { .. } => ErrorKind::Failed,
            Self::Usage(_) => ErrorKind::Usage,
            Self::Build(error) => error.kind(),
        }
    }

    /// Makes the error of a system call of a build.
    pub(crate) fn io(operation: &'static str, path: &std::path::Path, source: io::Error) -> Self {
        Self::Build(BuildError::Io { operation, path: path.to_owned(), source }.into())
    }

    /// Returns true if the cause is a file or a manifest with wrong bytes.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        self.kind() == ErrorKind::Damaged
    }

    /// Returns the name of the object with the fault, if it is that of one.
    #[must_use]
    pub fn object(&self) -> Option<&str> {
        match self {
            Self::Store(error) => Some(&error.name),
            Self::Manifest { name, .. }
            | Self::Missing { name }
            | Self::File { name, .. }
            | Self::Differs { name, .. }
            | Self::Types { name, .. }
            | Self::Stale { name, .. } => Some(name),
            Self::Overlap { first, .. } => Some(first),
            Self::NoSet { .. } | Self::Lost { .. } | Self::Usage(_) | Self::Build(_) | Self::Key { .. } => {
                None
            }
        }
    }
}

fn kind_of_io(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied => ErrorKind::Permission,
        io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory => ErrorKind::NotAFile,
        io::ErrorKind::OutOfMemory => ErrorKind::OutOfMemory,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::NoSpace,
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => ErrorKind::Damaged,
        _ => ErrorKind::Io,
    }
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSet { place } => write!(
                f,
                "there is no set: {place}: name the folder of a set, which has a folder `manifests`, or build one"
            ),
            Self::Store(error) => error.fmt(f),
            Self::Manifest { name, source } => match source.rule {
                Rule::Magic => write!(f, "not a manifest: {name}: {source}"),
                Rule::Version | Rule::Feature => {
                    write!(f, "the manifest is of a newer version: {name}: {source}: use a newer pleach")
                }
                _ => write!(f, "the manifest is damaged: {name}: {source}: restore it, or roll the set back"),
            },
            Self::Missing { name } => {
                write!(f, "a file of the set is missing: {name}: restore it, or roll the set back")
            }
            Self::File { source, .. } => source.fmt(f),
            Self::Differs { name, what } => write!(
                f,
                "not the file that the manifest describes: {name}: {what}: restore it, or roll the set back"
            ),
            Self::Overlap { first, second } => write!(
                f,
                "two files have keys in common: {first} and {second}: build them from separate ranges of keys"
            ),
            Self::Types { name, what } => {
                write!(f, "not of the types of the set: {name}: {what}: build it with the options of the set")
            }
            Self::Lost { generation } => write!(
                f,
                "another committer was first: generation {generation} is published: commit again, on top of it"
            ),
            Self::Stale { name, age, most } => write!(
                f,
                "the file is too old to be committed: {name}: it is {} s old, and a sweep may delete it; the most \
                 is {} s: write it again, or give a longer grace",
                age.as_secs(),
                most.as_secs()
            ),
            Self::Usage(text) => f.write_str(text),
            Self::Build(error) => error.fmt(f),
            Self::Key { key, holds } => {
                write!(f, "the key is of another type: {key}: the set has {holds} keys: ask for one of them")
            }
        }
    }
}

impl std::error::Error for SetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Manifest { source, .. } => Some(source),
            Self::File { source, .. } => Some(source),
            Self::Build(error) => Some(error),
            _ => None,
        }
    }
}

impl From<StoreError> for SetError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<BuildError> for SetError {
    fn from(error: BuildError) -> Self {
        Self::Build(error.into())
    }
}

/// Error of a store.
#[derive(Debug)]
pub struct StoreError {
    /// What failed: `read`, `create`, `list`, ...
    pub operation: &'static str,
    /// Name of the object, with the place of the set as far as that helps; never a credential.
    pub name: String,
    /// The error. Its kind tells a missing object ([`io::ErrorKind::NotFound`]) and one that is already there
    /// ([`io::ErrorKind::AlreadyExists`]) from others.
    pub source: io::Error,
}

impl StoreError {
    /// Returns true if the object is not there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.source.to_string();
        let text = text.find(" (os error ").map_or(text.as_str(), |end| &text[..end]);
        write!(f, "cannot {}: {}: {text}", self.operation, self.name)
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
