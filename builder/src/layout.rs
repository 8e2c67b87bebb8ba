//! The sections of a file: their options, and the text of them that is also stored in files.

use pleach_format::btree::{ORDER_MAX, ORDER_MIN};
use pleach_format::classic::paged::{Form, Paged};
use pleach_format::classic::{Geometry, UNIT_BYTES};
use pleach_format::harmonia::{FANOUT_MAX, FANOUT_MIN};
use pleach_format::section::LARGE_SECTION_BYTES;
use std::fmt;
use std::str::FromStr;

/// A FAST tree: form of its pages, and depths of its blocks, lines and pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fast {
    /// How pages store keys.
    pub form: Form,
    /// Lines do not straddle cache lines, and in a large tree pages do not straddle huge pages; else pieces
    /// follow each other without gaps, as in the paper.
    pub padded: bool,
    /// Levels of a SIMD block, d_K; by default those of a line, if 64 bytes hold so many keys. (The paper's 16
    /// bytes are a register of its processors.)
    pub d_k: Option<u32>,
    /// Levels of a line, d_L; by default as many as 64 bytes hold.
    pub d_l: Option<u32>,
    /// Levels of a page, d_P. By default a page of full keys has up to 2 MiB; compressed pages have up to 2^16
    /// keys, so that the keys of a page have much in common.
    pub d_p: Option<u32>,
}

impl Default for Fast {
    /// Returns a padded tree of full keys.
    fn default() -> Self {
        Self { form: Form::Full, padded: true, d_k: None, d_l: None, d_p: None }
    }
}

/// Levels of a compressed page, by default at most.
const COMPRESSED_LEVELS_MAX: u32 = 16;
/// Maximum number of bytes of the keys of a page, which is held in memory while it is written.
const PAGE_BYTES_MAX: u64 = 64 << 20;

impl Fast {
    /// Returns the geometry of a tree of `keys` words of `word_bytes`; `None` if there are too many keys, or if
    /// [`Fast::check`] refuses the words.
    #[must_use]
    pub fn geometry(self, keys: u64, word_bytes: u32) -> Option<Geometry> {
        let paper = Geometry::paper(keys, word_bytes);
        let d_l = self.d_l.unwrap_or(paper.d_l);
        let d_k = self.d_k.unwrap_or(d_l.min(paper.d_l));
        let aligned = self.padded && keys.checked_mul(word_bytes.into())? >= LARGE_SECTION_BYTES;
        let geometry = Geometry { d_k, d_l, padded: self.padded, aligned, ..paper };
        let d_p = self.d_p.unwrap_or_else(|| match self.form {
            Form::Full => full_levels(geometry),
            _ => compressed_levels(geometry),
        });
        let geometry = Geometry { d_p, ..geometry };
        let is_sound = match self.form {
            Form::Full => geometry.tree().is_some(),
            form => Paged::new(geometry, form).is_some(),
        };
        let has_room = d_k <= 6 && ((1u32 << d_k) - 1) * word_bytes <= 64;
        let is_short = d_p < 32 && u64::from(word_bytes) << d_p <= PAGE_BYTES_MAX;
        (is_sound && has_room && is_short).then_some(geometry)
    }

    /// Checks that a tree can hold words of `word_bytes`.
    ///
    /// # Errors
    /// A message that says why not, and what to do.
    pub fn check(self, word_bytes: u32) -> Result<(), LayoutError> {
        let refused = |what: String, advice| Err(LayoutError { what, advice });
        if !self.form.holds(word_bytes) {
            let what = format!("{self} does not hold words of {word_bytes} bytes");
            return refused(
                what,
                "use fast:delta, fast:auto or fast:full; partial keys need words of 8 or 16 bytes",
            );
        }
        if self.geometry(1 << 20, word_bytes).is_none() {
            let what = format!("{self} is no tree of words of {word_bytes} bytes");
            let advice = "use 1 <= dk <= dl <= dp, blocks of at most 64 bytes, pages of at most 64 MiB, and for \
                          compressed pages a dp of at least dl + 3";
            return refused(what, advice);
        }
        Ok(())
    }
}

