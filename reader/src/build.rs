//! Building files: [`Builder`], its options and its errors, from the crate `pleach-builder`.
//!
//! ```
//! use pleach::build::{Builder, Layout, Unique};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("words.pleach");
//! let layout: Layout = "lines,spine,columns".parse()?;
//! let builder = Builder::new().threads(2).memory(1 << 30).layout(layout).unique(Unique::Error);
//! let summary = builder.build(&path, ["pear", "apple"].map(|word| (word, word.len() as u32)))?;
//! assert_eq!(summary.tuples, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use pleach_builder::{
    BuildError, BuildField, BuildKey, BuildOptions, BuildValue, Builder, Chunk, ChunkSource, Column,
    Harmonia, Layout, Observer, Overlap, Phase, Schema, Silent, Source, SourceError, Strings, Summary,
    Unique, Values, build,
};
