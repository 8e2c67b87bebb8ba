//! What a caller may choose, and what a build reports.

use pleach_format::harmonia::{FANOUT_MAX, FANOUT_MIN};
use pleach_format::{KeyType, ValueType};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Threads at most, however many are asked for: tens of thousands would take minutes to find that there is no work.
pub const THREADS_MAX: usize = 1024;

/// What happens to tuples with equal keys. Without a choice all of them are kept, in input order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unique {
    /// The build fails at the first key that stands twice.
    Error,
    /// The first tuple of a key in input order is kept.
    First,
    /// The last tuple of a key in input order is kept.
    Last,
}

impl Unique {
    /// Name on the command line.
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
    /// Most children of a node: 8 to 128.
    pub fanout: u32,
    /// Keys of each node but the last of its level, in percent of its places: 50 to 100.
    pub fill_percent: u32,
}

impl Default for Harmonia {
    /// As in the paper's tables; nodes as full as those of a B+tree become by random inserts.
    fn default() -> Self {
        Self { fanout: 64, fill_percent: 69 }
    }
}

impl Harmonia {
    /// Whether it is inside its limits.
    #[must_use]
    pub fn is_sound(self) -> bool {
        (FANOUT_MIN..=FANOUT_MAX).contains(&self.fanout) && (50..=100).contains(&self.fill_percent)
    }

    /// Keys of a full node.
    #[must_use]
    pub fn node_keys(self) -> u32 {
        pleach_format::harmonia::node_keys(self.fanout, self.fill_percent)
    }
}

/// Which sections a file has besides its tuple lines and its spine. As a text, which is how files keep it:
/// `lines,spine`, and `grid`, `columns`, `packed`, `classic`, `harmonia:FANOUT:PERCENT` where they are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// A grid, if keys are spread evenly enough.
    pub grid: bool,
    /// Sorted columns.
    pub columns: bool,
    /// A compressed column of the keys.
    pub packed: bool,
    /// The classic FAST tree.
    pub classic: bool,
    /// Harmonia's tree.
    pub harmonia: Option<Harmonia>,
}

impl Default for Layout {
    fn default() -> Self {
        Self { grid: true, columns: false, packed: false, classic: false, harmonia: None }
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
    "use lines,spine and if you like grid, columns, packed, classic, harmonia[:FANOUT[:PERCENT]]";

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
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
                "btree" => return Err(format!("this version does not make '{text}': {USABLE}")),
                _ => match part
                    .strip_prefix("harmonia")
                    .filter(|rest| rest.is_empty() || rest.starts_with(':'))
                {
                    Some(rest) => layout.harmonia = Some(harmonia(part, rest)?),
                    None => return Err(format!("'{part}' is no layout: {USABLE}")),
                },
            }
        }
        if !(lines && spine) {
            return Err(format!("this version does not make '{text}': {USABLE}"));
        }
        Ok(layout)
    }
}

/// What follows `harmonia` in `part`.
fn harmonia(part: &str, rest: &str) -> Result<Harmonia, String> {
    let mut shape = Harmonia::default();
    for (number, text) in rest.split(':').skip(1).enumerate() {
        let value = text.parse().map_err(|_| format!("'{text}' in '{part}' is no number"))?;
        match number {
            0 => shape.fanout = value,
            1 => shape.fill_percent = value,
            _ => shape.fanout = 0,
        }
    }
    if shape.is_sound() {
        return Ok(shape);
    }
    Err(format!("'{part}': give harmonia:FANOUT:PERCENT, a fanout of 8 to 128, nodes 50 to 100 percent full"))
}

/// Choices of a build. Only `unique`, `grid`, `columns`, `packed`, `classic`, `harmonia` and `generation`
/// shape the bytes of the file; and, where it takes the place of an index, that one's generation and lineage.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// What to do with equal keys; `None` keeps them all.
    pub unique: Option<Unique>,
    /// The input is promised to be sorted: a key out of order is an error, nothing is ever sorted.
    pub sorted: bool,
    /// Bytes of memory to stay below. Less than about 128 MiB cannot be kept: 32 MiB of lines are
    /// held back before their place in the file is chosen, and chunks and pieces are in flight.
    pub memory_bytes: u64,
    /// Threads to use, at most [`THREADS_MAX`]; 0 = the current rayon pool.
    pub threads: usize,
    /// Where sorted runs are spilled; by default the folder of the target.
    pub temp_dir: Option<PathBuf>,
    /// Least generation number of the new file. One that takes the place of an index is its next generation, whatever
    /// it holds.
    pub generation: u64,
    /// Old generations to keep, as [`kept_path`](crate::rebuild::kept_path) names them; `None` keeps none and removes
    /// none.
    pub keep: Option<usize>,
    /// Files that are read for it: no file of them is replaced.
    pub inputs: Vec<PathBuf>,
    /// Replace a file that is not ours, too. Without it a build takes the place of nothing, of an empty file, or of a
    /// Pleach file.
    pub force: bool,
    /// Keep a grid too, where keys of 4 or 8 bytes are spread evenly enough: look-ups take half the time.
    pub grid: bool,
    /// Keep sorted columns too, beside the tuple lines.
    pub columns: bool,
    /// Keep a compressed column of the keys too: numbers of 4 and 8 bytes.
    pub packed: bool,
    /// Keep the classic FAST tree too, to be measured. Its words are in memory while it is built.
    pub classic: bool,
    /// Keep Harmonia's B+tree too.
    pub harmonia: Option<Harmonia>,
}

impl BuildOptions {
    /// The sections that are wanted.
    #[must_use]
    pub fn layout(&self) -> Layout {
        let Self { grid, columns, packed, classic, harmonia, .. } = *self;
        Layout { grid, columns, packed, classic, harmonia }
    }

    /// With other sections.
    #[must_use]
    pub fn with_layout(self, layout: Layout) -> Self {
        let Layout { grid, columns, packed, classic, harmonia } = layout;
        Self { grid, columns, packed, classic, harmonia, ..self }
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
            harmonia: None,
        }
    }
}

/// Memory that this process may take: of the machine, of the control groups that it is in, of `ulimit -v` and
/// `ulimit -d`, whichever is least; 2 GiB if nothing can be found out. Looked at once: defaults of options ask for it.
#[must_use]
pub fn physical_memory_bytes() -> u64 {
    static FOUND: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *FOUND.get_or_init(|| crate::limits::memory_bytes(std::path::Path::new("/")))
}

/// What was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Tuples that were read.
    pub rows: u64,
    /// Tuples in the file.
    pub tuples: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Identity of the file's content.
    pub file_id: [u8; 16],
    /// Generation of the file.
    pub generation: u64,
    /// Type of the keys.
    pub key_type: KeyType,
    /// Type of the values.
    pub value_type: ValueType,
    /// Whether no key stands twice because the options said so.
    pub unique: bool,
    /// Whether the input came in order and was not sorted.
    pub sorted_input: bool,
    /// Sorted runs that were spilled to disk.
    pub runs: u64,
    /// Encoding and lines of each level of the spine, bottom level first.
    pub spine: Vec<(String, u64)>,
    /// Old generations that are kept now; `None` if none were asked for.
    pub kept: Option<usize>,
    /// Why old generations are left that should have been removed: no failure, the new one is in place.
    pub left: Option<String>,
}
