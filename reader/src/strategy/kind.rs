//! The strategies to answer a batch, and their names.

use std::fmt;
use std::str::FromStr;

/// Strategy to answer a batch. The answers do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The strategy that the planner expects to be fastest.
    #[default]
    Auto,
    /// One descent after the other: the first answer comes soonest.
    OneByOne,
    /// The queries are searched as they come, in groups whose misses overlap:
    /// [`Typed::get_batch`](crate::Typed::get_batch). This is section 8 (a) in files whose separators are
    /// whole keys, and (b), unbuffered and compressed, in files with codes or a grid. Batches that ascend are
    /// swept.
    Unbuffered,
    /// Queries are first put into buffers by the part of the table they belong to, then searched buffer by
    /// buffer, while that part stays in a cache: section 8 (c).
    Buffered,
    /// Queries are sorted, then swept over the table: section 8 (d).
    Sorted,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Self; 5] = [Self::Auto, Self::OneByOne, Self::Unbuffered, Self::Buffered, Self::Sorted];

    /// Returns the lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::OneByOne => "one-by-one",
            Self::Unbuffered => "unbuffered",
            Self::Buffered => "buffered",
            Self::Sorted => "sorted",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Strategy {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name).ok_or_else(|| {
            format!("unknown strategy `{name}`: auto, one-by-one, unbuffered, buffered or sorted")
        })
    }
}