/// Returns the levels of the largest page of full keys that is no longer than a huge page.
fn full_levels(geometry: Geometry) -> u32 {
    let fits = |d_p: &u32| {
        let page = Geometry { keys: 1 << d_p, d_p: *d_p, aligned: false, ..geometry };
        page.tree().is_some_and(|tree| tree.slots() * u64::from(page.key_bytes) <= UNIT_BYTES)
    };
    (geometry.d_l..22).rev().find(fits).unwrap_or(geometry.d_l)
}

/// Returns the levels of compressed pages: as even as possible, so that none is so small that its record weighs.
fn compressed_levels(geometry: Geometry) -> u32 {
    let levels = geometry.levels().max(1);
    let pages = levels.div_ceil(COMPRESSED_LEVELS_MAX);
    levels.div_ceil(pages).max(geometry.d_l + geometry.key_bytes.ilog2() - 1)
}

impl fmt::Display for Fast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fast:{}:{}", self.form.name(), if self.padded { "padded" } else { "packed" })?;
        for (name, depth) in [("dk", self.d_k), ("dl", self.d_l), ("dp", self.d_p)] {
            if let Some(depth) = depth {
                write!(f, ":{name}={depth}")?;
            }
        }
        Ok(())
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

/// The contiguous B+tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Btree {
    /// Maximum number of children of a node: 4 to 128. A node has at most one key less.
    pub order: u32,
}

impl Default for Btree {
    fn default() -> Self {
        Self { order: 64 }
    }
}

/// How values that are byte strings are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Values {
    /// Each different value once, if that is shorter and there are at most 65,536 of up to 16 MiB; else as
    /// [`Values::Plain`].
    #[default]
    Auto,
    /// The value of each tuple, even if others are equal.
    Plain,
    /// Each different value once: at most 2^24, of up to 256 MiB, which a build holds in memory.
    Dictionary,
}

impl Values {
    /// All forms.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Plain, Self::Dictionary];

    /// Returns the name used on the command line and in layouts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Plain => "plain",
            Self::Dictionary => "dictionary",
        }
    }
}

/// Sections of a file.
///
/// The text form, which is also stored in files, is `lines` followed by the search structures and other optional
/// sections: `spine`, `grid`, `columns`, `packed`, `fast:FORM:PADDING`, `harmonia:FANOUT:PERCENT`, `btree:ORDER`;
/// by `wide`, for words that are never shorter than numeric keys; and by `plain` or `dictionary` for values that are
/// byte strings ([`Values`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The spine.
    pub spine: bool,
    /// A grid, if the keys are spread evenly enough.
    pub grid: bool,
    /// Sorted columns.
    pub columns: bool,
    /// A compressed column of the keys.
    pub packed: bool,
    /// A FAST tree.
    pub fast: Option<Fast>,
    /// Words as long as numeric keys, even if shorter ones tell them apart.
    pub wide: bool,
    /// Harmonia's tree.
    pub harmonia: Option<Harmonia>,
    /// The contiguous B+tree.
    pub btree: Option<Btree>,
    /// How values that are byte strings are stored.
    pub values: Values,
}

impl Default for Layout {
    fn default() -> Self {
        Self { spine: true, grid: true, ..Self::lines() }
    }
}

