//! Options of a build, and its report.

use pleach_format::harmonia::{FANOUT_MAX, FANOUT_MIN};
use pleach_format::{KeyType, ValueType};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

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
}

impl Unique {
    /// Returns the name used on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::First => "first",
            Self::Last => "last",
        }
    }
}

/// Shape of Harmonia's B+tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Harmonia {
    /// Maximum number of children of a node: 8 to 128.
    pub fanout: u32,
    /// Fill of the nodes in percent of their key slots: 50 to 100. The last node of a level may hold fewer
    /// keys.
    pub fill_percent: u32,
}

impl Default for Harmonia {
    /// Returns the fanout of the paper's tables, and the fill that nodes of a B+tree reach by random inserts.
    fn default() -> Self {
        Self { fanout: 64, fill_percent: 69 }
    }
}

impl Harmonia {
    /// Returns true if fanout and fill are within their limits.
    #[must_use]
    pub fn is_sound(self) -> bool {
        (FANOUT_MIN..=FANOUT_MAX).contains(&self.fanout) && (50..=100).contains(&self.fill_percent)
    }

    /// Returns the number of keys of a node filled to `fill_percent`.
    #[must_use]
    pub fn node_keys(self) -> u32 {
        pleach_format::harmonia::node_keys(self.fanout, self.fill_percent)
    }
}

/// Sections of a file.
///
/// The text form, which is also stored in files, is `lines,spine` followed by the optional sections: `grid`,
/// `columns`, `packed`, `classic`, `harmonia:FANOUT:PERCENT`; and by `wide`, for words that are never shorter
/// than numeric keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// A grid, if the keys are spread evenly enough.
    pub grid: bool,
    /// Sorted columns.
    pub columns: bool,
    /// A compressed column of the keys.
    pub packed: bool,
    /// The classic FAST tree.
    pub classic: bool,
    /// Words as long as numeric keys, even if shorter ones tell them apart.
    pub wide: bool,
    /// Harmonia's tree.
    pub harmonia: Option<Harmonia>,
}

impl Default for Layout {
    fn default() -> Self {
        Self { grid: true, columns: false, packed: false, classic: false, wide: false, harmonia: None }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lines,spine")?;
        let parts = [
            (self.grid, "grid"),
            (self.columns, "columns"),
            (self.packed, "packed"),
            (self.classic, "classic"),
            (self.wide, "wide"),
        ];
        for (_, name) in parts.into_iter().filter(|(wanted, _)| *wanted) {
            write!(f, ",{name}")?;
        }
        match self.harmonia {
            Some(Harmonia { fanout, fill_percent }) => write!(f, ",harmonia:{fanout}:{fill_percent}"),
            None => Ok(()),
        }
    }
}

/// The layouts of this version, for messages.
const USABLE: &str =
    "use lines,spine and optionally grid, columns, packed, classic, wide, harmonia[:FANOUT[:PERCENT]]";

/// The reason why a text is not a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutError {
    /// The fault, with the text that caused it.
    pub what: String,
    /// What to write instead.
    pub advice: &'static str,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.advice)
    }
}

impl std::error::Error for LayoutError {}

impl FromStr for Layout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let refused = |what: String| LayoutError { what, advice: USABLE };
        let mut layout = Self { grid: false, ..Self::default() };
        let (mut lines, mut spine) = (false, false);
        for part in text.split(',') {
            match part {
                "lines" => lines = true,
                "spine" => spine = true,
                "grid" => layout.grid = true,
                "columns" => layout.columns = true,
                "packed" => layout.packed = true,
                "classic" => layout.classic = true,
                "wide" => layout.wide = true,
                "btree" => return Err(refused(format!("unsupported layout '{text}'"))),
                _ => match part
                    .strip_prefix("harmonia")
                    .filter(|rest| rest.is_empty() || rest.starts_with(':'))
                {
                    Some(rest) => layout.harmonia = Some(harmonia(part, rest)?),
                    None => return Err(refused(format!("unknown layout '{part}'"))),
                },
            }
        }
        if !(lines && spine) {
            return Err(refused(format!("unsupported layout '{text}'")));
        }
        Ok(layout)
    }
}

/// Parses `rest`, the text after `harmonia` in `part`.
fn harmonia(part: &str, rest: &str) -> Result<Harmonia, LayoutError> {
    let mut shape = Harmonia::default();
    for (number, text) in rest.split(':').skip(1).enumerate() {
        let value = text.parse().map_err(|_| LayoutError {
            what: format!("invalid number '{text}' in '{part}'"),
            advice: "use harmonia:FANOUT:PERCENT",
        })?;
        match number {
            0 => shape.fanout = value,
            1 => shape.fill_percent = value,
            _ => shape.fanout = 0,
        }
    }
    if shape.is_sound() {
        return Ok(shape);
    }
    Err(LayoutError {
        what: format!("invalid tree '{part}'"),
        advice: "use harmonia:FANOUT:PERCENT, with a fanout of 8 to 128 and nodes 50 to 100 percent full",
    })
}

/// Options of a build.
///
/// Only `unique`, `grid`, `columns`, `packed`, `classic`, `wide`, `harmonia` and `generation` determine the
/// bytes of the file. If the file replaces an index, the generation and the lineage of that index do, too.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// Treatment of equal keys; `None` keeps them all.
    pub unique: Option<Unique>,
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
    /// Add a grid, if keys of 4 or 8 bytes are spread evenly enough: look-ups take half the time.
    pub grid: bool,
    /// Add sorted columns to the tuple lines.
    pub columns: bool,
    /// Add a compressed column of the keys, which must be numbers of 4 or 8 bytes.
    pub packed: bool,
    /// Add the classic FAST tree, for measurements. Its words are in memory while it is built.
    pub classic: bool,
    /// Make words as long as numeric keys, even if shorter ones tell them apart.
    pub wide: bool,
    /// Add Harmonia's B+tree.
    pub harmonia: Option<Harmonia>,
}

impl BuildOptions {
    /// Returns the requested sections.
    #[must_use]
    pub fn layout(&self) -> Layout {
        let Self { grid, columns, packed, classic, wide, harmonia, .. } = *self;
        Layout { grid, columns, packed, classic, wide, harmonia }
    }

    /// Replaces the requested sections.
    #[must_use]
    pub fn with_layout(self, layout: Layout) -> Self {
        let Layout { grid, columns, packed, classic, wide, harmonia } = layout;
        Self { grid, columns, packed, classic, wide, harmonia, ..self }
    }
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            unique: None,
            sorted: false,
            memory_bytes: physical_memory_bytes() / 2,
            threads: 0,
            temp_dir: None,
            generation: 1,
            keep: None,
            inputs: Vec::new(),
            force: false,
            grid: true,
            columns: false,
            packed: false,
            classic: false,
            wide: false,
            harmonia: None,
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
