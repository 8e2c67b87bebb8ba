//! Options of a build, and its report.

use crate::layout::{Btree, Fast, Harmonia, Layout, Values};
use pleach_format::approximate::Approximate;
use pleach_format::{KeyType, ValueType};
use std::path::PathBuf;

/// Maximum number of threads, whatever is requested: starting tens of thousands would take minutes, for no
/// gain.
pub const THREADS_MAX: usize = 1024;

/// Treatment of tuples with equal keys. Without a choice all of them are kept, in input order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unique {
    /// The build fails at the first duplicate key.
    Error,
    /// Keeps the first tuple of a key in input order.
    First,
    /// Keeps the last tuple of a key in input order.
    Last,
    /// Makes one tuple of a key, whose value is the sum of all; values are `u32` or `u64`, and keys numbers.
    Sum,
}

impl Unique {
    /// Returns the name used on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::First => "first",
            Self::Last => "last",
            Self::Sum => "sum",
        }
    }
}

/// What is done with intervals that overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Overlap {
    /// The build fails at the first two.
    #[default]
    Error,
    /// The later row wins where they overlap, and the other interval is cut.
    Last,
}

/// Options of a build.
///
/// Only `unique`, `generation` and the sections determine the bytes of the file. If the file replaces an index,
/// the generation and the lineage of that index do, too.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// Treatment of equal keys; `None` keeps them all.
    pub unique: Option<Unique>,
    /// Treatment of intervals that overlap.
    pub overlap: Overlap,
    /// The caller promises sorted input: a key out of order is an error, and nothing is ever sorted.
    pub sorted: bool,
    /// Memory limit in bytes. A limit below about 128 MiB cannot be kept: 32 MiB of lines are held back until
    /// their place in the file is known, and chunks and pieces are in flight.
    pub memory_bytes: u64,
    /// Number of threads, at most [`THREADS_MAX`]; 0 selects the current rayon pool.
    pub threads: usize,
    /// Folder for spilled runs; the folder of the target by default.
    pub temp_dir: Option<PathBuf>,
    /// Minimum generation number of the new file. A file that replaces an index becomes the next generation
    /// of that index, whatever its content.
    pub generation: u64,
    /// Number of old generations to keep, named by [`kept_path`](crate::rebuild::kept_path); `None` keeps
    /// none and removes none.
    pub keep: Option<usize>,
    /// Input files of the build; none of them may be the target.
    pub inputs: Vec<PathBuf>,
    /// Also replace a file that is not a Pleach file. Otherwise the target must be missing, empty or a Pleach
    /// file.
    pub force: bool,
    /// Add the spine. Without any search structure look-ups bisect the tuple lines.
    pub spine: bool,
    /// Add a grid, if keys of 4 or 8 bytes are spread evenly enough: look-ups take half the time.
    pub grid: bool,
    /// Add sorted columns to the tuple lines.
    pub columns: bool,
    /// Add a compressed column of the keys, which must be numbers of 4 or 8 bytes.
    pub packed: bool,
    /// Add a FAST tree.
    pub fast: Option<Fast>,
    /// Make words as long as numeric keys, even if shorter ones tell them apart.
    pub wide: bool,
    /// Add Harmonia's B+tree.
    pub harmonia: Option<Harmonia>,
    /// Add the contiguous B+tree.
    pub btree: Option<Btree>,
    /// How values that are byte strings are stored.
    pub values: Values,
}

impl BuildOptions {
    /// Returns the requested sections.
    #[must_use]
    pub fn layout(&self) -> Layout {
        let Self { spine, grid, columns, packed, fast, wide, harmonia, btree, values, .. } = *self;
        Layout { spine, grid, columns, packed, fast, wide, harmonia, btree, values }
    }

    /// Replaces the requested sections.
    #[must_use]
    pub fn with_layout(self, layout: Layout) -> Self {
        let Layout { spine, grid, columns, packed, fast, wide, harmonia, btree, values } = layout;
        Self { spine, grid, columns, packed, fast, wide, harmonia, btree, values, ..self }
    }
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            unique: None,
            overlap: Overlap::Error,
            sorted: false,
            memory_bytes: physical_memory_bytes() / 2,
            threads: 0,
            temp_dir: None,
            generation: 1,
            keep: None,
            inputs: Vec::new(),
            force: false,
            spine: true,
            grid: true,
            columns: false,
            packed: false,
            fast: None,
            wide: false,
            harmonia: None,
            btree: None,
            values: Values::Auto,
        }
    }
}

/// Returns the bytes of memory that this process may use: the minimum of the machine's memory, the limits of
/// its control groups, `ulimit -v` and `ulimit -d`; 2 GiB if the machine's memory is unknown. Measured once,
/// since default options call it.
#[must_use]
pub fn physical_memory_bytes() -> u64 {
    static FOUND: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *FOUND.get_or_init(|| crate::limits::memory_bytes(std::path::Path::new("/")))
}

/// Report of a build.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Number of tuples read.
    pub rows: u64,
    /// Number of tuples in the file.
    pub tuples: u64,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Identity of the file's content.
    pub file_id: [u8; 16],
    /// Generation of the file.
    pub generation: u64,
    /// Type of the keys.
    pub key_type: KeyType,
    /// Type of the values.
    pub value_type: ValueType,
    /// Logical type of the keys in Arrow's notation; empty if plain.
    pub key_logical: String,
    /// How often absent keys are found, if keys are shorter than those they stand for.
    pub approximate: Option<Approximate>,
    /// True if each key has one tuple because the options required it.
    pub unique: bool,
    /// True if the input was in order and was not sorted.
    pub sorted_input: bool,
    /// Number of sorted runs spilled to disk.
    pub runs: u64,
    /// Encoding and lines of each level of the spine, bottom level first.
    pub spine: Vec<(String, u64)>,
    /// Number of old generations now kept; `None` if `keep` was not set.
    pub kept: Option<usize>,
    /// Reason why old generations that should have been removed are still there. The build succeeded all the
    /// same.
    pub left: Option<String>,
}
