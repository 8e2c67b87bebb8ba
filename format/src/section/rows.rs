//! The sections of this version, one row each.

use super::parameters::{
    BtreeParameters, ColumnParameters, FastParameters, GridParameters, HarmoniaParameters, LineParameters,
    PackedParameters, SpineParameters, TextParameters, TrieParameters,
};
use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Name of a section: four ASCII bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(transparent)]
pub struct Tag(pub [u8; 4]);

/// When the entry of a section carries the flag [`super::REQUIRED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Always: answers depend on the section.
    Required,
    /// Never: a reader that does not know the tag can ignore the section.
    Skippable,
    /// If keys or values are stored nowhere else.
    ByContent,
}

/// What the format says about a kind of section.
#[derive(Clone, Copy, Debug)]
pub struct SectionKind {
    /// Name in the section table.
    pub tag: Tag,
    /// The name as text.
    pub name: &'static str,
    /// What the section contains, in a few words.
    pub content: &'static str,
    /// What `elements` of its entry counts, in the singular.
    pub element: &'static str,
    /// When it is required.
    pub need: Need,
    /// Names of its parameters; empty if it has none, and its 64 bytes are zero.
    pub parameters: &'static [&'static str],
}

/// Defines the tags and the list of all sections, in the order in which they are stored.
macro_rules! sections {
    ($(
        $(#[$doc:meta])*
        $tag:ident = $name:literal, $content:literal, $element:literal, $need:ident, $parameters:expr;
    )*) => {
        impl Tag {
            $($(#[$doc])* pub const $tag: Tag = match $name.as_bytes().first_chunk() {
                Some(&bytes) => Tag(bytes),
                None => panic!("four bytes"),
            };)*
        }

        /// All sections of this version, in the order in which they are stored.
        pub const SECTIONS: &[SectionKind] = &[$(SectionKind {
            tag: Tag::$tag,
            name: $name,
            content: $content,
            element: $element,
            need: Need::$need,
            parameters: $parameters,
        },)*];
    };
}

sections! {
    /// Names and logical types.
    META = "META", "names", "record", Skippable, &[];
    /// Tuple lines.
    LINE = "LINE", "tuple lines", "tuple", Required, LineParameters::FIELDS;
    /// Spine.
    SPINE = "SPIN", "spine", "line", Skippable, SpineParameters::FIELDS;
    /// Grid.
    GRID = "GRID", "cells of keys", "unit", Skippable, GridParameters::FIELDS;
    /// Mapping of byte keys to words.
    MASK = "MASK", "kept bits", "byte", Required, &[];
    /// The bits of byte keys that their words omit.
    TAIL = "TAIL", "rest of keys", "key", Required, ColumnParameters::FIELDS;
    /// Key column.
    KEYS = "KEYS", "key column", "key", ByContent, ColumnParameters::FIELDS;
    /// Byte keys by page.
    TEXT = "TEXT", "keys by page", "key", Required, TextParameters::FIELDS;
    /// From a byte key to its page.
    TRIE = "TRIE", "trie of keys", "node", Skippable, TrieParameters::FIELDS;
    /// Value column.
    VALUES = "VALS", "value column", "value", ByContent, ColumnParameters::FIELDS;
    /// Codes of values that are stored once.
    CODES = "CODE", "value codes", "tuple", Required, ColumnParameters::FIELDS;
    /// Compressed key column.
    PACK = "PACK", "packed keys", "key", Skippable, PackedParameters::FIELDS;
    /// FAST tree.
    FAST = "FAST", "classic tree", "key", Skippable, FastParameters::FIELDS;
    /// Harmonia's B+tree.
    HARMONIA = "HARM", "Harmonia's tree", "tuple", Skippable, HarmoniaParameters::FIELDS;
    /// Contiguous B+tree.
    BTREE = "BTRE", "contiguous B+tree", "tuple", Skippable, BtreeParameters::FIELDS;
    /// Sums of every section before it.
    SUMS = "SUMS", "sums", "sum", Required, &[];
    /// Sums of SUMS.
    SUM2 = "SUM2", "their sums", "sum", Required, &[];
}

impl Tag {
    /// Returns the row of the section; `None` for a tag that this version does not know.
    #[must_use]
    pub fn kind(self) -> Option<&'static SectionKind> {
        SECTIONS.iter().find(|kind| kind.tag == self)
    }

    /// Returns the name for messages; an unknown tag is called `section`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.kind().map_or("section", |kind| kind.name)
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{}", byte.escape_ascii())?;
        }
        Ok(())
    }
}
