//! Benchmarks of Pleach: every engine in one run, on the same data, with every answer checked.
//!
//! [`lookup`] measures point look-ups, [`keys`] those of keys that are not spread evenly, [`compress`] those of byte
//! keys, [`texts::measure`] those of texts, with prefixes and ranges, [`strategies`] ways to ask, [`range`] scans,
//! [`latency`] look-ups that wait for each other, [`open`] and [`build`] what comes before, [`update`] what comes
//! after, [`gpu`] look-ups on a GPU (with a report of its own). What it prints is a [`Report`]: a table for people, a
//! JSON document (schema `pleach-bench-1`) for scripts and for the charts of [`plot`]. Besides Pleach and its peers
//! each report holds the machine's own [`limit`]: one random line of the same mapped file for each look-up, or
//! another best case of the memory. Engines take turns inside each repetition, so that other load on the machine
//! affects all of them alike. A row is the median of the repetitions. Answers go into buffers that were allocated
//! before, and each answer is compared outside the timed part.

pub mod build;
pub mod compress;
pub mod data;
pub mod gpu;
pub mod keys;
pub mod latency;
pub mod limit;
pub mod lookup;
pub mod machine;
pub mod near;
pub mod open;
mod options;
pub mod plot;

pub mod range;
pub mod ranks;
pub mod report;
pub mod strategies;
pub mod texts;
mod told;
pub mod update;

pub use compress::CompressOptions;
pub use data::Queries;
pub use keys::KeysOptions;
pub use lookup::{LookupOptions, run};
pub use machine::Machine;
pub use options::BenchOptions;
pub use pleach_peers as peers;
pub use report::{Report, Row};
pub use strategies::StrategyOptions;
pub use texts::measure::TextsOptions;
pub use told::Told;

use pleach_builder::remains::{self, Token};
use std::io;
use std::path::{Path, PathBuf};

/// Why a benchmark gave no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The options cannot be measured.
    #[error("{0}")]
    Options(String),
    /// The system refused something.
    #[error("cannot {operation}: {}: {source}", path.display())]
    Io {
        /// The operation that failed: `create`, `map`.
        operation: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Building the Pleach file failed.
    #[error("cannot build the file to measure: {0}")]
    Build(#[from] pleach_builder::BuildError),
    /// Opening the Pleach file failed.
    #[error("cannot open the file that was just built: {0}")]
    Open(#[from] pleach::OpenError),
    /// The Pleach file has other types than it was built with.
    #[error("the file that was just built has other types: {0}")]
    Type(#[from] pleach::TypeError),
    /// A search failed.
    #[error("a search failed: {0}")]
    Read(#[from] pleach::ReadError),
    /// There is no GPU, or it failed.
    #[error(transparent)]
    Gpu(#[from] pleach_gpu::GpuError),
    /// Another engine failed.
    #[error(transparent)]
    Peer(#[from] pleach_peers::PeerError),
    /// The threads could not be started.
    #[error("cannot start threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// An engine gave a wrong answer.
    #[error(
        "{engine} answers wrongly: query {query} of {queries} (key {key}): {found}, expected {expected}: \
         its times mean nothing"
    )]
    Wrong {
        /// The engine.
        engine: String,
        /// Position of the query.
        query: usize,
        /// Number of queries.
        queries: usize,
        /// The key that was looked up.
        key: String,
        /// The answer.
        found: String,
        /// The right answer.
        expected: String,
    },
    /// A report cannot be drawn.
    #[error("{0}")]
    Plot(String),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// A folder that goes when it is dropped, and if the process ends early.
pub struct Folder {
    // Dropped in this order: who ends the process knows the folder until it is gone.
    folder: tempfile::TempDir,
    _token: Token,
}

impl Folder {
    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// A folder for the files of a run, in `dir` or the system's temporary folder; removed with what it returns.
///
/// # Errors
/// [`BenchError::Io`] if it cannot be made.
pub fn folder(dir: Option<&Path>) -> Result<Folder, BenchError> {
    let parent = dir.map_or_else(std::env::temp_dir, Path::to_owned);
    let made = tempfile::Builder::new().prefix("pleach-bench-").tempdir_in(&parent);
    let folder =
        made.map_err(|source| BenchError::Io { operation: "create a folder in", path: parent, source })?;
    let token = remains::register_folder(folder.path());
    Ok(Folder { folder, _token: token })
}
