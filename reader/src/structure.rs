//! The structures that lead a query to its tuple line, by name.

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
    /// The first of those that the file has, in this order: grid, spine, FAST tree, Harmonia's tree, B+tree. A
    /// file without any of them is searched by bisection of its tuple lines.
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

    /// Returns the structure that a file is searched by: for [`Structure::Auto`] the first one that it has, or
    /// still [`Structure::Auto`] if it has none.
    #[must_use]
    pub fn in_file(self, header: &Header) -> Self {
        if self != Self::Auto {
            return self;
        }
        let order = [Self::Grid, Self::Spine, Self::Fast, Self::Harmonia, Self::Btree];
        order.into_iter().find(|structure| structure.is_in(header)).unwrap_or_default()
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
