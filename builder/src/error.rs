//! Errors of builds. Every message is one line: the fault, the place, the remedy.

use crate::layout::LayoutError;
use crate::source::SourceError;
use pleach_format::{FormatError, KeyType, ValueType};
use std::io;
use std::path::PathBuf;

/// The operation at which the new file is already in place, even if it fails.
pub(crate) const SYNCING_FOLDER: &str = "syncing the folder";

/// Added to the message of an error of that operation.
const IN_PLACE: &str = ": the new file is in place, but a power cut may bring the old one back";

/// Files open besides those merged: standard streams, target, lock, folder, spill files.
const SPARE_FILES: usize = 16;

/// The reason why a build failed.
///
/// The previous file at the target is still there, unless `Io` reports that syncing the folder failed: then
/// the new file is in place, and complete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The input was refused.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The caller promised sorted input, but it is not sorted.
    #[error(
        "input is not sorted: row {row}: key {key} comes after key {previous}: build without --sorted, or sort it"
    )]
    Unsorted {
        /// 0-based row of the key that is out of order.
        row: u64,
        /// Key of the row before.
        previous: String,
        /// Key of that row.
        key: String,
    },
    /// A key is duplicated and `Unique::Error` was chosen.
    #[error(
        "duplicate key: {key}{}: remove it, or choose --unique first or --unique last",
        row.map_or(String::new(), |row| format!(", again in row {row}"))
    )]
    Duplicate {
        /// The duplicate key.
        key: String,
        /// 0-based row of its second tuple, if the input was in order up to there.
        row: Option<u64>,
    },
    /// The values of a key have a sum that does not fit.
    #[error("the sum of key {key} does not fit {value_type}: choose a wider value type")]
    Sum {
        /// The key.
        key: String,
        /// Type of the values.
        value_type: ValueType,
    },
    /// Values of these types cannot be added.
    #[error("{types} cannot be summed up: choose number keys, and values of type u32 or u64")]
    NoSum {
        /// The types.
        types: String,
    },
    /// Two intervals overlap.
    #[error(
        "intervals overlap: {first} and {second}: correct them, or choose --overlap last, by which the later row wins"
    )]
    Overlap {
        /// The one that begins first, and its row if it is known.
        first: String,
        /// The other one.
        second: String,
    },
    /// The observer cancelled the build.
    #[error("interrupted: the build was stopped and left no files: start it again")]
    Interrupted,
    /// Another builder holds the lock of the target.
    #[error("busy: {}: {holder} is building it: wait for it, or choose another name", path.display())]
    Busy {
        /// The target.
        path: PathBuf,
        /// The holder's name, as written in the lock file.
        holder: String,
    },
    /// A system call failed.
    #[error(
        "{operation} failed: {}: {source}{}",
        path.display(),
        if *operation == SYNCING_FOLDER { IN_PLACE } else { "" }
    )]
    Io {
        /// The operation that failed.
        operation: &'static str,
        /// The file or folder it was applied to.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// More files must be open at once than the process may have.
    #[error(
        "too many open files: {files} are merged at once: raise the limit above {} with ulimit -n, or compact them in \
         parts",
        files + SPARE_FILES
    )]
    ManyFiles {
        /// Number of files merged at once.
        files: usize,
    },
    /// A quantity exceeds the limit of the format.
    #[error("too large: {what} has {found}, at most {limit} are possible: build it in parts")]
    TooLarge {
        /// The thing that is too large.
        what: &'static str,
        /// Its size.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// The values have too many different ones for a dictionary.
    #[error("a dictionary holds at most {limit} {what}: choose the values plain or auto")]
    TooManyValues {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// A dictionary was requested for values that are no byte strings.
    #[error(
        "a dictionary holds byte strings and texts, but values of type {value_type} are in the tuple lines: \
         choose the values auto"
    )]
    NoDictionary {
        /// Type of the values.
        value_type: ValueType,
    },
    /// A packed column was requested for keys that it cannot hold.
    #[error("a packed column holds numbers of 4 and 8 bytes, not {key_type}: leave it out of the layout")]
    NotPackable {
        /// Type of the keys.
        key_type: KeyType,
    },
    /// A file to be changed or merged has keys that are shorter than those they stand for.
    #[error(
        "{}: its keys are shorter than those they stand for, so that a change may meet another key: permit it with \
         --approximate, or build the file again",
        path.display()
    )]
    Approximate {
        /// The file.
        path: PathBuf,
    },
    /// A file to be rebuilt or compacted is not a readable Pleach file.
    #[error("{}: {source}", path.display())]
    Base {
        /// The file.
        path: PathBuf,
        /// The fault.
        source: FormatError,
    },
    /// A file to be rebuilt or compacted is damaged.
    #[error(
        "damaged: {}: section {section} at byte {offset} does not match its sum: run pleach fsck, restore \
         it, or recover the rest with --salvage",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Section of the first damaged block.
        section: String,
        /// Offset of its first byte in the file.
        offset: u64,
    },
    /// The changes would duplicate a key in a file of unique keys.
    #[error("duplicate key: {key} would occur twice in a file of unique keys: use put instead of add")]
    NotUnique {
        /// The key.
        key: String,
    },
    /// The changes exceed the memory limit.
    #[error("too many changes for {limit} bytes of memory: give more with --memory, or apply them in parts")]
    ManyChanges {
        /// Memory limit of the options, in bytes.
        limit: u64,
    },
    /// The target is one of the input files.
    #[error("output is the input: {}: name another file", path.display())]
    OutputIsInput {
        /// The target.
        path: PathBuf,
    },
    /// The target is a kept generation of an index.
    #[error("output is a kept generation: {}: name another file, or use pleach rollback", path.display())]
    OutputIsKept {
        /// The target.
        path: PathBuf,
    },
    /// An index would replace a file that is not a Pleach file.
    #[error("not a Pleach file: {}: name another file, or replace it with --force", path.display())]
    TargetForeign {
        /// The target.
        path: PathBuf,
    },
    /// A table would replace an index.
    #[error(
        "is a Pleach file, not a table: {}: name another file, or replace it with --force", path.display()
    )]
    TargetIsIndex {
        /// The target.
        path: PathBuf,
    },
    /// The file was replaced by another process during the rebuild.
    #[error(
        "replaced by another process: {}: it is no longer the file that was read: start again", path.display()
    )]
    Overtaken {
        /// The file.
        path: PathBuf,
    },
    /// The lock file can be opened by its owner alone.
    #[error(
        "lock of another user: {}: it belongs to user {owner}, who alone can see whether it is in use: ask \
         them to finish or to remove it",
        path.display()
    )]
    LockClosed {
        /// The lock file.
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
    },
    /// The name for an old generation is in use.
    #[error("name in use: {}: {what} has the name for the old generation: move it", path.display())]
    GenerationTaken {
        /// The name.
        path: PathBuf,
        /// Description of the file that has the name.
        what: String,
    },
    /// The requested generation is not kept.
    #[error("no such generation: {}: {what}: see pleach generations", path.display())]
    NoGeneration {
        /// The index, or the name that the generation would have.
        path: PathBuf,
        /// Description of what was found there.
        what: String,
    },
    /// The generation number of the file has no successor.
    #[error(
        "generation {} is the last possible one: {}: compact the file under another name, which starts again",
        u64::MAX,
        path.display()
    )]
    LastGeneration {
        /// The file.
        path: PathBuf,
    },
    /// Files to be merged hold other types than the first.
    #[error(
        "types differ: {}: it holds {found}, but {} holds {expected}: compact files of the same types",
        path.display(),
        first.display()
    )]
    Types {
        /// The file.
        path: PathBuf,
        /// Its types.
        found: String,
        /// The first file.
        first: PathBuf,
        /// Types of the first file.
        expected: String,
    },
    /// The shape of Harmonia's tree is outside its limits.
    #[error(
        "Harmonia's tree of fanout {fanout}, {fill_percent}% full: fanout is 8 to 128, nodes are 50 to 100% full"
    )]
    Harmonia {
        /// Maximum number of children of a node.
        fanout: u32,
        /// Fill of the nodes in percent.
        fill_percent: u32,
    },
    /// A section of the layout cannot hold the keys.
    #[error(transparent)]
    Layout(LayoutError),
    /// The target is a folder.
    #[error("is a folder: {}: name a file", path.display())]
    TargetIsDirectory {
        /// The target.
        path: PathBuf,
    },
    /// The target exists and is not a regular file: a device, a pipe or a socket.
    #[error("not a regular file: {}: name another file", path.display())]
    TargetNotRegular {
        /// The target.
        path: PathBuf,
    },
    /// The system cannot provide memory that the options allow.
    #[error("out of memory: {bytes} bytes for sorting are not available: choose a smaller --memory")]
    OutOfMemory {
        /// Number of bytes requested.
        bytes: u64,
    },
    /// The system cannot start a thread pool of the requested size.
    #[error(
        "cannot start {threads} threads ({problem}): choose a smaller --threads, or raise the limit (ulimit -u, the \
         container's)"
    )]
    Threads {
        /// Number of threads requested.
        threads: usize,
        /// Error text of the library.
        problem: String,
    },
}

impl BuildError {
    /// Returns true if an input file is damaged.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Base { source, .. } => source.is_damage(),
            Self::Source(SourceError { cause: Some(cause), .. }) => {
                cause.downcast_ref::<Self>().is_some_and(Self::is_damage)
            }
            _ => false,
        }
    }

    /// Wraps an error of the system.
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { operation, path: path.into(), source }
    }
}