impl Layout {
    /// Returns the layout of tuple lines alone.
    const fn lines() -> Self {
        Self {
            spine: false,
            grid: false,
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

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lines")?;
        let parts = [
            (self.spine, "spine"),
            (self.grid, "grid"),
            (self.columns, "columns"),
            (self.packed, "packed"),
            (self.wide, "wide"),
            (self.values != Values::Auto, self.values.name()),
        ];
        for (_, name) in parts.into_iter().filter(|(wanted, _)| *wanted) {
            write!(f, ",{name}")?;
        }
        if let Some(fast) = self.fast {
            write!(f, ",{fast}")?;
        }
        if let Some(Harmonia { fanout, fill_percent }) = self.harmonia {
            write!(f, ",harmonia:{fanout}:{fill_percent}")?;
        }
        match self.btree {
            Some(Btree { order }) => write!(f, ",btree:{order}"),
            None => Ok(()),
        }
    }
}

/// The layouts of this version, for messages.
const USABLE: &str = "use lines and optionally spine, grid, columns, packed, wide, plain, dictionary, \
                      fast[:FORM[:PADDING]], harmonia[:FANOUT[:PERCENT]], btree[:ORDER]";
/// The forms of FAST trees, for messages.
const FAST_USABLE: &str =
    "use fast[:full|delta|partial|auto][:packed|padded][:dk=LEVELS][:dl=LEVELS][:dp=LEVELS]";

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
        let mut layout = Self::lines();
        let mut lines = false;
        for part in text.split(',') {
            let mut words = part.split(':');
            let name = words.next().unwrap_or_default();
            let words: Vec<&str> = words.collect();
            match name {
                "fast" => layout.fast = Some(fast(part, &words)?),
                "harmonia" => layout.harmonia = Some(harmonia(part, &words)?),
                "btree" => layout.btree = Some(btree(part, &words)?),
                _ => match part {
                    "lines" => lines = true,
                    "spine" => layout.spine = true,
                    "grid" => layout.grid = true,
                    "columns" => layout.columns = true,
                    "packed" => layout.packed = true,
                    // The name before version 0.11.
                    "classic" => layout.fast = Some(Fast::default()),
                    "wide" => layout.wide = true,
                    "plain" => layout.values = Values::Plain,
                    "dictionary" => layout.values = Values::Dictionary,
                    _ => {
                        return Err(LayoutError { what: format!("unknown layout '{part}'"), advice: USABLE });
                    }
                },
            }
        }
        if !lines {
            return Err(LayoutError { what: format!("no tuple lines in layout '{text}'"), advice: USABLE });
        }
        Ok(layout)
    }
}

/// Parses `words`, the texts after `fast` in `part`.
fn fast(part: &str, words: &[&str]) -> Result<Fast, LayoutError> {
    let mut fast = Fast::default();
    for &word in words {
        let depth = |text: &str| {
            let depth = text.parse().ok().filter(|depth| (1..=64).contains(depth));
            let what = || format!("invalid number '{text}' in '{part}'");
            depth.map(Some).ok_or_else(|| LayoutError { what: what(), advice: FAST_USABLE })
        };
        match word.split_once('=') {
            Some(("dk", text)) => fast.d_k = depth(text)?,
            Some(("dl", text)) => fast.d_l = depth(text)?,
            Some(("dp", text)) => fast.d_p = depth(text)?,
            _ if word == "padded" => fast.padded = true,
            _ if word == "packed" => fast.padded = false,
            _ => match Form::ALL.into_iter().find(|form| form.name() == word) {
                Some(form) => fast.form = form,
                None => {
                    let what = format!("unknown word '{word}' in '{part}'");
                    return Err(LayoutError { what, advice: FAST_USABLE });
                }
            },
        }
    }
    Ok(fast)
}

/// Parses `words`, the texts after `btree` in `part`.
fn btree(part: &str, words: &[&str]) -> Result<Btree, LayoutError> {
    let order = match words {
        [] => Some(Btree::default().order),
        [text] => text.parse().ok(),
        _ => None,
    };
    match order.filter(|order| (ORDER_MIN..=ORDER_MAX).contains(order)) {
        Some(order) => Ok(Btree { order }),
        None => Err(LayoutError {
            what: format!("invalid tree '{part}'"),
            advice: "use btree:ORDER, with an order of 4 to 128",
        }),
    }
}

/// Parses `words`, the texts after `harmonia` in `part`.
fn harmonia(part: &str, words: &[&str]) -> Result<Harmonia, LayoutError> {
    let mut shape = Harmonia::default();
    for (number, text) in words.iter().enumerate() {
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
