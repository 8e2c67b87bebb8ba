//! Why a build failed. Every message is one line: what, where, what to do.

use crate::source::SourceError;
use pleach_format::{FormatError, KeyType};
use std::io;
use std::path::PathBuf;

/// The operation after which the new file is in place, whatever comes of it.
pub(crate) const SYNCING_FOLDER: &str = "syncing the folder";

/// What its error says.
const IN_PLACE: &str = ": the new file is in place, but a power cut may bring the old one back";

/// Files that are open besides those that are merged: standard ones, the target, its lock, its folder, what is spilled.
const SPARE_FILES: usize = 16;

/// Why a build failed. Whatever was at the target before is still there, unless `Io` says that
/// syncing the folder failed: then the new file is in place, and complete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The input was refused.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// `sorted` was promised and is not true.
    #[error(
        "input is not sorted: row {row}: key {key} comes after key {previous}: build without --sorted, or sort it"
    )]
    Unsorted {
        /// 0-based row of the key that is out of order.
        row: u64,
        /// The key before it.
        previous: String,
        /// The key.
        key: String,
    },
    /// A key stands twice and `Unique::Error` was chosen.
    #[error(
        "duplicate key: {key}{}: remove it, or choose --unique first or --unique last",
        row.map_or(String::new(), |row| format!(", again in row {row}"))
    )]
    Duplicate {
        /// The key.
        key: String,
        /// 0-based row of its second tuple, if the input came in order so far.
        row: Option<u64>,
    },
    /// The observer asked to stop.
    #[error("interrupted: the build was stopped and left nothing behind: start it again")]
    Interrupted,
    /// Another builder is at work on the same target.
    #[error("busy: {}: {holder} is building it: wait for it, or choose another name", path.display())]
    Busy {
        /// The target.
        path: PathBuf,
        /// Who holds the lock.
        holder: String,
    },
    /// A system call failed.
    #[error(
        "{operation} failed: {}: {source}{}",
        path.display(),
        if *operation == SYNCING_FOLDER { IN_PLACE } else { "" }
    )]
    Io {
        /// What was being done.
        operation: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// More files are to be open at once than the process may have.
    #[error(
        "too many open files: {files} are merged at once: raise the limit above {} with ulimit -n, or compact them in \
         parts",
        files + SPARE_FILES
    )]
    ManyFiles {
        /// How many files.
        files: usize,
    },
    /// More than the format can hold.
    #[error("too large: {what} has {found}, at most {limit} can be held: build it in parts")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        found: u64,
        /// The most that is possible.
        limit: u64,
    },
    /// A compressed column was asked for, of keys that it cannot hold.
    #[error("a packed column holds numbers of 4 and 8 bytes, not {key_type}: leave it out of the layout")]
    NotPackable {
        /// Type of the keys.
        key_type: KeyType,
    },
    /// A file that is to be rebuilt or compacted cannot be read as one of ours.
    #[error("{}: {source}", path.display())]
    Base {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: FormatError,
    },
    /// A file that is to be rebuilt or compacted is damaged.
    #[error(
        "damaged: {}: section {section} at byte {offset} does not match its sum: look with fsck, restore it, or \
         take what is whole with --salvage",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Section of the first damaged block.
        section: String,
        /// Its first byte.
        offset: u64,
    },
    /// Changes would leave a key twice in a file of unique keys.
    #[error("duplicate key: {key} would stand twice in a file of unique keys: put it instead of adding it")]
    NotUnique {
        /// The key.
        key: String,
    },
    /// More changes than the memory holds.
    #[error("too many changes for {limit} bytes of memory: give more with --memory, or apply them in parts")]
    ManyChanges {
        /// Bytes that the options allow.
        limit: u64,
    },
    /// The target is a file that is read.
    #[error("output is the input: {}: name another file", path.display())]
    OutputIsInput {
        /// The target.
        path: PathBuf,
    },
    /// The target is a kept generation of an index.
    #[error("output is a kept generation: {}: name another file, or see rollback", path.display())]
    OutputIsKept {
        /// The target.
        path: PathBuf,
    },
    /// An index would replace a file that is not ours.
    #[error("not a Pleach file: {}: name another file, or replace it with --force", path.display())]
    TargetForeign {
        /// The target.
        path: PathBuf,
    },
    /// A table would replace an index.
    #[error("is a Pleach file, and no table: {}: name another file, or replace it with --force", path.display())]
    TargetIsIndex {
        /// The target.
        path: PathBuf,
    },
    /// Somebody replaced the file that was being rebuilt.
    #[error("replaced by somebody else: {}: it is not what was read any more: start again", path.display())]
    Overtaken {
        /// The file.
        path: PathBuf,
    },
    /// A lock file that nobody but its owner can look at.
    #[error(
        "lock of another user: {}: it belongs to user {owner}, who alone can tell whether it is in use: ask them to \
         finish or to remove it",
        path.display()
    )]
    LockClosed {
        /// The lock file.
        path: PathBuf,
        /// Number of its owner.
        owner: u32,
    },
    /// Something else stands where an old generation is to be kept.
    #[error("name taken: {}: {what} stands where the old generation is to be kept: move it away", path.display())]
    GenerationTaken {
        /// The name.
        path: PathBuf,
        /// What has it.
        what: String,
    },
    /// No such generation is kept.
    #[error("no such generation: {}: {what}: see pleach generations", path.display())]
    NoGeneration {
        /// The index, or the name that the generation would have.
        path: PathBuf,
        /// What is there.
        what: String,
    },
    /// A file whose generation has no next one.
    #[error(
        "{}: generation {} is the last one there can be: compact the file under another name, which starts anew",
        path.display(),
        u64::MAX
    )]
    LastGeneration {
        /// The file.
        path: PathBuf,
    },
    /// Files that are to become one hold other types.
    #[error(
        "types differ: {}: it holds {found}, but {} holds {expected}: compact files of one kind",
        path.display(),
        first.display()
    )]
    Types {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: String,
        /// The first file.
        first: PathBuf,
        /// What that holds.
        expected: String,
    },
    /// A shape of Harmonia's tree outside its limits.
    #[error(
        "Harmonia's tree of fanout {fanout}, {fill_percent}% full: fanout is 8 to 128, nodes are 50 to 100% full"
    )]
    Harmonia {
        /// Most children of a node.
        fanout: u32,
        /// How full nodes are.
        fill_percent: u32,
    },
    /// The target is a folder.
    #[error("is a folder: {}: name a file", path.display())]
    TargetIsDirectory {
        /// The target.
        path: PathBuf,
    },
    /// The target is there and is no regular file: a device, a pipe, a socket.
    #[error("not a regular file: {}: name another file", path.display())]
    TargetNotRegular {
        /// The target.
        path: PathBuf,
    },
    /// Memory that the options allow cannot be had.
    #[error("out of memory: {bytes} bytes for sorting cannot be had: choose a smaller --memory")]
    OutOfMemory {
        /// Bytes that were asked for.
        bytes: u64,
    },
    /// No thread pool of the wanted size.
    #[error(
        "cannot start {threads} threads ({problem}): choose a smaller --threads, or raise the limit (ulimit -u, the \
         container's)"
    )]
    Threads {
        /// Threads that were asked for.
        threads: usize,
        /// What the library said.
        problem: String,
    },
}

impl BuildError {
    /// Whether a file that was read is damaged.
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
