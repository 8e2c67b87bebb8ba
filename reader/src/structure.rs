//! The structures that lead a query to its tuple line, by name.

use crate::way;
use pleach_format::Header;
use pleach_format::section::Tag;
use std::fmt;
use std::str::FromStr;

/// Structure by which look-ups find a tuple line. The answers do not depend on it.
///
/// ```
/// use pleach::{Builder, Index, Map, Structure};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("t.pleach");
/// // Tuple lines and a FAST tree, nothing else.
/// Builder::new().layout("lines,fast:auto".parse()?).build(&path, (0..1000u64).map(|key| (key * key, key)))?;
/// let options = Index::options().structure(Structure::Fast);
/// let map: Map<u64, u64> = Map::with_options(&path, options)?;
/// assert_eq!(map.get(144)?, Some(12));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Structure {
    /// The grid if the file has one, else the spine, else the tree that is expected to be the fastest by its shape.
    /// A file without any of them is searched by bisection of its tuple lines.
    #[default]
    Auto,
    /// The spine.
    Spine,
    /// The grid.
    Grid,
    /// The FAST tree (Kim et al.).
    Fast,
    /// Harmonia's B+tree (Yan et al.).
    Harmonia,
    /// The contiguous B+tree (Daga and Nutter).
    Btree,
}

impl Structure {
    /// All structures.
    pub const ALL: [Self; 6] = [Self::Auto, Self::Spine, Self::Grid, Self::Fast, Self::Harmonia, Self::Btree];

    /// Returns the lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Spine => "spine",
            Self::Grid => "grid",
            Self::Fast => "fast",
            Self::Harmonia => "harmonia",
            Self::Btree => "btree",
        }
    }

    /// Returns the section of the structure; `None` for [`Structure::Auto`].
    #[must_use]
    pub const fn tag(self) -> Option<Tag> {
        match self {
            Self::Auto => None,
            Self::Spine => Some(Tag::SPINE),
            Self::Grid => Some(Tag::GRID),
            Self::Fast => Some(Tag::FAST),
            Self::Harmonia => Some(Tag::HARMONIA),
            Self::Btree => Some(Tag::BTREE),
        }
    }

    /// Reports whether a file has the structure.
    #[must_use]
    pub fn is_in(self, header: &Header) -> bool {
        self.tag().is_none_or(|tag| header.section(tag).is_some())
    }

    /// Returns the structure that a file is searched by: for [`Structure::Auto`] the one that is expected to be
    /// the fastest of those that it has, or still [`Structure::Auto`] if it has none. O(levels).
    #[must_use]
    pub fn in_file(self, header: &Header) -> Self {
        if self != Self::Auto {
            return self;
        }
        // Both were faster than any tree, on every processor, size and distribution of keys measured.
        if let Some(own) = [Self::Grid, Self::Spine].into_iter().find(|structure| structure.is_in(header)) {
            return own;
        }
        let trees = [Self::Fast, Self::Harmonia, Self::Btree].into_iter().filter(|tree| tree.is_in(header));
        let cost = |tree: Self| way::expected_ns(&tree.way(header));
        trees.min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or_default()
    }

    /// Returns the lines that a look-up by this structure reads before the tuple line.
    pub(crate) fn way(self, header: &Header) -> Vec<way::Stop> {
        match self {
            Self::Auto => way::bisection(header),
            Self::Grid => way::grid(header),
            Self::Spine => way::spine(header),
            Self::Fast => header.fast.as_ref().map_or_else(Vec::new, |(_, shape)| way::fast(shape)),
            Self::Harmonia => header.harmonia.as_ref().map_or_else(Vec::new, |(_, tree)| way::harmonia(tree)),
            Self::Btree => header.btree.as_ref().map_or_else(Vec::new, |(_, tree)| way::btree(tree)),
        }
    }
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Structure {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|structure| structure.name() == name)
            .ok_or_else(|| format!("unknown structure `{name}`: auto, spine, grid, fast, harmonia or btree"))
    }
}
